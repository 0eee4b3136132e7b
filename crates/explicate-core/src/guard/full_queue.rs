//! Whether packets are lost where a queue that no router answers for is full.
//!
//! A drop-tail queue loses packets while it is full, so the packet behind a lost one waited longer than most. Losses of the air
//! come at any delay. The packet behind each lost one is compared with packets before it and with packets after it, [`KEPT`] on
//! either side. Let u be the share of those on a side that took shorter by more than [`APART`]; alike ones count half. The sum
//! grows by half of ln(2u) for each side.
//!
//! Where losses come at any time, longer is as likely as shorter, whatever the course of the delays: what a loss has before it,
//! another one has after it, so a path that gets longer counts for nothing. With u and v of the two sides, the mean of u + v is then
//! 1, and that of exp(ln(2u) / 2 + ln(2v) / 2), their geometric mean twice, is no more. The sum never falls below zero. So it reaches
//! 14 with probability exp(-14) a loss if losses are independent (Lundberg's bound); [`CERTAIN`] stands for these 14. Delays that
//! last make losses dependent, so at most [`MOST`] of a round trip count.
//!
//! One packet on a side says little where hosts delay packets by milliseconds at random: 70 % of such comparisons found a longer
//! delay behind a loss, where 67 % were needed for any sign (30 Mbit/s, 10 ms of buffer, 3 ms in the mean at each host).
//!
//! At half of [`CERTAIN`] a full queue is likely, with the root of that probability, where most of the last comparisons found delays
//! that differ: a queue makes them differ. It is so until the sum has fallen to a quarter or delays are alike. Delays that are alike
//! contradict nothing: the sum stays as it is.
//!
//! Not compared are round trips in which packets overtake each other, as their gaps are no losses, packets behind which an
//! answering router reports a drop, and packets that waited so long in such routers that marks round it by more than [`APART`]: the
//! place in a burst decides how, and bursts last. What XTCP's and VCP's routers report by flags counts against.
//!
//! A queue that is always full has delays that are all alike; dips of the window then make some differ (`dip.rs`). What cannot be
//! seen: buffers of less than [`APART`]; a policer.

use alloc::vec::Vec;

use crate::units::Time;

/// What delays differ by at least: those of hosts vary by as much.
const APART: Micros = 500;
/// The sum that is a sign, and how much of it one is, of the natural logarithm of a probability.
const CERTAIN: f64 = 60.0;
const OF_LOG: f64 = CERTAIN / 14.0;
/// What a round trip counts whose losses a router reports.
const REPORTED: f64 = -4.0;
/// Losses of a round trip that count at most.
const MOST: u32 = 2;
/// Packets that are kept for comparison, and the binary logarithm of how many one is taken of: 64 of 1024, a period of TCP's
/// window at 52 segments (3/8 of its square), and three times as many as are lost of 1024 at 2 %.
const KEPT: usize = 64;
const ONE_IN: u32 = 4;
/// Fewest packets before a loss that it is compared with.
const FEWEST: u8 = 16;
/// Most losses that wait for later packets: [`MOST`] of each round trip of 32 packets.
const WAITING: usize = 64;
/// Comparisons after which half of the older ones are forgotten.
const LAST: u32 = 16;

/// Delays of packets, and how they compare with those of packets behind lost ones.
pub(super) struct Comparison {
    /// Round-trip times without known waits, of packets taken in turn; zero for none.
    earlier: [Micros; KEPT],
    taken: usize,
    /// Packets behind lost ones that wait for later ones; few flows have any.
    behind: Vec<Behind>,
    /// Of this round trip: losses that were compared, what comparisons count, and whether packets overtook each other.
    compared: u32,
    count: f64,
    overtaken: bool,
    /// Of the last comparisons (8 to 15 of them), how many, and how many found the same delay.
    last: u32,
    alike: u32,
    /// Sum of what round trips count.
    pub(super) sum: f64,
    /// It has reached half of a sign, and neither fallen to a quarter since nor have delays become alike.
    likely: bool,
}

/// Time in microseconds, in half the memory.
type Micros = u32;

/// A packet behind a lost one, and what later ones were compared with it.
struct Behind {
    /// Its round-trip time without known waits.
    rtt: Micros,
    others: Others,
}

/// What one packet has been compared with.
#[derive(Clone, Copy, Default)]
struct Others {
    all: u8,
    /// Those that took shorter by more than [`APART`], and those that differed by no more.
    shorter: u8,
    alike: u8,
}

