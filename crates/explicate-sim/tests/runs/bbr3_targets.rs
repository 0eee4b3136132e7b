//! Published properties of BBR v3: a busy line with a short queue, few losses where version 1 has many, use of a line
//! that loses at random, shares beside CUBIC and among its own flows, and rates that change. Sections are those of
//! draft-ietf-ccwg-bbr-06.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{self, Line, Outcome, mean, run};

const MBPS: f64 = 50.0;
/// Bits of a packet.
const PACKET: f64 = 12_000.0;

/// A dumbbell for flows that `flows` declares, over 50 Mbit/s.
fn over(flows: &str, rtt: u32, buffer: &str, seconds: (u32, u32), channel: &str) -> Outcome {
    let queue = &format!("kind = \"droptail\", limit = \"{buffer}\"");
    let (port, of) = (&format!("channel = [{channel}]"), &["queue", "throughput", "flow"]);
    run(&Line { mbps: MBPS, rtt, queue, port, seconds, every: 20, of }.text(flows))
}
fn group(name: &str, protocol: &str, count: u32) -> String {
    outcome::group(name, protocol, &format!("count = {count}\nstart = {{ spread = \"2s\" }}"))
}
fn link(done: &Outcome, column: &str) -> f64 {
    done.link("r1->r2", column)
}

/// Utilisation: pacing is 1 % below the bandwidth (section 5.6.2), and measuring the round trip costs 2 % (section
/// 5.3.4.2). That leaves .97. The phase DOWN, at 0.9 of the bandwidth, costs a little more: the bound is .95.
///
/// Queue: UP lasts three rounds after the pipe is full, with at most one product waiting. Then DOWN drains a tenth of
/// the product in a round. So some 14 of 60 rounds have a queue, of half a product on average. Over all rounds that
/// is an eighth of the round trip, 5 ms, and the bound is twice as much.
///
/// Section 10.1: the estimate of the bandwidth is within 2 %.
#[test]
fn one_flow_fills_a_clean_line_with_a_short_queue() {
    let done = over(&group("f", "bbr3", 1), 40, "2.0bdp", (40, 5), "");
    let (utilisation, queue) = (link(&done, "utilisation"), link(&done, "queue_mean_ms"));
    let [bandwidth, rtprop] = ["bandwidth_bps", "rtprop_ms"].map(|variable| mean(&done.samples("f.0", variable, 5.0)));
    println!(
        "utilisation {utilisation:.4}, queue {queue:.2} ms, {} drops; bandwidth {:.2} Mbit/s, round trip {rtprop:.2} ms",
        done.drops(),
        bandwidth / 1e6,
    );
    assert!(utilisation >= 0.95, "{utilisation}");
    assert!(queue < 10.0, "{queue} ms");
    assert_eq!(done.drops(), 0.0, "not in Startup either, whose window is two products");
    assert!((bandwidth / (1e6 * MBPS) - 1.0).abs() < 0.02 && (rtprop - 40.0).abs() < 1.0, "{bandwidth} {rtprop}");
    // Section 5.3.4: with half of the product in flight every five seconds, for 200 ms and a round: 7 times in 35 s.
    let modes = done.samples("f.0", "mode", 5.0);
    let probes = modes.windows(2).filter(|pair| pair[0] != 3.0 && pair[1] == 3.0).count();
    assert!((5..=7).contains(&probes), "{probes} probes for the round trip");
}

/// Section 3.1 aims at full throughput with up to 1 % lost. There are 25 rounds of 100 ms between two probes. Each
/// may lower the short-term bound by 2 %: 1 % is lost, and pacing stays 1 % below the bound. So at the end .6 of it
/// are left, on average .79, and the next probe removes the bound. CUBIC's window is 1.2 / sqrt(p) = 12 packets; 417
/// fill the path.
#[test]
fn random_losses_of_a_hundredth_cost_little() {
    let share = |protocol: &str| {
        let channel = "{ kind = \"random_loss\", rate = \"1%\" }";
        link(&over(&group("f", protocol, 1), 100, "1.0bdp", (60, 10), channel), "utilisation")
    };
    let [v3, v1, cubic] = ["bbr3", "bbr", "cubic"].map(share);
    println!("1 % lost: v3 {v3:.3}, v1 {v1:.3}, CUBIC {cubic:.3}");
    assert!(v3 >= 0.75, "{v3}");
    assert!(cubic < 0.2 * v3, "{cubic}");
}

