//! Counters of links and classes, and the rows of the result tables.

use explicate_build::tables::{Cell, Tables};
use explicate_scenario::model::Scenario;

use crate::network::{Class, SenderStats};

/// Ratio of adjacent bucket bounds in the histogram of a queue: the 95th percentile is exact to 4 %.
const RATIO: f64 = 1.08;
/// Lower bound of the first bucket, packets.
const LEAST: f64 = 0.5;
/// A queue of fewer packets counts as empty.
const NOTHING: f64 = 0.01;
/// Width of the bins for `time_to_90_s`, s.
const BIN: f64 = 0.1;

/// Counters of a link.
#[derive(Default)]
pub(crate) struct LinkStats {
    /// Of the measured span: seconds, bytes that left, packets times seconds of waiting, and seconds with a non-empty
    /// queue.
    seconds: f64,
    bytes: f64,
    waited: f64,
    busy: f64,
    most: f64,
    peak: f64,
    /// Steps by the length of the queue, up to the longest.
    lengths: Vec<u32>,
    steps: u32,
    /// Packets dropped by overflow, dropped early, and marked, in the measured span; and dropped in the whole run.
    counts: [f64; 3],
    pub(crate) channel: f64,
    channel_before: f64,
    dropped: f64,
    /// Bytes in the present bin, its start, and its end.
    bin: f64,
    bin_began: f64,
    bin_ends: f64,
    ninety: f64,
    time_to_90: f64,
    /// Bytes in total, for samples.
    pub(crate) total: f64,
}

impl LinkStats {
    /// Its rate, bytes/s.
    pub(crate) fn expects(&mut self, rate: f64) {
        (self.ninety, self.bin_ends, self.time_to_90) = (0.9 * rate * BIN, BIN, f64::NAN);
    }
    /// The measured span begins.
    pub(crate) fn begin(&mut self) {
        self.channel_before = self.channel;
    }
    /// A step in which `bytes` left and after which `queue` packets wait. `counts`: packets that were dropped by
    /// overflow, dropped early, marked.
    pub(crate) fn step(&mut self, (now, dt): (f64, f64), measuring: bool, bytes: f64, queue: f64, counts: [f64; 3]) {
        self.total += bytes;
        self.bin += bytes;
        if now >= self.bin_ends - 0.5 * dt {
            // A bin consists of whole steps: its bytes are compared with those that the steps could send.
            if self.time_to_90.is_nan() && self.bin >= self.ninety * (now - self.bin_began) / BIN {
                self.time_to_90 = self.bin_ends;
            }
            (self.bin, self.bin_began) = (0.0, now);
            self.bin_ends += BIN * (1.0 + (now - self.bin_ends).max(0.0) / BIN) as u64 as f64;
        }
        self.peak = self.peak.max(queue);
        self.dropped += counts[0] + counts[1];
        if !measuring {
            return;
        }
        self.seconds += dt;
        self.bytes += bytes;
        self.steps += 1;
        for (sum, count) in self.counts.iter_mut().zip(counts) {
            *sum += count;
        }
        if queue < NOTHING {
            return;
        }
        self.waited += queue * dt;
        self.busy += dt;
        self.most = self.most.max(queue);
        if queue >= LEAST {
            let bucket = (libm::log(queue / LEAST) / libm::log(RATIO)) as usize;
            if self.lengths.len() <= bucket {
                self.lengths.resize(bucket + 1, 0);
            }
            self.lengths[bucket] += 1;
        }
    }

    fn p95(&self) -> f64 {
        let mut above = 0.05 * self.steps as f64;
        for (bucket, &steps) in self.lengths.iter().enumerate().rev() {
            if steps as f64 > above {
                let inside = 1.0 - above / steps as f64;
                return (LEAST * explicate_core::rng::power(RATIO, bucket as f64 + inside)).min(self.most);
            }
            above -= steps as f64;
        }
        0.0
    }
}

/// Packets, rounded.
fn whole(packets: f64) -> Cell {
    Cell::U64((packets + 0.5) as u64)
}

/// Name of a class: that of its first flow.
pub(crate) fn name(scenario: &Scenario, class: &Class) -> String {
    format!("{}.{}", scenario.flows[class.group as usize].name, class.first)
}

/// Appends a run's rows of flows and links. `before` are the counters of classes at the beginning of the measured
/// span.
pub(crate) fn measure(
    tables: &mut Tables,
    scenario: &Scenario,
    run: u64,
    network: &crate::network::Network,
    before: &[SenderStats],
) {
    let span = scenario.duration.since(scenario.warmup).as_secs_f64();
    for (class, before) in network.classes.iter().zip(before) {
        let group = &scenario.flows[class.group as usize];
        let stats = &class.stats;
        let per_flow = |bytes: f64| if span > 0.0 { 8.0 * bytes / class.count / span } else { f64::NAN };
        let (delivered, acked) = (stats.delivered - before.delivered, stats.acked - before.acked);
        let each = class.count * class.packet;
        let size = class.size * class.payload;
        tables.flows.push([
            run.into(),
            name(scenario, class).into(),
            group.name.as_str().into(),
            group.protocol.as_str().into(),
            class.start.into(),
            Cell::F64(if size.is_finite() { size } else { f64::NAN }),
            per_flow(delivered * class.payload).into(),
            per_flow(delivered).into(),
            whole((stats.sent - before.sent) / each),
            whole((stats.lost - before.lost) / each),
            0u64.into(),
            0u64.into(),
            Cell::F64(if acked > 0.0 { (stats.rtt - before.rtt) / acked * 1e3 } else { f64::NAN }),
            stats.completed.into(),
            0u64.into(),
            1u64.into(),
            0u64.into(),
            Cell::U64(class.count as u64),
        ]);
    }
    for (link, of_scenario) in network.links.iter().zip(&scenario.links) {
        let stats = &link.stats;
        let offered = link.rate * stats.seconds;
        let mean = if stats.seconds > 0.0 { stats.waited / stats.seconds } else { f64::NAN };
        tables.links.push([
            run.into(),
            of_scenario.name.as_str().into(),
            Cell::F64(if offered > 0.0 { stats.bytes / offered } else { f64::NAN }),
            mean.into(),
            Cell::F64(if stats.busy > 0.0 { stats.waited / stats.busy } else { f64::NAN }),
            stats.p95().into(),
            whole(stats.most),
            (mean * link.packet / link.rate * 1e3).into(),
            (mean * link.packet).into(),
            whole(stats.peak),
            whole(stats.counts[0]),
            whole(stats.counts[1]),
            whole(stats.channel - stats.channel_before),
            whole(stats.dropped + stats.channel),
            whole(stats.counts[2]),
            stats.time_to_90.into(),
            0u64.into(),
            0u64.into(),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the time as many packets, and half of the time twice as many: the 95th percentile is the longer one.
    #[test]
    fn queues_of_all_lengths_have_a_percentile() {
        for packets in [0.6, 20.0, 1.5e6, 1.5e9, 1e15] {
            let mut stats = LinkStats::default();
            stats.expects(1e6);
            for step in 0..100 {
                let queue = packets * (1 + step % 2) as f64;
                stats.step((0.01 * step as f64, 0.01), true, 0.0, queue, [0.0; 3]);
            }
            let p95 = stats.p95() / (2.0 * packets);
            assert!((0.92..=1.0).contains(&p95), "{p95} of {packets}");
        }
    }
}
