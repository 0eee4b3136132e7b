//! The reference engine and the fast one give the same tables, to the last bit.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

#[path = "common/random.rs"]
mod random;

use std::path::{Path, PathBuf};

use explicate_scenario::model::Scenario;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{EngineKind, Options, run_once};
use random::Random;

/// What a run leaves, to the last bit: NaN equals NaN.
fn tables(scenario: &Scenario, engine: EngineKind) -> String {
    let options = Options { engine, ..Options::default() };
    let mut run = run_once(scenario, 0, &options, &|_, _| true).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    let hops = run.engine.hops();
    let tables = measure(scenario, 0, &mut run, "test");
    format!("{:?}\n{:?}\n{:?}\n{hops}", tables.flows, tables.links, tables.samples)
}

/// The first difference of two texts, with its context.
fn difference(fast: &str, reference: &str) -> Option<String> {
    let at = fast.bytes().zip(reference.bytes()).position(|(a, b)| a != b);
    let at = at.or((fast.len() != reference.len()).then_some(fast.len().min(reference.len())))?;
    let around = |text: &str| text.get(at.saturating_sub(200)..(at + 100).min(text.len())).unwrap_or("").to_string();
    Some(format!("at {at}\n   fast      …{}\n   reference …{}", around(fast), around(reference)))
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn scenarios_in(name: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    paths
}

/// Every scenario of the repository, cut to its first seconds where it is longer.
#[test]
fn scenarios_of_the_repository_are_the_same_on_both_ways() {
    let seconds = if cfg!(debug_assertions) { 2.0 } else { 20.0 };
    let paths: Vec<PathBuf> = ["scenarios", "crates/explicate-scenario/templates", "validation"]
        .iter()
        .flat_map(|name| scenarios_in(name))
        .collect();
    assert!(paths.len() >= 35, "{} scenarios", paths.len());
    let mut problems = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("a file that was listed");
        let base = path.parent().expect("a file in a folder");
        let mut scenario = match Scenario::parse(&text, &path.display().to_string(), base, &[]) {
            Ok(scenario) => scenario,
            Err(e) => panic!("{}: {e}", path.display()),
        };
        let most = explicate_core::units::Time::from_secs_f64(seconds);
        scenario.duration = scenario.duration.min(most);
        scenario.warmup = scenario.warmup.min(scenario.duration);
        let fast = tables(&scenario, EngineKind::Fast);
        if let Some(difference) = difference(&fast, &tables(&scenario, EngineKind::Reference)) {
            problems.push(format!("{}: {difference}", path.display()));
        }
    }
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), paths.len(), problems.join("\n"));
}

/// Texts that are no scenario, as a queue that a link cannot have, are left out.
#[test]
fn a_thousand_random_scenarios_are_the_same_on_both_ways() {
    let wanted = if cfg!(debug_assertions) { 60 } else { 1000 };
    let (mut checked, mut hops, mut number) = (0, 0.0, 0);
    let mut problems = Vec::new();
    while checked < wanted {
        number += 1;
        let text = Random::new(number).scenario();
        let Ok(scenario) = Scenario::parse(&text, "random.toml", Path::new("."), &[]) else { continue };
        checked += 1;
        let fast = tables(&scenario, EngineKind::Fast);
        let reference = tables(&scenario, EngineKind::Reference);
        hops += fast.rsplit('\n').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        if let Some(difference) = difference(&fast, &reference) {
            problems.push(format!("scenario {number}: {difference}\n{text}"));
        }
    }
    println!("{checked} scenarios of {number} texts, {hops:.0} packet-hops");
    assert!(checked * 10 >= number as usize * 8, "only {checked} of {number} texts are scenarios");
    assert!(hops > 300.0 * checked as f64, "there is too little to compare: {hops} packet-hops in {checked} scenarios");
    let shown = problems.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(problems.is_empty(), "{} of {checked} differ:\n{shown}", problems.len());
}
