//! The optional eight bytes at the end of the congestion header.

use super::{EXTENDED_LEN, Format, Packet, be32, put32};

/// A counter and the address of a node, for protocols whose routers count hops and identify themselves. Only data
/// packets of format [`Format::STANDARD`] may carry an extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extension {
    /// Byte 20 of the header.
    pub counter: u8,
    /// Bytes 24 to 27, an address.
    pub node: u32,
}

impl Extension {
    /// The bytes 20 to 27 of an extended congestion header.
    pub fn to_bytes(self) -> [u8; 8] {
        let mut b = [0; 8];
        b[0] = self.counter;
        put32(&mut b, 4, self.node);
        b
    }
    /// The extension of a data packet in memory, where it is stored in unused fields: the counter in the first byte
    /// of the congestion header, the address in the receiver window. `None` for packets without an extension.
    #[inline]
    pub fn of(packet: &Packet) -> Option<Extension> {
        let has = packet.congestion.0[1] == EXTENDED_LEN as u8 && packet.congestion.has_format(Format::STANDARD);
        has.then(|| Extension { counter: packet.congestion.0[0], node: packet.transport.window() })
    }
    /// Stores it in these fields.
    #[inline]
    pub fn put(self, packet: &mut Packet) {
        packet.congestion.0[1] = EXTENDED_LEN as u8;
        packet.congestion.0[0] = self.counter;
        packet.transport.set_window(self.node);
    }
    /// Parses it from a header of 28 bytes; `None` for a shorter one.
    pub fn parse(bytes: &[u8]) -> Option<Extension> {
        let long = bytes.len() >= EXTENDED_LEN && bytes[1] as usize == EXTENDED_LEN;
        long.then(|| Extension { counter: bytes[20], node: be32(bytes, 24) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Congestion;

    #[test]
    fn an_extension_stands_behind_the_header() {
        let extension = Extension { counter: 61, node: 0x0a00_0001 };
        let mut bytes = [0u8; EXTENDED_LEN];
        bytes[..20].copy_from_slice(&Congestion::new(Format::STANDARD).0);
        bytes[1] = 28;
        bytes[20..].copy_from_slice(&extension.to_bytes());
        assert!(Congestion::parse(&bytes).is_ok());
        assert_eq!(Extension::parse(&bytes), Some(extension));
        assert_eq!(Extension::parse(&bytes[..27]), None);
    }
}
