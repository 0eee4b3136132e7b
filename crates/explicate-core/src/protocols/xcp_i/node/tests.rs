//! The agent with messages and packets by hand: detection, requests, and what virtual routers hand out.

use super::*;
use crate::protocols::common::rate_header::{UNITS_PER_SEC, seconds_to_units};
use crate::protocols::common::xcp_router::{self, XcpRouter};
use crate::protocols::xcp_i::RouterParams;
use crate::protocols::xcp_i::edge::MESSAGE_LEN;
use crate::rng::Rng;
use crate::testing;
use crate::wire::{Congestion, Format};
use std::vec::Vec;

fn node(own: u32) -> Node {
    node_with(own, &[])
}
fn node_with(own: u32, given: &[(&str, f64)]) -> Node {
    let values = testing::values(&[RouterParams::PARAMS], given);
    Node::new(&AgentInit { values: &values, own: Address(own), rng: Rng::stream(own as u64, "test") })
}
const VIEW: PortView = PortView { capacity: 1e6, backlog_bytes: 0, backlog_packets: 0, busy: false };

/// The round-trip time of packets: the last multiple of the header's unit within 0.1 s, so that a control interval
/// is over after 0.1 s.
const RTT: u32 = (0.1 * UNITS_PER_SEC) as u32;

/// A data packet from `from` that has crossed `hops` routers including the present one, which is the first with
/// XCP-i.
fn packet(from: u32, hops: u8) -> Packet {
    let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
    p.congestion.set_x(seconds_to_units(0.001));
    p.congestion.set_rtt(RTT);
    p.congestion.set_delta_throughput(5000);
    Extension { counter: p.ttl, node: from }.put(&mut p);
    p.ttl -= hops;
    p
}
fn variable(node: &Node, wanted: &str) -> f64 {
    testing::probed(|put| node.probe(put), wanted)
}
fn sends(node: &mut Node, now: Time) -> Vec<(u32, Message)> {
    let mut all = Vec::new();
    while let Some(c) = node.poll_control(now) {
        assert_eq!(c.ip_len, MESSAGE_LEN);
        all.push((c.peer.0, Message::parse(&c.message).unwrap()));
    }
    all
}
fn deliver(node: &mut Node, now: Time, from: u32, message: Message) {
    node.handle_control(now, &Control { peer: Address(from), ip_len: MESSAGE_LEN, message: message.to_bytes() });
}
/// Exchanges messages between two nodes until neither sends any.
fn talk(now: Time, a: &mut Node, b: &mut Node) {
    loop {
        let (from_a, from_b) = (sends(a, now), sends(b, now));
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        from_a.iter().for_each(|(_, m)| deliver(b, now, a.own.0, *m));
        from_b.iter().for_each(|(_, m)| deliver(a, now, b.own.0, *m));
    }
}
/// A node that has received a result from `other`: available bandwidth `left`, bytes/s.
fn informed(given: &[(&str, f64)], other: u32, left: f64) -> Node {
    let mut k = node_with(2, given);
    k.handle_data(Time::ZERO, &mut packet(other, 2), Address(99), Some(&VIEW));
    let mut u = node(other);
    talk(Time::ZERO, &mut k, &mut u);
    deliver_result(&mut k, other, Time::millis(100), left);
    k
}
fn deliver_result(k: &mut Node, from: u32, now: Time, left: f64) {
    let nonce = k.clouds.table[&from].nonce();
    deliver(k, now, from, Message { first: left as i64 as u64, second: now.0, ..Message::new(Kind::Result, nonce) });
}

/// I-txt-detect: every pattern of XCP-i and plain routers in chains of up to 8.
#[test]
fn clouds_are_found_where_they_end() {
    for length in 1..=8u32 {
        for pattern in 0..1u32 << length {
            let mut p = packet(100, 0);
            let (mut edge, mut plain) = (100, 0);
            for hop in 0..length {
                p.ttl -= 1;
                if pattern >> hop & 1 == 0 {
                    plain += 1;
                    continue;
                }
                let mut k = node(hop);
                k.handle_data(Time::ZERO, &mut p, Address(99), Some(&VIEW));
                assert_eq!(variable(&k, "clouds_met"), (plain > 0) as u8 as f64, "{pattern:b} at {hop}");
                let asked: Vec<u32> = sends(&mut k, Time::ZERO).iter().map(|(to, _)| *to).collect();
                assert_eq!(asked, if plain > 0 { std::vec![edge] } else { Vec::new() });
                (edge, plain) = (hop, 0);
            }
            // The receiving end does not decrement.
            let mut receiver = node(200);
            receiver.handle_data(Time::ZERO, &mut p, Address(99), None);
            assert_eq!(variable(&receiver, "clouds_met"), (plain > 0) as u8 as f64, "{pattern:b}");
            assert_eq!(variable(&receiver, "malformed"), 0.0);
        }
    }
}

