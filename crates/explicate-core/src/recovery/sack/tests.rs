//! The rules of `sack.rs`, one by one, and random losses.

use super::*;
use crate::recovery::common::testing::{Channel, DELAY, Story, transfer, transfer_randomly};
use crate::recovery::reno::Reno;
use crate::rng::Rng;

fn sack() -> SackRecovery {
    SackRecovery::new(&Values::default())
}
/// With a choice of `lost_retransmission`.
fn choosing(choice: f64) -> SackRecovery {
    let mut values = Values::default();
    values.set(&Params::PARAMS[0], choice);
    SackRecovery::new(&values)
}
/// With `lost_retransmission = "reports"`.
fn watching() -> SackRecovery {
    choosing(1.0)
}
fn sent(n: u32) -> SackRecovery {
    let mut r = sack();
    for segment in 0..n {
        r.on_sent(Time::ZERO, segment, segment);
    }
    r
}
fn ack(r: &mut SackRecovery, cumulative: u32, ranges: &[(u32, u32)]) -> Outcome {
    let out = r.on_ack(Time::millis(100), cumulative, 0, ranges, Time::millis(100));
    recount(r);
    out
}

/// `pipe` from its definition: segment by segment, with IsLost by counting.
fn recount(r: &SackRecovery) {
    let reported = |s: u32| r.board.skip(s) != s;
    let after_timeout = !r.recovering && r.seq.acked < r.recover && r.lost_below == r.recover;
    let mut above = 0;
    let mut pipe = 0;
    for s in (r.seq.acked..r.seq.highest).rev() {
        if reported(s) {
            above += 1;
            continue;
        }
        let lost = if after_timeout { s < r.recover } else { r.recovering && above >= r.dupackthreshold as u32 };
        pipe += !lost as u32 + (s < r.cursor) as u32;
    }
    assert_eq!(r.pipe, pipe);
    let whole = r.board.is_empty() && r.pipe == r.seq.highest - r.seq.acked && r.cursor <= r.seq.acked;
    assert_eq!(r.quiet, whole && !r.recovering);
    assert!(r.seq.acked <= r.cursor.max(r.seq.acked) && r.cursor <= r.seq.highest);
}

#[test]
fn three_reports_above_show_a_loss_and_release_as_they_come() {
    let mut r = sent(10);
    assert_eq!(ack(&mut r, 1, &[]).newly_acked, 1);
    let first = ack(&mut r, 1, &[(2, 3)]);
    assert!(first.duplicate && first.newly_acked == 1 && first.loss.is_none());
    assert_eq!(r.next(9.0, 100), Next::New, "limited transmit");
    r.on_sent(Time::ZERO, 10, 10);
    assert_eq!(ack(&mut r, 1, &[(2, 4)]).newly_acked, 1);
    r.on_sent(Time::ZERO, 11, 11);
    assert_eq!(ack(&mut r, 1, &[(2, 5)]).loss, Some(9), "in flight before, limited transmit not counted");
    // 5..12 are in flight; the window of four is full, but the first retransmission does not wait.
    assert_eq!((r.state().in_flight, r.next(4.0, 100)), (7, Next::Resend(1)));
    r.on_sent(Time::millis(100), 1, 12);
    assert_eq!((r.state().in_flight, r.next(8.0, 100)), (8, Next::Nothing));
    assert_eq!(r.next(9.0, 100), Next::New);
    assert_eq!(ack(&mut r, 12, &[]).newly_acked, 8);
    assert!(!r.state().recovering && r.quiet);
}

