//! RCP, the Rate Control Protocol: a router has one rate for all flows, and writes it into every packet.
//!
//! Sources: Dukkipati, Kobayashi, Zhang-Shen, McKeown, "Processor Sharing Flows in the Internet", IWQoS 2005;
//! Dukkipati, "Rate Control Protocol (RCP): Congestion Control to Make Flows Complete Quickly", PhD thesis, Stanford
//! 2008; where they are silent, the authors' ns-2 code \[ns\] (`rcp.cc`, in github.com/richardhsu/cs244-14-rcp) and
//! their program for routers of NetFPGA (Dukkipati, Zhu, 2008). Both state equation 2 as it is here; of paper and
//! thesis abstracts were read.
//!
//! The idea: a router emulates processor sharing. With N flows each should get C / N, but a router does not know N. It
//! has a rate R, which it gives to every flow, and several times a round trip raises it by a share of the spare
//! capacity and lowers it by a share of the queue; at rest R = C / N. Packets carry the least R of their routers to the
//! receiver, which returns it, and the sender sends at that rate from then on. A new flow begins at the rate of the
//! others, without slow start, so short flows end sooner than under TCP or XCP; in return the queue takes what arrives
//! until R has fallen.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | R(t) | `rate` | bytes/s | R (1 + T / d0 (alpha (gamma C - y) - beta q / d0) / (gamma C)) | IWQoS 2005 equation 2 |
//! | C | `capacity` of the port | bytes/s | | equation 2 |
//! | y(t) | `bytes` / T | bytes/s | | equation 2 |
//! | q(t) | backlog at the end of an interval | bytes | | equation 2; \[ns\] |
//! | d0 | `rtt` | s | moving average of the flows' round trips; [`UNKNOWN_RTT`] before the first | equation 2; \[ns\] |
//! | T | `interval` | s | min(d0, 0.01) | \[ns\], `upd_timeslot_` |
//! | alpha, beta | `alpha`, `beta` | 1 | 0.4, 0.226 | deviation 1 |
//! | gamma | `gamma` | 1 | 1 | \[ns\], `gamma_` |
//! | | `initial_rate` | share of C | 0.05 | \[ns\], `init_rate_fact_` |
//! | | [`LEAST`] | bytes in d0 | 10 | \[ns\], `min_pprtt_` of 1000 bytes |
//!
//! A crowd overloads the line for a round trip. New flows have R at once. R falls when more than C arrives, and flows
//! follow it one d0 later. If n flows begin together while R = C, as after an idle time, n C arrives for one d0:
//! (n - 1) C d0 wait or, beyond the buffer, are lost, and up to a quarter more until R has fallen. So ten flows over a
//! buffer of C d0 lose about ten times C d0. This is RCP's law; Dukkipati calls crowds its main weakness (abstract of
//! her defence, Stanford 2006). At the start of a run R is `initial_rate`, and rises by 2 % in 10 ms until a round trip
//! is known: up to fifteen flows that begin then overload nothing.
//!
//! Unequal round trips overload it too. d0 is the average over the packets that arrive. After a start these are at
//! first of the flows with the shortest round trips, so R rises fast, by up to alpha T / d0 in each T; and the line
//! is not full before the longest flows send at R, two of their round trips after the start. An example: ten flows
//! with 40 to 160 ms begin together over 100 Mbit/s, with a buffer of 1250 packets, C times the mean round trip. By
//! equation 2, computed in steps of T, R rises to 0.17 C, up to 1.7 C arrives, and 116 packets exceed the buffer. The
//! simulation loses 258, because packets and acknowledgements also wait in hosts: 10 ms between a rate and its use
//! make 214 by equation 2. If d0 were the mean round trip from the start, equation 2 would lose none. So this too is
//! the law.
//!
//! The congestion header has format 15. Its body:
//!
//! | byte | field |
//! | --- | --- |
//! | 4-11 | rate, bytes/s: what the sender can use, then the least one of the routers; in acknowledgements its echo |
//! | 12-15 | round-trip time of the flow, microseconds; 0 = unknown |
//! | 16-19 | unused |
//!
//! Deviations:
//! 1. alpha and beta: around R = C / N the linearised loop is XCP's, s^2 + (alpha s + beta) exp(-s) = 0 in units of d0,
//!    which XCP's theorem 1 shows to be stable for alpha < pi / (4 sqrt 2), beta = sqrt 2 alpha^2. At alpha = 0.4 that
//!    loop has no margin left from beta = 0.34 on. The authors' own values are beyond: 0.4 and 0.4 in \[ns\] by
//!    default, 0.4 and 1, or 0.1 and 1, in its scripts, 0.4 and 0.5 with gamma = 0.95 in NetFPGA.
//! 2. Connection set-up carries no congestion header, so a flow learns its rate with the first acknowledgement of data,
//!    and not with the answer to the SYN. Until then it sends its initial window.
//! 3. A sender sends at least one packet per round trip. Where R is less, \[ns\] asks for R by packets without data.
//! 4. A window of twice the rate times the round trip bounds what is sent while nothing returns.
//! 5. Losses change nothing: the rate is the routers'.
//! 6. The bytes of a packet count when it arrives; \[ns\] divides them between two intervals by its transmission time.
//!    Round-trip times count up to 10 s, and T is at least 0.1 ms.
//! 7. The first round trips that packets bring are d0. \[ns\] averages from [`UNKNOWN_RTT`] on, and after an interval
//!    without packets once more with the mean of the last ones.

