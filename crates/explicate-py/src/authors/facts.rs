//! The arguments of callbacks as Python objects: times in seconds, rates in the units of the core.

use std::borrow::Cow;

use explicate_core::api::{Ack, Loss, LossKind, PortView, Sent, Undo};
use explicate_core::units::Time;
use explicate_core::wire::{BODY_LEN, Congestion, Packet, Transport, flag};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

pub(super) fn seconds(time: Time) -> f64 {
    if time == Time::NEVER { f64::INFINITY } else { time.0 as f64 / 1e9 }
}

/// The time of so many seconds; infinity is never.
pub(super) fn time(seconds: f64) -> PyResult<Time> {
    if seconds == f64::INFINITY {
        return Ok(Time::NEVER);
    }
    if !(0.0..1e9).contains(&seconds) {
        return Err(PyValueError::new_err(format!("{seconds} is no time; give seconds, or math.inf for never")));
    }
    Ok(Time((seconds * 1e9).round() as u64))
}

/// The congestion header of a packet.
#[pyclass(module = "explicate")]
pub(crate) struct Header {
    pub(super) header: Congestion,
}

#[pymethods]
impl Header {
    /// Whether there is one.
    #[getter]
    fn is_present(&self) -> bool {
        self.header.is_present()
    }
    #[getter]
    fn is_standard(&self) -> bool {
        self.header.is_standard()
    }
    #[getter]
    fn x(&self) -> u32 {
        self.header.x()
    }
    #[setter]
    fn set_x(&mut self, units: u32) {
        self.header.set_x(units);
    }
    #[getter]
    fn rtt(&self) -> u32 {
        self.header.rtt()
    }
    #[setter]
    fn set_rtt(&mut self, units: u32) {
        self.header.set_rtt(units);
    }
    #[getter]
    fn reverse_feedback(&self) -> i32 {
        self.header.reverse_feedback()
    }
    #[setter]
    fn set_reverse_feedback(&mut self, bytes_per_s: i32) {
        self.header.set_reverse_feedback(bytes_per_s);
    }
    #[getter]
    fn delta_throughput(&self) -> i32 {
        self.header.delta_throughput()
    }
    #[setter]
    fn set_delta_throughput(&mut self, bytes_per_s: i32) {
        self.header.set_delta_throughput(bytes_per_s);
    }
    /// The bytes of a protocol's own header; None if the header has another format.
    fn read(&self, format: u8) -> PyResult<Option<Cow<'_, [u8]>>> {
        Ok(self.header.body(own(format)?).map(|body| Cow::from(&body[..])))
    }
    /// Writes a protocol's own header, padded with zeros, if there is a congestion header.
    fn write(&mut self, format: u8, data: &[u8]) -> PyResult<()> {
        if data.len() > BODY_LEN {
            let message = format!("a protocol's own header has at most {BODY_LEN} bytes, not {}", data.len());
            return Err(PyValueError::new_err(message));
        }
        if let Some(body) = self.header.body_mut(own(format)?) {
            *body = [0; BODY_LEN];
            body[..data.len()].copy_from_slice(data);
        }
        Ok(())
    }
}

/// Checks that a protocol's own header may have this format.
fn own(format: u8) -> PyResult<u8> {
    if (4..=15).contains(&format) {
        return Ok(format);
    }
    Err(PyValueError::new_err(format!("the format of a protocol's own header is 4 to 15, not {format}")))
}

/// A packet during a callback.
#[pyclass(module = "explicate", name = "Packet")]
pub(crate) struct PyPacket {
    ip_len: u16,
    tos: u8,
    transport: Transport,
    header: Py<Header>,
}

impl PyPacket {
    /// A copy of this packet.
    pub(super) fn of(py: Python<'_>, packet: &Packet) -> PyResult<Py<PyPacket>> {
        let header = Py::new(py, Header { header: packet.congestion })?;
        Py::new(py, PyPacket { ip_len: packet.ip_len, tos: packet.tos, transport: packet.transport, header })
    }
    /// The callback's changes to the copy.
    pub(super) fn write_back(this: &Py<PyPacket>, py: Python<'_>, packet: &mut Packet) {
        let copy = this.borrow(py);
        packet.tos = copy.tos;
        if packet.congestion.is_present() {
            packet.congestion = copy.header.borrow(py).header;
        }
    }
}

