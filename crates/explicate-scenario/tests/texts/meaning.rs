//! What keys mean in the resolved model.

use crate::support::{self, SMALL, link, parse};
use explicate_core::estimate::hop_capacity::{By, Params};
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::{Class, Match, Processing, Size, Start, Traffic};

fn with_flow(lines: &str) -> explicate_scenario::model::Scenario {
    parse(&format!("{SMALL}{lines}\n"))
}

#[test]
fn starts() {
    let start = |text: &str| with_flow(text).flows[0].start;
    let (s1, s2) = (Time::secs(1), Time::secs(2));
    assert_eq!(start(""), Start::At(Time::ZERO));
    assert_eq!(start("start = \"1s\""), Start::At(s1));
    assert_eq!(start("start = { at = \"1s\" }"), Start::At(s1));
    assert_eq!(start("start = { spread = \"2s\", from = \"1s\" }"), Start::Spread { from: s1, over: s2 });
    assert_eq!(start("start = { uniform = \"2s\" }"), Start::Uniform { from: Time::ZERO, over: s2 });
    let arrivals = with_flow("arrivals = \"50/s\"\nstart = \"1s\"");
    assert_eq!(arrivals.flows[0].start, Start::Poisson { from: s1, per_second: 50.0 });
    assert_eq!(arrivals.flows[0].count, (450.0f64 + 6.0 * 450.0f64.sqrt() + 10.0) as u32);
    assert_eq!(with_flow("arrivals = \"3/min\"\ncount = 5").flows[0].count, 5);
}

#[test]
fn traffic() {
    let traffic = |text: &str| with_flow(text).flows[0].traffic;
    assert_eq!(traffic(""), Traffic::Bulk);
    assert_eq!(traffic("size = \"1MB\""), Traffic::Sized(Size::Fixed(1_000_000)));
    assert_eq!(traffic("size = { mean = \"10kB\" }"), Traffic::Sized(Size::Exponential(10_000.0)));
    let web = Size::Pareto { mean: 30_000.0, shape: 1.2 };
    assert_eq!(traffic("size = { mean = \"30kB\", distribution = \"pareto\" }"), Traffic::Sized(web));
    let text =
        "session = { timeouts = 3, pause = { from = \"1s\", to = \"10s\" }, duration = \"5min\", random = true }";
    let pause = (Time::secs(1), Time::secs(10));
    let session = Traffic::Sessions { timeouts: 3, pause, duration: Some(Time::secs(300)), random: true };
    assert_eq!(traffic(text), session);
    let pause = (Time::secs(5), Time::secs(5));
    let session = Traffic::Sessions { timeouts: 6, pause, duration: None, random: false };
    assert_eq!(traffic("session = {}"), session);
    let on_off = Traffic::OnOff { on: Time::secs(5), off: Time::secs(2), random: true };
    assert_eq!(traffic("on_off = { on = \"5s\", off = \"2s\", random = true }"), on_off);
}

/// The key is of a group or of the scenario; the longest time is by the narrowest link of the way, recorded or radio, at most 10 ms.
#[test]
fn processing() {
    let of = |text: &str| with_flow(text).flows[0].processing;
    assert_eq!(of(""), Processing::Auto);
    assert_eq!(of("processing = \"none\""), Processing::None);
    assert_eq!(of("processing = \"0s\""), Processing::None);
    assert_eq!(of("processing = \"0.8ms\""), Processing::UpTo(Time::micros(800)));
    let of_both = |text: &str| parse(&format!("processing = \"none\"\n{SMALL}{text}\n")).flows[0].processing;
    assert_eq!([of_both(""), of_both("processing = \"auto\"")], [Processing::None, Processing::Auto]);
    let longest = |links: &str, packet: &str| {
        let s = parse(&format!(
            "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[node]]\nname = \"c\"\n{links}\n[[flows]]\nname = \"f\"\n\
             protocol = \"reno\"\npacket = \"{packet}\"\nfrom = \"a\"\nto = \"c\"\n"
        ));
        let there: Vec<u32> = ["a->b", "b->c"].map(|n| s.links.iter().position(|l| l.name == n).unwrap() as u32).into();
        s.processing(&s.flows[0], &there)
    };
    let wire = |from: &str, to: &str, rate: &str| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = true\nrate = \"{rate}\"\n")
    };
    let wires = |rate: &str| wire("a", "b", "1Gbit/s") + &wire("b", "c", rate);
    assert_eq!(longest(&wires("10Mbit/s"), "1000B"), Time::micros(800));
    assert_eq!(longest(&wires("10Mbit/s"), "1500B"), Time::micros(1200));
    assert_eq!(longest(&wires("56kbit/s"), "1500B"), Time::millis(10));
    let air = "[[medium]]\nname = \"air\"\nrate = \"6Mbit/s\"\n\
               station = [{ node = \"b\", at = [\"0m\", \"0m\"] }, { node = \"c\", at = [\"9m\", \"0m\"] }]\n";
    assert_eq!(longest(&format!("{}{air}", wire("a", "b", "1Gbit/s")), "1500B"), Time::micros(2000));
}

