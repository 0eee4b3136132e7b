//! A tunnel interface, whose packets a program reads, and sockets that send whole packets.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, Protocol, RawProtocol, SocketFlags, SocketType, socket_with};

use super::{check, zeroed};

/// Opens a tunnel interface that exists (`ip tuntap add`), without waiting when packets are read. Needs CAP_NET_ADMIN.
pub fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let file = File::options().read(true).write(true).open("/dev/net/tun")?;
    let mut request: libc::ifreq = zeroed();
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    // SAFETY: the kernel reads and writes an ifreq that outlives the call. rustix has no requests about tunnels.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) })?;
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
