//! BBR, version 3: BBR that also limits what is in flight where more of it was lost.
//!
//! Source: N. Cardwell, I. Swett, J. Beshay (editors), "BBR Congestion Control", draft-ietf-ccwg-bbr-06, July 2026,
//! whose sections are cited here; Linux (google/bbr, branch v3) where the draft is silent.
//!
//! As version 1 ([`bbr`](super::bbr)) it models the path by its bandwidth and its least round-trip time, and paces at the
//! first. It differs in what losses mean. A flow that probes, and loses more than 2 % of what was in flight, remembers
//! that volume (`inflight_longterm`), and stays 15 % below it until it probes again. Losses at other times bound rate
//! and volume for a while (`bw_shortterm`, `inflight_shortterm`). It probes every two to three seconds, or as seldom as
//! Reno would lose a packet on the same path, so that Reno and CUBIC can live beside it. It measures the round trip
//! with half of the product in flight, not with four packets, every five seconds.
//!
//! A cycle has four phases: DOWN at 0.9 of the bandwidth until the queue is gone, CRUISE at the bandwidth until it is
//! time to probe, REFILL at the bandwidth for a round trip, without the short-term bounds, and UP at 1.25 until the
//! bandwidth grows no more, or too much is lost.
//!
//! | symbol | field | unit | value | section |
//! | --- | --- | --- | --- | --- |
//! | C.cwnd, C.pacing_rate | `cwnd`, `pacing` | segments, segments/s | | 5.6 |
//! | BBR.max_bw, BBR.bw | `max_bw`, `bw` | segments/s | max over two cycles; the lesser of max_bw and bw_shortterm | 5.5.2, 5.5.10.3 |
//! | BBR.bw_shortterm, BBR.inflight_shortterm | `congestion` | segments/s, segments | | 5.5.10.3 |
//! | BBR.inflight_longterm | `inflight_longterm` | segments | | 5.5.10.2 |
//! | BBR.bw_latest, BBR.inflight_latest | `congestion` | segments/s, segments | max over a round | 5.5.10.3 |
//! | BBR.min_rtt | `rtt.min` | time | min over 10 s | 5.3.4.3 |
//! | BBR.probe_rtt_min_delay | `rtt.recent` | time | min over 5 s | 5.3.4.3 |
//! | BBR.extra_acked | `aggregation` | segments | max over rounds | 5.5.9 |
//! | BBR.LossThresh | `loss_threshold` | 1 | 2 % | 2.8 |
//! | BBR.Beta | `beta` | 1 | 0.7 | 2.8 |
//! | BBR.Headroom | `headroom` | 1 | 0.15 | 2.8 |
//! | BBR.MinPipeCwnd | `MIN_PIPE` | segments | 4 | 2.8 |
//! | BBR.StartupPacingGain | `STARTUP_GAIN` | 1 | 4 ln 2 | 2.5 |
//! | BBR.PacingMarginPercent | `MARGIN` | 1 | 1 % less | 2.5 |
//! | BBR.full_bw, BBR.full_bw_count | `full` | segments/s, rounds | 1.25, 3 rounds | 5.3.1.2 |
//! | P.tx_in_flight, P.lost, C.lost | `Note`, `Flight` | segments | | 4.1.2 |
//! | C.is_cwnd_limited | `filled` | | in this round or the last | 2.2 |
//! | T_bbr, T_reno | `cycle.wait`, `cycle.rounds` | s, rounds | 2 to 3 s; the product, at most 62 or 63 | 5.3.3.8.2 |
//!
//! | phase | pacing_gain | cwnd_gain | bounds |
//! | --- | --- | --- | --- |
//! | Startup | 2.77 | 2 | |
//! | Drain | 0.5 | 2 | short term |
//! | DOWN | 0.9 | 2 | short term, inflight_longterm |
//! | CRUISE | 1 | 2 | short term, 0.85 inflight_longterm |
//! | REFILL | 1 | 2 | inflight_longterm |
//! | UP | 1.25 | 2.25 | inflight_longterm |
//! | ProbeRTT | 1 | 0.5 | short term, 0.85 inflight_longterm |
//!
//! Where the draft contradicts itself: the gains and bounds of a phase are those of the table in section 5.6.1; the
//! pseudo-code leaves some of them out. There is one exception: inflight_longterm does not bound Drain, as in the
//! pseudo-code (section 5.6.4.7) and in Linux. `Inflight(BBR.max_bw, 1.0)` of section 5.3.3.9 uses max_bw; other calls
//! use bw. The product that limits the number of rounds between two probes is in segments.
//!
//! Deviations:
//! 1. ECN is left out. The draft specifies no response to marks (section 3.7), so packets should not be ECN-capable; a
//!    mark changes nothing.
//! 2. Segments count, not bytes, and inflight_longterm is a whole number of them: fractions could never be in flight.
//! 3. The number in flight shows how many packets are lost, but not which ones. The controller takes those that left
//!    first among the packets that an acknowledgement of a later packet has skipped (`flight.rs`). If none was skipped,
//!    as after a timeout, it takes the packet that arrived last. Losses that a timer finds count with the next
//!    acknowledgement. A tail loss probe that repeats a packet counts as one loss.
//! 4. Without reports of every arrival (Tahoe, Reno, NewReno) an episode of losses counts as one loss, as in the draft
//!    without SACK.
//! 5. An acknowledgement that shows losses counts as one of the six ranges that end Startup (section 5.3.1.3), as in
//!    Linux.
//! 6. The state for an undo is saved when an episode begins (section 5.5.11.1). The pseudo-code saves it at the first
//!    loss of every round, and ending UP begins a round: a second lost packet would overwrite what the first has saved.
//! 7. "C.inflight >= BBR.inflight_longterm" (section 5.3.3.9, IsTimeToGoDown) is what was in flight before the
//!    acknowledgement, as in Linux: after it less is in flight than the window, which is inflight_longterm.
//! 8. max_bw is the larger of two numbers: the maximum of this cycle, and that of the cycle before. A cycle without a
//!    sample does not count. `extra_acked` is the maximum of the last 5 to 10 rounds, in Startup of the last 1 to 2, as
//!    in Linux. The draft takes the last 10, and 1 in Startup.
//! 9. The first minimum of the round trip is that of data, not of the SYN, which is shorter.
//! 10. Samples shorter than the least round trip count: packets have numbers, so none is ambiguous (section 4.1.3.5).
//! 11. A timeout bounds the volume by the window before the timeout (inflight_shortterm), as in Linux. By section
//!     5.5.10.3 alone the bound would be the window after it, one segment.
//! 12. A quantum is a packet unless the flow sends in bursts (`bursts = "linux"`, which `stack = "linux"` sets): then
//!     what it sends in a millisecond (section 5.6.3).
//! 13. Draws come from a generator that is seeded with the time, so runs are repeatable.

