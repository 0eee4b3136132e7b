//! BBR, version 1 (N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, "BBR: Congestion-Based Congestion Control",
//! ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-congestion-control-00).
//!
//! BBR models the path by two numbers: its delivery rate (the maximum over ten round trips) and its least round-trip
//! time (the minimum over ten seconds). It paces at the first and keeps about their product in flight. Both cannot be
//! measured at once, so it probes alternately: in one round trip of eight it sends a quarter faster, then a quarter
//! slower to drain the queue. If no lower round-trip time was measured for ten seconds, it limits the packets in
//! flight to four for a moment. At the start it doubles its rate until the delivery rate stops growing. Losses and
//! marks do not enter the model.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | BtlBw | `bandwidth` | segments/s | max over 10 rounds | draft section 4.1.1 |
//! | RTprop | `rtprop` | time | min over 10 s | section 4.1.2 |
//! | BBRHighGain | `HIGH_GAIN` | | 2 / ln 2 | section 4.3.2 |
//! | pacing_gain | `pacing_gain` | | 1.25, 0.75, 1 x 6 | section 4.3.4 |
//! | cwnd_gain | `cwnd_gain` | | 2 | section 4.2.3.2 |
//! | BBRMinPipeCwnd | `MIN_PIPE` | segments | 4 | section 4.2.3.1 |
//! | ProbeRTTDuration | `probe_rtt` | s | 0.2 | section 4.3.5 |
//! | full_bw, full_bw_count | `full_bandwidth`, `full_rounds` | | 1.25, 3 rounds | section 4.3.2.2 |
//! | prior_cwnd | `prior` | segments | | section 4.2.3.4 |
//!
//! Deviations:
//! 1. The first phase of the cycle is drawn from a generator that is seeded with the time, so runs are repeatable.
//! 2. The three quanta of aggregation on top of the product (section 4.2.3.2) are three segments: packets are sent singly here.
//! 3. After a timeout the window starts from one segment and grows by the segments that arrive; it is not restored
//!    when the repair ends. The same holds for recoveries that go back to the first gap instead of repairing it.
//! 4. BBR relies on a recovery that detects the loss of a retransmission (RACK); RFC 6675 waits for the timer. This
//!    matters where several flows overload a short buffer, since losses do not slow BBR down: timeouts, and many
//!    retransmissions.
//! 5. The round trip of connection set-up is not used for RTprop: its packets are shorter than data packets.
//!
//! `variant = "linux"` is what Linux 6.18 does. Apart from deviations 1 and 5 those above are the draft's:
//!
//! | | `draft` | `linux` |
//! | --- | --- | --- |
//! | pacing | gain times bandwidth | 1 % less |
//! | on top of the product | three segments | three super-packets, and what arrived in a bunch (`extra_acked`) |
//! | samples of the bandwidth | all | over the least round-trip time at least |
//! | two intervals with a fifth lost and like rates | nothing | a policer: its rate counts for 48 rounds |
//! | each loss in a repair | nothing | one segment less, then slow start to the target |
//! | after a timeout | slow start to the target | the same, and the window is restored when it is repaired |
//! | after an idle time | the measured bandwidth | the same, and PROBE_RTT may be over |
//! | maximum of the bandwidth | of ten rounds | of eleven, kept by three samples; it does not age while the application is the limit |
//! | a round trip as short as the minimum | counts as a new minimum | does not, so PROBE_RTT comes every ten seconds |
//!
//! Deviations from Linux:
//! 1. The first minimum of the round trip is that of data. The kernel's is the SYN's (`bbr_init`).
//! 2. What is in flight counts as it is now. The kernel estimates it for the time when the next packet may leave
//!    (`bbr_packets_in_net_at_edt`).
//! 3. The acknowledgement of a single segment that was delayed counts as a round trip like others. The kernel does not let it end an
//!    old minimum (`is_ack_delayed`).
//! 4. Losses that the timer for reordering finds count with the next acknowledgement. The kernel counts them for the policer only.
//! 5. After a timeout packets are not conserved, as in the kernel, but the window begins at one segment even if some are in flight.
//!    The first acknowledgement makes it four at least, in both.

