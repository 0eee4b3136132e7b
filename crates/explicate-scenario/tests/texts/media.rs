//! `[[medium]]`: its meaning, changes by `--set`, and messages for mistakes.

use crate::messages::check;
use crate::support::{link, parse, set};
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::Scenario;

/// Two chains of radios; the last line is the 14th.
const AIR: &str = r#"duration = "5s"
[[flows]]
name = "one"
protocol = "xcp"
from = "n1"
to = "n3"
[[medium]]
name = "air"
layout = { kind = "chain", stations = 3, spacing = "200m" }
capacity = "20Mbit/s"
rate = "24Mbit/s"
[[medium.station]]
node = "n2"
queue = { limit = "7pkt" }
"#;

fn names(s: &Scenario) -> Vec<&str> {
    s.links.iter().map(|l| l.name.as_str()).collect()
}

#[test]
fn a_chain_brings_nodes_links_and_interfaces() {
    let s = parse(AIR);
    assert_eq!(s.nodes, ["n1", "n2", "n3"]);
    assert_eq!(names(&s), ["n1->n2", "n2->n1", "n2->n3", "n3->n2"]);
    let first = link(&s, "n1->n2");
    assert_eq!((first.rate, first.capacity, first.delay), (Rate::mbps(24), Rate::mbps(20), Time(667)));
    assert!(first.queue.is_none() && first.routers.is_empty(), "they are the interface's");
    assert_eq!(s.port(first).routers.len(), 1);
    let medium = &s.media[0];
    let limit = |i: usize| {
        let q = medium.stations[i].interface.queue.as_ref().expect("limited");
        q.values.get(q.kind.params(), "limit") / q.mean_packet
    };
    assert_eq!([limit(0), limit(1), limit(2)], [100.0, 7.0, 100.0]);
    assert_eq!(medium.stations[2].at, (400.0, 0.0));
    assert_eq!(medium.values.given(), [("rate", 4.0)], "24 Mbit/s is the fifth rate");
}

#[test]
fn layouts_link_neighbours() {
    let layout = |layout: &str, from: &str, to: &str| {
        let line = "layout = { kind = \"chain\", stations = 3, spacing = \"200m\" }";
        let text = AIR.replace(line, layout).replace("\"n1\"", from).replace("\"n3\"", to);
        let text = text.split("[[medium.station]]").next().expect("a part").to_string();
        parse(&text)
    };
    let star = layout("layout = { kind = \"star\", stations = 4, spacing = \"50m\" }", "\"n1\"", "\"n4\"");
    assert_eq!(star.nodes, ["n0", "n1", "n2", "n3", "n4"]);
    assert!(star.links.iter().all(|l| l.from == 0 || l.to == 0) && star.links.len() == 8);
    let place = |i: usize| star.media[0].stations[i].at;
    assert!(place(0) == (0.0, 0.0) && (place(2).0.abs() < 1e-9 && (place(2).1 - 50.0).abs() < 1e-9));
    let mesh = layout("layout = { kind = \"mesh\", rows = 2, columns = 3, prefix = \"m\" }", "\"m1\"", "\"m6\"");
    assert_eq!(mesh.links.len(), 2 * (2 * 2 + 3));
    assert!(names(&mesh).contains(&"m3->m6") && !names(&mesh).contains(&"m1->m5"));
}

#[test]
fn stations_one_by_one_reach_each_other_within_the_reach() {
    let text = AIR.replace("layout = { kind = \"chain\", stations = 3, spacing = \"200m\" }\n", "reach = \"210m\"\n")
        + "at = [\"0m\", \"0m\"]\n"
        + &[("n1", -200.0), ("n3", 210.0)]
            .map(|(n, x)| format!("[[medium.station]]\nnode = \"{n}\"\nat = [\"{x}m\", \"0m\"]\n"))
            .concat();
    let s = parse(&text);
    assert_eq!(names(&s), ["n2->n1", "n1->n2", "n2->n3", "n3->n2"], "n1 and n3 are too far from each other");
    assert_eq!(s.media[0].stations[0].at, (0.0, 0.0));
    assert_eq!(s.nodes[s.media[0].stations[1].node], "n1");
}

#[test]
fn paths_lead_into_media() {
    let s = set(AIR, &[("medium.air.rate", "6Mbit/s"), ("medium.air.rts_threshold", "0B")]);
    assert_eq!(link(&s, "n1->n2").rate, Rate::mbps(6));
    assert_eq!(s.media[0].values.given(), [("rate", 0.0), ("rts_threshold", 0.0)]);
    let s = set(AIR, &[("medium.air.station.n2.capacity", "10Mbit/s"), ("medium.air.station.n3.queue", "unlimited")]);
    assert_eq!(s.media[0].stations[1].interface.capacity, Rate::mbps(10));
    assert!(s.media[0].stations[2].interface.queue.is_none(), "a station of the layout that the file does not mention");
    let s = set(AIR, &[("link.n1->n2.rate", "9Mbit/s"), ("medium.air.layout.stations", "4")]);
    assert_eq!((link(&s, "n1->n2").rate, link(&s, "n3->n4").rate), (Rate::mbps(9), Rate::mbps(24)));
    assert_eq!(link(&s, "n1->n2").over.and_then(|o| o.rate), Some(Rate::mbps(9)));
}

