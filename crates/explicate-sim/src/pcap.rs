//! Packets in the format of a real network, for a capture: IPv4, UDP, congestion header, transport header.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use explicate_core::datagram::{self, MOST_HEADERS};
use explicate_core::units::Time;
use explicate_core::wire::{IP_UDP_LEN, Packet, SackRanges, UDP_PORT, flag};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

/// A packet that was captured as it departed from a link's port.
pub struct Capture {
    /// When its last bit left.
    pub at: Time,
    /// The link.
    pub link: u32,
    /// Its IP length; the payload is not captured.
    pub original: u16,
    /// Its headers.
    pub bytes: Vec<u8>,
}

/// The headers of a packet. A flow's sender has the address 10.1.x.y, its receiver 10.2.x.y, with the flow's number in x.y.
pub(crate) fn frame(packet: &Packet, sack: &SackRanges) -> Vec<u8> {
    let [_, _, x, y] = packet.transport.flow().to_be_bytes();
    let (mut from, mut to) = ([10, 1, x, y], [10, 2, x, y]);
    if packet.transport.has(flag::ACK) {
        (from, to) = (to, from);
    }
    let mut b = vec![0x45, packet.tos];
    b.extend(packet.ip_len.to_be_bytes());
    b.extend([0, 0, 0x40, 0, packet.ttl, 17, 0, 0]);
    b.extend(from);
    b.extend(to);
    let sum = b.chunks(2).map(|c| u16::from_be_bytes([c[0], c[1]]) as u32).sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    b[10..12].copy_from_slice(&checksum.to_be_bytes());
    b.extend(UDP_PORT.to_be_bytes());
    b.extend(UDP_PORT.to_be_bytes());
    b.extend((packet.ip_len - 20).to_be_bytes());
    b.extend([0, 0]);
    debug_assert_eq!(b.len(), IP_UDP_LEN);
    let mut headers = [0; MOST_HEADERS];
    let length = datagram::write(packet, sack, &mut headers);
    b.extend(&headers[..length]);
    b
}

/// What a capture does not have; its comment.
pub const LOST: &str = "lost: payloads, packets of agents, packets that a port drops, what channels do to a packet after it \
                        has left, and all settings of the scenario";

/// Writes a pcapng file with one interface per link, in nanoseconds; all of it when it returns.
pub fn write_pcapng(mut out: impl Write, links: &[String], captures: &[Capture]) -> io::Result<()> {
    blocks(&mut out, links, captures).map_err(|error| match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    })?;
    out.flush()
}

fn blocks(out: &mut impl Write, links: &[String], captures: &[Capture]) -> Result<(), PcapError> {
    let options = vec![SectionHeaderOption::Comment(Cow::Borrowed(LOST))];
    let header = SectionHeaderBlock { endianness: Endianness::native(), options, ..SectionHeaderBlock::default() };
    let mut writer = PcapNgWriter::with_section_header(out, header)?;
    for name in links {
        writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        })?;
    }
    for capture in captures {
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: capture.link,
            timestamp: Duration::from_nanos(capture.at.0),
            original_len: capture.original as u32,
            data: Cow::Borrowed(&capture.bytes),
            options: Vec::new(),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with this number of free bytes.
    struct Disk(usize);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = self.0.min(bytes.len());
            self.0 -= fits;
            if fits > 0 { Ok(fits) } else { Err(io::ErrorKind::StorageFull.into()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_also_of_what_a_buffer_still_holds() {
        let capture = || Capture { at: Time::ZERO, link: 0, original: 1000, bytes: vec![0; 60] };
        let (links, captures) = (["a->b".to_string()], [capture(), capture()]);
        let mut whole = Vec::new();
        write_pcapng(&mut whole, &links, &captures).unwrap();
        for room in 0..=whole.len() {
            for buffer in [0, 4096] {
                let done = write_pcapng(io::BufWriter::with_capacity(buffer, Disk(room)), &links, &captures);
                let why = done.err().map(|error| error.kind());
                let full = (room < whole.len()).then_some(io::ErrorKind::StorageFull);
                assert!(why == full || why == Some(io::ErrorKind::WriteZero) && full.is_some(), "{room}: {why:?}");
            }
        }
    }
}
