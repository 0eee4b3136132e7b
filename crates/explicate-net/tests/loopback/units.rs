//! The units of `packaging/`: their commands are right, they start again whatever happens, and they may do little else.

use std::process::Command;

use clap::Parser;
use explicate_net::cli::Cli;

const UNITS: [(&str, &str); 2] = [
    ("explicated-router.service", include_str!("../../../../packaging/explicated-router.service")),
    ("explicated-recv.service", include_str!("../../../../packaging/explicated-recv.service")),
];

/// All values of a setting.
fn values<'a>(unit: &'a str, setting: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|l| l.strip_prefix(setting)?.strip_prefix('=')).collect()
}

#[test]
fn their_commands_are_understood() {
    for (name, unit) in UNITS {
        let words: Vec<&str> = values(unit, "ExecStart")[0].split(' ').filter(|w| *w != "$OPTIONS").collect();
        assert_eq!(words[0], "/usr/bin/explicated");
        Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Those of the gateway: before its start, at a reload and after its end, too.
#[test]
fn the_gateway_s_commands_are_understood() {
    let unit = include_str!("../../../../packaging/explicated-gateway.service");
    let settings = ["ExecStartPre", "ExecStart", "ExecReload", "ExecStopPost"];
    let commands = settings.map(|setting| values(unit, setting)).concat();
    let own: Vec<_> = commands.iter().filter_map(|command| command.strip_prefix("/usr/bin/explicated ")).collect();
    assert_eq!((commands.len(), own.len()), (7, 6), "all but `kill`: {commands:?}");
    for words in own {
        let words = std::iter::once("explicated").chain(words.split(' '));
        Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// With systemd's limit five failures in ten seconds end a unit for good.
#[test]
fn they_start_again_for_ever() {
    for (name, unit) in UNITS {
        assert_eq!(values(unit, "StartLimitIntervalSec"), ["0"], "{name}");
        let head = unit.split_once("[Service]").unwrap().0;
        assert!(head.contains("StartLimitIntervalSec"), "{name}: it belongs to [Unit]");
        assert_eq!(values(unit, "Restart"), ["always"], "{name}");
        // The program gives up its capabilities by a call that is among the privileged ones.
        let filters = values(unit, "SystemCallFilter");
        assert!(
            filters.first() == Some(&"@system-service") && filters.last() == Some(&"capset"),
            "{name}: {filters:?}"
        );
    }
}

/// `systemd-analyze security` finds little to say, where there is systemd.
#[test]
fn they_may_do_little() {
    for (name, most) in [("explicated-router.service", "25"), ("explicated-recv.service", "15")] {
        let path = format!("{}/../../packaging/{name}", env!("CARGO_MANIFEST_DIR"));
        let arguments = ["security", "--offline=true", "--no-pager", &format!("--threshold={most}"), &path];
        if let Ok(output) = Command::new("systemd-analyze").args(arguments).output() {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{name}: {}", said.lines().last().unwrap_or("nothing"));
        }
    }
}
