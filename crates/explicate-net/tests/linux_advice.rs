//! Advice about a path that is probed. Needs root, so `make linux` runs it.

mod common;

use common::{chain, last_json};

/// 30 ms and 2 % each way, 10 Mbit/s: what a look says of it, and what is advised with routers and without.
#[test]
#[ignore = "needs root: make linux"]
fn a_path_is_looked_at_and_gets_its_protocol() {
    let net = chain();
    let link = "rate = \"10Mbit/s\", delay = \"30ms\", channel = [{ kind = \"random_loss\", rate = \"2%\" }]";
    let _link = net.start("m", &["link", "left", "right", "--there", link]);
    let _recv = net.start("b", &["recv", "--open"]);
    let advised = |more: &[&str]| {
        let said = net.program("a", &[&["advise", "10.9.0.2", "--json"], more].concat());
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        last_json(&String::from_utf8_lossy(&said.stdout))
    };
    let told = advised(&["--routers", "xcp"]);
    let path = |key: &str| told["path"][key].as_f64().unwrap();
    assert!((60.0..75.0).contains(&path("rtt_ms")), "{told}");
    // 1000 probes: a standard deviation of 0.003.
    assert!((0.008..0.035).contains(&path("loss")), "{told}");
    assert!((0.8..1.25).contains(&(path("rate_bps") / 10e6)), "{told}");
    assert_eq!(path("mtu"), 1500.0);
    assert!(told["command"].as_str().unwrap().contains(" -p LR-LMXCP"), "{told}");
    let best = &told["alternatives"][0];
    assert!(best["share"].as_f64().unwrap() > 0.8 && best["tcp_beside"].as_f64().unwrap() > 0.8, "{told}");
    // What is said goes before what is found; no router is asked for where none is.
    let told = advised(&["--rate", "100Mbit/s", "--loss", "0", "--time", "1"]);
    assert_eq!((&told["path"]["rate_bps"], &told["path"]["loss"]), (&100e6.into(), &0.0.into()));
    assert!(told["alternatives"].as_array().unwrap().iter().all(|row| row["routers"] == "none"), "{told}");
    // Nobody answers, and nothing hangs.
    let said = net.program("a", &["advise", "10.9.0.77", "--time", "1"]);
    assert!(said.status.code() == Some(1), "{}", String::from_utf8_lossy(&said.stderr));
}
