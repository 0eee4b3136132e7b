//! Files that arrive: a file that is reported complete is complete. Programs over the loopback interface; no root needed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use explicate_core::rng::Rng;
use explicate_net::files::pairing::State;
use serde_json::Value;

use crate::patience::{ended, eventually};

const PROGRAM: &str = env!("CARGO_BIN_EXE_explicated");

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder, removed after the test, with a folder `in` for files that arrive.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let place = Place(std::env::temp_dir().join(format!("explicate-files-{}-{count}", std::process::id())));
        fs::create_dir_all(place.folder()).unwrap();
        let sender = place.state("sender").identity().unwrap().public;
        place.state("receiver").add_sender(sender, "127.0.0.1").unwrap();
        place
    }
    fn folder(&self) -> PathBuf {
        self.0.join("in")
    }
    fn state(&self, whose: &str) -> State {
        State::open(Some(&self.0.join(whose))).unwrap()
    }
    /// The program with a command and the keys of one end.
    fn command(&self, command: &str, whose: &str) -> Command {
        let mut program = Command::new(PROGRAM);
        program.args([command, "--state"]).arg(self.0.join(whose));
        program
    }
    fn sender(&self, address: &str, path: &Path) -> Command {
        let mut command = self.command("send", "sender");
        command.args([address, "--json", "-p", "cubic"]).arg(path);
        command
    }
    /// Sends a file to its end: whether it went well, and what was said.
    fn send(&self, recv: &Recv, path: &Path) -> (bool, String) {
        let Output { status, stdout, stderr } = self.sender(&recv.address, path).output().unwrap();
        (status.success(), String::from_utf8_lossy(&stdout).to_string() + &String::from_utf8_lossy(&stderr))
    }
    /// A file outside of `in` that cannot be guessed or compressed.
    fn file(&self, name: &str, bytes: usize, seed: u64) -> (PathBuf, Vec<u8>) {
        let mut rng = Rng::stream(seed, "file");
        let content: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_ne_bytes()).take(bytes).collect();
        let path = self.0.join(name);
        fs::write(&path, &content).unwrap();
        (path, content)
    }
    fn arrived(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder().join(name)).ok()
    }
    /// What the folder has, sorted.
    fn listing(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.folder()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
    /// Waits until the folder has these and nothing else.
    fn comes_to_have(&self, names: &[&str]) {
        eventually(&format!("{names:?}"), || self.listing() == names);
    }
    /// The parts that are held, and their lengths.
    fn parts(&self) -> Vec<(PathBuf, u64)> {
        let Ok(entries) = fs::read_dir(self.folder().join(".explicate-parts")) else { return Vec::new() };
        let of = |path: PathBuf| fs::metadata(&path).ok().map(|meta| (path, meta.len()));
        entries.filter_map(|e| of(e.unwrap().path())).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A receiver, ended on drop.
struct Recv {
    child: Child,
    address: String,
    lines: BufReader<std::process::ChildStdout>,
}

impl Recv {
    fn start(place: &Place, options: &[&str]) -> Recv {
        Recv::start_at(place, "127.0.0.1:0", options)
    }
    fn start_at(place: &Place, address: &str, options: &[&str]) -> Recv {
        let mut command = place.command("recv", "receiver");
        command.args(["--bind", address, "--json", "--interval", "0", "--to"]).arg(place.folder());
        let mut child = command.args(options).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut recv = Recv { lines: BufReader::new(child.stdout.take().unwrap()), child, address: String::new() };
        recv.address = recv.told("listening")["address"].as_str().unwrap().to_string();
        let key = place.state("receiver").identity().unwrap().public;
        place.state("sender").add_receiver(&recv.address, key).unwrap();
        recv
    }
    /// The next event of this kind.
    fn told(&mut self, event: &str) -> Value {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            let told: Value = serde_json::from_str(&line).unwrap();
            if told["event"] == event {
                return told;
            }
            line.clear();
        }
        panic!("the receiver said nothing of `{event}`");
    }
    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.address.clone()
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_file_that_is_there_is_not_replaced_unless_asked() {
    let place = &Place::new();
    let (path, new) = place.file("a.bin", 3_000_000, 1);
    fs::write(place.folder().join("a.bin"), b"old").unwrap();
    let recv = Recv::start(place, &[]);
    let (good, said) = place.send(&recv, &path);
    assert!(!good && said.contains("a file of this name"), "{said}");
    assert!(said.contains("\"bytes\":0"), "told before any data: {said}");
    assert_eq!(place.arrived("a.bin").unwrap(), b"old");
    drop(recv);
    let recv = Recv::start(place, &["--replace"]);
    let (good, said) = place.send(&recv, &path);
    assert!(good && place.arrived("a.bin").unwrap() == new, "{said}");
    place.comes_to_have(&["a.bin"]);
}

#[test]
fn the_mode_is_kept_but_no_set_user_id() {
    let place = &Place::new();
    let recv = Recv::start(place, &[]);
    for (name, mode, kept) in [("secret", 0o600, 0o600), ("program", 0o4755, 0o755), ("only", 0o440, 0o440)] {
        let (path, _) = place.file(name, 1000, 2);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let (good, said) = place.send(&recv, &path);
        assert!(good, "{said}");
        let meta = fs::metadata(place.folder().join(name)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o7777, kept & !mask(), "{name}");
        assert_eq!(meta.mtime(), fs::metadata(&path).unwrap().mtime());
    }
}

/// The umask of this process.
fn mask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let word = status.lines().find_map(|l| l.strip_prefix("Umask:")).unwrap();
    u32::from_str_radix(word.trim(), 8).unwrap()
}

/// A sender that is paused. It goes on by a signal, or is killed on drop.
struct Paused(Option<Child>);

impl Paused {
    fn goes_on(mut self) -> Child {
        let child = self.0.take().unwrap();
        signal("CONT", &child);
        child
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

fn signal(name: &str, child: &Child) {
    assert!(Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap().success());
}

/// Sends `path` until a quarter of it has arrived, and pauses the sender then. A transfer that was over before is made anew.
fn half_way(place: &Place, recv: &Recv, path: &Path) -> Paused {
    let (size, name) = (fs::metadata(path).unwrap().len(), path.file_name().unwrap());
    let mut paused = None;
    eventually("a part", || {
        let child = place.sender(&recv.address, path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let whole = || fs::exists(place.folder().join(name)).unwrap();
        eventually("a quarter", || place.parts().iter().any(|(_, held)| *held > size / 4) || whole());
        signal("STOP", &child);
        let sender = Paused(Some(child));
        // What is under way still arrives; it is less than the other half.
        if place.parts().iter().any(|(_, held)| *held < size / 2) {
            paused = Some(sender);
            return true;
        }
        drop(sender);
        eventually("the place is free", || {
            let _ = fs::remove_file(place.folder().join(name));
            place.parts().iter().all(|(part, _)| fs::remove_file(part).is_ok())
        });
        false
    });
    paused.unwrap()
}
/// Payload that a sender put on the wire, bytes.
fn sent(said: &str) -> u64 {
    total(said, "sum_sent")
}
fn total(said: &str, which: &str) -> u64 {
    let line = said.lines().find(|l| l.starts_with('{')).unwrap_or_else(|| panic!("{said}"));
    let told: Value = serde_json::from_str(line).unwrap();
    told["end"][which]["bytes"].as_u64().unwrap()
}

const LONG: usize = 60_000_000;

#[test]
fn a_transfer_goes_on_where_a_killed_receiver_stopped() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG, 3);
    let recv = Recv::start(place, &[]);
    let sending = half_way(place, &recv, &path);
    let address = recv.kill();
    drop(sending);
    let held = place.parts()[0].1;
    let recv = Recv::start_at(place, &address, &[]);
    let (good, said) = place.send(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content, "{said}");
    assert_eq!(total(&said, "sum_received"), LONG as u64 - held, "{held} bytes were there");
    place.comes_to_have(&["long"]);
}

#[test]
fn a_transfer_goes_on_where_a_killed_sender_stopped() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG, 4);
    let recv = Recv::start(place, &[]);
    drop(half_way(place, &recv, &path));
    let held = place.parts()[0].1;
    let (good, said) = place.send(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content, "{said}");
    assert!(total(&said, "sum_received") <= LONG as u64 - held, "{held} bytes were there: {said}");
    place.comes_to_have(&["long"]);
}

