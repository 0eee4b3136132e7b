//! Independent random losses, as in network emulators: drawn for every packet, or spaced by a distribution.
//!
//! A loss is followed by a run of packets without loss. In the *uniform* process every packet is lost with the same
//! probability (a uniform random number is compared with the rate), so runs are geometric; a correlation increases
//! the probability of a loss after a loss, at the same rate. In the *normal* and *Pareto* processes the lengths of
//! runs follow these distributions: losses are more regular, or in clusters between long runs. All of them need one
//! draw per loss, not per packet.
//!
//! | symbol | field | unit | value | where |
//! | --- | --- | --- | --- | --- |
//! | p | `rate` | of packets | 0 | paper N section IV, `.0001` to `.1` |
//! | rho | `correlation` | | 0 | netem `loss random P CORRELATION` |
//! | (1 - p) / p | mean run between losses | packets | | follows |
//! | sigma / mean | `spread` | of the mean run | 0.25 | NIST Net's table: a standard deviation |
//! | a | `shape` | | 3 | netem's table `pareto` |
//! | | `start`, `most` | s, packets | 0, no limit | paper N section IV: a path that turns lossy later; one forced loss |
//!
//! Deviations:
//! 1. netem's and NIST Net's tables of normal and Pareto variates shape *delays*; paper N states that they shape
//!    losses. Here they shape the runs between losses, which keeps the rate exact.
//! 2. netem correlates the uniform numbers (`x = rho x' + (1 - rho) u`), which changes the rate of losses. Here the
//!    losses of consecutive packets are correlated, by a chain of two states, and the rate is exact.
//! 3. A normal run beyond twice its mean, or below zero, is drawn again, which keeps the mean.

use alloc::string::{String, ToString};

use super::common::placing::{Placing, lossy};
use crate::api::Probe;
use crate::channel::{Channel, ChannelInit, ChannelKind, ChannelStages};
use crate::params::{Fraction, Info, Number, Seconds, Values, choices, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Losses at random.
pub struct RandomLoss;

choices! {
    /// `uniform`.
    pub enum Distribution { Uniform = "uniform", Normal = "normal", Pareto = "pareto" }
}

parameters! {
    /// What a scenario can set.
    pub struct Params {
        /// Share of the packets that is lost.
        rate: Fraction = 0.0, in 0.0..=1.0, "paper N section II";
        /// Affected packets, and where they are lost.
        placing: Placing = Placing::DEFAULT;
        /// `uniform`: every packet with the same probability; otherwise the distribution of the runs between losses.
        distribution: Distribution = Distribution::Uniform, "paper N section IV";
        /// Correlation of the losses of consecutive packets (uniform); at full correlation all or none would be lost.
        correlation: Fraction = 0.0, in 0.0..=0.999_999, "netem";
        /// Ratio of a run's standard deviation and mean (normal).
        spread: Fraction = 0.25, in 0.0..=1.0, "NIST Net";
        /// Shape of the Pareto distribution of runs; smaller values give more bursts.
        shape: Number = 3.0, in 1.01..=100.0, "netem";
        /// Start of losses.
        start: Seconds = 0.0, in 0.0..=1e9, "paper N section IV";
        /// Total number of lost packets; 0: no limit.
        most: Number = 0.0, in 0.0..=1e12, "paper N section III";
    }
}

impl ChannelKind for RandomLoss {
    const INFO: Info = Info {
        name: "random_loss",
        summary: "Losses of single packets: uniform (with optional correlation), normal or Pareto",
        source: "paper N section IV; the loss models of NIST Net and netem",
        params: Params::PARAMS,
    };

    fn check(&self, values: &Values) -> Result<(), String> {
        let params = Params::of(values);
        if params.distribution != Distribution::Uniform && params.correlation != 0.0 {
            return Err("`correlation` belongs to the distribution \"uniform\"".to_string());
        }
        Ok(())
    }
    fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>) {
        let params = Params::of(values);
        let applies = params.placing.selection.of.has(packet) && params.most == 0.0;
        put("packet_loss", if applies { params.rate } else { 0.0 });
    }
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let params = Params::of(init.values);
        let p = params.rate;
        let mut rng = init.rng;
        let sampler = match params.distribution {
            Distribution::Uniform => return limited(&params, Uniform::new(p, params.correlation, rng)),
            Distribution::Normal => Sampler::Normal(params.spread),
            Distribution::Pareto => Sampler::Pareto(params.shape),
        };
        // The first loss comes within a mean run of the start.
        let mean = (1.0 - p) / p;
        let left = (1.0 - rng.uniform()) * (1.0 + mean);
        limited(&params, Spaced { mean, sampler, left, rng })
    }
}

/// `channel` within the limits that are given, if any.
fn limited(params: &Params, channel: impl Channel + 'static) -> ChannelStages {
    if params.start == 0.0 && params.most == 0.0 {
        return lossy(params.placing, channel);
    }
    let left = if params.most == 0.0 { u64::MAX } else { params.most as u64 };
    lossy(params.placing, Limited { start: Time::from_secs_f64(params.start), left, channel })
}

/// Losses that begin late or end after a number of losses.
struct Limited<C> {
    start: Time,
    /// Number of packets that may still be lost.
    left: u64,
    channel: C,
}

impl<C: Channel> Channel for Limited<C> {
    fn loses(&mut self, at: Time, packet: &Packet, wire_bytes: u32) -> bool {
        let lost = at >= self.start && self.left > 0 && self.channel.loses(at, packet, wire_bytes);
        self.left -= lost as u64;
        lost
    }
}

