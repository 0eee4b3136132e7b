//! A flow that its pace holds back has more to send: acknowledgements say something about its window.

use std::collections::VecDeque;

use explicate_core::flow::{self, Flow, FlowInit, Sink};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};

/// The set-up took 110 ms, every packet after it takes 100 ms: a window paced over 110 ms is never all under way.
#[test]
fn a_paced_window_grows_though_it_is_never_full() {
    let mut values = Values::default();
    let paced = flow::PARAMS.iter().find(|p| p.name == "paced").expect("a parameter");
    values.set(paced, 1.0);
    let reno = registry::resolve("reno").expect("a preset");
    let init = FlowInit {
        id: 1,
        protocol: reno.protocol,
        fallback: reno.protocol,
        recovery: reno.recovery,
        values: &values,
        packet: 1000,
        interface: Rate::mbps(100),
    };
    let (mut flow, mut sink) = (Flow::new(&init), Sink::new(&init));
    let mut under_way: VecDeque<(Time, Packet)> = VecDeque::new();
    let (mut now, mut packet, mut sack) = (Time::ZERO, Packet::EMPTY, SackRanges::NONE);
    flow.write(u64::MAX, false);
    while now < Time::secs(1) {
        while flow.poll_transmit(now, &mut packet) {
            let syn = packet.transport.has(flag::SYN);
            let mut ack = packet;
            assert!(sink.turn(now, &mut ack, &mut sack));
            under_way.push_back((now + Time::millis(if syn { 110 } else { 100 }), ack));
        }
        let arrives = under_way.front().map_or(Time::NEVER, |(at, _)| *at);
        now = arrives.min(flow.poll_timeout());
        if arrives == now {
            let (_, ack) = under_way.pop_front().expect("something arrives");
            flow.handle_packet(now, &ack, &sack);
        } else {
            flow.handle_timeout(now);
        }
    }
    assert!(flow.cwnd() > 100.0, "nine round trips of slow start end at a window of {}", flow.cwnd());
}
