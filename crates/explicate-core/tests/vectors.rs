//! Conformance vectors of the endpoints: `vectors/*.txt`, played to a [`SenderEndpoint`] or a [`ReceiverEndpoint`] without a network.
//!
//! The situations are those of public packetdrill scripts and of RFCs, which each vector names after `from`. The notation is ours:
//!
//! ```text
//! vector one-gap                  a name, unique among all files
//! from RFC 8985 section 6.2       the script or section
//! sender reno/rack rto=linux      protocol, parameters; `rtt=` of the set-up in ms, `size=` of the packets
//! 0 write 4                       times in milliseconds since the set-up; segments
//! 0 send 0..4                     all that left since the last line, at this time: ranges without their end, or single segments
//! 100 ack 0 sack 1..4             next expected, ranges; the stamp is that of the last transmission of the highest segment in the
//!                                 first range, or of the one before the next expected
//! 100 ack 4 of 0.1                the same, caused by the second transmission of segment 0
//! 300 expect cwnd 2               a variable of probes, `cwnd`, `acked`, `timeouts`, `resent` or `timer` (ms)
//! receiver dsack                  options of the SYN: sack, dsack
//! 0 data 0 1 5                    segments that arrive, each answered
//! 0 answer 2 sack 5..6            the answer to the last one
//! ```
//!
//! What is sent and not mentioned by the next line is a failure.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use explicate_core::endpoint::{FlowInit, PARAMS, ReceiverEndpoint, SenderEndpoint};
use explicate_core::params::{Param, Unit, Values};
use explicate_core::recovery::COMMON;
use explicate_core::registry;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag, option};

