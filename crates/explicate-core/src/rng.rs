//! The generator of every random draw: xoshiro256++ (Blackman and Vigna), one stream for each source of randomness.
//!
//! A stream is seeded from the run's seed and the *name* that the user gave to its link or flow, so an additional
//! flow does not change the draws of any other source.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    s: [u64; 4],
}

/// Increment of the state of SplitMix64 per number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(STEP);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The initial state of the stream `name`. The name is hashed by FNV-1a (64 bits).
fn named(seed: u64, name: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in name.bytes() {
        hash = (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut state = seed;
    splitmix(&mut state) ^ hash
}

/// The key of `name` in the run with this seed, for [`drawn`].
pub fn key(seed: u64, name: &str) -> u64 {
    splitmix(&mut named(seed, name))
}

/// 64 random bits for a key and a number: draws without a state. Consecutive numbers of one key give SplitMix64's
/// sequence.
#[inline]
pub fn drawn(key: u64, number: u64) -> u64 {
    splitmix(&mut key.wrapping_add(number.wrapping_mul(STEP)))
}

impl Rng {
    /// The stream of `name` in the run with this seed.
    pub fn stream(seed: u64, name: &str) -> Rng {
        let mut mixed = named(seed, name);
        Rng { s: core::array::from_fn(|_| splitmix(&mut mixed)) }
    }
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }
    /// Uniform on [0, 1), 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }
    /// Standard normal (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.uniform())
    }
    /// Normal with this mean and a standard deviation of `spread` times it, drawn again below zero and beyond twice the mean,
    /// which leaves the mean as it is.
    pub fn bounded_normal(&mut self, mean: f64, spread: f64) -> f64 {
        loop {
            let share = 1.0 + spread * self.normal();
            if (0.0..=2.0).contains(&share) {
                return mean * share;
            }
        }
    }
    /// Pareto with the given mean; `shape` is greater than 1.
    pub fn pareto(&mut self, mean: f64, shape: f64) -> f64 {
        // Inverse of 1 - (scale / x)^shape, with scale = mean (shape - 1) / shape.
        mean * (shape - 1.0) / shape / power(1.0 - self.uniform(), 1.0 / shape)
    }
    /// Number of trials with failure probability `p` that succeed before the next failure; `u64::MAX` for p <= 0, 0
    /// for p >= 1.
    pub fn run_length(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            return u64::MAX;
        }
        if p >= 1.0 {
            return 0;
        }
        (libm::log(1.0 - self.uniform()) / libm::log1p(-p)) as u64
    }
}

/// [`Rng::run_length`] for a fixed probability: saves one logarithm per draw.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    p: f64,
    scale: f64,
}

impl Runs {
    /// Trials that fail with this probability.
    pub fn new(p: f64) -> Runs {
        Runs { p, scale: 1.0 / libm::log1p(-p.clamp(0.0, 1.0)) }
    }
    /// One run length.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        if self.p <= 0.0 {
            return u64::MAX;
        }
        (libm::log(1.0 - rng.uniform()) * self.scale) as u64
    }
}

/// `base` to the power of `exponent`, the same on every machine.
pub fn power(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_name_and_repeat() {
        let draw = |seed, name| Rng::stream(seed, name).next_u64();
        assert_eq!(draw(1, "r1->r2"), draw(1, "r1->r2"));
        assert_ne!(draw(1, "r1->r2"), draw(1, "r2->r1"));
        assert_ne!(draw(1, "r1->r2"), draw(2, "r1->r2"));
    }

    /// Uniform, and unlike the preceding numbers and those of another key.
    #[test]
    fn draws_without_a_state() {
        let n = 200_000u64;
        let centred = |x: u64| (x >> 32) as f64 / 4_294_967_296.0 - 0.5;
        for (key, other) in [(1, 2), (0x1234_5678, 0x1234_5679), (7, 0x8000_0007), (0, u32::MAX as u64)] {
            let draws = |key: u64| (0..n).map(move |i| centred(drawn(key << 32, i)));
            let mean = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>() / n as f64;
            assert!(mean(&mut draws(key)).abs() < 0.003, "{key}");
            assert!((mean(&mut draws(key).map(|x| x * x)) - 1.0 / 12.0).abs() < 0.001, "{key}");
            for lag in [1, 2, 3, 10] {
                let product = mean(&mut draws(key).zip(draws(key).skip(lag)).map(|(a, b)| a * b));
                assert!(product.abs() < 0.001, "{key}, lag {lag}: {product}");
            }
            for lag in [0, 1] {
                let product = mean(&mut draws(key).zip(draws(other).skip(lag)).map(|(a, b)| a * b));
                assert!(product.abs() < 0.001, "{key} and {other}, lag {lag}: {product}");
            }
        }
        assert_ne!(drawn(1, 1), drawn(1, 2));
        assert_ne!(drawn(1, 1), drawn(2, 1));
    }

    #[test]
    fn moments() {
        let mut rng = Rng::stream(7, "moments");
        let n = 200_000;
        let mean = (0..n).map(|_| rng.uniform()).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.003, "{mean}");
        let mean = (0..n).map(|_| rng.exponential(3.0)).sum::<f64>() / n as f64;
        assert!((mean - 3.0).abs() < 0.03, "{mean}");
        let draws: std::vec::Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.007 && (square - 1.0).abs() < 0.01, "{mean} {square}");
        let mean = (0..n).map(|_| rng.pareto(5.0, 3.0)).sum::<f64>() / n as f64;
        assert!((mean - 5.0).abs() < 0.04, "{mean}");
        let mean = (0..n).map(|_| rng.run_length(0.1) as f64).sum::<f64>() / n as f64;
        assert!((mean - 9.0).abs() < 0.1, "{mean}");
        assert_eq!((rng.run_length(0.0), rng.run_length(1.0)), (u64::MAX, 0));
        let mean = (0..n).map(|_| Runs::new(0.1).draw(&mut rng) as f64).sum::<f64>() / n as f64;
        assert!((mean - 9.0).abs() < 0.1, "{mean}");
        assert_eq!((Runs::new(0.0).draw(&mut rng), Runs::new(1.0).draw(&mut rng)), (u64::MAX, 0));
    }
}
