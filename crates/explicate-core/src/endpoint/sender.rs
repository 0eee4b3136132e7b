//! The sending endpoint of a flow: a congestion controller over a recovery. The receiving endpoint is
//! [`crate::endpoint::ReceiverEndpoint`].
//!
//! Both have four methods: `handle_packet`, `handle_timeout`, `poll_transmit`, `poll_timeout`. After each input a
//! driver calls `poll_transmit` until it returns nothing, and then `poll_timeout`.
//!
//! Networks copy packets. An acknowledgement that echoes the number of a packet that was answered before is that of a
//! copy, or a copy itself, and is ignored: nothing counts twice, and no copy is taken for the sign of a loss.
//!
//! A flow opens with a SYN that offers explicit feedback, packet-number echo, SACK and reports of duplicates. The answer grants what the
//! other end supports. The receiver skips gaps if the recovery is unreliable. If explicit feedback is refused, the
//! flow continues with the fallback controller and without congestion headers.

use alloc::boxed::Box;

use self::below::Paced;
use self::departures::Stretch;
use self::fallback::{Fallback, Own};
use self::round_trip::{Clock, RoundTrip};
use self::stats::{Counts, Rare};
use crate::agent::Address;
use crate::api::object::Interest;
use crate::api::{Ack, Allowance, AnyProtocol, AnySender, Loss, LossKind, Probe, SenderInit};
use crate::gaps;
use crate::guard::{ActiveController, Guard};
use crate::params::Values;
use crate::recovery::common::handle::{Expired, RecoveryHandle, Windows};
use crate::recovery::{AnyRecovery, AnyRecoveryKind};
use crate::registry::Resolved;
use crate::scone::following::Following;
use crate::units::{Rate, Time};
use crate::view::measured_ms;
use crate::wire::{
    CONGESTION_LEN, Congestion, Ecn, Format, IP_UDP_LEN, Packet, SackRanges, TRANSPORT_LEN, Transport, flag, option,
};

mod below;
mod bursts;
mod departures;
mod fallback;
mod params;
mod round_trip;
mod sending;
mod set_up;
mod stats;
#[cfg(test)]
mod tests;
mod undo;

pub use below::HostQueue;
pub use bursts::Bursts;
pub use params::{Acks, Autotuning, Guarding, PARAMS, Params, is_guarded, set_guarded};
pub use stats::SenderStats;

/// Bytes of headers in front of the payload of a data packet, with a congestion header or without.
pub fn header_bytes(congestion: bool) -> u16 {
    (IP_UDP_LEN + TRANSPORT_LEN + if congestion { CONGESTION_LEN } else { 0 }) as u16
}

/// Bytes of headers in front of the payload of a protocol's data packets.
pub fn data_header_bytes(protocol: &AnyProtocol) -> u16 {
    header_bytes(false) + protocol.congestion_header_len()
}

/// Arguments for making a flow.
pub struct FlowInit<'a> {
    /// Number of the flow, in every packet.
    pub id: u32,
    /// Congestion controller.
    pub protocol: &'static AnyProtocol,
    /// Controller used when explicit feedback is refused, in the flow's stack; the recovery remains the flow's.
    pub fallback: Resolved,
    /// Recovery.
    pub recovery: &'static AnyRecoveryKind,
    /// Values of the parameters of the controller, the recovery and [`PARAMS`].
    pub values: &'a Values,
    /// IP length of a full data packet, bytes.
    pub packet: u16,
    /// Rate of the interface that the flow sends through.
    pub interface: Rate,
}

/// Number of segments of a flow, at most.
const MOST_SEGMENTS: u32 = u32::MAX - 1;

/// An event for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// All written data are acknowledged, or have left if nothing is returned.
    Drained,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nothing has been written.
    Idle,
    /// A SYN is to be sent.
    Opening,
    /// A SYN is in flight.
    Opened,
    /// Data are sent.
    Established,
}

