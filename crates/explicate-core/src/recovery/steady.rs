//! Recovery while nothing is missing. What every recovery does then is the same: acknowledgements move the cumulative number
//! on, each brings a sample of the round-trip time and restarts the timer (RFC 6298), and what is sent is new. A flow does
//! that by itself, on its own copy of where it stands, and gives the counts back as soon as something else happens.

use crate::protocol::{Next, RecoveryState};
use crate::units::Time;

/// What a flow needs for that beside [`RecoveryState`]; from [`crate::recovery::rto::Rto::lend`]. Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    pub(super) rttvar: u64,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) tick: u64,
}

impl Steady {
    /// Takes an acknowledgement of data that is outstanding. Returns the segments that it newly covers, or zero, and nothing
    /// done, if it is of none.
    #[inline(always)]
    pub fn acknowledge(&mut self, at: &mut RecoveryState, now: Time, cumulative: u32, rtt: Time) -> u32 {
        let newly = cumulative.wrapping_sub(at.acked);
        let outstanding = at.highest - at.acked;
        if newly.wrapping_sub(1) >= outstanding {
            return 0;
        }
        at.acked = cumulative;
        at.in_flight -= newly;
        let (srtt, rttvar) = super::rto::smoothed(at.srtt.0, self.rttvar, rtt.0.max(1));
        (at.srtt, self.rttvar) = (Time(srtt), rttvar);
        let timeout = super::rto::timeout_of(srtt, rttvar, self.tick).max(self.min).min(self.max);
        at.timer = if newly == outstanding { Time::NEVER } else { now + Time(timeout) };
        newly
    }
    /// The next segment was sent.
    #[inline(always)]
    pub fn sent(&self, at: &mut RecoveryState, now: Time) {
        at.next += 1;
        at.highest = at.next;
        at.in_flight += 1;
        if at.timer == Time::NEVER {
            let timeout = super::rto::timeout_of(at.srtt.0, self.rttvar, self.tick).max(self.min).min(self.max);
            at.timer = now + Time(timeout);
        }
    }
    /// What to send next within `cwnd` and the receiver's window.
    #[inline(always)]
    pub fn next(&self, at: &RecoveryState, cwnd: f64, rwnd: u32) -> Next {
        if at.in_flight >= cwnd as u32 || at.in_flight >= rwnd { Next::Nothing } else { Next::New }
    }
}