/// The paper's assumption: a cloud that does not decrement the TTL is not detected.
#[test]
fn a_tunnel_is_not_seen() {
    let mut k = node(2);
    let mut p = packet(1, 1); // three plain hops in a tunnel, and this router
    k.handle_data(Time::ZERO, &mut p, Address(99), Some(&VIEW));
    assert_eq!(variable(&k, "clouds_met"), 0.0);
}

#[test]
fn malformed_fields_are_counted_and_ignored() {
    let mut k = node(2);
    let mut risen = packet(1, 2);
    risen.ttl = 70;
    for mut p in [risen, packet(u32::MAX, 2), packet(2, 2)] {
        k.handle_data(Time::ZERO, &mut p, Address(99), Some(&VIEW));
        assert_eq!(p.congestion.delta_throughput(), 5000);
        assert_eq!(Extension::of(&p), Some(Extension { counter: p.ttl, node: 2 }));
    }
    k.handle_control(Time::ZERO, &Control { peer: Address(1), ip_len: MESSAGE_LEN, message: [9; 28] });
    assert_eq!((variable(&k, "malformed"), variable(&k, "virtual_routers")), (4.0, 0.0));
    assert!(sends(&mut k, Time::ZERO).is_empty());
}

/// I-txt-req: three tries, then silence until the next packet; entries by upstream, not by flow; forgotten when idle.
#[test]
fn requests_are_repeated_twice_and_then_no_more() {
    let mut k = node(2);
    let mut asked = Vec::new();
    for flow in 0..1000 {
        let mut p = packet(1, 2);
        p.transport.set_flow(flow);
        k.handle_data(Time::ZERO, &mut p, Address(99), Some(&VIEW));
    }
    assert_eq!(variable(&k, "virtual_routers"), 1.0);
    let mut now = Time::ZERO;
    while variable(&k, "virtual_routers") > 0.0 {
        asked.extend(sends(&mut k, now).iter().map(|_| now));
        now = k.poll_timeout();
        k.handle_timeout(now);
    }
    assert_eq!(asked, [Time::ZERO, Time::secs(1), Time::secs(2)]);
    assert_eq!((now, variable(&k, "virtual_routers")), (Time::secs(10), 0.0), "idle for 10 s");
    k.handle_data(now, &mut packet(1, 2), Address(99), Some(&VIEW));
    assert_eq!(sends(&mut k, now).len(), 1);
}

/// Only nodes that have answered a challenge are requested to measure, and the answer is no longer than the
/// request.
#[test]
fn forged_and_replayed_requests_measure_nothing() {
    let (mut k, mut u) = (node(2), node(1));
    k.handle_data(Time::ZERO, &mut packet(1, 2), Address(99), Some(&VIEW));
    talk(Time::ZERO, &mut k, &mut u);
    assert_eq!(variable(&u, "sessions"), 1.0);
    assert!(!k.clouds.table[&1].broken);
    for victim in 10..1010 {
        deliver(&mut u, Time::ZERO, victim, Message { first: victim as u64, ..Message::new(Kind::Request, 5) });
    }
    assert_eq!((variable(&u, "sessions"), sends(&mut u, Time::ZERO).len()), (1.0, 1000));
    // A request that an attacker has copied is useless when its cookie has expired.
    let old = Message { first: u.edge.cookie(Address(2), 0), ..Message::new(Kind::Request, 5) };
    u.handle_timeout(Time::secs(25));
    deliver(&mut u, Time::secs(25), 2, old);
    assert_eq!(variable(&u, "sessions"), 0.0);
}

