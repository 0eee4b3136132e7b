//! A router's grants come from its pools, independent of the request and the window of a single packet.

use crate::outcome::run;

/// One flow on 30 Mbit/s and 100 ms, with room for 50 packets: it overflows, waits for its timeout, and continues with a window
/// of one, whose X is hundreds of times that of the packets from which the router computed its share per X.
fn after_timeouts(protocol: &str) -> String {
    format!(
        r#"
        duration = "40s"
        warmup = "20s"
        [topology]
        kind = "dumbbell"
        pairs = 1
        access = {{ rate = "60Mbit/s", delay = "1ms", router = "none" }}
        bottleneck = {{ rate = "30Mbit/s", delay = "48ms", queue = {{ kind = "droptail", limit = "49pkt" }}, router = {{ kind = "xcp", min_interval = "1ms" }} }}
        [[flows]]
        name = "f"
        protocol = "{protocol}"
        packet = "1050B"
        params = {{ initial_window = 2 }}
        [sampling]
        every = "1ms"
        of = ["flow"]
        "#
    )
}

/// An interval distributes at most alpha = 0.4 of the 3.75 MB/s, or the shuffled traffic, a tenth of a load that the access link
/// limits to 7.5 MB/s: 1.5 MB/s. An acknowledgement answers one packet, so it grants no more.
#[test]
fn an_acknowledgement_grants_no_more_than_an_interval_holds() {
    for protocol in ["XCP_dumb", "XCP", "xcp"] {
        let done = run(&after_timeouts(protocol));
        let granted = done.samples("f.0", "feedback_bytes_per_s", 0.0).into_iter().fold(f64::MIN, f64::max);
        assert!(granted > 0.0 && granted <= 1.5e6, "{protocol}: {granted} B/s on one acknowledgement");
    }
}
