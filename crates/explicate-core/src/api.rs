//! Read this first: what a protocol consists of, and the facts that its parts are given.
//!
//! A *sender* decides how much may be in flight, a *receiver* what an acknowledgement carries back, a *router* watches the
//! queue of an output port and writes feedback into departing packets. Each is a state machine that is given the time.
//! [`crate::flow`] and [`crate::port`] compose them with a recovery ([`crate::recovery`]), a queue discipline
//! ([`crate::qdisc`]) and a channel ([`crate::channel`]), which are chosen apart from the protocol.

use alloc::boxed::Box;

use crate::agent::{Address, Agent, AgentInit};
use crate::guard::Law;
use crate::params::{Param, Values};
use crate::passage::Passages;
use crate::rng::Rng;
use crate::units::{Rate, Time};
use crate::wire::{Congestion, Packet, Transport};

/// Receives a machine's variables by name: the one way to look inside (samples, plots, tests).
pub type Probe<'a> = &'a mut dyn FnMut(&'static str, f64);

/// A congestion control protocol: one file, registered by one line in `protocols/mod.rs`.
pub trait Protocol: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence for `explicate protocols`.
    fn summary(&self) -> &'static str;
    /// Paper or RFC.
    fn source(&self) -> &'static str;
    /// Parameters of the sender.
    fn params(&self) -> &'static [Param] {
        &[]
    }
    /// Parameters of the router controller.
    fn router_params(&self) -> &'static [Param] {
        &[]
    }
    /// Those of them that are for the router's [`Agent`], of which it has one, and so should be the same at all its ports.
    fn agent_params(&self) -> &'static [Param] {
        &[]
    }
    /// Whether routers speak to its senders: set-up negotiates that, and falls back to TCP if the other end refuses.
    fn explicit(&self) -> bool {
        false
    }
    /// Whether its packets carry a congestion header and pay for its bytes; protocols that say what they have to say in bits
    /// of other headers need none.
    fn congestion_header(&self) -> bool {
        self.explicit()
    }
    /// Whether its controllers answer this packet, as far as a router can tell: those of congestion headers what carries one.
    /// Ports that keep classes by flows apart keep these together.
    fn answers(&self, packet: &Packet) -> bool {
        packet.congestion.is_present()
    }
    /// Whether it copes with routers that have no controller of it, which is otherwise worth a warning.
    fn bears_plain_routers(&self) -> bool {
        false
    }
    /// Length of that header in data packets, bytes.
    fn congestion_header_len(&self) -> u16 {
        if self.congestion_header() { crate::wire::CONGESTION_LEN as u16 } else { 0 }
    }
    /// Whether its receiver adds something to acknowledgements ([`Receiver::on_ack`]); by default only explicit ones do. A
    /// protocol that is not explicit has the header's fields for that, such as the receiver's time stamp.
    fn receiver_speaks(&self) -> bool {
        self.explicit()
    }
    /// A sender for one flow.
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender>;
    /// A receiver for one flow. By default nothing beyond the acknowledgement itself travels back.
    fn receiver(&self) -> Box<dyn Receiver> {
        Box::new(PlainReceiver)
    }
    /// Whether its controller is silent at a port that no data packet of the protocol crosses, acknowledgements alone: then a
    /// driver may leave it out there.
    fn router_needs_data(&self) -> bool {
        true
    }
    /// The protocol whose controllers answer this one's packets, if they are not its own.
    fn controller(&self) -> Option<&'static dyn Protocol> {
        None
    }
    /// A controller for one output port; `None` for end-to-end protocols.
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        let _ = init;
        None
    }
    /// What speaks for a node with such controllers, or at which such flows begin or end; `None` if nobody has to.
    fn agent(&self, init: &AgentInit<'_>) -> Option<Box<dyn Agent>> {
        let _ = init;
        None
    }
}

/// What a sender is made from.
pub struct SenderInit<'a> {
    /// Values of [`Protocol::params`].
    pub values: &'a Values,
    /// Length of a full data packet with all headers, bytes.
    pub packet: f64,
    /// First window, segments.
    pub initial_window: f64,
    /// Rate of the interface that the flow leaves by, the most that it can want.
    pub interface: Rate,
}

/// How much a sender may have in flight, and how fast it may go.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// Congestion window, segments; fractions are kept by the sender.
    pub cwnd: f64,
    /// Spacing of packets, if the law paces: otherwise acknowledgements clock them.
    pub pacing: Option<Rate>,
}

