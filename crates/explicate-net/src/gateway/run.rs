//! `explicated gateway run`.

use std::sync::Arc;
use std::time::Duration;

use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use quinn_proto::HashedConnectionIdGenerator;
use tokio::net::TcpListener;

use super::config::Config;
use super::identity::Identity;
use super::intercept;
use super::peers::Gateway;
use super::status;
use super::transport::Transport;
use crate::error::{Context, Error, Result};
use crate::sys;

/// Bytes of the tunnel's socket buffers.
const BUFFERS: usize = 8 << 20;
/// How often the signal to stop is looked for.
const TURN: Duration = Duration::from_millis(50);

/// Runs a gateway until a signal.
pub fn run(config: Config) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.or_fail(|| "start a runtime".to_string())?.block_on(serve(config))
}

async fn serve(config: Config) -> Result<()> {
    let identity = Identity::load(&config.key)?;
    let transport = Transport::new(config.limits);
    let endpoint = endpoint(&config, &identity, &transport)?;
    let listen = |ipv6| {
        let port = config.site.intercept_port;
        intercept::listen(port, ipv6).or_fail(|| format!("listen for intercepted connections at port {port}"))
    };
    let listeners = if config.site.interfaces.is_empty() { Vec::new() } else { vec![listen(false)?, listen(true)?] };
    let status = status::listen(&config.status)?;
    // All sockets are open. Connections with addresses of other hosts need this one.
    sys::keep_only_raw().or_fail(|| "drop privileges".to_string())?;
    let gateway = Gateway::new(config, identity, endpoint.clone(), transport)?;
    for index in 0..gateway.peers.len() {
        tokio::spawn(gateway.clone().keep_calling(index));
    }
    tokio::spawn(gateway.clone().answer_calls());
    tokio::spawn(status::serve(gateway.clone(), status));
    for listener in listeners {
        tokio::spawn(accept(gateway.clone(), listener));
    }
    while !sys::stopped() {
        tokio::time::sleep(TURN).await;
    }
    endpoint.close(0u32.into(), b"stopped");
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    Ok(())
}

fn endpoint(config: &Config, identity: &Identity, transport: &Transport) -> Result<Endpoint> {
    let what = || format!("open the tunnel's socket at {}", config.listen);
    let socket = std::net::UdpSocket::bind(config.listen).or_fail(what)?;
    sys::grow_buffers(std::os::fd::AsFd::as_fd(&socket), BUFFERS).or_fail(what)?;
    let peers = config.peers.iter().filter_map(super::config::Peer::public_key).collect();
    let tls = identity.server(peers)?;
    let server = Arc::into_inner(transport.server(tls, config.listen))
        .ok_or_else(|| Error::Failed("cannot prepare the tunnel: its configuration is shared".to_string()))?;
    let mut own = EndpointConfig::new(Arc::new(identity.reset_key.clone()));
    let cid_key = identity.cid_key;
    own.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(cid_key)));
    Endpoint::new(own, Some(server), socket, Arc::new(TokioRuntime)).or_fail(what)
}

/// Accepts intercepted connections, for ever.
async fn accept(gateway: Arc<Gateway>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            // The local address of an intercepted connection is its destination.
            Ok((tcp, client)) => match tcp.local_addr() {
                Ok(destination) => drop(tokio::spawn(gateway.clone().intercepted(tcp, client, destination))),
                Err(_) => intercept::reset(tcp),
            },
            Err(reason) => {
                tracing::warn!(%reason, "cannot accept a connection");
                tokio::time::sleep(TURN).await;
            }
        }
    }
}
