//! The fading link and sessions of paper Y as scenarios ask for them: losses as the closed form has them, for data and
//! acknowledgements apart; parity that takes time of the line; connections that timeouts tear down and that come again.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use crate::common::{run, scenario};
use crate::outcome::{self, Outcome, mean};
use explicate_core::registry;
use explicate_core::wire::{Packet, flag};
use explicate_scenario::model::Scenario;
use explicate_sim::simulation::Options;

/// The paper's direct link, a tenth as fast: both directions fade.
fn direct(channel: &str, flows: &str) -> String {
    format!(
        r#"
duration = "20s"
warmup = "2s"
[topology]
kind = "dumbbell"
pairs = 4
access = {{ rate = "20Mbit/s", delay = "8ms", queue = "unlimited" }}
bottleneck = {{ rate = "5.4Mbit/s", delay = "80ms", channel = [{{ kind = "fading", {channel} }}], queue = {{ limit = "1bdp" }} }}
{flows}
"#
    )
}

fn flows(protocol: &str, more: &str) -> String {
    format!("[[flows]]\nname = \"f\"\ncount = 4\nprotocol = \"{protocol}\"\npacket = \"1040B\"\n{more}\n")
}

/// What the first channel of a link predicts for packets of this length.
fn predicted(scenario: &Scenario, link: &str, bytes: u16, ack: bool, what: &str) -> f64 {
    let link = scenario.links.iter().find(|l| l.name == link).expect("a link");
    let channel = &link.channel[0];
    let mut packet = Packet { ip_len: bytes, ..Packet::EMPTY };
    packet.transport.set_flags(if ack { flag::ACK } else { 0 });
    let mut found = None;
    registry::channel(channel.kind.name()).expect("registered").predict(
        &channel.values,
        &packet,
        &mut |name, value| {
            if name == what {
                found = Some(value);
            }
        },
    );
    found.expect("told")
}

/// Packets that came to a link, and those that its channel lost, of the whole run.
fn lost_of_came(text: &str) -> Vec<(u64, u64)> {
    let scenario = scenario(text);
    let done = run(&scenario, &Options::default());
    let port = |name: &str| {
        let at = scenario.links.iter().position(|l| l.name == name).expect("a link");
        let stats = &done.engine.links[at].port.stats;
        (stats.total().channel, stats.arrived - stats.total().overflow)
    };
    ["r1->r2", "r2->r1"].map(port).to_vec()
}

#[test]
fn losses_are_those_of_the_closed_form() {
    // Near the waterfall of both codes, so that data and acknowledgements are lost, each at its own rate.
    let text =
        direct("snr = 15.0, fec_data = 0.8, fec_ack = 0.8", &flows("xcp/sack", "params = { receiver_window = 40 }"));
    let text = text.replace("\"20s\"", "\"60s\"");
    let s = scenario(&text);
    let data = predicted(&s, "r1->r2", 1040, false, "packet_loss");
    let ack = predicted(&s, "r2->r1", 72, true, "packet_loss");
    assert!(data > 0.05 && ack > 0.002, "{data} {ack}");
    let [(lost, came), (acks_lost, acks_came)] = lost_of_came(&text)[..] else { panic!("two links") };
    let off = |lost: u64, came: u64, p: f64| (lost as f64 - came as f64 * p) / (came as f64 * p * (1.0 - p)).sqrt();
    // Acknowledgements with SACK ranges are longer, and better protected: the bare one's loss is the most.
    assert!(off(lost, came, data).abs() < 4.0, "{lost} of {came}, expected {data}");
    assert!(acks_lost > 0 && off(acks_lost, acks_came, ack) < 4.0, "{acks_lost} of {acks_came}, expected {ack}");
}

#[test]
fn parity_takes_time_of_the_line_and_controllers_know() {
    let used = |rate: f64| {
        let o = outcome::run(&direct(&format!("{CLEAN}, fec_data = {rate}, fec_ack = 1.0"), &flows("xcp", "")));
        (o.link("r1->r2", "utilisation"), o.link("r1->r2", "queue_mean_packets"), o.drops())
    };
    for rate in [1.0, 0.9, 0.7] {
        let (utilisation, queue, drops) = used(rate);
        assert!(
            (utilisation / rate - 1.0).abs() < 0.03 && queue < 10.0 && drops == 0.0,
            "{rate}: {utilisation}, {queue}"
        );
    }
    // With the rate of the line a router overestimates the capacity by a ninth, which causes a standing queue.
    let text = direct(CLEAN, &flows("xcp", "")).replace("queue = { limit", "capacity = \"5.4Mbit/s\", queue = { limit");
    assert!(outcome::run(&text).link("r1->r2", "queue_mean_packets") > 15.0);
}

