//! Errors in a scenario, with their location.

use std::fmt;

use thiserror::Error;

use crate::parse::locate;

/// Location of a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Site {
    /// A place in the scenario file; lines and columns start at 1, columns count characters.
    File {
        /// Name of the file, as the caller gave it.
        origin: String,
        /// Line.
        line: usize,
        /// Column.
        column: usize,
        /// The line with carets below the wrong part; empty for a problem of the whole file.
        excerpt: String,
    },
    /// An override (`--set key=value`), by its key.
    Override(String),
    /// A key that no text has: of a default, or of a scenario that a program made.
    Key(String),
}

/// One problem: its location, and a message with the error and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Location.
    pub site: Site,
    /// The error and its remedy.
    pub message: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Site::File { origin, line, column, .. } => write!(f, "{}:{line}:{column}", Printable(origin)),
            Site::Override(key) => write!(f, "--set {}", Printable(key)),
            Site::Key(path) => write!(f, "{}", Printable(path)),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.site, Printable(&self.message))
    }
}

/// A text that quotes its input, for a terminal: control characters are escaped.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.split_inclusive(|c: char| c.is_control() && c != '\n').try_for_each(|part| {
            match part.char_indices().next_back().filter(|(_, c)| c.is_control() && *c != '\n') {
                Some((at, control)) => write!(f, "{}{}", &part[..at], control.escape_default()),
                None => f.write_str(part),
            }
        })
    }
}

/// A warning about a run: what happened, and the settings that it is about. A run has no text with lines;
/// [`RunWarning::located`] adds the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunWarning {
    /// Paths of keys, the most likely first.
    pub keys: Vec<String>,
    /// What happened, and what to write.
    pub message: String,
}

impl RunWarning {
    /// The warning as text, behind the place of the first of its keys that the scenario has, and with that line below it.
    /// `text`, `origin` and `overrides` are the source of the scenario.
    pub fn located(self, text: &str, origin: &str, overrides: &[(String, String)]) -> String {
        Problem { site: locate(text, origin, overrides, &self.keys), message: self.message }.with_excerpt()
    }
}

impl Problem {
    /// The problem, and below it the line of the file.
    pub fn with_excerpt(&self) -> String {
        match &self.site {
            Site::File { excerpt, .. } if !excerpt.is_empty() => format!("{self}\n{excerpt}"),
            _ => self.to_string(),
        }
    }
}

/// All problems of a scenario, in the order of the file, with excerpts of it; never empty.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{}", .0.iter().map(Problem::with_excerpt).collect::<Vec<_>>().join("\n"))]
pub struct Problems(pub Vec<Problem>);

/// The end of a message about an unknown name: a similar name if there is one, otherwise all names.
pub(crate) fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match near(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there are none".to_string(),
        None if known.len() > 40 => format!("there are {}, ... ({} in all)", known[..10].join(", "), known.len()),
        None => format!("there are {}", known.join(", ")),
    }
}

/// The most similar of `known`, if it is similar enough for a typing error.
pub(crate) fn near<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // Long input is not a typing error, and the distance takes quadratic time.
    let length = name.chars().count();
    if length > 60 {
        return None;
    }
    let lower = name.to_lowercase();
    let mut best: Option<(usize, &'a str)> = None;
    for &k in known.iter().filter(|k| k.len() <= 80) {
        let distance = strsim::damerau_levenshtein(&lower, &k.to_lowercase());
        if distance <= 1 + length / 4
            && distance < length.max(k.chars().count())
            && best.is_none_or(|(d, _)| distance < d)
        {
            best = Some((distance, k));
        }
    }
    if best.is_some() || length < 4 {
        return best.map(|(_, k)| k);
    }
    // A word with the same beginning that omits more: `thruput`.
    let alike = |k: &&str| strsim::jaro_winkler(&lower, &k.to_lowercase());
    let best = known.iter().copied().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    best.filter(|k| alike(k) > 0.88)
}
