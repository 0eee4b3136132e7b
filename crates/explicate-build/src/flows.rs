//! Start times, arguments and applications of flows.

use explicate_core::agent::Address;
use explicate_core::endpoint::{FlowInit, ReceiverEndpoint, SenderEndpoint};
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};

use crate::session::{Plan, Sessions};
use crate::source::{OnOff, Source};
use explicate_scenario::model::{FlowGroup, Size, Start, Traffic};

/// When the flows of a group start, by their number in it; those after the end of the run are omitted.
pub fn starts(group: &FlowGroup, seed: u64, end: Time) -> Vec<(u32, Time)> {
    let mut arrivals = Rng::stream(seed, &format!("{}/arrivals", group.name));
    let mut arrived = Time::ZERO;
    let mut starts = Vec::new();
    for i in 0..group.count {
        let start = match group.start {
            Start::At(at) => at,
            Start::Spread { from, over } => from + Time((over.0 as u128 * i as u128 / group.count as u128) as u64),
            Start::Uniform { from, over } => {
                let share = Rng::stream(seed, &format!("{}.{i}/start", group.name)).uniform();
                from + Time::from_secs_f64(over.as_secs_f64() * share)
            }
            Start::Poisson { from, per_second } => {
                arrived += Time::from_secs_f64(arrivals.exponential(1.0 / per_second));
                from + arrived
            }
        };
        if start <= end {
            starts.push((i, start));
        } else if matches!(group.start, Start::Poisson { .. }) {
            break; // the others start even later
        }
    }
    starts
}

/// The arguments for making a flow of a group, whose host has an interface of this rate. It falls back in its own stack.
///
/// # Errors
/// The fallback is not registered.
pub fn init(group: &FlowGroup, id: u32, interface: Rate) -> Result<FlowInit<'_>, String> {
    let resolved = &group.resolved;
    Ok(FlowInit {
        id,
        protocol: resolved.protocol,
        fallback: registry::fallback(resolved.stack)?,
        recovery: resolved.recovery,
        values: &group.values,
        packet: group.packet,
        interface,
    })
}

/// The application of the flow that `init` describes, with this name, which leaves from `own` and begins at `start`.
/// The flow's number grows by `step` per session where sessions are distinguished by it.
pub fn source(
    group: &FlowGroup,
    name: &str,
    seed: u64,
    init: &FlowInit<'_>,
    own: Address,
    start: Time,
    step: u32,
) -> Source {
    let stop = group.stop.unwrap_or(Time::NEVER);
    let stream = || Rng::stream(seed, &format!("{name}/traffic"));
    match &group.traffic {
        Traffic::Bulk if stop == Time::NEVER => Source::Bulk,
        Traffic::Bulk => Source::Until { stop, started: false },
        Traffic::Sized(size) => Source::Sized(draw(size, &mut stream())),
        Traffic::OnOff { on, off, random } => {
            let rng = random.then(stream);
            Source::OnOff(Box::new(OnOff { on: *on, off: *off, rng, stop, active: false }))
        }
        Traffic::Sessions { timeouts, pause, duration, random } => {
            // The arguments for making a session, kept for later sessions.
            let FlowInit { id, protocol, fallback, recovery, values: _, packet, interface } = *init;
            let values = init.values.clone();
            let fresh = move |session: u64| {
                let id = id.wrapping_add(step.wrapping_mul(session as u32));
                let init = FlowInit { id, protocol, fallback, recovery, values: &values, packet, interface };
                let mut flow = SenderEndpoint::new(&init);
                flow.attach(own);
                (flow, ReceiverEndpoint::new(&init).listening())
            };
            let (timeouts, pause, random) = (*timeouts, *pause, *random);
            let plan = Plan { timeouts, pause, duration: duration.unwrap_or(Time::NEVER), random, stop };
            Source::Sessions(Box::new(Sessions::new(plan, start, stream(), Box::new(fresh))))
        }
    }
}

/// Draws the length of a transfer, at least one byte.
pub fn draw(size: &Size, rng: &mut Rng) -> u64 {
    let bytes = match *size {
        Size::Fixed(bytes) => return bytes.max(1),
        Size::Exponential(mean) => rng.exponential(mean),
        Size::Pareto { mean, shape } => rng.pareto(mean, shape),
    };
    // A billion bytes bounds the tail.
    bytes.clamp(1.0, 1e9) as u64
}
