//! Independent loss: every packet is lost with the same probability (Bernoulli), before the queue or on the air.
//!
//! The number of packets until the next loss is geometric, so one logarithm is spent per loss, not per packet.

use alloc::boxed::Box;

use crate::params::{Param, Unit, Values};
use crate::protocol::{Channel, ChannelKind, ChannelStages};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Independent loss.
pub struct RandomLoss;

const PARAMS: &[Param] = &[
    Param::new("rate", Unit::Fraction, 0.0, "paper 000 section II", "Probability that a packet is lost.")
        .within(0.0, 1.0),
    Param::new(
        "place",
        Unit::Choice(&["air", "kernel"]),
        0.0,
        "paper 000 section II",
        "`air`: lost after the link's time was spent; `kernel`: lost before the queue.",
    ),
];

impl ChannelKind for RandomLoss {
    fn name(&self) -> &'static str {
        "random_loss"
    }
    fn summary(&self) -> &'static str {
        "Independent loss of packets with one probability"
    }
    fn source(&self) -> &'static str {
        "paper 000 section II; netem's uniform loss"
    }
    fn params(&self) -> &'static [Param] {
        PARAMS
    }
    fn build(&self, values: &Values, mut rng: Rng) -> ChannelStages {
        let p = values.get(PARAMS, "rate");
        let stage: Option<Box<dyn Channel>> = Some(Box::new(Bernoulli { p, until_loss: rng.run_length(p), rng }));
        if values.get(PARAMS, "place") == 1.0 {
            ChannelStages { before: stage, ..ChannelStages::default() }
        } else {
            ChannelStages { on_air: stage, ..ChannelStages::default() }
        }
    }
}

struct Bernoulli {
    p: f64,
    until_loss: u64,
    rng: Rng,
}

impl Channel for Bernoulli {
    fn loses(&mut self, _at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
        if self.until_loss > 0 {
            self.until_loss -= 1;
            return false;
        }
        self.until_loss = self.rng.run_length(self.p);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_comes_out() {
        for (p, slack) in [(0.0, 0.0), (0.01, 0.001), (0.3, 0.005), (1.0, 0.0)] {
            let mut values = Values::default();
            values.set(&PARAMS[0], p);
            let mut channel = RandomLoss.build(&values, Rng::stream(1, "x")).on_air.unwrap();
            let n = 100_000;
            let lost = (0..n).filter(|_| channel.loses(Time::ZERO, &Packet::EMPTY, 100)).count();
            assert!((lost as f64 / n as f64 - p).abs() <= slack, "{p}: {lost}");
        }
    }
}
