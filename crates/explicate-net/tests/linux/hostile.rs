//! Forged packets and killed programs during transfers, on this machine's kernel. Needs root, so `make linux` runs it.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Net, chain, eventually, file, last_json, paused};
use crate::quic::Pair;
use explicate_core::rng::Rng;

/// Memory that a program has in use, kB.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Sends datagrams to the port from `a`'s namespace: headers of the fuzzers' corpus, changed; how many.
fn flood(net: &Net, count: usize) -> std::thread::JoinHandle<u64> {
    net.inside("a", move || {
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        let mut rng = Rng::stream(9, "hostile");
        let seeds: Vec<Vec<u8>> = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/headers"))
            .unwrap()
            .map(|entry| fs::read(entry.unwrap().path()).unwrap())
            .collect();
        let mut sent = 0u64;
        for i in 0..count {
            let mut bytes = seeds[i % seeds.len()].clone();
            bytes.resize(bytes.len() + rng.next_u64() as usize % 60, 0);
            for _ in 0..rng.next_u64() % 8 {
                let at = rng.next_u64() as usize % bytes.len();
                bytes[at] = rng.next_u64() as u8;
            }
            sent += socket.send_to(&bytes, "10.9.0.2:49407").is_ok() as u64;
            if i % 64 == 0 {
                sleep(Duration::from_micros(300));
            }
        }
        sent
    })
}

#[test]
#[ignore = "needs root: make linux"]
fn hostile_packets_are_counted_and_dropped_while_a_file_passes() {
    let net = chain();
    let router = net.start("m", &["router", "--port", "left", "--port", "right", "--json"]);
    let folder = net.folder.join("received");
    let pair = Pair::new(&net, &["--to", folder.to_str().unwrap()]);
    let (path, content) = file(&net, 20_000_000);
    let mut send = pair.start("send", &[&path, "-p", "cubic"]);
    let before = [resident(router.id()), resident(pair.recv.id())];
    let sent = flood(&net, 300_000).join().unwrap();
    let (said, good) = send.wait();
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    let after = [resident(router.id()), resident(pair.recv.id())];
    for (before, after) in before.iter().zip(after) {
        assert!(after < before + (64 << 10), "{before} kB, then {after} kB");
    }
    // Both still work.
    pair.told("send", &["--time", "1"]);
    let told = last_json(&router.stop("INT"));
    let of = |key: &str| told[key].as_u64().unwrap();
    assert!(of("malformed") > sent / 20, "{} of {sent}", of("malformed"));
    assert!(of("malformed") + of("explicit") + of("missed") >= sent, "{told}");
    assert_eq!(of("errors"), 0);
}

/// Parts of files in a folder.
fn parts(folder: &Path) -> usize {
    fs::read_dir(folder.join(".explicate-parts")).map_or(0, Iterator::count)
}

#[test]
#[ignore = "needs root: make linux"]
fn a_file_survives_a_sender_that_is_killed() {
    let net = chain();
    let slow = "rate = \"20Mbit/s\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"100pkt\" }";
    let link = net.start("m", &["link", "left", "right", "--there", slow, "--json"]);
    let folder = net.folder.join("received");
    let pair = Pair::new(&net, &["--to", folder.to_str().unwrap()]);
    let (path, content) = file(&net, 16_000_000);

    // Its incomplete file gets no name, and does not disturb the next sender.
    paused(|| pair.start("send", &[&path]), &folder, 500_000).stop("KILL");
    assert!(!folder.join("sent.bin").exists() && parts(&folder) == 1);
    pair.told("send", &[&path]);
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    eventually("the part without a sender is removed", || parts(&folder) == 0);
    // Datagrams of a batch are one frame.
    assert!(last_json(&link.stop("INT"))["ports"][1]["bytes"].as_u64().unwrap() > 16_000_000);
}
