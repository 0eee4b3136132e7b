//! A gateway as a service: what systemd learns, a new configuration without an interruption, and what holds when it has ended. Needs
//! root, so `make linux` runs it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::common::exchanges::{End, Exchange, answer, exchange};
use crate::common::gateways::{Sites, bridge, connect, kernel, read_all, serve, status};
use crate::common::{PATIENCE, eventually, uninterrupted};

const SERVER: &str = "10.2.0.2:7001";

#[test]
#[ignore = "needs root: make linux"]
fn systemd_learns_that_it_is_ready_alive_reloads_and_stops() {
    let sites = Sites::new();
    let path = sites.net.folder.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = sites.configure("ga", "", "");
    let mut command = sites.net.command("ga", &["gateway", "run", "--config", &config]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000").stdout(Stdio::piped()).stderr(Stdio::piped());
    let gateway = sites.net.start_command(&mut command);
    let next = || {
        let mut message = [0; 500];
        let length = uninterrupted(|| manager.recv(&mut message)).unwrap();
        String::from_utf8_lossy(&message[..length]).trim().to_string()
    };
    assert_eq!(next(), "READY=1");
    for _ in 0..3 {
        assert_eq!(next(), "WATCHDOG=1");
    }
    gateway.signal("HUP");
    let other = || std::iter::repeat_with(next).find(|message| !message.starts_with("WATCHDOG")).unwrap();
    let reloading = other();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(other(), "READY=1");
    gateway.signal("TERM");
    assert_eq!(other(), "STOPPING=1");
}

/// Rate, networks and peers change while connections go on; a mistake changes nothing.
#[test]
#[ignore = "needs root: make linux"]
fn a_reload_keeps_connections_and_takes_the_new_rate_networks_and_peers() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    answer(net, SERVER);
    let tables = "[wan]\nrate = \"8Mbit/s\"";
    let _far = sites.gateway("gb", &sites.configure("gb", "", tables));
    // As systemd it hears when a reload is over.
    let path = net.folder.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let near = sites.configure("ga", "", tables);
    assert!(net.program("ga", &["gateway", "up", "--config", &near]).status.success());
    let mut command = net.command("ga", &["gateway", "run", "--config", &near]);
    command.env("NOTIFY_SOCKET", &path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let near = net.start_command(&mut command);
    let ready = || {
        let mut message = [0; 500];
        while &message[..7] != b"READY=1" {
            uninterrupted(|| manager.recv(&mut message)).unwrap();
        }
    };
    ready();
    sites.connected();
    let server = serve(net, "10.2.0.2:7002", |mut stream, _| {
        stream.write_all(b"before").unwrap();
        stream.read_exact(&mut [0; 3]).unwrap();
        stream.write_all(b"after").unwrap();
    });
    let mut stream = connect(net, "10.2.0.2:7002");
    stream.read_exact(&mut [0; 6]).unwrap();

    let rate = || status(&sites, "ga")["port"]["rate_bps"].as_f64().unwrap();
    let file = sites.configure("ga", "", "[wan]\nrate = \"5Mbit/s\"");
    let good = fs::read_to_string(&file).unwrap();
    near.signal("HUP");
    ready();
    eventually("the new rate is in force", || rate() == 5e6);
    fs::write(&file, good.replace("5Mbit/s", "nonsense")).unwrap();
    near.signal("HUP");
    ready();
    fs::write(&file, &good).unwrap();
    assert_eq!(rate(), 5e6, "a mistake changes nothing");

    // The first peer's networks are others now, and there is one more peer.
    let more = format!(
        "[[peer]]\nname = \"third\"\nkey = \"explicate-gateway-1:{}\"\nnetworks = [\"10.3.0.0/16\"]\n",
        "ab".repeat(32)
    );
    fs::write(&file, good.replace("\"10.2.0.0/16\"", "\"10.2.0.0/24\"") + &more).unwrap();
    assert!(net.program("ga", &["gateway", "up", "--config", &file]).status.success());
    near.signal("HUP");
    eventually("the new peer is there", || status(&sites, "ga")["peers"].as_array().unwrap().len() == 2);
    assert!(net.exec("ga", "nft list ruleset").contains("10.3.0.0/16"));

    stream.write_all(b"now").unwrap();
    assert_eq!(read_all(&stream).unwrap(), b"after");
    server.join().unwrap();
    let whole = exchange(net, SERVER, Exchange { seed: 1, there: 100_000, back: 100_000 });
    assert_eq!(whole.join().unwrap().unwrap(), End::Whole);
    let report = status(&sites, "ga");
    assert_eq!((&report["resets"], &report["peers"][0]["connected"]), (&0.into(), &true.into()), "{report}");

    // A peer that is no longer named is disconnected.
    fs::write(&file, good.replace(&sites.keys[1], &format!("explicate-gateway-1:{}", "cd".repeat(32)))).unwrap();
    near.signal("HUP");
    eventually("it is disconnected", || status(&sites, "gb")["peers"][0]["connected"] == false);
}

/// A reload begins with `up`. Here nft refuses its rules, and nothing else.
#[test]
#[ignore = "needs root: make linux"]
fn an_up_that_fails_leaves_what_a_running_gateway_has() {
    let sites = Sites::new();
    let config = sites.configure("ga", "", "");
    let _gateway = sites.gateway("ga", &config);
    let before = kernel(&sites.net, "ga");
    let programs = sites.net.folder.join("programs");
    fs::create_dir(&programs).unwrap();
    let nft = "#!/bin/sh\ninput=$(cat)\ncase $input in *tproxy*) echo refused >&2; exit 1;; esac\nPATH=${PATH#*:}\necho \"$input\" | nft \"$@\"\n";
    fs::write(programs.join("nft"), nft).unwrap();
    fs::set_permissions(programs.join("nft"), fs::Permissions::from_mode(0o755)).unwrap();
    let first = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", programs.display());
    let up = sites.net.command("ga", &["gateway", "up", "--config", &config]).env("PATH", first).output().unwrap();
    assert!(!up.status.success() && String::from_utf8_lossy(&up.stderr).contains("`nft -f -`: refused"));
    assert_eq!(kernel(&sites.net, "ga"), before);
}

/// Each connection is an open file, and a shell's limit is 1024.
#[test]
#[ignore = "needs root: make linux"]
fn a_gateway_may_open_as_many_files_as_the_system_permits() {
    let sites = Sites::new();
    let config = sites.configure("ga", "", "");
    let run = sites.net.command("ga", &["gateway", "run", "--config", &config]);
    let mut limited = Command::new("prlimit");
    limited.arg("--nofile=256:8192").arg(run.get_program()).args(run.get_args());
    let gateway = sites.net.start_command(limited.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let limits = fs::read_to_string(format!("/proc/{}/limits", gateway.id())).unwrap();
    let files: Vec<&str> =
        limits.lines().find(|l| l.starts_with("Max open files")).unwrap().split_whitespace().collect();
    assert_eq!(files[3..5], ["8192", "8192"], "{limits}");
}

/// The limit of open files is reached for a while.
#[test]
#[ignore = "needs root: make linux"]
fn the_status_comes_back_after_a_lack_of_descriptors() {
    let sites = Sites::new();
    let config = sites.configure("ga", "", "");
    let gateway = sites.gateway("ga", &config);
    let ask = || sites.net.program("ga", &["gateway", "status", "--config", &config]).status.success();
    eventually("it answers", ask);
    let limit = |most: u64| {
        let limit = Rlimit { current: Some(most), maximum: Some(1024) };
        prlimit(Pid::from_raw(gateway.id() as i32), Resource::Nofile, limit).unwrap();
    };
    limit(1);
    assert!(!ask());
    limit(1024);
    eventually("it answers again", ask);
}

/// The service ends by a crash: with `when_down = "direct"` the kernel routes connections, with `reset` they are refused, until `up` or `down`.
#[test]
#[ignore = "needs root: make linux"]
fn a_service_that_has_ended_fails_open_or_closed_as_configured() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    answer(net, SERVER);
    net.exec("ga", "ip route add 10.2.0.0/16 via 192.0.2.2");
    net.exec("gb", "ip route add 10.1.0.0/16 via 192.0.2.1");
    let connects = || {
        let connecting = || TcpStream::connect_timeout(&SERVER.parse().unwrap(), PATIENCE).is_ok();
        net.inside("c", connecting).join().unwrap()
    };
    for (when_down, open) in [("direct", true), ("reset", false)] {
        let config = sites.configure("ga", "", &format!("when_down = \"{when_down}\""));
        let gateway = sites.gateway("ga", &config);
        // The operator makes a mistake, and then it crashes.
        let valid = fs::read_to_string(&config).unwrap();
        fs::write(&config, valid.replace("when_down", "when_dwon")).unwrap();
        gateway.stop("KILL");
        let stopped = net.program("ga", &["gateway", "down", "--stopped", "--config", &config]);
        assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stderr));
        assert_eq!(connects(), open, "{when_down}");
        assert!(net.program("ga", &["gateway", "down", "--config", &config]).status.success());
        assert!(connects(), "after `down`");
        assert_eq!(net.exec("ga", "nft list ruleset"), "");
    }
}

