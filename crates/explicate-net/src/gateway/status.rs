//! The state of a running gateway, as JSON over a Unix socket.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;

use super::capacity;
use super::peers::{Gateway, Peer};
use super::port::Port;
use crate::error::{Context, Error, Result};
use crate::sys;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the socket, for the owner only.
pub fn listen(path: &Path) -> Result<UnixListener> {
    let what = || format!("open {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).or_fail(what)?;
    }
    // One that an earlier run has left.
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path).or_fail(what)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).or_fail(what)?;
    Ok(listener)
}

/// Answers, for ever.
pub async fn serve(gateway: Arc<Gateway>, listener: UnixListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let text = format!("{}\n", report(&gateway));
        let _ = tokio::time::timeout(TIMEOUT, stream.write_all(text.as_bytes())).await;
    }
}

/// Asks a running gateway.
pub fn ask(path: &Path) -> Result<Value> {
    let hint =
        |e| Error::Failed(format!("no gateway answers at {}: {e}; is `explicated gateway run` up?", path.display()));
    let mut stream = UnixStream::connect(path).map_err(hint)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(hint)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(hint)?;
    serde_json::from_str(&text).map_err(|e| Error::Failed(format!("the gateway answers with no JSON: {e}")))
}

fn of_peer(peer: &Peer) -> Value {
    let Some((connection, tunnel)) = peer.current() else {
        return json!({ "name": peer.config.name, "connected": false });
    };
    let (stats, repairs) = (connection.stats(), tunnel.repairs());
    json!({
        "name": peer.config.name,
        "connected": true,
        "address": connection.remote_address().to_string(),
        "rtt_ms": stats.path.rtt.as_secs_f64() * 1e3,
        "window_bytes": stats.path.cwnd,
        "repaired": repairs.repaired,
        "beyond_repair": repairs.beyond,
        "limited": tunnel.controller.lock().is_limited(),
        "packets_sent": stats.path.sent_packets,
        "packets_lost": stats.path.lost_packets,
        "path_mtu": stats.path.current_mtu,
        "sent_bytes": stats.udp_tx.bytes,
        "received_bytes": stats.udp_rx.bytes,
        "blocked_by_peer_window": stats.frame_tx.data_blocked + stats.frame_tx.stream_data_blocked,
    })
}

fn of_capacity(state: &capacity::State) -> Value {
    json!({ "failure": state.failure, "at_floor": state.at_floor })
}

fn of_port(port: &Port) -> Value {
    let ([sent, dropped, refused], used) = port.plain().unwrap_or_default();
    let plain = json!({ "sent": sent, "dropped": dropped, "refused": refused, "bits_per_second": 8.0 * used });
    let (c, rate, (queue_bytes, queue_packets)) = port.report();
    json!({
        "rate_bps": 8.0 * rate,
        "plain": plain,
        "sent": c.sent,
        "bytes": c.bytes,
        "parity": c.parity,
        "dropped": c.dropped,
        "refused": c.refused,
        "queue_bytes": queue_bytes,
        "queue_packets": queue_packets,
    })
}

/// All of it.
pub fn report(gateway: &Gateway) -> Value {
    let c = &gateway.counters;
    let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    json!({
        "time_s": sys::monotonic() as f64 / 1e9,
        "connections": c.open.load(Ordering::Relaxed),
        "intercepted": of(&c.intercepted),
        "onward": of(&c.onward),
        "direct": of(&c.direct),
        "resets": of(&c.resets),
        "refused": of(&c.refused),
        "sent_bytes": of(&c.sent),
        "received_bytes": of(&c.received),
        "port": gateway.port.as_ref().map(|port| of_port(port)),
        "capacity": gateway.capacity.as_ref().and_then(|capacity| capacity.state()).map(|state| of_capacity(&state)),
        "peers": gateway.table().peers.iter().map(|peer| of_peer(peer)).collect::<Vec<_>>(),
    })
}

/// The same for [`Metrics`](crate::metrics::Metrics), where peers stand as ports.
pub fn metrics(gateway: &Gateway) -> Value {
    const SHOWN: [&str; 8] =
        ["name", "rtt_ms", "window_bytes", "path_mtu", "packets_sent", "packets_lost", "repaired", "beyond_repair"];
    let report = report(gateway);
    let under = |prefix: &str, of: &Value| {
        let numbers = of.as_object().into_iter().flatten().filter(|(key, value)| value.is_number() && *key != "time_s");
        numbers.map(|(key, value)| (format!("{prefix}_{key}"), value.clone())).collect::<Vec<_>>()
    };
    let of_peer = |peer: &Value| {
        let shown = SHOWN.iter().filter(|key| !peer[**key].is_null()).map(|key| (key.to_string(), peer[*key].clone()));
        let up = ("up".to_string(), json!((peer["connected"] == true) as u8));
        Value::Object(shown.chain([up]).collect())
    };
    let peers: Vec<Value> = report["peers"].as_array().into_iter().flatten().map(of_peer).collect();
    let all = under("gateway", &report).into_iter().chain(under("line", &report["port"]));
    Value::Object(all.chain([("ports".to_string(), json!(peers))]).collect())
}

