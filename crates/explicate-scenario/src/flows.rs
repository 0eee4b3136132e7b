//! `[[flows]]` as written: protocol, start and stop, traffic, and path of each group.

use explicate_core::endpoint::{self, data_header_bytes};
use explicate_core::params::{Param, Values};
use explicate_core::presets::PRESETS;
use explicate_core::recovery;
use explicate_core::registry::{self, Resolved, protocols};
use explicate_core::stacks::{self, Stack};
use explicate_core::units::Time;

use crate::document::{Data, Node, Place, Table, quoted};
use crate::keys;
use crate::limits;
use crate::model::{Processing, Size, Start, Traffic};
use crate::params::{self, Chosen, Given};
use crate::problem::{near, suggestion};
use crate::quantity::{self, show};
use crate::reader::{Context, Reader, quantity_that, short, text};

/// Path of the flows of a group, as written.
pub(crate) enum FlowPath {
    /// A path by the generator's name.
    Named(String, Place),
    /// Sources and destinations by name.
    Ends(Vec<(String, Place)>, Vec<(String, Place)>),
    /// All nodes in order.
    Nodes(Vec<(String, Place)>),
}

/// A group as written.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// `None` for arrivals, whose number follows from the duration.
    pub(crate) count: Option<u32>,
    pub(crate) protocol: String,
    pub(crate) resolved: Resolved,
    pub(crate) chosen: Vec<Chosen>,
    pub(crate) packet: u16,
    pub(crate) processing: Processing,
    pub(crate) start: Start,
    pub(crate) traffic: Traffic,
    pub(crate) stop: Option<Time>,
    pub(crate) path: Option<FlowPath>,
}

/// The processing of a word, one of [`keys::PROCESSED`].
fn named_processing(word: &str) -> Option<Processing> {
    match word {
        "none" => Some(Processing::None),
        "auto" => Some(Processing::Auto),
        _ => None,
    }
}

/// The default of `processing`.
pub(crate) fn default_processing() -> Processing {
    keys::default(keys::ROOT, "processing", |word| named_processing(word).ok_or(()))
}

/// Reads the key `processing`; reports errors.
pub(crate) fn read_processing(reader: &Reader<'_>) -> Option<Processing> {
    let node = reader.get("processing")?;
    match &node.data {
        Data::Text(word) if word.chars().all(|c| c.is_ascii_alphabetic()) => {
            let named = named_processing(word);
            if named.is_none() {
                let hint = suggestion(word, keys::PROCESSED.iter().copied());
                let message =
                    format!("`processing` cannot be `{}`, only a word or a time like \"0.8ms\"; {hint}", short(word));
                reader.ctx.error(node.place, message);
            }
            named
        }
        _ => {
            let most = reader.time_that("processing", |most| *most <= limits::PROCESSING)?;
            if most > limits::PROCESSING {
                let shown = show(limits::PROCESSING.0 as f64, &quantity::TIME);
                reader.ctx.error(node.place, format!("a `processing` time has to be at most {shown}"));
                return None;
            }
            Some(if most == Time::ZERO { Processing::None } else { Processing::UpTo(most) })
        }
    }
}

/// The default of `stack`.
pub(crate) fn default_stack() -> &'static Stack {
    keys::default(keys::ROOT, "stack", |word| stacks::stack(word).ok_or(()))
}

/// Reads the key `stack`; reports errors.
pub(crate) fn read_stack(reader: &Reader<'_>) -> Option<&'static Stack> {
    reader.word("stack").and_then(stacks::stack)
}

/// What the scenario gives to groups that have no own value.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) processing: Processing,
    pub(crate) stack: &'static Stack,
}

/// Reads a group; `None` if the reported errors prevent it.
pub(crate) fn read(ctx: &Context<'_>, node: &Node, index: usize, defaults: Defaults) -> Option<Group> {
    let known_name = match &node.data {
        Data::Table(table) => table.text("name").map(|n| format!("[[flows]] `{}`", short(n))),
        _ => None,
    };
    let title = known_name.unwrap_or_else(|| format!("[[flows]] number {}", index + 1));
    let reader = Reader::open(ctx, node, keys::FLOWS, title)?;
    let name = reader.need("name").and(reader.name("name"));
    let count = reader.whole("count").map(|n| n as u32);
    let start = read_start(&reader);
    let traffic = read_traffic(&reader);
    let (stop, path) = (reader.time("stop"), read_path(&reader));
    let processing = read_processing(&reader).unwrap_or(defaults.processing);
    let stack = read_stack(&reader).unwrap_or(defaults.stack);
    let protocol = reader.need("protocol").and_then(|node| Some((text(ctx, node, "protocol")?, node.place)));
    let (protocol, place) = protocol?;
    let resolved = resolve(ctx, protocol, stack, place)?;
    let chosen = read_params(&reader, &resolved);
    let packet = read_packet(&reader, &resolved);
    Some(Group {
        name: name?.to_string(),
        place: reader.place,
        count,
        protocol: protocol.to_string(),
        resolved,
        chosen,
        packet,
        processing,
        start: start?,
        traffic: traffic?,
        stop,
        path,
    })
}

