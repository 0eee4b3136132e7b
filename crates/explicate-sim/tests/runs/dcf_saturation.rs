//! Saturated stations around a hub, against Bianchi's model (JSAC 18(3), 2000): which share of the air is payload if n
//! stations always have something to send. Retries without end and no EIFS, as the model has it.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the figures

use crate::outcome::run;
use explicate_core::rng::power;

/// Bianchi's throughput of payload above LLC, Mbit/s, for 1500-byte packets; W = 16, m = 6.
fn bianchi(n: f64, rate: f64, control: f64, rts: bool) -> f64 {
    let airtime = |bytes: f64, mbps: f64| 20.0 + 4.0 * ((16.0 + 8.0 * bytes + 6.0) / (4.0 * mbps)).ceil();
    let (slot, sifs, difs) = (9.0, 16.0, 34.0);
    let (data, ack, request) = (airtime(1536.0, rate), airtime(14.0, control), airtime(20.0, control));
    let (success, collision) = if rts {
        (request + sifs + ack + sifs + data + sifs + ack + difs, request + difs)
    } else {
        (data + sifs + ack + difs, data + difs)
    };
    let (w, m) = (16.0, 6);
    let attempts = |p: f64| {
        let sum: f64 = (0..m).map(|i| power(2.0 * p, i as f64)).sum();
        2.0 / (1.0 + w + p * w * sum)
    };
    // tau falls with p, and p rises with tau: bisection.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let p = (low + high) / 2.0;
        let collides = 1.0 - power(1.0 - attempts(p), n - 1.0);
        if collides > p { low = p } else { high = p }
    }
    let tau = attempts(low);
    let any = 1.0 - power(1.0 - tau, n);
    let alone = n * tau * power(1.0 - tau, n - 1.0);
    8.0 * 1500.0 * alone / ((1.0 - any) * slot + alone * success + (any - alone) * collision)
}

/// Stations around a hub that are given more to send than they can; acknowledgements return by wires, so that only data use the
/// air.
fn saturated(n: u32, rate: u32, rts: bool, seconds: u32, more: &str) -> String {
    let threshold = if rts { "0B" } else { "unlimited" };
    let from: Vec<String> = (1..=n).map(|i| format!("\"n{i}\"")).collect();
    let wire = |i| {
        format!(
            "[[link]]\nname = \"wire {i}\"\nfrom = \"n0\"\nto = \"n{i}\"\nrate = \"10Gbit/s\"\ndelay = \"0s\"\n\
             queue = \"unlimited\"\n"
        )
    };
    let wires: String = (1..=n).map(wire).collect();
    format!(
        r#"
        duration = "{seconds}s"
        warmup = "1s"
        [[medium]]
        name = "air"
        rate = "{rate}Mbit/s"
        rts_threshold = "{threshold}"
        queue = {{ limit = "5pkt" }}
        layout = {{ kind = "star", stations = {n}, spacing = "10m" }}
        {more}
        {wires}
        [[flows]]
        name = "f"
        count = {n}
        protocol = "greedy"
        from = [{}]
        to = "n0"
        params = {{ rate = "{}Mbit/s" }}
        "#,
        from.join(", "),
        1.3 * rate as f64 / n as f64,
    )
}

const MODEL: &str = "retry_forever = true\neifs = false\ncapture = \"off\"";

fn throughput(n: u32, rate: u32, rts: bool, seconds: u32, more: &str) -> f64 {
    let done = run(&saturated(n, rate, rts, seconds, more));
    done.flows("f", "throughput_bps").iter().sum::<f64>() / 1e6
}

/// The model's own numbers, worked out apart.
#[test]
fn the_model_is_bianchis() {
    let table = [(1.0, 30.50, 24.92), (5.0, 30.13, 26.85), (20.0, 26.32, 26.52), (50.0, 23.40, 25.94)];
    for (n, basic, rts) in table {
        assert!((bianchi(n, 54.0, 24.0, false) - basic).abs() < 0.006, "{n}: {}", bianchi(n, 54.0, 24.0, false));
        assert!((bianchi(n, 54.0, 24.0, true) - rts).abs() < 0.006, "{n}: {}", bianchi(n, 54.0, 24.0, true));
    }
    assert!((bianchi(10.0, 6.0, 6.0, false) - 4.30).abs() < 0.006);
}

#[test]
fn saturation_throughput_is_bianchis() {
    for (n, rts) in [(1, false), (5, false), (20, false), (1, true), (5, true), (20, true)] {
        let (got, expected) = (throughput(n, 54, rts, 5, MODEL), bianchi(n as f64, 54.0, 24.0, rts));
        let error = got / expected - 1.0;
        println!("n = {n}, rts {rts}: {got:.2} Mbit/s, model {expected:.2}, {:+.2} %", 100.0 * error);
        assert!(error.abs() < 0.03, "n = {n}, rts {rts}: {got:.2} Mbit/s, model {expected:.2}");
    }
}

/// Worked out by hand: 380 us for RTS, CTS, data and ACK, 308 us for each further SIFS, data, SIFS and ACK, then DIFS and 7.5
/// slots. 1 ms holds three packets, 690 us two, 500 us one.
#[test]
fn a_burst_contends_once() {
    for (burst, packets) in [("0s", 1), ("500us", 1), ("690us", 2), ("1ms", 3)] {
        let got = throughput(1, 54, true, 3, &format!("burst = \"{burst}\""));
        let cycle = 380.0 + 308.0 * (packets - 1) as f64 + 34.0 + 67.5;
        let expected = 12000.0 * packets as f64 / cycle;
        println!("burst {burst}: {got:.2} Mbit/s, by hand {expected:.2}");
        assert!((got / expected - 1.0).abs() < 0.005, "burst {burst}: {got:.2} Mbit/s, by hand {expected:.2}");
    }
}

/// One station and nothing that returns over the air, as the standard has it: DIFS, 7.5 slots of backoff, data, SIFS and ACK
/// are 34 + 67.5 + 248 + 16 + 28 us a packet of 1500 B at 54 Mbit/s, without wires that take acknowledgements away.
#[test]
fn one_station_sends_what_its_cycle_allows() {
    let done = run(r#"
        duration = "10s"
        warmup = "1s"
        [[medium]]
        name = "air"
        layout = { kind = "star", stations = 1, spacing = "5m" }
        rate = "54Mbit/s"
        [[flows]]
        name = "f"
        protocol = "greedy"
        params = { rate = "60Mbit/s" }
        from = "n1"
        to = "n0"
    "#);
    let (got, expected) = (done.flows("f", "goodput_bps")[0] / 1e6, 8.0 * 1448.0 / 393.5);
    println!("{got:.3} Mbit/s, by hand {expected:.3}");
    assert!((got / expected - 1.0).abs() < 0.005, "{got:.3} Mbit/s, by hand {expected:.3}");
}
