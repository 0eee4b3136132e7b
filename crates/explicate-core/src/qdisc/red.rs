//! RED, random early detection (S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM ToN 1(4), 1993), with Floyd's gentle slope (2000), ECN marks (RFC 3168) and, if asked for, the adaptation of S.
//! Floyd, R. Gummadi, S. Shenker, "Adaptive RED: An Algorithm for Increasing the Robustness of RED's Active Queue
//! Management", 2001.
//!
//! A moving average of the queue decides: below `min_th` nothing happens; above, packets are dropped or marked with a
//! probability that grows with the average, so that flows slow down before the buffer is full and not all at once. How
//! many packets passed since the last drop spreads the drops evenly. While the queue is empty the average decays as if
//! small packets had come. Where the average settles depends on how many flows there are; adaptive RED moves `max_p` every
//! half second so that it settles midway between the thresholds, and takes weight and thresholds from the capacity.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | min_th | `min_th` | bytes or packets | 5 packets | Floyd's recommendation, 1997 |
//! | max_th | `max_th` | bytes or packets | 3 min_th | 1997 |
//! | w_q | `weight` | | 0.002; adaptive 1 - exp(-1 / C) | ToN 1993 section VI; 2001 section 4.3 |
//! | max_p | `max_p` | | 0.1; adaptive 0.01..0.5 | 1997 (0.02 in 1993); 2001 section 4 |
//! | avg | `average` | bytes or packets | | equation 1 |
//! | p_b | [`base_probability`] | | | equation 2 |
//! | p_a | [`spread`] | | | equation 3 |
//! | count | `count` | packets since the last drop or mark | | section IV |
//! | s | `packet_time` | s | mean packet / capacity | section IV |
//! | interval | [`ADAPT_EVERY`] | s | 0.5 | 2001 section 4 |
//! | target | [`adapted`] | | the middle fifth between the thresholds | 2001 section 4 |
//! | alpha, beta | [`adapted`] | | min(0.01, max_p / 4), 0.9 | 2001 section 4 |
//! | delay target | `target_delay` | s | 5 ms: adaptive min_th is at least half of it at C | 2001 section 4.2 |
//!
//! Deviations:
//! 1. The packet in service does not count, as in DropTail here and in ns-2.
//! 2. `wait`, on by default as in ns-2, keeps two drops at least 1/p_b packets apart.
//! 3. Where p_b reaches `drop_above`, 1 by default, ECN-capable packets are dropped too (RFC 3168 section 7). ns-2
//!    does this from 0.1 on (`mark_p_`), which is `drop_above = 0.1`.
//! 4. An automatic `min_th` does not depend on the limit, as in ns-2.
//! 5. `ns2` follows ns-2.35 where the queue is nearly empty: while at most one packet waits there are no early drops,
//!    and the count starts again; the average ages only by whole packet times of idle time. Where the queue is often
//!    empty this changes the utilisation by two percentage points (docs/validation.md).

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::common::{Count, in_packets, unused};
use crate::api::{PortView, Probe};
use crate::params::{Auto, Conflict, Flag, Fraction, Info, QueueLength, Seconds, parameters};
use crate::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, QdiscKind, ResolvedQueue, Verdict};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::{Ecn, Packet};

/// RED.
pub struct Red;

