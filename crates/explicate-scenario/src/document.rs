//! A TOML document in which every key and value has its location, so that later errors can point to it.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::excerpt::excerpt;
use crate::problem::{Problem, Site};

/// Location of a key or value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// Bytes of the file.
    At { start: usize, end: usize },
    /// Number of the override.
    Set(usize),
    /// Not written: the path of its key.
    Unwritten(&'static str),
}

impl Place {
    /// The beginning of the file, for values that are not written.
    pub(crate) const START: Place = Place::At { start: 0, end: 0 };
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Text(String),
    Int(i64),
    Float(f64),
    Flag(bool),
    /// A date, which no key accepts; stored for the error message.
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) data: Data,
    pub(crate) place: Place,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

/// Keys and values, in the order of the file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.node)
    }
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.node)
    }
    /// Sets a key and returns its value's place in the table.
    pub(crate) fn set(&mut self, key: &str, node: Node) -> &mut Node {
        let place = node.place;
        let at = match self.entries.iter().position(|e| e.key == key) {
            Some(at) => {
                self.entries[at].node = node;
                at
            }
            None => {
                self.entries.push(Entry { key: key.to_string(), place, node });
                self.entries.len() - 1
            }
        };
        &mut self.entries[at].node
    }
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Node {
    pub(crate) fn text(text: &str, place: Place) -> Node {
        Node { data: Data::Text(text.to_string()), place }
    }

    /// The kind of a value, for messages: `a text`, `a table`, ...
    pub(crate) fn what(&self) -> &'static str {
        match self.data {
            Data::Text(_) => "a text",
            Data::Int(_) | Data::Float(_) => "a number",
            Data::Flag(_) => "true or false",
            Data::Date(_) => "a date",
            Data::List(_) => "a list",
            Data::Table(_) => "a table",
        }
    }

    /// The value as TOML, on one line.
    pub(crate) fn to_toml(&self) -> String {
        match &self.data {
            Data::Text(text) => quoted(text),
            Data::Int(i) => i.to_string(),
            Data::Float(x) => number(*x),
            Data::Flag(flag) => flag.to_string(),
            Data::Date(date) => date.clone(),
            Data::List(nodes) => format!("[{}]", nodes.iter().map(Node::to_toml).collect::<Vec<_>>().join(", ")),
            Data::Table(table) => {
                let entry = |e: &Entry| format!("{} = {}", key(&e.key), e.node.to_toml());
                format!("{{ {} }}", table.entries.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// A number as TOML: a whole one without a point.
pub(crate) fn number(x: f64) -> String {
    if x.is_nan() {
        "nan".to_string()
    } else if x.is_infinite() {
        if x > 0.0 { "inf" } else { "-inf" }.to_string()
    } else if x.fract() == 0.0 && x.abs() < 9e15 {
        format!("{x:.0}")
    } else {
        format!("{x:?}")
    }
}

/// The first names of a list.
pub(crate) fn some(names: &[&str]) -> String {
    if names.len() <= 3 {
        names.join(", ")
    } else {
        format!("{}, {} and {} others", names[0], names[1], names.len() - 2)
    }
}

/// The place of a value below keys and, by number, entries of lists.
pub(crate) fn at(table: &Table, path: &[&str]) -> Option<Place> {
    let (key, rest) = path.split_first()?;
    let node = table.get(key)?;
    below(node, rest)
}

fn below(node: &Node, path: &[&str]) -> Option<Place> {
    match (&node.data, path) {
        (_, []) => Some(node.place),
        (Data::Table(table), _) => at(table, path).or(Some(node.place)),
        (Data::List(nodes), [index, rest @ ..]) => below(nodes.get(index.parse::<usize>().ok()?)?, rest),
        _ => Some(node.place),
    }
}

/// A TOML basic string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A TOML key, quoted only if it has to be.
pub(crate) fn key(text: &str) -> String {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { text.to_string() } else { quoted(text) }
}

/// Parses a document; the errors are those of TOML's grammar.
pub(crate) fn parse(text: &str, lines: &Lines<'_>) -> Result<Table, Vec<Problem>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(convert_table(table.get_ref(), &|span| Place::At { start: span.start, end: span.end }));
    }
    let mut problems: Vec<Problem> = Vec::new();
    for error in errors.iter().take(20) {
        let span = error.span().unwrap_or(0..0);
        let message = format!("not TOML: {}", error.message().trim().replace('\n', "; "));
        problems.push(Problem { site: lines.site(span), message });
    }
    Err(problems)
}

/// Parses the value of an override: as TOML if it is valid TOML, otherwise as a text.
pub(crate) fn parse_value(text: &str, place: Place) -> Node {
    match DeValue::parse(text) {
        Ok(value) if !matches!(value.get_ref(), DeValue::Datetime(_)) => convert(value.get_ref(), place, &|_| place),
        _ => Node::text(text, place),
    }
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(Range<usize>) -> Place) -> Table {
    let mut entries: Vec<(usize, Entry)> = Vec::with_capacity(table.len());
    for (k, v) in table {
        let entry = Entry {
            key: k.get_ref().to_string(),
            place: place(k.span()),
            node: convert(v.get_ref(), place(v.span()), place),
        };
        entries.push((k.span().start, entry));
    }
    entries.sort_by_key(|(at, _)| *at);
    Table { entries: entries.into_iter().map(|(_, e)| e).collect() }
}

fn convert(value: &DeValue<'_>, at: Place, place: &dyn Fn(Range<usize>) -> Place) -> Node {
    let data = match value {
        DeValue::String(s) => Data::Text(s.to_string()),
        DeValue::Integer(i) => match i64::from_str_radix(i.as_str(), i.radix()) {
            Ok(i) => Data::Int(i),
            Err(_) => Data::Float(i.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(x) => Data::Float(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Data::Flag(*b),
        DeValue::Datetime(d) => Data::Date(d.to_string()),
        DeValue::Array(a) => Data::List(a.iter().map(|v| convert(v.get_ref(), place(v.span()), place)).collect()),
        DeValue::Table(t) => Data::Table(convert_table(t, place)),
    };
    Node { data, place: at }
}

/// Turns byte offsets into lines and columns.
pub(crate) struct Lines<'a> {
    origin: &'a str,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(origin: &'a str, text: &'a str) -> Lines<'a> {
        let after = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines { origin, text, starts: std::iter::once(0).chain(after).collect() }
    }
    pub(crate) fn site(&self, span: Range<usize>) -> Site {
        let at = span.start.min(self.text.len());
        let line = self.starts.partition_point(|&s| s <= at) - 1;
        let start = self.starts[line];
        let before = self.text.as_bytes()[start..at].iter();
        // Bytes that do not continue a character start one.
        let column = before.filter(|b| (**b & 0xc0) != 0x80).count() + 1;
        let excerpt = if span == (0..0) { String::new() } else { self.excerpt(line, at - start..span.end - start) };
        Site::File { origin: self.origin.to_string(), line: line + 1, column, excerpt }
    }
    /// A line, counted from 0, with carets below these bytes of it.
    fn excerpt(&self, line: usize, marked: Range<usize>) -> String {
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let text = self.text[self.starts[line]..end].trim_end_matches(['\n', '\r']);
        let (start, end) =
            (text.floor_char_boundary(marked.start), text.ceil_char_boundary(marked.end.min(text.len())));
        excerpt(text, line + 1, start..end.max(start))
    }
}
