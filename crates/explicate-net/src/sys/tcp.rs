//! The kernel's TCP.

use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::check;
use super::socket::set_option;

/// What the kernel tells of a TCP connection.
#[derive(Clone, Copy, Default, Debug)]
pub struct TcpInfo {
    /// Segments not acknowledged.
    pub unacked: u32,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Segments sent.
    pub segments_out: u32,
}

/// Asks the kernel about a TCP connection.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    /// struct tcp_info of linux/tcp.h, up to tcpi_segs_out: eight bytes, then words.
    const WORDS: usize = 36;
    let mut words = [0u32; WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes of plain data.
    check(unsafe {
        let out = words.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, out, &mut length)
    })?;
    // Bytes 24, 68, 80, 100 and 136.
    Ok(TcpInfo {
        unacked: words[6],
        rtt_us: words[17],
        cwnd: words[20],
        retransmitted: words[25],
        segments_out: words[34],
    })
}

/// Connects with a congestion control of the kernel's, and segments of at most so many bytes.
pub fn tcp_connect(to: std::net::SocketAddr, law: &str, segment: u16) -> io::Result<std::net::TcpStream> {
    let std::net::SocketAddr::V4(to) = to else { return Err(io::Error::from(io::ErrorKind::Unsupported)) };
    // SAFETY: a new descriptor, owned by nobody else; the name and the address are read while they live.
    unsafe {
        let socket =
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0))?);
        let name = law.as_ptr().cast();
        let length = law.len() as libc::socklen_t;
        check(libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, length))?;
        set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, (segment + 12) as i32)?;
        let mut address: libc::sockaddr_in = zeroed();
        address.sin_family = libc::AF_INET as u16;
        address.sin_port = to.port().to_be();
        address.sin_addr.s_addr = u32::from(*to.ip()).to_be();
        let length = size_of_val(&address) as libc::socklen_t;
        check(libc::connect(socket.as_raw_fd(), ptr::from_ref(&address).cast(), length))?;
        Ok(std::net::TcpStream::from(socket))
    }
}
