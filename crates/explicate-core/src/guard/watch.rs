//! What acknowledgements show of a path, round trip by round trip.

use super::full_queue::Comparison;
use super::limit::{FEWEST, FullQueue, LeastRtt, Seen};
use crate::api::Ack;
use crate::units::Time;
use crate::wire::{Ecn, Mark};

/// A round trip's packets.
#[derive(Clone, Copy)]
pub(super) struct Round {
    pub(super) began: Time,
    /// Packets whose numbers were passed, and those of them that arrived.
    pub(super) sent: f64,
    pub(super) arrived: f64,
    /// What is missing before packets behind which an answering router reports a drop.
    pub(super) dropped: f64,
    /// The least that a round-trip time exceeded the least one, without the routers' own queues.
    pub(super) delay: Time,
    /// A router has reported what is lost.
    pub(super) explained: bool,
}

impl Round {
    fn new(began: Time) -> Round {
        Round { began, sent: 0.0, arrived: 0.0, dropped: 0.0, delay: Time::NEVER, explained: false }
    }
    /// The delay, if a packet's wait is known: behind drops it is not.
    pub(super) fn known_delay(&self) -> Time {
        if self.delay == Time::NEVER { Time::ZERO } else { self.delay }
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
    /// Without the routers' own queues.
    pub(super) least: LeastRtt,
    pub(super) full_queue: Comparison,
}

impl Default for Watch {
    fn default() -> Watch {
        let (least, full_queue) = (LeastRtt::default(), Comparison::default());
        Watch { round: Round::new(Time::ZERO), echoed: None, arrived: 0, least, full_queue }
    }
}

/// Packets that arrived while the sender's numbers advanced by `sent`, from two counts modulo 2^16. As many are missing as is
/// nearest to none: less than 2^15.
fn arrivals(sent: i32, from: u16, to: u16) -> i32 {
    let missing = (sent as u16).wrapping_sub(to.wrapping_sub(from)) as i16;
    sent - missing as i32
}

impl Watch {
    /// Takes an acknowledgement; the round trip that it ends.
    pub(super) fn take(&mut self, ack: &Ack<'_>, mark: Mark) -> Option<Round> {
        let number = ack.transport.packet_number();
        let Some(echoed) = self.echoed else {
            (self.echoed, self.arrived) = (Some(number), ack.transport.arrived());
            self.round = Round::new(ack.now);
            self.measure(ack, mark);
            return None;
        };
        let ahead = number.wrapping_sub(echoed) as i32;
        if ahead > 0 {
            let arrived = ack.transport.arrived();
            let came = arrivals(ahead, self.arrived, arrived);
            self.round.sent += ahead as f64;
            self.round.arrived += came as f64;
            if mark.is_behind_drop() {
                self.round.dropped += (ahead - came).max(0) as f64;
            }
            if let Some(waited) = mark.waited().filter(|_| !mark.is_coarse()) {
                self.full_queue.take(number, ack.rtt.since(waited), ahead > came);
            }
            (self.echoed, self.arrived) = (Some(number), arrived);
        } else if ahead < 0 {
            self.full_queue.overtaken();
        }
        self.measure(ack, mark);
        self.round.explained |= ack.transport.congestion_flag() || ack.transport.code() == Ecn::Marked as u8;
        let over = ack.now.since(self.round.began) >= ack.srtt && self.round.sent >= FEWEST;
        over.then(|| {
            self.full_queue.next_round(self.round.explained);
            core::mem::replace(&mut self.round, Round::new(ack.now))
        })
    }

    /// A round-trip time without the routers' own queues, if that is known.
    fn measure(&mut self, ack: &Ack<'_>, mark: Mark) {
        self.least.advance(ack.now);
        if let Some(waited) = mark.waited() {
            let rtt = ack.rtt.since(waited);
            self.least.take(rtt);
            self.round.delay = self.round.delay.min(rtt.since(self.least.get()));
        } else if !mark.is_behind_drop() {
            self.round.delay = Time::ZERO;
        }
    }

    /// What a round trip shows of the hops where no router answers.
    pub(super) fn seen(&self, round: &Round) -> Seen {
        let queue = match (self.full_queue.is_certain(), self.full_queue.is_likely()) {
            (true, _) => FullQueue::Certain,
            (false, true) => FullQueue::Likely,
            (false, false) => FullQueue::Unseen,
        };
        let (sent, lost, unexplained) = (round.sent, round.lost(), round.lost() - round.dropped);
        Seen { sent, lost, unexplained, delay: round.known_delay(), most_delay: self.least.most_delay(), queue }
    }
}

#[cfg(test)]
mod tests {
    use super::arrivals;

    /// Counts of arrivals wrap, also between two acknowledgements that are far apart; late ones may be more than were sent since.
    #[test]
    fn counts_of_arrivals_wrap() {
        for sent in [1, 40, 40_000, 65_535, 65_536, 1_000_000] {
            for missing in [0, 1, 30_000, -3] {
                for from in [0u16, 7, 65_000] {
                    let came = sent - missing;
                    assert_eq!(arrivals(sent, from, from.wrapping_add(came as u16)), came, "{sent}, {missing} missing");
                }
            }
        }
    }
}
