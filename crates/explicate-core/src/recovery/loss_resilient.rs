//! Loss recovery under explicit congestion control, from cumulative acknowledgements: four switches.
//!
//! Source: De Vleeschouwer and Frossard, "Loss-resilient window-based congestion control", Computer Networks 52, 2008
//! \[paper D\], sections 2.2 and 4.
//!
//! Routers report congestion, so a loss does not change the window; but the first missing segment blocks the window.
//! Each duplicate acknowledgement shows that a packet has left the network and lets another enter (*inflation*). When
//! the gap is filled, TCP removes the whole inflation; *partial deflation* removes only the part of the segments that
//! waited for the gap, so that a full window stays in flight. `restart_on_any` prevents the recovery timer from
//! resetting a live connection, `retransmission_timer` retransmits segments that are lost twice, and `partial_ack`
//! retransmits the next gap when an acknowledgement stops short of it (NewReno).
//!
//! | symbol | field | unit | value | section |
//! | --- | --- | --- | --- | --- |
//! | lack + 1 | `seq.acked` | segment | | 2.1 |
//! | nextseq | `seq.next` | segment | | 2.1 |
//! | swnd | `window` | segments | cwnd + inflation, at most rwnd | 2.1, 2.2.1 |
//! | swnd - cwnd | `inflation` | segments | | 4.1 |
//! | dupacks | `duplicates` | | | 2.2.1 |
//! | dupackthreshold | `dupackthreshold` | | 1 or 3 | 2.2.1 |
//! | olack, nlack | `cumulative`, before and after | segment | | 2.2.2 |
//! | sent before the last (re)transmission of olack + 1 | `mark` | segment, one past | | 2.2.2 |
//!
//! The paper's variants are these switches (Table 1; names in `presets.rs`):
//!
//! | | `partial_deflation` | `partial_ack` | `restart_on_any`, `retransmission_timer` |
//! | --- | --- | --- | --- |
//! | XCP | yes | | |
//! | XCP_PA | yes | yes | |
//! | LR-XCP, LR-XTCP | yes | | yes |
//! | LR-XCP_PA, LR-XTCP_PA | yes | yes | yes |
//!
//! Deviations:
//! 1. A segment that was retransmitted is retransmitted again by the timer only: later duplicates belong to the
//!    window from which it was lost (the paper's note 2), also after a partial acknowledgement.
//! 2. The inflation never exceeds the segments that can have arrived. Duplicates of segments that a reset
//!    retransmitted unnecessarily would otherwise keep the window inflated: while any gap is open, nothing removes
//!    them.
//! 3. A connection reset ends the inflation and rolls `nextseq` back; retransmitted segments count as sent for the
//!    first time. The congestion controller reduces the window to one, when the timeout is reported to it.
//! 4. After a reset no duplicate causes a retransmission until all data sent before are acknowledged (RFC 6582
//!    section 3.2, 1 and 4; ns-2's TCP, on which the paper's simulator builds, does the same). Retransmitted segments
//!    that had already arrived cause duplicates, which would be taken for losses (the paper's note 2 warns of this).
//!    A segment that is lost meanwhile is left to the timers.
//! 5. Round-trip samples are taken from every acknowledgement, including duplicates: each echoes the number and the
//!    time of the packet that caused it, so none is ambiguous.
//! 6. A loss is reported to the controller once for the segments in flight when it was detected; TCP controllers,
//!    over this recovery, then halve the window once per window.
//! 7. What ends back-off: `reno.rs`, deviation 3.

use alloc::boxed::Box;

use crate::api::Probe;
use crate::params::{Flag, Info, Values, parameters};
use crate::recovery::common::rto::Sequence;
use crate::recovery::common::timers::{self, Expired, Timers};
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

/// The switches of paper D over cumulative acknowledgements.
pub struct LossResilient;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// New acknowledgements remove only the inflation that their segments caused, not all.
        partial_deflation: Flag = true, "paper D section 4.1";
        /// A partial acknowledgement retransmits the next gap.
        partial_ack: Flag = true, "paper D section 2.2.2";
        /// Its two timers.
        timers: timers::Params = timers::Params::DEFAULT;
    }
}

