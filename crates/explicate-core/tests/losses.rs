//! Recovery from losses, end to end: two ends of a flow over a line that keeps order and loses chosen packets.

use std::collections::VecDeque;

use explicate_core::endpoint::{self, Event, FlowInit, ReceiverEndpoint, SenderEndpoint};
use explicate_core::recovery::COMMON;
use explicate_core::registry;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};

const DELAY: Time = Time::millis(50);
/// A packet leaves every millisecond at most.
const GAP: Time = Time::millis(1);
const SEGMENTS: u32 = 1500;

/// What happened to a flow.
struct Story {
    flow: SenderEndpoint,
    /// Round-trip samples beyond the time that packets waited for the line.
    late: Time,
    /// Most segments beyond the first unacknowledged one, itself included.
    most_outstanding: u32,
    finished: Time,
}

/// Transfers [`SEGMENTS`] segments by `protocol` with these parameters; `loses` receives a segment and the
/// number of its transmissions.
fn tell(protocol: &str, params: &[(&str, f64)], mut loses: impl FnMut(u32, u32) -> bool) -> Story {
    let resolved = registry::resolve(protocol).unwrap();
    let declared = [resolved.protocol.params(), resolved.recovery.params(), COMMON, endpoint::PARAMS];
    let values = testing::values(&declared, &[resolved.params, params].concat());
    // No router lowers requests here: XCP asks for 40 packets a round trip and no more.
    let init = FlowInit { interface: Rate(3_200_000), ..testing::flow(resolved, &values) };
    let (mut sender, mut receiver) = (SenderEndpoint::new(&init), ReceiverEndpoint::new(&init));
    let mut data: VecDeque<(Time, Packet, Time)> = VecDeque::new();
    let mut acks: VecDeque<(Time, Packet, SackRanges, Time)> = VecDeque::new();
    let mut times = vec![0; SEGMENTS as usize];
    let (mut now, mut line, mut acked) = (Time::ZERO, Time::ZERO, 0);
    let (mut late, mut most_outstanding) = (Time::ZERO, 0);
    sender.write(SEGMENTS as u64 * sender.payload() as u64, true);
    while sender.poll_event() != Some(Event::Drained) {
        let mut packet = Packet::EMPTY;
        while sender.poll_transmit(now, &mut packet) {
            line = now.max(line + GAP);
            if !packet.transport.has(flag::SYN) {
                let segment = packet.transport.segment();
                times[segment as usize] += 1;
                most_outstanding = most_outstanding.max(segment + 1 - acked);
                if loses(segment, times[segment as usize]) {
                    continue;
                }
            }
            // What it waits for the line is not the story's.
            data.push_back((line + DELAY, packet, line - now));
        }
        let at = |t: Option<Time>| t.unwrap_or(Time::NEVER);
        let (d, a) = (at(data.front().map(|d| d.0)), at(acks.front().map(|a| a.0)));
        now = d.min(a).min(sender.poll_timeout());
        assert!(now < Time::secs(1000), "{protocol}: stuck");
        if d == now {
            let (_, packet, waited) = data.pop_front().unwrap();
            let (mut ack, mut sack) = (packet, SackRanges::NONE);
            assert!(receiver.turn(now, &mut ack, &mut sack), "one acknowledgement a packet");
            acks.push_back((now + DELAY, ack, sack, waited));
        } else if a == now {
            let (_, ack, sack, waited) = acks.pop_front().unwrap();
            let before = (sender.stats().rtt_sum, sender.stats().rtt_count);
            sender.handle_packet(now, &ack, &sack);
            acked = acked.max(ack.transport.segment());
            if sender.stats().rtt_count > before.1 {
                late = late.max(Time((sender.stats().rtt_sum - before.0) as u64).since(DELAY + DELAY + waited));
            }
        } else {
            sender.handle_timeout(now);
        }
    }
    assert_eq!(receiver.stats().payload, SEGMENTS as u64 * sender.payload() as u64);
    Story { flow: sender, late, most_outstanding, finished: now }
}

