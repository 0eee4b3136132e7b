//! `[topology]` as written, and the nodes and links that are generated from it.

use std::collections::{BTreeSet, HashMap};

use explicate_core::units::{Rate, Time};

use crate::document::{Place, Table};
use crate::generator::{Generator, Kind};
use crate::graph::{Draft, Graph, Shared, lines};
use crate::keys;
use crate::limits;
use crate::props::{Delay, Props};
use crate::quantity;
use crate::reader::{Context, Reader};

fn default_rate() -> Rate {
    keys::default(keys::PROPS, "rate", quantity::rate)
}
fn middle_delay() -> Time {
    keys::default(keys::PROPS, "delay", quantity::time)
}
fn access_delay() -> Time {
    keys::default(keys::ACCESS, "delay", quantity::time)
}

/// Reads `[topology]` and creates its nodes and links; `own_nodes` states that there are also [[node]] or [[medium]]
/// entries.
pub(crate) fn generate(ctx: &Context<'_>, root: &Table, flows: usize, own_nodes: bool) -> Graph {
    let reader = root.get("topology").and_then(|n| Reader::open(ctx, n, keys::TOPOLOGY, "[topology]".to_string()));
    let kind = reader.as_ref().map_or(Some(None), |r| read_kind(r));
    let default = if own_nodes { Kind::Explicit } else { Kind::Dumbbell };
    let kind = kind.flatten().unwrap_or(default);
    let given = |key| reader.as_ref().and_then(|r| r.whole(key)).map(|n| n as usize);
    let declared = |key| keys::default(keys::TOPOLOGY, key, str::parse);
    let star = kind == Kind::Star;
    let generator = Generator {
        kind,
        pairs: if star { 0 } else { given("pairs").unwrap_or(flows.clamp(1, limits::COUNT as usize)) },
        hops: match kind {
            Kind::Star => 0,
            Kind::Dumbbell => given("hops").unwrap_or(1),
            _ => given("hops").unwrap_or_else(|| declared("hops")),
        },
        cross: if kind == Kind::ParkingLot { given("cross").unwrap_or_else(|| declared("cross")) } else { 0 },
        hosts: if star { hosts(reader.as_ref(), flows) } else { 0 },
    };
    let section = |name: &str, keys| {
        let node = reader.as_ref()?.get(name)?;
        Reader::open(ctx, node, keys, format!("[topology.{name}]")).map(|r| Props::read(&r))
    };
    let middle_name = middle_name(kind);
    let [middle_path, access_path] = match kind {
        Kind::Dumbbell => ["topology.bottleneck", "topology.access"],
        _ => ["topology.link", "topology.access"],
    };
    let middle = section(middle_name, keys::PROPS).unwrap_or_else(|| Props::unwritten(middle_path));
    let access = section("access", keys::ACCESS).unwrap_or_else(|| Props::unwritten(access_path));
    if let Some(r) = &reader {
        misplaced(r, kind);
    }
    let mut graph = Graph {
        nodes: Vec::new(),
        host: Vec::new(),
        bridges: BTreeSet::new(),
        links: Vec::new(),
        props: Vec::new(),
        media: Vec::new(),
        written: String::new(),
        generator,
        by_name: HashMap::new(),
    };
    if kind == Kind::Explicit {
        graph.written = "[topology]\nkind = \"explicit\"\n".to_string();
        return graph;
    }
    let most = 2 * limits::COUNT as usize;
    if generator.cross.saturating_mul(generator.hops) + generator.pairs > most / 2 {
        let place = reader.as_ref().map_or(Place::START, |r| r.place);
        ctx.error(
            place,
            format!("[topology] has more than {} pairs of hosts; lower `pairs`, `cross` or `hops`", most / 2),
        );
        return graph;
    }
    write_generator(&mut graph, &middle, &access, middle_name);
    make_generated(&mut graph, middle, access);
    graph
}

/// The part of `[topology]` for the links between routers, or of all hosts of a star.
fn middle_name(kind: Kind) -> &'static str {
    if kind == Kind::Dumbbell { "bottleneck" } else { "link" }
}

/// Hosts of a star: one for each flow, and the one that all flows share.
fn hosts(reader: Option<&Reader<'_>>, flows: usize) -> usize {
    let said = reader.and_then(|r| r.whole("hosts"));
    said.map_or((flows + 1).clamp(2, limits::COUNT as usize), |n| n as usize)
}

fn read_kind(reader: &Reader<'_>) -> Option<Option<Kind>> {
    Some(match reader.word("kind") {
        Some("dumbbell") => Some(Kind::Dumbbell),
        Some("chain") => Some(Kind::Chain),
        Some("parking_lot") => Some(Kind::ParkingLot),
        Some("star") => Some(Kind::Star),
        Some(_) => Some(Kind::Explicit),
        None => None,
    })
}

