//! Reactions of a class's flows to losses or marks.
//!
//! A flow reacts once per round trip, however many of its packets are lost in it. Queues spread losses evenly: RED by
//! counting packets since the last drop, a full queue because it is full for all flows. So losses are assumed to hit
//! flows that have not reacted within a round trip, while there are any: few losses count each, as in Misra, Gong,
//! Towsley, SIGCOMM 2000, equation 1, and many count once.

/// Counts the reactions of the last round trip.
#[derive(Default)]
pub(super) struct Losses {
    /// Reactions per flow in the present slot, which is one round trip long, and in the one before.
    present: f64,
    before: f64,
    /// The elapsed share of the present slot.
    passed: f64,
}

impl Losses {
    /// A step of `dt` in which `lost` packets per flow were detected as lost or marked; `rtt` is the round-trip time.
    /// Returns the mean number of reactions per flow.
    pub(super) fn events(&mut self, lost: f64, dt: f64, rtt: f64) -> f64 {
        self.passed += dt / rtt;
        if self.passed >= 1.0 {
            (self.before, self.present) = (if self.passed < 2.0 { self.present } else { 0.0 }, 0.0);
            self.passed -= libm::floor(self.passed);
        }
        let events = lost.max(0.0).min(1.0 - self.repairing());
        self.present += events;
        events
    }
    /// The share of the flows that reacted in the last round trip.
    pub(super) fn repairing(&self) -> f64 {
        (self.present + self.before * (1.0 - self.passed)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loss in a hundred round trips: a reaction each. Ten losses in one round trip: one.
    #[test]
    fn few_losses_count_each_and_many_count_once() {
        let mut rare = Losses::default();
        let events: f64 = (0..1_000_000).map(|_| rare.events(1e-4, 0.001, 0.1)).sum();
        assert!((events / 100.0 - 1.0).abs() < 1e-9, "{events}");
        assert!((rare.repairing() - 0.01).abs() < 2e-4);
        let mut many = Losses::default();
        let events: f64 = (0..99).map(|_| many.events(0.1, 0.001, 0.1)).sum();
        assert!((events - 1.0).abs() < 1e-9 && (many.repairing() - 1.0).abs() < 1e-9, "{events}");
    }
}
