//! Networks of many flows: the shortcuts for speed change no result.

use crate::common;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{Options, Run};

/// 5000 flows at shared hosts: looked ahead for, and turned again after SYNs and losses.
const MANY: &str = r#"
    name = "many"
    stack = "ns2"
    duration = "3s"
    warmup = "0.7s"
    [topology]
    kind = "parking_lot"
    hops = 2
    pairs = 1
    cross = 10
    access = { rate = "100Mbit/s", delay = "2ms", queue = "unlimited" }
    link = { rate = "100Mbit/s", delay = "16ms" }
    [[flows]]
    name = "told"
    count = 4000
    protocol = "xcp"
    packet = "1000B"
    path = "cross"
    start = { spread = "0.2s" }
    [[flows]]
    name = "lossy"
    count = 1000
    protocol = "sack"
    packet = "1000B"
    path = "cross"
    start = { spread = "0.2s" }
"#;

#[test]
fn large_networks_are_as_exact_as_small_ones() {
    for (processing, most) in [("none", 0.66), ("auto", 0.74)] {
        exact(&MANY.replace("name = \"many\"", &format!("name = \"many\"\nprocessing = \"{processing}\"")), most);
    }
}

/// The same tables with links fused and not, and no more than this share of the events. Packets that a host holds before a link that
/// others share are events either way.
fn exact(text: &str, most: f64) {
    let scenario = common::scenario(text);
    let tables = |mut run: Run| common::fingerprint(&measure(&scenario, 0, &mut run, "test"));
    let [fused, apart] =
        [false, true].map(|no_fuse| common::run(&scenario, &Options { no_fuse, ..Options::default() }));
    // Left to themselves after the SYNs, data that is not turned keeps that behind it from being turned: 70 % then.
    let share = fused.engine.events() as f64 / apart.engine.events() as f64;
    assert!(share < most, "{share} of the events that there are with nothing done ahead");
    assert_eq!(tables(fused), tables(apart));
}
