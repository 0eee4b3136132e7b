//! Constructors of the arguments that a sender receives.

use super::{Ack, Loss, LossKind, Sent, Undo};
use crate::units::Time;
use crate::wire::{Congestion, Transport};

impl<'a> Ack<'a> {
    /// An in-order acknowledgement of `newly_acked` segments with this round-trip time and header, and nothing in
    /// flight.
    pub fn new(now: Time, newly_acked: u32, rtt: Time, header: &'a Congestion) -> Ack<'a> {
        Ack {
            now,
            newly_acked,
            cumulative: newly_acked,
            highest_sent: newly_acked + 1,
            duplicate: false,
            selective: false,
            header,
            transport: &Transport::EMPTY,
            rtt,
            srtt: rtt,
            in_flight: 0,
            recovering: false,
            app_limited: false,
        }
    }
}

impl Loss {
    /// A loss or mark of a segment that was sent once, with `in_flight` segments in flight.
    pub fn new(now: Time, kind: LossKind, in_flight: u32, srtt: Time) -> Loss {
        Loss { now, kind, in_flight, srtt, repeated: false, marked: kind == LossKind::Mark }
    }
}

impl Undo {
    /// The response to a loss is taken back that was reported with this window and threshold, segments.
    pub fn new(now: Time, cwnd: f64, ssthresh: f64, srtt: Time) -> Undo {
        Undo { now, cwnd, ssthresh, srtt }
    }
}

impl Sent {
    /// A transmission of a flow that has more data to send.
    pub fn new(now: Time, in_flight: u32) -> Sent {
        Sent { now, in_flight, backlogged: true }
    }
}
