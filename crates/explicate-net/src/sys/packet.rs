//! Packet sockets: all frames of an interface, received by a ring that the kernel writes into and sent many to a call.
//!
//! The ring (`TPACKET_V2` of linux/if_packet.h) has slots of equal length, each with room for what the interface's MTU allows. The kernel
//! fills one when a frame comes, and it is read where it lies: no call a frame, none even to see that there is none. What an
//! offload has put together is longer than a slot; of it the kernel leaves a note there and keeps the whole for a
//! call. (`TPACKET_V3`, whose slots fit their frames, hands frames over when a block of them is full or after milliseconds.)

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::check;
use super::messages::BATCH;
use super::socket::{grow_buffers, length_of, mtu, set_option};

/// Length of the virtio header in front of every frame, which tells of offloads.
pub const OFFLOAD_LEN: usize = 10;
/// Longest frame, with its offload header: what an offload may put together, and link headers with a tag.
const LONGEST: usize = (1 << 16) + OFFLOAD_LEN + 18;
/// What a slot has before its frame (the kernel's header, an address, room to align) and behind its MTU (link headers).
const OVERHEAD: usize = 128;
/// Least length of a block, a multiple of every page's.
const BLOCK: usize = 1 << 16;

/// A socket for all frames that come in by an interface, and for any to go out by it.
pub struct PacketSocket {
    socket: OwnedFd,
    ring: *mut u8,
    /// Bytes of a slot, a power of two, and how many there are.
    slot: usize,
    slots: usize,
    /// The slot that is filled next or waits longest to be read.
    next: usize,
}

// SAFETY: nobody else has the pointer, and the mapping is the process's, not a thread's.
unsafe impl Send for PacketSocket {}

impl PacketSocket {
    /// Opens one that holds about so many bytes of frames that nobody has read yet.
    pub fn open(interface: &str, index: i32, bytes: usize) -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a new descriptor, owned by nobody else. With protocol 0 nothing comes in before it is bound.
        let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?) };
        let fd = socket.as_fd();
        set_option(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1i32)?;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1i32)?;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, 1i32)?;
        grow_buffers(fd, 16 << 20)?;
        let slot = (mtu(interface)? + OVERHEAD).next_power_of_two();
        let block = slot.max(BLOCK);
        let blocks = (bytes / block).max(2);
        let slots = blocks * (block / slot);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: slots as u32,
        };
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, where the kernel likes it. Its length is that of the blocks asked for.
        let ring = unsafe { libc::mmap(ptr::null_mut(), slots * slot, access, shared, fd.as_raw_fd(), 0) };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let socket = PacketSocket { socket, ring: ring.cast(), slot, slots, next: 0 };
        socket.bind(index)?;
        Ok(socket)
    }
    fn bind(&self, index: i32) -> io::Result<()> {
        // SAFETY: plain data whose other fields may be zero.
        let (mut address, mut member): (libc::sockaddr_ll, libc::packet_mreq) = unsafe { (zeroed(), zeroed()) };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the address is read while it lives.
        let bound = unsafe { libc::bind(self.socket.as_raw_fd(), ptr::from_ref(&address).cast(), length_of(&address)) };
        check(bound)?;
        member.mr_ifindex = index;
        member.mr_type = libc::PACKET_MR_PROMISC as u16;
        set_option(self.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, member)
    }

    /// The header of the next slot.
    fn header(&self) -> *mut libc::tpacket2_hdr {
        // SAFETY: `next` is below `slots`; slots are aligned to their length.
        unsafe { self.ring.add(self.next * self.slot).cast() }
    }
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the first word of every slot; it lives as long as the mapping, and is only used as an atomic.
        unsafe { AtomicU32::from_ptr(ptr::addr_of_mut!((*self.header()).tp_status)) }
    }
    /// Whether a frame has come.
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }
    /// Puts the frame that has waited longest into `to`, its offload header first, or nothing if not all of it could be had, and
    /// frees its slot. When the kernel got it, nanoseconds of the wall clock; `None` without a frame.
    pub fn receive(&mut self, to: &mut Vec<u8>) -> Option<u64> {
        to.clear();
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has filled the slot and given it to us, which the load above has seen.
        let header = unsafe { self.header().read() };
        if status & libc::TP_STATUS_COPY != 0 {
            self.receive_long(to);
        } else if header.tp_len == header.tp_snaplen {
            let first = (header.tp_mac as usize).saturating_sub(OFFLOAD_LEN);
            let length = (header.tp_snaplen as usize + OFFLOAD_LEN).min(self.slot.saturating_sub(first));
            // SAFETY: within the slot, which is ours until the store below.
            to.extend_from_slice(unsafe { std::slice::from_raw_parts(self.header().cast::<u8>().add(first), length) });
        }
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        if status & libc::TP_STATUS_VLAN_VALID != 0 {
            let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            put_tag(to, [if known { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 }, header.tp_vlan_tci]);
        }
        Some(header.tp_sec as u64 * 1_000_000_000 + header.tp_nsec as u64)
    }
    /// Receives the frame that the kernel kept because it is longer than a slot.
    fn receive_long(&mut self, to: &mut Vec<u8>) {
        to.resize(LONGEST, 0);
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_TRUNC);
        // SAFETY: the kernel writes at most LONGEST bytes.
        let mut receive = || unsafe { libc::recv(fd, to.as_mut_ptr().cast(), LONGEST, flags) };
        // A call tells an interface's error before it gives what is there.
        let length = (0..2).map(|_| receive()).find(|length| *length >= 0).unwrap_or(0) as usize;
        to.truncate(if length <= LONGEST { length } else { 0 });
    }

    /// What went wrong with the interface since the last call, such as that it went down; it comes back by itself.
    pub fn error(&self) -> Option<io::Error> {
        let mut code: libc::c_int = 0;
        let mut length = length_of(&code);
        // SAFETY: the kernel writes at most `length` bytes.
        unsafe {
            let out = ptr::from_mut(&mut code).cast();
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, out, &mut length);
        }
        (code != 0).then(|| io::Error::from_raw_os_error(code))
    }
    /// Frames that the ring had no room for since the last call.
    pub fn drops(&self) -> u64 {
        let mut stats = [0u32; 2];
        let mut length = length_of(&stats);
        // SAFETY: the kernel writes at most `length` bytes, a tpacket_stats of two words.
        let result = unsafe {
            let out = stats.as_mut_ptr().cast();
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, out, &mut length)
        };
        if result == 0 { stats[1] as u64 } else { 0 }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // SAFETY: the mapping that was made with this value, of this length; no frame borrows from it any more.
        unsafe { libc::munmap(self.ring.cast(), self.slots * self.slot) };
    }
}

