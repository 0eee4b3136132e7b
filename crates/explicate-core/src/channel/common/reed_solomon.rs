//! Reed-Solomon coding of packets, as counts of wrong symbols (paper Y, section II-B).
//!
//! A block of `b` symbols carries `k` symbols of data; it is lost if more than `t = (b - k) / 2` of them are wrong,
//! at any position. No code is run: the distribution of the count decides. The *ideal* code is as long as the packet,
//! as in the paper's computation. Codes over bytes end at 255, so *rs255* cuts a packet into as few equal blocks as
//! possible, and all of them have to succeed. Parity takes time on the line: a packet has `k / rate` symbols there,
//! rounded to the nearest.
//!
//! | symbol | field | unit | value | where |
//! | --- | --- | --- | --- | --- |
//! | b, k | [`Block`] | symbols | | section II-B |
//! | t_C | [`Block::correctable`] | symbols | floor((b - k) / 2) | section II-B |
//! | s | `symbol_bits` | bits | 8 | section II-B |
//! | r = k / b | `rate` | | 1 to 0.5 | section III |
//! | Psi | [`independent_loss`] | probability | | equation 6 |
//!
//! Deviations:
//! 1. Equation 6 is printed with the limits of a sum over correct symbols and the exponents of one over wrong
//!    symbols, which gives nearly 1 on a good channel. Read: the sum over i wrong symbols from t_C + 1 to b of C(b,
//!    i) (1 - phi)^i phi^(b-i).
//! 2. Equation 6 assumes independent symbols, although the text has their correlation "captured in phi(s, s)", which
//!    only contains the correlation within a symbol. [`BlockTransitions`] is exact: it counts wrong symbols along the
//!    chain. At 1e-2 and above they agree within a fifth; where losses are rare, bad states decide, and equation 6 is
//!    too small by orders of magnitude.
//! 3. One block of one-byte symbols per 1040-byte packet does not exist (b would be 1156): hence `rs255`.
//! 4. Blocks follow one another; they are not interleaved.

use alloc::vec;
use alloc::vec::Vec;

use super::bit_chain::{Chain, Matrix, power, product};
use crate::params::choices;

choices! {
    /// Coding of packets: in blocks of at most 255 symbols, or in one block of any length.
    pub enum Code { Rs255 = "rs255", Ideal = "ideal" }
}

/// A block: symbols in all, and those that carry data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// b.
    pub symbols: u32,
    /// k.
    pub data: u32,
}

impl Block {
    /// The block for this amount of data at this rate.
    fn of(data: u32, rate: f64) -> Block {
        Block { symbols: libm::round(data as f64 / rate) as u32, data }
    }
    /// Maximum number of wrong symbols that it can correct.
    pub fn correctable(&self) -> u32 {
        (self.symbols - self.data) / 2
    }
}

/// Probabilities below this count as zero.
const NOTHING: f64 = 1e-40;

/// Longest block of a code over bytes.
const LONGEST: u32 = 255;

/// The blocks of a packet.
pub fn blocks(code: Code, rate: f64, bytes: u32, symbol_bits: u32) -> Vec<Block> {
    let data = (8 * bytes).div_ceil(symbol_bits);
    if code == Code::Ideal || rate >= 1.0 {
        return vec![Block::of(data, rate)];
    }
    let fits = |share: u32| Block::of(share, rate).symbols <= LONGEST;
    let most = (1..=LONGEST).rev().find(|&k| fits(k)).unwrap_or(1);
    let count = data.div_ceil(most);
    let (share, longer) = (data / count, data % count);
    (0..count).map(|i| Block::of(share + (i < longer) as u32, rate)).collect()
}

/// Bytes on the line of these blocks.
pub fn wire_bytes(blocks: &[Block], symbol_bits: u32) -> u32 {
    let symbols: u64 = blocks.iter().map(|b| b.symbols as u64).sum();
    (symbols * symbol_bits as u64).div_ceil(8) as u32
}

fn sum(a: &Matrix, b: &Matrix) -> Matrix {
    [0, 1].map(|i| [0, 1].map(|j| a[i][j] + b[i][j]))
}

/// Outcome of a packet, by the state before it: probabilities of being received and of being lost, by the state after
/// it.
pub struct BlockTransitions {
    /// By first and last state.
    pub received: Matrix,
    /// By first and last state.
    pub lost: Matrix,
}

