//! Agents of routers, with arbitrary messages.

use std::collections::VecDeque;

use explicate_core::agent::{Address, Agent, AgentInit, CONTROL_LEN, Control};
use explicate_core::api::{AnyProtocol, PortView};
use explicate_core::params::Values;
use explicate_core::units::Time;
use explicate_core::wire::{Extension, Packet, flag};

use crate::random::{Dice, Hash, RandomPath, repeats};

const NODES: u32 = 3;

/// Nodes, messages that were sent and not delivered yet, and those that an eavesdropper has recorded.
struct World {
    agents: Vec<Box<dyn Agent>>,
    /// Sender, receiver, message.
    said: VecDeque<(u32, Control)>,
    kept: Vec<(u32, Control)>,
    now: Time,
    hash: Hash,
}

impl World {
    /// Takes the messages of a node; returns their number.
    fn listen(&mut self, node: u32) -> usize {
        let before = self.said.len();
        while let Some(control) = self.agents[node as usize].poll_control(self.now) {
            control.message.iter().for_each(|b| self.hash.put(*b as u64));
            self.hash.put((control.peer.0 as u64) << 16 | control.ip_len as u64);
            assert!(
                control.ip_len as usize >= 28 + CONTROL_LEN,
                "a packet of {} bytes is too short for a message",
                control.ip_len
            );
            if self.kept.len() < 500 {
                self.kept.push((node, control));
            }
            self.said.push_back((node, control));
        }
        self.said.len() - before
    }
    fn expire(&mut self, node: u32, dice: &mut Dice, name: &str) {
        let agent = &mut self.agents[node as usize];
        if agent.poll_timeout() > self.now {
            return;
        }
        agent.consult(self.now, &mut RandomPath(dice));
        agent.handle_timeout(self.now);
        self.listen(node);
        let next = self.agents[node as usize].poll_timeout();
        assert!(next > self.now, "{name}: after handle_timeout at {}, the next timeout is at {next}", self.now);
        self.hash.put(next.0);
    }
}

/// Data with the extension's fields, true, forged or wild.
fn data(dice: &mut Dice) -> Packet {
    let mut packet = Packet { ip_len: 40 + dice.number(1461) as u16, congestion: dice.congestion(), ..Packet::EMPTY };
    packet.transport.set_flow(dice.number(5));
    if dice.flip(0.02) {
        packet.transport.set_flags(flag::CONTROL);
    }
    packet.ttl = if dice.flip(0.1) { dice.number(256) as u8 } else { 64 - dice.number(5) as u8 };
    if dice.flip(0.95) {
        let ttl = if dice.flip(0.1) {
            dice.number(256) as u8
        } else {
            packet.ttl.saturating_add(dice.number(4) as u8).min(64)
        };
        let last_router = match dice.below(20) {
            0 => u32::MAX,
            1 => dice.0.next_u64() as u32,
            _ => dice.number(NODES),
        };
        Extension { counter: ttl, node: last_router }.put(&mut packet);
    }
    packet
}

fn agents(p: &AnyProtocol, dice: &mut Dice) -> Hash {
    let name = p.name();
    let values = dice.values(&[p.router_params()]);
    let make = |own: u32| p.agent(&AgentInit { values: &values, own: Address(own), rng: dice.0.clone() });
    let Some(agents) = (0..NODES).map(make).collect::<Option<Vec<_>>>() else { return Hash::new() };
    let mut w = World { agents, said: VecDeque::new(), kept: Vec::new(), now: Time::ZERO, hash: Hash::new() };
    for _ in 0..4_000 {
        w.now += if dice.flip(0.01) { dice.span(20.0) } else { dice.span(0.005) };
        (0..NODES).for_each(|node| w.expire(node, dice, name));
        let node = dice.number(NODES);
        let agent = &mut w.agents[node as usize];
        match dice.below(10) {
            0..=3 => {
                let mut packet = data(dice);
                let asked = packet.congestion.delta_throughput();
                let (standard, control) = (packet.congestion.is_standard(), packet.transport.has(flag::CONTROL));
                let view =
                    PortView { capacity: 1e6, backlog_bytes: dice.below(100_000), backlog_packets: 3, busy: true };
                let port = dice.flip(0.7).then_some(&view);
                let news = agent.handle_data(w.now, &mut packet, Address(dice.number(NODES)), port);
                assert!(!standard || packet.congestion.delta_throughput() <= asked, "{name} raises a request");
                assert!(!control || !news, "{name}: handle_data accepts a packet that is flagged as a message");
                w.hash.put(packet.congestion.delta_throughput() as u64);
                assert!(news || w.listen(node) == 0, "{name}: handle_data returned false, and a message waits");
            }
            4 => {
                // Arbitrary bytes, in the name of any node.
                let mut message = [0; CONTROL_LEN];
                message.fill_with(|| dice.below(256) as u8);
                if dice.flip(0.8) {
                    (message[0], message[1]) = (dice.number(9) as u8, 0);
                }
                let peer = Address(if dice.flip(0.5) { dice.number(NODES) } else { dice.0.next_u64() as u32 });
                agent.handle_control(w.now, &Control { peer, ip_len: 28 + CONTROL_LEN as u16, message });
            }
            5 if !w.kept.is_empty() => {
                // Sent once, delivered again, perhaps to another.
                let (from, control) = w.kept[dice.below(w.kept.len() as u64) as usize];
                agent.handle_control(w.now, &Control { peer: Address(from), ..control });
            }
            _ => {}
        }
        w.listen(node);
        for _ in 0..dice.below(50) {
            let Some((from, control)) = w.said.pop_front() else { break };
            if control.peer.0 < NODES && dice.flip(0.95) {
                let heard = Control { peer: Address(from), ..control };
                w.agents[control.peer.0 as usize].handle_control(w.now, &heard);
                let answers = w.listen(control.peer.0);
                assert!(answers <= 1, "{name}: {answers} messages are the answer to one");
            }
        }
        w.said.truncate(10_000);
    }
    for agent in &w.agents {
        let mut told = 0;
        agent.probe(&mut |variable, value| {
            assert!(value.is_finite() && value >= 0.0, "{name}: {variable} is {value}");
            told += 1;
        });
        agent.probe_peers(&mut |_, variable, value| {
            assert!(!value.is_infinite(), "{name}: {variable} is {value}");
            w.hash.put_f64(value);
        });
        assert!(told > 0, "{name}: probe reports no variable");
    }
    w.hash
}

/// The agents of routers survive any message; whether the protocol has any.
pub fn agents_survive_any_message(p: &'static AnyProtocol) -> bool {
    let init = AgentInit { values: &Values::default(), own: Address(0), rng: Dice::new(1, "agent").0 };
    let has = p.agent(&init).is_some();
    if has {
        repeats(p.name(), 40, |dice| agents(p, dice));
    }
    has
}
