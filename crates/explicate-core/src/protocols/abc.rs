//! ABC, accel-brake control: a router marks each packet "accelerate" or "brake", and the sender's window follows by one
//! segment.
//!
//! Sources: Goyal, Agarwal, Netravali, Alizadeh, Balakrishnan, "ABC: A Simple Explicit Congestion Controller for
//! Wireless Networks", NSDI 2020 (arXiv 1905.03429); P. Goyal's code for it, which runs the router in an emulator and
//! the sender in Linux (github.com/prateshg/ABC-NSDI2020, 2021, and its first form prateshg/ABC) \[MIT\]; the Linux
//! modules of K. Ciko, University of Oslo, 2021 \[Oslo\].
//!
//! The idea: data packets leave as "accelerate". A router compares the rate at which packets *leave* its queue with a
//! target rate, and lets a share f of the packets pass unchanged; the others become "brake". For each accelerate the
//! sender's window grows by a segment, for each brake it shrinks by one. So after a round trip the window is 2 f times
//! as large: f = 1 doubles it, f = 1/2 keeps it, f = 0 empties it. With one bit a packet a router reaches any rate up
//! to twice the present one within a round trip. On a path with several routers the smallest f counts, since no router
//! turns a brake into an accelerate. Each window also grows by a segment in a round trip, so that flows come to equal
//! windows.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | mu | `capacity` of the port | bytes/s | | equation 1 |
//! | x(t) | backlog / mu | s | | equation 1 |
//! | eta | `eta` | 1 | 0.98 | equation 1 |
//! | delta | `delta` | s | 0.133 | equation 1 |
//! | d_t | `threshold` | s | 0.02 | equation 1 |
//! | tr(t) | `target` | bytes/s | eta mu - (mu / delta) (x - d_t)^+ | equation 1 |
//! | cr(t) | `Dequeued` | bytes/s | | equation 2 |
//! | T | `window` | s | 0.05 | equation 2 |
//! | f(t) | `share` | 1 | min(tr / (2 cr), 1) | equation 2 |
//! | token, tokenLimit | `token`, `token_limit` | packets | 5 | algorithm 1; \[MIT\], \[Oslo\] |
//! | w | `cwnd` | segments | w + 1 + 1/w, or w - 1 + 1/w | equation 3 |
//! | 01, 10, 11 | [`ACCELERATE`], [`BRAKE`], CE | | | not checked |
//!
//! At rest N flows, which together have W packets in flight, add N packets in a round trip, and brakes have to take
//! them away: f = (1 - N / W) / 2. If this f is above eta / 2, the queue is empty. If it is below, the line is full,
//! and x = d_t + delta (N / W - (1 - eta)).
//!
//! The codes are those of the IP header's ECN field, so packets have no congestion header; the echo has two bits of the
//! transport header. 11 is RFC 3168's mark, which routers without ABC set. Today 01 belongs to L4S (RFC 9331). A queue
//! for L4S mistakes ABC's packets for those of L4S, and a router of VCP, whose codes are the same bits, mistakes them
//! for VCP's: ABC needs a domain of its own. On QUIC's sockets ABC is refused, because QUIC returns one code for many
//! packets.
//!
//! Deviations:
//! 1. Of the paper only the abstract and the start of the introduction could be read. Checked by \[MIT\]: the form of
//!    equations 1 and 2, eta 0.98, delta 0.133 s with round trips of 0.1 s, a limit of five tokens, one more segment in
//!    w acknowledgements, and that section 4.1 is about bottlenecks without ABC. Checked by \[Oslo\]: the number of
//!    equation 2, and the order of steps in algorithm 1. Not checked: the other numbers of equations and sections; the
//!    codes (\[MIT\] and \[Oslo\] brake by 11, and leave all other packets alone); d_t and T, for which we have 20 ms
//!    and 50 ms and \[MIT\], in its example, 50 ms and 20 ms; the stability condition, delta above two thirds of the
//!    longest round trip, so that 0.133 s serve 0.2 s. Over longer paths delta has to be raised. A comment in \[MIT\]'s
//!    first form asks for more: 0.75 delta above the longest round trip.
//! 2. Not implemented: the second window, for bottlenecks without ABC (section 4.1), in whose place flows have the
//!    guard (`guard.rs`). In \[MIT\]'s module with this window it is CUBIC's, and the lesser of the two applies. Not
//!    implemented, either, are the two queues with weights, for ABC and other traffic; here a port has classes.
//! 3. mu is the configured capacity, or the one that the port measures (`capacity` of a link,
//!    `estimate/hop_capacity.rs`), as for all routers here. The paper's own measurement of a Wi-Fi link is not
//!    implemented.
//! 4. T consists of eleven slots, so that the measured time is between T and 1.1 T.
//! 5. A loss halves the window, or leaves it (`on_loss = "keep"`), as in \[Oslo\] and in \[MIT\]'s plain module; where
//!    there is a second window, only that one is reduced. A timeout resets the window to one segment, as Linux does
//!    under \[Oslo\]; in \[MIT\] the next acknowledgement restores it. A packet marked 11 is a brake, and halves the
//!    window once a round trip (RFC 3168); in \[MIT\] and \[Oslo\] it is a brake and no more.
//! 6. A window grows to twice the packets in flight at most, and one that is larger stays. \[Oslo\] and \[MIT\]'s plain
//!    module have no such bound; the module with two windows cuts both to twice the packets in flight and five more.
//!    Here a window is never below one segment; in \[MIT\] brakes leave six, in \[Oslo\] two.
//! 7. An acknowledgement of several packets returns one code: *accelerate* if packets with this code outnumber those
//!    with *brake* by half of all or more, *brake* in the opposite case, otherwise neither. The remainder counts for
//!    the next acknowledgement. The code counts for all packets that the sender did not know to have arrived, so also
//!    for those of lost acknowledgements, as in \[MIT\] and \[Oslo\].
//! 8. \[MIT\] of 2021 departs from equation 1: it takes eta cr in place of eta mu, and adds 0.49 tokens for each
//!    transmission that no packet uses. Here, as in its first form, it is eta mu, and nothing is added. Its x includes
//!    the packet that leaves, ours does not. Its cr and mu count ECN-capable packets only, ours all. It cuts tokens to
//!    the limit after a packet has taken one, here they are cut before, as in \[Oslo\]. It begins with five tokens;
//!    here, as in \[Oslo\], there are none at first, so that the first packet over a link is a brake.
//! 9. Packets leave as the window lets them. \[MIT\] paces a window over half a round trip, \[Oslo\] as Linux does.