#[test]
fn a_part_that_was_damaged_meanwhile_is_removed_and_told() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG, 5);
    let recv = Recv::start(place, &[]);
    let sending = half_way(place, &recv, &path);
    let address = recv.kill();
    drop(sending);
    let (part, held) = place.parts().remove(0);
    let mut bytes = fs::read(&part).unwrap();
    bytes[held as usize / 2] ^= 1;
    fs::write(&part, bytes).unwrap();
    let mut recv = Recv::start_at(place, &address, &[]);
    let (good, said) = place.send(&recv, &path);
    assert!(!good && said.contains("differs"), "{said}");
    assert!(recv.told("end")["verdict"].as_str().unwrap().contains("not the same"));
    place.comes_to_have(&[]);
    let (good, said) = place.send(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content, "{said}");
}

#[test]
fn parts_that_nobody_comes_for_are_removed() {
    let place = &Place::new();
    let (path, _) = place.file("long", LONG, 6);
    let recv = Recv::start(place, &[]);
    let sending = half_way(place, &recv, &path);
    let address = recv.kill();
    drop(sending);
    let part = place.parts().remove(0).0;
    let recv = Recv::start_at(place, &address, &[]);
    assert!(part.exists(), "not yet");
    recv.kill();
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&part).unwrap().set_modified(old).unwrap();
    let _recv = Recv::start_at(place, &address, &[]);
    place.comes_to_have(&[]);
}

#[test]
fn a_file_that_comes_meanwhile_stays_as_it_is() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG, 7);
    let recv = Recv::start(place, &[]);
    let sending = half_way(place, &recv, &path);
    fs::write(place.folder().join("long"), b"mine").unwrap();
    assert!(!sending.goes_on().wait_with_output().unwrap().status.success());
    assert_eq!(place.arrived("long").unwrap(), b"mine");
    // What arrived is kept for another try.
    fs::remove_file(place.folder().join("long")).unwrap();
    let (good, said) = place.send(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content && sent(&said) == 0, "{said}");
}

