//! Read this first: the parts of a congestion control protocol, and the arguments that their methods receive.
//!
//! A *sender* decides how much may be in flight. A *receiver* decides what an acknowledgement returns. A *router*
//! observes the queue of an output port and writes feedback into departing packets. Each is a state machine that
//! receives the time as an argument. A scenario combines them with a recovery ([`crate::recovery`]), a queue
//! discipline ([`crate::qdisc`]) and a channel ([`crate::channel`]).
//!
//! `NEEDS_FEEDBACK`, `WRITES`, `HAS_TIMER`, `ECHOES` and `ORDER_INDEPENDENT` are promises that save work. Their defaults are always safe, and
//! the laws in `explicate-laws` fail for a protocol that breaks one.

use alloc::boxed::Box;

use crate::agent::{Address, AgentKind};
use crate::params::{Info, Param, Values};
use crate::rng::Rng;
use crate::transit::DropCause;
use crate::units::{Rate, Time};
pub use crate::view::{PortView, Probe, measured_ms};
use crate::wire::{CONGESTION_LEN, Congestion, Describe, Packet, Transport};

pub use self::object::{AnyProtocol, AnyReceiver, AnyRouter, AnySender};

mod facts;
pub(crate) mod object;

/// A congestion control protocol: one file, registered by one line in `protocols/mod.rs`.
pub trait Protocol: Sync {
    /// Name, summary, source, and the parameters of the sender.
    const INFO: Info;
    /// Parameters of the router controller.
    const ROUTER_PARAMS: &'static [Param] = &[];
    /// Routers give feedback to its senders. Connection set-up negotiates this, and falls back to TCP if the other
    /// end refuses.
    const EXPLICIT: bool = false;
    /// Length of the congestion header of its data packets, 20 bytes; 0 if the feedback fits into bits of other headers.
    const HEADER_LEN: u16 = if Self::EXPLICIT { CONGESTION_LEN as u16 } else { 0 };
    /// The agent of every node that has such controllers, or at which such flows begin or end.
    const AGENT: Option<&'static dyn AgentKind> = None;
    /// It works across routers without its controller. Other protocols cause a warning on such paths.
    const BEARS_PLAIN_ROUTERS: bool = false;
    /// Its senders use what is returned to them: acknowledgements, losses, round-trip times. If not, nothing is returned to a
    /// simulated flow over a recovery that retransmits nothing, and nothing opens it: [`Sender::on_start`],
    /// [`Sender::on_ack`] and [`Sender::on_loss`] are not called.
    const NEEDS_FEEDBACK: bool = true;
    /// Its senders write an ECN code of their own into every data packet, whatever `ecn` and `l4s` say.
    const OWN_ECN: bool = false;
    /// The protocol whose controllers process this one's packets, if not its own.
    const CONTROLLER: Option<&'static AnyProtocol> = None;
    /// Describes the protocol's fields of a packet, for packet logs; writes nothing for packets without such fields.
    const DESCRIBE: Describe = |_, _| Ok(());
    /// A sender for one flow.
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender>;
    /// A receiver for one flow; `None` if acknowledgements carry nothing of this protocol.
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        None
    }
    /// A controller for one output port. It must not change acknowledgements: a driver may omit it where only those
    /// pass.
    fn router(&self, _init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        None
    }
    /// Whether a packet may belong to this protocol, judged by its headers. Ports with classes keep such packets
    /// together.
    fn matches(&self, packet: &Packet) -> bool {
        packet.congestion.is_present()
    }
}

/// Arguments for making a sender.
pub struct SenderInit<'a> {
    /// Values of the parameters in [`Protocol::INFO`].
    pub values: &'a Values,
    /// Length of a full data packet with all headers, bytes.
    pub packet: f64,
    /// Initial window, segments.
    pub initial_window: f64,
    /// Rate of the interface that the flow sends through.
    pub interface: Rate,
}

/// How much a sender may have in flight, and at which rate it may send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// Congestion window, segments: finite, at least 1; need not be an integer.
    pub cwnd: f64,
    /// Pacing rate; with `None` the sender transmits when acknowledgements arrive.
    pub pacing: Option<Rate>,
}

