//! Result tables: their columns, documented once. Writers, frames and documentation derive from these lists.
//!
//! The *measured span* runs from the end of the warm-up to the end of the run. Columns refer to it, unless their
//! documentation says "whole run".

use std::io;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Text.
    Str,
    /// A float; null is written as NaN in [`Data::F64`].
    F64,
    /// A whole number, never null.
    U64,
}

/// A column of a table.
#[derive(PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name, with the unit where there is one.
    pub name: &'static str,
    /// The unit in words; empty for names and counts.
    pub unit: &'static str,
    /// Kind of the values.
    pub kind: Kind,
    /// Definition.
    pub doc: &'static str,
}

const fn column(name: &'static str, unit: &'static str, kind: Kind, doc: &'static str) -> Column {
    Column { name, unit, kind, doc }
}

const RUN_NUMBER: Column =
    column("run", "", Kind::U64, "Number of the run, from 0; its seed is the scenario's seed plus this.");

/// The table `flows`: one row per flow that started and run.
pub const FLOWS: &[Column] = &[
    RUN_NUMBER,
    column("flow", "", Kind::Str, "Name of the flow: its group's name, a dot, its number from 0."),
    column("group", "", Kind::Str, "Name of the group."),
    column("protocol", "", Kind::Str, "The `protocol` key as written."),
    column("start_s", "s", Kind::F64, "When the flow started to connect, or to send where nothing connects."),
    column("size_bytes", "bytes", Kind::F64, "Payload to transfer; null without end."),
    column(
        "goodput_bps",
        "bit/s",
        Kind::F64,
        "In-order payload at the receiver per second of the measured span. May exceed the throughput after a warm-up: data that \
         arrived before it count once the gap before them is filled. Printed tables show the mean of a group's flows, not their sum.",
    ),
    column(
        "throughput_bps",
        "bit/s",
        Kind::F64,
        "IP bytes of data packets at the receiver per second of the measured span.",
    ),
    column(
        "sent_packets",
        "packets",
        Kind::U64,
        "Packets that joined the host's queue, connection set-up and retransmissions included.",
    ),
    column("retransmissions", "packets", Kind::U64, "Data packets sent again, of those that joined the host's queue."),
    column(
        "timeouts",
        "",
        Kind::U64,
        "Expiries of the retransmission timer in the measured span, including connection set-up.",
    ),
    column("timeouts_total", "", Kind::U64, "Timeouts in the whole run, including the warm-up."),
    column(
        "rtt_mean_ms",
        "ms",
        Kind::F64,
        "Mean of the round-trip time samples of the measured span; null if there are none, as where nothing is returned to \
         the sender.",
    ),
    column(
        "completion_s",
        "s",
        Kind::F64,
        "From the start to the acknowledgement of the last byte, or to its arrival where nothing is acknowledged; \
         null if it did not arrive.",
    ),
    column(
        "damaged",
        "packets",
        Kind::U64,
        "Packets and acknowledgements of the flow that arrived damaged and were dropped.",
    ),
    column(
        "ignored_echoes",
        "packets",
        Kind::U64,
        "Acknowledgements that the sender dropped because they echo no packet of the present connection: late ones of an earlier \
         session, or forged ones.",
    ),
    column("sessions", "", Kind::U64, "Connections started in the whole run; one, except for flows with `session`."),
    column("torn_down", "", Kind::U64, "Sessions aborted by timeouts in the whole run."),
];

