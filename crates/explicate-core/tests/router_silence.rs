//! Every controller leaves acknowledgements alone: drivers omit it where only those pass.

use explicate_core::api::{PortView, RouterInit};
use explicate_core::params::Values;
use explicate_core::qdisc::DropCause;
use explicate_core::registry::PROTOCOLS;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Format, Packet, flag};

#[test]
fn acknowledgements_alone_are_never_written_to() {
    let values = Values::default();
    let mut tried = 0;
    for protocol in PROTOCOLS {
        let rng = Rng::stream(1, "router");
        let init = RouterInit { values: &values, capacity: 1e6, delay: Time::ZERO, rng };
        let Some(mut router) = protocol.router(&init) else { continue };
        tried += 1;
        let mut rng = Rng::stream(2, "packets");
        let mut now = Time::ZERO;
        for _ in 0..20_000 {
            now += Time(rng.next_u64() % 2_000_000);
            let backlog_packets = (rng.next_u64() % 50) as u32;
            let view =
                PortView { capacity: 1e6, backlog_bytes: 72 * backlog_packets as u64, backlog_packets, busy: true };
            let mut ack = Packet { ip_len: 72, congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
            ack.transport.set_flags(flag::ACK);
            ack.congestion.set_reverse_feedback(rng.next_u64() as i32);
            let before = (ack.congestion, ack.transport, ack.tos);
            while router.next_timer() <= now {
                let due = router.next_timer();
                router.on_timer(due, &view);
            }
            router.on_arrival(now, &mut ack, &view);
            if rng.next_u64().is_multiple_of(10) {
                router.on_drop(now, &ack, DropCause::Overflow, &view);
            } else {
                router.on_departure(now, &mut ack, &view);
            }
            assert_eq!((ack.congestion, ack.transport, ack.tos), before, "{}", protocol.name());
        }
    }
    assert!(tried > 0, "some protocol has a router");
}
