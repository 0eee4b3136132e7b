//! Paper I, section IV: XCP-i has the same results across clouds of plain routers as XCP without them.

use crate::common;
use crate::outcome::{Outcome, mean, run};
use explicate_core::agent::Address;
use explicate_sim::simulation::Options;

const FIG6: &str = include_str!("../../../../scenarios/xcp-i-fig6.toml");
const FIG8: &str = include_str!("../../../../scenarios/xcp-i-fig8.toml");
const FIG10: &str = include_str!("../../../../scenarios/xcp-i-fig10.toml");
const FIG12: &str = include_str!("../../../../scenarios/xcp-i-fig12.toml");

/// The same network with XCP everywhere.
fn all_xcp(text: &str) -> String {
    text.replace("xcp_i", "xcp").replace("router = \"none\"\n", "")
}

/// The same with this controller wherever the scenario names none.
fn with_router(text: &str, table: &str) -> String {
    let (mut out, mut blocks) = (String::new(), text.split_inclusive("\n\n"));
    for block in &mut blocks {
        out += block.trim_end();
        if block.contains("[[link]]") && !block.contains("router =") {
            out += &format!("\nrouter = {table}");
        }
        out += "\n\n";
    }
    out
}

/// IP Mbit/s of a group's flow over the run, its window from 5 s on, and what went wrong.
#[derive(Debug)]
struct Flow {
    rate: f64,
    window: f64,
    spread: f64,
    timeouts: f64,
}

fn flow(done: &Outcome, group: &str) -> Flow {
    let windows = done.samples(&format!("{group}.0"), "cwnd", 5.0);
    let window = mean(&windows);
    let variance = mean(&windows.iter().map(|w| (w - window) * (w - window)).collect::<Vec<_>>());
    Flow {
        rate: done.flows(group, "throughput_bps")[0] / 1e6,
        window,
        spread: variance.sqrt() / window,
        timeouts: done.flows(group, "timeouts")[0],
    }
}

/// I-fig6: stable, as good as all-XCP, no timeout and no loss.
#[test]
fn two_clouds_do_no_harm() {
    let (plain, done) = (run(&all_xcp(FIG6)), run(FIG6));
    let (reference, bulk) = (flow(&plain, "bulk"), flow(&done, "bulk"));
    let paper = run(&with_router(FIG6, "{ kind = \"xcp_i\", law = \"paper\" }"));
    let by_paper = flow(&paper, "bulk");
    let alike =
        (bulk.rate / reference.rate - 1.0).abs() <= 0.02 && (bulk.window / reference.window - 1.0).abs() <= 0.05;
    assert!(alike, "{bulk:?}, all-XCP {reference:?}");
    assert!(bulk.spread <= 0.05 && bulk.timeouts == 0.0 && done.drops() == 0.0, "{bulk:?}");
    let seconds: Vec<f64> = done.samples("c1->r1", "throughput_bps", 5.0).chunks(10).map(mean).collect();
    let (average, most) = (mean(&seconds), seconds.iter().fold(0.0f64, |most, s| most.max(*s)));
    let least = seconds.iter().fold(f64::MAX, |least, s| least.min(*s));
    assert!((most - least) / average <= 0.03);
    // Eq. 1 does not see the queue in the cloud, so its window is larger; the rest holds.
    assert!((by_paper.rate / reference.rate - 1.0).abs() <= 0.02, "{by_paper:?}, all-XCP {reference:?}");
    assert!(by_paper.spread <= 0.05 && by_paper.timeouts == 0.0 && paper.drops() == 0.0);
}

/// I-fig8: 28 and 10 Mbit/s within 5 %, as all-XCP, one virtual router for each cloud.
#[test]
fn clouds_that_merge() {
    let (plain, done) = (run(&all_xcp(FIG8)), run(FIG8));
    for (group, paper) in [("i", 28.0), ("j", 10.0)] {
        let (reference, ours) = (flow(&plain, group), flow(&done, group));
        assert!((ours.rate / paper - 1.0).abs() <= 0.05, "{group}");
        assert!((ours.rate / reference.rate - 1.0).abs() <= 0.03, "{group}");
    }
    assert_eq!(done.drops(), 0.0);
    let scenario = common::scenario(&FIG8.replace("60s", "5s"));
    let ended = common::run(&scenario, &Options::default());
    let r1 = scenario.nodes.iter().position(|n| n == "r1").expect("named") as u32;
    let mut routers = 0.0;
    ended.engine.probe_agent(Address(r1), &mut |name, value| {
        if name == "virtual_routers" {
            routers = value;
        }
    });
    assert_eq!(routers, 2.0);
}

/// I-fig10: 5 Mbit/s each inside the cloud, fair outside, never more than 50.
#[test]
fn clouds_compete_with_an_xcp_path() {
    let done = run(FIG10);
    let rates: Vec<f64> = ["j0", "j1", "i", "k"].iter().map(|g| flow(&done, g).rate).collect();
    assert!(rates[..2].iter().all(|r| (4.5..5.2).contains(r)) && (rates[0] - rates[1]).abs() <= 0.3, "{rates:?}");
    assert!((rates[2] / rates[3] - 1.0).abs() <= 0.1, "{rates:?}");
    let sum = done.samples("r1->r2", "throughput_bps", 0.0);
    let seconds: Vec<f64> = sum.chunks(10).map(|bin| mean(bin) / 1e6).collect();
    assert!(seconds.iter().all(|s| *s <= 50.5), "{seconds:?}");
    assert!(mean(&seconds[10..]) >= 0.93 * 50.0, "{}", mean(&seconds[10..]));
    assert_eq!(done.drops(), 0.0);
}

