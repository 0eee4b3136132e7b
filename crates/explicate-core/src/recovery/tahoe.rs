//! Tahoe's fast retransmit (V. Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988; 4.3BSD-Tahoe): go back to
//! the gap.
//!
//! Three duplicates indicate a loss, and the sender continues from the missing segment as if the timer had expired:
//! all following segments are retransmitted as the window allows. There is no repair episode and no inflation. The
//! corresponding window is one segment and slow start, set by the congestion controller (`on_duplicates =
//! "restart"`): the preset `tahoe` combines the two.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | snd_una, snd_nxt, snd_max | `seq` | segments | | 4.3BSD |
//! | t_dupacks | `duplicates` | | 3 | 4.3BSD |
//!
//! Deviations:
//! 1. Retransmitted segments may have arrived before, and their duplicates would indicate another loss: no loss is
//!    detected before all data sent are acknowledged (RFC 6582 section 3.2, 1), a rule that 4.3BSD did not have.
//! 2. No limited transmit (RFC 3042), which came later.
//! 3. The reduction at a timeout, and the end of back-off: `reno.rs`, deviations 1 and 3.

use alloc::boxed::Box;

use crate::api::Probe;
use crate::params::{Info, Values};
use crate::recovery::common::loss_free::LossFree;
use crate::recovery::common::rto::{Rto, Sequence};
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

/// Tahoe's recovery.
pub struct Tahoe;

impl RecoveryKind for Tahoe {
    const INFO: Info = Info {
        name: "tahoe",
        summary: "Fast retransmit without fast recovery: returns to the first missing segment and continues from there",
        source: "Jacobson, SIGCOMM 1988",
        params: &[],
    };

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        Box::new(TahoeRecovery {
            seq: Sequence::default(),
            rto: Rto::new(values),
            dupackthreshold: Common::of(values).dupackthreshold as u32,
            duplicates: 0,
            recover: 0,
        })
    }
}

struct TahoeRecovery {
    seq: Sequence,
    rto: Rto,
    dupackthreshold: u32,
    /// Consecutive duplicates.
    duplicates: u32,
    /// No loss is detected before this is acknowledged.
    recover: u32,
}

impl TahoeRecovery {
    fn go_back(&mut self) -> u32 {
        let flight = self.seq.flight();
        // Going back causes duplicates of segments that had arrived: the last of them names `highest` itself.
        self.recover = self.seq.highest.saturating_add(1);
        self.seq.roll_back();
        self.duplicates = 0;
        flight
    }
}

impl Recovery for TahoeRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, _packet_number: u32) {
        self.seq.sent(segment);
        self.rto.start(now);
    }

    fn on_ack(&mut self, now: Time, cumulative: u32, _packet_number: u32, _sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let newly_acked = self.seq.acknowledge(cumulative);
        if newly_acked > 0 {
            self.rto.sample(rtt, &self.seq);
            self.rto.acknowledged(now, self.seq.outstanding(), self.seq.acked >= self.recover);
            self.duplicates = 0;
            return Outcome { newly_acked, ..Outcome::default() };
        }
        if !self.seq.is_duplicate(cumulative) {
            return Outcome::default();
        }
        self.duplicates += 1;
        let lost = self.duplicates == self.dupackthreshold && cumulative >= self.recover;
        let loss = lost.then(|| self.go_back());
        if lost {
            self.rto.restart(now);
        }
        Outcome { duplicate: true, loss, ..Outcome::default() }
    }

    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        if self.seq.flight() < (cwnd as u32).min(rwnd) { Next::New } else { Next::Nothing }
    }

    fn state(&self) -> RecoveryState {
        self.seq.state(&self.rto, self.seq.flight().saturating_sub(self.duplicates), false)
    }

    fn check_out(&self) -> Option<LossFree> {
        if self.duplicates > 0 { None } else { self.seq.check_out(&self.rto) }
    }

    fn check_in(&mut self, loss_free: &LossFree, at: &RecoveryState) {
        self.seq.check_in(&mut self.rto, loss_free, at);
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        if !self.seq.outstanding() {
            self.rto.stop();
            return None;
        }
        self.rto.expired(now);
        Some(self.go_back())
    }

    fn on_rtt(&mut self, rtt: Time) {
        self.rto.sample(rtt, &self.seq);
    }
    fn backoffs(&self) -> u32 {
        self.rto.backoffs()
    }
    fn probe(&self, put: Probe<'_>) {
        self.rto.probe(put);
        put("in_flight", self.state().in_flight as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::common::testing::{ack, sent, transfer_randomly};

    #[test]
    fn the_third_duplicate_goes_back() {
        let mut r = sent(&Tahoe, 10); // 1 is lost
        assert_eq!(ack(&mut *r, 1).newly_acked, 1);
        assert_eq!((ack(&mut *r, 1).loss, r.next(9.0, 100), ack(&mut *r, 1).loss), (None, Next::Nothing, None));
        assert_eq!(ack(&mut *r, 1).loss, Some(9));
        let state = r.state();
        assert_eq!((state.next, state.highest, state.in_flight, state.recovering), (1, 10, 0, false));
        assert_eq!(r.next(1.0, 100), Next::New);
        r.on_sent(Time::millis(100), 1, 10);
        assert_eq!(r.next(1.0, 100), Next::Nothing);
        // Six duplicates more are on their way; then the hole is filled, and what had arrived is passed at once.
        assert!((0..6).all(|_| ack(&mut *r, 1).loss.is_none()));
        assert_eq!(ack(&mut *r, 10).newly_acked, 9);
        assert_eq!((r.state().next, r.next(2.0, 100)), (10, Next::New));
    }

    #[test]
    fn random_loss_is_repaired() {
        for seed in 0..40 {
            for loss in [0.0, 0.001, 0.01, 0.05, 0.2] {
                let mut r = Tahoe.build(&Values::default());
                let story = transfer_randomly(&mut *r, seed, 800, (loss, loss / 2.0), |_| {});
                assert!(loss > 0.0 || story.resent + story.timeouts == 0);
            }
        }
    }
}
