//! What an operator reads of [reports](super::status): a table of the state, and what limits the transfers.

use serde_json::Value;

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or(0.0)
}

/// Mbit/s: `0.256`, `2.0`, `250`.
fn mbps(bps: f64) -> String {
    let digits = if bps < 1e6 {
        3
    } else if bps < 1e8 {
        1
    } else {
        0
    };
    format!("{:.digits$}", bps / 1e6)
}

/// What the port sent between two reports, bit/s.
fn used(before: &Value, after: &Value) -> f64 {
    let seconds = (number(after, "time_s") - number(before, "time_s")).max(1e-3);
    8.0 * (number(&after["port"], "bytes") - number(&before["port"], "bytes")) / seconds
}

/// What limits the transfers now, by two reports with some time between them: the first cause that holds, in plain words.
pub fn why(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(failure) = after["capacity"]["failure"].as_str() {
        found.push(format!("capacity source: it fails ({failure}); {}", in_force(&after["capacity"])));
    }
    let (rate, used) = (number(&after["port"], "rate_bps"), used(before, after));
    let full = rate > 0.0 && used > 0.9 * rate;
    if full {
        found.push(format!("line: full, {} of {} Mbit/s", mbps(used), mbps(rate)));
    }
    let (peers, before_all) = (after["peers"].as_array().into_iter().flatten(), before);
    for (peer, before) in peers.zip(before["peers"].as_array().into_iter().flatten()) {
        let name = peer["name"].as_str().unwrap_or("");
        let more = |key: &str| number(peer, key) - number(before, key);
        if peer["connected"] != true {
            found.push(format!("path to {name}: not connected"));
            continue;
        }
        if peer["limited"] == true {
            let message = "losses or delay as before a line that is narrower than `rate`: TCP's window is the limit";
            found.push(format!("path to {name}: {message}"));
        }
        let lost = more("packets_lost") / more("packets_sent").max(1.0);
        if lost > 0.03 {
            found.push(format!("path to {name}: {:.1} % of the packets are lost", 100.0 * lost));
        }
        found.extend(waiting(before_all, after, peer, full));
    }
    if found.is_empty() {
        found.push("nothing here: the hosts send less than the line carries, or wait for each other".to_string());
    }
    found
}

/// No credit again and again.
const SLOW: &str = "the far host reads slowly, or `connection_bytes` or `peer_bytes` there is too small for the path";
/// Most connections that are named.
const NAMED: usize = 10;
/// A connection waits for a host if it does so for this share of the time.
const SHARE: f64 = 0.9;
/// The host of a connection without credit for so many seconds and two round trips does not read.
const UNREAD: f64 = 1.0;

/// The connections with a peer that wait for hosts, here or there.
fn waiting(before: &Value, after: &Value, peer: &Value, full: bool) -> Vec<String> {
    let seconds = (number(after, "time_s") - number(before, "time_s")).max(1e-3);
    let of_peer = |wait: &&Value| wait["name"] == peer["name"];
    let all: Vec<&Value> = after["waiting"].as_array().into_iter().flatten().filter(of_peer).collect();
    let share = |wait: &Value, whose: &str| {
        let earlier = before["waiting"].as_array().into_iter().flatten().find(|w| w["number"] == wait["number"]);
        (number(&wait[whose], "sum_s") - earlier.map_or(0.0, |w| number(&w[whose], "sum_s"))) / seconds
    };
    let here = |wait: &&Value| share(wait, "host") >= SHARE;
    let read_by = UNREAD + 2e-3 * number(peer, "rtt_ms");
    let unread = |wait: &&Value| number(&wait["peer"], "now_s") >= read_by;
    let slow = |wait: &&Value| !full && !unread(wait) && share(wait, "peer") >= SHARE;
    let kinds: [(Vec<&Value>, &str, &str); 3] = [
        (all.iter().copied().filter(here).collect(), "host", "the host here does not read, or slowly"),
        (all.iter().copied().filter(unread).collect(), "peer", "the far host does not read"),
        (all.iter().copied().filter(slow).collect(), "peer", SLOW),
    ];
    let said = kinds.into_iter().filter(|(of_kind, ..)| !of_kind.is_empty());
    said.map(|(of_kind, whose, message)| named(peer, &of_kind, whose, message)).collect()
}