use alloc::boxed::Box;

use crate::api::{Ack, Allowance, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Sent};
use crate::params::{Info, Number, Seconds, choices, parameters};
use crate::protocols::common::delivery::{DeliveryRate, Sample};
use crate::protocols::common::float::{greater, lesser, seconds};
use crate::rng::Rng;
use crate::units::{Rate, Time};
use crate::wire::Packet;

mod linux;
mod maximum;

/// BBR.
pub struct Bbr;

const HIGH_GAIN: f64 = 2.0 / core::f64::consts::LN_2;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const MIN_PIPE: f64 = 4.0;
/// Round trips over which the maximum bandwidth is taken.
const ROUNDS: usize = 10;

choices! {
    /// Which BBR, version 1.
    enum Variant { Draft = "draft", Linux = "linux" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// The draft, or what Linux does.
        variant: Variant = Variant::Draft, "bbr-00; Linux 6.18, tcp_bbr.c";
        /// Window divided by the product of bandwidth and least round-trip time.
        cwnd_gain: Number = 2.0, in 1.0..=100.0, "bbr-00 4.2.3.2";
        /// Time after which the least round-trip time is measured again.
        rtprop_window: Seconds = 10.0, in 0.1..=1e4, "bbr-00 4.1.2";
        /// Time with four packets in flight, in which the empty path is measured.
        probe_rtt: Seconds = 0.2, in 1e-3..=10.0, "bbr-00 4.3.5";
    }
}

impl Protocol for Bbr {
    const INFO: Info = Info {
        name: "bbr",
        summary: "BBR v1: paces at the measured bottleneck bandwidth, with about one bandwidth-delay product in flight",
        source: "Cardwell et al., ACM Queue 2016; bbr-00",
        params: Params::PARAMS,
    };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        match Params::of(init.values).variant {
            Variant::Draft => Box::new(BbrSender::new(init)),
            Variant::Linux => Box::new(linux::LinuxSender::new(init)),
        }
    }
}

/// State of a repair.
#[derive(Clone, Copy, PartialEq)]
enum Repair {
    None,
    /// A loss was detected; the acknowledgement that revealed it also shows whether the recovery begins an episode.
    Begins,
    Lasts,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

struct BbrSender {
    /// Bytes.
    packet: f64,
    initial_window: f64,
    steady_gain: f64,
    rtprop_window: Time,
    probe_rtt: Time,
    delivery: DeliveryRate,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    cwnd: f64,
    /// Segments/s.
    pacing: f64,
    // The model.
    bandwidth: f64,
    best: [f64; ROUNDS],
    round: usize,
    /// The round trip ends with the packet that leaves after this number of delivered segments.
    round_end: u64,
    rtprop: Time,
    rtprop_at: Time,
    // Detection of a full pipe.
    full_bandwidth: f64,
    full_rounds: u32,
    filled: bool,
    // The gain cycle.
    phase: usize,
    phase_at: Time,
    lost: bool,
    // Probing for the round trip.
    idle: bool,
    probe_done: Option<Time>,
    probe_round: bool,
    // Repair.
    prior: f64,
    repair: Repair,
    /// The first round of a repair: one segment is sent for each that leaves.
    conserving: bool,
}

impl BbrSender {
    fn new(init: &SenderInit<'_>) -> BbrSender {
        let params = Params::of(init.values);
        BbrSender {
            packet: init.packet,
            initial_window: init.initial_window,
            steady_gain: params.cwnd_gain,
            rtprop_window: Time::from_secs_f64(params.rtprop_window),
            probe_rtt: Time::from_secs_f64(params.probe_rtt),
            delivery: DeliveryRate::default(),
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            cwnd: init.initial_window,
            pacing: HIGH_GAIN * init.initial_window / 1e-3,
            bandwidth: 0.0,
            best: [0.0; ROUNDS],
            round: 0,
            round_end: 0,
            rtprop: Time::NEVER,
            rtprop_at: Time::ZERO,
            full_bandwidth: 0.0,
            full_rounds: 0,
            filled: false,
            phase: 0,
            phase_at: Time::ZERO,
            lost: false,
            idle: false,
            probe_done: None,
            probe_round: false,
            prior: 0.0,
            repair: Repair::None,
            conserving: false,
        }
    }

