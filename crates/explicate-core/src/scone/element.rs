//! A network element at a port: lowers the advice of SCONE packets that leave.
//!
//! | advises | a flow gets |
//! | --- | --- |
//! | [`Advises::AtMost`] | this rate |
//! | [`Advises::Fair`] | its share of the rate that the port's controller divides among its flows ([`Router::shared`](crate::api::Router::shared)) |
//! | [`Advises::Measured`] | its share of the rate at which the port was seen to send |
//!
//! `flows.rs` has the shares. They follow from what flows send now, not from a rate that a controller moves step by step:
//! advice reaches senders after seconds and binds them for a monitoring period, and such a rate would have run to one of
//! its ends long before.
//!
//! The rate at which a port sends shows only while packets wait: a packet then takes from the departure before its own
//! to its own. Each second with such packets counts as a quarter in a moving average, the first one fully; until then
//! the configured capacity counts.

use alloc::boxed::Box;

use super::flows::Flows;
use crate::api::object::RouterObject;
use crate::api::{AnyRouter, PortView, Probe};
use crate::qdisc::DropCause;
use crate::units::{Rate, Time};
use crate::wire::Packet;
use crate::wire::scone::Advice;

/// Length of a window in which flows and the line are measured.
const WINDOW: Time = Time::secs(1);
/// Weight of the newest window in the measured rate.
const WEIGHT: f64 = 0.25;

/// What an element advises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advises {
    /// This rate, rounded down to one that SCONE has.
    AtMost(Rate),
    /// A share of what the port's controller divides; no advice if it has none.
    Fair,
    /// A share of what the port was seen to send.
    Measured,
}

/// The rate at which a line sends while packets wait.
#[derive(Default)]
struct Line {
    /// When the last packet left, if another one waited.
    busy_since: Option<Time>,
    /// Bytes that left behind another packet in this window, and the time that they took, s.
    bytes: f64,
    seconds: f64,
    /// Bytes/s; zero until it was measured.
    rate: f64,
}

impl Line {
    fn departed(&mut self, now: Time, bytes: u16, more_wait: bool) {
        if let Some(since) = self.busy_since {
            self.bytes += f64::from(bytes);
            self.seconds += now.since(since).as_secs_f64();
        }
        self.busy_since = more_wait.then_some(now);
    }
    fn next_window(&mut self) {
        if self.seconds > 0.0 {
            let seen = self.bytes / self.seconds;
            self.rate = if self.rate > 0.0 { self.rate + WEIGHT * (seen - self.rate) } else { seen };
            (self.bytes, self.seconds) = (0.0, 0.0);
        }
    }
}

/// A port's element, around its controller if it has one.
pub struct Element {
    controller: Option<Box<AnyRouter>>,
    advises: Advises,
    flows: Flows,
    line: Line,
    /// When this window ends.
    until: Time,
    /// The last advice.
    last: Advice,
}

impl Element {
    /// Around this controller.
    pub fn new(advises: Advises, controller: Option<Box<AnyRouter>>) -> Element {
        let (flows, line) = (Flows::default(), Line::default());
        Element { controller, advises, flows, line, until: WINDOW, last: Advice::NONE }
    }

    /// Ends the windows that are over.
    fn catch_up(&mut self, now: Time) {
        if now < self.until {
            return;
        }
        let after = now.since(self.until);
        self.flows.next_window(after >= WINDOW);
        self.line.next_window();
        self.until = now + WINDOW - Time(after.0 % WINDOW.0);
    }

    /// The rate of this flow, bit/s; `None` is no advice.
    fn rate(&self, flow: u32, port: &PortView) -> Option<f64> {
        let capacity = match self.advises {
            Advises::AtMost(rate) => return Some(rate.0 as f64),
            Advises::Fair => self.controller.as_ref().and_then(|controller| controller.shared(port))?,
            Advises::Measured if self.line.rate > 0.0 => self.line.rate,
            Advises::Measured => port.capacity,
        };
        let windows = WINDOW.as_secs_f64();
        Some(8.0 * self.flows.share(flow, capacity * windows) / windows)
    }
}