/// A line that names connections which wait.
fn named(peer: &Value, all: &[&Value], whose: &str, message: &str) -> String {
    let of = |wait: &&Value| {
        let text = |key: &str| wait[key].as_str().unwrap_or("").to_string();
        format!("{} to {} ({:.0} s)", text("client"), text("destination"), number(&wait[whose], "now_s"))
    };
    let mut names: Vec<String> = all.iter().take(NAMED).map(of).collect();
    if all.len() > NAMED {
        names.push(format!("{} more", all.len() - NAMED));
    }
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let held: f64 = all.iter().map(|wait| number(wait, "held_bytes")).sum();
    let one = all.len() == 1;
    let held = match whose {
        // What waits at the far end is in its own report.
        "host" => {
            let of = megabytes(number(peer, "peer_bytes"));
            format!(" {} {} of {of}", if one { "holds" } else { "hold" }, megabytes(held))
        }
        _ => String::new(),
    };
    let connections = if one { "connection" } else { "connections" };
    let (count, name) = (all.len(), peer["name"].as_str().unwrap_or(""));
    format!("window of {name}: {count} {connections}{held}; {message}: {}", names.join(", "))
}

/// A table of a report; with the rates since the one before, if there is one.
pub fn table(report: &Value, before: Option<&Value>) -> String {
    let mut lines = vec![format!("connections: {} open", report["connections"]), of_connections(report)];
    lines.extend(of_line(report, before));
    let peers = report["peers"].as_array().into_iter().flatten();
    lines.extend(peers.map(of_peer));
    lines.join("\n")
}

/// What became of the connections since the start.
fn of_connections(report: &Value) -> String {
    let kinds = [("intercepted", "from the site"), ("onward", "from peers"), ("direct", "direct"), ("resets", "reset")];
    let counted = kinds.map(|(key, what)| format!("{} {what}", report[key]));
    format!("since the start: {}, {} refused", counted.join(", "), report["refused"])
}

/// The line: its rate, what uses it, what waits, and the source of the rate.
fn of_line(report: &Value, before: Option<&Value>) -> Vec<String> {
    let port = &report["port"];
    if !port.is_object() {
        return vec!["line: no `rate`, nothing is shaped".to_string()];
    }
    let used = before.map_or(String::new(), |before| format!("{} of ", mbps(used(before, report))));
    let plain = mbps(number(&port["plain"], "bits_per_second"));
    let mut lines = vec![format!(
        "line: {used}{} Mbit/s, {} packets wait; other packets {plain} Mbit/s, {} dropped",
        mbps(number(port, "rate_bps")),
        port["queue_packets"],
        port["plain"]["dropped"],
    )];
    let capacity = &report["capacity"];
    if let Some(failure) = capacity["failure"].as_str() {
        lines.push(format!("capacity source: fails ({failure}), {}", in_force(capacity)));
    } else if capacity.is_object() {
        lines.push("capacity source: works".to_string());
    }
    lines
}

/// Which rate is in force while the source of the capacity fails.
fn in_force(capacity: &Value) -> &'static str {
    if capacity["at_floor"] == true { "the floor is in force" } else { "the last rate is in force" }
}

