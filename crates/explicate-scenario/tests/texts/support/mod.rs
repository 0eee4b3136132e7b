//! What the tests share.

use std::path::{Path, PathBuf};

use explicate_core::registry;
use explicate_scenario::model::Scenario;
use explicate_scenario::problem::Problem;
use explicate_scenario::templates::TEMPLATES;

/// Names of protocols that are not registered (yet) give way to one that always is.
pub(crate) fn runnable(text: &str) -> String {
    let mut text = text.to_string();
    for (name, instead) in [("LR-LMXCP", "xcp/reno"), ("xcp/loss_monitor", "xcp/reno"), ("xcp", "xcp/reno")] {
        if registry::resolve(name).is_err() {
            text = text.replace(&format!("protocol = \"{name}\""), &format!("protocol = \"{instead}\""));
        }
    }
    text
}

/// Folder, name and text of every example and template.
pub(crate) fn examples() -> Vec<(PathBuf, String, String)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in [here.join("../../scenarios"), here.join("tests")] {
        let mut files: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "toml")) {
            let text = std::fs::read_to_string(file).unwrap();
            all.push((folder.clone(), file.file_name().unwrap().to_str().unwrap().to_string(), runnable(&text)));
        }
    }
    for t in TEMPLATES {
        all.push((here.join("templates"), format!("{}.toml", t.name), runnable(t.text)));
    }
    all
}

/// A dumbbell of one flow, to be added to. Its last line is the tenth.
pub(crate) const SMALL: &str = r#"name = "small"
duration = "10s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10Mbit/s", delay = "20ms" }
[[flows]]
name = "one"
protocol = "xcp/reno"
packet = "1000B"
"#;

pub(crate) fn parse_with(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, Vec<Problem>> {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    Scenario::parse(text, "x.toml", &base, &sets).map_err(|p| p.0)
}

pub(crate) fn parse(text: &str) -> Scenario {
    set(text, &[])
}

pub(crate) fn set(text: &str, sets: &[(&str, &str)]) -> Scenario {
    match parse_with(text, sets) {
        Ok(s) => s,
        Err(problems) => panic!("{}", problems.iter().map(|p| format!("{p}\n")).collect::<String>()),
    }
}

/// A warning without its place, which has to be there, with a line of the file if it is one.
pub(crate) fn message(warning: &str) -> &str {
    let (first, excerpt) = warning.split_once('\n').unwrap_or((warning, ""));
    let (place, message) = first.split_once(": ").unwrap_or_else(|| panic!("no place: {warning}"));
    let line = place.strip_prefix("x.toml:").and_then(|at| at.split(':').next());
    match line {
        Some(line) => assert!(excerpt.contains(&format!("\n{line} | ")) && excerpt.contains('^'), "{warning}"),
        None => assert!(place.starts_with("--set ") || !place.contains(' '), "no place: {warning}"),
    }
    message
}

/// The messages of all warnings.
pub(crate) fn messages(warnings: &[String]) -> Vec<&str> {
    warnings.iter().map(|warning| message(warning)).collect()
}

/// The problems as they are shown.
pub(crate) fn problems(text: &str, sets: &[(&str, &str)]) -> Vec<String> {
    match parse_with(text, sets) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|p| p.to_string()).collect(),
    }
}

pub(crate) fn link<'a>(s: &'a Scenario, name: &str) -> &'a explicate_scenario::model::Link {
    s.links.iter().find(|l| l.name == name).unwrap_or_else(|| panic!("no link {name}"))
}
