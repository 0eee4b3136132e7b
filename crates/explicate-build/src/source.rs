//! Applications: the data that flows send, and when.

use explicate_core::endpoint::{ReceiverEndpoint, SenderEndpoint};
use explicate_core::rng::Rng;
use explicate_core::units::Time;

use crate::session::Sessions;

/// An application.
pub enum Source {
    /// Sends without limit.
    Bulk,
    /// Sends this many bytes.
    Sized(u64),
    /// Sends, pauses, sends.
    OnOff(Box<OnOff>),
    /// Sends in connections that end and are opened again.
    Sessions(Box<Sessions>),
    /// Sends without limit until this time; its start is past once `started`.
    Until {
        /// When it stops.
        stop: Time,
        /// Whether it has begun.
        started: bool,
    },
}

/// An application that sends in periods.
pub struct OnOff {
    /// Length of an on-period, or its mean.
    pub on: Time,
    /// Length of an off-period, or its mean.
    pub off: Time,
    /// Draws exponential lengths, if periods are random.
    pub rng: Option<Rng>,
    /// When it stops for good.
    pub stop: Time,
    /// Whether this is an on-period.
    pub active: bool,
}

impl Source {
    /// Whether a completion time is defined.
    #[inline]
    pub fn finite(&self) -> bool {
        matches!(self, Source::Sized(_))
    }
    /// The next event is due: acts on the flow's ends, and returns when to call again.
    pub fn act(&mut self, now: Time, flow: &mut SenderEndpoint, receiver: &mut ReceiverEndpoint) -> Option<Time> {
        match self {
            Source::Bulk => flow.write(u64::MAX, false),
            Source::Sized(bytes) => flow.write(*bytes, true),
            Source::Until { stop, started } => {
                if *started {
                    flow.withdraw();
                    return None;
                }
                *started = true;
                flow.write(u64::MAX, false);
                return Some(*stop);
            }
            Source::OnOff(state) => return state.act(now, flow),
            Source::Sessions(state) => return state.act(now, flow, receiver),
        }
        None
    }
}

impl OnOff {
    fn act(&mut self, now: Time, flow: &mut SenderEndpoint) -> Option<Time> {
        if self.active || now >= self.stop {
            flow.withdraw();
        } else {
            flow.write(u64::MAX, false);
        }
        if now >= self.stop {
            return None;
        }
        self.active = !self.active;
        let mean = if self.active { self.on } else { self.off };
        let span = match &mut self.rng {
            Some(rng) => Time::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            None => mean,
        };
        Some((now + span).min(self.stop))
    }
}
