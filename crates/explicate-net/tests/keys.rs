//! Who may send, over the loopback interface: greetings, cookies, keys and limits, attacked by sockets of this test. No root needed.

mod datagrams;

use std::fs;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use datagrams::{HIGH, PLAIN, answer, answers, bytes, data, file, numbered, open, pair, turn};
use explicate_core::datagram;
use explicate_core::flow::{Flow, FlowInit};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::sink::Sink;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{UDP_PORT, flag};
use explicate_net::clock::Clock;
use explicate_net::endpoint::Endpoint;
use explicate_net::endpoint::auth::{Key, SHORT};
use explicate_net::endpoint::content::Supply;
use explicate_net::endpoint::gate::Admission;
use explicate_net::endpoint::hello::{Content, Hello};
use explicate_net::endpoint::message::{DIGEST, Message, Refusal, number};
use explicate_net::endpoint::opening::Opening;
use explicate_net::endpoint::receiving::Limits;
use explicate_net::endpoint::sending::{Plan, Sending, Standing};
use explicate_net::sys::monotonic;
use explicate_scenario::machines::source::Source;

const PROGRAM: &str = env!("CARGO_BIN_EXE_explicated");
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder as long as this lives.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let name = format!("explicate-keys-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
    /// A new key's file.
    fn key(&self, name: &str) -> String {
        let path = self.path(name);
        Key::random().unwrap().save(Path::new(&path)).unwrap();
        path
    }
    /// A file of so many bytes.
    fn content(&self, name: &str, size: usize) -> (String, Vec<u8>) {
        let mut rng = Rng::stream(size as u64, name);
        let content: Vec<u8> = (0..size).map(|_| rng.next_u64() as u8).collect();
        let path = self.path(name);
        fs::write(&path, &content).unwrap();
        (path, content)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Says when it goes that other threads may end, also where a test fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `recv` at a port of this machine.
struct Recv {
    child: Child,
    address: SocketAddrV4,
}

impl Recv {
    fn start(arguments: &[&str]) -> Recv {
        // A port that was free a moment ago.
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let SocketAddr::V4(address) = free else { panic!("IPv4") };
        let mut command = Command::new(PROGRAM);
        command.args(["recv", "--interval", "0", "--bind", &address.to_string()]).args(arguments);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let recv = Recv { child, address };
        let asks = UdpSocket::bind("127.0.0.1:0").unwrap();
        asks.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let knock = bytes(&Message::knock(1 << 40).to_packet(), &[]);
        let up = |_| asks.send_to(&knock, recv.address).is_ok() && answer(&asks).is_some();
        assert!((0..100).any(up), "the receiver does not answer");
        recv
    }
    fn facts(&self) -> (usize, u64) {
        let process = self.child.id();
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        (descriptors, line.trim().trim_end_matches(" kB").parse().unwrap())
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(to: SocketAddrV4, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(["send", "--interval", "0", &to.to_string()]).args(arguments).output().unwrap()
}

/// What is said of a `send` that fails.
fn fails(to: SocketAddrV4, arguments: &[&str]) -> String {
    let output = send(to, arguments);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// A socket of this address that waits for answers, not for long.
fn socket(address: &str, peer: SocketAddrV4) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.connect(peer).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

fn flows(end: &Endpoint) -> usize {
    end.receivers.as_ref().unwrap().flows.len()
}

/// Finding 3 of a test of version 0.1: 57 kbit/s stopped its receiver.
#[test]
fn greetings_without_a_cookie_leave_no_state_and_honest_transfers_alone() {
    let folder = Folder::new();
    let (key, into) = (folder.key("key"), folder.path("in"));
    let recv = Recv::start(&["--key", &key, "--to", &into]);
    let (before, done) = (recv.facts(), AtomicBool::new(false));
    let attacker = socket("127.0.0.1", recv.address);
    let syn = |i: u32| numbered(flag::SYN, i, 0, file(&format!("f{i}"), 1 << 20).as_bytes());
    for i in 0..1100 {
        let _ = attacker.send(&syn(i));
    }
    scope(|threads| {
        threads.spawn(|| {
            for i in 1100.. {
                let _ = attacker.send(&syn(i));
                sleep(Duration::from_millis(20));
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let _done = Done(&done);
        for name in ["a", "b", "c"] {
            let (path, content) = folder.content(name, 300_000);
            let begun = monotonic();
            let output = send(recv.address, &[&path, "--key", &key]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let took = monotonic() - begun;
            assert!(took < 8_000_000_000, "{took} ns");
            assert!(fs::read(Path::new(&into).join(name)).unwrap() == content);
        }
    });
    let after = recv.facts();
    assert!(after.0 <= before.0 + 4, "{} descriptors, then {}", before.0, after.0);
    assert!(after.1 < before.1 + 8192, "{} kB, then {}", before.1, after.1);
    let named = |e: fs::DirEntry| e.file_name().into_string().unwrap();
    let left: Vec<String> =
        fs::read_dir(&into).unwrap().map(|e| named(e.unwrap())).filter(|n| n.contains('f')).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn nobody_without_the_key_sends_anything() {
    let folder = Folder::new();
    let (key, other, into) = (folder.key("key"), folder.key("other"), folder.path("in"));
    let recv = Recv::start(&["--key", &key, "--to", &into]);
    let (path, content) = folder.content("a", 50_000);
    assert!(fails(recv.address, &[&path]).contains("--key FILE"));
    assert!(fails(recv.address, &[&path, "--key", &other]).contains("another key"));
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
    let output = send(recv.address, &[&path, "--key", &key]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read(Path::new(&into).join("a")).unwrap() == content);
    let probed = Command::new(PROGRAM).args(["probe", &recv.address.to_string(), "-t", "1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&probed.stderr).contains("the same key"), "{probed:?}");
    // Whoever asks for proof does not take none for it.
    let open = Recv::start(&["--to", &into]);
    assert!(fails(open.address, &[&path, "--key", &key]).contains("without a key"));
}

/// An end that asks for this key; it remembers for three seconds.
fn locked(key: &Key) -> (Endpoint, UdpSocket, SocketAddrV4) {
    let limits = Limits { admission: Admission::Key(key.clone()), idle: Time::secs(3), ..Limits::default() };
    let (end, socket) = pair(limits);
    let SocketAddr::V4(address) = end.address().unwrap() else { panic!("IPv4") };
    (end, socket, address)
}

/// The greeting of a flow by whoever has the key.
fn signed(end: &mut Endpoint, socket: &UdpSocket, flow: u32, key: &Key) -> Vec<u8> {
    let hello = Hello::parse(PLAIN.as_bytes()).unwrap();
    let mut opening = Opening::new(number(HIGH, flow), &hello, Some(key.clone()), Time::ZERO);
    socket.send(&bytes(&Message::knock(number(HIGH, flow)).to_packet(), &[])).unwrap();
    turn(end);
    let Some(Message::Cookie(_, cookie)) = answer(socket) else { panic!("no cookie") };
    opening.take_cookie(Time::ZERO, cookie);
    numbered(flag::SYN, flow, 0, opening.greeting(0).as_bytes())
}

#[test]
fn a_greeting_that_is_replayed_or_changed_opens_nothing() {
    let key = Key::random().unwrap();
    let (mut end, honest, address) = locked(&key);
    let good = signed(&mut end, &honest, 5, &key);
    // Each bit that is changed on the way spoils it. Those of the packet's number, its time stamp and the congestion header are not the
    // greeting's.
    let words = explicate_core::wire::TRANSPORT_LEN;
    for at in (words..good.len()).step_by(3).chain([1, 5, 17]) {
        let mut changed = good.clone();
        changed[at] ^= 0x10;
        honest.send(&changed).unwrap();
    }
    turn(&mut end);
    assert_eq!(flows(&end), 0);
    answers(&honest);
    honest.send(&good).unwrap();
    turn(&mut end);
    assert_eq!((flows(&end), answers(&honest).len()), (1, 1));

    // From another port, and another address: a cookie for whoever is there, if he is.
    for address in ["127.0.0.1", "127.0.0.3"].map(|from| socket(from, address)) {
        address.send(&good).unwrap();
        turn(&mut end);
        assert!(matches!(answer(&address), Some(Message::Cookie(..))));
    }
    assert_eq!(flows(&end), 1);
    // At once, from the right place: its own flow, once more.
    honest.send(&good).unwrap();
    turn(&mut end);
    assert_eq!((flows(&end), answers(&honest).len()), (1, 1));
    // Once the flow is forgotten the cookie is too old.
    let until = end.now() + Time::millis(4500);
    end.run(until, &|e| flows(e) == 0).unwrap();
    assert_eq!(flows(&end), 0);
    honest.send(&good).unwrap();
    turn(&mut end);
    assert!(matches!(answer(&honest), Some(Message::Cookie(..))));
    assert_eq!(flows(&end), 0);
}

#[test]
fn whoever_guesses_half_of_a_number_neither_feeds_nor_ends_a_flow() {
    let (mut end, socket) = pair(Limits::default());
    open(&mut end, &socket, 7, PLAIN);
    assert_eq!((flows(&end), answers(&socket).len()), (1, 1));
    // From the right address and port.
    let with = |high: u32, mut bytes: Vec<u8>| {
        bytes[16..20].copy_from_slice(&high.to_be_bytes());
        bytes
    };
    let fin = |high| with(high, numbered(flag::FIN, 7, 0, &[1; 900]));
    for high in [0, HIGH ^ 1, HIGH << 1] {
        socket.send(&with(high, data(7, 0, 900))).unwrap();
        socket.send(&fin(high)).unwrap();
        socket.send(&bytes(&Message::Question(number(high, 7), [0; DIGEST]).to_packet(), &[])).unwrap();
    }
    turn(&mut end);
    let receivers = end.receivers.as_ref().unwrap();
    assert_eq!(receivers.counters.strays, 9);
    assert!(receivers.flows.values().all(|f| f.sink.stats().payload == 0) && receivers.ended.is_empty());
    socket.send(&fin(HIGH)).unwrap();
    turn(&mut end);
    assert!(end.receivers.as_ref().unwrap().flows.values().all(|f| f.sink.stats().payload == 900));
}

#[test]
fn each_address_has_its_share() {
    let limits = Limits { flows: 8, flows_per_source: 3, ..Limits::default() };
    let (mut end, first) = pair(limits);
    let SocketAddr::V4(address) = end.address().unwrap() else { panic!("IPv4") };
    let mut refusals = Vec::new();
    for (from, count) in [("127.0.0.1", 5), ("127.0.0.2", 5), ("127.0.0.3", 4)] {
        for i in 0..count {
            // Other ports are no other source.
            let socket = socket(from, address);
            open(&mut end, &socket, i, PLAIN);
            refusals.extend(answer(&socket).map(|told| (from, told)));
        }
    }
    let full = |i| Message::Refused(number(HIGH, i), Refusal::Full);
    let per_source = |i| Message::Refused(number(HIGH, i), Refusal::PerSource);
    let expected = [
        ("127.0.0.1", per_source(3)),
        ("127.0.0.1", per_source(4)),
        ("127.0.0.2", per_source(3)),
        ("127.0.0.2", per_source(4)),
        ("127.0.0.3", full(2)),
        ("127.0.0.3", full(3)),
    ];
    assert_eq!(refusals, expected);
    // Who asks too often is not heard for a while, and others are.
    let knock = bytes(&Message::knock(1 << 33).to_packet(), &[]);
    for _ in 0..1000 {
        first.send(&knock).unwrap();
    }
    turn(&mut end);
    let told = answers(&first).len();
    assert!((100..400).contains(&told), "{told} answers");
    let other = socket("127.0.0.9", address);
    other.send(&knock).unwrap();
    turn(&mut end);
    assert!(matches!(answer(&other), Some(Message::Cookie(..))));
}

#[test]
fn a_full_receiver_says_so_at_once() {
    let recv = Recv::start(&["--flows", "1"]);
    scope(|threads| {
        threads.spawn(|| send(recv.address, &["--time", "2"]));
        sleep(Duration::from_millis(700));
        let begun = monotonic();
        let told = fails(recv.address, &["--time", "1"]);
        assert!(told.contains("as many flows as it takes"), "{told}");
        let took = monotonic() - begun;
        assert!(took < 1_000_000_000, "{took} ns");
    });
    let recv = Recv::start(&["--flows-per-source", "2"]);
    assert!(fails(recv.address, &["--time", "1", "-P", "3"]).contains("from this address"));
}

#[test]
fn flows_that_never_send_are_forgotten_sooner() {
    let (mut end, socket) = pair(Limits { idle: Time::secs(60), ..Limits::default() });
    for flow in [1, 2] {
        open(&mut end, &socket, flow, PLAIN);
        assert_eq!(answers(&socket).len(), 1);
    }
    socket.send(&data(2, 0, 900)).unwrap();
    let until = end.now() + Time::millis(12_500);
    end.run(until, &|e| flows(e) < 2).unwrap();
    let left: Vec<u64> = end.receivers.as_ref().unwrap().flows.keys().map(|key| key.1).collect();
    assert_eq!(left, [number(HIGH, 2)]);
}

/// Finding 11: a segment of one byte costs some hundred.
#[test]
fn segments_of_one_byte_stay_within_the_memory() {
    let folder = Folder::new();
    let recv = Recv::start(&["--memory", "8", "--to", &folder.path("in")]);
    let socket = socket("127.0.0.1", recv.address);
    let before = recv.facts().1;
    // Files keep the bytes, others only what has arrived; every second segment, so that no two are next to each other.
    for flow in 1..=8 {
        let knock = bytes(&Message::knock(number(HIGH, flow)).to_packet(), &[]);
        let cookie = (0..20).find_map(|_| {
            socket.send(&knock).unwrap();
            std::iter::from_fn(|| answer_or_other(&socket)).flatten().find_map(|told| match told {
                Message::Cookie(of, cookie) if of == number(HIGH, flow) => Some(cookie),
                _ => None,
            })
        });
        let words = if flow % 2 == 0 { file(&format!("x{flow}"), 1 << 20) } else { PLAIN.to_string() };
        let words = explicate_net::endpoint::hello::with_cookie(&words, &cookie.unwrap());
        socket.send(&numbered(flag::SYN, flow, 0, words.as_bytes())).unwrap();
        for i in 0..32_000 {
            socket.send(&data(flow, 2 * i + 1, 1)).unwrap();
            if i % 64 == 63 {
                sleep(Duration::from_micros(500));
            }
        }
    }
    sleep(Duration::from_millis(300));
    let after = recv.facts().1;
    assert!(after > before + 2048, "{before} kB, then {after}: did anything arrive?");
    assert!(after < before + 10 * 1024, "{before} kB, then {after}, and 8 MB are allowed");
}

/// The next datagram: a message, or something else.
fn answer_or_other(socket: &UdpSocket) -> Option<Option<Message>> {
    let mut buffer = [0; 2000];
    let length = socket.recv(&mut buffer).ok()?;
    Some(datagram::read(&buffer[..length]).ok().and_then(|read| Message::of(&read.packet)))
}

#[test]
fn version_0_1_is_told_so_and_known() {
    // Its greeting gets its own words for "no".
    let (mut end, socket) = pair(Limits::default());
    let old = numbered(flag::SYN, 5, 0, b"explicate/1 protocol=sack packet=1000");
    let mut without_high = old.clone();
    without_high[16..20].fill(0);
    socket.send(&without_high).unwrap();
    turn(&mut end);
    assert_eq!(answer(&socket), Some(Message::Unknown(5)));
    assert_eq!((flows(&end), end.receivers.as_ref().unwrap().counters.old), (0, 1));
    // What comes later than this version is refused by name.
    let newer = numbered(flag::SYN, 5, 0, b"explicate/3 anything at all");
    socket.send(&newer).unwrap();
    turn(&mut end);
    assert_eq!(answer(&socket), Some(Message::Refused(number(HIGH, 5), Refusal::Version)));

    // A receiver of version 0.1 knows questions and no knocks, and no upper halves.
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let SocketAddr::V4(address) = receiver.local_addr().unwrap() else { panic!("IPv4") };
    scope(|threads| {
        threads.spawn(|| {
            let mut buffer = [0; 2000];
            while let Ok((length, from)) = receiver.recv_from(&mut buffer) {
                let told = Message::of(&datagram::read(&buffer[..length]).unwrap().packet);
                if let Some(Message::Question(number, _)) = told {
                    let unknown = Message::Unknown(number & u64::from(u32::MAX));
                    receiver.send_to(&bytes(&unknown.to_packet(), &[]), from).unwrap();
                    return;
                }
            }
        });
        let told = fails(address, &["--time", "1"]);
        assert!(told.contains("speaks version 0.1"), "{told}");
    });
}

#[test]
fn a_probe_is_echoed_only_to_whoever_has_a_cookie() {
    let (mut end, socket) = pair(Limits::default());
    let probe = |code| bytes(&Message::Probe(1, 9, Time(3), code).to_packet(), &[0; 1000]);
    for _ in 0..100 {
        socket.send(&probe([0; SHORT])).unwrap();
    }
    turn(&mut end);
    assert!(answers(&socket).is_empty());
    socket.send(&bytes(&Message::knock(9).to_packet(), &[])).unwrap();
    turn(&mut end);
    let Some(Message::Cookie(_, cookie)) = answer(&socket) else { panic!("no cookie") };
    socket.send(&probe(*cookie.first_chunk().unwrap())).unwrap();
    turn(&mut end);
    assert!(matches!(answer(&socket), Some(Message::Echo(1, 9, Time(3), _))));
}

/// Datagrams of all kinds that are right but for some bytes, by whoever has a cookie.
fn seeds(cookie: &[u8; 16]) -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folders = ["headers", "agents", "greetings"].map(|name| corpus.join(name));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut seeds: Vec<Vec<u8>> = entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    for words in [PLAIN.to_string(), file("x", 5), "explicate/1 protocol=sack packet=1000".to_string()] {
        seeds.push(numbered(flag::SYN, 1, 0, words.as_bytes()));
        let sealed = explicate_net::endpoint::hello::with_cookie(&words, cookie);
        seeds.push(numbered(flag::SYN, 1, 0, sealed.as_bytes()));
    }
    let mut ack = numbered(flag::ACK, 1, 9, &[]);
    seeds.push(ack.clone());
    ack.extend(HIGH.to_be_bytes());
    seeds.extend([ack, data(1, 0, 900), data(1, 7, 1), numbered(flag::FIN, 1, 3, &[1; 100])]);
    let one = number(HIGH, 1);
    for message in [
        Message::Question(one, [0; DIGEST]),
        Message::Unknown(one),
        Message::knock(one),
        Message::Cookie(one, *cookie),
        Message::Refused(one, Refusal::Full),
        Message::Probe(1, one, Time(3), [0; SHORT]),
    ] {
        seeds.push(bytes(&message.to_packet(), &[]));
    }
    seeds
}

/// A transfer that goes on and on.
fn endless(peer: SocketAddrV4) -> Sending {
    let (values, resolved) = (Values::default(), registry::resolve("sack").unwrap());
    let init = FlowInit {
        id: 1,
        protocol: resolved.protocol,
        fallback: resolved.protocol,
        recovery: resolved.recovery,
        values: &values,
        packet: 1000,
        interface: Rate::mbps(1000),
    };
    Sending::new(Plan {
        flow: Flow::new(&init),
        elsewhere: Sink::new(&init),
        source: Source::Bulk,
        start: Time::ZERO,
        // So that the frames have the processor.
        hello: Hello { window: Some(4), ..Hello::new("sack", 1000, &values, Content::Nothing) },
        high: 0x0bad_5eed,
        key: None,
        supply: Supply::Filler,
        peer,
        patience: Time::secs(600),
        confirm: true,
    })
}

/// Datagrams to this port for which its socket had no room.
fn dropped(port: u16) -> u64 {
    let table = fs::read_to_string("/proc/net/udp").unwrap();
    let place = format!(":{port:04X}");
    let line = table.lines().find(|l| l.split_whitespace().nth(1).is_some_and(|a| a.ends_with(&place))).unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

/// Sends `count` spoilt datagrams to a receiver and to a sender that is at work.
fn survives(count: u64) {
    let folder = Folder::new();
    let into = folder.path("in");
    let recv = Recv::start(&["--to", &into, "--memory", "8", "--idle", "5"]);
    let mut end = Endpoint::open("127.0.0.1:0".parse().unwrap(), None, Clock::start()).unwrap();
    let SocketAddr::V4(sender) = end.address().unwrap() else { panic!("IPv4") };
    end.sending.insert(1, endless(recv.address));
    let done = AtomicBool::new(false);
    let mut before = recv.facts();
    scope(|threads| {
        let at_work = threads.spawn(|| {
            end.run(Time::secs(1 << 20), &|_| done.load(Ordering::Relaxed)).unwrap();
            end
        });
        let end_of_work = Done(&done);
        let attacker = UdpSocket::bind("127.0.0.2:0").unwrap();
        attacker.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut rng = Rng::stream(count, "sockets");
        let (mut all, mut sent) = (Vec::new(), 0u64);
        for i in 0..count {
            if i % 50_000 == 0 {
                // Cookies grow old.
                let knock = bytes(&Message::knock(number(HIGH, 1)).to_packet(), &[]);
                attacker.send_to(&knock, recv.address).unwrap();
                let cookie = (0..200).find_map(|_| match answer_or_other(&attacker)? {
                    Some(Message::Cookie(_, cookie)) => Some(cookie),
                    _ => None,
                });
                all = seeds(&cookie.unwrap_or_default());
            }
            let mut bytes = all[rng.next_u64() as usize % all.len()].clone();
            for _ in 0..rng.next_u64() % 4 {
                let (at, byte) = (rng.next_u64() as usize % bytes.len(), rng.next_u64() as u8);
                bytes[at] = byte;
            }
            if rng.next_u64().is_multiple_of(16) {
                bytes.truncate(1 + rng.next_u64() as usize % bytes.len());
            }
            let to = if i % 4 == 0 { sender } else { recv.address };
            sent += u64::from(attacker.send_to(&bytes, to).is_ok());
            if i % 32 == 0 {
                sleep(Duration::from_micros(100));
            }
            if i == count / 4 {
                before = recv.facts();
            }
        }
        assert!(sent > count * 9 / 10, "{sent} sent");
        drop(end_of_work);
        let end = at_work.join().unwrap();
        let flow = &end.sending[&1];
        assert!(
            flow.standing == Standing::Open && flow.flow.acked() > 100,
            "{:?} {}",
            flow.standing,
            flow.flow.acked()
        );
    });
    let lost = dropped(recv.address.port());
    assert!(lost < count / 2, "the system dropped {lost} before anybody read them");
    let after = recv.facts();
    assert!(after.0 < before.0 + 70 && after.1 < before.1 + (16 << 10), "{before:?}, then {after:?}");
    let (path, content) = folder.content("honest", 500_000);
    let output = send(recv.address, &[&path]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read(Path::new(&into).join("honest")).unwrap() == content);
}

#[test]
fn hostile_datagrams_through_sockets() {
    survives(200_000);
}

/// `cargo test --release -p explicate-net --test keys -- --ignored ten_million`
#[test]
#[ignore = "takes minutes"]
fn ten_million_hostile_datagrams_through_sockets() {
    survives(10_000_000);
}

#[test]
fn keys_are_files_that_only_their_owner_reads() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.path("key");
    let keygen = || Command::new(PROGRAM).args(["keygen", &path]).output().unwrap();
    assert!(keygen().status.success());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!keygen().status.success(), "a key is not replaced");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let told = fails_input(&["recv", "--key", &path]);
    assert!(told.contains("chmod 600"), "{told}");
    let peer = format!("127.0.0.1:{UDP_PORT}");
    assert!(fails_input(&["send", &peer, "--key", &path]).contains("chmod 600"));
    assert!(fails_input(&["recv"]).contains("--open"), "nobody listens to the network without a word");
}

/// What is said of arguments that make no sense.
fn fails_input(arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}
