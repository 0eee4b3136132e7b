//! What routers and probes make of rates and losses, measured in real time. Needs root, so `make measure` runs it.

use std::time::Duration;

use super::measured::measured;
use crate::common::{Net, chain, file, last_json};
use crate::figures::{Better, figure};
use crate::quic::{Pair, filler_on_a_slow_path, through_a_router};
use crate::router::{behind_tags, ipv6_through_a_queue, rates_of_the_last_seconds};

#[test]
#[ignore = "needs root: make measure"]
fn a_router_feeds_back_and_leaves_other_traffic_alone() {
    let net = chain();
    let port = "right: rate = \"30Mbit/s\", delay = \"20ms\", queue = { kind = \"droptail\", limit = \"200pkt\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "--json", "--real-time"]);
    // The kernel's own packets: ARP, ICMP, and TCP with segments that the sender leaves to its interface to cut.
    let ping = net.exec("a", "ping -c 3 -i 0.2 10.9.0.2");
    assert!(ping.contains("ttl=64") && ping.contains(" 0% packet loss"), "{ping}");
    let told = Pair::new(&net, &[]).told("send", &["--time", "5", "-P", "2"]);
    let rate = told["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    figure("rates: XCP at a router, share of 30 Mbit/s", rate / 30e6, "", Better::More);
    assert!((0.85..1.0).contains(&(rate / 30e6)), "{rate}");
    assert_eq!(told["end"]["sum_sent"]["retransmits"], 0, "the router's feedback keeps its queue short");
    let told = last_json(&router.stop("INT"));
    assert!(told["explicit"].as_u64().unwrap() > 10_000 && told["received"].as_u64() > told["explicit"].as_u64());
    assert_eq!((&told["malformed"], &told["expired"]), (&0.into(), &0.into()));
}

/// Nothing is merged that could be answered, and answers come before the guard takes the path for one without a router.
#[test]
#[ignore = "needs root: make measure"]
fn routers_answer_by_quic_from_the_start() {
    for protocol in ["xcp", "vcp"] {
        measured(|| {
            let [report, told] = through_a_router(protocol);
            let merged = told["merged"].as_f64().unwrap();
            figure(&format!("rates: datagrams of QUIC merged, {protocol}"), merged, "", Better::Less);
            let laws = report["laws"].as_array().unwrap();
            // A window beyond what XCP's router grants would overflow its queue of 66 packets.
            assert!(protocol != "xcp" || told["ports"][1]["drops"] == 0, "{told}");
            assert!(merged < 60.0 && laws.iter().all(|law| law["law"] != "tcp"), "{merged} merged, {laws:?}");
        });
    }
}

/// Rate at which 30 MB arrive by the default protocol over 20 Mbit/s one way, 2 the other, 600 ms and 1 % of losses each way, Mbit/s.
fn over_a_satellite() -> f64 {
    let net = Net::new(&["a", "r1", "sky", "r2", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("r1", "left", ""));
    net.cable(("r1", "right", ""), ("sky", "left", ""));
    net.cable(("sky", "right", ""), ("r2", "left", ""));
    net.cable(("b", "eth0", "10.9.0.2/24"), ("r2", "right", ""));
    let port = |rate: &str| format!("right: rate = \"{rate}\", queue = {{ kind = \"droptail\", limit = \"1.5MB\" }}");
    let back = port("2Mbit/s").replace("right", "left");
    let air = "delay = \"300ms\", channel = [{ kind = \"random_loss\", rate = \"1%\" }]";
    let _ways = [
        net.start("r1", &["router", "--port", "left", "--port", &port("20Mbit/s"), "-c", "xcp"]),
        net.start("r2", &["router", "--port", &back, "--port", "right", "-c", "xcp"]),
        net.start("sky", &["link", "left", "right", "--there", air, "--back", air]),
    ];
    let (path, _) = file(&net, 30_000_000);
    let folder = net.folder.join("received").display().to_string();
    let told = Pair::new(&net, &["--to", &folder]).told("send", &[&path]);
    told["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6
}

/// A packet of the handshake that is lost costs a second, 0.8 Mbit/s.
#[test]
#[ignore = "needs root: make measure"]
fn the_default_protocol_fills_a_lossy_satellite_path() {
    measured(|| {
        let rate = over_a_satellite();
        figure("rates: 30 MB over a lossy satellite path, quic", rate, "Mbit/s", Better::More);
        assert!(rate > 12.4, "{rate} Mbit/s");
    });
}

#[test]
#[ignore = "needs root: make measure"]
fn a_probe_finds_what_a_path_has() {
    measured(|| {
        let net = chain();
        let narrow = "rate = \"20Mbit/s\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"100pkt\" }";
        let _link = net.start("m", &["link", "left", "right", "--there", narrow, "--real-time"]);
        let told = Pair::new(&net, &[]).told("probe", &["--time", "15"]);
        let of = |key: &str| told[key].as_f64().unwrap() / 20e6;
        let error = (of("capacity_bps") - 1.0).abs();
        figure("rates: error of a probe's capacity", error, "", Better::Less);
        assert!((0.85..1.15).contains(&of("capacity_bps")), "{told}");
        assert!(told["probes_answered"].as_u64() <= told["probes_sent"].as_u64(), "{told}");
        assert!((0.7..1.2).contains(&of("available_bps")), "{told}");
    });
}

/// 30 ms and 2 % each way, 10 Mbit/s: the measurement's result, and the advice with routers.
#[test]
#[ignore = "needs root: make measure"]
fn a_path_is_looked_at_and_gets_its_protocol() {
    let net = chain();
    let link = "rate = \"10Mbit/s\", delay = \"30ms\", channel = [{ kind = \"random_loss\", rate = \"2%\" }]";
    let _link = net.start("m", &["link", "left", "right", "--there", link]);
    let told = Pair::new(&net, &[]).told("advise", &["--routers", "xcp"]);
    let path = |key: &str| told["path"][key].as_f64().unwrap();
    figure("rates: advised path of 60 ms, round trip", path("rtt_ms"), "ms", Better::Less);
    assert!((60.0..75.0).contains(&path("rtt_ms")), "{told}");
    // 1000 probes: a standard deviation of 0.003.
    assert!((0.008..0.035).contains(&path("loss")), "{told}");
    assert!((0.8..1.25).contains(&(path("rate_bps") / 10e6)), "{told}");
    assert_eq!(path("mtu"), 1500.0);
    assert!(told["command"].as_str().unwrap().contains(" -p LR-LMXCP"), "{told}");
    let best = &told["alternatives"][0];
    assert!(best["share"].as_f64().unwrap() > 0.8 && best["tcp_beside"].as_f64().unwrap() > 0.8, "{told}");
}

/// What QUIC and the queue have taken at the end of 4 s would last seconds more.
#[test]
#[ignore = "needs root: make measure"]
fn filler_ends_with_its_time_on_a_slow_path() {
    measured(|| {
        let [bytes, seconds] = filler_on_a_slow_path();
        figure("rates: filler of 4 s on a slow path", seconds, "s", Better::Less);
        assert!((100e3..260e3).contains(&bytes) && (4.0..8.0).contains(&seconds), "{bytes} bytes in {seconds} s");
    });
}

#[test]
#[ignore = "needs root: make measure"]
fn ipv6_waits_in_the_queue_of_a_router() {
    measured(|| {
        let (took, expected) = (ipv6_through_a_queue(), 39.0 * 1248.0 * 8.0 / 2e6);
        figure("rates: 40 datagrams of IPv6 through 2 Mbit/s", took, "s", Better::Less);
        assert!((expected - 0.03..expected + 0.2).contains(&took), "{took} s, at that rate {expected}");
    });
}

/// It takes the line and no more: who gets no feedback sends 1 Gbit/s.
#[test]
#[ignore = "needs root: make measure"]
fn explicit_packets_behind_tags_take_the_line_and_no_more() {
    measured(|| {
        let port = behind_tags();
        let rate = port["bits_per_second"].as_f64().unwrap();
        figure("rates: XCP behind tags, of 20 Mbit/s", rate / 1e6, "Mbit/s", Better::More);
        assert!((2e6..20.5e6).contains(&rate) && port["drops"].as_u64() < Some(200), "{port}");
    });
}

#[test]
#[ignore = "needs root: make measure"]
fn the_rate_of_the_last_seconds_is_that_of_the_flow() {
    measured(|| {
        let [rate, share] = rates_of_the_last_seconds(Duration::from_secs(4));
        figure("rates: served rate of a flow on 20 Mbit/s", rate / 1e6, "Mbit/s", Better::More);
        assert!((2e6..21e6).contains(&rate) && share > 0.99, "{rate} bit/s, {share}");
    });
}
