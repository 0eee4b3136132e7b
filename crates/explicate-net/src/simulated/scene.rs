//! A scene: gateways, a path, hosts and faults, all drawn from one seed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use explicate_core::presets::FEEDBACKS;
use explicate_core::rng::{Rng, power};

use super::hosts::{CLIENT, Leaves, Plan, Reads, Script, Server};
use super::machine;
use super::network::{Path, address};
use crate::gateway::identity::Identity;

/// A second, ns.
pub const SECOND: u64 = 1_000_000_000;

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// The path is down for less than the time after which a tunnel fails.
    Outage,
    /// The path is down for longer.
    LongOutage,
    /// Datagrams are lost by chance.
    Loss,
    /// Datagrams come late.
    Reordering,
    /// Datagrams come twice.
    Copies,
    /// The path is narrower than the gateways' configuration says, with a short queue.
    Narrow,
    /// The path carries shorter packets than usual.
    Short,
    /// The calling side's NAT takes another port.
    Rebinding,
    /// A gateway is killed and starts anew.
    Killed,
    /// A gateway is stopped and starts anew.
    Stopped,
    /// A host resets its connection.
    Reset,
    /// A host vanishes.
    Vanishes,
    /// A host reads nothing for a while, or slowly.
    Pauses,
    /// A host never reads, and leaves at last.
    NeverReads,
    /// A destination refuses, or is not there.
    Refused,
    /// So many long transfers that they fill the window of a peer.
    Crowd,
}

/// All kinds.
pub const KINDS: [Kind; 16] = [
    Kind::Outage,
    Kind::LongOutage,
    Kind::Loss,
    Kind::Reordering,
    Kind::Copies,
    Kind::Narrow,
    Kind::Short,
    Kind::Rebinding,
    Kind::Killed,
    Kind::Stopped,
    Kind::Reset,
    Kind::Vanishes,
    Kind::Pauses,
    Kind::NeverReads,
    Kind::Refused,
    Kind::Crowd,
];

/// A fault of the path or of a gateway.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Happens {
    /// The path between these gateways is down from then to then, ns.
    Down(u8, u8, u64, u64),
    /// The NAT of a gateway takes another port.
    Rebinds(u8, u64),
    /// A gateway is killed, or stopped in order, and starts anew.
    Restarts(u8, bool, u64, u64),
}

/// A scene.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its seed.
    pub seed: u64,
    /// Paths between gateways.
    pub paths: Vec<(u8, u8, Path)>,
    /// Configurations of the gateways.
    pub texts: Vec<String>,
    /// Connections.
    pub plans: Vec<Plan>,
    /// What happens.
    pub happens: Vec<Happens>,
    /// Kinds of faults that occur.
    pub kinds: BTreeSet<Kind>,
    /// Bytes that TCP takes and no program reads.
    pub capacity: usize,
    /// The window of a connection, bytes.
    pub window: u32,
    /// The window of a peer, bytes.
    pub peer_window: u32,
    /// Numbers of the connections with keystrokes, during the scene and behind it.
    pub keys: [usize; 2],
    /// From which gateway to which one a flow of TCP goes beside them.
    pub beside: Option<(u8, u8)>,
}

/// Draws of a scene.
pub struct Draws(Rng);

impl Draws {
    /// Those of a seed for a purpose.
    pub fn of(seed: u64, purpose: &str) -> Draws {
        Draws(Rng::stream(seed, purpose))
    }
    pub(super) fn is(&mut self, share: f64) -> bool {
        self.0.uniform() < share
    }
    pub(super) fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.0.uniform()
    }
    /// Evenly by orders of magnitude.
    pub(super) fn scale(&mut self, least: f64, most: f64) -> f64 {
        least * power(most / least, self.0.uniform())
    }
    pub(super) fn seconds(&mut self, least: f64, most: f64) -> u64 {
        // Whole milliseconds, which a story can show.
        (self.between(least, most) * 1e3) as u64 * 1_000_000
    }
    pub(super) fn below(&mut self, most: usize) -> usize {
        ((self.0.uniform() * most as f64) as usize).min(most - 1)
    }
}

