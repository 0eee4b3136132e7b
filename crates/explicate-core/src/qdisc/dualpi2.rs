//! DualPI2, the dual queue with coupled marks of L4S (K. De Schepper, B. Briscoe, G. White, RFC 9332, 2023).
//!
//! Senders that follow the *share* of marked packets (TCP Prague, DCTCP) keep the line busy with a queue of half a
//! millisecond. TCP, which halves its window for one mark, needs a queue of a round trip. So each kind has a queue of
//! its own: L for packets with ECT(1) or CE (RFC 9331), C for all others. The queues do not divide the line: L goes
//! first, except that C has at least a tenth while packets wait there. What keeps L's senders from taking all are marks
//! that are coupled to C's. A controller computes one probability p' from the longer of the two delays. C's packets are
//! dropped or marked with p'^2, and TCP's rate is in proportion to one over the root of that, 1 / p'. L's packets are
//! marked with k p', and the rates of their senders are in proportion to 1 / (k p'). So with k = 2 flows of equal round
//! trips have about equal windows. While C is empty L marks by a threshold of its own delay.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | target | `target` | s | 0.015 | RFC 9332 appendix A.1 |
//! | Tupdate | `interval` | s | 0.016, about min(target, RTT_max / 3) | appendix A.1 |
//! | alpha | `alpha` | Hz | 0.16 = 0.1 Tupdate / RTT_max^2 | appendix A.1, RTT_max = 0.1 s |
//! | beta | `beta` | Hz | 3.2, about 0.3 / RTT_max | appendix A.1 |
//! | p' | `Law::probability` | 2^-32 | p' + alpha (q - target) + beta (q - q_before) | figure 8 |
//! | p_C | `base` twice | 1 | p'^2 | equation 2 |
//! | p_CL | `coupled` | 2^-32 | k p' | equation 3 |
//! | k | `coupling` | 1 | 2 | section 2.5.1, appendix C.2 |
//! | p'_L | `native` | 2^-32 | 0 to `step`, 1 from `step` + `ramp` on | figure 5 |
//! | p_L | `signal` | 1 | max(p'_L, p_CL) | equation 4 |
//! | minTh | `step` | s | 0.001; 0.0008 in figure 2 | Linux 6.18 (`sch_dualpi2.c`) |
//! | range | `ramp` | s | 0; 0.0004 in figure 2 | Linux 6.18 |
//! | Th_len | `floor` | packets | 0; 1 in figure 2 | Linux 6.18 (`min_qlen_step`) |
//! | p_Cmax | | 1 | 1 / k^2, where k p' is 1 | appendix A.2 |
//! | weight of C | `share` | 1 | 0.1; 1/16 in section 4.2.2, as an example | Linux 6.18 |
//!
//! The law is that of Linux, in integers: a probability of 32 bits, delays in nanoseconds, and gains in 1/256 Hz. RFC
//! 9332 prefers weighted turns to a time-shifted FIFO (appendix A.2). Here C and L take turns by bytes with 10 and
//! 90 %, as in Linux: these bound C's wait by a number, whatever L's flows do.
//!
//! Overload: while k p' is above 1 marks cannot hold L back. Then L's packets are dropped with p'^2 as C's are, and
//! those of C are dropped in place of marks (sections 2.5.1.1 and 4.2.3). So unresponsive flows have in L what they
//! have in C.
//!
//! The ECN field of a *packet* chooses the queue. A flow whose packets have both codes is served out of order: VCP and
//! ABC write both.
//!
//! Slow lines: below 12 Mbit/s 1500 bytes take more than a millisecond. There Linux's defaults mark every packet that
//! has waited for another one, of which appendix A.2 warns. The values of figure 2 are `step = "800us"`,
//! `ramp = "400us"`, and `floor = 1`, by which a packet that waits alone is not marked.
//!
//! Deviations:
//! 1. Of RFC 9332 sections 2 and 4.2 and appendices A and C were read, of RFC 9331 sections 4 to 5.3. What they demand
//!    of the queues (section 2.5.1) is done. Of what they recommend two things are not: statistics of each queue,
//!    except the wait of its last packet (2.5.2.2), and reports of overload (2.5.2.3). The ECN field is the only
//!    classifier, so no packet is in the wrong queue (2.5.1.1). RFC 9331 section 5.1 demands that L4S can be switched
//!    off, and that packets with ECT(1) then count as not ECN-capable. Here a port without L4S has another discipline,
//!    to which ECT(1) is ECN-capable (RFC 3168).
//! 2. Where Linux 6.18 and the examples of appendix A differ, the defaults are Linux's: a step, and no `floor`. The RFC
//!    recommends a ramp, from which senders can learn sooner (A.1, note c).
//! 3. Marks and drops are drawn at random, as in Linux. In figure 4 likelihoods are added up, and each whole one is a
//!    mark, so that marks come at even distances.
//! 4. While fewer than two full packets wait behind the one that leaves, p' neither marks nor drops, as in Linux; A.1
//!    counts the one that leaves, too. `floor` does count it. Linux compares `floor` with the queue that a packet finds
//!    when it comes, so that the last one of a burst is marked, too.
//! 5. The probability is updated when a packet comes or goes, for all multiples of Tupdate since, each with the delay
//!    of that time. The result is that of a timer; a sample between two packets shows the last update.
//! 6. Where Linux's 32 bits wrap, the probability stays at its bound: a delay that falls by more than 0.31 s between
//!    two updates. A probability of zero never signals (in Linux once in 2^32).
//! 7. The limit is the common one of this simulator, in which one packet may always wait; figure 3 has 250 ms of the
//!    line, less a full packet. The other answer to overload, to mark all of L and let the limit drop (4.2.3), is not
//!    implemented.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::common::{Fifo, Limit, QueueLimit};
use crate::api::Probe;
use crate::params::{Bytes, Conflict, Fraction, Info, Number, Packets, Seconds, parameters};
use crate::qdisc::{ActiveQueue, Discipline, DropCause, Dropped, QdiscInit, QdiscKind, Queued, ResolvedQueue};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// DualPI2.
pub struct DualPi2;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Target of the delay in the queues.
        target: Seconds = 0.015, in 0.0..=10.0, "RFC 9332 appendix A";
        /// Time between two updates of the probability, Tupdate.
        interval: Seconds = 0.016, in 1e-4..=10.0, "RFC 9332 appendix A";
        /// Gain of the delay beyond the target, Hz; counts in steps of 1/256.
        alpha: Number = 0.16, in 0.0..=1e4, "RFC 9332 appendix A";
        /// Gain of the change of the delay, Hz; counts in steps of 1/256.
        beta: Number = 3.2, in 0.0..=1e4, "RFC 9332 appendix A";
        /// Coupling factor k, a whole number: L's packets are marked with k times the root of C's probability.
        coupling: Number = 2.0, in 1.0..=255.0, "RFC 9332 section 2.5.1";
        /// Delay beyond which packets of L are marked.
        step: Seconds = 0.001, in 0.0..=10.0, "Linux 6.18, sch_dualpi2.c";
        /// Further delay at which all are; up to there the share rises evenly. 0s: a step.
        ramp: Seconds = 0.0, in 0.0..=1.0, "RFC 9332 appendix A; Linux 6.18, sch_dualpi2.c";
        /// A whole number: a packet of L is not marked for its delay while no more than so many wait there, itself included.
        floor: Packets = 0.0, in 0.0..=1e6, "RFC 9332 appendix A.2; Linux 6.18, sch_dualpi2.c";
        /// Share of the line that C has at least while packets wait there; whole percents.
        share: Fraction = 0.1, in 0.0..=1.0, "RFC 9332 section 4.2.2; Linux 6.18, sch_dualpi2.c";
        /// A full packet: nothing is dropped or marked by p' while fewer bytes than two of them wait.
        mtu: Bytes = 1500.0, in 0.0..=1e9, "Linux 6.18, sch_dualpi2.c";
        /// The limit of both queues together.
        limit: Limit = Limit::DEFAULT;
    }
}

