//! Who is where: the interface by which a frame goes on.
//!
//! A router in line with a cable learns it from where frames come, as a bridge does. In the laboratory it is told by address,
//! as routing would.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use super::frame::{self, Kind, Lifted};
use crate::sys::OFFLOAD_LEN;

/// Most stations that are remembered.
pub(super) const MOST: usize = 4096;

/// Hardware addresses by the interface where they were seen, or IPv4 addresses by the one that they were placed at.
#[derive(Default)]
pub(super) struct Stations {
    learned: BTreeMap<[u8; 6], usize>,
    placed: Option<BTreeMap<Ipv4Addr, usize>>,
}

impl Stations {
    /// These addresses are where they are said to be from now on. Nothing is learned any more, and what is for others is dropped.
    pub(super) fn place(&mut self, addresses: BTreeMap<Ipv4Addr, usize>) {
        self.placed = Some(addresses);
    }
    /// Which of `all` interfaces a frame is for that came by `from`; it may be that one itself.
    pub(super) fn targets(&mut self, bytes: &[u8], lifted: &Lifted, from: usize, all: usize) -> Option<Range<usize>> {
        if let Some(placed) = &self.placed {
            let to = (lifted.kind != Kind::Alien).then(|| frame::addresses(bytes, lifted.ip).1)?;
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

/// The hardware address at this place of a frame.
pub(super) fn hardware_address(bytes: &[u8], at: usize) -> [u8; 6] {
    let first = OFFLOAD_LEN + at;
    let mut address = [0; 6];
    address.copy_from_slice(&bytes[first..first + 6]);
    address
}