/// Section 5.3.3.8: Reno and CUBIC can work beside it. Neither starves: each has at least .15 of the line, three tenths
/// of a fair half.
#[test]
fn neither_it_nor_cubic_starves() {
    for buffer in ["1.5bdp", "2.0bdp"] {
        let flows = group("f", "bbr3", 1) + &group("c", "cubic", 1);
        let done = over(&flows, 40, buffer, (120, 20), "");
        let [own, cubic] = ["f", "c"].map(|name| done.flows(name, "goodput_bps")[0] / (1e6 * MBPS));
        println!("{buffer}: v3 {own:.3}, CUBIC {cubic:.3}, queue {:.1} ms", link(&done, "queue_mean_ms"));
        assert!(own > 0.15 && cubic > 0.15, "{buffer}: {own} {cubic}");
    }
}

/// A share of the packets that came to the queue.
fn lost(done: &Outcome, seconds: f64) -> f64 {
    let sent = link(done, "utilisation") * MBPS * 1e6 * seconds / PACKET;
    link(done, "drops_overflow") / (link(done, "drops_overflow") + sent)
}

/// Two flows of version 1 estimate more than the line has, and keep two products in flight: what a short buffer does
/// not hold is lost. Version 3 probes once in 60 rounds and stops at 2 % (sections 2.8 and 5.3.3.7), and the average is
/// to be considerably lower (section 3.2): 2 % at most, and a quarter of what version 1 loses.
#[test]
fn short_buffers_overflow_seldom() {
    for buffer in ["0.1bdp", "0.25bdp", "0.5bdp"] {
        let of = |protocol: &str| {
            let done = over(&group("f", protocol, 2), 40, buffer, (40, 10), "");
            (lost(&done, 30.0), link(&done, "utilisation"))
        };
        let ((v3, used), (v1, used_by_v1)) = (of("bbr3"), of("bbr"));
        println!("{buffer}: v3 loses {v3:.4} and uses {used:.3}, v1 {v1:.4} and {used_by_v1:.3}");
        assert!(v3 < 0.02 && v3 < v1 / 4.0, "{buffer}: {v3} {v1}");
        assert!(used > 0.8, "{buffer}: {used}");
    }
}

/// Flows that come one after another have like shares within a minute: each probe takes from those that have more,
/// since DOWN and the headroom of .15 leave room. A Jain's index of .9 allows one of five flows twice the share of the
/// others, and a little more.
#[test]
fn five_flows_become_fair() {
    for buffer in ["0.5bdp", "2.0bdp"] {
        let done = over(&group("f", "bbr3", 5), 40, buffer, (60, 30), "");
        let rates = done.flows("f", "goodput_bps");
        let (fairness, utilisation) = (jain(&rates), link(&done, "utilisation"));
        println!(
            "{buffer}: Jain {fairness:.4}, utilisation {utilisation:.4}, queue {:.1} ms",
            link(&done, "queue_mean_ms")
        );
        assert!(fairness > 0.9, "{buffer}: {rates:?}");
        assert!(utilisation > 0.9, "{buffer}: {utilisation}");
    }
}

/// 50 Mbit/s become `after` at 10 s, or were that before.
fn stepped(before: u32, after: u32, buffer: &str) -> Outcome {
    let steps = format!(
        r#"{{ kind = "rate_steps", steps = [{{ at = "0s", rate = "{before}Mbit/s" }}, {{ at = "10s", rate = "{after}Mbit/s" }}] }}"#
    );
    over(&group("f", "bbr3", 1), 40, buffer, (60, 5), &steps)
}

/// Section 10.15: ten times the rate is found in O(log) rounds: a probe comes within 3 s, and ten rounds of 1.25 are a
/// factor of ten, so 5 s.
#[test]
fn a_rate_that_grows_is_found() {
    let rate = mean(&stepped(5, 50, "400pkt").samples("r1->r2", "throughput_bps", 15.0)) / 1e6;
    println!("5 to 50 Mbit/s: {rate:.1} Mbit/s from the fifth second after it on");
    assert!(rate > 0.9 * 50.0, "{rate}");
}

/// Section 10.16: when a tenth is left, losses bound the rate, and the maximum of two cycles has gone after two of them,
/// each of 3 s and some rounds, which last eight tenths of a second with the two products that the old rate leaves: 15 s.
///
/// A buffer of 400 packets holds these two products, so nothing is lost. 15 s were expected there too, but it takes 27:
/// every 5 s the probe for the round trip ends the cycle, which with such rounds takes longer, and the product grows with
/// the least round trip.
#[test]
fn a_rate_that_falls_is_noticed() {
    for (buffer, seconds) in [("100pkt", 15.0), ("167pkt", 15.0), ("400pkt", 40.0)] {
        let bandwidth = stepped(50, 5, buffer).samples("f.0", "bandwidth_bps", 10.0);
        let late = bandwidth.iter().rposition(|bps| *bps > 1.1 * 5e6).map_or(0.0, |at| 0.02 * (at + 1) as f64);
        println!("50 to 5 Mbit/s, {buffer}: noticed after {late:.1} s");
        assert!(late < seconds, "{buffer}: {late} s");
    }
}
