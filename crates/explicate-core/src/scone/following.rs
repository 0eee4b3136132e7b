//! The ends of a flow that follows advice.
//!
//! | rule | value | section of the draft |
//! | --- | --- | --- |
//! | SCONE packets at the start | with the first data packet, then after 1, 2, 4, ... s up to `scone_every` | "Providing Opportunities" |
//! | later | every `scone_every`, 20 s; at least two in a period are a must | "Providing Opportunities" |
//! | advice that counts | the lowest one received in the last 67 s | "Following Throughput Advice" |
//! | 127, no advice | ignored | "Endpoint Processing" |
//! | return | in every acknowledgement | "Feedback To Sender": left to the transport |
//! | what it limits | the pacing rate; the draft limits what is sent in 67 s | "Monitoring Period" |
//!
//! A window that advice keeps from being used does not grow, as if the application were the limit (RFC 9438 section 5.8).

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use crate::agent::Address;
use crate::api::object::{ActiveController, Interest, SenderObject};
use crate::api::{Ack, Allowance, AnyReceiver, AnySender, Loss, Probe, Receiver, Sent, Undo, Writes};
use crate::units::{Rate, Time};
use crate::wire::scone::{Advice, PERIOD};
use crate::wire::{Congestion, Packet};

/// Time between the first two SCONE packets of a flow.
const FIRST_GAP: Time = Time::secs(1);

/// A sender that sends SCONE packets, and paces at most at the rate that returns.
pub(crate) struct Following {
    sender: Box<AnySender>,
    interest: Interest,
    advised: Option<Rate>,
    /// When the next SCONE packet is due, the time from it to the one after it, and the longest such time.
    due: Time,
    gap: Time,
    every: Time,
}

impl Following {
    /// Around this sender; in the long run a SCONE packet leaves `every` so often.
    pub(crate) fn new(sender: Box<AnySender>, every: Time) -> Following {
        let interest = sender.interest();
        Following { sender, interest, advised: None, due: Time::ZERO, gap: FIRST_GAP.min(every), every }
    }
}

impl SenderObject for Following {
    fn interest(&self) -> Interest {
        Interest { writes: Writes::PerPacket, timer: self.interest.timer }
    }
    fn limits_repair(&self) -> bool {
        self.sender.limits_repair()
    }
    fn allowance(&self) -> Allowance {
        let own = self.sender.allowance();
        let pacing = match (own.pacing, self.advised) {
            (Some(rate), Some(advised)) => Some(rate.min(advised)),
            (rate, advised) => rate.or(advised),
        };
        Allowance { pacing, ..own }
    }
    fn on_start(&mut self, now: Time, rtt: Time) {
        self.sender.on_start(now, rtt);
    }
    fn on_attach(&mut self, own: Address) {
        self.sender.on_attach(own);
    }
    fn on_idle(&mut self, now: Time, idle: Time, timeout: Time) {
        self.sender.on_idle(now, idle, timeout);
    }
    fn on_send(&mut self, packet: &mut Packet, sent: &Sent) {
        if self.interest.in_packet(sent.backlogged) {
            self.sender.on_send(packet, sent);
        }
        if sent.now >= self.due {
            packet.congestion.set_advice(Advice::NONE);
            self.due = sent.now + self.gap;
            self.gap = (self.gap + self.gap).min(self.every);
        }
    }
    fn state(&mut self, header: &mut Congestion) {
        self.sender.state(header);
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(advice) = ack.header.advice() {
            self.advised = advice.rate().map(|rate| Rate(rate as u64));
        }
        // One packet less than the window may be in flight where the next one only waits for its turn.
        let used = f64::from(ack.in_flight) + f64::from(ack.newly_acked) + 1.0;
        let held = self.advised.is_some() && used < self.sender.allowance().cwnd;
        self.sender.on_ack(&Ack { app_limited: ack.app_limited || held, ..*ack });
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.sender.on_loss(loss);
    }
    fn threshold(&self) -> f64 {
        self.sender.threshold()
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.sender.on_undo(undo);
    }
    fn on_timer(&mut self, now: Time) {
        self.sender.on_timer(now);
    }
    fn next_timer(&self) -> Time {
        self.sender.next_timer()
    }
    fn resume(&mut self, now: Time, window: f64, srtt: Time) {
        self.sender.resume(now, window, srtt);
    }
    fn active_controller(&self) -> ActiveController {
        self.sender.active_controller()
    }
    fn probe(&self, put: Probe<'_>) {
        self.sender.probe(put);
        put("advised_bps", self.advised.map_or(f64::NAN, |rate| rate.0 as f64));
    }
}

/// Advice of the last monitoring period.
#[derive(Default)]
struct Heard {
    /// When it was received; of two pieces of advice the lower one, and later ones that are higher.
    advice: VecDeque<(Time, Advice)>,
}

impl Heard {
    fn take(&mut self, now: Time, advice: Advice) {
        if advice == Advice::NONE {
            return;
        }
        while self.advice.back().is_some_and(|(_, earlier)| *earlier >= advice) {
            self.advice.pop_back();
        }
        self.advice.push_back((now, advice));
    }
    /// The lowest advice of the last period.
    fn lowest(&mut self, now: Time) -> Advice {
        while self.advice.front().is_some_and(|(at, _)| *at + PERIOD < now) {
            self.advice.pop_front();
        }
        self.advice.front().map_or(Advice::NONE, |(_, advice)| *advice)
    }
}

