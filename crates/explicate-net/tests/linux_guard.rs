//! What the kernel's CUBIC keeps beside explicit flows that no router answers, or not where the path is congested. Needs root, so
//! `make linux` runs it.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use common::{Net, Running, last_json};
use explicate_core::presets::PRESETS;
use explicate_core::registry::{PROTOCOLS, controller, resolve};
use explicate_net::awake::Awake;
use explicate_net::sys::{enter_namespace, monotonic, offloads_off, tcp_connect};

/// How long flows run, and from when on they are measured, s.
const SPAN: (f64, f64) = (14.0, 4.0);
/// When a router dies, s.
const DIES: f64 = 4.0;
/// The narrow link: slow enough that many such paths run at a time.
const NARROW: &str = "rate = \"5Mbit/s\", delay = \"20ms\", queue = { kind = \"droptail\", limit = \"40kB\" }";
const WIDE: &str = "rate = \"20Mbit/s\", queue = { kind = \"droptail\", limit = \"100kB\" }";

/// Does something in a namespace, beside the test.
fn inside<T: Send + 'static>(net: &Net, name: &str, what: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let place = File::open(format!("/run/netns/{}", net.name(name))).unwrap();
    std::thread::spawn(move || {
        enter_namespace(place.as_fd()).unwrap();
        what()
    })
}

/// What stands between the hosts.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Middle {
    /// No router.
    Plain,
    /// A router before a wide port, and the narrow link behind it.
    Half,
    /// The same, and frames have VLAN tags at the router.
    Tagged,
    /// A router before the narrow link, that is killed; a plain link takes its place.
    Dies,
}

/// Hosts `a` (10.9.0.1) and `b` (10.9.0.2) with `t`, `r` and `l` in a row between them; no offloads.
fn path() -> Net {
    // Many at a time would wait for each other in the kernel anyway.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let net = Net::new(&["a", "t", "r", "l", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("t", "in", ""));
    net.cable(("t", "out", ""), ("r", "site", ""));
    net.cable(("r", "wan", ""), ("l", "near", ""));
    net.cable(("l", "far", ""), ("b", "eth0", "10.9.0.2/24"));
    for (host, devices) in [
        ("a", ["eth0"].as_slice()),
        ("t", &["in", "out"]),
        ("r", &["site", "wan"]),
        ("l", &["near", "far"]),
        ("b", &["eth0"]),
    ] {
        let devices = devices.to_vec();
        inside(&net, host, move || devices.iter().for_each(|device| offloads_off(device).unwrap())).join().unwrap();
    }
    net
}

/// What stands in the middle, for flows that want routers of `of`.
fn middle(net: &Net, which: Middle, of: &str) -> Vec<Running> {
    let wan = |port: &str| format!("wan: {port}");
    let router = |port: &str| net.start("r", &["router", "-c", of, "--port", "site", "--port", &wan(port)]);
    let tag = |ends: [&str; 2], host: &str, more: &[&str]| {
        let mut words = vec!["link", ends[0], ends[1], "--tag", "7"];
        words.extend(more);
        net.start(host, &words)
    };
    let pass = |host: &str, ends: [&str; 2]| net.start(host, &["link", ends[0], ends[1]]);
    let narrow = || net.start("l", &["link", "near", "far", "--there", NARROW]);
    match which {
        Middle::Plain => vec![pass("t", ["in", "out"]), pass("r", ["site", "wan"]), narrow()],
        Middle::Half => vec![pass("t", ["in", "out"]), router(WIDE), narrow()],
        // From `far` to `near` tags are put on, the other way they are taken off.
        Middle::Tagged => {
            vec![tag(["in", "out"], "t", &[]), router(WIDE), tag(["far", "near"], "l", &["--there", NARROW])]
        }
        Middle::Dies => {
            let delay = ["link", "near", "far", "--there", "delay = \"1ms\""];
            vec![pass("t", ["in", "out"]), net.start("l", &delay), router(NARROW)]
        }
    }
}

