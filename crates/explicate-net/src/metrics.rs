//! Counters for Prometheus: its text format over HTTP, from a thread of its own.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::error::{Context, Result};

/// What is served.
pub struct Metrics {
    text: Arc<Mutex<String>>,
}

impl Metrics {
    /// Serves from now on.
    pub fn serve(address: SocketAddr) -> Result<Metrics> {
        let listener = TcpListener::bind(address).or_fail(|| format!("serve metrics at {address}"))?;
        let text = Arc::new(Mutex::new(String::new()));
        let served = text.clone();
        let spawned = thread::Builder::new().name("metrics".to_string()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let body = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let _ = answer(stream, &body);
            }
        });
        spawned.or_fail(|| "start a thread".to_string())?;
        Ok(Metrics { text })
    }
    /// What a forwarder tells is served from now on.
    pub fn set(&self, told: &Value) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text(told);
    }
}

/// One request at a time, a short one, answered at once: whoever dawdles is cut off.
fn answer(mut stream: TcpStream, body: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    stream.set_write_timeout(Some(Duration::from_millis(500)))?;
    let mut request = [0; 2048];
    let read = stream.read(&mut request)?;
    let (status, body) =
        if request[..read].starts_with(b"GET /metrics") { ("200 OK", body) } else { ("404 Not Found", "") };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Numbers of a report as lines: those of the whole, then those of each port with its name.
pub fn text(told: &Value) -> String {
    let mut text = String::new();
    // What may fall is a gauge, all else a counter.
    let metric = |level: &str, key: &str| {
        let falls = ["late", "queue", "cpu", "time", "loss", "bits"].iter().any(|word| key.starts_with(word));
        let gauge = falls && key != "lost" || key.ends_with("_bps") || key.ends_with("_ms");
        let (kind, end) = if gauge { ("gauge", "") } else { ("counter", "_total") };
        (format!("explicated_{level}{key}{end}"), kind)
    };
    for (key, value) in told.as_object().into_iter().flatten().filter(|(_, v)| v.is_number()) {
        let (name, kind) = metric("", key);
        let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
    }
    let ports: Vec<&Value> = told["ports"].as_array().into_iter().flatten().collect();
    let keys = ports.first().and_then(|p| p.as_object()).into_iter().flatten().filter(|(_, v)| v.is_number());
    for (key, _) in keys {
        let (name, kind) = metric("port_", key);
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for port in &ports {
            let _ = writeln!(text, "{name}{{port={}}} {}", port["name"], port[key]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_line_a_number() {
        let told = json!({ "sent": 5, "event": "report", "ports": [{ "name": "eth0", "drops": 2, "queue_bytes": 7 }] });
        let lines = text(&told);
        assert!(lines.contains("# TYPE explicated_sent_total counter\nexplicated_sent_total 5\n"), "{lines}");
        assert!(lines.contains("explicated_port_drops_total{port=\"eth0\"} 2\n"), "{lines}");
        assert!(
            lines.contains("# TYPE explicated_port_queue_bytes gauge\nexplicated_port_queue_bytes{port=\"eth0\"} 7\n"),
            "{lines}"
        );
    }
}
