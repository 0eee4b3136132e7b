//! `[patience]` of `gateway.toml`: how long hosts of the own site may be silent.

use std::time::Duration;

use serde::Deserialize;

use super::mistake::{Checked, Mistake};

/// How long hosts of the site may be silent, seconds.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Patience {
    /// A host that has been silent for so long is asked whether it still has the connection (TCP's keepalive).
    pub keepalive: u32,
    /// Between two questions.
    pub keepalive_interval: u32,
    /// After so many questions without an answer it is gone.
    pub keepalive_probes: u32,
    /// A host for which bytes wait is gone when it has acknowledged nothing for so long.
    pub user_timeout: u32,
    /// A connection on which no byte has come or gone for so long is ended; without it none is.
    pub idle_timeout: Option<u32>,
}

impl Default for Patience {
    fn default() -> Patience {
        let (keepalive, keepalive_interval, keepalive_probes) = (60, 15, 5);
        Patience { keepalive, keepalive_interval, keepalive_probes, user_timeout: 135, idle_timeout: None }
    }
}

/// The kernel remembers a carried connection for 15 minutes behind its last segment: a host is asked well before that.
const MOST_KEEPALIVE: u32 = 600;
/// The least user timeout: a path may fail for so long before the tunnel does, and hosts of this site are not to be given up sooner.
const LEAST_USER_TIMEOUT: u32 = 60;
/// The least idle timeout: 2 h 4 min (RFC 5382, REQ-5), behind the two hours of keepalive of hosts (RFC 9293 section 3.8.4).
const LEAST_IDLE: u32 = 7440;
/// The longest time: a week.
const MOST_SECONDS: u32 = 604_800;

impl Patience {
    /// As a duration.
    pub fn keepalive(&self) -> Duration {
        Duration::from_secs(self.keepalive as u64)
    }
    /// As a duration.
    pub fn keepalive_interval(&self) -> Duration {
        Duration::from_secs(self.keepalive_interval as u64)
    }
    /// As a duration.
    pub fn user_timeout(&self) -> Duration {
        Duration::from_secs(self.user_timeout as u64)
    }
    /// As a duration.
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.idle_timeout.map(|seconds| Duration::from_secs(seconds as u64))
    }
    /// Refuses times that harm hosts, or that the kernel does not take.
    pub(super) fn check(&self) -> Checked {
        let within = |key: &str, value: u32, least: u32, most: u32, why: &str| match (least..=most).contains(&value) {
            true => Ok(()),
            false => {
                let message = format!("`{key}` is from {least} to {most}, not {value}: {why}");
                Err(Mistake::at(format!("patience.{key}"), message))
            }
        };
        let remembered = "the kernel remembers a silent connection for 900 s";
        within("keepalive", self.keepalive, 1, MOST_KEEPALIVE, remembered)?;
        within("keepalive_interval", self.keepalive_interval, 1, MOST_KEEPALIVE, remembered)?;
        within("keepalive_probes", self.keepalive_probes, 1, 127, "the kernel asks so often at most")?;
        let tunnel = "the path may fail for 60 s before the tunnel does";
        within("user_timeout", self.user_timeout, LEAST_USER_TIMEOUT, MOST_SECONDS, tunnel)?;
        let idle = "hosts may be silent for 2 h 4 min (RFC 5382); leave it out for no limit";
        self.idle_timeout.map_or(Ok(()), |seconds| within("idle_timeout", seconds, LEAST_IDLE, MOST_SECONDS, idle))
    }
}