/// When connections begin, s after the gateways are connected.
const OPEN: f64 = 8.0;
/// Uploads of a crowd.
const CROWD: usize = 11;
/// Faults happen from then to then, s.
const FAULTS: (f64, f64) = (2.0, 10.0);
/// Seconds behind the last fault after which new connections are carried: behind a restart, and behind what takes a tunnel down.
pub const SOON: u64 = 20 * SECOND;
/// A tunnel fails when the path is down for longer, ns.
pub const LONG: u64 = 50 * SECOND;
/// A tunnel has moved so long behind a change of the NAT, ns.
pub const MOVED: u64 = 5 * SECOND;

impl Scene {
    /// The scene of a seed.
    pub fn of(seed: u64) -> Scene {
        let mut draws = Draws::of(seed, "scene");
        let gateways: u8 = if draws.is(0.12) { 3 } else { 2 };
        let mut kinds = BTreeSet::new();
        // A crowd on a slow line.
        let crowd = draws.is(0.08);
        let rate = if crowd { draws.scale(1e5, 2e5) } else { draws.scale(1e5, 1e6) };
        let path = path(&mut draws, rate, &mut kinds);
        let window = if crowd { 65_536 } else { draws.scale(65_536.0, 262_144.0) as u32 };
        let peer_window = window * if crowd { 8 } else { [8, 8, 16, 64][draws.below(4)] };
        let hub = gateways == 3;
        let paths = if hub { vec![(0, 1, path), (2, 1, path)] } else { vec![(0, 1, path)] };
        let mut scene = Scene {
            seed,
            paths,
            texts: Vec::new(),
            plans: Vec::new(),
            happens: Vec::new(),
            kinds,
            capacity: 2 * draws.scale(4_096.0, 65_536.0) as usize,
            window,
            peer_window,
            keys: [0, 1],
            beside: None,
        };
        scene.draw_happens(&mut draws, hub);
        scene.texts = texts(&mut draws, gateways, &scene, rate);
        scene.draw_plans(&mut draws, gateways, rate);
        if crowd {
            scene.draw_crowd(&mut draws);
        }
        scene
    }

    /// When the faults of the path and the gateways are over, and new connections are carried again, ns.
    pub fn recovered(&self) -> u64 {
        let over = |happens: &Happens| match *happens {
            Happens::Down(_, _, _, to) => to + SOON,
            Happens::Rebinds(_, at) => at + MOVED,
            Happens::Restarts(_, _, _, to) => to + SOON,
        };
        self.happens.iter().map(over).max().unwrap_or(0)
    }

    fn draw_happens(&mut self, draws: &mut Draws, hub: bool) {
        let at = |draws: &mut Draws| draws.seconds(FAULTS.0, FAULTS.1);
        let spoke = if hub && draws.is(0.5) { 2 } else { 0 };
        match draws.below(10) {
            0 | 1 => {
                let from = at(draws);
                self.happens.push(Happens::Down(spoke, 1, from, from + draws.seconds(0.5, 40.0)));
                self.kinds.insert(Kind::Outage);
            }
            2 => {
                let from = at(draws);
                self.happens.push(Happens::Down(spoke, 1, from, from + draws.seconds(70.0, 100.0)));
                self.kinds.insert(Kind::LongOutage);
            }
            3 => {
                self.happens.push(Happens::Rebinds(spoke, at(draws)));
                self.kinds.insert(Kind::Rebinding);
            }
            4 | 5 => {
                let (from, who) = (at(draws), [spoke, 1][draws.below(2)]);
                let to = from + draws.seconds(0.1, 5.0);
                // Behind a NAT it comes back by another port.
                if who != 1 && draws.is(0.5) {
                    self.happens.push(Happens::Rebinds(who, from));
                    self.kinds.insert(Kind::Rebinding);
                }
                self.happens.push(Happens::Restarts(who, false, from, to));
                self.kinds.insert(Kind::Killed);
            }
            6 => {
                let (from, who) = (at(draws), [spoke, 1][draws.below(2)]);
                self.happens.push(Happens::Restarts(who, true, from, from + draws.seconds(1.5, 5.0)));
                self.kinds.insert(Kind::Stopped);
            }
            _ => {}
        }
    }

