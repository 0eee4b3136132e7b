//! `[[medium]]`: a wireless medium that nodes share, as written. Its stations are at positions of a layout or at
//! individual ones; links between stations in range of each other are created.

use explicate_core::medium::{AnyMediumKind, Interferer};
use explicate_core::params::Param;
use explicate_core::registry::{self, MEDIA};
use explicate_core::units::{Rate, Time};

use crate::document::{Data, Node, quoted};
use crate::graph::{Draft, Graph, MediumDraft, Shared, StationDraft, lines};
use crate::keys;
use crate::limits;
use crate::params::{self, Chosen};
use crate::parts::INTERFACE_LIMIT;
use crate::problem::suggestion;
use crate::props::Props;
use crate::quantity::{self, show, show_coordinate};
use crate::reader::{Context, Reader, quantity_of, quantity_that, short, text};

const METRES_PER_NS: f64 = 0.299_792_458;

/// A layout: positions of its stations, their names, and their neighbours.
struct Layout {
    places: Vec<(f64, f64)>,
    names: Vec<String>,
    neighbours: Vec<(usize, usize)>,
    written: String,
}

/// Reads an entry of `[[medium]]`.
pub(crate) fn read(ctx: &Context<'_>, graph: &mut Graph, node: &Node, index: usize) {
    let title = match &node.data {
        Data::Table(table) => table.text("name").map(|n| format!("[[medium]] `{}`", short(n))),
        _ => None,
    };
    let title = title.unwrap_or_else(|| format!("[[medium]] number {}", index + 1));
    let Some(kind) = read_kind(ctx, node) else { return };
    let Some(reader) = Reader::open_with(ctx, node, keys::MEDIUM, kind.params(), title) else { return };
    let Some(name) = reader.need("name").and(reader.name("name")) else { return };
    if graph.media.iter().any(|m| m.name == name) {
        ctx.error(reader.place, format!("a medium called `{name}` exists already; choose another name"));
        return;
    }
    let chosen = read_params(&reader, kind);
    let shared = Props::read_port(&reader, INTERFACE_LIMIT);
    let layout = match reader.get("layout") {
        Some(node) => match read_layout(ctx, node) {
            Some(layout) => layout,
            None => return,
        },
        None => Layout { places: Vec::new(), names: Vec::new(), neighbours: Vec::new(), written: String::new() },
    };
    let values = params::values(&chosen);
    if let Some(conflict) = kind.conflict(&values) {
        let written = |name: &str| chosen.iter().find(|c| c.param.name == name).map(|c| c.place);
        let place = written(conflict.params[0]).or_else(|| written(conflict.params[1])).unwrap_or(reader.place);
        ctx.error(place, format!("[[medium]] `{name}`: {}; {}", conflict.what, conflict.write));
    }
    let mut medium =
        MediumDraft { name: name.to_string(), kind, stations: Vec::new(), interferers: Vec::new(), chosen, values };
    for (name, at) in layout.names.iter().zip(&layout.places) {
        add_station(graph, &mut medium, name, *at, &shared);
    }
    let refined = read_stations(&reader, graph, &mut medium, &shared);
    let bursts = read_interferers(&reader, &mut medium);
    if medium.stations.is_empty() {
        ctx.error(reader.place, format!("{} has no stations; give it a `layout` or [[medium.station]]", reader.title));
        return;
    }
    let rate = kind.rate(&medium.values);
    write(graph, &medium, &layout, &shared, rate, (&refined, &bursts));
    link_all(graph, &medium, &layout);
    graph.media.push(medium);
}

