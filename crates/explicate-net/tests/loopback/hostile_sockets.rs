//! Malformed and forged datagrams, through the socket of a receiver at work. No root needed.

use std::cell::Cell;
use std::fs;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::quic::{Place, Recv, text};
use explicate_core::rng::Rng;
use explicate_net::sys::{BATCH, Outgoing};

/// The fuzzers' inputs, and a first packet of QUIC behind headers.
fn seeds() -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folders = ["headers", "agents", "gateway"].map(|name| corpus.join(name));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut seeds: Vec<Vec<u8>> = entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    let mut first = vec![0; 1300];
    (first[0], first[1], first[2]) = (253, 20, 0x11);
    first[44..58].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    seeds.push(first);
    seeds
}

/// Of the row of a UDP socket in the system's table: bytes that wait to be read, and datagrams that found no room.
fn waiting_and_dropped(port: u16) -> [u64; 2] {
    let place = format!(":{port:04X}");
    let row = || {
        let table = fs::read_to_string("/proc/net/udp").unwrap();
        let row = table.lines().find(|row| row.split_whitespace().nth(1).is_some_and(|own| own.ends_with(&place)))?;
        let words: Vec<&str> = row.split_whitespace().collect();
        let waiting = u64::from_str_radix(words[4].split(':').nth(1)?, 16).ok()?;
        Some([waiting, words.last()?.parse().ok()?])
    };
    // A table that changes while it is read may lack rows.
    (0..100).find_map(|_| row()).expect("the socket is in the table")
}

/// Descriptors of a program, and kB of memory that it has in use.
fn facts(process: u32) -> [u64; 2] {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
    [descriptors as u64, line.trim().trim_end_matches(" kB").parse().unwrap()]
}

/// Sends `count` spoilt datagrams to these, no faster than they are read.
fn flood(count: u64, to: &[SocketAddrV4], quarter: &mut dyn FnMut()) {
    let (attacker, all) = (UdpSocket::bind("127.0.0.2:0").unwrap(), seeds());
    let mut rng = Rng::stream(count, "sockets");
    let (mut batch, mut sent) = (Vec::with_capacity(BATCH), 0);
    for i in 0..count {
        let mut bytes = all[rng.next_u64() as usize % all.len()].clone();
        for _ in 0..rng.next_u64() % 4 {
            let (at, byte) = (rng.next_u64() as usize % bytes.len(), rng.next_u64() as u8);
            bytes[at] = byte;
        }
        if rng.next_u64().is_multiple_of(16) {
            bytes.truncate(1 + rng.next_u64() as usize % bytes.len());
        }
        batch.push((bytes, to[i as usize % to.len()]));
        if batch.len() == BATCH {
            let messages: Vec<_> = batch.iter().map(|(bytes, to)| Outgoing { bytes, to: Some((*to, 0)) }).collect();
            sent += explicate_net::sys::send(attacker.as_fd(), &messages).unwrap_or(0) as u64;
            batch.clear();
        }
        while i % 512 == 0 && to.iter().any(|to| waiting_and_dropped(to.port())[0] > 100_000) {
            sleep(Duration::from_micros(50));
        }
        if i == count / 4 {
            quarter();
        }
    }
    assert!(sent > count * 9 / 10, "{sent} sent");
    for to in to {
        let lost = waiting_and_dropped(to.port())[1];
        assert!(lost < count / 2, "the system dropped {lost} before a program read them");
    }
}

/// Floods a receiver; a file that is sent meanwhile and one that is sent later arrive.
fn survives(count: u64) {
    let place = Place::new();
    let recv = Recv::paired(&place, &["--memory", "8"]);
    let address: SocketAddrV4 = recv.address.parse().unwrap();
    let before = Cell::new([0; 2]);
    let beside = place.file("beside", 500_000);
    scope(|threads| {
        let sends = threads.spawn(|| place.send("a", &recv.address, &[text(&beside.0)]));
        flood(count, &[address], &mut || before.set(facts(recv.process())));
        let sent = sends.join().unwrap();
        assert!(sent.is_good(), "{}", sent.said);
    });
    let ([descriptors, memory], after) = (before.get(), facts(recv.process()));
    assert!(after[0] < descriptors + 70 && after[1] < memory + (16 << 10), "{before:?}, then {after:?}");
    let (path, content) = place.file("later", 500_000);
    let sent = place.send("a", &recv.address, &[text(&path)]);
    assert!(sent.is_good() && place.arrived("later").unwrap() == content, "{}", sent.said);
    assert!(place.arrived("beside").unwrap() == beside.1);
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
