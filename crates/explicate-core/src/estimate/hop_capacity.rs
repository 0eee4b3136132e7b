//! The capacity of a hop, measured by the service of its frames: what the queue of a radio, or of a line whose rate
//! changes, would carry if it always had a frame to send.
//!
//! Source: ours. Paper N asks for it (sections V-C and VII): routers need the capacity, and over 802.11 no configured
//! number is right. Goyal et al. (NSDI 2020) have a router that measures its link too; that part could not be read, so
//! nothing here is from it.
//!
//! The idea: a frame is in service from the moment in which it is the first of the queue until it is acknowledged or
//! given up. The bytes that were acknowledged over the time in service are the capacity. That time includes back-off,
//! retries, answers, and what others send meanwhile, so it needs no model of the medium. It is taken apart, because its
//! parts change for different reasons. While others hold the air (carrier sense, or a reservation), nothing of ours
//! moves: their share of the service time, a, is kept as it is. What remains is our own time. The part of it in which
//! the bits of data frames are on the air is taken at the *present* rate of the radio, retries included: when a radio
//! changes its rate, the capacity changes with the next frame, not after a window.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | L | [`Served::bytes`] | bytes | IP length; 0 if the frame was given up | |
//! | s | [`Served::service`] | s | from the head of the queue to acknowledged or given up | |
//! | h | [`Served::held`] | s | part of s in which others hold the air, or the shared line | |
//! | v | [`Air::spent`] | s | part of s in which bits of the data frame were on the air, all attempts | |
//! | v' | [`Air::anew`] | s | the same attempts at the present rate | |
//! | R | [`Air::rate`] | bit/s | present rate of the link | |
//! | W | `window` | s | 0.1, in service | |
//! | B, S, H | `bytes`, `service`, `held` | bytes, s, s | sums of L, s, h, each times W / (W + s) with every later frame | |
//! | U | `overhead` | s | the same of s - h - v | |
//! | V | `data_s` of each link | s | the same of v'; times R / R' when the rate changes from R to R' | |
//! | a | | 1 | H / S | |
//! | C | `capacity` | bytes/s | (1 - a) B / (U + V) | |
//!
//! While rates do not change, U + V = S - H, and C is B / S.
//!
//! W is chosen by two arguments. Noise: with others on the air, service times vary about as much as their mean, so a mean
//! over 2 W / s frames has a relative error of sqrt(s / 2 W): 5 % for frames of 0.5 ms (24 Mbit/s) and W = 0.1 s. By
//! paper N's law an error of 5 % costs a queue of a tenth of the bandwidth-delay product. Lag: senders follow after a round
//! trip, so a window of about one, 0.1 s, delays them no more than the path does.
//!
//! Three ways (`measured`): `air_time` is all of it; `own_time` takes a = 0, as if the station were alone; `phy_rate`
//! takes R itself. The last two are for comparison: they state too much.
//!
//! Deviations, of what is measured from what is wanted:
//! 1. Until the first frame is served, C is the configured capacity: by default the nominal rate.
//! 2. C is that of the present mix of lengths: short frames have less of it.
//! 3. A frame that finds queue and air idle needs no back-off, so that at a low load C is too high, by a third at 54
//!    Mbit/s (41.1 for 30.5 Mbit/s). At a high load frames wait, and the error vanishes.
//! 4. Nothing is learned or forgotten while the queue is empty. A frame counts when its service ends, so that a pause of
//!    a line shows after the pause.
//! 5. A change of rate changes the share of lost attempts, too, which only new frames show.
//! 6. The gap (SIFS) before a station's own answer to another's frame counts as its own time.
//! 7. The mean of a ratio of few frames is above the ratio of their means, by 7 % for five saturated stations
//!    at 12 Mbit/s, whose service times vary by twice their mean: there the estimate has a deviation of 0.4.
//! 8. C is at least a thousandth of the configured capacity, because controllers divide by it.

use alloc::vec::Vec;

use crate::api::Probe;
use crate::params::{Seconds, choices, parameters};
use crate::units::Time;

