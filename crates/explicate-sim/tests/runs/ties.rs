//! Exact ties: equal flows have equal results, though nothing in the network is random. Over many seeds their mean goodputs agree;
//! they depend neither on the order of declaration nor on names.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::alike::{goodputs, unlike};
use crate::common;
use explicate_scenario::model::Scenario;
use explicate_scenario::templates::template;
use std::path::Path;

/// Ten senders, links of one rate and one delay all the way, a short drop-tail queue: packets arrive in the instant in which others
/// leave. `order` is that in which senders and their links are declared; flows of the second group continue over a separate link.
fn in_step(protocol: &str, order: &[usize], groups: [usize; 2]) -> String {
    let link = |from: &str, to: &str, queue: &str| {
        format!(
            "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = true\nrate = \"5Mbit/s\"\ndelay = \"20ms\"\nqueue = {queue}\n"
        )
    };
    let short = r#"{ kind = "droptail", limit = "50pkt" }"#;
    let mut text = "duration = \"100s\"\nwarmup = \"20s\"\nruns = 24\nprocessing = \"none\"\n".to_string();
    for sender in order {
        text += &format!("[[node]]\nname = \"s{sender}\"\n");
    }
    for node in 0..4 {
        text += &format!("[[node]]\nname = \"n{node}\"\n");
    }
    for sender in order {
        text += &link(&format!("s{sender}"), "n0", short);
    }
    for (from, to) in [("n0", "n1"), ("n1", "n2"), ("n1", "n3")] {
        text += &link(from, to, short);
    }
    for group in groups {
        let from: Vec<String> = (5 * group..5 * group + 5).map(|s| format!("\"s{s}\"")).collect();
        text += &format!(
            "[[flows]]\nname = \"g{group}\"\ncount = 5\nprotocol = \"{protocol}\"\npacket = \"1000B\"\nfrom = [{}]\nto = \"n{}\"\n",
            from.join(", "),
            2 + group
        );
    }
    text
}

#[test]
fn ten_flows_in_step_over_drop_tail() {
    let up: Vec<usize> = (0..10).collect();
    let down: Vec<usize> = (0..10).rev().collect();
    for protocol in ["newreno", "reno"] {
        for (order, groups) in [(&up, [0, 1]), (&down, [1, 0])] {
            let goodputs = goodputs(&common::scenario(&in_step(protocol, order, groups)));
            let said = unlike(&goodputs);
            assert!(said.is_none(), "{protocol}, senders declared {order:?}: {}", said.unwrap_or_default());
        }
    }
}

/// Four hosts on links of zero delay, as fast as the narrow one or four times so, declared in this order. Hosts take no time, so
/// that packets of several of them come to one port in the instant in which another leaves.
fn without_delays(senders: [usize; 4], access_mbps: u32) -> String {
    let link = |from: String, to: String, rest: String| {
        format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nduplex = true\n{rest}\n")
    };
    let mut text = "duration = \"22s\"\nwarmup = \"2s\"\nruns = 24\nprocessing = \"none\"\n".to_string();
    for node in senders.map(|s| format!("s{s}")).iter().chain([&"n0".to_string(), &"n1".to_string(), &"n2".to_string()])
    {
        text += &format!("[[node]]\nname = \"{node}\"\n");
    }
    let access = format!("rate = \"{access_mbps}Mbit/s\"\ndelay = \"0ms\"\nqueue = \"unlimited\"");
    for sender in senders {
        text += &link(format!("s{sender}"), "n0".to_string(), access.clone());
    }
    let narrow = r#"rate = "4Mbit/s"
delay = "0ms"
queue = { kind = "droptail", limit = "20pkt" }"#;
    text += &link("n0".to_string(), "n1".to_string(), narrow.to_string());
    text += &link("n1".to_string(), "n2".to_string(), "rate = \"40Mbit/s\"\ndelay = \"10ms\"".to_string());
    for sender in senders {
        text += &format!(
            "[[flows]]\nname = \"f{sender}\"\nprotocol = \"newreno\"\npacket = \"1000B\"\nfrom = \"s{sender}\"\nto = \"n2\"\n"
        );
    }
    text
}

/// Links of zero delay: a packet leaves one port and comes to the next in one instant, and so do those of other hosts.
#[test]
fn links_of_zero_delay_are_alike() {
    for senders in [[0, 1, 2, 3], [3, 2, 1, 0]] {
        for access_mbps in [4, 16] {
            let said = unlike(&goodputs(&common::scenario(&without_delays(senders, access_mbps))));
            assert!(said.is_none(), "{access_mbps} Mbit/s, declared {senders:?}: {}", said.unwrap_or_default());
        }
    }
}

/// The template of a dumbbell with the change that its own comment proposes, this start, and so many runs.
fn template_of_reno(start: &str, runs: &str) -> Vec<Vec<f64>> {
    let text = template("dumbbell").expect("a template").text;
    let set = [
        ("topology.bottleneck.rate", "100Mbit/s"),
        ("flows.greedy.protocol", "reno"),
        ("flows.greedy.start", start),
        ("runs", runs),
    ];
    let set = set.map(|(key, value)| (key.to_string(), value.to_string()));
    match Scenario::parse(text, "dumbbell.toml", Path::new("."), &set) {
        Ok(scenario) => goodputs(&scenario),
        Err(problems) => panic!("{problems}"),
    }
}

#[test]
fn flows_of_the_template_that_start_together_are_alike() {
    let said = unlike(&template_of_reno("1s", "72"));
    assert!(said.is_none(), "{}", said.unwrap_or_default());
}

