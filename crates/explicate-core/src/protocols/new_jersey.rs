//! TCP New Jersey (K. Xu, Y. Tian, N. Ansari, "TCP-Jersey for wireless IP communications", IEEE JSAC 22(4), 2004; "Improving TCP
//! performance in integrated wireless communications networks", Computer Networks 47(2), 2005), with congestion warning.
//!
//! Two mechanisms distinguish congestion losses from transmission errors. Routers warn: while their average queue
//! exceeds a threshold, they mark every packet of ECN-capable flows, so that a loss among marks is congestion and any
//! other is an error. And the sender measures its bandwidth, as Westwood does, but from the times at which packets
//! arrived, which the receiver reports as time stamps, so the delay of acknowledgements does not matter. A warning
//! sets the window to that bandwidth times the least round-trip time. After a loss without warning the sender
//! retransmits and keeps its window.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | R_n | `bandwidth` | segments/s | (RTT R_{n-1} + L_n) / (t_n - t_{n-1} + RTT) | JSAC 2004, ABE |
//! | L_n | `Arrivals` | segments | | ABE |
//! | t_n | [`Transport::receiver_stamp`] | 16 us | | 2005, time-stamp based ABE |
//! | RTT | `srtt` | s | | ABE |
//! | ownd | `own_window` | segments | RTTmin R_n, at least 2 | ABE |
//! | explicit retransmit | a loss without mark | | window unchanged | JSAC 2004 |
//! | rate control | a mark, or a loss with one | | ssthresh = cwnd = ownd | JSAC 2004 |
//! | threshold | `threshold` | s of queue | 0.01, ours | CW |
//! | weight | `weight` | | 0.2, ours | CW |
//!
//! Deviations:
//! 1. The threshold is a time, which the configured capacity converts to bytes, so that one value serves ports of all
//!    speeds. The papers' values of threshold and weight were not available.
//! 2. Warnings act once per window (RFC 3168 section 6.1.2).
//! 3. Without the receiver's time stamps (a receiver of plain TCP) the times are those of the acknowledgements, as in
//!    TCP Jersey.
//! 4. Without warnings losses never reduce the window, by the rules of the paper: only the timer does.

use alloc::boxed::Box;

use crate::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, LossKind, PortView, Probe, Protocol, Receiver, Router,
    RouterInit, Sender, SenderInit, Undo, measured_ms,
};
use crate::params::{Fraction, Info, Param, Seconds, parameters};
use crate::protocols::common::delivery::Arrivals;
use crate::protocols::common::window::{Window, WindowParams};
use crate::units::Time;
use crate::wire::{Ecn, Packet, receiver_span, receiver_stamp};

#[cfg(doc)]
use crate::wire::Transport;

/// TCP New Jersey.
pub struct NewJersey;

parameters! {
    /// Router parameters.
    struct Params {
        /// Average queue beyond which all packets are marked, in seconds at the configured capacity.
        threshold: Seconds = 0.01, in 0.0..=10.0, "Xu, Tian, Ansari 2004, congestion warning; the value is ours";
        /// Weight of a new sample in the average queue.
        weight: Fraction = 0.2, in 1e-6..=1.0, "Xu, Tian, Ansari 2004, congestion warning; the value is ours";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for NewJersey {
    const INFO: Info = Info {
        name: "new_jersey",
        summary: "TCP New Jersey: routers warn of congestion; a loss without a warning does not reduce the window",
        source: "Xu, Tian, Ansari, IEEE JSAC 2004 and Computer Networks 2005",
        params: &[],
    };
    const ROUTER_PARAMS: &'static [Param] = Params::PARAMS;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(NewJerseySender {
            window: Window::of(init, Params::of(init.values).window),
            arrivals: Arrivals::default(),
            bandwidth: 0.0,
            rtt_min: Time::NEVER,
            stamp: 0,
            last: Time::ZERO,
        })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::new(StampingReceiver { arrived: Time::ZERO }))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        let params = Params::of(init.values);
        let threshold = params.threshold * init.capacity;
        Some(Box::new(WarningRouter { threshold, weight: params.weight, average: 0.0 }))
    }
}

struct NewJerseySender {
    window: Window,
    arrivals: Arrivals,
    /// R, segments/s; zero while unknown.
    bandwidth: f64,
    rtt_min: Time,
    /// The receiver's time stamp in the last acknowledgement, and the arrival of that acknowledgement.
    stamp: u16,
    last: Time,
}

impl NewJerseySender {
    /// Estimates the available bandwidth at every acknowledgement.
    fn estimate(&mut self, ack: &Ack<'_>) {
        let arrived = self.arrivals.count(ack) as f64;
        let stamp = ack.transport.receiver_stamp();
        let own = ack.now.since(self.last);
        let gap = receiver_span(self.stamp, stamp, own).unwrap_or(own).as_secs_f64();
        let rtt = ack.srtt.as_secs_f64();
        self.rtt_min = self.rtt_min.min(ack.rtt);
        self.bandwidth = (rtt * self.bandwidth + arrived) / (gap + rtt).max(1e-9);
        (self.stamp, self.last) = (stamp, ack.now);
    }
}

impl Sender for NewJerseySender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.window.cwnd, pacing: None }
    }

    fn on_start(&mut self, now: Time, rtt: Time) {
        self.last = now;
        self.rtt_min = rtt;
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.estimate(ack);
        if self.window.grows(ack) && !self.window.slow_start(ack.newly_acked, 1.0) {
            self.window.rise(1.0, ack.newly_acked);
        }
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind == LossKind::Duplicates && !loss.marked {
            return; // explicit retransmit
        }
        let own_window = self.bandwidth * self.rtt_min.as_secs_f64();
        if self.rtt_min == Time::NEVER || own_window == 0.0 {
            return self.window.reduce(loss, 0.5);
        }
        self.window.reduce_to(loss, own_window);
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("bandwidth_segments_per_s", self.bandwidth);
        put("rtt_min_ms", measured_ms(self.rtt_min));
    }
}

