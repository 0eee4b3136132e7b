//! SACK recovery that counts acknowledgements in place of RFC 6675's `pipe`.

use super::SackRecovery;
use crate::api::Probe;
use crate::recovery::common::loss_free::LossFree;
use crate::recovery::{Next, Outcome, Recovery, RecoveryState};
use crate::units::Time;

/// SACK recovery with `pipe = "acknowledgements"`.
pub(super) struct CountingSack {
    pub(super) recovery: SackRecovery,
    /// What is in flight in an episode.
    pub(super) counted: u32,
}

impl Recovery for CountingSack {
    fn on_sent(&mut self, now: Time, segment: u32, packet_number: u32) {
        self.counted += (self.recovery.recovering && !self.recovery.first) as u32;
        self.recovery.on_sent(now, segment, packet_number);
    }
    fn on_ack(&mut self, now: Time, cumulative: u32, packet_number: u32, sack: &[(u32, u32)], rtt: Time) -> Outcome {
        let (acked, highest) = (self.recovery.seq.acked, self.recovery.seq.highest);
        let out = self.recovery.on_ack(now, cumulative, packet_number, sack, rtt);
        if out.loss.is_some() {
            let flight = self.recovery.seq.flight();
            self.counted = flight.saturating_sub(self.recovery.dupackthreshold as u32);
        } else if cumulative <= highest {
            self.counted = self.counted.saturating_sub(1 + (cumulative > acked) as u32);
        }
        out
    }
    fn next(&self, cwnd: f64, rwnd: u32) -> Next {
        let in_flight = if self.recovery.recovering { self.counted } else { self.recovery.pipe };
        self.recovery.next_with(in_flight, cwnd, rwnd)
    }
    fn spare(&self) -> Option<u32> {
        self.recovery.spare()
    }
    fn state(&self) -> RecoveryState {
        self.recovery.state()
    }
    fn check_out(&self) -> Option<LossFree> {
        self.recovery.check_out()
    }
    fn check_in(&mut self, loss_free: &LossFree, at: &RecoveryState) {
        self.recovery.check_in(loss_free, at);
    }
    fn on_timer(&mut self, now: Time) -> Option<u32> {
        self.recovery.on_timer(now)
    }
    fn on_rtt(&mut self, rtt: Time) {
        self.recovery.on_rtt(rtt);
    }
    fn backoffs(&self) -> u32 {
        self.recovery.backoffs()
    }
    fn probe(&self, put: Probe<'_>) {
        self.recovery.probe(put);
    }
}
