//! DropTail: a finite first-in first-out queue that refuses what does not fit.
//!
//! The packet in service is not counted (as in ns-2), so a queue that admits nothing still passes packets one by one.

use alloc::boxed::Box;

use crate::params::{Param, Unit};
use crate::protocol::{DropCause, PortView, Probe, Qdisc, QdiscInit, QdiscKind, Verdict};
use crate::units::Time;
use crate::wire::Packet;

/// DropTail.
pub struct DropTail;

const PARAMS: &[Param] = &[
    Param::new("limit", Unit::QueueLength, f64::INFINITY, "ns-2 manual, queue objects", "Most that may wait."),
    Param::new(
        "count",
        Unit::Choice(&["bytes", "packets"]),
        0.0,
        "ns-2 manual, queue objects",
        "What the limit counts; `packets` if the limit is written in `pkt`.",
    ),
];

impl QdiscKind for DropTail {
    fn name(&self) -> &'static str {
        "droptail"
    }
    fn summary(&self) -> &'static str {
        "First in, first out; drops what does not fit"
    }
    fn source(&self) -> &'static str {
        "folklore"
    }
    fn params(&self) -> &'static [Param] {
        PARAMS
    }
    fn build(&self, init: &QdiscInit<'_>) -> Box<dyn Qdisc> {
        let limit = init.values.get(PARAMS, "limit");
        if init.values.get(PARAMS, "count") == 1.0 {
            Box::new(Tail { bytes: u64::MAX, packets: (limit / init.mean_packet + 0.5) as u32 })
        } else {
            Box::new(Tail { bytes: limit as u64, packets: u32::MAX })
        }
    }
}

struct Tail {
    bytes: u64,
    packets: u32,
}

impl Qdisc for Tail {
    fn on_arrival(&mut self, _now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        let fits = port.backlog_bytes + packet.ip_len as u64 <= self.bytes && port.backlog_packets < self.packets
            || !port.busy;
        if fits { Verdict::Accept } else { Verdict::Drop(DropCause::Overflow) }
    }
    fn minds_departures(&self) -> bool {
        false
    }
    fn probe(&self, _put: Probe<'_>) {}
}
