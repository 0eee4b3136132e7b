//! TCP Prague, the congestion control of L4S: DCTCP's response to the share of marked packets, made fit for the
//! Internet.
//!
//! Sources: K. De Schepper, O. Tilmans, B. Briscoe, V. Goel, "Prague Congestion Control",
//! draft-briscoe-iccrg-prague-congestion-control, version 00 (2021) \[D\] and version 04 (2024), which has the same
//! section 2.4.4; the authors' Linux module, `tcp_prague.c` version 0.7 of the L4S team \[L\]; RFC 9331 section 4 for
//! what a sender of L4S must do; RFC 9768 for the counts that receivers return.
//!
//! The idea: data packets are ECT(1), which asks a router for frequent marks and a short queue
//! ([`dualpi2`](crate::qdisc::dualpi2)). The sender estimates the share of marked packets, alpha, and reduces its
//! window by alpha / 2 once a round trip; each unmarked segment adds 1 / cwnd, also in a round trip with marks. Under
//! DCTCP flows with shorter round trips take more of a line. Prague has a virtual round trip of at least 25 ms: on
//! shorter paths it grows and reduces as a flow with 25 ms would. It paces, since a burst fills a queue of a
//! millisecond.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | alpha | `alpha` | 1 | 1 at first (\[L\]), then alpha + g (M - alpha) | \[D\] section 2.3.2 |
//! | g | `g` | 1 | 1/16 | \[D\] section 2.3.2 |
//! | M (frac) | `MarkCount::take_share` | 1 | of a round trip | \[D\] section 2.3.2 |
//! | cwnd | `window.cwnd` | segments | cwnd (1 - alpha / 2), once a round trip | \[D\] section 2.4.2 |
//! | RTT_virt (RTT_ref) | `rtt_virt` | s | max(RTT, 0.025) | \[D\] section 2.4.4 |
//! | RTT / RTT_virt (1/M) | `short` | 1 | its square is what a round trip adds, in segments | \[D\] section 2.4.4 |
//! | D | `transition` | round trips | 4 after slow start | \[L\]; 500 from the start in \[D\] section 2.4.4 |
//! | | `rate` | bytes/s | cwnd / RTT, twice below ssthresh / 2 | \[D\] section 2.5.1 |
//! | | `SWING` | 1 | + 3 %, then - 3 %, each for half of a virtual round trip | \[L\] |
//! | | `LEAST` | bytes/s | 12,500 | \[L\] |
//! | r.cep, s.cep | `MarkReceiver::marks`, `MarkCount::marks` | packets mod 2^16 | | RFC 9768 section 3.2 |
//!
//! With marks of probability p the window W is in proportion to (1 - p) / p (\[D\] section 2.4.3). Over round trips up
//! to 25 ms it loses p W / 2 segments in each 25 ms, and gains (1 - p) RTT / 25 ms. So packets of 1500 bytes have a
//! rate of about 1/p - 1 Mbit/s, which the module's authors state, too.
//!
//! All its data packets have ECT(1) whatever `ecn` says, as those of VCP and ABC have their codes. With `l4s = true`
//! packets of TCP's other controllers have ECT(1) too, to see what happens. On QUIC's sockets Prague is refused, as
//! DCTCP is: QUIC returns one code for many packets.
//!
//! RFC 9331 section 4.3 has seven numbered requirements. The third is not met: queues without L4S are not detected
//! (deviation 2). The others: another protocol can take this one's place (1); a loss halves the window (2); rates do
//! not depend on round trips up to 25 ms, from four round trips after slow start on (4), while longer ones do count; a
//! window may be below a segment (5); losses are found by time if the recovery is `rack` (6); packets are paced one by
//! one, so there are no bursts to limit (7).
//!
//! Deviations:
//! 1. Version 00 of the draft was read whole, of RFC 9331 sections 4 and 5 and appendix A.1.5, of RFC 9768 what
//!    `common/marks.rs` says; version 04 was not available. 00 and \[L\] agree in all that the table has from \[D\], in
//!    the growth by unmarked segments alone (section 2.4.3) and in the end of slow start by one mark (section 2.4.5).
//!    Google's quiche, which follows 04, has the same g, RTT_virt and D as 00. 00 knows no swing and no least rate, and
//!    paces what is in flight if that is more than the window. Not offered is ECT(0) in place of ECT(1), for private
//!    networks (section 2.2), nor a Reno for receivers without counts (2.3.1.1).
//! 2. No fall-back. To a queue that follows RFC 3168 a mark stands for a loss, so it marks seldom, ECT(1) too. In open
//!    networks RFC 9331 section 4.3 (3) demands that such queues are detected. It recommends that the sender then
//!    reacts as TCP does, and where it does not, demands TCP in the place of Prague. Here neither is done: over `red`,
//!    `codel` or `pi`, shared with TCP, Prague takes more than its share. Section 4.3.1 reports tests of TCP Prague: at
//!    worst it had 25 times TCP's throughput; at 4 Mbit/s less than about 10 times over paths below 100 ms, and less
//!    than about 5 times below 20 ms. Ours, beside CUBIC with ECN over `codel`, has 3.7 times at 4 Mbit/s and 18 ms,
//!    8.8 at 98 ms, 15 at 40 Mbit/s and 18 ms, and at 200 Mbit/s 27, which is beyond that worst case. In \[L\]
//!    detection is off by default, since it takes some L4S queues for the others (\[D\] section 3.3), most often at low
//!    rates or over long paths (RFC 9331 section 4.3.1). A queue for each flow, `fq_codel`, keeps the shares, and so
//!    does a queue without marks.
//! 3. The window is a number with a fraction, whatever its size. Below four segments \[L\] keeps a rate instead, and
//!    the window that limits what is in flight moves towards it by one segment per acknowledgement. Packets do not
//!    become shorter at low rates.
//! 4. The window grows with each acknowledgement while the application has data, even if it is not full. In \[L\] it
//!    grows only while it is full, which a paced window of few segments is not.
//! 5. SYNs and acknowledgements are not ECN-capable; \[D\] section 2.2 has ECT(1) on all packets.
//! 6. A loss halves the window, and marks of the same round trip do not reduce it again. If marks came first, \[D\]
//!    section 2.4.1 permits a smaller reduction for the loss, as quiche has it; here it is half, too. Slow start ends
//!    with the first mark, which halves the window since alpha is 1; \[L\] offers this, and an alpha of 0 with the same
//!    halving.
//! 7. After an idle time short round trips still count as `rtt_virt`, as in \[D\], which plans a new transition for
//!    that case.

