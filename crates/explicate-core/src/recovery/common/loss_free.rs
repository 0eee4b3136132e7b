//! Recovery while no segment is missing. All recoveries then do the same: acknowledgements advance the cumulative
//! number, each gives a sample of the round-trip time and restarts the timer (RFC 6298), and only new segments are
//! sent. A flow does this by itself, on its own copy of the state, and returns the counters as soon as something else
//! happens.

use core::num::NonZeroU64;

use crate::recovery::common::rtt::Spread;
use crate::recovery::{Next, RecoveryState};
use crate::units::Time;

/// The state that a flow needs for this besides [`RecoveryState`]; from [`crate::recovery::common::rto::Sequence::check_out`].
/// Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct LossFree {
    pub(crate) spread: Spread,
    /// Not zero, so that `Option` needs no additional memory.
    pub(crate) min: NonZeroU64,
    pub(crate) max: u64,
    /// The recovery keeps more than this, and learns of each event after it: [`crate::recovery::Recovery::follow_sent`].
    pub follows: bool,
}

impl LossFree {
    /// Processes an acknowledgement of outstanding data. Returns the number of newly covered segments, or zero
    /// without any change if it covers none.
    #[inline(always)]
    pub fn acknowledge(&mut self, at: &mut RecoveryState, now: Time, cumulative: u32, rtt: Time) -> u32 {
        let newly = cumulative.wrapping_sub(at.acked);
        let outstanding = at.highest - at.acked;
        if newly.wrapping_sub(1) >= outstanding {
            return 0;
        }
        at.acked = cumulative;
        at.in_flight -= newly;
        if self.spread.counts(at.acked) {
            self.sample(at, rtt);
        }
        at.timer = if newly == outstanding { Time::NEVER } else { now + self.timeout(at.srtt) };
        newly
    }
    /// The next segment was sent.
    #[inline(always)]
    pub fn sent(&self, at: &mut RecoveryState, now: Time) {
        at.next += 1;
        at.highest = at.next;
        at.in_flight += 1;
        if at.timer == Time::NEVER {
            at.timer = now + self.timeout(at.srtt);
        }
    }
    #[inline(never)]
    fn sample(&mut self, at: &mut RecoveryState, rtt: Time) {
        at.srtt = Time(self.spread.take(at.srtt.0, rtt.0.max(1), (at.acked, at.highest), self.min.get()));
    }
    /// The retransmission timeout with this smoothed round-trip time.
    #[inline(always)]
    pub(crate) fn timeout(&self, srtt: Time) -> Time {
        Time(self.spread.timeout(srtt.0).max(self.min.get()).min(self.max))
    }
    /// The next transmission within this number of whole segments.
    #[inline(always)]
    pub fn next(&self, at: &RecoveryState, window: u32) -> Next {
        if at.in_flight >= window { Next::Nothing } else { Next::New }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::AnyRecovery;
    use crate::recovery::{Common, RECOVERIES, RtoRule};
    use crate::rng::Rng;
    use crate::testing;
    use std::boxed::Box;

    fn facts(state: &RecoveryState) -> [u64; 7] {
        let &RecoveryState { acked, next, highest, in_flight, recovering, srtt, timer } = state;
        [acked as u64, next as u64, highest as u64, in_flight as u64, recovering as u64, srtt.0, timer.0]
    }

    /// One recovery receives every event; of another the flow keeps the counters. At every moment both have the same
    /// state and would send the same, also after the counters are returned.
    #[test]
    fn what_is_lent_keeps_step_with_what_is_told() {
        let mut lending = 0;
        let with = |rule: RtoRule| testing::values(&[Common::PARAMS], &[("rto", rule as u8 as f64)]);
        let exact = testing::values(&[Common::PARAMS], &[("rto", RtoRule::Ns2 as u8 as f64), ("clock_tick", 0.0)]);
        let [linux, rfc, ns2, stamps] =
            [RtoRule::Linux, RtoRule::Rfc6298, RtoRule::Ns2, RtoRule::Ns2Timestamps].map(with);
        let rules = [exact, linux, rfc, ns2, stamps];
        for (kind, values) in RECOVERIES.iter().flat_map(|kind| rules.iter().map(move |values| (kind, values))) {
            let fresh = || {
                let mut recovery = kind.build(values);
                recovery.on_rtt(Time::millis(80));
                recovery
            };
            let (mut told, mut owner) = (fresh(), fresh());
            let Some(mut loss_free) = owner.check_out() else { continue };
            lending += 1;
            let mut at = owner.state();
            let mut rng = Rng::stream(9, kind.name());
            let (mut now, mut cwnd) = (Time::ZERO, 3.0);
            let ack = |told: &mut Box<AnyRecovery>, rng: &mut Rng, now: Time| {
                let state = told.state();
                let outstanding = (state.highest - state.acked) as u64;
                let newly = if outstanding > 0 { 1 + rng.next_u64() % outstanding.min(3) } else { 0 };
                let rtt = Time::micros(1 + rng.next_u64() % 200_000);
                let cumulative = state.acked + newly as u32;
                (newly > 0).then(|| (cumulative, told.on_ack(now, cumulative, 0, &[], rtt).newly_acked, rtt))
            };
            for step in 0..20_000 {
                now += Time::micros(rng.next_u64() % 10_000);
                cwnd = (cwnd + 2.0 * rng.uniform() - 1.0_f64).clamp(1.0, 60.0);
                let rwnd = 1 + (rng.next_u64() % 100) as u32;
                let next = told.next(cwnd, rwnd);
                assert_eq!(loss_free.next(&at, rwnd.min(cwnd as u32)), next, "{}, step {step}", kind.name());
                if next == Next::New && !rng.next_u64().is_multiple_of(4) {
                    told.on_sent(now, at.next, step);
                    loss_free.sent(&mut at, now);
                    if loss_free.follows {
                        owner.follow_sent(now, &mut at);
                    }
                } else if let Some((cumulative, newly, rtt)) = ack(&mut told, &mut rng, now) {
                    assert_eq!(loss_free.acknowledge(&mut at, now, cumulative, rtt), newly);
                    if loss_free.follows {
                        owner.follow_ack(now, newly, rtt, &mut at);
                    }
                }
                assert_eq!(facts(&at), facts(&told.state()), "{}, step {step}", kind.name());
                if rng.next_u64().is_multiple_of(50) {
                    owner.check_in(&loss_free, &at);
                    if let Some((cumulative, _, rtt)) = ack(&mut told, &mut rng, now) {
                        owner.on_ack(now, cumulative, 0, &[], rtt);
                    }
                    at = owner.state();
                    assert_eq!(facts(&at), facts(&told.state()), "{}, step {step}", kind.name());
                    loss_free = owner.check_out().expect("nothing is missing");
                }
            }
            assert!(at.acked > 5000, "{} acknowledged", at.acked);
        }
        assert_eq!(
            lending,
            5 * 5,
            "recoveries that can be checked out, by every rule, and with a clock that does not tick"
        );
    }
}
