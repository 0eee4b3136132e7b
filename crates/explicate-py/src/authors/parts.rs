//! Sender, receiver and router: the traits of the core, whose callbacks are those of a Python object.

use explicate_core::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, PortView, Probe, Receiver, Router, RouterInit, Sender,
    SenderInit, Sent, Undo,
};
use explicate_core::params::Param;
use explicate_core::transit::DropCause;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::Packet;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Class;
use super::facts::{PyAck, PyLoss, PyPacket, PyPortView, PySent, PyUndo, seconds, time};
use super::machine::{Machine, overrides};
use super::values::as_dict;

// ------------------------------------------------------------------------------------------------------------ senders

/// A class of senders, and which callbacks it has.
pub(super) struct SenderClass {
    class: Py<PyAny>,
    params: &'static [Param],
    calls: SenderCalls,
}

/// Callbacks that are overridden and therefore called.
#[derive(Clone, Copy)]
struct SenderCalls {
    on_start: bool,
    on_idle: bool,
    on_send: bool,
    threshold: bool,
    on_undo: bool,
    timer: bool,
    resume: bool,
}

impl SenderClass {
    pub(super) fn new(py: Python<'_>, (class, base): Class, params: &'static [Param]) -> PyResult<SenderClass> {
        let has = |method: &str| overrides(py, &class, &base, method);
        let calls = SenderCalls {
            on_start: has("on_start")?,
            on_idle: has("on_idle")?,
            on_send: has("on_send")?,
            threshold: has("threshold")?,
            on_undo: has("on_undo")?,
            timer: has("next_timer")?,
            resume: has("resume")?,
        };
        Ok(SenderClass { class, params, calls })
    }

    pub(super) fn make(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Python::attach(|py| {
            let machine = Machine::new(py, &self.class, |class| {
                let facts = PyDict::new(py);
                facts.set_item("values", as_dict(py, self.params, init.values)?)?;
                facts.set_item("packet", init.packet)?;
                facts.set_item("initial_window", init.initial_window)?;
                facts.set_item("interface", init.interface.0 as f64)?;
                Ok(class.call_method1("_make", (facts,))?.unbind())
            });
            Box::new(PySender { machine, calls: self.calls }) as _
        })
    }
}

struct PySender {
    machine: Machine,
    calls: SenderCalls,
}