/// An acknowledgement, after recovery has processed it.
#[non_exhaustive]
pub struct Ack<'a> {
    /// Now.
    pub now: Time,
    /// Segments newly acknowledged, cumulatively or by SACK.
    pub newly_acked: u32,
    /// The next segment that the receiver expects.
    pub cumulative: u32,
    /// One past the highest segment ever sent.
    pub highest_sent: u32,
    /// The cumulative acknowledgement did not advance although data were outstanding.
    pub duplicate: bool,
    /// The recovery learns of every segment that arrives ([`crate::recovery::RecoveryKind::SELECTIVE`]): a duplicate
    /// without newly acknowledged segments reports the arrival of none.
    pub selective: bool,
    /// The congestion header of the acknowledgement.
    pub header: &'a Congestion,
    /// The transport header of the acknowledgement. It echoes the number of the packet that caused it.
    pub transport: &'a Transport,
    /// Round-trip time of the packet that caused this acknowledgement, from its time stamp.
    pub rtt: Time,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Time,
    /// Segments in flight after this acknowledgement.
    pub in_flight: u32,
    /// A loss is being repaired, or was being repaired until this acknowledgement.
    pub recovering: bool,
    /// Neither the window nor pacing limited the sender before this acknowledgement.
    pub app_limited: bool,
}

/// Why a [`Loss`] is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    /// Acknowledgements show a gap (fast retransmit); once per episode.
    Duplicates,
    /// The retransmission timer expired; the recovery has gone back to the first missing segment.
    Timeout,
    /// A router marked a packet (RFC 3168) and nothing was lost; at most once per window.
    Mark,
}

/// A loss or mark, reported before the [`Ack`] that revealed it.
#[non_exhaustive]
pub struct Loss {
    /// Now.
    pub now: Time,
    /// The reason.
    pub kind: LossKind,
    /// Segments in flight before the loss was detected; at a timeout at most the window, which the recovery may have
    /// exceeded.
    pub in_flight: u32,
    /// Smoothed round-trip time.
    pub srtt: Time,
    /// A timeout for a segment that an earlier timeout already retransmitted. RFC 5681 keeps ssthresh then.
    pub repeated: bool,
    /// The acknowledgement that revealed it echoes a router's mark.
    pub marked: bool,
}

/// What was taken for a loss had arrived: the response to it was wrong, and is taken back.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// Now.
    pub now: Time,
    /// The window when the loss was reported, segments.
    pub cwnd: f64,
    /// The threshold of slow start when the loss was reported, segments: three quarters of the window at least, as Linux
    /// saves it.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Time,
}

/// A transmission.
#[non_exhaustive]
pub struct Sent {
    /// Now.
    pub now: Time,
    /// Segments in flight before this packet.
    pub in_flight: u32,
    /// The application has more data to send after this packet.
    pub backlogged: bool,
}

/// What [`Sender::on_send`] writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// Nothing: `on_send` is not called.
    Nothing,
    /// Into packets with `backlogged`: the congestion header only, and the same one until the next acknowledgement,
    /// loss or timer. One call may serve all these packets.
    PerEvent,
    /// Anything, into any packet.
    PerPacket,
}

/// The congestion controller of one flow. The recovery detects lost segments.
pub trait Sender: Send {
    /// What [`Sender::on_send`] writes.
    const WRITES: Writes = Writes::PerPacket;
    /// It has a timer. If false, [`Sender::next_timer`] always returns [`Time::NEVER`].
    const HAS_TIMER: bool = true;
    /// Its window limits a repair by itself, as those of controllers that Linux calls by `cong_control`: the recovery adds no
    /// proportional reduction (RFC 9937) of its own.
    const LIMITS_REPAIR: bool = false;
    /// The current allowance.
    fn allowance(&self) -> Allowance;
    /// The connection is set up; `rtt` is its first sample.
    fn on_start(&mut self, _now: Time, _rtt: Time) {}
    /// The address of the node from which the flow leaves. Called at most once, before the first packet.
    fn on_attach(&mut self, _own: Address) {}
    /// The flow sends new data although nothing was outstanding, `idle` after its last packet. `timeout` is its
    /// retransmission timeout. Not called for the first packet. It may change the allowance, not the congestion header.
    fn on_idle(&mut self, _now: Time, _idle: Time, _timeout: Time) {}
    /// A data packet is about to leave: fills in its congestion header.
    fn on_send(&mut self, _packet: &mut Packet, _sent: &Sent) {}
    /// An acknowledgement arrived.
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// A loss or mark was detected.
    fn on_loss(&mut self, loss: &Loss);
    /// Where slow start ends, segments; infinite if it has no such threshold. The endpoint saves it when it reports a loss.
    fn threshold(&self) -> f64 {
        f64::INFINITY
    }
    /// The response to the last loss was wrong: restores window and threshold. By default [`Sender::resume`] with the
    /// window before the loss, if that is larger.
    fn on_undo(&mut self, undo: &Undo) {
        if undo.cwnd > self.allowance().cwnd {
            self.resume(undo.now, undo.cwnd, undo.srtt);
        }
    }
    /// The timer requested by [`Sender::next_timer`] expired; the next one has to be later.
    fn on_timer(&mut self, _now: Time) {}
    /// When [`Sender::on_timer`] is to be called.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Continues with this window, segments, without slow start: for explicit protocols and their fallbacks
    /// ([`crate::guard`]).
    fn resume(&mut self, _now: Time, _window: f64, _srtt: Time) {}
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}

