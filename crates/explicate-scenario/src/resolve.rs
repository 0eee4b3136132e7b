//! Resolves a document to a [`Scenario`]: names are looked up and defaults filled in. `network.rs` has links and media.

use std::collections::BTreeSet;
use std::mem;

use explicate_core::units::Time;

use crate::checks;
use crate::document::{Data, Node, Place, Table, key, quoted};
use crate::ends::{NamedPaths, crossings};
use crate::flows::{self, Defaults, Group};
use crate::graph::Graph;
use crate::guards;
use crate::keys;
use crate::limits;
use crate::model::{FlowGroup, Sampling, Scenario, Start};
use crate::network;
use crate::quantity::{self, show};
use crate::reader::{Context, Reader, word};
use crate::relations;
use crate::reroutes;
use crate::routing::Routes;
use crate::scone;
use crate::topology;
use crate::unused;

const SAMPLED: &[&str] = &["queue", "cwnd", "throughput", "rtt"];

/// Resolves a document; `None` if the context has problems.
pub(crate) fn resolve(ctx: &Context<'_>, root: &Node, default_name: &str) -> Option<Scenario> {
    let reader = Reader::open(ctx, root, keys::ROOT, "the scenario".to_string())?;
    let name = reader.get("name").map_or(Some(default_name), |_| reader.name("name"));
    let mut scenario = Scenario {
        name: name.unwrap_or(default_name).to_string(),
        duration: least_micro(&reader, "duration"),
        warmup: reader.time_or_default("warmup"),
        runs: reader.whole_or_default("runs") as u32,
        seed: reader.whole_or_default("seed"),
        nodes: Vec::new(),
        bridges: BTreeSet::new(),
        links: Vec::new(),
        media: Vec::new(),
        reroutes: Vec::new(),
        flows: Vec::new(),
        sampling: read_sampling(&reader),
        sweep: read_sweep(&reader),
        host_queues: BTreeSet::new(),
        warnings: Vec::new(),
        unused: Vec::new(),
        resolved: String::new(),
    };
    checks::duration(&reader, &scenario);
    checks::seeds(&reader, &scenario);
    let groups = read_groups(&reader);
    let counts: Vec<u32> = groups.iter().map(|g| count(ctx, g, scenario.duration)).collect();
    let standing = groups.iter().zip(&counts).filter(|(g, _)| !g.arriving()).map(|(_, n)| *n as usize).sum();
    let mut graph = topology::read(ctx, reader.table, standing);
    network::moving_weights(ctx, &graph);
    scenario.reroutes = reroutes::read(&reader, &graph);
    network::bridges(ctx, &graph);
    if ctx.failed() {
        return None;
    }
    scenario.resolved = write_head(&scenario, &graph) + &reroutes::written(&scenario.reroutes, &graph);
    for (group, count) in groups.iter().zip(&counts) {
        scenario.resolved += &format!("[[flows]]\n{}", flows::written(group, *count, graph.generator.default_path()));
    }
    scenario.resolved += &write_tail(&scenario, reader.table);
    (scenario.links, scenario.media) = network::links_and_media(ctx, &graph, &groups);
    scone::check(ctx, &graph, &scenario);
    let mut named_paths = NamedPaths::default();
    let mut places = Vec::new();
    for (group, count) in groups.into_iter().zip(counts) {
        let Some((ends, via)) = named_paths.ends(ctx, &graph, &scenario.links, &group, count) else { continue };
        if let Some(node) = ends.iter().flat_map(|(from, to)| [from, to]).find(|n| graph.bridges.contains(n)) {
            let node = &graph.nodes[*node];
            let message = format!("`{node}` is a bridge, where no flow begins or ends; make it a host or a router");
            ctx.error(group.place, format!("[[flows]] `{}`: {message}", group.name));
        }
        places.push(group.place);
        scenario.flows.push(FlowGroup {
            values: group.values(),
            name: group.name,
            count,
            protocol: group.protocol,
            resolved: group.resolved,
            packet: group.packet,
            processing: group.processing,
            start: group.start,
            traffic: group.traffic,
            stop: group.stop,
            ends,
            via,
        });
    }
    let mut phases: Vec<Routes> = Routes::over_time(graph.nodes.len(), &scenario.links, &scenario.reroutes).collect();
    let seconds = scenario.duration.as_secs_f64();
    let crossings = crossings(ctx, &graph, &scenario.links, &mut phases, &mut scenario.flows, &places, seconds);
    if ctx.failed() {
        return None;
    }
    network::fill_queues(ctx, &graph, &mut scenario, &crossings);
    let declined = checks::declined(&graph);
    relations::queues(ctx, &graph, &scenario, &crossings);
    relations::media(ctx, &reader, &scenario, &crossings);
    relations::over_time(ctx, &reader, &graph, &scenario);
    scenario.host_queues = relations::hosts(ctx, &reader, &graph, &scenario, &crossings, &mut phases);
    (scenario.nodes, scenario.bridges) = (mem::take(&mut graph.nodes), mem::take(&mut graph.bridges));
    guards::decide(&mut scenario, &mut phases);
    checks::whole(ctx, &reader, &graph, &scenario, &crossings, &declined, &mut phases);
    relations::flows(ctx, &reader, &scenario, &mut phases);
    let loads = unused::loads(&scenario, &mut phases);
    unused::links(ctx, &reader, &graph, &scenario, &crossings, &loads);
    unused::params(ctx, &graph, &scenario, &crossings);
    unused::flows(ctx, &reader, &scenario, &mut phases);
    unused::run(ctx, &reader, &scenario, &mut phases);
    (!ctx.failed()).then_some(scenario)
}

