//! Marks of routers that answer packets ([`crate::guard`]).

use crate::units::Time;

/// Units of marks in congestion headers and in transport headers.
pub(super) const HEADER_MARK: Time = Time::millis(4);
pub(super) const PLAIN_MARK: Time = Time::millis(16);

/// Whether routers have answered a packet, and how long it waited in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// 0, or 1 and the wait in units; one less than the most for longer waits.
    pub(super) code: u8,
    /// The code behind a drop.
    pub(super) most: u8,
    pub(super) unit: Time,
}

impl Mark {
    /// Whether a router has answered.
    #[inline]
    pub fn is_set(self) -> bool {
        self.code > 0
    }
    /// How long the packet waited in the routers that have answered, to half a unit for each; `None` if it was longer than a mark can
    /// say, or if one of them dropped the flow's packet before it.
    #[inline]
    pub fn waited(self) -> Option<Time> {
        (self.code < self.most - 1).then(|| Time(self.code.saturating_sub(1) as u64 * self.unit.0))
    }
    /// The mark after one more router in which the packet waits for `wait`.
    #[inline]
    #[must_use]
    pub fn after(self, wait: Time) -> Mark {
        let units = (wait + Time(self.unit.0 / 2)).0 / self.unit.0;
        let code = units.saturating_add(self.code.max(1) as u64).min(self.most as u64 - 1) as u8;
        Mark { code: code.max(self.code), ..self }
    }
    /// Whether an answering router dropped the flow's packet before this one.
    #[inline]
    pub fn is_behind_drop(self) -> bool {
        self.code == self.most
    }
    /// The mark after a router that dropped the flow's packet before this one: it says no wait.
    #[inline]
    #[must_use]
    pub fn after_drop(self) -> Mark {
        Mark { code: self.most, ..self }
    }
}
