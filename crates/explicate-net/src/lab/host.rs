//! A host of the lab: an endpoint with the flows that begin and end there.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use explicate_build::flows::{self, source, starts};
use explicate_build::source::Source;
use explicate_core::agent::Address;
use explicate_core::endpoint::{FlowInit, ReceiverEndpoint, ReceiverStats, SenderEndpoint, SenderStats};
use explicate_core::params::Values;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time, mean_millis, per_second};
use explicate_core::wire::UDP_PORT;
use explicate_scenario::model::{Link, Scenario, Traffic};

use super::addresses::{address, addresses};
use super::schedule::{Action, Schedule};
use super::stall_monitor;
use crate::agent::{self, AgentHost};
use crate::clock::{Clock, Stalls};
use crate::endpoint::Endpoint;
use crate::endpoint::sending::Sending;
use crate::error::{Error, Result};

/// A flow of the scenario.
#[derive(Clone)]
pub(super) struct LabFlow {
    /// Its group, and its number in it.
    pub(super) group: (usize, u32),
    /// Its name.
    pub(super) name: String,
    /// When it starts.
    pub(super) start: Time,
    /// Its ends.
    pub(super) ends: (usize, usize),
    /// The address that it sends to.
    pub(super) peer: Ipv4Addr,
    /// The kernel's congestion control, if its TCP carries the flow.
    pub(super) kernel: Option<String>,
}

/// The flows of a run, in the order of the simulator.
pub(super) fn flows(scenario: &Scenario, seed: u64) -> Vec<LabFlow> {
    let of_group = |(index, group): (usize, &explicate_scenario::model::FlowGroup)| -> Vec<LabFlow> {
        let flow = |(i, start): (u32, Time)| {
            let ends = group.ends[i as usize % group.ends.len()];
            let [_, peer] = addresses(scenario, index, ends);
            LabFlow { group: (index, i), name: format!("{}.{i}", group.name), start, ends, peer, kernel: None }
        };
        starts(group, seed, scenario.duration).into_iter().map(flow).collect()
    };
    scenario.flows.iter().enumerate().flat_map(of_group).collect()
}

/// A sample of a flow or link, by its name.
pub(super) struct Sample {
    /// Time.
    pub(super) at: Time,
    /// Object.
    pub(super) object: String,
    /// Variable.
    pub(super) variable: &'static str,
    /// Value.
    pub(super) value: f64,
}

/// Measurements of the sending end of a flow.
pub(super) struct Sent {
    /// Its counters at the start of the measured span and at its end.
    pub(super) stats: (SenderStats, SenderStats),
    /// When it was complete.
    pub(super) completed: Time,
    /// Data to send.
    pub(super) size: Option<u64>,
    /// Sessions begun, and aborted.
    pub(super) sessions: (u64, u64),
}

/// Flows have numbers below this; a session is a flow of its own, whose number is larger by a multiple of this.
const SESSION: u32 = 1 << 16;

/// The scenario's flow to which a flow on the wire belongs.
fn index(id: u32) -> usize {
    (id % SESSION) as usize
}

/// Counters of a flow's sending end, over all its sessions.
fn stats(sending: &Sending) -> SenderStats {
    match &sending.source {
        Source::Sessions(sessions) => sessions.all(&sending.flow, &sending.elsewhere).0,
        _ => sending.flow.stats(),
    }
}

/// Measurements of a host.
#[derive(Default)]
pub(super) struct HostReport {
    /// By number of the flow.
    pub(super) sent: BTreeMap<usize, Sent>,
    /// By number of the flow: its receiving end's counters.
    pub(super) received: BTreeMap<usize, (ReceiverStats, ReceiverStats)>,
    /// By number of a flow of the kernel: the time in which the receiver's window, and the send buffer, limited it.
    pub(super) limited: BTreeMap<usize, [Time; 2]>,
    /// Samples.
    pub(super) samples: Vec<Sample>,
    /// Failures of flows.
    pub(super) failures: Vec<String>,
}

