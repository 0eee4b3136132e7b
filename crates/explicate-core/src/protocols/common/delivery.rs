//! Arrivals and delivery rate, for controllers that measure bandwidth; other controllers have no cost.
//!
//! `Arrivals` counts segments that have reached the receiver, each once. Where the recovery learns of every arrival, these are
//! the newly acknowledged ones, and a duplicate that reports none was caused by an unnecessary retransmission. Otherwise a
//! duplicate counts as one segment, which no longer counts when the cumulative number covers it (Westwood's AckedCount).
//! `DeliveryRate` samples the rate at which the network delivers at every
//! acknowledgement (draft-cheng-iccrg-delivery-rate-estimation-00): each packet records how much had been delivered
//! when it left, and its acknowledgement shows how much has been delivered since. The divisor is the longer of the
//! sending and the acknowledging time, so that compressed acknowledgements do not exaggerate the rate.
//!
//! | symbol | field | unit | section |
//! | --- | --- | --- | --- |
//! | C.delivered, C.delivered_time | `delivered`, `delivered_at` | segments, time | 3.1.1 |
//! | C.first_sent_time | `first_sent` | time | 3.1.1 |
//! | C.app_limited | `limited_until` | segments | 3.1.1, 3.4 |
//! | P.delivered, P.delivered_time, ... | `Record` | | 3.1.2 |
//! | rs.delivered, rs.interval, ... | `Sample` | | 3.1.3 |
//!
//! Deviations: a packet is found by its echoed number, so a sample belongs to the packet that caused the
//! acknowledgement. The application counts as the limit (section 3.4) from a packet after which it has no more data
//! to send.

use alloc::vec::Vec;

use crate::api::{Ack, Sent};
use crate::protocols::common::float::seconds;
use crate::units::Time;

/// Counts arrivals, whether SACK reports them one by one or duplicates come first.
#[derive(Default)]
pub(crate) struct Arrivals {
    /// Duplicates counted that the cumulative number does not yet cover.
    ahead: u32,
}

impl Arrivals {
    /// Segments that have arrived since the last acknowledgement, as this one shows.
    #[inline]
    pub(crate) fn count(&mut self, ack: &Ack<'_>) -> u32 {
        if ack.selective {
            return ack.newly_acked;
        }
        // No more can have arrived beyond the first gap than was sent.
        let most_ahead = ack.highest_sent.saturating_sub(ack.cumulative).saturating_sub(1);
        if ack.newly_acked == 0 {
            let arrived = (ack.duplicate && self.ahead < most_ahead) as u32;
            self.ahead += arrived;
            return arrived;
        }
        if self.ahead == 0 {
            return ack.newly_acked;
        }
        // What fills a gap has not been counted. Outside of a repair a surplus is one of needless duplicates, and is given back.
        let most = ack.newly_acked - ack.recovering as u32;
        let known = self.ahead.min(most);
        self.ahead = (self.ahead - known).min(most_ahead);
        ack.newly_acked - known
    }
}

/// The state recorded with a packet, and what its controller notes with it.
#[derive(Clone, Copy)]
struct Record<N> {
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    sent_at: Time,
    limited: bool,
    note: N,
}

/// Records of packets with consecutive numbers: that of packet n is at n modulo the length, which is a power of two.
#[derive(Default)]
struct Records<N> {
    ring: Vec<Record<N>>,
    /// The first number, and one past the last.
    first: u32,
    end: u32,
}

