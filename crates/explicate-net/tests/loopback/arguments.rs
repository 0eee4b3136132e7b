//! Errors for arguments that make no sense, and for outputs that are closed. Needs no root.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use crate::patience::ended;

fn program(arguments: &[&str], out: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_explicated"));
    // A receiver makes its key there.
    command.env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.args(arguments).stdout(out).stderr(Stdio::piped()).output().unwrap()
}

#[test]
fn numbers_without_a_meaning_are_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["recv", "--interval", "inf"], "a number from 0"),
        (&["recv", "--flows", "0"], "0 is not in 1.."),
        (&["recv", "--memory", "0"], "0 is not in 1.."),
        (&["recv", "--bind", "127.0.0.1:0", "--replace"], "--to <DIR>"),
        (&["recv", "--bind", "127.0.0.1:0", "--quota", "9"], "--to <DIR>"),
        (&["recv", "--to", "x", "--quota", "4XB"], "`4XB` is not a number of bytes: there is no unit `XB`"),
        (&["recv", "--keep-parts", "nan"], "a number from 0"),
        (&["send", "127.0.0.1", "-p", "bbr"], "not `bbr`, which only `explicated lab` runs"),
        (&["send", "127.0.0.1", "--pair", "x"], "needs the whole line"),
        (&["send", "127.0.0.1"], "this end is not paired with it"),
        (&["send", "127.0.0.1", "--time", "nan"], "a number above 0"),
        (&["send", "127.0.0.1", "file", "--time", "5"], "cannot be used with '--time <TIME>'"),
        (&["send", "127.0.0.1", "--patience", "0"], "a number above 0"),
        (&["send", "127.0.0.1", "--air-loss", "2"], "a share from 0 to 0.9"),
        (&["send", "127.0.0.1", "--guard", "maybe"], "invalid value 'maybe'"),
        (&["send", "127.0.0.1", "--interface-mbps", "0"], "0 is not in 1.."),
        (&["probe", "127.0.0.1", "--time", "0"], "a number above 0"),
        (&["probe", "::1"], "the receiver is a name or an IPv4 address"),
        (&["probe", "127.0.0.1"], "this end is not paired with it"),
        (&["advise"], "name a path"),
        (&["advise", "--rtt", "600"], "explicated: --rtt: the path: at `\"600\"`: `delay` is a time and needs a unit"),
        (&["advise", "--rtt", "0.6"], "write it like `delay = \"600ms\"` (0.6s)"),
        (&["advise", "--rtt", "600ms", "--loss", "100%"], "a share from 0 to 0.9"),
        (&["advise", "--rtt", "600ms", "--rate", "fast"], "explicated: --rate: `fast` is not a rate"),
        (&["advise", "--rtt", "600ms", "--routers", "xpc"], "--routers xpc: the table has"),
        (&["probe", "127.0.0.1", "--estimator", "orakel", "--time", "0.01"], "no estimator is called `orakel`"),
        (&["probe", "127.0.0.1", "--estimator", "oracle", "--time", "0.01"], "`oracle` sends no probes"),
        (&["router", "--port", "a", "--port", "b", "--time", "nan"], "a number above 0"),
        (&["link", "a", "b", "--interval", "nan"], "a number from 0"),
        (&["lab", "/dev/zero"], "the file has more than 64 MiB"),
        (&["link", "a", "b", "--there", "rate = \"x\""], "explicated: a->b: "),
        (&["link", "lo", "lo"], "the interface `lo` is named twice"),
        (&["router", "--port", "lo", "--port", "lo: rate = \"1Mbit/s\""], "the interface `lo` is named twice"),
        (&["router", "--port", "a", "--port", "b", "--controller", "cubic"], "`cubic` has no controller"),
        (&["generate", "fisch"], "is neither `man` nor a supported shell"),
    ];
    for (arguments, part) in cases {
        let done = program(arguments, Stdio::piped());
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(part), "{arguments:?}: {said}");
    }
}

/// A terminal that is closed ends a transfer; one that was started by nohup continues.
#[test]
fn what_ignores_the_hangup_goes_on() {
    use std::os::unix::process::ExitStatusExt;
    // The tests themselves may have been started by nohup.
    let started = |prefix: &[&str]| {
        let mut command = Command::new(prefix[0]);
        let words = ["recv", "--bind", "127.0.0.1:0", "--json", "--pair"];
        command.args(&prefix[1..]).arg(env!("CARGO_BIN_EXE_explicated")).args(words);
        command.env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut lines, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        lines.read_line(&mut line).unwrap();
        let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
        (child, ["address", "pair"].map(|key| listening[key].as_str().unwrap().to_string()), lines)
    };
    let (mut ends, ..) = started(&["env", "--default-signal=HUP"]);
    assert_eq!(ended(&mut ends).code(), Some(0), "the hangup ends it");
    let (mut goes_on, [address, line], _lines) = started(&["nohup"]);
    let probed = program(&["probe", &address, "--pair", &line, "--time", "0.5"], Stdio::piped());
    assert!(probed.status.success(), "it answers after the hangup: {}", String::from_utf8_lossy(&probed.stderr));
    goes_on.kill().unwrap();
    assert_eq!(goes_on.wait().unwrap().signal(), Some(9), "it had to be killed");
}

#[test]
fn a_lab_that_cannot_keep_its_tables_does_not_begin() {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/lossy-dumbbell.toml");
    let done = program(&["lab", scenario, "-o", "/dev/null/tables"], Stdio::piped());
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && said.contains("cannot make the folder /dev/null/tables"), "{said}");
}

#[test]
fn the_man_page_has_all_options_of_all_commands() {
    let text = |arguments: &[&str]| String::from_utf8(program(arguments, Stdio::piped()).stdout).unwrap();
    let man = text(&["generate", "man"]).replace('\\', "");
    for command in ["send", "recv", "router", "link", "probe", "lab"] {
        let page = man.split(".TH ").find(|page| page.starts_with(&format!("explicated-{command} "))).unwrap();
        assert!(page.contains(&format!("fBexplicated {command}")), "{page}");
        let help = text(&[command, "--help"]);
        let options = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 3);
        for option in options.map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-')) {
            assert!(page.contains(option), "{command} {option}: {page}");
        }
    }
}

/// A disk that is always full, and a pipe without a reader.
#[test]
fn an_output_that_takes_nothing_is_an_error_and_no_panic() {
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for arguments in [&["recv", "--bind", "127.0.0.1:0"][..], &["generate", "man"]] {
        for (out, why) in [(closed(), "Broken pipe"), (full(), "No space left")] {
            let done = program(arguments, out);
            let said = String::from_utf8_lossy(&done.stderr);
            let expected = format!("explicated: cannot write to standard output: {why}");
            assert!(done.status.code() == Some(1) && said.starts_with(&expected), "{arguments:?}: {said}");
        }
    }
}
