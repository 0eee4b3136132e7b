//! Shapes that later protocols need: agents whose messages travel through the network, and a port with two scheduled classes.

use std::sync::{Arc, Mutex};

use explicate_build::source::Source;
use explicate_core::agent::{Address, Agent, CONTROL_LEN, Control};
use explicate_core::api::RouterInit;
use explicate_core::endpoint::FlowInit;
use explicate_core::params::Values;
use explicate_core::port::{Class, Port, PortInit};
use explicate_core::qdisc::QdiscInit;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::Packet;
use explicate_sim::engine::{Engine, Member, Processing};
use explicate_sim::error::Imbalance;

fn class(limit: f64, router: bool, capacity: Rate) -> Class {
    let kind = registry::qdisc("droptail").expect("registered");
    let mut values = Values::default();
    values.set(&kind.params()[0], limit);
    let rng = || Rng::stream(1, "port");
    let capacity = capacity.bytes_per_sec();
    let init = QdiscInit { values: &values, capacity, mean_packet: 1000.0, rng: rng() };
    let none = Values::default();
    let routing = RouterInit { values: &none, capacity, delay: Time::ZERO, rng: rng() };
    let xcp = registry::protocol("xcp").expect("registered");
    Class { qdisc: Some(kind.build(&init)), router: if router { xcp.router(&routing) } else { None } }
}

fn port(number: u32, rate: Rate, class: Class) -> Port {
    let (before, on_air) = (Vec::new(), Vec::new());
    Port::new(PortInit { number, rate, service: None, capacity: rate.bytes_per_sec(), class, before, on_air })
}

// -------------------------------------------------------------------------------------------------- agents

type Heard = Arc<Mutex<Vec<(Time, u32, [u8; CONTROL_LEN])>>>;

/// Asks another node every 100 ms and keeps the answers; answers every question with its bytes reversed.
struct Asking {
    peer: Option<Address>,
    at: Time,
    number: u8,
    outgoing: Vec<Control>,
    heard: Heard,
}

impl Agent for Asking {
    fn handle_control(&mut self, now: Time, control: &Control) {
        self.heard.lock().expect("one thread").push((now, control.peer.0, control.message));
        if self.peer.is_none() {
            let mut message = control.message;
            message.reverse();
            self.outgoing.push(Control { message, ..*control });
        }
    }
    fn poll_control(&mut self, _now: Time) -> Option<Control> {
        self.outgoing.pop()
    }
    fn handle_timeout(&mut self, now: Time) {
        let Some(peer) = self.peer else { return };
        self.number += 1;
        let message = std::array::from_fn(|i| self.number.wrapping_add(i as u8));
        self.outgoing.push(Control { peer, ip_len: 100, message });
        self.at = now + Time::millis(100);
    }
    fn poll_timeout(&self) -> Time {
        self.at
    }
}

#[test]
fn messages_between_agents_are_routed_through_the_queues_of_data() {
    let mut engine = Engine::new(1, Time::secs(1), true);
    // Nodes 0 - 1 - 2; links 0: 0->1, 1: 1->2, 2: 2->1, 3: 1->0.
    for number in 0..4 {
        engine.add_link(port(number, Rate::mbps(8), class(1e6, false, Rate::mbps(8))), Time::millis(10));
    }
    let heard: [Heard; 2] = [Arc::default(), Arc::default()];
    engine.set_routes(Some(Box::new(|from, to| match (from, to) {
        (0, 2) => Some(vec![0, 1]),
        (2, 0) => Some(vec![2, 3]),
        _ => None,
    })));
    let agent = |peer: Option<u32>, heard: &Heard| Asking {
        peer: peer.map(Address),
        at: if peer.is_some() { Time::millis(5) } else { Time::NEVER },
        number: 0,
        outgoing: Vec::new(),
        heard: heard.clone(),
    };
    engine.add_agent(Address(0), Box::new(agent(Some(2), &heard[0])));
    engine.add_agent(Address(2), Box::new(agent(None, &heard[1])));
    engine.prepare();
    engine.run_until(Time::secs(1));
    engine.catch_up_all();
    engine.audit().expect("control packets are conserved too");
    engine.links[1].port.stats.arrived += 1;
    let complaint = engine.audit().expect_err("a packet too many");
    assert!(matches!(complaint, Imbalance::Link { link: 1, .. }), "{complaint}");
    assert!(complaint.to_string().starts_with("link 1: "), "{complaint}");
    let (asked, answered) = (heard[1].lock().expect("one thread"), heard[0].lock().expect("one thread"));
    assert_eq!((asked.len(), answered.len()), (10, 10));
    // 100 bytes at 8 Mbit/s over two hops of 10 ms: 20.2 ms each way.
    assert_eq!(asked[0].0, Time::micros(5_000 + 20_200));
    assert_eq!(answered[0].0, Time::micros(5_000 + 40_400));
    assert_eq!((asked[0].1, answered[0].1), (0, 2), "who sent it");
    let mut reversed = asked[3].2;
    reversed.reverse();
    assert_eq!(answered[3].2, reversed);
}

