//! The search of those estimators that test whether a rate exceeds the available bandwidth.
//!
//! Each stream of probes is sent at one rate. A bracket holds the highest rate that was not too high and the lowest
//! that was; the rate of the next stream halves it. When the bracket is narrow, its ends are tested in turn, because
//! the available bandwidth changes. Lost probes mean a rate that is too high. The estimate after each stream is the
//! lower end.
//!
//! A delayed sender sends at less than the requested rate: its stream measures the rate at which it was sent.

use alloc::vec::Vec;

use super::{Estimator, EstimatorInit, ProbePacket, Probing};
use crate::units::Time;

/// A probe that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub(super) index: u16,
    pub(super) sent: Time,
    pub(super) came: Time,
}

/// Whether a stream was too fast.
type Judge = fn(&[Arrived]) -> bool;

enum State {
    /// Until the next stream begins.
    Resting(Time),
    /// Until the next probe; and the number of probes sent.
    Sending(Time, u16),
    /// All probes are sent; waits for echoes until then.
    Waiting(Time),
}

pub(super) struct Search {
    judge: Judge,
    bytes: f64,
    count: u16,
    /// Time from stream to stream.
    pause: Time,
    state: State,
    began: Time,
    /// Number of the first probe of this stream.
    base: u16,
    stream: Vec<Arrived>,
    /// Rates, bytes/s: this stream's, the bracket, the least.
    rate: f64,
    low: f64,
    high: Option<f64>,
    floor: f64,
}

/// A bracket of this relative width is narrow.
const NARROW: f64 = 0.15;
/// A stream sent at less than this share of its rate was delayed.
const HELD_UP: f64 = 0.9;
/// Echoes that do not arrive within this time are lost.
const TIMEOUT: Time = Time::secs(1);

impl Search {
    pub(super) fn new(init: &EstimatorInit<'_>, judge: Judge) -> Search {
        let params = Probing::of(init.values);
        let (bytes, count) = (params.probe_bytes.unwrap_or(300.0), params.probes.unwrap_or(40.0));
        let (load, first) = (params.probe_rate / 8.0, params.first_rate / 8.0);
        Search {
            judge,
            bytes,
            count: count as u16,
            pause: Time::from_secs_f64(bytes * count / load).max(init.period),
            state: State::Resting(init.now),
            began: init.now,
            base: 0,
            stream: Vec::new(),
            rate: first,
            low: 0.0,
            high: None,
            floor: load,
        }
    }

    /// The rate at which the stream was sent, from its probes in order; infinite if it cannot be computed.
    fn sent_at(&self) -> f64 {
        let (Some(first), Some(last)) = (self.stream.first(), self.stream.last()) else { return f64::INFINITY };
        let bytes = self.bytes * last.index.wrapping_sub(first.index) as f64;
        if bytes > 0.0 { bytes / last.sent.since(first.sent).as_secs_f64() } else { f64::INFINITY }
    }

    fn conclude(&mut self, now: Time) -> f64 {
        self.stream.sort_unstable_by_key(|p| p.index.wrapping_sub(self.base));
        let sent_at = self.sent_at();
        if sent_at < HELD_UP * self.rate {
            self.rate = sent_at;
        }
        let lost = self.count as usize - self.stream.len();
        let too_much = lost * 10 > self.count as usize || (self.judge)(&self.stream);
        if too_much {
            self.high = Some(self.rate);
            if self.low >= self.rate {
                self.low = if self.rate <= self.floor { 0.0 } else { self.rate / 2.0 };
            }
        } else {
            self.low = self.rate;
            self.high = self.high.filter(|high| *high > 1.01 * self.rate);
        }
        let answer = self.low;
        self.rate = match self.high {
            None => 2.0 * self.low,
            Some(high) if high - self.low > NARROW * high => (self.low + high) / 2.0,
            Some(_) if too_much => self.low,
            Some(high) => high,
        }
        .max(self.floor);
        self.base = self.base.wrapping_add(self.count);
        self.stream.clear();
        self.state = State::Resting((self.began + self.pause).max(now));
        answer
    }
}

impl Estimator for Search {
    fn set_period(&mut self, _now: Time, period: Time) {
        self.pause = self.pause.max(period);
    }
    fn poll_timeout(&self) -> Time {
        match self.state {
            State::Resting(at) | State::Sending(at, _) => at,
            State::Waiting(_) if self.stream.len() >= self.count as usize => Time::ZERO,
            State::Waiting(at) => at,
        }
    }
    fn poll_probe(&mut self, now: Time) -> Option<ProbePacket> {
        if let State::Resting(at) = self.state
            && at <= now
        {
            (self.began, self.state) = (now, State::Sending(now, 0));
        }
        let State::Sending(at, sent) = self.state else { return None };
        if at > now {
            return None;
        }
        let next = self.began + Time::from_secs_f64(self.bytes * (sent + 1) as f64 / self.rate);
        self.state =
            if sent + 1 == self.count { State::Waiting(now + TIMEOUT) } else { State::Sending(next, sent + 1) };
        Some(ProbePacket { index: self.base.wrapping_add(sent), ip_len: self.bytes as u16 })
    }
    fn handle_echo(&mut self, _now: Time, index: u16, sent: Time, came: Time) {
        // Echoes of probes that have not been sent belong to an earlier stream, or are forged.
        let awaited = match self.state {
            State::Resting(_) => 0,
            State::Sending(_, sent) => sent,
            State::Waiting(_) => self.count,
        };
        let ours = index.wrapping_sub(self.base) < awaited;
        let copied = self.stream.iter().any(|p| p.index == index);
        if ours && !copied {
            self.stream.push(Arrived { index, sent, came });
        }
    }
    fn poll_estimate(&mut self, now: Time) -> Option<f64> {
        let State::Waiting(until) = self.state else { return None };
        (self.stream.len() >= self.count as usize || until <= now).then(|| self.conclude(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Address;
    use crate::params::Values;
    use crate::rng::Rng;

    /// The last estimate if a probe leaves at most every `gap`, and no stream is ever too fast.
    fn told(gap: Time) -> f64 {
        let values = Values::default();
        let (own, peer, period, rng) = (Address(0), Address(1), Time::millis(100), Rng::stream(1, "probe"));
        let mut search =
            Search::new(&EstimatorInit { values: &values, own, peer, period, rng, now: Time::ZERO }, |_| false);
        let (mut now, mut last) = (Time::ZERO, 0.0);
        while now < Time::secs(20) {
            if let Some(probe) = search.poll_probe(now) {
                search.handle_echo(now, probe.index, now, now + Time::millis(5));
            }
            last = search.poll_estimate(now).unwrap_or(last);
            now += gap;
        }
        last
    }

    #[test]
    fn a_sender_that_is_held_up_tells_no_more_than_it_sent() {
        // 300 bytes a millisecond.
        let slow = told(Time::millis(1));
        assert!((290e3..=330e3).contains(&slow), "{slow}");
        assert!(told(Time::micros(10)) > 20e6, "it was not held up");
    }
}
