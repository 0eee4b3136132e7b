//! SHA-256 (FIPS 180-4), by ring, which TLS between gateways needs as well.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ring::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN, digest};

/// Bytes of a digest.
pub const LEN: usize = SHA256_OUTPUT_LEN;
/// Bytes that are read at a time.
const BLOCK: usize = 1 << 18;

fn bytes(digest: &Digest) -> [u8; LEN] {
    *digest.as_ref().first_chunk().unwrap_or(&[0; LEN])
}

/// The digest of these bytes.
pub fn sha256(of: &[u8]) -> [u8; LEN] {
    bytes(&digest(&SHA256, of))
}

/// The digest of the first `most` bytes of a file, or of all if there are fewer, and how many these are. `None` if `stop` becomes true.
pub fn of_file(file: &File, most: u64, stop: impl Fn() -> bool) -> io::Result<Option<([u8; LEN], u64)>> {
    let (mut context, mut at, mut block) = (Context::new(&SHA256), 0, vec![0; BLOCK]);
    while at < most {
        if stop() {
            return Ok(None);
        }
        let length = (most - at).min(BLOCK as u64) as usize;
        match file.read_at(&mut block[..length], at)? {
            0 => break,
            read => {
                context.update(&block[..read]);
                at += read as u64;
            }
        }
    }
    Ok(Some((bytes(&context.finish()), at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    /// The first example of FIPS 180-4 (NIST, "SHA256.pdf").
    #[test]
    fn digests_are_those_of_the_standard_and_of_the_beginning_of_a_file() {
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let path = std::env::temp_dir().join(format!("explicate-digest-{}", std::process::id()));
        let content = vec![7; BLOCK + 5];
        std::fs::write(&path, &content).unwrap();
        let file = File::open(&path).unwrap();
        for (most, length) in [(0, 0), (BLOCK + 1, BLOCK + 1), (2 * BLOCK, content.len())] {
            let found = of_file(&file, most as u64, || false).unwrap();
            assert_eq!(found, Some((sha256(&content[..length]), length as u64)), "{most}");
        }
        assert_eq!(of_file(&file, 1, || true).unwrap(), None);
        std::fs::remove_file(path).unwrap();
    }
}