    /// Segments to have in flight: `gain` bandwidth-delay products and a little more (section 4.2.3.2).
    fn inflight(&self, gain: f64) -> f64 {
        if self.rtprop == Time::NEVER || self.bandwidth == 0.0 {
            return self.initial_window;
        }
        gain * self.bandwidth * seconds(self.rtprop) + 3.0
    }

    /// Sections 4.1.1.3 and 4.1.1.5; returns whether a round trip ends.
    fn update_bandwidth(&mut self, sample: &Sample) -> bool {
        let ends = sample.prior_delivered >= self.round_end;
        if ends {
            self.round_end = self.delivery.delivered();
            self.round = (self.round + 1) % ROUNDS;
            self.best[self.round] = 0.0;
            self.conserving = false;
        }
        let rate = sample.rate();
        if !sample.limited || rate >= self.bandwidth {
            self.best[self.round] = greater(self.best[self.round], rate);
        }
        if ends {
            self.bandwidth = self.best.iter().fold(0.0, |a, b| a.max(*b));
        } else {
            self.bandwidth = greater(self.bandwidth, self.best[self.round]);
        }
        ends
    }

    /// Section 4.3.4.4: a phase lasts one least round-trip time; the faster one until its queue exists, the slower
    /// one until it has drained.
    fn advance_phase(&mut self, now: Time, in_flight_before: f64) {
        let full = now.since(self.phase_at) > self.rtprop;
        let next = match CYCLE[self.phase] {
            gain if gain > 1.0 => full && (self.lost || in_flight_before >= self.inflight(gain)),
            gain if gain < 1.0 => full || in_flight_before <= self.inflight(1.0),
            _ => full,
        };
        if next {
            self.enter_phase((self.phase + 1) % CYCLE.len(), now);
        }
    }
    fn enter_phase(&mut self, phase: usize, now: Time) {
        (self.phase, self.phase_at, self.lost) = (phase, now, false);
        self.pacing_gain = CYCLE[phase];
    }

    fn enter_probe_bandwidth(&mut self, now: Time) {
        self.mode = Mode::ProbeBandwidth;
        self.cwnd_gain = self.steady_gain;
        // Any phase but the slower one.
        let drawn = Rng::stream(now.0, "phase").next_u64() % 7;
        self.enter_phase((CYCLE.len() - drawn as usize) % CYCLE.len(), now);
    }

    /// Section 4.3.2.2: three round trips without an increase by a quarter.
    fn check_full(&mut self) {
        if self.bandwidth >= 1.25 * self.full_bandwidth {
            (self.full_bandwidth, self.full_rounds) = (self.bandwidth, 0);
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= 3;
    }

    /// Sections 4.1.2.3 and 4.3.5.
    fn update_rtprop(&mut self, ack: &Ack<'_>, round_ends: bool) {
        self.measure_rtprop(ack, round_ends, ack.rtt <= self.rtprop);
    }
    /// The same, given whether the round trip of `ack` is a new minimum.
    fn measure_rtprop(&mut self, ack: &Ack<'_>, round_ends: bool, least: bool) {
        let expired = ack.now.since(self.rtprop_at) > self.rtprop_window;
        if least || expired {
            (self.rtprop, self.rtprop_at) = (ack.rtt, ack.now);
        }
        if expired && !self.idle && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            (self.pacing_gain, self.cwnd_gain) = (1.0, 1.0);
            self.save();
            self.probe_done = None;
        }
        self.idle = false;
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.delivery.limit(ack.in_flight); // four packets do not measure the bandwidth
        let Some(done) = self.probe_done else {
            if ack.in_flight as f64 <= MIN_PIPE {
                self.probe_done = Some(ack.now + self.probe_rtt);
                self.probe_round = false;
                self.round_end = self.delivery.delivered();
            }
            return;
        };
        self.probe_round |= round_ends;
        if self.probe_round && ack.now > done {
            self.end_probe_rtt(ack.now);
        }
    }
    fn end_probe_rtt(&mut self, now: Time) {
        self.rtprop_at = now;
        self.cwnd = self.cwnd.max(self.prior);
        if self.filled {
            self.enter_probe_bandwidth(now);
        } else {
            self.mode = Mode::Startup;
            (self.pacing_gain, self.cwnd_gain) = (HIGH_GAIN, HIGH_GAIN);
        }
    }