impl RecoveryKind for LossResilient {
    const INFO: Info = Info {
        name: "loss_resilient",
        summary: "Partial deflation, partial acknowledgements, restarted recovery timer, retransmission timer: each optional",
        source: "De Vleeschouwer, Frossard, Computer Networks 52, 2008, section 4",
        params: Params::PARAMS,
    };

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        let params = Params::of(values);
        Box::new(LossResilientRecovery {
            seq: Sequence::default(),
            timers: Timers::new(values),
            dupackthreshold: Common::of(values).dupackthreshold as u32,
            partial_deflation: params.partial_deflation,
            partial_ack: params.partial_ack,
            duplicates: 0,
            inflation: 0,
            mark: 0,
            resend: Resend::No,
            recover: 0,
            guard: 0,
        })
    }
}

/// Whether the first unacknowledged segment is to be retransmitted, and why.
#[derive(Clone, Copy, PartialEq)]
enum Resend {
    No,
    ByAcknowledgements,
    ByTimer,
}

struct LossResilientRecovery {
    seq: Sequence,
    timers: Timers,
    dupackthreshold: u32,
    partial_deflation: bool,
    partial_ack: bool,
    /// Duplicates since the last new acknowledgement.
    duplicates: u32,
    /// Segments beyond the first gap that have left the network.
    inflation: u32,
    /// One past the highest segment sent when the first unacknowledged segment was retransmitted; 0 if it was not.
    mark: u32,
    resend: Resend,
    /// Losses of segments below belong to the reported episode.
    recover: u32,
    /// Duplicates for segments below may be caused by retransmissions of a reset.
    guard: u32,
}

impl LossResilientRecovery {
    fn take_new(&mut self, now: Time, newly: u32) {
        let partial = self.seq.acked < self.mark;
        // All acknowledged segments except the gap itself had caused duplicates.
        let kept = self.inflation.saturating_sub(newly - 1);
        // Only segments sent before the retransmission of the gap can have arrived before it, and not the next gap.
        let most = self.mark.saturating_sub(self.seq.acked + 1);
        self.inflation = if self.partial_deflation { kept.min(most) } else { 0 };
        self.duplicates = 0;
        self.mark = 0;
        self.resend = if partial && self.partial_ack { Resend::ByAcknowledgements } else { Resend::No };
        self.timers.acknowledged(now, self.seq.outstanding(), self.seq.acked >= self.guard);
    }
    fn in_flight(&self) -> u32 {
        self.seq.flight() - self.inflation
    }
}

