//! Messages between the two ends of a transfer besides its packets, 28 bytes each.
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | kind: 0x80 request for the verdict, 0x81 verdict, 0x82 unknown flow; 0x83 probe, 0x84 echo; 0x85 request for a cookie, 0x86 cookie; 0x87 refusal of a flow |
//! | 1 | verdict: 1 complete and verified, 2 complete but different, 3 incomplete, 4 could not be written, 5 complete and being verified, 6 the disk is full, 7 another file got its name meanwhile; 0x85: the version of greetings; 0x87: the reason, see [`Refusal`] |
//! | 4-7 | lower half of the flow's number; the upper half is in bytes 8-11 of the transport header, before the message |
//! | 2-3 | probe, echo: its number; its nonce is in the field of the flow |
//! | 8-27 | probe: when it was sent, ns, in 8-15; echo: that time, and the probe's arrival in 16-23; request: first 20 bytes of the SHA-256 of the content, or zeros; verdict: payload in order, bytes, in 8-15, and its code in 16-27; 0x85: the code of the key, 0x86: the cookie, in 8-23; probe: its code in 16-27 |
//!
//! Kinds below 0x80 are those of the core's agents.

use explicate_core::agent::CONTROL_LEN;
use explicate_core::units::Time;
use explicate_core::wire::{Packet, flag};

use super::auth::{self, CODE, Code, Key, ShortCode};
use super::hello::VERSION;

/// Bytes of a digest that are compared.
pub const DIGEST: usize = 20;

/// The verdict on a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All data arrived, and the digest is right.
    Same,
    /// All data arrived, but the digest differs.
    Differs,
    /// Some data are missing.
    Missing,
    /// It could not be written.
    NotWritten,
    /// All data arrived, and the digest is being computed.
    Checking,
    /// The disk is full.
    Full,
    /// All data arrived, but another file got its name meanwhile.
    NameExists,
}

const VERDICTS: [Verdict; 7] = [
    Verdict::Same,
    Verdict::Differs,
    Verdict::Missing,
    Verdict::NotWritten,
    Verdict::Checking,
    Verdict::Full,
    Verdict::NameExists,
];

impl Verdict {
    /// Its number in messages.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
    /// What it means to the sender's user, unless all is well; the receiver may have held a part before this transfer.
    pub fn problem(self, held_before: bool) -> Option<&'static str> {
        Some(match self {
            Verdict::Same => return None,
            Verdict::Differs if held_before => {
                "the received file differs from the one sent: the part of an earlier transfer was damaged, or the file has \
                 changed; the other end has removed it: send it again"
            }
            Verdict::Differs => "the received file differs from the one sent: its SHA-256 differs",
            Verdict::Missing | Verdict::Checking => "the other end has not received everything",
            Verdict::NotWritten => "the other end could not write the file",
            Verdict::Full => "the other end's disk is full",
            Verdict::NameExists => "meanwhile the other end has another file of this name, and does not replace it",
        })
    }
    /// The verdict of this number.
    pub fn of(number: u8) -> Option<Verdict> {
        VERDICTS.get((number as usize).wrapping_sub(1)).copied()
    }
}

/// Why a flow is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The receiver has its maximum number of flows.
    Full,
    /// It has its maximum number of flows from this source.
    PerSource,
    /// The SYN's code is of another key.
    WrongKey,
    /// The SYN has no code.
    NeedsKey,
    /// The SYN has a code, and the receiver has no key.
    NoKey,
    /// The SYN's version is not supported.
    Version,
    /// The SYN's parameters are invalid.
    Nonsense,
    /// The receiver accepts no files.
    NoFiles,
    /// A file of that name exists.
    NameExists,
    /// This file is being received already.
    Busy,
    /// Another file of this name is being received.
    NameTaken,
    /// There is no space for the file.
    NoSpace,
    /// The file exceeds the quota.
    Quota,
    /// The folder cannot be written.
    NotWritable,
    /// The receiver takes transfers by QUIC.
    Quic,
}