/// The sending end of a flow.
pub struct SenderEndpoint {
    id: u32,
    state: State,
    sender: Box<AnySender>,
    interest: Interest,
    /// The sender's allowance after the last event.
    allowance: Allowance,
    recovery: RecoveryHandle,
    /// Kept by explicit flows until the other end has answered.
    fallback: Option<Box<Fallback>>,
    /// Its first window, if the flow's parameters give one, else NaN.
    initial_window: f32,
    /// The congestion header of data packets, as far as it is known before they leave.
    congestion: Congestion,
    /// Bytes of headers before the payload.
    overhead: u8,
    /// Of new data packets, unless the congestion controller sets another.
    ecn: Ecn,
    paced: Paced,
    /// Pacing lets super-packets leave together.
    bursts: bool,
    /// The window or pacing stopped the last attempt to send, so acknowledgements measure the path and not the
    /// application.
    window_limited: bool,
    /// Payload of a full packet and of the last segment, bytes.
    full_payload: u16,
    last_payload: u16,
    /// Segments that the application has written.
    supply: u32,
    /// The application writes no more after these.
    closed: bool,
    rwnd: u32,
    /// Whole segments that the receiver's and the sender's window allow.
    window: u32,
    /// Marks are ignored until this segment is acknowledged.
    mark_recover: u32,
    cwr: bool,
    /// A loss was being repaired after the last event.
    repairing: bool,
    /// The last packet was a retransmission.
    resent: bool,
    /// The recovery learns of every arrival.
    selective: bool,
    /// The recovery may find that a loss was none.
    undoes: bool,
    /// Nothing is returned.
    one_way: bool,
    /// One past the highest packet whose acknowledgement has arrived.
    answered: u32,
    /// Packets below it that have no answer.
    unanswered: gaps::Near,
    /// When the last ones left.
    departures: Stretch,
    /// When pacing allows the next packet; before the flow is established, when the SYN is retransmitted. Zero: now.
    wait_until: Time,
    options: u8,
    clock: Clock,
    counts: Counts,
    rare: Option<Box<Rare>>,
}

impl SenderEndpoint {
    /// A flow whose application has not written yet.
    pub fn new(init: &FlowInit<'_>) -> SenderEndpoint {
        let params = Params::of(init.values);
        let header = init.protocol.congestion_header();
        let overhead = data_header_bytes(init.protocol);
        let sack = if init.recovery.wants_sack() { option::SACK } else { 0 };
        let dsack = if init.recovery.wants_dsack() { option::DSACK } else { 0 };
        let unreliable = if init.recovery.reliable() { 0 } else { option::UNRELIABLE };
        let sender_init = SenderInit {
            values: init.values,
            packet: init.packet as f64,
            initial_window: params.initial_window,
            interface: init.interface,
        };
        let mut sender = init.protocol.sender(&sender_init);
        let guarded = init.protocol.explicit() && is_guarded(init.values);
        let initial_window = init.values.number("initial_window").map_or(f32::NAN, |window| window as f32);
        let fallback = init.protocol.explicit().then(|| Box::new(Fallback::new(init)));
        if let Some(fallback) = fallback.as_ref().filter(|_| guarded) {
            let tcp = fallback.guarding(Own { initial_window, paced: params.is_paced() }, init.packet as f64);
            sender = Box::new(Guard::new(sender, tcp, init.recovery.reliable(), init.packet as f64, params.air_loss));
        }
        if params.scone && !init.protocol.explicit() {
            sender = Box::new(Following::new(sender, Time::from_secs_f64(params.scone_every)));
        }
        let mut recovery = init.recovery.build(init.values);
        if sender.limits_repair() {
            recovery.leave_repair_to_window();
        }
        SenderEndpoint {
            id: init.id,
            state: State::Idle,
            interest: sender.interest(),
            allowance: sender.allowance(),
            sender,
            recovery: RecoveryHandle::new(recovery),
            fallback,
            initial_window,
            congestion: if header { Congestion::new(Format::STANDARD) } else { Congestion::NONE },
            overhead: overhead as u8,
            ecn: match (params.l4s, params.ecn) {
                (true, _) => Ecn::Capable1,
                (false, true) => Ecn::Capable0,
                (false, false) => Ecn::NotCapable,
            },
            paced: Paced::of(&params),
            bursts: params.bursts == Bursts::Linux || Paced::of(&params) == Paced::ByQueue,
            window_limited: false,
            full_payload: init.packet.saturating_sub(overhead),
            last_payload: init.packet.saturating_sub(overhead),
            supply: 0,
            closed: false,
            rwnd: u32::MAX,
            window: 0,
            mark_recover: 0,
            cwr: false,
            repairing: false,
            resent: false,
            selective: init.recovery.selective(),
            undoes: init.recovery.undoes(),
            one_way: false,
            answered: 0,
            unanswered: gaps::Near::default(),
            departures: Stretch::default(),
            wait_until: Time::ZERO,
            options: option::PACKET_ECHO
                | sack
                | dsack
                | unreliable
                | if guarded { option::MARKS } else { 0 }
                | if init.protocol.explicit() { option::EXPLICIT } else { 0 },
            clock: Clock::new(init.values),
            counts: Counts::default(),
            rare: Rare::new(RoundTrip::new(init.values)),
        }
    }

