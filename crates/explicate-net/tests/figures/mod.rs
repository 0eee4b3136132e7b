//! Figures of tests that measure in real time, for `scripts/measure.py`.

use std::io::Write;

/// Which way a figure is better.
#[allow(dead_code, reason = "the library's own tests have figures of one way only")]
#[derive(Clone, Copy)]
pub(crate) enum Better {
    More,
    Less,
}

/// Prints a figure, and keeps it if `make measure` runs the test. To be called before what it shows is judged.
#[expect(clippy::print_stdout, reason = "`cargo test -- --nocapture` shows the figures")]
#[expect(clippy::disallowed_methods, reason = "no result depends on the variable: it says where the figures go")]
pub(crate) fn figure(name: &str, value: f64, unit: &str, better: Better) {
    println!("{name}: {value} {unit}");
    // The file that `make measure` reads.
    let Ok(path) = std::env::var("EXPLICATE_FIGURES") else { return };
    let better = match better {
        Better::More => "more",
        Better::Less => "less",
    };
    let line = serde_json::json!({ "name": name, "value": value, "unit": unit, "better": better });
    let mut file = std::fs::File::options().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}
