//! Reads tables key by key and collects all errors instead of stopping at the first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use explicate_core::params::Param;
use explicate_core::units::{Rate, Time};

use crate::document::{self, Data, Node, Place, Table};
use crate::keys::{self, Form, Key};
use crate::limits;
use crate::problem::suggestion;
use crate::quantity;

/// A warning.
pub(crate) struct Said {
    pub(crate) place: Place,
    pub(crate) message: String,
    /// The key of the setting, if the warning is that nothing uses it.
    pub(crate) unused: Option<String>,
}

/// Shared state of all readers: the folder of files, and the problems and warnings found.
pub(crate) struct Context<'a> {
    pub(crate) base: &'a Path,
    /// Files by name if there is no folder.
    pub(crate) among: Option<&'a BTreeMap<String, String>>,
    pub(crate) problems: RefCell<Vec<(Place, String)>>,
    /// Warnings in order.
    pub(crate) warnings: RefCell<Vec<Said>>,
    /// Files that were read already.
    pub(crate) files: RefCell<BTreeMap<String, Arc<[u64]>>>,
    /// The scenario is for a fluid model, with higher limits than for packets.
    pub(crate) fluid: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(base: &'a Path) -> Context<'a> {
        Context {
            base,
            among: None,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            files: RefCell::default(),
            fluid: false,
        }
    }
    pub(crate) fn error(&self, place: Place, message: impl Into<String>) {
        self.problems.borrow_mut().push((place, message.into()));
    }
    /// Warns of a setting: its place, what follows from it, and what to write.
    pub(crate) fn warn(&self, place: Place, what: impl Display, write: impl Display) {
        self.say(place, None, what, write);
    }
    /// The same of a setting, by its key, that nothing in this scenario uses. In a comparison another scenario may use it.
    pub(crate) fn unused(&self, place: Place, key: &str, what: impl Display, write: impl Display) {
        self.say(place, Some(key.to_string()), what, write);
    }
    fn say(&self, place: Place, unused: Option<String>, what: impl Display, write: impl Display) {
        debug_assert!(place != Place::START, "a warning needs a place: {what}");
        self.warnings.borrow_mut().push(Said { place, message: format!("{what}; {write}"), unused });
    }
    pub(crate) fn failed(&self) -> bool {
        !self.problems.borrow().is_empty()
    }
    /// Turns a reader's sentence into a problem of `key`.
    pub(crate) fn checked<T>(&self, place: Place, key: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.error(place, format!("`{key}`: {message}"))).ok()
    }
}

/// A table of which the keys are declared.
pub(crate) struct Reader<'a> {
    pub(crate) ctx: &'a Context<'a>,
    pub(crate) table: &'a Table,
    pub(crate) place: Place,
    keys: &'static [Key],
    /// Its name in messages: `[topology.access]`.
    pub(crate) title: String,
}

