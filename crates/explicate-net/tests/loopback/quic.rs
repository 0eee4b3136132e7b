//! Files and folders over QUIC: pairing, arrivals, rejections. Programs over the loopback interface; no root needed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use explicate_core::rng::Rng;
use serde_json::Value;

use crate::patience::{ended, eventually};

mod hostile;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_explicated");

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder, removed after the test: `in` for files that arrive, `out` for files to send, and state folders.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new() -> Place {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let place = Place(std::env::temp_dir().join(format!("explicate-quic-{}-{count}", std::process::id())));
        fs::create_dir_all(place.0.join("in")).unwrap();
        fs::create_dir_all(place.0.join("out")).unwrap();
        place
    }
    pub(crate) fn file(&self, name: &str, bytes: usize) -> (PathBuf, Vec<u8>) {
        let mut rng = Rng::stream(bytes as u64, name);
        let content: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_ne_bytes()).take(bytes).collect();
        let path = self.0.join("out").join(name);
        fs::write(&path, &content).unwrap();
        (path, content)
    }
    pub(crate) fn arrived(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.0.join("in").join(name)).ok()
    }
    pub(crate) fn state(&self, whose: &str) -> String {
        self.0.join(whose).to_str().unwrap().to_string()
    }
    /// Bytes of the parts that are held.
    fn held(&self) -> u64 {
        let Ok(parts) = fs::read_dir(self.0.join("in/.explicate-parts")) else { return 0 };
        parts.filter_map(|part| Some(part.ok()?.metadata().ok()?.len())).sum()
    }
    /// Sends by a sender of this name.
    pub(crate) fn send(&self, whose: &str, to: &str, arguments: &[&str]) -> Sent {
        let output = self.sender(whose, to, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).to_string() + &String::from_utf8_lossy(&output.stderr);
        Sent { status: output.status.code(), said }
    }
    pub(crate) fn sender(&self, whose: &str, to: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["send", to, "--json", "--state", &self.state(whose)]).args(arguments);
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Sent {
    status: Option<i32>,
    pub(crate) said: String,
}

impl Sent {
    pub(crate) fn is_good(&self) -> bool {
        self.status == Some(0)
    }
    fn bytes(&self, which: &str) -> u64 {
        let line = self.said.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{}", self.said));
        let report: Value = serde_json::from_str(line).unwrap();
        let end = &report["end"];
        if which == "held" { end["held_before"].as_u64().unwrap() } else { end[which]["bytes"].as_u64().unwrap() }
    }
}

/// A receiver, ended on drop.
pub(crate) struct Recv {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) address: String,
    line: String,
}

impl Recv {
    pub(crate) fn start(place: &Place, options: &[&str]) -> Recv {
        Recv::start_at(place, "127.0.0.1:0", options)
    }
    pub(crate) fn start_at(place: &Place, address: &str, options: &[&str]) -> Recv {
        let mut command = Command::new(PROGRAM);
        command.args(["recv", "--bind", address, "--json", "--interval", "0", "--to"]);
        command.arg(place.0.join("in")).args(["--state", &place.state("receiver")]).args(options);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut recv = Recv { child, lines, address: String::new(), line: String::new() };
        let event = recv.event("listening");
        recv.address = event["address"].as_str().unwrap().to_string();
        recv.line = event["pair"].as_str().unwrap_or_default().to_string();
        recv
    }
    /// A receiver that is paired with the sender `a`.
    pub(crate) fn paired(place: &Place, options: &[&str]) -> Recv {
        let recv = Recv::start(place, options);
        let sent = place.send("a", &recv.address, &["-n", "1000", "--pair", &recv.line]);
        assert!(sent.is_good(), "{}", sent.said);
        recv
    }
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == kind {
                return event;
            }
            line.clear();
        }
        panic!("the receiver reports no `{kind}`");
    }
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn signal(name: &str, child: &Child) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

/// What a program says that ends with status 1; it writes its errors into a pipe.
fn failed(mut program: Child) -> String {
    assert_eq!(ended(&mut program).code(), Some(1));
    std::io::read_to_string(program.stderr.unwrap()).unwrap()
}

/// Sends until more than 10 MB of a long file have arrived, and pauses the sender then. A transfer that was over before is made anew.
fn half_way(place: &Place, command: &mut Command) -> Child {
    let (arrived, mut paused) = (place.0.join("in/long"), None);
    eventually("a part", || {
        let mut sending = command.spawn().unwrap();
        eventually("10 MB", || place.held() > 10_000_000 || arrived.exists());
        signal("STOP", &sending);
        // What is under way still arrives; it is less than the other half.
        if (1..LONG as u64 / 2).contains(&place.held()) {
            paused = Some(sending);
            return true;
        }
        sending.kill().unwrap();
        sending.wait().unwrap();
        eventually("the transfer has ended", || fs::remove_file(&arrived).is_ok());
        false
    });
    paused.unwrap()
}

