//! Loss recovery of present hosts: losses by time (RACK), a probe for the tail (TLP), timeouts that are taken back (F-RTO, Eifel),
//! duplicates that the receiver reports (DSACK), and a rate that is reduced in proportion (PRR).
//!
//! A segment is lost once a segment that left later has arrived and a reordering window has passed since the round trip of
//! the former was over. So retransmissions that are lost are found too, and the order of segments means nothing.
//! The window is zero in a repair, or once `dupackthreshold` segments are reported, until the path has been seen to reorder; then it
//! is a quarter of the minimum round trip, and another quarter for each round trip with a needless retransmission, up to SRTT.
//! If nothing is acknowledged for two round trips, a probe is sent, whose report shows the losses at the end. If an
//! episode turns out to be needless, the controller takes its response back ([`crate::api::Sender::on_undo`]).
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | RACK.xmit_ts, RACK.end_seq, RACK.rtt | `latest` | | | RFC 8985 section 6.2 |
//! | RACK.reo_wnd, RACK.min_RTT | `reordering` | | 1/4 of the minimum | sections 6.2, 7 |
//! | DupThresh | `dupackthreshold` | segments | 3 | section 6.2.1 |
//! | PTO | `probe.at` | | 2 SRTT + 2 ms; + 200 ms with one segment in flight | section 7.2; Linux |
//! | TLP.end_seq, TLP.is_retrans | `probe` | | | section 7.1 |
//! | RecoverFS, prr_delivered, prr_out | `reduction` | segments | | RFC 9937 section 6 |
//! | undo_marker, undo_retrans, retrans_stamp | `doubt` | | | Linux 6.18 |
//! | high_seq | `recover` | segment, one past | | Linux 6.18 |
//!
//! Deviations:
//! 1. Conditions and constants are Linux's (6.18, `tcp_input.c`, `tcp_recovery.c`, `tcp_output.c`) where it differs from the RFCs.
//!    F-RTO is its form with SACK (RFC 5682 section 3). Lost retransmissions in an episode reduce nothing more.
//! 2. The timer for reordering runs until a segment that left just before the latest arrival would be lost, not until
//!    that of the last one before it; the difference is the time between two departures.
//! 3. Segments are whole. The echo of packet numbers, which hosts' TCP does not have, is not used; time stamps for undo
//!    have 1 ms, as those of hosts.
//! 4. RecoverFS is what was outstanding and not reported, Linux's prior_cwnd the window. The controller's window is reduced
//!    at once; PRR lets the flight follow.
//! 5. A loss is reported with FlightSize (RFC 5681), or with the window if that is less; Linux always takes the window, even if
//!    the application has not filled it.
//! 6. An undo restores window and threshold of the last response. Segments that were marked by other responses in between
//!    are not distinguished.
//! 7. Data that the receiver discarded after its report (RFC 2018 section 8) wait for the timer.
//! 8. After a timeout the window is one segment (RFC 5681); Linux's is one more than what left too lately to be lost
//!    (`tcp_enter_loss`).
//! 9. The acknowledgement that ends a repair does not let the window grow (RFC 5681 section 3.2); in Linux it does
//!    (`tcp_may_raise_cwnd`).
//! 10. Where acknowledgements are delayed, controllers take the round trip of the first segment covered, as the timer does. Linux
//!     gives them that of the last (`ca_rtt_us`), without the delay.

use alloc::boxed::Box;

use self::flight::{Flight, Found, Latest};
use self::probe::{SLACK, TailProbe};
use self::prr::Reduction;
use self::reordering::Reordering;
use self::reports::duplicate_in;
use self::undo::Doubt;
use crate::api::{Probe, measured_ms};
use crate::params::{Info, Values};
use crate::recovery::common::loss_free::LossFree;
use crate::recovery::common::rto::{Rto, Sequence};
use crate::recovery::common::scoreboard::Scoreboard;
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

mod episode;
mod flight;
mod probe;
mod prr;
mod reordering;
mod reports;
mod undo;

/// Recovery by time, as hosts have it.
pub struct Rack;

