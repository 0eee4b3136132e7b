//! What a user reads: each problem with its place, and below it the line with carets under the part that is wrong.

use crate::support::{SMALL, parse_with};
use explicate_scenario::problem::Problems;

/// What is said of a text that is no scenario.
fn said(text: &str, overrides: &[(&str, &str)]) -> String {
    Problems(parse_with(text, overrides).err().expect("a problem")).to_string()
}

#[test]
fn a_key_is_marked() {
    assert_eq!(
        said(&SMALL.replace("duration", "duraton"), &[]),
        "\
x.toml:2:1: unknown key `duraton` in the scenario; did you mean `duration`?
  |
2 | duraton = \"10s\"
  | ^^^^^^^"
    );
}

#[test]
fn a_value_is_marked_and_every_problem_has_its_line() {
    let text = said(&SMALL.replace("\"20ms\"", "\"20\"").replace("\"10s\"", "10"), &[]);
    let lines: Vec<&str> = text.lines().collect();
    let marked: Vec<&str> = lines.windows(2).filter(|w| w[1].contains('^')).flatten().copied().collect();
    assert_eq!(
        marked,
        [
            "2 | duration = 10",
            "  |            ^^",
            "6 | bottleneck = { rate = \"10Mbit/s\", delay = \"20\" }",
            "  |                                           ^^^^",
        ],
        "{text}"
    );
}

#[test]
fn text_that_is_not_toml_is_marked_where_its_grammar_ends() {
    let text = said("duration = \n", &[]);
    assert!(text.starts_with("x.toml:1:") && text.ends_with('^'), "{text}");
    assert!(text.contains("\n1 | duration ="), "{text}");
}

#[test]
fn overrides_and_problems_of_the_whole_file_have_no_line() {
    assert_eq!(said(SMALL, &[("duration", "soon")]).lines().count(), 1);
    assert!(!said("name = \"nothing\"\n", &[]).contains(" | "));
}
