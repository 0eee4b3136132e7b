//! Reno's fast retransmit and fast recovery (RFC 5681 section 3.2), with limited transmit (RFC 3042).
//!
//! Three duplicates retransmit the first gap, and further ones inflate the window by a segment each. The first new
//! acknowledgement ends the episode, so a second loss in a window waits for three more duplicates or the timer.
//!
//! Deviations:
//! 1. After a timeout ssthresh is half of the window or of the outstanding data, whichever is less, as in BSD, Linux
//!    and ns-2, over every recovery (`endpoint/sender.rs`). FlightSize of RFC 5681 equation 4, read literally, also
//!    counts segments that an episode has sent beyond the window. A window with several losses ends in a timeout here,
//!    and ssthresh would exceed the capacity of the path, so that a second and a third timeout would follow.
//! 2. The timer restarts with the fast retransmission, as in ns-2.
//! 3. Back-off ends with the first acknowledgement of new data, over every recovery: each carries a time stamp, which
//!    is the new measurement that RFC 6298 section 5 requires. ns-2 keeps the doubled timeout until a segment is
//!    acknowledged that was sent once (without `ts_resetRTO_`, its default), which is Karn's rule without time
//!    stamps. That is `backoff_until = "fresh_segment"`: where many retransmissions are lost, flows then send much
//!    less.

use alloc::boxed::Box;

use crate::api::Probe;
use crate::params::{Info, Values};
use crate::recovery::common::loss_free::LossFree;
use crate::recovery::common::rto::{Rto, Sequence};
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

/// Reno's recovery.
pub struct Reno;

impl RecoveryKind for Reno {
    const INFO: Info = Info {
        name: "reno",
        summary: "Fast retransmit, and fast recovery until the first acknowledgement of new data",
        source: "RFC 5681 section 3.2, RFC 3042",
        params: &[],
    };

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        Box::new(RenoRecovery {
            seq: Sequence::default(),
            rto: Rto::new(values),
            dupackthreshold: Common::of(values).dupackthreshold as u32,
            duplicates: 0,
            limited: 0,
            recover: 0,
            recovering: false,
            resend: false,
        })
    }
}

struct RenoRecovery {
    seq: Sequence,
    rto: Rto,
    dupackthreshold: u32,
    /// Consecutive duplicates: before the episode they release a segment each, within it they inflate the window.
    duplicates: u32,
    /// Segments that limited transmit has added; the reduction does not count them (RFC 5681 section 3.2, 2).
    limited: u32,
    /// Duplicates of a window older than this begin no episode (RFC 6582 section 3.2, 1).
    recover: u32,
    recovering: bool,
    resend: bool,
}

