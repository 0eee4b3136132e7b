//! NewReno's fast recovery (RFC 6582), with limited transmit (RFC 3042).
//!
//! Reno ends an episode with the first new acknowledgement. NewReno records the highest segment sent when the episode
//! began, and treats an acknowledgement below it as the sign of the next gap, which it retransmits at once. A window
//! with n losses is thus repaired in n round trips, without further duplicates or the timer.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | recover | `recover` | segment, one past | | RFC 6582 section 3.2 |
//! | inflation of cwnd | `extra` | segments | 3, then +1 a duplicate | RFC 5681 section 3.2 (3, 4) |
//! | DupThresh | `dupackthreshold` | segments | 3 | RFC 5681 section 3.2 |
//!
//! Inflation also counts the segments beyond the gap that have left the network, so the segments in flight are the
//! outstanding ones minus the inflation. This may fall below zero when acknowledgements are lost.
//!
//! Deviations:
//! 1. After a timeout no episode begins until all data sent before are acknowledged (RFC 6582 section 3.2, 1 and 4).
//!    After an episode the acknowledgement that ended it may begin the next, since partial acknowledgements cause no
//!    unnecessary retransmission whose duplicates could mislead (RFC 3782 calls this variant less careful).
//! 2. The end of an episode removes the inflation and leaves the rest to the controller, so no segment is withheld as
//!    in the burst-avoiding choice of section 3.2 (3); a controller that must avoid bursts paces.
//! 3. The timer restarts with the first retransmission and the first partial acknowledgement ("impatient").
//! 4. The segments in flight that a timeout within an episode reports exclude the inflation. Segments sent because of
//!    it accumulate after many gaps: if they counted, ssthresh would exceed the capacity of the path, and every
//!    timeout would lead to the next. Nor do they exceed the window (`reno.rs`, deviation 1); for the end of back-off
//!    see deviation 3 there.

use alloc::boxed::Box;

use crate::api::Probe;
use crate::params::{Info, Values};
use crate::recovery::common::loss_free::LossFree;
use crate::recovery::common::rto::{Rto, Sequence};
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

/// NewReno's recovery.
pub struct NewReno;

impl RecoveryKind for NewReno {
    const INFO: Info = Info {
        name: "newreno",
        summary: "Fast recovery that retransmits a segment with every partial acknowledgement",
        source: "RFC 6582, RFC 3042",
        params: &[],
    };

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        Box::new(NewRenoRecovery {
            seq: Sequence::default(),
            rto: Rto::new(values),
            dupackthreshold: Common::of(values).dupackthreshold as i32,
            extra: 0,
            limited: 0,
            recover: 0,
            recovering: false,
            partial: false,
            resend: false,
        })
    }
}

struct NewRenoRecovery {
    seq: Sequence,
    rto: Rto,
    dupackthreshold: i32,
    /// Consecutive duplicates before an episode, inflation of the window within it.
    extra: i32,
    /// Segments that limited transmit has added.
    limited: u32,
    /// An episode ends at this acknowledgement, and none begins before it.
    recover: u32,
    recovering: bool,
    /// This episode had a partial acknowledgement.
    partial: bool,
    resend: bool,
}

impl NewRenoRecovery {
    fn end_episode(&mut self) {
        self.extra = 0;
        self.limited = 0;
        self.recovering = false;
        self.resend = false;
    }

    fn take_new(&mut self, now: Time, newly: u32) {
        if self.recovering && self.seq.acked < self.recover {
            // Deflates by the segments that left the network, and adds one for the segment that will be sent.
            self.extra = self.extra.saturating_sub_unsigned(newly - 1);
            self.resend = true;
            if self.partial {
                return;
            }
            self.partial = true;
        } else if self.extra != 0 || self.recovering {
            self.end_episode();
        }
        self.rto.acknowledged(now, self.seq.outstanding(), self.seq.acked >= self.recover);
    }
}

