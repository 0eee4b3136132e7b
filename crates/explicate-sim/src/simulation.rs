//! Runs of a scenario: build, run, sample, measure.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use explicate_core::api::Allowance;
use explicate_core::endpoint::{ReceiverStats, SenderStats};
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::Scenario;

use crate::build::build;
use crate::engine::Engine;
use crate::error::RunError;
use crate::packet_log::{PacketLog, Selector};
use crate::sample::{Sample, Sampler};

/// The version of ports and event loop. The results are the same.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum EngineKind {
    /// Departures are computed ahead, and events are fused, wherever this does not change a result.
    #[default]
    Fast,
    /// The reference version: one event for each departure and each arrival.
    Reference,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [EngineKind; 2] = [EngineKind::Fast, EngineKind::Reference];
    /// Its name for users.
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
    /// The version of ports and event loop.
    pub engine: EngineKind,
    /// Traces the packets of one flow (or all) in the first run.
    pub follow: Option<Selector>,
    /// Parallel runs; 0 means 1.
    pub jobs: usize,
}

/// One finished run.
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// The network at the end.
    pub engine: Engine,
    /// Counters of both ends of each flow when the measured span began.
    pub baseline: Vec<(SenderStats, ReceiverStats)>,
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// The packet trace.
    pub log: Option<PacketLog>,
    /// Wall time of the run without set-up, seconds.
    pub wall_s: f64,
}

/// Progress callback: index of the run and fraction done, 0 to 1. Returns whether to continue.
pub type Progress<'a> = &'a (dyn Fn(usize, f64) -> bool + Sync);

/// A run that goes on in steps, for drivers that show it while it runs; [`run_once`] is one of them.
pub struct Stepper {
    seed: u64,
    engine: Engine,
    sampler: Option<Sampler>,
    baseline: Vec<(SenderStats, ReceiverStats)>,
    measuring: bool,
    warmup: Time,
    end: Time,
    next_sample: Time,
}

impl Stepper {
    /// Run number `index` of a scenario before its first event.
    ///
    /// # Errors
    /// An internal defect; a checked scenario causes none.
    pub fn new(scenario: &Scenario, index: usize, options: &Options) -> Result<Stepper, RunError> {
        let seed = scenario.seed.wrapping_add(index as u64);
        let reference = options.engine == EngineKind::Reference;
        let mut engine = build(scenario, seed, !options.no_fuse && !reference)?;
        if reference {
            engine.use_reference();
        }
        if let (Some(selector), 0) = (&options.follow, index) {
            engine.follow(PacketLog::new(selector.clone()));
        }
        let sampler = Sampler::new(&scenario.sampling, &engine);
        Ok(Stepper {
            seed,
            next_sample: sampler.as_ref().map_or(Time::NEVER, |s| s.every()),
            sampler,
            baseline: Vec::new(),
            measuring: false,
            warmup: scenario.warmup.min(scenario.duration),
            end: scenario.duration,
            engine,
        })
    }
    /// The network in its present state.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
    /// Samples so far, in order of time.
    pub fn samples(&self) -> &[Sample] {
        self.sampler.as_ref().map_or(&[], |sampler| &sampler.samples)
    }
    /// Whether the run has ended.
    pub fn is_done(&self) -> bool {
        self.measuring && self.engine.now() >= self.end
    }
    /// Continues to this time or the end. The results do not depend on the steps.
    pub fn advance(&mut self, until: Time) {
        self.run_to(until, Time::NEVER);
    }
    /// As `run_until`, for a driver that then reads packets and queues: every port has caught up.
    pub fn advance_observed(&mut self, until: Time) {
        self.run_to(until, until);
        self.engine.catch_up_all();
    }

    fn run_to(&mut self, until: Time, observed: Time) {
        while !self.is_done() {
            let mut next_observation = self.end.min(self.next_sample).min(observed);
            if !self.measuring {
                next_observation = next_observation.min(self.warmup);
            }
            let stop = next_observation.min(until);
            self.engine.run_unobserved(stop, next_observation);
            if stop == self.warmup && !self.measuring {
                self.engine.catch_up_all();
                self.baseline = self.engine.ends.iter().map(|e| e.stats()).collect();
                self.engine.start_measuring();
                self.measuring = true;
            }
            if stop == self.next_sample
                && let Some(sampler) = &mut self.sampler
            {
                sampler.take(&mut self.engine);
                self.next_sample = stop + sampler.every();
            }
            if stop == until {
                return;
            }
        }
    }

