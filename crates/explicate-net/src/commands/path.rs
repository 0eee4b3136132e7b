//! Path MTU discovery during a transfer.
//!
//! A flow numbers its segments by full payloads, so its packets keep their length. If the path MTU is smaller, from
//! the start or later, another flow with shorter packets replaces it and resumes after the data that the receiver
//! has. The first flow does not wait for the search: on most paths, which carry full packets, the search costs two
//! packets and no time.

use std::net::SocketAddrV4;
use std::thread::{self, JoinHandle};

use explicate_core::units::Time;

use crate::endpoint::Endpoint;
use crate::endpoint::auth::{Key, random};
use crate::endpoint::probe::Prober;
use crate::sys;

/// A search ends after this time without an answer.
const TIMEOUT: Time = Time::secs(10);
/// Interval at which the end of a search is polled.
pub(super) const LOOK: Time = Time::millis(20);
/// Consecutive retransmission timeouts after which the path may be dropping long packets.
const SUSPECT: u32 = 2;
/// Pause between two searches.
const PAUSE: Time = Time::secs(1);

/// Searches, one after the other, each in a thread of its own.
pub(super) struct Path {
    peer: SocketAddrV4,
    key: Option<Key>,
    /// IP length of the packets now.
    packet: u16,
    search: Option<JoinHandle<Option<u16>>>,
    /// No search before this.
    next: Time,
    /// Datagrams that the system has refused as too long.
    refused: u64,
    /// Segments that had been sent when the search began.
    sent: u64,
}

impl Path {
    /// Begins with a search for packets of this length.
    pub(super) fn new(peer: SocketAddrV4, key: Option<Key>, packet: u16) -> Path {
        let mut path = Path { peer, key, packet, search: None, next: Time::ZERO, refused: 0, sent: 0 };
        path.begin();
        path
    }
    fn begin(&mut self) {
        let (peer, key, packet) = (self.peer, self.key.clone(), self.packet);
        // Without a thread the flow continues unchanged.
        self.search = thread::Builder::new().name("path".into()).spawn(move || search(peer, key, packet)).ok();
    }
    /// Whether segments that were first sent during the search have arrived: it lost its probes to a full queue.
    fn carries(&self, endpoint: &Endpoint) -> bool {
        endpoint.sending.values().map(|f| f.flow.acked() as u64).sum::<u64>() > self.sent
    }
    /// Whether a search is running.
    pub(super) fn searches(&self) -> bool {
        self.search.is_some()
    }
    /// A shorter packet length, if a search has found that the path does not carry the current one.
    pub(super) fn shorter(&mut self, now: Time, endpoint: &Endpoint) -> Option<u16> {
        if self.search.as_ref().is_some_and(JoinHandle::is_finished) {
            let found = self.search.take().and_then(|thread| thread.join().ok()).flatten();
            self.next = now + PAUSE;
            if let Some(length) = found.filter(|length| *length < self.packet && !self.carries(endpoint)) {
                (self.packet, self.refused) = (length, endpoint.too_long());
                return Some(length);
            }
        }
        let refused = endpoint.too_long() > self.refused;
        let stalled = || endpoint.sending.values().any(|f| !f.is_over() && f.flow.timeouts_in_a_row() >= SUSPECT);
        if self.search.is_none() && now >= self.next && (refused || stalled()) {
            self.refused = endpoint.too_long();
            self.sent = endpoint.sending.values().map(|f| f.flow.stats()).map(|s| s.sent - s.retransmissions).sum();
            self.begin();
        }
        None
    }
}

/// The path MTU up to this length, if probes are answered.
fn search(peer: SocketAddrV4, key: Option<Key>, packet: u16) -> Option<u16> {
    let open = || Prober::open(peer, u64::from_be_bytes(random()?), key);
    let found = open().and_then(|mut prober| prober.path_mtu(packet, TIMEOUT, &sys::stopped));
    found.inspect_err(|error| tracing::info!(%error, "cannot measure the path MTU")).ok().flatten()
}
