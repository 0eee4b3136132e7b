//! The retransmission timer (RFC 6298) and the sequence space of every recovery.

use core::num::NonZeroU64;

use crate::api::{Probe, measured_ms};
use crate::params::Values;
use crate::recovery::common::loss_free::LossFree;
use crate::recovery::common::rtt::Spread;
use crate::recovery::{BackoffUntil, Common, RecoveryState};
use crate::units::Time;

/// A smaller maximum is not RFC 6298's but the user's, and limits every timeout, ns.
const LEAST_MAXIMUM: u64 = 60_000_000_000;

/// Round-trip estimate and retransmission timer, integer nanoseconds.
pub struct Rto {
    srtt: u64,
    /// Its RTTVAR is the initial timeout before the first sample.
    spread: Spread,
    deadline: Time,
    min: NonZeroU64,
    max: u64,
    /// Expiries since new data were acknowledged.
    in_a_row: u16,
    /// How often the timeout is doubled.
    backoffs: u8,
    /// The first acknowledgement of new data does not end back-off; one of a segment that was sent once does.
    keeps_backoff: bool,
}

impl Rto {
    /// A timer with the common parameters.
    pub fn new(values: &Values) -> Rto {
        let common = Common::of(values);
        let nanoseconds = |seconds: f64| Time::from_secs_f64(seconds).0;
        let tick = nanoseconds(common.clock()) as u32;
        Rto {
            srtt: 0,
            spread: Spread::new(common.rto, tick, nanoseconds(common.initial_rto)),
            deadline: Time::NEVER,
            min: NonZeroU64::new(nanoseconds(common.least_rto())).unwrap_or(NonZeroU64::MIN),
            max: nanoseconds(common.most_rto()),
            in_a_row: 0,
            backoffs: 0,
            keeps_backoff: common.backoff_until == BackoffUntil::FreshSegment,
        }
    }
    /// Takes a sample, measured by the flow in ticks of its clock, after the acknowledgement that brought it. Samples come from time
    /// stamps, so Karn's rule for them (RFC 6298 section 3) is not needed.
    #[inline]
    pub fn sample(&mut self, rtt: Time, seq: &Sequence) {
        if self.srtt == 0 || self.spread.counts(seq.acked) {
            self.srtt = self.spread.take(self.srtt, rtt.0.max(1), (seq.acked, seq.highest), self.min.get());
        }
    }
    /// The timeout now, with back-off.
    pub fn timeout(&self) -> Time {
        let base = match self.srtt {
            0 => self.spread.rttvar,
            srtt => self.spread.timeout(srtt).max(self.min.get()),
        };
        Time(base.saturating_mul(1 << self.backoffs).min(self.longest(base)))
    }
    /// The maximum, if `base` is the timeout without back-off. RFC 6298 (2.5) allows one of 60 s or more, for back-off: a longer
    /// timeout that was measured is that of a longer path, where a shorter one would always expire too early.
    fn longest(&self, base: u64) -> u64 {
        if self.max >= LEAST_MAXIMUM { self.max.max(base) } else { self.max }
    }
    /// The fields that a flow needs to run the timer by itself, once there is a sample and no back-off.
    fn check_out(&self) -> Option<LossFree> {
        let ready = self.srtt > 0 && self.backoffs == 0;
        ready.then_some(LossFree { spread: self.spread, min: self.min, max: self.longest(u64::MAX), follows: false })
    }
    /// Takes it back.
    fn check_in(&mut self, loss_free: &LossFree, srtt: Time, deadline: Time) {
        (self.srtt, self.spread, self.deadline) = (srtt.0, loss_free.spread, deadline);
    }
    /// A flow that has the counters starts or stops the timer.
    #[inline]
    pub fn follow(&mut self, deadline: Time) {
        self.deadline = deadline;
    }
    /// Starts the timer over (5.1, 5.3).
    #[inline]
    pub fn restart(&mut self, now: Time) {
        self.deadline = now + self.timeout();
    }
    /// Starts the timer if it is not running (5.1).
    #[inline]
    pub fn start(&mut self, now: Time) {
        if self.deadline == Time::NEVER {
            self.restart(now);
        }
    }
    /// New data were acknowledged: the timer restarts, or stops if nothing is outstanding (5.2, 5.3). Back-off ends
    /// with the next measurement (section 5, after 5.7), which with time stamps is every acknowledgement of new data.
    /// Without them it is only an acknowledgement of a segment that was sent once: `backoff_until` may require that,
    /// and `fresh` states that the acknowledged segment was first sent after the last timeout.
    #[inline]
    pub fn acknowledged(&mut self, now: Time, outstanding: bool, fresh: bool) {
        self.in_a_row = 0;
        if fresh || !self.keeps_backoff {
            self.backoffs = 0;
        }
        if outstanding {
            self.restart(now);
        } else {
            self.deadline = Time::NEVER;
        }
    }
    /// The timer expired: doubles the timeout and starts over (5.5, 5.6).
    pub fn expired(&mut self, now: Time) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.backoffs = (self.backoffs + 1).min(16);
        self.restart(now);
    }
    /// Stops the timer.
    pub fn stop(&mut self) {
        self.deadline = Time::NEVER;
    }
    /// When it expires.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }
    /// SRTT; zero while unknown.
    #[inline]
    pub fn srtt(&self) -> Time {
        Time(self.srtt)
    }
    /// Timeouts since the last acknowledgement of new data.
    pub fn backoffs(&self) -> u32 {
        self.in_a_row as u32
    }
    /// Reports its variables.
    pub fn probe(&self, put: Probe<'_>) {
        put("srtt_ms", measured_ms(self.srtt()));
        put("rto_ms", self.timeout().to_millis());
    }
}

