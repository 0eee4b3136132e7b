//! 802.11a with the distributed coordination function (DCF): carrier sense before transmission.
//!
//! Sources: IEEE 802.11-2012, clauses 9 (DCF) and 18 (OFDM) \[STD\]; Bianchi, "Performance Analysis of the IEEE 802.11
//! Distributed Coordination Function", JSAC 18(3), 2000 \[B00\]; Li et al., "Capacity of Ad Hoc Wireless Networks", MobiCom
//! 2001 \[L01\], whose ranges are ns-2's; Kamerman and Monteban, Bell Labs Technical Journal 2(3), 1997 \[ARF\].
//!
//! The idea: a station sends when the medium has been idle for DIFS. A station that found it busy first counts down a
//! random number of idle slots, and suspends counting while another station sends. A frame that is not acknowledged
//! was lost, by collision or noise: the range of random numbers doubles, and the frame is sent again up to a limit.
//! Long frames may be announced by a short exchange, RTS and CTS, which reserves the medium at all stations in range
//! of either end (NAV). A frame has a preamble of 20 us and whole symbols of 4 us. A station decodes frames from
//! within `decode_range`, and defers to signals that it senses from within `sense_range`. A station beyond that range
//! of the sender but near the receiver is *hidden*; a station that defers although it would not disturb the receiver
//! is *exposed*.
//!
//! | symbol | parameter | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | aSlotTime, aSIFSTime | `slot`, `sifs` | us | 9, 16 | STD table 18-17 |
//! | DIFS | SIFS + 2 slots | us | 34 | STD 9.3.7 |
//! | EIFS | SIFS + DIFS + ACK at 6 Mbit/s | us | 94 | STD 9.3.7 |
//! | aCWmin, aCWmax | `cw_min`, `cw_max` | slots | 15, 1023 | STD table 18-17 |
//! | TXTIME | preamble + 4 ceil((16 + 8 bytes + 6) / N_DBPS) | us | N_DBPS 24, 36, 48, 72, 96, 144, 192, 216 | STD 18.4.3 |
//! | ACK, CTS; RTS | 14; 20 | bytes | at the highest of 6, 12, 24 Mbit/s not above the data's rate | STD 9.7.6 |
//! | MPDU | IP + 8 (LLC, SNAP) + 28 (header, FCS) | bytes | | STD 8.2 |
//! | ACK and CTS timeout | SIFS + slot + `rx_start_delay` | us | 50 | STD 9.3.2.8 |
//! | level | 10 `exponent` log10(`decode_range` / d) - shadowing - drift | dB | 0 at the edge | L01: two-ray ground, exponent 4 |
//! | SINR | level + `snr_at_range` - interference above noise | dB | | |
//! | need of a rate | `snr_at_range` + 0, 1, 3, 5, 8, 12, 16, 17 | dB | 10 % of 1000-byte frames lost | STD table 18-14 |
//! | frame errors | 1 - exp(-bytes / 1000 * 0.10536 * 10^((need - SINR) / `error_slope`)) | 1 | | ours; meets STD at the need |
//!
//! Deviations:
//! 1. Propagation takes no time on the medium: it is part of the slot. (The packet reaches the next node later by
//!    distance / c.)
//! 2. A station does not sense a frame that begins less than `cca_time` before its own transmission, so the two
//!    collide.
//! 3. Retries are counted for each frame, not for the station. A NAV set by an RTS is not reset if no data follow,
//!    which is optional in the standard.
//! 4. A frame's errors follow from the maximum interference during it. Interference that capture does not overcome
//!    (`capture_threshold`) destroys it at any rate.
//! 5. EIFS follows a frame that is sensed but not decoded, as in ns-2; the standard requires this only if its
//!    preamble was decoded. EIFS does not follow bursts of an interferer.
//! 6. `capture = "ns2"` is for comparisons, and follows ns-2.35 where it deviates from the standard: a frame that was
//!    not decoded reserves the medium for EIFS, followed by DIFS; so does a frame that capture overcomes, from its
//!    end on; CTS, and data after CTS, are sent only if the medium is idle at that moment, otherwise the sender
//!    starts again with RTS.
//! 7. The later frames of a burst follow after SIFS without RTS, and each reserves the medium only for itself: a
//!    station that can decode neither sender nor data may begin between them.
//! 8. Rates adapt to every attempt without an answer, including lost RTS (ARF counts data frames); without ARF's
//!    timer.

