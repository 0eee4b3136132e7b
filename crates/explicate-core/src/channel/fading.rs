//! The fading radio link of paper Y: bit errors in bursts, several antennas, Reed-Solomon coding of every packet.
//!
//! Bits pass a chain of good and bad states (`bit_chain`), whose error rates follow from modulation, antennas and the
//! two signal-to-noise ratios (`symbol_error`). Packets are coded, with separate rates for data and acknowledgements.
//! A packet occupies the line for all of its parity, and is lost if more symbols are wrong than its code corrects
//! (`reed_solomon`). Single bits are never drawn: for each packet length the joint distribution of "received or lost"
//! and the next state is computed once, and one draw decides a packet. Between packets the chain continues in time,
//! until its state is independent of the last one.
//!
//! | symbol | field | unit | value | where |
//! | --- | --- | --- | --- | --- |
//! | SNR_G | `snr` | dB, linear inside | 20 dB; swept in figures 3 to 6 | section III |
//! | SNR_G / SNR_B | `fade` | dB | 10 dB | section III |
//! | gamma | `gamma` | probability a symbol | 0.99875: bursts of 800 bits | section III |
//! | beta | `beta` | probability a symbol | 0.875 (8 bits) or 0.91667 (12) | section III |
//! | M | `points` | | 2, BPSK | section II-A |
//! | antennas | `antennas` | transmitting x receiving | 1x1 to 2x2 | section III |
//! | r = k / b | `fec_data`, `fec_ack` | | 1 to 0.7, and 0.5 | section III |
//! | s | `symbol_bits` | bits | 8 | section II-B |
//! | K | `rician_good`, `rician_bad` | linear | 0: Rayleigh | section II-A, by its reference 22 |
//!
//! Deviations:
//! 1. Errata of equations 2, 3 and 4 are in `bit_chain`, those of equation 6 in `reed_solomon`.
//! 2. The chain steps by modulation symbols, in which gamma and beta are defined; for BPSK these are bits, as in the
//!    paper. A symbol of the code contains an integer number of them.
//! 3. "The GOOD state is sometimes set to zero" errors is `good = "clear"`; a channel that is blocked in its bad
//!    state has no signal there, `bad = "blocked"`: (M - 1) / M of its symbols are wrong.
//! 4. Interference from the same channel adds to the noise: SNR becomes SNR / (1 + `interference`) in both states.
//! 5. A header in a packet that cannot be corrected is not used: the whole packet is lost.
//! 6. By default controllers are configured with the rate times `fec_data`.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::common::bit_chain::{Chain, Walk};
use super::common::reed_solomon::{Block, BlockTransitions, Code, blocks, independent_loss, wire_bytes};
use super::common::symbol_error::symbol_error;
use crate::api::Probe;
use crate::channel::{Channel, ChannelInit, ChannelKind, ChannelStages, Coding};
use crate::params::{Decibels, Fraction, Info, Number, Values, choices, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// The fading radio link.
pub struct Fading;

const A: &str = "paper Y section II-A";
const B: &str = "paper Y section II-B";
const III: &str = "paper Y section III";

choices! {
    /// Transmitting x receiving antennas.
    enum Antennas { OneOne = "1x1", TwoOne = "2x1", OneTwo = "1x2", TwoTwo = "2x2" }
}

choices! {
    /// The good state.
    enum Good { Fading = "fading", Clear = "clear" }
}

choices! {
    /// The bad state.
    enum Bad { Fading = "fading", Blocked = "blocked" }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// Mean signal-to-noise ratio in the good state.
        snr: Decibels = 20.0, in -40.0..=100.0, III;
        /// Reduction of the ratio in the bad state.
        fade: Decibels = 10.0, in 0.0..=100.0, III;
        /// Transmitting x receiving antennas.
        antennas: Antennas = Antennas::OneOne, III;
        /// Probability of staying good from symbol to symbol.
        gamma: Fraction = 0.99875, in 0.0..=1.0, III;
        /// Probability of staying bad from symbol to symbol.
        beta: Fraction = 0.875, in 0.0..=1.0, III;
        /// Blocks of at most 255 symbols, or a single block per packet.
        code: Code = Code::Rs255, B;
        /// Code rate of data packets; 1 is no coding.
        fec_data: Fraction = 0.9, in 0.25..=1.0, III;
        /// Code rate of acknowledgements.
        fec_ack: Fraction = 0.5, in 0.25..=1.0, III;
        /// Bits of a symbol of the code (s); rs255 has 8.
        symbol_bits: Number = 8.0, in 1.0..=32.0, B;
        /// Points of the constellation (M), a power of two.
        points: Number = 2.0, in 2.0..=256.0, A;
        /// `clear`: no errors in the good state.
        good: Good = Good::Fading, A;
        /// `blocked`: no signal in the bad state.
        bad: Bad = Bad::Fading, A;
        /// Ratio of direct to scattered power in the good state; 0 is Rayleigh.
        rician_good: Number = 0.0, in 0.0..=1e6, A;
        /// The same ratio in the bad state.
        rician_bad: Number = 0.0, in 0.0..=1e6, A;
        /// Ratio of the power of interferers to that of the noise.
        interference: Number = 0.0, in 0.0..=1e9, A;
    }
}