/// What an acknowledgement tells, after recovery has looked at it.
#[non_exhaustive]
pub struct Ack<'a> {
    /// Now.
    pub now: Time,
    /// Segments that this acknowledgement newly covers, cumulatively or by SACK.
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
    /// Neither window nor pace held anything back when this acknowledgement came: it says nothing about the window.
    pub app_limited: bool,
}

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    /// Acknowledgements show a hole (fast retransmit); reported once per episode.
    Duplicates,
    /// The retransmission timer expired; recovery has rolled back.
    Timeout,
    /// Nothing was lost: a router marked a packet (RFC 3168); reported at most once per window.
    Mark,
}

/// A loss or mark, reported before the [`Ack`] that revealed it.
#[non_exhaustive]
pub struct Loss {
    /// Now.
    pub now: Time,
    /// What went wrong.
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

/// The facts at a transmission.
#[non_exhaustive]
pub struct Sent {
    /// Now.
    pub now: Time,
    /// Smoothed round-trip time; zero while unknown.
    pub srtt: Time,
    /// Segments in flight before this packet.
    pub in_flight: u32,
    /// The application has more to send than the window allows.
    pub backlogged: bool,
}

/// What a law is told of; what it does not mind it is not told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Minds {
    /// Which packets [`Sender::on_send`] is for.
    pub sending: Sending,
    /// [`Sender::next_timer`] may be other than never.
    pub time: bool,
}

/// The packets that [`Sender::on_send`] is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sending {
    /// None: it does nothing.
    Nothing,
    /// Those behind which the application has no more. All others carry what [`Sender::state`] says.
    Rest,
    /// All.
    All,
}

impl Sending {
    /// Whether a packet is among them behind which the application has more, or has no more.
    #[inline]
    pub fn includes(self, backlogged: bool) -> bool {
        self as u8 > backlogged as u8
    }
}

/// The window law of one flow. It never looks for lost segments.
pub trait Sender: Send {
    /// Which calls beside those that it must have it wants: asked once.
    fn minds(&self) -> Minds {
        Minds { sending: Sending::All, time: true }
    }
    /// What may be in flight now.
    fn allowance(&self) -> Allowance;
    /// The connection is set up; `rtt` is its first sample.
    fn on_start(&mut self, now: Time, rtt: Time) {
        let _ = (now, rtt);
    }
    /// The flow leaves from this node: told once, before anything is sent.
    fn on_attach(&mut self, own: Address) {
        let _ = own;
    }
    /// A data packet is about to leave: fill in its congestion header.
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        let _ = (packet, sent);
    }
    /// The congestion header of packets that leave before the next acknowledgement, loss or timer, if [`Sending::Rest`]: what
    /// [`Sender::on_send`] would write then.
    fn state(&self, header: &mut Congestion) {
        let _ = header;
    }
    /// An acknowledgement came.
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// [`Sender::on_ack`], then [`Sender::allowance`] and [`Sender::state`]: saves a flow calls, and is not to be overridden.
    fn take_ack(&mut self, ack: &Ack<'_>, allowance: &mut Allowance, header: &mut Congestion) {
        self.on_ack(ack);
        *allowance = self.allowance();
        self.state(header);
    }
    /// A loss or mark was noticed.
    fn on_loss(&mut self, loss: &Loss);
    /// The timer asked for by [`Sender::next_timer`] expired.
    fn on_timer(&mut self, now: Time) {
        let _ = now;
    }
    /// When this sender wants [`Sender::on_timer`].
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Goes on from this window, in segments, as after a loss: no slow start follows. Senders of explicit protocols and of the
    /// laws that they fall back to do so ([`crate::guard`]); by default nothing changes.
    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        let _ = (now, window, srtt);
    }
    /// Which law moves the window.
    fn law(&self) -> Law {
        Law::Own
    }
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}

/// What a receiver returns where every packet is acknowledged at once, if a flow's end may do that itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    /// Nothing.
    Nothing,
    /// The Delta_Throughput of the packet, as Reverse_Feedback; zero if its header is not standard.
    Delta,
    /// Whatever [`Receiver::on_ack`] says.
    Own,
}

/// What the receiving end of a protocol does beyond acknowledging.
pub trait Receiver: Send {
    /// What it returns: asked once, and if that is not its own, not asked for anything else while packets are acknowledged one by
    /// one.
    fn returns(&self) -> Returns {
        Returns::Own
    }
    /// A flow opens. If `marks`, answers of routers count only in packets with a mark, which is returned.
    fn on_open(&mut self, marks: bool) {
        let _ = marks;
    }
    /// A data packet arrived, a duplicate too.
    fn on_data(&mut self, now: Time, packet: &Packet) {
        let _ = (now, packet);
    }
    /// An acknowledgement is about to leave.
    fn on_ack(&mut self, now: Time, ack: &mut Packet) {
        let _ = (now, ack);
    }
}

