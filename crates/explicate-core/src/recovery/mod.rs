//! Loss recovery. To add one, write its file and add its line here.

use alloc::boxed::Box;

use self::steady::Steady;
use crate::api::Probe;
use crate::params::{Param, Unit, Values};
use crate::units::Time;

pub(crate) mod outstanding;
pub mod rto;
pub mod scoreboard;
pub mod steady;
#[cfg(test)]
mod testing;
pub mod timers;

macro_rules! recoveries {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every recovery, in the order of this list.
        pub static RECOVERIES: &[&dyn RecoveryKind] = &[$(&$module::$unit),*];
    };
}

recoveries! {
    tahoe::Tahoe,
    reno::Reno,
    newreno::NewReno,
    sack::Sack,
    loss_resilient::LossResilient,
    loss_monitor::LossMonitor,
    sack_monitor::SackMonitor,
    none::Unreliable,
}

/// Parameters that every recovery has.
pub const COMMON: &[Param] = &[
    Param::new(
        "min_rto",
        Unit::Seconds,
        0.2,
        "RFC 6298 (2.4); 0.2 s as ns-2 and Linux",
        "Least retransmission timeout.",
    )
    .within(1e-6, 60.0),
    Param::new("initial_rto", Unit::Seconds, 1.0, "RFC 6298 (2.1)", "Retransmission timeout before the first sample.")
        .within(1e-6, 60.0),
    Param::new("max_rto", Unit::Seconds, 60.0, "RFC 6298 (2.5)", "Greatest retransmission timeout.")
        .within(1e-3, 3600.0),
    Param::new(
        "backoff_until",
        Unit::Choice(&["new_ack", "fresh_segment"]),
        0.0,
        "RFC 6298 section 5; Karn, Partridge, SIGCOMM 1987",
        "What ends the back-off of the retransmission timer: the first acknowledgement of new data, whose time stamp is a sample, or the first that covers a segment sent for the first time after the timeout, as in ns-2 without ts_resetRTO_.",
    ),
    Param::new("clock_tick", Unit::Seconds, 0.0, "RFC 6298, G", "Period of the host's clock, G: round trips are counted in its ticks and smoothed in integers, timers (not the pace) expire at them; 0s is exact.")
        .within(0.0, 1.0),
    Param::new(
        "dupackthreshold",
        Unit::Packets,
        3.0,
        "RFC 5681 section 3.2",
        "Duplicate acknowledgements that show a loss.",
    )
    .within(1.0, 255.0),
];

/// How lost segments are found and resent: one file, registered by one line in `recovery/mod.rs`.
pub trait RecoveryKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Paper or RFC.
    fn source(&self) -> &'static str;
    /// Parameters beyond those that every recovery has ([`crate::recovery::COMMON`]).
    fn params(&self) -> &'static [Param] {
        &[]
    }
    /// Whether everything arrives in the end. If not, nothing is sent twice, the receiver passes over what is missing, and
    /// acknowledgements carry the number of segments that have arrived in place of the next one expected.
    fn reliable(&self) -> bool {
        true
    }
    /// Whether the receiver is asked for SACK ranges.
    fn wants_sack(&self) -> bool {
        false
    }
    /// A recovery for one flow; `values` may hold the common parameters too.
    fn build(&self, values: &Values) -> Box<dyn Recovery>;
}

/// What recovery makes of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Segments that left the network by this acknowledgement (cumulative or SACK).
    pub newly_acked: u32,
    /// The cumulative number did not move although data was outstanding.
    pub duplicate: bool,
    /// A loss episode began with this acknowledgement; segments in flight before it.
    pub loss: Option<u32>,
}

/// Where a flow stands, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryState {
    /// All segments before this one are acknowledged.
    pub acked: u32,
    /// The segment that [`Next::New`] means.
    pub next: u32,
    /// One past the highest segment ever sent.
    pub highest: u32,
    /// Segments in flight, as this recovery estimates them.
    pub in_flight: u32,
    /// A loss is being repaired.
    pub recovering: bool,
    /// Smoothed round-trip time; zero while unknown.
    pub srtt: Time,
    /// When the retransmission timer expires.
    pub timer: Time,
}

/// What to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next segment in sequence (after a timeout this may be one sent before).
    New,
    /// This segment again.
    Resend(u32),
    /// The window is full.
    Nothing,
}

/// Sequence space, duplicates, inflation and timers of one flow. It never touches the window.
pub trait Recovery: Send {
    /// A packet left: `segment` was what [`Recovery::next`] named.
    fn on_sent(&mut self, now: Time, segment: u32, packet_number: u32);
    /// An acknowledgement came. `rtt` is the sample of its echoed time stamp.
    fn on_ack(&mut self, now: Time, cumulative: u32, packet_number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome;
    /// What to send next within `cwnd` and the receiver's window, both in segments.
    fn next(&self, cwnd: f64, rwnd: u32) -> Next;
    /// The application has nothing more, though the window has room: a segment to resend instead (RFC 6675, NextSeg 3 and 4).
    fn spare(&self) -> Option<u32> {
        None
    }
    /// Where the flow stands.
    fn state(&self) -> RecoveryState;
    /// [`Recovery::on_ack`], then [`Recovery::state`]. This and the next one save a flow calls, and are not to be overridden.
    fn take_ack(
        &mut self,
        now: Time,
        cumulative: u32,
        packet_number: u32,
        sack: &[(u32, u32)],
        rtt: Time,
        state: &mut RecoveryState,
    ) -> Outcome {
        let outcome = self.on_ack(now, cumulative, packet_number, sack, rtt);
        *state = self.state();
        outcome
    }
    /// Lends its counts to the flow while nothing is missing, nothing is resent and all that is outstanding is in flight: until it
    /// takes them back, it is told nothing of acknowledgements in order and of new segments. By default it does not.
    fn lend(&self) -> Option<Steady> {
        None
    }
    /// Takes back what it has lent.
    fn take_back(&mut self, steady: &Steady, at: &RecoveryState) {
        let _ = (steady, at);
    }
    /// [`Recovery::on_sent`], then [`Recovery::state`] and [`Recovery::next`].
    fn take_sent(&mut self, now: Time, sent: (u32, u32), windows: (f64, u32), state: &mut RecoveryState) -> Next {
        self.on_sent(now, sent.0, sent.1);
        *state = self.state();
        self.next(windows.0, windows.1)
    }
    /// The segment that [`Next::New`] means.
    fn next_segment(&self) -> u32 {
        self.state().next
    }
    /// Segments up to this one (excluded) are acknowledged.
    fn acknowledged(&self) -> u32 {
        self.state().acked
    }
    /// One past the highest segment ever sent.
    fn highest_sent(&self) -> u32 {
        self.state().highest
    }
    /// Segments in flight, as this recovery estimates them.
    fn in_flight(&self) -> u32 {
        self.state().in_flight
    }
    /// A loss is being repaired.
    fn recovering(&self) -> bool {
        self.state().recovering
    }
    /// When the retransmission timer expires.
    fn next_timer(&self) -> Time {
        self.state().timer
    }
    /// Smoothed round-trip time; zero while unknown.
    fn srtt(&self) -> Time {
        self.state().srtt
    }
    /// The retransmission timer expired: rolls back for a restart and returns the segments that were in flight, or `None` if
    /// nothing was outstanding.
    fn on_timer(&mut self, now: Time) -> Option<u32>;
    /// A round-trip time is known without data having been acknowledged (connection set-up).
    fn on_rtt(&mut self, rtt: Time);
    /// Timeouts since the last acknowledgement of new data.
    fn backoffs(&self) -> u32;
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}
