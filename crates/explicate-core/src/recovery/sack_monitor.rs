//! The loss monitor of paper D over selective acknowledgements in place of packet numbers.
//!
//! Source: De Vleeschouwer and Frossard, "Loss-resilient window-based congestion control", Computer Networks 52, 2008
//! \[paper D\], section 5.1, which expects of SACK what it finds with packet numbers; RFC 2018.
//!
//! As `loss_monitor`, including its timers, except for the way in which the sender identifies the packet that caused
//! an acknowledgement. One that advances the cumulative number was caused by the segment that was missing; a
//! duplicate by a segment in its first range, which contains the most recent arrival (RFC 2018 section 4). The packet
//! is the last one that carried the segment.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | W, rseqn, dupcount, swnd | `monitor` | | those of `loss_monitor` | 003 section 5.2 |
//!
//! Deviations:
//! 1. If acknowledgements were lost, several segments of the first range are new: the one that was sent last counts
//!    as the cause. Those of the other ranges are recorded, too.
//! 2. For a segment that was retransmitted unnecessarily the last copy counts, although an earlier one arrived: the
//!    candidate may then be retransmitted earlier than with packet numbers.
//! 3. The cost of an acknowledgement is one step per reported segment, not only per new one.

use alloc::boxed::Box;

use crate::api::Probe;
use crate::params::{Info, Values};
use crate::recovery::loss_monitor::{LossMonitorRecovery, Params};
use crate::recovery::{AnyRecovery, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

/// The loss monitor over selective acknowledgements.
pub struct SackMonitor;

impl RecoveryKind for SackMonitor {
    const INFO: Info = Info {
        name: "sack_monitor",
        summary: "The loss monitor over selective acknowledgements: the longest missing segment is retransmitted, several per round trip",
        source: "De Vleeschouwer, Frossard, Computer Networks 52, 2008, section 5.1; RFC 2018",
        params: Params::PARAMS,
    };
    const WANTS_SACK: bool = true;

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        Box::new(SackMonitorRecovery { monitor: LossMonitorRecovery::new(values) })
    }
}

struct SackMonitorRecovery {
    monitor: LossMonitorRecovery,
}

impl Recovery for SackMonitorRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, packet_number: u32) {
        self.monitor.on_sent(now, segment, packet_number);
    }
    fn on_ack(&mut self, now: Time, cumulative: u32, _packet_number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let caused_by = if cumulative > self.monitor.acked() {
            self.monitor.first_hole()
        } else {
            sack.first().and_then(|&(first, end)| self.monitor.latest(first, end))
        };
        self.monitor.take(now, cumulative, caused_by, sack, rtt)
    }
    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        self.monitor.next(cwnd, rwnd)
    }
    fn state(&self) -> RecoveryState {
        self.monitor.state()
    }
    fn on_timer(&mut self, now: Time) -> Option<u32> {
        self.monitor.on_timer(now)
    }
    fn on_rtt(&mut self, rtt: Time) {
        self.monitor.on_rtt(rtt);
    }
    fn backoffs(&self) -> u32 {
        self.monitor.backoffs()
    }
    fn probe(&self, put: Probe<'_>) {
        self.monitor.probe(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Common;
    use crate::recovery::common::testing::transfer_randomly;
    use crate::testing;

    fn monitor(dupackthreshold: f64) -> SackMonitorRecovery {
        let values = testing::values(&[Common::PARAMS], &[("dupackthreshold", dupackthreshold)]);
        SackMonitorRecovery { monitor: LossMonitorRecovery::new(&values) }
    }
    fn ack(r: &mut SackMonitorRecovery, ms: u64, cumulative: u32, sack: &[(u32, u32)]) -> Outcome {
        r.on_ack(Time::millis(ms), cumulative, u32::MAX, sack, Time::millis(100))
    }

    /// Segments 0 and 1 of four are lost, the window is 4. Reports of segments 2 to 5 let both go in one round trip, and
    /// nothing goes that they show.
    #[test]
    fn two_losses_are_repaired_in_a_round_trip() {
        let mut r = monitor(1.0);
        for packet in 0..4 {
            assert_eq!(r.next(4.0, 99), Next::New);
            r.on_sent(Time::ZERO, packet, packet);
        }
        assert_eq!(ack(&mut r, 100, 0, &[(2, 3)]).newly_acked, 1);
        assert_eq!(r.next(4.0, 99), Next::New, "packet 4 is next: no window of packets has left since packet 0");
        r.on_sent(Time::millis(100), 4, 4);
        assert_eq!(ack(&mut r, 101, 0, &[(2, 4)]).newly_acked, 1);
        assert_eq!(r.next(4.0, 99), Next::Resend(0));
        r.on_sent(Time::millis(101), 0, 5);
        assert_eq!(r.next(4.0, 99), Next::New, "segment 1 waits for an answer to a later packet");
        r.on_sent(Time::millis(101), 5, 6);
        assert_eq!(ack(&mut r, 150, 0, &[(2, 5)]).newly_acked, 1);
        assert_eq!(r.next(4.0, 99), Next::Resend(1));
        r.on_sent(Time::millis(150), 1, 7);
        assert_eq!(ack(&mut r, 200, 1, &[(2, 5)]).newly_acked, 1, "segment 0");
        assert_eq!(ack(&mut r, 201, 1, &[(2, 6)]).newly_acked, 1, "segment 5");
        assert_eq!(ack(&mut r, 250, 6, &[]).newly_acked, 1, "segment 1; the others were reported");
        assert_eq!(r.state().timer, Time::NEVER);
    }

    /// The ranges of an acknowledgement also contain the reports of lost acknowledgements.
    #[test]
    fn what_lost_acknowledgements_told_is_told_again() {
        let mut r = monitor(3.0);
        for packet in 0..8 {
            r.on_sent(Time::ZERO, packet, packet);
        }
        assert_eq!(ack(&mut r, 100, 0, &[(5, 7), (1, 3)]).newly_acked, 4);
        assert_eq!(r.monitor.latest(1, 8), Some((7, 7)));
        assert_eq!(ack(&mut r, 101, 0, &[(90, u32::MAX), (5, 8)]).newly_acked, 1, "what was never sent is nonsense");
    }

    #[test]
    fn nothing_that_has_arrived_is_resent() {
        for threshold in [1.0, 3.0] {
            for (seed, loss) in [0.0, 0.01, 0.1, 0.3].into_iter().enumerate() {
                let mut r = monitor(threshold);
                let story = transfer_randomly(&mut r, seed as u64, 2000, (loss, 0.0), |_| {});
                let needless = story.resent_arrived + story.resent_in_flight;
                assert!(story.timeouts > 0 || needless == 0, "{loss}: {story:?}");
                assert_eq!(loss > 0.0, story.resent > 0, "{loss}: {story:?}");
            }
        }
    }
}
