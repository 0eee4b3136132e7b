//! The pre-shared key and its authentication codes.
//!
//! A key is 32 random bytes, in a file as 64 hexadecimal digits that only its owner may read. SYNs and their answers carry a
//! code (HMAC-SHA-256, RFC 2104, its first 16 bytes) over their content; codes are compared in constant time.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ring::hmac;

use crate::error::{Context, Error, Result};

/// Bytes of a code or a cookie.
pub const CODE: usize = 16;
/// A code, or a cookie.
pub type Code = [u8; CODE];
/// Bytes of a key.
const KEY: usize = 32;

/// Random bytes of the system.
pub fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut bytes))
        .or_fail(|| "read random bytes".to_string())?;
    Ok(bytes)
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Reads exactly this number of bytes in hexadecimal digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// A secret of 32 bytes. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; KEY]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A new, random key.
    pub fn random() -> Result<Key> {
        random().map(Key)
    }
    /// The key of these bytes.
    pub fn new(bytes: [u8; KEY]) -> Key {
        Key(bytes)
    }
    /// Reads a key from a file, which must not be readable by others.
    pub fn load(path: &Path) -> Result<Key> {
        let what = || format!("read the key {}", path.display());
        let mut file = File::open(path).map_err(|e| Error::Failed(format!("cannot {}: {e}", what())))?;
        let mode = file.metadata().or_fail(what)?.mode();
        if mode & 0o077 != 0 {
            let message = format!("{}: others may read or write this key; `chmod 600` it", path.display());
            return Err(Error::Input(message));
        }
        let mut text = String::new();
        let read = Read::by_ref(&mut file).take(1000).read_to_string(&mut text);
        let key = read.ok().and_then(|_| unhex(text.trim()));
        key.map(Key).ok_or_else(|| {
            Error::Input(format!(
                "{} is not a key: `explicated keygen FILE` makes one, 64 hexadecimal digits",
                path.display()
            ))
        })
    }
    /// Writes it into a new file that only its owner may read.
    pub fn save(&self, path: &Path) -> Result<()> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let written = made.and_then(|mut file| writeln!(file, "{}", hex(&self.0)).and_then(|()| file.sync_all()));
        written.map_err(|e| Error::Failed(format!("cannot write the key {}: {e}", path.display())))
    }

    /// The code of these parts, for the use that `label` names.
    pub fn code(&self, label: &str, parts: &[&[u8]]) -> Code {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        for part in std::iter::once(label.as_bytes()).chain(parts.iter().copied()) {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        *context.sign().as_ref().first_chunk().unwrap_or(&[0; CODE])
    }
    /// Whether that is their code, in constant time.
    pub fn is_code(&self, label: &str, parts: &[&[u8]], code: &Code) -> bool {
        same(&self.code(label, parts), code)
    }
}

/// The code of a SYN, over the flow's number, its options and all parameters before it, the cookie included.
pub fn greeting_code(key: &Key, number: u64, options: u8, words: &[u8]) -> Code {
    key.code("explicate/2 greeting", &[&number.to_be_bytes(), &[options], words])
}

/// Whether that is the code of a SYN.
pub fn is_greeting_code(key: &Key, number: u64, options: u8, words: &[u8], code: &Code) -> bool {
    key.is_code("explicate/2 greeting", &[&number.to_be_bytes(), &[options], words], code)
}

/// The code of the answer to a SYN, over the flow's number, the options granted, the SYN's own code and the number of bytes that the
/// receiver has already.
pub fn answer_code(key: &Key, number: u64, options: u8, greeting: &Code, have: u64) -> Code {
    key.code("explicate/2 answer", &[&number.to_be_bytes(), &[options], greeting, &have.to_be_bytes()])
}

/// Whether that is the code of an answer.
pub fn is_answer_code(key: &Key, number: u64, options: u8, greeting: &Code, have: u64, code: &Code) -> bool {
    key.is_code("explicate/2 answer", &[&number.to_be_bytes(), &[options], greeting, &have.to_be_bytes()], code)
}

