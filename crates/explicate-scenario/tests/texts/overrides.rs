//! `--set` paths and sweep axes.

use crate::support::{SMALL, link, parse, problems, set};
use explicate_core::units::{Rate, Time};

const LINKED: &str = r#"[[link]]
name = "r1->r2"
channel = [{ kind = "random_loss", rate = "1%" }]
"#;

fn linked() -> String {
    format!("{SMALL}{LINKED}")
}

#[test]
fn paths() {
    assert_eq!(set(SMALL, &[("duration", "20s")]).duration, Time::secs(20));
    assert_eq!(set(SMALL, &[("seed", "7"), ("runs", "3")]).seed, 7);
    assert_eq!(set(SMALL, &[("name", "other name")]).name, "other name");
    let s = set(SMALL, &[("topology.bottleneck.rate", "1Gbit/s")]);
    assert_eq!(link(&s, "r2->r1").rate, Rate::mbps(1000));
    assert_eq!(link(&s, "s0->r1").rate, Rate::mbps(10_000), "access is ten times the middle by default");
    assert_eq!(set(SMALL, &[("flows.one.count", "7")]).flows[0].count, 7);
    assert_eq!(set(SMALL, &[("flows.0.count", "7")]).flows[0].count, 7);
    assert_eq!(set(SMALL, &[("flows.one.params.min_rto", "1s")]).flows[0].values.number("min_rto"), Some(1.0));
    assert_eq!(set(SMALL, &[("flows.one.paced", "true")]).flows[0].values.number("paced"), Some(1.0));
    assert_eq!(set(SMALL, &[("flows.one.start.spread", "1s"), ("duration", "5s")]).duration, Time::secs(5));
    let s = set(SMALL, &[("sampling.every", "1s"), ("sampling.of", "[\"queue\"]")]);
    assert_eq!((s.sampling.every, s.sampling.of.len()), (Some(Time::secs(1)), 1));
}

#[test]
fn links_by_name() {
    let s = set(&linked(), &[("link.r1->r2.channel.0.rate", "5%")]);
    assert_eq!(link(&s, "r1->r2").channel[0].values.given(), [("rate", 0.05)]);
    let s = set(&linked(), &[("link.r1->r2.channel.random_loss.rate", "5%")]);
    assert_eq!(link(&s, "r1->r2").channel[0].values.given(), [("rate", 0.05)]);
    // A generated link that the file does not mention.
    let s = set(SMALL, &[("link.r2->r1.rate", "1Mbit/s")]);
    assert_eq!((link(&s, "r2->r1").rate, link(&s, "r1->r2").rate), (Rate::mbps(1), Rate::mbps(10)));
    let s = set(SMALL, &[("link.r1->r2.channel", "[{ kind = \"random_loss\", rate = 0.5 }]")]);
    assert_eq!(link(&s, "r1->r2").channel[0].values.given(), [("rate", 0.5)]);
}

#[test]
fn links_by_a_name_that_a_shell_leaves_alone() {
    let s = set(&linked(), &[("link.r1:r2.channel.0.rate", "5%")]);
    assert_eq!(link(&s, "r1->r2").channel[0].values.given(), [("rate", 0.05)]);
    let s = set(SMALL, &[("link.r2:r1.rate", "1Mbit/s")]);
    assert_eq!((link(&s, "r2->r1").rate, link(&s, "r1->r2").rate), (Rate::mbps(1), Rate::mbps(10)));
    let problems = problems(SMALL, &[("link.r1:r9.rate", "1Mbit/s")]);
    assert!(problems[0].contains("no link is called `r1->r9`"), "{}", problems[0]);
}

