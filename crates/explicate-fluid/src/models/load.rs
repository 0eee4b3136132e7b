//! The load factor of VCP's routers (paper K equation 1) for a fluid: arrivals of an interval plus a part of the
//! queue, divided by the bytes that could have been sent.
//!
//! rho = (lambda + kappa_q q) / (gamma_l C t_rho)

use explicate_core::api::Probe;
use explicate_core::params::{Param, Values};
use explicate_core::rng::Rng;

/// Regions of load, table I.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    /// Multiply.
    Low,
    /// Add.
    High,
    /// Cut.
    Overload,
}

/// Measures the load factor.
pub(super) struct Load {
    capacity: f64,
    t_rho: f64,
    kappa_q: f64,
    gamma_l: f64,
    queue_weight: f64,
    bytes: f64,
    /// Integral of the queue over the interval, bytes s.
    waited: f64,
    queue: f64,
    pub(super) rho: f64,
    pub(super) region: Region,
    began: f64,
    measure_at: f64,
}

impl Load {
    /// The first interval lasts 0.5..1.5 t_rho, drawn from `rng`: the same length as in the packet simulator.
    pub(super) fn new(values: &Values, params: &[Param], capacity: f64, rng: &mut Rng) -> Load {
        let get = |name| values.get(params, name);
        Load {
            capacity,
            t_rho: get("t_rho"),
            kappa_q: get("kappa_q"),
            gamma_l: get("gamma_l"),
            queue_weight: get("queue_weight"),
            bytes: 0.0,
            waited: 0.0,
            queue: 0.0,
            rho: 0.0,
            region: Region::Low,
            began: 0.0,
            measure_at: get("t_rho") * (0.5 + rng.uniform()),
        }
    }

    /// A step; returns whether an interval ended with it.
    pub(super) fn step(&mut self, now: f64, dt: f64, arrived: f64, queue: f64) -> bool {
        self.bytes += arrived;
        self.waited += queue * dt;
        if self.measure_at > now + 0.5 * dt {
            return false;
        }
        let elapsed = now - self.began;
        self.queue += self.queue_weight * (self.waited / elapsed - self.queue);
        self.rho = (self.bytes + self.kappa_q * self.queue) / (self.gamma_l * self.capacity * elapsed);
        self.region = match self.rho {
            rho if rho < 0.8 => Region::Low,
            rho if rho < 1.0 => Region::High,
            _ => Region::Overload,
        };
        (self.bytes, self.waited, self.began) = (0.0, 0.0, now);
        self.measure_at = now + self.t_rho;
        true
    }

    pub(super) fn probe(&self, put: Probe<'_>) {
        put("load_factor", self.rho);
        put("persistent_queue_bytes", self.queue);
        put("code", self.region as u8 as f64 + 1.0);
    }
}