    /// Saves the window from before the loss (section 4.2.3.4), or the larger one from before what has reduced it since.
    fn save(&mut self) {
        let disturbed = self.repair != Repair::None || self.mode == Mode::ProbeRtt;
        self.prior = if disturbed { self.prior.max(self.cwnd) } else { self.cwnd };
    }

    /// Section 4.2.3.
    fn set_cwnd(&mut self, ack: &Ack<'_>, arrived: f64) {
        match self.repair {
            Repair::Begins if ack.recovering => self.repair = Repair::Lasts,
            Repair::Begins => (self.repair, self.conserving) = (Repair::None, false),
            Repair::Lasts if !ack.recovering => {
                (self.repair, self.conserving) = (Repair::None, false);
                self.cwnd = self.cwnd.max(self.prior);
            }
            _ => {}
        }
        if self.conserving {
            self.cwnd = greater(self.cwnd, ack.in_flight as f64 + arrived);
        } else {
            let target = self.inflight(self.cwnd_gain);
            if self.filled {
                self.cwnd = lesser(self.cwnd + arrived, target);
            } else if self.cwnd < target || (self.delivery.delivered() as f64) < self.initial_window {
                self.cwnd += arrived;
            }
            self.cwnd = self.cwnd.max(MIN_PIPE);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_PIPE);
        }
    }
}

impl Sender for BbrSender {
    /// Packet conservation, and slow start after a round trip (section 4.2.3.4).
    const LIMITS_REPAIR: bool = true;

    fn allowance(&self) -> Allowance {
        let rate = self.pacing.max(1.0) * self.packet;
        Allowance { cwnd: self.cwnd, pacing: Some(Rate::from_bytes_per_sec(rate)) }
    }

