//! The output of an interface: a port of the core in real time, followed by a delay.
//!
//! The port computes departure times. Lateness of the machine does not accumulate, because the next departure is
//! computed from the nominal time of this one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use explicate_core::port::{Arrival, Port, Store};
use explicate_core::units::Time;

use super::pool::Pool;
use super::scone::Scone;
use crate::histogram::Histogram;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// An output.
pub struct Output {
    /// Its port.
    pub port: Port,
    /// Delay between departure from the port and arrival.
    pub delay: Time,
    /// Packets in a port that knows departures in advance, in order of departure.
    inside: VecDeque<(Time, u32)>,
    /// Packets in the delay, by time of arrival and order of departure.
    under_way: BinaryHeap<Reverse<(Time, u64, u32)>>,
    sent: u64,
    /// The time up to which its port has run.
    until: Time,
    /// Lateness of packets at the wire.
    pub late: Histogram,
    /// IP bytes sent.
    pub bytes: u64,
    /// Advises rates to the flows that leave, if configured.
    pub scone: Option<Box<Scone>>,
}

impl Output {
    /// An output with this port and delay.
    pub fn new(port: Port, delay: Time) -> Output {
        let (inside, under_way, late, scone) = Default::default();
        Output { port, delay, inside, under_way, sent: 0, until: Time::ZERO, late, bytes: 0, scone }
    }
    /// Adds a packet that arrived at `at`, or at the time up to which the port has run if that is later. Returns
    /// false if it was dropped.
    pub fn enqueue(&mut self, at: Time, handle: u32, pool: &mut Pool) -> bool {
        let now = at.max(self.until);
        self.until = now;
        // Packets may have departed before this one arrived, and are due before those that are still in the port.
        let departs = self.port.is_due(now);
        #[cfg(feature = "simulated")]
        let departs = departs && !is_back(Fault::Behind);
        let arrival = self.port.handle_packet(now, handle, pool);
        if departs {
            self.collect();
        }
        match arrival {
            Arrival::Departs(at) => self.inside.push_back((at, handle)),
            Arrival::DepartsLost(_) | Arrival::Queued => {}
            Arrival::Dropped => return false,
        }
        true
    }
    /// When [`run`](Output::run) has to be called.
    pub fn due(&self) -> Time {
        let port = match self.inside.front() {
            // No work is due before its arrival.
            Some((departs, _)) => *departs + self.delay,
            None if self.port.is_empty() => Time::NEVER,
            None => self.port.poll_timeout(),
        };
        port.min(self.under_way.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at))
    }
    /// Runs up to `known`, and moves the packets to send `now` to `ready`.
    pub fn run(&mut self, known: Time, now: Time, pool: &mut Pool, ready: &mut Vec<u32>) {
        self.catch_up(known, pool);
        if let Some(scone) = &mut self.scone {
            scone.observe(known, &self.port, self.bytes);
        }
        #[cfg(feature = "simulated")]
        let known = if is_back(Fault::Early) { now + Time::millis(2) } else { known };
        while let Some((at, handle)) = self.arrived(known, pool) {
            self.late.add(now.since(at));
            if let Some(scone) = &mut self.scone {
                let (bytes, parsed) = pool.frame_mut(handle);
                scone.pass(at, bytes, parsed);
            }
            ready.push(handle);
        }
    }
    /// The next packet whose delay has ended by `now`, and when it ended. Call [`catch_up`](Output::catch_up) first.
    pub fn arrived(&mut self, now: Time, pool: &mut Pool) -> Option<(Time, u32)> {
        let Reverse((at, _, handle)) = self.under_way.peek().copied().filter(|Reverse((at, ..))| *at <= now)?;
        self.under_way.pop();
        self.bytes += pool.packet(handle).ip_len as u64;
        Some((at, handle))
    }
    /// The time up to which its port has run.
    pub fn caught_up(&self) -> Time {
        self.until
    }
    /// The next event of its port, if events of other ports can change it.
    pub fn acts(&self) -> Time {
        if self.port.is_scheduled() { self.port.poll_timeout() } else { Time::NEVER }
    }
    /// Runs the port up to `now`.
    pub fn catch_up(&mut self, now: Time, pool: &mut Pool) {
        self.until = self.until.max(now);
        if self.port.is_scheduled() {
            self.port.handle_timeout(now, pool);
            self.collect();
            return;
        }
        self.port.catch_up(now, pool);
        while let Some((departed, handle)) = self.inside.front().copied().filter(|(at, _)| *at <= now) {
            self.inside.pop_front();
            self.port.stats.delivered += 1;
            self.send(departed, handle);
        }
    }
    /// Takes what has left a port that does not know departures in advance.
    fn collect(&mut self) {
        while let Some((handle, departed)) = self.port.poll_transmit() {
            self.port.stats.delivered += 1;
            self.send(departed, handle);
        }
    }
    fn send(&mut self, departed: Time, handle: u32) {
        self.sent += 1;
        self.under_way.push(Reverse((departed + self.delay, self.sent, handle)));
    }
    /// Packets in the port, and in the delay after it.
    pub fn held(&self) -> (usize, usize) {
        // A port that knows departures in advance forgets packets when the next one arrives; until this output has run, they are in `inside`.
        let port =
            if self.port.is_scheduled() { self.port.len() } else { self.inside.len() + self.port.losses_ahead() };
        (port, self.under_way.len())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use explicate_build::ports::port;
    use explicate_scenario::model::Scenario;

    use super::super::frame::IP;
    use super::*;
    use crate::simulated::faults::put_back;

    /// When the first of two frames of 1000 bytes at 1 Mbit/s is due, and how many leave then; the second comes when the first has left
    /// the port and its thread has not run yet. With `apart` the port has two classes.
    fn first_of_two(apart: bool) -> (Time, usize) {
        let text = format!(
            "node = [{{ name = \"here\", kind = \"router\" }}, {{ name = \"there\" }}]\n\
             link = [{{ name = \"l\", from = \"here\", to = \"there\", rate = \"1Mbit/s\", delay = \"0s\", \
             router = \"xcp\", share_by_flows = {apart} }}, {{ from = \"there\", to = \"here\" }}]\n\
             flows = [{{ name = \"f\", protocol = \"newreno\", from = \"here\", to = \"there\" }}]\n"
        );
        let scenario = Scenario::parse(&text, "link", Path::new("."), &[]).map_err(|e| e.to_string()).unwrap();
        let mut output = Output::new(port(&scenario.links[0], 0, 1, u64::MAX, None), Time::ZERO);
        assert_eq!(output.port.is_scheduled(), apart);
        let (mut pool, mut ready) = (Pool::new(4), Vec::new());
        for at in [Time::ZERO, Time::millis(9)] {
            let handle = pool.take(&[0; IP + 1000]).unwrap();
            assert!(output.enqueue(at, handle, &mut pool));
        }
        assert_eq!(output.held(), (2 - output.under_way.len(), output.under_way.len()));
        let due = output.due();
        output.run(Time::millis(9), Time::millis(9), &mut pool, &mut ready);
        (due, ready.len())
    }

    #[test]
    fn what_departed_before_an_arrival_is_due_at_once() {
        for apart in [false, true] {
            assert_eq!(first_of_two(apart), (Time::millis(8), 1), "{apart}");
        }
        put_back(Some(Fault::Behind));
        let due = first_of_two(true).0;
        put_back(None);
        assert_eq!(due, Time::millis(17), "with the second");
    }
}
