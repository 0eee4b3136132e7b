//! Dotted paths of keys (`topology.bottleneck.rate`, `link.r1->r2.channel.0.rate`), used by `--set` and `[sweep]`.
//!
//! An entry of a list is addressed by its `name` (a channel by its `kind`, a class by its `match`) or by its number
//! from 0. Names may contain dots: the longest match is taken. A generated link without settings in the file may be
//! named too. A link `a->b` may be written `a:b`, because a shell treats `>` as a redirection.

use std::borrow::Cow;

use crate::document::{Data, Node, Place, Table};
use crate::limits;
use crate::problem::suggestion;
use crate::reader::short;

/// Sets the value at `path`; the error is a sentence.
pub(crate) fn set(root: &mut Table, path: &str, value: Node) -> Result<(), String> {
    if path.len() > limits::PATH_BYTES {
        return Err(format!("a path of keys has at most {} bytes", limits::PATH_BYTES));
    }
    if path.is_empty() || path.starts_with('.') || path.ends_with('.') {
        return Err("a path is keys with dots between them, like topology.bottleneck.rate".to_string());
    }
    let path = with_arrow(root, path);
    set_in_table(root, &path, "", value)
}

/// The path with the name of a link `a:b` as it is stored, `a->b`, unless a link is called `a:b`.
fn with_arrow<'a>(root: &Table, path: &'a str) -> Cow<'a, str> {
    let Some(rest) = path.strip_prefix("link.") else { return Cow::Borrowed(path) };
    let names: Vec<String> = match root.get("link").map(|node| &node.data) {
        Some(Data::List(nodes)) => nodes.iter().map(name_of).collect(),
        _ => Vec::new(),
    };
    if rest.contains("->") || longest(names.iter().map(String::as_str), rest).is_some() {
        return Cow::Borrowed(path);
    }
    Cow::Owned(format!("link.{}", rest.replacen(':', "->", 1)))
}

/// The location of the value at `path`, if it is written.
pub(crate) fn find(table: &Table, path: &str) -> Option<Place> {
    find_in_table(table, &with_arrow(table, path))
}

/// The path of the key or value at a place, the outermost if several begin there.
pub(crate) fn of(node: &Node, place: Place) -> Option<String> {
    let below = |name: &str, entry: &Node, at: Place| {
        if entry.place == place || at == place {
            return Some(name.to_string());
        }
        of(entry, place).map(|rest| format!("{name}.{rest}"))
    };
    match &node.data {
        Data::Table(table) => table.entries.iter().find_map(|entry| below(&entry.key, &entry.node, entry.place)),
        Data::List(nodes) => nodes.iter().enumerate().find_map(|(i, node)| {
            let name = name_of(node);
            below(if name.is_empty() { i.to_string() } else { name }.as_str(), node, node.place)
        }),
        _ => None,
    }
}

fn find_in_table(table: &Table, path: &str) -> Option<Place> {
    let key = longest(table.entries.iter().map(|e| e.key.as_str()), path)?;
    let node = table.get(key)?;
    match path[key.len()..].strip_prefix('.') {
        None => Some(node.place),
        Some(rest) => find_below(node, rest),
    }
}

fn find_below(node: &Node, path: &str) -> Option<Place> {
    let nodes = match &node.data {
        Data::Table(table) => return find_in_table(table, path),
        Data::List(nodes) => nodes,
        _ => return None,
    };
    let names: Vec<String> = nodes.iter().map(name_of).collect();
    let head = longest(names.iter().filter(|n| !n.is_empty()).map(String::as_str), path)
        .unwrap_or_else(|| path.split('.').next().unwrap_or(path));
    let at = names.iter().position(|n| n == head).or_else(|| head.parse().ok().filter(|i| *i < nodes.len()))?;
    match path[head.len()..].strip_prefix('.') {
        None => Some(nodes[at].place),
        Some(rest) => find_below(&nodes[at], rest),
    }
}