use alloc::boxed::Box;
use core::fmt;

use crate::api::{
    Ack, Allowance, AnyReceiver, AnyRouter, AnySender, Loss, LossKind, PortView, Probe, Protocol, Receiver, Router,
    RouterInit, Sender, SenderInit, Sent,
};
use crate::params::{Fraction, Info, Packets, Param, Seconds, choices, parameters};
use crate::protocols::common::delivery::Arrivals;
use crate::protocols::common::load_factor::{bears_code, raise};
use crate::units::Time;
use crate::wire::{Describe, Ecn, Packet, flag};

/// ABC.
pub struct Abc;

/// The code by which a window grows by a segment.
pub const ACCELERATE: u8 = Ecn::Capable1 as u8;
/// The code by which it shrinks by one.
pub const BRAKE: u8 = Ecn::Capable0 as u8;
/// A mark of a router without ABC.
const MARKED: u8 = Ecn::Marked as u8;

choices! {
    /// Effect of a fast retransmit on the window.
    pub enum OnLoss { Halve = "halve", Keep = "keep" }
}

parameters! {
    /// Sender parameters.
    pub struct Params {
        /// Effect of a fast retransmit on the window: half, or none. A timeout always resets the window.
        on_loss: OnLoss = OnLoss::Halve, "ours; in MIT's code a second window, CUBIC's, reacts";
    }
}

