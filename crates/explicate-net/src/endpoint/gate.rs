//! Admission of flows: cookies, codes and rate limits per source, before there is any state.
//!
//! A cookie is a keyed hash of the sender's address and port, the flow's number and a slot of time, so the receiver
//! keeps no state until the sender has shown that it receives at its address. A cookie is valid in its slot and the
//! next. Both together are at most a flow's idle timeout, so a replayed SYN belongs to an open flow or has expired.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddrV4};

use explicate_core::units::Time;

use super::auth::{self, Code, Key, ShortCode};
use super::hello::{self, Hello, Sealed};
use super::message::Refusal;

/// Longest time slot of a cookie.
const SLOT: Time = Time::secs(5);

/// The proof that a receiver requires to open a flow.
#[derive(Clone, Debug, Default)]
pub enum Admission {
    /// None, not even a cookie: for the namespaces of a lab.
    Trusting,
    /// A cookie.
    #[default]
    Open,
    /// A cookie, and a code by this key.
    Key(Key),
}

/// Makes and checks cookies.
pub struct Cookies {
    secret: Key,
    slot: Time,
}

impl Cookies {
    /// Cookies that are valid for at most `life`.
    pub fn new(secret: Key, life: Time) -> Cookies {
        Cookies { secret, slot: SLOT.min(Time(life.0 / 2)).max(Time(1)) }
    }
    /// Longest validity of a cookie.
    pub fn life(&self) -> Time {
        Time(2 * self.slot.0)
    }
    fn parts(&self, from: SocketAddrV4, number: u64, slot: u64) -> [u8; 22] {
        let mut parts = [0; 22];
        parts[..4].copy_from_slice(&from.ip().octets());
        parts[4..6].copy_from_slice(&from.port().to_be_bytes());
        parts[6..14].copy_from_slice(&number.to_be_bytes());
        parts[14..].copy_from_slice(&slot.to_be_bytes());
        parts
    }
    /// The cookie of this flow of this source now.
    pub fn make(&self, now: Time, from: SocketAddrV4, number: u64) -> Code {
        self.secret.code("cookie", &[&self.parts(from, number, now.0 / self.slot.0)])
    }
    /// The end of the current slot.
    fn slot_end(&self, now: Time) -> Time {
        Time((now.0 / self.slot.0 + 1) * self.slot.0)
    }
    /// The cookies that are valid now.
    fn recent(&self, now: Time, from: SocketAddrV4, number: u64) -> impl Iterator<Item = Code> {
        let slot = now.0 / self.slot.0;
        let made_in = move |slot| self.secret.code("cookie", &[&self.parts(from, number, slot)]);
        std::iter::once(slot).chain(slot.checked_sub(1)).map(made_in)
    }
    /// Whether a cookie is valid: made in this slot or the one before.
    pub fn is_own(&self, now: Time, from: SocketAddrV4, number: u64, cookie: &Code) -> bool {
        let slot = now.0 / self.slot.0;
        let made_in = |slot| self.secret.is_code("cookie", &[&self.parts(from, number, slot)], cookie);
        made_in(slot) || slot > 0 && made_in(slot - 1)
    }
}

/// A rate limit per source in a table of fixed size: sources with the same hash share a limit. The hash is random, so that an attacker
/// cannot choose collisions.
pub struct Limiter {
    hasher: RandomState,
    /// Theoretical arrival time of each (the generic cell rate algorithm, ITU-T I.371).
    rests: Vec<Time>,
    step: Time,
    burst: Time,
}

/// Entries of a [`Limiter`].
const PLACES: usize = 4096;

impl Limiter {
    /// A limiter of this rate per second and this burst.
    pub fn new(per_second: u32, burst: u32) -> Limiter {
        let step = Time(1_000_000_000 / u64::from(per_second.max(1)));
        let burst = Time(step.0 * u64::from(burst.max(1) - 1));
        Limiter { hasher: RandomState::new(), rests: vec![Time::ZERO; PLACES], step, burst }
    }
    /// Whether the limit allows one more of this source; if so, counts it.
    pub fn passes(&mut self, now: Time, source: Ipv4Addr) -> bool {
        let rests = &mut self.rests[self.hasher.hash_one(source) as usize % PLACES];
        if rests.since(now) > self.burst {
            return false;
        }
        *rests = (*rests).max(now) + self.step;
        true
    }
}

