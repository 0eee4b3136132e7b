//! What Linux 6.18 (`tcp_bbr.c`) adds to the draft: a margin below the bandwidth, whole super-packets, compensation for
//! acknowledgements that arrive in bunches, and the detection of policers (`long_term.rs`).
//!
//! | symbol | name here | unit | value |
//! | --- | --- | --- | --- |
//! | bbr_pacing_margin_percent | [`MARGIN`] | | 1 % |
//! | bw | `maximum` | segments/s | of eleven rounds |
//! | bbr_tso_segs_goal | [`Linux::super_packet`] | segments | a millisecond, 1 below 1.2 Mbit/s, else 2 at least |
//! | extra_acked | `aggregation` | segments | max over 5 to 10 rounds, at most 100 ms of bandwidth |

use self::long_term::LongTerm;
use super::maximum::Maximum;
use super::{BbrSender, CYCLE, HIGH_GAIN, MIN_PIPE, Mode, Repair};
use crate::api::{Ack, Allowance, Loss, LossKind, Probe, Sender, SenderInit, Sent, Undo};
use crate::protocols::common::aggregation::Aggregation;
use crate::protocols::common::delivery::Sample;
use crate::units::Time;
use crate::wire::Packet;

mod long_term;

/// Pacing is this share of the bandwidth.
pub(super) const MARGIN: f64 = 0.99;
const MIN_TSO_RATE: f64 = 1.2e6 / 8.0;
/// Bytes of the longest super-packet.
const MOST_TSO_BYTES: f64 = 65_215.0;
const EXTRA_ROUNDS: u32 = 5;
const MOST_EXTRA_S: f64 = 0.1;

/// BBR with these additions.
pub(super) struct LinuxSender {
    bbr: BbrSender,
    linux: Linux,
}

impl LinuxSender {
    pub(super) fn new(init: &SenderInit<'_>) -> LinuxSender {
        LinuxSender { bbr: BbrSender::new(init), linux: Linux::new(init.packet) }
    }
}

impl Sender for LinuxSender {
    const HAS_TIMER: bool = <BbrSender as Sender>::HAS_TIMER;
    const LIMITS_REPAIR: bool = <BbrSender as Sender>::LIMITS_REPAIR;

    fn allowance(&self) -> Allowance {
        self.bbr.allowance()
    }
    fn on_start(&mut self, now: Time, rtt: Time) {
        self.bbr.on_start(now, rtt);
        self.bbr.pacing *= MARGIN;
    }
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        self.linux.on_send(sent.in_flight);
        self.bbr.on_send(packet, sent);
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.bbr.on_ack_linux(&mut self.linux, ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind != LossKind::Mark {
            self.bbr.on_loss_linux(&mut self.linux, loss);
        }
    }
    /// `bbr_undo_cwnd`: the window stays, and what losses have shown is forgotten.
    fn on_undo(&mut self, undo: &Undo) {
        (self.bbr.full_bandwidth, self.bbr.full_rounds) = (0.0, 0);
        let delivered = self.bbr.delivery.delivered();
        let round = Round { now: undo.now, begins: false, delivered, losses: 0, limited: false };
        self.linux.long_term.reset(&round);
    }
    fn on_idle(&mut self, now: Time, _idle: Time, _timeout: Time) {
        self.bbr.restart(&mut self.linux, now);
    }
    fn probe(&self, put: Probe<'_>) {
        self.bbr.probe(put);
    }
}

