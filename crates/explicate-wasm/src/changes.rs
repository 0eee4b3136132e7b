//! What changes while a run goes on: rate, delay, loss and buffer of links, and feedback that is set by hand.
//!
//! Changes are carried by a channel and a queue discipline of this crate, which look up the value of the present. They compute what
//! the constant forms compute, so that a run is the same up to its first change.

use std::sync::Arc;

use explicate_core::api::{PortView, Probe};
use explicate_core::channel::{Channel, ChannelInit, ChannelKind, ChannelStages, Disturbance, Disturbed, ServiceCurve};
use explicate_core::params::{Info, Values};
use explicate_core::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, QdiscKind, Verdict};
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::Packet;
use explicate_scenario::model::{ChannelSpec, Link, Queue, Scenario};
use serde_json::Value;

use crate::hand;

/// What a change is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The rate of a link, bit/s. Its controllers learn of it.
    Rate,
    /// The propagation delay of a link, s. Packets keep their order.
    Delay,
    /// The share of packets that a link loses.
    Loss,
    /// The limit of a link's queue, bytes.
    Buffer,
    /// The aggregate feedback of a router, share of the traffic a round trip; below [`hand::OFF`] that of its own law.
    Feedback,
}

impl What {
    const ALL: [(&'static str, What, f64, f64); 5] = [
        ("rate", What::Rate, 1e3, 1e11),
        ("delay", What::Delay, 0.0, 100.0),
        ("loss", What::Loss, 0.0, 1.0),
        ("buffer", What::Buffer, 0.0, 1e12),
        ("feedback", What::Feedback, -2.0, 1.0),
    ];
}

/// A change.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// When.
    pub at: Time,
    /// Name of the link.
    pub link: String,
    /// Of what.
    pub what: What,
    /// The value from then on, in the unit of [`What`].
    pub value: f64,
}

/// Reads `[[seconds, link, what, value], ...]`. The error names the entry.
pub fn read(text: &str) -> Result<Vec<Change>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let list: Value = serde_json::from_str(text).map_err(|e| format!("the changes are no JSON: {e}"))?;
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
    let [at, link, what, value] = entry.as_array().map_or(&[][..], |list| list) else {
        return Err("not [seconds, link, what, value]".to_string());
    };
    let at = at.as_f64().filter(|at| (0.0..=1e6).contains(at)).ok_or("the time is from 0 to 1e6 seconds")?;
    let link = link.as_str().ok_or("the link is a name")?.to_string();
    let known = What::ALL.iter().find(|(name, ..)| what.as_str() == Some(name));
    let &(name, what, least, most) =
        known.ok_or_else(|| format!("{what} is not rate, delay, loss, buffer or feedback"))?;
    let value = value.as_f64().filter(|value| (least..=most).contains(value));
    let value = value.ok_or_else(|| format!("{name} is a number from {least} to {most}"))?;
    Ok(Change { at: Time::from_secs_f64(at), link, what, value })
}

/// Puts changes into a scenario. The error names the link that cannot change so.
pub fn apply(scenario: &mut Scenario, changes: &[Change]) -> Result<(), String> {
    for change in changes {
        if !scenario.links.iter().any(|link| link.name == change.link) {
            return Err(format!("the scenario has no link `{}`", change.link));
        }
    }
    for link in &mut scenario.links {
        let of = |what: What| -> Steps {
            changes.iter().filter(|c| c.link == link.name && c.what == what).map(|c| (c.at, c.value)).collect()
        };
        let [rate, delay, loss, buffer, feedback] =
            [What::Rate, What::Delay, What::Loss, What::Buffer, What::Feedback].map(of);
        if [&rate, &delay, &loss, &buffer, &feedback].iter().all(|steps| steps.is_empty()) {
            continue;
        }
        if link.over.is_some() {
            return Err(format!("{} goes through shared air and cannot change", link.name));
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

/// What can change of a link while it runs.
pub fn possible(link: &Link) -> Vec<&'static str> {
    if link.over.is_some() {
        return Vec::new();
    }
    let droptail = link.queue.as_ref().is_some_and(|queue| queue.kind.name() == "droptail");
    let of = |what: What| match what {
        What::Rate => !has_ruled_rate(link),
        What::Delay | What::Loss => true,
        What::Buffer => droptail,
        What::Feedback => false,
    };
    What::ALL.iter().filter(|(_, what, ..)| of(*what)).map(|(name, ..)| *name).collect()
}

fn has_ruled_rate(link: &Link) -> bool {
    link.channel.iter().any(|c| matches!(c.kind.name(), "trace" | "rate_steps" | "outages" | "fading"))
}

/// Values from times on.
pub(crate) type Steps = Vec<(Time, f64)>;

/// As [`Values::steps`] carries them: whole numbers of a unit.
pub(crate) fn carried(first: u64, steps: &Steps, per_unit: f64) -> Values {
    let mut list = vec![(Time::ZERO, Rate(first))];
    for &(at, value) in steps {
        let value = Rate((value * per_unit).round() as u64);
        // Of several changes at one time the last one holds.
        match list.last_mut().filter(|last| last.0 == at) {
            Some(last) => last.1 = value,
            None => list.push((at, value)),
        }
    }
    with_steps(list)
}

fn with_steps(steps: Vec<(Time, Rate)>) -> Values {
    let mut values = Values::default();
    values.steps = Some(steps.into());
    values
}

const NANO: f64 = 1e9;

fn change_loss(link: &mut Link, steps: &Steps) {
    if !steps.is_empty() {
        link.channel.push(ChannelSpec { kind: &LossSteps, values: carried(0, steps, NANO) });
    }
}

fn change_delay(link: &mut Link, steps: &Steps) {
    if steps.is_empty() {
        return;
    }
    // A link delays by the least of its delays, and the channel adds the rest.
    let values = carried(link.delay.0, steps, NANO);
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
        return Err(format!("the channel of {} rules its rate: it cannot be changed", link.name));
    }
    link.channel.push(ChannelSpec { kind: &LineSteps, values: carried(link.rate.0, steps, 1.0) });
    // A controller that believes in a factor of the rate goes on doing so.
    let factor = link.capacity.0 as f64 / link.rate.0 as f64;
    link.beliefs = steps.iter().map(|&(at, rate)| (at, Rate((rate * factor).round().max(1.0) as u64))).collect();
    link.beliefs.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1 = later.1;
        }
        same
    });
    if let Some(first) = link.beliefs.first().copied().filter(|first| first.0 == Time::ZERO) {
        link.capacity = first.1;
        link.beliefs.remove(0);
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
    let values = carried(limit(value("limit")) as u64, &steps, 1.0);
    let kind: &'static explicate_core::qdisc::AnyQdiscKind = if packets { &PacketTail } else { &ByteTail };
    *queue = Queue { kind, values, mean_packet: queue.mean_packet };
    Ok(())
}

