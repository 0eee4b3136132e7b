//! The controller as quinn calls it.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use explicate_core::units::Time;
use quinn::congestion::{Controller, ControllerFactory};
use quinn_proto::RttEstimator;

use super::{INITIAL, WindowController};

/// A [`WindowController`] that the connection and its datagrams share.
#[derive(Clone)]
pub struct SharedController(pub Arc<Mutex<WindowController>>);

impl SharedController {
    /// The controller.
    pub fn lock(&self) -> std::sync::MutexGuard<'_, WindowController> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControllerFactory for SharedController {
    fn build(self: Arc<Self>, _: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(ConnectionController { controller: self.as_ref().clone(), mtu })
    }
}

fn time(duration: Duration) -> Time {
    Time(duration.as_nanos() as u64)
}

/// The controller as quinn calls it.
struct ConnectionController {
    controller: SharedController,
    mtu: u16,
}

impl Controller for ConnectionController {
    fn on_sent(&mut self, _: Instant, bytes: u64, _: u64) {
        self.controller.lock().left(bytes);
    }
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        // Not the lesser of both: before its first sample the estimate is a guess of 333 ms, which no path need reach again.
        self.controller.lock().on_ack(bytes, time(rtt.get()), time(now.saturating_duration_since(sent)));
    }
    fn on_end_acks(&mut self, _: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        self.controller.lock().on_end_acks(in_flight, app_limited);
    }
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.controller.lock().on_loss(lost_bytes, time(now.saturating_duration_since(sent)), persistent);
    }
    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
    }
    fn window(&self) -> u64 {
        (self.controller.lock().allowed() * self.mtu as f64) as u64
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(ConnectionController { controller: self.controller.clone(), mtu: self.mtu })
    }
    fn initial_window(&self) -> u64 {
        (INITIAL * self.mtu as f64) as u64
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
