//! The load factor of VCP's routers (paper K equation 1) for a fluid: arrivals of an interval plus a part of the
//! queue, divided by the bytes that could have been sent.
//!
//! rho = (lambda + kappa_q q) / (gamma_l C t_rho)

use explicate_core::api::Probe;
use explicate_core::protocols::common::load_factor::Params;
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
    /// The first interval lasts 0.5..1.5 t_rho, drawn from `rng`, or t_rho, as in the packet simulator.
    pub(super) fn new(params: Params, capacity: f64, rng: &mut Rng) -> Load {
        let first = if params.in_step { 1.0 } else { 0.5 + rng.uniform() };
        Load {
            capacity,
            t_rho: params.t_rho,
            kappa_q: params.kappa_q,
            gamma_l: params.gamma_l,
            queue_weight: params.queue_weight,
            bytes: 0.0,
            waited: 0.0,
            queue: 0.0,
            rho: 0.0,
            region: Region::Low,
            began: 0.0,
            measure_at: params.t_rho * first,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The same draws as the packet simulator's: from half an interval to one and a half, or with `in_step` a whole one.
    #[test]
    fn first_intervals_are_drawn_or_equal() {
        let first = |params: Params, seed| Load::new(params, 1e6, &mut Rng::stream(seed, "load")).measure_at;
        let drawn: Vec<f64> = (0..20).map(|seed| first(Params::DEFAULT, seed)).collect();
        assert!(drawn.iter().all(|at| (0.1..0.3).contains(at)) && drawn[0] != drawn[1], "{drawn:?}");
        assert_eq!(first(Params { in_step: true, ..Params::DEFAULT }, 1), 0.2);
    }
}
