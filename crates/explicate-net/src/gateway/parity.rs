//! Parity of blocks of datagrams: two lost ones of a block are repaired without a round trip.
//!
//! Two parity datagrams P and Q follow a block of at most [`BLOCK`], and of fewer the more datagrams are lost ([`length`]), as the peer
//! measures it ([`Losses`]), up to 1.5 times what the air may lose (`air_loss`). Over the bytes of a datagram, its length (two bytes) before its
//! contents, P is their sum and Q the sum of 2^(n - 1 - i) d_i in the field of 256 elements with the polynomial x^8 + x^4 + x^3 +
//! x^2 + 1 (as RAID 6; Plank, Software: Practice and Experience 27, 1997).

use std::collections::VecDeque;

use explicate_core::wire::{Congestion, Format, Packet};

use super::shim;

/// Most datagrams of a block.
pub const BLOCK: u8 = 40;
/// Datagrams of the shortest block: parity takes a fifth of the line.
const SHORTEST: u8 = 8;
/// So many datagrams of a block with its parity are lost on average, where it is shorter than the longest: more than two then are in 2.3 % of
/// the blocks, if each is lost by chance.
const LOST: f64 = 0.6;
/// Parity follows losses up to so many times what the air may lose beyond repair. Of losses of 5 % it leaves 1.2 % then, by default (air_loss
/// 2 %): less than three quarters of that, which the guard takes for the air's for days. Of 8 % it leaves 3.7 %, which are a sign within seconds.
const FOLLOWED: f64 = 1.5;
/// A measured loss weighs the last datagrams, so many about; at first fewer.
const MEASURED: (u32, u32) = (64, 512);
/// More than so many in succession are an outage, which no parity repairs.
const OUTAGE: u32 = 64;
/// Datagrams that are kept for repairs. QUIC takes one for a duplicate that is older than 128 packets.
const KEPT: usize = 120;
/// Parity datagrams that are kept.
const PARITIES: usize = 8;
/// Longest datagram that is covered.
const LONGEST: usize = 2048;

/// The product with 2.
fn twice(x: u8) -> u8 {
    (x << 1) ^ (x >> 7).wrapping_mul(0x1d)
}

/// A product in the field.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 != 0 {
            product ^= a;
        }
        (a, b) = (twice(a), b >> 1);
    }
    product
}

/// The inverse: x^254.
fn inverse(x: u8) -> u8 {
    (0..253).fold(x, |power, _| times(power, x))
}

/// 2^n.
fn power(n: u8) -> u8 {
    (0..n).fold(1, |x, _| twice(x))
}

/// Multiplies each byte by 2, and adds a datagram.
fn horner(sum: &mut Vec<u8>, datagram: Option<&[u8]>) {
    sum.iter_mut().for_each(|x| *x = twice(*x));
    add(sum, datagram.unwrap_or_default());
}

/// Adds a datagram, with its length before it.
fn add(sum: &mut Vec<u8>, datagram: &[u8]) {
    if datagram.is_empty() {
        return;
    }
    if sum.len() < datagram.len() + 2 {
        sum.resize(datagram.len() + 2, 0);
    }
    let length = (datagram.len() as u16).to_be_bytes();
    sum.iter_mut().zip(length.iter().chain(datagram)).for_each(|(a, b)| *a ^= b);
}

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The sum.
    P = 1,
    /// The weighted sum.
    Q = 2,
}

/// A parity datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parity {
    kind: Kind,
    /// Number of the block's first datagram, and of its datagrams.
    first: u32,
    count: u8,
    bytes: Vec<u8>,
}

