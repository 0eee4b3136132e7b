//! Thresholds of the causes. `simulated::why` removes causes and measures.

use serde_json::json;

use super::*;

/// A report of a gateway whose hosts have more to send, with changes of the peer.
fn report(time: f64, bytes: u64, more: Value) -> Value {
    let packets = (700.0 * (time - 1.0)) as u64;
    let mut peer = json!({ "name": "hub", "connected": true, "packets_sent": packets, "packets_lost": 0,
                           "packets_arrived": packets, "arrived_while_more_waited": packets,
                           "received_bytes": 0, "rtt_ms": 200.0, "min_rtt_ms": 195.0, "path_mtu": 1428, "black_holes": 0,
                           "parity": true, "air_loss": 0.02 });
    if packets > 0 {
        peer["received_bytes"] = json!(1000);
    }
    more.as_object().unwrap().iter().for_each(|(key, value)| peer[key] = value.clone());
    json!({ "time_s": time, "port": { "rate_bps": 8e6, "bytes": bytes }, "connections": 3, "limit_connections": 4096,
            "refused": 0, "direct": 0, "peers": [peer] })
}
fn names_of(before: &Value, after: &Value) -> Vec<&'static str> {
    causes(before, after).iter().map(|cause| cause.name).collect()
}
fn of(bytes: u64, more: Value) -> Vec<&'static str> {
    names_of(&report(1.0, 0, json!({})), &report(2.0, bytes, more))
}
const NONE: [&str; 0] = [];

#[test]
fn a_full_line_is_a_cause_while_bytes_wait_for_it() {
    assert_eq!(of(890_000, json!({})), NONE, "89 %");
    assert_eq!(of(910_000, json!({})), ["line full"]);
    assert_eq!(of(910_000, json!({ "arrived_while_more_waited": 466 })), NONE, "two thirds of 700 are 467");
    let old = json!({ "packets_arrived": null, "arrived_while_more_waited": null });
    assert_eq!(of(910_000, old), ["line full"], "an older gateway does not say");
}

#[test]
fn a_line_is_told_too_low_when_trains_have_crossed_the_path_faster() {
    let of = |carries: f64, more: Value| {
        let mut after = report(2.0, 990_000, more);
        after["port"]["carries_bps"] = json!(carries);
        names_of(&report(1.0, 0, json!({})), &after)
    };
    assert_eq!(of(8.7e6, json!({})), ["line full"]);
    assert_eq!(of(8.9e6, json!({})), ["told too low"]);
    for lost in [json!({ "packets_lost": 15 }), json!({ "lost_before_repair": 0.021, "air_loss": 0.1 })] {
        assert_eq!(of(8.9e6, lost), ["line full"], "losses shorten trains");
    }
    assert_eq!(of(8.9e6, json!({ "lost_before_repair": 0.019 })), ["told too low"]);
    let unseen = why(&report(1.0, 0, json!({})), &report(2.0, 990_000, json!({}))).join("; ");
    assert!(unseen.contains("could not be seen"), "{unseen}");
}

#[test]
fn losses_count_by_what_they_cost() {
    assert_eq!(of(100_000, json!({ "packets_lost": 63 })), NONE, "1 / (1 - 0.09) is less than 1.1");
    assert_eq!(of(100_000, json!({ "packets_lost": 70 })), ["losses"]);
    assert_eq!(of(990_000, json!({ "packets_lost": 70 })), ["line full", "losses"], "1.1 times as fast, and twice");
    assert_eq!(of(100_000, json!({ "packets_sent": 49, "packets_lost": 40 })), NONE, "49 packets say nothing");
    assert_eq!(of(100_000, json!({ "packets_lost": 18, "limited": true })), ["losses"]);
    assert_eq!(of(100_000, json!({ "packets_lost": 18, "limited": true, "parity": false })), ["parity off"]);
    assert_eq!(of(100_000, json!({ "packets_lost": 70, "parity": false })), ["losses"], "parity would not repair them");
    let seven = |air_loss: f64| json!({ "packets_lost": 49, "limited": true, "parity": false, "air_loss": air_loss });
    assert_eq!(of(100_000, seven(0.06)), ["parity off"], "2 for 8 leave 0.9 %");
    assert_eq!(of(100_000, seven(0.02)), ["losses"], "2 for 28 leave more than 2 %");
    assert_eq!(of(990_000, json!({ "packets_lost": 49, "parity": false })), ["line full"], "parity would take 20 %");
    let few =
        json!({ "packets_sent": 40, "lost_before_repair": 0.12, "limited": true, "parity": false, "packets_lost": 5 });
    assert_eq!(of(100_000, few), ["losses"], "40 packets say nothing, but the peer has counted more");
    let idle = json!({ "packets_lost": 70, "limited": true, "arrived_while_more_waited": 0 });
    assert_eq!(of(100_000, idle), NONE, "nothing waits");
}