const REFUSALS: [Refusal; 15] = [
    Refusal::Full,
    Refusal::PerSource,
    Refusal::WrongKey,
    Refusal::NeedsKey,
    Refusal::NoKey,
    Refusal::Version,
    Refusal::Nonsense,
    Refusal::NoFiles,
    Refusal::NameExists,
    Refusal::Busy,
    Refusal::NameTaken,
    Refusal::NoSpace,
    Refusal::Quota,
    Refusal::NotWritable,
    Refusal::Quic,
];

impl Refusal {
    /// Its number in messages.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
    /// The refusal of this number.
    pub fn of(number: u8) -> Option<Refusal> {
        REFUSALS.get((number as usize).wrapping_sub(1)).copied()
    }
    /// The sentence shown to the sender's user.
    pub fn sentence(self) -> &'static str {
        match self {
            Refusal::Full => "the other end has its maximum number of flows (its option --flows); try again later",
            Refusal::PerSource => {
                "the other end accepts no more flows from this address (its option --flows-per-source)"
            }
            Refusal::Quic => {
                "the other end receives by QUIC: send without --transport udp and --key, or pass one of them to `recv` too"
            }
            Refusal::WrongKey => "the other end has another key: both need the same file for --key",
            Refusal::NeedsKey => "the other end requires a key: pass --key FILE with its key",
            Refusal::NoKey => {
                "the other end runs without a key, so it cannot prove its identity; send without --key if that is intended"
            }
            Refusal::Version => "the other end has an incompatible version of explicated",
            Refusal::Nonsense => "the other end cannot parse the greeting",
            Refusal::NoFiles => "the other end accepts no files (its option --to)",
            Refusal::NameExists => {
                "the other end has a file of this name, and does not replace it (its option --replace)"
            }
            Refusal::Busy => "the other end is receiving this file already",
            Refusal::NameTaken => "the other end is receiving another file of this name",
            Refusal::NoSpace => "the other end has no space for this file",
            Refusal::Quota => "the file does not fit into what is left of the other end's quota (its option --quota)",
            Refusal::NotWritable => "the other end may not write into its folder",
        }
    }
}

/// A flow's 64-bit number: the upper half, and the lower half, which the core's headers carry.
pub fn number(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Requests the verdict on this flow, whose content has this digest.
    Question(u64, [u8; DIGEST]),
    /// The verdict, the bytes of payload that arrived, and its code, zeros without a key.
    Answer(u64, Verdict, u64, ShortCode),
    /// This flow is unknown.
    Unknown(u64),
    /// A probe: its number, a nonce, when it was sent, its code.
    Probe(u16, u64, Time, ShortCode),
    /// Its echo, with the time of its arrival.
    Echo(u16, u64, Time, Time),
    /// Requests a cookie for this flow, with the sender's version and a code, zeros without a key.
    Knock(u64, u8, Code),
    /// The cookie.
    Cookie(u64, Code),
    /// This flow is refused.
    Refused(u64, Refusal),
}