impl Sender for PySender {
    fn allowance(&self) -> Allowance {
        self.machine.with("allowance", |_, object| {
            let allowed = object.call_method0("allowance")?;
            let parts = || PyResult::Ok((allowed.getattr("cwnd")?.extract()?, allowed.getattr("pacing")?.extract()?));
            let alone = || Ok((allowed.extract::<f64>()?, None));
            let (cwnd, pacing): (f64, Option<f64>) = alone().or_else(|_: PyErr| parts()).map_err(|_| {
                let given = allowed.repr().map_or_else(|_| "another object".to_string(), |text| text.to_string());
                let forms = "it returns a window in segments or an Allowance";
                PyTypeError::new_err(format!("allowance returned {given}; {forms}"))
            })?;
            if !(1.0..f64::INFINITY).contains(&cwnd) {
                return Err(PyValueError::new_err(format!(
                    "a window of {cwnd} segments; it must be finite, 1 or more"
                )));
            }
            if let Some(bad) = pacing.filter(|rate| !(1.0..1e18).contains(rate)) {
                return Err(PyValueError::new_err(format!(
                    "a pacing rate of {bad} bit/s; it must be finite, 1 or more"
                )));
            }
            Ok(Allowance { cwnd, pacing: pacing.map(|rate| Rate(rate.round() as u64)) })
        })
    }
    fn on_start(&mut self, now: Time, rtt: Time) {
        let machine = self.machine.at(now);
        if self.calls.on_start {
            machine
                .with("on_start", |_, object| object.call_method1("on_start", (seconds(now), seconds(rtt))).map(drop));
        }
    }
    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        if self.calls.on_idle {
            let facts = (seconds(now), seconds(idle), seconds(timeout));
            self.machine.at(now).with("on_idle", |_, object| object.call_method1("on_idle", facts).map(drop));
        }
    }
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        if self.calls.on_send {
            self.machine.at(sent.now).with("on_send", |py, object| {
                let copy = PyPacket::of(py, packet)?;
                object.call_method1("on_send", (copy.clone_ref(py), PySent::of(sent)))?;
                PyPacket::write_back(&copy, py, packet);
                Ok(())
            });
        }
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let machine = self.machine.at(ack.now);
        machine.with("on_ack", |py, object| object.call_method1("on_ack", (PyAck::of(py, ack)?,)).map(drop));
    }
    fn on_loss(&mut self, loss: &Loss) {
        let machine = self.machine.at(loss.now);
        machine.with("on_loss", |_, object| object.call_method1("on_loss", (PyLoss::of(loss),)).map(drop));
    }
    fn threshold(&self) -> f64 {
        if !self.calls.threshold {
            return f64::INFINITY;
        }
        self.machine.with("threshold", |_, object| {
            let segments: f64 = object.call_method0("threshold")?.extract()?;
            if segments >= 1.0 {
                return Ok(segments);
            }
            Err(PyValueError::new_err(format!("a threshold of {segments} segments; it must be 1 or more, or math.inf")))
        })
    }
    fn on_undo(&mut self, undo: &Undo) {
        if self.calls.on_undo {
            let machine = self.machine.at(undo.now);
            return machine.with("on_undo", |_, object| object.call_method1("on_undo", (PyUndo::of(undo),)).map(drop));
        }
        // As in the core.
        if undo.cwnd > self.allowance().cwnd {
            self.resume(undo.now, undo.cwnd, undo.srtt);
        }
    }
    fn on_timer(&mut self, now: Time) {
        self.machine.at(now).with("on_timer", |_, object| {
            object.call_method1("on_timer", (seconds(now),))?;
            later(now, next_timer(object)?)
        });
    }
    fn next_timer(&self) -> Time {
        if self.calls.timer { self.machine.with("next_timer", |_, object| next_timer(object)) } else { Time::NEVER }
    }
    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        let machine = self.machine.at(now);
        if self.calls.resume {
            let facts = (seconds(now), window, seconds(srtt));
            machine.with("resume", |_, object| object.call_method1("resume", facts).map(drop));
        }
    }
    fn probe(&self, put: Probe<'_>) {
        self.machine.probe(put);
    }
}

fn next_timer(object: &Bound<'_, PyAny>) -> PyResult<Time> {
    time(object.call_method0("next_timer")?.extract()?)
}

/// A timer that has expired must advance, or it would expire forever.
fn later(now: Time, next: Time) -> PyResult<()> {
    if next > now {
        return Ok(());
    }
    let (next, now) = (seconds(next), seconds(now));
    Err(PyValueError::new_err(format!("after on_timer at {now} s the next timer is at {next} s; it must be later")))
}

// ---------------------------------------------------------------------------------------------------------- receivers

/// A class of receivers, and which callbacks it has.
pub(super) struct ReceiverClass {
    class: Py<PyAny>,
    calls: ReceiverCalls,
}

#[derive(Clone, Copy)]
struct ReceiverCalls {
    on_open: bool,
    on_data: bool,
    on_ack: bool,
}

impl ReceiverClass {
    pub(super) fn new(py: Python<'_>, (class, base): Class) -> PyResult<ReceiverClass> {
        let has = |method: &str| overrides(py, &class, &base, method);
        let calls = ReceiverCalls { on_open: has("on_open")?, on_data: has("on_data")?, on_ack: has("on_ack")? };
        Ok(ReceiverClass { class, calls })
    }
    pub(super) fn make(&self) -> Box<AnyReceiver> {
        Python::attach(|py| {
            let machine = Machine::new(py, &self.class, |class| Ok(class.call0()?.unbind()));
            Box::new(PyReceiver { machine, calls: self.calls }) as _
        })
    }
}

struct PyReceiver {
    machine: Machine,
    calls: ReceiverCalls,
}

