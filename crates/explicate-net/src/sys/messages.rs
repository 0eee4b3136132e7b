//! Datagrams, many per call: `sendmmsg` and `recvmmsg`, which rustix and socket2 do not have. (nix does, with an allocation per call.)

use std::borrow::Borrow;
use std::io;
use std::mem::{size_of, size_of_val};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::{check, zeroed};

/// Messages per call.
pub const BATCH: usize = 32;

/// Control messages of one datagram, aligned for their headers.
type Control<const WORDS: usize> = [[u64; WORDS]; BATCH];

/// Buffers for messages to receive, many per call.
pub struct Batch {
    bytes: Vec<u8>,
    room: usize,
    received: Vec<Received>,
    /// Where the kernel writes control messages. It states how many bytes, so nothing is cleared between calls.
    control: Box<Control<16>>,
}

/// Information of the kernel about a message besides its bytes.
struct Received {
    length: usize,
    cut: bool,
    from: Option<SocketAddrV4>,
    ttl: u8,
    tos: u8,
}

/// A received message.
pub struct Message<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// It was longer than the buffer.
    pub cut: bool,
    /// Its source, if that has an IPv4 address.
    pub from: Option<SocketAddrV4>,
    /// The IP header's TTL, if requested.
    pub ttl: u8,
    /// The IP header's traffic class, if requested.
    pub tos: u8,
}

impl Batch {
    /// Buffers for messages of up to `room` bytes.
    pub fn new(room: usize) -> Batch {
        let control = Box::new([[0; 16]; BATCH]);
        Batch { bytes: vec![0; BATCH * room], room, received: Vec::with_capacity(BATCH), control }
    }
    /// Receives the messages that are queued, without waiting. Returns their number.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.received.clear();
        let (mut names, mut vectors) = ([zeroed::<libc::sockaddr_in>(); BATCH], [zeroed::<libc::iovec>(); BATCH]);
        let mut headers = [zeroed::<libc::mmsghdr>(); BATCH];
        for (i, bytes) in self.bytes.chunks_exact_mut(self.room).enumerate() {
            vectors[i] = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
            let header = &mut headers[i].msg_hdr;
            header.msg_name = ptr::from_mut(&mut names[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            header.msg_iov = &mut vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = self.control[i].as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&self.control[i]) as _;
        }
        let (fd, flags, forever) = (socket.as_raw_fd(), libc::MSG_DONTWAIT, ptr::null_mut());
        // SAFETY: the headers point to the arrays above, to `self.bytes` and to `self.control`, with their lengths; all outlive the call.
        let result = unsafe { libc::recvmmsg(fd, headers.as_mut_ptr(), BATCH as u32, flags as _, forever) };
        let count = match check(result) {
            Ok(count) => count as usize,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            // The error of an earlier message, such as a port without a listener.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => 0,
            Err(e) => return Err(e),
        };
        for (header, name) in headers[..count].iter().zip(&names) {
            let (ttl, tos) = ttl_and_tos(&header.msg_hdr);
            let is_ipv4 = header.msg_hdr.msg_namelen > 0 && name.sin_family == libc::AF_INET as u16;
            let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            self.received.push(Received {
                length: (header.msg_len as usize).min(self.room),
                cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                from: is_ipv4.then(|| SocketAddrV4::new(ip, u16::from_be(name.sin_port))),
                ttl,
                tos,
            });
        }
        Ok(count)
    }
    /// A message of the last call.
    pub fn message(&self, i: usize) -> Message<'_> {
        let Received { length, cut, from, ttl, tos } = self.received[i];
        let first = i * self.room;
        Message { bytes: &self.bytes[first..first + length], cut, from, ttl, tos }
    }
}

/// TTL and traffic class from the control messages of a datagram; zero if there are none.
fn ttl_and_tos(header: &libc::msghdr) -> (u8, u8) {
    let (mut ttl, mut tos) = (0, 0);
    // SAFETY: the kernel has filled the control buffer with messages that state their lengths. rustix reads no control messages but
    // descriptors and credentials.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while !at.is_null() {
            match ((*at).cmsg_level, (*at).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_TTL) => {
                    ttl = ptr::read_unaligned(libc::CMSG_DATA(at).cast::<libc::c_int>()) as u8;
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => tos = *libc::CMSG_DATA(at),
                _ => {}
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
    (ttl, tos)
}

/// A message to send.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its destination and traffic class; `None` on a connected or bound socket.
    pub to: Option<(SocketAddrV4, u8)>,
}

/// Sends the first [`BATCH`] of these messages, without waiting. Returns how many the kernel took; an error means that it refused the
/// first.
pub fn send<'a>(socket: BorrowedFd<'_>, messages: impl IntoIterator<Item: Borrow<Outgoing<'a>>>) -> io::Result<usize> {
    let (mut names, mut vectors) = ([zeroed::<libc::sockaddr_in>(); BATCH], [zeroed::<libc::iovec>(); BATCH]);
    let (mut headers, mut control): (_, Control<3>) = ([zeroed::<libc::mmsghdr>(); BATCH], [[0; 3]; BATCH]);
    let mut count = 0;
    for (i, message) in messages.into_iter().take(BATCH).enumerate() {
        let message = message.borrow();
        count += 1;
        vectors[i] = libc::iovec { iov_base: message.bytes.as_ptr().cast_mut().cast(), iov_len: message.bytes.len() };
        let header = &mut headers[i].msg_hdr;
        header.msg_iov = &mut vectors[i];
        header.msg_iovlen = 1;
        let Some((to, tos)) = message.to else { continue };
        names[i].sin_family = libc::AF_INET as u16;
        names[i].sin_port = to.port().to_be();
        names[i].sin_addr.s_addr = u32::from(*to.ip()).to_be();
        header.msg_name = ptr::from_mut(&mut names[i]).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
        if tos != 0 {
            put_tos(header, &mut control[i], tos);
        }
    }
    let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    // SAFETY: the headers point to the arrays above and to the messages' bytes, which the kernel only reads; all outlive the call.
    let result = unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), count, flags as _) };
    check(result).map(|taken| taken as usize)
}

/// Adds the control message that sets the traffic class. The buffer has to outlive the header.
fn put_tos(header: &mut libc::msghdr, control: &mut [u64; 3], tos: u8) {
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(control) as _;
    // SAFETY: the buffer has room for a header (16 bytes) and an int, and is aligned for both. rustix writes no such message.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = libc::IPPROTO_IP;
        (*first).cmsg_type = libc::IP_TOS;
        (*first).cmsg_len = libc::CMSG_LEN(4) as _;
        ptr::write_unaligned(libc::CMSG_DATA(first).cast::<libc::c_int>(), tos as libc::c_int);
    }
}
