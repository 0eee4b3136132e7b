//! Flows of a scenario that the kernel's TCP carries in the laboratory: all of their bytes arrive, and their completion is in the
//! table as that of simulated flows.

use std::process::Command;

use serde_json::Value;

use crate::common::{PROGRAM, last_json, number};

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

/// Runs these groups, all carried by the kernel.
fn carried(groups: &[Group]) -> Value {
    carried_by(NETWORK, groups)
}

/// Runs these groups over a network.
fn carried_by(network: &str, groups: &[Group]) -> Value {
    let mut text = network.to_string();
    for (name, count, size, start) in groups {
        text += &format!(
            "[[flows]]\nname = \"{name}\"\ncount = {count}\nprotocol = \"cubic\"\nsize = \"{size}B\"\nstart = {start}\n"
        );
    }
    let path = std::env::temp_dir().join(format!("exptest-{}-{}.toml", std::process::id(), groups[0].0));
    std::fs::write(&path, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "--json"]).arg(&path);
    for (name, ..) in groups {
        command.args(["--kernel", &format!("{name}=cubic")]);
    }
    let done = command.output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    last_json(&String::from_utf8_lossy(&done.stdout))
}

/// Whether all flows are complete, and their rates are those of their sizes.
fn complete(groups: &[Group]) {
    let told = carried(groups);
    for (name, count, size, _) in groups {
        for flow in (0..*count).map(|i| format!("{name}.{i}")) {
            let of = |column| number(&told, "flows", "flow", &flow, column);
            assert_eq!(of("size_bytes"), *size as f64, "{flow}");
            assert_eq!((of("goodput_bps") * SECONDS / 8.0).round(), *size as f64, "{flow}");
            let completion = of("completion_s");
            assert!(completion > 0.0 && of("start_s") + completion <= SECONDS, "{flow}: {completion}");
        }
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn one_flow_of_the_kernel_completes() {
    complete(&[("alone", 1, 200_000, "\"0s\"")]);
}

#[test]
#[ignore = "needs root: make linux"]
fn two_flows_of_the_kernel_complete() {
    complete(&[("two", 2, 200_000, "\"0s\"")]);
}

#[test]
#[ignore = "needs root: make linux"]
fn eight_flows_of_the_kernel_of_one_byte_to_megabytes_complete() {
    complete(&[
        ("byte", 2, 1, "\"300ms\""),
        ("segment", 1, 1448, "\"0s\""),
        ("file", 3, 200_000, "{ spread = \"1s\" }"),
        ("large", 2, 3_000_000, "\"1s\""),
    ]);
}

/// The others are measured, and the run ends when it should.
#[test]
#[ignore = "needs root: make linux"]
fn flows_of_the_kernel_that_cannot_complete_have_no_completion() {
    let told =
        carried(&[("early", 1, 1000, "\"0s\""), ("vast", 1, 1_000_000_000, "\"0s\""), ("later", 1, 1000, "\"400s\"")]);
    assert!(number(&told, "flows", "flow", "early.0", "completion_s") > 0.0);
    let row = |flow: &str| told["flows"].as_array().unwrap().iter().find(|row| row["flow"] == flow);
    assert!(row("vast.0").unwrap()["completion_s"].is_null());
    assert!(number(&told, "flows", "flow", "vast.0", "goodput_bps") > 0.0);
    assert!(row("later.0").is_none(), "the table has the flows that started");
}

/// Over 600 ms with a queue of one BDP, so that the path holds more than the kernel's buffers by default: hosts have eight times as much,
/// and the kernel keeps nothing of earlier connections.
#[test]
#[ignore = "needs root: make linux"]
fn hosts_have_buffers_that_do_not_limit_flows() {
    let queue = "{ rate = \"50Mbit/s\", delay = \"298ms\", queue = { kind = \"droptail\", limit = \"3750000B\" } }";
    let network = NETWORK.replace("{ rate = \"50Mbit/s\", delay = \"4ms\" }", queue);
    let network = network.replace("delay = \"1ms\"", "delay = \"1ms\", queue = \"unlimited\"");
    let told = carried_by(&network.replace("\"6s\"", "\"1s\""), &[("buffers", 1, 1000, "\"0s\"")]);
    let setting = |name: &str| told["sysctls"][name].as_str().unwrap().to_string();
    // The queue of the way back counts too.
    let enough = 8 * 3 * 3_750_000;
    assert_eq!(setting("tcp_wmem"), format!("4096 16384 {enough}"));
    assert_eq!(setting("tcp_rmem"), format!("4096 131072 {enough}"));
    assert_eq!(setting("tcp_no_metrics_save"), "1");
    // Root of a user's own namespace may not have it.
    assert!(told["machine"]["real_time"].is_boolean());
}

/// The network, whose line stands still from one time to another, s.
fn paused(from: f64, to: f64) -> String {
    let steps = [(0.0, "50Mbit/s"), (from, "0Mbit/s"), (to, "50Mbit/s")];
    let steps = steps.map(|(at, rate)| format!("{{ at = \"{at}s\", rate = \"{rate}\" }}")).join(", ");
    format!("{NETWORK}[[link]]\nname = \"r1->r2\"\nchannel = [{{ kind = \"rate_steps\", steps = [{steps}] }}]\n")
}

/// How often the timer of a flow expires in a pause of 2 s, and how many segments are sent again: after some hundred milliseconds, after
/// twice as many, and so on.
pub(crate) fn timeouts_in_a_pause() -> (f64, f64) {
    let told = carried_by(&paused(1.0, 3.0), &[("vast", 1, 1_000_000_000, "\"0s\"")]);
    let of = |column| number(&told, "flows", "flow", "vast.0", column);
    (of("timeouts"), of("retransmissions"))
}

#[test]
#[ignore = "needs root: make linux"]
fn timeouts_of_the_kernel_are_counted() {
    let (timeouts, retransmissions) = timeouts_in_a_pause();
    assert!(timeouts >= 2.0, "{timeouts}");
    assert!(retransmissions >= timeouts, "{retransmissions} segments, {timeouts} timeouts");
}

/// The SYN waits for more than a second, and is sent again.
#[test]
#[ignore = "needs root: make linux"]
fn what_sets_a_connection_up_is_not_counted() {
    let told = carried_by(&paused(0.1, 2.0), &[("late", 1, 20_000, "\"500ms\"")]);
    let of = |column| number(&told, "flows", "flow", "late.0", column);
    assert!(of("completion_s") > 1.5, "{}", of("completion_s"));
    assert_eq!((of("timeouts"), of("retransmissions")), (0.0, 0.0));
}
