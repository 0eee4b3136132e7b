//! Answers to probes, and to requests for the cookies that probes and flows begin with.

use std::net::SocketAddrV4;

use explicate_core::units::Time;

use super::gate::{Gate, Limiter};
use super::hello;
use super::message::{Message, Refusal};

/// Most probes per second from one address that are answered.
pub const PROBES: u32 = 20_000;

/// Answers to probes within a rate limit per source.
pub struct Echoes(Limiter);

impl Echoes {
    /// Answers so many probes per second from one address.
    pub fn new(per_second: u32) -> Echoes {
        Echoes(Limiter::new(per_second, per_second))
    }
    /// The answer to a probe or a request for a cookie; `None` to other messages, above a rate limit, and to a sender that has not shown
    /// that it receives at its address. It is no longer than the message.
    pub fn answer(&mut self, gate: &mut Gate, now: Time, from: SocketAddrV4, message: Message) -> Option<Message> {
        match message {
            Message::Knock(number, version, code) => {
                let cookie = gate.knock(now, from, number, &code)?;
                let known = u32::from(version) == hello::VERSION;
                Some(if known { Message::Cookie(number, cookie) } else { Message::Refused(number, Refusal::Version) })
            }
            Message::Probe(index, nonce, sent, code) => {
                let valid = gate.is_probe(now, from, nonce, &code) && self.0.passes(now, *from.ip());
                valid.then_some(Message::Echo(index, nonce, sent, now))
            }
            _ => None,
        }
    }
}
