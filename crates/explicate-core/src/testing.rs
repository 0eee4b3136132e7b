//! Helpers of tests that call state machines directly: values of parameters, and events with default fields, which a
//! test then changes.

use crate::api::{Ack, Loss, LossKind, Sent};
use crate::params::{Param, Values};
use crate::units::Time;
use crate::wire::Congestion;

/// These values, by the names that the lists declare.
pub fn values(lists: &[&[Param]], given: &[(&str, f64)]) -> Values {
    let mut values = Values::default();
    for (name, value) in given {
        let declared = lists.iter().flat_map(|list| list.iter()).find(|param| param.name == *name);
        values.set(declared.unwrap_or_else(|| panic!("`{name}` is not declared")), *value);
    }
    values
}

/// An acknowledgement of one segment, with round-trip times of 100 ms and a full window.
pub fn ack(now: Time, header: &Congestion) -> Ack<'_> {
    Ack { in_flight: 1, ..Ack::new(now, 1, Time::millis(100), header) }
}

/// A loss or mark with `in_flight` segments in flight.
pub fn loss(now: Time, kind: LossKind, in_flight: u32) -> Loss {
    Loss::new(now, kind, in_flight, Time::millis(100))
}

/// A transmission of a flow that has more data to send.
pub fn sent(now: Time, in_flight: u32) -> Sent {
    Sent::new(now, in_flight)
}
