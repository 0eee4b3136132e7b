//! Destinations that are denied unless `site.allow` lists them, because this machine reaches more than its site's hosts should: its own
//! programs, by addresses that other machines do not route or by those of its interfaces, and the services of its link and its cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::network::Network;

const fn of_ipv4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Network {
    Network { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
}
const fn of_ipv6(segments: [u16; 8], prefix: u8) -> Network {
    let [a, b, c, d, e, f, g, h] = segments;
    Network { address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
}

/// Networks, and what they are (IANA's registries of special-purpose addresses; documentation of the clouds).
pub const DENIED: [(Network, &str); 15] = [
    (of_ipv4(0, 0, 0, 0, 8), "unspecified"),
    (of_ipv4(127, 0, 0, 0, 8), "loopback"),
    (of_ipv4(169, 254, 0, 0, 16), "link-local, with metadata services"),
    (of_ipv4(224, 0, 0, 0, 4), "multicast"),
    (of_ipv4(255, 255, 255, 255, 32), "broadcast"),
    (of_ipv4(100, 100, 100, 200, 32), "a metadata service"),
    (of_ipv4(168, 63, 129, 16, 32), "a metadata service"),
    (of_ipv4(192, 0, 0, 192, 32), "a metadata service"),
    (of_ipv6([0; 8], 128), "unspecified"),
    (of_ipv6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback"),
    (of_ipv6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link-local"),
    (of_ipv6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "site-local, deprecated"),
    (of_ipv6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast"),
    (of_ipv6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), "a metadata service"),
    (of_ipv6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), "a metadata service"),
];

/// IPv4 addresses that a host on the way, or this one, may take an IPv6 address for: mapped, compatible (RFC 4291 section 2.5.5),
/// translated (RFC 7915), NAT64 (RFC 6052 and 8215), 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214).
fn embedded(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let (o, s) = (address.octets(), address.segments());
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| o[place]));
    let last = at([12, 13, 14, 15]);
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0..=1] => Vec::new(),
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![last],
        // Prefixes of 48, 56, 64 and 96 bits: byte 8 is 0, and so are those behind the address.
        [0x64, 0xff9b, 1, ..] => {
            let places = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12]];
            let found = places.into_iter().find(|places| o[places[3] + 1..].iter().all(|byte| *byte == 0));
            vec![found.map_or(last, at)]
        }
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        [0x2001, 0, ..] => vec![Ipv4Addr::from(u32::from(last) ^ u32::MAX)],
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => vec![last],
        _ => Vec::new(),
    }
}

/// The address, and those that it may be taken for.
fn meanings(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(ipv6) = address else { return vec![address] };
    std::iter::once(address).chain(embedded(ipv6).into_iter().map(IpAddr::V4)).collect()
}

/// What an address is that is denied and not allowed.
pub fn denied(address: IpAddr, allow: &[Network]) -> Option<&'static str> {
    let allows = |address: IpAddr| allow.iter().any(|network| network.contains(address));
    let kind = |address: IpAddr| DENIED.iter().find(|(network, _)| network.contains(address)).map(|(_, kind)| *kind);
    if allows(address) {
        return None;
    }
    meanings(address).into_iter().filter(|meant| !allows(*meant)).find_map(kind)
}