impl<'a> Reader<'a> {
    /// Opens a table, and reports undeclared keys; `None` if the node is not a table.
    pub(crate) fn open(
        ctx: &'a Context<'a>,
        node: &'a Node,
        keys: &'static [Key],
        title: String,
    ) -> Option<Reader<'a>> {
        Reader::open_with(ctx, node, keys, &[], title)
    }

    /// The same for a table that has declared parameters besides its keys.
    pub(crate) fn open_with(
        ctx: &'a Context<'a>,
        node: &'a Node,
        keys: &'static [Key],
        params: &[Param],
        title: String,
    ) -> Option<Reader<'a>> {
        let Data::Table(table) = &node.data else {
            let names: Vec<&str> = keys.iter().map(|k| k.name).collect();
            ctx.error(
                node.place,
                format!("{title} has to be a table (keys: {}), not {}", names.join(", "), node.what()),
            );
            return None;
        };
        let reader = Reader { ctx, table, place: node.place, keys, title };
        for entry in &table.entries {
            let mut known = keys.iter().map(|k| k.name).chain(params.iter().map(|p| p.name));
            if !known.clone().any(|k| k == entry.key) {
                let hint = suggestion(&entry.key, &mut known);
                ctx.error(entry.place, format!("unknown key `{}` in {}; {hint}", entry.key, reader.title));
            }
        }
        Some(reader)
    }

    /// The place of the value at a path of keys and, in lists, numbers.
    pub(crate) fn find(&self, path: &[&str]) -> Option<Place> {
        document::find(self.table, path)
    }
    /// The same; of what is written of the way to it if it is not.
    pub(crate) fn at(&self, path: &[&str]) -> Place {
        document::at(self.table, path).unwrap_or(self.place)
    }
    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(self.keys.iter().any(|k| k.name == key), "key `{key}` is read but not declared");
        self.table.get(key)
    }
    fn form(&self, key: &str) -> Form {
        keys::declared(self.keys, key).form
    }
    /// The value of a required key.
    pub(crate) fn need(&self, key: &str) -> Option<&'a Node> {
        let node = self.get(key);
        if node.is_none() {
            self.ctx.error(self.place, format!("{} needs `{key}`", self.title));
        }
        node
    }
    pub(crate) fn time(&self, key: &str) -> Option<Time> {
        time(self.ctx, self.get(key)?, key)
    }
    /// The same; a message suggests only what `fits`.
    pub(crate) fn time_that(&self, key: &str, fits: impl Fn(&Time) -> bool) -> Option<Time> {
        quantity_that(self.ctx, self.get(key)?, key, &quantity::TIME, quantity::time, fits)
    }
    /// The time of a key, by default the declared one.
    pub(crate) fn time_or_default(&self, key: &str) -> Time {
        self.time(key).unwrap_or_else(|| self.default_time(key))
    }
    /// The declared time of a key.
    pub(crate) fn default_time(&self, key: &str) -> Time {
        keys::default(self.keys, key, quantity::time)
    }
    pub(crate) fn rate(&self, key: &str) -> Option<Rate> {
        let node = self.get(key)?;
        quantity_of(self.ctx, node, key, &quantity::RATE, quantity::rate)
    }
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        match node.data {
            Data::Flag(flag) => Some(flag),
            _ => {
                self.ctx.error(node.place, format!("`{key}` is true or false, without quotes, not {}", node.what()));
                None
            }
        }
    }
    /// The flag of a key, by default the declared one.
    pub(crate) fn flag_or_default(&self, key: &str) -> bool {
        self.flag(key).unwrap_or_else(|| keys::default(self.keys, key, str::parse))
    }
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        text(self.ctx, self.get(key)?, key)
    }
    /// A name: not empty, not too long, without control characters.
    pub(crate) fn name(&self, key: &str) -> Option<&'a str> {
        let node = self.get(key)?;
        let name = text(self.ctx, node, key)?;
        let good = !name.is_empty()
            && name.len() <= limits::NAME_BYTES
            && name.trim() == name
            && !name.chars().any(char::is_control);
        if !good {
            let message = "a name has 1 to 200 bytes, no spaces around it and no control characters";
            self.ctx.error(node.place, format!("`{key}`: {message}"));
        }
        good.then_some(name)
    }
    /// One of the declared words; the error suggests a similar one.
    pub(crate) fn word(&self, key: &str) -> Option<&'static str> {
        let node = self.get(key)?;
        let Form::Words(words) = self.form(key) else { panic!("`{key}` is not declared as a word") };
        word(self.ctx, node, key, words)
    }
    /// The word of a key, by default the declared one; `None` for a word that is wrong.
    pub(crate) fn word_or_default(&self, key: &str) -> Option<&'static str> {
        if self.get(key).is_none() { Some(keys::declared(self.keys, key).default) } else { self.word(key) }
    }
    /// A number within the declared bounds, both included.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        let node = self.get(key)?;
        let Form::Number(least, most) = self.form(key) else { panic!("`{key}` is not declared as a number") };
        let x = match node.data {
            Data::Int(i) => i as f64,
            Data::Float(x) => x,
            _ => f64::NAN,
        };
        let good = (least..=most).contains(&x);
        if !good {
            let message = format!("`{key}` is a number from {least} to {most}, not {}", node.to_toml());
            self.ctx.error(node.place, message);
        }
        good.then_some(x)
    }
    /// The number of a key, by default the declared one.
    pub(crate) fn number_or_default(&self, key: &str) -> f64 {
        self.number(key).unwrap_or_else(|| keys::default(self.keys, key, str::parse))
    }
    /// A whole number within the declared bounds, both included.
    pub(crate) fn whole(&self, key: &str) -> Option<u64> {
        let node = self.get(key)?;
        let Form::Whole(least, most) = self.form(key) else { panic!("`{key}` is not declared as a whole number") };
        match node.data {
            Data::Int(i) if i >= 0 && (least..=most).contains(&(i as u64)) => Some(i as u64),
            Data::Int(_) | Data::Float(_) => {
                let given = if let Data::Float(x) = node.data { format!("{x:?}") } else { node.to_toml() };
                let message = format!("`{key}` is a whole number from {least} to {most}, not {given}");
                self.ctx.error(node.place, message);
                None
            }
            _ => {
                let meant = self.table.text(key).and_then(|text| text.trim().parse().ok());
                let like = meant.filter(|n| (least..=most).contains(n)).unwrap_or(least.max(1));
                let message = format!("`{key}` is a whole number without quotes, like {like}, not {}", node.what());
                self.ctx.error(node.place, message);
                None
            }
        }
    }
    /// The whole number of a key, by default the declared one.
    pub(crate) fn whole_or_default(&self, key: &str) -> u64 {
        self.whole(key).unwrap_or_else(|| keys::default(self.keys, key, str::parse))
    }
}

