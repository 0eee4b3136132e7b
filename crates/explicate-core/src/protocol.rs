//! Read this first: what a protocol, a recovery, a queue discipline, a router controller, a channel and an agent are.
//!
//! A *sender* decides how much may be in flight, a *recovery* which segment goes next, a *receiver* what an
//! acknowledgement carries back, a *router* watches the queue of an output port and writes feedback into departing
//! packets, a *queue discipline* decides which arriving packets enter the queue, a *channel* what the link does to
//! them. Each is a state machine that is told the time. [`crate::flow`] and [`crate::port`] compose them.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::params::{Param, Values};
use crate::port::Waiting;
use crate::qdisc::common::Room;
use crate::recovery::steady::Steady;
use crate::rng::Rng;
use crate::units::{Rate, Time};
use crate::wire::{Congestion, Packet, Transport};

/// Receives a machine's variables by name: the one way to look inside (samples, plots, tests).
pub type Probe<'a> = &'a mut dyn FnMut(&'static str, f64);

// ---------------------------------------------------------------------------------------------- protocols

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

/// Which law moves the window of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// That of its protocol.
    Own,
    /// That of its protocol within the window of TCP: the path is congested where no router answers.
    Limited,
    /// That of TCP: no router answers.
    Fallback,
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

/// Packets that come to an idle port, of which those pass that have left before the next one comes, and by a certain time.
pub struct Passages<'a> {
    /// In order of arrival; none that the channel loses.
    pub queue: &'a [Waiting],
    /// When the one after these comes.
    pub after: Time,
    /// When they must have left.
    pub until: Time,
    /// What each one's TTL falls by.
    pub hops: u8,
    /// All packets, by handle.
    pub packets: &'a mut [Packet],
}

impl Passages<'_> {
    /// The next one that passes, with its TTL counted down: when it comes, when it leaves, and itself.
    #[inline(always)]
    fn next(&mut self) -> Option<(Time, Time, &mut Packet)> {
        let (first, rest) = self.queue.split_first()?;
        let after = rest.first().map_or(self.after, |next| next.arrives);
        if first.departs > self.until || after < first.departs {
            return None;
        }
        self.queue = rest;
        let packet = &mut self.packets[first.handle as usize];
        packet.ttl = packet.ttl.saturating_sub(self.hops);
        Some((first.arrives, first.departs, packet))
    }
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

// ----------------------------------------------------------------------------------------------- recovery

/// How lost segments are found and resent: one file, registered by one line in `recovery/mod.rs`.
pub trait RecoveryKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Paper or RFC.
    fn source(&self) -> &'static str;
    /// Parameters beyond those that every recovery has ([`crate::recovery::COMMON`]).
    fn params(&self) -> &'static [Param] {
        &[]
    }
    /// Whether everything arrives in the end. If not, nothing is sent twice, the receiver passes over what is missing, and
    /// acknowledgements carry the number of segments that have arrived in place of the next one expected.
    fn reliable(&self) -> bool {
        true
    }
    /// Whether the receiver is asked for SACK ranges.
    fn wants_sack(&self) -> bool {
        false
    }
    /// A recovery for one flow; `values` may hold the common parameters too.
    fn build(&self, values: &Values) -> Box<dyn Recovery>;
}

/// What recovery makes of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Segments that left the network by this acknowledgement (cumulative or SACK).
    pub newly_acked: u32,
    /// The cumulative number did not move although data was outstanding.
    pub duplicate: bool,
    /// A loss episode began with this acknowledgement; segments in flight before it.
    pub loss: Option<u32>,
}

/// Where a flow stands, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryState {
    /// All segments before this one are acknowledged.
    pub acked: u32,
    /// The segment that [`Next::New`] means.
    pub next: u32,
    /// One past the highest segment ever sent.
    pub highest: u32,
    /// Segments in flight, as this recovery estimates them.
    pub in_flight: u32,
    /// A loss is being repaired.
    pub recovering: bool,
    /// Smoothed round-trip time; zero while unknown.
    pub srtt: Time,
    /// When the retransmission timer expires.
    pub timer: Time,
}

/// What to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next segment in sequence (after a timeout this may be one sent before).
    New,
    /// This segment again.
    Resend(u32),
    /// The window is full.
    Nothing,
}