/// A peer.
fn of_peer(peer: &Value) -> String {
    let name = peer["name"].as_str().unwrap_or("");
    if peer["connected"] != true {
        return format!("{name}: not connected");
    }
    let limited = if peer["limited"] == true { "; TCP's window limits it" } else { "" };
    format!(
        "{name} at {}: round trip {:.1} ms, window {:.0} kB; {} packets sent, {} lost; {} of the peer repaired{limited}",
        peer["address"].as_str().unwrap_or(""),
        number(peer, "rtt_ms"),
        number(peer, "window_bytes") / 1e3,
        peer["packets_sent"],
        peer["packets_lost"],
        peer["repaired"],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_limits_is_named() {
        let report = |time: f64, bytes: u64, sent: u64, lost: u64| {
            json!({
                "time_s": time,
                "port": { "rate_bps": 8e6, "bytes": bytes },
                "peers": [{ "name": "hub", "connected": true, "packets_sent": sent, "packets_lost": lost }],
            })
        };
        let before = report(1.0, 0, 0, 0);
        let of = |after: &Value| why(&before, after).join("; ");
        assert!(of(&report(2.0, 100_000, 70, 0)).starts_with("nothing here"));
        assert_eq!(of(&report(2.0, 990_000, 700, 7)), "line: full, 7.9 of 8.0 Mbit/s");
        assert_eq!(of(&report(2.0, 100_000, 700, 70)), "path to hub: 10.0 % of the packets are lost");
        let mut after = report(2.0, 0, 0, 0);
        after["capacity"] = json!({ "failure": "no such file", "at_floor": true });
        assert_eq!(of(&after), "capacity source: it fails (no such file); the floor is in force");
        after["peers"][0] = json!({ "name": "hub", "connected": false });
        assert!(of(&after).ends_with("path to hub: not connected"));
    }

    #[test]
    fn hosts_that_do_not_read_are_named() {
        let report = |time: f64, bytes: u64, waits: &[(u64, &str, f64, f64)]| {
            let waiting = waits.iter().map(|(number, whose, now, sum)| {
                json!({ "number": number, "name": "hub", "client": format!("10.1.0.2:{number}"), "destination": "10.2.0.2:80",
                        "held_bytes": 1 << 20, *whose: { "now_s": now, "sum_s": sum } })
            });
            json!({
                "time_s": time,
                "port": { "rate_bps": 8e6, "bytes": bytes },
                "waiting": waiting.collect::<Vec<_>>(),
                "peers": [{ "name": "hub", "connected": true, "rtt_ms": 600.0, "peer_bytes": 256 << 20 },
                          { "name": "other", "connected": true }],
            })
        };
        let before = report(1.0, 0, &[(1, "host", 5.0, 5.0), (3, "host", 0.0, 5.0), (5, "peer", 0.1, 9.0)]);
        let of = |bytes: u64, waits: &[_]| why(&before, &report(3.0, bytes, waits)).join("; ");
        let paused = [(1, "host", 7.0, 7.0), (2, "host", 0.1, 1.95), (3, "host", 0.0, 5.2)];
        assert_eq!(
            of(0, &paused),
            "window of hub: 2 connections hold 2.1 MB of 268.4 MB; the host here does not read, or slowly: \
             10.1.0.2:1 to 10.2.0.2:80 (7 s), 10.1.0.2:2 to 10.2.0.2:80 (0 s)"
        );
        // Two round trips and a second are 2.2 s.
        let unread = "window of hub: 1 connection; the far host does not read: 10.1.0.2:4 to 10.2.0.2:80 (3 s)";
        assert_eq!(of(0, &[(4, "peer", 2.6, 2.6)]), unread);
        assert_eq!(of(1_990_000, &[(4, "peer", 2.1, 2.1)]), "line: full, 8.0 of 8.0 Mbit/s");
        assert_eq!(of(1_990_000, &[(4, "peer", 2.6, 2.6)]), format!("line: full, 8.0 of 8.0 Mbit/s; {unread}"));
        assert!(
            of(0, &[(5, "peer", 0.1, 10.95)])
                .contains("`connection_bytes` or `peer_bytes` there is too small for the path: 10.1.0.2:5")
        );
        assert_eq!(of(1_990_000, &[(5, "peer", 0.1, 10.95)]), "line: full, 8.0 of 8.0 Mbit/s");
        let many: Vec<(u64, &str, f64, f64)> = (10..22).map(|number| (number, "host", 9.0, 9.0)).collect();
        assert!(of(0, &many).ends_with("10.1.0.2:19 to 10.2.0.2:80 (9 s), 2 more"));
    }

    #[test]
    fn the_table_has_the_line_its_source_and_the_peers() {
        let report = json!({
            "time_s": 3.0, "connections": 2, "intercepted": 7, "onward": 0, "direct": 1, "resets": 3, "refused": 4,
            "port": { "rate_bps": 2e6, "bytes": 500_000, "queue_packets": 5, "plain": { "bits_per_second": 64e3, "dropped": 9 } },
            "capacity": { "failure": "no such file", "at_floor": false },
            "peers": [{ "name": "hub", "connected": false },
                      { "name": "far", "connected": true, "address": "192.0.2.2:49407", "rtt_ms": 612.34, "window_bytes": 150_000,
                        "packets_sent": 80, "packets_lost": 6, "repaired": 11, "limited": true }],
        });
        let before = json!({ "time_s": 1.0, "port": { "bytes": 200_000 } });
        let expected = "connections: 2 open
since the start: 7 from the site, 0 from peers, 1 direct, 3 reset, 4 refused
line: 1.2 of 2.0 Mbit/s, 5 packets wait; other packets 0.064 Mbit/s, 9 dropped
capacity source: fails (no such file), the last rate is in force
hub: not connected
far at 192.0.2.2:49407: round trip 612.3 ms, window 150 kB; 80 packets sent, 6 lost; 11 of the peer repaired; TCP's window limits it";
        assert_eq!(table(&report, Some(&before)), expected);
        let unshaped = json!({ "connections": 0, "peers": [], "port": null });
        assert!(table(&unshaped, None).ends_with("line: no `rate`, nothing is shaped"));
    }
}
