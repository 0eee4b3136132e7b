//! Resolves a document to a [`Scenario`]: names are looked up and defaults filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::units::{Rate, Time};

use crate::checks;
use crate::classes;
use crate::document::{Data, Node, Place, Table, key, quoted};
use crate::ends::{Crossing, NamedPaths, crossings};
use crate::flows::{self, Defaults, Group};
use crate::graph::{Draft, Graph, MediumDraft, StationDraft};
use crate::guards;
use crate::keys;
use crate::limits;
use crate::model::{
    ChannelSpec, Class, FlowGroup, Link, Match, Medium, Over, Queue, RouterSpec, Sampling, Scenario, Start, Station,
};
use crate::params::{self, Given};
use crate::parts::{self, INTERFACE_LIMIT, LINK_LIMIT, Router};
use crate::props::Props;
use crate::quantity::{self, Length, show};
use crate::reader::{Context, Reader, word};
use crate::relations;
use crate::reroutes;
use crate::routing::Routes;
use crate::scone;
use crate::topology;
use crate::unused;

const SAMPLED: &[&str] = &["queue", "cwnd", "throughput", "rtt"];
/// Packet length of links without traffic, bytes.
const IDLE_PACKET: f64 = 1500.0;

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
    for props in graph.props.iter().map(|shared| &shared.props) {
        if props.kappa() > 0.0 && props.classes.as_ref().map_or(0, Vec::len) != 2 {
            let message = "`kappa` moves the weights of two `classes`, `explicit` and `other`; add them";
            ctx.error(props.place.unwrap_or(Place::START), message);
        }
        if props.by_flows() && props.classes.as_ref().is_some_and(|classes| !classes.is_empty()) {
            let message = "`share_by_flows` makes its own classes, whose weights move; remove it or `classes`";
            ctx.error(props.place.unwrap_or(Place::START), message);
        }
    }
    scenario.reroutes = reroutes::read(&reader, &graph);
    bridges(ctx, &graph);
    if ctx.failed() {
        return None;
    }
    scenario.resolved = write_head(&scenario, &graph) + &reroutes::written(&scenario.reroutes, &graph);
    for (group, count) in groups.iter().zip(&counts) {
        scenario.resolved += &format!("[[flows]]\n{}", flows::written(group, *count, graph.generator.default_path()));
    }
    scenario.resolved += &write_tail(&scenario, reader.table);
    (scenario.links, scenario.media) = make_network(ctx, &graph, &groups);
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
    fill_queues(ctx, &graph, &mut scenario, &crossings);
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

/// The controllers that the flows need, with the parameters from their presets; of two values the first is used.
fn controllers(groups: &[Group]) -> Vec<RouterSpec> {
    let mut all: Vec<RouterSpec> = Vec::new();
    for resolved in groups.iter().map(|g| &g.resolved) {
        let Some(protocol) = registry::controller(resolved.protocol) else { continue };
        let known = all.iter().position(|spec| spec.protocol.name() == protocol.name());
        let at = known.unwrap_or_else(|| {
            all.push(RouterSpec { protocol, values: Values::default() });
            all.len() - 1
        });
        let values = &mut all[at].values;
        for (name, value) in resolved.router {
            let param = protocol.router_params().iter().find(|p| p.name == *name);
            if let Some(param) = param.filter(|p| !values.given().iter().any(|(given, _)| *given == p.name)) {
                values.set(param, *value);
            }
        }
    }
    all
}

/// Reports controllers at nodes that have none.
fn bridges(ctx: &Context<'_>, graph: &Graph) {
    let stations = graph.media.iter().flat_map(|m| m.stations.iter().map(|s| (s.node, &s.props)));
    let links = graph.links.iter().map(|l| (l.from, &graph.props[l.props].props));
    let controls = |router: &Option<Router>| matches!(router, Some(Router::Of(..)));
    for (node, props) in links.chain(stations).filter(|(node, _)| graph.bridges.contains(node)) {
        if controls(&props.router) || props.classes.iter().flatten().any(|c| controls(&c.router)) {
            let message = "is a bridge and has no controllers; remove its `router`, or make it a router";
            ctx.error(props.place.unwrap_or(Place::START), format!("`{}` {message}", graph.nodes[node]));
            return;
        }
    }
}

