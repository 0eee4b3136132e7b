//! AVQ, the adaptive virtual queue (S. Kunniyur, R. Srikant, "Analysis and Design of an Adaptive Virtual Queue (AVQ)
//! Algorithm for Active Queue Management", SIGCOMM 2001).
//!
//! Beside the real queue the router simulates a virtual one with the same arrivals, the same buffer and a smaller
//! capacity. A packet that would overflow the virtual queue is marked (or dropped) in the real one, before that has
//! grown. The virtual capacity is adapted until the arrivals are the share `gamma` of the real capacity: it decreases
//! while the arrival rate is higher, and increases while it is lower. So AVQ controls the rate, not the queue length,
//! and the real queue is mostly empty.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | gamma | `gamma` | | 0.98 | section 5 |
//! | alpha | `alpha` | 1/s | 0.15 | section 5 |
//! | B | `buffer` | bytes or packets | the limit | figure 1 |
//! | C | `capacity` | bytes/s or packets/s | | figure 1 |
//! | C~ | `virtual_capacity` | bytes/s or packets/s | begins at C | figure 1 |
//! | VQ | `virtual_queue` | bytes or packets | | figure 1 |
//!
//! Deviations:
//! 1. A dropped packet is no arrival in the equation for C~, as in ns-2: the carried rate has to be gamma C.
//! 2. C is the link's nominal capacity.
//! 3. An empty virtual queue takes any packet. Otherwise a buffer below one packet would pass nothing at all, even over an idle line.

use alloc::boxed::Box;

use super::common::{Limit, QueueLimit, early};
use crate::api::{PortView, Probe};
use crate::params::{Auto, Flag, Fraction, Info, Number, QueueLength, parameters};
use crate::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, QdiscKind, Verdict};
use crate::units::Time;
use crate::wire::Packet;

/// AVQ.
pub struct Avq;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Share of the line to use.
        gamma: Fraction = 0.98, in 0.0..=1.0, "Kunniyur, Srikant, SIGCOMM 2001 section 5";
        /// Adaptation rate of the virtual capacity, 1/s.
        alpha: Number = 0.15, in 0.0..=1e6, "Kunniyur, Srikant, SIGCOMM 2001 section 5";
        /// Length of the virtual queue; auto is the limit, or 100 packets without a limit.
        buffer: Auto<QueueLength> = None, "Kunniyur, Srikant, SIGCOMM 2001 figure 1";
        /// ECN-capable packets are marked instead of dropped.
        mark: Flag = true, "RFC 3168";
        /// Maximum queue length.
        limit: Limit = Limit::DEFAULT;
    }
}

impl QdiscKind for Avq {
    const INFO: Info = Info {
        name: "avq",
        summary: "Adaptive virtual queue: marks or drops what would overflow the queue of a slower line, for a given utilisation",
        source: "Kunniyur and Srikant, SIGCOMM 2001",
        params: Params::PARAMS,
    };

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(AvqQueue::new(init)))
    }
}

struct AvqQueue {
    gamma: f64,
    alpha: f64,
    mark: bool,
    queue_limit: QueueLimit,
    in_packets: bool,
    /// The next four in bytes or packets, by `in_packets`.
    buffer: f64,
    capacity: f64,
    virtual_capacity: f64,
    virtual_queue: f64,
    /// When they were last updated.
    at: Time,
}

impl AvqQueue {
    fn new(init: &QdiscInit<'_>) -> AvqQueue {
        let params = Params::of(init.values);
        let in_packets = params.limit.in_packets();
        let unit = if in_packets { init.mean_packet } else { 1.0 };
        let limit = params.limit.limit;
        let auto = if limit.is_finite() { limit } else { 100.0 * init.mean_packet };
        AvqQueue {
            gamma: params.gamma,
            alpha: params.alpha,
            mark: params.mark,
            queue_limit: params.limit.queue_limit(init.mean_packet),
            in_packets,
            buffer: params.buffer.unwrap_or(auto) / unit,
            capacity: init.capacity / unit,
            virtual_capacity: init.capacity / unit,
            virtual_queue: 0.0,
            at: Time::ZERO,
        }
    }
}