#[test]
fn units() {
    for (text, ns) in
        [("1.5ms", 1_500_000), ("1e-3 s", 1_000_000), ("2min", 120_000_000_000), ("7ns", 7), (" 3 us ", 3000)]
    {
        assert_eq!(support::set(SMALL, &[("flows.one.start", text)]).flows[0].start, Start::At(Time(ns)), "{text}");
    }
    let rates = [
        ("54Mbit/s", 54_000_000),
        ("1.5 Gbps", 1_500_000_000),
        ("125kB/s", 1_000_000),
        ("64kbps", 64_000),
        ("1MiB/s", 8_388_608),
        ("100bit/s", 100),
    ];
    for (text, bits) in rates {
        let s = support::set(SMALL, &[("topology.bottleneck.rate", text)]);
        assert_eq!(link(&s, "r1->r2").rate, Rate(bits), "{text}");
    }
    for (text, bytes) in [("1500B", 1500), ("1kB", 1000), ("1KiB", 1024)] {
        assert_eq!(support::set(SMALL, &[("flows.one.packet", text)]).flows[0].packet, bytes, "{text}");
    }
}

#[test]
fn queue_lengths() {
    let limit = |text: &str| {
        let s = support::set(SMALL, &[("topology.bottleneck.queue", &format!("{{ limit = \"{text}\" }}"))]);
        let queue = link(&s, "r1->r2").queue.as_ref().unwrap();
        (queue.values.get(queue.kind.params(), "limit"), queue.values.get(queue.kind.params(), "count"))
    };
    assert_eq!(limit("100kB"), (100_000.0, 0.0));
    assert_eq!(limit("50pkt"), (50_000.0, 1.0));
    assert_eq!(limit("0.5bdp"), (27_500.0, 0.0), "10 Mbit/s times 44 ms, half");
    assert_eq!(limit("unlimited"), (f64::INFINITY, 0.0));
    assert_eq!(limit("2 KiB"), (2048.0, 0.0));
}

#[test]
fn a_bandwidth_delay_product_averages_over_the_flows_that_cross() {
    let text = SMALL.replace("pairs = 2", "pairs = 3\naccess = { delay = { from = \"10ms\", to = \"30ms\" } }");
    let s = parse(&text.replace("packet =", "count = 3\npacket ="));
    let delays: Vec<Time> = (0..3).map(|i| link(&s, &format!("s{i}->r1")).delay).collect();
    assert_eq!(delays, [Time::millis(10), Time::millis(20), Time::millis(30)]);
    assert_eq!(link(&s, "r2->d2").delay, Time::millis(30));
    let queue = link(&s, "r1->r2").queue.as_ref().unwrap();
    // Base RTTs are 2 * (2 * access + 20 ms): 80, 120 and 160 ms.
    assert_eq!(queue.values.get(queue.kind.params(), "limit"), 10e6 * 0.120 / 8.0);
    // One flow crosses each access link.
    let own = link(&s, "r2->d0").queue.as_ref().unwrap();
    assert_eq!(own.values.get(own.kind.params(), "limit"), 100e6 * 0.080 / 8.0);
    // Nothing crosses: twice the link's delay.
    let idle = parse(&SMALL.replace("pairs = 2", "pairs = 2\naccess = { delay = \"7ms\" }"));
    let queue = link(&idle, "r2->d1").queue.as_ref().unwrap();
    assert_eq!(queue.values.get(queue.kind.params(), "limit"), 100e6 * 0.014 / 8.0);
}

