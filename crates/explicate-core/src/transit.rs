//! Packets at a port whose arrival and departure are both known, and the causes of drops.

use crate::units::Time;
use crate::wire::Packet;

/// Why a queue dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// No room.
    Overflow,
    /// The discipline dropped it although there was room.
    Early,
}

/// A packet at a port, or on its way to it, whose departure is known.
#[derive(Clone, Copy)]
pub struct Waiting {
    /// When it arrives at the port.
    pub arrives: Time,
    /// When its last bit leaves.
    pub departs: Time,
    /// Its handle in the store.
    pub handle: u32,
    /// Its IP length.
    pub bytes: u16,
    /// The channel will lose it.
    pub lost: bool,
}

/// A packet in a driver's list, beside fields of the driver that no port reads: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// When the packet's next event is due, nanoseconds.
    pub time: u64,
    /// The next slot of a chain.
    pub next: u32,
    /// The kind of that event.
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

/// Packets that have passed a port.
#[derive(Clone, Copy, Default)]
pub struct Passed {
    /// How many.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
}

/// Packets that arrive at an idle port. Each passes if it departs before the next one arrives and before a deadline.
pub struct Transits<'a> {
    /// In order of arrival; none that the channel loses.
    pub queue: &'a [Waiting],
    /// When the packet after these arrives.
    pub after: Time,
    /// The deadline for departures.
    pub until: Time,
    /// Amount by which each TTL decreases.
    pub hops: u8,
    /// All packets, by handle.
    pub slots: &'a mut [Slot],
}

impl Transits<'_> {
    /// The next packet that passes, after its TTL is decremented: its arrival, its departure, and the packet.
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
