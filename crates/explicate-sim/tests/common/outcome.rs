//! What the tests of agreement share: cells of a run's tables by name, and dumbbells.
#![allow(dead_code, reason = "each test file uses a part")]

use explicate_build::tables::{Data, Table};
use explicate_sim::measure::Tables;

use crate::common::{number, numbers, tables};

/// Runs a scenario once.
pub(crate) fn run(text: &str) -> Outcome {
    Outcome { tables: tables(text) }
}

/// The scenario with ns-2's TCP: what has a closed form, a figure of ns-2 or of a paper, or counts packets by hand.
pub(crate) fn ns2(text: &str) -> String {
    format!("stack = \"ns2\"\n{text}")
}

/// The tables of one run.
pub(crate) struct Outcome {
    tables: Tables,
}

impl Outcome {
    /// A cell of the table of links.
    pub(crate) fn link(&self, link: &str, column: &str) -> f64 {
        number(&self.tables.links, "link", link, column)
    }
    /// Cells of the table of flows: those of a group.
    pub(crate) fn flows(&self, group: &str, column: &str) -> Vec<f64> {
        let (groups, values) = (texts(&self.tables.flows, "group"), numbers(&self.tables.flows, column));
        groups.iter().zip(values).filter(|(g, _)| *g == group).map(|(_, value)| value).collect()
    }
    /// Packets dropped on any link in the whole run.
    pub(crate) fn drops(&self) -> f64 {
        numbers(&self.tables.links, "drops_total").iter().sum()
    }
    /// Samples of a variable of a link or flow from `from` (s) on.
    pub(crate) fn samples(&self, object: &str, variable: &str, from: f64) -> Vec<f64> {
        let table = &self.tables.samples;
        let (objects, variables) = (texts(table, "object"), texts(table, "variable"));
        let (times, values) = (numbers(table, "time_s"), numbers(table, "value"));
        let wanted = |i: &usize| objects[*i] == object && variables[*i] == variable && times[*i] >= from;
        (0..table.rows()).filter(wanted).map(|i| values[i]).collect()
    }
}

fn texts<'a>(table: &'a Table, column: &str) -> &'a [String] {
    match table.get(column) {
        Some(Data::Str(values)) => values,
        _ => panic!("no text column {column}"),
    }
}

/// Arithmetic mean.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// A dumbbell of `flows` flows of 1000-byte packets: bottleneck `mbps` with a buffer of one bandwidth-delay product,
/// access links ten times as fast, round trips evenly spread over `rtt` ms (access 1 ms each way and more).
pub(crate) fn dumbbell(protocol: &str, mbps: f64, rtt: (f64, f64), flows: u32) -> String {
    let (from, to) = rtt;
    // Two access links and the bottleneck, both ways.
    let bottleneck = from / 2.0 - 2.0;
    let last = 1.0 + (to - from) / 4.0;
    format!(
        r#"
duration = "40s"
warmup = "20s"
[topology]
kind = "dumbbell"
pairs = {flows}
access = {{ rate = "{access}Mbit/s", delay = {{ from = "1ms", to = "{last}ms" }} }}
bottleneck = {{ rate = "{mbps}Mbit/s", delay = "{bottleneck}ms", queue = {{ kind = "droptail", limit = "1.0bdp" }} }}
[[flows]]
name = "f"
count = {flows}
protocol = "{protocol}"
packet = "1000B"
"#,
        access = 10.0 * mbps,
    )
}

/// A group of flows of 1500-byte packets; `more` has other keys of it.
pub(crate) fn group(name: &str, protocol: &str, more: &str) -> String {
    format!("[[flows]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\n{more}\n")
}

/// A line that up to five pairs of hosts share, over access links of 1 Gbit/s and 1 ms.
pub(crate) struct Line<'a> {
    pub(crate) mbps: f64,
    /// Base round trip, ms.
    pub(crate) rtt: u32,
    /// Keys of the queue.
    pub(crate) queue: &'a str,
    /// Further keys of the port `r1->r2`, in lines.
    pub(crate) port: &'a str,
    /// Duration and warm-up, s.
    pub(crate) seconds: (u32, u32),
    /// Time between two samples, ms.
    pub(crate) every: u32,
    /// What is sampled.
    pub(crate) of: &'a [&'a str],
}

impl Line<'_> {
    /// The scenario with the flows that `flows` declares.
    pub(crate) fn text(&self, flows: &str) -> String {
        let Line { mbps, rtt, queue, port, seconds: (duration, warmup), every, of } = self;
        format!(
            r#"
duration = "{duration}s"
warmup = "{warmup}s"
[topology]
kind = "dumbbell"
pairs = 5
access = {{ rate = "1Gbit/s", delay = "1ms" }}
bottleneck = {{ rate = "{mbps}Mbit/s", delay = "{}ms", queue = {{ {queue} }} }}
[[link]]
name = "r1->r2"
{port}
{flows}
[sampling]
every = "{every}ms"
of = {of:?}
"#,
            rtt / 2 - 2
        )
    }
}
