//! The end of slow start before a loss: HyStart, as Linux's CUBIC has it (S. Ha, I. Rhee, "Taming the elephants: New TCP
//! slow start", Computer Networks 55(9), 2011), and HyStart++ (RFC 9406). Code for every controller with a
//! [`Window`](super::window::Window).
//!
//! Both end slow start when the least round-trip time of a round rises: a queue builds. HyStart also ends it when a
//! train of closely spaced acknowledgements is longer than half the least round-trip time: the path is full. HyStart++
//! first grows four times more slowly for five rounds, and returns to slow start if the round-trip time falls again.
//!
//! | symbol | name here | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | hystart_low_window | `LOW_WINDOW` | segments | 16 | Linux 6.18, `tcp_cubic.c` |
//! | HYSTART_MIN_SAMPLES, N_RTT_SAMPLE | `SAMPLES` | | 8 | the same; RFC 9406 section 4.3 |
//! | HYSTART_DELAY_MIN and MAX, MIN_RTT_THRESH and MAX | `LEAST_RISE`, `MOST_RISE` | ms | 4, 16 | the same |
//! | hystart_ack_delta_us | `SPACING` | ms | 2 | `tcp_cubic.c` |
//! | CSS_GROWTH_DIVISOR | `CSS_DIVISOR` | | 4 | RFC 9406 section 4.3 |
//! | CSS_ROUNDS | `CSS_ROUNDS` | | 5 | the same |
//! | L | `most_per_ack` | segments | 8, no limit if paced | the same |
//!
//! Deviations:
//! 1. Linux also allows an acknowledgement train the time of four super-packets at the pacing rate, at most a millisecond; here
//!    the pacing rate is that of slow start, two windows per smoothed round-trip time.
//! 2. Linux takes no sample in the first second after a loss; here none is taken outside of slow start.

use crate::api::Ack;
use crate::params::{choices, parameters};
use crate::units::Time;

use super::window::Round;

choices! {
    /// How slow start ends before a loss.
    pub enum Hystart { None = "none", Linux = "linux", Rfc9406 = "rfc9406" }
}

parameters! {
    /// What a scenario can set.
    pub struct HystartParams {
        /// How slow start ends before a loss: not at all, by HyStart as in Linux, or by HyStart++.
        hystart: Hystart = Hystart::None, "RFC 9406; Linux 6.18, tcp_cubic.c";
    }
}

const LOW_WINDOW: f64 = 16.0;
const SAMPLES: u32 = 8;
const LEAST_RISE: Time = Time::millis(4);
const MOST_RISE: Time = Time::millis(16);
const SPACING: Time = Time::millis(2);
/// Bytes of four super-packets.
const TRAIN_BYTES: f64 = 4.0 * 65536.0;
const TRAIN_ALLOWANCE: f64 = 1e-3;
const CSS_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// How far the least round-trip time may rise above `least`.
fn rise(least: Time) -> Time {
    Time(least.0 / 8).clamp(LEAST_RISE, MOST_RISE)
}

/// What observes slow start.
pub(crate) enum Observer {
    /// HyStart.
    Linux(Trains),
    /// HyStart++.
    Rfc9406(Rounds),
}

impl Observer {
    /// `None` without one. `packet` is the length of a full packet, bytes.
    pub(crate) fn new(hystart: Hystart, packet: f64, paced: bool) -> Option<Observer> {
        match hystart {
            Hystart::None => None,
            Hystart::Linux => Some(Observer::Linux(Trains::new(packet, paced))),
            Hystart::Rfc9406 => Some(Observer::Rfc9406(Rounds::new(paced))),
        }
    }
    /// An acknowledgement arrived in slow start. Returns whether slow start ends.
    pub(crate) fn ends(&mut self, ack: &Ack<'_>, cwnd: f64, initial: bool) -> bool {
        match self {
            Observer::Linux(trains) => trains.ends(ack, cwnd),
            Observer::Rfc9406(rounds) => initial && rounds.ends(ack),
        }
    }
    /// Growth for an acknowledgement of `newly_acked` segments where a controller without an observer grows by `most` at most.
    pub(crate) fn growth(&self, newly_acked: f64, most: f64) -> f64 {
        match self {
            Observer::Linux(_) => newly_acked.min(most),
            Observer::Rfc9406(rounds) if rounds.baseline.is_some() => {
                newly_acked.min(rounds.most_per_ack) / CSS_DIVISOR
            }
            Observer::Rfc9406(rounds) => newly_acked.min(rounds.most_per_ack),
        }
    }
    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self) {
        if let Observer::Linux(trains) = self {
            *trains = Trains::new(trains.packet, trains.paced);
        }
    }
}

