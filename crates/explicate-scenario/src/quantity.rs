//! Numbers with units, as scenarios write them: `"80ms"`, `"54Mbit/s"`, `"1040B"`, `"1.0bdp"`, `"1%"`, `"50/s"`.
//!
//! Every reader returns an error as a sentence for the user. A number without a unit is an error too, and the sentence has it
//! with the unit in which tc, iperf and ns-3 take it: bit/s, bytes, seconds.

use explicate_core::units::{Rate, Time};

use crate::limits;
use crate::problem::near;

/// A dimension: its units as (name, multiplier of the base unit), first those used for writing, in descending order.
pub(crate) struct Dimension {
    pub(crate) noun: &'static str,
    pub(crate) example: &'static str,
    units: &'static [(&'static str, f64)],
    /// Number of units used for writing, in descending order by powers of ten; the last is the base unit.
    written: usize,
    /// Fractions of a unit may be written: `1.5ms` instead of `1500us`.
    fractions: bool,
    /// The unit in which zero is written, and that a number without a unit has in other programs.
    pub(crate) bare: &'static str,
    /// Plausible numbers of that unit, both included: 5 bit/s are a slip.
    usual: (f64, f64),
    /// The base unit cannot be divided.
    whole: bool,
}

/// Microseconds with the micro sign (U+00B5), which the Greek letter (U+03BC) stands for too.
const MICRO: &str = "\u{b5}s";
const GREEK_MICRO: &str = "\u{3bc}s";

/// Base unit: nanosecond.
pub(crate) const TIME: Dimension = Dimension {
    noun: "a time",
    example: "80ms",
    units: &[("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0), ("min", 60e9), (MICRO, 1e3)],
    written: 4,
    fractions: true,
    bare: "s",
    usual: (1e-9, limits::SECONDS),
    whole: true,
};
/// Base unit: bit/s.
pub(crate) const RATE: Dimension = Dimension {
    noun: "a rate",
    example: "54Mbit/s",
    units: &[
        ("Gbit/s", 1e9),
        ("Mbit/s", 1e6),
        ("kbit/s", 1e3),
        ("bit/s", 1.0),
        ("Tbit/s", 1e12),
        ("Tbps", 1e12),
        ("Gbps", 1e9),
        ("Mbps", 1e6),
        ("kbps", 1e3),
        ("bps", 1.0),
        ("B/s", 8.0),
        ("kB/s", 8e3),
        ("MB/s", 8e6),
        ("GB/s", 8e9),
        ("KiB/s", 8.0 * 1024.0),
        ("MiB/s", 8.0 * 1048576.0),
    ],
    written: 4,
    fractions: true,
    bare: "bit/s",
    usual: (1e3, limits::RATE as f64),
    whole: true,
};
/// Base unit: byte.
pub(crate) const BYTES: Dimension = Dimension {
    noun: "a number of bytes",
    example: "1500B",
    units: &[
        ("GB", 1e9),
        ("MB", 1e6),
        ("kB", 1e3),
        ("B", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1048576.0),
        ("GiB", 1073741824.0),
    ],
    written: 4,
    fractions: false,
    bare: "B",
    usual: (1.0, 1e15),
    whole: true,
};
/// Base unit: metre.
pub(crate) const DISTANCE: Dimension = Dimension {
    noun: "a distance",
    example: "250m",
    units: &[("km", 1e3), ("m", 1.0), ("cm", 0.01)],
    written: 2,
    fractions: true,
    bare: "m",
    usual: (1e-3, limits::METRES),
    whole: false,
};
/// Base unit: one per second.
pub(crate) const FREQUENCY: Dimension = Dimension {
    noun: "a number of arrivals in a time",
    example: "50/s",
    units: &[("/s", 1.0), ("/ms", 1e3), ("/min", 1.0 / 60.0)],
    written: 1,
    fractions: true,
    bare: "/s",
    usual: (1e-9, 1e9),
    whole: false,
};
/// The delay of a line: as [`TIME`], but 20 are hardly seconds.
pub(crate) const DELAY: Dimension = Dimension { usual: (1e-9, 10.0), ..TIME };
const LENGTH: Dimension = Dimension {
    noun: "a length of a queue",
    example: "1.0bdp",
    units: &[
        ("bdp", 1.0),
        ("pkt", 1.0),
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1048576.0),
    ],
    written: 0,
    fractions: true,
    bare: "",
    usual: (0.0, 0.0),
    whole: false,
};

impl Dimension {
    /// The names of the units.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(name, _)| *name)
    }
}

