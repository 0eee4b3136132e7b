//! Recovery from selective acknowledgements (RFC 2018, RFC 6675).
//!
//! The receiver tells which segments it has beyond the cumulative number. A segment counts as lost once `dupackthreshold`
//! segments above it are reported, so all lost ones lie below one boundary, and since they are resent in order, all
//! resent ones lie below another. What is in flight (`pipe`) is then what is unreported above the first boundary and
//! what is unreported below the second, and both are kept by counting what each report adds. A window with many losses
//! is repaired in one round trip after it is noticed.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | HighACK, HighData | `seq.acked`, `seq.highest` | segments, one past | | RFC 6675 section 2 |
//! | HighRxt | `cursor` | first unreported segment not resent | | section 2 |
//! | DupThresh | `dupackthreshold` | segments | 3 | section 2 |
//! | pipe | `pipe` | segments | | section 4, SetPipe |
//! | IsLost(s) | `s < lost_below` | | | section 4 |
//! | RecoveryPoint | `recover` | segment, one past | | section 5 |
//! | RescueRxt | `rescue` | | once an episode | section 4, NextSeg (4) |
//! | HighData at the last retransmission | `resent_before` | segment, one past | | Linux 2.4 `tcp_input.c`, event C |
//! | pipe of 1996 | `counted` | segments | | Fall and Floyd, CCR 26(3), 1996, section 4.4 |
//!
//! IsLost counts octets or discontiguous blocks in the RFC; in whole segments both rules say "`dupackthreshold` segments
//! above". Limited transmit (RFC 3042) needs no code: a report lowers `pipe` and so releases a segment.
//!
//! Deviations:
//! 1. A timeout marks all that is unreported as lost and unsent, and keeps the reports (RFC 6675 section 5.1 permits it).
//!    They stay advice: a cumulative number that stops at a reported segment shows that the receiver has discarded it,
//!    and all reports are forgotten.
//! 2. The rescue retransmission waits for the first partial acknowledgement and is left out if new data followed the
//!    episode's beginning, so that it never repeats a segment in flight on a path that keeps order.
//! 3. A second episode that begins where the first one ended does not resend what the first has already resent.
//! 4. The reduction is told the `pipe` before the acknowledgement that showed the loss; with limited transmit this is the
//!    FlightSize without the segments that limited transmit added.
//! 5. Without reports (a receiver that refuses SACK) only the timer repairs.
//! 6. A retransmission that is lost waits for the timer too, as in the RFC. `lost_retransmission = "reports"`: once
//!    `dupackthreshold` segments are reported that were sent after the last retransmission, holes that were resent are
//!    lost again, and are resent again; `"first_report"`: one such segment is enough, as in Linux 2.4 with forward
//!    acknowledgements, its default while it sees no reordering (but Linux looks at every retransmission by itself). The
//!    law is not told.
//! 7. What a timeout halves, and what ends back-off: `reno.rs`, deviations 1 and 3.
//! 8. `pipe = "acknowledgements"` is the pipe of before RFC 6675, as in ns-2's `Sack1`: an episode begins with all that is
//!    outstanding less `dupackthreshold`, every acknowledgement takes one away, a partial one two, and every segment but
//!    the first retransmission adds one. Lost segments and lost acknowledgements stay in it.

use alloc::boxed::Box;

use self::counting::CountingSack;
use crate::api::Probe;
use crate::params::{Info, Values, choices, parameters};
use crate::recovery::rto::{Rto, Sequence};
use crate::recovery::scoreboard::Scoreboard;
use crate::recovery::steady::Steady;
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

mod counting;

/// Recovery from selective acknowledgements.
pub struct Sack;

choices! {
    /// What repairs a retransmission that is lost.
    enum LostRetransmission { Timer = "timer", Reports = "reports", FirstReport = "first_report" }
}

choices! {
    /// What tells an episode how much is in flight.
    enum Pipe { Reports = "reports", Acknowledgements = "acknowledgements" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// What repairs a retransmission that is lost: the timer, `dupackthreshold` reports of data sent after it, or
        /// one.
        lost_retransmission: LostRetransmission = LostRetransmission::Timer, "RFC 6675; Linux 2.4";
        /// What tells an episode how much is in flight: the reports, or the number of acknowledgements, as in ns-2's
        /// Sack1.
        pipe: Pipe = Pipe::Reports, "RFC 6675 section 4; Fall and Floyd 1996";
    }
}

