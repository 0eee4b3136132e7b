//! The retransmission timer (RFC 6298) and the sequence space that every recovery keeps.

use core::num::NonZeroU64;

use crate::params::Values;
use crate::protocol::{Probe, RecoveryState};
use crate::recovery::COMMON;
use crate::recovery::steady::Steady;
use crate::units::Time;

/// Round-trip estimate and retransmission timer (RFC 6298), integer nanoseconds.
pub struct Rto {
    srtt: u64,
    rttvar: u64,
    backoffs: u32,
    deadline: Time,
    min: u64,
    max: u64,
    initial: u64,
    tick: u64,
}

impl Rto {
    /// A timer with the common parameters.
    pub fn new(values: &Values) -> Rto {
        let get = |name| Time::from_secs_f64(values.get(COMMON, name)).0;
        Rto {
            srtt: 0,
            rttvar: 0,
            backoffs: 0,
            deadline: Time::NEVER,
            min: get("min_rto"),
            max: get("max_rto"),
            initial: get("initial_rto"),
            tick: get("clock_tick"),
        }
    }
    /// Takes a sample (RFC 6298 section 2), measured by the flow in ticks of its clock. Samples come from time stamps, so Karn's rule is not needed.
    #[inline]
    pub fn sample(&mut self, rtt: Time) {
        let r = rtt.0.max(1);
        if self.srtt == 0 {
            self.srtt = r;
            self.rttvar = r / 2;
        } else {
            (self.srtt, self.rttvar) = smoothed(self.srtt, self.rttvar, r);
        }
    }
    /// The timeout now, with back-off.
    pub fn timeout(&self) -> Time {
        let base =
            if self.srtt == 0 { self.initial } else { timeout_of(self.srtt, self.rttvar, self.tick).max(self.min) };
        Time((base << self.backoffs.min(16)).min(self.max))
    }
    /// What a flow needs to keep the timer by itself, once there is a sample and no back-off.
    fn lend(&self) -> Option<Steady> {
        let ready = self.srtt > 0 && self.backoffs == 0;
        let max = NonZeroU64::new(self.max)?;
        ready.then_some(Steady { rttvar: self.rttvar, min: self.min, max, tick: self.tick })
    }
    /// Takes it back.
    fn take_back(&mut self, steady: &Steady, srtt: Time, deadline: Time) {
        (self.srtt, self.rttvar, self.deadline) = (srtt.0, steady.rttvar, deadline);
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
    /// New data was acknowledged: back-off ends; the timer restarts, or stops if nothing is outstanding (5.2, 5.3).
    #[inline]
    pub fn acknowledged(&mut self, now: Time, outstanding: bool) {
        self.backoffs = 0;
        if outstanding {
            self.restart(now);
        } else {
            self.deadline = Time::NEVER;
        }
    }
    /// The timer expired: doubles the timeout and starts over (5.5, 5.6).
    pub fn expired(&mut self, now: Time) {
        self.backoffs += 1;
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
        self.backoffs
    }
    /// Tells its variables.
    pub fn probe(&self, put: Probe<'_>) {
        put("srtt_ms", Time(self.srtt).as_millis_f64());
        put("rto_ms", self.timeout().as_millis_f64());
    }
}

/// SRTT and RTTVAR after one more sample (RFC 6298 (2.3)): the variance first, from the old SRTT.
#[inline(always)]
pub(super) fn smoothed(srtt: u64, rttvar: u64, sample: u64) -> (u64, u64) {
    (srtt - srtt / 8 + sample / 8, rttvar - rttvar / 4 + srtt.abs_diff(sample) / 4)
}
/// The timeout before its bounds.
#[inline(always)]
pub(super) fn timeout_of(srtt: u64, rttvar: u64, tick: u64) -> u64 {
    srtt + (4 * rttvar).max(tick)
}

/// Where a flow stands: `acked <= next <= highest`, in segments.
#[derive(Clone, Copy, Default)]
pub struct Sequence {
    /// All segments below are acknowledged (`lack` + 1 in paper 003).
    pub acked: u32,
    /// The next segment in sequence; below `highest` after a rollback.
    pub next: u32,
    /// One past the highest segment ever sent.
    pub highest: u32,
}

impl Sequence {
    /// Takes a cumulative acknowledgement; returns the segments that it newly covers. One for data that was never sent
    /// is not taken (zero).
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
    /// The facts that drivers ask for.
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
    /// What [`crate::protocol::Recovery::lend`] answers where all that is outstanding is in flight: nothing is sent again.
    pub fn lend(&self, rto: &Rto) -> Option<Steady> {
        if self.next == self.highest { rto.lend() } else { None }
    }
    /// Takes back sequence and timer.
    pub fn take_back(&mut self, rto: &mut Rto, steady: &Steady, at: &RecoveryState) {
        *self = Sequence { acked: at.acked, next: at.next, highest: at.highest };
        rto.take_back(steady, at.srtt, at.timer);
    }
    /// Goes back to the first unacknowledged segment (after a timeout).
    pub fn roll_back(&mut self) {
        self.next = self.acked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6298_arithmetic() {
        let mut rto = Rto::new(&Values::default());
        assert_eq!(rto.timeout(), Time::secs(1));
        rto.sample(Time::millis(100));
        // First sample: SRTT = R, RTTVAR = R/2, RTO = R + 4 R/2.
        assert_eq!((rto.srtt(), rto.timeout()), (Time::millis(100), Time::millis(300)));
        rto.sample(Time::millis(180));
        // RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5; SRTT = 7/8 * 100 + 1/8 * 180 = 110; RTO = 110 + 4 * 57.5.
        assert_eq!((rto.srtt(), rto.timeout()), (Time::millis(110), Time::millis(340)));
        rto.expired(Time::ZERO);
        assert_eq!(rto.deadline(), Time::millis(680));
        rto.acknowledged(Time::secs(1), true);
        assert_eq!(rto.deadline(), Time::millis(1340));
    }

    #[test]
    fn clock_ticks_and_minimum() {
        let mut values = Values::default();
        values.set(COMMON.iter().find(|p| p.name == "clock_tick").unwrap(), 0.01);
        let mut rto = Rto::new(&values);
        rto.sample(Time::millis(20));
        assert_eq!(rto.timeout(), Time::millis(200), "the default minimum");
        (0..100).for_each(|_| rto.sample(Time::millis(300)));
        // RTTVAR has vanished: G takes its place.
        assert_eq!((rto.timeout().0 - rto.srtt().0) / 1000, 10_000);
    }
}
