//! What one source, and all of them, may take of a receiver, over the loopback interface. No root needed.

use std::net::{SocketAddr, UdpSocket};

use crate::datagrams::programs::{Folder, Recv, cookie, fails, flows, socket};
use crate::datagrams::{HIGH, PLAIN, answer, answers, bytes, data, file, numbered, open, pair, turn, waiting};
use crate::patience::{PATIENCE, eventually};
use explicate_core::units::Time;
use explicate_core::wire::flag;
use explicate_net::endpoint::hello::with_cookie;
use explicate_net::endpoint::message::{Message, Refusal, number};
use explicate_net::endpoint::receiving::Limits;

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
    // A source that asks too often is ignored for a while, and others are not.
    let knock = bytes(&Message::knock(1 << 33).to_packet(), &[]);
    for _ in 0..1000 {
        first.send(&knock).unwrap();
    }
    turn(&mut end);
    let told = answers(&first, 100).len();
    assert!((100..400).contains(&told), "{told} answers");
    let other = socket("127.0.0.9", address);
    other.send(&knock).unwrap();
    turn(&mut end);
    assert!(matches!(answer(&other), Some(Message::Cookie(..))));
}

#[test]
fn a_full_receiver_says_so_at_once() {
    let recv = Recv::start(&["--flows", "1"]);
    let socket = socket("127.0.0.1", recv.address);
    socket.send(&greeted(&socket, 1, PLAIN)).unwrap();
    let told = fails(recv.address, &["--time", "5"]);
    assert!(told.contains("its maximum number of flows"), "{told}");
    let recv = Recv::start(&["--flows-per-source", "2"]);
    assert!(fails(recv.address, &["--time", "1", "-P", "3"]).contains("from this address"));
}

#[test]
fn flows_that_never_send_are_forgotten_sooner() {
    let (mut end, socket) = pair(Limits { idle: Time::secs(600), ..Limits::default() });
    for flow in [1, 2] {
        open(&mut end, &socket, flow, PLAIN);
        assert_eq!(answers(&socket, 1).len(), 1);
    }
    socket.send(&data(2, 0, 900)).unwrap();
    let until = end.now() + Time::secs(PATIENCE.as_secs());
    end.run(until, &|e| flows(e) < 2).unwrap();
    let left: Vec<u64> = end.receivers.as_ref().unwrap().flows.keys().map(|key| key.1).collect();
    assert_eq!(left, [number(HIGH, 2)]);
}

/// The greeting of a flow with the cookie that a program gives for it.
fn greeted(socket: &UdpSocket, flow: u32, words: &str) -> Vec<u8> {
    let SocketAddr::V4(peer) = socket.peer_addr().unwrap() else { panic!("IPv4") };
    let cookie = cookie(socket, peer, number(HIGH, flow));
    numbered(flag::SYN, flow, 0, with_cookie(words, &cookie).as_bytes())
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
        let words = if flow % 2 == 0 { file(&format!("x{flow}"), 1 << 20) } else { PLAIN.to_string() };
        socket.send(&greeted(&socket, flow, &words)).unwrap();
        for i in 0..32_000 {
            socket.send(&data(flow, 2 * i + 1, 1)).unwrap();
            if i % 64 == 63 {
                eventually("it is read", || waiting(recv.address.port()) < 50_000);
            }
        }
    }
    eventually("all is read", || waiting(recv.address.port()) == 0);
    eventually("it takes memory", || recv.facts().1 > before + 2048);
    let after = recv.facts().1;
    assert!(after < before + 10 * 1024, "{before} kB, then {after}, and 8 MB are allowed");
}
