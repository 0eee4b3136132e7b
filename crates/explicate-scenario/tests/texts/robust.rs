//! Parsing returns for any text, without a panic or a hang; a text that parses resolves to one that parses.

use crate::support;
use std::path::Path;

use explicate_core::rng::Rng;
use explicate_scenario::model::Scenario;

fn try_parse(text: &str, sets: &[(String, String)]) {
    // Huge counts are good scenarios, but slow ones.
    let digits =
        text.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() > 4 && run.trim_start_matches('0').len() > 4);
    if digits {
        return;
    }
    match Scenario::parse(text, "x.toml", Path::new("."), sets) {
        Ok(s) => {
            let again = Scenario::parse(&s.resolved, "y.toml", Path::new("."), &[]);
            let again = again.unwrap_or_else(|e| panic!("{e}\n{text}\n-----\n{}", s.resolved));
            assert_eq!(s.resolved, again.resolved, "{text}");
        }
        Err(problems) => {
            assert!(!problems.0.is_empty() && problems.0.len() <= 60);
            assert!(problems.0.iter().all(|p| p.to_string().len() < 5000), "{problems}");
        }
    }
}

fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

#[test]
fn random_bytes() {
    let mut rng = Rng::stream(1, "bytes");
    for _ in 0..3000 {
        let n = below(&mut rng, 80);
        let bytes: Vec<u8> = (0..n).map(|_| rng.next_u64() as u8).collect();
        try_parse(&String::from_utf8_lossy(&bytes), &[]);
    }
}

#[test]
fn pieces_of_scenarios_in_any_order() {
    let examples = support::examples();
    let lines: Vec<&str> =
        examples.iter().flat_map(|(_, _, text)| text.lines()).filter(|l| !l.starts_with('#')).collect();
    let mut rng = Rng::stream(2, "lines");
    for _ in 0..4000 {
        let n = below(&mut rng, 12);
        let text: String = (0..n).map(|_| format!("{}\n", lines[below(&mut rng, lines.len())])).collect();
        try_parse(&text, &[]);
    }
}

#[test]
fn mutations_of_good_scenarios() {
    let tokens = [
        "\"",
        "=",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "-1",
        "0",
        "nan",
        "inf",
        "1e308",
        "\"1e-308s\"",
        "\"0s\"",
        "true",
        "\n",
        "é",
        "\"unlimited\"",
        "\"auto\"",
        "[[link]]\n",
        "[[node]]\n",
        "name",
        "\"r1->r2\"",
        "\"0.0001bdp\"",
        "\"0pkt\"",
        "9",
        "\"\"",
    ];
    let examples = support::examples();
    let mut rng = Rng::stream(3, "mutations");
    for _ in 0..4000 {
        let (_, _, text) = &examples[below(&mut rng, examples.len())];
        let mut text = text.clone();
        for _ in 0..1 + below(&mut rng, 3) {
            let mut at = below(&mut rng, text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let mut end = (at + below(&mut rng, 8)).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let end = end.max(at);
            text.replace_range(at..end, tokens[below(&mut rng, tokens.len())]);
        }
        try_parse(&text, &[]);
    }
}

#[test]
fn random_overrides() {
    let keys = [
        "",
        ".",
        "name",
        "topology",
        "topology.kind",
        "link.r1->r2.queue",
        "flows.0",
        "flows.one.start",
        "link.0",
        "flows.one.params.min_rto",
        "sweep",
        "sweep.x",
        "node.a",
        "topology.bottleneck.channel.0.rate",
        "sampling",
        "a.b.c.d",
    ];
    let values = [
        "",
        "0",
        "1",
        "nan",
        "[]",
        "[1]",
        "{}",
        "\"\"",
        "true",
        "{ kind = 1 }",
        "[{}]",
        "1s",
        "[[\"a\"]]",
        "'x",
        "chain",
    ];
    let mut rng = Rng::stream(4, "sets");
    for _ in 0..4000 {
        let n = 1 + below(&mut rng, 3);
        let sets: Vec<(String, String)> = (0..n)
            .map(|_| (keys[below(&mut rng, keys.len())].to_string(), values[below(&mut rng, values.len())].to_string()))
            .collect();
        try_parse(support::SMALL, &sets);
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    try_parse(&deep, &[]);
    let deep = format!("{}x{} = 1", "a.".repeat(50_000), "");
    try_parse(&deep, &[]);
    try_parse(&format!("[{}x]\ny = 1", "a.".repeat(50_000)), &[]);
    try_parse(support::SMALL, &[("a.".repeat(400) + "b", "1".to_string())]);
}

#[test]
fn a_wide_dumbbell_parses_quickly() {
    let wide = support::SMALL.replace("pairs = 2", "pairs = 10000").replace("packet =", "count = 10000\npacket =");
    let s = support::parse(&wide);
    assert_eq!((s.nodes.len(), s.links.len(), s.flows[0].ends.len()), (20_002, 40_002, 10_000));
}
