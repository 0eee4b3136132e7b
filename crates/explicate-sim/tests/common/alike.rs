//! Whether equal flows have equal mean goodputs over many runs.

use explicate_scenario::model::Scenario;
use explicate_sim::measure::measure;
use explicate_sim::simulation::{Options, run_all};

use crate::common::numbers;

/// Goodput of each flow in each run, bit/s: a list of runs for each flow.
pub(crate) fn goodputs(scenario: &Scenario) -> Vec<Vec<f64>> {
    let options = Options { jobs: 2, ..Options::default() };
    let finish = |i: usize, mut run: _| numbers(&measure(scenario, i, &mut run, "test").flows, "goodput_bps");
    let runs = match run_all(scenario, &options, &|_, _| true, finish) {
        Ok(runs) => runs,
        Err(problem) => panic!("{problem}"),
    };
    (0..runs[0].len()).map(|flow| runs.iter().map(|run| run[flow]).collect()).collect()
}

/// What is wrong if a flow's mean over the runs is further from the mean of all than four standard errors and 2 %.
///
/// Equal flows have one distribution, so the error is that of all flows together. A flow's own error misleads where
/// goodputs are skewed: a flow that happens to have no fast run has both a low mean and a small error.
pub(crate) fn unlike(goodputs: &[Vec<f64>]) -> Option<String> {
    let runs = goodputs[0].len() as f64;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let means: Vec<f64> = goodputs.iter().map(|of| mean(of)).collect();
    let all = mean(&means);
    let squares: f64 =
        goodputs.iter().zip(&means).flat_map(|(of, own)| of.iter().map(move |x| (x - own) * (x - own))).sum();
    let error = (squares / (runs - 1.0) / goodputs.len() as f64 / runs).sqrt();
    let worst = means.iter().copied().max_by(|a, b| (a - all).abs().total_cmp(&(b - all).abs()));
    let worst = worst.filter(|own| (own - all).abs() > (4.0 * error).max(0.02 * all));
    let listed: Vec<String> = means.iter().map(|m| format!("{:.3}", m / 1e6)).collect();
    let listed = listed.join(", ");
    worst.map(|own| {
        format!(
            "{:.3} Mbit/s with a standard error of {:.3}, the mean of all is {:.3}: {listed}",
            own / 1e6,
            error / 1e6,
            all / 1e6
        )
    })
}
