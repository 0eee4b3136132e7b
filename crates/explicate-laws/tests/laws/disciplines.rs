//! Queue disciplines: every packet is accounted for, and only capable packets are marked.

use std::collections::BTreeMap;

use explicate_core::qdisc::{
    ActiveQueue, AnyQdiscKind, Discipline, DropCause, Dropped, Qdisc, QdiscInit, Queued, Verdict,
};
use explicate_core::registry::QDISCS;
use explicate_core::units::Time;
use explicate_core::wire::Ecn;
use explicate_laws::queue::{CAPACITY, Queue};
use explicate_laws::random::{Dice, Hash, OPERATIONS, SEEDS, repeats};

#[test]
fn queue_disciplines_decide_alike() {
    for q in QDISCS {
        repeats(q.name(), SEEDS, |dice| {
            let values = dice.values(&[q.params()]);
            let rng = dice.0.clone();
            match q.build(&QdiscInit { values: &values, capacity: CAPACITY, mean_packet: 1000.0, rng }) {
                Discipline::Arrival(discipline) => qdisc(q.name(), discipline, dice),
                Discipline::Departure(queue) => active_queue(*q, queue, dice),
            }
        });
    }
}

/// Every packet that joined leaves once, sent or dropped; packets of a flow keep their order, of a flow and kind
/// where those of L4S wait apart; the queue answers while packets wait.
fn active_queue(kind: &AnyQdiscKind, mut queue: Box<dyn ActiveQueue>, dice: &mut Dice) -> Hash {
    let name = kind.name();
    let mut hash = Hash::new();
    let mut dropped = Dropped::new();
    let mut waiting: BTreeMap<u32, (Queued, (u32, bool, bool))> = BTreeMap::new();
    let mut last_of_flow: BTreeMap<(u32, bool, bool), u32> = BTreeMap::new();
    let mut now = Time::ZERO;
    for handle in 0..OPERATIONS {
        now += if dice.flip(0.001) { dice.span(5.0) } else { dice.span(0.001) };
        let load = if handle / 1000 % 2 == 0 { 0.55 } else { 0.4 };
        if dice.flip(load) {
            let packet = dice.packet();
            let capable = packet.ecn() != Ecn::NotCapable;
            let queued = Queued { handle, bytes: packet.ip_len, capable, since: now };
            let l4s = kind.l4s_apart() && matches!(packet.ecn(), Ecn::Capable1 | Ecn::Marked);
            waiting.insert(handle, (queued, (packet.transport.flow(), packet.is_ack(), l4s)));
            queue.enqueue(queued, &packet, &mut dropped);
        } else if let Some((sent, mark)) = queue.dequeue(now, &mut dropped) {
            let (queued, flow) = waiting.remove(&sent.handle).expect("it waited");
            assert_eq!(queued, sent, "{name}");
            assert!(queued.capable || !mark, "{name} marks what cannot be marked");
            let last = last_of_flow.insert(flow, sent.handle);
            assert!(last.is_none_or(|last| last < sent.handle), "{name}: a flow's packets change places");
            hash.put(2 * sent.handle as u64 + mark as u64);
        } else {
            assert_eq!(waiting.len(), dropped.len(), "{name} keeps packets back");
        }
        for (dropped, cause) in dropped.drain(..) {
            assert_eq!(waiting.remove(&dropped.handle).expect("it waited").0, dropped, "{name}");
            hash.put(dropped.handle as u64 + ((cause as u64) << 32));
        }
    }
    queue.probe(&mut |what, value| {
        assert!(!value.is_nan(), "{name}: {what} is not a number");
        hash.put_f64(value);
    });
    hash
}

fn qdisc(name: &str, mut q: Box<dyn Qdisc>, dice: &mut Dice) -> Hash {
    let mut hash = Hash::new();
    let mut queue = Queue::new();
    let mut now = Time::ZERO;
    for i in 0..OPERATIONS {
        now += if dice.flip(0.001) { dice.span(5.0) } else { dice.span(0.001) };
        if q.next_timer() <= now {
            q.on_timer(now, &queue.view());
            assert!(q.next_timer() > now, "{}: a timer does not move on", name);
        }
        // The load varies.
        let load = if i / 1000 % 2 == 0 { 0.55 } else { 0.4 };
        if dice.flip(load) {
            let packet = dice.packet();
            let idle = queue.serving.is_none().then_some(queue.free_since);
            let verdict = q.on_arrival(now, &packet, &queue.view(), idle);
            match verdict {
                Verdict::Accept => queue.join(packet),
                Verdict::Mark => {
                    assert_ne!(packet.ecn(), Ecn::NotCapable, "{} marks what cannot be marked", name);
                    queue.join(packet);
                }
                Verdict::Drop(cause) => {
                    let idle = cause == DropCause::Overflow && queue.serving.is_none();
                    assert!(!idle, "{}: an idle line has room", name);
                    hash.put(1 + cause as u64);
                }
            }
            hash.put(verdict.eq(&Verdict::Mark) as u64);
        } else if let Some((_, view)) = queue.leave(now) {
            q.on_departure(now, &view);
        }
    }
    q.probe(&mut |what, value| {
        assert!(!value.is_nan(), "{}: {what} is not a number", name);
        hash.put_f64(value);
    });
    hash
}