    fn draw_plans(&mut self, draws: &mut Draws, gateways: u8, rate: f64) {
        let sites = |draws: &mut Draws| match (gateways, draws.below(4)) {
            (3, 0) => (0, 2),
            (3, 1) => (2, 1),
            (3, 2) => (1, 0),
            (_, 0 | 1) => (1, 0),
            _ => (0, 1),
        };
        let accepts = Server::Accepts;
        let echo = |from, to, at, rounds| Plan {
            from,
            client_host: CLIENT,
            to,
            at,
            client: Script::sending(0),
            server: Script::sending(0),
            accepts,
            keys: Some((rounds, SECOND / 2)),
        };
        self.plans.push(echo(0, 1, 0, 40));
        let behind = self.recovered().max(12 * SECOND);
        self.plans.push(echo(0, 1, behind, 4));
        let others = 3 + draws.below(6);
        // So that all of them are done in a few seconds.
        let share = (rate * 5.0).min(400_000.0) / others as f64;
        for _ in 0..others {
            let (from, to) = sites(draws);
            let at = draws.seconds(0.0, OPEN);
            let size = |draws: &mut Draws| draws.scale(1.0, share) as u64;
            let (client, server) = match draws.below(4) {
                // An upload, a download, a request with its answer behind a half-closed connection, and both ways at once.
                0 => (Script::sending(size(draws)), Script { answers: true, ..Script::sending(1) }),
                1 => (Script::sending(30), Script::sending(size(draws))),
                2 => (Script::sending(size(draws)), Script { answers: true, ..Script::sending(size(draws)) }),
                _ => (Script::sending(size(draws)), Script::sending(size(draws))),
            };
            let mut plan = Plan { from, client_host: CLIENT, to, at, client, server, accepts, keys: None };
            self.disturb(draws, &mut plan, share);
            self.plans.push(plan);
        }
    }
    /// Uploads that together have more under way than the window of a peer.
    fn draw_crowd(&mut self, draws: &mut Draws) {
        self.kinds.insert(Kind::Crowd);
        for _ in 0..CROWD {
            let (client, at) = (Script::sending(150_000), draws.seconds(0.0, 1.0));
            let server = Script { answers: true, ..Script::sending(1) };
            self.plans.push(Plan {
                from: 0,
                client_host: CLIENT,
                to: 1,
                at,
                client,
                server,
                accepts: Server::Accepts,
                keys: None,
            });
        }
    }
    /// Has the hosts of a connection misbehave.
    fn disturb(&mut self, draws: &mut Draws, plan: &mut Plan, share: f64) {
        let at_client = draws.is(0.5);
        let script = if at_client { &mut plan.client } else { &mut plan.server };
        let kind = match draws.below(24) {
            0 | 1 => {
                script.reads = match draws.is(0.5) {
                    true => Reads::Paused(draws.scale(1.0, share) as u64, draws.seconds(1.0, 10.0)),
                    false => Reads::Slowly(draws.scale(400.0, 4_000.0) as usize),
                };
                Kind::Pauses
            }
            2 => {
                script.leaves = Some((draws.seconds(0.0, 4.0), Leaves::Reset));
                script.idles = draws.is(0.5);
                Kind::Reset
            }
            3 => {
                script.leaves = Some((draws.seconds(0.0, 4.0), Leaves::Vanishes));
                script.idles = draws.is(0.6);
                if !script.idles {
                    // Bytes wait for it.
                    script.reads = Reads::Slowly(1000);
                    let other = if at_client { &mut plan.server } else { &mut plan.client };
                    (other.sends, other.answers) = (300_000, false);
                }
                Kind::Vanishes
            }
            4..=6 => {
                // Much is sent to a host that does not read, until one of them leaves.
                script.reads = Reads::Never;
                let (other, time) = (draws.is(0.5), draws.seconds(8.0, 15.0));
                let (reader, writer) = match at_client {
                    true => (&mut plan.client, &mut plan.server),
                    false => (&mut plan.server, &mut plan.client),
                };
                writer.sends = 2_000_000;
                writer.answers = false;
                let leaves = Some((time, Leaves::Reset));
                if other {
                    writer.leaves = leaves
                } else {
                    reader.leaves = leaves
                }
                self.kinds.insert(Kind::Reset);
                Kind::NeverReads
            }
            7 => {
                plan.accepts = if draws.is(0.5) { Server::Refuses } else { Server::Absent };
                Kind::Refused
            }
            _ => return,
        };
        self.kinds.insert(kind);
    }
}

