//! Addresses of peers as users write them.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Splits `host`, `host:port`, an IPv6 address, or one in brackets with a port. A link-local address ends with its interface, as in
/// `fe80::1%eth0`. `None` if the host is empty or the port is not 1 to 65535.
pub fn split(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']')? {
            (host, "") => (host, None),
            (host, port) => (host, Some(port.strip_prefix(':')?)),
        },
        // An IPv6 address without brackets has no port.
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return None;
    }
    match port {
        Some(port) => Some((host, Some(port.parse().ok().filter(|port| *port > 0)?))),
        None => Some((host, None)),
    }
}

/// The first address of a peer, with this port unless the text names one. Queries the resolver, so it may take seconds.
pub fn resolve(text: &str, port: u16) -> io::Result<SocketAddr> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "write HOST, HOST:PORT or [IPv6 ADDRESS]:PORT");
    let (host, own) = split(text).ok_or_else(wrong)?;
    let first = (host, own.unwrap_or(port)).to_socket_addrs()?.next();
    first.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        let some = [
            ("gw.example.org", ("gw.example.org", None)),
            ("gw.example.org:7", ("gw.example.org", Some(7))),
            ("192.0.2.1:65535", ("192.0.2.1", Some(65535))),
            ("fd00::1", ("fd00::1", None)),
            ("[fd00::1]", ("fd00::1", None)),
            ("[fd00::1]:7", ("fd00::1", Some(7))),
            ("fe80::1%eth0", ("fe80::1%eth0", None)),
            ("[fe80::1%eth0]:7", ("fe80::1%eth0", Some(7))),
        ];
        for (text, parts) in some {
            assert_eq!(split(text), Some(parts), "{text}");
        }
        for text in
            ["", ":7", "[]:7", "host:", "host:0", "host:65536", "host:x", "[fd00::1", "[fd00::1]7", "[fd00::1]:"]
        {
            assert_eq!(split(text), None, "{text}");
        }
        assert_eq!(resolve("[fe80::1%lo]:7", 9).unwrap().port(), 7);
        assert_eq!(resolve("192.0.2.1", 9).unwrap(), "192.0.2.1:9".parse().unwrap());
        assert!(resolve("host:x", 9).unwrap_err().to_string().contains("HOST:PORT"));
    }
}
