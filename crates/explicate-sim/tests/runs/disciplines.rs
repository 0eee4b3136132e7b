//! What each queue discipline promises, under TCP. Packet conservation is checked by every run.

use crate::outcome::{Outcome, mean, run};
use explicate_core::registry::{PROTOCOLS, QDISCS};

/// Ten SACK flows over 20 Mbit/s and 60 ms (150 packets of 1000 bytes), the second half of a minute.
fn ten(queue: &str, params: &str) -> Outcome {
    run(&format!(
        r#"
        duration = "60s"
        warmup = "30s"
        [topology]
        kind = "dumbbell"
        pairs = 10
        access = {{ rate = "100Mbit/s", delay = "1ms" }}
        bottleneck = {{ rate = "20Mbit/s", delay = "28ms", queue = {{ {queue} }} }}
        [[flows]]
        name = "f"
        count = 10
        protocol = "sack"
        packet = "1000B"
        params = {{ {params} }}
        start = {{ spread = "1s" }}
        [sampling]
        every = "100ms"
        of = ["queue", "router"]
        "#
    ))
}

fn used(o: &Outcome) -> f64 {
    o.link("r1->r2", "utilisation")
}
fn queue(o: &Outcome) -> f64 {
    o.link("r1->r2", "queue_mean_packets")
}

#[test]
fn every_discipline_carries_every_law() {
    for q in QDISCS {
        for p in PROTOCOLS {
            let o = run(&format!(
                r#"
                duration = "3s"
                [topology]
                bottleneck = {{ rate = "5Mbit/s", delay = "10ms", queue = "{}" }}
                [[flows]]
                name = "f"
                count = 4
                protocol = "{}"
                params = {{ ecn = true }}
                "#,
                q.name(),
                p.name()
            ));
            assert!(used(&o) > 0.5, "{} over {} uses {}", p.name(), q.name(), used(&o));
        }
    }
}

#[test]
fn pi_holds_its_reference() {
    for (ecn, target) in [("ecn = true", 50.0), ("", 100.0)] {
        let o =
            ten(&format!("kind = \"pi\", a = 1e-4, b = 9.95e-5, target = \"{target}pkt\", limit = \"300pkt\""), ecn);
        assert!((queue(&o) / target - 1.0).abs() < 0.1, "{}", queue(&o));
        assert!(used(&o) > 0.98);
    }
}

#[test]
fn rem_rests_at_its_target() {
    // At rest alpha (q - q*) + x - cT = 0: with matched rates the queue is on target.
    let o = ten("kind = \"rem\", gamma = 0.02, target = \"40pkt\", limit = \"300pkt\"", "ecn = true");
    assert!((queue(&o) / 40.0 - 1.0).abs() < 0.15, "{}", queue(&o));
    assert!(o.link("r1->r2", "marks") > 0.0 && o.link("r1->r2", "drops_early") == 0.0);
}

#[test]
fn avq_uses_the_line_to_gamma() {
    for (gamma, ecn) in [(0.98, "ecn = true"), (0.85, "ecn = true"), (0.85, "")] {
        let o = ten(&format!("kind = \"avq\", gamma = {gamma}, limit = \"100pkt\""), ecn);
        assert!((used(&o) - gamma).abs() < 0.01, "{gamma}: {}", used(&o));
    }
}

#[test]
fn adaptive_red_holds_its_average_in_the_target() {
    // Thresholds 20 and 60: the target is 36 to 44, whatever max_p it begins with.
    for max_p in [0.002, 0.3] {
        let queue = |adaptive: bool| {
            let kind = "kind = \"red\", min_th = \"20pkt\", max_th = \"60pkt\", weight = 0.002, limit = \"300pkt\"";
            let o = ten(&format!("{kind}, max_p = {max_p}, adaptive = {adaptive}"), "");
            mean(&o.samples("r1->r2", "average_packets", 30.0))
        };
        let (plain, adaptive) = (queue(false), queue(true));
        assert!((36.0..=44.0).contains(&adaptive), "{adaptive}");
        assert!(!(36.0..=44.0).contains(&plain), "{plain}: nothing to adapt");
    }
}

#[test]
fn codel_keeps_the_delay_near_its_target() {
    let delay = |queue: &str, ecn| {
        let o = ten(queue, ecn);
        assert!(used(&o) > 0.93);
        o.link("r1->r2", "queue_mean_ms")
    };
    assert!(delay("kind = \"droptail\", limit = \"300pkt\"", "") > 50.0);
    for ecn in ["", "ecn = true"] {
        assert!(delay("kind = \"codel\", limit = \"300pkt\"", ecn) < 12.0);
    }
}

/// A flow that sends one packet per round trip, and eight that send as fast as they can.
#[test]
fn fq_codel_lets_the_sparse_pass() {
    let rtt = |kind: &str| {
        let o = run(&format!(
            r#"
            stack = "ns2"
            duration = "30s"
            warmup = "10s"
            [topology]
            pairs = 9
            access = {{ rate = "100Mbit/s", delay = "1ms" }}
            bottleneck = {{ rate = "20Mbit/s", delay = "28ms", queue = {{ kind = "{kind}", limit = "300pkt" }} }}
            [[flows]]
            name = "bulk"
            count = 8
            protocol = "cubic"
            [[flows]]
            name = "sparse"
            protocol = "sack"
            params = {{ receiver_window = 1 }}
            "#
        ));
        mean(&o.flows("sparse", "rtt_mean_ms"))
    };
    let (alone, shared) = (rtt("fq_codel"), rtt("codel"));
    assert!(alone < 62.0, "60 ms and hardly any wait: {alone}");
    assert!(shared > alone + 4.0, "{shared} with codel");
}
