//! The payload of a SYN, its greeting: parameters for the receiver of the flow, as text.
//!
//! `explicate/2 protocol=NAME packet=1500 ack_every=1 ack_delay_us=100000`
//!
//! Words are `key=value`, separated by one space; unknown keys are ignored, so that later versions can add some.
//! Defaults are omitted: `window` (segments), `quick_acks`, `acks` (the word of the flow's parameter; a receiver that does not know
//! it acknowledges by the numbers) and `refuse_explicit`.

use explicate_core::endpoint::{Acks, Params};
use explicate_core::params::Values;

/// The version of the format.
pub const VERSION: u32 = 2;
const NAME: &str = "explicate/";
/// Longest payload that is parsed, bytes.
pub const LONGEST: usize = 700;

/// The version of a payload; `None` if it is not a greeting.
pub fn version(bytes: &[u8]) -> Option<u32> {
    let rest = bytes.strip_prefix(NAME.as_bytes())?;
    let digits = rest.split(|&b| b == b' ').next().filter(|d| (1..=9).contains(&d.len()))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A greeting.
#[derive(Clone, PartialEq, Debug)]
pub struct Hello {
    /// Preset, protocol, or `protocol/recovery`.
    pub protocol: String,
    /// IP length of a full packet, bytes.
    pub packet: u16,
    /// Packets per acknowledgement.
    pub ack_every: u32,
    /// Longest delay of an acknowledgement, microseconds.
    pub ack_delay_us: u32,
    /// Receive window in segments, if the sender limits it.
    pub window: Option<u32>,
    /// Acknowledgements at the beginning that are sent for each packet.
    pub quick_acks: u32,
    /// The rule of acknowledgements; `counted` goes by the three numbers.
    pub acks: Acks,
    /// Makes the receiver refuse explicit feedback, to test the sender's fall-back.
    pub refuse_explicit: bool,
}

impl Hello {
    /// The greeting of a flow with these values.
    pub fn new(protocol: &str, packet: u16, values: &Values) -> Hello {
        let params = Params::of(values);
        let limited = values.given().iter().any(|(name, _)| *name == "receiver_window");
        Hello {
            protocol: protocol.to_string(),
            packet,
            ack_every: params.ack_every as u32,
            ack_delay_us: (params.ack_delay * 1e6).round() as u32,
            window: limited.then_some(params.receiver_window as u32),
            quick_acks: params.quick_acks as u32,
            acks: params.acks,
            refuse_explicit: params.refuse_explicit,
        }
    }
    /// Its words.
    pub fn words(&self) -> String {
        let Hello { protocol, packet, ack_every, ack_delay_us, window, quick_acks, acks, refuse_explicit } = self;
        let mut words = format!(
            "{NAME}{VERSION} protocol={protocol} packet={packet} ack_every={ack_every} ack_delay_us={ack_delay_us}"
        );
        if let Some(window) = window {
            words += &format!(" window={window}");
        }
        if *quick_acks > 0 {
            words += &format!(" quick_acks={quick_acks}");
        }
        match acks {
            Acks::Counted => {}
            Acks::Linux => words += " acks=linux",
        }
        if *refuse_explicit {
            words += " refuse_explicit=1";
        }
        words
    }
    /// Parses a greeting; `None` if it is invalid.
    pub fn parse(bytes: &[u8]) -> Option<Hello> {
        let text = std::str::from_utf8(bytes).ok().filter(|t| t.len() <= LONGEST)?;
        let mut words = text.split(' ');
        if version(words.next()?.as_bytes()) != Some(VERSION) {
            return None;
        }
        let (mut protocol, mut packet) = (None, None);
        let (mut ack_every, mut ack_delay_us) = (1, 100_000);
        let (mut window, mut quick_acks, mut acks) = (None, 0, Acks::Counted);
        let mut refuse_explicit = false;
        for word in words {
            let (key, value) = word.split_once('=')?;
            match key {
                "protocol" => protocol = Some(value).filter(|v| is_plain(v, "/._-+")),
                "packet" => packet = value.parse().ok().filter(|p| (100..=9000).contains(p)),
                "ack_every" => ack_every = value.parse().ok().filter(|n| (1..=1000).contains(n))?,
                "ack_delay_us" => ack_delay_us = value.parse().ok().filter(|n| (1..=500_000).contains(n))?,
                "window" => window = Some(value.parse().ok().filter(|n| (1..=1_000_000_000).contains(n))?),
                "quick_acks" => quick_acks = value.parse().ok().filter(|n| *n <= 1_000_000)?,
                // A rule of a later version is not known: the numbers count.
                "acks" => acks = if value == "linux" { Acks::Linux } else { Acks::Counted },
                "refuse_explicit" => refuse_explicit = value == "1",
                _ => {}
            }
        }
        let (protocol, packet) = (protocol?.to_string(), packet?);
        Some(Hello { protocol, packet, ack_every, ack_delay_us, window, quick_acks, acks, refuse_explicit })
    }
}

fn is_plain(text: &str, more: &str) -> bool {
    !text.is_empty() && text.len() <= 100 && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::rng::Rng;

    #[test]
    fn words_come_back() {
        let hello = Hello::new("LR-LMXCP", 1000, &Values::default());
        assert_eq!(hello.words(), "explicate/2 protocol=LR-LMXCP packet=1000 ack_every=1 ack_delay_us=100000");
        assert_eq!(Hello::parse(hello.words().as_bytes()), Some(hello));
    }

    #[test]
    fn what_the_receiving_end_of_a_flow_is_told_comes_back() {
        let mut values = Values::default();
        for (name, value) in [
            ("receiver_window", 20.0),
            ("quick_acks", 16.0),
            ("refuse_explicit", 1.0),
            ("ack_every", 2.0),
            ("acks", 1.0),
        ] {
            values.set(Params::PARAMS.iter().find(|p| p.name == name).unwrap(), value);
        }
        let hello = Hello::new("xcp", 1500, &values);
        assert_eq!((hello.window, hello.quick_acks, hello.refuse_explicit, hello.ack_every), (Some(20), 16, true, 2));
        assert_eq!(hello.acks, Acks::Linux);
        assert!(hello.words().ends_with(" window=20 quick_acks=16 acks=linux refuse_explicit=1"));
        assert_eq!(Hello::parse(hello.words().as_bytes()), Some(hello));
    }

    #[test]
    fn nonsense_is_refused() {
        let good = "explicate/2 protocol=xcp packet=1000";
        assert!(Hello::parse(good.as_bytes()).is_some());
        for bad in [
            "",
            "explicate/1 protocol=xcp packet=1000",
            "explicate/3 protocol=xcp packet=1000",
            "explicate/2 protocol=xcp",
            "explicate/2 packet=1000 protocol=x;y",
        ] {
            assert_eq!(Hello::parse(bad.as_bytes()), None, "{bad}");
        }
        for more in ["x", "ack_every=0", "window=0", "window=-1", "quick_acks=1e9", "packet=99"] {
            assert_eq!(Hello::parse(format!("{good} {more}").as_bytes()), None, "{more}");
        }
        assert!(Hello::parse(format!("{good} later=1").as_bytes()).is_some());
        let acks = |word: &str| Hello::parse(format!("{good}{word}").as_bytes()).map(|hello| hello.acks);
        assert_eq!(acks(""), Some(Acks::Counted), "an older sender says nothing");
        assert_eq!([" acks=linux", " acks=later"].map(acks), [Some(Acks::Linux), Some(Acks::Counted)]);
        let mut rng = Rng::stream(1, "hello");
        for _ in 0..20_000 {
            let mut bytes = good.as_bytes().to_vec();
            for _ in 0..3 {
                let at = rng.next_u64() as usize % bytes.len();
                bytes[at] = rng.next_u64() as u8;
            }
            let _ = Hello::parse(&bytes);
        }
    }
    #[test]
    fn versions_are_numbers() {
        let found = (version(b"explicate/1 x"), version(b"explicate/12"), version(b"explicate/ 1"));
        assert_eq!(found, (Some(1), Some(12), None));
    }
}
