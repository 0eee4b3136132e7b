//! Equilibria of a single XCP router if some flows are limited elsewhere: Low, Andrew, Wydrowski, "Understanding XCP:
//! equilibrium and fairness", INFOCOM 2005.
//!
//! Flows that have a round trip of one control interval send packets interleaved at random; the feedback of one interval
//! changes their rates in the next. A flow limited *downstream* still carries a large request here. One limited *upstream*
//! carries the rest that the router before it has left: zero, once its rate is constant. The first case has a
//! closed form, with capacity C, N flows, one of them free (x), the others at r together, y = x + r:
//!
//! x = gamma y^2 / (N (gamma y - alpha (C - y))).
//!
//! The second shows which rule of the pools a router follows.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use explicate_core::api::{AnyRouter, PortView, RouterInit};
use explicate_core::protocols::rate_header::seconds_to_units;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::testing;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Format, Packet};

/// The control interval and every flow's round trip, ms.
const INTERVAL: u64 = 100;
const PACKET: u16 = 500;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Limited {
    Downstream,
    Upstream,
}
use Limited::{Downstream, Upstream};

/// How a form of XCP words a flow's rate (bytes/s), and how much a granted request is worth in bytes/s.
struct Wording {
    write: fn(f64, i32) -> Congestion,
    worth: fn(i32) -> f64,
    plenty: i32,
}

const RTT: f64 = INTERVAL as f64 * 1e-3;

const RATE_FORM: Wording = Wording {
    write: |rate, request| {
        let mut header = Congestion::new(Format::STANDARD);
        header.set_x(seconds_to_units(PACKET as f64 / rate));
        header.set_rtt(seconds_to_units(RTT));
        header.set_delta_throughput(request);
        header
    },
    worth: |granted| granted as f64,
    plenty: 1_000_000_000,
};

/// H_cwnd and H_feedback in bytes; a change of the window counts once a round trip.
const WINDOW_FORM: Wording = Wording {
    write: |rate, request| {
        let mut header = Congestion::new(Format::WINDOW);
        header.set_x((rate * RTT + 0.5) as u32);
        header.set_rtt(seconds_to_units(RTT));
        header.set_delta_throughput(request);
        header
    },
    worth: |granted| granted as f64 / RTT,
    plenty: 100_000_000,
};

fn router(protocol: &str, pools: &str, capacity: f64) -> Box<AnyRouter> {
    let protocol = registry::protocol(protocol).unwrap();
    let pools = ["draft", "paper"].iter().position(|rule| *rule == pools).unwrap() as f64;
    let values = testing::values(&[protocol.router_params()], &[("pools", pools)]);
    let rng = Rng::stream(1, "router");
    protocol.router(&RouterInit { values: &values, capacity, delay: Time::ZERO, rng }).unwrap()
}

/// What the free flow gets in the mean, in units of `capacity` (Mbit/s), beside `others` flows with `total` together.
fn settles(
    mut router: Box<AnyRouter>,
    form: &Wording,
    limited: Limited,
    capacity: f64,
    others: usize,
    total: f64,
) -> f64 {
    let unit = 1e6 / 8.0;
    let view = PortView { capacity: capacity * unit, backlog_bytes: 0, backlog_packets: 0, busy: true };
    let mut rng = Rng::stream(7, "order");
    let mut rates = vec![total / others as f64 * unit; others + 1];
    rates[0] = 0.5 * (capacity - total) * unit;
    let mut carry = vec![0.0; others + 1];
    let mut mean = 0.0;
    const ROUNDS: u64 = 1200;
    let span = Time::millis(INTERVAL).0;
    for round in 0..ROUNDS {
        // The whole packets of an interval, in random order.
        let mut order = Vec::new();
        for (flow, carry) in carry.iter_mut().enumerate() {
            *carry += rates[flow] * RTT / PACKET as f64;
            order.resize(order.len() + *carry as usize, flow);
            *carry -= carry.floor();
        }
        for i in (1..order.len()).rev() {
            order.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize);
        }
        let mut gained = 0.0;
        for (i, &flow) in order.iter().enumerate() {
            let now = Time(round * span + span * i as u64 / order.len() as u64);
            while router.next_timer() <= now {
                let due = router.next_timer();
                router.on_timer(due, &view);
            }
            let request = if flow > 0 && limited == Upstream { 0 } else { form.plenty };
            let congestion = (form.write)(rates[flow], request);
            let mut packet = Packet { ip_len: PACKET, congestion, ..Packet::EMPTY };
            router.on_arrival(now, &mut packet, &view);
            router.on_departure(now, &mut packet, &view);
            gained += if flow == 0 { (form.worth)(packet.congestion.delta_throughput()) } else { 0.0 };
        }
        rates[0] = (rates[0] + gained).max(PACKET as f64 / RTT);
        mean += if round >= ROUNDS / 2 { rates[0] / (ROUNDS / 2) as f64 / unit } else { 0.0 };
    }
    mean
}

