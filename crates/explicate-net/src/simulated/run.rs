//! Runs a scene and judges it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::clock::{self, Simulated};
use super::faults::{self, Fault};
use super::flow::Flow;
use super::hosts::{Leaves, Outcome, Server, World};
use super::machine::Machine;
use super::network::Network;
use super::record::{Broken, Event, Leg, Limits, Record, Rule};
use super::scene::{Happens, Kind, LONG, MOVED, SECOND, SOON, Scene};
use crate::gateway::relay::BLOCK;
use crate::gateway::status;

/// How a scene is run.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// A mended fault that is put back.
    pub fault: Option<Fault>,
}

/// A scene while it runs.
pub struct View {
    /// The network.
    pub network: Arc<Network>,
    /// The machines of its gateways.
    pub machines: Arc<Vec<Machine>>,
    /// When the gateways were connected, ns.
    pub began: u64,
}

/// What happened in a scene.
pub struct Report {
    /// Events in their order.
    pub events: Vec<Event>,
    /// What broke.
    pub broken: Vec<Broken>,
    /// The slowest echo of a keystroke on an undisturbed path, ns.
    pub slowest: u64,
    /// Simulated time, ns.
    pub took: u64,
    /// When the gateways were connected, ns.
    pub began: u64,
    /// How client and server of each connection have fared.
    pub fared: Vec<[Option<Outcome>; 2]>,
}

/// The longest that gateways may take to be connected at first.
const CONNECTED: u64 = 60 * SECOND;
/// An echo takes so long at most, beside round trips.
const ECHO: u64 = SECOND;
/// See there.
const CROWDED: u64 = 2_500_000_000;
/// The path carries again so long behind an outage, beside round trips.
const PROBED: u64 = 4 * SECOND;
/// A tunnel without an answer fails after a minute.
const TUNNEL: u64 = 65 * SECOND;
/// A reset arrives everywhere within so long, beside round trips.
const RESET: u64 = 3 * SECOND;
/// What a gateway carried that was killed is reset at the other one when it is back.
const BACK: u64 = 10 * SECOND;
/// A host that vanished is found within 135 s.
const VANISHED: u64 = 140 * SECOND;
/// QUIC keeps a connection that has ended for the idle time at most.
const FORGOTTEN: Duration = Duration::from_secs(61);
/// One for which bytes wait is looked for every 10 s; and twice after they begin to wait.
const LOOKED: u64 = 10 * SECOND;

/// Runs a scene.
pub fn run(scene: &Scene, options: Options) -> Report {
    run_beside(scene, options, async |_| ()).0
}

/// The same, with something that looks at it or changes it meanwhile.
pub fn run_beside<T>(scene: &Scene, options: Options, beside: impl AsyncFnOnce(View) -> T) -> (Report, T) {
    faults::put_back(options.fault);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let report = runtime.block_on(async {
        let _clock = Simulated::begin();
        Run::new(scene).run(beside).await
    });
    faults::put_back(None);
    report
}

struct Run<'a> {
    scene: &'a Scene,
    record: Arc<Record>,
    network: Arc<Network>,
    world: Arc<World>,
    machines: Arc<Vec<Machine>>,
    /// When the gateways were connected, from which on the times of the scene count, ns.
    began: u64,
}

