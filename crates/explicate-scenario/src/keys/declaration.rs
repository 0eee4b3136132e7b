//! The declaration of a key: its name, the form of its values, its default and its description.

/// The values that a key accepts.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// One of these words.
    Words(&'static [&'static str]),
    Time,
    Rate,
    Bytes,
    /// A distance, possibly negative.
    Coordinate,
    Distance,
    /// `"50/s"`.
    Frequency,
    /// A whole number, both bounds included.
    Whole(u64, u64),
    /// A number, both bounds included.
    Number(f64, f64),
    Flag,
    /// The `protocol` of a flow: preset, protocol or protocol/recovery.
    Protocol,
    /// The parameters of a flow, by the registry.
    FlowParams,
    /// A queue: `"unlimited"`, `"auto"`, a name, or a table by the registry.
    Queue,
    /// A router: `"auto"`, `"none"`, a name, or a table by the registry.
    Router,
    /// A list of channels: names, or tables by the registry.
    Channels,
    /// A medium: [`super::MEDIUM`] and the parameters of its kind, by the registry.
    Medium,
    /// Axes: any path of keys, with a list of values.
    Axes,
    /// Any of these.
    OneOf(&'static [Form]),
    /// A list of these.
    List(&'static Form),
    /// A table with these keys.
    Table(&'static [Key]),
}

/// A key.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// As written in a scenario; a phrase if it depends on other keys; empty if the key is required.
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
    /// Its name in earlier versions, which still works with a warning; empty if it has none.
    pub(crate) old_name: &'static str,
    /// Renamed words: the earlier name, and the present one.
    pub(crate) old_words: &'static [(&'static str, &'static str)],
}

impl Key {
    pub(super) const fn formerly(self, old_name: &'static str) -> Key {
        Key { old_name, ..self }
    }
    pub(super) const fn words_formerly(self, old_words: &'static [(&'static str, &'static str)]) -> Key {
        Key { old_words, ..self }
    }
}

/// The declaration of a key.
///
/// # Panics
/// If it is not declared: every key that is read must be.
pub(crate) fn declared(keys: &'static [Key], name: &str) -> &'static Key {
    keys.iter().find(|key| key.name == name).unwrap_or_else(|| panic!("key `{name}` is read but not declared"))
}

/// The default of a key, as its declaration has it up to a semicolon.
///
/// # Panics
/// If the declaration has a phrase in place of a value.
pub(crate) fn default<T, E>(keys: &'static [Key], name: &str, read: impl Fn(&'static str) -> Result<T, E>) -> T {
    let key = declared(keys, name);
    let value = key.default.split(';').next().unwrap_or_default();
    read(value).unwrap_or_else(|_| panic!("the default of `{name}` is no value: {}", key.default))
}

/// A declaration.
pub(super) const fn key(name: &'static str, form: Form, default: &'static str, doc: &'static str) -> Key {
    Key { name, form, default, doc, old_name: "", old_words: &[] }
}