/// Interpretation of the parameters.
#[derive(Clone)]
struct Radio {
    chain: Chain,
    code: Code,
    /// Code rates of data and of acknowledgements.
    rates: [f64; 2],
    symbol_bits: u32,
    /// Bits of a modulation symbol, and number of modulation symbols per symbol of the code.
    bits_per_step: u32,
    steps: u64,
}

impl Radio {
    fn new(values: &Values) -> Radio {
        let params = Params::of(values);
        let points = params.points as u32;
        let (share, branches) = match params.antennas {
            Antennas::OneOne => (1.0, 1),
            Antennas::TwoOne => (0.5, 2),
            Antennas::OneTwo => (1.0, 2),
            Antennas::TwoTwo => (0.5, 4),
        };
        let linear = |decibels: f64| libm::pow(10.0, decibels / 10.0) * share / (1.0 + params.interference);
        let faded = |snr: f64, rician: f64| symbol_error(points, linear(snr), branches, rician);
        let good = match params.good {
            Good::Clear => 0.0,
            Good::Fading => faded(params.snr, params.rician_good),
        };
        let bad = match params.bad {
            Bad::Blocked => 1.0 - 1.0 / points as f64,
            Bad::Fading => faded(params.snr - params.fade, params.rician_bad),
        };
        let (symbol_bits, bits_per_step) = (params.symbol_bits as u32, points.ilog2());
        Radio {
            chain: Chain { stay: [params.gamma, params.beta], error: [good, bad] },
            code: params.code,
            rates: [params.fec_data, params.fec_ack],
            symbol_bits,
            bits_per_step,
            steps: (symbol_bits / bits_per_step).max(1) as u64,
        }
    }
    fn blocks(&self, bytes: u32, ack: bool) -> Vec<Block> {
        blocks(self.code, self.rates[ack as usize], bytes, self.symbol_bits)
    }
}

impl ChannelKind for Fading {
    const INFO: Info = Info {
        name: "fading",
        summary: "A fading radio link: bit errors in bursts, several antennas, Reed-Solomon coding of every packet",
        source: "paper Y section II",
        params: Params::PARAMS,
    };

