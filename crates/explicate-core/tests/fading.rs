//! The fading link against the models that it replaces: channels stepped bit by bit, a real Reed-Solomon codec, and the
//! paper's figure 1.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use explicate_core::channel::common::bit_chain::{Chain, Walk};
use explicate_core::channel::common::reed_solomon::{Block, BlockTransitions};
use explicate_core::channel::{AnyChannelKind, ChannelInit};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::testing;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, flag};

fn fading() -> &'static AnyChannelKind {
    registry::channel("fading").expect("registered")
}

fn values(given: &[(&str, f64)]) -> Values {
    let values = testing::values(&[fading().params()], given);
    assert_eq!(fading().check(&values), Ok(()));
    values
}

fn packet(bytes: u16, ack: bool) -> Packet {
    let mut packet = Packet { ip_len: bytes, ..Packet::EMPTY };
    packet.transport.set_flags(if ack { flag::ACK } else { 0 });
    packet
}

fn rng(name: &str) -> Rng {
    Rng::stream(1, name)
}

/// What a kind predicts or observes, by name.
type Told = Box<dyn Fn(&str) -> f64>;

fn told(tell: impl FnOnce(&mut dyn FnMut(&'static str, f64))) -> Told {
    let mut all = Vec::new();
    tell(&mut |name, value| all.push((name, value)));
    Box::new(move |name| all.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name}")).1)
}

fn predicted(values: &Values, packet: &Packet) -> Told {
    told(|put| fading().predict(values, packet, put))
}

/// Figure 1: a million packets of three lengths, wrong bytes and lost blocks, within three standard errors.
#[test]
fn figure_1() {
    const TRIALS: u64 = 1_000_000;
    for (antennas, snr, code_rate) in [(0.0, 17.0, 0.9), (3.0, 6.0, 0.95)] {
        for bytes in [40, 260, 1040] {
            let v = values(&[("snr", snr), ("antennas", antennas), ("code", 1.0), ("fec_data", code_rate)]);
            let packet = packet(bytes, false);
            let expected = predicted(&v, &packet);
            let init = ChannelInit { values: &v, rate: Rate::mbps(54), rng: rng(&format!("{antennas} {bytes}")) };
            let found = told(|put| fading().observe(init, &packet, TRIALS, put));
            for (what, error) in [("lost_bytes", "lost_bytes_error"), ("packet_loss", "packet_loss_error")] {
                let off = (found(what) - expected(what)) / found(error);
                println!(
                    "{bytes} B, antennas {antennas}, {what}: {} expected {}, off {off:.2} errors",
                    found(what),
                    expected(what)
                );
                assert!(off.abs() < 3.0, "{bytes} B, {what}: {} expected {}: {off}", found(what), expected(what));
            }
        }
    }
}

/// Wrong symbols of 4, 8 and 16 bits, within three standard errors. Those of 8 bits are bytes.
#[test]
fn symbols_of_any_size_are_counted() {
    for bits in [4.0, 8.0, 16.0] {
        let v = values(&[("snr", 12.0), ("code", 1.0), ("symbol_bits", bits)]);
        let packet = packet(520, false);
        let expected = predicted(&v, &packet);
        let init = ChannelInit { values: &v, rate: Rate::mbps(54), rng: rng("symbols") };
        let found = told(|put| fading().observe(init, &packet, 100_000, put));
        let off = (found("lost_symbols") - expected("lost_symbols")) / found("lost_symbols_error");
        assert!(off.abs() < 3.0, "{bits} bits: {} expected {}", found("lost_symbols"), expected("lost_symbols"));
        assert_eq!(expected("lost_symbols"), 520.0 * 8.0 / bits * expected("code_symbol_error"));
        if bits == 8.0 {
            assert_eq!(found("lost_symbols"), found("lost_bytes"));
        }
    }
}

#[test]
fn figure_1_by_its_numbers() {
    // Per-byte loss on 1x1 by SNR_G, and the decade that ten decibels make in the end.
    let byte = |snr: f64| predicted(&values(&[("snr", snr)]), &packet(1000, false))("code_symbol_error");
    for (snr, expected) in
        [(5.0, 0.4179), (10.0, 0.1779), (15.0, 0.0638), (20.0, 0.0212), (25.0, 0.00683), (30.0, 0.00217)]
    {
        assert!((byte(snr) / expected - 1.0).abs() < 5e-3, "{snr} dB: {}", byte(snr));
    }
    assert!((0.09..0.11).contains(&(byte(40.0) / byte(30.0))));
}

/// Where packets are lost with a probability of 0.5, 1e-2 and 1e-3: SNR_G in dB, as the reference tabulates it.
#[test]
fn waterfalls() {
    let at = |given: &[(&str, f64)], bytes: u16, ack: bool, loss: f64| {
        let (mut low, mut high) = (-10.0, 70.0);
        for _ in 0..16 {
            let middle = (low + high) / 2.0;
            let v = values(&[given, &[("snr", middle), ("code", 1.0)]].concat());
            if predicted(&v, &packet(bytes, ack))("packet_loss") > loss { low = middle } else { high = middle }
        }
        high
    };
    let beta_12 = ("beta", 0.91667);
    type Row<'a> = (&'a [(&'a str, f64)], u16, bool, f64, f64);
    let rows: [Row<'_>; 10] = [
        (&[("fec_data", 0.9)], 1040, false, 0.5, 16.1),
        (&[("fec_data", 0.8), ("antennas", 1.0)], 1040, false, 1e-3, 8.8),
        (&[("fec_data", 0.7), ("antennas", 2.0)], 1040, false, 1e-2, 4.2),
        (&[("fec_data", 1.0), ("antennas", 3.0)], 1040, false, 1e-3, 22.8),
        (&[("fec_data", 0.93), ("antennas", 3.0)], 1040, false, 1e-3, 6.4),
        (&[("fec_ack", 0.5)], 40, true, 1e-3, 11.7),
        (&[("fec_ack", 0.5), ("antennas", 3.0)], 40, true, 1e-2, 1.9),
        (&[("fec_data", 0.9), beta_12], 1040, false, 1e-2, 17.7),
        (&[("fec_data", 0.9), ("antennas", 2.0), beta_12], 1040, false, 1e-3, 8.5),
        (&[("fec_ack", 0.5), ("antennas", 1.0), beta_12], 40, true, 1e-3, 7.6),
    ];
    for (given, bytes, ack, loss, expected) in rows {
        let found = at(given, bytes, ack, loss);
        assert!((found - expected).abs() <= 0.06, "{given:?}, {loss}: {found:.2} dB, expected {expected}");
    }
}

/// The paper's closing remarks: how much parity a loss of 1e-3 takes (1x2, 8 dB).
#[test]
fn longer_packets_and_longer_symbols() {
    let chain = {
        let v = values(&[("snr", 8.0), ("antennas", 2.0)]);
        let p = predicted(&v, &packet(1000, false));
        Chain { stay: [0.99875, 0.875], error: [p("symbol_error_good"), p("symbol_error_bad")] }
    };
    let least = |bytes: u32, bits: u32| {
        let data = (8 * bytes).div_ceil(bits);
        let block = |t: u32| Block { symbols: data + 2 * t, data };
        let lost = |t: u32| BlockTransitions::new(&chain, bits as u64, &[block(t)]).loss(chain.stationary());
        let (mut low, mut high) = (0, data);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if lost(middle) > 1e-3 { low = middle } else { high = middle }
        }
        (high, data as f64 / block(high).symbols as f64)
    };
    for (bytes, t, rate) in [(260, 22, 0.855), (520, 37, 0.875), (1040, 62, 0.893), (1500, 84, 0.899)] {
        let found = least(bytes, 8);
        assert!(found.0 == t && (found.1 - rate).abs() < 6e-4, "{bytes} B: {found:?}, expected {t} and {rate}");
    }
    for (bits, rate) in [(4, 0.944), (8, 0.893), (12, 0.846), (16, 0.800)] {
        assert!((least(1040, bits).1 - rate).abs() < 6e-4, "{bits} bits: {:?}", least(1040, bits));
    }
}

/// A channel stepped bit by bit: moves first, then sends in the new state.
struct Bits {
    chain: Chain,
    bad: usize,
    rng: Rng,
}

impl Bits {
    fn new(chain: Chain, name: &str) -> Bits {
        let mut rng = rng(name);
        let bad = (rng.uniform() < chain.stationary()[1]) as usize;
        Bits { chain, bad, rng }
    }
    /// Whether the next bit is wrong.
    fn wrong(&mut self) -> bool {
        if self.rng.uniform() >= self.chain.stay[self.bad] {
            self.bad = 1 - self.bad;
        }
        self.rng.uniform() < self.chain.error[self.bad]
    }
    fn byte_is_wrong(&mut self) -> bool {
        (0..8).fold(false, |wrong, _| self.wrong() | wrong)
    }
}

/// Loss rate and correlation of neighbours.
fn rate_and_memory(lost: &[bool]) -> (f64, f64) {
    let n = lost.len() as f64;
    let p = lost.iter().filter(|l| **l).count() as f64 / n;
    let both = lost.windows(2).filter(|w| w[0] && w[1]).count() as f64 / n;
    (p, (both - p * p) / (p - p * p))
}

/// Bursts longer than short packets.
const BURSTY: [(&str, f64); 6] =
    [("snr", 15.0), ("fade", 20.0), ("gamma", 0.9998), ("beta", 0.998), ("fec_data", 0.7), ("code", 1.0)];
const BLOCK: Block = Block { symbols: 14, data: 10 };

/// Short packets on a channel with a long memory: the matrix sampler of the link, the walk from error to error, and the bits.
#[test]
fn three_samplers_agree() {
    const N: usize = 200_000;
    let v = values(&BURSTY);
    let packet = packet(10, false);
    let p = predicted(&v, &packet);
    let chain = Chain { stay: [0.9998, 0.998], error: [p("symbol_error_good"), p("symbol_error_bad")] };
    assert_eq!(p("wire_bytes"), 14.0);

    let mut bits = Bits::new(chain, "bits");
    let by_bits: Vec<bool> =
        (0..N).map(|_| (0..14).filter(|_| bits.byte_is_wrong()).count() > BLOCK.correctable() as usize).collect();
    let mut walk = Walk::new(chain, rng("walk"));
    let by_walk: Vec<bool> = (0..N).map(|_| walk.wrong_symbols(14, 8) > BLOCK.correctable()).collect();
    let rate = Rate::mbps(8);
    let mut link = fading().build(ChannelInit { values: &v, rate, rng: rng("link") }).on_air.expect("on the air");
    // Back to back: 14 bytes are 14 us.
    let by_law: Vec<bool> = (1..=N as u64).map(|i| link.loses(Time::micros(14 * i), &packet, 14)).collect();

    // Both in closed form: the second packet begins where the first one ended.
    let transitions = BlockTransitions::new(&chain, 8, &[BLOCK]);
    let pi = chain.stationary();
    let end = [0, 1].map(|s| pi[0] * transitions.lost[0][s] + pi[1] * transitions.lost[1][s]);
    let loss = transitions.loss(pi);
    let memory = (transitions.loss(end) - loss * loss) / (loss - loss * loss);
    assert!((loss - p("packet_loss")).abs() < 1e-12 && memory > 0.2, "{loss} {memory}");
    for (name, lost) in [("bits", by_bits), ("walk", by_walk), ("law", by_law)] {
        let (rate, lag) = rate_and_memory(&lost);
        println!("{name}: loss {rate:.5} (closed form {loss:.5}), lag-1 correlation {lag:.4} ({memory:.4})");
        // Correlated losses: the standard error is that of independent ones times sqrt((1 + memory) / (1 - memory)), at least.
        let error = (loss / N as f64 * (1.0 + memory) / (1.0 - memory)).sqrt();
        assert!((rate - loss).abs() < 4.0 * error, "{name}: {rate} {loss}");
        assert!((lag - memory).abs() < 0.015, "{name}: {lag} {memory}");
    }
}

/// Between packets the chain runs on: with a gap of g bits the correlation falls by lambda^g.
#[test]
fn the_chain_runs_on_between_packets() {
    const N: u64 = 300_000;
    let v = values(&BURSTY);
    let packet = packet(10, false);
    let memory = |gap_bits: u64| {
        let init = ChannelInit { values: &v, rate: Rate::mbps(8), rng: rng("gaps") };
        let mut link = fading().build(init).on_air.expect("on the air");
        let at = |i: u64| Time(i * (14_000 + 125 * gap_bits));
        let lost: Vec<bool> = (1..=N).map(|i| link.loses(at(i), &packet, 14)).collect();
        rate_and_memory(&lost).1
    };
    let together = memory(0);
    for gap in [200, 600] {
        let expected = together * libm::pow(0.9978, gap as f64);
        assert!((memory(gap) - expected).abs() < 0.015, "{gap} bits: {} expected {expected}", memory(gap));
    }
    assert!(memory(30_000).abs() < 0.01);
}

/// Counting wrong symbols is equivalent to a codec: packets through a channel of bits, coded and decoded.
#[test]
fn a_real_codec_loses_the_same_packets() {
    let chain = Chain { stay: [0.998, 0.9], error: [0.004, 0.2] };
    let (data, parity) = (60usize, 20usize);
    let block = Block { symbols: 80, data: 60 };
    let (encoder, decoder) = (reed_solomon::Encoder::new(parity), reed_solomon::Decoder::new(parity));
    let mut bits = Bits::new(chain, "codec");
    let mut source = rng("data");
    let (mut lost, n) = (0, 4000);
    for _ in 0..n {
        let message: Vec<u8> = (0..data).map(|_| source.next_u64() as u8).collect();
        let mut sent = encoder.encode(&message).to_vec();
        assert_eq!(sent.len(), block.symbols as usize);
        let mut wrong = 0;
        for byte in &mut sent {
            let flips = (0..8).fold(0, |flips, bit| flips | (bits.wrong() as u8) << bit);
            *byte ^= flips;
            wrong += (flips != 0) as u32;
        }
        let decoded = decoder.correct(&sent, None).ok().map(|b| b.data().to_vec());
        let recovered = decoded.as_deref() == Some(&message[..]);
        assert_eq!(recovered, wrong <= block.correctable(), "{wrong} wrong symbols of {}", block.symbols);
        lost += !recovered as u32;
    }
    let expected = BlockTransitions::new(&chain, 8, &[block]).loss(chain.stationary());
    let found = lost as f64 / n as f64;
    let error = (expected * (1.0 - expected) / n as f64).sqrt();
    assert!((found - expected).abs() < 4.0 * error && lost > 30, "{found} {expected}");
}

#[test]
fn data_and_acknowledgements_have_codes_of_their_own() {
    let v = values(&[("fec_data", 0.8), ("fec_ack", 0.5)]);
    let mut coding =
        fading().build(ChannelInit { values: &v, rate: Rate::mbps(54), rng: rng("x") }).coding.expect("codes");
    assert_eq!(coding.wire_bytes(&packet(40, true), 40), 80);
    assert_eq!(coding.wire_bytes(&packet(40, false), 40), 50);
    // 1040 bytes in six blocks of 173 or 174.
    assert_eq!(coding.wire_bytes(&packet(1040, false), 1040), 2 * 218 + 4 * 216);
    assert_eq!(coding.efficiency(), 0.8);
}

/// With equal rates the short packet is the weaker one, without any the long one: the paper's remark on acknowledgements.
#[test]
fn short_packets_need_more_protection() {
    let loss = |rate: f64, bytes: u16| {
        let v = values(&[("snr", 10.0), ("antennas", 2.0), ("fec_data", rate), ("code", 1.0)]);
        predicted(&v, &packet(bytes, false))("packet_loss")
    };
    let table = [(0.9, 40, 4.3e-2), (0.9, 1040, 7.8e-12), (1.0, 40, 0.47), (1.0, 1040, 1.0)];
    for (rate, bytes, expected) in table {
        assert!((loss(rate, bytes) / expected - 1.0).abs() < 0.05, "{rate}, {bytes} B: {:e}", loss(rate, bytes));
    }
}

#[test]
fn variants() {
    let told = |given: &[(&str, f64)]| predicted(&values(given), &packet(1000, false));
    let clear = told(&[("good", 1.0)]);
    assert_eq!(clear("symbol_error_good"), 0.0);
    // Only bad states lose: the share of bytes that one touches bounds the loss.
    assert!(clear("code_symbol_error") < told(&[])("code_symbol_error"));
    assert_eq!(told(&[("bad", 1.0)])("symbol_error_bad"), 0.5);
    assert_eq!(told(&[("bad", 1.0), ("points", 4.0)])("symbol_error_bad"), 0.75);
    // 3 dB of interference and noise, for noise alone.
    let (jammed, weaker) = (told(&[("interference", 1.0), ("snr", 20.0)]), told(&[("snr", 10.0 * libm::log10(50.0))]));
    assert!((jammed("symbol_error_good") / weaker("symbol_error_good") - 1.0).abs() < 1e-12);
    let rician = [0.0, 1.0, 10.0].map(|k| told(&[("rician_good", k)])("symbol_error_good"));
    assert!(rician[0] > rician[1] && rician[1] > rician[2]);
    // Four points carry two bits: a byte is four steps of the chain.
    let four = told(&[("points", 4.0)]);
    let chain = Chain { stay: [0.99875, 0.875], error: [four("symbol_error_good"), four("symbol_error_bad")] };
    assert!((four("code_symbol_error") - (1.0 - chain.all_correct(4))).abs() < 1e-15);
    let wrong = |given: &[(&str, f64)]| fading().check(&testing::values(&[fading().params()], given)).is_err();
    assert!(wrong(&[("points", 3.0)]) && wrong(&[("points", 8.0)]) && wrong(&[("symbol_bits", 12.0)]));
    assert!(
        wrong(&[("gamma", 1.0), ("beta", 1.0)]) && !wrong(&[("code", 1.0), ("symbol_bits", 12.0), ("points", 8.0)])
    );
}
