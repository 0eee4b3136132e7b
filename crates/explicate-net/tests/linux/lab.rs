//! The laboratory, on this machine's kernel: it runs every kind of scenario to its end, counts what it carried, refuses what it cannot
//! be, and leaves nothing behind. What it measures is in `timed`. Needs root, so `make linux` runs it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{PROGRAM, eventually, lab, namespaces, number, numbers, run};
use explicate_core::presets::PRESETS;
use explicate_core::registry::PROTOCOLS;

/// Two flows over 50 Mbit/s and 40 ms there and back.
pub(crate) const DUMBBELL: &str = r#"
name = "dumbbell"
duration = "14s"
warmup = "6s"
[topology]
kind = "dumbbell"
access = { rate = "200Mbit/s", delay = "1ms" }
bottleneck = { rate = "50Mbit/s", delay = "18ms", queue = { kind = "droptail", limit = "1.0bdp" } }
[[flows]]
name = "f"
count = 2
protocol = "xcp"
packet = "1500B"
[[link]]
name = "r1->r2"
channel = [{ kind = "random_loss", rate = "0%" }]
"#;

/// A short way over r2 and a long one over r3, between the same hosts: 46 and 126 ms there and back, so that some milliseconds in
/// which the machine does something else are little.
const TWO_WAYS: &str = r#"
duration = "DURATION"
warmup = "WARMUP"
node = [
    { name = "a" }, { name = "r1" }, { name = "r2" }, { name = "r3", kind = "router" }, { name = "r4" }, { name = "b" },
]
link = [
    { from = "a", to = "r1", duplex = true, rate = "100Mbit/s", delay = "1ms" },
    { from = "r1", to = "r2", duplex = true, rate = "8Mbit/s", delay = "20ms" },
    { from = "r2", to = "r4", duplex = true, rate = "100Mbit/s", delay = "1ms" },
    { from = "r1", to = "r3", duplex = true, rate = "16Mbit/s", delay = "60ms" },
    { from = "r3", to = "r4", duplex = true, rate = "100Mbit/s", delay = "1ms" },
    { from = "r4", to = "b", duplex = true, rate = "100Mbit/s", delay = "1ms" },
]
"#;

/// Three groups: by the long way, the other way round by the long way, and by the shortest. With a pace, because flows in opposite
/// directions compress each other's acknowledgements (Zhang, Shenker and Clark 1991), and their rates without one depend on chance: 8.7 to
/// 11.8 Mbit/s on 16, simulated as well as measured.
pub(crate) const PINNED: &str = r#"
[[flows]]
name = "long"
protocol = "xcp"
params = { paced = true }
path = ["a", "r1", "r3", "r4", "b"]
[[flows]]
name = "back"
protocol = "xcp"
params = { paced = true }
path = ["b", "r4", "r3", "r1", "a"]
[[flows]]
name = "short"
protocol = "xcp"
params = { paced = true }
from = "a"
to = "b"
"#;

/// From 3 s on packets from r1 take the long path; packets in the other direction still take the short one.
pub(crate) const CHANGES: &str = r#"
[[flows]]
name = "f"
protocol = "xcp"
from = "a"
to = "b"
[[reroute]]
at = "3s"
without = ["r1->r2"]
"#;

/// More in both directions than the short way carries if these take turns, by fixed windows.
pub(crate) const BOTH: &str = r#"
[[flows]]
name = "there"
protocol = "reno/sack"
params = { receiver_window = 60 }
from = "a"
to = "b"
[[flows]]
name = "back"
protocol = "reno/sack"
params = { receiver_window = 30 }
from = "b"
to = "a"
"#;

pub(crate) fn half_duplex(text: &str) -> String {
    text.replace("\"8Mbit/s\"", "\"8Mbit/s\", half_duplex = true, queue = \"unlimited\"")
}

pub(crate) fn two_ways(flows: &str, warmup: &str, duration: &str) -> String {
    TWO_WAYS.replace("WARMUP", warmup).replace("DURATION", duration) + flows
}