parameters! {
    /// What a scenario can set.
    pub struct Params {
        /// Average at which drops begin; auto is 5 mean packets.
        min_th: Auto<QueueLength> = None, "Floyd 1997";
        /// Average at which `max_p` is reached; auto is 3 min_th.
        max_th: Auto<QueueLength> = None, "Floyd 1997";
        /// Weight of a new sample in the average; auto is 0.002, adaptive 1 - exp(-1 / packets per second).
        weight: Auto<Fraction> = None, in 1e-9..=1.0, "Floyd, Jacobson, ToN 1993 section VI";
        /// Probability at `max_th`.
        max_p: Fraction = 0.1, in 0.0..=1.0, "Floyd 1997";
        /// `max_p` is adapted so that the average settles midway between the thresholds.
        adaptive: Flag = false, "Floyd, Gummadi, Shenker 2001";
        /// An automatic adaptive `min_th` is at least half of this delay at the capacity.
        target_delay: Seconds = 0.005, in 0.0..=1000.0, "Floyd, Gummadi, Shenker 2001 section 4.2";
        /// Above `max_th` the probability rises linearly to 1 at twice `max_th`.
        gentle: Flag = true, "Floyd, gentle RED, 2000";
        /// No early drops while at most one packet waits; the average ages by whole packet times of idle time.
        ns2: Flag = false, "ns-2 red.cc";
        /// Drops are at least 1/p_b packets apart.
        wait: Flag = true, "ns-2 red.cc, wait_";
        /// ECN-capable packets are marked instead of dropped.
        mark: Flag = true, "RFC 3168";
        /// Probability p_b from which ECN-capable packets are dropped instead of marked; 0.1 in ns-2.
        drop_above: Fraction = 1.0, in 0.0..=1.0, "RFC 3168 section 7; ns-2 red.cc, mark_p_";
        /// Maximum queue length.
        limit: QueueLength = f64::INFINITY, "ns-2 manual, queue objects";
        /// Unit of queue, thresholds and limit; with `bytes` the probability of a packet increases with its length.
        count: Count = Count::Bytes, "ns-2 manual, queue objects";
    }
}

impl QdiscKind for Red {
    const INFO: Info = Info {
        name: "red",
        summary: "Random early detection: drops or marks with a probability that grows with the average queue",
        source: "Floyd and Jacobson, IEEE/ACM ToN 1993; RFC 3168",
        params: Params::PARAMS,
    };

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(RedQueue::new(init)))
    }

    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        const LONGER: &str = "write a longer `limit`, or lower thresholds";
        let params = Params::of(queue.values);
        let (min_th, max_th) = params.thresholds(queue.capacity, queue.mean_packet);
        let packets = |bytes| in_packets(bytes, queue.mean_packet);
        let thresholds = if min_th > max_th {
            let (min_th, max_th) = (packets(min_th), packets(max_th));
            let what = format!("`min_th` ({min_th}) is above `max_th` ({max_th})");
            Some(Conflict { refused: true, ..Conflict::new(["max_th", "min_th"], what, "exchange them") })
        } else if min_th >= params.limit {
            let (min_th, limit) = (packets(min_th), packets(params.limit));
            let what = format!(
                "its min_th ({min_th}) is not below its limit ({limit}), so it is full before it acts, as drop-tail is"
            );
            Some(Conflict::new(["min_th", "limit"], what, LONGER))
        } else if max_th > params.limit {
            let (max_th, limit) = (packets(max_th), packets(params.limit));
            let what =
                format!("its max_th ({max_th}) is above its limit ({limit}), so the probability never reaches `max_p`");
            Some(Conflict::new(["max_th", "limit"], what, LONGER))
        } else {
            None
        };
        let fixed = (!params.adaptive).then(|| {
            unused(queue, "target_delay", "adaptive", "without adaptation", "remove it, or write `adaptive = true`")
        });
        let explicit = (params.adaptive && params.min_th.is_some())
            .then(|| unused(queue, "target_delay", "min_th", "beside `min_th`", "remove one of them"));
        let drops = (!params.mark)
            .then(|| unused(queue, "drop_above", "mark", "without marks", "remove it, or write `mark = true`"));
        [thresholds, fixed.flatten(), explicit.flatten(), drops.flatten()].into_iter().flatten().collect()
    }
}