/// I-fig12: 25 Mbit/s each.
#[test]
fn a_cloud_that_forks() {
    let done = run(FIG12);
    for group in ["i", "j"] {
        let ours = flow(&done, group);
        assert!((23.5..25.5).contains(&ours.rate), "{}", ours.rate);
    }
    assert_eq!(done.drops(), 0.0);
}

/// Four results of the cloud in a round trip: eq. 1 hands out one, and both flows have their half of the 50 Mbit/s.
#[test]
fn results_that_come_early_wait() {
    let done = run(&with_router(FIG12, "{ kind = \"xcp_i\", law = \"paper\", period = \"30ms\" }"));
    for group in ["i", "j"] {
        let ours = flow(&done, group);
        assert!((23.5..25.5).contains(&ours.rate), "{}", ours.rate);
    }
}

/// A chain of links: rate in Mbit/s, and whether the router at its beginning is plain.
fn chain(protocol: &str, links: &[(u32, bool)]) -> String {
    let mut text = String::from("stack = \"ns2\"\nduration = \"30s\"\nwarmup = \"5s\"\n");
    for node in 0..=links.len() {
        text += &format!("[[node]]\nname = \"n{node}\"\n");
    }
    for (i, (rate, plain)) in links.iter().enumerate() {
        let plain = if *plain { "router = \"none\"" } else { "" };
        text += &format!(
            "\n[[link]]\nfrom = \"n{i}\"\nto = \"n{}\"\nduplex = true\nrate = \"{rate}Mbit/s\"\ndelay = \"10ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"1.0bdp\" }}\n{plain}\n",
            i + 1
        );
    }
    let last = links.len();
    text + &format!(
        "\n[[flows]]\nname = \"bulk\"\nprotocol = \"{protocol}\"\nparams = {{ guard = \"off\" }}\npacket = \"1000B\"\nfrom = \"n0\"\nto = \"n{last}\"\n\
         [sampling]\nof = [\"cwnd\"]\n"
    )
}

/// I-fig4: the sender answers requests, the receiver has virtual routers, or both.
#[test]
fn hosts_do_the_part_of_routers() {
    let sender = [(80, false), (30, true), (80, false)];
    let receiver = [(80, false), (80, false), (30, true)];
    let both = [(80, false), (50, true), (80, false), (30, true)];
    for (case, links) in [("sender", &sender[..]), ("receiver", &receiver), ("both", &both)] {
        let done = run(&chain("xcp_i", links));
        let ours = flow(&done, "bulk");
        assert!(ours.rate >= 0.95 * 30.0 && done.drops() == 0.0, "{case}: {} {}", ours.rate, done.drops());
        // Plain XCP, where no router asks (I-fig4-d).
        let plain = run(&chain("xcp", links));
        let xcp = flow(&plain, "bulk");
        assert!(plain.drops() > 1000.0 && xcp.timeouts > 0.0, "{case}");
    }
    // The last router does the receiver's part on request.
    let asks = with_router(&chain("xcp_i", &receiver), "{ kind = \"xcp_i\", receiver = \"ask\" }");
    let done = run(&asks);
    let ours = flow(&done, "bulk");
    assert!((ours.rate / 29.938 - 1.0).abs() <= 0.03 && done.drops() == 0.0, "{} {}", ours.rate, done.drops());
    // Without its part of the work, the cloud before the receiver is unknown.
    let idle = with_router(&chain("xcp_i", &receiver), "{ kind = \"xcp_i\", receiver = \"nothing\" }");
    assert!(run(&idle).drops() > 0.0);
}

/// I-txt-real: probes through the simulated cloud instead of the oracle.
#[test]
fn real_estimators_keep_the_clouds_full() {
    let text = FIG6.replace("60s", "40s");
    for (estimator, weight) in [("delay_trend", 0.25), ("packet_train", 0.25), ("spruce", 0.25)] {
        let table = format!("{{ kind = \"xcp_i\", estimator = \"{estimator}\", result_weight = {weight} }}");
        let done = run(&with_router(&text, &table).replace("40s\"", "40s\"\nwarmup = \"10s\""));
        let bulk = flow(&done, "bulk");
        let loss = done.drops() / (bulk.rate * 1e6 / 8000.0 * 40.0);
        assert!(bulk.rate >= 0.85 * 30.0 && loss < 0.01, "{estimator}: {bulk:?}, loss {loss}");
    }
}

/// A router has one agent for all its ports. `e` names an estimator at its port to the cloud, and none at the one before that
/// in the file: it measures with probes, and so does the other end of each of its clouds.
#[test]
fn an_estimator_that_one_port_names_is_the_routers() {
    let probed = |router: &str| {
        let text = FIG6.replace("duration = \"60s\"", "duration = \"5s\"").replace("\"cwnd\"]", "\"agent\"]");
        let done = run(&format!("{text}\n[[link]]\nname = \"e->c1\"\nrouter = {{ kind = \"xcp_i\"{router} }}\n"));
        done.samples("e", "probe_bytes", 4.0).last().copied().expect("sampled")
    };
    assert_eq!(probed(""), 0.0, "an oracle sends none");
    assert!(probed(", estimator = \"packet_train\"") > 10_000.0);
}
