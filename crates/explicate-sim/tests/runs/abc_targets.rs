//! Design goals of ABC: a link that is nearly full, a queue near the threshold at most, equal shares, and a rate that
//! falls is followed within a few round trips.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{Line, dumbbell, group, run};

/// The target is 0.98 of the link. Each of N flows adds a segment per round trip by itself, which routers take back:
/// among the W packets in flight N more brake than accelerate. So departures exceed the target by the factor 1 / (1 -
/// N / W), up to the rate of the line. Where that is not enough, a queue longer than d_t lowers the target. Round
/// trips of 40 ms.
#[test]
fn a_link_nearly_full_a_short_queue_and_equal_shares() {
    for (mbps, flows) in [(20.0, 1), (20.0, 2), (100.0, 10)] {
        let done = run(&dumbbell("abc", mbps, (40.0, 40.0), flows));
        let utilisation = done.link("r1->r2", "utilisation");
        let (queue, drops) = (done.link("r1->r2", "queue_mean_ms"), done.drops());
        let fairness = jain(&done.flows("f", "goodput_bps"));
        println!(
            "{mbps} Mbit/s, {flows} flows: {utilisation:.4}, queue {queue:.2} ms, {drops} drops, Jain {fairness:.5}"
        );
        assert!(utilisation >= 0.9 * 0.98, "{mbps} {flows}: {utilisation}");
        assert!(queue < 25.0, "{mbps} {flows}: {queue} ms");
        assert!(fairness > 0.98, "{mbps} {flows}: {fairness}");
    }
}

/// Ten flows share 10 Mbit/s, which are 1250 packets of 1000 bytes a second. The round trip is 40 ms without a queue,
/// so 50 packets fill it. Let a packet wait x seconds in the queue. Then W = 50 + 1250 x packets are in flight, and
/// the law of ABC is at rest where x = d_t + delta (N / W - (1 - eta)) (`protocols/abc.rs`). The two equations give x
/// = 32.1 ms and W = 90. The simulated queue is shorter, because a sender uses only the whole part of its window: on
/// average half a packet less, for each of ten flows.
#[test]
fn many_flows_have_the_queue_of_the_closed_form() {
    let text = dumbbell("abc", 10.0, (40.0, 40.0), 10).replace("1.0bdp", "400pkt");
    let done = run(&text);
    let (queue, utilisation) = (done.link("r1->r2", "queue_mean_ms"), done.link("r1->r2", "utilisation"));
    println!("queue {queue:.2} ms, closed form 32.1 ms; utilisation {utilisation:.4}");
    assert!((queue / 32.1 - 1.0).abs() < 0.1, "{queue}");
    assert!(utilisation > 0.999, "{utilisation}");
}

/// 20 Mbit/s fall to 10 after 10 s, which the router learns at once. What is in flight then, 100 packets of 1000 bytes,
/// are 80 ms of the new rate, of which 40 are the round trip. Ten round trips later the queue is what it was.
#[test]
fn the_queue_drains_within_round_trips_where_the_rate_halves() {
    let steps = r#"[{ at = "0s", rate = "20Mbit/s" }, { at = "10s", rate = "10Mbit/s" }]"#;
    let port = &format!("capacity = {steps}\nchannel = [{{ kind = \"rate_steps\", steps = {steps} }}]");
    let (queue, of) = ("kind = \"droptail\", limit = \"400pkt\"", &["queue"]);
    let line = Line { mbps: 20.0, rtt: 40, queue, port, seconds: (20, 0), every: 10, of };
    let done = run(&line.text(&group("f", "abc", "count = 2\npacket = \"1000B\"")));
    // Milliseconds of the new rate.
    let queue: Vec<f64> = done.samples("r1->r2", "queue_bytes", 10.0).iter().map(|bytes| bytes / 1250.0).collect();
    let most = queue.iter().copied().fold(0.0, f64::max);
    let late = queue.iter().rposition(|ms| *ms > 30.0).map_or(0.0, |at| 10.0 * (at + 1) as f64);
    println!("at most {most:.1} ms wait; above 30 ms until {late} ms after the step");
    assert!(most > 30.0, "{most} ms: the step has to show");
    assert!(late <= 400.0, "{late} ms");
    assert_eq!(done.drops(), 0.0);
}
