//! Two ends on loopback; the other end is a client of QUIC without a gateway.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use quinn::{EndpointConfig, TokioRuntime, VarInt};
use tokio::runtime::Runtime;

use super::*;
use crate::clock::Clock;
use crate::gateway::identity::{Accepted, keygen};
use crate::gateway::intercept::Hosts;
use crate::gateway::preface;
use crate::gateway::socket::Tunnels;
use crate::gateway::told::Marked;
use crate::patience::PATIENCE;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn identity() -> Identity {
    let folder =
        std::env::temp_dir().join(format!("explicate-peers-{}-{}", std::process::id(), crate::sys::monotonic()));
    std::fs::create_dir_all(&folder).unwrap();
    keygen(&folder.join("key")).unwrap();
    let identity = Identity::load(&folder.join("key")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    identity
}

/// A gateway of the site 10.2.0.0/16 with the peer `far` at this address, which has the same key and the networks 10.1.0.0/16 and
/// fd00:1::/32, and another one with 10.3.0.0/16; and its tunnels.
fn gateway(address: SocketAddr) -> (Arc<Gateway>, Arc<Tunnels>) {
    gateway_of("networks = [\"10.2.0.0/16\"]", address)
}

/// The same with another `[site]`.
fn gateway_of(site: &str, address: SocketAddr) -> (Arc<Gateway>, Arc<Tunnels>) {
    gateway_before(site, address, Hosts::Kernel)
}

/// The same before these hosts.
fn gateway_before(site: &str, address: SocketAddr, hosts: Hosts) -> (Arc<Gateway>, Arc<Tunnels>) {
    let (identity, other) = (identity(), identity().public.line());
    let text = format!(
        "[site]\n{site}\n\
         [[peer]]\nname = \"far\"\nkey = \"{}\"\naddress = \"{address}\"\nnetworks = [\"10.1.0.0/16\", \"fd00:1::/32\"]\n\
         [[peer]]\nname = \"other\"\nkey = \"{other}\"\nnetworks = [\"10.3.0.0/16\"]\n",
        identity.public.line()
    );
    let config = Config::parse(&text).unwrap();
    let tunnels = Arc::new(Tunnels::default());
    let (limits, controller, rate) =
        (config.limits, config.wan.controller_config().unwrap(), explicate_core::units::Rate::mbps(1));
    let transport = Transport::new(limits, controller, rate, Clock::start(), tunnels.clone());
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (server, tunnel) = transport.server(identity.server(vec![identity.public]).unwrap(), local);
    transport.forget(&tunnel);
    let socket = UdpSocket::bind(local).unwrap();
    let own = EndpointConfig::default();
    let server = Some(Arc::unwrap_or_clone(server));
    let endpoint = Endpoint::new(own, server, socket, Arc::new(TokioRuntime)).unwrap();
    (
        Gateway::new(
            config,
            identity,
            (endpoint, None, None),
            (transport, System { marked: Marked::open(0), hosts, ..System::kernel() }),
        ),
        tunnels,
    )
}

/// What a client of QUIC with the key of this gateway calls with.
fn client(gateway: &Gateway) -> quinn::ClientConfig {
    quinn::ClientConfig::new(Arc::new(gateway.identity().client(gateway.identity().public).unwrap()))
}

/// QUIC gives up a handshake after its idle time-out of 60 s.
#[test]
fn a_call_without_an_answer_ends_in_time_for_the_next_one() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    runtime().block_on(async {
        let (gateway, tunnels) = gateway(address);
        let peer = gateway.table().peers[0].clone();
        let call = gateway.call(&peer, Duration::from_millis(300));
        let ended = tokio::time::timeout(PATIENCE, call).await.expect("it ends");
        assert_eq!(ended.err().as_deref(), Some("no answer for 0.3 s"));
        assert!(tunnels.get(address).is_none(), "nothing is left of it");
    });
    silent.set_nonblocking(true).unwrap();
    assert!(silent.recv(&mut [0; 2000]).is_ok(), "the peer was called");
}

/// The first datagram of a handshake, as a gateway's peer sends it.
async fn first_datagram(gateway: &Gateway) -> Vec<u8> {
    let recorder = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let _connecting = endpoint.connect_with(client(gateway), recorder.local_addr().unwrap(), "gateway").unwrap();
    let mut datagram = vec![0; 2000];
    let length = recorder.recv(&mut datagram).await.unwrap();
    datagram.truncate(length);
    datagram
}

