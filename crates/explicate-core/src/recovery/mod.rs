//! Loss recovery. To add one, write its file and add its line here.

use alloc::boxed::Box;

use self::common::loss_free::LossFree;
use crate::api::Probe;
use crate::params::{Auto, Info, Packets, Param, Seconds, Values, choices, parameters};
use crate::units::Time;

pub mod common;

macro_rules! recoveries {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every recovery, in the order of this list.
        pub static RECOVERIES: &[&AnyRecoveryKind] = &[$(&$module::$unit),*];
    };
}

recoveries! {
    tahoe::Tahoe,
    reno::Reno,
    newreno::NewReno,
    sack::Sack,
    rack::Rack,
    loss_resilient::LossResilient,
    loss_monitor::LossMonitor,
    sack_monitor::SackMonitor,
    none::Unreliable,
}

choices! {
    /// End of the back-off of the retransmission timer.
    pub enum BackoffUntil { NewAck = "new_ack", FreshSegment = "fresh_segment" }
}

choices! {
    /// How the round-trip time is estimated, and the timeout that follows from it.
    pub enum RtoRule {
        Linux = "linux",
        Rfc6298 = "rfc6298",
        Ns2 = "ns2",
        Ns2Timestamps = "ns2_timestamps",
    }
}

parameters! {
    /// Parameters that every recovery has.
    pub struct Common {
        /// Rule of the round-trip estimate and of the retransmission timeout. `linux`: a margin above SRTT, the largest deviation
        /// of a round trip and 200 ms at least, in timers of 1 ms. `rfc6298`: gains for a round trip divided by its samples
        /// (RFC 7323 appendix G), 1 s at least. `ns2`: one sample in a round trip, in ticks, as ns-2 without time stamps.
        /// `ns2_timestamps`: a sample of every acknowledgement of new data, rounded to ticks, as ns-2 with `timestamps_ true`.
        rto: RtoRule = RtoRule::Linux, "Linux 6.18 tcp_rtt_estimator; RFC 6298; RFC 7323 appendix G; ns-2 tcp.cc, newack, rtt_update";
        /// Floor of the rule: with `linux` of the margin above SRTT, else of the whole timeout; auto: 1s with `rfc6298`, else 200ms.
        min_rto: Auto<Seconds> = None, in 1e-6..=60.0, "RFC 6298 (2.4); 0.2 s as ns-2 and Linux";
        /// Retransmission timeout before the first sample.
        initial_rto: Seconds = 1.0, in 1e-6..=60.0, "RFC 6298 (2.1)";
        /// Maximum retransmission timeout. From 60 s on it limits back-off only, not a timeout that the path's round trip
        /// requires; auto: 120s with `linux`, else 60s.
        max_rto: Auto<Seconds> = None, in 1e-3..=3600.0, "RFC 6298 (2.5); Linux TCP_RTO_MAX";
        /// End of the back-off of the retransmission timer: the first acknowledgement of new data, whose time stamp
        /// is a sample, or the first that covers a segment sent for the first time after the timeout, as in ns-2
        /// without ts_resetRTO_.
        backoff_until: BackoffUntil = BackoffUntil::NewAck, "RFC 6298 section 5; Karn, Partridge, SIGCOMM 1987";
        /// Period of the host's clock, G: round-trip times are counted in its ticks and smoothed in integers, and
        /// timers (except pacing) expire at its ticks; 0s is exact; auto: 10ms with `ns2` and `ns2_timestamps`, else exact.
        clock_tick: Auto<Seconds> = None, in 0.0..=1.0, "RFC 6298, G; ns-2 tcpTick_";
        /// Number of duplicate acknowledgements that indicates a loss.
        dupackthreshold: Packets = 3.0, in 1.0..=255.0, "RFC 5681 section 3.2";
    }
}

