//! Whom a channel affects, and where: parameters that channels share.

use alloc::boxed::Box;

use crate::channel::{Channel, ChannelStages, Disturbance, Disturbed};
use crate::params::{Param, Unit, Values};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Before the queue, or on the air.
pub const PLACE: Param = Param::new(
    "place",
    Unit::Choice(&["air", "kernel"]),
    0.0,
    "paper N section IV",
    "`air`: lost after the link's time was spent; `kernel`: lost before the queue.",
);

/// Whose packets.
pub const OF: Param = Param::new(
    "of",
    Unit::Choice(&["all", "data", "acks"]),
    0.0,
    "paper Y section III",
    "Which packets it affects; the others pass untouched.",
);

/// Whether a packet is of those that [`OF`] names.
pub(super) fn affects(values: &Values, packet: &Packet) -> bool {
    let of = values.get(&[OF], OF.name);
    of == 0.0 || (of == 2.0) == packet.is_ack()
}

/// The stages of a process of losses, by [`PLACE`] and [`OF`].
pub(super) fn lossy(values: &Values, channel: impl Channel + 'static) -> ChannelStages {
    let of = values.get(&[OF], OF.name);
    let stage: Box<dyn Channel> =
        if of == 0.0 { Box::new(channel) } else { Box::new(Only { acks: of == 2.0, channel }) };
    if values.get(&[PLACE], PLACE.name) == 1.0 {
        ChannelStages { before: Some(stage), ..ChannelStages::default() }
    } else {
        ChannelStages { on_air: Some(stage), ..ChannelStages::default() }
    }
}

/// The stage of a disturbance, by [`OF`].
pub(super) fn disturbing(values: &Values, channel: impl Disturbance + 'static) -> ChannelStages {
    let of = values.get(&[OF], OF.name);
    let stage: Box<dyn Disturbance> =
        if of == 0.0 { Box::new(channel) } else { Box::new(Only { acks: of == 2.0, channel }) };
    ChannelStages { after: Some(stage), ..ChannelStages::default() }
}

/// Happens to a share of the packets, each like any other: runs between them are drawn.
pub(super) struct Sometimes {
    rate: f64,
    until: u64,
    rng: Rng,
}

impl Sometimes {
    pub(super) fn new(rate: f64, mut rng: Rng) -> Sometimes {
        Sometimes { rate, until: rng.run_length(rate), rng }
    }
    /// Whether it happens to the next packet.
    pub(super) fn happens(&mut self) -> bool {
        if self.until > 0 {
            self.until -= 1;
            return false;
        }
        self.until = self.rng.run_length(self.rate);
        true
    }
}

/// A channel for data or for acknowledgements alone.
struct Only<C> {
    acks: bool,
    channel: C,
}

impl<C: Channel> Channel for Only<C> {
    fn loses(&mut self, at: Time, packet: &Packet, wire_bytes: u32) -> bool {
        packet.is_ack() == self.acks && self.channel.loses(at, packet, wire_bytes)
    }
}

impl<C: Disturbance> Disturbance for Only<C> {
    fn disturb(&mut self, at: Time, packet: &Packet) -> Disturbed {
        if packet.is_ack() == self.acks { self.channel.disturb(at, packet) } else { Disturbed::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Values;
    use crate::wire::flag;

    /// Loses every packet.
    struct All;
    impl Channel for All {
        fn loses(&mut self, _at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
            true
        }
    }

    #[test]
    fn data_and_acknowledgements_apart_before_the_queue_and_on_the_air() {
        let data = Packet::EMPTY;
        let mut ack = Packet::EMPTY;
        ack.transport.set_flags(flag::ACK);
        for (of, lost) in [(0.0, [true, true]), (1.0, [true, false]), (2.0, [false, true])] {
            for place in [0.0, 1.0] {
                let mut values = Values::default();
                values.set(&OF, of);
                values.set(&PLACE, place);
                let ChannelStages { before, on_air, .. } = lossy(&values, All);
                assert_eq!((before.is_some(), on_air.is_some()), (place == 1.0, place == 0.0));
                let mut stage = before.or(on_air).unwrap();
                assert_eq!([&data, &ack].map(|p| stage.loses(Time::ZERO, p, 100)), lost);
            }
        }
    }
}