/// Sequence space, duplicates, inflation and timers of one flow. It never touches the window.
pub trait Recovery: Send {
    /// A packet left: `segment` was what [`Recovery::next`] named.
    fn on_sent(&mut self, now: Time, segment: u32, packet_number: u32);
    /// An acknowledgement came. `rtt` is the sample of its echoed time stamp.
    fn on_ack(&mut self, now: Time, cumulative: u32, packet_number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome;
    /// What to send next within `cwnd` and the receiver's window, both in segments.
    fn next(&self, cwnd: f64, rwnd: u32) -> Next;
    /// The application has nothing more, though the window has room: a segment to resend instead (RFC 6675, NextSeg 3 and 4).
    fn spare(&self) -> Option<u32> {
        None
    }
    /// Where the flow stands.
    fn state(&self) -> RecoveryState;
    /// [`Recovery::on_ack`], then [`Recovery::state`]. This and the next one save a flow calls, and are not to be overridden.
    fn take_ack(
        &mut self,
        now: Time,
        cumulative: u32,
        packet_number: u32,
        sack: &[(u32, u32)],
        rtt: Time,
        state: &mut RecoveryState,
    ) -> Outcome {
        let outcome = self.on_ack(now, cumulative, packet_number, sack, rtt);
        *state = self.state();
        outcome
    }
    /// Lends its counts to the flow while nothing is missing, nothing is resent and all that is outstanding is in flight: until it
    /// takes them back, it is told nothing of acknowledgements in order and of new segments. By default it does not.
    fn lend(&self) -> Option<Steady> {
        None
    }
    /// Takes back what it has lent.
    fn take_back(&mut self, steady: &Steady, at: &RecoveryState) {
        let _ = (steady, at);
    }
    /// [`Recovery::on_sent`], then [`Recovery::state`] and [`Recovery::next`].
    fn take_sent(&mut self, now: Time, sent: (u32, u32), windows: (f64, u32), state: &mut RecoveryState) -> Next {
        self.on_sent(now, sent.0, sent.1);
        *state = self.state();
        self.next(windows.0, windows.1)
    }
    /// The segment that [`Next::New`] means.
    fn next_segment(&self) -> u32 {
        self.state().next
    }
    /// Segments up to this one (excluded) are acknowledged.
    fn acknowledged(&self) -> u32 {
        self.state().acked
    }
    /// One past the highest segment ever sent.
    fn highest_sent(&self) -> u32 {
        self.state().highest
    }
    /// Segments in flight, as this recovery estimates them.
    fn in_flight(&self) -> u32 {
        self.state().in_flight
    }
    /// A loss is being repaired.
    fn recovering(&self) -> bool {
        self.state().recovering
    }
    /// When the retransmission timer expires.
    fn next_timer(&self) -> Time {
        self.state().timer
    }
    /// Smoothed round-trip time; zero while unknown.
    fn srtt(&self) -> Time {
        self.state().srtt
    }
    /// The retransmission timer expired: rolls back for a restart and returns the segments that were in flight, or `None` if
    /// nothing was outstanding.
    fn on_timer(&mut self, now: Time) -> Option<u32>;
    /// A round-trip time is known without data having been acknowledged (connection set-up).
    fn on_rtt(&mut self, rtt: Time);
    /// Timeouts since the last acknowledgement of new data.
    fn backoffs(&self) -> u32;
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}

// ----------------------------------------------------------------------------------------- queue disciplines

/// A queue discipline: one file, registered by one line in `qdisc/mod.rs`.
pub trait QdiscKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Paper or RFC.
    fn source(&self) -> &'static str;
    /// Parameters.
    fn params(&self) -> &'static [Param];
    /// A discipline for one queue.
    fn build(&self, init: &QdiscInit<'_>) -> Discipline;
}

/// The two forms of a queue discipline.
pub enum Discipline {
    /// Decides when a packet comes. What it admits departs in order, so that departures are known in advance.
    Arrival(Box<dyn Qdisc>),
    /// Decides when the line falls free, so its port is polled.
    Departure(Box<dyn ActiveQueue>),
}

/// What a queue discipline is made from.
pub struct QdiscInit<'a> {
    /// Values of [`QdiscKind::params`]; lengths in bytes.
    pub values: &'a Values,
    /// Nominal capacity, bytes/s.
    pub capacity: f64,
    /// Typical length of a packet, bytes: turns lengths in packets to bytes and back.
    pub mean_packet: f64,
    /// The queue's own stream.
    pub rng: Rng,
}

/// What becomes of an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It joins the queue.
    Accept,
    /// It joins the queue with its ECN field set to CE.
    Mark,
    /// It is dropped.
    Drop(DropCause),
}

