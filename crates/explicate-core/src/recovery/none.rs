//! No recovery: lost segments are not retransmitted, as over UDP. For applications that tolerate losses, such as the video of
//! paper D section 8.1, and for unresponsive traffic.
//!
//! Every segment is sent once. The receiver skips gaps, and its acknowledgements carry the number of segments that
//! have arrived in place of a cumulative number. Together with the echoed packet number, which is the highest that
//! has arrived, this gives the number of losses even if acknowledgements are lost. Losses are reported to the
//! congestion controller once per window, so it can react to them; nothing is retransmitted.
//!
//! | name | field | unit |
//! | --- | --- | --- |
//! | segments known to have passed the network | `seq.acked` | one past the highest |
//! | of those, segments that arrived | `arrived` | |
//! | losses are reported again from this segment on | `recover` | segment |
//!
//! The timer of RFC 6298 remains as the last resort: if it expires, the segments in flight are given up, and a full
//! window becomes free again. It backs off until an acknowledgement arrives.
//!
//! Where the congestion controller needs no report either (`greedy`), nothing is returned to a simulated flow: no
//! connection is set up, no acknowledgement and no timer exists, and losses are counted at the receiver.
//!
//! Deviations: none; there is no standard to deviate from.

use alloc::boxed::Box;

use crate::api::Probe;
use crate::params::{Info, Values};
use crate::recovery::common::rto::{Rto, Sequence};
use crate::recovery::{AnyRecovery, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

/// No recovery.
pub struct Unreliable;

impl RecoveryKind for Unreliable {
    const INFO: Info =
        Info { name: "none", summary: "No retransmissions", source: "RFC 768 (UDP); paper D section 8.1", params: &[] };
    const RELIABLE: bool = false;
    const SELECTIVE: bool = true;

    fn build_one_way(&self) -> Option<Box<AnyRecovery>> {
        Some(Box::new(OneWay(0)))
    }
    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        Box::new(NoRecovery {
            seq: Sequence::default(),
            rto: Rto::new(values),
            arrived: 0,
            lost: 0,
            recover: 0,
            first_packet: 0,
        })
    }
}

struct NoRecovery {
    seq: Sequence,
    rto: Rto,
    arrived: u32,
    /// Losses that were reported to the controller, or that a timeout assumed.
    lost: u32,
    recover: u32,
    /// Packet number of segment 0: each segment is one packet.
    first_packet: u32,
}

impl Recovery for NoRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, packet_number: u32) {
        self.seq.sent(segment);
        self.first_packet = packet_number.wrapping_sub(segment);
        self.rto.start(now);
    }

    fn on_ack(&mut self, now: Time, cumulative: u32, packet_number: u32, _sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let seen = packet_number.wrapping_sub(self.first_packet).wrapping_add(1);
        let newer = seen > self.seq.acked;
        // Rejects numbers beyond those sent, more arrivals than that or none, and acknowledgements without
        // information.
        let possible = seen <= self.seq.highest && (1..=seen.max(self.seq.acked)).contains(&cumulative);
        if !possible || !newer && cumulative <= self.arrived {
            return Outcome::default();
        }
        let in_flight = self.seq.flight();
        let newly_acked = cumulative.saturating_sub(self.arrived).max(1);
        // The newest report counts, even if it corrects a damaged one.
        self.arrived = cumulative;
        self.seq.acknowledge(seen);
        self.rto.sample(rtt, &self.seq);
        self.rto.acknowledged(now, self.seq.outstanding(), true);
        let lost = self.seq.acked - self.arrived;
        let more = lost > self.lost;
        self.lost = lost;
        let episode = more && self.seq.acked > self.recover;
        if episode {
            self.recover = self.seq.highest;
        }
        Outcome { newly_acked, loss: episode.then_some(in_flight), ..Outcome::default() }
    }

    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        if self.seq.flight() < (cwnd as u32).min(rwnd) { Next::New } else { Next::Nothing }
    }

    fn state(&self) -> RecoveryState {
        self.seq.state(&self.rto, self.seq.flight(), false)
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        if !self.seq.outstanding() {
            self.rto.stop();
            return None;
        }
        let in_flight = self.seq.flight();
        self.seq.acknowledge(self.seq.highest);
        self.lost = self.seq.acked - self.arrived;
        self.recover = self.seq.highest;
        self.rto.expired(now);
        self.rto.stop(); // nothing is outstanding
        Some(in_flight)
    }

    fn on_rtt(&mut self, rtt: Time) {
        self.rto.sample(rtt, &self.seq);
    }
    fn backoffs(&self) -> u32 {
        self.rto.backoffs()
    }
    fn probe(&self, put: Probe<'_>) {
        self.rto.probe(put);
        put("in_flight", self.seq.flight() as f64);
        put("lost", self.lost as f64);
    }
}

