//! Shares by numbers of flows: two classes divide a line so that each flow gets the same, whatever the numbers of
//! flows are, and one class may use what the other leaves.
//!
//! Every interval the share of a class becomes n_own / (n_own + n_other), with the numbers of their [`Flows`], whose
//! bytes are halved every second.
//!
//! With weights alone, a controller's capacity would be too small while the other class is idle. Its capacity is the
//! greater of its share and the part that the other class leaves: c max(share, 1 - r / c), where r is the departure
//! rate of the other class. r rises at once and falls by a moving average, so that controllers use free capacity only
//! when it has been free for a while.
//!
//! The scheduler is work-conserving (`class_scheduler.rs`). While one class is idle, the other has the whole line and
//! the whole capacity, as without classes.

use alloc::boxed::Box;

use crate::units::Time;
use crate::wire::Packet;

/// Time between two updates of the shares.
const EVERY: Time = Time::millis(100);
/// Number of updates after which the bytes of flows are halved.
const AGES: u32 = 10;
/// Weight of a new rate that is lower than the mean.
const WEIGHT: f64 = 0.5;
/// A class that uses less of the capacity than this counts as idle: connection set-up, ARP.
const LITTLE: f64 = 1e-3;
/// The least share of a class.
const LEAST: f64 = 0.02;
/// Packets up to this length do not count, bytes.
const SHORT: u16 = 128;
/// Entries of a table of flows, as a power of two.
const TABLE_BITS: u32 = 10;

/// The number of flows by what they send: n = (sum of b)^2 / (sum of b^2), with b the bytes of a flow, which is Jain's
/// index times the number of flows. Flows that send little count little. Bytes are in a table of 1024 entries by
/// the flow's number; flows may share an entry. Packets up to 128 bytes do not count, because most are acknowledgements.
pub struct Flows {
    bytes: Box<[f64]>,
    sum: f64,
    squares: f64,
}

impl Default for Flows {
    fn default() -> Flows {
        Flows { bytes: alloc::vec![0.0; 1 << TABLE_BITS].into_boxed_slice(), sum: 0.0, squares: 0.0 }
    }
}

impl Flows {
    /// A packet passes.
    #[inline]
    pub fn count(&mut self, packet: &Packet) {
        if packet.ip_len <= SHORT {
            return;
        }
        let (flow, length) = (packet.transport.flow(), f64::from(packet.ip_len));
        // Fibonacci hashing: consecutive numbers spread as well as random ones.
        let bytes = &mut self.bytes[(flow.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize];
        self.sum += length;
        self.squares += (2.0 * *bytes + length) * length;
        *bytes += length;
    }
    /// The number; one if none sends.
    pub fn number(&self) -> f64 {
        if self.squares > 0.0 { (self.sum * self.sum / self.squares).max(1.0) } else { 1.0 }
    }
    /// Halves the bytes so many times. Less than half a byte is nothing: the number does not depend on how small all are.
    pub fn age(&mut self, times: u64) {
        if times == 0 {
            return;
        }
        let kept = 1.0 / (1u64 << times.min(63)) as f64;
        for bytes in &mut self.bytes {
            let left = *bytes * kept;
            *bytes = if left < 0.5 { 0.0 } else { left };
        }
        self.sum = self.bytes.iter().sum();
        self.squares = self.bytes.iter().map(|bytes| bytes * bytes).sum();
    }
}

/// What a class gets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Part {
    /// Its share of the line while both have something to send.
    pub(super) share: f64,
    /// The part of the capacity for its controller and discipline.
    pub(super) capacity: f64,
}

/// The division of a line between two classes.
pub(super) struct Division {
    flows: [Flows; 2],
    /// Bytes that departed in this interval, and departure rates, bytes/s.
    sent: [u64; 2],
    rates: [f64; 2],
    began: Time,
    moves: u32,
    pub(super) due: Time,
}