parameters! {
    /// Router parameters.
    pub struct RouterParams {
        /// Share of the capacity that is the target while the queue is short.
        eta: Fraction = 0.98, in 0.01..=1.0, "NSDI 2020 equation 1";
        /// Time in which a queue beyond the threshold is to be drained; more than two thirds of the longest round trip.
        delta: Seconds = 0.133, in 1e-5..=100.0, "NSDI 2020 equation 1";
        /// Delay in the queue that lowers nothing.
        threshold: Seconds = 0.02, in 0.0..=10.0, "NSDI 2020 equation 1; the value is ours";
        /// Time over which the rate of departures is measured, about a round trip.
        window: Seconds = 0.05, in 1e-5..=10.0, "NSDI 2020 equation 2; the value is ours";
        /// Accelerates that may follow each other beyond the share.
        token_limit: Packets = 5.0, in 1.0..=1e6, "NSDI 2020 algorithm 1; Oslo's sch_abc";
    }
}

impl Protocol for Abc {
    const INFO: Info = Info {
        name: "abc",
        summary: "ABC: routers mark packets accelerate or brake, and windows grow or shrink by one segment for each",
        source: "Goyal, Agarwal, Netravali, Alizadeh, Balakrishnan, NSDI 2020",
        params: Params::PARAMS,
    };
    const ROUTER_PARAMS: &'static [Param] = RouterParams::PARAMS;
    const EXPLICIT: bool = true;
    const DESCRIBE: Describe = describe;
    const OWN_ECN: bool = true;
    const HEADER_LEN: u16 = 0;

    fn matches(&self, packet: &Packet) -> bool {
        bears_code(packet)
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        let keep = Params::of(init.values).on_loss == OnLoss::Keep;
        Box::new(AbcSender { cwnd: init.initial_window, keep, arrivals: Arrivals::default(), code: 0 })
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::<AbcReceiver>::default())
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Some(Box::new(AbcRouter::new(RouterParams::of(init.values))))
    }
}

/// Text for packet logs.
fn describe(packet: &Packet, out: &mut dyn fmt::Write) -> fmt::Result {
    let code = if packet.is_ack() { packet.transport.code() } else { packet.ecn() as u8 };
    match code {
        _ if packet.transport.has(flag::SYN) => Ok(()), // the same bits of a SYN are options
        ACCELERATE => out.write_str(" accelerate"),
        BRAKE => out.write_str(" brake"),
        _ => Ok(()),
    }
}

// ------------------------------------------------------------------------------------------ end systems, equation 3

struct AbcSender {
    cwnd: f64,
    keep: bool,
    arrivals: Arrivals,
    /// The last code, for the probe.
    code: u8,
}

impl Sender for AbcSender {
    const HAS_TIMER: bool = false;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.cwnd, pacing: None }
    }

    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        packet.set_ecn(Ecn::Capable1);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.code = ack.transport.code();
        let packets = self.arrivals.count(ack) as f64;
        let direction = match self.code {
            ACCELERATE => 1.0,
            BRAKE | MARKED => -1.0,
            _ => 0.0, // as many of either
        };
        let next = self.cwnd + packets * (direction + 1.0 / self.cwnd);
        // A window that is not used would grow without bound: no router brakes packets that are not sent.
        let most = (2.0 * (ack.in_flight as f64 + packets)).max(self.cwnd);
        self.cwnd = next.min(most).max(1.0);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cwnd = match loss.kind {
            LossKind::Timeout => 1.0,
            LossKind::Duplicates if self.keep => self.cwnd,
            LossKind::Duplicates | LossKind::Mark => (self.cwnd / 2.0).max(1.0),
        };
    }

    fn resume(&mut self, _now: Time, window: f64, _srtt: Time) {
        self.cwnd = window.max(1.0);
    }

    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
        put("code", self.code as f64);
    }
}

