//! Round trips of any length: time stamps repeat every 17.18 s, and neither the reported times nor the timers show it.

use std::path::Path;

use explicate_build::paths::flow_paths;
use explicate_build::tables::Data;
use explicate_scenario::model::Scenario;
use explicate_sim::measure::measure;
use explicate_sim::simulation::Options;

use crate::common::run;
use crate::outcome::{self, Outcome};
use crate::random::Random;

/// One flow over 200 kbit/s and `delay` seconds one way, for `duration` seconds; the buffer holds a round trip's bytes.
fn path(protocol: &str, delay: f64, duration: f64, warmup: f64) -> Outcome {
    let params = if protocol == "video" { "params = { rate = \"100kbit/s\" }" } else { "" };
    outcome::run(&format!(
        r#"
duration = "{duration}s"
warmup = "{warmup}s"
[topology]
kind = "dumbbell"
pairs = 1
access = {{ rate = "1Gbit/s", delay = "1ms" }}
bottleneck = {{ rate = "200kbit/s", delay = "{delay}s", queue = {{ kind = "droptail", limit = "1bdp" }} }}
[sampling]
every = "{}s"
of = ["rtt"]
[[flows]]
name = "f"
protocol = "{protocol}"
{params}
"#,
        delay / 2.0
    ))
}

/// On both sides of half a period, of a period, of two, and at 20 minutes there and back. A sample may be 4 ns short.
#[test]
fn no_round_trip_is_shorter_than_its_path() {
    for delay in [4.294, 8.589, 8.59, 10.0, 17.18, 20.0, 600.0] {
        for protocol in ["newreno", "cubic", "xcp", "vcp", "LR-LMXCP", "video", "bbr"] {
            let base = 2e3 * (delay + 0.002);
            let done = path(protocol, delay, 24.0 * 2.0 * delay, 12.0 * 2.0 * delay);
            let what = format!("{protocol} over {delay} s");
            let samples = done.samples("f.0", "rtt_ms", 0.0);
            let (mean, least) = (done.flows("f", "rtt_mean_ms")[0], samples.iter().fold(f64::MAX, |a, b| a.min(*b)));
            assert!(samples.len() > 20 && least >= base - 1e-5, "{what}: {least} of {base} ms");
            // The queue holds a round trip's bytes.
            assert!(mean >= base && mean < 2.1 * base, "{what}: {mean} of {base} ms");
        }
    }
}

/// The sender's timer waits for the answer: on a clean path, below the buffer, nothing is sent twice. Set-up repeats its SYN after
/// 1, 3, 7, 15, 31, 63, 127 s and every 64 s then (RFC 6298), until the first answer.
#[test]
fn timers_wait_for_the_answer() {
    for (delay, opening) in [(10.0, 4.0), (20.0, 5.0), (600.0, 23.0)] {
        let done = outcome::run(&format!(
            r#"
duration = "{}s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = {{ rate = "1Mbit/s", delay = "{delay}s", queue = {{ kind = "droptail", limit = "1000pkt" }} }}
[[flows]]
name = "f"
protocol = "newreno"
params = {{ receiver_window = 50 }}
"#,
            40.0 * delay
        ));
        let (timeouts, again) = (done.flows("f", "timeouts_total")[0], done.flows("f", "retransmissions")[0]);
        assert_eq!((timeouts, again), (opening, 0.0), "{delay} s");
    }
}

/// No path is long here: 44 ms, and a host whose own link of 2 Mbit/s is the slowest, before which a window grows without
/// limit. A round trip includes that wait, as the queue shows it.
#[test]
fn a_host_that_queues_for_half_a_minute_knows_it() {
    let done = outcome::run(
        r#"
stack = "ns2" # Linux's windows do not grow beyond what the network holds
duration = "60s"
[topology]
kind = "dumbbell"
pairs = 1
access = { rate = "2Mbit/s", delay = "1ms", queue = "unlimited" }
bottleneck = { rate = "10Mbit/s", delay = "20ms" }
[[flows]]
name = "f"
protocol = "newreno"
[sampling]
every = "1s"
of = ["rtt"]
"#,
    );
    let samples = done.samples("f.0", "rtt_ms", 5.0);
    // Slow start: each packet that leaves lets two enter, so the wait grows by half a second a second.
    for pair in samples.windows(2) {
        assert!(pair[1] > pair[0] && pair[1] < pair[0] + 600.0, "{} ms, then {}", pair[0], pair[1]);
    }
    let last = samples.last().copied().unwrap_or(0.0);
    assert!(last > 25_000.0, "{last} ms");
}

