//! The channel of paper Y, section II-A: each symbol is in a good or a bad state, with an error rate per state
//! (Gilbert and Elliott). With BPSK a symbol is a bit.
//!
//! The chain *first moves and then sends* in the new state. Two matrices describe a run of symbols: `P` moves, `D`
//! keeps correct symbols. `(P D)^n` contains the probabilities that n symbols are all correct, by first and last
//! state.
//!
//! | symbol | field | unit | value | where |
//! | --- | --- | --- | --- | --- |
//! | gamma, beta | `stay` | probability of staying good, bad | 0.99875; 0.875 or 0.91667 | section III |
//! | epsilon_G, epsilon_B | `error` | probability | equation 5 | section II-A |
//! | g_ss, b_ss | [`Chain::stationary`] | probability | | equation 4 |
//! | phi(t, r, .) | [`Chain::phi`] | probability | | equations 1 to 3 |
//!
//! Deviations:
//! 1. Equations 2 and 3 lack a plus sign between their two lines: the r correct symbols of t are those of t - 1 and an
//!    error, *or* one less of t - 1 and none.
//! 2. Equation 4 gives phi(0, 0) and phi(1, 0) only. All of phi(t, 0) follow from the first lines of equations 2 and 3 alone,
//!    and phi(t, r) = 0 for r > t.

use alloc::vec;
use alloc::vec::Vec;

use crate::rng::{Rng, Runs};

/// Two by two, by first and last state; good is 0, bad is 1.
pub type Matrix = [[f64; 2]; 2];

/// The product of two matrices.
pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let cell = |i: usize, j: usize| a[i][0] * b[0][j] + a[i][1] * b[1][j];
    [[cell(0, 0), cell(0, 1)], [cell(1, 0), cell(1, 1)]]
}

/// A matrix to the power of `n`.
pub fn power(mut base: Matrix, mut n: u64) -> Matrix {
    let mut result = [[1.0, 0.0], [0.0, 1.0]];
    while n > 0 {
        if n & 1 == 1 {
            result = product(&result, &base);
        }
        base = product(&base, &base);
        n >>= 1;
    }
    result
}

/// The chain.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// Probability of staying in a state.
    pub stay: [f64; 2],
    /// Probability that a symbol is wrong in a state.
    pub error: [f64; 2],
}

impl Chain {
    /// P.
    pub fn moves(&self) -> Matrix {
        let [gamma, beta] = self.stay;
        [[gamma, 1.0 - gamma], [1.0 - beta, beta]]
    }
    /// P D: a move and a correct symbol.
    pub fn correct(&self) -> Matrix {
        self.moves().map(|row| [row[0] * (1.0 - self.error[0]), row[1] * (1.0 - self.error[1])])
    }
    /// Shares of the states in the long run (equation 4). A chain that leaves neither state is in each equally often.
    pub fn stationary(&self) -> [f64; 2] {
        let leave = [1.0 - self.stay[0], 1.0 - self.stay[1]];
        let sum = leave[0] + leave[1];
        if sum > 0.0 { [leave[1] / sum, leave[0] / sum] } else { [0.5, 0.5] }
    }
    /// Correlation of a symbol's state with the next one's: P's second eigenvalue.
    pub fn memory(&self) -> f64 {
        self.stay[0] + self.stay[1] - 1.0
    }
    /// Probability that n symbols in a row are correct, phi(n, n).
    pub fn all_correct(&self, n: u64) -> f64 {
        let (pi, run) = (self.stationary(), power(self.correct(), n));
        pi[0] * (run[0][0] + run[0][1]) + pi[1] * (run[1][0] + run[1][1])
    }
    /// phi(t, r, G) and phi(t, r, B) for r from 0 to t, by the recursion of equations 2 and 3: of t symbols r are correct and the
    /// chain ends in that state.
    pub fn phi(&self, t: usize) -> Vec<[f64; 2]> {
        let p = self.moves();
        let mut row = vec![self.stationary()];
        for _ in 0..t {
            // Moves before it evaluates the symbol.
            let moved = |[good, bad]: &[f64; 2]| [p[0][0] * good + p[1][0] * bad, p[0][1] * good + p[1][1] * bad];
            let mut next = vec![[0.0; 2]; row.len() + 1];
            for (r, from) in row.iter().enumerate() {
                for (state, share) in moved(from).into_iter().enumerate() {
                    next[r][state] += self.error[state] * share;
                    next[r + 1][state] += (1.0 - self.error[state]) * share;
                }
            }
            row = next;
        }
        row
    }
}

