//! Ways that are not the shortest, or change, in the laboratory. Needs root, so `make measure` runs it.

use std::path::Path;

use super::measured::measured;
use crate::common::{lab, lab_with, number};
use crate::figures::{Better, figure};
use crate::lab::{BOTH, CHANGES, PINNED, half_duplex, two_ways};
use explicate_build::tables::{Data, Table};
use explicate_scenario::model::Scenario;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{Options, run_once};

/// Of both ways, in both directions.
const LINKS: [&str; 4] = ["r1->r2", "r1->r3", "r2->r1", "r3->r1"];

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
fn agree(name: &str, text: &str, flows: &[&str], links: &[&str]) {
    let scenario = Scenario::parse(text, "ways", Path::new("."), &[]).unwrap();
    let mut run = run_once(&scenario, 0, &Options::default(), &|_, _| true).unwrap();
    let tables = measure(&scenario, 0, &mut run, "test");
    let told = lab(text, &[]);
    for flow in flows {
        for column in ["goodput_bps", "rtt_mean_ms"] {
            let (asked, real) =
                (simulated(&tables.flows, "flow", flow, column), number(&told, "flows", "flow", flow, column));
            figure(&format!("ways: {name}, error of {column}, {flow}"), (real / asked - 1.0).abs(), "", Better::Less);
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
    let told = lab_with(&two_ways(PINNED, "3s", "8s"), "--kernel", &["long=cubic"]);
    for (flow, least, most) in [("long.0", 10e6, 16e6), ("short.0", 5e6, 8e6)] {
        let rate = number(&told, "flows", "flow", flow, "goodput_bps");
        assert!((least..most).contains(&rate), "{flow}: {rate}");
    }
}

/// One laboratory after the other: several at once keep two processors so busy that round trips take some milliseconds longer.
#[test]
#[ignore = "needs root: make measure"]
fn flows_go_where_their_path_says() {
    let text = two_ways(PINNED, "3s", "8s");
    measured(|| agree("pinned", &text, &["long.0", "back.0", "short.0"], &LINKS));
    measured(kernel_takes_the_path_of_its_group);
}

/// Measured from before the change to after it, so that the time of the change shows too.
#[test]
#[ignore = "needs root: make measure"]
fn flows_go_where_routes_change_to() {
    let text = two_ways(CHANGES, "2s", "8s");
    measured(|| agree("changed", &text, &["f.0"], &LINKS));
}

/// Both directions share a line between two routers.
#[test]
#[ignore = "needs root: make measure"]
fn half_duplex_links_take_turns() {
    let text = half_duplex(&two_ways(BOTH, "3s", "8s"));
    measured(|| agree("half duplex", &text, &["there.0", "back.0"], &["r1->r2", "r2->r1"]));
}

/// A router that does not decrement the TTL hides a cloud from XCP-i, whose narrow link then drops; behind routers it is seen.
#[test]
#[ignore = "needs root: make measure"]
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
        figure("ways: drops behind routers for one behind bridges", seen / hidden, "", Better::Less);
        assert!(hidden > 200.0 && seen < hidden / 2.0, "{hidden} dropped behind bridges, {seen} behind routers");
    });
}