impl BbrSender {
    /// The bandwidth that counts.
    fn bandwidth_of(&self, linux: &Linux) -> f64 {
        if linux.long_term.uses { linux.long_term.bandwidth } else { self.bandwidth }
    }
    /// `bbr_inflight`: segments to have in flight at the measured bandwidth.
    fn inflight_of(&self, linux: &Linux, bandwidth: f64, gain: f64, more: f64) -> f64 {
        if self.rtprop == Time::NEVER {
            return linux.budget(self.initial_window + more, self.pacing, false);
        }
        let product = libm::ceil(gain * bandwidth * self.rtprop.as_secs_f64());
        let probes = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        linux.budget(product + more, self.pacing, probes)
    }
    /// `bbr_update_bw`: returns whether the sample begins a round trip.
    fn take_bandwidth(&mut self, linux: &mut Linux, sample: &Sample) -> bool {
        let begins = sample.prior_delivered >= self.round_end;
        if begins {
            self.round_end = self.delivery.delivered();
            self.conserving = false;
            linux.rounds += 1;
        }
        let rate = sample.rate();
        if !sample.limited || rate >= self.bandwidth {
            self.bandwidth = linux.maximum.take(linux.rounds, rate);
        }
        begins
    }
    /// `bbr_set_pacing_rate`.
    fn pace_at(&mut self, bandwidth: f64, gain: f64) {
        let rate = MARGIN * gain * bandwidth;
        if bandwidth > 0.0 && (self.filled || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// `bbr_main`.
    fn on_ack_linux(&mut self, linux: &mut Linux, ack: &Ack<'_>) {
        let before = self.delivery.delivered();
        let least = if self.rtprop == Time::NEVER { Time::ZERO } else { self.rtprop };
        let sample = self.delivery.on_ack(ack, least);
        let delivered = self.delivery.delivered();
        let arrived = delivered - before;
        let losses = linux.losses(ack, arrived);
        let begins = sample.as_ref().is_some_and(|s| self.take_bandwidth(linux, s));
        let limited = sample.is_some_and(|s| s.limited);
        if sample.is_some() {
            let round = Round { now: ack.now, begins, delivered, losses, limited };
            if linux.long_term.sample(&round, self.mode == Mode::ProbeBandwidth) {
                self.enter_probe_bandwidth(ack.now);
            }
            let bandwidth = self.bandwidth_of(linux);
            linux.aggregation.take(ack.now, begins, arrived as u32, bandwidth, self.cwnd, EXTRA_ROUNDS);
        }
        let before = ack.in_flight as f64 + (arrived + losses) as f64;
        if self.mode == Mode::ProbeBandwidth && self.phase_ends(linux, ack.now, before, losses > 0) {
            self.enter_phase((self.phase + 1) % CYCLE.len(), ack.now);
        }
        if !self.filled && begins && !limited {
            self.check_full();
        }
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
        }
        if self.mode == Mode::Drain && ack.in_flight as f64 <= self.inflight_of(linux, self.bandwidth, 1.0, 0.0) {
            self.enter_probe_bandwidth(ack.now);
        }
        self.measure_rtprop(ack, begins, ack.rtt < self.rtprop);
        if self.mode == Mode::ProbeBandwidth && linux.long_term.uses {
            self.pacing_gain = 1.0;
        }
        self.pace_at(self.bandwidth_of(linux), self.pacing_gain);
        self.set_cwnd_linux(linux, ack, arrived as f64, losses as f64);
    }

    /// `bbr_is_next_cycle_phase`, with `in_flight` before this acknowledgement.
    fn phase_ends(&self, linux: &Linux, now: Time, in_flight: f64, lost: bool) -> bool {
        let full = now.since(self.phase_at) > self.rtprop;
        let wanted = |gain| self.inflight_of(linux, self.bandwidth, gain, 0.0);
        match self.pacing_gain {
            gain if gain > 1.0 => full && (lost || in_flight + linux.super_packet(self.pacing) >= wanted(gain)),
            gain if gain < 1.0 => full || in_flight <= wanted(1.0),
            _ => full,
        }
    }

    /// `bbr_set_cwnd`.
    fn set_cwnd_linux(&mut self, linux: &mut Linux, ack: &Ack<'_>, arrived: f64, losses: f64) {
        if arrived > 0.0 {
            self.cwnd = (self.cwnd - losses).max(1.0);
            if linux.timeout_until == Some(u32::MAX) {
                linux.timeout_until = Some(ack.highest_sent);
            }
            let repaired = !ack.recovering && linux.timeout_until.is_none_or(|until| ack.cumulative >= until);
            match self.repair {
                Repair::Begins => {
                    (self.repair, self.conserving) = (Repair::Lasts, true);
                    self.round_end = self.delivery.delivered();
                    self.cwnd = ack.in_flight as f64 + arrived;
                }
                Repair::Lasts if repaired => {
                    (self.repair, self.conserving, linux.timeout_until) = (Repair::None, false, None);
                    self.cwnd = self.cwnd.max(self.prior);
                }
                _ => {}
            }
            if self.conserving {
                self.cwnd = self.cwnd.max(ack.in_flight as f64 + arrived);
            } else {
                let bandwidth = self.bandwidth_of(linux);
                let more = if self.filled { linux.aggregated(bandwidth) } else { 0.0 };
                let target = self.inflight_of(linux, bandwidth, self.cwnd_gain, more);
                if self.filled {
                    self.cwnd = (self.cwnd + arrived).min(target);
                } else if self.cwnd < target || self.delivery.delivered() < 10 {
                    self.cwnd += arrived;
                }
                self.cwnd = self.cwnd.max(MIN_PIPE);
            }
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_PIPE);
        }
    }

