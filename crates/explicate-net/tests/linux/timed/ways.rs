//! Ways that are not the shortest, or change, in the laboratory. Needs root, so `make linux` runs it.

use std::path::Path;
use std::process::Command;

use crate::common::{PROGRAM, lab, last_json, measured, number};
use explicate_build::tables::{Data, Table};
use explicate_scenario::model::Scenario;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{Options, run_once};

/// Of both ways, in both directions.
const LINKS: [&str; 4] = ["r1->r2", "r1->r3", "r2->r1", "r3->r1"];

/// A short way over r2 and a long one over r3, between the same hosts: 46 and 126 ms there and back, so that some milliseconds in
/// which the machine does something else are little.
const TWO_WAYS: &str = r#"
duration = "DURATION"
warmup = "WARMUP"
node = [
    { name = "a" }, { name = "r1" }, { name = "r2" }, { name = "r3", kind = "router" }, { name = "r4" }, { name = "b" },
]
link = [
    { from = "a", to = "r1", duplex = true, rate = "100Mbit/s", delay = "1ms" },
    { from = "r1", to = "r2", duplex = true, rate = "8Mbit/s", delay = "20ms" },
    { from = "r2", to = "r4", duplex = true, rate = "100Mbit/s", delay = "1ms" },
    { from = "r1", to = "r3", duplex = true, rate = "16Mbit/s", delay = "60ms" },
    { from = "r3", to = "r4", duplex = true, rate = "100Mbit/s", delay = "1ms" },
    { from = "r4", to = "b", duplex = true, rate = "100Mbit/s", delay = "1ms" },
]
"#;

/// Three groups: by the long way, the other way round by the long way, and by the shortest. With a pace, because flows in opposite
/// directions compress each other's acknowledgements (Zhang, Shenker and Clark 1991), and their rates without one depend on chance: 8.7 to
/// 11.8 Mbit/s on 16, simulated as well as measured.
const PINNED: &str = r#"
[[flows]]
name = "long"
protocol = "xcp"
params = { paced = true }
path = ["a", "r1", "r3", "r4", "b"]
[[flows]]
name = "back"
protocol = "xcp"
params = { paced = true }
path = ["b", "r4", "r3", "r1", "a"]
[[flows]]
name = "short"
protocol = "xcp"
params = { paced = true }
from = "a"
to = "b"
"#;

/// From 3 s on packets from r1 take the long path; packets in the other direction still take the short one.
const CHANGES: &str = r#"
[[flows]]
name = "f"
protocol = "xcp"
from = "a"
to = "b"
[[reroute]]
at = "3s"
without = ["r1->r2"]
"#;

/// More in both directions than the short way carries if these take turns, by fixed windows.
const BOTH: &str = r#"
[[flows]]
name = "there"
protocol = "reno/sack"
params = { receiver_window = 60 }
from = "a"
to = "b"
[[flows]]
name = "back"
protocol = "reno/sack"
params = { receiver_window = 30 }
from = "b"
to = "a"
"#;

fn half_duplex(text: &str) -> String {
    text.replace("\"8Mbit/s\"", "\"8Mbit/s\", half_duplex = true, queue = \"unlimited\"")
}

fn two_ways(flows: &str, warmup: &str, duration: &str) -> String {
    TWO_WAYS.replace("WARMUP", warmup).replace("DURATION", duration) + flows
}

/// The row of a name in a simulated table.
fn simulated(table: &Table, key: &str, name: &str, column: &str) -> f64 {
    let Some(Data::Str(names)) = table.get(key) else { panic!("{key}") };
    let row = names.iter().position(|n| n == name).unwrap();
    match table.get(column) {
        Some(Data::F64(values)) => values[row],
        Some(Data::U64(values)) => values[row] as f64,
        _ => panic!("{column}"),
    }
}

