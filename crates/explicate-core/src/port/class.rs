//! The queue discipline and the router controller of a class.

use alloc::boxed::Box;

use crate::api::{AnyRouter, PortView, Probe};
use crate::qdisc::common::QueueLimit;
use crate::qdisc::{Discipline, Qdisc};
use crate::units::Time;

/// A queue discipline and a router controller for one class of packets; a port is made from these.
#[derive(Default)]
pub struct Class {
    /// The queue discipline; `None` is FIFO without a limit.
    pub qdisc: Option<Discipline>,
    /// Controller; `None` is a plain IP router.
    pub router: Option<Box<AnyRouter>>,
}

/// A discipline and a controller, called for arriving and departing packets.
#[derive(Default)]
pub(super) struct QueueControl {
    /// Admission; `None` admits everything.
    pub(super) qdisc: Option<Box<Admission>>,
    pub(super) router: Option<Box<AnyRouter>>,
}

/// A discipline, and its limit if it is only a limit. Boxed, because most ports have none.
pub(super) struct Admission {
    pub(super) discipline: Box<dyn Qdisc>,
    pub(super) queue_limit: Option<QueueLimit>,
    /// Departures are reported to it.
    pub(super) wants_departures: bool,
}

impl QueueControl {
    pub(super) fn new(qdisc: Option<Box<dyn Qdisc>>, router: Option<Box<AnyRouter>>) -> QueueControl {
        QueueControl {
            qdisc: qdisc.map(|discipline| {
                Box::new(Admission {
                    queue_limit: discipline.queue_limit(),
                    wants_departures: discipline.queue_limit().is_none(),
                    discipline,
                })
            }),
            router,
        }
    }
    /// Whether the discipline is more than a limit, so that it is called for every packet.
    pub(super) fn decides(&self) -> bool {
        self.qdisc.as_ref().is_some_and(|qdisc| qdisc.queue_limit.is_none())
    }
    /// The class from which it was made.
    pub(super) fn into_class(self) -> Class {
        Class { qdisc: self.qdisc.map(|q| Discipline::Arrival(q.discipline)), router: self.router }
    }
    pub(super) fn next_timer(&self) -> Time {
        let router = self.router.as_ref().map_or(Time::NEVER, |r| r.next_timer());
        router.min(self.qdisc.as_ref().map_or(Time::NEVER, |q| q.discipline.next_timer()))
    }
    pub(super) fn run_timers(&mut self, at: Time, view: &PortView) {
        if let Some(r) = self.router.as_mut().filter(|r| r.next_timer() <= at) {
            r.on_timer(at, view);
        }
        if let Some(q) = self.qdisc.as_mut().filter(|q| q.discipline.next_timer() <= at) {
            q.discipline.on_timer(at, view);
        }
    }
    pub(super) fn probe(&self, put: Probe<'_>) {
        if let Some(router) = &self.router {
            router.probe(put);
        }
        if let Some(qdisc) = &self.qdisc {
            qdisc.discipline.probe(put);
        }
    }
}
