//! Addresses of peers as users write them, and sockets that peers reach.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, socket_with, sockopt};

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

/// A UDP socket at this address. All addresses of IPv6, `[::]`, include those of IPv4, whatever `net.ipv6.bindv6only` says; where the
/// kernel has no IPv6 they are those of IPv4 alone.
pub fn listen(at: SocketAddr) -> io::Result<UdpSocket> {
    if at.is_ipv4() || !at.ip().is_unspecified() {
        return UdpSocket::bind(at);
    }
    or_ipv4(at.port(), of_both(at))
}

fn of_both(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(ipproto::UDP))?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    bind(&socket, &at)?;
    Ok(socket.into())
}

/// The socket, or one of IPv4 where there is no IPv6.
fn or_ipv4(port: u16, socket: io::Result<UdpSocket>) -> io::Result<UdpSocket> {
    let lacks = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].map(|errno| Some(errno.raw_os_error()));
    match socket {
        Err(error) if lacks.contains(&error.raw_os_error()) => {
            tracing::warn!(port, "the kernel has no IPv6: listening at the addresses of IPv4 alone");
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_those_of_both_families() {
        let socket = listen("[::]:0".parse().unwrap()).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(!sockopt::ipv6_v6only(&socket).unwrap(), "whatever the system's default is");
        for (from, to) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
            let sender = UdpSocket::bind(from).unwrap();
            sender.send_to(to.as_bytes(), (to, port)).unwrap();
            let mut bytes = [0; 20];
            let (length, at) = socket.recv_from(&mut bytes).unwrap();
            assert_eq!((&bytes[..length], at.ip().to_canonical()), (to.as_bytes(), to.parse().unwrap()));
            socket.send_to(b"back", at).unwrap();
            assert_eq!(sender.recv(&mut bytes).unwrap(), 4);
        }
        let taken = listen(SocketAddr::new("::".parse().unwrap(), port)).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        assert!(listen("127.0.0.1:0".parse().unwrap()).unwrap().local_addr().unwrap().is_ipv4());
    }

    #[test]
    fn a_kernel_without_ipv6_listens_at_ipv4() {
        let without = || or_ipv4(0, Err(Errno::AFNOSUPPORT.into()));
        assert_eq!(without().unwrap().local_addr().unwrap().ip(), Ipv4Addr::UNSPECIFIED);
        let refused = or_ipv4(0, Err(Errno::ACCESS.into())).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

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
