//! Explicit flows and ordinary TCP at one port that divides its line by flows.

use crate::outcome::{Outcome, mean, run};

/// Flows of two protocols at 20 Mbit/s and 40 ms, with the text of the shared link.
fn beside(link: &str, (explicit, n): (&str, u32), (ordinary, m): (&str, u32)) -> Outcome {
    run(&beside_text(link, (explicit, n), (ordinary, m)))
}

fn beside_text(link: &str, (explicit, n): (&str, u32), (ordinary, m): (&str, u32)) -> String {
    let group = |name: &str, protocol: &str, count: u32| {
        let start = "start = { spread = \"1s\" }";
        format!("[[flows]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\ncount = {count}\n{start}\n")
    };
    let some = |name, protocol, count| if count > 0 { group(name, protocol, count) } else { String::new() };
    format!(
        "duration = \"60s\"\nwarmup = \"20s\"\nseed = 3\n\
         [topology]\nkind = \"dumbbell\"\npairs = {}\n\
         access = {{ rate = \"200Mbit/s\", delay = \"1ms\" }}\n\
         bottleneck = {{ rate = \"20Mbit/s\", delay = \"18ms\" }}\n\
         [[link]]\nname = \"r1->r2\"\nqueue = {{ kind = \"droptail\", limit = \"1.0bdp\" }}\n{link}\n\
         {}{}[sampling]\nevery = \"100ms\"\nof = [\"queue\", \"router\"]\n",
        n + m,
        some("explicit", explicit, n),
        some("ordinary", ordinary, m),
    )
}

fn rates(o: &Outcome, group: &str) -> Vec<f64> {
    o.flows(group, "throughput_bps")
}

const BY_FLOWS: &str = "share_by_flows = true";

/// An explicit flow takes no more from TCP than one more TCP flow would, and gets as much as that.
#[test]
fn explicit_flows_and_tcp_have_equal_parts() {
    for tcp_flows in [1, 9] {
        let alike = mean(&rates(&beside("", ("xcp", 0), ("cubic", tcp_flows + 1)), "ordinary"));
        for protocol in ["xcp", "LR-LMXCP", "vcp", "xtcp"] {
            let o = beside(BY_FLOWS, (protocol, 1), ("cubic", tcp_flows));
            let (own, tcp) = (rates(&o, "explicit")[0], mean(&rates(&o, "ordinary")));
            assert!(tcp > 0.8 * alike, "{protocol}: {tcp_flows} CUBIC flows have {tcp} each instead of {alike} bit/s");
            assert!(own > 0.8 * alike, "{protocol} beside {tcp_flows} CUBIC flows has {own} of {alike} bit/s");
            assert!(o.link("r1->r2", "utilisation") > 0.95);
        }
    }
}

/// All flows have equal shares within a tenth, for any number of either kind. The others use the unused share of explicit flows,
/// because a line is never idle while packets wait: eight flows that leave 1.7 % each give 13.6 % more to a single one.
#[test]
fn numbers_of_flows_are_seen() {
    for (explicit, tcp) in [(5, 3), (8, 1), (2, 2)] {
        let o = beside(BY_FLOWS, ("xcp", explicit), ("sack", tcp));
        let fair = 20e6 / (explicit + tcp) as f64;
        let (own, others) = (mean(&rates(&o, "explicit")), mean(&rates(&o, "ordinary")));
        let left = (fair - own).max(0.0) * f64::from(explicit) / f64::from(tcp);
        for rate in [own, others - left] {
            assert!((rate / fair - 1.0).abs() < 0.1, "{own} {others} {fair}");
        }
    }
}

/// Without other traffic the same packets leave at the same times, with the same feedback.
#[test]
fn alone_nothing_changes() {
    for protocol in ["xcp", "LR-LMXCP", "vcp", "xtcp"] {
        let [one, two] = ["", BY_FLOWS].map(|link| beside(link, (protocol, 3), ("cubic", 0)));
        for column in ["throughput_bps", "rtt_mean_ms", "goodput_bps"] {
            assert_eq!(one.flows("explicit", column), two.flows("explicit", column), "{protocol}: {column}");
        }
        for column in ["utilisation", "drops_total", "queue_mean_packets", "queue_max_packets"] {
            assert_eq!(one.link("r1->r2", column), two.link("r1->r2", column), "{protocol}: {column}");
        }
    }
    let [one, two] = ["", BY_FLOWS].map(|link| beside(link, ("xcp", 0), ("cubic", 3)));
    assert_eq!(rates(&one, "ordinary"), rates(&two, "ordinary"), "no explicit flow: no controller, no classes");
}

/// What TCP leaves is used, and no more is promised than that: the queue stays short.
#[test]
fn what_tcp_leaves_is_used() {
    for on in ["500ms", "5s"] {
        let traffic = format!("on_off = {{ on = \"{on}\", off = \"{on}\" }}");
        let text = beside_text(BY_FLOWS, ("xcp", 2), ("cubic", 1))
            .replace("protocol = \"cubic\"", &format!("protocol = \"cubic\"\n{traffic}"));
        let o = run(&text);
        let queue = mean(&o.samples("r1->r2/explicit", "queue_packets", 20.0));
        assert!(o.link("r1->r2", "utilisation") > 0.9, "{}", o.link("r1->r2", "utilisation"));
        assert!(queue < 10.0, "{queue}");
    }
}
