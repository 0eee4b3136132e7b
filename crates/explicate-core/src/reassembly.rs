//! Received segments of a flow: the next one expected, and the ranges beyond it that SACK reports (RFC 2018).

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use core::mem::size_of;

use crate::gaps;
use crate::recovery::common::scoreboard::first_ending_at;
use crate::wire::{SACK_RANGES, SackRanges};

/// In place of a count: gaps are not skipped.
const WAITED_FOR: u32 = u32::MAX;

/// Maximum number of skipped gaps that are remembered, 512 kB: what arrives after as many later gaps counts as lost.
const MOST_GAPS: usize = 1 << 16;

/// Segments received.
pub struct Reassembly {
    next: u32,
    /// If gaps are skipped, `next` counts the segments that have arrived, and this field those that are missing.
    missing: u32,
    /// Present while segments have arrived out of order; if gaps are skipped, while some are missing.
    beyond: Option<Box<Beyond>>,
    /// The last segment of the flow; the greatest number while it is unknown.
    last: u32,
    /// Its payload, and the payload of the others.
    short: u16,
    full: u16,
}

impl Default for Reassembly {
    fn default() -> Reassembly {
        Reassembly { next: 0, missing: WAITED_FOR, beyond: None, last: u32::MAX, short: 0, full: 0 }
    }
}

impl Reassembly {
    /// The next segment expected: all segments before it have arrived.
    #[inline]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// From now on gaps are skipped: [`Reassembly::next`] counts the segments that have arrived.
    pub fn pass_over_holes(&mut self) {
        // Not for the copy of a SYN. What a forged one finds beyond a gap is forgotten.
        if !self.passes_over() {
            (self.missing, self.beyond) = (0, None);
        }
    }

    /// Whether [`Reassembly::pass_over_holes`] was called.
    pub fn passes_over(&self) -> bool {
        self.missing != WAITED_FOR
    }

    /// Segments that are missing below the highest, if gaps are skipped.
    pub fn missing(&self) -> u32 {
        if self.passes_over() { self.missing } else { 0 }
    }
    /// Whether the last segment of the flow has arrived.
    pub fn has_last(&self) -> bool {
        self.last != u32::MAX
    }

    /// Whether nothing has arrived out of order.
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.beyond.is_none()
    }

    /// Records the next segment, which is not the last, while nothing has arrived out of order.
    #[inline(always)]
    pub fn insert_next(&mut self, payload: u16) {
        self.full = self.full.max(payload);
        self.next += 1;
    }

    /// Records a segment, unless it is a duplicate or at least `window` segments ahead (there is no room for it).
    #[inline]
    pub fn insert(&mut self, segment: u32, window: u32, payload: u16, last: bool) {
        let next = segment == self.next && self.is_in_order();
        if !last {
            self.full = self.full.max(payload);
        } else if next || !self.passes_over() {
            (self.last, self.short) = (segment, payload);
        }
        if next {
            self.next += 1;
        } else if self.passes_over() {
            self.pass_over(segment, payload, last);
        } else if segment >= self.next && segment - self.next < window {
            self.insert_beyond(segment);
        }
    }

    /// Counts a segment that is the next one, follows a gap, or was counted as missing.
    #[cold]
    fn pass_over(&mut self, segment: u32, payload: u16, last: bool) {
        // One past the highest that has arrived.
        let end = self.next + self.missing;
        if segment > end && segment < u32::MAX {
            self.missing += segment - end;
            gaps::open(&mut self.beyond.get_or_insert_default().ranges, (end, segment), MOST_GAPS);
        } else if segment != end || segment == u32::MAX {
            let Some(beyond) = &mut self.beyond else { return };
            if !gaps::close(&mut beyond.ranges, segment, MOST_GAPS) {
                return;
            }
            self.missing -= 1;
            if self.missing == 0 {
                self.beyond = None;
            }
        }
        if last {
            (self.last, self.short) = (self.next, payload);
        }
        self.next += 1;
    }

    fn insert_beyond(&mut self, segment: u32) {
        let beyond = self.beyond.get_or_insert_default();
        self.next = beyond.insert(segment, self.next);
        if beyond.ranges.is_empty() {
            self.beyond = None;
        }
    }

    /// Whether a segment has arrived; of those that were skipped nothing is known.
    pub fn has(&self, segment: u32) -> bool {
        segment < self.next || self.beyond.as_ref().is_some_and(|beyond| beyond.range_of(segment).is_some())
    }
    /// The ranges to report: that of the newest arrival first, then those reported before.
    #[inline]
    pub fn ranges(&self) -> SackRanges {
        self.beyond.as_ref().map_or(SackRanges::NONE, |beyond| beyond.report)
    }

    /// Bytes of memory used by the record of segments out of order.
    pub fn memory(&self) -> usize {
        self.beyond
            .as_ref()
            .map_or(0, |beyond| size_of::<Beyond>() + beyond.ranges.capacity() * size_of::<(u32, u32)>())
    }

    /// Additional bytes that one more segment out of order may take.
    pub fn memory_to_insert(&self) -> usize {
        match &self.beyond {
            None => size_of::<Beyond>() + 4 * size_of::<(u32, u32)>(),
            Some(beyond) if beyond.ranges.len() < beyond.ranges.capacity() => 0,
            Some(beyond) => beyond.ranges.capacity().max(4) * size_of::<(u32, u32)>(),
        }
    }

    /// Payload received in order, bytes.
    pub fn payload(&self) -> u64 {
        let (full, short) = (self.full as u64, self.short as u64);
        if self.last < self.next { (self.next as u64 - 1) * full + short } else { self.next as u64 * full }
    }
}

