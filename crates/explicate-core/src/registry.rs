//! Finds protocols, recoveries, queue disciplines, channels, media and presets by name.
//!
//! A name of a flow's `protocol` resolves as a preset, then as a protocol; `protocol/recovery` names both. With the feature `std`,
//! `register` adds protocols of other crates at run time.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::api::AnyProtocol;
use crate::channel::AnyChannelKind;
use crate::medium::AnyMediumKind;
use crate::params::Param;
use crate::presets::{PRESETS, Preset, STACKS};
use crate::qdisc::AnyQdiscKind;
use crate::recovery::{AnyRecoveryKind, COMMON};
use crate::stacks::Stack;

use crate::endpoint::PARAMS as FLOW;

#[cfg(feature = "std")]
pub use self::run_time::{RegisterError, register, replace};
pub use crate::channel::CHANNELS;
pub use crate::estimate::ESTIMATORS;
pub use crate::medium::MEDIA;
pub use crate::protocols::PROTOCOLS;
pub use crate::qdisc::QDISCS;
pub use crate::recovery::RECOVERIES;

#[cfg(feature = "std")]
mod run_time;
#[cfg(feature = "std")]
use self::run_time::added;
#[cfg(not(feature = "std"))]
fn added() -> [&'static AnyProtocol; 0] {
    []
}

/// What a flow's `protocol` key resolves to.
#[derive(Clone, Copy)]
pub struct Resolved {
    /// Congestion controller, receiver and router.
    pub protocol: &'static AnyProtocol,
    /// The recovery.
    pub recovery: &'static AnyRecoveryKind,
    /// Parameters that the preset sets.
    pub params: &'static [(&'static str, f64)],
    /// The stack, which sets the parameters that neither the preset nor the scenario sets.
    pub stack: Option<&'static Stack>,
    /// Parameters of controllers that the preset sets.
    pub router: &'static [(&'static str, f64)],
}

impl Resolved {
    /// The parameters that the preset sets, then those that the stack sets; of two values of a name the first counts.
    pub fn sets(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let protocol = self.protocol;
        self.params.iter().copied().chain(self.stack.into_iter().flat_map(move |stack| stack.sets(protocol)))
    }
}

/// Every protocol: those of this crate, then those that were registered at run time, in the order of their registration.
pub fn protocols() -> impl Iterator<Item = &'static AnyProtocol> {
    PROTOCOLS.iter().copied().chain(added())
}
/// Finds a protocol by name.
pub fn protocol(name: &str) -> Option<&'static AnyProtocol> {
    protocols().find(|p| p.name() == name)
}
/// The protocol whose controllers answer the packets of `protocol`: itself, another, or none if it works end to end.
pub fn controller(protocol: &'static AnyProtocol) -> Option<&'static AnyProtocol> {
    Some(protocol.controller().unwrap_or(protocol)).filter(|p| p.has_router())
}
/// Finds a recovery by name.
pub fn recovery(name: &str) -> Option<&'static AnyRecoveryKind> {
    RECOVERIES.iter().copied().find(|r| r.name() == name)
}
/// Finds a queue discipline by name.
pub fn qdisc(name: &str) -> Option<&'static AnyQdiscKind> {
    QDISCS.iter().copied().find(|q| q.name() == name)
}
/// Finds a channel by name.
pub fn channel(name: &str) -> Option<&'static AnyChannelKind> {
    CHANNELS.iter().copied().find(|c| c.name() == name)
}
/// Finds a medium by name.
pub fn medium(name: &str) -> Option<&'static AnyMediumKind> {
    MEDIA.iter().copied().find(|m| m.name() == name)
}
/// Finds a preset by name.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

/// Resolves a flow's `protocol` key, without a stack; the error lists the accepted names.
pub fn resolve(name: &str) -> Result<Resolved, String> {
    resolve_in(name, None)
}

