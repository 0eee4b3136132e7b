//! SCONE, Standard Communication with Network Elements: a network element writes the highest rate that it advises to a
//! flow into a packet that the flow's sender put at the front of a QUIC datagram.
//!
//! Source: draft-ietf-scone-protocol-07 of 20 August 2026 (tag of the group's repository, commit a8772ea), sections
//! "SCONE Packet", "Rate Signals" and "Applying Throughput Advice Signals". The tests compare rates and bytes with those
//! of picoquic (d199d45), neqo (80ca01e), google/quiche (f44fa9f) and mvfst (979f26a), all of August 2026.
//!
//! A SCONE packet is a QUIC packet with a long header (RFC 8999), the first of a datagram, before another packet:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | 0x80 long header, 0x40 reserved, 0x3f the high six bits of the signal |
//! | 1-4 | version 0x6f7dc0fd; its highest bit is the low bit of the signal |
//! | 5 | length of the destination connection ID, then the ID |
//! | | length of the source connection ID, then the ID |
//!
//! The signal n has seven bits. From 0 to 126 it means 100 kbit/s 10^(n/20); 127 means no advice, which is what senders
//! write.

use super::be32;
use crate::units::Time;

/// The draft that this file follows.
pub const DRAFT: &str = "draft-ietf-scone-protocol-07";
/// The monitoring period: how long an endpoint follows advice, and the time over which the advised rate is an average.
pub const PERIOD: Time = Time::secs(67);

/// The version of SCONE packets, without its highest bit.
const VERSION: u32 = 0x6f7d_c0fd;
/// The bit of a version that belongs to the signal.
const LOW_BIT: u32 = 1 << 31;
/// The bit of a packet's first byte that means a long header.
const LONG: u8 = 0x80;
/// Bytes up to and with the version.
const VERSION_END: usize = 5;

/// Advised rates.
const RATES: usize = 127;
/// The rates, bit/s.
const BITS_PER_SECOND: [f64; RATES] = {
    // 10^(k/20)
    let steps = [
        1.0,
        1.122_018_454_301_963_3,
        1.258_925_411_794_167_3,
        1.412_537_544_622_754_4,
        1.584_893_192_461_113_4,
        1.778_279_410_038_922_8,
        1.995_262_314_968_879_5,
        2.238_721_138_568_339_4,
        2.511_886_431_509_58,
        2.818_382_931_264_453_7,
        3.162_277_660_168_379_5,
        3.548_133_892_335_754_6,
        3.981_071_705_534_972_7,
        4.466_835_921_509_631,
        5.011_872_336_272_723,
        5.623_413_251_903_491,
        6.309_573_444_801_932_5,
        7.079_457_843_841_379_5,
        7.943_282_347_242_815,
        8.912_509_381_337_456,
    ];
    let (mut rates, mut n, mut decade) = ([0.0; RATES], 0, 1e5);
    while n < RATES {
        rates[n] = steps[n % steps.len()] * decade;
        n += 1;
        if n % steps.len() == 0 {
            decade *= 10.0;
        }
    }
    rates
};

/// A rate signal: one of 127 rates from 100 kbit/s to 199.5 Gbit/s, or no advice, which is higher than all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Advice(u8);

impl Advice {
    /// No advice: the signal 127, which a sender writes.
    pub const NONE: Advice = Advice(RATES as u8);

    /// The highest of the 127 rates that is not above this one, in bit/s; the lowest if all are above it. No advice if
    /// the rate is not a number.
    pub fn at_most(bits_per_second: f64) -> Advice {
        if bits_per_second.is_nan() {
            return Advice::NONE;
        }
        Advice(BITS_PER_SECOND.partition_point(|rate| *rate <= bits_per_second).saturating_sub(1) as u8)
    }
    /// The rate, bit/s; `None` for no advice.
    pub fn rate(self) -> Option<f64> {
        BITS_PER_SECOND.get(usize::from(self.0)).copied()
    }
    /// The signal, from 0 to 127.
    pub fn index(self) -> u8 {
        self.0
    }
    /// The advice of a signal; `None` above 127.
    pub fn from_index(index: u8) -> Option<Advice> {
        (index <= Advice::NONE.0).then_some(Advice(index))
    }
    /// The lower of the two: what a packet with this advice carries after an element that advises the other.
    #[must_use]
    pub fn lowered_to(self, other: Advice) -> Advice {
        self.min(other)
    }