/// The table `links`: one row per link and run.
pub const LINKS: &[Column] = &[
    RUN_NUMBER,
    column("link", "", Kind::Str, "Name of the one-way link."),
    column(
        "utilisation",
        "",
        Kind::F64,
        "IP bytes sent in the measured span, divided by the bytes that the capacity allows. Over a medium: the \
         share of the span in which its frames, in vain or not, and their answers were on the air. A packet that leaves counts \
         whole, even if the span began while it was sent: over short spans this may be more than 1, by one packet.",
    ),
    column(
        "queue_mean_packets",
        "packets",
        Kind::F64,
        "Time average of the packets in the queue, excluding the packet in service. Over a medium, all queue columns are those \
         of the sending interface, which all its links share.",
    ),
    column(
        "queue_mean_nonempty",
        "packets",
        Kind::F64,
        "The same average over the time with a non-empty queue; null if there was none.",
    ),
    column(
        "queue_p95_packets",
        "packets",
        Kind::F64,
        "95th percentile over time of the packets in the queue, in the measured span.",
    ),
    column("queue_max_packets", "packets", Kind::U64, "Maximum of the packets in the queue, in the measured span."),
    column(
        "queue_mean_ms",
        "ms",
        Kind::F64,
        "Mean waiting bytes divided by the capacity (over a medium its nominal rate).",
    ),
    column(
        "queue_mean_bytes",
        "bytes",
        Kind::F64,
        "Time average of the bytes in the queue, excluding the packet in service.",
    ),
    column(
        "queue_peak_packets",
        "packets",
        Kind::U64,
        "Maximum of the packets in the queue in the whole run, including the warm-up.",
    ),
    column("drops_overflow", "packets", Kind::U64, "Packets dropped because the queue was full."),
    column("drops_early", "packets", Kind::U64, "Packets that the queue discipline dropped before the queue was full."),
    column(
        "drops_channel",
        "packets",
        Kind::U64,
        "Packets that the channel lost, or that a medium gave up after its retries.",
    ),
    column(
        "drops_total",
        "packets",
        Kind::U64,
        "Packets dropped or lost for any reason in the whole run, including the warm-up.",
    ),
    column("marks", "packets", Kind::U64, "Packets whose ECN field was set to CE (congestion experienced)."),
    column(
        "time_to_90_s",
        "s",
        Kind::F64,
        "End of the first 100 ms of the whole run in which 90 % of the capacity was sent, a multiple of 100 ms: finer \
         differences need samples of `throughput`. Null if there was none, and over media.",
    ),
    column("damaged", "packets", Kind::U64, "Packets that the channel damaged; their receiver drops them."),
    column("copies", "packets", Kind::U64, "Duplicates that the channel created."),
    column(
        "drops_channel_data",
        "packets",
        Kind::U64,
        "Data packets among `drops_channel`: no acknowledgements, connection set-up or messages between nodes. Fluid \
         models have no others.",
    ),
    column("drops_queue_data", "packets", Kind::U64, "Data packets among `drops_overflow` and `drops_early`."),
];

/// The table `samples`: one row per time, object and variable.
pub const SAMPLES: &[Column] = &[
    RUN_NUMBER,
    column("time_s", "s", Kind::F64, "Time of the sample; rates are means over the period that ends then."),
    column(
        "object",
        "",
        Kind::Str,
        "Name of the link, flow or node; `node/other` is the state that an agent keeps about another node.",
    ),
    column(
        "variable",
        "",
        Kind::Str,
        "Variable: `queue_packets`, `throughput_bps`, ..., or the name under which a controller, sender, recovery or agent reports it; \
         see `samples.variable`.",
    ),
    column("value", "", Kind::F64, "The value, in the variable's unit."),
];

/// The table `run`: one row per run.
pub const RUN: &[Column] = &[
    RUN_NUMBER,
    column("name", "", Kind::Str, "Name of the scenario."),
    column("seed", "", Kind::U64, "Seed of the run."),
    column("version", "", Kind::Str, "Version of the program."),
    column("scenario", "", Kind::Str, "The scenario with all defaults, as TOML."),
];

/// Additional column of the table `flows` for fluid models, where a row is a class of flows.
pub const COUNT: Column = column(
    "count",
    "flows",
    Kind::U64,
    "Fluid models: number of flows that the row represents; its other columns are values of one flow, and its name is that of the first.",
);

/// All tables by name.
pub const TABLES: &[(&str, &[Column])] = &[("flows", FLOWS), ("links", LINKS), ("samples", SAMPLES), ("run", RUN)];

/// The values of a column, row by row.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Texts.
    Str(Vec<String>),
    /// Floats; NaN is null.
    F64(Vec<f64>),
    /// Whole numbers.
    U64(Vec<u64>),
}

impl Data {
    /// No values, for a kind of column.
    pub fn empty(kind: Kind) -> Data {
        match kind {
            Kind::Str => Data::Str(Vec::new()),
            Kind::F64 => Data::F64(Vec::new()),
            Kind::U64 => Data::U64(Vec::new()),
        }
    }
    /// Kind of the values.
    pub fn kind(&self) -> Kind {
        match self {
            Data::Str(_) => Kind::Str,
            Data::F64(_) => Kind::F64,
            Data::U64(_) => Kind::U64,
        }
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Data::Str(v) => v.len(),
            Data::F64(v) => v.len(),
            Data::U64(v) => v.len(),
        }
    }
    /// A value as text; null is empty.
    fn text(&self, row: usize) -> String {
        match self {
            Data::Str(v) => v[row].clone(),
            Data::F64(v) if v[row].is_nan() => String::new(),
            Data::F64(v) => v[row].to_string(),
            Data::U64(v) => v[row].to_string(),
        }
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A cell of a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A text.
    Str(String),
    /// A float; NaN is null.
    F64(f64),
    /// A whole number.
    U64(u64),
}