choices! {
    /// How the capacity of a hop is measured.
    pub enum By {
        /// Service time, others' share of the air, present rate.
        AirTime = "air_time",
        /// Without others' share of the air.
        OwnTime = "own_time",
        /// The present rate of the radio, and nothing else.
        PhyRate = "phy_rate",
    }
}

parameters! {
    /// Parameters: the keys of a table `capacity`.
    pub struct Params {
        /// What the capacity is measured by: `air_time`, the service time of frames, with the share of the air that others
        /// use; `own_time`, without that share; `phy_rate`, the present rate of the radio.
        measured: By = By::AirTime, "ours";
        /// Time in service that a measurement covers.
        window: Seconds = 0.1, in 1e-3..=100.0, "ours";
    }
}

/// Capacities below this share of the configured one are not reported.
const LEAST: f64 = 1e-3;

/// A frame whose service has ended.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// IP bytes that were acknowledged; 0 if the frame was given up. On a line those that left.
    pub bytes: u32,
    /// From the head of the queue to the end of its service.
    pub service: Time,
    /// Part of it in which others used the medium, or the shared line.
    pub held: Time,
    /// Its data frames on the air, on a medium.
    pub air: Option<Air>,
}

/// The data frames of a packet on the air.
#[derive(Clone, Copy, Debug)]
pub struct Air {
    /// The medium's number of the link.
    pub link: u32,
    /// Its present rate, bit/s.
    pub rate: f64,
    /// Time of all attempts without preambles.
    pub spent: Time,
    /// The same at the present rate.
    pub anew: Time,
}

/// A link of the radio.
#[derive(Clone, Copy, Default)]
struct Rated {
    /// Its last rate, bit/s.
    rate: f64,
    /// Time of the attempts of the window at that rate, s.
    data_s: f64,
}

/// Measures the capacity of a hop.
pub struct HopCapacity {
    params: Params,
    /// Configured capacity, and the measured one, bytes/s.
    configured: f64,
    capacity: f64,
    bytes: f64,
    service: f64,
    held: f64,
    overhead: f64,
    /// By the medium's number; few.
    links: Vec<(u32, Rated)>,
}

impl HopCapacity {
    /// A measurement at a port with this configured capacity, bytes/s, above zero.
    pub fn new(params: Params, configured: f64) -> HopCapacity {
        let (bytes, service, held, overhead) = (0.0, 0.0, 0.0, 0.0);
        HopCapacity { params, configured, capacity: configured, bytes, service, held, overhead, links: Vec::new() }
    }

    /// The capacity, bytes/s: finite and above zero.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// The service of a frame has ended: returns the capacity, bytes/s.
    pub fn served(&mut self, frame: &Served) -> f64 {
        self.add(frame, frame.service.as_secs_f64());
        self.capacity = self.measured().max(LEAST * self.configured);
        self.capacity
    }

    fn add(&mut self, frame: &Served, service: f64) {
        let keep = self.params.window / (self.params.window + service);
        let held = frame.held.min(frame.service);
        let mut own = frame.service.since(held);
        self.links.iter_mut().for_each(|(_, link)| link.data_s *= keep);
        if let Some(air) = frame.air {
            let at = self.links.iter().position(|(number, _)| *number == air.link).unwrap_or_else(|| {
                self.links.push((air.link, Rated::default()));
                self.links.len() - 1
            });
            let link = &mut self.links[at].1;
            if link.rate != air.rate {
                link.data_s *= link.rate / air.rate; // nothing yet for a new link
                link.rate = air.rate;
            }
            link.data_s += air.anew.as_secs_f64();
            own = own.since(air.spent.min(own));
        }
        self.bytes = keep * self.bytes + frame.bytes as f64;
        self.service = keep * self.service + service;
        self.held = keep * self.held + held.as_secs_f64();
        self.overhead = keep * self.overhead + own.as_secs_f64();
    }

    fn measured(&self) -> f64 {
        let data: f64 = self.links.iter().map(|(_, link)| link.data_s).sum();
        let own = self.overhead + data;
        if own <= 0.0 {
            return self.capacity; // others held the air all the time
        }
        match self.params.measured {
            By::AirTime => (1.0 - self.others_share()) * self.bytes / own,
            By::OwnTime => self.bytes / own,
            By::PhyRate if data > 0.0 => self.links.iter().map(|(_, link)| link.rate / 8.0 * link.data_s / data).sum(),
            By::PhyRate => self.configured, // a line has no rate of a radio
        }
    }