use alloc::boxed::Box;

use crate::api::{
    Ack, Allowance, AnyReceiver, AnySender, Loss, LossKind, Probe, Protocol, Sender, SenderInit, Sent, Undo,
};
use crate::params::{Fraction, Info, Number, Seconds, parameters};
use crate::protocols::common::marks::{MarkCount, MarkReceiver};
use crate::protocols::common::window::{Round, Window, WindowParams, grows};
use crate::units::{Rate, Time};
use crate::wire::{Ecn, Packet};

/// TCP Prague.
pub struct Prague;

/// How far the pacing rate is above the window's in the first half of a virtual round trip, and below it in the second:
/// so a queue at its threshold marks a steady share.
const SWING: f64 = 4.0 / 128.0;
/// The rate is never below, bytes/s.
const LEAST: f64 = 12_500.0;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Weight of the newest round trip in alpha.
        g: Fraction = 0.0625, in 1e-6..=1.0, "tcp_prague.c 0.7";
        /// Round trips below this count as this one; 0s: none does.
        rtt_virt: Seconds = 0.025, in 0.0..=1.0, "draft-briscoe-iccrg-prague-congestion-control-04 section 2.4.4";
        /// Round trips after slow start until short ones count as `rtt_virt`.
        transition: Number = 4.0, in 0.0..=1e9, "tcp_prague.c 0.7";
        /// Start, growth and idle times.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