/// Reports keys that the kind of topology does not have.
fn misplaced(reader: &Reader<'_>, kind: Kind) {
    let (name, good): (&str, &[&str]) = match kind {
        Kind::Dumbbell => ("dumbbell", &["kind", "pairs", "access", "bottleneck"]),
        Kind::Chain => ("chain", &["kind", "pairs", "hops", "access", "link"]),
        Kind::ParkingLot => ("parking_lot", &["kind", "pairs", "hops", "cross", "access", "link"]),
        Kind::Star => ("star", &["kind", "hosts", "link"]),
        Kind::Explicit => ("custom topology", &["kind"]),
    };
    for entry in &reader.table.entries {
        let declared = keys::TOPOLOGY.iter().any(|k| k.name == entry.key);
        if declared && !good.contains(&entry.key.as_str()) {
            let message = format!("`{}` has no meaning in a {name}; its keys are {}", entry.key, good.join(", "));
            reader.ctx.error(entry.place, message);
        }
    }
}

fn make_generated(graph: &mut Graph, middle: Props, access: Props) {
    let g = graph.generator;
    let access_rate = ten_times(middle.nominal(default_rate()));
    let middle_delay = match middle.delay {
        Some(Delay::Fixed(t)) => t,
        _ => middle_delay(),
    };
    let access_delay = access.delay.unwrap_or(Delay::Fixed(access_delay()));
    graph.props = vec![Shared { props: middle, rate: default_rate() }, Shared { props: access, rate: access_rate }];
    let add = |graph: &mut Graph, name: String, host: bool| {
        graph.by_name.insert(name.clone(), graph.nodes.len());
        graph.nodes.push(name);
        graph.host.push(host);
    };
    for r in 1..=g.routers() {
        add(graph, format!("r{r}"), false);
    }
    for i in 0..g.pairs {
        add(graph, format!("s{i}"), true);
        add(graph, format!("d{i}"), true);
    }
    for hop in 1..=if g.cross > 0 { g.hops } else { 0 } {
        for j in 0..g.cross {
            add(graph, format!("c{hop}s{j}"), true);
            add(graph, format!("c{hop}d{j}"), true);
        }
    }
    for r in 0..g.hops {
        both_ways(graph, r, r + 1, middle_delay, 0);
    }
    for i in 0..g.hosts {
        add(graph, format!("h{i}"), true);
        both_ways(graph, g.routers() + i, 0, middle_delay, 0);
    }
    let mut attach = |source: (usize, usize), sink: (usize, usize), delay: Time| {
        both_ways(graph, source.0, source.1, delay, 1);
        both_ways(graph, sink.1, sink.0, delay, 1);
    };
    for i in 0..g.pairs {
        let (s, d) = g.pair(i);
        attach((s, 0), (d, g.hops), delay_of(access_delay, i, g.pairs));
    }
    for hop in 0..if g.cross > 0 { g.hops } else { 0 } {
        for j in 0..g.cross {
            let (s, d) = g.beside(hop, j);
            attach((s, hop), (d, hop + 1), delay_of(access_delay, j, g.cross));
        }
    }
}

fn both_ways(graph: &mut Graph, a: usize, b: usize, delay: Time, props: usize) {
    let part = [middle_name(graph.generator.kind), "access"][props];
    for (from, to) in [(a, b), (b, a)] {
        let name = format!("{}->{}", graph.nodes[from], graph.nodes[to]);
        graph.links.push(Draft { name, part, from, to, delay, props, over: None });
    }
}

/// Delay of pair `i` of `n`.
fn delay_of(delay: Delay, i: usize, n: usize) -> Time {
    match delay {
        Delay::Fixed(t) => t,
        Delay::Range(from, _) if n < 2 => from,
        Delay::Range(from, to) => {
            let span = to.0 as i128 - from.0 as i128;
            Time((from.0 as i128 + i as i128 * span / (n as i128 - 1)) as u64)
        }
    }
}

fn ten_times(rate: Rate) -> Rate {
    Rate(rate.0.saturating_mul(10).min(limits::RATE))
}

fn write_generator(graph: &mut Graph, middle: &Props, access: &Props, middle_name: &str) {
    let g = graph.generator;
    let mut text = String::from("[topology]\n");
    text += match g.kind {
        Kind::Chain => "kind = \"chain\"\n",
        Kind::ParkingLot => "kind = \"parking_lot\"\n",
        Kind::Star => "kind = \"star\"\n",
        _ => "kind = \"dumbbell\"\n",
    };
    if g.kind == Kind::Star {
        text += &format!("hosts = {}\n", g.hosts);
    } else {
        text += &format!("pairs = {}\n", g.pairs);
    }
    if matches!(g.kind, Kind::Chain | Kind::ParkingLot) {
        text += &format!("hops = {}\n", g.hops);
    }
    if g.kind == Kind::ParkingLot {
        text += &format!("cross = {}\n", g.cross);
    }
    if g.kind != Kind::Star {
        let access = access.written(ten_times(middle.nominal(default_rate())), access_delay());
        text += &format!("[topology.access]\n{}", lines(&access));
    }
    text += &format!("[topology.{middle_name}]\n{}", lines(&middle.written(default_rate(), middle_delay())));
    graph.written = text;
}
