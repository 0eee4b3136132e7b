//! A gateway whose machine is simulated: it starts, stops, is killed and starts anew.

use std::sync::{Arc, Mutex, PoisonError};

use explicate_core::units::Rate;
use quinn::{Endpoint, Runtime};
use ring::signature::{Ed25519KeyPair, KeyPair};

use super::faults::{Fault, is_back};
use super::hosts::{Site, World};
use super::network::{Network, address};
use super::quic::{self, Numbers};
use super::record::What;
use super::tasks::Tasks;
use crate::clock::Clock;
use crate::gateway::config::Config;
use crate::gateway::identity::Identity;
use crate::gateway::intercept::Hosts;
use crate::gateway::peers::Gateway;
use crate::gateway::port::Port;
use crate::gateway::run::endpoint_config;
use crate::gateway::socket::{Socket, Tunnels};
use crate::gateway::system::System;
use crate::gateway::told::Marked;
use crate::gateway::transport::Transport;
use crate::gateway::tunnel::Tunnel;

/// The key of a gateway, in PKCS #8.
pub fn key(number: u8) -> Vec<u8> {
    let seed = [number + 1; 32];
    let mut bytes =
        vec![0x30, 0x51, 0x02, 0x01, 0x01, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    bytes.extend(seed);
    bytes.extend([0x81, 0x21, 0x00]);
    bytes.extend(Ed25519KeyPair::from_seed_unchecked(&seed).expect("32 bytes").public_key().as_ref());
    bytes
}

/// A program that runs.
struct Running {
    gateway: Arc<Gateway>,
    endpoint: Endpoint,
    tunnels: Arc<Tunnels>,
    tasks: Arc<Tasks>,
}

impl Drop for Running {
    /// A tunnel keeps its connection, this its socket, and this the tunnel, until the connection has ended.
    fn drop(&mut self) {
        self.tunnels.clear();
    }
}

/// The machine of a gateway.
pub struct Machine {
    number: u8,
    text: Mutex<String>,
    /// Number of its key.
    key: Mutex<u8>,
    seed: u64,
    world: Arc<World>,
    network: Arc<Network>,
    running: Mutex<Option<Running>>,
    starts: Mutex<u64>,
}

impl Machine {
    /// A machine whose gateway has this configuration.
    pub fn new(number: u8, text: String, seed: u64, world: &Arc<World>, network: &Arc<Network>) -> Machine {
        let (world, network) = (world.clone(), network.clone());
        let (text, key, running, starts) = (Mutex::new(text), Mutex::new(number), Mutex::default(), Mutex::default());
        Machine { number, text, key, seed, world, network, running, starts }
    }
    /// The gateway, if it runs, and what runs its tasks.
    pub fn gateway(&self) -> Option<(Arc<Gateway>, Arc<dyn Runtime>)> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(|running| (running.gateway.clone(), running.tasks.clone() as Arc<dyn Runtime>))
    }
    /// How many tunnels the gateway has, and whether the datagrams of each peer's tunnel have its headers.
    pub fn tunnels(&self) -> Option<(usize, bool)> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Running { gateway, tunnels, .. } = running.as_ref()?;
        let has_headers = |(connection, tunnel): (quinn::Connection, Arc<Tunnel>)| {
            tunnels.get(connection.remote_address()).is_some_and(|of_address| Arc::ptr_eq(&of_address, &tunnel))
        };
        let all = gateway.table().peers.iter().all(|peer| peer.current().is_some_and(has_headers));
        Some((tunnels.count(), all))
    }
    /// How many connections QUIC has beyond one for each peer.
    pub fn spare_connections(&self) -> usize {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let spare =
            |running: &Running| running.endpoint.open_connections().saturating_sub(running.gateway.table().peers.len());
        running.as_ref().map_or(0, spare)
    }
    fn tell(&self, what: &str) {
        self.world.record.add(What::World(format!("gateway {} {what}", self.number)));
    }

    /// The configuration and the key are others now; the program takes them over if it runs, as at SIGHUP.
    pub fn reload(&self, text: String, key: u8) {
        self.tell("reads its files again");
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = key;
        if let Some((gateway, _)) = self.gateway() {
            let (config, identity) = self.files();
            gateway.reload(config, identity);
        }
    }
    fn files(&self) -> (Config, Identity) {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let config = Config::parse(&text).expect("a configuration that is valid");
        let number = *self.key.lock().unwrap_or_else(PoisonError::into_inner);
        (config, Identity::of(key(number)).expect("a key"))
    }

    /// Starts the program, as [`run`](crate::gateway::run()) does.
    pub fn start(&self) {
        self.tell("starts");
        let (config, mut identity) = self.files();
        let starts = {
            let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
            *starts += 1;
            *starts
        };
        if is_back(Fault::Forgets) {
            identity.reset_key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &starts.to_be_bytes());
        }
        let tasks = Arc::new(Tasks::of(self.number, self.world.record.clone()));
        let clock = Clock::start();
        let controller = config.wan.controller_config().expect("a protocol");
        let rate = config.wan.rate.map_or(Rate::mbps(100), |rate| rate.0);
        let numbers = Numbers::of(self.seed, &format!("connections {} {starts}", self.number), identity.cid_key);
        let (protocol, tunnels) = (controller.protocol, Arc::new(Tunnels::moving(numbers.clone())));
        let transport = Transport::new(config.limits, controller, rate, clock, tunnels.clone()).moving();
        let shaped = config.wan.rate.is_some();
        let transport = if config.wan.parity && shaped { transport.repaired() } else { transport };
        let udp = self.network.open(self.number);
        let port = shaped.then(|| Port::simulated(protocol, rate, clock, config.wan.parity).expect("a port"));
        if let (Some(port), Some(source)) = (&port, &config.wan.capacity) {
            port.measure(Some(source.floor.0));
        }
        let peers = config.peers.iter().flat_map(crate::gateway::config::Peer::public_keys).collect();
        let (server, tunnel) = transport.server(identity.server(peers).expect("TLS"), address(self.number));
        transport.forget(&tunnel);
        let (mut server, mut own) = (Arc::unwrap_or_clone(server), endpoint_config(&identity));
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_be_bytes());
        seed[8..16].copy_from_slice(&starts.to_be_bytes());
        seed[16] = self.number;
        own.rng_seed(Some(seed));
        quic::seed_tokens(&mut server, &seed);
        own.cid_generator(move || Box::new(numbers.clone()));
        let socket = Arc::new(Socket::new(udp.clone(), port.clone(), tunnels.clone()));
        let endpoint = Endpoint::new_with_abstract_socket(own, Some(server), socket, tasks.clone());
        let endpoint = endpoint.expect("an endpoint");
        if let Some(port) = port.clone() {
            tasks.spawn(Box::pin(port.drive(move |to, bytes, ecn| udp.send(to, bytes, ecn as u8))));
        }
        let hosts = Hosts::Simulated(Arc::new(Site { world: self.world.clone() }));
        let system = System { marked: Marked::nothing(), hosts, runtime: tasks.clone() };
        let gateway = Gateway::new(config, identity, (endpoint.clone(), port, None), (transport, system));
        gateway.apply();
        tasks.spawn(Box::pin(gateway.clone().answer_calls()));
        let running = Running { gateway, endpoint, tunnels, tasks };
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }
    /// Kills the program: nothing leaves any more, and the kernel resets its connections.
    pub fn kill(&self) {
        let Some(running) = self.running.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        self.tell("is killed");
        self.network.close(self.number);
        running.tasks.abort();
    }
    /// Stops the program as a signal does, which tells its peers; after a second it is gone.
    pub async fn stop(&self) {
        let endpoint = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(running) = running.as_ref() else { return };
            self.tell("stops");
            running.endpoint.close(0u32.into(), b"stopped");
            running.endpoint.clone()
        };
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), endpoint.wait_idle()).await;
        self.kill();
    }
}
