//! The capacity that a port measures by the service of its frames (`estimate/hop_capacity.rs`): what it says where the truth
//! is known, and what XCP makes of it.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the figures

use crate::common::{is_exact, scenario};
use crate::outcome::{Line, Outcome, group, mean, run};

/// `n` stations at 10 m around a hub that always have something to send, and acknowledge nothing; the capacity is measured
/// so, over two seconds: few frames make the mean of a ratio too high.
fn saturated(n: u32, rate: u32, rts: bool, measured: &str, seed: u32) -> String {
    let threshold = if rts { "0B" } else { "unlimited" };
    let from: Vec<String> = (1..=n).map(|i| format!("\"n{i}\"")).collect();
    format!(
        r#"
        duration = "43s"
        warmup = "3s"
        seed = {seed}
        [[medium]]
        name = "air"
        rate = "{rate}Mbit/s"
        rts_threshold = "{threshold}"
        queue = {{ limit = "5pkt" }}
        capacity = {{ measured = "{measured}", window = "2s" }}
        layout = {{ kind = "star", stations = {n}, spacing = "10m" }}
        [[flows]]
        name = "f"
        count = {n}
        protocol = "greedy"
        packet = "1500B"
        from = [{}]
        to = "n0"
        params = {{ rate = "{}Mbit/s" }}
        [sampling]
        every = "20ms"
        of = ["router"]
        "#,
        from.join(", "),
        1.3 * rate as f64 / n as f64,
    )
}

/// The mean of the estimate, Mbit/s.
fn measured(done: &Outcome, link: &str) -> f64 {
    mean(&done.samples(link, "measured_capacity_bps", 3.0)) / 1e6
}
fn carried(done: &Outcome) -> Vec<f64> {
    done.flows("f", "throughput_bps").iter().map(|bps| bps / 1e6).collect()
}

/// A queue that is never empty carries its capacity, whatever the rate, the number of stations and the seed: the mean of
/// the estimate is the throughput. Each station has its own. Without others' share of the air the estimate is too high by
/// that share, and the rate of the radio is no capacity at all.
#[test]
fn a_queue_that_is_never_empty_carries_the_measured_capacity() {
    for (n, rate, rts, seed) in
        [(1, 54, false, 1), (1, 6, true, 2), (2, 54, true, 3), (3, 24, false, 4), (5, 12, true, 5)]
    {
        let of = |by: &str| run(&saturated(n, rate, rts, by, seed));
        let [all, own, phy] = ["air_time", "own_time", "phy_rate"].map(of);
        for (i, throughput) in carried(&all).iter().enumerate() {
            let link = format!("n{}->n0", i + 1);
            let [c, alone, radio] = [&all, &own, &phy].map(|done| measured(done, &link));
            let share = mean(&all.samples(&link, "others_air_share", 3.0));
            println!(
                "{n} at {rate} Mbit/s, {link}: {throughput:.3}, measured {c:.3}, alone {alone:.3}, others {share:.3}"
            );
            assert!((c / throughput - 1.0).abs() < 0.02, "{n} at {rate}, {link}: {c} of {throughput}");
            assert!((radio - rate as f64).abs() < 1e-6, "{radio}");
            if n == 1 {
                assert_eq!((share, alone), (0.0, c), "no other station sends");
            } else {
                assert!(alone > 1.2 * c && share > 0.2, "{n} at {rate}, {link}: {alone} beside {c}, others {share}");
            }
        }
    }
}

/// A line of 20 Mbit/s that falls to 8 after 5 s and rises to 16 after 10: XCP fills it, and the estimate is the rate
/// but for five windows (0.5 s) after each step, in which exp(-5) of the old one is forgotten.
#[test]
fn a_line_is_measured_exactly_and_followed() {
    let steps =
        r#"[{ at = "0s", rate = "20Mbit/s" }, { at = "5s", rate = "8Mbit/s" }, { at = "10s", rate = "16Mbit/s" }]"#;
    let capacity = "capacity = { measured = \"air_time\" }";
    let port = &format!("{capacity}\nchannel = [{{ kind = \"rate_steps\", steps = {steps} }}]");
    let (queue, of) = ("kind = \"droptail\", limit = \"400pkt\"", &["router", "queue"]);
    let line = Line { mbps: 20.0, rtt: 40, queue, port, seconds: (15, 0), every: 10, of };
    let text = line.text(&group("f", "xcp", "count = 2\npacket = \"1000B\""));
    let done = run(&text);
    let all = done.samples("r1->r2", "measured_capacity_bps", 0.0);
    let between = |from: usize, to: usize| &all[100 * from / 1000..100 * to / 1000];
    for (from, to, mbps) in [(1000, 4900, 20.0), (5600, 9900, 8.0), (10_600, 14_900, 16.0)] {
        for bps in between(from, to) {
            assert!((bps / 1e6 / mbps - 1.0).abs() < 0.02, "{bps} bit/s of {mbps} Mbit/s from {from} to {to} ms");
        }
    }
    let carried: f64 = done.flows("f", "throughput_bps").iter().sum::<f64>() / 1e6;
    println!("carried {carried:.2} Mbit/s of 14.67, {} drops", done.drops());
    assert!(carried > 0.9 * 44.0 / 3.0, "{carried}");
    assert_eq!(done.drops(), 0.0);
    is_exact(&scenario(&text));
}

/// Paper N's hop of 54 Mbit/s. Told what the air carries, XCP uses it with next to no queue (`dcf_xcp.rs`); told the rate of
/// the radio, it fills the queue and drops. Measured, it does as the first.
#[test]
fn xcp_needs_no_number_on_a_hop_of_802_11() {
    let hop = |capacity: &str| {
        let done = run(&format!(
            r#"
            duration = "12s"
            warmup = "2s"
            [[medium]]
            name = "air"
            rts_threshold = "0B"
            queue = {{ limit = "100pkt" }}
            capacity = {capacity}
            layout = {{ kind = "chain", stations = 2, spacing = "20m" }}
            [[flows]]
            name = "f"
            protocol = "xcp"
            packet = "1500B"
            from = "n1"
            to = "n2"
            [sampling]
            every = "20ms"
            of = ["router"]
            "#
        ));
        let goodput = done.flows("f", "goodput_bps")[0] / 1e6;
        let (queue, drops) = (done.link("n1->n2", "queue_mean_packets"), done.drops());
        println!("{capacity}: {goodput:.2} Mbit/s, {queue:.1} packets, {drops} drops");
        (goodput, queue, drops)
    };
    let told = [14.0, 16.0, 18.0, 20.0, 22.0, 24.0].map(|mbps| hop(&format!("\"{mbps}Mbit/s\"")));
    let best = told.iter().map(|one| one.0).fold(0.0, f64::max);
    let [measured, radio] = ["air_time", "phy_rate"].map(|by| hop(&format!("{{ measured = \"{by}\" }}")));
    assert!(measured.0 >= 0.9 * best, "{measured:?} beside {told:?}");
    assert_eq!(measured.2, 0.0, "{measured:?}");
    assert!(measured.1 < 0.5 * radio.1, "{measured:?} beside {radio:?} by the rate of the radio");
}
