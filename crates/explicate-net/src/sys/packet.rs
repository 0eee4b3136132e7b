//! Packet sockets: all frames of an interface, received by a ring that the kernel writes into, and sent many per call.
//!
//! The ring (`TPACKET_V2` of linux/if_packet.h) has slots of equal length, each with room for the interface's MTU.
//! The kernel fills one when a frame arrives, and it is read in place, without a system call per frame or per poll. A
//! frame that an offload has merged is longer than a slot; the kernel then leaves a note in the slot and keeps the
//! whole frame for a system call. (`TPACKET_V3`, whose slots fit their frames, delivers frames when a block of them
//! is full or after milliseconds.)

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with, sockopt};

use super::messages::{self, Outgoing};
use super::socket::{grow_buffers, mtu, option, set_option};
use super::{check, zeroed};

/// Length of the virtio header in front of every frame, which describes offloads.
pub const OFFLOAD_LEN: usize = 10;
/// Maximum length of a frame with its offload header: the maximum of an offload, and link headers with a tag.
const LONGEST: usize = (1 << 16) + OFFLOAD_LEN + 18;
/// Overhead of a slot before its frame (the kernel's header, an address, alignment) and after its MTU (link headers).
const OVERHEAD: usize = 128;
/// Minimum length of a block, a multiple of every page size.
const BLOCK: usize = 1 << 16;

/// A socket that receives all frames of an interface, and sends any.
pub struct PacketSocket {
    socket: OwnedFd,
    ring: MmapRaw,
    /// Bytes of a slot, a power of two, and the number of slots.
    slot: usize,
    slots: usize,
    /// The slot to read next.
    next: usize,
}

