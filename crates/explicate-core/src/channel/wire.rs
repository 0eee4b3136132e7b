//! A wire: constant rate, no losses. The default channel of a link.

use crate::channel::{ChannelInit, ChannelKind, ChannelStages};
use crate::params::Info;

/// A wire.
pub struct Wire;

impl ChannelKind for Wire {
    const INFO: Info = Info { name: "wire", summary: "Constant rate, nothing lost", source: "folklore", params: &[] };

    fn build(&self, _init: ChannelInit<'_>) -> ChannelStages {
        ChannelStages::default()
    }
}
