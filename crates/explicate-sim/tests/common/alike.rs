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

/// What is wrong if a flow's mean over the runs is further from the mean of all than four of its standard errors and 2 %.
pub(crate) fn unlike(goodputs: &[Vec<f64>]) -> Option<String> {
    let runs = goodputs[0].len() as f64;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let means: Vec<f64> = goodputs.iter().map(|of| mean(of)).collect();
    let all = mean(&means);
    let far = |of: &Vec<f64>, own: f64| {
        let variance = of.iter().map(|x| (x - own) * (x - own)).sum::<f64>() / (runs - 1.0);
        let error = (variance / runs).sqrt();
        ((own - all).abs() > (4.0 * error).max(0.02 * all)).then_some(error)
    };
    let worst = goodputs.iter().zip(&means).filter_map(|(of, &own)| Some((own, far(of, own)?)));
    let worst = worst.max_by(|a, b| (a.0 - all).abs().total_cmp(&(b.0 - all).abs()));
    let listed: Vec<String> = means.iter().map(|m| format!("{:.3}", m / 1e6)).collect();
    let listed = listed.join(", ");
    worst.map(|(own, error)| {
        format!(
            "{:.3} Mbit/s with a standard error of {:.3}, the mean of all is {:.3}: {listed}",
            own / 1e6,
            error / 1e6,
            all / 1e6
        )
    })
}
