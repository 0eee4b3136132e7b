//! REM, random exponential marking (S. Athuraliya, S. H. Low, V. H. Li, Q. Yin, "REM: Active Queue Management", IEEE
//! Network 15(3), 2001).
//!
//! A link has a price. Every interval it increases if more arrived than the line can send, or if the queue is longer
//! than its target, and decreases otherwise. It is constant only when the rate matches and the queue is at its
//! target, for any number of flows. A packet is marked (or dropped) with probability 1 - phi^-price, so that after
//! several links the probability of not being marked gives the sum of their prices. With phi near one and a small
//! gamma the price changes slowly.
//!
//! | symbol | field | unit | paper | ns-2 2.35 | default |
//! | --- | --- | --- | --- | --- | --- |
//! | gamma | `gamma` | 1/packet | 0.001 | 0.001 | 0.001 |
//! | alpha | `alpha` | | 0.1 | 0.1 (fixed) | 0.1 |
//! | phi | `phi` | | 1.001 | 1.001 | 1.001 |
//! | b* | `target` | packets | | 20 | 20 packets |
//! | T | `interval` | s | | 2 ms | 2 ms |
//! | weight of the input's mean | `weight` | | 1 | 1 | 1 |
//! | p_l | `price` | | equation 1 | | |
//! | x_l | `arrived` | packets in an interval | | | |
//! | m_l | [`probability`] | | equation 2 | | |
//!
//! The XCP paper (Katabi, Handley, Rohrs 2002, section 5) compares with T = 10 packet times and b* = a third of the buffer:
//! `{ kind = "rem", limit = "1.0bdp", interval_packets = 10, target = "0.333bdp" }`.
//!
//! Deviations:
//! 1. Packets are marked on arrival, as they are dropped; ns-2 marks at departure, which is `mark_at = "departure"`:
//!    the mark then reports the price at that time instead of one a queueing delay ago. Packets that cannot be marked
//!    are dropped on arrival in both cases. The price in use is then that of the last packet that arrived or left.
//! 2. The packet in service does not count, as in all disciplines here.
//! 3. The values of "A Note on Parameter Values of REM with Reno-like Algorithms", which could not be found, are
//!    missing here.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::common::{Fifo, Limit, QueueLimit, early, target_beyond_limit, unused};
use crate::api::{PortView, Probe};
use crate::params::{Auto, Conflict, Flag, Fraction, Info, Number, Packets, QueueLength, Seconds, choices, parameters};
use crate::qdisc::{
    ActiveQueue, Discipline, DropCause, Dropped, Qdisc, QdiscInit, QdiscKind, Queued, ResolvedQueue, Verdict,
};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// REM.
pub struct Rem;

choices! {
    /// When a packet is marked.
    enum MarkAt { Arrival = "arrival", Departure = "departure" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Step of the price per packet of excess.
        gamma: Number = 0.001, in 0.0..=1e3, "Athuraliya et al., IEEE Network 2001";
        /// Weight of the queue relative to the rate.
        alpha: Number = 0.1, in 0.0..=1e3, "Athuraliya et al., IEEE Network 2001";
        /// Base of the probability.
        phi: Number = 1.001, in 1.0..=1e3, "Athuraliya et al., IEEE Network 2001";
        /// Target of the queue; auto is 20 packets.
        target: Auto<QueueLength> = None, "ns-2 default, pbo_";
        /// Interval between changes of the price.
        interval: Seconds = 0.002, in 1e-6..=1e3, "ns-2 default, pupdtime_";
        /// The interval in transmission times of a packet, unless it is 0.
        interval_packets: Packets = 0.0, in 0.0..=1e9, "XCP02 5";
        /// Weight of an interval in the mean input.
        weight: Fraction = 1.0, in 0.0..=1.0, "ns-2 default, inw_";
        /// ECN-capable packets are marked instead of dropped.
        mark: Flag = true, "RFC 3168";
        /// When a packet is marked: on arrival, or at departure as in ns-2.
        mark_at: MarkAt = MarkAt::Arrival, "ns-2 rem.cc";
        /// Maximum queue length.
        limit: Limit = Limit::DEFAULT;
    }
}