fn read_kind(ctx: &Context<'_>, node: &Node) -> Option<&'static AnyMediumKind> {
    let first = MEDIA.first().copied();
    let Data::Table(table) = &node.data else { return first };
    let Some(kind) = table.get("kind") else { return first };
    let name = text(ctx, kind, "kind")?;
    let found = registry::medium(name);
    if found.is_none() {
        let hint = suggestion(name, MEDIA.iter().map(|m| m.name()));
        ctx.error(kind.place, format!("no medium is called `{}`; {hint}", short(name)));
    }
    found
}

/// Keys of every medium, which are not parameters.
fn read_params(reader: &Reader<'_>, kind: &'static AnyMediumKind) -> Vec<Chosen> {
    let declared: Vec<&'static Param> = kind.params().iter().collect();
    let read = |e: &crate::document::Entry| {
        let param = declared.iter().copied().find(|p| p.name == e.key)?;
        let given = params::read(reader.ctx, &e.node, param)?;
        Some(Chosen { param, given, place: e.node.place })
    };
    reader.table.entries.iter().filter_map(read).collect()
}

fn add_station(graph: &mut Graph, medium: &mut MediumDraft, name: &str, at: (f64, f64), shared: &Props) {
    let node = *graph.by_name.entry(name.to_string()).or_insert_with(|| {
        graph.nodes.push(name.to_string());
        graph.nodes.len() - 1
    });
    medium.stations.push(StationDraft { node, at, props: shared.clone() });
}

// ------------------------------------------------------------------------------------------------ layouts

fn read_layout(ctx: &Context<'_>, node: &Node) -> Option<Layout> {
    let reader = Reader::open(ctx, node, keys::LAYOUT, "`layout`".to_string())?;
    let kind = reader.word_or_default("kind")?;
    let others: &[&str] = if kind == "mesh" { &["stations"] } else { &["rows", "columns"] };
    if let Some((key, node)) = others.iter().find_map(|k| Some((k, reader.get(k)?))) {
        ctx.error(node.place, format!("`{key}` has no meaning in a {kind}"));
        return None;
    }
    let number = |key: &str| reader.whole_or_default(key) as usize;
    let spacing = match reader.get("spacing") {
        None => keys::default(keys::LAYOUT, "spacing", |t| quantity::read(t, &quantity::DISTANCE)),
        Some(node) => {
            let read = |t: &str| quantity::read(t, &quantity::DISTANCE);
            let fits = |metres: &f64| *metres <= limits::METRES / limits::STATIONS as f64;
            let metres = quantity_that(ctx, node, "spacing", &quantity::DISTANCE, read, fits)?;
            if !fits(&metres) {
                ctx.error(
                    node.place,
                    format!("`spacing` is at most {}km", limits::METRES / limits::STATIONS as f64 / 1e3),
                );
                return None;
            }
            metres
        }
    };
    let prefix = match reader.get("prefix") {
        None => keys::declared(keys::LAYOUT, "prefix").default,
        Some(_) => reader.name("prefix")?,
    };
    let mut layout = Layout { places: Vec::new(), names: Vec::new(), neighbours: Vec::new(), written: String::new() };
    let mut counts = String::new();
    let first = if kind == "star" { 0 } else { 1 };
    match kind {
        "mesh" => {
            let (rows, columns) = (number("rows"), number("columns"));
            if rows * columns > limits::STATIONS as usize {
                ctx.error(
                    node.place,
                    format!("the mesh has {} stations; the maximum is {}", rows * columns, limits::STATIONS),
                );
                return None;
            }
            layout.mesh(rows, columns, spacing);
            counts = format!("rows = {rows}, columns = {columns}");
        }
        _ => {
            let stations = number("stations");
            if kind == "star" {
                layout.star(stations, spacing)
            } else {
                layout.mesh(1, stations, spacing)
            }
            counts += &format!("stations = {stations}");
        }
    }
    layout.names = (first..).take(layout.places.len()).map(|i| format!("{prefix}{i}")).collect();
    let spacing = quoted(&show(spacing, &quantity::DISTANCE));
    layout.written =
        format!("layout = {{ kind = {}, {counts}, spacing = {spacing}, prefix = {} }}\n", quoted(kind), quoted(prefix));
    Some(layout)
}

impl Layout {
    /// Rows of stations, linked to the next in both directions; one row is a chain.
    fn mesh(&mut self, rows: usize, columns: usize, spacing: f64) {
        for i in 0..rows * columns {
            let (row, column) = (i / columns, i % columns);
            self.places.push((column as f64 * spacing, row as f64 * spacing));
            if column + 1 < columns {
                self.neighbours.push((i, i + 1));
            }
            if row + 1 < rows {
                self.neighbours.push((i, i + columns));
            }
        }
    }
    /// A hub, and stations evenly around it.
    fn star(&mut self, stations: usize, spacing: f64) {
        self.places.push((0.0, 0.0));
        for i in 0..stations {
            let angle = core::f64::consts::TAU * i as f64 / stations as f64;
            self.places.push((spacing * libm::cos(angle), spacing * libm::sin(angle)));
            self.neighbours.push((0, i + 1));
        }
    }
}

// ---------------------------------------------------------------------------------- stations one by one

/// Individual stations, or settings for stations of the layout. Returns the settings as TOML.
fn read_stations(reader: &Reader<'_>, graph: &mut Graph, medium: &mut MediumDraft, shared: &Props) -> String {
    let ctx = reader.ctx;
    let mut written = String::new();
    let entries = list(reader, "station");
    if entries.len() + medium.stations.len() > 2 * limits::STATIONS as usize {
        ctx.error(reader.place, format!("{} has too many stations; the maximum is {}", reader.title, limits::STATIONS));
        return written;
    }
    let mut said: Vec<usize> = Vec::new();
    let laid_out = medium.stations.len();
    for entry in entries {
        let Some(station) = Reader::open(ctx, entry, keys::STATION, "[[medium.station]]".to_string()) else { continue };
        let Some(name) = station.need("node").and(station.name("node")) else { continue };
        let node = graph.by_name.get(name).copied();
        let known = node.and_then(|n| medium.stations.iter().position(|s| s.node == n));
        let at = match station.get("at") {
            Some(node) => match place(ctx, node) {
                Some(at) => Some(at),
                None => continue,
            },
            None => None,
        };
        let index = match (known, at) {
            (Some(i), _) if i >= laid_out || said.contains(&i) => {
                ctx.error(station.place, format!("`{}` is a station of this medium already; remove one", short(name)));
                continue;
            }
            (Some(i), Some(at)) => {
                medium.stations[i].at = at;
                i
            }
            (Some(i), None) => i,
            (None, Some(at)) => {
                add_station(graph, medium, name, at, shared);
                medium.stations.len() - 1
            }
            (None, None) => {
                let message = "the layout has no such station; a new one needs `at = [\"0m\", \"0m\"]`";
                ctx.error(station.place, format!("[[medium.station]] `{}`: {message}", short(name)));
                continue;
            }
        };
        said.push(index);
        let draft = &mut medium.stations[index];
        draft.props = draft.props.refined(&Props::read_port(&station, INTERFACE_LIMIT));
        let at = format!("at = [{}, {}]", quoted(&show_coordinate(draft.at.0)), quoted(&show_coordinate(draft.at.1)));
        let rate = medium.kind.rate(&medium.values);
        let port = lines(&draft.props.written_port(rate));
        let at = if known.is_some() && station.get("at").is_none() { String::new() } else { format!("{at}\n") };
        written += &format!("[[medium.station]]\nnode = {}\n{at}{port}", quoted(name));
    }
    if medium.stations.len() > limits::STATIONS as usize {
        ctx.error(reader.place, format!("{} has too many stations; the maximum is {}", reader.title, limits::STATIONS));
    }
    written
}

fn read_interferers(reader: &Reader<'_>, medium: &mut MediumDraft) -> String {
    let ctx = reader.ctx;
    let mut written = String::new();
    let entries = list(reader, "interferer");
    if entries.len() > limits::INTERFERERS {
        ctx.error(
            reader.place,
            format!("{} interferers are too many; the maximum is {}", entries.len(), limits::INTERFERERS),
        );
        return written;
    }
    for entry in entries {
        let title = "[[medium.interferer]]".to_string();
        let Some(table) = Reader::open(ctx, entry, keys::INTERFERER, title) else { continue };
        let at = table.need("at").and_then(|node| place(ctx, node));
        let time = |key: &str| table.need(key).and(table.time_that(key, |time| *time >= Time::micros(1)));
        let (on, off) = (time("on"), time("off"));
        let random = table.flag_or_default("random");
        let (Some(at), Some(on), Some(off)) = (at, on, off) else { continue };
        if on < Time::micros(1) || off < Time::micros(1) {
            ctx.error(table.place, "`on` and `off` of an interferer have to be at least 1us");
            continue;
        }
        let time = |t: Time| quoted(&show(t.0 as f64, &quantity::TIME));
        written += &format!(
            "[[medium.interferer]]\nat = [{}, {}]\non = {}\noff = {}\nrandom = {random}\n",
            quoted(&show_coordinate(at.0)),
            quoted(&show_coordinate(at.1)),
            time(on),
            time(off)
        );
        medium.interferers.push(Interferer { at, on, off, random });
    }
    written
}

fn list<'a>(reader: &Reader<'a>, key: &str) -> &'a [Node] {
    match reader.get(key) {
        None => &[],
        Some(Node { data: Data::List(nodes), .. }) => nodes,
        Some(node) => {
            let message = format!("`{key}` is a list of tables; write [[medium.{key}]] with two brackets");
            reader.ctx.error(node.place, message);
            &[]
        }
    }
}

