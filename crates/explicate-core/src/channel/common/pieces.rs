//! Service at piecewise constant rates: the common part of steps and outages.
//!
//! Work has units of bits times nanoseconds per second, so a piece's work is exactly its rate times its length.
//! Unused work of the last nanosecond of a packet belongs to the packet that follows immediately.

use alloc::vec::Vec;

use crate::channel::ServiceCurve;
use crate::rng::Rng;
use crate::units::{Rate, Time};

/// A rate and its start.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) from: Time,
    pub(crate) rate: Rate,
}

/// Continuation of a list of pieces after its end.
#[derive(Clone)]
pub(crate) enum More {
    /// The last piece continues.
    Last,
    /// The list repeats after this span.
    Again(Time),
    /// Service and outages alternate, for exponential times with these means, s.
    Drawn { up: f64, down: f64, rate: Rate, rng: Rng },
}

impl More {
    /// The piece after the last known one.
    fn next(&mut self, last: Piece) -> Piece {
        let More::Drawn { up, down, rate, rng } = self else { return Piece { from: Time::NEVER, rate: Rate(0) } };
        let (mean, then) = if last.rate.0 > 0 { (*up, Rate(0)) } else { (*down, *rate) };
        // At least a nanosecond, so that time goes on.
        Piece { from: last.from + Time::from_secs_f64(rng.exponential(mean)).max(Time(1)), rate: then }
    }
}

/// Constant rates, one after the other. The first begins at zero.
pub(crate) struct Pieces {
    list: Vec<Piece>,
    more: More,
    /// The capacity that an operator would configure, bytes/s.
    mean: f64,
    /// The piece in which the line stands.
    index: usize,
    /// Work of the last nanosecond beyond the last packet.
    spare: u128,
}

/// Upper bound of departures: 146 years, so that sums still fit.
const FAR: Time = Time(u64::MAX / 4);

const WORK_PER_BYTE: u128 = 8_000_000_000;

impl Pieces {
    /// # Panics
    /// If there is no piece, or the rate stays zero forever.
    pub(crate) fn new(list: Vec<Piece>, more: More, mean: f64) -> Pieces {
        let runs = match &more {
            More::Last => list.last().is_some_and(|p| p.rate.0 > 0),
            More::Again(_) => list.iter().any(|p| p.rate.0 > 0),
            More::Drawn { rate, .. } => rate.0 > 0,
        };
        assert!(runs, "a line that never sends");
        Pieces { list, more, mean, index: 0, spare: 0 }
    }

    /// Piece `index`, if it is known.
    fn piece(&self, index: usize) -> Option<Piece> {
        let More::Again(period) = self.more else { return self.list.get(index).copied() };
        let Piece { from, rate } = self.list[index % self.list.len()];
        Some(Piece { from: Time(((index / self.list.len()) as u64).saturating_mul(period.0)) + from, rate })
    }

    /// The piece of a time, if known; otherwise the last known piece.
    fn index_at(&self, t: Time) -> usize {
        let within = |t: Time| self.list.partition_point(|p| p.from <= t).max(1) - 1;
        let More::Again(period) = self.more else { return within(t) };
        (t.0 / period.0) as usize * self.list.len() + within(Time(t.0 % period.0))
    }

    /// When the line's piece ends.
    fn end(&mut self) -> Time {
        if let Some(next) = self.piece(self.index + 1) {
            return next.from;
        }
        let next = self.more.next(self.list[self.index]);
        if next.from < Time::NEVER {
            self.list.push(next);
        }
        next.from
    }
}

