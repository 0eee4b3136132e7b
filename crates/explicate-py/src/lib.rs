//! Python binding of Explicate: conversions only. `python/explicate/_native.pyi` documents the functions.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use explicate_build::tables::Tables;
use explicate_core::registry;
use explicate_scenario::model::Scenario;
use explicate_sim::bench::{CASES, Case, Cost};
use explicate_sim::error::RunError;
use explicate_sim::floor::{FLOORS, Floor};
use explicate_sim::measure::{flow_names, link_names, measure, warnings};
use explicate_sim::packet_log::{PacketLog, Selector};
use explicate_sim::pcap::write_pcapng;
use explicate_sim::simulation::{EngineKind, Options, run_all};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::wrap_pymodule;
use serde_json::{Value, json};

mod arrow;
mod authors;
mod memory;
mod texts;

use arrow::ArrowTable;

pyo3::create_exception!(explicate._native, ScenarioError, PyValueError, "A scenario that cannot be used.");

type Overrides = Vec<(String, String)>;

fn parse(text: &str, origin: &str, base: &str, overrides: &Overrides) -> PyResult<Scenario> {
    Scenario::parse(text, origin, Path::new(base), overrides).map_err(|e| ScenarioError::new_err(e.to_string()))
}

/// As [`parse`], for a fluid model: larger sizes are allowed, and settings that no model covers are rejected.
fn parse_fluid(text: &str, origin: &str, base: &str, overrides: &Overrides) -> PyResult<Scenario> {
    let bad = |e: explicate_scenario::problem::Problems| ScenarioError::new_err(e.to_string());
    let scenario = Scenario::parse_fluid(text, origin, Path::new(base), overrides).map_err(bad)?;
    explicate_fluid::check::check(&scenario, text, origin, overrides).map_err(bad)?;
    Ok(scenario)
}

/// Finds the flow given by `--trace`: `flow=3`, `flow=bulk.3` or `all`.
fn selector(scenario: &Scenario, text: &str, capture: bool) -> PyResult<Selector> {
    let wrong = || {
        let example = scenario.flows.first().map_or("bulk", |g| g.name.as_str());
        ScenarioError::new_err(format!("--trace {text}: no such flow; write flow=0, flow={example}.0 or all"))
    };
    if text == "all" {
        return Ok(Selector { flow: None, capture });
    }
    let name = text.strip_prefix("flow=").ok_or_else(wrong)?;
    let total: u32 = scenario.flows.iter().map(|g| g.count).sum();
    let mut first = 0;
    for group in &scenario.flows {
        let within = name.strip_prefix(group.name.as_str()).and_then(|rest| rest.strip_prefix('.'));
        if let Some(i) = within.and_then(|n| n.parse::<u32>().ok()).filter(|i| *i < group.count) {
            return Ok(Selector { flow: Some(first + i), capture });
        }
        first += group.count;
    }
    let number = name.parse::<u32>().ok().filter(|i| *i < total).ok_or_else(wrong)?;
    Ok(Selector { flow: Some(number), capture })
}

/// The engine of this name.
fn engine_of(name: &str) -> PyResult<EngineKind> {
    EngineKind::find(name).ok_or_else(|| {
        let known = EngineKind::ALL.map(EngineKind::name).join(" or ");
        PyValueError::new_err(format!("engine must be {known}, not {name:?}"))
    })
}

/// Writes `NAME.pcapng` into a folder, which is created if necessary; `-` replaces what Windows allows in no name.
fn write_capture(folder: &Path, name: &str, links: &[String], log: &mut PacketLog) -> PyResult<()> {
    let forbidden = |c: char| r#"<>:"/\|?*"#.contains(c) || c.is_control();
    let replaced = name.replace(forbidden, "-");
    let name = Some(replaced.trim_matches('-')).filter(|name| !name.is_empty()).unwrap_or("capture");
    let file = folder.join(format!("{name}.pcapng"));
    let failed = |e: &dyn std::fmt::Display| PyOSError::new_err(format!("{}: {e}", file.display()));
    std::fs::create_dir_all(folder).map_err(|e| failed(&e))?;
    let out = BufWriter::new(File::create(&file).map_err(|e| failed(&e))?);
    write_pcapng(out, links, log.captures()).map_err(|e| failed(&e))
}

