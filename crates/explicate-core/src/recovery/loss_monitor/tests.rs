//! The rules of `loss_monitor.rs`, one by one, and random losses.

use super::*;
use crate::recovery::common::testing::{Channel, transfer, transfer_randomly};
use crate::testing;
use std::vec::Vec;

fn monitor(dupackthreshold: f64) -> LossMonitorRecovery {
    let values = testing::values(&[Common::PARAMS], &[("dupackthreshold", dupackthreshold)]);
    LossMonitorRecovery::new(&values)
}
fn monitor_at_once(dupackthreshold: f64) -> LossMonitorRecovery {
    LossMonitorRecovery { after_window: false, ..monitor(dupackthreshold) }
}
/// An acknowledgement that packet `number` caused.
fn ack(r: &mut LossMonitorRecovery, ms: u64, cumulative: u32, number: u32) -> Outcome {
    r.on_ack(Time::millis(ms), cumulative, number, &[], Time::millis(100))
}
fn resend(r: &mut LossMonitorRecovery, ms: u64, segment: u32, number: u32) {
    assert_eq!(r.next(1.0, 9), Next::Resend(segment));
    r.on_sent(Time::millis(ms), segment, number);
}

/// Segments 0 and 2 of four are lost. What was counted against 0 does not count against 2 when the timer resends 0.
#[test]
fn a_retransmission_by_the_timer_starts_the_count_again() {
    let mut r = monitor(3.0);
    r.on_rtt(Time::millis(100));
    for packet in 0..4 {
        r.on_sent(Time::ZERO, packet, packet);
    }
    ack(&mut r, 100, 0, 1);
    r.on_sent(Time::millis(100), 4, 4);
    ack(&mut r, 250, 0, 3);
    r.on_sent(Time::millis(250), 5, 5);
    assert_eq!(r.dupcount, 2);
    r.timers.duplicate(Time::millis(390)); // the connection lives: only the retransmission timer may expire
    let at = r.state().timer;
    r.timers.duplicate(at);
    assert_eq!(r.on_timer(at), None, "no reset");
    resend(&mut r, 600, 0, 6);
    assert_eq!((r.sent.front(), r.dupcount), (Some(&(2, 2)), 0));
    ack(&mut r, 601, 0, 4);
    ack(&mut r, 602, 0, 5);
    assert!(r.next(1.0, 9) != Next::Resend(2), "two answers to later packets since segment 2 became the candidate");
}

/// A window of 4, one duplicate: packet 0 is lost, then its retransmission, packet 5. Nothing counts before a packet with
/// a number above 0 + 4, then above 5 + 4, is next.
#[test]
fn counting_waits_until_a_window_of_packets_has_left() {
    let mut r = monitor(1.0);
    for packet in 0..4 {
        assert_eq!(r.next(4.0, 99), Next::New);
        r.on_sent(Time::ZERO, packet, packet);
    }
    ack(&mut r, 100, 0, 1);
    assert_eq!((r.dupcount, r.next(4.0, 99)), (0, Next::New), "packet 4 is next, and 4 is no more than 0 + 4");
    r.on_sent(Time::millis(100), 4, 4);
    ack(&mut r, 101, 0, 2);
    assert_eq!(r.next(4.0, 99), Next::Resend(0), "packet 5 is next");
    r.on_sent(Time::millis(101), 0, 5);
    ack(&mut r, 102, 0, 3);
    for packet in 6..9 {
        assert_eq!(r.next(4.0, 99), Next::New, "segments 1 to 3 have arrived");
        r.on_sent(Time::millis(102), packet - 1, packet);
        ack(&mut r, 200, 0, if packet == 6 { 4 } else { packet - 1 });
    }
    assert_eq!((r.sent.front(), r.dupcount), (Some(&(5, 0)), 0), "packet 9 is next, and 9 is no more than 5 + 4");
    assert_eq!(r.next(4.0, 99), Next::New);
    r.on_sent(Time::millis(202), 8, 9);
    ack(&mut r, 203, 0, 8);
    assert_eq!(r.next(4.0, 99), Next::Resend(0), "packet 10 is next");
}

/// A receiver's window lets four segments be under way, cwnd is 100: at the hole the sender may not go on, and counts.
#[test]
fn a_receivers_window_is_enough_to_count() {
    let mut r = monitor(1.0);
    for packet in 0..4 {
        assert_eq!(r.next(100.0, 5), Next::New);
        r.on_sent(Time::ZERO, packet, packet);
    }
    assert_eq!(r.next(100.0, 5), Next::Nothing, "the receiver has no more room");
    ack(&mut r, 100, 0, 1);
    assert_eq!(r.next(100.0, 5), Next::Resend(0));
}

