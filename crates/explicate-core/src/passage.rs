//! Packets at a port: those whose arrival and departure are both known, and why one is dropped.

use crate::units::Time;
use crate::wire::Packet;

/// Why a queue dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// No room.
    Overflow,
    /// The discipline chose to, with room left.
    Early,
}

/// A packet at a port, or on its way there, whose departure is known.
#[derive(Clone, Copy)]
pub struct Waiting {
    /// When it comes to the port.
    pub arrives: Time,
    /// When its last bit leaves.
    pub departs: Time,
    /// What the store knows it by.
    pub handle: u32,
    /// Its IP length.
    pub bytes: u16,
    /// The channel will lose it.
    pub lost: bool,
}

/// A packet in a driver's list, beside words of the driver's own that no port reads: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// When the packet's next event is due, nanoseconds.
    pub time: u64,
    /// The next slot of a chain.
    pub next: u32,
    /// What the event is.
    pub event: u32,
    /// The packet.
    pub packet: Packet,
}

const _: () = assert!(size_of::<Slot>() == 64, "a cache line");

impl Slot {
    /// A slot with this packet and no event.
    pub const fn of(packet: Packet) -> Slot {
        Slot { time: 0, next: u32::MAX, event: 0, packet }
    }
}

/// Packets that arrive at an idle port. Each passes if it departs before the next one arrives and before a deadline.
pub struct Passages<'a> {
    /// In order of arrival; none that the channel loses.
    pub queue: &'a [Waiting],
    /// When the one after these comes.
    pub after: Time,
    /// When they must have left.
    pub until: Time,
    /// What each one's TTL falls by.
    pub hops: u8,
    /// All packets, by handle.
    pub slots: &'a mut [Slot],
}

impl Passages<'_> {
    /// The next one that passes, with its TTL counted down: when it comes, when it leaves, and itself.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<(Time, Time, &mut Packet)> {
        let (first, rest) = self.queue.split_first()?;
        let after = rest.first().map_or(self.after, |next| next.arrives);
        if first.departs > self.until || after < first.departs {
            return None;
        }
        self.queue = rest;
        let packet = &mut self.slots[first.handle as usize].packet;
        packet.ttl = packet.ttl.saturating_sub(self.hops);
        Some((first.arrives, first.departs, packet))
    }
}
