//! Congestion headers that protocols define themselves.

use core::fmt;

use super::{CONGESTION_LEN, Congestion, Packet, VERSION};

/// Bytes of a congestion header that a protocol defines: those after length, format and mark.
pub const BODY_LEN: usize = CONGESTION_LEN - 4;

/// Writes a packet log's text about a protocol's fields in a packet: a space, names and values, or nothing.
pub type Describe = fn(&Packet, &mut dyn fmt::Write) -> fmt::Result;

/// A protocol's own congestion header, defined beside its controller. Routers of other protocols do not change it.
pub trait Header: Sized {
    /// Its code in the field Format, from 4 to 15, unique on the path.
    const FORMAT: u8;
    /// Parses the fields. Any bytes are possible, and any values: packets can be forged.
    fn parse(body: &[u8; BODY_LEN]) -> Self;
    /// Writes the fields.
    fn emit(&self, body: &mut [u8; BODY_LEN]);
}

impl Congestion {
    /// The body of a header with this code; `None` if the header has another format, or is absent.
    #[inline]
    pub fn body(&self, format: u8) -> Option<&[u8; BODY_LEN]> {
        if self.0[2] == (VERSION << 4) | format { self.0.last_chunk() } else { None }
    }
    /// Gives the header this code, and returns its body for writing; `None` if there is no header. The mark is kept.
    #[inline]
    pub fn body_mut(&mut self, format: u8) -> Option<&mut [u8; BODY_LEN]> {
        if !self.is_present() {
            return None;
        }
        self.0[2] = (VERSION << 4) | format;
        self.0.last_chunk_mut()
    }
    /// A protocol's own header; `None` for any other.
    #[inline]
    pub fn get<H: Header>(&self) -> Option<H> {
        self.body(H::FORMAT).map(H::parse)
    }
    /// Writes a protocol's own header if there is a congestion header. The mark is kept.
    #[inline]
    pub fn put<H: Header>(&mut self, header: &H) {
        const { assert!(H::FORMAT >= 4 && H::FORMAT <= 15, "formats below 4 are taken") };
        if let Some(body) = self.body_mut(H::FORMAT) {
            header.emit(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;
    use crate::wire::{Format, WireError};

    struct Word(u32);
    impl Header for Word {
        const FORMAT: u8 = 9;
        fn parse(body: &[u8; BODY_LEN]) -> Word {
            Word(u32::from_be_bytes([body[0], body[1], body[2], body[3]]))
        }
        fn emit(&self, body: &mut [u8; BODY_LEN]) {
            body[..4].copy_from_slice(&self.0.to_be_bytes());
        }
    }

    #[test]
    fn a_header_of_its_own_travels_and_leaves_the_mark_alone() {
        let mut header = Congestion::new(Format::STANDARD);
        header.set_mark(header.mark().after(Time::millis(8)));
        assert!(header.get::<Word>().is_none(), "another format");
        header.put(&Word(7));
        assert_eq!(header.0[..8], [253, 20, 0x39, 17, 0, 0, 0, 7]);
        let back = Congestion::parse(&header.0).unwrap();
        assert_eq!(back.get::<Word>().unwrap().0, 7);
        assert!(!back.is_standard() && !back.is_window(), "routers of other protocols leave it alone");
        assert_eq!(back.mark().waited(), Some(Time::millis(8)));

        let mut none = Congestion::NONE;
        none.put(&Word(7));
        assert_eq!(none, Congestion::NONE, "no header, nothing to write into");
        header.0[2] = 0x30;
        assert_eq!(Congestion::parse(&header.0), Err(WireError::Format));
    }
}
