//! Sending: whether a packet may leave now, which segment it has, and when the next one may.

use super::below::Paced;
use super::{SenderEndpoint, State};
use crate::api::Sent;
use crate::recovery::Next;
use crate::units::Time;
use crate::wire::{Ecn, Packet, Transport, flag, stamp};

impl SenderEndpoint {
    /// Writes the next packet to send into `out`; false if there is none now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Packet) -> bool {
        self.poll_next(now).is_some_and(|next| self.transmit(now, next, out))
    }

    /// The first half of [`SenderEndpoint::poll_transmit`], which needs no packet: the next segment that the window and
    /// pacing allow.
    #[inline]
    pub fn poll_next(&mut self, now: Time) -> Option<Next> {
        if self.state != State::Established {
            return self.next_opening();
        }
        if self.wait_until > Time::ZERO {
            if self.wait_until > now {
                self.waits();
                return None;
            }
            self.wait_until = Time::ZERO;
        }
        let next = self.recovery.next(self.windows());
        if next == Next::Nothing {
            self.window_limited = true;
            return None;
        }
        Some(next)
    }

    /// Nothing may be sent before `wait_until`.
    fn waits(&mut self) {
        let state = self.recovery.at();
        if self.rare.as_ref().is_some_and(|rare| rare.below.holds_until == self.wait_until) {
            // What the host holds for a moment is no sign that the window is not used: in slow start Linux lets it grow to twice what
            // is in flight (`tcp_is_cwnd_limited`).
            let grows = self.allowance.cwnd < self.sender.threshold();
            self.window_limited = state.in_flight >= if grows { self.window / 2 } else { self.window };
        } else {
            // Pacing at a rate that follows the window may prevent the window from ever being full.
            self.window_limited |= state.next < self.supply;
        }
    }
    /// Whether the window is known to be full, so that [`SenderEndpoint::poll_next`] would return nothing. False for
    /// flows that pace.
    #[inline]
    pub fn is_full(&mut self) -> bool {
        if !self.recovery.is_full() || self.wait_until > Time::ZERO {
            return false;
        }
        self.window_limited = true;
        true
    }

    /// Whether pacing lets nothing leave at `now`, so that [`SenderEndpoint::poll_next`] would return nothing.
    #[inline]
    pub fn must_wait(&mut self, now: Time) -> bool {
        if self.wait_until <= now || self.state != State::Established {
            return false;
        }
        self.waits();
        true
    }

    /// The second half: writes the segment that [`SenderEndpoint::poll_next`] returned into `out`; false if the
    /// application has no data.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, next: Next, out: &mut Packet) -> bool {
        if self.state == State::Established {
            return self.transmit_data(now, next, out);
        }
        self.transmit_syn(now, out);
        true
    }

    /// Writes the fields that every packet of this endpoint has.
    pub(super) fn begin(&mut self, out: &mut Packet, now: Time, ip_len: u16) {
        out.ip_len = ip_len;
        out.ttl = 64;
        out.tos = 0;
        out.transport = Transport::EMPTY;
        out.transport.set_flow(self.id);
        let number = self.counts.sent as u32;
        out.transport.set_packet_number(number);
        out.transport.set_timestamp(stamp(now));
        if !self.departures.record(now) {
            self.begin_stretch(now, number);
        }
        self.counts.sent += 1;
    }

    /// A packet begins a stretch of departures.
    #[cold]
    pub(super) fn begin_stretch(&mut self, now: Time, number: u32) {
        if number == 0 {
            return self.departures.begin(now, number, &mut Default::default());
        }
        let rare = self.rare.get_or_insert_default();
        self.departures.begin(now, number, &mut rare.departures);
    }

    #[inline(always)]
    fn transmit_data(&mut self, now: Time, next: Next, out: &mut Packet) -> bool {
        let state = self.recovery.at();
        let (in_flight, highest) = (state.in_flight, state.highest);
        let mut segment = if let Next::Resend(segment) = next { segment } else { state.next };
        if segment >= self.supply {
            let Some(spare) = self.recovery.spare() else {
                self.window_limited = false;
                return false;
            };
            segment = spare;
        }
        if in_flight == 0 {
            self.end_idle(now, highest);
        }
        let last = self.closed && segment + 1 == self.supply;
        let payload = if last { self.last_payload } else { self.full_payload };
        self.begin(out, now, payload + self.overhead as u16);
        let header = &mut out.transport;
        header.set_flags((flag::FIN * last as u8) | (flag::CWR * self.cwr as u8));
        self.cwr = false;
        header.set_segment(segment);
        header.set_payload(payload);
        self.resent = segment < highest;
        if self.resent {
            self.counts.retransmissions = self.counts.retransmissions.saturating_add(1);
        } else if self.ecn != Ecn::NotCapable {
            out.set_ecn(self.ecn);
        }
        out.congestion = self.congestion;
        let backlogged = segment + 1 < self.supply;
        if self.interest.in_packet(backlogged) {
            self.sender.on_send(out, &Sent { now, in_flight, backlogged });
        }
        let sent = (segment, self.counts.sent.wrapping_sub(1) as u32);
        self.recovery.sent(now, sent, self.windows());
        self.pace(now, out.ip_len);
        true
    }

    /// A packet is sent although none is in flight. If it is not the first and all before are acknowledged, an idle time ends.
    #[cold]
    #[inline(never)]
    fn end_idle(&mut self, now: Time, highest: u32) {
        if self.one_way || highest == 0 || highest != self.recovery.at().acked {
            return;
        }
        self.sender.on_idle(now, self.departures.last_age(now), self.recovery.timeout());
        self.allowance = self.sender.allowance();
        self.fit_window();
    }

    /// Whether the last packet was a retransmission.
    #[inline]
    pub fn sends_again(&self) -> bool {
        self.resent
    }

    /// Sets the earliest departure of the next packet.
    #[inline]
    fn pace(&mut self, now: Time, ip_len: u16) {
        let gap = match self.allowance.pacing {
            Some(rate) => ip_len as f64 / rate.bytes_per_sec(),
            None => match self.paced {
                Paced::No => return,
                Paced::Evenly => self.controller_srtt().as_secs_f64() / self.allowance.cwnd,
                Paced::ByQueue => match self.gap_of_queue() {
                    Some(gap) => gap,
                    None => return,
                },
            },
        };
        if self.bursts {
            return self.pace_in_bursts(now, gap);
        }
        self.wait_until = now + Time::from_secs_f64(gap);
    }
}