impl RouterObject for Element {
    fn order_independent(&self) -> bool {
        false
    }
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        if let Some(controller) = &mut self.controller {
            controller.on_arrival(now, packet, port);
        }
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        self.controller.as_ref().is_some_and(|controller| controller.writes_into(packet))
    }
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        if let Some(controller) = &mut self.controller {
            controller.on_departure(now, packet, port);
        }
        let flow = packet.transport.flow();
        if !matches!(self.advises, Advises::AtMost(_)) {
            self.catch_up(now);
            self.line.departed(now, packet.ip_len, port.backlog_packets > 0);
            if packet.is_data() {
                self.flows.count(flow, packet.ip_len);
            }
        }
        if packet.is_data()
            && let Some(said) = packet.congestion.advice()
        {
            self.last = self.rate(flow, port).map_or(Advice::NONE, Advice::at_most);
            packet.congestion.set_advice(said.lowered_to(self.last));
        }
    }
    fn on_least_backlog(&mut self, _bytes: u64) {}
    fn on_drop(&mut self, now: Time, packet: &Packet, cause: DropCause, port: &PortView) {
        if let Some(controller) = &mut self.controller {
            controller.on_drop(now, packet, cause, port);
        }
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        if let Some(controller) = &mut self.controller {
            controller.on_timer(now, port);
        }
    }
    fn next_timer(&self) -> Time {
        self.controller.as_ref().map_or(Time::NEVER, |controller| controller.next_timer())
    }
    fn shared(&self, port: &PortView) -> Option<f64> {
        self.controller.as_ref()?.shared(port)
    }
    fn probe(&self, put: Probe<'_>) {
        if let Some(controller) = &self.controller {
            controller.probe(put);
        }
        put("advised_bps", self.last.rate().unwrap_or(f64::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::testing;
    use crate::wire::flag;

    /// 10 Mbit/s, and `waiting` packets behind the one that leaves.
    fn view(waiting: u32) -> PortView {
        PortView { capacity: 1.25e6, backlog_bytes: 0, backlog_packets: waiting, busy: true }
    }
    /// A data packet of 1250 bytes with this advice.
    fn scone(flow: u32, advice: Advice) -> Packet {
        let mut packet = Packet { ip_len: 1250, ..Packet::EMPTY };
        packet.transport.set_flow(flow);
        packet.congestion.set_advice(advice);
        packet
    }
    /// What a packet of this flow says after the element.
    fn told(element: &mut Element, ms: u64, flow: u32, advice: Advice) -> Advice {
        let mut packet = scone(flow, advice);
        element.on_arrival(Time::millis(ms), &mut packet, &view(0));
        element.on_departure(Time::millis(ms), &mut packet, &view(0));
        packet.congestion.advice().unwrap()
    }

    /// 45 Mbit/s lie between the signals 53 and 54: 44.7 and 50.1.
    #[test]
    fn advice_is_lowered_and_never_raised() {
        let mut element = Element::new(Advises::AtMost(Rate::mbps(45)), None);
        assert_eq!(told(&mut element, 0, 7, Advice::NONE), Advice::from_index(53).unwrap());
        for index in 0..=127 {
            let said = Advice::from_index(index).unwrap();
            assert_eq!(told(&mut element, 1, 7, said).index(), index.min(53));
        }
        assert!((testing::probed(|put| element.probe(put), "advised_bps") / 44_668_359.2 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn other_packets_leave_as_they_came() {
        let mut element = Element::new(Advises::Measured, Some(testing::router(registry::protocol("xcp").unwrap())));
        let mut plain = Packet { ip_len: 1250, ..Packet::EMPTY };
        element.on_departure(Time::ZERO, &mut plain, &view(0));
        assert_eq!(plain.congestion.advice(), None);
        let mut ack = scone(7, Advice::NONE);
        ack.transport.set_flags(flag::ACK);
        element.on_departure(Time::ZERO, &mut ack, &view(0));
        assert_eq!(ack.congestion.advice(), Some(Advice::NONE), "acknowledgements return advice");
    }

    /// Of 10 Mbit/s two flows that send 6 and 4 get half each, by a controller that divides it.
    #[test]
    fn fair_is_what_the_controller_divides() {
        for (name, divided) in [("xcp", 10e6), ("p_xcp", 10e6), ("rcp", 10e6)] {
            let controller = testing::router(registry::protocol(name).unwrap());
            assert_eq!(controller.shared(&view(0)).map(|bytes| 8.0 * bytes), Some(divided));
            let mut element = Element::new(Advises::Fair, Some(controller));
            for ms in 0..1000 {
                let flow = if ms % 10 < 6 { 1 } else { 2 };
                element.on_departure(Time::millis(ms), &mut { scone(flow, Advice::NONE) }, &view(0));
            }
            assert_eq!(told(&mut element, 1000, 1, Advice::NONE), Advice::at_most(5e6), "{name}");
            assert_eq!(
                told(&mut element, 1001, 3, Advice::NONE),
                Advice::at_most(10e6 / 3.0),
                "{name}: one that begins"
            );
        }
        let mut element = Element::new(Advises::Fair, Some(testing::router(registry::protocol("vcp").unwrap())));
        assert_eq!(told(&mut element, 0, 1, Advice::NONE), Advice::NONE, "VCP's router gives no flow a rate");
        assert_eq!(told(&mut Element::new(Advises::Fair, None), 0, 1, Advice::NONE), Advice::NONE);
    }

    /// 1250 bytes every 2 ms are 5 Mbit/s: half of the configured capacity, as the departures of packets that waited show.
    /// After a second at 2.5 Mbit/s the mean has moved by a quarter, to 4.375.
    #[test]
    fn the_line_is_measured_while_packets_wait() {
        let mut element = Element::new(Advises::Measured, None);
        assert_eq!(told(&mut element, 0, 1, Advice::NONE), Advice::at_most(10e6), "nothing measured");
        let mut at = 0;
        let mut second = |gap: u64, waiting: u32, element: &mut Element| {
            for _ in 0..1000 / gap {
                at += gap;
                element.on_departure(Time::millis(at), &mut { scone(1, Advice::NONE) }, &view(waiting));
            }
            element.catch_up(Time::millis(at + 1));
            8.0 * element.line.rate
        };
        assert_eq!(second(2, 0, &mut element), 0.0, "no packet waited");
        let seen = second(2, 3, &mut element);
        assert!((seen / 5e6 - 1.0).abs() < 1e-9, "{seen}");
        let seen = second(4, 1, &mut element);
        assert!((seen / 4.375e6 - 1.0).abs() < 2e-3, "{seen}");
    }
}
