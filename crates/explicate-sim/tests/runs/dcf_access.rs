//! Access to a shared medium: which stations sense which determines their shares.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the figures

use crate::common::{self, jain, numbers};
use crate::outcome::{Outcome, mean, run};
use explicate_sim::simulation::Options;

/// Two or more senders on air; the transport's acknowledgements return by wires. `stations` are (name, x in metres), `flows`
/// (from, to).
fn air(medium: &str, stations: &[(&str, f64)], flows: &[(&str, &str)], rest: &str) -> String {
    let mut text = format!("duration = \"3s\"\nwarmup = \"500ms\"\n[[medium]]\nname = \"air\"\n{medium}\n");
    for (node, x) in stations {
        text += &format!("[[medium.station]]\nnode = \"{node}\"\nat = [\"{x}m\", \"0m\"]\n");
    }
    for (from, to) in flows {
        text += &format!(
            "[[link]]\nname = \"wire {to} {from}\"\nfrom = \"{to}\"\nto = \"{from}\"\nrate = \"10Gbit/s\"\ndelay = \"0s\"\n\
             queue = \"unlimited\"\n[[flows]]\nname = \"{from}{to}\"\nprotocol = \"reno\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             params = {{ initial_window = 30, receiver_window = 30, min_rto = \"50s\", initial_rto = \"50s\" }}\n"
        );
    }
    text + rest
}

fn mbps(done: &Outcome, flow: &str) -> f64 {
    done.flows(flow, "throughput_bps")[0] / 1e6
}

const ENDLESS: &str = "rate = \"6Mbit/s\"\nretry_forever = true\ncapture = \"off\"\n";

/// a and c cannot sense each other, and both send to b between them. Without RTS and CTS nearly every frame of one collides
/// with one of the other; with them the CTS of b makes the other wait. (The last winner keeps winning for long: the other's
/// RTS fails whenever the winner's arrives before b can answer.)
#[test]
fn hidden_terminals_need_rts() {
    let total = |more: &str| {
        let text =
            air(&format!("{ENDLESS}{more}"), &[("a", 0.0), ("b", 200.0), ("c", 400.0)], &[("a", "b"), ("c", "b")], "");
        let done = run(&text);
        (mbps(&done, "ab") + mbps(&done, "cb"), jain(&[mbps(&done, "ab"), mbps(&done, "cb")]))
    };
    let heard = total("sense_range = \"550m\"");
    let hidden = total("sense_range = \"250m\"");
    let announced = total("sense_range = \"250m\"\nrts_threshold = \"0B\"");
    println!("in sense range {heard:?}, hidden {hidden:?}, hidden with RTS/CTS {announced:?} (Mbit/s, Jain index)");
    assert!(heard.0 > 5.0 && heard.1 > 0.98, "who hears the other takes turns");
    assert!(hidden.0 < 0.5 * heard.0, "frames of two milliseconds meet");
    assert!(announced.0 > 0.75 * heard.0, "the short exchange protects them");
}

/// b sends to a, c sends to d, away from each other. b and c wait for each other as soon as they sense each other, though
/// neither would disturb the other's receiver: with a shorter sensing range the sum doubles.
#[test]
fn exposed_terminals_wait_in_vain() {
    let total = |sense_range: &str| {
        let stations = [("a", 0.0), ("b", 200.0), ("c", 570.0), ("d", 770.0)];
        let medium = format!("rate = \"6Mbit/s\"\nsense_range = \"{sense_range}\"");
        let done = run(&air(&medium, &stations, &[("b", "a"), ("c", "d")], ""));
        mbps(&done, "ba") + mbps(&done, "cd")
    };
    let (exposed, apart) = (total("400m"), total("350m"));
    println!("exposed {exposed:.2} Mbit/s, out of earshot {apart:.2} Mbit/s");
    // One link alone carries 5.37 Mbit/s. The exposed two get more than one only when they begin in the same slot.
    assert!(exposed < 1.1 * 5.37 && (apart / (2.0 * 5.37) - 1.0).abs() < 0.01, "{exposed} and {apart} Mbit/s");
}

/// Of two frames that overlap the stronger survives, if capture is on: the station nearer to the hub gets more.
#[test]
fn capture_favours_the_near() {
    let ratio = |capture: &str| {
        let medium = format!("cw_min = 7\ncw_max = 63\nretry_forever = true\n{capture}");
        let done = run(&air(
            &medium,
            &[("far", -100.0), ("hub", 0.0), ("near", 10.0)],
            &[("far", "hub"), ("near", "hub")],
            "",
        ));
        mbps(&done, "nearhub") / mbps(&done, "farhub")
    };
    let (on, off) = (ratio("capture = \"first\""), ratio("capture = \"off\""));
    println!("near / far: {on:.2} with capture, {off:.2} without");
    assert!(on > 1.3 && (off - 1.0).abs() < 0.1);
}

