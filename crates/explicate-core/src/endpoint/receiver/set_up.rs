//! Negotiation when a flow opens.

use super::{ReceiverEndpoint, Returns};
use crate::endpoint::header_bytes;
use crate::units::Time;
use crate::wire::{Transport, flag, option};

/// Properties of a flow that are known before it opens, one bit each because there are many flows.
#[derive(Clone, Copy)]
pub(super) struct Terms(u8);

impl Terms {
    /// A protocol without explicit feedback that has a receiver.
    pub(super) const WITHOUT_HEADER: u8 = 1;
    /// The protocol has a congestion header.
    pub(super) const HEADER: u8 = 2;
    /// Explicit feedback is refused.
    pub(super) const REFUSES: u8 = 4;

    pub(super) fn new(without_header: bool, header: bool, refuses: bool) -> Terms {
        let bit = |yes: bool, bit| if yes { bit } else { 0 };
        Terms(bit(without_header, Terms::WITHOUT_HEADER) | bit(header, Terms::HEADER) | bit(refuses, Terms::REFUSES))
    }
    pub(super) fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl ReceiverEndpoint {
    /// Ignores everything before a SYN. The receiver of a simulated flow needs no such check: nothing is sent to it
    /// earlier.
    #[must_use]
    pub fn listening(mut self) -> ReceiverEndpoint {
        self.id = !self.id;
        self
    }

    /// Whether this is the SYN that a listening end waits for.
    #[cold]
    pub(super) fn opens(&mut self, header: &Transport) -> bool {
        let opens = header.has(flag::SYN) && !header.has(flag::ACK) && header.flow() == !self.id;
        if opens {
            self.id = header.flow();
        }
        opens
    }

    #[cold]
    pub(super) fn grant(&mut self, now: Time, mut options: u8) -> u8 {
        if let Some(room) = self.rare.as_mut().and_then(|rare| rare.room.as_mut()) {
            room.open(now);
        }
        if self.terms.has(Terms::REFUSES) {
            options &= !option::EXPLICIT;
        }
        let explicit = options & option::EXPLICIT != 0;
        self.writes_feedback = explicit || self.terms.has(Terms::WITHOUT_HEADER);
        self.header = explicit && self.terms.has(Terms::HEADER);
        self.echoes_feedback = self.writes_feedback && self.returns == Returns::Delta;
        self.answer = header_bytes(self.header) as u8;
        self.sack = options & option::SACK != 0;
        self.dsack = self.sack && options & option::DSACK != 0 && options & option::UNRELIABLE == 0;
        if let Some(receiver) = self.rare.as_mut().and_then(|rare| rare.receiver.as_mut()) {
            receiver.on_open(options & option::MARKS != 0);
        }
        if options & option::UNRELIABLE != 0 {
            self.data.pass_over_holes();
        }
        options
    }
}