/// A receiver that returns the lowest advice of a period in each acknowledgement.
pub(crate) struct Returning {
    receiver: Option<Box<AnyReceiver>>,
    heard: Heard,
}

impl Returning {
    /// Around the receiver of the protocol, if it has one.
    pub(crate) fn new(receiver: Option<Box<AnyReceiver>>) -> Returning {
        Returning { receiver, heard: Heard::default() }
    }
}

impl Receiver for Returning {
    fn on_open(&mut self, marks: bool) {
        if let Some(receiver) = &mut self.receiver {
            receiver.on_open(marks);
        }
    }
    fn on_data(&mut self, now: Time, packet: &Packet) {
        if let Some(advice) = packet.congestion.advice() {
            self.heard.take(now, advice);
        }
        if let Some(receiver) = &mut self.receiver {
            receiver.on_data(now, packet);
        }
    }
    fn on_ack(&mut self, now: Time, ack: &mut Packet) {
        if let Some(receiver) = &mut self.receiver {
            receiver.on_ack(now, ack);
        }
        ack.congestion.set_advice(self.heard.lowest(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::testing;

    fn following(protocol: &str, window: f64) -> Following {
        Following::new(testing::sender(registry::protocol(protocol).unwrap(), window, &[]), Time::secs(20))
    }
    /// An acknowledgement with this advice arrives, `in_flight` after it.
    fn answer(s: &mut Following, advice: Advice, in_flight: u32) {
        let mut header = Congestion::NONE;
        header.set_advice(advice);
        s.on_ack(&Ack { in_flight, ..testing::ack(Time::millis(100), &header) });
    }

    /// With the first packet, and then 1, 2, 4, 8, 16, 20, 20 s apart: 0, 1, 3, 7, 15, 31, 51, 71. Packets leave every 100 ms.
    #[test]
    fn scone_packets_leave_at_the_start_and_from_time_to_time() {
        let mut s = following("reno", 3.0);
        let mut at = alloc::vec::Vec::new();
        for tick in 0..800 {
            let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
            s.on_send(&mut packet, &testing::sent(Time::millis(100 * tick), 1));
            if let Some(advice) = packet.congestion.advice() {
                assert_eq!(advice, Advice::NONE, "what a sender writes");
                at.push(tick / 10);
            }
        }
        assert_eq!(at, [0, 1, 3, 7, 15, 31, 51, 71]);
    }

    /// 10 Mbit/s, then no advice; 100 kbit/s, then more than BBR's own pace.
    #[test]
    fn advice_limits_the_pace() {
        let mut s = following("reno", 30.0);
        let own = s.allowance();
        assert_eq!(own.pacing, None);
        answer(&mut s, Advice::at_most(1e7), 29);
        assert_eq!(s.allowance().pacing, Some(Rate::mbps(10)));
        answer(&mut s, Advice::NONE, 29);
        assert_eq!(s.allowance().pacing, None);

        let mut s = following("bbr", 30.0);
        s.on_start(Time::ZERO, Time::millis(100));
        let own = s.allowance().pacing.expect("its own pace");
        answer(&mut s, Advice::at_most(1e5), 29);
        assert_eq!(s.allowance().pacing, Some(Rate(100_000)));
        answer(&mut s, Advice::from_index(126).unwrap(), 29);
        assert!(s.allowance().pacing.unwrap().0 < 10 * own.0, "the slower of both");
    }

    /// 30 segments allowed and 30 used: slow start adds one. 11 used: nothing, if advice is the reason.
    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        for (advice, in_flight, window) in
            [(Advice::at_most(1e7), 29, 31.0), (Advice::at_most(1e7), 10, 30.0), (Advice::NONE, 10, 31.0)]
        {
            let mut s = following("reno", 30.0);
            answer(&mut s, advice, in_flight);
            assert_eq!(s.allowance().cwnd, window, "{advice:?}, {in_flight}");
        }
    }

    /// Advice 40 at 0 s, 50 at 10 s, 30 at 20 s and 60 at 30 s: 40, 40, 30; 30 counts up to 87 s, 60 up to 97 s.
    #[test]
    fn the_lowest_advice_of_a_period_counts() {
        let mut heard = Heard::default();
        let mut lowest = |second: u64, new: Option<u8>| {
            if let Some(advice) = new.and_then(Advice::from_index) {
                heard.take(Time::secs(second), advice);
            }
            heard.lowest(Time::secs(second)).index()
        };
        let said = [(0, Some(40)), (10, Some(50)), (20, Some(30)), (30, Some(60)), (40, Some(127))];
        assert_eq!(said.map(|(second, new)| lowest(second, new)), [40, 40, 30, 30, 30]);
        assert_eq!([87, 88, 97, 98].map(|second| lowest(second, None)), [30, 60, 60, 127]);
    }

    #[test]
    fn every_acknowledgement_returns_advice() {
        let mut receiver = Returning::new(None);
        let mut returned = |advice: Option<Advice>| {
            let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
            advice.into_iter().for_each(|advice| packet.congestion.set_advice(advice));
            receiver.on_data(Time::ZERO, &packet);
            let mut ack = Packet::EMPTY;
            receiver.on_ack(Time::ZERO, &mut ack);
            ack.congestion.advice()
        };
        let ten = Advice::at_most(1e7);
        assert_eq!(
            [None, Some(Advice::NONE), Some(ten), None].map(&mut returned),
            [Some(Advice::NONE), Some(Advice::NONE), Some(ten), Some(ten)]
        );
    }
}