#[test]
fn order_of_next_seg() {
    let mut r = sent(12);
    // Lost 0, 2, 6; reported 1, 3..6, 7; the last four are under way.
    assert_eq!(ack(&mut r, 0, &[(3, 6), (1, 2)]).loss, Some(12));
    ack(&mut r, 0, &[(7, 8), (3, 6), (1, 2)]);
    let take = |r: &mut SackRecovery| match r.next(100.0, 100) {
        Next::Resend(s) => {
            r.on_sent(Time::ZERO, s, 99);
            recount(r);
            Some(s)
        }
        _ => None,
    };
    assert_eq!((take(&mut r), take(&mut r), take(&mut r)), (Some(0), Some(2), None));
    assert_eq!(r.next(100.0, 100), Next::New);
    assert_eq!(r.next(100.0, 12), Next::Resend(6), "no room for new data: a hole that is not yet lost");
    assert_eq!(r.spare(), Some(6));
    r.on_sent(Time::ZERO, 6, 100);
    recount(&r);
    assert_eq!(r.spare(), None, "the tail may be under way");
    ack(&mut r, 2, &[(7, 8), (3, 6)]);
    assert_eq!(r.spare(), Some(11), "a retransmission overtook it");
    r.on_sent(Time::ZERO, 11, 101);
    recount(&r);
    assert_eq!(r.spare(), None, "once an episode");
}

/// 0 is lost, and so is its retransmission; 10 to 13 are sent after that.
#[test]
fn data_sent_after_a_retransmission_shows_that_it_was_lost() {
    for watches in [false, true] {
        let mut r = if watches { watching() } else { sack() };
        (0..10).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
        assert!(ack(&mut r, 0, &[(1, 4)]).loss.is_some());
        r.on_sent(Time::millis(100), 0, 10);
        (10..14).for_each(|segment| r.on_sent(Time::millis(100), segment, segment));
        let out = ack(&mut r, 0, &[(1, 12)]);
        assert_eq!((out.newly_acked, r.next(3.0, 100)), (8, Next::Nothing), "0, 12 and 13 are in flight");
        assert!(ack(&mut r, 0, &[(1, 13)]).loss.is_none(), "already reported");
        if !watches {
            assert_eq!((r.state().in_flight, r.next(9.0, 100)), (2, Next::New), "it is left to the timer");
            continue;
        }
        assert_eq!((r.state().in_flight, r.next(1.0, 100)), (1, Next::Resend(0)), "it does not wait for the window");
        r.on_sent(Time::millis(200), 0, 14);
        assert_eq!(r.state().timer, Time::millis(200) + r.rto.timeout(), "the timer starts afresh");
        (14..17).for_each(|segment| r.on_sent(Time::millis(200), segment, segment));
        ack(&mut r, 0, &[(1, 16)]);
        assert_eq!(r.next(9.0, 100), Next::New, "two are not enough");
        ack(&mut r, 0, &[(1, 17)]);
        assert_eq!(r.next(9.0, 100), Next::Resend(0), "lost a third time");
        r.on_sent(Time::millis(300), 0, 17);
        assert!(ack(&mut r, 17, &[]).loss.is_none() && r.quiet);
    }
}

#[test]
fn one_report_is_enough_if_no_reordering_is_feared() {
    let mut r = choosing(2.0);
    (0..10).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
    assert!(ack(&mut r, 0, &[(1, 4)]).loss.is_some());
    r.on_sent(Time::millis(100), 0, 10);
    r.on_sent(Time::millis(100), 10, 11);
    ack(&mut r, 0, &[(1, 10)]);
    assert_eq!(r.next(1.0, 100), Next::Nothing, "all that is reported was sent before");
    ack(&mut r, 0, &[(1, 11)]);
    assert_eq!(r.next(9.0, 100), Next::Resend(0));
}

/// One segment in fifty is lost, retransmissions too. What nothing follows, or too little, still waits for the timer.
#[test]
fn reports_replace_the_timer() {
    let timeouts = |watched: bool| {
        let transfer = |seed| {
            let mut r = if watched { watching() } else { sack() };
            let story = transfer_randomly(&mut r, seed, 1500, (0.02, 0.0), recount);
            assert_eq!((story.resent_in_flight, story.resent_arrived), (0, 0), "{story:?}");
            story.timeouts
        };
        (0..40).map(transfer).sum::<u32>()
    };
    let (without, with) = (timeouts(false), timeouts(true));
    assert!(with * 3 < without * 2, "{with} of {without} timeouts are left");
}