#[test]
fn pairs_are_given_out_in_turn() {
    let more = "count = 3\n[[flows]]\nname = \"two\"\nprotocol = \"xcp/reno\"\ncount = 2\n";
    let s = with_flow(more);
    let sources = |i: usize| -> Vec<&str> { s.flows[i].ends.iter().map(|(a, _)| s.nodes[*a].as_str()).collect() };
    assert_eq!(sources(0), ["s0", "s1"], "flow i uses entry i % 2");
    assert_eq!(sources(1), ["s1", "s0"]);
    let back = with_flow("path = \"reverse\"");
    let (from, to) = back.flows[0].ends[0];
    assert_eq!((back.nodes[from].as_str(), back.nodes[to].as_str()), ("d0", "s0"));
    let s = parse(&SMALL.replace("pairs = 2\n", "").replace("packet =", "count = 6\npacket ="));
    assert_eq!(s.nodes.len(), 2 + 12, "as many pairs as flows");
}

#[test]
fn chains_and_parking_lots() {
    let chain = SMALL.replace("dumbbell\"", "chain\"\nhops = 3").replace("bottleneck", "link");
    let s = parse(&chain);
    assert_eq!(s.nodes[..4], ["r1", "r2", "r3", "r4"]);
    assert_eq!(link(&s, "r3->r4").rate, Rate::mbps(10));
    assert_eq!(s.nodes[link(&s, "d0->r4").to], "r4");
    let lot = chain.replace("chain", "parking_lot").replace("pairs = 2", "pairs = 1\ncross = 2");
    let ends = |path: &str, count: usize| -> Vec<String> {
        let s = parse(&format!("{lot}path = \"{path}\"\ncount = {count}\n"));
        s.flows[0].ends.iter().map(|(a, b)| format!("{} {}", s.nodes[*a], s.nodes[*b])).collect()
    };
    assert_eq!(ends("long", 1), ["s0 d0"]);
    assert_eq!(ends("cross.2", 3), ["c2s0 c2d0", "c2s1 c2d1"]);
    assert_eq!(ends("cross", 4), ["c1s0 c1d0", "c2s0 c2d0", "c3s0 c3d0", "c1s1 c1d1"]);
    let s = parse(&lot);
    assert_eq!(s.nodes[link(&s, "r3->c2d1").from], "r3");
    assert_eq!(s.nodes[link(&s, "c2s1->r2").to], "r2");
}

#[test]
fn stars() {
    let star = SMALL.replace("dumbbell\"", "star\"").replace("pairs = 2", "hosts = 4").replace("bottleneck", "link");
    let s = parse(&star);
    assert_eq!(s.nodes, ["r1", "h0", "h1", "h2", "h3"]);
    assert_eq!(s.links.len(), 8, "each host's cable, both ways");
    assert_eq!(link(&s, "r1->h0").rate, Rate::mbps(10));
    let ends = |more: &str| -> Vec<String> {
        let s = parse(&format!("{star}{more}"));
        s.flows[0].ends.iter().map(|(a, b)| format!("{} {}", s.nodes[*a], s.nodes[*b])).collect()
    };
    assert_eq!(ends("count = 4\n"), ["h1 h0", "h2 h0", "h3 h0"], "in is the path that need not be named");
    assert_eq!(ends("path = \"out\"\ncount = 3\n"), ["h0 h1", "h0 h2", "h0 h3"]);
    assert_eq!(ends("from = \"h2\"\nto = \"h3\"\n"), ["h2 h3"]);
    let s = parse(&star.replace("hosts = 4\n", "").replace("packet =", "count = 6\npacket ="));
    assert_eq!(s.nodes.len(), 1 + 7, "a host for each flow and the one where they meet");
    assert_eq!(parse(&s.resolved).links.len(), s.links.len(), "what is written down reads as what was read");
}