impl RecoveryKind for Rack {
    const INFO: Info = Info {
        name: "rack",
        summary: "Losses by time, tail probes, timeouts that are taken back: the recovery of present hosts",
        source: "RFC 8985, RFC 9937, RFC 5682, RFC 3708, RFC 3522; Linux 6.18",
        params: &[],
    };
    const WANTS_SACK: bool = true;
    const WANTS_DSACK: bool = true;
    const UNDOES: bool = true;

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        Box::new(RackRecovery::new(values))
    }
}

/// What is being done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing is known to be lost.
    Open,
    /// An episode: losses were found by acknowledgements or the timer for reordering.
    Recovery,
    /// After a timeout.
    Loss,
}

struct RackRecovery {
    /// `next` equals `highest`: a timeout does not roll back, it marks.
    seq: Sequence,
    rto: Rto,
    board: Scoreboard,
    flight: Flight,
    latest: Latest,
    reordering: Reordering,
    probe: TailProbe,
    reduction: Reduction,
    /// The flight of an episode follows `reduction`, not only the window.
    reduces: bool,
    doubt: Doubt,
    state: State,
    /// The episode ends here.
    recover: u32,
    /// When segments that wait for the reordering window are looked at again.
    reorder_at: Time,
    /// The first segment is sent again whatever the window.
    head: bool,
    /// The last timeout may be spurious (RFC 5682).
    frto: bool,
    /// F-RTO, step 2 b: new data before retransmissions.
    new_first: bool,
    /// Retransmissions of the whole flow, and segments reported as duplicates: more of these are none of ours.
    resent: u32,
    duplicates: u32,
}

impl RackRecovery {
    fn new(values: &Values) -> RackRecovery {
        let common = Common::of(values);
        RackRecovery {
            seq: Sequence::default(),
            rto: Rto::new(values),
            board: Scoreboard::default(),
            flight: Flight::default(),
            latest: Latest::default(),
            reordering: Reordering::new(common.dupackthreshold as u32),
            probe: TailProbe::new(Time::from_secs_f64(common.least_rto())),
            reduction: Reduction::default(),
            reduces: true,
            doubt: Doubt::default(),
            state: State::Open,
            recover: 0,
            reorder_at: Time::NEVER,
            head: false,
            frto: false,
            new_first: false,
            resent: 0,
            duplicates: 0,
        }
    }

    /// Nothing is missing, nothing was lost lately, and no probe waits for its answer.
    fn is_quiet(&self) -> bool {
        self.state == State::Open && self.board.is_empty() && self.flight.lost.is_empty() && !self.probe.is_open()
    }

    /// How long a segment may be late.
    fn wait(&self) -> Time {
        self.reordering.wait(self.state != State::Open, self.board.total(), self.rto.srtt())
    }
    /// Looks for losses, and starts the timer for those whose time has not come.
    fn search(&mut self, now: Time) -> Found {
        let wait = self.wait();
        let found = self.flight.search(now, &self.latest, wait);
        self.reorder_at = if found.waiting { self.latest.deadline(wait + SLACK).max(now + SLACK) } else { Time::NEVER };
        found
    }

    fn schedule_probe(&mut self, now: Time) {
        let allowed = self.state == State::Open && self.board.is_empty();
        let outstanding = self.seq.highest - self.seq.acked;
        self.probe.schedule(now, allowed, outstanding, self.rto.srtt(), self.rto.deadline());
    }

    /// The flow has the counters: this is when its retransmission timer expires. The probe's starts over.
    fn follow_timers(&mut self, now: Time, retransmission: Time, at: &mut RecoveryState) {
        self.rto.follow(retransmission);
        self.probe.schedule(now, true, at.in_flight, at.srtt, retransmission);
        at.timer = self.probe.at;
    }

    /// An acknowledgement while nothing is missing.
    #[inline]
    fn take_in_order(&mut self, now: Time, advanced: u32, rtt: Time) -> Outcome {
        let min_rtt = self.reordering.min_rtt();
        let latest = &mut self.latest;
        let mut newly_acked = 0;
        self.flight.advance(self.seq.acked, |segment, record| {
            latest.take(now, segment, record, min_rtt);
            newly_acked += 1;
        });
        debug_assert_eq!(newly_acked, advanced);
        self.measure(now, rtt);
        self.rto.acknowledged(now, self.seq.outstanding(), self.seq.acked > self.recover);
        self.probe.repaired(self.seq.acked, false, false);
        self.schedule_probe(now);
        Outcome { newly_acked, ..Outcome::default() }
    }
    fn measure(&mut self, now: Time, rtt: Time) {
        self.rto.sample(rtt, &self.seq);
        self.reordering.sample(now, rtt);
    }