/// 100,000 forged addresses in 20 s, all lower than that of the one real neighbour: the table is full but does
/// not grow, requests are few, and the measurement of the neighbour continues, which needs periodic requests in
/// time.
#[test]
fn a_flood_of_forged_addresses_leaves_known_clouds_alone() {
    const TRUE: u32 = 4_000_000_000;
    let (mut k, mut u) = (node_with(2, &[("requests_per_s", 10.0)]), node(TRUE));
    k.handle_data(Time::ZERO, &mut packet(TRUE, 2), Address(99), Some(&VIEW));
    talk(Time::ZERO, &mut k, &mut u);
    let (mut requests, mut asked) = (0, Time::ZERO);
    for i in 0..100_000u64 {
        let now = Time::micros(200 * i);
        if k.poll_timeout() <= now {
            k.handle_timeout(now);
            assert!(k.poll_timeout() > now, "a driver would spin");
        }
        k.handle_data(now, &mut packet(1000 + i as u32, 2), Address(99), Some(&VIEW));
        if i % 1000 == 0 {
            u.handle_timeout(now);
            k.handle_data(now, &mut packet(TRUE, 2), Address(99), Some(&VIEW));
            assert_eq!(variable(&u, "sessions"), 1.0, "at {now}");
            deliver_result(&mut k, TRUE, now, 1e6);
        }
        for (to, message) in sends(&mut k, now) {
            requests += (to != TRUE) as u32;
            if to == TRUE {
                assert!(now.since(asked) < Time::millis(3600), "asked at {asked} and then at {now}");
                asked = now;
                deliver(&mut u, now, 2, message);
                sends(&mut u, now).into_iter().for_each(|(_, answer)| deliver(&mut k, now, TRUE, answer));
            }
        }
    }
    assert_eq!(variable(&k, "virtual_routers"), 256.0);
    assert_eq!(k.clouds.table[&TRUE].bandwidth, Some(1e6));
    assert!(requests <= 10 * 21, "{requests} in 20 s");
}

/// I-txt-vr: feedback = alpha rtt BW - beta Q to 1e-9, then the smaller of both routers' feedback.
#[test]
fn the_virtual_router_hands_out_what_eq_1_says() {
    let mut rng = Rng::stream(1, "numbers");
    for _ in 0..100 {
        let (left, queue) = (1e7 * rng.uniform(), 1e5 * rng.uniform());
        let mut router = <XcpRouter>::new(xcp_router::Params::DEFAULT, rng.clone());
        router.mean_queue = queue;
        router.control(Time::secs(1), |_| left, 1.0);
        let rtt = router.avg_rtt;
        let feedback = (router.res_pos - router.res_neg) * rtt;
        assert!((feedback - (0.4 * rtt * left - 0.226 * queue)).abs() <= 1e-9 * feedback.abs().max(1.0));
    }
    let mut k = informed(&[("law", 0.0)], 1, 1e6);
    let mut p = packet(1, 2);
    p.congestion.set_delta_throughput(i32::MAX);
    k.handle_data(Time::millis(101), &mut p, Address(99), Some(&VIEW));
    // One packet with X = 1 ms was seen: 0.4 1e6 / 0.001 s * 0.001 s.
    assert_eq!(p.congestion.delta_throughput(), 400_000);
    // Its pool is 0.4 1e6: an X a thousand times as long takes no more.
    let mut k = informed(&[("law", 0.0)], 1, 1e6);
    for granted in [400_000, 0] {
        let mut p = packet(1, 2);
        p.congestion.set_x(seconds_to_units(1.0));
        p.congestion.set_delta_throughput(i32::MAX);
        k.handle_data(Time::millis(101), &mut p, Address(99), Some(&VIEW));
        assert_eq!(p.congestion.delta_throughput(), granted);
    }
    // A packet that requests less keeps its request.
    let mut k = informed(&[("law", 0.0)], 1, 1e6);
    let mut modest = packet(1, 2);
    k.handle_data(Time::millis(101), &mut modest, Address(99), Some(&VIEW));
    assert_eq!(modest.congestion.delta_throughput(), 5000);
}

