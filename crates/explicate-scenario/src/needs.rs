//! Parameters of one part that need another one: without it they change nothing. A list of data; queue disciplines state theirs
//! beside their parameters ([`explicate_core::qdisc::QdiscKind::conflicts`]), because these compare lengths.

use explicate_core::params::{Param, Unit, Values};

use crate::document::Place;
use crate::params::in_unit;
use crate::reader::Context;

/// The part whose parameters they are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Part {
    /// A channel.
    Channel(&'static str),
    /// A kind of medium.
    Medium(&'static str),
    /// A controller of a port that has these parameters: protocols of a family share theirs.
    Router,
    /// A flow that has these parameters: its protocol's, its recovery's, or those of every flow.
    Flow,
    /// A flow that has these parameters as numbers of packets.
    InPackets,
}

/// What the other parameter has to be.
#[derive(Clone, Copy)]
pub(crate) enum Is {
    /// This word.
    Word(&'static str),
    /// Any word but this one.
    Not(&'static str),
    /// `true`.
    On,
    /// `false`.
    Off,
    /// Any value but its default, which switches something off.
    Set,
    /// Its default, which switches something off.
    Unset,
    /// Greater than the first of `params`.
    Above,
    /// The same or greater.
    AtLeast,
}

/// `params` have an effect only if `other` is so.
pub(crate) struct Needs {
    pub(crate) of: Part,
    pub(crate) params: &'static [&'static str],
    pub(crate) other: &'static str,
    pub(crate) is: Is,
    /// What follows if the numbers are in the wrong order; empty for the rest.
    pub(crate) then: &'static str,
}

const fn needs(of: Part, params: &'static [&'static str], other: &'static str, is: Is) -> Needs {
    Needs { of, params, other, is, then: "" }
}

const fn order(of: Part, lower: &'static [&'static str], upper: &'static str, is: Is, then: &'static str) -> Needs {
    Needs { of, params: lower, other: upper, is, then }
}

const FADING: Part = Part::Channel("fading");
const DCF: Part = Part::Medium("dcf");

/// All of them.
pub(crate) const NEEDS: &[Needs] = &[
    needs(Part::Channel("random_loss"), &["spread"], "distribution", Is::Word("normal")),
    needs(Part::Channel("random_loss"), &["shape"], "distribution", Is::Word("pareto")),
    needs(Part::Channel("jitter"), &["spread"], "distribution", Is::Word("normal")),
    needs(Part::Channel("jitter"), &["shape"], "distribution", Is::Word("pareto")),
    needs(FADING, &["fade", "rician_bad"], "bad", Is::Not("blocked")),
    needs(FADING, &["rician_good"], "good", Is::Not("clear")),
    needs(DCF, &["arf_up", "arf_down"], "adaptation", Is::Word("arf")),
    needs(DCF, &["snr_at_range", "error_slope"], "errors", Is::Word("snr")),
    needs(DCF, &["capture_threshold"], "capture", Is::Not("off")),
    needs(DCF, &["coherence"], "drift", Is::Set),
    needs(DCF, &["long_retry"], "rts_threshold", Is::Set),
    needs(DCF, &["short_retry", "long_retry"], "retry_forever", Is::Off),
    order(DCF, &["decode_range"], "sense_range", Is::AtLeast, "stations decode frames to which they do not defer"),
    needs(Part::Router, &["margin", "cloud_queue"], "law", Is::Word("capacity")),
    needs(Part::Router, &["result_weight"], "law", Is::Not("paper")),
    needs(Part::Router, &["result_weight"], "law", Is::Not("available")),
    needs(Part::Router, &["spare_multiple"], "law", Is::Word("shared")),
    needs(
        Part::Router,
        &["estimate_error", "estimate_of", "estimate_delay", "estimate_hold"],
        "estimator",
        Is::Word("oracle"),
    ),
    needs(Part::Router, &["estimate_of", "estimate_hold"], "estimate_error", Is::Set),
    needs(Part::Router, &["probe_rate", "probe_bytes", "probes"], "estimator", Is::Not("oracle")),
    needs(Part::Router, &["first_rate"], "estimator", Is::Not("oracle")),
    needs(Part::Router, &["first_rate"], "estimator", Is::Not("spruce")),
    needs(Part::Router, &["eps_r"], "exact_rtt", Is::Unset),
    order(
        Part::Router,
        &["min_interval"],
        "max_interval",
        Is::AtLeast,
        "the bounds of the control interval exclude each other",
    ),
    order(Part::Router, &["least_period"], "period", Is::AtLeast, "measurements are `least_period` apart"),
    needs(Part::Flow, &["retransmission_factor"], "retransmission_timer", Is::On),
    needs(Part::Flow, &["air_loss"], "guard", Is::Not("off")),
    needs(Part::Flow, &["scone_every"], "scone", Is::On),
    order(Part::Flow, &["min_rto"], "max_rto", Is::AtLeast, "every timeout lasts `max_rto`"),
    order(Part::Flow, &["low_window"], "high_window", Is::Above, "the response function has no slope between them"),
    order(Part::Flow, &["high_p"], "low_p", Is::Above, "larger windows would bear more losses than smaller ones"),
    order(Part::Flow, &["s_min"], "s_max", Is::Above, "every step has one length, and no search ends"),
    order(Part::InPackets, &["alpha"], "beta", Is::AtLeast, "the window grows and shrinks with the same queue"),
    order(Part::Flow, &["probe_rtt"], "rtprop_window", Is::Above, "the flow measures the empty path all the time"),
];