impl QdiscKind for DualPi2 {
    const INFO: Info = Info {
        name: "dualpi2",
        summary: "Dual queue of L4S: a short queue for ECT(1) and one for all others, with coupled marks",
        source: "RFC 9332",
        params: Params::PARAMS,
    };
    const L4S_APART: bool = true;

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Departure(Box::new(DualPi2Queue::new(init)))
    }

    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        let params = Params::of(queue.values);
        let (target, wait) = (1e3 * params.target, 1e3 * params.limit.limit / queue.capacity);
        let late = (target >= wait).then(|| {
            let what = format!(
                "its limit drains in {wait:.3} ms, within its target ({target:.3} ms), so it is full before it acts, \
                 as drop-tail is"
            );
            Conflict::new(["target", "limit"], what, "write a `target` below that or a longer `limit`")
        });
        late.into_iter().collect()
    }
}

/// The probability 1.
const CERTAIN: u64 = u32::MAX as u64;
/// Weights of the queues are in parts of this.
const WEIGHTS: i64 = 100;

/// The controller: the base probability p' and its updates.
struct Law {
    /// Nanoseconds.
    target: i128,
    /// Change of the probability for 64 nanoseconds.
    alpha: i128,
    beta: i128,
    interval: Time,
    /// The next update.
    due: Time,
    /// Delay at the last update, ns.
    delay: u64,
    /// p', in 2^-32.
    probability: u32,
}

