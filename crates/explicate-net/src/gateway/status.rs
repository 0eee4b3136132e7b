//! The state of a running gateway, as JSON over a Unix socket.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::capacity;
use super::identity::PublicKey;
use super::peers::{Gateway, Peer};
use super::port::Port;
use super::shim;
use crate::error::{Context, Error, Result};
use crate::sys;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Between two attempts to accept a client.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a client may take to say that it wants a look at the line. Older ones say nothing.
const ASKS: Duration = Duration::from_millis(50);
/// What it says.
const LOOK: &[u8] = b"l";

/// Opens the socket, for the owner only.
pub fn listen(path: &Path) -> Result<UnixListener> {
    let what = || format!("open {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).or_fail(what)?;
    }
    // An earlier run leaves a socket. For any other file, `bind` fails.
    if fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket()) {
        let _ = fs::remove_file(path);
    }
    let listener = UnixListener::bind(path).or_fail(what)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).or_fail(what)?;
    Ok(listener)
}

/// Answers, for ever.
pub async fn serve(gateway: Arc<Gateway>, listener: UnixListener) {
    loop {
        // There may be no descriptor for a while.
        let Ok((mut stream, _)) = listener.accept().await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        let mut said = [0];
        let asks = tokio::time::timeout(ASKS, stream.read(&mut said)).await;
        if matches!(asks, Ok(Ok(1))) && said == LOOK {
            look(&gateway);
        }
        let text = format!("{}\n", report(&gateway));
        let _ = tokio::time::timeout(TIMEOUT, stream.write_all(text.as_bytes())).await;
    }
}

/// Has the port look whether the line carries more than its rate; a later report shows it.
pub fn look(gateway: &Gateway) {
    if let Some(port) = &gateway.port {
        port.look();
    }
}

/// Asks a running gateway.
pub fn ask(path: &Path) -> Result<Value> {
    ask_by(path, b"")
}
/// The same, and has it look at the line.
pub fn ask_to_look(path: &Path) -> Result<Value> {
    ask_by(path, LOOK)
}
fn ask_by(path: &Path, says: &[u8]) -> Result<Value> {
    let hint =
        |e| Error::Failed(format!("no gateway answers at {}: {e}; is `explicated gateway run` up?", path.display()));
    let mut stream = UnixStream::connect(path).map_err(hint)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(hint)?;
    stream.write_all(says).and_then(|()| stream.shutdown(Shutdown::Write)).map_err(hint)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(hint)?;
    serde_json::from_str(&text).map_err(|e| Error::Failed(format!("the gateway answers with no JSON: {e}")))
}

fn of_peer(peer: &Peer, gateway: &Gateway) -> Value {
    let Some((connection, tunnel)) = peer.current() else {
        return json!({ "name": peer.config.name, "connected": false, "failure": peer.failure() });
    };
    let [own_key, key] = peer.keys().map_or([None, None], |keys| keys.map(|key| Some(key.line())));
    let (stats, repairs, limits) = (connection.stats(), tunnel.repairs(), gateway.transport.limits());
    let controller = tunnel.controller.lock();
    let (limited, by_delay) = (controller.is_limited(), controller.is_limited_by_delay());
    let [arrived, while_more_waited] = controller.arrived();
    drop(controller);
    json!({
        "name": peer.config.name,
        "connected": true,
        "key": key,
        "keys": peer.config.public_keys().iter().map(PublicKey::line).collect::<Vec<_>>(),
        "own_key": own_key,
        "address": shim::canonical(connection.remote_address()).to_string(),
        "rtt_ms": stats.path.rtt.as_nanos() as f64 / 1e6,
        "window_bytes": stats.path.cwnd,
        "repaired": repairs.repaired,
        "beyond_repair": repairs.beyond,
        "lost_before_repair": repairs.lost,
        "parity_block": (gateway.port.is_some() && gateway.table().config.wan.parity).then_some(repairs.block),
        "credit_bytes": tunnel.credits.reserved(),
        "beyond_credit": tunnel.credits.beyond(),
        "growth_left_bytes": tunnel.credits.growth_left(),
        "peer_rate_bps": tunnel.credits.peer_rate().map(|rate| rate.0),
        "packets_arrived": arrived,
        "arrived_while_more_waited": while_more_waited,
        "connection_bytes": limits.connection_bytes.unwrap_or(limits.most_window()),
        "peer_bytes": limits.peer_bytes,
        "min_rtt_ms": stats.path.min_rtt.as_nanos() as f64 / 1e6,
        "black_holes": stats.path.black_holes_detected,
        "parity": gateway.table().config.wan.parity,
        "air_loss": gateway.table().config.wan.air_loss,
        "limited": limited,
        "limited_by_delay": by_delay,
        "packets_sent": stats.path.sent_packets,
        "packets_lost": stats.path.lost_packets,
        "path_mtu": stats.path.current_mtu,
        "sent_bytes": stats.udp_tx.bytes,
        "received_bytes": stats.udp_rx.bytes,
    })
}

