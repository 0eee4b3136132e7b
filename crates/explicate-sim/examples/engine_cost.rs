//! What the engine costs on any scenario: `engine_cost FILE SECONDS [KEY=VALUE ...]`, without samples. Prints a line of JSON. Made
//! to be counted by callgrind: the run of 2 T minus that of T leaves out set-up and start. With a million flows it tells
//! the memory and the time to set them up.

use std::path::Path;

use cpu_time::ThreadTime;
use explicate_core::units::Time;
use explicate_scenario::model::Scenario;
use explicate_sim::bench::resident_bytes;
use explicate_sim::build::build;

fn main() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let usage = "engine_cost FILE SECONDS [KEY=VALUE ...]";
    let file = args.next().ok_or(usage)?;
    let seconds = args.next().and_then(|s| s.parse::<f64>().ok()).ok_or(usage)?;
    let split = |pair: String| pair.split_once('=').map(|(k, v)| (k.to_string(), v.to_string()));
    let mut overrides: Vec<(String, String)> = args.filter_map(split).collect();
    overrides.push(("duration".to_string(), format!("{seconds}s")));
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    let scenario = Scenario::parse(&text, &file, Path::new("."), &overrides).map_err(|e| e.to_string())?;
    let before = resident_bytes();
    let started = ThreadTime::now();
    let mut engine = build(&scenario, scenario.seed, true)?;
    let setup = started.elapsed().as_secs_f64();
    let built = resident_bytes().saturating_sub(before);
    let started = ThreadTime::now();
    engine.run_until(Time::from_secs_f64(seconds));
    let cpu = started.elapsed().as_secs_f64();
    engine.settle_all();
    let after = resident_bytes().saturating_sub(before);
    engine.audit()?;
    let (hops, events, flows, links) = (engine.hops(), engine.events(), engine.ends.len(), engine.links.len());
    let told = format!(
        r#"{{"hops": {hops}, "events": {events}, "flows": {flows}, "links": {links}, "setup_s": {setup:.3}, "cpu_s": {cpu:.3}, "bytes_built": {built}, "bytes_after": {after}}}"#
    );
    #[expect(clippy::print_stdout, reason = "a program that tells figures")]
    {
        println!("{told}");
    }
    Ok(())
}
