//! Gateways in real time: a full port beside other packets, a long path with losses. Needs root, and an otherwise idle machine.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

use super::measured::measured;
use crate::common::gateways::{Sites, bridge, connect, content, read_all, reset, serve, status};
use crate::common::{eventually, last_json, run};
use crate::figures::{Better, figure};
use explicate_net::gateway::status::ask;
use explicate_net::sys::monotonic;

/// Seconds that a transfer of so many bytes from `s` takes, from the request on.
fn fetch(sites: &Sites, address: &'static str, bytes: usize) -> f64 {
    let server = serve(&sites.net, address, move |mut stream, _| {
        let all = content(bytes, 7);
        stream.write_all(&all).map(|()| all)
    });
    let began = monotonic();
    let received = read_all(&connect(&sites.net, address)).unwrap();
    let seconds = (monotonic() - began) as f64 / 1e9;
    assert!(received == server.join().unwrap().unwrap(), "other bytes");
    seconds
}

/// ICMP and UDP leave by the gateway's port beside a transfer that fills it, and do not wait for it.
#[test]
#[ignore = "needs root: make measure"]
fn other_packets_share_the_port() {
    measured(|| {
        let sites = Sites::new();
        bridge(&sites.net);
        let _gateways = sites.gateways("", "[wan]\nrate = \"10Mbit/s\"\ninterface = \"wan0\"");
        let sites = std::sync::Arc::new(sites);
        let fetching = sites.clone();
        let fetching = spawn(move || fetch(&fetching, "10.2.0.2:7001", 4_000_000));
        let net = &sites.net;
        let ping = net.exec("c", "ping -q -c 20 -i 0.1 10.2.0.2");
        let ping6 = net.exec("c", "ping -6 -q -c 5 -i 0.1 fd00:2::2");
        let seconds = fetching.join().unwrap();
        let rate = 8.0 * 4e6 / seconds;
        figure("gateway: a transfer beside pings, of 10 Mbit/s", rate / 1e6, "Mbit/s", Better::More);
        assert!((7.5e6..10e6).contains(&rate), "{rate} bit/s of 10 Mbit/s");
        assert!(ping.contains(" 0% packet loss") && ping6.contains(" 0% packet loss"), "{ping}{ping6}");
        let mean: f64 = ping.split('/').nth(4).unwrap().parse().unwrap();
        figure("gateway: round trip beside a transfer", mean, "ms", Better::Less);
        assert!(mean < 20.0, "{ping}");
        for name in ["ga", "gb"] {
            let plain = &status(&sites, name)["port"]["plain"];
            assert!(plain["sent"].as_u64() >= Some(25) && plain["refused"] == 0, "{plain}");
        }
    });
}

/// The first transfer over an idle tunnel starts at the line's rate, and losses of the air do not slow it down: 10 MiB take 5.4 s at
/// best, and 2.5 times that with the kernel's BBR.
#[test]
#[ignore = "needs root: make measure"]
fn a_long_path_with_losses_is_filled_at_once() {
    measured(|| {
        let sites = Sites::new();
        let air = "delay = \"300ms\", channel = [{ kind = \"random_loss\", rate = \"1%\" }]";
        let there = format!("rate = \"2Mbit/s\", queue = {{ kind = \"droptail\", limit = \"300kB\" }}, {air}");
        let back = format!("rate = \"20Mbit/s\", queue = {{ kind = \"droptail\", limit = \"1500kB\" }}, {air}");
        let _link = sites.net.start("l", &["link", "left", "right", "--there", &there, "--back", &back, "--seed", "1"]);
        let far = sites.configure("gb", "", "[wan]\nrate = \"20Mbit/s\"");
        let near = sites.configure("ga", "", "[wan]\nrate = \"2Mbit/s\"");
        let _gateways = [("gb", far), ("ga", near)].map(|(name, config)| sites.gateway(name, &config));
        sites.connected();
        sleep(Duration::from_secs(2));
        let seconds = fetch(&sites, "10.2.0.2:7001", 10 << 20);
        let sent = &status(&sites, "gb")["peers"][0];
        figure("gateway: 10 MiB over a long path with losses", seconds, "s", Better::Less);
        assert!(seconds < 6.5, "{seconds} s; {sent}");
        let peer = &status(&sites, "ga")["peers"][0];
        assert!(peer["repaired"].as_u64() > Some(20), "{peer}");
        for peer in [peer, sent] {
            assert_eq!(peer["beyond_credit"], 0, "{peer}");
            assert!(peer["credit_bytes"].as_u64() <= peer["peer_bytes"].as_u64(), "{peer}");
        }
    });
}

