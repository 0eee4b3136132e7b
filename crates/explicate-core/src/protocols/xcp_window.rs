//! XCP as in the SIGCOMM 2002 paper: windows, not rates.
//!
//! Source: Katabi, Handley, Rohrs, "Congestion Control for High Bandwidth-Delay Product Networks", SIGCOMM 2002 \[XCP02\].
//!
//! The idea is that of `xcp.rs`, which follows the later draft. Here a packet carries the window and the round-trip
//! time, and routers write by how many bytes the window shall change. To spread a change of the aggregate over flows
//! a router divides by the window for every packet; in the draft, senders divide once and carry the quotient, X = rtt
//! s / cwnd. Both forms are equivalent, so the controller is that of the draft's router with X computed here:
//!
//! | symbol | here | unit | source |
//! | --- | --- | --- | --- |
//! | H_cwnd, H_rtt, H_feedback | fields of a header of format 3 | bytes, 2^-28 s, bytes | XCP02 section 3.1 |
//! | s rtt / cwnd | `x` | s | equation 5 |
//! | p_i = xi_p rtt^2 s / cwnd | `cp x`, times rtt | bytes | equation 5 |
//! | n_i = xi_n rtt s | `cn s`, times rtt | bytes | equation 7 |
//! | xi_p = (h + \[phi\]+) / (d sum x) | `cp` | bytes/s per s | equation 6 |
//! | xi_n = (h + \[-phi\]+) / (d sum s) | `cn` | bytes/s per byte | equation 8 |
//! | phi / d, h / d | `f`, `shuffle` | bytes/s | equations 1, 4 |
//! | d | `avg_rtt` = sum x rtt / sum x | s | section 3.5.2 |
//! | residues | `res_pos`, `res_neg`, rule `paper` | bytes/s | appendix A |
//!
//! Deviations:
//! 1. The paper defines no encoding. H_rtt has the draft's resolution, H_cwnd and H_feedback count whole bytes;
//!    feedback is rounded to the nearest one.
//! 2. The bounds and the first value of the control interval are the draft's; timers are jittered (`xcp.rs`,
//!    deviation 1).
//! 3. "React like TCP" on losses is `on_loss` and `on_timeout` of `xcp.rs`.
//! 4. A packet is offered at most what remains in either pool (`xcp.rs`, deviation 6); appendix A empties a pool
//!    afterwards.

use alloc::boxed::Box;
use core::fmt;

use crate::api::{Ack, AnyReceiver, AnyRouter, AnySender, Probe, Protocol, Receiver, RouterInit, SenderInit};
use crate::params::{Info, Param};
use crate::protocols::common::rate_header::{SECONDS, round, seconds_to_units};
use crate::protocols::common::xcp_router::{self, Header, Pools, Stated, XcpRouter};
use crate::protocols::xcp::{self, Form, Window, XcpReceiver, XcpSender};
use crate::units::Time;
use crate::wire::{Congestion, Describe, Format, Packet};

/// XCP in its window form.
pub struct XcpWindow;

const ROUTER: xcp_router::Params = xcp_router::Params { pools: Pools::Paper, ..xcp_router::Params::DEFAULT };

impl Protocol for XcpWindow {
    const INFO: Info = Info {
        name: "xcp_window",
        summary: "XCP in its first form: routers write the change of the window into every packet",
        source: "Katabi, Handley, Rohrs, SIGCOMM 2002",
        params: xcp::Params::PARAMS,
    };
    const ROUTER_PARAMS: &'static [Param] = &ROUTER.params();
    const EXPLICIT: bool = true;
    const DESCRIBE: Describe = describe;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(XcpSender::<Bytes>::new(init, xcp::Params::of(init.values)))
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<WindowReceiver>::default())
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Some(Box::new(XcpRouter::<WindowHeader>::new(ROUTER.with(init.values), init.rng.clone())))
    }
}

/// What packet logs say of a packet.
fn describe(packet: &Packet, out: &mut dyn fmt::Write) -> fmt::Result {
    let header = &packet.congestion;
    if header.is_window() { write!(out, " delta {:+} B", header.delta_throughput()) } else { Ok(()) }
}

impl Format {
    /// The words of the SIGCOMM 2002 paper: H_cwnd, H_rtt and H_feedback in the places of the draft's X, RTT and
    /// Delta_Throughput; a router of the draft leaves them alone.
    pub const WINDOW: Format = Format::own(3);
}

impl Congestion {
    /// Whether a router may read H_cwnd, H_rtt and H_feedback.
    #[inline]
    pub fn is_window(&self) -> bool {
        self.has_format(Format::WINDOW)
    }
}

/// Windows and their changes in bytes.
#[derive(Default)]
struct Bytes;

impl Form for Bytes {
    /// Section 3.2: H_feedback = (r rtt - cwnd) / packets in the window.
    fn words(w: &Window, packets: f64) -> (u32, u32, i32) {
        if w.srtt == 0.0 {
            return (0, 0, 0);
        }
        let request = (w.desired * w.srtt - w.cwnd * w.packet) / packets;
        ((packets * w.packet + 0.5) as u32, seconds_to_units(w.srtt), round(request))
    }
    #[inline(always)]
    fn write(&mut self, packet: &mut Packet, words: (u32, u32, i32)) {
        packet.congestion = Congestion::new(Format::WINDOW);
        xcp::Rate.write(packet, words);
    }
    /// Section 3.2: cwnd = max(cwnd + H_feedback, s).
    fn answered(&mut self, w: &Window, ack: &Ack<'_>) -> f64 {
        w.cwnd + ack.header.reverse_feedback() as f64 / w.packet
    }
    fn probe_header(feedback: i32, cwnd: u32, put: Probe<'_>) {
        put("feedback_bytes", feedback as f64);
        put("h_cwnd_bytes", cwnd as f64);
    }
}