/// A receiver with nothing to tell.
pub struct PlainReceiver;
impl Receiver for PlainReceiver {
    fn returns(&self) -> Returns {
        Returns::Nothing
    }
}

// ------------------------------------------------------------------------------------------------ routers

/// What a router controller is made from.
pub struct RouterInit<'a> {
    /// Values of [`Protocol::router_params`].
    pub values: &'a Values,
    /// The capacity that the router believes in, bytes/s.
    pub capacity: f64,
    /// Propagation delay of the attached link.
    pub delay: Time,
    /// The port's own stream, for jitter of timers.
    pub rng: Rng,
}

/// What a controller or queue discipline sees of its port.
#[derive(Clone, Copy, Debug)]
pub struct PortView {
    /// The capacity that the operator believes in, bytes/s: never the link's truth.
    pub capacity: f64,
    /// Bytes that wait, without the packet in service.
    pub backlog_bytes: u64,
    /// Packets that wait, without the packet in service.
    pub backlog_packets: u32,
    /// A packet is in service.
    pub busy: bool,
}

/// Why a packet did not enter, or did not survive, a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// No room.
    Overflow,
    /// The discipline chose to, with room left.
    Early,
}

/// A controller: watches the queue of one output port and writes feedback. It is not a queue, and runs over any.
pub trait Router: Send {
    /// A packet came, whatever becomes of it.
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    /// Whether it writes its answer into this packet. What [`Protocol::answers`] tells apart by kind may not be the same: a header of
    /// another form, or an acknowledgement.
    fn speaks_to(&self, packet: &Packet) -> bool {
        let _ = packet;
        false
    }
    /// A packet's last bit leaves; the last chance to write into it.
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    /// Whether arrivals and departures between two timers may be told in any order, as long as those of either kind come in theirs,
    /// and the backlog matters for nothing but the least one that timers and departures saw: asked once. Then a packet may pass
    /// as soon as it comes ([`Router::on_passage_ahead`]), if no timer expires before it has left.
    fn commutes(&self) -> bool {
        false
    }
    /// Bytes that waited, at the least, when packets left that had passed ahead; told before a timer.
    fn on_least_backlog(&mut self, bytes: u64) {
        let _ = bytes;
    }
    /// A packet will leave at `left`: [`Router::on_departure`] of a backlog that is not known yet. Not to be overridden.
    #[inline(always)]
    fn on_departure_ahead(&mut self, left: Time, packet: &mut Packet, port: &PortView) {
        let unknown = PortView { backlog_bytes: u64::MAX, backlog_packets: u32::MAX, busy: true, ..*port };
        self.on_departure(left, packet, &unknown);
    }
    /// A packet comes, and will leave then: [`Router::on_arrival`] too. Not to be overridden.
    fn on_passage_ahead(&mut self, came: Time, left: Time, packet: &mut Packet, port: &PortView) {
        self.on_arrival(came, packet, port);
        self.on_departure_ahead(left, packet, port);
    }
    /// A packet came to an idle port and left it before anything else happened: both of the above in one call, which is all that
    /// this is for. Not to be overridden.
    #[inline(always)]
    fn on_passage(&mut self, came: Time, left: Time, packet: &mut Packet, port: &PortView) {
        let idle = PortView { backlog_bytes: 0, backlog_packets: 0, busy: false, ..*port };
        self.on_arrival(came, packet, &idle);
        self.on_departure(left, packet, &PortView { busy: true, ..idle });
    }
    /// The same for packets that pass one after the other; how many did, and their bytes. Not to be overridden: it is compiled into
    /// each controller, so that one call serves for all of them.
    fn on_passages(&mut self, mut passages: Passages<'_>, port: &PortView) -> (usize, u64) {
        let mut passed = (0, 0);
        while let Some((came, left, packet)) = passages.next() {
            passed = (passed.0 + 1, passed.1 + packet.ip_len as u64);
            self.on_passage(came, left, packet, port);
        }
        passed
    }
    /// A packet was dropped at this port's queue.
    fn on_drop(&mut self, now: Time, packet: &Packet, cause: DropCause, port: &PortView) {
        let _ = (now, packet, cause, port);
    }
    /// The timer asked for by [`Router::next_timer`] expired.
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let _ = (now, port);
    }
    /// When this controller wants [`Router::on_timer`]; it changes there only.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}
