//! Features of few ports: channels that lose, lengthen or disturb packets, a line that another port shares, a
//! configured capacity that changes. Packets of such ports leave the fast path; other ports have no cost.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::reference::Reference;
use super::shared::SharedLine;
use super::{Arrival, Arriving, Mode, Note, Port, Store};
use crate::channel::{Channel, Coding, Disturbance};
use crate::estimate::hop_capacity::HopCapacity;
use crate::transit::Waiting;
use crate::units::Time;

/// Optional equipment of a port.
#[derive(Default)]
pub struct Equipment {
    /// Codings, in order.
    pub coding: Vec<Box<dyn Coding>>,
    /// Disturbances, in order; with any, departures are polled.
    pub after: Vec<Box<dyn Disturbance>>,
    /// The capacities that controllers are configured with, bytes/s, and their start times, in order.
    pub capacity: Option<Arc<[(Time, f64)]>>,
    /// Measures the capacity; controllers receive the result in place of the configured one. Departures are polled.
    pub measured: Option<HopCapacity>,
    /// The line is shared with another port. Departures are polled, and after each event at one port the driver calls
    /// [`Port::poll_timeout`] of the other again.
    pub line: Option<SharedLine>,
}

#[derive(Default)]
pub(super) struct Impairments {
    pub(super) before: Vec<Box<dyn Channel>>,
    pub(super) on_air: Vec<Box<dyn Channel>>,
    pub(super) coding: Vec<Box<dyn Coding>>,
    pub(super) after: Vec<Box<dyn Disturbance>>,
    pub(super) capacity: Option<Arc<[(Time, f64)]>>,
    /// Index of the next entry of the schedule of capacities.
    pub(super) next: usize,
    pub(super) measured: Option<HopCapacity>,
    pub(super) line: Option<SharedLine>,
    /// Its queue, if it is a reference port.
    pub(super) reference: Option<Reference>,
}

impl Impairments {
    /// When the shared line may be free.
    pub(super) fn line_timer(&self) -> Time {
        self.line.as_ref().map_or(Time::NEVER, |line| line.next_timer())
    }
    /// When the configured capacity next changes.
    pub(super) fn next_timer(&self) -> Time {
        self.capacity.as_ref().and_then(|schedule| schedule.get(self.next)).map_or(Time::NEVER, |step| step.0)
    }
    /// The new configured capacity at `at`, if it changes.
    pub(super) fn capacity_from(&mut self, at: Time) -> Option<f64> {
        let schedule = self.capacity.as_ref()?;
        let due = schedule[self.next..].iter().take_while(|step| step.0 <= at).count();
        self.next += due;
        if due > 0 { Some(schedule[self.next - 1].1) } else { None }
    }
}

impl Port {
    /// Adds equipment. Call before the first packet, and after [`Port::schedule`] if that is called.
    pub fn equip(&mut self, equipment: Equipment) {
        let Equipment { coding, after, capacity, measured, line } = equipment;
        let polled = !after.is_empty() || line.is_some() || measured.is_some();
        if !coding.is_empty() || capacity.is_some() || polled {
            self.mode = self.mode.max(Mode::Impaired);
            let impairments = self.impairments.get_or_insert_default();
            (impairments.coding, impairments.after, impairments.capacity, impairments.line) =
                (coding, after, capacity, line);
            impairments.measured = measured;
            if polled && self.scheduler.as_deref().is_none() {
                let class = core::mem::take(&mut self.control).into_class();
                self.schedule(vec![(class, 1.0)], |_| 0);
            }
            self.rearm();
        }
    }

    /// A packet arrives at a port with such equipment, or with several classes.
    #[cold]
    pub(super) fn handle_on_slow_path(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        if self.impairments.is_some() && self.lost_before(now, handle, store) {
            return Arrival::Dropped;
        }
        match self.mode {
            Mode::OnMedium => Arrival::Queued,
            Mode::Scheduled => self.enqueue_in_class(now, handle, store),
            Mode::Reference => self.arrive_at_reference(now, handle, store),
            _ => self.arrive_impaired(now, handle, store),
        }
    }

    /// A packet joins a queue that is followed by channels or codings.
    fn arrive_impaired(&mut self, now: Time, handle: u32, store: &mut impl Store) -> Arrival {
        let bytes = store.packet(handle).ip_len;
        if !self.admit(now, Arriving { handle, bytes: bytes as u32 }, store) {
            return Arrival::Dropped;
        }
        let wire = self.wire_bytes(handle, bytes, store);
        let departs = self.departure(now, wire);
        let lost = self.lost_on_air(departs, handle, wire, store);
        self.ring.push(Waiting { arrives: now, departs, handle, bytes, lost });
        self.join(now, departs, bytes as u32);
        if lost { Arrival::DepartsLost(departs) } else { Arrival::Departs(departs) }
    }

    fn lost_before(&mut self, now: Time, handle: u32, store: &mut impl Store) -> bool {
        let Some(impairments) = &mut self.impairments else { return false };
        let packet = store.packet(handle);
        let lost = impairments.before.iter_mut().any(|c| c.loses(now, packet, packet.ip_len as u32));
        if lost {
            self.lose(now, handle, store);
        }
        lost
    }

    /// Length of a packet on the line, bytes.
    pub(super) fn wire_bytes(&mut self, handle: u32, bytes: u16, store: &mut impl Store) -> u32 {
        let bytes = bytes as u32;
        let Some(impairments) = &mut self.impairments else { return bytes };
        impairments.coding.iter_mut().fold(bytes, |bytes, c| c.wire_bytes(store.packet(handle), bytes))
    }

    /// Whether the channel loses a packet that departs.
    pub(super) fn lost_on_air(&mut self, departs: Time, handle: u32, wire: u32, store: &mut impl Store) -> bool {
        let Some(impairments) = &mut self.impairments else { return false };
        impairments.on_air.iter_mut().any(|c| c.loses(departs, store.packet(handle), wire))
    }

    #[cold]
    pub(super) fn lose(&mut self, at: Time, handle: u32, store: &mut impl Store) {
        self.stats.lost(store.packet(handle).is_data());
        store.note(at, self.number, handle, Note::Lost);
        store.release(handle);
    }

    /// A packet of a polled port has departed and was not lost: stores it for polling, with its disturbances.
    pub(super) fn send(&mut self, at: Time, handle: u32, store: &mut impl Store) {
        let Some(scheduler) = self.scheduler.as_deref_mut() else { return };
        let mut arrives = at;
        for channel in self.impairments.iter_mut().flat_map(|s| &mut s.after) {
            let done = channel.disturb(at, store.packet(handle));
            arrives += done.late;
            if done.damaged && !store.packet(handle).is_damaged() {
                store.packet(handle).damage();
                self.stats.damaged();
                store.note(at, self.number, handle, Note::Damaged);
            }
            if let Some(gap) = done.copy
                && let Some(copy) = store.copy(handle)
            {
                scheduler.sent.push_back((copy, at + gap));
                self.stats.copied();
                store.note(at, self.number, copy, Note::Copied);
            }
        }
        scheduler.sent.push_back((handle, arrives));
    }
}
