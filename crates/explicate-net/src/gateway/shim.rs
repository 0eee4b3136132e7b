//! What stands before QUIC in each datagram between gateways, and the parity that repairs single losses.
//!
//! A datagram begins with the headers of the core ([`datagram`]), so that `explicated router` finds the congestion header where it does in
//! other explicit packets. Fields of the transport header:
//!
//! | byte | a datagram of QUIC | parity |
//! | --- | --- | --- |
//! | 2-3 | 0 | datagrams that it covers |
//! | 4-7 | number of the tunnel | the same |
//! | 8-11 | 0 | number of the first one |
//! | 12-15 | number of the datagram | 0 |
//! | 16-19 | 0 | exclusive or of the lengths |
//!
//! Reverse_Feedback is the sum of all Delta_Throughput that arrived in answered datagrams, modulo 2^32 (as XCP-r).
//!
//! *Parity.* After [`BLOCK`] datagrams, or when the tunnel falls idle, one more follows: the exclusive or of their lengths and
//! contents. The peer repairs one lost datagram of a block by it, without a round trip. QUIC remembers the last 128 packets to find
//! duplicates, so that a repaired datagram must not be older.

use std::collections::VecDeque;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{
    CONGESTION_LEN, Congestion, Format, NEXT_TRANSPORT, Packet, SackRanges, TRANSPORT_LEN, WireError,
};

/// Bytes before QUIC.
pub const LEN: usize = CONGESTION_LEN + TRANSPORT_LEN;
/// Datagrams of a block.
pub const BLOCK: u16 = 24;
/// Datagrams that are kept for repairs.
const KEPT: usize = 128;
/// Longest datagram that parity covers.
const LONGEST: usize = 2048;
/// Datagrams shorter than this carry acknowledgements; they ask for nothing, and are not covered.
pub const SHORT: usize = 300;

/// A packet with the headers of a datagram.
pub fn packet(tunnel: u32, congestion: Congestion, ip_len: usize) -> Packet {
    let mut packet = Packet { ip_len: ip_len.min(u16::MAX as usize) as u16, congestion, ..Packet::EMPTY };
    packet.congestion.0[0] = NEXT_TRANSPORT;
    packet.transport.set_flow(tunnel);
    packet
}

/// Writes the headers of a packet before its contents, in place.
pub fn write(packet: &Packet, bytes: &mut [u8]) {
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(packet, &SackRanges::NONE, &mut headers);
    bytes[..length].copy_from_slice(&headers[..length]);
}

/// Reads the headers of a datagram; its contents follow at [`LEN`].
pub fn read(bytes: &[u8]) -> Result<Packet, WireError> {
    let read = datagram::read(bytes)?;
    if read.payload != LEN || !read.packet.congestion.is_present() {
        return Err(WireError::Length);
    }
    Ok(read.packet)
}

/// Builds parity.
#[derive(Default)]
pub struct Block {
    first: u32,
    count: u16,
    /// Of the lengths, and of the contents.
    length: u16,
    bytes: Vec<u8>,
}

impl Block {
    /// Adds a datagram; the parity if the block is full.
    pub fn add(&mut self, number: u32, contents: &[u8]) -> Option<Parity> {
        if contents.len() > LONGEST {
            return None;
        }
        if self.count == 0 {
            self.first = number;
        }
        self.count += 1;
        self.length ^= contents.len() as u16;
        if self.bytes.len() < contents.len() {
            self.bytes.resize(contents.len(), 0);
        }
        self.bytes.iter_mut().zip(contents).for_each(|(a, b)| *a ^= b);
        if self.count == BLOCK { self.finish() } else { None }
    }
    /// The parity of what was added since the last one.
    pub fn finish(&mut self) -> Option<Parity> {
        let Block { first, count, length, bytes } = std::mem::take(self);
        (count > 0).then_some(Parity { first, count, length, bytes })
    }
    /// Whether datagrams are without parity.
    pub fn is_open(&self) -> bool {
        self.count > 0
    }
}

/// The parity of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parity {
    first: u32,
    count: u16,
    length: u16,
    bytes: Vec<u8>,
}

impl Parity {
    /// Its contents as a datagram, and its packet.
    pub fn datagram(&self, tunnel: u32, ip_headers: usize) -> (Packet, Vec<u8>) {
        let mut bytes = vec![0; LEN];
        bytes.extend_from_slice(&self.bytes);
        let mut packet = packet(tunnel, Congestion::new(Format::Minimal), ip_headers + bytes.len());
        packet.transport.0[2..4].copy_from_slice(&self.count.to_be_bytes());
        packet.transport.set_segment(self.first);
        packet.transport.set_window(self.length as u32);
        (packet, bytes)
    }
    /// Reads one.
    fn parse(packet: &Packet, contents: &[u8]) -> Option<Parity> {
        let count = u16::from_be_bytes([packet.transport.0[2], packet.transport.0[3]]);
        let good = (1..=BLOCK).contains(&count) && contents.len() <= LONGEST;
        good.then(|| Parity {
            first: packet.transport.segment(),
            count,
            length: packet.transport.window() as u16,
            bytes: contents.to_vec(),
        })
    }
}

