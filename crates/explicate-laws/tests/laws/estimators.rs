//! Estimators, with arbitrary messages and frames.

use std::collections::VecDeque;

use explicate_core::agent::Address;
use explicate_core::estimate::hop_capacity::{self, Air, By, HopCapacity, Served};
use explicate_core::estimate::{AnyEstimatorKind, Choice, ESTIMATORS, EstimatorInit, Probing, oracle};
use explicate_core::units::Time;
use explicate_laws::random::{Dice, Hash, RandomPath, repeats};

fn estimator(kind: &AnyEstimatorKind, dice: &mut Dice) -> Hash {
    let name = kind.name();
    let values = dice.values(&[Probing::PARAMS, oracle::Params::PARAMS, Choice::PARAMS]);
    let period = dice.span(0.2) + Time::millis(10);
    let (own, peer) = (Address(1), Address(2));
    let mut e = kind.build(EstimatorInit { values: &values, own, peer, period, rng: dice.0.clone(), now: Time::ZERO });
    let mut hash = Hash::new();
    let mut now = Time::ZERO;
    // Echoes in flight: arrival time and contents.
    let mut echoes: VecDeque<(Time, u16, Time, Time)> = VecDeque::new();
    let (mut sent, mut told) = (0u64, 0);
    let (mut free, service) = (Time::ZERO, Time(1 + dice.below(100_000)));
    for _ in 0..20_000 {
        let due = echoes.front().map_or(Time::NEVER, |(at, ..)| *at).min(e.poll_timeout().max(now));
        now = due.min(now + Time::secs(1)) + Time(dice.below(1000));
        while echoes.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, index, sent, came)) = echoes.pop_front() else { break };
            e.handle_echo(now, index, sent, came);
            if dice.flip(0.01) {
                e.handle_echo(now, index, sent, came); // a copy
            }
        }
        match dice.below(1000) {
            0 => e.handle_echo(now, dice.number(1 << 16) as u16, Time(dice.0.next_u64()), Time(dice.0.next_u64())),
            1 => e.set_period(now, Time(dice.below(2_000_000_000))),
            _ => {}
        }
        e.consult(now, &mut RandomPath(dice));
        while let Some(left) = e.poll_estimate(now) {
            told += 1;
            assert!(left.is_finite() && left.abs() < 1e18, "{name}: {left} bytes/s are left");
            hash.put_f64(left);
        }
        let mut burst = 0;
        while let Some(probe) = e.poll_probe(now) {
            burst += 1;
            assert!(burst <= 2000, "{name}: probes without end at {now}");
            sent += probe.ip_len as u64;
            hash.put((probe.index as u64) << 16 | probe.ip_len as u64);
            free = free.max(now) + service;
            if !dice.flip(0.02) {
                echoes.push_back((free + Time::millis(40), probe.index, now, free + Time::millis(20)));
            }
        }
        assert!(e.poll_timeout() > now, "{name}: a driver would spin at {now}");
    }
    // What it loads the path with is bounded: `probe_rate`, and a stream or some pairs in advance.
    let probing = Probing::of(&values);
    let (bytes, probes) = (probing.probe_bytes.unwrap_or(1500.0), probing.probes.unwrap_or(40.0));
    let most = probing.probe_rate / 8.0 * now.as_secs_f64() + 2.0 * bytes * probes;
    // Times between Spruce's pairs are random.
    let most = most + 6.0 * (2.0 * bytes * most).sqrt();
    assert!(sent as f64 <= most, "{name}: {sent} bytes in {now}, {most} are allowed; {values:?}");
    hash.put(told);
    hash
}

/// Arbitrary frames: the capacity is a number that controllers can divide by, and on a line no more than the best
/// frame's bytes over its time; others' share is a share; an estimate without that share is no less.
fn hop_capacity(dice: &mut Dice) -> Hash {
    let window = 1e-3 + dice.span(0.1).as_secs_f64();
    let [mut all, mut own, mut phy] = [By::AirTime, By::OwnTime, By::PhyRate]
        .map(|measured| HopCapacity::new(hop_capacity::Params { measured, window }, 6.75e6));
    let on_medium = dice.flip(0.8);
    let (mut hash, mut most, mut fastest) = (Hash::new(), 0.0f64, 0.0f64);
    for _ in 0..3000 {
        let bytes = if dice.flip(0.1) { 0 } else { 1 + dice.number(9000) };
        let parts = [dice.below(1_000_000), dice.below(3_000_000), dice.below(2_000_000)].map(Time);
        let [overhead, held, spent] = if dice.flip(0.02) { [Time::ZERO; 3] } else { parts };
        // At the present rate the same attempts take from half to twice the time.
        let anew = Time(spent.0 / 2 + dice.below(spent.0 + spent.0 / 2 + 1));
        let rate = [6e6, 12e6, 24e6, 54e6][dice.number(4) as usize];
        let air = Air { link: dice.number(3), rate, spent, anew };
        let (air, spent) = if on_medium { (Some(air), spent) } else { (None, Time::ZERO) };
        let frame = Served { bytes, service: overhead + held + spent, held, air };
        let [c, alone, radio] = [&mut all, &mut own, &mut phy].map(|measured| measured.served(&frame));
        for capacity in [c, alone, radio] {
            assert!(capacity.is_finite() && capacity >= 6.75e6 * 0.999e-3, "{capacity} bytes/s");
            hash.put_f64(capacity);
        }
        assert!((0.0..=1.0).contains(&all.others_share()), "{}", all.others_share());
        assert!(alone >= c * (1.0 - 1e-9), "alone {alone}, with others {c}");
        if on_medium {
            fastest = fastest.max(rate / 8.0);
            assert!(radio <= 6.75e6f64.max(fastest) * (1.0 + 1e-9), "{radio} of {fastest}");
        } else if overhead > Time::ZERO {
            most = most.max(bytes as f64 / overhead.as_secs_f64());
            assert!(alone <= most.max(6.75e6) * (1.0 + 1e-9), "{alone} of {most}");
        }
    }
    hash
}

#[test]
fn a_measured_capacity_is_one() {
    repeats("hop_capacity", 40, hop_capacity);
}

#[test]
fn estimators_stay_within_their_means() {
    for kind in ESTIMATORS {
        repeats(kind.name(), 40, |dice| estimator(*kind, dice));
    }
}
