//! Connection set-up: features that the other end refuses are not used; a lost SYN is retransmitted; marks are returned.

use crate::common::{number, tables};

fn dumbbell(flow: &str, more: &str) -> String {
    format!(
        r#"
        name = "negotiation"
        processing = "none"
        duration = "20s"
        warmup = "5s"
        [topology]
        kind = "dumbbell"
        pairs = 1
        access = {{ rate = "100Mbit/s", delay = "1ms" }}
        bottleneck = {{ rate = "10Mbit/s", delay = "18ms", queue = {{ kind = "droptail", limit = "1.0bdp" }} }}
        {more}
        [[flows]]
        name = "f"
        packet = "1000B"
        {flow}
        "#
    )
}

#[test]
fn a_refused_explicit_flow_goes_on_as_tcp() {
    let explicit = tables(&dumbbell(r#"protocol = "xcp""#, ""));
    let refused = tables(&dumbbell("protocol = \"xcp\"\nparams = { refuse_explicit = true }", ""));
    let of = |t: &explicate_sim::measure::Tables, column| number(&t.flows, "flow", "f.0", column);
    let share = |t| of(t, "goodput_bps") / of(t, "throughput_bps");
    // 72 bytes of headers in 1000 with a congestion header; segments keep their payload of 928 bytes without: 52 in 980.
    assert!((share(&explicit) - 0.928).abs() < 1e-3, "{}", share(&explicit));
    assert!((share(&refused) - 928.0 / 980.0).abs() < 1e-3, "{}", share(&refused));
    // It behaves as TCP does: the queue fills, where XCP's stays empty.
    let queue = |t: &explicate_sim::measure::Tables| number(&t.links, "link", "r1->r2", "queue_mean_packets");
    assert!(queue(&explicit) < 2.0 && queue(&refused) > 8.0, "{} {}", queue(&explicit), queue(&refused));
}

/// The first window of the TCP of the flow's own stack, in a round trip and a half of 40 ms; the SYN leaves before the count.
#[test]
fn a_refused_flow_begins_as_its_stack_does() {
    let sent = |head: &str, own: &str| {
        let flow = format!("protocol = \"xcp\"\n{own}\nparams = {{ refuse_explicit = true, guard = \"off\" }}");
        let text = dumbbell(&flow, "").replace("duration = \"20s\"", &format!("duration = \"60ms\"\n{head}"));
        number(&tables(&text.replace("5s", "0s")).flows, "flow", "f.0", "sent_packets")
    };
    assert_eq!(sent("stack = \"ns2\"", ""), 3.0);
    assert_eq!(sent("stack = \"linux\"", ""), 10.0);
    assert_eq!(sent("stack = \"linux\"", "stack = \"ns2\""), 3.0, "the group's own");
    assert_eq!(sent("stack = \"ns2\"", "stack = \"linux\""), 10.0);
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second() {
    let heavy = "[[link]]\nname = \"r1->r2\"\nchannel = [{ kind = \"random_loss\", rate = \"70%\" }]\n";
    let slow = tables(&dumbbell("protocol = \"sack\"\nstack = \"ns2\"\nsize = \"5kB\"", heavy));
    let quick = tables(&dumbbell("protocol = \"sack\"\nstack = \"ns2\"\nsize = \"5kB\"", ""));
    let completion = |t: &explicate_sim::measure::Tables| number(&t.flows, "flow", "f.0", "completion_s");
    // A round trip to connect and two for six segments, three at first.
    assert!((0.12..0.14).contains(&completion(&quick)), "{}", completion(&quick));
    let slow = completion(&slow);
    assert!(slow > 1.0 || slow.is_nan(), "{slow}");
}

#[test]
fn marks_replace_drops_for_flows_that_understand_them() {
    let red = "[[link]]\nname = \"r1->r2\"\nqueue = { kind = \"red\", limit = \"200pkt\", min_th = \"10pkt\", max_th = \"30pkt\", mark = true }\n";
    let run = |ecn: bool| tables(&dumbbell(&format!("protocol = \"sack\"\nparams = {{ ecn = {ecn} }}"), red));
    let link = |t: &explicate_sim::measure::Tables, column| number(&t.links, "link", "r1->r2", column);
    let (with, without) = (run(true), run(false));
    assert!(link(&with, "marks") >= 3.0 && link(&with, "drops_early") == 0.0);
    assert!(link(&without, "marks") == 0.0 && link(&without, "drops_early") >= 3.0);
    assert_eq!(number(&with.flows, "flow", "f.0", "retransmissions"), 0.0);
    assert!(link(&with, "utilisation") > 0.9, "{}", link(&with, "utilisation"));
}