impl Protocol for Prague {
    const INFO: Info = Info {
        name: "prague",
        summary: "TCP Prague: DCTCP's window for the short queues of L4S, paced, without an advantage of short paths",
        source: "draft-briscoe-iccrg-prague-congestion-control-04, RFC 9331",
        params: Params::PARAMS,
    };
    const OWN_ECN: bool = true;

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let params = Params::of(init.values);
        Box::new(PragueSender {
            window: Window::of(init, params.window),
            packet: init.packet,
            g: params.g,
            rtt_virt: Time::from_secs_f64(params.rtt_virt),
            transition: params.transition as u32,
            alpha: 1.0,
            marks: MarkCount::default(),
            seen: false,
            round: Round::default(),
            round_at: Time::ZERO,
            rounds: 0,
            short: 1.0,
            reduced_until: 0,
            reduced_at: Time::ZERO,
            highest: 0,
            rate: Rate::from_bytes_per_sec(LEAST),
        })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<MarkReceiver>::default())
    }
}

struct PragueSender {
    window: Window,
    /// Length of a full packet, bytes.
    packet: f64,
    g: f64,
    rtt_virt: Time,
    transition: u32,
    alpha: f64,
    marks: MarkCount,
    /// A packet was marked; alpha does not change before.
    seen: bool,
    /// Of alpha: ends with a round trip, and not before `rtt_virt`.
    round: Round,
    round_at: Time,
    /// Rounds since slow start.
    rounds: u32,
    /// RTT / RTT_virt, at most 1: a round trip without marks adds the square of it.
    short: f64,
    /// The window is not reduced again before this segment is acknowledged, and not before `rtt_virt`.
    reduced_until: u32,
    reduced_at: Time,
    /// One past the highest segment sent.
    highest: u32,
    rate: Rate,
}

impl PragueSender {
    /// Round trips below `rtt_virt` count as it.
    fn independent(&self) -> bool {
        self.rounds >= self.transition && self.window.cwnd >= self.window.ssthresh
    }
    /// Whether `rtt_virt` has passed, if it counts.
    fn passed(&self, now: Time, since: Time) -> bool {
        now.since(since) >= self.rtt_virt || !self.independent()
    }
    /// The reduction of a round trip in which packets were marked.
    fn reduce(&mut self, now: Time, srtt: f64) {
        let (before, least) = (self.window.cwnd, LEAST * srtt / self.packet);
        self.window.cwnd = (before * (1.0 - self.alpha / 2.0)).max(least.min(before));
        self.window.ssthresh = self.window.cwnd;
        self.reduced(now);
    }
    fn reduced(&mut self, now: Time) {
        (self.reduced_until, self.reduced_at) = (self.highest, now);
    }
    /// A round of alpha ends.
    fn end_round(&mut self, now: Time, srtt: f64) {
        let share = self.marks.take_share();
        if self.seen {
            self.alpha += self.g * (share - self.alpha);
        }
        self.round_at = now;
        self.rounds = self.rounds.saturating_add((self.window.cwnd >= self.window.ssthresh) as u32);
        let short = srtt.max(1e-6) / self.rtt_virt.as_secs_f64();
        self.short = if self.independent() { short.min(1.0) } else { 1.0 };
    }
    fn pace(&mut self, now: Time, srtt: Time) {
        let gain = if self.window.cwnd < self.window.ssthresh / 2.0 {
            2.0
        } else if 2 * now.since(self.round_at).0 < srtt.max(self.rtt_virt).0 {
            1.0 + SWING
        } else {
            1.0 - SWING
        };
        let rate = gain * self.window.cwnd * self.packet / srtt.as_secs_f64().max(1e-6);
        self.rate = Rate::from_bytes_per_sec(rate.max(LEAST));
    }
}

impl Sender for PragueSender {
    const HAS_TIMER: bool = false;
    const LIMITS_REPAIR: bool = true;

    fn allowance(&self) -> Allowance {
        // Rounded up, so that pacing limits, and two at least: below that the rate alone does.
        let whole = self.window.cwnd as u32 as f64;
        let cwnd = if whole < self.window.cwnd { whole + 1.0 } else { whole };
        Allowance { cwnd: cwnd.max(2.0), pacing: Some(self.rate) }
    }

