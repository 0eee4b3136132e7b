//! The promises of agents: what nodes say to each other, malformed, forged and replayed.

use std::collections::VecDeque;

use explicate_core::agent::{Address, Agent, AgentInit, CONTROL_LEN, Control, PathOracle};
use explicate_core::api::{AnyProtocol, PortView};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Extension, Packet};

/// Nodes that take part. Every other address is of a third party, which receives nothing.
const NODES: u32 = 3;
/// IP and UDP headers and a message.
const LEN: u16 = 28 + CONTROL_LEN as u16;
/// Entries of a table.
const TABLE: f64 = 4.0;
/// Requests that a node may send in a second.
const REQUESTS: f64 = 20.0;
/// What probes may load a path with, bytes/s.
const PROBES: f64 = 1e5 / 8.0;

/// An input: how the nodes are set, then operations of up to 40 bytes each.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }
    /// A node, or a third party.
    fn address(&mut self) -> Option<Address> {
        let byte = self.byte()? as u32;
        Some(Address(if byte < 128 { byte % NODES } else { byte }))
    }
}

/// A path of one link that is never loaded.
struct Idle(Time);

impl PathOracle for Idle {
    fn links(&mut self, _: Address, _: Address, since: Time, tell: &mut dyn FnMut(u32, f64, f64)) {
        tell(0, 1e6 * self.0.since(since).as_secs_f64(), 0.0);
    }
}

struct World {
    agents: Vec<Box<dyn Agent>>,
    now: Time,
    said: VecDeque<(u32, Control)>,
    kept: Vec<(u32, Control)>,
    /// Bytes to third parties, and in their names to us.
    to_strangers: u64,
    by_strangers: u64,
    /// Bytes of long messages: probes.
    probes: u64,
    kinds: [u8; 8],
}

impl World {
    fn listen(&mut self, node: u32) {
        while let Some(control) = self.agents[node as usize].poll_control(self.now) {
            let strange = control.peer.0 >= NODES;
            self.to_strangers += u64::from(strange) * u64::from(control.ip_len);
            self.probes += if control.ip_len > LEN { u64::from(control.ip_len) } else { 0 };
            let kind = &mut self.kinds[usize::from(control.message[0] % 8)];
            *kind = kind.saturating_add(1);
            // An attacker who could read what is sent to a third party could answer for it.
            if self.kept.len() < 256 && !strange {
                self.kept.push((node, control));
            }
            self.said.push_back((node, control));
        }
    }
    fn hear(&mut self, node: u32, control: &Control) {
        self.agents[node as usize].handle_control(self.now, control);
        self.listen(node);
    }
    fn expire(&mut self) {
        for node in 0..NODES {
            let agent = &mut self.agents[node as usize];
            if agent.poll_timeout() <= self.now {
                agent.consult(self.now, &mut Idle(self.now));
                agent.handle_timeout(self.now);
                self.listen(node);
                assert!(self.agents[node as usize].poll_timeout() > self.now, "a driver would spin");
            }
        }
    }
    /// Carries out an operation; `None` if the script is over.
    fn act(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.byte()? % 6 {
            0 => {
                let [high, low] = script.bytes()?;
                self.now += Time::millis(1 + u64::from(u16::from_be_bytes([high & 0x3f, low])));
            }
            1 | 2 => {
                let (node, to, ttl) = (u32::from(script.byte()?) % NODES, script.address()?, script.byte()?);
                let (congestion, from, written) = (script.bytes()?, script.address()?, script.byte()?);
                let mut packet = Packet { ip_len: 1000, ttl, congestion: Congestion(congestion), ..Packet::EMPTY };
                Extension { counter: written, node: from.0 }.put(&mut packet);
                let asked = packet.congestion.delta_throughput();
                let standard = packet.congestion.is_standard();
                let view = PortView { capacity: 1e6, backlog_bytes: 0, backlog_packets: 0, busy: false };
                let port = (ttl % 4 > 0).then_some(&view);
                self.agents[node as usize].handle_data(self.now, &mut packet, to, port);
                assert!(!standard || packet.congestion.delta_throughput() <= asked, "nobody asks for more");
                self.listen(node);
            }
            3 => {
                let (node, peer, message) = (u32::from(script.byte()?) % NODES, script.address()?, script.bytes()?);
                self.by_strangers += u64::from(peer.0 >= NODES) * u64::from(LEN);
                self.hear(node, &Control { peer, ip_len: LEN, message });
            }
            4 => {
                for _ in 0..self.said.len().min(1000) {
                    let Some((from, control)) = self.said.pop_front() else { break };
                    if control.peer.0 < NODES {
                        self.hear(control.peer.0, &Control { peer: Address(from), ..control });
                    }
                }
            }
            _ => {
                let (node, peer, which) = (u32::from(script.byte()?) % NODES, script.address()?, script.byte()?);
                if let Some(&(_, control)) = self.kept.get(usize::from(which)) {
                    self.by_strangers += u64::from(peer.0 >= NODES) * u64::from(control.ip_len);
                    self.hear(node, &Control { peer, ..control });
                }
            }
        }
        Some(())
    }
}

