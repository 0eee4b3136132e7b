//! End points, router and link as programs of their own, on this machine's kernel. Needs root, so `make linux` runs it.

mod common;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use common::{Net, arrives, chain, eventually, file, last_json, measured, run, scraped, takes_a_stream, value};

#[test]
#[ignore = "needs root: make linux"]
fn a_file_arrives_the_same_over_a_link_that_does_everything_wrong() {
    let net = chain();
    let wrong = "rate = \"40Mbit/s\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"100pkt\" }, channel = [\
                 { kind = \"random_loss\", rate = \"1%\" }, { kind = \"reordering\" }, { kind = \"duplication\" }, \
                 { kind = \"corruption\", rate = \"1%\" }]";
    let link = net.start("m", &["link", "left", "right", "--there", wrong, "--json"]);
    let (path, content) = file(&net, 5_000_003);
    let folder = net.folder.join("received");
    let mut recv = net.start("b", &["recv", "--open", "--to", folder.to_str().unwrap(), "--once", "--json"]);
    let sent = net.program("a", &["send", "10.9.0.2", &path, "--protocol", "cubic/sack", "--json"]);
    let said = String::from_utf8_lossy(&sent.stdout).to_string() + &String::from_utf8_lossy(&sent.stderr);
    assert!(sent.status.success(), "{said}");
    let (said, good) = recv.wait(10);
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
    let told = last_json(&link.stop("INT"));
    let right = &told["ports"][1];
    for what in ["lost", "damaged"] {
        assert!(right[what].as_u64().unwrap() > 10, "{what}: {right}");
    }
    assert_eq!((&told["missed"], &told["errors"]), (&0.into(), &0.into()));
}

