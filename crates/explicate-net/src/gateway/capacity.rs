//! The rate of a port, from a [`source`](super::source) that knows the line, or measured by [`trains`](super::trains) of the port's
//! own datagrams.
//!
//! A thread reads the source. A source that fails leaves the last rate in force for `hold` seconds, then the floor; both are logged
//! once, and shown by `status`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use explicate_core::units::Rate;

use super::port::Port;
use super::source::Source;
use crate::error::{Context, Result};
use crate::sys;

/// How often a file is read: a change is in effect within twice that.
const FILE_INTERVAL: f64 = 0.01;
/// What the source said last.
#[derive(Clone, Default, Debug)]
pub struct State {
    /// Why it fails now.
    pub failure: Option<String>,
    /// The floor is in force.
    pub at_floor: bool,
}

/// The source of a port's rate, and its state.
pub struct Capacity {
    port: Arc<Port>,
    /// The source, and the rate that it has said.
    source: Mutex<(Option<Source>, Option<Rate>)>,
    state: Mutex<State>,
}

impl Capacity {
    /// Sets the rate of a port, in a thread, from the source that [`Capacity::use_source`] names.
    pub fn follow(port: Arc<Port>) -> Result<Arc<Capacity>> {
        let capacity = Arc::new(Capacity { port, source: Mutex::default(), state: Mutex::default() });
        let follows = capacity.clone();
        let run = move || {
            let mut good_at = sys::monotonic();
            loop {
                thread::sleep(Duration::from_secs_f64(follows.once(&mut good_at)));
            }
        };
        thread::Builder::new().name("capacity".to_string()).spawn(run).or_fail(|| "start a thread".to_string())?;
        Ok(capacity)
    }
    /// Follows this source from now on; without one the rate is `fixed`.
    pub fn use_source(&self, source: Option<Source>, fixed: Rate) {
        if source.is_none() {
            self.port.set_rate(fixed);
        }
        self.port.measure(source.as_ref().filter(|source| source.measured).map(|source| source.floor.0));
        *self.source() = (source, None);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }
    /// Its state, if there is a source.
    pub fn state(&self) -> Option<State> {
        self.source().0.as_ref()?;
        Some(self.state.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
    fn source(&self) -> MutexGuard<'_, (Option<Source>, Option<Rate>)> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the source once; the seconds until the next time.
    fn once(&self, good_at: &mut u64) -> f64 {
        let Some(source) = self.source().0.clone() else { return FILE_INTERVAL };
        let measured = || self.port.measured().ok_or_else(|| "no peer returns the marks of trains".to_string());
        let read = if source.measured { measured() } else { source.read() };
        let mut current = self.source();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(rate) => {
                if state.failure.take().is_some() {
                    tracing::info!(rate_bps = rate.0, "the source of the capacity answers again");
                }
                (*good_at, state.at_floor) = (sys::monotonic(), false);
                // The port has set what it measured.
                if !source.measured && current.1 != Some(rate) {
                    tracing::info!(rate_bps = rate.0, "capacity");
                    self.port.set_rate(rate);
                    current.1 = Some(rate);
                }
            }
            Err(reason) => {
                if state.failure.is_none() {
                    tracing::warn!(reason, "the source of the capacity fails; the last rate stays in force");
                }
                state.failure = Some(reason);
                if !state.at_floor && (sys::monotonic() - *good_at) as f64 / 1e9 >= source.hold {
                    tracing::warn!(floor_bps = source.floor.0.0, "the source still fails; the floor is in force");
                    self.port.set_rate(source.floor.0);
                    (current.1, state.at_floor) = (None, true);
                }
            }
        }
        if source.file.is_some() || source.measured { FILE_INTERVAL } else { source.interval }
    }
}