/// Hosts that send the first datagram of a handshake from addresses at which they do not receive get a Retry each, shorter than
/// what they sent, and no place in the gateway.
#[test]
fn first_datagrams_from_false_addresses_are_answered_by_a_retry_and_kept_nowhere() {
    runtime().block_on(async {
        let (gateway, tunnels) = gateway("127.0.0.1:9".parse().unwrap());
        tokio::spawn(gateway.clone().answer_calls());
        let (datagram, to) = (first_datagram(&gateway).await, gateway.endpoint.local_addr().unwrap());
        for _ in 0..200 {
            let host = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
            host.send_to(&datagram, to).await.unwrap();
            let mut answer = [0; 2000];
            let received = tokio::time::timeout(PATIENCE, host.recv(&mut answer)).await;
            let length = received.expect("an answer").unwrap();
            // The long header of a Retry (RFC 9000 section 17.2.5).
            assert_eq!(answer[0] & 0xf0, 0xf0, "its first byte, of {length}");
            assert!(length < datagram.len(), "{length} bytes for {}", datagram.len());
            assert!(tunnels.get(host.local_addr().unwrap()).is_none());
        }
        assert_eq!(gateway.endpoint.open_connections(), 0);
        assert_eq!(gateway.counters.refused.load(Ordering::Relaxed), 0);
    });
}

fn preface(client: &str, destination: &str) -> Preface {
    Preface { client: client.parse().unwrap(), destination: destination.parse().unwrap() }
}

