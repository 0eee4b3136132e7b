//! What an operator reads of [reports](super::status): a table of the state.

use serde_json::Value;

pub(super) fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or(0.0)
}

/// Mbit/s: `0.256`, `2.0`, `250`.
pub(super) fn mbps(bps: f64) -> String {
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

/// A table of a report; with the rates since the one before, if there is one.
pub fn table(report: &Value, before: Option<&Value>) -> String {
    let mut lines = vec![format!("connections: {} open", report["connections"]), of_connections(report)];
    lines.extend(of_line(report, before));
    let peers = report["peers"].as_array().into_iter().flatten();
    lines.extend(peers.map(|peer| of_peer(peer, &report["key"])));
    lines.join("\n")
}

/// What became of the connections since the start.
fn of_connections(report: &Value) -> String {
    let kinds = [("intercepted", "from the site"), ("onward", "from peers"), ("direct", "direct"), ("resets", "reset")];
    let counted = kinds.map(|(key, what)| format!("{} {what}", report[key]));
    format!("since the start: {}, {} refused", counted.join(", "), report["refused"])
}

/// The line: its rate, what uses it, what waits, and the source of the rate.
pub(super) fn of_line(report: &Value, before: Option<&Value>) -> Vec<String> {
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
pub(super) fn in_force(capacity: &Value) -> &'static str {
    if capacity["at_floor"] == true { "the floor is in force" } else { "the last rate is in force" }
}

/// By which of its keys a peer's tunnel was set up, while one of the gateways changes its key.
fn of_keys(peer: &Value, own: &Value) -> String {
    let keys = peer["keys"].as_array().map_or(&[][..], Vec::as_slice);
    let theirs = match (keys, keys.iter().position(|key| *key == peer["key"])) {
        ([_, _], Some(number)) => ["; its first key", "; its second key"][number],
        ([_, ..], None) => "; set up with a key that is no longer in the file",
        _ => "",
    };
    let is_old = peer["own_key"].is_string() && peer["own_key"] != *own;
    format!("{theirs}{}", if is_old { "; set up with this gateway's key before" } else { "" })
}

/// What parity follows the datagrams to a peer, if any does.
fn of_parity(peer: &Value) -> String {
    let lost = 100.0 * number(peer, "lost_before_repair");
    let of_block = |block| format!("; {lost:.1} % lost before repair, parity 2 for {block}");
    peer["parity_block"].as_u64().map(of_block).unwrap_or_default()
}

/// A peer; the present key of this gateway is `own`.
fn of_peer(peer: &Value, own: &Value) -> String {
    let name = peer["name"].as_str().unwrap_or("");
    if peer["connected"] != true {
        return format!("{name}: not connected");
    }
    let limited = if peer["limited"] == true { "; TCP's window limits it" } else { "" };
    let (parity, keys) = (of_parity(peer), of_keys(peer, own));
    format!(
        "{name} at {}: round trip {:.1} ms, window {:.0} kB; {} packets sent, {} lost{parity}; {} of the peer repaired{limited}{keys}",
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
    fn the_table_has_the_line_its_source_and_the_peers() {
        let report = json!({
            "time_s": 3.0, "connections": 2, "intercepted": 7, "onward": 0, "direct": 1, "resets": 3, "refused": 4,
            "port": { "rate_bps": 2e6, "bytes": 500_000, "queue_packets": 5, "plain": { "bits_per_second": 64e3, "dropped": 9 } },
            "capacity": { "failure": "no such file", "at_floor": false },
            "peers": [{ "name": "hub", "connected": false },
                      { "name": "far", "connected": true, "address": "192.0.2.2:49407", "rtt_ms": 612.34, "window_bytes": 150_000,
                        "packets_sent": 80, "packets_lost": 6, "repaired": 11, "limited": true,
                        "lost_before_repair": 0.052, "parity_block": 10 }],
        });
        let before = json!({ "time_s": 1.0, "port": { "bytes": 200_000 } });
        let expected = "connections: 2 open
since the start: 7 from the site, 0 from peers, 1 direct, 3 reset, 4 refused
line: 1.2 of 2.0 Mbit/s, 5 packets wait; other packets 0.064 Mbit/s, 9 dropped
capacity source: fails (no such file), the last rate is in force
hub: not connected
far at 192.0.2.2:49407: round trip 612.3 ms, window 150 kB; 80 packets sent, 6 lost; 5.2 % lost before repair, parity 2 for 10; 11 of the peer repaired; TCP's window limits it";
        assert_eq!(table(&report, Some(&before)), expected);
        assert_eq!(
            of_parity(&json!({ "lost_before_repair": 0.1, "parity_block": null })),
            "",
            "no rate, or `parity = false`"
        );
        let tunnel = |key: &str, keys: &[&str], own: &str| {
            of_keys(&json!({ "key": key, "keys": keys, "own_key": own }), &json!("own"))
        };
        assert_eq!(tunnel("a", &["a"], "own"), "");
        assert_eq!(tunnel("a", &["a", "b"], "own"), "; its first key");
        assert_eq!(tunnel("b", &["a", "b"], "own"), "; its second key");
        assert_eq!(tunnel("a", &["b"], "own"), "; set up with a key that is no longer in the file");
        assert_eq!(tunnel("a", &["a"], "before"), "; set up with this gateway's key before");
        let unshaped = json!({ "connections": 0, "peers": [], "port": null });
        assert!(table(&unshaped, None).ends_with("line: no `rate`, nothing is shaped"));
    }
}
