//! Selects the interface through which a frame leaves.
//!
//! A router learns hardware addresses from the frames that it receives, like a bridge. In the lab it has a table of
//! IPv4 addresses, as with routing.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use super::frame::{self, Kind, Parsed};
use crate::sys::OFFLOAD_LEN;

/// Maximum number of learned addresses.
pub(super) const MOST: usize = 4096;

/// Interfaces of learned hardware addresses, or of given IPv4 addresses.
#[derive(Default)]
pub(super) struct ForwardingTable {
    learned: BTreeMap<[u8; 6], usize>,
    placed: Option<BTreeMap<Ipv4Addr, usize>>,
}

impl ForwardingTable {
    /// Sets the interfaces of all addresses, and disables learning; frames to other addresses are dropped.
    pub(super) fn place(&mut self, addresses: BTreeMap<Ipv4Addr, usize>) {
        self.placed = Some(addresses);
    }
    /// The interfaces, among `all`, for a frame from interface `from`; `from` itself is possible.
    pub(super) fn targets(&mut self, bytes: &[u8], parsed: &Parsed, from: usize, all: usize) -> Option<Range<usize>> {
        if let Some(placed) = &self.placed {
            let to = (parsed.kind != Kind::NonIp).then(|| frame::addresses(bytes, parsed.ip).1)?;
            return placed.get(&to).map(|&target| target..target + 1);
        }
        let (to, own) = (hardware_address(bytes, 0), hardware_address(bytes, 6));
        let knows = self.learned.get(&own) == Some(&from);
        let room = self.learned.len() < MOST || self.learned.contains_key(&own);
        if own[0] & 1 == 0 && !knows && room {
            self.learned.insert(own, from);
        }
        match self.learned.get(&to) {
            Some(&target) => Some(target..target + 1),
            None => Some(0..all),
        }
    }
}

/// The hardware address at this offset of a frame.
pub(super) fn hardware_address(bytes: &[u8], at: usize) -> [u8; 6] {
    let first = OFFLOAD_LEN + at;
    let mut address = [0; 6];
    address.copy_from_slice(&bytes[first..first + 6]);
    address
}