    #[inline(never)]
    fn repair(&mut self, now: Time, cumulative: u32, advanced: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let outstanding = self.seq.highest - (self.seq.acked - advanced);
        let before = outstanding.saturating_sub(self.board.total());
        let reported_below = self.board.last().map_or(self.seq.acked - advanced, |range| range.1);
        let head = self.flight.departure(self.seq.acked);
        self.new_first = false;
        let duplicate = duplicate_in(sack, cumulative);
        let answers_probe = duplicate.is_some_and(|range| self.take_duplicate(range));
        let arrivals = self.take_arrivals(now, cumulative, &sack[duplicate.is_some() as usize..]);
        if self.board.first().is_some_and(|(first, _)| first == self.seq.acked) {
            self.board.clear();
            self.flight.forget_arrivals();
        }
        if arrivals.newly > 0 {
            self.measure(now, rtt);
        }
        if let Some(lowest) = arrivals.lowest.filter(|lowest| *lowest < reported_below) {
            self.reordering.behind(reported_below - lowest);
        }
        let nothing = advanced == 0 && arrivals.newly == 0;
        let repaired = self.probe.repaired(cumulative, nothing, answers_probe);
        let echoed = Time(now.0.saturating_sub(rtt.0));
        let is_duplicate = advanced == 0 && self.seq.is_duplicate(cumulative);
        let (undo, searches) = self.go_on(advanced > 0, echoed, is_duplicate, &arrivals);
        self.head &= advanced == 0 && self.state == State::Loss;

        let found = if searches { self.search(now) } else { Found::default() };
        let begins = match self.state {
            State::Open => !self.flight.lost.is_empty(),
            State::Recovery => false,
            State::Loss => found.again,
        };
        if begins {
            self.begin(before);
        }
        if self.state == State::Recovery {
            self.reduction.take(arrivals.newly, self.flight.count, advanced > 0 && found.lost == 0);
        }
        if advanced > 0 {
            self.rto.acknowledged(now, self.seq.outstanding(), self.seq.acked > self.recover);
        } else if arrivals.newly > 0 && head.is_some_and(|head| echoed < head) {
            // Data that left before the first segment did so last: the timeout would come too early.
            self.rto.restart(now);
        }
        self.schedule_probe(now);
        let progress = arrivals.newly > 0 && self.reordering.is_wide();
        Outcome {
            newly_acked: arrivals.newly,
            duplicate: is_duplicate && !progress,
            undo,
            loss: (begins || repaired).then_some(outstanding),
        }
    }
}

