//! The fields of XCP-i behind the congestion header.

use super::{CONGESTION_XCPI_LEN, Packet, be32, put32};

/// The eight bytes that XCP-i appends to the congestion header (paper I section III-A).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct XcpI {
    /// Decremented only by XCP-i routers; differs from the IP TTL behind a cloud of plain routers.
    pub ttl: u8,
    /// Address of the last XCP-i router that handled the packet.
    pub last_router: u32,
}

impl XcpI {
    /// The bytes 20..28 of a 28-byte congestion header.
    pub fn to_bytes(self) -> [u8; 8] {
        let mut b = [0; 8];
        b[0] = self.ttl;
        put32(&mut b, 4, self.last_router);
        b
    }
    /// The fields of a data packet in memory, where they take places that mean nothing there: `xcp_ttl` that of the congestion
    /// header's first byte, `last_xcp_router` that of the receiver window. `None` for packets without them.
    #[inline]
    pub fn of(packet: &Packet) -> Option<XcpI> {
        let has = packet.congestion.0[1] == CONGESTION_XCPI_LEN as u8 && packet.congestion.is_standard();
        has.then(|| XcpI { ttl: packet.congestion.0[0], last_router: packet.transport.window() })
    }
    /// Writes them there.
    #[inline]
    pub fn put(self, packet: &mut Packet) {
        packet.congestion.0[1] = CONGESTION_XCPI_LEN as u8;
        packet.congestion.0[0] = self.ttl;
        packet.transport.set_window(self.last_router);
    }
    /// Reads the fields from a header of 28 bytes; `None` for a shorter one.
    pub fn parse(bytes: &[u8]) -> Option<XcpI> {
        let long = bytes.len() >= CONGESTION_XCPI_LEN && bytes[1] as usize == CONGESTION_XCPI_LEN;
        long.then(|| XcpI { ttl: bytes[20], last_router: be32(bytes, 24) })
    }
}