/// The code of a request for a cookie for this flow.
pub fn knock_code(key: &Key, number: u64) -> Code {
    key.code("explicate/2 knock", &[&number.to_be_bytes()])
}

/// Whether that is the code of a request for a cookie.
pub fn is_knock_code(key: &Key, number: u64, code: &Code) -> bool {
    key.is_code("explicate/2 knock", &[&number.to_be_bytes()], code)
}

/// Bytes of the shortened codes in messages.
pub const SHORT: usize = 12;

/// A code shortened to the space in a message.
pub type ShortCode = [u8; SHORT];

fn short(code: Code) -> ShortCode {
    *code.first_chunk().unwrap_or(&[0; SHORT])
}

/// The code of a verdict on a transfer.
pub fn verdict_code(key: &Key, number: u64, verdict: u8, payload: u64) -> ShortCode {
    short(key.code("explicate/2 verdict", &[&number.to_be_bytes(), &[verdict], &payload.to_be_bytes()]))
}

/// Whether that is the code of a verdict.
pub fn is_verdict_code(key: &Key, number: u64, verdict: u8, payload: u64, code: &ShortCode) -> bool {
    same(&verdict_code(key, number, verdict, payload), code)
}

/// The code of a probe: the start of its cookie, or the code of the cookie where there is a key.
pub fn probe_code(key: Option<&Key>, cookie: &Code) -> ShortCode {
    short(key.map_or(*cookie, |key| key.code("explicate/2 probe", &[cookie])))
}

/// Whether two codes are equal, in constant time.
pub fn same<const N: usize>(a: &[u8; N], b: &[u8; N]) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn hexadecimal_digits_come_back() {
        assert_eq!(unhex(&hex(&[0, 1, 0xab, 0xff])), Some([0, 1, 0xab, 0xff]));
        assert_eq!(unhex::<2>("00g0"), None);
        assert_eq!(unhex::<2>("00000"), None);
    }

    /// Computed with Python's `hmac`: the length of the label in 8 bytes, then the label.
    #[test]
    fn codes_are_hmac_sha_256() {
        let code = Key::new([0x0b; KEY]).code("Hi There", &[]);
        assert_eq!(hex(&code), "0bc448fbd942bda00fa596aed1a2014d");
    }

    #[test]
    fn every_part_counts() {
        let key = Key::new([1; KEY]);
        let code = greeting_code(&key, 7, 0x80, b"explicate/2 a");
        assert!(is_greeting_code(&key, 7, 0x80, b"explicate/2 a", &code));
        assert!(!is_greeting_code(&key, 8, 0x80, b"explicate/2 a", &code));
        assert!(!is_greeting_code(&key, 7, 0x00, b"explicate/2 a", &code));
        assert!(!is_greeting_code(&key, 7, 0x80, b"explicate/2 b", &code));
        assert!(!is_greeting_code(&Key::new([2; KEY]), 7, 0x80, b"explicate/2 a", &code));
        let answer = answer_code(&key, 7, 0x80, &code, 5);
        assert!(is_answer_code(&key, 7, 0x80, &code, 5, &answer));
        assert!(
            !is_answer_code(&key, 7, 0x80, &code, 6, &answer) && !is_answer_code(&key, 7, 0x80, &answer, 5, &answer)
        );
        let verdict = verdict_code(&key, 7, 1, 99);
        assert!(is_verdict_code(&key, 7, 1, 99, &verdict) && !is_verdict_code(&key, 7, 2, 99, &verdict));
        assert!(same(&verdict, &verdict) && !same(&verdict, &verdict_code(&key, 8, 1, 99)));
        assert_ne!(probe_code(Some(&key), &code), probe_code(None, &code));
        assert_ne!(key.code("a", &[b"bc"]), key.code("a", &[b"b", b"c"]), "parts do not run together");
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("explicate-key-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let key = Key::random().unwrap();
        key.save(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Key::load(&path).unwrap(), key);
        assert!(key.save(&path).is_err(), "an existing file is not replaced");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(Key::load(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short").unwrap();
        assert!(Key::load(&path).unwrap_err().to_string().contains("keygen"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(format!("{key:?}"), "Key");
    }
}
