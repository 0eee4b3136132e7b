//! The authors' traits as trait objects, with blanket implementations for every author's type.
//!
//! Associated constants become methods. Methods that make several calls are compiled for each type, so that a driver
//! makes one indirect call. Other crates can use the types `Any*`, but cannot name these traits, so they can neither
//! implement nor override them.

use alloc::boxed::Box;
use core::fmt;

use crate::agent::{Address, Agent, AgentInit};
use crate::api::{
    Ack, Allowance, Loss, PortView, Probe, Protocol, Receiver, Router, RouterInit, Sender, SenderInit, Sent, Undo,
    Writes,
};
use crate::params::{Info, Param, Values};
use crate::rng::Rng;
use crate::transit::{DropCause, Passed, Transits};
use crate::units::Time;
use crate::wire::{Congestion, Packet};

/// Any [`Protocol`].
pub type AnyProtocol = dyn ProtocolObject;
/// Any [`Sender`].
pub type AnySender = dyn SenderObject;
/// Any [`Receiver`].
pub type AnyReceiver = dyn ReceiverObject;
/// Any [`Router`].
pub type AnyRouter = dyn RouterObject;

/// Declares the accessors of an entry's [`Info`] in a trait.
macro_rules! described {
    () => {
        /// Its description in the registry.
        fn info(&self) -> &'static $crate::params::Info;
        /// The name in scenarios and tables.
        fn name(&self) -> &'static str {
            self.info().name
        }
        /// One sentence.
        fn summary(&self) -> &'static str {
            self.info().summary
        }
        /// Paper or RFC.
        fn source(&self) -> &'static str {
            self.info().source
        }
        /// Parameters.
        fn params(&self) -> &'static [$crate::params::Param] {
            self.info().params
        }
    };
}
pub(crate) use described;

pub trait ProtocolObject: Sync {
    described!();
    fn router_params(&self) -> &'static [Param];
    fn agent_params(&self) -> &'static [Param];
    fn explicit(&self) -> bool;
    /// Whether its packets carry a congestion header.
    fn congestion_header(&self) -> bool {
        self.congestion_header_len() > 0
    }
    fn congestion_header_len(&self) -> u16;
    fn bears_plain_routers(&self) -> bool;
    /// Whether its senders use what is returned to them.
    fn needs_feedback(&self) -> bool {
        true
    }
    /// Whether its senders write ECN codes of their own.
    fn own_ecn(&self) -> bool {
        false
    }
    fn controller(&self) -> Option<&'static AnyProtocol>;
    /// Whether it has a controller of its own.
    fn has_router(&self) -> bool;
    /// Whether that divides a rate evenly among its flows ([`Router::shared`]).
    fn has_shares(&self) -> bool {
        false
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender>;
    fn receiver(&self) -> Option<Box<AnyReceiver>>;
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>>;
    fn matches(&self, packet: &Packet) -> bool;
    fn describe(&self, _packet: &Packet, _out: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }
    fn agent(&self, init: &AgentInit<'_>) -> Option<Box<dyn Agent>>;
}

impl<P: Protocol> ProtocolObject for P {
    fn info(&self) -> &'static Info {
        &P::INFO
    }
    fn router_params(&self) -> &'static [Param] {
        P::ROUTER_PARAMS
    }
    fn agent_params(&self) -> &'static [Param] {
        P::AGENT.map_or(&[], |kind| kind.params())
    }
    fn explicit(&self) -> bool {
        P::EXPLICIT
    }
    fn congestion_header_len(&self) -> u16 {
        P::HEADER_LEN
    }
    fn bears_plain_routers(&self) -> bool {
        P::BEARS_PLAIN_ROUTERS
    }
    fn needs_feedback(&self) -> bool {
        P::NEEDS_FEEDBACK
    }
    fn own_ecn(&self) -> bool {
        P::OWN_ECN
    }
    fn controller(&self) -> Option<&'static AnyProtocol> {
        P::CONTROLLER
    }
    fn has_router(&self) -> bool {
        let (values, rng) = (&Values::default(), Rng::stream(0, ""));
        Protocol::router(self, &RouterInit { values, capacity: 1e6, delay: Time::ZERO, rng }).is_some()
    }
    fn has_shares(&self) -> bool {
        let (values, rng) = (&Values::default(), Rng::stream(0, ""));
        let router = Protocol::router(self, &RouterInit { values, capacity: 1e6, delay: Time::ZERO, rng });
        let port = PortView { capacity: 1e6, backlog_bytes: 0, backlog_packets: 0, busy: false };
        router.is_some_and(|router| router.shared(&port).is_some())
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Protocol::sender(self, init)
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Protocol::receiver(self)
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Protocol::router(self, init)
    }
    fn matches(&self, packet: &Packet) -> bool {
        Protocol::matches(self, packet)
    }
    fn describe(&self, packet: &Packet, out: &mut dyn fmt::Write) -> fmt::Result {
        P::DESCRIBE(packet, out)
    }
    fn agent(&self, init: &AgentInit<'_>) -> Option<Box<dyn Agent>> {
        P::AGENT.map(|kind| kind.build(init))
    }
}

