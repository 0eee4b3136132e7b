//! Recoveries: sequence space and timers stay sound, whatever acknowledgements say.

use explicate_core::recovery::{AnyRecovery, AnyRecoveryKind, COMMON, Next};
use explicate_core::registry::RECOVERIES;
use explicate_core::units::Time;
use explicate_laws::random::{Dice, Hash, OPERATIONS, SEEDS, repeats};

#[test]
fn recoveries_survive_any_answer() {
    for r in RECOVERIES {
        repeats(r.name(), SEEDS, |dice| recovery(*r, dice));
    }
}

fn recovery(kind: &AnyRecoveryKind, dice: &mut Dice) -> Hash {
    let values = dice.values(&[COMMON, kind.params()]);
    let mut r = kind.build(&values);
    let mut hash = Hash::new();
    let mut now = Time::ZERO;
    let mut number = 0;
    r.on_rtt(dice.span(0.1));
    for _ in 0..OPERATIONS {
        now += if dice.flip(0.01) { dice.span(5.0) } else { dice.span(0.005) };
        match dice.below(10) {
            0..=4 => {
                let (cwnd, rwnd) = (1.0 + dice.0.uniform() * 60.0, dice.number(200));
                for _ in 0..dice.below(5) {
                    let segment = match r.next(cwnd, rwnd) {
                        Next::Nothing => break,
                        Next::Resend(segment) => segment,
                        Next::New if dice.flip(0.9) => r.state().next,
                        Next::New => match r.spare() {
                            Some(segment) => segment,
                            None => break,
                        },
                    };
                    assert!(segment >= r.state().acked && segment <= r.state().highest, "{}", kind.name());
                    r.on_sent(now, segment, number);
                    hash.put(segment as u64);
                    number += 1;
                    check_recovery(kind, &*r, &mut hash);
                }
            }
            5 => now = now.max(r.state().timer.min(now + Time::secs(4000))),
            _ => {
                let acked = r.state().acked;
                let near = |dice: &mut Dice| acked.saturating_sub(3) + dice.number(60);
                let cumulative = match dice.below(8) {
                    0 => dice.0.next_u64() as u32,
                    1..=3 => (acked + dice.number(6)).min(r.state().highest),
                    _ => acked,
                };
                let echo =
                    if dice.flip(0.1) { dice.0.next_u64() as u32 } else { number.saturating_sub(dice.number(20)) };
                let mut ranges = [(0, 0); 3];
                for range in &mut ranges {
                    let first = near(dice);
                    *range = match dice.below(12) {
                        0 => (dice.0.next_u64() as u32, dice.0.next_u64() as u32),
                        1 => (near(dice), near(dice)),
                        _ => (first, first + 1 + dice.number(5)),
                    };
                }
                let count = dice.below(4) as usize;
                let rtt = dice.span(0.1);
                let outcome = r.on_ack(now, cumulative, echo, &ranges[..count], rtt);
                assert!(outcome.newly_acked <= r.state().highest);
                assert!(r.state().acked >= acked, "{}: acknowledgements are not taken back", kind.name());
                hash.put(outcome.newly_acked as u64);
                hash.put(outcome.loss.map_or(u64::MAX, |n| n as u64));
            }
        }
        check_recovery(kind, &*r, &mut hash);
        let mut timers = 0;
        while r.state().timer <= now {
            timers += 1;
            assert!(timers < 4, "{}: the timer does not move on", kind.name());
            if let Some(outcome) = r.on_early_timer(now) {
                assert!(outcome.newly_acked == 0 && outcome.loss.is_none_or(|n| n <= 2 * r.state().highest));
                hash.put(outcome.loss.map_or(u64::MAX, |n| n as u64));
                check_recovery(kind, &*r, &mut hash);
                continue;
            }
            let flight = r.on_timer(now);
            assert!(r.state().timer > now, "{}: the timer does not move on", kind.name());
            assert!(flight.is_none_or(|n| n <= 2 * r.state().highest), "{}", kind.name());
            assert!(flight.is_none() || !r.state().recovering, "{}: a timeout ends an episode", kind.name());
            hash.put(flight.map_or(u64::MAX, |n| n as u64));
            check_recovery(kind, &*r, &mut hash);
        }
    }
    assert!(r.state().acked > 100, "{}: nothing went on", kind.name());
    hash
}

fn check_recovery(kind: &AnyRecoveryKind, r: &AnyRecovery, hash: &mut Hash) {
    let (acked, next, highest) = (r.state().acked, r.state().next, r.state().highest);
    assert!(acked <= next && next <= highest, "{}: {acked} <= {next} <= {highest}", kind.name());
    assert!(r.state().in_flight <= 2 * (highest - acked), "{}: {} in flight", kind.name(), r.state().in_flight);
    assert!(acked == highest || r.state().timer != Time::NEVER, "{}: no timer runs", kind.name());
    hash.put(r.state().in_flight as u64);
    hash.put(r.state().timer.0);
    hash.put(r.state().srtt.0);
}
