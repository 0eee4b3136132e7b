//! A file on a disk that fills up. Needs root, so `make linux` runs it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{arrives, chain, eventually, last_json, run, unfinished};
use crate::quic::Pair;
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

/// A file of zeros, a hole on disk.
fn zeros(name: &str, size: u64) -> PathBuf {
    let path = std::env::temp_dir().join(format!("exptest-{}-{name}.bin", std::process::id()));
    fs::File::create(&path).unwrap().set_len(size).unwrap();
    path
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
    // The file would take 96 s.
    let _link = net.start("m", &["link", "left", "right", "--there", "rate = \"10Mbit/s\""]);
    let mut pair = Pair::new(&net, &["--to", disk.0.to_str().unwrap()]);
    let path = zeros("filled", SIZE);
    let mut sending = pair.start("send", &[path.to_str().unwrap(), "-p", "cubic"]);
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
    pair.recv.signal("INT");
    pair.recv.wait();
    fs::remove_file(path).unwrap();
    Full { seconds, held, sent }
}