/// Which controller sets the window of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActiveController {
    /// The controller of its protocol.
    Own,
    /// The controller of its protocol, limited to TCP's window: the path is congested where no router answers.
    Limited,
    /// TCP: no router answers.
    Fallback,
}

/// The optional calls that a sender needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// What [`Sender::on_send`] writes.
    pub writes: Writes,
    /// [`Sender::next_timer`] may return a time other than never.
    pub timer: bool,
}

impl Interest {
    /// Whether [`Sender::on_send`] is called for a packet, given whether the application has more data.
    #[inline]
    pub fn in_packet(self, backlogged: bool) -> bool {
        self.writes as u8 > backlogged as u8
    }
}

/// Checks the timer of a sender or router after `on_timer`: one that does not move on would expire forever.
#[inline]
fn moved_on(whose: &str, now: Time, next: Time) {
    assert!(next > now, "the timer of a {whose} did not move on: after on_timer at {now} it is at {next}");
}

pub trait SenderObject: Send {
    /// Constant throughout the life of a sender.
    fn interest(&self) -> Interest;
    /// [`Sender::LIMITS_REPAIR`].
    fn limits_repair(&self) -> bool {
        false
    }
    fn allowance(&self) -> Allowance;
    fn on_start(&mut self, now: Time, rtt: Time);
    fn on_attach(&mut self, own: Address);
    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time);
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent);
    /// Writes the header that packets carry until the next acknowledgement, loss or timer, if [`Writes::PerEvent`].
    #[inline(always)]
    fn state(&mut self, header: &mut Congestion) {
        if self.interest().writes == Writes::PerEvent {
            let mut packet = Packet { congestion: *header, ..Packet::EMPTY };
            self.on_send(&mut packet, &Sent { now: Time::ZERO, in_flight: 0, backlogged: true });
            *header = packet.congestion;
        }
    }
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// [`Sender::on_ack`], followed by the new allowance and header.
    fn take_ack(&mut self, ack: &Ack<'_>, allowance: &mut Allowance, header: &mut Congestion) {
        self.on_ack(ack);
        *allowance = self.allowance();
        self.state(header);
    }
    fn on_loss(&mut self, loss: &Loss);
    fn threshold(&self) -> f64;
    fn on_undo(&mut self, undo: &Undo);
    fn on_timer(&mut self, now: Time);
    fn next_timer(&self) -> Time;
    fn resume(&mut self, now: Time, window: f64, srtt: Time);
    /// Which controller sets the window.
    fn active_controller(&self) -> ActiveController {
        ActiveController::Own
    }
    fn probe(&self, put: Probe<'_>);
}

