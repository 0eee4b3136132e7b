//! Marks of routers that answer packets ([`crate::guard`]).

use crate::units::Time;

/// Units of marks in congestion headers and in transport headers.
pub(super) const HEADER_MARK: Time = Time::millis(4);
pub(super) const PLAIN_MARK: Time = Time::millis(16);

/// Whether routers have answered a packet, and how long it waited in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// 0: no answer. Otherwise 1 + the waiting time in units; `most - 1` for longer times.
    pub(super) code: u8,
    /// The code after a drop.
    pub(super) most: u8,
    pub(super) unit: Time,
}

impl Mark {
    /// Whether a router has answered.
    #[inline]
    pub fn is_set(self) -> bool {
        self.code > 0
    }
    /// How long the packet waited in the routers that have answered, with an error of half a unit per router; `None`
    /// if the time exceeds the range of a mark, or if one of these routers dropped an earlier packet of the flow.
    #[inline]
    pub fn waited(self) -> Option<Time> {
        (self.code < self.most - 1).then(|| Time(self.code.saturating_sub(1) as u64 * self.unit.0))
    }
    /// The mark after one more router, in which the packet waits for `wait`.
    #[inline]
    #[must_use]
    pub fn after(self, wait: Time) -> Mark {
        let units = (wait + Time(self.unit.0 / 2)).0 / self.unit.0;
        let code = units.saturating_add(self.code.max(1) as u64).min(self.most as u64 - 1) as u8;
        Mark { code: code.max(self.code), ..self }
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
