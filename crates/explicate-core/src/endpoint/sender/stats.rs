//! Counters of a sending endpoint.

use alloc::boxed::Box;
use core::ops::AddAssign;

use super::SenderEndpoint;
use super::below::Below;
use super::bursts::Burst;
use super::departures::Earlier;
use super::round_trip::RoundTrip;
use super::undo::Prior;
use crate::gaps::Ranges;
use crate::units::Time;

/// Counters of a sending endpoint.
#[derive(Clone, Copy, Default, Debug)]
pub struct SenderStats {
    /// Packets sent, including SYNs and retransmissions. The lower half is the packet number.
    pub sent: u64,
    /// Sum of RTT samples, ns: samples of 20 minutes would exceed 64 bits after 15 million.
    pub rtt_sum: u128,
    /// Data packets retransmitted, without those that the host's own port dropped.
    pub retransmissions: u64,
    /// Number of RTT samples.
    pub rtt_count: u64,
    /// Packets that the host's own port dropped: they count in `sent`, but never left.
    pub refused: u64,
    /// Expiries of the retransmission timer, including those for SYNs.
    pub timeouts: u32,
    /// Acknowledgements that arrived damaged and were dropped.
    pub damaged: u32,
    /// Acknowledgements that were dropped because they echo no packet of this connection: its number or time stamp was never
    /// sent, or so long ago that the record of departures has lost it. Copies of acknowledgements do not count.
    pub ignored_echoes: u32,
}

impl AddAssign for SenderStats {
    fn add_assign(&mut self, more: SenderStats) {
        self.sent += more.sent;
        self.retransmissions += more.retransmissions;
        self.timeouts = self.timeouts.saturating_add(more.timeouts);
        self.rtt_sum += more.rtt_sum;
        self.rtt_count += more.rtt_count;
        self.refused += more.refused;
        self.damaged = self.damaged.saturating_add(more.damaged);
        self.ignored_echoes = self.ignored_echoes.saturating_add(more.ignored_echoes);
    }
}

/// Counters of every flow. No two that change together are adjacent: as a pair in one register they would take more
/// instructions. The short ones saturate: a flow has at most 2^32 segments.
#[derive(Default)]
pub(super) struct Counts {
    /// The lower half of the sum.
    pub(super) rtt_sum: u64,
    pub(super) sent: u64,
    pub(super) rtt_count: u64,
    pub(super) retransmissions: u32,
    pub(super) timeouts: u32,
}

/// State that few flows need.
#[derive(Default)]
pub(super) struct Rare {
    /// The round-trip estimate for the controller, if it is not the timer's.
    pub(super) round_trip: Option<RoundTrip>,
    /// Packets without an answer that are not near the others.
    pub(super) unanswered: Ranges,
    /// When packets left before the present stretch.
    pub(super) departures: Earlier,
    /// What exceeds the lower half of the sum of RTT samples.
    pub(super) rtt_carry: u32,
    /// Packets that the host still holds.
    pub(super) below: Below,
    /// Packets that pacing lets leave together.
    pub(super) burst: Burst,
    /// What an undo restores.
    pub(super) prior: Prior,
    refused: u64,
    damaged: u32,
    pub(super) ignored_echoes: u32,
}

impl Rare {
    /// The state of a flow that has not begun.
    pub(super) fn new(round_trip: Option<RoundTrip>) -> Option<Box<Rare>> {
        round_trip.map(|own| Box::new(Rare { round_trip: Some(own), ..Rare::default() }))
    }
    /// The sample and the estimate for the controller, if they are not the timer's; see [`RoundTrip::take`].
    #[inline(always)]
    pub(super) fn controller_rtt(&mut self, now: Time, exact: Time, counts: bool) -> Option<(Time, Time)> {
        Some(take_own(self.round_trip.as_mut()?, now, exact, counts))
    }
}

#[cold]
#[inline(never)]
fn take_own(own: &mut RoundTrip, now: Time, exact: Time, counts: bool) -> (Time, Time) {
    (own.take(now, exact, counts), own.srtt)
}

impl SenderEndpoint {
    /// Counters.
    pub fn stats(&self) -> SenderStats {
        let &Counts { sent, rtt_sum, retransmissions, timeouts, rtt_count } = &self.counts;
        let retransmissions = retransmissions as u64;
        let rtt_sum = rtt_sum as u128;
        let usual = SenderStats { sent, rtt_sum, retransmissions, rtt_count, timeouts, ..SenderStats::default() };
        let Some(rare) = &self.rare else { return usual };
        SenderStats {
            rtt_sum: (rare.rtt_carry as u128) << 64 | rtt_sum,
            refused: rare.refused,
            damaged: rare.damaged,
            ignored_echoes: rare.ignored_echoes,
            ..usual
        }
    }

    /// A data packet, a retransmission if `again`, was dropped by the host's own queue: the flow has to repair the
    /// loss, although the packet was never sent.
    #[cold]
    pub fn refused(&mut self, again: bool) {
        self.rare.get_or_insert_default().refused += 1;
        self.counts.retransmissions -= again as u32;
    }

    /// An acknowledgement arrived damaged and was dropped.
    #[cold]
    pub fn count_damaged(&mut self) {
        let damaged = &mut self.rare.get_or_insert_default().damaged;
        *damaged = damaged.saturating_add(1);
    }
}