/// What arrived from a peer.
#[derive(Default)]
pub struct Arrivals {
    /// Sum of the feedback, bytes/s modulo 2^32.
    pub sum: u32,
    kept: VecDeque<(u32, Vec<u8>)>,
    /// Datagrams that were repaired.
    pub repaired: u64,
    /// Blocks with more losses than parity repairs.
    pub beyond: u64,
}

impl Arrivals {
    /// A datagram arrived. Returns whether QUIC is to have its contents, and one that it repairs.
    pub fn take(&mut self, packet: &Packet, contents: &[u8]) -> (bool, Option<Vec<u8>>) {
        if packet.congestion.is_standard() && packet.mark().is_set() {
            self.sum = self.sum.wrapping_add(packet.congestion.delta_throughput() as u32);
        }
        if packet.transport.0[2..4] != [0, 0] {
            let parity = Parity::parse(packet, contents);
            return (false, parity.and_then(|parity| self.repair(&parity)));
        }
        if contents.len() >= SHORT {
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back((packet.transport.packet_number(), contents.to_vec()));
        }
        (true, None)
    }

    /// The datagram of a block that is missing, if it is one.
    fn repair(&mut self, parity: &Parity) -> Option<Vec<u8>> {
        let Parity { first, count, mut length, bytes } = parity.clone();
        let (mut bytes, mut here) = (bytes, 0);
        let mut seen = [false; BLOCK as usize];
        for (number, contents) in &self.kept {
            let index = number.wrapping_sub(first);
            if index >= count as u32 || std::mem::replace(&mut seen[index as usize], true) {
                continue;
            }
            here += 1;
            length ^= contents.len() as u16;
            bytes.iter_mut().zip(contents).for_each(|(a, b)| *a ^= b);
        }
        if here + 1 != count {
            self.beyond += (here + 1 < count) as u64;
            return None;
        }
        if length as usize > bytes.len() {
            return None;
        }
        bytes.truncate(length as usize);
        self.repaired += 1;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(number: u32) -> Vec<u8> {
        (0..400 + 37 * (number as usize % 5)).map(|i| (i as u32 * 31 + number * 7) as u8).collect()
    }

    /// What a peer comes to if these of a block are lost.
    fn without(lost: &[u32]) -> (Option<Vec<u8>>, Arrivals) {
        let (mut block, mut arrivals, mut parity) = (Block::default(), Arrivals::default(), None);
        for number in 100..100 + BLOCK as u32 {
            parity = block.add(number, &contents(number)).or(parity);
            if !lost.contains(&number) {
                let mut packet = packet(1, Congestion::new(Format::Minimal), 1500);
                packet.transport.set_packet_number(number);
                assert_eq!(arrivals.take(&packet, &contents(number)), (true, None));
            }
        }
        let (packet, bytes) = parity.unwrap().datagram(1, 28);
        let mut wire = bytes;
        write(&packet, &mut wire);
        let read = read(&wire).unwrap();
        let (deliver, repaired) = arrivals.take(&read, &wire[LEN..]);
        assert!(!deliver);
        (repaired, arrivals)
    }

    #[test]
    fn one_loss_is_repaired_and_two_are_not() {
        for lost in [100, 107, 123] {
            assert_eq!(without(&[lost]).0, Some(contents(lost)));
        }
        assert_eq!(without(&[]).0, None);
        let (repaired, arrivals) = without(&[101, 102]);
        assert_eq!((repaired, arrivals.beyond, arrivals.repaired), (None, 1, 0));
    }

    #[test]
    fn feedback_counts_where_a_router_has_answered() {
        let mut arrivals = Arrivals::default();
        let mut of = |delta: i32, answered: bool| {
            let mut packet = packet(1, Congestion::new(Format::Standard), 1500);
            packet.congestion.set_delta_throughput(delta);
            if answered {
                packet.set_mark(packet.mark().after(explicate_core::units::Time::ZERO));
            }
            arrivals.take(&packet, &[0; 20]);
            arrivals.sum as i32
        };
        assert_eq!([of(500, true), of(9000, false), of(-700, true)], [500, 500, -200]);
    }

    #[test]
    fn headers_come_back_and_nonsense_is_refused() {
        let mut sent = packet(77, Congestion::new(Format::Standard), 1500);
        sent.transport.set_packet_number(9);
        let mut bytes = vec![0; LEN + 3];
        write(&sent, &mut bytes);
        let back = read(&bytes).unwrap();
        assert_eq!((back.transport.flow(), back.transport.packet_number()), (77, 9));
        assert!(read(&bytes[..LEN - 1]).is_err());
        assert!(read(&bytes[CONGESTION_LEN..]).is_err(), "no congestion header");
        for i in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[i] = value;
                if let Ok(packet) = read(&damaged) {
                    Arrivals::default().take(&packet, &damaged[LEN..]);
                }
            }
        }
    }
}
