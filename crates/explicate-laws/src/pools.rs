//! What routers with pools hand out: no more than an interval has put into them, whatever the headers say.
//!
//! A router has pools if it reports `res_pos_bytes_per_s` and `res_neg_bytes_per_s`, as samples record them.

use explicate_core::api::{AnyProtocol, AnyRouter, PortView, RouterInit};
use explicate_core::protocols::rate_header::UNITS_PER_SEC;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Format, Packet};

use crate::random::{Dice, Hash, repeats};

const CAPACITY: f64 = 1.25e6;
const OPERATIONS: u32 = 20_000;

fn told(r: &AnyRouter, name: &str) -> Option<f64> {
    let mut found = None;
    r.probe(&mut |what, value| found = found.or((what == name).then_some(value)));
    found
}
/// What is left in the positive and the negative pool, bytes/s.
fn pools(r: &AnyRouter) -> Option<[f64; 2]> {
    Some([told(r, "res_pos_bytes_per_s")?, told(r, "res_neg_bytes_per_s")?])
}

/// Whether the router answers this form of the header: with empty pools, by nothing.
fn answers(r: &mut AnyRouter, form: Format) -> bool {
    let mut packet = Packet { ip_len: 1000, congestion: Congestion::new(form), ..Packet::EMPTY };
    packet.congestion.set_rtt(1);
    packet.congestion.set_delta_throughput(i32::MAX);
    r.on_departure(
        Time::ZERO,
        &mut packet,
        &PortView { capacity: CAPACITY, backlog_bytes: 0, backlog_packets: 0, busy: true },
    );
    packet.congestion.delta_throughput() == 0
}

/// Bytes/s in a unit of this header's feedback; `None` for headers of another form, or of an unknown round trip.
fn rate_per_unit(header: &Congestion, form: Format) -> Option<f64> {
    if form == Format::STANDARD {
        return header.is_standard().then_some(1.0);
    }
    let rtt = header.rtt() as f64 / UNITS_PER_SEC;
    (header.is_window() && rtt > 0.0).then(|| 1.0 / rtt)
}

/// A header, in a third of cases with words at their ends.
fn header(dice: &mut Dice) -> Congestion {
    let mut header = dice.congestion();
    if dice.flip(0.3) {
        let mut end = || [0, 1, u32::MAX][dice.below(3) as usize];
        header.set_x(end());
        header.set_rtt(end());
    }
    if dice.flip(0.3) {
        header.set_delta_throughput([i32::MIN, 0, i32::MAX][dice.below(3) as usize]);
    }
    header
}

/// What was handed out since the pools were filled.
struct Account {
    /// What the pools held then, bytes/s.
    filled: [f64; 2],
    /// The sum of all feedback, and of the decreases alone, bytes/s.
    granted: f64,
    decreases: f64,
    /// The error of rounding to whole units, and of sums of this size.
    slack: f64,
}

impl Account {
    fn open(filled: [f64; 2]) -> Account {
        Account { filled, granted: 0.0, decreases: 0.0, slack: 0.0 }
    }
    /// A packet with this request left with this feedback while the pools held so much.
    fn enter(&mut self, name: &str, [pos, neg]: [f64; 2], (was, is): (f64, f64), unit: f64) {
        let rounding = 0.5 * unit + 1e-9 * (pos + neg);
        assert!(is <= pos + rounding, "{name} grants {is} B/s to one packet from a pool of {pos}");
        self.slack += rounding + 1e-9 * is.abs();
        self.granted += is;
        if is < was {
            assert!(is >= -neg - rounding, "{name} takes {is} B/s from one packet with {neg} to take");
            self.decreases -= is.min(0.0);
        }
        let [filled, to_take] = self.filled;
        assert!(self.granted <= filled + self.slack, "{name} has handed out {} of {filled} B/s", self.granted);
        assert!(self.decreases <= to_take + self.slack, "{name} has taken {} of {to_take} B/s", self.decreases);
    }
}

/// Drives a router that has pools; returns how often they bounded a packet: those of increases, those of decreases.
fn drive(name: &str, r: &mut AnyRouter, dice: &mut Dice) -> [u32; 2] {
    let form = if answers(r, Format::STANDARD) { Format::STANDARD } else { Format::WINDOW };
    let mut now = Time::ZERO;
    let mut bounded = [0, 0];
    let mut account = Account::open(pools(r).expect("it has pools"));
    for i in 0..OPERATIONS {
        // A load of about 0.4, and one of about 1.6, with a queue.
        let busy = i / 2000 % 2 == 1;
        now += dice.span(if busy { 0.0004 } else { 0.0016 });
        let backlog_bytes = if busy { dice.below(50_000) } else { 0 };
        let port = PortView { capacity: CAPACITY, backlog_bytes, backlog_packets: 0, busy: true };
        while r.next_timer() <= now {
            r.on_timer(r.next_timer(), &port);
            account = Account::open(pools(r).expect("it has pools"));
        }
        let mut packet = Packet { ip_len: 40 + dice.number(1461) as u16, congestion: header(dice), ..Packet::EMPTY };
        let before = packet.congestion;
        r.on_arrival(now, &mut packet, &port);
        if dice.flip(0.05) {
            continue; // the queue refused it
        }
        let held = pools(r).expect("it has pools");
        r.on_departure(now, &mut packet, &port);
        let Some(unit) = rate_per_unit(&before, form) else { continue };
        let rate = |header: &Congestion| header.delta_throughput() as f64 * unit;
        account.enter(name, held, (rate(&before), rate(&packet.congestion)), unit);
        let left = pools(r).expect("it has pools");
        for i in 0..2 {
            assert!(left[i] >= 0.0, "{name}: a pool of {}", left[i]);
            bounded[i] += (held[i] > 0.0 && left[i] == 0.0) as u32;
        }
    }
    bounded
}

/// An interval hands out no more than the router's pools hold; whether it has pools.
pub fn an_interval_hands_out_no_more_than_its_pools_hold(p: &'static AnyProtocol) -> bool {
    let build = |dice: &mut Dice| -> Option<Box<AnyRouter>> {
        let values = dice.values(&[p.router_params()]);
        let rng = dice.0.clone();
        let router = p.router(&RouterInit { values: &values, capacity: CAPACITY, delay: Time::ZERO, rng })?;
        pools(&*router).map(|_| router)
    };
    if build(&mut Dice::new(0, p.name())).is_none() {
        return false;
    }
    let bounded = std::cell::Cell::new([0, 0]);
    repeats(p.name(), 32, |dice| {
        let mut router = build(dice).expect("it has pools");
        let [up, down] = drive(p.name(), &mut *router, dice);
        let [all_up, all_down] = bounded.get();
        bounded.set([all_up + up, all_down + down]);
        let mut hash = Hash::new();
        router.probe(&mut |_, value| hash.put_f64(value));
        hash
    });
    let bounded = bounded.get();
    assert!(bounded.iter().all(|&n| n > 100), "{}: emptied {bounded:?} times proves little", p.name());
    true
}
