//! The two endpoints of a flow: [`SenderEndpoint`] and [`ReceiverEndpoint`].

pub mod receiver;
pub mod sender;

pub use receiver::{ReceiverEndpoint, ReceiverStats};
pub use sender::{
    Event, FlowInit, Guarding, PARAMS, Params, SenderEndpoint, SenderStats, data_header_bytes, header_bytes,
    is_guarded, set_guarded,
};