impl Common {
    /// Period of the host's clock, seconds; zero is exact.
    pub fn clock(&self) -> f64 {
        let of_ns2 = matches!(self.rto, RtoRule::Ns2 | RtoRule::Ns2Timestamps);
        self.clock_tick.unwrap_or(if of_ns2 { 0.01 } else { 0.0 })
    }
    /// The floor of the rule, seconds.
    pub fn least_rto(&self) -> f64 {
        self.min_rto.unwrap_or(if self.rto == RtoRule::Rfc6298 { 1.0 } else { 0.2 })
    }
    /// The maximum timeout, seconds.
    pub fn most_rto(&self) -> f64 {
        self.max_rto.unwrap_or(if self.rto == RtoRule::Linux { 120.0 } else { 60.0 })
    }
}

/// Parameters that every recovery has.
pub const COMMON: &[Param] = Common::PARAMS;

/// How lost segments are detected and retransmitted: one file, registered by one line in `recovery/mod.rs`.
pub trait RecoveryKind: Sync {
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// Whether delivery is reliable. If not, nothing is retransmitted, the receiver skips gaps, and acknowledgements
    /// carry the number of segments that have arrived in place of the next one expected.
    const RELIABLE: bool = true;
    /// Whether SACK ranges are requested from the receiver.
    const WANTS_SACK: bool = false;
    /// Whether the receiver is to report duplicates, in the first SACK range (RFC 2883).
    const WANTS_DSACK: bool = false;
    /// Whether acknowledgements tell it of every segment that arrives, also beyond a gap, each once
    /// ([`Outcome::newly_acked`]): by SACK, echoed packet numbers or numbers of arrivals.
    const SELECTIVE: bool = Self::WANTS_SACK;
    /// Whether it may find that a reported loss was none ([`Outcome::undo`]).
    const UNDOES: bool = false;
    /// A recovery for a flow to which nothing is returned; `None` if it cannot do without.
    fn build_one_way(&self) -> Option<Box<AnyRecovery>> {
        None
    }
    /// A recovery for one flow; `values` may also contain the common parameters.
    fn build(&self, values: &Values) -> Box<AnyRecovery>;
}

/// Any [`RecoveryKind`].
pub type AnyRecoveryKind = dyn RecoveryKindObject;

/// Any [`Recovery`].
pub type AnyRecovery = dyn RecoveryObject;

mod object {
    use super::*;
    use crate::api::object::described;

    /// A [`Recovery`] as an object, with the calls that make several others; other crates cannot name it.
    pub trait RecoveryObject: Recovery {
        /// [`Recovery::on_ack`], then [`Recovery::state`].
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
        /// [`Recovery::on_sent`], then [`Recovery::state`] and [`Recovery::next`].
        fn take_sent(&mut self, now: Time, sent: (u32, u32), windows: (f64, u32), state: &mut RecoveryState) -> Next {
            self.on_sent(now, sent.0, sent.1);
            *state = self.state();
            self.next(windows.0, windows.1)
        }
    }
    impl<R: Recovery> RecoveryObject for R {}

    /// A [`RecoveryKind`] as an object; other crates cannot name it.
    pub trait RecoveryKindObject: Sync {
        described!();
        fn reliable(&self) -> bool;
        fn wants_sack(&self) -> bool;
        fn wants_dsack(&self) -> bool;
        fn selective(&self) -> bool;
        fn undoes(&self) -> bool;
        fn build_one_way(&self) -> Option<Box<AnyRecovery>>;
        fn build(&self, values: &Values) -> Box<AnyRecovery>;
    }
    impl<K: RecoveryKind> RecoveryKindObject for K {
        fn info(&self) -> &'static Info {
            &K::INFO
        }
        fn reliable(&self) -> bool {
            K::RELIABLE
        }
        fn wants_sack(&self) -> bool {
            K::WANTS_SACK
        }
        fn wants_dsack(&self) -> bool {
            K::WANTS_DSACK
        }
        fn selective(&self) -> bool {
            K::SELECTIVE
        }
        fn undoes(&self) -> bool {
            K::UNDOES
        }
        fn build_one_way(&self) -> Option<Box<AnyRecovery>> {
            RecoveryKind::build_one_way(self)
        }
        fn build(&self, values: &Values) -> Box<AnyRecovery> {
            RecoveryKind::build(self, values)
        }
    }
}
use object::{RecoveryKindObject, RecoveryObject};

