//! RCP in a page: a router has one rate for all flows, and writes it into every packet. `protocols/rcp.rs` has the
//! rest.
//!
//! Source: Dukkipati, Kobayashi, Zhang-Shen, McKeown, "Processor Sharing Flows in the Internet", IWQoS 2005.
//!
//! The idea: once in a mean round-trip time d a router raises its rate R by a share of the spare capacity, and lowers
//! it by a share of the queue: R <- R (1 + T / d (alpha (C - y) - beta q / d) / C), y being the arriving traffic.
//! Packets carry the least R of their routers to the receiver, which returns it. The sender sends at that rate.
//!
//! Deviations:
//! 1. alpha and beta are XCP's, 0.4 and 0.226: linearised around R = C / N the two control loops are the same.
//! 2. The interval T is d, at least 1 ms. R begins at 5 % of C, and changes by half at most in an interval.
//! 3. Losses change nothing: the rate is the routers'.

use alloc::boxed::Box;

use explicate_core::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, PortView, Probe, Protocol, Receiver, Router, RouterInit,
    Sender, SenderInit, Sent,
};
use explicate_core::params::Info;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{BODY_LEN, Header, Packet};

/// Shares of the spare capacity that an interval gives, and of the queue that it takes back.
const ALPHA: f64 = 0.4;
const BETA: f64 = 0.226;

/// RCP in a page.
pub struct RcpLite;

impl Protocol for RcpLite {
    const INFO: Info = Info {
        name: "rcp_lite",
        summary: "RCP in a page: routers write the rate of every flow into every packet",
        source: "Dukkipati, Kobayashi, Zhang-Shen, McKeown, IWQoS 2005",
        params: &[],
    };
    const EXPLICIT: bool = true;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(RcpSender { cwnd: init.initial_window, rate: 0.0, srtt: 0.0, packet: init.packet })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::new(RcpReceiver(0)))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        let (capacity, next) = (init.capacity, Time::millis(100));
        Some(Box::new(RcpRouter { capacity, rate: 0.05 * capacity, rtt: 0.1, interval: 0.1, bytes: 0.0, next }))
    }
}

/// What packets carry: the least rate of the routers on the way, bytes/s, and the RTT of the flow, microseconds.
struct RcpHeader {
    rate: u32,
    rtt: u32,
}

impl Header for RcpHeader {
    const FORMAT: u8 = 4;
    fn parse(body: &[u8; BODY_LEN]) -> RcpHeader {
        let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        RcpHeader { rate: word(0), rtt: word(4) }
    }
    fn emit(&self, body: &mut [u8; BODY_LEN]) {
        body[..4].copy_from_slice(&self.rate.to_be_bytes());
        body[4..8].copy_from_slice(&self.rtt.to_be_bytes());
    }
}

struct RcpSender {
    cwnd: f64,
    rate: f64, // bytes/s; 0 until a router has answered
    srtt: f64,
    packet: f64,
}

impl Sender for RcpSender {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.cwnd, pacing: Some(Rate((8.0 * self.rate) as u64)).filter(|rate| rate.0 > 0) }
    }
    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        packet.congestion.put(&RcpHeader { rate: u32::MAX, rtt: (self.srtt * 1e6) as u32 });
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt = ack.srtt.as_secs_f64();
        if let Some(rate) = ack.header.get::<RcpHeader>().map(|header| header.rate as f64).filter(|rate| *rate > 0.0) {
            self.rate = rate;
            self.cwnd = (self.rate * self.srtt / self.packet).max(1.0);
        }
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn resume(&mut self, _now: Time, window: f64, _srtt: Time) {
        (self.cwnd, self.rate) = (window.max(1.0), 0.0);
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
    }
}

/// Returns the rate that the last data packet came with.
struct RcpReceiver(u32);

impl Receiver for RcpReceiver {
    fn on_data(&mut self, _now: Time, packet: &Packet) {
        self.0 = packet.congestion.get::<RcpHeader>().map_or(0, |header| header.rate);
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        ack.congestion.put(&RcpHeader { rate: self.0, rtt: 0 });
    }
}

struct RcpRouter {
    capacity: f64,
    rate: f64,
    rtt: f64, // moving average, seconds
    interval: f64,
    bytes: f64, // that arrived in this interval
    next: Time,
}

impl Router for RcpRouter {
    fn on_arrival(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        self.bytes += packet.ip_len as f64;
        if let Some(header) = packet.congestion.get::<RcpHeader>().filter(|header| header.rtt > 0) {
            self.rtt += 0.02 * (header.rtt as f64 / 1e6 - self.rtt);
        }
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        !packet.is_ack() && packet.congestion.get::<RcpHeader>().is_some()
    }
    fn on_departure(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        if let Some(header) = packet.congestion.get::<RcpHeader>().filter(|_| !packet.is_ack()) {
            packet.congestion.put(&RcpHeader { rate: header.rate.min(self.rate as u32), ..header });
        }
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let (spare, queue) = (self.capacity - self.bytes / self.interval, port.backlog_bytes as f64);
        let change = (ALPHA * spare - BETA * queue / self.rtt) * self.interval / (self.rtt * self.capacity);
        self.rate = (self.rate * (1.0 + change.clamp(-0.5, 0.5))).clamp(self.capacity / 1e4, self.capacity);
        (self.interval, self.bytes) = (self.rtt.clamp(1e-3, 10.0), 0.0);
        self.next = now + Time::from_secs_f64(self.interval);
    }
    fn next_timer(&self) -> Time {
        self.next
    }
    fn probe(&self, put: Probe<'_>) {
        put("rate_bps", 8.0 * self.rate);
    }
}
