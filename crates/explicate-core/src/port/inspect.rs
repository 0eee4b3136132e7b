//! Inspection of a port: its contents, its counters, and the variables of its controllers and disciplines.

use super::line::Line;
use super::{Mode, Port, stats};
use crate::api::Probe;
use crate::units::Time;

impl Port {
    /// Address and length in memory of the controller, for a driver that prefetches it.
    #[inline]
    pub fn kept_apart(&self) -> Option<(*const u8, usize)> {
        self.control.router.as_deref().map(|router| (core::ptr::from_ref(router).cast(), size_of_val(router)))
    }

    /// The measured span begins. Catch up first.
    pub fn start_measuring(&mut self, now: Time) {
        let (bytes, packets) = self.backlog();
        self.stats.start_measuring(now, packets, bytes);
    }
    /// The queue from `start`, when the measured span began, until now. Catch up first.
    pub fn queue(&mut self, start: Time, now: Time) -> stats::QueueSummary {
        let (bytes, packets) = self.backlog();
        self.stats.queue(start, now, packets, bytes)
    }
    /// Whether the line has one rate all the time, and is not a shared medium.
    pub fn has_constant_rate(&self) -> bool {
        matches!(self.line, Line::Constant { .. }) && self.mode != Mode::OnMedium
    }
    /// Whether a discipline limits the queue.
    pub fn has_qdisc(&self) -> bool {
        self.control.qdisc.is_some() || self.scheduler.as_deref().is_some_and(|l| l.limited())
    }
    /// Bytes that the line offers in `(from, to]`.
    pub fn offered(&self, from: Time, to: Time) -> f64 {
        self.line.offered(from, to)
    }
    /// Whether the capacity for controllers is measured.
    pub fn is_measured(&self) -> bool {
        self.impairments.as_deref().is_some_and(|s| s.measured.is_some())
    }
    /// Packets in the port, waiting or in service.
    pub fn len(&self) -> usize {
        if self.is_reference() {
            return self.reference().map_or(0, |reference| reference.len());
        }
        self.ring.len() as usize + self.scheduler.as_deref().map_or(0, |l| l.len())
    }
    /// Whether no packet is in the port.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// IP bytes that have arrived so far. Dropped packets count with the mean length of sent packets. Catch up first.
    pub fn arrived_bytes(&self) -> f64 {
        let inside: u64 = self.ring.iter().map(|w| w.bytes as u64).sum();
        let inside = inside + self.reference().map_or(0, |reference| reference.bytes());
        let waiting = self.scheduler.as_deref().map_or(0, |scheduler| scheduler.waiting.bytes);
        let dropped = self.stats.total().overflow + self.stats.total().early;
        let sent = self.stats.arrived.saturating_sub(dropped + self.len() as u64).max(1);
        (self.stats.bytes + inside + waiting) as f64 + dropped as f64 * (self.stats.bytes as f64 / sent as f64)
    }
    /// Packets that the channel will lose and that have not departed.
    pub fn losses_ahead(&self) -> usize {
        self.ring.iter().filter(|w| w.lost).count()
    }
    /// Bytes and packets that wait, without the packet in service. Catch up first.
    pub fn backlog(&self) -> (u64, u32) {
        match self.scheduler.as_deref() {
            Some(scheduler) => (scheduler.waiting.bytes, scheduler.waiting.packets),
            None => (self.view.backlog_bytes, self.view.backlog_packets),
        }
    }

    /// The rate that flows at this port share evenly, bytes/s: the capacity where two classes
    /// [divide](Port::divide_by_flows) the line by numbers of flows, otherwise what the one controller
    /// [divides](crate::api::Router::shared). `None` if nothing divides it. Catch up first.
    pub fn shared(&self) -> Option<f64> {
        let (class, view) = match self.scheduler.as_deref() {
            None => (&self.control, self.view),
            Some(scheduler) if scheduler.division.is_some() => return Some(self.view.capacity),
            Some(scheduler) if scheduler.classes.len() == 1 => {
                (&scheduler.classes[0].control, scheduler.view(0, self.view.capacity))
            }
            Some(_) => return None,
        };
        class.router.as_deref()?.shared(&view)
    }

    /// Number of classes with queues of their own.
    pub fn classes(&self) -> usize {
        self.scheduler.as_deref().map_or(1, |l| l.classes.len())
    }
    /// Reports the variables of one of several classes: its queue, its controller's and its discipline's. Catch up
    /// first.
    pub fn probe_class(&self, class: usize, put: Probe<'_>) {
        let Some(scheduler) = self.scheduler.as_deref() else { return };
        let view = scheduler.view(class, self.view.capacity);
        put("queue_packets", view.backlog_packets as f64);
        put("queue_bytes", view.backlog_bytes as f64);
        put("share", view.capacity / self.view.capacity);
        scheduler.probe(class, put);
    }
    /// Reports the port's variables: its queue, and with a single class its controller's and its discipline's. Catch
    /// up first.
    pub fn probe(&self, put: Probe<'_>) {
        let (bytes, packets) = self.backlog();
        put("queue_packets", packets as f64);
        put("queue_bytes", bytes as f64);
        if let Some(measured) = self.impairments.as_deref().and_then(|s| s.measured.as_ref()) {
            measured.probe(put);
        }
        self.control.probe(put);
        if let Some(scheduler) = self.scheduler.as_deref().filter(|l| l.classes.len() == 1) {
            scheduler.probe(0, put);
        }
    }
}
