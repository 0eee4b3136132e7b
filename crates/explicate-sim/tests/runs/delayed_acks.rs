//! Receiving ends that acknowledge every second packet: half the acknowledgements, the same flows.

use crate::outcome::{dumbbell, mean, ns2, run};

fn with(protocol: &str, params: &str) -> String {
    ns2(&dumbbell(protocol, 10.0, (80.0, 80.0), 4)).replace("40s", "20s").replace("\"20s\"\n[t", "\"10s\"\n[t")
        + &format!("params = {{ {params} }}\n")
}

#[test]
fn half_the_acknowledgements_and_the_same_throughput() {
    for protocol in ["xcp", "sack"] {
        let each = run(&with(protocol, "ack_every = 1"));
        let second = run(&with(protocol, "ack_every = 2"));
        let share = second.link("r2->r1", "utilisation") / each.link("r2->r1", "utilisation");
        assert!((0.49..0.56).contains(&share), "{protocol}: {share} of the acknowledgements");
        let used = second.link("r1->r2", "utilisation") / each.link("r1->r2", "utilisation");
        assert!(used > 0.98, "{protocol}: {used} of the throughput");
        assert!(second.drops() <= 2.0 * each.drops().max(10.0), "{protocol}: {} drops", second.drops());
    }
}

/// A transfer of one packet with a FIN is answered at once; all but the last of a longer one may wait for the timer.
#[test]
fn an_odd_packet_waits_for_the_timer() {
    let text = |delay: &str| {
        with("sack", &format!("ack_every = 2, ack_delay = \"{delay}\", initial_window = 1"))
            .replace("count = 4", "count = 1\nsize = \"3000B\"")
    };
    // Four segments: the first, alone, waits for the timer; then two, answered at once; then the last.
    let took = |delay: &str| mean(&run(&text(delay)).flows("f", "completion_s"));
    let (short, long) = (took("50ms"), took("150ms"));
    assert!((long - short - 0.1).abs() < 1e-3, "{short} s and {long} s");
}
