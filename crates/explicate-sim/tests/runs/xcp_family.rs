//! XCP's switches and relatives, and the sources that follow its feedback or do not, each by a situation in which it makes the
//! difference.

use crate::common::jain;
use crate::outcome::{Outcome, dumbbell, mean, run};

/// Flows of 1000-byte packets over 10 Mbit/s with a round trip of 80 ms and a buffer of one bandwidth-delay product (100
/// packets), 40 s of which the second half counts. `keys` refine the bottleneck.
fn shared(flows: &[String], keys: &str) -> Outcome {
    seeded(1, flows, keys)
}

fn seeded(seed: u64, flows: &[String], keys: &str) -> Outcome {
    run(&format!(
        r#"
seed = {seed}
duration = "40s"
warmup = "20s"
[topology]
kind = "dumbbell"
access = {{ rate = "100Mbit/s", delay = "1ms" }}
bottleneck = {{ rate = "10Mbit/s", delay = "38ms" }}
[[link]]
name = "r1->r2"
{keys}
{}
[sampling]
every = "20ms"
of = ["router"]
"#,
        flows.concat()
    ))
}

fn group(name: &str, count: u32, protocol: &str, params: &str) -> String {
    format!(
        "[[flows]]\nname = {name:?}\ncount = {count}\nprotocol = {protocol:?}\npacket = \"1000B\"\nparams = {{ {params} }}\n"
    )
}

/// Mean throughput of a group's flows, Mbit/s.
fn mbps(done: &Outcome, group: &str) -> f64 {
    mean(&done.flows(group, "throughput_bps")) / 1e6
}

/// Paper D section 7.2: the target is 10 packets there.
#[test]
fn a_target_queue_is_held() {
    for (packets, weight) in [(0.0, 1.0), (10.0, 0.1), (30.0, 0.1)] {
        let bytes = 1000.0 * packets;
        let router = format!("router = {{ kind = \"xcp\", target_queue = \"{bytes}B\", queue_weight = {weight} }}");
        let done = shared(&[group("f", 5, "xcp", "")], &router);
        let queue = mean(&done.samples("r1->r2", "persistent_queue_bytes", 20.0)) / 1000.0;
        let utilisation = done.link("r1->r2", "utilisation");
        // Packets that arrive at random wait for each other even without a standing queue.
        assert!((queue - packets).abs() < if packets == 0.0 { 1.5 } else { 1.0 }, "{packets}: {queue}");
        // Without a standing queue the line sometimes waits for the next burst.
        assert!(utilisation > 0.99 && (packets == 0.0 || utilisation > 0.9999), "{packets}: {utilisation}");
        assert!(done.drops() == 0.0);
    }
}

#[test]
fn losses_do_to_the_window_what_the_user_says() {
    let got = |loss: &str, params: &str| {
        let channel = format!("channel = [{{ kind = \"random_loss\", rate = \"{loss}\" }}]");
        mbps(&shared(&[group("f", 1, "xcp/sack", params)], &channel), "f")
    };
    let [keep, halve, reset] = ["keep", "halve", "reset"].map(|word| got("1%", &format!("on_loss = {word:?}")));
    assert!(keep > 9.0 && keep > 1.3 * halve && halve > 1.2 * reset, "{keep} {halve} {reset}");
    // With a fifth lost, so are retransmissions, which only the timer notices.
    let [stays, restarts] =
        ["keep", "reset"].map(|word| got("20%", &format!("on_loss = \"keep\", on_timeout = {word:?}")));
    assert!(stays > 1.5 * restarts, "{stays} {restarts}");
}

/// Linux 2.4 halves a window slowly, within the round trip of the repair. Of a window of 100 packets a loss then costs as much as
/// halving at once: half is sent in that round trip either way. On a clean path it is XCP.
#[test]
fn rate_halving_costs_a_long_window_as_much_as_halving() {
    let got = |protocol: &str, loss: &str, params: &str| {
        let channel = format!("channel = [{{ kind = \"random_loss\", rate = \"{loss}\" }}]");
        let runs: Vec<f64> =
            (1..=4).map(|seed| mbps(&seeded(seed, &[group("f", 1, protocol, params)], &channel), "f")).collect();
        mean(&runs)
    };
    let (clean, xcp) = (got("xcp_linux24/sack", "0%", ""), got("xcp/sack", "0%", ""));
    assert_eq!(clean, xcp, "nothing is lost");
    let (halve, keep) = (got("xcp/sack", "1%", ""), got("xcp/sack", "1%", "on_loss = \"keep\""));
    let slowly = got("xcp_linux24/sack", "1%", "");
    assert!((slowly / halve - 1.0).abs() < 0.03 && slowly < 0.75 * keep, "{halve} {slowly} {keep}");
}

