//! Peers that move and hosts that vanish. Needs root, so `make linux` runs it.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::spawn;
use std::time::Duration;

use crate::common::exchanges::{End, Exchange, answer, exchange};
use crate::common::gateways::{Sites, bridge, connect, serve, status};
use crate::common::{Net, eventually};

const EXCHANGES: &str = "10.2.0.2:7001";
const ECHO: &str = "10.2.0.2:7002";

/// Sends back what it reads, on all connections at an address of `s`.
fn echo(net: &Net, address: &'static str) {
    let listener = net.inside("s", move || TcpListener::bind(address).unwrap()).join().unwrap();
    spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            spawn(move || {
                let mut key = [0];
                while stream.read_exact(&mut key).and_then(|()| stream.write_all(&key)).is_ok() {}
            });
        }
    });
}

fn key(stream: &mut TcpStream) {
    let mut back = [0];
    stream.write_all(b"k").and_then(|()| stream.read_exact(&mut back)).unwrap();
    assert_eq!(&back, b"k");
}

/// What leaves the near gateway's tunnel comes from this port from now on, and from this IPv4 address; what is sent to where it was is lost.
fn nat(net: &Net, port: u16, address: &str) {
    let rules = format!(
        "table inet moves\ndelete table inet moves\n\
         table inet moves {{\n\
         chain out {{ type filter hook postrouting priority 0; oifname wan0 udp sport 49407 jump rewrite; }}\n\
         chain rewrite {{ udp sport set {port}; meta nfproto ipv4 ip saddr set {address}; }}\n\
         chain in {{ type filter hook prerouting priority -300; iifname wan0 udp dport 49407 drop;\n\
         iifname wan0 udp dport {port} jump back; }}\n\
         chain back {{ udp dport set 49407; meta nfproto ipv4 ip daddr set 192.0.2.1; }}\n}}\n"
    );
    let path = net.folder.join("moves.nft");
    fs::write(&path, rules).unwrap();
    net.exec("ga", &format!("nft -f {}", path.display()));
}

