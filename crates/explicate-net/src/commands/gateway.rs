//! `explicated gateway`.

use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::say::{complain, say};
use crate::cli::Gateway;
use crate::error::Result;
use crate::gateway::config::Config;
use crate::gateway::identity::{self, Identity};
use crate::gateway::{self, carried, destinations, explain, kernel, status, told, warnings, why};
use crate::sys;

/// How long `why` watches.
const WATCHED: Duration = Duration::from_secs(2);
/// How often a signal is looked for.
const TURN: Duration = Duration::from_millis(50);

pub(super) fn run(args: &Gateway) -> Result<()> {
    match args {
        Gateway::Keygen { file } => say(identity::keygen(file)?),
        Gateway::Check(args) => check(&args.config),
        Gateway::Run(args) => gateway::run(&args.config),
        Gateway::Status { config, json, interval, watch: true } => {
            debug_assert!(!json, "clap refuses it");
            let path = Config::load(&config.config)?.status;
            super::watch::run(&path, interval.map_or(Duration::from_secs(1), Duration::from_secs_f64))
        }
        Gateway::Status { config, json, interval, watch: false } => {
            let path = Config::load(&config.config)?.status;
            match interval {
                Some(seconds) => repeat(&path, *json, Duration::from_secs_f64(*seconds)),
                None => show(&status::ask(&path)?, None, *json),
            }
        }
        Gateway::Why(args) => {
            let path = Config::load(&args.config)?.status;
            // A gateway that was not restarted since an update may not know what is asked.
            let before = status::ask_to_look(&path).or_else(|_| status::ask(&path))?;
            thread::sleep(WATCHED);
            why::why(&before, &status::ask(&path)?).into_iter().try_for_each(say)
        }
        Gateway::Up(args) => kernel::up(&Config::load(&args.config)?),
        Gateway::Down { config, stopped } => {
            let status = Config::load(&config.config).map_or_else(
                |error| {
                    complain(format!("warning: {error}; restoring what the last `up` has recorded"));
                    Config::status_of(&config.config)
                },
                |config| config.status,
            );
            match if *stopped { kernel::stopped(&status) } else { kernel::down(&status) }? {
                0 => Ok(()),
                remembered => say(format!(
                    "{remembered} connections that were carried are remembered for up to {}, so that their late segments are \
                     answered by a reset. The next `gateway down` after that removes the table, inet {}.",
                    carried::REMEMBERED,
                    carried::TABLE
                )),
            }
        }
    }
}

fn check(path: &Path) -> Result<()> {
    let config = Config::load(path)?;
    let own = Identity::load(&config.key)?.public;
    config.check_own_key(own)?;
    warnings::warnings(&config).into_iter().for_each(|warning| complain(format!("warning: {warning}")));
    say(format!("{}: valid\n\nThe public line of this gateway:\n{}\n", path.display(), own.line()))?;
    say(destinations::summary(&config.site.allow, &told::own()) + "\n")?;
    say(format!("What `explicated gateway up` sets up with nft:\n{}", kernel::rules(&config).trim_end()))
}

/// Shows a report, with the rates since the one before.
fn show(report: &Value, before: Option<&Value>, json: bool) -> Result<()> {
    if json { say(report) } else { say(explain::table(report, before)) }
}

/// Shows the state again and again, until a signal; on a terminal in the same place.
fn repeat(path: &Path, json: bool, every: Duration) -> Result<()> {
    const CLEAR: &str = "\x1b[H\x1b[J";
    let clear = if !json && stdout().is_terminal() { CLEAR } else { "" };
    let mut before = None;
    while !sys::stopped() {
        let report = status::ask(path)?;
        if !clear.is_empty() {
            say(clear)?;
        }
        show(&report, before.as_ref(), json)?;
        before = Some(report);
        let next = sys::monotonic() + every.as_nanos() as u64;
        while !sys::stopped() && sys::monotonic() < next {
            thread::sleep(TURN.min(every));
        }
    }
    Ok(())
}
