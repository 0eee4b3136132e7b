//! End points over the loopback interface: no root needed.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::flow::{Flow, FlowInit};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::sink::Sink;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};
use explicate_net::clock::Clock;
use explicate_net::endpoint::Endpoint;
use explicate_net::endpoint::content::Supply;
use explicate_net::endpoint::hello::{Content, Hello};
use explicate_net::endpoint::message::{DIGEST, Message, Verdict};
use explicate_net::endpoint::receiving::Limits;
use explicate_net::endpoint::sending::{Plan, Sending, Standing};
use explicate_scenario::machines::source::Source;

fn bytes(packet: &Packet, more: &[u8]) -> Vec<u8> {
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(packet, &SackRanges::NONE, &mut headers);
    [&headers[..length], more].concat()
}
fn syn(flow: u32) -> Vec<u8> {
    let mut packet = Packet::EMPTY;
    packet.transport.set_flags(flag::SYN);
    packet.transport.set_flow(flow);
    bytes(&packet, b"explicate/1 protocol=sack packet=1000")
}
fn data(flow: u32, segment: u32, payload: usize) -> Vec<u8> {
    let mut packet = Packet::EMPTY;
    packet.transport.set_flow(flow);
    packet.transport.set_segment(segment);
    packet.transport.set_payload(payload as u16);
    bytes(&packet, &vec![7; payload])
}

/// A listening end and a socket that speaks to it.
fn pair(limits: Limits) -> (Endpoint, UdpSocket) {
    let end = Endpoint::open("127.0.0.1:0".parse::<SocketAddrV4>().unwrap(), Some(limits), Clock::start()).unwrap();
    let SocketAddr::V4(address) = end.address().unwrap() else { panic!("IPv4") };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    (end, socket)
}
fn turn(end: &mut Endpoint) {
    let until = end.now() + Time::millis(10);
    end.run(until, &|_| false).unwrap();
}
/// Lengths of the answers.
fn answers(socket: &UdpSocket) -> Vec<usize> {
    let mut buffer = [0; 2000];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok()).collect()
}

#[test]
fn answers_are_never_longer_than_questions() {
    let (mut end, socket) = pair(Limits::default());
    let question = bytes(&Message::Question(5, [0; DIGEST]).to_packet(), &[]);
    let probe = bytes(&Message::Probe(1, 2, Time(3)).to_packet(), &[]);
    for cause in [syn(1), data(1, 0, 900), data(99, 0, 900), question, probe] {
        socket.send(&cause).unwrap();
        turn(&mut end);
        let told = answers(&socket);
        assert!(told.iter().sum::<usize>() <= cause.len(), "{told:?} to {}", cause.len());
    }
    // Strays are answered now and then only.
    for _ in 0..500 {
        socket.send(&data(98, 0, 900)).unwrap();
    }
    turn(&mut end);
    assert!(answers(&socket).len() <= 5);
}