/// Ten segments in a window, each lost once, and one of them three times.
fn harsh(segment: u32, times: u32) -> bool {
    let burst = (300..320).contains(&segment) && segment.is_multiple_of(2);
    burst && times == 1 || segment == 310 && times <= 3
}

/// Every acknowledgement echoes the number and time of the packet that caused it, so the sample of a segment that was sent
/// again is that of its last packet (Karn's problem does not arise): all are 100 ms, to the 4 ns of a time stamp.
#[test]
fn samples_of_what_was_sent_again_are_exact() {
    for protocol in ["LR-LMXCP", "LR-XCP_PA", "LR-XCP", "XCP_dumb", "sack"] {
        let story = tell(protocol, &[("initial_window", 40.0)], harsh);
        assert!(story.flow.stats().retransmissions >= 12, "{protocol}: {:?}", story.flow.stats());
        assert!(story.late <= Time(4), "{protocol}: a sample was {} late", story.late);
    }
}

#[test]
fn the_monitor_needs_no_timer_where_others_do() {
    // RFC 6298's gains for every few samples, without a margin of 200 ms: each recovery waits for its own timer alone.
    let window = [("initial_window", 40.0), ("rto", 1.0), ("min_rto", 0.2)];
    let [lm, pa, lr, plain] = ["LR-LMXCP", "LR-XCP_PA", "LR-XCP", "XCP"].map(|p| tell(p, &window, harsh));
    assert_eq!((lm.flow.stats().retransmissions, lm.flow.stats().timeouts), (12, 0), "each loss once");
    assert_eq!(
        (pa.flow.stats().timeouts, lr.flow.stats().timeouts),
        (0, 0),
        "the second timer resends, nothing is reset"
    );
    assert!(plain.flow.stats().timeouts >= 1);
    assert!(lm.finished < pa.finished && pa.finished < lr.finished, "{} {} {}", lm.finished, pa.finished, lr.finished);
}

/// Section 7.3: segments sent beyond the first hole fit the receiver's buffer, so it drops none.
#[test]
fn the_receiver_has_room_for_all_that_is_sent() {
    for (protocol, room) in [("LR-LMXCP", 25), ("LR-XCP", 25), ("LR-XCP_PA", 12), ("LR-LMXCP", 2), ("LR-XCP", 1)] {
        let params = [("initial_window", 20.0), ("receiver_window", room as f64)];
        let story = tell(protocol, &params, |segment, times| times == 1 && segment.is_multiple_of(7));
        assert!(story.most_outstanding <= room, "{protocol}: {} beyond, room for {room}", story.most_outstanding);
    }
}

/// A window of 20 loses segments 2, 6 and 10. Acknowledgements of 0 and 1 make it 22; the third duplicate finds 22 in flight:
/// ssthresh and window are 11. Its 21 duplicates let segments up to 33 go. Reno's episode ends with the first hole, so that the
/// timer has to find the next one: 28 are outstanding then, 17 of them beyond the window, and ssthresh is half of 11.
#[test]
fn a_timeout_halves_the_window_that_an_episode_has_left() {
    let ssthresh = |story: &mut Story| testing::probed(|put| story.flow.probe(put), "ssthresh");
    let lost = |segment, times| matches!(segment, 2 | 6 | 10) && times == 1;
    let mut reno = tell("reno", &[("initial_window", 20.0)], lost);
    assert_eq!((ssthresh(&mut reno), reno.flow.stats().timeouts), (5.5, 1));
    // With partial acknowledgements no timer expires, and the window of 22 is halved once.
    let mut newreno = tell("newreno", &[("initial_window", 20.0)], lost);
    assert_eq!((ssthresh(&mut newreno), newreno.flow.stats().timeouts), (11.0, 0));
}
