//! Makes the rows of the result tables from a finished run. [`explicate_build::tables`] defines the columns.

use std::collections::{BTreeMap, BTreeSet};

use explicate_build::rows::{FlowRow, LinkRow};
use explicate_build::source::Source;
use explicate_build::tables::{Cell, Table};
use explicate_core::port::stats::PortStats;
use explicate_scenario::model::{FlowGroup, Link, Scenario, Traffic};
use explicate_scenario::problem::RunWarning;

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

/// Warnings about a finished run: hosts that dropped more packets of their own flows than they delivered, hosts in which
/// packets wait for seconds, and flows that delivered nothing. The texts have no numbers that differ from run to run, so that
/// a sweep prints each once.
pub fn warnings(scenario: &Scenario, run: &Run) -> Vec<RunWarning> {
    [refusing(scenario, run), waiting(scenario, run), starved(scenario, run)].into_iter().flatten().collect()
}

/// Where the queue of a host's link is written: at the link, in its part of the topology, or nowhere; then a flow that sends over
/// it is the cause.
fn queue_keys(scenario: &Scenario, link: &Link) -> Vec<String> {
    let (from, to) = (&scenario.nodes[link.from], &scenario.nodes[link.to]);
    let links = [link.name.clone(), format!("{from}->{to}"), format!("{to}->{from}")];
    let mut keys: Vec<String> = links.iter().map(|name| format!("link.{name}.queue")).collect();
    if !link.part.is_empty() {
        keys.push(format!("topology.{}.queue", link.part));
    }
    if let Some(over) = link.over {
        let medium = &scenario.media[over.medium].name;
        keys.extend([format!("medium.{medium}.queue"), format!("medium.{medium}")]);
    }
    keys.extend(links.iter().map(|name| format!("link.{name}")));
    if !link.part.is_empty() {
        keys.push(format!("topology.{}", link.part));
    }
    let sends = |group: &&FlowGroup| group.ends.iter().any(|(source, _)| *source == link.from);
    keys.extend(scenario.flows.iter().find(sends).map(|group| format!("flows.{}", group.name)));
    keys
}

/// Links of hosts that send, with their ports.
fn of_senders<'a>(scenario: &'a Scenario, run: &'a Run) -> impl Iterator<Item = (&'a Link, &'a PortStats)> {
    let sources: BTreeSet<usize> = scenario.flows.iter().flat_map(|g| g.ends.iter().map(|(from, _)| *from)).collect();
    let links = scenario.links.iter().zip(&run.engine.links).map(|(link, made)| (link, &made.port.stats));
    links.filter(move |(link, _)| sources.contains(&link.from))
}

fn refusing(scenario: &Scenario, run: &Run) -> Option<RunWarning> {
    let refusing: Vec<&Link> = of_senders(scenario, run)
        .filter(|(_, stats)| stats.total().overflow > stats.delivered)
        .map(|(link, _)| link)
        .collect();
    let first = refusing.first()?;
    let more = match refusing.len() {
        1 => String::new(),
        2 => " (as did another host)".to_string(),
        n => format!(" (as did {} other hosts)", n - 1),
    };
    let (host, link) = (&scenario.nodes[first.from], &first.name);
    let message = format!(
        "`{host}` refused more packets of its own flows than it delivered over {link}{more}: most of what they sent never left \
         the host; lengthen the `queue` of {link}, or send less"
    );
    Some(RunWarning { keys: queue_keys(scenario, first), message })
}

/// Hosts with an unlimited queue in which packets wait for more than a second at the end, unless the scenario's warnings name
/// them. What has arrived and not left waits,
/// except what the line holds for one delay.
fn waiting(scenario: &Scenario, run: &Run) -> Option<RunWarning> {
    let seconds = |link: &Link, stats: &PortStats| {
        let here = stats.arrived.saturating_sub(stats.delivered + stats.total().lost_or_dropped());
        let bytes = here as f64 * stats.bytes as f64 / stats.delivered.max(1) as f64;
        bytes / link.rate.bytes_per_sec() - link.delay.as_secs_f64()
    };
    let unlimited = |link: &Link| link.over.is_none() && link.queue.is_none() && link.classes.is_empty();
    let told: BTreeSet<&str> = scenario.host_queues.iter().map(|l| scenario.links[*l].name.as_str()).collect();
    let own = of_senders(scenario, run).filter(|(link, _)| unlimited(link) && !told.contains(link.name.as_str()));
    let long: Vec<(&Link, f64)> =
        own.map(|(link, stats)| (link, seconds(link, stats))).filter(|(_, seconds)| *seconds > 1.0).collect();
    let (first, _) = long.first()?;
    let longest = long.iter().fold(0.0_f64, |most, (_, seconds)| most.max(*seconds));
    let least = [100, 10].into_iter().find(|least| longest > *least as f64).unwrap_or(1);
    let (host, link) = (&scenario.nodes[first.from], &first.name);
    let more = match long.len() {
        1 => String::new(),
        2 => " (and of another host)".to_string(),
        n => format!(" (and of {} other hosts)", n - 1),
    };
    let message = format!(
        "packets wait for more than {least} s in the queue of host `{host}`{more}, which is unlimited: {link} is slower than what \
         its flows send; limit its `queue`, such as {{ kind = \"droptail\", limit = \"1bdp\" }}"
    );
    Some(RunWarning { keys: queue_keys(scenario, first), message })
}

/// Flows without end that started before the measured span, and in it delivered no byte.
fn starved(scenario: &Scenario, run: &Run) -> Option<RunWarning> {
    let begins = scenario.warmup;
    if scenario.duration <= begins {
        return None;
    }
    let starved = run.engine.ends.iter().zip(&run.baseline).enumerate().filter_map(|(id, (ends, (_, before)))| {
        let group = &scenario.flows[run.engine.group_of(id)];
        let meant = matches!(group.traffic, Traffic::Bulk) && group.stop.is_none_or(|stop| stop > begins);
        let none = ends.stats().1.payload == before.payload;
        (meant && none && ends.start < begins).then_some(group.name.as_str())
    });
    let names: Vec<&str> = starved.collect();
    let first = names.first()?;
    let (flows, them) = if names.len() == 1 { ("a flow", "it") } else { ("some flows", "they") };
    let message = format!(
        "{flows} of `{first}` delivered nothing after the warm-up, though {them} started before it: other flows, losses or a \
         queue of seconds on the path leave no room"
    );
    Some(RunWarning { keys: vec![format!("flows.{first}")], message })
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