impl QdiscKind for Rem {
    const INFO: Info = Info {
        name: "rem",
        summary: "Random exponential marking: by a price, which is constant if the input matches the capacity and the queue its target",
        source: "Athuraliya, Low, Li and Yin, IEEE Network 2001",
        params: Params::PARAMS,
    };

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        let rem = RemQueue::new(init);
        match Params::of(init.values).mark_at {
            MarkAt::Arrival => Discipline::Arrival(Box::new(rem)),
            MarkAt::Departure => Discipline::Departure(Box::new(MarkedLate { rem, queue: Fifo::default() })),
        }
    }

    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        let params = Params::of(queue.values);
        let target = params.target.unwrap_or(TARGET * queue.mean_packet);
        let beside = (params.interval_packets > 0.0)
            .then(|| unused(queue, "interval", "interval_packets", "beside `interval_packets`", "remove one of them"));
        let late = (!params.mark)
            .then(|| unused(queue, "mark_at", "mark", "without marks", "remove it, or write `mark = true`"));
        let target = target_beyond_limit(target, params.limit.limit, queue);
        let idle = [("gamma", params.gamma, 0.0), ("phi", params.phi, 1.0)].into_iter().find(|(_, x, none)| x == none);
        let idle = idle.map(|(name, _, none)| {
            let what = format!("it never acts: its `{name}` is {none}, so the probability stays 0");
            Conflict::new([name, "limit"], what, format!("write a larger `{name}`"))
        });
        [target, beside.flatten(), late.flatten(), idle].into_iter().flatten().collect()
    }
}

/// The target of the queue without one, packets.
const TARGET: f64 = 20.0;

/// The probability of a mark at this price.
pub fn probability(price: f64, phi: f64) -> f64 {
    1.0 - libm::pow(phi, -price)
}

struct RemQueue {
    gamma: f64,
    alpha: f64,
    phi: f64,
    /// Mean packets.
    target: f64,
    interval: Time,
    /// Mean packets that the line can send in an interval.
    carried: f64,
    weight: f64,
    mark: bool,
    queue_limit: QueueLimit,
    in_packets: bool,
    mean_packet: f64,
    /// Mean packets that arrived in this interval, and their moving average.
    arrived: f64,
    input: f64,
    price: f64,
    probability: f64,
    due: Time,
    rng: Rng,
}

impl RemQueue {
    fn new(init: &QdiscInit<'_>) -> RemQueue {
        let params = Params::of(init.values);
        let packet_time = init.mean_packet / init.capacity;
        let in_packet_times = params.interval_packets * packet_time;
        let interval = if in_packet_times > 0.0 { in_packet_times.max(1e-6) } else { params.interval };
        RemQueue {
            gamma: params.gamma,
            alpha: params.alpha,
            phi: params.phi,
            target: params.target.map_or(TARGET, |target| target / init.mean_packet),
            interval: Time::from_secs_f64(interval),
            carried: interval / packet_time,
            weight: params.weight,
            mark: params.mark,
            queue_limit: params.limit.queue_limit(init.mean_packet),
            in_packets: params.limit.in_packets(),
            mean_packet: init.mean_packet,
            arrived: 0.0,
            input: 0.0,
            price: 0.0,
            probability: 0.0,
            due: Time::from_secs_f64(interval),
            rng: init.rng.clone(),
        }
    }

    /// Equation 1, at the end of an interval in which `queue` mean packets wait.
    fn update(&mut self, queue: f64) {
        self.input += self.weight * (self.arrived - self.input);
        self.arrived = 0.0;
        let excess = self.alpha * (queue - self.target) + self.input - self.carried;
        self.price = (self.price + self.gamma * excess).max(0.0);
        self.probability = probability(self.price, self.phi);
    }

    /// Weight of these bytes, or of one packet, in the units of the price.
    fn length(&self, bytes: u16) -> f64 {
        if self.in_packets { 1.0 } else { bytes as f64 / self.mean_packet }
    }

    /// Whether a packet of this length is selected.
    fn chooses(&mut self, length: f64) -> bool {
        self.rng.uniform() < self.probability * length
    }
}

impl Qdisc for RemQueue {
    fn on_arrival(&mut self, _now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        let length = self.length(packet.ip_len);
        self.arrived += length;
        if port.busy && !self.queue_limit.fits((port.backlog_bytes, port.backlog_packets), packet.ip_len) {
            return Verdict::Drop(DropCause::Overflow);
        }
        if self.chooses(length) { early(self.mark, packet) } else { Verdict::Accept }
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let packets = port.backlog_packets as f64;
        self.update(if self.in_packets { packets } else { port.backlog_bytes as f64 / self.mean_packet });
        self.due = now + self.interval;
    }
    fn next_timer(&self) -> Time {
        self.due
    }
    fn probe(&self, put: Probe<'_>) {
        put("price", self.price);
        put("mark_probability", self.probability);
    }
}