#[test]
fn nodes_and_links_of_ones_own() {
    let text = r#"
[[node]]
name = "a"
[[node]]
name = "b"
kind = "router"
[[node]]
name = "c"
[[link]]
from = "a"
to = "b"
duplex = true
rate = "8Mbit/s"
delay = "5ms"
[[link]]
name = "b->a"
rate = "1Mbit/s"
[[link]]
name = "fast"
from = "b"
to = "c"
duplex = true
delay = "1ms"
[[link]]
name = "slow"
from = "a"
to = "c"
duplex = true
delay = "50ms"
[[flows]]
name = "short"
protocol = "xcp/reno"
from = "a"
to = "c"
[[flows]]
name = "detour"
protocol = "xcp/reno"
path = ["a", "c"]
[[flows]]
name = "usual"
protocol = "xcp/reno"
path = ["a", "b", "c"]
"#;
    let s = parse(text);
    let names: Vec<&str> = s.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["a->b", "b->a", "fast", "fast-back", "slow", "slow-back"]);
    assert_eq!((s.links[0].rate, s.links[1].rate), (Rate::mbps(8), Rate::mbps(1)));
    assert_eq!(s.links[1].delay, Time::millis(5), "a refinement keeps what it does not say");
    assert_eq!(s.flows[0].via, None);
    assert_eq!(s.flows[1].via, Some((vec![4], vec![5])));
    assert_eq!(s.flows[2].via, None, "the way is the shortest anyway");
    // `a` and `c` have two neighbours here, so nothing is a host but by its kind.
    assert!(s.links.iter().all(|l| l.queue.is_some()));
}

#[test]
fn routers_follow_the_protocols() {
    let s = parse(SMALL);
    assert!(s.links.iter().all(|l| l.routers.len() == 1 && l.routers[0].protocol.name() == "xcp"));
    let s = parse(&SMALL.replace("xcp/reno", "reno/reno"));
    assert!(s.links.iter().all(|l| l.routers.is_empty()));
    let s = support::set(SMALL, &[("topology.bottleneck.router", "none")]);
    assert!(link(&s, "r1->r2").routers.is_empty() && !link(&s, "s0->r1").routers.is_empty());
}

#[test]
fn the_name_is_the_files_if_none_is_said() {
    let text = SMALL.replace("name = \"small\"\n", "");
    let s = explicate_scenario::model::Scenario::parse(&text, "dir/some file.toml", std::path::Path::new("."), &[]);
    assert_eq!(s.unwrap_or_else(|e| panic!("{e}")).name, "some file");
}

