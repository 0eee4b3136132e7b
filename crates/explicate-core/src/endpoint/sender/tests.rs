//! The sending endpoint alone: its packets against lengths, times and flags computed by hand.

use alloc::vec::Vec;

use super::*;
use crate::endpoint::ReceiverEndpoint;
use crate::registry;
use crate::stacks;
use crate::wire::Ecn;
use crate::wire::stamp;

const RTT: Time = Time::millis(100);

/// Both ends of a flow with packets of 1000 bytes.
struct Ends {
    flow: SenderEndpoint,
    receiver: ReceiverEndpoint,
}

impl Ends {
    fn new(protocol: &str, given: &[(&str, f64)]) -> Ends {
        Ends::in_stack(protocol, None, given)
    }
    fn in_stack(protocol: &str, name: Option<&str>, given: &[(&str, f64)]) -> Ends {
        let stack = name.map(|name| stacks::stack(name).expect("a stack"));
        let resolved = registry::resolve_in(protocol, stack).expect("registered");
        let mut values = Values::default();
        for (name, value) in given {
            values.set(PARAMS.iter().find(|p| p.name == *name).expect("declared"), *value);
        }
        let init = FlowInit {
            id: 7,
            protocol: resolved.protocol,
            fallback: registry::fallback(stack).expect("registered"),
            recovery: resolved.recovery,
            values: &values,
            packet: 1000,
            interface: Rate::mbps(100),
        };
        Ends { flow: SenderEndpoint::new(&init), receiver: ReceiverEndpoint::new(&init) }
    }
    /// The next packet to send.
    fn packet(&mut self, now: Time) -> Option<Packet> {
        let mut packet = Packet::EMPTY;
        self.flow.poll_transmit(now, &mut packet).then_some(packet)
    }
    /// The packet's answer arrives at `now`.
    fn answer(&mut self, now: Time, mut packet: Packet) {
        let mut sack = SackRanges::NONE;
        assert!(self.receiver.turn(now, &mut packet, &mut sack), "every packet is answered");
        self.flow.handle_packet(now, &packet, &sack);
    }
    /// Writes, and is connected at [`RTT`].
    fn open(mut self, bytes: u64) -> Ends {
        self.flow.write(bytes, true);
        let syn = self.packet(Time::ZERO).expect("a SYN");
        assert!(syn.transport.has(flag::SYN) && syn.ecn() == Ecn::NotCapable, "RFC 3168 section 6.1.1");
        assert!(self.packet(Time::ZERO).is_none(), "data wait for the answer");
        self.answer(RTT, syn);
        self
    }
    /// All that may leave at `now`.
    fn burst(&mut self, now: Time) -> Vec<Packet> {
        core::iter::from_fn(|| self.packet(now)).collect()
    }
}

fn lengths(packets: &[Packet]) -> Vec<(u16, u16, bool)> {
    let of = |p: &Packet| (p.ip_len, p.transport.payload(), p.transport.has(flag::FIN));
    packets.iter().map(of).collect()
}

/// 1000 bytes minus 28 of IP and UDP and 24 of transport are 948; XCP's header takes 20 more. 2000 bytes leave 104,
/// or 144.
#[test]
fn a_transfer_is_cut_into_full_segments_and_a_rest() {
    let mut plain = Ends::new("sack", &[]).open(2000);
    assert_eq!(lengths(&plain.burst(RTT)), [(1000, 948, false), (1000, 948, false), (156, 104, true)]);
    let mut explicit = Ends::new("xcp", &[("guard", 2.0)]).open(2000);
    assert_eq!(lengths(&explicit.burst(RTT)), [(1000, 928, false), (1000, 928, false), (216, 144, true)]);
}

/// RFC 6298 (2.1) and (5.5): after 1 s, then after twice as long each time; from the seventh on after 64 s.
#[test]
fn a_syn_without_answer_is_sent_again() {
    let mut ends = Ends::new("sack", &[]);
    ends.flow.write(1000, true);
    let (mut now, mut sent) = (Time::ZERO, Vec::new());
    for _ in 0..9 {
        assert!(ends.packet(now).expect("a SYN").transport.has(flag::SYN));
        sent.push(now.0 / 1_000_000_000);
        now = ends.flow.poll_timeout();
        ends.flow.handle_timeout(now);
    }
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 127, 191]);
    assert_eq!((ends.flow.stats().timeouts, ends.flow.timeouts_in_a_row()), (9, 9));
}