/// 5 % with the longest blocks, 13.3 and 14.3 % in those of 13 and 12.
#[test]
fn parity_that_follows_losses_counts_by_what_it_takes_of_a_full_line() {
    let blocks = |block: u8| json!({ "lost_before_repair": 0.045, "parity_block": block });
    assert_eq!(of(990_000, blocks(13)), ["line full"]);
    assert_eq!(of(990_000, blocks(12)), ["line full", "losses"]);
    assert_eq!(of(100_000, blocks(8)), NONE, "the line has room for it");
    let (mut before, mut after) = (report(1.0, 0, json!({})), report(2.0, 990_000, blocks(12)));
    (before["port"]["sent"], before["port"]["parity"]) = (json!(1000), json!(50));
    (after["port"]["sent"], after["port"]["parity"]) = (json!(1800), json!(170));
    let said = why(&before, &after).join("; ");
    let expected =
        "4.5 % of the packets are lost; parity, 2 for 12 and 15 % of the datagrams, leaves 0.0 %; look for the hop";
    assert!(said.contains(expected), "{said}");
}

/// By hand, for 1 %: 0.42 of 42 are lost on the average, of which 0.2782 alone, and 2 times 0.0576 in pairs.
#[test]
fn parity_repairs_one_or_two_losses_of_a_block() {
    assert!(
        (after_parity(0.01, 0.02) - (0.42 - 0.2782 - 2.0 * 0.0576) / 42.0).abs() < 1e-5,
        "{}",
        after_parity(0.01, 0.02)
    );
    // For 5 % blocks have 10: 0.6 of 12 are lost, of which 0.3413 alone, and 2 times 0.0988 in pairs.
    assert!(
        (after_parity(0.05, 0.05) - (0.6 - 0.3413 - 2.0 * 0.0988) / 12.0).abs() < 1e-5,
        "{}",
        after_parity(0.05, 0.05)
    );
    assert_eq!(after_parity(0.0, 0.02), 0.0);
    assert!(after_parity(1.0, 0.9) > 0.99 && after_parity(0.5, 0.02) > 0.49);
}

#[test]
fn queues_are_told_from_late_acknowledgements_and_from_narrow_paths() {
    let idle = |rtt: f64, more: &[(&str, Value)]| {
        let mut peer = json!({ "rtt_ms": rtt, "arrived_while_more_waited": 0 });
        more.iter().for_each(|(key, value)| peer[*key] = value.clone());
        of(100_000, peer)
    };
    // 195 ms, a quarter of that, 20 ms of acknowledgements, and 4500 bytes at 8 Mbit/s.
    assert_eq!(idle(268.0, &[]), NONE);
    assert_eq!(idle(269.0, &[]), ["queue elsewhere"]);
    let sends = |bytes: u64| [("peer_rate_bps", json!(8e6)), ("received_bytes", json!(bytes))];
    assert_eq!(idle(300.0, &sends(240_000)), ["queue elsewhere"]);
    assert_eq!(idle(300.0, &sends(260_000)), NONE, "it is the peer's: its packets are a quarter of its rate");
    let narrow = |more: Value| {
        let mut peer = json!({ "limited": true, "limited_by_delay": true, "rtt_ms": 300.0 });
        more.as_object().unwrap().iter().for_each(|(key, value)| peer[key] = value.clone());
        peer
    };
    assert_eq!(of(500_000, narrow(json!({}))), ["told too high"]);
    assert_eq!(of(500_000, narrow(json!({ "rtt_ms": 200.0 }))), ["told too high"], "the queue comes and goes");
    assert_eq!(
        of(990_000, narrow(json!({ "packets_lost": 20 }))),
        ["told too high"],
        "what is full is not the own line"
    );
    assert_eq!(of(990_000, narrow(json!({ "lost_before_repair": 0.021 }))), ["told too high"], "parity repairs it");
    assert_eq!(of(990_000, narrow(json!({}))), ["line full", "queue elsewhere"], "all arrives: the queue is of others");
    let of_air = narrow(json!({ "limited_by_delay": false, "packets_lost": 20, "rtt_ms": 200.0 }));
    assert_eq!(of(500_000, of_air), ["losses"]);
}