fn read_groups(reader: &Reader<'_>) -> Vec<Group> {
    let ctx = reader.ctx;
    let nodes: &[Node] = match reader.get("flows") {
        Some(Node { data: Data::List(nodes), .. }) => nodes,
        Some(node) => {
            ctx.error(node.place, "`flows` is a list of tables; write [[flows]] with two brackets");
            return Vec::new();
        }
        None => &[],
    };
    if nodes.is_empty() {
        ctx.error(Place::START, "there are no flows; add a [[flows]] with `name` and `protocol`");
    }
    let processing = flows::read_processing(reader).unwrap_or_else(flows::default_processing);
    let defaults = Defaults { processing, stack: flows::read_stack(reader).unwrap_or_else(flows::default_stack) };
    let groups: Vec<Group> = nodes.iter().enumerate().filter_map(|(i, n)| flows::read(ctx, n, i, defaults)).collect();
    let mut names = BTreeSet::new();
    for group in &groups {
        if !names.insert(&group.name) {
            ctx.error(group.place, format!("two groups of flows are called `{}`; rename one", group.name));
        }
    }
    groups
}

/// A time that has to be at least a microsecond, by default the declared one. The caller reports shorter ones.
fn least_micro(reader: &Reader<'_>, key: &str) -> Time {
    reader.time_that(key, |time| *time >= Time::micros(1)).unwrap_or_else(|| reader.default_time(key))
}

/// The number of flows of a group: with arrivals, the number that a run exceeds with a probability of 10^-9.
fn count(ctx: &Context<'_>, group: &Group, duration: Time) -> u32 {
    match (group.count, &group.start) {
        (Some(count), _) => count,
        (None, Start::Poisson { from, per_second }) => {
            let mean = per_second * duration.since(*from).as_secs_f64();
            let most = mean + 6.0 * mean.sqrt() + 10.0;
            if most > limits::COUNT as f64 {
                let message =
                    format!("about {mean:.0} flows arrive; lower `arrivals`, or limit the number with `count`");
                ctx.error(group.place, format!("[[flows]] `{}`: {message} (at most {})", group.name, limits::COUNT));
                return 1;
            }
            most as u32
        }
        (None, _) => 1,
    }
}

