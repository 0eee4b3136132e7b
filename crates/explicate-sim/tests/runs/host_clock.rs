//! Hosts and routers whose clocks tick, as kernels of 2005 did every 10 ms: round trips come in whole ticks, timers expire at
//! ticks, and packets are where they were.

use crate::common::{packet_log, scenario};
use crate::outcome::{self, mean};
use explicate_sim::simulation::Options;

/// A path with a round-trip time of 6.4 ms; the flow and its round-trip times are sampled.
fn path(params: &str, link: &str, more: &str) -> String {
    sampled(params, link, ("10ms", "\"flow\", \"rtt\"")) + more
}
fn sampled(params: &str, link: &str, (every, of): (&str, &str)) -> String {
    format!(
        r#"
        duration = "4s"
        processing = "none"
        [topology]
        kind = "dumbbell"
        access = {{ rate = "100Mbit/s", delay = "100us" }}
        bottleneck = {{ rate = "10Mbit/s", delay = "3ms"{link} }}
        [[flows]]
        name = "f"
        protocol = "xcp"
        packet = "1000B"
        start = "3ms"
        params = {{ receiver_window = 4{params} }}
        [sampling]
        every = "{every}"
        of = [{of}]
        "#
    )
}

#[test]
fn round_trips_are_counted_in_ticks() {
    let of = |params: &str| {
        let done = outcome::run(&path(params, "", ""));
        (done.samples("f.0", "srtt_ms", 0.5), done.flows("f", "rtt_mean_ms")[0])
    };
    let ((exact, truth), (ticking, same)) = (of(""), of(", clock_tick = \"10ms\""));
    assert!((mean(&exact) - truth).abs() < 0.1 && truth < 9.0, "{} {truth}", mean(&exact));
    assert_eq!(same.to_bits(), truth.to_bits(), "what is measured is exact, and the packets are the same");
    assert!(ticking.iter().all(|&ms| ms == 10.0), "at least a tick: {ticking:?}");
}

/// A controller's own estimate is a variable where it has one: exact, beside a timer that counts ticks of 10 ms.
#[test]
fn an_estimate_that_is_the_controllers_own_is_sampled() {
    let of = |params: &str, name: &str| outcome::run(&path(params, "", "")).samples("f.0", name, 0.5);
    let apart = ", clock_tick = \"10ms\", rtt_resolution = \"0s\"";
    let own = of(apart, "controller_srtt_ms");
    assert!(!own.is_empty() && own.iter().all(|&ms| ms > 6.4 && ms < 9.5), "{own:?}");
    assert!(of(apart, "srtt_ms").iter().all(|&ms| ms == 10.0));
    assert!(of("", "controller_srtt_ms").is_empty(), "one estimate serves both");
}

/// Routers read the values that hosts measured: XCP's header carries the smoothed round trip of a clock with ticks.
#[test]
fn headers_carry_round_trips_in_ticks() {
    let mean_rtt = |params: &str| {
        let text = sampled(params, "", ("10ms", "\"router\""));
        mean(&outcome::run(&outcome::ns2(&text)).samples("r1->r2", "avg_rtt_s", 0.5))
    };
    let (exact, ticking) = (mean_rtt(", clock_tick = \"0s\""), mean_rtt(""));
    assert!(exact > 0.0064 && exact < 0.0095, "{exact}");
    assert!((ticking - 0.01).abs() < 1e-6, "{ticking}");
    // The timer's clock and the header's resolution apart.
    let apart = mean_rtt(", rtt_resolution = \"0s\"");
    assert!((apart / exact - 1.0).abs() < 1e-3, "{apart} {exact}");
    let coarse = mean_rtt(", clock_tick = \"0s\", rtt_resolution = \"10ms\"");
    assert_eq!(coarse.to_bits(), ticking.to_bits());
}

/// ns-2's timer takes one sample a round trip, XCP's own estimate takes all, also where both have the same clock.
#[test]
fn headers_need_not_follow_the_timers_rule() {
    let mean_rtt = |params: &str| {
        let text = sampled(params, "", ("10ms", "\"router\""));
        mean(&outcome::run(&text).samples("r1->r2", "avg_rtt_s", 0.02))
    };
    // RFC 6298's gains for each sample are those of a rule that knows of one segment in flight.
    let every = mean_rtt(", rtt_resolution = \"0s\"");
    let timers = mean_rtt(", rto = \"ns2\", clock_tick = \"0s\"");
    let own = mean_rtt(", rto = \"ns2\", clock_tick = \"0s\", rtt_resolution = \"0s\"");
    assert_ne!(timers.to_bits(), every.to_bits());
    assert_eq!(own.to_bits(), every.to_bits());
}

#[test]
fn timers_expire_at_ticks() {
    let times = |params: &str| -> Vec<f64> {
        let lost = "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", rate = 1 }]\n";
        let scenario = scenario(&path(params, "", lost));
        let text = packet_log(&scenario, Options::default());
        let sent = text.lines().filter(|l| l.contains("s0->r1") && l.contains("enqueue"));
        sent.map(|l| l.split_whitespace().next().expect("a time").parse().expect("a number")).collect()
    };
    assert_eq!(times(""), [0.003, 1.003, 3.003]);
    assert_eq!(times(", clock_tick = \"10ms\""), [0.003, 1.01, 3.01]);
}

/// A controller whose clock has ticks computes at ticks: the feedback that it distributed changes only then.
#[test]
fn controllers_follow_their_routers_clock() {
    let changes = |link: &str| -> Vec<f64> {
        let done = outcome::run(&sampled("", link, ("1ms", "\"router\"")));
        let handed_out = done.samples("r1->r2", "avg_rtt_s", 0.0);
        let changed = |i: &usize| handed_out[*i] != handed_out[*i - 1];
        (1..handed_out.len()).filter(changed).map(|i| (i + 1) as f64).collect()
    };
    let ticking = changes(", clock_tick = \"10ms\"");
    assert!(ticking.len() > 10 && ticking.iter().all(|ms| ms % 10.0 == 0.0), "{ticking:?}");
    assert!(changes("").iter().any(|ms| ms % 10.0 != 0.0));
}

/// Before the first measurement a round-trip time is null (NaN), not 0: a mean over it would be too small.
#[test]
fn round_trips_that_nobody_measured_are_null() {
    for (protocol, variable) in [
        ("newreno", "srtt_ms"),
        ("cubic", "srtt_ms"),
        ("vegas/newreno", "base_rtt_ms"),
        ("westwood/newreno", "rtt_min_ms"),
        ("new_jersey/newreno", "rtt_min_ms"),
        ("fast/newreno", "base_rtt_ms"),
        ("fast/newreno", "rtt_ms"),
    ] {
        let text =
            path("", "", "").replace("\"xcp\"", &format!("{protocol:?}")).replace("start = \"3ms", "start = \"5ms");
        let values = outcome::run(&text).samples("f.0", variable, 0.0);
        let measured: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
        // The first sample comes 5 ms after the start, within the first round trip.
        assert!(values[0].is_nan(), "{protocol} {variable}: {}", values[0]);
        assert!(measured.len() > 390 && measured.iter().all(|x| *x >= 6.2), "{protocol} {variable}: {measured:?}");
    }
}