impl Law {
    fn new(params: &Params) -> Law {
        let gain = |hertz: f64| ((((256.0 * hertz + 0.5) as u64 * CERTAIN) >> 2) / 1_000_000_000) as i128;
        let interval = Time::from_secs_f64(params.interval);
        Law {
            target: Time::from_secs_f64(params.target).0 as i128,
            alpha: gain(params.alpha),
            beta: gain(params.beta),
            interval,
            due: interval,
            delay: 0,
            probability: 0,
        }
    }
    /// One update, with the longer delay of both queues, ns.
    fn update(&mut self, delay: u64) {
        let (now, before) = (delay as i128, self.delay as i128);
        let change = (now - self.target) * self.alpha + (now - before) * self.beta;
        // Rounded towards zero, as Linux rounds magnitudes.
        self.probability = (self.probability as i128 + change / 64).clamp(0, CERTAIN as i128) as u32;
        self.delay = delay;
    }
    /// All updates until now. The packet that has waited longest came at `oldest`, `NEVER` if none waits.
    #[cold]
    #[inline(never)]
    fn catch_up(&mut self, now: Time, oldest: Time) {
        while self.due <= now {
            self.update(self.due.since(oldest).0);
            self.due += self.interval;
            // Further updates change nothing but the delay.
            let empty = oldest == Time::NEVER && self.delay == 0 && self.probability == 0;
            let full = self.probability == u32::MAX && self.delay as i128 >= self.target && oldest != Time::NEVER;
            if (empty || full) && self.due <= now {
                let more = now.since(self.due).0 / self.interval.0;
                self.due += Time(more * self.interval.0);
                self.delay = self.due.since(oldest).0;
                self.due += self.interval;
            }
        }
    }
}

struct DualPi2Queue {
    law: Law,
    step: Time,
    /// Nanoseconds.
    ramp: u64,
    floor: u32,
    /// k.
    coupling: u64,
    /// Two full packets, bytes.
    least: u64,
    /// C's weight.
    weight: i64,
    /// L's turn while it is not above zero; bytes times weights.
    credit: i64,
    first_credit: i64,
    queue_limit: QueueLimit,
    low: Fifo,
    classic: Fifo,
    /// How long the last packet of L, and of C, waited.
    waited: [Time; 2],
    rng: Rng,
}

