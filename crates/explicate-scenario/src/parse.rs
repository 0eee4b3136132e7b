//! Parses text to a [`Scenario`].

use std::collections::BTreeMap;
use std::path::Path;

use crate::document::{self, Data, Lines, Node, Place, Table};
use crate::limits;
use crate::model::Scenario;
use crate::path;
use crate::problem::{Problem, Problems, Site};
use crate::reader::{Context, Said, short};
use crate::renamed::{self, Both};
use crate::resolve::resolve;

impl Scenario {
    /// Reads a scenario. `origin` names the file in messages, files are found relative to the folder `base`, and
    /// `overrides` are paths of keys with their values (`--set topology.bottleneck.rate=1Gbit/s`), applied in order before
    /// anything is resolved. An `origin` of `<scenario>` says that a program made the text: warnings name keys, not lines.
    ///
    /// # Errors
    /// All problems that could be found at once, in the order of the file, those of overrides last.
    pub fn parse(text: &str, origin: &str, base: &Path, overrides: &[(String, String)]) -> Result<Scenario, Problems> {
        Scenario::read(text, origin, Context::new(base), overrides)
    }
    /// The same without folders: files that the scenario names are in `files`, by name and contents.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_among(
        text: &str,
        origin: &str,
        files: &BTreeMap<String, String>,
        overrides: &[(String, String)],
    ) -> Result<Scenario, Problems> {
        Scenario::read(text, origin, Context { among: Some(files), ..Context::new(Path::new("")) }, overrides)
    }
    /// The same for a fluid model: it may have more flows, and faster links, than could be moved packet by packet.
    ///
    /// # Errors
    /// As [`Scenario::parse`].
    pub fn parse_fluid(
        text: &str,
        origin: &str,
        base: &Path,
        overrides: &[(String, String)],
    ) -> Result<Scenario, Problems> {
        Scenario::read(text, origin, Context { fluid: true, ..Context::new(base) }, overrides)
    }

    fn read(text: &str, origin: &str, ctx: Context<'_>, overrides: &[(String, String)]) -> Result<Scenario, Problems> {
        let lines = Lines::new(origin, text);
        if text.len() > limits::FILE_BYTES {
            let message = format!("the file has more than {} MiB", limits::FILE_BYTES >> 20);
            return Err(Problems(vec![Problem { site: lines.site(0..0), message }]));
        }
        let table = document::parse(text, &lines).map_err(Problems)?;
        let mut root = Node { data: Data::Table(table), place: Place::START };
        renamed::update(&ctx, &mut root, Both::Reject);
        for (i, (key, value)) in overrides.iter().enumerate() {
            apply(&ctx, &mut root, key, document::parse_value(value, Place::Set(i)));
        }
        renamed::update(&ctx, &mut root, Both::KeepLast);
        let stem = Path::new(origin).file_stem().and_then(|s| s.to_str()).filter(|s| !s.trim().is_empty());
        let stem: String = stem.unwrap_or("scenario").trim().chars().filter(|c| !c.is_control()).take(100).collect();
        let mut scenario = resolve(&ctx, &root, &stem);
        if let (Some(scenario), false) = (&mut scenario, ctx.failed()) {
            let mut said = ctx.warnings.take();
            said.extend(try_sweep(&ctx, &root, &stem));
            let keys = (origin == FROM_KEYS).then_some(&root);
            for Said { place, message, unused } in said {
                let site = site_of(place, &lines, overrides, keys);
                let number = scenario.warnings.len();
                scenario.unused.extend(unused.map(|key| (number, format!("{site} {key}"))));
                scenario.warnings.push(Problem { site, message }.with_excerpt());
            }
        }
        match scenario {
            Some(scenario) if !ctx.failed() => Ok(scenario),
            _ => Err(problems(&ctx, &lines, overrides)),
        }
    }
}

/// The location of a setting in a scenario: the first of these paths of keys that the scenario contains, otherwise
/// its beginning. In a text that a program made it is the path of keys.
pub fn locate(text: &str, origin: &str, overrides: &[(String, String)], keys: &[String]) -> Site {
    written_at(text, origin, overrides, keys).unwrap_or_else(|| Lines::new(origin, text).site(0..0))
}

/// The location of these bytes of a text.
pub fn locate_bytes(text: &str, origin: &str, bytes: std::ops::Range<usize>) -> Site {
    Lines::new(origin, text).site(bytes)
}

