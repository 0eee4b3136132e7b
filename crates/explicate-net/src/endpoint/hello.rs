//! The payload of a SYN, its greeting: parameters for the receiver of the flow, as text.
//!
//! `explicate/2 protocol=NAME packet=1500 ack_every=1 ack_delay_us=100000 kind=file name=a.iso size=1234 mode=644 digest=HEX modified=SECONDS
//! cookie=HEX mac=HEX`
//!
//! Words are `key=value`, separated by one space; unknown keys are ignored, so that later versions can add some.
//! Defaults are omitted: `window` (segments), `quick_acks`, `acks` (the word of the flow's parameter; a receiver that does not know
//! it acknowledges by the numbers), `refuse_explicit`, and `instead`, the number of a flow from the same address and port that this
//! one replaces, with shorter packets. `digest` is the SHA-256 of the file,
//! `cookie` is the receiver's, and `mac`, always last, the code over all preceding words
//! ([`greeting_code`](super::auth::greeting_code)).

use explicate_core::endpoint::{Acks, Params};
use explicate_core::params::Values;

use super::auth::{Code, hex, unhex};

/// The version of the format.
pub const VERSION: u32 = 2;
const NAME: &str = "explicate/";
/// Longest payload that is parsed, bytes.
pub const LONGEST: usize = 700;
/// Bytes of a file's SHA-256.
pub const SHA: usize = 32;

/// The version of a payload; `None` if it is not a greeting.
pub fn version(bytes: &[u8]) -> Option<u32> {
    let rest = bytes.strip_prefix(NAME.as_bytes())?;
    let digits = rest.split(|&b| b == b' ').next().filter(|d| (1..=9).contains(&d.len()))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The authentication of a greeting, available before its words are parsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealed<'a> {
    /// The words that its code covers.
    pub words: &'a [u8],
    /// Its cookie.
    pub cookie: Option<Code>,
    /// Its code.
    pub code: Option<Code>,
}

impl Sealed<'_> {
    /// Splits off cookie and code, the last two words.
    pub fn of(greeting: &[u8]) -> Sealed<'_> {
        let (words, code) = last_word(greeting, b"mac=");
        Sealed { words, cookie: last_word(words, b"cookie=").1, code }
    }
}

/// Splits off the code of the last word, if its key is `key`.
fn last_word<'a>(bytes: &'a [u8], key: &[u8]) -> (&'a [u8], Option<Code>) {
    let found = bytes.iter().rposition(|&b| b == b' ').and_then(|at| {
        let digits = std::str::from_utf8(bytes[at + 1..].strip_prefix(key)?).ok()?;
        Some((&bytes[..at], unhex(digits)?))
    });
    found.map_or((bytes, None), |(words, code)| (words, Some(code)))
}

/// Words followed by the cookie.
pub fn with_cookie(words: &str, cookie: &Code) -> String {
    format!("{words} cookie={}", hex(cookie))
}

/// Words followed by their code.
pub fn with_code(words: &str, code: &Code) -> String {
    format!("{words} mac={}", hex(code))
}

/// The content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Filler data.
    Nothing,
    /// A file.
    File {
        /// Its name, without folders.
        name: String,
        /// Its length, bytes.
        size: u64,
        /// Its permissions, without set-user-ID, set-group-ID and sticky bits.
        mode: u32,
        /// Its SHA-256.
        digest: [u8; SHA],
        /// Time of its last modification, seconds since 1970, if known.
        modified: Option<u64>,
    },
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
    /// The content.
    pub content: Content,
    /// The flow of this sender that it replaces, if any.
    pub instead: Option<u64>,
}

impl Hello {
    /// The greeting of a flow with these values.
    pub fn new(protocol: &str, packet: u16, values: &Values, content: Content) -> Hello {
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
            content,
            instead: None,
        }
    }
    /// Its words.
    pub fn words(&self) -> String {
        let Hello { protocol, packet, ack_every, ack_delay_us, window, quick_acks, acks, .. } = self;
        let Hello { refuse_explicit, content, instead, .. } = self;
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
        if let Content::File { name, size, mode, digest, modified } = content {
            words += &format!(" kind=file name={name} size={size} mode={mode:o} digest={}", hex(digest));
            if let Some(seconds) = modified {
                words += &format!(" modified={seconds}");
            }
        }
        if let Some(instead) = instead {
            words += &format!(" instead={instead:x}");
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
        let (mut protocol, mut packet, mut kind) = (None, None, None);
        let (mut name, mut size, mut mode, mut digest, mut modified) = (None, None, 0o644, None, None);
        let (mut ack_every, mut ack_delay_us) = (1, 100_000);
        let (mut window, mut quick_acks, mut acks) = (None, 0, Acks::Counted);
        let (mut refuse_explicit, mut instead) = (false, None);
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
                "instead" => instead = Some(u64::from_str_radix(value, 16).ok()?),
                "kind" => kind = Some(value),
                "name" => name = Some(value).filter(|v| is_file_name(v)),
                "size" => size = value.parse().ok(),
                "mode" => mode = u32::from_str_radix(value, 8).ok().filter(|m| *m <= 0o777)?,
                "digest" => digest = unhex(value),
                "modified" => modified = value.parse().ok(),
                _ => {}
            }
        }
        let content = match kind {
            None => Content::Nothing,
            Some("file") => Content::File { name: name?.to_string(), size: size?, mode, digest: digest?, modified },
            Some(_) => return None,
        };
        let (protocol, packet) = (protocol?.to_string(), packet?);
        Some(Hello {
            protocol,
            packet,
            ack_every,
            ack_delay_us,
            window,
            quick_acks,
            acks,
            refuse_explicit,
            content,
            instead,
        })
    }
}