#[test]
fn one_line_pairs_two_ends_once() {
    let place = Place::new();
    let mut recv = Recv::start(&place, &[]);
    let (path, content) = place.file("a.bin", 3_000_000);
    let unpaired = place.send("a", &recv.address, &[text(&path)]);
    assert!(unpaired.status == Some(2) && unpaired.said.contains("--pair"), "{}", unpaired.said);
    let first = place.send("a", &recv.address, &[text(&path), "--pair", &recv.line]);
    assert!(first.is_good() && place.arrived("a.bin").unwrap() == content, "{}", first.said);
    recv.event("paired");
    assert_eq!(recv.event("end")["verdict"], "whole and the same");
    let (next, content) = place.file("next", 1000);
    let second = place.send("a", &recv.address, &[text(&next)]);
    assert!(second.is_good() && place.arrived("next").unwrap() == content, "no line any more: {}", second.said);
    let again = place.send("a", &recv.address, &["-n", "10", "--pair", &recv.line]);
    assert!(again.is_good(), "the same sender may show it again: {}", again.said);
    let other = place.send("b", &recv.address, &[text(&next), "--pair", &recv.line]);
    assert!(other.status == Some(1) && other.said.contains("recv"), "the line is used up: {}", other.said);
}

#[test]
fn a_receiver_with_another_key_gets_nothing() {
    let place = Place::new();
    let mut recv = Recv::paired(&place, &[]);
    let address = recv.address.clone();
    recv.kill();
    fs::remove_dir_all(place.state("receiver")).unwrap();
    let _other = Recv::start_at(&place, &address, &[]);
    let (path, _) = place.file("a", 1000);
    let sent = place.send("a", &address, &[text(&path)]);
    assert!(sent.status == Some(1) && sent.said.contains("another key"), "{}", sent.said);
    assert_eq!((sent.bytes("sum_sent"), place.arrived("a")), (0, None));
}

#[test]
fn a_stranger_sends_nothing() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    let (path, _) = place.file("a", 1000);
    // It has the receiver's key and its own.
    fs::create_dir_all(place.state("b")).unwrap();
    fs::copy(place.0.join("a/receivers"), place.0.join("b/receivers")).unwrap();
    let sent = place.send("b", &recv.address, &[text(&path)]);
    assert!(sent.status == Some(1) && sent.said.contains("does not know this sender"), "{}", sent.said);
    let mut guess = recv.line.clone();
    guess.replace_range(guess.len() - 4.., "0000");
    drop(recv);
    // A receiver that invites lets strangers through the handshake, but no further.
    let recv = Recv::start(&place, &["--pair"]);
    guess.replace_range(..guess.len() - 32, &recv.line[..recv.line.len() - 32]);
    let sent = place.send("b", &recv.address, &[text(&path), "--pair", &guess]);
    assert!(sent.status == Some(1) && sent.said.contains("line for --pair"), "{}", sent.said);
    assert_eq!(place.arrived("a"), None);
    // The line is still good for its owner.
    let sent = place.send("c", &recv.address, &[text(&path), "--pair", &recv.line]);
    assert!(sent.is_good(), "{}", sent.said);
}

#[test]
fn a_folder_arrives_with_its_modes_and_without_links() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    let top = place.0.join("out/top");
    fs::create_dir_all(top.join(".hidden/empty")).unwrap();
    symlink("/etc/passwd", top.join("link")).unwrap();
    for i in 0..100 {
        fs::write(top.join(format!(".hidden/file {i}")), format!("{i}")).unwrap();
    }
    fs::write(top.join("program"), "x").unwrap();
    fs::set_permissions(top.join("program"), fs::Permissions::from_mode(0o4700)).unwrap();
    let sent = place.send("a", &recv.address, &[text(&top)]);
    assert!(sent.is_good() && sent.said.contains("link"), "{}", sent.said);
    for i in 0..100 {
        assert_eq!(place.arrived(&format!("top/.hidden/file {i}")).unwrap(), format!("{i}").as_bytes());
    }
    let into = place.0.join("in/top");
    assert!(into.join(".hidden/empty").is_dir() && fs::symlink_metadata(into.join("link")).is_err());
    let meta = fs::metadata(into.join("program")).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o700);
    assert_eq!(meta.mtime(), fs::metadata(top.join("program")).unwrap().mtime());
    // A file that exists with the same content is not sent again; one that differs is rejected.
    let again = place.send("a", &recv.address, &[text(&top)]);
    assert!(again.is_good() && again.bytes("sum_sent") == 0, "{}", again.said);
    fs::write(top.join("program"), "y").unwrap();
    let other = place.send("a", &recv.address, &[text(&top)]);
    assert!(other.status == Some(1) && other.said.contains("top/program: the other end has a file"), "{}", other.said);
    assert_eq!(other.bytes("sum_sent"), 0, "refused before any data: {}", other.said);
    assert_eq!(place.arrived("top/program").unwrap(), b"x");
}

