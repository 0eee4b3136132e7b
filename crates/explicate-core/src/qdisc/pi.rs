//! PI, the proportional-integral controller (C. Hollot, V. Misra, D. Towsley, W. Gong, "On Designing Improved Controllers
//! for AQM Routers Supporting TCP Flows", INFOCOM 2001).
//!
//! The linearised model of TCP over a queue requires a controller that integrates: the probability of a mark changes
//! sample by sample until the queue *is* at its reference, not only near it as with RED's slope. The instantaneous
//! queue decides, not an average, because an average adds lag. The gains belong to a link: if they are too large for
//! its flows and delay, the queue oscillates; if too small, it takes minutes to settle.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | a, b | `a`, `b` | 1/packet | 1.822e-5, 1.816e-5 | section V: 15 Mbit/s, 60 flows, 246 ms, packets of 500 bytes |
//! | T | `interval` | s | 1/160 | section V |
//! | q_ref | `target` | packets | 200 (ns-2: 50) | section V |
//! | p(kT) | `probability` | | a (q - q_ref) - b (q_old - q_ref) + p_old | section V |
//!
//! Deviations:
//! 1. The packet in service does not count, as in all disciplines here.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::common::{Limit, QueueLimit, early, target_beyond_limit};
use crate::api::{PortView, Probe};
use crate::params::{Auto, Conflict, Flag, Info, Number, QueueLength, Seconds, parameters};
use crate::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, QdiscKind, ResolvedQueue, Verdict};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// PI.
pub struct Pi;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Gain of the present queue.
        a: Number = 1.822e-5, in 0.0..=1.0, "Hollot et al., INFOCOM 2001 section V";
        /// Gain of the previous queue.
        b: Number = 1.816e-5, in 0.0..=1.0, "Hollot et al., INFOCOM 2001 section V";
        /// Reference of the queue; auto is 200 packets.
        target: Auto<QueueLength> = None, "Hollot et al., INFOCOM 2001 section V";
        /// Time between samples.
        interval: Seconds = 1.0 / 160.0, in 1e-6..=1e3, "Hollot et al., INFOCOM 2001 section V";
        /// ECN-capable packets are marked instead of dropped.
        mark: Flag = true, "RFC 3168";
        /// Maximum queue length.
        limit: Limit = Limit::DEFAULT;
    }
}

impl QdiscKind for Pi {
    const INFO: Info = Info {
        name: "pi",
        summary: "Proportional-integral controller: marks or drops so that the queue settles at a reference",
        source: "Hollot, Misra, Towsley and Gong, INFOCOM 2001",
        params: Params::PARAMS,
    };

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(PiQueue::new(init)))
    }

    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        let params = Params::of(queue.values);
        let target = params.target.unwrap_or(TARGET * queue.mean_packet);
        // A queue that stands above the target adds (a - b) times the excess to the probability.
        let falls = (params.b >= params.a).then(|| {
            let (a, b) = (params.a, params.b);
            let what = format!(
                "its `b` ({b}) is not below its `a` ({a}), so the probability never grows while the queue stands"
            );
            Conflict::new(["a", "b"], what, "write a larger `a`, or a smaller `b`")
        });
        target_beyond_limit(target, params.limit.limit, queue).into_iter().chain(falls).collect()
    }
}

/// The reference of the queue without a target, packets.
const TARGET: f64 = 200.0;

struct PiQueue {
    a: f64,
    b: f64,
    /// Mean packets.
    target: f64,
    interval: Time,
    mark: bool,
    queue_limit: QueueLimit,
    in_packets: bool,
    mean_packet: f64,
    /// Mean packets at the last sample.
    before: f64,
    probability: f64,
    due: Time,
    rng: Rng,
}

impl PiQueue {
    fn new(init: &QdiscInit<'_>) -> PiQueue {
        let params = Params::of(init.values);
        let interval = Time::from_secs_f64(params.interval);
        PiQueue {
            a: params.a,
            b: params.b,
            target: params.target.map_or(TARGET, |target| target / init.mean_packet),
            interval,
            mark: params.mark,
            queue_limit: params.limit.queue_limit(init.mean_packet),
            in_packets: params.limit.in_packets(),
            mean_packet: init.mean_packet,
            before: 0.0,
            probability: 0.0,
            due: interval,
            rng: init.rng.clone(),
        }
    }

    fn sample(&mut self, queue: f64) {
        let step = self.a * (queue - self.target) - self.b * (self.before - self.target);
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        self.before = queue;
    }
}

impl Qdisc for PiQueue {
    fn on_arrival(&mut self, _now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        if port.busy && !self.queue_limit.fits((port.backlog_bytes, port.backlog_packets), packet.ip_len) {
            return Verdict::Drop(DropCause::Overflow);
        }
        let length = if self.in_packets { 1.0 } else { packet.ip_len as f64 / self.mean_packet };
        if self.rng.uniform() < self.probability * length { early(self.mark, packet) } else { Verdict::Accept }
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let packets = port.backlog_packets as f64;
        self.sample(if self.in_packets { packets } else { port.backlog_bytes as f64 / self.mean_packet });
        self.due = now + self.interval;
    }
    fn next_timer(&self) -> Time {
        self.due
    }
    fn probe(&self, put: Probe<'_>) {
        put("mark_probability", self.probability);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::Ecn;

    fn pi(settings: &[(&str, f64)]) -> PiQueue {
        testing::qdisc(PiQueue::new, Params::PARAMS, 1e6, settings)
    }

    #[test]
    fn the_papers_equation() {
        let mut q = pi(&[]);
        q.before = 250.0;
        q.probability = 0.1;
        // 1.822e-5 * 100 - 1.816e-5 * 50 = 0.001822 - 0.000908.
        q.sample(300.0);
        assert!((q.probability - 0.100914).abs() < 1e-9, "{}", q.probability);
        // At rest where the queue was and is at its reference.
        q.before = 200.0;
        q.sample(200.0);
        assert!((q.probability - 0.100914).abs() < 1e-9);
        q.sample(-1e9);
        assert_eq!(q.probability, 0.0);
    }

    /// Sources that together send 200 packets a sample less 4000 times the probability, over a line that carries 100: only
    /// p = 0.025 keeps a queue still, and the controller keeps it still at its reference, from below and from above.
    #[test]
    fn the_queue_settles_at_its_reference() {
        for start in [0.0, 900.0] {
            let mut q = pi(&[("a", 1.822e-4), ("b", 1.8e-4), ("target", 150_000.0)]);
            let mut queue: f64 = start;
            for _ in 0..5000 {
                q.sample(queue);
                queue = (queue + 200.0 - 4000.0 * q.probability - 100.0).max(0.0);
            }
            assert!((queue - 150.0).abs() < 1.0 && (q.probability - 0.025).abs() < 1e-4, "{queue} {}", q.probability);
        }
    }

    #[test]
    fn marks_drops_and_overflows() {
        let mut q = pi(&[("limit", 20_000.0)]);
        q.probability = 1.0;
        let mut verdict = |waiting: u32, ecn| {
            let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
            packet.set_ecn(ecn);
            let backlog_bytes = 1000 * waiting as u64;
            let view = PortView { capacity: 1e6, backlog_bytes, backlog_packets: waiting, busy: true };
            q.on_arrival(Time::ZERO, &packet, &view, None)
        };
        assert_eq!(verdict(19, Ecn::Capable0), Verdict::Mark);
        assert_eq!(verdict(19, Ecn::NotCapable), Verdict::Drop(DropCause::Early));
        assert_eq!(verdict(20, Ecn::Capable0), Verdict::Drop(DropCause::Overflow));
    }
}