/// The result of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Segments that have left the network, as this acknowledgement shows (cumulative or SACK).
    pub newly_acked: u32,
    /// The cumulative acknowledgement did not advance although data were outstanding.
    pub duplicate: bool,
    /// What the last [`Outcome::loss`] or timeout took for lost had arrived: the controller takes its response back.
    pub undo: bool,
    /// A loss episode began with this acknowledgement; segments in flight before it.
    pub loss: Option<u32>,
}

/// State of a flow, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryState {
    /// All segments before this one are acknowledged.
    pub acked: u32,
    /// The segment of [`Next::New`].
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

/// The next transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next segment in sequence (after a timeout this may be one that was sent before).
    New,
    /// Retransmit this segment.
    Resend(u32),
    /// The window is full.
    Nothing,
}

/// Sequence space, duplicates, inflation and timers of one flow. It never changes the window; it may use less of it, or approach it
/// evenly from above.
pub trait Recovery: Send {
    /// A packet left, with the `segment` that [`Recovery::next`] returned.
    fn on_sent(&mut self, now: Time, segment: u32, packet_number: u32);
    /// An acknowledgement arrived. `rtt` is the sample from its echoed time stamp.
    fn on_ack(&mut self, now: Time, cumulative: u32, packet_number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome;
    /// The next transmission within `cwnd` and the receiver's window, both in segments.
    fn next(&self, cwnd: f64, rwnd: u32) -> Next;
    /// The application has no more data, although the window has room: a segment to retransmit instead (RFC 6675,
    /// NextSeg 3 and 4).
    fn spare(&self) -> Option<u32> {
        None
    }
    /// The state of the flow.
    fn state(&self) -> RecoveryState;
    /// Lends its counters to the flow while no segment is missing, no retransmission is pending and all outstanding
    /// data are in flight. Until it takes them back, it receives neither in-order acknowledgements nor new segments, but it may
    /// follow them ([`LossFree::follows`]).
    /// By default it lends nothing.
    fn check_out(&self) -> Option<LossFree> {
        None
    }
    /// Takes back the lent counters.
    fn check_in(&mut self, loss_free: &LossFree, at: &RecoveryState) {
        let _ = (loss_free, at);
    }
    /// Its counters are lent with [`LossFree::follows`]: a segment left, as `at` shows. It may bring the timer forward.
    fn follow_sent(&mut self, now: Time, at: &mut RecoveryState) {
        let _ = (now, at);
    }
    /// The same for an acknowledgement in order of `newly` segments.
    fn follow_ack(&mut self, now: Time, newly: u32, rtt: Time, at: &mut RecoveryState) {
        let _ = (now, newly, rtt, at);
    }
    /// The retransmission timer expired: rolls back for a restart and returns the segments that were in flight, or `None` if
    /// nothing was outstanding.
    fn on_timer(&mut self, now: Time) -> Option<u32>;
    /// Acts for a timer that is due, but is not the retransmission timer: `None` if there is none. No packet of its outcome is newly
    /// acknowledged. Called before [`Recovery::on_timer`].
    fn on_early_timer(&mut self, _now: Time) -> Option<Outcome> {
        None
    }
    /// The controller's window limits a repair by itself ([`crate::api::Sender::LIMITS_REPAIR`]): the recovery does not reduce the
    /// flight in proportion. Called before the first packet.
    fn leave_repair_to_window(&mut self) {}
    /// A round-trip time is known although no data were acknowledged (connection set-up).
    fn on_rtt(&mut self, rtt: Time);
    /// Timeouts since the last acknowledgement of new data.
    fn backoffs(&self) -> u32;
    /// The retransmission timeout, if it is known while the counters are not lent.
    fn timeout(&self) -> Option<Time> {
        None
    }
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}