/// Admission to a first-in first-out queue: packets that were admitted depart in order.
pub trait Qdisc: Send {
    /// A packet came. `idle_since` is when this queue had nothing more to send, `None` while it has.
    fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView, idle_since: Option<Time>) -> Verdict;
    /// A packet's last bit leaves.
    fn on_departure(&mut self, now: Time, port: &PortView) {
        let _ = (now, port);
    }
    /// Whether [`Qdisc::on_departure`] does anything: asked once.
    fn minds_departures(&self) -> bool {
        true
    }
    /// The room that this discipline is, if all that it does is to drop what does not fit behind the packets that wait, and
    /// nothing while no packet is in service: asked once, and never for anything else.
    fn room(&self) -> Option<Room> {
        None
    }
    /// The timer asked for by [`Qdisc::next_timer`] expired.
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let _ = (now, port);
    }
    /// When this discipline wants [`Qdisc::on_timer`]; it changes there only.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}

/// A packet as an [`ActiveQueue`] keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// What the port knows it by.
    pub handle: u32,
    /// IP length, bytes.
    pub bytes: u16,
    /// It may be marked instead of dropped.
    pub capable: bool,
    /// When it came.
    pub since: Time,
}

/// Packets that an [`ActiveQueue`] gave up.
pub type Gone = Vec<(Queued, DropCause)>;

/// A queue that holds its packets itself: it chooses which one goes next when the line falls free, and may then drop or mark.
pub trait ActiveQueue: Send {
    /// A packet came, of which `packet` are the headers. What finds no room is `gone`: this packet or others. The port counts
    /// what waits, and asks for packets until none does.
    fn enqueue(&mut self, queued: Queued, packet: &Packet, gone: &mut Gone);
    /// The packet to send now, and whether it is to be marked; `None` if nothing is left. Dropped ones are `gone`.
    fn dequeue(&mut self, now: Time, gone: &mut Gone) -> Option<(Queued, bool)>;
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>);
}

// ------------------------------------------------------------------------------------------------ channels

/// A channel: one file, registered by one line in `channel/mod.rs`.
pub trait ChannelKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Where the model or format comes from.
    fn source(&self) -> &'static str;
    /// Parameters.
    fn params(&self) -> &'static [Param];
    /// What is wrong with values that are each within their bounds but mean nothing together, as a sentence.
    fn check(&self, values: &Values) -> Result<(), String> {
        let _ = values;
        Ok(())
    }
    /// The stages that this channel adds to a link.
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages;
    /// Tells what its model predicts of packets like this one, sent back to back: `packet_loss`, the probability that one is
    /// lost, and whatever else it has in closed form. By default nothing.
    fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>) {
        let _ = (values, packet, put);
    }
    /// Tells the same of `trials` packets that are drawn.
    fn observe(&self, init: ChannelInit<'_>, packet: &Packet, trials: u64, put: Probe<'_>) {
        let gap = Time::from_secs_f64(packet.ip_len as f64 / init.rate.bytes_per_sec());
        let mut stages = self.build(init);
        let (mut now, mut lost) = (Time::ZERO, 0u64);
        for _ in 0..trials {
            now += gap;
            let pass = |stage: &mut Option<Box<dyn Channel>>| {
                stage.as_mut().is_some_and(|channel| channel.loses(now, packet, packet.ip_len as u32))
            };
            lost += (pass(&mut stages.before) || pass(&mut stages.on_air)) as u64;
        }
        put("packet_loss", lost as f64 / trials as f64);
    }
}

/// What a channel is made from.
pub struct ChannelInit<'a> {
    /// Values of [`ChannelKind::params`].
    pub values: &'a Values,
    /// Nominal rate of the line.
    pub rate: Rate,
    /// The channel's own stream.
    pub rng: Rng,
}

/// What a channel consists of: any of the stages that a packet passes, in this order.
#[derive(Default)]
pub struct ChannelStages {
    /// Loses packets before the queue sees them (in a kernel or driver).
    pub before: Option<Box<dyn Channel>>,
    /// Makes packets longer on the line than they are as IP datagrams.
    pub coding: Option<Box<dyn Coding>>,
    /// Replaces the link's constant rate.
    pub service: Option<Box<dyn ServiceCurve>>,
    /// Loses packets that have been sent, in departure order (on the air: the link's time is spent).
    pub on_air: Option<Box<dyn Channel>>,
    /// Delays, doubles or damages what was not lost. Departures of the port are then polled.
    pub after: Option<Box<dyn Disturbance>>,
}

/// A process of losses.
pub trait Channel: Send {
    /// Whether a packet of `wire_bytes` that passes at `at` is lost. Called once per packet, in order.
    fn loses(&mut self, at: Time, packet: &Packet, wire_bytes: u32) -> bool;
}

