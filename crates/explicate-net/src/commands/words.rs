//! Properties of links and flows on the command line: with a scenario's keys, read by its parser.

use std::path::Path;

use explicate_core::presets::DEFAULT_FALLBACK;
use explicate_scenario::model::{FlowGroup, Link, Scenario};
use explicate_scenario::problem::{Problem, Problems, Site};

use crate::error::{Error, Result};

/// A TOML string with these characters.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out += &format!("\\u{:04X}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

fn parse(text: &str, what: &str) -> Result<Scenario> {
    Scenario::parse(text, what, Path::new("."), &[]).map_err(|problems| {
        let each: Vec<String> = problems.0.iter().map(Problem::to_string).collect();
        Error::Input(format!("{what}: {}", each.join("\n")))
    })
}

/// Problems in properties on the command line, which begin at this column of the generated text: each with the words
/// to which it refers.
fn explain(what: &str, problems: &Problems, (written, first): (&str, usize)) -> Error {
    let explain = |problem: &Problem| {
        let column = if let Site::File { line: 1, column, .. } = &problem.site { *column } else { 0 };
        let about: String = written.chars().skip(column.saturating_sub(first)).take_while(|c| *c != ',').collect();
        let message = problem.message.strip_prefix("not TOML: ").unwrap_or(&problem.message);
        let message = match message.split_once("string values must be quoted") {
            Some(_) => format!("strings need quotes: \"{}\"", about.trim().trim_end_matches(['}', ']']).trim()),
            None => message.to_string(),
        };
        match about.trim() {
            about if column >= first && !about.is_empty() => format!("{what}: at `{about}`: {message}"),
            _ => format!("{what}: {message}"),
        }
    };
    Error::Input(problems.0.iter().map(explain).collect::<Vec<_>>().join("\n"))
}

/// A text without the contents of its brackets, braces and quotes.
fn outermost(text: &str) -> String {
    let (mut depth, mut quoted) = (0, false);
    let mut keep = |c: char| {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => return depth == 0 && !quoted,
        }
        false
    };
    text.chars().filter(|c| keep(*c)).collect()
}

/// A link with these properties. Its port gets the controllers of a protocol (or none), unless the properties name
/// controllers, and shares the line between explicit and other flows, unless they configure that. Without a rate it
/// is as fast as the wire.
pub(super) fn link(name: &str, properties: &str, controller: Option<&str>) -> Result<Link> {
    let has =
        |key: &str| outermost(properties).split(',').any(|p| p.split('=').next().is_some_and(|k| k.trim() == key));
    let mut more = String::new();
    if !has("rate") {
        more += "rate = \"100Gbit/s\", router = \"none\", queue = \"unlimited\", ";
    } else if controller.is_none() && !has("router") {
        more += "router = \"none\", ";
    }
    if controller.is_some() && has("rate") && !has("share_by_flows") && !has("classes") {
        more += "share_by_flows = true, ";
    }
    if !has("delay") {
        more += "delay = \"0s\", ";
    }
    let flow = controller.unwrap_or(DEFAULT_FALLBACK);
    let before = format!("link = [{{ name = {}, from = \"here\", to = \"there\", {more}", quoted(name));
    let text = format!(
        "{before}{properties} }}, {{ from = \"there\", to = \"here\" }}]\n\
         node = [{{ name = \"here\", kind = \"router\" }}, {{ name = \"there\" }}]\n\
         flows = [{{ name = \"f\", protocol = {}, from = \"here\", to = \"there\" }}]\n",
        quoted(flow)
    );
    let written = (properties, before.chars().count() + 1);
    let read = Scenario::parse(&text, name, Path::new("."), &[]);
    let mut scenario = read.map_err(|problems| explain(name, &problems, written))?;
    Ok(scenario.links.swap_remove(0))
}

