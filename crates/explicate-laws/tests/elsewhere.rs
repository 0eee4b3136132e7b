//! Protocols that another crate registers: a sound one passes, and each defect is found by the law that it breaks.

use std::panic::catch_unwind;

use explicate_core::api::{
    Ack, Allowance, AnyRouter, AnySender, Loss, PortView, Probe, Protocol, Router, RouterInit, Sender, SenderInit,
    Sent, Writes,
};
use explicate_core::params::Info;
use explicate_core::registry;
use explicate_core::units::Time;
use explicate_core::wire::Packet;

/// Additive increase and multiplicative decrease, with the defect of this number; 0 is none.
struct Aimd<const DEFECT: usize>;

const NAMES: [&str; 5] = ["sound", "no-floor", "writes", "stuck", "raises"];

impl<const DEFECT: usize> Protocol for Aimd<DEFECT> {
    const INFO: Info = Info { name: NAMES[DEFECT], summary: "AIMD with a defect", source: "ours", params: &[] };

    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(AimdSender::<DEFECT>(init.initial_window))
    }
    fn router(&self, _init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Some(Box::new(AimdRouter::<DEFECT>))
    }
}

struct AimdSender<const DEFECT: usize>(f64);

impl<const DEFECT: usize> Sender for AimdSender<DEFECT> {
    const WRITES: Writes = Writes::Nothing;

    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.0, pacing: None }
    }
    fn on_send(&mut self, packet: &mut Packet, _sent: &Sent) {
        if DEFECT == 2 {
            packet.transport.set_code(1);
        }
    }
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if !ack.recovering && !ack.app_limited {
            self.0 += ack.newly_acked as f64 / self.0;
        }
    }
    fn on_loss(&mut self, _loss: &Loss) {
        self.0 /= 2.0;
        if DEFECT != 1 {
            self.0 = self.0.max(1.0);
        }
    }
    fn next_timer(&self) -> Time {
        if DEFECT == 3 { Time::secs(1) } else { Time::NEVER }
    }
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.0);
    }
}

struct AimdRouter<const DEFECT: usize>;

impl<const DEFECT: usize> Router for AimdRouter<DEFECT> {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
    fn on_departure(&mut self, _now: Time, packet: &mut Packet, _port: &PortView) {
        if DEFECT == 4 && packet.congestion.is_standard() {
            packet.congestion.set_delta_throughput(1_000_000);
        }
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[test]
fn each_defect_is_found_by_its_law() {
    registry::register(&Aimd::<0>).unwrap();
    registry::register(&Aimd::<1>).unwrap();
    registry::register(&Aimd::<2>).unwrap();
    registry::register(&Aimd::<3>).unwrap();
    registry::register(&Aimd::<4>).unwrap();
    explicate_laws::check("sound");
    let found = [
        ("no-floor", "no-floor: a window of 0.5"),
        ("writes", "writes: WRITES does not hold: "),
        ("stuck", "the timer of a sender did not move on"),
        ("raises", "raises raises a request"),
        ("unknown", "no protocol `unknown` is registered"),
    ];
    for (name, expected) in found {
        let payload = catch_unwind(|| explicate_laws::check(name)).unwrap_err();
        let why = payload.downcast_ref::<String>().unwrap();
        assert!(why.contains(expected), "{name}: {why}");
    }
}
