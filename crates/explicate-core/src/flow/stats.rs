//! What a sending end counts.

use core::ops::AddAssign;

/// Counters of a sending end. No two stand side by side that are changed together: as pairs in one register they would take
/// more instructions.
#[derive(Clone, Copy, Default, Debug)]
pub struct FlowStats {
    /// Packets sent, SYNs and retransmissions included. Its lower half numbers them.
    pub sent: u64,
    /// Sum of RTT samples, ns.
    pub rtt_sum: u64,
    /// Data packets sent again, those that the host's own port refused not counted.
    pub retransmissions: u64,
    /// Number of RTT samples.
    pub rtt_count: u64,
    /// Packets that the host's own port refused: they are in `sent`, but never left.
    pub refused: u64,
    /// Expiries of the retransmission timer, SYN's included. This and the next are small, for a flow has no more segments than
    /// fit in 32 bits, and they stay at their greatest.
    pub timeouts: u32,
    /// Acknowledgements that arrived damaged and were dropped.
    pub damaged: u32,
}

impl AddAssign for FlowStats {
    fn add_assign(&mut self, more: FlowStats) {
        self.sent += more.sent;
        self.retransmissions += more.retransmissions;
        self.timeouts = self.timeouts.saturating_add(more.timeouts);
        self.rtt_sum += more.rtt_sum;
        self.rtt_count += more.rtt_count;
        self.refused += more.refused;
        self.damaged = self.damaged.saturating_add(more.damaged);
    }
}
