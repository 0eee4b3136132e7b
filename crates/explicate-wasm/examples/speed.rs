//! Prints how many packets a second of processor time this machine carries over a link, natively: what a browser's speed is compared
//! with. Its argument is the name of a scenario.

use std::process::ExitCode;

use cpu_time::ThreadTime;
use explicate_wasm::session::{Files, Recipe};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]
fn main() -> ExitCode {
    let measured = std::env::args().nth(1).ok_or("usage: speed SCENARIO".to_string()).and_then(|name| best(&name));
    match measured {
        Ok(rate) => {
            println!("{rate:.0}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The best of five runs: other programs only ever slow one down.
fn best(name: &str) -> Result<f64, String> {
    let text = std::fs::read_to_string(name).map_err(|e| format!("{name}: {e}"))?;
    let mut best: f64 = 0.0;
    for _ in 0..5 {
        let recipe = Recipe::new(&text, name, &Files::new(), &[], "")?;
        let clock = ThreadTime::now();
        let hops = recipe.hops()?;
        best = best.max(hops as f64 / clock.elapsed().as_secs_f64());
    }
    Ok(best)
}
