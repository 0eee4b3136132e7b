//! The textbook version of a port: a queue before a line, and one event for each departure.
//!
//! Everything happens when it is due, in order of time, and nothing is computed ahead: a packet is admitted when it
//! arrives, and enters service when the line becomes free; controllers, disciplines and channels are called when its
//! last bit leaves. The fast forms of the port must give the same results. `explicate run --engine reference` uses
//! this form.
//!
//! A port with several classes, or one whose discipline selects a packet when the line becomes free, has no fast
//! form: both engines use the class scheduler in `class_scheduler.rs`.
//!
//! On a tie departures come before timers, and both before arrivals.

use alloc::collections::VecDeque;

use super::{Arrival, At, Mode, Note, Port, Store, mark_or_drop};
use crate::api::PortView;
use crate::qdisc::Verdict;
use crate::units::Time;

/// The queue of a reference port.
pub(super) struct Reference {
    /// Packets in the port in order of arrival; the first one is in service.
    queue: VecDeque<Queued>,
    /// When the packet in service departs, or never.
    departs: Time,
    /// When the last packet departed.
    idle_since: Time,
    /// Packets that have departed and were not lost, for [`Port::poll_transmit`].
    sent: VecDeque<(u32, Time)>,
}

/// A packet in the port.
struct Queued {
    handle: u32,
    /// IP length, bytes.
    bytes: u16,
    /// Length on the line with what codings add, bytes.
    wire: u32,
}

impl Reference {
    fn new() -> Reference {
        Reference { queue: VecDeque::new(), departs: Time::NEVER, idle_since: Time::ZERO, sent: VecDeque::new() }
    }
    /// Packets in the port.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.sent.len()
    }
    /// IP bytes of the packets in the port.
    pub(super) fn bytes(&self) -> u64 {
        self.queue.iter().map(|packet| packet.bytes as u64).sum()
    }
}

impl Port {
    /// Its queue, if it is a reference port.
    pub(super) fn reference(&self) -> Option<&Reference> {
        self.impairments.as_ref()?.reference.as_ref()
    }
    fn reference_mut(&mut self) -> Option<&mut Reference> {
        self.impairments.as_mut()?.reference.as_mut()
    }
    /// Makes this port a reference port: a driver calls [`Port::handle_timeout`] at [`Port::poll_timeout`], and then
    /// takes the departed packets from [`Port::poll_transmit`]. Call last, before the first packet. Ports whose
    /// departures are already polled do not change. Returns whether this port changed.
    pub fn use_reference(&mut self) -> bool {
        if self.is_scheduled() {
            return false;
        }
        self.mode = Mode::Reference;
        self.due = Time::NEVER;
        self.impairments.get_or_insert_default().reference = Some(Reference::new());
        true
    }

    /// Whether this is a reference port.
    pub fn is_reference(&self) -> bool {
        self.mode == Mode::Reference
    }

    /// A packet arrives that no channel before the queue has lost.
    #[cold]
    pub(super) fn arrive_at_reference(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        self.run_reference(now, store);
        let packet = store.packet(handle);
        let bytes = packet.ip_len;
        if let Some(router) = &mut self.control.router {
            router.on_arrival(now, packet, &self.view);
        }
        let idle_since = self.reference().filter(|_| !self.view.busy).map(|reference| reference.idle_since);
        let verdict = match &mut self.control.qdisc {
            Some(qdisc) => qdisc.discipline.on_arrival(now, packet, &self.view, idle_since),
            None => Verdict::Accept,
        };
        if verdict != Verdict::Accept {
            let (router, stats) = (&mut self.control.router, &mut self.stats);
            if !mark_or_drop(router, stats, now, At { port: self.number, handle }, verdict, &self.view, store) {
                return Arrival::Dropped;
            }
        }
        let wire = self.wire_bytes(handle, bytes, store);
        if let Some(reference) = self.reference_mut() {
            reference.queue.push_back(Queued { handle, bytes, wire });
        }
        if self.view.busy {
            self.queue_changes(now, bytes, 1);
        } else {
            self.begin_reference_service(now, true);
        }
        Arrival::Queued
    }

