//! Queues of sending hosts (`host_queue`). The departures from a host's own line are known when packets join it, so a queue is
//! a clock, and a flow that has to wait learns until when. Packets that are still in processing count as if they
//! were in the queue.
//!
//! A full queue pushes back: each flow that wants to send gets the place of a packet that leaves, in order of asking.

use std::collections::VecDeque;

use explicate_core::endpoint::{HostQueue, header_bytes};
use explicate_core::recovery::Next;
use explicate_core::units::{Rate, Time};

use super::{Ends, Engine, NIL};

/// Most packets of all flows.
const MOST_PACKETS: u64 = 1000;
/// Longest time that the line needs for all of them.
const LONGEST_S: f64 = 0.2;
/// One waits while another is sent.
const FEWEST_PACKETS: u64 = 2;

/// The queue before one line.
pub(super) struct Queue {
    rate: Rate,
    /// When the line is free.
    free: Time,
    /// When each packet has left, in order; the first has number `first`. Without SYNs, which take no place and so leave none.
    departures: VecDeque<Time>,
    first: u64,
    /// One past the last packet whose place is taken by a flow that waits, and when that packet leaves.
    promised: u64,
    promised_at: Time,
}

/// The queue of a flow.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Its number; `NIL` without one.
    queue: u32,
    /// The flow waits for the place of a packet that leaves then.
    promised: bool,
}

impl Place {
    pub(super) const NONE: Place = Place { queue: NIL, promised: false };

    #[inline(always)]
    pub(super) fn is_some(self) -> bool {
        self.queue != NIL
    }
}

impl Queue {
    fn new(rate: Rate) -> Queue {
        Queue { rate, free: Time::ZERO, departures: VecDeque::new(), first: 0, promised: 0, promised_at: Time::ZERO }
    }
    fn takes(&self, bytes: u32) -> Time {
        Time((8_000_000_000u128 * bytes as u128 / self.rate.0 as u128) as u64)
    }
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
    /// When a packet of `bytes` has left that joins now.
    fn join(&mut self, now: Time, bytes: u32) -> Time {
        self.advance(now);
        self.pass(now, bytes);
        self.departures.push_back(self.free);
        self.free
    }
    /// A packet joins without taking a place.
    fn pass(&mut self, now: Time, bytes: u32) {
        self.free = self.free.max(now) + self.takes(bytes);
    }
    /// Until when a flow has to wait for a place for `bytes`, which it then has; `None` if there is room.
    fn wait(&mut self, now: Time, bytes: u32) -> Option<Time> {
        self.advance(now);
        let drained = self.rate.bytes_per_sec() * LONGEST_S / bytes.max(1) as f64;
        let most = (drained as u64).clamp(FEWEST_PACKETS, MOST_PACKETS);
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
        self.promised_at = self.departures.get(at).copied().unwrap_or(last + Time(beyond * self.takes(bytes).0));
        Some(self.promised_at)
    }
}

impl Engine {
    /// The flow added last has this queue before the first link of its route, if the link's rate is constant. Flows over one link
    /// share it.
    pub fn set_host_queue(&mut self, queue: HostQueue, link: u32, rate: Rate) {
        let constant = self.links[link as usize].port.has_constant_rate() && !self.twins.contains_key(&link);
        if queue == HostQueue::None || !constant {
            return;
        }
        let next = self.host_queues.len() as u32;
        let number = *self.host_queue_of.entry(link).or_insert(next);
        if number == next {
            self.host_queues.push(Queue::new(rate));
        }
        if let Some(ends) = self.ends.last_mut() {
            ends.host = Place { queue: number, promised: false };
        }
    }
}

/// The next segment of a flow with a host queue; `None` also while there is no room, of which its endpoint learns.
#[cold]
#[inline(never)]
pub(super) fn poll_next(queues: &mut [Queue], ends: &mut Ends, now: Time) -> Option<Next> {
    let next = ends.flow.poll_next(now)?;
    if std::mem::take(&mut ends.host.promised) || opens(ends) {
        return Some(next);
    }
    let Some(queue) = queues.get_mut(ends.host.queue as usize) else { return Some(next) };
    let bytes = (ends.flow.payload() + header_bytes(false)) as u32;
    let Some(until) = queue.wait(now, bytes) else { return Some(next) };
    ends.host.promised = true;
    ends.flow.hold_back(until);
    None
}

/// Whether a flow sends its SYN, which does not wait.
fn opens(ends: &Ends) -> bool {
    ends.flow.srtt() == Time::ZERO && !ends.flow.is_one_way()
}

/// A flow with a host queue sent a packet.
#[cold]
#[inline(never)]
pub(super) fn joins(queues: &mut [Queue], ends: &mut Ends, now: Time, bytes: u32) {
    let Some(queue) = queues.get_mut(ends.host.queue as usize) else { return };
    if opens(ends) {
        queue.pass(now, bytes);
    } else {
        let departs = queue.join(now, bytes);
        ends.flow.queued_until(now, departs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12 Mbit/s: 1 ms for each packet of 1500 bytes, 200 packets in 0.2 s. Packet n has left at n + 1 ms.
    #[test]
    fn a_full_queue_promises_places_in_order() {
        let mut queue = Queue::new(Rate::mbps(12));
        for n in 0..200 {
            assert_eq!(queue.wait(Time::ZERO, 1500), None, "{n} packets");
            assert_eq!(queue.join(Time::ZERO, 1500), Time::millis(n + 1));
        }
        let promised: Vec<_> = (0..3).map(|_| queue.wait(Time::ZERO, 1500)).collect();
        assert_eq!(promised, [1, 2, 3].map(|ms| Some(Time::millis(ms))));
        // At 1 ms one leaves, and who was promised its place takes it; two places are owed.
        assert_eq!(queue.join(Time::millis(1), 1500), Time::millis(201));
        assert_eq!(queue.wait(Time::millis(1), 1500), Some(Time::millis(4)));
        let far = (0..400).filter_map(|_| queue.wait(Time::millis(1), 1500)).last();
        assert_eq!(far, Some(Time::millis(404)), "beyond what is in the queue");
        assert_eq!(queue.wait(Time::secs(9), 1500), None, "empty again");
    }

    #[test]
    fn a_slow_line_holds_two_packets() {
        let mut queue = Queue::new(Rate(64_000));
        for _ in 0..2 {
            assert_eq!(queue.wait(Time::ZERO, 1500), None);
            queue.join(Time::ZERO, 1500);
        }
        assert_eq!(queue.wait(Time::ZERO, 1500), Some(Time::micros(187_500)));
    }
}
