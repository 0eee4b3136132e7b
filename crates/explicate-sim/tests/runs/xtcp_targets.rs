//! What XTCP is for: TCP's behaviour where queues lose packets, none of it where the air does.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::jain;
use crate::outcome::{Outcome, run};

/// Ten flows over three links of 5 Mbit/s and 20 ms, packets of 1000 bytes, as in paper D section 6. Every queue has a limit: a
/// host that may queue without one at a link as fast as the bottleneck sends a stream in which each packet comes when one leaves.
fn network(protocols: (&str, &str), queue: &str, channel: &str, seconds: u32) -> Outcome {
    let (five, more) = protocols;
    run(&format!(
        r#"
duration = "{seconds}s"
warmup = "20s"
[topology]
kind = "dumbbell"
pairs = 10
access = {{ rate = "5Mbit/s", delay = "20ms", queue = {{ kind = "droptail", limit = "50pkt" }} }}
bottleneck = {{ rate = "5Mbit/s", delay = "20ms", queue = {{ kind = "{queue}", limit = "50pkt" }} }}
[[link]]
name = "r1->r2"
channel = [{channel}]
[[flows]]
name = "five"
count = 5
protocol = "{five}"
packet = "1000B"
start = {{ uniform = "1s" }}
[[flows]]
name = "more"
count = 5
protocol = "{more}"
packet = "1000B"
start = {{ uniform = "1s" }}
[sampling]
every = "10ms"
of = ["router", "queue"]
"#
    ))
}

#[test]
fn ten_flows_share_a_link_behind_either_queue() {
    for queue in ["droptail", "red"] {
        let done = network(("xtcp", "xtcp"), queue, "", 120);
        let utilisation = done.link("r1->r2", "utilisation");
        let goodput = [done.flows("five", "goodput_bps"), done.flows("more", "goodput_bps")].concat();
        println!("{queue}: utilisation {utilisation:.4}, Jain {:.4}, {} drops", jain(&goodput), done.drops());
        assert!(utilisation >= 0.95 && jain(&goodput) >= 0.9, "{queue}: {utilisation} {goodput:?}");
        // Paper D, note 1: the counter never exceeds the queue.
        let counts = done.samples("r1->r2", "congestion_counter", 0.0);
        let waiting = done.samples("r1->r2", "queue_packets", 0.0);
        assert!(counts.len() > 1000 && counts.len() == waiting.len());
        assert!(counts.iter().zip(&waiting).all(|(count, waiting)| count <= waiting));
        assert!(counts.iter().any(|count| *count > 0.0));
    }
}

/// 5 % of the packets are lost after the queue: TCP's windows are halved for each, XTCP's are not.
#[test]
fn losses_on_the_air_do_not_halve_the_window() {
    let lossy = r#"{ kind = "random_loss", rate = "5%" }"#;
    let used = |protocol| network((protocol, protocol), "droptail", lossy, 60).link("r1->r2", "utilisation");
    let (tcp, xtcp) = (used("sack"), used("xtcp"));
    println!("utilisation {tcp:.3}, with XTCP {xtcp:.3}");
    assert!(xtcp > 0.9, "{xtcp}");
    assert!(tcp < 0.75, "{tcp}");
}

/// One queue for both (section 8.1): over RED neither starves. Over drop-tail LR-LMXTCP gets more than TCP, for TCP waits for
/// its timer where several packets of a window are lost at once; three to four times as much, says figure 7a, and here that came
/// out only as long as the flows declared first won every tie.
#[test]
fn tcp_shares_the_queue() {
    for (xtcp, queue, expected) in
        [("xtcp", "red", 1.0..2.0), ("xtcp", "droptail", 1.2..2.3), ("LR-LMXTCP", "droptail", 1.2..2.3)]
    {
        let done = network((xtcp, "reno"), queue, "", 120);
        let sum = |group, column| done.flows(group, column).iter().sum::<f64>();
        let share = sum("five", "throughput_bps") / sum("more", "throughput_bps");
        let timeouts = ["five", "more"].map(|group| sum(group, "timeouts"));
        println!("{xtcp} to TCP over {queue}: {share:.2}, timeouts {timeouts:?}");
        assert!(expected.contains(&share), "{xtcp} over {queue}: {share}");
        assert!(timeouts[0] * 5.0 <= timeouts[1] || queue == "red", "{xtcp}: {timeouts:?}");
    }
}