impl ServiceCurve for Pieces {
    fn finish(&mut self, start: Time, bytes: u32, idle: bool) -> Time {
        if start >= FAR {
            return start;
        }
        let mut at = start;
        self.index = self.index.max(self.index_at(at));
        while self.end() <= at {
            self.index += 1;
        }
        let mut need = bytes as u128 * WORK_PER_BYTE;
        if !idle {
            need = need.saturating_sub(self.spare);
        }
        loop {
            let end = self.end();
            let rate = self.piece(self.index).map_or(0, |p| p.rate.0 as u128);
            let done = rate * end.since(at).0 as u128;
            if need <= done {
                let span = need.div_ceil(rate.max(1));
                self.spare = span * rate - need;
                return (at + Time(span as u64)).min(FAR);
            }
            if end >= FAR {
                return FAR;
            }
            (need, at) = (need - done, end);
            self.index += 1;
        }
    }
    fn offered(&self, from: Time, to: Time) -> f64 {
        // Unknown pieces are drawn from a copy of the generator, so they are the same later.
        let mut more = self.more.clone();
        let mut index = self.index_at(from);
        let Some(mut piece) = self.piece(index) else { return 0.0 };
        let (mut at, mut work) = (from, 0);
        while at < to {
            index += 1;
            let next = self.piece(index).unwrap_or_else(|| more.next(piece));
            let end = next.from.clamp(at, to);
            work += piece.rate.0 as u128 * end.since(at).0 as u128;
            (at, piece) = (end, next);
        }
        work as f64 / WORK_PER_BYTE as f64
    }
    fn mean_rate(&self) -> f64 {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn steps(list: &[(u64, u64)], more: More) -> Pieces {
        let piece = |&(ms, bps): &(u64, u64)| Piece { from: Time::millis(ms), rate: Rate(bps) };
        Pieces::new(list.iter().map(piece).collect(), more, 0.0)
    }

    #[test]
    fn a_packet_across_steps() {
        // 8 Mbit/s for 10 ms, nothing for 5, then 4 Mbit/s: 1000 bytes take 1 ms, or 2.
        let mut line = steps(&[(0, 8_000_000), (10, 0), (15, 4_000_000)], More::Last);
        assert_eq!(line.finish(Time::ZERO, 1000, true), Time::millis(1));
        assert_eq!(line.finish(Time::micros(9500), 1000, true), Time::millis(16), "half of it before the pause");
        assert_eq!(line.finish(Time::millis(16), 1000, false), Time::millis(18));
        assert_eq!(line.offered(Time::ZERO, Time::millis(20)), 10_000.0 + 2500.0);
        assert_eq!(line.offered(Time::millis(9), Time::millis(16)), 1000.0 + 500.0);
    }

    #[test]
    fn fractions_of_a_nanosecond_are_kept() {
        // 7 bytes at 3 Gbit/s: 18.67 ns. Three in a row take 56.
        let mut line = steps(&[(0, 3_000_000_000)], More::Last);
        let mut at = Time::ZERO;
        for expected in [19, 38, 56] {
            at = line.finish(at, 7, at == Time::ZERO);
            assert_eq!(at, Time(expected));
        }
        assert_eq!(line.finish(Time(1000), 7, true), Time(1019), "an idle line keeps nothing");
    }

    #[test]
    fn again_and_again() {
        let mut line = steps(&[(0, 8_000_000), (1, 0)], More::Again(Time::millis(4)));
        assert_eq!(line.finish(Time::ZERO, 3500, true), Time::micros(12_500), "a millisecond in four");
        assert_eq!(line.offered(Time::ZERO, Time::millis(400)), 100_000.0);
    }

    #[test]
    fn looking_ahead_draws_nothing_away() {
        let more = || More::Drawn { up: 0.01, down: 0.002, rate: Rate::mbps(8), rng: Rng::stream(1, "x") };
        let first = vec![Piece { from: Time::ZERO, rate: Rate::mbps(8) }];
        let (mut plain, mut watched) = (Pieces::new(first.clone(), more(), 0.0), Pieces::new(first, more(), 0.0));
        let mut at = Time::ZERO;
        for _ in 0..1000 {
            let offered = watched.offered(Time::ZERO, at + Time::millis(50));
            assert!(offered >= 0.0);
            let next = plain.finish(at, 1000, false);
            assert_eq!(next, watched.finish(at, 1000, false));
            at = next;
        }
        assert!((at.as_secs_f64() - 1.2).abs() < 0.1, "five sixths of the time: {at}");
    }
}