/// The decision on a SYN.
#[derive(Clone, PartialEq, Debug)]
pub enum Judged {
    /// It opens a flow, with these parameters and this code (or cookie, where there is no key).
    Admitted(Hello, Code),
    /// Its sender has to repeat it with this cookie.
    Cookie(Code),
    /// It is refused.
    Refused(Refusal),
    /// It is of version 0.1.
    Old,
    /// It is not answered.
    Ignored,
}

/// Decides on SYNs.
pub struct Gate {
    admission: Admission,
    cookies: Cookies,
    /// Limits answers to sources without a valid cookie.
    unverified: Limiter,
    /// Limits SYNs with a valid cookie.
    verified: Limiter,
    /// The sender, number and code of the last valid probe, and the time until which they stay valid.
    probe: Option<(SocketAddrV4, u64, ShortCode, Time)>,
}

impl Gate {
    /// A gate for a receiver that keeps idle flows for `remembered`; each source may send this many SYNs per second.
    pub fn new(admission: Admission, secret: Key, remembered: Time, per_second: u32) -> Gate {
        let limiter = || Limiter::new(per_second, per_second.saturating_mul(2));
        Gate {
            admission,
            cookies: Cookies::new(secret, remembered),
            unverified: limiter(),
            verified: limiter(),
            probe: None,
        }
    }
    /// Whether no proof is required.
    pub fn is_trusting(&self) -> bool {
        matches!(self.admission, Admission::Trusting)
    }
    /// The least time for which an idle flow has to be kept.
    pub fn life(&self) -> Time {
        self.cookies.life()
    }
    /// The cookie in answer to a knock with this code; `None` above the source's rate limit. Knocks of holders of the key have no limit, so
    /// that forged source addresses cannot lock them out.
    pub fn knock(&mut self, now: Time, from: SocketAddrV4, number: u64, code: &Code) -> Option<Code> {
        match &self.admission {
            Admission::Key(key) if auth::is_knock_code(key, number, code) => Some(self.cookies.make(now, from, number)),
            _ => self.cookie(now, from, number),
        }
    }
    /// A cookie for an unverified source; `None` above its rate limit.
    pub fn cookie(&mut self, now: Time, from: SocketAddrV4, number: u64) -> Option<Code> {
        self.unverified.passes(now, *from.ip()).then(|| self.cookies.make(now, from, number))
    }
    /// Whether a cookie is valid.
    pub fn is_cookie(&self, now: Time, from: SocketAddrV4, number: u64, cookie: &Code) -> bool {
        self.cookies.is_own(now, from, number, cookie)
    }
    /// Whether a probe of this number with this code is answered: its sender receives at its address, and has the key.
    pub fn is_probe(&mut self, now: Time, from: SocketAddrV4, number: u64, code: &ShortCode) -> bool {
        let key = match &self.admission {
            Admission::Trusting => return true,
            Admission::Open => None,
            Admission::Key(key) => Some(key),
        };
        if self.probe.is_some_and(|(f, n, c, until)| (f, n) == (from, number) && now < until && auth::same(&c, code)) {
            return true;
        }
        let good =
            self.cookies.recent(now, from, number).any(|cookie| auth::same(&auth::probe_code(key, &cookie), code));
        if good {
            // Its cookie may be of the slot before, which expires with this slot.
            self.probe = Some((from, number, *code, self.cookies.slot_end(now)));
        }
        good
    }
    /// Decides on a SYN with these options and this payload.
    pub fn judge(&mut self, now: Time, from: SocketAddrV4, number: u64, options: u8, greeting: &[u8]) -> Judged {
        let Some(version) = hello::version(greeting) else { return Judged::Ignored };
        if self.is_trusting() {
            return Hello::parse(greeting).map_or(Judged::Ignored, |hello| Judged::Admitted(hello, [0; auth::CODE]));
        }
        if version != hello::VERSION {
            let may = self.unverified.passes(now, *from.ip());
            return match (may, version) {
                (false, _) => Judged::Ignored,
                (true, 1) => Judged::Old,
                (true, _) => Judged::Refused(Refusal::Version),
            };
        }
        let sealed = Sealed::of(greeting);
        let Some(cookie) = sealed.cookie.filter(|cookie| self.is_cookie(now, from, number, cookie)) else {
            return self.cookie(now, from, number).map_or(Judged::Ignored, Judged::Cookie);
        };
        if !self.verified.passes(now, *from.ip()) {
            return Judged::Ignored;
        }
        let code = match (&self.admission, sealed.code) {
            (Admission::Key(_), None) => return Judged::Refused(Refusal::NeedsKey),
            (Admission::Key(key), Some(code)) => {
                if !auth::is_greeting_code(key, number, options, sealed.words, &code) {
                    return Judged::Refused(Refusal::WrongKey);
                }
                code
            }
            (_, Some(_)) => return Judged::Refused(Refusal::NoKey),
            (_, None) => cookie,
        };
        Hello::parse(greeting).map_or(Judged::Refused(Refusal::Nonsense), |hello| Judged::Admitted(hello, code))
    }
    /// The code of a verdict on a transfer; zeros without a key.
    pub fn verdict(&self, number: u64, verdict: u8, payload: u64) -> ShortCode {
        match &self.admission {
            Admission::Key(key) => auth::verdict_code(key, number, verdict, payload),
            _ => ShortCode::default(),
        }
    }
    /// The proof to the sender that this end has the key; `None` without a key.
    pub fn proof(&self, number: u64, options: u8, greeting: &Code, have: u64) -> Option<Code> {
        match &self.admission {
            Admission::Key(key) => Some(auth::answer_code(key, number, options, greeting, have)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), port)
    }