impl Recovery for RackRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, _packet_number: u32) {
        let again = segment != self.seq.next;
        if again {
            self.flight.send_again(now, segment);
            self.doubt.resent(now);
            self.resent = self.resent.saturating_add(1);
            if segment == self.seq.acked {
                self.head = false;
                self.rto.restart(now);
            }
            if self.new_first {
                (self.new_first, self.frto) = (false, false);
            }
        } else {
            self.seq.sent(segment);
            self.flight.send(now);
        }
        if self.state == State::Recovery {
            self.reduction.sent();
        }
        self.rto.start(now);
        if self.probe.due {
            self.probe.sent(again, self.seq.highest);
            self.rto.restart(now);
        } else if !again {
            self.schedule_probe(now);
        }
    }

    fn on_ack(&mut self, now: Time, cumulative: u32, _packet_number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome {
        if cumulative > self.seq.highest {
            return Outcome::default();
        }
        let advanced = self.seq.acknowledge(cumulative);
        if advanced > 0 && sack.is_empty() && self.is_quiet() {
            return self.take_in_order(now, advanced, rtt);
        }
        self.repair(now, cumulative, advanced, sack, rtt)
    }

    #[inline]
    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        let new = if self.seq.flight() < rwnd { Next::New } else { Next::Nothing };
        if self.probe.due {
            return match (new, self.flight.last()) {
                (Next::Nothing, Some(last)) => Next::Resend(last),
                _ => new,
            };
        }
        if self.head {
            return Next::Resend(self.seq.acked);
        }
        let window = match self.state {
            State::Recovery if self.reduces => self.reduction.window(cwnd as u32),
            _ => cwnd as u32,
        };
        if self.flight.count >= window {
            return Next::Nothing;
        }
        match self.flight.lost.first() {
            // Once new data have left, their reports are awaited.
            Some(_) if self.new_first && (new == Next::New || self.seq.highest > self.recover) => new,
            Some(&segment) => Next::Resend(segment),
            None => new,
        }
    }

    fn spare(&self) -> Option<u32> {
        if self.probe.due {
            return self.flight.last();
        }
        self.flight.lost.first().copied().filter(|_| self.new_first && self.seq.highest == self.recover)
    }

    fn state(&self) -> RecoveryState {
        let state = self.seq.state(&self.rto, self.flight.count, self.state == State::Recovery);
        RecoveryState { timer: state.timer.min(self.reorder_at).min(self.probe.at), ..state }
    }

    /// All outstanding segments left once and wait for nothing but their acknowledgements. It follows, for times of departure.
    fn check_out(&self) -> Option<LossFree> {
        let timers = self.probe.is_idle() && self.reorder_at == Time::NEVER && self.rto.backoffs() == 0;
        let loss_free = timers && self.is_quiet() && self.flight.resent == 0;
        let lent = if loss_free { self.seq.check_out(&self.rto)? } else { return None };
        Some(LossFree { follows: true, ..lent })
    }
    fn follow_sent(&mut self, now: Time, at: &mut RecoveryState) {
        self.flight.send(now);
        let retransmission = if at.in_flight == 1 { at.timer } else { self.rto.deadline() };
        self.follow_timers(now, retransmission, at);
    }
    fn follow_ack(&mut self, now: Time, newly: u32, rtt: Time, at: &mut RecoveryState) {
        self.flight.arrive_in_order(now, newly, &mut self.latest);
        self.reordering.sample(now, rtt);
        self.follow_timers(now, at.timer, at);
    }
    fn check_in(&mut self, loss_free: &LossFree, at: &RecoveryState) {
        let timer = self.rto.deadline();
        self.seq.check_in(&mut self.rto, loss_free, &RecoveryState { timer, ..*at });
    }

    fn on_early_timer(&mut self, now: Time) -> Option<Outcome> {
        if self.reorder_at <= now {
            let before = (self.seq.highest - self.seq.acked).saturating_sub(self.board.total());
            self.search(now);
            let begins = self.state == State::Open && !self.flight.lost.is_empty();
            if begins {
                self.begin(before);
                self.reduction.take(1, self.flight.count, false);
            }
            let outstanding = self.seq.highest - self.seq.acked;
            return Some(Outcome { loss: begins.then_some(outstanding), ..Outcome::default() });
        }
        if self.probe.at <= now {
            self.probe.at = Time::NEVER;
            self.probe.due = self.seq.outstanding();
            self.rto.restart(now);
            return Some(Outcome::default());
        }
        None
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        if !self.seq.outstanding() {
            self.rto.stop();
            return None;
        }
        let before = self.flight.count;
        let repeated = self.rto.backoffs() > 0;
        self.frto = self.state == State::Open || repeated;
        if self.state == State::Open {
            self.reordering.on_timeout(self.board.total());
        }
        if self.state == State::Open || self.seq.acked >= self.recover || self.state == State::Loss && !repeated {
            self.open_doubt();
        }
        self.probe.cancel();
        self.flight.lose_all(now, self.latest.rtt);
        self.state = State::Loss;
        self.recover = self.seq.highest;
        self.reorder_at = Time::NEVER;
        self.head = true;
        self.new_first = false;
        self.rto.expired(now);
        Some(before)
    }

    fn leave_repair_to_window(&mut self) {
        self.reduces = false;
    }
    fn on_rtt(&mut self, rtt: Time) {
        self.rto.sample(rtt, &self.seq);
        self.reordering.sample(Time::ZERO, rtt);
    }
    fn backoffs(&self) -> u32 {
        self.rto.backoffs()
    }
    fn timeout(&self) -> Option<Time> {
        Some(self.rto.timeout())
    }
    fn probe(&self, put: Probe<'_>) {
        self.rto.probe(put);
        put("in_flight", self.flight.count as f64);
        put("reordering_window_ms", measured_ms(self.wait()));
    }
}

#[cfg(test)]
mod tests;
