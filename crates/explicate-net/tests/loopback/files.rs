//! Files that arrive: a file that is reported complete is complete. Programs over the loopback interface; no root needed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use explicate_net::files::pairing::State;
use serde_json::Value;

use crate::patience::{ended, eventually};
use crate::quic::{PROGRAM, Place, Recv, signal, text};

impl Place {
    /// Sends a file to its end: whether it went well, and what was said.
    fn sent(&self, recv: &Recv, path: &Path) -> (bool, String) {
        let sent = self.send("a", &recv.address, &["-p", "cubic", text(path)]);
        (sent.is_good(), sent.said)
    }
    fn folder(&self) -> PathBuf {
        self.0.join("in")
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

impl Recv {
    /// A receiver that the sender `a` knows, and is known to.
    fn known(place: &Place, address: &str, options: &[&str]) -> Recv {
        let [receiver, sender] =
            ["receiver", "a"].map(|whose| State::open(Some(Path::new(&place.state(whose)))).unwrap());
        if receiver.senders().unwrap().is_empty() {
            receiver.add_sender(sender.identity().unwrap().public, "127.0.0.1").unwrap();
        }
        let recv = Recv::start_at(place, address, options);
        sender.add_receiver(&recv.address, receiver.identity().unwrap().public).unwrap();
        recv
    }
    /// Its address, after its end.
    fn killed(mut self) -> String {
        self.kill();
        self.address.clone()
    }
}

const ANY: &str = "127.0.0.1:0";

#[test]
fn a_file_that_is_there_is_not_replaced_unless_asked() {
    let place = &Place::new();
    let (path, new) = place.file("a.bin", 3_000_000);
    fs::write(place.folder().join("a.bin"), b"old").unwrap();
    let recv = Recv::known(place, ANY, &[]);
    let (good, said) = place.sent(&recv, &path);
    assert!(!good && said.contains("a file of this name"), "{said}");
    assert!(said.contains("\"bytes\":0"), "told before any data: {said}");
    assert_eq!(place.arrived("a.bin").unwrap(), b"old");
    drop(recv);
    let recv = Recv::known(place, ANY, &["--replace"]);
    let (good, said) = place.sent(&recv, &path);
    assert!(good && place.arrived("a.bin").unwrap() == new, "{said}");
    place.comes_to_have(&["a.bin"]);
}

#[test]
fn the_mode_is_kept_but_no_set_user_id() {
    let place = &Place::new();
    let recv = Recv::known(place, ANY, &[]);
    for (name, mode, kept) in [("secret", 0o600, 0o600), ("program", 0o4755, 0o755), ("only", 0o440, 0o440)] {
        let (path, _) = place.file(name, 1000);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let (good, said) = place.sent(&recv, &path);
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

/// Sends `path` until a quarter of it has arrived, and pauses the sender then. A transfer that was over before is made anew.
fn half_way(place: &Place, recv: &Recv, path: &Path) -> Paused {
    let (size, name) = (fs::metadata(path).unwrap().len(), path.file_name().unwrap());
    let mut paused = None;
    eventually("a part", || {
        let child = place
            .sender("a", &recv.address, &["-p", "cubic", text(path)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
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
    let (path, content) = place.file("long", LONG);
    let recv = Recv::known(place, ANY, &[]);
    let sending = half_way(place, &recv, &path);
    let address = recv.killed();
    drop(sending);
    let held = place.parts()[0].1;
    let recv = Recv::known(place, &address, &[]);
    let (good, said) = place.sent(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content, "{said}");
    assert_eq!(total(&said, "sum_received"), LONG as u64 - held, "{held} bytes were there");
    place.comes_to_have(&["long"]);
}

#[test]
fn a_transfer_goes_on_where_a_killed_sender_stopped() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG);
    let recv = Recv::known(place, ANY, &[]);
    drop(half_way(place, &recv, &path));
    let held = place.parts()[0].1;
    let (good, said) = place.sent(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content, "{said}");
    assert!(total(&said, "sum_received") <= LONG as u64 - held, "{held} bytes were there: {said}");
    place.comes_to_have(&["long"]);
}

#[test]
fn a_part_that_was_damaged_meanwhile_is_removed_and_told() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG);
    let recv = Recv::known(place, ANY, &[]);
    let sending = half_way(place, &recv, &path);
    let address = recv.killed();
    drop(sending);
    let (part, held) = place.parts().remove(0);
    let mut bytes = fs::read(&part).unwrap();
    bytes[held as usize / 2] ^= 1;
    fs::write(&part, bytes).unwrap();
    let mut recv = Recv::known(place, &address, &[]);
    let (good, said) = place.sent(&recv, &path);
    assert!(!good && said.contains("differs"), "{said}");
    assert!(recv.event("end")["verdict"].as_str().unwrap().contains("not the same"));
    place.comes_to_have(&[]);
    let (good, said) = place.sent(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content, "{said}");
}

#[test]
fn parts_that_nobody_comes_for_are_removed() {
    let place = &Place::new();
    let (path, _) = place.file("long", LONG);
    let recv = Recv::known(place, ANY, &[]);
    let sending = half_way(place, &recv, &path);
    let address = recv.killed();
    drop(sending);
    let part = place.parts().remove(0).0;
    let recv = Recv::known(place, &address, &[]);
    assert!(part.exists(), "not yet");
    recv.killed();
    let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&part).unwrap().set_modified(old).unwrap();
    let _recv = Recv::known(place, &address, &[]);
    place.comes_to_have(&[]);
}

#[test]
fn a_file_that_comes_meanwhile_stays_as_it_is() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG);
    let recv = Recv::known(place, ANY, &[]);
    let sending = half_way(place, &recv, &path);
    fs::write(place.folder().join("long"), b"mine").unwrap();
    assert!(!sending.goes_on().wait_with_output().unwrap().status.success());
    assert_eq!(place.arrived("long").unwrap(), b"mine");
    // What arrived is kept for another try.
    fs::remove_file(place.folder().join("long")).unwrap();
    let (good, said) = place.sent(&recv, &path);
    assert!(good && place.arrived("long").unwrap() == content && sent(&said) == 0, "{said}");
}

#[test]
fn of_two_senders_of_one_name_the_second_is_told_at_once() {
    let place = &Place::new();
    let (path, content) = place.file("long", LONG);
    let recv = Recv::known(place, ANY, &[]);
    let sending = half_way(place, &recv, &path);
    let other = place.0.join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("long"), b"short").unwrap();
    let (good, said) = place.sent(&recv, &other.join("long"));
    assert!(!good && said.contains("name") && sent(&said) == 0, "{said}");
    assert!(sending.goes_on().wait_with_output().unwrap().status.success());
    assert!(place.arrived("long").unwrap() == content);
}

