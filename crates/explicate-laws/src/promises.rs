//! Promises that save work: a protocol keeps those that it makes.
//!
//! Each law drives two machines of one kind: one that is called as the default value of the promise demands, and one that is
//! spared calls. Both have to agree in all that can be seen of them.

use std::fmt::Debug;

use explicate_core::api::{
    Allowance, AnyProtocol, AnyReceiver, AnyRouter, AnySender, LossKind, PortView, RouterInit, SenderInit,
};
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet};

use crate::random::Dice;

const EVENTS: u32 = 5000;
const SEEDS: u64 = 4;

/// Which promise does not hold, and the first difference found.
type Judged = Result<(), String>;

/// Compares what a machine does that is called every time, and one that is spared calls because of `promise`.
fn same<T: PartialEq + Debug>(promise: &str, what: &str, now: Time, plain: T, spared: T) -> Judged {
    if plain == spared {
        return Ok(());
    }
    Err(format!(
        "{promise} does not hold: at {now}, {what} is {plain:?}, and {spared:?} where the promise is relied on"
    ))
}

fn same_packet(promise: &str, now: Time, plain: &Packet, spared: &Packet) -> Judged {
    same(promise, "a packet's congestion header", now, plain.congestion, spared.congestion)?;
    same(promise, "a packet's transport header", now, plain.transport, spared.transport)?;
    same(promise, "a packet's TOS", now, plain.tos, spared.tos)?;
    same(promise, "a packet's TTL", now, plain.ttl, spared.ttl)
}

/// Compares variables, which have to be equal to the last bit.
fn same_variables(promise: &str, now: Time, plain: &[Variable], spared: &[Variable]) -> Judged {
    same(promise, "the number of variables", now, plain.len(), spared.len())?;
    let differs = |pair: &(&Variable, &Variable)| pair.0.0 != pair.1.0 || pair.0.1.to_bits() != pair.1.1.to_bits();
    match plain.iter().zip(spared).find(differs) {
        Some((a, b)) => same(promise, "a variable", now, a, b),
        None => Ok(()),
    }
}

