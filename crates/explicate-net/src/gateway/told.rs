//! Addresses of a gateway itself, which it tells its peers: they leave them to plain routing, so that its own firewall sees who comes.
//!
//! A message is a stream of its own:
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | version, 2 |
//! | 1 | 1 |
//! | 2 | number of addresses |
//! | 3-37 | 0 |
//! | 38- | 16 bytes each; IPv4 as an IPv4-mapped IPv6 address |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;

use serde_json::Value;

use super::preface;
use crate::sys;

/// The most addresses of a message.
pub const MOST: usize = 64;
/// Bytes of an address.
pub const LEN: usize = 16;
const KIND: u8 = 1;

/// The message with these addresses, without those beyond the [`MOST`] first ones.
pub fn to_bytes(addresses: &[IpAddr]) -> Vec<u8> {
    let some = &addresses[..addresses.len().min(MOST)];
    let mut bytes = vec![0; preface::LEN];
    bytes[..3].copy_from_slice(&[preface::VERSION, KIND, some.len() as u8]);
    for address in some {
        let ipv6 = match address {
            IpAddr::V4(ipv4) => ipv4.to_ipv6_mapped(),
            IpAddr::V6(ipv6) => *ipv6,
        };
        bytes.extend(ipv6.octets());
    }
    bytes
}

/// How many addresses follow the head of a message, if it is one.
pub fn head(bytes: &[u8; preface::LEN]) -> Option<usize> {
    let count = bytes[2] as usize;
    let is_one = bytes[..2] == [preface::VERSION, KIND] && bytes[3..].iter().all(|byte| *byte == 0);
    (is_one && count <= MOST).then_some(count)
}

/// The addresses behind the head.
pub fn parse(bytes: &[u8]) -> Vec<IpAddr> {
    let (addresses, _) = bytes.as_chunks::<LEN>();
    addresses.iter().map(|octets| Ipv6Addr::from(*octets).to_canonical()).collect()
}

/// The addresses of this machine, from iproute2.
pub fn own() -> Vec<IpAddr> {
    let Ok(output) = Command::new("ip").args(["-json", "address"]).output() else { return Vec::new() };
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let interfaces = listed.as_array().into_iter().flatten();
    let addresses = interfaces.flat_map(|interface| interface["addr_info"].as_array().into_iter().flatten());
    let mut own: Vec<IpAddr> = addresses.filter_map(|address| address["local"].as_str()?.parse().ok()).collect();
    own.sort();
    own.dedup();
    own
}

/// Hands addresses to the kernel: it adds the destination of what leaves with a mark to a set of nft, and drops it. The program itself
/// may not change nft.
pub struct Marked([Option<UdpSocket>; 2]);

impl Marked {
    /// Needs CAP_NET_ADMIN, or CAP_NET_RAW from Linux 5.17 on.
    pub fn open(mark: u32) -> Marked {
        let open = |from: IpAddr| {
            let socket = UdpSocket::bind((from, 0)).ok()?;
            socket.set_nonblocking(true).ok()?;
            sys::set_mark(socket.as_fd(), mark).ok()?;
            Some(socket)
        };
        Marked([open(Ipv4Addr::UNSPECIFIED.into()), open(Ipv6Addr::UNSPECIFIED.into())])
    }
    /// Keeps nothing.
    #[cfg(feature = "simulated")]
    pub fn nothing() -> Marked {
        Marked([None, None])
    }
    /// Has the kernel keep an address for a while.
    pub fn keep(&self, address: IpAddr) {
        if let Some(socket) = &self.0[address.is_ipv6() as usize] {
            // It is dropped, which is an error.
            let _ = socket.send_to(&[0], (address, 9));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_and_no_more_than_a_message_holds() {
        let addresses: Vec<IpAddr> = ["10.2.0.1", "fd00:2::1"].map(|text| text.parse().unwrap()).into();
        let bytes = to_bytes(&addresses);
        assert_eq!(head(bytes[..preface::LEN].try_into().unwrap()), Some(2));
        assert_eq!(parse(&bytes[preface::LEN..]), addresses);
        let many = to_bytes(&vec![addresses[0]; 1000]);
        assert_eq!(many.len(), preface::LEN + MOST * LEN);
    }

    #[test]
    fn other_heads_are_no_messages() {
        let good: [u8; preface::LEN] = to_bytes(&[])[..].try_into().unwrap();
        assert_eq!(head(&good), Some(0));
        for (place, value) in [(0, preface::VERSION + 1), (1, 0), (1, 2), (2, 65), (2, 255), (3, 1), (37, 1)] {
            let mut bytes = good;
            bytes[place] = value;
            assert_eq!(head(&bytes), None, "byte {place}");
        }
    }

    #[test]
    fn this_machine_has_an_address() {
        assert!(own().contains(&Ipv4Addr::LOCALHOST.into()), "{:?}", own());
    }
}
