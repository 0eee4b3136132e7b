//! What streams begin with, and the answers.
//!
//! A stream begins with its kind, one byte: 0 a secret of 16 bytes, 1 a file, 2 a folder, 3 filler data, 4 a request to be
//! [`probed`](super::probed). A file or folder has a header:
//!
//! | byte | field |
//! | --- | --- |
//! | 0-7 | length, bytes |
//! | 8-11 | permissions |
//! | 12-19 | time of the last modification, seconds since 1970 |
//! | 20-51 | SHA-256; zeros for a folder |
//! | 52-53 | length of the name |
//! | 54- | the name: folders and file with slashes between them, UTF-8 |
//!
//! The receiver answers with 9 bytes: 0 and how many bytes of the file it has, or the number of a [`Refusal`]. When the stream has ended, 9
//! bytes follow: the number of a [`Verdict`], and how many bytes arrived. A request is answered like an offer, with the number that its
//! probes carry, which is valid until its stream ends. All numbers are big-endian.

use crate::digest::LEN as SHA;

/// Bytes of a header before the name.
pub const HEADER: usize = 54;
/// Bytes of an answer or a verdict.
pub const ANSWER: usize = 9;
/// Longest name, bytes.
pub const LONGEST_NAME: usize = 4096;
/// Longest part of a name, bytes, as file systems have it.
const LONGEST_PART: usize = 255;
/// Most folders within each other.
const DEEPEST: usize = 64;

/// Kinds of streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The secret of an invitation.
    Secret,
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Filler data.
    Filler,
    /// A request to be probed.
    Probe,
}

impl Kind {
    /// The kind of this number.
    pub fn of(number: u8) -> Option<Kind> {
        [Kind::Secret, Kind::File, Kind::Folder, Kind::Filler, Kind::Probe].get(number as usize).copied()
    }
}

/// A file that a sender offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Its name, after those of the folders that it is in, with slashes between them. Each was found valid.
    pub name: String,
    /// Its length, bytes.
    pub size: u64,
    /// Its SHA-256.
    pub digest: [u8; SHA],
    /// Its permissions; set-user-ID, set-group-ID and sticky bits are ignored.
    pub mode: u32,
    /// Time of its last modification, seconds since 1970, if known.
    pub modified: Option<u64>,
}

/// The verdict on a transfer. The number 5 was of an older transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All data arrived, and the digest is right.
    Same = 1,
    /// All data arrived, but the digest differs.
    Differs = 2,
    /// Some data are missing.
    Missing = 3,
    /// It could not be written.
    NotWritten = 4,
    /// The disk is full.
    Full = 6,
    /// All data arrived, but another file got its name meanwhile.
    NameExists = 7,
}

const VERDICTS: [Verdict; 6] =
    [Verdict::Same, Verdict::Differs, Verdict::Missing, Verdict::NotWritten, Verdict::Full, Verdict::NameExists];

impl Verdict {
    /// Its number in messages.
    pub fn number(self) -> u8 {
        self as u8
    }
    /// What it means to the sender's user, unless all is well; the receiver may have held a part before this transfer.
    pub fn problem(self, held_before: bool) -> Option<&'static str> {
        Some(match self {
            Verdict::Same => return None,
            Verdict::Differs if held_before => {
                "the received file differs from the one sent: the part of an earlier transfer was damaged, or the file has \
                 changed; the other end has removed it: send it again"
            }
            Verdict::Differs => "the received file differs from the one sent: its SHA-256 differs",
            Verdict::Missing => "the other end has not received everything",
            Verdict::NotWritten => "the other end could not write the file",
            Verdict::Full => "the other end's disk is full",
            Verdict::NameExists => "meanwhile the other end has another file of this name, and does not replace it",
        })
    }
    /// The verdict of this number.
    pub fn of(number: u8) -> Option<Verdict> {
        VERDICTS.into_iter().find(|verdict| verdict.number() == number)
    }
}

/// Why a file is refused. Other numbers were those of an older transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The offer is invalid.
    Nonsense = 7,
    /// The receiver accepts no files.
    NoFiles = 8,
    /// A file of that name exists.
    NameExists = 9,
    /// This file is being received already.
    Busy = 10,
    /// Another file of this name is being received.
    NameTaken = 11,
    /// There is no space for the file.
    NoSpace = 12,
    /// The file exceeds the quota.
    Quota = 13,
    /// The folder cannot be written.
    NotWritable = 14,
}

const REFUSALS: [Refusal; 8] = [
    Refusal::Nonsense,
    Refusal::NoFiles,
    Refusal::NameExists,
    Refusal::Busy,
    Refusal::NameTaken,
    Refusal::NoSpace,
    Refusal::Quota,
    Refusal::NotWritable,
];

impl Refusal {
    /// Its number in messages.
    pub fn number(self) -> u8 {
        self as u8
    }
    /// The refusal of this number.
    pub fn of(number: u8) -> Option<Refusal> {
        REFUSALS.into_iter().find(|refusal| refusal.number() == number)
    }
    /// The sentence shown to the sender's user.
    pub fn sentence(self) -> &'static str {
        match self {
            Refusal::Nonsense => "the other end takes no such offer",
            Refusal::NoFiles => "the other end accepts no files (its option --to)",
            Refusal::NameExists => {
                "the other end has a file of this name, and does not replace it (its option --replace)"
            }
            Refusal::Busy => "the other end is receiving this file already",
            Refusal::NameTaken => "the other end is receiving another file of this name",
            Refusal::NoSpace => "the other end has no space for this file",
            Refusal::Quota => "the file does not fit into what is left of the other end's quota (its option --quota)",
            Refusal::NotWritable => "the other end may not write into its folder",
        }
    }
}

