//! Warnings: the scenario runs, but hardly as it was meant.

use super::{plus, with};
use crate::support;

#[test]
fn warnings() {
    let warning = |text: &str| {
        let s = support::parse(text);
        assert_eq!(s.warnings.len(), 1, "{:?}", s.warnings);
        support::message(&s.warnings[0]);
        s.warnings[0].clone()
    };
    assert!(warning(&with(1, "warmup = \"10s\"")).contains("nothing is measured"));
    // Times are said as they were written: 15 s are no 15.000000000000002.
    assert!(warning(&with(1, "warmup = \"15s\"")).contains("the warmup (15s) is not shorter than"));
    let tiny = with(6, "bottleneck = { queue = { limit = \"500B\" } }");
    assert!(warning(&tiny).starts_with("x.toml:6:34: the buffer of r1->r2 is shorter than one packet"));
    let other = with(6, "bottleneck = { router = \"vcp\" }");
    assert!(warning(&other).starts_with("x.toml:6:25: the flows of `one` use xcp, but no xcp router runs on r1->r2"));
    assert!(warning(&plus("start = \"10s\"")).contains("start after the end"));
    assert!(warning(&plus("start = \"5s\"\nstop = \"5s\"")).contains("stop before they start"));
}

/// Protocols may share a controller; a port has one.
#[test]
fn flows_that_want_different_controllers() {
    let beside = |protocol: &str| support::parse(&plus(&format!("[[flows]]\nname = \"two\"\nprotocol = {protocol:?}")));
    for protocol in ["xcp_r", "video", "greedy", "cubic"] {
        let s = beside(protocol);
        let names: Vec<&str> = s.links[0].routers.iter().map(|r| r.protocol.name()).collect();
        assert_eq!((names, s.warnings.len()), (vec!["xcp"], 0), "{protocol}");
    }
    let torn = beside("xcp_window").warnings;
    let said = "a port has one router, but flows need xcp and xcp_window on ";
    let [torn] = &torn[..] else { panic!("{torn:?}") };
    assert!(torn.starts_with("x.toml:13:12: ") && support::message(torn).starts_with(said), "{torn}");
    assert!(torn.contains(": xcp runs; choose protocols that xcp answers"), "{torn}");
}

/// What measures clouds is the router's, not a port's.
#[test]
fn ports_that_want_their_router_to_measure_differently() {
    let warnings = |estimator: &str| {
        let link = |name: &str, estimator: &str| {
            format!(
                "[[link]]\nname = {name:?}\nrouter = {{ kind = \"xcp_i\", estimator = {estimator:?}, alpha = 0.3 }}\n"
            )
        };
        let warnings = support::parse(&plus(&(link("r1->r2", "spruce") + &link("r1->s0", estimator)))).warnings;
        support::messages(&warnings).into_iter().map(str::to_string).collect::<Vec<_>>()
    };
    let said = "`r1` has one agent for all its ports, but r1->r2 and r1->s0 differ in `estimator` of xcp_i: r1->r2 goes; write the same `estimator` at both";
    assert!(warnings("packet_train").iter().any(|w| w == said), "{:?}", warnings("packet_train"));
    assert!(!warnings("spruce").iter().any(|w| w.contains("agent")));
    let one =
        with(6, "bottleneck = { router = { kind = \"xcp_i\", estimator = \"spruce\" } }").replace("xcp/", "xcp_i/");
    assert!(!support::parse(&one).warnings.iter().any(|w| w.contains("agent")), "the others say nothing");
    // Nor does the first port: what the second names counts.
    let second = "[[link]]\nname = \"r1->s0\"\nrouter = { kind = \"xcp_i\", estimator = \"spruce\" }\n";
    let second = plus(second).replace("xcp/", "xcp_i/");
    assert!(!support::parse(&second).warnings.iter().any(|w| w.contains("agent")));
}