pub(super) fn path(draws: &mut Draws, rate: f64, kinds: &mut BTreeSet<Kind>) -> Path {
    let delay = (draws.scale(3.0, 150.0) * 1e6) as u64;
    let mut path =
        Path { rate: rate * 1.1, steps: None, delay, queue: 100_000, loss: 0.0, late: 0.0, copies: 0.0, mtu: 1500 };
    if draws.is(0.2) {
        path.loss = draws.scale(0.001, 0.02);
        kinds.insert(Kind::Loss);
    }
    if draws.is(0.12) {
        path.late = draws.scale(0.001, 0.05);
        kinds.insert(Kind::Reordering);
    }
    if draws.is(0.12) {
        path.copies = draws.scale(0.001, 0.05);
        kinds.insert(Kind::Copies);
    }
    if draws.is(0.12) {
        path.rate = rate * draws.between(0.5, 0.9);
        path.queue = draws.scale(15_000.0, 60_000.0) as u64;
        kinds.insert(Kind::Narrow);
    }
    if draws.is(0.12) {
        path.mtu = 1280 + draws.below(200);
        kinds.insert(Kind::Short);
    }
    path
}

/// The configurations: the gateway 1 is called by the others, and joins them if there are two.
fn texts(draws: &mut Draws, gateways: u8, scene: &Scene, rate: f64) -> Vec<String> {
    let rate = format!("{}bit/s", (8.0 * rate) as u64);
    let rebinds = scene.kinds.contains(&Kind::Rebinding);
    let both_call = gateways == 2 && !rebinds && draws.is(0.2);
    let (unshaped, measured) = (draws.is(0.15), draws.is(0.15));
    let parity = !draws.is(0.2);
    let protocol = FEEDBACKS[draws.below(3)];
    (0..gateways)
        .map(|number| {
            let mut text = format!(
                "[site]\ninterfaces = [\"lan\"]\nnetworks = [\"198.18.{number}.0/24\"]\nwhen_down = \"reset\"\n\
                 between_peers = {}\n",
                gateways == 3 && number == 1
            );
            let _ = writeln!(text, "[wan]\nparity = {parity}");
            if !unshaped {
                let _ = writeln!(text, "rate = \"{rate}\"\nprotocol = \"{protocol}\"");
                if measured {
                    let _ = writeln!(text, "capacity = {{ measured = true, floor = \"100kbit/s\" }}");
                }
            }
            let Scene { window, peer_window, .. } = scene;
            let _ = writeln!(text, "[limits]\nconnection_bytes = {window}\npeer_bytes = {peer_window}");
            for peer in (0..gateways).filter(|peer| *peer != number && (*peer == 1 || number == 1)) {
                let line = Identity::of(machine::key(peer)).map(|identity| identity.public.line()).unwrap_or_default();
                let _ = writeln!(text, "[[peer]]\nname = \"gateway-{peer}\"\nkey = \"{line}\"");
                if peer == 1 || both_call {
                    let _ = writeln!(text, "address = \"{}\"", address(peer));
                }
                let behind = (0..gateways).filter(|site| *site == peer || (peer == 1 && *site != number));
                let networks: Vec<String> = behind.map(|site| format!("\"198.18.{site}.0/24\"")).collect();
                let _ = writeln!(text, "networks = [{}]", networks.join(", "));
            }
            text
        })
        .collect()
}
