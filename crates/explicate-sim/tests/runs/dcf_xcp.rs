//! Paper N's setting: XCP and TCP over one and three hops of 802.11a at 54 Mbit/s with RTS and CTS.

use crate::common::{have_ttls, scenario};
use crate::outcome::{self, Outcome};
use explicate_sim::simulation::Options;

fn chain(protocol: &str, capacity: &str, to: &str) -> String {
    format!(
        r#"
        stack = "ns2"
        duration = "12s"
        warmup = "2s"
        [[medium]]
        name = "air"
        rts_threshold = "0B"
        capacity = "{capacity}"
        layout = {{ kind = "chain", stations = 4, spacing = "200m" }}
        [[flows]]
        name = "f"
        protocol = "{protocol}"
        from = "n1"
        to = "{to}"
        params = {{ receiver_window = 200 }}
        "#
    )
}

/// Goodput in Mbit/s, packets that wait at n1, and drops.
fn figures(done: &Outcome) -> (f64, f64, f64) {
    let goodput = done.flows("f", "goodput_bps")[0] / 1e6;
    let (queue, drops) = (done.link("n1->n2", "queue_mean_packets"), done.drops());
    (goodput, queue, drops)
}

/// 54 Mbit/s is the rate of the radio, not its throughput: XCP with this capacity fills the queue and causes drops. With the
/// throughput of the medium, acknowledgements included, XCP uses all of it and has almost no queue.
#[test]
fn the_capacity_is_what_the_air_carries() {
    let of = |protocol: &str, capacity: &str| outcome::run(&chain(protocol, capacity, "n2"));
    let tcp = figures(&of("sack", "54Mbit/s"));
    let told_54 = figures(&of("xcp", "54Mbit/s"));
    let told_24 = figures(&of("xcp", "24Mbit/s"));
    let told_16 = figures(&of("xcp", "16.5Mbit/s"));
    assert!(told_54.0 < 0.95 * told_24.0 && told_54.2 > 5.0 * told_24.2, "54 drops and loses");
    assert!(told_16.0 > 0.95 * tcp.0 && told_16.1 < 5.0 && told_16.2 == 0.0, "the truth neither");
}

/// Two hops carry half and three hops a third of one, for any sender; a packet's TTL falls by one at each relay.
#[test]
fn hops_share_the_air() {
    let over = |to: &str| {
        let (tcp, xcp) = (chain("sack", "54Mbit/s", to), chain("xcp", "5Mbit/s", to));
        (figures(&outcome::run(&tcp)).0, figures(&outcome::run(&xcp)).0)
    };
    let (one, two, three) = (over("n2"), over("n3"), over("n4"));
    assert!((one.0 / two.0 - 2.0).abs() < 0.1 && (one.0 / three.0 - 3.0).abs() < 0.3, "{one:?} {two:?} {three:?}");
    // A round trip is so short that one packet in each exceeds the configured capacity. The window cannot be smaller.
    for (tcp, xcp) in [one, two, three] {
        assert!(xcp > 0.9 * tcp && xcp < tcp, "{xcp} beside {tcp} Mbit/s");
    }
}

#[test]
fn relays_count_the_ttl_down() {
    let scenario = scenario(&chain("sack", "54Mbit/s", "n4").replace("12s", "1s").replace("2s", "0s"));
    let ttls = [("n1->n2", 64), ("n2->n3", 63), ("n3->n4", 62), ("n4->n3", 64), ("n2->n1", 62)];
    have_ttls(&scenario, Options::default(), &ttls);
}
