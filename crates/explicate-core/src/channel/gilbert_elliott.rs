//! Losses on a channel with a good and a bad state (Gilbert 1960, Elliott 1963).
//!
//! A chain of two states moves with each packet, or in time independently of packets; each state has its own loss
//! probability. In packets, the chain moves first and the new state determines the loss, and sojourns are geometric.
//! In time, sojourns are exponential: fades of milliseconds, which affect many packets of a fast link and few of a
//! slow one. Lengths of sojourns and the runs between losses within a state are drawn, not packets.
//!
//! | symbol | field | unit | value | where |
//! | --- | --- | --- | --- | --- |
//! | 1 / (1 - gamma) | `good` | packets | 100 | paper Y section II-A, there in bits |
//! | 1 / (1 - beta) | `bad` | packets | 4 | the same |
//! | | `good_time`, `bad_time` | s | 1, 0.02 | the same chain in time |
//! | epsilon_G, epsilon_B | `loss_good`, `loss_bad` | of packets | 0, 1 | the same |
//! | p, r, 1 - h, 1 - k | `1/good`, `1/bad`, `loss_bad`, `loss_good` | | | netem `loss gemodel` |
//!
//! Deviations:
//! 1. In paper Y the chain moves from bit to bit, and the effect on a packet's code determines losses: `fading`. At
//!    the scale of packets that channel has no memory; this one has.
//! 2. The first state is drawn from the long-run shares of the states.

use alloc::string::{String, ToString};

use super::common::placing::{Placing, lossy};
use crate::api::Probe;
use crate::channel::{Channel, ChannelInit, ChannelKind, ChannelStages};
use crate::params::{Fraction, Info, Packets, Seconds, Values, choices, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// A channel that is good or bad for a while.
pub struct GilbertElliott;

const SECTION: &str = "paper Y section II-A";
choices! {
    /// Unit of sojourns.
    enum Clock { Packets = "packets", Time = "time" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Unit of sojourns.
        clock: Clock = Clock::Packets, SECTION;
        /// Mean sojourn in the good state, by packets.
        good: Packets = 100.0, in 1.0..=1e15, SECTION;
        /// Mean sojourn in the bad state, by packets.
        bad: Packets = 4.0, in 1.0..=1e15, SECTION;
        /// Mean sojourn in the good state, in time.
        good_time: Seconds = 1.0, in 1e-9..=1e8, SECTION;
        /// Mean sojourn in the bad state, in time.
        bad_time: Seconds = 0.02, in 1e-9..=1e8, SECTION;
        /// Probability that a packet is lost in the good state.
        loss_good: Fraction = 0.0, in 0.0..=1.0, SECTION;
        /// Probability that a packet is lost in the bad state.
        loss_bad: Fraction = 1.0, in 0.0..=1.0, SECTION;
        /// Affected packets, and where they are lost.
        placing: Placing = Placing::DEFAULT;
    }
}

impl ChannelKind for GilbertElliott {
    const INFO: Info = Info {
        name: "gilbert_elliott",
        summary: "A good and a bad state, each with a loss rate; the state changes by packets or in time",
        source: "Gilbert 1960, Elliott 1963; paper Y section II-A",
        params: Params::PARAMS,
    };

    fn check(&self, values: &Values) -> Result<(), String> {
        let given = |name: &str| values.given().iter().any(|(n, _)| *n == name);
        let in_time = Params::of(values).clock == Clock::Time;
        if in_time && (given("good") || given("bad")) {
            return Err(
                "`good` and `bad` belong to the clock \"packets\"; write `good_time` and `bad_time`".to_string()
            );
        }
        if !in_time && (given("good_time") || given("bad_time")) {
            return Err("`good_time` and `bad_time` belong to the clock \"time\"; write `clock = \"time\"`".to_string());
        }
        Ok(())
    }
    fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>) {
        let params = Params::of(values);
        let (good, bad) = match params.clock {
            Clock::Packets => (params.good, params.bad),
            Clock::Time => (params.good_time, params.bad_time),
        };
        let share = bad / (good + bad);
        let applies = params.placing.selection.of.has(packet);
        put("packet_loss", if applies { params.loss_good + share * (params.loss_bad - params.loss_good) } else { 0.0 });
    }
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let params = Params::of(init.values);
        let mut rng = init.rng;
        let loss = [params.loss_good, params.loss_bad];
        let until_loss = loss.map(|p| rng.run_length(p));
        if params.clock == Clock::Packets {
            let leave = [1.0 / params.good, 1.0 / params.bad];
            let bad = rng.uniform() * (params.good + params.bad) < params.bad;
            let emit = Emission { loss, until_loss };
            let stay = rng.run_length(leave[bad as usize]);
            return lossy(params.placing, ByPackets { leave, bad, stay, emit, rng });
        }
        let mean = [params.good_time, params.bad_time];
        let bad = rng.uniform() * (mean[0] + mean[1]) < mean[1];
        let until = Time::from_secs_f64(rng.exponential(mean[bad as usize]));
        lossy(params.placing, InTime { mean, bad, until, emit: Emission { loss, until_loss }, rng })
    }
}