pub(crate) fn word(ctx: &Context<'_>, node: &Node, key: &str, words: &'static [&'static str]) -> Option<&'static str> {
    let given = text(ctx, node, key)?;
    let found = words.iter().copied().find(|w| *w == given);
    if found.is_none() {
        let hint = suggestion(given, words.iter().copied());
        ctx.error(node.place, format!("`{key}` cannot be `{}`; {hint}", short(given)));
    }
    found
}

pub(crate) fn text<'a>(ctx: &Context<'_>, node: &'a Node, key: &str) -> Option<&'a str> {
    match &node.data {
        Data::Text(text) => Some(text),
        _ => {
            ctx.error(node.place, format!("`{key}` is a text in quotes, not {}", node.what()));
            None
        }
    }
}

pub(crate) fn time(ctx: &Context<'_>, node: &Node, key: &str) -> Option<Time> {
    quantity_of(ctx, node, key, &quantity::TIME, quantity::time)
}

/// A text with a unit; a number without one gets a message that shows it with one.
pub(crate) fn quantity_of<T: PartialEq>(
    ctx: &Context<'_>,
    node: &Node,
    key: &str,
    dimension: &quantity::Dimension,
    read: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    quantity_that(ctx, node, key, dimension, read, |_| true)
}

/// The same; a message suggests only what `fits`. The caller reports values that do not.
pub(crate) fn quantity_that<T: PartialEq>(
    ctx: &Context<'_>,
    node: &Node,
    key: &str,
    dimension: &quantity::Dimension,
    read: impl Fn(&str) -> Result<T, String>,
    fits: impl Fn(&T) -> bool,
) -> Option<T> {
    let noun = dimension.noun;
    let number = match &node.data {
        Data::Text(text) if !quantity::is_bare(text) => return ctx.checked(node.place, key, read(text)),
        Data::Text(text) => text.trim().to_string(),
        Data::Int(_) => node.to_toml(),
        Data::Float(x) if x.is_finite() => node.to_toml(),
        other => {
            let given = if let Data::Float(_) = other { node.to_toml() } else { node.what().to_string() };
            ctx.error(node.place, format!("`{key}` is {noun}, like \"{}\", not {given}", dimension.example));
            return None;
        }
    };
    let fitting = |text: &str| read(text).and_then(|value| if fits(&value) { Ok(value) } else { Err(String::new()) });
    let hint = match quantity::with_unit(&number, dimension, fitting) {
        Ok(with_unit) => {
            let same = format!("{number}{}", dimension.bare);
            let same = if with_unit == same { String::new() } else { format!(" ({same})") };
            format!("`{key} = \"{with_unit}\"`{same}")
        }
        Err(example) => example,
    };
    ctx.error(node.place, format!("`{key}` is {noun} and needs a unit; write it like {hint}"));
    None
}

/// A text, shortened for a message.
pub(crate) fn short(text: &str) -> String {
    if text.chars().count() <= 60 { text.to_string() } else { text.chars().take(57).chain("...".chars()).collect() }
}
