//! QUIC endpoints for transfers: the gateway's headers, laws and keys, without a port of their own.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use explicate_core::registry;
use explicate_core::units::Rate;
use quinn::{AsyncUdpSocket, ConnectionError, Endpoint, EndpointConfig, Runtime, TokioRuntime, VarInt};
use quinn_proto::HashedConnectionIdGenerator;

use super::probed::Probed;
use crate::address;
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::gateway::config::Limits;
use crate::gateway::controller::ControllerConfig;
use crate::gateway::identity::Identity;
use crate::gateway::socket::{Socket, Tunnels};
use crate::gateway::transport::Transport;
use crate::sys;

/// Bytes of the socket's buffers.
const BUFFERS: usize = 8 << 20;
/// Time for a close to leave.
const CLOSING: Duration = Duration::from_millis(100);
/// How often commands look for signals.
pub const TURN: Duration = Duration::from_millis(50);

/// Why an end closes a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Close {
    /// All is done.
    Done = 0,
    /// This end was stopped.
    Stopped = 1,
    /// The sender is not known, and did not show the secret of the invitation.
    NotPaired = 2,
    /// The peer does what this version does not understand.
    Nonsense = 3,
}

impl From<Close> for VarInt {
    fn from(close: Close) -> VarInt {
        VarInt::from_u32(close as u32)
    }
}

/// The laws of a transfer: those of this protocol, or of the protocol of this preset.
pub fn controller_config(protocol: &str, air_loss: f64) -> Result<ControllerConfig> {
    let known = registry::resolve(protocol).ok().map(|resolved| resolved.protocol);
    let followed = known.filter(|protocol| ControllerConfig::can_follow(*protocol));
    followed.map(|protocol| ControllerConfig::new(protocol, air_loss)).ok_or_else(|| {
        let names = registry::protocols().filter(|protocol| ControllerConfig::can_follow(*protocol));
        let names: Vec<&str> = names.map(|protocol| protocol.name()).collect();
        Error::Input(format!("QUIC follows {}, not `{protocol}`, which only `explicated lab` runs", names.join(", ")))
    })
}

/// What an endpoint stands on.
pub struct Ground {
    /// QUIC's own configuration.
    pub config: EndpointConfig,
    /// Where its datagrams leave and arrive.
    pub socket: Arc<dyn AsyncUdpSocket>,
    /// What runs its tasks.
    pub runtime: Arc<dyn Runtime>,
    /// What its connections add to datagrams.
    pub tunnels: Arc<Tunnels>,
}

/// An endpoint at this address, which may answer probes, and what makes its connections.
pub fn open(
    bind: SocketAddr,
    identity: &Identity,
    controller: ControllerConfig,
    rate: Rate,
    limits: Limits,
    probed: Option<Arc<Probed>>,
) -> Result<(Endpoint, Transport)> {
    let what = || format!("open the socket at {bind}");
    let socket = address::listen(bind).or_fail(what)?;
    sys::grow_buffers(socket.as_fd(), BUFFERS).or_fail(what)?;
    let mut config = EndpointConfig::new(Arc::new(identity.reset_key.clone()));
    let cid_key = identity.cid_key;
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(cid_key)));
    let socket = TokioRuntime.wrap_udp_socket(socket).or_fail(what)?;
    // Only a receiver answers probes, and only senders move.
    let numbers = probed.is_some().then(|| HashedConnectionIdGenerator::from_key(cid_key));
    let tunnels = Arc::new(numbers.map_or_else(Tunnels::default, Tunnels::moving));
    let ground = Ground { config, socket, runtime: Arc::new(TokioRuntime), tunnels };
    over(ground, controller, rate, limits, probed).or_fail(what)
}

/// The same over this ground.
pub fn over(
    ground: Ground,
    controller: ControllerConfig,
    rate: Rate,
    limits: Limits,
    probed: Option<Arc<Probed>>,
) -> io::Result<(Endpoint, Transport)> {
    let Ground { config, socket, runtime, tunnels } = ground;
    let transport = Transport::new(limits, controller, rate, Clock::start(), tunnels.clone()).moving();
    let mut socket = Socket::new(socket, None, tunnels);
    if let Some(probed) = probed {
        socket = socket.answering(Box::new(move |from, bytes| probed.answer(from, bytes)));
    }
    Ok((Endpoint::new_with_abstract_socket(config, None, Arc::new(socket), runtime)?, transport))
}

/// Closes an endpoint, and waits until that has left. It is not repeated: a peer that misses it ends the connection after its timeout.
pub async fn close(endpoint: &Endpoint, why: Close) {
    endpoint.close(why.into(), b"");
    let _ = tokio::time::timeout(CLOSING, endpoint.wait_idle()).await;
}

/// What the end of a connection means to the sender's user.
pub fn sentence(reason: &ConnectionError, peer: &str) -> String {
    /// Errors of TLS (RFC 9001 section 4.8).
    const TLS: std::ops::Range<u64> = 0x100..0x200;
    let unpaired =
        "the receiver does not know this sender: run `recv` with --pair there, and `send` with the line that it prints";
    match reason {
        ConnectionError::ApplicationClosed(closed) if closed.error_code == Close::NotPaired.into() => {
            format!("{peer}: the line for --pair was used already, or is of an earlier run of `recv`")
        }
        ConnectionError::ApplicationClosed(closed) if closed.error_code == Close::Stopped.into() => {
            format!("{peer}: the receiver was stopped")
        }
        ConnectionError::ConnectionClosed(closed) if TLS.contains(&u64::from(closed.error_code)) => {
            format!("{peer}: {unpaired}")
        }
        ConnectionError::TransportError(error) if TLS.contains(&u64::from(error.code)) => format!(
            "{peer} has another key than the one that it was paired with: it is another host, or its key was replaced; nothing was sent"
        ),
        ConnectionError::ConnectionClosed(closed)
            if closed.error_code == quinn_proto::TransportErrorCode::CONNECTION_REFUSED =>
        {
            format!("{peer}: the receiver has as many connections as it takes (its option --flows); try again later")
        }
        ConnectionError::ConnectionClosed(closed)
            if closed.error_code == quinn_proto::TransportErrorCode::INVALID_TOKEN =>
        {
            format!("{peer}: the receiver was started anew during the call, or the call took too long")
        }
        ConnectionError::TimedOut => format!("{peer} does not answer"),
        other => format!("{peer}: {other}"),
    }
}