/// The law over a queue of its own, from which packets leave with the mark of that time.
struct MarkedLate {
    rem: RemQueue,
    queue: Fifo,
}

impl MarkedLate {
    /// Ends the intervals that are over by now; arrivals and departures occurred only in the first.
    fn catch_up(&mut self, now: Time) {
        let waiting = if self.rem.in_packets {
            self.queue.packets() as f64
        } else {
            self.queue.bytes() as f64 / self.rem.mean_packet
        };
        while self.rem.due <= now {
            self.rem.update(waiting);
            self.rem.due += self.rem.interval;
            if self.rem.price == 0.0 && waiting == 0.0 && self.rem.input <= self.rem.carried && self.rem.due <= now {
                // An idle line keeps it there: only the mean input goes on falling.
                let left = 1 + now.since(self.rem.due).0 / self.rem.interval.0;
                self.rem.input *= libm::pow(1.0 - self.rem.weight, left as f64);
                self.rem.due += Time(left * self.rem.interval.0);
            }
        }
    }
}

impl ActiveQueue for MarkedLate {
    fn enqueue(&mut self, queued: Queued, packet: &Packet, dropped: &mut Dropped) {
        self.catch_up(queued.since);
        let length = self.rem.length(queued.bytes);
        self.rem.arrived += length;
        if self.queue.packets() > 0
            && !self.rem.queue_limit.fits((self.queue.bytes(), self.queue.packets()), queued.bytes)
        {
            dropped.push((queued, DropCause::Overflow));
        } else if early(self.rem.mark, packet) != Verdict::Mark && self.rem.chooses(length) {
            dropped.push((queued, DropCause::Early));
        } else {
            self.queue.push(queued);
        }
    }
    fn dequeue(&mut self, now: Time, _gone: &mut Dropped) -> Option<(Queued, bool)> {
        self.catch_up(now);
        let first = self.queue.pop()?;
        let length = self.rem.length(first.bytes);
        let marked = self.rem.mark && first.capable && self.rem.chooses(length);
        Some((first, marked))
    }
    fn probe(&self, put: Probe<'_>) {
        Qdisc::probe(&self.rem, put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::Ecn;

    fn rem(settings: &[(&str, f64)]) -> RemQueue {
        // A packet of 1000 bytes takes 80 us: 100 Mbit/s.
        testing::qdisc(RemQueue::new, Params::PARAMS, 12.5e6, settings)
    }
    fn view(packets: u32) -> PortView {
        PortView { capacity: 12.5e6, backlog_bytes: 1000 * packets as u64, backlog_packets: packets, busy: true }
    }
    fn packet(bytes: u16, ecn: Ecn) -> Packet {
        let mut p = Packet { ip_len: bytes, ..Packet::EMPTY };
        p.set_ecn(ecn);
        p
    }

    #[test]
    fn conformance_vector() {
        // 1 - 1.001^-100, and where 10 % are reached.
        assert!((probability(100.0, 1.001) - 0.0951).abs() < 5e-5);
        assert!(probability(105.0, 1.001) < 0.1 && probability(106.0, 1.001) > 0.1);
        assert_eq!(probability(0.0, 1.001), 0.0);
        // Prices of links add up: (1 - m1)(1 - m2) = 1 - m(p1 + p2).
        let both = 1.0 - (1.0 - probability(30.0, 1.001)) * (1.0 - probability(70.0, 1.001));
        assert!((both - probability(100.0, 1.001)).abs() < 1e-12);
    }

    #[test]
    fn the_price_follows_rate_and_queue() {
        // 2 ms at 100 Mbit/s carry 25 packets. 30 arrived, 50 wait: 0.001 (0.1 (50 - 20) + 30 - 25) = 0.008.
        let mut q = rem(&[]);
        q.arrived = 30.0;
        q.update(50.0);
        assert!((q.price - 0.008).abs() < 1e-12, "{}", q.price);
        // 24 arrived, 30 wait: rate and queue cancel each other.
        q.arrived = 24.0;
        q.update(30.0);
        assert!((q.price - 0.008).abs() < 1e-12);
        // None arrived: 0.001 (-2 - 25); a price is not negative.
        q.update(0.0);
        assert_eq!((q.price, q.probability), (0.0, 0.0));
        // A moving average of the input: half of 100 packets.
        let mut q = rem(&[("weight", 0.5), ("alpha", 0.0)]);
        q.arrived = 100.0;
        q.update(0.0);
        assert!((q.price - 0.001 * (50.0 - 25.0)).abs() < 1e-12);
        // The XCP paper's interval: ten packets of 80 us.
        let q = rem(&[("interval_packets", 10.0), ("target", 333_000.0)]);
        assert_eq!((q.interval, q.target), (Time::micros(800), 333.0));
        assert!((q.carried - 10.0).abs() < 1e-9);
    }

    #[test]
    fn marks_drops_and_overflows() {
        let share = |settings: &[(&str, f64)], bytes, ecn, verdict| {
            let mut q = rem(settings);
            q.price = 100.0;
            q.probability = probability(100.0, 1.001);
            let n = 100_000;
            (0..n).filter(|&i| q.on_arrival(Time(i), &packet(bytes, ecn), &view(10), None) == verdict).count() as f64
                / n as f64
        };
        let near = |got: f64, expected: f64| assert!((got - expected).abs() < 0.004, "{got} {expected}");
        near(share(&[], 1000, Ecn::Capable0, Verdict::Mark), 0.0951);
        near(share(&[], 1000, Ecn::NotCapable, Verdict::Drop(DropCause::Early)), 0.0951);
        near(share(&[("mark", 0.0)], 1000, Ecn::Capable0, Verdict::Drop(DropCause::Early)), 0.0951);
        near(share(&[], 500, Ecn::Capable0, Verdict::Mark), 0.0951 / 2.0);
        near(share(&[("count", 1.0)], 500, Ecn::Capable0, Verdict::Mark), 0.0951);
        let full = [("limit", 10_500.0)];
        assert_eq!(share(&full, 1000, Ecn::Capable0, Verdict::Drop(DropCause::Overflow)), 1.0);
    }

    fn late(settings: &[(&str, f64)]) -> MarkedLate {
        MarkedLate { rem: rem(settings), queue: Fifo::default() }
    }
    fn joins(q: &mut MarkedLate, handle: u32, since: Time, ecn: Ecn) -> Dropped {
        let queued = Queued { handle, bytes: 1000, capable: ecn != Ecn::NotCapable, since };
        let mut dropped = Dropped::new();
        q.enqueue(queued, &packet(1000, ecn), &mut dropped);
        dropped
    }

    /// Packets arrive at a price of zero and leave at a price that marks nearly all, 1 - 1.001^-10000: they are marked. A
    /// packet that is not ECN-capable is dropped on arrival.
    #[test]
    fn marks_may_follow_the_price_at_departure() {
        let mut q = late(&[]);
        for handle in 0..100 {
            assert!(joins(&mut q, handle, Time::ZERO, Ecn::Capable0).is_empty());
        }
        (q.rem.price, q.rem.probability) = (10_000.0, probability(10_000.0, 1.001));
        let marked = |q: &mut MarkedLate, us| q.dequeue(Time::micros(us), &mut Dropped::new()).map(|(_, mark)| mark);
        assert!((0..100).all(|us| marked(&mut q, us) == Some(true)));
        assert_eq!(marked(&mut q, 100), None);
        let dropped = joins(&mut q, 100, Time::micros(101), Ecn::NotCapable);
        assert_eq!(dropped.first().map(|d| d.1), Some(DropCause::Early));
    }

    /// Intervals that end between packets are evaluated as by a timer: 0.001 (0.1 (50 - 20) + 50 - 25) = 0.028 after the
    /// first, in which 50 packets arrived, and 0.001 (3 + 0 - 25) = -0.022 more after the second. After an idle hour the
    /// price is zero.
    #[test]
    fn intervals_are_made_up_for() {
        let mut q = late(&[]);
        (0..50).for_each(|handle| assert!(joins(&mut q, handle, Time::ZERO, Ecn::Capable0).is_empty()));
        q.catch_up(Time::millis(2));
        assert!((q.rem.price - 0.028).abs() < 1e-12, "{}", q.rem.price);
        q.catch_up(Time::millis(4));
        assert!((q.rem.price - 0.006).abs() < 1e-12, "{}", q.rem.price);
        while q.dequeue(Time::millis(5), &mut Dropped::new()).is_some() {}
        q.catch_up(Time::secs(3600));
        assert_eq!((q.rem.price, q.rem.due), (0.0, Time::secs(3600) + Time::millis(2)));
    }

    #[test]
    fn what_finds_no_room_is_refused() {
        let mut q = late(&[("limit", 2500.0)]);
        let refused: alloc::vec::Vec<bool> =
            (0..4).map(|handle| !joins(&mut q, handle, Time::ZERO, Ecn::Capable0).is_empty()).collect();
        assert_eq!(refused, [false, false, true, true]);
    }
}