/// Returns accelerates and brakes.
#[derive(Default)]
struct AbcReceiver {
    /// Accelerates less brakes that no acknowledgement has returned.
    balance: i32,
    /// Packets since the last acknowledgement.
    packets: i32,
}

impl Receiver for AbcReceiver {
    fn on_data(&mut self, _now: Time, packet: &Packet) {
        self.packets += 1;
        self.balance += match packet.ecn() {
            Ecn::Capable1 => 1,
            Ecn::Capable0 | Ecn::Marked => -1,
            Ecn::NotCapable => 0,
        };
    }
    fn on_ack(&mut self, _now: Time, ack: &mut Packet) {
        let (packets, balance) = (self.packets, self.balance);
        self.packets = 0;
        if packets > 0 && 2 * balance >= packets {
            self.balance -= packets;
            ack.transport.set_code(ACCELERATE);
        } else if packets > 0 && 2 * balance <= -packets {
            self.balance += packets;
            ack.transport.set_code(BRAKE);
        }
    }
}

// ------------------------------------------------------------------------------ router, equations 1, 2, algorithm 1

/// Slots before the present one that the measured rate covers.
const SLOTS: u64 = 10;

/// What left in the last T.
struct Dequeued {
    /// Length of a slot, T / 10.
    slot: Time,
    /// When the present slot ends.
    ends: Time,
    /// Its index.
    at: usize,
    /// Bytes in each slot, and their sum.
    slots: [u64; SLOTS as usize + 1],
    bytes: u64,
}

impl Dequeued {
    fn new(window: f64) -> Dequeued {
        let slot = Time(Time::from_secs_f64(window).0.div_ceil(SLOTS).max(1));
        Dequeued { slot, ends: slot, at: 0, slots: [0; SLOTS as usize + 1], bytes: 0 }
    }
    /// A packet leaves.
    fn add(&mut self, now: Time, bytes: u16) {
        if self.ends <= now {
            self.turn(now);
        }
        self.slots[self.at] += bytes as u64;
        self.bytes += bytes as u64;
    }
    fn turn(&mut self, now: Time) {
        let passed = 1 + now.since(self.ends).0 / self.slot.0;
        for _ in 0..passed.min(SLOTS + 1) {
            self.at = if self.at == SLOTS as usize { 0 } else { self.at + 1 };
            self.bytes -= self.slots[self.at];
            self.slots[self.at] = 0;
        }
        self.ends += Time(passed * self.slot.0);
    }
    /// The time that [`Dequeued::bytes`] are of, s; from T to 1.1 T.
    fn seconds(&self, now: Time) -> f64 {
        let elapsed = self.slot.0 - self.ends.since(now).0;
        (SLOTS * self.slot.0 + elapsed) as i64 as f64 * 1e-9
    }
}

struct AbcRouter {
    params: RouterParams,
    dequeued: Dequeued,
    token: f64,
    /// For the probe: the target rate, bytes/s, the rate of departures, bytes/s, and f.
    target: f64,
    rate: f64,
    share: f64,
}

impl AbcRouter {
    fn new(params: RouterParams) -> AbcRouter {
        let dequeued = Dequeued::new(params.window);
        AbcRouter { params, dequeued, token: 0.0, target: 0.0, rate: 0.0, share: 0.0 }
    }

    /// Equations 1 and 2 for a packet that leaves.
    fn measure(&mut self, now: Time, port: &PortView) {
        let wait = port.backlog_bytes as f64 / port.capacity - self.params.threshold;
        self.target = port.capacity * (self.params.eta - wait.max(0.0) / self.params.delta);
        // The packet itself is in the sum, which is not zero.
        self.rate = self.dequeued.bytes as f64 / self.dequeued.seconds(now);
        // Neither a line that is paused nor a long queue has a target.
        self.share = if self.target > 0.0 { (0.5 * self.target / self.rate).min(1.0) } else { 0.0 };
    }
}