impl PacketSocket {
    /// Opens a socket whose ring holds about this number of bytes of frames.
    pub fn open(interface: &str, index: i32, bytes: usize) -> io::Result<PacketSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // With protocol 0 no frame arrives before the socket is bound.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let set = |option, value: i32| set_option(&socket, libc::SOL_PACKET, option, value);
        set(libc::PACKET_IGNORE_OUTGOING, 1)?;
        set(libc::PACKET_VNET_HDR, 1)?;
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as i32)?;
        set(libc::PACKET_COPY_THRESH, 1)?;
        grow_buffers(socket.as_fd(), 16 << 20)?;
        let slot = (mtu(interface)? + OVERHEAD).next_power_of_two();
        let block = slot.max(BLOCK);
        let blocks = (bytes / block).max(2);
        let slots = blocks * (block / slot);
        // A tpacket_req.
        let request = [block as u32, blocks as u32, slot as u32, slots as u32];
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
        let ring = MmapOptions::new().len(slots * slot).map_raw(&socket)?;
        let socket = PacketSocket { socket, ring, slot, slots, next: 0 };
        socket.bind(index)?;
        Ok(socket)
    }
    fn bind(&self, index: i32) -> io::Result<()> {
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the kernel reads an address that outlives the call. rustix, nix and socket2 make no packet addresses.
        let bound = unsafe { libc::bind(self.socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) };
        check(bound)?;
        // A packet_mreq: index, type and length of the address (16 bits each), address.
        let kind = u32::from_ne_bytes({
            let [low, high] = (libc::PACKET_MR_PROMISC as u16).to_ne_bytes();
            [low, high, 0, 0]
        });
        set_option(&self.socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, [index as u32, kind, 0, 0])
    }

    /// The header of the next slot.
    fn header(&self) -> *mut libc::tpacket2_hdr {
        self.ring.as_mut_ptr().wrapping_add(self.next * self.slot).cast()
    }
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the first word of a slot within the mapping, aligned to its length; both sides use it as an atomic. No library
        // has the ring of frames.
        unsafe { AtomicU32::from_ptr(self.header().cast()) }
    }
    /// Whether a frame has arrived.
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }
    /// Moves the oldest frame into `to`, its offload header first, and frees its slot; `to` is empty if the frame is
    /// incomplete. Returns the time when the kernel received it, nanoseconds of the wall clock; `None` without a
    /// frame.
    pub fn receive(&mut self, to: &mut Vec<u8>) -> Option<u64> {
        to.clear();
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has filled the slot and released it to this process, as the load above has found, until the store
        // below; a slot is longer than its header. No library has the ring of frames.
        let (header, slot) = unsafe {
            (self.header().read(), std::slice::from_raw_parts(self.header().cast::<u8>().cast_const(), self.slot))
        };
        if status & libc::TP_STATUS_COPY != 0 {
            self.receive_long(to);
        } else if header.tp_len == header.tp_snaplen {
            let first = (header.tp_mac as usize).saturating_sub(OFFLOAD_LEN).min(self.slot);
            let end = (first + header.tp_snaplen as usize + OFFLOAD_LEN).min(self.slot);
            to.extend_from_slice(&slot[first..end]);
        }
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        if status & libc::TP_STATUS_VLAN_VALID != 0 {
            let known = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            put_tag(to, [if known { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 }, header.tp_vlan_tci]);
        }
        Some(header.tp_sec as u64 * 1_000_000_000 + header.tp_nsec as u64)
    }
    /// Receives a frame that the kernel kept because it is longer than a slot.
    fn receive_long(&self, to: &mut Vec<u8>) {
        to.resize(LONGEST, 0);
        let mut receive = || recv(&self.socket, &mut to[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC);
        // A call returns an error of the interface before it delivers queued frames.
        let length = (0..2).find_map(|_| receive().ok()).map_or(0, |(_, length)| length);
        to.truncate(if length <= LONGEST { length } else { 0 });
    }

    /// Sends the first [`BATCH`](super::BATCH) of these frames, each with its offload header, without waiting. Returns how many the
    /// kernel took; an error means that it refused the first.
    pub fn send<'a>(&self, frames: impl IntoIterator<Item = &'a [u8]>) -> io::Result<usize> {
        messages::send(self.as_fd(), frames.into_iter().map(|bytes| Outgoing { bytes, to: None }))
    }

    /// The error of the interface since the last call, such as that it went down; it recovers by itself.
    pub fn error(&self) -> Option<io::Error> {
        sockopt::socket_error(&self.socket).ok()?.err().map(io::Error::from)
    }
    /// Frames dropped because the ring was full, since the last call.
    pub fn drops(&self) -> u64 {
        // A tpacket_stats: packets, drops.
        let [_, drops] = option(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS).unwrap_or([0, 0]);
        drops as u64
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Offset of a tag: after the addresses.
const TAG: usize = OFFLOAD_LEN + 12;

/// Inserts a VLAN's tag, its EtherType and the tag, into a frame with its offload header (IEEE 802.1Q): one that the
/// kernel removed, or another.
pub fn put_tag(bytes: &mut Vec<u8>, tag: [u16; 2]) {
    if bytes.len() < TAG {
        return;
    }
    bytes.splice(TAG..TAG, tag.iter().flat_map(|word| word.to_be_bytes()));
    shift_offloads(bytes, 4);
}
/// Removes the tag of this VLAN from a frame with its offload header, if it is the first tag.
pub fn take_tag(bytes: &mut Vec<u8>, vlan: u16) {
    let Some(&[0x81, 0, high, low]) = bytes.get(TAG..TAG + 4) else { return };
    if u16::from_be_bytes([high & 0x0f, low]) == vlan {
        bytes.drain(TAG..TAG + 4);
        shift_offloads(bytes, -4);
    }
}
/// In the offload header, the length of all headers and the start of the checksum count from the frame's first byte.
fn shift_offloads(bytes: &mut [u8], by: i16) {
    for (at, used) in [(2, bytes[1] != 0), (6, bytes[0] & 1 != 0)] {
        if used {
            let word = u16::from_ne_bytes([bytes[at], bytes[at + 1]]).saturating_add_signed(by);
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
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
