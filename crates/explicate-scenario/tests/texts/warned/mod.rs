//! The table "What is warned of" in docs/scenarios.md: for each pair of settings a scenario that is warned of (or refused),
//! and a neighbour that is not.

use std::collections::BTreeSet;
use std::path::Path;

use explicate_scenario::problem::Problems;

use crate::support::{SMALL, message, parse, parse_with};

mod relations;
mod unused;
mod unused_flows;

/// A pair as the table names it; the scenario, the line and the words of its warning; and a silent neighbour.
type Case = (&'static str, String, usize, &'static str, String);

/// Ten packets of 1000 bytes are 8 ms at this rate; the base round trip is 44 ms, a bandwidth-delay product 55 packets.
fn reno(queue: &str) -> String {
    let old = "bottleneck = { rate = \"10Mbit/s\", delay = \"20ms\" }";
    let text = SMALL.replace("xcp/reno", "newreno");
    text.replace(old, &format!("bottleneck = {{ rate = \"10Mbit/s\", delay = \"20ms\", queue = {queue} }}"))
}

fn flow(lines: &str) -> String {
    format!("{}{lines}\n", SMALL.replace("xcp/reno", "newreno"))
}

/// A flow that routers answer.
fn explicit(lines: &str) -> String {
    format!("{SMALL}{lines}\n")
}

fn link(lines: &str) -> String {
    flow(&format!("[[link]]\nname = \"r1->r2\"\n{lines}"))
}

fn air(keys: &str, packet: &str) -> String {
    format!(
        "duration = \"5s\"\n[[flows]]\nname = \"one\"\nprotocol = \"newreno\"\npacket = \"{packet}\"\nfrom = \"n1\"\nto = \"n2\"\n\
         [[medium]]\nname = \"air\"\n{keys}\n"
    )
}

/// The run changes from one of two ways to the other.
const DETOUR: &str = r#"duration = "10s"
[[link]]
from = "a"
to = "b"
duplex = true
[[link]]
name = "slow"
from = "a"
to = "b"
delay = "15ms"
duplex = true
[[node]]
name = "a"
[[node]]
name = "b"
[[flows]]
name = "one"
protocol = "newreno"
from = "a"
to = "b"
[[reroute]]
at = "5s"
without = ["a->b"]
"#;

fn cases() -> Vec<Case> {
    [relations::cases(), unused::cases(), unused_flows::cases()].concat()
}

/// How what to write begins.
const ADVICE: &[&str] = &["write", "remove", "set", "add", "exchange", "choose", "change", "use", "move"];