#[test]
fn a_flood_finds_no_room() {
    let folder = std::env::temp_dir().join(format!("explicate-ends-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let limits = Limits { flows: 10, waiting: 20_000, folder: Some(folder.clone()), ..Limits::default() };
    let (mut end, socket) = pair(limits);
    let mut first = Packet::EMPTY;
    first.transport.set_flags(flag::SYN);
    first.transport.set_flow(1);
    socket.send(&bytes(&first, b"explicate/1 protocol=sack packet=1000 kind=file name=x size=1000000")).unwrap();
    for flow in 2..100 {
        socket.send(&syn(flow)).unwrap();
    }
    turn(&mut end);
    let receivers = end.receivers.as_ref().unwrap();
    assert_eq!((receivers.flows.len(), receivers.counters.refused), (10, 89));
    // Segments ahead of a hole wait in memory; there is room for 20 of them.
    for segment in 1..100 {
        socket.send(&data(1, segment, 948)).unwrap();
    }
    turn(&mut end);
    let receivers = end.receivers.as_ref().unwrap();
    assert_eq!(receivers.counters.no_room, 99 - 20_000 / 948);
    // What does not fit its flow is no part of it.
    socket.send(&data(1, 0, 500)).unwrap();
    turn(&mut end);
    assert_eq!(end.receivers.as_ref().unwrap().counters.misfits, 1);
    drop(end);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "no part stays behind");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A transfer without end of this number to `peer`.
fn transfer(id: u32, peer: SocketAddrV4) -> Sending {
    let (values, resolved) = (Values::default(), registry::resolve("sack").unwrap());
    let init = FlowInit {
        id,
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
        hello: Hello::new("sack", 1000, &values, Content::Nothing),
        supply: Supply::Filler,
        peer,
        patience: Time::secs(60),
        confirm: true,
    })
}

#[test]
fn nobody_but_the_receiver_acknowledges_or_ends_a_transfer() {
    let address = |socket: &UdpSocket| match socket.local_addr().unwrap() {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => panic!("IPv4"),
    };
    let mut end = Endpoint::open("127.0.0.1:0".parse().unwrap(), None, Clock::start()).unwrap();
    let (receiver, stranger) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.2:0").unwrap());
    end.sending.insert(77, transfer(77, address(&receiver)));
    turn(&mut end);
    let own = end.address().unwrap();
    let mut ack = Packet::EMPTY;
    ack.transport.set_flags(flag::ACK | flag::SYN);
    ack.transport.set_flow(77);
    ack.transport.set_window(1000);
    let connected = bytes(&ack, &[]);
    ack.transport.set_flags(flag::ACK);
    ack.transport.set_segment(1);
    let first = bytes(&ack, &[]);
    ack.transport.set_flow(78);
    let guessed = bytes(&ack, &[]);
    let ends = [Message::Unknown(77), Message::Answer(77, Verdict::Same, 1), Message::Answer(77, Verdict::Differs, 1)];
    let state = |end: &Endpoint| (end.sending[&77].flow.acked(), end.sending[&77].standing.clone());
    // Same address, another port, is a stranger too.
    let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
    for liar in [&stranger, &neighbour] {
        for forged in [&connected, &first, &guessed] {
            liar.send_to(forged, own).unwrap();
        }
        for message in &ends {
            liar.send_to(&bytes(&message.to_packet(), &[]), own).unwrap();
        }
        turn(&mut end);
        assert_eq!(state(&end), (0, Standing::Open));
    }
    // Who does not know the flow's number has to guess it, even from the right place.
    receiver.send_to(&guessed, own).unwrap();
    turn(&mut end);
    assert_eq!(state(&end), (0, Standing::Open));
    receiver.send_to(&connected, own).unwrap();
    turn(&mut end);
    receiver.send_to(&first, own).unwrap();
    turn(&mut end);
    assert_eq!(state(&end), (1, Standing::Open), "the receiver itself is heard");
}

#[test]
fn whoever_sends_a_file_that_is_not_taken_hears_of_it() {
    let (mut end, socket) = pair(Limits::default());
    let mut packet = Packet::EMPTY;
    packet.transport.set_flags(flag::SYN);
    packet.transport.set_flow(5);
    let asked = bytes(&packet, b"explicate/1 protocol=sack packet=1000 kind=file name=a size=9");
    socket.send(&asked).unwrap();
    turn(&mut end);
    let mut buffer = [0; 2000];
    let length = socket.recv(&mut buffer).unwrap();
    assert!(length <= asked.len(), "{length}");
    let answer = Message::of(&datagram::read(&buffer[..length]).unwrap().packet).unwrap();
    assert_eq!(answer, Message::Answer(5, Verdict::NotWritten, 0));

    let mut sending = transfer(5, "127.0.0.1:9".parse().unwrap());
    sending.handle_message(Time::ZERO, answer);
    assert!(
        matches!(&sending.standing, Standing::Failed(why) if why.contains("takes no files")),
        "{:?}",
        sending.standing
    );
}
