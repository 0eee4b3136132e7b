//! TCP's variants against their closed forms, end to end: response to random loss, growth, equilibria. Tests by hand, without a
//! network, are beside each controller.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common;
use crate::outcome::{Outcome, mean, run};
use explicate_core::rng::power;

/// Bytes of headers in front of the payload of a data packet.
const HEADERS: f64 = 52.0;

/// One flow of 1000-byte packets over a gigabit and a round trip of 100 ms, whose packets are lost at random.
fn lossy(protocol: &str, p: f64, seconds: f64) -> Outcome {
    run(&lossy_text(protocol, p, seconds))
}

fn lossy_text(protocol: &str, p: f64, seconds: f64) -> String {
    format!(
        r#"
        duration = "{seconds}s"
        warmup = "{warmup}s"
        [[node]]
        name = "a"
        [[node]]
        name = "b"
        [[link]]
        name = "there"
        from = "a"
        to = "b"
        rate = "1Gbit/s"
        delay = "50ms"
        queue = "unlimited"
        channel = [{{ kind = "random_loss", rate = {p} }}]
        [[link]]
        name = "back"
        from = "b"
        to = "a"
        rate = "1Gbit/s"
        delay = "50ms"
        queue = "unlimited"
        [[flows]]
        name = "f"
        from = "a"
        to = "b"
        protocol = "{protocol}"
        packet = "1000B"
        "#,
        warmup = seconds / 20.0,
    )
}

/// Mean window, in segments: the data delivered in a round trip.
fn window(done: &Outcome) -> f64 {
    mean(&done.flows("f", "goodput_bps")) / 8.0 / (1000.0 - HEADERS) * mean(&done.flows("f", "rtt_mean_ms")) / 1e3
}

/// Mathis, Semke, Mahdavi, Ott, CCR 1997: a window of sqrt(3/2) / sqrt(p), with an acknowledgement per packet.
#[test]
fn aimd_follows_the_square_root() {
    for (p, packets) in [(1e-4_f64, 2.5e6), (1e-3, 5e5), (1e-2, 2e5)] {
        let expected = (1.5 / p).sqrt();
        for protocol in ["newreno", "sack", "reno"] {
            // Of a window of 122 segments two are seldom lost, so that recoveries are alike; many losses are too many for Reno's.
            if protocol == "reno" && p > 0.003 || protocol != "sack" && p < 3e-4 {
                continue;
            }
            let got = window(&lossy(protocol, p, packets / expected / 10.0));
            println!(
                "{protocol}, p {p}: window {got:.2}, expected {expected:.2}, {:+.1} %",
                100.0 * (got / expected - 1.0)
            );
            assert!((got / expected - 1.0).abs() < 0.1, "{protocol}, p {p}: {got}, expected {expected}");
        }
    }
}

