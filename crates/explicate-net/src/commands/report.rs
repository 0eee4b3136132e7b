//! Reports of transfers: lines of text, and JSON in the format of iperf3.

use std::collections::BTreeMap;

use explicate_core::units::{Time, per_second};
use serde_json::{Value, json};

use crate::endpoint::sending::Sending;

/// Totals of a flow at the end of an interval.
#[derive(Clone, Copy, Default)]
pub(super) struct Done {
    /// Payload bytes acknowledged in order.
    pub(super) bytes: u64,
    /// Packets retransmitted.
    pub(super) retransmissions: u64,
    rtt_sum: u128,
    rtt_count: u64,
}

impl Done {
    pub(super) fn of(flow: &Sending) -> Done {
        let stats = flow.flow.stats();
        Done {
            bytes: flow.earlier + flow.flow.acked() as u64 * flow.flow.payload() as u64,
            retransmissions: flow.earlier_resent + stats.retransmissions,
            rtt_sum: stats.rtt_sum,
            rtt_count: stats.rtt_count,
        }
    }
    fn since(self, before: Done) -> Done {
        Done {
            bytes: self.bytes.saturating_sub(before.bytes),
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            rtt_sum: self.rtt_sum.saturating_sub(before.rtt_sum),
            rtt_count: self.rtt_count.saturating_sub(before.rtt_count),
        }
    }
    fn rtt_us(self) -> u64 {
        (self.rtt_sum.checked_div(self.rtt_count as u128).unwrap_or(0) / 1000) as u64
    }
}

/// A flow in an interval.
fn stream(id: u32, (from, to): (Time, Time), done: Done, cwnd: f64, packet: u16) -> Value {
    let span = to.since(from);
    json!({
        "socket": id,
        "start": from.to_seconds(),
        "end": to.to_seconds(),
        "seconds": span.to_seconds(),
        "bytes": done.bytes,
        "bits_per_second": if span > Time::ZERO { 8.0 * per_second(done.bytes, span) } else { 0.0 },
        "retransmits": done.retransmissions,
        "snd_cwnd": (cwnd * packet as f64) as u64,
        "rtt": done.rtt_us(),
        "omitted": false,
        "sender": true,
    })
}

/// The sum of flows in an interval.
fn sum(streams: &[Value], (from, to): (Time, Time)) -> Value {
    let total = |key: &str| streams.iter().filter_map(|s| s[key].as_u64()).sum::<u64>();
    let span = to.since(from);
    let bytes = total("bytes");
    json!({
        "start": from.to_seconds(),
        "end": to.to_seconds(),
        "seconds": span.to_seconds(),
        "bytes": bytes,
        "bits_per_second": if span > Time::ZERO { 8.0 * per_second(bytes, span) } else { 0.0 },
        "retransmits": total("retransmits"),
        "omitted": false,
        "sender": true,
    })
}

/// Collects intervals.
#[derive(Default)]
pub(super) struct Intervals {
    before: BTreeMap<u32, Done>,
    since: Time,
    /// Those that have ended.
    pub(super) all: Vec<Value>,
}

impl Intervals {
    /// A flow replaces another.
    pub(super) fn replace(&mut self, old: u32, new: u32) {
        if let Some(done) = self.before.remove(&old) {
            self.before.insert(new, Done { rtt_sum: 0, rtt_count: 0, ..done });
        }
    }
    /// Ends an interval. Returns a line of text about it.
    pub(super) fn end<'a>(
        &mut self,
        now: Time,
        flows: impl Iterator<Item = (&'a u32, &'a Sending)>,
        packet: u16,
    ) -> String {
        let span = (self.since, now);
        let mut streams = Vec::new();
        for (id, flow) in flows {
            let done = Done::of(flow);
            let before = self.before.insert(*id, done).unwrap_or_default();
            streams.push(stream(*id, span, done.since(before), flow.flow.cwnd(), packet));
        }
        let sum = sum(&streams, span);
        let mean =
            |key: &str| streams.iter().filter_map(|s| s[key].as_u64()).sum::<u64>() / streams.len().max(1) as u64;
        let line = interval(
            (span.0.as_secs_f64(), now.as_secs_f64()),
            sum["bits_per_second"].as_f64().unwrap_or(0.0),
            sum["retransmits"].as_u64().unwrap_or(0),
            Some(mean("rtt") as f64 / 1e3).filter(|rtt| *rtt > 0.0),
        );
        self.all.push(json!({ "streams": streams, "sum": sum }));
        self.since = now;
        line
    }
}

/// The line of an interval: its times, bit/s, and the round trip in ms if there was one.
pub(super) fn interval((from, to): (f64, f64), rate: f64, resent: u64, rtt: Option<f64>) -> String {
    let line = format!("{from:6.2}-{to:6.2} s  {:9.3} Mbit/s  {resent:6} packets resent", rate / 1e6);
    rtt.map_or(line.clone(), |rtt| format!("{line}  round trip {rtt:7.3} ms"))
}

/// The end of a report: for each flow both ends, and their sums. `received` are the payload bytes that the receiver
/// has reported, if any.
pub(super) fn end(now: Time, flows: &[(u32, Done, Option<u64>, u64)]) -> Value {
    let span = (Time::ZERO, now);
    let side = |id: u32, bytes: u64, resent: u64, sender: bool| {
        let mut value = stream(id, span, Done { bytes, retransmissions: resent, ..Done::default() }, 0.0, 0);
        value["sender"] = json!(sender);
        if let Some(object) = value.as_object_mut() {
            object.retain(|key, _| !matches!(key.as_str(), "snd_cwnd" | "rtt" | "omitted"));
        }
        value
    };
    let streams: Vec<Value> = flows
        .iter()
        .map(|(id, done, received, sent)| {
            json!({
                "sender": side(*id, *sent, done.retransmissions, true),
                "receiver": side(*id, received.unwrap_or(done.bytes), 0, false),
            })
        })
        .collect();
    let of = |which: &str| streams.iter().map(|s| s[which].clone()).collect::<Vec<_>>();
    let (sent, mut received) = (sum(&of("sender"), span), sum(&of("receiver"), span));
    received["sender"] = json!(false);
    json!({ "streams": streams, "sum_sent": sent, "sum_received": received })
}
