//! Channels of links, as scenarios configure them: separate losses of data and acknowledgements, duplicated, late or
//! damaged packets, lines that pause or change, two directions on one line, wrongly configured capacities.

use crate::common::{is_exact, number, numbers, packet_log, scenario, tables};
use crate::outcome::{self, Outcome, mean};
use explicate_sim::simulation::Options;

/// One path of 10 Mbit/s and 10 ms each way; `forth` and `back` refine its directions.
fn path(forth: &str, back: &str, flows: &str) -> String {
    format!(
        r#"
duration = "20s"
[topology]
kind = "dumbbell"
pairs = 2
access = {{ rate = "100Mbit/s", delay = "1ms", queue = "unlimited" }}
bottleneck = {{ rate = "10Mbit/s", delay = "10ms", queue = {{ kind = "droptail", limit = "4bdp" }} }}
[[link]]
name = "r1->r2"
{forth}
[[link]]
name = "r2->r1"
{back}
{flows}
"#
    )
}

/// A flow whose window, three times the path and less than the queue, fills the line and loses nothing.
const SACK: &str = "[[flows]]\nname = \"f\"\nprotocol = \"sack\"\nparams = { receiver_window = 60 }\n";

fn one(forth: &str) -> Outcome {
    outcome::run(&path(forth, "", SACK))
}

#[test]
fn every_channel_is_exact() {
    let channels = [
        r#"{ kind = "random_loss", rate = "1%", of = "data", place = "kernel" }"#,
        r#"{ kind = "burst_loss", rate = "1%", length = 3 }"#,
        r#"{ kind = "gilbert_elliott", clock = "time", bad_time = "5ms", good_time = "500ms" }"#,
        r#"{ kind = "corruption", rate = "1%" }"#,
        r#"{ kind = "duplication", rate = "2%", after = "3ms" }"#,
        r#"{ kind = "reordering", rate = "2%", by = "5ms" }"#,
        r#"{ kind = "jitter", mean = "1ms", distribution = "exponential" }"#,
        r#"{ kind = "outages", up = "1s", down = "100ms", random = true }"#,
        r#"{ kind = "rate_steps", steps = [{ at = "0s", rate = "10Mbit/s" }, { at = "3s", rate = "4Mbit/s" }], period = "5s" }"#,
        r#"{ kind = "fading", snr = 15.0, antennas = "2x1", beta = 0.91667 }"#,
    ];
    for channel in channels {
        let text = path(&format!("channel = [{channel}]"), &format!("channel = [{channel}]"), SACK);
        is_exact(&scenario(&text.replace("20s", "4s")));
    }
    let all = channels[..8].join(", ");
    let text = path(&format!("channel = [{all}]"), "half_duplex = true", SACK);
    is_exact(&scenario(&text.replace("20s", "4s")));
}

