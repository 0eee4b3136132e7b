//! Delayed acknowledgements as Linux 6.18 sends them (`tcp_input.c`, `tcp_output.c`): quick ones first, then every second
//! segment, with a delay that follows the spacing of segments.
//!
//! | symbol | field | unit | value |
//! | --- | --- | --- | --- |
//! | TCP_MAX_QUICKACKS | `MOST_QUICK` | | 16, at most half the receiver's window |
//! | icsk_ack.quick | `quick` | | |
//! | icsk_ack.ato | `delay` | ms | 40 to 200 |
//!
//! Deviations:
//! 1. SACK compression (`tcp_comp_sack_nr`) is left out: each segment beyond a gap is acknowledged.
//! 2. The receiving end here has no retransmission timeout of its own. A pause of a second (`RESTART`) calls for quick
//!    acknowledgements; Linux takes its timeout, at least 0.2 s.
//! 3. The application reads at once, and sends nothing: it is never "interactive" (ping-pong mode).

use crate::units::Time;

const MOST_QUICK: u32 = 16;
const LEAST_DELAY: Time = Time::millis(40);
const MOST_DELAY: Time = Time::millis(200);
const RESTART: Time = Time::secs(1);
/// Quick acknowledgements after a router's mark.
const QUICK_AFTER_MARK: u32 = 2;

/// How a data segment arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// The receiver expected it, or it fills a gap.
    Next,
    /// Beyond a gap.
    Beyond,
    /// It had come before.
    Again,
}

/// State of delayed acknowledgements.
pub(super) struct Adaptive {
    quick: u32,
    /// Zero before the first segment.
    delay: Time,
    /// When the last segment in order arrived.
    last: Time,
}

impl Adaptive {
    pub(super) fn new() -> Adaptive {
        Adaptive { quick: 0, delay: Time::ZERO, last: Time::ZERO }
    }

    /// A segment arrived; `window` is the receiver's, segments.
    pub(super) fn on_data(&mut self, now: Time, came: Came, marked: bool, window: u32) {
        match came {
            Came::Beyond => {}
            Came::Again => self.quicken(window, MOST_QUICK, true),
            Came::Next => {
                let gap = now.since(self.last);
                self.last = now;
                if self.delay == Time::ZERO {
                    self.quicken(window, MOST_QUICK, true);
                } else if gap <= Time(LEAST_DELAY.0 / 2) {
                    self.delay = Time(self.delay.0 / 2 + LEAST_DELAY.0 / 2);
                } else if gap < self.delay {
                    self.delay = Time(self.delay.0 / 2 + gap.0).min(RESTART);
                } else if gap > RESTART {
                    self.quicken(window, MOST_QUICK, false);
                }
            }
        }
        if marked {
            self.quicken(window, QUICK_AFTER_MARK, true);
        }
    }
    fn quicken(&mut self, window: u32, most: u32, renews: bool) {
        let quick = if window < 2 { 2 } else { window / 2 };
        self.quick = self.quick.max(quick.min(most));
        if renews {
            self.delay = LEAST_DELAY;
        }
    }

    /// The receive window rises, which the sender is to learn at once (`tcp_grow_window`).
    pub(super) fn on_room(&mut self) {
        self.quick |= 1;
    }

    /// Whether an acknowledgement that nothing requires at once may wait with `held` segments.
    pub(super) fn may_wait(&self, held: u32) -> bool {
        self.quick == 0 && held < 2
    }
    /// An acknowledgement is sent.
    pub(super) fn on_ack(&mut self) {
        if self.quick == 1 {
            self.delay = LEAST_DELAY;
        }
        self.quick = self.quick.saturating_sub(1);
    }
    /// How long the next acknowledgement may wait.
    pub(super) fn delay(&self) -> Time {
        self.delay.min(MOST_DELAY)
    }
    /// An acknowledgement has waited that long.
    pub(super) fn on_expiry(&mut self) {
        self.delay = Time(2 * self.delay.0).min(RESTART);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The delay of the acknowledgement of one more segment after each of these gaps in ms.
    fn delays(gaps: &[u64]) -> Vec<f64> {
        let (mut a, mut now) = (Adaptive::new(), Time::secs(1));
        a.on_data(now, Came::Next, false, 1000);
        gaps.iter()
            .map(|gap| {
                now += Time::millis(*gap);
                a.on_data(now, Came::Next, false, 1000);
                a.delay().to_millis()
            })
            .collect()
    }
    use alloc::vec::Vec;

    /// 40; half and 20 for gaps up to 20 ms; half and the gap for longer ones below the delay; unchanged for others.
    #[test]
    fn the_delay_follows_the_gaps() {
        assert_eq!(delays(&[10, 20]), [40.0, 40.0]);
        assert_eq!(delays(&[35, 50, 55, 300, 1]), [55.0, 77.5, 93.75, 93.75, 66.875]);
        let mut a = Adaptive::new();
        a.on_data(Time::secs(1), Came::Next, false, 1000);
        a.on_expiry();
        assert_eq!(a.delay(), Time::millis(80), "the timer expired");
        (0..9).for_each(|_| a.on_expiry());
        assert_eq!(a.delay(), Time::millis(200));
    }

    #[test]
    fn quick_acknowledgements_by_hand() {
        let quick = |window: u32| {
            let mut a = Adaptive::new();
            a.on_data(Time::secs(1), Came::Next, false, window);
            (0..100).take_while(|_| (!a.may_wait(1), a.on_ack()).0).count()
        };
        assert_eq!([quick(1000), quick(20), quick(2), quick(1)], [16, 10, 1, 2]);
        let mut a = Adaptive::new();
        a.on_data(Time::secs(1), Came::Next, false, 1000);
        (0..16).for_each(|_| a.on_ack());
        assert!(a.may_wait(1) && !a.may_wait(2));
        a.on_data(Time::millis(1010), Came::Beyond, false, 1000);
        assert!(a.may_wait(1), "what is beyond a gap is answered by another rule");
        a.on_data(Time::millis(1020), Came::Next, true, 1000);
        assert_eq!(a.quick, 2, "a mark");
        a.on_data(Time::millis(1030), Came::Again, false, 1000);
        assert_eq!(a.quick, 16, "a segment that had come before");
        (0..16).for_each(|_| a.on_ack());
        a.on_data(Time::millis(2020), Came::Next, false, 1000);
        assert_eq!(a.quick, 0, "a second");
        a.on_data(Time::millis(3021), Came::Next, false, 1000);
        assert_eq!(a.quick, 16, "a pause");
    }
}