fn values(protocol: &AnyProtocol, set: [u8; 2]) -> Values {
    let mut values = Values::default();
    let [first, second] = set.map(f64::from);
    let given = [
        ("table", TABLE),
        ("requests_per_s", REQUESTS),
        ("probe_rate", 8.0 * PROBES),
        ("estimator", first % 4.0),
        ("receiver", second % 3.0),
    ];
    for (name, value) in given {
        if let Some(param) = protocol.router_params().iter().find(|p| p.name == name) {
            values.set(param, value);
        }
    }
    values
}

/// Whatever nodes are told, they go on: tables and probes stay bounded, no flow is told to speed up, a timer lies ahead, and a
/// stranger gets no more than what came in his name, and a few requests.
pub(crate) fn agents(bytes: &[u8]) -> u64 {
    let mut script = Script(bytes);
    let (Some(set), Some(protocol)) = (script.bytes(), registry::protocol("xcp_i")) else { return 0 };
    let values = values(protocol, set);
    let agent =
        |own| protocol.agent(&AgentInit { values: &values, own: Address(own), rng: Rng::stream(own.into(), "agent") });
    let mut w = World {
        agents: (0..NODES).filter_map(agent).collect(),
        now: Time::ZERO,
        said: VecDeque::new(),
        kept: Vec::new(),
        to_strangers: 0,
        by_strangers: 0,
        probes: 0,
        kinds: [0; 8],
    };
    while w.act(&mut script).is_some() {
        w.expire();
    }
    let seconds = w.now.as_secs_f64();
    let requests = f64::from(NODES) * REQUESTS * (seconds + 1.0) * f64::from(LEN);
    assert!(w.to_strangers as f64 <= w.by_strangers as f64 + requests, "{} bytes flood strangers", w.to_strangers);
    let paths = f64::from(NODES) * TABLE;
    let most = paths * (PROBES * seconds + 100_000.0);
    assert!(w.probes as f64 <= most, "{} bytes of probes in {seconds} s", w.probes);
    let mut signature = u64::from(set[0] % 4) << 56 | u64::from(set[1] % 3) << 60;
    for agent in &w.agents {
        agent.probe(&mut |name, value| match name {
            "virtual_routers" | "virtual_routers_ahead" | "sessions" => {
                assert!(value <= TABLE, "{name}: {value}");
                signature = signature.wrapping_mul(5) + value as u64;
            }
            "broken" | "malformed" | "refused" => signature = signature.wrapping_mul(3) + (value as u64).min(2),
            _ => {}
        });
    }
    w.kinds.iter().fold(signature, |s, n| s.wrapping_mul(4) + u64::from((*n).min(3)))
}
