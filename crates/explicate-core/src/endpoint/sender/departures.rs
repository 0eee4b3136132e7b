//! When packets left. The time stamp of a packet repeats every 17.2 s; together with the echoed packet number this record tells
//! which of the times it is, so round trips may last longer, in networks with long delays or queues of minutes.
//!
//! Stored are *stretches*: spans of at most half that period in which packets with consecutive numbers left. Within one, a
//! stamp names one time. A flow has one per 8.6 s of sending.

use alloc::collections::VecDeque;

use crate::units::Time;
use crate::wire::{Transport, stamp_age};

/// Longest stretch, ns.
const LONGEST: u64 = 1 << 33;

/// Maximum number of earlier stretches: of six days of sending. Answers to packets before are ignored.
const MOST: usize = 1 << 16;

/// Packets from number `first` on, the first of which left at `since`.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    first: u32,
    since: Time,
    /// When the last one left.
    until: Time,
}

/// The stretches before the present one.
pub(super) type Earlier = VecDeque<Stretch>;

impl Default for Stretch {
    /// Packet 0 may leave within this stretch and does not begin it.
    fn default() -> Stretch {
        Stretch { first: u32::MAX, since: Time::ZERO, until: Time::ZERO }
    }
}

impl Stretch {
    /// A packet leaves. Returns whether that is in this stretch; otherwise it begins another one.
    #[inline(always)]
    pub(super) fn record(&mut self, now: Time) -> bool {
        if now.0.wrapping_sub(self.since.0) > LONGEST {
            return false;
        }
        self.until = now;
        true
    }

    /// How long ago the last packet left.
    pub(super) fn last_age(&self, now: Time) -> Time {
        now.since(self.until)
    }

    /// A packet begins a stretch. Every SYN does, so that no stamp of an earlier session is taken for its own: on paths
    /// longer than a session the answers to its SYNs arrive in the next one, and any time between two SYNs would fit.
    pub(super) fn begin(&mut self, now: Time, number: u32, earlier: &mut Earlier) {
        if number > 0 {
            if earlier.len() >= MOST {
                earlier.pop_front();
            }
            earlier.push_back(*self);
        }
        *self = Stretch { first: number, since: now, until: now };
    }

    /// The age of the time stamp that an acknowledgement echoes with the packet number, if this is the present stretch and the
    /// echo is of it without doubt.
    #[inline(always)]
    pub(super) fn age(&self, now: Time, echo: &Transport) -> Option<Time> {
        let age = stamp_age(now, echo.timestamp());
        let most = now.0.wrapping_sub(self.since.0);
        // Not of the first: between it and one that a delayed acknowledgement also covers may be any time.
        let of_present = echo.packet_number().wrapping_sub(self.first).wrapping_sub(1) < i32::MAX as u32;
        if of_present && age.0 <= most && most <= LONGEST { Some(age) } else { None }
    }

    /// The age of the time stamp, whichever stretch it is of. A delayed acknowledgement echoes the number of one packet and the
    /// stamp of an earlier one. `None` if no packet can have left with this stamp: it answers another session of the
    /// flow, or is forged.
    pub(super) fn age_of_any(&self, earlier: Option<&Earlier>, now: Time, echo: &Transport) -> Option<Time> {
        let (number, stamped) = (echo.packet_number(), echo.timestamp());
        let before = |stretch: &&Stretch| number.wrapping_sub(stretch.first) > i32::MAX as u32;
        let all = core::iter::once(self).chain(earlier.into_iter().flat_map(|earlier| earlier.iter().rev()));
        all.skip_while(before).find_map(|stretch| stretch.age_up_to(number, now, stamped))
    }

    /// The age of a packet up to this number that left in this stretch with such a stamp, if one can.
    fn age_up_to(&self, number: u32, now: Time, stamped: u32) -> Option<Time> {
        let since = self.since.0 >> 2;
        let until = if number == self.first { since } else { self.until.0 >> 2 };
        let left = until.checked_sub((until as u32).wrapping_sub(stamped) as u64)?;
        (left >= since).then(|| Time((now.0 >> 2).saturating_sub(left) * 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::wire::stamp;
    use std::vec::Vec;

    #[derive(Default)]
    struct Departures(Stretch, Earlier);

    impl Departures {
        fn record(&mut self, now: Time, number: u32) {
            if !self.0.record(now) {
                self.0.begin(now, number, &mut self.1);
            }
        }
        fn age(&self, now: Time, echo: &Transport) -> Option<Time> {
            let any = self.0.age_of_any(Some(&self.1), now, echo);
            assert!(self.0.age(now, echo).is_none_or(|age| any == Some(age)), "without doubt");
            any
        }
    }

    fn echo(number: u32, left: Time) -> Transport {
        let mut header = Transport::EMPTY;
        header.set_packet_number(number);
        header.set_timestamp(stamp(left));
        header
    }

    /// Packets at random intervals, sparse or dense; every age is exact, of delayed acknowledgements too.
    #[test]
    fn ages_are_exact_beyond_the_period_of_stamps() {
        for (seed, (gap, step)) in [(0.01, 37), (0.3, 3), (2.0, 1), (9.0, 1), (40.0, 1)].into_iter().enumerate() {
            let mut rng = Rng::stream(seed as u64, "departures");
            let (mut departures, mut left) = (Departures::default(), Vec::new());
            let mut now = Time::secs([3, 0, 30, 100, 7][seed]);
            for number in 0..3000 {
                now += Time::from_secs_f64(rng.exponential(gap));
                departures.record(now, number);
                left.push(now);
            }
            for number in (1..3000).step_by(step) {
                for later in [0.0, 0.5, 17.1, 17.3, 40.0, 1200.0, 4e4] {
                    let at = now.max(left[number]) + Time::from_secs_f64(later);
                    for first in [number, number - 1] {
                        let stamped = Time(left[first].0 & !3);
                        let mut header = echo(number as u32, stamped);
                        header.set_timestamp(stamp(stamped));
                        let age = departures.age(at, &header);
                        assert_eq!(
                            age,
                            Some(Time((at.0 & !3) - stamped.0)),
                            "{number} of {first} at {at}, gaps of {gap} s"
                        );
                    }
                }
            }
        }
    }

    /// At both sides of the border, with an answer that comes at once.
    #[test]
    fn the_border_of_stamps_is_crossed() {
        let period = Time(1 << 34);
        for rtt in [1, 1 << 33, (1 << 33) + 4, (1 << 34) - 4, 1 << 34, (1 << 34) + 4, 1 << 35, 5 << 34].map(Time) {
            let mut departures = Departures::default();
            let sent = Time(period.0 - 1000);
            departures.record(sent, 0);
            let age = departures.age(sent + rtt, &echo(0, sent));
            assert_eq!(age, Some(Time(((sent.0 + rtt.0) & !3) - (sent.0 & !3))), "{rtt}");
        }
    }

    /// A stamp of no packet, of one that left later, and of one that no stretch has.
    #[test]
    fn what_was_never_sent_has_no_age() {
        let mut departures = Departures::default();
        (0..100).for_each(|number| departures.record(Time::secs(10 * number as u64 + 10), number));
        let now = Time::secs(2000);
        for (number, left) in [(5, Time::millis(3)), (5, Time::secs(70)), (u32::MAX, Time::secs(9))] {
            assert_eq!(departures.age(now, &echo(number, left)), None, "{number}");
        }
        assert_eq!(departures.age(now, &echo(5, Time::secs(60))), Some(Time::secs(1940)));
    }
}