/// Runs a text in both worlds: rates and round-trip times of these flows, and the use of these links, agree within a tenth.
fn agree(text: &str, flows: &[&str], links: &[&str]) {
    let scenario = Scenario::parse(text, "ways", Path::new("."), &[]).unwrap();
    let mut run = run_once(&scenario, 0, &Options::default(), &|_, _| true).unwrap();
    let tables = measure(&scenario, 0, &mut run, "test");
    let told = lab(text, &[]);
    for flow in flows {
        for column in ["goodput_bps", "rtt_mean_ms"] {
            let (asked, real) =
                (simulated(&tables.flows, "flow", flow, column), number(&told, "flows", "flow", flow, column));
            assert!((real / asked - 1.0).abs() < 0.1, "{column} of {flow}: {real}, simulated {asked}");
        }
    }
    for link in links {
        let column = "utilisation";
        let (share, real) =
            (simulated(&tables.links, "link", link, column), number(&told, "links", "link", link, column));
        assert!((real - share).abs() < 0.1, "{link}: {real}, simulated {share}");
    }
}

/// The kernel's TCP takes the way of the group that it carries.
fn kernel_takes_the_path_of_its_group() {
    let path = std::env::temp_dir().join(format!("exptest-{}-pinned.toml", std::process::id()));
    std::fs::write(&path, two_ways(PINNED, "3s", "8s")).unwrap();
    let done = Command::new(PROGRAM).args(["lab", "--json", "--kernel", "long=cubic"]).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let told = last_json(&String::from_utf8_lossy(&done.stdout));
    for (flow, least, most) in [("long.0", 10e6, 16e6), ("short.0", 5e6, 8e6)] {
        let rate = number(&told, "flows", "flow", flow, "goodput_bps");
        assert!((least..most).contains(&rate), "{flow}: {rate}");
    }
}

/// One laboratory after the other: several at once keep two processors so busy that round trips take some milliseconds longer.
#[test]
#[ignore = "needs root: make linux"]
fn flows_go_where_their_path_says() {
    let text = two_ways(PINNED, "3s", "8s");
    measured(|| agree(&text, &["long.0", "back.0", "short.0"], &LINKS));
    measured(kernel_takes_the_path_of_its_group);
}

/// Measured from before the change to after it, so that the time of the change shows too.
#[test]
#[ignore = "needs root: make linux"]
fn flows_go_where_routes_change_to() {
    let text = two_ways(CHANGES, "2s", "8s");
    measured(|| agree(&text, &["f.0"], &LINKS));
}

/// Both directions share a line between two routers.
#[test]
#[ignore = "needs root: make linux"]
fn half_duplex_links_take_turns() {
    let text = half_duplex(&two_ways(BOTH, "3s", "8s"));
    measured(|| agree(&text, &["there.0", "back.0"], &["r1->r2", "r2->r1"]));
}

/// A router that does not decrement the TTL hides a cloud from XCP-i, whose narrow link then drops; behind routers it is seen.
#[test]
#[ignore = "needs root: make linux"]
fn bridges_hide_a_cloud_that_routers_show() {
    let tunnel = include_str!("../../../../../scenarios/xcp-i-tunnel.toml")
        .replace("\"30s\"", "\"8s\"")
        .replace("\"5s\"\n", "\"2s\"\n");
    measured(|| {
        let lost = |text: &str| {
            let told = lab(text, &[]);
            ["u->t1", "t1->t2"].map(|link| number(&told, "links", "link", link, "drops_total")).iter().sum::<f64>()
        };
        let routers = tunnel.replace("bridge", "router");
        let (hidden, seen) = (lost(&tunnel), lost(&routers));
        assert!(hidden > 200.0 && seen < hidden / 2.0, "{hidden} dropped behind bridges, {seen} behind routers");
    });
}

/// Scenarios that cables cannot represent are rejected, with the reason and an alternative.
#[test]
#[ignore = "needs root: make linux"]
fn what_is_no_cable_is_refused() {
    let path = std::env::temp_dir().join(format!("exptest-{}-refused.toml", std::process::id()));
    let half = half_duplex(&two_ways(CHANGES, "1s", "2s")).replace("\"xcp\"", "\"xcp_i\"");
    let air = include_str!("../../../../../scenarios/wifi-mesh.toml").to_string();
    for (text, why, instead) in
        [(half, "half duplex", "each direction a rate"), (air, "is wireless", "put links with channels")]
    {
        std::fs::write(&path, text).unwrap();
        let done = Command::new(PROGRAM).args(["lab", "--dry-run"]).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).to_string();
        assert!(!done.status.success() && said.contains(why) && said.contains(instead), "{said}");
    }
    std::fs::remove_file(&path).unwrap();
}