use alloc::boxed::Box;
use core::fmt;

use crate::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, PortView, Probe, Protocol, Receiver, Router, RouterInit,
    Sender, SenderInit, Sent, Undo, Writes,
};
use crate::params::{Auto, BitsPerSecond, Fraction, Info, Number, Param, Seconds, parameters};
use crate::units::{Rate, Time};
use crate::wire::{BODY_LEN, Describe, Header, Packet};

/// RCP.
pub struct Rcp;

/// Bytes that every flow may send in a round trip.
pub const LEAST: f64 = 10.0;
/// d0 before the first packet with a round-trip time, s: \[ns\], `RTT`. A shorter one would let R reach C before the
/// first flow comes.
pub const UNKNOWN_RTT: f64 = 0.2;
/// Round-trip time that counts at most, us.
const LONGEST: u32 = 10_000_000;
/// Least interval, s.
const SHORTEST: f64 = 1e-4;

parameters! {
    /// Sender parameters.
    pub struct Params {
        /// Maximum rate that the sender requests; auto: the rate of its interface.
        desired_rate: Auto<BitsPerSecond> = None, in 8.0..=1e15, "RCP's ns-2 code";
    }
}

parameters! {
    /// Router parameters.
    pub struct RouterParams {
        /// Share of the spare capacity that a round trip hands out.
        alpha: Number = 0.4, in 0.0..=10.0, "XCP02 3.5; RCP's ns-2 scripts";
        /// Share of the queue that a round trip drains.
        beta: Number = 0.226, in 0.0..=10.0, "XCP02 3.5";
        /// Share of the capacity that counts as a full link.
        gamma: Fraction = 1.0, in 0.01..=1.0, "RCP's ns-2 code";
        /// Longest interval between two updates of the rate; a shorter round trip counts instead.
        interval: Seconds = 0.01, in 1e-4..=10.0, "RCP's ns-2 code";
        /// Share of the capacity with which the rate begins.
        initial_rate: Fraction = 0.05, in 1e-6..=1.0, "RCP's ns-2 code";
    }
}

impl Protocol for Rcp {
    const INFO: Info = Info {
        name: "rcp",
        summary: "RCP: routers write the rate of every flow into every packet",
        source: "Dukkipati, Kobayashi, Zhang-Shen, McKeown, IWQoS 2005",
        params: Params::PARAMS,
    };
    const ROUTER_PARAMS: &'static [Param] = RouterParams::PARAMS;
    const EXPLICIT: bool = true;
    const DESCRIBE: Describe = describe;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let desired = Params::of(init.values).desired_rate.map_or(init.interface.bytes_per_sec(), |rate| rate / 8.0);
        let (cwnd, packet, request) = (init.initial_window, init.packet, desired as u64);
        Box::new(RcpSender { cwnd, rate: 0.0, srtt: 0.0, packet, desired, request })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::new(RcpReceiver { rate: 0 }))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Some(Box::new(RcpRouter::new(init)))
    }
}

