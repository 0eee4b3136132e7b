//! What the two ends of a transfer say to each other beside its packets, as messages of 28 bytes.
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | kind: 0x80 asks how it went, 0x81 answers, 0x82 says that nobody here knows the flow; 0x83 is a probe, 0x84 its echo |
//! | 1 | answer: 1 all arrived and is the same, 2 all arrived and differs, 3 not all, 4 could not be written |
//! | 4-7 | flow |
//! | 2-3 | probe, echo: its number; its nonce stands in the place of the flow |
//! | 8-27 | probe: when it was sent, ns, in 8-15; echo: that, and when it came in 16-23; question: first 20 bytes of the SHA-256 of the content, or zeros; answer: payload in order, bytes, in 8-15 |
//!
//! Kinds below 0x80 are those of the core's agents.

use explicate_core::protocol::CONTROL_LEN;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, flag};

/// Bytes of a digest that are compared.
pub const DIGEST: usize = 20;

/// How a transfer went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All arrived and is the same.
    Same,
    /// All arrived, but it is not the same.
    Differs,
    /// Not all has arrived.
    Missing,
    /// What arrived could not be written.
    NotWritten,
}

const VERDICTS: [Verdict; 4] = [Verdict::Same, Verdict::Differs, Verdict::Missing, Verdict::NotWritten];

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// How did this flow go, whose content has this digest?
    Question(u32, [u8; DIGEST]),
    /// So, and so many bytes of payload arrived.
    Answer(u32, Verdict, u64),
    /// Nobody here knows this flow.
    Unknown(u32),
    /// A probe: its number, a nonce, when it was sent.
    Probe(u16, u32, Time),
    /// Its echo, with when it came.
    Echo(u16, u32, Time, Time),
}

impl Message {
    /// The packet that carries it.
    pub fn to_packet(self) -> Packet {
        let mut bytes = [0; CONTROL_LEN];
        let flow = match self {
            Message::Question(flow, digest) => {
                bytes[0] = 0x80;
                bytes[8..].copy_from_slice(&digest);
                flow
            }
            Message::Answer(flow, verdict, payload) => {
                (bytes[0], bytes[1]) = (0x81, verdict as u8 + 1);
                bytes[8..16].copy_from_slice(&payload.to_be_bytes());
                flow
            }
            Message::Unknown(flow) => {
                bytes[0] = 0x82;
                flow
            }
            Message::Probe(index, nonce, sent) | Message::Echo(index, nonce, sent, _) => {
                bytes[0] = 0x83;
                bytes[2..4].copy_from_slice(&index.to_be_bytes());
                bytes[8..16].copy_from_slice(&sent.0.to_be_bytes());
                if let Message::Echo(.., came) = self {
                    bytes[0] = 0x84;
                    bytes[16..24].copy_from_slice(&came.0.to_be_bytes());
                }
                nonce
            }
        };
        bytes[4..8].copy_from_slice(&flow.to_be_bytes());
        let mut packet = Packet::EMPTY;
        packet.transport.set_flags(flag::CONTROL);
        packet.transport.0[12..].copy_from_slice(&bytes[..12]);
        packet.congestion.0[4..].copy_from_slice(&bytes[12..]);
        packet
    }
    /// Reads it; `None` for other messages.
    pub fn of(packet: &Packet) -> Option<Message> {
        let (first, rest) = (&packet.transport.0[12..], &packet.congestion.0[4..]);
        let flow = u32::from_be_bytes([first[4], first[5], first[6], first[7]]);
        match first[0] {
            0x80 => {
                let mut digest = [0; DIGEST];
                digest[..4].copy_from_slice(&first[8..]);
                digest[4..].copy_from_slice(rest);
                Some(Message::Question(flow, digest))
            }
            0x81 => {
                let verdict = *VERDICTS.get((first[1] as usize).wrapping_sub(1))?;
                let payload = first[8..].iter().chain(&rest[..4]).fold(0u64, |sum, &b| sum << 8 | b as u64);
                Some(Message::Answer(flow, verdict, payload))
            }
            0x82 => Some(Message::Unknown(flow)),
            kind @ (0x83 | 0x84) => {
                let index = u16::from_be_bytes([first[2], first[3]]);
                let word =
                    |bytes: &mut dyn Iterator<Item = &u8>| Time(bytes.take(8).fold(0, |sum, &b| sum << 8 | b as u64));
                let sent = word(&mut first[8..].iter().chain(&rest[..4]));
                let came = word(&mut rest[4..].iter());
                Some(if kind == 0x83 {
                    Message::Probe(index, flow, sent)
                } else {
                    Message::Echo(index, flow, sent, came)
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        for message in [
            Message::Question(7, [9; DIGEST]),
            Message::Answer(u32::MAX, Verdict::Differs, 1 << 40 | 3),
            Message::Unknown(1),
            Message::Probe(9, 5, Time(1 << 40)),
            Message::Echo(65535, 5, Time(7), Time(1 << 50)),
        ] {
            assert_eq!(Message::of(&message.to_packet()), Some(message));
        }
        assert_eq!(Message::of(&Packet::EMPTY), None);
    }
}