impl DualPi2Queue {
    fn new(init: &QdiscInit<'_>) -> DualPi2Queue {
        let params = Params::of(init.values);
        let weight = (params.share * WEIGHTS as f64 + 0.5) as i64;
        let first_credit = params.mtu as i64 * (2 * weight - WEIGHTS);
        DualPi2Queue {
            law: Law::new(&params),
            step: Time::from_secs_f64(params.step),
            ramp: Time::from_secs_f64(params.ramp).0,
            floor: params.floor as u32,
            coupling: (params.coupling + 0.5) as u64,
            least: 2 * params.mtu as u64,
            weight,
            credit: first_credit,
            first_credit,
            queue_limit: params.limit.queue_limit(init.mean_packet),
            low: Fifo::default(),
            classic: Fifo::default(),
            waited: [Time::ZERO; 2],
            rng: init.rng.clone(),
        }
    }
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if now >= self.law.due {
            let since = |queue: &Fifo| queue.head().map_or(Time::NEVER, |packet| packet.since);
            self.law.catch_up(now, since(&self.low).min(since(&self.classic)));
        }
    }
    /// k p', in 2^-32; above 1 in an overload.
    fn coupled(&self) -> u64 {
        self.coupling * self.law.probability as u64
    }
    /// p'_L of a packet that has left L, in 2^-32; above [`CERTAIN`] it is 1.
    #[inline]
    fn native(&self, waited: Time) -> u64 {
        let over = waited.since(self.step).0;
        if over == 0 || self.low.packets() < self.floor {
            0
        } else if over >= self.ramp {
            CERTAIN + 1
        } else {
            (over << 32) / self.ramp
        }
    }
    /// Whether a packet that has left a queue is dropped, and whether it is marked. `native` is p'_L, 0 in C.
    #[inline]
    fn signal(&mut self, low: bool, capable: bool, native: u64) -> (bool, bool) {
        let (base, coupled) = (self.law.probability as u64, self.coupled());
        if base == 0 || self.low.bytes() + self.classic.bytes() < self.least {
            let drawn = 0 < native && native <= CERTAIN;
            return (false, if drawn { self.rng.next_u64() & CERTAIN < native } else { native > 0 });
        }
        let (overload, draw) = (coupled > CERTAIN, self.rng.next_u64());
        let (one, other) = (draw & CERTAIN, draw >> 32);
        if low && !overload {
            return (false, one < coupled.max(native));
        }
        // Both of two draws: the square.
        let square = one < base && other < base;
        let drop = square && (overload || !capable);
        (drop, !drop && (low || square))
    }
}

