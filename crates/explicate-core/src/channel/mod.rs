//! Channels: what a link does to packets. To add one, write its file and add its line here.

use crate::protocol::ChannelKind;

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
    trace::Trace,
}