impl Group {
    /// All parameters of the group's flows, in order; of two with one name the first counts.
    pub(crate) fn declared(resolved: &Resolved) -> Vec<&'static Param> {
        let of_parts = resolved.protocol.params().iter().chain(resolved.recovery.params());
        let mut all: Vec<&'static Param> = Vec::new();
        for param in of_parts.chain(recovery::COMMON).chain(endpoint::PARAMS) {
            if !all.iter().any(|p| p.name == param.name) {
                all.push(param);
            }
        }
        all
    }
    /// The values that the preset and the scenario set.
    pub(crate) fn values(&self) -> Values {
        params::values(&self.chosen)
    }
    /// Whether flows arrive at random instead of starting at given times.
    pub(crate) fn arriving(&self) -> bool {
        matches!(self.start, Start::Poisson { .. })
    }
}

fn resolve(ctx: &Context<'_>, name: &str, stack: &'static Stack, place: Place) -> Option<Resolved> {
    match registry::resolve_in(name, Some(stack)) {
        Ok(resolved) => Some(resolved),
        Err(message) => {
            let known = PRESETS.iter().map(|p| p.name).chain(protocols().map(|p| p.name()));
            let hint = match name.split_once('/') {
                None => near(name, &known.collect::<Vec<_>>()).filter(|n| *n != name).map(str::to_string),
                Some((protocol, recovery)) => {
                    let recoveries: Vec<&str> = registry::RECOVERIES.iter().map(|r| r.name()).collect();
                    let protocol = near(protocol, &protocols().map(|p| p.name()).collect::<Vec<_>>());
                    let both = protocol.zip(near(recovery, &recoveries));
                    both.map(|(protocol, recovery)| format!("{protocol}/{recovery}"))
                }
            };
            let hint = hint.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            ctx.error(place, format!("`protocol`: {}{hint}", short_message(&message)));
            None
        }
    }
}

fn short_message(message: &str) -> String {
    message.chars().take(600).collect()
}

fn read_params(reader: &Reader<'_>, resolved: &Resolved) -> Vec<Chosen> {
    let ctx = reader.ctx;
    let declared = Group::declared(resolved);
    let owner = format!("{}/{}", resolved.protocol.name(), resolved.recovery.name());
    let empty = Table::default();
    let (table, place) = match reader.get("params") {
        None => (&empty, reader.place),
        Some(Node { data: Data::Table(table), place }) => (table, *place),
        Some(node) => {
            ctx.error(node.place, format!("`params` is a table, like {{ name = value }}, not {}", node.what()));
            (&empty, node.place)
        }
    };
    let mut chosen = params::read_all(ctx, table, &declared, &[], &owner);
    if let (Some(node), Some(paced)) = (reader.get("paced"), reader.flag("paced")) {
        let param = declared.iter().copied().find(|p| p.name == "paced");
        if table.get("paced").is_some() {
            ctx.error(node.place, "`paced` is set twice, here and in `params`; remove one");
        } else if let Some(param) = param {
            chosen.push(Chosen { param, given: Given::Number(paced as u8 as f64), place: node.place });
        }
    }
    for (name, value) in resolved.sets() {
        let param = declared.iter().copied().find(|p| p.name == name);
        if let Some(param) = param.filter(|p| !chosen.iter().any(|c| c.param.name == p.name)) {
            chosen.push(Chosen { param, given: Given::Number(value), place });
        }
    }
    // One order, regardless of where the value was given.
    chosen.sort_by_key(|c| declared.iter().position(|p| p.name == c.param.name));
    chosen
}