impl Others {
    fn add(&mut self, rtt: Micros, other: Micros) {
        self.all += 1;
        self.shorter += u8::from(rtt > other.saturating_add(APART));
        self.alike += u8::from(rtt.abs_diff(other) <= APART);
    }
}

impl Default for Comparison {
    fn default() -> Comparison {
        Comparison {
            earlier: [0; KEPT],
            taken: 0,
            behind: Vec::new(),
            compared: 0,
            count: 0.0,
            overtaken: false,
            last: 0,
            alike: 0,
            sum: 0.0,
            likely: false,
        }
    }
}

impl Comparison {
    /// Takes a packet's number and round-trip time, without known waits, and whether the packet before it is missing.
    pub(super) fn take(&mut self, number: u32, rtt: Time, missing: bool) {
        let rtt = (rtt.0 / 1000).min(u32::MAX as u64) as Micros;
        if missing && self.compared < MOST {
            self.compare(rtt);
        }
        // Spread over the packets without regard to their places in bursts (Weyl's sequence).
        if number.wrapping_mul(0x9E37_79B9) >> (32 - ONE_IN) == 0 {
            self.keep(rtt);
        }
    }
    /// Compares the packet behind a lost one with those before it, and lets it wait for those after it.
    fn compare(&mut self, rtt: Micros) {
        let mut before = Others::default();
        self.earlier.iter().filter(|earlier| **earlier > 0).for_each(|&earlier| before.add(rtt, earlier));
        // One that cannot wait for later packets is not compared with earlier ones alone.
        if self.behind.len() < WAITING && before.all >= FEWEST {
            self.behind.push(Behind { rtt, others: Others::default() });
            self.compared += 1;
            self.weigh(before);
        }
    }
    /// Keeps a packet, and compares it with earlier ones behind lost ones.
    fn keep(&mut self, rtt: Micros) {
        self.taken = (self.taken + 1) % KEPT;
        self.earlier[self.taken] = rtt;
        let mut behind = core::mem::take(&mut self.behind);
        behind.retain_mut(|one| {
            one.others.add(one.rtt, rtt);
            let waits = usize::from(one.others.all) < KEPT;
            if !waits {
                self.weigh(one.others);
            }
            waits
        });
        self.behind = behind;
    }
    /// Counts what one side of a loss says.
    fn weigh(&mut self, others: Others) {
        let [all, shorter, alike] = [others.all, others.shorter, others.alike].map(f64::from);
        // The place of the packet among the others; the half keeps it from 0, and its mean.
        let share = (shorter + alike / 2.0 + 0.5) / (all + 1.0);
        self.count += OF_LOG * libm::log(2.0 * share) / 2.0;
        self.last += 1;
        self.alike += u32::from(2.0 * alike > all);
        if self.last == LAST {
            (self.last, self.alike) = (LAST / 2, self.alike / 2);
        }
    }
    /// A packet was overtaken by a later one.
    pub(super) fn overtaken(&mut self) {
        self.overtaken = true;
    }
    /// The round trip is over; `explained` if a router reported what is lost.
    pub(super) fn next_round(&mut self, explained: bool) {
        let count = match (explained, self.overtaken) {
            (true, _) => REPORTED,
            (false, true) => 0.0,
            (false, false) => self.count,
        };
        self.sum = (self.sum + count).clamp(0.0, CERTAIN);
        (self.compared, self.count, self.overtaken) = (0, 0.0, false);
        self.likely = !self.is_alike() && self.sum >= if self.likely { CERTAIN / 4.0 } else { CERTAIN / 2.0 };
    }
    /// Packets are lost where a queue is full.
    pub(super) fn is_certain(&self) -> bool {
        self.sum >= CERTAIN
    }
    /// It may be so: half of a sign where delays differ, until it has fallen to a quarter or they do not.
    pub(super) fn is_likely(&self) -> bool {
        self.likely
    }
    /// Most of the last comparisons found the same delay, so that they say nothing.
    pub(super) fn is_alike(&self) -> bool {
        2 * self.alike > self.last
    }
    /// Begins again.
    pub(super) fn forget(&mut self) {
        (self.sum, self.likely) = (0.0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The highest sum in `packets` packets with `delay_us` each, 100 a round trip; `lost` says which are lost.
    fn highest(packets: u32, mut packet: impl FnMut(u32) -> (f64, bool)) -> f64 {
        let (mut queue, mut highest, mut missing) = (Comparison::default(), 0.0_f64, false);
        for number in 0..packets {
            let (delay_us, lost) = packet(number);
            if !lost {
                queue.take(number, Time::micros(40_000 + delay_us as u64), missing);
            }
            missing = lost;
            if number % 100 == 99 {
                queue.next_round(false);
                highest = highest.max(queue.sum);
            }
        }
        highest
    }

    /// A sawtooth of 1000 packets between half full and full, 0 to 10 ms, that loses three packets at its top.
    #[test]
    fn losses_at_the_top_of_a_sawtooth_are_a_sign() {
        let sawtooth = |number: u32| (f64::from(number % 1000) * 10.0, [990, 994, 998].contains(&(number % 1000)));
        assert_eq!(highest(20_000, sawtooth), CERTAIN);
    }

    /// A full queue of 5 ms, a tenth of the time emptier, and 1 % lost while it is full.
    #[test]
    fn losses_of_a_queue_that_is_nearly_always_full_are_a_sign() {
        let mut rng = Rng::stream(1, "full");
        let standing = |number: u32| {
            let dip = number % 2000 < 200;
            (if dip { 3000.0 } else { 5000.0 }, !dip && rng.uniform() < 0.01)
        };
        assert_eq!(highest(200_000, standing), CERTAIN);
    }

    /// A million packets each: losses of 2 % at delays of any distribution, also ones that last longer than round trips, are none.
    #[test]
    fn losses_apart_from_delays_are_no_sign() {
        let mut rng = Rng::stream(1, "apart");
        let rare = |rng: &mut Rng| if rng.uniform() < 0.05 { 20_000.0 } else { 0.0 };
        let often = |rng: &mut Rng| if rng.uniform() < 0.95 { 20_000.0 } else { 0.0 };
        let even = |rng: &mut Rng| 20_000.0 * rng.uniform();
        for delay in [rare, often, even] {
            let most = highest(1_000_000, |_| (delay(&mut rng), rng.uniform() < 0.02));
            assert!(most < CERTAIN, "{most}");
        }
    }

    /// Levels that last 2 to 100 round trips, a slow rise with a fast fall, and a path that gets longer once; 2 % are lost.
    #[test]
    fn delays_that_last_are_no_sign() {
        let mut rng = Rng::stream(1, "last");
        for span in [200, 1000, 1500, 3000, 10_000] {
            let mut level = 0.0;
            let most = highest(1_000_000, |number| {
                if number % span == 0 {
                    level = 20_000.0 * rng.uniform();
                }
                (level, rng.uniform() < 0.02)
            });
            assert!(most < CERTAIN, "levels of {span} packets: {most}");
            let rise = |number: u32| f64::from(number % span) / f64::from(span) * 20_000.0;
            let most = highest(1_000_000, |number| (rise(number), rng.uniform() < 0.02));
            assert!(most < CERTAIN, "rises of {span} packets: {most}");
        }
        for _ in 0..100 {
            let most = highest(20_000, |number| (if number < 10_000 { 0.0 } else { 9_000.0 }, rng.uniform() < 0.02));
            assert!(most < CERTAIN, "{most}");
        }
    }

    /// A sawtooth of 10 ms as above, beside delays of hosts: 10 ms in the mean, exponential.
    #[test]
    fn a_sawtooth_beside_delays_of_hosts_is_a_sign() {
        let mut rng = Rng::stream(1, "hosts");
        let noisy = |number: u32| {
            let tooth = number % 1000;
            (f64::from(tooth) * 10.0 + rng.exponential(10_000.0), [990, 994, 998].contains(&tooth))
        };
        assert_eq!(highest(30_000, noisy), CERTAIN);
    }

    #[test]
    fn what_routers_report_and_what_overtakes_is_no_sign() {
        let mut queue = Comparison::default();
        let mut lossy_round = |overtaken: bool, explained: bool| {
            (0..2048).for_each(|number| queue.take(number, Time::millis(40), false));
            (0..3).for_each(|_| queue.take(1, Time::millis(50), true));
            if overtaken {
                queue.overtaken();
            }
            queue.next_round(explained);
            queue.sum
        };
        // What one side of a loss counts if all 64 others took shorter.
        let side = OF_LOG * libm::log(2.0 * 64.5 / 65.0) / 2.0;
        let mut round = |overtaken, explained| lossy_round(overtaken, explained) / side;
        let is = |sides: f64, expected: f64| assert!((sides - expected).abs() < 1e-9, "{sides} of {expected}");
        is(round(false, false), 2.0); // two are longer than earlier ones
        is(round(false, false), 6.0); // the same, and two are longer than later ones
        is(round(true, false), 6.0);
        is(round(false, false), 10.0);
        is(round(true, true), 10.0 + REPORTED / side);
    }
}
