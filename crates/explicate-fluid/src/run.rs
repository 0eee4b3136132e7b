//! Runs of a scenario as a fluid.

use std::time::Instant;

use explicate_build::tables::Tables;
use explicate_scenario::model::Scenario;
use explicate_scenario::problem::RunWarning;

use crate::engine::Engine;
use crate::error::RunError;
use crate::measure::measure;
use crate::network::Network;
use crate::sample::Sampler;

/// Results of a run.
pub struct Done {
    /// Its tables; the rows of `flows` are classes.
    pub tables: Tables,
    /// Warnings.
    pub warnings: Vec<RunWarning>,
    /// Wall time of the run, seconds: set-up, and then the steps.
    pub wall_s: (f64, f64),
    /// Number of steps, hops of classes per step, and classes.
    pub steps: u64,
    /// See `steps`.
    pub hops: u64,
    /// See `steps`.
    pub classes: u64,
    /// Bytes of all hops and rings.
    pub bytes: u64,
}

/// Carries out run number `index`. `progress` gets the fraction done and returns whether to continue.
///
/// # Errors
/// The delays do not fit in memory, or the run was interrupted.
pub fn run(scenario: &Scenario, index: usize, version: &str, progress: &dyn Fn(f64) -> bool) -> Result<Done, RunError> {
    let seed = scenario.seed.wrapping_add(index as u64);
    #[expect(clippy::disallowed_methods, reason = "goes to timing.json, not into a table")]
    let clock = Instant::now;
    let began = clock();
    let network = Network::new(scenario, seed)?;
    let warnings = network.warnings.clone();
    let (hops, classes) = (network.hops.len() as u64, network.classes.len() as u64);
    let bytes = size_of_val(&network.hops[..]) + size_of_val(&network.rings[..]) + size_of_val(&network.classes[..]);
    let dt = network.dt;
    let mut engine = Engine::new(scenario, network);
    let mut tables = Tables::of_classes();
    let mut sampler = Sampler::new(scenario, &engine);
    let set_up = began.elapsed().as_secs_f64();
    let began = clock();
    let steps = (scenario.duration.as_secs_f64() / dt + 0.5) as u64;
    let warmup = (scenario.warmup.as_secs_f64() / dt + 0.5) as u64;
    let report = (steps / 100).max(1);
    let mut before = vec![Default::default(); engine.network.classes.len()];
    for step in 0..steps {
        if step == warmup {
            engine.measuring = true;
            before = engine.network.classes.iter().map(|c| c.stats).collect();
            engine.network.links.iter_mut().for_each(|l| l.stats.begin());
        }
        engine.step();
        if let Some(sampler) = &mut sampler {
            sampler.step(index as u64, scenario, &engine, &mut tables.samples);
        }
        if step % report == 0 && !progress(step as f64 / steps as f64) {
            return Err(RunError::Interrupted);
        }
    }
    if !progress(1.0) {
        return Err(RunError::Interrupted);
    }
    engine.audit()?;
    measure(&mut tables, scenario, index as u64, &engine.network, &before);
    let (name, resolved) = (scenario.name.as_str(), scenario.resolved.as_str());
    tables.run.push([(index as u64).into(), name.into(), seed.into(), version.into(), resolved.into()]);
    let wall_s = (set_up, began.elapsed().as_secs_f64());
    Ok(Done { tables, warnings, wall_s, steps, hops, classes, bytes: bytes as u64 })
}