/// Sets `name=value`: a number in base units, a flag or a choice.
fn set(values: &mut Values, lists: &[&'static [Param]], name: &str, value: &str) {
    let param = lists.iter().copied().flatten().find(|p| p.name == name);
    let param = param.unwrap_or_else(|| panic!("no parameter is called `{name}`"));
    let number = match param.unit {
        Unit::Choice(names) => names.iter().position(|n| *n == value).map(|i| i as f64),
        Unit::Flag => value.parse().ok().map(|flag: bool| flag as u8 as f64),
        _ => value.parse().ok(),
    };
    values.set(param, number.unwrap_or_else(|| panic!("`{value}` is no value of `{name}`")));
}

fn number<T: FromStr<Err: Debug>>(word: &str) -> T {
    word.parse().unwrap_or_else(|problem| panic!("`{word}` is no number: {problem:?}"))
}
fn range(word: &str) -> (u32, u32) {
    match word.split_once("..") {
        Some((first, end)) => (number(first), number(end)),
        None => (number(word), number::<u32>(word) + 1),
    }
}
fn time(ms: f64) -> Time {
    Time::from_secs_f64(ms / 1000.0)
}

/// One transmission of a sender under test.
struct Departure {
    at: Time,
    packet: Packet,
}

struct Sender {
    flow: SenderEndpoint,
    /// When the set-up was over.
    zero: Time,
    sent: Vec<Departure>,
    /// How many of them were mentioned.
    seen: usize,
    /// The packet numbers that acknowledgements have echoed.
    answered: BTreeSet<u32>,
}

impl Sender {
    fn new(words: &[&str]) -> Sender {
        let resolved = registry::resolve(words[0]).unwrap_or_else(|problem| panic!("{problem}"));
        let (mut values, mut rtt, mut size) = (Values::default(), 100.0, 1000);
        let lists = [PARAMS, COMMON, resolved.recovery.params(), resolved.protocol.params()];
        for word in &words[1..] {
            let (name, value) = word.split_once('=').unwrap_or_else(|| panic!("`{word}` is not name=value"));
            match name {
                "rtt" => rtt = number(value),
                "size" => size = number(value),
                _ => set(&mut values, &lists, name, value),
            }
        }
        let init = FlowInit { packet: size, interface: Rate::mbps(10_000), ..testing::flow(resolved, &values) };
        let (mut flow, mut receiver) = (SenderEndpoint::new(&init), ReceiverEndpoint::new(&init));
        flow.write(0, false);
        let (mut syn, mut ranges) = (Packet::EMPTY, SackRanges::NONE);
        let start = Time::secs(1);
        assert!(flow.poll_transmit(start, &mut syn), "a SYN");
        assert!(receiver.turn(start, &mut syn, &mut ranges), "its answer");
        let zero = start + time(rtt);
        flow.handle_packet(zero, &syn, &ranges);
        Sender { flow, zero, sent: Vec::new(), seen: 0, answered: BTreeSet::new() }
    }
    /// Lets all leave that may.
    fn send(&mut self, now: Time) {
        let mut packet = Packet::EMPTY;
        while self.flow.poll_transmit(now, &mut packet) {
            self.sent.push(Departure { at: now, packet });
            assert!(self.sent.len() < 100_000, "it sends without end");
        }
    }
    /// Lets the time pass; timers expire.
    fn pass(&mut self, until: Time) {
        let mut steps = 0;
        while self.flow.poll_timeout() <= until {
            let due = self.flow.poll_timeout();
            self.flow.handle_timeout(due);
            self.send(due);
            steps += 1;
            assert!(steps < 100_000, "its timers do not move on");
        }
    }
    /// The acknowledgement that a transmission of a segment causes.
    fn acknowledge(&mut self, now: Time, words: &[&str]) {
        let cumulative: u32 = number(words[0]);
        let (mut ranges, mut of) = (SackRanges::NONE, None);
        let mut rest = words[1..].iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "sack" => {}
                "of" => of = rest.next(),
                _ => {
                    let (first, end) = range(word);
                    ranges.push(first, end);
                }
            }
        }
        let first = ranges.as_slice().first().map_or(cumulative, |r| if r.0 < cumulative { cumulative } else { r.1 });
        let (segment, nth) = match of.map(|of| of.split_once('.').unwrap_or((of, ""))) {
            Some((segment, nth)) => (number(segment), (!nth.is_empty()).then(|| number::<usize>(nth))),
            None => (first.saturating_sub(1), None),
        };
        let mut of_segment = self.sent.iter().filter(|d| d.packet.transport.segment() == segment);
        let cause = match nth {
            Some(nth) => of_segment.nth(nth),
            None => of_segment.next_back(),
        };
        let cause = cause.unwrap_or_else(|| panic!("segment {segment} was not sent (so often)")).packet.transport;
        let mut ack = Packet { ip_len: 52, ..Packet::EMPTY };
        let header = &mut ack.transport;
        header.set_flags(flag::ACK);
        header.set_flow(7);
        header.set_segment(cumulative);
        // Every acknowledgement is that of another packet.
        let mut numbers = self.sent.iter().rev().map(|d| d.packet.transport.packet_number());
        let own = Some(cause.packet_number()).filter(|number| !self.answered.contains(number));
        let number = own.or_else(|| numbers.find(|number| !self.answered.contains(number)));
        let number = number.expect("no more acknowledgements than packets");
        self.answered.insert(number);
        header.set_packet_number(number);
        header.set_timestamp(cause.timestamp());
        header.set_window(1 << 20);
        header.set_sack_count(ranges.as_slice().len());
        self.flow.handle_packet(now, &ack, &ranges);
    }
    fn variable(&mut self, name: &str) -> f64 {
        match name {
            "cwnd" => self.flow.cwnd(),
            "acked" => self.flow.acked() as f64,
            "timeouts" => self.flow.stats().timeouts as f64,
            "resent" => self.flow.stats().retransmissions as f64,
            "timer" => self.flow.poll_timeout().since(self.zero).to_millis(),
            _ => testing::probed(|put| self.flow.probe(put), name),
        }
    }
    fn line(&mut self, at: f64, words: &[&str]) {
        let now = self.zero + time(at);
        self.pass(now);
        if words[0] != "send" && self.seen < self.sent.len() {
            let left: Vec<(f64, u32)> = self.unseen();
            panic!("these left and were not expected (ms, segment): {left:?}");
        }
        match words[0] {
            "write" => {
                let bytes = number::<u64>(words[1]) * self.flow.payload() as u64;
                self.flow.write(bytes, false);
            }
            "ack" => self.acknowledge(now, &words[1..]),
            "expect" => {
                let (found, expected): (f64, f64) = (self.variable(words[1]), number(words[2]));
                assert!((found - expected).abs() < 1e-6, "{} is {found}, not {expected}", words[1]);
            }
            "send" => {
                let expected: Vec<(f64, u32)> =
                    words[1..].iter().map(|word| range(word)).flat_map(|(a, b)| a..b).map(|s| (at, s)).collect();
                assert_eq!(self.unseen(), expected, "what left (ms, segment), and what was expected");
                self.seen = self.sent.len();
            }
            other => panic!("`{other}` is nothing that a sender does"),
        }
        if words[0] != "send" {
            self.send(now);
        }
    }
    fn unseen(&self) -> Vec<(f64, u32)> {
        let of = |d: &Departure| (d.at.since(self.zero).to_millis(), d.packet.transport.segment());
        self.sent[self.seen..].iter().map(of).collect()
    }
}

struct Receiver {
    end: ReceiverEndpoint,
    number: u32,
    answer: Option<(u32, SackRanges)>,
}

