//! Whether routers answer the datagrams of a connection that leave without an own port.
//!
//! The peer counts the datagrams that arrive with a router's mark, and returns the count. While it rises, routers answer. An
//! acknowledgement more than a round trip after the last rise says that all datagrams of that round trip passed without an answer.

use explicate_core::units::Time;

/// Counts of marked datagrams, as the peer returns them.
#[derive(Default)]
pub struct Answers {
    /// The last count, modulo 2^32.
    last: u32,
    /// The count rose since the last acknowledgements.
    rose: bool,
    rose_at: Time,
    answering: bool,
}

impl Answers {
    /// Whether routers answer.
    pub fn answering(&self) -> bool {
        self.answering
    }
    /// The peer returns this count.
    pub fn count(&mut self, count: u32) {
        self.rose |= count != self.last;
        self.last = count;
    }
    /// Acknowledgements arrived; `round_trip` is the round-trip time. Returns whether the answers have just ceased.
    pub fn end_acks(&mut self, now: Time, round_trip: Time) -> bool {
        let before = self.answering;
        if std::mem::take(&mut self.rose) {
            (self.answering, self.rose_at) = (true, now);
        } else if now.since(self.rose_at) > round_trip {
            self.answering = false;
        }
        before && !self.answering
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_ceased_after_a_round_trip_without_one() {
        let mut answers = Answers::default();
        let rtt = Time::millis(100);
        let mut at = |millis: u64, count: u32| {
            answers.count(count);
            (answers.end_acks(Time::millis(millis), rtt), answers.answering())
        };
        assert_eq!(at(0, 0), (false, false), "none has answered yet");
        assert_eq!(at(10, 1), (false, true));
        assert_eq!(at(110, 1), (false, true), "a round trip later");
        assert_eq!(at(111, 1), (true, false));
        assert_eq!(at(200, 1), (false, false));
        assert_eq!(at(201, 0), (false, true), "counts are modulo 2^32, and begin anew with the peer");
    }
}