mod air;
mod exchange;
mod frame;
mod link;
mod medium;
mod station;

pub use air::Layout;
pub use medium::{Driver, Medium, Over, StationStats};

use alloc::format;

use crate::medium::{MediumKind, Obstacle};
use crate::params::{
    Auto, Bytes, Conflict, Decibels, Flag, Info, Metres, Number, Seconds, Values, choices, parameters,
};
use crate::rng::power;
use crate::units::{Rate, Time};

/// 802.11a.
pub struct Dcf;

/// Data rates, Mbit/s.
pub const RATES: [u8; 8] = [6, 9, 12, 18, 24, 36, 48, 54];
/// Data bits of a symbol.
const BITS: [u64; 8] = [24, 36, 48, 72, 96, 144, 192, 216];
/// Required SINR of each rate relative to the slowest, dB: differences of the minimum sensitivities of STD table
/// 18-14.
const NEEDS: [f64; 8] = [0.0, 1.0, 3.0, 5.0, 8.0, 12.0, 16.0, 17.0];
/// Mandatory rates.
const BASIC: [u8; 3] = [0, 2, 4];
const SYMBOL: u64 = 4_000;

/// Bytes of RTS.
pub const RTS: u32 = 20;
/// Bytes of CTS and of ACK.
pub const CTS_ACK: u32 = 14;
/// The longest MAC service data unit, IEEE 802.11 clause 7.1.2, and the part of it that is not the IP packet, bytes.
const LONGEST_MSDU: u16 = 2304;
const LLC_SNAP: u16 = 8;
/// With this share of lost frames, seven attempts hardly ever succeed.
const HARDLY: f64 = 0.99;

/// Overhead of an IP datagram: LLC and SNAP 8, MAC header 24, FCS 4.
pub const FRAMING: u32 = 36;

const CLAUSE_9: &str = "IEEE 802.11 clause 9.3";
const TABLE: &str = "IEEE 802.11a, table 18-17";
const LI: &str = "Li et al., MobiCom 2001";
const OURS: &str = "ours";

choices! {
    /// Rate of data frames, in the order of [`RATES`].
    pub enum DataRate {
        Mbps6 = "6Mbit/s", Mbps9 = "9Mbit/s", Mbps12 = "12Mbit/s", Mbps18 = "18Mbit/s",
        Mbps24 = "24Mbit/s", Mbps36 = "36Mbit/s", Mbps48 = "48Mbit/s", Mbps54 = "54Mbit/s",
    }
}

choices! {
    /// Rate of RTS, CTS and ACK.
    pub enum ControlRate { Auto = "auto", Mbps6 = "6Mbit/s", Mbps12 = "12Mbit/s", Mbps24 = "24Mbit/s" }
}

choices! {
    /// Rate adaptation.
    pub enum Adaptation { None = "none", Arf = "arf" }
}

choices! {
    /// Which of several overlapping frames can be received if it is stronger.
    pub enum Capture {
        /// The frame in reception, or another that begins within its preamble.
        First = "first",
        /// Any frame.
        Any = "any",
        /// No frame.
        Off = "off",
        /// The first frame that is sensed, decodable or not, if no other one alone comes too near to it; and ns-2's
        /// reservations.
        Ns2 = "ns2",
    }
}

choices! {
    /// Causes of frame errors besides collisions.
    pub enum Errors { None = "none", Snr = "snr" }
}

