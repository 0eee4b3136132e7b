//! A hub between two peers on loopback, which are clients and servers of QUIC without gateways.

use std::net::SocketAddr;

use explicate_core::registry;
use explicate_core::units::Rate;
use quinn::{ClientConfig, Connection, Endpoint, ReadError, ServerConfig, TransportConfig};

use super::super::config::Limits;
use super::super::controller::ControllerConfig;
use super::super::credit;
use super::super::identity::{Identity, keygen};
use super::super::open::List;
use super::super::preface::Preface;
use super::*;
use crate::clock::Clock;
use crate::patience::PATIENCE;

/// Streams of two peers that a hub joins, at the peers.
type Ends = [(SendStream, RecvStream); 2];

fn identity() -> Identity {
    let folder =
        std::env::temp_dir().join(format!("explicate-relay-{}-{}", std::process::id(), crate::sys::monotonic()));
    std::fs::create_dir_all(&folder).unwrap();
    let _ = keygen(&folder.join("key"));
    let identity = Identity::load(&folder.join("key")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    identity
}

/// Two ends of a connection, and their endpoints.
async fn connected() -> (Connection, Connection, [Endpoint; 2]) {
    let identity = identity();
    let transport = Arc::new(TransportConfig::default());
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut server = ServerConfig::with_crypto(Arc::new(identity.server(vec![identity.public]).unwrap()));
    server.transport_config(transport.clone());
    let mut client = ClientConfig::new(Arc::new(identity.client(identity.public).unwrap()));
    client.transport_config(transport);
    let (server, from) = (Endpoint::server(server, local).unwrap(), Endpoint::client(local).unwrap());
    let connecting = from.connect_with(client, server.local_addr().unwrap(), "gateway").unwrap();
    let incoming = async { server.accept().await.unwrap().await.unwrap() };
    let (client, accepted) = tokio::join!(connecting, incoming);
    (client.unwrap(), accepted, [server, from])
}

/// The tunnel of a connection at the hub; the peer has greeted.
async fn tunnel(hub: &Connection, peer: &Connection, limits: Limits) -> Arc<Tunnel> {
    let config = ControllerConfig::new(registry::protocol("xcp").unwrap(), 0.0);
    let tunnel = Tunnel::new(1, &config, Rate::mbps(20), Clock::start());
    let greeted = tokio::join!(credit::greet(hub, None, limits), credit::greet(peer, None, limits));
    let (greeted, mut of_peer) = (greeted.0.unwrap(), greeted.1.unwrap());
    tunnel.credits.begin(hub, &greeted, limits);
    let (follows, credits) = (tunnel.clone(), Arc::new(credit::Credits::default()));
    let mut greeted = greeted;
    tokio::spawn(async move { follows.credits.follow(&follows.turns, &mut greeted).await });
    tokio::spawn(async move { credits.follow(&Default::default(), &mut of_peer).await });
    tunnel
}

/// What becomes of two joined streams when the peers do this with them, what the hub has carried, and how many streams went beyond
/// their credit.
fn joined<F: Future<Output = ()>>(peers: impl FnOnce(Ends) -> F) -> ((Carried, bool), u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limits = Limits { connections: 4, ..Limits::default() };
    let all = async {
        let ((near, hub_near, _a), (hub_far, far, _b)) = (connected().await, connected().await);
        let tunnels = [tunnel(&hub_near, &near, limits).await, tunnel(&hub_far, &far, limits).await];
        let (mut out, home) = near.open_bi().await.unwrap();
        out.write_all(b"preface").await.unwrap();
        let mut inward = hub_near.accept_bi().await.unwrap();
        inward.1.read_exact(&mut [0; 7]).await.unwrap();
        let mut onward = hub_far.open_bi().await.unwrap();
        onward.0.write_all(b"preface").await.unwrap();
        let mut end = far.accept_bi().await.unwrap();
        end.1.read_exact(&mut [0; 7]).await.unwrap();
        let lane = || Lane::new([10, 1, 0, 2].into());
        let account = tunnels[0].credits.accept(inward.0.id().into(), u32::MAX).unwrap();
        let leg = Leg { streams: inward, tunnel: tunnels[0].clone(), account, lane: lane() };
        let account = tunnels[1].credits.accept(onward.0.id().into(), u32::MAX).unwrap();
        let beyond = Leg { streams: onward, tunnel: tunnels[1].clone(), account, lane: lane() };
        let preface = Preface { destination: "10.2.0.2:80".parse().unwrap(), client: "10.1.0.2:4000".parse().unwrap() };
        let (_, open) = List::default().add(&preface, "hub");
        let ended = tokio::join!(between(leg, beyond, &open), peers([(out, home), end])).0;
        (ended, tunnels[0].credits.beyond())
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, all).await }).expect("an end")
}

/// Writes until nothing more is taken for some time, and no more than the credit that every stream has.
async fn fill(stream: &mut SendStream) {
    const PAUSE: Duration = Duration::from_millis(300);
    let _ = tokio::time::timeout(PAUSE, stream.write_all(&[7; 16 << 10])).await;
}

#[test]
fn a_hub_passes_on_resets_of_streams_that_nobody_reads() {
    let near = joined(async |[mut near, mut far]: Ends| {
        fill(&mut near.0).await;
        abort(&mut near.0, &mut near.1, Cause::Reset);
        assert_eq!(far.1.received_reset().await.unwrap(), Some(Cause::Reset.into()));
        assert_eq!(far.0.stopped().await.unwrap(), Some(Cause::Reset.into()));
    });
    let far = joined(async |[mut near, mut far]: Ends| {
        fill(&mut near.0).await;
        abort(&mut far.0, &mut far.1, Cause::Refused);
        assert_eq!(near.0.stopped().await.unwrap(), Some(Cause::Reset.into()));
        assert_eq!(near.1.read_chunk(9, true).await, Err(ReadError::Reset(Cause::Reset.into())));
    });
    assert!(!near.0.1 && !far.0.1, "{near:?} {far:?}");
    assert_eq!((near.1, far.1), (0, 0));
}

#[test]
fn a_hub_delivers_what_was_closed_behind() {
    let bytes = vec![5; 16 << 10];
    let ((carried, orderly), _) = joined(async |[mut near, mut far]: Ends| {
        let sends = async {
            near.0.write_all(&bytes).await.unwrap();
            near.0.finish().unwrap();
            // Its host is gone: nothing can come back any more.
            near.1.stop(Cause::Reset.into()).unwrap();
            near
        };
        let reads = async { far.1.read_to_end(1 << 20).await.unwrap() };
        let (_near, read) = tokio::join!(sends, reads);
        assert!(read == bytes, "{} bytes", read.len());
        assert_eq!(far.0.stopped().await.unwrap(), Some(Cause::Reset.into()));
    });
    assert_eq!((carried.received, orderly), (16 << 10, false));
}

/// A peer with a valid key sends more than its credit: its stream is reset at once, also while the host at this end does not read.
#[test]
fn a_stream_beyond_its_credit_is_reset_and_counted() {
    let (ended, beyond) = joined(async |[mut near, _far]: Ends| {
        let written = near.0.write_all(&vec![7; 64 << 20]).await;
        assert_eq!(written, Err(WriteError::Stopped(Cause::Reset.into())));
        assert_eq!(near.1.read_chunk(9, true).await, Err(ReadError::Reset(Cause::Reset.into())));
    });
    assert!(!ended.1 && beyond == 1, "{ended:?} {beyond}");
}