/// Segments that have arrived beyond the next one expected.
#[derive(Default)]
struct Beyond {
    /// Ranges `[first, end)`, sorted and disjoint. Most changes are at either end.
    ranges: VecDeque<(u32, u32)>,
    /// One segment of each range that changed recently, newest first; outdated and repeated entries report nothing.
    recent: [u32; SACK_RANGES],
    /// The ranges to report.
    report: SackRanges,
}

impl Beyond {
    /// Records a segment beyond `next`. Returns the new next segment expected.
    fn insert(&mut self, segment: u32, next: u32) -> u32 {
        let next = if self.extend(segment) { next } else { self.insert_anywhere(segment, next) };
        debug_assert_eq!(self.report, self.reported());
        next
    }

    /// The common case: the segment follows the highest range, which also changed last. Then the range grows by one
    /// segment, and nothing else changes. Returns whether this was so.
    fn extend(&mut self, segment: u32) -> bool {
        let Some(highest) = self.ranges.back_mut().filter(|highest| highest.1 == segment) else { return false };
        if self.recent[0] < highest.0 {
            return false;
        }
        highest.1 += 1;
        self.recent[0] = segment;
        self.report.extend_first();
        true
    }

    fn insert_anywhere(&mut self, segment: u32, next: u32) -> u32 {
        // The first range that ends at or after the segment: it contains, touches or follows it.
        let at = first_ending_at(&self.ranges, segment);
        match self.ranges.get_mut(at) {
            Some((first, end)) if *first <= segment && segment < *end => {}
            Some((_, end)) if *end == segment => {
                *end += 1;
                let grown = *end;
                if self.ranges.get(at + 1).is_some_and(|&(first, _)| first == grown) {
                    self.ranges[at].1 = self.ranges[at + 1].1;
                    self.ranges.remove(at + 1);
                }
            }
            Some((first, _)) if *first == segment + 1 => *first = segment,
            _ => self.ranges.insert(at, (segment, segment + 1)),
        }
        self.remember(segment, next);
        let after = match self.ranges.front() {
            Some(&(first, end)) if first == next => {
                self.ranges.pop_front();
                end
            }
            _ => next,
        };
        self.report = self.reported();
        after
    }

    /// Puts the segment's range first, and keeps those reported before that do not touch it (RFC 2018 section 4).
    fn remember(&mut self, segment: u32, next: u32) {
        let Some((first, end)) = self.range_of(segment) else { return };
        let mut recent = [segment; SACK_RANGES];
        let others = self.recent.iter().filter(|&&s| s >= next && !(first..end).contains(&s));
        for (slot, &other) in recent[1..].iter_mut().zip(others) {
            *slot = other;
        }
        self.recent = recent;
    }

    fn range_of(&self, segment: u32) -> Option<(u32, u32)> {
        let at = first_ending_at(&self.ranges, segment.saturating_add(1));
        self.ranges.get(at).copied().filter(|&(first, _)| first <= segment)
    }

