//! Corruption: a share of the packets has bit errors, which no link detects; the receiver's checksum does, and the
//! receiver drops them.
//!
//! Unlike a lost packet, a damaged one crosses all further links and queues of its path. Set the share of packets, or
//! the probability of a bit error, with which longer packets are damaged more often.
//!
//! Deviations:
//! 1. The checksum is perfect, and routers read the congestion header as it was before the damage.

use alloc::string::{String, ToString};

use super::common::placing::{Selection, disturbing};
use crate::channel::{ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed};
use crate::params::{Fraction, Info, Values, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Corruption.
pub struct Corruption;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Share of damaged packets.
        rate: Fraction = 0.0, in 0.0..=1.0, "netem";
        /// Probability of a bit error.
        bit_error_rate: Fraction = 0.0, in 0.0..=1.0, "paper Y section I";
        /// Affected packets.
        selection: Selection = Selection::DEFAULT;
    }
}

impl ChannelKind for Corruption {
    const INFO: Info = Info {
        name: "corruption",
        summary: "Damages packets, which their receivers then drop",
        source: "netem `corrupt`; paper Y section I",
        params: Params::PARAMS,
    };

    fn check(&self, values: &Values) -> Result<(), String> {
        let params = Params::of(values);
        if params.rate > 0.0 && params.bit_error_rate > 0.0 {
            return Err("`rate` is per packet, `bit_error_rate` per bit; keep one".to_string());
        }
        Ok(())
    }
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let mut rng = init.rng;
        let params = Params::of(init.values);
        let per_bit = params.bit_error_rate > 0.0;
        let rate = if per_bit { params.bit_error_rate } else { params.rate };
        disturbing(params.selection, Damage { rate, per_bit, until: rng.run_length(rate), rng })
    }
}

struct Damage {
    rate: f64,
    per_bit: bool,
    /// Packets, or bits, before the next error.
    until: u64,
    rng: Rng,
}

impl Disturbance for Damage {
    fn disturb(&mut self, _at: Time, packet: &Packet) -> Disturbed {
        let units = if self.per_bit { 8 * packet.ip_len as u64 } else { 1 };
        let damaged = self.until < units;
        // Further errors in the packet make no difference, and runs have no memory.
        self.until = if damaged { self.rng.run_length(self.rate) } else { self.until - units };
        Disturbed { damaged, ..Disturbed::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_packets_are_damaged_more_often() {
        let mut channel = crate::testing::channel(&Corruption, &[("bit_error_rate", 1e-4)]).after.unwrap();
        let mut packet = Packet::EMPTY;
        let mut damaged = [0.0; 2];
        let n = 100_000;
        for i in 0..2 * n {
            packet.ip_len = [40, 1000][i % 2];
            damaged[i % 2] += channel.disturb(Time::ZERO, &packet).damaged as u64 as f64 / n as f64;
        }
        for (found, bits) in damaged.into_iter().zip([320.0, 8000.0]) {
            let expected = 1.0 - libm::pow(1.0 - 1e-4, bits);
            assert!((found - expected).abs() < 0.005, "{bits} bits: {found}, expected {expected}");
        }
    }
}
