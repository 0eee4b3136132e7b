//! What a host's own queue refuses never left the host: it is a loss to the flow, and no packet that was sent.

use crate::outcome::{Outcome, run};

/// A window of 100 packets that losses leave alone, and room for ten before a line of 1 Mbit/s of the host's own.
fn crowded(warmup: &str, processing: &str) -> Outcome {
    run(&format!(
        r#"
        duration = "20s"
        warmup = "{warmup}"
        [topology]
        kind = "dumbbell"
        access = {{ rate = "1Mbit/s", delay = "1ms", router = "none", queue = {{ kind = "droptail", limit = "10pkt" }} }}
        bottleneck = {{ rate = "10Mbit/s", delay = "10ms", router = "none" }}
        [[flows]]
        name = "f"
        protocol = "xcp/sack"
        processing = "{processing}"
        packet = "1000B"
        params = {{ guard = "off", initial_window = 100, desired_rate = "100Mbit/s", on_loss = "keep", on_timeout = "keep" }}
        [sampling]
        every = "1s"
        of = ["throughput"]
        "#
    ))
}

/// 20 s of 1 Mbit/s are 2500 packets: no more can have been sent, however many were tried.
#[test]
fn what_the_host_refuses_was_not_sent() {
    for processing in ["none", "auto"] {
        let done = crowded("0s", processing);
        let (sent, again) = (done.flows("f", "sent_packets")[0], done.flows("f", "retransmissions")[0]);
        let refused = done.link("s0->r1", "drops_overflow");
        assert!(refused > 1000.0, "{refused} refused");
        assert!(sent <= 2500.0 + 11.0, "{sent} sent by a line that carries 2500 packets");
        assert!(again > 0.0 && again <= sent, "{again} sent again of {sent}");
    }
}

#[test]
fn timeouts_of_the_warm_up_are_in_the_total_alone() {
    let [whole, half] = ["0s", "10s"].map(|warmup| {
        let done = crowded(warmup, "none");
        [done.flows("f", "timeouts")[0], done.flows("f", "timeouts_total")[0]]
    });
    assert!(half[0] < whole[0], "{whole:?} {half:?}");
    assert_eq!([whole[0], half[1]], [whole[1]; 2]);
}