    fn on_start(&mut self, now: Time, rtt: Time) {
        self.round_at = now;
        self.pace(now, rtt);
    }

    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        packet.set_ecn(Ecn::Capable1);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.highest = ack.highest_sent;
        let marked = self.marks.count(ack);
        if marked > 0 {
            self.seen = true;
            if ack.cumulative > self.reduced_until && self.passed(ack.now, self.reduced_at) {
                self.reduce(ack.now, ack.srtt.as_secs_f64());
            }
        }
        let unmarked = ack.newly_acked.saturating_sub(marked);
        // Pacing is what limits, so the window need not be full, as Linux's rule demands.
        if self.window.grows(ack) | grows(ack) && unmarked > 0 {
            let left = self.window.slow_start_by(unmarked as f64);
            // A window of RTT_virt grows by a segment for each at most.
            self.window.cwnd += self.short * self.short * left / self.window.cwnd.max(self.short);
        }
        if self.passed(ack.now, self.round_at) && self.round.ends(ack) {
            self.end_round(ack.now, ack.srtt.as_secs_f64());
        }
        self.pace(ack.now, ack.srtt);
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            // Only of a receiver without counts.
            LossKind::Mark => self.reduce(loss.now, loss.srtt.as_secs_f64()),
            LossKind::Duplicates | LossKind::Timeout => {
                self.window.reduce_to(loss, self.window.cwnd / 2.0);
                self.reduced(loss.now);
            }
        }
        self.pace(loss.now, loss.srtt);
    }

    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.window.on_idle(now, idle, timeout);
    }

    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        (self.window.cwnd, self.window.ssthresh) = (window.max(1.0), window.max(2.0));
        self.pace(now, srtt);
    }

    fn threshold(&self) -> f64 {
        self.window.ssthresh
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.window.undo(undo);
        self.pace(undo.now, undo.srtt);
    }

    fn probe(&self, put: Probe<'_>) {
        self.window.probe(put);
        put("alpha", self.alpha);
        put("pacing_bps", self.rate.0 as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::{Congestion, Transport};

    fn sender(window: f64, given: &[(&str, f64)]) -> Box<AnySender> {
        testing::sender(&Prague, window, given)
    }
    fn probed(s: &AnySender, variable: &str) -> f64 {
        testing::probed(|put| s.probe(put), variable)
    }
    /// An acknowledgement at `ms` of the next segment of those up to `highest`, with the receiver's count of marks and
    /// this round-trip time in ms; the window then.
    fn deliver(s: &mut AnySender, (ms, rtt): (u64, u64), cumulative: u32, highest_sent: u32, marks: u16) -> f64 {
        let mut transport = Transport::EMPTY;
        transport.set_receiver_stamp(marks);
        let ack = testing::ack(Time::millis(ms), &Congestion::NONE);
        let srtt = Time::millis(rtt);
        s.on_ack(&Ack { transport: &transport, cumulative, highest_sent, selective: true, rtt: srtt, srtt, ..ack });
        probed(s, "cwnd")
    }

    /// Slow start from 10 to 22 by twelve unmarked segments. The first mark halves. Alpha is 1 until then; of the
    /// round's eleven segments four are marked: 1 + (4/11 - 1) / 16.
    #[test]
    fn the_first_mark_ends_slow_start() {
        let mut s = sender(10.0, &[]);
        assert_eq!(deliver(&mut *s, (0, 100), 1, 11, 0), 11.0);
        (2..=11).for_each(|n| {
            deliver(&mut *s, (0, 100), n, 22, 0);
        });
        assert_eq!((deliver(&mut *s, (0, 100), 12, 22, 0), probed(&*s, "alpha")), (22.0, 1.0));
        assert_eq!(deliver(&mut *s, (100, 100), 13, 40, 1), 11.0);
        for (n, marks) in [(14, 2), (15, 3), (16, 4)] {
            assert_eq!(deliver(&mut *s, (100, 100), n, 40, marks), 11.0, "neither a second reduction nor growth");
        }
        let mut expected = 11.0;
        for n in 17..=23 {
            expected += 1.0 / expected;
            let cwnd = deliver(&mut *s, (100, 100), n, 40, 4);
            assert!((cwnd - expected).abs() < 1e-12, "unmarked segments of the same round trip count: {cwnd}");
        }
        let alpha = 1.0 + (4.0 / 11.0 - 1.0) / 16.0;
        assert!((probed(&*s, "alpha") - alpha).abs() < 1e-12, "{}", probed(&*s, "alpha"));
        // The next mark is of a round trip after segment 40: reduced by half of alpha, and not grown.
        let reduced = deliver(&mut *s, (200, 100), 41, 60, 5);
        assert!((reduced - expected * (1.0 - alpha / 2.0)).abs() < 1e-12, "{reduced}");
        assert_eq!(s.threshold(), reduced);
    }

    /// Round trips of 10 ms after the transition: a segment adds 0.16 / cwnd, and marks reduce once in 25 ms; with a
    /// transition still to come 1 / cwnd, and once in a round trip.
    #[test]
    fn short_round_trips_count_as_virtual_ones() {
        for (transition, factor, again) in [(0.0, 0.16, false), (1e9, 1.0, true)] {
            let mut s = sender(100.0, &[("transition", transition)]);
            assert_eq!(deliver(&mut *s, (100, 10), 1, 101, 1), 50.0, "the first mark");
            let before = probed(&*s, "cwnd");
            let grown = deliver(&mut *s, (101, 10), 2, 102, 1);
            assert!((grown - before - factor / before).abs() < 1e-9, "{transition}: {grown}");
            // A round trip later, 12 ms after the reduction.
            let after = deliver(&mut *s, (112, 10), 102, 150, 2);
            assert_eq!(after < 0.9 * grown, again, "{transition}: {after} after {grown}");
            // 25 ms after it, one again.
            assert!(deliver(&mut *s, (126, 10), 151, 200, 3) < 0.9 * after, "{transition}");
        }
        // Longer ones count as they are.
        let mut s = sender(100.0, &[("transition", 0.0)]);
        deliver(&mut *s, (100, 40), 1, 101, 1);
        assert_eq!(deliver(&mut *s, (141, 40), 2, 102, 1), 50.0 + 1.0 / 50.0);
    }

    /// 100 packets of 1000 bytes in 100 ms are 8 Mbit/s: twice that in slow start, then 3.125 % more and less in the
    /// halves of a round trip.
    #[test]
    fn packets_are_paced() {
        let mut s = sender(100.0, &[]);
        s.on_start(Time::ZERO, Time::millis(100));
        assert_eq!(s.allowance().pacing, Some(Rate::mbps(16)));
        deliver(&mut *s, (100, 100), 1, 101, 1);
        assert_eq!(s.allowance(), Allowance { cwnd: 50.0, pacing: Some(Rate::bps(4_125_000)) });
        deliver(&mut *s, (151, 100), 2, 101, 2);
        assert_eq!(s.allowance().pacing, Some(Rate::bps(3_875_000)));
        let cwnd = deliver(&mut *s, (151, 100), 3, 101, 2);
        assert!((cwnd - 50.02).abs() < 1e-12 && s.allowance().cwnd == 51.0, "rounded up: {cwnd}");
    }

    /// Marks without end: the window falls to 100 kbit/s, here with 3.125 % more, while two packets may be in flight.
    #[test]
    fn the_rate_falls_below_two_segments_a_round_trip() {
        let mut s = sender(4.0, &[]);
        for n in 1..=20u32 {
            deliver(&mut *s, (100 * n as u64, 10), 10 * n, 10 * n + 2, n as u16);
        }
        assert_eq!(s.allowance(), Allowance { cwnd: 2.0, pacing: Some(Rate::bps(103_125)) });
        assert!((probed(&*s, "cwnd") - 0.125).abs() < 1e-9, "{}", probed(&*s, "cwnd"));
    }

    #[test]
    fn losses_halve_the_window() {
        let mut s = sender(100.0, &[]);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Duplicates, 80));
        assert_eq!((s.allowance().cwnd, s.threshold()), (50.0, 50.0));
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Timeout, 40));
        assert_eq!((probed(&*s, "cwnd"), s.threshold()), (1.0, 25.0));
        let mut s = sender(100.0, &[]);
        s.on_loss(&testing::loss(Time::ZERO, LossKind::Mark, 100));
        assert_eq!(s.allowance().cwnd, 50.0, "alpha is one at first");
    }

    #[test]
    fn data_packets_are_ect1() {
        let mut packet = Packet::EMPTY;
        sender(10.0, &[]).on_send(&mut packet, &testing::sent(Time::ZERO, 0));
        assert_eq!(packet.ecn(), Ecn::Capable1);
    }
}
