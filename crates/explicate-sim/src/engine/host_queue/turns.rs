//! The queues `fq_codel` and `fq`: flows take turns. A flow that is alone is limited by its small queue only. Of several, each
//! waits with its next packet in its transport until its turn, a packet of the longest length or as many bytes of shorter
//! ones, so that the line has two packets at a time: one is sent, and one waits. A flow that has not sent for a whole round
//! goes first.
//!
//! That is deficit round robin with a list of new flows, as in Linux's `sch_fq_codel.c` and `sch_fq.c` (RFC 8290), decided when a
//! flow asks. Left out: flows that share a queue by their hash; `fq`'s bands; CoDel, which
//! drops what has waited for long: here that waits in the transport, and is not sent before it may leave.

use explicate_core::units::Time;

use super::{Line, Member};
use crate::arena::NIL;

/// The turns of a host's flows.
pub(super) struct Turns {
    /// When the turn begins that follows the last one given.
    until: Time,
    /// The flow that sent last, and when the last packet of any other has left.
    last: u32,
    others_until: Time,
    /// Bytes of a turn: the longest packet.
    quantum: u32,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { until: Time::ZERO, last: NIL, others_until: Time::ZERO, quantum: 0 }
    }
}

impl Turns {
    /// A flow's packet joined the line, which was free at `before`, and leaves at `departs`.
    pub(super) fn join(&mut self, (number, flow): (u32, &mut Member), before: Time, departs: Time, bytes: u32) {
        if self.last != number {
            (self.last, self.others_until) = (number, before);
        }
        flow.credit = flow.credit.saturating_sub(bytes);
        flow.turn = departs.max(self.until);
    }
    /// A packet that waits for nothing takes this time of the line: later turns move.
    pub(super) fn pass(&mut self, now: Time, takes: Time) {
        if self.until > now {
            self.until += takes;
        }
    }
    /// Until when a flow waits for its turn; `None` if it may send.
    pub(super) fn wait(
        &mut self,
        line: &Line,
        (number, flow): (u32, &mut Member),
        now: Time,
        bytes: u32,
    ) -> Option<Time> {
        self.quantum = self.quantum.max(bytes);
        if std::mem::take(&mut flow.promised) {
            flow.credit = self.quantum;
        }
        let takes = line.takes(bytes);
        // Less than a packet is left: someone has not taken their turn.
        if flow.credit >= bytes || line.free < now + takes {
            return None;
        }
        let room = line.free.since(now) <= Time(takes.0 * (line.most(bytes) - 1));
        let alone = self.last == number && self.others_until <= now && self.until <= now;
        if room && (alone || now >= flow.turn) {
            self.pass(now, takes);
            return None;
        }
        let turn = self.until.max(line.free.since(takes));
        if turn <= now {
            return None;
        }
        self.until = turn + line.takes(self.quantum);
        flow.promised = true;
        Some(turn)
    }
}