/// More signal, fewer errors; more antennas, less signal needed (figures 3 and 6, in small).
#[test]
fn antennas_move_the_transition() {
    let goodput = |snr: f64, antennas: &str| {
        let channel = format!("snr = {snr:.1}, antennas = \"{antennas}\"");
        let o = outcome::run(&direct(&channel, &flows("xcp", "")));
        o.flows("f", "goodput_bps").iter().sum::<f64>() / 1e6
    };
    let at = |snr| ["1x1", "2x1", "1x2", "2x2"].map(|antennas| goodput(snr, antennas));
    let (low, middle, high) = (at(4.0), at(11.0), at(24.0));
    assert!(low.iter().all(|g| *g < 0.1), "no packet gets through at 4 dB: {low:?}");
    assert!(middle[3] > 4.0 && middle[2] > 4.0 && middle[0] < 0.1, "{middle:?}");
    assert!(high.iter().all(|g| (g / high[0] - 1.0).abs() < 0.03) && high[0] > 4.0, "all the same above: {high:?}");
}

const CLEAN: &str = "snr = 60.0, antennas = \"2x2\"";

fn sessions(o: &Outcome) -> (f64, f64) {
    (o.flows("f", "sessions").iter().sum(), o.flows("f", "torn_down").iter().sum())
}

#[test]
fn sessions_end_and_come_again() {
    // Four seconds on and one off, four times, over a clean path.
    let text = direct(CLEAN, &flows("xcp", "session = { duration = \"4s\", pause = \"1100ms\" }"));
    let o = outcome::run(&(text + "[sampling]\nevery = \"1s\"\nof = [\"goodput\"]\n"));
    assert_eq!(sessions(&o), (16.0, 0.0));
    assert_eq!((o.flows("f", "timeouts"), o.flows("f", "retransmissions")), (vec![0.0; 4], vec![0.0; 4]));
    let goodput = o.samples("f.0", "goodput_bps", 0.0);
    assert!(goodput.iter().all(|g| *g >= 0.0), "what earlier sessions received stays counted: {goodput:?}");
    let all: f64 = o.flows("f", "goodput_bps").iter().sum();
    assert!((mean(&goodput[2..]) / o.flows("f", "goodput_bps")[0] - 1.0).abs() < 1e-9);
    assert!((2e6..4.3e6).contains(&all), "four fifths of the time, less what connecting takes: {all}");
}

#[test]
fn what_an_earlier_session_left_is_ignored() {
    // Pauses of a millisecond, round trips of 192: packets of the last session are under way when the next connects.
    let text = direct(CLEAN, &flows("xcp", "session = { duration = \"700ms\", pause = \"1ms\" }"));
    let o = outcome::run(&text);
    assert!(sessions(&o).0 > 4.0 * 25.0);
    assert_eq!((o.flows("f", "timeouts"), o.flows("f", "retransmissions")), (vec![0.0; 4], vec![0.0; 4]));
}

#[test]
fn timeouts_tear_sessions_down() {
    // Two thirds of the packets are lost: every connection is given up.
    let lossy = direct(CLEAN, &flows("sack", "session = { timeouts = 3, pause = { from = \"1s\", to = \"2s\" } }"))
        .replace("kind = \"fading\", snr = 60.0, antennas = \"2x2\"", "kind = \"random_loss\", rate = \"66%\"");
    let o = outcome::run(&lossy.replace("\"20s\"", "\"200s\""));
    let (begun, torn_down) = sessions(&o);
    assert!(torn_down >= 20.0 && (begun == torn_down || begun - torn_down <= 4.0), "{begun} {torn_down}");
    // With a loss now and then no connection is given up.
    let o = outcome::run(&lossy.replace("66%", "1%"));
    assert_eq!(sessions(&o), (4.0, 0.0));
    let patient = outcome::run(&lossy.replace("timeouts = 3", "timeouts = 1000"));
    assert_eq!(sessions(&patient), (4.0, 0.0));
}
