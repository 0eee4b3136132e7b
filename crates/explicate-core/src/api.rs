//! Read this first: what a congestion control protocol consists of, and the facts that its parts are given.
//!
//! A *sender* decides how much may be in flight, a *receiver* what an acknowledgement returns, a *router* watches the queue of
//! an output port and writes feedback into departing packets. Each is a state machine that is given the time. A scenario
//! combines them with a recovery ([`crate::recovery`]), a queue ([`crate::qdisc`]) and a channel ([`crate::channel`]).
//!
//! `WRITES`, `HAS_TIMER`, `ECHOES` and `ORDER_INDEPENDENT` are promises that save work. Their defaults are always safe, and
//! the laws in `tests/laws/promises.rs` fail for a protocol that breaks one.

use alloc::boxed::Box;

use crate::agent::{Address, AgentKind};
use crate::params::{Info, Param, Values};
use crate::passage::DropCause;
use crate::rng::Rng;
use crate::units::{Rate, Time};
pub use crate::view::{PortView, Probe};
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
    /// Routers give feedback to its senders. Set-up negotiates that, and falls back to TCP if the other end refuses.
    const EXPLICIT: bool = false;
    /// Length of the congestion header of its data packets, bytes; 0 if its feedback fits bits of other headers.
    const HEADER_LEN: u16 = if Self::EXPLICIT { CONGESTION_LEN as u16 } else { 0 };
    /// The agent of nodes with such controllers, or where such flows begin or end.
    const AGENT: Option<&'static dyn AgentKind> = None;
    /// It works across routers without its controller, which otherwise deserve a warning.
    const BEARS_PLAIN_ROUTERS: bool = false;
    /// The protocol whose controllers serve this one's packets, if not its own.
    const CONTROLLER: Option<&'static AnyProtocol> = None;
    /// Describes those fields of a packet that are this protocol's, for packet logs; nothing for packets without such fields.
    const DESCRIBE: Describe = |_, _| Ok(());
    /// A sender for one flow.
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender>;
    /// A receiver for one flow; `None` if acknowledgements carry nothing of this protocol.
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        None
    }
    /// A controller for one output port. It must leave acknowledgements alone: a driver may omit it where only those cross.
    fn router(&self, _init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        None
    }
    /// Whether a packet may be of this protocol, as far as a router can tell. Ports with classes keep such packets together.
    fn answers(&self, packet: &Packet) -> bool {
        packet.congestion.is_present()
    }
}

/// What a sender is made from.
pub struct SenderInit<'a> {
    /// Values of the parameters in [`Protocol::INFO`].
    pub values: &'a Values,
    /// Length of a full data packet with all headers, bytes.
    pub packet: f64,
    /// First window, segments.
    pub initial_window: f64,
    /// Rate of the interface that the flow leaves by.
    pub interface: Rate,
}

/// How much a sender may have in flight, and how fast it may go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// Congestion window, segments; may have a fraction.
    pub cwnd: f64,
    /// Pacing rate; `None` sends as acknowledgements arrive.
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
    /// The cumulative number did not move although data was outstanding.
    pub duplicate: bool,
    /// The congestion header of the acknowledgement.
    pub header: &'a Congestion,
    /// The transport header of the acknowledgement; it echoes the number of the packet that caused it.
    pub transport: &'a Transport,
    /// Round-trip time of the packet that caused this acknowledgement, from its time stamp.
    pub rtt: Time,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Time,
    /// Segments in flight after this acknowledgement.
    pub in_flight: u32,
    /// A loss is being repaired, or was until this acknowledgement.
    pub recovering: bool,
    /// Neither window nor pace limited the sender before this acknowledgement.
    pub app_limited: bool,
}

/// Why a [`Loss`] is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    /// Acknowledgements show a hole (fast retransmit); once per episode.
    Duplicates,
    /// The retransmission timer expired; recovery has rolled back.
    Timeout,
    /// A router marked a packet (RFC 3168), nothing was lost; at most once per window.
    Mark,
}

/// A loss or mark, reported before the [`Ack`] that revealed it.
#[non_exhaustive]
pub struct Loss {
    /// Now.
    pub now: Time,
    /// Why.
    pub kind: LossKind,
    /// Segments in flight before it was noticed; at a timeout no more than the window, which recovery may have exceeded.
    pub in_flight: u32,
    /// Smoothed round-trip time.
    pub srtt: Time,
    /// A timeout of a segment that a timeout has already resent: RFC 5681 holds ssthresh then.
    pub repeated: bool,
    /// The acknowledgement that showed it echoes a router's mark.
    pub marked: bool,
}