#[test]
fn classes() {
    let text = SMALL.replace(
        "delay = \"20ms\" }",
        r#"delay = "20ms", queue = { kind = "red" }, classes = [
            { match = "other", queue = { limit = "7pkt" }, weight = 0.5 },
            { match = "explicit" },
        ] }"#,
    );
    let s = parse(&text);
    let l = link(&s, "r1->r2");
    assert!(l.queue.is_none() && l.routers.is_empty() && link(&s, "s0->r1").classes.is_empty());
    let [other, explicit] = &l.classes[..] else { panic!("two classes") };
    assert_eq!((other.matches, other.weight), (Match::Other, 0.5));
    assert_eq!((explicit.matches, explicit.weight), (Match::Explicit, 1.0));
    let kind = |c: &Class| c.queue.as_ref().unwrap().kind.name();
    assert_eq!((kind(other), kind(explicit)), ("droptail", "red"), "what a class does not say the link does");
    let limit = |c: &Class| {
        let queue = c.queue.as_ref().unwrap();
        ["limit", "count"].map(|name| queue.values.get(queue.kind.params(), name))
    };
    assert_eq!(limit(other), [7000.0, 1.0]);
    // Controllers answer packets with the header, so they are at ports with such packets.
    assert_eq!((other.routers.len(), explicit.routers.len()), (0, 1));
    assert_eq!((l.class_of(true), l.class_of(false)), (1, 0));
    // One class for all: then that is where the controller is.
    let all = parse(&SMALL.replace("delay = \"20ms\" }", "delay = \"20ms\", classes = [{ match = \"other\" }] }"));
    assert_eq!(link(&all, "r1->r2").classes[0].routers.len(), 1);
    let again = parse(&s.resolved);
    assert_eq!(again.resolved, s.resolved);
    // A refinement takes the classes away again.
    let one = parse(&format!("{text}[[link]]\nname = \"r1->r2\"\nclasses = []\n"));
    assert!(link(&one, "r1->r2").classes.is_empty() && link(&one, "r2->r1").classes.len() == 2);
    assert_eq!(link(&parse(&one.resolved), "r1->r2").queue.as_ref().unwrap().kind.name(), "red");
    let set = support::set(&text, &[("topology.bottleneck.classes.explicit.weight", "3")]);
    assert_eq!(link(&set, "r2->r1").classes[1].weight, 3.0);
    let set = support::set(&text, &[("topology.bottleneck.classes.other.queue.limit", "9pkt")]);
    assert_eq!(limit(&link(&set, "r1->r2").classes[0]), [9000.0, 1.0]);
}

#[test]
fn a_configured_capacity_is_a_rate_a_factor_or_steps() {
    let configured = |text: &str| {
        let s = support::set(SMALL, &[("topology.bottleneck.capacity", text)]);
        let (there, back) = (link(&s, "r1->r2"), link(&s, "r2->r1"));
        assert_eq!((there.capacity, &there.capacity_steps), (back.capacity, &back.capacity_steps));
        (there.capacity, there.capacity_steps.clone())
    };
    assert_eq!(configured("4Mbit/s"), (Rate::mbps(4), vec![]));
    assert_eq!(configured("{ factor = 1.2 }"), (Rate::mbps(12), vec![]));
    let steps = "[{ at = \"5s\", factor = 0.5 }, { at = \"9s\", rate = \"7Mbit/s\" }]";
    let later = vec![(Time::secs(5), Rate::mbps(5)), (Time::secs(9), Rate::mbps(7))];
    assert_eq!(configured(steps), (Rate::mbps(10), later), "the rate until the first step");
    assert_eq!(configured("[{ at = \"0s\", factor = 2 }]"), (Rate::mbps(20), vec![]));
}

#[test]
fn a_capacity_may_be_measured() {
    let configured = |text: &str| {
        let s = support::set(SMALL, &[("topology.bottleneck.capacity", text)]);
        let there = link(&s, "r1->r2");
        assert_eq!(there.capacity, Rate::mbps(10), "the usual one before the first measurement");
        let again = parse(&s.resolved);
        assert_eq!(link(&again, "r1->r2").measured, there.measured);
        there.measured
    };
    assert_eq!(configured("10Mbit/s"), None);
    let usual = Params { measured: By::AirTime, window: 0.1 };
    assert_eq!(configured("{ measured = \"air_time\" }"), Some(usual));
    let other = Params { measured: By::OwnTime, window: 0.02 };
    assert_eq!(configured("{ measured = \"own_time\", window = \"20ms\" }"), Some(other));
}

#[test]
fn half_duplex_links_are_pairs() {
    let text = support::SMALL.replace("delay = ", "half_duplex = true, delay = ");
    let s = parse(&text);
    let at = |name: &str| s.links.iter().position(|l| l.name == name).unwrap();
    assert_eq!(link(&s, "r1->r2").shares_with, Some(at("r2->r1")));
    assert_eq!(link(&s, "r2->r1").shares_with, Some(at("r1->r2")));
    assert_eq!(link(&s, "s0->r1").shares_with, None);
    let one = support::set(SMALL, &[("link.r2->r1.half_duplex", "true")]);
    assert_eq!(link(&one, "r1->r2").shares_with, Some(at("r2->r1")), "one saying it is enough");
}
