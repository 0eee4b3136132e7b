//! What is counted of frames.

use super::hidden::Hidden;

/// What a forwarder counts.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    /// Frames that came in.
    pub received: u64,
    /// Explicit packets among them.
    pub explicit: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Of these, those behind tags or a PPPoE session's header.
    pub tagged: u64,
    /// Passed on without feedback: explicit packets in IPv6, ...
    pub ipv6: u64,
    /// ... behind labels, ...
    pub mpls: u64,
    /// ... in tunnels, ...
    pub tunnelled: u64,
    /// ... and in fragments, by their first.
    pub fragments: u64,
    /// Dropped: to our port with headers that make no sense.
    pub malformed: u64,
    /// Passed on unread: several explicit packets put together by an offload.
    pub merged: u64,
    /// Dropped: their TTL was used up.
    pub expired: u64,
    /// Dropped: longer than any frame.
    pub cut: u64,
    /// Dropped: no room in memory.
    pub no_room: u64,
    /// Dropped: the system did not take them.
    pub refused: u64,
    /// Lost before this program saw them.
    pub missed: u64,
    /// Errors of the system that went by.
    pub errors: u64,
    /// How often it looked for something to do.
    pub turns: u64,
}

impl Counters {
    /// An explicit packet passes without feedback.
    pub(super) fn hide(&mut self, hidden: Hidden) {
        match hidden {
            Hidden::Ipv6 => self.ipv6 += 1,
            Hidden::Mpls => self.mpls += 1,
            Hidden::Tunnelled => self.tunnelled += 1,
            Hidden::Fragment => self.fragments += 1,
        }
    }
}
