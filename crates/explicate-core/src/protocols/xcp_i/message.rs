//! Messages between agents of XCP-i, 28 bytes each.
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | kind |
//! | 2-3 | probe, echo: number; result: capacity of the tight link ([`pack`]), or 0: unknown |
//! | 4-11 | nonce of the request: an answer without it is dropped |
//! | 12-19 | request, challenge, stop: cookie; result: bandwidth, bytes/s, signed; probe, echo: when it was sent, ns |
//! | 20-27 | request: requested period, ns; echo: arrival of the probe, ns |

use crate::agent::CONTROL_LEN;

/// Kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Request: measure the path to the sender of this message.
    Request,
    /// Challenge: repeat the request with this cookie, as a proof of the address.
    Challenge,
    /// Acceptance of a request.
    Acknowledge,
    /// Result: the available bandwidth.
    Result,
    /// Stop: results are no longer needed.
    Stop,
    /// A probe.
    Probe,
    /// Echo of a probe.
    Echo,
}

const KINDS: [Kind; 7] =
    [Kind::Request, Kind::Challenge, Kind::Acknowledge, Kind::Result, Kind::Stop, Kind::Probe, Kind::Echo];

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub(super) kind: Kind,
    pub(super) index: u16,
    pub(super) nonce: u64,
    pub(super) first: u64,
    pub(super) second: u64,
}

impl Message {
    pub(super) fn new(kind: Kind, nonce: u64) -> Message {
        Message { kind, index: 0, nonce, first: 0, second: 0 }
    }
    pub(super) fn to_bytes(self) -> [u8; CONTROL_LEN] {
        let mut b = [0; CONTROL_LEN];
        b[0] = self.kind as u8 + 1;
        b[2..4].copy_from_slice(&self.index.to_be_bytes());
        for (at, word) in [(4, self.nonce), (12, self.first), (20, self.second)] {
            b[at..at + 8].copy_from_slice(&word.to_be_bytes());
        }
        b
    }
    /// `None` for bytes that are not a message.
    pub(super) fn parse(b: &[u8; CONTROL_LEN]) -> Option<Message> {
        let kind = *KINDS.get((b[0] as usize).wrapping_sub(1))?;
        let word = |at: usize| b[at..at + 8].iter().fold(0u64, |word, &byte| word << 8 | byte as u64);
        let index = u16::from_be_bytes([b[2], b[3]]);
        (b[1] == 0).then(|| Message { kind, index, nonce: word(4), first: word(12), second: word(20) })
    }
}

/// A capacity, bytes/s, rounded down to eleven bits times a power of two (five bits); 0 means unknown.
pub(super) fn pack(capacity: Option<f64>) -> u16 {
    let whole = capacity.unwrap_or(0.0) as u64;
    let shift = (53 - whole.leading_zeros() as i32).clamp(0, 31) as u32;
    ((whole >> shift).min(0x7ff) as u16) | (shift as u16) << 11
}

/// The capacity in a result.
pub(super) fn unpack(packed: u16) -> Option<f64> {
    let capacity = ((packed & 0x7ff) as u64) << (packed >> 11);
    (capacity > 0).then_some(capacity as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_keeps_three_digits() {
        for capacity in [1.0, 2047.0, 2048.0, 3.75e6, 1.25e9, 4e12] {
            let kept = unpack(pack(Some(capacity))).expect("known");
            assert!((1.0 - 1.0 / 1024.0..=1.0).contains(&(kept / capacity)), "{capacity}: {kept}");
        }
        assert_eq!((pack(None), unpack(0)), (0, None));
        assert_eq!(unpack(pack(Some(f64::INFINITY))), Some((2047u64 << 31) as f64), "the largest");
        assert!((0..=u16::MAX).all(|packed| unpack(packed).is_none_or(|c| pack(Some(c)) > 0)));
    }

    #[test]
    fn messages_survive_the_wire() {
        for kind in KINDS {
            let message = Message { kind, index: 513, nonce: 1 << 63 | 5, first: u64::MAX - 1, second: 77 };
            assert_eq!(Message::parse(&message.to_bytes()), Some(message));
        }
        assert_eq!(Message::parse(&[0; CONTROL_LEN]), None);
        assert_eq!(Message::parse(&[8; CONTROL_LEN]), None);
    }
}