/// Padhye, Firoiu, Towsley, Kurose, SIGCOMM 1998, equation 29 with b = 1: packets a second. Reno's timeouts begin to count.
#[test]
fn reno_follows_pftk() {
    let pftk = |p: f64, rtt: f64, timeout: f64| {
        let waits = (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
        1.0 / (rtt * (2.0 * p / 3.0).sqrt() + timeout * waits)
    };
    let root = (1.5_f64 / 0.003).sqrt();
    let got = window(&lossy("reno", 0.003, 1000.0));
    println!("reno, p 0.003: window {got:.2}, square root {root:.2}, {:+.1} %", 100.0 * (got / root - 1.0));
    assert!((got / root - 1.0).abs() < 0.1, "{got}, expected {root}");
    let (got, expected) = (10.0 * window(&lossy("reno", 0.01, 2000.0)), pftk(0.01, 0.1, 0.2));
    println!("reno, p 0.01: {got:.1} packets/s, PFTK {expected:.1}, {:+.1} %", 100.0 * (got / expected - 1.0));
    assert!((got / expected - 1.0).abs() < 0.15, "{got}, expected {expected}");
}

/// RFC 3649 section 5: a window of 38 (p / 1e-3)^S with S = ln(83000/38) / ln(1e-7/1e-3) = -.83483.
#[test]
fn highspeed_tcp_follows_its_response() {
    let expected = 38.0 * power(1e-4 / 1e-3, -0.834_83);
    let got = window(&lossy("hstcp", 1e-4, 400.0));
    println!("hstcp, p 1e-4: window {got:.1}, expected {expected:.1}, {:+.1} %", 100.0 * (got / expected - 1.0));
    assert!((got / expected - 1.0).abs() < 0.15, "{got}, expected {expected}");
}

/// Flows of 1000-byte packets over 40 ms access links and a bottleneck of 80 ms in all; every variable is sampled.
fn dumbbell(protocol: &str, mbps: u32, flows: u32, queue: &str, seconds: (u32, u32), more: &str) -> Outcome {
    let (duration, warmup) = seconds;
    run(&format!(
        r#"
        duration = "{duration}s"
        warmup = "{warmup}s"
        [topology]
        kind = "dumbbell"
        pairs = {flows}
        access = {{ rate = "1Gbit/s", delay = "1ms" }}
        bottleneck = {{ rate = "{mbps}Mbit/s", delay = "38ms", queue = {queue} }}
        {more}
        [[flows]]
        name = "f"
        count = {flows}
        protocol = "{protocol}"
        packet = "1000B"
        [sampling]
        every = "20ms"
        of = ["queue", "flow"]
        "#
    ))
}

const SAMPLE: f64 = 0.02;

/// Where a window fell by more than a tenth from one sample to the next, and from how much.
fn falls(windows: &[f64]) -> Vec<(usize, f64)> {
    let fell = |i: &usize| windows[*i] < 0.9 * windows[i - 1];
    (1..windows.len()).filter(fell).map(|i| (i, windows[i - 1])).collect()
}

/// Between two losses the window follows .4 (t - K)^3 + Wmax, with K = cbrt((Wmax - cwnd_epoch) / .4): RFC 9438, equations 1
/// and 2.
#[test]
fn cubic_follows_its_curve() {
    let limit = r#"{ kind = "droptail", limit = "0.5bdp" }"#;
    let done = dumbbell("cubic\"\nstack = \"rfc", 30, 1, limit, (60, 20), "");
    let [windows, w_max, k] = ["cwnd", "w_max", "k_s"].map(|variable| done.samples("f.0", variable, 20.0));
    let (mut compared, mut worst) = (0, 0.0_f64);
    for pair in falls(&windows).windows(2) {
        // The epoch begins when the loss is repaired, with the window that was left.
        let (fell, until) = (pair[0].0, pair[1].0);
        let Some(from) = (fell..until).find(|i| k[*i] != k[fell]) else { continue };
        let by_hand = power((w_max[from] - windows[fell]) / 0.4, 1.0 / 3.0);
        assert!((k[from] / by_hand - 1.0).abs() < 1e-6, "K {} by hand {by_hand}", k[from]);
        for i in from..until {
            let t = (i - from) as f64 * SAMPLE - by_hand;
            worst = worst.max((windows[i] / (0.4 * t * t * t + w_max[i]) - 1.0).abs());
            compared += 1;
        }
    }
    println!("cubic: within {:.1} % of the curve over {compared} samples", 100.0 * worst);
    assert!(compared > 500 && worst < 0.02, "{worst} over {compared}");
}

/// From .875 Wmax, steps of 32 while the distance is beyond 64, then half of it each round trip. The receiver holds 1000
/// segments: about that is Wmax at every loss.
#[test]
fn bic_searches_in_halves() {
    let more = "params = { receiver_window = 1000 }\n[sampling]\nevery = \"20ms\"\nof = [\"flow\"]";
    let done = run(&(lossy_text("bic", 5e-5, 40.0) + more));
    let [windows, w_max] = ["cwnd", "max_win"].map(|variable| done.samples("f.0", variable, 2.0));
    let mut searches = 0;
    for pair in falls(&windows).windows(2) {
        let (fell, until) = (pair[0].0, pair[1].0);
        let near = |i: &usize| windows[*i] > w_max[fell] - 2.0;
        let Some(reached) = (fell..until).find(near).filter(|_| w_max[fell] > windows[fell]) else { continue };
        let (mut gap, mut rounds) = (w_max[fell] - windows[fell], 1); // and one for the repair
        while gap > 2.0 {
            gap -= (gap / 2.0).min(32.0);
            rounds += 1;
        }
        let got = (reached - fell) as f64 * SAMPLE / 0.1;
        println!(
            "bic: from {:.0} to within 2 of {:.0} in {got:.1} round trips, expected {rounds}",
            windows[fell], w_max[fell]
        );
        assert!((got - rounds as f64).abs() <= 1.0, "{got}, expected {rounds}");
        searches += 1;
    }
    assert!(searches >= 5, "{searches}");
}

/// Caini, Firrincieli 2004: rho^2 segments a round trip, so the rate gains 1 / RTT0^2 = 1600 packets/s a second, whatever the
/// round trip.
#[test]
fn hybla_gains_rate_as_over_25_ms() {
    for rtt in [25.0, 80.0, 200.0] {
        let text = format!(
            r#"
            duration = "12s"
            [topology]
            kind = "dumbbell"
            pairs = 1
            access = {{ rate = "10Gbit/s", delay = "1ms" }}
            bottleneck = {{ rate = "10Gbit/s", delay = "{}ms" }}
            [[flows]]
            name = "f"
            protocol = "hybla"
            packet = "1000B"
            [sampling]
            every = "100ms"
            of = ["flow"]
            "#,
            rtt / 2.0 - 2.0
        );
        let done = run(&text);
        let windows = done.samples("f.0", "cwnd", 6.0);
        let (first, last) = (windows[0], windows[windows.len() - 1]);
        let got = (last - first) / (0.1 * (windows.len() - 1) as f64) / (rtt * 1e-3);
        let rho = mean(&done.samples("f.0", "rho", 6.0));
        println!("hybla, {rtt} ms: rho {rho:.3}, {got:.0} packets/s a second, expected 1600");
        assert!((rho / (rtt / 25.0) - 1.0).abs() < 0.001, "{rho}");
        assert!((got / 1600.0 - 1.0).abs() < 0.03, "{rtt} ms: {got}");
    }
}

/// The window after a random loss still fills the path: 20 Mbit/s times 80 ms, 200 packets.
#[test]
fn westwood_keeps_the_path_full() {
    let more = "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", rate = \"0.05%\" }]";
    for (protocol, least) in [("westwood/sack", 0.995), ("sack", 0.0)] {
        let done = dumbbell(protocol, 20, 1, r#"{ kind = "droptail", limit = "5.0bdp" }"#, (60, 30), more);
        let utilisation = done.link("r1->r2", "utilisation");
        let thresholds = done.samples("f.0", "ssthresh", 30.0);
        let (low, high) = thresholds.iter().fold((f64::MAX, 0.0_f64), |(l, h), t| (l.min(*t), h.max(*t)));
        println!("{protocol}: utilisation {utilisation:.4}, thresholds {low:.1} to {high:.1}");
        assert!(utilisation >= least, "{utilisation}");
        if least > 0.0 {
            assert!(low > 198.0 && high < 203.0, "bandwidth times least round trip is 200: {low} to {high}");
        } else {
            assert!(utilisation < 0.95, "what halving costs: {utilisation}");
        }
    }
}

/// Vegas: one to three packets of each flow in the queue. FAST: alpha, plus the other flows' first packets in the queue when
/// a flow measured its base round trip: with four flows that start at once, up to three windows of three.
#[test]
fn delay_based_laws_keep_their_packets_in_the_queue() {
    let queue = r#"{ kind = "droptail", limit = "2.0bdp" }"#;
    let done = dumbbell("vegas\"\nparams = { acks = \"counted\" }\nstart = \"0s", 20, 4, queue, (60, 30), "");
    let waiting = mean(&done.samples("r1->r2", "queue_packets", 30.0));
    println!("vegas: {waiting:.1} packets of 4 flows wait, utilisation {:.4}", done.link("r1->r2", "utilisation"));
    assert!((4.0..=12.0).contains(&waiting) && done.link("r1->r2", "utilisation") > 0.99, "{waiting}");
    for (alpha, flows, others) in [(20.0, 1, 0.0), (20.0, 4, 9.0), (50.0, 4, 9.0)] {
        let flow = format!("fast\"\nparams = {{ alpha = {alpha}, acks = \"counted\" }}\nstart = \"0s");
        let done = dumbbell(&flow, 20, flows, queue, (40, 20), "");
        let waiting = mean(&done.samples("r1->r2", "queue_packets", 20.0));
        println!("fast: {waiting:.1} packets of {flows} flows with alpha {alpha} wait");
        let goal = alpha * flows as f64;
        // The packet in service does not count as waiting.
        assert!(waiting > goal - 1.5 && waiting < goal + 0.5 + others, "{waiting}");
        assert!(common::jain(&done.flows("f", "goodput_bps")) > 0.99);
    }
}

/// A single BBR v1 flow: estimates bandwidth and round trip, cycles its gain, and has one bandwidth-delay product in flight.
#[test]
fn bbr_knows_its_path() {
    let done = dumbbell("bbr", 50, 1, r#"{ kind = "droptail", limit = "2.0bdp" }"#, (31, 3), "");
    let steady = |variable: &str| done.samples("f.0", variable, 3.0);
    let (bandwidth, rtprop, flying) = (mean(&steady("bandwidth_bps")), mean(&steady("rtprop_ms")), steady("in_flight"));
    let utilisation = done.link("r1->r2", "utilisation");
    println!(
        "bbr: {:.2} Mbit/s, {rtprop:.2} ms, {:.0} packets in flight of 500, queue {:.1}, utilisation {utilisation:.4}",
        bandwidth / 1e6,
        mean(&flying),
        done.link("r1->r2", "queue_mean_packets"),
    );
    assert!((bandwidth / 50e6 - 1.0).abs() < 0.02 && (rtprop - 80.2).abs() < 0.5, "{bandwidth} {rtprop}");
    assert!((mean(&flying) / 500.0 - 1.0).abs() < 0.08, "{}", mean(&flying));
    assert!(utilisation > 0.97 && done.drops() == 0.0, "{utilisation}");
    // Eight phases of a round trip, one up, one down; ten seconds apart a pause with four packets in flight.
    let gains = steady("pacing_gain");
    let share = |gain: f64| gains.iter().filter(|g| **g == gain).count() as f64 / gains.len() as f64;
    println!("bbr: gains 1.25 {:.3}, 0.75 {:.3}, 1 {:.3} of the time", share(1.25), share(0.75), share(1.0));
    assert!((share(1.25) - 0.125).abs() < 0.04 && (0.02..0.14).contains(&share(0.75)), "{gains:?}");
    assert!((share(1.25) + share(0.75) + share(1.0) - 1.0).abs() < 1e-9);
    let pauses = flying.windows(2).filter(|w| w[0] > 4.0 && w[1] <= 4.0).count();
    assert!((2..=3).contains(&pauses), "{pauses} pauses in 28 s");
}

/// New Jersey: its routers warn in time, so a clean path drops nothing; random losses do not cost it the window.
#[test]
fn new_jersey_tells_losses_apart() {
    let queue = r#"{ kind = "droptail", limit = "1.0bdp" }"#;
    let lossy = "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", rate = \"1%\" }]";
    let share = |protocol: &str, more: &str| {
        let done = dumbbell(protocol, 10, 2, queue, (60, 20), more);
        let link = |column: &str| done.link("r1->r2", column);
        println!(
            "{protocol} {}: utilisation {:.3}, queue {:.1} of 100, {} overflows",
            if more.is_empty() { "clean" } else { "lossy" },
            link("utilisation"),
            link("queue_mean_packets"),
            link("drops_overflow"),
        );
        (link("utilisation"), link("drops_overflow"))
    };
    let (clean, overflows) = share("new_jersey", "");
    assert!(clean > 0.95 && overflows == 0.0, "{clean} {overflows}");
    let (jersey, newreno) = (share("new_jersey", lossy).0, share("newreno", lossy).0);
    assert!(jersey > 3.0 * newreno, "{jersey} {newreno}");
}

/// With ECN over RED nothing is dropped for being early; who heeds marks keeps the queue near the thresholds.
#[test]
fn rivals_heed_marks() {
    let red = r#"{ kind = "red", min_th = "10pkt", max_th = "60pkt", limit = "400pkt" }"#;
    for preset in ["tahoe", "reno", "newreno", "sack", "cubic", "hstcp", "bic", "hybla", "westwood", "fast"] {
        let flow = format!("{preset}\"\nparams = {{ ecn = true }}\nstart = \"0s");
        let done = dumbbell(&flow, 10, 2, red, (40, 20), "");
        let link = |column: &str| done.link("r1->r2", column);
        println!(
            "{preset}: utilisation {:.3}, queue {:.1}, {} marks, {} early drops",
            link("utilisation"),
            link("queue_mean_packets"),
            link("marks"),
            link("drops_early")
        );
        assert!(link("marks") > 0.0 && link("drops_early") == 0.0, "{preset}");
        assert!(link("utilisation") > 0.8 && link("queue_mean_packets") < 60.0, "{preset}");
    }
}
