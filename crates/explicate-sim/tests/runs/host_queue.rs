//! Queues of sending hosts: they hold little, and push back instead of dropping.

use explicate_core::units::Time;
use explicate_scenario::model::{FlowGroup, Scenario};
use explicate_scenario::templates::TEMPLATES;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{EngineKind, Options, run_once};
use std::path::Path;

use crate::common::{number, numbers};

const KINDS: [&str; 3] = ["fifo", "fq_codel", "fq"];

/// Runs a scenario with these overrides, in one of the two engines.
fn run(text: &str, overrides: &[(&str, &str)], engine: EngineKind) -> (Scenario, explicate_sim::measure::Tables) {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let parsed = Scenario::parse(text, "test.toml", Path::new("../explicate-scenario/templates"), &overrides);
    let scenario = parsed.unwrap_or_else(|problem| panic!("{problem}"));
    let options = Options { engine, ..Options::default() };
    let mut run = run_once(&scenario, 0, &options, &|_, _| true).unwrap_or_else(|problem| panic!("{problem}"));
    let tables = measure(&scenario, 0, &mut run, "test");
    (scenario, tables)
}

fn dumbbell(host_queue: &str) -> (Scenario, explicate_sim::measure::Tables) {
    let overrides = [
        ("stack", "ns2"), // whose window grows though nothing limits it
        ("topology.bottleneck.rate", "100Mbit/s"),
        ("flows.greedy.protocol", "reno"),
        ("flows.greedy.params.host_queue", host_queue),
        ("duration", "15s"),
        ("warmup", "5s"),
    ];
    run(template("dumbbell"), &overrides, EngineKind::Fast)
}
fn template(name: &str) -> &'static str {
    TEMPLATES.iter().find(|t| t.name == name).expect("a template").text
}

/// A flow that has the line for itself is not limited by the network: its window grows until something drops. The most packets in
/// the queue of any host, and the goodput of all flows.
#[test]
fn a_host_holds_a_few_packets() {
    let held = |queue: &str| {
        let (_, tables) = dumbbell(queue);
        let peaks = (0..4).map(|i| number(&tables.links, "link", &format!("s{i}->r1"), "queue_peak_packets"));
        (peaks.fold(0.0, f64::max), numbers(&tables.flows, "goodput_bps").iter().sum::<f64>())
    };
    let (most, before) = held("none");
    assert!(most > 5000.0, "{most} packets without");
    for kind in KINDS {
        let (few, after) = held(kind);
        // A flow alone on the line, in slow start: two super-packets of 64 kB, in packets of 1000 bytes.
        assert!(few <= 131.0, "{few} packets with {kind}");
        assert!(after > 0.98 * before.min(93e6), "{after} bit/s with {kind}, {before} without");
    }
}

/// Overrides that the comments of a scenario suggest: for each command those of all its `--set KEY=VALUE`, with each protocol of its
/// `--protocols`. Names of files that a user would have are left out.
fn suggested(text: &str) -> Vec<Vec<(String, String)>> {
    let groups = |protocol: &str| -> Vec<_> {
        let names = text.split("[[flows]]").skip(1).filter_map(|part| part.split('"').nth(1));
        names.map(|name| (format!("flows.{name}.protocol"), protocol.to_string())).collect()
    };
    let comments: Vec<&str> =
        text.lines().filter_map(|line| line.split_once('#')).map(|(_, comment)| comment).collect();
    let mut all = Vec::new();
    for command in comments.join("\n").replace("\\\n", " ").lines() {
        let words: Vec<&str> = command.split([' ', '`']).filter(|word| !word.is_empty()).collect();
        let after = |flag: &'static str| words.windows(2).filter(move |pair| pair[0] == flag).map(|pair| pair[1]);
        let set =
            after("--set").filter_map(|pair| pair.split_once('=')).filter(|(_, value)| !value.starts_with("/path"));
        let set: Vec<_> = set.map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let protocols: Vec<&str> = after("--protocols").flat_map(|list| list.split(',')).collect();
        if protocols.is_empty() && !set.is_empty() {
            all.push(set.clone());
        }
        all.extend(protocols.into_iter().map(|protocol| [groups(protocol), set.clone()].concat()));
    }
    all
}