impl RecoveryKind for Sack {
    const INFO: Info = Info {
        name: "sack",
        summary: "Selective acknowledgements: all holes of a window are resent in a round trip",
        source: "RFC 2018, RFC 6675",
        params: Params::PARAMS,
    };
    const WANTS_SACK: bool = true;

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        let recovery = SackRecovery::new(values);
        match Params::of(values).pipe {
            Pipe::Reports => Box::new(recovery),
            Pipe::Acknowledgements => Box::new(CountingSack { recovery, counted: 0 }),
        }
    }
}

/// Where the rescue retransmission of an episode stands.
#[derive(Clone, Copy, PartialEq)]
enum Rescue {
    Early,
    Ready,
    Done,
}

struct SackRecovery {
    /// `next` equals `highest`: a timeout does not roll back, it marks.
    seq: Sequence,
    rto: Rto,
    board: Scoreboard,
    /// Unreported segments below are lost.
    lost_below: u32,
    /// Unreported segments below have been resent; itself unreported.
    cursor: u32,
    /// Reported segments from `lost_below` on, while that lies above `acked`.
    reported_above: u32,
    /// Unreported segments below `cursor`.
    resent: u32,
    /// Segments from here on were sent after the last retransmission, if that is watched.
    resent_before: u32,
    pipe: u32,
    recover: u32,
    recovering: bool,
    /// The retransmission that opens an episode does not wait for the window.
    first: bool,
    rescue: Rescue,
    /// See there: no more than 255.
    dupackthreshold: u8,
    /// Reports of later data that show that retransmissions are lost; 0 leaves these to the timer.
    reports_needed: u8,
    /// No episode, no hole: `pipe` is all that is outstanding.
    quiet: bool,
}

impl SackRecovery {
    fn new(values: &Values) -> SackRecovery {
        let dupackthreshold = Common::of(values).dupackthreshold as u8;
        SackRecovery {
            seq: Sequence::default(),
            rto: Rto::new(values),
            dupackthreshold,
            board: Scoreboard::default(),
            lost_below: 0,
            cursor: 0,
            reported_above: 0,
            resent: 0,
            reports_needed: match Params::of(values).lost_retransmission {
                LostRetransmission::Timer => 0,
                LostRetransmission::Reports => dupackthreshold,
                LostRetransmission::FirstReport => 1,
            },
            resent_before: 0,
            pipe: 0,
            recover: 0,
            recovering: false,
            first: false,
            rescue: Rescue::Done,
            quiet: true,
        }
    }

    /// Takes the reports of an acknowledgement that moved the cumulative number by `advanced`. Returns how many segments it
    /// newly covers and whether it shows a loss.
    #[inline(never)]
    fn repair(&mut self, advanced: u32, sack: &[(u32, u32)]) -> (u32, bool) {
        let acked = self.seq.acked;
        let mut newly = advanced - self.board.advance(acked);
        self.resent = if acked >= self.cursor { 0 } else { self.resent - newly };
        if self.board.first().is_some_and(|(first, _)| first == acked) {
            self.distrust();
            return (newly, false);
        }
        // A range that reaches below `acked` tells of duplicates or nonsense, one beyond what was sent is nonsense.
        for &(first, end) in sack.iter().filter(|r| r.0 > acked && r.0 < r.1 && r.1 <= self.seq.highest) {
            self.board.insert(first, end, |a, b| {
                newly += b - a;
                self.resent -= b.min(self.cursor).saturating_sub(a);
                self.reported_above += b.saturating_sub(a.max(self.lost_below));
            });
        }
        if self.recovering && advanced > 0 {
            self.recovering = acked < self.recover;
            if self.rescue == Rescue::Early {
                self.rescue = Rescue::Ready;
            }
        }
        self.cursor = self.board.skip(self.cursor.max(acked));
        self.first &= self.cursor < self.lost_below;
        let began = (self.recovering || acked >= self.recover) && self.look_for_losses();
        if self.lost_below > acked {
            self.pipe = self.seq.highest - self.lost_below - self.reported_above + self.resent;
        } else {
            self.pipe = self.seq.highest - acked - self.board.total() + self.resent;
            self.reported_above = 0;
        }
        self.quiet = !self.recovering && self.board.is_empty() && self.cursor.max(self.lost_below) <= acked;
        (newly, began)
    }

