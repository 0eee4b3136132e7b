//! Builds links, classes and the rings that delay fluid between them from a scenario.
//!
//! A class passes the links of its data and then those of its acknowledgements; each is a *hop*. The output of a hop
//! enters a ring as long as the link's delay (and the transmission time of a packet), counted in steps so that the
//! round-trip time is that of the packet simulator to within half a step.

use explicate_build::flows::starts;
use explicate_build::paths::flow_paths;
use explicate_core::endpoint::{self, header_bytes};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_scenario::limits;
use explicate_scenario::model::{FlowGroup, Processing, Scenario, Size, Start, Traffic};
use explicate_scenario::problem::RunWarning;

use crate::error::{MOST_PLACES, RunError};
use crate::link_stats::LinkStats;
use crate::model::{Model, Parcel, Router, RouterInit, Sender};
use crate::models::model;
use crate::queue::{Fate, Tail};

/// Maximum number of start times of a group on one path; more are merged.
const STARTS: usize = 64;
/// Bytes of a SYN and of its answer.
const SYN: f64 = 44.0;

/// A link with its port.
pub(crate) struct Link {
    /// Bytes/s.
    pub(crate) rate: f64,
    /// Bytes that wait.
    pub(crate) queue: f64,
    /// Bytes that arrived in this step, and those of them that are ECN-capable.
    pub(crate) arriving: f64,
    pub(crate) bearing: f64,
    pub(crate) fate: Fate,
    /// Share of the queue and arrivals that leaves in this step.
    pub(crate) leaves: f64,
    pub(crate) tail: Tail,
    pub(crate) router: Option<Box<dyn Router>>,
    /// The protocol whose packets it answers.
    pub(crate) answers: Option<&'static str>,
    /// Shares of data and of acknowledgements that the channel loses.
    pub(crate) loss: (f64, f64),
    /// Typical length of packets, bytes.
    pub(crate) packet: f64,
    pub(crate) stats: LinkStats,
}

/// A class at a hop.
pub(crate) struct Hop {
    pub(crate) link: u32,
    /// Its ring: the first place, the number of places, the present one.
    pub(crate) ring: u32,
    pub(crate) places: u32,
    pub(crate) at: u32,
    /// Bytes on the line per byte of data.
    pub(crate) weight: f32,
    pub(crate) data: bool,
    /// The port's router answers it.
    pub(crate) answered: bool,
    pub(crate) waiting: Parcel,
}

/// A class of identical flows.
pub(crate) struct Class {
    /// Indices of the group, and of the first flow in it.
    pub(crate) group: u32,
    pub(crate) first: u32,
    /// Number of flows.
    pub(crate) count: f64,
    /// When they connect, begin to send and stop, s.
    pub(crate) start: f64,
    pub(crate) begins: f64,
    pub(crate) stop: f64,
    /// IP bytes that each flow has to send.
    pub(crate) size: f64,
    pub(crate) packet: f64,
    /// Payload per byte of data.
    pub(crate) payload: f64,
    /// Hops, and the number of them that belong to the data.
    pub(crate) hops: (u32, u32),
    pub(crate) data_hops: u32,
    /// Round-trip time without queues, and with the present queues, s.
    pub(crate) base_rtt: f64,
    pub(crate) rtt: f64,
    /// A queue marks its packets instead of dropping them.
    pub(crate) bears_marks: bool,
    pub(crate) paced: bool,
    pub(crate) most_window: f64,
    pub(crate) model: &'static dyn Model,
    pub(crate) sender: Option<Box<dyn Sender>>,
    /// Bytes that are neither acknowledged nor detected as lost.
    pub(crate) in_flight: f64,
    /// Bytes sent in this step.
    pub(crate) sending: Parcel,
    pub(crate) over: bool,
    pub(crate) stats: SenderStats,
}

/// Counters of a class, for all of its flows together.
#[derive(Clone, Copy, Default)]
pub(crate) struct SenderStats {
    /// Bytes sent, detected as lost, received and acknowledged.
    pub(crate) sent: f64,
    pub(crate) lost: f64,
    pub(crate) delivered: f64,
    pub(crate) acked: f64,
    /// Round-trip times weighted by acknowledged bytes.
    pub(crate) rtt: f64,
    /// When all data were acknowledged; NaN if they were not.
    pub(crate) completed: f64,
}

