//! The lab: a scenario on real sockets, queues and clocks, in network namespaces of one machine.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use explicate_build::paths::{crossing, flow_paths};
use explicate_build::rows::{FlowRow, LinkRow};
use explicate_build::tables::Tables;
use explicate_core::units::Time;
use explicate_scenario::model::Scenario;

use crate::awake::Awake;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::forward::Counters;
use crate::histogram::Histogram;
use crate::sys;

mod addresses;
mod host;
mod kernel;
mod middle;
pub mod netns;
mod plan;
pub mod results;
mod routes;
mod schedule;
pub mod stall_monitor;
mod start;
mod sysctls;

use host::{Host, HostReport, Sample};
use middle::{Middle, Report};
use netns::Namespaces;
use plan::{Plan, Role};
use start::Start;

/// Load of a forwarder.
pub struct Work {
    /// Its name.
    pub name: String,
    /// Its counters.
    pub counters: Counters,
    /// Lateness of packets.
    pub late: Histogram,
    /// CPU time, nanoseconds.
    pub cpu: u64,
}

/// Results of a lab run.
#[derive(Default)]
pub struct Outcome {
    /// Tables in the simulator's columns.
    pub tables: Tables,
    /// Load of its routers and links, in order of runs.
    pub work: Vec<Work>,
    /// Failures of flows.
    pub failures: Vec<String>,
    /// Number of stalls of the machine, and the longest, ms; `None` without stalls.
    pub stood_still: Option<(usize, f64)>,
    /// A thread could not be scheduled in real time.
    pub is_not_real_time: bool,
    /// Flows of the kernel in order of runs: the time in which the receiver's window, and the send buffer, limited each.
    pub limited: Vec<(u64, String, [Time; 2])>,
    /// Settings of TCP in the namespaces of hosts.
    pub settings: BTreeMap<String, String>,
}

/// The commands that build a scenario's topology.
pub fn dry_run(scenario: &Scenario) -> Result<String> {
    let plan = Plan::new(scenario, &netns::prefix())?;
    Ok(netns::script(&plan.namespaces(), &plan.steps()))
}

/// Runs a scenario.
///
/// `kernel` names groups of flows that the kernel's TCP carries, each with its congestion control.
pub fn run(scenario: &Scenario, kernel: &[(String, String)]) -> Result<Outcome> {
    kernel::check(scenario, kernel)?;
    let plan = Plan::new(scenario, &netns::prefix())?;
    let mut outcome = Outcome::default();
    for index in 0..scenario.runs {
        let _namespaces = Namespaces::make(&plan.namespaces(), &plan.steps())?;
        if let Some(host) = plan.roles.iter().position(|role| *role == Role::Host) {
            outcome.settings = sysctls::read_back(&plan.namespace(host))?;
        }
        run_once(scenario, &plan, index, kernel, &mut outcome)?;
        if sys::stopped() {
            return Err(Error::Failed("interrupted".to_string()));
        }
    }
    Ok(outcome)
}