fn read_sampling(reader: &Reader<'_>) -> Sampling {
    let ctx = reader.ctx;
    let open = |node| Reader::open(ctx, node, keys::SAMPLING, "[sampling]".to_string());
    let Some(table) = reader.get("sampling").and_then(open) else { return Sampling::default() };
    let every = least_micro(&table, "every");
    if let Some(node) = table.get("every")
        && every < Time::micros(1)
    {
        ctx.error(node.place, "`every` has to be at least 1us");
    }
    let of = match table.get("of") {
        None => SAMPLED.iter().map(|s| s.to_string()).collect(),
        Some(Node { data: Data::List(nodes), .. }) => {
            let mut of: Vec<String> = Vec::new();
            for word in nodes.iter().filter_map(|n| word(ctx, n, "of", keys::SAMPLED)) {
                if !of.iter().any(|o| o == word) {
                    of.push(word.to_string());
                }
            }
            of
        }
        Some(node) => {
            ctx.error(node.place, format!("`of` is a list of words, like [\"queue\"], not {}", node.what()));
            Vec::new()
        }
    };
    Sampling { every: Some(every).filter(|_| !of.is_empty()), of }
}

fn read_sweep(reader: &Reader<'_>) -> Vec<(String, Vec<String>)> {
    let ctx = reader.ctx;
    let mut sweep = Vec::new();
    match reader.get("sweep") {
        None => {}
        Some(Node { data: Data::Table(table), .. }) => {
            for entry in &table.entries {
                match &entry.node.data {
                    Data::List(values) if !values.is_empty() => {
                        sweep.push((entry.key.clone(), values.iter().map(as_override).collect()));
                    }
                    Data::Table(_) => {
                        let message = "a path with dots needs quotes, like \"topology.bottleneck.rate\" = [...]";
                        ctx.error(entry.place, format!("[sweep]: {message}"));
                    }
                    _ => {
                        let message = "needs a list of at least one value in square brackets";
                        ctx.error(entry.node.place, format!("[sweep]: `{}` {message}", entry.key));
                    }
                }
            }
        }
        Some(node) => {
            ctx.error(node.place, format!("[sweep] is a table of paths and lists of values, not {}", node.what()))
        }
    }
    sweep
}

/// The value as text, such that an override with it is equivalent.
fn as_override(node: &Node) -> String {
    match &node.data {
        Data::Text(text) => {
            let again = crate::document::parse_value(text, node.place);
            if matches!(&again.data, Data::Text(same) if same == text) { text.clone() } else { quoted(text) }
        }
        _ => node.to_toml(),
    }
}

fn write_head(scenario: &Scenario, graph: &Graph) -> String {
    let time = |t: Time| quoted(&show(t.0 as f64, &quantity::TIME));
    format!(
        "name = {}\nduration = {}\nwarmup = {}\nruns = {}\nseed = {}\n{}",
        quoted(&scenario.name),
        time(scenario.duration),
        time(scenario.warmup),
        scenario.runs,
        scenario.seed,
        graph.written
    )
}

fn write_tail(scenario: &Scenario, root: &Table) -> String {
    let mut text = String::new();
    if let Some(every) = scenario.sampling.every {
        let of: Vec<String> = scenario.sampling.of.iter().map(|o| quoted(o)).collect();
        let every = quoted(&show(every.0 as f64, &quantity::TIME));
        text += &format!("[sampling]\nevery = {every}\nof = [{}]\n", of.join(", "));
    }
    if let Some(Node { data: Data::Table(table), .. }) = root.get("sweep")
        && !table.entries.is_empty()
    {
        text += "[sweep]\n";
        for entry in &table.entries {
            text += &format!("{} = {}\n", key(&entry.key), entry.node.to_toml());
        }
    }
    text
}
