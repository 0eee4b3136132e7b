//! Counters of a port: conservation over the whole run, summaries over the span since [`PortStats::start_measuring`].

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::qdisc::DropCause;
use crate::units::Time;

/// Width of the bins that determine when a link has reached 90 % of its capacity.
pub const NINETY_BIN: Time = Time::millis(100);

/// Counters of a port.
pub struct PortStats {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that reached the next node (counted by the driver).
    pub delivered: u64,
    /// IP bytes sent.
    pub bytes: u64,
    bytes_before: u64,
    /// End of the present bin while 90 % has not been reached, otherwise never: a single comparison, without further
    /// loads.
    bin_ends: u64,
    /// Allocated when a packet first waits.
    waited: Option<Box<Waited>>,
    /// Allocated at the first drop, loss or mark, which most ports never have.
    decided: Option<Box<Decided>>,
}

impl Default for PortStats {
    fn default() -> PortStats {
        PortStats {
            arrived: 0,
            delivered: 0,
            bytes: 0,
            bytes_before: 0,
            bin_ends: u64::MAX,
            waited: None,
            decided: None,
        }
    }
}

/// Distribution over time of the number of waiting packets.
#[derive(Default)]
struct Waited {
    /// Nanoseconds of the measured span with n packets waiting, n >= 1 at index n - 1.
    at_length: Vec<u64>,
    /// Integral of the waiting bytes over the measured span, byte seconds.
    byte_seconds: f64,
    changed: u64,
    most: u32,
    peak: u32,
}

/// Drops, losses and marks, and when the line first reached 90 %.
#[derive(Default)]
struct Decided {
    total: Causes,
    before: Causes,
    /// Bytes sent before the present bin, and bytes that make 90 %.
    bin_from: u64,
    bin_target: u64,
    reached: Option<u64>,
}

/// Packets by cause.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Causes {
    /// Dropped: no room.
    pub overflow: u64,
    /// Dropped by the discipline although there was room.
    pub early: u64,
    /// Lost by the channel.
    pub channel: u64,
    /// Marked, not dropped.
    pub marks: u64,
    /// Damaged by the channel, not dropped.
    pub damaged: u64,
    /// Copies that the channel made.
    pub copies: u64,
    /// Data packets among those that the channel lost.
    pub channel_data: u64,
    /// Data packets among those that the queue dropped.
    pub queue_data: u64,
}

impl Causes {
    /// Packets that left the network here.
    pub fn lost_or_dropped(&self) -> u64 {
        self.overflow + self.early + self.channel
    }
}

/// Summary of the queue over the measured span.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueSummary {
    /// Time average, packets.
    pub mean_packets: f64,
    /// Time average while packets waited, packets.
    pub mean_nonempty: f64,
    /// 95th percentile over time, packets.
    pub p95_packets: u32,
    /// Maximum, packets.
    pub max_packets: u32,
    /// Time average, bytes.
    pub mean_bytes: f64,
    /// Maximum over the whole run including the warm-up, packets.
    pub peak_packets: u32,
}

