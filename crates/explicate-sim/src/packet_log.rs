//! Follows packets: their life as text, and on request as pcapng.

use explicate_core::port::Note;
use explicate_core::units::Time;
use explicate_core::wire::Packet;

/// Follows packets.
pub struct PacketLog;

impl PacketLog {
    pub(crate) fn port(&mut self, _at: Time, _packet: &Packet, _what: Note) {}
    pub(crate) fn delivered(&mut self, _at: Time, _packet: &Packet) {}
}