    /// With this recovery: nothing is returned, and nothing opens the flow.
    pub(super) fn one_way(mut self, recovery: Box<AnyRecovery>) -> SenderEndpoint {
        self.recovery = RecoveryHandle::new(recovery);
        self.one_way = true;
        self
    }
    /// Whether nothing is returned to it.
    pub fn is_one_way(&self) -> bool {
        self.one_way
    }

    /// Sets the node from which the flow leaves. Call before the first event.
    pub fn attach(&mut self, own: Address) {
        self.sender.on_attach(own);
    }
    /// Address and length in memory of its controller and its recovery, for a driver that prefetches them.
    #[inline]
    pub fn kept_apart(&self) -> [(*const u8, usize); 2] {
        [(core::ptr::from_ref(&*self.sender).cast(), size_of_val(&*self.sender)), self.recovery.kept_apart()]
    }
    /// The number of the flow.
    pub fn id(&self) -> u32 {
        self.id
    }
    /// Number of acknowledged segments, all from the first.
    pub fn acked(&self) -> u32 {
        self.recovery.at().acked
    }
    /// Payload of a full segment, bytes.
    pub fn payload(&self) -> u16 {
        self.full_payload
    }
    /// The application writes `bytes`, `u64::MAX` for an endless supply; with `last` it writes no more afterwards.
    pub fn write(&mut self, bytes: u64, last: bool) {
        let payload = self.payload().max(1) as u64;
        let (wanted, room) = (bytes.div_ceil(payload), (MOST_SEGMENTS - self.supply) as u64);
        self.supply += wanted.min(room) as u32;
        self.closed = last && wanted <= room;
        if self.closed && bytes != u64::MAX && !bytes.is_multiple_of(payload) {
            self.last_payload = (bytes % payload) as u16;
        }
        if self.state == State::Idle && self.one_way {
            self.state = State::Established;
            self.allow();
        } else if self.state == State::Idle {
            self.state = State::Opening;
        }
    }
    /// The application withdraws data that have not been sent (the end of an on-period).
    pub fn withdraw(&mut self) {
        self.supply = self.recovery.at().highest;
    }
    /// [`Event::Drained`] while all written data are acknowledged, or have left if nothing is returned.
    pub fn poll_event(&self) -> Option<Event> {
        let drained = self.state == State::Established && self.recovery.at().acked == self.supply;
        drained.then_some(Event::Drained)
    }
    /// Whether it has sent all segments that have a number, 2^32 - 2, and its application may have more.
    pub fn is_exhausted(&self) -> bool {
        self.supply == MOST_SEGMENTS && !self.closed && self.recovery.at().highest == self.supply
    }
    /// Timeouts since the last new acknowledgement.
    pub fn timeouts_in_a_row(&self) -> u32 {
        match self.state {
            State::Established => self.recovery.backoffs(),
            _ => self.counts.timeouts,
        }
    }
    /// Smoothed round-trip time; zero while unknown.
    pub fn srtt(&self) -> Time {
        self.recovery.at().srtt
    }
    /// Which controller sets its window.
    pub fn active_controller(&self) -> ActiveController {
        self.sender.active_controller()
    }
    /// The sender's allowance.
    pub fn allowance(&self) -> Allowance {
        self.allowance
    }
    /// Congestion window, segments.
    pub fn cwnd(&self) -> f64 {
        self.allowance.cwnd
    }
    /// Reports the variables of controller and recovery.
    pub fn probe(&mut self, put: Probe<'_>) {
        self.sender.probe(put);
        self.recovery.probe(put);
        if let Some(own) = self.own_round_trip() {
            put("controller_srtt_ms", measured_ms(own.srtt));
        }
    }

