//! From a finished run to rows of the result tables. What the columns mean stands in [`explicate_scenario::tables`].

use std::collections::BTreeMap;

use explicate_core::units::Time;
use explicate_scenario::model::{Class, Link, Scenario};
use explicate_scenario::tables::{Cell, FLOWS, LINKS, RUN, SAMPLES, Table};

use crate::sample::Object;
use crate::simulation::Run;
use crate::source::Source;

/// The tables of a run, or of several runs one after the other.
pub struct Tables {
    /// One row per flow and run.
    pub flows: Table,
    /// One row per link and run.
    pub links: Table,
    /// One row per sample.
    pub samples: Table,
    /// One row per run.
    pub run: Table,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            flows: Table::new(FLOWS),
            links: Table::new(LINKS),
            samples: Table::new(SAMPLES),
            run: Table::new(RUN),
        }
    }
}

impl Tables {
    /// Appends the rows of further runs.
    pub fn append(&mut self, other: Tables) {
        self.flows.append(other.flows);
        self.links.append(other.links);
        self.samples.append(other.samples);
        self.run.append(other.run);
    }
}

/// Names of a run's flows, in the engine's order.
pub fn flow_names(scenario: &Scenario, run: &Run) -> Vec<String> {
    let groups = &scenario.flows;
    run.engine.ends.iter().map(|e| format!("{}.{}", groups[e.group.0 as usize].name, e.group.1)).collect()
}

/// Names of a scenario's links, in the engine's order.
pub fn link_names(scenario: &Scenario) -> Vec<String> {
    scenario.links.iter().map(|l| l.name.clone()).collect()
}

/// Names of the classes of links that have several, by the numbers of link and class.
fn class_names(scenario: &Scenario) -> BTreeMap<(u32, u32), String> {
    let of_link = |(l, link): (usize, &Link)| -> Vec<((u32, u32), String)> {
        let name =
            |(c, class): (usize, &Class)| ((l as u32, c as u32), format!("{}/{}", link.name, class.matches.word()));
        scenario.port(link).classes.iter().enumerate().map(name).collect()
    };
    scenario.links.iter().enumerate().flat_map(of_link).collect()
}

/// The tables of run number `index`.
pub fn measure(scenario: &Scenario, index: usize, run: &mut Run, version: &str) -> Tables {
    let mut tables = Tables::default();
    let number = index as u64;
    let flows = flow_names(scenario, run);
    let classes = class_names(scenario);
    measure_flows(&mut tables.flows, scenario, number, run, &flows);
    measure_links(&mut tables.links, scenario, number, run);
    let node = |n: u32| scenario.nodes.get(n as usize).map_or("unknown", |name| name.as_str());
    for s in &run.samples {
        let peers;
        let object = match s.object {
            Object::Link(l) => scenario.links[l as usize].name.as_str(),
            Object::Class(l, c) => classes[&(l, c)].as_str(),
            Object::Flow(f) => flows[f as usize].as_str(),
            Object::Agent(n) => node(n),
            Object::Peer(a, b) => {
                peers = format!("{}/{}", node(a), node(b));
                peers.as_str()
            }
        };
        let value = Cell::F64(s.value);
        tables.samples.push([number.into(), s.at.as_secs_f64().into(), object.into(), s.variable.into(), value]);
    }
    let name = scenario.name.as_str();
    tables.run.push([number.into(), name.into(), run.seed.into(), version.into(), scenario.resolved.as_str().into()]);
    tables
}

/// Seconds from the end of the warm-up to the end.
fn span(scenario: &Scenario) -> f64 {
    scenario.duration.since(scenario.warmup).as_secs_f64()
}

fn per_second(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount as f64 / seconds } else { f64::NAN }
}

fn measure_flows(table: &mut Table, scenario: &Scenario, number: u64, run: &Run, names: &[String]) {
    let span = span(scenario);
    for ((ends, (flow_before, sink_before)), name) in run.engine.ends.iter().zip(&run.baseline).zip(names) {
        let group = &scenario.flows[ends.group.0 as usize];
        let (flow, sink) = ends.stats();
        let (sessions, torn_down) = ends.sessions();
        let samples = flow.rtt_count - flow_before.rtt_count;
        let rtt = (samples > 0).then(|| (flow.rtt_sum - flow_before.rtt_sum) as f64 / samples as f64 * 1e-6);
        let size = if let Source::Sized(bytes) = ends.source { Some(bytes as f64) } else { None };
        let completed = (ends.completed != Time::NEVER).then(|| ends.completed.since(ends.start).as_secs_f64());
        table.push([
            number.into(),
            name.as_str().into(),
            group.name.as_str().into(),
            group.protocol.as_str().into(),
            ends.start.as_secs_f64().into(),
            size.into(),
            (8.0 * per_second(sink.payload - sink_before.payload, span)).into(),
            (8.0 * per_second(sink.bytes - sink_before.bytes, span)).into(),
            (flow.sent - flow_before.sent).into(),
            (flow.retransmissions - flow_before.retransmissions).into(),
            (flow.timeouts - flow_before.timeouts).into(),
            rtt.into(),
            completed.into(),
            (flow.damaged - flow_before.damaged + sink.damaged - sink_before.damaged).into(),
            sessions.into(),
            torn_down.into(),
        ]);
    }
}

fn measure_links(table: &mut Table, scenario: &Scenario, number: u64, run: &mut Run) {
    let (from, to) = (scenario.warmup.min(scenario.duration), scenario.duration);
    for (index, link) in scenario.links.iter().enumerate() {
        let queue = run.engine.queue_of_mut(index).queue(from, to);
        let port = &run.engine.links[index].port;
        let offered = port.offered(from, to);
        let capacity = if span(scenario) > 0.0 { offered / span(scenario) } else { f64::NAN };
        let stats = &port.stats;
        let measured = stats.measured();
        let share = match run.engine.over(index) {
            // The share of the time in which its frames and their answers were on the air.
            Some((medium, number)) if span(scenario) > 0.0 => medium.airtime(number).0.as_secs_f64() / span(scenario),
            None if offered > 0.0 => stats.measured_bytes() as f64 / offered,
            _ => f64::NAN,
        };
        table.push([
            number.into(),
            link.name.as_str().into(),
            share.into(),
            queue.mean_packets.into(),
            Some(queue.mean_nonempty).filter(|&mean| mean > 0.0).into(),
            (queue.p95_packets as f64).into(),
            (queue.max_packets as u64).into(),
            (queue.mean_bytes / capacity * 1e3).into(),
            queue.mean_bytes.into(),
            (queue.peak_packets as u64).into(),
            measured.overflow.into(),
            measured.early.into(),
            measured.channel.into(),
            stats.total().gone().into(),
            measured.marks.into(),
            stats.time_to_ninety().map(|t| t.as_secs_f64()).into(),
            measured.damaged.into(),
            measured.copies.into(),
        ]);
    }
}
