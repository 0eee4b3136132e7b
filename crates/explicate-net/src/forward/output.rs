//! What stands before the wire of an interface: the core's port, driven by real time, and a delay behind it.
//!
//! The port says when a packet leaves; lateness of the machine does not add up, because the next departure counts from
//! there, not from when this one was noticed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use explicate_core::port::{Arrival, Port, Store};
use explicate_core::units::Time;

use super::pool::Pool;
use crate::histogram::Histogram;

/// An output.
pub struct Output {
    /// Its port.
    pub port: Port,
    /// How much later than the port sends them packets arrive.
    pub delay: Time,
    /// In a settled port, in order of departure.
    inside: VecDeque<(Time, u32)>,
    /// Under way, by time of arrival and order of departure.
    under_way: BinaryHeap<Reverse<(Time, u64, u32)>>,
    sent: u64,
    /// Until when its port has caught up: nothing happens there before.
    until: Time,
    /// How late packets were handed to the wire.
    pub late: Histogram,
    /// IP bytes handed to it.
    pub bytes: u64,
}

impl Output {
    /// An output by this port, with a delay behind it.
    pub fn new(port: Port, delay: Time) -> Output {
        let (inside, under_way) = (VecDeque::new(), BinaryHeap::new());
        Output { port, delay, inside, under_way, sent: 0, until: Time::ZERO, late: Histogram::default(), bytes: 0 }
    }
    /// A packet came at `at`, or as soon as the port allows; whether it was let in.
    pub fn enqueue(&mut self, at: Time, handle: u32, pool: &mut Pool) -> bool {
        let now = at.max(self.until);
        self.until = now;
        match self.port.handle_packet(now, handle, pool) {
            Arrival::Departs(at) => self.inside.push_back((at, handle)),
            Arrival::Doomed(_) | Arrival::Queued => {}
            Arrival::Dropped => return false,
        }
        true
    }
    /// When something is to be done.
    pub fn due(&self) -> Time {
        let port = match self.inside.front() {
            // Nobody needs to look at it before it is there.
            Some((departs, _)) => *departs + self.delay,
            None if self.port.is_empty() => Time::NEVER,
            None => self.port.poll_timeout(),
        };
        port.min(self.under_way.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at))
    }
    /// Does what was due until `known`, and puts what is to go out `now` into `ready`.
    pub fn run(&mut self, known: Time, now: Time, pool: &mut Pool, ready: &mut Vec<u32>) {
        self.catch_up(known, pool);
        while let Some((at, handle)) = self.arrived(known, pool) {
            self.late.add(now.since(at));
            ready.push(handle);
        }
    }
    /// The next packet that has arrived behind the delay by `now`, and when it did. Catch up first.
    pub fn arrived(&mut self, now: Time, pool: &mut Pool) -> Option<(Time, u32)> {
        let Reverse((at, _, handle)) = self.under_way.peek().copied().filter(|Reverse((at, ..))| *at <= now)?;
        self.under_way.pop();
        self.bytes += pool.packet(handle).ip_len as u64;
        Some((at, handle))
    }
    /// Until when its port has caught up.
    pub fn caught_up(&self) -> Time {
        self.until
    }
    /// When its port has something to do, if that has to be asked for anew after whatever another one does.
    pub fn acts(&self) -> Time {
        if self.port.is_scheduled() { self.port.poll_timeout() } else { Time::NEVER }
    }
    /// Lets the port do all that it had to do until now.
    pub fn catch_up(&mut self, now: Time, pool: &mut Pool) {
        self.until = self.until.max(now);
        if self.port.is_scheduled() {
            self.port.handle_timeout(now, pool);
            while let Some((handle, departed)) = self.port.poll_transmit() {
                self.port.stats.delivered += 1;
                self.send(departed, handle);
            }
            return;
        }
        self.port.settle(now, pool);
        while let Some((departed, handle)) = self.inside.front().copied().filter(|(at, _)| *at <= now) {
            self.inside.pop_front();
            self.port.stats.delivered += 1;
            self.send(departed, handle);
        }
    }
    fn send(&mut self, departed: Time, handle: u32) {
        self.sent += 1;
        self.under_way.push(Reverse((departed + self.delay, self.sent, handle)));
    }
    /// Packets inside, and under way behind the port.
    pub fn held(&self) -> (usize, usize) {
        (self.port.len(), self.under_way.len())
    }
}
