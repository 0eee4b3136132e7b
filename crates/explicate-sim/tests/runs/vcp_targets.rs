//! Design goals of VCP and its extensions. VCP: a link nearly full, almost no queue, no loss. BISE: a start that takes as long on a
//! fast link as on a slow one. WLTE: wireless losses that cost only the lost packets.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{Outcome, dumbbell, mean, run};

/// A cut reduces the load, 98 % of the link, by a factor of 0.875; the load then grows back:
/// (1 + 0.875) / 2 * 0.98 = 0.919 on average. Many flows add more in a round trip and overshoot.
#[test]
fn a_link_nearly_full_and_no_queue() {
    for (flows, least, most) in [(10, 0.90, 0.95), (50, 0.93, 1.0)] {
        let done = run(&dumbbell("vcp", 100.0, (80.0, 80.0), flows));
        let utilisation = done.link("r1->r2", "utilisation");
        let queue = done.link("r1->r2", "queue_mean_bytes") / 1e6;
        let fairness = jain(&done.flows("f", "goodput_bps"));
        let drops = done.drops();
        println!(
            "{flows} flows: utilisation {utilisation:.4}, queue {queue:.5} BDP, drops {drops}, Jain {fairness:.5}"
        );
        assert!((least..=most).contains(&utilisation), "{flows} flows: {utilisation}");
        assert!(queue < 0.02 && drops == 0.0 && fairness > 0.99, "{flows} flows: {queue} {drops} {fairness}");
        // Two bits of the IP header: no congestion header, 52 bytes of headers in 1000.
        let share = done.flows("f", "goodput_bps")[0] / done.flows("f", "throughput_bps")[0];
        assert!((share - 0.948).abs() < 0.002, "{share}");
    }
}

/// Paper K section V: round trip 0.5 s, packets of 1040 bytes, a queue of one BDP, access links twice as fast, one flow.
fn satellite(protocol: &str, router: &str, mbps: u32, seconds: u32, more: &str) -> Outcome {
    run(&format!(
        r#"
duration = "{seconds}s"
[topology]
kind = "dumbbell"
pairs = 1
access = {{ rate = "{}Mbit/s", delay = "10ms", router = "none" }}
bottleneck = {{ rate = "{mbps}Mbit/s", delay = "230ms", router = "{router}" }}
[[link]]
name = "r1->r2"
{more}
[[flows]]
name = "f"
protocol = "{protocol}"
packet = "1040B"
params = {{ initial_window = 1 }}
[sampling]
every = "50ms"
of = ["router"]
"#,
        2 * mbps
    ))
}

/// When the router first finds a load factor of 0.8, s.
fn filled(done: &Outcome) -> f64 {
    let loads = done.samples("r1->r2", "load_factor", 0.0);
    let before = loads.iter().position(|rho| *rho >= 0.8).expect("the link fills");
    (before + 1) as f64 * 0.05
}

/// The analysis (equation 12) says 5.02 s at any rate; the window cannot grow more than tenfold in 1.25 s, which a decade more
/// of bandwidth costs once more. VCP needs ln(10) / ln(1.0625) intervals a decade: 7.6 s of 0.2 s each.
#[test]
fn bise_fills_any_link_in_the_same_time() {
    let bise = [10, 100, 1000].map(|mbps| {
        let done = satellite("vcp-bise", "vcp-bise", mbps, 10, "");
        assert_eq!(done.drops(), 0.0);
        filled(&done)
    });
    let vcp = [(10, 24), (100, 32)].map(|(mbps, seconds)| filled(&satellite("vcp", "vcp", mbps, seconds, "")));
    println!("80 % after {bise:.2?} s with BISE at 10, 100, 1000 Mbit/s; {vcp:.2?} s without at 10, 100");
    assert!(bise.iter().all(|t| (5.02..10.0).contains(t)), "{bise:?}");
    assert!((bise[2] - bise[0] - 2.5).abs() <= 1.25, "{bise:?}");
    assert!((vcp[1] - vcp[0] - 7.6).abs() < 0.76, "{vcp:?}");
    assert!(vcp[1] > 2.0 * bise[1], "{vcp:?} {bise:?}");
}

/// Which router answers the two bits is the user's choice: BISE's mixes the codes of plain VCP's senders.
#[test]
fn the_router_that_was_chosen_runs() {
    let done = satellite("vcp", "vcp-bise", 10, 20, "");
    let shares = done.samples("r1->r2", "mixing_ratio", 0.0);
    assert!(shares.iter().any(|r| *r < 1.0), "{shares:?}");
}

#[test]
fn wlte_keeps_its_window_where_packets_are_lost_on_the_air() {
    let lossy = r#"channel = [{ kind = "random_loss", rate = "0.01%" }]"#;
    let goodput = |protocol: &str| {
        let done = satellite(protocol, "vcp-bise", 20, 60, lossy);
        assert!(done.link("r1->r2", "drops_channel") > 3.0, "{protocol}: losses are what this is about");
        mean(&done.flows("f", "goodput_bps"))
    };
    let (plain, wlte) = (goodput("vcp-bise"), goodput("vcp-bise-wlte"));
    println!("goodput {:.2} Mbit/s, with WLTE {:.2} Mbit/s", plain / 1e6, wlte / 1e6);
    assert!(wlte > 1.2 * plain, "{plain} {wlte}");
}
