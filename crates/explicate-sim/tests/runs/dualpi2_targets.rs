//! DualPI2: TCP has the delay of the target in C, and a flow in L that does not respond leaves C its share.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::outcome::{Outcome, run};

/// `pairs` pairs over `mbps` Mbit/s and 20 ms, and these flows.
fn over(mbps: u32, pairs: u32, flows: &str) -> Outcome {
    run(&format!(
        r#"
duration = "40s"
warmup = "10s"
[topology]
kind = "dumbbell"
pairs = {pairs}
access = {{ rate = "1Gbit/s", delay = "1ms" }}
bottleneck = {{ rate = "{mbps}Mbit/s", delay = "8ms", queue = {{ kind = "dualpi2", limit = "2000pkt" }} }}
{flows}
"#
    ))
}

fn group(name: &str, protocol: &str, count: u32, params: &str) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\ncount = {count}\npacket = \"1500B\"\nparams = {{ {params} }}\n"
    )
}

/// RFC 9332: a target of 15 ms. The integral of the controller holds the mean there while its probability is not
/// zero. A single flow of 100 Mbit/s empties the queue with each halving, and the probability is zero for as long:
/// its bound is wide.
#[test]
fn the_classic_delay_is_near_its_target() {
    for (flows, ecn, within) in
        [(1, "", 0.33..1.5), (10, "", 0.8..1.2), (50, "", 0.8..1.2), (10, "ecn = true", 0.8..1.2)]
    {
        let done = over(100, flows, &group("f", "sack", flows, ecn));
        let (delay, used) = (done.link("r1->r2", "queue_mean_ms"), done.link("r1->r2", "utilisation"));
        println!("{flows} flows, {ecn}: {delay:.2} ms of 15, utilisation {used:.4}");
        assert!(within.contains(&(delay / 15.0)), "{flows} {ecn}: {delay}");
        assert!(used > 0.9, "{flows} {ecn}: {used}");
        let early = done.link("r1->r2", "drops_early");
        assert_eq!(early > 0.0, ecn.is_empty(), "{early} drops");
    }
}

/// 60 Mbit/s of ECT(1) that no mark slows down, over 40, beside 8 Mbit/s in C. Marks would leave all loss to C, and
/// strict priority nothing of the line. With one probability of loss for both C has its part of what arrives, 8 / 68.
#[test]
fn unresponsive_packets_of_l_do_not_starve_c() {
    let unresponsive = |mbps: u32, l4s: bool| format!("rate = \"{mbps}Mbit/s\", l4s = {l4s}");
    let flows = group("l", "greedy", 1, &unresponsive(60, true)) + &group("c", "greedy", 1, &unresponsive(8, false));
    let done = over(40, 2, &flows);
    let rate = |name: &str| done.flows(name, "goodput_bps")[0] * 1500.0 / 1448.0 / 1e6;
    let (l, c, delay) = (rate("l"), rate("c"), done.link("r1->r2", "queue_mean_ms"));
    println!("L {l:.2} Mbit/s of 60, C {c:.2} of 8; delay {delay:.2} ms");
    assert!(c > 0.09 * 40.0, "{c} Mbit/s");
    assert!((0.8..1.25).contains(&((c / 8.0) / (l / 60.0))), "{c} of 8 beside {l} of 60");
    assert!(delay < 2.0 * 15.0, "{delay} ms");
}

/// 32 Mbit/s of ECT(1), four fifths of the line: CUBIC has the rest, as beside the same packets in its own queue.
#[test]
fn cubic_has_what_unresponsive_packets_leave() {
    let beside = |l4s: bool| {
        let params = format!("rate = \"32Mbit/s\", l4s = {l4s}");
        let done = over(40, 2, &(group("u", "greedy", 1, &params) + &group("c", "cubic", 1, "")));
        done.flows("c", "goodput_bps")[0] / 1e6
    };
    let (l, c) = (beside(true), beside(false));
    println!("CUBIC beside 32 Mbit/s in L {l:.2} Mbit/s, in C {c:.2}");
    assert!(l > 0.7 * 8.0, "{l} Mbit/s");
}