impl Qdisc for AvqQueue {
    fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        let length = if self.in_packets { 1.0 } else { packet.ip_len as f64 };
        let passed = now.since(self.at).as_secs_f64();
        self.at = now;
        self.virtual_queue = (self.virtual_queue - self.virtual_capacity * passed).max(0.0);
        let free = self.alpha * self.gamma * self.capacity * passed;
        self.virtual_capacity = (self.virtual_capacity + free).min(self.capacity);
        let verdict = if port.busy && !self.queue_limit.fits((port.backlog_bytes, port.backlog_packets), packet.ip_len)
        {
            Verdict::Drop(DropCause::Overflow)
        } else if self.virtual_queue > 0.0 && self.virtual_queue + length > self.buffer {
            early(self.mark, packet)
        } else {
            self.virtual_queue += length;
            Verdict::Accept
        };
        if !matches!(verdict, Verdict::Drop(_)) {
            self.virtual_capacity = (self.virtual_capacity - self.alpha * length).max(0.0);
        }
        verdict
    }
    fn probe(&self, put: Probe<'_>) {
        put(if self.in_packets { "virtual_queue_packets" } else { "virtual_queue_bytes" }, self.virtual_queue);
        put("virtual_share", self.virtual_capacity / self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::Ecn;

    fn avq(settings: &[(&str, f64)]) -> AvqQueue {
        testing::qdisc(AvqQueue::new, Params::PARAMS, 1e6, settings)
    }
    fn arrive(q: &mut AvqQueue, now: Time, ecn: Ecn) -> Verdict {
        let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
        packet.set_ecn(ecn);
        q.on_arrival(now, &packet, &PortView { capacity: 1e6, backlog_bytes: 0, backlog_packets: 0, busy: true }, None)
    }

    /// At 200 kbit/s a bandwidth-delay product may be less than a packet: four flows got 0 bit/s.
    #[test]
    fn a_buffer_below_one_packet_passes_one_at_a_time() {
        let mut q = avq(&[("buffer", 900.0)]);
        assert_eq!(arrive(&mut q, Time::ZERO, Ecn::NotCapable), Verdict::Accept);
        assert_eq!(arrive(&mut q, Time::micros(1), Ecn::NotCapable), Verdict::Drop(DropCause::Early));
        assert_eq!(arrive(&mut q, Time::secs(1), Ecn::NotCapable), Verdict::Accept);
    }

    #[test]
    fn the_papers_algorithm() {
        // 1 MB/s, a virtual buffer of two packets.
        let mut q = avq(&[("limit", 2000.0)]);
        q.virtual_capacity = 500_000.0;
        assert_eq!(arrive(&mut q, Time::ZERO, Ecn::Capable0), Verdict::Accept);
        assert_eq!(arrive(&mut q, Time::ZERO, Ecn::Capable0), Verdict::Accept);
        assert_eq!(arrive(&mut q, Time::ZERO, Ecn::Capable0), Verdict::Mark);
        // Three packets came: C~ fell by 0.15 * 3000 bytes/s.
        assert_eq!((q.virtual_queue, q.virtual_capacity), (2000.0, 499_550.0));
        // A millisecond later 499.55 bytes have left virtually; C~ rose by 0.15 * 0.98 * 1000.
        assert_eq!(arrive(&mut q, Time::millis(1), Ecn::NotCapable), Verdict::Drop(DropCause::Early));
        assert!((q.virtual_queue - 1500.45).abs() < 1e-9 && (q.virtual_capacity - 499_697.0).abs() < 1e-9);
        assert_eq!(arrive(&mut q, Time::millis(3), Ecn::NotCapable), Verdict::Accept);
    }

    /// A source that speeds up until it receives a mark, and then slows down, carries gamma C in the mean.
    #[test]
    fn the_line_is_used_to_gamma() {
        for gamma in [0.98, 0.8] {
            for ecn in [Ecn::Capable0, Ecn::NotCapable] {
                let mut q = avq(&[("limit", 20_000.0), ("gamma", gamma)]);
                let (mut rate, mut now, mut carried) = (100.0, 0.0, 0);
                while now < 400.0 {
                    now += 1.0 / rate;
                    let verdict = arrive(&mut q, Time::from_secs_f64(now), ecn);
                    rate = if verdict == Verdict::Accept { rate + 0.05 } else { (rate * 0.9).max(1.0) };
                    carried += (now > 100.0 && !matches!(verdict, Verdict::Drop(_))) as u32;
                }
                let used = carried as f64 / (1000.0 * 300.0);
                assert!((used - gamma).abs() < 0.01, "{gamma} {ecn:?} {used}");
            }
        }
    }
}