impl PortStats {
    /// The measured span begins; the port has caught up, and `packets` and `bytes` wait.
    pub fn start_measuring(&mut self, now: Time, packets: u32, bytes: u64) {
        self.bytes_before = self.bytes;
        if let Some(w) = &mut self.waited {
            w.account(now.0, packets, bytes);
            w.at_length.clear();
            w.byte_seconds = 0.0;
            w.most = packets;
        }
        if let Some(d) = &mut self.decided {
            d.before = d.total;
        }
    }
    /// Watches for the first bin in which `bytes` are sent.
    pub fn watch_ninety(&mut self, bytes: u64) {
        let sent = self.bytes;
        let d = self.decided();
        (d.bin_target, d.bin_from) = (bytes, sent);
        self.bin_ends = NINETY_BIN.0;
    }
    fn decided(&mut self) -> &mut Decided {
        self.decided.get_or_insert_with(Box::default)
    }
    /// The latest time, at most `now`, up to which departures can simply be summed.
    #[inline]
    pub(super) fn unwatched(&self, now: Time) -> Time {
        now.min(Time(self.bin_ends))
    }
    /// Whether a departure can be added to the sums ahead of its time, because no observation occurs before it.
    #[inline(always)]
    pub(super) fn is_unwatched(&self, departs: Time, unobserved_until: Time) -> bool {
        departs <= unobserved_until && departs.0 <= self.bin_ends
    }
    /// A packet's last bit left at `at`.
    #[inline]
    pub(super) fn departed(&mut self, at: Time, bytes: u16) {
        if at.0 > self.bin_ends {
            self.end_bin(at.0);
        }
        self.bytes += bytes as u64;
    }
    #[cold]
    fn end_bin(&mut self, at: u64) {
        let (sent, ended) = (self.bytes, self.bin_ends);
        let d = self.decided();
        if sent - d.bin_from >= d.bin_target {
            d.reached = Some(ended);
            self.bin_ends = u64::MAX;
            return;
        }
        d.bin_from = sent;
        self.bin_ends += (at - ended).div_ceil(NINETY_BIN.0) * NINETY_BIN.0;
    }
    /// The number of waiting packets changes from `packets` (`bytes`) by this number.
    #[inline(always)]
    pub(super) fn queue_changed(&mut self, at: Time, packets: u32, bytes: u64, by: i32) {
        let waited = self.waited.as_mut().filter(|w| by < 0 || packets < w.most);
        if !waited.is_some_and(|w| w.account_known(at.0, packets, bytes)) {
            self.queue_grew(at, packets, bytes, by);
        }
    }
    /// A new maximum or a new longest time.
    #[cold]
    fn queue_grew(&mut self, at: Time, packets: u32, bytes: u64, by: i32) {
        let w = self.waited.get_or_insert_with(Box::default);
        w.account(at.0, packets, bytes);
        if by > 0 && packets >= w.most {
            w.most = packets + 1;
            w.peak = w.peak.max(packets + 1);
        }
    }
    /// The channel lost a packet, of data or not.
    pub(super) fn lost(&mut self, data: bool) {
        let total = &mut self.decided().total;
        total.channel += 1;
        total.channel_data += data as u64;
    }
    pub(super) fn damaged(&mut self) {
        self.decided().total.damaged += 1;
    }
    pub(super) fn copied(&mut self) {
        self.decided().total.copies += 1;
    }
    pub(super) fn marked(&mut self) {
        self.decided().total.marks += 1;
    }
    /// The queue dropped a packet, of data or not.
    pub(super) fn dropped(&mut self, cause: DropCause, data: bool) {
        let total = &mut self.decided().total;
        total.queue_data += data as u64;
        match cause {
            DropCause::Overflow => total.overflow += 1,
            DropCause::Early => total.early += 1,
        }
    }
    /// IP bytes sent in the measured span.
    pub fn measured_bytes(&self) -> u64 {
        self.bytes - self.bytes_before
    }
    /// Drops, losses and marks of the whole run.
    pub fn total(&self) -> Causes {
        self.decided.as_ref().map_or(Causes::default(), |d| d.total)
    }
    /// Drops, losses and marks of the measured span.
    pub fn measured(&self) -> Causes {
        self.decided.as_ref().map_or(Causes::default(), |d| Causes {
            overflow: d.total.overflow - d.before.overflow,
            early: d.total.early - d.before.early,
            channel: d.total.channel - d.before.channel,
            marks: d.total.marks - d.before.marks,
            damaged: d.total.damaged - d.before.damaged,
            copies: d.total.copies - d.before.copies,
            channel_data: d.total.channel_data - d.before.channel_data,
            queue_data: d.total.queue_data - d.before.queue_data,
        })
    }
    /// End of the first bin of [`NINETY_BIN`] in which 90 % of the capacity was sent.
    pub fn time_to_ninety(&self) -> Option<Time> {
        self.decided.as_ref().and_then(|d| d.reached).map(Time)
    }
    /// Summary of the queue over the measured span from `start` to `end`, with `packets` and `bytes` waiting at the
    /// end.
    pub fn queue(&mut self, start: Time, end: Time, packets: u32, bytes: u64) -> QueueSummary {
        let span = end.since(start).0;
        let Some(d) = &mut self.waited else { return QueueSummary::default() };
        d.account(end.0, packets, bytes);
        if span == 0 {
            return QueueSummary { peak_packets: d.peak, ..QueueSummary::default() };
        }
        let nonempty: u64 = d.at_length.iter().sum();
        let area = d.at_length.iter().enumerate().fold(0.0, |sum, (i, &ns)| sum + (i + 1) as f64 * ns as f64);
        let mut above = nonempty;
        let mut p95 = 0;
        // The least n such that the queue is longer than n for at most 5 % of the time.
        for (i, &ns) in d.at_length.iter().enumerate() {
            if above as f64 <= 0.05 * span as f64 {
                break;
            }
            above -= ns;
            p95 = i as u32 + 1;
        }
        QueueSummary {
            mean_packets: area / span as f64,
            mean_nonempty: if nonempty > 0 { area / nonempty as f64 } else { 0.0 },
            p95_packets: p95,
            max_packets: d.most,
            mean_bytes: d.byte_seconds / (span as f64 * 1e-9),
            peak_packets: d.peak,
        }
    }
}

