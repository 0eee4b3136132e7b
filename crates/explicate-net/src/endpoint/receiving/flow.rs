//! One received flow: the core's [`ReceiverEndpoint`] and the destination of its payload.

use std::net::SocketAddrV4;
use std::path::PathBuf;

use explicate_core::endpoint::{FlowInit, PARAMS, ReceiverEndpoint};
use explicate_core::params::Values;
use explicate_core::presets::DEFAULT_FALLBACK;
use explicate_core::registry;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};

use super::send;
use crate::endpoint::answers::Answers;
use crate::endpoint::auth::Code;
use crate::endpoint::content::Stock;
use crate::endpoint::gate::Gate;
use crate::endpoint::hello::{Hello, Sealed};
use crate::endpoint::message::{Message, Verdict};
use crate::endpoint::opening::answer_bytes;
use crate::endpoint::outbox::Outbox;

/// A flow: its sender's address and its 64-bit number.
pub type Key = (SocketAddrV4, u64);

/// The receiving end of one flow.
pub struct Receiving {
    /// The core's receiving end.
    pub receiver: ReceiverEndpoint,
    /// The parameters in the sender's SYN.
    pub hello: Hello,
    /// The destination of its payload.
    pub(super) stock: Stock,
    /// Bytes of memory that the total of all flows has of this one.
    pub(super) counted: usize,
    /// Another flow of this source offered the same file: the sender may have restarted.
    pub(super) may_be_stale: bool,
    /// The code (or cookie) that admitted it; a SYN with another does not belong to it.
    pub(super) code: Code,
    /// Bytes that existed before it began.
    pub(super) have: u64,
    /// Whether anything but its SYN has arrived.
    pub(super) established: bool,
    /// Arrival of its last packet or question.
    pub(super) last_packet_at: Time,
    /// When it began.
    pub since: Time,
    /// Packets that arrived with an ECN mark.
    pub marked: u64,
    /// Whether routers add feedback to its packets.
    pub answers: Answers,
}

/// How a flow ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its sender and number.
    pub key: Key,
    /// Bytes of payload in order.
    pub payload: u64,
    /// Time from its first packet to its last.
    pub lasted: Time,
    /// The file, if it carried one, and the verdict sent to the sender; `None` if it was abandoned.
    pub file: Option<(PathBuf, Option<Verdict>)>,
}

impl Receiving {
    /// A flow that begins now; `None` if no registered protocol can receive it.
    pub(super) fn new(
        now: Time,
        id: u32,
        hello: Hello,
        code: Code,
        (stock, have): (Stock, u64),
        window: u32,
    ) -> Option<Receiving> {
        let (receiver, answers) = (receiver(id, &hello, window)?, Answers::new(&hello.protocol));
        let (may_be_stale, established, marked) = (false, false, 0);
        let (last_packet_at, since) = (now, now);
        Some(Receiving {
            receiver,
            hello,
            stock,
            counted: 0,
            may_be_stale,
            code,
            have,
            established,
            last_packet_at,
            since,
            marked,
            answers,
        })
    }
    /// Whether a SYN is a copy of the one that began this flow.
    pub(super) fn is_greeted_by(&self, gate: &Gate, greeting: &[u8]) -> bool {
        let sealed = Sealed::of(greeting);
        gate.is_trusting() || sealed.code.or(sealed.cookie) == Some(self.code)
    }
    /// Handles a SYN or data packet, replaces it by its acknowledgement and sends that, unless it is delayed.
    pub(super) fn acknowledge(&mut self, now: Time, key: Key, packet: &mut Packet, gate: &Gate, out: &mut Outbox) {
        let mut sack = SackRanges::NONE;
        if self.receiver.turn(now, packet, &mut sack) {
            self.send(key, packet, &sack, gate, out);
        }
    }
    /// Sends a delayed acknowledgement that is due.
    pub(super) fn acknowledge_delayed(&mut self, now: Time, key: Key, gate: &Gate, out: &mut Outbox) {
        let (mut packet, mut sack) = (Packet::EMPTY, SackRanges::NONE);
        if self.receiver.poll_transmit(now, &mut packet, &mut sack) {
            self.send(key, &packet, &sack, gate, out);
        }
    }
    fn send(&self, (to, number): Key, packet: &Packet, sack: &SackRanges, gate: &Gate, out: &mut Outbox) {
        let (high, header) = ((number >> 32) as u32, &packet.transport);
        if high == 0 {
            return out.push(to, packet, sack, |_| 0);
        }
        let greeted = header
            .has(flag::SYN)
            .then(|| answer_bytes(self.have, gate.proof(number, header.options(), &self.code, self.have)));
        out.push(to, packet, sack, |room| {
            room[..4].copy_from_slice(&high.to_be_bytes());
            let Some((bytes, length)) = greeted else { return 4 };
            room[4..4 + length].copy_from_slice(&bytes[..length]);
            4 + length
        });
    }
    /// Corrects the memory of all flows, bytes, by what out-of-order and unwritten data of this one take now.
    pub(super) fn count_memory(&mut self, total: &mut usize) {
        let memory = self.stock.waiting() + self.receiver.memory();
        *total = *total + memory - self.counted;
        self.counted = memory;
    }
    /// Maximum memory that a segment would add, bytes.
    pub(super) fn would_keep(&self, segment: u32, length: usize) -> usize {
        let ahead = segment > self.receiver.expected();
        if ahead { self.stock.would_keep(segment, length) + self.receiver.memory_to_insert() } else { 0 }
    }
    /// Its summary, if it ends now.
    pub(super) fn ended(&self, key: Key, now: Time) -> Ended {
        let file = self.stock.path().map(|path| (path.to_path_buf(), self.stock.verdict()));
        Ended { key, payload: self.receiver.stats().payload, lasted: now.since(self.since), file }
    }
}

