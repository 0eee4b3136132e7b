//! Results at once (`results = "at_once"`): the edge behind a cloud asks the oracle itself, at the end of each of its control
//! intervals. Nothing travels, so a result is of this instant; where messages take results there, it is late by the delay of the
//! cloud.
//!
//! Source: paper I, section IV: the available bandwidth is known in the simulation, at the end of each control interval.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::clouds::{Clouds, Upstream};
use super::edge::Measured;
use crate::agent::{Address, PathOracle};
use crate::estimate::oracle::Oracle;
use crate::estimate::{Estimator, EstimatorInit, EstimatorKind};
use crate::params::Values;
use crate::rng::Rng;
use crate::units::Time;

/// The oracle may be asked again this soon; control intervals are longer.
const AGAIN: Time = Time::millis(1);

/// Who asks: the node, with the parameters of its oracle.
pub(super) struct Asker {
    pub(super) own: Address,
    pub(super) values: Values,
}

impl Asker {
    /// A cloud between `from` and this node was met.
    pub(super) fn watch(&self, now: Time, from: Address, rng: Rng) -> Watch {
        let init = EstimatorInit { values: &self.values, own: from, peer: self.own, period: AGAIN, rng, now };
        Watch { oracle: Oracle.build(init), begun: false, next: now }
    }
}

/// The oracle of one cloud.
pub(super) struct Watch {
    oracle: Box<dyn Estimator>,
    /// The bytes that had arrived at the beginning of the interval are known.
    begun: bool,
    /// When to ask: now, to note those bytes, or at the end of the interval.
    pub(super) next: Time,
}

impl Watch {
    /// A control interval begins before the last one is over.
    pub(super) fn restart(&mut self, now: Time) {
        (self.begun, self.next) = (false, now);
    }
    /// Asks; returns the result of the interval that ends now, if one does and the path is known.
    pub(super) fn ask(&mut self, now: Time, oracle: &mut dyn PathOracle) -> Option<Measured> {
        self.oracle.consult(now, oracle);
        let left = self.oracle.poll_estimate(now);
        let known = core::mem::replace(&mut self.begun, true);
        left.filter(|_| known).map(|left| Measured { left, capacity: self.oracle.capacity() })
    }
    /// The next interval ends then.
    pub(super) fn ask_at(&mut self, now: Time, end: Time) {
        self.next = end.max(now + AGAIN);
    }
}

impl Clouds {
    /// With results at once, asks for those of the control intervals that end now.
    pub(super) fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        let due = |entry: &Upstream| entry.watch.as_ref().is_some_and(|watch| watch.next <= now);
        let all: Vec<u32> = self.table.iter().filter(|(_, entry)| due(entry)).map(|(&from, _)| from).collect();
        for from in all {
            let watch = self.table.get_mut(&from).and_then(|entry| entry.watch.as_mut());
            if let Some(measured) = watch.and_then(|watch| watch.ask(now, oracle)) {
                self.learn(now, Address(from), measured);
            }
            if let Some(entry) = self.table.get_mut(&from)
                && let Some(watch) = &mut entry.watch
            {
                let interval = Time::from_secs_f64(entry.router.avg_rtt);
                let end = entry.router.control_at;
                watch.ask_at(now, if end > now { end } else { now + interval });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Agent, AgentInit};
    use crate::api::PortView;
    use crate::protocols::common::rate_header::seconds_to_units;
    use crate::protocols::xcp_i::RouterParams;
    use crate::protocols::xcp_i::node::Node;
    use crate::testing;
    use crate::wire::{Congestion, Extension, Format, Packet};

    const VIEW: PortView = PortView { capacity: 1e6, backlog_bytes: 0, backlog_packets: 0, busy: false };

    /// An idle link of 1 MB/s from node 1 to node 2, at this time.
    struct Idle(Time);

    impl PathOracle for Idle {
        fn links(&mut self, from: Address, to: Address, since: Time, report: &mut dyn FnMut(u32, f64, f64)) {
            assert_eq!((from, to), (Address(1), Address(2)));
            report(0, 1e6 * self.0.since(since).as_secs_f64(), 0.0);
        }
    }

    fn expires(node: &mut Node, now: Time) {
        node.consult(now, &mut Idle(now));
        node.handle_timeout(now);
        assert!(node.poll_timeout() > now && node.poll_control(now).is_none(), "at {now}");
    }
    fn left(node: &Node) -> Option<f64> {
        let mut found = None;
        node.probe_peers(&mut |_, name, value| {
            if name == "cloud_available_bps" {
                found = Some(value);
            }
        });
        found
    }

    /// The first packet states a round trip of 0.1 s: the value of that interval is there at its end, without a message.
    #[test]
    fn the_value_of_an_interval_is_there_at_its_end() {
        let values = testing::values(&[RouterParams::PARAMS], &[("law", 0.0), ("results", 1.0)]);
        let mut node = Node::new(&AgentInit { values: &values, own: Address(2), rng: Rng::stream(2, "test") });
        let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        p.congestion.set_x(seconds_to_units(0.001));
        p.congestion.set_rtt(seconds_to_units(0.1));
        Extension { counter: p.ttl, node: 1 }.put(&mut p);
        p.ttl -= 2;
        assert!(node.handle_data(Time::ZERO, &mut p, Address(9), Some(&VIEW)), "there is a timer");
        assert_eq!(node.poll_timeout(), Time::ZERO, "what has arrived is noted");
        expires(&mut node, Time::ZERO);
        let end = node.poll_timeout();
        assert!(end.since(Time::millis(100)) < Time::millis(1), "{end}");
        assert_eq!(left(&node), None);
        expires(&mut node, end);
        assert!((left(&node).expect("a value") - 8e6).abs() < 1.0, "{:?}", left(&node));
    }
}