impl Router for AbcRouter {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}

    fn writes_into(&self, packet: &Packet) -> bool {
        bears_code(packet)
    }

    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        self.dequeued.add(now, packet.ip_len);
        if !bears_code(packet) {
            return;
        }
        self.measure(now, port);
        self.token = (self.token + self.share).min(self.params.token_limit);
        if packet.ecn() == Ecn::Capable1 {
            if self.token > 1.0 {
                self.token -= 1.0;
            } else {
                raise(packet, BRAKE);
            }
        }
    }

    fn probe(&self, put: Probe<'_>) {
        put("target_bps", 8.0 * self.target);
        put("dequeue_bps", 8.0 * self.rate);
        put("accelerated_share", self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::{Congestion, Transport};

    const MU: f64 = 1.25e6;

    fn view(backlog_bytes: u64) -> PortView {
        PortView { capacity: MU, backlog_bytes, backlog_packets: 0, busy: true }
    }
    fn data(code: u8) -> Packet {
        let mut packet = Packet { ip_len: 1000, tos: code, ..Packet::EMPTY };
        packet.transport.set_payload(948);
        packet
    }
    /// A router from which a packet of 1000 bytes leaves every `gap` us for a second, with `backlog` bytes behind it;
    /// the accelerates of the last `count` packets.
    fn after_a_second(gap: u64, backlog: u64, count: u64) -> (AbcRouter, u64) {
        let mut router = AbcRouter::new(RouterParams::DEFAULT);
        let packets = 1_000_000 / gap;
        let mut accelerates = 0;
        for n in 1..=packets {
            let mut packet = data(ACCELERATE);
            router.on_departure(Time::micros(n * gap), &mut packet, &view(backlog));
            accelerates += (packet.tos == ACCELERATE && n + count > packets) as u64;
        }
        (router, accelerates)
    }
    fn sender(window: f64, given: &[(&str, f64)]) -> Box<AnySender> {
        testing::sender(&Abc, window, given)
    }
    /// An acknowledgement of `newly_acked` segments with a code, while `in_flight` are in flight.
    fn deliver(s: &mut AnySender, code: u8, newly_acked: u32, in_flight: u32) -> f64 {
        let mut transport = Transport::EMPTY;
        transport.set_code(code);
        let ack = Ack { newly_acked, in_flight, ..testing::ack(Time::ZERO, &Congestion::NONE) };
        s.on_ack(&Ack { transport: &transport, ..ack });
        s.allowance().cwnd
    }

    /// 0.98 * 1.25e6 with a wait of up to 20 ms, 25,000 B. Of 41,625 B the wait is 33.3 ms: 13.3 ms beyond, a tenth of
    /// 133 ms: 0.88 mu. Of 191,250 B it is 153 ms: 133 ms beyond leave less than nothing.
    #[test]
    fn the_target_by_hand() {
        for (backlog, target, share) in
            [(0, 0.98, 0.49), (25_000, 0.98, 0.49), (41_625, 0.88, 0.44), (191_250, -0.02, 0.0)]
        {
            // 0.8 ms between packets of 1000 bytes are 1.25e6 B/s.
            let (router, _) = after_a_second(800, backlog, 1);
            assert!((router.target / MU - target).abs() < 1e-9, "{backlog}: {}", router.target / MU);
            assert!((router.share - share).abs() < 0.02 * share + 1e-12, "{backlog}: f = {}", router.share);
        }
    }

    /// Half the capacity leaves: f = 0.98 / (2 * 0.5). A quarter: f = 1.96, cut to 1.
    #[test]
    fn the_rate_of_departures_counts() {
        for (gap, rate, share) in [(800, 1.0, 0.49), (1600, 0.5, 0.98), (3200, 0.25, 1.0)] {
            let (router, accelerates) = after_a_second(gap, 0, 100);
            assert!((router.rate / MU / rate - 1.0).abs() < 0.04, "{gap}: {}", router.rate / MU);
            assert!((router.share / share - 1.0).abs() < 0.04, "{gap}: {}", router.share);
            assert!((accelerates as f64 - 100.0 * share).abs() < 4.0, "{gap}: {accelerates} of 100");
        }
    }

    /// T = 50 ms, eleven slots of 5 ms. Packets at 1 and 2 ms are in the sum until 55 ms; after a second nothing is.
    #[test]
    fn departures_are_forgotten_after_t() {
        let mut dequeued = Dequeued::new(0.05);
        let mut bytes = |ms| {
            dequeued.add(Time::millis(ms), 1000);
            (dequeued.bytes, (dequeued.seconds(Time::millis(ms)) * 1e3).round())
        };
        assert_eq!([1, 2, 7].map(&mut bytes), [(1000, 51.0), (2000, 52.0), (3000, 52.0)]);
        assert_eq!([54, 55, 60].map(&mut bytes), [(4000, 54.0), (3000, 50.0), (3000, 50.0)]);
        assert_eq!(bytes(1060), (1000, 50.0));
    }

    /// With f = 0.49 and no token: 0.49, 0.98 and 1.47, so the third packet passes, and 0.47 is left: 0.96, 1.45. At f
    /// = 1 tokens never run out; those beyond the limit are lost.
    #[test]
    fn tokens_space_the_accelerates() {
        let (mut router, _) = after_a_second(800, 0, 1);
        router.token = 0.0;
        let mut passes = |token: f64, backlog: u64| {
            router.token = token;
            let mut codes = alloc::vec::Vec::new();
            for n in 0..6 {
                let mut packet = data(ACCELERATE);
                router.on_departure(Time::secs(1) + Time::micros(800 * n), &mut packet, &view(backlog));
                codes.push(packet.tos);
            }
            codes
        };
        assert_eq!(passes(0.0, 0), [BRAKE, BRAKE, ACCELERATE, BRAKE, ACCELERATE, BRAKE]);
        // No share: the tokens that are left, each for a packet while there is more than one.
        assert_eq!(passes(3.5, 191_250), [ACCELERATE, ACCELERATE, ACCELERATE, BRAKE, BRAKE, BRAKE]);
        let (mut router, _) = after_a_second(3200, 0, 1);
        router.token = 9.0;
        router.on_departure(Time::secs(1), &mut data(ACCELERATE), &view(0));
        assert_eq!(router.token, 4.0, "5, less the one that the packet took");
    }

    /// Brakes stay brakes, marks stay marks, and packets of others are left alone.
    #[test]
    fn codes_are_only_raised() {
        for (backlog, left) in [(0, [0, 1, 2, 3]), (191_250, [0, 2, 2, 3])] {
            let (mut router, _) = after_a_second(3200, 0, 1);
            let codes = [0, 1, 2, 3].map(|code| {
                router.token = if backlog == 0 { 5.0 } else { 0.0 };
                let mut packet = data(code);
                router.on_departure(Time::secs(1), &mut packet, &view(backlog));
                packet.tos
            });
            assert_eq!(codes, left);
        }
        let mut ack = Packet { tos: ACCELERATE, ..Packet::EMPTY };
        ack.transport.set_flags(flag::ACK);
        AbcRouter::new(RouterParams::DEFAULT).on_departure(Time::ZERO, &mut ack, &view(191_250));
        assert_eq!(ack.tos, ACCELERATE);
    }

    /// Equation 3: 10 + 1 + 0.1, then - 1 + 1/11.1.
    #[test]
    fn a_segment_up_or_down_and_one_a_round_trip() {
        let mut s = sender(10.0, &[]);
        assert!((deliver(&mut *s, ACCELERATE, 1, 10) - 11.1).abs() < 1e-12);
        assert!((deliver(&mut *s, BRAKE, 1, 10) - (10.1 + 1.0 / 11.1)).abs() < 1e-12);
        let mut s = sender(10.0, &[]);
        assert!((deliver(&mut *s, MARKED, 1, 10) - 9.1).abs() < 1e-12, "a mark is a brake");
        assert!((deliver(&mut *s, 0, 2, 10) - (9.1 + 2.0 / 9.1)).abs() < 1e-12, "as many of either");
        let mut s = sender(1.0, &[]);
        assert_eq!(deliver(&mut *s, BRAKE, 1, 1), 1.0, "no less than a segment");
        let mut s = sender(10.0, &[]);
        assert!((deliver(&mut *s, BRAKE, 4, 10) - 6.4).abs() < 1e-12, "for each packet: 10 - 4 + 4/10");
    }

    /// A share f of accelerates makes 2 f windows of a window, and 1/w for each packet: ln 2 = 0.7 while w doubles, 1
    /// where it stays, 2 ln 1.5 = 0.8. All brakes end where w + ln(w - 1) = 6.9.
    #[test]
    fn a_window_of_acknowledgements_follows_the_share() {
        for (accelerates, expected) in [(1000, 2000.7), (500, 1001.0), (750, 1500.8), (0, 5.4)] {
            let mut s = sender(1000.0, &[]);
            let mut error = 500;
            for _ in 0..1000 {
                error += accelerates;
                let code = if error >= 1000 { ACCELERATE } else { BRAKE };
                error -= if error >= 1000 { 1000 } else { 0 };
                deliver(&mut *s, code, 1, 2000);
            }
            let cwnd = s.allowance().cwnd;
            assert!((cwnd - expected).abs() < 1.1, "{accelerates}: {cwnd}, expected {expected}");
        }
    }

    /// Four in flight and one that has arrived: ten at most. A larger window stays.
    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut s = sender(9.5, &[]);
        assert_eq!(deliver(&mut *s, ACCELERATE, 1, 4), 10.0);
        let mut s = sender(20.0, &[]);
        assert_eq!(deliver(&mut *s, ACCELERATE, 1, 4), 20.0);
        assert!((deliver(&mut *s, BRAKE, 1, 4) - 19.05).abs() < 1e-12);
    }

    #[test]
    fn losses_halve_or_nothing() {
        let after = |keep: f64, kind| {
            let mut s = sender(100.0, &[("on_loss", keep)]);
            s.on_loss(&testing::loss(Time::ZERO, kind, 100));
            s.allowance().cwnd
        };
        assert_eq!((after(0.0, LossKind::Duplicates), after(1.0, LossKind::Duplicates)), (50.0, 100.0));
        assert_eq!((after(0.0, LossKind::Timeout), after(1.0, LossKind::Timeout)), (1.0, 1.0));
        assert_eq!((after(0.0, LossKind::Mark), after(1.0, LossKind::Mark)), (50.0, 50.0));
    }

    /// Of three packets two accelerates are one more than brakes: less than half of three, so neither, and one is kept.
    #[test]
    fn the_receiver_returns_what_came() {
        let mut receiver = AbcReceiver::default();
        let mut echo = |codes: &[u8]| {
            for code in codes {
                receiver.on_data(Time::ZERO, &data(*code));
            }
            let mut ack = Packet::EMPTY;
            receiver.on_ack(Time::ZERO, &mut ack);
            ack.transport.code()
        };
        assert_eq!([echo(&[ACCELERATE]), echo(&[BRAKE]), echo(&[MARKED]), echo(&[])], [ACCELERATE, BRAKE, BRAKE, 0]);
        assert_eq!(echo(&[ACCELERATE, ACCELERATE]), ACCELERATE);
        assert_eq!(echo(&[ACCELERATE, BRAKE]), 0);
        assert_eq!(echo(&[ACCELERATE, ACCELERATE, BRAKE]), 0);
        assert_eq!(echo(&[ACCELERATE, ACCELERATE, BRAKE]), ACCELERATE, "two more since the last one");
        assert_eq!(echo(&[ACCELERATE, BRAKE, BRAKE]), BRAKE, "three were returned for two");
    }
}