#[test]
fn a_comment_suggests_its_overrides_together() {
    let text = "#  explicate run a --set x=1 --set y.z=[]\n# compare a --protocols xcp,sack \\\n#   --set stack=ns2 --set f=/path/to (old)\n\
                [[flows]]\nname = \"f\" # or with `--set n=2`\n";
    let said: Vec<String> = suggested(text)
        .into_iter()
        .map(|set| set.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(said, ["x=1 y.z=[]", "flows.f.protocol=xcp stack=ns2", "flows.f.protocol=sack stack=ns2", "n=2"]);
}

/// Every scenario of the repository and every template, as they are, with each override that a comment suggests, and with
/// CUBIC for all of its flows unless it names a stack; up to `MOST_BYTES`. No host holds more than 1000 packets or 0.2 s of its link.
#[test]
fn no_host_of_the_repository_holds_more_than_a_fifth_of_a_second() {
    let folder = Path::new("../../scenarios");
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut texts: Vec<(String, String)> = files
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).expect("a text")))
        .collect();
    assert!(texts.len() > 25, "{} scenarios", texts.len());
    texts.extend(TEMPLATES.iter().map(|template| (template.name.to_string(), template.text.to_string())));
    let (mut checked, mut wrong, mut runs) = (0, Vec::new(), 0);
    for (name, text) in &texts {
        let mut cases = vec![Vec::new()];
        cases.extend(suggested(text));
        let parsed = Scenario::parse(text, name, folder, &[]).unwrap_or_else(|problem| panic!("{problem}"));
        if !text.contains("stack =") {
            let cubic = |group: &FlowGroup| {
                let key = |key: &str| format!("flows.{}.{key}", group.name);
                [(key("params"), "{}".to_string()), (key("protocol"), "cubic".to_string())]
            };
            cases.push(parsed.flows.iter().flat_map(cubic).collect());
        }
        let slowest = parsed.links.iter().map(|link| link.rate.bytes_per_sec()).fold(f64::MAX, f64::min);
        let enough = Time::from_secs_f64(MOST_BYTES / slowest).max(LEAST);
        for mut case in cases {
            case.push(("duration".to_string(), format!("{}ns", parsed.duration.min(enough).0)));
            case.push(("warmup".to_string(), "0s".to_string()));
            case.push(("sampling".to_string(), "{}".to_string()));
            let what = format!("{name} {case:?}");
            let scenario = Scenario::parse(text, name, folder, &case).unwrap_or_else(|problem| panic!("{problem}"));
            let mut run =
                run_once(&scenario, 0, &Options::default(), &|_, _| true).unwrap_or_else(|problem| panic!("{problem}"));
            let tables = measure(&scenario, 0, &mut run, "test");
            runs += 1;
            let packet = scenario.flows.iter().map(|group| group.packet).max().expect("a group") as f64;
            for link in &scenario.links {
                let sends = |group: &FlowGroup| group.ends.iter().any(|(from, _)| *from == link.from);
                if !scenario.flows.iter().any(sends) {
                    continue;
                }
                let peak = number(&tables.links, "link", &link.name, "queue_peak_packets");
                let most = (0.2 * link.rate.bytes_per_sec() / packet).min(1000.0);
                checked += 1;
                if peak > most {
                    wrong.push(format!("{what}: {} has {peak} of {most:.0} packets", link.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(runs > 70 && checked > 300, "{runs} runs, {checked} links");
}

/// Slow starts show what hosts hold, or, where nothing is lost, windows that grow for minutes: a run ends once its slowest link may have
/// carried this much, or after these seconds.
const MOST_BYTES: f64 = 60e6;
const LEAST: Time = Time::secs(4);

/// The dumbbell's own override, long enough to fill 200,000 packets: the deepest queue of a host, beside none.
#[test]
fn the_suggested_override_fills_no_host() {
    let deepest = |more: &[(&str, &str)]| {
        let set = suggested(template("dumbbell")).remove(0);
        let mut set: Vec<(&str, &str)> = set.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(set.len(), 2, "{set:?}");
        set.extend(more);
        let tables = run(template("dumbbell"), &set, EngineKind::Fast).1;
        let peaks = (0..4).map(|i| number(&tables.links, "link", &format!("s{i}->r1"), "queue_peak_packets"));
        peaks.fold(0.0, f64::max)
    };
    let (now, ns2) = (deepest(&[]), deepest(&[("stack", "ns2")]));
    assert!(now <= 131.0 && ns2 > 10_000.0, "{now} packets, {ns2} with ns-2's stack");
}

/// 300 flows on one host with 20 Mbit/s: 500 packets of 1000 bytes are 0.2 s. Each flow alone would hold four. SYNs, which do
/// not wait, come on top. A transfer in the other direction has its acknowledgements sent over the same line.
fn crowd(engine: EngineKind, host_queue: &str) -> explicate_sim::measure::Tables {
    let flows = r#"
        [[flows]]
        name = "f"
        count = 300
        protocol = "sack"
        packet = "1000B"
        start = { uniform = "1s" }
        [[flows]]
        name = "back"
        protocol = "sack"
        path = "reverse"
        params = { receiver_window = 10 }
        [sampling]
        every = "1s"
        of = ["cwnd"]
    "#;
    run(&format!("{HOST}{flows}"), &[("flows.f.params.host_queue", host_queue)], engine).1
}

/// A host whose own line of 20 Mbit/s is the narrow one.
const HOST: &str = r#"
    duration = "20s"
    warmup = "10s"
    seed = 3
    [topology]
    kind = "dumbbell"
    pairs = 1
    access = { rate = "20Mbit/s", delay = "1ms" }
    bottleneck = { rate = "100Mbit/s", delay = "10ms" }
"#;

#[test]
fn a_full_queue_pushes_back_and_serves_all() {
    serves_all("fifo", [800.0, 505.0], 0.5);
    serves_all("fq_codel", [600.0, 20.0], 0.9);
    serves_all("fq", [600.0, 20.0], 0.8);
}

/// The queue holds at most these packets at any time, and after the warm-up; each flow has at least this share of the mean.
fn serves_all(kind: &str, [peak, later]: [f64; 2], share: f64) {
    let tables = crowd(EngineKind::Fast, kind);
    let link = |column| number(&tables.links, "link", "s0->r1", column);
    assert!(link("queue_peak_packets") <= peak, "{kind}: {} packets", link("queue_peak_packets"));
    assert!(link("queue_max_packets") <= later, "{kind}: {} packets after the warm-up", link("queue_max_packets"));
    assert_eq!(link("drops_total"), 0.0);
    assert!(link("utilisation") > 0.99, "{kind}: {}", link("utilisation"));
    let goodputs = &numbers(&tables.flows, "goodput_bps")[..300];
    let mean = goodputs.iter().sum::<f64>() / 300.0;
    let (least, most) =
        (goodputs.iter().copied().fold(f64::MAX, f64::min), goodputs.iter().copied().fold(0.0, f64::max));
    assert!(least > share * mean && most < mean / share, "{kind}: {least} to {most}, mean {mean}");
    assert_eq!(numbers(&tables.flows, "timeouts").iter().sum::<f64>(), 0.0);
}

#[test]
fn both_engines_have_the_same_queues() {
    for kind in KINDS {
        let [fast, reference] = [EngineKind::Fast, EngineKind::Reference].map(|engine| crowd(engine, kind));
        assert_eq!(format!("{:?}", fast.flows), format!("{:?}", reference.flows), "{kind}");
        assert_eq!(format!("{:?}", fast.links), format!("{:?}", reference.links), "{kind}");
    }
}

/// A flow with a large window and one with a small window of a host whose line both would fill: the first has most of a queue in
/// which packets leave in order, and half of one in which flows take turns. `fq` paces both.
#[test]
fn flows_of_a_host_take_turns() {
    let shares = |kind: &str| {
        let flows = r#"
            [[flows]]
            name = "loud"
            protocol = "greedy/none"
            packet = "1000B"
            params = { rate = "80Mbit/s" }
            [[flows]]
            name = "soft"
            protocol = "sack"
            packet = "1000B"
        "#;
        let overrides = ["loud", "soft"].map(|group| format!("flows.{group}.params.host_queue"));
        let overrides: Vec<_> = overrides.iter().map(|key| (key.as_str(), kind)).collect();
        let tables = run(&format!("{HOST}{flows}"), &overrides, EngineKind::Fast).1;
        let [loud, soft] = numbers(&tables.flows, "goodput_bps")[..] else { panic!("two flows") };
        (soft / (loud + soft), number(&tables.links, "link", "s0->r1", "queue_max_packets"))
    };
    // 80 Mbit/s for a millisecond or two are 20 packets.
    let (share, _) = shares("fifo");
    assert!(share < 0.35, "{share} in order");
    for kind in ["fq_codel", "fq"] {
        let (share, held) = shares(kind);
        assert!((0.45..0.55).contains(&share), "{share} with {kind}");
        assert!(held <= 4.0, "{held} packets with {kind}");
    }
}

/// Where the scenario gives the port of a host a queue, and at a port of a router, there is none of the host's: what it had no room for was
/// dropped, not pushed back.
#[test]
fn a_queue_of_the_scenario_is_the_networks() {
    let dropped = |access: &str, from: &str, extra: &str| {
        let text = format!(
            r#"
            duration = "5s"
            stack = "ns2"
            [topology]
            kind = "dumbbell"
            pairs = 1
            access = {{ rate = "10Mbit/s", delay = "1ms"{access} }}
            bottleneck = {{ rate = "10Mbit/s", delay = "10ms", queue = {{ kind = "droptail", limit = "20pkt" }} }}
            [[flows]]
            name = "f"
            protocol = "sack"
            from = "{from}"
            to = "d0"
            params = {{ host_queue = "fq_codel" }}
            {extra}
        "#
        );
        let (scenario, tables) = run(&text, &[], EngineKind::Fast);
        let unused = scenario.warnings.iter().filter(|warning| warning.contains("`host_queue` has no effect")).count();
        (numbers(&tables.links, "drops_total").iter().sum::<f64>() > 0.0, unused)
    };
    assert_eq!(dropped("", "s0", ""), (false, 0));
    assert_eq!(dropped(", queue = \"unlimited\"", "s0", ""), (false, 0));
    assert_eq!(dropped(", queue = { kind = \"droptail\", limit = \"20pkt\" }", "s0", ""), (true, 1));
    assert_eq!(dropped("", "r1", ""), (true, 1), "the bottleneck's own");
}

/// `fq` spreads a window over the round trip: ten packets at once at first, two afterwards, where they leave as they are clocked else.
#[test]
fn fq_paces() {
    let deepest = |kind: &str| {
        let text = r#"
            duration = "3s"
            [topology]
            kind = "dumbbell"
            pairs = 1
            access = { rate = "1Gbit/s", delay = "1ms" }
            bottleneck = { rate = "100Mbit/s", delay = "40ms" }
            [[flows]]
            name = "f"
            protocol = "reno"
            packet = "1000B"
            params = { receiver_window = 100, autotuning = "none" }
        "#;
        let tables = run(text, &[("flows.f.params.host_queue", kind)], EngineKind::Fast).1;
        let goodput = numbers(&tables.flows, "goodput_bps")[0];
        (number(&tables.links, "link", "r1->r2", "queue_peak_packets"), goodput)
    };
    let ((bursts, fast), (paced, paced_goodput)) = (deepest("fq_codel"), deepest("fq"));
    assert!(bursts >= 20.0 && paced <= 10.0, "{bursts} packets at the bottleneck, {paced} with fq");
    assert!(paced_goodput > 0.9 * fast, "{paced_goodput} of {fast} bit/s");
}