#[derive(Default)]
struct WindowReceiver(XcpReceiver);

impl Receiver for WindowReceiver {
    fn on_data(&mut self, _now: Time, packet: &Packet) {
        if packet.congestion.is_window() {
            self.0.sum += packet.congestion.delta_throughput() as i64;
        }
    }
    fn on_ack(&mut self, now: Time, ack: &mut Packet) {
        self.0.on_ack(now, ack);
    }
}

/// The header of the paper, to a router.
#[derive(Default)]
struct WindowHeader;

impl Header for WindowHeader {
    const FORMAT: Format = Format::WINDOW;
    /// X is rtt s / cwnd. While a flow knows neither window nor RTT, its packets may ask for nothing (section 3.1).
    fn read(packet: &mut Packet) -> Option<Stated> {
        let header = &mut packet.congestion;
        let (cwnd, rtt, wanted) = (header.x(), header.rtt(), header.delta_throughput());
        if cwnd == 0 || rtt == 0 {
            header.set_delta_throughput(wanted.min(0));
            return None;
        }
        let x = rtt as f64 * packet.ip_len as f64 / cwnd as f64;
        Some(Stated { x, rtt, request: wanted as f64 / (rtt as f64 * SECONDS) })
    }
    fn grant(packet: &mut Packet, granted: f64) {
        let header = &mut packet.congestion;
        let bytes = round(granted * (header.rtt() as f64 * SECONDS));
        header.set_delta_throughput(bytes.min(header.delta_throughput())); // rounding must not raise it
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PortView;
    use crate::params::Values;
    use crate::testing::{self, ack, sent};

    const C: f64 = 1.25e6;
    const VIEW: PortView = PortView { capacity: C, backlog_bytes: 0, backlog_packets: 0, busy: true };

    fn packet(cwnd: u32, rtt: f64) -> Packet {
        let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::WINDOW), ..Packet::EMPTY };
        p.congestion.set_x(cwnd);
        p.congestion.set_rtt(seconds_to_units(rtt));
        p.congestion.set_delta_throughput(i32::MAX);
        p
    }

    /// Two flows, windows of 60 kB at 0.1 s and 20 kB at 0.2 s, in an interval of 0.1 s: 60 and 10 packets of 1000 B.
    /// From the paper's equations, in its units: d = sum x rtt / sum x with x = 1/600 s and 1/100 s, each flow's sum 0.1 s,
    /// so d = 0.15 s. y d over the interval of 0.1 s: y = 7e5 B/s. phi = 0.4 d (C - y) = 0.4 0.15 5.5e5 = 33000 B,
    /// h = max(0, 0.1 y d - phi) = 0. xi_p = phi / (d sum of rtt s / cwnd), and p_i = xi_p rtt^2 s / cwnd.
    #[test]
    fn feedback_is_that_of_the_papers_equations() {
        let mut r = testing::router(&XcpWindow);
        for i in 0..70 {
            let mut p = if i < 60 { packet(60_000, 0.1) } else { packet(20_000, 0.2) };
            r.on_arrival(Time::ZERO, &mut p, &VIEW);
        }
        r.on_timer(Time::millis(100), &VIEW);
        let (phi, d) = (33_000.0, 0.15);
        let xi_p = phi / (d * (60.0 * 0.1 * 1000.0 / 60_000.0 + 10.0 * 0.2 * 1000.0 / 20_000.0));
        for (cwnd, rtt) in [(60_000, 0.1), (20_000, 0.2)] {
            let mut p = packet(cwnd, rtt);
            r.on_departure(Time::millis(100), &mut p, &VIEW);
            let expected = xi_p * rtt * rtt * 1000.0 / cwnd as f64;
            let got = p.congestion.delta_throughput();
            assert!((got as f64 - expected).abs() <= 0.51, "{got} {expected}");
        }
    }

    #[test]
    fn headers_of_the_draft_and_first_packets_get_nothing() {
        let mut r = testing::router(&XcpWindow);
        let mut first = packet(3000, 0.0);
        r.on_departure(Time::ZERO, &mut first, &VIEW);
        assert_eq!(first.congestion.delta_throughput(), 0);
        let mut other = Packet { congestion: Congestion::new(Format::STANDARD), ..first };
        other.congestion.set_delta_throughput(77);
        r.on_departure(Time::ZERO, &mut other, &VIEW);
        assert_eq!(other.congestion.delta_throughput(), 77);
    }

    /// 10 packets of 1000 B at 0.1 s, 1 MB/s wanted: (100 kB - 10 kB) / 10. Feedback of 500 B is half a packet.
    #[test]
    fn the_sender_speaks_in_windows() {
        let values = Values::default();
        let interface = crate::units::Rate::mbps(8);
        let init = SenderInit { values: &values, packet: 1000.0, initial_window: 10.0, interface };
        let mut sender = XcpWindow.sender(&init);
        sender.on_start(Time::ZERO, Time::millis(100));
        let mut p = Packet { ip_len: 1000, congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        sender.on_send(&mut p, &sent(Time::ZERO, 0));
        let header = p.congestion;
        assert!(header.is_window());
        assert_eq!((header.x(), header.rtt()), (10_000, seconds_to_units(0.1)));
        assert_eq!(header.delta_throughput(), 9_000);
        let mut back = Congestion::new(Format::MINIMAL);
        back.set_reverse_feedback(500);
        sender.on_ack(&ack(Time::millis(10), &back));
        assert_eq!(sender.allowance().cwnd, 10.5);
        sender.on_send(&mut p, &sent(Time::ZERO, 0));
        assert_eq!((p.congestion.x(), p.congestion.delta_throughput()), (10_000, 8_950), "ten whole packets");
    }
}