impl ActiveQueue for DualPi2Queue {
    fn enqueue(&mut self, queued: Queued, packet: &Packet, dropped: &mut Dropped) {
        self.catch_up(queued.since);
        let packets = self.low.packets() + self.classic.packets();
        if packets > 0 && !self.queue_limit.fits((self.low.bytes() + self.classic.bytes(), packets), queued.bytes) {
            return dropped.push((queued, DropCause::Overflow));
        }
        // ECT(1) and CE.
        if packet.ecn() as u8 & 1 == 1 { self.low.push(queued) } else { self.classic.push(queued) }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<(Queued, bool)> {
        self.catch_up(now);
        loop {
            let both = self.low.packets() > 0 && self.classic.packets() > 0;
            let low = if both { self.credit <= 0 } else { self.low.packets() > 0 };
            let queue = if low { &mut self.low } else { &mut self.classic };
            let Some(packet) = queue.pop() else {
                self.credit = self.first_credit;
                return None;
            };
            let waited = now.since(packet.since);
            let native = if low { self.native(waited) } else { 0 };
            let (drop, mark) = self.signal(low, packet.capable, native);
            if drop {
                dropped.push((packet, DropCause::Early));
                continue;
            }
            if both {
                self.credit += packet.bytes as i64 * if low { self.weight } else { self.weight - WEIGHTS };
            }
            self.waited[!low as usize] = waited;
            return Some((packet, mark));
        }
    }

    fn probe(&self, put: Probe<'_>) {
        let [low, classic] = self.waited;
        let base = self.law.probability as f64 / CERTAIN as f64;
        put("mark_probability", (self.coupling as f64 * base).min(1.0));
        put("classic_probability", base * base);
        put("low_delay_ms", low.to_millis());
        put("classic_delay_ms", classic.to_millis());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::Ecn;

    fn queue(settings: &[(&str, f64)]) -> DualPi2Queue {
        testing::qdisc(DualPi2Queue::new, Params::PARAMS, 1e6, settings)
    }
    fn arrive(q: &mut DualPi2Queue, at: Time, handle: u32, ecn: Ecn, dropped: &mut Dropped) {
        let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
        packet.set_ecn(ecn);
        let capable = ecn != Ecn::NotCapable;
        q.enqueue(Queued { handle, bytes: 1000, capable, since: at }, &packet, dropped);
    }

    /// 100,000 updates. The numbers are those of a program of 30 lines outside the repository, compiled by a C
    /// compiler, with the arithmetic of Linux 6.18 (`calculate_probability`, `dualpi2_scale_alpha_beta`): delays by a
    /// linear congruence, of up to 30 ms, now and then of 240 ms or none. The hash is FNV-1a of the probabilities'
    /// bytes.
    #[test]
    fn the_law_is_linuxs() {
        let mut law = queue(&[]).law;
        assert_eq!((law.alpha, law.beta), (44, 879));
        let (mut x, mut hash) = (1u64, 0xcbf2_9ce4_8422_2325_u64);
        let (mut some, mut none, mut all) = (Vec::new(), 0, 0);
        for n in 1..=100_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let delay = match n % 8192 {
                0..64 => 8 * ((x >> 33) % 30_000_000),
                4096..4608 => 0,
                _ => (x >> 33) % 30_000_000,
            };
            law.update(delay);
            for byte in law.probability.to_le_bytes() {
                hash = (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3);
            }
            none += (law.probability == 0) as u32;
            all += (law.probability == u32::MAX) as u32;
            if [1, 2, 3, 10, 100, 1000, 4500, 8200, 10_000, 50_000, 100_000].contains(&n) {
                some.push(law.probability);
            }
        }
        assert_eq!(
            some,
            [
                1_008_999_550,
                1_636_772_909,
                1_518_212_087,
                1_396_493_506,
                1_450_396_649,
                1_245_340_807,
                0,
                1_467_803_681,
                1_178_566_151,
                1_574_137_832,
                1_500_379_380
            ]
        );
        assert_eq!((none, all, hash), (4942, 107, 0xa53a_c63d_0cb3_1294));
    }

    /// Updates by hand, every 16 ms from 16 ms on. A packet waits from 10 ms on: delays of 6, 22 and 38 ms.
    #[test]
    fn updates_are_those_of_a_timer() {
        let by_hand = |delays: &[i64]| {
            let (mut p, mut before) = (0, 0);
            for delay in delays {
                p = (p + ((delay - 15_000_000) * 44 + (delay - before) * 879) / 64).clamp(0, u32::MAX as i64);
                before = *delay;
            }
            p as u32
        };
        let mut dropped = Dropped::new();
        let mut q = queue(&[]);
        arrive(&mut q, Time::millis(10), 0, Ecn::NotCapable, &mut dropped);
        assert_eq!(q.law.probability, 0);
        arrive(&mut q, Time::millis(50), 1, Ecn::NotCapable, &mut dropped);
        assert_eq!(q.law.probability, by_hand(&[6_000_000, 22_000_000, 38_000_000]));
        // L's packet is younger: C's delay counts.
        arrive(&mut q, Time::millis(60), 2, Ecn::Capable1, &mut dropped);
        q.catch_up(Time::millis(64));
        assert_eq!(q.law.probability, by_hand(&[6_000_000, 22_000_000, 38_000_000, 54_000_000]));
    }

    /// Years without a packet, or without a departure, take no longer, and end where single updates would.
    #[test]
    fn long_waits_are_skipped() {
        let year = Time::secs(31_536_000);
        let mut law = queue(&[]).law;
        law.catch_up(year, Time::NEVER);
        assert_eq!((law.probability, law.delay), (0, 0));
        assert_eq!(law.due, (year + Time(1)).next_multiple_of(Time::millis(16)));
        let oldest = law.due;
        law.catch_up(oldest + year, oldest);
        assert_eq!(law.probability, u32::MAX);
        assert_eq!(law.delay, (law.due.0 - oldest.0) - 16_000_000, "the delay of the last update");
        // So far does the delay fall that one update suffices.
        law.catch_up(law.due + Time::secs(10), Time::NEVER);
        assert_eq!(law.probability, 0);
    }

    /// L first, then C when nine times its packet's bytes have passed: the turns of 10 and 90 %.
    #[test]
    fn c_has_a_tenth_of_the_line_while_both_wait() {
        let (mut q, mut dropped) = (queue(&[("step", 10.0)]), Dropped::new());
        for handle in 0..400 {
            arrive(&mut q, Time::ZERO, handle, Ecn::Capable1, &mut dropped);
            arrive(&mut q, Time::ZERO, 1000 + handle, Ecn::NotCapable, &mut dropped);
        }
        let order: Vec<u32> = (0..400).map(|_| q.dequeue(Time::ZERO, &mut dropped).expect("waits").0.handle).collect();
        let classic: Vec<usize> = order.iter().enumerate().filter(|(_, h)| **h >= 1000).map(|(at, _)| at).collect();
        // The credit begins at -1500 80. L's packets add 1000 10, so the 13th takes it above zero; C's take 1000 90.
        assert_eq!(classic[..2], [13, 23], "{order:?}");
        assert!((38..=40).contains(&classic.len()), "{}", classic.len());
        let in_order = |from: u32| order.iter().filter(move |h| (**h >= 1000) == (from == 1000)).is_sorted();
        assert!(in_order(0) && in_order(1000));
        // One queue alone has all of the line.
        while let Some((packet, _)) = q.dequeue(Time::ZERO, &mut dropped) {
            assert!(packet.handle < 1400);
        }
        assert!(dropped.is_empty() && q.credit == q.first_credit);
    }

    /// Share of dropped and of marked packets of each kind: 20,000 with p' of this, in a queue that stays long.
    fn shares(base: f64, ecn: Ecn) -> (f64, f64) {
        let (mut q, mut dropped) = (queue(&[("step", 10.0), ("interval", 10.0)]), Dropped::new());
        (0..4).for_each(|handle| arrive(&mut q, Time::ZERO, handle, Ecn::Marked, &mut dropped));
        (0..4).for_each(|handle| arrive(&mut q, Time::ZERO, handle, Ecn::NotCapable, &mut dropped));
        q.law.probability = (base * CERTAIN as f64) as u32;
        let (low, capable) = (ecn == Ecn::Capable1, ecn != Ecn::NotCapable);
        let (mut drops, mut marks) = (0, 0);
        for _ in 0..20_000 {
            let (drop, mark) = q.signal(low, capable, 0);
            assert!(!(drop && mark));
            drops += drop as u32;
            marks += mark as u32;
        }
        (drops as f64 / 20_000.0, marks as f64 / 20_000.0)
    }

    /// k p' in L, and its square p'^2 in C; above 1/k the square drops in both. Four standard deviations are 0.014.
    #[test]
    fn marks_of_l_are_coupled_to_the_root_of_cs() {
        let close = |(a, b): (f64, f64), (c, d): (f64, f64)| (a - c).abs() < 0.014 && (b - d).abs() < 0.014;
        for base in [0.1, 0.3, 0.45] {
            assert!(close(shares(base, Ecn::Capable1), (0.0, 2.0 * base)), "{base}");
            assert!(close(shares(base, Ecn::Capable0), (0.0, base * base)), "{base}");
            assert!(close(shares(base, Ecn::NotCapable), (base * base, 0.0)), "{base}");
        }
        for base in [0.6, 1.0] {
            assert!(close(shares(base, Ecn::Capable1), (base * base, 1.0 - base * base)), "{base}");
            assert!(close(shares(base, Ecn::Capable0), (base * base, 0.0)), "{base}");
        }
        assert_eq!(shares(0.0, Ecn::Capable1), (0.0, 0.0));
    }

    /// Packets of L that waited for more than 1 ms, whatever the probability; those of C are not.
    #[test]
    fn l_is_marked_above_the_step() {
        let (mut q, mut dropped) = (queue(&[]), Dropped::new());
        for (us, ecn, mark) in [(1000, Ecn::Capable1, false), (1001, Ecn::Capable1, true), (9000, Ecn::Capable0, false)]
        {
            arrive(&mut q, Time::ZERO, 7, ecn, &mut dropped);
            assert_eq!(q.dequeue(Time::micros(us), &mut dropped).map(|(_, mark)| mark), Some(mark), "{us} {ecn:?}");
        }
        assert_eq!(q.waited, [Time::micros(1001), Time::micros(9000)]);
    }

    /// Figure 5 with 0.8 and 0.4 ms, and equation 4: the larger of both, not their sum. 20,000 packets each, p' = 0.1.
    #[test]
    fn a_ramp_marks_a_share_that_rises_with_the_delay() {
        let share = |base: f64, us: u64| {
            let settings = [("step", 0.0008), ("ramp", 0.0004), ("interval", 10.0), ("mtu", 100.0)];
            let (mut q, mut dropped) = (queue(&settings), Dropped::new());
            arrive(&mut q, Time::ZERO, 0, Ecn::Capable1, &mut dropped);
            q.law.probability = (base * CERTAIN as f64) as u32;
            let mark = |q: &mut DualPi2Queue| {
                let native = q.native(Time::micros(us));
                q.signal(true, true, native).1
            };
            (0..20_000).filter(|_| mark(&mut q)).count() as f64 / 20_000.0
        };
        for (us, alone, coupled) in
            [(800, 0.0, 0.2), (820, 0.05, 0.2), (900, 0.25, 0.25), (1000, 0.5, 0.5), (1200, 1.0, 1.0), (9000, 1.0, 1.0)]
        {
            let (a, c) = (share(0.0, us), share(0.1, us));
            assert!((a - alone).abs() < 0.014 && (c - coupled).abs() < 0.014, "{us} us: {a} and {c}");
        }
    }

    /// Of three packets that have waited too long, the last one has no other behind it.
    #[test]
    fn few_packets_of_l_are_not_marked_for_their_delay() {
        for (floor, expected) in [(0.0, [true, true, true]), (1.0, [true, true, false]), (2.0, [true, false, false])] {
            let (mut q, mut dropped) = (queue(&[("floor", floor)]), Dropped::new());
            (0..3).for_each(|handle| arrive(&mut q, Time::ZERO, handle, Ecn::Capable1, &mut dropped));
            arrive(&mut q, Time::ZERO, 3, Ecn::NotCapable, &mut dropped);
            let marks = [(); 3].map(|()| q.dequeue(Time::millis(5), &mut dropped).is_some_and(|(_, mark)| mark));
            assert_eq!(marks, expected, "{floor}");
        }
    }

    #[test]
    fn the_limit_is_one_for_both() {
        let (mut q, mut dropped) = (queue(&[("limit", 3000.0)]), Dropped::new());
        for (handle, ecn) in [(0, Ecn::Capable1), (1, Ecn::NotCapable), (2, Ecn::Marked), (3, Ecn::Capable1)] {
            arrive(&mut q, Time::ZERO, handle, ecn, &mut dropped);
        }
        assert_eq!((q.low.packets(), q.classic.packets()), (2, 1));
        assert_eq!(dropped.iter().map(|(p, cause)| (p.handle, *cause)).collect::<Vec<_>>(), [(3, DropCause::Overflow)]);
        let mut small = queue(&[("limit", 10.0)]);
        arrive(&mut small, Time::ZERO, 0, Ecn::Capable1, &mut Dropped::new());
        assert_eq!(small.low.packets(), 1, "one may always wait");
    }

    #[test]
    fn a_target_beyond_the_limit_is_reported() {
        let found = |limit: f64| {
            let values = testing::values(&[Params::PARAMS], &[("limit", limit)]);
            DualPi2.conflicts(&ResolvedQueue { values: &values, capacity: 1e6, mean_packet: 1000.0 }).len()
        };
        assert_eq!([found(15_000.0), found(15_001.0)], [1, 0]);
    }
}