/// Capacity, limited flows, their total; the max-min share of the free flow is 30, 90, 90.
const CASES: [(f64, usize, f64); 3] = [(40.0, 1, 10.0), (100.0, 1, 10.0), (100.0, 10, 10.0)];

fn agrees(protocol: &str, pools: &str, form: &Wording, limited: Limited, expected: [f64; 3]) {
    for ((capacity, others, total), expected) in CASES.into_iter().zip(expected) {
        let got = settles(router(protocol, pools, capacity * 1e6 / 8.0), form, limited, capacity, others, total);
        let numbers = format!(
            "{protocol}, {pools} pools, {limited:?}, C {capacity}, {others} others with {total}: x = {got:.3}, expected {expected}"
        );
        println!("{numbers}");
        // Tighter than the difference between the rules of the pools.
        let tolerance = if limited == Upstream { 0.001 } else { 0.003 };
        assert!((got / expected - 1.0).abs() < tolerance, "{numbers}");
    }
}

const DOWNSTREAM: [f64; 3] = [27.08, 80.14, 71.69];
const UPSTREAM_DRAFT: [f64; 3] = [28.85, 86.03, 76.11];
const UPSTREAM_PAPER: [f64; 3] = [27.77, 85.07, 75.98];

#[test]
fn limited_downstream_the_pools_make_no_difference() {
    for pools in ["draft", "paper"] {
        agrees("xcp", pools, &RATE_FORM, Downstream, DOWNSTREAM);
    }
}

#[test]
fn limited_upstream_the_draft_gives_more_back() {
    agrees("xcp", "draft", &RATE_FORM, Upstream, UPSTREAM_DRAFT);
    agrees("xcp", "paper", &RATE_FORM, Upstream, UPSTREAM_PAPER);
}

#[test]
fn the_window_form_settles_where_the_rate_form_does() {
    agrees("xcp_window", "paper", &WINDOW_FORM, Downstream, DOWNSTREAM);
    agrees("xcp_window", "paper", &WINDOW_FORM, Upstream, UPSTREAM_PAPER);
    agrees("xcp_window", "draft", &WINDOW_FORM, Upstream, UPSTREAM_DRAFT);
}

/// P-XCP's scaled feedback closes a good part of the gap to max-min that the draft's rule leaves. Flows that are limited
/// downstream appear unlimited to it.
#[test]
fn a_p_xcp_router_comes_nearer_to_max_min() {
    for ((capacity, others, total), xcp) in CASES.into_iter().zip(UPSTREAM_DRAFT) {
        let router = || router("p_xcp", "draft", capacity * 1e6 / 8.0);
        let got = settles(router(), &RATE_FORM, Upstream, capacity, others, total);
        let most = capacity - total;
        println!("p_xcp, C {capacity}, {others} others with {total}: x = {got:.3}, xcp {xcp}, max-min {most}");
        assert!(got < most && most - got < 0.7 * (most - xcp), "{got} {xcp} {most}");
    }
    agrees("p_xcp", "draft", &RATE_FORM, Downstream, DOWNSTREAM);
}