    /// Moves the boundary of loss up to the `dupackthreshold`-th highest report; says whether an episode begins.
    fn look_for_losses(&mut self) -> bool {
        if let Some(boundary) = self.board.from_top(self.dupackthreshold as u32)
            && boundary > self.lost_below
        {
            self.lost_below = boundary;
            self.reported_above = self.dupackthreshold as u32;
        }
        if self.reports_needed > 0 && self.recovering && self.resent > 0 && self.reported_after_resending() {
            self.cursor = self.seq.acked;
            self.resent = 0;
            self.first = true;
        }
        if self.recovering || self.lost_below <= self.seq.acked {
            return false;
        }
        self.recovering = true;
        self.recover = self.seq.highest;
        self.first = self.cursor < self.lost_below;
        self.rescue = Rescue::Early;
        true
    }

    /// The receiver has discarded what it had reported: forget all reports and leave the rest to the timer.
    fn distrust(&mut self) {
        self.board.clear();
        self.lost_below = self.seq.acked;
        self.cursor = self.seq.acked;
        self.resent = 0;
        self.recovering = false;
        self.recover = self.seq.highest;
        self.first = false;
        self.pipe = self.seq.flight();
        self.quiet = true;
    }

    /// Whether `dupackthreshold` segments that were sent after the last retransmission are reported.
    fn reported_after_resending(&self) -> bool {
        self.board.from_top(self.reports_needed as u32).is_some_and(|segment| segment >= self.resent_before)
    }

    /// Whether an unreported segment that was not resent has a report above it.
    fn below_reports(&self) -> bool {
        self.board.last().is_some_and(|(first, _)| self.cursor < first)
    }

    /// The highest unreported segment, if it was not resent.
    fn tail(&self) -> Option<u32> {
        let end = self.board.last().filter(|r| r.1 == self.seq.highest).map_or(self.seq.highest, |r| r.0);
        (end > self.cursor).then(|| end - 1)
    }

    /// What to send next where so many segments count as in flight.
    #[inline(always)]
    fn next_with(&self, in_flight: u32, cwnd: f64, rwnd: u32) -> Next {
        if in_flight >= cwnd as u32 && !self.first {
            return Next::Nothing;
        }
        if self.cursor < self.lost_below {
            return Next::Resend(self.cursor); // NextSeg (1)
        }
        if self.seq.flight() < rwnd {
            return Next::New; // NextSeg (2)
        }
        self.spare().map_or(Next::Nothing, Next::Resend)
    }
}

impl Recovery for SackRecovery {
    #[inline(always)]
    fn on_sent(&mut self, now: Time, segment: u32, _packet_number: u32) {
        if segment == self.seq.next {
            self.seq.sent(segment);
            self.pipe += 1;
        } else if segment == self.cursor && (self.cursor < self.lost_below || self.below_reports()) {
            self.resent += 1;
            self.pipe += 1;
            self.cursor = self.board.skip(segment + 1);
            if self.reports_needed > 0 {
                self.resent_before = self.seq.highest;
            }
            if self.first {
                self.first = false;
                self.rto.restart(now);
            }
        } else {
            self.rescue = Rescue::Done; // the RFC does not count it in `pipe`
        }
        self.rto.start(now);
    }

    #[inline(always)]
    fn on_ack(&mut self, now: Time, cumulative: u32, _packet_number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome {
        if cumulative > self.seq.highest {
            return Outcome::default();
        }
        let before = self.pipe;
        let advanced = self.seq.acknowledge(cumulative);
        let (newly_acked, began) = if self.quiet && sack.is_empty() {
            self.pipe -= advanced;
            (advanced, false)
        } else {
            self.repair(advanced, sack)
        };
        if newly_acked > 0 {
            self.rto.sample(rtt);
        }
        if advanced > 0 {
            self.rto.acknowledged(now, self.seq.outstanding(), self.seq.acked > self.recover);
        }
        Outcome {
            newly_acked,
            duplicate: advanced == 0 && self.seq.is_duplicate(cumulative),
            loss: began.then_some(before),
        }
    }

    #[inline(always)]
    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        self.next_with(self.pipe, cwnd, rwnd)
    }

