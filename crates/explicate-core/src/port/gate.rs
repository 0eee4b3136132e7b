//! What looks at the packets of a class: its queue discipline and its router controller.

use alloc::boxed::Box;

use crate::api::{AnyRouter, PortView, Probe};
use crate::qdisc::common::Room;
use crate::qdisc::{Discipline, Qdisc};
use crate::units::Time;

/// A queue discipline and a router controller for one class of packets, as a port is made from them.
#[derive(Default)]
pub struct Class {
    /// What may wait, and in which order; `None` is first in, first out without a limit.
    pub qdisc: Option<Discipline>,
    /// Controller; `None` is a plain IP router.
    pub router: Option<Box<AnyRouter>>,
}

/// What looks at packets that come and go.
#[derive(Default)]
pub(super) struct Gate {
    /// Admission; `None` admits everything.
    pub(super) qdisc: Option<Box<Admission>>,
    pub(super) router: Option<Box<AnyRouter>>,
}

/// A discipline and the room that it is, if it is no more than that. In one box: most ports have none.
pub(super) struct Admission {
    pub(super) law: Box<dyn Qdisc>,
    pub(super) room: Option<Room>,
    /// Departures are reported to it.
    pub(super) minded: bool,
}

impl Gate {
    pub(super) fn new(qdisc: Option<Box<dyn Qdisc>>, router: Option<Box<AnyRouter>>) -> Gate {
        Gate {
            qdisc: qdisc.map(|law| Box::new(Admission { room: law.room(), minded: law.room().is_none(), law })),
            router,
        }
    }
    /// Whether the discipline is more than a limit: it is asked about every packet.
    pub(super) fn decides(&self) -> bool {
        self.qdisc.as_ref().is_some_and(|qdisc| qdisc.room.is_none())
    }
    /// What it was made from.
    pub(super) fn into_class(self) -> Class {
        Class { qdisc: self.qdisc.map(|q| Discipline::Arrival(q.law)), router: self.router }
    }
    pub(super) fn next_timer(&self) -> Time {
        let router = self.router.as_ref().map_or(Time::NEVER, |r| r.next_timer());
        router.min(self.qdisc.as_ref().map_or(Time::NEVER, |q| q.law.next_timer()))
    }
    pub(super) fn run_timers(&mut self, at: Time, view: &PortView) {
        if let Some(r) = self.router.as_mut().filter(|r| r.next_timer() <= at) {
            r.on_timer(at, view);
        }
        if let Some(q) = self.qdisc.as_mut().filter(|q| q.law.next_timer() <= at) {
            q.law.on_timer(at, view);
        }
    }
    pub(super) fn probe(&self, put: Probe<'_>) {
        if let Some(router) = &self.router {
            router.probe(put);
        }
        if let Some(qdisc) = &self.qdisc {
            qdisc.law.probe(put);
        }
    }
}
