//! The flows that a socket receives: the core's [`ReceiverEndpoint`] of each, made when its SYN arrives.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use explicate_core::endpoint::ReceiverEndpoint;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges, flag};

use super::outbox::Outbox;

/// A flow: its sender's address and its number.
pub type Key = (SocketAddrV4, u32);
/// Makes the receiving end of the flow of a number, if that ends here.
pub type Opens<'a> = Box<dyn Fn(u32) -> Option<ReceiverEndpoint> + 'a>;

/// All flows that a socket receives.
pub struct Receivers<'a> {
    /// The flows. They are kept after their last packet, because their counters are results.
    pub flows: BTreeMap<Key, ReceiverEndpoint>,
    opens: Opens<'a>,
    /// When the earliest delayed acknowledgement is due.
    next_ack_at: Time,
}

impl<'a> Receivers<'a> {
    /// Without flows; `opens` makes them.
    pub fn new(opens: Opens<'a>) -> Receivers<'a> {
        Receivers { flows: BTreeMap::new(), opens, next_ack_at: Time::NEVER }
    }
    /// Handles a SYN or data packet of this flow. Its acknowledgement replaces it.
    pub fn handle_packet(&mut self, now: Time, key: Key, packet: &mut Packet, out: &mut Outbox) {
        if packet.transport.has(flag::SYN) && !self.flows.contains_key(&key) {
            (self.opens)(key.1).map(|receiver| self.flows.insert(key, receiver));
        }
        let Some(receiver) = self.flows.get_mut(&key) else { return };
        let mut sack = SackRanges::NONE;
        if receiver.turn(now, packet, &mut sack) {
            out.push(key.0, packet, &sack, 0);
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
                    out.push(key.0, &packet, &sack, 0);
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
