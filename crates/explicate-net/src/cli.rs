//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Explicit congestion control between Linux hosts.
#[derive(Parser, Debug)]
#[command(name = "explicated", version, about, propagate_version = true)]
pub struct Cli {
    /// More about what happens, on stderr; twice for all.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Logs as JSON, one object a line.
    #[arg(long, global = true)]
    pub log_json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Runs a scenario on real sockets, in network namespaces of this machine
    Lab(Lab),
}

/// `explicated lab`.
#[derive(Args, Debug)]
pub struct Lab {
    /// The scenario file
    pub scenario: PathBuf,
    /// Changes a key of the scenario, like `--set duration=10s`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Prints the commands that build the topology, and runs nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Prints the tables of flows and links as JSON
    #[arg(long)]
    pub json: bool,
    /// Writes all tables as CSV into this folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
