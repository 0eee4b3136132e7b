//! Changes of the network during a run: rate, delay, loss and buffer of links, and feedback that is set by hand.
//!
//! A scenario with changes gets the channels and queue disciplines of `changing.rs` in place of the constant ones.

use explicate_core::qdisc::AnyQdiscKind;
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::{ChannelSpec, Link, Queue, Scenario};
use serde_json::Value;

use crate::changing::{ByteTail, DelaySteps, LineSteps, LossSteps, PacketTail};
use crate::hand;
use crate::steps::{NANO, Steps, values_of, with_steps};

/// The quantity that a change sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// The rate of a link, bit/s. It is also configured in its controllers.
    Rate,
    /// The propagation delay of a link, s. Packets keep their order.
    Delay,
    /// The share of packets that a link loses.
    Loss,
    /// The limit of a link's queue, bytes.
    Buffer,
    /// The aggregate feedback of a router, share of the traffic per round trip; below [`hand::OFF`] the router
    /// computes its own.
    Feedback,
}

impl Quantity {
    const ALL: [(&'static str, Quantity, f64, f64); 5] = [
        ("rate", Quantity::Rate, 1e3, 1e11),
        ("delay", Quantity::Delay, 0.0, 100.0),
        ("loss", Quantity::Loss, 0.0, 1.0),
        ("buffer", Quantity::Buffer, 0.0, 1e12),
        ("feedback", Quantity::Feedback, -2.0, 1.0),
    ];
}

/// A change.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Start time.
    pub at: Time,
    /// Name of the link.
    pub link: String,
    /// The quantity.
    pub quantity: Quantity,
    /// The new value, in the unit of [`Quantity`].
    pub value: f64,
}

/// Reads `[[seconds, link, quantity, value], ...]`. The error names the entry.
pub fn read(text: &str) -> Result<Vec<Change>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let list: Value = serde_json::from_str(text).map_err(|e| format!("the changes are not JSON: {e}"))?;
    let list = list.as_array().ok_or("the changes are a list")?;
    if list.len() > 1000 {
        return Err("more than 1000 changes".to_string());
    }
    let mut changes: Vec<Change> = list
        .iter()
        .enumerate()
        .map(|(i, entry)| one(entry).map_err(|e| format!("change {}: {e}", i + 1)))
        .collect::<Result<_, _>>()?;
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

fn one(entry: &Value) -> Result<Change, String> {
    let [at, link, quantity, value] = entry.as_array().map_or(&[][..], |list| list) else {
        return Err("not [seconds, link, quantity, value]".to_string());
    };
    let at = at.as_f64().filter(|at| (0.0..=1e6).contains(at)).ok_or("the time is from 0 to 1e6 seconds")?;
    let link = link.as_str().ok_or("the link is a name")?.to_string();
    let known = Quantity::ALL.iter().find(|(name, ..)| quantity.as_str() == Some(name));
    let &(name, quantity, least, most) =
        known.ok_or_else(|| format!("{quantity} is not rate, delay, loss, buffer or feedback"))?;
    let value = value.as_f64().filter(|value| (least..=most).contains(value));
    let value = value.ok_or_else(|| format!("{name} is a number from {least} to {most}"))?;
    Ok(Change { at: Time::from_secs_f64(at), link, quantity, value })
}

/// Puts changes into a scenario. The error names a link that cannot change in this way.
pub fn apply(scenario: &mut Scenario, changes: &[Change]) -> Result<(), String> {
    for change in changes {
        if !scenario.links.iter().any(|link| link.name == change.link) {
            return Err(format!("the scenario has no link `{}`", change.link));
        }
    }
    for link in &mut scenario.links {
        let of = |quantity: Quantity| -> Steps {
            changes.iter().filter(|c| c.link == link.name && c.quantity == quantity).map(|c| (c.at, c.value)).collect()
        };
        let [rate, delay, loss, buffer, feedback] =
            [Quantity::Rate, Quantity::Delay, Quantity::Loss, Quantity::Buffer, Quantity::Feedback].map(of);
        if [&rate, &delay, &loss, &buffer, &feedback].iter().all(|steps| steps.is_empty()) {
            continue;
        }
        if link.over.is_some() {
            return Err(format!("{} uses a wireless medium and cannot change", link.name));
        }
        // Losses come first: the name of their random stream has their place in the list.
        change_loss(link, &loss);
        change_delay(link, &delay);
        change_rate(link, &rate)?;
        change_buffer(link, &buffer)?;
        if !feedback.is_empty() {
            hand::take_over(link, &feedback)?;
        }
    }
    Ok(())
}

