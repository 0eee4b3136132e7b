//! Paper 001, section IV: XCP-i does across clouds of plain routers what XCP does without them.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

mod common;
#[path = "common/outcome.rs"]
mod outcome;
use outcome::{Outcome, mean, run};

const FIG6: &str = include_str!("../../../scenarios/xcp-i-fig6.toml");
const FIG8: &str = include_str!("../../../scenarios/xcp-i-fig8.toml");
const FIG10: &str = include_str!("../../../scenarios/xcp-i-fig10.toml");
const FIG12: &str = include_str!("../../../scenarios/xcp-i-fig12.toml");

/// IP Mbit/s of a group from `from` seconds on, in bins of 1 s.
fn bins(done: &Outcome, flow: &str, from: f64) -> Vec<f64> {
    done.samples(flow, "cwnd", from)
}

fn tell(name: &str, done: &Outcome, groups: &[&str]) {
    for group in groups {
        let rate = done.flows(group, "throughput_bps")[0] / 1e6;
        let window = bins(done, &format!("{group}.0"), 5.0);
        println!(
            "{name} {group}: {rate:.3} Mbit/s, timeouts {}, retransmissions {}, cwnd mean {:.1} min {:.1} max {:.1}",
            done.flows(group, "timeouts")[0],
            done.flows(group, "retransmissions")[0],
            mean(&window),
            window.iter().copied().fold(f64::INFINITY, f64::min),
            window.iter().copied().fold(0.0, f64::max),
        );
    }
    println!("{name}: drops {}", done.drops());
}

#[test]
fn explore() {
    for (name, text, groups) in [
        ("fig6", FIG6, &["bulk"][..]),
        ("fig8", FIG8, &["i", "j"]),
        ("fig10", FIG10, &["j0", "j1", "i", "k"]),
        ("fig12", FIG12, &["i", "j"]),
    ] {
        let all_xcp = text.replace("xcp_i", "xcp").replace("router = \"none\"\n", "");
        tell(&format!("{name} xcp"), &run(&all_xcp), groups);
        tell(name, &run(text), groups);
        tell(&format!("{name} blind"), &run(&text.replace("xcp_i", "xcp")), groups);
    }
}