/// Segments keep the 928 bytes by which they were counted; the packets are 20 bytes shorter.
#[test]
fn a_refused_congestion_header_is_left_out() {
    let mut ends = Ends::new("xcp", &[("refuse_explicit", 1.0), ("guard", 2.0)]).open(2000);
    let packets = ends.burst(RTT);
    assert_eq!(lengths(&packets), [(980, 928, false), (980, 928, false), (196, 144, true)]);
    assert!(packets.iter().all(|p| !p.congestion.is_present()));
}

/// A flow that is refused is TCP of its host's stack: ten segments at first, and Linux's slow start by all that an
/// acknowledgement covers. What the flow itself has wins.
#[test]
fn a_refused_flow_has_the_tcp_of_its_stack() {
    let refused = |stack, more: &[(&str, f64)]| {
        let given = [&[("refuse_explicit", 1.0), ("guard", 2.0), ("ack_every", 2.0)], more].concat();
        let mut ends = Ends::in_stack("xcp", stack, &given).open(1_000_000);
        let packets = ends.burst(RTT);
        let first = packets.len();
        for mut packet in packets {
            let mut sack = SackRanges::NONE;
            if ends.receiver.turn(RTT + RTT, &mut packet, &mut sack) {
                ends.flow.handle_packet(RTT + RTT, &packet, &sack);
            }
        }
        (first, ends.flow.cwnd())
    };
    assert_eq!(refused(None, &[]), (3, 4.0), "RFC 5681: three, and one more for an acknowledgement of two");
    assert_eq!(refused(Some("ns2"), &[]), (3, 4.0));
    assert_eq!(refused(Some("linux"), &[]), (10, 20.0));
    assert_eq!(refused(Some("rfc"), &[]).0, 10);
    assert_eq!(refused(Some("linux"), &[("initial_window", 4.0)]), (4, 8.0), "the flow's own");
}

/// The guard's TCP, too: behind the explicit law's own three segments Linux's ten, and what was acknowledged.
#[test]
fn a_guard_has_the_tcp_of_its_stack() {
    let window = |stack| {
        let mut ends = Ends::in_stack("xcp", stack, &[("guard", 1.0)]).open(1_000_000);
        let packets = ends.burst(RTT);
        let first = packets.len();
        packets.into_iter().for_each(|packet| ends.answer(RTT + RTT, packet));
        (first, ends.flow.cwnd())
    };
    assert_eq!(window(None), (3, 6.0));
    assert_eq!(window(Some("linux")), (3, 13.0));
}

/// RFC 3168 section 6.1.2: the window is halved once for all marks of a window, from 8 to 4, and a packet carries
/// CWR. The acknowledgement with the mark adds its 1/4.
#[test]
fn marks_of_one_window_count_once() {
    let mut ends = Ends::new("sack", &[("ecn", 1.0), ("initial_window", 8.0)]).open(1_000_000);
    let mut packets = ends.burst(RTT);
    assert!(packets.len() == 8 && packets.iter().all(|p| p.ecn() == Ecn::Capable0));
    packets[..3].iter_mut().for_each(|p| p.set_ecn(Ecn::Marked));
    let mut windows = Vec::new();
    for packet in packets {
        ends.answer(RTT + RTT, packet);
        windows.push(ends.flow.cwnd());
    }
    assert_eq!(windows[0], 4.25);
    assert!(windows.windows(2).all(|pair| pair[1] >= pair[0]), "{windows:?}");
    let cwr: Vec<bool> = ends.burst(RTT + RTT).iter().map(|p| p.transport.has(flag::CWR)).collect();
    assert!(cwr[0] && cwr[1..].iter().all(|cwr| !cwr), "{cwr:?}");
}

/// RFC 9331: ECT(1) is the code of L4S, with `ecn` or without.
#[test]
fn a_flow_may_be_sent_as_l4s() {
    for ecn in [0.0, 1.0] {
        let mut ends = Ends::new("sack", &[("ecn", ecn), ("l4s", 1.0)]).open(1_000_000);
        let packets = ends.burst(RTT);
        assert!(!packets.is_empty() && packets.iter().all(|p| p.ecn() == Ecn::Capable1), "{ecn}");
    }
}

