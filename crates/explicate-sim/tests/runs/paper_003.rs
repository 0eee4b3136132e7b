//! Paper D on its own topology (`scenarios/paper-003-fig3.toml`): ten flows through one bottleneck, half of them over a lossy
//! link. Short versions of the runs of `explicate reproduce D`: the order of the variants, and the effect of each switch.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::outcome::{Outcome, mean, run};

const SCENARIO: &str = include_str!("../../../../scenarios/paper-003-fig3.toml");

/// The scenario with another protocol, loss and seed, and parameters beside those of the file.
fn text(protocol: &str, loss: &str, seed: u32, params: &str) -> String {
    SCENARIO
        .replace("\"LR-LMXCP\"", &format!("\"{protocol}\""))
        .replace("rate = \"5%\"", &format!("rate = \"{loss}\""))
        .replace("duration = \"60s\"", &format!("duration = \"60s\"\nseed = {seed}"))
        .replace("of = [\"queue\", \"throughput\", \"cwnd\"]", "of = [\"flow\"]")
        .replace("params = { dupackthreshold = 3,", &format!("params = {{ {params}"))
}

/// Bytes of lossy flows over bytes of loss-free ones, behind the bottleneck; of one run.
fn ratio(done: &Outcome) -> f64 {
    done.link("n1->n3", "utilisation") / done.link("n1->n2", "utilisation")
}

/// The fairness ratio, mean of three seeds.
fn fairness(protocol: &str, loss: &str, params: &str) -> f64 {
    fairness_over(3, protocol, loss, params)
}

/// The fairness ratio, mean of so many seeds.
fn fairness_over(seeds: u32, protocol: &str, loss: &str, params: &str) -> f64 {
    let ratios: Vec<f64> = (1..=seeds).map(|seed| ratio(&run(&text(protocol, loss, seed, params)))).collect();
    println!("{protocol} {params} at {loss}: {:.3} {ratios:.3?}", mean(&ratios));
    mean(&ratios)
}

/// Figure 3 (D-fig3): each step helps, the loss monitor most, and losses do harm.
#[test]
fn the_xcp_family_in_order() {
    let [dumb, plain, pa, lr, lr_pa, lm] = ["XCP_dumb", "XCP", "XCP_PA", "LR-XCP", "LR-XCP_PA", "LR-LMXCP"]
        .map(|p| (fairness(p, "1%", ""), fairness(p, "10%", "")));
    for (one, ten) in [plain, pa, lr, lr_pa, lm] {
        assert!(dumb.0 < one && dumb.1 < ten, "XCP_dumb is the worst");
        assert!(ten < one, "losses do harm");
    }
    assert!(dumb.0 < 0.75 && dumb.1 < 0.3, "{dumb:?}");
    assert!(lm.1 > lr_pa.1 && lr_pa.1 > lr.1, "at 10 %: LM {}, PA {}, LR {}", lm.1, lr_pa.1, lr.1);
    assert!(lr_pa.1 - pa.1 >= 0.05, "the timer with PA: {} to {}", pa.1, lr_pa.1);
    assert!(lr_pa.1 - lr.1 >= 0.05 && (lr_pa.0 - lr.0).abs() <= 0.05, "PA helps where a window has several losses");
    assert!(lm.0 >= 0.95 && lm.1 >= 0.7, "{lm:?}");
}

/// Figure 8 (D-fig8): a coarse signal needs an exact record of the packets that arrived. Single runs of XTCP differ by 0.05
/// (standard deviation): a mean of 24 resolves the differences that are required.
#[test]
fn the_xtcp_family_in_order() {
    let at_5 = |protocol| fairness_over(24, protocol, "5%", "");
    let [tcp, lr, pa, lm, friend] = ["reno", "LR-XTCP", "LR-XTCP_PA", "LR-LMXTCP", "LR-LMXTCP_TCPfriend"].map(at_5);
    assert!(tcp < 0.3 && tcp < lr - 0.3, "TCP starves: {tcp}, LR-XTCP {lr}");
    assert!(pa >= lr + 0.05, "partial acknowledgements help: {lr} to {pa}");
    assert!(lm >= lr + 0.1 && lm >= 0.8, "LM {lm}, LR {lr}");
    assert!(friend >= lr + 0.1, "TCP-friendly {friend}, LR {lr}");
    let (lr_xcp, lm_xcp) = (at_5("LR-XCP"), at_5("LR-LMXCP"));
    assert!(lr < lr_xcp, "LR-XTCP {lr}, LR-XCP {lr_xcp}");
    assert!((lm - lm_xcp).abs() <= 0.1, "LR-LMXTCP {lm}, LR-LMXCP {lm_xcp}");
}