parameters! {
    /// Keys of `[[medium]]`.
    pub struct Params {
        /// Rate of data frames; the initial rate with adaptation.
        rate: DataRate = DataRate::Mbps54, "IEEE 802.11a";
        /// Rate of RTS, CTS and ACK; auto: the highest mandatory rate not above the data's.
        control_rate: ControlRate = ControlRate::Auto, "IEEE 802.11 clause 9.7.6";
        /// Rate adaptation: none, or up after `arf_up` successes and down after `arf_down` failures.
        adaptation: Adaptation = Adaptation::None, "Kamerman and Monteban 1997";
        /// Consecutive successes before the next higher rate.
        arf_up: Number = 10.0, in 1.0..=1e6, "Kamerman and Monteban 1997";
        /// Consecutive failures before the next lower rate.
        arf_down: Number = 2.0, in 1.0..=1e6, "Kamerman and Monteban 1997";
        /// Frames longer than this, MAC header included, are announced by RTS and CTS; 0B: all.
        rts_threshold: Bytes = f64::INFINITY, CLAUSE_9;
        /// Slot of the back-off.
        slot: Seconds = 9e-6, in 1e-6..=1e-3, TABLE;
        /// Interval between a frame and its answer.
        sifs: Seconds = 16e-6, in 1e-6..=1e-3, TABLE;
        /// Preamble and SIGNAL of every frame.
        preamble: Seconds = 20e-6, in 0.0..=1e-3, TABLE;
        /// An answer that has not begun within this time is missing.
        rx_start_delay: Seconds = 25e-6, in 1e-6..=1e-3, TABLE;
        /// A frame is sensed only after this time.
        cca_time: Seconds = 4e-6, in 0.0..=1e-3, TABLE;
        /// A station that has won the medium may send frames of its queue for this time, SIFS apart; 0s: one frame.
        burst: Seconds = 0.0, in 0.0..=0.1, "IEEE 802.11 clause 9.19 (TXOP limit); Atheros Super A/G";
        /// Minimum contention window, slots.
        cw_min: Number = 15.0, in 1.0..=65535.0, TABLE;
        /// Maximum contention window, slots.
        cw_max: Number = 1023.0, in 1.0..=65535.0, TABLE;
        /// Maximum number of attempts for RTS and for frames sent without.
        short_retry: Number = 7.0, in 1.0..=1e6, CLAUSE_9;
        /// Maximum number of attempts for frames sent after RTS.
        long_retry: Number = 4.0, in 1.0..=1e6, CLAUSE_9;
        /// Frames are retried without limit.
        retry_forever: Flag = false, "Bianchi 2000";
        /// Stations wait for EIFS after a frame that cannot be decoded.
        eifs: Flag = true, CLAUSE_9;
        /// Which of several overlapping frames can be received if it is stronger: the one in reception, or one that
        /// begins within its preamble; any; none; `ns2`: the first that is sensed, decodable or not, and ns-2's
        /// reservations.
        capture: Capture = Capture::First, "ours; ns-2.35, Mac/802_11";
        /// Required power ratio for capture.
        capture_threshold: Decibels = 10.0, in 0.0..=100.0, "ns-2.35, CPThresh";
        /// Frames are decoded up to this distance.
        decode_range: Metres = 250.0, in 0.1..=1e6, LI;
        /// Stations defer to frames up to this distance.
        sense_range: Metres = 550.0, in 0.1..=1e7, LI;
        /// Path loss exponent: power decreases with distance to this power.
        exponent: Number = 4.0, in 1.0..=10.0, "two-ray ground";
        /// Maximum length of a link between stations that are placed one by one; auto: decode_range.
        reach: Auto<Metres> = None, in 0.0..=1e6, OURS;
        /// Causes of frame errors besides collisions: none, or noise, depending on level and rate.
        errors: Errors = Errors::None, "IEEE 802.11a, table 18-14";
        /// Signal-to-noise ratio at decode_range.
        snr_at_range: Decibels = 4.0, in 0.0..=100.0, "IEEE 802.11a, 18.3.10.2";
        /// Increase of the signal that reduces errors to a tenth.
        error_slope: Decibels = 1.0, in 0.01..=100.0, OURS;
        /// Stations defer to an interferer this far above decode_range's level.
        energy_detect: Decibels = 20.0, in 0.0..=200.0, "IEEE 802.11a, 18.3.10.6";
        /// Standard deviation of each pair's level, drawn once.
        shadowing: Decibels = 0.0, in 0.0..=40.0, "log-normal shadowing";
        /// Standard deviation of each pair's level that changes over time.
        drift: Decibels = 0.0, in 0.0..=40.0, "Gudmundson 1991";
        /// Time in which the drift's correlation falls to 1/e.
        coherence: Seconds = 10.0, in 1e-3..=1e6, "Gudmundson 1991";
    }
}

impl MediumKind for Dcf {
    const INFO: Info = Info {
        name: "dcf",
        summary: "802.11a: stations share a channel by carrier sense, back-off and acknowledgements",
        source: "IEEE 802.11-2012 clauses 9 and 18",
        params: Params::PARAMS,
    };