    /// `bbr_ssthresh` and `bbr_set_state`.
    fn on_loss_linux(&mut self, linux: &mut Linux, loss: &Loss) {
        self.save();
        if loss.kind == LossKind::Duplicates {
            self.repair = Repair::Begins;
            return;
        }
        (self.repair, self.conserving, self.cwnd) = (Repair::Lasts, false, 1.0);
        self.full_bandwidth = 0.0;
        self.delivery.on_timeout();
        linux.on_timeout();
        let delivered = self.delivery.delivered();
        let round = Round { now: loss.now, begins: true, delivered, losses: 1, limited: false };
        if linux.long_term.sample(&round, self.mode == Mode::ProbeBandwidth) {
            self.enter_probe_bandwidth(loss.now);
        }
    }

    /// `bbr_cwnd_event`: the flow, which the application limited, sends again.
    fn restart(&mut self, linux: &mut Linux, now: Time) {
        self.delivery.limit(0);
        self.idle = true;
        linux.aggregation.begin(now);
        if self.mode == Mode::ProbeBandwidth {
            self.pace_at(self.bandwidth_of(linux), 1.0);
        } else if self.mode == Mode::ProbeRtt && self.probe_done.is_some_and(|done| now > done) {
            self.end_probe_rtt(now);
        }
    }
}

/// What an acknowledgement shows.
pub(super) struct Round {
    pub(super) now: Time,
    /// It begins a round trip.
    pub(super) begins: bool,
    /// Segments delivered in total.
    pub(super) delivered: u64,
    /// Segments newly known to be lost.
    pub(super) losses: u64,
    /// The application was the limit.
    pub(super) limited: bool,
}

pub(super) struct Linux {
    packet: f64,
    /// Segments in flight after the last event.
    in_flight: u32,
    /// Round trips so far, and the maximum of the bandwidth of the last ones.
    rounds: u32,
    maximum: Maximum,
    aggregation: Aggregation,
    long_term: LongTerm,
    /// A timeout is being repaired up to this segment; `u32::MAX` before the first acknowledgement after it.
    pub(super) timeout_until: Option<u32>,
}

impl Linux {
    pub(super) fn new(packet: f64) -> Linux {
        Linux {
            packet,
            in_flight: 0,
            rounds: 0,
            maximum: Maximum::default(),
            aggregation: Aggregation::default(),
            long_term: LongTerm::new(packet),
            timeout_until: None,
        }
    }

