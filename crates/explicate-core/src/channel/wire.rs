//! A wire: constant rate, nothing lost. The channel of a link that names none.

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