    /// The share of the service time in which others use the medium, a.
    pub fn others_share(&self) -> f64 {
        if self.service > 0.0 { self.held / self.service } else { 0.0 }
    }

    /// Reports its variables.
    pub fn probe(&self, put: Probe<'_>) {
        put("measured_capacity_bps", 8.0 * self.capacity);
        put("others_air_share", self.others_share());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: f64 = 1e6 / 8.0;

    fn hop(measured: By) -> HopCapacity {
        HopCapacity::new(Params { measured, ..Params::DEFAULT }, 54.0 * MBPS)
    }
    /// A frame of 1500 bytes on link 0 that took so many us in all, so many of others, with attempts of `bits_us` at `rate`
    /// Mbit/s.
    fn frame(service: u64, held: u64, attempts: u64, bits_us: u64, rate: f64) -> Served {
        let spent = Time::micros(attempts * bits_us);
        let air = Some(Air { link: 0, rate: rate * 1e6, spent, anew: spent });
        Served { bytes: 1500, service: Time::micros(service), held: Time::micros(held), air }
    }
    fn close(measured: f64, wanted: f64) -> bool {
        (measured / wanted - 1.0).abs() < 1e-12
    }

    /// At 24 Mbit/s a frame of 1500 bytes has 129 symbols of 4 us. Its exchange: DIFS 34, back-off 63, preamble 20, symbols
    /// 516, SIFS 16, acknowledgement 28: 677 us. An attempt without answer takes DIFS, back-off, data and 50 us of
    /// time-out; back-off is on average 139.5 of the second window and 283.5 us of the third. So k retries take
    /// 677, 683 + 753.5, 683 + 759.5 + 897.5 us, and the capacity is 1500 bytes over that, exactly, after any number of frames.
    #[test]
    fn a_fixed_rate_with_k_retries_gives_the_length_over_the_time() {
        for (retries, service) in [(0, 677_000), (1, 1_436_500), (2, 2_340_000)] {
            let mut measured = hop(By::AirTime);
            for _ in 0..1000 {
                let served = Served { service: Time(service), ..frame(0, 0, 1 + retries, 516, 24.0) };
                assert!(close(measured.served(&served), 1500.0 / (service as f64 * 1e-9)), "{retries} retries");
            }
        }
        // 17.73, 8.35 and 5.13 Mbit/s of 24.
        let mut measured = hop(By::PhyRate);
        assert!(close(measured.served(&frame(677, 0, 1, 516, 24.0)), 24.0 * MBPS));
    }

    /// A frame takes 600 us; for 200 of them others hold the air: 20 Mbit/s, a = 1/3. Alone it takes 400 us: 30 Mbit/s.
    #[test]
    fn others_use_a_share_of_the_air() {
        for (by, mbps) in [(By::AirTime, 20.0), (By::OwnTime, 30.0), (By::PhyRate, 54.0)] {
            let mut measured = hop(by);
            measured.served(&frame(600, 200, 1, 228, 54.0));
            assert!(close(measured.served(&frame(600, 200, 1, 228, 54.0)), mbps * MBPS), "{by:?}");
            assert!(close(measured.others_share(), 1.0 / 3.0));
        }
    }

    /// A frame that is given up takes time and brings nothing: of two of 500 us one arrives. The older one has weight
    /// 0.1 / 0.1005.
    #[test]
    fn a_frame_that_is_given_up_takes_time() {
        let mut measured = hop(By::AirTime);
        measured.served(&Served { bytes: 0, ..frame(500, 0, 7, 40, 54.0) });
        let old = 0.1 / 0.1005;
        assert!(close(measured.served(&frame(500, 0, 1, 228, 54.0)), 1500.0 / (500e-6 * (1.0 + old))));
        let mut nothing = hop(By::AirTime);
        let least = nothing.served(&Served { bytes: 0, ..frame(500, 0, 7, 40, 54.0) });
        assert!(close(least, 54.0 * MBPS / 1000.0), "never zero");
    }

    /// 100 us of a frame's 400 are its bits at 48 Mbit/s; others hold 100 more. At 24 Mbit/s they take 200, so its own
    /// time is 500 us, and with the same share of others, a fifth, 625. The first frame at the new rate has these times
    /// itself, so the sums have what they would have if all frames were of the new rate.
    #[test]
    fn a_change_of_rate_shows_with_the_next_frame() {
        let mut measured = hop(By::AirTime);
        for _ in 0..500 {
            assert!(close(measured.served(&frame(500, 100, 1, 100, 48.0)), 1500.0 / 500e-6));
        }
        let served = Served { service: Time::micros(625), held: Time::micros(125), ..frame(0, 0, 1, 200, 24.0) };
        let now = measured.served(&served);
        assert!((now / (1500.0 / 625e-6) - 1.0).abs() < 1e-3, "{now}");
        // An attempt at the old rate is part of the time; at the present rate the two take 400 us instead of 300.
        let air = Air { link: 0, rate: 24e6, spent: Time::micros(300), anew: Time::micros(400) };
        let mut both = hop(By::AirTime);
        let first = both.served(&Served { air: Some(air), ..frame(800, 0, 0, 0, 24.0) });
        assert!(close(first, 1500.0 / 900e-6), "{first}");
    }

    /// Frames to a near and a far station take turns, 400 us at 54 and 800 us at 12 Mbit/s: 3000 bytes in 1.2 ms. When the
    /// far one's rate doubles, its 400 us of bits become 200.
    #[test]
    fn links_of_a_radio_have_rates_of_their_own() {
        let on = |link, mut served: Served| {
            served.air.as_mut().unwrap().link = link;
            served
        };
        let mut measured = hop(By::AirTime);
        for _ in 0..2000 {
            measured.served(&on(1, frame(400, 0, 1, 200, 54.0)));
            measured.served(&on(2, frame(800, 0, 1, 400, 12.0)));
        }
        assert!((measured.capacity() / (3000.0 / 1200e-6) - 1.0).abs() < 0.005, "{}", measured.capacity());
        measured.served(&on(1, frame(400, 0, 1, 200, 54.0)));
        let now = measured.served(&on(2, frame(600, 0, 1, 200, 24.0)));
        assert!((now / (3000.0 / 1000e-6) - 1.0).abs() < 0.005, "{now}");
    }

    /// What is older than t s in service has the weight exp(-t / W). A line of 10 Mbit/s that becomes one of 5 is measured
    /// at 5 (1 + exp(-1)) after W s.
    #[test]
    fn the_window_is_w_seconds_in_service() {
        let mut measured = hop(By::AirTime);
        let on_line = |us| Served { bytes: 125, service: Time::micros(us), held: Time::ZERO, air: None };
        for _ in 0..10_000 {
            measured.served(&on_line(100));
        }
        assert!(close(measured.capacity(), 10.0 * MBPS));
        for _ in 0..500 {
            measured.served(&on_line(200));
        }
        let wanted = 5.0 * (1.0 + libm::exp(-1.0)) * MBPS;
        assert!((measured.capacity() / wanted - 1.0).abs() < 0.01, "{} {wanted}", measured.capacity());
    }

    #[test]
    fn frames_without_a_time_alone_say_nothing() {
        let mut measured = hop(By::AirTime);
        let none = Served { bytes: 1500, service: Time::ZERO, held: Time::ZERO, air: None };
        assert_eq!(measured.served(&none), 54.0 * MBPS, "the configured one so far");
        let others = Served { bytes: 1500, service: Time::micros(10), held: Time::micros(10), air: None };
        assert_eq!(measured.served(&others), 54.0 * MBPS);
    }

    /// A recording that has several chances in a millisecond serves the first of them after 1 ms, and the others at once.
    #[test]
    fn frames_behind_another_in_an_instant_count() {
        let mut measured = hop(By::AirTime);
        for _ in 0..500 {
            for service in [1000, 0, 0] {
                measured.served(&Served { bytes: 1500, service: Time::micros(service), held: Time::ZERO, air: None });
            }
        }
        assert!(close(measured.capacity(), 4500.0 / 1e-3), "{}", measured.capacity());
    }
}
