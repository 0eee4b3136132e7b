//! The queue `fifo`: it has places for a number of packets, and each flow that wants to send while all are taken gets the
//! place of a packet that leaves, in order of asking.

use std::collections::VecDeque;

use explicate_core::units::Time;

use super::{Line, Member};

/// The packets of a queue. Packets that wait for nothing take no place.
#[derive(Default)]
pub(super) struct Places {
    /// When each packet has left, in order; the first has number `first`.
    departures: VecDeque<Time>,
    first: u64,
    /// One past the last packet whose place is taken by a flow that waits, and when that packet leaves.
    promised: u64,
    promised_at: Time,
}

impl Places {
    fn advance(&mut self, now: Time) {
        while self.departures.front().is_some_and(|departed| *departed <= now) {
            self.departures.pop_front();
            self.first += 1;
        }
        // What flows that have ended did not take is free again.
        if self.departures.is_empty() && self.promised_at < now {
            self.promised = self.first;
        }
    }
    /// A packet takes a place.
    pub(super) fn join(&mut self, now: Time, departs: Time) {
        self.advance(now);
        self.departures.push_back(departs);
    }
    /// Until when a flow has to wait for a place, which it then has; `None` if there is one.
    pub(super) fn wait(&mut self, line: &Line, flow: &mut Member, now: Time, bytes: u32) -> Option<Time> {
        if std::mem::take(&mut flow.promised) {
            return None;
        }
        self.advance(now);
        let most = line.most(bytes);
        let held = self.departures.len() as u64;
        // Places that were promised and not yet taken count.
        let owed = self.promised.saturating_sub(self.first);
        if held + owed < most {
            return None;
        }
        let place = self.promised.max((self.first + held).saturating_sub(most)).max(self.first);
        self.promised = place + 1;
        let at = (place - self.first) as usize;
        let last = self.departures.back().copied().unwrap_or(now);
        let beyond = (at + 1).saturating_sub(self.departures.len()) as u64;
        self.promised_at = self.departures.get(at).copied().unwrap_or(last + Time(beyond * line.takes(bytes).0));
        flow.promised = true;
        Some(self.promised_at)
    }
}
