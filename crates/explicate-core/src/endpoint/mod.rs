//! The two endpoints of a flow: [`SenderEndpoint`] and [`ReceiverEndpoint`].

pub mod receiver;
pub mod sender;

/// Both endpoints of a flow in a simulated network. If neither controller nor recovery need it, nothing is returned to the
/// sender and no connection is set up; between real hosts a handshake admits every flow.
pub fn ends(init: &FlowInit<'_>) -> (SenderEndpoint, ReceiverEndpoint) {
    let (sender, receiver) = (SenderEndpoint::new(init), ReceiverEndpoint::new(init));
    match init.recovery.build_one_way().filter(|_| !init.protocol.needs_feedback()) {
        Some(recovery) => (sender.one_way(recovery), receiver.one_way()),
        None => (sender, receiver),
    }
}

pub use receiver::{ReceiverEndpoint, ReceiverStats};
pub use sender::{
    Acks, Autotuning, Bursts, Event, FlowInit, Guarding, HostQueue, PARAMS, Params, SenderEndpoint, SenderStats,
    data_header_bytes, header_bytes, is_guarded, set_guarded,
};