impl Division {
    pub(super) fn new() -> Division {
        Division { flows: Default::default(), sent: [0; 2], rates: [0.0; 2], began: Time::ZERO, moves: 0, due: EVERY }
    }
    /// A packet of a class arrived.
    pub(super) fn arrived(&mut self, class: usize, packet: &Packet) {
        self.flows[class].count(packet);
    }
    /// Bytes of a class departed.
    pub(super) fn departed(&mut self, class: usize, bytes: u16) {
        self.sent[class] += bytes as u64;
    }
    /// The new parts of the classes; `capacity` is that of the line, bytes/s.
    pub(super) fn moved(&mut self, now: Time, capacity: f64) -> [Part; 2] {
        let seconds = now.since(self.began).as_secs_f64();
        for (rate, sent) in self.rates.iter_mut().zip(&mut self.sent) {
            let new = *sent as f64 / seconds.max(1e-9);
            *rate = new.max(*rate + WEIGHT * (new - *rate));
            *sent = 0;
        }
        (self.began, self.due) = (now, now + EVERY);
        let numbers = [self.flows[0].number(), self.flows[1].number()];
        self.moves += 1;
        if self.moves == AGES {
            self.moves = 0;
            self.flows.iter_mut().for_each(|flows| flows.age(1));
        }
        let first = (numbers[0] / (numbers[0] + numbers[1])).clamp(LEAST, 1.0 - LEAST);
        let taken = |class: usize| Some(self.rates[class] / capacity).filter(|r| *r > LITTLE).unwrap_or(0.0);
        let part = |share: f64, other: usize| Part { share, capacity: share.max(1.0 - taken(other)) };
        [part(first, 1), part(1.0 - first, 0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(flow: u32, length: u16) -> Packet {
        let mut packet = Packet { ip_len: length, ..Packet::EMPTY };
        packet.transport.set_flow(flow);
        packet
    }

    #[test]
    fn flows_count_by_what_they_send() {
        let mut division = Division::new();
        (0..300).for_each(|i| division.arrived(1, &data(i % 3, 1000)));
        assert!((division.flows[1].number() - 3.0).abs() < 1e-9, "three alike");
        (0..100).for_each(|i| division.arrived(1, &data(1000 + i, 100)));
        assert!((division.flows[1].number() - 3.0).abs() < 1e-9, "short packets");
        // Ten flows of 1000 bytes and three of 100,000: 310,000^2 / (3e10 + 10e6).
        (0..10).for_each(|i| division.arrived(1, &data(2000 + i, 1000)));
        assert!((division.flows[1].number() - 9.61e10 / 3.001e10).abs() < 1e-9, "{}", division.flows[1].number());
        let [own, other] = division.moved(Time::millis(100), 1e6);
        let share = 1.0 / (1.0 + 9.61e10 / 3.001e10);
        assert!((own.share - share).abs() < 1e-9 && (other.share + own.share - 1.0).abs() < 1e-9, "{own:?}");
        // No flow sends any more: after some seconds the counts are zero.
        (2..400).for_each(|i| {
            division.moved(Time::millis(100 * i), 1e6);
        });
        assert_eq!(division.moved(Time::secs(41), 1e6)[0].share, 0.5);
    }

    /// 64,000 B halved six times are as much as 1000 B.
    #[test]
    fn flows_that_stop_are_forgotten() {
        let mut flows = Flows::default();
        assert_eq!(flows.number(), 1.0, "none sends");
        (0..64).for_each(|_| flows.count(&data(1, 1000)));
        flows.age(6);
        flows.count(&data(2, 1000));
        assert_eq!(flows.number(), 2.0, "two alike");
        flows.age(u64::MAX);
        assert_eq!(flows.number(), 1.0, "none sends");
    }

    #[test]
    fn capacity_is_the_share_or_what_the_other_class_leaves() {
        let mut division = Division::new();
        let alone = division.moved(Time::millis(100), 1e6);
        assert_eq!(alone.map(|part| (part.share, part.capacity)), [(0.5, 1.0); 2]);
        // The second sends 20,000 bytes in 100 ms of a line of 1 MB/s: a fifth.
        division.departed(1, 20_000);
        let [own, other] = division.moved(Time::millis(200), 1e6);
        assert!((own.capacity - 0.8).abs() < 1e-9 && other.capacity == 1.0, "{own:?} {other:?}");
        // It stops: 200,000 B/s, then 100,000.
        let [own, _] = division.moved(Time::millis(300), 1e6);
        assert!((own.capacity - 0.9).abs() < 1e-9, "{own:?}");
        // It takes nine tenths, more than its share: the first class still gets its half.
        division.departed(1, 45_000);
        division.departed(1, 45_000);
        let [own, _] = division.moved(Time::millis(400), 1e6);
        assert_eq!(own, Part { share: 0.5, capacity: 0.5 });
    }

    #[test]
    fn neither_class_is_shut_out() {
        let mut division = Division::new();
        (0..20_000).for_each(|i| division.arrived(0, &data(i, 1500)));
        let [own, other] = division.moved(Time::millis(100), 1e6);
        assert!(own.share == 1.0 - LEAST && other.share >= LEAST - 1e-9, "{own:?} {other:?}");
    }
}
