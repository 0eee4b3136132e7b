//! Flows of a scenario that the kernel's TCP carries in the laboratory: all of their bytes arrive, and their completion is in the
//! table as that of simulated flows.

use serde_json::Value;

use crate::common::{lab_with, number};

const NETWORK: &str = r#"
name = "sized"
duration = "15s"
warmup = "0s"
[topology]
pairs = 4
access = { rate = "200Mbit/s", delay = "1ms" }
bottleneck = { rate = "50Mbit/s", delay = "4ms" }
[sampling]
every = "500ms"
of = ["cwnd", "rtt", "goodput"]
"#;
const SECONDS: f64 = 15.0;

/// A group of flows: its name, their number, their size in bytes and their start.
type Group = (&'static str, usize, u64, &'static str);

/// Runs these groups over a network, all carried by the kernel.
fn carried(network: &str, groups: &[Group]) -> Value {
    let mut text = network.to_string();
    for (name, count, size, start) in groups {
        text += &format!(
            "[[flows]]\nname = \"{name}\"\ncount = {count}\nprotocol = \"cubic\"\nsize = \"{size}B\"\nstart = {start}\n"
        );
    }
    lab_with(&text, "--kernel", &groups.iter().map(|(name, ..)| format!("{name}=cubic")).collect::<Vec<_>>())
}

#[test]
#[ignore = "needs root: make linux"]
fn eight_flows_of_the_kernel_of_one_byte_to_megabytes_complete() {
    let groups = [
        ("byte", 2, 1, "\"300ms\""),
        ("segment", 1, 1448, "\"0s\""),
        ("file", 3, 200_000, "{ spread = \"1s\" }"),
        ("large", 2, 3_000_000, "\"1s\""),
    ];
    let told = carried(NETWORK, &groups);
    assert_eq!(told["sysctls"]["tcp_no_metrics_save"], "1", "hosts have the settings of `lab::sysctls`");
    // Root of a user's own namespace may not have it.
    assert!(told["machine"]["real_time"].is_boolean());
    for (name, count, size, _) in groups {
        for flow in (0..count).map(|i| format!("{name}.{i}")) {
            let of = |column| number(&told, "flows", "flow", &flow, column);
            assert_eq!(of("size_bytes"), size as f64, "{flow}");
            assert_eq!((of("goodput_bps") * SECONDS / 8.0).round(), size as f64, "{flow}");
            let completion = of("completion_s");
            assert!(completion > 0.0 && of("start_s") + completion <= SECONDS, "{flow}: {completion}");
        }
    }
}

/// The others are measured, and the run ends when it should.
#[test]
#[ignore = "needs root: make linux"]
fn flows_of_the_kernel_that_cannot_complete_have_no_completion() {
    let groups = [("early", 1, 1000, "\"0s\""), ("vast", 1, 1_000_000_000, "\"0s\""), ("later", 1, 1000, "\"400s\"")];
    let told = carried(NETWORK, &groups);
    assert!(number(&told, "flows", "flow", "early.0", "completion_s") > 0.0);
    let row = |flow: &str| told["flows"].as_array().unwrap().iter().find(|row| row["flow"] == flow);
    assert!(row("vast.0").unwrap()["completion_s"].is_null());
    assert!(number(&told, "flows", "flow", "vast.0", "goodput_bps") > 0.0);
    assert!(row("later.0").is_none(), "the table has the flows that started");
}

/// The network, whose line stands still from one time to another, s.
fn paused(from: f64, to: f64) -> String {
    let steps = [(0.0, "50Mbit/s"), (from, "0Mbit/s"), (to, "50Mbit/s")];
    let steps = steps.map(|(at, rate)| format!("{{ at = \"{at}s\", rate = \"{rate}\" }}")).join(", ");
    format!("{NETWORK}[[link]]\nname = \"r1->r2\"\nchannel = [{{ kind = \"rate_steps\", steps = [{steps}] }}]\n")
}

/// The timer expires after some hundred milliseconds, after twice as many, and so on.
#[test]
#[ignore = "needs root: make linux"]
fn timeouts_of_the_kernel_are_counted() {
    let told = carried(&paused(1.0, 3.0), &[("vast", 1, 1_000_000_000, "\"0s\"")]);
    let [timeouts, retransmissions] =
        ["timeouts", "retransmissions"].map(|column| number(&told, "flows", "flow", "vast.0", column));
    assert!(timeouts >= 2.0, "{timeouts}");
    assert!(retransmissions >= timeouts, "{retransmissions} segments, {timeouts} timeouts");
}

/// The SYN waits for more than a second, and is sent again.
#[test]
#[ignore = "needs root: make linux"]
fn what_sets_a_connection_up_is_not_counted() {
    let told = carried(&paused(0.1, 2.0), &[("late", 1, 20_000, "\"500ms\"")]);
    let of = |column| number(&told, "flows", "flow", "late.0", column);
    assert!(of("completion_s") > 1.5, "{}", of("completion_s"));
    assert_eq!((of("timeouts"), of("retransmissions")), (0.0, 0.0));
}