/// The first bytes of a stream that offers a file or a folder.
pub fn offer(kind: Kind, offer: &Offer) -> Vec<u8> {
    let mut bytes = vec![kind as u8];
    bytes.extend(offer.size.to_be_bytes());
    bytes.extend(offer.mode.to_be_bytes());
    bytes.extend(offer.modified.unwrap_or_default().to_be_bytes());
    bytes.extend(offer.digest);
    bytes.extend((offer.name.len() as u16).to_be_bytes());
    bytes.extend(offer.name.as_bytes());
    bytes
}

/// Reads a header without its name, and the length of that.
pub fn read_header(bytes: &[u8; HEADER]) -> (Offer, usize) {
    let (size, mode, modified) = (part(bytes, 0), part(bytes, 8), part(bytes, 12));
    let mut digest = [0; SHA];
    digest.copy_from_slice(&bytes[20..20 + SHA]);
    let offer = Offer {
        name: String::new(),
        size: u64::from_be_bytes(size),
        mode: u32::from_be_bytes(mode) & 0o777,
        modified: Some(u64::from_be_bytes(modified)),
        digest,
    };
    (offer, u16::from_be_bytes(part(bytes, 52)) as usize)
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
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

/// Whether a receiver takes a file or folder of this name. Each part is a plain name, so the path stays in the receiver's folder.
/// The first part is not hidden and does not begin with a dash.
pub fn is_name(name: &str) -> bool {
    let mut parts = name.split('/');
    let first = parts.next().is_some_and(|first| file_name(first) == first);
    let valid =
        |part: &str| !matches!(part, "" | "." | "..") && part.len() <= LONGEST_PART && !part.contains(char::is_control);
    first && name.len() <= LONGEST_NAME && name.split('/').count() <= DEEPEST && parts.all(valid)
}

/// The answer to an offer.
pub fn answer(taken: Result<u64, Refusal>) -> [u8; ANSWER] {
    match taken {
        Ok(held) => numbered(0, held),
        Err(refusal) => numbered(refusal.number(), 0),
    }
}
/// Reads an answer; `None` if it is none.
pub fn read_answer(bytes: [u8; ANSWER]) -> Option<Result<u64, Refusal>> {
    match bytes[0] {
        0 => Some(Ok(u64::from_be_bytes(part(&bytes, 1)))),
        number => Refusal::of(number).map(Err),
    }
}
/// A verdict, and how many bytes arrived.
pub fn verdict(verdict: Verdict, bytes: u64) -> [u8; ANSWER] {
    numbered(verdict.number(), bytes)
}
/// Reads a verdict.
pub fn read_verdict(bytes: [u8; ANSWER]) -> Option<(Verdict, u64)> {
    Some((Verdict::of(bytes[0])?, u64::from_be_bytes(part(&bytes, 1))))
}

fn numbered(number: u8, count: u64) -> [u8; ANSWER] {
    let mut bytes = [number; ANSWER];
    bytes[1..].copy_from_slice(&count.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_comes_back() {
        let name = "a/ b/ä.tar".to_string();
        let sent = Offer { name, size: 1 << 40, digest: [7; SHA], mode: 0o750, modified: Some(9) };
        let bytes = offer(Kind::File, &sent);
        assert_eq!(Kind::of(bytes[0]), Some(Kind::File));
        let (mut read, length) = read_header(bytes[1..].first_chunk().unwrap());
        read.name = String::from_utf8(bytes[1 + HEADER..][..length].to_vec()).unwrap();
        assert_eq!(read, sent);
        let (nonsense, length) = read_header(&[0xff; HEADER]);
        assert_eq!((nonsense.mode, length), (0o777, 65535), "no set-user-ID");
    }

    #[test]
    fn names_lead_nowhere_else() {
        for good in ["a", "a/b", "a/.git/HEAD", "a/-x", "a/with space/ä"] {
            assert!(is_name(good), "{good}");
        }
        let long = format!("a/{}", "b".repeat(256));
        let deep = "a/".repeat(70) + "b";
        for bad in
            ["", "/", "/etc/passwd", "..", "../a", "a/../b", "a//b", "a/", "a/.", ".ssh", ".ssh/x", "-rf", "a/\n"]
        {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(!is_name(&long) && !is_name(&deep) && !is_name("a/\0"));
        for (path, name) in [("-rf", "_rf"), ("..x", "x"), (".-x", "_x"), ("...", "file"), ("a b", "a_b")] {
            assert!(file_name(path) == name && is_name(name), "{path}");
        }
    }

    #[test]
    fn answers_come_back_and_nonsense_is_none() {
        assert_eq!(read_answer(answer(Ok(1 << 33))), Some(Ok(1 << 33)));
        assert_eq!(read_answer(answer(Err(Refusal::Quota))), Some(Err(Refusal::Quota)));
        assert_eq!(read_verdict(verdict(Verdict::Full, 3)), Some((Verdict::Full, 3)));
        for number in 0..=255 {
            assert_eq!(read_answer([number; ANSWER]).is_some(), number == 0 || (7..=14).contains(&number));
            assert_eq!(read_verdict([number; ANSWER]).is_some(), matches!(number, 1..=4 | 6 | 7));
        }
    }
}
