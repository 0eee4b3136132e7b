//! Jitter: every packet is delayed by a random time.
//!
//! The mean is added to the link's delay. Packets may overtake each other, as in netem; or they wait for earlier
//! ones, as in a queue elsewhere.
//!
//! Deviations:
//! 1. netem has a delay and a deviation around it, which may be negative; here the added time is never below zero:
//!    uniform from zero to twice the mean, normal with a standard deviation of `spread` times the mean, drawn again
//!    outside of that range, exponential, or Pareto.

use super::common::placing::{Selection, disturbing};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed};
use crate::params::{Flag, Fraction, Info, Number, Seconds, choices, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Jitter.
pub struct Jitter;

choices! {
    /// Distribution of the added time.
    enum Distribution { Uniform = "uniform", Normal = "normal", Exponential = "exponential", Pareto = "pareto" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Mean of the added time.
        mean: Seconds = 0.001, in 0.0..=1e6, "netem";
        /// Distribution of the added time.
        distribution: Distribution = Distribution::Uniform, "netem";
        /// Ratio of standard deviation and mean (normal).
        spread: Fraction = 0.25, in 0.0..=1.0, "netem";
        /// Shape (Pareto).
        shape: Number = 3.0, in 1.01..=100.0, "netem";
        /// Packets keep their order: each waits for earlier ones.
        keep_order: Flag = false, "netem";
        /// Affected packets.
        selection: Selection = Selection::DEFAULT;
    }
}

impl ChannelKind for Jitter {
    const INFO: Info = Info {
        name: "jitter",
        summary: "Adds a random time to each packet's delay",
        source: "netem `delay TIME JITTER distribution`",
        params: Params::PARAMS,
    };

    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let params = Params::of(init.values);
        let sampler = match params.distribution {
            Distribution::Uniform => Sampler::Uniform,
            Distribution::Normal => Sampler::Normal(params.spread),
            Distribution::Exponential => Sampler::Exponential,
            Distribution::Pareto => Sampler::Pareto(params.shape),
        };
        let channel =
            Later { mean: params.mean, sampler, keep_order: params.keep_order, last: Time::ZERO, rng: init.rng };
        disturbing(params.selection, channel)
    }
}

enum Sampler {
    Uniform,
    Normal(f64),
    Exponential,
    Pareto(f64),
}

struct Later {
    mean: f64,
    sampler: Sampler,
    keep_order: bool,
    /// Arrival of the previous packet.
    last: Time,
    rng: Rng,
}

impl Disturbance for Later {
    fn disturb(&mut self, at: Time, _packet: &Packet) -> Disturbed {
        let rng = &mut self.rng;
        let seconds = match self.sampler {
            Sampler::Uniform => 2.0 * self.mean * rng.uniform(),
            Sampler::Normal(spread) => rng.bounded_normal(self.mean, spread),
            Sampler::Exponential => rng.exponential(self.mean),
            Sampler::Pareto(shape) => rng.pareto(self.mean, shape),
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
    use crate::testing;

    #[test]
    fn means_and_order() {
        for distribution in 0..4 {
            for keep_order in [0.0, 1.0] {
                let given = [("mean", 0.002), ("distribution", distribution as f64), ("keep_order", keep_order)];
                let mut channel = testing::channel(&Jitter, &given).after.unwrap();
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
                    assert!(overtaken == 0 && mean >= 0.002, "distribution {distribution}: {mean}");
                } else {
                    assert!((mean - 0.002).abs() < 5e-5, "distribution {distribution}: {mean}");
                }
            }
        }
    }
}
