//! `explicated lab`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use explicate_core::units::Time;
use explicate_scenario::limits;
use explicate_scenario::model::Scenario;
use serde_json::json;

use super::say::{complain, say};
use crate::cli::Lab;
use crate::error::{Context, Error, Result};
use crate::lab::results::{named, to_json, to_text};
use crate::lab::{self, Outcome, stall_monitor};
use crate::sys;

/// Reads a scenario with the overrides of the command line.
fn read_scenario(path: &Path, sets: &[String]) -> Result<Scenario> {
    // Reads an endless device only until it exceeds the limit.
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(limits::FILE_BYTES as u64 + 1).read_to_string(&mut text));
    read.map_err(|e| Error::Input(format!("cannot read {}: {e}", path.display())))?;
    let mut overrides = Vec::new();
    for set in sets {
        let Some((key, value)) = set.split_once('=') else {
            return Err(Error::Input(format!("--set needs KEY=VALUE, not `{set}`")));
        };
        overrides.push((key.to_string(), value.to_string()));
    }
    let base = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let scenario = Scenario::parse(&text, &path.display().to_string(), base, &overrides)
        .map_err(|problems| Error::Input(problems.to_string()))?;
    for warning in &scenario.warnings {
        complain(format!("warning: {warning}"));
    }
    Ok(scenario)
}

pub(super) fn run(args: &Lab) -> Result<()> {
    let scenario = read_scenario(&args.scenario, &args.sets)?;
    if args.dry_run {
        return say(lab::dry_run(&scenario)?.trim_end());
    }
    let split = |word: &String| {
        let wrong = || Error::Input(format!("--kernel needs GROUP=CONTROL, not `{word}`"));
        word.split_once('=')
            .map(|(group, kernel_controller)| (group.to_string(), kernel_controller.to_string()))
            .ok_or_else(wrong)
    };
    if args.with_parent {
        sys::die_with_parent().or_fail(|| "follow the parent".to_string())?;
    }
    let kernel = args.kernel.iter().map(split).collect::<Result<Vec<_>>>()?;
    // Before the run, not after it.
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).or_fail(|| format!("make the folder {}", folder.display()))?;
    }
    let outcome = lab::run(&scenario, &kernel)?;
    for failure in &outcome.failures {
        complain(failure);
    }
    if let Some((times, longest)) = outcome.stood_still {
        complain(format!(
            "warning: the machine stood still {times} times for more than 1 ms, up to {longest:.1} ms; what was due \
             then left in bursts, which queue (samples of `{}`)",
            stall_monitor::MACHINE
        ));
    }
    if let Some(folder) = &args.output {
        for (name, table) in named(&outcome.tables) {
            let path = folder.join(format!("{name}.csv"));
            File::create(&path)
                .and_then(|file| table.write_csv(file))
                .or_fail(|| format!("write {}", path.display()))?;
        }
    }
    if args.json {
        let value = json!({
            "scenario": scenario.name,
            "seed": scenario.seed,
            "version": env!("CARGO_PKG_VERSION"),
            "flows": to_json(&outcome.tables.flows),
            "links": to_json(&outcome.tables.links),
            "forwarders": forwarders(&outcome),
            "machine": {
                "real_time": !outcome.is_not_real_time,
                "stalls": outcome.stood_still.map_or(0, |(times, _)| times),
                "longest_stall_ms": outcome.stood_still.map_or(0.0, |(_, longest)| longest),
            },
            "kernel_flows": outcome.limited.iter().map(limited).collect::<Vec<_>>(),
            "sysctls": outcome.settings,
        });
        return say(value);
    }
    say_tables(&scenario, &outcome)
}

fn say_tables(scenario: &Scenario, outcome: &Outcome) -> Result<()> {
    let columns = ["flow", "protocol", "goodput_bps", "rtt_mean_ms", "retransmissions", "timeouts", "completion_s"];
    say(to_text(&outcome.tables.flows, &columns, |_| true))?;
    let columns = [
        "link",
        "utilisation",
        "queue_mean_packets",
        "queue_p95_packets",
        "queue_max_packets",
        "drops_overflow",
        "drops_early",
        "drops_channel",
        "marks",
    ];
    // The links that can drop or lose packets: those with a limited queue or channels.
    let links = &scenario.links;
    let decides = |row: usize| links[row % links.len()].queue.is_some() || !links[row % links.len()].channel.is_empty();
    say(to_text(&outcome.tables.links, &columns, decides))?;
    for work in &outcome.work {
        let (c, late) = (&work.counters, &work.late);
        say(format!(
            "{}: {} frames, {:.2} us of CPU each; forwarded late by p50 {} us, p99 {} us, at most {} us; missed {}, refused {}",
            work.name,
            c.sent,
            work.cpu as f64 / 1e3 / c.sent.max(1) as f64,
            late.percentile(0.5).0 / 1000,
            late.percentile(0.99).0 / 1000,
            late.most.0 / 1000,
            c.missed,
            c.refused,
        ))?;
    }
    Ok(())
}

/// What limited a flow of the kernel other than its window.
fn limited((run, flow, [receiver, buffer]): &(u64, String, [Time; 2])) -> serde_json::Value {
    json!({
        "run": run,
        "flow": flow,
        "receiver_limited_s": receiver.to_seconds(),
        "send_buffer_limited_s": buffer.to_seconds(),
    })
}

fn forwarders(outcome: &Outcome) -> Vec<serde_json::Value> {
    let to_json = |work: &lab::Work| {
        let (us, cpu) = (|time: Time| json!(time.0 as f64 / 1e3), work.cpu as f64 / 1e3);
        let mut report = json!(work.counters);
        report["name"] = json!(work.name);
        report["late_p50_us"] = us(work.late.percentile(0.5));
        report["late_p99_us"] = us(work.late.percentile(0.99));
        report["late_p999_us"] = us(work.late.percentile(0.999));
        report["late_most_us"] = us(work.late.most);
        report["cpu_us_per_frame"] = json!(cpu / work.counters.sent.max(1) as f64);
        report
    };
    outcome.work.iter().map(to_json).collect()
}
