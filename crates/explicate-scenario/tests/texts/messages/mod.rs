//! Every message: its position, its text, its suggestion.

mod advice;
mod flows;
mod keys;
mod links;
mod network;
mod values;

use crate::support::{SMALL, problems};

/// Asserts that each text gives exactly one problem at `line`, which contains all of `parts`.
pub(crate) fn check(cases: &[(&str, usize, &[&str])]) {
    for (text, line, parts) in cases {
        let found = problems(text, &[]);
        assert_eq!(found.len(), 1, "one problem in\n{text}\n{found:#?}");
        let start = format!("x.toml:{line}:");
        assert!(found[0].starts_with(&start), "line {line} of\n{text}\n{found:#?}");
        for part in *parts {
            assert!(found[0].contains(part), "`{part}` is missing from\n{}\n{text}", found[0]);
        }
    }
}

/// `SMALL` with a line replaced.
fn with(line: usize, text: &str) -> String {
    SMALL.lines().enumerate().map(|(i, l)| format!("{}\n", if i + 1 == line { text } else { l })).collect()
}

/// `SMALL` with lines at its end, inside `[[flows]]`; the first is line 11.
fn plus(text: &str) -> String {
    format!("{SMALL}{text}\n")
}

fn cases(cases: Vec<(String, usize, Vec<&str>)>) {
    for (text, line, parts) in &cases {
        check(&[(text, *line, parts)]);
    }
}
