//! Symbol error rate of a fading radio link: phase shift keying with several antennas (paper Y, equation 5).
//!
//! The receiver combines `N` branches that fade independently (maximum ratio combining). Alamouti's code with two
//! transmitting antennas makes twice as many branches of half the power each, so 2x1 is two branches at SNR/2 and 2x2 four.
//! Each branch is a Rayleigh channel, or a Rician one with a direct path `K` times as strong as the scattered rest.
//!
//! | symbol | argument | unit | value | where |
//! | --- | --- | --- | --- | --- |
//! | M | `points` | | 2 (BPSK) | section II-A |
//! | SNR | `snr` | mean of a branch, linear | | equation 5 |
//! | N | `branches` | | 1, 2, 4 | equation 5 |
//! | K | `rician` | linear | 0 is Rayleigh | section II-A, by its reference 22 |
//! | theta | `theta` | | SNR sin²(pi / M) | equation 5 |
//!
//! Deviations:
//! 1. Equation 5 subtracts numbers that are nearly equal where errors are rare: at 1e-13 no digit is left. It is the
//!    closed form of an integral over a positive function, `1/pi ∫ (1 + theta / sin² t)^-N dt` from 0 to `(M-1) pi /
//!    M`, and this integral is evaluated here. The tests compare the two. Nothing in equation 5 is misprinted.
//! 2. The paper uses equation 5 for lines of sight too and refers to its reference 22 for Rician fading. Here the
//!    Rician form of the same integral is available: the moment generating function of a Rician branch in place of
//!    the Rayleigh one.

use core::f64::consts::PI;

/// Symbol error rate.
pub fn symbol_error(points: u32, snr: f64, branches: u32, rician: f64) -> f64 {
    let m = points as f64;
    let edge = libm::sin(PI / m);
    let theta = snr * edge * edge;
    let k1 = 1.0 + rician;
    let branch = |t: f64| {
        let s = libm::sin(t);
        let faded = k1 * s * s;
        faded / (faded + theta) * libm::exp(-rician * theta / (faded + theta))
    };
    let f = |t: f64| (0..branches).fold(1.0, |product, _| product * branch(t));
    // Symmetric about pi / 2, so the part beyond it is the same integral from pi / M.
    (integral(&f, 0.0) + integral(&f, PI / m)) / PI
}

/// Points of a Gauss-Legendre rule.
const NODES: usize = 24;
/// Halvings of the interval towards zero, where the integrand bends.
const HALVINGS: i32 = 24;

/// The integral from `from` to pi / 2.
fn integral(f: &impl Fn(f64) -> f64, from: f64) -> f64 {
    let mut sum = 0.0;
    let mut to = PI / 2.0;
    for i in 1..=HALVINGS {
        let next = if i == HALVINGS { from } else { from.max(PI / 2.0 * libm::pow(0.5, i as f64)) };
        if next < to {
            sum += panel(f, next, to);
        }
        to = next;
    }
    sum
}