impl Needs {
    /// Whether a part with these parameters is meant.
    fn concerns(&self, of: Part, declared: &[&Param]) -> bool {
        let has =
            |name: &str| declared.iter().any(|p| p.name == name && (of != Part::InPackets || p.unit == Unit::Packets));
        self.of == of && has(self.other) && self.params.iter().any(|name| has(name))
    }
}

/// The number of a parameter, its default if it is not given.
fn number(declared: &[&Param], values: &Values, name: &str) -> f64 {
    let param = declared.iter().find(|p| p.name == name);
    values.number(name).or(param.map(|p| p.default)).unwrap_or(f64::NAN)
}

/// Warns of the parameters of a part that have no effect. `title` is the part in messages, and `place` of a parameter is where
/// the scenario gives it, `None` if it does not.
pub(crate) fn check(
    ctx: &Context<'_>,
    of: Part,
    title: &str,
    declared: &[&'static Param],
    values: &Values,
    place: &dyn Fn(&str) -> Option<Place>,
) {
    for rule in NEEDS.iter().filter(|rule| rule.concerns(of, declared)) {
        let other = rule.other;
        let Some(param) = declared.iter().find(|p| p.name == other) else { continue };
        let x = number(declared, values, other);
        if let Is::Above | Is::AtLeast = rule.is {
            let lower = rule.params[0];
            let least = number(declared, values, lower);
            let good = if let Is::Above = rule.is { x > least } else { x >= least };
            // `auto` has no number.
            if good || x.is_nan() || least.is_nan() {
                continue;
            }
            let (Some(at), Some(first)) =
                (place(lower).or_else(|| place(other)), declared.iter().find(|p| p.name == lower))
            else {
                continue;
            };
            let relation = if let Is::Above = rule.is { "is not above" } else { "is below" };
            let (a, b) = (in_unit(param, x), in_unit(first, least));
            let (a, b) = (a.trim_matches('"'), b.trim_matches('"'));
            let what = format!("`{other}` ({a}) {relation} `{lower}` ({b}) of {title}: {}", rule.then);
            ctx.warn(at, what, format!("write a larger `{other}` or a smaller `{lower}`"));
            continue;
        }
        let word = |w: &str| matches!(param.unit, Unit::Choice(words) if words.get(x as usize) == Some(&w));
        let set = values.number(other).is_some();
        let (good, why, write) = match rule.is {
            Is::Word(w) => (word(w), format!("without `{other} = {w:?}`"), "write that, or remove it"),
            Is::Not(w) => (!word(w), format!("with `{other} = {w:?}`"), "remove it, or write another word there"),
            Is::On => (x != 0.0, format!("without `{other} = true`"), "write that, or remove it"),
            Is::Off => (x == 0.0, format!("with `{other} = true`"), "remove one of them"),
            Is::Set => (set, format!("without `{other}`"), "write that too, or remove it"),
            Is::Unset | Is::Above | Is::AtLeast => (!set, format!("beside `{other}`"), "remove one of them"),
        };
        if good {
            continue;
        }
        for name in rule.params.iter().filter(|name| values.number(name).is_some()) {
            if let Some(at) = place(name) {
                ctx.unused(at, name, format!("`{name}` of {title} has no effect {why}"), write);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::registry::{CHANNELS, MEDIA, RECOVERIES, protocols};
    use explicate_core::{endpoint, recovery};

    /// Every rule names parameters and words that exist, of one part.
    #[test]
    fn names_exist() {
        for rule in NEEDS {
            let lists: Vec<Vec<&Param>> = match rule.of {
                Part::Channel(name) => {
                    CHANNELS.iter().filter(|c| c.name() == name).map(|c| c.params().iter().collect()).collect()
                }
                Part::Medium(name) => {
                    MEDIA.iter().filter(|m| m.name() == name).map(|m| m.params().iter().collect()).collect()
                }
                Part::Router => protocols().map(|p| p.router_params().iter().collect()).collect(),
                Part::InPackets => protocols().map(|p| p.params().iter().collect()).collect(),
                Part::Flow => {
                    let common = || recovery::COMMON.iter().chain(endpoint::PARAMS);
                    let of_protocols = protocols().map(|p| p.params().iter().chain(common()).collect());
                    of_protocols.chain(RECOVERIES.iter().map(|r| r.params().iter().chain(common()).collect())).collect()
                }
            };
            let concerned: Vec<_> = lists.iter().filter(|list| rule.concerns(rule.of, list)).collect();
            let all = |name: &str| concerned.iter().any(|list| list.iter().any(|p| p.name == name));
            assert!(rule.params.iter().all(|name| all(name)) && all(rule.other), "{:?} {}", rule.params, rule.other);
            if let Is::Word(word) | Is::Not(word) = rule.is {
                let has = |p: &&&Param| matches!(p.unit, Unit::Choice(words) if words.contains(&word));
                let mut others = concerned.iter().flat_map(|list| list.iter()).filter(|p| p.name == rule.other);
                assert!(others.any(|p| has(&p)), "{} has no word {word}", rule.other);
            }
        }
    }
}
