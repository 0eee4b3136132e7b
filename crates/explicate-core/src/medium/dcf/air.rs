//! Received power between stations: distance, constant shadowing, drift over time, and on/off interferers.
//!
//! Powers are relative to the power at `decode_range`. The power received from each sender is stored in a list per
//! sender and computed again only when the drift takes a step.

use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{Params, Settings, factor};
use crate::medium::Interferer;
use crate::params::Values;
use crate::rng::{Rng, power};
use crate::units::Time;

/// Steps of the drift per coherence time.
const STEPS: f64 = 16.0;
/// Minimum distance between stations, metres.
const NEAREST: f64 = 0.1;
/// Tolerance of ranges for rounding.
const MET: f64 = 1.0 - 1e-9;

/// Arguments for making a medium.
pub struct Layout<'a> {
    /// Its name, with which the names of its random streams begin.
    pub name: &'a str,
    /// Its parameters.
    pub values: &'a Values,
    /// Names and positions of its stations, metres.
    pub stations: Vec<(&'a str, (f64, f64))>,
    /// Its interferers.
    pub interferers: &'a [Interferer],
}

/// Reception of a sender at a station.
#[derive(Clone, Copy)]
pub(super) struct Heard {
    pub(super) station: u32,
    pub(super) power: f64,
    /// Strong enough to be sensed.
    pub(super) sensed: bool,
    /// Strong enough to be decoded.
    pub(super) decodable: bool,
}

/// A pair of emitter and station.
struct Pair {
    ends: (u32, u32),
    /// Power by distance and shadowing.
    mean: f64,
    /// dB.
    drift: f64,
    rng: Rng,
}

/// An interferer.
struct Burster {
    on: Time,
    off: Time,
    rng: Option<Rng>,
    active: bool,
    changes: Time,
}

/// The radio propagation between stations.
pub(super) struct Air {
    /// For each emitter, interferers after stations.
    heard: Vec<Arc<[Heard]>>,
    stations: u32,
    /// Stored only if the drift needs them.
    pairs: Vec<Pair>,
    sigma: f64,
    step: Time,
    drifts_at: Time,
    bursters: Vec<Burster>,
    /// Minimum powers that matter, that are sensed, and that are sensed of an interferer.
    floor: f64,
    sensed: f64,
    energy: f64,
}

impl Air {
    /// The propagation of a medium, whose random draws depend on `seed`.
    pub(super) fn new(layout: &Layout<'_>, settings: &Settings, seed: u64) -> Air {
        let params = Params::of(layout.values);
        let count = layout.stations.len();
        let (range, exponent) = (params.decode_range, params.exponent);
        let sensed = power(range / params.sense_range, exponent);
        let mut floor = sensed.min(1.0 / settings.capture_factor);
        if settings.noisy {
            floor = floor.min(0.1 * settings.noise);
        }
        let stations = layout.stations.iter().map(|(_, at)| *at);
        let places: Vec<(f64, f64)> = stations.chain(layout.interferers.iter().map(|i| i.at)).collect();
        let name = |i: usize| match layout.stations.get(i) {
            Some((name, _)) => name.to_string(),
            None => format!("interferer.{}", i - count),
        };
        let shadowing = params.shadowing;
        let mut pairs = Vec::new();
        for b in 0..places.len() {
            for a in 0..b.min(count) {
                let (dx, dy) = (places[a].0 - places[b].0, places[a].1 - places[b].1);
                let distance = libm::sqrt(dx * dx + dy * dy).max(NEAREST);
                let stream = |what: &str| Rng::stream(seed, &format!("{}/{}~{}/{what}", layout.name, name(a), name(b)));
                let shadow = if shadowing > 0.0 { shadowing * stream("shadowing").normal() } else { 0.0 };
                let mean = power(range / distance, exponent) * factor(-shadow);
                pairs.push(Pair { ends: (a as u32, b as u32), mean, drift: 0.0, rng: stream("drift") });
            }
        }
        let burster = |(i, given): (usize, &Interferer)| {
            let rng = Rng::stream(seed, &format!("{}/interferer.{i}/bursts", layout.name));
            let mut b = Burster { on: given.on, off: given.off, rng: None, active: false, changes: Time::ZERO };
            b.rng = given.random.then_some(rng);
            b.changes = b.draw(b.off);
            b
        };
        let sigma = params.drift;
        let mut air = Air {
            heard: Vec::new(),
            stations: count as u32,
            pairs,
            sigma,
            step: Time::from_secs_f64(params.coherence / STEPS),
            drifts_at: Time::NEVER,
            bursters: layout.interferers.iter().enumerate().map(burster).collect(),
            floor,
            sensed: sensed * MET,
            energy: factor(params.energy_detect) * MET,
        };
        if sigma > 0.0 {
            air.drifts_at = air.step;
            air.pairs.iter_mut().for_each(|p| p.drift = sigma * p.rng.normal());
        }
        air.listen(places.len());
        if sigma == 0.0 {
            air.pairs = Vec::new();
        }
        air
    }

