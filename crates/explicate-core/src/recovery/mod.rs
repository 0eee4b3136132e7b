//! Loss recovery. To add one, write its file and add its line here.

use crate::params::{Param, Unit};
use crate::protocol::RecoveryKind;

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
