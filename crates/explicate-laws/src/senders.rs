//! Senders: a finite window whatever comes, and feedback that counts on duplicates, too.

use explicate_core::api::{AnyProtocol, AnySender, LossKind, PortView, RouterInit, SenderInit};
use explicate_core::params::Values;
use explicate_core::rng::Rng;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet, Transport, flag};

use crate::random::{Dice, Hash, OPERATIONS, SEEDS, repeats};

/// A sender's window is finite and at least one segment, and its timers move on.
pub fn senders_keep_a_window(p: &'static AnyProtocol) {
    repeats(p.name(), SEEDS, |dice| sender(p, dice));
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
                let mut packet = dice.packet();
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
                let mut back = dice.packet();
                if let Some(receiver) = &mut receiver {
                    receiver.on_ack(now, &mut back);
                }
                put(&back);
            }
            _ => {
                let header = dice.congestion();
                let transport = dice.packet().transport;
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
        assert!(rate.0 > 0, "{}: a pacing rate of 0", p.name());
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

/// An explicit sender follows the feedback of duplicate acknowledgements, too.
pub fn feedback_on_duplicates_moves_the_window(p: &'static AnyProtocol) {
    if !p.explicit() {
        return;
    }
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
            header = returned(p, data);
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
    assert_ne!(moved(true), moved(false), "{}: the feedback of duplicate acknowledgements changes nothing", p.name());
}