fn run_once(
    scenario: &Scenario,
    plan: &Plan,
    index: u32,
    kernel: &[(String, String)],
    outcome: &mut Outcome,
) -> Result<()> {
    let seed = scenario.seed.wrapping_add(index as u64);
    let mut flows = host::flows(scenario, seed);
    for flow in &mut flows {
        let group = &scenario.flows[flow.group.0].name;
        flow.kernel =
            kernel.iter().find(|(name, _)| name == group).map(|(_, kernel_controller)| kernel_controller.clone());
    }
    let of_phase = |routes| flow_paths(scenario, routes).map_err(|error| Error::Failed(error.to_string()));
    let crossing = crossing(scenario, &scenario.routes().map(of_phase).collect::<Result<Vec<_>>>()?);
    let _awake = Awake::keep();
    let halt = AtomicBool::new(false);
    let stop = || sys::stopped() || halt.load(Ordering::Relaxed);
    let hosts: Mutex<Vec<HostReport>> = Mutex::default();
    let forwarders: Mutex<Vec<Report<'_>>> = Mutex::default();
    let used = |node: usize| flows.iter().any(|f| f.kernel.is_none() && (f.ends.0 == node || f.ends.1 == node));
    let is_not_real_time = AtomicBool::new(false);
    let roles = plan.roles.iter().enumerate().filter_map(|(node, role)| match role {
        Role::Router | Role::Bridge => Some(Job::Router(node)),
        Role::Host => used(node).then_some(Job::Host(node)),
    });
    let carried = flows.iter().enumerate().filter(|(_, f)| f.kernel.is_some()).map(|(id, _)| id);
    let carried = carried.flat_map(|id| [Job::TcpReceive(id), Job::TcpSend(id)]);
    let links = plan.namespaces().contains(&plan.links()).then_some(Job::Links);
    let monitors = sys::processors().into_iter().map(Job::StallMonitor);
    let jobs: Vec<Job> = links.into_iter().chain(roles).chain(carried).chain(monitors).collect();
    let parts = Start::of(jobs.len());
    let start: &(dyn Fn() -> Clock + Sync) = &|| parts.wait(&stop);
    // The job of each thread, in the namespace that it enters first.
    let work = |job: Job| -> Result<()> {
        let namespace = job.namespace(plan, &flows);
        netns::enter(&namespace)?;
        let interfaces = job.interfaces(plan, &flows);
        netns::come_up(&namespace, &interfaces, &stop)?;
        // What a host does must not delay the emulated links.
        let forwards = matches!(job, Job::Links | Job::Router(_));
        if let Err(error) = if forwards { sys::go_before_the_first() } else { sys::go_first() } {
            is_not_real_time.store(true, Ordering::Relaxed);
            tracing::warn!(%error, "cannot use real-time scheduling: results are less precise");
        }
        match job {
            Job::Links => keep(&forwarders, Middle::links(scenario, plan, seed, &crossing, start)?.run(&stop)?),
            Job::Router(node) => {
                keep(&forwarders, Middle::router(scenario, plan, node, seed, &crossing, start)?.run(&stop)?);
            }
            Job::TcpSend(id) | Job::TcpReceive(id) => {
                let flow = &flows[id];
                let kernel_controller = flow.kernel.as_deref().unwrap_or_default();
                let listener = matches!(job, Job::TcpReceive(_)).then(|| kernel::listen(id)).transpose()?;
                let carried = kernel::Carried { scenario, flow, id, kernel_controller, seed, clock: start() };
                keep(&hosts, listener.map_or_else(|| carried.send(&stop), |l| carried.receive(&l, &stop))?);
            }
            Job::StallMonitor(processor) => {
                let samples = stall_monitor::watch(processor, start, scenario.duration, &stop)?;
                keep(&hosts, HostReport { samples, ..HostReport::default() });
            }
            Job::Host(node) => keep(&hosts, Host::open(scenario, &flows, node, seed, start)?.run(&stop)?),
        }
        if stop() { Ok(()) } else { netns::are_up(&namespace, &interfaces) }
    };
    // If one thread ends early, all end.
    let guarded = |job: Job| {
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(job)))
            .unwrap_or_else(|_| Err(Error::Failed(format!("{} panicked", job.namespace(plan, &flows)))));
        halt.fetch_or(result.is_err(), Ordering::Relaxed);
        result
    };
    thread::scope(|scope| {
        let guarded = &guarded;
        let threads: Vec<_> = jobs.into_iter().map(|job| scope.spawn(move || guarded(job))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Result<()>>| {
            thread.join().unwrap_or_else(|_| Err(Error::Failed("a part of the lab panicked".to_string())))
        };
        let results: Vec<Result<()>> = threads.into_iter().map(join).collect();
        results.into_iter().collect::<Result<()>>()
    })?;
    let hosts = hosts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let forwarders = forwarders.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.is_not_real_time |= is_not_real_time.into_inner();
    collect(scenario, index, &flows, hosts, forwarders, outcome);
    Ok(())
}

