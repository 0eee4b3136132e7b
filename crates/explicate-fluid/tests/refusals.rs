//! What no model covers is refused where the scenario asks for it.

use std::path::Path;

use explicate_fluid::check::check;
use explicate_fluid::run::run;
use explicate_scenario::model::Scenario;

const DUMBBELL: &str = r#"duration = "10s"
[topology]
kind = "dumbbell"
pairs = 1
bottleneck = { rate = "10Mbit/s", delay = "20ms" }
[[flows]]
name = "one"
protocol = "xcp"
"#;

fn refusal(text: &str, sets: &[(&str, &str)]) -> String {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenario = Scenario::parse_fluid(text, "x.toml", &here, &sets).unwrap();
    check(&scenario, text, "x.toml", &sets).map_or_else(|problems| problems.to_string(), |()| String::new())
}

fn refused(text: &str, sets: &[(&str, &str)], wanted: &[&str]) {
    let message = refusal(text, sets);
    assert!(wanted.iter().all(|part| message.contains(part)), "{message:?} lacks some of {wanted:?}");
}

#[test]
fn what_is_covered_passes() {
    assert_eq!(refusal(DUMBBELL, &[]), "");
    assert_eq!(refusal(DUMBBELL, &[("flows.0.protocol", "vcp-bise"), ("flows.0.count", "100000000")]), "");
}

/// A processing time that is given is left out with a warning; the default is left out without.
#[test]
fn processing_is_left_out() {
    let warned = |head: &str| {
        let text = format!("{head}{DUMBBELL}");
        let scenario = Scenario::parse_fluid(&text, "x.toml", Path::new("."), &[]).unwrap();
        let said = run(&scenario, 0, "test", &|_| true).unwrap().warnings;
        said.into_iter().map(|warning| warning.located(&text, "x.toml", &[])).collect::<Vec<String>>()
    };
    assert!(warned("").is_empty() && warned("processing = \"none\"\n").is_empty());
    let said = warned("processing = \"0.8ms\"\n");
    assert!(said[0].starts_with("x.toml:1:14: "), "{said:?}");
    assert!(said.len() == 1 && said[0].contains("[[flows]] `one`") && said[0].contains("`processing`"), "{said:?}");
}

#[test]
fn flows_without_a_model() {
    refused(&DUMBBELL.replace("xcp", "cubic"), &[], &["x.toml:8:12: --fluid: `cubic` has no fluid model", "xcp, vcp"]);
    refused(DUMBBELL, &[("flows.0.protocol", "bbr")], &["--set flows.0.protocol: ", "`bbr`"]);
    refused(&format!("{DUMBBELL}on_off = {{ on = \"1s\", off = \"1s\" }}"), &[], &["x.toml:9:10: ", "on-periods"]);
    refused(&format!("{DUMBBELL}params = {{ ack_every = 2 }}"), &[], &["x.toml:9:24: ", "`ack_every`"]);
    refused(&format!("{DUMBBELL}arrivals = \"5/s\""), &[], &["x.toml:9:12: ", "random arrivals"]);
    let reno = DUMBBELL.replace("xcp", "reno");
    refused(&format!("{reno}params = {{ growth = \"linux\" }}"), &[], &["x.toml:9:21: ", "`growth`"]);
    refused(&format!("{reno}params = {{ host_queue = \"fifo\" }}"), &[], &["x.toml:9:25: ", "`host_queue`"]);
}

/// A fluid takes from a stack what it can; a value that is written and that no model has is refused, unless it repeats what the
/// group's own stack sets, as a resolved scenario does.
#[test]
fn stacks_are_covered_and_what_differs_from_them_is_not() {
    let reno = DUMBBELL.replace("xcp", "reno");
    for stack in explicate_core::presets::STACK_NAMES {
        for text in [DUMBBELL, &reno] {
            assert_eq!(refusal(&format!("{text}stack = \"{stack}\""), &[]), "", "{stack}");
            assert_eq!(refusal(text, &[("stack", stack)]), "", "{stack}");
            let sets = [("stack".to_string(), stack.to_string())];
            let resolved = Scenario::parse_fluid(text, "x.toml", Path::new("."), &sets).unwrap().resolved;
            assert_eq!(refusal(&resolved, &[]), "", "{stack}");
        }
    }
    let with = |stack: &str, params: &str| format!("stack = \"{stack}\"\n{reno}params = {{ {params} }}");
    refused(&with("linux", "growth = \"linux\""), &[], &["x.toml:10:21: ", "`growth`"]);
    refused(&with("linux", "acks = \"linux\""), &[], &["x.toml:10:19: ", "`acks`"]);
    refused(&with("ns2", "acks = \"linux\""), &[], &["x.toml:10:19: ", "`acks`"]);
    refused(&with("rfc", "ack_every = 3"), &[], &["x.toml:10:24: ", "`ack_every`"]);
    refused(&with("linux", "rto = \"ns2\""), &[], &["x.toml:10:18: ", "`rto`"]);
    refused(&with("ns2", "clock_tick = \"20ms\""), &[], &["x.toml:10:25: ", "`clock_tick`"]);
    let own = |more: &str| format!("{reno}stack = \"linux\"\nparams = {{ growth = {more} }}");
    assert_eq!(refusal(&own("\"linux\""), &[]), "", "it repeats its own stack");
    refused(&own("\"rfc7661\""), &[], &["x.toml:10:21: ", "`growth`"]);
    refused(&with("linux", ""), &[("flows.one.params.hystart", "rfc9406")], &["--set flows.one.params.hystart: "]);
}