impl<S: Sender> SenderObject for S {
    #[inline(always)]
    fn interest(&self) -> Interest {
        Interest { writes: S::WRITES, timer: S::HAS_TIMER }
    }
    #[inline(always)]
    fn limits_repair(&self) -> bool {
        S::LIMITS_REPAIR
    }
    #[inline(always)]
    fn allowance(&self) -> Allowance {
        Sender::allowance(self)
    }
    fn on_start(&mut self, now: Time, rtt: Time) {
        Sender::on_start(self, now, rtt);
    }
    fn on_attach(&mut self, own: Address) {
        Sender::on_attach(self, own);
    }
    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        Sender::on_idle(self, now, idle, timeout);
    }
    #[inline(always)]
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        Sender::on_send(self, packet, sent);
    }
    #[inline(always)]
    fn on_ack(&mut self, ack: &Ack<'_>) {
        Sender::on_ack(self, ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        Sender::on_loss(self, loss);
    }
    fn threshold(&self) -> f64 {
        Sender::threshold(self)
    }
    fn on_undo(&mut self, undo: &Undo) {
        Sender::on_undo(self, undo);
    }
    fn on_timer(&mut self, now: Time) {
        Sender::on_timer(self, now);
        moved_on("sender", now, Sender::next_timer(self));
    }
    fn next_timer(&self) -> Time {
        Sender::next_timer(self)
    }
    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        Sender::resume(self, now, window, srtt);
    }
    fn probe(&self, put: Probe<'_>) {
        Sender::probe(self, put);
    }
}

pub trait ReceiverObject: Send {
    fn echoes(&self) -> bool;
    fn highest_counts(&self) -> bool {
        false
    }
    fn on_open(&mut self, marks: bool);
    fn on_data(&mut self, now: Time, packet: &Packet);
    fn on_ack(&mut self, now: Time, ack: &mut Packet);
}

impl<R: Receiver> ReceiverObject for R {
    fn echoes(&self) -> bool {
        R::ECHOES
    }
    fn highest_counts(&self) -> bool {
        R::HIGHEST_COUNTS
    }
    fn on_open(&mut self, marks: bool) {
        Receiver::on_open(self, marks);
    }
    fn on_data(&mut self, now: Time, packet: &Packet) {
        Receiver::on_data(self, now, packet);
    }
    fn on_ack(&mut self, now: Time, ack: &mut Packet) {
        Receiver::on_ack(self, now, ack);
    }
}

pub trait RouterObject: Send {
    fn order_independent(&self) -> bool;
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    fn writes_into(&self, packet: &Packet) -> bool;
    fn shared(&self, _port: &PortView) -> Option<f64> {
        None
    }
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView);
    fn on_least_backlog(&mut self, bytes: u64);
    fn on_drop(&mut self, now: Time, packet: &Packet, cause: DropCause, port: &PortView);
    fn on_timer(&mut self, now: Time, port: &PortView);
    fn next_timer(&self) -> Time;
    fn probe(&self, put: Probe<'_>);
    /// A packet will leave at `left`: calls [`Router::on_departure`] with an unknown backlog.
    #[inline(always)]
    fn on_departure_ahead(&mut self, left: Time, packet: &mut Packet, port: &PortView) {
        let unknown = PortView { backlog_bytes: u64::MAX, backlog_packets: u32::MAX, busy: true, ..*port };
        self.on_departure(left, packet, &unknown);
    }
    /// [`Router::on_arrival`], then [`RouterObject::on_departure_ahead`].
    fn on_transit_ahead(&mut self, came: Time, left: Time, packet: &mut Packet, port: &PortView) {
        self.on_arrival(came, packet, port);
        self.on_departure_ahead(left, packet, port);
    }
    /// Arrival at an idle port and departure from it, with no other event between them.
    #[inline(always)]
    fn on_transit(&mut self, came: Time, left: Time, packet: &mut Packet, port: &PortView) {
        let idle = PortView { backlog_bytes: 0, backlog_packets: 0, busy: false, ..*port };
        self.on_arrival(came, packet, &idle);
        self.on_departure(left, packet, &PortView { busy: true, ..idle });
    }
    /// [`RouterObject::on_transit`] for consecutive packets; returns their number and their bytes.
    fn on_transits(&mut self, mut transits: Transits<'_>, port: &PortView) -> Passed {
        let mut passed = Passed::default();
        while let Some((came, left, packet)) = transits.next() {
            passed.packets += 1;
            passed.bytes += packet.ip_len as u64;
            self.on_transit(came, left, packet, port);
        }
        passed
    }
}

