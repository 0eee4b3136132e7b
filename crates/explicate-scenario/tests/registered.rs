//! Protocols that are registered at run time: names, scenarios, schema. The registry is the process's, so this is one test.

use std::path::Path;

use explicate_core::api::{Ack, Allowance, AnySender, Loss, Probe, Protocol, Router, RouterInit, Sender, SenderInit};
use explicate_core::api::{AnyRouter, PortView};
use explicate_core::custom::Custom;
use explicate_core::params::{Info, Param, Unit};
use explicate_core::registry::{self, RegisterError, register, replace};
use explicate_core::units::Time;
use explicate_core::wire::Packet;
use explicate_scenario::model::Scenario;
use explicate_scenario::schema::schema;

const fn info(name: &'static str) -> Info {
    Info { name, summary: "A window that stays as it is", source: "this test", params: &[] }
}

struct Still;
impl Protocol for Still {
    const INFO: Info = info("still");
    const EXPLICIT: bool = true;
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(Window(init.initial_window))
    }
    fn router(&self, _init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Some(Box::new(Silent))
    }
}

struct Window(f64);
impl Sender for Window {
    fn allowance(&self) -> Allowance {
        Allowance { cwnd: self.0, pacing: None }
    }
    fn on_ack(&mut self, _ack: &Ack<'_>) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn probe(&self, put: Probe<'_>) {
        put("cwnd", self.0);
    }
}

struct Silent;
impl Router for Silent {
    fn on_arrival(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
    fn on_departure(&mut self, _now: Time, _packet: &mut Packet, _port: &PortView) {}
    fn probe(&self, _put: Probe<'_>) {}
}

/// An end-to-end protocol of this name, made at run time.
fn custom(name: &'static str) -> &'static Custom {
    Box::leak(Box::new(plain(info(name))))
}

fn plain(info: Info) -> Custom {
    Custom {
        info: Box::leak(Box::new(info)),
        router_params: &[],
        explicit: false,
        header_len: 0,
        bears_plain_routers: false,
        controller: None,
        sender: Box::new(|init| Box::new(Window(init.initial_window))),
        receiver: None,
        router: None,
    }
}

const SCENARIO: &str = r#"
duration = "1s"
[topology]
kind = "dumbbell"
bottleneck = { rate = "5Mbit/s", delay = "20ms", router = "still" }
[[flows]]
name = "a"
protocol = "still/newreno"
"#;

fn parse() -> Result<Scenario, String> {
    Scenario::parse(SCENARIO, "s.toml", Path::new("."), &[]).map_err(|e| e.to_string())
}

#[test]
fn registered_protocols_are_known_wherever_names_are() {
    let before = parse().err().expect("no protocol is called `still` yet");
    assert!(before.contains("no protocol is called `still`"), "{before}");

    assert_eq!(register(&Still), Ok(()));
    parse().unwrap();
    assert!(schema().to_string().contains("\"still\""));
    let kinds: Vec<&str> = registry::entries().iter().filter(|e| e.name == "still").map(|e| e.kind).collect();
    assert_eq!(kinds, ["protocol", "router"], "a router without parameters is one too");

    for name in ["still", "xcp", "newreno"] {
        let clash = register(custom(name)).unwrap_err();
        assert_eq!(clash, RegisterError::Taken(name.to_string()));
        assert!(clash.to_string().contains(&format!("the name `{name}` is taken")), "{clash}");
    }
    for name in ["", "a/b", "a,b", "auto", "none", "a b"] {
        assert_eq!(register(custom(name)), Err(RegisterError::Name(name.to_string())));
    }
    let keep = Param::new("keep", Unit::Fraction, 0.5, "this test", "What a loss leaves.").within(0.0, 1.0);
    for (params, why) in [
        (vec![keep, keep], "parameter `keep`: it is declared twice"),
        (vec![Param { default: 2.0, ..keep }], "parameter `keep`: the default 2 is not from 0 to 1"),
        (vec![Param { name: "ecn", ..keep }], "parameter `ecn`: flows have another of this name"),
        (vec![Param { name: "pipe", ..keep }], "parameter `pipe`: flows have another of this name"),
    ] {
        let info = Info { params: params.leak(), ..info("other") };
        let error = register(Box::leak(Box::new(plain(info)))).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    for header_len in [4, 2000] {
        let error =
            register(Box::leak(Box::new(Custom { header_len, ..plain(info("other")) }))).unwrap_err().to_string();
        assert!(error.contains("a congestion header has 20 or 28 bytes"), "{error}");
    }
    assert_eq!(replace(custom("xcp")), Err(RegisterError::Taken("xcp".to_string())), "this crate's own stay");
    assert_eq!(replace(custom("still")), Ok(()));
    assert!(!registry::protocol("still").unwrap().explicit());
    let after = parse().err().expect("the second `still` has no router");
    assert!(after.contains("no protocol with a router is called `still`"), "{after}");
}