/// Sends the verdict on a flow.
pub(super) fn send_verdict(gate: &Gate, key: Key, verdict: Verdict, payload: u64, out: &mut Outbox) {
    let code = gate.verdict(key.1, verdict.number(), payload);
    send(key.0, Message::Answer(key.1, verdict, payload, code), out);
}

/// The core's receiving end for the parameters of a SYN. A flow with a protocol that is not registered here is
/// received as plain TCP, and its sender falls back.
fn receiver(id: u32, hello: &Hello, window: u32) -> Option<ReceiverEndpoint> {
    let mut values = Values::default();
    let mut set = |name: &str, value: f64| {
        if let Some(param) = PARAMS.iter().find(|p| p.name == name) {
            values.set(param, value);
        }
    };
    set("receiver_window", hello.window.map_or(window, |asked| asked.min(window)) as f64);
    set("quick_acks", hello.quick_acks as f64);
    set("acks", hello.acks as u8 as f64);
    set("refuse_explicit", hello.refuse_explicit as u32 as f64);
    set("ack_every", hello.ack_every as f64);
    set("guard", 1.0); // if the sender requests it
    set("ack_delay", hello.ack_delay_us as f64 / 1e6);
    let fallback = registry::resolve(DEFAULT_FALLBACK).ok()?;
    let resolved = registry::resolve(&hello.protocol).unwrap_or_else(|_| {
        set("refuse_explicit", 1.0);
        fallback
    });
    let init = FlowInit {
        id,
        protocol: resolved.protocol,
        fallback,
        recovery: resolved.recovery,
        values: &values,
        packet: hello.packet,
        interface: Rate::mbps(1000),
    };
    Some(ReceiverEndpoint::new(&init))
}

#[cfg(test)]
mod tests {
    use explicate_core::endpoint::SenderEndpoint;

    use super::*;
    use crate::endpoint::hello::Content;

    /// Acknowledgements of the first 64 segments, which come in order, by a receiver that knows the greeting alone.
    fn acknowledgements(words: impl Fn(&str) -> String, acks: f64) -> usize {
        let mut values = Values::default();
        let mut set = |name: &str, value| values.set(PARAMS.iter().find(|p| p.name == name).unwrap(), value);
        set("initial_window", 64.0);
        set("acks", acks);
        let resolved = registry::resolve("reno").unwrap();
        let init = FlowInit {
            id: 7,
            protocol: resolved.protocol,
            fallback: resolved,
            recovery: resolved.recovery,
            values: &values,
            packet: 1000,
            interface: Rate::mbps(1000),
        };
        let hello =
            Hello::parse(words(&Hello::new("reno", 1000, &values, Content::Nothing).words()).as_bytes()).unwrap();
        let (mut sender, mut receiver) = (SenderEndpoint::new(&init), receiver(7, &hello, 1 << 20).unwrap());
        sender.write(1 << 20, true);
        let (mut packet, mut sack, mut count) = (Packet::EMPTY, SackRanges::NONE, 0);
        assert!(sender.poll_transmit(Time::ZERO, &mut packet) && receiver.turn(Time::ZERO, &mut packet, &mut sack));
        sender.handle_packet(Time::millis(10), &packet, &sack);
        while sender.poll_transmit(Time::millis(10), &mut packet) {
            count += receiver.turn(Time::millis(10), &mut packet, &mut sack) as usize;
        }
        count
    }

    /// Linux's 16 quick ones, and every second of the 48 others. A receiver of an earlier version ignores the word.
    #[test]
    fn the_rule_of_acknowledgements_reaches_the_other_end() {
        let unchanged = str::to_string;
        assert_eq!(acknowledgements(unchanged, 0.0), 64);
        assert_eq!(acknowledgements(unchanged, 1.0), 16 + 24);
        assert_eq!(acknowledgements(|words| words.replace("acks=linux", "later=linux"), 1.0), 64);
    }
}
