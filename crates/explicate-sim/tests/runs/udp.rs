//! UDP at a constant rate (`greedy`): nothing opens the flow and nothing returns, so it needs no way back and leaves it to others.

use crate::outcome::{self, Outcome};

/// 10 Mbit/s and 20 ms; `back` refines the way back, `flows` follow.
fn path(back: &str, flows: &str) -> Outcome {
    outcome::run(&format!(
        r#"
duration = "20s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = {{ rate = "10Mbit/s", delay = "20ms" }}
[[link]]
name = "r2->r1"
{back}
[sampling]
every = "1s"
of = ["flow", "rtt"]
{flows}
"#
    ))
}

fn udp(rate: &str, more: &str) -> String {
    format!("[[flows]]\nname = \"u\"\nprotocol = \"greedy\"\nparams = {{ rate = \"{rate}\" }}\n{more}\n")
}

const CUT: &str = "channel = [{ kind = \"random_loss\", rate = \"100%\" }]";

/// 5 Mbit/s of packets, of which 1448 of 1500 bytes are payload, from the first moment on; the last 22 ms are under way.
#[test]
fn it_needs_no_way_back() {
    for back in ["", CUT] {
        let done = path(back, &udp("5Mbit/s", ""));
        let expected = 5e6 * 1448.0 / 1500.0 * (20.0 - 0.022) / 20.0;
        let goodput = done.flows("u", "goodput_bps")[0];
        assert!((goodput / expected - 1.0).abs() < 1e-3, "{goodput} of {expected}");
        assert_eq!(done.flows("u", "timeouts_total"), [0.0]);
        assert!(done.flows("u", "rtt_mean_ms")[0].is_nan() && done.samples("u.0", "srtt_ms", 0.0).is_empty());
        assert_eq!(done.link("r2->r1", "drops_total") + done.link("r2->r1", "utilisation"), 0.0, "nothing returns");
    }
}

/// TCP over 64 kbit/s has the same rate with 9 Mbit/s of UDP in the other direction as alone.
#[test]
fn a_thin_way_back_is_left_to_others() {
    let tcp = "[[flows]]\nname = \"t\"\nprotocol = \"newreno\"\npath = \"reverse\"\nstop = \"15s\"\n";
    let beside = |flows: &str| path("rate = \"64kbit/s\"", &format!("{tcp}{flows}")).flows("t", "goodput_bps")[0];
    let (alone, beside) = (beside(""), beside(&udp("9Mbit/s", "")));
    assert!(alone > 20e3 && (beside / alone - 1.0).abs() < 0.01, "{beside} beside UDP, {alone} alone");
}

/// 100 segments of 1448 B at 1.2 Mbit/s leave every 10 ms: the last one, and then its way of 22 ms and 1.4 ms on the lines.
#[test]
fn a_transfer_is_complete_when_its_last_segment_arrives() {
    let size = "size = \"144800B\"";
    let done = path(CUT, &udp("1.2Mbit/s", size)).flows("u", "completion_s")[0];
    assert!((done - (0.990 + 0.0234)).abs() < 2e-3, "{done}");
    let forth = "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", rate = \"100%\" }]\n";
    let lost = path("", &format!("{forth}{}", udp("1.2Mbit/s", size))).flows("u", "completion_s")[0];
    assert!(lost.is_nan(), "{lost}");
}

/// 10 % are lost, and counted at the receiver; a packet may be behind the last one that has arrived.
#[test]
fn losses_are_counted_at_the_receiver() {
    let forth = "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", rate = \"10%\" }]\n";
    let done = path(CUT, &format!("{forth}{}", udp("5Mbit/s", "")));
    let (lost, dropped) = (done.samples("u.0", "lost", 19.5)[0], done.link("r1->r2", "drops_total"));
    assert!(dropped > 500.0 && (dropped - lost).abs() <= 1.0, "{lost} of {dropped}");
}

/// Applications that pause, and sessions, which are no connections here.
#[test]
fn its_applications_need_no_way_back_either() {
    for (application, share) in [
        ("on_off = { on = \"1s\", off = \"1s\" }", 0.5),
        ("session = { duration = \"3s\", pause = \"1s\" }", 0.75),
        ("stop = \"5s\"", 0.25),
    ] {
        let goodput = path(CUT, &udp("5Mbit/s", application)).flows("u", "goodput_bps")[0];
        let expected = share * 5e6 * 1448.0 / 1500.0;
        assert!((goodput / expected - 1.0).abs() < 0.15, "{application}: {goodput} of {expected}");
    }
}

/// What needs reports has them: the same source over a recovery that retransmits, and video, which follows feedback.
#[test]
fn what_needs_reports_gets_nowhere_without_a_way_back() {
    for protocol in ["greedy/newreno", "video", "video_xtcp", "reno/none"] {
        let flow = format!("[[flows]]\nname = \"u\"\nprotocol = \"{protocol}\"\n");
        assert_eq!(path(CUT, &flow).flows("u", "goodput_bps"), [0.0], "{protocol}");
        assert!(path("", &flow).flows("u", "rtt_mean_ms")[0] > 44.0, "{protocol}");
    }
}
