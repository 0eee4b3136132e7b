//! When TCP's window begins to limit an explicit sender, and when it stops: by losses and delays where no router answers.
//!
//! One rule for the flows of the core and for the tunnels of a gateway. [`Seen`] is a round trip, [`Limit`] the rule.

use crate::units::Time;

/// Fewest packets that a round trip is judged by.
pub const FEWEST: f64 = 10.0;
/// Share of the packets that the air may lose, by default.
pub const AIR_LOSS: f64 = 0.02;

/// Round trips in a row that make a sign.
const ROUNDS: u32 = 3;
/// Share of packets lost that is one.
const MOST_LOST: f64 = 0.2;
/// Lost packets beyond those that the air may lose that make a sign, and for how many of them a round trip counts at most.
const SURPLUS: f64 = 30.0;
const OF_A_ROUND: f64 = 12.0;
/// The same sum, from zero, that shows that a path still is congested: one lost packet of a small window does not.
const STILL_LOSSY: f64 = 10.0;
/// How long a path has to be clear before the limit ends, at first and at most.
const RELEASE_AFTER: Time = Time::secs(30);
const MOST_RELEASE_AFTER: Time = Time::secs(3600);
/// Delay that is a sign: at least, and as a share of the least round trip.
const LEAST_DELAY: Time = Time::millis(25);
const DELAY_SHARE: u64 = 4;
/// The least round trip is that of the last one to two of these spans.
const MEMORY: Time = Time::secs(30);

/// Whether a queue that no router answers for is full, by losses that come with delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullQueue {
    /// Nothing shows that.
    Unseen,
    /// It may be so.
    Likely,
    /// It is so.
    Certain,
}

/// What a round trip shows of the hops where no router answers.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Packets that arrived or were lost.
    pub sent: f64,
    /// Packets that were lost.
    pub lost: f64,
    /// Those of them that no router reports to have dropped.
    pub unexplained: f64,
    /// The least that a round-trip time exceeded the least one.
    pub delay: Time,
    /// What it may exceed it by, see [`LeastRtt::most_delay`].
    pub most_delay: Time,
    /// Whether losses come with delay.
    pub queue: FullQueue,
}

/// What a round trip changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// TCP's window becomes the limit.
    Begins,
    /// It is no limit any more.
    Ends,
}

/// Whether TCP's window is the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Off,
    /// It is as long as a short queue is likely to be full.
    Suspected,
    /// It is until the path has been clear for some time.
    On,
}

/// The rule by which TCP's window is the limit or not.
#[derive(Debug)]
pub struct Limit {
    air_loss: f64,
    state: State,
    /// Round trips in a row with a sign, and lost packets beyond those that the air may lose.
    signs: u32,
    surplus: f64,
    /// That sum since the path last was congested, while the limit is on.
    recent: f64,
    /// Since when the path is clear, and how long it has to be.
    clear_since: Time,
    release_after: Time,
}

impl Limit {
    /// No limit; `air_loss` is the share of the packets that the air may lose.
    pub fn new(air_loss: f64) -> Limit {
        Limit {
            air_loss,
            state: State::Off,
            signs: 0,
            surplus: 0.0,
            recent: 0.0,
            clear_since: Time::ZERO,
            release_after: RELEASE_AFTER,
        }
    }
    /// TCP's window is the limit.
    pub fn is_on(&self) -> bool {
        self.state != State::Off
    }
    /// Lost packets beyond those that the air may lose.
    pub fn surplus(&self) -> f64 {
        self.surplus
    }
    /// Forgets the signs so far.
    pub fn forget(&mut self) {
        (self.signs, self.surplus) = (0, 0.0);
    }
    /// Losses of a round trip that TCP's law does not react to: those of the air, unless a short queue may be full.
    pub fn borne(&self, seen: &Seen) -> f64 {
        if seen.queue == FullQueue::Unseen { self.air_loss * seen.sent } else { 0.0 }
    }

    /// Takes a round trip that has ended.
    pub fn take(&mut self, now: Time, seen: &Seen) -> Option<Change> {
        let air = self.air_loss * seen.sent;
        let sign = seen.lost > air.max(MOST_LOST * seen.sent) || seen.delay > seen.most_delay;
        self.signs = if sign { self.signs + 1 } else { 0 };
        let beyond = (seen.unexplained - air).min(OF_A_ROUND);
        self.surplus = (self.surplus + beyond).max(0.0);
        self.recent = (self.recent + beyond).max(0.0);
        let before = self.is_on();
        self.state = if self.state == State::On { self.while_on(now, seen, sign) } else { self.while_off(now, seen) };
        match (before, self.is_on()) {
            (false, true) => Some(Change::Begins),
            (true, false) => Some(Change::Ends),
            _ => None,
        }
    }
    /// What follows a round trip without the limit, or with one that is suspected.
    fn while_off(&mut self, now: Time, seen: &Seen) -> State {
        if self.signs >= ROUNDS || self.surplus > SURPLUS || seen.queue == FullQueue::Certain {
            (self.clear_since, self.recent) = (now, 0.0);
            State::On
        } else if seen.queue == FullQueue::Likely {
            State::Suspected
        } else {
            State::Off
        }
    }
    /// What follows a round trip with the limit: its end when the path has been clear for long enough.
    fn while_on(&mut self, now: Time, seen: &Seen, sign: bool) -> State {
        let losses = self.recent > STILL_LOSSY || seen.queue != FullQueue::Unseen && seen.lost > 0.0;
        if sign || losses || 2 * seen.delay.0 > seen.most_delay.0 {
            (self.clear_since, self.recent) = (now, 0.0);
        } else if now.since(self.clear_since) > self.release_after {
            self.forget();
            self.release_after = Time(2 * self.release_after.0).min(MOST_RELEASE_AFTER);
            return State::Off;
        }
        State::On
    }
}