/// How a stream with this preface ends.
async fn ends(connection: &Connection, preface: Preface) -> quinn::ReadError {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(&preface.to_bytes()).await.unwrap();
    let read = tokio::time::timeout(PATIENCE, receive.read_to_end(10)).await.expect("an end");
    match read {
        Err(quinn::ReadToEndError::Read(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// A peer speaks for its own networks, and reaches those of this site.
#[test]
fn a_peer_that_names_clients_or_destinations_outside_its_networks_is_reset() {
    runtime().block_on(async {
        let (gateway, _) = gateway("127.0.0.1:9".parse().unwrap());
        let (far, good) = (gateway.table().peers[0].link.clone(), preface("10.1.0.9:4000", "10.2.0.1:80"));
        assert_eq!(gateway.table().allow(&far, &good), Ok(()));
        let outside = [
            ("10.2.0.9:4000", "10.2.0.1:80", "a client of this site"),
            ("10.3.0.9:4000", "10.2.0.1:80", "a client of another peer"),
            ("192.0.2.7:4000", "10.2.0.1:80", "a client of nobody's"),
            ("10.1.0.9:4000", "10.3.0.1:80", "a destination of another peer, not at a hub"),
            ("10.1.0.9:4000", "10.1.0.1:80", "a destination of its own"),
            ("10.1.0.9:4000", "192.0.2.1:80", "a destination of nobody's"),
            ("[fd00:1::9]:4000", "[fd00:2::1]:80", "a destination of nobody's, IPv6"),
        ];
        tokio::spawn(gateway.clone().answer_calls());
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = gateway.endpoint.local_addr().unwrap();
        let connection = endpoint.connect_with(client(&gateway), to, "gateway").unwrap().await.unwrap();
        greeted(&connection).await;
        for (client, destination, what) in outside {
            let ended = ends(&connection, preface(client, destination)).await;
            assert_eq!(ended, quinn::ReadError::Reset(VarInt::from(Cause::NotAllowed)), "{what}");
        }
        assert_eq!(gateway.counters.refused.load(Ordering::Relaxed), outside.len() as u64);
        assert_eq!(gateway.counters.onward.load(Ordering::Relaxed), 0);
    });
}

/// A client of QUIC with the right key, connected; and what keeps it.
async fn hostile(gateway: &Arc<Gateway>) -> (Endpoint, Connection) {
    tokio::spawn(gateway.clone().answer_calls());
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let to = gateway.endpoint.local_addr().unwrap();
    let connection = endpoint.connect_with(client(gateway), to, "gateway").unwrap().await.unwrap();
    greeted(&connection).await;
    (endpoint, connection)
}

/// Greets a gateway, and keeps the stream of records open.
async fn greeted(connection: &Connection) {
    let greeted = credit::greet(connection, None, config::Limits::default()).await.expect("a greeting");
    tokio::spawn(async move {
        let _kept = greeted;
        std::future::pending::<()>().await
    });
}

/// Whatever the networks of the site are.
#[test]
fn a_peer_reaches_no_denied_destination() {
    let listed = "networks = [\"0.0.0.0/5\", \"100.0.0.0/8\", \"127.0.0.0/8\", \"169.254.0.0/16\", \"224.0.0.0/4\", \"::/8\", \"2002::/16\", \
                  \"fe80::/10\", \"fd00:ec2::/32\"]";
    for site in ["", listed] {
        runtime().block_on(async {
            let (gateway, _) = gateway_of(site, "127.0.0.1:9".parse().unwrap());
            let (_endpoint, connection) = hostile(&gateway).await;
            let ipv4 = ["127.0.0.1:80", "169.254.169.254:80", "100.100.100.200:80", "0.0.0.7:80", "224.0.0.1:80"];
            let ipv6 =
                ["[::1]:80", "[fe80::1]:80", "[fd00:ec2::254]:80", "[64:ff9b::a9fe:a9fe]:80", "[2002:7f00:1::]:80"];
            let own = gateway.endpoint.local_addr().unwrap().to_string();
            for destination in ipv4.iter().chain(&ipv6).copied().chain([&own[..]]) {
                let client = if destination.starts_with('[') { "[fd00:1::9]:4000" } else { "10.1.0.9:4000" };
                let ended = ends(&connection, preface(client, destination)).await;
                assert_eq!(ended, quinn::ReadError::Reset(VarInt::from(Cause::NotAllowed)), "{destination}");
            }
            assert_eq!(gateway.counters.onward.load(Ordering::Relaxed), 0);
        });
    }
}

/// A peer with wide networks is not this machine, nor a host of this site.
#[test]
fn a_peer_speaks_for_no_host_of_this_site() {
    let table = Table::new(Config::parse(WIDE).unwrap(), &[]);
    let key = table.peers[0].link.clone();
    let allow = |client: &str| table.allow(&key, &preface(client, "10.2.0.7:80"));
    assert_eq!(allow("192.0.2.9:4000"), Ok(()));
    for client in ["10.2.0.9:4000", "169.254.169.254:4000", "100.100.100.200:4000"] {
        assert_eq!(allow(client), Err(Cause::NotAllowed), "{client}");
    }
}

const WIDE: &str = "[site]\nnetworks = [\"10.2.0.0/16\"]\n[[peer]]\nname = \"all\"\nnetworks = [\"0.0.0.0/0\"]\n\
                    key = \"explicate-gateway-1:abababababababababababababababababababababababababababababababab\"\n";

/// Only addresses of its networks count, and no more than a message holds.
#[test]
fn a_peer_tells_addresses_of_its_own_and_few() {
    runtime().block_on(async {
        let (gateway, _) = gateway("127.0.0.1:9".parse().unwrap());
        let (_endpoint, connection) = hostile(&gateway).await;
        let peer = gateway.table().peers[0].clone();
        let tell = async |addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            let (mut send, _receive) = connection.open_bi().await.unwrap();
            send.write_all(&told::to_bytes(&addresses)).await.unwrap();
            send.finish().unwrap();
            send.stopped().await.unwrap();
        };
        tell(&["10.1.0.1", "10.2.0.1", "10.3.0.1", "192.0.2.1", "127.0.0.1", "fd00:1::1", "fd00:2::1"]).await;
        let heard = || peer.told().iter().map(IpAddr::to_string).collect::<Vec<_>>();
        let comes = async |is_so: &dyn Fn(usize) -> bool| {
            let heard = async {
                while !is_so(heard().len()) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(PATIENCE, heard).await.expect("it is heard");
        };
        comes(&|count| count > 0).await;
        assert_eq!(heard(), ["10.1.0.1", "fd00:1::1"]);
        tell(&["10.1.0.7"; 5000]).await;
        comes(&|count| count != 2).await;
        assert_eq!(heard(), ["10.1.0.7"; told::MOST]);
    });
}

/// A peer whose program or machine was lost, and its connection with it, calls again.
#[test]
fn a_peer_that_calls_anew_ends_its_earlier_connection() {
    runtime().block_on(async {
        let (gateway, _) = gateway("127.0.0.1:9".parse().unwrap());
        let (_endpoint, before) = hostile(&gateway).await;
        let (_send, mut stream) = before.open_bi().await.unwrap();
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = gateway.endpoint.local_addr().unwrap();
        let after = endpoint.connect_with(client(&gateway), to, "gateway").unwrap().await.unwrap();
        greeted(&after).await;
        let ended = tokio::time::timeout(PATIENCE, before.closed()).await.expect("it ends");
        assert!(ended.to_string().contains("the peer has called anew"), "{ended}");
        assert!(stream.read(&mut [0]).await.is_err());
        assert!(after.close_reason().is_none());
    });
}

/// A gateway of an older release calls this one.
#[test]
fn a_gateway_of_another_version_is_refused_by_a_sentence() {
    runtime().block_on(async {
        let (gateway, _) = gateway("127.0.0.1:9".parse().unwrap());
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let to = gateway.endpoint.local_addr().unwrap();
        let older = gateway.identity().client_of(b"explicate-gateway/1", gateway.identity().public).unwrap();
        let connecting = endpoint.connect_with(quinn::ClientConfig::new(Arc::new(older)), to, "gateway").unwrap();
        let answers = async {
            loop {
                let incoming = gateway.endpoint.accept().await.unwrap();
                let Some(incoming) = validated(incoming) else { continue };
                return gateway.clone().answer(incoming).await.unwrap_err();
            }
        };
        let (called, answered) =
            tokio::time::timeout(PATIENCE, async { tokio::join!(connecting, answers) }).await.unwrap();
        let called = sentence(&called.unwrap_err(), Side::Client, gateway.identity().public);
        for reason in [called, answered] {
            assert!(reason.contains("different versions") && reason.contains("update the older one"), "{reason}");
        }
    });
}

/// Something else than records, or no greeting.
#[test]
fn a_peer_that_does_not_keep_to_the_protocol_is_disconnected() {
    runtime().block_on(async {
        let (gateway, _) = gateway("127.0.0.1:9".parse().unwrap());
        tokio::spawn(gateway.clone().answer_calls());
        let to = gateway.endpoint.local_addr().unwrap();
        let greeting = [&[preface::VERSION], &[0; 11][..], &[9]].concat();
        for (bytes, how) in [([&greeting[..], &[9; 18]].concat(), "no record of credit"), (vec![1; 13], "no greeting")]
        {
            let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let connection = endpoint.connect_with(client(&gateway), to, "gateway").unwrap().await.unwrap();
            let mut records = connection.open_uni().await.unwrap();
            records.write_all(&bytes).await.unwrap();
            let ended = tokio::time::timeout(PATIENCE, connection.closed()).await.expect("it ends");
            assert!(ended.to_string().contains(how), "{ended}");
        }
    });
}

/// What is logged meanwhile, by this thread.
async fn logged(what: impl Future<Output = ()>) -> String {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(log.finish());
    what.await;
    String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
}

/// A key that is not in the file calls, and answers at a peer's address: neither is `connected`, the log says what to compare, and the
/// key itself stands nowhere, as if it were one to take over.
#[test]
fn a_stranger_is_not_logged_as_a_peer_and_its_key_is_not_printed() {
    runtime().block_on(async {
        let stranger = identity();
        let tls = stranger.server_of(super::super::identity::PROTOCOL, Accepted::Any).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = Some(quinn::ServerConfig::with_crypto(Arc::new(tls)));
        let answers = Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime)).unwrap();
        let (gateway, _) = gateway(answers.local_addr().unwrap());
        let log = logged(async {
            tokio::spawn(gateway.clone().answer_calls());
            let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let tls = stranger.client(gateway.identity().public).unwrap();
            let config = quinn::ClientConfig::new(Arc::new(tls));
            let to = gateway.endpoint.local_addr().unwrap();
            let calls = async {
                let connection = endpoint.connect_with(config, to, "gateway").unwrap().await.unwrap();
                connection.closed().await;
                while gateway.counters.refused.load(Ordering::Relaxed) == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(PATIENCE, calls).await.expect("it is refused");
            gateway.apply();
            let called = async {
                answers.accept().await.unwrap().await.unwrap_err();
                while gateway.table().peers[0].failure().is_none() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(PATIENCE, called).await.expect("it is called");
        })
        .await;
        assert!(log.contains("no [[peer]] has its key: compare the `key` lines here"), "{log}");
        assert!(log.contains("has another key than this [[peer]]: compare `key`"), "{log}");
        assert!(!log.contains("connected"), "{log}");
        assert!(!log.contains(&stranger.public.digits()), "{log}");
    });
}

/// The peer refuses the key of this gateway behind its handshake: the log says what the peer's file needs.
#[test]
fn a_caller_whose_key_is_refused_says_what_the_peer_needs() {
    runtime().block_on(async {
        let (gateway, _) = gateway("127.0.0.1:9".parse().unwrap());
        let own = gateway.identity();
        // It has the key that is expected, and knows another one.
        let tls = own.server(vec![identity().public]).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = Some(quinn::ServerConfig::with_crypto(Arc::new(tls)));
        let answers = Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime)).unwrap();
        let mut peer = gateway.table().peers[0].config.clone();
        peer.address = Some(answers.local_addr().unwrap().to_string());
        let peer = Peer { config: peer, link: Arc::default() };
        let log = logged(async {
            let calls = async {
                let connected = gateway.call(&peer, PATIENCE).await.unwrap().unwrap();
                gateway.serve(&peer, connected).await;
            };
            let refuses = async { answers.accept().await.unwrap().await.unwrap_err() };
            let both = async { tokio::join!(calls, refuses) };
            tokio::time::timeout(PATIENCE, both).await.expect("it is refused");
        })
        .await;
        assert!(log.contains("the peer was not used") && log.contains("needs key = "), "{log}");
        assert!(log.contains(&own.public.line()), "{log}");
    });
}

mod hostile;