    /// A packet for this end arrived; anything but a valid acknowledgement is ignored. `sack` is read only if the header states
    /// that there are ranges.
    // A call costs three instructions per hop; without the attribute the compiler does not inline it into both loops of the driver.
    #[inline(always)]
    pub fn handle_packet(&mut self, now: Time, packet: &Packet, sack: &SackRanges) {
        let header = &packet.transport;
        if !header.has(flag::ACK) || header.flow() != self.id {
            return;
        }
        if header.has(flag::SYN) {
            return self.handle_syn_ack(now, header);
        }
        // The network copies packets and acknowledgements. Only the first answer to a packet counts: its duplicate says
        // nothing of a loss, its feedback has been taken.
        if self.state != State::Established || !self.answers_first(header.packet_number()) {
            return;
        }
        let Some(exact) = self.age(now, header) else { return };
        let rtt = self.clock.measure(now, exact);
        let out = self.recovery.acknowledge(now, header, sack, rtt);
        if out.undo {
            self.take_back(now);
        }
        if out.newly_acked == 0 && !out.duplicate {
            return;
        }
        self.rwnd = header.window();
        let (sum, carry) = self.counts.rtt_sum.overflowing_add(exact.0);
        self.counts.rtt_sum = sum;
        if carry {
            self.rare.get_or_insert_default().rtt_carry += 1;
        }
        self.counts.rtt_count += 1;
        let state = self.recovery.at();
        let (rtt, srtt) = match &mut self.rare {
            None => (rtt, state.srtt),
            Some(rare) => rare.controller_rtt(now, exact, out.newly_acked > 0).unwrap_or((rtt, state.srtt)),
        };
        // The acknowledgement that ends a repair belongs to it: it covers a whole window, and does not let the window
        // grow (RFC 5681 section 3.2, step 6).
        let recovering = self.repairing | state.recovering;
        self.repairing = state.recovering;
        if let Some(in_flight) = out.loss {
            // Further marks of the same window are ignored (RFC 3168 section 6.1.2).
            self.mark_recover = state.highest;
            self.cwr = true;
            let marked = header.has(flag::ECE);
            self.report(&Loss { now, kind: LossKind::Duplicates, in_flight, srtt, repeated: false, marked });
        } else if header.has(flag::ECE) && state.acked > self.mark_recover {
            self.mark_recover = state.highest;
            self.cwr = true;
            let in_flight = state.in_flight + out.newly_acked;
            let kind = LossKind::Mark;
            self.sender.on_loss(&Loss { now, kind, in_flight, srtt, repeated: false, marked: true });
        }
        let state = self.recovery.at();
        let ack = Ack {
            now,
            newly_acked: out.newly_acked,
            cumulative: state.acked,
            highest_sent: state.highest,
            duplicate: out.duplicate,
            selective: self.selective,
            header: &packet.congestion,
            transport: header,
            rtt,
            srtt,
            in_flight: state.in_flight,
            recovering,
            app_limited: !self.window_limited,
        };
        self.sender.take_ack(&ack, &mut self.allowance, &mut self.congestion);
        self.fit_window();
    }

    /// Whether an acknowledgement is the first to echo this packet number.
    #[inline(always)]
    fn answers_first(&mut self, number: u32) -> bool {
        if number == self.answered {
            self.answered = number.wrapping_add(1);
            return true;
        }
        self.answers_first_out_of_order(number)
    }
    #[inline(never)]
    fn answers_first_out_of_order(&mut self, number: u32) -> bool {
        if number as u64 >= self.counts.sent {
            self.ignore_echo();
            return false;
        }
        let Self { rare, unanswered, answered, .. } = self;
        unanswered.take(answered, number, move || &mut rare.get_or_insert_default().unanswered)
    }

