//! Ends of carried connections: a reset stops its bytes at both gateways, a close does not, and hosts that do not read hold up no others.
//! Needs root, so `make linux` runs it; `timed::gateway` has the times.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use crate::common::exchanges::{End, Exchange, answer, exchange};
use crate::common::gateways::{Sites, bridge, connect, content, read_all, reset, serve, status};
use crate::common::{Net, PATIENCE, eventually, uninterrupted};

const EXCHANGES: &str = "10.2.0.2:7001";
/// Sends without end.
const SOURCE: &str = "10.2.0.2:7005";
/// Accepts connections, and never reads.
const UNREAD: &str = "10.2.0.2:7006";
/// Reads at once.
const SINK: &str = "10.2.0.2:7007";
/// Sends back what it reads.
const ECHO: &str = "10.2.0.2:7008";

/// Serves all connections at an address of `s`, each in a thread.
fn serve_all(net: &Net, address: &'static str, what: impl Fn(TcpStream) + Send + Sync + 'static) {
    let listener = net.inside("s", move || TcpListener::bind(address).unwrap()).join().unwrap();
    let what = Arc::new(what);
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let what = what.clone();
            spawn(move || what(stream));
        }
    });
}

/// Writes for as long as the other end takes a block within this time; the bytes that it took. On a busy machine it may end sooner.
fn fill(mut stream: &TcpStream, pause: Duration, most: usize) -> usize {
    stream.set_write_timeout(Some(pause)).unwrap();
    let (block, mut sum) = (vec![7; 256 << 10], 0);
    while sum < most {
        match uninterrupted(|| stream.write(&block)) {
            Ok(written) => sum += written,
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
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
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
    let _gateways = sites.gateways("", "[wan]\nrate = \"250kbit/s\"");

    // A close with everything read: what was written before it arrives.
    let server = serve(net, "10.2.0.2:7010", |stream, _| read_all(&stream));
    let mut stream = connect(net, "10.2.0.2:7010");
    stream.write_all(&content(100_000, 1)).unwrap();
    drop(stream);
    assert!(server.join().unwrap() == Ok(content(100_000, 1)), "not what was written");
    eventually_open(&sites, 0, "nothing is left of it");

    // The same, and a reset behind it, when the gateway has read all (no byte and no FIN waits there) and the line carries it.
    let server = serve(net, "10.2.0.2:7013", |stream, _| read_all(&stream));
    let mut stream = connect(net, "10.2.0.2:7013");
    stream.write_all(&content(100_000, 2)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let read = || net.exec("ga", "ss -Htn state close-wait").split_whitespace().next() == Some("0");
    eventually("the gateway has read it", read);
    // It answers behind the events that came before, that of the FIN with them.
    open(&sites, "ga");
    reset(stream);
    assert!(server.join().unwrap() == Ok(content(100_000, 2)), "not what was written");
    eventually_open(&sites, 0, "nothing is left of it");

    // A reset of what the gateway has taken ahead of a narrow line, which needs half a minute for it.
    let received = Arc::new(AtomicU64::new(0));
    let counted = received.clone();
    let server = serve(net, "10.2.0.2:7011", move |mut stream, _| {
        let mut block = vec![0; 64 << 10];
        loop {
            match uninterrupted(|| stream.read(&mut block)) {
                Ok(0) => return Ok(()),
                Ok(length) => drop(counted.fetch_add(length as u64, Ordering::Relaxed)),
                Err(e) => return Err(e.kind()),
            }
        }
    });
    let stream = connect(net, "10.2.0.2:7011");
    let mut taken = 0;
    eventually("the gateway takes a million bytes", || {
        taken += fill(&stream, Duration::from_millis(500), usize::MAX);
        taken >= 1_000_000
    });
    reset(stream);
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset));
    let received = received.load(Ordering::Relaxed);
    assert!(received < taken as u64, "all {taken} arrived after the reset");
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

/// The other direction of each connection is full, too: no host reads where the bytes wait.
#[test]
#[ignore = "needs root: make linux"]
fn a_reset_ends_what_waits_for_hosts_that_do_not_read() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let _gateways = sites.gateways("", "");
    const PAUSE: Duration = Duration::from_millis(500);

    // The server does not read, and the client resets.
    let (read, server) = late_reader(net, "10.2.0.2:7010");
    let stream = connect(net, "10.2.0.2:7010");
    let taken = fill(&stream, PAUSE, usize::MAX);
    reset(stream);
    eventually_open(&sites, 0, "the slots are free");
    read.store(true, Ordering::Relaxed);
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset), "after {taken} bytes");

    // The client does not read, and the server resets.
    let server = serve(net, "10.2.0.2:7011", |stream, _| {
        let taken = fill(&stream, PAUSE, usize::MAX);
        reset(stream);
        taken
    });
    let stream = connect(net, "10.2.0.2:7011");
    let taken = server.join().unwrap();
    eventually_open(&sites, 0, "the slots are free");
    assert_eq!(read_all(&stream), Err(ErrorKind::ConnectionReset), "after {taken} bytes");

    // Neither reads before the client has reset.
    let (sent, filled) = std::sync::mpsc::channel();
    let (has_reset, read) = std::sync::mpsc::channel();
    let server = serve(net, "10.2.0.2:7012", move |stream, _| {
        sent.send(fill(&stream, PAUSE, usize::MAX)).unwrap();
        read.recv().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        read_all(&stream)
    });
    let stream = connect(net, "10.2.0.2:7012");
    fill(&stream, PAUSE, usize::MAX);
    filled.recv().unwrap();
    reset(stream);
    eventually_open(&sites, 0, "the slots are free");
    has_reset.send(()).unwrap();
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
    stream.write_all(&content(100_000, 1)).unwrap();
    drop(stream);
    assert!(server.join().unwrap() == Ok(content(100_000, 1)), "not what was written");
    assert_eq!(status(&sites, "ga")["direct"], 2);
}