#[pymethods]
impl PyPacket {
    #[getter]
    fn congestion(&self, py: Python<'_>) -> Py<Header> {
        self.header.clone_ref(py)
    }
    #[getter]
    fn ip_len(&self) -> u16 {
        self.ip_len
    }
    #[getter]
    fn is_ack(&self) -> bool {
        self.transport.has(flag::ACK)
    }
    #[getter]
    fn ecn(&self) -> u8 {
        self.tos & 3
    }
    #[setter]
    fn set_ecn(&mut self, ecn: u8) -> PyResult<()> {
        if ecn > 3 {
            return Err(PyValueError::new_err(format!("the ECN field is 0 to 3, not {ecn}")));
        }
        self.tos = self.tos & !3 | ecn;
        Ok(())
    }
    #[getter]
    fn flow(&self) -> u32 {
        self.transport.flow()
    }
    #[getter]
    fn segment(&self) -> u32 {
        self.transport.segment()
    }
    #[getter]
    fn packet_number(&self) -> u32 {
        self.transport.packet_number()
    }
    #[getter]
    fn payload(&self) -> u16 {
        self.transport.payload()
    }
}

/// An acknowledgement.
#[pyclass(module = "explicate", name = "Ack", frozen, get_all)]
pub(crate) struct PyAck {
    now: f64,
    newly_acked: u32,
    cumulative: u32,
    highest_sent: u32,
    duplicate: bool,
    header: Py<Header>,
    packet_number: u32,
    ece: bool,
    rtt: f64,
    srtt: f64,
    in_flight: u32,
    recovering: bool,
    app_limited: bool,
}

impl PyAck {
    pub(super) fn of(py: Python<'_>, ack: &Ack<'_>) -> PyResult<Py<PyAck>> {
        let facts = PyAck {
            now: seconds(ack.now),
            newly_acked: ack.newly_acked,
            cumulative: ack.cumulative,
            highest_sent: ack.highest_sent,
            duplicate: ack.duplicate,
            header: Py::new(py, Header { header: *ack.header })?,
            packet_number: ack.transport.packet_number(),
            ece: ack.transport.has(flag::ECE),
            rtt: seconds(ack.rtt),
            srtt: seconds(ack.srtt),
            in_flight: ack.in_flight,
            recovering: ack.recovering,
            app_limited: ack.app_limited,
        };
        Py::new(py, facts)
    }
}

/// A loss or mark.
#[pyclass(module = "explicate", name = "Loss", frozen, get_all)]
pub(crate) struct PyLoss {
    now: f64,
    kind: &'static str,
    in_flight: u32,
    srtt: f64,
    repeated: bool,
    marked: bool,
}

impl PyLoss {
    pub(super) fn of(loss: &Loss) -> PyLoss {
        PyLoss {
            now: seconds(loss.now),
            kind: match loss.kind {
                LossKind::Duplicates => "duplicates",
                LossKind::Timeout => "timeout",
                LossKind::Mark => "mark",
            },
            in_flight: loss.in_flight,
            srtt: seconds(loss.srtt),
            repeated: loss.repeated,
            marked: loss.marked,
        }
    }
}

/// A loss that was none.
#[pyclass(module = "explicate", name = "Undo", frozen, get_all)]
pub(crate) struct PyUndo {
    now: f64,
    cwnd: f64,
    ssthresh: f64,
    srtt: f64,
}

impl PyUndo {
    pub(super) fn of(undo: &Undo) -> PyUndo {
        let Undo { now, cwnd, ssthresh, srtt, .. } = *undo;
        PyUndo { now: seconds(now), cwnd, ssthresh, srtt: seconds(srtt) }
    }
}

/// A transmission.
#[pyclass(module = "explicate", name = "Sent", frozen, get_all)]
pub(crate) struct PySent {
    now: f64,
    in_flight: u32,
    backlogged: bool,
}

impl PySent {
    pub(super) fn of(sent: &Sent) -> PySent {
        PySent { now: seconds(sent.now), in_flight: sent.in_flight, backlogged: sent.backlogged }
    }
}

/// A port as its controller sees it.
#[pyclass(module = "explicate", name = "PortView", frozen, get_all)]
pub(crate) struct PyPortView {
    capacity: f64,
    backlog_bytes: u64,
    backlog_packets: u32,
    busy: bool,
}

impl PyPortView {
    pub(super) fn of(port: &PortView) -> PyPortView {
        PyPortView {
            capacity: port.capacity,
            backlog_bytes: port.backlog_bytes,
            backlog_packets: port.backlog_packets,
            busy: port.busy,
        }
    }
}
