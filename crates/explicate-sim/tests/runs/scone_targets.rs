//! Properties of flows that follow SCONE's advice, and of the elements that give it: advised rates are kept, the lowest
//! counts, others are left alone, fair shares are fair, changes and losses are followed in time.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use explicate_core::wire::scone::{Advice, PERIOD};

use crate::common::{is_exact, scenario, tables};
use crate::outcome::{Line, Outcome, group, mean, run};

/// Base round trip, s.
const RTT: f64 = 0.04;
/// Time between two samples, s.
const EVERY: f64 = 0.1;
/// Time between two SCONE packets of a flow that runs for long, s.
const SCONE_EVERY: f64 = 20.0;

/// A dumbbell with flows that `flows` declares, over `mbps` and a buffer of one product; `port` has more keys of the
/// bottleneck's port.
fn text(mbps: f64, port: &str, flows: &str, seconds: (u32, u32)) -> String {
    let queue = "kind = \"droptail\", limit = \"1.0bdp\"";
    Line { mbps, rtt: 40, queue, port, seconds, every: 100, of: &["queue", "flow", "router"] }.text(flows)
}
fn over(mbps: f64, port: &str, flows: &str, seconds: (u32, u32)) -> Outcome {
    run(&text(mbps, port, flows, seconds))
}
fn following(name: &str, protocol: &str, more: &str) -> String {
    group(name, protocol, &format!("params = {{ scone = true }}\n{more}"))
}
fn advise(what: &str) -> String {
    format!("scone = {{ advise = \"{what}\" }}")
}
/// The rate that advice of at most `bps` has, bit/s.
fn signal(bps: f64) -> f64 {
    Advice::at_most(bps).rate().expect("a rate")
}
/// The rate of the only flow of a group, or of each, in IP bytes, bit/s.
fn rates(done: &Outcome, group: &str) -> Vec<f64> {
    done.flows(group, "throughput_bps")
}
/// When a sampled variable first is so, s after `from`; infinite if never.
fn first(done: &Outcome, object: &str, variable: &str, from: f64, so: impl Fn(f64) -> bool) -> f64 {
    let values = done.samples(object, variable, from);
    assert!(values.len() > 5, "{object} {variable}: {} samples", values.len());
    values.iter().position(|value| so(*value)).map_or(f64::INFINITY, |at| EVERY * at as f64)
}

/// A sender paces at the advised rate, so that no packet more than one leaves in any time: 1500 bytes are 3e-5 of 20 s. What
/// it may lack: CUBIC's window grows until it exceeds what is in flight, so that pacing alone counts, but for the
/// acknowledgement of every second segment: 2 of the 66 segments of a round trip, 3 %. BBR, here Linux's, paces at 99 %
/// of its estimate, at 75 % of that in one of eight rounds, while the round at 125 % is held: (1 + 0.74 + 6 * 0.99) / 8
/// = 0.96; and 240 ms in ten seconds it sends four packets in a round trip: 0.94. Two of a hundred are left for chance.
/// The line has twice the rate, so only packets that leave together wait, two of 0.3 ms.
#[test]
fn a_fixed_rate_is_kept_by_a_law_of_losses_and_a_law_of_rates() {
    let advised = signal(20e6);
    for (protocol, least) in [("cubic", 0.97), ("bbr", 0.92)] {
        let done = over(40.0, &advise("20Mbit/s"), &following("f", protocol, ""), (30, 10));
        let (share, queue) = (rates(&done, "f")[0] / advised, done.link("r1->r2", "queue_mean_ms"));
        println!("{protocol}: {share:.4} of the advised rate, queue {queue:.3} ms, {} drops", done.drops());
        assert!((least..=1.0 + 1e-3).contains(&share), "{protocol}: {share}");
        assert!(queue < 0.3, "{protocol}: {queue} ms");
        assert_eq!(done.drops(), 0.0, "{protocol}");
        let without = over(40.0, "", &group("f", protocol, ""), (30, 10));
        assert!(rates(&without, "f")[0] > 1.5 * advised, "{protocol}: the rate is the advice's, not the law's");
    }
}

