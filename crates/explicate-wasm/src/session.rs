//! A run that a page shows while it is computed.

use std::collections::BTreeMap;

use explicate_core::units::Time;
use explicate_scenario::model::{Scenario, Start};
use explicate_sim::measure::{Tables, link_names, measure};
use explicate_sim::sample::Object;
use explicate_sim::simulation::{Options, Stepper, run_once};
use serde_json::json;

use crate::changes;

/// Files that a scenario names, by name and contents.
pub type Files = BTreeMap<String, String>;

/// Arguments of a run.
pub struct Recipe {
    scenario: Scenario,
}

impl Recipe {
    /// Reads a scenario, with overrides as `--set` takes them and [`changes`] as JSON.
    ///
    /// # Errors
    /// The problems of the scenario, line by line, or of a change.
    pub fn new(
        text: &str,
        origin: &str,
        files: &Files,
        overrides: &[(String, String)],
        changes: &str,
    ) -> Result<Recipe, String> {
        let mut scenario = Scenario::parse_among(text, origin, files, overrides).map_err(|e| e.to_string())?;
        changes::apply(&mut scenario, &changes::read(changes)?)?;
        Ok(Recipe { scenario })
    }
    /// The tables of all runs.
    ///
    /// # Errors
    /// A defect of the simulator.
    pub fn tables(&self) -> Result<Tables, String> {
        let mut all = Tables::default();
        for index in 0..self.scenario.runs as usize {
            let mut run =
                run_once(&self.scenario, index, &Options::default(), &|_, _| true).map_err(|e| e.to_string())?;
            all.append(measure(&self.scenario, index, &mut run, env!("CARGO_PKG_VERSION")));
        }
        Ok(all)
    }
    /// Packets carried over one link in the first run: for measuring speed.
    ///
    /// # Errors
    /// A defect of the simulator.
    pub fn hops(&self) -> Result<u64, String> {
        let run = run_once(&self.scenario, 0, &Options::default(), &|_, _| true).map_err(|e| e.to_string())?;
        Ok(run.engine.hops())
    }
}

/// The first run of a scenario, step by step.
pub struct Session {
    scenario: Scenario,
    run: Stepper,
    /// Number of samples returned so far.
    handed: usize,
    /// Variables by their numbers in samples.
    variables: Vec<&'static str>,
}

/// Numbers of a packet in [`Session::packets`].
pub const PACKET_NUMBERS: usize = 4;
/// Numbers of a link in [`Session::links`].
pub const LINK_NUMBERS: usize = 5;
/// Numbers of a sample in [`Session::samples`].
pub const SAMPLE_NUMBERS: usize = 4;

