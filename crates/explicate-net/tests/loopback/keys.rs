//! What a greeting proves, over the loopback interface: cookies and keys, attacked by sockets of this test. No root needed.

use std::fs;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::datagrams::programs::{Done, Folder, PROGRAM, Recv, fails, flows, send, socket};
use crate::datagrams::{HIGH, PLAIN, answer, answers, bytes, data, file, numbered, open, pair, turn};
use crate::patience::{PATIENCE, uninterrupted};
use explicate_core::datagram;
use explicate_core::units::Time;
use explicate_core::wire::{UDP_PORT, flag};
use explicate_net::endpoint::Endpoint;
use explicate_net::endpoint::auth::{Key, SHORT};
use explicate_net::endpoint::gate::Admission;
use explicate_net::endpoint::hello::Hello;
use explicate_net::endpoint::message::{DIGEST, Message, Refusal, number};
use explicate_net::endpoint::opening::Opening;
use explicate_net::endpoint::receiving::Limits;

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
            let output = send(recv.address, &[&path, "--key", &key]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
    // An end that demands proof does not accept a greeting without it.
    let open = Recv::start(&["--to", &into]);
    assert!(fails(open.address, &[&path, "--key", &key]).contains("without a key"));
}

/// An end that demands this key; it keeps flows for fifteen seconds.
fn locked(key: &Key) -> (Endpoint, UdpSocket, SocketAddrV4) {
    let limits = Limits { admission: Admission::Key(key.clone()), idle: Time::secs(15), ..Limits::default() };
    let (end, socket) = pair(limits);
    let SocketAddr::V4(address) = end.address().unwrap() else { panic!("IPv4") };
    (end, socket, address)
}

/// The greeting of a flow by a peer that has the key.
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
    answers(&honest, 0);
    honest.send(&good).unwrap();
    turn(&mut end);
    assert_eq!((flows(&end), answers(&honest, 1).len()), (1, 1));

    // From another port, and another address: a cookie is sent there.
    for address in ["127.0.0.1", "127.0.0.3"].map(|from| socket(from, address)) {
        address.send(&good).unwrap();
        turn(&mut end);
        assert!(matches!(answer(&address), Some(Message::Cookie(..))));
    }
    assert_eq!(flows(&end), 1);
    // At once, from the right place: its own flow, once more.
    honest.send(&good).unwrap();
    turn(&mut end);
    assert_eq!((flows(&end), answers(&honest, 1).len()), (1, 1));
    // Once the flow is forgotten the cookie is too old.
    let until = end.now() + Time::secs(PATIENCE.as_secs());
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
    assert_eq!((flows(&end), answers(&socket, 1).len()), (1, 1));
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
    assert!(receivers.flows.values().all(|f| f.receiver.stats().payload == 0) && receivers.ended.is_empty());
    socket.send(&fin(HIGH)).unwrap();
    turn(&mut end);
    assert!(end.receivers.as_ref().unwrap().flows.values().all(|f| f.receiver.stats().payload == 900));
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

    // A receiver of version 0.1 supports questions, but neither knocks nor upper halves.
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let SocketAddr::V4(address) = receiver.local_addr().unwrap() else { panic!("IPv4") };
    scope(|threads| {
        threads.spawn(|| {
            let mut buffer = [0; 2000];
            while let Ok((length, from)) = uninterrupted(|| receiver.recv_from(&mut buffer)) {
                let told = Message::of(&datagram::read(&buffer[..length]).unwrap().packet);
                if let Some(Message::Question(number, _)) = told {
                    let unknown = Message::Unknown(number & u64::from(u32::MAX));
                    receiver.send_to(&bytes(&unknown.to_packet(), &[]), from).unwrap();
                    return;
                }
            }
        });
        let told = fails(address, &["--time", "1"]);
        assert!(told.contains("runs version 0.1"), "{told}");
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
    socket.send(&bytes(&Message::knock(9).to_packet(), &[])).unwrap();
    turn(&mut end);
    let Some(Message::Cookie(_, cookie)) = answer(&socket) else { panic!("another answer before the cookie") };
    socket.send(&probe(*cookie.first_chunk().unwrap())).unwrap();
    turn(&mut end);
    assert!(matches!(answer(&socket), Some(Message::Echo(1, 9, Time(3), _))));
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
    assert!(
        fails_input(&["recv", "--transport", "udp"]).contains("--open"),
        "a receiver does not listen to the network without `--open`"
    );
}

/// What is said of arguments that make no sense.
fn fails_input(arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}
