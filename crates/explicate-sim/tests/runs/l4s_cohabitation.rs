//! What happens to explicit protocols, and to their neighbours, in the two queues of L4S: a path
//! of docs/l4s.md, with one seed.

use crate::outcome::{Outcome, mean, run};

/// One flow of a protocol and one of another, over 40 Mbit/s and 20 ms; `router` of all ports.
fn beside(protocol: &str, params: &str, other: &str, router: &str) -> Outcome {
    run(&format!(
        r#"
duration = "20s"
warmup = "5s"
[topology]
kind = "dumbbell"
pairs = 2
[topology.access]
rate = "1Gbit/s"
delay = "1ms"
{router}
[topology.bottleneck]
rate = "40Mbit/s"
delay = "8ms"
queue = {{ kind = "dualpi2", limit = "1000pkt" }}
{router}
[[flows]]
name = "one"
protocol = "{protocol}"
params = {{ {params} }}
[[flows]]
name = "other"
protocol = "{other}"
[sampling]
every = "5ms"
of = ["queue", "router"]
"#
    ))
}

/// Rates in Mbit/s, the delay of L that 99 % do not exceed, and the mean delay of C, ms.
struct Shares {
    one: f64,
    other: f64,
    low: f64,
    classic: f64,
}

fn shares(done: &Outcome) -> Shares {
    let mut low = done.samples("r1->r2", "low_delay_ms", 5.0);
    low.sort_by(f64::total_cmp);
    let classic = mean(&done.samples("r1->r2", "classic_delay_ms", 5.0));
    let rate = |name: &str| done.flows(name, "goodput_bps")[0] / 1e6;
    Shares { one: rate("one"), other: rate("other"), low: low[low.len() * 99 / 100], classic }
}

/// Beside CUBIC, and beside Prague.
fn pairs(protocol: &str, params: &str, router: &str) -> [Shares; 2] {
    ["cubic", "prague"].map(|other| shares(&beside(protocol, params, other, router)))
}

const PLAIN: &str = "router = \"none\"";

/// What the page's rule says, with room for other seeds: beside them CUBIC and Prague keep their delay and more than half of
/// the line, except beside DCTCP and an XCP that ignores what plain routers do.
#[test]
fn what_l4s_does_to_others() {
    for (what, protocol, params) in [
        ("CUBIC", "cubic", ""),
        ("CUBIC with ECN", "cubic", "ecn = true"),
        ("TCP Prague", "prague", ""),
        ("XCP", "xcp", ""),
    ] {
        for pair in pairs(protocol, params, PLAIN) {
            assert!((0.3..2.2).contains(&(pair.one / pair.other)), "{what}: {} {}", pair.one, pair.other);
            assert!(pair.low < 2.0, "{what}: {} ms", pair.low);
        }
    }
    for (what, protocol, params) in [("DCTCP", "dctcp", ""), ("XCP without its guard", "xcp", "guard = \"off\"")] {
        for pair in pairs(protocol, params, PLAIN) {
            assert!(pair.other < 0.1 * 40.0, "{what}: {}", pair.other);
        }
    }
    for (what, protocol) in [("VCP", "vcp"), ("ABC", "abc")] {
        for router in ["", PLAIN] {
            let with = if router.is_empty() { " with its router" } else { "" };
            for pair in pairs(protocol, "", router) {
                assert!(pair.one < 0.2 * 40.0 && pair.other > 0.5 * 40.0, "{what}{with}: {} {}", pair.one, pair.other);
                assert!(pair.classic < 1.5 * 15.0, "{what}{with}: {} ms", pair.classic);
            }
        }
    }
}
