//! Code that several protocols share.

pub(super) mod aggregation;
pub(super) mod delivery;
pub mod feedback;
pub(super) mod float;
pub(super) mod hystart;
pub mod load_factor;
pub(super) mod marks;
pub mod rate_header;
pub(super) mod usage;
pub(super) mod window;
pub mod xcp_router;
