//! End points over the loopback interface: no root needed.

use std::net::{SocketAddr, UdpSocket};

use crate::datagrams::programs::fails;
use crate::datagrams::{
    HIGH, PLAIN, all_answers, answer, answers, bytes, data, file, greeting, numbered, open, pair, transfer, turn,
};
use crate::patience::{PATIENCE, uninterrupted};
use explicate_core::datagram;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, Transport, flag};
use explicate_net::clock::Clock;
use explicate_net::digest::sha256;
use explicate_net::endpoint::Endpoint;
use explicate_net::endpoint::auth::{self, Key, SHORT};
use explicate_net::endpoint::content::store::{Settings, Store};
use explicate_net::endpoint::message::{DIGEST, Message, Refusal, Verdict, number};
use explicate_net::endpoint::receiving::Limits;
use explicate_net::endpoint::sending::{Sending, TransferState};

#[test]
fn answers_are_never_longer_than_questions() {
    let (mut end, socket) = pair(Limits { flows: 1, ..Limits::default() });
    let messages = [
        Message::Question(number(HIGH, 5), [0; DIGEST]),
        Message::Probe(1, 2, Time(3), [0; SHORT]),
        Message::knock(1 << 40),
        Message::Knock(1 << 40, 9, [0; 16]),
    ];
    let mut causes: Vec<Vec<u8>> = messages.iter().map(|m| bytes(&m.to_packet(), &[])).collect();
    let first = greeting(&mut end, &socket, 1, PLAIN);
    let refused = greeting(&mut end, &socket, 2, PLAIN);
    causes.extend([first.clone(), first, refused, data(1, 0, 900), data(99, 0, 900)]);
    for words in [PLAIN, "explicate/1 protocol=sack packet=1000", "explicate/9", "explicate/1", "explicate/2", "x", ""]
    {
        causes.push(numbered(flag::SYN, 3, 0, words.as_bytes()));
    }
    for cause in causes {
        socket.send(&cause).unwrap();
        turn(&mut end);
        let told = all_answers(&mut end, &socket);
        assert!(told.iter().sum::<usize>() <= cause.len(), "{told:?} to {}", cause.len());
    }
    // Strays are answered now and then only.
    for _ in 0..500 {
        socket.send(&data(98, 0, 900)).unwrap();
    }
    turn(&mut end);
    assert!(all_answers(&mut end, &socket).len() <= 5);
}