fn read_packet(reader: &Reader<'_>, resolved: &Resolved) -> u16 {
    let read = |t: &str| quantity::read(t, &quantity::BYTES);
    let default = || keys::default(keys::FLOWS, "packet", read) as u16;
    let Some(node) = reader.get("packet") else { return default() };
    let headers = data_header_bytes(resolved.protocol);
    let fits = |bytes: &f64| *bytes > headers as f64 && *bytes <= u16::MAX as f64 && bytes.fract() == 0.0;
    let bytes = quantity_that(reader.ctx, node, "packet", &quantity::BYTES, read, fits);
    let Some(bytes) = bytes else { return default() };
    if fits(&bytes) {
        return bytes as u16;
    }
    let range =
        format!("a whole number from {}B ({headers} bytes of headers and one of payload) to 65535B", headers + 1);
    reader.ctx.error(node.place, format!("`packet` is {}; it has to be {range}", show(bytes, &quantity::BYTES)));
    default()
}

fn read_start(reader: &Reader<'_>) -> Option<Start> {
    let ctx = reader.ctx;
    let start = match reader.get("start") {
        None => Start::At(Time::ZERO),
        Some(node @ Node { data: Data::Table(_), .. }) => {
            let table = Reader::open(ctx, node, keys::START, format!("`start` of {}", reader.title))?;
            let laws: Vec<&str> = ["at", "spread", "uniform"].into_iter().filter(|k| table.get(k).is_some()).collect();
            if laws.len() > 1 || (laws == ["at"] && table.get("from").is_some()) {
                ctx.error(node.place, "`start` has one of `at`, `spread` and `uniform`; `from` goes with the last two");
                return None;
            }
            let from = table.time_or_default("from");
            match laws.first() {
                Some(&"spread") => Start::Spread { from, over: table.time("spread")? },
                Some(&"uniform") => Start::Uniform { from, over: table.time("uniform")? },
                Some(_) => Start::At(table.time("at")?),
                None => Start::At(from),
            }
        }
        Some(node) => Start::At(crate::reader::time(ctx, node, "start")?),
    };
    let Some(node) = reader.get("arrivals") else { return Some(start) };
    let read = |t: &str| quantity::read(t, &quantity::FREQUENCY);
    let fits = |per_second: &f64| (1e-9..=1e9).contains(per_second);
    let per_second = quantity_that(ctx, node, "arrivals", &quantity::FREQUENCY, read, fits)?;
    if !fits(&per_second) {
        ctx.error(node.place, format!("`arrivals` of {per_second}/s; it has to be from 1e-9/s to 1e9/s"));
        return None;
    }
    match start {
        Start::At(from) => Some(Start::Poisson { from, per_second }),
        _ => {
            ctx.error(
                node.place,
                "`arrivals` determines when flows start; with it, `start` has to be a single time, like \"0s\"",
            );
            None
        }
    }
}

fn read_traffic(reader: &Reader<'_>) -> Option<Traffic> {
    let ctx = reader.ctx;
    let kinds = ["size", "on_off", "session"];
    let given: Vec<&str> = kinds.into_iter().filter(|key| reader.get(key).is_some()).collect();
    if let [first, second, ..] = given[..] {
        let place = reader.get(second).map_or(reader.place, |node| node.place);
        ctx.error(place, format!("`{first}` and `{second}` exclude each other; keep one"));
        return None;
    }
    if let Some(node) = reader.get("session") {
        return read_session(reader, node);
    }
    match (reader.get("size"), reader.get("on_off")) {
        (Some(node), None) => read_size(reader, node).map(Traffic::Sized),
        (_, Some(node)) => {
            let table = Reader::open(ctx, node, keys::ON_OFF, format!("`on_off` of {}", reader.title))?;
            let time = |key: &str| table.need(key).and(table.time_that(key, |time| *time >= Time::micros(1)));
            let (on, off) = (time("on"), time("off"));
            let (on, off) = (on?, off?);
            if on < Time::micros(1) || off < Time::micros(1) {
                ctx.error(node.place, "`on` and `off` have to be at least 1us");
                return None;
            }
            Some(Traffic::OnOff { on, off, random: table.flag_or_default("random") })
        }
        (None, None) => Some(Traffic::Bulk),
    }
}

