//! Paths that carry shorter packets than their ends, from the start or from some moment on, with and without a word from the
//! router that drops them; and paths that are away for a while. Needs root, so `make linux` runs it.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Net, Running, chain, eventually, file, run};
use explicate_net::clock::Clock;

/// Two hosts, and between them the kernel's router, which reports packets that are too long (ICMP: fragmentation needed).
fn routed() -> Net {
    let net = Net::new(&["a", "k", "b"]);
    net.cable(("a", "eth0", "10.1.0.1/24"), ("k", "k0", "10.1.0.254/24"));
    net.cable(("b", "eth0", "10.9.0.2/24"), ("k", "k1", "10.9.0.254/24"));
    net.exec("a", "ip route add default via 10.1.0.254");
    net.exec("b", "ip route add default via 10.9.0.254");
    net.exec("k", "sysctl -qw net.ipv4.ip_forward=1");
    net
}

/// Two hosts, and between them an emulated link, which says nothing: a frame that is too long is gone.
fn bridged(properties: &str) -> (Net, Running) {
    let net = chain();
    let link = net.start("m", &["link", "left", "right", "--there", properties]);
    (net, link)
}

fn mtu(net: &Net, name: &str, device: &str, bytes: u32) {
    run(&format!("ip -n {} link set {device} mtu {bytes}", net.name(name)));
}

/// Sends a file, lets something happen meanwhile, and returns the output once the same file has arrived.
fn arrives(net: &Net, bytes: usize, more: &[&str], meanwhile: impl FnOnce(&Path)) -> String {
    let (path, content) = file(net, bytes);
    let folder = net.folder.join("received");
    let mut recv = net.start("b", &["recv", "--to", folder.to_str().unwrap(), "--open"]);
    let mut arguments = vec!["send", "--transport", "udp", "10.9.0.2", &path, "-p", "cubic"];
    arguments.extend(more);
    let mut send = net.start("a", &arguments);
    meanwhile(&folder);
    let (said, good) = send.wait();
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file: {said}");
    recv.signal("INT");
    recv.wait();
    said
}

#[test]
#[ignore = "needs root: make linux"]
fn a_router_that_says_what_it_carries_is_heard() {
    behind_a_router_of_1400_bytes();
}

/// Seconds that 3 MB take behind a router that reports what it carries. `timed::mtu` has how long that may be.
pub(crate) fn behind_a_router_of_1400_bytes() -> f64 {
    let net = routed();
    mtu(&net, "k", "k1", 1400);
    let began = Clock::start();
    let said = arrives(&net, 3_000_000, &[], |_| {});
    assert!(said.contains("1400 B"), "{said}");
    began.elapsed().as_secs_f64()
}

#[test]
#[ignore = "needs root: make linux"]
fn a_black_hole_for_long_packets_is_found() {
    behind_a_black_hole();
}

/// Seconds that 3 MB take behind a link that drops long packets without a word.
pub(crate) fn behind_a_black_hole() -> f64 {
    let (net, _link) = bridged("rate = \"40Mbit/s\", delay = \"10ms\"");
    mtu(&net, "m", "right", 1400);
    let began = Clock::start();
    let said = arrives(&net, 3_000_000, &[], |_| {});
    assert!(said.contains("1400 B"), "{said}");
    began.elapsed().as_secs_f64()
}

/// Random losses are no black hole: the packet keeps its length.
#[test]
#[ignore = "needs root: make linux"]
fn losses_alone_shorten_no_packet() {
    let (net, _link) =
        bridged("rate = \"40Mbit/s\", delay = \"10ms\", channel = [{ kind = \"random_loss\", rate = \"5%\" }]");
    let said = arrives(&net, 1_000_000, &[], |_| {});
    assert!(!said.contains("shorter packets"), "{said}");
}

/// Waits until an interface has sent at least so many bytes. A disk that is busy delays the file in the folder.
fn sends(net: &Net, host: &str, device: &str, bytes: u64) {
    let counter = format!("cat /sys/class/net/{device}/statistics/tx_bytes");
    eventually("the interface sends", || net.exec(host, &counter).trim().parse::<u64>().unwrap() >= bytes);
}

#[test]
#[ignore = "needs root: make linux"]
fn a_path_that_shrinks_under_way_is_followed_with_and_without_a_word() {
    let net = routed();
    run(&format!("ip netns exec {} tc qdisc add dev k1 root tbf rate 10mbit burst 20000 limit 200000", net.name("k")));
    let said = arrives(&net, 12_000_000, &[], |_| {
        sends(&net, "k", "k1", 1_000_000);
        mtu(&net, "k", "k1", 1350);
    });
    assert!(said.contains("1350 B"), "{said}");
    drop(net);
    let (net, _link) = bridged("rate = \"10Mbit/s\", delay = \"10ms\"");
    let said = arrives(&net, 12_000_000, &[], |_| {
        sends(&net, "m", "right", 1_000_000);
        mtu(&net, "m", "right", 1300);
    });
    assert!(said.contains("1280 B"), "{said}");
}

#[test]
#[ignore = "needs root: make linux"]
fn packets_longer_than_the_interface_are_shortened_with_a_warning() {
    let net = Net::new(&["a", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("b", "eth0", "10.9.0.2/24"));
    let said = arrives(&net, 500_000, &["--packet", "9000B"], |_| {});
    assert!(said.contains("--packet 9000B") && said.contains("1500 B"), "{said}");
}

/// An outage of 20 s is common and does not end a transfer.
#[test]
#[ignore = "needs root: make linux"]
fn a_transfer_outlasts_an_outage() {
    over_an_outage();
}

/// Seconds from the return of a path to the end of a transfer of 5 MB. `timed::mtu` has how long that may be.
pub(crate) fn over_an_outage() -> f64 {
    let (net, _link) = bridged("rate = \"20Mbit/s\", delay = \"10ms\"");
    let mut back = None;
    arrives(&net, 5_000_000, &[], |folder| {
        crate::common::arrives(folder, 200_000);
        outage(&net, true);
        sleep(Duration::from_secs(20));
        outage(&net, false);
        back = Some(Clock::start());
    });
    back.unwrap().elapsed().as_secs_f64()
}

/// Takes the host's interface down, or up again.
fn outage(net: &Net, down: bool) {
    run(&format!("ip -n {} link set right {}", net.name("m"), if down { "down" } else { "up" }));
}