#[test]
fn a_desired_rate_is_respected() {
    let flows = [group("modest", 1, "xcp", "desired_rate = \"2Mbit/s\""), group("other", 1, "xcp", "")];
    let runs: Vec<Outcome> = (1..=6).map(|seed| seeded(seed, &flows, "")).collect();
    let [modest, other] = ["modest", "other"].map(|g| mean(&runs.iter().map(|r| mbps(r, g)).collect::<Vec<_>>()));
    assert!((1.9..=2.0).contains(&modest) && other > 7.9, "{modest} {other}");
}

#[test]
fn the_window_form_meets_the_targets_of_the_rate_form() {
    let done = run(&dumbbell("xcp_window", 100.0, (80.0, 80.0), 10));
    let utilisation = done.link("r1->r2", "utilisation");
    let (fairness, queue) = (jain(&done.flows("f", "goodput_bps")), done.link("r1->r2", "queue_mean_packets"));
    assert!(utilisation >= 0.99 && fairness >= 0.999 && queue <= 30.0 && done.drops() == 0.0);
}

/// Four of five flows end on 50 Mbit/s with a round trip of 200 ms, 1250 packets. The window of the fifth in the two seconds
/// after, with a share of all acknowledgements lost; mean over eighteen seeds (with six it moves by 0.03 either way).
fn takes_over(protocol: &str, loss: &str) -> f64 {
    let window = |seed: u32| {
        let done = run(&format!(
            r#"
duration = "17s"
seed = {seed}
[topology]
kind = "dumbbell"
access = {{ rate = "1Gbit/s", delay = "1ms" }}
bottleneck = {{ rate = "50Mbit/s", delay = "98ms" }}
[[link]]
name = "r2->r1"
channel = [{{ kind = "random_loss", rate = "{loss}" }}]
{}{}stop = "15s"
[sampling]
every = "50ms"
of = ["cwnd"]
"#,
            group("f", 1, protocol, ""),
            group("others", 4, protocol, ""),
        ));
        mean(&done.samples("f.0", "cwnd", 15.0))
    };
    mean(&(1..=18).map(window).collect::<Vec<_>>())
}

/// Feedback that is lost with an acknowledgement slows XCP down; it hardly changes XCP-r (acknowledgements still cover larger
/// steps). In the long run XCP does not lose rate: its routers distribute lost increases and decreases again.
#[test]
fn lost_acknowledgements_lose_nothing_of_a_sum() {
    let kept = |protocol| takes_over(protocol, "30%") / takes_over(protocol, "0%");
    let (xcp, xcp_r) = (kept("xcp"), kept("xcp_r"));
    assert!(xcp < 0.88 && xcp_r > 0.9, "{xcp} {xcp_r}");
}

/// Nine of ten flows need half a Mbit/s. To XCP's router they are nine flows that could have more. The time until the tenth uses
/// their unused share depends on the order of arrivals in the run (some never use 90 %): means of eight runs, with minimum and
/// maximum.
#[test]
fn free_flows_get_what_limited_ones_refuse() {
    let free = |protocol: &str| {
        let flows = [group("modest", 9, protocol, "desired_rate = \"500kbit/s\""), group("free", 1, protocol, "")];
        let one = |seed: u64| {
            let done = seeded(seed, &flows, "");
            let (modest, free) = (mbps(&done, "modest"), mbps(&done, "free"));
            assert!((0.47..=0.5).contains(&modest) && done.drops() == 0.0, "{modest}");
            (free, done.link("r1->r2", "time_to_90_s"))
        };
        let runs: Vec<(f64, f64)> = (1..=8).map(one).collect();
        let (free, after): (Vec<f64>, Vec<f64>) = runs.into_iter().unzip();
        let (soonest, last) = after
            .into_iter()
            .map(|s| if s.is_nan() { f64::INFINITY } else { s })
            .fold((f64::INFINITY, 0.0f64), |(soonest, last), s| (soonest.min(s), last.max(s)));
        (mean(&free), soonest, last)
    };
    let (xcp, p_xcp) = (free("xcp"), free("p_xcp"));
    assert!(p_xcp.0 > xcp.0 && p_xcp.0 > 5.3, "{p_xcp:?} {xcp:?}");
    assert!(p_xcp.2 < 1.0 && xcp.1 > 2.0, "{p_xcp:?} {xcp:?}");
}