    fn spare(&self) -> Option<u32> {
        if !self.recovering {
            return None;
        }
        if self.below_reports() {
            return Some(self.cursor); // NextSeg (3)
        }
        let rescue = self.rescue == Rescue::Ready && self.seq.highest == self.recover;
        if rescue { self.tail() } else { None } // NextSeg (4)
    }

    fn state(&self) -> RecoveryState {
        self.seq.state(&self.rto, self.pipe, self.recovering)
    }

    fn lend(&self) -> Option<Steady> {
        let steady = self.quiet && !self.first && self.pipe == self.seq.highest - self.seq.acked;
        if steady { self.seq.lend(&self.rto) } else { None }
    }

    fn take_back(&mut self, steady: &Steady, at: &RecoveryState) {
        self.seq.take_back(&mut self.rto, steady, at);
        self.pipe = at.in_flight;
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        if !self.seq.outstanding() {
            self.rto.stop();
            return None;
        }
        let flight = self.pipe;
        self.lost_below = self.seq.highest;
        self.cursor = self.seq.acked;
        self.reported_above = 0;
        self.resent = 0;
        self.pipe = 0;
        self.recover = self.seq.highest;
        self.recovering = false;
        self.first = false;
        self.quiet = false;
        self.rto.expired(now);
        Some(flight)
    }

