//! Channels: what a link does to packets. To add one, write its file and add its line here.

use crate::protocol::ChannelKind;

pub mod bit_chain;
mod pieces;
pub mod placing;
pub mod reed_solomon;
pub mod symbol_error;

macro_rules! channels {
    ($($module:ident::$unit:ident,)*) => {
        $(pub mod $module;)*
        /// Every channel, in the order of this list.
        pub static CHANNELS: &[&dyn ChannelKind] = &[$(&$module::$unit),*];
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