/// A satellite link of 2 Mbit/s and 520 ms that loses a tenth. P-XCP's abstract says "almost double", without its recovery.
#[test]
fn losses_do_not_halve_what_routers_have_set() {
    let got = |law: &str, recovery: &str| {
        let done = run(&format!(
            r#"
duration = "300s"
warmup = "50s"
[topology]
kind = "dumbbell"
access = {{ rate = "100Mbit/s", delay = "5ms" }}
bottleneck = {{ rate = "2Mbit/s", delay = "250ms" }}
[[link]]
name = "r1->r2"
channel = [{{ kind = "random_loss", rate = "10%" }}]
{}"#,
            group("f", 5, &format!("{law}/{recovery}"), "")
        ));
        5.0 * mbps(&done, "f")
    };
    for (recovery, least) in [("sack", 1.25), ("loss_monitor", 1.5)] {
        let (xcp, p_xcp) = (got("xcp", recovery), got("p_xcp", recovery));
        assert!(p_xcp > least * xcp, "{recovery}: {xcp} {p_xcp}");
    }
}

/// XCP's router answers P-XCP's senders, whose headers are the same, where the user says so.
#[test]
fn a_router_by_name_answers_its_relatives() {
    let done = shared(&[group("f", 2, "p_xcp", "")], "router = \"xcp\"");
    let (utilisation, queue) = (done.link("r1->r2", "utilisation"), done.link("r1->r2", "queue_mean_packets"));
    assert!(utilisation > 0.99 && queue < 5.0 && done.drops() == 0.0);
}

/// Two sources that would send 4 Mbit/s each, beside two bulk flows, on 10 Mbit/s.
#[test]
fn video_obeys_and_greedy_does_not() {
    let beside = |source: &str| {
        let done = shared(&[group("source", 2, source, "rate = \"4Mbit/s\""), group("bulk", 2, "xcp", "")], "");
        let (sources, bulk) = (mbps(&done, "source"), mbps(&done, "bulk"));
        (sources, bulk, done)
    };
    let (video, bulk, done) = beside("video");
    assert!((video / 2.5 - 1.0).abs() < 0.03 && (bulk / 2.5 - 1.0).abs() < 0.03, "{video} {bulk}");
    assert!(done.drops() == 0.0 && done.flows("source", "retransmissions") == [0.0, 0.0]);
    let (greedy, bulk, _) = beside("greedy");
    assert!((greedy - 4.0).abs() < 0.01 && (bulk - 1.0).abs() < 0.02, "{greedy} {bulk}");
}

/// A loss costs a source only the lost packet, and it retransmits none.
#[test]
fn video_does_not_mind_losses() {
    let done = shared(
        &[group("source", 1, "video", "rate = \"4Mbit/s\"")],
        "channel = [{ kind = \"random_loss\", rate = \"10%\" }]",
    );
    let (rate, goodput) = (mbps(&done, "source"), done.flows("source", "goodput_bps")[0] / 1e6);
    // 900 of 1000 packets arrive, 928 of 1000 bytes are payload.
    assert!((rate / 3.6 - 1.0).abs() < 0.02 && (goodput / rate / 0.928 - 1.0).abs() < 1e-3, "{rate} {goodput}");
    assert!(done.flows("source", "retransmissions") == [0.0]);
}

/// A receiver that refuses explicit feedback: every variant continues as TCP, at a full link with a full queue.
#[test]
fn refused_relatives_go_on_as_tcp() {
    for protocol in ["xcp", "xcp_window", "p_xcp", "xcp_r", "xcp_linux24", "video/sack", "video_xtcp/sack"] {
        let done = shared(&[group("f", 2, protocol, "refuse_explicit = true")], "");
        let (utilisation, queue) = (done.link("r1->r2", "utilisation"), done.link("r1->r2", "queue_mean_packets"));
        assert!(utilisation > 0.97 && queue > 20.0 && done.drops() > 0.0, "{protocol}: {utilisation} {queue}");
    }
}

/// Paper D section 8.1 as its section 6 sets it up: five file transfers over XTCP, five video sources that follow its flags,
/// 5 Mbit/s behind a queue of 50 packets.
#[test]
fn video_shares_with_xtcp() {
    for queue in ["droptail", "red"] {
        let done = run(&format!(
            r#"
duration = "120s"
warmup = "20s"
[topology]
kind = "dumbbell"
pairs = 10
access = {{ rate = "5Mbit/s", delay = "20ms" }}
bottleneck = {{ rate = "5Mbit/s", delay = "20ms", queue = {{ kind = "{queue}", limit = "50pkt" }} }}
{}start = {{ uniform = "1s" }}
{}start = {{ uniform = "1s" }}
"#,
            group("files", 5, "LR-LMXTCP", ""),
            group("videos", 5, "video_xtcp", ""),
        ));
        let (files, videos) = (mbps(&done, "files"), mbps(&done, "videos"));
        let (ratio, utilisation) = (videos / files, done.link("r1->r2", "utilisation"));
        assert!((0.7..=1.4).contains(&ratio) && utilisation > 0.95, "{queue}: {ratio} {utilisation}");
        assert!(done.flows("videos", "retransmissions").iter().all(|n| *n == 0.0));
    }
}
