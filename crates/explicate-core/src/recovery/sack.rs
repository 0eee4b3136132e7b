//! Recovery from selective acknowledgements (RFC 2018, RFC 6675).
//!
//! The receiver reports the segments that it has beyond the cumulative number. A segment counts as lost once
//! `dupackthreshold` segments above it are reported, so all lost ones lie below one boundary, and since they are
//! retransmitted in order, all retransmitted ones lie below another. The number in flight (`pipe`) is then the number
//! of unreported segments above the first boundary plus that below the second; both are maintained by counting the
//! additions of each report. A window with many losses is repaired in one round trip after the loss is detected.
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
//! IsLost counts octets or discontiguous blocks in the RFC; in whole segments both rules mean "`dupackthreshold`
//! segments above". Limited transmit (RFC 3042) needs no code: a report decreases `pipe` and so releases a segment.
//!
//! Deviations:
//! 1. A timeout marks all unreported segments as lost and unsent, and keeps the reports (RFC 6675 section 5.1 permits
//!    it). Reports are advisory: a cumulative number that stops at a reported segment shows that the receiver has
//!    discarded it, and all reports are discarded.
//! 2. The rescue retransmission waits for the first partial acknowledgement and is omitted if new data followed the
//!    episode's beginning, so it never repeats a segment in flight on a path without reordering.
//! 3. A second episode that begins where the first one ended does not repeat the retransmissions of the first.
//! 4. The reduction uses the `pipe` before the acknowledgement that revealed the loss; with limited transmit this is
//!    the FlightSize without the segments that limited transmit added.
//! 5. Without reports (from a receiver that refuses SACK) only the timer repairs.
//! 6. A lost retransmission waits for the timer, as in the RFC. `lost_retransmission = "reports"`: once
//!    `dupackthreshold` segments are reported that were sent after the last retransmission, retransmitted gaps count
//!    as lost, and are retransmitted again. `"first_report"`: one such segment is enough, as in Linux 2.4 with
//!    forward acknowledgements, its default while it detects no reordering (but Linux considers every retransmission
//!    separately). The congestion controller receives no report of it.
//! 7. The reduction at a timeout, and the end of back-off: `reno.rs`, deviations 1 and 3.
//! 8. `pipe = "acknowledgements"` is the pipe before RFC 6675, as in ns-2's `Sack1`: an episode begins with all
//!    outstanding segments minus `dupackthreshold`, every acknowledgement subtracts one, a partial one two, and every
//!    segment except the first retransmission adds one. Lost segments and lost acknowledgements are not subtracted.

use alloc::boxed::Box;

use self::counting::CountingSack;
use crate::api::Probe;
use crate::params::{Info, Values, choices, parameters};
use crate::recovery::common::loss_free::LossFree;
use crate::recovery::common::rto::{Rto, Sequence};
use crate::recovery::common::scoreboard::Scoreboard;
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

mod counting;

/// Recovery from selective acknowledgements.
pub struct Sack;

choices! {
    /// What triggers the repair of a lost retransmission.
    enum LostRetransmission { Timer = "timer", Reports = "reports", FirstReport = "first_report" }
}

choices! {
    /// Estimator of the segments in flight during an episode.
    enum Pipe { Reports = "reports", Acknowledgements = "acknowledgements" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// What triggers the repair of a lost retransmission: the timer, `dupackthreshold` reports of data sent after
        /// it, or one.
        lost_retransmission: LostRetransmission = LostRetransmission::Timer, "RFC 6675; Linux 2.4";
        /// Estimator of the segments in flight during an episode: the reports, or the number of acknowledgements, as
        /// in ns-2's Sack1.
        pipe: Pipe = Pipe::Reports, "RFC 6675 section 4; Fall and Floyd 1996";
    }
}

impl RecoveryKind for Sack {
    const INFO: Info = Info {
        name: "sack",
        summary: "Selective acknowledgements: all gaps of a window are retransmitted in one round trip",
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

/// State of an episode's rescue retransmission.
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
    /// Unreported segments below have been retransmitted; itself unreported.
    cursor: u32,
    /// Reported segments from `lost_below` on, while that lies above `acked`.
    reported_above: u32,
    /// Unreported segments below `cursor`.
    resent: u32,
    /// Segments from here on were sent after the last retransmission, if that is tracked.
    resent_before: u32,
    pipe: u32,
    recover: u32,
    recovering: bool,
    /// The retransmission that opens an episode does not wait for the window.
    first: bool,
    rescue: Rescue,
    /// See there: no more than 255.
    dupackthreshold: u8,
    /// Reports of later data that show the loss of retransmissions; 0 leaves these to the timer.
    reports_needed: u8,
    /// No episode and no gap: `pipe` is the number of outstanding segments.
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

    /// Processes the reports of an acknowledgement that advanced the cumulative number by `advanced`. Returns the
    /// number of newly covered segments and whether it indicates a loss.
    #[inline(never)]
    fn repair(&mut self, advanced: u32, sack: &[(u32, u32)]) -> (u32, bool) {
        let acked = self.seq.acked;
        let mut newly = advanced - self.board.advance(acked);
        self.resent = if acked >= self.cursor { 0 } else { self.resent - newly };
        if self.board.first().is_some_and(|(first, _)| first == acked) {
            self.distrust();
            return (newly, false);
        }
        // A range that reaches below `acked` reports duplicates or is invalid; one beyond the data sent is invalid.
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

    /// Moves the boundary of loss up to the `dupackthreshold`-th highest report; returns whether an episode begins.
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

    /// The receiver has discarded segments that it had reported: clears all reports and leaves the repair to the
    /// timer.
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

    /// Whether an unreported segment that was not retransmitted has a report above it.
    fn below_reports(&self) -> bool {
        self.board.last().is_some_and(|(first, _)| self.cursor < first)
    }

    /// The highest unreported segment, if it was not retransmitted.
    fn tail(&self) -> Option<u32> {
        let end = self.board.last().filter(|r| r.1 == self.seq.highest).map_or(self.seq.highest, |r| r.0);
        (end > self.cursor).then(|| end - 1)
    }

    /// The next transmission, with this number of segments in flight.
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
            self.rto.sample(rtt, &self.seq);
        }
        if advanced > 0 {
            self.rto.acknowledged(now, self.seq.outstanding(), self.seq.acked > self.recover);
        }
        Outcome {
            newly_acked,
            duplicate: advanced == 0 && self.seq.is_duplicate(cumulative),
            loss: began.then_some(before),
            ..Outcome::default()
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

    fn check_out(&self) -> Option<LossFree> {
        let loss_free = self.quiet && !self.first && self.pipe == self.seq.highest - self.seq.acked;
        if loss_free { self.seq.check_out(&self.rto) } else { None }
    }

    fn check_in(&mut self, loss_free: &LossFree, at: &RecoveryState) {
        self.seq.check_in(&mut self.rto, loss_free, at);
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
        self.rto.sample(rtt, &self.seq);
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
mod tests;