/// A running host.
pub(super) struct Host<'a> {
    scenario: &'a Scenario,
    flows: &'a [LabFlow],
    node: usize,
    endpoint: Endpoint<'a>,
    before: (BTreeMap<usize, SenderStats>, BTreeMap<usize, ReceiverStats>),
    sampled: (BTreeMap<usize, SenderStats>, BTreeMap<usize, ReceiverStats>),
    report: HostReport,
}

impl<'a> Host<'a> {
    /// Makes the senders of a node, opens its socket in this thread's namespace, and then calls `start`.
    pub(super) fn open(
        scenario: &'a Scenario,
        flows: &'a [LabFlow],
        node: usize,
        seed: u64,
        start: &dyn Fn() -> Clock,
    ) -> Result<Host<'a>> {
        let ours = |f: &LabFlow| f.kernel.is_none();
        let opens = move |id: u32| {
            let flow = flows.get(index(id)).filter(|flow| flow.ends.1 == node)?;
            Some(ReceiverEndpoint::new(&init(scenario, flow, id).ok()?))
        };
        let begin_here = flows.iter().enumerate().filter(|(_, f)| ours(f) && f.ends.0 == node);
        let sending = begin_here.map(|(id, flow)| Ok((id as u32, sending(scenario, flow, id as u32, seed)?)));
        let (sending, agent) = (sending.collect::<Result<_>>()?, agent(scenario, flows, node, seed));
        let mut endpoint = Endpoint::open(Box::new(opens), start)?;
        (endpoint.sending, endpoint.agent) = (sending, agent);
        let (before, sampled, report) = Default::default();
        Ok(Host { scenario, flows, node, endpoint, before, sampled, report })
    }

    /// Runs the flows to the end of the scenario.
    pub(super) fn run(mut self, stop: &(dyn Fn() -> bool + Sync)) -> Result<HostReport> {
        self.endpoint.stalls = Stalls::within(self.scenario.warmup, self.scenario.duration);
        self.endpoint.wait_for_start();
        let mut schedule = Schedule::new(self.scenario);
        while let Some((until, action)) = schedule.next() {
            self.endpoint.run(until, &stop)?;
            match action {
                Action::Measure => self.before = self.counters(),
                Action::Sample => self.sample(schedule.period()),
            }
        }
        self.endpoint.run(schedule.end(), &stop)?;
        stall_monitor::check(&self.scenario.nodes[self.node], &self.endpoint.stalls)?;
        Ok(self.finish())
    }

    fn counters(&self) -> (BTreeMap<usize, SenderStats>, BTreeMap<usize, ReceiverStats>) {
        let sent = self.endpoint.sending.iter().map(|(id, f)| (index(*id), stats(f))).collect();
        let mut received: BTreeMap<usize, ReceiverStats> = BTreeMap::new();
        for ((_, id), receiver) in &self.endpoint.receivers.flows {
            *received.entry(index(*id)).or_default() += receiver.stats();
        }
        (sent, received)
    }

    fn sample(&mut self, period: Time) {
        let at = self.endpoint.now();
        let of = |name: &str| self.scenario.sampling.of.iter().any(|n| n == name);
        let (flow, cwnd, rtt) = (of("flow"), of("cwnd"), of("rtt"));
        let (throughput, goodput) = (of("throughput"), of("goodput"));
        for (id, sending) in &mut self.endpoint.sending {
            if sending.start > at {
                continue;
            }
            let name = &self.flows[index(*id)].name;
            let samples = &mut self.report.samples;
            let mut put = |variable, value| samples.push(Sample { at, object: name.clone(), variable, value });
            if flow {
                sending.flow.probe(&mut put);
            } else if cwnd {
                put("cwnd", sending.flow.cwnd());
            }
            let (now, before) = (stats(sending), self.sampled.0.get(&index(*id)).copied().unwrap_or_default());
            let count = now.rtt_count - before.rtt_count;
            if rtt && count > 0 {
                put("rtt_ms", mean_millis(now.rtt_sum - before.rtt_sum, count));
            }
        }
        let counted = self.counters();
        for (id, now) in &counted.1 {
            let Some(flow) = self.flows.get(*id) else { continue };
            let before = self.sampled.1.get(id).copied().unwrap_or_default();
            let mut put = |variable, value| {
                self.report.samples.push(Sample { at, object: flow.name.clone(), variable, value });
            };
            if throughput {
                put("throughput_bps", 8.0 * per_second(now.bytes - before.bytes, period));
            }
            if goodput {
                put("goodput_bps", 8.0 * per_second(now.payload - before.payload, period));
            }
        }
        self.sampled = counted;
    }

    fn finish(mut self) -> HostReport {
        for (id, sending) in &self.endpoint.sending {
            if let Some(why) = &sending.failure {
                self.report.failures.push(format!("{}: {why}", self.flows[index(*id)].name));
            }
            let before = self.before.0.get(&index(*id)).copied().unwrap_or_default();
            let (size, sessions) = match &sending.source {
                Source::Sized(bytes) => (Some(*bytes), (1, 0)),
                Source::Sessions(sessions) => (None, (sessions.begun, sessions.torn_down)),
                _ => (None, (1, 0)),
            };
            let sent = Sent { stats: (before, stats(sending)), completed: sending.completed, size, sessions };
            self.report.sent.insert(index(*id), sent);
        }
        for (id, after) in self.counters().1 {
            if self.flows.get(id).is_some_and(|f| f.ends.1 == self.node) {
                let before = self.before.1.get(&id).copied().unwrap_or_default();
                self.report.received.insert(id, (before, after));
            }
        }
        self.report
    }
}