// ------------------------------------------------------------------------------------------- two classes

fn explicit_or_not(packet: &Packet) -> usize {
    if packet.congestion.is_present() { 0 } else { 1 }
}

/// One XCP and one SACK flow over one scheduled port; returns what each delivered in the second half, bytes.
fn beside(weights: [u32; 2]) -> [u64; 2] {
    let end = Time::secs(20);
    let rate = Rate::mbps(10);
    let mut engine = Engine::new(1, end, true);
    let share = |w: u32| Rate(rate.0 * w as u64 / (weights[0] + weights[1]) as u64);
    let mut shared = port(0, rate, Class::default());
    let explicit = class(50_000.0, true, share(weights[0]));
    // The controller's capacity is its class's share.
    let xcp = registry::protocol("xcp").expect("registered");
    let none = Values::default();
    let capacity = share(weights[0]).bytes_per_sec();
    let routing = RouterInit { values: &none, capacity, delay: Time::ZERO, rng: Rng::stream(2, "port") };
    let explicit = Class { router: xcp.router(&routing), ..explicit };
    let tcp = class(50_000.0, false, rate);
    shared.schedule(vec![(explicit, weights[0] as f64), (tcp, weights[1] as f64)], explicit_or_not);
    engine.add_link(shared, Time::millis(20));
    engine.add_link(port(1, Rate::mbps(100), class(1e9, false, Rate::mbps(100))), Time::millis(20));
    for (id, name) in ["xcp", "sack"].into_iter().enumerate() {
        let resolved = registry::resolve(name).expect("registered");
        let init = FlowInit {
            id: id as u32,
            protocol: resolved.protocol,
            fallback: resolved,
            recovery: resolved.recovery,
            values: &none,
            packet: 1000,
            interface: rate,
        };
        let route = engine.add_routes(&[0], &[1]);
        engine.add_flow(
            &init,
            route,
            Source::Bulk,
            Processing::none(),
            Time::ZERO,
            Member { group: 0, number: id as u32 },
        );
    }
    engine.prepare();
    engine.run_until(Time::secs(10));
    let before: Vec<u64> = engine.ends.iter().map(|e| e.receiver.stats().bytes).collect();
    engine.run_until(end);
    engine.catch_up_all();
    engine.audit().expect("packets are conserved");
    std::array::from_fn(|i| engine.ends[i].receiver.stats().bytes - before[i])
}

#[test]
fn two_classes_share_a_port_by_weight() {
    let total = 10.0 * Rate::mbps(10).bytes_per_sec();
    for weights in [[1, 1], [3, 1]] {
        let got = beside(weights);
        let expected = total * weights[0] as f64 / (weights[0] + weights[1]) as f64;
        let share = got[0] as f64 / expected;
        assert!((0.95..1.02).contains(&share), "{weights:?}: {got:?}");
        assert!((got[0] + got[1]) as f64 > 0.97 * total, "{weights:?}: {got:?}");
    }
}