    /// The age of the time stamp that an acknowledgement echoes; `None` if no packet left with it, which is counted.
    #[inline(always)]
    fn age(&mut self, now: Time, header: &Transport) -> Option<Time> {
        self.departures.age(now, header).or_else(|| self.age_of_any(now, header))
    }
    #[inline(never)]
    fn age_of_any(&mut self, now: Time, header: &Transport) -> Option<Time> {
        let earlier = self.rare.as_ref().map(|rare| &rare.departures);
        let age = self.departures.age_of_any(earlier, now, header);
        if age.is_none() {
            self.ignore_echo();
        }
        age
    }
    /// An acknowledgement echoes no packet of this connection.
    #[cold]
    fn ignore_echo(&mut self) {
        let ignored = &mut self.rare.get_or_insert_default().ignored_echoes;
        *ignored = ignored.saturating_add(1);
    }
    /// Updates allowance and header from the sender, without an acknowledgement.
    fn allow(&mut self) {
        self.allowance = self.sender.allowance();
        self.sender.state(&mut self.congestion);
        self.fit_window();
    }
    /// Updates the window after a change of the sender's or the receiver's.
    #[inline(always)]
    fn fit_window(&mut self) {
        self.window = self.rwnd.min(self.allowance.cwnd as u32);
    }
    #[inline(always)]
    fn windows(&self) -> Windows {
        Windows { cwnd: self.allowance.cwnd, rwnd: self.rwnd, both: self.window }
    }

    /// The smoothed round-trip time for the controller.
    #[inline]
    fn controller_srtt(&self) -> Time {
        self.own_round_trip().map_or(self.recovery.at().srtt, |own| own.srtt)
    }
    /// The controller's estimate of the round trip, if it is not the timer's.
    #[inline]
    fn own_round_trip(&self) -> Option<&RoundTrip> {
        self.rare.as_ref().and_then(|rare| rare.round_trip.as_ref())
    }
    /// When a timer due at `due` expires: at the next tick of the host's clock. Pacing does not use that clock.
    pub fn expires(&self, due: Time) -> Time {
        let paced = due == self.wait_until && self.state == State::Established;
        if self.clock.is_exact() || paced { due } else { due.next_multiple_of(Time(self.clock.tick() as u64)) }
    }

    /// Whether the connection is set up.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// When this endpoint next needs [`SenderEndpoint::handle_timeout`].
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        let mut due = self.recovery.at().timer;
        if self.interest.timer {
            due = due.min(self.sender.next_timer());
        }
        if self.wait_until > Time::ZERO {
            due = due.min(self.wait_until);
        }
        due
    }
    /// Runs every timer that is due.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.state == State::Opened && self.wait_until <= now {
            self.counts.timeouts = self.counts.timeouts.saturating_add(1);
            self.wait_until = Time::ZERO;
            self.state = State::Opening;
        }
        let mut changes = true;
        match self.recovery.handle_timeout(now) {
            None => changes = false,
            Some(Expired::Early(out)) => self.handle_early(now, out),
            Some(Expired::Timeout { in_flight, repeated }) => {
                self.counts.timeouts = self.counts.timeouts.saturating_add(1);
                let state = self.recovery.at();
                self.mark_recover = state.highest;
                let (kind, srtt) = (LossKind::Timeout, self.controller_srtt());
                // Packets that fast recovery sent beyond the window do not count: BSD, Linux and ns-2 halve the window.
                let in_flight = in_flight.min((self.allowance.cwnd as u32).max(1));
                self.report(&Loss { now, kind, in_flight, srtt, repeated, marked: false });
                self.repairing = self.recovery.at().recovering;
            }
        }
        if self.interest.timer && self.sender.next_timer() <= now {
            self.sender.on_timer(now);
            changes = true;
        }
        // Where only pacing's time has come, window and header are what they were.
        if changes {
            self.allow();
        }
    }
}