#[test]
fn data_and_acknowledgements_are_lost_apart() {
    // Flows in both directions, so that data and acknowledgements cross the lossy link.
    let flows = format!("{SACK}{}path = \"reverse\"\n", SACK.replace("\"f\"", "\"b\""));
    let run = |of: &str| {
        let channel = format!(r#"channel = [{{ kind = "random_loss", rate = "2%", of = "{of}" }}]"#);
        outcome::run(&path(&channel, "", &flows))
    };
    let (data, acks, all) = (run("data"), run("acks"), run("all"));
    assert_eq!(data.flows("b", "retransmissions"), [0.0], "acknowledgements are left alone");
    assert!(data.flows("f", "retransmissions")[0] > 30.0);
    assert!(acks.flows("f", "retransmissions")[0] < 10.0, "no data is lost but by the queue");
    assert!(acks.link("r1->r2", "drops_channel") > 50.0);
    let lost = |o: &Outcome| o.link("r1->r2", "drops_channel");
    assert!(lost(&all) > 60.0 && lost(&data) > 30.0);
    let lost_data = |o: &Outcome| o.link("r1->r2", "drops_channel_data");
    assert_eq!(lost_data(&acks), 0.0);
    assert!((0.0..=2.0).contains(&(lost(&data) - lost_data(&data))), "the rest is connection set-up");
    assert!(lost_data(&all) > 30.0 && lost(&all) - lost_data(&all) > 30.0, "{} of {}", lost_data(&all), lost(&all));
}

/// One flow sends over the link, so data packets are all that its queue drops, on arrival or later.
#[test]
fn drops_of_data_are_counted() {
    for queue in ["{ kind = \"droptail\", limit = \"0.2bdp\" }", "{ kind = \"codel\" }"] {
        let o = outcome::run(&path(&format!("queue = {queue}"), "", "[[flows]]\nname = \"f\"\nprotocol = \"sack\"\n"));
        let dropped = o.link("r1->r2", "drops_overflow") + o.link("r1->r2", "drops_early");
        assert!(dropped > 0.0 && o.link("r1->r2", "drops_queue_data") == dropped, "{queue}: {dropped}");
    }
}

#[test]
fn losses_in_the_kernel_cost_no_time_of_the_line() {
    let used = |place: &str| {
        let channel =
            format!(r#"channel = [{{ kind = "random_loss", rate = "50%", of = "data", place = "{place}" }}]"#);
        let flows = "[[flows]]\nname = \"f\"\nprotocol = \"sack\"\nparams = { min_rto = \"1ms\" }\n";
        let o = outcome::run(&path(&channel, "", flows));
        o.link("r1->r2", "utilisation") * 10e6 * 20.0 / o.flows("f", "throughput_bps")[0] / 20.0
    };
    // Bytes that left the line over bytes that arrived.
    assert!((used("kernel") - 1.0).abs() < 0.02, "{}", used("kernel"));
    assert!((used("air") - 2.0).abs() < 0.2, "{}", used("air"));
}

#[test]
fn a_damaged_packet_is_dropped_by_its_receiver() {
    let o = one(r#"channel = [{ kind = "corruption", rate = "2%" }]"#);
    let (damaged, link) = (o.flows("f", "damaged")[0], o.link("r1->r2", "damaged"));
    assert!(link > 100.0 && damaged == link, "{damaged} of {link}");
    assert_eq!(o.drops(), 0.0, "no link drops them");
    assert!(o.flows("f", "retransmissions")[0] >= damaged);
    let back = outcome::run(&path("", r#"channel = [{ kind = "corruption", rate = "2%" }]"#, SACK));
    assert_eq!(back.flows("f", "damaged")[0], back.link("r2->r1", "damaged"), "acknowledgements too");
    assert!(back.flows("f", "damaged")[0] > 100.0);
}

#[test]
fn a_copy_arrives_too() {
    let o = one(r#"channel = [{ kind = "duplication", rate = "5%" }]"#);
    let (copies, sent) = (o.link("r1->r2", "copies"), o.flows("f", "sent_packets")[0]);
    assert!((copies / sent - 0.05).abs() < 0.01, "{copies} of {sent}");
    let throughput = o.flows("f", "throughput_bps")[0] / o.flows("f", "goodput_bps")[0];
    let clean = one("");
    let without = clean.flows("f", "throughput_bps")[0] / clean.flows("f", "goodput_bps")[0];
    assert!((throughput / without - 1.05).abs() < 0.01, "{throughput} {without}");
    assert!(o.flows("f", "goodput_bps")[0] > 0.95 * clean.flows("f", "goodput_bps")[0], "copies do no harm");
}

#[test]
fn what_is_overtaken_looks_lost() {
    let clean = one("");
    assert_eq!(clean.flows("f", "retransmissions")[0], 0.0);
    let late = one(r#"channel = [{ kind = "reordering", rate = "1%", by = "20ms" }]"#);
    assert!(late.flows("f", "retransmissions")[0] > 20.0, "more than three packets overtake in 20 ms");
    assert_eq!(late.drops(), 0.0);
    let little = one(r#"channel = [{ kind = "reordering", rate = "1%", by = "1ms" }]"#);
    assert_eq!(little.flows("f", "retransmissions")[0], 0.0, "one packet may, in 1 ms");
}

#[test]
fn jitter_adds_its_mean_to_the_round_trip() {
    let rtt = |channel: &str| {
        let flows = "[[flows]]\nname = \"f\"\nprotocol = \"sack\"\nparams = { receiver_window = 2 }\n";
        outcome::run(&path(channel, "", flows)).flows("f", "rtt_mean_ms")[0]
    };
    let added =
        rtt(r#"channel = [{ kind = "jitter", mean = "4ms", distribution = "normal", keep_order = true }]"#) - rtt("");
    assert!((added - 4.0).abs() < 0.4, "{added}");
}

#[test]
fn a_line_that_rests_delivers_its_share() {
    let flows = "[[flows]]\nname = \"f\"\nprotocol = \"sack\"\nparams = { min_rto = \"1s\" }\n";
    let channel = r#"channel = [{ kind = "outages", up = "300ms", down = "100ms" }]"#;
    let o = outcome::run(&path(channel, "", flows).replace("4bdp", "40bdp"));
    let goodput = o.flows("f", "throughput_bps")[0] / 10e6;
    assert!((goodput - 0.75).abs() < 0.03, "{goodput}");
    assert!(o.link("r1->r2", "utilisation") > 0.97, "of what the line offered");
    let steps = r#"channel = [{ kind = "rate_steps", steps = [{ at = "0s", rate = "10Mbit/s" }, { at = "10s", rate = "2Mbit/s" }] }]"#;
    let o = outcome::run(&path(steps, "", flows).replace("4bdp", "10bdp"));
    let goodput = o.flows("f", "throughput_bps")[0] / 10e6;
    assert!((goodput - 0.6).abs() < 0.03, "half the time all, half the time a fifth: {goodput}");
}

/// Two bulk flows against each other share one line of 10 Mbit/s between all four kinds of packets.
#[test]
fn two_directions_on_one_line() {
    let flows = format!("{SACK}{}path = \"reverse\"\n", SACK.replace("\"f\"", "\"b\""));
    let both = |forth: &str| {
        let o = outcome::run(&outcome::ns2(&path(forth, "", &flows)));
        (o.link("r1->r2", "utilisation"), o.link("r2->r1", "utilisation"))
    };
    let (forth, back) = both("");
    assert!(forth > 0.85 && back > 0.85, "a line each: {forth} {back}");
    let (forth, back) = both("half_duplex = true");
    assert!((0.9..=1.0).contains(&(forth + back)), "one line: {forth} and {back}");
    // First come, first served: a single flow uses 52 of 1552 bytes for acknowledgements, their share by length.
    let o = outcome::run(&outcome::ns2(&path("half_duplex = true", "", SACK)));
    let (data, acks) = (o.link("r1->r2", "utilisation"), o.link("r2->r1", "utilisation"));
    assert!((acks / data - 52.0 / 1500.0).abs() < 0.001 && data + acks > 0.98, "{data} {acks}");
}

#[test]
fn each_direction_has_its_own_rate() {
    let o = outcome::run(&outcome::ns2(&path("", "rate = \"100kbit/s\"\nqueue = \"unlimited\"", SACK)));
    // 52-byte acknowledgements of 1500-byte packets: 100 kbit/s of them carry 2.88 Mbit/s of data.
    let goodput = o.flows("f", "throughput_bps")[0] / 1e6;
    assert!((goodput - 2.88).abs() < 0.15, "{goodput} Mbit/s");
}

/// XCP's router takes the capacity that it is given, from the time that it is given.
#[test]
fn capacity_that_drifts() {
    let text = |capacity: &str| {
        path(
            &format!("router = \"xcp\"\ncapacity = {capacity}"),
            "",
            "[[flows]]\nname = \"f\"\nprotocol = \"xcp\"\n[sampling]\nevery = \"100ms\"\nof = [\"throughput\"]\n",
        )
    };
    let o = outcome::run(&text("{ factor = 0.5 }"));
    let used = mean(&o.samples("r1->r2", "utilisation", 5.0));
    assert!((used - 0.5).abs() < 0.02, "{used}");
    let drifting = text(r#"[{ at = "0s", factor = 0.8 }, { at = "10s", rate = "4Mbit/s" }]"#);
    let o = outcome::run(&drifting);
    let all = o.samples("r1->r2", "utilisation", 5.0);
    let (before, after) = (mean(&all[..45]), mean(&all[100..]));
    assert!((before - 0.8).abs() < 0.02 && (after - 0.4).abs() < 0.02, "{before} {after}");
    is_exact(&scenario(&drifting));
    // What follows the truth: the line changes, and the configured capacity with it.
    let steps =
        r#"[{ kind = "rate_steps", steps = [{ at = "0s", rate = "10Mbit/s" }, { at = "10s", rate = "5Mbit/s" }] }]"#;
    let told = r#"[{ at = "0s", rate = "10Mbit/s" }, { at = "10s", rate = "5Mbit/s" }]"#;
    let o = outcome::run(&text(&format!("{told}\nchannel = {steps}")));
    let all = o.samples("r1->r2", "utilisation", 5.0);
    assert!(mean(&all[..45]) > 0.97 && mean(&all[100..]) > 0.97 && o.drops() == 0.0);
}

#[test]
fn a_trace_tells_what_happened() {
    let text = path(
        r#"channel = [{ kind = "corruption", rate = "5%" }, { kind = "duplication", rate = "5%" }]"#,
        "",
        "[[flows]]\nname = \"f\"\nprotocol = \"sack\"\nsize = \"300kB\"\n",
    );
    let (log, tables) = (packet_log(&scenario(&text), Options::default()), tables(&text));
    let count = |what: &str| log.lines().filter(|l| l.contains(what)).count() as f64;
    assert_eq!(count("  drop:damaged "), number(&tables.flows, "flow", "f.0", "damaged"));
    assert_eq!(count("  copy "), number(&tables.links, "link", "r1->r2", "copies"));
    assert!(count("  drop:damaged ") > 0.0 && count("  copy ") > 0.0);
}

/// What waits before a line that rests for the whole measured span has no delay in units of its capacity, and no share of it
/// is used: neither is a number, least of all infinity.
#[test]
fn a_line_that_rests_throughout_has_no_delay() {
    let outage = r#"channel = [{ kind = "rate_steps", steps = [{ at = "0s", rate = "10Mbit/s" }, { at = "5s", rate = "0bit/s" }], period = "100s" }]"#;
    let t = tables(&path(outage, "", SACK).replace("duration", "warmup = \"10s\"\nduration"));
    assert!(number(&t.links, "link", "r1->r2", "queue_mean_packets") > 0.0);
    assert!(number(&t.links, "link", "r1->r2", "queue_mean_ms").is_nan());
    assert!(number(&t.links, "link", "r1->r2", "utilisation").is_nan());
    assert!(numbers(&t.links, "queue_mean_ms").iter().all(|x| !x.is_infinite()));
}