fn is_plain(text: &str, more: &str) -> bool {
    !text.is_empty() && text.len() <= 100 && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

/// Whether this is a valid name for a received file: no folders, not hidden, not like a command's option.
fn is_file_name(text: &str) -> bool {
    is_plain(text, "._-+") && !text.starts_with(['.', '-'])
}

/// The name under which a file is offered: its last component, with special characters and a leading dash replaced.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).take(100).collect();
    let name = name.trim_start_matches('.');
    match name.strip_prefix('-') {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "file".to_string(),
        None => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::rng::Rng;

    #[test]
    fn words_come_back() {
        let content = Content::File {
            name: file_name("a b.tar.gz"),
            size: 1 << 40,
            mode: 0o750,
            digest: [0xab; SHA],
            modified: Some(7),
        };
        let hello = Hello::new("LR-LMXCP", 1000, &Values::default(), content);
        assert_eq!(
            hello.words(),
            format!(
                "explicate/2 protocol=LR-LMXCP packet=1000 ack_every=1 ack_delay_us=100000 kind=file name=a_b.tar.gz \
                 size=1099511627776 mode=750 digest={} modified=7",
                "ab".repeat(SHA)
            )
        );
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
        let hello = Hello { instead: Some(0xbeef), ..Hello::new("xcp", 1500, &values, Content::Nothing) };
        assert_eq!((hello.window, hello.quick_acks, hello.refuse_explicit, hello.ack_every), (Some(20), 16, true, 2));
        assert_eq!(hello.acks, Acks::Linux);
        assert!(hello.words().ends_with(" window=20 quick_acks=16 acks=linux refuse_explicit=1 instead=beef"));
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
        for (path, name) in [("-rf", "_rf"), ("..x", "x"), (".-x", "_x"), ("...", "file"), ("a-b", "a-b")] {
            assert_eq!(file_name(path), name);
            assert!(is_file_name(&file_name(path)));
        }
        let digest = format!("digest={}", "00".repeat(SHA));
        assert!(Hello::parse(format!("{good} kind=file name=x size=5 {digest}").as_bytes()).is_some());
        for more in [
            &format!("kind=file size=5 {digest}"),
            &format!("kind=file name=../x size=5 {digest}"),
            &format!("kind=file name=.ssh size=5 {digest}"),
            &format!("kind=file name=-rf size=5 {digest}"),
            &format!("kind=file name=x {digest}"),
            &format!("kind=file name=x size=5 mode=4755 {digest}"),
            "kind=file name=x size=5",
            "kind=file name=x size=5 digest=00",
            "kind=tape",
            "x",
            "ack_every=0",
            "window=0",
            "window=-1",
            "quick_acks=1e9",
            "packet=99",
            "instead=x",
        ] {
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
    fn seals_are_the_last_words() {
        let words = with_cookie("explicate/2 protocol=xcp packet=1000", &[1; 16]);
        let whole = with_code(&words, &[2; 16]);
        let sealed = Sealed::of(whole.as_bytes());
        assert_eq!(sealed, Sealed { words: words.as_bytes(), cookie: Some([1; 16]), code: Some([2; 16]) });
        assert!(Hello::parse(whole.as_bytes()).is_some());
        assert_eq!(Sealed::of(words.as_bytes()).code, None);
        assert_eq!(Sealed::of(words.as_bytes()).cookie, Some([1; 16]));
        let swapped = Sealed::of(b"explicate/2 mac=00000000000000000000000000000000 cookie=");
        assert_eq!((swapped.cookie, swapped.code), (None, None));
        assert_eq!(
            (version(b"explicate/1 x"), version(b"explicate/12"), version(b"explicate/ 1")),
            (Some(1), Some(12), None)
        );
    }
}
