//! Runs any scenario without samples, and prints its cost as a line of JSON: `engine_cost FILE [FROM..]SECONDS [KEY=VALUE ...]`.
//!
//! It is made for callgrind: with `--toggle-collect='*counted_span*'` the count covers FROM to SECONDS of simulated time,
//! without set-up and start; `hops` and `cpu_s` cover the same span. If `duration` is given, the run continues to that time, so
//! that the count includes no work that precedes an observation at its end. `setup_s` and the fields `bytes_*` are time
//! and memory of set-up, for runs with a million flows; `bytes_started` is at FROM.

use std::error::Error;
use std::path::Path;

use cpu_time::ThreadTime;
use explicate_core::units::Time;
use explicate_scenario::model::Scenario;
use explicate_sim::bench::resident_bytes;
use explicate_sim::build::build;
use explicate_sim::engine::Engine;

/// The part of the run that is counted, under a name that callgrind finds. As in a run without samples.
#[inline(never)]
fn counted_span(engine: &mut Engine, until: Time) {
    engine.run_unobserved(until, Time::NEVER);
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "engine_cost FILE [FROM..]SECONDS [KEY=VALUE ...]";
    let file = args.next().ok_or(usage)?;
    let span = args.next().ok_or(usage)?;
    let (from, until) = span.split_once("..").unwrap_or(("0", &span));
    let (from, seconds) = from.parse::<f64>().ok().zip(until.parse::<f64>().ok()).ok_or(usage)?;
    let split = |pair: String| pair.split_once('=').map(|(k, v)| (k.to_string(), v.to_string()));
    let mut overrides: Vec<(String, String)> = args.filter_map(split).collect();
    if overrides.iter().all(|(key, _)| key != "duration") {
        overrides.push(("duration".to_string(), format!("{seconds}s")));
    }
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    let scenario = Scenario::parse(&text, &file, Path::new("."), &overrides)?;
    let before = resident_bytes();
    let started = ThreadTime::now();
    let mut engine = build(&scenario, scenario.seed, true)?;
    let setup = started.elapsed().as_secs_f64();
    let built = resident_bytes().saturating_sub(before);
    engine.run_unobserved(Time::from_secs_f64(from), Time::NEVER);
    let started_bytes = resident_bytes().saturating_sub(before);
    let (hops, events) = (engine.hops(), engine.events());
    let started = ThreadTime::now();
    counted_span(&mut engine, Time::from_secs_f64(seconds));
    let cpu = started.elapsed().as_secs_f64();
    let (hops, events) = (engine.hops() - hops, engine.events() - events);
    engine.run_until(scenario.duration);
    engine.catch_up_all();
    let after = resident_bytes().saturating_sub(before);
    engine.audit()?;
    let (flows, links) = (engine.ends.len(), engine.links.len());
    let told = format!(
        r#"{{"hops": {hops}, "events": {events}, "flows": {flows}, "links": {links}, "setup_s": {setup:.3}, "cpu_s": {cpu:.3}, "bytes_built": {built}, "bytes_started": {started_bytes}, "bytes_after": {after}}}"#
    );
    #[expect(clippy::print_stdout, reason = "a program that prints figures")]
    {
        println!("{told}");
    }
    Ok(())
}
