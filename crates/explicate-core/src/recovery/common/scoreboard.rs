//! The segments that a receiver reported beyond its cumulative number (RFC 2018), as sorted ranges.
//!
//! Nothing is stored while there is no gap. A lookup is a binary search, an insertion accesses the ranges that it
//! joins, and the number of ranges is bounded: a report that would need one more is not recorded, which at worst
//! causes an unnecessary retransmission, because SACK is advisory.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// Maximum number of ranges.
const MOST_RANGES: usize = 1 << 16;

/// In sorted, disjoint ranges: the index of the first that ends at `least` or later. The result is mostly at either
/// end: new arrivals above all others, repairs below them.
pub fn first_ending_at(ranges: &VecDeque<(u32, u32)>, least: u32) -> usize {
    let (front, back) = ranges.as_slices();
    if front.first().is_none_or(|r| r.1 >= least) {
        return 0;
    }
    let tail = if back.is_empty() { front } else { back };
    let behind = tail.iter().rev().take(4).take_while(|r| r.1 >= least).count();
    if behind < 4 && behind < tail.len() {
        return ranges.len() - behind;
    }
    ranges.partition_point(|r| r.1 < least)
}

/// Segments reported beyond the cumulative number.
#[derive(Default)]
pub struct Scoreboard {
    /// Present while something is recorded; most flows need only a pointer.
    noted: Option<Box<Noted>>,
}

/// The recorded segments.
#[derive(Default)]
struct Noted {
    /// Ranges `[first, end)`, sorted and disjoint.
    ranges: VecDeque<(u32, u32)>,
    /// Segments in them.
    total: u32,
}

static NOTHING: VecDeque<(u32, u32)> = VecDeque::new();

impl Scoreboard {
    #[inline]
    fn ranges(&self) -> &VecDeque<(u32, u32)> {
        self.noted.as_ref().map_or(&NOTHING, |noted| &noted.ranges)
    }
    /// Whether nothing is noted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.noted.is_none()
    }
    /// Number of recorded segments.
    #[inline]
    pub fn total(&self) -> u32 {
        self.noted.as_ref().map_or(0, |noted| noted.total)
    }
    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<(u32, u32)> {
        self.ranges().front().copied()
    }
    /// The highest range.
    #[inline]
    pub fn last(&self) -> Option<(u32, u32)> {
        self.ranges().back().copied()
    }
    /// Clears all reports.
    pub fn clear(&mut self) {
        self.noted = None;
    }

    /// Records `[first, end)` and calls `fresh` with each part that was not recorded before.
    pub fn insert(&mut self, first: u32, end: u32, mut fresh: impl FnMut(u32, u32)) {
        let Noted { ranges, total } = &mut **self.noted.get_or_insert_default();
        if let Some(highest) = ranges.back_mut()
            && (highest.0..=highest.1).contains(&first)
        {
            if end > highest.1 {
                fresh(highest.1, end);
                *total += end - highest.1;
                highest.1 = end;
            }
            return; // mostly the newest arrival
        }
        let at = first_ending_at(ranges, first);
        if ranges.get(at).is_some_and(|&(f, e)| f <= first && end <= e) {
            return; // most reports repeat earlier ones
        }
        let joins = ranges.get(at).is_some_and(|&(f, _)| f <= end);
        if !joins && ranges.len() >= MOST_RANGES {
            return;
        }
        let mut joined = (first, end);
        let mut known = first; // all of `[first, known)` has been processed
        let mut until = at;
        while let Some(&(f, e)) = ranges.get(until)
            && f <= end
        {
            if known < f {
                fresh(known, f);
                *total += f - known;
            }
            known = known.max(e);
            joined = (joined.0.min(f), joined.1.max(e));
            until += 1;
        }
        if known < end {
            fresh(known, end);
            *total += end - known;
        }
        if until == at {
            ranges.insert(at, joined);
        } else {
            ranges[at] = joined;
            if until > at + 1 {
                ranges.drain(at + 1..until);
            }
        }
    }

    /// Removes segments below `acked`, and returns their number.
    pub fn advance(&mut self, acked: u32) -> u32 {
        let Some(Noted { ranges, total }) = self.noted.as_deref_mut() else { return 0 };
        let mut gone = 0;
        while let Some((first, end)) = ranges.front_mut()
            && *first < acked
        {
            if *end > acked {
                gone += acked - *first;
                *first = acked;
                break;
            }
            gone += *end - *first;
            ranges.pop_front();
        }
        *total -= gone;
        if ranges.is_empty() {
            self.noted = None;
        }
        gone
    }

    /// The first segment at or after `segment` that is not recorded.
    #[inline]
    pub fn skip(&self, segment: u32) -> u32 {
        let (Some((lowest, _)), Some((highest, end))) = (self.first(), self.last()) else { return segment };
        if segment < lowest {
            return segment;
        }
        if segment >= highest {
            return segment.max(end); // mostly among the newest arrivals, or after them
        }
        let at = first_ending_at(self.ranges(), segment.saturating_add(1));
        match self.ranges().get(at) {
            Some(&(first, end)) if first <= segment => end,
            _ => segment,
        }
    }

    /// The `n`-th highest recorded segment, if there are that many. Accesses at most `n` ranges.
    pub fn from_top(&self, n: u32) -> Option<u32> {
        if self.total() < n {
            return None;
        }
        let mut left = n;
        for &(first, end) in self.ranges().iter().rev() {
            if end - first >= left {
                return Some(end - left);
            }
            left -= end - first;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    #[test]
    fn agrees_with_a_set() {
        let mut rng = Rng::stream(5, "scoreboard");
        for _ in 0..300 {
            let (mut board, mut set, mut acked) = (Scoreboard::default(), BTreeSet::new(), 0);
            for _ in 0..60 {
                let mut below = |n: u64| (rng.next_u64() % n) as u32;
                if below(8) == 0 {
                    acked += below(12);
                    let kept = set.split_off(&acked);
                    assert_eq!(board.advance(acked) as usize, set.len());
                    set = kept;
                } else {
                    let first = acked + below(60);
                    let end = first + 1 + below(9);
                    let mut fresh = Vec::new();
                    board.insert(first, end, |a, b| fresh.extend(a..b));
                    let expected: Vec<u32> = (first..end).filter(|s| set.insert(*s)).collect();
                    assert_eq!(fresh, expected);
                }
                assert_eq!(board.total() as usize, set.len());
                assert!(board.ranges().iter().all(|r| r.0 < r.1));
                assert!(board.ranges().iter().zip(board.ranges().iter().skip(1)).all(|(a, b)| a.1 < b.0));
                for n in 1..5 {
                    assert_eq!(board.from_top(n), set.iter().rev().nth(n as usize - 1).copied());
                }
                let from = acked + below(70);
                assert_eq!(Some(board.skip(from)), (from..).find(|s| !set.contains(s)));
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut board = Scoreboard::default();
        for i in 0..MOST_RANGES as u32 + 10 {
            board.insert(2 * i + 1, 2 * i + 2, |_, _| {});
        }
        assert_eq!((board.ranges().len(), board.total() as usize), (MOST_RANGES, MOST_RANGES));
        board.insert(1, 4, |_, _| {});
        assert_eq!(board.ranges().len(), MOST_RANGES - 1, "what joins ranges is still noted");
    }
}