/// The walk-through of reference section 9: N = 8, dupackthreshold 1, segments 1..4 as packets 0..3; the first two
/// packets are lost. It counts at once. Segments count from zero here, so segment 1 of the reference is segment 0.
#[test]
fn two_losses_are_repaired_in_a_round_trip() {
    let mut r = monitor_at_once(1.0);
    for packet in 0..4 {
        assert_eq!(r.next(4.0, 9), Next::New);
        r.on_sent(Time::ZERO, packet, packet);
    }
    assert_eq!(r.next(4.0, 9), Next::Nothing);
    let first = ack(&mut r, 100, 0, 2);
    assert_eq!((first.duplicate, first.newly_acked, first.loss), (true, 1, Some(4)));
    assert_eq!(r.slot(2), Some(Slot::Received), "W[3] = RECV");
    assert_eq!(r.sent.front(), Some(&(0, 0)), "rseqn = 1, W = 0; dupcount 1 makes the threshold");
    resend(&mut r, 100, 0, 4);
    assert_eq!((r.slot(0), r.dupcount), (Some(Slot::InFlight(4)), 0));
    assert_eq!(r.sent.front(), Some(&(1, 1)), "rseqn = 2, W = 1");
    assert_eq!(ack(&mut r, 101, 0, 3).loss, None, "the same episode");
    resend(&mut r, 101, 1, 5);
    assert_eq!(r.sent.front(), Some(&(4, 0)), "3 and 4 are at the receiver: again segment 1, by its packet 4");
    // One segment left the network with each duplicate, and one of two entered in its place: swnd = 4 + 2.
    assert_eq!((r.state().in_flight, r.next(4.0, 9)), (2, Next::New));
    assert_eq!(ack(&mut r, 200, 1, 4).newly_acked, 1);
    assert_eq!((r.received, r.sent.front()), (2, Some(&(5, 1))));
    assert_eq!(ack(&mut r, 201, 4, 5).newly_acked, 1, "the other two were reported");
    assert_eq!((r.received, r.sent.len(), r.recovering), (0, 0, false));
    assert_eq!(r.state().timer, Time::NEVER);
}

#[test]
fn a_retransmission_that_is_lost_is_found_like_any_other() {
    let mut r = monitor(1.0);
    for packet in 0..4 {
        r.on_sent(Time::ZERO, packet, packet);
    }
    ack(&mut r, 100, 0, 1);
    resend(&mut r, 100, 0, 4);
    r.on_sent(Time::millis(100), 4, 5);
    ack(&mut r, 101, 0, 2);
    ack(&mut r, 102, 0, 3);
    assert_eq!(r.resend, None, "those packets were sent before packet 4");
    ack(&mut r, 200, 0, 5);
    resend(&mut r, 200, 0, 6);
}

#[test]
fn new_segments_need_a_free_place() {
    let mut r = monitor(3.0);
    for packet in 0..8 {
        assert_eq!(r.next(100.0, 9), Next::New);
        r.on_sent(Time::ZERO, packet, packet);
    }
    assert_eq!(r.next(100.0, 9), Next::Nothing, "N = rwnd - 1 = 8 places are taken");
    ack(&mut r, 100, 2, 1);
    assert_eq!(r.next(100.0, 9), Next::New, "two are free");
    assert_eq!((r.next(100.0, 1), r.next(100.0, 0)), (Next::Nothing, Next::Nothing));
}

#[test]
fn a_reset_forgets_the_window() {
    let mut r = monitor(1.0);
    for packet in 0..4 {
        r.on_sent(Time::ZERO, packet, packet);
    }
    ack(&mut r, 100, 0, 2);
    let at = r.timers.rto().deadline();
    assert_eq!(r.on_timer(at), Some(3));
    assert_eq!((r.window.len(), r.received, r.sent.len(), r.dupcount, r.resend), (0, 0, 0, 0, None));
    assert_eq!((r.next(1.0, 9), r.state().next), (Next::New, 0));
    r.on_sent(at, 0, 4);
    ack(&mut r, 9999, 0, 3);
    assert_eq!((r.received, r.resend), (0, None), "a packet of before the reset names nothing");
    ack(&mut r, 9999, 3, 4);
    assert_eq!((r.state().next, r.window.len()), (3, 0));
}

/// The paper's claims about every retransmission (D-txt-lm a-c), compared with a record of all packets.
struct Watched {
    inner: LossMonitorRecovery,
    /// For each packet its segment, and how many acknowledgements had come when it left; for these the packets.
    packets: Vec<(u32, Time)>,
    acks: Vec<u32>,
    /// Acknowledgements before the last retransmission of the monitor.
    last: usize,
    /// The window at the last acknowledgement.
    cwnd: f64,
    retransmissions: u32,
}

