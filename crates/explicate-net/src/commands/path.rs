//! What the path of a transfer carries, looked for beside it.
//!
//! A flow numbers its segments by full payloads, so its packets keep their length. Where the path turns out to carry less, from
//! the start or from some moment on, another flow with shorter packets takes its place, and begins with what the other end has.
//! The first flow does not wait for the search: on a path that carries all, which most do, it costs two packets and no time.

use std::net::SocketAddrV4;
use std::thread::{self, JoinHandle};

use explicate_core::units::Time;

use crate::endpoint::Endpoint;
use crate::endpoint::auth::{Key, random};
use crate::endpoint::probe::Prober;
use crate::sys;

/// A search ends after so long if no probe is answered.
const PATIENCE: Time = Time::secs(10);
/// While a search is on, its end is looked for so often.
pub(super) const LOOK: Time = Time::millis(20);
/// Retransmission timeouts in a row that make a path suspect of swallowing long packets.
const SUSPECT: u32 = 2;
/// From the end of a search to the next.
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
}

impl Path {
    /// Begins with a search for packets of this length.
    pub(super) fn new(peer: SocketAddrV4, key: Option<Key>, packet: u16) -> Path {
        let mut path = Path { peer, key, packet, search: None, next: Time::ZERO, refused: 0 };
        path.begin();
        path
    }
    fn begin(&mut self) {
        let (peer, key, packet) = (self.peer, self.key.clone(), self.packet);
        // Without a thread the flow goes on as it is.
        self.search = thread::Builder::new().name("path".into()).spawn(move || look(peer, key, packet)).ok();
    }
    /// Whether a search is on.
    pub(super) fn searches(&self) -> bool {
        self.search.is_some()
    }
    /// A length shorter than that of the packets now, if one was found that the path carries while it does not carry theirs.
    pub(super) fn shorter(&mut self, now: Time, endpoint: &Endpoint) -> Option<u16> {
        if self.search.as_ref().is_some_and(JoinHandle::is_finished) {
            let found = self.search.take().and_then(|thread| thread.join().ok()).flatten();
            self.next = now + PAUSE;
            if let Some(length) = found.filter(|length| *length < self.packet) {
                (self.packet, self.refused) = (length, endpoint.too_long());
                return Some(length);
            }
        }
        let refused = endpoint.too_long() > self.refused;
        let stalled = || endpoint.sending.values().any(|f| !f.is_over() && f.flow.timeouts_in_a_row() >= SUSPECT);
        if self.search.is_none() && now >= self.next && (refused || stalled()) {
            self.refused = endpoint.too_long();
            self.begin();
        }
        None
    }
}

/// The longest packet of up to this length that the path carries, if probes are answered.
fn look(peer: SocketAddrV4, key: Option<Key>, packet: u16) -> Option<u16> {
    let open = || Prober::open(peer, u64::from_be_bytes(random()?), key);
    let found = open().and_then(|mut prober| prober.path_mtu(packet, PATIENCE, &sys::stopped));
    found.inspect_err(|error| tracing::info!(%error, "cannot look for what the path carries")).ok().flatten()
}
