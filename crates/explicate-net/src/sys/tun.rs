//! A tunnel interface, whose packets a program reads, and sockets that send whole packets.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, Protocol, RawProtocol, SocketFlags, SocketType, socket_with};

use super::socket::{Argument, request};

/// Opens a tunnel interface that exists (`ip tuntap add`), without waiting when packets are read. Needs CAP_NET_ADMIN.
pub fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    request(&file, libc::TUNSETIFF as _, name, Argument::Flags(libc::IFF_TUN | libc::IFF_NO_PI))?;
    let fd = OwnedFd::from(file);
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}

/// Sockets that send IPv4 and IPv6 packets with their headers, without waiting. Need CAP_NET_RAW.
pub fn raw_sockets() -> io::Result<[OwnedFd; 2]> {
    let raw = RawProtocol::new(libc::IPPROTO_RAW as u32).map(Protocol::from_raw);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let open = |family| socket_with(family, SocketType::RAW, flags, raw);
    Ok([open(AddressFamily::INET)?, open(AddressFamily::INET6)?])
}
