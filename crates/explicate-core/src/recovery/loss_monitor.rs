//! Loss recovery under explicit congestion control, from packet numbers that the receiver echoes: the loss monitor.
//!
//! Source: De Vleeschouwer and Frossard, "Loss-resilient window-based congestion control", Computer Networks 52, 2008
//! \[paper D\], section 5.
//!
//! A cumulative acknowledgement reveals one gap per round trip. Here each acknowledgement identifies the packet that
//! caused it. For every segment beyond the first gap the sender stores whether it has arrived, and the last packet
//! that carried it. Of the missing segments, the one that was sent longest ago is the candidate. Once a window of
//! packets has left after it, the acknowledgements caused by later packets are counted. When the count reaches
//! `dupackthreshold`, the candidate is retransmitted, and the next segment becomes the candidate. So a window with
//! many losses is repaired in one round trip, and the loss of a retransmission is detected like any other. Inflation,
//! retransmission timer and patient recovery timer are those of `loss_resilient`.
//!
//! | symbol | field | unit | value | section |
//! | --- | --- | --- | --- | --- |
//! | lack + 1 | `seq.acked` | segment | | 2.1 |
//! | W\[j\], lack < j < nextseq | `window` | `InFlight(packet)` or `Received` | | 5.2 |
//! | W\[j\] = FREE | beyond the end of `window` | | | 5.2 |
//! | N | `rwnd - 1` | segments | | 5.2 |
//! | rseqn | segment of the first entry of `sent` | segment | | 5.2, equation 1 |
//! | dupcount | `dupcount` | acknowledgements | | 5.2 |
//! | the packet sequence number | `sent.back()`, one past | packet | increments with every packet | 2.1, 5.2 |
//! | cwnd | `cwnd` | segments | at the flow's last call of `next` | 5.2 |
//! | dupackthreshold | `dupackthreshold` | acknowledgements | 1 or 3 | 5.2 |
//! | swnd - cwnd | `received` | segments | number of `Received` | 2.1, 4.1 |
//!
//! Equation 1 searches N segments for the least packet number. Packets leave in the order of their numbers, so a
//! queue of packets has the candidate at its front, after outdated entries are removed: each entry is added and
//! removed once.
//!
//! Deviations:
//! 1. Equation 1 reads lack + 1 < j; here the first gap itself is a candidate, as in the definition of W (lack < j).
//!    Rule 3 of the updates frees the entries up to and including nlack.
//! 2. The paper resets `dupcount` with every change of the candidate and then states that this happens only once "the
//!    packet sequence number" is larger than W\[rseqn\] + cwnd, so that nothing is retransmitted twice in a round
//!    trip. Here that number is the next one that the sender assigns (section 2.1: its counter), and the count of a
//!    candidate starts from zero when it is reached. So two transmissions of a segment are more than a window of
//!    packets apart. If the count continued from the previous candidate, a retransmission would occur before
//!    `dupackthreshold` acknowledgements of later packets (the first rule). With the number of the acknowledged
//!    packet, all but the first loss of a window would be delayed by a round trip (section 7.1 has several repaired
//!    in one). If the receiver's window is smaller, that number of packets is enough. The last losses of a sender
//!    without more data are left to the timer. `recount = "at_once"` omits the rule: packets sent after a
//!    retransmission are acknowledged a round trip later anyway.
//! 3. The inflation is the number of segments known to be at the receiver, as the paper defines it; counting
//!    duplicates and deflating gives the same if no acknowledgement is lost and no retransmission is unnecessary.
//! 4. The entry of a retransmitted segment leaves the queue with its number: a later acknowledgement of the earlier
//!    packet, which is possible only with reordering, is a duplicate without information.
//! 5. A connection reset clears the window W with the counters.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::cell::Cell;
use core::ops::Range;

use crate::api::Probe;
use crate::params::{Info, Values, choices, parameters};
use crate::recovery::common::rto::Sequence;
use crate::recovery::common::timers::{self, Expired, Timers};
use crate::recovery::{AnyRecovery, Common, Next, Outcome, Recovery, RecoveryKind, RecoveryState};
use crate::units::Time;

/// The loss monitor of paper D.
pub struct LossMonitor;

choices! {
    /// When counting for a new candidate starts.
    pub(super) enum Recount { AfterWindow = "after_window", AtOnce = "at_once" }
}

parameters! {
    /// What a scenario can set.
    pub(super) struct Params {
        /// When counting for a new candidate starts: after a window of packets has left since the candidate, or
        /// immediately.
        recount: Recount = Recount::AfterWindow, "paper D section 5.2";
        /// Its two timers.
        timers: timers::Params = timers::Params::DEFAULT;
    }
}

impl RecoveryKind for LossMonitor {
    const INFO: Info = Info {
        name: "loss_monitor",
        summary: "Echoed packet numbers identify arrivals: the longest missing segment is retransmitted, several per round trip",
        source: "De Vleeschouwer, Frossard, Computer Networks 52, 2008, section 5",
        params: Params::PARAMS,
    };
    const SELECTIVE: bool = true;