    #[test]
    fn a_cookie_is_of_one_source_one_flow_and_two_slots() {
        let cookies = Cookies::new(Key::new([3; 32]), Time::secs(30));
        let at = Time::secs(12);
        let cookie = cookies.make(at, source(1, 9), 77);
        let own = |now, from, number| cookies.is_own(now, from, number, &cookie);
        assert!(own(at, source(1, 9), 77) && own(Time::secs(19), source(1, 9), 77));
        assert!(!own(Time::secs(20), source(1, 9), 77), "10 s are over: slots of 5 s");
        assert!(!own(at, source(1, 10), 77) && !own(at, source(2, 9), 77) && !own(at, source(1, 9), 78));
        let others = Cookies::new(Key::new([4; 32]), Time::secs(30));
        assert!(!others.is_own(at, source(1, 9), 77, &cookie), "each receiver has a secret of its own");
        assert_eq!(Cookies::new(Key::new([3; 32]), Time::secs(3)).life(), Time::secs(3));
    }

    #[test]
    fn a_probe_needs_its_cookie_and_the_key() {
        let key = Key::new([1; 32]);
        let gate = |admission| Gate::new(admission, Key::new([9; 32]), Time::secs(30), 100);
        for admission in [Admission::Open, Admission::Key(key.clone())] {
            let has_key = matches!(admission, Admission::Key(_));
            let mut gate = gate(admission);
            let cookie = gate.cookie(Time::secs(3), source(1, 1), 7).unwrap();
            let right = auth::probe_code(has_key.then_some(&key), &cookie);
            let wrong = auth::probe_code((!has_key).then_some(&key), &cookie);
            for seconds in [3, 4, 9] {
                let now = Time::secs(seconds);
                assert!(gate.is_probe(now, source(1, 1), 7, &right) && !gate.is_probe(now, source(1, 1), 7, &wrong));
                assert!(!gate.is_probe(now, source(2, 1), 7, &right) && !gate.is_probe(now, source(1, 1), 8, &right));
            }
            assert!(!gate.is_probe(Time::secs(10), source(1, 1), 7, &right), "its time is over");
        }
    }

    #[test]
    fn forged_knocks_do_not_keep_out_who_has_the_key() {
        let key = Key::new([1; 32]);
        let mut gate = Gate::new(Admission::Key(key.clone()), Key::new([9; 32]), Time::secs(30), 100);
        let now = Time::secs(3);
        let answered = (0..10_000).filter(|i| gate.knock(now, source(1, 1), *i, &[0; 16]).is_some()).count();
        assert_eq!(answered, 200);
        assert!(gate.knock(now, source(1, 1), 7, &auth::knock_code(&Key::new([2; 32]), 7)).is_none());
        assert!(gate.knock(now, source(1, 1), 7, &auth::knock_code(&key, 8)).is_none());
        let cookie = gate.knock(now, source(1, 1), 7, &auth::knock_code(&key, 7));
        assert!(cookie.is_some_and(|cookie| gate.is_cookie(now, source(1, 1), 7, &cookie)));
    }

    #[test]
    fn each_source_has_its_rate() {
        let mut limiter = Limiter::new(10, 5);
        let mut passed =
            |ms, last| (0..20).filter(|_| limiter.passes(Time::millis(ms), Ipv4Addr::new(1, 1, 1, last))).count();
        assert_eq!((passed(1000, 1), passed(1000, 2)), (5, 5));
        assert_eq!((passed(1100, 1), passed(1300, 1), passed(9000, 1)), (1, 2, 5));
    }
}