/// What `gateway why` says.
fn why(sites: &Sites, name: &str) -> String {
    let config = sites.net.folder.join(name).join("gateway.toml");
    let output = sites.net.program(name, &["gateway", "why", "--config", config.to_str().unwrap()]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// So many connections wait for a host for more than a second, at the near end of the tunnel or at the far one.
fn waiting(sites: &Sites, name: &str, whose: &str) -> usize {
    let report = status(sites, name);
    let all = report["waiting"].as_array().into_iter().flatten();
    all.filter(|waits| waits[whose]["now_s"].as_f64() > Some(1.0)).count()
}

/// Paused and slow downloads and uploads to servers that never read: others go on, `why` names the hosts, and their ends free all.
#[test]
#[ignore = "needs root: make linux"]
fn hosts_that_do_not_read_hold_up_no_others() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    answer(net, EXCHANGES);
    serve_all(net, SOURCE, |stream| {
        fill(&stream, Duration::from_secs(600), usize::MAX);
    });
    serve_all(net, UNREAD, |_stream| sleep(Duration::from_secs(600)));
    let _gateways = sites.gateways("", "");
    let goes_on = |seed| {
        let whole = exchange(net, EXCHANGES, Exchange { seed, there: 2_000_000, back: 3_000_000 });
        assert_eq!(whole.join().unwrap().unwrap(), End::Whole);
    };
    let mut paused = Vec::new();
    for count in [2, 8, 32] {
        while paused.len() < count {
            paused.push(connect(net, SOURCE));
        }
        eventually("they fill what they get", || waiting(&sites, "ga", "host") == count);
        eventually("and the far end waits for them", || waiting(&sites, "gb", "peer") == count);
        goes_on(count as u64);
    }
    let first = paused[0].local_addr().unwrap();
    let (here, there) = (why(&sites, "ga"), why(&sites, "gb"));
    assert!(here.contains("32 connections") && here.contains(&format!("{first} to {SOURCE}")), "{here}");
    assert!(there.contains("32 connections") && there.contains("does not read"), "{there}");
    assert!(!here.contains("nothing here") && !there.contains("nothing here"), "{here}{there}");

    // Slow ones, too.
    let slow = [0; 2].map(|_| {
        let stream = connect(net, SOURCE);
        let mut reads = stream.try_clone().unwrap();
        spawn(move || {
            while uninterrupted(|| reads.read(&mut [0; 2000])).is_ok_and(|read| read > 0) {
                sleep(Duration::from_millis(100))
            }
        });
        stream
    });
    goes_on(101);

    // Uploads to servers that never read.
    let uploads: Vec<TcpStream> = (0..8).map(|_| connect(net, UNREAD)).collect();
    eventually("the far end waits for its hosts", || {
        // On a busy machine a write waits for longer than this before the hosts have all that they take.
        for stream in &uploads {
            fill(stream, Duration::from_millis(200), usize::MAX);
        }
        waiting(&sites, "gb", "host") == 8
    });
    goes_on(102);
    let there = why(&sites, "gb");
    assert!(there.contains(UNREAD), "{there}");

    // The clients end: downloads by a close behind unread bytes, which resets, and uploads by a reset.
    paused.clear();
    slow.into_iter().for_each(|stream| stream.shutdown(Shutdown::Both).unwrap());
    uploads.into_iter().for_each(reset);
    eventually_open(&sites, 0, "all slots are free");
    goes_on(103);
}

/// `timed::gateway` has how long.
#[test]
#[ignore = "needs root: make linux"]
fn keystrokes_come_back_beside_uploads() {
    keys_beside_uploads();
}

/// The most bytes that arrive at the sink of five uploads over 2 Mbit/s while one of five echoes is on its way, and what limits them.
pub(crate) fn keys_beside_uploads() -> (u64, String) {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let arrived = Arc::new(AtomicU64::new(0));
    let counted = arrived.clone();
    serve_all(net, SINK, move |mut stream| {
        let mut block = vec![0; 64 << 10];
        while let Ok(length @ 1..) = stream.read(&mut block) {
            counted.fetch_add(length as u64, Ordering::Relaxed);
        }
    });
    serve_all(net, ECHO, |mut stream| {
        let mut key = [0];
        while stream.read_exact(&mut key).and_then(|()| stream.write_all(&key)).is_ok() {}
    });
    let _gateways = sites.gateways("", "[wan]\nrate = \"2Mbit/s\"");
    let stop = Arc::new(AtomicBool::new(false));
    let uploads: Vec<JoinHandle<()>> = (0..5)
        .map(|_| {
            let (stream, stop) = (connect(net, SINK), stop.clone());
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    fill(&stream, Duration::from_millis(100), 1 << 20);
                }
                reset(stream);
            })
        })
        .collect();
    let at = || arrived.load(Ordering::Relaxed);
    eventually("the uploads run", || at() > 500_000);
    let mut keys = connect(net, ECHO);
    let mut most = 0;
    for _ in 0..5 {
        let before = at();
        keys.write_all(b"k").unwrap();
        keys.read_exact(&mut [0]).unwrap();
        most = most.max(at() - before);
        sleep(Duration::from_millis(100));
    }
    let why = why(&sites, "ga");
    stop.store(true, Ordering::Relaxed);
    uploads.into_iter().for_each(|upload| upload.join().unwrap());
    drop(keys);
    eventually_open(&sites, 0, "all slots are free");
    (most, why)
}