/// A place: two coordinates.
fn place(ctx: &Context<'_>, node: &Node) -> Option<(f64, f64)> {
    let Data::List(nodes) = &node.data else {
        ctx.error(node.place, format!("`at` is a place, like [\"0m\", \"250m\"], not {}", node.what()));
        return None;
    };
    let [x, y] = nodes.as_slice() else {
        ctx.error(node.place, format!("`at` has two coordinates, like [\"0m\", \"250m\"], not {}", nodes.len()));
        return None;
    };
    let read = |n: &Node| quantity_of(ctx, n, "at", &quantity::DISTANCE, quantity::coordinate);
    read(x).zip(read(y))
}

// ------------------------------------------------------------------------------------------------- links

fn distance(a: (f64, f64), b: (f64, f64)) -> f64 {
    libm::hypot(a.0 - b.0, a.1 - b.1)
}

/// Links in both directions between neighbours of the layout, and between each other station and all stations in its
/// range.
fn link_all(graph: &mut Graph, medium: &MediumDraft, layout: &Layout) {
    let reach = medium.kind.reach(&medium.values) * (1.0 + 1e-9);
    let laid_out = layout.places.len();
    let at = |i: usize| medium.stations[i].at;
    let mut pairs = layout.neighbours.clone();
    for b in laid_out..medium.stations.len() {
        pairs.extend((0..b).filter(|&a| distance(at(a), at(b)) <= reach).map(|a| (a, b)));
    }
    let rate = medium.kind.rate(&medium.values);
    graph.props.push(Shared { props: Props::default(), rate });
    let (props, index) = (graph.props.len() - 1, graph.media.len());
    for (a, b) in pairs {
        let delay = Time((distance(at(a), at(b)) / METRES_PER_NS + 0.5) as u64);
        for (a, b) in [(a, b), (b, a)] {
            let (from, to) = (medium.stations[a].node, medium.stations[b].node);
            let mut name = format!("{}->{}", graph.nodes[from], graph.nodes[to]);
            if graph.media.iter().any(|m| [from, to].iter().all(|n| m.stations.iter().any(|s| s.node == *n))) {
                name += &format!("@{}", medium.name);
            }
            graph.links.push(Draft { name, part: "", from, to, delay, props, over: Some((index, a, b)) });
        }
    }
}

