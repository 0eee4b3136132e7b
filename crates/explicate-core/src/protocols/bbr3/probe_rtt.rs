//! The least round-trip time, and the phase that measures it (section 5.3.4).

use super::probe_bw::AckPhase;
use super::{Bbr3Sender, Params, Shown, State};
use crate::units::Time;

/// The least round-trip times.
pub(super) struct RoundTrip {
    /// BBR.MinRTTFilterLen, BBR.ProbeRTTInterval, BBR.ProbeRTTDuration.
    window: Time,
    interval: Time,
    duration: Time,
    /// BBR.min_rtt, in seconds, zero while unknown; BBR.min_rtt_stamp.
    pub(super) min: Time,
    pub(super) min_s: f64,
    pub(super) min_at: Time,
    /// BBR.probe_rtt_min_delay and BBR.probe_rtt_min_stamp.
    pub(super) recent: Time,
    pub(super) recent_at: Time,
    /// BBR.probe_rtt_expired.
    expired: bool,
    /// BBR.probe_rtt_done_stamp and BBR.probe_rtt_round_done.
    done: Option<Time>,
    round_done: bool,
}

impl RoundTrip {
    pub(super) fn new(params: &Params) -> RoundTrip {
        RoundTrip {
            window: Time::from_secs_f64(params.min_rtt_window),
            interval: Time::from_secs_f64(params.probe_rtt_interval),
            duration: Time::from_secs_f64(params.probe_rtt),
            min: Time::NEVER,
            min_s: 0.0,
            min_at: Time::ZERO,
            recent: Time::NEVER,
            recent_at: Time::ZERO,
            expired: false,
            done: None,
            round_done: false,
        }
    }
    /// The flow begins.
    pub(super) fn begin(&mut self, now: Time) {
        (self.min_at, self.recent_at) = (now, now);
    }
}

impl Bbr3Sender {
    /// UpdateMinRTT().
    pub(super) fn update_min_rtt(&mut self, now: Time, rtt: Time) {
        let own = &mut self.rtt;
        own.expired = now > own.recent_at + own.interval;
        if rtt < own.recent || own.expired {
            (own.recent, own.recent_at) = (rtt, now);
        }
        if own.recent < own.min || now > own.min_at + own.window {
            (own.min, own.min_at) = (own.recent, own.recent_at);
            own.min_s = own.min.as_secs_f64();
        }
    }

    /// CheckProbeRTT().
    pub(super) fn check_probe_rtt(&mut self, shown: &Shown, in_flight: u32) {
        if self.rtt.expired && self.state != State::ProbeRtt && !self.idle_restart {
            self.enter(State::ProbeRtt);
            self.save_cwnd();
            self.rtt.done = None;
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.delivery.limit(in_flight); // half of the product does not measure the bandwidth
            self.handle_probe_rtt(shown);
        }
        if shown.delivered > 0.0 {
            self.idle_restart = false;
        }
    }
    /// HandleProbeRTT().
    fn handle_probe_rtt(&mut self, shown: &Shown) {
        if self.rtt.done.is_some() {
            self.rtt.round_done |= self.round_start;
            if self.rtt.round_done {
                self.check_probe_rtt_done(shown.now);
            }
        } else if shown.in_flight <= self.probe_rtt_cwnd() {
            self.rtt.done = Some(shown.now + self.rtt.duration);
            self.rtt.round_done = false;
            self.start_round();
        }
    }
    /// CheckProbeRTTDone() and ExitProbeRTT().
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.rtt.recent_at = now;
        self.restore_cwnd();
        self.congestion.reset_short_term();
        if self.full.reached {
            self.start_down(now);
            self.enter(State::Cruise);
        } else {
            self.enter(State::Startup);
        }
    }
}