impl<'a> Run<'a> {
    fn new(scene: &'a Scene) -> Run<'a> {
        let blocks = 2 * BLOCK as i64;
        let connection = scene.window as i64 + blocks;
        let hops = if scene.texts.len() == 3 { 2 } else { 1 };
        let all = 2 * hops * (scene.peer_window as i64 + scene.plans.len() as i64 * blocks);
        let limits = Limits { connection: hops * connection, all };
        let record = Arc::new(Record::new(scene.plans.len(), limits));
        let network = Arc::new(Network::new(record.clone()));
        let world = Arc::new(World::new(scene.plans.clone(), record.clone(), scene.capacity));
        let machine =
            |(number, text): (usize, &String)| Machine::new(number as u8, text.clone(), scene.seed, &world, &network);
        let machines = Arc::new(scene.texts.iter().enumerate().map(machine).collect());
        Run { scene, record, network, world, machines, began: 0 }
    }

    async fn run<T>(mut self, beside: impl AsyncFnOnce(View) -> T) -> (Report, T) {
        for (one, other, path) in &self.scene.paths {
            self.network.connect(*one, *other, *path, self.scene.seed);
        }
        tokio::spawn(self.network.clone().drive());
        for machine in self.machines.iter() {
            machine.start();
            // Numbers of tunnels differ by the time.
            tokio::time::sleep(Duration::from_millis(7)).await;
        }
        while !self.is_connected() {
            if clock::elapsed() > CONNECTED {
                self.record.broke(Rule::Recovers, "the gateways are not connected after a minute");
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.began = clock::elapsed();
        for number in 0..self.scene.plans.len() {
            tokio::spawn(self.world.clone().open(number, self.began, self.machines.clone()));
        }
        if let Some(ends) = self.scene.beside {
            tokio::spawn(Flow::new(self.network.clone(), ends).drive());
        }
        for happens in &self.scene.happens {
            tokio::spawn(happen(*happens, self.began, self.network.clone(), self.machines.clone()));
        }
        let (network, machines) = (self.network.clone(), self.machines.clone());
        let view = View { network, machines, began: self.began };
        let ((), seen) = tokio::join!(self.wait(), beside(view));
        let slowest = self.judge();
        let took = clock::elapsed();
        self.judge_connections().await;
        let (events, broken) = self.record.take();
        let report = Report { events, broken, slowest, took, began: self.began, fared: self.world.fared() };
        (report, seen)
    }
    fn is_connected(&self) -> bool {
        let up = |machine: &Machine| {
            machine
                .gateway()
                .is_some_and(|(gateway, _)| gateway.table().peers.iter().all(|peer| peer.current().is_some()))
        };
        self.machines.iter().all(up)
    }
    /// Waits until all is over, or has had time for that.
    async fn wait(&self) {
        let last = self.scene.plans.iter().map(|plan| plan.at).max().unwrap_or(0).max(self.scene.recovered());
        let latest = self.began + last + VANISHED + 2 * TUNNEL;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let open = (0..self.scene.plans.len()).any(|number| self.legs(number).into_iter().any(is_open));
            let over = self.world.is_over() && !open;
            let now = clock::elapsed();
            if (over && now > self.began + last) || now > latest {
                return;
            }
        }
    }
    fn legs(&self, number: usize) -> [Leg; 2] {
        self.record.legs(number as u32)
    }

    /// Whether a fault of the path or of gateways may touch what goes on from then to then, ns; some are over soon.
    fn is_disturbed(&self, from: u64, to: u64, mild: bool) -> bool {
        self.scene.happens.iter().any(|happens| {
            let (begins, ends) = match *happens {
                Happens::Down(_, _, from, to) if to - from < LONG && mild => return false,
                Happens::Down(_, _, from, to) => (from, to + SOON),
                Happens::Rebinds(..) if mild => return false,
                Happens::Rebinds(_, at) => (at, at + SOON),
                Happens::Restarts(_, _, from, to) => (from, to + SOON),
            };
            self.began + begins <= to && from < self.began + ends
        })
    }
    /// How long a short outage, or a move, delays what is sent then and due then, ns.
    fn outage(&self, sent: u64, due: u64) -> u64 {
        let delays = |happens: &Happens| match *happens {
            Happens::Down(_, _, from, to) if to - from < LONG && self.began + from <= due => {
                (self.began + to + PROBED).saturating_sub(sent)
            }
            Happens::Rebinds(_, at) if self.began + at <= due => (self.began + at + MOVED).saturating_sub(sent),
            _ => 0,
        };
        self.scene.happens.iter().map(delays).max().unwrap_or(0)
    }
    /// Gateways without a rate fill the queues of the path: how long these are, there and back, ns.
    fn unshaped(&self) -> u64 {
        if self.scene.texts.iter().all(|text| text.contains("\nrate = ")) {
            return 0;
        }
        self.scene.paths.iter().map(|(_, _, path)| (2e9 * path.queue as f64 / path.rate) as u64).sum()
    }
    fn round_trip(&self) -> u64 {
        self.scene.paths.iter().map(|(_, _, path)| 2 * path.delay).sum()
    }

    /// Judges what has happened; the slowest echo.
    fn judge(&self) -> u64 {
        let mut slowest = 0;
        for (number, ends) in self.world.fared().iter().enumerate() {
            self.judge_ends(number, ends);
            self.judge_arrival(number, ends);
            self.judge_legs(number, ends);
            slowest = slowest.max(self.judge_keys(number, ends));
        }
        for (number, machine) in self.machines.iter().enumerate() {
            let (Some((gateway, _)), Some((tunnels, have_headers))) = (machine.gateway(), machine.tunnels()) else {
                continue;
            };
            let peers = gateway.table().peers.len();
            if self.is_connected() && (tunnels != peers || !have_headers) {
                let how = format!(
                    "gateway {number} has {tunnels} tunnels with {peers} peers; the headers are theirs: {have_headers}"
                );
                self.record.broke(Rule::Tunnels, how);
            }
            let open = gateway.counters.open.load(Ordering::Relaxed);
            let reported = &status::report(&gateway)["connections"];
            if open > 0 || reported != open {
                self.record.broke(
                    Rule::Closes,
                    format!("gateway {number}: {open} connections are open at the end, {reported} by `status`"),
                );
            }
        }
        slowest
    }
    /// QUIC has no more connections than peers once it has had time to forget others.
    async fn judge_connections(&self) {
        let spare = || self.machines.iter().map(Machine::spare_connections).max().unwrap_or(0);
        if spare() == 0 {
            return;
        }
        tokio::time::sleep(FORGOTTEN).await;
        if self.is_connected() && spare() > 0 {
            let how = format!("a gateway has {} QUIC connections more than peers a minute later", spare());
            self.record.broke(Rule::Tunnels, how);
        }
    }
    /// What was read is what was written, and no end is orderly behind missing bytes.
    fn judge_ends(&self, number: usize, [client, server]: &[Option<Outcome>; 2]) {
        let none = Outcome::default();
        let (client, server) = (client.as_ref().unwrap_or(&none), server.as_ref().unwrap_or(&none));
        for (sender, receiver, who) in [(client, server, "server"), (server, client, "client")] {
            if receiver.read > sender.wrote {
                self.record
                    .broke(Rule::Bytes, format!("connection {number}: the {who} has read bytes that were not sent"));
            }
            let whole = sender.finished && receiver.read == sender.wrote;
            if receiver.eof && !whole {
                let how = format!("the {who} has read {} of {} bytes, and an orderly end", receiver.read, sender.wrote);
                self.record.broke(Rule::Ends, format!("connection {number}: {how}"));
            }
        }
    }
    /// What no fault has touched is whole.
    fn judge_arrival(&self, number: usize, [client, server]: &[Option<Outcome>; 2]) {
        let plan = &self.scene.plans[number];
        let (Some(client), began) = (client, self.began + plan.at) else { return };
        let now = clock::elapsed();
        let over = |end: &Outcome| end.over.unwrap_or(now);
        let ended = server.as_ref().map_or(0, over).max(over(client));
        let leaves = plan.client.leaves.is_some() || plan.server.leaves.is_some();
        if leaves || plan.accepts != Server::Accepts || self.is_disturbed(began, ended, true) {
            return;
        }
        let whole = |end: &Outcome| end.eof && end.finished;
        if !(whole(client) && server.as_ref().is_some_and(whole)) {
            let rule = if number == self.scene.keys[1] { Rule::Recovers } else { Rule::Arrives };
            let how = format!("connection {number} is not whole, and nothing has disturbed it: {client:?}, {server:?}");
            self.record.broke(rule, how);
        }
    }
    /// The gateways give a connection up in time when a host has left or a gateway was killed.
    fn judge_legs(&self, number: usize, ends: &[Option<Outcome>; 2]) {
        let (now, legs) = (clock::elapsed(), self.legs(number));
        let closed = legs.iter().map(|leg| if leg.opened.is_some() { leg.closed.unwrap_or(now) } else { 0 }).max();
        let closed = closed.unwrap_or(0);
        let by = |limit: u64, why: &str| {
            if closed > limit {
                let late = (closed - limit) as f64 / 1e9;
                let state = if legs.into_iter().any(is_open) { "is open" } else { "was closed" };
                self.record.broke(Rule::Closes, format!("connection {number} {state} {late:.1} s too late: {why}"));
            }
        };
        let trips = 2 * self.round_trip();
        for end in ends.iter().flatten() {
            let (Some(left), Some(at)) = (end.left, end.over) else { continue };
            match left {
                // What was closed before is delivered.
                Leaves::Reset if end.finished => {}
                Leaves::Reset if self.is_disturbed(at, at + RESET, false) => {
                    by(at + TUNNEL + SOON, "a host has reset it")
                }
                Leaves::Reset => by(at + RESET + trips, "a host has reset it"),
                Leaves::Vanishes => {
                    let waits = self.record.waits_since(number as u32);
                    let found =
                        waits.map_or(at + VANISHED, |since| (at + VANISHED + LOOKED).max(since + 2 * LOOKED + SECOND));
                    by(found + trips, "a host has vanished");
                }
            }
        }
        for happens in &self.scene.happens {
            if let Happens::Restarts(gateway, false, from, to) = *happens
                && self.is_carried_by(number, gateway)
                && legs.iter().flat_map(|leg| leg.opened).any(|opened| opened < self.began + from)
                && closed > self.began + from
            {
                by(self.began + to + BACK + trips, "a gateway that carried it was killed, and is back");
            }
        }
    }
    fn is_carried_by(&self, number: usize, gateway: u8) -> bool {
        let plan = &self.scene.plans[number];
        [plan.from, plan.to, 1].contains(&gateway)
    }
    /// Keystrokes are echoed in time while the path is up.
    fn judge_keys(&self, number: usize, [client, _]: &[Option<Outcome>; 2]) -> u64 {
        let mut slowest = 0;
        // In a crowd all connections are young for a while, and share the line.
        let crowd = self.scene.kinds.contains(&Kind::Crowd);
        let limit = if crowd { CROWDED } else { ECHO } + 3 * self.round_trip() + self.unshaped();
        let Some(client) = client else { return 0 };
        let until = client.over.unwrap_or(clock::elapsed());
        for &(sent, took) in &client.keys {
            let took = took.min(until.saturating_sub(sent));
            if self.is_disturbed(sent, sent + limit, true) {
                continue;
            }
            let limit = limit + self.outage(sent, sent + limit);
            slowest = slowest.max(if self.outage(sent, sent + limit) == 0 { took } else { 0 });
            if took > limit {
                let how = format!(
                    "connection {number}: a keystroke at {:.3} s takes {:.3} s",
                    sent as f64 / 1e9,
                    took as f64 / 1e9
                );
                self.record.broke(Rule::Stalls, how);
                break;
            }
        }
        slowest
    }
}

fn is_open(leg: Leg) -> bool {
    leg.opened.is_some() && leg.closed.is_none()
}

async fn happen(happens: Happens, began: u64, network: Arc<Network>, machines: Arc<Vec<Machine>>) {
    let at = async |at: u64| clock::until(Some(began + at)).await;
    match happens {
        Happens::Down(one, other, from, to) => {
            for (when, down) in [(from, true), (to, false)] {
                at(when).await;
                network.set_down(one, other, down);
                let state = if down { "down" } else { "up" };
                network.tell(format!("the path between gateways {one} and {other} is {state}"));
            }
        }
        Happens::Rebinds(gateway, when) => {
            at(when).await;
            network.rebind(gateway, 50_001);
            network.tell(format!("the NAT of gateway {gateway} takes another port"));
        }
        Happens::Restarts(gateway, orderly, from, to) => {
            at(from).await;
            let machine = &machines[gateway as usize];
            if orderly {
                machine.stop().await
            } else {
                machine.kill()
            }
            at(to).await;
            machine.start();
        }
    }
}
