//! Gateways that have each other's address call at the same time, and one starts anew: one tunnel remains, and nothing that was begun
//! meanwhile is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::clock::{self, Simulated};
use super::faults::{Fault, put_back};
use super::hosts::{CLIENT, Outcome, Plan, Script, Server, World};
use super::machine::{Machine, key};
use super::network::{Network, Path, address};
use super::record::{Limits, Record};
use super::scene::SECOND;
use crate::gateway::identity::Identity;

/// No gateway has this address.
const NOWHERE: u8 = 77;
pub(super) const MILLISECOND: u64 = 1_000_000;

/// Two gateways, which may call each other.
pub(super) struct Both {
    pub(super) world: Arc<World>,
    network: Arc<Network>,
    pub(super) machines: Arc<Vec<Machine>>,
    record: Arc<Record>,
}

/// The configuration of a gateway whose peer has one of these keys, and perhaps an address.
pub(super) fn text(own: u8, keys: &[u8], calls: Option<SocketAddr>) -> String {
    let peer = 1 - own;
    let lines: Vec<String> = keys.iter().map(|number| Identity::of(key(*number)).unwrap().public.line()).collect();
    let address = calls.map_or(String::new(), |calls| format!("address = \"{calls}\"\n"));
    format!(
        "[site]\ninterfaces = [\"lan\"]\nnetworks = [\"198.18.{own}.0/24\"]\nwhen_down = \"reset\"\n[wan]\nrate = \"8Mbit/s\"\n\
         [[peer]]\nname = \"gateway-{peer}\"\nkey = {lines:?}\nnetworks = [\"198.18.{peer}.0/24\"]\n{address}"
    )
}

