//! Explicit flows beside the kernel's TCP at a router, each with its part of the line. Needs root, so `make linux` runs it.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use common::{Net, last_json, measured};
use explicate_net::sys::{enter_namespace, monotonic, offloads_off, tcp_connect};

/// Does something in a namespace, beside the test.
fn inside<T: Send + 'static>(net: &Net, name: &str, what: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let place = File::open(format!("/run/netns/{}", net.name(name))).unwrap();
    std::thread::spawn(move || {
        enter_namespace(place.as_fd()).unwrap();
        what()
    })
}

/// Hosts `a` (10.9.0.1) and `b` (10.9.0.2), a router `r` and a link `l` between them; no offloads.
fn path() -> Net {
    let net = Net::new(&["a", "r", "l", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("r", "site", ""));
    net.cable(("r", "wan", ""), ("l", "near", ""));
    net.cable(("l", "far", ""), ("b", "eth0", "10.9.0.2/24"));
    for (host, device) in [("a", "eth0"), ("r", "site"), ("r", "wan"), ("l", "near"), ("l", "far"), ("b", "eth0")] {
        inside(&net, host, move || offloads_off(device).unwrap()).join().unwrap();
    }
    net
}

/// How long flows run, and from when on they are measured, s.
const SPAN: (f64, f64) = (14.0, 6.0);
/// Mbit/s of the line.
const RATE: f64 = 20.0;

/// The kernel's TCP from `a` to `b`: what each flow delivered in the measured span, Mbit/s.
fn tcp(net: &Net, flows: usize) -> JoinHandle<Vec<f64>> {
    let receiver = inside(net, "b", move || {
        let listener = TcpListener::bind("10.9.0.2:5000").unwrap();
        let count = move |mut stream: TcpStream| {
            let (began, mut bytes, mut block) = (monotonic(), 0, vec![0; 1 << 16]);
            while let Ok(read) = stream.read(&mut block)
                && read > 0
            {
                let at = (monotonic() - began) as f64 / 1e9;
                bytes += if (SPAN.1..SPAN.0).contains(&at) { read } else { 0 };
            }
            8e-6 * bytes as f64 / (SPAN.0 - SPAN.1)
        };
        let counts: Vec<_> =
            (0..flows).map(|_| listener.accept().unwrap().0).map(|s| std::thread::spawn(move || count(s))).collect();
        counts.into_iter().map(|c| c.join().unwrap()).collect()
    });
    sleep(Duration::from_millis(100));
    for _ in 0..flows {
        drop(inside(net, "a", || {
            let (began, mut stream) =
                (monotonic(), tcp_connect("10.9.0.2:5000".parse().unwrap(), "cubic", 1448).unwrap());
            while (monotonic() - began) as f64 / 1e9 < SPAN.0 && stream.write_all(&[7; 1 << 14]).is_ok() {}
        }));
    }
    receiver
}

/// What an explicit flow had in the measured span, Mbit/s, and what each of `flows` of TCP; what the router said at the end.
fn beside(protocol: Option<(&str, &str)>, flows: usize, more: &str) -> (f64, Vec<f64>, serde_json::Value) {
    let net = path();
    let wan = format!("wan: rate = \"{RATE}Mbit/s\", queue = {{ kind = \"droptail\", limit = \"100kB\" }}{more}");
    let controller = protocol.map_or("xcp", |(_, controller)| controller);
    let router = net.start("r", &["router", "-c", controller, "--port", "site", "--port", &wan, "--json"]);
    let _link = net.start("l", &["link", "near", "far", "--there", "delay = \"20ms\""]);
    let _recv = net.start("b", &["recv", "--open"]);
    let others = tcp(&net, flows);
    let time = SPAN.0.to_string();
    let own = protocol.map(|(protocol, _)| {
        let arguments = ["send", "10.9.0.2", "-p", protocol, "--time", &time, "--json"];
        let output = net.program("a", &arguments);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        let seconds = told["intervals"].as_array().unwrap();
        let rates = seconds.iter().filter(|i| i["sum"]["start"].as_f64().unwrap() >= SPAN.1);
        let rates: Vec<f64> = rates.map(|i| 1e-6 * i["sum"]["bits_per_second"].as_f64().unwrap()).collect();
        rates.iter().sum::<f64>() / rates.len() as f64
    });
    let others = others.join().unwrap();
    (own.unwrap_or(0.0), others, last_json(&router.stop("INT")))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A flow of TCP keeps what one more flow of TCP would leave it, and the explicit flow has its part.
fn keeps(protocol: &str, controller: &str) {
    for flows in [1, 9] {
        measured(|| {
            let alike = mean(&beside(None, flows + 1, "").1);
            let (own, others, told) = beside(Some((protocol, controller)), flows, "");
            let others = mean(&others);
            let classes = &told["ports"][1]["classes"];
            println!(
                "{protocol} beside {flows}: {own:.2} and {others:.2} Mbit/s each; {alike:.2} beside one more; share {}",
                classes[0]["share"]
            );
            assert!(others > 0.8 * alike, "{flows} flows of TCP have {others} each, {alike} beside one more");
            assert!(own > 0.7 * alike, "{own} of {alike}");
        });
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn xcp_and_tcp_have_equal_parts() {
    keeps("xcp", "xcp");
}

#[test]
#[ignore = "needs root: make linux"]
fn lr_lmxcp_and_tcp_have_equal_parts() {
    keeps("LR-LMXCP", "xcp");
}

#[test]
#[ignore = "needs root: make linux"]
fn vcp_and_tcp_have_equal_parts() {
    keeps("vcp", "vcp");
}

#[test]
#[ignore = "needs root: make linux"]
fn xtcp_and_tcp_have_equal_parts() {
    keeps("xtcp", "xtcp");
}

/// One queue for all, as before there were classes: TCP has several times as much.
#[test]
#[ignore = "needs root: make linux"]
fn in_one_queue_tcp_pushes_xcp_aside() {
    measured(|| {
        let (own, others, told) = beside(Some(("xcp", "xcp")), 1, ", share_by_flows = false");
        println!("one queue: XCP {own:.2}, TCP {:.2} Mbit/s", others[0]);
        assert!(own < others[0] / 3.0, "{own} {others:?}");
        assert_eq!(told["ports"][1]["classes"].as_array().map(Vec::len), Some(0));
    });
}