impl Recovery for NewRenoRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, _packet_number: u32) {
        if self.resend && segment == self.seq.acked {
            self.resend = false;
            if !self.partial {
                self.rto.restart(now);
            }
        } else {
            self.seq.sent(segment);
            self.limited += (self.extra > 0 && !self.recovering) as u32;
        }
        self.rto.start(now);
    }

    fn on_ack(&mut self, now: Time, cumulative: u32, _packet_number: u32, _sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let newly_acked = self.seq.acknowledge(cumulative);
        if newly_acked > 0 {
            self.rto.sample(rtt, &self.seq);
            self.take_new(now, newly_acked);
            return Outcome { newly_acked, ..Outcome::default() };
        }
        if !self.seq.is_duplicate(cumulative) {
            return Outcome::default();
        }
        self.extra = self.extra.saturating_add(1);
        let mut outcome = Outcome { duplicate: true, ..Outcome::default() };
        if self.extra == self.dupackthreshold && !self.recovering && cumulative >= self.recover {
            outcome.loss = Some(self.seq.flight().saturating_sub(self.limited));
            self.recovering = true;
            self.partial = false;
            self.resend = true;
            self.recover = self.seq.highest;
        }
        outcome
    }

    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        if self.resend {
            return Next::Resend(self.seq.acked);
        }
        let extra = if self.recovering { self.extra } else { self.extra.min(2) };
        let window = (cwnd as u32).saturating_add_signed(extra).max(1).min(rwnd);
        if self.seq.flight() < window { Next::New } else { Next::Nothing }
    }

    fn state(&self) -> RecoveryState {
        self.seq.state(&self.rto, self.seq.flight().saturating_sub(self.extra.max(0) as u32), self.recovering)
    }

    fn check_out(&self) -> Option<LossFree> {
        if self.extra != 0 || self.recovering { None } else { self.seq.check_out(&self.rto) }
    }

    fn check_in(&mut self, loss_free: &LossFree, at: &RecoveryState) {
        self.seq.check_in(&mut self.rto, loss_free, at);
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        if !self.seq.outstanding() {
            self.rto.stop();
            return None;
        }
        let flight = self.seq.flight().saturating_sub(self.extra.max(0) as u32);
        // Going back causes duplicates of segments that had arrived: the last of them names `highest` itself.
        self.recover = self.seq.highest.saturating_add(1);
        self.seq.roll_back();
        self.end_episode();
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
    use crate::recovery::common::testing::{Channel, DELAY, Story, ack, sent, transfer, transfer_randomly};
    use crate::recovery::reno::Reno;

    fn ack_at(r: &mut AnyRecovery, ms: u64, cumulative: u32) -> Outcome {
        r.on_ack(Time::millis(ms), cumulative, 0, &[], Time::millis(100))
    }

    #[test]
    fn a_partial_acknowledgement_resends_deflates_and_restarts_the_timer_once() {
        let mut r = sent(&NewReno, 10); // 1 and 5 are lost
        ack(&mut *r, 1);
        assert_eq!((ack(&mut *r, 1).loss, ack(&mut *r, 1).loss), (None, None));
        assert_eq!(ack(&mut *r, 1).loss, Some(9));
        assert_eq!(r.next(4.0, 100), Next::Resend(1));
        r.on_sent(Time::millis(100), 1, 10);
        let armed = r.state().timer;
        for _ in 0..4 {
            ack(&mut *r, 1);
        }
        // Nine outstanding, seven of them beyond the holes: 4 + 7 let two go.
        assert_eq!((r.state().in_flight, r.next(4.0, 100)), (2, Next::New));
        r.on_sent(Time::millis(150), 10, 11);
        r.on_sent(Time::millis(150), 11, 12);
        assert_eq!(r.next(4.0, 100), Next::Nothing);
        assert_eq!(ack_at(&mut *r, 200, 5).newly_acked, 4);
        assert!(r.state().recovering && r.state().timer > armed);
        assert_eq!(r.next(4.0, 100), Next::Resend(5));
        r.on_sent(Time::millis(200), 5, 13);
        // 5 to 11 outstanding; the inflation of 7 shrank by 4 less 1: 4 + 4 hold one more.
        assert_eq!((r.state().in_flight, r.next(4.0, 100)), (3, Next::New));
        r.on_sent(Time::millis(200), 12, 14);
        assert_eq!(r.next(4.0, 100), Next::Nothing);
        let armed = r.state().timer;
        assert_eq!(ack_at(&mut *r, 300, 7).newly_acked, 2);
        assert_eq!((r.state().recovering, r.state().timer), (true, armed), "impatient");
        ack_at(&mut *r, 300, 10);
        assert_eq!((r.state().recovering, r.state().in_flight), (false, 3));
        assert_ne!(r.state().timer, armed);
    }

    #[test]
    fn a_timeout_within_an_episode_does_not_count_the_inflation() {
        let mut r = sent(&NewReno, 20);
        for _ in 0..15 {
            ack(&mut *r, 0);
        }
        r.on_sent(Time::millis(100), 0, 20);
        while r.next(10.0, 100) == Next::New {
            let next = r.state().next;
            r.on_sent(Time::millis(100), next, next);
        }
        assert_eq!((r.state().next, r.state().in_flight), (25, 10), "the window and 15 duplicates");
        assert_eq!(r.on_timer(Time::secs(1)), Some(10));
    }

    #[test]
    fn after_a_timeout_duplicates_of_the_old_window_begin_nothing() {
        let mut r = sent(&NewReno, 6);
        assert_eq!(r.on_timer(Time::secs(1)), Some(6));
        assert_eq!(r.next(1.0, 100), Next::New);
        r.on_sent(Time::secs(1), 0, 6);
        ack(&mut *r, 6); // only 0 was lost; 1..6 went again meanwhile or not
        for segment in 6..12 {
            r.on_sent(Time::secs(1), segment, segment);
        }
        assert!((0..5).all(|_| ack(&mut *r, 6).loss.is_none()));
        ack(&mut *r, 7);
        assert_eq!((0..5).filter(|_| ack(&mut *r, 7).loss.is_some()).count(), 1);
    }

    fn check(r: &AnyRecovery) {
        assert!(r.state().acked <= r.state().next && r.state().next <= r.state().highest);
        assert!(r.state().in_flight <= r.state().highest - r.state().acked);
    }

    #[test]
    fn random_loss_is_repaired() {
        for seed in 0..40 {
            for loss in [0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3] {
                let mut r = NewReno.build(&Values::default());
                let story = transfer_randomly(&mut *r, seed, 800, (loss, 0.0), check);
                assert_eq!((story.resent_in_flight, story.resent_arrived), (0, 0), "{loss}: {story:?}");
                assert!(loss > 0.0 || story.resent + story.timeouts == 0);
                let mut r = NewReno.build(&Values::default());
                transfer_randomly(&mut *r, seed, 800, (loss, loss), check);
            }
        }
    }

    /// Three segments of a window of twenty are lost.
    fn three_of_twenty(r: &mut AnyRecovery) -> Story {
        let channel = Channel {
            segments: 200,
            loses_data: &mut |n, _| matches!(n, 42 | 46 | 50),
            loses_ack: &mut || false,
            cwnd: 20.0,
            most: 20.0,
        };
        transfer(r, channel, |_| {})
    }

    #[test]
    fn a_round_trip_for_each_loss_of_a_window() {
        let story = three_of_twenty(&mut *NewReno.build(&Values::default()));
        assert_eq!((story.timeouts, story.episodes, story.resent), (0, 1, 3));
        assert!(story.finished < Time(DELAY.0 * 2 * 20), "{story:?}");
        let reno = three_of_twenty(&mut *Reno.build(&Values::default()));
        assert!(reno.timeouts + reno.episodes > 1, "{reno:?}");
    }
}