/// The rule of [`unlike`] finds what flows had when the order of declaration decided ties, even if their runs had
/// differed as much as those means allow. It does not find a flow that has no fast run in 24 by chance: seeds 1 to 24
/// of the template.
#[test]
fn the_rule_finds_an_order_but_no_chance() {
    // Each run has either the whole line or nothing.
    let extreme = |wins: &[usize], line: f64| {
        let runs = |&wins| (0..24).map(|run| if run < wins { line } else { 0.0 }).collect();
        unlike(&wins.iter().map(runs).collect::<Vec<Vec<f64>>>())
    };
    // The template had 94.8, 0, 0, 0 Mbit/s; ten flows in step 2.95, 0.34, 0.22, 0.23, 0.19, ... of 5 Mbit/s.
    assert!(extreme(&[24, 0, 0, 0], 94.8e6).is_some());
    assert!(extreme(&[14, 2, 1, 1, 1, 1, 1, 1, 1, 1], 5e6).is_some());
    let by_chance: [&[f64]; 4] = [
        &[
            29.1, 35.7, 26.2, 21.9, 26.6, 34.3, 28.5, 19.0, 14.8, 17.4, 37.4, 30.2, 22.9, 26.6, 21.7, 28.0, 27.0, 34.3,
            28.8, 27.6, 21.4, 27.2, 32.1, 20.5,
        ],
        &[
            17.6, 17.7, 17.9, 18.6, 20.3, 16.7, 18.7, 19.4, 23.6, 23.3, 21.2, 21.7, 24.1, 23.9, 24.7, 22.3, 20.1, 18.6,
            21.3, 22.2, 17.6, 19.1, 23.4, 21.7,
        ],
        &[
            23.0, 17.6, 29.7, 25.2, 20.0, 28.4, 28.0, 25.5, 18.4, 37.6, 18.4, 22.4, 23.8, 18.2, 21.6, 22.3, 28.1, 18.5,
            21.8, 26.1, 34.4, 22.2, 17.4, 23.4,
        ],
        &[
            25.1, 23.8, 21.0, 29.1, 27.9, 15.4, 19.6, 31.0, 38.0, 16.5, 17.8, 20.5, 24.0, 26.1, 26.9, 22.2, 19.6, 23.4,
            22.9, 19.0, 21.4, 26.3, 21.9, 29.2,
        ],
    ];
    let said = unlike(&by_chance.map(|of| of.iter().map(|mbps| mbps * 1e6).collect()));
    assert!(said.is_none(), "{}", said.unwrap_or_default());
}

/// Two flows of one host that start together share its queue alike, whether its line is the narrow one or another.
#[test]
fn two_flows_of_a_host_are_alike() {
    for kind in ["fifo", "fq_codel", "fq"] {
        for narrow in ["100Mbit/s", "10Mbit/s"] {
            let said = unlike(&goodputs(&common::scenario(&format!(
                r#"
                duration = "12s"
                warmup = "2s"
                runs = 24
                [topology]
                kind = "dumbbell"
                pairs = 1
                access = {{ rate = "20Mbit/s", delay = "1ms" }}
                bottleneck = {{ rate = "{narrow}", delay = "10ms" }}
                [[flows]]
                name = "f"
                count = 2
                protocol = "reno"
                packet = "1000B"
                start = "1s"
                params = {{ host_queue = "{kind}" }}
            "#
            ))));
            assert!(said.is_none(), "{kind}, {narrow}: {}", said.unwrap_or_default());
        }
    }
}

/// Its flows start half a second apart, so they are not equal; but none starves in every run because of its place in the list.
#[test]
fn the_template_starves_nobody() {
    let goodputs = template_of_reno("{ spread = \"2s\" }", "12");
    let means: Vec<f64> = goodputs.iter().map(|of| of.iter().sum::<f64>() / of.len() as f64).collect();
    let all = means.iter().sum::<f64>() / means.len() as f64;
    assert!(means.iter().all(|mean| *mean > 0.1 * all), "{means:?}");
}

/// Two pairs of stations that mirror each other on one air, declared in this order: stations that send in the same slot are ordered by
/// chance too.
fn pairs_on_the_air(order: [&str; 4], capture: &str) -> String {
    let place = |node: &str| match node {
        "a" => 0,
        "x" => 30,
        "y" => 170,
        _ => 200,
    };
    let stations = order.map(|node| format!("{{ node = \"{node}\", at = [\"{}m\", \"0m\"] }}", place(node)));
    format!(
        "duration = \"3s\"\nwarmup = \"1s\"\nruns = 24\nprocessing = \"none\"\n[[medium]]\nname = \"air\"\ncapture = \"{capture}\"\n\
         station = [{}]\n\
         [[flows]]\nname = \"left\"\nprotocol = \"greedy\"\nfrom = \"a\"\nto = \"x\"\nparams = {{ rate = \"20Mbit/s\" }}\n\
         [[flows]]\nname = \"right\"\nprotocol = \"greedy\"\nfrom = \"b\"\nto = \"y\"\nparams = {{ rate = \"20Mbit/s\" }}\n",
        stations.join(", ")
    )
}

#[test]
fn pairs_of_stations_that_mirror_each_other() {
    for capture in ["off", "first", "any", "ns2"] {
        for order in [["a", "x", "b", "y"], ["y", "b", "x", "a"]] {
            let said = unlike(&goodputs(&common::scenario(&pairs_on_the_air(order, capture))));
            assert!(said.is_none(), "capture {capture}, declared {order:?}: {}", said.unwrap_or_default());
        }
    }
}
