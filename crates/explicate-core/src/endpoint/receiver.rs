//! The receiving endpoint of a flow: reassembles, and acknowledges every packet or every few packets.
//!
//! An acknowledgement echoes the number and the time stamp of the packet that caused it. A delayed acknowledgement
//! (`ack_every`; the first `quick_acks` are not delayed) is sent at once with a packet that is out of order, fills a
//! gap, is a duplicate, is marked or is the last one (RFC 5681 section 4.2), or after `ack_delay`. It echoes the
//! number of the latest packet, the time stamp of the first that it covers (RFC 7323 section 4.3), and the feedback
//! of all. With `acks = "linux"` number and delay follow Linux's rules instead (`receiver/adaptive.rs`).
//!
//! A driver may call the four methods of [`super`], or replace a packet by its acknowledgement with
//! [`ReceiverEndpoint::turn`].

use alloc::boxed::Box;
use core::ops::AddAssign;

use crate::api::AnyReceiver;
use crate::endpoint::{Acks, Autotuning, FlowInit, Params, data_header_bytes, header_bytes, is_guarded};
use crate::gaps::Seen;
use crate::guard::Echoing;
use crate::protocols::rate_header;
use crate::reassembly::Reassembly;
use crate::scone::following::Returning;
use crate::units::Time;
use crate::wire::{Congestion, Ecn, Format, Packet, SackRanges, Transport, flag};

mod adaptive;
mod delayed;
mod predicted;
mod room;
mod set_up;

use self::adaptive::Adaptive;
use self::delayed::Delay;
use self::room::Room;
use self::set_up::Terms;

/// Counters of a receiving end.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReceiverStats {
    /// Packets received, including SYNs and duplicates.
    pub received: u64,
    /// In-order payload of the whole run, bytes.
    pub payload: u64,
    /// IP bytes of data packets received, including duplicates. Not adjacent to `received`, see
    /// [`crate::endpoint::SenderStats`].
    pub bytes: u64,
    /// Packets that arrived damaged and were dropped.
    pub damaged: u64,
}

impl AddAssign for ReceiverStats {
    fn add_assign(&mut self, more: ReceiverStats) {
        self.received += more.received;
        self.bytes += more.bytes;
        self.payload += more.payload;
        self.damaged += more.damaged;
    }
}

/// The receiving endpoint of a flow.
pub struct ReceiverEndpoint {
    /// Number of the flow; its complement while this end waits for a SYN.
    id: u32,
    /// The receiver writes into acknowledgements: explicit feedback was granted, or the protocol has other feedback.
    writes_feedback: bool,
    /// What the SYN decides.
    terms: Terms,
    /// Acknowledgements carry a congestion header.
    header: bool,
    sack: bool,
    /// Duplicates are reported (RFC 2883).
    dsack: bool,
    /// A mark arrived, and the sender has not yet set CWR (RFC 3168 section 6.1.3).
    ece: bool,
    window: u32,
    returns: Returns,
    /// Acknowledgements of data return the Delta_Throughput of their packets, and explicit feedback was granted.
    echoes_feedback: bool,
    /// Length of an acknowledgement of data without SACK ranges, bytes.
    answer: u8,
    data: Reassembly,
    /// Not adjacent to the other counter, see [`crate::endpoint::SenderStats`].
    received: u64,
    rare: Option<Box<Rare>>,
    bytes: u64,
}

/// The feedback that acknowledgements return.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returns {
    /// Nothing.
    Nothing,
    /// The Delta_Throughput of the packet, as Reverse_Feedback; zero if its header is not standard.
    Delta,
    /// The fields that the receiver writes.
    Own,
}

/// State that few flows need.
#[derive(Default)]
struct Rare {
    /// Kept if acknowledgements carry feedback.
    receiver: Option<Box<AnyReceiver>>,
    /// Packets that the receiver was given.
    given: Seen,
    /// Nothing is acknowledged.
    one_way: bool,
    delay: Option<Delay>,
    /// The window, if it is tuned.
    room: Option<Room>,
    /// An acknowledgement that [`ReceiverEndpoint::poll_transmit`] has not returned yet.
    answer: Option<Answer>,
    damaged: u64,
}