/// The length of a queue as written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Length {
    Bytes(f64),
    Packets(f64),
    /// Bandwidth-delay products.
    Bdp(f64),
}

/// Reads a number with a unit of `dimension`, in its base unit.
pub(crate) fn read(text: &str, dimension: &Dimension) -> Result<f64, String> {
    let (x, factor, _) = parts(text, dimension)?;
    Ok(x * factor)
}

/// Reads a time.
pub(crate) fn time(text: &str) -> Result<Time, String> {
    let ns = read(text, &TIME)?;
    if ns > limits::SECONDS * 1e9 {
        return Err(format!("`{text}` is too long; times go up to {:.0}s (three years)", limits::SECONDS));
    }
    Ok(Time(ns.round() as u64))
}

/// Reads a rate, like `"54Mbit/s"`; the error is a sentence for the user.
pub fn rate(text: &str) -> Result<Rate, String> {
    if is_bare(text)
        && let Ok(with_unit) = with_unit(text, &RATE, rate)
    {
        return Err(format!("`{}` has no unit; write it like \"{with_unit}\"", text.trim()));
    }
    let bits = read(text, &RATE)?.round();
    if bits < limits::LEAST_RATE as f64 || bits > limits::RATE as f64 {
        return Err(format!(
            "`{text}` is out of range; rates are from {}bit/s to {}",
            limits::LEAST_RATE,
            show(limits::RATE as f64, &RATE)
        ));
    }
    Ok(Rate(bits as u64))
}

/// Reads a number of bytes, like `"40GB"`; the error is a sentence for the user.
pub fn bytes(text: &str) -> Result<u64, String> {
    read(text, &BYTES).map(|bytes| bytes as u64)
}

/// Reads the length of a queue.
pub(crate) fn length(text: &str) -> Result<Length, String> {
    let (x, factor, unit) = parts(text, &LENGTH)?;
    Ok(match unit {
        "bdp" => Length::Bdp(x),
        "pkt" => Length::Packets(x),
        _ => Length::Bytes(x * factor),
    })
}

/// Reads a coordinate in metres: a distance, possibly negative.
pub(crate) fn coordinate(text: &str) -> Result<f64, String> {
    let (sign, distance) = text.trim().strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let metres = read(distance, &DISTANCE)?;
    if metres > limits::METRES {
        return Err(format!("`{text}` is too far; places are within {:.0}km", limits::METRES / 1e3));
    }
    Ok(if metres == 0.0 { 0.0 } else { sign * metres })
}

/// Writes a coordinate.
pub(crate) fn show_coordinate(metres: f64) -> String {
    format!("{}{}", if metres < 0.0 { "-" } else { "" }, show(metres.abs(), &DISTANCE))
}

/// Reads a ratio: `"1%"`.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let bad = || format!("`{text}` is not a ratio; write a number like 0.01 or a text like \"1%\"");
    let digits = text.trim().strip_suffix('%').ok_or_else(bad)?;
    match digits.trim_end().parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x / 100.0),
        _ => Err(bad()),
    }
}

/// Reads a ratio in decibels: `"20dB"`.
pub(crate) fn decibels(text: &str) -> Result<f64, String> {
    let bad = || format!("`{text}` is not a ratio in decibels; write a number like 20 or a text like \"20dB\"");
    match text.trim().strip_suffix("dB").ok_or_else(bad)?.trim_end().parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => Err(bad()),
    }
}

