//! Counters of frames.

use super::hidden::Hidden;

/// Counters of a forwarder.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct Counters {
    /// Frames received.
    pub received: u64,
    /// Explicit packets among them.
    pub explicit: u64,
    /// Frames sent.
    pub sent: u64,
    /// Explicit packets after VLAN tags or in a PPPoE session.
    pub tagged: u64,
    /// Forwarded without feedback: explicit packets in IPv6, ...
    pub ipv6: u64,
    /// ... after labels, ...
    pub mpls: u64,
    /// ... in tunnels, ...
    pub tunnelled: u64,
    /// ... and in fragments, counted by the first fragment.
    pub fragments: u64,
    /// Dropped: explicit packets with malformed headers.
    pub malformed: u64,
    /// Forwarded without feedback: several explicit packets merged by an offload.
    pub merged: u64,
    /// Dropped: TTL expired.
    pub expired: u64,
    /// Dropped: longer than the maximum frame.
    pub cut: u64,
    /// Dropped: no room in memory.
    pub no_room: u64,
    /// Dropped: refused by the system.
    pub refused: u64,
    /// Dropped by the system because a ring was full.
    pub missed: u64,
    /// Transient errors of interfaces.
    pub errors: u64,
    /// Iterations of its loop.
    pub turns: u64,
}

impl Counters {
    /// Counts an explicit packet that is forwarded without feedback.
    pub(super) fn hide(&mut self, hidden: Hidden) {
        match hidden {
            Hidden::Ipv6 => self.ipv6 += 1,
            Hidden::Mpls => self.mpls += 1,
            Hidden::Tunnelled => self.tunnelled += 1,
            Hidden::Fragment => self.fragments += 1,
        }
    }
}
