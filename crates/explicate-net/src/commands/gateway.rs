//! `explicated gateway`.

use super::say::say;
use crate::cli::Gateway;
use crate::error::Result;
use crate::gateway::config::Config;
use crate::gateway::identity::{self, Identity};
use crate::gateway::{self, kernel, status};

/// How long `why` watches.
const WATCHED: std::time::Duration = std::time::Duration::from_secs(2);

pub(super) fn run(args: &Gateway) -> Result<()> {
    match args {
        Gateway::Keygen { file } => say(identity::keygen(file)?),
        Gateway::Check(args) => {
            let config = Config::load(&args.config)?;
            let identity = Identity::load(&config.key)?;
            say(format!("{}: valid; the public line of this gateway:", args.config.display()))?;
            say(identity.public.line())?;
            say(kernel::rules(&config).trim_end())
        }
        Gateway::Run(args) => gateway::run(&args.config),
        Gateway::Status { config, json } => {
            let report = status::ask(&Config::load(&config.config)?.status)?;
            if *json { say(report) } else { say(status::table(&report)) }
        }
        Gateway::Why(args) => {
            let path = Config::load(&args.config)?.status;
            let before = status::ask(&path)?;
            std::thread::sleep(WATCHED);
            status::why(&before, &status::ask(&path)?).into_iter().try_for_each(say)
        }
        Gateway::Up(args) => kernel::up(&Config::load(&args.config)?),
        Gateway::Down { config, stopped } => {
            let config = Config::load(&config.config)?;
            if *stopped { kernel::stopped(&config) } else { kernel::down(&config) }
        }
    }
}
