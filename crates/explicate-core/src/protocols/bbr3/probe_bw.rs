//! The cycle that probes for bandwidth: DOWN, CRUISE, REFILL, UP (section 5.3.3).

use super::{Bbr3Sender, Shown, State};
use crate::protocols::common::float::greater;
use crate::rng::Rng;
use crate::units::Time;

/// Most round trips between two probes.
const MOST_ROUNDS: f64 = 63.0;
/// Doublings of the growth of inflight_longterm at most.
const MOST_DOUBLINGS: u32 = 30;

/// BBR.ack_phase: what the acknowledgements that arrive are of.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The present cycle.
#[derive(Default)]
pub(super) struct Cycle {
    /// BBR.cycle_stamp and BBR.bw_probe_wait.
    pub(super) since: Time,
    pub(super) wait: Time,
    /// BBR.rounds_since_probe_up.
    pub(super) rounds: u32,
    pub(super) ack_phase: AckPhase,
    /// BBR.is_bw_probe_sample.
    pub(super) is_sample: bool,
    /// BBR.prev_probe_too_high and BBR.prev_probe_precautionary.
    pub(super) too_high: bool,
    pub(super) precautionary: bool,
    /// BBR.bw_probe_up_rounds; BBR.bw_probe_up_acked and BBR.probe_up_acked_per_inc, segments.
    up_rounds: u32,
    up_acked: f64,
    acked_per_segment: f64,
}

impl Bbr3Sender {
    /// StartProbeBW_DOWN() and PickProbeWait().
    pub(super) fn start_down(&mut self, now: Time) {
        self.congestion.reset_signals();
        let mut draws = Rng::stream(now.0, "probe");
        self.cycle.rounds = (draws.next_u64() % 2) as u32;
        self.cycle.wait = Time::from_secs_f64(self.params.probe_wait + draws.uniform());
        self.cycle.since = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.enter(State::Down);
    }
    /// StartProbeBW_REFILL().
    pub(super) fn start_refill(&mut self) {
        self.congestion.reset_short_term();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0.0);
        self.cycle.precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.enter(State::Refill);
    }
    /// StartProbeBW_UP().
    pub(super) fn start_up(&mut self, shown: &Shown) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full(shown.rate);
        self.enter(State::Up);
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase().
    pub(super) fn update_cycle(&mut self, shown: &Shown) {
        if !self.full.reached || self.adapt_long_term(shown) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(shown.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(shown) => self.enter(State::Cruise),
            State::Refill if self.round_start => {
                self.cycle.is_sample = true;
                self.start_up(shown);
            }
            State::Up if self.is_time_to_go_down(shown) => {
                self.cycle.too_high = false;
                self.start_down(shown.now);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW(): after `wait`, or after as many rounds as Reno has between two losses on such a path.
    fn is_time_to_probe(&self, now: Time) -> bool {
        now > self.cycle.since + self.cycle.wait || self.cycle.rounds as f64 >= self.target_inflight().min(MOST_ROUNDS)
    }
    /// IsTimeToCruise().
    fn is_time_to_cruise(&self, shown: &Shown) -> bool {
        shown.in_flight <= self.inflight_with_headroom() && shown.in_flight <= self.inflight(self.max_bw, 1.0)
    }
    /// IsTimeToGoDown().
    fn is_time_to_go_down(&mut self, shown: &Shown) -> bool {
        if self.cycle.too_high && shown.before >= self.inflight_longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if self.is_limited_by_longterm() {
            self.reset_full(shown.rate);
            return false;
        }
        self.full.now
    }
    /// The window is full, and inflight_longterm bounds it.
    fn is_limited_by_longterm(&self) -> bool {
        self.cwnd >= self.inflight_longterm && (self.filled[0] || self.filled[1])
    }

    /// AdaptLongTermModel(): whether it decided a transition.
    fn adapt_long_term(&mut self, shown: &Shown) -> bool {
        if self.round_start {
            let phase = self.cycle.ack_phase;
            match phase {
                AckPhase::ProbeStarting => self.cycle.ack_phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping if self.end_feedback(shown) => return true,
                _ => {}
            }
        }
        if self.inflight_longterm == f64::INFINITY || self.is_inflight_too_high(shown.tx_in_flight, shown.lost) {
            return false;
        }
        self.inflight_longterm = greater(self.inflight_longterm, shown.tx_in_flight);
        if self.state == State::Up {
            self.probe_longterm_upward(shown);
        }
        false
    }
    /// A round after UP all its acknowledgements have arrived. A probe that ended early, out of caution, and lost
    /// nothing goes on: returns whether it does.
    fn end_feedback(&mut self, shown: &Shown) -> bool {
        self.cycle.is_sample = false;
        self.cycle.ack_phase = AckPhase::Init;
        if !self.state.probes_bandwidth() {
            return false;
        }
        if !shown.limited {
            self.advance_max_bw();
        }
        let goes_on = self.cycle.precautionary && !self.cycle.too_high;
        if goes_on {
            self.start_refill();
        }
        goes_on
    }

    /// RaiseInflightLongtermSlope(): twice as many segments in the next round.
    fn raise_slope(&mut self) {
        let segments = (1u32 << self.cycle.up_rounds) as f64;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MOST_DOUBLINGS);
        self.cycle.acked_per_segment = (self.cwnd / segments).max(1.0);
    }
    /// ProbeInflightLongtermUpward().
    pub(super) fn probe_longterm_upward(&mut self, shown: &Shown) {
        if !self.is_limited_by_longterm() {
            return;
        }
        self.cycle.up_acked += shown.arrived as f64;
        if self.cycle.up_acked >= self.cycle.acked_per_segment {
            let more = libm::floor(self.cycle.up_acked / self.cycle.acked_per_segment);
            self.cycle.up_acked -= more * self.cycle.acked_per_segment;
            self.inflight_longterm += more;
        }
        if self.round_start {
            self.raise_slope();
        }
    }
}
