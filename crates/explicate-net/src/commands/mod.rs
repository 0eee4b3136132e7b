//! What the commands do.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "commands talk to their user")]

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::sys;

mod forward;
mod lab;
mod recv;
mod report;
mod send;
mod words;

/// Carries out what was asked for; the exit status is 0, 1 if it failed, 2 if it made no sense.
pub fn main(cli: Cli) -> ExitCode {
    log(cli.verbose, cli.log_json);
    sys::catch_signals();
    let result = match &cli.command {
        Command::Send(args) => send::run(args),
        Command::Recv(args) => recv::run(args),
        Command::Router(args) => forward::run_router(args),
        Command::Link(args) => forward::run_link(args),
        Command::Lab(args) => lab::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("explicated: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn log(verbose: u8, json: bool) {
    let level = match verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    if json { builder.json().init() } else { builder.with_ansi(false).init() }
}
