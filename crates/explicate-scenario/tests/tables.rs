//! Columns and schema hold together.

use std::collections::BTreeSet;

use explicate_scenario::tables::{FLOWS, Kind, LINKS, TABLES, Table};

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
        |columns: &[explicate_scenario::tables::Column]| columns.iter().map(|c| c.name).collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(FLOWS),
        "run flow group protocol start_s size_bytes goodput_bps throughput_bps sent_packets retransmissions timeouts \
         timeouts_total rtt_mean_ms completion_s damaged sessions torn_down"
    );
    assert_eq!(
        names(LINKS),
        "run link utilisation queue_mean_packets queue_mean_nonempty queue_p95_packets queue_max_packets queue_mean_ms \
         queue_mean_bytes queue_peak_packets drops_overflow drops_early drops_channel drops_total marks time_to_90_s \
         damaged copies"
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