/// A station that cannot be reached: every packet is dropped after seven attempts, or four of data after an RTS that is received.
#[test]
fn frames_are_given_up_at_the_limit() {
    let text = air("reach = \"1000m\"", &[("a", 0.0), ("b", 400.0)], &[("a", "b")], "")
        .replace("duration = \"3s\"", "duration = \"2.5s\"");
    let scenario = common::scenario(&text);
    let engine = common::run(&scenario, &Options::default()).engine;
    let sent = engine.ends[0].flow.stats().sent;
    let stats = engine.medium(0).expect("a medium").station_stats(0);
    assert!(sent >= 2, "the SYN is repeated");
    assert_eq!((stats.attempts, stats.failures), (7 * sent, 7 * sent));
    let done = run(&text);
    assert_eq!(done.link("a->b", "drops_total"), sent as f64);
    assert!(done.link("a->b", "utilisation") > 0.0, "what is sent in vain takes air too");
}

/// Losses on the air make the rate move, losses in the kernel do not; and the air takes retries.
#[test]
fn only_losses_on_the_air_move_the_rate() {
    let rate = |place: &str| {
        let refine = format!(
            "[[link]]\nname = \"a->b\"\nchannel = [{{ kind = \"random_loss\", rate = \"20%\", place = \"{place}\" }}]\n\
             [sampling]\nevery = \"10ms\"\nof = [\"router\"]\n"
        );
        let text = air("adaptation = \"arf\"", &[("a", 0.0), ("b", 50.0)], &[("a", "b")], &refine)
            .replace("min_rto = \"50s\"", "min_rto = \"10ms\"");
        let done = run(&text);
        let last = |variable| *done.samples("a->b", variable, 0.0).last().expect("sampled");
        (mean(&done.samples("a->b", "air_rate_bps", 0.5)) / 1e6, last("air_unanswered") / last("air_attempts"))
    };
    let (air, kernel) = (rate("air"), rate("kernel"));
    println!("mean rate and share of vain attempts: {air:?} on the air, {kernel:?} in the kernel");
    assert_eq!(kernel, (54.0, 0.0));
    assert!(air.0 < 45.0 && (air.1 - 0.2).abs() < 0.03);
}

/// Changes of the rate are counted: as many as samples show that lie closer together than two attempts.
#[test]
fn changes_of_the_rate_are_counted() {
    let refine = "[[link]]\nname = \"a->b\"\nchannel = [{ kind = \"random_loss\", rate = \"20%\", place = \"air\" }]\n\
                  [sampling]\nevery = \"50us\"\nof = [\"router\"]\n";
    let done = run(&air("adaptation = \"arf\"", &[("a", 0.0), ("b", 50.0)], &[("a", "b")], refine));
    let shown = done.samples("a->b", "air_rate_bps", 0.0).windows(2).filter(|w| w[0] != w[1]).count();
    let counted = *done.samples("a->b", "air_rate_changes", 0.0).last().expect("sampled");
    println!("{shown} changes shown, {counted} counted");
    assert!(shown > 20);
    assert_eq!(counted, shown as f64);
}

/// Where 54 Mbit/s is drowned in noise, a slower rate gets through, and adaptation finds it.
#[test]
fn adaptation_finds_the_rate_that_distance_allows() {
    let at = |metres: f64, medium: &str| {
        let medium = format!("errors = \"snr\"\nreach = \"250m\"\n{medium}");
        let done = run(&air(&medium, &[("a", 0.0), ("b", metres)], &[("a", "b")], ""));
        mbps(&done, "ab")
    };
    // The level falls by 12 dB when distance doubles; 54 Mbit/s needs 17 dB more than the least rate: up to 94 m.
    let (near, far) = (at(80.0, ""), at(110.0, ""));
    let adapted = at(110.0, "adaptation = \"arf\"");
    println!("54 Mbit/s: {near:.1} Mbit/s at 80 m, {far:.2} at 110 m; adapted {adapted:.1} at 110 m");
    assert!(near > 28.0 && far < 3.0 && adapted > 15.0);
}

/// An interferer that is on half of the time takes about half of the throughput, whether stations sense it or not. If they sense
/// it, they send no frame in vain.
#[test]
fn an_interferer_takes_its_share() {
    let with = |medium: &str| {
        let medium = format!("errors = \"snr\"\nretry_forever = true\n{medium}");
        // Tables of a medium precede the next medium: the interferer is written inline.
        let text = air(&medium, &[("a", 0.0), ("b", 50.0)], &[("a", "b")], "");
        let scenario = common::scenario(&text);
        let engine = common::run(&scenario, &Options::default()).engine;
        let stats = engine.medium(0).expect("a medium").station_stats(0);
        (mbps(&run(&text), "ab"), stats.failures as f64 / stats.attempts as f64)
    };
    let burst = |at: f64| format!("interferer = [{{ at = [\"{at}m\", \"0m\"], on = \"20ms\", off = \"20ms\" }}]");
    let alone = with("");
    let near = with(&burst(25.0));
    let far = with(&burst(200.0));
    println!("alone {alone:?}, interferer near {near:?}, far {far:?} (Mbit/s, share of vain attempts)");
    assert!((near.0 / alone.0 - 0.5).abs() < 0.05 && near.1 < 0.05, "heard: stations wait");
    assert!(far.0 < 0.55 * alone.0 && far.1 > 0.02, "not heard: frames are lost");
}