impl Both {
    /// The gateways call these addresses over a path.
    fn new(calls: [SocketAddr; 2], path: Path, seed: u64, plans: Vec<Plan>) -> Both {
        let texts = [text(0, &[1], Some(calls[0])), text(1, &[0], Some(calls[1]))];
        Both::of(texts, path, seed, plans)
    }
    /// Gateways with these configurations.
    pub(super) fn of(texts: [String; 2], path: Path, seed: u64, plans: Vec<Plan>) -> Both {
        let limits = Limits { connection: 1 << 30, all: 1 << 40 };
        let record = Arc::new(Record::new(plans.len(), limits));
        let network = Arc::new(Network::new(record.clone()));
        let world = Arc::new(World::new(plans, record.clone(), 64 << 10));
        network.connect(0, 1, path, seed);
        tokio::spawn(network.clone().drive());
        let machine = |(own, text)| Machine::new(own, text, seed, &world, &network);
        let machines = Arc::new((0..).zip(texts).map(machine).collect());
        Both { world, network, machines, record }
    }
    pub(super) fn is_connected(&self, number: usize) -> bool {
        let (gateway, _) = self.machines[number].gateway().expect("it runs");
        gateway.table().peers[0].current().is_some()
    }
    /// Waits until both gateways are connected.
    pub(super) async fn connected(&self, most: u64) {
        let began = clock::elapsed();
        while !(self.is_connected(0) && self.is_connected(1)) {
            assert!(clock::elapsed() < began + most, "not connected after {most} ns");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    /// Opens a connection as soon as the gateway of its client is connected, and later by the plan's time.
    pub(super) fn open(&self, number: usize, plan: &Plan) {
        let (world, machines, from) = (self.world.clone(), self.machines.clone(), plan.from as usize);
        tokio::spawn(async move {
            let is_connected =
                || machines[from].gateway().is_some_and(|(gateway, _)| gateway.table().peers[0].current().is_some());
            while !is_connected() {
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
            world.open(number, clock::elapsed(), machines).await;
        });
    }
    /// One tunnel is left, whose datagrams have headers that routers answer.
    pub(super) fn judge(&self, what: &str) {
        for machine in self.machines.iter() {
            assert_eq!(
                machine.tunnels(),
                Some((1, true)),
                "{what}: tunnels, and whether the one that is used has headers"
            );
            let (gateway, _) = machine.gateway().unwrap();
            let (_, tunnel) = gateway.table().peers[0].current().unwrap();
            assert!(tunnel.controller.lock().sends_singly(), "{what}: no router answers its datagrams");
        }
        let (_, broken) = self.record.take();
        assert!(broken.is_empty(), "{what}: {broken:?}");
    }
}

pub(super) fn simulate(what: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let _clock = Simulated::begin();
        what.await;
    });
}

pub(super) fn path(delay: u64) -> Path {
    Path { rate: 1.1e6, steps: None, delay, queue: 200_000, loss: 0.0, late: 0.0, copies: 0.0, mtu: 1500 }
}

/// A client of this site sends 100 kB and gets 100 kB.
pub(super) fn exchange(from: u8, at: u64) -> Plan {
    let (client, server) = (Script::sending(100_000), Script { answers: true, ..Script::sending(100_000) });
    Plan { from, client_host: CLIENT, to: 1 - from, at, client, server, accepts: Server::Accepts, keys: None }
}

pub(super) fn is_whole(outcome: &Option<Outcome>) -> bool {
    outcome.as_ref().is_some_and(|outcome| outcome.eof && outcome.finished && !outcome.failed)
}

/// Both call, with other delays, losses, and times of their starts for each seed; hosts at both ends begin at once.
fn call_at_once(seed: u64) {
    simulate(async {
        let mut draws = explicate_core::rng::Rng::stream(seed, "both");
        let mut between = |least: f64, most: f64| least + (most - least) * draws.uniform();
        let root = between(1.0, 12.0);
        let delay = (root * root * 1e6) as u64;
        let mut path = path(delay);
        if seed % 2 == 1 {
            (path.loss, path.late, path.copies) = (between(0.0, 0.1), between(0.0, 0.3), between(0.0, 0.1));
        }
        // Between two calls at the same time and two a handshake apart.
        let apart = if seed.is_multiple_of(5) { 0 } else { (between(0.0, 6.0) * delay as f64) as u64 };
        let mut plans: Vec<Plan> = [0, 0, 1, 20, 100, 500, 2000]
            .into_iter()
            .flat_map(|ms| [exchange(0, ms * MILLISECOND), exchange(1, ms * MILLISECOND)])
            .collect();
        plans.push(Plan { keys: Some((20, SECOND / 2)), ..exchange(0, 0) });
        plans.push(Plan { keys: Some((20, SECOND / 2)), ..exchange(1, 0) });
        let both = Both::new([address(1), address(0)], path, seed, plans.clone());
        let first = (seed / 2 % 2) as usize;
        both.machines[first].start();
        tokio::time::sleep(Duration::from_nanos(apart)).await;
        both.machines[1 - first].start();
        plans.iter().enumerate().for_each(|(number, plan)| both.open(number, plan));
        both.connected(30 * SECOND).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        for (number, [client, server]) in both.world.fared().iter().enumerate() {
            let whole = is_whole(client) && is_whole(server);
            assert!(whole, "seed {seed}, connection {number}: {client:?}, {server:?}");
        }
        for machine in both.machines.iter() {
            let (gateway, _) = machine.gateway().unwrap();
            let counted = [&gateway.counters.resets, &gateway.counters.refused].map(|of| of.load(Ordering::Relaxed));
            assert_eq!(counted, [0, 0], "seed {seed}: resets, refused");
        }
        both.judge(&format!("seed {seed}"));
    });
}

#[test]
fn both_call_at_once_and_one_tunnel_remains() {
    (0..20).for_each(call_at_once);
}

/// The test above finds what it is about.
#[test]
#[should_panic(expected = "tunnels")]
fn a_tunnel_of_each_call_is_found() {
    put_back(Some(Fault::BothCall));
    (0..20).for_each(call_at_once);
}

/// The address that one gateway has of the other one is wrong, or a NAT or firewall lets no call through.
#[test]
fn a_gateway_that_cannot_be_called_is_connected_by_its_own_call() {
    for wrong in [0, 1] {
        simulate(async {
            let mut calls = [address(1), address(0)];
            calls[wrong] = address(NOWHERE);
            let plan = exchange(wrong as u8, 0);
            let both = Both::new(calls, path(50 * MILLISECOND), 1, vec![plan]);
            both.machines.iter().for_each(Machine::start);
            both.open(0, &plan);
            both.connected(SECOND).await;
            tokio::time::sleep(Duration::from_secs(40)).await;
            assert!(both.world.fared()[0].iter().all(is_whole), "{:?}", both.world.fared());
            both.judge(&format!("gateway {wrong} cannot call"));
        });
    }
}

/// A gateway is killed and starts anew while the other one holds the old tunnel: what that carried is reset, and the next one carries. With
/// `nat` it comes back behind another port, at which the other one cannot call it, and hears nothing of the old tunnel.
fn start_anew(killed: usize, down: u64, nat: bool) {
    simulate(async {
        let what = format!("gateway {killed} is down for {} ms, NAT {nat}", down / MILLISECOND);
        let (alive, idle) = (1 - killed as u8, Script { idles: true, ..Script::sending(10) });
        let carried = Plan { client: idle, server: idle, ..exchange(alive, 0) };
        let again = [exchange(alive, SECOND), exchange(killed as u8, SECOND), exchange(alive, 30 * SECOND)];
        let plans = [&[carried][..], &again].concat();
        let both = Both::new([address(1), address(0)], path(50 * MILLISECOND), 1, plans.clone());
        both.machines.iter().for_each(Machine::start);
        both.connected(5 * SECOND).await;
        both.open(0, &plans[0]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        both.machines[killed].kill();
        if nat {
            both.network.rebind(killed as u8, 50_001);
        }
        tokio::time::sleep(Duration::from_nanos(down)).await;
        both.machines[killed].start();
        let back = clock::elapsed();
        while both.world.fared()[0][0].as_ref().is_none_or(|outcome| outcome.over.is_none()) {
            assert!(clock::elapsed() < back + 3 * SECOND, "{what}: what the old tunnel carried is not reset");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(both.world.fared()[0][0].as_ref().unwrap().failed, "{what}");
        both.connected(3 * SECOND).await;
        plans.iter().enumerate().skip(1).for_each(|(number, plan)| both.open(number, plan));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let fared = both.world.fared();
        assert!(fared[1..].iter().flatten().all(is_whole), "{what}: {fared:?}");
        both.judge(&what);
    });
}

#[test]
fn a_gateway_that_starts_anew_has_one_tunnel_when_both_call() {
    for killed in [0, 1] {
        for down in [0, 100, 3000] {
            start_anew(killed, down * MILLISECOND, false);
            start_anew(killed, down * MILLISECOND, true);
        }
    }
}

/// A peer that calls from an `address` that is written down is not followed to another one, unless it is roaming.
#[test]
fn a_peer_with_an_address_does_not_move_unless_it_is_roaming() {
    const PORT: u16 = 50_001;
    for roaming in [false, true] {
        simulate(async {
            let more = if roaming { "roaming = true\n" } else { "" };
            let texts = [text(0, &[1], Some(address(1))), text(1, &[0], Some(address(NOWHERE))) + more];
            let plan = Plan { keys: Some((30, SECOND / 2)), ..exchange(0, 0) };
            let both = Both::of(texts, path(20 * MILLISECOND), 1, vec![plan]);
            both.machines.iter().for_each(Machine::start);
            both.connected(5 * SECOND).await;
            both.open(0, &plan);
            tokio::time::sleep(Duration::from_secs(2)).await;
            let at = || {
                let (gateway, _) = both.machines[1].gateway().unwrap();
                gateway.table().peers[0].current().map(|(connection, _)| connection.remote_address().port())
            };
            let home = address(0).port();
            assert_eq!(at(), Some(home));
            both.network.rebind(0, PORT);
            for second in 0..50 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let moved = roaming && second >= 5;
                assert!(
                    at() == Some(if moved { PORT } else { home }) || roaming && second < 5,
                    "{second} s: {:?}",
                    at()
                );
            }
            assert_eq!(both.world.fared()[0].iter().all(is_whole), roaming, "{:?}", both.world.fared());
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!(at(), Some(PORT), "it has called anew");
        });
    }
}
