//! Sessions (paper Y, section III): a flow connects, sends until its time is over or too many consecutive timeouts
//! abort the connection, pauses, and connects again.
//!
//! Every session is a connection of its own, from set-up on. Its receiver waits for the SYN, and its sender for the
//! answer to its own SYN, so both ends ignore packets of earlier sessions that are still in flight, as long as packets
//! keep their order.

use explicate_core::endpoint::{ReceiverEndpoint, ReceiverStats, SenderEndpoint, SenderStats};
use explicate_core::rng::Rng;
use explicate_core::units::Time;

/// Makes both ends of the next session, from the number of earlier ones.
pub type Fresh = Box<dyn Fn(u64) -> (SenderEndpoint, ReceiverEndpoint) + Send>;

/// Times of sessions.
pub struct Plan {
    /// Consecutive timeouts that abort a session.
    pub timeouts: u32,
    /// Shortest and longest pause; drawn uniformly between them.
    pub pause: (Time, Time),
    /// Duration of a session, the mean if random; with never a session lasts until it is aborted.
    pub duration: Time,
    /// Durations are exponential.
    pub random: bool,
    /// Latest end of the last session.
    pub stop: Time,
}

/// The sessions of a flow.
pub struct Sessions {
    plan: Plan,
    rng: Rng,
    fresh: Fresh,
    /// When the next event is due; calls at other times have no effect.
    next: Time,
    active: bool,
    /// Sessions begun.
    pub begun: u64,
    /// Sessions aborted by timeouts.
    pub torn_down: u64,
    /// Counters of earlier sessions.
    earlier: (SenderStats, ReceiverStats),
}

impl Sessions {
    /// Before the first session, which begins at `start`.
    pub fn new(plan: Plan, start: Time, rng: Rng, fresh: Fresh) -> Sessions {
        let (begun, torn_down, earlier) = Default::default();
        Sessions { plan, rng, fresh, next: start, active: false, begun, torn_down, earlier }
    }

    /// The next event is due: begins a session or ends it, and returns when to call again.
    pub fn act(&mut self, now: Time, flow: &mut SenderEndpoint, receiver: &mut ReceiverEndpoint) -> Option<Time> {
        if now != self.next {
            return None;
        }
        if self.active || now >= self.plan.stop {
            flow.withdraw();
            return self.pauses(now);
        }
        if self.begun > 0 {
            self.replace(flow, receiver);
        }
        flow.write(u64::MAX, false);
        (self.begun, self.active) = (self.begun + 1, true);
        let span = match self.plan.duration {
            Time::NEVER => Time::NEVER,
            mean if self.plan.random => Time::from_secs_f64(self.rng.exponential(mean.as_secs_f64())),
            span => span,
        };
        self.next = (now + span).min(self.plan.stop);
        (self.next < Time::NEVER).then_some(self.next)
    }

    /// Timers of the flow expired: aborts the session if there were too many in a row, and returns when the next
    /// begins.
    pub fn check(&mut self, now: Time, flow: &mut SenderEndpoint, receiver: &mut ReceiverEndpoint) -> Option<Time> {
        if !self.active || flow.timeouts_in_a_row() < self.plan.timeouts {
            return None;
        }
        self.torn_down += 1;
        self.replace(flow, receiver);
        self.pauses(now)
    }

    fn pauses(&mut self, now: Time) -> Option<Time> {
        let (least, most) = self.plan.pause;
        let span = most.since(least).as_secs_f64() * self.rng.uniform();
        self.active = false;
        self.next = now + least + Time::from_secs_f64(span);
        if self.next >= self.plan.stop {
            self.next = Time::NEVER;
            return None;
        }
        Some(self.next)
    }

    fn replace(&mut self, flow: &mut SenderEndpoint, receiver: &mut ReceiverEndpoint) {
        if flow.is_one_way() {
            return; // no connection: the flow goes on
        }
        self.earlier.0 += flow.stats();
        self.earlier.1 += receiver.stats();
        (*flow, *receiver) = (self.fresh)(self.begun);
    }

    /// Counters of all sessions.
    pub fn all(&self, flow: &SenderEndpoint, receiver: &ReceiverEndpoint) -> (SenderStats, ReceiverStats) {
        let mut all = self.earlier;
        all.0 += flow.stats();
        all.1 += receiver.stats();
        all
    }
}
