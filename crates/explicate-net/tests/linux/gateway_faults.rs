//! Faults on the path, at the gateways and at their hosts: every byte arrives, or the connection is reset. Needs root, so `make linux`
//! runs it; `timed::soak` has faults by chance.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use explicate_net::sys::{OFFLOAD_LEN, PacketSocket, interface_index, monotonic, raw_sockets};
use rustix::net::{SendFlags, sendto};

use crate::common::exchanges::{End, Exchange, answer, exchange};
use crate::common::gateways::{Sites, bridge, connect, read_all, status};
use crate::common::{Running, eventually, run};

const SERVER: &str = "10.2.0.2:7001";

/// Sites over a bridge, where a server answers exchanges, and their gateways.
fn joined(tables: &str) -> (Sites, [Running; 2]) {
    joined_at(tables, tables)
}

/// The same with other tables at the far gateway and at the near one.
fn joined_at(far: &str, near: &str) -> (Sites, [Running; 2]) {
    let sites = Sites::new();
    bridge(&sites.net);
    answer(&sites.net, SERVER);
    let gateways =
        [("gb", far), ("ga", near)].map(|(name, tables)| sites.gateway(name, &sites.configure(name, "", tables)));
    sites.connected();
    (sites, gateways)
}

/// An exchange of 2 MB there and 3 MB back arrives whole.
fn assert_carries(sites: &Sites, seed: u64) {
    let whole = exchange(&sites.net, SERVER, Exchange { seed, there: 2_000_000, back: 3_000_000 });
    assert_eq!(whole.join().unwrap().unwrap(), End::Whole);
}