/// A scenario as a fluid.
pub(crate) struct Network {
    pub(crate) links: Vec<Link>,
    pub(crate) classes: Vec<Class>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) rings: Vec<Parcel>,
    /// Length of a step, s.
    pub(crate) dt: f64,
    /// Warnings.
    pub(crate) warnings: Vec<RunWarning>,
}

/// A class without its rings.
struct Draft {
    group: usize,
    first: u32,
    count: u32,
    start: f64,
    there: Vec<u32>,
    back: Vec<u32>,
    delays: Vec<f64>,
}

impl Network {
    /// Builds it. The scenario was checked ([`crate::check`]).
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Result<Network, RunError> {
        let mut warnings = Vec::new();
        let drafts = drafts(scenario, seed, &mut warnings)?;
        let dt = step(scenario, &drafts);
        let mut links = links(scenario, seed, &drafts);
        let (mut classes, mut hops, mut places) = (Vec::with_capacity(drafts.len()), Vec::new(), 0u64);
        for draft in &drafts {
            classes.push(class(scenario, draft, (dt, &links), &mut hops, &mut places)?);
        }
        for (link, of_scenario) in links.iter_mut().zip(&scenario.links) {
            link.stats.expects(of_scenario.rate.bytes_per_sec());
        }
        if places > MOST_PLACES {
            return Err(RunError::DelaysTooLong { places: places as f64, step_us: dt * 1e6 });
        }
        let updates = scenario.duration.as_secs_f64() / dt * hops.len() as f64;
        if updates > limits::PACKET_HOPS {
            return Err(RunError::RunTooLong { updates, step_us: dt * 1e6 });
        }
        Ok(Network { links, classes, hops, rings: vec![Parcel::default(); places as usize], dt, warnings })
    }
}

/// Data packets for an acknowledgement, in the long run.
fn packets_per_ack(params: &endpoint::Params) -> f64 {
    match params.acks {
        endpoint::Acks::Counted => params.ack_every,
        endpoint::Acks::Linux => 2.0,
    }
}

/// Bytes of an acknowledgement.
fn ack_bytes(group: &FlowGroup) -> f64 {
    header_bytes(group.resolved.protocol.congestion_header()) as f64
}

/// Flows grouped by path and start.
fn drafts(scenario: &Scenario, seed: u64, warnings: &mut Vec<RunWarning>) -> Result<Vec<Draft>, RunError> {
    let routes = scenario.routes().next().ok_or(RunError::NoRoutes)?;
    let paths = flow_paths(scenario, routes)?;
    let mut drafts = Vec::new();
    for (index, (group, paths)) in scenario.flows.iter().zip(&paths).enumerate() {
        let n = paths.len() as u32;
        let mut merged = 0;
        // For each route its flows' starts: the first flow, their number, and the mean.
        let mut of_path: Vec<Vec<(u32, u32, f64)>> = vec![Vec::new(); paths.len()];
        if let Start::At(at) = group.start {
            for (k, starts) in (0..n.min(group.count)).zip(&mut of_path) {
                let count = (group.count - k).div_ceil(n);
                starts.extend((at <= scenario.duration).then_some((k, count, at.as_secs_f64())));
            }
        } else {
            for (i, at) in starts(group, seed, scenario.duration) {
                of_path[(i % n) as usize].push((i, 1, at.as_secs_f64()));
            }
            for starts in &mut of_path {
                merged += starts.len().saturating_sub(STARTS);
                put_together(starts);
            }
        }
        if let Processing::UpTo(_) = group.processing {
            let keys = vec![format!("flows.{}.processing", group.name), "processing".to_string()];
            let message = format!("[[flows]] `{}`: a fluid has no packets, so `processing` is ignored", group.name);
            warnings.push(RunWarning { keys, message });
        }
        if merged > 0 {
            let keys = vec![format!("flows.{}.start", group.name), format!("flows.{}", group.name)];
            let what = "starts of its flows are merged, so that no path has more than";
            let message = format!("[[flows]] `{}`: {merged} {what} {STARTS}", group.name);
            warnings.push(RunWarning { keys, message });
        }
        for (k, starts) in of_path.into_iter().enumerate() {
            let (there, back) = paths.get(k);
            let both = || there.iter().map(|l| (l, true)).chain(back.iter().map(|l| (l, false)));
            let delay = |(&l, data): (&u32, bool)| {
                let link = &scenario.links[l as usize];
                let bytes = if data { group.packet as f64 } else { ack_bytes(group) };
                link.delay.as_secs_f64() + bytes / link.rate.bytes_per_sec()
            };
            for (first, count, start) in starts {
                let delays = both().map(delay).collect();
                drafts.push(Draft {
                    group: index,
                    first,
                    count,
                    start,
                    there: there.to_vec(),
                    back: back.to_vec(),
                    delays,
                });
            }
        }
    }
    Ok(drafts)
}

