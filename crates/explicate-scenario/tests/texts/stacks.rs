//! `stack`: what it sets, and what wins over it.

use crate::support::{SMALL, parse, problems};
use explicate_core::endpoint::PARAMS;
use explicate_core::presets::{STACK_NAMES, STACKS};
use explicate_scenario::model::{FlowGroup, Scenario};

/// The small network with one flow of this protocol; `top` stands before it, `lines` belong to the flow.
fn with(top: &str, protocol: &str, lines: &str) -> Scenario {
    parse(&format!("{top}\n{}{lines}\n", SMALL.replace("xcp/reno", protocol)))
}

fn first_window(group: &FlowGroup) -> f64 {
    group.values.get(PARAMS, "initial_window")
}

#[test]
fn a_stack_sets_what_nothing_else_sets() {
    let window = |top: &str, protocol: &str, lines: &str| first_window(&with(top, protocol, lines).flows[0]);
    assert_eq!(window("", "cubic", ""), 10.0, "Linux, if there is none");
    assert_eq!(window("stack = \"ns2\"", "cubic", ""), 3.0);
    assert_eq!(window("stack = \"linux\"", "cubic", ""), 10.0);
    assert_eq!(window("stack = \"linux\"", "cubic", "stack = \"ns2\""), 3.0, "a group's own stack wins");
    assert_eq!(window("stack = \"ns2\"", "cubic", "stack = \"linux\""), 10.0);
    assert_eq!(window("stack = \"linux\"", "cubic", "params = { initial_window = 4 }"), 4.0, "a parameter wins");
    assert_eq!(window("stack = \"linux\"", "cubic", "params = { initial_window = 3 }"), 3.0, "also the default");
    assert_eq!(window("stack = \"linux\"", "xcp", ""), 3.0, "an explicit protocol has its own start");
}

#[test]
fn a_recovery_that_is_named_wins() {
    let repair = |stack: &str, protocol: &str| {
        with(&format!("stack = \"{stack}\""), protocol, "").flows[0].resolved.recovery.name()
    };
    for stack in STACKS {
        for named in ["newreno", "sack", "tahoe"] {
            assert_eq!(repair(stack.name, named), named);
        }
        assert_eq!(repair(stack.name, "cubic/newreno"), "newreno");
        assert_eq!(repair(stack.name, "greedy"), "none", "what is not reliable remains so");
        assert_eq!(repair(stack.name, "LR-LMXCP"), "loss_monitor", "a paper's variant remains one");
        let expected = |preset: &'static str| stack.recovery.unwrap_or(preset);
        assert_eq!(repair(stack.name, "cubic"), expected("sack"));
        assert_eq!(repair(stack.name, "reno"), expected("reno"));
        assert_eq!(repair(stack.name, "vcp"), expected("newreno"));
    }
}

/// The resolved scenario is that scenario again.
#[test]
fn a_resolved_scenario_keeps_its_stack() {
    for stack in STACK_NAMES {
        for protocol in ["cubic", "reno", "xcp", "bbr", "vcp", "cubic/sack"] {
            let first = with(&format!("stack = \"{stack}\""), protocol, "");
            let again = parse(&first.resolved);
            assert_eq!(again.resolved, first.resolved, "{stack} {protocol}");
            assert_eq!(again.flows[0].resolved.recovery.name(), first.flows[0].resolved.recovery.name());
        }
    }
}

#[test]
fn an_unknown_stack_is_an_error_with_its_place() {
    let wrong = problems(&format!("stack = \"linx\"\n{SMALL}"), &[]);
    assert!(wrong.iter().any(|p| p.contains("x.toml:1:9") && p.contains("linux")), "{wrong:?}");
    let wrong = problems(&format!("{SMALL}stack = \"bsd\"\n"), &[]);
    assert!(wrong.iter().any(|p| p.contains("x.toml:11:9") && p.contains("rfc")), "{wrong:?}");
}
