//! The rows of the result tables.

use explicate_build::tables::{Cell, Tables};
use explicate_core::units::Time;
use explicate_scenario::model::Scenario;

use crate::network::{Class, SenderStats};

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
    let span = scenario.duration.since(scenario.warmup).to_seconds();
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
            // It was given in nanoseconds.
            Time::from_secs_f64(class.start).to_seconds().into(),
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
            whole(stats.channel - stats.channel_before),
            whole(stats.counts[0] + stats.counts[1]),
        ]);
    }
}