impl<R: Router> RouterObject for R {
    fn order_independent(&self) -> bool {
        R::ORDER_INDEPENDENT
    }
    #[inline(always)]
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        Router::on_arrival(self, now, packet, port);
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        Router::writes_into(self, packet)
    }
    fn shared(&self, port: &PortView) -> Option<f64> {
        Router::shared(self, port)
    }
    #[inline(always)]
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        Router::on_departure(self, now, packet, port);
    }
    fn on_least_backlog(&mut self, bytes: u64) {
        Router::on_least_backlog(self, bytes);
    }
    fn on_drop(&mut self, now: Time, packet: &Packet, cause: DropCause, port: &PortView) {
        Router::on_drop(self, now, packet, cause, port);
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        Router::on_timer(self, now, port);
        moved_on("router", now, Router::next_timer(self));
    }
    fn next_timer(&self) -> Time {
        Router::next_timer(self)
    }
    fn probe(&self, put: Probe<'_>) {
        Router::probe(self, put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::PROTOCOLS;
    use crate::testing::sent;
    use crate::units::Rate;
    use crate::wire::{Ecn, Format};

    /// Its timer does not move on.
    struct Stuck;

    impl Sender for Stuck {
        fn allowance(&self) -> Allowance {
            Allowance { cwnd: 1.0, pacing: None }
        }
        fn on_ack(&mut self, _ack: &Ack<'_>) {}
        fn on_loss(&mut self, _loss: &Loss) {}
        fn next_timer(&self) -> Time {
            Time::millis(5)
        }
        fn probe(&self, _put: Probe<'_>) {}
    }
    impl Router for Stuck {
        fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
        fn on_departure(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
        fn next_timer(&self) -> Time {
            Time::millis(5)
        }
        fn probe(&self, _put: Probe<'_>) {}
    }

    /// It would expire forever.
    #[test]
    #[should_panic(
        expected = "the timer of a sender did not move on: after on_timer at 0.005000000s it is at 0.005000000s"
    )]
    fn a_sender_s_timer_moves_on() {
        let sender: &mut AnySender = &mut Stuck;
        sender.on_timer(Time::millis(5));
    }

    #[test]
    #[should_panic(
        expected = "the timer of a router did not move on: after on_timer at 0.005000000s it is at 0.005000000s"
    )]
    fn a_router_s_timer_moves_on() {
        let router: &mut AnyRouter = &mut Stuck;
        router
            .on_timer(Time::millis(5), &PortView { capacity: 1e6, backlog_bytes: 0, backlog_packets: 0, busy: false });
    }
    #[test]
    fn senders_write_ecn_codes_if_they_say_so() {
        for protocol in PROTOCOLS {
            let values = &Values::default();
            let init = SenderInit { values, packet: 1000.0, initial_window: 3.0, interface: Rate::mbps(100) };
            let mut sender = protocol.sender(&init);
            sender.on_start(Time::ZERO, Time::millis(100));
            let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
            sender.on_send(&mut packet, &sent(Time::ZERO, 0));
            assert_eq!(packet.ecn() != Ecn::NotCapable, protocol.own_ecn(), "{}", protocol.name());
        }
    }
}