/// RFC 3168 section 6.1.5: retransmissions are not ECN-capable, so that their loss is detected.
#[test]
fn what_is_sent_again_is_not_ecn_capable() {
    let mut ends = Ends::new("sack", &[("ecn", 1.0)]).open(1_000_000);
    ends.burst(RTT);
    let due = ends.flow.poll_timeout();
    ends.flow.handle_timeout(due);
    let again = ends.packet(due).expect("the first segment");
    assert_eq!((again.transport.segment(), again.ecn()), (0, Ecn::NotCapable));
    assert!(ends.flow.sends_again());
    assert_eq!(ends.flow.stats().retransmissions, 1);
}

/// Four packets in a round trip of 100 ms: one every 25 ms.
#[test]
fn a_paced_window_is_spread_over_the_round_trip() {
    let mut ends = Ends::new("sack", &[("paced", 1.0), ("initial_window", 4.0)]).open(1_000_000);
    let (mut now, mut sent) = (RTT, Vec::new());
    for _ in 0..4 {
        assert_eq!(ends.burst(now).len(), 1);
        sent.push(now.0 / 1_000_000);
        now = ends.flow.poll_timeout();
        ends.flow.handle_timeout(now);
    }
    assert_eq!(sent, [100, 125, 150, 175]);
}

/// A withdrawn transfer ends with what was sent; nothing is drained before it is acknowledged.
#[test]
fn what_was_not_sent_can_be_withdrawn() {
    let mut ends = Ends::new("sack", &[]).open(1_000_000);
    let packets = ends.burst(RTT);
    ends.flow.withdraw();
    for packet in packets {
        assert_eq!(ends.flow.poll_event(), None);
        ends.answer(RTT + RTT, packet);
    }
    assert_eq!((ends.flow.poll_event(), ends.flow.acked()), (Some(Event::Drained), 3));
    assert!(ends.burst(RTT + RTT).is_empty());
}

/// The last three of 2^32 - 2 segments: then nothing is left, and the flow says so.
#[test]
fn segments_have_an_end() {
    let mut ends = Ends::new("greedy", &[]);
    ends.flow = ends.flow.one_way(Box::new(crate::recovery::none::OneWay(MOST_SEGMENTS - 3)));
    ends.flow.write(u64::MAX, false);
    assert_eq!((ends.flow.is_exhausted(), ends.flow.supply), (false, MOST_SEGMENTS));
    let sent: Vec<u32> =
        (0..10).filter_map(|s| ends.packet(Time::secs(s))).map(|packet| packet.transport.segment()).collect();
    assert_eq!(sent, [MOST_SEGMENTS - 3, MOST_SEGMENTS - 2, MOST_SEGMENTS - 1]);
    assert!(ends.flow.is_exhausted());
    // A transfer that is too long has no last segment; one that just fits has.
    for (segments, fits) in [(MOST_SEGMENTS as u64, true), (MOST_SEGMENTS as u64 + 1, false)] {
        let mut ends = Ends::new("greedy", &[]);
        ends.flow.write(segments * ends.flow.payload() as u64, true);
        assert_eq!((ends.flow.closed, ends.flow.supply), (fits, MOST_SEGMENTS));
    }
}

/// The sum of round-trip times exceeds 64 bits.
#[test]
fn the_sum_of_samples_does_not_wrap() {
    let mut ends = Ends::new("newreno", &[]).open(3000);
    ends.flow.counts.rtt_sum = u64::MAX - 50;
    for packet in ends.burst(RTT) {
        ends.answer(RTT + Time::secs(1200), packet);
    }
    let stats = ends.flow.stats();
    assert!(stats.rtt_count > 0);
    assert_eq!(stats.rtt_sum, (u64::MAX - 50) as u128 + stats.rtt_count as u128 * 1_200_000_000_000);
}

