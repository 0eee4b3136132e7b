//! Counters for Prometheus: its text format over HTTP, from a thread of its own.
//!
//! The thread never waits for one client: it looks at all connections in turns, and none is open for more than `PATIENCE`. Of more than
//! `MOST` the oldest is closed, so that who asks now is answered however many say nothing.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::error::{Context, Result};
use crate::sys;

/// Most connections at a time.
const MOST: usize = 64;
/// How long one is open at most, nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
/// Longest request, bytes.
const REQUEST: usize = 4096;
/// Between two looks at connections that are open.
const TURN: Duration = Duration::from_millis(5);

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
            let mut open: Vec<Connection> = Vec::new();
            loop {
                // With nothing to look at it waits for the next client.
                let waits = open.is_empty() && listener.set_nonblocking(false).is_ok();
                let came = listener.accept();
                if !waits || came.is_err() {
                    thread::sleep(TURN);
                }
                let others =
                    listener.set_nonblocking(true).ok().map(|()| std::iter::from_fn(|| listener.accept().ok()));
                for (stream, _) in came.into_iter().chain(others.into_iter().flatten()) {
                    if open.len() == MOST {
                        open.remove(0);
                    }
                    open.extend(Connection::new(stream));
                }
                open.retain_mut(|c| c.go_on(&served).is_ok_and(|done| !done));
            }
        });
        spawned.or_fail(|| "start a thread".to_string())?;
        Ok(Metrics { text })
    }
    /// What a program tells is served from now on.
    pub fn set(&self, told: &Value) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text(told);
    }
}

/// A client: what it has asked so far, and what it has not yet been sent of the answer.
struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    until: u64,
}

impl Connection {
    fn new(stream: TcpStream) -> Option<Connection> {
        stream.set_nonblocking(true).ok()?;
        Some(Connection { stream, request: Vec::new(), answer: Vec::new(), until: sys::monotonic() + PATIENCE })
    }
    /// Reads and writes what can be at once; whether that was all.
    fn go_on(&mut self, served: &Mutex<String>) -> std::io::Result<bool> {
        if sys::monotonic() > self.until {
            return Ok(true);
        }
        if self.answer.is_empty() {
            let mut block = [0; REQUEST];
            match self.stream.read(&mut block) {
                Ok(0) => return Ok(true),
                Ok(read) => self.request.extend_from_slice(&block[..read]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
                Err(e) => return Err(e),
            }
            let whole = self.request.windows(2).any(|end| end == b"\n\n")
                || self.request.windows(4).any(|end| end == b"\r\n\r\n");
            if !whole {
                return Ok(self.request.len() > REQUEST);
            }
            self.answer = answer(&self.request, &served.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.stream.write(&self.answer) {
            Ok(written) => drop(self.answer.drain(..written)),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
        Ok(self.answer.is_empty())
    }
}

fn answer(request: &[u8], body: &str) -> Vec<u8> {
    let (status, body) = if request.starts_with(b"GET /metrics") { ("200 OK", body) } else { ("404 Not Found", "") };
    let length = body.len();
    let kind = "text/plain; version=0.0.4";
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// Numbers of a report as lines: those of the whole, those of each port with its name, and those of its classes.
pub fn text(told: &Value) -> String {
    let mut text = String::new();
    // What may fall is a gauge, all else a counter.
    let metric = |level: &str, key: &str| {
        let falls = ["late", "queue", "cpu", "time", "loss", "bits", "flows"].iter().any(|word| key.starts_with(word));
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
    of_classes(&ports, &mut text);
    text
}

/// The variables of the classes of ports: all of them may fall.
fn of_classes(ports: &[&Value], text: &mut String) {
    let classes = |port: &Value| port["classes"].as_array().cloned().unwrap_or_default();
    let all: Vec<(&Value, Value)> =
        ports.iter().flat_map(|port| classes(port).into_iter().map(|class| (&port["name"], class))).collect();
    let mut keys: Vec<&String> = Vec::new();
    for (key, _) in all.iter().filter_map(|(_, c)| c.as_object()).flatten().filter(|(_, v)| v.is_number()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for key in keys {
        let name = format!("explicated_class_{key}");
        let _ = writeln!(text, "# TYPE {name} gauge");
        for (port, class) in all.iter().filter(|(_, class)| class[key].is_number()) {
            let _ = writeln!(text, "{name}{{port={port},class={}}} {}", class["name"], class[key]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Asks, and how long the answer took, s.
    fn scrape(address: SocketAddr) -> (String, f64) {
        let (began, mut stream, mut said) = (sys::monotonic(), TcpStream::connect(address).unwrap(), String::new());
        stream.write_all(b"GET /met").unwrap();
        thread::sleep(Duration::from_millis(20));
        stream.write_all(b"rics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        stream.read_to_string(&mut said).unwrap();
        (said, (sys::monotonic() - began) as f64 / 1e9)
    }
    fn serve() -> (Metrics, SocketAddr) {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        (Metrics::serve(address).unwrap(), address)
    }

    #[test]
    fn silent_and_slow_clients_keep_nobody_waiting() {
        let (metrics, address) = serve();
        metrics.set(&json!({ "sent": 5 }));
        let silent: Vec<TcpStream> = (0..3 * MOST).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET /").unwrap();
        let (said, took) = scrape(address);
        assert!(said.starts_with("HTTP/1.1 200 OK") && said.ends_with("explicated_sent_total 5\n"), "{said}");
        assert!(took < 0.5, "{took} s beside {} silent clients", silent.len());
        // Who says nothing is closed in time.
        let mut last = silent.into_iter().next_back().unwrap();
        last.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(last.read(&mut [0; 10]).unwrap(), 0);
    }

    #[test]
    fn who_asks_for_something_else_is_told_so() {
        let (_metrics, address) = serve();
        for request in ["GET / HTTP/1.1\r\n\r\n", "POST /metrics HTTP/1.1\r\n\r\n", "\n\n"] {
            let (mut stream, mut said) = (TcpStream::connect(address).unwrap(), String::new());
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_to_string(&mut said).unwrap();
            assert!(said.starts_with("HTTP/1.1 404"), "{request}: {said}");
        }
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(&[b'x'; 3 * REQUEST]);
        assert!(!matches!(stream.read(&mut [0; 10]), Ok(1..)), "too long: closed");
    }

    #[test]
    fn classes_have_their_own_lines() {
        let classes = json!([{ "name": "explicit", "share": 0.5 }, { "name": "other", "share": 0.5 }]);
        let lines = text(
            &json!({ "ports": [{ "name": "eth0", "drops": 2, "classes": classes }, { "name": "eth1", "classes": [] }] }),
        );
        assert!(
            lines.contains(
                "# TYPE explicated_class_share gauge\nexplicated_class_share{port=\"eth0\",class=\"explicit\"} 0.5\n"
            ),
            "{lines}"
        );
        assert!(lines.contains("explicated_class_share{port=\"eth0\",class=\"other\"} 0.5\n"), "{lines}");
    }

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