/// Losses within the states, and the remaining run in each: a run continues when its state returns.
struct Emission {
    loss: [f64; 2],
    until_loss: [u64; 2],
}

impl Emission {
    fn loses(&mut self, bad: bool, rng: &mut Rng) -> bool {
        let left = &mut self.until_loss[bad as usize];
        if *left > 0 {
            *left -= 1;
            return false;
        }
        *left = rng.run_length(self.loss[bad as usize]);
        true
    }
}

struct ByPackets {
    /// Probability of leaving a state at a packet.
    leave: [f64; 2],
    bad: bool,
    /// Packets before the state is left.
    stay: u64,
    emit: Emission,
    rng: Rng,
}

impl Channel for ByPackets {
    fn loses(&mut self, _at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
        if self.stay == 0 {
            self.bad = !self.bad;
            self.stay = self.rng.run_length(self.leave[self.bad as usize]);
        } else {
            self.stay -= 1;
        }
        self.emit.loses(self.bad, &mut self.rng)
    }
}

struct InTime {
    /// Mean sojourns, s.
    mean: [f64; 2],
    bad: bool,
    /// When the state is left.
    until: Time,
    emit: Emission,
    rng: Rng,
}

impl InTime {
    /// The state at `at`, which is not in the known sojourn: drawn from the chain's distribution over the time
    /// between, whatever the number of sojourns in it. The remainder of the sojourn at `at` is again exponential.
    fn jump(&mut self, at: Time) {
        let [good, bad] = self.mean;
        let share = bad / (good + bad);
        let memory = libm::exp(-at.since(self.until).as_secs_f64() * (1.0 / good + 1.0 / bad));
        let now = if self.bad { 0.0 } else { 1.0 };
        self.bad = self.rng.uniform() < share + (now - share) * memory;
        self.until = at + Time::from_secs_f64(self.rng.exponential(self.mean[self.bad as usize]));
    }
}

impl Channel for InTime {
    fn loses(&mut self, at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
        if at > self.until {
            self.jump(at);
        }
        self.emit.loses(self.bad, &mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    fn channel(given: &[(&str, f64)]) -> Box<dyn Channel> {
        testing::channel(&GilbertElliott, given).on_air.unwrap()
    }

    /// Loss rate and correlation of packets `gap` apart that are neighbours.
    fn seen(given: &[(&str, f64)], gap: Time, n: usize) -> (f64, f64) {
        let mut channel = channel(given);
        let lost: Vec<f64> =
            (0..n as u64).map(|i| channel.loses(Time(i * gap.0), &Packet::EMPTY, 1000) as u64 as f64).collect();
        let p = lost.iter().sum::<f64>() / n as f64;
        let both = lost.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
        (p, (both - p * p) / (p - p * p))
    }

    /// Rate p = pi . e; covariance of neighbours = pi_G pi_B (e_B - e_G)^2 lambda, lambda the chain's memory over a step.
    fn expected(sojourn: [f64; 2], loss: [f64; 2], lambda: f64) -> (f64, f64) {
        let bad = sojourn[1] / (sojourn[0] + sojourn[1]);
        let p = loss[0] + bad * (loss[1] - loss[0]);
        (p, bad * (1.0 - bad) * (loss[1] - loss[0]) * (loss[1] - loss[0]) * lambda / (p - p * p))
    }

    #[test]
    fn rate_and_correlation_by_packets() {
        for (good, bad, loss) in [(100.0, 4.0, [0.0, 1.0]), (50.0, 10.0, [0.02, 0.5]), (4.0, 2.0, [0.3, 0.1])] {
            let given = [("good", good), ("bad", bad), ("loss_good", loss[0]), ("loss_bad", loss[1])];
            let (rate, memory) = seen(&given, Time::ZERO, 1_000_000);
            let (p, rho) = expected([good, bad], loss, 1.0 - 1.0 / good - 1.0 / bad);
            assert!(
                (rate - p).abs() < 0.02 * p + 1e-3 && (memory - rho).abs() < 0.01,
                "{given:?}: {rate} {p} {memory} {rho}"
            );
        }
    }

    #[test]
    fn rate_and_correlation_in_time() {
        for gap in [Time::millis(1), Time::millis(30), Time::secs(3)] {
            let given = [("clock", 1.0), ("good_time", 0.2), ("bad_time", 0.05), ("loss_bad", 0.8)];
            let (rate, memory) = seen(&given, gap, 400_000);
            let lambda = libm::exp(-gap.as_secs_f64() * 25.0);
            let (p, rho) = expected([0.2, 0.05], [0.0, 0.8], lambda);
            assert!((rate - p).abs() < 0.006 && (memory - rho).abs() < 0.01, "{gap}: {rate} {p} {memory} {rho}");
        }
    }
}