/// HyStart of Linux.
pub(crate) struct Trains {
    packet: f64,
    paced: bool,
    found: bool,
    /// Of the whole connection.
    least: Time,
    round: Option<Round>,
    began: Time,
    last: Time,
    /// Of this round.
    least_of_round: Time,
    samples: u32,
}

impl Trains {
    fn new(packet: f64, paced: bool) -> Trains {
        Trains {
            packet,
            paced,
            found: false,
            least: Time::NEVER,
            round: None,
            began: Time::ZERO,
            last: Time::ZERO,
            least_of_round: Time::NEVER,
            samples: 0,
        }
    }

    /// `hystart_update`.
    fn ends(&mut self, ack: &Ack<'_>, cwnd: f64) -> bool {
        self.least = self.least.min(ack.rtt);
        if self.found {
            return false;
        }
        if self.round.get_or_insert_default().ends(ack) {
            (self.began, self.last) = (ack.now, ack.now);
            (self.least_of_round, self.samples) = (Time::NEVER, 0);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        if ack.now.since(self.last) <= SPACING {
            self.last = ack.now;
            self.found = ack.now.since(self.began) > self.longest_train(ack, cwnd);
        }
        self.least_of_round = self.least_of_round.min(ack.rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            self.found |= self.least_of_round > self.least + rise(self.least);
        }
        self.found
    }

    fn longest_train(&self, ack: &Ack<'_>, cwnd: f64) -> Time {
        let per_byte = ack.srtt.as_secs_f64() / (2.0 * cwnd * self.packet);
        let longest = self.least + Time::from_secs_f64((TRAIN_BYTES * per_byte).min(TRAIN_ALLOWANCE));
        // A paced flow spreads its packets over half a round trip.
        if self.paced { longest } else { Time(longest.0 / 2) }
    }
}

/// HyStart++.
pub(crate) struct Rounds {
    most_per_ack: f64,
    round: Round,
    /// Least round-trip times of the last round and this one.
    last: Time,
    current: Time,
    samples: u32,
    /// The least round-trip time when conservative slow start began, in which the window grows more slowly; `None` in slow start.
    baseline: Option<Time>,
    css_rounds: u32,
}

impl Rounds {
    fn new(paced: bool) -> Rounds {
        Rounds {
            most_per_ack: if paced { f64::INFINITY } else { 8.0 },
            round: Round::default(),
            last: Time::NEVER,
            current: Time::NEVER,
            samples: 0,
            baseline: None,
            css_rounds: 0,
        }
    }

