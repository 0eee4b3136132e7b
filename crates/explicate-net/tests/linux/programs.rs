//! `probe` and `advise` as programs, on this machine's kernel. Needs root, so `make linux` runs it.

use crate::common::chain;
use crate::quic::{Pair, paired};

/// Rates, losses and round trips that they find are measured in `timed::rates`.
#[test]
#[ignore = "needs root: make linux"]
fn a_look_at_a_path_ends_with_a_result_or_a_reason() {
    let net = chain();
    let narrow = "rate = \"20Mbit/s\", delay = \"5ms\"";
    let _link = net.start("m", &["link", "left", "right", "--there", narrow]);
    let pair = Pair::new(&net, &[]);
    let told = pair.told("probe", &["--time", "2"]);
    let [answered, sent] = ["probes_answered", "probes_sent"].map(|key| told[key].as_u64().unwrap());
    assert!(0 < answered && answered <= sent && told["capacity_bps"].as_f64() > Some(0.0), "{told}");
    // Arguments replace measurements, and without `--routers` no router is assumed.
    let told = pair.told("advise", &["--rate", "100Mbit/s", "--loss", "0", "--time", "1"]);
    assert_eq!((&told["path"]["rate_bps"], &told["path"]["loss"]), (&100e6.into(), &0.0.into()));
    assert!(told["alternatives"].as_array().unwrap().iter().all(|row| row["routers"] == "none"), "{told}");
    // No host has that address.
    let sender = &paired(&net, "10.9.0.77")[1];
    for command in ["probe", "advise"] {
        let said = net.program("a", &[command, "10.9.0.77", "--time", "1", "--state", sender]);
        let reason = String::from_utf8_lossy(&said.stderr).to_string();
        assert!(said.status.code() == Some(1) && !reason.is_empty(), "{command}: {reason}");
    }
}
