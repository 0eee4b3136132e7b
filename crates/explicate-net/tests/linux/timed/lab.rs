//! The laboratory, on this machine's kernel. Needs root, so `make measure` runs it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::measured::measured;
use crate::common::{PROGRAM, jain, lab, number, numbers};
use crate::figures::{Better, figure};
use crate::lab::DUMBBELL;
use explicate_build::tables::Data;
use explicate_scenario::model::Scenario;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{Options, run_once};

const BDP_PACKETS: f64 = 50e6 / 8.0 * 0.04 / 1500.0;

#[test]
#[ignore = "needs root: make measure"]
fn two_xcp_flows_fill_the_link_and_leave_the_queue_empty() {
    measured(|| {
        let told = lab(DUMBBELL, &[]);
        let of_link = |column| number(&told, "links", "link", "r1->r2", column);
        figure("lab: two XCP flows, use of the link", of_link("utilisation"), "", Better::More);
        figure("lab: two XCP flows, queue, p95", of_link("queue_p95_packets"), "packets", Better::Less);
        assert!(of_link("utilisation") >= 0.95, "{}", of_link("utilisation"));
        assert!(of_link("queue_p95_packets") < 0.2 * BDP_PACKETS, "{}", of_link("queue_p95_packets"));
        assert_eq!(of_link("drops_total"), 0.0);
        let rates = numbers(&told, "flows", "goodput_bps");
        figure("lab: two XCP flows, Jain's index", jain(&rates), "", Better::More);
        assert!(jain(&rates) >= 0.98, "{rates:?}");
        assert_eq!(numbers(&told, "flows", "retransmissions"), [0.0, 0.0]);
    });
}

#[test]
#[ignore = "needs root: make measure"]
fn a_loss_resilient_flow_holds_its_rate_on_a_link_that_loses() {
    measured(|| {
        for (loss, least) in [("1%", 0.9), ("5%", 0.8)] {
            let sets = [&format!("link.r1->r2.channel.0.rate={loss}"), "flows.f.protocol=LR-LMXCP"];
            let told = lab(DUMBBELL, &sets);
            let share = numbers(&told, "flows", "goodput_bps").iter().sum::<f64>() / 50e6;
            figure(&format!("lab: LR-LMXCP with {loss} of losses, share"), share, "", Better::More);
            assert!(share >= least, "{loss}: {share}");
            let (lost, sent) =
                (number(&told, "links", "link", "r1->r2", "drops_channel"), numbers(&told, "flows", "sent_packets"));
            let seen = lost / sent.iter().sum::<f64>();
            let asked = loss.trim_end_matches('%').parse::<f64>().unwrap() / 100.0;
            assert!((seen / asked - 1.0).abs() < 0.25, "{loss}: {seen} of all packets were lost");
        }
    });
}

#[test]
#[ignore = "needs root: make measure"]
fn other_signals_cross_the_same_router() {
    measured(|| {
        // VCP doubles its window in some twenty round trips of low load, and is there after 20 s, simulated and real.
        for (protocol, warmup, duration) in [("vcp", 22, 36), ("xtcp", 8, 20)] {
            let span = [format!("warmup={warmup}s"), format!("duration={duration}s")];
            let told = lab(DUMBBELL, &[&format!("flows.f.protocol={protocol}"), &span[0], &span[1]]);
            let share = numbers(&told, "flows", "goodput_bps").iter().sum::<f64>() / 50e6;
            figure(&format!("lab: {protocol}, share"), share, "", Better::More);
            assert!(share > 0.8, "{protocol}: {share}");
            // Less than end-to-end congestion control would lose on its own.
            let lost = number(&told, "links", "link", "r1->r2", "drops_overflow");
            let sent: f64 = numbers(&told, "flows", "sent_packets").iter().sum();
            assert!(lost < 0.01 * sent, "{protocol}: {lost} of {sent}");
        }
    });
}

