//! Laws: what every registered protocol, recovery, queue discipline, channel, agent and estimator keeps, under random operations.
//!
//! A new entry is under these laws the moment its line stands in a registry.

mod agents;
mod flows;
mod machines;
mod parsers;
mod pools;
mod promises;

use std::collections::BTreeSet;

use explicate_core::endpoint;
use explicate_core::params::{Param, Unit, Values};
use explicate_core::presets::PRESETS;
use explicate_core::recovery::COMMON;
use explicate_core::registry::{self, CHANNELS, MEDIA, PROTOCOLS, QDISCS, RECOVERIES, entries, resolve};
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Format};

/// Folds every output of a run into one number (FNV-1a), so that two runs can be compared.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
    fn put(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    fn put_f64(&mut self, value: f64) {
        self.put(value.to_bits());
    }
}

/// Random choices of the suite.
struct Dice(Rng);

impl Dice {
    fn new(seed: u64, name: &str) -> Dice {
        Dice(Rng::stream(seed, name))
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }
    fn number(&mut self, n: u32) -> u32 {
        self.below(n as u64) as u32
    }
    fn flip(&mut self, p: f64) -> bool {
        self.0.uniform() < p
    }
    fn span(&mut self, mean: f64) -> Time {
        Time::from_secs_f64(self.0.exponential(mean))
    }
    /// Bytes that may be a congestion header, none, or nonsense.
    fn congestion(&mut self) -> Congestion {
        let mut header = match self.below(8) {
            0 => return Congestion::NONE,
            1 => {
                let mut bytes = [0; 20];
                bytes.fill_with(|| self.0.next_u64() as u8);
                return Congestion(bytes);
            }
            2 => Congestion::new(Format::MINIMAL),
            3 => Congestion::new(Format::WINDOW),
            _ => Congestion::new(Format::STANDARD),
        };
        if self.flip(0.3) {
            let mut wild = || self.0.next_u64() as u32;
            header.set_x(wild());
            header.set_rtt(wild());
            header.set_reverse_feedback(wild() as i32);
            header.set_delta_throughput(wild() as i32);
        } else {
            header.set_x(self.number(1 << 22));
            header.set_rtt(self.number(1 << 27));
            header.set_reverse_feedback(self.number(20_000) as i32 - 10_000);
            header.set_delta_throughput(self.number(2_000_000) as i32 - 1_000_000);
        }
        header
    }
    /// Values for these parameters: defaults, ends of the declared bounds, or points between.
    fn values(&mut self, params: &[&[Param]]) -> Values {
        let mut values = Values::default();
        for param in params.iter().copied().flatten() {
            if self.flip(0.5) {
                continue;
            }
            let most = if param.max.is_finite() { param.max } else { 1e4 * param.default.abs().clamp(1.0, 1e6) };
            let value = match param.unit {
                Unit::File | Unit::Steps => continue,
                Unit::Flag => self.number(2) as f64,
                Unit::Choice(words) => self.number(words.len() as u32) as f64,
                _ => match self.below(3) {
                    0 => param.min,
                    1 => most,
                    _ => param.min + (most - param.min) * self.0.uniform(),
                },
            };
            values.set(param, value);
        }
        values
    }
}

/// Runs `case` for some seeds, each twice: the outputs repeat.
fn repeats(name: &str, seeds: u64, case: impl Fn(&mut Dice) -> Hash) {
    for seed in 0..seeds {
        let run = || case(&mut Dice::new(seed, name));
        assert_eq!(run(), run(), "{name} does not repeat with seed {seed}");
    }
}

fn params_are_sound(owner: &str, params: &[Param]) {
    for p in params {
        let why = format!("{owner}: parameter `{}`", p.name);
        assert!(p.min <= p.max && !p.min.is_nan(), "{why} has no room between its bounds");
        assert!(p.default.is_nan() || (p.min..=p.max).contains(&p.default), "{why} has a default out of bounds");
        assert!(!p.name.is_empty() && !p.source.is_empty() && p.doc.ends_with('.'), "{why} is undocumented");
        match p.unit {
            Unit::Flag => assert!(p.default == 0.0 || p.default == 1.0, "{why} is a flag"),
            Unit::Choice(words) => {
                assert!(!words.is_empty() && p.default.fract() == 0.0, "{why} is a choice");
                assert!((p.default as usize) < words.len(), "{why} has no such choice");
                assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "{why} repeats a word");
            }
            _ => {}
        }
    }
}

fn names_are_unique<'a>(owner: &str, lists: impl IntoIterator<Item = &'a [Param]>) {
    let mut seen = BTreeSet::new();
    for param in lists.into_iter().flatten() {
        assert!(seen.insert(param.name), "{owner}: two parameters are called `{}`", param.name);
    }
}

#[test]
fn parameters_are_sound_and_their_names_unique() {
    for p in PROTOCOLS {
        params_are_sound(p.name(), p.params());
        params_are_sound(p.name(), p.router_params());
        names_are_unique(p.name(), [p.router_params()]);
        for r in RECOVERIES {
            let owner = format!("{}/{}", p.name(), r.name());
            names_are_unique(&owner, [p.params(), COMMON, r.params(), endpoint::PARAMS]);
        }
    }
    params_are_sound("every flow", endpoint::PARAMS);
    params_are_sound("every recovery", COMMON);
    RECOVERIES.iter().for_each(|r| params_are_sound(r.name(), r.params()));
    for (name, params) in QDISCS
        .iter()
        .map(|q| (q.name(), q.params()))
        .chain(CHANNELS.iter().map(|c| (c.name(), c.params())))
        .chain(MEDIA.iter().map(|m| (m.name(), m.params())))
    {
        params_are_sound(name, params);
        names_are_unique(name, [params]);
    }
}

#[test]
fn entries_are_documented_and_their_names_unique() {
    let mut names = BTreeSet::new();
    for e in entries() {
        assert!(names.insert((e.kind, e.name)), "two of the kind {} are called {}", e.kind, e.name);
        assert!(!e.summary.is_empty() && !e.source.is_empty(), "{} {} says nothing of itself", e.kind, e.name);
        // A preset may have a paper's name, capitals and all.
        let lower = |b: u8| b.is_ascii_lowercase() || (e.kind == "preset" && b.is_ascii_uppercase());
        assert!(e.name.bytes().all(|b| lower(b) || b.is_ascii_digit() || b"_-".contains(&b)), "{}", e.name);
    }
}

#[test]
fn presets_resolve() {
    for preset in PRESETS {
        let resolved = resolve(preset.name).unwrap_or_else(|why| panic!("{why}"));
        assert!(!resolve(preset.fallback).unwrap().protocol.explicit(), "{} falls back to explicit", preset.name);
        for (name, value) in preset.params {
            let lists = [resolved.protocol.params(), COMMON, resolved.recovery.params(), endpoint::PARAMS];
            let param = lists.into_iter().flatten().find(|p| p.name == *name);
            let param = param.unwrap_or_else(|| panic!("{} sets `{name}`, which is not declared", preset.name));
            assert!((param.min..=param.max).contains(value), "{} sets `{name}` out of bounds", preset.name);
        }
        for (name, value) in preset.router {
            let params = registry::controller(resolved.protocol).map_or(&[][..], |p| p.router_params());
            let param = params.iter().find(|p| p.name == *name);
            let param = param.unwrap_or_else(|| panic!("{} sets `{name}`, which no controller declares", preset.name));
            assert!((param.min..=param.max).contains(value), "{} sets `{name}` out of bounds", preset.name);
        }
    }
}
