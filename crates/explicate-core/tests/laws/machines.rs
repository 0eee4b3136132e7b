//! Each machine by itself, driven through its trait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use explicate_core::api::{AnyProtocol, AnyRouter, AnySender, LossKind, PortView, RouterInit, SenderInit};
use explicate_core::channel::{Channel, ChannelInit};
use explicate_core::params::Values;
use explicate_core::qdisc::{ActiveQueue, Discipline, DropCause, Gone, Qdisc, QdiscInit, Queued, Verdict};
use explicate_core::recovery::{AnyRecovery, AnyRecoveryKind, COMMON, Next};
use explicate_core::registry::{CHANNELS, PROTOCOLS, QDISCS, RECOVERIES};
use explicate_core::rng::Rng;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Ecn, Format, Packet, Transport, flag};

use crate::{Dice, Hash, repeats};

const OPERATIONS: u32 = 20_000;
const SEEDS: u64 = 8;

fn data(dice: &mut Dice) -> Packet {
    let mut p = Packet { ip_len: 40 + dice.number(1461) as u16, congestion: dice.congestion(), ..Packet::EMPTY };
    if dice.flip(0.3) {
        p.set_ecn(Ecn::Capable0);
    }
    p.transport.set_flow(dice.number(20));
    p.transport.set_segment(dice.number(1000));
    if dice.flip(0.2) {
        p.transport.set_flags(dice.number(256) as u8);
    }
    p.transport.set_code(dice.number(4) as u8);
    p
}

// ---------------------------------------------------------------------------------------------------- senders

#[test]
fn senders_keep_a_window() {
    for p in PROTOCOLS {
        repeats(p.name(), SEEDS, |dice| sender(*p, dice));
    }
}

fn sender(p: &AnyProtocol, dice: &mut Dice) -> Hash {
    let values = dice.values(&[p.params()]);
    let init = SenderInit {
        values: &values,
        packet: 1500.0,
        initial_window: (1 + dice.number(10)) as f64,
        interface: Rate::mbps(1 + dice.below(1000)),
    };
    let mut s = p.sender(&init);
    let mut receiver = p.receiver();
    let mut hash = Hash::new();
    let mut now = dice.span(1.0);
    let srtt =
        |dice: &mut Dice| if dice.flip(0.05) { Time(1 + dice.below(20_000_000_000)) } else { dice.span(0.1) + Time(1) };
    s.on_start(now, srtt(dice));
    check_sender(p, &*s, &mut hash);
    for _ in 0..OPERATIONS {
        now += if dice.flip(0.01) { dice.span(10.0) } else { dice.span(0.002) };
        match dice.below(20) {
            0 => {
                let kind = [LossKind::Duplicates, LossKind::Timeout, LossKind::Mark][dice.below(3) as usize];
                let mut loss = testing::loss(now, kind, dice.number(2000));
                loss.srtt = srtt(dice);
                loss.repeated = kind == LossKind::Timeout && dice.flip(0.5);
                s.on_loss(&loss);
            }
            1..=9 => {
                let mut packet = data(dice);
                let mut sent = testing::sent(now, dice.number(2000));
                sent.backlogged = dice.flip(0.8);
                s.on_send(&mut packet, &sent);
                if let Some(receiver) = &mut receiver {
                    receiver.on_data(now, &packet);
                }
                let mut put = |p: &Packet| {
                    let bytes = p.congestion.0.iter().chain(&p.transport.0).chain([&p.tos]);
                    bytes.for_each(|b| hash.put(*b as u64));
                };
                put(&packet);
                let mut back = data(dice);
                if let Some(receiver) = &mut receiver {
                    receiver.on_ack(now, &mut back);
                }
                put(&back);
            }
            _ => {
                let header = dice.congestion();
                let transport = data(dice).transport;
                let mut ack = testing::ack(now, &header);
                ack.transport = &transport;
                ack.duplicate = dice.flip(0.2);
                ack.newly_acked = if dice.flip(0.05) { dice.number(5000) } else { 1 - ack.duplicate as u32 };
                ack.cumulative = dice.number(100_000);
                ack.highest_sent = ack.cumulative + dice.number(2000);
                ack.in_flight = dice.number(2000);
                ack.srtt = srtt(dice);
                ack.rtt = srtt(dice);
                ack.recovering = dice.flip(0.2);
                ack.app_limited = dice.flip(0.2);
                s.on_ack(&ack);
            }
        }
        check_sender(p, &*s, &mut hash);
        if s.next_timer() <= now {
            s.on_timer(now);
            assert!(s.next_timer() > now, "{}: a timer does not move on", p.name());
            check_sender(p, &*s, &mut hash);
        }
    }
    hash
}

