//! Malformed and forged datagrams, through the sockets of a receiver and of a sender at work. No root needed.

use std::fs;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::datagrams::programs::{Done, Folder, Recv, cookie, send};
use crate::datagrams::{HIGH, PLAIN, bytes, data, file, numbered, socket_table, transfer, waiting};
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::flag;
use explicate_net::clock::Clock;
use explicate_net::endpoint::Endpoint;
use explicate_net::endpoint::auth::SHORT;
use explicate_net::endpoint::hello::Hello;
use explicate_net::endpoint::message::{DIGEST, Message, Refusal, number};
use explicate_net::endpoint::sending::{Plan, Sending, TransferState};
use explicate_net::sys::{BATCH, Outgoing};

/// Datagrams of all kinds with some wrong bytes, by a sender that has a cookie.
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

/// A transfer that does not end.
fn endless(peer: SocketAddrV4) -> Sending {
    let plan = transfer(1, peer, None);
    // A small window, so that the frames have the processor.
    let hello = Hello { window: Some(4), ..plan.hello };
    Sending::new(Plan { hello, timeout: Time::secs(600), ..plan })
}

/// Datagrams to this port for which its socket had no room.
fn dropped(port: u16) -> u64 {
    socket_table(port).last().unwrap().parse().unwrap()
}

/// Sends a batch by one call; how many were taken.
fn send_all(from: &UdpSocket, batch: &[(Vec<u8>, SocketAddrV4)]) -> u64 {
    let messages: Vec<_> = batch.iter().map(|(bytes, to)| Outgoing { bytes, to: Some((*to, 0)) }).collect();
    explicate_net::sys::send(from.as_fd(), &messages).unwrap_or(0) as u64
}

/// Sends `count` spoilt datagrams to a receiver and to a sender that is at work.
fn survives(count: u64) {
    let folder = Folder::new();
    let into = folder.path("in");
    let recv = Recv::start(&["--to", &into, "--memory", "8", "--idle", "20"]);
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
        let mut rng = Rng::stream(count, "sockets");
        let (mut all, mut batch, mut sent) = (Vec::new(), Vec::with_capacity(BATCH), 0u64);
        for i in 0..count {
            if i % 50_000 == 0 {
                // Cookies grow old.
                all = seeds(&cookie(&attacker, recv.address, number(HIGH, 1)));
            }
            let mut bytes = all[rng.next_u64() as usize % all.len()].clone();
            for _ in 0..rng.next_u64() % 4 {
                let (at, byte) = (rng.next_u64() as usize % bytes.len(), rng.next_u64() as u8);
                bytes[at] = byte;
            }
            if rng.next_u64().is_multiple_of(16) {
                bytes.truncate(1 + rng.next_u64() as usize % bytes.len());
            }
            batch.push((bytes, if i % 4 == 0 { sender } else { recv.address }));
            if batch.len() == BATCH {
                sent += send_all(&attacker, &batch);
                batch.clear();
            }
            // No faster than they are read.
            while i % 512 == 0 && waiting(recv.address.port()) > 100_000 {
                sleep(Duration::from_micros(50));
            }
            if i == count / 4 {
                before = recv.facts();
            }
        }
        assert!(sent > count * 9 / 10, "{sent} sent");
        drop(end_of_work);
        let end = at_work.join().unwrap();
        let flow = &end.sending[&1];
        assert!(flow.state == TransferState::Open && flow.flow.acked() > 100, "{:?} {}", flow.state, flow.flow.acked());
    });
    let lost = dropped(recv.address.port());
    assert!(lost < count / 2, "the system dropped {lost} before a program read them");
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

/// `cargo test --release -p explicate-net --test loopback -- --ignored ten_million`
#[test]
#[ignore = "takes minutes: make hostile"]
fn ten_million_hostile_datagrams_through_sockets() {
    survives(10_000_000);
}