/// Equation 1 with less than nothing left takes from packets what it says: alpha BW, spread over one packet of 1 ms.
#[test]
fn a_cloud_that_is_overloaded_slows_senders_down() {
    let mut k = informed(&[("law", 0.0)], 1, -1e6);
    let mut p = packet(1, 2);
    k.handle_data(Time::millis(101), &mut p, Address(99), Some(&VIEW));
    assert_eq!(p.congestion.delta_throughput(), -400_000);
}

/// `law = "available"` hands a result out again at every control interval, `paper` once.
#[test]
fn what_is_left_is_handed_out_once_or_at_every_interval() {
    let handed_out = |law: f64| {
        let mut k = informed(&[("law", law)], 1, 1e6);
        let mut last = 0;
        for ms in 101..700 {
            k.handle_timeout(Time::millis(ms));
            let mut p = packet(1, 2);
            p.congestion.set_delta_throughput(i32::MAX);
            k.handle_data(Time::millis(ms), &mut p, Address(99), Some(&VIEW));
            last = p.congestion.delta_throughput();
        }
        last
    };
    // 100 packets with an X of 1 ms arrive in 0.1 s: each gets a hundredth of 0.4 1e6.
    assert!((3900..=4100).contains(&handed_out(2.0)), "{}", handed_out(2.0));
    assert!(handed_out(0.0) <= 0, "{}", handed_out(0.0));
}

/// Feedback that packets with an X of 1 ms get in each round trip of 100 ms. `results` are available bandwidths and
/// the time in each round trip at which they arrive.
fn granted_in_each_rtt(results: &[(Time, f64)]) -> Vec<i64> {
    let mut k = informed(&[("law", 0.0)], 1, 1e6);
    let mut granted = std::vec![0; 10];
    for step in 1000..11_000u64 {
        let (now, into) = (Time::micros(100 * step), Time::micros(100 * (step % 1000)));
        if k.poll_timeout() <= now {
            k.handle_timeout(now);
        }
        for (_, left) in results.iter().filter(|(at, _)| *at == into) {
            deliver_result(&mut k, 1, now, *left);
        }
        if step % 10 == 5 {
            let mut p = packet(1, 2);
            p.congestion.set_delta_throughput(i32::MAX);
            k.handle_data(now, &mut p, Address(99), Some(&VIEW));
            granted[step as usize / 1000 - 1] += p.congestion.delta_throughput() as i64;
        }
    }
    granted.split_off(3)
}

/// Eq. 1 hands out one estimate per mean RTT, alpha BW, whatever the number and the times of the results. Of two
/// results the newer one counts, and a result right after another does not end an interval without packets.
#[test]
fn a_round_trip_hands_out_one_estimate() {
    let (millis, left) = (Time::millis, 1e6);
    for results in [
        &[(millis(30), left)][..],
        &[(millis(10), left), (millis(60), left)],
        &[(millis(10), 0.0), (millis(60), left)],
        &[(millis(30), 0.0), (Time::micros(30_100), left)],
        &[(millis(10), 0.0), (millis(30), 0.0), (millis(50), 0.0), (millis(70), left)],
    ] {
        let granted = granted_in_each_rtt(results);
        assert!(granted.iter().all(|g| (390_000..=410_000).contains(g)), "{results:?}: {granted:?}");
    }
}

/// Periods of requests, ms.
fn periods(requests: &[(u32, Message)]) -> Vec<f64> {
    requests.iter().map(|(_, request)| (1e-6 * request.second as f64).round()).collect()
}
/// A packet that states no round-trip time.
fn syn() -> Packet {
    let mut p = packet(1, 2);
    p.congestion.set_rtt(0);
    p
}