fn check_sender(p: &AnyProtocol, s: &AnySender, hash: &mut Hash) {
    let allowance = s.allowance();
    assert!(allowance.cwnd.is_finite() && allowance.cwnd >= 1.0, "{}: a window of {}", p.name(), allowance.cwnd);
    if let Some(rate) = allowance.pacing {
        assert!(rate.0 > 0, "{} paces at nothing", p.name());
        hash.put(rate.0);
    }
    hash.put_f64(allowance.cwnd);
    hash.put(s.next_timer().0);
    s.probe(&mut |_, value| hash.put_f64(value));
}

/// The header of an acknowledgement of this packet, after a controller of the protocol has written into it.
fn returned(p: &AnyProtocol, mut data: Packet) -> Congestion {
    let values = Values::default();
    let init = RouterInit { values: &values, capacity: 1e6, delay: Time::ZERO, rng: Rng::stream(1, "router") };
    let view = PortView { capacity: 1e6, backlog_bytes: 0, backlog_packets: 0, busy: true };
    let (mut router, mut receiver) = (p.router(&init).unwrap(), p.receiver().unwrap());
    router.on_arrival(Time::secs(1), &mut data, &view);
    router.on_departure(Time::secs(1), &mut data, &view);
    let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
    ack.transport.set_flags(flag::ACK);
    receiver.on_data(Time::secs(1), &data);
    receiver.on_ack(Time::secs(1), &mut ack);
    ack.congestion
}

#[test]
fn feedback_on_duplicates_moves_the_window() {
    for p in PROTOCOLS.iter().filter(|p| p.explicit()) {
        let moved = |speaks: bool| {
            let values = Values::default();
            let init = SenderInit { values: &values, packet: 1500.0, initial_window: 10.0, interface: Rate::mbps(100) };
            let mut s = p.sender(&init);
            s.on_start(Time::secs(1), Time::millis(100));
            let mut header = Congestion::new(Format::MINIMAL);
            let mut transport = Transport::EMPTY;
            let mut data = Packet { ip_len: 1500, congestion: header, ..Packet::EMPTY };
            s.on_send(&mut data, &testing::sent(Time::secs(1), 10));
            let own = data.congestion.0[2] & 0xf > 3;
            if speaks && own {
                header = returned(*p, data);
            } else if speaks {
                header.set_reverse_feedback(100_000);
                transport.set_code(1);
                transport.set_flags(flag::CONGESTED);
            }
            for i in 0..20 {
                let mut ack = testing::ack(Time::secs(1) + Time::millis(10 * i), &header);
                ack.transport = &transport;
                ack.duplicate = true;
                ack.in_flight = 10;
                s.on_ack(&ack);
            }
            s.allowance()
        };
        assert_ne!(moved(true), moved(false), "{}: duplicates carry feedback too", p.name());
    }
}

// ------------------------------------------------------------------------------------------------- recoveries

#[test]
fn recoveries_survive_any_answer() {
    for r in RECOVERIES {
        repeats(r.name(), SEEDS, |dice| recovery(*r, dice));
    }
}