/// What packets carry.
struct RcpHeader {
    /// Bytes/s; 0 if no packet brought one.
    rate: u64,
    /// Microseconds; 0 = unknown.
    rtt: u32,
}

impl Header for RcpHeader {
    const FORMAT: u8 = 15;

    #[inline]
    fn parse(body: &[u8; BODY_LEN]) -> RcpHeader {
        let mut rate = [0; 8];
        rate.copy_from_slice(&body[..8]);
        RcpHeader { rate: u64::from_be_bytes(rate), rtt: u32::from_be_bytes([body[8], body[9], body[10], body[11]]) }
    }
    #[inline]
    fn emit(&self, body: &mut [u8; BODY_LEN]) {
        body[..8].copy_from_slice(&self.rate.to_be_bytes());
        body[8..12].copy_from_slice(&self.rtt.to_be_bytes());
    }
}

/// Text for packet logs.
fn describe(packet: &Packet, out: &mut dyn fmt::Write) -> fmt::Result {
    match packet.congestion.get::<RcpHeader>() {
        Some(header) => write!(out, " rate {} B/s", header.rate),
        None => Ok(()),
    }
}

// ------------------------------------------------------------------------------------------------------- end systems

struct RcpSender {
    cwnd: f64,
    /// Bytes/s; 0 until a router has answered.
    rate: f64,
    /// Seconds; zero while unknown.
    srtt: f64,
    /// Length of a full packet, bytes.
    packet: f64,
    /// Bytes/s; and as packets carry it.
    desired: f64,
    request: u64,
}

impl Sender for RcpSender {
    const WRITES: Writes = Writes::PerEvent;
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        // A packet in a round trip, so that the next rate is learned.
        let pace = || Rate((8.0 * self.rate.max(self.packet / self.srtt)) as u64).max(Rate(1));
        Allowance { cwnd: self.cwnd, pacing: (self.rate > 0.0 && self.srtt > 0.0).then(pace) }
    }
    fn on_start(&mut self, _now: Time, rtt: Time) {
        self.srtt = rtt.as_secs_f64();
    }
    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        packet.congestion.put(&RcpHeader { rate: self.request, rtt: (self.srtt * 1e6) as u32 });
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt = ack.srtt.as_secs_f64();
        if let Some(header) = ack.header.get::<RcpHeader>().filter(|header| header.rate > 0) {
            self.rate = (header.rate as f64).min(self.desired);
            self.cwnd = (2.0 * self.rate * self.srtt / self.packet).max(2.0);
        }
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn on_undo(&mut self, _undo: &Undo) {}
    fn resume(&mut self, _now: Time, window: f64, srtt: Time) {
        (self.cwnd, self.rate, self.srtt) = (window.max(1.0), 0.0, srtt.as_secs_f64());
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("rate_bps", 8.0 * self.rate);
    }
}

/// Returns the rate that the last data packet brought.
struct RcpReceiver {
    rate: u64,
}

impl Receiver for RcpReceiver {
    fn on_data(&mut self, _now: Time, packet: &Packet) {
        self.rate = packet.congestion.get::<RcpHeader>().map_or(0, |header| header.rate);
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        ack.congestion.put(&RcpHeader { rate: self.rate, rtt: 0 });
    }
}

// -------------------------------------------------------------------------------------------------- router, equation 2

/// The rate, and how it changes.
pub struct Law {
    params: RouterParams,
    /// R, bytes/s.
    pub rate: f64,
    /// d0, s; zero before the first packet with a round-trip time.
    pub rtt: f64,
}

/// What arrived in an interval.
#[derive(Clone, Copy, Default)]
pub struct Interval {
    /// Its length, s.
    pub seconds: f64,
    /// Bytes that arrived.
    pub bytes: f64,
    /// Bytes of packets with a known round-trip time, and the sum of their products with it, bytes s.
    pub timed: (f64, f64),
    /// Bytes that wait at its end.
    pub queue: f64,
}

impl Law {
    /// At a line of this capacity, bytes/s.
    pub fn new(params: RouterParams, capacity: f64) -> Law {
        Law { params, rate: params.initial_rate * capacity, rtt: 0.0 }
    }

