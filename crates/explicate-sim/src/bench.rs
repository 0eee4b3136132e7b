//! Benchmarks of the engine: fixed dumbbells without samples, with the default processing time of hosts. A figure is
//! the difference between runs of 2 T and T, so that set-up and start-up cancel.

use std::path::Path;

use cpu_time::ThreadTime;
use explicate_core::units::Time;
use explicate_scenario::model::Scenario;

use crate::build::build;
use crate::engine::Engine;
use crate::error::RunError;

/// A fixed dumbbell: at least ten flows, 80 ms, 1000-byte packets, access links four times the bottleneck, a buffer
/// of one BDP.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    protocol: &'static str,
    mbps: u64,
    flows: u32,
    /// T, seconds of simulated time.
    pub seconds: f64,
    /// Also measured for memory.
    pub memory: bool,
}

impl Case {
    const fn with_memory(mut self) -> Case {
        self.memory = true;
        self
    }
}

const fn case(name: &'static str, protocol: &'static str, mbps: u64, flows: u32, seconds: f64) -> Case {
    Case { name, protocol, mbps, flows, seconds, memory: false }
}

/// All cases. Memory is valid only in a process that has not freed anything yet: run such a case alone.
pub const CASES: &[Case] = &[
    case("sack-1G-10000", "sack", 1000, 10_000, 2.0).with_memory(),
    case("xcp-1G-10000", "xcp", 1000, 10_000, 2.0).with_memory(),
    case("xcp-100M-10", "xcp", 100, 10, 20.0),
    case("xcp-1G-10", "xcp", 1000, 10, 4.0),
    case("xcp-1G-1000", "xcp", 1000, 1000, 4.0),
    case("sack-100M-10", "sack", 100, 10, 20.0),
    case("sack-1G-10", "sack", 1000, 10, 8.0),
    case("sack-1G-1000", "sack", 1000, 1000, 4.0),
];

/// Cost of one run.
pub struct Cost {
    /// Packets carried over one link, data and acknowledgements, fused links included.
    pub hops: u64,
    /// Events handled.
    pub events: u64,
    /// CPU time of the run without set-up, seconds.
    pub cpu_seconds: f64,
    /// Memory of the network and its flows before they start (ends, four access links, routes), bytes a flow; only for
    /// cases with `memory`.
    pub bytes_per_flow: Option<f64>,
    /// The same at the end: queues, packets in flight and statistics included.
    pub bytes_per_flow_after: Option<f64>,
}

impl Case {
    /// The case of this name.
    pub fn find(name: &str) -> Option<&'static Case> {
        CASES.iter().find(|c| c.name == name)
    }

    /// Runs it for `seconds` of simulated time.
    ///
    /// # Errors
    /// The scenario does not parse, which is a defect.
    pub fn run(&self, seconds: f64) -> Result<Cost, RunError> {
        let text = format!(
            r#"
            name = "{}"
            stack = "ns2"
            duration = "{seconds}s"
            [topology]
            kind = "dumbbell"
            pairs = {}
            access = {{ rate = "{}Mbit/s", delay = "5ms", queue = "unlimited" }}
            bottleneck = {{ rate = "{}Mbit/s", delay = "30ms", queue = {{ kind = "droptail", limit = "1.0bdp" }} }}
            [[flows]]
            name = "bulk"
            count = {}
            protocol = "{}"
            packet = "1000B"
            start = {{ spread = "1s" }}
            "#,
            self.name,
            self.flows,
            4 * self.mbps,
            self.mbps,
            self.flows,
            self.protocol,
        );
        let scenario = Scenario::parse(&text, self.name, Path::new("."), &[])?;
        let resident = resident_bytes();
        let mut engine: Engine = build(&scenario, 1, true)?;
        let built = resident_bytes().saturating_sub(resident);
        let started = ThreadTime::now();
        engine.run_until(Time::from_secs_f64(seconds));
        let cpu_seconds = started.elapsed().as_secs_f64();
        engine.catch_up_all();
        let grown = resident_bytes().saturating_sub(resident);
        engine.audit()?;
        Ok(Cost {
            hops: engine.hops(),
            events: engine.events(),
            cpu_seconds,
            bytes_per_flow: self.memory.then(|| built as f64 / self.flows as f64),
            bytes_per_flow_after: self.memory.then(|| grown as f64 / self.flows as f64),
        })
    }
}

/// Resident memory of this process; 0 if the system does not report it.
pub fn resident_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").ok();
    told.and_then(|t| t.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok())).unwrap_or(0) * 4096
}
