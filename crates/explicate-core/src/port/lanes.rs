//! Several classes behind one line, by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): the packet that goes
//! next is known only when the line falls free.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Class;
use crate::protocol::PortView;
use crate::units::Time;
use crate::wire::Packet;

/// A class that waits for the scheduler.
pub(super) struct Lane {
    pub(super) class: Class,
    queue: VecDeque<(u32, u16)>,
    bytes: u64,
    /// Bytes added per round.
    quantum: u32,
    deficit: u32,
}

/// The packet in service: its handle, length, lane, and when it departs.
#[derive(Clone, Copy)]
pub(super) struct Serving {
    pub(super) handle: u32,
    pub(super) bytes: u16,
    pub(super) lane: usize,
    pub(super) departs: Time,
}

/// The scheduler.
pub(super) struct Lanes {
    pub(super) lanes: Vec<Lane>,
    classify: fn(&Packet) -> usize,
    turn: usize,
    pub(super) serving: Option<Serving>,
    /// Departed, not yet polled.
    pub(super) sent: VecDeque<(u32, Time)>,
    /// Not a line sends the packets but a medium takes them, see `pulled.rs`.
    pub(super) pulled: bool,
}

impl Lanes {
    pub(super) fn new(classes: Vec<(Class, u32)>, classify: fn(&Packet) -> usize) -> Lanes {
        let lane = |(class, weight): (Class, u32)| Lane {
            class,
            queue: VecDeque::new(),
            bytes: 0,
            quantum: 1500 * weight.max(1),
            deficit: 0,
        };
        Lanes {
            lanes: classes.into_iter().map(lane).collect(),
            classify,
            turn: 0,
            serving: None,
            sent: VecDeque::new(),
            pulled: false,
        }
    }
    pub(super) fn lane_of(&self, packet: &Packet) -> usize {
        (self.classify)(packet).min(self.lanes.len() - 1)
    }
    /// What a lane's controller and discipline see.
    pub(super) fn view(&self, lane: usize, capacity: f64) -> PortView {
        let lane = &self.lanes[lane];
        PortView {
            capacity,
            backlog_bytes: lane.bytes,
            backlog_packets: lane.queue.len() as u32,
            busy: self.serving.is_some(),
        }
    }
    /// Packets and bytes that wait in all lanes.
    pub(super) fn waiting(&self) -> (u32, u64) {
        (self.lanes.iter().map(|l| l.queue.len() as u32).sum(), self.lanes.iter().map(|l| l.bytes).sum())
    }
    /// Handles of all packets in the port.
    pub(super) fn handles(&self) -> impl Iterator<Item = u32> {
        let waiting = self.lanes.iter().flat_map(|l| l.queue.iter().map(|(handle, _)| *handle));
        waiting.chain(self.serving.iter().map(|s| s.handle))
    }
    /// Packets in the port.
    pub(super) fn len(&self) -> usize {
        self.waiting().0 as usize + self.serving.is_some() as usize + self.sent.len()
    }
    pub(super) fn push(&mut self, lane: usize, handle: u32, bytes: u16) {
        self.lanes[lane].queue.push_back((handle, bytes));
        self.lanes[lane].bytes += bytes as u64;
    }
    /// The next packet to serve: handle, bytes, lane. The lane whose turn it is sends while its deficit lasts.
    pub(super) fn pick(&mut self) -> Option<(u32, u16, usize)> {
        if self.lanes.iter().all(|l| l.queue.is_empty()) {
            return None;
        }
        loop {
            let lane = &mut self.lanes[self.turn];
            if let Some(&(handle, bytes)) = lane.queue.front()
                && lane.deficit >= bytes as u32
            {
                lane.queue.pop_front();
                lane.bytes -= bytes as u64;
                lane.deficit -= bytes as u32;
                return Some((handle, bytes, self.turn));
            }
            if lane.queue.is_empty() {
                lane.deficit = 0;
            }
            self.turn = (self.turn + 1) % self.lanes.len();
            let next = &mut self.lanes[self.turn];
            if !next.queue.is_empty() {
                next.deficit += next.quantum;
            }
        }
    }
}