/// Bytes of memory in use (VmRSS of proc(5)).
fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(1024 * value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?)
}

fn of_capacity(state: &capacity::State) -> Value {
    json!({ "failure": state.failure, "at_floor": state.at_floor })
}

fn of_port(port: &Port) -> Value {
    let ([sent, dropped, refused], used) = port.plain().unwrap_or_default();
    let plain = json!({ "sent": sent, "dropped": dropped, "refused": refused, "bits_per_second": 8.0 * used });
    let (c, rate, (queue_bytes, queue_packets)) = port.report();
    let (carries, measured) = port.found();
    json!({
        "rate_bps": 8.0 * rate,
        "carries_bps": carries.map(|carries| 8.0 * carries),
        "measured": measured,
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
    let (waiting, waiting_connections) = gateway.open.waiting();
    json!({
        "time_s": sys::monotonic() as f64 / 1e9,
        "key": gateway.identity().public.line(),
        "connections": c.open.load(Ordering::Relaxed),
        "limit_connections": gateway.table().config.limits.connections,
        "intercepted": of(&c.intercepted),
        "onward": of(&c.onward),
        "direct": of(&c.direct),
        "resets": of(&c.resets),
        "refused": of(&c.refused),
        "sent_bytes": of(&c.sent),
        "received_bytes": of(&c.received),
        "memory_bytes": memory(),
        "port": gateway.port.as_ref().map(|port| of_port(port)),
        "capacity": gateway.capacity.as_ref().and_then(|capacity| capacity.state()).map(|state| of_capacity(&state)),
        "carrying": gateway.open.carrying(),
        "waiting": waiting,
        "waiting_connections": waiting_connections,
        "peers": gateway.table().peers.iter().map(|peer| of_peer(peer, gateway)).collect::<Vec<_>>(),
    })
}

/// Numbers of a peer that are metrics.
const SHOWN: [&str; 13] = [
    "name",
    "rtt_ms",
    "min_rtt_ms",
    "window_bytes",
    "path_mtu",
    "black_holes",
    "packets_sent",
    "packets_lost",
    "repaired",
    "beyond_repair",
    "sent_bytes",
    "received_bytes",
    "credit_bytes",
];

/// A [report] for [`Metrics`](crate::metrics::Metrics), where peers stand as ports.
pub fn metrics(report: &Value) -> Value {
    let flag = |key: &str, is: bool| (key.to_string(), json!(is as u8));
    let under = |prefix: &str, of: &Value| {
        let numbers = of.as_object().into_iter().flatten().filter(|(key, value)| value.is_number() && *key != "time_s");
        numbers.map(|(key, value)| (format!("{prefix}_{key}"), value.clone())).collect::<Vec<_>>()
    };
    let of_peer = |peer: &Value| {
        let shown = SHOWN.iter().filter(|key| !peer[**key].is_null()).map(|key| (key.to_string(), peer[*key].clone()));
        let flags = [flag("up", peer["connected"] == true), flag("limited", peer["limited"] == true)];
        Value::Object(shown.chain(flags).collect())
    };
    let peers: Vec<Value> = report["peers"].as_array().into_iter().flatten().map(of_peer).collect();
    let plain = under("line_plain", &report["port"]["plain"]);
    let all = under("gateway", report).into_iter().chain(under("line", &report["port"])).chain(plain);
    let source =
        report["capacity"].is_object().then(|| flag("line_source_fails", report["capacity"]["failure"].is_string()));
    Value::Object(all.chain(source).chain([("ports".to_string(), json!(peers))]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `listen` replaces a socket, and no other file.
    #[tokio::test]
    async fn only_a_socket_is_replaced() {
        let path = std::env::temp_dir().join(format!("explicate-status-{}", std::process::id()));
        drop(listen(&path).unwrap());
        drop(listen(&path).unwrap());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "kept").unwrap();
        assert!(listen(&path).unwrap_err().to_string().contains("in use"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_memory_of_this_process_is_known() {
        let touched = vec![1u8; 64 << 20];
        let used = memory().unwrap();
        assert!((64 << 20..4 << 30).contains(&used), "{used} with {} bytes", touched.len());
    }
}
