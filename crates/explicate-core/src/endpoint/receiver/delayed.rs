//! Delayed acknowledgements, which cover several packets (RFC 5681 section 4.2).

use super::{Answer, NO_DUPLICATE, ReceiverEndpoint};
use crate::units::Time;
use crate::wire::{Ecn, Packet, flag};

/// A delayed acknowledgement.
pub(super) struct Delay {
    pub(super) every: u32,
    /// Number of future acknowledgements that are not delayed.
    pub(super) quick: u32,
    pub(super) longest: Time,
    /// Packets that it covers so far; the number of the last one, and the time stamp of the first.
    pub(super) held: u32,
    pub(super) packet_number: u32,
    pub(super) timestamp: u32,
    pub(super) deadline: Time,
}

impl ReceiverEndpoint {
    /// Delays the answer to a packet if that is allowed; otherwise returns the time stamp to echo. `expected` was the
    /// next segment expected before the packet arrived.
    #[cold]
    pub(super) fn hold(&mut self, now: Time, expected: u32, packet: &Packet) -> Option<u32> {
        let delay = self.rare.as_mut()?.delay.as_mut()?;
        let header = &packet.transport;
        let in_order = header.segment() == expected && self.data.next() - expected == 1 && self.data.is_in_order();
        // If gaps are skipped, no sender waits for the report of a gap.
        let may_wait = (in_order || self.data.passes_over()) && !header.has(flag::FIN) && packet.ecn() != Ecn::Marked;
        if delay.held == 0 {
            delay.timestamp = header.timestamp();
            delay.deadline = now + delay.longest;
        }
        delay.held += 1;
        delay.packet_number = header.packet_number();
        if may_wait && delay.quick == 0 && delay.held < delay.every {
            return None;
        }
        delay.quick = delay.quick.saturating_sub(1);
        delay.held = 0;
        delay.deadline = Time::NEVER;
        Some(delay.timestamp)
    }

    /// When this end next needs [`ReceiverEndpoint::handle_timeout`]: never, unless an acknowledgement is delayed.
    pub fn poll_timeout(&self) -> Time {
        self.rare.as_ref().and_then(|rare| rare.delay.as_ref()).map_or(Time::NEVER, |delay| delay.deadline)
    }
    /// Releases an acknowledgement that has waited long enough; [`ReceiverEndpoint::poll_transmit`] returns it then.
    pub fn handle_timeout(&mut self, now: Time) {
        let Some(rare) = &mut self.rare else { return };
        let Some(delay) = rare.delay.as_mut().filter(|delay| delay.deadline <= now) else { return };
        delay.held = 0;
        delay.deadline = Time::NEVER;
        let &mut Delay { packet_number, timestamp, .. } = delay;
        rare.answer = Some(Answer { syn_options: None, packet_number, timestamp, delta: 0, duplicate: NO_DUPLICATE });
    }
}
