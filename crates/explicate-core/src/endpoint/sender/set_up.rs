//! Connection set-up: a SYN offers options, its answer grants some, and the flow continues without the others.

use super::below::Paced;
use super::fallback::Own;
use super::{SenderEndpoint, State, header_bytes};
use crate::recovery::Next;
use crate::units::Time;
use crate::wire::{Congestion, Packet, Transport, flag, option};

impl SenderEndpoint {
    /// The answer to the SYN arrived: disables the options that the other end refused.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_syn_ack(&mut self, now: Time, header: &Transport) {
        if self.state != State::Opened {
            return;
        }
        let Some(exact) = self.age_of_any(now, header) else { return };
        // Further answers to SYNs are ignored anyway.
        self.answered = header.packet_number().wrapping_add(1);
        let refused = self.options & option::EXPLICIT != 0 && header.options() & option::EXPLICIT == 0;
        let fallback = self.fallback.take();
        if let Some(fallback) = fallback.filter(|_| refused) {
            let payload = self.payload();
            let own = Own { initial_window: self.initial_window, paced: self.paced != Paced::No };
            self.congestion = Congestion::NONE;
            self.overhead = header_bytes(false) as u8;
            self.options &= !option::EXPLICIT;
            // Segments were counted with the explicit payload, which is kept; the packets become shorter.
            self.sender = fallback.sender(own, (payload + header_bytes(false)) as f64);
            self.interest = self.sender.interest();
            if self.sender.limits_repair() {
                self.recovery.leave_repair_to_window();
            }
        }
        let rtt = self.clock.measure(now, exact);
        self.rwnd = header.window();
        self.state = State::Established;
        self.wait_until = Time::ZERO;
        self.recovery.connected(rtt);
        let controller_rtt =
            self.rare.as_mut().and_then(|rare| rare.controller_rtt(now, exact, true)).map_or(rtt, |(own, _)| own);
        self.sender.on_start(now, controller_rtt);
        self.allow();
    }

    #[cold]
    pub(super) fn next_opening(&self) -> Option<Next> {
        (self.state == State::Opening).then_some(Next::New)
    }

    #[cold]
    pub(super) fn transmit_syn(&mut self, now: Time, out: &mut Packet) {
        // Each SYN begins a stretch, which has one time: an answer to a SYN of an earlier session has that of none.
        self.begin_stretch(now, self.counts.sent as u32);
        self.begin(out, now, header_bytes(false));
        out.congestion = Congestion::NONE;
        out.transport.set_flags(flag::SYN);
        out.transport.set_options(self.options);
        self.state = State::Opened;
        self.resent = false;
        let tries = self.counts.timeouts.min(6);
        self.wait_until = now + Time::secs(1 << tries);
    }
}