/// The part of a protocol at the receiving end of a flow.
pub trait Receiver: Send {
    /// It only returns the Delta_Throughput of standard headers, summed since the last acknowledgement, as
    /// Reverse_Feedback.
    const ECHOES: bool = false;
    /// The highest code of several packets and all their flags say what it would return for them. QUIC returns no more, so that of
    /// the protocols without a congestion header it follows only these.
    const HIGHEST_COUNTS: bool = false;
    /// A flow opens. With `marks`, feedback counts only in packets that have a mark, and the mark is returned
    /// ([`crate::guard`]).
    fn on_open(&mut self, _marks: bool) {}
    /// A data packet arrived; it may be a duplicate.
    fn on_data(&mut self, _now: Time, _packet: &Packet) {}
    /// An acknowledgement is about to leave.
    fn on_ack(&mut self, _now: Time, _ack: &mut Packet) {}
}

/// Arguments for making a router controller.
pub struct RouterInit<'a> {
    /// Values of [`Protocol::ROUTER_PARAMS`].
    pub values: &'a Values,
    /// The configured capacity of the link, bytes/s.
    pub capacity: f64,
    /// Propagation delay of the link.
    pub delay: Time,
    /// The random stream of the port, for jitter of timers.
    pub rng: Rng,
}

/// A controller: observes the queue of one output port, with any discipline, and writes feedback into packets.
pub trait Router: Send {
    /// Departures may be reported before earlier arrivals, if no timer expires between them. They are reported with a
    /// backlog of [`u64::MAX`]; [`Router::on_least_backlog`] then reports the least backlog before the next timer.
    const ORDER_INDEPENDENT: bool = false;
    /// A packet arrived; the queue may still drop it.
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    /// Whether it writes feedback into this packet, known from its arrival on. Ports mark such packets as answered
    /// ([`crate::guard`]).
    fn writes_into(&self, _packet: &Packet) -> bool {
        false
    }
    /// The rate that it divides evenly among its flows once they have settled, bytes/s: that of all of them together, at
    /// the present capacity of the port. It counts no flows. `None` if its feedback gives no flow a rate.
    ///
    /// Fair advice ([`crate::scone`], [`crate::wire::scone`]) is a flow's part of it, for flows that do not read the
    /// feedback. Who advises counts the flows, these too.
    fn shared(&self, _port: &PortView) -> Option<f64> {
        None
    }
    /// The last bit of a packet leaves. This is the last chance to write into it.
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    /// The least backlog among the departures that were reported early, bytes, which [`Router::on_departure`] did not
    /// receive. Called before the next timer, and only for a router that promises [`Router::ORDER_INDEPENDENT`].
    fn on_least_backlog(&mut self, _bytes: u64) {}
    /// The queue of this port dropped a packet.
    fn on_drop(&mut self, _now: Time, _packet: &Packet, _cause: DropCause, _port: &PortView) {}
    /// The timer requested by [`Router::next_timer`] expired; the next one has to be later.
    fn on_timer(&mut self, _now: Time, _port: &PortView) {}
    /// When [`Router::on_timer`] is to be called; it changes only there.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}