use alloc::boxed::Box;

use self::congestion::Congestion;
use self::flight::{Flight, Note};
use self::probe_bw::Cycle;
use self::probe_rtt::RoundTrip;
use crate::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Sent, Undo};
use crate::endpoint::{self, Bursts};
use crate::params::{Fraction, Info, Seconds, parameters};
use crate::protocols::common::aggregation::Aggregation;
use crate::protocols::common::delivery::DeliveryRate;
use crate::protocols::common::float::{greater, lesser};
use crate::units::{Rate, Time};
use crate::wire::Packet;

mod congestion;
mod control;
mod flight;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

/// BBR, version 3.
pub struct Bbr3;

const STARTUP_GAIN: f64 = 4.0 * core::f64::consts::LN_2;
const MIN_PIPE: f64 = 4.0;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Share of what is in flight that may be lost in a round trip while the flow probes for bandwidth.
        loss_threshold: Fraction = 0.02, in 0.0..=1.0, "bbr-06 2.8";
        /// What a round trip with losses leaves of rate and volume at least.
        beta: Fraction = 0.7, in 0.0..=1.0, "bbr-06 2.8";
        /// Share of the volume that lost too much which the flow leaves free while it does not probe.
        headroom: Fraction = 0.15, in 0.0..=1.0, "bbr-06 2.8";
        /// Least time between two probes for bandwidth on long paths; up to a second more is drawn.
        probe_wait: Seconds = 2.0, in 0.0..=1e4, "bbr-06 5.3.3.8.2";
        /// Time after which the least round-trip time is measured again.
        probe_rtt_interval: Seconds = 5.0, in 0.1..=1e4, "bbr-06 2.16.2";
        /// Time with half of the product in flight, in which the empty path is measured.
        probe_rtt: Seconds = 0.2, in 1e-3..=10.0, "bbr-06 2.16.2";
        /// Time for which the least round-trip time counts.
        min_rtt_window: Seconds = 10.0, in 0.1..=1e4, "bbr-06 2.16.1";
    }
}