/// A link of a medium has channels and optionally a rate of its own; all else belongs to its interface.
pub(crate) fn refine_link(reader: &Reader<'_>, graph: &mut Graph, at: usize, props: Props) {
    let Some((medium, ..)) = graph.links[at].over else { return };
    let (medium, name) = (&graph.media[medium], graph.links[at].name.clone());
    let ctx = reader.ctx;
    let others = [
        "delay",
        "queue",
        "router",
        "classes",
        "kappa",
        "share_by_flows",
        "capacity",
        "half_duplex",
        "clock_tick",
        "scone",
    ];
    for (key, node) in others.iter().filter_map(|k| Some((k, reader.get(k)?))) {
        let remedy = if *key == "delay" { "distance gives it" } else { "set it there, or for one station" };
        let message = format!("`{key}` does not belong to a link over the medium `{}`; {remedy}", medium.name);
        ctx.error(node.place, message);
    }
    if let (Some(node), Some(rate)) = (reader.get("rate"), props.rate)
        && !medium.kind.has_rate(rate)
    {
        let message = format!("`{}` has no rate {}", medium.kind.name(), show(rate.0 as f64, &quantity::RATE));
        ctx.error(node.place, format!("{message}; use one of the values of `rate` of [[medium]]"));
    }
    let merged = graph.props[graph.links[at].props].props.refined(&props);
    if let Some(node) = reader.get("channel")
        && merged.has_service()
    {
        ctx.error(node.place, "a channel that sets the link's rate cannot be used on a medium; use it on a wired link");
    }
    graph.written += &format!("[[link]]\nname = {}\n", quoted(&name));
    if let Some(rate) = merged.rate {
        graph.written += &format!("rate = {}\n", quoted(&show(rate.0 as f64, &quantity::RATE)));
    }
    graph.written += &format!("channel = {}\n", merged.written_channels());
    let rate = graph.props[graph.links[at].props].rate;
    graph.links[at].props = graph.props.len();
    graph.props.push(Shared { props: merged, rate });
}

// ----------------------------------------------------------------------------------------------- writing

fn write(
    graph: &mut Graph,
    medium: &MediumDraft,
    layout: &Layout,
    shared: &Props,
    rate: Rate,
    (stations, interferers): (&str, &str),
) {
    let declared: Vec<&'static Param> = medium.kind.params().iter().collect();
    graph.written += &format!(
        "[[medium]]\nname = {}\nkind = {}\n{}{}{}{stations}{interferers}",
        quoted(&medium.name),
        quoted(medium.kind.name()),
        layout.written,
        lines(&shared.written_port(rate)),
        lines(&params::written(&declared, &medium.chosen)),
    );
}
