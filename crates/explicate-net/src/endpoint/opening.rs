//! Opening a flow, at the sender: request for a cookie ("knock"), cookie, SYN with cookie and code, and the receiver's proof.

use explicate_core::units::Time;
use explicate_core::wire::Packet;

use super::auth::{self, CODE, Code, Key, ShortCode};
use super::hello::{Hello, with_code, with_cookie};
use super::message::{DIGEST, Message};

/// Interval between two knocks.
const KNOCK_EVERY: Time = Time::secs(1);
/// Age at which a cookie is renewed.
const RENEW_AFTER: Time = Time::secs(4);
/// Number of knocks without an answer after which the receiver may be version 0.1.
const KNOCKS: u32 = 2;

/// The payload of the answer to a SYN, after the upper half of the flow's number: the number of bytes that the
/// receiver already has, and its code if there is a key.
pub fn answer_bytes(have: u64, proof: Option<Code>) -> ([u8; 8 + CODE], usize) {
    let mut bytes = [0; 8 + CODE];
    bytes[..8].copy_from_slice(&have.to_be_bytes());
    bytes[8..].copy_from_slice(&proof.unwrap_or_default());
    (bytes, if proof.is_some() { 8 + CODE } else { 8 })
}

/// The sending end of a flow before it is admitted.
pub struct Opening {
    number: u64,
    words: String,
    key: Option<Key>,
    trusting: bool,
    cookie: Option<Code>,
    /// The codes of the last two SYNs: after a renewed cookie an answer may refer to the earlier SYN.
    codes: [Code; 2],
    next_knock_at: Time,
    knocks: u32,
}

impl Opening {
    /// Opens the flow of this number from `start` on. A number without an upper half belongs to the lab, which needs no
    /// cookies.
    pub fn new(number: u64, hello: &Hello, key: Option<Key>, start: Time) -> Opening {
        let trusting = number >> 32 == 0;
        let next_knock_at = if trusting { Time::NEVER } else { start };
        let (cookie, codes) = (None, [[0; CODE]; 2]);
        Opening { number, words: hello.words(), key, trusting, cookie, codes, next_knock_at, knocks: 0 }
    }
    /// Whether the flow's SYN may be sent.
    pub fn is_ready(&self) -> bool {
        self.trusting || self.cookie.is_some()
    }
    /// When to send the next knock.
    pub fn due(&self) -> Time {
        self.next_knock_at
    }
    /// The packets to send now: a knock, and after several without an answer a request that version 0.1 can parse.
    pub fn poll(&mut self, now: Time) -> Option<[Option<Packet>; 2]> {
        if self.next_knock_at > now {
            return None;
        }
        self.next_knock_at = now + KNOCK_EVERY;
        self.knocks += 1;
        let old = Message::Question(self.number & u64::from(u32::MAX), [0; DIGEST]);
        let old = (self.knocks > KNOCKS && self.cookie.is_none()).then(|| old.to_packet());
        Some([Some(Message::knock_with(self.number, self.key.as_ref()).to_packet()), old])
    }
    /// Whether this is the answer of version 0.1 to that request.
    pub fn is_old(&self, message: Message) -> bool {
        let unknown = Message::Unknown(self.number & u64::from(u32::MAX));
        !self.is_ready() && self.knocks > KNOCKS && message == unknown
    }
    /// Takes a cookie. Another is requested before it expires, unless the flow is admitted.
    pub fn take_cookie(&mut self, now: Time, cookie: Code) {
        (self.cookie, self.next_knock_at) = (Some(cookie), now + RENEW_AFTER);
    }
    /// The payload of a SYN with these options.
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
    /// The number of bytes that the receiver already has, from the payload of its answer, which grants these options;
    /// `None` if the answer does not prove that the receiver has the key.
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
        self.next_knock_at = Time::NEVER;
        Some(have)
    }
    /// Whether a verdict is authentic: its code is right, or there is no key.
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