    /// Carries out the departures and timers that are due by `now`, in order of time.
    #[cold]
    pub(super) fn run_reference(&mut self, now: Time, store: &mut impl Store) {
        while let Some(reference) = self.reference() {
            let (departs, timer) = (reference.departs, self.reference_timer());
            if departs.min(timer) > now {
                return;
            }
            if departs <= timer {
                self.depart_from_reference(store);
            } else {
                self.run_reference_timers(timer);
            }
        }
    }

    /// When the next departure or timer is due.
    #[cold]
    pub(super) fn reference_due(&self) -> Time {
        let departs = self.reference().map_or(Time::NEVER, |reference| reference.departs);
        departs.min(self.reference_timer())
    }
    /// The next packet that has departed, and when.
    #[cold]
    pub(super) fn poll_reference(&mut self) -> Option<(u32, Time)> {
        self.reference_mut()?.sent.pop_front()
    }

    /// The last bit of the packet in service leaves.
    fn depart_from_reference(&mut self, store: &mut impl Store) {
        let Some(reference) = self.reference_mut() else { return };
        let at = reference.departs;
        let Some(Queued { handle, bytes, wire }) = reference.queue.pop_front() else { return };
        self.stats.departed(at, bytes);
        // The view contains all packets that wait when the last bit leaves, including the packet about to enter
        // service.
        if let Some(router) = &mut self.control.router {
            router.on_departure(at, store.packet(handle), &self.view);
        }
        if let Some(qdisc) = &mut self.control.qdisc {
            qdisc.discipline.on_departure(at, &self.view);
        }
        store.note(at, self.number, handle, Note::Departed);
        if self.lost_on_air(at, handle, wire, store) {
            self.lose(at, handle, store);
        } else if let Some(reference) = self.reference_mut() {
            reference.sent.push_back((handle, at));
        }
        if let Some(reference) = self.reference_mut() {
            reference.idle_since = at;
            if let Some(next) = reference.queue.front() {
                let bytes = next.bytes;
                self.queue_changes(at, bytes, -1);
            }
        }
        self.begin_reference_service(at, false);
    }

    /// The first packet of the queue, if there is one, enters service; with `idle` the line was idle until then.
    fn begin_reference_service(&mut self, at: Time, idle: bool) {
        let first = self.reference().and_then(|reference| reference.queue.front()).map(|first| first.wire);
        let departs = first.map_or(Time::NEVER, |wire| Time(self.line.finish(at.0, wire, idle)));
        self.view.busy = first.is_some();
        if let Some(reference) = self.reference_mut() {
            reference.departs = departs;
        }
    }

    /// One more packet waits, or one less.
    fn queue_changes(&mut self, at: Time, bytes: u16, by: i32) {
        let PortView { backlog_packets, backlog_bytes, .. } = self.view;
        self.stats.queue_changed(at, backlog_packets, backlog_bytes, by);
        self.view.backlog_packets = backlog_packets.wrapping_add_signed(by);
        self.view.backlog_bytes = backlog_bytes.wrapping_add_signed(by as i64 * bytes as i64);
    }

    /// When the next timer of the controller or the discipline expires, or the configured capacity changes.
    fn reference_timer(&self) -> Time {
        let capacity = self.impairments.as_ref().map_or(Time::NEVER, |impairments| impairments.next_timer());
        self.at_tick(self.control.next_timer().min(capacity))
    }

    /// Runs the timers that are due.
    fn run_reference_timers(&mut self, at: Time) {
        if let Some(capacity) = self.impairments.as_mut().and_then(|impairments| impairments.capacity_from(at)) {
            self.view.capacity = capacity;
        }
        self.control.run_timers(at, &self.view);
    }
}