impl BlockTransitions {
    /// Of a packet with these blocks, whose symbols are `steps` steps of the chain each.
    pub fn new(chain: &Chain, steps: u64, blocks: &[Block]) -> BlockTransitions {
        let mut transitions = BlockTransitions { received: [[1.0, 0.0], [0.0, 1.0]], lost: [[0.0; 2]; 2] };
        let mut known: Option<(Block, BlockTransitions, Matrix)> = None;
        for block in blocks {
            if known.as_ref().is_none_or(|(same, ..)| same != block) {
                let whole = power(chain.moves(), steps * block.symbols as u64);
                known = Some((*block, BlockTransitions::of_block(chain, steps, *block), whole));
            }
            let Some((_, next, whole)) = &known else { continue };
            // Losses are summed, and no number is subtracted from another, so rare losses keep their digits.
            transitions.lost = sum(&product(&transitions.lost, whole), &product(&transitions.received, &next.lost));
            transitions.received = product(&transitions.received, &next.received);
        }
        transitions
    }
    /// Of one block: `v_j <- v_j A + v_(j-1) E` over its symbols, where `v_j` has j wrong ones so far, A is a correct symbol and E a
    /// wrong one; more than t wrong ones are all one.
    fn of_block(chain: &Chain, steps: u64, block: Block) -> BlockTransitions {
        let (correct, any) = (power(chain.correct(), steps), power(chain.moves(), steps));
        let wrong = [0, 1].map(|i| [0, 1].map(|j| any[i][j] - correct[i][j]));
        let step = |v: &[f64; 2], m: &Matrix| [v[0] * m[0][0] + v[1] * m[1][0], v[0] * m[0][1] + v[1] * m[1][1]];
        let add = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        let most = block.correctable() as usize;
        let rows = [0, 1].map(|first| {
            let mut v = vec![[0.0; 2]; most + 1];
            v[0][first] = 1.0;
            let mut lost = [0.0; 2];
            // Only likely counts are followed: a band that widens with the square root of the length.
            let (mut low, mut high) = (0, 0);
            for _ in 0..block.symbols {
                lost = add(step(&lost, &any), step(&v[most], &wrong));
                high += (high < most && v[high][0] + v[high][1] > NOTHING) as usize;
                for j in (low.max(1)..=high).rev() {
                    v[j] = add(step(&v[j], &correct), step(&v[j - 1], &wrong));
                }
                v[0] = step(&v[0], &correct);
                while low < high && v[low][0] + v[low][1] < NOTHING {
                    v[low] = [0.0; 2];
                    low += 1;
                }
            }
            (v.into_iter().fold([0.0; 2], add), lost)
        });
        BlockTransitions { received: [rows[0].0, rows[1].0], lost: [rows[0].1, rows[1].1] }
    }
    /// Probability of a loss from these shares of the states.
    pub fn loss(&self, from: [f64; 2]) -> f64 {
        let row = |i: usize| from[i] * (self.lost[i][0] + self.lost[i][1]);
        row(0) + row(1)
    }
}