impl Parity {
    /// Its packet, and its bytes with room for the headers.
    pub fn datagram(&self, tunnel: u32, ip_headers: usize) -> (Packet, Vec<u8>) {
        let mut bytes = vec![0; shim::LEN];
        bytes.extend_from_slice(&self.bytes[2..]);
        let mut packet = shim::packet(tunnel, Congestion::new(Format::MINIMAL), ip_headers, self.bytes.len() - 2);
        packet.transport.set_segment(self.first);
        let [high, low] = [self.bytes[0], self.bytes[1]];
        packet.transport.set_window(u32::from_be_bytes([self.kind as u8, self.count, high, low]));
        (packet, bytes)
    }
    /// Bytes of UDP's payload.
    pub fn length(&self) -> usize {
        shim::LEN + self.bytes.len() - 2
    }
    /// Whether a packet carries parity.
    pub fn is_in(packet: &Packet) -> bool {
        packet.transport.window() >> 16 != 0
    }
    /// Reads one.
    fn parse(packet: &Packet, contents: &[u8]) -> Option<Parity> {
        let [kind, count, high, low] = packet.transport.window().to_be_bytes();
        let kind = [Kind::P, Kind::Q].into_iter().find(|known| *known as u8 == kind)?;
        if !(1..=BLOCK).contains(&count) || contents.is_empty() || contents.len() > LONGEST {
            return None;
        }
        let mut bytes = vec![high, low];
        bytes.extend_from_slice(contents);
        Some(Parity { kind, first: packet.transport.segment(), count, bytes })
    }
}

/// Datagrams of a block where this share of all is lost.
pub fn length(loss: f64) -> u8 {
    (LOST / loss.max(1e-3) - 2.0).round().clamp(SHORTEST as f64, BLOCK as f64) as u8
}

/// Datagrams of a block where this share of all is lost, and the air may lose so many beyond repair. Parity follows no more than `FOLLOWED`
/// allows: it would hide the losses of a full queue from TCP's law, and add to it.
pub fn block(lost: f64, air_loss: f64) -> u8 {
    length(lost.min(FOLLOWED * air_loss))
}

/// The share of datagrams with successive numbers that is lost, by those that arrive.
#[derive(Default)]
pub struct Losses {
    newest: Option<u32>,
    count: u32,
    share: f64,
}

impl Losses {
    /// A datagram with this number arrived.
    pub fn arrive(&mut self, number: u32) {
        let ahead = self.newest.map_or(1, |newest| number.wrapping_sub(newest) as i32);
        let (least, most) = MEASURED;
        self.count = (self.count + 1).clamp(least, most);
        let weight = 1.0 / self.count as f64;
        if ahead <= 0 && ahead > -(KEPT as i32) {
            // It was taken for a lost one.
            self.share = (self.share - weight).max(0.0);
            return;
        }
        self.newest = Some(number);
        let lost = (ahead.max(1) as u32 - 1).min(OUTAGE);
        for _ in 0..lost {
            self.share += weight * (1.0 - self.share);
        }
        self.share *= 1.0 - weight;
    }
    /// The share.
    pub fn share(&self) -> f64 {
        self.share
    }
}

/// Builds the parity of a block.
#[derive(Default)]
pub struct Block {
    first: u32,
    count: u8,
    p: Vec<u8>,
    q: Vec<u8>,
}

impl Block {
    /// Adds a datagram; the parity if the block has `length` then.
    pub fn add(&mut self, number: u32, contents: &[u8], length: u8) -> Option<[Parity; 2]> {
        if contents.len() > LONGEST {
            return None;
        }
        if self.count == 0 {
            self.first = number;
        }
        self.count += 1;
        add(&mut self.p, contents);
        horner(&mut self.q, Some(contents));
        if self.count >= length { self.finish() } else { None }
    }
    /// The parity of what was added since the last one.
    pub fn finish(&mut self) -> Option<[Parity; 2]> {
        let Block { first, count, p, q } = std::mem::take(self);
        let parity = |kind, bytes| Parity { kind, first, count, bytes };
        (count > 0).then(|| [parity(Kind::P, p), parity(Kind::Q, q)])
    }
    /// Datagrams that are without parity.
    pub fn count(&self) -> u8 {
        self.count
    }
}

/// What is kept of what arrived.
#[derive(Default)]
pub struct Repair {
    kept: VecDeque<(u32, Vec<u8>)>,
    parities: VecDeque<Parity>,
    /// Datagrams that were repaired.
    pub repaired: u64,
    /// Blocks with more losses than their parity repairs.
    pub beyond: u64,
}

