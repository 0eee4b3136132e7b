//! What is in flight, and what of it is lost: C.lost, P.tx_in_flight and P.lost (section 4.1.2).
//!
//! The recovery says how much is in flight, and acknowledgements what arrived: the rest is lost. An acknowledgement
//! echoes the number of a packet. Packets before it that it does not account for are missing, and the first of these
//! are lost first.

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
    /// Packets that others have overtaken, in the order of departure.
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

    /// An acknowledgement, with the notes of the packets up to the one that it echoes: returns that packet's, if it is
    /// known.
    pub(super) fn pass(&mut self, ack: &Ack<'_>, mut notes: impl ExactSizeIterator<Item = Note>) -> Option<Note> {
        // Besides the packet that it echoes.
        let mut others = ack.newly_acked.saturating_sub(1) as usize;
        let Some(before) = notes.len().checked_sub(1) else {
            self.find(ack.newly_acked as usize);
            return None;
        };
        if before > others {
            // Where acknowledgements are delayed, the packets just before came with it.
            self.missing.extend(notes.by_ref().take(before - others));
        }
        others = others.saturating_sub(before);
        if others > 0 {
            self.find(others);
        }
        self.newest = notes.last()?;
        Some(self.newest)
    }
    /// Missing packets arrived after all.
    fn find(&mut self, packets: usize) {
        self.missing.drain(..packets.min(self.missing.len()));
    }

    /// Segments newly known to be lost, of which `arrived` arrived: call after [`Flight::pass`].
    pub(super) fn losses(&mut self, ack: &Ack<'_>, arrived: u64) -> u32 {
        let gone = self.in_flight.saturating_sub(ack.in_flight.saturating_add(arrived as u32));
        let losses = if ack.selective { gone + self.found } else { self.episodes };
        (self.in_flight, self.found, self.episodes) = (ack.in_flight, 0, 0);
        if !self.missing.is_empty() {
            let outstanding = ack.highest_sent.saturating_sub(ack.cumulative) as usize;
            self.find(self.missing.len().saturating_sub(outstanding));
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

    /// A packet is lost: its note, or that of the last one that arrived.
    pub(super) fn lose(&mut self) -> Note {
        self.lost = self.lost.wrapping_add(1);
        self.missing.pop_front().unwrap_or(self.newest)
    }
    /// RS.lost: segments lost since a packet left. What a timer seemed to find before may be none.
    pub(super) fn lost_since(&self, packet: &Note) -> f64 {
        (self.lost.wrapping_sub(packet.lost) as i32).max(0) as f64
    }
}