/// Reads a number of packets: `"50pkt"`.
pub(crate) fn packets(text: &str) -> Result<f64, String> {
    match length(text) {
        Ok(Length::Packets(x)) => Ok(x),
        _ => Err(format!("`{text}` is not a number of packets; write a number like 50 or a text like \"50pkt\"")),
    }
}

/// Whether a text is a number without a unit.
pub(crate) fn is_bare(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok_and(f64::is_finite)
}

/// How to write a number without a unit as this quantity: with the unit in which other programs take it. Where that is hardly
/// what was meant, or `read` refuses it, an example with all units.
pub(crate) fn with_unit<T: PartialEq>(
    number: &str,
    dimension: &Dimension,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<String, String> {
    found_unit(number.trim(), dimension, read).ok_or_else(|| any_unit(dimension))
}

fn found_unit<T: PartialEq>(
    number: &str,
    dimension: &Dimension,
    read: impl Fn(&str) -> Result<T, String>,
) -> Option<String> {
    let x: f64 = number.parse().ok()?;
    let (least, most) = dimension.usual;
    if !(least..=most).contains(&x.abs()) && (x != 0.0 || dimension.bare.is_empty()) {
        return None;
    }
    let meant = read(&format!("{number}{}", dimension.bare)).ok()?;
    let (sign, digits, exponent) = decimal(number)?;
    let units = &dimension.units[..dimension.written];
    let (_, one) = units.iter().find(|(unit, _)| *unit == dimension.bare)?;
    let base = exponent + power_of_ten(*one);
    if x == 0.0 {
        return Some(format!("0{}", dimension.bare));
    }
    if dimension.whole && base < 0 {
        return None;
    }
    let texts = units.iter().enumerate().filter_map(|(i, (unit, factor))| {
        let shift = base - power_of_ten(*factor);
        let at_least_one = digits.len() as i32 + shift > 0 || i + 1 == units.len();
        // 1500 bytes, and 1000: the lengths of packets.
        let short = at_least_one && (dimension.fractions || (shift >= 0 && (x >= 1e4 || *unit == dimension.bare)));
        short.then(|| format!("{sign}{}{unit}", shifted(&digits, shift)))
    });
    // One of them keeps the value to the last bit, as `read` rounds it.
    texts.chain([format!("{number}{}", dimension.bare)]).find(|text| read(text).as_ref() == Ok(&meant))
}

/// An example with all units.
fn any_unit(dimension: &Dimension) -> String {
    format!("\"{}\" (units: {})", dimension.example, dimension.names().collect::<Vec<_>>().join(", "))
}

/// The same for lengths of queues.
pub(crate) fn any_length() -> String {
    any_unit(&LENGTH)
}

/// The number as sign, digits without zeros at the ends, and exponent: -0.025 is `-`, `25`, -3.
fn decimal(number: &str) -> Option<(&'static str, String, i32)> {
    let sign = if number.starts_with('-') { "-" } else { "" };
    let plain = number.trim_start_matches(['-', '+']);
    // Beyond 2^53 a float would change the digits.
    let shortest = match plain.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("{plain}e0"),
        false => format!("{:e}", plain.parse::<f64>().ok()?),
    };
    let (mantissa, exponent) = shortest.split_once('e')?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let kept = digits.trim_end_matches('0');
    let exponent = exponent.parse::<i32>().ok()? - part.len() as i32 + (digits.len() - kept.len()) as i32;
    Some((sign, kept.trim_start_matches('0').to_string(), exponent))
}

/// These digits times a power of ten, written out.
fn shifted(digits: &str, power: i32) -> String {
    let length = digits.len() as i32;
    if power >= 0 {
        format!("{digits}{}", "0".repeat(power as usize))
    } else if length + power > 0 {
        let (whole, part) = digits.split_at((length + power) as usize);
        format!("{whole}.{part}")
    } else {
        format!("0.{}{digits}", "0".repeat((-power - length) as usize))
    }
}

