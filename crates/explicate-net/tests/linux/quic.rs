//! Transfers by QUIC over cables and routers. Needs root, so `make linux` runs it.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use explicate_net::files::pairing::State;
use serde_json::Value;

use crate::common::{Net, Running, arrives, chain, file, last_json, run};

/// State folders of a receiver and of a sender that knows it by this address.
pub(crate) fn paired(net: &Net, address: &str) -> [String; 2] {
    let folders = ["receiver", "sender"].map(|name| net.folder.join(name));
    let [receiver, sender] = folders.each_ref().map(|folder| State::open(Some(folder)).unwrap());
    receiver.add_sender(sender.identity().unwrap().public, "sender").unwrap();
    sender.add_receiver(address, receiver.identity().unwrap().public).unwrap();
    folders.map(|folder| folder.to_str().unwrap().to_string())
}

/// A receiver in `b` at 10.9.0.2, and a sender in `a` that it knows.
pub(crate) struct Pair<'a> {
    net: &'a Net,
    state: String,
    pub(crate) recv: Running,
}

impl<'a> Pair<'a> {
    /// Starts the receiver with these options.
    pub(crate) fn new(net: &'a Net, options: &[&str]) -> Pair<'a> {
        let [receiver, state] = paired(net, "10.9.0.2");
        let recv = net.start("b", &[&["recv", "--state", &receiver], options].concat());
        Pair { net, state, recv }
    }
    /// Starts the sender's program with a command, which the receiver's address follows.
    pub(crate) fn start(&self, command: &str, more: &[&str]) -> Running {
        self.net.start("a", &[&[command, "10.9.0.2", "--json", "--state", &self.state], more].concat())
    }
    /// Runs the command to its end, which has to be good, and returns its report.
    pub(crate) fn told(&self, command: &str, more: &[&str]) -> Value {
        let (said, good) = self.start(command, more).wait();
        assert!(good, "{said}");
        last_json(&said)
    }
}

/// Sends 8 MB, 5,800 datagrams, through a router of 20 Mbit/s and 20 ms with a queue of 100 kB. Returns the reports of the sender
/// and of the router.
pub(crate) fn through_a_router(protocol: &str) -> [Value; 2] {
    let net = chain();
    let port = "right: rate = \"20Mbit/s\", delay = \"20ms\", queue = { kind = \"droptail\", limit = \"100kB\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "-c", protocol, "--json"]);
    let report = Pair::new(&net, &[]).told("send", &["-p", protocol, "-n", "8000000"]);
    [report, last_json(&router.stop("INT"))]
}

/// Interfaces that leave batches of datagrams undivided are those of a virtual cable, too. `timed::rates` has how many these are, and
/// that the guard is patient.
#[test]
#[ignore = "needs root: make linux"]
fn routers_answer_every_datagram_of_a_transfer_by_quic() {
    for protocol in ["xcp", "vcp"] {
        let [report, told] = through_a_router(protocol);
        let laws: Vec<&Value> = report["laws"].as_array().unwrap().iter().map(|law| &law["law"]).collect();
        assert!(laws.contains(&&"own".into()), "{protocol}: {laws:?}");
        let [explicit, merged] = ["explicit", "merged"].map(|count| told[count].as_u64().unwrap());
        assert!(explicit + merged > 5_500 && explicit > 0, "{protocol}: {explicit} answered, {merged} merged");
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn a_file_arrives_by_ipv6() {
    let net = Net::new(&["a", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("b", "eth0", "10.9.0.2/24"));
    for (name, address) in [("a", "fd00::1/64"), ("b", "fd00::2/64")] {
        net.exec(name, "sysctl -qw net.ipv6.conf.eth0.accept_dad=0");
        net.exec(name, "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.eth0.disable_ipv6=0");
        run(&format!("ip -n {} addr add {address} dev eth0 nodad", net.name(name)));
    }
    // Link-local addresses name the interface, too.
    let local = net.exec("b", "ip -6 -brief address show dev eth0 scope link");
    let local = local.split_whitespace().find_map(|word| word.strip_suffix("/64")).unwrap().to_string() + "%eth0";
    for (address, bytes) in [("fd00::2", 5_000_000), (&local, 1_000_000)] {
        let (path, content) = file(&net, bytes);
        let folder = net.folder.join(address);
        let [receiver, sender] = paired(&net, address);
        let _recv = net.start("b", &["recv", "--to", folder.to_str().unwrap(), "--state", &receiver]);
        let sent = net.program("a", &["send", address, &path, "--state", &sender]);
        assert!(sent.status.success(), "{address}: {}", String::from_utf8_lossy(&sent.stderr));
        assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn a_transfer_by_quic_goes_on_after_an_outage_and_a_new_router() {
    let net = chain();
    let port = "right: rate = \"20Mbit/s\", queue = { kind = \"droptail\", limit = \"100pkt\" }";
    let start = || net.start("m", &["router", "--port", "left", "--port", port]);
    let router = start();
    let (path, content) = file(&net, 12_000_000);
    let folder = net.folder.join("received");
    let pair = Pair::new(&net, &["--to", folder.to_str().unwrap()]);
    let mut send = pair.start("send", &[&path]);
    arrives(&folder, 500_000);
    run(&format!("ip -n {} link set eth0 down", net.name("b")));
    sleep(Duration::from_secs(5));
    run(&format!("ip -n {} link set eth0 up", net.name("b")));
    arrives(&folder, 3_000_000);
    router.stop("KILL");
    sleep(Duration::from_millis(300));
    let _router = start();
    let (said, good) = send.wait();
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    assert_eq!(last_json(&said)["end"]["sum_received"]["bytes"], 12_000_000, "on one connection: {said}");
}

/// Sends a file of so many bytes over an emulated link, lets something happen when a part of it has arrived, and compares.
fn arrives_over(properties: &str, bytes: usize, meanwhile: impl FnOnce(&Net)) {
    let net = chain();
    let _link = net.start("m", &["link", "left", "right", "--there", properties]);
    let (path, content) = file(&net, bytes);
    let folder = net.folder.join("received");
    let mut pair = Pair::new(&net, &["--once", "--to", folder.to_str().unwrap()]);
    let mut send = pair.start("send", &[&path]);
    arrives(&folder, bytes as u64 / 8);
    meanwhile(&net);
    let (said, good) = send.wait();
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    let (said, good) = pair.recv.wait();
    assert!(good, "{said}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
}

#[test]
#[ignore = "needs root: make linux"]
fn a_file_arrives_the_same_over_a_link_that_does_everything_wrong() {
    let wrong = "rate = \"40Mbit/s\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"100pkt\" }, channel = [\
                 { kind = \"random_loss\", rate = \"1%\" }, { kind = \"reordering\" }, { kind = \"duplication\" }, \
                 { kind = \"corruption\", rate = \"1%\" }]";
    arrives_over(wrong, 5_000_003, |_| {});
}

#[test]
#[ignore = "needs root: make linux"]
fn a_path_that_swallows_long_packets_under_way_is_followed_by_quic() {
    let link = "rate = \"20Mbit/s\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"100pkt\" }";
    arrives_over(link, 10_000_000, |net| drop(run(&format!("ip -n {} link set right mtu 1300", net.name("m")))));
}

/// `timed::rates` has when, and after how much.
#[test]
#[ignore = "needs root: make linux"]
fn filler_ends_on_a_slow_path() {
    let [bytes, _] = filler_on_a_slow_path();
    assert!(bytes > 0.0);
}

/// Bytes and seconds of filler for 4 s on a slow path. What QUIC and the queue have taken would last seconds more.
pub(crate) fn filler_on_a_slow_path() -> [f64; 2] {
    let net = chain();
    let slow = "rate = \"500kbit/s\", delay = \"10ms\", queue = { kind = \"droptail\", limit = \"20pkt\" }";
    let _link = net.start("m", &["link", "left", "right", "--there", slow]);
    let received = &Pair::new(&net, &[]).told("send", &["--time", "4"])["end"]["sum_received"];
    ["bytes", "seconds"].map(|key| received[key].as_f64().unwrap())
}