/// A list of steps and where in it the present is.
pub(crate) struct Lookup {
    steps: Arc<[(Time, Rate)]>,
    index: usize,
}

impl Lookup {
    pub(crate) fn new(values: &Values) -> Lookup {
        let steps = values.steps.clone().unwrap_or_else(|| [(Time::ZERO, Rate(0))].into());
        Lookup { steps, index: 0 }
    }
    /// The value at `now`, which never goes back.
    pub(crate) fn at(&mut self, now: Time) -> u64 {
        while self.steps.get(self.index + 1).is_some_and(|next| next.0 <= now) {
            self.index += 1;
        }
        self.steps[self.index].1.0
    }
}

const fn info(name: &'static str, summary: &'static str) -> Info {
    Info { name, summary, source: "ours", params: &[] }
}

struct LossSteps;

impl ChannelKind for LossSteps {
    const INFO: Info = info("loss_changes", "Losses of single packets with a probability that changes");
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let channel = ChangingLoss { share: Lookup::new(init.values), rng: init.rng };
        ChannelStages { on_air: Some(Box::new(channel)), ..ChannelStages::default() }
    }
}

struct ChangingLoss {
    share: Lookup,
    rng: Rng,
}

impl Channel for ChangingLoss {
    fn loses(&mut self, at: Time, _packet: &Packet, _wire_bytes: u32) -> bool {
        let share = self.share.at(at);
        share > 0 && self.rng.uniform() * NANO < share as f64
    }
}

struct DelaySteps;

impl ChannelKind for DelaySteps {
    const INFO: Info = info("delay_changes", "A delay that changes; packets keep their order");
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let channel = ChangingDelay { late: Lookup::new(init.values), last: Time::ZERO };
        ChannelStages { after: Some(Box::new(channel)), ..ChannelStages::default() }
    }
}

struct ChangingDelay {
    late: Lookup,
    /// When the last packet came, without the link's own delay.
    last: Time,
}

impl Disturbance for ChangingDelay {
    fn disturb(&mut self, at: Time, _packet: &Packet) -> Disturbed {
        self.last = (at + Time(self.late.at(at))).max(self.last);
        Disturbed { late: self.last - at, ..Disturbed::default() }
    }
}

struct LineSteps;

impl ChannelKind for LineSteps {
    const INFO: Info = info("rate_changes", "A rate that changes");
    fn build(&self, init: ChannelInit<'_>) -> ChannelStages {
        let steps = init.values.steps.as_deref().unwrap_or_default();
        let pieces = steps.iter().map(|&(from, rate)| (from, per_byte(rate))).collect();
        let line = ChangingLine { pieces, index: 0, part: 0, first: init.rate.bytes_per_sec() };
        ChannelStages { service: Some(Box::new(line)), ..ChannelStages::default() }
    }
}

/// 2^-32 ns per byte, as a constant line counts.
fn per_byte(rate: Rate) -> u64 {
    ((8_000_000_000u128 << 32) / rate.0.max(1) as u128) as u64
}