/// A first request is sent twice, without and with a cookie. A SYN states no round-trip time, so the request that
/// it causes is for the initial 50 ms; the first packet that states one causes another, and no later packet does.
/// The capacity does not depend on the period.
#[test]
fn the_period_that_is_asked_for_is_the_stated_round_trip_time() {
    type Case<'a> = (&'a [(&'a str, f64)], Packet, &'a [f64]);
    let cases: [Case<'_>; 4] = [
        (&[("law", 0.0)], packet(1, 2), &[100.0, 100.0]),
        (&[("law", 0.0)], syn(), &[50.0, 50.0, 100.0]),
        (&[("law", 1.0)], syn(), &[50.0, 50.0]),
        (&[("law", 0.0), ("period", 0.2)], syn(), &[200.0, 200.0]),
    ];
    for (given, first, expected) in cases {
        let (mut k, mut u, mut asked) = (node_with(2, given), node(1), Vec::new());
        for (now, mut p) in [0, 100, 200].map(Time::millis).into_iter().zip([first, packet(1, 2), packet(1, 2)]) {
            k.handle_data(now, &mut p, Address(99), Some(&VIEW));
            for _ in 0..3 {
                k.handle_timeout(now);
                let requests = sends(&mut k, now);
                asked.extend(periods(&requests));
                requests.iter().for_each(|(_, request)| deliver(&mut u, now, 2, *request));
                sends(&mut u, now).iter().for_each(|(_, answer)| deliver(&mut k, now, 1, *answer));
            }
        }
        assert_eq!(asked, expected, "{given:?}");
    }
}

/// A round-trip time that is stated while the request is answered: the acknowledgement is of the initial period, so
/// the right one is requested at once.
#[test]
fn a_round_trip_time_stated_during_a_request_is_asked_for_after_it() {
    let (mut k, mut u) = (node_with(2, &[("law", 0.0)]), node(1));
    k.handle_data(Time::ZERO, &mut syn(), Address(99), Some(&VIEW));
    let mut acknowledgement = None;
    for _ in 0..2 {
        sends(&mut k, Time::ZERO).iter().for_each(|(_, request)| deliver(&mut u, Time::ZERO, 2, *request));
        for (_, answer) in sends(&mut u, Time::ZERO) {
            match answer.kind {
                Kind::Challenge => deliver(&mut k, Time::ZERO, 1, answer),
                _ => acknowledgement = Some(answer),
            }
        }
    }
    let now = Time::millis(100);
    assert!(k.handle_data(now, &mut packet(1, 2), Address(99), Some(&VIEW)), "a new timer");
    k.handle_timeout(now);
    assert!(sends(&mut k, now).is_empty());
    deliver(&mut k, now, 1, acknowledgement.expect("the request had the cookie"));
    k.handle_timeout(now);
    assert_eq!(periods(&sends(&mut k, now)), [100.0]);
}

/// A changed path may have a queue in which every result waits. A tenth of the capacity stays free until a result
/// reports spare bandwidth and is not faster than the one before: 1e6 of 1e6 bytes/s for 110 ms drain 110 ms of
/// queue.
#[test]
fn a_changed_path_is_drained() {
    let mut k = informed(&[], 1, 1e6);
    k.handle_data(Time::millis(200), &mut packet(1, 3), Address(99), Some(&VIEW));
    let mut spare = Vec::new();
    for (result, delay) in [(1, 150), (2, 50), (3, 50), (4, 50)] {
        let (now, nonce) = (Time::millis(200 + 110 * result), k.clouds.table[&1].nonce());
        let second = now.0 - Time::millis(delay).0;
        deliver(&mut k, now, 1, Message { first: 1_000_000, second, ..Message::new(Kind::Result, nonce) });
        k.handle_timeout(now);
        k.probe_peers(&mut |_, name, value| {
            if name == "virtual_spare_bps" {
                spare.push(value / 8.0);
            }
        });
    }
    assert!(spare[0] < 0.91e6, "{spare:?}");
    assert_eq!(spare[1..], [0.9e6, 1e6, 1e6]);
}

#[test]
fn nobody_speeds_up_before_anything_is_known() {
    let mut k = node(2);
    let mut p = packet(1, 2);
    k.handle_data(Time::ZERO, &mut p, Address(99), Some(&VIEW));
    assert_eq!(p.congestion.delta_throughput(), 0);
    let mut slower = packet(1, 2);
    slower.congestion.set_delta_throughput(-300);
    k.handle_data(Time::ZERO, &mut slower, Address(99), Some(&VIEW));
    assert_eq!(slower.congestion.delta_throughput(), -300);
    let mut passing = node_with(2, &[("unknown", 1.0)]);
    let mut p = packet(1, 2);
    passing.handle_data(Time::ZERO, &mut p, Address(99), Some(&VIEW));
    assert_eq!(p.congestion.delta_throughput(), 5000);
}
