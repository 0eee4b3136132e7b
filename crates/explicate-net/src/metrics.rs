//! Metrics for Prometheus: OpenMetrics text over HTTP, from a thread of its own.
//!
//! No client delays another: each has a task, which ends after `TIMEOUT`. With more than `MOST` the oldest ends.

use std::collections::{BTreeSet, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use std::{fmt, io, thread};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::error::{Context, Result};
use crate::sys;

/// Maximum number of connections at a time.
const MOST: usize = 64;
/// Maximum duration of a connection.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a request, bytes.
const REQUEST: usize = 4096;
/// Time until the next attempt to accept, after one failed.
const PAUSE: Duration = Duration::from_millis(5);

/// A server of metrics.
pub struct Metrics {
    report: Arc<Report>,
}

impl Metrics {
    /// Starts a server at this address. Clients wait for the first report.
    pub fn serve(address: SocketAddr) -> Result<Metrics> {
        Metrics::serve_each(address, TIMEOUT)
    }
    /// The same; each client is served for at most `timeout`.
    fn serve_each(address: SocketAddr, timeout: Duration) -> Result<Metrics> {
        let what = || format!("serve metrics at {address}");
        let listener = TcpListener::bind(address).or_fail(what)?;
        listener.set_nonblocking(true).or_fail(what)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().or_fail(what)?;
        let report = Arc::new(Report::default());
        let mut registry = Registry::with_prefix("explicated");
        registry.register_collector(Box::new(report.clone()));
        let first = report.clone();
        let spawned = thread::Builder::new().name("metrics".to_string()).spawn(move || {
            // Each thread has its own capabilities, and this one starts before the others are dropped.
            if let Err(error) = sys::drop_privileges() {
                tracing::error!(%error, "no metrics: cannot drop privileges");
                return;
            }
            first.0.wait();
            if let Err(error) = runtime.block_on(accept(listener, Arc::new(registry), timeout)) {
                tracing::error!(%error, "no metrics");
            }
        });
        spawned.or_fail(|| "start a thread".to_string())?;
        Ok(Metrics { report })
    }
    /// Replaces the report that is served: numbers in the report itself, in its `ports`, and in their `classes`.
    pub fn set(&self, report: Value) {
        let mut report = Some(report);
        let current = self.report.0.get_or_init(|| Mutex::new(report.take().unwrap_or_default()));
        if let Some(report) = report {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = report;
        }
    }
}

/// Answers clients. Never returns, unless it cannot begin.
async fn accept(listener: TcpListener, registry: Arc<Registry>, timeout: Duration) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        open.retain(|client| !client.is_finished());
        if open.len() == MOST
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        // The time is judged after the client: a request that came while this process was stopped is answered.
        let client = tokio::spawn(tokio::time::timeout(timeout, serve(stream, registry.clone())));
        open.push_back(client.abort_handle());
    }
}

/// Reads the request of a client, and answers it.
async fn serve(mut stream: TcpStream, registry: Arc<Registry>) -> io::Result<()> {
    let mut request = Vec::new();
    let ends = |request: &[u8], end: &[u8]| request.windows(end.len()).any(|window| window == end);
    while !ends(&request, b"\n\n") && !ends(&request, b"\r\n\r\n") {
        if request.len() > REQUEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(&answer(&request, &registry)).await
}

fn answer(request: &[u8], registry: &Registry) -> Vec<u8> {
    let mut body = String::new();
    let found = request.starts_with(b"GET /metrics") && text::encode(&mut body, registry).is_ok();
    let status = if found { "200 OK" } else { "404 Not Found" };
    let length = body.len();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// A report as OpenMetrics text.
#[cfg(test)]
pub(crate) fn text_of(report: Value) -> String {
    let mut registry = Registry::with_prefix("explicated");
    registry.register_collector(Box::new(Report(Mutex::new(report).into())));
    let mut lines = String::new();
    text::encode(&mut lines, &registry).expect("a string takes all");
    lines
}

/// The report of the last call of [`Metrics::set`]; none before the first call.
#[derive(Debug, Default)]
struct Report(OnceLock<Mutex<Value>>);

impl Collector for Report {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let report = self.0.wait().lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in numbers(&report) {
            family(&mut encoder, key, [(Vec::new(), value)])?;
        }
        let ports: Vec<&Value> = report["ports"].as_array().into_iter().flatten().collect();
        let labelled: Vec<Series<'_>> = ports.iter().map(|port| (vec![("port", name(port))], *port)).collect();
        families(&mut encoder, "port", &labelled)?;
        let labelled: Vec<Series<'_>> = ports
            .iter()
            .flat_map(|port| classes(port).map(|class| (vec![("port", name(port)), ("class", name(class))], class)))
            .collect();
        families(&mut encoder, "class", &labelled)
    }
}

/// Labels, and the value or the object that they belong to.
type Series<'a> = (Vec<(&'static str, &'a str)>, &'a Value);