impl Protocol for Bbr3 {
    const INFO: Info = Info {
        name: "bbr3",
        summary: "BBR v3: BBR that bounds rate and data in flight where it loses more than 2 %, and probes seldom beside TCP",
        source: "Cardwell, Swett, Beshay, bbr-06",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(Bbr3Sender::new(init))
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// IsInAProbeBWState().
    fn probes_bandwidth(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }
}

/// RS, what an acknowledgement shows (section 2.3).
#[derive(Clone, Copy, Default)]
struct Shown {
    now: Time,
    /// RS.newly_acked and RS.newly_lost, segments.
    arrived: u32,
    newly_lost: u32,
    /// RS.delivery_rate, segments/s; zero without a sample.
    rate: f64,
    /// RS.delivered, segments, and RS.prior_delivered, negative without a sample.
    delivered: f64,
    prior_delivered: i64,
    /// RS.is_app_limited.
    limited: bool,
    /// RS.tx_in_flight, segments: zero if the packet is not known; RS.lost.
    tx_in_flight: f64,
    lost: f64,
    /// C.inflight now and before the acknowledgement.
    in_flight: f64,
    before: f64,
    /// A loss is being repaired.
    recovering: bool,
}

/// Detection of a full pipe (section 5.3.1.2).
#[derive(Clone, Copy, Default)]
struct Full {
    /// BBR.full_bw, segments/s, and BBR.full_bw_count.
    bandwidth: f64,
    count: u32,
    /// BBR.full_bw_now and BBR.full_bw_reached.
    now: bool,
    reached: bool,
}

struct Bbr3Sender {
    params: Params,
    /// Bytes.
    packet: f64,
    initial_window: f64,
    bursts: bool,
    delivery: DeliveryRate<Note>,
    flight: Flight,
    /// C.has_selective_acks.
    selective: bool,
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Segments, segments/s.
    cwnd: f64,
    pacing: f64,
    // The model.
    max_bw: f64,
    /// The maxima of the previous cycle and of this one.
    best: [f64; 2],
    bw: f64,
    inflight_longterm: f64,
    rtt: RoundTrip,
    aggregation: Aggregation,
    congestion: Congestion,
    // Rounds.
    round: u32,
    /// The round trip ends with the packet that leaves after this number of delivered segments.
    round_end: u64,
    round_start: bool,
    /// Whether the window was full at a time of the last round, and of this one.
    filled: [bool; 2],
    full: Full,
    drain_round: u32,
    cycle: Cycle,
    idle_restart: bool,
    // Repair.
    prior: f64,
    recovers: bool,
    /// After a timeout the repair lasts until this segment is acknowledged; `u32::MAX` before the first
    /// acknowledgement.
    repaired_at: u32,
}

impl Bbr3Sender {
    fn new(init: &SenderInit<'_>) -> Bbr3Sender {
        let params = Params::of(init.values);
        Bbr3Sender {
            params,
            packet: init.packet,
            initial_window: init.initial_window,
            bursts: endpoint::Params::of(init.values).bursts == Bursts::Linux,
            delivery: DeliveryRate::default(),
            flight: Flight::default(),
            selective: false,
            state: State::Startup,
            pacing_gain: STARTUP_GAIN,
            cwnd_gain: 2.0,
            cwnd: init.initial_window,
            pacing: STARTUP_GAIN * init.initial_window / 1e-3,
            max_bw: 0.0,
            best: [0.0; 2],
            bw: 0.0,
            inflight_longterm: f64::INFINITY,
            rtt: RoundTrip::new(&params),
            aggregation: Aggregation::default(),
            congestion: Congestion::default(),
            round: 0,
            round_end: 0,
            round_start: false,
            filled: [false; 2],
            full: Full::default(),
            drain_round: 0,
            cycle: Cycle::default(),
            idle_restart: false,
            prior: 0.0,
            recovers: false,
            repaired_at: 0,
        }
    }

