//! What several disciplines share: the limit, the choice of marking, and a first-in first-out queue.

use alloc::collections::VecDeque;

use crate::api::Probe;
use crate::params::{Param, Unit, Values};
use crate::qdisc::{ActiveQueue, DropCause, Gone, Queued, Verdict};
use crate::units::Time;
use crate::wire::{Ecn, Packet};

/// Most that may wait, the packet in service not counted.
pub const LIMIT: Param =
    Param::new("limit", Unit::QueueLength, f64::INFINITY, "ns-2 manual, queue objects", "Most that may wait.");
/// What the limit counts.
pub const COUNT: Param = Param::new(
    "count",
    Unit::Choice(&["bytes", "packets"]),
    0.0,
    "ns-2 manual, queue objects",
    "What the limit counts; `packets` if the limit is written in `pkt`.",
);
/// Whether ECN-capable packets are marked.
pub const MARK: Param =
    Param::new("mark", Unit::Flag, 1.0, "RFC 3168", "ECN-capable packets are marked instead of dropped.");

/// A limit, in what [`COUNT`] says.
#[derive(Clone, Copy)]
pub struct Room {
    bytes: u64,
    packets: u32,
}

impl Room {
    /// The room that the values of [`LIMIT`] and [`COUNT`] give.
    pub fn new(values: &Values, mean_packet: f64) -> Room {
        let limit = values.get(&[LIMIT], LIMIT.name);
        if values.get(&[COUNT], COUNT.name) == 1.0 {
            Room { bytes: u64::MAX, packets: (limit / mean_packet + 0.5) as u32 }
        } else {
            Room { bytes: limit as u64, packets: u32::MAX }
        }
    }
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

/// What becomes of a packet that is chosen to tell its sender: a mark if that is wanted and it can bear one.
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
    fn enqueue(&mut self, queued: Queued, _packet: &Packet, _gone: &mut Gone) {
        self.push(queued);
    }
    fn dequeue(&mut self, _now: Time, _gone: &mut Gone) -> Option<(Queued, bool)> {
        self.pop().map(|first| (first, false))
    }
    fn probe(&self, _put: Probe<'_>) {}
}