    fn build(&self, values: &Values) -> Box<AnyRecovery> {
        Box::new(LossMonitorRecovery::new(values))
    }
}

/// State of a segment beyond the first gap.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Slot {
    /// Last sent by this packet.
    InFlight(u32),
    /// At the receiver.
    Received,
}

/// The monitor. Its caller supplies packet numbers or reports of segments.
pub(super) struct LossMonitorRecovery {
    seq: Sequence,
    timers: Timers,
    dupackthreshold: u32,
    /// W, from `seq.acked` to `seq.next`.
    window: VecDeque<Slot>,
    /// Number of them at the receiver.
    received: u32,
    /// Packets in flight and their segments, in the order of transmission. The first one is the candidate.
    sent: VecDeque<(u32, u32)>,
    /// Acknowledgements caused by packets after the candidate's.
    dupcount: u32,
    /// Whether they count only once a window of packets has left since.
    after_window: bool,
    /// The window at the last call of `next`, and N, the maximum number of segments in flight that the receiver's
    /// window allows.
    cwnd: Cell<f64>,
    free: Cell<u32>,
    resend: Option<u32>,
    by_timer: bool,
    /// End of the reported episode.
    recover: u32,
    recovering: bool,
}

impl LossMonitorRecovery {
    pub(super) fn new(values: &Values) -> LossMonitorRecovery {
        LossMonitorRecovery {
            seq: Sequence::default(),
            timers: Timers::new(values),
            dupackthreshold: Common::of(values).dupackthreshold as u32,
            window: VecDeque::new(),
            received: 0,
            sent: VecDeque::new(),
            dupcount: 0,
            after_window: Params::of(values).recount == Recount::AfterWindow,
            cwnd: Cell::new(0.0),
            free: Cell::new(u32::MAX),
            resend: None,
            by_timer: false,
            recover: 0,
            recovering: false,
        }
    }

    fn slot(&self, segment: u32) -> Option<Slot> {
        self.window.get(segment.checked_sub(self.seq.acked)? as usize).copied()
    }

    /// Position of a packet after the candidate's, and its segment. Numbers increase by one per packet.
    fn find(&self, packet_number: u32) -> Option<(u32, u32)> {
        let after = packet_number.wrapping_sub(self.sent.front()?.0);
        let &(number, segment) = self.sent.get(after as usize)?;
        (number == packet_number).then_some((after, segment))
    }

    /// Removes packets whose segments have arrived or were retransmitted: the first remaining one is the candidate.
    fn prune(&mut self) {
        while let Some(&(number, segment)) = self.sent.front()
            && self.slot(segment) != Some(Slot::InFlight(number))
        {
            self.sent.pop_front();
        }
    }

    /// Moves the window up to `seq.acked`; returns the number of segments passed that had not been reported.
    fn free(&mut self, newly: u32) -> u32 {
        let known = self.window.len().min(newly as usize);
        let reported = self.window.drain(..known).filter(|slot| *slot == Slot::Received).count() as u32;
        self.received -= reported;
        newly - reported
    }

    /// Records a segment at the receiver; returns 1 if it was not known.
    fn receive(&mut self, segment: u32) -> u32 {
        // The first missing segment cannot have arrived: the receiver had no room for it, or the report is forged.
        if segment <= self.seq.acked {
            return 0;
        }
        match self.window.get_mut((segment - self.seq.acked) as usize) {
            Some(slot @ Slot::InFlight(_)) => {
                *slot = Slot::Received;
                self.received += 1;
                1
            }
            _ => 0,
        }
    }

    fn in_flight(&self) -> u32 {
        self.seq.flight() - self.received
    }

    /// Processes an acknowledgement: the position of its packet after the candidate's and its segment (see
    /// [`find`](Self::find)), and other segments that it reports.
    pub(super) fn take(
        &mut self,
        now: Time,
        cumulative: u32,
        caused_by: Option<(u32, u32)>,
        reported: &[(u32, u32)],
        rtt: Time,
    ) -> Outcome {
        if cumulative > self.seq.highest || cumulative < self.seq.acked {
            return Outcome::default();
        }
        let before = self.in_flight();
        let candidate = self.sent.front().copied();
        let advanced = self.seq.acknowledge(cumulative);
        let duplicate = advanced == 0 && self.seq.is_duplicate(cumulative);
        if advanced == 0 && !duplicate {
            return Outcome::default();
        }
        let mut newly_acked = self.free(advanced);
        for &(first, end) in reported {
            newly_acked += self.within(first, end).map(|segment| self.receive(segment)).sum::<u32>();
        }
        if let Some((_, segment)) = caused_by {
            newly_acked += self.receive(segment);
            self.timers.sample(rtt, &self.seq);
        }
        if advanced > 0 {
            self.timers.acknowledged(now, self.seq.outstanding(), self.seq.acked > self.recover);
            self.recovering &= self.seq.acked < self.recover;
        } else {
            self.timers.duplicate(now);
        }
        self.prune();
        self.resend = self.resend.filter(|&segment| matches!(self.slot(segment), Some(Slot::InFlight(_))));
        let lost = self.count(candidate, caused_by.map(|(after, _)| after));
        let began = lost && !self.recovering;
        if began {
            self.recovering = true;
            self.recover = self.seq.highest;
        }
        Outcome { newly_acked, duplicate, loss: began.then_some(before), ..Outcome::default() }
    }