#[test]
fn a_flood_finds_no_room() {
    let folder = std::env::temp_dir().join(format!("explicate-ends-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let limits = Limits { flows: 10, waiting: 20_000, ..Limits::default() };
    let (mut end, socket) = pair(limits);
    end.receivers.as_mut().unwrap().store = Some(Store::open(Settings::new(&folder)).unwrap());
    open(&mut end, &socket, 1, &file("x", 1_000_000));
    answers(&socket, 1);
    for flow in 2..100 {
        open(&mut end, &socket, flow, PLAIN);
        answers(&socket, 1);
    }
    let receivers = end.receivers.as_ref().unwrap();
    assert_eq!((receivers.flows.len(), receivers.counters.refused), (10, 89));
    // Segments ahead of a hole wait in memory; there is room for 19 of them, with their overhead.
    for segment in 1..100 {
        socket.send(&data(1, segment, 948)).unwrap();
    }
    turn(&mut end);
    let receivers = end.receivers.as_ref().unwrap();
    assert_eq!(receivers.counters.no_room, 99 - 19);
    // What does not fit its flow is no part of it.
    socket.send(&data(1, 0, 500)).unwrap();
    turn(&mut end);
    assert_eq!(end.receivers.as_ref().unwrap().counters.misfits, 1);
    drop(end);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "no part stays behind");
    std::fs::remove_dir_all(folder).unwrap();
}

/// The header of the last packet that has arrived.
fn last_packet(socket: &UdpSocket) -> Transport {
    let (mut bytes, mut last) = ([0; 2000], None);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    while let Ok(length) = uninterrupted(|| socket.recv(&mut bytes)) {
        last = datagram::read(&bytes[..length]).ok();
        socket.set_nonblocking(true).unwrap();
    }
    socket.set_nonblocking(false).unwrap();
    last.expect("a packet").packet.transport
}

#[test]
fn nobody_but_the_receiver_acknowledges_or_ends_a_transfer() {
    let address = |socket: &UdpSocket| match socket.local_addr().unwrap() {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => panic!("IPv4"),
    };
    let mut end = Endpoint::open("127.0.0.1:0".parse().unwrap(), None, Clock::start()).unwrap();
    let (receiver, stranger) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.2:0").unwrap());
    end.sending.insert(77, Sending::new(transfer(77, address(&receiver), None)));
    turn(&mut end);
    let own = end.address().unwrap();
    let cookie = |high| bytes(&Message::Cookie(number(high, 77), [1; 16]).to_packet(), &[]);
    let ack = |echo: &Transport, flags, flow, segment, more: &[u8]| {
        let mut ack = Packet::EMPTY;
        ack.transport.set_packet_number(echo.packet_number());
        ack.transport.set_timestamp(echo.timestamp());
        ack.transport.set_flags(flag::ACK | flags);
        ack.transport.set_flow(flow);
        ack.transport.set_window(1000);
        ack.transport.set_segment(segment);
        bytes(&ack, more)
    };
    let high = HIGH.to_be_bytes();
    let connected = |echo: &Transport| ack(echo, flag::SYN, 77, 0, &[&high[..], &[0; 8]].concat());
    let first = |echo: &Transport| ack(echo, 0, 77, 1, &high);
    let syn = last_packet(&receiver);
    let guessed = [ack(&syn, 0, 78, 1, &high), ack(&syn, 0, 77, 1, &[]), ack(&syn, 0, 77, 1, &[0, 0, 0, 1])];
    let ends = |high| {
        let number = number(high, 77);
        let (same, differs) = (Verdict::Same, Verdict::Differs);
        let refused = Message::Refused(number, Refusal::Full);
        [
            Message::Unknown(number),
            Message::Answer(number, same, 1, [0; SHORT]),
            Message::Answer(number, differs, 1, [0; SHORT]),
            refused,
        ]
    };
    let state = |end: &Endpoint| (end.sending[&77].flow.acked(), end.sending[&77].state.clone());
    // The same address with another port is another host too.
    let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
    for liar in [&stranger, &neighbour] {
        for forged in [&cookie(HIGH), &connected(&syn), &first(&syn), &guessed[0]] {
            liar.send_to(forged, own).unwrap();
        }
        for message in ends(HIGH) {
            liar.send_to(&bytes(&message.to_packet(), &[]), own).unwrap();
        }
        turn(&mut end);
        assert_eq!((state(&end), end.sending[&77].have), ((0, TransferState::Open), None));
    }
    // Without the flow's number an attacker has to guess both of its halves, even from the right address.
    receiver.send_to(&cookie(HIGH), own).unwrap();
    turn(&mut end);
    for message in ends(HIGH + 1).into_iter().chain(ends(0)) {
        receiver.send_to(&bytes(&message.to_packet(), &[]), own).unwrap();
    }
    for forged in &guessed {
        receiver.send_to(forged, own).unwrap();
    }
    turn(&mut end);
    assert_eq!((state(&end), end.sending[&77].have), ((0, TransferState::Open), None));
    receiver.send_to(&connected(&last_packet(&receiver)), own).unwrap();
    turn(&mut end);
    receiver.send_to(&first(&last_packet(&receiver)), own).unwrap();
    turn(&mut end);
    assert_eq!(state(&end), (1, TransferState::Open), "the receiver itself is heard");
}

#[test]
fn whoever_sends_a_file_that_is_not_taken_hears_of_it() {
    let (mut end, socket) = pair(Limits::default());
    let asked = greeting(&mut end, &socket, 5, &file("a", 9));
    socket.send(&asked).unwrap();
    turn(&mut end);
    let told = answer(&socket).unwrap();
    assert_eq!(told, Message::Refused(number(HIGH, 5), Refusal::NoFiles));

    let mut sending = Sending::new(transfer(5, "127.0.0.1:9".parse().unwrap(), None));
    sending.handle_message(Time::ZERO, told);
    assert!(
        matches!(&sending.state, TransferState::Failed(why) if why.contains("accepts no files")),
        "{:?}",
        sending.state
    );
}

#[test]
fn a_silence_is_told_of_before_the_patience_ends() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(address) = silent.local_addr().unwrap() else { panic!("IPv4") };
    let told = fails(address, &["--time", "1", "--patience", "15"]);
    let lines: Vec<&str> = told.lines().collect();
    let hint = "is `explicated recv` running there by UDP";
    assert!(lines[0].contains("of --patience remain") && lines[0].contains(hint), "{told}");
    assert!(lines[1].contains("for 15 s") && lines[1].contains(hint) && lines.len() == 2, "{told}");
}

