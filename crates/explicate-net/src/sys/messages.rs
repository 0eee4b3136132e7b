//! Datagrams, many to a call.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::check;

/// Messages to one call.
pub const BATCH: usize = 32;
const CONTROL: usize = 128;

/// Buffers for messages to receive, many to a call.
pub struct Batch {
    bytes: Vec<u8>,
    room: usize,
    control: Vec<[u64; CONTROL / 8]>,
    names: Vec<libc::sockaddr_in>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: its pointers lead into its own vectors, which move with it (their heap does not).
unsafe impl Send for Batch {}

/// A message that was received.
pub struct Message<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// It was longer than the buffer.
    pub cut: bool,
    /// Who sent it, if that has an IPv4 address.
    pub from: Option<SocketAddrV4>,
    /// The IP header's TTL, if asked for.
    pub ttl: u8,
    /// The IP header's traffic class, if asked for.
    pub tos: u8,
}

impl Batch {
    /// Buffers for messages of up to `room` bytes.
    pub fn new(room: usize) -> Batch {
        // SAFETY: all plain data.
        let (name, vector, header) = unsafe { (zeroed(), zeroed(), zeroed()) };
        Batch {
            bytes: vec![0; BATCH * room],
            room,
            control: vec![[0; CONTROL / 8]; BATCH],
            names: vec![name; BATCH],
            vectors: vec![vector; BATCH],
            headers: vec![header; BATCH],
        }
    }
    /// Receives what there is; how many messages that were. Does not wait.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        for i in 0..BATCH {
            let base = self.bytes[i * self.room..].as_mut_ptr();
            self.vectors[i] = libc::iovec { iov_base: base.cast(), iov_len: self.room };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_name = ptr::from_mut(&mut self.names[i]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            header.msg_iov = &mut self.vectors[i];
            header.msg_iovlen = 1;
            header.msg_control = self.control[i].as_mut_ptr().cast();
            header.msg_controllen = CONTROL;
            header.msg_flags = 0;
        }
        // SAFETY: all pointers lead into vectors of this value, whose lengths they carry.
        let flags = libc::MSG_DONTWAIT;
        let result = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), BATCH as u32, flags, ptr::null_mut())
        };
        match check(result) {
            Ok(n) => Ok(n as usize),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            // What an earlier message met with on its way, such as a port that nobody listens at.
            Err(e) if e.raw_os_error() == Some(libc::ECONNREFUSED) => Ok(0),
            Err(e) => Err(e),
        }
    }
    /// A message of the last call.
    pub fn message(&self, i: usize) -> Message<'_> {
        let header = &self.headers[i];
        let (mut ttl, mut tos) = (0, 0);
        // SAFETY: the kernel has filled the control buffer with messages whose lengths it tells.
        unsafe {
            let mut at = libc::CMSG_FIRSTHDR(&header.msg_hdr);
            while !at.is_null() {
                match ((*at).cmsg_level, (*at).cmsg_type) {
                    (libc::IPPROTO_IP, libc::IP_TTL) => {
                        ttl = ptr::read_unaligned(libc::CMSG_DATA(at).cast::<libc::c_int>()) as u8;
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => tos = *libc::CMSG_DATA(at),
                    _ => {}
                }
                at = libc::CMSG_NXTHDR(&header.msg_hdr, at);
            }
        }
        let name = &self.names[i];
        let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
        let known = header.msg_hdr.msg_namelen > 0 && name.sin_family == libc::AF_INET as u16;
        let first = i * self.room;
        Message {
            bytes: &self.bytes[first..first + (header.msg_len as usize).min(self.room)],
            cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            from: known.then(|| SocketAddrV4::new(ip, u16::from_be(name.sin_port))),
            ttl,
            tos,
        }
    }
}

/// A message to send.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where to, and with which traffic class.
    pub to: Option<(SocketAddrV4, u8)>,
}

/// Sends messages, at most [`BATCH`] of them; how many were taken. Does not wait. An error means that the first was refused.
pub fn send(socket: BorrowedFd<'_>, messages: &[Outgoing<'_>]) -> io::Result<usize> {
    const SPACE: usize = 24; // CMSG_SPACE of an int
    let count = messages.len().min(BATCH);
    // SAFETY: all plain data.
    let (name, vector, header): (libc::sockaddr_in, libc::iovec, libc::mmsghdr) =
        unsafe { (zeroed(), zeroed(), zeroed()) };
    let (mut names, mut vectors, mut headers) = ([name; BATCH], [vector; BATCH], [header; BATCH]);
    let mut control = [[0u64; SPACE / 8]; BATCH];
    for (i, message) in messages[..count].iter().enumerate() {
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
            header.msg_control = control[i].as_mut_ptr().cast();
            header.msg_controllen = SPACE;
            // SAFETY: the buffer has room for one header and an int, and is aligned for it.
            unsafe {
                let first = libc::CMSG_FIRSTHDR(header);
                (*first).cmsg_level = libc::IPPROTO_IP;
                (*first).cmsg_type = libc::IP_TOS;
                (*first).cmsg_len = libc::CMSG_LEN(4) as usize;
                ptr::write_unaligned(libc::CMSG_DATA(first).cast::<libc::c_int>(), tos as libc::c_int);
            }
        }
    }
    // SAFETY: all pointers lead into arrays above and into the callers' bytes, which the kernel only reads.
    let result = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    check(result).map(|n| n as usize)
}
