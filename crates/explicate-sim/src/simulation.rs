//! Runs of a scenario: build, run, sample, measure.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use explicate_core::flow::FlowStats;
use explicate_core::sink::SinkStats;
use explicate_core::units::Time;
use explicate_scenario::model::Scenario;

use crate::build::build;
use crate::engine::Engine;
use crate::measure::{Tables, measure};
use crate::packet_log::{PacketLog, Selector};
use crate::sample::{Sample, Sampler};

/// Which way packets take through ports and the event loop. The results are the same.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum EngineKind {
    /// Departures are computed ahead, and events joined, wherever nothing can tell the difference.
    #[default]
    Fast,
    /// One event for each departure and each arrival, as in a textbook.
    Reference,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [EngineKind; 2] = [EngineKind::Fast, EngineKind::Reference];
    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Fast => "fast",
            EngineKind::Reference => "reference",
        }
    }
    /// The one of this name.
    pub fn find(name: &str) -> Option<EngineKind> {
        EngineKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How runs are carried out; none of this changes a result.
#[derive(Clone, Default)]
pub struct Options {
    /// Disables link fusion.
    pub no_fuse: bool,
    /// Which way packets take.
    pub engine: EngineKind,
    /// Follows the packets of one flow (or all) in the first run.
    pub follow: Option<Selector>,
    /// Parallel runs; 0 means 1.
    pub jobs: usize,
}

/// One finished run.
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// The network as it stood at the end.
    pub engine: Engine,
    /// Counters of both ends of each flow when the measured span began.
    pub baseline: Vec<(FlowStats, SinkStats)>,
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// The packet trace.
    pub log: Option<PacketLog>,
    /// Wall time of the run without set-up, seconds.
    pub wall_s: f64,
}

/// Progress callback: index of the run and fraction done, 0 to 1. Returns whether to continue.
pub type Progress<'a> = &'a (dyn Fn(usize, f64) -> bool + Sync);

/// Carries out one run. An error is an internal defect; a checked scenario causes none.
pub fn run_once(scenario: &Scenario, index: usize, options: &Options, progress: Progress<'_>) -> Result<Run, String> {
    let seed = scenario.seed.wrapping_add(index as u64);
    let reference = options.engine == EngineKind::Reference;
    let mut engine = build(scenario, seed, !options.no_fuse && !reference)?;
    if reference {
        engine.use_reference();
    }
    if let (Some(selector), 0) = (&options.follow, index) {
        engine.follow(PacketLog::new(selector.clone()));
    }
    let mut sampler = Sampler::new(&scenario.sampling, &engine);
    #[expect(clippy::disallowed_methods, reason = "goes to timing.json, not into a table")]
    let started = Instant::now();
    let mut baseline = Vec::new();
    let end = scenario.duration;
    let warmup = scenario.warmup.min(end);
    let every = sampler.as_ref().map_or(Time::NEVER, |s| s.every());
    let report = Time((end.0 / 100).max(1));
    let (mut next_sample, mut next_report) = (every, report);
    let mut measuring = false;
    while engine.now() < end || !measuring {
        let mut next_observation = end.min(next_sample);
        if !measuring {
            next_observation = next_observation.min(warmup);
        }
        let until = next_observation.min(next_report);
        engine.run_unobserved(until, next_observation);
        if until == warmup && !measuring {
            engine.settle_all();
            baseline = engine.ends.iter().map(|e| e.stats()).collect();
            engine.start_measuring();
            measuring = true;
        }
        if until == next_sample {
            if let Some(sampler) = &mut sampler {
                sampler.take(&mut engine);
            }
            next_sample = until + every;
        }
        if until == next_report {
            if !progress(index, until.0 as f64 / end.0 as f64) {
                return Err("interrupted".to_string());
            }
            next_report = until + report;
        }
    }
    engine.settle_all();
    let wall_s = started.elapsed().as_secs_f64();
    engine.audit().map_err(|e| format!("packets are not conserved, which is a defect of the simulator: {e}"))?;
    let log = engine.followed();
    Ok(Run { seed, engine, baseline, samples: sampler.map_or(Vec::new(), |s| s.samples), log, wall_s })
}

/// Carries out all runs of a scenario, one after the other, and returns their result tables.
pub fn run_tables(scenario: &Scenario) -> Result<Tables, String> {
    let version = env!("CARGO_PKG_VERSION");
    let runs = run_all(scenario, &Options::default(), &|_, _| true, |index, mut run| {
        measure(scenario, index, &mut run, version)
    })?;
    let mut all = Tables::default();
    runs.into_iter().for_each(|tables| all.append(tables));
    Ok(all)
}

/// Carries out all runs of a scenario, up to `jobs` in parallel, and hands each to `finish` as it ends. The results are
/// in the order of the runs.
pub fn run_all<T: Send>(
    scenario: &Scenario,
    options: &Options,
    progress: Progress<'_>,
    finish: impl Fn(usize, Run) -> T + Sync,
) -> Result<Vec<T>, String> {
    let runs = scenario.runs as usize;
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T, String>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= runs {
                return;
            }
            let result = run_once(scenario, index, options, progress).map(|run| finish(index, run));
            let failed = result.is_err();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            if failed {
                next.store(runs, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..options.jobs.clamp(1, runs.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
