//! The sending end of one flow: the core's [`SenderEndpoint`] with its application, and the request for the verdict at its end.

use std::net::SocketAddrV4;

use explicate_build::source::Source;
use explicate_core::endpoint::{Event, ReceiverEndpoint, SenderEndpoint};
use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges, flag};

use super::auth::Key;
use super::content::Supply;
use super::hello::Hello;
use super::message::{self, Message, Refusal, Verdict};
use super::opening::Opening;
use super::outbox::Outbox;

/// For this time a file that the receiver reports as in transfer is offered again.
const BUSY: Time = Time::secs(6);
/// What may be the cause of a silence.
pub const SILENT: &str = "is `explicated recv` running there by UDP (its options --key, --open, --transport udp), and does UDP reach its port?";
/// Delay before a SYN is repeated if its answer requires that.
const AGAIN: Time = Time::millis(500);
/// Interval between two requests for the verdict.
const ASK_EVERY: Time = Time::millis(250);

/// The state of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferState {
    /// It sends, or has not started.
    Open,
    /// All data are acknowledged; it waits for the verdict.
    Asking,
    /// It has ended, and this many bytes of payload arrived in order.
    Over(u64),
    /// It failed, and why.
    Failed(String),
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
    opening: Opening,
    /// The upper half of its number.
    pub high: u32,
    /// Its content.
    pub supply: Supply,
    /// Bytes that the receiver had when the flow began; `None` before it is admitted.
    pub have: Option<u64>,
    /// The receiver's address.
    pub peer: SocketAddrV4,
    /// When it starts.
    pub start: Time,
    /// When all data of a sized transfer were acknowledged; [`Time::NEVER`] before.
    pub completed: Time,
    /// Its state.
    pub state: TransferState,
    /// It fails after this time without an answer.
    timeout: Time,
    last_answer_at: Time,
    /// When the receiver first reported that the file is in transfer.
    busy: Option<Time>,
    /// When to repeat the SYN, if before the flow's own timer.
    again: Time,
    /// When to request the verdict next.
    asks: Time,
    confirm: bool,
    /// Bytes of payload sent, retransmissions included.
    pub payload: u64,
    /// Bytes that arrived in flows replaced by this one.
    pub earlier: u64,
    /// Packets that those flows retransmitted.
    pub earlier_resent: u64,
    /// Bytes that the receiver had before the first of those flows.
    held_first: Option<u64>,
}

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
    /// The upper half of its number: random, or 0 in the lab, which needs no cookies.
    pub high: u32,
    /// The key that both ends have, if any.
    pub key: Option<Key>,
    /// The content.
    pub supply: Supply,
    /// The receiver's address.
    pub peer: SocketAddrV4,
    /// It fails after this time without an answer.
    pub timeout: Time,
    /// Whether to request a verdict at the end.
    pub confirm: bool,
}

