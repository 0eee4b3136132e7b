//! Ends of carried connections: a reset stops its bytes at both gateways, and a close does not. Needs root, so `make linux` runs it;
//! `timed::gateway` has the times.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use crate::common::gateways::{Sites, bridge, connect, content, read_all, reset, serve, status};
use crate::common::{Net, eventually};

/// Writes for as long as the other end takes a block within this time; the bytes that it took.
fn fill(mut stream: &TcpStream, patience: Duration, most: usize) -> usize {
    stream.set_write_timeout(Some(patience)).unwrap();
    let (block, mut sum) = (vec![7; 256 << 10], 0);
    while sum < most {
        match stream.write(&block) {
            Ok(written) if written < block.len() => return sum + written,
            Ok(written) => sum += written,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    sum
}

fn open(sites: &Sites, name: &str) -> u64 {
    status(sites, name)["connections"].as_u64().unwrap()
}

/// Both gateways have so many connections.
fn eventually_open(sites: &Sites, count: u64, what: &str) {
    eventually(what, || ["ga", "gb"].iter().all(|name| open(sites, name) == count));
}

/// How a connection that is accepted at `address` ends for a server that begins to read when `read` is set.
fn late_reader(net: &Net, address: &'static str) -> (Arc<AtomicBool>, JoinHandle<Result<Vec<u8>, ErrorKind>>) {
    let read = Arc::new(AtomicBool::new(false));
    let allowed = read.clone();
    let server = serve(net, address, move |stream, _| {
        while !allowed.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(10));
        }
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        read_all(&stream)
    });
    (read, server)
}

#[test]
#[ignore = "needs root: make linux"]
fn a_reset_stops_its_bytes_at_both_gateways_and_a_close_does_not() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let _gateways = sites.gateways("", "[wan]\nrate = \"1Mbit/s\"");

    // A close with everything read: what was written before it arrives.
    let server = serve(net, "10.2.0.2:7010", |stream, _| read_all(&stream));
    let mut stream = connect(net, "10.2.0.2:7010");
    stream.write_all(&content(300_000, 1)).unwrap();
    drop(stream);
    assert!(server.join().unwrap() == Ok(content(300_000, 1)), "not what was written");
    eventually_open(&sites, 0, "nothing is left of it");

    // The same, and a reset behind it, when the gateway has read all (no byte and no FIN waits there) and the line carries it.
    let server = serve(net, "10.2.0.2:7013", |stream, _| read_all(&stream));
    let mut stream = connect(net, "10.2.0.2:7013");
    stream.write_all(&content(300_000, 2)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let read = || net.exec("ga", "ss -Htn state close-wait").split_whitespace().next() == Some("0");
    eventually("the gateway has read it", read);
    reset(stream);
    assert!(server.join().unwrap() == Ok(content(300_000, 2)), "not what was written");
    eventually_open(&sites, 0, "nothing is left of it");

    // A reset of what the gateway has taken ahead of a narrow line, which carries 125 kB in a second: until it takes no more.
    let received = Arc::new(AtomicU64::new(0));
    let counted = received.clone();
    let server = serve(net, "10.2.0.2:7011", move |mut stream, _| {
        let mut block = vec![0; 64 << 10];
        loop {
            match stream.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(length) => drop(counted.fetch_add(length as u64, Ordering::Relaxed)),
                Err(e) => return Err(e.kind()),
            }
        }
    });
    let stream = connect(net, "10.2.0.2:7011");
    let taken = fill(&stream, Duration::from_secs(1), usize::MAX);
    assert!(taken >= 1_000_000, "the gateway has taken {taken}");
    let before = received.load(Ordering::Relaxed);
    reset(stream);
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset));
    let after = received.load(Ordering::Relaxed) - before;
    assert!(after < 500_000, "{after} after the reset, {before} before it, of {taken}");
    eventually_open(&sites, 0, "the slots are free");

    // A reset before the destination has answered, which would be refused after 20 s.
    net.exec("s", "nft add table ip silent");
    net.exec("s", "nft add chain ip silent input { type filter hook input priority 0; }");
    net.exec("s", "nft add rule ip silent input tcp dport 7012 drop");
    let stream = connect(net, "10.2.0.2:7012");
    eventually_open(&sites, 1, "the far gateway calls the destination");
    let refused = status(&sites, "gb")["refused"].as_u64();
    reset(stream);
    eventually_open(&sites, 0, "the slots are free");
    assert_eq!(status(&sites, "gb")["refused"].as_u64(), refused, "it waited for the destination");
}

/// The other direction of each connection is full, too: nobody reads where the bytes wait.
#[test]
#[ignore = "needs root: make linux"]
fn a_reset_ends_what_waits_for_hosts_that_do_not_read() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let _gateways = sites.gateways("", "");
    const PATIENCE: Duration = Duration::from_millis(500);

    // The server does not read, and the client resets.
    let (read, server) = late_reader(net, "10.2.0.2:7010");
    let stream = connect(net, "10.2.0.2:7010");
    let taken = fill(&stream, PATIENCE, usize::MAX);
    reset(stream);
    eventually_open(&sites, 0, "the slots are free");
    read.store(true, Ordering::Relaxed);
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset), "after {taken} bytes");

    // The client does not read, and the server resets.
    let server = serve(net, "10.2.0.2:7011", |stream, _| {
        let taken = fill(&stream, PATIENCE, usize::MAX);
        reset(stream);
        taken
    });
    let stream = connect(net, "10.2.0.2:7011");
    let taken = server.join().unwrap();
    eventually_open(&sites, 0, "the slots are free");
    assert_eq!(read_all(&stream), Err(ErrorKind::ConnectionReset), "after {taken} bytes");

    // Neither reads, and the client resets.
    let (sent, filled) = std::sync::mpsc::channel();
    let server = serve(net, "10.2.0.2:7012", move |stream, _| {
        sent.send(fill(&stream, PATIENCE, usize::MAX)).unwrap();
        let _ = sent.send(0);
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        read_all(&stream)
    });
    let stream = connect(net, "10.2.0.2:7012");
    fill(&stream, PATIENCE, usize::MAX);
    filled.recv().unwrap();
    reset(stream);
    eventually_open(&sites, 0, "the slots are free");
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset));
}

/// The same without a tunnel, where one gateway connects to the destination.
#[test]
#[ignore = "needs root: make linux"]
fn a_reset_ends_direct_connections_whose_hosts_do_not_read() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let _near = sites.gateway("ga", &sites.configure("ga", "", ""));
    eventually("the gateway runs", || net.folder.join("ga/run/gateway.sock").exists());
    let (read, server) = late_reader(net, "10.2.0.2:7010");
    let stream = connect(net, "10.2.0.2:7010");
    fill(&stream, Duration::from_millis(500), usize::MAX);
    reset(stream);
    eventually("the slot is free", || open(&sites, "ga") == 0);
    read.store(true, Ordering::Relaxed);
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset));
    let server = serve(net, "10.2.0.2:7011", |stream, _| read_all(&stream));
    let mut stream = connect(net, "10.2.0.2:7011");
    stream.write_all(&content(300_000, 1)).unwrap();
    drop(stream);
    assert!(server.join().unwrap() == Ok(content(300_000, 1)), "not what was written");
    assert_eq!(status(&sites, "ga")["direct"], 2);
}