impl Recovery for LossResilientRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, _packet_number: u32) {
        if segment == self.seq.next {
            self.seq.sent(segment);
            self.timers.sent(now);
        } else {
            self.mark = self.seq.next;
            self.timers.resent(now, self.resend == Resend::ByAcknowledgements);
            self.resend = Resend::No;
        }
    }

    fn on_ack(&mut self, now: Time, cumulative: u32, _packet_number: u32, _sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let newly_acked = self.seq.acknowledge(cumulative);
        if newly_acked > 0 {
            self.timers.sample(rtt, &self.seq);
            self.take_new(now, newly_acked);
            return Outcome { newly_acked, ..Outcome::default() };
        }
        if !self.seq.is_duplicate(cumulative) {
            return Outcome::default();
        }
        let before = self.in_flight();
        self.timers.sample(rtt, &self.seq);
        self.timers.duplicate(now);
        self.inflation = (self.inflation + 1).min(self.seq.flight().saturating_sub(1));
        self.duplicates += 1;
        let mut outcome = Outcome { duplicate: true, ..Outcome::default() };
        let lost = self.duplicates == self.dupackthreshold && cumulative >= self.guard;
        if lost && self.mark == 0 && self.seq.flight() > 0 {
            self.resend = Resend::ByAcknowledgements;
            if cumulative >= self.recover {
                self.recover = self.seq.highest;
                outcome.loss = Some(before);
            }
        }
        outcome
    }

    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        if self.resend != Resend::No {
            return Next::Resend(self.seq.acked);
        }
        let window = (cwnd as u32).saturating_add(self.inflation).min(rwnd);
        if self.seq.flight() < window { Next::New } else { Next::Nothing }
    }

    fn state(&self) -> RecoveryState {
        let recovering = self.resend != Resend::No || self.mark != 0;
        let state = self.seq.state(self.timers.rto(), self.in_flight(), recovering);
        RecoveryState { timer: self.timers.deadline(), ..state }
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        match self.timers.expire(now, self.seq.outstanding())? {
            // After a rollback the gap is the next segment in sequence anyway.
            Expired::Retransmission if self.seq.flight() == 0 => None,
            Expired::Retransmission => {
                self.resend = Resend::ByTimer;
                None
            }
            Expired::Recovery => {
                let flight = self.in_flight();
                // The last duplicate of an unnecessary retransmission names `highest` itself.
                self.guard = self.seq.highest.saturating_add(1);
                self.seq.roll_back();
                self.duplicates = 0;
                self.inflation = 0;
                self.mark = 0;
                self.resend = Resend::No;
                self.recover = self.seq.highest;
                Some(flight)
            }
        }
    }

    fn on_rtt(&mut self, rtt: Time) {
        self.timers.sample(rtt, &self.seq);
    }
    fn backoffs(&self) -> u32 {
        self.timers.rto().backoffs()
    }
    fn probe(&self, put: Probe<'_>) {
        self.timers.probe(put);
        put("in_flight", self.in_flight() as f64);
        put("inflation", self.inflation as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::common::testing::{Channel, Story, transfer, transfer_randomly};

    const PLAIN: &[(&str, f64)] =
        &[("partial_deflation", 0.0), ("partial_ack", 0.0), ("restart_on_any", 0.0), ("retransmission_timer", 0.0)];

    /// A recovery with these switches, all others as by default.
    fn with(params: &[(&str, f64)]) -> Box<AnyRecovery> {
        LossResilient.build(&crate::testing::values(&[Params::PARAMS, Common::PARAMS], params))
    }
    fn but(switch: &'static str) -> Box<AnyRecovery> {
        with(&[(switch, 0.0)])
    }
    /// The first `n` segments are in flight since time zero; the round trip is 100 ms.
    fn sent(mut r: Box<AnyRecovery>, n: u32) -> Box<AnyRecovery> {
        r.on_rtt(Time::millis(100));
        send(&mut r, 0, n);
        r
    }
    /// Sends `n` segments that the window allows.
    fn send(r: &mut Box<AnyRecovery>, ms: u64, n: u32) {
        for _ in 0..n {
            assert_eq!(r.next(1e9, 1000), Next::New);
            r.on_sent(Time::millis(ms), r.state().next, 0);
        }
    }
    fn resend(r: &mut Box<AnyRecovery>, ms: u64) {
        let Next::Resend(segment) = r.next(1.0, 1000) else { panic!("nothing to resend") };
        r.on_sent(Time::millis(ms), segment, 0);
    }
    fn ack(r: &mut Box<AnyRecovery>, ms: u64, cumulative: u32) -> Outcome {
        r.on_ack(Time::millis(ms), cumulative, 0, &[], Time::millis(100))
    }
    fn acks(r: &mut Box<AnyRecovery>, ms: u64, cumulative: u32, times: u32) {
        for _ in 0..times {
            ack(r, ms, cumulative);
        }
    }
    fn probe(r: &AnyRecovery, name: &str) -> f64 {
        crate::testing::probed(|put| r.probe(put), name)
    }

    #[test]
    fn duplicates_inflate_at_once_and_up_to_the_receiver_window() {
        let mut r = sent(with(&[]), 10);
        for inflation in 1..=9 {
            assert_eq!(r.next(10.0, 1000), Next::Nothing);
            ack(&mut r, 100, 0);
            if inflation == 3 {
                resend(&mut r, 100);
            }
            assert_eq!(r.next(10.0, 1000), Next::New, "a packet out, a packet in");
            assert_eq!(r.next(10.0, 9 + inflation), Next::Nothing, "rwnd");
            send(&mut r, 100, 1);
        }
    }

    #[test]
    fn partial_deflation_keeps_what_belongs_to_the_second_hole() {
        // Ten segments, 0 and 5 are lost. The other eight cause duplicates, after which 10..18 may be sent.
        let repaired = |r: Box<AnyRecovery>| {
            let mut r = sent(r, 10);
            acks(&mut r, 100, 0, 3);
            resend(&mut r, 100);
            acks(&mut r, 101, 0, 5);
            send(&mut r, 101, 8);
            assert_eq!((r.state().in_flight, probe(&*r, "inflation")), (10, 8.0));
            // The first gap is filled: nlack - (olack + 1) = 4 - 0 segments of the eight were waiting for it.
            ack(&mut r, 200, 5);
            r
        };
        let mut kept = repaired(but("partial_ack"));
        assert_eq!(probe(&*kept, "inflation"), 4.0, "6..10 are at the receiver");
        assert_eq!(kept.state().in_flight, 18 - 5 - 4);
        assert_eq!(kept.next(10.0, 1000), Next::New, "as many in flight as the window says");
        send(&mut kept, 200, 1);
        assert_eq!(kept.next(10.0, 1000), Next::Nothing);

        let dropped = repaired(with(&[("partial_ack", 0.0), ("partial_deflation", 0.0)]));
        assert_eq!(probe(&*dropped, "inflation"), 0.0);
        assert_eq!(
            dropped.next(10.0, 1000),
            Next::Nothing,
            "13 outstanding: the next three acknowledgements release nothing"
        );
        assert_eq!(dropped.next(13.0, 1000), Next::Nothing);
    }

    #[test]
    fn needless_duplicates_do_not_stay() {
        // As above, with twenty more duplicates, for example of segments that a reset retransmitted.
        let mut r = sent(with(&[]), 10);
        acks(&mut r, 100, 0, 3);
        resend(&mut r, 100);
        acks(&mut r, 101, 0, 25);
        assert_eq!(probe(&*r, "inflation"), 9.0, "no more than follow the hole");
        send(&mut r, 101, 8);
        ack(&mut r, 200, 5);
        assert_eq!(probe(&*r, "inflation"), 4.0, "6..10, for the others left after the retransmission");
        resend(&mut r, 200);
        acks(&mut r, 201, 5, 8);
        ack(&mut r, 300, 18);
        send(&mut r, 300, 5);
        acks(&mut r, 310, 18, 2);
        ack(&mut r, 400, 19);
        assert_eq!(probe(&*r, "inflation"), 0.0, "what was never resent had nothing before it");
    }

    #[test]
    fn a_partial_acknowledgement_resends_the_next_hole() {
        let first_repaired = |r: Box<AnyRecovery>| {
            let mut r = sent(r, 10);
            acks(&mut r, 100, 0, 3);
            resend(&mut r, 100);
            acks(&mut r, 101, 0, 5);
            ack(&mut r, 200, 5);
            r
        };
        let mut waiting = first_repaired(but("partial_ack"));
        assert!(!matches!(waiting.next(1.0, 1000), Next::Resend(_)), "waits for three more duplicates");
        acks(&mut waiting, 201, 5, 3);
        assert_eq!(waiting.next(1.0, 1000), Next::Resend(5));

        let mut r = first_repaired(with(&[]));
        assert_eq!(r.next(1.0, 1000), Next::Resend(5));
        resend(&mut r, 200);
        acks(&mut r, 201, 5, 9);
        assert!(!matches!(r.next(1.0, 1000), Next::Resend(_)), "duplicates of the same window do not resend it again");
        assert!(r.state().recovering);
        ack(&mut r, 300, 10);
        assert!(!r.state().recovering, "complete: all that was sent before the retransmission");
    }

    #[test]
    fn a_live_connection_is_not_reset() {
        // The timeout is 100 ms + 4 * 50 ms at first; samples of 100 ms take it down to the minimum of 200 ms.
        let deadline = |r: Box<AnyRecovery>| {
            let mut r = sent(r, 10);
            acks(&mut r, 100, 0, 3);
            resend(&mut r, 100);
            acks(&mut r, 150, 0, 6);
            r.state().timer
        };
        let patient = with(&[("retransmission_timer", 0.0), ("min_rto", 0.2)]);
        let timeout = |duplicates: u32| {
            let mut rto = crate::recovery::common::rto::Rto::new(&Values::default());
            (0..=duplicates).for_each(|_| rto.sample(Time::millis(100), &Sequence::default()));
            rto.timeout()
        };
        assert_eq!(deadline(patient), Time::millis(150) + timeout(9), "restarted by the last duplicate");
        assert_eq!(deadline(with(PLAIN)), Time::millis(100) + timeout(3), "by the retransmission");
    }

    #[test]
    fn the_longer_timer_fires_first() {
        let mut r = sent(with(&[]), 10);
        acks(&mut r, 100, 0, 3);
        resend(&mut r, 100);
        let mut ms = 100;
        // Duplicates continue, one every 20 ms: the retransmission was lost.
        while r.state().timer > Time::millis(ms + 20) {
            ms += 20;
            ack(&mut r, ms, 0);
            send(&mut r, ms, 1);
        }
        let at = r.state().timer;
        // Two recovery timeouts after the retransmission: SRTT is 100 ms, and the margin 200 ms.
        assert_eq!(at, Time::millis(100 + 2 * 300));
        assert_eq!(r.on_timer(at), None, "no reset, no report to the controller");
        assert_eq!(r.next(1.0, 1000), Next::Resend(0));
        resend(&mut r, 700);
        assert_eq!(probe(&*r, "timer_resends"), 1.0);
        assert!(probe(&*r, "inflation") > 15.0, "and the window is as it was");
        // Then no more acknowledgements.
        let at = r.state().timer;
        assert!(at < Time::millis(1000 + 20));
        assert!(r.on_timer(at).is_some());
        assert_eq!((r.state().next, probe(&*r, "inflation")), (0, 0.0));
    }

    #[test]
    fn duplicates_of_what_a_reset_sent_again_resend_nothing() {
        // Ten segments; 1 to 9 arrive and 0 is lost. The acknowledgements come after the reset.
        let mut r = sent(with(&[("dupackthreshold", 1.0)]), 10);
        assert!(r.on_timer(r.state().timer).is_some(), "silence");
        send(&mut r, 400, 1);
        ack(&mut r, 500, 10);
        assert_eq!((r.state().next, r.state().acked), (10, 10));

        // Ten segments that all arrive late: the reset retransmits some of them.
        let mut r = sent(with(&[("dupackthreshold", 1.0)]), 10);
        assert!(r.on_timer(r.state().timer).is_some());
        send(&mut r, 400, 1);
        ack(&mut r, 410, 1);
        ack(&mut r, 410, 2);
        send(&mut r, 410, 4);
        ack(&mut r, 420, 10);
        send(&mut r, 420, 5);
        // Each of 0, 2, 3, 4, 5 arrives a second time.
        for _ in 0..5 {
            ack(&mut r, 500, 10);
            assert!(!matches!(r.next(1.0, 1000), Next::Resend(_)), "a needless duplicate is no loss");
        }
        // Beyond what had been sent before the reset a duplicate is a loss again.
        ack(&mut r, 520, 12);
        ack(&mut r, 521, 12);
        assert_eq!(r.next(1.0, 1000), Next::Resend(12));
    }

    /// Segment 40 of 400 is lost with its retransmission; the window is 16 segments, the round trip 100 ms.
    fn twice_lost(r: &mut AnyRecovery) -> (Story, f64) {
        let (mut times, mut most) = (0, 0.0_f64);
        let channel = Channel {
            segments: 400,
            loses_data: &mut |_, segment| {
                times += (segment == 40) as u32;
                segment == 40 && times <= 2
            },
            loses_ack: &mut || false,
            cwnd: 16.0,
            most: 16.0,
        };
        let story = transfer(r, channel, |r| most = most.max(probe(r, "inflation")));
        (story, most)
    }

    #[test]
    fn a_segment_lost_twice() {
        let (with_timer, inflation) = twice_lost(&mut *with(&[]));
        assert_eq!((with_timer.resent, with_timer.timeouts), (2, 0), "{with_timer:?}");
        assert!(inflation < 100.0, "{inflation}");

        // Without the timer every duplicate postpones the reset: the window grows until everything has been sent.
        let (without, inflation) = twice_lost(&mut *but("retransmission_timer"));
        assert_eq!(without.timeouts, 1, "{without:?}");
        assert_eq!(inflation, 359.0, "all that follows segment 40 is at the receiver");
        assert!(without.finished > with_timer.finished, "{without:?}");

        // As TCP: reset although acknowledgements arrive.
        let (reset, _) = twice_lost(&mut *with(PLAIN));
        assert_eq!(reset.timeouts, 1, "{reset:?}");
    }

    #[test]
    fn every_combination_of_switches_delivers() {
        for bits in 0..16 {
            let on = |bit: u32| ((bits >> bit) & 1) as f64;
            let names = ["partial_deflation", "partial_ack", "restart_on_any", "retransmission_timer"];
            let params: std::vec::Vec<(&str, f64)> = (0..4).map(|i| (names[i as usize], on(i))).collect();
            for loss in [(0.0, 0.0), (0.005, 0.0), (0.05, 0.0), (0.3, 0.1)] {
                let mut r = with(&params);
                let story = transfer_randomly(&mut *r, bits as u64, 2000, loss, |r| {
                    let flight = r.state().next - r.state().acked;
                    assert!(r.state().in_flight <= flight && probe(r, "inflation") <= flight as f64);
                });
                assert!(loss.0 > 0.0 || story.resent == 0, "{params:?}: {story:?}");
                // A reset goes back over segments that have arrived; no other mechanism retransmits those.
                assert!(story.timeouts > 0 || story.resent_arrived == 0, "{params:?}, {loss:?}: {story:?}");
            }
        }
    }
}