    /// The average of round-trip times, which rises within a round trip and falls more slowly: a d0 that is too long is
    /// stable, one that is too short is not.
    fn average(&mut self, past: &Interval, capacity: f64) {
        let (bytes, sum) = past.timed;
        if bytes <= 0.0 {
            return;
        }
        let sample = sum / bytes;
        if self.rtt == 0.0 {
            self.rtt = sample;
            return;
        }
        let falling = if sample < self.rtt { self.rate / capacity * sample / self.rtt } else { 1.0 };
        self.rtt += (past.seconds / self.rtt * falling).min(1.0) * (sample - self.rtt);
    }

    /// Equation 2 at the end of an interval, for a line of this capacity, bytes/s. Returns the length of the next
    /// interval, s.
    pub fn update(&mut self, past: &Interval, capacity: f64) -> f64 {
        self.average(past, capacity);
        let RouterParams { alpha, beta, gamma, interval, .. } = self.params;
        let (full, rtt) = (gamma * capacity, if self.rtt > 0.0 { self.rtt } else { UNKNOWN_RTT });
        let spare = full - past.bytes / past.seconds;
        let change = past.seconds / rtt * (alpha * spare - beta * past.queue / rtt) / full;
        self.rate = (self.rate * (1.0 + change)).min(full).max(LEAST / rtt);
        rtt.min(interval).max(SHORTEST)
    }
}

struct RcpRouter {
    law: Law,
    /// R as packets carry it, bytes/s.
    rate: u64,
    /// Bytes that arrived in this interval.
    bytes: u64,
    /// Bytes of packets with a round-trip time, and the sum of their products, bytes us.
    timed: (u64, u64),
    began: Time,
    next: Time,
}

impl RcpRouter {
    fn new(init: &RouterInit<'_>) -> RcpRouter {
        let params = RouterParams::of(init.values);
        // Routers are not synchronised.
        let first = params.interval * (0.8 + 0.4 * init.rng.clone().uniform());
        let (law, next) = (Law::new(params, init.capacity), Time::from_secs_f64(first));
        RcpRouter { rate: law.rate as u64, law, bytes: 0, timed: (0, 0), began: Time::ZERO, next }
    }
}

impl Router for RcpRouter {
    const ORDER_INDEPENDENT: bool = true; // departures read the rate, which only the timer changes

