//! Files on disks that are too small and in folders of another user. Needs root, so `make linux` runs it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{PROGRAM, arrives, chain, eventually, last_json, run, unfinished};
use crate::quic::paired;
use explicate_net::files::pairing::State;
use explicate_net::sys::monotonic;

/// A small disk in memory, removed on drop.
struct Disk(PathBuf);

impl Disk {
    fn new(name: &str, size: &str) -> Disk {
        let path = std::env::temp_dir().join(format!("exptest-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        run(&format!("mount -t tmpfs -o size={size} tmpfs {}", path.display()));
        Disk(path)
    }
    fn names(&self) -> Vec<std::ffi::OsString> {
        fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name()).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

/// A receiver, ended on drop, and its address.
struct Recv(Child, String);

impl Recv {
    fn start(folder: &Path, options: &[&str]) -> Recv {
        let mut command = Command::new(PROGRAM);
        command.args(["recv", "--bind", "127.0.0.1:0", "--json", "--to"]).arg(folder).args(options);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = last_json(&line)["address"].as_str().unwrap().to_string();
        Recv(child, address)
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file of zeros, a hole on disk.
fn zeros(name: &str, size: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("exptest-{}-{name}.bin", std::process::id()));
    fs::File::create(&path).unwrap().set_len(size).unwrap();
    path
}

fn send(recv: &Recv, path: &Path, options: &[&str]) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["send", &recv.1]).arg(path).args(["--json", "-p", "cubic"]).args(options);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
/// What a sender that fails says, and bytes that it sent.
fn failed(sending: Child) -> (String, u64) {
    let done = sending.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let told = last_json(&String::from_utf8_lossy(&done.stdout));
    (String::from_utf8_lossy(&done.stderr).to_string(), told["end"]["sum_sent"]["bytes"].as_u64().unwrap())
}

#[test]
#[ignore = "needs root: make linux"]
fn a_file_that_the_disk_has_no_room_for_is_refused_before_it_is_sent() {
    let (disk, net, path) = (Disk::new("small", "4m"), chain(), zeros("small", 12_000_000));
    let state = net.folder.to_str().unwrap();
    let recv = Recv::start(&disk.0, &["--state", state]);
    let known = State::open(Some(&net.folder)).unwrap();
    let key = known.identity().unwrap().public;
    known.add_sender(key, "itself").and_then(|()| known.add_receiver(&recv.1, key)).unwrap();
    let (said, sent) = failed(send(&recv, &path, &["--state", state]));
    assert!(said.contains("no space") && sent == 0, "{sent} {said}");
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0, "nothing is left");
    fs::remove_file(path).unwrap();
}

#[test]
#[ignore = "needs root: make linux"]
fn a_disk_that_fills_up_meanwhile_ends_a_transfer() {
    fills_up();
}

/// What a transfer came to whose disk was full.
pub(crate) struct Full {
    /// From then to its end, s.
    pub(crate) seconds: f64,
    /// Bytes that had arrived then.
    pub(crate) held: u64,
    /// Bytes that its sender sent in all.
    pub(crate) sent: u64,
}

/// The disk of a receiver is filled while a file of 120 MB arrives, which is refused and removed. `timed::files` has how soon.
pub(crate) fn fills_up() -> Full {
    const SIZE: u64 = 120_000_000;
    let (disk, net) = (Disk::new("filled", "160m"), chain());
    let [receiver, sender] = paired(&net, "10.9.0.2");
    // The file would take 96 s.
    let _link = net.start("m", &["link", "left", "right", "--there", "rate = \"10Mbit/s\""]);
    let mut recv = net.start("b", &["recv", "--to", disk.0.to_str().unwrap(), "--state", &receiver]);
    let path = zeros("filled", SIZE);
    let words = ["send", "10.9.0.2", path.to_str().unwrap(), "--json", "-p", "cubic", "--state", &sender];
    let mut sending = net.start("a", &words);
    arrives(&disk.0, SIZE / 100);
    // The sender pauses while another program takes the rest of the disk.
    sending.signal("STOP");
    let mut other = fs::File::create(disk.0.join("other")).unwrap();
    while other.write_all(&[1; 1 << 16]).is_ok() {}
    let held = unfinished(&disk.0).unwrap();
    let began = monotonic();
    sending.signal("CONT");
    let (said, good) = sending.wait();
    let seconds = (monotonic() - began) as f64 / 1e9;
    assert!(!good && said.contains("disk is full"), "{said}");
    let sent = last_json(&said)["end"]["sum_sent"]["bytes"].as_u64().unwrap();
    assert!(sent < SIZE, "{sent} bytes were sent");
    eventually("the part is removed", || disk.names() == ["other"]);
    recv.signal("INT");
    recv.wait();
    fs::remove_file(path).unwrap();
    Full { seconds, held, sent }
}