/// An upload that its client resets: what arrives after that is what the line carries in a round trip and 0.2 s, at most, and both
/// gateways have freed its place by then.
#[test]
#[ignore = "needs root: make measure"]
fn a_reset_upload_stops_within_a_round_trip() {
    measured(|| {
        let sites = Sites::new();
        let line = |rate: u32| format!("rate = \"{rate}Mbit/s\", delay = \"100ms\"");
        let _link = sites.net.start("l", &["link", "left", "right", "--there", &line(5), "--back", &line(20)]);
        let near = sites.configure("ga", "", "[wan]\nrate = \"4.8Mbit/s\"");
        let far = sites.configure("gb", "", "[wan]\nrate = \"19Mbit/s\"");
        let _gateways = [("gb", far), ("ga", near)].map(|(name, config)| sites.gateway(name, &config));
        sites.connected();
        let arrived = Arc::new(AtomicU64::new(0));
        let counted = arrived.clone();
        let server = serve(&sites.net, "10.2.0.2:7001", move |mut stream, _| {
            let mut block = vec![0; 64 << 10];
            while let Ok(length @ 1..) = stream.read(&mut block) {
                counted.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        let mut stream = connect(&sites.net, "10.2.0.2:7001");
        stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let began = monotonic();
        while monotonic() - began < 5_000_000_000 {
            let _ = stream.write(&[7; 64 << 10]);
        }
        let (before, began) = (arrived.load(Ordering::Relaxed), monotonic());
        reset(stream);
        let states = ["ga", "gb"].map(|name| sites.net.folder.join(name).join("run/gateway.sock"));
        while states.iter().any(|path| ask(path).unwrap()["connections"] != 0) {
            sleep(Duration::from_millis(2));
        }
        let seconds = (monotonic() - began) as f64 / 1e9;
        server.join().unwrap();
        let after = arrived.load(Ordering::Relaxed) - before;
        figure("gateway: bytes behind a reset", after as f64, "bytes", Better::Less);
        figure("gateway: places free after a reset", seconds, "s", Better::Less);
        assert!(before > 1_000_000 && after < 240_000, "{before} bytes, and {after} after the reset");
        assert!(seconds < 0.4, "{seconds} s");
    });
}

/// A narrower line behind the gateway's own, with `explicated router` before it: the router answers the datagrams, and its queue
/// stays short.
#[test]
#[ignore = "needs root: make measure"]
fn a_router_on_the_way_answers() {
    measured(|| {
        let sites = Sites::new();
        let port = "left: rate = \"10Mbit/s\", queue = { kind = \"droptail\", limit = \"200kB\" }";
        let router = sites.net.start("l", &["router", "--port", port, "--port", "right", "--json"]);
        let _gateways = sites.gateways("", "[wan]\nrate = \"20Mbit/s\"");
        let seconds = fetch(&sites, "10.2.0.2:7001", 6_000_000);
        let rate = 8.0 * 6e6 / seconds;
        figure("gateway: behind a router, of 10 Mbit/s", rate / 1e6, "Mbit/s", Better::More);
        assert!((6e6..10e6).contains(&rate), "{rate} bit/s of 10 Mbit/s");
        let told = last_json(&router.stop("INT"));
        let (explicit, drops) = (told["explicit"].as_u64().unwrap(), told["ports"][0]["drops"].as_u64().unwrap());
        assert!(explicit > 4000 && drops < explicit / 50 && told["malformed"] == 0, "{told}");
    });
}

/// Protocols without a congestion header: the own port's answers, by ECN field or flag, come back over a path of 40 ms, the line is
/// filled, and the window stays near what it bears, 53 kB. `explicated router` answers such datagrams, too.
#[test]
#[ignore = "needs root: make measure"]
fn two_bits_or_a_flag_fill_the_line() {
    let path = "rate = \"50Mbit/s\", delay = \"20ms\", queue = { kind = \"droptail\", limit = \"300kB\" }";
    for protocol in ["vcp", "xtcp"] {
        let wan = format!("[wan]\nrate = \"10Mbit/s\"\nprotocol = \"{protocol}\"");
        measured(|| {
            let sites = Sites::new();
            let _link = sites.net.start("l", &["link", "left", "right", "--there", path, "--back", path]);
            let _gateways = sites.gateways("", &wan);
            let rate = 8.0 * 6e6 / fetch(&sites, "10.2.0.2:7001", 6_000_000);
            figure(&format!("gateway: {protocol}, of 10 Mbit/s"), rate / 1e6, "Mbit/s", Better::More);
            let peer = &status(&sites, "gb")["peers"][0];
            assert!((7e6..10e6).contains(&rate), "{protocol}: {rate} bit/s of 10 Mbit/s; {peer}");
            assert!(peer["window_bytes"].as_f64() < Some(200e3), "{protocol}: {peer}");
        });
        let sites = Sites::new();
        let port = format!("left: rate = \"20Mbit/s\", router = {{ kind = \"{protocol}\" }}");
        let router = sites.net.start("l", &["router", "--port", &port, "--port", "right", "--json"]);
        let _gateways = sites.gateways("", &wan);
        fetch(&sites, "10.2.0.2:7001", 2_000_000);
        let report = last_json(&router.stop("INT"));
        assert!(report["explicit"].as_u64() > Some(1300) && report["malformed"] == 0, "{protocol}: {report}");
    }
}

/// Milliseconds from each change of the line's rate until the rate of the port is within a fifth of the new one; the line has
/// `rates` in turn (Mbit/s), for `STEP` each. Samples are milliseconds since the start of the line, and the port's rate.
fn followed(samples: &[(f64, f64)], rates: [f64; 2]) -> Vec<f64> {
    let last = (samples.last().unwrap().0 / STEP) as usize;
    let follows = |step: usize| {
        let (began, rate) = (step as f64 * STEP, 1e6 * rates[step % 2]);
        let mut within = samples.iter().filter(|(at, _)| (began..began + STEP).contains(at));
        within.find(|(_, port)| (0.8..1.2).contains(&(port / rate))).map_or(STEP, |(at, _)| at - began)
    };
    (2..last).map(follows).collect()
}

/// How long the line keeps a rate, ms.
const STEP: f64 = 2500.0;

/// Without any other source the port finds the rate of the line, and follows it: 20 and 10 Mbit/s in turn, 20 ms of round trip.
#[test]
#[ignore = "needs root: make measure"]
fn a_measured_rate_follows_the_line() {
    measured(|| {
        let sites = Sites::new();
        let rates = [20.0, 10.0];
        // One packet of 1500 bytes passes at each time, in ms (mahimahi's format).
        let passes = rates.iter().enumerate().flat_map(|(step, rate)| {
            let count = (STEP * rate * 1e3 / 12e3) as usize;
            (1..=count).map(move |i| format!("{:.0}\n", STEP * (step as f64 + i as f64 / count as f64)))
        });
        let trace = sites.net.folder.join("trace");
        std::fs::write(&trace, passes.collect::<String>()).unwrap();
        let queue = "queue = { kind = \"droptail\", limit = \"500kB\" }, delay = \"10ms\"";
        let back =
            format!("rate = \"1Gbit/s\", {queue}, channel = [{{ kind = \"trace\", file = \"{}\" }}]", trace.display());
        let there = format!("rate = \"100Mbit/s\", {queue}");
        let _link = sites.net.start("l", &["link", "left", "right", "--there", &there, "--back", &back]);
        let began = monotonic();
        let far = "[wan]\nrate = \"15Mbit/s\"\ncapacity = { measured = true, floor = \"1Mbit/s\" }";
        let configs = [("gb", far), ("ga", "[wan]\nrate = \"50Mbit/s\"")];
        let _gateways = configs.map(|(name, tables)| sites.gateway(name, &sites.configure(name, "", tables)));
        sites.connected();
        let sites = std::sync::Arc::new(sites);
        let fetching = sites.clone();
        let bytes = 30_000_000;
        let fetching = spawn(move || fetch(&fetching, "10.2.0.2:7001", bytes));
        let (socket, mut samples) = (sites.net.folder.join("gb/run/gateway.sock"), Vec::new());
        while !fetching.is_finished() {
            let rate = ask(&socket).unwrap()["port"]["rate_bps"].as_f64().unwrap();
            samples.push(((monotonic() - began) as f64 / 1e6, rate));
            sleep(Duration::from_millis(5));
        }
        let used = 8.0 * bytes as f64 / fetching.join().unwrap() / 15e6;
        let mut took = followed(&samples, rates);
        println!("followed within {took:.0?} ms; {:.0} % of the line used", 100.0 * used);
        took.sort_by(f64::total_cmp);
        figure("gateway: measured rate follows the line, median", took[took.len() / 2], "ms", Better::Less);
        figure("gateway: use of a line that changes", used, "", Better::More);
        // All but one of some seven, and the median well below.
        assert!(took.len() >= 4 && took[took.len() / 2] <= 80.0 && took[took.len() - 2] <= 100.0, "{took:.0?}");
        assert!(used > 0.8, "{used} of the line");
    });
}

/// A path that is down for 20 s: the transfer continues at most some 3 s after the path is back, and completes.
#[test]
#[ignore = "needs root: make measure"]
fn a_transfer_outlasts_an_outage() {
    let sites = std::sync::Arc::new(Sites::new());
    bridge(&sites.net);
    let _gateways = sites.gateways("", "[wan]\nrate = \"10Mbit/s\"");
    let fetching = sites.clone();
    let fetching = spawn(move || fetch(&fetching, "10.2.0.2:7001", 4_000_000));
    sleep(Duration::from_secs(1));
    sites.net.exec("l", "ip link set left down");
    sleep(Duration::from_secs(20));
    sites.net.exec("l", "ip link set left up");
    let seconds = fetching.join().unwrap();
    figure("gateway: 4 MB over an outage of 20 s", seconds, "s", Better::Less);
    assert!((21.0..28.0).contains(&seconds), "{seconds} s; 3.4 s without the outage");
    assert_eq!(status(&sites, "gb")["resets"], 0);
}

/// A machine is lost with its namespace, in silence: hosts of the other site are reset within the minute that the documentation says.
#[test]
#[ignore = "needs root: make measure"]
fn the_loss_of_a_machine_is_noticed_after_a_minute() {
    let sites = Sites::new();
    bridge(&sites.net);
    let [far, near] = sites.gateways("", "");
    let server = serve(&sites.net, "10.2.0.2:7001", |stream, _| stream);
    let stream = connect(&sites.net, "10.2.0.2:7001");
    let _server = server.join().unwrap();
    eventually("it is carried", || status(&sites, "gb")["connections"] == 1);
    sites.net.exec("l", "ip link set right down");
    far.stop("KILL");
    run(&format!("ip netns delete {}", sites.net.name("gb")));
    let began = monotonic();
    stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    assert_eq!(read_all(&stream), Err(ErrorKind::ConnectionReset));
    let seconds = (monotonic() - began) as f64 / 1e9;
    figure("gateway: reset after the loss of a machine", seconds, "s", Better::Less);
    // A minute from the first datagram on that is not answered; an idle tunnel sends one every 5 s.
    assert!((59.0..67.0).contains(&seconds), "{seconds} s");
    assert_eq!(status(&sites, "ga")["connections"], 0);
    drop(near);
}

/// Bytes that arrive at the sink while an echo is on its way are those of the line, 250 kB a second, not of the transfers' backlog.
#[test]
#[ignore = "needs root: make measure"]
fn a_keystroke_does_not_wait_for_the_backlog_of_uploads() {
    measured(|| {
        let (meanwhile, why) = crate::gateway_ends::keys_beside_uploads();
        figure("gateway: bytes before a keystroke came back", meanwhile as f64, "bytes", Better::Less);
        assert!(meanwhile < 500_000, "{meanwhile} bytes before a keystroke came back");
        assert!(why.contains("line: full") && !why.contains("window"), "no host is slow: {why}");
    });
}

#[test]
#[ignore = "needs root: make measure"]
fn a_kill_of_the_far_gateway_is_noticed_within_seconds() {
    measured(|| {
        let took = crate::gateway_faults::far_gateway_killed();
        let longest = took.iter().copied().fold(0.0, f64::max);
        figure("gateway: reset after the return of a killed gateway", longest, "s", Better::Less);
        assert!(longest < 8.0, "{took:.1?} s after its return");
    });
}

#[test]
#[ignore = "needs root: make measure"]
fn feedback_comes_back_beside_a_replayed_first_flight() {
    measured(|| {
        let window = crate::gateway_faults::first_flight_replayed();
        figure("gateway: window beside a replayed first flight", window / 1e3, "kB", Better::More);
        assert!(window > 30_000.0, "{window} bytes");
    });
}

/// A change of the file is in effect within 100 ms.
#[test]
#[ignore = "needs root: make measure"]
fn a_rate_in_a_file_is_followed_at_once() {
    measured(|| {
        let sites = Sites::new();
        bridge(&sites.net);
        let file = sites.net.folder.join("rate");
        std::fs::write(&file, "8Mbit/s").unwrap();
        let source = format!("{{ file = \"{}\", floor = \"1Mbit/s\" }}", file.display());
        let _gateways = sites.gateways("", &format!("[wan]\nrate = \"10Mbit/s\"\ncapacity = {source}"));
        let socket = sites.net.folder.join("ga/run/gateway.sock");
        let rate = || ask(&socket).unwrap()["port"]["rate_bps"].as_f64().unwrap();
        eventually("the file is read", || rate() == 8e6);
        std::fs::write(&file, "3Mbit/s").unwrap();
        let began = monotonic();
        eventually("the change is in force", || rate() == 3e6);
        let took = (monotonic() - began) as f64 / 1e6;
        figure("gateway: a rate in a file comes into force", took, "ms", Better::Less);
        assert!(took < 100.0, "{took} ms");
    });
}
