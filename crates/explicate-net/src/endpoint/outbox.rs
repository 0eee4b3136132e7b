//! Queue of outgoing datagrams, sent many per call.

use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::wire::{IP_UDP_LEN, Packet, SackRanges};

use super::LONGEST;
use crate::sys::{self, BATCH, Outgoing};

/// Datagrams to be sent by the next call.
pub struct Outbox {
    bytes: Vec<u8>,
    waiting: Vec<(usize, SocketAddrV4, u8)>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox { bytes: vec![0; LONGEST * BATCH], waiting: Vec::with_capacity(BATCH) }
    }
}

impl Outbox {
    /// Whether [`Outbox::flush`] has to be called before the next datagram.
    pub fn is_full(&self) -> bool {
        self.waiting.len() == BATCH
    }
    /// Adds a packet with this many bytes of payload, zeros, as far as they fit. If the queue is full, the packet is dropped, as by
    /// a network.
    pub fn push(&mut self, to: SocketAddrV4, packet: &Packet, sack: &SackRanges, payload: usize) {
        if self.is_full() {
            return;
        }
        let slot = &mut self.bytes[self.waiting.len() * LONGEST..][..LONGEST - IP_UDP_LEN];
        let Some(headers) = slot.first_chunk_mut::<MOST_HEADERS>() else { return }; // never: `LONGEST` is longer
        let length = datagram::write(packet, sack, headers);
        let total = (length + payload).min(slot.len());
        slot[length..total].fill(0);
        self.waiting.push((total, to, packet.tos));
    }
    /// Sends all queued datagrams.
    pub fn flush(&mut self, socket: BorrowedFd<'_>) {
        let mut first = 0;
        while first < self.waiting.len() {
            let buffers = self.bytes[first * LONGEST..].chunks_exact(LONGEST);
            let messages = self.waiting[first..].iter().zip(buffers);
            let messages =
                messages.map(|(&(length, to, tos), bytes)| Outgoing { bytes: &bytes[..length], to: Some((to, tos)) });
            match sys::send(socket, messages) {
                Ok(taken) => first += taken.max(1),
                Err(error) => {
                    // The network may drop packets, and this is its first hop.
                    tracing::debug!(%error, "cannot send");
                    first += 1;
                }
            }
        }
        self.waiting.clear();
    }
}