#[test]
fn of_two_receivers_in_one_folder_one_gives_the_name() {
    let place = &Place::new();
    let contents = [12, 13].map(|seed| {
        let folder = place.0.join(format!("out/from{seed}"));
        fs::create_dir(&folder).unwrap();
        let (path, content) = place.file(&format!("from{seed}/same"), 5_000_000);
        (path, content)
    });
    let receivers = [Recv::known(place, ANY, &[]), Recv::known(place, ANY, &[])];
    let sending: Vec<Child> = std::iter::zip(&receivers, &contents)
        .map(|(recv, (path, _))| {
            place
                .sender("a", &recv.address, &["-p", "cubic", text(path)])
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
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
    let (path, _) = place.file("long", LONG);
    let recv = Recv::known(place, ANY, &[]);
    let sending = half_way(place, &recv, &path);
    let part = fs::File::options().write(true).open(&place.parts()[0].0).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&part, b"another", 1000).unwrap();
    assert!(!sending.goes_on().wait_with_output().unwrap().status.success());
    place.comes_to_have(&[]);
}

#[test]
fn more_than_the_quota_is_refused_at_once() {
    let place = &Place::new();
    let recv = Recv::known(place, ANY, &["--quota", "5000000"]);
    let (small, _) = place.file("small", 3_000_000);
    let (good, said) = place.sent(&recv, &small);
    assert!(good, "{said}");
    let (more, _) = place.file("more", 3_000_000);
    let (good, said) = place.sent(&recv, &more);
    assert!(!good && said.contains("quota") && sent(&said) == 0, "{said}");
    place.comes_to_have(&["small"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_said_at_the_start() {
    let place = &Place::new();
    let folder = place.0.join("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["recv", "--state", &place.state("receiver"), "--bind", ANY, "--to"]).arg(&folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    ended(&mut child);
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.code() == Some(1) && said.contains("cannot write into"), "{status}: {said}");
}

#[test]
fn a_name_that_begins_with_a_dash_gets_another() {
    let place = &Place::new();
    let (path, _) = place.file("-rf", 1000);
    let recv = Recv::known(place, ANY, &[]);
    let (good, said) = place.sent(&recv, &path);
    assert!(good, "{said}");
    place.comes_to_have(&["_rf"]);
}

#[test]
fn a_pipe_is_refused_and_does_not_block() {
    let place = &Place::new();
    let path = place.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let recv = Recv::known(place, ANY, &[]);
    let child = place
        .sender("a", &recv.address, &["-p", "cubic", text(&path)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (status, said) = ends(child);
    assert!(status != Some(0) && said.contains("a regular file"), "{said}");
}

#[test]
fn a_file_that_may_not_be_read_needs_no_capabilities() {
    let place = &Place::new();
    let (path, _) = place.file("locked", 1000);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let recv = Recv::known(place, ANY, &[]);
    let (good, said) = place.sent(&recv, &path);
    assert!(!good && said.contains("locked: Permission denied") && !said.contains("CAP_"), "{said}");
}

#[test]
fn a_signal_ends_the_first_reading_of_a_long_file() {
    let place = &Place::new();
    let path = place.0.join("long");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let recv = Recv::known(place, ANY, &[]);
    let child = place
        .sender("a", &recv.address, &["-p", "cubic", text(&path)])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
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