/// A limit that is known: sessions of 150 s over a queue of 320 s. Each session numbers its packets from 0, and time stamps
/// repeat, so an answer of an earlier session can fit a packet of the present one: a round trip of 6.6 s is reported where the
/// path has 20. TCP avoids this by initial sequence numbers that rise with time, and by TIME_WAIT, in which a connection
/// waits until its last packets are gone (RFC 9293). When it no longer occurs, this goes.
const KNOWN: [&str; 1] = ["scenario 30: f1.0 6577.031424 ms of 20000"];

/// Random scenarios a thousand times slower: rates in kbit/s, milliseconds that are seconds. No round trip is shorter than the
/// propagation delays of its path.
#[test]
fn no_random_round_trip_is_shorter_than_its_path() {
    let (mut checked, mut beyond, mut problems) = (0, 0, Vec::new());
    for number in 1..=80 {
        let text = Random::new(number).scenario();
        let text =
            text.replace("1s\"", "1000s\"").replace("ms\"", "s\"").replace("Mbit", "kbit").replace("30/s", "0.03/s");
        // Variables of FAST have one of the same name.
        let text = text.replace(", \"flow\"]", "]");
        let Ok(scenario) = Scenario::parse(&text, "slow.toml", Path::new("."), &[]) else { continue };
        // The shortest of a route's phases, ms.
        let mut base: Vec<Vec<f64>> = Vec::new();
        for routes in scenario.routes() {
            let paths = flow_paths(&scenario, routes).expect("connected");
            for (group, paths) in paths.iter().enumerate() {
                base.resize(base.len().max(group + 1), Vec::new());
                base[group].resize(paths.len(), f64::MAX);
                for (i, least) in base[group].iter_mut().enumerate() {
                    let (there, back) = paths.get(i);
                    let sum: f64 =
                        there.iter().chain(back).map(|l| scenario.links[*l as usize].delay.to_millis()).sum();
                    *least = least.min(sum);
                }
            }
        }
        let mut done = run(&scenario, &Options::default());
        let tables = measure(&scenario, 0, &mut done, "test");
        let of = |flow: &str| {
            let (group, number) = flow.rsplit_once('.').expect("group and number");
            let group = scenario.flows.iter().position(|g| g.name == group).expect("a group");
            let paths = &base[group];
            paths[number.parse::<usize>().expect("a number") % paths.len()]
        };
        let mut judge = |flow: &str, rtt: f64| {
            beyond += (rtt > 17_180.0) as u32;
            if rtt < of(flow) - 1e-5 {
                problems.push(format!("scenario {number}: {flow} {rtt} ms of {}", of(flow)));
            }
        };
        let (Some(Data::Str(flows)), Some(Data::F64(means))) =
            (tables.flows.get("flow"), tables.flows.get("rtt_mean_ms"))
        else {
            panic!("no such columns")
        };
        flows.iter().zip(means).filter(|(_, rtt)| !rtt.is_nan()).for_each(|(flow, rtt)| judge(flow, *rtt));
        let samples = ["object", "variable"].map(|name| match tables.samples.get(name) {
            Some(Data::Str(texts)) => texts,
            _ => panic!("no column {name}"),
        });
        let Some(Data::F64(values)) = tables.samples.get("value") else { panic!("no values") };
        for ((object, variable), value) in samples[0].iter().zip(samples[1]).zip(values) {
            if variable == "rtt_ms" {
                judge(object, *value);
            }
        }
        checked += 1;
    }
    assert!(checked > 50 && beyond > 500, "{checked} scenarios, {beyond} round trips beyond 17.18 s");
    for known in KNOWN {
        let at = problems.iter().position(|problem| problem == known).expect("a known limit, which is mended");
        problems.remove(at);
    }
    assert!(problems.is_empty(), "{} too short:\n{}", problems.len(), problems[..problems.len().min(20)].join("\n"));
}