/// 20 and 8 Mbit/s, in both orders; 3 % as above, of 26 segments 2 are 8 %.
#[test]
fn of_two_routers_the_lower_advice_counts() {
    let at = |first: &str, second: &str| {
        let text = format!(
            r#"
duration = "30s"
warmup = "10s"
[topology]
kind = "chain"
hops = 2
pairs = 1
access = {{ rate = "1Gbit/s", delay = "1ms" }}
link = {{ rate = "40Mbit/s", delay = "9ms" }}
[[link]]
name = "r1->r2"
{}
[[link]]
name = "r2->r3"
{}
{}"#,
            advise(first),
            advise(second),
            following("f", "cubic", "")
        );
        rates(&run(&text), "f")[0]
    };
    let advised = signal(8e6);
    for (first, second) in [("20Mbit/s", "8Mbit/s"), ("8Mbit/s", "20Mbit/s")] {
        let share = at(first, second) / advised;
        println!("{first}, {second}: {share:.4} of the lower");
        assert!((0.92..=1.0 + 1e-3).contains(&share), "{first} {second}: {share}");
    }
}

/// An element changes nothing for packets that do not ask: every flow and every link has the same numbers. Beside a flow that
/// keeps to a tenth of the line, CUBIC has what is left.
#[test]
fn a_flow_that_does_not_follow_is_unaffected() {
    let plain = group("f", "cubic", "count = 2\nstart = { spread = \"1s\" }");
    let left = |port: &str| {
        let tables = tables(&text(10.0, port, &plain, (20, 5)).replace(", \"router\"", ""));
        format!("{:?} {:?} {:?}", tables.flows, tables.links, tables.samples)
    };
    let without = left("");
    for port in [advise("1Mbit/s"), advise("measured")] {
        assert!(left(&port) == without, "{port}");
    }
    let both = following("polite", "cubic", "") + &group("plain", "cubic", "");
    let done = over(20.0, &advise("2Mbit/s"), &both, (60, 20));
    let (polite, plain) = (rates(&done, "polite")[0], rates(&done, "plain")[0]);
    println!("polite {:.2}, plain {:.2} Mbit/s", polite / 1e6, plain / 1e6);
    assert!(polite <= signal(2e6) * 1.001, "{polite}");
    assert!(plain >= 0.95 * (20e6 - signal(2e6)), "{plain}");
}

/// Each of n flows is advised the greatest of SCONE's rates that is not above C / n, which is at least C / n / 1.122, and keeps
/// to it but for the 2 segments of a window that wait for an acknowledgement: of 15 in a round trip at n = 5, yet pacing
/// is the limit there too, so 3 % as for one flow, and as much for what processing and the other flows' packets delay. All
/// together are below C, so no queue lasts: what waits are packets that leave together, two of each flow at most, 0.5 ms each.
#[test]
fn fair_advice_gives_each_of_n_flows_an_nth() {
    let capacity = 24e6;
    for (router, flows) in [("rcp", 1), ("rcp", 2), ("rcp", 3), ("rcp", 4), ("rcp", 5), ("xcp", 3)] {
        let port = format!("router = \"{router}\"\n{}", advise("fair"));
        let many = format!("count = {flows}\nstart = {{ uniform = \"2s\" }}");
        let done = over(24.0, &port, &following("f", "cubic", &many), (80, 60));
        let advised = signal(capacity / f64::from(flows));
        assert!(advised * 1.123 > capacity / f64::from(flows), "the distance of two rates");
        let (shares, queue) = (rates(&done, "f"), done.link("r1->r2", "queue_mean_ms"));
        let shares: Vec<f64> = shares.iter().map(|rate| rate / advised).collect();
        println!("{router}, {flows}: {advised:.3e} bit/s advised, kept to {shares:.4?}; queue {queue:.2} ms");
        assert!(shares.iter().all(|share| (0.94..=1.0 + 1e-3).contains(share)), "{router} {flows}: {shares:?}");
        assert!(queue < f64::from(flows), "{router} {flows}: {queue} ms");
    }
}