    fn check(&self, values: &Values) -> Result<(), String> {
        let params = Params::of(values);
        let (bits, points) = (params.symbol_bits, params.points);
        if bits % 1.0 != 0.0 || points % 1.0 != 0.0 || !(points as u32).is_power_of_two() {
            return Err(format!("`points` ({points}) is a power of two, `symbol_bits` ({bits}) a whole number"));
        }
        let step = (points as u32).ilog2();
        if !(bits as u32).is_multiple_of(step) {
            return Err(format!("`symbol_bits` has to be a multiple of the {step} bits that {points} points carry"));
        }
        if params.code == Code::Rs255 && bits != 8.0 {
            return Err(
                "blocks of 255 are of one-byte symbols; write `code = \"ideal\"` for other `symbol_bits`".to_string()
            );
        }
        if params.gamma == 1.0 && params.beta == 1.0 {
            return Err("with `gamma` and `beta` both 1 the channel never leaves a state; lower one".to_string());
        }
        Ok(())
    }
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let radio = Radio::new(init.values);
        let coding = Parity { radio: radio.clone(), known: Vec::new() };
        let fades = Fades::new(radio, init.rate.0 as f64, init.rng);
        ChannelStages { coding: Some(Box::new(coding)), on_air: Some(Box::new(fades)), ..ChannelStages::default() }
    }
    fn predict(&self, values: &Values, packet: &Packet, put: Probe<'_>) {
        let radio = Radio::new(values);
        let (chain, pi) = (&radio.chain, radio.chain.stationary());
        let blocks = radio.blocks(packet.ip_len as u32, packet.is_ack());
        let correct = chain.all_correct(radio.steps);
        put("symbol_error_good", chain.error[0]);
        put("symbol_error_bad", chain.error[1]);
        put("code_symbol_error", 1.0 - correct);
        let symbols: u32 = blocks.iter().map(|b| b.data).sum();
        put("lost_symbols", symbols as f64 * (1.0 - correct));
        if radio.symbol_bits == 8 {
            put("lost_bytes", packet.ip_len as f64 * (1.0 - correct));
        }
        put("packet_loss", BlockTransitions::new(chain, radio.steps, &blocks).loss(pi));
        let kept = blocks.iter().map(|b| 1.0 - independent_loss(*b, correct));
        put("packet_loss_independent", 1.0 - kept.product::<f64>());
        put("wire_bytes", wire_bytes(&blocks, radio.symbol_bits) as f64);
    }
    /// Also counts the wrong symbols of the code among the data of packets, before correction. With 8 bits in a symbol
    /// these are bytes: figure 1.
    fn observe(&self, init: ChannelInit<'_>, packet: &Packet, trials: u64, put: Probe<'_>) {
        let radio = Radio::new(init.values);
        let blocks = radio.blocks(packet.ip_len as u32, packet.is_ack());
        let mut walk = Walk::new(radio.chain, init.rng);
        let (mut losses, mut symbols) = (Tally::default(), Tally::default());
        for _ in 0..trials {
            let (mut lost, mut wrong) = (false, 0);
            for b in &blocks {
                let in_data = walk.wrong_symbols(b.data, radio.steps);
                let in_parity = walk.wrong_symbols(b.symbols - b.data, radio.steps);
                lost |= in_data + in_parity > b.correctable();
                wrong += in_data;
            }
            losses.add(lost as u32);
            symbols.add(wrong);
        }
        losses.report("packet_loss", "packet_loss_error", put);
        symbols.report("lost_symbols", "lost_symbols_error", put);
        if radio.symbol_bits == 8 {
            symbols.report("lost_bytes", "lost_bytes_error", put);
        }
    }
}

/// The parity of each packet length.
struct Parity {
    radio: Radio,
    /// Bytes on the line by twice the length, plus one for acknowledgements; 0 is not computed yet.
    known: Vec<u32>,
}

fn key(packet: &Packet) -> usize {
    2 * packet.ip_len as usize + packet.is_ack() as usize
}

impl Coding for Parity {
    fn wire_bytes(&mut self, packet: &Packet, bytes: u32) -> u32 {
        let key = key(packet);
        match self.known.get(key) {
            Some(&wire) if wire > 0 => wire,
            _ => {
                let wire = wire_bytes(&self.radio.blocks(bytes, packet.is_ack()), self.radio.symbol_bits);
                self.known.resize(self.known.len().max(key + 1), 0);
                self.known[key] = wire;
                wire
            }
        }
    }
    fn efficiency(&self) -> f64 {
        self.radio.rates[0]
    }
}

/// Rows of [`Odds`]: the states, and "any", for a chain without memory of its state.
const ANY: usize = 2;