/// Links and media except for their queues, which depend on the flows' round-trip times.
fn make_network(ctx: &Context<'_>, graph: &Graph, groups: &[Group]) -> (Vec<Link>, Vec<Medium>) {
    let present = controllers(groups);
    let routers = |router: &Option<Router>, node: usize| -> Vec<RouterSpec> {
        match router {
            None | Some(Router::Auto) if graph.bridges.contains(&node) => Vec::new(),
            None | Some(Router::Auto) => present.clone(),
            Some(Router::None) => Vec::new(),
            Some(Router::Of(protocol, chosen)) => {
                vec![RouterSpec { protocol: *protocol, values: params::values(chosen) }]
            }
        }
    };
    // The owner of a port: a link, or an interface to a medium.
    let link = |name: String, (from, to): (usize, usize), delay: Time, props: &Props, rate: Rate| {
        let channels = props.channel.iter().flatten();
        let written_classes = || props.classes.iter().flatten();
        let class = |class: &classes::Class| {
            let written = class.router.clone().or_else(|| props.router.clone());
            let mut routers = routers(&written, from);
            if let None | Some(Router::Auto) = written {
                // Those that answer packets of the class.
                let apart = written_classes().any(|c| c.matches == Match::Explicit);
                routers.retain(|r| (r.protocol.congestion_header() && apart) == (class.matches == Match::Explicit));
            }
            Class { matches: class.matches, queue: None, routers, weight: class.weight }
        };
        let classes: Vec<Class> = written_classes().map(class).collect();
        let (capacity, capacity_steps) = props.configured_capacity(rate);
        Link {
            name,
            part: "",
            from,
            to,
            rate,
            delay,
            capacity,
            capacity_steps,
            measured: props.measured_capacity(),
            shares_with: None,
            queue: None,
            routers: if classes.is_empty() { routers(&props.router, from) } else { Vec::new() },
            classes,
            kappa: props.kappa(),
            by_flows: props.by_flows(),
            channel: channels.map(|c| ChannelSpec { kind: c.kind, values: c.values() }).collect(),
            clock_tick: props.clock_tick(),
            scone: props.scone(),
            over: None,
        }
    };
    let medium = |draft: &MediumDraft| {
        let rate = draft.kind.rate(&draft.values);
        let station = |s: &StationDraft| {
            let name = format!("{}/{}", draft.name, graph.nodes[s.node]);
            Station { node: s.node, at: s.at, interface: link(name, (s.node, s.node), Time::ZERO, &s.props, rate) }
        };
        Medium {
            name: draft.name.clone(),
            kind: draft.kind,
            values: draft.values.clone(),
            stations: draft.stations.iter().map(station).collect(),
            interferers: draft.interferers.clone(),
        }
    };
    let media: Vec<Medium> = graph.media.iter().map(medium).collect();
    let rates: Vec<Rate> = graph.props.iter().map(|s| s.props.nominal(s.rate)).collect();
    let of_draft = |draft: &Draft| {
        let props = &graph.props[draft.props].props;
        let mut link = link(draft.name.clone(), (draft.from, draft.to), draft.delay, props, rates[draft.props]);
        link.part = draft.part;
        if let Some((medium, from, to)) = draft.over {
            link.over = Some(Over { medium, from, to, rate: props.rate });
            link.capacity = media[medium].stations[from].interface.capacity;
            link.routers = Vec::new();
        }
        link
    };
    let mut links: Vec<Link> = graph.links.iter().map(of_draft).collect();
    share_lines(ctx, graph, &mut links);
    (links, media)
}