/// A second flow comes at 40 s and goes at 100 s. The first one is advised half of the line by its first SCONE packet after
/// the second flow has a quarter: within the period and a round trip at the latest. After 100 s the port counts the flow for
/// two seconds at most, so advice of half a line may be received until then; it expires a period later, and higher advice has come
/// by then, every 20 s.
#[test]
fn a_change_of_shares_is_followed_within_a_period_and_a_round_trip() {
    let (period, capacity) = (PERIOD.as_secs_f64(), 12e6);
    let flows = following("f", "cubic", "") + &following("g", "cubic", "start = \"40s\"\nstop = \"100s\"");
    let done = over(12.0, &format!("router = \"rcp\"\n{}", advise("fair")), &flows, (180, 0));
    let (alone, half) = (signal(capacity), signal(capacity / 2.0));
    assert!(done.samples("f.0", "advised_bps", 5.0)[..340].iter().all(|bps| (bps / alone - 1.0).abs() < 1e-6));
    let halved = first(&done, "f.0", "advised_bps", 40.0, |bps| bps <= half);
    let raised = first(&done, "f.0", "advised_bps", 100.0, |bps| bps > half);
    println!("halved {halved:.1} s after the second flow began, raised {raised:.1} s after it ended");
    assert!(halved <= period + RTT + EVERY, "{halved}");
    assert!(raised >= period - SCONE_EVERY, "not before the last low advice expires: {raised}");
    assert!(raised <= 2.0 + period + RTT + EVERY, "{raised}");
    // From then on the flow keeps to the half: the samples of its pace.
    let kept = done.samples("f.0", "advised_bps", 40.0 + halved);
    let kept = &kept[..((100.0 - 40.0 - halved) / EVERY) as usize];
    assert!(kept.len() > 50 && kept.iter().all(|bps| *bps <= half), "once lowered it stays for the period");
}

/// The line has 12 Mbit/s, and half of that from 40 s on, which only the packets that wait show. The moving average
/// is within a tenth of 6 after ten seconds, 6 (1 + 0.75^10); with the next SCONE packet, within 20 s, the flow keeps to
/// at most 6.3 Mbit/s, the rate above 6, and with the one after it to less than the line.
#[test]
fn a_line_that_slows_down_is_measured_and_followed() {
    let steps = "channel = [{ kind = \"rate_steps\", steps = [{ at = \"0s\", rate = \"12Mbit/s\" }, { at = \"40s\", rate = \"6Mbit/s\" }] }]";
    let done = over(12.0, &format!("{steps}\n{}", advise("measured")), &following("f", "cubic", ""), (110, 0));
    let low = first(&done, "f.0", "advised_bps", 40.0, |bps| bps <= signal(6.4e6));
    let below = first(&done, "f.0", "advised_bps", 40.0, |bps| bps < 6e6);
    let queue = done.samples("r1->r2", "queue_bytes", 40.0);
    let last = mean(&queue[queue.len() - 100..]);
    println!("near the line after {low:.1} s, below it after {below:.1} s; {last:.0} bytes wait at the end");
    assert!(low <= PERIOD.as_secs_f64() + RTT + EVERY, "{low}");
    assert!(below <= PERIOD.as_secs_f64() + RTT + EVERY, "{below}");
    assert!(mean(&queue[..100]) > 5.0 * 1500.0, "the queue has to show");
    assert!(last < 3.0 * 1500.0, "{last} bytes");
}

/// The first data packet, which carries a SCONE packet, is lost: the next one leaves a second later. When all of the SCONE
/// packets of a period are lost, advice expires; when one of the two in it comes, it counts.
#[test]
fn a_lost_scone_packet_only_delays() {
    let with = |channel: &str| {
        let port = format!("{}\nchannel = [{channel}]", advise("4Mbit/s"));
        over(12.0, &port, &following("f", "cubic", ""), (30, 10))
    };
    let (whole, lossy) = (with(""), with("{ kind = \"random_loss\", rate = \"100%\", start = \"30ms\", most = 1 }"));
    let told = |done: &Outcome| first(done, "f.0", "advised_bps", 0.0, |bps| bps <= signal(4e6));
    let (at_once, late) = (told(&whole), told(&lossy));
    println!("advised after {at_once:.1} s, after {late:.1} s where the first SCONE packet is lost");
    assert!(at_once <= 0.2, "{at_once}");
    assert!((1.0..=1.3).contains(&late), "{late}: a second after the first data packet");
    let shares = [&whole, &lossy].map(|done| rates(done, "f")[0] / signal(4e6));
    assert!((shares[0] / shares[1] - 1.0).abs() < 0.01, "{shares:?}: the same from then on");
    assert!(SCONE_EVERY * 2.0 < PERIOD.as_secs_f64(), "two in a period: one of them may be lost");
}

/// Following packets and taking links apart changes nothing.
#[test]
fn runs_with_elements_are_exact() {
    for port in [advise("2Mbit/s"), advise("measured"), format!("router = \"xcp\"\n{}", advise("fair"))] {
        let flows = following("f", "cubic", "count = 2") + &group("x", "xcp", "") + &group("p", "bbr", "");
        is_exact(&scenario(&text(10.0, &port, &flows, (8, 2))));
    }
}