    /// Gains are those of the table in section 5.6.1.
    fn enter(&mut self, state: State) {
        self.state = state;
        (self.pacing_gain, self.cwnd_gain) = match state {
            State::Startup => (STARTUP_GAIN, 2.0),
            State::Drain => (0.5, 2.0),
            State::Down => (0.9, 2.0),
            State::Cruise | State::Refill => (1.0, 2.0),
            State::Up => (1.25, 2.25),
            State::ProbeRtt => (1.0, 0.5),
        };
    }

    /// Counts what an acknowledgement shows.
    fn take(&mut self, ack: &Ack<'_>) -> Shown {
        self.selective = ack.selective;
        let in_flight = ack.in_flight as f64;
        let (now, recovering) = (ack.now, ack.recovering);
        let mut shown = Shown { now, in_flight, recovering, prior_delivered: -1, ..Shown::default() };
        let (before, mut overtaken) = (self.delivery.delivered(), 0);
        let echoed = self.delivery.on_ack_noted(ack, Time::ZERO, |note, others| {
            overtaken += 1;
            self.flight.overtake(ack, note, others);
        });
        if let Some((note, sample)) = echoed {
            self.flight.pass(ack, Some(note), overtaken);
            shown.tx_in_flight = note.in_flight as f64;
            if let Some(sample) = sample {
                (shown.rate, shown.limited) = (sample.rate(), sample.limited);
                (shown.delivered, shown.prior_delivered) = (sample.delivered as f64, sample.prior_delivered as i64);
            }
        } else {
            self.flight.pass(ack, None, 0);
        }
        shown.arrived = (self.delivery.delivered() - before) as u32;
        shown.newly_lost = self.flight.losses(ack, shown.arrived);
        shown.before = in_flight + shown.arrived as f64 + shown.newly_lost as f64;
        if shown.newly_lost > 0 {
            self.lose(shown.newly_lost, ack.now);
        }
        if shown.tx_in_flight > 0.0 {
            shown.lost = self.flight.lost_since_newest();
        }
        shown
    }

    /// StartRound() and UpdateRound() (section 5.5.1).
    fn start_round(&mut self) {
        self.round_end = self.delivery.delivered();
    }
    fn update_round(&mut self, shown: &Shown) {
        self.round_start = shown.prior_delivered >= self.round_end as i64;
        if self.round_start {
            self.start_round();
            self.round += 1;
            self.cycle.rounds += 1;
            self.filled = [self.filled[1], false];
        }
    }

    /// UpdateMaxBw() (section 5.5.5).
    fn update_max_bw(&mut self, shown: &Shown) {
        self.update_round(shown);
        if shown.rate > 0.0 && (shown.rate >= self.max_bw || !shown.limited) && shown.rate > self.best[1] {
            self.best[1] = shown.rate;
            self.max_bw = greater(self.best[0], shown.rate);
        }
    }
    /// AdvanceMaxBwFilter() (section 5.5.6). A cycle without a sample leaves the maximum as it is.
    fn advance_max_bw(&mut self) {
        if self.best[1] > 0.0 {
            self.best = [self.best[1], 0.0];
            self.max_bw = self.best[0];
        }
    }
}

impl Sender for Bbr3Sender {
    const HAS_TIMER: bool = false;
    /// Its bounds of rate and volume are the response (section 5.6.4.4).
    const LIMITS_REPAIR: bool = true;

