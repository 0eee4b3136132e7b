//! Routers: none raises a request, or writes where it may not.

use explicate_core::api::{AnyProtocol, AnyRouter, RouterInit};
use explicate_core::qdisc::DropCause;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, flag};

use crate::queue::{CAPACITY, Queue};
use crate::random::{Dice, Hash, OPERATIONS, SEEDS, repeats};

/// A router never raises a request, writes only where it may, and its timers move on.
pub fn routers_never_raise_a_request(p: &'static AnyProtocol) {
    repeats(p.name(), SEEDS, |dice| {
        let values = dice.values(&[p.router_params()]);
        let rng = dice.0.clone();
        let delay = Time::millis(dice.below(50));
        let built = p.router(&RouterInit { values: &values, capacity: CAPACITY, delay, rng });
        built.map_or(Hash::new(), |r| router(p.name(), r, dice))
    });
}

fn router(name: &str, mut r: Box<AnyRouter>, dice: &mut Dice) -> Hash {
    let mut hash = Hash::new();
    let mut queue = Queue::new();
    let mut now = Time::ZERO;
    let mut lower = |before: &Packet, after: &Packet| {
        let (was, is) = (before.congestion, after.congestion);
        assert_eq!((was.is_present(), was.is_standard()), (is.is_present(), is.is_standard()), "{name}");
        assert!(is.delta_throughput() <= was.delta_throughput(), "{name} raises a request");
        assert_eq!(after.ip_len, before.ip_len);
        assert_eq!(was.is_window(), is.is_window(), "{name}");
        if !was.is_standard() && !was.is_window() {
            assert_eq!(is.delta_throughput(), was.delta_throughput(), "{name} writes where it may not");
        }
        let (was, is) = (before.ecn() as u8, after.ecn() as u8);
        assert!(is >= was && (was == 0) == (is == 0), "{name} lowers a code, or writes one where none is");
        let (was, is) = (before.transport, after.transport);
        assert_eq!((was.flags() | flag::CONGESTED, &was.0[1..]), (is.flags() | flag::CONGESTED, &is.0[1..]), "{name}");
        assert!(!was.has(flag::CONGESTED) || is.has(flag::CONGESTED), "{name} takes a flag back");
        after.congestion.0.iter().chain(&after.transport.0).chain([&after.tos]).for_each(|b| hash.put(*b as u64));
    };
    for _ in 0..OPERATIONS {
        now += if dice.flip(0.001) { dice.span(5.0) } else { dice.span(0.001) };
        // A few timers at their time, the last one late.
        for late in [false, false, false, true] {
            let due = r.next_timer();
            if due <= now {
                let at = if late { now } else { due };
                r.on_timer(at, &queue.view());
                assert!(r.next_timer() > at, "{name}: a timer does not move on");
            }
        }
        let mut packet = dice.packet();
        let before = packet;
        match dice.below(5) {
            0 | 1 => {
                r.on_arrival(now, &mut packet, &queue.view());
                lower(&before, &packet);
                queue.join(packet);
            }
            2 if dice.flip(0.2) => {
                r.on_arrival(now, &mut packet, &queue.view());
                let cause = if dice.flip(0.5) { DropCause::Overflow } else { DropCause::Early };
                r.on_drop(now, &packet, cause, &queue.view());
            }
            _ => {
                if let Some((mut packet, view)) = queue.leave(now) {
                    let before = packet;
                    r.on_departure(now, &mut packet, &view);
                    lower(&before, &packet);
                }
            }
        }
    }
    r.probe(&mut |what, value| assert!(!value.is_nan(), "{name}: {what} is not a number"));
    hash
}