    /// The first segment that is not acknowledged, if it was sent, and the position of its packet after the
    /// candidate's.
    pub(super) fn first_hole(&self) -> Option<(u32, u32)> {
        self.under_way(self.seq.acked)
    }
    /// Of the segments from `first` to `end` that are not known to have arrived, the last one sent, as `find`.
    pub(super) fn latest(&self, first: u32, end: u32) -> Option<(u32, u32)> {
        self.within(first, end).filter_map(|segment| self.under_way(segment)).max()
    }
    /// The part of a reported range that was sent and is not acknowledged.
    fn within(&self, first: u32, end: u32) -> Range<u32> {
        first.max(self.seq.acked)..end.min(self.seq.next)
    }
    fn under_way(&self, segment: u32) -> Option<(u32, u32)> {
        match self.slot(segment)? {
            Slot::InFlight(number) => Some((number.wrapping_sub(self.sent.front()?.0), segment)),
            Slot::Received => None,
        }
    }
    /// The first segment that is not acknowledged.
    pub(super) fn acked(&self) -> u32 {
        self.seq.acked
    }

    /// Whether the next packet's number is larger than W\[rseqn\] + cwnd, if that is required. A sender that is
    /// stopped by the receiver's window at a gap sends no packet with such a number: for it, all packets that it may
    /// send are enough.
    fn may_count(&self) -> bool {
        let number = |packet: Option<&(u32, u32)>| packet.map_or(0, |packet| packet.0);
        let next = number(self.sent.back()).wrapping_add(1);
        let since = next.wrapping_sub(number(self.sent.front()));
        !self.after_window || since as f64 > self.cwnd.get() || since >= self.free.get()
    }

    /// Counts an acknowledgement caused by a packet `after` the candidate's; returns whether the candidate is lost.
    fn count(&mut self, candidate: Option<(u32, u32)>, after: Option<u32>) -> bool {
        if self.sent.front().copied() != candidate {
            self.dupcount = 0;
        } else if after.is_some_and(|n| n > 0) && self.resend.is_none() && self.may_count() {
            self.dupcount += 1;
        }
        if self.dupcount < self.dupackthreshold {
            return false;
        }
        self.dupcount = 0;
        self.resend = self.sent.front().map(|&(_, segment)| segment);
        self.by_timer = false;
        true
    }
}

impl Recovery for LossMonitorRecovery {
    fn on_sent(&mut self, now: Time, segment: u32, packet_number: u32) {
        if segment == self.seq.next {
            self.seq.sent(segment);
            self.window.push_back(Slot::InFlight(packet_number));
            self.timers.sent(now);
        } else {
            let at = (segment - self.seq.acked) as usize;
            if self.window[at] == Slot::Received {
                self.received -= 1; // an invalid acknowledgement had reported it
            }
            self.window[at] = Slot::InFlight(packet_number);
            self.timers.resent(now, !self.by_timer);
            self.resend = None;
            self.dupcount = 0; // the timer's retransmission also changes the candidate
        }
        self.sent.push_back((packet_number, segment));
        self.prune();
    }

    fn on_ack(&mut self, now: Time, cumulative: u32, packet_number: u32, _sack: &[(u32, u32)], rtt: Time) -> Outcome {
        self.take(now, cumulative, self.find(packet_number), &[], rtt)
    }

    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        let free = if rwnd > 1 { rwnd - 1 } else { rwnd };
        self.cwnd.set(cwnd);
        self.free.set(free);
        if let Some(segment) = self.resend {
            return Next::Resend(segment);
        }
        let window = (cwnd as u32).saturating_add(self.received).min(free);
        if self.seq.flight() < window { Next::New } else { Next::Nothing }
    }

    fn state(&self) -> RecoveryState {
        let state = self.seq.state(self.timers.rto(), self.in_flight(), self.recovering);
        RecoveryState { timer: self.timers.deadline(), ..state }
    }

    fn on_timer(&mut self, now: Time) -> Option<u32> {
        match self.timers.expire(now, self.seq.outstanding())? {
            // After a rollback the gap is the next segment in sequence anyway.
            Expired::Retransmission if self.seq.flight() == 0 => None,
            Expired::Retransmission => {
                self.resend = Some(self.seq.acked);
                self.by_timer = true;
                None
            }
            Expired::Recovery => {
                let flight = self.in_flight();
                self.seq.roll_back();
                self.window.clear();
                self.received = 0;
                self.sent.clear();
                self.dupcount = 0;
                self.resend = None;
                self.recovering = false;
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
        put("inflation", self.received as f64);
        put("dupcount", self.dupcount as f64);
    }
}

#[cfg(test)]
mod tests;