fn set_in_table(table: &mut Table, path: &str, parent: &str, value: Node) -> Result<(), String> {
    let known = longest(table.entries.iter().map(|e| e.key.as_str()), path).map(str::to_string);
    let key = known.unwrap_or_else(|| path.split('.').next().unwrap_or(path).to_string());
    let Some(rest) = path[key.len()..].strip_prefix('.') else {
        table.set(&key, value);
        return Ok(());
    };
    let place = value.place;
    if table.get(&key).is_none() {
        let new = if parent.is_empty() && LISTS.contains(&key.as_str()) || parent == "medium" && key == "station" {
            Data::List(Vec::new())
        } else if let "channel" | "classes" = key.as_str() {
            let entry = if key == "channel" { "kind" } else { "match" };
            let message = format!("set the whole list, like {key}=[{{ {entry} = ... }}]");
            return Err(format!("there is no `{key}` here to change; {message}"));
        } else {
            Data::Table(Table::default())
        };
        table.set(&key, Node { data: new, place });
    }
    let Some(node) = table.get_mut(&key) else { return Ok(()) };
    promote(node, &key);
    match &mut node.data {
        Data::Table(inner) => set_in_table(inner, rest, &key, value),
        Data::List(nodes) => set_in_list(nodes, rest, &key, value),
        _ => Err(format!("`{key}` is {}, so nothing stands below it at `{}`", node.what(), short(rest))),
    }
}

/// Lists of tables at the top of a scenario.
const LISTS: &[&str] = &["node", "link", "medium", "reroute", "flows"];

fn set_in_list(nodes: &mut Vec<Node>, path: &str, list: &str, value: Node) -> Result<(), String> {
    let names: Vec<String> = nodes.iter().map(name_of).collect();
    let by_name = longest(names.iter().filter(|n| !n.is_empty()).map(String::as_str), path);
    let head = by_name.unwrap_or_else(|| path.split('.').next().unwrap_or(path)).to_string();
    let at = match by_name {
        Some(name) => names.iter().position(|n| n == name),
        None => head.parse::<usize>().ok().filter(|i| *i < nodes.len()),
    };
    let Some(rest) = path[head.len()..].strip_prefix('.') else {
        return match at {
            Some(at) => {
                nodes[at] = value;
                Ok(())
            }
            None => Err(missing(list, &head, &names)),
        };
    };
    let at = match at {
        Some(at) => at,
        // A generated link without settings in the file: a later check finds out whether it exists.
        None if list == "link" && head.parse::<usize>().is_err() => {
            let mut table = Table::default();
            table.set("name", Node::text(&head, value.place));
            nodes.push(Node { data: Data::Table(table), place: value.place });
            nodes.len() - 1
        }
        // A station of a layout likewise.
        None if list == "station" && head.parse::<usize>().is_err() => {
            let mut table = Table::default();
            table.set("node", Node::text(&head, value.place));
            nodes.push(Node { data: Data::Table(table), place: value.place });
            nodes.len() - 1
        }
        None => return Err(missing(list, &head, &names)),
    };
    promote(&mut nodes[at], list);
    match &mut nodes[at].data {
        Data::Table(inner) => set_in_table(inner, rest, list, value),
        _ => Err(format!("entry `{}` of `{list}` is not a table", short(&head))),
    }
}

fn missing(list: &str, head: &str, names: &[String]) -> String {
    let named = names.iter().filter(|n| !n.is_empty()).map(String::as_str);
    let head = short(head);
    match head.parse::<usize>() {
        Ok(_) => format!("`{list}` has no entry {head}; it has {} (counted from 0)", names.len()),
        Err(_) => format!("no entry of `{list}` is called `{head}`; {}", suggestion(&head, named)),
    }
}

/// The key that addresses an entry of a list.
fn name_of(node: &Node) -> String {
    let Data::Table(table) = &node.data else { return String::new() };
    if let Some(name) =
        table.text("name").or_else(|| table.text("node")).or_else(|| table.text("kind")).or_else(|| table.text("match"))
    {
        return name.to_string();
    }
    match (table.text("from"), table.text("to")) {
        (Some(from), Some(to)) => format!("{from}->{to}"),
        _ => String::new(),
    }
}

/// A queue, router or channel given as a name becomes a table, so that its parameters can be set.
fn promote(node: &mut Node, key: &str) {
    let Data::Text(word) = &node.data else { return };
    if !matches!(key, "queue" | "router" | "channel") {
        return;
    }
    let mut table = Table::default();
    if !matches!(word.as_str(), "auto" | "unlimited" | "none") {
        table.set("kind", Node::text(word, node.place));
    }
    node.data = Data::Table(table);
}

/// The longest of `names` that equals `path` or its beginning up to a dot.
fn longest<'a>(names: impl Iterator<Item = &'a str>, path: &str) -> Option<&'a str> {
    let fits = |n: &&str| path.strip_prefix(*n).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    names.filter(fits).max_by_key(|n| n.len())
}