    fn rate(&self, values: &Values) -> Rate {
        Rate::mbps(RATES[Params::of(values).rate as usize] as u64)
    }
    fn has_rate(&self, rate: Rate) -> bool {
        rate_index(rate).is_some()
    }
    fn reach(&self, values: &Values) -> f64 {
        let params = Params::of(values);
        params.reach.unwrap_or(params.decode_range)
    }
    fn longest_packet(&self) -> u16 {
        LONGEST_MSDU - LLC_SNAP
    }
    fn conflict(&self, values: &Values) -> Option<Conflict> {
        let Params { cw_min, cw_max, .. } = Params::of(values);
        (cw_min > cw_max).then(|| {
            let what = format!("`cw_min` ({cw_min}) is above `cw_max` ({cw_max})");
            Conflict { refused: true, ..Conflict::new(["cw_min", "cw_max"], what, "exchange them") }
        })
    }
    fn obstacle(&self, values: &Values, distance: f64, rate: Rate, bytes: u16) -> Option<Obstacle> {
        let (params, settings) = (Params::of(values), Settings::new(values));
        // Random levels may help.
        if params.shadowing > 0.0 || params.drift > 0.0 {
            return None;
        }
        if distance > params.decode_range * (1.0 + 1e-9) {
            return Some(Obstacle::Distance(params.decode_range));
        }
        let sinr = power(params.decode_range / distance.max(1e-3), params.exponent) / settings.noise;
        let lost = settings.error(bytes as u32 + FRAMING, rate_index(rate)?, sinr);
        (settings.noisy && settings.arf.is_none() && lost > HARDLY).then_some(Obstacle::Noise)
    }
}

/// The index of a rate in [`RATES`].
pub fn rate_index(rate: Rate) -> Option<u8> {
    RATES.iter().position(|&r| Rate::mbps(r as u64) == rate).map(|i| i as u8)
}

/// Parameters in the units that stations use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Index in [`RATES`].
    pub rate: u8,
    /// The rate of RTS, CTS and ACK, if it is fixed: an index in [`RATES`].
    pub control_rate: Option<u8>,
    /// Consecutive successes and failures that change the rate, if it adapts.
    pub arf: Option<(u32, u32)>,
    /// Frames longer than this use RTS and CTS, bytes.
    pub rts_threshold: f64,
    /// Slot.
    pub slot: Time,
    /// SIFS.
    pub sifs: Time,
    /// DIFS.
    pub difs: Time,
    /// EIFS; DIFS if EIFS is disabled.
    pub eifs: Time,
    /// Preamble and SIGNAL.
    pub preamble: Time,
    /// From the end of a frame to the latest start of its answer.
    pub answer: Time,
    /// Maximum duration of a station's burst.
    pub burst: Time,
    /// Frames are sensed only after this time.
    pub cca_time: Time,
    /// Minimum contention window, slots.
    pub cw_min: u32,
    /// Maximum contention window, slots.
    pub cw_max: u32,
    /// Maximum number of attempts for RTS and for frames without.
    pub short_retry: u32,
    /// Maximum number of attempts for frames after RTS.
    pub long_retry: u32,
    /// Capture mode.
    pub capture: Capture,
    /// Required power factor for capture.
    pub capture_factor: f64,
    /// Whether noise causes errors.
    pub noisy: bool,
    /// Power of noise, relative to the power at decode_range.
    pub noise: f64,
    /// Required SINR of the rates.
    needs: [f64; 8],
    /// 1 / error_slope, in decades of power.
    slope: f64,
}

/// dB as a factor of power.
pub fn factor(db: f64) -> f64 {
    power(10.0, db / 10.0)
}

