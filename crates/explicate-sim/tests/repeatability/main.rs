//! Same scenario and seed, same bytes: in two runs, with one and two jobs, fused links on and off. And the random draws of
//! a link belong to the link alone.

#[path = "../common/mod.rs"]
mod common;
mod snapshot;

use common::{fingerprint, is_exact, leaves, number, packet_log, run, scenario, tables};
use explicate_sim::measure::{Tables, measure};
use explicate_sim::simulation::{EngineKind, Options, run_all};

/// Everything that decides something, in one scenario: losses, drops, RED's draws, on/off and Poisson sources, several laws.
const MIXED: &str = r#"
    name = "mixed"
    duration = "6s"
    warmup = "1s"
    runs = 3
    [topology]
    kind = "dumbbell"
    pairs = 6
    access = { rate = "40Mbit/s", delay = { from = "1ms", to = "20ms" }, queue = "unlimited" }
    bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = { kind = "droptail", limit = "0.5bdp" } }
    [[link]]
    name = "r1->r2"
    channel = [{ kind = "random_loss", rate = "0.5%" }]
    [[link]]
    name = "r2->r1"
    queue = { kind = "red" }
    [[flows]]
    name = "x"
    count = 2
    protocol = "xcp"
    start = { spread = "1s" }
    [[flows]]
    name = "t"
    count = 2
    protocol = "newreno"
    on_off = { on = "1s", off = "500ms", random = true }
    [[flows]]
    name = "c"
    count = 2
    protocol = "cubic"
    [[flows]]
    name = "web"
    count = 60
    protocol = "sack"
    arrivals = "10/s"
    size = { mean = "20kB", distribution = "pareto", shape = 1.3 }
    [sampling]
    every = "100ms"
    of = ["queue", "throughput", "cwnd", "rtt", "goodput", "router", "flow"]
"#;

/// The reference engine.
const PLAIN: Options = Options { no_fuse: false, engine: EngineKind::Reference, follow: None, jobs: 1 };

/// The tables of all runs.
fn all(text: &str, options: &Options) -> Tables {
    let scenario = scenario(text);
    let runs = run_all(&scenario, options, &|_, _| true, |i, mut run| measure(&scenario, i, &mut run, "test"));
    runs.expect("the scenario runs").into_iter().fold(Tables::default(), |mut all, more| {
        all.append(more);
        all
    })
}

/// Packets that hosts hold: at links that several flows share, at radios, before and after routes change, over sessions, and where a
/// time is given.
const HELD: &str = r#"
    name = "held"
    duration = "6s"
    warmup = "1s"
    runs = 2
    processing = "2ms"
    [[node]]
    name = "a"
    [[node]]
    name = "m"
    [[node]]
    name = "n"
    [[node]]
    name = "b"
    [[link]]
    from = "a"
    to = "m"
    rate = "20Mbit/s"
    delay = "2ms"
    duplex = true
    [[link]]
    from = "m"
    to = "b"
    rate = "8Mbit/s"
    delay = "5ms"
    duplex = true
    [[link]]
    from = "a"
    to = "n"
    rate = "20Mbit/s"
    delay = "3ms"
    duplex = true
    [[link]]
    from = "n"
    to = "b"
    rate = "6Mbit/s"
    delay = "5ms"
    duplex = true
    [[medium]]
    name = "air"
    station = [{ node = "u", at = ["0m", "0m"] }, { node = "v", at = ["50m", "0m"] }]
    [[reroute]]
    at = "3s"
    without = ["a->m", "m->a"]
    [[flows]]
    name = "x"
    count = 2
    protocol = "xcp"
    from = "a"
    to = "b"
    [[flows]]
    name = "s"
    count = 3
    protocol = "sack"
    processing = "auto"
    session = { duration = "700ms", random = true, pause = { from = "10ms", to = "300ms" } }
    from = "a"
    to = "b"
    [[flows]]
    name = "w"
    count = 2
    protocol = "newreno"
    from = "u"
    to = "v"
    [sampling]
    every = "50ms"
    of = ["queue", "throughput", "cwnd", "rtt", "goodput"]
"#;

#[test]
fn packets_that_hosts_hold_are_the_same_packets() {
    for text in [HELD.to_string(), HELD.replace("[[reroute]]\n    at = \"3s\"\n    without = [\"a->m\", \"m->a\"]", "")]
    {
        let scenario = scenario(&text);
        let reference = is_exact(&scenario);
        assert!(reference.len() > 20_000, "the scenario leaves something to compare");
        assert_eq!(leaves(&scenario, &PLAIN), reference, "the reference engine");
    }
}

/// A host that holds several packets of a flow lets them go in the order in which they were sent, retransmissions among them,
/// whether the flow's first link is its own or others share it; so not fusing links changes nothing.
#[test]
fn hosts_keep_the_order_of_packets() {
    for (seed, pairs) in (1..=12).flat_map(|seed| [(seed, 2), (seed, 1)]) {
        let text = format!(
            r#"
            seed = {seed}
            duration = "4s"
            processing = "auto"
            [topology]
            kind = "dumbbell"
            pairs = {pairs}
            bottleneck = {{ rate = "10Mbit/s", delay = "10ms" }}
            [[link]]
            name = "r1->r2"
            channel = [{{ kind = "random_loss", rate = "2%" }}]
            [[flows]]
            name = "f"
            count = 2
            protocol = "sack"
            params = {{ receiver_window = 60 }}
            "#
        );
        let scenario = scenario(&text);
        is_exact(&scenario);
        for no_fuse in [false, true] {
            let log = packet_log(&scenario, Options { no_fuse, ..Options::default() });
            let mut sent = [0, 0];
            for line in log.lines() {
                // Seconds, link, event, flow, kind, segment, `packet` and its number.
                let words: Vec<&str> = line.split_whitespace().collect();
                if words.len() > 7 && words[1].ends_with("->r1") && words[2] == "enqueue" && words[4] == "data" {
                    let (flow, number) = ((words[3] == "f.1") as usize, words[7].parse::<u32>().expect("a number"));
                    assert!(number >= sent[flow], "seed {seed}, {pairs} first links: {line}");
                    sent[flow] = number;
                }
            }
            assert!(sent.iter().all(|number| *number > 200), "{sent:?}");
        }
    }
}