#[test]
fn a_link_at_the_receiver_is_not_followed() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    fs::create_dir_all(place.0.join("out/top")).unwrap();
    fs::create_dir_all(place.0.join("elsewhere")).unwrap();
    fs::write(place.0.join("out/top/a"), "x").unwrap();
    symlink(place.0.join("elsewhere"), place.0.join("in/top")).unwrap();
    let sent = place.send("a", &recv.address, &[text(&place.0.join("out/top"))]);
    assert_eq!(sent.status, Some(1), "{}", sent.said);
    assert_eq!(fs::read_dir(place.0.join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn ipv6_and_several_files() {
    let place = Place::new();
    let recv = Recv::start_at(&place, "[::1]:0", &[]);
    let files = ["a", "b"].map(|name| place.file(name, 100_000));
    let paths = files.each_ref().map(|(path, _)| text(path));
    let sent = place.send("a", &recv.address, &[paths[0], paths[1], "--pair", &recv.line]);
    assert!(sent.is_good(), "{}", sent.said);
    assert!(place.arrived("a").unwrap() == files[0].1 && place.arrived("b").unwrap() == files[1].1);
}

#[test]
fn files_of_the_same_content_arrive_each() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    let top = place.0.join("out/top");
    fs::create_dir_all(&top).unwrap();
    for i in 0..40 {
        fs::write(top.join(format!("empty {i}")), "").unwrap();
        fs::write(top.join(format!("same {i}")), "same").unwrap();
    }
    let sent = place.send("a", &recv.address, &[text(&top)]);
    assert!(sent.is_good(), "{}", sent.said);
    for i in 0..40 {
        assert_eq!(place.arrived(&format!("top/empty {i}")).unwrap(), b"");
        assert_eq!(place.arrived(&format!("top/same {i}")).unwrap(), b"same");
    }
}

const LONG: usize = 200_000_000;

#[test]
fn a_transfer_goes_on_by_itself_after_the_receiver_was_killed() {
    let place = Place::new();
    let mut recv = Recv::paired(&place, &[]);
    let (path, content) = place.file("long", LONG);
    let mut command = place.sender("a", &recv.address, &[text(&path)]);
    let sending = half_way(&place, command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    recv.kill();
    signal("CONT", &sending);
    let _recv = Recv::start_at(&place, &recv.address, &[]);
    let output = sending.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).to_string() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && place.arrived("long").unwrap() == content, "{said}");
    let sent = Sent { status: Some(0), said };
    assert!(sent.bytes("held") > 0 && sent.bytes("sum_received") < LONG as u64, "{}", sent.said);
}

#[test]
fn once_ends_with_the_first_transfer() {
    let place = Place::new();
    let mut recv = Recv::start(&place, &["--once"]);
    let (path, _) = place.file("a", 1000);
    let sent = place.send("a", &recv.address, &[text(&path), "--pair", &recv.line]);
    assert!(sent.is_good(), "{}", sent.said);
    assert!(ended(&mut recv.child).success());
}

#[test]
fn an_end_that_does_not_answer_is_reported() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    let address = recv.address.clone();
    drop(recv);
    let sent = place.send("a", &address, &["-n", "1000", "--patience", "1"]);
    assert!(sent.status == Some(1) && sent.said.contains("does not answer"), "{}", sent.said);
}