/// A transmission.
#[non_exhaustive]
pub struct Sent {
    /// Now.
    pub now: Time,
    /// Segments in flight before this packet.
    pub in_flight: u32,
    /// The application has more to send than this packet.
    pub backlogged: bool,
}

/// What [`Sender::on_send`] writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writes {
    /// Nothing: it is not called.
    Nothing,
    /// Into packets that leave `backlogged`: the congestion header only, and the same until the next acknowledgement, loss or
    /// timer, so that it may be called once for all of them.
    PerEvent,
    /// Anything, into any packet.
    PerPacket,
}

/// The congestion controller of one flow. Finding lost segments is left to the recovery.
pub trait Sender: Send {
    /// What [`Sender::on_send`] writes.
    const WRITES: Writes = Writes::PerPacket;
    /// It has a timer: if not, [`Sender::next_timer`] is always [`Time::NEVER`].
    const HAS_TIMER: bool = true;
    /// What may be in flight now.
    fn allowance(&self) -> Allowance;
    /// The connection is set up; `rtt` is its first sample.
    fn on_start(&mut self, _now: Time, _rtt: Time) {}
    /// The flow leaves from this node. Called at most once, before anything is sent.
    fn on_attach(&mut self, _own: Address) {}
    /// A data packet is about to leave: fill in its congestion header.
    fn on_send(&mut self, _packet: &mut Packet, _sent: &Sent) {}
    /// An acknowledgement arrived.
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// A loss or mark was noticed.
    fn on_loss(&mut self, loss: &Loss);
    /// The timer requested by [`Sender::next_timer`] expired.
    fn on_timer(&mut self, _now: Time) {}
    /// When this sender wants [`Sender::on_timer`].
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Continue from this window, segments, without slow start: for explicit protocols and their fallbacks ([`crate::guard`]).
    fn resume(&mut self, _now: Time, _window: f64, _srtt: Time) {}
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}

/// What the receiving end of a flow does beyond acknowledging.
pub trait Receiver: Send {
    /// It returns the Delta_Throughput of standard headers, summed since the last acknowledgement, as Reverse_Feedback: no more.
    const ECHOES: bool = false;
    /// A flow opens. If `marks`, feedback counts only in packets with a mark, which is returned ([`crate::guard`]).
    fn on_open(&mut self, _marks: bool) {}
    /// A data packet arrived, perhaps a duplicate.
    fn on_data(&mut self, _now: Time, _packet: &Packet) {}
    /// An acknowledgement is about to leave.
    fn on_ack(&mut self, _now: Time, _ack: &mut Packet) {}
}

/// What a router controller is made from.
pub struct RouterInit<'a> {
    /// Values of [`Protocol::ROUTER_PARAMS`].
    pub values: &'a Values,
    /// The configured capacity of the link, bytes/s.
    pub capacity: f64,
    /// Propagation delay of the link.
    pub delay: Time,
    /// The port's own random stream, for jitter of timers.
    pub rng: Rng,
}

/// A controller: watches the queue of one output port, whatever its discipline, and writes feedback into packets.
pub trait Router: Send {
    /// Departures may be reported early, before arrivals that precede them, as long as no timer lies between; then with a backlog
    /// of [`u64::MAX`], of which [`Router::on_least_backlog`] reports the least before the next timer.
    const ORDER_INDEPENDENT: bool = false;
    /// A packet arrived; it may yet be dropped.
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    /// Whether it writes feedback into this packet; narrower than [`Protocol::answers`], and known on arrival.
    fn speaks_to(&self, _packet: &Packet) -> bool {
        false
    }
    /// A packet's last bit leaves; the last chance to write into it.
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    /// The least backlog of the departures that were reported early, bytes: a fact that [`Router::on_departure`] lacks then.
    /// Called before the next timer, and only for a router that promises [`Router::ORDER_INDEPENDENT`].
    fn on_least_backlog(&mut self, _bytes: u64) {}
    /// A packet was dropped at this port's queue.
    fn on_drop(&mut self, _now: Time, _packet: &Packet, _cause: DropCause, _port: &PortView) {}
    /// The timer requested by [`Router::next_timer`] expired.
    fn on_timer(&mut self, _now: Time, _port: &PortView) {}
    /// When this controller wants [`Router::on_timer`]; it changes only there.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Reports its variables.
    fn probe(&self, put: Probe<'_>);
}