/// State of a flow: `acked <= next <= highest`, in segments.
#[derive(Clone, Copy, Default)]
pub struct Sequence {
    /// All segments below are acknowledged (`lack` + 1 in paper D).
    pub acked: u32,
    /// The next segment in sequence; below `highest` after a rollback.
    pub next: u32,
    /// One past the highest segment ever sent.
    pub highest: u32,
}

impl Sequence {
    /// Processes a cumulative acknowledgement; returns the number of newly covered segments, or zero for one that
    /// covers data that were never sent.
    #[inline]
    pub fn acknowledge(&mut self, cumulative: u32) -> u32 {
        if cumulative <= self.acked || cumulative > self.highest {
            return 0;
        }
        let newly = cumulative - self.acked;
        self.acked = cumulative;
        self.next = self.next.max(cumulative);
        newly
    }
    /// A segment left.
    #[inline]
    pub fn sent(&mut self, segment: u32) {
        if segment == self.next {
            self.next += 1;
            self.highest = self.highest.max(self.next);
        }
    }
    /// Whether sent data is unacknowledged.
    #[inline]
    pub fn outstanding(&self) -> bool {
        self.highest > self.acked
    }
    /// Segments sent in sequence and not acknowledged.
    #[inline]
    pub fn flight(&self) -> u32 {
        self.next - self.acked
    }
    /// Whether this acknowledgement repeats the last one while data is outstanding.
    #[inline]
    pub fn is_duplicate(&self, cumulative: u32) -> bool {
        cumulative == self.acked && self.outstanding()
    }
    /// The values that drivers request.
    #[inline]
    pub fn state(&self, rto: &Rto, in_flight: u32, recovering: bool) -> RecoveryState {
        RecoveryState {
            acked: self.acked,
            next: self.next,
            highest: self.highest,
            in_flight,
            recovering,
            srtt: rto.srtt(),
            timer: rto.deadline(),
        }
    }
    /// The result of [`crate::recovery::Recovery::check_out`] if all outstanding data are in flight and nothing is to
    /// be retransmitted.
    pub fn check_out(&self, rto: &Rto) -> Option<LossFree> {
        if self.next == self.highest { rto.check_out() } else { None }
    }
    /// Takes back sequence and timer.
    pub fn check_in(&mut self, rto: &mut Rto, loss_free: &LossFree, at: &RecoveryState) {
        *self = Sequence { acked: at.acked, next: at.next, highest: at.highest };
        rto.check_in(loss_free, at.srtt, at.timer);
    }
    /// Goes back to the first unacknowledged segment (after a timeout).
    pub fn roll_back(&mut self) {
        self.next = self.acked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::AnyRecovery;
    use crate::recovery::{Next, RECOVERIES, RtoRule};
    use crate::testing;
    use alloc::boxed::Box;

    /// RFC 6298's rule for one segment in flight, with a minimum of 200 ms.
    fn rfc6298(more: &[(&str, f64)]) -> Values {
        let given = [("rto", RtoRule::Rfc6298 as u8 as f64), ("min_rto", 0.2)];
        testing::values(&[Common::PARAMS], &[&given, more].concat())
    }
    /// ns-2's rule, and its sample of round trip `number`.
    fn ns2() -> Rto {
        Rto::new(&testing::values(&[Common::PARAMS], &[("rto", RtoRule::Ns2 as u8 as f64)]))
    }
    fn sample(rto: &mut Rto, number: u32, rtt: Time) {
        rto.sample(rtt, &Sequence { acked: number, next: number, highest: number });
    }

    #[test]
    fn rfc6298_arithmetic() {
        let mut rto = Rto::new(&rfc6298(&[]));
        assert_eq!(rto.timeout(), Time::secs(1));
        rto.sample(Time::millis(100), &Sequence::default());
        // First sample: SRTT = R, RTTVAR = R/2, RTO = R + 4 R/2.
        assert_eq!((rto.srtt(), rto.timeout()), (Time::millis(100), Time::millis(300)));
        rto.sample(Time::millis(180), &Sequence::default());
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110; RTO = 110 + 4 * 57.5.
        assert_eq!((rto.srtt(), rto.timeout()), (Time::millis(110), Time::millis(340)));
        rto.expired(Time::ZERO);
        assert_eq!(rto.deadline(), Time::millis(680));
        rto.acknowledged(Time::secs(1), true, false);
        assert_eq!(rto.deadline(), Time::millis(1340));
    }

    /// RTO 300 ms, doubled twice. New data that a timeout had sent again is acknowledged: the row of expiries ends, the timeout
    /// stays at 1.2 s, and doubles from there, until a segment is acknowledged that was sent once.
    #[test]
    fn back_off_may_outlast_what_was_sent_again() {
        let values = testing::values(&[Common::PARAMS], &[("backoff_until", 1.0)]);
        let mut rto = Rto::new(&values);
        rto.sample(Time::millis(100), &Sequence::default());
        rto.expired(Time::ZERO);
        rto.expired(Time::ZERO);
        assert_eq!((rto.timeout(), rto.backoffs()), (Time::millis(1200), 2));
        rto.acknowledged(Time::secs(1), true, false);
        assert_eq!((rto.deadline(), rto.backoffs()), (Time::millis(2200), 0));
        rto.expired(Time::ZERO);
        assert_eq!((rto.timeout(), rto.backoffs()), (Time::millis(2400), 1));
        rto.acknowledged(Time::secs(1), true, true);
        assert_eq!(rto.deadline(), Time::millis(1300));
        let checked_out = Sequence::default().check_out(&rto);
        rto.expired(Time::ZERO);
        rto.acknowledged(Time::secs(1), true, false);
        assert!(
            checked_out.is_some() && Sequence::default().check_out(&rto).is_none(),
            "the flow keeps no timer that backs off"
        );
    }

    /// Every recovery: four segments time out and are retransmitted. The first is acknowledged, and only later a segment
    /// that was sent once.
    #[test]
    fn every_recovery_knows_what_was_sent_once() {
        for kind in RECOVERIES.iter().filter(|kind| kind.reliable()) {
            let timeouts = |backoff_until: f64| {
                let values = testing::values(&[Common::PARAMS], &[("backoff_until", backoff_until)]);
                let mut r = kind.build(&values);
                r.on_rtt(Time::millis(100));
                let mut packets = 0;
                let mut send = |r: &mut Box<AnyRecovery>, now: Time, window: f64| {
                    loop {
                        let segment = match r.next(window, 100) {
                            Next::New => r.state().next,
                            Next::Resend(segment) => segment,
                            Next::Nothing => return packets,
                        };
                        r.on_sent(now, segment, packets);
                        packets += 1;
                    }
                };
                send(&mut r, Time::ZERO, 4.0);
                let late = r.state().timer;
                assert_eq!(r.on_timer(late), Some(4), "{}", kind.name());
                [1, 4, 5].map(|cumulative| {
                    let last = send(&mut r, late, 4.0) - 1;
                    r.on_ack(late, cumulative, last, &[], Time::millis(100));
                    testing::probed(|put| r.probe(put), "rto_ms")
                })
            };
            let (new, fresh) = (timeouts(0.0), timeouts(1.0));
            assert_eq!(fresh, [2.0 * new[0], 2.0 * new[1], new[2]], "{}", kind.name());
        }
    }

    /// 1200 s there and back: three times that at first, and never less than the path takes. Back-off ends at the maximum, which
    /// the measured timeout exceeds. A maximum of less than 60 s holds.
    #[test]
    fn a_path_longer_than_the_maximum_has_time() {
        let mut rto = Rto::new(&rfc6298(&[]));
        rto.sample(Time::secs(1200), &Sequence::default());
        assert_eq!(rto.timeout(), Time::secs(3600));
        (0..200).for_each(|_| rto.sample(Time::secs(1200), &Sequence::default()));
        assert!(rto.timeout() >= Time::secs(1200) && rto.timeout() < Time::secs(1201));
        let measured = rto.timeout();
        assert_eq!(rto.check_out().map(|lent| lent.max), Some(u64::MAX));
        rto.expired(Time::ZERO);
        assert_eq!(rto.timeout(), measured);
        let mut rto = Rto::new(&rfc6298(&[]));
        rto.sample(Time::secs(10), &Sequence::default());
        (0..5).for_each(|_| rto.expired(Time::ZERO));
        assert_eq!(rto.timeout(), Time::secs(60));
        let mut rto = Rto::new(&rfc6298(&[("max_rto", 5.0)]));
        rto.sample(Time::secs(10), &Sequence::default());
        assert_eq!((rto.timeout(), rto.check_out().map(|lent| lent.max)), (Time::secs(5), Some(5_000_000_000)));
    }

    #[test]
    fn clock_ticks_and_minimum() {
        let mut rto = ns2();
        sample(&mut rto, 1, Time::millis(20));
        assert_eq!(rto.timeout(), Time::millis(200), "the default minimum");
        (2..100).for_each(|number| sample(&mut rto, number, Time::millis(300)));
        // Integers leave three quarters of a tick of RTTVAR: four times that is more than G.
        assert_eq!((rto.timeout() - rto.srtt()), Time::millis(30));
    }

    /// By hand, in eighths and quarters of a tick: (8, 2) after a tick, (8 + 2 - 1, 2 + 1 - 0) after two more, and so on.
    #[test]
    fn clocks_that_tick_smooth_in_integers() {
        let (mut rto, mut number) = (ns2(), 0);
        let mut after = |ticks: u64| {
            number += 1;
            sample(&mut rto, number, Time::millis(10 * ticks));
            (rto.srtt / 1_250_000, rto.spread.rttvar / 2_500_000)
        };
        assert_eq!(after(1), (8, 2));
        assert_eq!([after(2), after(1), after(2)], [(9, 3), (9, 3), (10, 4)]);
        // One tick in two, and three in four, are one: SRTT climbs to the edge of two and stays there, not at the mean.
        (0..20).for_each(|_| {
            after(2);
        });
        assert_eq!([after(1), after(2), after(1), after(1), after(1)].map(|(srtt, _)| srtt), [15, 16, 15, 15, 15]);
    }

    /// The floor and the maximum of each rule, and the clock that it assumes; what a scenario sets wins.
    #[test]
    fn every_rule_has_its_constants() {
        let of = |rule: RtoRule, more: &[(&str, f64)]| {
            let given = [&[("rto", rule as u8 as f64)], more].concat();
            let mut rto = Rto::new(&testing::values(&[Common::PARAMS], &given));
            assert_eq!(rto.timeout(), Time::secs(1), "before the first sample");
            (0..200).for_each(|_| rto.sample(Time::millis(20), &Sequence { acked: 1, next: 2, highest: 2 }));
            let least = rto.timeout();
            (0..20).for_each(|_| rto.expired(Time::ZERO));
            (least, rto.timeout(), rto.spread.tick)
        };
        assert_eq!(of(RtoRule::Linux, &[]), (Time::millis(220), Time::secs(120), 0));
        assert_eq!(of(RtoRule::Rfc6298, &[]), (Time::millis(1000), Time::secs(60), 0));
        assert_eq!(of(RtoRule::Ns2, &[]), (Time::millis(200), Time::secs(60), 10_000_000));
        assert_eq!(of(RtoRule::Ns2Timestamps, &[]), of(RtoRule::Ns2, &[]));
        assert_eq!(of(RtoRule::Linux, &[("min_rto", 0.1), ("max_rto", 9.0)]), (Time::millis(120), Time::secs(9), 0));
        assert_eq!(of(RtoRule::Rfc6298, &[("min_rto", 0.3)]), (Time::millis(300), Time::secs(60), 0));
        assert_eq!(of(RtoRule::Ns2, &[("min_rto", 1.0), ("clock_tick", 0.0)]), (Time::millis(1000), Time::secs(60), 0));
    }
}
