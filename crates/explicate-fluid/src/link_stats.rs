//! Counters of a link.

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
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
    pub(crate) waited: f64,
    pub(crate) busy: f64,
    pub(crate) most: f64,
    pub(crate) peak: f64,
    /// Steps by the length of the queue, up to the longest.
    lengths: Vec<u32>,
    steps: u32,
    /// Packets dropped by overflow, dropped early, and marked, in the measured span; and dropped in the whole run.
    pub(crate) counts: [f64; 3],
    pub(crate) channel: f64,
    pub(crate) channel_before: f64,
    pub(crate) dropped: f64,
    /// Bytes in the present bin, its start, and its end.
    bin: f64,
    bin_began: f64,
    bin_ends: f64,
    ninety: f64,
    pub(crate) time_to_90: f64,
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

    pub(crate) fn p95(&self) -> f64 {
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