impl Waited {
    /// Adds the time since the last change for `packets`; returns false, and changes nothing, if that number never
    /// waited before.
    #[inline]
    fn account_known(&mut self, at: u64, packets: u32, bytes: u64) -> bool {
        let span = at - self.changed;
        if packets == 0 {
            self.changed = at;
            return true;
        }
        let Some(sum) = self.at_length.get_mut(packets as usize - 1) else { return false };
        self.changed = at;
        *sum += span;
        // Both fit into 63 bits, and a signed conversion is a single instruction. An empty span adds zero.
        self.byte_seconds += bytes as i64 as f64 * (span as i64 as f64 * 1e-9);
        true
    }
    #[cold]
    fn account(&mut self, at: u64, packets: u32, bytes: u64) {
        if packets as usize > self.at_length.len() && at > self.changed {
            self.at_length.resize(packets as usize, 0);
        }
        if !self.account_known(at, packets, bytes) {
            self.changed = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 bytes join and leave: (ms, waiting before, change).
    fn queue(changes: &[(u64, u32, i32)]) -> PortStats {
        let mut stats = PortStats::default();
        for &(ms, packets, by) in changes {
            stats.queue_changed(Time::millis(ms), packets, 1000 * packets as u64, by);
        }
        stats
    }

    /// In 10 s one packet waits for 1 s, two for 2 s, one for 1 s: 6 packet seconds in 4 s with a queue.
    #[test]
    fn means_are_over_time() {
        let mut stats = queue(&[(1000, 0, 1), (2000, 1, 1), (4000, 2, -1), (5000, 1, -1)]);
        let q = stats.queue(Time::ZERO, Time::secs(10), 0, 0);
        assert_eq!((q.mean_packets, q.mean_nonempty), (0.6, 1.5));
        assert!((q.mean_bytes - 600.0).abs() < 1e-9, "{}", q.mean_bytes);
        assert_eq!((q.p95_packets, q.max_packets, q.peak_packets), (2, 2, 2));
    }

    /// The queue is longer than one packet for 4 % of the time, and longer than none for 40 %.
    #[test]
    fn the_95th_percentile_leaves_out_five_percent_of_the_time() {
        let mut stats = queue(&[(1000, 0, 1), (2000, 1, 1), (2400, 2, -1), (5000, 1, -1)]);
        let q = stats.queue(Time::ZERO, Time::secs(10), 0, 0);
        assert_eq!((q.p95_packets, q.max_packets), (1, 2));
    }

    /// Packets that waited before the span count only for the peak of the run; those that wait at its beginning count
    /// for its maximum.
    #[test]
    fn the_warm_up_counts_for_the_peak_alone() {
        let mut stats = queue(&[(0, 0, 1), (0, 1, 1), (1000, 2, -1)]);
        stats.departed(Time::millis(1500), 1000);
        stats.start_measuring(Time::secs(2), 1, 1000);
        stats.departed(Time::millis(2500), 700);
        stats.queue_changed(Time::secs(3), 1, 1000, -1);
        let q = stats.queue(Time::secs(2), Time::secs(6), 0, 0);
        assert_eq!((q.mean_packets, q.max_packets, q.peak_packets), (0.25, 1, 2));
        assert_eq!((stats.bytes, stats.measured_bytes()), (1700, 700));
    }

    /// 800 bytes in the first 100 ms are less than 900, 1000 bytes in the next are more: 90 % after 200 ms.
    #[test]
    fn the_first_full_bin_is_found() {
        let mut stats = PortStats::default();
        stats.watch_ninety(900);
        for (ms, bytes) in [(50, 500), (90, 300), (150, 1000), (250, 100)] {
            assert_eq!(stats.time_to_ninety(), None);
            stats.departed(Time::millis(ms), bytes);
        }
        assert_eq!(stats.time_to_ninety(), Some(Time::millis(200)));
    }
}