/// The kernel's TCP from `a` to `b`: what each flow delivered in the measured span, Mbit/s.
fn tcp(net: &Net, flows: usize) -> JoinHandle<f64> {
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
        counts.into_iter().map(|c| c.join().unwrap()).sum::<f64>() / flows as f64
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

/// What each of `flows` of TCP had beside one of `protocol`, or beside nothing more, Mbit/s; and the laws that its sender told.
fn beside(which: Middle, flows: usize, protocol: Option<&str>) -> (f64, Vec<String>) {
    let net = path();
    let of = protocol.and_then(|name| controller(resolve(name).unwrap().protocol)).map_or("xcp", |p| p.name());
    let mut programs = middle(&net, which, of);
    let _recv = net.start("b", &["recv", "--open"]);
    let began = monotonic();
    let others = tcp(&net, flows);
    let mut own =
        protocol.map(|name| net.start("a", &["send", "10.9.0.2", "-p", name, "--time", &SPAN.0.to_string(), "--json"]));
    if which == Middle::Dies {
        sleep(Duration::from_secs_f64(DIES - (monotonic() - began) as f64 / 1e9));
        programs.pop().unwrap().stop("KILL");
        programs.push(net.start("r", &["link", "site", "wan", "--there", NARROW]));
    }
    let got = others.join().unwrap();
    let laws = own.as_mut().map_or_else(Vec::new, |own| {
        let (said, _) = own.wait(30);
        let told = last_json(&said);
        let laws = told["laws"].as_array().unwrap_or_else(|| panic!("{said}"));
        laws.iter().map(|law| law["law"].as_str().unwrap().to_string()).collect()
    });
    (got, laws)
}

/// Every registered name of an explicit protocol.
fn explicit() -> Vec<&'static str> {
    let names = PRESETS.iter().map(|p| p.name).chain(PROTOCOLS.iter().map(|p| p.name()));
    let mut names: Vec<&str> = names.filter(|name| resolve(name).is_ok_and(|r| r.protocol.explicit())).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Most runs by whose mean a protocol is judged.
const MOST_RUNS: usize = 5;

/// A protocol of each kind of router, and those that losses leave alone.
const SOME: [&str; 6] = ["xcp", "LR-LMXCP", "p_xcp", "xcp_window", "vcp-wlte", "LR-LMXTCP"];

/// CUBIC keeps 0.8 of what it has beside one more CUBIC, and the sender has said what is so. Single runs of some seconds stray by
/// a fifth, so those that look poor are repeated, and judged by the mean of all their runs.
fn keeps_its_share(which: Middle, flows: usize, protocols: &[&'static str], law: &str) {
    let _awake = Awake::keep();
    let alike: Vec<_> = (0..3).map(|_| std::thread::spawn(move || beside(which, flows + 1, None).0)).collect();
    let due = mean(&alike.into_iter().map(|run| run.join().unwrap()).collect::<Vec<f64>>());
    let mut poor: Vec<(&str, Vec<f64>)> = protocols.iter().map(|&name| (name, Vec::new())).collect();
    for _ in 0..MOST_RUNS {
        let runs: Vec<_> =
            poor.iter().map(|&(name, _)| std::thread::spawn(move || beside(which, flows, Some(name)))).collect();
        let results: Vec<_> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        let judged = poor.into_iter().zip(results).filter_map(|((name, mut shares), (got, laws))| {
            shares.push(got / due);
            println!("{which:?}, {flows} beside {name}: {shares:.2?} of {due:.2} Mbit/s, {laws:?}");
            let keeps = mean(&shares) >= 0.8 && laws.last().map(String::as_str) == Some(law);
            (!keeps).then_some((name, shares))
        });
        poor = judged.collect();
        if poor.is_empty() {
            return;
        }
    }
    panic!("{which:?}, {flows}: {poor:.2?}");
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
#[ignore = "needs root: make linux"]
fn no_router_answers() {
    keeps_its_share(Middle::Plain, 1, &explicit(), "tcp");
}

#[test]
#[ignore = "needs root: make linux"]
fn nine_flows_beside_one_that_no_router_answers() {
    keeps_its_share(Middle::Plain, 9, &SOME, "tcp");
}

#[test]
#[ignore = "needs root: make linux"]
fn a_router_answers_before_the_narrow_link() {
    keeps_its_share(Middle::Half, 1, &SOME, "limited");
}

#[test]
#[ignore = "needs root: make linux"]
fn a_router_answers_tagged_frames_before_the_narrow_link() {
    keeps_its_share(Middle::Tagged, 1, &SOME[..2], "limited");
}

#[test]
#[ignore = "needs root: make linux"]
fn the_router_dies() {
    keeps_its_share(Middle::Dies, 1, &SOME, "tcp");
}
