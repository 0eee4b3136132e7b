//! SHA-256 (FIPS 180-4), by ring, which TLS between gateways needs as well.

use std::io::{self, Write};

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// Bytes of a digest.
pub const LEN: usize = SHA256_OUTPUT_LEN;

/// The digest of bytes that come one after another, as slices or as what is written.
#[derive(Clone)]
pub struct Sha256(Context);

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256(Context::new(&SHA256))
    }
}

impl Sha256 {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    /// The digest of all bytes.
    pub fn finish(self) -> [u8; LEN] {
        *self.0.finish().as_ref().first_chunk().unwrap_or(&[0; LEN])
    }
}

impl Write for Sha256 {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The digest of these bytes.
pub fn sha256(bytes: &[u8]) -> [u8; LEN] {
    let mut digest = Sha256::default();
    digest.update(bytes);
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    /// The examples of FIPS 180-4 (NIST, "SHA256.pdf"): one block, and two.
    #[test]
    fn digests_are_those_of_the_standard() {
        let one = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&sha256(b"abc")), one);
        let two = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        let bytes = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let mut parts = Sha256::default();
        parts.write_all(&bytes[..7]).unwrap();
        parts.update(&bytes[7..]);
        assert_eq!(hex(&parts.finish()), two);
    }
}
