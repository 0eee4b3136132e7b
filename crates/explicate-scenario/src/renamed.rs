//! Old names of keys, parameters and words. They work for one more release; a warning gives the new name.

use crate::document::{Data, Node, Place, Table};
use crate::keys::{Form, Key, ROOT};
use crate::reader::{Context, Said};

/// Parameters of channels: kind, old name, new name.
const CHANNEL_PARAMS: &[(&str, &str, &str)] =
    &[("jitter", "law", "distribution"), ("random_loss", "law", "distribution")];

/// The old name of a channel's parameter, if it has one.
pub(crate) fn old_channel_param(kind: &str, param: &str) -> Option<&'static str> {
    CHANNEL_PARAMS.iter().find(|(k, _, new)| *k == kind && *new == param).map(|(_, old, _)| *old)
}

/// The action if a table has the old and the new name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Both {
    /// Report an error: the table comes from one file.
    Reject,
    /// Keep the value that was set last: overrides and axes of a sweep follow the file.
    KeepLast,
}

/// Replaces old names in a document by new ones.
pub(crate) fn update(ctx: &Context<'_>, root: &mut Node, both: Both) {
    if let Data::Table(table) = &mut root.data {
        (Update { ctx, both }).table(table, ROOT, "");
    }
}

struct Update<'a> {
    ctx: &'a Context<'a>,
    both: Both,
}

impl Update<'_> {
    fn table(&self, table: &mut Table, keys: &'static [Key], path: &str) {
        for key in keys.iter().filter(|k| !k.old_name.is_empty()) {
            self.rename(table, key.old_name, key.name, path);
        }
        for entry in &mut table.entries {
            let Some(key) = keys.iter().find(|k| k.name == entry.key) else { continue };
            let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            self.words(&mut entry.node, key, &path);
            self.node(&mut entry.node, &key.form, &path);
        }
    }

    fn node(&self, node: &mut Node, form: &'static Form, path: &str) {
        match (&mut node.data, form) {
            (_, Form::OneOf(forms)) => forms.iter().for_each(|form| self.node(node, form, path)),
            (Data::Table(table), Form::Table(keys)) => self.table(table, keys, path),
            (Data::List(nodes), Form::List(form)) => {
                for (i, node) in nodes.iter_mut().enumerate() {
                    let path = format!("{path}.{}", label(node, i));
                    self.node(node, form, &path);
                }
            }
            (Data::List(nodes), Form::Channels) => {
                for (i, node) in nodes.iter_mut().enumerate() {
                    let path = format!("{path}.{}", label(node, i));
                    self.channel(node, &path);
                }
            }
            _ => {}
        }
    }

    fn channel(&self, node: &mut Node, path: &str) {
        let Data::Table(table) = &mut node.data else { return };
        let kind = table.text("kind").unwrap_or_default().to_string();
        for (_, old, new) in CHANNEL_PARAMS.iter().filter(|(k, ..)| *k == kind) {
            self.rename(table, old, new, path);
        }
    }

    fn words(&self, node: &mut Node, key: &Key, path: &str) {
        let Data::Text(text) = &mut node.data else { return };
        if let Some((old, new)) = key.old_words.iter().find(|(old, _)| old == text) {
            *text = new.to_string();
            self.warn(node.place, path, old, new);
        }
    }

    fn rename(&self, table: &mut Table, old: &str, new: &str, path: &str) {
        let Some(at) = table.entries.iter().position(|e| e.key == old) else { return };
        let named = table.entries[at].place;
        if let Some(other) = table.entries.iter().position(|e| e.key == new) {
            let (given, place) = (&table.entries[at].node, table.entries[at].place);
            if self.both == Both::Reject {
                let message = format!("`{old}` is the old name of `{new}`; remove it, as both are given");
                self.ctx.error(place, message);
            }
            let last_is_old = given.place > table.entries[other].node.place;
            table.entries.remove(if last_is_old { other } else { at });
        }
        if let Some(entry) = table.entries.iter_mut().find(|e| e.key == old) {
            entry.key = new.to_string();
        }
        self.warn(named, path, old, new);
    }

    fn warn(&self, place: Place, path: &str, old: &str, new: &str) {
        let (what, write) = (format!("{path}: `{old}` is now called `{new}`"), "write that");
        let said = |known: &Said| known.message.starts_with(&what);
        if !self.ctx.warnings.borrow().iter().any(said) {
            self.ctx.warn(place, what, format!("{write}: the old name works for one more release"));
        }
    }
}

/// An entry of a list in a message: its name or kind, otherwise its number.
fn label(node: &Node, i: usize) -> String {
    let Data::Table(table) = &node.data else { return i.to_string() };
    table.text("name").or_else(|| table.text("kind")).map_or_else(|| i.to_string(), str::to_string)
}
