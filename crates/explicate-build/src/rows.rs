//! Rows of the result tables from counters. The columns are defined in [`crate::tables`].

use explicate_core::endpoint::{ReceiverStats, SenderStats};
use explicate_core::port::PortStats;
use explicate_core::port::stats::{Causes, QueueSummary};
use explicate_core::units::{Time, mean_millis, per_second};

use crate::tables::Table;
use explicate_scenario::model::FlowGroup;

/// Data of a flow at the end of a run.
pub struct FlowRow<'a> {
    /// Number of the run.
    pub run: u64,
    /// Its name.
    pub name: &'a str,
    /// Its group.
    pub group: &'a FlowGroup,
    /// When it started.
    pub start: Time,
    /// Payload to transfer, if it is limited.
    pub size: Option<u64>,
    /// When the last byte was acknowledged; never if it was not.
    pub completed: Time,
    /// Counters of both ends when the measured span began.
    pub before: (SenderStats, ReceiverStats),
    /// And at the end of it.
    pub after: (SenderStats, ReceiverStats),
    /// Connections begun, and torn down.
    pub sessions: (u64, u64),
    /// Length of the measured span.
    pub span: Time,
}

/// Data of a link at the end of a run.
pub struct LinkRow<'a> {
    /// Number of the run.
    pub run: u64,
    /// Its name.
    pub name: &'a str,
    /// Used share of the capacity, or of the airtime, in the measured span.
    pub utilisation: f64,
    /// Mean capacity in the measured span, bytes/s.
    pub capacity: f64,
    /// Its queue in the measured span.
    pub queue: QueueSummary,
    /// What happened to packets in the measured span.
    pub measured: Causes,
    /// And in the whole run.
    pub total: Causes,
    /// See [`PortStats::time_to_ninety`].
    pub time_to_ninety: Option<Time>,
}

impl FlowRow<'_> {
    /// Appends the row.
    pub fn push(&self, table: &mut Table) {
        let ((flow_before, sink_before), (flow, receiver)) = (&self.before, &self.after);
        let samples = flow.rtt_count - flow_before.rtt_count;
        let rtt = (samples > 0).then(|| mean_millis(flow.rtt_sum - flow_before.rtt_sum, samples));
        let completed = (self.completed != Time::NEVER).then(|| self.completed.since(self.start).to_seconds());
        table.push([
            self.run.into(),
            self.name.into(),
            self.group.name.as_str().into(),
            self.group.protocol.as_str().into(),
            self.start.to_seconds().into(),
            self.size.map(|bytes| bytes as f64).into(),
            (8.0 * per_second(receiver.payload - sink_before.payload, self.span)).into(),
            (8.0 * per_second(receiver.bytes - sink_before.bytes, self.span)).into(),
            (flow.sent - flow.refused - (flow_before.sent - flow_before.refused)).into(),
            (flow.retransmissions - flow_before.retransmissions).into(),
            u64::from(flow.timeouts - flow_before.timeouts).into(),
            u64::from(flow.timeouts).into(),
            rtt.into(),
            completed.into(),
            (u64::from(flow.damaged - flow_before.damaged) + receiver.damaged - sink_before.damaged).into(),
            u64::from(flow.ignored_echoes - flow_before.ignored_echoes).into(),
            self.sessions.0.into(),
            self.sessions.1.into(),
        ]);
    }
}

impl LinkRow<'_> {
    /// Summary of a port's counters. `offered` is the number of bytes that its line offered in the `span`, seconds.
    pub fn of_port<'a>(
        run: u64,
        name: &'a str,
        stats: &PortStats,
        queue: QueueSummary,
        offered: f64,
        span: f64,
    ) -> LinkRow<'a> {
        LinkRow {
            run,
            name,
            utilisation: if offered > 0.0 { stats.measured_bytes() as f64 / offered } else { f64::NAN },
            capacity: if span > 0.0 { offered / span } else { f64::NAN },
            queue,
            measured: stats.measured(),
            total: stats.total(),
            time_to_ninety: stats.time_to_ninety(),
        }
    }
    /// Appends the row.
    pub fn push(&self, table: &mut Table) {
        let (queue, measured) = (&self.queue, &self.measured);
        table.push([
            self.run.into(),
            self.name.into(),
            self.utilisation.into(),
            queue.mean_packets.into(),
            Some(queue.mean_nonempty).filter(|&mean| mean > 0.0).into(),
            (queue.p95_packets as f64).into(),
            (queue.max_packets as u64).into(),
            (self.capacity > 0.0).then(|| queue.mean_bytes / self.capacity * 1e3).into(),
            queue.mean_bytes.into(),
            (queue.peak_packets as u64).into(),
            measured.overflow.into(),
            measured.early.into(),
            measured.channel.into(),
            self.total.lost_or_dropped().into(),
            measured.marks.into(),
            self.time_to_ninety.map(|t| t.to_seconds()).into(),
            measured.damaged.into(),
            measured.copies.into(),
            measured.channel_data.into(),
            measured.queue_data.into(),
        ]);
    }
}
