//! When TCP's window becomes the limit of an explicit sender, and when it ends: by losses and delays where no router answers.
//!
//! One rule for the flows of the core and for the tunnels of a gateway. [`Seen`] is a round trip, [`Limit`] the rule.

use crate::units::Time;

/// Share of the packets that the air may lose, if nobody says otherwise.
pub const AIR_LOSS: f64 = 0.02;

/// Round trips in a row that make a sign.
const ROUNDS: u32 = 3;
/// Share of packets lost that is one.
const MOST_LOST: f64 = 0.2;
/// Lost packets beyond those of the air that make a sign, and for how many of them a round trip counts at most.
const SURPLUS: f64 = 30.0;
const OF_A_ROUND: f64 = 12.0;
/// How long a path has to be well before the limit ends, at first and at most.
const PATIENCE: Time = Time::secs(30);
const MOST_PATIENCE: Time = Time::secs(3600);
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
#[derive(Debug)]
pub struct Limit {
    air_loss: f64,
    on: bool,
    /// Round trips in a row with a sign, and lost packets beyond those that the air may lose.
    signs: u32,
    surplus: f64,
    /// Since when the path is well, and how long it has to be.
    well_since: Time,
    patience: Time,
}

impl Limit {
    /// No limit; `air_loss` is the share of the packets that the air may lose.
    pub fn new(air_loss: f64) -> Limit {
        Limit { air_loss, on: false, signs: 0, surplus: 0.0, well_since: Time::ZERO, patience: PATIENCE }
    }
    /// TCP's window is the limit.
    pub fn is_on(&self) -> bool {
        self.on
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
        self.surplus = (self.surplus + (seen.lost - air).min(OF_A_ROUND)).max(0.0);
        let certain = self.signs >= ROUNDS || self.surplus > SURPLUS || seen.queue == FullQueue::Certain;
        let ill = sign || seen.lost > self.borne(seen) || 2 * seen.delay.0 > seen.most_delay.0;
        if !self.on && certain {
            (self.on, self.well_since) = (true, now);
            return Some(Change::Begins);
        }
        if !self.on || ill {
            self.well_since = now;
        } else if now.since(self.well_since) > self.patience {
            self.on = false;
            self.forget();
            self.patience = Time(2 * self.patience.0).min(MOST_PATIENCE);
            return Some(Change::Ends);
        }
        None
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
