//! Channels: effects of a link on packets. To add one, write its file and add its line here.

use alloc::boxed::Box;
use alloc::string::String;

use crate::api::Probe;
use crate::params::{Info, Values};
use crate::rng::Rng;
use crate::units::{Rate, Time};
use crate::wire::Packet;

pub mod common;

macro_rules! channels {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every channel, in the order of this list.
        pub static CHANNELS: &[&AnyChannelKind] = &[$(&$module::$unit),*];
    };
}

channels! {
    wire::Wire,
    random_loss::RandomLoss,
    burst_loss::BurstLoss,
    gilbert_elliott::GilbertElliott,
    fading::Fading,
    corruption::Corruption,
    duplication::Duplication,
    reordering::Reordering,
    jitter::Jitter,
    rate_steps::RateSteps,
    outages::Outages,
    trace::Trace,
}

/// A channel: one file, registered by one line in `channel/mod.rs`.
pub trait ChannelKind: Sync {
    /// Name, summary, source and parameters.
    const INFO: Info;
    /// Explains, in a sentence, why values are invalid together although each is within its bounds.
    fn check(&self, values: &Values) -> Result<(), String> {
        let _ = values;
        Ok(())
    }
    /// The stages that this channel adds to a link.
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages;
    /// Reports the predictions of its model for packets like this one, sent back to back: `packet_loss`, the
    /// probability of a loss, and other quantities in closed form. By default nothing.
    fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>) {
        let _ = (values, packet, put);
    }
    /// Reports the same quantities, measured over `trials` drawn packets.
    fn observe(&self, init: ChannelInit<'_>, packet: &Packet, trials: u64, put: Probe<'_>) {
        let gap = Time::from_secs_f64(packet.ip_len as f64 / init.rate.bytes_per_sec());
        let mut stages = self.build(init);
        let (mut now, mut lost) = (Time::ZERO, 0u64);
        for _ in 0..trials {
            now += gap;
            let pass = |stage: &mut Option<Box<dyn Channel>>| {
                stage.as_mut().is_some_and(|channel| channel.loses(now, packet, packet.ip_len as u32))
            };
            lost += (pass(&mut stages.before) || pass(&mut stages.on_air)) as u64;
        }
        put("packet_loss", lost as f64 / trials as f64);
    }
}

/// Any [`ChannelKind`].
pub type AnyChannelKind = dyn ChannelKindObject;

mod object {
    use super::*;
    use crate::api::object::described;

    /// A [`ChannelKind`] as an object; other crates cannot name it.
    pub trait ChannelKindObject: Sync {
        described!();
        fn check(&self, values: &Values) -> Result<(), String>;
        fn build(&self, init: ChannelInit<'_>) -> ChannelStages;
        fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>);
        fn observe(&self, init: ChannelInit<'_>, packet: &Packet, trials: u64, put: Probe<'_>);
    }
    impl<K: ChannelKind> ChannelKindObject for K {
        fn info(&self) -> &'static Info {
            &K::INFO
        }
        fn check(&self, values: &Values) -> Result<(), String> {
            ChannelKind::check(self, values)
        }
        fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
            ChannelKind::build(self, init)
        }
        fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>) {
            ChannelKind::predict(self, values, packet, put);
        }
        fn observe(&self, init: ChannelInit<'_>, packet: &Packet, trials: u64, put: Probe<'_>) {
            ChannelKind::observe(self, init, packet, trials, put);
        }
    }
}
use object::ChannelKindObject;

/// Arguments for making a channel.
pub struct ChannelInit<'a> {
    /// Values of the parameters of [`ChannelKind::INFO`].
    pub values: &'a Values,
    /// Nominal rate of the line.
    pub rate: Rate,
    /// The random stream of the channel.
    pub rng: Rng,
}

/// The stages of a channel, in the order in which a packet passes them; all are optional.
#[derive(Default)]
pub struct ChannelStages {
    /// Loses packets before the queue (in a kernel or driver).
    pub before: Option<Box<dyn Channel>>,
    /// Increases the length of packets on the line over that of their IP datagrams.
    pub coding: Option<Box<dyn Coding>>,
    /// Replaces the link's constant rate.
    pub service: Option<Box<dyn ServiceCurve>>,
    /// Loses packets that have been sent, in order of departure (on the link, whose time is spent).
    pub on_air: Option<Box<dyn Channel>>,
    /// Delays, duplicates or damages packets that were not lost. Departures of the port are then polled.
    pub after: Option<Box<dyn Disturbance>>,
}

/// A process of losses.
pub trait Channel: Send {
    /// Whether a packet of `wire_bytes` that passes at `at` is lost. Called once per packet, in order.
    fn loses(&mut self, at: Time, packet: &Packet, wire_bytes: u32) -> bool;
}

/// Adds bytes to packets on the line, for example for error correction. Queue and controllers still count IP bytes.
pub trait Coding: Send {
    /// Bytes on the line of a packet that has `bytes` without this coding.
    fn wire_bytes(&mut self, packet: &Packet, bytes: u32) -> u32;
    /// IP bytes per byte on the line, for long data packets. The capacity to configure is the rate times this.
    fn efficiency(&self) -> f64;
}

/// The fate of a packet that arrives.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Disturbed {
    /// It arrives later by this time.
    pub late: Time,
    /// A copy of it arrives this time after its departure and the link's delay.
    pub copy: Option<Time>,
    /// It has bit errors; its receiver drops it.
    pub damaged: bool,
}

/// Delays, duplicates or damages packets.
pub trait Disturbance: Send {
    /// The fate of a packet that departs at `at`. Called once per packet, in order.
    fn disturb(&mut self, at: Time, packet: &Packet) -> Disturbed;
}

/// A cumulative service curve known in advance.
pub trait ServiceCurve: Send {
    /// When the last byte of a packet of `bytes` leaves that may start at `start` (not before an earlier packet's
    /// finish). `idle` states that the queue was empty, so unused service before `start` is lost.
    fn finish(&mut self, start: Time, bytes: u32, idle: bool) -> Time;
    /// Bytes that the curve offers in `(from, to]`.
    fn offered(&self, from: Time, to: Time) -> f64;
    /// The capacity that an operator would configure, bytes/s: the long-term mean, or the rate of a line while it
    /// works.
    fn mean_rate(&self) -> f64;
}
