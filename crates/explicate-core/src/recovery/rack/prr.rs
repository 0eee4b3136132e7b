//! Proportional rate reduction (RFC 9937): in an episode the flight goes down to the controller's window in proportion to what
//! arrives, instead of waiting until half of it has arrived.
//!
//! It is an allowance: the window is the controller's. While more than that is in flight, a segment leaves only for more than
//! one that has arrived, so the flight falls; below, no more leaves than the window allows.

/// The counters of an episode, as they were after the last acknowledgement that brought something.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reduction {
    /// RecoverFS: outstanding and not reported when the episode began, segments.
    flight: u32,
    /// prr_delivered and prr_out.
    delivered: u32,
    out: u32,
    /// At the last acknowledgement: in flight, prr_out, what it brought, and whether it is a sign of progress.
    pipe: u32,
    out_then: u32,
    newly: u32,
    safe: bool,
}

impl Reduction {
    /// An episode begins.
    pub(super) fn new(flight: u32) -> Reduction {
        Reduction { flight: flight.max(1), pipe: flight, ..Reduction::default() }
    }
    /// An acknowledgement brought `newly` segments and left `pipe` in flight; it is safe if it advanced and no loss was found.
    pub(super) fn take(&mut self, newly: u32, pipe: u32, safe: bool) {
        if newly > 0 {
            self.delivered += newly;
            (self.pipe, self.newly, self.safe, self.out_then) = (pipe, newly, safe, self.out);
        }
    }
    /// A segment leaves.
    pub(super) fn sent(&mut self) {
        self.out += 1;
    }
    /// How many segments may be in flight if the controller's window is `cwnd`.
    pub(super) fn window(&self, cwnd: u32) -> u32 {
        let leaves = if self.pipe > cwnd {
            let share = (cwnd as u64 * self.delivered as u64).div_ceil(self.flight as u64);
            (share as u32).saturating_sub(self.out_then)
        } else {
            let arrived = self.delivered.saturating_sub(self.out_then).max(self.newly);
            (arrived + self.safe as u32).min(cwnd - self.pipe)
        };
        // The first retransmission does not wait.
        self.pipe + leaves.max((self.out_then == 0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9937 section 5.1 with 20 in flight and a window of 10: of 20 acknowledgements every second one releases a segment.
    #[test]
    fn half_of_what_arrives_leaves() {
        let mut prr = Reduction::new(20);
        let (mut pipe, mut left) = (19, std::vec::Vec::new()); // one is lost
        for _ in 0..18 {
            pipe -= 1;
            prr.take(1, pipe, false);
            let room = prr.window(10).saturating_sub(pipe);
            (0..room).for_each(|_| prr.sent());
            pipe += room;
            left.push(room);
        }
        assert_eq!(left[..6], [1, 0, 1, 0, 1, 0]);
        assert_eq!((left.iter().sum::<u32>(), pipe), (9, 10));
    }

    /// Most of the window is lost: one leaves for each that arrives, and one more for each acknowledgement that advances.
    #[test]
    fn below_the_window_it_grows_as_in_slow_start() {
        let mut prr = Reduction::new(20);
        prr.take(1, 4, false);
        assert_eq!(prr.window(10), 5);
        prr.sent();
        prr.take(1, 4, true);
        assert_eq!(prr.window(10), 6);
        prr.take(0, 0, true);
        assert_eq!(prr.window(10), 6, "what brings nothing releases nothing");
        prr.take(9, 8, true);
        assert_eq!(prr.window(10), 10, "no more than the window");
    }
}
