//! What a sender that breaks the protocol and a host on the path can do to files over QUIC.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::thread::scope;
use std::time::Duration;

use explicate_core::rng::Rng;
use explicate_core::units::Rate;
use explicate_net::digest::sha256;
use explicate_net::files::message::{self, Kind, Offer, Refusal, Verdict};
use explicate_net::files::pairing::State;
use explicate_net::files::sending::Sending;
use explicate_net::files::socket::{self, Close};
use explicate_net::gateway::config::Limits;

use super::{Place, Recv, text};
use crate::patience::eventually;

/// On drop it lets other threads end, also if a test fails.
pub(crate) struct Done<'a>(pub(crate) &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens a stream as the paired sender `a`, writes these bytes and ends it; returns the answer.
fn by_hand(place: &Place, address: &str, bytes: &[u8]) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let state = State::open(Some(Path::new(&place.state("a")))).unwrap();
        let (identity, key) = (state.identity().unwrap(), state.receiver(address).unwrap().unwrap());
        let (controller, bind) = (socket::controller_config("cubic", 0.02).unwrap(), "127.0.0.1:0".parse().unwrap());
        let (endpoint, transport) =
            socket::open(bind, &identity, controller, Rate::mbps(100), Limits::default(), None).unwrap();
        let to = (address.parse().unwrap(), address);
        let connected = Sending::connect((&endpoint, &transport, &identity), to, key, Arc::default()).await;
        let sending = connected.unwrap_or_else(|failure| panic!("{failure:?}"));
        let (mut send, mut receive) = sending.connection.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        let _ = send.finish();
        let answer = receive.read_to_end(100).await.unwrap_or_default();
        socket::close(&endpoint, Close::Done).await;
        answer
    })
}

fn offer(name: &str, content: &[u8]) -> Offer {
    let digest = sha256(content);
    Offer { name: name.to_string(), size: content.len() as u64, digest, mode: 0o644, modified: Some(1) }
}

#[test]
fn a_paired_sender_leaves_the_folder_by_no_name() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    for name in ["../x", "/x", "a/../../x", ".ssh/x", "-x", "a//x", "", ".explicate-parts/x"] {
        for kind in [Kind::File, Kind::Folder] {
            let answer = by_hand(&place, &recv.address, &message::offer(kind, &offer(name, b"")));
            assert_eq!(answer, message::answer(Err(Refusal::Nonsense)), "{name}");
        }
    }
    eventually("an empty folder", || fs::read_dir(place.0.join("in")).unwrap().count() == 0);
    assert!(!place.0.join("x").exists() && !Path::new("/x").exists());
}

#[test]
fn a_stream_that_ends_early_is_no_file() {
    let place = Place::new();
    let mut recv = Recv::paired(&place, &[]);
    recv.event("end");
    let content = [7; 1000];
    let head = message::offer(Kind::File, &offer("a", &content));
    let early = by_hand(&place, &recv.address, &[&head[..], &content[..999]].concat());
    assert_eq!(early, [message::answer(Ok(0)), message::verdict(Verdict::Missing, 999)].concat());
    assert!(recv.event("end")["verdict"].as_str().unwrap().starts_with("not all arrived"));
    assert_eq!((place.arrived("a"), place.held()), (None, 999));
    // One kept byte is missing; two bytes exceed the offered length.
    eventually("the part is free", || by_hand(&place, &recv.address, &[&head[..], &[7; 2]].concat())[0] == 0);
    assert_eq!(place.arrived("a"), None);
    eventually("the file", || {
        by_hand(&place, &recv.address, &[&head[..], &content[..1000 - place.held() as usize]].concat());
        place.arrived("a").is_some()
    });
    assert_eq!(place.arrived("a").unwrap(), content);
}

#[test]
fn nonsense_harms_no_transfer() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    let huge = Offer { size: u64::MAX, ..offer("huge", b"") };
    let answer = by_hand(&place, &recv.address, &message::offer(Kind::File, &huge));
    assert_eq!(answer, message::answer(Err(Refusal::NoSpace)));
    let mut rng = Rng::stream(1, "nonsense");
    for length in [0, 1, 2, 17, 54, 55, 5000] {
        let bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        by_hand(&place, &recv.address, &bytes);
    }
    let (path, content) = place.file("a", 100_000);
    let sent = place.send("a", &recv.address, &[text(&path)]);
    assert!(sent.is_good() && place.arrived("a").unwrap() == content, "{}", sent.said);
}

/// A host on the path, which passes everything, adds packets in the name of either end: changed and cut copies.
#[test]
fn packets_forged_on_the_path_end_nothing() {
    let place = Place::new();
    let recv = Recv::start(&place, &[]);
    let (path, content) = place.file("a", 3_000_000);
    let (near, far) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    far.connect(&recv.address).unwrap();
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    }
    let (done, forged, sender) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU16::new(0));
    let pass = |from: &UdpSocket, to: &(dyn Fn(&[u8]) + Sync), seen: &dyn Fn(u16)| {
        let mut buffer = [0; 70_000];
        while !done.load(Ordering::Relaxed) {
            let Ok((length, peer)) = from.recv_from(&mut buffer) else { continue };
            seen(peer.port());
            let packet = &buffer[..length];
            to(packet);
            let mut changed = packet.to_vec();
            changed[length - 1] ^= 1;
            to(&changed);
            to(&packet[..length.min(50)]);
            forged.fetch_add(2, Ordering::Relaxed);
        }
    };
    let to_sender = |packet: &[u8]| {
        let _ = near.send_to(packet, ("127.0.0.1", sender.load(Ordering::Relaxed)));
    };
    let to_receiver = |packet: &[u8]| {
        let _ = far.send(packet);
    };
    let sent = scope(|threads| {
        let _end = Done(&done);
        threads.spawn(|| pass(&near, &to_receiver, &|port| sender.store(port, Ordering::Relaxed)));
        threads.spawn(|| pass(&far, &to_sender, &|_| ()));
        place.send("a", &near.local_addr().unwrap().to_string(), &[text(&path), "--pair", &recv.line])
    });
    assert!(sent.is_good() && place.arrived("a").unwrap() == content, "{}", sent.said);
    assert!(forged.load(Ordering::Relaxed) > 1000, "{forged:?}");
}
