//! What acknowledgements show of a path, round trip by round trip.

use super::full_queue::FullQueue;
use crate::api::Ack;
use crate::units::Time;
use crate::wire::{Ecn, Mark};

/// Delay that is one: at least, and as a share of the least round trip.
const LEAST_DELAY: Time = Time::millis(25);
const DELAY_SHARE: u64 = 4;
/// Fewest packets that a round trip is judged by.
const FEWEST: f64 = 10.0;
/// The least round trip is that of the last one to two of these spans.
const MEMORY: Time = Time::secs(30);

/// A round trip's packets.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) began: Time,
    /// Packets whose numbers were passed, and those of them that arrived.
    pub(super) sent: f64,
    pub(super) arrived: f64,
    /// The least that a round-trip time exceeded the least one, without the routers' own queues.
    pub(super) delay: Time,
    /// A router has told of what is lost.
    pub(super) explained: bool,
}

impl Round {
    fn new(began: Time) -> Round {
        Round { began, sent: 0.0, arrived: 0.0, delay: Time::NEVER, explained: false }
    }
    /// What is missing; less than nothing if more of an earlier one has turned up.
    pub(super) fn lost(&self) -> f64 {
        self.sent - self.arrived
    }
}

/// Losses and delays by the acknowledgements.
pub(super) struct Watch {
    pub(super) round: Round,
    /// The highest packet number that an acknowledgement echoed; none before the first.
    pub(super) echoed: Option<u32>,
    /// The count of arrivals that came with it.
    pub(super) arrived: u16,
    /// Least round trips of the present span and of the one before, without the routers' own queues.
    pub(super) least: [Time; 2],
    pub(super) span_began: Time,
    pub(super) full_queue: FullQueue,
}

impl Default for Watch {
    fn default() -> Watch {
        let (echoed, arrived, least, span_began) = (None, 0, [Time::NEVER; 2], Time::ZERO);
        let full_queue = FullQueue::default();
        Watch { round: Round::new(Time::ZERO), echoed, arrived, least, span_began, full_queue }
    }
}

impl Watch {
    /// Takes an acknowledgement; the round trip that it ends.
    pub(super) fn take(&mut self, ack: &Ack<'_>, mark: Mark) -> Option<Round> {
        let number = ack.transport.packet_number();
        let Some(echoed) = self.echoed else {
            (self.echoed, self.arrived) = (Some(number), ack.transport.arrived());
            self.round = Round::new(ack.now);
            self.measure(ack.now, mark.waited().map(|waited| ack.rtt.since(waited)));
            return None;
        };
        let ahead = number.wrapping_sub(echoed) as i32;
        if ahead > 0 {
            let arrived = ack.transport.arrived();
            let came = arrived.wrapping_sub(self.arrived) as i16;
            self.round.sent += ahead as f64;
            self.round.arrived += came as f64;
            // XTCP's and VCP's routers report what they drop; those of XCP do not.
            let compared = |waited: &Time| *waited == Time::ZERO || !ack.header.is_present();
            if let Some(waited) = mark.waited().filter(compared) {
                self.full_queue.take(number, ack.rtt.since(waited), ahead > came as i32);
            }
            (self.echoed, self.arrived) = (Some(number), arrived);
        } else if ahead < 0 {
            self.full_queue.overtaken();
        }
        self.measure(ack.now, mark.waited().map(|waited| ack.rtt.since(waited)));
        self.round.explained |= ack.transport.congestion_flag() || ack.transport.load_code() == Ecn::Marked as u8;
        let over = ack.now.since(self.round.began) >= ack.srtt && self.round.sent >= FEWEST;
        over.then(|| {
            self.full_queue.next_round(self.round.explained);
            core::mem::replace(&mut self.round, Round::new(ack.now))
        })
    }

    /// A round-trip time without the routers' own queues, if that is known.
    fn measure(&mut self, now: Time, rtt: Option<Time>) {
        if now.since(self.span_began) > MEMORY {
            (self.least, self.span_began) = ([Time::NEVER, self.least[0]], now);
        }
        if let Some(rtt) = rtt {
            self.least[0] = self.least[0].min(rtt);
            self.round.delay = self.round.delay.min(rtt.since(self.least_rtt()));
        } else {
            self.round.delay = Time::ZERO;
        }
    }
    pub(super) fn least_rtt(&self) -> Time {
        self.least[0].min(self.least[1])
    }
    /// What a round-trip time may exceed the least one by.
    pub(super) fn most_delay(&self) -> Time {
        LEAST_DELAY.max(Time(self.least_rtt().0 / DELAY_SHARE))
    }
}