/// The quantities of a link that can change during a run.
pub fn possible(link: &Link) -> Vec<&'static str> {
    if link.over.is_some() {
        return Vec::new();
    }
    let droptail = link.queue.as_ref().is_some_and(|queue| queue.kind.name() == "droptail");
    let of = |quantity: Quantity| match quantity {
        Quantity::Rate => !has_ruled_rate(link),
        Quantity::Delay | Quantity::Loss => true,
        Quantity::Buffer => droptail,
        Quantity::Feedback => false,
    };
    Quantity::ALL.iter().filter(|(_, quantity, ..)| of(*quantity)).map(|(name, ..)| *name).collect()
}

fn has_ruled_rate(link: &Link) -> bool {
    link.channel.iter().any(|c| matches!(c.kind.name(), "trace" | "rate_steps" | "outages" | "fading"))
}

fn change_loss(link: &mut Link, steps: &Steps) {
    if !steps.is_empty() {
        link.channel.push(ChannelSpec { kind: &LossSteps, values: values_of(0, steps, NANO) });
    }
}

fn change_delay(link: &mut Link, steps: &Steps) {
    if steps.is_empty() {
        return;
    }
    // A link has the minimum of its delays, and the channel adds the rest.
    let values = values_of(link.delay.0, steps, NANO);
    let list = values.steps.as_deref().unwrap_or_default();
    let least = list.iter().map(|step| step.1.0).min().unwrap_or(0);
    let rest = list.iter().map(|&(at, delay)| (at, Rate(delay.0 - least))).collect();
    link.delay = Time(least);
    link.channel.push(ChannelSpec { kind: &DelaySteps, values: with_steps(rest) });
}

fn change_rate(link: &mut Link, steps: &Steps) -> Result<(), String> {
    if steps.is_empty() {
        return Ok(());
    }
    if has_ruled_rate(link) {
        return Err(format!("the channel of {} sets its rate, which cannot be changed", link.name));
    }
    link.channel.push(ChannelSpec { kind: &LineSteps, values: values_of(link.rate.0, steps, 1.0) });
    // A controller that is configured with a factor of the rate keeps that factor.
    let factor = link.capacity.0 as f64 / link.rate.0 as f64;
    link.capacity_steps = steps.iter().map(|&(at, rate)| (at, Rate((rate * factor).round().max(1.0) as u64))).collect();
    link.capacity_steps.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1 = later.1;
        }
        same
    });
    if let Some(first) = link.capacity_steps.first().copied().filter(|first| first.0 == Time::ZERO) {
        link.capacity = first.1;
        link.capacity_steps.remove(0);
    }
    Ok(())
}

fn change_buffer(link: &mut Link, steps: &Steps) -> Result<(), String> {
    if steps.is_empty() {
        return Ok(());
    }
    let Some(queue) = link.queue.as_mut().filter(|queue| queue.kind.name() == "droptail") else {
        return Err(format!("the buffer of {} can be changed only where its queue is droptail", link.name));
    };
    let given = queue.values.given();
    let value = |name| given.iter().find(|(n, _)| *n == name).map_or(0.0, |(_, v)| *v);
    let packets = value("count") == 1.0;
    // Rounded as the discipline itself does.
    let limit = |bytes: f64| if packets { (bytes / queue.mean_packet + 0.5).floor() } else { bytes.floor() };
    let steps = steps.iter().map(|&(at, bytes)| (at, limit(bytes))).collect();
    let values = values_of(limit(value("limit")) as u64, &steps, 1.0);
    let kind: &'static AnyQdiscKind = if packets { &PacketTail } else { &ByteTail };
    *queue = Queue { kind, values, mean_packet: queue.mean_packet };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_entry() {
        let wrong = |text: &str| read(text).unwrap_err();
        assert!(wrong("[[1, \"a\", \"rate\", 1e6], [2, \"a\", \"colour\", 1]]").starts_with("change 2: \"colour\""));
        assert!(wrong("[[1, \"a\", \"loss\", 2]]").contains("from 0 to 1"));
        assert!(wrong("[[1]]").contains("seconds, link"));
        assert!(wrong("{").contains("not JSON"));
    }
}