#[test]
fn a_series_has_the_variables_of_the_window() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    let path = place.0.join("series.csv");
    let sent = place.send("a", &recv.address, &["--time", "1", "-p", "xcp", "--series", text(&path)]);
    assert!(sent.is_good(), "{}", sent.said);
    let series = fs::read_to_string(&path).unwrap();
    let mut lines = series.lines();
    assert_eq!(lines.next(), Some("time_s,flow,variable,value"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let values = |variable: &str| -> Vec<f64> {
        rows.iter().filter(|row| row[2] == variable).map(|row| row[3].parse().unwrap()).collect()
    };
    for variable in ["srtt_ms", "window", "cwnd"] {
        assert!(values(variable).iter().any(|value| *value > 0.0), "{variable}: {:?}", values(variable));
    }
    // Every packet may have been acknowledged at each of these moments.
    assert_eq!(values("in_flight").len(), values("window").len());
    assert_eq!(values("law").last(), Some(&2.0), "no router answers on the loopback interface");
    assert!(rows.iter().all(|row| row[1] == rows[0][1]), "one flow");
}

#[test]
fn without_a_guard_the_sender_is_warned_and_tcp_moves_no_window() {
    let place = Place::new();
    let recv = Recv::paired(&place, &[]);
    for (guard, warned, laws) in [("off", true, "[\"own\"]"), ("on", false, "[\"tcp\"]")] {
        let sent = place.send("a", &recv.address, &["-n", "300000", "-p", "xcp", "--guard", guard]);
        assert!(sent.is_good() && sent.said.contains("OTHERS ON THE PATH STARVE") == warned, "{}", sent.said);
        let report: Value = serde_json::from_str(sent.said.lines().find(|l| l.starts_with('{')).unwrap()).unwrap();
        let words: Vec<&Value> = report["laws"].as_array().unwrap().iter().map(|law| &law["law"]).collect();
        assert_eq!(serde_json::to_string(&words).unwrap(), laws);
    }
}

#[test]
fn a_receiver_answers_probes_and_is_advised_on() {
    let place = Place::new();
    let recv = Recv::start(&place, &[]);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).args([&recv.address, "--json", "--time", "0.5", "--state", &place.state("a")]);
        command.output().unwrap()
    };
    let unpaired = run(&["probe"]);
    assert!(unpaired.status.code() == Some(2) && String::from_utf8_lossy(&unpaired.stderr).contains("--pair"));
    let found = |arguments: &[&str]| {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let advice = found(&["advise", "--pair", &recv.line]);
    let of_path = |key: &str| advice["path"][key].as_f64().unwrap();
    assert!(of_path("rtt_ms") > 0.0 && (0.0..1.0).contains(&of_path("loss")), "{advice}");
    assert_eq!(of_path("mtu"), 1500.0, "{advice}");
    assert!(found(&["probe"])["probes_answered"].as_u64() > Some(0), "paired now");
    assert!(place.send("a", &recv.address, &["-n", "1000"]).is_good(), "for files, too");
}

#[test]
fn a_full_receiver_says_so_at_once() {
    let place = Place::new();
    let mut recv = Recv::paired(&place, &["--flows", "1"]);
    recv.event("end");
    let mut command = Command::new(PROGRAM);
    command.args(["send", &recv.address, "--state", &place.state("a"), "--time", "60", "--interval", "0.1"]);
    let mut first = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut lines, mut line) = (BufReader::new(first.stdout.take().unwrap()), String::new());
    lines.read_line(&mut line).unwrap();
    signal("STOP", &first);
    let second = place.send("a", &recv.address, &["-n", "1000", "--patience", "5"]);
    assert!(second.said.contains("as many connections as it takes"), "{}", second.said);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_is_said_at_the_start() {
    let place = Place::new();
    let folder = place.0.join("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["recv", "--state", &place.state("receiver"), "--bind", "127.0.0.1:0", "--to"]).arg(&folder);
    let said = failed(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    assert!(said.contains("cannot write into"), "{said}");
}

#[test]
fn a_signal_ends_the_first_reading_of_a_long_file() {
    let place = Place::new();
    let path = place.0.join("long");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let recv = Recv::paired(&place, &[]);
    let mut command = place.sender("a", &recv.address, &[text(&path)]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let reads = format!("/proc/{}/io", child.id());
    eventually("the reading", || {
        let counts = fs::read_to_string(&reads).unwrap();
        let read = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        read.parse::<u64>().unwrap() > 1 << 24
    });
    signal("TERM", &child);
    let said = failed(child);
    assert!(said.contains("interrupted"), "{said}");
}

/// Without `--bind` a receiver listens at all addresses of both families.
#[test]
fn an_ipv4_sender_is_known_by_its_ipv4_address() {
    let place = Place::new();
    let mut recv = Recv::start_at(&place, "[::]:0", &[]);
    let port = recv.address.rsplit(':').next().unwrap().to_string();
    let (path, content) = place.file("a", 100_000);
    let sent = place.send("a", &format!("127.0.0.1:{port}"), &[text(&path), "--pair", &recv.line]);
    assert!(sent.is_good() && place.arrived("a").unwrap() == content, "{}", sent.said);
    assert!(recv.event("end")["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert!(fs::read_to_string(place.0.join("receiver/senders")).unwrap().trim().ends_with(" 127.0.0.1"));
}
