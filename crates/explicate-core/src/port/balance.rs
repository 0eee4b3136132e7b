//! Weights that are fair to each flow: the weights of two classes move until flows of both classes have equal
//! windows, whatever the numbers of flows are (Katabi, Handley, Rohrs, SIGCOMM 2002, on friendliness to TCP).
//!
//! Explicit flows state their window in their headers. The window of the other flows follows from the share p of
//! their packets that is dropped, by TCP's throughput equation: 1 / (sqrt(2 p / 3) + 12 p sqrt(3 p / 8) (1 + 32 p^2))
//! packets. Each round trip the share of a class moves by kappa (w_other - w_own) / (w_other + w_own). The mean
//! window of explicit flows is the sum of their packets' round-trip times divided by the sum of their spacings X,
//! because a flow sends 1 / X packets a second.
//!
//! Deviations: p is the inverse of a moving average of the packets between two drops (weight 1/16). As in TFRC, the
//! packets since the last drop count once they exceed the average. A mark counts as a drop; acknowledgements do not
//! count. Without packets of both kinds the weights do not move.

use crate::protocols::rate_header::{Spacing, UNITS_PER_SEC, spacing};
use crate::units::Time;
use crate::wire::Packet;

/// Weight of a new gap between drops.
const WEIGHT: f64 = 1.0 / 16.0;
/// The least share of a class.
const LEAST: f64 = 0.01;
/// Bounds of the time between two moves, seconds.
const EVERY: (f64, f64) = (0.01, 1.0);

/// The balance of two classes.
pub(super) struct Balance {
    kappa: f64,
    /// Number of the class with explicit flows.
    pub(super) explicit: usize,
    /// Sums over explicit packets in this interval, header units: round-trip times, spacings, and their products.
    rtts: f64,
    spacings: f64,
    products: f64,
    /// Other packets in this interval, since the last drop, and the mean between two drops.
    others: u32,
    since_drop: u32,
    gap: f64,
    pub(super) due: Time,
}

/// TCP's window at this rate of loss, packets.
fn tcp_window(p: f64) -> f64 {
    1.0 / (libm::sqrt(2.0 * p / 3.0) + 12.0 * p * libm::sqrt(3.0 * p / 8.0) * (1.0 + 32.0 * p * p))
}

impl Balance {
    pub(super) fn new(explicit: usize, kappa: f64) -> Balance {
        let due = Time::from_secs_f64(EVERY.1);
        Balance { kappa, explicit, rtts: 0.0, spacings: 0.0, products: 0.0, others: 0, since_drop: 0, gap: 0.0, due }
    }
    /// A packet of a class arrived.
    pub(super) fn arrived(&mut self, class: usize, packet: &Packet) {
        if class != self.explicit {
            self.others += !packet.is_ack() as u32;
            self.since_drop += !packet.is_ack() as u32;
        } else if let Some(Spacing { x, rtt }) = spacing(packet) {
            self.rtts += rtt;
            self.spacings += x;
            self.products += rtt * x;
        }
    }
    /// A packet of a class was dropped or marked.
    pub(super) fn dropped_or_marked(&mut self, class: usize) {
        if class != self.explicit {
            self.gap = self.gap_if_now();
            self.since_drop = 0;
        }
    }
    /// The mean gap if the next drop occurred now.
    fn gap_if_now(&self) -> f64 {
        let gap = self.since_drop as f64;
        if self.gap == 0.0 { gap } else { self.gap + WEIGHT * (gap - self.gap) }
    }
    /// The new share of the explicit class, which was `share`.
    pub(super) fn moved(&mut self, now: Time, share: f64) -> f64 {
        let mut next = share;
        let mut interval = EVERY.1;
        if self.spacings > 0.0 && self.others > 0 {
            let (own, other) = self.windows();
            next += self.kappa * (other - own) / (other + own);
            interval = self.products / self.spacings / UNITS_PER_SEC;
        }
        (self.rtts, self.spacings, self.products, self.others) = (0.0, 0.0, 0.0, 0);
        self.due = now + Time::from_secs_f64(interval.clamp(EVERY.0, EVERY.1));
        next.clamp(LEAST, 1.0 - LEAST)
    }
    /// Mean windows, packets: of explicit flows, of the others.
    fn windows(&self) -> (f64, f64) {
        (self.rtts / self.spacings, tcp_window(1.0 / self.gap.max(self.gap_if_now()).max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::rate_header::seconds_to_units;
    use crate::wire::{Congestion, Format};

    fn data(rtt: f64, window: f64) -> Packet {
        let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        packet.congestion.set_rtt(seconds_to_units(rtt));
        packet.congestion.set_x(seconds_to_units(rtt / window));
        packet
    }

    #[test]
    fn windows_are_means_over_flows() {
        let mut b = Balance::new(0, 0.1);
        // In 100 ms one flow sends a window of 30 packets; another sends 10 packets twice, because its round trip is
        // half as long.
        (0..30).for_each(|_| b.arrived(0, &data(0.1, 30.0)));
        (0..20).for_each(|_| b.arrived(0, &data(0.05, 10.0)));
        // Drops 1000 packets apart: p = 0.001.
        (0..3000).for_each(|i| {
            b.arrived(1, &Packet::EMPTY);
            if i % 1000 == 999 {
                b.dropped_or_marked(1);
            }
        });
        let (own, other) = b.windows();
        assert!((own - 20.0).abs() < 0.01, "{own}");
        // 1 / (0.025820 + 0.000232).
        assert!((other - 38.384).abs() < 0.001, "{other}");
        // kappa (38.384 - 20) / (38.384 + 20); the next move is one mean round trip later, weighted by flows: 75 ms.
        let share = b.moved(Time::secs(1), 0.5);
        assert!((share - (0.5 + 0.1 * 18.384 / 58.384)).abs() < 1e-4, "{share}");
        assert!((b.due.as_secs_f64() - 1.075).abs() < 1e-4, "{}", b.due);
        // No packet has arrived since: no move.
        assert_eq!(b.moved(Time::secs(2), share), share);
    }
}