fn cost_json(name: &str, cost: &Cost) -> Value {
    json!({
        "name": name,
        "hops": cost.hops,
        "events": cost.events,
        "cpu_seconds": cost.cpu_seconds,
        "hops_per_cpu_second": if cost.cpu_seconds > 0.0 { cost.hops as f64 / cost.cpu_seconds } else { 0.0 },
        "instructions_per_hop": Value::Null,
        "bytes_per_flow": cost.bytes_per_flow,
        "bytes_per_flow_after": cost.bytes_per_flow_after,
    })
}

/// Converts an error of a run into Python's.
fn failed(error: impl std::error::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// The difference between the runs of 2 T and T.
fn difference(case: &Case) -> Result<Cost, RunError> {
    let (once, twice) = (case.run(case.seconds)?, case.run(2.0 * case.seconds)?);
    Ok(Cost {
        hops: twice.hops - once.hops,
        events: twice.events - once.events,
        cpu_seconds: twice.cpu_seconds - once.cpu_seconds,
        bytes_per_flow: once.bytes_per_flow,
        bytes_per_flow_after: once.bytes_per_flow_after,
    })
}

/// Adds the engine's functions to a module of another crate, which has registered its own protocols
/// ([`explicate_core::registry::register`]). Python uses that module instead of its own if the environment variable
/// `EXPLICATE_ENGINE` names it.
pub fn add_engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let engine = wrap_pymodule!(_native)(module.py()).into_bound(module.py());
    for (name, value) in engine.cast::<PyModule>()?.dict() {
        let name: String = name.extract()?;
        if !name.starts_with("__") {
            module.add(name, value)?;
        }
    }
    Ok(())
}

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::ScenarioError;

    /// The tables and texts of one call of `run`.
    #[pyclass(frozen)]
    struct Output {
        tables: Tables,
        #[pyo3(get)]
        warnings: Vec<String>,
        /// Of the warnings those of settings that nothing uses, each with its setting.
        #[pyo3(get)]
        unused: Vec<(String, String)>,
        #[pyo3(get)]
        trace: String,
        #[pyo3(get)]
        timing: String,
    }

    #[pymethods]
    impl Output {
        #[getter]
        fn flows(&self) -> ArrowTable {
            ArrowTable::from(&self.tables.flows)
        }
        #[getter]
        fn links(&self) -> ArrowTable {
            ArrowTable::from(&self.tables.links)
        }
        #[getter]
        fn samples(&self) -> ArrowTable {
            ArrowTable::from(&self.tables.samples)
        }
        #[getter]
        fn run(&self) -> ArrowTable {
            ArrowTable::from(&self.tables.run)
        }
    }

    #[pymodule_export]
    use super::authors::{Header, PyAck, PyLoss, PyPacket, PyPortView, PySent, PyUndo};

    #[pyfunction]
    fn register(py: Python<'_>, protocol: authors::Description) -> PyResult<()> {
        authors::register(py, protocol)
    }

    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    #[pyfunction]
    fn registry() -> String {
        Value::Array(super::registry::entries().iter().map(texts::entry).collect()).to_string()
    }

    #[pyfunction]
    fn fluid_models() -> String {
        texts::fluid_models().to_string()
    }

    #[pyfunction]
    fn schema() -> String {
        explicate_scenario::schema::schema().to_string()
    }

    #[pyfunction]
    fn columns() -> String {
        texts::columns().to_string()
    }

    #[pyfunction]
    fn template(kind: &str) -> PyResult<String> {
        texts::template(kind).map_err(ScenarioError::new_err)
    }

    #[pyfunction]
    fn templates() -> String {
        texts::templates().to_string()
    }

    #[pyfunction]
    fn companions(kind: &str) -> String {
        texts::companions(kind).to_string()
    }

    #[pyfunction]
    #[pyo3(signature = (text, origin, base, overrides, fluid = false))]
    fn check(text: &str, origin: &str, base: &str, overrides: Overrides, fluid: bool) -> PyResult<String> {
        let parsed = if fluid { parse_fluid } else { parse };
        Ok(texts::checked(&parsed(text, origin, base, &overrides)?).to_string())
    }

    #[pyfunction(name = "link_names")]
    fn names_of_links(
        text: &str,
        origin: &str,
        base: &str,
        overrides: Overrides,
        fluid: bool,
    ) -> PyResult<Vec<String>> {
        let parsed = if fluid { parse_fluid } else { parse };
        Ok(parsed(text, origin, base, &overrides)?.links.into_iter().map(|link| link.name).collect())
    }

    #[pyfunction]
    fn stacks(text: &str, origin: &str, base: &str, overrides: Overrides) -> PyResult<String> {
        let scenario = parse(text, origin, base, &overrides)?;
        Ok(explicate_scenario::explain::stacks(&scenario, text, origin, &overrides).to_string())
    }

    #[pyfunction]
    fn links(text: &str, origin: &str, base: &str, overrides: Overrides) -> PyResult<String> {
        Ok(explicate_scenario::settings::links(&parse(text, origin, base, &overrides)?).to_string())
    }

    #[pyfunction]
    #[pyo3(signature = (text, origin, base, overrides, seed, runs, jobs, trace, pcap, progress, engine = "fast"))]
    #[expect(clippy::too_many_arguments, reason = "the border passes by position")]
    fn run(
        py: Python<'_>,
        text: &str,
        origin: &str,
        base: &str,
        mut overrides: Overrides,
        seed: Option<u64>,
        runs: Option<u32>,
        jobs: usize,
        trace: Option<&str>,
        pcap: Option<&str>,
        progress: Option<Py<PyAny>>,
        engine: &str,
    ) -> PyResult<Output> {
        let engine = engine_of(engine)?;
        overrides.extend(seed.map(|s| ("seed".to_string(), s.to_string())));
        overrides.extend(runs.map(|r| ("runs".to_string(), r.to_string())));
        let scenario = parse(text, origin, base, &overrides)?;
        let flows = scenario.flows.iter().map(|g| g.count as u64).sum();
        memory::check(origin, &scenario, flows).map_err(ScenarioError::new_err)?;
        let follow = match (trace, pcap) {
            (Some(which), _) => Some(selector(&scenario, which, pcap.is_some())?),
            (None, Some(_)) => Some(selector(&scenario, "all", true)?),
            (None, None) => None,
        };
        let options = Options { follow, jobs, engine, ..Options::default() };
        let interrupted: Mutex<Option<PyErr>> = Mutex::new(None);
        let stop = AtomicBool::new(false);
        let shares = Mutex::new(vec![0.0; scenario.runs as usize]);
        let report = |index: usize, share: f64| {
            let done = {
                let mut shares = shares.lock().unwrap_or_else(PoisonError::into_inner);
                shares[index] = share;
                shares.iter().sum::<f64>() / shares.len() as f64
            };
            let told = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |p| p.call1(py, (done,)).map(|_| ()))
            });
            if let Err(error) = told {
                *interrupted.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                stop.store(true, Ordering::Relaxed);
            }
            !stop.load(Ordering::Relaxed)
        };
        let finished = py.detach(|| {
            authors::catching(|| {
                run_all(&scenario, &options, &report, |index, mut run| {
                    let tables = measure(&scenario, index, &mut run, version());
                    let odd = if index == 0 { warnings(&scenario, &run) } else { Vec::new() };
                    let names = flow_names(&scenario, &run);
                    (tables, odd, run.log.take(), names, texts::timing(&run))
                })
            })
        });
        if let Some(error) = interrupted.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let finished = finished?.map_err(failed)?;
        let links = link_names(&scenario);
        let (mut tables, mut followed, mut timing) = (Tables::default(), String::new(), Vec::new());
        let unused = texts::unused(&scenario);
        let mut warnings = scenario.warnings;
        for (more, odd, log, names, time) in finished {
            tables.append(more);
            warnings.extend(odd.into_iter().map(|odd| odd.located(text, origin, &overrides)));
            timing.push(time);
            let Some(mut log) = log else { continue };
            if trace.is_some() {
                followed = log.text(&links, &names);
            }
            if let Some(folder) = pcap {
                write_capture(Path::new(folder), &scenario.name, &links, &mut log)?;
            }
        }
        let timing = json!({ "runs": timing }).to_string();
        Ok(Output { tables, warnings, unused, trace: followed, timing })
    }

    #[pyfunction]
    #[pyo3(signature = (text, origin, base, overrides, seed, runs, progress))]
    #[expect(clippy::too_many_arguments, reason = "the border passes by position")]
    fn fluid(
        py: Python<'_>,
        text: &str,
        origin: &str,
        base: &str,
        mut overrides: Overrides,
        seed: Option<u64>,
        runs: Option<u32>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Output> {
        overrides.extend(seed.map(|s| ("seed".to_string(), s.to_string())));
        overrides.extend(runs.map(|r| ("runs".to_string(), r.to_string())));
        let scenario = parse_fluid(text, origin, base, &overrides)?;
        let classes = scenario.flows.iter().map(|g| (g.count as u64).min(g.ends.len() as u64)).sum();
        memory::check(origin, &scenario, classes).map_err(ScenarioError::new_err)?;
        let (mut tables, mut timing) = (Tables::of_classes(), Vec::new());
        let mut warnings = scenario.warnings.clone();
        for index in 0..scenario.runs as usize {
            let interrupted: Mutex<Option<PyErr>> = Mutex::new(None);
            let report = |share: f64| {
                let done = (index as f64 + share) / scenario.runs as f64;
                let told = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |p| p.call1(py, (done,)).map(|_| ()))
                });
                let goes_on = told.is_ok();
                *interrupted.lock().unwrap_or_else(PoisonError::into_inner) = told.err();
                goes_on
            };
            let done = py.detach(|| explicate_fluid::run::run(&scenario, index, version(), &report));
            if let Some(error) = interrupted.into_inner().unwrap_or_else(PoisonError::into_inner) {
                return Err(error);
            }
            let done = done.map_err(failed)?;
            timing.push(texts::fluid_timing(&done));
            tables.append(done.tables);
            let odd = done.warnings.into_iter().filter(|_| index == 0);
            warnings.extend(odd.map(|odd| odd.located(text, origin, &overrides)));
        }
        let timing = json!({ "runs": timing }).to_string();
        Ok(Output { tables, warnings, unused: texts::unused(&scenario), trace: String::new(), timing })
    }

    #[pyfunction]
    #[pyo3(signature = (text, origin, base, overrides, link, lengths, acks, trials, seed))]
    #[expect(clippy::too_many_arguments, reason = "the border passes by position")]
    fn curves(
        py: Python<'_>,
        text: &str,
        origin: &str,
        base: &str,
        overrides: Overrides,
        link: &str,
        lengths: Vec<u16>,
        acks: bool,
        trials: u64,
        seed: u64,
    ) -> PyResult<String> {
        let scenario = parse(text, origin, base, &overrides)?;
        let rows = py.detach(|| texts::curves(&scenario, link, &lengths, acks, trials, seed));
        rows.map(|rows| rows.to_string()).map_err(PyValueError::new_err)
    }

    #[pyfunction]
    fn bench_cases() -> Vec<&'static str> {
        CASES.iter().map(|c| c.name).collect()
    }

    #[pyfunction]
    #[pyo3(signature = (case, duration))]
    fn bench(py: Python<'_>, case: Option<&str>, duration: Option<f64>) -> PyResult<String> {
        let known = || CASES.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
        let chosen: Vec<&Case> = match case {
            None => CASES.iter().collect(),
            Some(name) => {
                let unknown = || PyValueError::new_err(format!("no case is called `{name}`; there are {}", known()));
                vec![Case::find(name).ok_or_else(unknown)?]
            }
        };
        if duration.is_some_and(|d| !(d > 0.0 && d <= 1e6)) {
            return Err(PyValueError::new_err("the duration must be positive and at most 1e6 seconds"));
        }
        let mut rows = Vec::new();
        for case in chosen {
            py.check_signals()?;
            let cost = py.detach(|| duration.map_or_else(|| difference(case), |d| case.run(d)));
            rows.push(cost_json(case.name, &cost.map_err(failed)?));
        }
        Ok(json!({ "cases": rows }).to_string())
    }

    #[pyfunction]
    fn floor_cases() -> Vec<&'static str> {
        FLOORS.iter().map(|f| f.name).collect()
    }

    #[pyfunction]
    #[pyo3(signature = (case, duration))]
    fn floor(py: Python<'_>, case: &str, duration: Option<f64>) -> PyResult<String> {
        let floor = Floor::find(case).ok_or_else(|| PyValueError::new_err(format!("no floor is called `{case}`")))?;
        let cost = py.detach(|| floor.run(duration.unwrap_or(floor.seconds)));
        Ok(json!({ "cases": [cost_json(floor.name, &cost)] }).to_string())
    }
}
