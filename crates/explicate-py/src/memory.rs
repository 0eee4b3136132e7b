//! Refuses runs whose tables do not fit into memory, before they begin: an allocation that fails ends the process.

use std::fs::read_to_string;

use explicate_scenario::model::Scenario;

/// Bytes of a row of `samples` while a run's samples become a frame (measured: 222).
const SAMPLE_BYTES: f64 = 230.0;
/// Bytes of a row of `flows` or `links`, with the flow or the link itself (measured: 1050).
const ROW_BYTES: f64 = 1000.0;

/// Compares the tables of all runs with the free memory; `flows` have rows (of a fluid, its classes). The error is a
/// sentence with the remedy.
pub(crate) fn check(origin: &str, scenario: &Scenario, flows: u64) -> Result<(), String> {
    available().map_or(Ok(()), |free| compare(origin, scenario, flows, free))
}

fn compare(origin: &str, scenario: &Scenario, flows: u64, free: f64) -> Result<(), String> {
    let runs = scenario.runs as f64;
    let samples = scenario.sample_rows(flows) * runs;
    let rows = (flows as f64 + scenario.links.len() as f64) * runs;
    let need = samples * SAMPLE_BYTES + rows * ROW_BYTES;
    if need <= free {
        return Ok(());
    }
    let most_are_samples = samples * SAMPLE_BYTES >= rows * ROW_BYTES;
    let (count, what) = if most_are_samples { (samples, "samples") } else { (rows, "flows and links") };
    let remedy = match (most_are_samples, scenario.runs > 1) {
        (true, false) => "lengthen `every` or shorten `of` in [sampling]",
        (true, true) => "lengthen `every` or shorten `of` in [sampling], or make fewer `runs` at once",
        (false, true) => "make fewer `runs` at once",
        (false, false) => "take fewer flows",
    };
    let (need, free) = (need / 1e9, free / 1e9);
    Err(format!(
        "{origin}: about {count:.0e} rows of {what} would take {need:.1} GB of memory, and {free:.1} GB are free; {remedy}"
    ))
}

/// Bytes that this process can still allocate, on Linux: what the machine has, and the limits of the process and of
/// its control group.
fn available() -> Option<f64> {
    let meminfo = read_to_string("/proc/meminfo").ok()?;
    let machine = field(&meminfo, "MemAvailable:")? + field(&meminfo, "SwapFree:").unwrap_or(0.0);
    let limits = read_to_string("/proc/self/limits").unwrap_or_default();
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let space = address_space(&limits).map(|most| most - 1024.0 * field(&status, "VmSize:").unwrap_or(0.0));
    let whole = |path: &str| read_to_string(path).ok()?.trim().parse::<f64>().ok();
    let group =
        whole("/sys/fs/cgroup/memory.max").zip(whole("/sys/fs/cgroup/memory.current")).map(|(most, now)| most - now);
    let free = [space, group].into_iter().flatten().fold(1024.0 * machine, f64::min);
    Some(free.max(0.0))
}

/// The number after a name, as in `/proc/meminfo`.
fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The soft limit in `/proc/self/limits`; `None` if it is unlimited.
fn address_space(limits: &str) -> Option<f64> {
    field(limits, "Max address space")
}