impl Receiver {
    fn new(words: &[&str]) -> Receiver {
        let resolved = registry::resolve("reno/rack").expect("registered");
        let mut end = ReceiverEndpoint::new(&testing::flow(resolved, &Values::default()));
        let options = words.iter().map(|word| match *word {
            "sack" => option::SACK,
            "dsack" => option::SACK | option::DSACK,
            "dsack_alone" => option::DSACK,
            other => panic!("no option is called `{other}`"),
        });
        let mut syn = Packet::EMPTY;
        syn.transport.set_flow(7);
        syn.transport.set_flags(flag::SYN);
        let offered = options.fold(0, |all, one| all | one);
        syn.transport.set_options(offered);
        assert!(end.turn(Time::ZERO, &mut syn, &mut SackRanges::default()), "the SYN is answered");
        assert_eq!(syn.transport.options(), offered, "granted");
        Receiver { end, number: 1, answer: None }
    }
    fn line(&mut self, at: f64, words: &[&str]) {
        match words[0] {
            "data" => {
                for segment in words[1..].iter().map(|word| range(word)).flat_map(|(a, b)| a..b) {
                    let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
                    packet.transport.set_flow(7);
                    packet.transport.set_segment(segment);
                    packet.transport.set_packet_number(self.number);
                    packet.transport.set_payload(900);
                    self.number += 1;
                    let mut ranges = SackRanges::NONE;
                    assert!(self.end.turn(time(at), &mut packet, &mut ranges), "{segment} is answered");
                    if packet.transport.sack_count() == 0 {
                        ranges.clear();
                    }
                    assert_eq!(ranges.as_slice().len(), packet.transport.sack_count());
                    self.answer = Some((packet.transport.segment(), ranges));
                }
            }
            "answer" => {
                let (next, ranges) = self.answer.as_ref().expect("data before an answer");
                let expected: Vec<(u32, u32)> =
                    words[2..].iter().filter(|word| **word != "sack").map(|word| range(word)).collect();
                assert_eq!((*next, ranges.as_slice()), (number(words[1]), &expected[..]));
            }
            other => panic!("`{other}` is nothing that a receiver does"),
        }
    }
}

enum End {
    None,
    Sender(Box<Sender>),
    Receiver(Receiver),
}

/// Plays a file; returns the names of its vectors.
fn play(path: &Path, text: &str) -> Vec<String> {
    let (mut names, mut end, mut from) = (Vec::new(), End::None, false);
    for (i, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let place = || format!("{}:{}: {line}", path.display(), i + 1);
        let mut step = || match words[..] {
            [] => {}
            ["vector", name] => {
                finish(&mut end);
                names.push(name.to_string());
                from = false;
            }
            ["from", ..] => from = words.len() > 1,
            ["sender", ..] => end = End::Sender(Box::new(Sender::new(&words[1..]))),
            ["receiver", ..] => end = End::Receiver(Receiver::new(&words[1..])),
            [at, ..] if words.len() > 1 => {
                assert!(from, "the vector does not say where it is from");
                match &mut end {
                    End::Sender(sender) => sender.line(number(at), &words[1..]),
                    End::Receiver(receiver) => receiver.line(number(at), &words[1..]),
                    End::None => panic!("a line before `sender` or `receiver`"),
                }
            }
            _ => panic!("no such line"),
        };
        if let Err(problem) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut step)) {
            #[expect(clippy::print_stderr, reason = "says which line of which file failed")]
            {
                eprintln!("at {}", place());
            }
            std::panic::resume_unwind(problem);
        }
    }
    finish(&mut end);
    names
}
fn finish(end: &mut End) {
    if let End::Sender(sender) = std::mem::replace(end, End::None) {
        assert_eq!(sender.unseen(), [], "these left at the end and were not expected");
    }
}

#[test]
fn every_vector_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let entries = fs::read_dir(&folder).expect("the folder of vectors");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "txt"));
    files.sort();
    let mut names = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("readable");
        names.extend(play(&path, &text));
    }
    let different: BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "names are unique");
    assert!(names.len() >= 40, "{} vectors", names.len());
}

/// The runner itself fails where it should.
#[test]
fn a_wrong_vector_fails() {
    let good = "vector a\nfrom RFC 5681\nsender reno/rack initial_window=3\n0 write 2\n0 send 0..2\n100 ack 2\n";
    let fails = |text: &str| {
        let text = text.to_string();
        std::panic::catch_unwind(move || play(Path::new("wrong"), &text)).is_err()
    };
    assert!(!fails(good));
    for (from, to) in [("send 0..2", "send 0..3"), ("0 send 0..2\n", ""), ("from RFC 5681\n", ""), ("ack 2", "ack x")] {
        assert!(fails(&good.replace(from, to)), "{to}");
    }
}