impl Receiver for PyReceiver {
    fn on_open(&mut self, marks: bool) {
        if self.calls.on_open {
            self.machine.with("on_open", |_, object| object.call_method1("on_open", (marks,)).map(drop));
        }
    }
    fn on_data(&mut self, now: Time, packet: &Packet) {
        let machine = self.machine.at(now);
        if self.calls.on_data {
            machine.with("on_data", |py, object| {
                object.call_method1("on_data", (seconds(now), PyPacket::of(py, packet)?)).map(drop)
            });
        }
    }
    fn on_ack(&mut self, now: Time, ack: &mut Packet) {
        let machine = self.machine.at(now);
        if self.calls.on_ack {
            machine.with("on_ack", |py, object| {
                let copy = PyPacket::of(py, ack)?;
                object.call_method1("on_ack", (seconds(now), copy.clone_ref(py)))?;
                PyPacket::write_back(&copy, py, ack);
                Ok(())
            });
        }
    }
}

// ------------------------------------------------------------------------------------------------------------ routers

/// A class of controllers, and which callbacks it has.
pub(super) struct RouterClass {
    class: Py<PyAny>,
    params: &'static [Param],
    calls: RouterCalls,
}

#[derive(Clone, Copy)]
struct RouterCalls {
    on_arrival: bool,
    on_departure: bool,
    on_drop: bool,
    timer: bool,
    writes_into: bool,
}

impl RouterClass {
    pub(super) fn new(py: Python<'_>, (class, base): Class, params: &'static [Param]) -> PyResult<RouterClass> {
        let has = |method: &str| overrides(py, &class, &base, method);
        let calls = RouterCalls {
            on_arrival: has("on_arrival")?,
            on_departure: has("on_departure")?,
            on_drop: has("on_drop")?,
            timer: has("next_timer")?,
            writes_into: has("writes_into")?,
        };
        Ok(RouterClass { class, params, calls })
    }
    pub(super) fn make(&self, init: &RouterInit<'_>) -> Box<AnyRouter> {
        Python::attach(|py| {
            let machine = Machine::new(py, &self.class, |class| {
                let facts = PyDict::new(py);
                facts.set_item("values", as_dict(py, self.params, init.values)?)?;
                facts.set_item("capacity", init.capacity)?;
                facts.set_item("delay", seconds(init.delay))?;
                facts.set_item("seed", init.rng.clone().next_u64())?;
                Ok(class.call_method1("_make", (facts,))?.unbind())
            });
            let mut router = PyRouter { machine, calls: self.calls, next: Time::NEVER };
            router.next = router.asked();
            Box::new(router) as _
        })
    }
}

struct PyRouter {
    machine: Machine,
    calls: RouterCalls,
    /// Its timer, which changes only when it expires.
    next: Time,
}

impl PyRouter {
    /// The result of the object's `next_timer`.
    fn asked(&self) -> Time {
        if self.calls.timer { self.machine.with("next_timer", |_, object| next_timer(object)) } else { Time::NEVER }
    }
    /// A callback that may write into the packet.
    fn write(&mut self, callback: &str, now: Time, packet: &mut Packet, port: &PortView) {
        self.machine.at(now).with(callback, |py, object| {
            let copy = PyPacket::of(py, packet)?;
            object.call_method1(callback, (seconds(now), copy.clone_ref(py), PyPortView::of(port)))?;
            PyPacket::write_back(&copy, py, packet);
            Ok(())
        });
    }
}

impl Router for PyRouter {
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        if self.calls.on_arrival {
            self.write("on_arrival", now, packet, port);
        }
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        self.calls.writes_into
            && self.machine.with("writes_into", |py, object| {
                object.call_method1("writes_into", (PyPacket::of(py, packet)?,))?.extract()
            })
    }
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        if self.calls.on_departure {
            self.write("on_departure", now, packet, port);
        }
    }
    fn on_drop(&mut self, now: Time, packet: &Packet, cause: DropCause, port: &PortView) {
        if self.calls.on_drop {
            let cause = match cause {
                DropCause::Overflow => "overflow",
                DropCause::Early => "early",
            };
            self.machine.at(now).with("on_drop", |py, object| {
                let facts = (seconds(now), PyPacket::of(py, packet)?, cause, PyPortView::of(port));
                object.call_method1("on_drop", facts).map(drop)
            });
        }
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        self.next = self.machine.at(now).with("on_timer", |_, object| {
            object.call_method1("on_timer", (seconds(now), PyPortView::of(port)))?;
            let next = next_timer(object)?;
            later(now, next)?;
            Ok(next)
        });
    }
    fn next_timer(&self) -> Time {
        self.next
    }
    fn probe(&self, put: Probe<'_>) {
        self.machine.probe(put);
    }
}