/// Resolves a flow's `protocol` key for a host with this stack; the error lists the accepted names.
pub fn resolve_in(name: &str, stack: Option<&'static Stack>) -> Result<Resolved, String> {
    if let Some(p) = preset(name) {
        let unknown = |what: &str| format!("preset `{name}` names the {what}, which is not registered");
        let repair = stack.and_then(|s| s.recovery_of(p)).unwrap_or(p.recovery);
        return Ok(Resolved {
            protocol: protocol(p.protocol).ok_or_else(|| unknown(p.protocol))?,
            recovery: recovery(repair).ok_or_else(|| unknown(repair))?,
            params: p.params,
            stack,
            router: p.router,
        });
    }
    let repair = stack.and_then(|s| s.recovery).unwrap_or(crate::presets::DEFAULT_RECOVERY);
    let (first, second) = name.split_once('/').unwrap_or((name, repair));
    let Some(protocol) = protocol(first) else {
        return Err(unknown("protocol", first, PRESETS.iter().map(|p| p.name).chain(protocols().map(|p| p.name()))));
    };
    let Some(recovery) = recovery(second) else {
        return Err(unknown("recovery", second, RECOVERIES.iter().map(|r| r.name())));
    };
    Ok(Resolved { protocol, recovery, params: &[], stack, router: &[] })
}

/// The TCP of an explicit flow where no router answers, as a host with this stack has it.
///
/// # Errors
/// It is not registered.
pub fn fallback(stack: Option<&'static Stack>) -> Result<Resolved, String> {
    resolve_in(crate::presets::DEFAULT_FALLBACK, stack)
}

fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = known.collect();
    names.sort_unstable();
    names.dedup();
    format!("no {kind} is called `{name}`; there are {}", names.join(", "))
}

/// One row of `explicate protocols`.
pub struct Entry {
    /// `protocol`, `recovery`, `router`, `qdisc`, `channel`, `medium`, `estimator`, `stack` or `preset`.
    pub kind: &'static str,
    /// The name in scenarios.
    pub name: &'static str,
    /// One sentence.
    pub summary: String,
    /// Paper or RFC.
    pub source: &'static str,
    /// Parameters.
    pub params: Vec<Param>,
}

/// Everything that is registered, in the order of the registries.
pub fn entries() -> Vec<Entry> {
    let mut all = Vec::new();
    let mut put = |kind, name, summary: &str, source, params: &[Param]| {
        all.push(Entry { kind, name, summary: summary.to_string(), source, params: params.to_vec() });
    };
    for p in protocols() {
        put("protocol", p.name(), p.summary(), p.source(), p.params());
    }
    for r in RECOVERIES {
        let params: Vec<Param> = COMMON.iter().chain(r.params()).copied().collect();
        put("recovery", r.name(), r.summary(), r.source(), &params);
    }
    for p in protocols().filter(|p| p.has_router()) {
        put("router", p.name(), &format!("The router of {}.", p.name()), p.source(), p.router_params());
    }
    for q in QDISCS {
        put("qdisc", q.name(), q.summary(), q.source(), q.params());
    }
    for c in CHANNELS {
        put("channel", c.name(), c.summary(), c.source(), c.params());
    }
    for e in ESTIMATORS {
        put("estimator", e.name(), e.summary(), e.source(), e.params());
    }
    for m in MEDIA {
        put("medium", m.name(), m.summary(), m.source(), m.params());
    }
    for s in STACKS {
        put("stack", s.name, s.summary, s.source, &[]);
    }
    for p in PRESETS {
        // Keys of a flow with this preset: the parameters of the protocol, of the recovery, and of every flow.
        let of_protocol = protocol(p.protocol).map_or(&[][..], |protocol| protocol.params());
        let of_recovery = recovery(p.recovery).map_or(&[][..], |recovery| recovery.params());
        let params: Vec<Param> = of_protocol.iter().chain(COMMON).chain(of_recovery).chain(FLOW).copied().collect();
        let summary = format!("{} ({}/{})", p.summary, p.protocol, p.recovery);
        put("preset", p.name, &summary, p.source, &params);
    }
    all
}