impl Params {
    /// The thresholds, bytes.
    fn thresholds(&self, capacity: f64, mean_packet: f64) -> (f64, f64) {
        let delayed = if self.adaptive { 0.5 * self.target_delay * capacity } else { 0.0 };
        let min_th = self.min_th.unwrap_or(delayed.max(5.0 * mean_packet));
        (min_th, self.max_th.unwrap_or(3.0 * min_th))
    }
}

/// The probability for this average, before the spacing of drops: 0 below `min_th`, then linear to `max_p` at
/// `max_th`, then 1, or with `gentle` linear to 1 at twice `max_th`.
pub fn base_probability(average: f64, min_th: f64, max_th: f64, max_p: f64, gentle: bool) -> f64 {
    if average < min_th {
        0.0
    } else if average < max_th {
        max_p * (average - min_th) / (max_th - min_th)
    } else if gentle && average < 2.0 * max_th {
        max_p + (1.0 - max_p) * (average - max_th) / max_th
    } else {
        1.0
    }
}

/// The probability for the `count`-th packet after the last drop, so that the gaps between drops are uniform: on
/// `1..1/p`, or with `wait` on `1/p..2/p`.
pub fn spread(p: f64, count: f64, wait: bool) -> f64 {
    let passed = count * p;
    let (from, until) = if wait { (1.0, 2.0) } else { (0.0, 1.0) };
    if passed < from {
        0.0
    } else if passed < until {
        (p / (until - passed)).min(1.0)
    } else {
        1.0
    }
}

/// Time between two adaptations.
pub const ADAPT_EVERY: Time = Time::millis(500);

/// `max_p` after an adaptation: higher if the average is above the middle fifth between the thresholds, lower if
/// below.
pub fn adapted(max_p: f64, average: f64, min_th: f64, max_th: f64) -> f64 {
    let span = max_th - min_th;
    if average > min_th + 0.6 * span && max_p <= 0.5 {
        max_p + (max_p / 4.0).min(0.01)
    } else if average < min_th + 0.4 * span && max_p >= 0.01 {
        0.9 * max_p
    } else {
        max_p
    }
}

struct RedQueue {
    min_th: f64,
    max_th: f64,
    weight: f64,
    max_p: f64,
    gentle: bool,
    wait: bool,
    ns2: bool,
    mark: bool,
    drop_above: f64,
    limit: f64,
    in_packets: bool,
    mean_packet: f64,
    /// Transmission time of a mean packet, s.
    packet_time: f64,
    average: f64,
    /// Packets (mean packets, when bytes count) since the last drop or mark.
    count: f64,
    /// The average has decayed up to here.
    decayed: Time,
    /// When `max_p` is adapted next.
    adapts: Time,
    rng: Rng,
}

impl RedQueue {
    fn new(init: &QdiscInit<'_>) -> RedQueue {
        let params = Params::of(init.values);
        let in_packets = params.count == Count::Packets;
        let unit = if in_packets { init.mean_packet } else { 1.0 };
        let adaptive = params.adaptive;
        let packet_time = init.mean_packet / init.capacity;
        let min_th = params.thresholds(init.capacity, init.mean_packet).0 / unit;
        RedQueue {
            min_th,
            max_th: params.max_th.map_or(3.0 * min_th, |max_th| max_th / unit).max(min_th),
            weight: params.weight.unwrap_or(if adaptive { 1.0 - libm::exp(-packet_time) } else { 0.002 }),
            max_p: params.max_p,
            gentle: params.gentle,
            wait: params.wait,
            ns2: params.ns2,
            mark: params.mark,
            drop_above: params.drop_above,
            limit: params.limit / unit,
            in_packets,
            mean_packet: init.mean_packet,
            packet_time,
            average: 0.0,
            count: 0.0,
            decayed: Time::ZERO,
            adapts: if adaptive { ADAPT_EVERY } else { Time::NEVER },
            rng: init.rng.clone(),
        }
    }