/// The fields that the next acknowledgement echoes.
struct Answer {
    syn_options: Option<u8>,
    packet_number: u32,
    timestamp: u32,
    /// The feedback, if it is [`Returns::Delta`].
    delta: i32,
    /// The segment of the packet if it is reported as a duplicate, otherwise [`NO_DUPLICATE`].
    duplicate: u32,
}

/// In place of a duplicate: no flow has this segment.
const NO_DUPLICATE: u32 = u32::MAX;

impl ReceiverEndpoint {
    /// The receiving endpoint of the flow that `init` describes.
    pub fn new(init: &FlowInit<'_>) -> ReceiverEndpoint {
        let params = Params::of(init.values);
        let every = params.ack_every as u32;
        let delay = Delay {
            every,
            quick: params.quick_acks as u32,
            longest: Time::from_secs_f64(params.ack_delay),
            adaptive: (params.acks == Acks::Linux).then(Adaptive::new),
            held: 0,
            packet_number: 0,
            timestamp: 0,
            deadline: Time::NEVER,
        };
        let delays = every > 1 || delay.adaptive.is_some();
        let most_window = params.receiver_window as u32;
        let payload = init.packet.saturating_sub(data_header_bytes(init.protocol)) as u32;
        let room = (params.autotuning == Autotuning::Linux).then(|| Room::new(payload, most_window));
        let guarded = init.protocol.explicit() && is_guarded(init.values);
        let mut receiver = init.protocol.receiver();
        if params.scone && !init.protocol.explicit() {
            receiver = Some(Box::new(Returning::new(receiver)));
        }
        let without_header = !init.protocol.explicit() && receiver.is_some();
        let receiver = if guarded { Some(Box::new(Echoing::new(receiver)) as Box<AnyReceiver>) } else { receiver };
        let returns = match &receiver {
            _ if delays || room.is_some() => Returns::Own,
            None => Returns::Nothing,
            Some(receiver) if receiver.echoes() => Returns::Delta,
            Some(_) => Returns::Own,
        };
        let own = returns == Returns::Own;
        let window = room.as_ref().map_or(most_window, |room| room.window);
        let rare = || Rare { receiver, delay: delays.then_some(delay), room, ..Rare::default() };
        ReceiverEndpoint {
            id: init.id,
            writes_feedback: false,
            terms: Terms::new(without_header, init.protocol.congestion_header(), params.refuse_explicit),
            header: false,
            sack: false,
            dsack: false,
            ece: false,
            window,
            returns,
            echoes_feedback: false,
            answer: header_bytes(false) as u8,
            data: Reassembly::default(),
            rare: own.then(|| Box::new(rare())),
            received: 0,
            bytes: 0,
        }
    }

    /// Acknowledges nothing, and skips gaps.
    pub(super) fn one_way(mut self) -> ReceiverEndpoint {
        self.rare.get_or_insert_default().one_way = true;
        self.returns = Returns::Own; // no acknowledgement can be predicted
        self.data.pass_over_holes();
        self
    }
    /// Whether the last segment has arrived.
    pub fn has_last(&self) -> bool {
        self.data.has_last()
    }
    /// Segments below the highest that have not arrived, where gaps are skipped.
    pub fn missing(&self) -> u32 {
        self.data.missing()
    }

    /// Counters.
    pub fn stats(&self) -> ReceiverStats {
        let damaged = self.rare.as_ref().map_or(0, |rare| rare.damaged);
        ReceiverStats { received: self.received, bytes: self.bytes, payload: self.data.payload(), damaged }
    }
    /// A packet arrived damaged and was dropped.
    pub fn count_damaged(&mut self) {
        self.rare.get_or_insert_default().damaged += 1;
    }

    /// The next segment expected.
    pub fn expected(&self) -> u32 {
        self.data.next()
    }

