//! What [`frame`](super::frame) and [`hidden`](super::hidden) read from the bytes of frames.

/// The 16 bits at an offset, in network byte order.
pub(super) fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// FNV-1a, 32 bits.
pub(super) fn hash<'a>(parts: impl Iterator<Item = &'a u8>) -> u32 {
    parts.fold(0x811c_9dc5, |hash, &byte| (hash ^ byte as u32).wrapping_mul(0x0100_0193))
}