/// What limits the transfers now, by two reports with some time between them: the first cause that holds, in plain words.
pub fn why(before: &Value, after: &Value) -> Vec<String> {
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap_or(0.0);
    let mut found = Vec::new();
    if let Some(failure) = after["capacity"]["failure"].as_str() {
        let at_floor = after["capacity"]["at_floor"] == true;
        let what = if at_floor { "the floor is in force" } else { "the last rate is in force" };
        found.push(format!("capacity source: it fails ({failure}); {what}"));
    }
    let port = &after["port"];
    if number(port, "rate_bps") > 0.0 {
        let seconds = (number(after, "time_s") - number(before, "time_s")).max(1e-3);
        let used = 8.0 * (number(port, "bytes") - number(&before["port"], "bytes")) / seconds;
        let share = used / number(port, "rate_bps");
        if share > 0.9 {
            found.push(format!("line: full, {:.1} of {:.1} Mbit/s", used / 1e6, number(port, "rate_bps") / 1e6));
        }
    }
    let peers = after["peers"].as_array().into_iter().flatten();
    for (peer, before) in peers.zip(before["peers"].as_array().into_iter().flatten()) {
        let name = peer["name"].as_str().unwrap_or("");
        let more = |key: &str| number(peer, key) - number(before, key);
        if peer["connected"] != true {
            found.push(format!("path to {name}: not connected"));
            continue;
        }
        if peer["limited"] == true {
            found.push(format!("path to {name}: losses or delay as before a line that is narrower than `rate`: TCP's window is the limit"));
        }
        let lost = more("packets_lost") / more("packets_sent").max(1.0);
        if lost > 0.03 {
            found.push(format!("path to {name}: {:.1} % of the packets are lost", 100.0 * lost));
        }
        if more("blocked_by_peer_window") > 0.0 {
            let message = "the far host reads slowly, or `connection_bytes` there is too small for the path";
            found.push(format!("window of {name}: {message}"));
        }
    }
    if found.is_empty() {
        found.push("nothing here: the hosts send less than the line carries, or wait for each other".to_string());
    }
    found
}

/// A table of a report.
pub fn table(report: &Value) -> String {
    let mut text = format!(
        "{} connections open, {} from the site, {} from peers, {} direct, {} reset, {} refused\n",
        report["connections"],
        report["intercepted"],
        report["onward"],
        report["direct"],
        report["resets"],
        report["refused"]
    );
    for peer in report["peers"].as_array().into_iter().flatten() {
        let name = peer["name"].as_str().unwrap_or("");
        if peer["connected"] != true {
            text += &format!("{name}: not connected\n");
            continue;
        }
        let number = |key: &str| peer[key].as_f64().unwrap_or(0.0);
        text += &format!(
            "{name} at {}: round trip {:.1} ms, window {:.0} kB, {} packets sent, {} lost\n",
            peer["address"].as_str().unwrap_or(""),
            number("rtt_ms"),
            number("window_bytes") / 1e3,
            peer["packets_sent"],
            peer["packets_lost"],
        );
    }
    text.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_limits_is_named() {
        let report = |time: f64, bytes: u64, sent: u64, lost: u64, blocked: u64| {
            json!({
                "time_s": time,
                "port": { "rate_bps": 8e6, "bytes": bytes },
                "peers": [{ "name": "hub", "connected": true, "packets_sent": sent, "packets_lost": lost,
                            "blocked_by_peer_window": blocked }],
            })
        };
        let before = report(1.0, 0, 0, 0, 0);
        let of = |after: &Value| why(&before, after).join("; ");
        assert!(of(&report(2.0, 100_000, 70, 0, 0)).starts_with("nothing here"));
        assert_eq!(of(&report(2.0, 990_000, 700, 7, 0)), "line: full, 7.9 of 8.0 Mbit/s");
        assert_eq!(of(&report(2.0, 100_000, 700, 70, 0)), "path to hub: 10.0 % of the packets are lost");
        assert!(of(&report(2.0, 100_000, 700, 0, 3)).starts_with("window of hub: the far host reads slowly"));
        let mut after = report(2.0, 0, 0, 0, 0);
        after["capacity"] = json!({ "failure": "no such file", "at_floor": true });
        assert_eq!(of(&after), "capacity source: it fails (no such file); the floor is in force");
        after["peers"][0] = json!({ "name": "hub", "connected": false });
        assert!(of(&after).ends_with("path to hub: not connected"));
    }
}