    /// The advice of a datagram that begins with these bytes.
    fn of(head: &[u8; VERSION_END]) -> Advice {
        Advice((head[0] & 0x3f) << 1 | head[1] >> 7)
    }
    /// The first two bytes of a datagram with this advice in place of the one that they have.
    fn put(self, [first, second]: [u8; 2]) -> [u8; 2] {
        [first & 0xc0 | self.0 >> 1, second & 0x7f | self.0 << 7]
    }
}

/// A SCONE packet and what is behind it in a UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SconePacket<'a> {
    /// Its advice.
    pub advice: Advice,
    /// The destination connection ID, at most 255 bytes.
    pub destination: &'a [u8],
    /// The source connection ID, at most 255 bytes. The draft has none before a short header, but stacks write one.
    pub source: &'a [u8],
    /// The packets behind it.
    pub rest: &'a [u8],
}

impl<'a> SconePacket<'a> {
    /// Parses the payload of a UDP datagram. `None` unless it begins with a SCONE packet, and has behind it another QUIC
    /// packet to the same destination connection ID: no endpoint accepts the advice of any other datagram.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Option<SconePacket<'a>> {
        let (head, after) = datagram.split_first_chunk::<VERSION_END>()?;
        if head[0] & LONG == 0 || !is_scone(be32(head, 1)) {
            return None;
        }
        let (destination, after) = connection_id(after)?;
        let (source, rest) = connection_id(after)?;
        let advice = Advice::of(head);
        destination_is(rest, destination)?.then_some(SconePacket { advice, destination, source, rest })
    }
    /// Writes the datagram, and returns its length; `None` if it is longer than `into`, or an ID longer than 255 bytes.
    pub fn write(&self, into: &mut [u8]) -> Option<usize> {
        let [high, low] = self.advice.put([LONG | 0x40, (VERSION >> 24) as u8]);
        let ids = [u8::try_from(self.destination.len()).ok()?, u8::try_from(self.source.len()).ok()?];
        let head = [high, low, (VERSION >> 16) as u8, (VERSION >> 8) as u8, VERSION as u8];
        let mut length = 0;
        for part in [&head[..], &ids[..1], self.destination, &ids[1..], self.source, self.rest] {
            into.get_mut(length..length + part.len())?.copy_from_slice(part);
            length += part.len();
        }
        Some(length)
    }
}