impl<N: Copy> Records<N> {
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & self.ring.len().wrapping_sub(1)
    }
    /// Adds the record of a packet. If it is not the next one, those before it are dropped.
    #[inline(always)]
    fn push(&mut self, number: u32, record: Record<N>) {
        if number != self.end {
            (self.first, self.end) = (number, number);
        }
        if self.end.wrapping_sub(self.first) as usize == self.ring.len() {
            self.grow(record);
        }
        let place = self.place(number);
        self.ring[place] = record;
        self.end = number.wrapping_add(1);
    }
    /// Makes room for as many records again; this one fills it.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: Record<N>) {
        let longer = alloc::vec![filler; (2 * self.ring.len()).max(4)];
        let shorter = core::mem::replace(&mut self.ring, longer);
        for n in 0..shorter.len() as u32 {
            let number = self.first.wrapping_add(n);
            let place = self.place(number);
            self.ring[place] = shorter[number as usize & (shorter.len() - 1)];
        }
    }
    /// How many packets with records left before the one with this number; none if it has no record.
    #[inline(always)]
    fn before(&self, number: u32) -> Option<u32> {
        let before = number.wrapping_sub(self.first);
        (before < self.end.wrapping_sub(self.first)).then_some(before)
    }
    /// The record of a packet that has one. It is dropped, and so are those before it.
    #[inline(always)]
    fn take(&mut self, number: u32) -> &Record<N> {
        self.first = number.wrapping_add(1);
        &self.ring[self.place(number)]
    }
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sample {
    /// Segments delivered in total when the packet left.
    pub(crate) prior_delivered: u64,
    /// Segments delivered since.
    pub(crate) delivered: u32,
    /// In this time.
    pub(crate) interval: Time,
    /// The application was the limit: the path may have more bandwidth.
    pub(crate) limited: bool,
}

impl Sample {
    /// Segments a second.
    pub(crate) fn rate(&self) -> f64 {
        self.delivered as f64 / seconds(self.interval)
    }
}

/// The delivery-rate estimator of one flow, whose controller may keep a note with every packet.
#[derive(Default)]
pub(crate) struct DeliveryRate<N = ()> {
    arrivals: Arrivals,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Samples are limited by the application until this number of segments is delivered.
    limited_until: u64,
    /// The retransmission timer expired, and data from before are not acknowledged yet: the sender counts none of them as in
    /// flight, but some may be.
    timed_out: bool,
    records: Records<N>,
}

impl DeliveryRate {
    /// A packet leaves.
    pub(crate) fn on_send(&mut self, packet_number: u32, sent: &Sent) {
        self.on_send_noted(packet_number, sent, ());
    }
}

impl<N: Copy> DeliveryRate<N> {
    /// Segments delivered in total.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The application limits the present samples.
    pub(crate) fn limited(&self) -> bool {
        self.delivered < self.limited_until
    }

    /// The packets in flight, and one more, do not measure the path's bandwidth.
    pub(crate) fn limit(&mut self, in_flight: u32) {
        self.limited_until = self.delivered + in_flight as u64 + 1;
    }

    /// The retransmission timer expired. What is outstanding counts as in flight for the samples (section 3.2 compares SND.UNA with
    /// SND.NXT): otherwise late acknowledgements would be measured over too short a time.
    pub(crate) fn on_timeout(&mut self) {
        self.timed_out = true;
    }

    /// A packet leaves, with this note.
    #[inline]
    pub(crate) fn on_send_noted(&mut self, packet_number: u32, sent: &Sent, note: N) {
        if sent.in_flight == 0 && !self.timed_out {
            (self.first_sent, self.delivered_at) = (sent.now, sent.now);
        }
        if !sent.backlogged {
            self.limit(sent.in_flight);
        }
        let record = Record {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            sent_at: sent.now,
            limited: self.limited(),
            note,
        };
        self.records.push(packet_number, record);
    }

    /// An acknowledgement arrived. Returns no sample without the record of its packet, nor over less than `least`,
    /// where clocks and bursts would dominate (section 3.3).
    pub(crate) fn on_ack(&mut self, ack: &Ack<'_>, least: Time) -> Option<Sample> {
        self.on_ack_noted(ack, least, |_, _| ()).and_then(|(_, sample)| sample)
    }