#[test]
fn of_two_senders_of_one_name_the_second_is_told_at_once() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG, 8);
    let recv = Recv::start(place, &[]);
    let sending = half_way(place, &recv, &path);
    let other = place.0.join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("long"), b"short").unwrap();
    let (good, said) = place.send(&recv, &other.join("long"));
    assert!(!good && said.contains("name") && sent(&said) == 0, "{said}");
    assert!(sending.goes_on().wait_with_output().unwrap().status.success());
    assert!(place.arrived("long").unwrap() == content);
}

#[test]
fn of_two_receivers_in_one_folder_one_gives_the_name() {
    let place = &Place::new();
    let contents = [12, 13].map(|seed| {
        let folder = place.0.join(format!("from{seed}"));
        fs::create_dir(&folder).unwrap();
        let (path, content) = place.file(&format!("from{seed}/same"), 5_000_000, seed);
        (path, content)
    });
    let receivers = [Recv::start(place, &[]), Recv::start(place, &[])];
    let sending: Vec<Child> = std::iter::zip(&receivers, &contents)
        .map(|(recv, (path, _))| {
            place.sender(&recv.address, path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let ended: Vec<Output> = sending.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let good: Vec<bool> = ended.iter().map(|end| end.status.success()).collect();
    assert_eq!(good.iter().filter(|good| **good).count(), 1, "{ended:?}");
    let winner = good.iter().position(|good| *good).unwrap();
    assert!(place.arrived("same").unwrap() == contents[winner].1);
    let said = String::from_utf8_lossy(&ended[1 - winner].stderr);
    assert!(said.contains("file of this name"), "{said}");
}

/// The comparison reads the disk, not the data that arrived.
#[test]
fn a_part_that_is_changed_while_it_is_written_gets_no_name() {
    let place = &Place::new();
    let (path, _) = place.file("long", LONG, 14);
    let recv = Recv::start(place, &[]);
    let sending = half_way(place, &recv, &path);
    let part = fs::File::options().write(true).open(&place.parts()[0].0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&part, b"another", 1000).unwrap();
    assert!(!sending.goes_on().wait_with_output().unwrap().status.success());
    place.comes_to_have(&[]);
}

#[test]
fn more_than_the_quota_is_refused_at_once() {
    let place = &Place::new();
    let recv = Recv::start(place, &["--quota", "5000000"]);
    let (small, _) = place.file("small", 3_000_000, 9);
    let (good, said) = place.send(&recv, &small);
    assert!(good, "{said}");
    let (more, _) = place.file("more", 3_000_000, 10);
    let (good, said) = place.send(&recv, &more);
    assert!(!good && said.contains("quota") && sent(&said) == 0, "{said}");
    place.comes_to_have(&["small"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_said_at_the_start() {
    let place = &Place::new();
    let folder = place.0.join("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = place.command("recv", "receiver");
    command.args(["--bind", "127.0.0.1:0", "--to"]).arg(&folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    ended(&mut child);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.code() == Some(1) && said.contains("cannot write into"), "{status}: {said}");
}

#[test]
fn a_name_that_begins_with_a_dash_gets_another() {
    let place = &Place::new();
    let (path, _) = place.file("-rf", 1000, 11);
    let recv = Recv::start(place, &[]);
    let (good, said) = place.send(&recv, &path);
    assert!(good, "{said}");
    place.comes_to_have(&["_rf"]);
}

#[test]
fn a_pipe_is_refused_and_does_not_block() {
    let place = &Place::new();
    let path = place.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let recv = Recv::start(place, &[]);
    let child = place.sender(&recv.address, &path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (status, said) = ends(child);
    assert!(status != Some(0) && said.contains("a regular file"), "{said}");
}

#[test]
fn a_file_that_may_not_be_read_needs_no_capabilities() {
    let place = &Place::new();
    let (path, _) = place.file("locked", 1000, 12);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let recv = Recv::start(place, &[]);
    let (good, said) = place.send(&recv, &path);
    assert!(!good && said.contains("locked: Permission denied") && !said.contains("CAP_"), "{said}");
}

#[test]
fn a_signal_ends_the_first_reading_of_a_long_file() {
    let place = &Place::new();
    let path = place.0.join("long");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let recv = Recv::start(place, &[]);
    let child = place.sender(&recv.address, &path).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let reads = format!("/proc/{}/io", child.id());
    eventually("the reading", || {
        let counts = fs::read_to_string(&reads).unwrap();
        let read = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        read.parse::<u64>().unwrap() > 1 << 24
    });
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let (status, said) = ends(child);
    assert!(status == Some(1) && said.contains("interrupted"), "{status:?}: {said}");
}

/// The status of a program that has to end, and what it wrote to standard error.
fn ends(mut child: Child) -> (Option<i32>, String) {
    ended(&mut child);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).to_string())
}
