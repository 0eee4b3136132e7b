//! Losses in bursts: each event takes a fixed number of consecutive packets, of one flow or of the link.
//!
//! The processes B1 to B4 of paper D: the loss rate counts all lost packets, so events are rarer with longer bursts.
//! A burst takes the packets of the flow that it hits, including retransmissions, while packets of other flows pass;
//! the next event may hit any packet outside a burst. The run until the next event is geometric.
//!
//! | symbol | field | unit | value | where |
//! | --- | --- | --- | --- | --- |
//! | X | `length` | packets | 1 to 4 | section 7.4, figure 6 |
//! | loss rate | `rate` | of packets | 0 | section 7.4: events times X |
//! | | `per_flow` | | true | section 7.4, the text |
//!
//! Deviations:
//! 1. The caption of figure 6 has bursts "on the link", the text "on a flow". The text is the default, `per_flow =
//!    false` follows the caption.
//! 2. A flow's burst continues after a pause of the flow: it ends with its X-th packet. Data and acknowledgements of
//!    a flow that cross the same link have separate bursts.

use alloc::collections::BTreeMap;

use super::common::placing::{Placing, lossy};
use crate::api::Probe;
use crate::channel::{Channel, ChannelInit, ChannelKind, ChannelStages};
use crate::params::{Flag, Fraction, Info, Packets, Values, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Losses in bursts.
pub struct BurstLoss;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Share of all packets that is lost.
        rate: Fraction = 0.0, in 0.0..=1.0, "paper D section 7.4";
        /// Consecutive packets lost per event.
        length: Packets = 4.0, in 1.0..=1e6, "paper D section 7.4";
        /// A burst takes packets of one flow only.
        per_flow: Flag = true, "paper D section 7.4";
        /// Affected packets, and where they are lost.
        placing: Placing = Placing::DEFAULT;
    }
}

impl ChannelKind for BurstLoss {
    const INFO: Info = Info {
        name: "burst_loss",
        summary: "Each event takes a fixed number of consecutive packets, of a flow or of the link",
        source: "paper D section 7.4 (B1 to B4)",
        params: Params::PARAMS,
    };

    fn check(&self, values: &Values) -> Result<(), alloc::string::String> {
        let length = Params::of(values).length;
        if length % 1.0 != 0.0 {
            return Err(alloc::format!("`length` is {length}; it has to be a whole number of packets"));
        }
        Ok(())
    }
    fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>) {
        let params = Params::of(values);
        put("packet_loss", if params.placing.selection.of.has(packet) { params.rate } else { 0.0 });
    }
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let params = Params::of(init.values);
        let (rate, length) = (params.rate, params.length);
        let mut rng = init.rng;
        // Of 1 / rate packets `length` are lost and the rest get through: the probability q of an event at a packet that no
        // burst takes has (1 - q) / q = length (1 - rate) / rate.
        let event = rate / (rate + length * (1.0 - rate));
        let until_event = rng.run_length(event);
        let (length, per_flow) = (length as u32, params.per_flow);
        lossy(params.placing, Bursts { event, length, per_flow, until_event, left: BTreeMap::new(), rng })
    }
}

struct Bursts {
    /// Probability of an event at a packet that no burst takes.
    event: f64,
    length: u32,
    per_flow: bool,
    until_event: u64,
    /// Remaining packets of bursts, by flow and direction, without finished bursts.
    left: BTreeMap<(u32, bool), u32>,
    rng: Rng,
}

impl Channel for Bursts {
    fn loses(&mut self, _at: Time, packet: &Packet, _wire_bytes: u32) -> bool {
        let of = if self.per_flow { (packet.transport.flow(), packet.is_ack()) } else { (0, false) };
        if let Some(left) = self.left.get_mut(&of) {
            *left -= 1;
            if *left == 0 {
                self.left.remove(&of);
            }
            return true;
        }
        if self.until_event > 0 {
            self.until_event -= 1;
            return false;
        }
        self.until_event = self.rng.run_length(self.event);
        if self.length > 1 {
            self.left.insert(of, self.length - 1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    fn channel(rate: f64, length: f64, per_flow: f64) -> Box<dyn Channel> {
        let given = [("rate", rate), ("length", length), ("per_flow", per_flow)];
        testing::channel(&BurstLoss, &given).on_air.unwrap()
    }

    /// What becomes of n packets of five flows in turn.
    fn losses(channel: &mut dyn Channel, n: usize) -> Vec<bool> {
        let mut packet = Packet::EMPTY;
        let mut one = |i: usize| {
            packet.transport.set_flow(i as u32 % 5);
            channel.loses(Time::ZERO, &packet, 1000)
        };
        (0..n).map(&mut one).collect()
    }

    #[test]
    fn the_rate_counts_every_packet() {
        for length in [1.0, 2.0, 3.0, 4.0] {
            for per_flow in [0.0, 1.0] {
                for rate in [0.01, 0.1, 0.4] {
                    let n = 400_000;
                    let lost = losses(&mut *channel(rate, length, per_flow), n);
                    let found = lost.iter().filter(|l| **l).count() as f64 / n as f64;
                    // Losses come in bursts: the standard error grows with the root of their length.
                    let slack = 4.0 * libm::sqrt(rate * (1.0 - rate) * length / n as f64);
                    assert!((found - rate).abs() < slack, "B{length}, {rate}: {found}");
                }
            }
        }
        assert!(losses(&mut *channel(0.0, 4.0, 1.0), 1000).iter().all(|l| !l));
        assert!(losses(&mut *channel(1.0, 4.0, 1.0), 1000).iter().all(|l| *l));
    }

    #[test]
    fn a_burst_takes_its_length_and_its_flow() {
        let lengths = |per_flow: f64| -> Vec<usize> {
            let lost = losses(&mut *channel(0.002, 4.0, per_flow), 200_000);
            let streams: Vec<Vec<bool>> = if per_flow == 1.0 {
                (0..5).map(|flow| lost.iter().copied().skip(flow).step_by(5).collect()).collect()
            } else {
                alloc::vec![lost]
            };
            let runs = streams.iter().flat_map(|s| s.split(|l| !l).map(<[bool]>::len));
            runs.filter(|n| *n > 0).collect()
        };
        for per_flow in [0.0, 1.0] {
            let lengths = lengths(per_flow);
            let whole = lengths.iter().filter(|n| **n == 4).count();
            assert!(lengths.iter().all(|n| n % 4 == 0) && whole * 10 > lengths.len() * 9, "{lengths:?}");
        }
    }
}