#[test]
fn links_without_a_model() {
    let with = |more: &str| DUMBBELL.replace("\"20ms\"", &format!("\"20ms\", {more}"));
    refused(&with("queue = \"codel\""), &[], &["x.toml:5:", "`codel` of `r1->r2`", "droptail, red and step"]);
    let bursts = with("channel = [{ kind = \"burst_loss\" }]");
    refused(&bursts, &[], &["x.toml:5:", "`burst_loss`", "there is `random_loss`"]);
    assert_eq!(refusal(&with("channel = [{ kind = \"random_loss\", rate = \"1%\" }]"), &[]), "");
    let later = with("channel = [{ kind = \"random_loss\", rate = \"1%\", start = \"5s\" }]");
    refused(&later, &[], &["x.toml:5:", "sets `start`"]);
    refused(&with("half_duplex = true"), &[], &["x.toml:5:", "half duplex"]);
    let scone = DUMBBELL.replace("\"20ms\"", "\"20ms\", scone = { advise = \"5Mbit/s\" }");
    refused(&scone, &[], &["x.toml:5:", "`r1->r2` has a SCONE element"]);
    let red = with("queue = { kind = \"red\", limit = \"100pkt\" }");
    assert_eq!(refusal(&red, &[]), "");
    refused(&with("queue = { kind = \"red\", drop_above = 0.1 }"), &[], &["x.toml:5:", "`drop_above` of `r1->r2`"]);
    refused(&red, &[("flows.0.protocol", "vcp")], &["x.toml:5:", "marks `one`'s vcp packets"]);
    let step = with("queue = \"step\"");
    assert_eq!(refusal(&step, &[("flows.0.protocol", "dctcp")]), "");
    refused(&step, &[("flows.0.protocol", "abc")], &["x.toml:5:", "marks `one`'s abc packets; use another queue"]);
}

#[test]
fn wireless_and_reroutes() {
    let wifi = include_str!("../../../scenarios/wifi-chain.toml");
    refused(wifi, &[], &["x.toml:", "a shared medium has no fluid model"]);
    let reroute = include_str!("../../../scenarios/xcp-i-reroute.toml");
    refused(reroute, &[], &["[[reroute]]", "`xcp_i` has no fluid model"]);
}

/// Short round trips make short steps, and long round trips then have too many of them for the memory or the time: an error, not
/// the end of the process.
#[test]
fn sizes_that_end_memory_or_patience() {
    let lan = "[[flows]]\nname = \"lan\"\nprotocol = \"xcp\"\nfrom = \"a\"\nto = \"b\"\n";
    let far = "[[flows]]\nname = \"far\"\nprotocol = \"xcp\"\nfrom = \"a\"\nto = \"c\"\ncount = 64\nstart = { spread = \"1s\" }\n";
    let link = |to: &str, delay: &str| {
        format!("[[link]]\nfrom = \"a\"\nto = \"{to}\"\nduplex = true\nrate = \"100Gbit/s\"\ndelay = \"{delay}\"\n")
    };
    let nodes: String = ["a", "b", "c"].map(|n| format!("[[node]]\nname = \"{n}\"\n")).concat();
    let error = |duration: &str, flows: &str| {
        let text = format!("duration = \"{duration}\"\n{nodes}{}{}{flows}", link("b", "1us"), link("c", "2s"));
        let scenario = Scenario::parse_fluid(&text, "x.toml", Path::new("."), &[]).unwrap();
        run(&scenario, 0, "test", &|_| true).err().map_or_else(String::new, |error| error.to_string())
    };
    assert!(error("10s", &format!("{lan}{far}")).contains("the shortest round trip makes the steps"));
    assert!(error("10000000s", lan).contains("shorten `duration`"));
}
