//! Delayed acknowledgements, which cover several packets (RFC 5681 section 4.2).

use core::cmp::Ordering;

use super::adaptive::{Adaptive, Came};
use super::{Answer, NO_DUPLICATE, ReceiverEndpoint};
use crate::units::Time;
use crate::wire::{Ecn, Packet, flag};

/// A delayed acknowledgement.
pub(super) struct Delay {
    pub(super) every: u32,
    /// Number of future acknowledgements that are not delayed.
    pub(super) quick: u32,
    pub(super) longest: Time,
    /// Decides instead of these three, if there is one.
    pub(super) adaptive: Option<Adaptive>,
    /// Packets that it covers so far; the number of the last one, and the time stamp of the first.
    pub(super) held: u32,
    pub(super) packet_number: u32,
    pub(super) timestamp: u32,
    pub(super) deadline: Time,
}

impl ReceiverEndpoint {
    /// Delays the answer to a packet if that is allowed; otherwise returns the time stamp to echo. `expected` was the
    /// next segment expected before the packet arrived; with `rises` the packet raised the window.
    #[cold]
    pub(super) fn hold(&mut self, now: Time, expected: u32, packet: &Packet, rises: bool) -> Option<u32> {
        let delay = self.rare.as_mut()?.delay.as_mut()?;
        let header = &packet.transport;
        let in_order = header.segment() == expected && self.data.next() - expected == 1 && self.data.is_in_order();
        // If gaps are skipped, no sender waits for the report of a gap.
        let marked = packet.ecn() == Ecn::Marked;
        let may_wait = (in_order || self.data.passes_over()) && !header.has(flag::FIN) && !marked;
        if let Some(adaptive) = &mut delay.adaptive {
            let came = match header.segment().cmp(&expected) {
                Ordering::Less => Came::Again,
                Ordering::Equal => Came::Next,
                Ordering::Greater => Came::Beyond,
            };
            adaptive.on_data(now, came, marked, self.window);
            if rises {
                adaptive.on_room();
            }
            delay.longest = adaptive.delay();
        }
        if delay.held == 0 {
            delay.timestamp = header.timestamp();
            delay.deadline = now + delay.longest;
        }
        delay.held += 1;
        delay.packet_number = header.packet_number();
        let waits = match &delay.adaptive {
            Some(adaptive) => adaptive.may_wait(delay.held) && !header.has(flag::CWR),
            None => delay.quick == 0 && delay.held < delay.every,
        };
        if may_wait && waits {
            return None;
        }
        delay.quick = delay.quick.saturating_sub(1);
        if let Some(adaptive) = &mut delay.adaptive {
            adaptive.on_ack();
        }
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
        if let Some(adaptive) = &mut delay.adaptive {
            adaptive.on_expiry();
            adaptive.on_ack();
        }
        let &mut Delay { packet_number, timestamp, .. } = delay;
        rare.answer = Some(Answer { syn_options: None, packet_number, timestamp, delta: 0, duplicate: NO_DUPLICATE });
    }
}
