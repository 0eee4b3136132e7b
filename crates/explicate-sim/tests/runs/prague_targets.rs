//! Design goals of TCP Prague over DualPI2: a short queue and a busy line, no advantage over TCP in the other queue, and
//! none for short paths; and what it takes where a queue without L4S is shared.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{Outcome, mean, run};

/// Two pairs over 40 Mbit/s and DualPI2; `access` is a delay, or a range of delays.
fn over(access: &str, bottleneck: &str, flows: &str) -> Outcome {
    through(40, "dualpi2", access, bottleneck, flows)
}

fn through(mbps: u32, queue: &str, access: &str, bottleneck: &str, flows: &str) -> Outcome {
    run(&format!(
        r#"
duration = "50s"
warmup = "10s"
[topology]
kind = "dumbbell"
pairs = 2
access = {{ rate = "1Gbit/s", delay = {access} }}
bottleneck = {{ rate = "{mbps}Mbit/s", delay = "{bottleneck}", queue = {{ kind = "{queue}", limit = "1000pkt" }} }}
[sampling]
every = "5ms"
of = ["queue", "router", "flow"]
{flows}
"#
    ))
}

fn group(name: &str, protocol: &str, count: u32, params: &str) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\ncount = {count}\npacket = \"1500B\"\nparams = {{ {params} }}\n"
    )
}

/// The delay that 99 % of the samples do not exceed, ms.
fn p99(done: &Outcome, variable: &str) -> f64 {
    let mut delays = done.samples("r1->r2", variable, 10.0);
    delays.sort_by(f64::total_cmp);
    delays[delays.len() * 99 / 100]
}

/// RFC 9330 section 1: below 1 ms in the mean, and 2 ms in 99 % of the cases. RFC 9332 section 2.1: flows of equal round
/// trips have about equal windows, so the rates differ by the delay of the queues: 35 over 21 ms are 1.7.
#[test]
fn prague_and_tcp_share_a_line() {
    for (protocol, params) in [("cubic", ""), ("cubic", "ecn = true"), ("sack", "")] {
        let done = over("\"1ms\"", "8ms", &(group("p", "prague", 1, "") + &group("c", protocol, 1, params)));
        let (p, c) = (done.flows("p", "goodput_bps")[0] / 1e6, done.flows("c", "goodput_bps")[0] / 1e6);
        let (low, late) = (mean(&done.samples("r1->r2", "low_delay_ms", 10.0)), p99(&done, "low_delay_ms"));
        let classic = mean(&done.samples("r1->r2", "classic_delay_ms", 10.0));
        let used = done.link("r1->r2", "utilisation");
        println!(
            "{protocol} {params}: Prague {p:.2}, TCP {c:.2} Mbit/s, ratio {:.2}; L {low:.2} ms, p99 {late:.2}; C {classic:.2}; \
             utilisation {used:.4}",
            p / c
        );
        assert!((0.5..2.0).contains(&(p / c)), "{protocol} {params}: {p} {c}");
        assert!(low < 1.0 && late < 2.0, "{protocol} {params}: {low} {late} ms");
        assert!((0.5..1.5).contains(&(classic / 15.0)), "{protocol} {params}: {classic} ms");
        assert!(used > 0.95, "{protocol} {params}: {used}");
    }
}

#[test]
fn prague_alone_has_a_short_queue_and_the_line() {
    let done = over("\"1ms\"", "8ms", &group("p", "prague", 2, ""));
    let (low, late) = (mean(&done.samples("r1->r2", "low_delay_ms", 10.0)), p99(&done, "low_delay_ms"));
    let (used, fairness) = (done.link("r1->r2", "utilisation"), jain(&done.flows("p", "goodput_bps")));
    let alpha = mean(&done.samples("p.0", "alpha", 10.0));
    println!("L {low:.2} ms, p99 {late:.2}; utilisation {used:.4}, Jain {fairness:.4}, alpha {alpha:.3}");
    assert!(low < 1.0 && late < 2.0, "{low} {late} ms");
    assert!(used > 0.95 && fairness > 0.95, "{used} {fairness}");
    assert_eq!(done.drops(), 0.0, "nothing is lost, not even in slow start");
}

/// Round trips of 5 and 20 ms, both below 25: equal rates with virtual round trips, and not without.
#[test]
fn short_paths_have_no_advantage() {
    let ratio = |params: &str| {
        let done = over("{ from = \"1ms\", to = \"4.75ms\" }", "0.5ms", &group("p", "prague", 2, params));
        let rates = done.flows("p", "goodput_bps");
        rates[0] / rates[1]
    };
    let (with, without) = (ratio(""), ratio("rtt_virt = \"0s\""));
    println!("rate of 5 ms over that of 20 ms: {with:.2}, without virtual round trips {without:.2}");
    assert!((1.0 / 1.5..1.5).contains(&with), "{with}");
    assert!(without > 1.5, "{without}");
}

/// RFC 9331 section 4.3.1 reports ratios of TCP Prague's rate to TCP's over a queue with marks but without L4S: at
/// worst 25; at 4 Mbit/s less than about 5 over paths below 20 ms, and 10 below 100 ms. At 200 Mbit/s ours is above the
/// worst. A queue for each flow shares evenly.
#[test]
fn prague_takes_more_of_a_shared_queue_without_l4s() {
    for (mbps, queue, bottleneck, within) in [
        (4, "codel", "7ms", 2.0..5.0),
        (4, "codel", "47ms", 2.0..10.0),
        (40, "codel", "7ms", 2.0..25.0),
        (200, "codel", "7ms", 25.0..35.0),
        (40, "fq_codel", "7ms", 0.9..1.1),
    ] {
        let flows = group("p", "prague", 1, "") + &group("c", "cubic", 1, "ecn = true");
        let done = through(mbps, queue, "\"1ms\"", bottleneck, &flows);
        let ratio = done.flows("p", "goodput_bps")[0] / done.flows("c", "goodput_bps")[0];
        println!("{mbps} Mbit/s, {queue}, {bottleneck}: {ratio:.2}");
        assert!(within.contains(&ratio), "{mbps} Mbit/s, {queue}, {bottleneck}: {ratio}");
    }
}
