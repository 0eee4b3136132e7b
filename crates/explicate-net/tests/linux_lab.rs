//! The laboratory, on this machine's kernel. Needs root, so `make linux` runs it.

mod common;

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::{PROGRAM, jain, lab, measured, namespaces, number, numbers};

const DUMBBELL: &str = r#"
name = "dumbbell"
duration = "14s"
warmup = "6s"
[topology]
kind = "dumbbell"
access = { rate = "200Mbit/s", delay = "1ms" }
bottleneck = { rate = "50Mbit/s", delay = "18ms", queue = { kind = "droptail", limit = "1.0bdp" } }
[[flows]]
name = "f"
count = 2
protocol = "xcp"
packet = "1500B"
[[link]]
name = "r1->r2"
channel = [{ kind = "random_loss", rate = "0%" }]
"#;
const BDP_PACKETS: f64 = 50e6 / 8.0 * 0.04 / 1500.0;

#[test]
#[ignore = "needs root: make linux"]
fn two_xcp_flows_fill_the_link_and_leave_the_queue_empty() {
    measured(|| {
        let told = lab(DUMBBELL, &[]);
        let of_link = |column| number(&told, "links", "link", "r1->r2", column);
        assert!(of_link("utilisation") >= 0.95, "{}", of_link("utilisation"));
        assert!(of_link("queue_p95_packets") < 0.2 * BDP_PACKETS, "{}", of_link("queue_p95_packets"));
        assert_eq!(of_link("drops_total"), 0.0);
        let rates = numbers(&told, "flows", "goodput_bps");
        assert!(jain(&rates) >= 0.98, "{rates:?}");
        assert_eq!(numbers(&told, "flows", "retransmissions"), [0.0, 0.0]);
    });
}

#[test]
#[ignore = "needs root: make linux"]
fn a_loss_resilient_flow_holds_its_rate_on_a_link_that_loses() {
    measured(|| {
        for (loss, least) in [("1%", 0.9), ("5%", 0.8)] {
            let sets = [&format!("link.r1->r2.channel.0.rate={loss}"), "flows.f.protocol=LR-LMXCP"];
            let told = lab(DUMBBELL, &sets);
            let share = numbers(&told, "flows", "goodput_bps").iter().sum::<f64>() / 50e6;
            assert!(share >= least, "{loss}: {share}");
            let (lost, sent) =
                (number(&told, "links", "link", "r1->r2", "drops_channel"), numbers(&told, "flows", "sent_packets"));
            let seen = lost / sent.iter().sum::<f64>();
            let asked = loss.trim_end_matches('%').parse::<f64>().unwrap() / 100.0;
            assert!((seen / asked - 1.0).abs() < 0.25, "{loss}: {seen} of all packets were lost");
        }
    });
}

#[test]
#[ignore = "needs root: make linux"]
fn other_signals_cross_the_same_router() {
    measured(|| {
        // VCP doubles its window in some twenty round trips of low load, and is there after 20 s, simulated and real.
        for (protocol, warmup, duration) in [("vcp", 22, 36), ("xtcp", 8, 20)] {
            let span = [format!("warmup={warmup}s"), format!("duration={duration}s")];
            let told = lab(DUMBBELL, &[&format!("flows.f.protocol={protocol}"), &span[0], &span[1]]);
            let share = numbers(&told, "flows", "goodput_bps").iter().sum::<f64>() / 50e6;
            assert!(share > 0.8, "{protocol}: {share}");
            // Less than end-to-end congestion control would lose on its own.
            let lost = number(&told, "links", "link", "r1->r2", "drops_overflow");
            let sent: f64 = numbers(&told, "flows", "sent_packets").iter().sum();
            assert!(lost < 0.01 * sent, "{protocol}: {lost} of {sent}");
        }
    });
}

#[test]
#[ignore = "needs root: make linux"]
fn nothing_stays_behind_whatever_ends_the_lab() {
    let path = std::env::temp_dir().join(format!("exptest-{}-stop.toml", std::process::id()));
    std::fs::write(&path, DUMBBELL).unwrap();
    for signal in ["INT", "TERM"] {
        let mut child =
            Command::new(PROGRAM).arg("lab").arg(&path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let own = format!("explicate-{}-", child.id());
        sleep(Duration::from_millis(2500));
        assert!(!namespaces(&own).is_empty(), "the lab has begun");
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(!child.wait().unwrap().success());
        assert_eq!(namespaces(&own), Vec::<String>::new(), "{signal}");
    }
    // What one leaves behind that had no time to clean up, the next one removes.
    let mut child =
        Command::new(PROGRAM).arg("lab").arg(&path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let own = format!("explicate-{}-", child.id());
    sleep(Duration::from_millis(2500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!namespaces(&own).is_empty());
    lab(DUMBBELL, &["duration=1s", "warmup=0s"]);
    assert_eq!(namespaces(&own), Vec::<String>::new());
    std::fs::remove_file(&path).unwrap();
}
