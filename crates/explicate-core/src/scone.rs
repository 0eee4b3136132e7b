//! SCONE between the ends of a simulated flow and the elements on its path: routers advise a rate, and flows keep to it.
//!
//! Source: draft-ietf-scone-protocol-07 ([`wire::scone`](crate::wire::scone) has its rates and its packet).
//!
//! - A sender whose flow follows advice puts a SCONE packet before a data packet, at the start and from time to time
//!   (`scone/following.rs`).
//! - An [`Element`] at a port lowers the advice of these packets to its own ([`element`]).
//! - The receiver returns the lowest advice of a monitoring period in its acknowledgements.
//! - The sender paces at most at that rate. Its congestion controller remains: advice is no congestion control.
//!
//! In memory a packet has room for the signal where it has no congestion header: the first byte of the absent header
//! is 1 + signal, and 0 without a SCONE packet. So flows of explicit protocols cannot follow advice; their routers give
//! them a rate anyway.
//!
//! Deviations from the draft:
//! 1. The 15 bytes of a SCONE packet are not counted: at one packet in some seconds they are less than 0.01 % of a
//!    flow of 1 Mbit/s.
//! 2. An element lowers each SCONE packet that needs it. The draft has elements alter a few in a period; senders here
//!    send no more than that.
//! 3. Senders draw no random delays.

pub mod element;
mod flows;
pub(crate) mod following;

pub use self::element::{Advises, Element};

use crate::wire::Congestion;
use crate::wire::scone::Advice;

impl Congestion {
    /// The advice of the SCONE packet before a data packet, or what an acknowledgement returns; `None` without one, and
    /// for packets with a congestion header.
    #[inline]
    pub fn advice(&self) -> Option<Advice> {
        if self.is_present() { None } else { Advice::from_index(self.0[0].wrapping_sub(1)) }
    }
    /// Sets it, unless there is a congestion header.
    #[inline]
    pub fn set_advice(&mut self, advice: Advice) {
        if !self.is_present() {
            self.0[0] = 1 + advice.index();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{self, MOST_HEADERS};
    use crate::wire::{Format, Packet, SackRanges, TRANSPORT_LEN};

    /// Every signal comes back; the header stays absent, also between hosts, where nothing of it is sent.
    #[test]
    fn a_signal_takes_no_room() {
        let mut header = Congestion::NONE;
        assert_eq!(header.advice(), None);
        for index in 0..=127 {
            let advice = Advice::from_index(index).unwrap();
            header.set_advice(advice);
            assert_eq!((header.advice(), header.is_present()), (Some(advice), false));
        }
        let packet = Packet { congestion: header, ..Packet::EMPTY };
        let written = datagram::write(&packet, &SackRanges::NONE, &mut [0; MOST_HEADERS]);
        assert_eq!(written, TRANSPORT_LEN);

        let mut explicit = Congestion::new(Format::STANDARD);
        let before = explicit;
        explicit.set_advice(Advice::NONE);
        assert_eq!((explicit, explicit.advice()), (before, None), "a congestion header has no room");
    }
}
