//! A small lossy channel for the tests of recoveries: constant delay, order kept, packets and acknowledgements lost.

use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;

use crate::params::Values;
use crate::reassembly::Reassembly;
use crate::recovery::{AnyRecovery, AnyRecoveryKind, Next, Outcome, Recovery};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::SackRanges;

/// A recovery whose first `n` segments left at time zero.
pub(crate) fn sent(kind: &AnyRecoveryKind, n: u32) -> Box<AnyRecovery> {
    let mut r = kind.build(&Values::default());
    (0..n).for_each(|segment| r.on_sent(Time::ZERO, segment, segment));
    r
}
/// An acknowledgement arrives after 100 ms.
pub(crate) fn ack(r: &mut AnyRecovery, cumulative: u32) -> Outcome {
    r.on_ack(Time::millis(100), cumulative, 0, &[], Time::millis(100))
}

/// What a run needs.
pub(crate) struct Channel<'a> {
    /// Segments to deliver.
    pub(crate) segments: u32,
    /// Whether transmission `n` (counted from zero) of data is lost.
    pub(crate) loses_data: &'a mut dyn FnMut(u32, u32) -> bool,
    /// Whether an acknowledgement is lost.
    pub(crate) loses_ack: &'a mut dyn FnMut() -> bool,
    /// The window: slow start and AIMD from this, halved at a loss, one at a timeout.
    pub(crate) cwnd: f64,
    /// Most that the window grows to.
    pub(crate) most: f64,
}

/// What a run was like.
#[derive(Default, Debug)]
pub(crate) struct Story {
    pub(crate) transmissions: u32,
    pub(crate) resent: u32,
    pub(crate) timeouts: u32,
    pub(crate) episodes: u32,
    /// Segments sent again while the transmission before was in flight, or had arrived, and no timeout had intervened.
    pub(crate) resent_in_flight: u32,
    pub(crate) resent_arrived: u32,
    pub(crate) finished: Time,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Unsent,
    InFlight,
    Lost,
    Arrived,
}

/// Each way takes this long; a packet leaves the sender every [`GAP`] at most.
pub(crate) const DELAY: Time = Time::millis(50);
const GAP: Time = Time::micros(100);

/// Transfers all segments and calls `check` after every event. Panics if it does not end.
pub(crate) fn transfer<R: Recovery + ?Sized>(r: &mut R, channel: Channel<'_>, mut check: impl FnMut(&R)) -> Story {
    let Channel { segments, loses_data, loses_ack, mut cwnd, most } = channel;
    let mut data: VecDeque<(Time, u32, u32, Time)> = VecDeque::new();
    let mut acks: VecDeque<(Time, u32, u32, SackRanges, Time)> = VecDeque::new();
    let mut fate: Vec<Fate> = std::vec![Fate::Unsent; segments as usize];
    let mut receiver = Reassembly::default();
    let mut ssthresh = f64::INFINITY;
    let mut story = Story::default();
    let (mut now, mut line) = (Time::ZERO, Time::ZERO);
    r.on_rtt(Time::millis(100));
    while r.state().acked < segments {
        loop {
            let segment = match r.next(cwnd, 1 << 20) {
                Next::Nothing => break,
                Next::Resend(segment) => segment,
                Next::New if r.state().next < segments => r.state().next,
                Next::New => match r.spare() {
                    Some(segment) => segment,
                    None => break,
                },
            };
            if segment < r.state().highest {
                story.resent += 1;
                // After a timeout everything in flight may be sent again: whether it was lost cannot be known.
                let repairs = r.state().recovering as u32;
                match fate[segment as usize] {
                    Fate::InFlight => story.resent_in_flight += repairs,
                    Fate::Arrived => story.resent_arrived += repairs,
                    Fate::Lost => {}
                    Fate::Unsent => panic!("segment {segment} was never sent"),
                }
            }
            r.on_sent(now, segment, story.transmissions);
            line = now.max(line + GAP);
            let lost = loses_data(story.transmissions, segment);
            if !lost {
                data.push_back((line + DELAY, segment, story.transmissions, now));
            }
            if fate[segment as usize] != Fate::Arrived {
                fate[segment as usize] = if lost { Fate::Lost } else { Fate::InFlight };
            }
            story.transmissions += 1;
            check(r);
        }
        let at = |t: Option<Time>| t.unwrap_or(Time::NEVER);
        let (d, a, t) = (at(data.front().map(|d| d.0)), at(acks.front().map(|a| a.0)), r.state().timer);
        let next = d.min(a).min(t);
        assert!(next >= now && next < Time::secs(100_000), "stuck at {now} with {story:?}");
        now = next;
        if d == now {
            let (_, segment, number, stamp) = data.pop_front().unwrap();
            receiver.insert(segment, 1 << 20, 1, false);
            fate[segment as usize] = Fate::Arrived;
            if !loses_ack() {
                acks.push_back((now + DELAY, receiver.next(), number, receiver.ranges(), stamp));
            }
        } else if a == now {
            let (_, cumulative, number, ranges, stamp) = acks.pop_front().unwrap();
            let repairing = r.state().recovering;
            let outcome = r.on_ack(now, cumulative, number, ranges.as_slice(), now.since(stamp));
            if let Some(flight) = outcome.loss {
                story.episodes += 1;
                ssthresh = (flight as f64 / 2.0).max(2.0);
                cwnd = ssthresh;
            } else if !repairing && !r.state().recovering {
                let n = outcome.newly_acked as f64;
                cwnd = (cwnd + if cwnd < ssthresh { n } else { n / cwnd }).min(most);
            }
        } else if let Some(outcome) = r.on_early_timer(now) {
            if let Some(flight) = outcome.loss {
                story.episodes += 1;
                ssthresh = (flight as f64 / 2.0).max(2.0);
                cwnd = ssthresh;
            }
        } else if let Some(flight) = r.on_timer(now) {
            story.timeouts += 1;
            ssthresh = (flight as f64 / 2.0).max(2.0);
            cwnd = 1.0;
        }
        check(r);
    }
    assert_eq!(receiver.next(), segments);
    story.finished = now;
    story
}

/// Transfers through random loss with these probabilities for data and acknowledgements.
pub(crate) fn transfer_randomly<R: Recovery + ?Sized>(
    r: &mut R,
    seed: u64,
    segments: u32,
    loss: (f64, f64),
    check: impl FnMut(&R),
) -> Story {
    let (mut on_data, mut on_acks) = (Rng::stream(seed, "data"), Rng::stream(seed, "acks"));
    let channel = Channel {
        segments,
        loses_data: &mut |_, _| on_data.uniform() < loss.0,
        loses_ack: &mut || on_acks.uniform() < loss.1,
        cwnd: 4.0,
        most: 64.0,
    };
    transfer(r, channel, check)
}