#[test]
fn pairs_are_warned_of_and_their_neighbours_are_not() {
    let mut wrong = Vec::new();
    for (pair, text, line, words, silent) in cases() {
        let warnings = match parse_with(&text, &[]) {
            Ok(scenario) => scenario.warnings,
            Err(problems) => vec![Problems(problems).to_string()],
        };
        let advises = |said: &str| {
            let advice = said.rsplit("; ").next().and_then(|write| write.split(' ').next());
            advice.is_some_and(|word| ADVICE.contains(&word))
        };
        let fits =
            |w: &String| w.starts_with(&format!("x.toml:{line}:")) && message(w).contains(words) && advises(message(w));
        if !matches!(&warnings[..], [one] if fits(one)) {
            wrong.push(format!("{pair}, line {line}, {words:?}: {warnings:#?}\n{text}"));
        }
        match parse_with(&silent, &[]) {
            Ok(scenario) if scenario.warnings.is_empty() => {}
            Ok(scenario) => wrong.push(format!("the neighbour of {pair}: {:#?}\n{silent}", scenario.warnings)),
            Err(problems) => wrong.push(format!("the neighbour of {pair}: {}", Problems(problems))),
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The table of the page is this list.
#[test]
fn the_page_lists_these_pairs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section =
        page.split("## What is warned of").nth(1).expect("the section is missing").split("\n## ").next().unwrap();
    let cells = section.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| ---")).skip(1);
    let listed: BTreeSet<&str> = cells.map(|l| l.split(" | ").next().unwrap().trim_start_matches("| ")).collect();
    assert_eq!(listed, cases().iter().map(|case| case.0).collect());
}

/// A warning is about the override that causes it, and there is one for all links and flows of a cause.
#[test]
fn one_warning_a_cause() {
    let template =
        |name: &str| explicate_scenario::templates::TEMPLATES.iter().find(|t| t.name == name).unwrap().text.to_string();
    let said = |name: &str, sets: &[(&str, &str)]| {
        let mut warnings = parse_with(&template(name), sets).unwrap().warnings;
        warnings.retain(|w| !w.contains("move in step"));
        warnings
    };
    let hosts = |name: &str, sets: &[(&str, &str)], start: &str, where_: &str| {
        assert_eq!(said(name, sets), [""; 0], "hosts of today push back");
        let sets = &[sets, &[("stack", "ns2")]].concat()[..];
        let [warning] = &said(name, sets)[..] else { panic!("{name} {sets:?}: {:#?}", said(name, sets)) };
        let said = message(warning);
        assert!(said.contains(start) && said.ends_with(where_), "{warning}");
        assert!(warning.contains("packets may wait there for seconds"), "{warning}");
    };
    let cubic = |path| (path, "cubic");
    let access = "in `topology.access`";
    hosts(
        "dumbbell",
        &[cubic("flows.0.protocol"), ("topology.bottleneck.rate", "1Gbit/s")],
        "host s0 (and of 3 other hosts)",
        access,
    );
    hosts(
        "dumbbell",
        &[cubic("flows.0.protocol"), ("topology.access.rate", "2Mbit/s")],
        "host s0 (and of 3 other hosts)",
        access,
    );
    hosts(
        "dumbbell",
        &[cubic("flows.0.protocol"), ("topology.access.rate", "5Mbit/s")],
        "host s0 (and of 3 other hosts)",
        access,
    );
    hosts(
        "parking_lot",
        &[cubic("flows.0.protocol"), cubic("flows.1.protocol"), ("topology.link.rate", "100Mbit/s")],
        "is unlimited",
        access,
    );
    let fast = ("topology.link", "{ rate = \"1Gbit/s\", delay = \"50us\" }");
    hosts("star", &[cubic("flows.0.protocol"), fast], "is unlimited", "in `topology.link`");
    let chain = [cubic("flows.0.protocol"), cubic("flows.1.protocol"), ("topology.link.rate", "200Mbit/s")];
    hosts("chain", &chain, "is unlimited", access);
    let limited = [
        ("topology.access.queue", "{ limit = \"1bdp\" }"),
        ("topology.access.rate", "2Mbit/s"),
        cubic("flows.0.protocol"),
    ];
    assert_eq!(said("dumbbell", &limited), [""; 0]);
    // Explicit flows leave no queue there.
    assert_eq!(said("dumbbell", &[("topology.bottleneck.rate", "1Gbit/s")]), [""; 0]);
    // The override is named, and four flows of one group over both directions give one warning.
    let pi = said("dumbbell", &[cubic("flows.0.protocol"), ("topology.bottleneck.queue.kind", "pi")]);
    assert!(pi.len() == 1 && pi[0].contains("the pi queue of r1->r2: its target"), "{pi:?}");
}

/// The pages show the limit that is in force where a queue has none.
#[test]
fn the_limit_in_force() {
    let [at_link, at_interface] = explicate_scenario::queue_default("limit").unwrap();
    let kinds = explicate_core::registry::QDISCS.iter().map(|q| q.name());
    for kind in kinds {
        assert!(parse(&reno(&format!("{kind:?}"))).resolved.contains(&format!("limit = {at_link:?}")), "{kind}");
        let station = air(&format!("layout = {{ kind = \"chain\" }}\nqueue = {kind:?}"), "1000B");
        assert!(parse(&station).resolved.contains(&format!("limit = {at_interface:?}")), "{kind}");
    }
    assert_eq!(explicate_scenario::queue_default("target"), None);
}
