//! Answers at the socket of a receiver to `explicated probe` and `advise`, and to senders by UDP: messages of that transport.
//!
//! Any host may measure the path to a receiver once it has returned a cookie. A sender by UDP is refused, with the reason. In IPv6
//! there is no answer, because these messages have none.

use std::net::{SocketAddr, SocketAddrV4};

use explicate_core::datagram::{self, MOST_HEADERS, Read};
use explicate_core::units::Time;
use explicate_core::wire::{SackRanges, flag};

use crate::clock::Clock;
use crate::endpoint::auth::Key;
use crate::endpoint::echoes::{Echoes, PROBES};
use crate::endpoint::gate::{Admission, Gate};
use crate::endpoint::hello;
use crate::endpoint::message::{Message, Refusal};
use crate::endpoint::number_of;
use crate::error::Result;

/// A cookie is valid for at most this time.
const COOKIE: Time = Time::secs(10);
/// Most requests for cookies per second from one address.
const REQUESTS: u32 = 100;

/// What answers probes.
pub struct Probed {
    gate: Gate,
    echoes: Echoes,
    clock: Clock,
}

impl Probed {
    /// With cookies by a random secret.
    pub fn new() -> Result<Probed> {
        let gate = Gate::new(Admission::Open, Key::random()?, COOKIE, REQUESTS);
        Ok(Probed { gate, echoes: Echoes::new(PROBES), clock: Clock::start() })
    }
    /// The answer to a datagram, if it is a message that has one.
    pub fn answer(&mut self, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        let SocketAddr::V4(from) = SocketAddr::new(from.ip().to_canonical(), from.port()) else { return None };
        let (read, now) = (datagram::read(bytes).ok()?, self.clock.now());
        let answer = match Message::of(&read.packet) {
            Some(message) => self.echoes.answer(&mut self.gate, now, from, message)?,
            None => self.refuse(now, from, &read, bytes)?,
        };
        let mut headers = [0; MOST_HEADERS];
        let length = datagram::write(&answer.to_packet(), &SackRanges::NONE, &mut headers);
        // No answer is longer than its cause.
        (length <= bytes.len()).then(|| headers[..length].to_vec())
    }
    /// The refusal of a flow by UDP, if that is its greeting; within the rate limit of cookies.
    /// Version 0.1 understands only that its flow is unknown.
    fn refuse(&mut self, now: Time, from: SocketAddrV4, read: &Read, bytes: &[u8]) -> Option<Message> {
        let version = hello::version(&bytes[read.payload..]).filter(|_| read.packet.transport.has(flag::SYN))?;
        let number = number_of(bytes, read);
        self.gate.cookie(now, from, number)?;
        Some(if version == 1 { Message::Unknown(number) } else { Message::Refused(number, Refusal::Quic) })
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::wire::Packet;

    use super::*;
    use crate::endpoint::auth::probe_code;

    fn bytes(message: &Message) -> Vec<u8> {
        let mut headers = [0; MOST_HEADERS];
        let length = datagram::write(&message.to_packet(), &SackRanges::NONE, &mut headers);
        headers[..length].to_vec()
    }

    #[test]
    fn a_probe_is_answered_to_an_address_that_has_returned_a_cookie() {
        let mut probed = Probed::new().unwrap();
        let [asks, other] = ["10.0.0.1:5", "10.0.0.2:5"].map(|address| address.parse().unwrap());
        let reply = probed.answer(asks, &bytes(&Message::knock(7))).unwrap();
        let Some(Message::Cookie(7, cookie)) = Message::of(&datagram::read(&reply).unwrap().packet) else {
            panic!("no cookie")
        };
        let probe = bytes(&Message::Probe(1, 7, Time(3), probe_code(None, &cookie)));
        let mapped = "[::ffff:10.0.0.1]:5".parse().unwrap();
        for from in [asks, mapped] {
            let echo = probed.answer(from, &probe).unwrap();
            assert!(echo.len() <= probe.len());
            assert!(matches!(
                Message::of(&datagram::read(&echo).unwrap().packet),
                Some(Message::Echo(1, 7, Time(3), _))
            ));
        }
        let from_ipv6 = "[2001:db8::1]:5".parse().unwrap();
        assert!(probed.answer(other, &probe).is_none() && probed.answer(from_ipv6, &probe).is_none());
        assert!(probed.answer(asks, &bytes(&Message::Question(7, [0; 20]))).is_none());
    }

    #[test]
    fn a_sender_by_udp_gets_an_answer_that_its_version_understands() {
        let mut probed = Probed::new().unwrap();
        let from = "10.0.0.1:5".parse().unwrap();
        let mut syn = Packet::EMPTY;
        syn.transport.set_flags(flag::SYN);
        syn.transport.set_flow(5);
        let mut headers = [0; MOST_HEADERS];
        let length = datagram::write(&syn, &SackRanges::NONE, &mut headers);
        let mut answer = |greeting: &[u8]| {
            let answer = probed.answer(from, &[&headers[..length], greeting].concat())?;
            Message::of(&datagram::read(&answer).unwrap().packet)
        };
        assert_eq!(answer(b"explicate/1 protocol=xcp packet=1500"), Some(Message::Unknown(5)));
        assert_eq!(answer(b"explicate/2 protocol=xcp packet=1500"), Some(Message::Refused(5, Refusal::Quic)));
        assert_eq!(answer(b"nonsense"), None);
        assert_eq!(answer(b"explicate/1"), None, "the answer would be longer");
    }
}
