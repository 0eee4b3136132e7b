//! Step marking: every packet that arrives while more than K waits is marked, and no other. It is the queue of data
//! centres' switches for DCTCP (RFC 8257 section 3.1; M. Alizadeh and others, "Data Center TCP (DCTCP)", SIGCOMM 2010,
//! section 3.1).
//!
//! The present queue decides, not an average, so senders learn of a burst within a round trip. K of RED has another
//! meaning: at its upper threshold RED drops ECN-capable packets, too (RFC 3168 section 7).
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | K | `threshold` | bytes or packets | 20 packets | SIGCOMM 2010 section 4, for 1 Gbit/s |
//!
//! Deviations:
//! 1. The packet in service does not count, as in DropTail here.
//! 2. Packets that are not ECN-capable wait like all others, up to the limit. With `drop = true` they are dropped above
//!    K, as by switches that make the step from RED.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::common::{Limit, QueueLimit, early, in_packets};
use crate::api::{PortView, Probe};
use crate::params::{Auto, Conflict, Flag, Info, QueueLength, Values, parameters};
use crate::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, QdiscKind, ResolvedQueue, Verdict};
use crate::units::Time;
use crate::wire::{Ecn, Packet};

/// Step marking.
pub struct Step;

/// The threshold of a queue without one, packets.
const THRESHOLD: f64 = 20.0;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Queue above which packets are marked, K; auto is 20 mean packets.
        threshold: Auto<QueueLength> = None, "RFC 8257 section 3.1; Alizadeh and others, SIGCOMM 2010 section 4";
        /// Packets that are not ECN-capable are dropped above the threshold.
        drop: Flag = false, "RFC 8257 section 5";
        /// The limit.
        limit: Limit = Limit::DEFAULT;
    }
}

/// Of a queue with these values: K, bytes, and whether packets that are not ECN-capable are dropped above it.
pub fn threshold(values: &Values, mean_packet: f64) -> (f64, bool) {
    let params = Params::of(values);
    (params.threshold.unwrap_or(THRESHOLD * mean_packet), params.drop)
}

impl QdiscKind for Step {
    const INFO: Info = Info {
        name: "step",
        summary: "Step marking: marks every packet that arrives while more than a threshold waits",
        source: "RFC 8257 section 3.1; Alizadeh and others, SIGCOMM 2010",
        params: Params::PARAMS,
    };

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(StepQueue::new(init)))
    }

    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        let (threshold, _) = threshold(queue.values, queue.mean_packet);
        let limit = Params::of(queue.values).limit.limit;
        let packets = |bytes| in_packets(bytes, queue.mean_packet);
        let late = (threshold >= limit).then(|| {
            let (threshold, limit) = (packets(threshold), packets(limit));
            let what = format!(
                "its threshold ({threshold}) is not below its limit ({limit}), so it is full before it marks, as \
                 drop-tail is"
            );
            Conflict::new(["threshold", "limit"], what, "write a lower `threshold`, or a longer `limit`")
        });
        late.into_iter().collect()
    }
}

struct StepQueue {
    /// K in the unit of the limit.
    threshold: f64,
    in_packets: bool,
    drop: bool,
    limit: QueueLimit,
}

impl StepQueue {
    fn new(init: &QdiscInit<'_>) -> StepQueue {
        let params = Params::of(init.values);
        let (in_packets, limit) = (params.limit.in_packets(), params.limit.queue_limit(init.mean_packet));
        let (threshold, drop) = threshold(init.values, init.mean_packet);
        let unit = if in_packets { init.mean_packet } else { 1.0 };
        StepQueue { threshold: threshold / unit, in_packets, drop, limit }
    }
}

impl Qdisc for StepQueue {
    fn on_arrival(&mut self, _now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        if port.busy && !self.limit.fits((port.backlog_bytes, port.backlog_packets), packet.ip_len) {
            return Verdict::Drop(DropCause::Overflow);
        }
        let waiting = if self.in_packets { port.backlog_packets as f64 } else { port.backlog_bytes as f64 };
        if waiting <= self.threshold || packet.ecn() == Ecn::NotCapable && !self.drop {
            return Verdict::Accept;
        }
        early(true, packet)
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// The verdict for a packet of 1000 bytes behind this many.
    fn verdict(settings: &[(&str, f64)], packets: u32, ecn: Ecn) -> Verdict {
        let mut queue = testing::qdisc(StepQueue::new, Params::PARAMS, 1e6, settings);
        let port = PortView {
            capacity: 1e6,
            backlog_bytes: 1000 * packets as u64,
            backlog_packets: packets,
            busy: packets > 0,
        };
        let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
        packet.set_ecn(ecn);
        queue.on_arrival(Time::ZERO, &packet, &port, None)
    }

    #[test]
    fn packets_behind_more_than_k_are_marked() {
        for unit in [0.0, 1.0] {
            let settings = [("threshold", 5000.0), ("limit", 10_000.0), ("count", unit)];
            for ecn in [Ecn::Capable0, Ecn::Capable1] {
                let all = [0, 5, 6, 9].map(|packets| verdict(&settings, packets, ecn));
                assert_eq!(all, [Verdict::Accept, Verdict::Accept, Verdict::Mark, Verdict::Mark]);
            }
            assert_eq!(verdict(&settings, 10, Ecn::Capable0), Verdict::Drop(DropCause::Overflow));
        }
        assert_eq!([20, 21].map(|packets| verdict(&[], packets, Ecn::Capable0)), [Verdict::Accept, Verdict::Mark]);
    }

    #[test]
    fn others_wait_or_are_dropped() {
        for (drop, above) in [(0.0, Verdict::Accept), (1.0, Verdict::Drop(DropCause::Early))] {
            let settings = [("threshold", 5000.0), ("drop", drop)];
            let all = [5, 6].map(|packets| verdict(&settings, packets, Ecn::NotCapable));
            assert_eq!(all, [Verdict::Accept, above]);
        }
    }

    #[test]
    fn a_threshold_beyond_the_limit_is_reported() {
        let found = |limit: f64| {
            let values = testing::values(&[Params::PARAMS], &[("limit", limit)]);
            Step.conflicts(&ResolvedQueue { values: &values, capacity: 1e6, mean_packet: 1000.0 }).len()
        };
        assert_eq!([found(20_000.0), found(20_001.0)], [1, 0]);
    }
}
