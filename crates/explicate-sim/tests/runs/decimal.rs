//! Times and rates in tables are the numbers nearest to their exact values, so that a reader of the table finds what the
//! decimal text of the same value is read as: `time_s == 0.3`.

use crate::common::{numbers, tables};
use explicate_build::tables::{Data, Table};

fn run(every: &str, start: &str) -> explicate_sim::measure::Tables {
    tables(&format!(
        r#"
        duration = "3s"
        warmup = "700ms"
        sampling = {{ every = "{every}", of = ["goodput", "throughput", "rtt", "flow"] }}
        [topology]
        pairs = 2
        access = {{ rate = "1Gbit/s", delay = "1ms" }}
        bottleneck = {{ rate = "10Mbit/s", delay = "10ms" }}
        [[flows]]
        name = "a"
        protocol = "newreno"
        [[flows]]
        name = "b"
        protocol = "bbr"
        start = "{start}"
        size = "100kB"
        "#
    ))
}

/// Whether a number is what a decimal text with so many digits behind the point is read as.
fn is_decimal(value: f64, digits: usize) -> bool {
    format!("{value:.digits$}").parse() == Ok(value)
}

fn samples(table: &Table, variable: &str) -> Vec<f64> {
    let Some(Data::Str(names)) = table.get("variable") else { panic!("no variables") };
    let values = numbers(table, "value").into_iter().zip(names);
    values.filter(|(_, name)| *name == variable).map(|(value, _)| value).collect()
}

#[test]
fn times_in_tables_are_what_their_decimal_texts_are_read_as() {
    for (every, step) in [("100ms", 100), ("10ms", 10), ("7ms", 7), ("1s", 1000), ("300ms", 300), ("1ms", 1)] {
        let tables = run(every, "1.1s");
        let times = numbers(&tables.samples, "time_s");
        let expected: Vec<f64> = (1..=3000 / step)
            .map(|k| {
                let ms = k * step;
                format!("{}.{:03}", ms / 1000, ms % 1000).parse().expect("a number")
            })
            .collect();
        let mut found = times.clone();
        found.dedup();
        assert_eq!(found, expected, "every {every}");
    }
    let tables = run("300ms", "1.1s");
    assert_eq!(numbers(&tables.flows, "start_s"), [0.0, 1.1]);
    let completed = numbers(&tables.flows, "completion_s")[1];
    assert!(completed > 0.0 && is_decimal(completed, 9), "{completed:?}");
    let ninety = numbers(&tables.links, "time_to_90_s");
    assert!(
        ninety.iter().any(|t| t.is_finite()) && ninety.iter().all(|t| t.is_nan() || is_decimal(*t, 9)),
        "{ninety:?}"
    );
    let base = samples(&tables.samples, "rtprop_ms");
    assert!(base.iter().any(|rtt| *rtt > 22.0) && base.iter().all(|rtt| is_decimal(*rtt, 6)), "{base:?}");
}

/// 8 times a whole number of bytes in 0.1 or 0.3 s are a whole number of tens, or a third of them.
#[test]
fn rates_are_the_nearest_numbers() {
    for (every, parts) in [("100ms", 1.0), ("300ms", 3.0), ("700ms", 7.0)] {
        let tables = run(every, "0s");
        for variable in ["goodput_bps", "throughput_bps"] {
            let rates = samples(&tables.samples, variable);
            let exact = |rate: &f64| (rate * parts / 80.0).round() * 80.0 / parts == *rate;
            assert!(rates.len() > 4 && rates.iter().all(exact), "{variable} every {every}: {rates:?}");
        }
    }
    // 2.3 s are measured.
    for column in ["goodput_bps", "throughput_bps"] {
        let rates = numbers(&run("1s", "0s").flows, column);
        assert!(rates.iter().all(|rate| (rate * 23.0 / 80.0).round() * 80.0 / 23.0 == *rate), "{column}: {rates:?}");
    }
}