/// Geometric runs.
struct Uniform {
    /// Probability of a loss after a packet without loss.
    fresh: f64,
    /// Probability of a loss after a loss.
    again: f64,
    correlated: bool,
    until_loss: u64,
    rng: Rng,
}

impl Uniform {
    fn new(p: f64, correlation: f64, mut rng: Rng) -> Uniform {
        let (fresh, again) = (p * (1.0 - correlation), p + correlation * (1.0 - p));
        let correlated = correlation > 0.0;
        let until_loss = match correlated {
            false => rng.run_length(p),
            true if rng.uniform() < p => 0,
            true => rng.run_length(fresh).saturating_add(1),
        };
        Uniform { fresh, again, correlated, until_loss, rng }
    }
}

impl Channel for Uniform {
    fn loses(&mut self, _at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
        if self.until_loss > 0 {
            self.until_loss -= 1;
            return false;
        }
        if !self.correlated {
            self.until_loss = self.rng.run_length(self.fresh);
        } else if self.rng.uniform() >= self.again {
            self.until_loss = self.rng.run_length(self.fresh).saturating_add(1);
        }
        true
    }
}

enum Sampler {
    Normal(f64),
    Pareto(f64),
}

/// Runs by a distribution: losses are points on a line on which packets are one apart.
struct Spaced {
    /// Mean run, packets; infinite if none is lost.
    mean: f64,
    sampler: Sampler,
    /// Distance from the next packet to the next loss.
    left: f64,
    rng: Rng,
}

impl Channel for Spaced {
    fn loses(&mut self, _at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
        if self.left >= 1.0 {
            self.left -= 1.0;
            return false;
        }
        // Two losses are at least a packet apart, so each affects another packet, and the rate is 1 / (1 + mean).
        self.left += match self.sampler {
            Sampler::Pareto(shape) => self.rng.pareto(self.mean, shape),
            Sampler::Normal(spread) => self.rng.bounded_normal(self.mean, spread),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    fn channel(given: &[(&str, f64)]) -> Box<dyn Channel> {
        testing::channel(&RandomLoss, given).on_air.unwrap()
    }

    /// Whether each of n packets is lost.
    fn losses(given: &[(&str, f64)], n: usize) -> Vec<bool> {
        let mut channel = channel(given);
        (0..n).map(|_| channel.loses(Time::ZERO, &Packet::EMPTY, 100)).collect()
    }

    fn rate(lost: &[bool]) -> f64 {
        lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64
    }

    /// Runs of packets that get through.
    fn runs(lost: &[bool]) -> Vec<f64> {
        let mut runs: Vec<f64> = lost.split(|l| *l).map(|run| run.len() as f64).collect();
        runs.pop();
        runs.remove(0);
        runs
    }

    #[test]
    fn the_rate_comes_out_whatever_the_law() {
        let distributions: [&[(&str, f64)]; 5] = [
            &[("distribution", 0.0)],
            &[("correlation", 0.5)],
            &[("distribution", 1.0)],
            &[("distribution", 1.0), ("spread", 1.0)],
            &[("distribution", 2.0)],
        ];
        for distribution in distributions {
            for (p, slack) in [(0.0, 0.0), (0.01, 0.0007), (0.3, 0.004), (1.0, 0.0)] {
                let lost = rate(&losses(&[distribution, &[("rate", p)]].concat(), 200_000));
                assert!((lost - p).abs() <= slack, "{distribution:?} {p}: {lost}");
            }
        }
    }

    #[test]
    fn losses_begin_late_and_end_after_some() {
        let mut channel = channel(&[("rate", 0.5), ("start", 10.0), ("most", 3.0)]);
        let lost: Vec<u64> = (0..100).filter(|s| channel.loses(Time::secs(*s), &Packet::EMPTY, 100)).collect();
        assert!(lost.len() == 3 && lost[0] >= 10, "{lost:?}");
        let mut channel = super::tests::channel(&[("rate", 1.0), ("start", 10.0)]);
        assert_eq!((0..20).filter(|s| channel.loses(Time::secs(*s), &Packet::EMPTY, 100)).count(), 10);
    }

    #[test]
    fn neighbours_are_correlated_as_asked() {
        for rho in [0.0, 0.25, 0.8] {
            let lost = losses(&[("rate", 0.1), ("correlation", rho)], 400_000);
            let (p, both) = (rate(&lost), lost.windows(2).filter(|w| w[0] && w[1]).count() as f64 / lost.len() as f64);
            let found = (both - p * p) / (p - p * p);
            assert!((found - rho).abs() < 0.01, "{rho}: {found}");
        }
    }

    #[test]
    fn runs_have_the_spread_of_their_law() {
        let spread = |given: &[(&str, f64)]| {
            let runs = runs(&losses(&[given, &[("rate", 0.01)]].concat(), 1_000_000));
            let mean = runs.iter().sum::<f64>() / runs.len() as f64;
            let square = runs.iter().map(|r| r * r).sum::<f64>() / runs.len() as f64;
            libm::sqrt(square - mean * mean) / mean
        };
        // Geometric: 1 / sqrt(1 - p). Pareto of shape a: 1 / sqrt(a (a - 2)).
        assert!((spread(&[]) - 0.995).abs() < 0.03);
        assert!((spread(&[("distribution", 1.0)]) - 0.25).abs() < 0.01);
        assert!((spread(&[("distribution", 2.0), ("shape", 5.0)]) - 0.258).abs() < 0.02);
        let least = runs(&losses(&[("distribution", 2.0), ("rate", 0.01)], 1_000_000))
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        assert!((65.0..=66.0).contains(&least), "mean 99, shape 3: none under 66, but for the part of a packet");
    }
}