/// What adds bytes to packets on the line, as error correction does. Queue and controllers see IP bytes all the same.
pub trait Coding: Send {
    /// Bytes on the line of a packet that has `bytes` without this coding.
    fn wire_bytes(&mut self, packet: &Packet, bytes: u32) -> u32;
    /// IP bytes per byte on the line of long data packets: what an operator takes off the rate.
    fn efficiency(&self) -> f64;
}

/// What happens to a packet that arrives.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Disturbed {
    /// It arrives this much later.
    pub late: Time,
    /// A copy of it arrives this much after its departure and the link's delay.
    pub copy: Option<Time>,
    /// Bits of it are wrong: whoever it is for drops it.
    pub damaged: bool,
}

/// Delays, doubles or damages packets.
pub trait Disturbance: Send {
    /// What becomes of a packet that departs at `at`. Called once per packet, in order.
    fn disturb(&mut self, at: Time, packet: &Packet) -> Disturbed;
}

/// A cumulative service curve known in advance.
pub trait ServiceCurve: Send {
    /// When the last byte leaves of a packet of `bytes` that may start at `start` (not before an earlier packet's finish).
    /// `idle` says that the queue was empty, so service left over from before `start` is gone.
    fn finish(&mut self, start: Time, bytes: u32, idle: bool) -> Time;
    /// Bytes that the curve offers in `(from, to]`.
    fn offered(&self, from: Time, to: Time) -> f64;
    /// What an operator would believe, bytes/s: the mean over a long time, or the rate that a line has when it works.
    fn mean_rate(&self) -> f64;
}

// --------------------------------------------------------------------------------------------------- media

/// A shared medium: one file, registered by one line in `medium/mod.rs`.
pub trait MediumKind: Sync {
    /// The name in scenarios and tables.
    fn name(&self) -> &'static str;
    /// One sentence.
    fn summary(&self) -> &'static str;
    /// Standard or paper.
    fn source(&self) -> &'static str;
    /// Parameters.
    fn params(&self) -> &'static [Param];
    /// Nominal rate between two stations.
    fn rate(&self, values: &Values) -> Rate;
    /// Whether two stations may use this rate.
    fn has_rate(&self, rate: Rate) -> bool;
    /// Longest link, metres.
    fn reach(&self, values: &Values) -> f64;
}

// -------------------------------------------------------------------------------------------------- agents

/// Address of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address(pub u32);

/// Bytes of a control message that a packet can carry in place of its headers' fields.
pub const CONTROL_LEN: usize = 28;

/// A message between agents; travels as a packet through the same queues as data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// The other node: destination when polled, origin when handled.
    pub peer: Address,
    /// Length of the IP datagram, bytes.
    pub ip_len: u16,
    /// The message.
    pub message: [u8; CONTROL_LEN],
}

/// What an agent is made from.
pub struct AgentInit<'a> {
    /// Values of [`Protocol::router_params`].
    pub values: &'a Values,
    /// The node.
    pub own: Address,
    /// The agent's own stream.
    pub rng: Rng,
}

/// What a driver that knows the truth about the network tells of it, for estimators that are to be perfect.
pub trait PathOracle {
    /// Tells of every link on the way from one node to another, in order: its number, the bytes that its line could carry since
    /// `since`, and the bytes that have come to it so far. Tells nothing if there is no way.
    fn links(&mut self, from: Address, to: Address, since: Time, tell: &mut dyn FnMut(u32, f64, f64));
}

/// What speaks for a node: answers and sends messages that are routed to nodes, not ports (XCP-i requests, probes).
pub trait Agent: Send {
    /// A message for this node arrived.
    fn handle_control(&mut self, now: Time, control: &Control);
    /// The next message to send.
    fn poll_control(&mut self, now: Time) -> Option<Control>;
    /// The timer asked for by [`Agent::poll_timeout`] expired.
    fn handle_timeout(&mut self, now: Time);
    /// When this agent wants [`Agent::handle_timeout`].
    fn poll_timeout(&self) -> Time;
    /// A packet of a flow to the node `to` has reached this node, before it joins the output port that `port` is a view of, or
    /// is delivered here. Returns whether there is something to send or a new timer.
    fn handle_data(&mut self, now: Time, packet: &mut Packet, to: Address, port: Option<&PortView>) -> bool {
        let _ = (now, packet, to, port);
        false
    }
    /// The timer is about to expire: what an agent may ask of one who knows the truth.
    fn consult(&mut self, now: Time, oracle: &mut dyn PathOracle) {
        let _ = (now, oracle);
    }
    /// Tells its variables.
    fn probe(&self, put: Probe<'_>) {
        let _ = put;
    }
    /// Tells what it keeps about each other node.
    fn probe_peers(&self, put: &mut dyn FnMut(Address, &'static str, f64)) {
        let _ = put;
    }
}
