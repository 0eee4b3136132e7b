//! What the house promises of itself: all that the papers name is registered or named as not built, and files are short.

use std::fs;
use std::path::{Path, PathBuf};

use explicate_core::endpoint;
use explicate_core::params::{Param, Unit};
use explicate_core::presets::{PRESETS, STACK_NAMES, STACKS};
use explicate_core::recovery::{self, RECOVERIES};
use explicate_core::registry::{self, controller, entries, resolve};

/// All that the papers name, by kind of registry entry: senders and their TCP rivals, recoveries, queues, routers.
const NAMED: &[(&str, &[&str])] = &[
    ("protocol", &["xcp", "xcp_window", "xcp_r", "xcp_linux24", "xcp_i", "p_xcp", "vcp", "vcp-bise", "xtcp"]),
    ("protocol", &["video", "video_xtcp", "greedy"]),
    ("protocol", &["reno", "hstcp", "bic", "cubic", "hybla", "westwood", "vegas", "fast", "new_jersey", "bbr"]),
    ("recovery", &["tahoe", "reno", "newreno", "sack", "loss_resilient", "loss_monitor", "sack_monitor", "none"]),
    ("qdisc", &["droptail", "red", "rem", "pi", "avq", "codel", "fq_codel"]),
    ("router", &["xcp", "xcp_window", "xcp_i", "p_xcp", "vcp", "vcp-bise", "xtcp", "new_jersey"]),
];

/// What the papers call their combinations: TCP's generations, paper K's extensions, table 1 of paper D.
const COMBINED: &[&str] = &[
    "tahoe",
    "reno",
    "newreno",
    "sack",
    "vcp-wlte",
    "vcp-bise-wlte",
    "XCP_dumb",
    "XCP",
    "XCP_PA",
    "LR-XCP",
    "LR-XCP_PA",
    "LR-LMXCP",
    "LR-XTCP",
    "LR-XTCP_PA",
    "LR-LMXTCP",
    "LR-LMXTCP_TCPfriend",
    "LR-XCPQ_PA",
];

/// Parameters by which the papers' systems differ: the protocols that have them, and which.
const SWITCHES: &[(&str, &str, &[&str])] = &[
    ("protocol", "xcp", &["on_loss", "on_timeout", "desired_rate", "follow_duplicates"]),
    ("protocol", "xcp_linux24", &["fractions", "on_loss", "on_timeout"]),
    ("router", "xcp", &["pools", "max_interval", "idle_rtt", "target_queue", "queue_weight"]),
    ("protocol", "vcp", &["on_loss", "ai_scale", "pace_below", "pace_parts", "weight", "follow_duplicates"]),
    ("router", "vcp-bise", &["k", "eps_r", "rho_inf", "spread", "carried"]),
    ("protocol", "xtcp", &["tcp_friendly", "grow_on_duplicates"]),
    (
        "recovery",
        "loss_resilient",
        &["partial_deflation", "partial_ack", "restart_on_any", "retransmission_timer", "retransmission_factor"],
    ),
    (
        "recovery",
        "loss_monitor",
        &["dupackthreshold", "restart_on_any", "retransmission_timer", "retransmission_factor"],
    ),
    ("qdisc", "red", &["gentle", "adaptive", "mark"]),
    ("qdisc", "rem", &["gamma", "alpha", "phi", "mark"]),
];

#[test]
fn all_that_the_papers_name_is_registered() {
    let entries = entries();
    let find = |kind: &str, name: &str| {
        let found = entries.iter().find(|e| e.kind == kind && e.name == name);
        found.unwrap_or_else(|| panic!("no {kind} `{name}`"))
    };
    for (kind, names) in NAMED {
        for name in *names {
            let entry = find(kind, name);
            assert!(!entry.summary.is_empty() && !entry.source.is_empty(), "{kind} {name}");
        }
    }
    for name in COMBINED {
        find("preset", name);
        resolve(name).unwrap_or_else(|why| panic!("{why}"));
    }
    for (kind, name, keys) in SWITCHES {
        for key in *keys {
            let found = find(kind, name).params.iter().find(|p| p.name == *key);
            let param = found.unwrap_or_else(|| panic!("{kind} `{name}` has no `{key}`"));
            assert!(!param.source.is_empty() && !param.doc.is_empty(), "{name}.{key}");
            let choice = matches!(param.unit, Unit::Choice(words) if words.len() > 1);
            assert!(choice || param.min < param.max || param.default.is_nan(), "{name}.{key} cannot be changed");
        }
    }
}

