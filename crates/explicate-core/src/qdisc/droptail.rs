//! DropTail: a finite FIFO queue that drops packets for which there is no room.
//!
//! The packet in service is not counted (as in ns-2), so a queue that admits nothing still passes packets one by one.

use alloc::boxed::Box;

use super::common::{Limit, QueueLimit};
use crate::api::{PortView, Probe};
use crate::params::Info;
use crate::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, QdiscKind, Verdict};
use crate::units::Time;
use crate::wire::Packet;

/// DropTail.
pub struct DropTail;

impl QdiscKind for DropTail {
    const INFO: Info = Info {
        name: "droptail",
        summary: "First in, first out; drops packets that do not fit",
        source: "folklore",
        params: Limit::PARAMS,
    };
    const MARKS: bool = false;

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(Tail(Limit::of(init.values).queue_limit(init.mean_packet))))
    }
}

struct Tail(QueueLimit);

impl Qdisc for Tail {
    fn on_arrival(&mut self, _now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        let fits = self.0.fits((port.backlog_bytes, port.backlog_packets), packet.ip_len) || !port.busy;
        if fits { Verdict::Accept } else { Verdict::Drop(DropCause::Overflow) }
    }
    fn queue_limit(&self) -> Option<QueueLimit> {
        Some(self.0)
    }
    fn probe(&self, _put: Probe<'_>) {}
}
