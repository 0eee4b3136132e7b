//! The flows that a socket receives: the core's [`ReceiverEndpoint`] of each, opened by the greeting in its SYN.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use explicate_core::endpoint::{FlowInit, PARAMS, ReceiverEndpoint};
use explicate_core::params::Values;
use explicate_core::presets::DEFAULT_FALLBACK;
use explicate_core::registry;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};

use super::hello::Hello;
use super::outbox::Outbox;

/// A flow: its sender's address and its number.
pub type Key = (SocketAddrV4, u32);

/// Most segments that a flow may be ahead of the in-order data.
const WINDOW: u32 = 1 << 16;

/// All flows that a socket receives.
pub struct Receivers {
    /// The flows. They are kept after their last packet, because their counters are results.
    pub flows: BTreeMap<Key, ReceiverEndpoint>,
    /// When the earliest delayed acknowledgement is due.
    next_ack_at: Time,
}

impl Default for Receivers {
    fn default() -> Receivers {
        Receivers { flows: BTreeMap::new(), next_ack_at: Time::NEVER }
    }
}

impl Receivers {
    /// Handles a SYN or data packet of this flow. Its acknowledgement replaces it.
    pub fn handle_packet(&mut self, now: Time, key: Key, packet: &mut Packet, payload: &[u8], out: &mut Outbox) {
        let syn = packet.transport.has(flag::SYN);
        if syn && !self.flows.contains_key(&key) {
            let opened = Hello::parse(payload).and_then(|hello| receiver(key.1, &hello));
            opened.map(|receiver| self.flows.insert(key, receiver));
        }
        let fits = syn || payload.len() == packet.transport.payload() as usize;
        let Some(receiver) = self.flows.get_mut(&key).filter(|_| fits) else { return };
        let mut sack = SackRanges::NONE;
        if receiver.turn(now, packet, &mut sack) {
            out.push(key.0, packet, &sack, |_| 0);
        }
        self.next_ack_at = self.next_ack_at.min(receiver.poll_timeout());
    }
    /// Sends delayed acknowledgements that are due.
    pub fn handle_timeout(&mut self, now: Time, out: &mut Outbox) {
        if self.next_ack_at > now {
            return;
        }
        self.next_ack_at = Time::NEVER;
        for (key, receiver) in &mut self.flows {
            if receiver.poll_timeout() <= now {
                receiver.handle_timeout(now);
                let (mut packet, mut sack) = (Packet::EMPTY, SackRanges::NONE);
                if receiver.poll_transmit(now, &mut packet, &mut sack) {
                    out.push(key.0, &packet, &sack, |_| 0);
                }
            }
            self.next_ack_at = self.next_ack_at.min(receiver.poll_timeout());
        }
    }
    /// When [`handle_timeout`](Receivers::handle_timeout) has to be called.
    pub fn due(&self) -> Time {
        self.next_ack_at
    }
}

/// The core's receiving end for the parameters of a SYN. A flow with a protocol that is not registered here is
/// received as plain TCP, and its sender falls back.
fn receiver(id: u32, hello: &Hello) -> Option<ReceiverEndpoint> {
    let mut values = Values::default();
    let mut set = |name: &str, value: f64| {
        if let Some(param) = PARAMS.iter().find(|p| p.name == name) {
            values.set(param, value);
        }
    };
    set("receiver_window", hello.window.map_or(WINDOW, |asked| asked.min(WINDOW)) as f64);
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
        let hello = Hello::parse(words(&Hello::new("reno", 1000, &values).words()).as_bytes()).unwrap();
        let (mut sender, mut receiver) = (SenderEndpoint::new(&init), receiver(7, &hello).unwrap());
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