/// Shadowing that is drawn once makes runs differ, drift makes a run change.
#[test]
fn shadowing_and_drift_change_the_rate() {
    let rates = |medium: &str, seed: u64| {
        let sampling = "[sampling]\nevery = \"50ms\"\nof = [\"router\"]\n";
        let medium = format!("errors = \"snr\"\nadaptation = \"arf\"\n{medium}");
        let text = air(&medium, &[("a", 0.0), ("b", 100.0)], &[("a", "b")], sampling);
        let done = run(&format!("seed = {seed}\n{text}").replace("3s", "6s"));
        done.samples("a->b", "air_rate_bps", 1.0)
    };
    let spread = |x: &[f64]| x.iter().fold(0.0f64, |m, v| m.max(*v)) - x.iter().fold(f64::MAX, |m, v| m.min(*v));
    let of_runs = |medium: &str| (1..6).map(|seed| mean(&rates(medium, seed))).collect::<Vec<f64>>();
    assert!(spread(&of_runs("")) < 5e6, "without shadowing runs are alike");
    assert!(spread(&of_runs("shadowing = \"6dB\"")) > 10e6, "with it they are not");
    assert!(spread(&rates("drift = \"6dB\"\ncoherence = \"500ms\"", 1)) > 20e6, "levels come and go");
}

/// Three hops at 54 Mbit/s with ns-2's rules carry as much as ns-2.35's (docs/validation.md: 5.17 Mbit/s), and more without
/// its reservations.
#[test]
fn a_chain_carries_what_it_does_in_ns2() {
    let carried = |capture: &str| {
        let text = r#"
            stack = "ns2"
            duration = "22s"
            warmup = "2s"
            [[medium]]
            name = "air"
            control_rate = "24Mbit/s"
            rts_threshold = "0B"
            cca_time = "0us"
            capture = "CAPTURE"
            queue = { limit = "50pkt" }
            layout = { kind = "chain", stations = 4, spacing = "200m" }
            [[flows]]
            name = "f"
            protocol = "sack"
            from = "n1"
            to = "n4"
            params = { receiver_window = 4 }
        "#;
        mbps(&run(&text.replace("CAPTURE", capture)), "f")
    };
    let (as_ns2, usual) = (carried("ns2"), carried("first"));
    println!("three hops: {as_ns2:.3} Mbit/s by ns-2's rules, {usual:.3} by the usual ones");
    assert!((as_ns2 / 5.17 - 1.0).abs() < 0.03 && usual > 1.05 * as_ns2);
}

/// The example of a mesh: flows go the static ways that they name, in a room that makes every used link's rate move.
#[test]
fn a_mesh_in_a_changing_room() {
    let text = include_str!("../../../../scenarios/wifi-mesh.toml").replace("60s", "20s").replace("runs = 3", "");
    let done = run(&text);
    for (link, used) in [("n1->n2", true), ("n4->n5", true), ("n5->n6", true), ("n2->n5", false), ("n1->n4", true)] {
        let share = done.link(link, "utilisation");
        assert_eq!(share > 0.01, used, "{link}: {share}");
        let rates = done.samples(link, "air_rate_bps", 5.0);
        let moves = rates.windows(2).filter(|w| w[0] != w[1]).count();
        println!("{link}: {share:.3} of the time, mean rate {:.1} Mbit/s, moved in {moves} of 150", mean(&rates) / 1e6);
        assert!(moves > 0 || !used, "{link}");
    }
    // The controller precedes every kind of queue.
    assert!(!done.samples("n5->n6", "avg_rtt_s", 5.0).is_empty());
    assert!(mbps(&done, "upper") > 1.0 && mbps(&done, "lower") > 1.0);
}

/// What is counted: airtime shares of all links together are below one, queues belong to the interface.
#[test]
fn links_of_one_interface_share_its_queue() {
    let text = r#"
        duration = "3s"
        [[medium]]
        name = "air"
        layout = { kind = "star", stations = 3, spacing = "20m" }
        queue = { kind = "droptail", limit = "20pkt" }
        [[flows]]
        name = "f"
        count = 3
        protocol = "sack"
        from = "n0"
        to = ["n1", "n2", "n3"]
    "#;
    let done = run(text);
    let tables = common::tables(text);
    let shares: f64 = numbers(&tables.links, "utilisation").iter().sum();
    assert!(shares > 0.6 && shares < 1.0, "{shares}");
    for column in ["queue_mean_packets", "queue_max_packets"] {
        let of = |link| done.link(link, column);
        assert!(of("n0->n1") == of("n0->n2") && of("n0->n1") > 5.0, "{column}");
        assert!(of("n1->n0") < of("n0->n1"), "{column}");
    }
    let drops: Vec<f64> = ["n0->n1", "n0->n2", "n0->n3"].iter().map(|l| done.link(l, "drops_overflow")).collect();
    assert!(drops.iter().all(|&d| d > 0.0), "each link has its own drops: {drops:?}");
}