    fn allowance(&self) -> Allowance {
        let rate = self.pacing.max(1.0) * self.packet;
        Allowance { cwnd: self.cwnd, pacing: Some(Rate::from_bytes_per_sec(rate)) }
    }

    fn on_start(&mut self, now: Time, rtt: Time) {
        self.pacing = STARTUP_GAIN * self.initial_window / rtt.as_secs_f64().max(1e-6);
        self.rtt.begin(now);
        self.aggregation.begin(now);
    }

    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        let note = self.flight.on_send(sent, self.delivery.limited());
        self.filled[1] |= note.in_flight as f64 + 1.0 > self.cwnd;
        self.delivery.on_send_noted(packet.transport.packet_number(), sent, note);
    }

    /// UpdateOnACK() (section 5.2.3).
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let shown = self.take(ack);
        self.follow_repair(ack);
        self.update_latest_delivery_signals(&shown);
        self.update_congestion_signals(&shown);
        let rounds = if self.full.reached { 5 } else { 1 };
        self.aggregation.take(ack.now, self.round_start, shown.arrived, self.bw, self.cwnd, rounds);
        if self.round_start {
            self.check_full(&shown);
        }
        self.check_startup_done(&shown);
        self.check_drain_done(&shown);
        self.update_cycle(&shown);
        self.update_min_rtt(ack.now, ack.rtt);
        self.check_probe_rtt(&shown, ack.in_flight);
        self.advance_latest_delivery_signals(&shown);
        self.bw = lesser(self.max_bw, self.congestion.bw_shortterm);
        self.set_pacing(self.pacing_gain);
        self.set_cwnd(&shown);
    }

    /// OnEnterFastRecovery() and OnEnterRTO() (section 5.6.4.4).
    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind == LossKind::Mark {
            return;
        }
        if !loss.repeated {
            self.save_upon_loss();
        }
        self.recovers = true;
        match loss.kind {
            LossKind::Timeout => {
                let lost = self.flight.on_timeout();
                self.delivery.on_timeout();
                self.lose(lost, loss.now);
                self.bound_before_timeout();
                (self.cwnd, self.repaired_at) = (1.0, u32::MAX);
            }
            _ => self.flight.on_episode(),
        }
    }

    fn on_undo(&mut self, _undo: &Undo) {
        self.undo();
    }

    /// HandleRestartFromIdle() (section 5.4.1). That nothing was outstanding means that the application was the limit.
    fn on_idle(&mut self, now: Time, _idle: Time, _timeout: Time) {
        self.delivery.limit(0);
        self.idle_restart = true;
        self.aggregation.begin(now);
        if self.state.probes_bandwidth() {
            self.set_pacing(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    fn probe(&self, put: Probe<'_>) {
        let mode = match self.state {
            State::Startup => 0.0,
            State::Drain => 1.0,
            State::ProbeRtt => 3.0,
            _ => 2.0,
        };
        put("cwnd", self.cwnd);
        put("pacing_bps", 8.0 * self.packet * self.pacing);
        put("pacing_gain", self.pacing_gain);
        put("bandwidth_bps", 8.0 * self.packet * self.max_bw);
        put("bw_shortterm_bps", 8.0 * self.packet * self.congestion.bw_shortterm);
        put("inflight_longterm", self.inflight_longterm);
        put("inflight_shortterm", self.congestion.inflight_shortterm);
        put("rtprop_ms", if self.rtt.min == Time::NEVER { 0.0 } else { self.rtt.min.to_millis() });
        put("mode", mode);
    }
}