    /// The finished run.
    ///
    /// # Errors
    /// Packets were not conserved, which is a defect of the simulator.
    pub fn finish(mut self, wall_s: f64) -> Result<Run, RunError> {
        self.engine.catch_up_all();
        self.engine.audit()?;
        let log = self.engine.followed();
        let Stepper { seed, engine, baseline, .. } = self;
        Ok(Run { seed, engine, baseline, samples: self.sampler.map_or(Vec::new(), |s| s.samples), log, wall_s })
    }
}

/// Carries out one run.
///
/// # Errors
/// `progress` ended the run, or a protocol of another crate cannot send any more; else an internal defect, which a
/// checked scenario does not cause.
pub fn run_once(scenario: &Scenario, index: usize, options: &Options, progress: Progress<'_>) -> Result<Run, RunError> {
    let mut run = Stepper::new(scenario, index, options)?;
    let clock = Clock::start();
    let end = scenario.duration;
    let report = Time((end.0 / 100).max(1));
    let mut next = report;
    while !run.is_done() {
        run.advance(next);
        if run.engine.now() == next && !progress(index, next.0 as f64 / end.0 as f64) {
            return Err(RunError::Interrupted);
        }
        next += report;
    }
    let run = run.finish(clock.seconds())?;
    check_senders(scenario, &run)?;
    Ok(run)
}

/// Checks every sender at the end: with no window or no rate, or without numbers, it sends nothing, and its results are zeros
/// without a reason.
fn check_senders(scenario: &Scenario, run: &Run) -> Result<(), RunError> {
    for (id, ends) in run.engine.ends.iter().enumerate() {
        let group = &scenario.flows[run.engine.group_of(id)];
        let flow = || format!("{}.{}", group.name, ends.number);
        if ends.flow.is_exhausted() {
            return Err(RunError::Exhausted { flow: flow() });
        }
        let Allowance { cwnd, pacing } = ends.flow.allowance();
        let what = if !(1.0..f64::INFINITY).contains(&cwnd) {
            format!("a window of {cwnd} segments; it must be finite, 1 or more")
        } else if pacing == Some(Rate(0)) {
            "a pacing rate of 0; it must be 1 bit/s or more".to_string()
        } else {
            continue;
        };
        return Err(RunError::Allowance { flow: flow(), protocol: group.resolved.protocol.name(), what });
    }
    Ok(())
}

/// Wall time, which goes to timing.json and not into a table; zero where there is no clock.
struct Clock(#[cfg(not(target_arch = "wasm32"))] std::time::Instant);

impl Clock {
    #[cfg(not(target_arch = "wasm32"))]
    fn start() -> Clock {
        #[expect(clippy::disallowed_methods, reason = "goes to timing.json, not into a table")]
        Clock(std::time::Instant::now())
    }
    #[cfg(target_arch = "wasm32")]
    fn start() -> Clock {
        Clock()
    }
    #[cfg(not(target_arch = "wasm32"))]
    fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
    #[cfg(target_arch = "wasm32")]
    fn seconds(&self) -> f64 {
        0.0
    }
}

/// Carries out all runs of a scenario, up to `jobs` in parallel, and hands each to `finish` as it ends. The results are
/// in the order of the runs.
///
/// # Errors
/// That of the first run that has one, as of [`run_once`].
pub fn run_all<T: Send>(
    scenario: &Scenario,
    options: &Options,
    progress: Progress<'_>,
    finish: impl Fn(usize, Run) -> T + Sync,
) -> Result<Vec<T>, RunError> {
    let runs = scenario.runs as usize;
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T, RunError>)>> = Mutex::new(Vec::new());
    let unwinding = AtomicBool::new(false);
    let progress = |index, share| !unwinding.load(Ordering::Relaxed) && progress(index, share);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= runs {
                return;
            }
            let run = || run_once(scenario, index, options, &progress).map(|run| finish(index, run));
            let result = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|thrown| {
                unwinding.store(true, Ordering::Relaxed);
                resume_unwind(thrown)
            });
            let failed = result.is_err();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
            if failed {
                next.store(runs, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..options.jobs.clamp(1, runs.max(1))).map(|_| scope.spawn(work)).collect();
        work();
        for other in others {
            // A panic of a run is resumed unchanged, so that a caller can inspect it.
            other.join().unwrap_or_else(|thrown| resume_unwind(thrown));
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
