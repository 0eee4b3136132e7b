//! The routers and emulated links of the lab: forwarders with the scenario's ports.

use std::collections::{BTreeMap, VecDeque};

use explicate_build::ports::port;
use explicate_build::rows::LinkRow;
use explicate_core::port::{Port, PortInit, SharedLine};
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time, per_second};
use explicate_scenario::model::{RouterSpec, Scenario};

use super::Work;
use super::addresses::address;
use super::host::Sample;
use super::plan::{Cable, LINKS, Plan, Role, controller_with_agent};
use super::routes::{self, Table};
use super::schedule::{Action, Schedule};
use super::stall_monitor;
use crate::agent::{self, AgentHost};
use crate::clock::{Clock, Stalls};
use crate::error::{Error, Result};
use crate::forward::output::Output;
use crate::forward::{Forwarder, Interface, Mode};
use crate::histogram::Histogram;

/// Measurements of a forwarder.
pub(super) struct Report<'a> {
    /// Statistics of its ports, by number of the link.
    pub(super) links: Vec<(usize, LinkRow<'a>)>,
    /// Samples.
    pub(super) samples: Vec<Sample>,
    /// Its load.
    pub(super) work: Work,
}

/// A running forwarder.
pub(super) struct Middle<'a> {
    scenario: &'a Scenario,
    node: Option<usize>,
    forwarder: Forwarder,
    /// For each interface the link that leaves through it, and the one that ends there if it is emulated there.
    links: Vec<(Option<usize>, Option<usize>)>,
    /// The interfaces for each address, and the start time of each table.
    tables: VecDeque<(Time, Table)>,
    measured_from: Time,
    /// By link, bytes at the last sample.
    sampled: BTreeMap<usize, u64>,
    samples: Vec<Sample>,
}