/// The least round-trip time of the last 30 to 60 s.
#[derive(Debug)]
pub struct LeastRtt {
    /// Those of the present span and of the one before.
    least: [Time; 2],
    span_began: Time,
}

impl Default for LeastRtt {
    fn default() -> LeastRtt {
        LeastRtt { least: [Time::NEVER; 2], span_began: Time::ZERO }
    }
}

impl LeastRtt {
    /// Time passes.
    pub fn advance(&mut self, now: Time) {
        if now.since(self.span_began) > MEMORY {
            (self.least, self.span_began) = ([Time::NEVER, self.least[0]], now);
        }
    }
    /// Takes a round-trip time.
    pub fn take(&mut self, rtt: Time) {
        self.least[0] = self.least[0].min(rtt);
    }
    /// The least one; [`Time::NEVER`] if there is none.
    pub fn get(&self) -> Time {
        self.least[0].min(self.least[1])
    }
    /// What a round-trip time may exceed the least one by.
    pub fn most_delay(&self) -> Time {
        LEAST_DELAY.max(Time(self.get().0 / DELAY_SHARE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A round trip of 600 ms without delay.
    fn round(sent: u32, lost: u32) -> Seen {
        let (sent, lost) = (sent.into(), lost.into());
        Seen {
            sent,
            lost,
            unexplained: lost,
            delay: Time::ZERO,
            most_delay: Time::millis(150),
            queue: FullQueue::Unseen,
        }
    }
    fn lost(rng: &mut Rng, sent: u32, rate: f64) -> u32 {
        (0..sent).filter(|_| rng.uniform() < rate).count() as u32
    }

    /// The air loses 1 % of 20 packets a round trip, so that one lost packet is 5 % of a round trip.
    #[test]
    fn losses_of_the_air_do_not_keep_a_small_window_limited() {
        let (mut rng, mut limit, mut now) = (Rng::stream(1, "air"), Limit::new(AIR_LOSS), Time::ZERO);
        for number in 0..ROUNDS {
            now += Time::millis(600);
            let begins = (number == ROUNDS - 1).then_some(Change::Begins);
            assert_eq!(limit.take(now, &round(20, 5)), begins);
        }
        let began = now;
        while limit.is_on() && now < began + Time::secs(300) {
            now += Time::millis(600);
            limit.take(now, &round(20, lost(&mut rng, 20, 0.01)));
        }
        assert!(now < began + Time::secs(45), "limited for {:?}", now.since(began));
    }

    /// The same with 4 %, twice what the air may lose.
    #[test]
    fn losses_beyond_those_of_the_air_keep_it_limited() {
        let (mut rng, mut limit) = (Rng::stream(1, "more"), Limit::new(AIR_LOSS));
        (1..=2).for_each(|number| assert_eq!(limit.take(Time::secs(number), &round(20, 5)), None));
        for number in 3..500 {
            limit.take(Time::millis(600 * number), &round(1000, lost(&mut rng, 1000, 0.04)));
            assert!(limit.is_on() || number < 6, "{number}");
        }
    }

    /// A queue that is likely to be full limits the sender until it is not; one that is full does for 30 s.
    #[test]
    fn a_suspicion_ends_with_its_evidence() {
        let (mut limit, mut now) = (Limit::new(AIR_LOSS), Time::ZERO);
        let mut take = |queue: FullQueue| {
            now += Time::millis(600);
            limit.take(now, &Seen { queue, ..round(1000, 1) })
        };
        assert_eq!(take(FullQueue::Likely), Some(Change::Begins));
        assert_eq!(take(FullQueue::Likely), None);
        assert_eq!(take(FullQueue::Unseen), Some(Change::Ends));
        assert_eq!([FullQueue::Likely, FullQueue::Certain].map(&mut take), [Some(Change::Begins), None]);
        let lasts = (1..200).find(|_| take(FullQueue::Unseen) == Some(Change::Ends)).unwrap();
        assert!((50..=52).contains(&lasts), "30 s are 50 round trips: {lasts}");
    }

    /// A minute has 2000 round trips of 50 packets (20 Mbit/s and 30 ms) or 100 of 1000 (and 600 ms); each of 400 minutes loses 1.5 %
    /// of the 2 % stated. A round trip ends with a surplus above h with probability exp(-0.55 h) at most (Lundberg's bound:
    /// exp(0.55) - 1 = 0.55 * 2 / 1.5), so above 30 once in five days.
    #[test]
    fn losses_below_those_of_the_air_are_no_sign() {
        const HEIGHTS: [f64; 3] = [5.0, 10.0, 15.0];
        for (rounds, sent) in [(2000, 50), (100, 1000)] {
            let (mut limited, mut above) = (0, [0; HEIGHTS.len()]);
            for seed in 0..400 {
                let (mut rng, mut limit) = (Rng::stream(seed, "air"), Limit::new(AIR_LOSS));
                for _ in 0..rounds {
                    limit.take(Time::ZERO, &round(sent, lost(&mut rng, sent, 0.75 * AIR_LOSS)));
                    for (count, height) in above.iter_mut().zip(HEIGHTS) {
                        *count += u32::from(limit.surplus() > height);
                    }
                }
                limited += u32::from(limit.is_on());
            }
            assert_eq!(limited, 0, "of 400 minutes with {sent} packets a round trip");
            for (count, height) in above.into_iter().zip(HEIGHTS) {
                let most = f64::from(400 * rounds) * libm::exp(-0.55 * height);
                assert!(f64::from(count) <= most, "{count} above {height}, at most {most}");
            }
        }
    }
}