#[test]
fn a_path_that_ceases_to_carry_long_packets_is_named_by_what_it_cost() {
    let short = json!({ "path_mtu": 1200, "black_holes": 1, "packets_lost": 200 });
    assert_eq!(of(500_000, short), ["mtu"], "and not as losses");
    assert_eq!(of(500_000, json!({ "path_mtu": 1200 })), NONE, "it has cost nothing");
}

#[test]
fn a_peer_that_is_not_connected_or_silent_is_named_and_wrong_keys_are_told_apart() {
    let down = |more: Value| of(0, more);
    assert_eq!(down(json!({ "connected": false })), ["peer down"]);
    assert_eq!(down(json!({ "connected": false, "failure": "no answer for 10 s" })), ["peer down"]);
    assert_eq!(down(json!({ "connected": false, "failure": "invalid peer certificate: x" })), ["key"]);
    assert_eq!(down(json!({ "packets_sent": 2, "received_bytes": 0, "packets_arrived": 0 })), ["peer down"]);
    assert_eq!(
        down(json!({ "packets_sent": 1, "received_bytes": 0, "packets_arrived": 0 })),
        NONE,
        "the answer is on its way"
    );
    let mut after = report(2.0, 0, json!({ "connected": false, "failure": "no answer for 10 s" }));
    after["direct"] = json!(7);
    assert!(why(&report(1.0, 0, json!({})), &after)[0].contains("7 connections went without the tunnel"));
}

#[test]
fn a_limit_of_connections_counts_when_others_are_refused_and_is_named_by_its_key() {
    let of = |open: u64, limit: u64, refused: u64, peer_bytes: u64| {
        let mut after = report(2.0, 0, json!({ "peer_bytes": peer_bytes }));
        (after["connections"], after["limit_connections"]) = (json!(open), json!(limit));
        after["refused"] = json!(refused);
        why(&report(1.0, 0, json!({})), &after).join("; ")
    };
    assert!(of(9, 9, 4, 256 << 20).contains("raise `limits.connections`"));
    assert!(of(9, 9, 0, 256 << 20).starts_with("nothing here"));
    assert!(of(8, 9, 4, 256 << 20).starts_with("nothing here"));
    // Each of 100 has 4 KiB from its beginning: a quarter of 512 KiB has room for 32.
    assert!(of(32, 100, 4, 512 << 10).contains("raise `limits.peer_bytes`"));
    assert!(of(31, 100, 4, 512 << 10).starts_with("nothing here"));
}

#[test]
fn a_source_that_fails_counts_where_the_rate_is_the_limit() {
    let of = |bytes: u64| {
        let mut after = report(2.0, bytes, json!({}));
        after["capacity"] = json!({ "failure": "no such file", "at_floor": true });
        names_of(&report(1.0, 0, json!({})), &after)
    };
    assert_eq!(of(100_000), NONE);
    assert_eq!(of(990_000), ["source", "line full"]);
}

/// Connections that wait, by number, for which side, for how long now and in all.
fn waits(all: &[(u64, &str, f64, f64)]) -> Value {
    let wait = |(number, whose, now, sum): &(u64, &str, f64, f64)| {
        json!({ "number": number, "name": "hub", "client": format!("10.1.0.2:{number}"), "destination": "10.2.0.2:80",
                "held_bytes": 1 << 20, *whose: { "now_s": now, "sum_s": sum } })
    };
    all.iter().map(wait).collect()
}
/// Reports of a peer whose hosts have little to send, 2 s apart; the port sends so many bytes meanwhile.
fn of_waits(bytes: u64, before: &[(u64, &str, f64, f64)], after: &[(u64, &str, f64, f64)], more: Value) -> String {
    let report = |time: f64, bytes: u64, all: &[_]| {
        let mut peer = json!({ "rtt_ms": 600.0, "min_rtt_ms": 600.0, "arrived_while_more_waited": 0,
                               "connection_bytes": 32 << 20, "peer_bytes": 256 << 20 });
        if time > 1.0 {
            more.as_object().unwrap().iter().for_each(|(key, value)| peer[key] = value.clone());
        }
        let mut report = report(time, bytes, peer);
        report["waiting"] = waits(all);
        report
    };
    why(&report(1.0, 0, before), &report(3.0, bytes, after)).join("; ")
}

