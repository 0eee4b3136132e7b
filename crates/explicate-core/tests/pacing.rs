//! A flow whose pace is slower than its window allows: the window is never full, and yet it is not idle.

use std::cell::Cell;
use std::rc::Rc;

use explicate_core::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit};
use explicate_core::endpoint::{FlowInit, ReceiverEndpoint, SenderEndpoint};
use explicate_core::params::{Info, Values};
use explicate_core::registry;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges};

thread_local! {
    /// Acknowledgements that said that the application was the limit, and that it was not.
    static HEARD: Rc<Cell<(u32, u32)>> = Rc::default();
}

struct Slow;

impl Protocol for Slow {
    const INFO: Info = Info {
        name: "slow",
        summary: "Ten segments in flight, a packet every 50 ms",
        source: "this test",
        params: &[],
    };

    fn sender(&self, _init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(SlowSender)
    }
}

struct SlowSender;

impl Sender for SlowSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: 10.0, pacing: Some(Rate::bps(160_000)) } // 1000 bytes in 50 ms
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        HEARD.with(|heard| {
            let (limited, not) = heard.get();
            heard.set((limited + ack.app_limited as u32, not + !ack.app_limited as u32));
        });
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn probe(&self, _put: Probe<'_>) {}
}

/// Sends so many segments over a round trip of 100 ms; returns the events of its sender.
fn heard(segments: u64) -> (u32, u32) {
    HEARD.with(|heard| heard.set((0, 0)));
    let values = Values::default();
    let init = FlowInit { protocol: &Slow, ..testing::flow(registry::resolve("sack").unwrap(), &values) };
    let (mut flow, mut receiver) = (SenderEndpoint::new(&init), ReceiverEndpoint::new(&init));
    flow.write(segments * flow.payload() as u64, false);
    let mut back: std::collections::VecDeque<(Time, Packet, SackRanges)> = Default::default();
    let mut now = Time::ZERO;
    loop {
        let mut packet = Packet::EMPTY;
        while flow.poll_transmit(now, &mut packet) {
            receiver.handle_packet(now, &packet);
            let (mut ack, mut sack) = (Packet::EMPTY, SackRanges::NONE);
            assert!(receiver.poll_transmit(now, &mut ack, &mut sack));
            back.push_back((now + Time::millis(100), ack, sack));
        }
        let arrives = back.front().map_or(Time::NEVER, |b| b.0);
        now = arrives.min(flow.poll_timeout());
        if now == Time::NEVER {
            return HEARD.with(|heard| heard.get());
        }
        if arrives == now {
            let (_, ack, sack) = back.pop_front().unwrap();
            flow.handle_packet(now, &ack, &sack);
        } else {
            flow.handle_timeout(now);
        }
    }
}

#[test]
fn a_pace_is_no_idleness() {
    let (limited, not) = heard(40);
    assert_eq!(limited + not, 40);
    assert!(limited <= 2, "the last ones: {limited} of 40");
    assert_eq!(heard(1), (1, 0), "one segment, and nothing more to send");
}