/// Presets name parameters as scenarios do. Each is declared by the preset's parts, and its value is possible.
#[test]
fn presets_set_declared_parameters() {
    for preset in PRESETS {
        let resolved = resolve(preset.name).unwrap_or_else(|why| panic!("{why}"));
        let of_flow = [resolved.protocol.params(), resolved.recovery.params(), recovery::COMMON, endpoint::PARAMS];
        let of_router = controller(resolved.protocol).map_or(&[][..], |protocol| protocol.router_params());
        let declared = |lists: &[&[Param]], (name, value): (&str, f64)| {
            let param = lists.iter().copied().flatten().find(|param| param.name == name);
            let param = param.unwrap_or_else(|| panic!("{}: no parameter `{name}`", preset.name));
            let possible = match param.unit {
                Unit::Choice(words) => value.fract() == 0.0 && (value as usize) < words.len(),
                Unit::Flag => value == 0.0 || value == 1.0,
                _ => (param.min..=param.max).contains(&value),
            };
            assert!(possible, "{}: {name} = {value}", preset.name);
        };
        preset.params.iter().for_each(|&set| declared(&of_flow, set));
        preset.router.iter().for_each(|&set| declared(&[of_router], set));
    }
}

/// What a stack sets is a parameter of some flow, and its value is possible. A stack whose recovery is not registered would
/// leave its flows without one.
#[test]
fn stacks_set_declared_parameters() {
    assert!(STACKS.iter().map(|s| s.name).eq(STACK_NAMES.iter().copied()));
    let laws = registry::protocols().map(|p| p.params());
    let repairs = RECOVERIES.iter().map(|r| r.params());
    let lists: Vec<&[Param]> = laws.chain(repairs).chain([recovery::COMMON, endpoint::PARAMS]).collect();
    for stack in STACKS {
        assert!(stack.recovery.is_none_or(|name| registry::recovery(name).is_some()), "{}", stack.name);
        for (name, value) in
            stack.params.iter().chain(stack.end_to_end).chain(stack.of_protocol.iter().flat_map(|(_, sets)| *sets))
        {
            let declared: Vec<&Param> = lists.iter().copied().flatten().filter(|p| p.name == *name).collect();
            assert!(!declared.is_empty(), "{} sets `{name}`, which is not declared", stack.name);
            let possible = |p: &&Param| match p.unit {
                Unit::Choice(words) => value.fract() == 0.0 && (*value as usize) < words.len(),
                Unit::Flag => *value == 0.0 || *value == 1.0,
                _ => (p.min..=p.max).contains(value),
            };
            assert!(declared.iter().all(possible), "{}: {name} = {value}", stack.name);
        }
    }
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)
}

/// The frame of headers is that of every protocol: it names none.
#[test]
fn the_wire_knows_no_protocol() {
    let mut files = vec![source("wire.rs")];
    files.extend(files_in(&source("wire")));
    assert!(files.len() >= 5, "{files:?}");
    for path in files {
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        for name in ["xcp", "vcp", "xtcp", "rcp"] {
            assert!(!words.contains(&name), "{} names {name}", path.display());
        }
    }
}

/// Rust files in a folder and the folders in it.
fn files_in(folder: &PathBuf) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files.extend(files_in(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// A student reads a file beside its paper: without tests, comments and blank lines it has 400 lines at most.
#[test]
fn files_are_short() {
    let mut seen = 0;
    for path in ["protocols", "recovery", "qdisc", "channel", "estimate"].map(source).iter().flat_map(files_in) {
        let code = code(&path);
        let lines = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        assert!(lines <= 400, "{}: {lines} lines of code", path.display());
        seen += 1;
    }
    assert!(seen > 60, "{seen} files");
}

/// The parts of a file before its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("\n#[cfg(test)]\nmod ").next().unwrap().to_string()
}

/// Modules of this crate that a file names in its `use` lines.
fn imported(code: &str) -> Vec<&str> {
    let paths = code.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("use crate::"));
    paths.map(|path| path.split([':', ';', '{']).next().unwrap()).filter(|module| !module.is_empty()).collect()
}

/// The modules that authors read depend only on modules that do not depend on them.
#[test]
fn nothing_that_the_authors_file_imports_imports_it() {
    let modules = imported(&code(&source("api.rs"))).into_iter().map(str::to_string).collect::<Vec<_>>();
    assert!(modules.len() > 5, "{modules:?}");
    let mut waiting = modules.clone();
    let mut seen = Vec::new();
    while let Some(module) = waiting.pop() {
        if seen.contains(&module) {
            continue;
        }
        let text = code(&source(&format!("{module}.rs")));
        let below = imported(&text);
        assert!(!below.contains(&"api"), "api.rs imports {modules:?}, and so `{module}`, which imports `api`");
        waiting.extend(below.into_iter().map(str::to_string));
        seen.push(module);
    }
}

/// Parameters are declared once: the field of a struct cannot be misspelled or read as another type.
#[test]
fn parameters_are_read_as_fields() {
    let mut seen = 0;
    for path in ["protocols", "recovery", "qdisc", "channel", "estimate", "medium", "endpoint"]
        .map(source)
        .iter()
        .flat_map(files_in)
    {
        let code = code(&path);
        for word in ["values.get(", "Param::new(", "Unit::"] {
            assert!(!code.contains(word), "{}: `{word}`, where `parameters!` declares fields", path.display());
        }
        seen += 1;
    }
    assert!(seen > 60, "{seen} files");
}