/// Echoes of packets that never left are dropped and counted: in an answer to the SYN, with a number above and far above those
/// sent, and with a time stamp of no packet. What a network copies is not counted.
#[test]
fn echoes_of_no_packet_are_counted() {
    let mut ends = Ends::new("newreno", &[]);
    ends.flow.write(100_000, true);
    let mut syn = ends.packet(Time::ZERO).expect("a SYN");
    let genuine = syn;
    syn.transport.set_timestamp(stamp(Time::secs(9)));
    ends.answer(RTT, syn);
    assert_eq!(ends.flow.stats().ignored_echoes, 1);
    ends.answer(RTT, genuine);
    let packets = ends.burst(RTT);
    let (acked, counted) = (ends.flow.acked(), ends.flow.stats().rtt_count);
    for (number, left) in [(1_000_000, RTT), (u32::MAX, RTT), (1, Time::secs(8))] {
        let mut forged = packets[0];
        forged.transport.set_packet_number(number);
        forged.transport.set_timestamp(stamp(left));
        ends.answer(RTT + RTT, forged);
    }
    let stats = ends.flow.stats();
    assert_eq!((ends.flow.acked(), stats.rtt_count, stats.ignored_echoes), (acked, counted, 4));
    ends.answer(RTT + RTT, packets[1]);
    ends.answer(RTT + RTT, packets[1]);
    assert_eq!(ends.flow.stats().ignored_echoes, 4, "a copy is no stray");
    let mut sum = ends.flow.stats();
    sum += SenderStats { ignored_echoes: u32::MAX, ..SenderStats::default() };
    assert_eq!(sum.ignored_echoes, u32::MAX, "sessions add up, and saturate");
}

/// SYNs left at 200, 201, 203 and 207 s, as packets 0 to 3. On a path of two minutes the answers to those of the
/// session before arrive now. The time stamp of 100 s is, six periods later, that of 203.08 s, when no SYN left.
#[test]
fn an_answer_to_a_syn_of_an_earlier_session_is_ignored() {
    let mut ends = Ends::new("newreno", &[]);
    ends.flow.write(100_000, true);
    let (mut now, mut syns) = (Time::secs(200), Vec::new());
    for _ in 0..4 {
        if !syns.is_empty() {
            now = ends.flow.poll_timeout();
            ends.flow.handle_timeout(now);
        }
        syns.push(ends.packet(now).expect("a SYN"));
    }
    assert_eq!(now, Time::secs(207));
    for number in 1..6 {
        let mut stale = syns[1];
        stale.transport.set_packet_number(number);
        stale.transport.set_timestamp(stamp(Time::secs(100)));
        ends.answer(Time::secs(208), stale);
    }
    assert_eq!((ends.flow.is_established(), ends.flow.stats().ignored_echoes), (false, 5));
    ends.answer(Time::secs(316), syns[1]);
    assert!(ends.flow.is_established());
    assert_eq!(ends.flow.srtt(), Time::secs(115), "of the second SYN, which left at 201 s");
}

/// A window of 20 over 100 ms is paced at 5 ms a packet: two leave every 10 ms. A window of 400 has four packets in a millisecond. The
/// first nine leave at once, and the first burst with them.
#[test]
fn super_packets_leave_together() {
    let departures = |window: f64, bursts: f64| -> Vec<(f64, usize)> {
        let given = [("paced", 1.0), ("bursts", bursts), ("initial_window", window)];
        let mut ends = Ends::new("reno", &given).open(1_000_000);
        let mut now = RTT;
        (0..3)
            .map(|_| {
                let left = (now.to_millis(), ends.burst(now).len());
                now = ends.flow.poll_timeout();
                left
            })
            .collect()
    };
    assert_eq!(departures(20.0, 1.0), [(100.0, 11), (110.0, 2), (120.0, 2)]);
    assert_eq!(departures(400.0, 1.0), [(100.0, 13), (101.0, 4), (102.0, 4)]);
    assert_eq!(departures(10.0, 0.0), [(100.0, 1), (110.0, 1), (120.0, 1)]);
}

