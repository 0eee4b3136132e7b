//! Random operations, and a hash of what they cause.

use explicate_core::agent::{Address, PathOracle};
use explicate_core::params::{Param, Unit, Values};
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Ecn, Format, Packet};

/// Number of operations in a run.
pub const OPERATIONS: u32 = 20_000;
/// Number of runs, each with another seed.
pub const SEEDS: u64 = 8;

/// Folds every output of a run into one number (FNV-1a), so that two runs can be compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hash(u64);

impl Hash {
    /// Of no output.
    #[expect(clippy::new_without_default, reason = "the start of a fold is no default")]
    pub fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
    /// Adds an output.
    pub fn put(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    /// Adds an output, bit by bit.
    pub fn put_f64(&mut self, value: f64) {
        self.put(value.to_bits());
    }
}

/// Random operations and inputs.
pub struct Dice(pub Rng);

impl Dice {
    /// A stream of this seed and name.
    pub fn new(seed: u64, name: &str) -> Dice {
        Dice(Rng::stream(seed, name))
    }
    /// An integer below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }
    /// An integer below `n`.
    pub fn number(&mut self, n: u32) -> u32 {
        self.below(n as u64) as u32
    }
    /// True with probability `p`.
    pub fn flip(&mut self, p: f64) -> bool {
        self.0.uniform() < p
    }
    /// An exponentially distributed time with this mean, s.
    pub fn span(&mut self, mean: f64) -> Time {
        Time::from_secs_f64(self.0.exponential(mean))
    }
    /// Bytes that may be a congestion header, none, or nonsense.
    pub fn congestion(&mut self) -> Congestion {
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
    pub fn values(&mut self, params: &[&[Param]]) -> Values {
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
    /// A packet with arbitrary contents; some have a congestion header, some are acknowledgements.
    pub fn packet(&mut self) -> Packet {
        let mut packet =
            Packet { ip_len: 40 + self.number(1461) as u16, congestion: self.congestion(), ..Packet::EMPTY };
        if self.flip(0.3) {
            packet.set_ecn(Ecn::Capable0);
        }
        packet.transport.set_flow(self.number(20));
        packet.transport.set_segment(self.number(1000));
        if self.flip(0.2) {
            packet.transport.set_flags(self.number(256) as u8);
        }
        packet.transport.set_code(self.number(4) as u8);
        packet
    }
}

/// Runs `case` for some seeds, each twice: the outputs have to repeat.
pub fn repeats(name: &str, seeds: u64, case: impl Fn(&mut Dice) -> Hash) {
    for seed in 0..seeds {
        let run = || case(&mut Dice::new(seed, name));
        assert_eq!(run(), run(), "{name} does not repeat with seed {seed}");
    }
}

/// A path whose links change with every question.
pub struct RandomPath<'a>(pub &'a mut Dice);

impl PathOracle for RandomPath<'_> {
    fn links(&mut self, _: Address, _: Address, _: Time, tell: &mut dyn FnMut(u32, f64, f64)) {
        for _ in 0..self.0.below(4) {
            tell(self.0.number(3), self.0.below(1 << 40) as f64, self.0.below(1 << 40) as f64);
        }
    }
}