/// Whether this is the version of a SCONE packet.
fn is_scone(version: u32) -> bool {
    version & !LOW_BIT == VERSION
}
/// A connection ID behind its length, and the bytes after it.
fn connection_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, after) = bytes.split_first()?;
    after.split_at_checked(usize::from(*length))
}
/// Whether these bytes begin with a QUIC packet to this destination connection ID (RFC 8999, section 5), and not with a
/// second SCONE packet. `None` if they are too few.
fn destination_is(bytes: &[u8], destination: &[u8]) -> Option<bool> {
    let (first, after) = bytes.split_first()?;
    if first & LONG == 0 {
        return Some(after.starts_with(destination)); // a short header does not say how long the ID is
    }
    let (version, after) = after.split_first_chunk::<4>()?;
    Some(!is_scone(u32::from_be_bytes(*version)) && connection_id(after)?.0 == destination)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// picoquic's table (`scone_indication` of `picoquic/scone.c`), bit/s.
    const PICOQUIC: &str = "\
        100000 112202 125893 141254 158489 177828 199526 223872 251189 281838 316228 354813 398107 446684 501187 \
        562341 630957 707946 794328 891251 1000000 1122018 1258925 1412538 1584893 1778279 1995262 2238721 \
        2511886 2818383 3162278 3548134 3981072 4466836 5011872 5623413 6309573 7079458 7943282 8912509 10000000 \
        11220185 12589254 14125375 15848932 17782794 19952623 22387211 25118864 28183829 31622777 35481339 \
        39810717 44668359 50118723 56234133 63095734 70794578 79432823 89125094 100000000 112201845 125892541 \
        141253754 158489319 177827941 199526231 223872114 251188643 281838293 316227766 354813389 398107171 \
        446683592 501187234 562341325 630957344 707945784 794328235 891250938 1000000000 1122018454 1258925412 \
        1412537545 1584893192 1778279410 1995262315 2238721139 2511886432 2818382931 3162277660 3548133892 \
        3981071706 4466835922 5011872336 5623413252 6309573445 7079457844 7943282347 8912509381 10000000000 \
        11220184543 12589254118 14125375446 15848931925 17782794100 19952623150 22387211386 25118864315 \
        28183829313 31622776602 35481338923 39810717055 44668359215 50118723363 56234132519 63095734448 \
        70794578438 79432823472 89125093813 100000000000 112201845430 125892541179 141253754462 158489319246 \
        177827941004 199526231497";

    fn advice(index: u8) -> Advice {
        Advice::from_index(index).unwrap()
    }
    fn rate(index: u8) -> f64 {
        advice(index).rate().unwrap()
    }

    #[test]
    fn rates_are_those_of_the_draft_and_of_four_stacks() {
        assert_eq!(PICOQUIC.split(' ').count(), RATES);
        for (n, picoquic) in PICOQUIC.split(' ').enumerate() {
            let ours = rate(n as u8);
            assert_eq!((libm::round(ours) as u64).to_string(), picoquic, "signal {n}");
            let formula = 1e5 * libm::pow(10.0, n as f64 / 20.0);
            // The rounding of n/20, up to 4e-16, counts ln 10 times.
            assert!((ours / formula - 1.0).abs() < 2e-15, "signal {n}: {ours} and {formula}");
        }
        // Table 1 of the draft, to its three digits.
        let draft = [(1, 112e3), (2, 126e3), (3, 141e3), (21, 1.12e6), (41, 11.2e6), (121, 112e9), (126, 199.5e9)];
        for (n, said) in draft {
            assert!((rate(n) / said - 1.0).abs() < 2e-3, "signal {n}");
        }
        for (decade, bits) in [(0, 1e5), (20, 1e6), (40, 1e7), (60, 1e8), (80, 1e9), (100, 1e10), (120, 1e11)] {
            assert_eq!(rate(decade), bits, "whole decades have no error");
        }
        assert_eq!(rate(0x55) as u64, 1_778_279_410, "neqo, test `to_rate`");
        assert_eq!((rate(0x1b) as u64, rate(0x2c) as u64), (2_238_721, 15_848_931), "mvfst");
        // google/quiche rounds its factor and each rate, to 1 kbit/s.
        let mut factor = 1.0;
        for n in 0..RATES as u8 {
            assert!((rate(n) - libm::round(100.0 * factor) * 1e3).abs() < 501.0, "quiche, signal {n}");
            factor *= 1.122_018_454_3;
        }
        assert_eq!((Advice::NONE.rate(), Advice::NONE.index(), Advice::from_index(128)), (None, 127, None));
    }

    #[test]
    fn advice_is_never_above_a_rate_unless_the_lowest_is() {
        for n in 0..RATES as u8 {
            let exact = rate(n);
            assert_eq!(Advice::at_most(exact), advice(n));
            assert_eq!(Advice::at_most(exact * (1.0 + 1e-12)), advice(n));
            assert_eq!(Advice::at_most(exact * (1.0 - 1e-12)), advice(n.saturating_sub(1)));
        }
        assert_eq!(Advice::at_most(45e6), advice(53), "44.7 Mbit/s");
        for (odd, index) in
            [(0.0, 0), (-1.0, 0), (f64::NEG_INFINITY, 0), (1e300, 126), (f64::INFINITY, 126), (f64::NAN, 127)]
        {
            assert_eq!(Advice::at_most(odd).index(), index, "{odd}");
        }
    }

    #[test]
    fn advice_only_falls() {
        for a in 0..=127 {
            for b in 0..=127 {
                let after = advice(a).lowered_to(advice(b));
                assert_eq!(after.index(), a.min(b));
            }
            assert_eq!(advice(a).lowered_to(Advice::NONE), advice(a), "no advice changes nothing");
        }
    }

    /// google/quiche's test `SconeCoalescedShortHeader`: signal 71 before a short header.
    const QUICHE: [u8; 29] = [
        0xe3, 0xef, 0x7d, 0xc0, 0xfd, 8, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10, 0, // SCONE
        0x43, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10, 0x13, 0x37, 0x42, 0x33, 1,
    ];

    #[test]
    fn bytes_are_those_of_other_stacks() {
        let packet = SconePacket::parse(&QUICHE).unwrap();
        assert_eq!((packet.advice.index(), packet.destination, packet.source), (71, &QUICHE[6..14], &[][..]));
        let mut again = [0; 29];
        assert_eq!((packet.write(&mut again), again), (Some(29), QUICHE));
        assert_eq!(packet.write(&mut [0; 28]), None);
        assert_eq!(SconePacket { source: &[0; 256], ..packet }.write(&mut [0; 400]), None);
        // neqo's test `scone`: empty IDs; the first byte and the highest bit of the version by signal.
        for (signal, first, second) in [(0x7f, 0xff, 0xef), (0x31, 0xd8, 0xef), (2, 0xc1, 0x6f), (0x42, 0xe1, 0x6f)] {
            let bytes = [first, second, 0x7d, 0xc0, 0xfd, 0, 0, 0x40, 9];
            assert_eq!(SconePacket::parse(&bytes).unwrap().advice.index(), signal);
        }
        // mvfst's test `SCONERateSignalEncoding`: the high six bits, and whether the version has its highest bit.
        for (signal, high, low) in [(0, 0, 0), (1, 0, 1), (64, 32, 0), (65, 32, 1), (126, 63, 0), (127, 63, 1)] {
            assert_eq!(advice(signal).put([0xc0, 0x6f]), [0xc0 | high, 0x6f | low << 7]);
        }
    }

    #[test]
    fn each_signal_travels_and_the_reserved_bit_stays() {
        for signal in 0..=127 {
            for first in [0x80, 0xc0] {
                let mut bytes = QUICHE;
                bytes[0] = bytes[0] & 0x3f | first;
                let [high, low] = advice(signal).put([bytes[0], bytes[1]]);
                (bytes[0], bytes[1]) = (high, low);
                assert_eq!(SconePacket::parse(&bytes).map(|p| p.advice.index()), Some(signal));
                assert_eq!(bytes[0] & 0xc0, first);
            }
        }
    }

    #[test]
    fn what_no_endpoint_would_accept_is_no_scone_packet() {
        let with = |at: usize, value: u8| {
            let mut bytes = QUICHE;
            bytes[at] = value;
            SconePacket::parse(&bytes).map(|packet| packet.advice.index())
        };
        assert!(with(0, 0xa3).is_some(), "the reserved bit may be 0 (RFC 9287)");
        assert!(with(28, 7).is_some(), "the payload is another's");
        assert_eq!(with(0, 0x63), None, "a short header");
        assert_eq!(with(4, 0xfc), None, "another version");
        assert_eq!(with(16, 0xff), None, "another connection");
        assert_eq!(with(5, 7), None, "an ID of another length");
        assert_eq!(with(14, 200), None, "an ID beyond the end");
        for length in 0..24 {
            assert_eq!(SconePacket::parse(&QUICHE[..length]), None, "nothing behind it in {length} bytes");
        }
        // Before a long header: version 1 to the same ID, to another, to a longer one, and SCONE once more.
        let before = |rest: &[u8]| {
            let mut bytes = [0; 64];
            let scone = SconePacket { advice: Advice::NONE, destination: &[1, 2], source: &[3], rest };
            let length = scone.write(&mut bytes).unwrap();
            SconePacket::parse(&bytes[..length]).is_some()
        };
        assert!(before(&[0xc0, 0, 0, 0, 1, 2, 1, 2, 1, 3, 0]));
        assert!(!before(&[0xc0, 0, 0, 0, 1, 2, 1, 1, 1, 3, 0]));
        assert!(!before(&[0xc0, 0, 0, 0, 1, 3, 1, 2, 1, 3, 0]));
        assert!(!before(&[0xc0, 0x6f, 0x7d, 0xc0, 0xfd, 2, 1, 2, 1, 3, 0]));
        assert!(!before(&[0xc0, 0, 0, 0]));
    }
}
