//! What an acknowledgement reports: segments that have arrived, and a duplicate (RFC 2018, RFC 2883).

use super::RackRecovery;
use super::flight::Record;
use crate::units::Time;

/// What one acknowledgement brought.
#[derive(Default)]
pub(super) struct Arrivals {
    pub(super) newly: u32,
    /// The lowest segment among them that was sent once.
    pub(super) lowest: Option<u32>,
    /// Among them is one that was sent once and before the episode's end.
    pub(super) original: bool,
}

impl Arrivals {
    fn take(&mut self, segment: u32, record: &Record, recover: u32) {
        self.newly += 1;
        if !record.again {
            self.lowest = Some(self.lowest.map_or(segment, |lowest| lowest.min(segment)));
            self.original |= segment < recover;
        }
    }
}

/// The range of segments that an acknowledgement reports as duplicates: its first, if it lies below the cumulative number or
/// within the second (RFC 2883 section 4).
pub(super) fn duplicate_in(sack: &[(u32, u32)], cumulative: u32) -> Option<(u32, u32)> {
    let &(first, end) = sack.first().filter(|range| range.0 < range.1)?;
    let within = sack.get(1).is_some_and(|second| second.0 <= first && end <= second.1);
    (first < cumulative || within).then_some((first, end))
}

impl RackRecovery {
    /// The receiver reports `[first, end)` as duplicates. Returns whether it answers the tail probe. Ranges that were never sent, and
    /// more duplicates than retransmissions, are ignored.
    pub(super) fn take_duplicate(&mut self, (first, end): (u32, u32)) -> bool {
        if end > self.seq.highest {
            return false;
        }
        let answers = self.probe.is_duplicate(end);
        let duplicates = self.duplicates.saturating_add(end - first);
        if duplicates > self.resent {
            return answers;
        }
        self.duplicates = duplicates;
        if !answers {
            self.reordering.needless(self.seq.acked, self.seq.highest);
        }
        self.doubt.duplicate(first, end);
        answers
    }

    /// Processes the cumulative number and the reports.
    pub(super) fn take_arrivals(&mut self, now: Time, cumulative: u32, sack: &[(u32, u32)]) -> Arrivals {
        let Self { flight, board, latest, reordering, recover, seq, .. } = self;
        let mut arrivals = Arrivals::default();
        let min_rtt = reordering.min_rtt();
        let mut take = |segment: u32, record: &Record| {
            latest.take(now, segment, record, min_rtt);
            arrivals.take(segment, record, *recover);
        };
        flight.advance(seq.acked, &mut take);
        board.advance(seq.acked);
        // A range that reaches below the cumulative number reports duplicates or is invalid, as is one beyond the data sent.
        for &(first, end) in
            sack.iter().filter(|r| r.0 > cumulative && r.0 > seq.acked && r.0 < r.1 && r.1 <= seq.highest)
        {
            board.insert(first, end, |a, b| {
                for segment in a..b {
                    if let Some(record) = flight.arrive(segment) {
                        take(segment, &record);
                    }
                }
            });
        }
        arrivals
    }
}