/// Returns the time of arrival of the data with each acknowledgement.
struct StampingReceiver {
    arrived: Time,
}

impl Receiver for StampingReceiver {
    fn on_data(&mut self, now: Time, _packet: &Packet) {
        self.arrived = now;
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        ack.transport.set_receiver_stamp(receiver_stamp(self.arrived));
    }
}

/// Congestion warning.
struct WarningRouter {
    /// Bytes.
    threshold: f64,
    weight: f64,
    /// Bytes.
    average: f64,
}

impl Router for WarningRouter {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, port: &PortView) {
        self.average += self.weight * (port.backlog_bytes as f64 - self.average);
    }
    fn on_departure(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        if self.average > self.threshold && matches!(packet.ecn(), Ecn::Capable0 | Ecn::Capable1) {
            packet.set_ecn(Ecn::Marked);
        }
    }
    fn probe(&self, put: Probe<'_>) {
        put("average_queue_bytes", self.average);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::{Congestion, Transport};

    fn sender() -> Box<AnySender> {
        let mut s = testing::sender(&NewJersey, 3.0, &[]);
        s.on_start(Time::ZERO, Time::millis(80));
        s
    }
    fn bandwidth(s: &AnySender) -> f64 {
        testing::probed(|put| s.probe(put), "bandwidth_segments_per_s")
    }

    /// One packet per millisecond, and acknowledgements in groups of ten. With time stamps the estimate is steady at
    /// 1000 segments/s, and a warning leaves 80 ms of that, 80 segments.
    #[test]
    fn stamps_see_through_bunched_acknowledgements() {
        for (stamped, spread) in [(true, 0.02), (false, 0.12)] {
            let mut s = sender();
            let (mut least, mut most) = (f64::MAX, 0.0_f64);
            for ms in 1..3000 {
                let mut transport = Transport::EMPTY;
                if stamped {
                    transport.set_receiver_stamp(receiver_stamp(Time::millis(ms)));
                }
                let now = Time::millis(ms.next_multiple_of(10) + 40);
                let header = Congestion::NONE;
                s.on_ack(&Ack { transport: &transport, rtt: Time::millis(80), ..testing::ack(now, &header) });
                if ms > 1000 {
                    (least, most) = (least.min(bandwidth(&*s)), most.max(bandwidth(&*s)));
                }
            }
            assert!(least > 1000.0 * (1.0 - spread) && most < 1000.0 * (1.0 + spread), "{stamped}: {least} {most}");
            assert!(stamped || most - least > 50.0, "what the stamps are for: {least} {most}");
            s.on_loss(&testing::loss(Time::secs(3), LossKind::Mark, 500));
            assert!((s.allowance().cwnd / 80.0 - 1.0).abs() < spread, "{}", s.allowance().cwnd);
        }
    }

    #[test]
    fn a_loss_without_a_mark_leaves_the_window() {
        let mut s = sender();
        for i in 0..500 {
            s.on_ack(&testing::ack(Time::millis(i), &Congestion::NONE));
        }
        let before = s.allowance().cwnd;
        let loss = testing::loss(Time::secs(1), LossKind::Duplicates, 100);
        s.on_loss(&loss);
        assert_eq!(s.allowance().cwnd, before);
        s.on_loss(&Loss { marked: true, ..loss });
        let own = bandwidth(&*s) * 0.08;
        assert!((s.allowance().cwnd - own).abs() < 1e-9 && own < before, "{own} {before}");
        s.on_loss(&testing::loss(Time::secs(1), LossKind::Timeout, 100));
        assert_eq!(s.allowance().cwnd, 1.0);
    }

    /// 10 ms of 1.25 MB/s are 12500 bytes. The average nears 20 kB by a fifth of the distance each time: 4000, 7200, 9760,
    /// 11808, 13446: the fifth packet is the first to be marked. One without ECN never is.
    #[test]
    fn all_packets_are_marked_while_the_average_is_beyond_the_threshold() {
        let mut router = testing::router(&NewJersey);
        let mut marked = |backlog_bytes: u64, ecn: Ecn| {
            let port = PortView { capacity: 1.25e6, backlog_bytes, backlog_packets: 1, busy: true };
            let mut packet = Packet::EMPTY;
            packet.set_ecn(ecn);
            router.on_arrival(Time::ZERO, &mut packet, &port);
            router.on_departure(Time::ZERO, &mut packet, &port);
            packet.ecn() == Ecn::Marked
        };
        let found: alloc::vec::Vec<bool> = (0..7).map(|_| marked(20_000, Ecn::Capable0)).collect();
        assert_eq!(found, [false, false, false, false, true, true, true]);
        assert!(!marked(20_000, Ecn::NotCapable));
        assert!((0..3).map(|_| marked(0, Ecn::Capable0)).last() == Some(false), "it falls as fast");
    }

    #[test]
    fn the_receiver_stamps_arrivals() {
        let mut receiver = NewJersey.receiver().unwrap();
        receiver.on_data(Time::millis(160), &Packet::EMPTY);
        let mut ack = Packet::EMPTY;
        receiver.on_ack(Time::millis(200), &mut ack);
        assert_eq!(ack.transport.receiver_stamp(), 10_000);
    }
}
