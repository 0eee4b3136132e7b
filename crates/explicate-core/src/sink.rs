//! The receiving end of a flow: reassembles, and acknowledges every packet.
//!
//! A driver may speak the four verbs of [`crate::flow`], or let an acknowledgement take its packet's place by [`Sink::turn`].

use alloc::boxed::Box;

use crate::flow::{FlowInit, PARAMS, header_bytes};
use crate::protocol::Receiver;
use crate::reassembly::Reassembly;
use crate::units::Time;
use crate::wire::{Congestion, Ecn, Format, Packet, SackRanges, Transport, flag, option};

/// Counters of a receiving end.
#[derive(Clone, Copy, Default, Debug)]
pub struct SinkStats {
    /// Packets received, SYNs and duplicates included.
    pub received: u64,
    /// IP bytes of data packets received, duplicates included.
    pub bytes: u64,
    /// In-order payload of the whole run, bytes.
    pub payload: u64,
}

/// The receiving end of a flow.
pub struct Sink {
    id: u32,
    /// The receiver is asked what travels back: explicit feedback was granted, or the protocol wants more than that.
    speaks: bool,
    /// What [`Protocol::receiver_speaks`] says of a protocol without explicit feedback.
    speaks_plainly: bool,
    /// The protocol has a congestion header, and whether acknowledgements carry it.
    has_header: bool,
    header: bool,
    sack: bool,
    refuse_explicit: bool,
    /// A mark arrived and the sender has not said that it reduced (RFC 3168 section 6.1.3).
    ece: bool,
    window: u32,
    receiver: Box<dyn Receiver>,
    data: Reassembly,
    answer: Option<Answer>,
    /// Counters.
    pub stats: SinkStats,
}

/// What the next acknowledgement echoes.
struct Answer {
    syn_options: Option<u8>,
    packet_number: u32,
    timestamp: u32,
}

impl Sink {
    /// The receiving end of the flow that `init` describes.
    pub fn new(init: &FlowInit<'_>) -> Sink {
        Sink {
            id: init.id,
            speaks: false,
            speaks_plainly: !init.protocol.explicit() && init.protocol.receiver_speaks(),
            has_header: init.protocol.congestion_header(),
            header: false,
            sack: false,
            refuse_explicit: init.values.get(PARAMS, "refuse_explicit") != 0.0,
            ece: false,
            window: init.values.get(PARAMS, "receiver_window") as u32,
            receiver: init.protocol.receiver(),
            data: Reassembly::default(),
            answer: None,
            stats: SinkStats::default(),
        }
    }

    /// A packet for this end arrived; what does not fit is ignored.
    pub fn handle_packet(&mut self, now: Time, packet: &Packet) {
        if let Some(answer) = self.take(now, packet) {
            self.answer = Some(answer);
        }
    }

    /// Writes the acknowledgement of what arrived into `out`; false if none is due. `sack` gets the ranges that follow its
    /// header.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Packet, sack: &mut SackRanges) -> bool {
        let Some(answer) = self.answer.take() else { return false };
        self.write(now, &answer, out, sack);
        true
    }

    /// [`Sink::handle_packet`] and [`Sink::poll_transmit`] at once: the acknowledgement takes the packet's place.
    #[inline]
    pub fn turn(&mut self, now: Time, packet: &mut Packet, sack: &mut SackRanges) -> bool {
        let Some(answer) = self.take(now, packet) else { return false };
        self.write(now, &answer, packet, sack);
        true
    }

    #[inline]
    fn take(&mut self, now: Time, packet: &Packet) -> Option<Answer> {
        let header = &packet.transport;
        if header.has(flag::ACK) || header.flow() != self.id {
            return None;
        }
        self.stats.received += 1;
        let (packet_number, timestamp) = (header.packet_number(), header.timestamp());
        if header.has(flag::SYN) {
            let syn_options = Some(self.grant(header.options()));
            return Some(Answer { syn_options, packet_number, timestamp });
        }
        self.stats.bytes += packet.ip_len as u64;
        self.data.insert(header.segment(), self.window, header.payload(), header.has(flag::FIN));
        self.stats.payload = self.data.payload();
        self.ece = (self.ece && !header.has(flag::CWR)) || packet.ecn() == Ecn::Marked;
        self.receiver.on_data(now, packet);
        Some(Answer { syn_options: None, packet_number, timestamp })
    }

    #[cold]
    fn grant(&mut self, mut options: u8) -> u8 {
        if self.refuse_explicit {
            options &= !option::EXPLICIT;
        }
        let explicit = options & option::EXPLICIT != 0;
        self.speaks = explicit || self.speaks_plainly;
        self.header = explicit && self.has_header;
        self.sack = options & option::SACK != 0;
        options
    }

    #[inline]
    fn write(&mut self, now: Time, answer: &Answer, out: &mut Packet, sack: &mut SackRanges) {
        sack.clear();
        if self.sack && !self.data.is_in_order() {
            *sack = self.data.ranges();
        }
        let ranges = sack.as_slice().len();
        let congestion = self.header && answer.syn_options.is_none();
        out.ip_len = header_bytes(congestion) + 8 * ranges as u16;
        out.ttl = 64;
        out.tos = 0;
        out.congestion = if congestion { Congestion::new(Format::Minimal) } else { Congestion::NONE };
        let header = &mut out.transport;
        *header = Transport::EMPTY;
        header.set_flags(flag::ACK | if self.ece { flag::ECE } else { 0 });
        header.set_sack_count(ranges);
        header.set_flow(self.id);
        header.set_segment(self.data.next());
        header.set_packet_number(answer.packet_number);
        header.set_window(self.window);
        header.set_timestamp(answer.timestamp);
        if let Some(options) = answer.syn_options {
            header.set_flags(flag::ACK | flag::SYN);
            header.set_options(options);
        } else if self.speaks {
            self.receiver.on_ack(now, out);
        }
    }

    /// A receiving end has no timers.
    pub fn poll_timeout(&self) -> Time {
        Time::NEVER
    }
    /// A receiving end has no timers.
    pub fn handle_timeout(&mut self, _now: Time) {}
}