/// 0 and 2 are lost; a window of eight.
#[test]
fn a_pipe_of_acknowledgements_keeps_what_is_lost() {
    let mut r = CountingSack { recovery: sack(), counted: 0 };
    let ack = |r: &mut CountingSack, cumulative, ranges: &[(u32, u32)]| {
        let out = r.on_ack(Time::millis(100), cumulative, 0, ranges, Time::millis(100));
        recount(&r.recovery);
        (out.loss, (r.recovery.pipe, r.counted))
    };
    (0..12).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
    assert!(ack(&mut r, 0, &[(3, 5), (1, 2)]).0.is_some());
    r.on_sent(Time::millis(100), 0, 12);
    let pipes = (r.recovery.pipe, r.counted);
    assert_eq!(pipes, (9, 9), "without 1, 3, 4 and the first 0; any three, and not the resent one");
    assert_eq!(ack(&mut r, 0, &[(3, 6), (1, 2)]).1, (7, 8), "less 5, and 2 is lost");
    assert_eq!((r.recovery.next(8.0, 100), r.next(8.0, 100)), (Next::Resend(2), Next::Nothing));
    assert_eq!(ack(&mut r, 0, &[(3, 9), (1, 2)]).1, (4, 7), "three reports, one acknowledgement");
    r.on_sent(Time::millis(100), 2, 13);
    assert_eq!((r.recovery.pipe, r.counted), (5, 8));
    assert_eq!(ack(&mut r, 2, &[(3, 9)]).1, (4, 6), "a partial acknowledgement takes two");
    ack(&mut r, 12, &[]);
    assert_eq!(r.next(1.0, 100), Next::New, "the next window is what is outstanding, as ever");
}

#[test]
fn a_timeout_keeps_the_reports_and_fills_the_holes() {
    let mut r = sent(8);
    ack(&mut r, 0, &[(2, 4), (6, 7)]);
    assert_eq!(r.state().in_flight, 3, "4, 5 and 7: an episode has marked 0 and 1 as lost");
    assert_eq!((r.on_timer(Time::secs(1)), r.state().in_flight), (Some(3), 0));
    for hole in [0, 1, 4, 5, 7] {
        assert_eq!(r.next(100.0, 100), Next::Resend(hole));
        assert_eq!(r.next(r.state().in_flight as f64, 100), Next::Nothing);
        r.on_sent(Time::secs(1), hole, 0);
        recount(&r);
    }
    assert_eq!(r.next(100.0, 100), Next::New);
    assert_eq!((ack(&mut r, 4, &[]).newly_acked, r.state().in_flight), (2, 3));
    assert!(ack(&mut r, 8, &[]).loss.is_none() && r.quiet);
}

/// A second episode may begin with all its losses resent; it ends while segments that are older than it are in flight.
#[test]
fn an_episode_that_has_nothing_to_resend_ends() {
    let mut r = sent(10); // 0 is lost, and 10 will be
    assert!(ack(&mut r, 0, &[(1, 4)]).loss.is_some());
    r.on_sent(Time::ZERO, 0, 10);
    (10..14).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
    ack(&mut r, 0, &[(11, 14), (1, 10)]);
    assert_eq!(r.next(100.0, 100), Next::Resend(10));
    r.on_sent(Time::ZERO, 10, 99);
    (14..18).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
    assert!(ack(&mut r, 10, &[(11, 14)]).loss.is_some());
    ack(&mut r, 14, &[]);
    assert!(r.state().recovering, "until 18");
    ack(&mut r, 18, &[]);
    assert!(!r.state().recovering);
}

