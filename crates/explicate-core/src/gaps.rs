//! Which numbers of a sequence have come, so that each counts once: packets whose acknowledgement has arrived, packets that
//! have reached a receiver, segments where gaps are skipped.
//!
//! Stored are the ranges that are missing, so a sequence without losses takes no memory. Their number is bounded: if there are
//! more, the lowest are forgotten, and what they lack counts no more when it comes after all.

use alloc::collections::VecDeque;

use crate::recovery::common::scoreboard::first_ending_at;

/// Ranges `[first, end)`, sorted and disjoint.
pub(crate) type Ranges = VecDeque<(u32, u32)>;

/// Adds a missing range above all others.
pub(crate) fn open(missing: &mut Ranges, range: (u32, u32), most: usize) {
    if missing.len() >= most {
        missing.pop_front();
    }
    missing.push_back(range);
}

/// A missing number has come. Returns whether it was missing.
pub(crate) fn close(missing: &mut Ranges, number: u32, most: usize) -> bool {
    let at = first_ending_at(missing, number.saturating_add(1));
    let Some((first, end)) = missing.get_mut(at).filter(|range| range.0 <= number) else { return false };
    match (*first == number, *end == number + 1) {
        (true, true) => drop(missing.remove(at)),
        (true, false) => *first += 1,
        (false, true) => *end -= 1,
        (false, false) => {
            let above = (number + 1, *end);
            *end = number;
            missing.insert(at + 1, above);
            if missing.len() > most {
                missing.pop_front();
            }
        }
    }
    true
}

/// Maximum number of missing ranges: where every second packet is acknowledged, 512 packets.
const MOST: usize = 256;

/// The numbers that have come, from 0 on.
#[derive(Default)]
pub(crate) struct Seen {
    /// One past the highest.
    end: u32,
    /// Those below it that have not.
    missing: Ranges,
}

impl Seen {
    /// A number comes. Returns whether it is new; one of a range that is forgotten is not.
    #[inline(always)]
    pub(crate) fn take(&mut self, number: u32) -> bool {
        if number == self.end {
            self.end = number.wrapping_add(1);
            return true;
        }
        take_out_of_order(&mut self.end, &mut self.missing, number)
    }
}

/// A number other than `end` comes, which is one past the highest. Returns whether it is new.
fn take_out_of_order(end: &mut u32, missing: &mut Ranges, number: u32) -> bool {
    // Numbers wrap after 2^32 packets; what is missing before that is forgotten.
    let ahead = number.wrapping_sub(*end);
    if ahead > i32::MAX as u32 {
        return close(missing, number, MOST);
    }
    if number < *end || number == u32::MAX {
        missing.clear();
    } else {
        open(missing, (*end, number), MOST);
    }
    *end = number.wrapping_add(1);
    true
}

/// Missing numbers close together, a bit each: what most senders have, without memory of its own.
#[derive(Default)]
pub(crate) struct Near {
    from: u32,
    bits: u64,
}

/// A missing number so far below another one is forgotten.
const FORGOTTEN: u32 = 4096;

impl Near {
    /// [`take_out_of_order`] for missing numbers that are here, and in `far` if they are too far apart.
    pub(crate) fn take<'a>(&mut self, end: &mut u32, number: u32, far: impl FnOnce() -> &'a mut Ranges) -> bool {
        if number.wrapping_sub(*end) > i32::MAX as u32 {
            return self.close(number) || close(far(), number, MOST);
        }
        if number < *end || number == u32::MAX {
            self.bits = 0;
            far().clear();
        } else if !self.open(*end, number) {
            open(far(), (*end, number), MOST);
        }
        *end = number.wrapping_add(1);
        true
    }

    /// Adds the missing range `[first, end)` above all others, if it fits.
    fn open(&mut self, first: u32, end: u32) -> bool {
        if self.bits == 0 || first - self.from > FORGOTTEN {
            (self.from, self.bits) = (first, 0);
        }
        let fits = end - self.from <= u64::BITS;
        if fits {
            let upper = u64::MAX >> (u64::BITS - (end - first));
            self.bits |= upper << (first - self.from);
        }
        fits
    }

    fn close(&mut self, number: u32) -> bool {
        let at = number.wrapping_sub(self.from);
        let bit = if at < u64::BITS { 1 << at } else { 0 };
        let missing = self.bits & bit != 0;
        self.bits &= !bit;
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    /// Numbers that come in every order, each up to three times.
    #[test]
    fn each_number_is_new_once() {
        let mut rng = Rng::stream(7, "seen");
        for _ in 0..300 {
            let (mut seen, mut set, mut base) = (Seen::default(), BTreeSet::new(), 0);
            for _ in 0..200 {
                base += (rng.next_u64() % 3) as u32;
                let number = base + (rng.next_u64() % 40) as u32;
                assert_eq!(seen.take(number), set.insert(number), "{number} of {set:?}");
                let missing: Vec<u32> = seen.missing.iter().flat_map(|&(a, b)| a..b).collect();
                assert!(missing.iter().all(|n| *n < seen.end && !set.contains(n)));
                assert_eq!(missing.len() + set.len(), seen.end as usize);
            }
        }
    }

    /// The same where most of them are near.
    #[test]
    fn each_number_is_new_once_near_and_far() {
        let mut rng = Rng::stream(8, "near");
        for spread in [3, 40, 150] {
            for _ in 0..200 {
                let (mut near, mut far, mut end, mut set) = (Near::default(), Ranges::new(), 0, BTreeSet::new());
                for base in 0..200 {
                    let number = base + (rng.next_u64() % spread) as u32;
                    let new = if number == end {
                        end += 1;
                        true
                    } else {
                        near.take(&mut end, number, || &mut far)
                    };
                    assert_eq!(new, set.insert(number), "{number} of {set:?}");
                }
            }
        }
        let (mut near, mut far, mut end) = (Near::default(), Ranges::new(), 0);
        assert!(near.take(&mut end, 1, || &mut far));
        end = 5000;
        assert!(near.take(&mut end, 5001, || &mut far) && !near.take(&mut end, 0, || &mut far), "forgotten");
        assert!(near.take(&mut end, 5000, || &mut far) && !near.take(&mut end, 5000, || &mut far));
    }

    /// Every second number: the gaps that came first are forgotten, and memory is bounded. A leap by a forged number is one gap.
    #[test]
    fn what_is_missing_is_bounded() {
        let mut seen = Seen::default();
        assert!((0..4 * MOST as u32).all(|i| seen.take(2 * i + 1)));
        assert_eq!(seen.missing.len(), MOST);
        assert!(!seen.take(0), "forgotten");
        assert!(seen.take(8 * MOST as u32 - 2), "not forgotten");
        assert!(seen.take(2_000_000_000));
        assert!((8 * MOST as u32..).take(1000).all(|number| seen.take(number)));
        assert!((8 * MOST as u32..).take(1000).all(|number| !seen.take(number)));
    }

    #[test]
    fn numbers_wrap() {
        let mut seen = Seen { end: u32::MAX - 1, missing: Ranges::new() };
        let taken = [u32::MAX - 1, u32::MAX, 0, 2, 1, 1, 2, u32::MAX].map(|number| seen.take(number));
        assert_eq!(taken, [true, true, true, true, true, false, false, false]);
    }
}
