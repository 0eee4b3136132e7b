//! Common code of tests over the loopback interface: datagrams made by hand, and their answers.

pub(crate) mod programs;

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};

use explicate_build::source::Source;
use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::endpoint::{FlowInit, ReceiverEndpoint, SenderEndpoint};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};
use explicate_net::clock::Clock;
use explicate_net::endpoint::Endpoint;
use explicate_net::endpoint::auth::Key;
use explicate_net::endpoint::content::Supply;
use explicate_net::endpoint::hello::{Content, Hello, with_cookie};
use explicate_net::endpoint::message::{Message, number};
use explicate_net::endpoint::receiving::Limits;
use explicate_net::endpoint::sending::Plan;

use crate::patience::{PATIENCE, uninterrupted};

/// The upper half of all numbers here.
pub(crate) const HIGH: u32 = 0x5eed_0001;

pub(crate) fn bytes(packet: &Packet, more: &[u8]) -> Vec<u8> {
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(packet, &SackRanges::NONE, &mut headers);
    [&headers[..length], more].concat()
}
pub(crate) fn numbered(flags: u8, flow: u32, segment: u32, more: &[u8]) -> Vec<u8> {
    let mut packet = Packet::EMPTY;
    packet.transport.set_flags(flags);
    packet.transport.set_flow(flow);
    packet.transport.set_segment(segment);
    packet.transport.set_window(HIGH);
    if flags & flag::SYN == 0 {
        packet.transport.set_payload(more.len() as u16);
    }
    bytes(&packet, more)
}
pub(crate) fn data(flow: u32, segment: u32, payload: usize) -> Vec<u8> {
    numbered(0, flow, segment, &vec![7; payload])
}
/// What a SYN says, without a cookie.
pub(crate) const PLAIN: &str = "explicate/2 protocol=sack packet=1000";
/// The same for a file.
pub(crate) fn file(name: &str, size: u64) -> String {
    format!("{PLAIN} kind=file name={name} size={size} mode=644 digest={}", "00".repeat(32))
}
/// The greeting of a flow with the cookie that the end gives for it.
pub(crate) fn greeting(end: &mut Endpoint, socket: &UdpSocket, flow: u32, words: &str) -> Vec<u8> {
    let knock = Message::knock(number(HIGH, flow));
    socket.send(&bytes(&knock.to_packet(), &[])).unwrap();
    turn(end);
    let Some(Message::Cookie(of, cookie)) = answer(socket) else { panic!("no cookie") };
    assert_eq!(of, number(HIGH, flow));
    numbered(flag::SYN, flow, 0, with_cookie(words, &cookie).as_bytes())
}
/// Opens a flow; returns the answer.
pub(crate) fn open(end: &mut Endpoint, socket: &UdpSocket, flow: u32, words: &str) {
    let greeting = greeting(end, socket, flow, words);
    socket.send(&greeting).unwrap();
    turn(end);
}
/// The next message to this socket.
pub(crate) fn answer(socket: &UdpSocket) -> Option<Message> {
    let mut buffer = [0; 2000];
    let length = uninterrupted(|| socket.recv(&mut buffer)).ok()?;
    Message::of(&datagram::read(&buffer[..length]).unwrap().packet)
}

/// A listening end and a socket that sends to it.
pub(crate) fn pair(limits: Limits) -> (Endpoint, UdpSocket) {
    let end = Endpoint::open("127.0.0.1:0".parse::<SocketAddrV4>().unwrap(), Some(limits), Clock::start()).unwrap();
    let SocketAddr::V4(address) = end.address().unwrap() else { panic!("IPv4") };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    (end, socket)
}
/// Lets an end do its work for 10 ms, and until it has read all that came.
pub(crate) fn turn(end: &mut Endpoint) {
    let port = end.address().unwrap().port();
    loop {
        let until = end.now() + Time::millis(10);
        end.run(until, &|_| false).unwrap();
        if waiting(port) == 0 {
            return;
        }
    }
}
/// Bytes that wait to be read from the UDP socket of this port.
pub(crate) fn waiting(port: u16) -> u64 {
    let words = socket_table(port);
    u64::from_str_radix(words[4].split(':').nth(1).unwrap(), 16).unwrap()
}
/// The words of the row of a UDP socket in the system's table.
pub(crate) fn socket_table(port: u16) -> Vec<String> {
    let place = format!(":{port:04X}");
    let row = || {
        let table = std::fs::read_to_string("/proc/net/udp").unwrap();
        let row = table.lines().find(|row| row.split_whitespace().nth(1).is_some_and(|own| own.ends_with(&place)));
        row.map(|row| row.split_whitespace().map(str::to_string).collect())
    };
    // A table that changes while it is read may lack rows.
    (0..100).find_map(|_| row()).expect("the socket is in the table")
}
/// Lengths of the answers: waits for as many as have to come, and takes what has come beside them.
pub(crate) fn answers(socket: &UdpSocket, least: usize) -> Vec<usize> {
    let mut buffer = [0; 2000];
    let mut lengths: Vec<usize> = (0..least).map(|_| uninterrupted(|| socket.recv(&mut buffer)).unwrap()).collect();
    socket.set_nonblocking(true).unwrap();
    lengths.extend(std::iter::from_fn(|| socket.recv(&mut buffer).ok()));
    socket.set_nonblocking(false).unwrap();
    lengths
}
/// Lengths of all answers until now: a cookie, for which it asks last, comes after them.
pub(crate) fn all_answers(end: &mut Endpoint, socket: &UdpSocket) -> Vec<usize> {
    let last = number(HIGH, u32::MAX);
    socket.send(&bytes(&Message::knock(last).to_packet(), &[])).unwrap();
    turn(end);
    let (mut buffer, mut lengths) = ([0; 2000], Vec::new());
    loop {
        let length = uninterrupted(|| socket.recv(&mut buffer)).unwrap();
        let told = datagram::read(&buffer[..length]).ok().and_then(|read| Message::of(&read.packet));
        if matches!(told, Some(Message::Cookie(of, _)) if of == last) {
            return lengths;
        }
        lengths.push(length);
    }
}

/// A transfer without end of this number to `peer`, as it is planned.
pub(crate) fn transfer(id: u32, peer: SocketAddrV4, key: Option<Key>) -> Plan {
    let (values, resolved) = (Values::default(), registry::resolve("sack").unwrap());
    let init = FlowInit {
        id,
        protocol: resolved.protocol,
        fallback: resolved,
        recovery: resolved.recovery,
        values: &values,
        packet: 1000,
        interface: Rate::mbps(1000),
    };
    Plan {
        flow: SenderEndpoint::new(&init),
        elsewhere: ReceiverEndpoint::new(&init),
        source: Source::Bulk,
        start: Time::ZERO,
        hello: Hello::new("sack", 1000, &values, Content::Nothing),
        high: HIGH,
        key,
        supply: Supply::Filler,
        peer,
        timeout: Time::secs(60),
        confirm: true,
    }
}
