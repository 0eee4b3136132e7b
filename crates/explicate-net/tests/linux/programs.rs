//! End points, router and link as separate programs, on this machine's kernel. Needs root, so `make linux` runs it.

use std::io::Write;
use std::net::TcpStream;

use crate::common::{chain, eventually, file, last_json, run, scraped, series, takes_a_stream};
use crate::quic::paired;

#[test]
#[ignore = "needs root: make linux"]
fn counters_are_served_to_prometheus() {
    let net = chain();
    let arguments = ["router", "--port", "left", "--port", "right", "--metrics", "127.0.0.1:9109"];
    let router = net.start("m", &arguments);
    net.exec("a", "ping -c 2 -i 0.2 10.9.0.2");
    let none = ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"].map(String::from).into();
    assert_eq!(router.privileges(), none);
    // Two questions and two answers, at least.
    let sent = || series(&scraped(&net, "m", "127.0.0.1:9109"), "explicated_sent_total");
    assert!(sent().is_some(), "from the start");
    eventually("the counters have them", || sent().is_some_and(|sent| sent >= 4.0));
    router.stop("TERM");
    run("ip netns list");
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

/// Rates, losses and round trips that they find are measured in `timed::rates`.
#[test]
#[ignore = "needs root: make linux"]
fn a_look_at_a_path_ends_with_a_result_or_a_reason() {
    let net = chain();
    let narrow = "rate = \"20Mbit/s\", delay = \"5ms\"";
    let _link = net.start("m", &["link", "left", "right", "--there", narrow]);
    let [receiver, sender] = paired(&net, "10.9.0.2");
    let _recv = net.start("b", &["recv", "--state", &receiver]);
    let found = |arguments: &[&str]| {
        let said = net.program("a", &[arguments, &["--state", &sender]].concat());
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        last_json(&String::from_utf8_lossy(&said.stdout))
    };
    let told = found(&["probe", "10.9.0.2", "--time", "2", "--json"]);
    let [answered, sent] = ["probes_answered", "probes_sent"].map(|key| told[key].as_u64().unwrap());
    assert!(0 < answered && answered <= sent && told["capacity_bps"].as_f64() > Some(0.0), "{told}");
    // Arguments replace measurements, and without `--routers` no router is assumed.
    let told = found(&["advise", "10.9.0.2", "--json", "--rate", "100Mbit/s", "--loss", "0", "--time", "1"]);
    assert_eq!((&told["path"]["rate_bps"], &told["path"]["loss"]), (&100e6.into(), &0.0.into()));
    assert!(told["alternatives"].as_array().unwrap().iter().all(|row| row["routers"] == "none"), "{told}");
    // No host has that address.
    let sender = &paired(&net, "10.9.0.77")[1];
    for command in ["probe", "advise"] {
        let said = net.program("a", &[command, "10.9.0.77", "--time", "1", "--state", sender]);
        let reason = String::from_utf8_lossy(&said.stderr).to_string();
        assert!(said.status.code() == Some(1) && !reason.is_empty(), "{command}: {reason}");
    }
}

/// TCP of the kernel and an explicit transfer at a time, with a router and without: both deliver all that they have.
/// Their shares are measured in `timed::classes` and `timed::guard`.
#[test]
#[ignore = "needs root: make linux"]
fn tcp_and_an_explicit_transfer_arrive_whole_beside_each_other() {
    let port = "right: rate = \"50Mbit/s\", queue = { kind = \"droptail\", limit = \"200kB\" }";
    let router: &[&str] = &["router", "--port", "left", "--port", port];
    let link: &[&str] = &["link", "left", "right", "--there", &port["right: ".len()..]];
    for middle in [router, link] {
        let net = chain();
        let _middle = net.start("m", middle);
        let ((path, sent), folder) = (file(&net, 2_000_000), net.folder.join("received"));
        let [receiver, sender] = paired(&net, "10.9.0.2");
        let _recv = net.start("b", &["recv", "--to", folder.to_str().unwrap(), "--state", &receiver]);
        let stream = takes_a_stream(&net, "10.9.0.2:5000");
        let beside = sent.clone();
        let tcp = net.inside("a", move || TcpStream::connect("10.9.0.2:5000").unwrap().write_all(&beside).unwrap());
        let done = net.program("a", &["send", "10.9.0.2", &path, "--state", &sender]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        tcp.join().unwrap();
        assert!(stream.join().unwrap() == sent, "other bytes by TCP");
        assert!(std::fs::read(folder.join("sent.bin")).unwrap() == sent, "other bytes in the file");
    }
}
