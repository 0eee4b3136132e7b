//! Packet trace: the events of each packet as text (arrival at a port, mark, departure with feedback, drop with its cause,
//! delivery), and optionally the bytes for a capture.

use std::fmt::Write;

use explicate_core::port::Note;
use explicate_core::qdisc::DropCause;
use explicate_core::registry;
use explicate_core::units::Time;
use explicate_core::wire::{Ecn, Packet, SackRanges, flag};

use crate::pcap::{Capture, frame};

/// Which packets are traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Only packets of this flow; `None` traces all.
    pub flow: Option<u32>,
    /// Keep the bytes of departing packets for a capture.
    pub capture: bool,
}

/// The trace.
pub struct PacketLog {
    selector: Selector,
    entries: Vec<Entry>,
    captures: Vec<Capture>,
}

struct Entry {
    at: Time,
    /// The link; `None` at the end of a route.
    link: Option<u32>,
    what: Option<Note>,
    packet: Packet,
}

impl PacketLog {
    /// An empty log.
    pub fn new(selector: Selector) -> PacketLog {
        PacketLog { selector, entries: Vec::new(), captures: Vec::new() }
    }
    fn wants(&self, packet: &Packet) -> bool {
        let of_flow = packet.is_damaged() || !packet.transport.has(flag::CONTROL);
        of_flow && self.selector.flow.is_none_or(|f| f == packet.transport.flow())
    }
    pub(crate) fn port(&mut self, at: Time, link: u32, packet: &Packet, sack: &SackRanges, what: Note) {
        if !self.wants(packet) {
            return;
        }
        if self.selector.capture && what == Note::Departed {
            self.captures.push(Capture {
                at,
                link,
                original: packet.ip_len,
                bytes: frame(&packet.without_mark(), sack),
            });
        }
        self.entries.push(Entry { at, link: Some(link), what: Some(what), packet: *packet });
    }
    pub(crate) fn delivered(&mut self, at: Time, packet: &Packet) {
        if self.wants(packet) {
            self.entries.push(Entry { at, link: None, what: None, packet: *packet });
        }
    }

    /// The captured packets in order of time.
    pub fn captures(&mut self) -> &[Capture] {
        self.captures.sort_by_key(|c| c.at);
        &self.captures
    }

    /// A line for each event, in order of time: seconds, link, event, packet.
    pub fn text(&mut self, links: &[String], flows: &[String]) -> String {
        // Ports catch up lazily, so events of different links are out of order.
        self.entries.sort_by_key(|e| e.at);
        let width = links.iter().map(|l| l.len()).max().unwrap_or(0);
        let mut text = String::new();
        for entry in &self.entries {
            let link = entry.link.map_or("", |l| &links[l as usize]);
            let what =
                if entry.what.is_none() && entry.packet.is_damaged() { "drop:damaged" } else { event(entry.what) };
            let at = format!("{}.{:09}", entry.at.0 / 1_000_000_000, entry.at.0 % 1_000_000_000);
            let _ = write!(text, "{at:>14}  {link:<width$}  {what:<14}");
            describe(&mut text, &entry.packet, flows);
            text.push('\n');
        }
        text
    }
}

fn event(what: Option<Note>) -> &'static str {
    match what {
        None => "delivered",
        Some(Note::Arrived) => "enqueue",
        Some(Note::Marked) => "mark",
        Some(Note::Departed) => "departure",
        Some(Note::Dropped(DropCause::Overflow)) => "drop:overflow",
        Some(Note::Dropped(DropCause::Early)) => "drop:early",
        Some(Note::Lost) => "drop:channel",
        Some(Note::Damaged) => "damage",
        Some(Note::Copied) => "copy",
    }
}

fn describe(text: &mut String, packet: &Packet, flows: &[String]) {
    let t = &packet.transport;
    let flow = flows.get(t.flow() as usize).map_or("?", |f| f);
    let kind = match (t.has(flag::SYN), t.has(flag::ACK)) {
        (true, true) => "SYN-ACK",
        (true, false) => "SYN",
        (false, true) => "ack",
        (false, false) => "data",
    };
    let _ = write!(text, "{flow} {kind} {} packet {} {} B", t.segment(), t.packet_number(), packet.ip_len);
    for protocol in registry::protocols() {
        let _ = protocol.describe(packet, text);
    }
    if packet.ecn() != Ecn::NotCapable {
        let _ = write!(text, " ecn {:02b}", packet.ecn() as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::wire::{Congestion, Format};

    /// The log's text about a packet, after its length.
    fn fields(packet: &Packet) -> String {
        let mut text = String::new();
        describe(&mut text, packet, &["f".into()]);
        text.split_once(" B").expect("a length").1.to_string()
    }

    #[test]
    fn protocols_describe_their_own_fields() {
        for (format, value, said) in [
            (Format::STANDARD, -1500, " delta -1500 B/s"),
            (Format::WINDOW, 7, " delta +7 B"),
            (Format::MINIMAL, 0, " feedback +9"),
            (Format::own(14), 7, ""),
        ] {
            let mut packet = Packet { congestion: Congestion::new(format), ..Packet::EMPTY };
            packet.congestion.set_delta_throughput(value);
            packet.congestion.set_reverse_feedback(9);
            assert_eq!(fields(&packet), said, "{format:?}");
        }
        let mut packet = Packet::EMPTY;
        assert_eq!(fields(&packet), "");
        packet.transport.set_code(2);
        packet.transport.set_flags(flag::CONGESTED);
        assert_eq!(fields(&packet), " code 10 flag");
        packet.transport.set_flags(flag::SYN);
        assert_eq!(fields(&packet), "", "these bits of a SYN are options");
        packet.transport.set_flags(flag::CONGESTED);
        packet.set_ecn(Ecn::Marked);
        assert_eq!(fields(&packet), " code 10 flag ecn 11");
    }
}