fn name(of: &Value) -> &str {
    of["name"].as_str().unwrap_or_default()
}
fn classes(port: &Value) -> impl Iterator<Item = &Value> {
    port["classes"].as_array().into_iter().flatten()
}
fn numbers(of: &Value) -> impl Iterator<Item = (&str, &Value)> {
    of.as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| value.is_number())
        .map(|(key, value)| (key.as_str(), value))
}

/// Encodes the numbers of ports or classes, those of one name together.
fn families(encoder: &mut DescriptorEncoder<'_>, level: &str, objects: &[Series<'_>]) -> fmt::Result {
    let keys: BTreeSet<&str> = objects.iter().flat_map(|(_, object)| numbers(object)).map(|(key, _)| key).collect();
    for key in keys {
        let with = objects.iter().filter(|(_, object)| object[key].is_number());
        family(encoder, &format!("{level}_{key}"), with.map(|(labels, object)| (labels.clone(), &object[key])))?;
    }
    Ok(())
}

/// Encodes all series of one name.
fn family<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    series: impl IntoIterator<Item = Series<'a>>,
) -> fmt::Result {
    let (is_counter, help) = describe(name);
    let kind = if is_counter { MetricType::Counter } else { MetricType::Gauge };
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    let number = |value: &Value, encoder: MetricEncoder<'_>| match (value.as_u64(), is_counter) {
        (Some(value), true) => ConstCounter::new(value).encode(encoder),
        (Some(value), false) => ConstGauge::new(value).encode(encoder),
        (None, true) => ConstCounter::new(value.as_f64().unwrap_or_default()).encode(encoder),
        (None, false) => ConstGauge::new(value.as_f64().unwrap_or_default()).encode(encoder),
    };
    for (labels, value) in series {
        if labels.is_empty() {
            return number(value, metric);
        }
        number(value, metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Whether a metric is a counter, and its description. Metrics that are not listed are gauges.
fn describe(name: &str) -> (bool, &'static str) {
    let counter = COUNTERS.iter().find(|(known, _)| *known == name).map(|(_, help)| (true, *help));
    let gauge = || GAUGES.iter().find(|(known, _)| *known == name).map(|(_, help)| (false, *help));
    counter.or_else(gauge).unwrap_or((false, "A variable of the class's queue or controller."))
}

const COUNTERS: &[(&str, &str)] = &[
    ("cut", "Frames received incomplete."),
    ("ended", "Flows that have ended."),
    ("errors", "Errors of interfaces."),
    ("expired", "Packets dropped because their TTL expired."),
    ("explicit", "Packets with a congestion header."),
    ("files_failed", "Files not received completely."),
    ("files_whole", "Files received completely, their SHA-256 verified."),
    ("fragments", "Fragments of packets with a congestion header."),
    ("gateway_direct", "Connections that went to their destination without the tunnel."),
    ("gateway_intercepted", "Connections accepted from the site."),
    ("gateway_onward", "Connections opened for clients of peers."),
    ("gateway_received_bytes", "Bytes from peers to TCP, of connections that have ended."),
    ("gateway_refused", "Connections refused: addresses, limits, destinations."),
    ("gateway_resets", "Connections that ended by a reset."),
    ("gateway_sent_bytes", "Bytes from TCP to peers, of connections that have ended."),
    ("ipv6", "Packets with a congestion header in IPv6, forwarded without feedback."),
    ("line_bytes", "IP bytes sent by the gateway's port."),
    ("line_dropped", "Datagrams that found no room at the gateway's port."),
    ("line_parity", "Datagrams of parity sent."),
    ("line_plain_dropped", "Other packets of the site that found no room at the gateway's port."),
    ("line_plain_refused", "Other packets of the site that the kernel refused."),
    ("line_plain_sent", "Other packets of the site sent by the gateway's port."),
    ("line_refused", "Datagrams that the kernel refused."),
    ("line_sent", "Datagrams and packets sent by the gateway's port."),
    ("malformed", "Packets with a malformed header."),
    ("merged", "Packets with a congestion header merged by an offload, forwarded without feedback."),
    ("missed", "Frames dropped because the ring of an interface was full."),
    ("mpls", "Packets with a congestion header behind MPLS labels, forwarded without feedback."),
    ("no_room", "Packets dropped for lack of memory."),
    ("payload_bytes", "Bytes of payload received."),
    ("received", "Frames received."),
    ("refused", "Frames that the kernel refused, or connections that the receiver refused."),
    ("sent", "Frames sent."),
    ("tagged", "Packets with a congestion header behind VLAN tags or in a PPPoE session."),
    ("tunnelled", "Packets with a congestion header in a tunnel, forwarded without feedback."),
    ("turns", "Iterations of the forwarding loop."),
    ("port_arrived", "Packets that arrived at the queue."),
    ("port_beyond_repair", "Blocks with more losses than their parity repairs; the port is a peer of the gateway."),
    ("port_black_holes", "How often the path to this peer of the gateway carried only shorter packets."),
    ("port_bytes", "IP bytes sent."),
    ("port_damaged", "Packets damaged by the emulated channel."),
    ("port_drops", "Packets dropped by the queue."),
    ("port_lost", "Packets lost by the emulated channel."),
    ("port_marks", "Packets marked with ECN."),
    ("port_packets_lost", "QUIC packets lost on the way to this peer of the gateway."),
    ("port_packets_sent", "QUIC packets sent to this peer of the gateway."),
    ("port_received_bytes", "UDP bytes from this peer of the gateway, in the present tunnel."),
    ("port_repaired", "Datagrams from this peer of the gateway that parity repaired."),
    ("port_scone_extensions", "SCONE packets behind IPv6 extension headers, left alone."),
    ("port_scone_fragments", "SCONE packets in fragments, left alone."),
    ("port_scone_kept", "SCONE packets whose advice was as low already."),
    ("port_scone_limited", "SCONE packets left alone because their flow had its number of changes."),
    ("port_scone_lowered", "SCONE packets whose advice was lowered."),
    ("port_scone_partial", "SCONE packets whose checksum was not computed yet, left alone."),
    ("port_sent_bytes", "UDP bytes to this peer of the gateway, in the present tunnel."),
];

const GAUGES: &[(&str, &str)] = &[
    ("bits_per_second", "Rate of the payload received in the last second."),
    ("cpu_us_per_frame", "Microseconds of CPU per frame sent, since the start."),
    ("flows", "Connections to the receiver."),
    ("gateway_connections", "Connections that are open."),
    ("gateway_limit_connections", "The most connections that may be open (limits.connections)."),
    ("gateway_memory_bytes", "Memory in use."),
    ("gateway_waiting_connections", "Connections that have waited for a host for half a second, here or at the peer."),
    ("line_plain_bits_per_second", "Rate of the site's other packets through the gateway's port."),
    ("line_queue_bytes", "Bytes in the gateway's port."),
    ("line_queue_packets", "Packets in the gateway's port."),
    ("line_rate_bps", "Rate of the gateway's port."),
    ("line_source_fails", "Whether the source of the gateway's rate fails."),
    ("time_s", "Seconds since the start."),
    ("port_bits_per_second", "Rate in the last second."),
    ("port_credit_bytes", "What this peer of the gateway may send, or has sent, that hosts here have not taken."),
    ("port_delay_ms", "Configured delay behind the queue."),
    ("port_late_p50_us", "Median lateness of departures since the start."),
    ("port_late_p99_us", "99th percentile of the lateness of departures since the start."),
    ("port_limited", "Whether TCP's window limits this peer of the gateway: signs of a narrower line."),
    ("port_loss", "Share of packets lost by the emulated channel since the start."),
    ("port_min_rtt_ms", "Least round-trip time to this peer of the gateway."),
    ("port_path_mtu", "Longest QUIC packet on the path to this peer of the gateway."),
    ("port_queue_bytes", "Bytes in the queue."),
    ("port_queue_packets", "Packets in the queue."),
    ("port_rate_bps", "Configured rate."),
    ("port_rtt_ms", "Round-trip time to this peer of the gateway."),
    ("port_scone_advice_bps", "Rate that the port advises by SCONE."),
    ("port_scone_signal", "The same as a signal of SCONE: 127 is no advice."),
    ("port_up", "Whether this peer of the gateway is connected."),
    ("port_window_bytes", "Congestion window to this peer of the gateway."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::{PATIENCE, uninterrupted};
    use serde_json::json;
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;

    /// The response to a request.
    fn scrape(address: SocketAddr) -> String {
        let (mut stream, mut said) = (TcpStream::connect(address).unwrap(), String::new());
        stream.write_all(b"GET /met").unwrap();
        thread::sleep(Duration::from_millis(20));
        stream.write_all(b"rics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        stream.read_to_string(&mut said).unwrap();
        said
    }
    /// A server that waits for as long as the tests do.
    fn serve() -> (Metrics, SocketAddr) {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        (Metrics::serve_each(address, PATIENCE).unwrap(), address)
    }

    #[test]
    fn silent_and_slow_clients_keep_nobody_waiting() {
        let (metrics, address) = serve();
        metrics.set(json!({ "sent": 5 }));
        let silent: Vec<TcpStream> = (0..3 * MOST).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET /").unwrap();
        let said = scrape(address);
        assert!(said.starts_with("HTTP/1.1 200 OK") && said.ends_with("explicated_sent_total 5\n# EOF\n"), "{said}");
        // The last ones are still served: the answer did not wait until they were given up.
        let mut last = silent.into_iter().next_back().unwrap();
        last.set_nonblocking(true).unwrap();
        assert_eq!(last.read(&mut [0; 10]).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock));
    }

    mod timed {
        use super::*;
        use crate::figures::{Better, figure};

        #[test]
        #[ignore = "depends on the machine's speed: make measure"]
        fn an_answer_beside_silent_clients_comes_at_once() {
            let (metrics, address) = serve();
            metrics.set(json!({ "sent": 5 }));
            let _silent: Vec<TcpStream> = (0..3 * MOST).map(|_| TcpStream::connect(address).unwrap()).collect();
            let began = sys::monotonic();
            scrape(address);
            let took = (sys::monotonic() - began) as f64 / 1e9;
            figure("metrics: answer beside 192 silent clients", took, "s", Better::Less);
            assert!(took < 0.5, "{took} s");
        }
    }

    #[test]
    fn silent_clients_are_given_up() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let metrics = Metrics::serve_each(address, Duration::from_millis(1)).unwrap();
        metrics.set(json!({}));
        let mut silent = TcpStream::connect(address).unwrap();
        silent.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(uninterrupted(|| silent.read(&mut [0; 10])).unwrap(), 0);
    }

    #[test]
    fn early_clients_get_the_first_report() {
        let (metrics, address) = serve();
        let early = thread::spawn(move || scrape(address));
        thread::sleep(Duration::from_millis(20));
        metrics.set(json!({ "sent": 0 }));
        let said = early.join().unwrap();
        assert!(said.ends_with("explicated_sent_total 0\n# EOF\n"), "{said}");
    }

    #[test]
    fn who_asks_for_something_else_is_told_so() {
        let (metrics, address) = serve();
        metrics.set(json!({}));
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
    fn a_report_has_a_line_per_number() {
        let classes = json!([{ "name": "explicit", "share": 0.5 }, { "name": "other", "share": 0.25 }]);
        let lines = text_of(json!({
            "sent": 5, "flows": 0, "event": "report", "cpu_us_per_frame": 2.5,
            "ports": [{ "name": "eth0", "drops": 2, "queue_bytes": 7, "classes": classes },
                      { "name": "eth1", "drops": 0, "queue_bytes": 8, "classes": [] }],
        }));
        let expected = [
            "# HELP explicated_cpu_us_per_frame Microseconds of CPU per frame sent, since the start.",
            "# TYPE explicated_cpu_us_per_frame gauge",
            "explicated_cpu_us_per_frame 2.5",
            "# HELP explicated_flows Connections to the receiver.",
            "# TYPE explicated_flows gauge",
            "explicated_flows 0",
            "# HELP explicated_sent Frames sent.",
            "# TYPE explicated_sent counter",
            "explicated_sent_total 5",
            "# HELP explicated_port_drops Packets dropped by the queue.",
            "# TYPE explicated_port_drops counter",
            "explicated_port_drops_total{port=\"eth0\"} 2",
            "explicated_port_drops_total{port=\"eth1\"} 0",
            "# HELP explicated_port_queue_bytes Bytes in the queue.",
            "# TYPE explicated_port_queue_bytes gauge",
            "explicated_port_queue_bytes{port=\"eth0\"} 7",
            "explicated_port_queue_bytes{port=\"eth1\"} 8",
            "# HELP explicated_class_share A variable of the class's queue or controller.",
            "# TYPE explicated_class_share gauge",
            "explicated_class_share{port=\"eth0\",class=\"explicit\"} 0.5",
            "explicated_class_share{port=\"eth0\",class=\"other\"} 0.25",
            "# EOF",
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_of_interfaces_are_escaped() {
        let lines = text_of(json!({ "ports": [{ "name": "a\"b", "drops": 1 }] }));
        assert!(lines.contains("explicated_port_drops_total{port=\"a\\\"b\"} 1\n"), "{lines}");
    }
}
