//! The sending end of one flow: the core's [`SenderEndpoint`] with its application.

use std::net::SocketAddrV4;

use explicate_build::source::Source;
use explicate_core::endpoint::{Event, ReceiverEndpoint, SenderEndpoint};
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges, flag};

use super::outbox::Outbox;

/// The sending end of a flow.
pub struct Sending {
    /// The core's sending end.
    pub flow: SenderEndpoint,
    /// Its application.
    pub source: Source,
    /// A receiving end that is never used, for applications that need one.
    pub elsewhere: ReceiverEndpoint,
    /// The receiver's address.
    pub peer: SocketAddrV4,
    /// When it starts.
    pub start: Time,
    /// It fails after this time without an answer.
    pub timeout: Time,
    /// When the next event of the application is due: at first at its start.
    pub acts: Time,
    /// When the last answer came; at first its start.
    pub last_answer_at: Time,
    /// When all data of a sized transfer were acknowledged; [`Time::NEVER`] before.
    pub completed: Time,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Sending {
    /// Handles an acknowledgement.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet, sack: &SackRanges) {
        if self.failure.is_none() {
            self.last_answer_at = now;
            self.flow.handle_packet(now, packet, sack);
        }
    }
    /// Runs expired timers.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.acts <= now {
            self.acts = self.source.act(self.acts, &mut self.flow, &mut self.elsewhere).unwrap_or(Time::NEVER);
        }
        if self.flow.poll_timeout() <= now {
            self.flow.handle_timeout(now);
            if let Source::Sessions(sessions) = &mut self.source
                && let Some(next) = sessions.check(now, &mut self.flow, &mut self.elsewhere)
            {
                self.acts = next;
            }
        }
        if self.gives_up() <= now {
            self.failure = Some(format!("no answer from {} for {} s", self.peer, self.timeout.as_secs_f64()));
        }
    }
    /// When to abort, if an answer is overdue.
    fn gives_up(&self) -> Time {
        if self.flow.timeouts_in_a_row() > 0 { self.last_answer_at + self.timeout } else { Time::NEVER }
    }
    /// When [`handle_timeout`](Sending::handle_timeout) has to be called.
    pub fn due(&self) -> Time {
        match self.failure {
            None => self.flow.poll_timeout().min(self.acts).min(self.gives_up()),
            Some(_) => Time::NEVER,
        }
    }
    /// Moves all packets that may be sent now to the outbox; false if that is full.
    pub fn transmit(&mut self, now: Time, out: &mut Outbox) -> bool {
        if self.start > now || self.failure.is_some() {
            return true;
        }
        loop {
            if out.is_full() {
                return false;
            }
            let mut packet = Packet::EMPTY;
            if !self.flow.poll_transmit(now, &mut packet) {
                break;
            }
            let filler = if packet.transport.has(flag::SYN) { 0 } else { packet.transport.payload() as usize };
            out.push(self.peer, &packet, &SackRanges::NONE, filler);
        }
        let ended = self.acts == Time::NEVER || !self.source.finite();
        if ended && self.flow.poll_event() == Some(Event::Drained) && self.source.finite() {
            self.completed = self.completed.min(now);
        }
        true
    }
}