/// The exponent of a power of ten.
fn power_of_ten(x: f64) -> i32 {
    if x >= 10.0 { 1 + power_of_ten(x / 10.0) } else { 0 }
}

/// Writes a value in the largest unit that keeps it short, such that reading it gives the same value.
pub(crate) fn show(value: f64, dimension: &Dimension) -> String {
    if value == 0.0 {
        return format!("0{}", dimension.bare);
    }
    let units = &dimension.units[..dimension.written];
    for (unit, factor) in units {
        let x = value / factor;
        let short = x.fract() == 0.0 || (dimension.fractions && x >= 1.0 && format!("{x}").len() <= 6);
        if short && x * factor == value {
            return format!("{x}{unit}");
        }
    }
    let (base, factor) = units[units.len() - 1];
    format!("{}{base}", value / factor)
}

/// Writes a length of a queue.
pub(crate) fn show_length(length: Length) -> String {
    match length {
        Length::Bytes(x) => show(x, &BYTES),
        Length::Packets(x) => format!("{x}pkt"),
        Length::Bdp(x) => format!("{x:?}bdp"),
    }
}

/// Number, multiplier and unit.
fn parts<'a>(text: &'a str, dimension: &Dimension) -> Result<(f64, f64, &'a str), String> {
    let Dimension { noun, example, .. } = dimension;
    let shown: String = text.chars().take(60).collect();
    let trimmed = text.trim();
    let end = number_end(trimmed);
    let (digits, unit) = (&trimmed[..end], trimmed[end..].trim_start());
    let unit = if unit == GREEK_MICRO { MICRO } else { unit };
    let x: f64 = digits.parse().map_err(|_| format!("`{shown}` is not {noun}; write it like \"{example}\""))?;
    if !x.is_finite() {
        return Err(format!("`{shown}` is not a finite number"));
    }
    if x < 0.0 {
        return Err(format!("`{shown}` is negative; {noun} is zero or more, like \"{example}\""));
    }
    match dimension.units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok((x, *factor, unit)),
        None if unit.is_empty() => Err(format!("`{shown}` has no unit; write it like {}", any_unit(dimension))),
        None => {
            let names: Vec<&str> = dimension.names().collect();
            let hint = match meant(unit, &names) {
                Some(meant) => format!("did you mean \"{digits}{meant}\"?"),
                None => format!("write it like {}", any_unit(dimension)),
            };
            Err(format!(
                "`{shown}` is not {noun}: there is no unit `{}`; {hint}",
                unit.chars().take(30).collect::<String>()
            ))
        }
    }
}

/// The correct unit for a common mistake: `Mb/s` are bits, not bytes, and `h` is not a second.
fn meant<'a>(unit: &str, names: &[&'a str]) -> Option<&'a str> {
    let prefix = |u: &str| u.chars().next().map(|c| c.to_ascii_lowercase());
    let spelt = unit.strip_suffix("b/s").map(|prefix| format!("{prefix}bit/s").replace("Kb", "kb"));
    if let Some(known) = names.iter().find(|n| Some(**n) == spelt.as_deref()) {
        return Some(known);
    }
    let binary = |u: &str| u.chars().nth(1) == Some('i'); // `Mi` is 1.05 times `M`
    near(unit, names).filter(|n| {
        let same = prefix(unit) == prefix(n) && unit.contains('B') == n.contains('B') && binary(unit) == binary(n);
        unit.len() > 1 && same
    })
}

/// Length of the number that `text` begins with.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut i: usize| {
        while bytes.get(i).is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
            i += 1;
        }
        i
    };
    let sign = |i: usize| i + usize::from(matches!(bytes.get(i), Some(b'+' | b'-')));
    let mantissa = digits(sign(0));
    if matches!(bytes.get(mantissa), Some(b'e' | b'E')) {
        let from = sign(mantissa + 1);
        let exponent = digits(from);
        if exponent > from {
            return exponent;
        }
    }
    mantissa
}
