//! The outstanding segments: when each was last sent, whether it has arrived or is lost, and the search for losses by time.

use alloc::collections::{BTreeSet, VecDeque};

use crate::units::Time;

/// Where a segment is, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    InFlight,
    /// Lost and not sent again.
    Lost,
    /// Reported by the receiver.
    Arrived,
}

/// What is known of an outstanding segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// When it was last sent.
    pub(super) at: Time,
    /// It was sent more than once.
    pub(super) again: bool,
    place: Place,
}

/// The transmission that was sent last of those known to have arrived: RACK.xmit_ts, RACK.end_seq, RACK.rtt.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Latest {
    at: Time,
    segment: u32,
    /// The round trip of the segment that arrived last.
    pub(super) rtt: Time,
}

impl Latest {
    /// A segment arrived that was sent at `at`, unless an earlier transmission of it did (RFC 8985 section 6.2, step 2).
    pub(super) fn take(&mut self, now: Time, segment: u32, record: &Record, min_rtt: Time) {
        let rtt = now.since(record.at);
        if record.again && rtt < min_rtt {
            return;
        }
        self.rtt = rtt;
        if (record.at, segment) > (self.at, self.segment) {
            (self.at, self.segment) = (record.at, segment);
        }
    }
    /// When a segment that left just before it has waited for this long.
    pub(super) fn deadline(&self, wait: Time) -> Time {
        self.at + self.rtt + wait
    }
}

/// What a search for losses found.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Found {
    /// Segments that are lost now.
    pub(super) lost: u32,
    /// One of them is a retransmission.
    pub(super) again: bool,
    /// Others may be lost, but their time has not come.
    pub(super) waiting: bool,
}

/// The outstanding segments.
#[derive(Default)]
pub(super) struct Flight {
    /// The first of them.
    first: u32,
    records: VecDeque<Record>,
    /// In flight, as RFC 9937 and Linux count: sent, and neither reported nor lost; sent again, and not lost again.
    pub(super) count: u32,
    /// Retransmissions of them.
    pub(super) resent: u32,
    /// Lost and not sent again.
    pub(super) lost: BTreeSet<u32>,
    /// No segment below is in flight for the first time.
    undecided: u32,
    /// Retransmissions in the order of departure; those that do not agree with their record are out of date.
    again: VecDeque<(u32, Time)>,
}

impl Flight {
    /// The next segment leaves for the first time.
    pub(super) fn send(&mut self, now: Time) {
        self.records.push_back(Record { at: now, again: false, place: Place::InFlight });
        self.count += 1;
    }
    /// A segment leaves again.
    pub(super) fn send_again(&mut self, now: Time, segment: u32) {
        let Some(record) = self.records.get_mut(segment.wrapping_sub(self.first) as usize) else { return };
        match record.place {
            Place::Arrived => return,
            Place::Lost => {
                self.lost.remove(&segment);
                self.count += 1;
                self.resent += 1;
            }
            Place::InFlight => self.resent += !record.again as u32,
        }
        *record = Record { at: now, again: true, place: Place::InFlight };
        self.again.push_back((segment, now));
    }