    /// A packet leaves, with `in_flight` before it.
    pub(super) fn on_send(&mut self, in_flight: u32) {
        self.in_flight = in_flight.saturating_add(1);
    }
    /// An acknowledgement: segments newly known to be lost. What was in flight either arrived, is in flight, or is lost.
    pub(super) fn losses(&mut self, ack: &Ack<'_>, arrived: u64) -> u64 {
        let losses = (self.in_flight as u64).saturating_sub(arrived + ack.in_flight as u64);
        self.in_flight = ack.in_flight;
        self.long_term.lost += losses;
        losses
    }
    /// The timer expired: all in flight is lost.
    pub(super) fn on_timeout(&mut self) {
        self.long_term.lost += self.in_flight as u64;
        self.in_flight = 0;
        self.timeout_until = Some(u32::MAX);
    }

    /// Segments per super-packet at this pacing rate, segments/s.
    pub(super) fn super_packet(&self, pacing: f64) -> f64 {
        let least = if pacing * self.packet < MIN_TSO_RATE { 1.0 } else { 2.0 };
        let segments = (pacing / 1024.0).min(MOST_TSO_BYTES / self.packet);
        libm::floor(segments).clamp(least, 127.0)
    }
    /// What to have in flight for `target`: three super-packets more, an even number, and two more while it probes.
    pub(super) fn budget(&self, target: f64, pacing: f64, probes: bool) -> f64 {
        let segments = libm::ceil(target) + 3.0 * self.super_packet(pacing);
        2.0 * libm::ceil(segments / 2.0) + if probes { 2.0 } else { 0.0 }
    }