/// Each kind of scenario: another recovery, sessions, pinned paths, a change of routes, half-duplex links. Every flow
/// delivers in 12 s, and no more than it has sent.
#[test]
#[ignore = "needs root: make linux"]
fn every_kind_of_scenario_runs_to_its_end_and_counts_what_it_carried() {
    let short = DUMBBELL.replace("\"14s\"", "\"12s\"").replace("\"6s\"", "\"0s\"");
    let sessions = short.replace("\"xcp\"", "\"xcp\"\nsession = { duration = \"500ms\", pause = \"100ms\" }");
    let lossy = short.replace("\"xcp\"", "\"LR-LMXCP\"").replace("rate = \"0%\"", "rate = \"5%\"");
    let mut texts = vec![sessions, lossy, half_duplex(&two_ways(BOTH, "0s", "12s"))];
    texts.extend([PINNED, CHANGES].map(|flows| two_ways(&flows.replace("\"3s\"", "\"1s\""), "0s", "12s")));
    std::thread::scope(|scope| {
        for text in &texts {
            scope.spawn(move || {
                let told = lab(text, &[]);
                // Without a warm-up, over 12 s.
                let [rates, sent] = ["throughput_bps", "sent_packets"].map(|column| numbers(&told, "flows", column));
                let counted = |(rate, sent): (&f64, &f64)| *rate > 0.0 && rate * 12.0 / 8.0 <= 1500.0 * sent;
                assert!(rates.iter().zip(&sent).all(counted), "{rates:?} bit/s of {sent:?} packets sent: {text}");
                if text.contains("5%") {
                    assert!(number(&told, "links", "link", "r1->r2", "drops_channel") > 0.0, "{text}");
                }
                if text.contains("session =") {
                    assert!(numbers(&told, "flows", "sessions").iter().all(|sessions| *sessions > 1.0), "{text}");
                }
            });
        }
    });
}

/// All protocols and presets, a flow of each in a queue of its own over one link: every one delivers.
#[test]
#[ignore = "needs root: make linux"]
fn every_protocol_runs_on_real_sockets() {
    let names = || PRESETS.iter().map(|preset| preset.name).chain(PROTOCOLS.iter().map(|protocol| protocol.name()));
    let network = DUMBBELL.split_once("[[flows]]").unwrap().0.replace("\"6s\"", "\"0s\"");
    let network = network.replace("\"droptail\", limit = \"1.0bdp\"", "\"fq_codel\"");
    let network = network.replace("kind = \"dumbbell\"", "kind = \"dumbbell\"\npairs = 1");
    let flow = |(i, name)| format!("[[flows]]\nname = \"f{i}\"\nprotocol = \"{name}\"\nfrom = \"s0\"\nto = \"d0\"\n");
    let told = lab(&(network + &names().enumerate().map(flow).collect::<String>()), &[]);
    let rates = numbers(&told, "flows", "goodput_bps");
    let silent: Vec<_> = names().zip(&rates).filter(|(_, rate)| **rate <= 0.0).collect();
    let sent = numbers(&told, "flows", "sent_packets");
    let all = rates.len() == names().count();
    assert!(all && silent.is_empty(), "{silent:?} of {rates:?}, sent {sent:?} over {}", told["links"]);
}

#[test]
#[ignore = "needs root: make linux"]
fn an_estimator_that_only_a_simulator_has_is_replaced_loudly() {
    let text = r#"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        bottleneck = { rate = "10Mbit/s", delay = "5ms" ROUTER }
        [[flows]]
        name = "f"
        protocol = "xcp_i"
    "#;
    let path = std::env::temp_dir().join(format!("exptest-{}-estimator.toml", std::process::id()));
    let dry = |router: &str| {
        std::fs::write(&path, text.replace("ROUTER", router)).unwrap();
        let done = Command::new(PROGRAM).args(["lab", "--dry-run"]).arg(&path).output().unwrap();
        (done.status.success(), String::from_utf8_lossy(&done.stderr).to_string())
    };
    let (good, said) = dry("");
    assert!(good && said.contains("`delay_trend` measures in its place"), "{said}");
    let (good, said) = dry(", router = { kind = \"xcp_i\", estimator = \"spruce\" }");
    assert!(good && said.is_empty(), "{said}");
    std::fs::remove_file(&path).unwrap();
}

