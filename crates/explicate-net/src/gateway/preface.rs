//! The first bytes of a stream: where the connection goes and where it came from.
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | version, 2 |
//! | 1 | 0 |
//! | 2-17 | destination address; IPv4 as an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) |
//! | 18-19 | destination port |
//! | 20-35 | address of the client |
//! | 36-37 | port of the client |

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Length of a preface, bytes.
pub const LEN: usize = 38;
/// Version of what streams begin with.
pub const VERSION: u8 = 2;

/// A destination and a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preface {
    /// Where the client connected to.
    pub destination: SocketAddr,
    /// The client.
    pub client: SocketAddr,
}

/// Why a preface was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Another version.
    Version,
    /// Unspecified or multicast addresses, a client of the loopback, port 0, or addresses of two families.
    Address,
}

fn put(address: SocketAddr, out: &mut [u8]) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    out[..16].copy_from_slice(&ip.octets());
    out[16..18].copy_from_slice(&address.port().to_be_bytes());
}

fn get(bytes: &[u8; 18]) -> SocketAddr {
    let mut ip = [0; 16];
    ip.copy_from_slice(&bytes[..16]);
    SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), u16::from_be_bytes([bytes[16], bytes[17]]))
}

impl Preface {
    /// Its bytes.
    pub fn to_bytes(self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[0] = VERSION;
        put(self.destination, &mut out[2..20]);
        put(self.client, &mut out[20..]);
        out
    }
    /// Reads one; never panics.
    pub fn parse(bytes: &[u8; LEN]) -> Result<Preface, Refused> {
        if bytes[0] != VERSION || bytes[1] != 0 {
            return Err(Refused::Version);
        }
        let (mut first, mut second) = ([0; 18], [0; 18]);
        first.copy_from_slice(&bytes[2..20]);
        second.copy_from_slice(&bytes[20..]);
        let (destination, client) = (get(&first), get(&second));
        let bad = |a: &SocketAddr| a.ip().is_unspecified() || a.ip().is_multicast() || a.port() == 0;
        if bad(&destination) || bad(&client) || client.ip().is_loopback() || destination.is_ipv4() != client.is_ipv4() {
            return Err(Refused::Address);
        }
        Ok(Preface { destination, client })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_come_back() {
        for (destination, client) in [("192.0.2.1:80", "10.1.0.2:40000"), ("[2001:db8::1]:443", "[fd00::2]:1024")] {
            let preface = Preface { destination: destination.parse().unwrap(), client: client.parse().unwrap() };
            assert_eq!(Preface::parse(&preface.to_bytes()), Ok(preface));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let good = Preface { destination: "192.0.2.1:80".parse().unwrap(), client: "10.1.0.2:4".parse().unwrap() };
        let refused = |change: &dyn Fn(&mut [u8; LEN])| {
            let mut bytes = good.to_bytes();
            change(&mut bytes);
            Preface::parse(&bytes).unwrap_err()
        };
        assert_eq!(refused(&|b| b[0] = VERSION - 1), Refused::Version);
        assert_eq!(refused(&|b| b[1] = 1), Refused::Version);
        assert_eq!(refused(&|b| b[19] = 0), Refused::Address, "port 80 becomes 0");
        assert_eq!(refused(&|b| b[14..18].fill(0)), Refused::Address, "0.0.0.0");
        assert_eq!(refused(&|b| b[32] = 127), Refused::Address, "a client of the loopback");
        assert_eq!(refused(&|b| b[14] = 224), Refused::Address, "multicast");
        assert_eq!(refused(&|b| b[2..14].fill(9)), Refused::Address, "IPv6 from IPv4");
    }
}
