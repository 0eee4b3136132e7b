//! Samples over time, under the simulator's names.

use explicate_build::tables::{Cell, Table};
use explicate_core::units::Time;
use explicate_scenario::model::{Sampling, Scenario};

use crate::engine::Engine;
use crate::measure::name;

/// Takes samples.
pub(crate) struct Sampler {
    every: Time,
    taken: u64,
    of: Wanted,
    names: Vec<String>,
    /// Bytes that links had sent, and classes delivered, at the last sample.
    links: Vec<f64>,
    classes: Vec<f64>,
}

struct Wanted {
    queue: bool,
    throughput: bool,
    cwnd: bool,
    rtt: bool,
    goodput: bool,
    router: bool,
    flow: bool,
}

impl Sampler {
    /// A sampler, if anything is to be sampled.
    pub(crate) fn new(scenario: &Scenario, engine: &Engine<'_>) -> Option<Sampler> {
        let Sampling { every, of } = &scenario.sampling;
        let of = |name: &str| of.iter().any(|n| n == name);
        Some(Sampler {
            every: every.filter(|e| e.0 > 0)?,
            taken: 0,
            of: Wanted {
                queue: of("queue"),
                throughput: of("throughput"),
                cwnd: of("cwnd"),
                rtt: of("rtt"),
                goodput: of("goodput"),
                router: of("router"),
                flow: of("flow"),
            },
            names: engine.network.classes.iter().map(|c| name(scenario, c)).collect(),
            links: vec![0.0; engine.network.links.len()],
            classes: vec![0.0; engine.network.classes.len()],
        })
    }

    /// After a step: samples everything if that is due.
    pub(crate) fn step(&mut self, run: u64, scenario: &Scenario, engine: &Engine<'_>, table: &mut Table) {
        let (at, every) = (Time((self.taken + 1) * self.every.0).to_seconds(), self.every.to_seconds());
        if engine.now() + 0.5 * engine.network.dt < at {
            return;
        }
        self.taken += 1;
        let mut put = |object: &str, variable: &str, value: f64| {
            table.push([run.into(), at.into(), object.into(), variable.into(), Cell::F64(value)]);
        };
        self.links(every, scenario, engine, &mut put);
        self.classes(at, every, engine, &mut put);
    }

    /// Links with a queue. Rates are those of the last `every` seconds.
    fn links(&mut self, every: f64, scenario: &Scenario, engine: &Engine<'_>, put: &mut dyn FnMut(&str, &str, f64)) {
        for ((link, of_scenario), before) in engine.network.links.iter().zip(&scenario.links).zip(&mut self.links) {
            if of_scenario.queue.is_none() {
                continue;
            }
            let mut put = |variable: &str, value: f64| put(&of_scenario.name, variable, value);
            if self.of.queue {
                put("queue_packets", link.queue / link.packet);
                put("queue_bytes", link.queue);
            }
            if self.of.router {
                if let Some(router) = &link.router {
                    router.probe(&mut |variable, value| put(variable, value));
                }
                if let Some(average) = link.tail.average() {
                    put("average_bytes", average);
                }
            }
            if self.of.throughput {
                let rate = (link.stats.total - *before) / every;
                put("throughput_bps", 8.0 * rate);
                put("utilisation", rate / link.rate);
            }
            *before = link.stats.total;
        }
    }

    /// Classes of flows that have started.
    fn classes(&mut self, at: f64, every: f64, engine: &Engine<'_>, put: &mut dyn FnMut(&str, &str, f64)) {
        for ((class, object), before) in engine.network.classes.iter().zip(&self.names).zip(&mut self.classes) {
            if class.start > at {
                continue;
            }
            let mut put = |variable: &str, value: f64| put(object, variable, value);
            if let Some(sender) = &class.sender {
                if self.of.flow {
                    sender.probe(&mut |variable, value| put(variable, value));
                } else if self.of.cwnd {
                    put("cwnd", sender.window());
                }
                if self.of.rtt {
                    put("rtt_ms", class.rtt * 1e3);
                }
            }
            let rate = 8.0 * (class.stats.delivered - *before) / class.count / every;
            if self.of.throughput {
                put("throughput_bps", rate);
            }
            if self.of.goodput {
                put("goodput_bps", rate * class.payload);
            }
            *before = class.stats.delivered;
        }
    }
}
