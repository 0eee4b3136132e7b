//! Properties of links and flows on the command line: with a scenario's keys, read by its parser.

use std::path::Path;

use explicate_core::presets::DEFAULT_FALLBACK;
use explicate_core::wire::scone::Advice;
use explicate_scenario::model::{FlowGroup, Link, Scenario};
use explicate_scenario::problem::{Problem, Problems, Site};

use crate::error::{Error, Result};
use crate::forward::scone::Basis;

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

/// Properties, divided at their commas.
fn properties(text: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut from, mut parts) = (0, false, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
/// The key of a property.
fn key(property: &str) -> &str {
    property.split('=').next().unwrap_or_default().trim()
}

/// A port's property `scone`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SconeTable {
    advise: String,
}
/// The same, with its key.
#[derive(serde::Deserialize)]
struct SconeProperty {
    scone: SconeTable,
}

/// What a port with these properties advises by SCONE, if anything, and its other properties, which are a link's.
pub(super) fn advice(what: &str, text: &str) -> Result<(Option<Basis>, String)> {
    let (found, others): (Vec<&str>, Vec<&str>) =
        properties(text).into_iter().partition(|property| key(property) == "scone");
    let [written] = found[..] else {
        return match found.len() {
            0 => Ok((None, text.to_string())),
            _ => Err(Error::Input(format!("{what}: `scone` is there twice; keep one"))),
        };
    };
    let fail = |message: String| {
        let form = "write `scone = { advise = \"45Mbit/s\" }`, or \"fair\" or \"measured\" for the rate";
        Error::Input(format!("{what}: at `{}`: {message}; {form}", written.trim()))
    };
    let read = toml::from_str(written.trim()).map_err(|error: toml::de::Error| fail(error.message().to_string()));
    let SconeProperty { scone } = read?;
    let basis = match scone.advise.as_str() {
        "fair" => Basis::Fair,
        "measured" => Basis::Measured,
        rate => {
            let bits = explicate_scenario::rate(rate).map_err(fail)?.0 as f64;
            if Advice::at_most(bits).rate().is_some_and(|least| bits < least) {
                return Err(fail(format!("{rate} is below 100 kbit/s, the lowest rate that SCONE has")));
            }
            Basis::Rate(bits)
        }
    };
    if !matches!(basis, Basis::Rate(_)) && !others.iter().any(|property| key(property) == "rate") {
        return Err(fail(format!("\"{}\" needs a `rate` at this port too", scone.advise)));
    }
    Ok((Some(basis), others.join(",")))
}

/// A link with these properties. Its port gets the controllers of a protocol (or none), unless the properties name
/// controllers, and shares the line between explicit and other flows, unless they configure that. Without a rate it
/// is as fast as the wire.
pub(crate) fn link(name: &str, properties: &str, controller: Option<&str>) -> Result<Link> {
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
    fn a_port_advises_what_its_properties_say() {
        let of = |properties| advice("eth1", properties).unwrap();
        assert_eq!(of("rate = \"9Mbit/s\""), (None, "rate = \"9Mbit/s\"".to_string()));
        assert_eq!(of("").0, None);
        let (basis, rest) = of("scone = { advise = \"45Mbit/s\" }");
        assert_eq!((basis, rest.as_str()), (Some(Basis::Rate(45e6)), ""));
        let (basis, rest) =
            of("rate = \"9Mbit/s\", scone = { advise = \"fair\" }, queue = { kind = \"droptail\", limit = \"250kB\" }");
        assert_eq!(basis, Some(Basis::Fair));
        assert_eq!(rest, "rate = \"9Mbit/s\", queue = { kind = \"droptail\", limit = \"250kB\" }");
        assert!(link("eth1", &rest, Some("xcp")).unwrap().divides());
        assert_eq!(of("scone={advise=\"measured\"},rate=\"9Mbit/s\"").0, Some(Basis::Measured));
    }

    #[test]
    fn bad_advice_is_told_with_its_remedy() {
        let message = |properties: &str| advice("eth1", properties).unwrap_err().to_string();
        for (properties, says) in [
            ("scone = { advise = \"often\" }", "`often` is not a rate"),
            ("scone = { advise = 45Mbit/s }", "at `scone = { advise = 45Mbit/s }`: "),
            ("scone = { advise = \"50kbit/s\" }", "50kbit/s is below 100 kbit/s"),
            ("scone = { advice = \"fair\" }", "advice"),
            ("scone = { advise = \"fair\", every = \"5s\" }, rate = \"1Mbit/s\"", "every"),
            ("scone = true", "write `scone = { advise = \"45Mbit/s\" }`"),
            ("scone", "write `scone = { advise = \"45Mbit/s\" }`"),
            ("scone = { advise = \"fair\" }", "\"fair\" needs a `rate` at this port too"),
            ("scone = { advise = \"measured\" }, delay = \"1ms\"", "\"measured\" needs a `rate`"),
            ("scone = { advise = \"fair\" }, scone = { advise = \"1Mbit/s\" }", "`scone` is there twice"),
        ] {
            let told = message(properties);
            assert!(told.starts_with("eth1: ") && told.contains(says), "{properties}: {told}");
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