/// The same as [`locate`]; `None` if the scenario contains none of them.
pub(crate) fn written_at(text: &str, origin: &str, overrides: &[(String, String)], keys: &[String]) -> Option<Site> {
    let lines = Lines::new(origin, text);
    match place(text, &lines, overrides, keys)? {
        (key, Place::At { .. }) if origin == FROM_KEYS => Some(Site::Key(key.clone())),
        (_, place) => Some(site(place, &lines, overrides)),
    }
}

/// Whether the scenario contains the setting at this path of keys.
pub fn is_written(text: &str, overrides: &[(String, String)], key: &str) -> bool {
    place(text, &Lines::new("", text), overrides, &[key.to_string()]).is_some()
}

/// The first of these paths that the scenario contains, and its place.
fn place<'k>(
    text: &str,
    lines: &Lines<'_>,
    overrides: &[(String, String)],
    keys: &'k [String],
) -> Option<(&'k String, Place)> {
    let mut table = document::parse(text, lines).unwrap_or_default();
    for (i, (key, value)) in overrides.iter().enumerate() {
        // Overrides that could not be applied were reported when the scenario was read.
        let _ = path::set(&mut table, key, document::parse_value(value, Place::Set(i)));
    }
    keys.iter().find_map(|key| Some((key, path::find(&table, key)?)))
}

fn site(place: Place, lines: &Lines<'_>, overrides: &[(String, String)]) -> Site {
    match place {
        Place::At { start, end } => lines.site(start..end),
        Place::Set(i) => Site::Override(overrides.get(i).map_or_else(String::new, |(key, _)| key.clone())),
        Place::Unwritten(key) => Site::Key(key.to_string()),
    }
}

/// The `origin` of a text that a program made from keys and values: its lines are not seen, so warnings name keys.
const FROM_KEYS: &str = "<scenario>";

/// The same, by its key in a document whose lines say nothing: `keys` is that document.
fn site_of(place: Place, lines: &Lines<'_>, overrides: &[(String, String)], keys: Option<&Node>) -> Site {
    let key = keys.filter(|_| matches!(place, Place::At { .. })).and_then(|root| path::of(root, place));
    key.map_or_else(|| site(place, lines, overrides), Site::Key)
}

fn apply(ctx: &Context<'_>, root: &mut Node, key: &str, value: Node) {
    let place = value.place;
    let Data::Table(table) = &mut root.data else { return };
    if let Err(message) = path::set(table, key, value) {
        ctx.error(place, message);
    }
}

/// Resolves the scenario once more with the first value of every axis, to find paths and values that are invalid.
/// Returns warnings about old names in paths.
fn try_sweep(ctx: &Context<'_>, root: &Node, name: &str) -> Vec<Said> {
    let Data::Table(table) = &root.data else { return Vec::new() };
    let Some(Data::Table(axes)) = table.get("sweep").map(|node| node.data.clone()) else { return Vec::new() };
    let entries = table.entries.iter().filter(|entry| entry.key != "sweep");
    let mut table = Table { entries: entries.cloned().collect() };
    for axis in axes.entries {
        let Data::List(values) = axis.node.data else { continue };
        let Some(mut first) = values.into_iter().next() else { continue };
        if let (Data::Text(text), Place::Set(_)) = (&first.data, first.place) {
            first = document::parse_value(text, first.place);
        }
        if let Err(message) = path::set(&mut table, &axis.key, first) {
            ctx.error(axis.place, format!("[sweep] `{}`: {message}", short(&axis.key)));
        }
    }
    let mut root = Node { data: Data::Table(table), place: root.place };
    renamed::update(ctx, &mut root, Both::KeepLast);
    let warnings = ctx.warnings.take();
    if !ctx.failed() {
        let _ = resolve(ctx, &root, name);
    }
    warnings
}

fn problems(ctx: &Context<'_>, lines: &Lines<'_>, overrides: &[(String, String)]) -> Problems {
    let mut found = ctx.problems.take();
    found.sort();
    found.dedup();
    let more = found.len().saturating_sub(limits::PROBLEMS);
    let mut problems: Vec<Problem> = found
        .into_iter()
        .take(limits::PROBLEMS)
        .map(|(place, message)| Problem { site: site(place, lines, overrides), message })
        .collect();
    if problems.is_empty() {
        problems.push(Problem { site: lines.site(0..0), message: "the scenario could not be read".to_string() });
    }
    if more > 0 {
        problems.push(Problem { site: lines.site(0..0), message: format!("and {more} more problems") });
    }
    Problems(problems)
}
