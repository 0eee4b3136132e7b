//! Makes the rows of the result tables from a finished run. [`explicate_build::tables`] defines the columns.

use std::collections::{BTreeMap, BTreeSet};

use explicate_build::rows::{FlowRow, LinkRow};
use explicate_build::source::Source;
use explicate_build::tables::{Cell, Table};
use explicate_scenario::model::{Link, Scenario};

pub use explicate_build::tables::Tables;

use crate::engine::Ends;
use crate::error::RunError;
use crate::sample::Object;
use crate::simulation::{Options, Run, run_all};

/// Carries out all runs of a scenario, one after the other, and returns their result tables.
///
/// # Errors
/// An internal defect; a checked scenario causes none.
pub fn run_tables(scenario: &Scenario) -> Result<Tables, RunError> {
    let version = env!("CARGO_PKG_VERSION");
    let runs = run_all(scenario, &Options::default(), &|_, _| true, |index, mut run| {
        measure(scenario, index, &mut run, version)
    })?;
    let mut all = Tables::default();
    runs.into_iter().for_each(|tables| all.append(tables));
    Ok(all)
}

/// Names of a run's flows, in the engine's order.
pub fn flow_names(scenario: &Scenario, run: &Run) -> Vec<String> {
    let groups = &scenario.flows;
    let name = |(id, ends): (usize, &Ends)| format!("{}.{}", groups[run.engine.group_of(id)].name, ends.number);
    run.engine.ends.iter().enumerate().map(name).collect()
}

/// Names of a scenario's links, in the engine's order.
pub fn link_names(scenario: &Scenario) -> Vec<String> {
    scenario.links.iter().map(|l| l.name.clone()).collect()
}

/// Names of the classes of links that have several, by the numbers of link and class.
fn class_names(scenario: &Scenario) -> BTreeMap<(u32, u32), String> {
    let of_link = |(l, link): (usize, &Link)| -> Vec<((u32, u32), String)> {
        let name = |(c, word): (usize, &str)| ((l as u32, c as u32), format!("{}/{word}", link.name));
        scenario.port(link).class_words().into_iter().enumerate().map(name).collect()
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
        tables.samples.push([number.into(), s.at.to_seconds().into(), object.into(), s.variable.into(), value]);
    }
    let name = scenario.name.as_str();
    tables.run.push([number.into(), name.into(), run.seed.into(), version.into(), scenario.resolved.as_str().into()]);
    tables
}

/// Warnings about a finished run: hosts that dropped more packets of their own flows than they delivered. The text has no
/// numbers, so that a sweep prints it once.
pub fn warnings(scenario: &Scenario, run: &Run) -> Vec<String> {
    let sources: BTreeSet<usize> = scenario.flows.iter().flat_map(|g| g.ends.iter().map(|(from, _)| *from)).collect();
    let own = scenario.links.iter().zip(&run.engine.links).filter(|(link, _)| sources.contains(&link.from));
    let refusing: Vec<&Link> = own
        .filter(|(_, made)| made.port.stats.total().overflow > made.port.stats.delivered)
        .map(|(link, _)| link)
        .collect();
    let Some(first) = refusing.first() else { return Vec::new() };
    let more = match refusing.len() {
        1 => String::new(),
        2 => " (as did another host)".to_string(),
        n => format!(" (as did {} other hosts)", n - 1),
    };
    let (host, link) = (&scenario.nodes[first.from], &first.name);
    vec![format!(
        "`{host}` refused more packets of its own flows than it delivered over {link}{more}: most of what they sent never left \
         the host; lengthen the `queue` of {link}, or send less"
    )]
}

fn measure_flows(table: &mut Table, scenario: &Scenario, number: u64, run: &Run, names: &[String]) {
    for (id, ((ends, before), name)) in run.engine.ends.iter().zip(&run.baseline).zip(names).enumerate() {
        let row = FlowRow {
            run: number,
            name,
            group: &scenario.flows[run.engine.group_of(id)],
            start: ends.start,
            size: if let Source::Sized(bytes) = ends.source { Some(bytes) } else { None },
            completed: ends.completed,
            before: *before,
            after: ends.stats(),
            sessions: ends.sessions(),
            span: scenario.duration.since(scenario.warmup),
        };
        row.push(table);
    }
}

fn measure_links(table: &mut Table, scenario: &Scenario, number: u64, run: &mut Run) {
    let (from, to) = (scenario.warmup.min(scenario.duration), scenario.duration);
    let span = scenario.duration.since(scenario.warmup).as_secs_f64();
    for (index, link) in scenario.links.iter().enumerate() {
        let queue = run.engine.queue_of_mut(index).queue(from, to);
        let port = &run.engine.links[index].port;
        let mut row = LinkRow::of_port(number, &link.name, &port.stats, queue, port.offered(from, to), span);
        // Share of the time occupied by its frames and their answers.
        row.utilisation = match run.engine.over(index) {
            Some((medium, number)) if span > 0.0 => medium.airtime(number).0.as_secs_f64() / span,
            Some(_) => f64::NAN,
            None => row.utilisation,
        };
        row.push(table);
    }
}
