//! The two timers of paper D (sections 2.2.3, 4.2, 4.3): one resets a connection without acknowledgements, one
//! retransmits its first gap.
//!
//! The *recovery timer* is TCP's (RFC 6298). While acknowledgements arrive, including duplicates, the connection is
//! alive, so all of them may restart the timer. But then a segment that is lost twice would never be retransmitted,
//! because its duplicates have been counted. For this case there is the *retransmission timer*. It is longer than the
//! recovery timer, but may still expire first, since duplicates do not restart it.

use crate::api::Probe;
use crate::params::{Flag, Number, Values, parameters};
use crate::recovery::common::rto::{Rto, Sequence};
use crate::units::Time;

parameters! {
    /// Parameters of both timers.
    pub struct Params {
        /// Any acknowledgement restarts the recovery timer, not only one of new data.
        restart_on_any: Flag = true, "paper D section 4.2";
        /// A second timer resends the first unacknowledged segment.
        retransmission_timer: Flag = true, "paper D section 4.3";
        /// The retransmission timeout, as a multiple of the recovery timeout.
        retransmission_factor: Number = 2.0, in 1.5..=3.0, "paper D section 4.3, note 3";
    }
}

/// The action for an expired timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expired {
    /// Reset the connection.
    Recovery,
    /// Retransmit the first unacknowledged segment.
    Retransmission,
}

/// Both timers and the round-trip estimate.
pub struct Timers {
    rto: Rto,
    restart_on_any: bool,
    /// Ratio of retransmission timeout and recovery timeout; infinite without the former timer.
    factor: f64,
    resend_at: Time,
    resends: u32,
}

impl Timers {
    /// Timers with the common parameters and those of this file.
    pub fn new(values: &Values) -> Timers {
        let params = Params::of(values);
        Timers {
            rto: Rto::new(values),
            restart_on_any: params.restart_on_any,
            factor: if params.retransmission_timer { params.retransmission_factor } else { f64::INFINITY },
            resend_at: Time::NEVER,
            resends: 0,
        }
    }
    /// Takes a round-trip sample of the packet that caused an acknowledgement.
    pub fn sample(&mut self, rtt: Time, seq: &Sequence) {
        self.rto.sample(rtt, seq);
    }
    /// The round-trip estimate and recovery timer.
    pub fn rto(&self) -> &Rto {
        &self.rto
    }
    /// A segment is sent for the first time: both timers run.
    pub fn sent(&mut self, now: Time) {
        self.rto.start(now);
        if self.resend_at == Time::NEVER {
            self.restart_second(now);
        }
    }
    /// A segment is retransmitted, because of acknowledgements or the second timer.
    pub fn resent(&mut self, now: Time, by_acknowledgements: bool) {
        if by_acknowledgements {
            self.rto.restart(now);
        }
        self.restart_second(now);
    }
    /// New data were acknowledged; `fresh` as in [`Rto::acknowledged`].
    pub fn acknowledged(&mut self, now: Time, outstanding: bool, fresh: bool) {
        self.rto.acknowledged(now, outstanding, fresh);
        self.resend_at = Time::NEVER;
        if outstanding {
            self.restart_second(now);
        }
    }
    /// A duplicate arrived.
    pub fn duplicate(&mut self, now: Time) {
        if self.restart_on_any {
            self.rto.restart(now);
        }
    }
    /// When the next timer expires.
    pub fn deadline(&self) -> Time {
        self.rto.deadline().min(self.resend_at)
    }
    /// The action that is due; `None` if no timer has expired, or nothing was outstanding. With both, that of the
    /// recovery timer.
    pub fn expire(&mut self, now: Time, outstanding: bool) -> Option<Expired> {
        if !outstanding {
            self.rto.stop();
            self.resend_at = Time::NEVER;
            return None;
        }
        if self.rto.deadline() <= now {
            self.rto.expired(now);
            self.restart_second(now);
            return Some(Expired::Recovery);
        }
        if self.resend_at <= now {
            self.restart_second(now);
            self.resends += 1;
            return Some(Expired::Retransmission);
        }
        None
    }
    fn restart_second(&mut self, now: Time) {
        if self.factor.is_finite() {
            self.resend_at = now + Time((self.rto.timeout().0 as f64 * self.factor) as u64);
        }
    }
    /// Reports its variables.
    pub fn probe(&self, put: Probe<'_>) {
        self.rto.probe(put);
        put("timer_resends", self.resends as f64);
    }
}
