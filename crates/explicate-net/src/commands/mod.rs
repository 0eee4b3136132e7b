//! The commands.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::error::{Context, Error, Result};
use crate::sys;

mod advise;
mod far;
pub(crate) mod forward;
mod gateway;
mod lab;
mod probe;
mod progress;
mod recv;
mod say;
mod send;
mod series;
mod watch;
pub(crate) mod words;

/// Runs a command; the exit status is 0, 1 if it failed, 2 if its arguments are invalid.
pub fn main(cli: Cli) -> ExitCode {
    log(cli.verbose, cli.log_json);
    sys::catch_signals();
    let result = match &cli.command {
        Command::Send(args) => send::run(args),
        Command::Recv(args) => recv::run(args),
        Command::Router(args) => forward::run_router(args),
        Command::Link(args) => forward::run_link(args),
        Command::Probe(args) => probe::run(args),
        Command::Advise(args) => advise::run(args),
        Command::Generate { what } => generate(what),
        Command::Lab(args) => lab::run(args),
        Command::Gateway(args) => gateway::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::complain(&error);
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
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false)
        .log_internal_errors(false);
    if json { builder.json().init() } else { builder.with_ansi(false).init() }
}

/// The man page or a shell's completions, to standard output.
fn generate(what: &str) -> Result<()> {
    let mut command = Cli::command();
    let mut text = Vec::new();
    if what == "man" {
        command.build(); // global options then belong to every command
        clap_mangen::Man::new(command.clone()).render(&mut text).or_fail(|| "write the man page".to_string())?;
        for sub in command.get_subcommands().filter(|s| !s.is_hide_set() && s.get_name() != "help") {
            let page = clap_mangen::Man::new(sub.clone()).title(format!("explicated-{}", sub.get_name()));
            page.render(&mut text).or_fail(|| "write the man page".to_string())?;
        }
    } else {
        let shell: clap_complete::Shell = what.parse().map_err(|_| {
            Error::Input(format!(
                "`{what}` is neither `man` nor a supported shell: bash, elvish, fish, powershell, zsh"
            ))
        })?;
        clap_complete::generate(shell, &mut command, "explicated", &mut text);
    }
    say::say(String::from_utf8_lossy(&text).trim_end())
}
