//! The recovery alone: what it finds lost, and when; situations of packetdrill scripts are in `tests/vectors`.

use super::*;
use crate::recovery::common::testing::{Channel, transfer, transfer_randomly};
use crate::testing;

fn ms(milliseconds: u64) -> Time {
    Time::millis(milliseconds)
}

/// A flow with Linux's timer and a round trip of 100 ms; the first `n` segments leave at 0, 1, 2 ... ms.
fn sent(n: u32) -> Box<AnyRecovery> {
    let values = Values::default();
    let mut r = Rack.build(&values);
    r.on_rtt(ms(100));
    for segment in 0..n {
        r.on_sent(ms(segment as u64), segment, segment);
    }
    r
}
fn ack(r: &mut AnyRecovery, at: u64, cumulative: u32, sack: &[(u32, u32)], stamp: u64) -> Outcome {
    r.on_ack(ms(at), cumulative, 0, sack, ms(at - stamp))
}

/// RFC 8985 section 6.2: with three reported nothing waits; with fewer a quarter of 100 ms after the round trip, and 2 ms of the timer.
#[test]
fn the_reordering_window_depends_on_reports() {
    let mut r = sent(10);
    assert_eq!(ack(&mut *r, 101, 0, &[(1, 2)], 1).loss, None);
    assert_eq!(ack(&mut *r, 102, 0, &[(1, 3)], 2).loss, None);
    assert_eq!(r.state().timer, ms(2 + 100 + 25 + 2));
    assert_eq!(ack(&mut *r, 103, 0, &[(1, 4)], 3).loss, Some(10));
    assert_eq!(r.next(5.0, 100), Next::Resend(0));
    let mut r = sent(3);
    assert_eq!(ack(&mut *r, 101, 0, &[(1, 2)], 1).loss, None);
    let due = r.state().timer;
    assert_eq!(due, ms(1 + 100 + 25 + 2));
    assert_eq!(r.on_early_timer(due).and_then(|outcome| outcome.loss), Some(3));
    assert_eq!((r.state().recovering, r.next(1.0, 100)), (true, Next::Resend(0)));
}

/// Segment 2 comes after 3, 4 and 5 although it was sent once: from now on losses wait, also with many reports.
#[test]
fn reordering_that_was_seen_makes_it_wait() {
    let mut r = sent(20);
    ack(&mut *r, 102, 2, &[], 1);
    assert!(ack(&mut *r, 105, 2, &[(3, 6)], 5).loss.is_some(), "three reports");
    assert!(!ack(&mut *r, 106, 6, &[], 2).undo, "nothing was sent again");
    assert_eq!(ack(&mut *r, 110, 6, &[(7, 11)], 10).loss, None);
    assert_eq!(r.state().timer, ms(10 + 100 + 25 + 2));
}

/// The retransmission of 0, at 103 ms, is lost; segment 10 left after it. Its report a round trip later shows it, and reduces nothing more.
#[test]
fn a_lost_retransmission_is_found() {
    let mut r = sent(10);
    ack(&mut *r, 103, 0, &[(1, 4)], 3);
    r.on_sent(ms(103), 0, 10);
    for at in 104..110u64 {
        ack(&mut *r, at, 0, &[(1, at as u32 - 99)], at - 100);
    }
    assert_eq!(r.next(8.0, 100), Next::New);
    r.on_sent(ms(110), 10, 11);
    let outcome = ack(&mut *r, 210, 0, &[(1, 11)], 110);
    assert_eq!((outcome.loss, r.next(5.0, 100)), (None, Next::Resend(0)));
}

/// Of 20 segments three are reported and the first is lost: 16 are in flight. Proportional reduction lets as many leave as arrived; a
/// window of 25 that limits repairs by itself (in Linux that of BBR, `cong_control`) lets 9 leave.
#[test]
fn a_window_that_limits_repairs_is_the_only_limit() {
    let left = |limits: bool| {
        let mut r = sent(20);
        if limits {
            r.leave_repair_to_window();
        }
        ack(&mut *r, 103, 0, &[(1, 4)], 3);
        (0..)
            .take_while(|n| {
                let segment = match r.next(25.0, 100) {
                    Next::Nothing => return false,
                    Next::Resend(segment) => segment,
                    Next::New => r.state().next,
                };
                r.on_sent(ms(103), segment, 20 + n);
                true
            })
            .count()
    };
    assert_eq!((left(false), left(true)), (3, 9));
}

/// PTO: two round trips and 2 ms; with one segment in flight 200 ms more. The probe is new data, or the last segment again.
#[test]
fn the_tail_is_probed() {
    let mut r = sent(3);
    assert_eq!(r.state().timer, ms(2 + 200 + 2));
    assert!(r.on_early_timer(ms(204)).is_some_and(|outcome| outcome.loss.is_none()));
    assert_eq!((r.next(3.0, 100), r.spare()), (Next::New, Some(2)), "whatever the window");
    r.on_sent(ms(204), 2, 3);
    assert_eq!((r.next(3.0, 100), r.state().timer), (Next::Nothing, ms(204 + 300)), "one probe, then the timeout");
    let mut r = sent(1);
    r.on_ack(ms(100), 1, 0, &[], ms(100));
    r.on_sent(ms(100), 1, 1);
    assert_eq!(r.state().timer, ms(100 + 300), "the timeout comes first, and the probe in its place");
}

