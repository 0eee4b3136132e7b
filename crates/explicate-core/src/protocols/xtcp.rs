//! XTCP, explicit TCP: routers count their drops and flag as many packets; flags, not losses, halve the window.
//!
//! Source: paper D (De Vleeschouwer, Frossard, "Loss-resilient window-based congestion control", Computer Networks 2008),
//! sections 3.2 and 8.1.
//!
//! The window grows and is halved as TCP's, but a loss has no effect on it, since on a lossy link it does not
//! indicate congestion. A router adds one to a counter for each packet that its queue drops, and flags as many of the
//! departing packets, of any flow. The receiver echoes the flag; the sender halves its window at most once per round
//! trip. TCP flows share the queue: their packets neither count nor are flagged. An XTCP flow repairs losses without
//! reducing its window, and would suppress TCP flows; with `tcp_friendly` it restarts from one segment where TCP
//! would have waited for its timer.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | congestion flag | [`flag::CONGESTED`] | | | 003 section 3.2 |
//! | congestion counter | `count` | packets | at most the packets that wait | section 3.2, note 1 |
//! | cwnd, ssthresh | `cwnd`, `ssthresh` | segments | | section 3.2 "as TCP" |
//! | time of the last congestion event | `event` | time | | section 3.2 |
//! | dupackthreshold | `dupthreshold` | acknowledgements | 3 | section 8.1; the recovery's parameter |
//! | recphase | `recphase` | segment, one past | | section 8.1 |
//!
//! A packet of XTCP differs from one of TCP by [`flag::CAPABLE`]; there is no congestion header. Early drops (RED) are
//! congestion drops and count.
//!
//! Deviations:
//! 1. In section 3.2 each acknowledgement without a flag increases the window, in section 4.4 duplicates do not. Here
//!    duplicates increase it, and their flags count; `grow_on_duplicates = false` is the other reading. With it a
//!    lossy flow, most of whose acknowledgements are duplicates, is slower: at 5 % loss LR-LMXTCP gets 0.63 of the
//!    throughput of loss-free flows instead of 0.93; in the paper it does as well as LR-LMXCP (section 8.2), which
//!    gets 0.97.
//! 2. In section 3.2 every departing XTCP packet decrements the counter. A packet that an earlier router has flagged
//!    cannot carry the signal of this one, so it does not decrement; `spend_on_flagged` follows the text of the
//!    paper.
//! 3. The counter is limited by the number of waiting packets, without the one in service, as all queues are counted
//!    here.
//! 4. The paper does not define the slow start threshold: a flag sets it to the halved window, an artificial back-off
//!    to half the window before it, at least 2, a timeout as in RFC 5681.
//! 5. During an artificial back-off (until all data sent before it are acknowledged) flags have no effect.

use alloc::boxed::Box;
use core::fmt;

use crate::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, LossKind, PortView, Probe, Protocol, Receiver, Router,
    RouterInit, Sender, SenderInit, Sent,
};
use crate::params::{Flag, Info, Param, parameters};
use crate::qdisc::DropCause;
use crate::recovery::Common;
use crate::units::Time;
use crate::wire::{Describe, Packet, flag};

/// XTCP.
pub struct Xtcp;

parameters! {
    /// Sender parameters.
    struct Params {
        /// Resets the window to one segment on a flag if the window is below `dupackthreshold` or another flag
        /// arrived less than a round trip earlier.
        tcp_friendly: Flag = false, "paper D section 8.1";
        /// Duplicate acknowledgements without a flag also increase the window.
        grow_on_duplicates: Flag = true, "paper D section 3.2";
    }
}

parameters! {
    /// Router parameters.
    struct RouterParams {
        /// A packet that arrives with a flag also decrements the counter.
        spend_on_flagged: Flag = false, "paper D section 3.2";
    }
}

impl Protocol for Xtcp {
    const INFO: Info = Info {
        name: "xtcp",
        summary: "XTCP: TCP's window, halved by flags that routers set for packets that they drop",
        source: "De Vleeschouwer, Frossard (paper D)",
        params: Params::PARAMS,
    };
    const ROUTER_PARAMS: &'static [Param] = RouterParams::PARAMS;
    const EXPLICIT: bool = true;
    const DESCRIBE: Describe = describe;
    const HEADER_LEN: u16 = 0;