    /// Takes a sample of the queue, after the decay of an idle time.
    fn sample(&mut self, now: Time, queue: f64, idle_since: Option<Time>) {
        if let Some(since) = idle_since {
            // An arrival that was dropped leaves the port idle: that time has been counted.
            let idle = now.since(since.max(self.decayed)).as_secs_f64();
            let packets = idle / self.packet_time;
            self.average *= libm::pow(1.0 - self.weight, if self.ns2 { libm::floor(packets) } else { packets });
            self.decayed = now;
        }
        self.average += self.weight * (queue - self.average);
    }

    /// Whether the average, with probability `p`, selects this packet for a drop or mark.
    fn chosen(&mut self, p: f64, bytes: f64) -> bool {
        if p <= 0.0 || p >= 1.0 {
            self.count = 0.0;
            return p >= 1.0;
        }
        let length = if self.in_packets { 1.0 } else { bytes / self.mean_packet };
        self.count += length;
        let chosen = self.rng.uniform() < spread(p, self.count, self.wait) * length;
        if chosen {
            self.count = 0.0;
        }
        chosen
    }
}

impl Qdisc for RedQueue {
    fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView, idle_since: Option<Time>) -> Verdict {
        let bytes = packet.ip_len as f64;
        let (queue, own) =
            if self.in_packets { (port.backlog_packets as f64, 1.0) } else { (port.backlog_bytes as f64, bytes) };
        self.sample(now, queue, idle_since);
        if port.busy && queue + own > self.limit {
            self.count = 0.0;
            return Verdict::Drop(DropCause::Overflow);
        }
        if self.ns2 && port.backlog_packets <= 1 {
            self.count = 0.0;
            return Verdict::Accept;
        }
        let capable = self.mark && packet.ecn() != Ecn::NotCapable;
        let p = base_probability(self.average, self.min_th, self.max_th, self.max_p, self.gentle);
        match self.chosen(p, bytes) {
            false => Verdict::Accept,
            true if capable && p < self.drop_above => Verdict::Mark,
            true => Verdict::Drop(DropCause::Early),
        }
    }

    fn on_timer(&mut self, now: Time, _port: &PortView) {
        self.max_p = adapted(self.max_p, self.average, self.min_th, self.max_th);
        self.adapts = now + ADAPT_EVERY;
    }
    fn next_timer(&self) -> Time {
        self.adapts
    }

    fn probe(&self, put: Probe<'_>) {
        put(if self.in_packets { "average_packets" } else { "average_bytes" }, self.average);
        put("p_b", base_probability(self.average, self.min_th, self.max_th, self.max_p, self.gentle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn red(settings: &[(&str, f64)]) -> RedQueue {
        // A packet of 1000 bytes takes a millisecond.
        testing::qdisc(RedQueue::new, Params::PARAMS, 1e6, settings)
    }
    fn view(packets: u32) -> PortView {
        PortView { capacity: 1e6, backlog_bytes: 1000 * packets as u64, backlog_packets: packets, busy: true }
    }
    fn packet(ecn: Ecn) -> Packet {
        let mut p = Packet { ip_len: 1000, ..Packet::EMPTY };
        p.set_ecn(ecn);
        p
    }

    /// Worked out by hand.
    #[test]
    fn conformance_vector() {
        let p = |average| base_probability(average, 5.0, 15.0, 0.1, true);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(p(4.999), 0.0);
        near(p(10.0), 0.05);
        near(p(15.0), 0.1);
        near(p(20.0), 0.4);
        near(p(30.0), 1.0);
        near(base_probability(15.0, 5.0, 15.0, 0.1, false), 1.0);
        near(base_probability(5.0, 5.0, 5.0, 0.1, true), 0.1);
    }

    #[test]
    fn max_p_moves_slowly_towards_the_middle() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        // Thresholds 5 and 15: the target is 9 to 11.
        near(adapted(0.1, 11.1, 5.0, 15.0), 0.11);
        near(adapted(0.02, 20.0, 5.0, 15.0), 0.025);
        near(adapted(0.1, 8.9, 5.0, 15.0), 0.09);
        near(adapted(0.1, 10.0, 5.0, 15.0), 0.1);
        near(adapted(0.505, 20.0, 5.0, 15.0), 0.505);
        near(adapted(0.0095, 0.0, 5.0, 15.0), 0.0095);
    }

    #[test]
    fn adaptive_constants_come_from_the_capacity() {
        // 1000 packets per second: half of 5 ms are 2.5 packets, so 5; half of 20 ms are 10.
        let q = red(&[("adaptive", 1.0)]);
        assert_eq!((q.min_th, q.max_th, q.next_timer()), (5000.0, 15_000.0, Time::millis(500)));
        assert!((q.weight - 0.000_999_500).abs() < 1e-9, "{}", q.weight);
        let q = red(&[("adaptive", 1.0), ("target_delay", 0.02), ("weight", 0.01)]);
        assert_eq!((q.min_th, q.weight), (10_000.0, 0.01));
        let plain = red(&[]);
        assert_eq!((plain.min_th, plain.weight, plain.next_timer()), (5000.0, 0.002, Time::NEVER));
    }

    /// A closed loop: the queue grows by what the probability leaves of the arrivals, so that it can rest only at one p_b.
    /// Plain RED's average settles at a value given by max_p, adaptive RED's in the middle, for two loads.
    #[test]
    fn adaptive_red_holds_the_average_in_its_target() {
        let rests = |adaptive: f64, wanted: f64| {
            let mut q = red(&[("adaptive", adaptive), ("weight", 0.01), ("count", 1.0)]);
            let (mut queue, mut sum) = (0.0f64, 0.0);
            for ms in 0..200_000u64 {
                if ms % 500 == 0 && adaptive != 0.0 {
                    q.on_timer(Time::millis(ms), &view(0));
                }
                q.sample(Time::millis(ms), queue, None);
                let p = base_probability(q.average, q.min_th, q.max_th, q.max_p, true);
                queue = (queue + 0.5 * (wanted - p)).max(0.0);
                sum += if ms >= 150_000 { q.average / 50_000.0 } else { 0.0 };
            }
            sum
        };
        for wanted in [0.02, 0.2] {
            let mean = rests(1.0, wanted);
            assert!((9.0..=11.0).contains(&mean), "{wanted}: {mean}");
        }
        assert!(rests(0.0, 0.02) < 7.5 && rests(0.0, 0.2) > 15.0, "{} {}", rests(0.0, 0.02), rests(0.0, 0.2));
    }

    #[test]
    fn drops_are_spread_evenly() {
        assert_eq!((spread(0.1, 5.0, false), spread(0.1, 10.0, false)), (0.2, 1.0));
        assert_eq!((spread(0.1, 9.0, true), spread(0.125, 12.0, true), spread(0.1, 20.0, true)), (0.0, 0.25, 1.0));
        for (wait, least, most) in [(false, 1, 19), (true, 20, 39)] {
            // The average stays at 10 of 5..15 packets: p_b = 0.05.
            let mut q = red(&[("count", 1.0), ("wait", wait as u8 as f64)]);
            q.average = 10.0;
            let (mut gaps, mut gap) = (alloc::vec::Vec::new(), 0);
            for i in 0..60_000 {
                gap += 1;
                if q.on_arrival(Time(i), &packet(Ecn::NotCapable), &view(10), None) != Verdict::Accept {
                    gaps.push(gap);
                    gap = 0;
                }
            }
            assert!(gaps.iter().all(|g| (least..=most).contains(g)), "{wait} {gaps:?}");
            let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
            assert!((mean - (least + most) as f64 / 2.0).abs() < 0.5, "{mean}");
        }
    }

    /// The average selects every packet for a drop; with at most one waiting there is no drop, and the count starts
    /// again.
    #[test]
    fn a_nearly_empty_queue_is_left_alone_as_in_ns2() {
        let mut q = red(&[("ns2", 1.0), ("count", 1.0)]);
        for (waiting, verdict) in [(2, Verdict::Drop(DropCause::Early)), (1, Verdict::Accept), (0, Verdict::Accept)] {
            (q.average, q.count) = (40.0, 7.0);
            assert_eq!(q.on_arrival(Time(1), &packet(Ecn::NotCapable), &view(waiting), None), verdict);
            assert_eq!(q.count, 0.0);
        }
        // Ten packet times and a half idle; ten count.
        q.average = 40.0;
        q.sample(Time::micros(30_500), 0.0, Some(Time::millis(20)));
        assert!((q.average - 40.0 * libm::pow(0.998, 11.0)).abs() < 1e-9, "{}", q.average);
    }

    #[test]
    fn an_idle_line_forgets() {
        let mut q = red(&[("weight", 0.1)]);
        q.average = 9000.0;
        // Ten packet times idle, then a sample of an empty queue: 0.9^11.
        q.sample(Time::millis(30), 0.0, Some(Time::millis(20)));
        let after = 9000.0 * 0.313_810_596_09;
        assert!((q.average - after).abs() < 1e-6, "{}", q.average);
        // Still idle since then: only the time that has passed is counted.
        q.sample(Time::millis(31), 0.0, Some(Time::millis(20)));
        assert!((q.average - after * 0.81).abs() < 1e-6, "{}", q.average);
        q.sample(Time::millis(40), 5000.0, None);
        assert!((q.average - (after * 0.729 + 500.0)).abs() < 1e-6);
    }

    #[test]
    fn marks_drops_and_overflows() {
        let verdict = |average: f64, backlog: u32, ecn| {
            let mut q = red(&[("limit", 50_000.0), ("wait", 0.0)]);
            q.average = average;
            q.count = 1000.0;
            q.on_arrival(Time::ZERO, &packet(ecn), &view(backlog), None)
        };
        assert_eq!(verdict(4900.0, 4, Ecn::NotCapable), Verdict::Accept);
        assert_eq!(verdict(10_000.0, 10, Ecn::NotCapable), Verdict::Drop(DropCause::Early));
        assert_eq!(verdict(10_000.0, 10, Ecn::Capable0), Verdict::Mark);
        assert_eq!(verdict(31_000.0, 31, Ecn::Capable0), Verdict::Drop(DropCause::Early));
        assert_eq!(verdict(10_000.0, 49, Ecn::Capable0), Verdict::Mark);
        // ns-2's mark_p_ = 0.1 is p_b at max_th, 15 packets: one below it marks, from there on it drops.
        let ns2 = |average: f64| {
            let mut q = red(&[("drop_above", 0.1), ("wait", 0.0)]);
            (q.average, q.count) = (average, 1000.0);
            q.on_arrival(Time::ZERO, &packet(Ecn::Capable0), &view((average / 1000.0) as u32), None)
        };
        assert_eq!((ns2(14_000.0), ns2(16_000.0)), (Verdict::Mark, Verdict::Drop(DropCause::Early)));
        assert_eq!(verdict(16_000.0, 16, Ecn::Capable0), Verdict::Mark);
        assert_eq!(verdict(10_000.0, 50, Ecn::Capable0), Verdict::Drop(DropCause::Overflow));
    }

    #[test]
    fn bytes_weigh_packets_by_length() {
        let drops = |bytes: u16| {
            let mut q = red(&[]);
            let p = Packet { ip_len: bytes, ..Packet::EMPTY };
            q.average = 10_000.0;
            (0..100_000).filter(|&i| q.on_arrival(Time(i), &p, &view(10), None) != Verdict::Accept).count() as f64
        };
        let ratio = drops(1000) / drops(250);
        assert!((3.0..5.5).contains(&ratio), "{ratio}");
    }
}
