//! `explicated`: explicit congestion control between Linux hosts.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    explicate_net::commands::main(explicate_net::cli::Cli::parse())
}