    /// RFC 9406 section 4.2.
    fn ends(&mut self, ack: &Ack<'_>) -> bool {
        if self.round.ends(ack) {
            (self.last, self.current, self.samples) = (self.current, Time::NEVER, 0);
            if self.baseline.is_some() {
                self.css_rounds += 1;
                if self.css_rounds >= CSS_ROUNDS {
                    return true;
                }
            }
        }
        self.current = self.current.min(ack.rtt);
        self.samples += 1;
        if self.samples < SAMPLES {
            return false;
        }
        match self.baseline {
            None if self.last < Time::NEVER && self.current >= self.last + rise(self.last) => {
                // The present round counts, though only in part.
                (self.baseline, self.css_rounds) = (Some(self.current), 0);
            }
            Some(baseline) if self.current < baseline => self.baseline = None,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::Congestion;

    /// The acknowledgement of segment `n`, while `window` more are on their way.
    fn ack(n: u32, window: u32, now: Time, rtt: Time) -> Ack<'static> {
        let (cumulative, highest_sent) = (n + 1, n + 1 + window);
        Ack { cumulative, highest_sent, rtt, srtt: rtt, ..testing::ack(now, &Congestion::NONE) }
    }
    /// Acknowledgements at these spacings and round-trip times with a window of 40; the first at which slow start ends.
    fn first_end(observer: &mut Observer, each: impl Fn(u32) -> (Time, Time), count: u32) -> Option<u32> {
        let mut now = Time::secs(1);
        (0..count).find(|&n| {
            let (gap, rtt) = each(n);
            now += gap;
            observer.ends(&ack(n, 40, now, rtt), 40.0, true)
        })
    }
    fn linux(paced: bool) -> Observer {
        Observer::new(Hystart::Linux, 1500.0, paced).expect("an observer")
    }

    /// Least round trip 100 ms: a train longer than (100 + 1)/2 = 50.5 ms. The round begins with acknowledgement 0; at 1 ms
    /// each, number 51 is the first later than that. Paced, 101 ms are more than the round has.
    #[test]
    fn a_long_train_ends_slow_start() {
        let each = |_| (Time::millis(1), Time::millis(100));
        let mut long = linux(false);
        // A window of 200: the round is longer than the train.
        let mut now = Time::secs(1);
        let end = (0..200).find(|&n| {
            now += Time::millis(1);
            long.ends(&ack(n, 200, now, Time::millis(100)), 200.0, true)
        });
        assert_eq!(end, Some(51));
        assert_eq!(first_end(&mut linux(false), each, 400), None, "40 acknowledgements in 40 ms");
        let gaps = |n| (Time::micros(if n % 41 == 10 { 2001 } else { 1990 }), Time::millis(60));
        assert_eq!(first_end(&mut linux(false), gaps, 400), None, "the train ends where two are further apart");
        let close = |_| (Time::micros(1990), Time::millis(60));
        assert_eq!(first_end(&mut linux(false), close, 400), Some(16), "16 of 1.99 ms are more than 30.5 ms");
        assert_eq!(first_end(&mut linux(true), close, 400), Some(31), "31 are more than 61 ms");
    }

    /// Least 80 ms: a rise of more than 10 ms in a round, after eight samples. Acknowledgement 41 begins the second round.
    #[test]
    fn a_longer_round_trip_ends_slow_start() {
        let rtt_from = |rtt| move |n| (Time::millis(3), if n < 41 { Time::millis(80) } else { rtt });
        assert_eq!(first_end(&mut linux(false), rtt_from(Time::millis(90)), 200), None, "not more than 10 ms");
        let more = Time::micros(90_001);
        assert_eq!(first_end(&mut linux(false), rtt_from(more), 200), Some(41 + 8), "the ninth sample");
        let mut small = linux(false);
        let mut now = Time::secs(1);
        let ends = (0..200).any(|n| {
            now += Time::millis(3);
            small.ends(&ack(n, 40, now, Time::millis(80 + 20 * (n > 40) as u64)), 15.0, true)
        });
        assert!(!ends, "a window below 16");
    }

    /// After a timeout it observes again.
    #[test]
    fn once_until_a_timeout() {
        let mut observer = linux(false);
        let close = |_| (Time::micros(1990), Time::millis(60));
        assert_eq!(first_end(&mut observer, close, 100), Some(16));
        assert_eq!(first_end(&mut observer, close, 100), None);
        observer.on_timeout();
        assert_eq!(first_end(&mut observer, close, 100), Some(16));
    }

    fn plus(paced: bool) -> Observer {
        Observer::new(Hystart::Rfc9406, 1500.0, paced).expect("an observer")
    }

    /// Round trips of 80 ms and then of 90: at the eighth sample growth is a quarter, and five rounds of 41 later slow start
    /// ends, the first of them the one in which it slowed down.
    #[test]
    fn conservative_slow_start_lasts_five_rounds() {
        let mut observer = plus(false);
        assert_eq!((observer.growth(3.0, 1.0), observer.growth(20.0, 1.0)), (3.0, 8.0), "L = 8");
        assert_eq!(plus(true).growth(20.0, 1.0), 20.0, "paced");
        let each = |n| (Time::millis(1), Time::millis(if n < 41 { 80 } else { 90 }));
        assert_eq!(first_end(&mut observer, each, 41 + 8), None);
        assert_eq!(observer.growth(4.0, 1.0), 1.0);
        assert_eq!(first_end(&mut plus(false), each, 1000), Some(41 + 5 * 41));
        let low = |n| (Time::millis(1), Time::micros(if n < 41 { 80_000 } else { 89_999 }));
        assert_eq!(first_end(&mut plus(false), low, 1000), None, "less than an eighth");
    }

    /// The round-trip time falls below that at which growth slowed down: slow start goes on.
    #[test]
    fn a_false_alarm_is_taken_back() {
        let mut observer = plus(false);
        let each = |n| (Time::millis(1), Time::millis(if (41..82).contains(&n) { 90 } else { 80 }));
        assert_eq!(first_end(&mut observer, each, 82 + 7), None);
        assert_eq!(observer.growth(4.0, 1.0), 1.0);
        let mut observer = plus(false);
        assert_eq!(first_end(&mut observer, each, 82 + 8), None);
        assert_eq!(observer.growth(4.0, 1.0), 4.0);
        assert!(
            !plus(false).ends(&ack(0, 40, Time::secs(1), Time::millis(80)), 40.0, false),
            "the first slow start only"
        );
    }
}