    fn matches(&self, packet: &Packet) -> bool {
        is_xtcp(packet)
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(XtcpSender::new(init))
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::new(XtcpReceiver { flagged: false }))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        let spend_on_flagged = RouterParams::of(init.values).spend_on_flagged;
        Some(Box::new(XtcpRouter { spend_on_flagged, ..XtcpRouter::default() }))
    }
}

/// Text for packet logs.
fn describe(packet: &Packet, out: &mut dyn fmt::Write) -> fmt::Result {
    if packet.transport.congestion_flag() { out.write_str(" flag") } else { Ok(()) }
}

// ----------------------------------------------------------------------------------------- end systems, 003 section 3.2

pub(super) struct XtcpSender {
    pub(super) cwnd: f64,
    ssthresh: f64,
    tcp_friendly: bool,
    grow_on_duplicates: bool,
    dupthreshold: f64,
    /// The last congestion event, and the last flag.
    event: Option<Time>,
    flag: Option<Time>,
    /// The window does not grow until all segments before this one are acknowledged.
    recphase: u32,
}

impl XtcpSender {
    pub(super) fn new(init: &SenderInit<'_>) -> XtcpSender {
        let params = Params::of(init.values);
        XtcpSender {
            cwnd: init.initial_window,
            ssthresh: f64::INFINITY,
            tcp_friendly: params.tcp_friendly,
            grow_on_duplicates: params.grow_on_duplicates,
            dupthreshold: Common::of(init.values).dupackthreshold,
            event: None,
            flag: None,
            recphase: 0,
        }
    }

    fn on_flag(&mut self, ack: &Ack<'_>) {
        let lately = |last: Option<Time>| last.is_some_and(|last| ack.now.since(last) < ack.srtt);
        let again = lately(self.flag);
        self.flag = Some(ack.now);
        if self.tcp_friendly && (again || self.cwnd < self.dupthreshold) {
            // TCP would have lost two packets in a window, or could not have detected a loss by duplicates: it times
            // out.
            self.ssthresh = (self.cwnd / 2.0).max(2.0);
            self.cwnd = 1.0;
            self.recphase = ack.highest_sent;
            self.event = Some(ack.now);
        } else if !lately(self.event) {
            self.cwnd = (self.cwnd / 2.0).max(1.0);
            self.ssthresh = self.cwnd;
            self.event = Some(ack.now);
        }
    }
}

impl Sender for XtcpSender {
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.cwnd, pacing: None }
    }

    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        let header = &mut packet.transport;
        header.set_flags(header.flags() | flag::CAPABLE);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        if ack.cumulative < self.recphase {
            return;
        }
        if ack.transport.has(flag::CONGESTED) {
            self.on_flag(ack);
        } else if !ack.app_limited && (self.grow_on_duplicates || !ack.duplicate) {
            // Losses under repair do not prevent growth.
            self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind == LossKind::Timeout {
            if !loss.repeated {
                self.ssthresh = (loss.in_flight as f64 / 2.0).max(2.0);
            }
            self.cwnd = 1.0;
        }
    }

    fn resume(&mut self, _now: Time, window: f64, _srtt: Time) {
        self.cwnd = window.max(1.0);
        (self.ssthresh, self.recphase) = (self.cwnd, 0);
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("ssthresh", self.ssthresh);
        put("recphase_segment", self.recphase as f64);
    }
}

/// Echoes whether a packet since the last acknowledgement was flagged.
struct XtcpReceiver {
    flagged: bool,
}

impl Receiver for XtcpReceiver {
    const HIGHEST_COUNTS: bool = true;

    fn on_data(&mut self, _now: Time, packet: &Packet) {
        self.flagged |= packet.transport.has(flag::CONGESTED);
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        if self.flagged {
            ack.transport.set_flags(ack.transport.flags() | flag::CONGESTED);
        }
        self.flagged = false;
    }
}

// ---------------------------------------------------------------------------------------------- router, 003 section 3.2

#[derive(Default)]
struct XtcpRouter {
    /// Drops that no packet has reported yet.
    count: u32,
    /// Packets that it flagged, and drops that it did not count because of note 1.
    flagged: u32,
    uncounted: u32,
    spend_on_flagged: bool,
}

/// Whether this is a data packet of XTCP.
fn is_xtcp(packet: &Packet) -> bool {
    packet.transport.flags() & (flag::CAPABLE | flag::ACK) == flag::CAPABLE
}

