//! What systemd is told of a gateway (sd_notify): that it is ready, reads its configuration again, stops, and is alive.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::sys;

/// The service manager, if there is one.
pub struct Service {
    /// Between two signs of life, ns.
    watchdog: Option<u64>,
    next: u64,
}

impl Service {
    /// Reports that the gateway is ready.
    pub fn ready() -> Service {
        // Half of what the manager asks for, as its documentation advises.
        let watchdog = sd_notify::watchdog_enabled().map(|every: Duration| every.as_nanos() as u64 / 2);
        let service = Service { watchdog, next: 0 };
        service.is_ready();
        service
    }
    /// Reports that it is ready again.
    pub fn is_ready(&self) {
        let _ = sd_notify::notify(&[NotifyState::Ready]);
    }
    /// Reports a sign of life when one is due.
    pub fn alive(&mut self) {
        let now = sys::monotonic();
        if let Some(every) = self.watchdog.filter(|_| now >= self.next) {
            self.next = now + every;
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
    }
    /// Reports that the configuration is read again.
    pub fn reloads(&self) {
        let time = NotifyState::monotonic_usec_now();
        let states = std::iter::once(NotifyState::Reloading).chain(time);
        let _ = sd_notify::notify(&states.collect::<Vec<_>>());
    }
    /// Reports the end.
    pub fn stops(&self) {
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
    }
}