fn read_session(reader: &Reader<'_>, node: &Node) -> Option<Traffic> {
    let ctx = reader.ctx;
    let table = Reader::open(ctx, node, keys::SESSION, format!("`session` of {}", reader.title))?;
    let timeouts = table.whole_or_default("timeouts") as u32;
    let of =
        |reader: &Reader<'_>, key: &str| reader.need(key).and(reader.time_that(key, |time| *time >= Time::millis(1)));
    let pause = match table.get("pause") {
        None => {
            let pause = keys::default(keys::SESSION, "pause", quantity::time);
            (pause, pause)
        }
        Some(node @ Node { data: Data::Table(_), .. }) => {
            let range = Reader::open(ctx, node, keys::PAUSE, format!("`pause` of {}", table.title))?;
            let (from, to) = (of(&range, "from"), of(&range, "to"));
            let (from, to) = (from?, to?);
            if to < from {
                ctx.error(node.place, "the shortest pause, `from`, is longer than `to`; exchange them");
                return None;
            }
            (from, to)
        }
        Some(_) => of(&table, "pause").map(|t| (t, t))?,
    };
    if pause.0 < Time::millis(1) {
        ctx.error(node.place, "the `pause` between sessions has to be at least 1ms");
        return None;
    }
    let duration = match table.get("duration") {
        None => None,
        Some(_) => Some(of(&table, "duration")?),
    };
    let random = table.flag_or_default("random");
    match (table.get("random"), duration) {
        (Some(node), None) => {
            ctx.error(node.place, "`random` needs the `duration` of a session; add it");
            None
        }
        (_, Some(span)) if span < Time::millis(1) => {
            ctx.error(node.place, "the `duration` of a session has to be at least 1ms");
            None
        }
        _ => Some(Traffic::Sessions { timeouts, pause, duration, random }),
    }
}

fn read_size(reader: &Reader<'_>, node: &Node) -> Option<Size> {
    let ctx = reader.ctx;
    let bytes = |node: &Node, key: &str| {
        let (read, fits) = (|t: &str| quantity::read(t, &quantity::BYTES), |x: &f64| (1.0..=1e15).contains(x));
        let x = quantity_that(ctx, node, key, &quantity::BYTES, read, fits)?;
        if !fits(&x) {
            let shown = show(x, &quantity::BYTES);
            ctx.error(node.place, format!("`{key}` is {shown}; it has to be from 1B to 1000000GB"));
            return None;
        }
        Some(x)
    };
    if !matches!(node.data, Data::Table(_)) {
        return bytes(node, "size").map(|x| Size::Fixed(x.round() as u64));
    }
    let table = Reader::open(ctx, node, keys::SIZE, format!("`size` of {}", reader.title))?;
    let mean = bytes(table.need("mean")?, "mean")?;
    let distribution = table.word_or_default("distribution")?;
    if distribution == "exponential" {
        if let Some(node) = table.get("shape") {
            ctx.error(node.place, "`shape` belongs to the distribution \"pareto\"");
            return None;
        }
        return Some(Size::Exponential(mean));
    }
    let shape = match table.get("shape") {
        None => keys::default(keys::SIZE, "shape", str::parse),
        Some(Node { data: Data::Float(x), .. }) if *x > 1.0 && *x <= 100.0 => *x,
        Some(Node { data: Data::Int(i), .. }) if (2..=100).contains(i) => *i as f64,
        Some(node) => {
            ctx.error(
                node.place,
                "`shape` is a number greater than 1 (the mean is infinite otherwise) up to 100, like 1.2",
            );
            return None;
        }
    };
    Some(Size::Pareto { mean, shape })
}

fn read_path(reader: &Reader<'_>) -> Option<FlowPath> {
    let ctx = reader.ctx;
    let (path, from, to) = (reader.get("path"), reader.get("from"), reader.get("to"));
    if let (Some(path), Some(_)) = (path, from.or(to)) {
        ctx.error(path.place, "`path` and `from`, `to` exclude each other; keep one");
        return None;
    }
    match (path, from, to) {
        (Some(Node { data: Data::Text(path), place }), ..) => Some(FlowPath::Named(path.clone(), *place)),
        (Some(node), ..) => {
            let nodes = names(ctx, node, "path")?;
            if nodes.len() < 2 {
                ctx.error(node.place, "a `path` has at least two nodes");
                return None;
            }
            Some(FlowPath::Nodes(nodes))
        }
        (None, Some(from), Some(to)) => {
            let (sources, sinks) = (names(ctx, from, "from"), names(ctx, to, "to"));
            let (sources, sinks) = (sources?, sinks?);
            if sources.len() != sinks.len() && sources.len() != 1 && sinks.len() != 1 {
                let lengths = format!("{} and {} nodes", sources.len(), sinks.len());
                ctx.error(to.place, format!("`from` and `to` have {lengths}; give as many in both, or one in either"));
                return None;
            }
            Some(FlowPath::Ends(sources, sinks))
        }
        (None, Some(node), None) | (None, None, Some(node)) => {
            ctx.error(node.place, "`from` and `to` go together; give both");
            None
        }
        (None, None, None) => None,
    }
}