impl Repair {
    /// Forgets what arrived: numbers begin anew.
    pub fn start_anew(&mut self) {
        self.kept.clear();
        self.parities.clear();
    }
    /// A datagram arrived that parity covers.
    pub fn keep(&mut self, number: u32, contents: &[u8]) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((number, contents.to_vec()));
    }
    /// Parity arrived: the datagrams that it repairs.
    pub fn take(&mut self, packet: &Packet, contents: &[u8]) -> Vec<Vec<u8>> {
        let Some(parity) = Parity::parse(packet, contents) else { return Vec::new() };
        let other = self
            .parities
            .iter()
            .position(|p| (p.first, p.count) == (parity.first, parity.count) && p.kind != parity.kind);
        let other = other.and_then(|at| self.parities.remove(at));
        let (first, last) = (parity.first, parity.kind == Kind::Q);
        let found = self.repair(&parity, other.as_ref());
        match found {
            Some(found) => {
                self.repaired += found.len() as u64;
                for (index, contents) in &found {
                    self.keep(first.wrapping_add(*index as u32), contents);
                }
                found.into_iter().map(|(_, contents)| contents).collect()
            }
            None => {
                self.beyond += last as u64;
                if other.is_none() {
                    if self.parities.len() == PARITIES {
                        self.parities.pop_front();
                    }
                    self.parities.push_back(parity);
                }
                Vec::new()
            }
        }
    }

    /// The missing datagrams of a block with their places; `None` if they are too many.
    fn repair(&self, parity: &Parity, other: Option<&Parity>) -> Option<Vec<(u8, Vec<u8>)>> {
        let count = parity.count as usize;
        let mut here: Vec<Option<&[u8]>> = vec![None; count];
        for (number, contents) in &self.kept {
            let index = number.wrapping_sub(parity.first) as usize;
            if index < count {
                here[index] = Some(contents);
            }
        }
        let missing: Vec<u8> = (0..parity.count).filter(|i| here[*i as usize].is_none()).collect();
        // The parity less what is here leaves what is missing.
        let rest = |parity: &Parity| {
            let mut sum = Vec::new();
            for datagram in &here {
                match parity.kind {
                    Kind::P => add(&mut sum, datagram.unwrap_or_default()),
                    Kind::Q => horner(&mut sum, *datagram),
                }
            }
            let length = sum.len().max(parity.bytes.len());
            sum.resize(length, 0);
            sum.iter_mut().zip(&parity.bytes).for_each(|(a, b)| *a ^= b);
            sum
        };
        let weight = |index: u8| power(parity.count - 1 - index);
        let whole = |index: u8, bytes: Vec<u8>| {
            let length = u16::from_be_bytes([bytes[0], bytes[1]]) as usize;
            let contents = bytes.get(2..2 + length).filter(|contents| !contents.is_empty())?;
            Some((index, contents.to_vec()))
        };
        match (missing.as_slice(), other) {
            ([], _) => Some(Vec::new()),
            ([x], _) => {
                let mut bytes = rest(parity);
                if parity.kind == Kind::Q {
                    let by = inverse(weight(*x));
                    bytes.iter_mut().for_each(|b| *b = times(*b, by));
                }
                whole(*x, bytes).map(|found| vec![found])
            }
            ([x, y], Some(other)) => {
                let (p, q) = if parity.kind == Kind::P { (parity, other) } else { (other, parity) };
                let (mut p, mut q) = (rest(p), rest(q));
                let length = p.len().max(q.len());
                p.resize(length, 0);
                q.resize(length, 0);
                let (at_x, at_y) = (weight(*x), weight(*y));
                let by = inverse(at_x ^ at_y);
                let first: Vec<u8> = p.iter().zip(&q).map(|(p, q)| times(q ^ times(*p, at_y), by)).collect();
                let second = p.iter().zip(&first).map(|(p, x)| p ^ x).collect();
                Some(vec![whole(*x, first)?, whole(*y, second)?])
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(number: u32) -> Vec<u8> {
        (0..400 + 37 * (number as usize % 5)).map(|i| (i as u32 * 31 + number * 7) as u8).collect()
    }

    /// What a peer repairs if these of a block of `count` and perhaps one of the parities are lost.
    fn without(count: u32, lost: &[u32], parity_lost: Option<usize>) -> (Vec<Vec<u8>>, Repair) {
        let (mut block, mut repair, mut full) = (Block::default(), Repair::default(), None);
        for number in 0..count {
            full = block.add(number, &contents(number), BLOCK).or(full);
            if !lost.contains(&number) {
                repair.keep(number, &contents(number));
            }
        }
        let parities = full.or_else(|| block.finish()).unwrap();
        assert_eq!(block.count(), 0);
        let mut repaired = Vec::new();
        for (i, parity) in parities.iter().enumerate() {
            if parity_lost != Some(i) {
                let (packet, mut wire) = parity.datagram(1, 28);
                shim::write(&packet, &mut wire);
                let read = shim::read(&wire).unwrap();
                assert!(Parity::is_in(&read));
                repaired.extend(repair.take(&read, &wire[shim::LEN..]));
            }
        }
        (repaired, repair)
    }

    /// Whatever is written over a byte of parity, it is refused or repairs something else, without a panic.
    #[test]
    fn damaged_parity_is_refused_or_repairs_nonsense() {
        let mut block = Block::default();
        (0..3).for_each(|number| assert!(block.add(number, &contents(number), BLOCK).is_none()));
        let [parity, _] = block.finish().unwrap();
        let (packet, mut bytes) = parity.datagram(1, 28);
        shim::write(&packet, &mut bytes);
        let read = |bytes: &[u8]| {
            let packet = shim::read(bytes).ok()?;
            let mut repair = Repair::default();
            (0..2).for_each(|number| repair.keep(number, &contents(number)));
            repair.take(&packet, &bytes[shim::LEN..]).pop()
        };
        assert_eq!(read(&bytes), Some(contents(2)));
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                read(&damaged);
            }
        }
        // Neither P nor Q; of no datagrams, of too many.
        let kind = shim::LEN - 8;
        for (at, value) in [(kind, 0), (kind, 7), (kind + 1, 0), (kind + 1, BLOCK + 1)] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            assert_eq!(read(&damaged), None, "{value} at {at}");
        }
    }

    #[test]
    fn blocks_are_short_where_much_is_lost() {
        assert_eq!([0.0, 0.01, 0.02, 0.05, 0.5, f64::NAN].map(length), [40, 40, 28, 10, 8, 40]);
        let mut block = Block::default();
        let full: Vec<u32> = (0..30).filter(|number| block.add(*number, &contents(*number), 10).is_some()).collect();
        assert_eq!(full, [9, 19, 29]);
    }

    /// Numbers pass 2^32, every twentieth is lost, some come late, and twice.
    #[test]
    fn the_share_of_lost_datagrams_is_measured_and_late_ones_are_not_lost() {
        let mut losses = Losses::default();
        let mut arrive = |from: u32, numbers: u32, lost: u32| {
            for i in (0..numbers).filter(|i| i % lost != 0) {
                losses.arrive(from.wrapping_add(i));
            }
            losses.share()
        };
        let start = u32::MAX - 700;
        assert_eq!(arrive(start, 1, 2), 0.0);
        let share = arrive(start, 3000, 20);
        assert!((share - 0.05).abs() < 0.002, "{share}");
        let share = arrive(start.wrapping_add(3000), 3000, u32::MAX);
        assert!(share < 0.001, "{share}");
        let outage = arrive(start.wrapping_add(1_000_000), 1, 2);
        assert!(outage < 0.13, "{outage}");
        let mut late = Losses::default();
        for i in (0..5000).map(|i| if i % 10 == 9 { i - 5 } else { i }) {
            late.arrive(i);
        }
        // One that came twice stands for one that was lost.
        assert!(late.share() < 0.01, "{}", late.share());
    }

    #[test]
    fn the_field_is_one() {
        for x in 1..=255 {
            assert_eq!(times(x, inverse(x)), 1, "{x}");
        }
        assert_eq!((times(0x80, 2), power(8)), (0x1d, 0x1d));
    }

    #[test]
    fn two_losses_of_a_block_are_repaired_and_three_are_not() {
        for count in [1, 2, 7, BLOCK as u32] {
            for x in 0..count {
                for (parity_lost, name) in [(None, "none"), (Some(0), "P"), (Some(1), "Q")] {
                    assert_eq!(without(count, &[x], parity_lost).0, [contents(x)], "{x} of {count}, and {name}");
                }
                for y in x + 1..count {
                    assert_eq!(without(count, &[x, y], None).0, [contents(x), contents(y)], "{x}, {y} of {count}");
                    assert!(without(count, &[x, y], Some(0)).0.is_empty());
                }
            }
        }
        let (repaired, repair) = without(BLOCK as u32, &[1, 2, 3], None);
        assert!(repaired.is_empty() && (repair.beyond, repair.repaired) == (1, 0));
        assert!(without(9, &[], None).0.is_empty());
    }
}