/// Nothing is returned: a segment has passed when it has left. Holds the next one.
pub(crate) struct OneWay(pub(crate) u32);

impl Recovery for OneWay {
    fn on_sent(&mut self, _now: Time, _segment: u32, _packet_number: u32) {
        self.0 += 1;
    }
    fn on_ack(&mut self, _now: Time, _cumulative: u32, _number: u32, _sack: &[(u32, u32)], _rtt: Time) -> Outcome {
        Outcome::default()
    }
    fn next(&self, _cwnd: f64, _rwnd: u32) -> Next {
        Next::New
    }
    fn state(&self) -> RecoveryState {
        RecoveryState { acked: self.0, next: self.0, highest: self.0, timer: Time::NEVER, ..RecoveryState::default() }
    }
    fn on_timer(&mut self, _now: Time) -> Option<u32> {
        None
    }
    fn on_rtt(&mut self, _rtt: Time) {}
    fn backoffs(&self) -> u32 {
        0
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` segments, sent as packets from 3 on.
    fn sent(n: u32) -> Box<AnyRecovery> {
        let mut r = Unreliable.build(&Values::default());
        for segment in 0..n {
            r.on_sent(Time::ZERO, segment, segment + 3);
        }
        r
    }
    /// The receiver has got segment `segment` as its `arrived`-th.
    fn ack(r: &mut AnyRecovery, arrived: u32, segment: u32) -> Outcome {
        r.on_ack(Time::millis(100), arrived, segment + 3, &[], Time::millis(100))
    }

    #[test]
    fn losses_are_counted_but_not_lost_acknowledgements() {
        let mut r = sent(10);
        assert_eq!(ack(&mut *r, 1, 0).newly_acked, 1);
        let skipped = ack(&mut *r, 4, 3); // 1 and 2 arrived, their acknowledgements did not
        assert_eq!((skipped.newly_acked, skipped.loss), (3, None));
        assert_eq!(ack(&mut *r, 5, 5).loss, Some(6), "4 is lost; 4 to 9 were in flight");
        assert_eq!(ack(&mut *r, 6, 8).loss, None, "6 and 7 too: the same window");
        let state = r.state();
        assert_eq!((state.acked, state.next, state.in_flight, state.recovering), (9, 10, 1, false));
        assert_eq!(r.next(2.0, 100), Next::New);
        r.on_sent(Time::millis(100), 10, 13);
        r.on_sent(Time::millis(100), 11, 14);
        assert_eq!(r.next(3.0, 100), Next::Nothing);
        assert_eq!(ack(&mut *r, 7, 11).loss, Some(3), "9 and 10: another window");
    }

    #[test]
    fn a_timeout_gives_up_what_is_in_flight() {
        let mut r = sent(4);
        assert_eq!(r.next(4.0, 100), Next::Nothing);
        assert_eq!(r.on_timer(Time::secs(1)), Some(4));
        assert_eq!((r.state().acked, r.state().in_flight, r.next(1.0, 100)), (4, 0, Next::New));
        r.on_sent(Time::secs(1), 4, 7);
        assert_eq!(r.state().timer, Time::secs(3), "doubled");
        assert_eq!(ack(&mut *r, 1, 4).loss, None, "already reported");
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut r = sent(4);
        for (arrived, segment) in [(1, 4), (2, 0), (0, 0), (9, 3)] {
            assert_eq!(ack(&mut *r, arrived, segment).newly_acked, 0, "{arrived} {segment}");
        }
        assert_eq!(r.state().acked, 0);
        // One that pretends too many arrivals is corrected by the next.
        assert_eq!(ack(&mut *r, 2, 1).newly_acked, 2);
        assert_eq!((ack(&mut *r, 1, 2).newly_acked, r.state().acked), (1, 3));
    }
}
