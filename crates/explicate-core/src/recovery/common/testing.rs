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

impl Story {
    /// A segment is sent again that had this fate. After a timeout everything in flight may be: whether it was lost cannot be
    /// known.
    fn resends(&mut self, fate: Fate, recovering: bool) {
        self.resent += 1;
        match fate {
            Fate::InFlight => self.resent_in_flight += recovering as u32,
            Fate::Arrived => self.resent_arrived += recovering as u32,
            Fate::Lost => {}
            Fate::Unsent => panic!("a segment was sent again that was never sent"),
        }
    }
}

/// Each way takes this long; a packet leaves the sender every [`GAP`] at most.
pub(crate) const DELAY: Time = Time::millis(50);
const GAP: Time = Time::micros(100);

/// A window with slow start, segments.
struct Window {
    cwnd: f64,
    threshold: f64,
    most: f64,
}

impl Window {
    fn grow(&mut self, acked: f64) {
        let more = if self.cwnd < self.threshold { acked } else { acked / self.cwnd };
        self.cwnd = (self.cwnd + more).min(self.most);
    }
    fn halve(&mut self, flight: u32) {
        self.threshold = (flight as f64 / 2.0).max(2.0);
        self.cwnd = self.threshold;
    }
}

/// The segment that may be sent now, of a flow of so many.
fn next_segment<R: Recovery + ?Sized>(r: &mut R, cwnd: f64, segments: u32) -> Option<u32> {
    match r.next(cwnd, 1 << 20) {
        Next::Nothing => None,
        Next::Resend(segment) => Some(segment),
        Next::New if r.state().next < segments => Some(r.state().next),
        Next::New => r.spare(),
    }
}

/// Transfers all segments and calls `check` after every event. Panics if it does not end.
pub(crate) fn transfer<R: Recovery + ?Sized>(r: &mut R, channel: Channel<'_>, mut check: impl FnMut(&R)) -> Story {
    let Channel { segments, loses_data, loses_ack, cwnd, most } = channel;
    let mut window = Window { cwnd, threshold: f64::INFINITY, most };
    let mut data: VecDeque<(Time, u32, u32, Time)> = VecDeque::new();
    let mut acks: VecDeque<(Time, u32, u32, SackRanges, Time)> = VecDeque::new();
    let mut fate: Vec<Fate> = std::vec![Fate::Unsent; segments as usize];
    let mut receiver = Reassembly::default();
    let mut story = Story::default();
    let (mut now, mut line) = (Time::ZERO, Time::ZERO);
    r.on_rtt(Time::millis(100));
    while r.state().acked < segments {
        while let Some(segment) = next_segment(r, window.cwnd, segments) {
            if segment < r.state().highest {
                story.resends(fate[segment as usize], r.state().recovering);
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
                window.halve(flight);
            } else if !repairing && !r.state().recovering {
                window.grow(outcome.newly_acked as f64);
            }
        } else if let Some(outcome) = r.on_early_timer(now) {
            if let Some(flight) = outcome.loss {
                story.episodes += 1;
                window.halve(flight);
            }
        } else if let Some(flight) = r.on_timer(now) {
            story.timeouts += 1;
            window.halve(flight);
            window.cwnd = 1.0;
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