type Variable = (&'static str, f64);

// ------------------------------------------------------------------------------------------------- senders

fn seen(s: &AnySender) -> Vec<Variable> {
    let Allowance { cwnd, pacing } = s.allowance();
    let mut all = vec![
        ("cwnd", cwnd),
        ("pacing", pacing.map_or(0.0, |rate| rate.0 as f64)),
        ("next_timer", s.next_timer().0 as f64),
    ];
    s.probe(&mut |name, value| all.push((name, value)));
    all
}

/// An acknowledgement, loss or timer, the same for both.
fn event(pair: &mut [&mut AnySender; 2], now: Time, dice: &mut Dice) {
    if dice.flip(0.05) {
        let kind = [LossKind::Duplicates, LossKind::Timeout, LossKind::Mark][dice.below(3) as usize];
        let loss = testing::loss(now, kind, 1 + dice.number(200));
        pair.iter_mut().for_each(|s| s.on_loss(&loss));
    } else {
        let header = dice.congestion();
        let mut ack = testing::ack(now, &header);
        ack.cumulative = dice.number(10_000);
        ack.highest_sent = ack.cumulative + dice.number(200);
        ack.in_flight = dice.number(200);
        ack.srtt = Time::millis(50) + dice.span(0.05);
        ack.rtt = Time::millis(50) + dice.span(0.05);
        ack.app_limited = dice.flip(0.2);
        pair.iter_mut().for_each(|s| s.on_ack(&ack));
    }
    for s in pair {
        if s.next_timer() <= now {
            s.on_timer(now);
        }
    }
}

/// `Sender::WRITES` and `Sender::HAS_TIMER`: `plain` is called for every packet, `spared` as a flow does that relies on both.
fn sender_keeps_its_promises(plain: &mut AnySender, spared: &mut AnySender, dice: &mut Dice) -> Judged {
    let mut now = dice.span(1.0);
    let mut header = Congestion::new(Format::STANDARD);
    let interest = spared.interest();
    plain.on_start(now, Time::millis(80));
    spared.on_start(now, Time::millis(80));
    spared.state(&mut header);
    for _ in 0..EVENTS {
        now += dice.span(0.01);
        if !interest.timer {
            same("HAS_TIMER", "the next timer", now, plain.next_timer(), Time::NEVER)?;
        }
        for _ in 0..dice.below(4) {
            now += dice.span(0.001);
            let mut packet = Packet { congestion: header, ttl: 64, ip_len: 1000, ..Packet::EMPTY };
            packet.transport.set_packet_number(dice.number(1000));
            let mut other = packet;
            let mut sent = testing::sent(now, dice.number(200));
            sent.backlogged = dice.flip(0.8);
            plain.on_send(&mut packet, &sent);
            if interest.in_packet(sent.backlogged) {
                spared.on_send(&mut other, &sent);
            }
            same_packet("WRITES", now, &packet, &other)?;
        }
        event(&mut [plain, spared], now, dice);
        spared.state(&mut header);
        same_variables("WRITES", now, &seen(plain), &seen(spared))?;
    }
    Ok(())
}

/// A protocol's sender, or one that lies.
fn judge_sender(name: &str, build: impl Fn(&mut Dice) -> Box<AnySender>) -> Judged {
    (0..SEEDS).try_for_each(|seed| {
        let mut dice = Dice::new(seed, name);
        let (mut plain, mut spared) = (build(&mut Dice::new(seed, name)), build(&mut Dice::new(seed, name)));
        sender_keeps_its_promises(&mut *plain, &mut *spared, &mut dice)
    })
}

/// A sender keeps its promises.
pub fn senders_keep_their_promises(p: &'static AnyProtocol) {
    let judged = judge_sender(p.name(), |dice| {
        let values = dice.values(&[p.params()]);
        p.sender(&SenderInit { values: &values, packet: 1000.0, initial_window: 4.0, interface: Rate::mbps(100) })
    });
    judged.unwrap_or_else(|why| panic!("{}: {why}", p.name()));
}

/// `Protocol::NEEDS_FEEDBACK`: a sender that hears of everything, and one that hears of nothing.
fn sender_needs_no_feedback(told: &mut AnySender, deaf: &mut AnySender, dice: &mut Dice) -> Judged {
    let promise = "NEEDS_FEEDBACK";
    let mut now = Time::ZERO;
    told.on_start(now, dice.span(0.5));
    for _ in 0..EVENTS {
        now += dice.span(0.01);
        let header = dice.congestion();
        match dice.below(10) {
            0 => told.on_loss(&testing::loss(now, LossKind::Duplicates, dice.number(100))),
            1 => told.on_loss(&testing::loss(now, LossKind::Timeout, dice.number(100))),
            2 => told.on_loss(&testing::loss(now, LossKind::Mark, dice.number(100))),
            _ => told.on_ack(&testing::ack(now, &header)),
        }
        let packet = Packet { congestion: Congestion::new(Format::STANDARD), ip_len: 1000, ..Packet::EMPTY };
        let mut packets = [packet; 2];
        told.on_send(&mut packets[0], &testing::sent(now, dice.number(100)));
        deaf.on_send(&mut packets[1], &testing::sent(now, 0));
        same_packet(promise, now, &packets[0], &packets[1])?;
        same_variables(promise, now, &seen(told), &seen(deaf))?;
    }
    Ok(())
}

/// A protocol that says so needs no feedback; whether it says so.
pub fn senders_that_say_so_need_no_feedback(p: &'static AnyProtocol) -> bool {
    if p.needs_feedback() {
        return false;
    }
    assert!(!p.explicit() && p.receiver().is_none(), "{}: routers and receivers have feedback for it", p.name());
    let build = |dice: &mut Dice| {
        let values = dice.values(&[p.params()]);
        p.sender(&SenderInit { values: &values, packet: 1000.0, initial_window: 4.0, interface: Rate::mbps(100) })
    };
    for seed in 0..SEEDS {
        let [mut told, mut deaf] = [0, 1].map(|_| build(&mut Dice::new(seed, p.name())));
        sender_needs_no_feedback(&mut *told, &mut *deaf, &mut Dice::new(seed, p.name()))
            .unwrap_or_else(|why| panic!("{}: {why}", p.name()));
    }
    true
}

// ----------------------------------------------------------------------------------------------- receivers

/// `Receiver::ECHOES`, where every packet is acknowledged.
fn receiver_echoes(receiver: &mut AnyReceiver, dice: &mut Dice) -> Judged {
    receiver.on_open(false);
    let mut now = Time::ZERO;
    for _ in 0..EVENTS {
        now += dice.span(0.001);
        let packet = Packet { congestion: dice.congestion(), ip_len: 1000, ..Packet::EMPTY };
        receiver.on_data(now, &packet);
        let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
        let mut expected = ack;
        receiver.on_ack(now, &mut ack);
        let brought = if packet.congestion.is_standard() { packet.congestion.delta_throughput() } else { 0 };
        expected.congestion.set_reverse_feedback(brought);
        same_packet("ECHOES", now, &ack, &expected)?;
    }
    Ok(())
}

/// A receiver that says so echoes feedback; whether it says so.
pub fn receivers_that_say_so_echo(p: &'static AnyProtocol) -> bool {
    let Some(mut receiver) = p.receiver().filter(|receiver| receiver.echoes()) else { return false };
    let judged = receiver_echoes(&mut *receiver, &mut Dice::new(1, p.name()));
    judged.unwrap_or_else(|why| panic!("{}: {why}", p.name()));
    true
}

// ------------------------------------------------------------------------------------------------- routers

fn probed(r: &AnyRouter) -> Vec<Variable> {
    let mut all = vec![("next_timer", r.next_timer().0 as f64)];
    r.probe(&mut |name, value| all.push((name, value)));
    all
}

/// `Router::ORDER_INDEPENDENT`: `ahead` is given each departure with its arrival, and the least backlog before a timer.
fn router_is_order_independent(inturn: &mut AnyRouter, ahead: &mut AnyRouter, dice: &mut Dice) -> Judged {
    let view = |backlog: u64| PortView {
        capacity: 1.25e6,
        backlog_bytes: backlog,
        backlog_packets: (backlog / 1000) as u32,
        busy: true,
    };
    let mut now = Time::ZERO;
    for _ in 0..500 {
        let due = inturn.next_timer();
        now = now.max(due);
        inturn.on_timer(now, &view(0));
        ahead.on_timer(now, &view(0));
        same_variables("ORDER_INDEPENDENT", now, &probed(inturn), &probed(ahead))?;
        // A burst that arrives together, and has left before the next timer.
        let mut burst: Vec<Packet> = Vec::new();
        for _ in 0..dice.below(20) {
            burst.push(Packet { congestion: dice.congestion(), ip_len: 1000, ..Packet::EMPTY });
        }
        let mut early = burst.clone();
        let mut least = u64::MAX;
        for (i, packet) in burst.iter_mut().enumerate() {
            inturn.on_arrival(now, packet, &view(1000 * i as u64));
        }
        let waiting = burst.len();
        for (i, packet) in burst.iter_mut().enumerate() {
            let backlog = 1000 * (waiting - 1 - i) as u64;
            least = least.min(backlog);
            inturn.on_departure(now + Time(1 + i as u64), packet, &view(backlog));
        }
        for (i, packet) in early.iter_mut().enumerate() {
            ahead.on_arrival(now, packet, &view(1000 * i as u64));
            ahead.on_departure(now + Time(1 + i as u64), packet, &view(u64::MAX));
        }
        ahead.on_least_backlog(least);
        for (a, b) in burst.iter().zip(&early) {
            same_packet("ORDER_INDEPENDENT", now, a, b)?;
        }
    }
    Ok(())
}

/// A router that says so is independent of the order; whether it says so.
pub fn routers_that_say_so_are_order_independent(p: &'static AnyProtocol) -> bool {
    let mut tried = false;
    for seed in 0..SEEDS {
        let build = || {
            let mut dice = Dice::new(seed, p.name());
            let values = dice.values(&[p.router_params()]);
            p.router(&RouterInit { values: &values, capacity: 1.25e6, delay: Time::ZERO, rng: dice.0 })
        };
        let (Some(mut inturn), Some(mut ahead)) = (build(), build()) else { continue };
        if inturn.order_independent() {
            router_is_order_independent(&mut *inturn, &mut *ahead, &mut Dice::new(seed, "order"))
                .unwrap_or_else(|why| panic!("{}: {why}", p.name()));
            tried = true;
        }
    }
    tried
}

#[cfg(test)]
mod tests {
    use explicate_core::api::{Ack, Loss, Probe, Receiver, Router, Sender, Sent, Writes};

    use super::*;

    /// A window of one. `WHAT` it writes into packets: nothing, its count of acknowledgements, or the time; or it has a timer.
    struct Liar<const WHAT: u8> {
        acks: u32,
    }

    const TIMER: u8 = 3;

    impl<const WHAT: u8> Sender for Liar<WHAT> {
        const WRITES: Writes = if WHAT == b'n' { Writes::Nothing } else { Writes::PerEvent };
        const HAS_TIMER: bool = false;

        fn allowance(&self) -> Allowance {
            Allowance { cwnd: 1.0, pacing: None }
        }
        fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
            match WHAT {
                b'n' | b'e' => packet.congestion.set_x(self.acks),
                b't' => packet.congestion.set_x(sent.now.0 as u32),
                b'f' => packet.congestion.set_x(sent.in_flight),
                b'h' => packet.transport.set_code(1),
                b'c' => self.acks += 1,
                _ => {}
            }
        }
        fn on_ack(&mut self, _ack: &Ack<'_>) {
            self.acks += 1;
        }
        fn on_loss(&mut self, _loss: &Loss) {}
        fn next_timer(&self) -> Time {
            if WHAT == TIMER { Time::secs(1 << 20) } else { Time::NEVER }
        }
        fn probe(&self, put: Probe<'_>) {
            put("acks", self.acks as f64);
        }
    }

    #[test]
    fn senders_that_lie_are_found() {
        fn judge<const WHAT: u8>() -> Judged {
            judge_sender("liar", |_| Box::new(Liar::<WHAT> { acks: 0 }))
        }
        judge::<b'e'>().expect("the count changes with events only");
        assert!(judge::<b'n'>().is_err(), "it writes, and says that it does not");
        assert!(judge::<b't'>().is_err(), "the time changes between events");
        assert!(judge::<b'f'>().is_err(), "so does what is in flight");
        assert!(judge::<b'h'>().is_err(), "it writes into the transport header");
        assert!(judge::<b'c'>().is_err(), "it counts packets");
        assert!(judge::<TIMER>().is_err(), "it has a timer");
    }

    #[test]
    fn a_sender_that_listens_is_found() {
        let [mut told, mut deaf] = [Liar::<b'e'> { acks: 0 }, Liar { acks: 0 }];
        assert!(sender_needs_no_feedback(&mut told, &mut deaf, &mut Dice::new(1, "liar")).is_err());
    }

    /// Returns the most that packets have brought.
    struct Greatest(i32);

    impl Receiver for Greatest {
        const ECHOES: bool = true;

        fn on_data(&mut self, _now: Time, packet: &Packet) {
            self.0 = self.0.max(packet.congestion.delta_throughput());
        }
        fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
            ack.congestion.set_reverse_feedback(self.0);
        }
    }

    #[test]
    fn receivers_that_lie_are_found() {
        assert!(receiver_echoes(&mut Greatest(0), &mut Dice::new(1, "liar")).is_err());
    }

    /// Writes how many packets have arrived, or the backlog, into those that depart.
    struct Counter<const BACKLOG: bool>(u32, Time);

    impl<const BACKLOG: bool> Router for Counter<BACKLOG> {
        const ORDER_INDEPENDENT: bool = true;

        fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {
            self.0 += 1;
        }
        fn on_departure(&mut self, _now: Time, packet: &mut Packet, port: &PortView) {
            packet.congestion.set_x(if BACKLOG { port.backlog_bytes as u32 } else { self.0 });
        }
        fn on_timer(&mut self, now: Time, _port: &PortView) {
            self.1 = now + Time::millis(100);
        }
        fn next_timer(&self) -> Time {
            self.1
        }
        fn probe(&self, _put: Probe<'_>) {}
    }

    #[test]
    fn routers_that_lie_are_found() {
        fn judge<const BACKLOG: bool>() -> Judged {
            let build = || Counter::<BACKLOG>(0, Time::ZERO);
            router_is_order_independent(&mut build(), &mut build(), &mut Dice::new(1, "liar"))
        }
        assert!(judge::<false>().is_err(), "arrivals before a departure matter");
        assert!(judge::<true>().is_err(), "each backlog matters");
    }
}