#[test]
fn a_queue_or_router_that_is_only_named_takes_parameters() {
    let limit = |s: &explicate_scenario::model::Scenario| {
        let queue = link(s, "r1->r2").queue.as_ref().unwrap();
        (queue.values.get(queue.kind.params(), "limit"), queue.values.get(queue.kind.params(), "count"))
    };
    assert_eq!(limit(&set(SMALL, &[("topology.bottleneck.queue.limit", "50pkt")])), (50_000.0, 1.0));
    let named = [("topology.bottleneck.queue", "droptail"), ("topology.bottleneck.queue.limit", "9kB")];
    assert_eq!(limit(&set(SMALL, &named)), (9000.0, 0.0));
    let s = set(SMALL, &[("topology.bottleneck.router", "xcp"), ("topology.bottleneck.router.gamma", "0")]);
    assert_eq!(link(&s, "r1->r2").routers[0].values.given(), [("gamma", 0.0)]);
}

#[test]
fn slips() {
    let cases: &[(&str, &str, &str)] = &[
        ("duraton", "10s", "--set duraton: unknown key `duraton` in the scenario; did you mean `duration`?"),
        ("duration", "10", "--set duration: `duration` is a time and needs a unit; write it like `duration = \"10s\"`"),
        ("duration.x", "10s", "--set duration.x: `duration` is a text, so nothing stands below it at `x`"),
        ("flows.two.count", "1", "--set flows.two.count: no entry of `flows` is called `two`; there are one"),
        ("flows.1.count", "1", "--set flows.1.count: `flows` has no entry 1; it has 1 (counted from 0)"),
        ("link.r1->r3.rate", "1Mbit/s", "--set link.r1->r3.rate: no link is called `r1->r3`; did you mean `r1->r2`?"),
        ("link.r1->r2.channel.0.rate", "1%", "--set link.r1->r2.channel.0.rate: there is no `channel` here to change"),
        ("", "1", "--set : a path is keys with dots between them"),
        (".", "1", "--set .: a path is keys"),
        ("topology.bottleneck..rate", "1", "--set topology.bottleneck..rate: unknown key ``"),
        ("topology.bottleneck.rate", "", "--set topology.bottleneck.rate: `rate`: `` is not a rate"),
        ("topology", "5", "--set topology: [topology] has to be a table"),
        ("flows", "5", "--set flows: `flows` is a list of tables"),
    ];
    for (key, value, start) in cases {
        let found = problems(SMALL, &[(key, value)]);
        assert!(!found.is_empty() && found[0].starts_with(start), "{start}\n{found:#?}");
    }
}

#[test]
fn sweeps_are_kept_as_written_and_tried() {
    let sweep = "[sweep]\n\"flows.one.count\" = [1, 2]\n\"topology.bottleneck.rate\" = [\"5Mbit/s\", \"10Mbit/s\"]\n";
    let s = parse(&format!("{SMALL}{sweep}"));
    assert_eq!(s.sweep[0], ("flows.one.count".to_string(), vec!["1".to_string(), "2".to_string()]));
    assert_eq!(s.sweep[1].1, ["5Mbit/s", "10Mbit/s"]);
    for (key, values) in &s.sweep {
        for value in values {
            set(SMALL, &[(key, value)]);
        }
    }
    let cases: &[(&str, usize, &str)] = &[
        ("\"flows.two.count\" = [1]", 12, "[sweep] `flows.two.count`: no entry of `flows` is called `two`"),
        ("\"duraton\" = [\"1s\"]", 12, "unknown key `duraton`"),
        ("\"duration\" = [1]", 12, "needs a unit"),
        ("\"duration\" = \"1s\"", 12, "needs a list of at least one value"),
        ("\"duration\" = []", 12, "needs a list of at least one value"),
        ("topology.bottleneck.rate = [\"1Mbit/s\"]", 12, "needs quotes"),
    ];
    for (text, line, part) in cases {
        let found = problems(&format!("{SMALL}[sweep]\n{text}\n"), &[]);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with(&format!("x.toml:{line}:")) && found[0].contains(part), "{part}\n{found:#?}");
    }
}

#[test]
fn a_text_that_looks_like_a_number_stays_a_text() {
    let s = parse(&format!("{SMALL}[sweep]\n\"name\" = [\"5\", \"true\", \"x\"]\n"));
    assert_eq!(s.sweep[0].1, ["\"5\"", "\"true\"", "x"]);
    assert_eq!(set(SMALL, &[("name", &s.sweep[0].1[0])]).name, "5");
}
