//! Which packets a channel affects, and where: parameters that channels share.

use alloc::boxed::Box;

use crate::channel::{Channel, ChannelStages, Disturbance, Disturbed};
use crate::params::{choices, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

choices! {
    /// Where packets are lost.
    pub enum Place { Air = "air", Kernel = "kernel" }
}
choices! {
    /// Which packets a channel affects.
    pub enum Of { All = "all", Data = "data", Acks = "acks" }
}

parameters! {
    /// Which packets a channel affects.
    pub struct Selection {
        /// Affected packets; the others pass unchanged.
        of: Of = Of::All, "paper Y section III";
    }
}
parameters! {
    /// Which packets a channel loses, and where.
    pub struct Placing {
        /// `air`: lost after the link's time was spent; `kernel`: lost before the queue.
        place: Place = Place::Air, "paper N section IV";
        /// Affected packets.
        selection: Selection = Selection::DEFAULT;
    }
}

impl Of {
    /// Whether a packet is one of these.
    pub(crate) fn has(self, packet: &Packet) -> bool {
        self == Of::All || (self == Of::Acks) == packet.is_ack()
    }
}

/// The stages of a process of losses.
pub(crate) fn lossy(placing: Placing, channel: impl Channel + 'static) -> ChannelStages {
    let of = placing.selection.of;
    let stage: Box<dyn Channel> = if of == Of::All { Box::new(channel) } else { Box::new(Only { of, channel }) };
    match placing.place {
        Place::Air => ChannelStages { on_air: Some(stage), ..ChannelStages::default() },
        Place::Kernel => ChannelStages { before: Some(stage), ..ChannelStages::default() },
    }
}

/// The stage of a disturbance.
pub(crate) fn disturbing(selection: Selection, channel: impl Disturbance + 'static) -> ChannelStages {
    let of = selection.of;
    let stage: Box<dyn Disturbance> = if of == Of::All { Box::new(channel) } else { Box::new(Only { of, channel }) };
    ChannelStages { after: Some(stage), ..ChannelStages::default() }
}

/// Selects a share of the packets independently: the runs between them are drawn.
pub(crate) struct Sometimes {
    rate: f64,
    until: u64,
    rng: Rng,
}

impl Sometimes {
    pub(crate) fn new(rate: f64, mut rng: Rng) -> Sometimes {
        Sometimes { rate, until: rng.run_length(rate), rng }
    }
    /// Whether the next packet is selected.
    pub(crate) fn happens(&mut self) -> bool {
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
    of: Of,
    channel: C,
}

impl<C: Channel> Channel for Only<C> {
    fn loses(&mut self, at: Time, packet: &Packet, wire_bytes: u32) -> bool {
        self.of.has(packet) && self.channel.loses(at, packet, wire_bytes)
    }
}

impl<C: Disturbance> Disturbance for Only<C> {
    fn disturb(&mut self, at: Time, packet: &Packet) -> Disturbed {
        if self.of.has(packet) { self.channel.disturb(at, packet) } else { Disturbed::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        for (of, lost) in [(Of::All, [true, true]), (Of::Data, [true, false]), (Of::Acks, [false, true])] {
            for place in [Place::Air, Place::Kernel] {
                let ChannelStages { before, on_air, .. } = lossy(Placing { place, selection: Selection { of } }, All);
                assert_eq!((before.is_some(), on_air.is_some()), (place == Place::Kernel, place == Place::Air));
                let mut stage = before.or(on_air).unwrap();
                assert_eq!([&data, &ack].map(|p| stage.loses(Time::ZERO, p, 100)), lost);
            }
        }
    }
}