#[test]
#[ignore = "needs root: make linux"]
fn a_path_that_reorders_doubles_damages_and_loses_delivers_every_byte() {
    let sites = Sites::new();
    answer(&sites.net, SERVER);
    let faults = "{ kind = \"reordering\", rate = \"5%\", by = \"30ms\" }, { kind = \"duplication\", rate = \"5%\" }, \
                  { kind = \"corruption\", rate = \"2%\" }, { kind = \"random_loss\", rate = \"1%\" }";
    let there = format!(
        "rate = \"20Mbit/s\", delay = \"20ms\", queue = {{ kind = \"droptail\", limit = \"500kB\" }}, channel = [{faults}]"
    );
    let _link = sites.net.start("l", &["link", "left", "right", "--there", &there]);
    let _gateways = sites.gateways("", "[wan]\nrate = \"19Mbit/s\"");
    for seed in 1..=3 {
        assert_carries(&sites, seed);
    }
    for name in ["ga", "gb"] {
        assert_eq!(status(&sites, name)["resets"], 0);
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn a_kill_of_the_near_gateway_breaks_what_it_carried_and_nothing_more() {
    let fast = "[wan]\nrate = \"20Mbit/s\"";
    let (sites, [_far, near]) = joined_at(fast, "[wan]\nrate = \"2Mbit/s\"");
    // 80 s.
    let carried = exchange(&sites.net, SERVER, Exchange { seed: 1, there: 20_000_000, back: 1000 });
    eventually("the transfer runs", || status(&sites, "gb")["connections"] == 1);
    sleep(Duration::from_millis(500));
    near.stop("KILL");
    let end = carried.join().unwrap();
    assert!(!matches!(end, Ok(End::Whole)), "{end:?}");
    let _near = sites.gateway("ga", &sites.configure("ga", "", fast));
    sites.connected();
    assert_carries(&sites, 2);
    eventually("the far end has ended them", || status(&sites, "gb")["connections"] == 0);
}

/// The far gateway is killed and comes back: connections in either direction, and one that is idle, are reset. `timed::gateway` has
/// how soon.
#[test]
#[ignore = "needs root: make linux"]
fn a_kill_of_the_far_gateway_is_noticed() {
    far_gateway_killed();
}

/// Seconds from the return of a far gateway that was killed to the reset of each connection that it had carried.
pub(crate) fn far_gateway_killed() -> Vec<f64> {
    // 80 s for each transfer.
    let tables = "[wan]\nrate = \"2Mbit/s\"";
    let (sites, [far, _near]) = joined(tables);
    let start = |seed, there, back| {
        let exchange = Exchange { seed, there, back };
        sites.net.inside("c", move || {
            let end = exchange.run(SERVER.parse().unwrap());
            (end, monotonic())
        })
    };
    let mut running = vec![start(1, 20_000_000, 1000)];
    eventually("one runs", || status(&sites, "gb")["connections"] == 1);
    sleep(Duration::from_millis(700));
    running.push(start(3, 1000, 20_000_000));
    eventually("both run", || status(&sites, "gb")["connections"] == 2);
    let mut idle = connect(&sites.net, SERVER);
    idle.write_all(&[0; 10]).unwrap();
    eventually("all are there", || status(&sites, "gb")["connections"] == 3);
    sleep(Duration::from_millis(500));
    far.stop("KILL");
    sleep(Duration::from_millis(300));
    let _far = sites.gateway("gb", &sites.configure("gb", "", tables));
    let back = monotonic();
    assert_eq!(read_all(&idle), Err(ErrorKind::ConnectionReset));
    let seconds = |at: u64| at.saturating_sub(back) as f64 / 1e9;
    let mut took = vec![seconds(monotonic())];
    for exchange in running {
        let (end, at) = exchange.join().unwrap();
        assert!(!matches!(end, Ok(End::Whole)), "{end:?}");
        took.push(seconds(at));
    }
    took
}

/// A TCP segment that opens a connection.
fn syn(from: [u8; 4], port: u16) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ipv4(from, [10, 2, 0, 2], 64).tcp(port, 7001, 9, 65_000).syn();
    let mut packet = vec![0; builder.size(0)];
    builder.write_to_slice(&mut packet, &[]).unwrap();
    packet
}

/// Ten thousand hosts of the site that open a connection and never go on.
#[test]
#[ignore = "needs root: make linux"]
fn ten_thousand_half_open_connections_harm_no_transfer() {
    let (sites, _gateways) = joined("");
    let opened = sites.net.inside("c", || {
        let [socket, _] = raw_sockets().unwrap();
        let to: std::net::SocketAddr = "10.2.0.2:0".parse().unwrap();
        let opens = (0..10_000u32).map(|i| syn([10, 1, 1 + (i / 250) as u8, 1 + (i % 250) as u8], 1024 + i as u16));
        opens.filter(|packet| sendto(socket.as_fd(), packet, SendFlags::empty(), &to).is_ok()).count()
    });
    assert!(opened.join().unwrap() > 9_000);
    assert_carries(&sites, 1);
    let near = status(&sites, "ga");
    assert_eq!(near["intercepted"], 1, "those that never went on are no connections: {near}");
    // Where the kernel keeps nothing of a connection until its second segment.
    sites.net.exec("ga", "sysctl -qw net.ipv4.tcp_syncookies=2");
    assert_carries(&sites, 2);
    assert_eq!(status(&sites, "ga")["intercepted"], 2);
}

/// Nothing can be written: not the log, not the record of the sysctls. The gateway goes on without the one, and does not start to change
/// anything without the other.
#[test]
#[ignore = "needs root: make linux"]
fn a_full_disk_stops_nothing_that_runs() {
    let sites = Sites::new();
    bridge(&sites.net);
    answer(&sites.net, SERVER);
    let _far = sites.gateway("gb", &sites.configure("gb", "", ""));
    let config = sites.configure("ga", "", "");
    let up = sites.net.program("ga", &["gateway", "up", "--config", &config]);
    assert!(up.status.success());
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    let mut command = sites.net.command("ga", &["-v", "gateway", "run", "--config", &config]);
    let near = sites.net.start_command(command.stdout(full()).stderr(full()));
    sites.connected();
    assert_carries(&sites, 1);
    drop(near);

    let down = sites.net.program("ga", &["gateway", "down", "--config", &config]);
    assert!(down.status.success());
    let folder = sites.net.folder.join("ga/run");
    let rules = || sites.net.exec("ga", "nft -t list ruleset");
    let before = rules();
    run(&format!("mount -t tmpfs -o size=4k,nr_inodes=2 full {}", folder.display()));
    fs::write(folder.join("filler"), [0; 4096]).unwrap();
    let up = sites.net.program("ga", &["gateway", "up", "--config", &config]);
    let after = rules();
    run(&format!("umount {}", folder.display()));
    let message = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(!up.status.success() && message.contains("gateway.sysctl") && message.contains("No space"), "{message}");
    assert_eq!(after, before, "nothing was changed");
}

/// The first datagrams of a gateway, sent again from elsewhere on the path: a state of the handshake, and no more. `timed::gateway`
/// has what the window comes to.
#[test]
#[ignore = "needs root: make linux"]
fn a_replayed_first_flight_changes_nothing() {
    first_flight_replayed();
}

/// The window of a gateway in bytes, after a transfer beside its first datagrams, sent again: the true connection keeps its headers.
pub(crate) fn first_flight_replayed() -> f64 {
    let sites = Sites::new();
    bridge(&sites.net);
    answer(&sites.net, SERVER);
    let tables = "[wan]\nrate = \"20Mbit/s\"";
    let _far = sites.gateway("gb", &sites.configure("gb", "", tables));
    let open = |device: &'static str| {
        let opened = move || PacketSocket::open(device, interface_index(device).unwrap(), 4 << 20).unwrap();
        sites.net.inside("l", opened).join().unwrap()
    };
    let mut recorder = open("left");
    let _near = sites.gateway("ga", &sites.configure("ga", "", tables));
    sites.connected();
    let first = first_flight(&mut recorder);
    assert!(first.len() >= 3, "{} frames", first.len());
    let injector = open("right");
    for _ in 0..50 {
        injector.send(first.iter().map(Vec::as_slice)).unwrap();
    }
    assert_carries(&sites, 1);
    let far = status(&sites, "gb");
    assert_eq!((&far["onward"], &far["peers"][0]["connected"]), (&1.into(), &true.into()), "{far}");
    let peer = &status(&sites, "ga")["peers"][0];
    peer["window_bytes"].as_f64().unwrap()
}

