//! Channels and queue disciplines whose values change at given times.
//!
//! They compute the same as the constant forms, so a run is the same up to its first change.

use explicate_core::api::{PortView, Probe};
use explicate_core::channel::{Channel, ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed, ServiceCurve};
use explicate_core::params::Info;
use explicate_core::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, QdiscKind, Verdict};
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::Packet;

use crate::steps::{Lookup, NANO};

const fn info(name: &'static str, summary: &'static str) -> Info {
    Info { name, summary, source: "ours", params: &[] }
}

/// Losses of single packets with a probability that changes.
pub(crate) struct LossSteps;

impl ChannelKind for LossSteps {
    const INFO: Info = info("loss_changes", "Losses of single packets with a probability that changes");
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let channel = ChangingLoss { share: Lookup::new(init.values), rng: init.rng };
        ChannelStages { on_air: Some(Box::new(channel)), ..ChannelStages::default() }
    }
}

struct ChangingLoss {
    share: Lookup,
    rng: Rng,
}

impl Channel for ChangingLoss {
    fn loses(&mut self, at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
        let share = self.share.at(at);
        share > 0 && self.rng.uniform() * NANO < share as f64
    }
}

/// A delay that changes.
pub(crate) struct DelaySteps;

impl ChannelKind for DelaySteps {
    const INFO: Info = info("delay_changes", "A delay that changes; packets keep their order");
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let channel = ChangingDelay { late: Lookup::new(init.values), last: Time::ZERO };
        ChannelStages { after: Some(Box::new(channel)), ..ChannelStages::default() }
    }
}

struct ChangingDelay {
    late: Lookup,
    /// When the last packet arrived, without the link's own delay.
    last: Time,
}

impl Disturbance for ChangingDelay {
    fn disturb(&mut self, at: Time, _packet: &Packet) -> Disturbed {
        self.last = (at + Time(self.late.at(at))).max(self.last);
        Disturbed { late: self.last - at, ..Disturbed::default() }
    }
}

/// A rate that changes.
pub(crate) struct LineSteps;

impl ChannelKind for LineSteps {
    const INFO: Info = info("rate_changes", "A rate that changes");
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let steps = init.values.steps.as_deref().unwrap_or_default();
        let pieces = steps.iter().map(|&(from, rate)| (from, per_byte(rate))).collect();
        let line = ChangingLine { pieces, index: 0, part: 0, first: init.rate.bytes_per_sec() };
        ChannelStages { service: Some(Box::new(line)), ..ChannelStages::default() }
    }
}

/// 2^-32 ns per byte, as on a constant line.
fn per_byte(rate: Rate) -> u64 {
    ((8_000_000_000u128 << 32) / rate.0.max(1) as u128) as u64
}

struct ChangingLine {
    /// Start time, and 2^-32 ns per byte.
    pieces: Vec<(Time, u64)>,
    index: usize,
    /// 2^-32 ns that remain of the last departure.
    part: u32,
    first: f64,
}

impl ServiceCurve for ChangingLine {
    fn finish(&mut self, start: Time, bytes: u32, idle: bool) -> Time {
        while self.pieces.get(self.index + 1).is_some_and(|next| next.0 <= start) {
            self.index += 1;
        }
        let mut at = start;
        // Remaining bytes, 2^-32 bytes.
        let mut left = (bytes as u128) << 32;
        let mut carried = if idle { 0 } else { self.part as u128 };
        loop {
            let per_byte = self.pieces[self.index].1 as u128;
            let span = ((left * per_byte) >> 32) + carried;
            let finish = at + Time((span >> 32) as u64);
            let end = self.pieces.get(self.index + 1).map_or(Time::NEVER, |next| next.0);
            if finish <= end {
                self.part = span as u32;
                return finish;
            }
            let done = (((end.since(at).0 as u128) << 32).saturating_sub(carried) << 32) / per_byte;
            (left, carried, at) = (left.saturating_sub(done), 0, end);
            self.index += 1;
        }
    }
    fn offered(&self, from: Time, to: Time) -> f64 {
        let mut sum = 0.0;
        for (i, &(begin, per_byte)) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(i + 1).map_or(Time::NEVER, |next| next.0);
            let (begin, end) = (begin.max(from), end.min(to));
            if begin < end {
                sum += end.since(begin).0 as f64 * (1u64 << 32) as f64 / per_byte as f64;
            }
        }
        sum
    }
    fn mean_rate(&self) -> f64 {
        self.first
    }
}

/// DropTail with a limit that changes, in bytes.
pub(crate) struct ByteTail;
/// DropTail with a limit that changes, in packets.
pub(crate) struct PacketTail;

impl QdiscKind for ByteTail {
    const INFO: Info = info("droptail", "First in, first out; drops packets that exceed a limit that changes");
    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(ChangingTail { limit: Lookup::new(init.values), packets: false }))
    }
}

impl QdiscKind for PacketTail {
    const INFO: Info = ByteTail::INFO;
    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(ChangingTail { limit: Lookup::new(init.values), packets: true }))
    }
}

struct ChangingTail {
    limit: Lookup,
    packets: bool,
}

impl Qdisc for ChangingTail {
    fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        let limit = self.limit.at(now);
        let fits = match self.packets {
            true => (port.backlog_packets as u64) < limit,
            false => port.backlog_bytes + packet.ip_len as u64 <= limit,
        };
        if fits || !port.busy { Verdict::Accept } else { Verdict::Drop(DropCause::Overflow) }
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::{values_of, with_steps};

    fn line(steps: &[(u64, u64)]) -> ChangingLine {
        let pieces = steps.iter().map(|&(ms, bps)| (Time::millis(ms), per_byte(Rate(bps)))).collect();
        ChangingLine { pieces, index: 0, part: 0, first: 0.0 }
    }

    #[test]
    fn a_packet_across_a_change() {
        // 1000 bytes at 8 Mbit/s take 1 ms; half at 8 and half at 4 Mbit/s 1.5 ms.
        let mut line = line(&[(0, 8_000_000), (10, 4_000_000)]);
        assert_eq!(line.finish(Time::ZERO, 1000, true), Time::millis(1));
        assert_eq!(line.finish(Time::micros(9500), 1000, true), Time::millis(11));
        assert_eq!(line.finish(Time::millis(11), 1000, true), Time::millis(13));
        assert_eq!(line.offered(Time::millis(9), Time::millis(12)), 1000.0 + 1000.0);
    }

    #[test]
    fn packets_keep_their_order_when_the_delay_falls() {
        let values = values_of(0, &vec![(Time::millis(10), 0.0)], NANO);
        let mut steps = values.steps.as_deref().unwrap().to_vec();
        steps[0].1 = Rate(5_000_000);
        let values = with_steps(steps);
        let mut delay = ChangingDelay { late: Lookup::new(&values), last: Time::ZERO };
        assert_eq!(delay.disturb(Time::millis(9), &Packet::EMPTY).late, Time::millis(5));
        assert_eq!(delay.disturb(Time::millis(11), &Packet::EMPTY).late, Time::millis(3), "behind the last one");
        assert_eq!(delay.disturb(Time::millis(20), &Packet::EMPTY).late, Time::ZERO);
    }
}