/// Merges equal starts, and neighbouring starts until there are few enough.
fn put_together(starts: &mut Vec<(u32, u32, f64)>) {
    starts.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(&b.0)));
    let per = starts.len().div_ceil(STARTS).max(1);
    let mut few: Vec<(u32, u32, f64)> = Vec::new();
    for (i, &(first, count, at)) in starts.iter().enumerate() {
        match few.last_mut() {
            Some(last) if i % per != 0 || (per == 1 && last.2 == at) => {
                last.2 += (at - last.2) / (last.1 + count) as f64;
                last.1 += count;
            }
            _ => few.push((first, count, at)),
        }
    }
    *starts = few;
}

/// The step: short compared with every round-trip time and every control interval.
fn step(scenario: &Scenario, drafts: &[Draft]) -> f64 {
    let of_class = |d: &Draft| {
        let group = &scenario.flows[d.group];
        let model = model(group.resolved.protocol.name())?;
        let steps = model.steps().max(2.0 * d.delays.len() as f64);
        Some((d.delays.iter().sum::<f64>() / steps).min(model.longest_step(&group.values)))
    };
    let longest = drafts.iter().filter_map(of_class).fold(scenario.duration.as_secs_f64() / 100.0, f64::min);
    longest.max(1e-7)
}

fn links(scenario: &Scenario, seed: u64, drafts: &[Draft]) -> Vec<Link> {
    // For each link the groups whose data cross it.
    let mut crossed: Vec<Vec<usize>> = vec![Vec::new(); scenario.links.len()];
    for draft in drafts {
        for &l in &draft.there {
            if !crossed[l as usize].contains(&draft.group) {
                crossed[l as usize].push(draft.group);
            }
        }
    }
    let make = |(link, groups): (&explicate_scenario::model::Link, &Vec<usize>)| {
        let wanted = |name: &str| {
            groups.iter().any(|&g| {
                let protocol = scenario.flows[g].resolved.protocol;
                registry::controller(protocol).is_some_and(|c| c.name() == name)
            })
        };
        let spec = link.routers.iter().find(|spec| wanted(spec.protocol.name()));
        let rng = Rng::stream(seed, &format!("{}/router", link.name));
        let capacity = link.capacity.bytes_per_sec();
        let router = spec
            .and_then(|spec| model(spec.protocol.name())?.router(&RouterInit { values: &spec.values, capacity, rng }));
        let rate = link.rate.bytes_per_sec();
        let packets: f64 = groups.iter().map(|&g| scenario.flows[g].packet as f64).sum();
        let own = if groups.is_empty() { 1500.0 } else { packets / groups.len() as f64 };
        Link {
            rate,
            queue: 0.0,
            arriving: 0.0,
            bearing: 0.0,
            fate: Fate::default(),
            leaves: 1.0,
            tail: Tail::new(link.queue.as_ref(), rate),
            router,
            answers: spec.map(|spec| spec.protocol.name()),
            loss: crate::check::losses(link),
            packet: link.queue.as_ref().map_or(own, |q| q.mean_packet),
            stats: LinkStats::default(),
        }
    };
    scenario.links.iter().zip(&crossed).map(make).collect()
}

/// For each of these delays the number of steps, to the nearest, but at least one.
fn positions(delays: &[f64], dt: f64) -> Vec<u64> {
    let mut passed = 0.0;
    let mut at: Vec<u64> = Vec::with_capacity(delays.len());
    for delay in delays {
        passed += delay;
        let least = at.last().map_or(1, |before| before + 1);
        at.push(((passed / dt + 0.5) as u64).max(least));
    }
    // The total is exact even if short delays were lengthened.
    let whole = ((passed / dt + 0.5) as u64).max(delays.len() as u64);
    for (behind, position) in at.iter_mut().rev().enumerate() {
        *position = (*position).min(whole - behind as u64);
    }
    at
}

