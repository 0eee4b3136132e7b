//! A wireless medium keeps the engine's invariants: packets are conserved (every run is audited), the same seed gives the same
//! bytes, observation changes nothing, and events on one medium do not change the draws of another.

use crate::common::{fingerprint, is_exact, number, numbers, packet_log, scenario, tables};
use explicate_core::rng::Rng;
use explicate_sim::measure::{Tables, link_names};
use explicate_sim::simulation::Options;

/// A mesh with everything that draws or decides: several laws, two classes, disciplines that drop at both ends, all that channels
/// do before and on the air, noise, interferers, drift, adaptation, capture.
fn random(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "scenarios");
    let mut pick = |words: &[&str]| words[(rng.next_u64() % words.len() as u64) as usize].to_string();
    let queue = pick(&["droptail", "red", "codel", "fq_codel"]);
    let mut text = format!(
        r#"
        seed = {seed}
        duration = "2s"
        warmup = "500ms"
        [[medium]]
        name = "air"
        layout = {{ kind = "mesh", rows = 2, columns = 3, spacing = "{}" }}
        queue = {{ kind = "{queue}", limit = "{}" }}
        rate = "{}"
        rts_threshold = "{}"
        adaptation = "{}"
        capture = "{}"
        errors = "{}"
        drift = "{}"
        eifs = {}
        cca_time = "{}"
        clock_tick = "{}"
        classes = [{{ match = "explicit", weight = 2 }}, {{ match = "other" }}]
        kappa = 0.1
        capacity = [{{ at = "0s", rate = "20Mbit/s" }}, {{ at = "1s", factor = 0.2 }}]
        interferer = [{{ at = ["-50m", "300m"], on = "5ms", off = "50ms", random = true }}]
        [[link]]
        name = "n1->n2"
        channel = [{{ kind = "random_loss", rate = "1%", place = "kernel" }}, {{ kind = "random_loss", rate = "5%" }}]
        [[link]]
        name = "n2->n3"
        channel = [
            {{ kind = "duplication", rate = "2%", after = "1ms" }}, {{ kind = "corruption", rate = "1%" }},
            {{ kind = "jitter", mean = "2ms" }}, {{ kind = "reordering", rate = "2%" }}, {{ kind = "fading", snr = "12dB" }},
        ]
        [[link]]
        from = "n6"
        to = "server"
        duplex = true
        rate = "20Mbit/s"
        delay = "3ms"
        [sampling]
        every = "100ms"
        of = ["queue", "throughput", "router", "flow"]
        "#,
        pick(&["60m", "150m", "240m"]),
        pick(&["3pkt", "30pkt"]),
        pick(&["6Mbit/s", "24Mbit/s", "54Mbit/s"]),
        pick(&["0B", "500B", "unlimited"]),
        pick(&["none", "arf"]),
        pick(&["first", "any", "off"]),
        pick(&["none", "snr"]),
        pick(&["0dB", "5dB"]),
        pick(&["true", "false"]),
        pick(&["0us", "4us"]),
        pick(&["0s", "10ms"]),
    );
    // A node that the medium does not have.
    text = text.replace("        [[medium]]", "        [[node]]\n        name = \"server\"\n        [[medium]]");
    for (i, (from, to)) in [("n1", "n6"), ("n3", "n4"), ("n2", "n5"), ("server", "n1")].iter().enumerate() {
        let protocol = pick(&["xcp", "sack", "cubic"]);
        text += &format!(
            "[[flows]]\nname = \"f{i}\"\ncount = 2\nprotocol = \"{protocol}\"\nfrom = \"{from}\"\nto = \"{to}\"\n"
        );
    }
    text
}

#[test]
fn any_mesh_conserves_packets_and_repeats() {
    let mut delivered = 0.0;
    for seed in 0..15 {
        let text = random(seed);
        let first = tables(&text);
        delivered += numbers(&first.flows, "goodput_bps").iter().sum::<f64>();
        assert_eq!(is_exact(&scenario(&text)), fingerprint(&first), "{text}");
    }
    assert!(delivered > 15.0 * 1e6, "something moves");
}

/// The life of a packet on the air: one arrival, one departure or loss at each link.
#[test]
fn each_packet_is_told_of_once_a_link() {
    let scenario = scenario(&random(3));
    let (links, text) = (link_names(&scenario), packet_log(&scenario, Options::default()));
    let count = |link: &str, what: &str| {
        text.lines().filter(|l| l.contains(&format!(" {link} ")) && l.contains(what)).count() as f64
    };
    let tables = tables(&random(3));
    for link in links.iter().filter(|l| l.starts_with('n')) {
        let (came, left) = (count(link, " enqueue "), count(link, " departure "));
        let dropped = number(&tables.links, "link", link, "drops_total");
        assert_eq!(count(link, " drop:"), dropped, "{link}");
        let there = came - left - dropped; // copies are made after they left
        assert!((0.0..=31.0).contains(&there), "{link}: {came} came, {left} left, {dropped} were dropped");
    }
    assert!(count("n1->n2", " drop:channel ") > 0.0);
}

#[test]
fn another_medium_leaves_the_draws_alone() {
    let one = |name: &str, prefix: &str| {
        format!(
            "[[medium]]\nname = \"{name}\"\nerrors = \"snr\"\nshadowing = \"3dB\"\n\
             layout = {{ kind = \"chain\", stations = 3, spacing = \"80m\", prefix = \"{prefix}\" }}\n"
        )
    };
    let flow = |name: &str, prefix: &str| {
        format!("[[flows]]\nname = \"{name}\"\nprotocol = \"sack\"\nfrom = \"{prefix}1\"\nto = \"{prefix}3\"\n")
    };
    let head = "duration = \"3s\"\n";
    let alone = format!("{head}{}{}", one("a", "n"), flow("f", "n"));
    let beside = format!("{head}{}{}{}{}", one("a", "n"), one("b", "m"), flow("f", "n"), flow("g", "m"));
    let (alone, beside) = (tables(&alone), tables(&beside));
    for column in ["goodput_bps", "rtt_mean_ms", "retransmissions"] {
        let of = |t: &Tables| number(&t.flows, "flow", "f.0", column).to_bits();
        assert_eq!(of(&alone), of(&beside), "{column}");
    }
}
