//! An episode of loss from its begin to its end, or to the evidence that it was none.

use super::reports::Arrivals;
use super::{RackRecovery, Reduction, State};
use crate::units::Time;

impl RackRecovery {
    /// An episode begins, with this number of segments neither acknowledged nor reported before what revealed it (RFC 9937
    /// section 6.1): what a needless timeout took for lost is among them.
    pub(super) fn begin(&mut self, before: u32) {
        self.open_doubt();
        self.state = State::Recovery;
        self.recover = self.seq.highest;
        self.reduction = Reduction::new(before);
        self.probe.cancel();
        self.frto = false;
        self.new_first = false;
    }
    pub(super) fn open_doubt(&mut self) {
        self.doubt.begin(self.seq.acked, self.flight.resent + self.probe.is_open() as u32);
    }
    /// The repair is over.
    pub(super) fn end(&mut self, undone: bool) {
        self.state = State::Open;
        self.frto = false;
        self.new_first = false;
        self.head = false;
        if undone {
            self.doubt.end();
            return;
        }
        self.reordering.episode_ends();
        if self.flight.resent == 0 {
            self.doubt.settle();
        }
    }
    /// The receiver has reported all retransmissions as duplicates.
    fn end_by_duplicates(&mut self) {
        self.reordering.undone_by_duplicates();
        self.end(true);
    }

    /// What an acknowledgement means for the episode. Returns whether the response is taken back, and whether losses are looked for.
    pub(super) fn go_on(&mut self, advanced: bool, echoed: Time, duplicate: bool, arrivals: &Arrivals) -> (bool, bool) {
        let recovered = self.seq.acked >= self.recover;
        let by_stamp = advanced && self.doubt.by_stamp(echoed);
        let needless = by_stamp || self.doubt.by_duplicates();
        match self.state {
            State::Open => {
                let undone = self.doubt.by_duplicates();
                if undone {
                    self.end_by_duplicates();
                }
                (undone, true)
            }
            State::Recovery if recovered => {
                self.end(needless);
                (needless, true)
            }
            State::Recovery if self.doubt.by_duplicates() => {
                self.end_by_duplicates();
                (true, true)
            }
            State::Recovery if by_stamp => {
                // The first gap was filled by what was late, not by its retransmission.
                self.reordering.seen = true;
                if self.flight.resent > 0 {
                    return (false, false);
                }
                self.flight.find_again();
                self.end(true);
                (true, true)
            }
            State::Recovery => (false, true),
            State::Loss => {
                let spurious = advanced && needless || self.frto && arrivals.original;
                if spurious {
                    self.flight.find_again();
                    self.end(true);
                    return (true, true);
                }
                if self.frto {
                    self.test_timeout(advanced, recovered, duplicate, arrivals.newly);
                }
                if recovered {
                    self.end(false);
                }
                (false, true)
            }
        }
    }
    /// F-RTO (RFC 5682 section 3.1): the first acknowledgement after the timeout lets new data leave; reports of those show that the
    /// loss was real.
    fn test_timeout(&mut self, advanced: bool, recovered: bool, duplicate: bool, newly: u32) {
        if self.seq.highest > self.recover {
            if duplicate || newly > 0 && !advanced {
                self.frto = false;
            }
        } else if advanced && !recovered {
            self.recover = self.seq.highest;
            self.new_first = true;
        }
    }
}
