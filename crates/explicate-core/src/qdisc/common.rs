//! The common parts of several disciplines: the limit, early marks, and a FIFO queue.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use crate::api::Probe;
use crate::params::{Conflict, QueueLength, choices, parameters};
use crate::qdisc::{ActiveQueue, DropCause, Dropped, Queued, ResolvedQueue, Verdict};
use crate::units::Time;
use crate::wire::{Ecn, Packet};

choices! {
    /// The unit of queue lengths.
    pub enum Count { Bytes = "bytes", Packets = "packets" }
}

parameters! {
    /// The limit of a queue.
    pub struct Limit {
        /// Maximum queue length.
        limit: QueueLength = f64::INFINITY, "ns-2 manual, queue objects";
        /// What the limit counts; `packets` if the limit is written in `pkt`.
        count: Count = Count::Bytes, "ns-2 manual, queue objects";
    }
}

impl Limit {
    /// Whether packets are counted.
    pub fn in_packets(&self) -> bool {
        self.count == Count::Packets
    }
    /// This limit in bytes or packets, without the packet in service; `mean_packet` is in bytes.
    pub fn queue_limit(&self, mean_packet: f64) -> QueueLimit {
        match self.count {
            Count::Bytes => QueueLimit { bytes: self.limit as u64, packets: u32::MAX },
            Count::Packets => QueueLimit { bytes: u64::MAX, packets: (self.limit / mean_packet + 0.5) as u32 },
        }
    }
}

/// A length of a queue in packets, for messages.
pub fn in_packets(bytes: f64, mean_packet: f64) -> String {
    let packets = bytes / mean_packet;
    if packets >= 10.0 { format!("{packets:.0} packets") } else { format!("{packets:.1} packets") }
}

/// A `target` of the queue, in bytes as the `limit`, that the queue cannot reach: the discipline never acts.
pub fn target_beyond_limit(target: f64, limit: f64, queue: &ResolvedQueue<'_>) -> Option<Conflict> {
    let packets = |bytes| in_packets(bytes, queue.mean_packet);
    (target >= limit).then(|| {
        let what = format!(
            "its target ({}) is not below its limit ({}), so it is full before it acts, as drop-tail is",
            packets(target),
            packets(limit)
        );
        let half = limit / 2.0;
        let write = format!("write a `target` of half the limit, such as \"{half:.0}B\", or a longer `limit`");
        Conflict::new(["target", "limit"], what, write)
    })
}

/// A parameter with a value of its own that has no effect because of another one.
pub fn unused(
    queue: &ResolvedQueue<'_>,
    param: &'static str,
    other: &'static str,
    why: &str,
    write: &str,
) -> Option<Conflict> {
    queue.values.number(param)?;
    Some(Conflict::new([param, other], format!("`{param}` has no effect {why}"), write))
}

/// Maximum number of bytes or packets that may wait.
#[derive(Clone, Copy)]
pub struct QueueLimit {
    bytes: u64,
    packets: u32,
}

impl QueueLimit {
    /// Whether this many bytes and packets may wait.
    #[inline]
    pub fn holds(&self, (bytes, packets): (u64, u32)) -> bool {
        bytes <= self.bytes && packets <= self.packets
    }
    /// Whether a packet of `length` bytes fits behind what waits.
    #[inline]
    pub fn fits(&self, (bytes, packets): (u64, u32), length: u16) -> bool {
        bytes + length as u64 <= self.bytes && packets < self.packets
    }
}

/// The verdict for a packet that is selected as a congestion signal: a mark if enabled and the packet is ECN-capable,
/// otherwise a drop.
pub fn early(mark: bool, packet: &Packet) -> Verdict {
    if mark && packet.ecn() != Ecn::NotCapable { Verdict::Mark } else { Verdict::Drop(DropCause::Early) }
}

/// First in, first out, without a limit.
#[derive(Default)]
pub struct Fifo {
    waiting: VecDeque<Queued>,
    bytes: u64,
}

impl Fifo {
    /// Adds a packet at the tail.
    pub fn push(&mut self, queued: Queued) {
        self.bytes += queued.bytes as u64;
        self.waiting.push_back(queued);
    }
    /// Takes the packet at the head.
    pub fn pop(&mut self) -> Option<Queued> {
        let first = self.waiting.pop_front()?;
        self.bytes -= first.bytes as u64;
        Some(first)
    }
    /// The packet at the head.
    pub fn head(&self) -> Option<&Queued> {
        self.waiting.front()
    }
    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Packets that wait.
    pub fn packets(&self) -> u32 {
        self.waiting.len() as u32
    }
}

impl ActiveQueue for Fifo {
    fn enqueue(&mut self, queued: Queued, _packet: &Packet, _gone: &mut Dropped) {
        self.push(queued);
    }
    fn dequeue(&mut self, _now: Time, _gone: &mut Dropped) -> Option<(Queued, bool)> {
        self.pop().map(|first| (first, false))
    }
    fn probe(&self, _put: Probe<'_>) {}
}
