//! Columns and schema hold together.

use std::collections::BTreeSet;
use std::path::Path;

use explicate_build::tables::{Cell, Column, FLOWS, Kind, LINKS, TABLES, Table};
use explicate_build::variables::VARIABLES;

/// Units that a name carries at its end.
const SUFFIXES: [(&str, &str); 8] = [
    ("_bytes_per_s", "bytes/s"),
    ("_segments_per_s", "segments/s"),
    ("_bps", "bit/s"),
    ("_s", "s"),
    ("_ms", "ms"),
    ("_packets", "packets"),
    ("_bytes", "bytes"),
    ("_slots", "slots"),
];

/// The names that machines report: the string in the first argument of each call of `put`.
fn told(path: &Path, names: &mut BTreeSet<String>) {
    let folder = path.is_dir().then(|| std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
    for entry in folder.into_iter().flatten().chain(path.is_file().then(|| path.to_path_buf())) {
        if entry.is_dir() {
            told(&entry, names);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&entry).unwrap();
            let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
            for call in code.split("put(").skip(1) {
                let argument = call.split([',', ';', ')']).next().unwrap();
                names.extend(argument.split('"').skip(1).step_by(2).map(str::to_string));
            }
        }
    }
}

#[test]
fn every_variable_has_its_unit() {
    let mut names = BTreeSet::new();
    for folder in ["protocols", "recovery", "qdisc", "port", "medium", "guard.rs", "scone", "estimate", "endpoint"] {
        told(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../explicate-core/src").join(folder), &mut names);
    }
    for folder in ["explicate-sim/src", "explicate-fluid/src"] {
        told(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), &mut names);
    }
    assert!(names.len() > 60 && names.contains("cwnd") && names.contains("average_packets"), "{names:?}");
    let listed: BTreeSet<String> = VARIABLES.iter().map(|v| v.name.to_string()).collect();
    assert_eq!(listed.len(), VARIABLES.len(), "each once");
    assert_eq!(names.difference(&listed).collect::<Vec<_>>(), [""; 0], "in the code, but not in variables.rs");
    assert_eq!(listed.difference(&names).collect::<Vec<_>>(), [""; 0], "in variables.rs, but not in the code");
    for v in VARIABLES {
        assert!(v.doc.ends_with('.'), "{}", v.name);
        if let Some((_, unit)) = SUFFIXES.iter().find(|(suffix, _)| v.name.ends_with(suffix)) {
            assert_eq!(v.unit, *unit, "{}", v.name);
        }
    }
    for (name, unit) in
        [("cwnd", "segments"), ("ssthresh", "segments"), ("utilisation", ""), ("cn", "bytes/s per byte")]
    {
        assert_eq!(VARIABLES.iter().find(|v| v.name == name).map(|v| v.unit), Some(unit), "{name}");
    }
}

#[test]
fn columns_are_documented_once() {
    for (name, columns) in TABLES {
        let names: BTreeSet<&str> = columns.iter().map(|c| c.name).collect();
        assert_eq!(names.len(), columns.len(), "{name}");
        assert!(columns.iter().all(|c| c.doc.ends_with('.')), "{name}");
        assert_eq!(columns[0].name, "run");
        for (suffix, unit) in
            [("_bps", "bit/s"), ("_s", "s"), ("_ms", "ms"), ("_packets", "packets"), ("_bytes", "bytes")]
        {
            for column in columns.iter().filter(|c| c.name.ends_with(suffix)) {
                assert_eq!(column.unit, unit, "{}", column.name);
            }
        }
    }
    let names =
        |columns: &[explicate_build::tables::Column]| columns.iter().map(|c| c.name).collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(FLOWS),
        "run flow group protocol start_s size_bytes goodput_bps throughput_bps sent_packets retransmissions timeouts \
         timeouts_total rtt_mean_ms completion_s damaged ignored_echoes sessions torn_down"
    );
    assert_eq!(
        names(LINKS),
        "run link utilisation queue_mean_packets queue_mean_nonempty queue_p95_packets queue_max_packets queue_mean_ms \
         queue_mean_bytes queue_peak_packets drops_overflow drops_early drops_channel drops_total marks time_to_90_s \
         damaged copies drops_channel_data drops_queue_data"
    );
}

#[test]
fn rows() {
    let (_, run) = TABLES[3];
    let mut table = Table::new(run);
    for i in 0..2u64 {
        table.push([i.into(), "name".into(), i.into(), "0.1".into(), String::new().into()]);
    }
    let mut twice = table.clone();
    twice.append(table.clone());
    assert_eq!((table.rows(), twice.rows()), (2, 4));
    assert_eq!(table.get("seed").map(|d| d.kind()), Some(Kind::U64));
}

#[test]
#[should_panic(expected = "column `run` is U64")]
fn a_row_of_the_wrong_kind() {
    Table::new(TABLES[3].1).push([1.0.into()]);
}

#[test]
fn tables_as_comma_separated_values() {
    let mut table = Table::new(COLUMNS);
    table.push([Cell::from("a, \"b\""), Cell::from(f64::NAN), Cell::from(7)]);
    table.push([Cell::from("c"), Cell::from(0.5), Cell::from(0)]);
    assert_eq!(table.csv(), "name,share,count\n\"a, \"\"b\"\"\",,7\nc,0.5,0\n");
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, unit: "", kind, doc: "" }
}
const COLUMNS: &[Column] = &[column("name", Kind::Str), column("share", Kind::F64), column("count", Kind::U64)];