/// What a packet socket has seen: UDP from the gateway `ga`, the first frames.
fn first_flight(recorder: &mut PacketSocket) -> Vec<Vec<u8>> {
    let (mut frames, mut frame) = (Vec::new(), Vec::new());
    while recorder.receive(&mut frame).is_some() {
        let ip = frame.get(OFFLOAD_LEN + 14..).unwrap_or_default();
        if ip.len() > 28 && ip[0] == 0x45 && ip[9] == 17 && ip[12..16] == [192, 0, 2, 1] && frames.len() < 6 {
            frames.push(frame.clone());
        }
    }
    frames
}

/// A million datagrams of a stranger: noise, headers with parity, and QUIC's first packets of any version.
#[test]
#[ignore = "needs root: make linux"]
fn a_million_hostile_datagrams_harm_no_transfer() {
    let (sites, [far, _near]) = joined("[wan]\nrate = \"50Mbit/s\"");
    let net = &sites.net;
    net.exec("c", "ip route add 192.0.2.0/24 via 10.1.0.1");
    net.exec("gb", "ip route replace 10.1.0.0/24 via 192.0.2.1");
    let flood = net.inside("c", || {
        let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
        let hostile: Vec<Vec<u8>> = (0..1000).map(hostile).collect();
        (0..1_000_000).filter(|i| socket.send_to(&hostile[i % 1000], "192.0.2.2:49407").is_ok()).count()
    });
    for seed in 1..=3 {
        assert_carries(&sites, seed);
        assert!(fs::exists(format!("/proc/{}", far.id())).unwrap(), "after transfer {seed}");
    }
    assert!(flood.join().unwrap() > 900_000);
    assert_carries(&sites, 4);
    let memory = fs::read_to_string(format!("/proc/{}/status", far.id())).unwrap();
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 150_000, "{kilobytes} kB");
    let peer = &status(&sites, "gb")["peers"][0];
    assert_eq!(peer["connected"], true, "{peer}");
}

fn hostile(number: u64) -> Vec<u8> {
    let mut datagram = crate::common::gateways::content(100 + number as usize % 1300, number);
    let kind = number % 4;
    if kind > 0 {
        // A congestion header and a transport header, with parity in some.
        datagram[..4].copy_from_slice(&[253, 20, 0x31, 1]);
        datagram[20..22].fill(0);
        datagram[22] = kind as u8 % 3;
    }
    if kind == 3 {
        // A long header of QUIC.
        datagram[44] = 0xc0 | number as u8 >> 4;
    }
    datagram
}