    fn on_start(&mut self, now: Time, rtt: Time) {
        self.pacing = HIGH_GAIN * self.initial_window / rtt.as_secs_f64().max(1e-6);
        self.rtprop_at = now;
    }

    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        self.delivery.on_send(packet.transport.packet_number(), sent);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let before = self.delivery.delivered();
        let sample = self.delivery.on_ack(ack, Time::ZERO);
        let arrived = (self.delivery.delivered() - before) as f64;
        let round_ends = sample.as_ref().is_some_and(|s| self.update_bandwidth(s));
        if self.mode == Mode::ProbeBandwidth {
            self.advance_phase(ack.now, ack.in_flight as f64 + arrived);
        }
        if !self.filled && round_ends && !sample.is_some_and(|s| s.limited) {
            self.check_full();
        }
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
            self.pacing_gain = 1.0 / HIGH_GAIN;
        }
        if self.mode == Mode::Drain && ack.in_flight as f64 <= self.inflight(1.0) {
            self.enter_probe_bandwidth(ack.now);
        }
        self.update_rtprop(ack, round_ends);
        let rate = self.pacing_gain * self.bandwidth;
        if self.bandwidth > 0.0 && (self.filled || rate > self.pacing) {
            self.pacing = rate;
        }
        self.set_cwnd(ack, arrived);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind == LossKind::Mark {
            return;
        }
        self.lost = true;
        self.save();
        if loss.kind == LossKind::Timeout {
            self.delivery.on_timeout();
        }
        self.cwnd = 1.0; // after a loss by duplicates the window is what the acknowledgement has left in flight
        self.conserving = loss.kind == LossKind::Duplicates;
        self.repair = if self.conserving { Repair::Begins } else { Repair::None };
        self.round_end = self.delivery.delivered();
    }

    /// BBRHandleRestartFromIdle(). That nothing was outstanding means that the application was the limit.
    fn on_idle(&mut self, _now: Time, _idle: Time, _timeout: Time) {
        self.delivery.limit(0);
        self.idle = true;
        if self.mode == Mode::ProbeBandwidth {
            self.pacing = self.bandwidth;
        }
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("pacing_bps", 8.0 * self.packet * self.pacing);
        put("pacing_gain", self.pacing_gain);
        put("bandwidth_bps", 8.0 * self.packet * self.bandwidth);
        put("rtprop_ms", if self.rtprop == Time::NEVER { 0.0 } else { self.rtprop.to_millis() });
        put("mode", self.mode as u8 as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Values;
    use crate::testing;
    use crate::wire::{Congestion, Format};

    fn sender() -> BbrSender {
        let values = Values::default();
        let init = SenderInit { values: &values, packet: 1500.0, initial_window: 10.0, interface: Rate::mbps(100) };
        BbrSender::new(&init)
    }

    /// A model of 100 segments/s over 80 ms: 8 segments.
    fn informed() -> BbrSender {
        let mut s = sender();
        (s.bandwidth, s.rtprop, s.filled) = (100.0, Time::millis(80), true);
        s.enter_probe_bandwidth(Time::ZERO);
        s
    }

    fn answered(now: Time, in_flight: u32, rtt: Time, check: impl FnOnce(&Ack<'_>)) {
        let header = Congestion::new(Format::MINIMAL);
        check(&Ack { in_flight, rtt, ..testing::ack(now, &header) });
    }

    /// Section 4.2.1.3: the initial window in a round trip, times 2 / ln 2 = 2.88539; 100 ms and packets of 1500 bytes.
    #[test]
    fn it_starts_at_the_high_gain() {
        let mut s = sender();
        s.on_start(Time::ZERO, Time::millis(100));
        let Allowance { cwnd, pacing } = s.allowance();
        assert_eq!((cwnd, pacing.expect("it paces").0 / 1000), (10.0, 3462));
    }

    /// Section 4.3.2.2: 124 is less than a quarter more than 100; 125 is that, 156 no quarter more than 125.
    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut s = sender();
        for (bandwidth, filled) in [(100.0, 0), (124.0, 0), (125.0, 0), (130.0, 0), (140.0, 0), (156.0, 1)] {
            s.bandwidth = bandwidth;
            s.check_full();
            assert_eq!(s.filled as u8, filled, "{bandwidth}");
        }
    }

    /// Section 4.2.3.2: gain x 100/s x 80 ms, and three segments; the initial window while nothing is known.
    #[test]
    fn the_window_is_a_gain_times_the_product() {
        assert_eq!(sender().inflight(2.0), 10.0);
        let s = informed();
        assert_eq!([s.inflight(1.0), s.inflight(1.25), s.inflight(2.0)], [11.0, 13.0, 19.0]);
    }

    /// Section 4.1.1.5: a rate counts for ten rounds. One that the application limited counts only if it is higher.
    #[test]
    fn the_bandwidth_is_the_maximum_of_ten_rounds() {
        let mut s = sender();
        let mut round = |delivered: u32, limited: bool| {
            let sample = Sample { prior_delivered: 0, delivered, interval: Time::secs(1), limited };
            s.update_bandwidth(&sample);
            s.bandwidth
        };
        assert_eq!([round(200, false), round(50, true)], [200.0, 200.0]);
        let rounds = [(); 9].map(|()| round(100, false));
        assert_eq!((rounds[7], rounds[8]), (200.0, 100.0));
        assert_eq!(round(300, true), 300.0);
    }

    /// Section 4.3.4.4: the fast phase lasts until its 13 segments are in flight, the slow one until 11 are left; others 80 ms.
    #[test]
    fn phases_end_by_what_is_in_flight() {
        let mut s = informed();
        let mut after = |phase: usize, ms: u64, in_flight: f64| {
            s.enter_phase(phase, Time::ZERO);
            s.advance_phase(Time::millis(ms), in_flight);
            (s.phase, s.pacing_gain)
        };
        assert_eq!(after(0, 80, 20.0), (0, 1.25), "not before a round trip is over");
        assert_eq!(after(0, 81, 12.0), (0, 1.25), "not before the path is full");
        assert_eq!(after(0, 81, 13.0), (1, 0.75));
        assert_eq!(after(1, 10, 12.0), (1, 0.75));
        assert_eq!(after(1, 10, 11.0), (2, 1.0));
        assert_eq!(after(1, 81, 12.0), (2, 1.0), "a round trip at most");
        assert_eq!([after(7, 80, 11.0), after(7, 81, 11.0)], [(7, 1.0), (0, 1.25)]);
    }

    /// Section 4.3.5: without a round trip as short for ten seconds, four segments for 200 ms, and then the window as it was.
    #[test]
    fn an_old_round_trip_is_measured_anew() {
        let mut s = informed();
        s.cwnd = 19.0;
        answered(Time::secs(10), 18, Time::millis(90), |ack| s.update_rtprop(ack, false));
        assert_eq!((s.mode, s.rtprop), (Mode::ProbeBandwidth, Time::millis(80)));
        answered(Time::millis(10_001), 18, Time::millis(90), |ack| {
            s.update_rtprop(ack, false);
            s.set_cwnd(ack, 1.0);
        });
        assert_eq!((s.mode, s.rtprop, s.cwnd), (Mode::ProbeRtt, Time::millis(90), 4.0));
        for (ms, in_flight, mode) in [
            (10_050, 5, Mode::ProbeRtt),
            (10_100, 4, Mode::ProbeRtt),
            (10_300, 4, Mode::ProbeRtt),
            (10_301, 4, Mode::ProbeBandwidth),
        ] {
            answered(Time::millis(ms), in_flight, Time::millis(90), |ack| s.update_rtprop(ack, true));
            assert_eq!(s.mode, mode, "at {ms} ms");
        }
        assert_eq!(s.cwnd, 19.0);
    }

    /// After an idle time a flow sends at its bandwidth, and does not limit itself to four segments to measure the
    /// round trip: silence has emptied the path.
    #[test]
    fn after_an_idle_time_it_goes_on_at_its_bandwidth() {
        let mut s = informed();
        s.pacing = 75.0;
        s.on_idle(Time::secs(11), Time::secs(11), Time::secs(1));
        assert_eq!(s.pacing, 100.0);
        assert!(s.delivery.limited(), "what comes first measures the application");
        answered(Time::secs(11), 0, Time::millis(90), |ack| s.update_rtprop(ack, false));
        assert_eq!((s.mode, s.rtprop, s.idle), (Mode::ProbeBandwidth, Time::millis(90), false));
    }

    /// Section 4.2.3.4: a loss while the window goes down to four segments does not save those four.
    #[test]
    fn a_loss_while_the_round_trip_is_measured_saves_nothing_less() {
        let mut s = informed();
        s.cwnd = 19.0;
        answered(Time::millis(10_001), 18, Time::millis(90), |ack| {
            s.update_rtprop(ack, false);
            s.set_cwnd(ack, 1.0);
        });
        assert_eq!((s.mode, s.cwnd), (Mode::ProbeRtt, 4.0));
        s.on_loss(&testing::loss(Time::millis(10_002), LossKind::Duplicates, 18));
        assert_eq!(s.prior, 19.0);
    }

    /// Section 4.2.3.4: for a round, what leaves may be replaced; when the repair ends, the window is what it was.
    #[test]
    fn a_repair_conserves_packets_and_gives_the_window_back() {
        let mut s = informed();
        s.cwnd = 19.0;
        s.on_loss(&testing::loss(Time::secs(1), LossKind::Mark, 19));
        assert_eq!(s.cwnd, 19.0, "marks do not count");
        s.on_loss(&testing::loss(Time::secs(1), LossKind::Duplicates, 19));
        answered(Time::secs(1), 15, Time::millis(80), |ack| {
            s.set_cwnd(&Ack { recovering: true, ..*ack }, 2.0);
        });
        assert_eq!(s.cwnd, 17.0);
        answered(Time::secs(2), 10, Time::millis(80), |ack| s.set_cwnd(ack, 1.0));
        assert_eq!(s.cwnd, 19.0);
    }
}