/// The job of a thread of the lab.
#[derive(Clone, Copy)]
enum Job {
    Links,
    Router(usize),
    Host(usize),
    /// Monitors a processor for stalls.
    StallMonitor(usize),
    TcpSend(usize),
    TcpReceive(usize),
}

impl Job {
    fn namespace(self, plan: &Plan, flows: &[host::LabFlow]) -> String {
        match self {
            Job::Links => plan.links(),
            // The namespace does not matter.
            Job::StallMonitor(_) => plan.namespace(0),
            Job::Router(node) | Job::Host(node) => plan.namespace(node),
            Job::TcpSend(id) => plan.namespace(flows[id].ends.0),
            Job::TcpReceive(id) => plan.namespace(flows[id].ends.1),
        }
    }

    /// The interfaces of its namespace by which it sends and receives.
    fn interfaces(self, plan: &Plan, flows: &[host::LabFlow]) -> Vec<String> {
        let of_node = |node| plan.cables_of(node).map(Plan::interface).collect();
        match self {
            Job::StallMonitor(_) => Vec::new(),
            Job::Links => plan.middles(),
            Job::Router(node) | Job::Host(node) => of_node(node),
            Job::TcpSend(id) => of_node(flows[id].ends.0),
            Job::TcpReceive(id) => of_node(flows[id].ends.1),
        }
    }
}

fn keep<T>(list: &Mutex<Vec<T>>, item: T) {
    list.lock().unwrap_or_else(PoisonError::into_inner).push(item);
}

/// Combines all measurements.
fn collect(
    scenario: &Scenario,
    index: u32,
    flows: &[host::LabFlow],
    hosts: Vec<HostReport>,
    forwarders: Vec<Report<'_>>,
    outcome: &mut Outcome,
) {
    let run = index as u64;
    let span = scenario.duration.since(scenario.warmup);
    let (mut sent, mut received, mut samples) = (BTreeMap::new(), BTreeMap::new(), Vec::<Sample>::new());
    for host in hosts {
        sent.extend(host.sent);
        received.extend(host.received);
        samples.extend(host.samples);
        outcome.limited.extend(host.limited.into_iter().map(|(id, by)| (run, flows[id].name.clone(), by)));
        outcome.failures.extend(host.failures);
    }
    for (id, flow) in flows.iter().enumerate() {
        let Some(end) = sent.remove(&id) else { continue };
        let (sink_before, sink_after) = received.remove(&id).unwrap_or_default();
        let row = FlowRow {
            run,
            name: &flow.name,
            group: &scenario.flows[flow.group.0],
            start: flow.start,
            size: end.size,
            completed: end.completed,
            before: (end.stats.0, sink_before),
            after: (end.stats.1, sink_after),
            sessions: end.sessions,
            span,
        };
        row.push(&mut outcome.tables.flows);
        if let Some(kernel_controller) = &flow.kernel {
            outcome.tables.flows.rename_last("protocol", format!("kernel/{kernel_controller}"));
        }
    }
    let mut rows: BTreeMap<usize, LinkRow<'_>> = BTreeMap::new();
    for report in forwarders {
        outcome.work.push(report.work);
        samples.extend(report.samples);
        rows.extend(report.links);
    }
    for row in rows.values_mut() {
        row.run = run;
        row.push(&mut outcome.tables.links);
    }
    for late in samples.iter().filter(|s| s.object == stall_monitor::MACHINE) {
        let (times, longest) = outcome.stood_still.unwrap_or_default();
        outcome.stood_still = Some((times + 1, late.value.max(longest)));
    }
    samples.sort_by_key(|s| s.at);
    for s in samples {
        let row = [run.into(), s.at.to_seconds().into(), s.object.into(), s.variable.into(), s.value.into()];
        outcome.tables.samples.push(row);
    }
    let seed = scenario.seed.wrapping_add(run);
    let version = env!("CARGO_PKG_VERSION");
    let row =
        [run.into(), scenario.name.as_str().into(), seed.into(), version.into(), scenario.resolved.as_str().into()];
    outcome.tables.run.push(row);
}
