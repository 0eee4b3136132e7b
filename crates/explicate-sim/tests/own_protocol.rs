//! What a defect of a protocol from another crate does to a run. In a process of its own: the registration is global.

use std::path::Path;

use explicate_core::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Sender, SenderInit};
use explicate_core::params::{Info, Number, parameters};
use explicate_core::registry;
use explicate_core::units::Rate;
use explicate_scenario::model::Scenario;
use explicate_sim::measure::run_tables;

struct Wrong;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// The window after the first acknowledgement, less one.
        less_one: Number = 1.0, in -10.0..=10.0, "ours";
    }
}

impl Protocol for Wrong {
    const INFO: Info = Info { name: "wrong", summary: "A window by parameter", source: "ours", params: Params::PARAMS };
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(WrongSender { cwnd: init.initial_window, next: Params::of(init.values).less_one + 1.0 })
    }
}

struct WrongSender {
    cwnd: f64,
    next: f64,
}

impl Sender for WrongSender {
    fn allowance(&self) -> Allowance {
        let pacing = (self.next == 10.0).then_some(Rate(0));
        Allowance { cwnd: self.cwnd, pacing }
    }
    fn on_ack(&mut self, _ack: &Ack<'_>) {
        self.cwnd = if self.next == 11.0 { f64::NAN } else { self.next };
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.cwnd);
    }
}

/// Else the flow stops, and the table has a goodput of zero without a reason.
#[test]
fn an_allowance_that_is_none_is_an_error() {
    registry::register(&Wrong).unwrap();
    let window = |given| format!("a window of {given} segments; it must be finite, 1 or more");
    let pacing = "a pacing rate of 0; it must be 1 bit/s or more".to_string();
    for (less_one, what) in [(10, window("NaN")), (-1, window("0")), (-2, window("-1")), (9, pacing)] {
        let text = format!(
            "name = \"w\"\nduration = \"2s\"\n[topology]\nkind = \"dumbbell\"\nbottleneck = {{ rate = \"1Mbit/s\" }}\n\
             [[flows]]\nname = \"a\"\nprotocol = \"wrong/sack\"\nparams = {{ less_one = {less_one} }}"
        );
        let scenario = Scenario::parse(&text, "w.toml", Path::new("."), &[]).unwrap();
        let error = run_tables(&scenario).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, format!("`wrong` left flow a.0 with {what}"));
    }
}
