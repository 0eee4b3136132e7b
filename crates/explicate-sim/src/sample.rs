//! Samples over time, as requested by `[sampling]`, in long form.

use explicate_core::endpoint::SenderStats;
use explicate_core::units::{Time, mean_millis, per_second};
use explicate_scenario::model::Sampling;

use crate::engine::Engine;

/// A sample: time, object, variable and value.
pub struct Sample {
    /// When.
    pub at: Time,
    /// The object.
    pub object: Object,
    /// The variable, with its unit.
    pub variable: &'static str,
    /// The value.
    pub value: f64,
}

/// The object of a sample: indices into the engine's links, their classes, or flows; numbers of nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A link.
    Link(u32),
    /// One of several classes of a link.
    Class(u32, u32),
    /// A flow.
    Flow(u32),
    /// The agent of a node.
    Agent(u32),
    /// The state that the agent of a node keeps about another node.
    Peer(u32, u32),
}

/// Takes samples.
pub struct Sampler {
    every: Time,
    queue: bool,
    throughput: bool,
    cwnd: bool,
    rtt: bool,
    goodput: bool,
    router: bool,
    flow: bool,
    agent: bool,
    /// Links over media and links with a limited queue; other queues are not sampled.
    links: Vec<(u32, Counted)>,
    flows: Vec<Before>,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// Counters of a link at the last sample: bytes, and airtime.
#[derive(Clone, Copy, Default)]
struct Counted {
    bytes: u64,
    airtime: Time,
}

/// Counters at the last sample.
#[derive(Clone, Copy, Default)]
struct Before {
    bytes: u64,
    payload: u64,
    flow: SenderStats,
}

impl Sampler {
    /// A sampler, if anything is to be sampled.
    pub fn new(sampling: &Sampling, engine: &Engine) -> Option<Sampler> {
        let every = sampling.every.filter(|e| *e > Time::ZERO)?;
        let of = |name: &str| sampling.of.iter().any(|n| n == name);
        let limited = |i: usize| {
            let listed = engine.over(i).is_some() || engine.links[i].port.has_qdisc();
            listed.then_some((i as u32, Counted::default()))
        };
        Some(Sampler {
            every,
            queue: of("queue"),
            throughput: of("throughput"),
            cwnd: of("cwnd"),
            rtt: of("rtt"),
            goodput: of("goodput"),
            router: of("router"),
            flow: of("flow"),
            agent: of("agent"),
            links: (0..engine.links.len()).filter_map(limited).collect(),
            flows: vec![Before::default(); engine.ends.len()],
            samples: Vec::new(),
        })
    }
    /// The period.
    pub fn every(&self) -> Time {
        self.every
    }
    /// Samples everything now.
    pub fn take(&mut self, engine: &mut Engine) {
        self.take_links(engine);
        self.take_flows(engine);
        if self.agent {
            self.take_agents(engine);
        }
    }

    fn take_links(&mut self, engine: &mut Engine) {
        let at = engine.now();
        let seconds = self.every.as_secs_f64();
        for (index, before) in &mut self.links {
            let object = Object::Link(*index);
            engine.catch_up(*index as usize);
            let over = engine.over(*index as usize);
            let samples = &mut self.samples;
            if self.queue || self.router {
                let mut put = |variable, value| samples.push(Sample { at, object, variable, value });
                let (queue, router) = (self.queue, self.router);
                let wanted = |variable: &str| if variable.starts_with("queue_") { queue } else { router };
                let mut told = |variable: &'static str, value| {
                    if wanted(variable) {
                        put(variable, value);
                    }
                };
                let port = engine.queue_of(*index as usize);
                port.probe(&mut told);
                if let Some((medium, number)) = over {
                    medium.probe(number, &mut told);
                }
                for class in (0..port.classes()).filter(|_| port.classes() > 1) {
                    let object = Object::Class(*index, class as u32);
                    port.probe_class(class, &mut |variable, value| {
                        if wanted(variable) {
                            samples.push(Sample { at, object, variable, value });
                        }
                    });
                }
            }
            let port = &engine.links[*index as usize].port;
            if self.throughput {
                let mut put = |variable, value| samples.push(Sample { at, object, variable, value });
                let bytes = port.stats.bytes - before.bytes;
                let rate = bytes as f64 / seconds;
                let offered = port.offered(at - self.every, at) / seconds;
                let share = match over {
                    Some((medium, number)) => (medium.airtime(number).1 - before.airtime).as_secs_f64() / seconds,
                    None if offered > 0.0 => rate / offered,
                    None => f64::NAN,
                };
                put("throughput_bps", 8.0 * per_second(bytes, self.every));
                put("utilisation", share);
            }
            let airtime = over.map_or(Time::ZERO, |(medium, number)| medium.airtime(number).1);
            *before = Counted { bytes: port.stats.bytes, airtime };
        }
    }

    fn take_agents(&mut self, engine: &Engine) {
        let at = engine.now();
        let samples = &mut self.samples;
        for node in engine.agents() {
            let object = Object::Agent(node.0);
            engine.probe_agent(node, &mut |variable, value| samples.push(Sample { at, object, variable, value }));
            engine.probe_peers(node, &mut |peer, variable, value| {
                samples.push(Sample { at, object: Object::Peer(node.0, peer.0), variable, value });
            });
        }
    }

    fn take_flows(&mut self, engine: &mut Engine) {
        let at = engine.now();
        for (index, (ends, before)) in engine.ends.iter_mut().zip(&mut self.flows).enumerate() {
            if ends.start > at {
                continue;
            }
            let object = Object::Flow(index as u32);
            let mut put = |variable, value| self.samples.push(Sample { at, object, variable, value });
            let (flow, receiver) = ends.stats();
            if self.flow {
                ends.flow.probe(&mut put);
                if ends.flow.is_one_way() {
                    put("lost", ends.receiver.missing() as f64);
                }
            } else if self.cwnd {
                put("cwnd", ends.flow.cwnd());
            }
            let samples = flow.rtt_count - before.flow.rtt_count;
            if self.rtt && samples > 0 {
                put("rtt_ms", mean_millis(flow.rtt_sum - before.flow.rtt_sum, samples));
            }
            if self.throughput {
                put("throughput_bps", 8.0 * per_second(receiver.bytes - before.bytes, self.every));
            }
            if self.goodput {
                put("goodput_bps", 8.0 * per_second(receiver.payload - before.payload, self.every));
            }
            *before = Before { bytes: receiver.bytes, payload: receiver.payload, flow };
        }
    }
}