/// Gauss-Legendre over one panel: nodes are roots of the Legendre polynomial, found by Newton's method.
fn panel(f: &impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    let (middle, half) = ((from + to) / 2.0, (to - from) / 2.0);
    let n = NODES as f64;
    let mut sum = 0.0;
    for i in 0..NODES / 2 {
        let mut x = libm::cos(PI * (i as f64 + 0.75) / (n + 0.5));
        let mut slope = 1.0;
        for _ in 0..8 {
            let (mut p, mut before) = (1.0, 0.0);
            for j in 0..NODES {
                let j = j as f64;
                (p, before) = (((2.0 * j + 1.0) * x * p - j * before) / (j + 1.0), p);
            }
            slope = n * (x * p - before) / (x * x - 1.0);
            x -= p / slope;
        }
        let weight = 2.0 / ((1.0 - x * x) * slope * slope);
        sum += weight * (f(middle - half * x) + f(middle + half * x));
    }
    sum * half
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decibels(db: f64) -> f64 {
        libm::pow(10.0, db / 10.0)
    }

    fn choose(n: i32, k: i32) -> f64 {
        (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64)
    }

    /// Equation 5 as printed. `xi` is zero for BPSK, where the cotangent is.
    fn equation_5(points: u32, snr: f64, n: i32) -> f64 {
        let m = points as f64;
        let theta = snr * libm::pow(libm::sin(PI / m), 2.0);
        let mu = libm::sqrt(theta / (1.0 + theta));
        let xi = if points == 2 { 0.0 } else { mu / libm::tan(PI / m) };
        let a = libm::atan(xi);
        let first: f64 = (0..n).map(|j| choose(2 * j, j) / libm::pow(4.0 * (1.0 + theta), j as f64)).sum();
        let mut second = 0.0;
        for j in 1..n {
            for i in 1..=j {
                let sigma = choose(2 * j, j)
                    / (choose(2 * (j - i), j - i) * libm::pow(4.0, i as f64) * (2 * (j - i) + 1) as f64);
                second += sigma / libm::pow(1.0 + theta, j as f64) * libm::pow(libm::cos(a), (2 * (j - i) + 1) as f64);
            }
        }
        (m - 1.0) / m - mu / PI * ((PI / 2.0 + a) * first + libm::sin(a) * second)
    }

    #[test]
    fn equation_5_is_this_integral() {
        for points in [2, 4, 8, 16] {
            for n in [1, 2, 4] {
                for db in [-10.0, -3.0, 0.0, 7.0, 10.0, 15.0] {
                    let (expected, found) =
                        (equation_5(points, decibels(db), n), symbol_error(points, decibels(db), n as u32, 0.0));
                    assert!((found - expected).abs() < 1e-13, "M {points}, N {n}, {db} dB: {found} {expected}");
                }
            }
        }
    }

    /// The table of the reference, to its seven digits.
    #[test]
    fn table_of_symbol_errors() {
        let table = [
            (0.0, [1.464466e-1, 5.805826e-2, 1.110195e-2, 3.650998e-1, 4.775037e-1]),
            (10.0, [2.326871e-2, 1.599101e-3, 9.698281e-6, 7.857306e-2, 7.251476e-2]),
            (20.0, [2.481405e-3, 1.844155e-5, 1.319076e-9, 8.949634e-3, 1.563473e-3]),
        ];
        let columns = [(2, 1), (2, 2), (2, 4), (4, 1), (8, 2)];
        for (db, row) in table {
            for ((points, n), expected) in columns.into_iter().zip(row) {
                let found = symbol_error(points, decibels(db), n, 0.0);
                assert!((found / expected - 1.0).abs() < 5e-7, "M {points}, N {n}, {db} dB: {found:e} {expected:e}");
            }
        }
    }

    /// Where equation 5 has lost its digits: BPSK with N branches is ((1-mu)/2)^N sum C(N-1+k, k) ((1+mu)/2)^k.
    #[test]
    fn rare_errors_keep_their_digits() {
        for db in [-20.0, 0.0, 30.0, 40.0, 60.0] {
            let s = decibels(db);
            let mu = libm::sqrt(s / (1.0 + s));
            let low = 1.0 / (1.0 + s) / (1.0 + mu) / 2.0;
            for n in [1, 2, 4] {
                let sum: f64 = (0..n).map(|k| choose(n - 1 + k, k) * libm::pow((1.0 + mu) / 2.0, k as f64)).sum();
                let expected = libm::pow(low, n as f64) * sum;
                let found = symbol_error(2, s, n as u32, 0.0);
                assert!((found / expected - 1.0).abs() < 1e-11, "N {n}, {db} dB: {found:e} {expected:e}");
            }
        }
    }

    #[test]
    fn antennas_in_order_and_alamouti_three_decibels_off() {
        for half_decibels in -10..80 {
            let snr = decibels(half_decibels as f64 / 2.0);
            let e = [(1.0, 1), (0.5, 2), (1.0, 2), (0.5, 4)].map(|(share, n)| symbol_error(2, snr * share, n, 0.0));
            assert!(e[0] > e[1] && e[1] > e[2] && e[2] > e[3], "{e:?}");
            let shifted = symbol_error(2, snr * decibels(10.0 * libm::log10(2.0)) / 2.0, 2, 0.0);
            assert!((shifted / e[2] - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_direct_path_helps() {
        for db in [0.0, 10.0, 20.0] {
            let e = [0.0, 0.5, 1.0, 5.0, 20.0, 1e3].map(|k| symbol_error(2, decibels(db), 1, k));
            assert!(e.windows(2).all(|w| w[1] < w[0]), "{e:?}");
        }
        // Without any fading BPSK has erfc(sqrt(SNR)) / 2 errors.
        let found = symbol_error(2, decibels(5.0), 1, 1e7);
        let expected = libm::erfc(libm::sqrt(decibels(5.0))) / 2.0;
        assert!((found / expected - 1.0).abs() < 1e-5, "{found:e} {expected:e}");
    }
}
