//! The queue of a port, as routers and queue disciplines see it.

use std::collections::VecDeque;

use explicate_core::api::PortView;
use explicate_core::units::Time;
use explicate_core::wire::Packet;

/// A line of 10 Mbit/s with a queue, as a port keeps it.
pub struct Queue {
    /// Packets that wait, the next one first.
    pub waiting: VecDeque<Packet>,
    /// The packet that the line carries.
    pub serving: Option<Packet>,
    /// When the line became idle.
    pub free_since: Time,
}

/// Capacity of the line, bytes/s.
pub const CAPACITY: f64 = 1.25e6;

impl Queue {
    /// An empty queue.
    #[expect(clippy::new_without_default, reason = "a queue has a line and a time")]
    pub fn new() -> Queue {
        Queue { waiting: VecDeque::new(), serving: None, free_since: Time::ZERO }
    }
    /// What a router or a discipline sees of it.
    pub fn view(&self) -> PortView {
        PortView {
            capacity: CAPACITY,
            backlog_bytes: self.waiting.iter().map(|p| p.ip_len as u64).sum(),
            backlog_packets: self.waiting.len() as u32,
            busy: self.serving.is_some(),
        }
    }
    /// A packet joins.
    pub fn join(&mut self, packet: Packet) {
        if self.serving.is_none() {
            self.serving = Some(packet);
        } else {
            self.waiting.push_back(packet);
        }
    }
    /// The packet whose last bit leaves, and the view at that instant: the packets that wait, including the next one.
    pub fn leave(&mut self, now: Time) -> Option<(Packet, PortView)> {
        let packet = self.serving.take()?;
        let view = PortView { busy: true, ..self.view() };
        self.serving = self.waiting.pop_front();
        if self.serving.is_none() {
            self.free_since = now;
        }
        Some((packet, view))
    }
}
