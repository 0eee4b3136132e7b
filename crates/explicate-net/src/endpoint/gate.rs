//! Who may open a flow: cookies, codes and limits a source, before there is any state.
//!
//! A cookie is a keyed hash of the asker's address and port, the flow's number and a slot of time, so the receiver keeps nothing
//! until the asker has shown that it receives at its address. A cookie is good in its slot and the next; both together are not longer
//! than a flow is remembered, so a greeting that is replayed meets its own flow or is too old.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddrV4};

use explicate_core::units::Time;

use super::auth::{self, Code, Key, ShortCode};
use super::hello::{self, Hello, Sealed};
use super::message::Refusal;

/// Longest slot in which a cookie is made.
const SLOT: Time = Time::secs(5);

/// What a receiver asks of whoever opens a flow.
#[derive(Clone, Debug, Default)]
pub enum Admission {
    /// Nothing, not even a cookie: for the namespaces of a laboratory.
    Trusting,
    /// A cookie.
    #[default]
    Open,
    /// A cookie, and a code by this key.
    Key(Key),
}

/// Makes cookies and knows its own.
pub struct Cookies {
    secret: Key,
    slot: Time,
}

impl Cookies {
    /// Cookies that are good for no longer than `life`.
    pub fn new(secret: Key, life: Time) -> Cookies {
        Cookies { secret, slot: SLOT.min(Time(life.0 / 2)).max(Time(1)) }
    }
    /// The longest that a cookie is good.
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
    /// When the present slot is over.
    fn slot_end(&self, now: Time) -> Time {
        Time((now.0 / self.slot.0 + 1) * self.slot.0)
    }
    /// The cookies that are good now.
    fn recent(&self, now: Time, from: SocketAddrV4, number: u64) -> impl Iterator<Item = Code> {
        let slot = now.0 / self.slot.0;
        let made_in = move |slot| self.secret.code("cookie", &[&self.parts(from, number, slot)]);
        std::iter::once(slot).chain(slot.checked_sub(1)).map(made_in)
    }
    /// Whether it is one, of this slot or the one before.
    pub fn is_own(&self, now: Time, from: SocketAddrV4, number: u64, cookie: &Code) -> bool {
        let slot = now.0 / self.slot.0;
        let made_in = |slot| self.secret.is_code("cookie", &[&self.parts(from, number, slot)], cookie);
        made_in(slot) || slot > 0 && made_in(slot - 1)
    }
}

/// A rate limit for each source in a table of fixed size: sources that meet in it share a limit, and nobody can choose whom to meet.
pub struct Limiter {
    hasher: RandomState,
    /// When each would be at rest again (the generic cell rate algorithm, ITU-T I.371).
    rests: Vec<Time>,
    step: Time,
    burst: Time,
}

/// Places of a [`Limiter`].
const PLACES: usize = 4096;

impl Limiter {
    /// So many a second, and so many at once.
    pub fn new(per_second: u32, burst: u32) -> Limiter {
        let step = Time(1_000_000_000 / u64::from(per_second.max(1)));
        let burst = Time(step.0 * u64::from(burst.max(1) - 1));
        Limiter { hasher: RandomState::new(), rests: vec![Time::ZERO; PLACES], step, burst }
    }
    /// Whether one more of this source may pass; if so it is counted.
    pub fn passes(&mut self, now: Time, source: Ipv4Addr) -> bool {
        let rests = &mut self.rests[self.hasher.hash_one(source) as usize % PLACES];
        if rests.since(now) > self.burst {
            return false;
        }
        *rests = (*rests).max(now) + self.step;
        true
    }
}

/// What becomes of a greeting.
#[derive(Clone, PartialEq, Debug)]
pub enum Judged {
    /// It opens a flow: its words, and its code (or its cookie, where there is no key).
    Admitted(Hello, Code),
    /// Its sender is to come back with a cookie.
    Cookie(Code),
    /// It is refused.
    Refused(Refusal),
    /// Version 0.1 of the program speaks.
    Old,
    /// Nothing is answered.
    Ignored,
}

/// Decides about greetings.
pub struct Gate {
    admission: Admission,
    cookies: Cookies,
    /// What is answered to those that have shown no cookie.
    unverified: Limiter,
    /// What is looked at of those that have.
    verified: Limiter,
    /// The probe that was found to be in order last, and until when others of it are.
    probe: Option<(SocketAddrV4, u64, ShortCode, Time)>,
}

impl Gate {
    /// Flows of which nothing is heard are remembered at least `remembered`; each source may greet so often a second.
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
    /// Whether nothing is asked of anybody.
    pub fn is_trusting(&self) -> bool {
        matches!(self.admission, Admission::Trusting)
    }
    /// How long a flow has to be remembered at least.
    pub fn life(&self) -> Time {
        self.cookies.life()
    }
    /// Someone asks for a cookie by a knock with this code; `None` if too many do from there. Who has the key is always heard: nobody who
    /// forges its address uses up what it may ask.
    pub fn knock(&mut self, now: Time, from: SocketAddrV4, number: u64, code: &Code) -> Option<Code> {
        match &self.admission {
            Admission::Key(key) if auth::is_knock_code(key, number, code) => Some(self.cookies.make(now, from, number)),
            _ => self.cookie(now, from, number),
        }
    }
    /// A cookie for whom nothing is known of; `None` if too many want one from there.
    pub fn cookie(&mut self, now: Time, from: SocketAddrV4, number: u64) -> Option<Code> {
        self.unverified.passes(now, *from.ip()).then(|| self.cookies.make(now, from, number))
    }
    /// Whether that is a cookie of this gate.
    pub fn is_cookie(&self, now: Time, from: SocketAddrV4, number: u64, cookie: &Code) -> bool {
        self.cookies.is_own(now, from, number, cookie)
    }
    /// Whether a probe of this number with this code is answered: its sender has shown that it is where it says, and has the key.
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
            // Of the slot that is over, or of this one: it is good no longer than until this one is over.
            self.probe = Some((from, number, *code, self.cookies.slot_end(now)));
        }
        good
    }
    /// A greeting came in a SYN with these options.
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
    /// What shows that this end said how a transfer went; zeros if it has no key.
    pub fn verdict(&self, number: u64, verdict: u8, payload: u64) -> ShortCode {
        match &self.admission {
            Admission::Key(key) => auth::verdict_code(key, number, verdict, payload),
            _ => ShortCode::default(),
        }
    }
    /// What proves to the sender that this end has the key; none if it has none.
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