/// TCP that is routed beside the tunnel learns a segment size that the line bears, in both directions.
#[test]
#[ignore = "needs root: make linux"]
fn the_segment_size_of_other_connections_fits_the_line() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    net.exec("ga", "ip link set wan0 mtu 1300");
    net.exec("gb", "ip route add 10.1.0.0/16 via 192.0.2.1");
    // A network behind the line that is no peer's.
    net.exec("s", "ip addr add 10.9.0.2/32 dev lo");
    net.exec("gb", "ip route add 10.9.0.2/32 via 10.2.0.2");
    net.exec("ga", "ip route add 10.9.0.0/16 via 192.0.2.2");
    let segment = |host: &str| {
        let sockets = net.exec(host, "ss -tinH");
        let words = sockets.split_whitespace().filter_map(|word| word.strip_prefix("mss:"));
        words.map(|bytes| bytes.parse::<u32>().unwrap()).max().unwrap()
    };
    for wan in ["", "rate = \"10Mbit/s\"\n"] {
        let tables = format!("[wan]\n{wan}interface = \"wan0\"");
        let config = sites.configure("ga", "", &tables);
        let gateway = sites.gateway("ga", &config);
        let server = serve(net, "10.9.0.2:7003", move |stream, _| {
            let mut all = String::new();
            (&stream).read_to_string(&mut all).unwrap();
            all.len()
        });
        let mut stream = connect(net, "10.9.0.2:7003");
        stream.write_all(&[b'x'; 200_000]).unwrap();
        let segments = [segment("c"), segment("s")];
        drop(stream);
        // The MTU without 40 bytes of headers.
        assert!(segments.iter().all(|bytes| (1200..=1260).contains(bytes)), "{segments:?} bytes");
        assert_eq!(server.join().unwrap(), 200_000);
        assert!(net.program("ga", &["gateway", "down", "--config", &config]).status.success());
        drop(gateway);
    }
}