    /// All segments below `acked` have arrived; `fresh` is called for those that had not been reported.
    #[inline]
    pub(super) fn advance(&mut self, acked: u32, mut fresh: impl FnMut(u32, &Record)) {
        while self.first < acked
            && let Some(record) = self.records.pop_front()
        {
            if record.place != Place::Arrived {
                self.leave(self.first, &record);
                fresh(self.first, &record);
            }
            self.first += 1;
        }
        self.undecided = self.undecided.max(acked);
        if self.records.is_empty() {
            self.again.clear();
        }
    }
    /// The first `newly` segments have arrived, each sent once and not reported before.
    #[inline]
    pub(super) fn arrive_in_order(&mut self, now: Time, newly: u32, latest: &mut Latest) {
        let mut last = None;
        for _ in 0..newly {
            last = self.records.pop_front();
        }
        self.first += newly;
        self.count -= newly;
        self.undecided = self.undecided.max(self.first);
        if let Some(record) = last {
            latest.take(now, self.first - 1, &record, Time::ZERO);
        }
    }
    /// The receiver reports a segment; its record, if it had not been reported.
    pub(super) fn arrive(&mut self, segment: u32) -> Option<Record> {
        let record = self.records.get_mut(segment.wrapping_sub(self.first) as usize)?;
        let before = *record;
        record.place = Place::Arrived;
        if before.place == Place::Arrived {
            return None;
        }
        self.leave(segment, &before);
        Some(before)
    }
    fn leave(&mut self, segment: u32, record: &Record) {
        if record.place == Place::Lost {
            self.lost.remove(&segment);
        } else {
            self.count -= 1;
            self.resent -= record.again as u32;
        }
    }
    fn lose(&mut self, segment: u32) {
        let record = &mut self.records[(segment - self.first) as usize];
        record.place = Place::Lost;
        self.count -= 1;
        self.resent -= record.again as u32;
        self.lost.insert(segment);
    }

    /// Marks what is lost: sent before the latest arrival, and not arrived a round trip and `wait` later (RFC 8985 section 6.2,
    /// step 5).
    pub(super) fn search(&mut self, now: Time, latest: &Latest, wait: Time) -> Found {
        let mut found = Found::default();
        let before = |at: Time, segment: u32| (at, segment) < (latest.at, latest.segment);
        let late = |at: Time| at + latest.rtt + wait <= now;
        while let Some(record) = self.records.get((self.undecided - self.first) as usize) {
            if record.place == Place::InFlight && !record.again {
                if !before(record.at, self.undecided) {
                    break;
                }
                if !late(record.at) {
                    found.waiting = true;
                    break;
                }
                found.lost += 1;
                self.lose(self.undecided);
            }
            self.undecided += 1;
        }
        while let Some(&(segment, at)) = self.again.front() {
            if self.is_in_flight_since(segment, at) {
                if !before(at, segment) {
                    break;
                }
                if !late(at) {
                    found.waiting = true;
                    break;
                }
                found.lost += 1;
                found.again = true;
                self.lose(segment);
            }
            self.again.pop_front();
        }
        found
    }
    fn is_in_flight_since(&self, segment: u32, at: Time) -> bool {
        let record = self.records.get(segment.wrapping_sub(self.first) as usize);
        record.is_some_and(|record| record.place == Place::InFlight && record.again && record.at == at)
    }

    /// The retransmission timer expired: the first segment is lost, and all others but those sent in the last `recent`.
    pub(super) fn lose_all(&mut self, now: Time, recent: Time) {
        for i in 0..self.records.len() {
            let Record { at, place, .. } = self.records[i];
            if place == Place::InFlight && (i == 0 || at + recent <= now) {
                self.lose(self.first + i as u32);
            }
        }
    }
    /// What counts as lost and was not sent again is in flight after all.
    pub(super) fn find_again(&mut self) {
        while let Some(segment) = self.lost.pop_last() {
            let record = &mut self.records[(segment - self.first) as usize];
            record.place = Place::InFlight;
            self.count += 1;
            self.resent += record.again as u32;
            if record.again {
                self.again.push_front((segment, record.at));
            }
        }
        self.undecided = self.first;
    }
    /// The receiver has discarded what it reported.
    pub(super) fn forget_arrivals(&mut self) {
        for record in &mut self.records {
            if record.place == Place::Arrived {
                record.place = Place::InFlight;
                record.again = false;
                self.count += 1;
            }
        }
        self.undecided = self.first;
    }
    /// When a segment was last sent, if it is outstanding.
    pub(super) fn departure(&self, segment: u32) -> Option<Time> {
        self.records.get(segment.wrapping_sub(self.first) as usize).map(|record| record.at)
    }
    /// The highest segment that has not been reported.
    pub(super) fn last(&self) -> Option<u32> {
        let back = self.records.iter().rev().position(|record| record.place != Place::Arrived)?;
        Some(self.first + (self.records.len() - 1 - back) as u32)
    }
}
