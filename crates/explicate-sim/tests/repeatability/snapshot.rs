//! Result tables as files, and which of their numbers moved.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use explicate_build::tables::{Data, Table};
use explicate_sim::measure::Tables;

/// With this variable set, [`check`] writes the files instead of comparing with them.
const RENEW: &str = "EXPLICATE_RENEW_SNAPSHOTS";
/// Differences that a failure lists.
const SHOWN: usize = 20;

/// Compares with `snapshots/NAME-*.csv`: flows and links exactly, and a summary of the samples.
///
/// The table of runs is left out: it holds the resolved scenario, which grows with every new parameter.
pub(crate) fn check(name: &str, tables: &Tables) {
    let now = [("flows", tables.flows.csv()), ("links", tables.links.csv()), ("samples", summary(&tables.samples))];
    let mut moved = Vec::new();
    for (table, text) in now {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/repeatability/snapshots/{name}-{table}.csv"));
        if env::var_os(RENEW).is_some() {
            fs::write(&file, &text).expect("the folder can be written");
        }
        let before = fs::read_to_string(&file).unwrap_or_default();
        moved.extend(differences(&before, &text).into_iter().map(|line| format!("{name}, {table}: {line}")));
    }
    let (count, list) = (moved.len(), moved[..moved.len().min(SHOWN)].join("\n"));
    assert!(moved.is_empty(), "{count} numbers moved; if that is meant, set {RENEW}=1 and say why:\n{list}");
}

/// A line for each cell that differs, with its run and name, its column and both values.
fn differences(before: &str, now: &str) -> Vec<String> {
    let table = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split(',').map(str::to_string).collect()).collect()
    };
    let (before, now) = (table(before), table(now));
    if before.len() != now.len() || before.first() != now.first() {
        return vec![format!("{} rows were {}, or the columns differ", now.len(), before.len())];
    }
    let cells = |(a, b): (&Vec<String>, &Vec<String>)| {
        let differ = (0..b.len()).filter(|&i| a.get(i) != Some(&b[i]));
        differ.map(|i| format!("{}: {} was {} and is {}", b[..2].join(" "), now[0][i], a[i], b[i])).collect::<Vec<_>>()
    };
    before.iter().zip(&now).flat_map(cells).collect()
}

/// The samples of each variable in a run: their number, mean and last value, and a checksum over all bits.
fn summary(samples: &Table) -> String {
    let columns = ["run", "variable", "value"].map(|name| samples.get(name));
    let [Some(Data::U64(runs)), Some(Data::Str(variables)), Some(Data::F64(values))] = columns else {
        panic!("a column of the samples is missing, or of another kind")
    };
    let mut by_name: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (row, value) in values.iter().enumerate() {
        by_name.entry((runs[row], &variables[row])).or_default().push(*value);
    }
    let mut text = "run,variable,count,mean,last,checksum\n".to_string();
    for ((run, variable), values) in &by_name {
        let (count, last) = (values.len(), values[values.len() - 1]);
        // Null where nothing was measured.
        let known = || values.iter().filter(|x| !x.is_nan());
        let mean = known().sum::<f64>() / known().count() as f64;
        text += &format!("{run},{variable},{count},{mean},{last},{:08x}\n", checksum(values));
    }
    text
}

/// FNV-1a over the bits, folded to half its length.
fn checksum(values: &[f64]) -> u32 {
    let bytes = values.iter().flat_map(|value| value.to_bits().to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ b as u64).wrapping_mul(0x0000_0100_0000_01b3));
    (hash >> 32) as u32 ^ hash as u32
}

#[test]
fn a_number_that_moved_is_named() {
    let before = "run,flow,group,sent_packets,goodput_bps\n0,x.0,x,10,1.5\n0,x.1,x,11,2\n";
    let now = before.replace("11,2", "11,2.25");
    assert_eq!(differences(before, before), Vec::<String>::new());
    assert_eq!(differences(before, &now), ["0 x.1: goodput_bps was 2 and is 2.25"]);
    assert_eq!(differences("", before), ["3 rows were 0, or the columns differ"]);
}