fn class(
    scenario: &Scenario,
    draft: &Draft,
    (dt, links): (f64, &[Link]),
    hops: &mut Vec<Hop>,
    places: &mut u64,
) -> Result<Class, RunError> {
    let group = &scenario.flows[draft.group];
    let protocol = group.resolved.protocol;
    let model = model(protocol.name()).ok_or(RunError::NoModel(protocol.name()))?;
    let packet = group.packet as f64;
    let params = endpoint::Params::of(&group.values);
    let first = hops.len() as u32;
    let (mut position, passed) = (0u64, draft.delays.iter().sum::<f64>());
    let both = || draft.there.iter().map(|l| (l, true)).chain(draft.back.iter().map(|l| (l, false)));
    for ((&l, data), arrives) in both().zip(positions(&draft.delays, dt)) {
        let controller = registry::controller(protocol).map(|c| c.name());
        hops.push(Hop {
            link: l,
            ring: *places as u32,
            places: (arrives - position) as u32,
            at: 0,
            weight: if data { 1.0 } else { (ack_bytes(group) / (packet * packets_per_ack(&params))) as f32 },
            data,
            answered: data && controller.is_some() && links[l as usize].answers == controller,
            waiting: Parcel::default(),
        });
        *places += arrives - position;
        position = arrives;
    }
    // Set-up takes a round trip of short packets.
    let lines = both().map(|(&l, data)| {
        let bytes = if data { packet } else { ack_bytes(group) };
        (SYN - bytes) / scenario.links[l as usize].rate.bytes_per_sec()
    });
    let set_up = passed + lines.sum::<f64>();
    let payload = packet - (header_bytes(false) + protocol.congestion_header_len()) as f64;
    let size = match &group.traffic {
        Traffic::Sized(Size::Fixed(bytes)) => *bytes as f64 * packet / payload,
        _ => f64::INFINITY,
    };
    let base_rtt = position as f64 * dt;
    Ok(Class {
        group: draft.group as u32,
        first: draft.first,
        count: draft.count as f64,
        start: draft.start,
        begins: draft.start + set_up,
        stop: group.stop.map_or(f64::INFINITY, Time::as_secs_f64),
        size,
        packet,
        payload: payload / packet,
        hops: (first, hops.len() as u32),
        data_hops: draft.there.len() as u32,
        base_rtt,
        rtt: base_rtt,
        bears_marks: params.ecn || model.always_bears_marks(),
        paced: params.paced,
        most_window: params.receiver_window,
        model,
        sender: None,
        in_flight: 0.0,
        sending: Parcel::default(),
        over: false,
        stats: SenderStats { completed: f64::NAN, ..SenderStats::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays of 2.4, 0.1 and 2.5 steps end after 2, 3 and 5 steps: each takes one at least, and their sum is exact.
    #[test]
    fn delays_are_rounded_to_steps_and_their_sum_is_kept() {
        assert_eq!(positions(&[2.4e-3, 0.1e-3, 2.5e-3], 1e-3), [2, 3, 5]);
        assert_eq!(positions(&[0.1e-3, 0.1e-3, 3.8e-3], 1e-3), [1, 2, 4]);
        // Three delays take three steps even if they are shorter.
        assert_eq!(positions(&[0.1e-3; 3], 1e-3), [1, 2, 3]);
        // What was lengthened at the end is taken from the delays before it.
        assert_eq!(positions(&[3.9e-3, 0.05e-3, 0.05e-3], 1e-3), [2, 3, 4]);
    }

    /// (first, count, at) of flows that begin together, in order of time.
    #[test]
    fn equal_starts_are_merged() {
        let mut starts = vec![(0, 1, 2.0), (1, 1, 1.0), (2, 1, 2.0)];
        put_together(&mut starts);
        assert_eq!(starts, [(1, 1, 1.0), (0, 2, 2.0)]);
    }

    /// 130 starts become groups of three, the last of which has one: the first group begins at the mean of 0, 1 and 2 s.
    #[test]
    fn many_starts_are_merged_to_their_means() {
        let mut starts: Vec<_> = (0..130).map(|i| (i, 1, i as f64)).collect();
        put_together(&mut starts);
        assert_eq!((starts.len(), starts[0], starts[43]), (44, (0, 3, 1.0), (129, 1, 129.0)));
        assert!(starts.len() <= STARTS);
    }
}