/// Packets of 1000 bytes leave the host one by one, 10 ms each. How many a flow hands down that has a rate of this.
#[test]
fn small_queues_are_two_super_packets_or_a_millisecond() {
    let handed = |protocol: &str, window: f64| {
        let mut ends = Ends::new(protocol, &[("initial_window", window)]).open(u64::MAX);
        let mut departs = RTT;
        let mut count = 0;
        while ends.packet(RTT).is_some() {
            departs += Time::millis(10);
            count += 1;
            ends.flow.queued_until(RTT, departs);
        }
        // The first has left: one more goes.
        assert_eq!(ends.flow.poll_timeout(), RTT + Time::millis(10), "{count}");
        ends.flow.handle_timeout(RTT + Time::millis(10));
        assert!(ends.packet(RTT + Time::millis(10)).is_some());
        count
    };
    // In slow start two windows of 8, 1000 and 6000 packets in 100 ms: 0.16, 20 and 120 a millisecond, in super-packets of 2,
    // 20 and 64 kB, which are 65.
    assert_eq!(handed("reno", 8.0), 4);
    assert_eq!(handed("reno", 1000.0), 40);
    assert_eq!(handed("reno", 6000.0), 131);
    // A millisecond of 200 packets is more than two of 64 kB.
    assert_eq!(handed("reno", 10_000.0), 200);
}

/// Linux, `tcp_is_cwnd_limited`: while the host holds a packet back, a window of up to twice what is in flight is used in slow start,
/// later a full one.
#[test]
fn a_window_that_the_host_holds_back_is_used() {
    let used = |lost: bool, sent: usize| {
        let mut ends = Ends::new("reno", &[("initial_window", 8.0)]).open(u64::MAX);
        if lost {
            ends.flow.sender.on_loss(&crate::testing::loss(RTT, LossKind::Duplicates, 16));
            ends.flow.allow();
        }
        (0..sent).for_each(|_| assert!(ends.packet(RTT).is_some()));
        ends.flow.hold_back(RTT + Time::millis(1));
        assert!(ends.packet(RTT).is_none());
        ends.flow.window_limited
    };
    assert_eq!([3, 4, 7].map(|sent| used(false, sent)), [false, true, true]);
    assert_eq!([4, 7, 8].map(|sent| used(true, sent)), [false, false, true]);
}

/// `fq` lets nine packets go, and paces those after them: two windows in a round trip in slow start, in super-packets of two.
#[test]
fn fq_paces_from_the_tenth_on() {
    let mut ends = Ends::new("reno", &[("initial_window", 20.0), ("host_queue", 3.0)]).open(u64::MAX);
    assert_eq!(ends.burst(RTT).len(), 11);
    // 100 ms / 40 for each packet.
    let next = RTT + Time::micros(5000);
    assert_eq!(ends.flow.poll_timeout(), next);
    assert_eq!(ends.burst(Time(next.0 - 1)).len(), 0);
    assert_eq!(ends.burst(next).len(), 2);
    let mut free = Ends::new("reno", &[("initial_window", 20.0), ("host_queue", 2.0)]).open(u64::MAX);
    assert_eq!(free.burst(RTT).len(), 20);
}

/// Linux, `tcp_update_skb_after_send`: at 5 ms a packet two leave every 10 ms. A burst that leaves 3 ms after pacing allows it, because the
/// window was full, is followed by the next after 7 ms; one that leaves 20 ms late by the next after half of 10 ms.
#[test]
fn a_late_burst_has_credit() {
    let given = [("paced", 1.0), ("bursts", 1.0), ("initial_window", 19.0)];
    let mut ends = Ends::new("reno", &given).open(1_000_000);
    let pacing = Some(Rate::from_bytes_per_sec(200_000.0));
    ends.flow.allowance.pacing = pacing;
    let (mut now, mut packets) = (RTT, Vec::new());
    while packets.len() < 19 {
        packets.extend(ends.burst(now));
        now = ends.flow.poll_timeout();
    }
    let (allowed, mut packets) = (now, packets.into_iter());
    let mut wait_after = |now: Time| {
        for packet in packets.by_ref().take(2) {
            ends.answer(now, packet);
        }
        ends.flow.allowance.pacing = pacing;
        assert_eq!(ends.burst(now).len(), 2);
        ends.flow.poll_timeout().since(now)
    };
    assert_eq!(wait_after(allowed + Time::millis(3)), Time::millis(7));
    assert_eq!(wait_after(allowed + Time::millis(30)), Time::millis(5));
}