/// A table: columns of equal length.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Its columns, in order.
    pub columns: Vec<(&'static Column, Data)>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &'static [Column]) -> Table {
        Table { columns: columns.iter().map(|c| (c, Data::empty(c.kind))).collect() }
    }
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, data)| data.len())
    }
    /// Appends a row.
    ///
    /// # Panics
    /// If the cells do not match the columns in number and kind.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let mut cells = row.into_iter();
        for (column, data) in &mut self.columns {
            match (data, cells.next()) {
                (Data::Str(v), Some(Cell::Str(x))) => v.push(x),
                (Data::F64(v), Some(Cell::F64(x))) => v.push(x),
                (Data::U64(v), Some(Cell::U64(x))) => v.push(x),
                (_, cell) => panic!("column `{}` is {:?} and cannot take {cell:?}", column.name, column.kind),
            }
        }
        assert!(cells.next().is_none(), "more cells than columns");
    }
    /// Changes a text value of the last row.
    pub fn rename_last(&mut self, column: &str, text: String) {
        let found = self.columns.iter_mut().find(|(c, _)| c.name == column);
        if let Some((_, Data::Str(values))) = found
            && let Some(last) = values.last_mut()
        {
            *last = text;
        }
    }
    /// A column's values by name.
    pub fn get(&self, name: &str) -> Option<&Data> {
        self.columns.iter().find(|(c, _)| c.name == name).map(|(_, data)| data)
    }
    /// Writes the table as comma-separated values (RFC 4180), the names of the columns first; nulls are empty.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write_csv(&self, to: impl io::Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(self.columns.iter().map(|(column, _)| column.name))?;
        for row in 0..self.rows() {
            writer.write_record(self.columns.iter().map(|(_, data)| data.text(row)))?;
        }
        writer.flush()
    }
    /// The output of [`Table::write_csv`].
    pub fn csv(&self) -> String {
        let mut text = Vec::new();
        self.write_csv(&mut text).expect("memory takes what is written");
        String::from_utf8(text).expect("columns have texts and numbers")
    }
    /// Appends the rows of a table with the same columns.
    ///
    /// # Panics
    /// If the columns differ.
    pub fn append(&mut self, other: Table) {
        assert_eq!(self.columns.len(), other.columns.len(), "tables of one kind");
        for ((column, data), (theirs, more)) in self.columns.iter_mut().zip(other.columns) {
            assert_eq!(column.name, theirs.name, "tables of one kind");
            match (data, more) {
                (Data::Str(a), Data::Str(b)) => a.extend(b),
                (Data::F64(a), Data::F64(b)) => a.extend(b),
                (Data::U64(a), Data::U64(b)) => a.extend(b),
                _ => panic!("column `{}` has two kinds", column.name),
            }
        }
    }
}

/// The tables of a run, or of several runs one after the other.
pub struct Tables {
    /// One row per flow and run.
    pub flows: Table,
    /// One row per link and run.
    pub links: Table,
    /// One row per sample.
    pub samples: Table,
    /// One row per run.
    pub run: Table,
}

impl Default for Tables {
    fn default() -> Tables {
        Tables {
            flows: Table::new(FLOWS),
            links: Table::new(LINKS),
            samples: Table::new(SAMPLES),
            run: Table::new(RUN),
        }
    }
}

impl Tables {
    /// Those of a fluid model: classes of flows stand for flows.
    pub fn of_classes() -> Tables {
        let mut tables = Tables::default();
        tables.flows.columns.push((&COUNT, Data::empty(COUNT.kind)));
        tables
    }
    /// Appends the rows of further runs.
    pub fn append(&mut self, other: Tables) {
        self.flows.append(other.flows);
        self.links.append(other.links);
        self.samples.append(other.samples);
        self.run.append(other.run);
    }
}

impl From<&str> for Cell {
    fn from(x: &str) -> Cell {
        Cell::Str(x.to_string())
    }
}
impl From<String> for Cell {
    fn from(x: String) -> Cell {
        Cell::Str(x)
    }
}
impl From<f64> for Cell {
    fn from(x: f64) -> Cell {
        Cell::F64(x)
    }
}
impl From<u64> for Cell {
    fn from(x: u64) -> Cell {
        Cell::U64(x)
    }
}
impl From<Option<f64>> for Cell {
    fn from(x: Option<f64>) -> Cell {
        Cell::F64(x.unwrap_or(f64::NAN))
    }
}
