//! Jitter: every packet arrives later by a random time of its own.
//!
//! The mean is added to the link's delay. Packets may overtake each other, as in netem; or they wait for those before them,
//! as behind a queue that one does not see.
//!
//! Deviations:
//! 1. netem gives a delay and a deviation around it, which may be negative; here the added time is never below zero: uniform
//!    from zero to twice the mean, normal with a standard deviation of `spread` times the mean, drawn again outside of that
//!    range, exponential, or Pareto.

use super::placing::{OF, disturbing};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed};
use crate::params::{Info, Param, Unit};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Jitter.
pub struct Jitter;

const PARAMS: &[Param] = &[
    Param::new("mean", Unit::Seconds, 0.001, "netem", "Mean of the time added.").within(0.0, 1e6),
    Param::new(
        "distribution",
        Unit::Choice(&["uniform", "normal", "exponential", "pareto"]),
        0.0,
        "netem",
        "Distribution of the time added.",
    ),
    Param::new("spread", Unit::Fraction, 0.25, "netem", "Standard deviation over the mean (normal).").within(0.0, 1.0),
    Param::new("shape", Unit::Number, 3.0, "netem", "Shape (Pareto).").within(1.01, 100.0),
    Param::new("keep_order", Unit::Flag, 0.0, "netem", "Nobody overtakes: a packet waits for those before it."),
    OF,
];

impl ChannelKind for Jitter {
    const INFO: Info = Info {
        name: "jitter",
        summary: "Adds a random time to each packet's delay",
        source: "netem `delay TIME JITTER distribution`",
        params: PARAMS,
    };

    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let get = |name| init.values.get(PARAMS, name);
        let law = match get("distribution") {
            0.0 => Law::Uniform,
            1.0 => Law::Normal(get("spread")),
            2.0 => Law::Exponential,
            _ => Law::Pareto(get("shape")),
        };
        let channel =
            Later { mean: get("mean"), law, keep_order: get("keep_order") != 0.0, last: Time::ZERO, rng: init.rng };
        disturbing(init.values, channel)
    }
}

enum Law {
    Uniform,
    Normal(f64),
    Exponential,
    Pareto(f64),
}

struct Later {
    mean: f64,
    law: Law,
    keep_order: bool,
    /// When the packet before left, its time included.
    last: Time,
    rng: Rng,
}

impl Disturbance for Later {
    fn disturb(&mut self, at: Time, _packet: &Packet) -> Disturbed {
        let rng = &mut self.rng;
        let seconds = match self.law {
            Law::Uniform => 2.0 * self.mean * rng.uniform(),
            Law::Normal(spread) => rng.bounded_normal(self.mean, spread),
            Law::Exponential => rng.exponential(self.mean),
            Law::Pareto(shape) => rng.pareto(self.mean, shape),
        };
        let mut late = Time::from_secs_f64(seconds);
        if self.keep_order {
            late = late.max(self.last.since(at));
            self.last = at + late;
        }
        Disturbed { late, ..Disturbed::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Values;

    #[test]
    fn means_and_order() {
        for law in 0..4 {
            for keep_order in [0.0, 1.0] {
                let mut values = Values::default();
                for (param, value) in [(0, 0.002), (1, law as f64), (4, keep_order)] {
                    values.set(&PARAMS[param], value);
                }
                let init = ChannelInit { values: &values, rate: crate::units::Rate::mbps(1), rng: Rng::stream(1, "x") };
                let mut channel = Jitter.build(init).after.unwrap();
                let (n, gap) = (100_000u64, if keep_order == 1.0 { Time::micros(100) } else { Time::secs(1) });
                let (mut last, mut sum, mut overtaken) = (Time::ZERO, 0.0, 0);
                for i in 0..n {
                    let at = Time(i * gap.0);
                    let late = channel.disturb(at, &Packet::EMPTY).late;
                    sum += late.as_secs_f64();
                    overtaken += (at + late < last) as u32;
                    last = at + late;
                }
                let mean = sum / n as f64;
                if keep_order == 1.0 {
                    assert!(overtaken == 0 && mean >= 0.002, "law {law}: {mean}");
                } else {
                    assert!((mean - 0.002).abs() < 5e-5, "law {law}: {mean}");
                }
            }
        }
    }
}