    /// Power of an emitter at each station.
    pub(super) fn heard(&self, emitter: u32) -> Arc<[Heard]> {
        self.heard[emitter as usize].clone()
    }
    /// When the drift or an interferer next changes.
    pub(super) fn next(&self) -> Time {
        self.bursters.iter().map(|b| b.changes).min().unwrap_or(Time::NEVER).min(self.drifts_at)
    }
    /// Takes the steps of the drift up to `now`.
    pub(super) fn drift(&mut self, now: Time) {
        if self.drifts_at > now {
            return;
        }
        let keep = power(core::f64::consts::E, -1.0 / STEPS);
        let fresh = self.sigma * libm::sqrt(1.0 - keep * keep);
        for pair in &mut self.pairs {
            pair.drift = keep * pair.drift + fresh * pair.rng.normal();
        }
        self.drifts_at += self.step;
        self.listen(self.heard.len());
    }
    /// The first interferer that begins or ends a burst by `now`: its emitter's number, and the length of a burst
    /// that begins. If several do, the one whose number has the lowest `place`.
    pub(super) fn burst(&mut self, now: Time, place: impl Fn(usize) -> u64) -> Option<(u32, Time)> {
        loop {
            let due = (0..self.bursters.len()).filter(|&i| self.bursters[i].changes <= now);
            let at = due.min_by(|&a, &b| place(a).cmp(&place(b)))?;
            let b = &mut self.bursters[at];
            b.active = !b.active;
            let span = b.draw(if b.active { b.on } else { b.off });
            b.changes += span.max(Time::micros(1));
            if b.active {
                return Some((self.stations + at as u32, span));
            }
        }
    }

    fn listen(&mut self, emitters: usize) {
        let mut lists: Vec<Vec<Heard>> = vec![Vec::new(); emitters];
        for pair in &self.pairs {
            let power = pair.mean * if pair.drift == 0.0 { 1.0 } else { factor(-pair.drift) };
            if power < self.floor {
                continue;
            }
            let (a, b) = pair.ends;
            if b < self.stations {
                let (sensed, decodable) = (power >= self.sensed.min(MET), power >= MET);
                lists[a as usize].push(Heard { station: b, power, sensed, decodable });
                lists[b as usize].push(Heard { station: a, power, sensed, decodable });
            } else {
                lists[b as usize].push(Heard { station: a, power, sensed: power >= self.energy, decodable: false });
            }
        }
        for list in &mut lists {
            list.sort_by_key(|h| h.station);
        }
        self.heard = lists.into_iter().map(Arc::from).collect();
    }
}

impl Burster {
    fn draw(&mut self, mean: Time) -> Time {
        match &mut self.rng {
            Some(rng) => Time::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            None => mean,
        }
    }
}