impl Sending {
    /// A flow that waits for its start.
    pub fn new(plan: Plan) -> Sending {
        let number = message::number(plan.high, plan.flow.id());
        let opening = Opening::new(number, &plan.hello, plan.key, plan.start);
        Sending {
            // In the lab the application opens the flow.
            acts: if opening.is_ready() { plan.start } else { Time::NEVER },
            have: opening.is_ready().then_some(0),
            opening,
            high: plan.high,
            flow: plan.flow,
            source: plan.source,
            elsewhere: plan.elsewhere,
            supply: plan.supply,
            peer: plan.peer,
            start: plan.start,
            completed: Time::NEVER,
            state: TransferState::Open,
            timeout: plan.timeout,
            last_answer_at: plan.start,
            busy: None,
            again: Time::NEVER,
            asks: Time::NEVER,
            confirm: plan.confirm,
            payload: 0,
            earlier: 0,
            earlier_resent: 0,
            held_first: None,
        }
    }
    /// Replaces a stalled flow to the same receiver by this one: data that the old flow delivered count, and are not
    /// sent again. A file resumes at the length that the receiver reports.
    pub fn take_over(&mut self, before: &Sending) {
        self.last_answer_at = before.last_answer_at;
        self.held_first = before.held_first.or(before.have).or(Some(0));
        self.payload = before.payload;
        self.earlier_resent = before.earlier_resent + before.flow.stats().retransmissions;
        if matches!(self.supply, Supply::Filler) {
            let arrived = before.flow.acked() as u64 * before.flow.payload() as u64;
            self.earlier = before.earlier + arrived;
            if let Source::Sized(bytes) = &mut self.source {
                *bytes = bytes.saturating_sub(self.earlier).max(1);
            }
        }
    }
    /// Handles an acknowledgement, followed by `more`.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet, sack: &SackRanges, more: &[u8]) {
        if self.state != TransferState::Open || !self.admit(now, packet, more) {
            return;
        }
        self.last_answer_at = now;
        self.flow.handle_packet(now, packet, sack);
    }
    /// Whether the flow is admitted, possibly by this acknowledgement.
    fn admit(&mut self, now: Time, packet: &Packet, more: &[u8]) -> bool {
        if self.have.is_some() || !packet.transport.has(flag::SYN) || !self.opening.is_ready() {
            return self.have.is_some();
        }
        let Some(have) = self.opening.check(packet.transport.options(), more) else {
            self.state = failed("the other end did not prove that it has the key");
            return false;
        };
        match &mut self.source {
            Source::Sized(bytes) if have <= *bytes => *bytes -= have,
            _ if have == 0 => {}
            _ => {
                self.state = failed("the other end reports more data than are sent");
                return false;
            }
        }
        if let (Some(first), Supply::File { .. }) = (self.held_first, &self.supply) {
            self.earlier = have.saturating_sub(first);
        }
        // The application starts at the position that is now known.
        (self.have, self.acts) = (Some(have), now);
        true
    }
    /// Whether a message with this number is about this flow. Numbers of version 0.1 have no upper half: such an answer counts only
    /// where the opening waits for one.
    pub fn is_about(&self, number: u64, message: Message) -> bool {
        (number >> 32) as u32 == self.high || self.opening.is_old(message)
    }
    /// Handles a message about this flow.
    pub fn handle_message(&mut self, now: Time, message: Message) {
        if let Message::Answer(_, verdict, payload, code) = message
            && !self.opening.is_verdict(verdict.number(), payload, &code)
        {
            tracing::warn!(peer = %self.peer, "an answer without the key was ignored");
            return;
        }
        self.last_answer_at = now;
        match message {
            Message::Answer(_, verdict, payload, _) if self.state == TransferState::Asking => {
                self.state = match verdict {
                    Verdict::Same => TransferState::Over(payload),
                    Verdict::Checking => TransferState::Asking,
                    bad => self.failed_by(bad),
                };
            }
            // A failure of the receiver is reported at once.
            Message::Answer(_, verdict, ..)
                if self.state == TransferState::Open
                    && !matches!(verdict, Verdict::Same | Verdict::Checking | Verdict::Missing) =>
            {
                self.state = self.failed_by(verdict);
            }
            Message::Cookie(_, cookie) if self.state == TransferState::Open && self.have.is_none() => {
                if !self.opening.is_ready() {
                    self.flow.write(0, false); // opens it
                } else {
                    // The previous cookie has expired.
                    self.again = self.again.min(now + AGAIN);
                }
                self.opening.take_cookie(now, cookie);
            }
            Message::Refused(_, why) if self.state == TransferState::Open && self.have.is_none() => {
                // A previous transfer of this sender may be open, which the receiver removes soon.
                let waits = why == Refusal::Busy && now.since(*self.busy.get_or_insert(now)) < BUSY;
                self.again = self.again.min(now + AGAIN);
                if !waits {
                    self.state = failed(why.sentence());
                }
            }
            Message::Unknown(_) if self.state == TransferState::Open && self.opening.is_old(message) => {
                let message = "the other end runs version 0.1 of explicated, which has no cookies; update it";
                self.state = failed(message);
            }
            Message::Unknown(_)
                if self.have.is_some() && matches!(self.state, TransferState::Open | TransferState::Asking) =>
            {
                let message = "this transfer is unknown to the other end; was it restarted meanwhile?";
                let file = matches!(self.supply, Supply::File { .. });
                let again = if file { " Send the file again: the part that has arrived is kept" } else { "" };
                self.state = TransferState::Failed(format!("{message}{again}"));
            }
            _ => {}
        }
    }
    /// Runs expired timers.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.state == TransferState::Open {
            if self.again <= now {
                self.again = Time::NEVER;
                self.flow.open_again();
            }
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
        }
        if self.gives_up() <= now {
            let silence = format!("no answer from {} for {}", self.peer, seconds(self.timeout));
            let hint = if self.have.is_none() { format!("; {SILENT}") } else { String::new() };
            self.state = TransferState::Failed(silence + &hint);
        }
    }
    /// The failure that a verdict indicates.
    fn failed_by(&self, verdict: Verdict) -> TransferState {
        let held_before = self.have.is_some_and(|have| have > 0);
        failed(verdict.problem(held_before).unwrap_or("the other end could not write the file"))
    }
    /// When to abort, if an answer is overdue.
    fn gives_up(&self) -> Time {
        let overdue = match self.state {
            TransferState::Open => self.have.is_none() || self.flow.timeouts_in_a_row() > 0,
            TransferState::Asking => true,
            _ => false,
        };
        if overdue { self.last_answer_at + self.timeout } else { Time::NEVER }
    }
    /// When [`handle_timeout`](Sending::handle_timeout) has to be called.
    pub fn due(&self) -> Time {
        match self.state {
            TransferState::Open => {
                self.flow.poll_timeout().min(self.acts).min(self.again).min(self.opening.due()).min(self.gives_up())
            }
            TransferState::Asking => self.asks.min(self.gives_up()),
            _ => Time::NEVER,
        }
    }
    /// Moves all packets that may be sent now to the outbox; false if that is full.
    pub fn transmit(&mut self, now: Time, out: &mut Outbox) -> bool {
        if self.start > now {
            return true;
        }
        if self.state == TransferState::Open
            && let Some(packets) = self.opening.poll(now)
        {
            for packet in packets.iter().flatten() {
                out.push(self.peer, packet, &SackRanges::NONE, |_| 0);
            }
        }
        while self.state == TransferState::Open {
            if out.is_full() {
                return false;
            }
            let mut packet = Packet::EMPTY;
            if !self.flow.poll_transmit(now, &mut packet) {
                break;
            }
            self.write(&packet, out);
        }
        if self.state == TransferState::Open
            && (self.acts == Time::NEVER || !self.source.finite())
            && self.flow.poll_event() == Some(Event::Drained)
        {
            if self.source.finite() {
                self.completed = self.completed.min(now);
            }
            if self.confirm && self.acts == Time::NEVER {
                (self.state, self.asks) = (TransferState::Asking, now);
            }
        }
        if self.state == TransferState::Asking && self.asks <= now {
            if out.is_full() {
                return false;
            }
            let number = message::number(self.high, self.flow.id());
            let question = Message::Question(number, self.supply.digest()).to_packet();
            out.push(self.peer, &question, &SackRanges::NONE, |_| 0);
            self.asks = now + ASK_EVERY;
        }
        true
    }
    fn write(&mut self, packet: &Packet, out: &mut Outbox) {
        if packet.transport.has(flag::SYN) {
            let hello = self.opening.greeting(packet.transport.options());
            return out.push_numbered(self.peer, self.high, packet, &SackRanges::NONE, |room| {
                room[..hello.len()].copy_from_slice(hello.as_bytes());
                hello.len()
            });
        }
        let (segment, length) = (packet.transport.segment(), packet.transport.payload() as usize);
        let (supply, full) = (&self.supply, self.flow.payload());
        let (mut problem, from) = (None, self.have.unwrap_or(0));
        out.push_numbered(self.peer, self.high, packet, &SackRanges::NONE, |room| {
            problem = supply.fill(from, segment, full, &mut room[..length]).err();
            length
        });
        self.payload += length as u64;
        if let Some(problem) = problem {
            self.state = TransferState::Failed(format!("cannot read the file, or it became shorter: {problem}"));
        }
    }
    /// Whether the flow has ended or failed.
    pub fn is_over(&self) -> bool {
        matches!(self.state, TransferState::Over(_) | TransferState::Failed(_))
    }
}

fn failed(why: &str) -> TransferState {
    TransferState::Failed(why.to_string())
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