/// Pairs the directions of half-duplex links.
fn share_lines(ctx: &Context<'_>, graph: &Graph, links: &mut [Link]) {
    let props = |link: usize| &graph.props[graph.links[link].props].props;
    let mut between: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    if graph.props.iter().any(|shared| shared.props.half_duplex()) {
        for (index, link) in links.iter().enumerate() {
            between.entry((link.from, link.to)).or_default().push(index);
        }
    }
    for index in 0..links.len() {
        if !props(index).half_duplex() || links[index].shares_with.is_some() {
            continue;
        }
        let back = between.get(&(links[index].to, links[index].from)).into_iter().flatten().copied();
        match back.into_iter().find(|&twin| links[twin].shares_with.is_none()) {
            Some(twin) => (links[index].shares_with, links[twin].shares_with) = (Some(twin), Some(index)),
            None => {
                let place = props(index).place.unwrap_or(Place::START);
                let message = "says `half_duplex`, but no link leads back; add `duplex = true`";
                ctx.error(place, format!("the link `{}` {message}", links[index].name));
            }
        }
    }
}

fn fill_queues(ctx: &Context<'_>, graph: &Graph, scenario: &mut Scenario, crossings: &[Crossing]) {
    let (standard, interface) = (parts::Queue::standard(LINK_LIMIT), parts::Queue::standard(INTERFACE_LIMIT));
    let mut reported = BTreeSet::new();
    let mut at_station: BTreeMap<(usize, usize), Crossing> = BTreeMap::new();
    for ((link, draft), crossing) in scenario.links.iter_mut().zip(&graph.links).zip(crossings) {
        if let Some(over) = link.over {
            let sum = at_station.entry((over.medium, over.from)).or_default();
            *sum = sum.with(crossing);
            continue;
        }
        let auto = (!graph.host[draft.from]).then_some(&standard);
        let rtt = crossing.base_rtt().unwrap_or(link.delay + link.delay);
        fill(ctx, &mut reported, link, &graph.props[draft.props].props, auto, (crossing, rtt));
    }
    for (m, medium) in scenario.media.iter_mut().enumerate() {
        for (i, station) in medium.stations.iter_mut().enumerate() {
            let crossing = at_station.get(&(m, i)).copied().unwrap_or_default();
            let rtt = crossing.base_rtt().unwrap_or(Time::ZERO);
            let props = &graph.media[m].stations[i].props;
            fill(ctx, &mut reported, &mut station.interface, props, Some(&interface), (&crossing, rtt));
        }
    }
}

/// Sets the queues of a port; `auto` is the meaning of "auto", and `None` is unlimited.
fn fill(
    ctx: &Context<'_>,
    reported: &mut BTreeSet<Place>,
    link: &mut Link,
    props: &Props,
    auto: Option<&parts::Queue>,
    (crossing, rtt): (&Crossing, Time),
) {
    let mean_packet = crossing.mean_packet().unwrap_or(IDLE_PACKET);
    let bdp = link.rate.0 as f64 * rtt.0 as f64 / 8e9;
    let mut fill = |written: &parts::Queue| {
        let meant = if let parts::Queue::Auto = written { auto? } else { written };
        let parts::Queue::Kind(kind, chosen) = meant else { return None };
        let mut values = params::values(chosen);
        for c in chosen {
            let Given::Length(length) = c.given else { continue };
            let bytes = match length {
                Length::Bytes(x) => x,
                Length::Packets(x) => x * mean_packet,
                Length::Bdp(x) => x * bdp,
            };
            // One message per place, not one per generated link.
            if !(c.param.min..=c.param.max).contains(&bytes) && reported.insert(c.place) {
                params::in_bounds(ctx, c.place, c.param, bytes);
            }
            values.set(c.param, bytes);
        }
        Some(Queue { kind: *kind, values, mean_packet })
    };
    let of_link = props.queue.as_ref().unwrap_or(&parts::Queue::Auto);
    if link.classes.is_empty() {
        link.queue = fill(of_link);
    }
    for (class, written) in link.classes.iter_mut().zip(props.classes.iter().flatten()) {
        class.queue = fill(written.queue.as_ref().unwrap_or(of_link));
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
