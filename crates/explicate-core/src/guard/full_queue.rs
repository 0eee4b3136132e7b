//! Whether packets are lost where a queue that no router answers for is full.
//!
//! A drop-tail queue loses packets while it is full, so the packet behind a lost one waited longer than most. Losses of the air
//! come at any delay. The packet behind each lost one is compared with an earlier packet and with a later one. Each of the two
//! counts +1 if the packet took longer by more than [`APART`], [`SHORTER`] if it took less by that, else nothing.
//!
//! Where losses come at any time, longer is as likely as shorter, whatever the course of the delays: what a loss has before it,
//! another one has after it, so a path that gets longer counts for nothing. The sum never falls below zero. It reaches [`CERTAIN`]
//! with probability 1.618^-30 = exp(-14) a loss if losses are independent and the two comparisons of a loss, at worst, find the
//! same: 1.618 solves x/2 + x^-2/2 = 1 (Lundberg's bound). Delays that last make losses dependent, so at most [`MOST`] of a round
//! trip count. The sum grows where two of three comparisons find a longer delay behind a loss.
//!
//! At half of [`CERTAIN`] a full queue is likely, with the root of that probability, where most of the last comparisons found delays
//! that differ: a queue makes them differ. It is so until the sum has fallen to a quarter or delays are alike. Delays that are alike
//! contradict nothing: the sum stays as it is.
//!
//! Not compared are round trips in which packets overtake each other, as their gaps are no losses, and packets behind which an
//! answering router reports a drop. What XTCP's and VCP's routers report by flags counts against.
//!
//! A queue that is always full has delays that are all alike; dips of the window then make some differ (`dip.rs`). What cannot be
//! seen: buffers of less than [`APART`]; a policer.

use crate::units::Time;

/// What delays differ by at least: those of hosts vary by as much.
const APART: Micros = 500;
/// What a loss counts that a shorter delay follows.
const SHORTER: f64 = -2.0;
/// The sum that is a sign.
const CERTAIN: f64 = 60.0;
/// Losses of a round trip that count at most.
const MOST: u32 = 2;
/// Packets that are kept for comparison, and the binary logarithm of how many one is taken of: 64 of 1024, a period of TCP's
/// window at 52 segments (3/8 of its square), and three times as many as are lost of 1024 at 2 %.
const KEPT: usize = 64;
const ONE_IN: u32 = 4;
/// Comparisons after which half of the older ones are forgotten.
const LAST: u32 = 16;

/// Delays of packets, and how they compare with those of packets behind lost ones.
pub(super) struct Comparison {
    /// Round-trip times without known waits, of packets taken in turn; zero for none.
    earlier: [Micros; KEPT],
    /// Those of packets behind lost ones, each of which is compared with the packet that is kept next in its place; zero for none.
    behind: [Micros; KEPT],
    taken: usize,
    asked: usize,
    /// Of this round trip: losses that were compared, what they count, and whether packets overtook each other.
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

impl Default for Comparison {
    fn default() -> Comparison {
        let [earlier, behind] = [[0; KEPT]; 2];
        Comparison {
            earlier,
            behind,
            taken: 0,
            asked: 0,
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
            self.asked = (self.asked + 1) % KEPT;
            let (earlier, behind) = (self.earlier[self.asked], &mut self.behind[self.asked]);
            if earlier > 0 && *behind == 0 {
                *behind = rtt;
                self.compared += 1;
                self.compare(rtt, earlier);
            }
        }
        // Spread over the packets without regard to their places in bursts (Weyl's sequence).
        if number.wrapping_mul(0x9E37_79B9) >> (32 - ONE_IN) == 0 {
            self.taken = (self.taken + 1) % KEPT;
            self.earlier[self.taken] = rtt;
            match core::mem::take(&mut self.behind[self.taken]) {
                0 => (),
                behind => self.compare(behind, rtt),
            }
        }
    }
    /// Compares the packet behind a lost one with another.
    fn compare(&mut self, behind: Micros, other: Micros) {
        if behind > other.saturating_add(APART) {
            self.count += 1.0;
        } else if other > behind.saturating_add(APART) {
            self.count += SHORTER;
        } else {
            self.alike += 1;
        }
        self.last += 1;
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
            (true, _) => MOST as f64 * SHORTER,
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
        assert_eq!(lossy_round(false, false), 2.0, "two are longer than earlier ones");
        assert_eq!(lossy_round(false, false), 6.0, "the same, and two are longer than later ones");
        assert_eq!(lossy_round(true, false), 6.0);
        assert_eq!(lossy_round(false, false), 10.0);
        assert_eq!(lossy_round(true, true), 6.0);
    }
}