/// One name or a list of names, not empty.
fn names(ctx: &Context<'_>, node: &Node, key: &str) -> Option<Vec<(String, Place)>> {
    let nodes = match &node.data {
        Data::List(nodes) if !nodes.is_empty() && nodes.len() <= limits::COUNT as usize => nodes.as_slice(),
        Data::List(_) => {
            ctx.error(node.place, format!("`{key}` is an empty or too long list of nodes"));
            return None;
        }
        _ => std::slice::from_ref(node),
    };
    nodes.iter().map(|n| Some((text(ctx, n, key)?.to_string(), n.place))).collect()
}

/// The group as TOML, defaults filled in.
pub(crate) fn written(group: &Group, count: u32, path: &str) -> String {
    let time = |t: Time| quoted(&show(t.0 as f64, &quantity::TIME));
    let bytes = |x: f64| quoted(&show(x, &quantity::BYTES));
    let list = |names: &[(String, Place)]| {
        let names: Vec<String> = names.iter().map(|(n, _)| quoted(n)).collect();
        format!("[{}]", names.join(", "))
    };
    let mut lines = vec![
        ("name", quoted(&group.name)),
        ("count", count.to_string()),
        ("protocol", quoted(&group.protocol)),
        ("packet", bytes(group.packet as f64)),
    ];
    lines.push((
        "start",
        match &group.start {
            Start::At(t) | Start::Poisson { from: t, .. } => time(*t),
            Start::Spread { from, over } => format!("{{ spread = {}, from = {} }}", time(*over), time(*from)),
            Start::Uniform { from, over } => format!("{{ uniform = {}, from = {} }}", time(*over), time(*from)),
        },
    ));
    lines.extend(group.resolved.stack.map(|stack| ("stack", quoted(stack.name))));
    let processing = match group.processing {
        Processing::None => quoted("none"),
        Processing::Auto => quoted("auto"),
        Processing::UpTo(most) => time(most),
    };
    lines.push(("processing", processing));
    if let Start::Poisson { per_second, .. } = &group.start {
        lines.push(("arrivals", quoted(&format!("{per_second}/s"))));
    }
    lines.extend(group.stop.map(|t| ("stop", time(t))));
    match &group.traffic {
        Traffic::Bulk => {}
        Traffic::Sized(Size::Fixed(n)) => lines.push(("size", bytes(*n as f64))),
        Traffic::Sized(Size::Exponential(mean)) => {
            lines.push(("size", format!("{{ mean = {}, distribution = \"exponential\" }}", bytes(*mean))));
        }
        Traffic::Sized(Size::Pareto { mean, shape }) => {
            let pareto = "distribution = \"pareto\"";
            lines.push(("size", format!("{{ mean = {}, {pareto}, shape = {shape:?} }}", bytes(*mean))));
        }
        Traffic::OnOff { on, off, random } => {
            lines.push(("on_off", format!("{{ on = {}, off = {}, random = {random} }}", time(*on), time(*off))));
        }
        Traffic::Sessions { timeouts, pause: (from, to), duration, random } => {
            let lasts = duration.map_or(String::new(), |t| format!(", duration = {}, random = {random}", time(t)));
            let pause = format!("{{ from = {}, to = {} }}", time(*from), time(*to));
            lines.push(("session", format!("{{ timeouts = {timeouts}, pause = {pause}{lasts} }}")));
        }
    }
    match &group.path {
        None if path.is_empty() => {}
        None => lines.push(("path", quoted(path))),
        Some(FlowPath::Named(path, _)) => lines.push(("path", quoted(path))),
        Some(FlowPath::Nodes(nodes)) => lines.push(("path", list(nodes))),
        Some(FlowPath::Ends(from, to)) => lines.extend([("from", list(from)), ("to", list(to))]),
    }
    let params = params::written(&Group::declared(&group.resolved), &group.chosen);
    let params: Vec<String> = params.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    lines.push(("params", format!("{{ {} }}", params.join(", "))));
    lines.iter().map(|(k, v)| format!("{k} = {v}\n")).collect()
}