fn recovery(kind: &AnyRecoveryKind, dice: &mut Dice) -> Hash {
    let values = dice.values(&[COMMON, kind.params()]);
    let mut r = kind.build(&values);
    let mut hash = Hash::new();
    let mut now = Time::ZERO;
    let mut number = 0;
    r.on_rtt(dice.span(0.1));
    for _ in 0..OPERATIONS {
        now += if dice.flip(0.01) { dice.span(5.0) } else { dice.span(0.005) };
        match dice.below(10) {
            0..=4 => {
                let (cwnd, rwnd) = (1.0 + dice.0.uniform() * 60.0, dice.number(200));
                for _ in 0..dice.below(5) {
                    let segment = match r.next(cwnd, rwnd) {
                        Next::Nothing => break,
                        Next::Resend(segment) => segment,
                        Next::New if dice.flip(0.9) => r.state().next,
                        Next::New => match r.spare() {
                            Some(segment) => segment,
                            None => break,
                        },
                    };
                    assert!(segment >= r.state().acked && segment <= r.state().highest, "{}", kind.name());
                    r.on_sent(now, segment, number);
                    hash.put(segment as u64);
                    number += 1;
                    check_recovery(kind, &*r, &mut hash);
                }
            }
            5 => now = now.max(r.state().timer.min(now + Time::secs(4000))),
            _ => {
                let acked = r.state().acked;
                let near = |dice: &mut Dice| acked.saturating_sub(3) + dice.number(60);
                let cumulative = match dice.below(8) {
                    0 => dice.0.next_u64() as u32,
                    1..=3 => (acked + dice.number(6)).min(r.state().highest),
                    _ => acked,
                };
                let echo =
                    if dice.flip(0.1) { dice.0.next_u64() as u32 } else { number.saturating_sub(dice.number(20)) };
                let mut ranges = [(0, 0); 3];
                for range in &mut ranges {
                    let first = near(dice);
                    *range = match dice.below(12) {
                        0 => (dice.0.next_u64() as u32, dice.0.next_u64() as u32),
                        1 => (near(dice), near(dice)),
                        _ => (first, first + 1 + dice.number(5)),
                    };
                }
                let count = dice.below(4) as usize;
                let rtt = dice.span(0.1);
                let outcome = r.on_ack(now, cumulative, echo, &ranges[..count], rtt);
                assert!(outcome.newly_acked <= r.state().highest);
                assert!(r.state().acked >= acked, "{}: acknowledgements are not taken back", kind.name());
                hash.put(outcome.newly_acked as u64);
                hash.put(outcome.loss.map_or(u64::MAX, |n| n as u64));
            }
        }
        check_recovery(kind, &*r, &mut hash);
        if r.state().timer <= now {
            let flight = r.on_timer(now);
            assert!(r.state().timer > now, "{}: the timer does not move on", kind.name());
            assert!(flight.is_none_or(|n| n <= 2 * r.state().highest), "{}", kind.name());
            assert!(flight.is_none() || !r.state().recovering, "{}: a timeout ends an episode", kind.name());
            hash.put(flight.map_or(u64::MAX, |n| n as u64));
            check_recovery(kind, &*r, &mut hash);
        }
    }
    assert!(r.state().acked > 100, "{}: nothing went on", kind.name());
    hash
}

fn check_recovery(kind: &AnyRecoveryKind, r: &AnyRecovery, hash: &mut Hash) {
    let (acked, next, highest) = (r.state().acked, r.state().next, r.state().highest);
    assert!(acked <= next && next <= highest, "{}: {acked} <= {next} <= {highest}", kind.name());
    assert!(r.state().in_flight <= 2 * (highest - acked), "{}: {} in flight", kind.name(), r.state().in_flight);
    assert!(acked == highest || r.state().timer != Time::NEVER, "{}: no timer runs", kind.name());
    hash.put(r.state().in_flight as u64);
    hash.put(r.state().timer.0);
    hash.put(r.state().srtt.0);
}

// --------------------------------------------------------------------------------- routers and queue disciplines

/// A line of 10 Mbit/s with a queue, as a port keeps it.
struct Queue {
    waiting: VecDeque<Packet>,
    serving: Option<Packet>,
    free_since: Time,
}

const CAPACITY: f64 = 1.25e6;