/// A flow of this protocol, in this stack or in that which scenarios have.
pub(super) fn flow(protocol: &str, stack: Option<&str>, packet: &str, params: &[String]) -> Result<FlowGroup> {
    let mut given = Vec::new();
    for param in params {
        let Some((key, value)) = param.split_once('=') else {
            return Err(Error::Input(format!("--param needs KEY=VALUE, not `{param}`")));
        };
        let plain = value == "true" || value == "false" || value.parse::<f64>().is_ok();
        given.push(format!("{} = {}", quoted(key.trim()), if plain { value.to_string() } else { quoted(value) }));
    }
    let text = format!(
        "[[flows]]\nname = \"f\"\n{}protocol = {}\npacket = {}\nparams = {{ {} }}\n",
        stack.map_or_else(String::new, |name| format!("stack = {}\n", quoted(name))),
        quoted(protocol),
        quoted(packet),
        given.join(", ")
    );
    let mut scenario = parse(&text, "the flow")?;
    Ok(scenario.flows.swap_remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::units::{Rate, Time};

    #[test]
    fn links_speak_the_scenario_language() {
        let l = link("eth1", "rate = \"50Mbit/s\", queue = { kind = \"red\" }", Some("xcp")).unwrap();
        assert_eq!((l.rate, l.delay, l.routers.len()), (Rate::mbps(50), Time::ZERO, 1));
        assert_eq!(l.queue.as_ref().unwrap().kind.name(), "red");
        assert!(l.divides());
        for apart in ["share_by_flows = false", "classes = []", "router = \"none\""] {
            assert!(!link("eth1", &format!("rate = \"50Mbit/s\", {apart}"), Some("xcp")).unwrap().divides(), "{apart}");
        }
        let l = link("eth1", "delay = \"20ms\", channel = [{ kind = \"random_loss\", rate = \"1%\" }]", None).unwrap();
        assert_eq!((l.delay, l.channel.len(), l.queue.is_none(), l.routers.len()), (Time::millis(20), 1, true, 0));
        let error = link("eth1", "rat = \"5Mbit/s\"", None).err().unwrap().to_string();
        assert!(error.contains("rate"), "{error}");
    }

    #[test]
    fn problems_are_told_in_the_users_words() {
        let message = |properties| link("eth1", properties, Some("xcp")).err().unwrap().to_string();
        assert_eq!(message("rate = 45Mbit/s"), "eth1: at `45Mbit/s`: strings need quotes: \"45Mbit/s\"");
        let limit = message("rate = \"45Mbit/s\", queue = { kind = \"droptail\", limit = 250kB }");
        assert_eq!(limit, "eth1: at `250kB }`: strings need quotes: \"250kB\"");
        let rate = message("rate = \"45Mbits\"");
        assert!(rate.starts_with("eth1: at `\"45Mbits\"`: `rate`: `45Mbits` is not a rate"), "{rate}");
        let comma = message("rate = \"5Mbit/s\" delay = \"2ms\"");
        assert!(comma.contains("missing comma") && !comma.contains(":1:"), "{comma}");
        for nonsense in ["ä = 3", "}", "]]", "rate = \"5Mbit/s\"\nrate = 3", "\"", "rate = \"5Mbit/s\", ä = €"] {
            assert!(message(nonsense).starts_with("eth1: "), "{nonsense}");
        }
    }

    #[test]
    fn flows_too() {
        let flow = |protocol, params: &[String]| flow(protocol, None, "1000B", params);
        let f = flow("LR-LMXCP", &["dupackthreshold=2".to_string()]).unwrap();
        assert_eq!((f.packet, f.resolved.protocol.name()), (1000, "xcp"));
        assert!(flow("xpc", &[]).is_err() && flow("xcp", &["ecn".to_string()]).is_err());
    }

    /// A transfer has all that a scenario's flow has of its stack.
    #[test]
    fn flows_have_a_stack() {
        let f = flow("cubic", Some("linux"), "1000B", &["growth=asked".to_string()]).unwrap();
        assert_eq!((f.resolved.stack.unwrap().name, f.resolved.recovery.name()), ("linux", "rack"));
        let number = |name| f.values.number(name);
        assert_eq!((number("initial_window"), number("acks"), number("growth")), (Some(10.0), Some(1.0), None));
    }
}