/// Section 7.4.2: the probe arrived in place of what it repeated, and the answer goes beyond: that was a loss. With a DSACK it was none.
#[test]
fn a_probe_that_repaired_a_loss_counts() {
    for (duplicate, loss) in [(false, Some(1)), (true, None)] {
        let mut r = sent(3);
        ack(&mut *r, 101, 2, &[], 1);
        let due = r.state().timer;
        r.on_early_timer(due);
        r.on_sent(due, 2, 3);
        let at = due.0 / 1_000_000 + 100;
        let ranges: &[(u32, u32)] = if duplicate { &[(2, 3)] } else { &[] };
        assert_eq!(ack(&mut *r, at, 3, ranges, at - 100).loss, None, "not yet");
        r.on_sent(ms(at), 3, 4);
        assert_eq!(ack(&mut *r, at + 100, 4, &[], at).loss, loss);
    }
}

/// RFC 3522: after a timeout an acknowledgement echoes the stamp of the original. RFC 5682: with stamps that say nothing, a segment that was
/// sent once is reported.
#[test]
fn a_spurious_timeout_is_taken_back() {
    let mut r = sent(10);
    let due = ms(9 + 300);
    assert_eq!((r.on_timer(due), r.next(1.0, 100)), (Some(10), Next::Resend(0)));
    r.on_sent(due, 0, 10);
    let outcome = ack(&mut *r, 310, 1, &[], 0);
    assert_eq!((outcome.undo, outcome.newly_acked, r.state().in_flight), (true, 1, 9));
    assert_eq!(r.next(10.0, 100), Next::New, "nothing more is sent again");

    let mut r = sent(10);
    r.on_timer(due);
    r.on_sent(due, 0, 10);
    let outcome = r.on_ack(ms(310), 1, 0, &[], ms(1));
    assert_eq!((outcome.undo, r.next(2.0, 100)), (false, Next::New), "step 2 b: new data first");
    r.on_sent(ms(310), 10, 11);
    r.on_sent(ms(310), 11, 12);
    assert!(ack(&mut *r, 410, 2, &[], 310).undo, "step 3 b");
}

/// Every retransmission is reported as a duplicate: nothing was lost, and the window for reordering grows by a quarter.
#[test]
fn duplicates_take_an_episode_back() {
    let mut r = sent(10);
    ack(&mut *r, 105, 0, &[(3, 6)], 5);
    for segment in 0..3 {
        assert_eq!(r.next(9.0, 100), Next::Resend(segment));
        r.on_sent(ms(106), segment, 10 + segment);
    }
    ack(&mut *r, 106, 6, &[], 106); // 0, 1 and 2 were late; the stamp says nothing
    assert!(!ack(&mut *r, 206, 6, &[(0, 1)], 106).undo);
    assert!(!ack(&mut *r, 206, 6, &[(1, 2)], 106).undo);
    assert!(!ack(&mut *r, 206, 6, &[(900, 901)], 106).undo, "never sent");
    assert!(ack(&mut *r, 206, 6, &[(2, 3)], 106).undo);
    assert!(!ack(&mut *r, 206, 6, &[(2, 3)], 106).undo, "once");
}

/// Of responses that are taken back, only those by duplicates prolong a widened window (`tcp_try_undo_dsack`).
#[test]
fn only_duplicates_prolong_a_widened_window() {
    let persists = |echoed: u64, duplicates: &[(u32, u32)]| {
        let mut r = RackRecovery::new(&Values::default());
        r.on_rtt(ms(100));
        (0..10).for_each(|segment| r.on_sent(ms(segment as u64), segment, segment));
        r.reordering.persists = 5;
        ack(&mut r, 105, 0, &[(3, 6)], 5);
        (0..3).for_each(|segment| r.on_sent(ms(106), segment, 10 + segment));
        let mut undone = ack(&mut r, 206, 10, &[], echoed).undo;
        for range in duplicates {
            undone |= ack(&mut r, 206, 10, &[*range], 106).undo;
        }
        (undone, r.state, r.reordering.persists)
    };
    assert_eq!(persists(106, &[]), (false, State::Open, 4), "a repair");
    assert_eq!(persists(2, &[]), (true, State::Open, 5), "by the time stamp");
    assert_eq!(
        persists(106, &[(0, 1), (1, 2), (2, 3)]),
        (true, State::Open, 5),
        "one less by its end, one more by duplicates"
    );
}

/// What the receiver claims to have twice is bounded by what was sent twice.
#[test]
fn forged_duplicates_mean_nothing() {
    let mut r = sent(10);
    ack(&mut *r, 105, 0, &[(3, 6)], 5);
    r.on_sent(ms(106), 0, 10);
    for range in [(0, u32::MAX), (u32::MAX - 1, u32::MAX), (0, 2), (5, 5), (7, 6)] {
        assert!(!ack(&mut *r, 107, 0, &[range, (3, 6)], 106).undo, "{range:?}");
    }
}

#[test]
fn random_loss_is_repaired() {
    for seed in 0..40 {
        for loss in [0.0, 0.001, 0.01, 0.05, 0.2] {
            let values = testing::values(&[Common::PARAMS], &[("rto", (seed % 3) as f64)]);
            let mut r = Rack.build(&values);
            let story = transfer_randomly(&mut *r, seed, 800, (loss, loss / 2.0), |_| {});
            assert!(loss > 0.0 || story.resent + story.timeouts == 0, "{story:?}");
        }
    }
}

/// Every second of 40 segments is lost, and the first retransmissions as well: no timeout.
#[test]
fn a_window_full_of_gaps_needs_no_timeout() {
    let mut lost = 0;
    let mut r = sent(0);
    let channel = Channel {
        segments: 400,
        loses_data: &mut |n, segment| {
            let loses = n >= 100 && segment % 2 == 1 && lost < 30;
            lost += loses as u32;
            loses
        },
        loses_ack: &mut || false,
        cwnd: 40.0,
        most: 64.0,
    };
    let story = transfer(&mut *r, channel, |_| {});
    assert_eq!((story.timeouts, story.resent), (0, 30), "{story:?}");
}