impl Message {
    /// A request for a cookie without a key.
    pub fn knock(number: u64) -> Message {
        Message::Knock(number, VERSION as u8, [0; CODE])
    }
    /// A request for a cookie, with the code of this key if any.
    pub fn knock_with(number: u64, key: Option<&Key>) -> Message {
        Message::Knock(number, VERSION as u8, key.map_or([0; CODE], |key| auth::knock_code(key, number)))
    }
    /// The packet that carries it.
    pub fn to_packet(self) -> Packet {
        let mut bytes = [0; CONTROL_LEN];
        let number = match self {
            Message::Question(number, digest) => {
                bytes[0] = 0x80;
                bytes[8..].copy_from_slice(&digest);
                number
            }
            Message::Answer(number, verdict, payload, code) => {
                (bytes[0], bytes[1]) = (0x81, verdict.number());
                bytes[8..16].copy_from_slice(&payload.to_be_bytes());
                bytes[16..].copy_from_slice(&code);
                number
            }
            Message::Unknown(number) => {
                bytes[0] = 0x82;
                number
            }
            Message::Probe(index, nonce, sent, cookie) => {
                bytes[0] = 0x83;
                bytes[2..4].copy_from_slice(&index.to_be_bytes());
                bytes[8..16].copy_from_slice(&sent.0.to_be_bytes());
                bytes[16..].copy_from_slice(&cookie);
                nonce
            }
            Message::Echo(index, nonce, sent, came) => {
                bytes[0] = 0x84;
                bytes[2..4].copy_from_slice(&index.to_be_bytes());
                bytes[8..16].copy_from_slice(&sent.0.to_be_bytes());
                bytes[16..24].copy_from_slice(&came.0.to_be_bytes());
                nonce
            }
            Message::Knock(number, version, code) => {
                (bytes[0], bytes[1]) = (0x85, version);
                bytes[8..8 + CODE].copy_from_slice(&code);
                number
            }
            Message::Cookie(number, cookie) => {
                bytes[0] = 0x86;
                bytes[8..8 + CODE].copy_from_slice(&cookie);
                number
            }
            Message::Refused(number, why) => {
                (bytes[0], bytes[1]) = (0x87, why.number());
                number
            }
        };
        bytes[4..8].copy_from_slice(&(number as u32).to_be_bytes());
        let mut packet = Packet::EMPTY;
        packet.transport.set_flags(flag::CONTROL);
        packet.transport.set_segment((number >> 32) as u32);
        packet.transport.0[12..].copy_from_slice(&bytes[..12]);
        packet.congestion.0[4..].copy_from_slice(&bytes[12..]);
        packet
    }
    /// Parses it; `None` for other messages.
    pub fn of(packet: &Packet) -> Option<Message> {
        let mut bytes = [0; CONTROL_LEN];
        bytes[..12].copy_from_slice(&packet.transport.0[12..]);
        bytes[12..].copy_from_slice(&packet.congestion.0[4..]);
        let number = number(packet.transport.segment(), part(&bytes, 4).map(u32::from_be_bytes)?);
        let index = part(&bytes, 2).map(u16::from_be_bytes)?;
        let long = |at| part(&bytes, at).map(u64::from_be_bytes);
        match bytes[0] {
            0x80 => Some(Message::Question(number, part(&bytes, 8)?)),
            0x81 => Some(Message::Answer(number, Verdict::of(bytes[1])?, long(8)?, part(&bytes, 16)?)),
            0x82 => Some(Message::Unknown(number)),
            0x83 => Some(Message::Probe(index, number, Time(long(8)?), part(&bytes, 16)?)),
            0x84 => Some(Message::Echo(index, number, Time(long(8)?), Time(long(16)?))),
            0x85 => Some(Message::Knock(number, bytes[1], part(&bytes, 8)?)),
            0x86 => Some(Message::Cookie(number, part(&bytes, 8)?)),
            0x87 => Some(Message::Refused(number, Refusal::of(bytes[1])?)),
            _ => None,
        }
    }
}

fn part<const N: usize>(bytes: &[u8; CONTROL_LEN], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::super::auth::SHORT;
    use super::*;

    #[test]
    fn messages_come_back() {
        for message in [
            Message::Question(7, [9; DIGEST]),
            Message::Answer(u64::MAX - 1, Verdict::Differs, 1 << 40 | 3, [4; SHORT]),
            Message::Answer(5, Verdict::NameExists, 0, [0; SHORT]),
            Message::Unknown(1 << 32),
            Message::Probe(9, 5, Time(1 << 40), [8; SHORT]),
            Message::Echo(65535, 5, Time(7), Time(1 << 50)),
            Message::knock(u64::MAX),
            Message::knock_with(3, Some(&Key::new([1; 32]))),
            Message::Cookie(3 << 32 | 4, [5; CODE]),
        ] {
            assert_eq!(Message::of(&message.to_packet()), Some(message));
        }
        for why in REFUSALS {
            let message = Message::Refused(1, why);
            assert_eq!(Message::of(&message.to_packet()), Some(message));
            assert!(!why.sentence().is_empty());
        }
        assert_eq!(Message::of(&Packet::EMPTY), None);
    }
}