    fn reported(&self) -> SackRanges {
        let mut out = SackRanges::default();
        if self.ranges.is_empty() {
            return out;
        }
        for range in self.recent.iter().filter_map(|&segment| self.range_of(segment)) {
            if !out.as_slice().contains(&range) {
                out.push(range.0, range.1);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn with(segments: &[u32]) -> Reassembly {
        let mut r = Reassembly::default();
        for &s in segments {
            r.insert(s, 100, 10, false);
        }
        r
    }

    #[test]
    fn in_order_and_holes() {
        let mut r = with(&[0, 1, 3, 4, 7, 6, 9]);
        assert_eq!(r.next(), 2);
        assert_eq!(r.ranges().as_slice(), [(9, 10), (6, 8), (3, 5)]);
        r.insert(2, 100, 10, false);
        assert_eq!(r.next(), 5);
        r.insert(5, 100, 10, false);
        assert_eq!((r.next(), r.ranges().as_slice()), (8, &[(9, 10)][..]));
        r.insert(8, 100, 4, true);
        assert_eq!((r.next(), r.ranges().as_slice().len()), (10, 0));
    }

    #[test]
    fn a_long_run_does_not_push_out_the_other_ranges() {
        let r = with(&[1, 3, 5, 6, 7, 8, 9, 5]);
        assert_eq!(r.ranges().as_slice(), [(5, 10), (3, 4), (1, 2)]);
        let r = with(&[1, 3, 5, 7]);
        assert_eq!(r.ranges().as_slice(), [(7, 8), (5, 6), (3, 4)]);
    }

    #[test]
    fn every_order_ends_the_same() {
        let mut rng = crate::rng::Rng::stream(3, "orders");
        for _ in 0..200 {
            let mut left: Vec<u32> = (0..12).chain(0..12).collect();
            let mut r = Reassembly::default();
            while !left.is_empty() {
                let s = left.swap_remove((rng.next_u64() % left.len() as u64) as usize);
                r.insert(s, 100, 10, false);
                let beyond: Vec<(u32, u32)> = r.beyond.iter().flat_map(|b| b.ranges.iter().copied()).collect();
                assert!(beyond.windows(2).all(|w| w[0].1 < w[1].0), "{beyond:?}");
                assert!(beyond.first().is_none_or(|&(first, end)| first > r.next && first < end));
            }
            assert_eq!((r.next(), r.payload()), (12, 120));
        }
    }

    /// Segments 2, 3 and 5 of 0..7 are lost, the last one is short; 2 arrives late. Every segment comes a second time.
    #[test]
    fn holes_are_passed_over() {
        let mut r = Reassembly::default();
        r.pass_over_holes();
        for (segment, arrived) in [(0, 1), (1, 2), (0, 2), (4, 3), (4, 3), (2, 4), (2, 4), (1, 4)] {
            r.insert(segment, 100, 10, false);
            assert_eq!(r.next(), arrived, "{segment}");
        }
        for _ in 0..2 {
            r.insert(6, 1, 4, true);
            assert_eq!((r.next(), r.missing, r.payload()), (5, 2, 44));
        }
        for (segment, arrived) in [(3, 6), (5, 7), (3, 7), (5, 7)] {
            r.insert(segment, 100, 10, false);
            assert_eq!((r.next(), r.is_in_order()), (arrived, arrived == 7));
        }
        assert_eq!((r.missing, r.payload()), (0, 64));
    }

    /// A SYN comes again, or one is forged in the midst of a flow that waited for its gaps.
    #[test]
    fn gaps_are_skipped_from_now_on_and_once() {
        let mut r = with(&[0, 3, 5]);
        for _ in 0..2 {
            r.pass_over_holes();
            for segment in [3, 5, 4, 2, 2] {
                r.insert(segment, 100, 10, false);
            }
            assert_eq!((r.next(), r.missing), (5, 1));
        }
    }

    /// Random segments, each up to four times, in and out of order: each counts once, whatever is missing.
    #[test]
    fn where_gaps_are_skipped_each_segment_counts_once() {
        let mut rng = crate::rng::Rng::stream(4, "gaps");
        for _ in 0..200 {
            let (mut r, mut arrived, mut base) = (Reassembly::default(), std::collections::BTreeSet::new(), 0);
            r.pass_over_holes();
            for _ in 0..300 {
                base += (rng.next_u64() % 4 / 3) as u32;
                let segment = base + (rng.next_u64() % 30) as u32;
                r.insert(segment, 100, 10, false);
                arrived.insert(segment);
                assert_eq!(r.next() as usize, arrived.len());
                assert_eq!((r.next() + r.missing).checked_sub(1), arrived.last().copied());
            }
        }
    }

    /// Forged numbers leap: one gap each, and none overflows. Many gaps are bounded in memory.
    #[test]
    fn skipped_gaps_are_bounded() {
        let mut r = Reassembly::default();
        r.pass_over_holes();
        for segment in [u32::MAX, u32::MAX - 1, u32::MAX, u32::MAX - 1, 0, 7] {
            r.insert(segment, 100, 10, false);
        }
        assert_eq!((r.next(), r.missing), (3, u32::MAX - 3));
        let mut r = Reassembly::default();
        r.pass_over_holes();
        let gaps = MOST_GAPS as u32 + 1000;
        (0..gaps).for_each(|i| r.insert(2 * i + 1, 100, 10, false));
        assert_eq!((r.next(), r.beyond.as_ref().map(|b| b.ranges.len())), (gaps, Some(MOST_GAPS)));
        r.insert(0, 100, 10, false);
        assert_eq!(r.next(), gaps, "forgotten");
        r.insert(2 * gaps - 2, 100, 10, false);
        assert_eq!(r.next(), gaps + 1);
    }

    #[test]
    fn no_room_and_the_short_last_segment() {
        let mut r = with(&[0]);
        r.insert(101, 100, 10, false);
        assert!(r.is_in_order());
        r.insert(1, 100, 4, true);
        assert_eq!(r.payload(), 14);
        let mut r = Reassembly::default();
        r.insert(0, 100, 4, true);
        assert_eq!(r.payload(), 4, "a flow of one short segment");
        let mut r = Reassembly::default();
        r.insert(1, 100, 4, true);
        r.insert(0, 100, 10, false);
        assert_eq!(r.payload(), 14, "the last came first");
    }
}