/// Whether the kernel lets a socket have an address.
fn binds(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Whether this machine has an address now, as far as the kernel says so without privileges.
pub fn is_own(address: IpAddr) -> bool {
    let ipv4 = address.is_ipv4();
    let any: IpAddr = if ipv4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Reserved (RFC 1112) and for discarding (RFC 6666): a kernel that binds these binds any address (`ip_nonlocal_bind`).
    let never_own: IpAddr =
        if ipv4 { Ipv4Addr::new(240, 0, 0, 1).into() } else { of_ipv6([0x100, 0, 0, 0, 0, 0, 0, 1], 128).address };
    if binds(address) && !binds(never_own) {
        return true;
    }
    // What is sent to an own address comes from there; but from the first address of its network if it is not that one.
    let Ok(socket) = UdpSocket::bind((any, 0)) else { return false };
    let chosen = socket.connect(SocketAddr::new(address, 9)).and_then(|()| socket.local_addr());
    chosen.is_ok_and(|chosen| chosen.ip() == address)
}

/// What peers do not reach here, in words, given the addresses of this machine.
pub fn summary(allow: &[Network], own: &[IpAddr]) -> String {
    let kinds = DENIED.iter().map(|(network, kind)| format!("{network} ({kind})"));
    let own: Vec<String> = own.iter().filter(|own| denied(**own, &[]).is_none()).map(IpAddr::to_string).collect();
    let allow: Vec<String> = allow.iter().map(Network::to_string).collect();
    format!(
        "Peers do not reach these destinations here: {}; and the addresses of this machine itself, which are left to plain routing: {}.\n\
         Allowed nevertheless, by `allow` of [site]: {}.\n\
         Carried connections to hosts of the site are this machine's own: its firewall sees them in the output hook, not in forward.",
        kinds.collect::<Vec<_>>().join(", "),
        if own.is_empty() { "none now".to_string() } else { own.join(", ") },
        if allow.is_empty() { "none".to_string() } else { allow.join(", ") }
    )
}

/// The line of `[site]` that allows an address.
pub fn line(address: IpAddr) -> String {
    format!("allow = [\"{address}/{}\"]", if address.is_ipv4() { 32 } else { 128 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str, allow: &[&str]) -> Option<&'static str> {
        let allow: Vec<Network> = allow.iter().map(|text| Network::try_from(text.to_string()).unwrap()).collect();
        denied(address.parse().unwrap(), &allow)
    }

    #[test]
    fn what_reaches_more_than_hosts_of_the_site_is_denied_in_every_form() {
        let addresses = [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("127.0.0.1", "loopback"),
            ("127.255.0.9", "loopback"),
            ("169.254.169.254", "link-local, with metadata services"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("100.100.100.200", "a metadata service"),
            ("168.63.129.16", "a metadata service"),
            ("192.0.0.192", "a metadata service"),
        ];
        for (text, kind) in addresses {
            assert_eq!(of(text, &[]), Some(kind), "{text}");
            let address: Ipv4Addr = text.parse().unwrap();
            let [a, b, c, d] = address.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let teredo = (!high, !low);
            let (ab, cd) = (format!("{high:x}"), format!("{low:x}"));
            let forms = [
                format!("::ffff:{address}"),
                format!("::ffff:0:{ab}:{cd}"),
                format!("64:ff9b::{address}"),
                format!("64:ff9b:1::{address}"),
                format!("64:ff9b:1:{ab}:{c:x}:{:x}::", (d as u16) << 8),
                format!("2002:{ab}:{cd}::1"),
                format!("2001:0:c000:201:0:0:{:x}:{:x}", teredo.0, teredo.1),
                format!("2001:db8::200:5efe:{ab}:{cd}"),
                format!("fd00:2::5efe:{address}"),
            ];
            for form in forms {
                assert!(of(&form, &[]).is_some(), "{form} of {text}");
                assert_eq!(of(&form, &[&format!("{address}/32")]), None, "{form} of {text}, allowed");
            }
        }
        for text in ["::", "::1", "::127.0.0.1", "fe80::1", "febf::1", "ff02::1", "fd00:ec2::254", "fd20:ce::254"] {
            assert!(of(text, &[]).is_some(), "{text}");
        }
    }

    #[test]
    fn hosts_are_not_denied_and_a_line_allows_no_more_than_it_says() {
        let hosts = ["10.2.0.2", "192.0.2.1", "169.253.1.1", "100.100.100.201", "128.0.0.1", "1.0.0.1"];
        for host in hosts.into_iter().chain([
            "fd00:2::2",
            "2001:db8::1",
            "64:ff9b::a02:2",
            "2002:a02:2::1",
            "fd00:ec2::253",
            "64:ff9b:1::a02:2",
        ]) {
            assert_eq!(of(host, &[]), None, "{host}");
        }
        let line = |address: &str| line(address.parse().unwrap());
        assert_eq!(line("169.254.169.254"), "allow = [\"169.254.169.254/32\"]");
        assert_eq!(line("fd00:ec2::254"), "allow = [\"fd00:ec2::254/128\"]");
        assert_eq!(of("169.254.169.254", &["169.254.169.254/32"]), None);
        assert!(of("169.254.169.253", &["169.254.169.254/32"]).is_some());
        assert_eq!(of("64:ff9b::a9fe:a9fe", &["64:ff9b::/96"]), None, "an IPv6 network may be allowed as such");
    }

    #[test]
    fn own_addresses_are_known() {
        let own = |address: &str| is_own(address.parse().unwrap());
        assert_eq!(["127.0.0.1", "192.0.2.77", "240.0.0.1"].map(own), [true, false, false]);
        // As a second address of a network: packets to it come from 127.0.0.1.
        assert!(own("127.0.0.2"));
    }
}