/// The tunnel goes after the near gateway, whose NAT takes other ports and another address, with a transfer, an echo and an idle
/// connection in it.
fn moves(to: &str, listen: &str, moves: &[(u16, &str)]) {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    answer(net, EXCHANGES);
    echo(net, ECHO);
    net.exec("ga", "ip addr add 192.0.2.3/24 dev wan0");
    nat(net, 50_001, "192.0.2.1");
    let more = format!("listen = \"{listen}\"");
    let _gateways = ["gb", "ga"].map(|name| {
        let path = sites.configure(name, &more, "[wan]\nrate = \"4Mbit/s\"");
        let text = fs::read_to_string(&path).unwrap().replace("192.0.2.2:49407", to);
        fs::write(&path, text).unwrap();
        sites.gateway(name, &path)
    });
    sites.connected();
    let (mut keys, mut idle) = (connect(net, ECHO), connect(net, ECHO));
    key(&mut keys);
    key(&mut idle);
    // 12 s.
    let running = exchange(net, EXCHANGES, Exchange { seed: 1, there: 4_000_000, back: 2_000_000 });
    eventually("it runs", || status(&sites, "gb")["connections"] == 3);
    for (port, address) in moves {
        nat(net, *port, address);
        let is_there = || {
            let at = status(&sites, "gb")["peers"][0]["address"].to_string();
            at.contains(&format!(":{port}\"")) && (at.contains(address) || at.contains("fd00:"))
        };
        eventually("the far gateway sends to where it is", is_there);
        key(&mut keys);
    }
    assert_eq!(running.join().unwrap().unwrap(), End::Whole);
    key(&mut idle);
    let whole = exchange(net, EXCHANGES, Exchange { seed: 2, there: 100_000, back: 100_000 });
    assert_eq!(whole.join().unwrap().unwrap(), End::Whole);
    for name in ["ga", "gb"] {
        let state = status(&sites, name);
        assert_eq!(state["resets"], 0, "{state}");
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn a_nat_that_takes_another_port_or_address_breaks_nothing() {
    moves("192.0.2.2:49407", "0.0.0.0:49407", &[(50_002, "192.0.2.1"), (50_003, "192.0.2.3"), (50_001, "192.0.2.1")]);
}

#[test]
#[ignore = "needs root: make linux"]
fn a_nat_of_ipv6_that_takes_another_port_breaks_nothing() {
    moves("[fd00:9::2]:49407", "[::]:49407", &[(50_002, "192.0.2.1"), (50_003, "192.0.2.1")]);
}

/// Two hosts vanish: one with an idle connection, which TCP's keepalive finds, and one for which bytes wait, which the kernel would try for
/// a quarter of an hour. One that lives and does not read keeps its connection.
#[test]
#[ignore = "needs root: make linux"]
fn hosts_that_vanish_are_found_and_those_that_pause_are_not() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    echo(net, ECHO);
    let tables = "[patience]\nkeepalive = 2\nkeepalive_interval = 1\nkeepalive_probes = 3\nuser_timeout = 60";
    let _gateways = sites.gateways("", tables);
    let open = |name| status(&sites, name)["connections"].as_u64().unwrap();
    // Sends without end, to one that goes and one that pauses.
    let source = |address| {
        serve(net, address, |mut stream, _| {
            stream.set_write_timeout(Some(Duration::from_secs(600))).unwrap();
            let error = loop {
                if let Err(error) = stream.write_all(&[7; 4096]) {
                    break error.kind();
                }
            };
            assert!(matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");
        })
    };
    let (to_gone, to_paused) = (source("10.2.0.2:7003"), source("10.2.0.2:7004"));
    let (gone, paused) = (connect(net, "10.2.0.2:7003"), connect(net, "10.2.0.2:7004"));
    let mut idle = connect(net, ECHO);
    key(&mut idle);
    let waits = || status(&sites, "ga")["waiting"].as_array().map_or(0, Vec::len) == 2;
    eventually("bytes wait for two of them", waits);
    // The one that goes reads some, so that its window is open when it goes, and bytes are on the way.
    let ports = [&gone, &idle].map(|stream| stream.local_addr().unwrap().port().to_string()).join(", ");
    let read = Arc::new(AtomicUsize::new(0));
    let (mut reader, counts) = (gone.try_clone().unwrap(), read.clone());
    spawn(move || {
        let mut block = vec![0; 1 << 16];
        while let Ok(some @ 1..) = reader.read(&mut block) {
            counts.fetch_add(some, Ordering::Relaxed);
        }
    });
    eventually("it reads", || read.load(Ordering::Relaxed) > 10_000_000);
    net.exec("c", "nft add table ip gone");
    net.exec("c", "nft add chain ip gone input { type filter hook input priority 0; }");
    net.exec("c", &format!("nft add rule ip gone input tcp dport {{ {ports} }} drop"));
    eventually("the idle one is found", || open("ga") <= 2 && open("gb") <= 2);
    eventually("the other one is found", || open("ga") == 1 && open("gb") == 1);
    to_gone.join().unwrap();
    assert!(!to_paused.is_finished(), "the one that pauses has lost its connection");
    drop(paused);
    eventually("nothing is left", || open("ga") == 0 && open("gb") == 0);
    to_paused.join().unwrap();
}

/// Two thousand connections have carried a byte each, and end: their blocks do not stay with the gateways.
#[test]
#[ignore = "needs root: make linux"]
fn memory_of_connections_that_have_ended_is_returned() {
    const MANY: usize = 2000;
    /// What they may keep, bytes; they use 130 MB with two blocks of 32 KiB each.
    const KEPT: u64 = 30 << 20;
    explicate_net::sys::open_many_files().unwrap();
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let listener = net.inside("s", move || TcpListener::bind("10.2.0.2:7003").unwrap()).join().unwrap();
    let _gateways = sites.gateways("", "");
    let memory = |name| status(&sites, name)["memory_bytes"].as_u64().unwrap();
    let before = ["ga", "gb"].map(memory);
    let serves = spawn(move || {
        let mut all = Vec::new();
        for mut stream in listener.incoming().take(MANY).map(Result::unwrap) {
            stream.write_all(b"k").unwrap();
            all.push(stream);
        }
        all
    });
    let clients: Vec<TcpStream> = (0..MANY).map(|_| connect(net, "10.2.0.2:7003")).collect();
    for mut client in &clients {
        let mut back = [0];
        client.read_exact(&mut back).unwrap();
    }
    let served = serves.join().unwrap();
    let most = ["ga", "gb"].map(memory);
    drop((clients, served));
    eventually("they end", || ["ga", "gb"].iter().all(|name| status(&sites, name)["connections"] == 0));
    let mut after = most;
    eventually("memory is returned", || {
        after = ["ga", "gb"].map(memory);
        after.iter().zip(before).all(|(after, before)| *after < before + KEPT)
    });
    println!("before {before:?}, with {MANY} connections {most:?}, after {after:?}");
    assert!(most.iter().zip(before).all(|(most, before)| *most > before + KEPT), "the test shows nothing: {most:?}");
}