impl<'a> Middle<'a> {
    /// The router of a node, in this thread's namespace. Its interfaces are open, and its tables made, when it calls `start`.
    pub(super) fn router(
        scenario: &'a Scenario,
        plan: &Plan,
        node: usize,
        seed: u64,
        crossing: &[u64],
        start: &dyn Fn() -> Clock,
    ) -> Result<Middle<'a>> {
        let (mut interfaces, mut links) = (Vec::new(), Vec::new());
        let cables: Vec<usize> = plan.cables_of(node).collect();
        for &cable in &cables {
            let Cable { ends, links: both, .. } = &plan.cables[cable];
            // A link that is emulated elsewhere is a plain wire here.
            let both = if plan.has_middle(&plan.cables[cable]) { &[None; 2] } else { both };
            let own = ends.iter().position(|n| *n == node).unwrap_or(0);
            let mut interface =
                Interface::open(&Plan::interface(cable), output(scenario, both[own], seed, crossing, None))?;
            // The link of a host is emulated by the router at its other end.
            let input = both[1 - own].filter(|_| plan.roles[ends[1 - own]] == Role::Host);
            interface.input = input.map(|link| output(scenario, Some(link), seed, crossing, None));
            interfaces.push(interface);
            links.push((both[own], input));
        }
        let mode = if plan.roles[node] == Role::Bridge { Mode::Bridge } else { Mode::Router };
        let (specs, watched) = agent_controller(scenario, &links);
        let agent = specs.and_then(|spec| {
            let rng = Rng::stream(seed, &format!("{}/agent", scenario.nodes[node]));
            AgentHost::new(spec.protocol, &spec.values, address(node), rng)
        });
        let mut tables: VecDeque<(Time, Table)> = routes::tables(scenario, plan, node).into();
        for cable in tables.iter_mut().flat_map(|(_, table)| table.values_mut()) {
            *cable = cables.iter().position(|own| own == cable).unwrap_or(0);
        }
        let mut forwarder = Forwarder::new(interfaces, mode, start())?;
        if let Some(agent) = agent {
            forwarder.set_agent(agent, Plan::station(node, cables[0]), watched);
        }
        let mut middle = Middle::new(scenario, Some(node), forwarder, links);
        middle.tables = tables;
        Ok(middle)
    }

    /// The links between hosts, and those that share a line, in this thread's namespace. Their interfaces are open
    /// when they call `start`.
    pub(super) fn links(
        scenario: &'a Scenario,
        plan: &Plan,
        seed: u64,
        crossing: &[u64],
        start: &dyn Fn() -> Clock,
    ) -> Result<Middle<'a>> {
        let (mut interfaces, mut links) = (Vec::new(), Vec::new());
        for (i, cable) in plan.cables.iter().enumerate().filter(|(_, c)| plan.has_middle(c)) {
            let lines = if cable.half_duplex { SharedLine::pair().map(Some) } else { [None, None] };
            // Frames that leave through one end entered through the other.
            for (end, line) in lines.into_iter().enumerate() {
                let link = cable.links[1 - end];
                let output = output(scenario, link, seed, crossing, line);
                interfaces.push(Interface::open(&Plan::middle(i, end), output)?);
                links.push((link, None));
            }
        }
        let mut forwarder = Forwarder::new(interfaces, Mode::Link, start())?;
        if plan.cables.iter().any(|cable| cable.half_duplex) {
            forwarder.keep_in_step();
        }
        Ok(Middle::new(scenario, None, forwarder, links))
    }

    fn new(
        scenario: &'a Scenario,
        node: Option<usize>,
        forwarder: Forwarder,
        links: Vec<(Option<usize>, Option<usize>)>,
    ) -> Middle<'a> {
        let (tables, sampled, samples) = Default::default();
        Middle { scenario, node, forwarder, links, tables, measured_from: Time::ZERO, sampled, samples }
    }

    /// The links that it emulates, by their numbers.
    fn ports(&mut self) -> impl Iterator<Item = (usize, &mut Output)> {
        let ends = self.forwarder.interfaces.iter_mut().zip(&self.links);
        ends.flat_map(|(interface, (leaves, ends))| {
            let output = leaves.map(|link| (link, &mut interface.output));
            output.into_iter().chain(ends.and_then(|link| Some((link, interface.input.as_mut()?))))
        })
    }

    fn name(&self) -> &'a str {
        self.node.map_or(LINKS, |node| &self.scenario.nodes[node])
    }

    /// Forwards until `until`, with the routes of each time.
    fn forward(&mut self, until: Time, stop: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        while let Some((at, table)) = self.tables.pop_front_if(|(at, _)| *at < until) {
            self.forwarder.run(at, stop)?;
            self.forwarder.place(table);
        }
        self.forwarder.run(until, stop)
    }

    /// Forwards to the end of the scenario.
    pub(super) fn run(mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<Report<'a>> {
        self.forwarder.stalls = Stalls::within(self.scenario.warmup, self.scenario.duration);
        let mut schedule = Schedule::new(self.scenario);
        while let Some((until, action)) = schedule.next() {
            self.forward(until, stop)?;
            let now = self.forwarder.catch_up();
            match action {
                Action::Measure => {
                    self.measured_from = now;
                    self.ports().for_each(|(_, output)| output.port.start_measuring(now));
                }
                Action::Sample => self.sample(now, schedule.period()),
            }
        }
        self.forward(schedule.end(), stop)?;
        stall_monitor::check(self.name(), &self.forwarder.stalls)?;
        let end = self.forwarder.catch_up();
        self.finish(end)
    }

    fn sample(&mut self, at: Time, period: Time) {
        let of = |name: &str| self.scenario.sampling.of.iter().any(|n| n == name);
        let (queue, router, throughput) = (of("queue"), of("router"), of("throughput"));
        let (scenario, mut sampled) = (self.scenario, std::mem::take(&mut self.sampled));
        let mut samples = Vec::new();
        for (link, output) in self.ports().filter(|(_, output)| output.port.has_qdisc()) {
            let port = &output.port;
            let object = &scenario.links[link].name;
            let mut put = |variable, value| samples.push(Sample { at, object: object.clone(), variable, value });
            port.probe(&mut |variable, value| {
                if if variable.starts_with("queue_") { queue } else { router } {
                    put(variable, value);
                }
            });
            let before = sampled.insert(link, port.stats.bytes).unwrap_or(0);
            if throughput {
                let (bytes, offered) = (port.stats.bytes - before, port.offered(at - period, at));
                put("throughput_bps", 8.0 * per_second(bytes, period));
                put("utilisation", if offered > 0.0 { bytes as f64 / offered } else { f64::NAN });
            }
        }
        self.sampled = sampled;
        self.samples.extend(samples);
    }

    fn finish(mut self, end: Time) -> Result<Report<'a>> {
        let (held, accounted) = self.forwarder.audit();
        if held != accounted {
            return Err(Error::Failed(format!(
                "{held} packets are held but {accounted} accounted for, which is a defect"
            )));
        }
        self.forwarder.count_missed();
        let (from, span) = (self.measured_from, end.since(self.measured_from).as_secs_f64());
        let scenario = self.scenario;
        let mut late = Histogram::default();
        self.forwarder.interfaces.iter().for_each(|i| late.merge(&i.output.late));
        let row = |(link, output): (usize, &mut Output)| {
            let (name, port) = (&scenario.links[link].name, &mut output.port);
            let (queue, offered) = (port.queue(from, end), port.offered(from, end));
            (link, LinkRow::of_port(0, name, &port.stats, queue, offered, span))
        };
        let links = self.ports().map(row).collect();
        let name = self.name().to_string();
        let work = Work { name, counters: self.forwarder.counters, late, cpu: self.forwarder.cpu() };
        Ok(Report { links, samples: self.samples, work })
    }
}

/// Such a controller of a router, and for each output whether it has one.
fn agent_controller<'a>(
    scenario: &'a Scenario,
    links: &[(Option<usize>, Option<usize>)],
) -> (Option<&'a RouterSpec>, Vec<bool>) {
    let of =
        |(leaves, _): &(Option<usize>, Option<usize>)| controller_with_agent(scenario, &scenario.links[(*leaves)?]);
    // A controller with a measuring estimator is preferred to those with the oracle.
    let chosen = links.iter().filter_map(of).min_by_key(|spec| agent::wants_oracle(spec.protocol, &spec.values));
    (chosen, links.iter().map(|l| of(l).is_some()).collect())
}

/// The port of a link, followed by its delay, and its end of a shared `line`. Without a link, a wire.
fn output(scenario: &Scenario, link: Option<usize>, seed: u64, crossing: &[u64], line: Option<SharedLine>) -> Output {
    let Some(index) = link else { return wire() };
    let model = &scenario.links[index];
    Output::new(port(model, index as u32, seed, crossing[index], line), model.delay)
}

/// A port without limits.
fn wire() -> Output {
    let (service, class, before, on_air) = Default::default();
    let capacity = WIRE.bytes_per_sec();
    Output::new(Port::new(PortInit { number: 0, rate: WIRE, service, capacity, class, before, on_air }), Time::ZERO)
}

/// Faster than the lab.
const WIRE: Rate = Rate(1_000_000_000_000);
