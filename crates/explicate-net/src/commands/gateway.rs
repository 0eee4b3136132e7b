//! `explicated gateway`.

use super::say::say;
use crate::cli::Gateway;
use crate::error::Result;
use crate::gateway::config::Config;
use crate::gateway::identity::{self, Identity};
use crate::gateway::{self, kernel, status};

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
        Gateway::Run(args) => gateway::run(Config::load(&args.config)?),
        Gateway::Status { config, json } => {
            let report = status::ask(&Config::load(&config.config)?.status)?;
            if *json { say(report) } else { say(status::table(&report)) }
        }
        Gateway::Up(args) => kernel::up(&Config::load(&args.config)?),
        Gateway::Down(args) => kernel::down(&Config::load(&args.config)?),
    }
}