#[test]
fn reneging_is_survived() {
    let mut r = sent(8);
    ack(&mut r, 0, &[(1, 2), (3, 5)]);
    r.on_sent(Time::millis(100), 0, 8);
    // The receiver has 0 now but no longer 1.
    assert_eq!(ack(&mut r, 1, &[]).newly_acked, 1);
    assert!(r.board.is_empty() && r.state().in_flight == 7);
    assert_eq!(r.on_timer(Time::secs(9)), Some(7));
    for s in 1..8 {
        assert_eq!(r.next(100.0, 100), Next::Resend(s));
        r.on_sent(Time::secs(9), s, 0);
        recount(&r);
    }
    assert_eq!(ack(&mut r, 8, &[]).newly_acked, 7);
}

#[test]
fn nonsense_is_ignored() {
    let mut r = sent(8);
    ack(&mut r, 3, &[]);
    for ranges in [[(9, 10)], [(0, 2)], [(6, 5)], [(5, 5)], [(2, 6)], [(3, 4)], [(7, u32::MAX)]] {
        assert_eq!(ack(&mut r, 3, &ranges).newly_acked, 0, "{ranges:?}");
    }
    assert_eq!(ack(&mut r, 9, &[(4, 5)]).newly_acked, 0);
    assert!(r.quiet && r.state().in_flight == 5);
}

#[test]
fn random_loss_is_repaired_without_waste() {
    for seed in 0..40 {
        for loss in [0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3] {
            let story = transfer_randomly(&mut sack(), seed, 1500, (loss, 0.0), recount);
            assert_eq!((story.resent_in_flight, story.resent_arrived), (0, 0), "{loss}: {story:?}");
            assert!(loss > 0.0 || story.resent + story.timeouts == 0);
            let story = transfer_randomly(&mut sack(), seed, 1500, (loss, loss), recount);
            assert_eq!(story.resent_in_flight, 0, "{loss} with lost acknowledgements: {story:?}");
        }
    }
}

#[test]
fn random_answers_keep_the_counts() {
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, "answers");
        let mut r = if seed % 2 == 0 { sack() } else { watching() };
        let mut below = |n: u32| (rng.next_u64() % n as u64) as u32;
        for step in 0..2000 {
            let now = Time::millis(step);
            match below(4) {
                0 | 1 => match r.next(1.0 + below(40) as f64, 100) {
                    Next::Nothing => {}
                    Next::Resend(s) => r.on_sent(now, s, 0),
                    Next::New => {
                        let spare = r.spare().filter(|_| below(2) == 0);
                        let s = spare.unwrap_or(r.state().next);
                        r.on_sent(now, s, 0);
                    }
                },
                2 if r.state().timer <= now => drop(r.on_timer(now)),
                _ => {
                    let base = r.seq.acked.saturating_sub(2);
                    let cumulative = if below(3) == 0 { base + below(12) } else { r.seq.acked };
                    let ranges = [(); 3].map(|()| (base + below(50), base + below(60)));
                    r.on_ack(now, cumulative, 0, &ranges[..below(4) as usize], Time::millis(1 + below(50) as u64));
                }
            }
            recount(&r);
        }
        assert!(r.state().acked > 100);
    }
}

/// Ten segments of a window of forty are lost.
fn ten_of_forty(r: &mut AnyRecovery) -> Story {
    let channel = Channel {
        segments: 400,
        loses_data: &mut |n, _| (60..100).contains(&n) && n % 4 == 0,
        loses_ack: &mut || false,
        cwnd: 40.0,
        most: 40.0,
    };
    transfer(r, channel, |_| {})
}

#[test]
fn many_losses_of_a_window_take_a_few_round_trips() {
    let story = ten_of_forty(&mut sack());
    assert_eq!((story.timeouts, story.episodes, story.resent), (0, 1, 10));
    let perfect = 400 / 40 * 2;
    assert!(story.finished < Time(DELAY.0 * (perfect + 16)), "{story:?}");
    let reno = ten_of_forty(&mut *Reno.build(&Values::default()));
    assert!(reno.timeouts > 0, "{reno:?}");
}