/// Where a tag stands: behind the addresses.
const TAG: usize = OFFLOAD_LEN + 12;

/// Puts a VLAN's tag, its EtherType and what follows it, into a frame with its offload header (IEEE 802.1Q): one that the kernel
/// took out, or another.
pub fn put_tag(bytes: &mut Vec<u8>, tag: [u16; 2]) {
    if bytes.len() < TAG {
        return;
    }
    bytes.splice(TAG..TAG, tag.iter().flat_map(|word| word.to_be_bytes()));
    shift_offloads(bytes, 4);
}
/// Takes the tag of this VLAN out of a frame with its offload header, if that is the first there.
pub fn take_tag(bytes: &mut Vec<u8>, vlan: u16) {
    let Some(&[0x81, 0, high, low]) = bytes.get(TAG..TAG + 4) else { return };
    if u16::from_be_bytes([high & 0x0f, low]) == vlan {
        bytes.drain(TAG..TAG + 4);
        shift_offloads(bytes, -4);
    }
}
/// In the offload header, the length of all headers and where a checksum begins count from the frame's first byte.
fn shift_offloads(bytes: &mut [u8], by: i16) {
    for (at, used) in [(2, bytes[1] != 0), (6, bytes[0] & 1 != 0)] {
        if used {
            let word = u16::from_ne_bytes([bytes[at], bytes[at + 1]]).saturating_add_signed(by);
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
    }
}

/// Sends frames: what a call needs, made once.
pub struct Transmitter {
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: its pointers lead into its own vectors, which move with it, or are not read any more.
unsafe impl Send for Transmitter {}

impl Default for Transmitter {
    fn default() -> Transmitter {
        // SAFETY: all plain data.
        let (vector, header) = unsafe { (zeroed(), zeroed()) };
        let mut vectors: Vec<libc::iovec> = vec![vector; BATCH];
        let mut headers: Vec<libc::mmsghdr> = vec![header; BATCH];
        for (vector, header) in vectors.iter_mut().zip(headers.iter_mut()) {
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
        }
        Transmitter { vectors, headers }
    }
}

impl Transmitter {
    /// Sends the first [`BATCH`] of these frames, each with its offload header; how many were taken. Does not wait. An error
    /// means that the first was refused.
    pub fn send<'a>(&mut self, socket: &PacketSocket, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut count = 0;
        for (vector, frame) in self.vectors.iter_mut().zip(frames) {
            *vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            count += 1;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the headers lead to the vectors, and the first `count` of these into the caller's bytes, which the kernel only reads.
        let taken = unsafe { libc::sendmmsg(socket.socket.as_raw_fd(), self.headers.as_mut_ptr(), count, flags) };
        check(taken).map(|n| n as usize)
    }
}

const _: () = assert!(size_of::<libc::tpacket2_hdr>() + 20 + OFFLOAD_LEN + 18 + 16 + 16 <= OVERHEAD);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_was_put_can_be_taken() {
        let plain: Vec<u8> = (0..60).map(|i| if i == 6 { 34 } else { (i != 7) as u8 * (i as u8 | 1) }).collect();
        let mut bytes = plain.clone();
        put_tag(&mut bytes, [0x8100, 0x6005]);
        assert_eq!((bytes.len(), &bytes[TAG..TAG + 4]), (64, &[0x81, 0, 0x60, 5][..]));
        assert_eq!(u16::from_ne_bytes([bytes[6], bytes[7]]), 38, "where the checksum begins");
        take_tag(&mut bytes, 6);
        assert_eq!(bytes.len(), 64, "another VLAN's");
        take_tag(&mut bytes, 5);
        assert_eq!(bytes, plain);
        for length in 0..TAG + 4 {
            take_tag(&mut plain[..length].to_vec(), 5);
        }
    }
}