#[test]
fn a_verdict_without_the_key_is_none() {
    let key = Key::random().unwrap();
    let peer = "127.0.0.1:9".parse().unwrap();
    let [mut sending, mut locked] = [None, Some(key.clone())].map(|key| Sending::new(transfer(77, peer, key)));
    (sending.state, locked.state) = (TransferState::Asking, TransferState::Asking);
    let one = number(HIGH, 77);
    let (same, good) = (Verdict::Same, auth::verdict_code(&key, one, Verdict::Same.number(), 9));
    for sending in [&mut sending, &mut locked] {
        sending.handle_message(Time::ZERO, Message::Answer(one, same, 9, [0; SHORT]));
    }
    assert_eq!((&sending.state, &locked.state), (&TransferState::Over(9), &TransferState::Asking));
    locked.handle_message(Time::ZERO, Message::Answer(one, same, 8, good));
    assert_eq!(locked.state, TransferState::Asking, "of another length");
    locked.handle_message(Time::ZERO, Message::Answer(one, same, 9, good));
    assert_eq!(locked.state, TransferState::Over(9));
}

/// An attacker knows name, content and number of a transfer, and sends the same greeting from another port.
#[test]
fn a_greeting_from_another_port_leaves_a_part_alone() {
    let folder = std::env::temp_dir().join(format!("explicate-ends-part-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let content: Vec<u8> = (0..3 * 948u32).map(|i| ((i * 7) >> 3) as u8).collect();
    let (mut end, socket) = pair(Limits::default());
    end.receivers.as_mut().unwrap().store = Some(Store::open(Settings::new(&folder)).unwrap());
    let words = |content: &[u8]| {
        let digest = auth::hex(&sha256(content));
        format!("{PLAIN} kind=file name=copy size={} mode=644 digest={digest}", content.len())
    };
    let part = |i: usize| {
        let flags = if i == 2 { flag::FIN } else { 0 };
        numbered(flags, 5, i as u32, &content[i * 948..][..948])
    };
    open(&mut end, &socket, 5, &words(&content));
    socket.send(&part(0)).unwrap();
    turn(&mut end);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(end.address().unwrap()).unwrap();
    stranger.set_read_timeout(Some(PATIENCE)).unwrap();
    for (content, why) in [(&content[..], Refusal::Busy), (&content[1..], Refusal::NameTaken)] {
        open(&mut end, &stranger, 5, &words(content));
        assert_eq!(answer(&stranger), Some(Message::Refused(number(HIGH, 5), why)));
    }
    for i in 1..3 {
        socket.send(&part(i)).unwrap();
    }
    for _ in 0..100 {
        turn(&mut end);
    }
    let ended = end.receivers.as_ref().unwrap().ended.first().unwrap();
    assert_eq!(ended.file.as_ref().unwrap().1, Some(Verdict::Same));
    assert!(std::fs::read(folder.join("copy")).unwrap() == content, "called the same, and is another");
    std::fs::remove_dir_all(folder).unwrap();
}