/// The agent of a host whose flows need one, with the values of the first controllers of their protocol.
fn agent(scenario: &Scenario, flows: &[LabFlow], node: usize, seed: u64) -> Option<AgentHost> {
    let protocol = |f: &LabFlow| scenario.flows[f.group.0].resolved.protocol;
    flows.iter().filter(|f| f.ends.0 == node || f.ends.1 == node).map(protocol).find_map(|protocol| {
        let specs =
            scenario.links.iter().flat_map(Link::controllers).filter(|spec| spec.protocol.name() == protocol.name());
        let spec = specs.min_by_key(|spec| agent::wants_oracle(spec.protocol, &spec.values));
        let rng = Rng::stream(seed, &format!("{}/agent", scenario.nodes[node]));
        AgentHost::new(protocol, &spec.map_or_else(Values::default, |s| s.values.clone()), address(node), rng)
    })
}

/// What both ends of a flow know.
fn init<'a>(scenario: &'a Scenario, flow: &LabFlow, id: u32) -> Result<FlowInit<'a>> {
    let interface = scenario.links.iter().find(|l| l.from == flow.ends.0).map_or(Rate(0), |l| l.rate);
    flows::init(&scenario.flows[flow.group.0], id, interface).map_err(Error::Failed)
}

/// The sending end of a flow.
fn sending(scenario: &Scenario, flow: &LabFlow, id: u32, seed: u64) -> Result<Sending> {
    let (group, init) = (&scenario.flows[flow.group.0], init(scenario, flow, id)?);
    let own = Address(u32::from(address(flow.ends.0)));
    let mut sender = SenderEndpoint::new(&init);
    sender.attach(own);
    Ok(Sending {
        flow: sender,
        source: source(group, &flow.name, seed, &init, own, flow.start, SESSION),
        elsewhere: ReceiverEndpoint::new(&init),
        peer: SocketAddrV4::new(flow.peer, UDP_PORT),
        start: flow.start,
        // The scenario gives the length of an outage, and its effect on a session.
        timeout: if matches!(group.traffic, Traffic::Sessions { .. }) { Time::secs(1 << 20) } else { Time::secs(30) },
        // A late action of the application counts from its due time.
        acts: flow.start,
        last_answer_at: flow.start,
        completed: Time::NEVER,
        failure: None,
    })
}
