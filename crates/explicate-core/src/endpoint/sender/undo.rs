//! Losses that the recovery reports, and those that were none: the window before the response, which an undo restores
//! (RFC 3522, RFC 3708, RFC 5682; the response is Linux's, `tcp_undo_cwnd_reduction`, not RFC 4015's).

use super::SenderEndpoint;
use crate::api::{Loss, LossKind, Undo};
use crate::recovery::Outcome;
use crate::units::Time;

/// Window and threshold before the response to a loss, segments; zero if there is none to take back.
#[derive(Clone, Copy, Default)]
pub(super) struct Prior {
    cwnd: f64,
    ssthresh: f64,
}

impl SenderEndpoint {
    /// Reports a loss to the controller. Of the losses of one episode the first is the one that may be taken back.
    #[inline]
    pub(super) fn report(&mut self, loss: &Loss) {
        if self.undoes {
            self.keep_prior(loss);
            // What is outstanding beyond the window was sent instead of what had been reported (RFC 3042).
            let in_flight = loss.in_flight.min((self.allowance.cwnd as u32).max(1));
            return self.sender.on_loss(&Loss { in_flight, ..*loss });
        }
        self.sender.on_loss(loss);
    }
    #[cold]
    fn keep_prior(&mut self, loss: &Loss) {
        let continues = loss.kind == LossKind::Timeout && (loss.repeated || self.repairing);
        if !continues {
            let cwnd = self.allowance.cwnd;
            let ssthresh = self.sender.threshold().max(0.75 * cwnd);
            self.rare.get_or_insert_default().prior = Prior { cwnd, ssthresh };
        }
    }

    /// The last loss was none.
    #[cold]
    #[inline(never)]
    pub(super) fn take_back(&mut self, now: Time) {
        let prior = self.rare.as_mut().map_or(Prior::default(), |rare| core::mem::take(&mut rare.prior));
        if prior.cwnd > 0.0 {
            let srtt = self.controller_srtt();
            self.sender.on_undo(&Undo { now, cwnd: prior.cwnd, ssthresh: prior.ssthresh, srtt });
            self.cwr = false;
            self.repairing = false;
            self.allow();
        }
    }

    /// A timer of the recovery other than the retransmission timer expired.
    #[cold]
    pub(super) fn handle_early(&mut self, now: Time, out: Outcome) {
        if let Some(in_flight) = out.loss {
            let (kind, srtt) = (LossKind::Duplicates, self.controller_srtt());
            self.mark_recover = self.recovery.at().highest;
            self.cwr = true;
            self.report(&Loss { now, kind, in_flight, srtt, repeated: false, marked: false });
        }
        self.repairing = self.recovery.at().recovering;
    }
}
