//! BISE for VCP (paper K section IV-A): at low load a router leaves the code of low load on a share r of the packets
//! and writes that of high load into the rest. Senders are VCP's ([`super::vcp`]).
//!
//! r = k (rho_inf - rho) / (epsilon rho), within 0..1  (equations 7 and 11)
//!
//! Of several routers at low load the least share counts. With drawn codes (`spread = false`, the default) packets
//! lose a part of it where several shares are similar: this is not modelled.

use explicate_core::api::Probe;
use explicate_core::params::Values;
use explicate_core::protocols::vcp_bise::{RouterParams, SENDER};

use super::load::{Load, Region};
use super::vcp::{VcpSender, raise};
use crate::model::{Model, Parcel, Router, RouterInit, Sender, SenderInit};

/// VCP with BISE.
pub struct VcpBise;

impl Model for VcpBise {
    fn protocol(&self) -> &'static str {
        "vcp-bise"
    }
    fn summary(&self) -> &'static str {
        "VCP's model, and at low load a share of the fluid with the code to multiply"
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<dyn Sender> {
        Box::new(VcpSender::new(init, SENDER.with(init.values)))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<dyn Router>> {
        let params = RouterParams::of(init.values);
        let load = Load::new(params.load, init.capacity, &mut init.rng.clone());
        Some(Box::new(BiseRouter { load, params, share: 1.0 }))
    }
    /// The position of bursts in intervals determines when overload is detected.
    fn steps(&self) -> f64 {
        100.0
    }
    fn longest_step(&self, values: &Values) -> f64 {
        SENDER.with(values).t_rho / 20.0
    }
}

struct BiseRouter {
    load: Load,
    params: RouterParams,
    share: f64,
}

impl Router for BiseRouter {
    fn on_arrival(&mut self, _parcel: &Parcel, _packet: f64, _rtt: f64) {}
    fn step(&mut self, now: f64, dt: f64, arrived: f64, queue: f64) {
        if self.load.step(now, dt, arrived, queue) {
            let (rho, p) = (self.load.rho, &self.params);
            let ratio = if rho > 0.0 { p.k * (p.rho_inf - rho) / (p.eps_r * rho) } else { 1.0 };
            self.share = ratio.clamp(0.0, 1.0);
        }
    }
    fn on_departure(&mut self, parcel: &mut Parcel) {
        raise(parcel, self.load.region);
        if self.load.region == Region::Low {
            parcel.tags[0] = parcel.tags[0].min(self.share * (parcel.bytes - parcel.tags[1]));
        }
    }
    fn probe(&self, put: Probe<'_>) {
        self.load.probe(put);
        put("mixing_ratio", self.share);
    }
}
