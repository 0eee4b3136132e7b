//! The promises of what a gateway reads: datagrams of peers with their parity, prefaces of streams, packets of the site.

use explicate_net::gateway::parity::{Parity, Repair};
use explicate_net::gateway::preface::{self, Preface};
use explicate_net::gateway::{plain, shim};

/// Longest datagram: what an interface carries.
const LONGEST: usize = 1500;

/// Whatever the bytes, parsing answers. The input is a preface and then datagrams, each behind its length (two bytes), as they arrive
/// one after another: nothing is repaired that is longer than the parity.
pub(crate) fn gateway(bytes: &[u8]) -> u64 {
    let mut shape = 3;
    if let Some(first) = bytes.first_chunk::<{ preface::LEN }>()
        && let Ok(read) = Preface::parse(first)
    {
        assert_eq!(Preface::parse(&read.to_bytes()), Ok(read));
        shape += 1;
    }
    shape += 2 * plain::read(bytes).is_some() as u64;
    let (mut repair, mut rest, mut sum) = (Repair::default(), bytes, 0);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = (u16::from_be_bytes(*length) as usize % LONGEST).min(behind.len());
        let (datagram, next) = behind.split_at(length);
        rest = next;
        let Ok(packet) = shim::read(datagram) else { continue };
        let contents = &datagram[shim::LEN..];
        shim::add_feedback(&mut sum, &packet);
        shape = shape.wrapping_mul(31) + 1 + Parity::is_in(&packet) as u64;
        if Parity::is_in(&packet) {
            for repaired in repair.take(&packet, contents) {
                assert!(!repaired.is_empty() && repaired.len() <= LONGEST + 2);
                shape = shape.wrapping_mul(31) + 7;
            }
        } else {
            repair.keep(packet.transport.packet_number(), contents);
        }
    }
    shape
}