/// A choice of rates takes a value, not a spelling.
#[test]
fn rates_of_a_medium_are_values() {
    let values = |rate: &str| set(AIR, &[("medium.air.rate", rate)]).media[0].values.given().to_vec();
    for same in ["54000000bit/s", "54000kbit/s", "0.054Gbit/s", "54Mbps", "54 Mbit/s", "6.75MB/s"] {
        assert_eq!(values(same), values("54Mbit/s"), "{same}");
    }
    assert_eq!(values("9000kbps"), [("rate", 1.0)]);
    let s = set(AIR, &[("medium.air.rate", "54000000bit/s"), ("medium.air.control_rate", "12e6bit/s")]);
    assert!(s.resolved.contains("rate = \"54Mbit/s\"") && s.resolved.contains("control_rate = \"12Mbit/s\""));
    assert_eq!(set(AIR, &[("medium.air.control_rate", "auto")]).media[0].values.given(), [("rate", 4.0)]);
}

#[test]
fn clocks_tick_at_links_and_stations() {
    let s = parse(&format!("{AIR}clock_tick = \"10ms\"\n"));
    assert_eq!(s.media[0].stations.iter().map(|s| s.interface.clock_tick.0).collect::<Vec<_>>(), [0, 10_000_000, 0]);
    let wire = "[[node]]\nname = \"x\"\n[[link]]\nfrom = \"x\"\nto = \"n1\"\nclock_tick = \"1ms\"\n";
    assert_eq!(link(&parse(&format!("{AIR}{wire}")), "x->n1").clock_tick, Time::millis(1));
}

/// Each text gives one problem at this line with these words.
#[test]
fn slips() {
    let line = |at: usize, text: &str| -> String {
        AIR.lines().enumerate().map(|(i, l)| format!("{}\n", if i + 1 == at { text } else { l })).collect()
    };
    let plus = |text: &str| format!("{AIR}{text}\n");
    let cases: Vec<(String, usize, &[&str])> = vec![
        (line(7, "[medium]"), 7, &["write [[medium]] with two brackets"]),
        (line(8, "# no name"), 7, &["[[medium]] number 1 needs `name`"]),
        (line(10, "kind = \"dfc\""), 10, &["no medium is called `dfc`", "did you mean `dcf`?"]),
        (line(10, "sensrange = \"1m\""), 10, &["unknown key `sensrange` in [[medium]] `air`", "`sense_range`?"]),
        (line(10, "sense_range = 5"), 10, &["`sense_range` is a distance and needs a unit", "\"5m\""]),
        (line(10, "shadowing = \"90dB\""), 10, &["`shadowing` is \"90dB\"", "from \"0dB\" to \"40dB\""]),
        (line(11, "rate = \"11Mbit/s\""), 11, &["`rate` cannot be `11Mbit/s`; there are 6Mbit/s, 9Mbit/s, 12Mbit/s"]),
        (line(11, "rate = \"fast\""), 11, &["`rate` cannot be `fast`; there are 6Mbit/s", "54Mbit/s"]),
        (line(11, "rate = 54e6"), 11, &["`rate` is a text in quotes, not a number; there are 6Mbit/s", "54Mbit/s"]),
        (line(11, "control_rate = \"9Mbps\""), 11, &["cannot be `9Mbps`; there are auto, 6Mbit/s, 12Mbit/s, 24Mbit/s"]),
        (line(11, "adaptation = \"afr\""), 11, &["`adaptation` cannot be `afr`", "did you mean `arf`?"]),
        (line(9, "layout = { kind = \"ring\" }"), 9, &["`kind` cannot be `ring`", "there are chain, star, mesh"]),
        (line(9, "layout = { rows = 2 }"), 9, &["`rows` has no meaning in a chain"]),
        (line(9, "layout = { kind = \"mesh\", rows = 40, columns = 40 }"), 9, &["1600 stations", "1000"]),
        (line(9, "layout = { stations = 0 }"), 9, &["`stations` is a whole number from 1"]),
        (line(13, "node = \"n9\""), 12, &["the layout has no such station", "needs `at ="]),
        (line(14, "at = [\"0m\"]"), 14, &["`at` has two coordinates", "not 1"]),
        (line(14, "at = [0, \"5m\"]"), 14, &["`at` is a distance and needs a unit"]),
        (plus("at = \"here\""), 15, &["`at` is a place, like [\"0m\", \"250m\"]"]),
        (plus("[[medium.station]]\nnode = \"n2\""), 15, &["`n2` is a station of this medium already"]),
        (plus("clock_tick = \"1500ns\""), 15, &["whole number of microseconds"]),
        (
            plus("[[medium.interferer]]\nat = [\"0m\", \"0m\"]\non = \"0s\"\noff = \"1s\""),
            15,
            &["`on` and `off` of an interferer have to be at least 1us"],
        ),
        (plus("[[medium]]\nname = \"air\"\nlayout = {}"), 15, &["a medium called `air` exists already"]),
        (plus("[[medium]]\nname = \"b\""), 15, &["[[medium]] `b` has no stations"]),
        (plus("[[link]]\nname = \"n1->n2\"\nrate = \"10Mbit/s\""), 17, &["`dcf` has no rate 10Mbit/s"]),
        (plus("[[link]]\nname = \"n1->n2\"\ndelay = \"1ms\""), 17, &["`delay` does not belong", "distance gives it"]),
        (plus("[[link]]\nname = \"n1->n2\"\nqueue = \"red\""), 17, &["`queue`", "medium `air`", "one station"]),
        (
            plus("[[link]]\nname = \"n1->n2\"\nchannel = [{ kind = \"trace\", file = \"steps.trace\" }]"),
            17,
            &["sets the link's rate cannot be used on a medium"],
        ),
        (plus("[[link]]\nfrom = \"n1\"\nto = \"n2\""), 15, &["a link called `n1->n2` exists already"]),
    ];
    for (text, line, parts) in &cases {
        check(&[(text, *line, parts)]);
    }
}