impl Settings {
    /// From a scenario's values.
    pub fn new(values: &Values) -> Settings {
        let params = Params::of(values);
        let time = Time::from_secs_f64;
        let retry = |attempts: f64| if params.retry_forever { u32::MAX } else { attempts as u32 };
        let (slot, sifs) = (time(params.slot), time(params.sifs));
        let difs = sifs + slot + slot;
        let snr = params.snr_at_range;
        let mut settings = Settings {
            rate: params.rate as u8,
            control_rate: match params.control_rate {
                ControlRate::Auto => None,
                ControlRate::Mbps6 => Some(0),
                ControlRate::Mbps12 => Some(2),
                ControlRate::Mbps24 => Some(4),
            },
            arf: (params.adaptation == Adaptation::Arf).then_some((params.arf_up as u32, params.arf_down as u32)),
            rts_threshold: params.rts_threshold,
            slot,
            sifs,
            difs,
            eifs: difs,
            preamble: time(params.preamble),
            answer: sifs + slot + time(params.rx_start_delay),
            burst: time(params.burst),
            cca_time: time(params.cca_time),
            cw_min: params.cw_min as u32,
            cw_max: params.cw_max.max(params.cw_min) as u32,
            short_retry: retry(params.short_retry),
            long_retry: retry(params.long_retry),
            capture: params.capture,
            capture_factor: factor(params.capture_threshold),
            noisy: params.errors == Errors::Snr,
            noise: factor(-snr),
            needs: NEEDS.map(|need| factor(snr + need)),
            slope: 10.0 / params.error_slope,
        };
        if params.eifs {
            settings.eifs = sifs + difs + settings.airtime(CTS_ACK, 0);
        }
        settings
    }

    /// Duration of a frame of this length at a rate of [`RATES`].
    pub fn airtime(&self, bytes: u32, rate: u8) -> Time {
        let symbols = (16 + 8 * bytes as u64 + 6).div_ceil(BITS[rate as usize]);
        self.preamble + Time(symbols * SYMBOL)
    }

    /// The rate of RTS, CTS and ACK for data at a rate of [`RATES`].
    pub fn control(&self, data: u8) -> u8 {
        let mandatory = BASIC.into_iter().rfind(|&basic| basic <= data);
        self.control_rate.or(mandatory).unwrap_or(0)
    }

    /// Probability that noise destroys a frame of this length at a rate of [`RATES`]; `sinr` as a factor of power.
    pub fn error(&self, bytes: u32, rate: u8, sinr: f64) -> f64 {
        if sinr <= 0.0 {
            return 1.0;
        }
        let of_1000 = -libm::log(0.9) * power(self.needs[rate as usize] / sinr, self.slope);
        -libm::expm1(-of_1000 * bytes as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn with(given: &[(&str, f64)]) -> Settings {
        let values = testing::values(&[Params::PARAMS], given);
        Settings::new(&values)
    }

    /// Worked out by hand from the standard's formula.
    #[test]
    fn durations() {
        let s = with(&[]);
        let us = |bytes, rate| s.airtime(bytes, rate).0 / 1000;
        let all = |bytes| -> std::vec::Vec<u64> { (0..8).map(|rate| us(bytes, rate)).collect() };
        assert_eq!(all(1500 + FRAMING), [2072, 1388, 1048, 704, 536, 364, 280, 248]);
        let answers: std::vec::Vec<u64> = (0..8).map(|rate| us(CTS_ACK, s.control(rate))).collect();
        assert_eq!(answers, [44, 44, 32, 32, 28, 28, 28, 28]);
        let requests: std::vec::Vec<u64> = (0..8).map(|rate| us(RTS, s.control(rate))).collect();
        assert_eq!(requests, [52, 52, 36, 36, 28, 28, 28, 28]);
        assert_eq!((s.difs, s.eifs, s.answer), (Time::micros(34), Time::micros(94), Time::micros(50)));
        assert_eq!(with(&[("eifs", 0.0)]).eifs, Time::micros(34));
        assert_eq!(with(&[("control_rate", 1.0)]).control(7), 0);
    }

    #[test]
    fn one_in_ten_is_lost_at_the_standards_sensitivity() {
        let s = with(&[("errors", 1.0)]);
        for (rate, need) in NEEDS.iter().enumerate() {
            let rate = rate as u8;
            assert!((s.error(1000, rate, factor(4.0 + need)) - 0.1).abs() < 1e-12);
            // One dB more leaves one error in ten; half the length has half the errors.
            assert!((s.error(1000, rate, factor(5.0 + need)) - 0.0104806).abs() < 1e-6);
            assert!(
                (s.error(500, rate, factor(9.0 + need)) / s.error(1000, rate, factor(9.0 + need)) - 0.5).abs() < 1e-5
            );
        }
        assert_eq!(s.error(100, 0, 0.0), 1.0);
        assert!(s.error(1000, 7, factor(4.0)) > 1.0 - 1e-12 && s.error(1000, 0, factor(40.0)) < 1e-12);
    }
}
