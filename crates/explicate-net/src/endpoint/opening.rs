//! How the sending end of a flow asks to be let in: a knock, the cookie, the greeting with both seals, and what proves the other end.

use explicate_core::units::Time;
use explicate_core::wire::Packet;

use super::auth::{self, CODE, Code, Key, ShortCode};
use super::hello::{Hello, with_code, with_cookie};
use super::message::{DIGEST, Message};

/// Between two knocks.
const KNOCK_EVERY: Time = Time::secs(1);
/// From one cookie to the next.
const RENEW_AFTER: Time = Time::secs(4);
/// After so many it may be version 0.1 that does not answer.
const KNOCKS: u32 = 2;

/// What stands behind the header of the answer to a SYN, after the upper half of the flow's number: bytes that the receiver holds already,
/// and its code if there is a key.
pub fn answer_bytes(have: u64, proof: Option<Code>) -> ([u8; 8 + CODE], usize) {
    let mut bytes = [0; 8 + CODE];
    bytes[..8].copy_from_slice(&have.to_be_bytes());
    bytes[8..].copy_from_slice(&proof.unwrap_or_default());
    (bytes, if proof.is_some() { 8 + CODE } else { 8 })
}

/// The sending end of a flow before it is let in.
pub struct Opening {
    number: u64,
    words: String,
    key: Option<Key>,
    trusting: bool,
    cookie: Option<Code>,
    /// The seals of the last two greetings: a cookie may have come late, and an answer be to the one before.
    codes: [Code; 2],
    asks: Time,
    knocks: u32,
}

impl Opening {
    /// Of the flow of this number, which knocks from `start` on. Without an upper half the number is of a laboratory, where nobody asks
    /// for cookies.
    pub fn new(number: u64, hello: &Hello, key: Option<Key>, start: Time) -> Opening {
        let trusting = number >> 32 == 0;
        let asks = if trusting { Time::NEVER } else { start };
        let (cookie, codes) = (None, [[0; CODE]; 2]);
        Opening { number, words: hello.words(), key, trusting, cookie, codes, asks, knocks: 0 }
    }
    /// Whether the flow's SYN may go.
    pub fn is_ready(&self) -> bool {
        self.trusting || self.cookie.is_some()
    }
    /// When to knock next.
    pub fn due(&self) -> Time {
        self.asks
    }
    /// What to send now: a knock, and when nobody answers a question that version 0.1 answers too.
    pub fn poll(&mut self, now: Time) -> Option<[Option<Packet>; 2]> {
        if self.asks > now {
            return None;
        }
        self.asks = now + KNOCK_EVERY;
        self.knocks += 1;
        let old = Message::Question(self.number & u64::from(u32::MAX), [0; DIGEST]);
        let old = (self.knocks > KNOCKS && self.cookie.is_none()).then(|| old.to_packet());
        Some([Some(Message::knock_with(self.number, self.key.as_ref()).to_packet()), old])
    }
    /// Whether this is what version 0.1 answers to a knock.
    pub fn is_old(&self, message: Message) -> bool {
        let unknown = Message::Unknown(self.number & u64::from(u32::MAX));
        !self.is_ready() && self.knocks > KNOCKS && message == unknown
    }
    /// The cookie came, or a newer one. Another is asked for before it grows old, unless the flow is let in.
    pub fn take_cookie(&mut self, now: Time, cookie: Code) {
        (self.cookie, self.asks) = (Some(cookie), now + RENEW_AFTER);
    }
    /// The greeting of a SYN with these options.
    pub fn greeting(&mut self, options: u8) -> String {
        let Some(cookie) = self.cookie else { return self.words.clone() };
        let words = with_cookie(&self.words, &cookie);
        let Some(key) = &self.key else { return words };
        let code = auth::greeting_code(key, self.number, options, words.as_bytes());
        if self.codes[0] != code {
            self.codes = [code, self.codes[0]];
        }
        with_code(&words, &code)
    }
    /// What the other end holds already, by what stands behind the header of its answer, which grants these options; `None` if it does not
    /// prove that it has the key.
    pub fn check(&mut self, options: u8, answer: &[u8]) -> Option<u64> {
        if self.trusting {
            return Some(0);
        }
        let have = u64::from_be_bytes(*answer.first_chunk()?);
        if let Some(key) = &self.key {
            let code: &Code = answer[8..].first_chunk()?;
            let answers = |greeting| auth::is_answer_code(key, self.number, options, greeting, have, code);
            self.codes.iter().any(answers).then_some(())?;
        }
        self.asks = Time::NEVER;
        Some(have)
    }
    /// Whether the other end said that: its code is right, or there is no key.
    pub fn is_verdict(&self, verdict: u8, payload: u64, code: &ShortCode) -> bool {
        self.key.as_ref().is_none_or(|key| auth::is_verdict_code(key, self.number, verdict, payload, code))
    }
}

#[cfg(test)]
mod tests {
    use super::super::hello::Content;
    use super::*;
    use explicate_core::params::Values;

    #[test]
    fn only_who_has_the_key_proves_it() {
        let hello = Hello::new("xcp", 1000, &Values::default(), Content::Nothing);
        let key = Key::new([1; 32]);
        let mut opening = Opening::new(5 << 32 | 1, &hello, Some(key.clone()), Time::ZERO);
        assert!(!opening.is_ready() && opening.poll(Time::ZERO).is_some() && opening.poll(Time::ZERO).is_none());
        opening.take_cookie(Time::ZERO, [7; CODE]);
        let greeting = opening.greeting(0x80);
        assert!(opening.is_ready() && greeting.contains(" cookie=0707"));
        assert_eq!(opening.due(), RENEW_AFTER);
        let first = opening.codes[0];
        opening.take_cookie(Time::ZERO, [8; CODE]);
        opening.greeting(0x80);
        assert_ne!(opening.codes[0], first);
        let proof = |key: &Key| auth::answer_code(key, 5 << 32 | 1, 0x80, &first, 9);
        let mut check = |proof, options| {
            let (bytes, length) = answer_bytes(9, proof);
            opening.check(options, &bytes[..length])
        };
        assert_eq!(check(Some(proof(&key)), 0x00), None, "other options were granted");
        assert_eq!(check(Some(proof(&Key::new([2; 32]))), 0x80), None);
        assert_eq!(check(None, 0x80), None);
        assert_eq!(check(Some(proof(&key)), 0x80), Some(9));
        assert_eq!((opening.check(0x80, &[0; 7]), opening.due()), (None, Time::NEVER));
    }

    #[test]
    fn version_0_1_is_known_by_its_answer() {
        let hello = Hello::new("xcp", 1000, &Values::default(), Content::Nothing);
        let mut opening = Opening::new(5 << 32 | 1, &hello, None, Time::ZERO);
        let old = |second| opening.poll(Time::secs(second)).unwrap()[1].is_some();
        assert_eq!([0, 1, 2].map(old), [false, false, true]);
        assert!(opening.is_old(Message::Unknown(1)) && !opening.is_old(Message::Unknown(5 << 32 | 1)));
    }
}