    fn on_arrival(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        let bytes = packet.ip_len as u64;
        self.bytes += bytes;
        if let Some(header) = packet.congestion.get::<RcpHeader>().filter(|header| header.rtt > 0) {
            self.timed.0 += bytes;
            self.timed.1 += bytes * header.rtt.min(LONGEST) as u64;
        }
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        !packet.is_ack() && packet.congestion.body(RcpHeader::FORMAT).is_some()
    }
    /// R is at rest where N R = gamma C.
    fn shared(&self, port: &PortView) -> Option<f64> {
        Some(self.law.params.gamma * port.capacity)
    }
    fn on_departure(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        let lower = packet.congestion.get::<RcpHeader>().is_some_and(|header| self.rate < header.rate);
        if lower
            && !packet.is_ack()
            && let Some(body) = packet.congestion.body_mut(RcpHeader::FORMAT)
        {
            body[..8].copy_from_slice(&self.rate.to_be_bytes());
        }
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        let past = Interval {
            seconds: now.since(self.began).as_secs_f64().max(SHORTEST),
            bytes: self.bytes as f64,
            timed: (self.timed.0 as f64, self.timed.1 as f64 / 1e6),
            queue: port.backlog_bytes as f64,
        };
        let next = self.law.update(&past, port.capacity);
        (self.rate, self.bytes, self.timed, self.began) = (self.law.rate as u64, 0, (0, 0), now);
        self.next = now + Time::from_secs_f64(next);
    }
    fn next_timer(&self) -> Time {
        self.next
    }
    fn probe(&self, put: Probe<'_>) {
        put("rate_bps", 8.0 * self.law.rate);
        put("avg_rtt_s", self.law.rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::{Congestion, Format, flag};

    const C: f64 = 1.25e6;

    fn view(backlog_bytes: u64) -> PortView {
        PortView { capacity: C, backlog_bytes, backlog_packets: 0, busy: true }
    }
    /// A packet of 1000 bytes with this rate, and a round trip of `ms`.
    fn data(rate: u64, ms: u32) -> Packet {
        let mut packet = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        packet.congestion.put(&RcpHeader { rate, rtt: 1000 * ms });
        packet
    }
    fn router() -> RcpRouter {
        let values = crate::params::Values::default();
        let rng = crate::rng::Rng::stream(1, "router");
        RcpRouter::new(&RouterInit { values: &values, capacity: C, delay: Time::ZERO, rng })
    }
    /// R after an interval of 10 ms in which `packets` with a round trip of 100 ms arrived, and at whose end `backlog`
    /// waits; R was a tenth of C.
    fn after(packets: u32, backlog: u64) -> f64 {
        let mut r = router();
        (r.law.rate, r.law.rtt, r.began) = (0.1 * C, 0.1, Time::millis(90));
        for _ in 0..packets {
            r.on_arrival(Time::millis(95), &mut data(1, 100), &view(0));
        }
        r.on_timer(Time::millis(100), &view(backlog));
        assert_eq!(r.next_timer(), Time::millis(110), "T is 10 ms");
        r.law.rate / C
    }

    /// 1.25e6 B/s take 12.5 packets in 10 ms. T / d0 = 0.1. Nothing arrives: 1 + 0.1 * 0.4. 10 packets are 0.8 C: 1 +
    /// 0.1 * 0.4 * 0.2. With 25 packets, 2 C, and 12,500 B in the queue, a tenth of C d0: 1 + 0.1 * (-0.4 - 0.0226).
    #[test]
    fn the_rate_by_hand() {
        for (packets, backlog, factor) in [(0, 0, 1.04), (10, 0, 1.008), (25, 0, 0.96), (25, 12_500, 0.957_74)] {
            let rate = after(packets, backlog);
            assert!((rate / 0.1 - factor).abs() < 1e-9, "{packets} {backlog}: {rate}");
        }
    }

    /// 10 B in 100 ms, and all of C.
    #[test]
    fn the_rate_has_bounds() {
        assert!((after(0, 1 << 40) * C - 100.0).abs() < 1e-9);
        let mut r = router();
        (r.law.rate, r.law.rtt) = (C, 0.1);
        r.on_timer(Time::millis(10), &view(0));
        assert_eq!(r.law.rate, C);
        assert_eq!(router().law.rate, 0.05 * C);
    }

    /// N flows at R = C / N fill the line: y = C, and nothing changes.
    #[test]
    fn a_fair_rate_rests() {
        let mut r = router();
        (r.law.rate, r.law.rtt, r.began) = (C / 10.0, 0.1, Time::ZERO);
        for n in 1..=100 {
            let mut full = Packet { ip_len: 12_500, ..data(1, 100) };
            r.on_arrival(Time::ZERO, &mut full, &view(0));
            r.on_timer(Time::millis(10 * n), &view(0));
        }
        let Law { rate, rtt, .. } = r.law;
        assert!((rate / C - 0.1).abs() < 1e-12 && (rtt - 0.1).abs() < 1e-12, "{rate} {rtt}");
    }

    /// Ten intervals of 10 ms without a packet: 1 + 0.01 / 0.2 * 0.4 each, 1.02^10 = 1.21899.
    #[test]
    fn an_idle_line_keeps_the_initial_rate_for_a_while() {
        let mut r = router();
        (1..=10).for_each(|n| {
            r.began = Time::millis(10 * n - 10);
            r.on_timer(Time::millis(10 * n), &view(0));
            assert_eq!(r.next_timer(), Time::millis(10 * n + 10));
        });
        assert!((r.law.rate / C - 0.05 * 1.218_994).abs() < 1e-6, "{}", r.law.rate / C);
        assert_eq!(r.rate, r.law.rate as u64, "what packets are given");
    }

    /// The first interval gives the mean by bytes, (50 + 3 * 150) / 4 = 125 ms. 200 ms: T / d0 = 0.08 of the way, 131
    /// ms. 65.5 ms, half of that: 10 / 131 of the way, times R / C = 0.1, times 0.5: 0.25 ms less.
    #[test]
    fn round_trips_are_averaged() {
        let mut r = router();
        let mut interval = |ms: u64, rtts: &[u32]| {
            r.law.rate = 0.1 * C;
            r.began = Time::millis(ms - 10);
            rtts.iter().for_each(|us| {
                let mut packet = data(1, 0);
                packet.congestion.put(&RcpHeader { rate: 1, rtt: *us });
                r.on_arrival(Time::millis(ms), &mut packet, &view(0));
            });
            r.on_timer(Time::millis(ms), &view(0));
            r.law.rtt
        };
        assert!((interval(100, &[50_000, 150_000, 150_000, 150_000]) - 0.125).abs() < 1e-12);
        assert!((interval(110, &[200_000]) - 0.131).abs() < 1e-12);
        assert!((interval(120, &[]) - 0.131).abs() < 1e-12, "no packet, no change");
        assert!((interval(130, &[65_500]) - 0.130_75).abs() < 1e-12);
    }

    #[test]
    fn the_least_rate_of_the_routers_arrives_and_returns() {
        for rates in [[500_000, 200_000], [200_000, 500_000]] {
            let mut packet = data(1_000_000, 100);
            for rate in rates {
                let mut r = router();
                r.rate = rate;
                assert!(r.writes_into(&packet));
                r.on_departure(Time::ZERO, &mut packet, &view(0));
            }
            let mut receiver = Rcp.receiver().unwrap();
            receiver.on_data(Time::ZERO, &packet);
            let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
            ack.transport.set_flags(flag::ACK);
            receiver.on_ack(Time::ZERO, &mut ack);
            let returned = ack.congestion.get::<RcpHeader>().unwrap();
            assert_eq!((returned.rate, returned.rtt), (200_000, 0));
            let before = ack.congestion;
            narrow_departs(&mut ack);
            assert_eq!(ack.congestion, before, "acknowledgements are left alone");
        }
        let mut modest = data(1000, 100);
        narrow_departs(&mut modest);
        assert_eq!(modest.congestion.get::<RcpHeader>().unwrap().rate, 1000, "no request is raised");
    }
    fn narrow_departs(packet: &mut Packet) {
        let mut r = router();
        r.rate = 200_000;
        r.on_departure(Time::ZERO, packet, &view(0));
    }

    /// The bytes on the wire: 12.5 MB/s are bebc20 hexadecimal, 80 ms are 80,000 us = 13880.
    #[test]
    fn conformance_vector() {
        let mut s = testing::sender(&Rcp, 3.0, &[]);
        s.on_start(Time::ZERO, Time::millis(80));
        let mut packet = data(0, 0);
        s.on_send(&mut packet, &testing::sent(Time::ZERO, 0));
        let body = [0, 0, 0, 0, 0, 0xbe, 0xbc, 0x20, 0, 1, 0x38, 0x80, 0, 0, 0, 0];
        assert_eq!(packet.congestion.0[..4], [253, 20, 0x3f, 0]);
        assert_eq!(packet.congestion.0[4..], body);
    }

    /// 500 kB/s over 100 ms are 50 packets of 1000 bytes: a window of 100 and 4 Mbit/s. 1 kB/s is a packet in ten round
    /// trips: one in each. More than the interface has, 12.5 MB/s, is not used.
    #[test]
    fn a_sender_follows_the_rate() {
        let mut s = testing::sender(&Rcp, 3.0, &[]);
        s.on_start(Time::ZERO, Time::millis(100));
        assert_eq!(s.allowance(), Allowance { cwnd: 3.0, pacing: None }, "no router has answered");
        let mut answer = |rate: u64| {
            let mut header = Congestion::new(Format::MINIMAL);
            header.put(&RcpHeader { rate, rtt: 0 });
            s.on_ack(&testing::ack(Time::ZERO, &header));
            s.allowance()
        };
        assert_eq!(answer(500_000), Allowance { cwnd: 100.0, pacing: Some(Rate(4_000_000)) });
        assert_eq!(answer(0), Allowance { cwnd: 100.0, pacing: Some(Rate(4_000_000)) }, "no rate, no change");
        assert_eq!(answer(1000), Allowance { cwnd: 2.0, pacing: Some(Rate(80_000)) });
        assert_eq!(answer(u64::MAX), Allowance { cwnd: 2500.0, pacing: Some(Rate(100_000_000)) });
        s.resume(Time::ZERO, 7.0, Time::millis(100));
        assert_eq!(s.allowance(), Allowance { cwnd: 7.0, pacing: None }, "from TCP's window until the next answer");
    }
}
