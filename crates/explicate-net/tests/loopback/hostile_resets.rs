//! The message that ends a transfer, forged: a receiver that does not know a flow says so, and its sender stops. An attacker off the
//! path sends it from another place, or does not know the flow's number; one on the path sees the number and takes the receiver's
//! address. Programs over the loopback interface; no root needed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread::scope;
use std::time::Duration;

use crate::datagrams::bytes;
use crate::datagrams::programs::{Done, Folder, Recv, send};
use explicate_core::datagram;
use explicate_core::wire::flag;
use explicate_net::endpoint::message::Message;
use explicate_net::endpoint::number_of;
use serde_json::Value;

/// The data packet at which the attacker begins, and the file's length in bytes.
const FORGED_AT: u32 = 300;
const SIZE: usize = 3_000_000;

/// What an attacker may send to: a flow's number, the sender's address, and a socket with the address that the sender sends to.
struct Victim<'a> {
    number: u64,
    sender: SocketAddr,
    spoofed: &'a UdpSocket,
}

/// The number of a data packet's flow.
fn data_of(packet: &[u8]) -> Option<u64> {
    let read = datagram::read(packet).ok()?;
    let header = &read.packet.transport;
    let is_data = !header.has(flag::SYN) && !header.has(flag::ACK) && !header.has(flag::CONTROL);
    is_data.then(|| number_of(packet, &read))
}

/// Sends a file through a host on the path, which passes everything and shows each data packet from the 300th on to the attacker.
fn send_past(attack: impl Fn(&Victim<'_>) + Sync, recv: &Recv, path: &str) -> Output {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(recv.address).unwrap();
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    }
    let SocketAddr::V4(address) = near.local_addr().unwrap() else { panic!("IPv4") };
    let done = AtomicBool::new(false);
    // A probe of the path comes before the transfer, from another port.
    let sender_port = AtomicU16::new(0);
    scope(|threads| {
        let end = Done(&done);
        threads.spawn(|| {
            let (mut buffer, mut seen) = ([0; 2000], 0);
            while !done.load(Ordering::Relaxed) {
                let Ok((length, from)) = near.recv_from(&mut buffer) else { continue };
                let _ = far.send(&buffer[..length]);
                sender_port.store(from.port(), Ordering::Relaxed);
                if let Some(number) = data_of(&buffer[..length]) {
                    seen += 1;
                    if seen >= FORGED_AT {
                        attack(&Victim { number, sender: from, spoofed: &near });
                    }
                }
            }
        });
        threads.spawn(|| {
            let mut buffer = [0; 2000];
            while !done.load(Ordering::Relaxed) {
                let Ok(length) = far.recv(&mut buffer) else { continue };
                let _ = near.send_to(&buffer[..length], (Ipv4Addr::LOCALHOST, sender_port.load(Ordering::Relaxed)));
            }
        });
        let output = send(address, &[path, "--json", "-p", "cubic/sack"]);
        drop(end);
        output
    })
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// A receiver into a folder, and a file.
fn place() -> (Folder, Recv, String, Vec<u8>) {
    let folder = Folder::new();
    let into = folder.path("in");

    let recv = Recv::start(&["--to", &into]);
    let (path, content) = folder.content("file", SIZE);
    (folder, recv, path, content)
}

fn arrived(folder: &Folder) -> Option<Vec<u8>> {
    fs::read(Path::new(&folder.path("in")).join("file")).ok()
}

/// All goes well, and the sender has counted at least one packet that it passed over.
fn is_passed_over(attack: impl Fn(&Victim<'_>) + Sync) {
    let (folder, recv, path, content) = place();
    let output = send_past(attack, &recv, &path);
    assert!(output.status.success(), "{output:?}");
    assert!(arrived(&folder).unwrap() == content);
    assert!(report(&output)["strays"].as_u64().unwrap() > 0, "{output:?}");
}

#[test]
fn a_forged_reset_from_another_place_is_passed_over() {
    let elsewhere: [UdpSocket; 2] = ["127.0.0.2:0", "127.0.0.1:0"].map(|place| UdpSocket::bind(place).unwrap());
    is_passed_over(|victim| {
        let reset = bytes(&Message::Unknown(victim.number).to_packet(), &[]);
        elsewhere.iter().for_each(|socket| drop(socket.send_to(&reset, victim.sender)));
    });
}

/// From the receiver's address, but without one half of the number, as in version 0.1, or with another.
#[test]
fn a_forged_reset_without_the_whole_number_is_passed_over() {
    is_passed_over(|victim| {
        for guess in [victim.number & u64::from(u32::MAX), victim.number ^ 1 << 40, victim.number ^ 1] {
            let reset = bytes(&Message::Unknown(guess).to_packet(), &[]);
            let _ = victim.spoofed.send_to(&reset, victim.sender);
        }
    });
}

/// An attacker on the path ends the transfer: it fails, says why, and nothing is called whole. Sent again, the file goes on.
#[test]
fn a_reset_forged_on_the_path_fails_and_the_file_goes_on_later() {
    let (folder, recv, path, content) = place();
    let output = send_past(
        |victim| {
            let reset = bytes(&Message::Unknown(victim.number).to_packet(), &[]);
            let _ = victim.spoofed.send_to(&reset, victim.sender);
        },
        &recv,
        &path,
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let why = report(&output)["error"].as_str().unwrap().to_string();
    assert!(why.contains("unknown to the other end") && why.contains("Send the file again"), "{why}");
    assert_eq!(arrived(&folder), None, "no file has the name");
    let output = send_past(|_| (), &recv, &path);
    assert!(output.status.success(), "{output:?}");
    assert!(report(&output)["end"]["held_before"].as_u64().unwrap() > 0, "{output:?}");
    assert!(arrived(&folder).unwrap() == content);
}