    /// Segments in flight to go on sending between bunches of acknowledgements.
    pub(super) fn aggregated(&self, bandwidth: f64) -> f64 {
        libm::floor(self.aggregation.most().min(bandwidth * MOST_EXTRA_S))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Values;
    use crate::testing;
    use crate::units::Rate;
    use crate::wire::Congestion;

    /// 1500 bytes: 100 segments/s are 1.2 Mbit/s. At 10240 segments/s ten are sent in 1/1024 s; 65215 bytes are 43.
    #[test]
    fn super_packets_by_hand() {
        let l = Linux::new(1500.0);
        assert_eq!([99.0, 100.0, 10240.0, 1e6].map(|rate| l.super_packet(rate)), [1.0, 2.0, 10.0, 43.0]);
        // 20.1 becomes 21, and three times two more are 27: an even number is 28.
        assert_eq!((l.budget(20.1, 1000.0, false), l.budget(20.1, 1000.0, true)), (28.0, 30.0));
    }

    /// 30 segments more than expected, and no more than 100 ms of the bandwidth.
    #[test]
    fn aggregation_counts_for_a_tenth_of_a_second() {
        let mut l = Linux::new(1500.0);
        l.aggregation.take(Time::millis(30), true, 30, 1000.0, 50.0, EXTRA_ROUNDS);
        assert_eq!((l.aggregated(1000.0), l.aggregated(100.0)), (30.0, 10.0));
    }

    /// A model of 100 segments/s over 80 ms, 8 segments, in the steady phase of gain 1.
    fn informed() -> LinuxSender {
        let values = Values::default();
        let init = SenderInit { values: &values, packet: 1500.0, initial_window: 10.0, interface: Rate::mbps(100) };
        let mut s = LinuxSender::new(&init);
        let b = &mut s.bbr;
        (b.bandwidth, b.rtprop, b.filled) = (100.0, Time::millis(80), true);
        s.linux.maximum.take(0, 100.0);
        let b = &mut s.bbr;
        b.enter_probe_bandwidth(Time::secs(1));
        b.enter_phase(3, Time::secs(1));
        (b.rtprop_at, b.pacing, b.cwnd) = (Time::secs(1), 99.0, 20.0);
        s
    }
    fn ack(s: &mut LinuxSender, in_flight: u32, recovering: bool) -> f64 {
        let now = Time::millis(1010);
        let rtt = Time::millis(90);
        s.on_ack(&Ack {
            in_flight,
            recovering,
            selective: true,
            rtt,
            srtt: rtt,
            ..testing::ack(now, &Congestion::NONE)
        });
        s.bbr.cwnd
    }

    /// A round trip as short as the minimum is no new one: ten seconds after the first, whatever came since, it is measured anew.
    #[test]
    fn an_equal_round_trip_does_not_put_off_the_probe() {
        let mut s = informed();
        let mut mode_at = |ms: u64| {
            let (now, rtt) = (Time::millis(ms), Time::millis(80));
            s.on_ack(&Ack { in_flight: 8, rtt, srtt: rtt, ..testing::ack(now, &Congestion::NONE) });
            s.bbr.mode
        };
        assert_eq!([6_000, 11_000].map(&mut mode_at), [Mode::ProbeBandwidth; 2]);
        assert_eq!(mode_at(11_001), Mode::ProbeRtt);
    }

    /// A rate that the application limited is no sample, so nothing in the maximum ages: 100 stays for as many rounds as it lasts.
    #[test]
    fn the_maximum_stays_while_the_application_is_the_limit() {
        let mut s = informed();
        let sample = |limited| Sample { prior_delivered: 0, delivered: 5, interval: Time::millis(100), limited };
        (0..30).for_each(|_| {
            s.bbr.take_bandwidth(&mut s.linux, &sample(true));
        });
        assert_eq!(s.bbr.bandwidth, 100.0);
        s.bbr.take_bandwidth(&mut s.linux, &sample(false));
        assert_eq!(s.bbr.bandwidth, 50.0);
    }

    /// After an idle time pacing is 1 % below the bandwidth, whatever the phase, and an old minimum of the round trip
    /// is replaced without a probe.
    #[test]
    fn after_an_idle_time_it_goes_on_at_its_bandwidth() {
        let mut s = informed();
        s.bbr.pacing = 123.75;
        s.on_idle(Time::secs(12), Time::secs(11), Time::secs(1));
        assert_eq!(s.bbr.pacing, 99.0);
        let (now, rtt) = (Time::secs(12), Time::millis(90));
        s.on_ack(&Ack { in_flight: 0, rtt, srtt: rtt, ..testing::ack(now, &Congestion::NONE) });
        assert_eq!((s.bbr.mode, s.bbr.rtprop), (Mode::ProbeBandwidth, rtt));
    }

    /// 2 * 8 + 3 super-packets of a segment each are 19: an even number is 20. Pacing is 99 segments/s.
    #[test]
    fn the_target_by_hand() {
        let mut s = informed();
        s.linux.in_flight = 12;
        assert_eq!(ack(&mut s, 11, false), 20.0);
        assert_eq!(s.bbr.pacing, 99.0);
    }

    /// Of 20 in flight one arrived and two are lost: 17 + 1 in the first round of the repair. Later three losses take three
    /// away, and one that arrives adds one. The window from before returns with the end of the repair.
    #[test]
    fn a_repair_by_hand() {
        let mut s = informed();
        s.linux.in_flight = 20;
        s.on_loss(&testing::loss(Time::millis(1010), LossKind::Duplicates, 20));
        assert_eq!(ack(&mut s, 17, true), 18.0);
        s.bbr.conserving = false;
        s.linux.in_flight = 17;
        assert_eq!(ack(&mut s, 13, true), 18.0 - 3.0 + 1.0);
        assert_eq!((s.linux.long_term.lost, ack(&mut s, 12, false)), (5, 20.0));
    }

    /// A timeout leaves one segment; the window returns when all that had left is acknowledged.
    #[test]
    fn a_timeout_by_hand() {
        let mut s = informed();
        s.linux.in_flight = 20;
        s.on_loss(&testing::loss(Time::millis(1010), LossKind::Timeout, 20));
        assert_eq!((s.bbr.cwnd, s.linux.long_term.lost), (1.0, 20));
        // Segment 1 of 2 is acknowledged.
        assert_eq!(ack(&mut s, 0, false), 4.0);
        let all = Ack { cumulative: 2, selective: true, ..testing::ack(Time::millis(1100), &Congestion::NONE) };
        s.on_ack(&all);
        assert_eq!(s.bbr.cwnd, 20.0);
    }
}
