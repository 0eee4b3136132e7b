//! Simulates the scenario that the command line names, and prints a row for each flow.

use std::{env, error::Error, fs, path::Path, process::exit};

fn main() {
    if let Err(error) = simulate() {
        eprintln!("{error}");
        exit(1);
    }
}

fn simulate() -> Result<(), Box<dyn Error>> {
    own_protocol::register()?;
    let file = env::args().nth(1).ok_or("name a scenario, such as scenario.toml")?;
    let text = fs::read_to_string(&file)?;
    let scenario = explicate_scenario::model::Scenario::parse(&text, &file, Path::new("."), &[])?;
    let tables = explicate_sim::measure::run_tables(&scenario)?;
    print!("{}", tables.flows.csv());
    Ok(())
}
