//! State of both ends of a flow in the engine.

use explicate_build::source::Source;
use explicate_core::endpoint::{Event, ReceiverEndpoint, ReceiverStats, SenderEndpoint, SenderStats};
use explicate_core::units::Time;

use super::Processing;
use super::host_queue::Place;

/// First places of a flow's routes.
#[derive(Clone, Copy)]
pub struct RoutePair {
    pub(super) forward: u32,
    pub(super) back: u32,
}

/// Identity of a flow in the scenario: the number of its group, and its number within the group.
#[derive(Clone, Copy)]
pub struct Member {
    /// The group.
    pub group: u32,
    /// Its number there.
    pub number: u32,
}

/// Both ends of a flow.
pub struct Ends {
    /// The sending end.
    pub flow: SenderEndpoint,
    /// The receiving end.
    pub receiver: ReceiverEndpoint,
    /// Its application.
    pub source: Source,
    /// Processing time of its host.
    pub(super) processing: Processing,
    /// Its place in a host's queue.
    pub(super) host: Place,
    /// When the application begins.
    pub start: Time,
    /// The flow's number in its group, see [`super::Engine::group_of`].
    pub number: u32,
    /// When all data of a sized transfer were acknowledged, or the last segment arrived if nothing is; [`Time::NEVER`]
    /// before.
    pub completed: Time,
    /// First places of its routes.
    pub(super) forward: u32,
    pub(super) back: u32,
    /// The slot of the pending timer, and its time; never if there is none.
    pub(super) timer: u32,
    pub(super) timer_due: Time,
}

impl Ends {
    /// Nothing more can be sent now. Returns when the flow needs a timer, if that is before the pending one, which is
    /// then ignored when it expires; otherwise never.
    #[inline(always)]
    pub(super) fn rest(&mut self, now: Time) -> Time {
        let drained = self.source.finite() && self.flow.poll_event() == Some(Event::Drained);
        if drained && !self.flow.is_one_way() {
            self.completed = self.completed.min(now);
        }
        let due = self.flow.poll_timeout();
        if due < self.timer_due { due } else { Time::NEVER }
    }

    /// Counters of both ends, all sessions together.
    pub fn stats(&self) -> (SenderStats, ReceiverStats) {
        match &self.source {
            Source::Sessions(sessions) => sessions.all(&self.flow, &self.receiver),
            _ => (self.flow.stats(), self.receiver.stats()),
        }
    }
    /// Sessions begun, and torn down; a flow without sessions has begun one.
    pub fn sessions(&self) -> (u64, u64) {
        match &self.source {
            Source::Sessions(sessions) => (sessions.begun, sessions.torn_down),
            _ => (1, 0),
        }
    }
}