impl Watched {
    fn new(dupackthreshold: f64) -> Watched {
        let inner = monitor(dupackthreshold);
        Watched { inner, packets: Vec::new(), acks: Vec::new(), last: 0, cwnd: 0.0, retransmissions: 0 }
    }
    fn check_retransmission(&mut self, now: Time, segment: u32) {
        let threshold = self.inner.dupackthreshold as usize;
        let number = self.packets.iter().rposition(|p| p.0 == segment).expect("it was sent before");
        let later = self.acks.iter().filter(|&&caused_by| caused_by as usize > number).count();
        assert!(later >= threshold, "{later} acknowledgements of packets after packet {number}");
        assert!(self.retransmissions == 0 || self.acks.len() - self.last >= threshold, "one in {threshold}");
        assert!(now.since(self.packets[number].1) >= Time::millis(100), "once a round trip");
        assert!((self.packets.len() - number) as f64 > self.cwnd, "more than a window apart");
        self.last = self.acks.len();
        self.retransmissions += 1;
    }
    /// What must hold at all times (D-txt-lm d, e), from the definitions.
    fn check(&self) {
        let r = &self.inner;
        assert_eq!(r.window.len() as u32, r.seq.next - r.seq.acked, "a place for each segment and no more");
        let in_flight = r.window.iter().zip(r.seq.acked..).filter_map(|(slot, segment)| match slot {
            Slot::InFlight(number) => Some((*number, segment)),
            Slot::Received => None,
        });
        assert_eq!(in_flight.clone().min().as_ref(), r.sent.front(), "equation 1");
        assert_eq!(r.received as usize, r.window.len() - in_flight.count());
    }
}

impl Recovery for Watched {
    fn on_sent(&mut self, now: Time, segment: u32, number: u32) {
        if self.inner.resend == Some(segment) && !self.inner.by_timer {
            self.check_retransmission(now, segment);
        }
        self.inner.on_sent(now, segment, number);
        assert_eq!(self.packets.len() as u32, number);
        self.packets.push((segment, now));
    }
    fn on_ack(&mut self, now: Time, cumulative: u32, number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome {
        self.acks.push(number);
        self.cwnd = self.inner.cwnd.get();
        self.inner.on_ack(now, cumulative, number, sack, rtt)
    }
    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        self.inner.next(cwnd, rwnd)
    }
    fn state(&self) -> RecoveryState {
        self.inner.state()
    }
    fn on_timer(&mut self, now: Time) -> Option<u32> {
        self.inner.on_timer(now)
    }
    fn on_rtt(&mut self, rtt: Time) {
        self.inner.on_rtt(rtt);
    }
    fn backoffs(&self) -> u32 {
        self.inner.backoffs()
    }
    fn probe(&self, put: Probe<'_>) {
        self.inner.probe(put);
    }
}

#[test]
fn the_invariants_of_the_window_hold_under_any_loss() {
    for threshold in [1.0, 3.0] {
        for (seed, loss) in
            [(0.0, 0.0), (0.01, 0.0), (0.1, 0.0), (0.3, 0.0), (0.1, 0.1), (0.3, 0.3)].into_iter().enumerate()
        {
            let mut r = Watched::new(threshold);
            let story = transfer_randomly(&mut r, seed as u64, 2000, loss, Watched::check);
            assert!(loss.0 == 0.0 || r.retransmissions > 0, "{loss:?}");
            // A reset goes back over segments that have arrived; the monitor resends none.
            let needless = story.resent_arrived + story.resent_in_flight;
            assert!(loss.1 > 0.0 || story.timeouts > 0 || needless == 0, "{loss:?}: {story:?}");
            assert!(loss.0 > 0.0 || story.resent == 0, "{story:?}");
        }
    }
}

#[test]
fn a_burst_is_repaired_in_a_round_trip_and_a_segment_lost_thrice_without_a_timer() {
    let run = |loses: &mut dyn FnMut(u32, u32) -> bool| {
        let channel = Channel { segments: 600, loses_data: loses, loses_ack: &mut || false, cwnd: 32.0, most: 32.0 };
        transfer(&mut monitor(1.0), channel, |_| {})
    };
    let whole = run(&mut |_, _| false);
    let burst = run(&mut |n, _| (100..110).contains(&n));
    assert_eq!((burst.resent, burst.timeouts, burst.episodes), (10, 0, 1), "{burst:?}");
    let mut times = 0;
    let thrice = run(&mut |_, segment| {
        times += (segment == 100) as u32;
        segment == 100 && times <= 3
    });
    assert_eq!((thrice.resent, thrice.timeouts), (3, 0), "{thrice:?}");
    assert!(thrice.finished > whole.finished);
}

#[test]
fn the_work_is_constant_per_packet() {
    let mut r = monitor(3.0);
    let mut most = 0;
    transfer_randomly(&mut r, 1, 20_000, (0.05, 0.05), |r| most = most.max(r.sent.len()));
    assert!(most < 400, "the queue holds a window and its retransmissions, not the past: {most}");
}
