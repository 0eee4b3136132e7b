//! The kernel's TCP.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

use super::socket::{option, set_option};

/// State of a TCP connection in the kernel.
#[derive(Clone, Copy, Default, Debug)]
pub struct TcpInfo {
    /// Segments not acknowledged.
    pub unacked: u32,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segments retransmitted.
    pub retransmitted: u32,
    /// Segments sent.
    pub segments_out: u32,
    /// Bytes that were written and not sent yet.
    pub unsent: u32,
    /// Expiries of the retransmission timer, those of SYNs included; zero before Linux 6.7.
    pub timeouts: u16,
    /// A segment was repeated, or a probe of a closed window sent, since the last acknowledgement.
    pub is_unanswered: bool,
    /// Time since the last acknowledgement, ms.
    pub unacked_ms: u32,
    /// The SYN was not answered yet.
    pub is_connecting: bool,
    /// Time in which the receiver's window limited the sender, and in which the send buffer did, microseconds.
    pub limited_us: [u64; 2],
}

/// Reads the state of a TCP connection.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    /// struct tcp_info of linux/tcp.h, up to tcpi_total_rto_time: eight bytes, then words.
    const WORDS: usize = 62;
    /// TCP_SYN_SENT of linux/tcp_states.h.
    const SYN_SENT: u8 = 2;
    let words: [u32; WORDS] = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    let bytes = |word: usize| words[word].to_ne_bytes();
    let long = |word: usize| {
        let [a, b, c, d] = bytes(word);
        let [e, f, g, h] = bytes(word + 1);
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    };
    // Bytes 24, 68, 80, 100, 136, 144, 240, 2 and 3, 56, 0, 176 and 184.
    Ok(TcpInfo {
        unacked: words[6],
        rtt_us: words[17],
        cwnd: words[20],
        retransmitted: words[25],
        segments_out: words[34],
        unsent: words[36],
        timeouts: u16::from_ne_bytes([bytes(60)[0], bytes(60)[1]]),
        is_unanswered: bytes(0)[2] > 0 || bytes(0)[3] > 0,
        unacked_ms: words[14],
        is_connecting: bytes(0)[0] == SYN_SENT,
        limited_us: [long(44), long(46)],
    })
}

/// Begins to connect with one of the kernel's congestion controllers, and segments of at most this length. The socket does not
/// block: until it is connected, a write would block.
pub fn tcp_connect(to: SocketAddr, congestion_control: &str, segment: u16) -> io::Result<TcpStream> {
    if !to.is_ipv4() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (flags, protocol) = (SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, Some(ipproto::TCP));
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, protocol)?;
    sockopt::set_tcp_congestion(&socket, congestion_control)?;
    set_option(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, (segment + 12) as i32)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}