struct ChangingLine {
    /// From when on, and 2^-32 ns per byte.
    pieces: Vec<(Time, u64)>,
    index: usize,
    /// 2^-32 ns that the last departure left over.
    part: u32,
    first: f64,
}

impl ServiceCurve for ChangingLine {
    fn finish(&mut self, start: Time, bytes: u32, idle: bool) -> Time {
        while self.pieces.get(self.index + 1).is_some_and(|next| next.0 <= start) {
            self.index += 1;
        }
        let mut at = start;
        // What is still to send, 2^-32 bytes.
        let mut left = (bytes as u128) << 32;
        let mut carried = if idle { 0 } else { self.part as u128 };
        loop {
            let per_byte = self.pieces[self.index].1 as u128;
            let span = ((left * per_byte) >> 32) + carried;
            let finish = at + Time((span >> 32) as u64);
            let end = self.pieces.get(self.index + 1).map_or(Time::NEVER, |next| next.0);
            if finish <= end {
                self.part = span as u32;
                return finish;
            }
            let done = (((end.since(at).0 as u128) << 32).saturating_sub(carried) << 32) / per_byte;
            (left, carried, at) = (left.saturating_sub(done), 0, end);
            self.index += 1;
        }
    }
    fn offered(&self, from: Time, to: Time) -> f64 {
        let mut sum = 0.0;
        for (i, &(begin, per_byte)) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(i + 1).map_or(Time::NEVER, |next| next.0);
            let (begin, end) = (begin.max(from), end.min(to));
            if begin < end {
                sum += end.since(begin).0 as f64 * (1u64 << 32) as f64 / per_byte as f64;
            }
        }
        sum
    }
    fn mean_rate(&self) -> f64 {
        self.first
    }
}

/// DropTail with a limit that changes, in bytes.
struct ByteTail;
/// The same in packets.
struct PacketTail;

impl QdiscKind for ByteTail {
    const INFO: Info = info("droptail", "First in, first out; drops what does not fit into a limit that changes");
    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(ChangingTail { limit: Lookup::new(init.values), packets: false }))
    }
}

impl QdiscKind for PacketTail {
    const INFO: Info = ByteTail::INFO;
    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Arrival(Box::new(ChangingTail { limit: Lookup::new(init.values), packets: true }))
    }
}

struct ChangingTail {
    limit: Lookup,
    packets: bool,
}

impl Qdisc for ChangingTail {
    fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        let limit = self.limit.at(now);
        let fits = match self.packets {
            true => (port.backlog_packets as u64) < limit,
            false => port.backlog_bytes + packet.ip_len as u64 <= limit,
        };
        if fits || !port.busy { Verdict::Accept } else { Verdict::Drop(DropCause::Overflow) }
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(steps: &[(u64, u64)]) -> ChangingLine {
        let pieces = steps.iter().map(|&(ms, bps)| (Time::millis(ms), per_byte(Rate(bps)))).collect();
        ChangingLine { pieces, index: 0, part: 0, first: 0.0 }
    }

    #[test]
    fn a_packet_across_a_change() {
        // 1000 bytes at 8 Mbit/s take 1 ms; half at 8 and half at 4 Mbit/s 1.5 ms.
        let mut line = line(&[(0, 8_000_000), (10, 4_000_000)]);
        assert_eq!(line.finish(Time::ZERO, 1000, true), Time::millis(1));
        assert_eq!(line.finish(Time::micros(9500), 1000, true), Time::millis(11));
        assert_eq!(line.finish(Time::millis(11), 1000, true), Time::millis(13));
        assert_eq!(line.offered(Time::millis(9), Time::millis(12)), 1000.0 + 1000.0);
    }

    #[test]
    fn packets_keep_their_order_when_the_delay_falls() {
        let values = carried(0, &vec![(Time::millis(10), 0.0)], NANO);
        let mut steps = values.steps.as_deref().unwrap().to_vec();
        steps[0].1 = Rate(5_000_000);
        let values = with_steps(steps);
        let mut delay = ChangingDelay { late: Lookup::new(&values), last: Time::ZERO };
        assert_eq!(delay.disturb(Time::millis(9), &Packet::EMPTY).late, Time::millis(5));
        assert_eq!(delay.disturb(Time::millis(11), &Packet::EMPTY).late, Time::millis(3), "behind the last one");
        assert_eq!(delay.disturb(Time::millis(20), &Packet::EMPTY).late, Time::ZERO);
    }

    #[test]
    fn errors_name_the_entry() {
        let wrong = |text: &str| read(text).unwrap_err();
        assert!(wrong("[[1, \"a\", \"rate\", 1e6], [2, \"a\", \"colour\", 1]]").starts_with("change 2: \"colour\""));
        assert!(wrong("[[1, \"a\", \"loss\", 2]]").contains("from 0 to 1"));
        assert!(wrong("[[1]]").contains("seconds, link"));
        assert!(wrong("{").contains("no JSON"));
    }
}