impl Router for XtcpRouter {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}

    fn writes_into(&self, packet: &Packet) -> bool {
        is_xtcp(packet)
    }

    fn on_departure(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        if self.count == 0 || !is_xtcp(packet) {
            return;
        }
        let header = &mut packet.transport;
        if self.spend_on_flagged || !header.has(flag::CONGESTED) {
            self.flagged += !header.has(flag::CONGESTED) as u32;
            header.set_flags(header.flags() | flag::CONGESTED);
            self.count -= 1;
        }
    }

    fn on_drop(&mut self, _now: Time, packet: &Packet, _cause: DropCause, port: &PortView) {
        if !is_xtcp(packet) {
            return;
        }
        // Note 1: a counter larger than the queue would flag packets of other flows.
        if self.count < port.backlog_packets {
            self.count += 1;
        } else {
            self.uncounted += 1;
        }
    }

    fn probe(&self, put: Probe<'_>) {
        put("congestion_counter", self.count as f64);
        put("congestion_flags", self.flagged as f64);
        put("uncounted_drops", self.uncounted as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::units::Rate;
    use crate::wire::{Congestion, Transport};

    fn sender(window: f64, given: &[(&str, f64)]) -> XtcpSender {
        let values = testing::values(&[Params::PARAMS], given);
        XtcpSender::new(&SenderInit {
            values: &values,
            packet: 1000.0,
            initial_window: window,
            interface: Rate::mbps(5),
        })
    }
    /// An acknowledgement at `now` ms, round trip 100 ms; segments up to 50 have been sent.
    fn deliver_ack(s: &mut XtcpSender, now: u64, flagged: bool, duplicate: bool, cumulative: u32) {
        let mut transport = Transport::EMPTY;
        transport.set_flags(flag::ACK | if flagged { flag::CONGESTED } else { 0 });
        let ack = testing::ack(Time::millis(now), &Congestion::NONE);
        s.on_ack(&Ack { transport: &transport, duplicate, cumulative, highest_sent: 50, ..ack });
    }

    #[test]
    fn grows_as_tcp_and_is_halved_by_flags_once_a_round_trip() {
        let mut s = sender(8.0, &[]);
        deliver_ack(&mut s, 0, false, false, 1);
        assert_eq!(s.cwnd, 9.0, "slow start");
        deliver_ack(&mut s, 1, true, false, 2);
        assert_eq!((s.cwnd, s.ssthresh), (4.5, 4.5));
        deliver_ack(&mut s, 2, true, false, 3);
        deliver_ack(&mut s, 100, true, true, 3);
        assert_eq!(s.cwnd, 4.5, "one back-off a round trip");
        deliver_ack(&mut s, 100, false, false, 4);
        assert_eq!(s.cwnd, 4.5 + 1.0 / 4.5, "congestion avoidance");
        deliver_ack(&mut s, 101, true, true, 4);
        assert_eq!(s.cwnd, (4.5 + 1.0 / 4.5) / 2.0, "the flags of duplicates count");
        let mut s = sender(1.5, &[]);
        deliver_ack(&mut s, 0, true, false, 1);
        assert_eq!(s.cwnd, 1.0);
    }

    #[test]
    fn losses_say_nothing_but_timeouts() {
        let mut s = sender(8.0, &[]);
        for kind in [LossKind::Duplicates, LossKind::Mark] {
            s.on_loss(&testing::loss(Time::ZERO, kind, 8));
            assert_eq!((s.cwnd, s.ssthresh), (8.0, f64::INFINITY));
        }
        deliver_ack(&mut s, 1, false, true, 0);
        assert_eq!(s.cwnd, 9.0, "a duplicate without a flag grows it");
        s.cwnd = 8.0;
        let mut other = sender(8.0, &[("grow_on_duplicates", 0.0)]);
        deliver_ack(&mut other, 1, false, true, 0);
        assert_eq!(other.cwnd, 8.0);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 8));
        assert_eq!((s.cwnd, s.ssthresh), (1.0, 4.0));
        s.on_loss(&Loss { repeated: true, ..testing::loss(Time::ZERO, LossKind::Timeout, 1) });
        assert_eq!(s.ssthresh, 4.0);
    }

    /// Two flags within a round trip: to half, then to one; nothing moves until segment 50 is passed, then slow start.
    #[test]
    fn the_friendly_one_restarts_where_tcp_would() {
        let mut s = sender(16.0, &[("tcp_friendly", 1.0)]);
        deliver_ack(&mut s, 0, true, false, 1);
        assert_eq!((s.cwnd, s.recphase), (8.0, 0));
        deliver_ack(&mut s, 99, true, false, 2);
        assert_eq!((s.cwnd, s.ssthresh, s.recphase), (1.0, 4.0, 50));
        deliver_ack(&mut s, 120, false, false, 3);
        deliver_ack(&mut s, 130, true, false, 49);
        assert_eq!((s.cwnd, s.ssthresh), (1.0, 4.0), "recphase");
        let windows: [f64; 4] = core::array::from_fn(|i| {
            deliver_ack(&mut s, 300 + i as u64, false, false, 50);
            s.cwnd
        });
        assert_eq!(windows, [2.0, 3.0, 4.0, 4.25]);
        // More than a round trip later a flag has its normal effect.
        deliver_ack(&mut s, 400, true, false, 51);
        assert_eq!(s.cwnd, 2.125);
        // A window below three cannot detect a loss by duplicates.
        deliver_ack(&mut s, 900, true, false, 51);
        assert_eq!((s.cwnd, s.ssthresh), (1.0, 2.0));
    }

    // ------------------------------------------------------------------------------------------------ router

    fn router(spend_on_flagged: bool) -> XtcpRouter {
        XtcpRouter { spend_on_flagged, ..XtcpRouter::default() }
    }
    fn view(backlog_packets: u32) -> PortView {
        PortView { capacity: 6.25e5, backlog_bytes: 1000 * backlog_packets as u64, backlog_packets, busy: true }
    }
    fn packet(flags: u8) -> Packet {
        let mut p = Packet { ip_len: 1000, ..Packet::EMPTY };
        p.transport.set_flags(flags);
        p
    }
    fn drops(r: &mut XtcpRouter, flags: u8, backlog: u32) {
        r.on_drop(Time::ZERO, &packet(flags), DropCause::Overflow, &view(backlog));
    }
    fn leaves(r: &mut XtcpRouter, flags: u8) -> bool {
        let mut p = packet(flags);
        r.on_departure(Time::ZERO, &mut p, &view(3));
        p.transport.has(flag::CONGESTED)
    }

    /// Three wait, five are dropped: the counter stops at three, three departures are flagged, the fourth is not.
    #[test]
    fn the_counter_stops_at_what_waits() {
        let mut r = router(false);
        (0..5).for_each(|_| drops(&mut r, flag::CAPABLE, 3));
        assert_eq!((r.count, r.uncounted), (3, 2));
        assert_eq!([(); 4].map(|()| leaves(&mut r, flag::CAPABLE)), [true, true, true, false]);
        assert_eq!((r.count, r.flagged), (0, 3));
        r.on_drop(Time::ZERO, &packet(flag::CAPABLE), DropCause::Early, &view(1));
        assert_eq!(r.count, 1, "early drops are congestion, too");
        drops(&mut r, flag::CAPABLE, 0);
        assert_eq!(r.count, 1);
    }

    #[test]
    fn tcp_and_acknowledgements_neither_count_nor_are_flagged() {
        let mut r = router(false);
        let others = [0, flag::FIN, flag::ACK, flag::ACK | flag::CAPABLE];
        others.into_iter().for_each(|flags| drops(&mut r, flags, 10));
        assert_eq!(r.count, 0);
        drops(&mut r, flag::CAPABLE, 10);
        assert!(others.into_iter().all(|flags| !leaves(&mut r, flags)));
        assert_eq!(r.count, 1);
    }

    #[test]
    fn a_packet_that_came_flagged() {
        for (spend, left) in [(false, 1), (true, 0)] {
            let mut r = router(spend);
            drops(&mut r, flag::CAPABLE, 10);
            assert!(leaves(&mut r, flag::CAPABLE | flag::CONGESTED));
            assert_eq!(r.count, left);
        }
    }

    #[test]
    fn the_receiver_echoes() {
        let mut receiver = Xtcp.receiver().unwrap();
        let mut echo = |flags| {
            receiver.on_data(Time::ZERO, &packet(flags));
            let mut ack = packet(flag::ACK);
            receiver.on_ack(Time::ZERO, &mut ack);
            ack.transport.flags()
        };
        assert_eq!(echo(flag::CAPABLE | flag::CONGESTED), flag::ACK | flag::CONGESTED);
        assert_eq!(echo(flag::CAPABLE), flag::ACK);
    }
}
