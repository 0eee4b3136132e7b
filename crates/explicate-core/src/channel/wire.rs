//! A wire: constant rate, nothing lost. The channel of a link that names none.

use crate::params::Param;
use crate::channel::{ChannelInit, ChannelKind, ChannelStages};

/// A wire.
pub struct Wire;

impl ChannelKind for Wire {
    fn name(&self) -> &'static str {
        "wire"
    }
    fn summary(&self) -> &'static str {
        "Constant rate, nothing lost"
    }
    fn source(&self) -> &'static str {
        "folklore"
    }
    fn params(&self) -> &'static [Param] {
        &[]
    }
    fn build(&self, _init: ChannelInit<'_>) -> ChannelStages {
        ChannelStages::default()
    }
}