impl Recovery for RenoRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, _packet_number: u32) {
        if self.resend && segment == self.seq.acked {
            self.resend = false;
            self.rto.restart(now);
        } else {
            self.seq.sent(segment);
            self.limited += (self.duplicates > 0 && !self.recovering) as u32;
        }
        self.rto.start(now);
    }

    fn on_ack(&mut self, now: Time, cumulative: u32, _packet_number: u32, _sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let newly_acked = self.seq.acknowledge(cumulative);
        if newly_acked > 0 {
            self.rto.sample(rtt, &self.seq);
            self.rto.acknowledged(now, self.seq.outstanding(), self.seq.acked >= self.recover);
            self.duplicates = 0;
            self.limited = 0;
            self.recovering = false;
            self.resend = false;
            return Outcome { newly_acked, ..Outcome::default() };
        }
        if !self.seq.is_duplicate(cumulative) {
            return Outcome::default();
        }
        self.duplicates += 1;
        let mut outcome = Outcome { duplicate: true, ..Outcome::default() };
        if self.duplicates == self.dupackthreshold && !self.recovering && cumulative >= self.recover {
            self.recovering = true;
            self.resend = true;
            self.recover = self.seq.highest;
            outcome.loss = Some(self.seq.flight().saturating_sub(self.limited));
        }
        outcome
    }

    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        if self.resend {
            return Next::Resend(self.seq.acked);
        }
        let extra = if self.recovering { self.duplicates } else { self.duplicates.min(2) };
        let window = (cwnd as u32).saturating_add(extra).min(rwnd);
        if self.seq.flight() < window { Next::New } else { Next::Nothing }
    }

    fn state(&self) -> RecoveryState {
        self.seq.state(&self.rto, self.seq.flight().saturating_sub(self.duplicates), self.recovering)
    }

    fn check_out(&self) -> Option<LossFree> {
        if self.duplicates > 0 || self.recovering { None } else { self.seq.check_out(&self.rto) }
    }

    fn check_in(&mut self, loss_free: &LossFree, at: &RecoveryState) {
        self.seq.check_in(&mut self.rto, loss_free, at);
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        if !self.seq.outstanding() {
            self.rto.stop();
            return None;
        }
        let flight = self.seq.flight();
        // Going back causes duplicates of segments that had arrived: the last of them names `highest` itself.
        self.recover = self.seq.highest.saturating_add(1);
        self.seq.roll_back();
        self.duplicates = 0;
        self.limited = 0;
        self.recovering = false;
        self.resend = false;
        self.rto.expired(now);
        Some(flight)
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
    use crate::recovery::AnyRecoveryKind;
    use crate::recovery::common::testing::{ack, sent};
    use crate::recovery::newreno::NewReno;
    use crate::recovery::tahoe::Tahoe;

    #[test]
    fn the_third_duplicate_resends_and_inflates() {
        let mut r = sent(&Reno, 10);
        assert_eq!(ack(&mut *r, 1).newly_acked, 1);
        assert!(ack(&mut *r, 1).duplicate);
        assert_eq!(r.next(10.0, 100), Next::New, "limited transmit");
        assert_eq!(ack(&mut *r, 1).loss, None);
        assert_eq!(ack(&mut *r, 1).loss, Some(9));
        assert_eq!(r.next(5.0, 100), Next::Resend(1));
        r.on_sent(Time::millis(100), 1, 10);
        // 9 outstanding: 5 + 3 segments of window are full until two more duplicates arrive.
        assert_eq!(r.next(5.0, 100), Next::Nothing);
        ack(&mut *r, 1);
        ack(&mut *r, 1);
        assert_eq!(r.next(5.0, 100), Next::New);
        assert_eq!(ack(&mut *r, 10).newly_acked, 9);
        assert!(!r.state().recovering);
    }

    #[test]
    fn limited_transmit_is_not_counted_in_the_reduction() {
        for kind in [&Reno as &AnyRecoveryKind, &NewReno] {
            let mut r = sent(kind, 8);
            for segment in 8..10 {
                ack(&mut *r, 0);
                assert_eq!(r.next(8.0, 100), Next::New, "{}", kind.name());
                r.on_sent(Time::millis(100), segment, segment);
                assert_eq!(r.next(8.0, 100), Next::Nothing, "{}", kind.name());
            }
            assert_eq!(ack(&mut *r, 0).loss, Some(8), "{}", kind.name());
        }
    }

    #[test]
    fn duplicates_caused_by_going_back_begin_no_episode() {
        for kind in [&Tahoe as &AnyRecoveryKind, &Reno, &NewReno] {
            let mut r = sent(kind, 6);
            r.on_timer(Time::secs(1));
            r.on_sent(Time::secs(1), 0, 6);
            ack(&mut *r, 6);
            r.on_sent(Time::secs(1), 6, 7);
            assert!((0..5).all(|_| ack(&mut *r, 6).loss.is_none()), "{}", kind.name());
        }
    }

    #[test]
    fn a_timeout_goes_back() {
        let mut r = sent(&Reno, 4);
        assert_eq!(r.state().timer, Time::secs(1));
        assert_eq!(r.on_timer(Time::secs(1)), Some(4));
        let state = r.state();
        assert_eq!((state.next, state.highest, state.in_flight), (0, 4, 0));
        assert_eq!(state.timer, Time::secs(3), "doubled");
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut r = sent(&Reno, 4);
        assert_eq!(ack(&mut *r, 9).newly_acked, 0);
        assert_eq!(r.state().acked, 0);
    }
}
