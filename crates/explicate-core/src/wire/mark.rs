//! Marks of routers that answer packets ([`crate::guard`]).

use crate::units::Time;

/// The waiting times that marks have codes for: up to `fine_steps` steps of `fine`, and steps of `coarse` beyond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scale {
    fine: Time,
    fine_steps: u64,
    coarse: Time,
}

/// In congestion headers. The fine steps are as short as the least delay that the guard compares (`guard/full_queue.rs`): errors
/// of longer ones would look like delay elsewhere.
pub(super) const HEADER_SCALE: Scale = Scale { fine: Time::micros(500), fine_steps: 64, coarse: Time::millis(4) };
/// In transport headers, which have four bits.
pub(super) const PLAIN_SCALE: Scale = Scale { fine: Time::ZERO, fine_steps: 0, coarse: Time::millis(16) };

impl Scale {
    fn fine_most(self) -> u64 {
        self.fine_steps * self.fine.0
    }
    /// The time after this many steps.
    fn time(self, steps: u64) -> Time {
        let coarse = steps.saturating_sub(self.fine_steps);
        Time(steps.min(self.fine_steps) * self.fine.0 + coarse * self.coarse.0)
    }
    /// The steps to the time that is nearest to this one.
    fn steps(self, time: Time) -> u64 {
        if time.0 < self.fine_most() {
            (time.0 + self.fine.0 / 2) / self.fine.0
        } else {
            self.fine_steps + (time.0 - self.fine_most()).saturating_add(self.coarse.0 / 2) / self.coarse.0
        }
    }
}

/// Whether routers have answered a packet, and how long it waited in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// 0: no answer. Otherwise 1 + the steps to the waiting time; `most - 1` for longer times.
    pub(super) code: u8,
    /// The code after a drop.
    pub(super) most: u8,
    pub(super) scale: Scale,
}

impl Mark {
    /// Whether a router has answered.
    #[inline]
    pub fn is_set(self) -> bool {
        self.code > 0
    }
    /// How long the packet waited in the routers that have answered, with an error of half a step per router; `None`
    /// if the time exceeds the range of a mark, or if one of these routers dropped an earlier packet of the flow.
    #[inline]
    pub fn waited(self) -> Option<Time> {
        (self.code < self.most - 1).then(|| self.scale.time(self.code.saturating_sub(1).into()))
    }
    /// Whether the waiting time exceeds those that the mark gives in fine steps.
    #[inline]
    pub fn is_coarse(self) -> bool {
        self.scale.fine_steps > 0 && u64::from(self.code) > 1 + self.scale.fine_steps
    }
    /// The mark after one more router, in which the packet waits for `wait`.
    #[inline]
    #[must_use]
    pub fn after(self, wait: Time) -> Mark {
        let longest = self.most - 1;
        let code = match self.waited() {
            Some(before) => (1 + self.scale.steps(Time(before.0.saturating_add(wait.0)))).min(longest.into()) as u8,
            None => self.code,
        };
        Mark { code, ..self }
    }
    /// Whether an answering router dropped an earlier packet of the flow.
    #[inline]
    pub fn is_behind_drop(self) -> bool {
        self.code == self.most
    }
    /// The mark after a router that dropped an earlier packet of the flow: it gives no waiting time.
    #[inline]
    #[must_use]
    pub fn after_drop(self) -> Mark {
        Mark { code: self.most, ..self }
    }
}
