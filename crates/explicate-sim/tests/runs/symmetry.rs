//! A law of the suite: equal flows have equal results. Four flows of one kind share a dumbbell in which everything is the same
//! for all of them; over 24 seeds each has the mean goodput of all, up to chance. It holds for every registered sender,
//! recovery and queue discipline, each once against a fixed partner, with a processing time and without, and after names and
//! declarations are exchanged.

use crate::alike::{goodputs, unlike};
use crate::common;
use explicate_core::registry::{PROTOCOLS, QDISCS, RECOVERIES};

/// The fixed partners.
const SENDER: &str = "reno";
const RECOVERY: &str = "newreno";
const QDISC: &str = "droptail";

/// Exceptions by theory: the entry, the processing time, and the reason. A flow that wins for a whole run is no exception, because
/// it differs from run to run.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Round trips of 28 ms and 14 packets of 1000 bytes; a queue holds as many again. 14 s are 500 round trips. Rates are
/// multiples of each other and all delays the same, so that packets arrive in the very instant in which others leave. The TCP is
/// ns-2's, whose flows depend most on which of them loses a packet.
fn dumbbell(protocol: &str, qdisc: &str, processing: &str, groups: [&str; 2]) -> String {
    let flows = groups.map(|name| {
        format!("[[flows]]\nname = \"{name}\"\ncount = 2\nprotocol = \"{protocol}\"\npacket = \"1000B\"\n")
    });
    format!(
        r#"
        stack = "ns2"
        duration = "14s"
        warmup = "2s"
        runs = 24
        processing = "{processing}"
        [topology]
        kind = "dumbbell"
        pairs = 4
        access = {{ rate = "40Mbit/s", delay = "2ms", queue = "unlimited" }}
        bottleneck = {{ rate = "4Mbit/s", delay = "10ms", queue = {{ kind = "{qdisc}", limit = "1.0bdp" }} }}
        {}"#,
        flows.concat()
    )
}

const NAMES: [&str; 2] = ["first", "second"];
const EXCHANGED: [&str; 2] = ["second", "first"];

/// What breaks the law, of these combinations of sender and recovery with these disciplines. Processing times are drawn, so that no two
/// packets come in one instant: only without them names and places can decide.
fn broken<'a>(cases: impl Iterator<Item = (&'a str, String, &'a str)>) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, protocol, qdisc) in cases {
        for (processing, groups) in [("none", NAMES), ("none", EXCHANGED), ("auto", NAMES)] {
            let excused = EXCEPTIONS.iter().any(|(what, with, _)| (*what, *with) == (name, processing));
            let goodputs = goodputs(&common::scenario(&dumbbell(&protocol, qdisc, processing, groups)));
            assert!(goodputs.iter().flatten().sum::<f64>() > 0.0, "{name}: nothing arrives");
            match unlike(&goodputs) {
                Some(said) if !excused => broken.push(format!("{name}, processing {processing}, {groups:?}: {said}")),
                _ => {}
            }
        }
    }
    broken
}

#[test]
fn every_sender_is_fair_to_its_like() {
    let senders = PROTOCOLS.iter().map(|p| (p.name(), format!("{}/{RECOVERY}", p.name()), QDISC));
    let broken = broken(senders);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_recovery_is_fair_to_its_like() {
    // The partner itself is among the senders.
    let others = RECOVERIES.iter().filter(|r| r.name() != RECOVERY);
    let recoveries = others.map(|r| (r.name(), format!("{SENDER}/{}", r.name()), QDISC));
    let broken = broken(recoveries);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_discipline_is_fair_to_flows_that_are_alike() {
    let others = QDISCS.iter().filter(|q| q.name() != QDISC);
    let qdiscs = others.map(|q| (q.name(), format!("{SENDER}/{RECOVERY}"), q.name()));
    let broken = broken(qdiscs);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