/// A lab that did not run while it should have measured, and one whose cable broke, have no results: not flows without a byte. Each is
/// stopped when the first packets arrive, which is long before the 2 s that are measured.
#[test]
#[ignore = "needs root: make linux"]
fn a_lab_whose_parts_are_missing_says_so() {
    let text = DUMBBELL.replace("\"14s\"", "\"12s\"").replace("\"6s\"", "\"10s\"");
    let disturbed = |number: usize, disturb: &dyn Fn(&str)| {
        let path = std::env::temp_dir().join(format!("exptest-{}-missing-{number}.toml", std::process::id()));
        std::fs::write(&path, &text).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["lab", "--json"]).arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let host = format!("explicate-{}-d0", child.id());
        let signal = |name: &str| run(&format!("kill -{name} {}", child.id()));
        let received = || {
            let output = Command::new("ip").args(["netns", "exec", &host, "cat", "/proc/net/snmp"]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).to_string();
            let datagrams = text.lines().filter_map(|line| line.strip_prefix("Udp: ")).nth(1);
            datagrams.is_some_and(|numbers| !numbers.starts_with("0 "))
        };
        eventually("the first packets arrive", received);
        signal("STOP");
        disturb(&host);
        signal("CONT");
        let output = child.wait_with_output().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).to_string()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let said = disturbed(0, &|_| sleep(Duration::from_secs(12)));
            assert!(said.contains(" stood still for 2.0 s of the 2.0 s that are measured"), "{said}");
        });
        scope.spawn(|| {
            let said = disturbed(1, &|host| {
                run(&format!("ip -n {host} link set {} down", interface(host)));
            });
            assert!(said.contains(" is down: its frames are lost"), "{said}");
        });
    });
}

/// The interface of a host of the lab.
fn interface(host: &str) -> String {
    let names = run(&format!("ip -n {host} -o link show type veth"));
    names.split(&[' ', '@'][..]).find(|word| word.starts_with('p')).unwrap().to_string()
}

#[test]
#[ignore = "needs root: make linux"]
fn nothing_stays_behind_whatever_ends_the_lab() {
    let path = std::env::temp_dir().join(format!("exptest-{}-stop.toml", std::process::id()));
    std::fs::write(&path, DUMBBELL.replace("duration = \"14s\"", "duration = \"120s\"")).unwrap();
    // A test that runs in the background inherits ignored signals, and must not pass them on.
    let heeding = || {
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,HUP");
        command
    };
    // The lab itself, which ends in its own time or has none left, ...
    let labs = ["INT", "TERM", "HUP", "KILL"].map(|signal| {
        let mut command = heeding();
        command.arg(PROGRAM).arg("lab").arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        (signal, format!("explicate-{}-", child.id()), child)
    });
    // ... and a program that started it.
    let parents = ["INT", "TERM", "KILL"].map(|signal| {
        let mut command = heeding();
        command.args(["sh", "-c", "\"$0\" lab --with-parent \"$1\" & echo $!; wait", PROGRAM]).arg(&path);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (signal, format!("explicate-{}-", line.trim()), child)
    });
    let all: Vec<_> = labs.into_iter().chain(parents).collect();
    for (_, own, _) in &all {
        eventually("the lab begins", || namespaces(own).len() >= 6);
    }
    sleep(Duration::from_millis(1500));
    for (signal, _, child) in &all {
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    }
    for (signal, own, mut child) in all {
        assert!(!child.wait().unwrap().success());
        eventually(&format!("{signal} ends the lab's namespaces"), || namespaces(&own).is_empty());
        let process = own.split('-').nth(1).unwrap().to_string();
        // One that was not waited for yet is dead, too.
        let ended = || !std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|s| !s.contains(") Z "));
        eventually(&format!("{signal} ends the lab"), ended);
    }
    std::fs::remove_file(&path).unwrap();
}