    /// As [`DeliveryRate::on_ack`], with the note of the packet that the acknowledgement echoes, if it has a record.
    /// Records of earlier packets are dropped: `overtaken` is called with the note of each, the oldest first, and with
    /// the number of others between it and the packet.
    #[inline(always)]
    pub(crate) fn on_ack_noted(
        &mut self,
        ack: &Ack<'_>,
        least: Time,
        mut overtaken: impl FnMut(N, u32),
    ) -> Option<(&N, Option<Sample>)> {
        let arrived = self.arrivals.count(ack);
        self.timed_out &= ack.cumulative < ack.highest_sent;
        if arrived > 0 {
            self.delivered += arrived as u64;
            self.delivered_at = ack.now;
        }
        let number = ack.transport.packet_number();
        for others in (0..self.records.before(number)?).rev() {
            let earlier = self.records.take(number.wrapping_sub(others + 1));
            overtaken(earlier.note, others);
        }
        let packet = self.records.take(number);
        self.first_sent = packet.sent_at;
        let sending = packet.sent_at.since(packet.first_sent);
        let interval = sending.max(self.delivered_at.since(packet.delivered_at));
        let delivered = (self.delivered - packet.delivered) as u32;
        let good = arrived > 0 && delivered > 0 && interval >= least && interval > Time::ZERO;
        let (prior_delivered, limited) = (packet.delivered, packet.limited);
        Some((&packet.note, good.then_some(Sample { prior_delivered, delivered, interval, limited })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::wire::{Congestion, Transport};
    use alloc::boxed::Box;

    fn ack(ms: u64, number: u32, newly_acked: u32) -> Ack<'static> {
        let now = Time::millis(ms);
        let transport = Box::leak(Box::new(Transport::EMPTY));
        transport.set_packet_number(number);
        Ack { transport, newly_acked, duplicate: newly_acked == 0, ..testing::ack(now, &Congestion::NONE) }
    }

    /// Hole at one segment: three duplicates, then a jump of four. Four segments arrived after the hole was sent, not seven.
    #[test]
    fn duplicates_are_counted_once() {
        let mut arrivals = Arrivals::default();
        let counted = [1, 0, 0, 0, 4, 1]
            .map(|n| arrivals.count(&Ack { recovering: n != 1, highest_sent: 20, cumulative: 5, ..ack(0, 0, n) }));
        assert_eq!(counted, [1, 1, 1, 1, 1, 1]);
        // A jump that no duplicates announced: acknowledgements were lost.
        assert_eq!(arrivals.count(&ack(0, 0, 5)), 5);
    }

    /// Ten segments arrive, and three of them a second time: three duplicates more, which the next acknowledgements give back.
    #[test]
    fn needless_duplicates_are_given_back() {
        let mut arrivals = Arrivals::default();
        let counted: u32 = [1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
            .iter()
            .map(|n| arrivals.count(&Ack { highest_sent: 20, cumulative: 5, ..ack(0, 0, *n) }))
            .sum();
        assert_eq!(counted, 10);
        // More cannot have arrived than the two segments beyond the gap.
        let counted = [0; 5].map(|n| arrivals.count(&Ack { highest_sent: 8, cumulative: 5, ..ack(0, 0, n) }));
        assert_eq!(counted, [1, 1, 0, 0, 0]);
    }

    /// With SACK each duplicate states what it covers; one that covers nothing is of a needless retransmission.
    #[test]
    fn reports_leave_nothing_to_guess() {
        let mut arrivals = Arrivals::default();
        let counted = [1, 1, 0, 1, 0, 4, 1].map(|n| {
            arrivals.count(&Ack { selective: true, duplicate: n < 2, highest_sent: 20, cumulative: 5, ..ack(0, 0, n) })
        });
        assert_eq!(counted, [1, 1, 0, 1, 0, 4, 1]);
    }

    /// A packet every 10 ms. `acked_at` is the time of each acknowledgement; returns the samples from the tenth
    /// packet on.
    fn steady(acked_at: impl Fn(u64) -> u64) -> alloc::vec::Vec<Sample> {
        let mut rate = DeliveryRate::default();
        let mut samples = alloc::vec::Vec::new();
        let (mut acked, mut sent) = (0, 0);
        for ms in 0..1000 {
            while acked < sent && acked_at(acked) == ms {
                samples.extend(rate.on_ack(&ack(ms, acked as u32, 1), Time::millis(50)));
                acked += 1;
            }
            if ms % 10 == 0 {
                rate.on_send(sent as u32, &testing::sent(Time::millis(ms), (sent - acked) as u32));
                sent += 1;
            }
        }
        samples.drain(..10);
        samples
    }

    #[test]
    fn a_packet_every_ten_milliseconds() {
        let samples = steady(|n| 10 * n + 100);
        assert!(samples.len() > 70 && samples.iter().all(|s| s.delivered == 10 && s.interval == Time::millis(100)));
        // Acknowledgements that arrive ten at a time: the rate never exceeds that of sending.
        let samples = steady(|n| 100 * (n / 10) + 190);
        assert!(samples.len() > 70);
        let most = samples.iter().map(Sample::rate).fold(0.0, f64::max);
        assert!((most - 100.0).abs() < 1e-9, "{most} segments a second");
    }

    /// Ten segments leave at 0 ms, the timer expires at 1000 ms, and the first leaves again. The original of the first arrives late, with all
    /// others, 10 ms later: ten segments since 0 ms, not in 10 ms. When all are acknowledged the next begins anew.
    #[test]
    fn a_timeout_does_not_shorten_what_is_measured() {
        let mut rate = DeliveryRate::default();
        (0..10).for_each(|n| rate.on_send(n, &testing::sent(Time::ZERO, n)));
        rate.on_timeout();
        rate.on_send(10, &testing::sent(Time::secs(1), 0));
        let all = Ack { selective: true, highest_sent: 10, cumulative: 10, ..ack(1010, 10, 10) };
        let sample = rate.on_ack(&all, Time::ZERO).expect("a sample");
        assert_eq!((sample.delivered, sample.interval), (10, Time::millis(1010)));
        rate.on_send(11, &testing::sent(Time::secs(5), 0));
        let next = Ack { selective: true, highest_sent: 11, cumulative: 11, ..ack(5100, 11, 1) };
        assert_eq!(rate.on_ack(&next, Time::ZERO).map(|sample| sample.interval), Some(Time::millis(100)));
    }

    /// Packets 0 to 4 have notes. The first acknowledgement is of packet 2, which has overtaken 0 and 1. An
    /// acknowledgement of 1 that comes later finds no record.
    #[test]
    fn an_acknowledgement_finds_notes_once() {
        let mut rate = DeliveryRate::<u32>::default();
        (0..5).for_each(|n| rate.on_send_noted(n, &testing::sent(Time::ZERO, n), 10 * n));
        let mut found = |number| {
            let mut overtaken = std::vec::Vec::new();
            let seen = |note, others| overtaken.push((note, others));
            let own = rate.on_ack_noted(&ack(100, number, 1), Time::ZERO, seen).map(|(note, _)| *note);
            (overtaken, own)
        };
        assert_eq!(found(2), (std::vec![(0, 1), (10, 0)], Some(20)));
        assert_eq!(found(3), (std::vec![], Some(30)));
        assert_eq!([found(1), found(5)], [(std::vec![], None), (std::vec![], None)]);
    }

    #[test]
    fn an_application_that_stops_limits_what_is_in_flight() {
        let mut rate = DeliveryRate::default();
        for n in 0..6 {
            rate.on_send(n, &Sent { backlogged: n != 2, ..testing::sent(Time::millis(n as u64), n) });
        }
        let limited: alloc::vec::Vec<bool> =
            (0..6).filter_map(|n| rate.on_ack(&ack(100 + n as u64, n, 1), Time::ZERO)).map(|s| s.limited).collect();
        assert_eq!(limited, [false, false, true, true, true, true], "until 2 is delivered");
        rate.on_send(6, &testing::sent(Time::millis(200), 0));
        assert_eq!(rate.on_ack(&ack(300, 6, 1), Time::ZERO).map(|s| (s.limited, s.rate())), Some((false, 10.0)));
        assert_eq!(rate.on_ack(&ack(300, 6, 1), Time::ZERO), None, "the packet is known no more");
    }
}
