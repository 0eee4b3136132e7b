//! What arrives twice counts once: goodput and estimates of the bandwidth stay below the rate of the slowest link, whatever
//! channels copy, delay or lose, and copies hide no losses.

use crate::outcome;

const RATE: f64 = 10e6;
/// Seconds: both ways over the bottleneck and two access links.
const BASE_RTT: f64 = 0.044;
/// Bits of a packet, and the share of its payload.
const PACKET: f64 = 12_000.0;

/// One flow over 10 Mbit/s and 44 ms, with channels on the link and on the way back.
fn path(flow: &str, queue: &str, forth: &str, back: &str, duration: u32) -> String {
    format!(
        r#"
duration = "{duration}s"
warmup = "0s"
processing = "none"
[topology]
kind = "dumbbell"
pairs = 1
access = {{ rate = "100Mbit/s", delay = "1ms" }}
bottleneck = {{ rate = "10Mbit/s", delay = "20ms", queue = {{ kind = "droptail", limit = "{queue}" }} }}
[[link]]
name = "r1->r2"
channel = [{forth}]
[[link]]
name = "r2->r1"
channel = [{back}]
[sampling]
every = "50ms"
of = ["flow"]
[[flows]]
name = "f"
{flow}
"#
    )
}

const TWICE: &str = r#"{ kind = "duplication", rate = "100%" }"#;
/// A channel for data, one for acknowledgements, and the time by which the first delays some packets, s.
const CHANNELS: &[(&str, &str, f64)] = &[
    ("", "", 0.0),
    (TWICE, "", 0.0),
    ("", TWICE, 0.0),
    (TWICE, TWICE, 0.0),
    (r#"{ kind = "duplication", rate = "5%" }"#, "", 0.0),
    (
        r#"{ kind = "duplication", rate = "30%", after = "7ms" }"#,
        r#"{ kind = "duplication", rate = "30%", after = "90ms" }"#,
        0.0,
    ),
    (r#"{ kind = "reordering", rate = "1%", by = "10ms" }"#, "", 0.01),
    (r#"{ kind = "reordering", rate = "10%", by = "10ms" }"#, TWICE, 0.01),
    (r#"{ kind = "random_loss", rate = "1%" }, { kind = "duplication", rate = "100%" }"#, TWICE, 0.0),
    (
        r#"{ kind = "random_loss", rate = "1%" }, { kind = "reordering", rate = "3%", by = "5ms" }, { kind = "duplication", rate = "50%", after = "2ms" }"#,
        "",
        0.005,
    ),
];

/// Estimates of bandwidth: the flow, the variable, and bits a unit.
const ESTIMATES: &[(&str, &str, f64)] = &[
    ("bbr", "bandwidth_bps", 1.0),
    ("bbr/newreno", "bandwidth_bps", 1.0),
    ("bbr/loss_monitor", "bandwidth_bps", 1.0),
    ("bbr/loss_resilient", "bandwidth_bps", 1.0),
    ("bbr3", "bandwidth_bps", 1.0),
    ("bbr3/newreno", "bandwidth_bps", 1.0),
    ("westwood", "bwe_segments_per_s", PACKET),
    ("westwood/sack", "bwe_segments_per_s", PACKET),
    ("new_jersey", "bandwidth_segments_per_s", PACKET),
    ("new_jersey/sack_monitor", "bandwidth_segments_per_s", PACKET),
];

/// A sample spans at least a round trip. Its ends cut one packet, and packets that a channel delays move into it from the time
/// before: no more than the line sends in that time.
#[test]
fn no_estimate_exceeds_the_slowest_link() {
    let mut wrong = Vec::new();
    for (protocol, variable, bits) in ESTIMATES {
        for (forth, back, late) in CHANNELS {
            let flow = format!("protocol = \"{protocol}\"");
            let out = outcome::run(&path(&flow, "1000pkt", forth, back, 12));
            let samples = out.samples("f.0", variable, 0.0);
            let most = samples.iter().fold(0.0, |a: f64, b| a.max(*b)) * bits;
            let bound = RATE * (1.0 + (PACKET / RATE + late) / BASE_RTT);
            assert!(samples.len() > 200 && most > 0.1 * RATE, "{protocol} [{forth}] [{back}]: {most} measures nothing");
            if most > bound {
                wrong.push(format!("{protocol} [{forth}] [{back}]: {:.2} of {:.2} Mbit/s", most / 1e6, bound / 1e6));
            }
        }
    }
    assert!(wrong.is_empty(), "{} estimates:\n{}", wrong.len(), wrong.join("\n"));
}

/// All payload has passed the line since the run began.
#[test]
fn no_goodput_exceeds_the_slowest_link() {
    for protocol in [
        "greedy",
        "video",
        "video_xtcp",
        "reno/none",
        "bbr",
        "bbr3",
        "newreno",
        "cubic",
        "xcp",
        "vcp",
        "xtcp",
        "LR-LMXCP",
        "LR-XTCP",
    ] {
        for (forth, back, _) in CHANNELS {
            let rate = if protocol == "greedy" || protocol.starts_with("video") {
                "params = { rate = \"20Mbit/s\" }"
            } else {
                ""
            };
            let flow = format!("protocol = \"{protocol}\"\n{rate}");
            let out = outcome::run(&path(&flow, "20pkt", forth, back, 4));
            let goodput = out.flows("f", "goodput_bps")[0];
            let bound = RATE * 1448.0 / 1500.0;
            assert!(
                goodput <= bound && goodput > 0.02 * bound,
                "{protocol} [{forth}] [{back}]: {goodput} of {bound} bit/s"
            );
        }
    }
}

/// 5 Mbit/s of UDP, 5 % lost: copies bring nothing, at once or late.
#[test]
fn copies_hide_no_losses() {
    for (protocol, rate) in [("greedy", "5Mbit/s"), ("video", "5Mbit/s"), ("greedy", "20Mbit/s")] {
        let goodput = |copies: &str| {
            let flow = format!("protocol = \"{protocol}\"\nparams = {{ rate = \"{rate}\" }}");
            let forth = format!(r#"{{ kind = "random_loss", rate = "5%" }}{copies}"#);
            outcome::run(&path(&flow, "20pkt", &forth, "", 20)).flows("f", "goodput_bps")[0]
        };
        let once = goodput("");
        assert!(once > 3e6, "{protocol}: {once}");
        for copies in ["1%\"", "5%\"", "20%\"", "100%\"", "100%\", after = \"3ms\"", "50%\", after = \"700ms\""] {
            let twice = goodput(&format!(r#", {{ kind = "duplication", rate = "{copies} }}"#));
            assert_eq!(twice, once, "{protocol} at {rate} with {copies}");
        }
    }
}