impl Session {
    /// Before the first event.
    ///
    /// # Errors
    /// A defect of the simulator.
    pub fn new(recipe: Recipe) -> Result<Session, String> {
        let options = Options { no_fuse: true, ..Options::default() };
        let run = Stepper::new(&recipe.scenario, 0, &options).map_err(|e| e.to_string())?;
        Ok(Session { scenario: recipe.scenario, run, handed: 0, variables: Vec::new() })
    }
    /// A description of the run as JSON: `duration`, `links`, `flows`, `warnings`.
    pub fn describe(&self) -> String {
        let scenario = &self.scenario;
        let engine = self.run.engine();
        let links: Vec<_> = scenario
            .links
            .iter()
            .enumerate()
            .map(|(i, link)| {
                let port = scenario.port(link);
                json!({
                    "name": link.name,
                    "from": scenario.nodes[link.from],
                    "to": scenario.nodes[link.to],
                    "rate": link.rate.0,
                    "delay": link.delay.to_seconds(),
                    "limited": engine.queue_of(i).has_qdisc(),
                    "queue": port.queue.as_ref().map(|q| q.kind.name()),
                    "limit": port.queue.as_ref().and_then(limit_of),
                    "routers": port.routers.iter().map(|r| r.protocol.name()).collect::<Vec<_>>(),
                    "air": link.over.is_some(),
                    "possible": changes::possible(link),
                })
            })
            .collect();
        let flows: Vec<_> = engine
            .ends
            .iter()
            .enumerate()
            .map(|(id, ends)| {
                let group = &scenario.flows[engine.group_of(id)];
                json!({
                    "name": format!("{}.{}", group.name, ends.number),
                    "protocol": group.protocol,
                    "start": ends.start.to_seconds(),
                })
            })
            .collect();
        let spread = scenario.flows.iter().any(|g| !matches!(g.start, Start::At(_)));
        json!({
            "name": scenario.name,
            "duration": scenario.duration.to_seconds(),
            "links": links,
            "flows": flows,
            "spread": spread,
            "warnings": scenario.warnings.iter().filter_map(|w| w.lines().next()).collect::<Vec<_>>(),
        })
        .to_string()
    }
    /// Simulated seconds so far.
    pub fn now(&self) -> f64 {
        self.run.engine().now().to_seconds()
    }
    /// Whether the run has ended.
    pub fn is_done(&self) -> bool {
        self.run.is_done()
    }
    /// Continues to this simulated time; `observed` if packets or links will be read then.
    pub fn advance(&mut self, seconds: f64, observed: bool) {
        let until = Time::from_secs_f64(seconds.clamp(0.0, 1e6));
        if until <= self.run.engine().now() && self.run.engine().events() > 0 {
            return;
        }
        if observed { self.run.advance_observed(until) } else { self.run.advance(until) }
    }
    /// Packets on these links: link, flow, how far they are (0 to 1 along the link, below 0 in the queue), 1 for an
    /// acknowledgement; at most `most` a link, evenly chosen.
    pub fn packets(&self, links: &[u32], most: usize) -> Vec<f32> {
        let engine = self.run.engine();
        let now = engine.now();
        let mut of_link: Vec<Vec<[f32; PACKET_NUMBERS]>> = vec![Vec::new(); links.len()];
        engine.packets_under_way(|link, packet, arrives| {
            let Some(index) = links.iter().position(|l| *l as usize == link) else { return };
            let delay = engine.links[link].delay.as_secs_f64().max(1e-9);
            let far = 1.0 - arrives.since(now).as_secs_f64() / delay;
            let ack = packet.is_ack() as u32 as f32;
            of_link[index].push([links[index] as f32, packet.transport.flow() as f32, far as f32, ack]);
        });
        let mut all = Vec::new();
        for packets in &mut of_link {
            packets.sort_by(|a, b| a[2].total_cmp(&b[2]));
            let step = packets.len().div_ceil(most.max(1)).max(1);
            all.extend(packets.iter().step_by(step).flatten());
        }
        all
    }
    /// For each of these links: waiting packets, waiting bytes, packets dropped or lost, packets delivered, bytes
    /// sent.
    pub fn links(&self, links: &[u32]) -> Vec<f64> {
        let engine = self.run.engine();
        let mut all = Vec::with_capacity(links.len() * LINK_NUMBERS);
        for &link in links {
            let Some(made) = engine.links.get(link as usize) else { continue };
            let (bytes, packets) = engine.queue_of(link as usize).backlog();
            let stats = &made.port.stats;
            let gone = stats.total().lost_or_dropped();
            all.extend([packets as f64, bytes as f64, gone as f64, stats.delivered as f64, stats.bytes as f64]);
        }
        all
    }
    /// Samples since the last call: time, object (links by number, flows by -1 - number), number of the variable, value.
    pub fn samples(&mut self) -> Vec<f64> {
        let samples = self.run.samples();
        let mut all = Vec::new();
        for sample in &samples[self.handed..] {
            let object = match sample.object {
                Object::Link(link) => link as f64,
                Object::Flow(flow) => -1.0 - flow as f64,
                _ => continue,
            };
            let known = self.variables.iter().position(|name| *name == sample.variable);
            let variable = known.unwrap_or_else(|| {
                self.variables.push(sample.variable);
                self.variables.len() - 1
            });
            all.extend([sample.at.to_seconds(), object, variable as f64, sample.value]);
        }
        self.handed = samples.len();
        all
    }
    /// Names of variables, in the order of their numbers.
    pub fn variables(&self) -> &[&'static str] {
        &self.variables
    }
    /// Names of links, in the order of their numbers.
    pub fn link_names(&self) -> Vec<String> {
        link_names(&self.scenario)
    }
}

/// The limit of a queue, bytes.
fn limit_of(queue: &explicate_scenario::model::Queue) -> Option<f64> {
    let given = queue.values.given().iter().find(|(name, _)| *name == "limit").map(|(_, v)| *v);
    given.filter(|limit| limit.is_finite())
}