/// Section 7.1: with one duplicate enough, the monitor repairs several losses a round trip.
#[test]
fn the_loss_monitor_stays_fair_at_five_percent() {
    let three = fairness("LR-LMXCP", "5%", "");
    assert!(three >= 0.85, "{three}");
    let one = fairness("LR-LMXCP", "10%", "dupackthreshold = 1, ");
    assert!(one >= 0.95, "{one}");
}

/// What `xcp` that keeps its window on losses gets at 5 %, with these switches of `loss_resilient` on and the others off.
fn switched(on: &[&str]) -> String {
    let all = ["partial_deflation", "partial_ack", "restart_on_any", "retransmission_timer"];
    all.iter()
        .fold(String::from("on_loss = \"keep\", "), |text, name| text + &format!("{name} = {}, ", on.contains(name)))
}

/// Section 4 (D-txt-abl): each switch's own part.
#[test]
fn each_switch_contributes() {
    let of = |on: &[&str]| fairness("xcp/loss_resilient", "5%", &switched(on));
    let none = of(&[]);
    let deflation = of(&["partial_deflation"]);
    let timers = of(&["restart_on_any", "retransmission_timer"]);
    let both = of(&["partial_deflation", "restart_on_any", "retransmission_timer"]);
    let all = of(&["partial_deflation", "partial_ack", "restart_on_any", "retransmission_timer"]);
    assert!(deflation > none + 0.1, "partial deflation: {none} to {deflation}");
    assert!(both > deflation, "timers over deflation: {deflation} to {both}");
    assert!(both > timers + 0.1, "deflation over timers: {timers} to {both}");
    assert!(all > both, "partial acknowledgements: {both} to {all}");
}

/// Section 4.3: a segment that is lost twice is not retransmitted without the timer, while every duplicate releases
/// another segment: the window grows to the receiver's.
#[test]
fn without_the_timer_the_window_runs_away() {
    let most = |on: &[&str], seed: u32| {
        let text = text("xcp/loss_resilient", "2%", seed, &switched(on));
        let often = text.replace("every = \"1s\"", "every = \"100ms\"");
        let done = run(&often.replace("receiver_window = 1000", "receiver_window = 500"));
        let outstanding = |name: &str| {
            let [arrived, under_way] = ["inflation", "in_flight"].map(|what| done.samples(name, what, 0.0));
            arrived.iter().zip(under_way).map(|(a, b)| a + b).fold(0.0, f64::max)
        };
        (0..5).map(|i| outstanding(&format!("lossy.{i}"))).fold(0.0, f64::max)
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for seed in 1..=5 {
        without.push(most(&["partial_deflation", "restart_on_any"], seed));
        with.push(most(&["partial_deflation", "restart_on_any", "retransmission_timer"], seed));
    }
    println!("segments beyond the first hole: {without:?}, with the timer {with:?}");
    assert!(without.iter().zip(&with).all(|(without, with)| with < without), "{without:?}, with the timer {with:?}");
    assert_eq!(without.iter().copied().fold(0.0, f64::max), 500.0, "as many as the receiver has room for");
    assert!(mean(&without) > 400.0, "{without:?} segments beyond the first hole");
    assert!(mean(&with) < 250.0, "{with:?} segments beyond the first hole");
}

/// Section 7.2 (D-fig4): a standing queue keeps the link busy while lossy flows stop and go.
#[test]
fn a_target_queue_keeps_the_link_full() {
    for (loss, gain) in [("0%", 0.0), ("10%", 0.01)] {
        let [plain, queue] = ["LR-XCP_PA", "LR-XCPQ_PA"].map(|p| run(&text(p, loss, 1, "")));
        let [plain, kept] = [&plain, &queue].map(|done| done.link("n0->n1", "utilisation"));
        println!("utilisation at {loss}: {plain:.4}, with a target queue {kept:.4}");
        assert!(kept >= 0.995 && kept >= plain + gain, "{loss}: {plain}, {kept}");
        let waiting = queue.link("n0->n1", "queue_mean_packets");
        assert!((7.0..13.0).contains(&waiting), "{loss}: {waiting} packets wait, 10 are meant to");
    }
}

#[test]
fn without_loss_all_are_alike() {
    for protocol in ["XCP_dumb", "LR-XCP_PA", "LR-LMXCP", "LR-XCPQ_PA"] {
        let done = run(&text(protocol, "0%", 1, ""));
        let numbers = format!("{protocol}: {:.3}, utilisation {:.3}", ratio(&done), done.link("n0->n1", "utilisation"));
        assert!((ratio(&done) - 1.0).abs() < 0.05, "{numbers}");
        assert!(done.link("n0->n1", "utilisation") > 0.97, "{numbers}");
    }
}