/// Equation 6, corrected: the loss of a block whose symbols are wrong independently, each correct with probability `correct`.
pub fn independent_loss(block: Block, correct: f64) -> f64 {
    let wrong = 1.0 - correct;
    if wrong <= 0.0 || correct <= 0.0 {
        return if wrong <= 0.0 { 0.0 } else { 1.0 };
    }
    let b = block.symbols as f64;
    let mut log = b * libm::log(correct);
    let odds = libm::log(wrong / correct);
    let mut sum = 0.0;
    for i in 0..=block.symbols {
        if i > block.correctable() {
            sum += libm::exp(log);
        }
        log += libm::log((b - i as f64).max(1e-300) / (i as f64 + 1.0)) + odds;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::symbol_error::symbol_error;
    use super::*;

    fn chain(antennas: (f64, u32), db: f64, beta: f64) -> Chain {
        let snr = libm::pow(10.0, db / 10.0) * antennas.0;
        let error = [snr, snr / 10.0].map(|snr| symbol_error(2, snr, antennas.1, 0.0));
        Chain { stay: [0.99875, beta], error }
    }

    const SISO: (f64, u32) = (1.0, 1);
    const MIMO: (f64, u32) = (0.5, 4);

    fn exact(chain: &Chain, blocks: &[Block]) -> f64 {
        BlockTransitions::new(chain, 8, blocks).loss(chain.stationary())
    }

    #[test]
    fn lengths() {
        let one = |rate, bytes| blocks(Code::Ideal, rate, bytes, 8)[0];
        assert_eq!(one(0.9, 1040), Block { symbols: 1156, data: 1040 });
        assert_eq!((one(0.9, 1040).correctable(), one(0.5, 40).symbols, one(0.8, 1040).symbols), (58, 80, 1300));
        let cut = blocks(Code::Rs255, 0.9, 1040, 8);
        assert_eq!((cut.len(), cut[0]), (5, Block { symbols: 231, data: 208 }));
        assert_eq!(wire_bytes(&cut, 8), 1155);
        assert_eq!(blocks(Code::Rs255, 0.5, 40, 8), [Block { symbols: 80, data: 40 }]);
        assert_eq!(blocks(Code::Rs255, 1.0, 1500, 8), [Block { symbols: 1500, data: 1500 }], "nothing to correct with");
        for bytes in 1..3000 {
            for rate in [0.1, 0.5, 0.777, 0.9, 0.99] {
                let cut = blocks(Code::Rs255, rate, bytes, 8);
                assert!(cut.iter().all(|b| b.symbols <= 255 && (b.symbols as f64 - b.data as f64 / rate).abs() <= 0.5));
                assert_eq!(cut.iter().map(|b| b.data).sum::<u32>(), bytes);
            }
        }
        assert_eq!(wire_bytes(&blocks(Code::Ideal, 0.5, 1000, 12), 12), 2001);
    }

    /// The reference's table, to the digits that it has, and the losses that follow to six.
    #[test]
    fn table_of_block_losses() {
        let b255 = |k| Block { symbols: 255, data: k };
        let rows = [
            (chain(SISO, 20.0, 0.875), b255(230), 3.740e-3, 3.498e-3),
            (chain(SISO, 20.0, 0.875), b255(204), 1.27e-10, 6.93e-11),
            (chain(MIMO, 10.0, 0.875), b255(230), 9.90e-8, 3.3e-11),
            (chain(SISO, 10.0, 0.875), Block { symbols: 80, data: 40 }, 4.03e-2, 3.81e-2),
            (chain(SISO, 20.0, 0.875), Block { symbols: 1156, data: 1040 }, 2.18e-9, 1.56e-9),
        ];
        for (chain, block, markov, binomial) in rows {
            let digits = |x: f64, of: f64, slack: f64| assert!((x / of - 1.0).abs() < slack, "{block:?}: {x:e} {of:e}");
            digits(exact(&chain, &[block]), markov, 4e-3);
            digits(independent_loss(block, chain.all_correct(8)), binomial, 1e-2);
            // All of it by another way: every count of wrong symbols, those beyond t summed up.
            digits(exact(&chain, &[block]), every_count(&chain, block), 1e-9);
        }
    }

    fn every_count(chain: &Chain, block: Block) -> f64 {
        let (a, p) = (power(chain.correct(), 8), power(chain.moves(), 8));
        let mut v = vec![[0.0; 2]; block.symbols as usize + 1];
        v[0] = chain.stationary();
        for _ in 0..block.symbols {
            for j in (0..v.len()).rev() {
                let from = if j > 0 { v[j - 1] } else { [0.0; 2] };
                let to = |s: usize| (0..2).map(|i| v[j][i] * a[i][s] + from[i] * (p[i][s] - a[i][s])).sum();
                v[j] = [to(0), to(1)];
            }
        }
        v[block.correctable() as usize + 1..].iter().map(|x| x[0] + x[1]).sum()
    }

    #[test]
    fn uncoded_packets() {
        // Antennas, SNR, and the losses of 1040 and 40 bytes that the reference gives, to half of their last digit.
        let rows = [
            (SISO, 20.0, (1.000, 5e-4), (0.574, 5e-4)),
            (SISO, 30.0, (0.896, 5e-4), (0.083, 5e-4)),
            ((1.0, 2), 20.0, (0.246, 5e-4), (0.0108, 5e-5)),
            ((0.5, 2), 30.0, (0.0121, 5e-5), (0.0005, 5e-5)),
            (MIMO, 20.0, (0.0095, 5e-5), (0.0004, 5e-5)),
        ];
        for (antennas, db, long, short) in rows {
            let chain = chain(antennas, db, 0.875);
            for (bytes, (expected, slack)) in [(1040, long), (40, short)] {
                let loss = exact(&chain, &blocks(Code::Ideal, 1.0, bytes, 8));
                assert!((loss - expected).abs() < slack, "{antennas:?}, {db} dB, {bytes} B: {loss}");
                assert!((loss - (1.0 - chain.all_correct(8 * bytes as u64))).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn several_blocks_are_lost_if_one_is() {
        let chain = chain(SISO, 14.0, 0.875);
        let one = Block { symbols: 100, data: 90 };
        let (single, five) = (exact(&chain, &[one]), exact(&chain, &[one; 5]));
        let independent = 1.0 - libm::pow(1.0 - single, 5.0);
        // 800 bits apart the chain has forgotten, but for the bits around the seams.
        assert!((five / independent - 1.0).abs() < 0.01, "{five} {independent}");
        let transitions = BlockTransitions::new(&chain, 8, &[one; 5]);
        let whole: f64 = transitions.received[0].iter().chain(&transitions.lost[0]).sum();
        assert!((whole - 1.0).abs() < 1e-12);
    }
}