    /// Bytes of memory used by the record of segments out of order.
    pub fn memory(&self) -> usize {
        self.data.memory()
    }
    /// Additional bytes that one more segment out of order may take.
    pub fn memory_to_insert(&self) -> usize {
        self.data.memory_to_insert()
    }

    /// A packet for this end arrived; an invalid one is ignored.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) {
        if let Some(answer) = self.take(now, packet) {
            self.rare.get_or_insert_default().answer = Some(answer);
        }
    }

    /// Writes the next acknowledgement into `out`; false if none is due. `sack` receives the ranges that follow its
    /// header.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Packet, sack: &mut SackRanges) -> bool {
        let Some(answer) = self.rare.as_mut().and_then(|rare| rare.answer.take()) else { return false };
        sack.clear();
        self.write(now, &answer, out, sack);
        true
    }

    /// [`ReceiverEndpoint::handle_packet`] and [`ReceiverEndpoint::poll_transmit`] in one call: the acknowledgement
    /// replaces the packet. `sack` is written only if the header states that there are ranges.
    #[inline]
    pub fn turn(&mut self, now: Time, packet: &mut Packet, sack: &mut SackRanges) -> bool {
        if packet.transport.has(flag::SYN) {
            return self.turn_syn(now, packet, sack);
        }
        let Some(answer) = self.take(now, packet) else { return false };
        self.write(now, &answer, packet, sack);
        true
    }

    #[cold]
    fn turn_syn(&mut self, now: Time, packet: &mut Packet, sack: &mut SackRanges) -> bool {
        let Some(answer) = self.take(now, packet) else { return false };
        sack.clear();
        self.write(now, &answer, packet, sack);
        true
    }

    #[inline]
    fn take(&mut self, now: Time, packet: &Packet) -> Option<Answer> {
        let header = &packet.transport;
        if (header.has(flag::ACK) || header.flow() != self.id) && !self.opens(header) {
            return None;
        }
        self.received += 1;
        let (packet_number, mut timestamp) = (header.packet_number(), header.timestamp());
        if header.has(flag::SYN) {
            let syn_options = Some(self.grant(now, header.options()));
            return Some(Answer { syn_options, packet_number, timestamp, delta: 0, duplicate: NO_DUPLICATE });
        }
        self.bytes += packet.ip_len as u64;
        let expected = self.data.next();
        let duplicate = self.duplicate(header.segment());
        self.data.insert(header.segment(), self.window, header.payload(), header.has(flag::FIN));
        self.ece = (self.ece && !header.has(flag::CWR)) || packet.ecn() == Ecn::Marked;
        let delta = rate_header::feedback(packet);
        if let Some(rare) = &mut self.rare {
            if rare.one_way {
                return None;
            }
            // A copy brings the feedback of its original again.
            if let Some(receiver) = &mut rare.receiver
                && rare.given.take(packet_number)
            {
                receiver.on_data(now, packet);
            }
            let rises = rare.room.as_mut().is_some_and(|room| {
                let beyond = header.segment().saturating_add(1).saturating_sub(self.data.next());
                room.on_data(now, timestamp, self.data.next(), beyond)
            });
            self.window = rare.room.as_ref().map_or(self.window, |room| room.window);
            if rare.delay.is_some() {
                timestamp = self.hold(now, expected, packet, rises)?;
            }
        }
        Some(Answer { syn_options: None, packet_number, timestamp, delta, duplicate })
    }

    /// The segment if it has arrived before and that is to be reported.
    #[inline(always)]
    fn duplicate(&self, segment: u32) -> u32 {
        if self.dsack && self.data.has(segment) { segment } else { NO_DUPLICATE }
    }

    /// Writes the SACK ranges to report into `sack`, and returns their number.
    #[inline(always)]
    fn ranges(&self, duplicate: u32, sack: &mut SackRanges) -> usize {
        let repeats = duplicate != NO_DUPLICATE;
        if !self.sack || self.data.is_in_order() && !repeats {
            return 0;
        }
        *sack = self.data.ranges();
        if repeats {
            sack.push_front(duplicate, duplicate + 1);
        }
        sack.as_slice().len()
    }

    #[inline]
    fn write(&mut self, now: Time, answer: &Answer, out: &mut Packet, sack: &mut SackRanges) {
        let ranges = self.ranges(answer.duplicate, sack);
        let flags = flag::ACK | if self.ece { flag::ECE } else { 0 };
        self.fill(answer, flags, self.data.next(), ranges, out);
        if let Some(options) = answer.syn_options {
            out.transport.set_flags(flag::ACK | flag::SYN);
            out.transport.set_options(options);
        } else if self.writes_feedback
            && let Some(receiver) = self.rare.as_mut().and_then(|rare| rare.receiver.as_mut())
        {
            receiver.on_ack(now, out);
        }
    }

    /// Writes an acknowledgement except its transport header.
    #[inline(always)]
    fn begin(&self, congestion: bool, delta: i32, ip_len: u16, out: &mut Packet) {
        out.ip_len = ip_len;
        out.ttl = 64;
        out.tos = 0;
        // A copy from memory: constructing it would take twice the instructions.
        static HEADERS: [Congestion; 2] = [Congestion::NONE, Congestion::new(Format::MINIMAL)];
        out.congestion = HEADERS[congestion as usize];
        if self.echoes_feedback {
            out.congestion.set_reverse_feedback(delta);
        }
    }

    #[inline(always)]
    fn fill(&self, answer: &Answer, flags: u8, next: u32, ranges: usize, out: &mut Packet) {
        let congestion = self.header && answer.syn_options.is_none();
        self.begin(congestion, answer.delta, header_bytes(congestion) + 8 * ranges as u16, out);
        let header = &mut out.transport;
        *header = Transport::EMPTY;
        header.set_flags(flags);
        header.set_sack_count(ranges);
        header.set_flow(self.id);
        header.set_segment(next);
        header.set_packet_number(answer.packet_number);
        header.set_window(self.window);
        header.set_timestamp(answer.timestamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::testing;
    use crate::wire::{option, stamp};

    /// A receiving end after set-up.
    fn receiver(protocol: &str, params: &[(&str, f64)]) -> ReceiverEndpoint {
        let values = testing::values(&[Params::PARAMS], params);
        let mut receiver = ReceiverEndpoint::new(&testing::flow(registry::resolve(protocol).unwrap(), &values));
        let mut syn = data(0, 0);
        syn.transport.set_flags(flag::SYN);
        syn.transport.set_options(option::EXPLICIT | option::SACK);
        assert!(answer(&mut receiver, 0, &syn).is_some());
        receiver
    }

    /// Segment `segment`, which left at `ms` as packet 100 + `ms`.
    fn data(segment: u32, ms: u64) -> Packet {
        let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
        packet.transport.set_flow(7);
        packet.transport.set_segment(segment);
        packet.transport.set_packet_number(100 + ms as u32);
        packet.transport.set_timestamp(stamp(Time::millis(ms)));
        packet.transport.set_payload(900);
        packet
    }

    /// The acknowledgement of a packet that arrives at `ms`.
    fn answer(receiver: &mut ReceiverEndpoint, ms: u64, packet: &Packet) -> Option<Packet> {
        receiver.handle_packet(Time::millis(ms), packet);
        poll(receiver, ms)
    }
    fn poll(receiver: &mut ReceiverEndpoint, ms: u64) -> Option<Packet> {
        let (mut out, mut sack) = (Packet::EMPTY, SackRanges::default());
        receiver.poll_transmit(Time::millis(ms), &mut out, &mut sack).then_some(out)
    }
    /// Cumulative number, echoed packet number and time stamp (ms) of an acknowledgement.
    fn echoed(ack: Option<Packet>) -> Option<(u32, u32, u64)> {
        let header = ack?.transport;
        Some((header.segment(), header.packet_number() - 100, header.timestamp() as u64 * 4 / 1_000_000))
    }

    #[test]
    fn every_packet_is_acknowledged_unless_said_otherwise() {
        let mut s = receiver("xcp", &[]);
        assert_eq!(echoed(answer(&mut s, 60, &data(0, 10))), Some((1, 10, 10)));
        assert_eq!(echoed(answer(&mut s, 61, &data(2, 12))), Some((1, 12, 12)));
        assert_eq!(s.poll_timeout(), Time::NEVER);
    }

    #[test]
    fn every_second_packet_echoes_the_last_number_and_the_first_time_stamp() {
        let mut s = receiver("xcp", &[("ack_every", 2.0)]);
        assert_eq!(echoed(answer(&mut s, 60, &data(0, 10))), None);
        assert_eq!(s.poll_timeout(), Time::millis(160), "0.1 s");
        assert_eq!(echoed(answer(&mut s, 65, &data(1, 15))), Some((2, 15, 10)));
        assert_eq!(s.poll_timeout(), Time::NEVER);
    }

    #[test]
    fn the_first_acknowledgements_may_be_quick() {
        let mut s = receiver("xcp", &[("ack_every", 2.0), ("quick_acks", 3.0)]);
        let acknowledged = |segment: u32| echoed(answer(&mut s, 60, &data(segment, 10))).map(|ack| ack.0);
        let acks: alloc::vec::Vec<_> = (0..6).map(acknowledged).collect();
        assert_eq!(acks, [Some(1), Some(2), Some(3), None, Some(5), None]);
    }

    #[test]
    fn a_lone_packet_waits_for_the_timer() {
        let mut s = receiver("xcp", &[("ack_every", 2.0), ("ack_delay", 0.04)]);
        assert_eq!(echoed(answer(&mut s, 60, &data(0, 10))), None);
        s.handle_timeout(Time::millis(99));
        assert_eq!(echoed(poll(&mut s, 99)), None, "not yet");
        s.handle_timeout(Time::millis(100));
        assert_eq!(echoed(poll(&mut s, 100)), Some((1, 10, 10)));
        assert_eq!(s.poll_timeout(), Time::NEVER);
    }

    /// 16 quick ones, then every second segment; a lone one waits 40 ms. What is out of order is answered at once.
    #[test]
    fn acknowledgements_as_linux_sends_them() {
        let mut s = receiver("xcp", &[("acks", 1.0)]);
        let at = |n: u32| 60 + n as u64;
        let acked: alloc::vec::Vec<u32> =
            (0..22).filter(|&n| answer(&mut s, at(n), &data(n, 10 + n as u64)).is_some()).collect();
        assert_eq!(acked, [(0..16).collect::<alloc::vec::Vec<_>>(), alloc::vec![17, 19, 21]].concat());
        assert_eq!(echoed(answer(&mut s, 90, &data(22, 40))), None);
        assert_eq!(s.poll_timeout(), Time::millis(130));
        s.handle_timeout(Time::millis(130));
        assert_eq!(echoed(poll(&mut s, 130)), Some((23, 40, 40)));
        assert_eq!(echoed(answer(&mut s, 140, &data(24, 50))), Some((23, 50, 50)), "beyond a gap");
        assert_eq!(echoed(answer(&mut s, 141, &data(23, 51))), Some((25, 51, 51)), "fills it");
        assert_eq!(echoed(answer(&mut s, 142, &data(25, 52))), None);
        assert_eq!(echoed(answer(&mut s, 143, &data(3, 53))), Some((26, 53, 52)), "came before");
        assert_eq!(echoed(answer(&mut s, 144, &data(26, 54))), Some((27, 54, 54)), "quick ones follow that");
    }

    /// 65536 / 960 = 68 segments of 948 bytes, then 86. Segments that raise the window do not use up quick acknowledgements: nine
    /// and sixteen are acknowledged at once.
    #[test]
    fn a_tuned_window_is_advertised() {
        let mut s = receiver("reno", &[("autotuning", 1.0), ("acks", 1.0)]);
        assert_eq!(s.window, 68);
        let windows: alloc::vec::Vec<Option<u32>> =
            (0..29).map(|n| answer(&mut s, 60, &data(n, 10)).map(|ack| ack.transport.window())).collect();
        assert_eq!((windows[0], windows[8], windows[15]), (Some(70), Some(86), Some(86)));
        assert_eq!(windows[24..], [Some(86), None, Some(86), None, Some(86)]);
        let beyond = (31..70).filter_map(|n| answer(&mut s, 61, &data(n, 10))).map(|ack| ack.transport.window());
        assert_eq!(beyond.last(), Some(86), "20 and what is out of order are less");
        assert_eq!(receiver("reno", &[("acks", 1.0)]).window, 1_000_000);
        assert_eq!(receiver("reno", &[("autotuning", 1.0), ("receiver_window", 12.0)]).window, 12);
    }

    #[test]
    fn what_cannot_wait_does_not() {
        let mut s = receiver("xcp", &[("ack_every", 3.0)]);
        assert_eq!(echoed(answer(&mut s, 60, &data(0, 10))), None);
        assert_eq!(echoed(answer(&mut s, 61, &data(2, 11))), Some((1, 11, 10)), "out of order, and covers the first");
        assert_eq!(echoed(answer(&mut s, 62, &data(3, 12))), Some((1, 12, 12)), "beyond a gap");
        assert_eq!(echoed(answer(&mut s, 63, &data(1, 13))), Some((4, 13, 13)), "fills the gap");
        assert_eq!(echoed(answer(&mut s, 64, &data(3, 14))), Some((4, 14, 14)), "came before");
        let mut marked = data(4, 15);
        marked.set_ecn(Ecn::Marked);
        assert_eq!(echoed(answer(&mut s, 65, &marked)), Some((5, 15, 15)), "marked");
        let mut last = data(5, 16);
        last.transport.set_flags(flag::FIN);
        assert_eq!(echoed(answer(&mut s, 66, &last)), Some((6, 16, 16)), "the last");
    }

    #[test]
    fn an_acknowledgement_carries_the_feedback_of_all_that_it_covers() {
        let mut s = receiver("xcp", &[("ack_every", 3.0)]);
        let mut with = |segment: u32, feedback: i32| {
            let mut packet = data(segment, 10 + segment as u64);
            packet.congestion = Congestion::new(Format::STANDARD);
            packet.congestion.set_delta_throughput(feedback);
            answer(&mut s, 60, &packet).map(|ack| ack.congestion.reverse_feedback())
        };
        assert_eq!((with(0, 700), with(1, -200), with(2, 30)), (None, None, Some(530)), "XCP: the sum");
        assert_eq!((with(3, 5), with(5, 6)), (None, Some(11)), "held and out of order");

        let mut s = receiver("vcp", &[("ack_every", 3.0)]);
        let mut coded = |segment: u32, code: Ecn| {
            let mut packet = data(segment, 10 + segment as u64);
            packet.set_ecn(code);
            answer(&mut s, 60, &packet).map(|ack| ack.transport.code())
        };
        let (low, high) = (Ecn::Capable1, Ecn::Capable0);
        assert_eq!((coded(0, low), coded(1, high), coded(2, low)), (None, None, Some(2)), "VCP: the highest code");
        assert_eq!((coded(3, low), coded(4, Ecn::Marked)), (None, Some(3)), "and overload at once");

        let mut s = receiver("xtcp", &[("ack_every", 3.0)]);
        let mut flagged = |segment: u32, flags: u8| {
            let mut packet = data(segment, 10 + segment as u64);
            packet.transport.set_flags(flags);
            answer(&mut s, 60, &packet).map(|ack| ack.transport.has(flag::CONGESTED))
        };
        assert_eq!(
            (flagged(0, flag::CONGESTED), flagged(1, 0), flagged(2, 0)),
            (None, None, Some(true)),
            "XTCP: any flag"
        );
        assert_eq!((flagged(3, 0), flagged(4, 0), flagged(5, 0)), (None, None, Some(false)));
    }
}
