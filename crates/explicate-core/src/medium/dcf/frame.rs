//! Frames, and their transmissions on the medium.

use alloc::sync::Arc;

use super::air::Heard;
use crate::units::Time;

/// The kind of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    Rts,
    Cts,
    Data,
    Ack,
    /// An interferer's burst.
    Noise,
}

/// A frame on the medium.
pub(super) struct Transmission {
    pub(super) serial: u32,
    pub(super) frame: Frame,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) link: u32,
    /// Its length, its own rate and the rate of the data.
    pub(super) bytes: u32,
    pub(super) rate: u8,
    pub(super) data_rate: u8,
    pub(super) ends: Time,
    /// Stations that decode it defer until then.
    pub(super) silent_until: Time,
    /// The link's channel destroys it.
    pub(super) lost_on_channel: bool,
    pub(super) heard: Arc<[Heard]>,
}