impl Queue {
    fn new() -> Queue {
        Queue { waiting: VecDeque::new(), serving: None, free_since: Time::ZERO }
    }
    fn view(&self) -> PortView {
        PortView {
            capacity: CAPACITY,
            backlog_bytes: self.waiting.iter().map(|p| p.ip_len as u64).sum(),
            backlog_packets: self.waiting.len() as u32,
            busy: self.serving.is_some(),
        }
    }
    fn join(&mut self, packet: Packet) {
        if self.serving.is_none() {
            self.serving = Some(packet);
        } else {
            self.waiting.push_back(packet);
        }
    }
    /// The packet whose last bit leaves, and the view at that instant: what waits, the next one included.
    fn leave(&mut self, now: Time) -> Option<(Packet, PortView)> {
        let packet = self.serving.take()?;
        let view = PortView { busy: true, ..self.view() };
        self.serving = self.waiting.pop_front();
        if self.serving.is_none() {
            self.free_since = now;
        }
        Some((packet, view))
    }
}

#[test]
fn routers_never_raise_a_request() {
    for p in PROTOCOLS {
        repeats(p.name(), SEEDS, |dice| {
            let values = dice.values(&[p.router_params()]);
            let rng = dice.0.clone();
            let delay = Time::millis(dice.below(50));
            let built = p.router(&RouterInit { values: &values, capacity: CAPACITY, delay, rng });
            built.map_or(Hash::new(), |r| router(p.name(), r, dice))
        });
    }
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
        let mut packet = data(dice);
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

#[test]
fn queue_disciplines_decide_alike() {
    for q in QDISCS {
        repeats(q.name(), SEEDS, |dice| {
            let values = dice.values(&[q.params()]);
            let rng = dice.0.clone();
            match q.build(&QdiscInit { values: &values, capacity: CAPACITY, mean_packet: 1000.0, rng }) {
                Discipline::Arrival(discipline) => qdisc(q.name(), discipline, dice),
                Discipline::Departure(queue) => active_queue(q.name(), queue, dice),
            }
        });
    }
}

/// Every packet that joined leaves once, sent or dropped; packets of a flow keep their order; the queue answers while packets
/// wait.
fn active_queue(name: &str, mut queue: Box<dyn ActiveQueue>, dice: &mut Dice) -> Hash {
    let mut hash = Hash::new();
    let mut gone = Gone::new();
    let mut waiting: BTreeMap<u32, (Queued, u32)> = BTreeMap::new();
    let mut last_of_flow: BTreeMap<u32, u32> = BTreeMap::new();
    let mut now = Time::ZERO;
    for handle in 0..OPERATIONS {
        now += if dice.flip(0.001) { dice.span(5.0) } else { dice.span(0.001) };
        let load = if handle / 1000 % 2 == 0 { 0.55 } else { 0.4 };
        if dice.flip(load) {
            let packet = data(dice);
            let capable = packet.ecn() != Ecn::NotCapable;
            let queued = Queued { handle, bytes: packet.ip_len, capable, since: now };
            waiting.insert(handle, (queued, 2 * packet.transport.flow() + packet.is_ack() as u32));
            queue.enqueue(queued, &packet, &mut gone);
        } else if let Some((sent, mark)) = queue.dequeue(now, &mut gone) {
            let (queued, flow) = waiting.remove(&sent.handle).expect("it waited");
            assert_eq!(queued, sent, "{name}");
            assert!(queued.capable || !mark, "{name} marks what cannot be marked");
            let last = last_of_flow.insert(flow, sent.handle);
            assert!(last.is_none_or(|last| last < sent.handle), "{name}: a flow's packets change places");
            hash.put(2 * sent.handle as u64 + mark as u64);
        } else {
            assert_eq!(waiting.len(), gone.len(), "{name} keeps packets back");
        }
        for (dropped, cause) in gone.drain(..) {
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
        // Load comes and goes.
        let load = if i / 1000 % 2 == 0 { 0.55 } else { 0.4 };
        if dice.flip(load) {
            let packet = data(dice);
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

// --------------------------------------------------------------------------------------------------- channels

#[test]
fn channels_repeat_and_keep_time() {
    for c in CHANNELS {
        repeats(c.name(), SEEDS, |dice| {
            let mut values = dice.values(&[c.params()]);
            if c.check(&values).is_err() {
                values = Values::default();
            }
            let mut at = 0;
            values.file = Some(Arc::from_iter((0..1000).map(|_| {
                at += dice.below(4);
                at
            })));
            let step = |i: u64| (Time::millis(20 * i), Rate(1_000_000 * (i % 4)));
            values.steps = Some(Arc::from_iter((0..10).map(step)));
            let init = ChannelInit { values: &values, rate: Rate::mbps(10), rng: dice.0.clone() };
            let mut stages = c.build(init);
            let mut hash = Hash::new();
            let (mut now, mut free, mut served) = (Time::ZERO, Time::ZERO, 0.0);
            for i in 0..OPERATIONS {
                now += dice.span(0.001);
                let mut packet = data(dice);
                packet.ip_len = [40, 576, 1000, 1500][dice.below(4) as usize]; // each is worked out once
                let bytes = packet.ip_len as u32;
                let mut pass = |stage: &mut Option<Box<dyn Channel>>, at, bytes| {
                    stage.as_mut().is_some_and(|channel| {
                        let lost = channel.loses(at, &packet, bytes);
                        hash.put(lost as u64);
                        lost
                    })
                };
                if pass(&mut stages.before, now, bytes) {
                    continue;
                }
                let wire = stages.coding.as_mut().map_or(bytes, |coding| coding.wire_bytes(&packet, bytes));
                assert!(wire >= bytes, "{}: coding makes packets longer", c.name());
                let start = now.max(free);
                if let Some(curve) = &mut stages.service {
                    let finish = curve.finish(start, wire, free <= now);
                    assert!(finish >= start, "{}: a packet leaves before it came", c.name());
                    assert!(i % 100 > 0 || curve.offered(now, finish) >= 0.0);
                    free = finish;
                    // What would leave in a hundred years has not.
                    served += if finish < Time::secs(3_000_000_000) { wire as f64 } else { 0.0 };
                }
                if !pass(&mut stages.on_air, start, wire)
                    && let Some(after) = &mut stages.after
                {
                    let done = after.disturb(start, &packet);
                    hash.put(done.late.0);
                    hash.put(done.copy.map_or(u64::MAX, |gap| gap.0));
                    hash.put(done.damaged as u64);
                }
                hash.put(free.0);
            }
            if let Some(coding) = &stages.coding {
                assert!((0.0..=1.0).contains(&coding.efficiency()), "{}", c.name());
            }
            if let Some(curve) = &stages.service {
                assert!(curve.mean_rate() > 0.0, "{}", c.name());
                let offered = curve.offered(Time::ZERO, free);
                assert!(served <= offered * (1.0 + 1e-9) + 1500.0, "{}: {served} of {offered} bytes", c.name());
                let middle = Time(free.0 / 3);
                let parts = curve.offered(Time::ZERO, middle) + curve.offered(middle, free);
                assert!((parts - offered).abs() <= 1e-9 * offered + 1.0, "{}: {parts} of {offered} bytes", c.name());
            }
            hash
        });
    }
}

/// What a channel predicts of its losses is what it does, to data and to acknowledgements.
#[test]
fn channels_do_what_they_predict() {
    let mut checked = 0;
    for c in CHANNELS {
        for ack in [false, true] {
            let mut values = Values::default();
            if let Some(rate) = c.params().iter().find(|p| p.name == "rate") {
                values.set(rate, 0.05);
            }
            let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
            packet.transport.set_flags(if ack { flag::ACK } else { 0 });
            let mut predicted = None;
            c.predict(&values, &packet, &mut |name, value| {
                assert!(value.is_finite() && value >= 0.0, "{}: {name} is {value}", c.name());
                if name == "packet_loss" {
                    predicted = Some(value);
                }
            });
            let Some(predicted) = predicted else { continue };
            checked += 1;
            let rng = Dice::new(1, c.name()).0;
            let init = ChannelInit { values: &values, rate: Rate::mbps(10), rng };
            let mut observed = None;
            c.observe(init, &packet, 100_000, &mut |name, value| {
                if name == "packet_loss" {
                    observed = Some(value);
                }
            });
            let off = (observed.expect("observed too") - predicted).abs();
            assert!(off < 0.06 * predicted + 1e-4, "{}: {observed:?} of {predicted}", c.name());
        }
    }
    assert!(checked >= 8);
}