/// When the flow `third` that begins at 6 s has nine tenths of its third of the windows, seconds after that; from samples of `cwnd`
/// as time, flow and value, every 50 ms, means over 200 ms.
fn converged(samples: &[(f64, String, f64)]) -> f64 {
    let mut windows: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (time, flow, value) in samples {
        let (third, all) = windows.entry((time / 0.05).round() as u64).or_default();
        *all += value;
        *third += if flow == "third.0" { *value } else { 0.0 };
    }
    let windows: Vec<_> = windows.into_iter().collect();
    let reached = windows.windows(4).find(|w| {
        let (third, all) = w.iter().fold((0.0, 0.0), |sum, (_, (third, all))| (sum.0 + third, sum.1 + all));
        w[0].0 > 120 && 3.0 * third / all >= 0.9
    });
    reached.map_or(f64::INFINITY, |w| w[3].0 as f64 * 0.05 - 6.0)
}

#[test]
#[ignore = "needs root: make measure"]
fn a_third_flow_converges_when_the_simulator_says() {
    let more = "[[flows]]\nname = \"third\"\nprotocol = \"xcp\"\npacket = \"1500B\"\nstart = \"6s\"\n";
    let text = format!("{DUMBBELL}{more}[sampling]\nevery = \"50ms\"\nof = [\"cwnd\"]\n");
    let text = text.replace("duration = \"14s\"", "duration = \"10s\"");
    let scenario = Scenario::parse(&text, "third", Path::new("."), &[]).unwrap();
    let mut run = run_once(&scenario, 0, &Options::default(), &|_, _| true).unwrap();
    let table = measure(&scenario, 0, &mut run, "test").samples;
    let (Some(Data::F64(times)), Some(Data::Str(flows)), Some(Data::F64(values)), Some(Data::Str(variables))) =
        (table.get("time_s"), table.get("object"), table.get("value"), table.get("variable"))
    else {
        panic!("columns of samples")
    };
    let rows = (0..times.len()).filter(|i| variables[*i] == "cwnd");
    let simulated = converged(&rows.map(|i| (times[i], flows[i].clone(), values[i])).collect::<Vec<_>>());
    assert!((0.2..3.0).contains(&simulated), "{simulated}");

    let folder = std::env::temp_dir().join(format!("exptest-{}-third", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("third.toml");
    std::fs::write(&file, &text).unwrap();
    let real = || {
        let done = Command::new(PROGRAM).arg("lab").arg(&file).arg("-o").arg(&folder).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let text = std::fs::read_to_string(folder.join("samples.csv")).unwrap();
        let rows = text.lines().map(|l| l.split(',').collect::<Vec<_>>()).filter(|c| c[3] == "cwnd");
        converged(&rows.map(|c| (c[1].parse().unwrap(), c[2].to_string(), c[4].parse().unwrap())).collect::<Vec<_>>())
    };
    let real = [real(), real()];
    for seconds in real {
        figure("lab: a third flow has its share", seconds, "s", Better::Less);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(real.iter().any(|r| (r / simulated - 1.0).abs() <= 0.5), "{real:?} s, simulated {simulated} s");
}

#[test]
#[ignore = "needs root: make measure"]
fn sessions_begin_and_end_when_the_simulator_says() {
    let text = DUMBBELL
        .replace("protocol = \"xcp\"", "protocol = \"xcp\"\nsession = { duration = \"1s\", pause = \"300ms\" }");
    let text = text.replace("14s", "8s").replace("6s", "1s");
    let scenario = Scenario::parse(&text, "sessions", Path::new("."), &[]).unwrap();
    let mut run = run_once(&scenario, 0, &Options::default(), &|_, _| true).unwrap();
    let table = measure(&scenario, 0, &mut run, "test").flows;
    let (Some(Data::U64(begun)), Some(Data::F64(rates))) = (table.get("sessions"), table.get("goodput_bps")) else {
        panic!("columns of flows")
    };
    measured(|| {
        let told = lab(&text, &[]);
        let real = numbers(&told, "flows", "sessions");
        assert_eq!(real, begun.iter().map(|n| *n as f64).collect::<Vec<_>>());
        let (sum, real) = (rates.iter().sum::<f64>(), numbers(&told, "flows", "goodput_bps").iter().sum::<f64>());
        figure("lab: sessions, error of the rate", (real / sum - 1.0).abs(), "", Better::Less);
        assert!((real / sum - 1.0).abs() < 0.15, "{real} for {sum}");
    });
}
