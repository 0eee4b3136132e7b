//! Several queues at one link, as scenarios ask for them.

use crate::outcome::{Outcome, mean, run};

const BESIDE: &str = include_str!("../../../../scenarios/xcp-beside-tcp.toml");

fn rate(o: &Outcome, group: &str) -> f64 {
    o.flows(group, "throughput_bps").iter().sum()
}

/// The shares of the line are the weights', whatever the numbers of flows; XCP keeps its own queue short beside TCP's, and
/// its flows get equal parts of the class's share.
#[test]
fn xcp_and_tcp_share_by_weight() {
    for (weight, tcp_flows) in [(2, 5), (1, 5), (2, 1)] {
        let text = BESIDE.replace("weight = 2", &format!("weight = {weight}"));
        let text = text.replace("count = 5\nprotocol = \"sack\"", &format!("count = {tcp_flows}\nprotocol = \"sack\""));
        let o = run(&text);
        let (xcp, tcp) = (rate(&o, "xcp"), rate(&o, "tcp"));
        let expected = 30e6 * weight as f64 / (weight as f64 + 1.0);
        assert!((xcp / expected - 1.0).abs() < 0.02, "XCP has {xcp} of {expected}");
        assert!((tcp / (30e6 - expected) - 1.0).abs() < 0.05, "TCP has {tcp} of {}", 30e6 - expected);
        let each = o.flows("xcp", "throughput_bps");
        assert!(each.iter().all(|x| (x / mean(&each) - 1.0).abs() < 0.02), "{each:?}");
        let queue = |class| mean(&o.samples(&format!("r1->r2/{class}"), "queue_packets", 20.0));
        let all = mean(&o.samples("r1->r2", "queue_packets", 20.0));
        assert!((queue("explicit") + queue("other") - all).abs() < 1e-9 * all);
        assert!(queue("explicit") < 3.0, "{}", queue("explicit"));
        assert!((all - o.link("r1->r2", "queue_mean_packets")).abs() < 0.1 * all, "samples tell what the table tells");
        assert!(o.link("r1->r2", "drops_early") > 0.0 && o.link("r1->r2", "drops_overflow") == 0.0);
        assert!(o.link("r1->r2", "utilisation") > 0.98);
    }
}

/// What the weights are worth: in one queue the same flows give TCP nearly everything.
#[test]
fn without_classes_tcp_pushes_xcp_aside() {
    let (before, after) = BESIDE.split_once("classes = [").expect("there are classes");
    let (_, after) = after.split_once("\n]\n").expect("the list ends");
    let o = run(&format!("{before}{after}"));
    assert!(rate(&o, "xcp") < 0.2 * rate(&o, "tcp"), "{} {}", rate(&o, "xcp"), rate(&o, "tcp"));
}

/// Weights that move: flows have equal windows in both classes, whatever their numbers.
#[test]
fn moving_weights_are_fair_to_each_flow() {
    for (xcp_flows, tcp_flows) in [(3, 9), (6, 6), (9, 3)] {
        let text = BESIDE.replace("classes = [", "kappa = 0.01\nclasses = [").replace("weight = 2", "weight = 1");
        let text = text
            .replace("of = [\"queue\"", "of = [\"router\", \"queue\"")
            .replace("duration = \"40s\"\nwarmup = \"20s\"", "duration = \"120s\"\nwarmup = \"60s\"");
        let text = text.replace("count = 5\nprotocol = \"xcp\"", &format!("count = {xcp_flows}\nprotocol = \"xcp\""));
        let text = text.replace("count = 5\nprotocol = \"sack\"", &format!("count = {tcp_flows}\nprotocol = \"sack\""));
        let o = run(&text.replace("pairs = 10", "pairs = 12"));
        let window = |group| {
            let (rates, rtts) = (o.flows(group, "throughput_bps"), o.flows(group, "rtt_mean_ms"));
            mean(&rates.iter().zip(rtts).map(|(rate, ms)| rate * ms / 8e6).collect::<Vec<_>>())
        };
        let (xcp, tcp) = (window("xcp"), window("tcp"));
        assert!((0.8..1.25).contains(&(xcp / tcp)), "{xcp} {tcp}");
    }
}