#[test]
#[ignore = "needs root: make linux"]
fn a_router_feeds_back_and_leaves_other_traffic_alone() {
    let net = chain();
    let port = "right: rate = \"30Mbit/s\", delay = \"20ms\", queue = { kind = \"droptail\", limit = \"200pkt\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "--json", "--real-time"]);
    // The kernel's own packets: ARP, ICMP, and TCP with segments that the sender leaves to its interface to cut.
    let ping = net.exec("a", "ping -c 3 -i 0.2 10.9.0.2");
    assert!(ping.contains("ttl=64") && ping.contains(" 0% packet loss"), "{ping}");
    let _recv = net.start("b", &["recv", "--open", "--json"]);
    let sent = net.program("a", &["send", "10.9.0.2", "--time", "5", "--json", "-P", "2"]);
    let told = last_json(&String::from_utf8_lossy(&sent.stdout));
    let rate = told["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    assert!((0.85..1.0).contains(&(rate / 30e6)), "{rate}");
    assert_eq!(told["end"]["sum_sent"]["retransmits"], 0, "the router's feedback keeps its queue short");
    let told = last_json(&router.stop("INT"));
    assert!(told["explicit"].as_u64().unwrap() > 10_000 && told["received"].as_u64() > told["explicit"].as_u64());
    assert_eq!((&told["malformed"], &told["expired"]), (&0.into(), &0.into()));
}

#[test]
#[ignore = "needs root: make linux"]
fn transfers_survive_a_router_that_is_started_again_and_fail_clearly_without_a_receiver() {
    let net = chain();
    let port = "right: rate = \"20Mbit/s\", queue = { kind = \"droptail\", limit = \"100pkt\" }";
    let start = || net.start("m", &["router", "--port", "left", "--port", port]);
    let router = start();
    let (path, content) = file(&net, 8_000_000);
    let folder = net.folder.join("received");
    let to = folder.to_str().unwrap().to_string();
    let recv = net.start("b", &["recv", "--open", "--to", &to]);
    let mut send = net.start("a", &["send", "10.9.0.2", &path]);
    arrives(&folder, 500_000);
    router.stop("KILL");
    sleep(Duration::from_millis(300));
    let _router = start();
    let (said, good) = send.wait(30);
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    fs::remove_file(folder.join("sent.bin")).unwrap();

    // The receiver goes and comes again: it knows nothing of the transfer, and says so.
    let mut send = net.start("a", &["send", "10.9.0.2", &path]);
    arrives(&folder, 500_000);
    recv.stop("KILL");
    let recv = net.start("b", &["recv", "--open", "--to", &to]);
    let (said, good) = send.wait(30);
    assert!(!good && said.contains("does not know this transfer"), "{said}");
    assert!(!folder.join("sent.bin").exists());

    // It goes for good.
    recv.stop("KILL");
    let sent = net.program("a", &["send", "10.9.0.2", &path, "--patience", "3"]);
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(!sent.status.success() && said.contains("no answer from 10.9.0.2"), "{said}");
}

#[test]
#[ignore = "needs root: make linux"]
fn counters_are_served_to_prometheus() {
    let net = chain();
    let arguments = ["router", "--port", "left", "--port", "right", "--metrics", "127.0.0.1:9109"];
    let router = net.start("m", &arguments);
    net.exec("a", "ping -c 2 -i 0.2 10.9.0.2");
    let status = fs::read_to_string(format!("/proc/{}/status", router.id())).unwrap();
    assert!(status.contains("CapEff:\t0000000000000000") && status.contains("NoNewPrivs:\t1"), "{status}");
    // Two questions and two answers, at least.
    eventually("the counters have them", || {
        value(&scraped(&net, "m", "127.0.0.1:9109"), "explicated_sent_total") >= 4.0
    });
    router.stop("TERM");
    run("ip netns list");
}

/// `a` -- ours (`r1`) -- the kernel's router (`k`), with 20 Mbit/s towards `b` -- ours (`r2`) -- `b`; ours believe in 50 Mbit/s.
fn cloud() -> Net {
    let net = Net::new(&["a", "r1", "k", "r2", "b"]);
    net.cable(("a", "eth0", "10.1.0.1/24"), ("r1", "left", ""));
    net.cable(("k", "k0", "10.1.0.254/24"), ("r1", "right", ""));
    net.cable(("k", "k1", "10.2.0.254/24"), ("r2", "left", ""));
    net.cable(("b", "eth0", "10.2.0.1/24"), ("r2", "right", ""));
    net.exec("a", "ip route add default via 10.1.0.254");
    net.exec("b", "ip route add default via 10.2.0.254");
    net.exec("k", "sysctl -qw net.ipv4.ip_forward=1");
    net.exec("k", "tc qdisc add dev k1 root tbf rate 20mbit burst 5000 limit 60000");
    net
}

/// Share of the cloud's rate that was used in the second half, and the share of packets that were sent again.
fn through_the_cloud(protocol: &str, addresses: bool) -> (f64, f64) {
    let net = cloud();
    let port = |delay: &str, router: &str| {
        format!(
            "rate = \"50Mbit/s\", delay = \"{delay}\", queue = {{ kind = \"droptail\", limit = \"200pkt\" }}, router = \"{router}\""
        )
    };
    let right_1 = format!("right: {}", port("10ms", protocol));
    let (left_2, right_2) = (format!("left: {}", port("10ms", "none")), format!("right: {}", port("0ms", protocol)));
    let mut one = vec!["router", "--port", "left", "--port", &right_1, "--real-time", "-c", protocol];
    let mut two = vec!["router", "--port", &left_2, "--port", &right_2, "--real-time", "-c", protocol, "--json"];
    if addresses {
        one.extend(["--address", "10.1.0.10"]);
        two.extend(["--address", "10.2.0.10"]);
    }
    let (_one, two) = (net.start("r1", &one), net.start("r2", &two));
    let _recv = net.start("b", &["recv", "--open"]);
    // What overflows the cloud is the protocol's own law.
    let guard = if addresses { "on" } else { "off" };
    let sent = net.program("a", &["send", "10.2.0.1", "-p", protocol, "--time", "24", "--json", "--guard", guard]);
    let told = last_json(&String::from_utf8_lossy(&sent.stdout));
    let intervals = told["intervals"].as_array().unwrap();
    let half = &intervals[12..intervals.len().min(24)];
    let total = |key: &str| half.iter().map(|i| i["sum"][key].as_f64().unwrap()).sum::<f64>();
    let packets = total("bytes") / 1420.0;
    let router = last_json(&two.stop("INT"));
    if addresses {
        assert!(
            router["variables"]["clouds_met"].as_f64().unwrap() > 1000.0,
            "the cloud is found by the TTL: {router}"
        );
    }
    (packets * 1500.0 * 8.0 / total("seconds") / 20e6, total("retransmits") / packets)
}

#[test]
#[ignore = "needs root: make linux"]
fn routers_that_speak_with_each_other_see_the_cloud_between_them() {
    measured(|| {
        let (used, resent) = through_the_cloud("xcp_i", true);
        assert!(used >= 0.8 && resent < 0.01, "{used} {resent}");
        let (used, resent) = through_the_cloud("xcp", false);
        assert!(used < 0.8 || resent > 0.05, "without, the cloud overflows: {used} {resent}");
    });
}

/// The kernel's TCP leaves segments to its interface to cut, and their checksums too.
#[test]
#[ignore = "needs root: make linux"]
fn tcp_passes_a_router_whole() {
    let net = chain();
    let port = "right: rate = \"80Mbit/s\", queue = { kind = \"droptail\", limit = \"200kB\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "--json"]);
    let content: Vec<u8> = (0..4_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let sent = content.clone();
    let receiver = takes_a_stream(&net, "10.9.0.2:5000");
    net.inside("a", move || TcpStream::connect("10.9.0.2:5000").unwrap().write_all(&sent).unwrap()).join().unwrap();
    assert!(receiver.join().unwrap() == content, "other bytes");
    let told = last_json(&router.stop("INT"));
    assert_eq!((&told["explicit"], &told["cut"], &told["errors"]), (&0.into(), &0.into(), &0.into()));
}

#[test]
#[ignore = "needs root: make linux"]
fn a_probe_finds_what_a_path_has() {
    measured(|| {
        let net = chain();
        let narrow = "rate = \"20Mbit/s\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"100pkt\" }";
        let _link = net.start("m", &["link", "left", "right", "--there", narrow, "--real-time"]);
        let _recv = net.start("b", &["recv", "--open"]);
        let said = net.program("a", &["probe", "10.9.0.2", "--time", "15", "--json"]);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let told = last_json(&String::from_utf8_lossy(&said.stdout));
        let of = |key: &str| told[key].as_f64().unwrap() / 20e6;
        assert!((0.85..1.15).contains(&of("capacity_bps")), "{told}");
        assert!(told["probes_answered"].as_u64() <= told["probes_sent"].as_u64(), "{told}");
        assert!((0.7..1.2).contains(&of("available_bps")), "{told}");
        // Nobody answers, and nothing hangs.
        let said = net.program("a", &["probe", "10.9.0.77", "--time", "1"]);
        assert!(!said.status.success() && String::from_utf8_lossy(&said.stderr).contains("no probe was answered"));
    });
}