/// The outcome of one draw for packets of one length, by the state before: probabilities of being received and ending
/// in the good state; of being received; and of either of these or being lost and ending in the good state.
struct Odds {
    rows: [[f64; 3]; 3],
    /// Steps of the chain during the packet.
    steps: f64,
}

struct Fades {
    radio: Radio,
    pi: [f64; 2],
    /// Steps after which the chain is independent of its state.
    forgets: f64,
    /// Steps of the chain per nanosecond.
    pace: f64,
    odds: Vec<Odds>,
    /// Index in `odds` plus one, by [`key`]; 0 is not computed yet.
    known: Vec<u32>,
    state: usize,
    /// When the last packet left.
    last: Time,
    rng: Rng,
}

impl Fades {
    fn new(radio: Radio, rate: f64, rng: Rng) -> Fades {
        let pace = rate / radio.bits_per_step as f64 * 1e-9;
        let memory = radio.chain.memory().abs();
        // Less than the resolution of a draw.
        let forgets = if memory > 0.0 { libm::log(1e-17) / libm::log(memory) } else { 1.0 };
        let pi = radio.chain.stationary();
        Fades { radio, pi, forgets, pace, odds: Vec::new(), known: Vec::new(), state: ANY, last: Time::ZERO, rng }
    }

    #[cold]
    fn learn(&mut self, packet: &Packet) -> usize {
        let blocks = self.radio.blocks(packet.ip_len as u32, packet.is_ack());
        let BlockTransitions { received, lost } = BlockTransitions::new(&self.radio.chain, self.radio.steps, &blocks);
        let row = |s: usize| [received[s][0], received[s][0] + received[s][1], 1.0 - lost[s][1]];
        let (good, bad) = (row(0), row(1));
        let any = [0, 1, 2].map(|i| self.pi[0] * good[i] + self.pi[1] * bad[i]);
        let symbols: f64 = blocks.iter().map(|b| b.symbols as f64).sum();
        self.odds.push(Odds { rows: [good, bad, any], steps: symbols * self.radio.steps as f64 });
        let key = key(packet);
        self.known.resize(self.known.len().max(key + 1), 0);
        self.known[key] = self.odds.len() as u32;
        self.odds.len() - 1
    }

    /// The chain moves by this number of steps.
    #[cold]
    fn idle(&mut self, steps: f64) {
        if steps >= self.forgets || self.state == ANY {
            self.state = ANY;
            return;
        }
        let now = if self.state == 0 { 1.0 } else { 0.0 };
        let good = self.pi[0] + (now - self.pi[0]) * libm::pow(self.radio.chain.memory(), libm::floor(steps));
        self.state = (self.rng.uniform() >= good) as usize;
    }
}

impl Channel for Fades {
    fn loses(&mut self, at: Time, packet: &Packet, _wire_bytes: u32) -> bool {
        let index = match self.known.get(key(packet)) {
            Some(&place) if place > 0 => place as usize - 1,
            _ => self.learn(packet),
        };
        let idle = at.since(self.last).0 as f64 * self.pace - self.odds[index].steps;
        self.last = at;
        // Times are whole nanoseconds: less than one step is the rounding between consecutive packets.
        if idle >= 1.0 {
            self.idle(idle);
        }
        let row = &self.odds[index].rows[self.state];
        let draw = self.rng.uniform();
        let lost = draw >= row[1];
        self.state = (draw >= if lost { row[2] } else { row[0] }) as usize;
        lost
    }
}

/// Mean and standard error of what was counted.
#[derive(Default)]
struct Tally {
    trials: f64,
    sum: f64,
    squares: f64,
}

impl Tally {
    fn add(&mut self, count: u32) {
        let x = count as f64;
        (self.trials, self.sum, self.squares) = (self.trials + 1.0, self.sum + x, self.squares + x * x);
    }
    fn report(&self, mean: &'static str, error: &'static str, put: Probe<'_>) {
        let x = self.sum / self.trials;
        put(mean, x);
        put(error, libm::sqrt((self.squares / self.trials - x * x).max(0.0) / self.trials));
    }
}
