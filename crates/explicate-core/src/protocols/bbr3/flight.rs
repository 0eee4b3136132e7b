//! What is in flight, and what of it is lost: C.lost, P.tx_in_flight and P.lost (section 4.1.2).
//!
//! The recovery says how many segments are in flight. If that number falls by more than arrived, the rest is lost.
//! Which packets are lost follows from the numbers that acknowledgements echo: a packet is missing when a later one
//! is echoed before it. Of the missing packets those that left first count as lost first.

use alloc::collections::VecDeque;

use crate::api::{Ack, Sent};

/// What is noted with a packet that leaves.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Note {
    /// P.tx_in_flight, segments, with the packet.
    pub(super) in_flight: u32,
    /// P.lost, segments modulo 2^32.
    lost: u32,
    /// P.is_app_limited.
    pub(super) limited: bool,
}

/// Segments in flight and lost.
#[derive(Default)]
pub(super) struct Flight {
    /// After the last event.
    in_flight: u32,
    /// C.lost, modulo 2^32.
    lost: u32,
    /// Losses that timers found, and episodes, since the last acknowledgement.
    found: u32,
    episodes: u32,
    /// Packets without an answer although a later one has been echoed, in the order of departure.
    missing: VecDeque<Note>,
    /// The packet that arrived last.
    newest: Note,
}

impl Flight {
    /// A packet leaves; `limited` if samples are limited by the application already.
    pub(super) fn on_send(&mut self, sent: &Sent, limited: bool) -> Note {
        self.found += self.in_flight.saturating_sub(sent.in_flight);
        self.in_flight = sent.in_flight.saturating_add(1);
        let lost = self.lost.wrapping_add(self.found);
        Note { in_flight: self.in_flight, lost, limited: limited | !sent.backlogged }
    }

    /// This acknowledgement echoes a later packet than the one with this note, which had no answer, nor had the
    /// `others` that left between the two.
    pub(super) fn overtake(&mut self, ack: &Ack<'_>, note: Note, others: u32) {
        // Where acknowledgements are delayed, one also covers the packets just before the one that it echoes.
        if others >= ack.newly_acked.saturating_sub(1) {
            self.missing.push_back(note);
        }
    }
    /// An acknowledgement echoes the packet with this note, if it is known, and overtakes this number of packets.
    /// Call after [`Flight::overtake`] for each of them.
    pub(super) fn pass(&mut self, ack: &Ack<'_>, echoed: Option<&Note>, overtaken: u32) {
        let known = match echoed {
            Some(note) => {
                self.newest = *note;
                overtaken + 1
            }
            None => 0,
        };
        if ack.newly_acked > known {
            self.find((ack.newly_acked - known) as usize);
        }
    }
    /// This number of missing packets arrived after all.
    #[cold]
    #[inline(never)]
    fn find(&mut self, packets: usize) {
        self.missing.drain(..packets.min(self.missing.len()));
    }

    /// The number of segments that this acknowledgement shows to be lost; `arrived` others arrived. Call after
    /// [`Flight::pass`].
    pub(super) fn losses(&mut self, ack: &Ack<'_>, arrived: u32) -> u32 {
        let gone = self.in_flight.saturating_sub(ack.in_flight.saturating_add(arrived));
        let losses = if ack.selective { gone + self.found } else { self.episodes };
        (self.in_flight, self.found, self.episodes) = (ack.in_flight, 0, 0);
        if !self.missing.is_empty() {
            let outstanding = ack.highest_sent.saturating_sub(ack.cumulative) as usize;
            if self.missing.len() > outstanding {
                self.find(self.missing.len() - outstanding);
            }
        }
        losses
    }

    /// The recovery reports an episode.
    pub(super) fn on_episode(&mut self) {
        self.episodes += 1;
    }
    /// The retransmission timer expired: all in flight is lost.
    pub(super) fn on_timeout(&mut self) -> u32 {
        let lost = self.in_flight + self.found;
        (self.in_flight, self.found) = (0, 0);
        lost
    }

    /// A packet is lost. Returns its note, or that of the packet that arrived last if none is missing.
    pub(super) fn lose(&mut self) -> Note {
        self.lost = self.lost.wrapping_add(1);
        self.missing.pop_front().unwrap_or(self.newest)
    }
    /// RS.lost of the packet that arrived last.
    pub(super) fn lost_since_newest(&self) -> f64 {
        self.lost_since(&self.newest)
    }
    /// RS.lost: segments lost since a packet left. A loss that a timer had found before it left may turn out to be
    /// none, so the difference may be negative; it counts as none then.
    pub(super) fn lost_since(&self, packet: &Note) -> f64 {
        (self.lost.wrapping_sub(packet.lost) as i32).max(0) as f64
    }
}