/// What a flow's host takes for its packets belongs to the flow: another flow elsewhere moves none of it.
#[test]
fn draws_of_processing_are_the_flows_own() {
    let of = |head: &str, more: &str| {
        let text = format!(
            r#"
            duration = "2s"
            {head}
            [topology]
            kind = "dumbbell"
            pairs = 2
            bottleneck = {{ rate = "10Mbit/s" }}
            {more}
            [[flows]]
            name = "f"
            protocol = "sack"
            params = {{ receiver_window = 4 }}
            "#
        );
        let tables = tables(&text);
        number(&tables.flows, "flow", "f.0", "rtt_mean_ms")
    };
    let starts_late = "[[flows]]\nname = \"g\"\nprotocol = \"sack\"\nstart = \"1999ms\"\n";
    assert_eq!(of("", "").to_bits(), of("", starts_late).to_bits());
    assert_ne!(of("", "").to_bits(), of("processing = \"none\"", "").to_bits());
}

#[test]
fn repeated_in_parallel_and_without_fusing() {
    let reference = fingerprint(&all(MIXED, &Options { jobs: 1, ..Options::default() }));
    assert!(reference.len() > 100_000, "the scenario leaves something to compare");
    assert_eq!(fingerprint(&all(MIXED, &Options { jobs: 1, ..Options::default() })), reference, "a second time");
    assert_eq!(fingerprint(&all(MIXED, &Options { jobs: 2, ..Options::default() })), reference, "two jobs");
    assert_eq!(
        fingerprint(&all(MIXED, &Options { no_fuse: true, ..Options::default() })),
        reference,
        "links not fused"
    );
    assert_eq!(fingerprint(&all(MIXED, &PLAIN)), reference, "the reference engine");
}

/// The same in debug and release builds and on every machine: all compare with the tables in `snapshots/`.
#[test]
fn every_build_and_machine_agrees() {
    snapshot::check("mixed", &all(MIXED, &Options::default()));
    snapshot::check("held", &all(HELD, &Options::default()));
}

#[test]
fn fusing_saves_events() {
    let text = MIXED.replace(r#"protocol = "xcp""#, r#"protocol = "sack""#);
    let scenario = scenario(&text);
    let with = run(&scenario, &Options::default()).engine;
    let without = run(&scenario, &Options { no_fuse: true, ..Options::default() }).engine;
    assert_eq!(with.hops(), without.hops());
    assert!(with.events() * 10 < without.events() * 8, "{} against {}", with.events(), without.events());
}

#[test]
fn following_packets_changes_nothing() {
    is_exact(&scenario(MIXED));
}

#[test]
fn another_warm_up_changes_no_packet() {
    let hops = |warmup: &str| {
        let text = MIXED.replace(r#"warmup = "1s""#, &format!(r#"warmup = "{warmup}""#));
        let engine = run(&scenario(&text), &Options::default()).engine;
        // Not the events: with observation, fewer of them are merged.
        let sent: Vec<_> =
            engine.ends.iter().map(|e| (e.stats().0.sent, e.stats().0.rtt_sum, e.stats().1.bytes)).collect();
        (engine.hops(), sent)
    };
    assert_eq!(hops("0s"), hops("2345ms"));
}

/// Two separate paths; a flow on the second must not move the losses of the first.
#[test]
fn a_flow_elsewhere_leaves_the_losses_of_a_link_alone() {
    let two_paths = |second: &str| {
        format!(
            r#"
            name = "two-paths"
            duration = "5s"
            [[node]]
            name = "a"
            [[node]]
            name = "b"
            [[node]]
            name = "c"
            [[link]]
            from = "a"
            to = "b"
            rate = "10Mbit/s"
            delay = "10ms"
            duplex = true
            [[link]]
            from = "a"
            to = "c"
            rate = "10Mbit/s"
            delay = "10ms"
            duplex = true
            [[link]]
            name = "a->b"
            channel = [{{ kind = "random_loss", rate = "2%" }}]
            [[link]]
            name = "a->c"
            channel = [{{ kind = "random_loss", rate = "2%" }}]
            [[flows]]
            name = "first"
            protocol = "sack"
            from = "a"
            to = "b"
            {second}
            "#
        )
    };
    let alone = tables(&two_paths(""));
    let joined = tables(&two_paths("[[flows]]\nname = \"second\"\nprotocol = \"cubic\"\nfrom = \"a\"\nto = \"c\"\n"));
    for column in ["goodput_bps", "retransmissions", "rtt_mean_ms"] {
        let (a, b) =
            (number(&alone.flows, "flow", "first.0", column), number(&joined.flows, "flow", "first.0", column));
        assert_eq!(a.to_bits(), b.to_bits(), "{column}");
    }
    let lost = |t: &Tables, link| number(&t.links, "link", link, "drops_channel");
    assert!(lost(&alone, "a->b") > 10.0);
    assert_eq!(lost(&alone, "a->b"), lost(&joined, "a->b"));
    assert_ne!(lost(&joined, "a->c"), 0.0, "the second flow's link has losses of its own");
}