    fn on_rtt(&mut self, rtt: Time) {
        self.rto.sample(rtt);
    }
    fn backoffs(&self) -> u32 {
        self.rto.backoffs()
    }
    fn probe(&self, put: Probe<'_>) {
        self.rto.probe(put);
        put("in_flight", self.pipe as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::reno::Reno;
    use crate::recovery::testing::{Channel, DELAY, Story, transfer, transfer_randomly};
    use crate::rng::Rng;

    fn sack() -> SackRecovery {
        SackRecovery::new(&Values::default())
    }
    /// With a choice of `lost_retransmission`.
    fn choosing(choice: f64) -> SackRecovery {
        let mut values = Values::default();
        values.set(&Params::PARAMS[0], choice);
        SackRecovery::new(&values)
    }
    /// With `lost_retransmission = "reports"`.
    fn watching() -> SackRecovery {
        choosing(1.0)
    }
    fn sent(n: u32) -> SackRecovery {
        let mut r = sack();
        for segment in 0..n {
            r.on_sent(Time::ZERO, segment, segment);
        }
        r
    }
    fn ack(r: &mut SackRecovery, cumulative: u32, ranges: &[(u32, u32)]) -> Outcome {
        let out = r.on_ack(Time::millis(100), cumulative, 0, ranges, Time::millis(100));
        recount(r);
        out
    }

    /// `pipe` from its definition: segment by segment, with IsLost by counting.
    fn recount(r: &SackRecovery) {
        let reported = |s: u32| r.board.skip(s) != s;
        let after_timeout = !r.recovering && r.seq.acked < r.recover && r.lost_below == r.recover;
        let mut above = 0;
        let mut pipe = 0;
        for s in (r.seq.acked..r.seq.highest).rev() {
            if reported(s) {
                above += 1;
                continue;
            }
            let lost = if after_timeout { s < r.recover } else { r.recovering && above >= r.dupackthreshold as u32 };
            pipe += !lost as u32 + (s < r.cursor) as u32;
        }
        assert_eq!(r.pipe, pipe);
        let whole = r.board.is_empty() && r.pipe == r.seq.highest - r.seq.acked && r.cursor <= r.seq.acked;
        assert_eq!(r.quiet, whole && !r.recovering);
        assert!(r.seq.acked <= r.cursor.max(r.seq.acked) && r.cursor <= r.seq.highest);
    }

    #[test]
    fn three_reports_above_show_a_loss_and_release_as_they_come() {
        let mut r = sent(10);
        assert_eq!(ack(&mut r, 1, &[]).newly_acked, 1);
        let first = ack(&mut r, 1, &[(2, 3)]);
        assert!(first.duplicate && first.newly_acked == 1 && first.loss.is_none());
        assert_eq!(r.next(9.0, 100), Next::New, "limited transmit");
        r.on_sent(Time::ZERO, 10, 10);
        assert_eq!(ack(&mut r, 1, &[(2, 4)]).newly_acked, 1);
        r.on_sent(Time::ZERO, 11, 11);
        assert_eq!(ack(&mut r, 1, &[(2, 5)]).loss, Some(9), "in flight before, limited transmit not counted");
        // 5..12 are in flight; the window of four is full, but the first retransmission does not wait.
        assert_eq!((r.state().in_flight, r.next(4.0, 100)), (7, Next::Resend(1)));
        r.on_sent(Time::millis(100), 1, 12);
        assert_eq!((r.state().in_flight, r.next(8.0, 100)), (8, Next::Nothing));
        assert_eq!(r.next(9.0, 100), Next::New);
        assert_eq!(ack(&mut r, 12, &[]).newly_acked, 8);
        assert!(!r.state().recovering && r.quiet);
    }

    #[test]
    fn order_of_next_seg() {
        let mut r = sent(12);
        // Lost 0, 2, 6; reported 1, 3..6, 7; the last four are under way.
        assert_eq!(ack(&mut r, 0, &[(3, 6), (1, 2)]).loss, Some(12));
        ack(&mut r, 0, &[(7, 8), (3, 6), (1, 2)]);
        let take = |r: &mut SackRecovery| match r.next(100.0, 100) {
            Next::Resend(s) => {
                r.on_sent(Time::ZERO, s, 99);
                recount(r);
                Some(s)
            }
            _ => None,
        };
        assert_eq!((take(&mut r), take(&mut r), take(&mut r)), (Some(0), Some(2), None));
        assert_eq!(r.next(100.0, 100), Next::New);
        assert_eq!(r.next(100.0, 12), Next::Resend(6), "no room for new data: a hole that is not yet lost");
        assert_eq!(r.spare(), Some(6));
        r.on_sent(Time::ZERO, 6, 100);
        recount(&r);
        assert_eq!(r.spare(), None, "the tail may be under way");
        ack(&mut r, 2, &[(7, 8), (3, 6)]);
        assert_eq!(r.spare(), Some(11), "a retransmission overtook it");
        r.on_sent(Time::ZERO, 11, 101);
        recount(&r);
        assert_eq!(r.spare(), None, "once an episode");
    }

    /// 0 is lost, and so is its retransmission; 10 to 13 are sent after that.
    #[test]
    fn data_sent_after_a_retransmission_shows_that_it_was_lost() {
        for watches in [false, true] {
            let mut r = if watches { watching() } else { sack() };
            (0..10).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
            assert!(ack(&mut r, 0, &[(1, 4)]).loss.is_some());
            r.on_sent(Time::millis(100), 0, 10);
            (10..14).for_each(|segment| r.on_sent(Time::millis(100), segment, segment));
            let out = ack(&mut r, 0, &[(1, 12)]);
            assert_eq!((out.newly_acked, r.next(3.0, 100)), (8, Next::Nothing), "0, 12 and 13 are in flight");
            assert!(ack(&mut r, 0, &[(1, 13)]).loss.is_none(), "the law knows of it");
            if !watches {
                assert_eq!((r.state().in_flight, r.next(9.0, 100)), (2, Next::New), "it is left to the timer");
                continue;
            }
            assert_eq!(
                (r.state().in_flight, r.next(1.0, 100)),
                (1, Next::Resend(0)),
                "it does not wait for the window"
            );
            r.on_sent(Time::millis(200), 0, 14);
            assert_eq!(r.state().timer, Time::millis(200) + r.rto.timeout(), "the timer starts afresh");
            (14..17).for_each(|segment| r.on_sent(Time::millis(200), segment, segment));
            ack(&mut r, 0, &[(1, 16)]);
            assert_eq!(r.next(9.0, 100), Next::New, "two are not enough");
            ack(&mut r, 0, &[(1, 17)]);
            assert_eq!(r.next(9.0, 100), Next::Resend(0), "lost a third time");
            r.on_sent(Time::millis(300), 0, 17);
            assert!(ack(&mut r, 17, &[]).loss.is_none() && r.quiet);
        }
    }

    #[test]
    fn one_report_is_enough_if_no_reordering_is_feared() {
        let mut r = choosing(2.0);
        (0..10).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
        assert!(ack(&mut r, 0, &[(1, 4)]).loss.is_some());
        r.on_sent(Time::millis(100), 0, 10);
        r.on_sent(Time::millis(100), 10, 11);
        ack(&mut r, 0, &[(1, 10)]);
        assert_eq!(r.next(1.0, 100), Next::Nothing, "all that is reported was sent before");
        ack(&mut r, 0, &[(1, 11)]);
        assert_eq!(r.next(9.0, 100), Next::Resend(0));
    }

    /// One segment in fifty is lost, retransmissions too. What nothing follows, or too little, still waits for the timer.
    #[test]
    fn reports_replace_the_timer() {
        let timeouts = |watched: bool| {
            let transfer = |seed| {
                let mut r = if watched { watching() } else { sack() };
                let story = transfer_randomly(&mut r, seed, 1500, (0.02, 0.0), recount);
                assert_eq!((story.resent_in_flight, story.resent_arrived), (0, 0), "{story:?}");
                story.timeouts
            };
            (0..40).map(transfer).sum::<u32>()
        };
        let (without, with) = (timeouts(false), timeouts(true));
        assert!(with * 3 < without * 2, "{with} of {without} timeouts are left");
    }

    /// 0 and 2 are lost; a window of eight.
    #[test]
    fn a_pipe_of_acknowledgements_keeps_what_is_lost() {
        let mut r = CountingSack { recovery: sack(), counted: 0 };
        let ack = |r: &mut CountingSack, cumulative, ranges: &[(u32, u32)]| {
            let out = r.on_ack(Time::millis(100), cumulative, 0, ranges, Time::millis(100));
            recount(&r.recovery);
            (out.loss, (r.recovery.pipe, r.counted))
        };
        (0..12).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
        assert!(ack(&mut r, 0, &[(3, 5), (1, 2)]).0.is_some());
        r.on_sent(Time::millis(100), 0, 12);
        let pipes = (r.recovery.pipe, r.counted);
        assert_eq!(pipes, (9, 9), "without 1, 3, 4 and the first 0; any three, and not the resent one");
        assert_eq!(ack(&mut r, 0, &[(3, 6), (1, 2)]).1, (7, 8), "less 5, and 2 is lost");
        assert_eq!((r.recovery.next(8.0, 100), r.next(8.0, 100)), (Next::Resend(2), Next::Nothing));
        assert_eq!(ack(&mut r, 0, &[(3, 9), (1, 2)]).1, (4, 7), "three reports, one acknowledgement");
        r.on_sent(Time::millis(100), 2, 13);
        assert_eq!((r.recovery.pipe, r.counted), (5, 8));
        assert_eq!(ack(&mut r, 2, &[(3, 9)]).1, (4, 6), "a partial acknowledgement takes two");
        ack(&mut r, 12, &[]);
        assert_eq!(r.next(1.0, 100), Next::New, "the next window is what is outstanding, as ever");
    }

    #[test]
    fn a_timeout_keeps_the_reports_and_fills_the_holes() {
        let mut r = sent(8);
        ack(&mut r, 0, &[(2, 4), (6, 7)]);
        assert_eq!(r.state().in_flight, 3, "4, 5 and 7: an episode has marked 0 and 1 as lost");
        assert_eq!((r.on_timer(Time::secs(1)), r.state().in_flight), (Some(3), 0));
        for hole in [0, 1, 4, 5, 7] {
            assert_eq!(r.next(100.0, 100), Next::Resend(hole));
            assert_eq!(r.next(r.state().in_flight as f64, 100), Next::Nothing);
            r.on_sent(Time::secs(1), hole, 0);
            recount(&r);
        }
        assert_eq!(r.next(100.0, 100), Next::New);
        assert_eq!((ack(&mut r, 4, &[]).newly_acked, r.state().in_flight), (2, 3));
        assert!(ack(&mut r, 8, &[]).loss.is_none() && r.quiet);
    }

    /// A second episode may begin with all its losses resent; it ends while segments that are older than it are in flight.
    #[test]
    fn an_episode_that_has_nothing_to_resend_ends() {
        let mut r = sent(10); // 0 is lost, and 10 will be
        assert!(ack(&mut r, 0, &[(1, 4)]).loss.is_some());
        r.on_sent(Time::ZERO, 0, 10);
        (10..14).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
        ack(&mut r, 0, &[(11, 14), (1, 10)]);
        assert_eq!(r.next(100.0, 100), Next::Resend(10));
        r.on_sent(Time::ZERO, 10, 99);
        (14..18).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
        assert!(ack(&mut r, 10, &[(11, 14)]).loss.is_some());
        ack(&mut r, 14, &[]);
        assert!(r.state().recovering, "until 18");
        ack(&mut r, 18, &[]);
        assert!(!r.state().recovering);
    }

    #[test]
    fn reneging_is_survived() {
        let mut r = sent(8);
        ack(&mut r, 0, &[(1, 2), (3, 5)]);
        r.on_sent(Time::millis(100), 0, 8);
        // The receiver has 0 now but no longer 1.
        assert_eq!(ack(&mut r, 1, &[]).newly_acked, 1);
        assert!(r.board.is_empty() && r.state().in_flight == 7);
        assert_eq!(r.on_timer(Time::secs(9)), Some(7));
        for s in 1..8 {
            assert_eq!(r.next(100.0, 100), Next::Resend(s));
            r.on_sent(Time::secs(9), s, 0);
            recount(&r);
        }
        assert_eq!(ack(&mut r, 8, &[]).newly_acked, 7);
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut r = sent(8);
        ack(&mut r, 3, &[]);
        for ranges in [[(9, 10)], [(0, 2)], [(6, 5)], [(5, 5)], [(2, 6)], [(3, 4)], [(7, u32::MAX)]] {
            assert_eq!(ack(&mut r, 3, &ranges).newly_acked, 0, "{ranges:?}");
        }
        assert_eq!(ack(&mut r, 9, &[(4, 5)]).newly_acked, 0);
        assert!(r.quiet && r.state().in_flight == 5);
    }

    #[test]
    fn random_loss_is_repaired_without_waste() {
        for seed in 0..40 {
            for loss in [0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3] {
                let story = transfer_randomly(&mut sack(), seed, 1500, (loss, 0.0), recount);
                assert_eq!((story.resent_in_flight, story.resent_arrived), (0, 0), "{loss}: {story:?}");
                assert!(loss > 0.0 || story.resent + story.timeouts == 0);
                let story = transfer_randomly(&mut sack(), seed, 1500, (loss, loss), recount);
                assert_eq!(story.resent_in_flight, 0, "{loss} with lost acknowledgements: {story:?}");
            }
        }
    }

    #[test]
    fn random_answers_keep_the_counts() {
        for seed in 0..200 {
            let mut rng = Rng::stream(seed, "answers");
            let mut r = if seed % 2 == 0 { sack() } else { watching() };
            let mut below = |n: u32| (rng.next_u64() % n as u64) as u32;
            for step in 0..2000 {
                let now = Time::millis(step);
                match below(4) {
                    0 | 1 => match r.next(1.0 + below(40) as f64, 100) {
                        Next::Nothing => {}
                        Next::Resend(s) => r.on_sent(now, s, 0),
                        Next::New => {
                            let spare = r.spare().filter(|_| below(2) == 0);
                            let s = spare.unwrap_or(r.state().next);
                            r.on_sent(now, s, 0);
                        }
                    },
                    2 if r.state().timer <= now => drop(r.on_timer(now)),
                    _ => {
                        let base = r.seq.acked.saturating_sub(2);
                        let cumulative = if below(3) == 0 { base + below(12) } else { r.seq.acked };
                        let ranges = [(); 3].map(|()| (base + below(50), base + below(60)));
                        r.on_ack(now, cumulative, 0, &ranges[..below(4) as usize], Time::millis(1 + below(50) as u64));
                    }
                }
                recount(&r);
            }
            assert!(r.state().acked > 100);
        }
    }

    /// Ten segments of a window of forty are lost.
    fn ten_of_forty(r: &mut AnyRecovery) -> Story {
        let channel = Channel {
            segments: 400,
            loses_data: &mut |n, _| (60..100).contains(&n) && n % 4 == 0,
            loses_ack: &mut || false,
            cwnd: 40.0,
            most: 40.0,
        };
        transfer(r, channel, |_| {})
    }

    #[test]
    fn many_losses_of_a_window_take_a_few_round_trips() {
        let story = ten_of_forty(&mut sack());
        assert_eq!((story.timeouts, story.episodes, story.resent), (0, 1, 10));
        let perfect = 400 / 40 * 2;
        assert!(story.finished < Time(DELAY.0 * (perfect + 16)), "{story:?}");
        let reno = ten_of_forty(&mut *Reno.build(&Values::default()));
        assert!(reno.timeouts > 0, "{reno:?}");
    }
}