/// Walks along a chain from error to error: sojourns and runs between errors are drawn, not symbols.
pub struct Walk {
    /// Run lengths within a state: until it is left, until an error.
    leave: [Runs; 2],
    error: [Runs; 2],
    bad: bool,
    /// Remaining symbols in this state.
    stay: u64,
    rng: Rng,
}

impl Walk {
    /// A walk that begins with the chain anywhere.
    pub fn new(chain: Chain, mut rng: Rng) -> Walk {
        let bad = rng.uniform() < chain.stationary()[1];
        let leave = chain.stay.map(|stay| Runs::new(1.0 - stay));
        let stay = leave[bad as usize].draw(&mut rng);
        Walk { leave, error: chain.error.map(Runs::new), bad, stay, rng }
    }
    /// Number of correct symbols before the next wrong one, if that is among the next `limit`; otherwise those have
    /// passed.
    pub fn next_error(&mut self, limit: u64) -> Option<u64> {
        let mut passed = 0;
        loop {
            if self.stay == 0 {
                self.leave();
            }
            // Runs have no memory: a run that is cut short by a move or the end is drawn again.
            let run = self.error[self.bad as usize].draw(&mut self.rng);
            let left = self.stay.min(limit - passed);
            if run < left {
                self.stay -= run + 1;
                return Some(passed + run);
            }
            (passed, self.stay) = (passed + left, self.stay - left);
            if passed == limit {
                return None;
            }
        }
    }
    /// Number of wrong symbols among the next `symbols` symbols of a code, each of `steps` symbols of the chain.
    pub fn wrong_symbols(&mut self, symbols: u32, steps: u64) -> u32 {
        let (mut left, mut wrong) = (symbols as u64 * steps, 0);
        while left > 0
            && let Some(run) = self.next_error(left)
        {
            // Continues to the end of the hit symbol, in which further errors make no difference.
            left -= run + 1;
            let rest = left % steps;
            self.pass(rest);
            (left, wrong) = (left - rest, wrong + 1);
        }
        wrong
    }
    /// Skips symbols, right or wrong.
    fn pass(&mut self, mut steps: u64) {
        while steps > self.stay {
            steps -= self.stay;
            self.leave();
        }
        self.stay -= steps;
    }
    fn leave(&mut self) {
        self.bad = !self.bad;
        self.stay = 1u64.saturating_add(self.leave[self.bad as usize].draw(&mut self.rng));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: Chain = Chain { stay: [0.99875, 0.875], error: [2.481405e-3, 2.326871e-2] };

    #[test]
    fn phi_sums_to_one_and_to_the_mean() {
        for t in 0..=64 {
            let row = CHAIN.phi(t);
            let sum: f64 = row.iter().flatten().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{t}: {sum}");
            let mean: f64 = row.iter().enumerate().map(|(r, x)| r as f64 * (x[0] + x[1])).sum();
            let pi = CHAIN.stationary();
            let expected = t as f64 * (1.0 - pi[0] * CHAIN.error[0] - pi[1] * CHAIN.error[1]);
            assert!((mean - expected).abs() < 1e-11, "{t}: {mean} {expected}");
            let all = row[t][0] + row[t][1];
            assert!((all - CHAIN.all_correct(t as u64)).abs() < 1e-13, "phi(t, t) is pi (P D)^t 1");
        }
    }

    #[test]
    fn stationary_shares() {
        for (beta, good, bad) in [(0.875, 0.990099, 0.009901), (0.91667, 0.985221, 0.014779)] {
            let pi = Chain { stay: [0.99875, beta], error: [0.0; 2] }.stationary();
            assert!((pi[0] - good).abs() < 1e-6 && (pi[1] - bad).abs() < 1e-6, "{pi:?}");
        }
    }

    #[test]
    fn without_errors_in_the_good_state_all_come_from_the_bad_one() {
        let chain = Chain { stay: [0.99875, 0.875], error: [0.0, 0.3] };
        assert!((1.0 - chain.all_correct(1) - chain.stationary()[1] * 0.3).abs() < 1e-15);
        // Of a byte: bad somewhere within it, and hit there. By the recursion, against all 2^8 paths.
        let mut all = 0.0;
        for path in 0u32..256 {
            let bad = |i: u32| (path >> i & 1) as usize;
            let mut p = 1.0;
            for i in 0..8 {
                let p_move = if i == 0 { chain.stationary()[bad(0)] } else { chain.moves()[bad(i - 1)][bad(i)] };
                p *= p_move * (1.0 - chain.error[bad(i)]);
            }
            all += p;
        }
        assert!((chain.all_correct(8) - all).abs() < 1e-14);
    }
}
