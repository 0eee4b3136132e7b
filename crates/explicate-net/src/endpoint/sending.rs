//! The sending end of one flow: the core's [`SenderEndpoint`] with its application.

use std::net::SocketAddrV4;

use explicate_build::source::Source;
use explicate_core::endpoint::{Event, ReceiverEndpoint, SenderEndpoint};
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges, flag};

use super::hello::Hello;
use super::outbox::Outbox;

/// Parameters of a sending end.
pub struct Plan {
    /// The core's sending end.
    pub flow: SenderEndpoint,
    /// A receiving end that is never used, for applications that need one.
    pub elsewhere: ReceiverEndpoint,
    /// Its application.
    pub source: Source,
    /// When that begins.
    pub start: Time,
    /// The parameters for the receiver.
    pub hello: Hello,
    /// The receiver's address.
    pub peer: SocketAddrV4,
    /// It fails after this time without an answer.
    pub timeout: Time,
}

/// The sending end of a flow.
pub struct Sending {
    /// The core's sending end.
    pub flow: SenderEndpoint,
    /// Its application.
    pub source: Source,
    /// When the next event of the application is due.
    acts: Time,
    /// A placeholder for the application's remote end.
    pub elsewhere: ReceiverEndpoint,
    /// The payload of its SYN.
    greeting: String,
    /// The receiver's address.
    pub peer: SocketAddrV4,
    /// When it starts.
    pub start: Time,
    /// When all data of a sized transfer were acknowledged; [`Time::NEVER`] before.
    pub completed: Time,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// It fails after this time without an answer.
    timeout: Time,
    last_answer_at: Time,
}

impl Sending {
    /// A flow that waits for its start.
    pub fn new(plan: Plan) -> Sending {
        let Plan { flow, elsewhere, source, start, hello, peer, timeout } = plan;
        let (greeting, completed, failure) = (hello.words(), Time::NEVER, None);
        let (acts, last_answer_at) = (start, start);
        Sending { flow, source, acts, elsewhere, greeting, peer, start, completed, failure, timeout, last_answer_at }
    }
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
            self.failure = Some(format!("no answer from {} for {}", self.peer, seconds(self.timeout)));
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
            self.write(&packet, out);
        }
        let ended = self.acts == Time::NEVER || !self.source.finite();
        if ended && self.flow.poll_event() == Some(Event::Drained) && self.source.finite() {
            self.completed = self.completed.min(now);
        }
        true
    }
    /// Filler data, or the greeting.
    fn write(&self, packet: &Packet, out: &mut Outbox) {
        let (syn, segment) = (packet.transport.has(flag::SYN), packet.transport.segment());
        let length = if syn { self.greeting.len() } else { packet.transport.payload() as usize };
        out.push(self.peer, packet, &SackRanges::NONE, |room| {
            let room = &mut room[..length];
            if syn {
                room.copy_from_slice(self.greeting.as_bytes())
            } else {
                room.fill(segment as u8)
            }
            length
        });
    }
}

/// In whole milliseconds.
fn seconds(span: Time) -> String {
    format!("{} s", (span.as_secs_f64() * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_plain_numbers() {
        for (span, text) in [(15.0, "15 s"), (0.25, "0.25 s"), (120.0, "120 s"), (1e-3, "0.001 s")] {
            assert_eq!(seconds(Time::from_secs_f64(span)), text);
        }
    }
}
