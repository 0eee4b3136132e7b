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
    let mut text = NETWORK.to_string();
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