#[test]
fn hosts_here_that_do_not_read_are_named() {
    let before = [(1, "host", 5.0, 5.0), (3, "host", 0.0, 5.0)];
    let paused = [(1, "host", 7.0, 7.0), (2, "host", 0.1, 1.95), (3, "host", 0.0, 5.2)];
    let of = |all: &[_], more: Value| of_waits(0, &before, all, more);
    assert_eq!(
        of(&paused, json!({})),
        "hosts here: 2 connections with hub wait for programs that do not read, or slowly, and hold 2.1 of 268.4 MB; see what holds up \
         these hosts: 10.1.0.2:1 to 10.2.0.2:80 (7 s), 10.1.0.2:2 to 10.2.0.2:80"
    );
    // In 2 s the peer fills its line by 2 MB.
    let full = |bytes: u64| json!({ "peer_rate_bps": 8e6, "received_bytes": bytes });
    assert!(of(&paused, full(1_700_000)).starts_with("hosts here"));
    assert!(of(&paused, full(1_900_000)).starts_with("nothing here"), "they would get no more");
    let many: Vec<(u64, &str, f64, f64)> = (10..22).map(|number| (number, "host", 9.0, 9.0)).collect();
    assert!(of(&many, json!({})).ends_with("10.1.0.2:19 to 10.2.0.2:80 (9 s), 2 more"));
    // 8 Mbit/s in 600 ms are 600 kB: others have 16 kB from their beginning, and what is left.
    let left = |bytes: u64| json!({ "peer_rate_bps": 8e6, "growth_left_bytes": bytes });
    let held = of(&paused, left(500_000));
    assert!(held.contains("window of hub: 2 connections") && held.contains("leave 0.50 MB"), "{held}");
    assert!(!of(&paused, left(600_000)).contains("window of hub"));
}

#[test]
fn far_hosts_and_small_windows_count_while_the_line_has_room() {
    let before = [(5, "peer", 0.1, 9.0)];
    let of = |bytes: u64, all: &[_], more: Value| of_waits(bytes, &before, all, more);
    let (unread, slow) = ([(4, "peer", 2.6, 2.6)], [(5, "peer", 0.1, 10.95)]);
    // Two round trips and a second are 2.2 s.
    assert_eq!(
        of(0, &unread, json!({})),
        "far hosts: 1 connection with hub waits for a host there that does not read; see there what holds it up: 10.1.0.2:4 to 10.2.0.2:80 (3 s)"
    );
    assert!(of(0, &[(4, "peer", 2.1, 1.7)], json!({})).starts_with("nothing here"));
    assert!(
        of(1_990_000, &unread, json!({})).starts_with("nothing here"),
        "the line has no room, by others that send little each"
    );
    let behind = json!({ "arrived_while_more_waited": 1400, "packets_arrived": 1400 });
    assert!(of(0, &unread, behind).starts_with("nothing here"), "the window is the limit");
    assert!(of(0, &slow, json!({})).contains("a host there that reads slowly"));
    // 1 MB in 2 s, of which 300 kB are on the way in 600 ms.
    let small = |bytes: u64| of(1_000_000, &slow, json!({ "connection_bytes": bytes }));
    assert!(small(600_000).starts_with("window of hub: 1 connection uses all"), "{}", small(600_000));
    assert!(small(610_000).starts_with("far hosts"), "{}", small(610_000));
}

/// The causes in `docs/gateway.md`, in the order of the code, each with what to do.
#[test]
fn the_docs_have_each_cause() {
    let docs = include_str!("../../../../../docs/gateway.md");
    let section = docs.split("\n## What limits the transfers\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let listed: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("- **")?.split("**").next()).collect();
    assert_eq!(listed, NAMES);
}
