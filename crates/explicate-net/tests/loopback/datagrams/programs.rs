//! Programs over the loopback interface, and sockets that send to them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use explicate_core::datagram;
use explicate_core::rng::Rng;
use explicate_net::endpoint::Endpoint;
use explicate_net::endpoint::auth::Key;
use explicate_net::endpoint::message::Message;

use super::{answers, bytes};
use crate::patience::{PATIENCE, eventually, uninterrupted};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_explicated");
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        let name = format!("explicate-programs-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
    /// A new key's file.
    pub(crate) fn key(&self, name: &str) -> String {
        let path = self.path(name);
        Key::random().unwrap().save(Path::new(&path)).unwrap();
        path
    }
    /// A file of so many bytes.
    pub(crate) fn content(&self, name: &str, size: usize) -> (String, Vec<u8>) {
        let mut rng = Rng::stream(size as u64, name);
        let content: Vec<u8> = (0..size).map(|_| rng.next_u64() as u8).collect();
        let path = self.path(name);
        fs::write(&path, &content).unwrap();
        (path, content)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// On drop it lets other threads end, also if a test fails.
pub(crate) struct Done<'a>(pub(crate) &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `recv` at a port of this machine.
pub(crate) struct Recv {
    child: Child,
    pub(crate) address: SocketAddrV4,
}

impl Recv {
    pub(crate) fn start(arguments: &[&str]) -> Recv {
        let mut command = Command::new(PROGRAM);
        command
            .args(["recv", "--transport", "udp", "--json", "--interval", "0", "--bind", "127.0.0.1:0"])
            .args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut events, mut line) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        events.read_line(&mut line).unwrap();
        let listening: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = listening["address"].as_str().unwrap().parse().unwrap();
        // What it says later is read, so that it never waits for a full pipe.
        std::thread::spawn(move || std::io::copy(&mut events, &mut std::io::sink()));
        Recv { child, address }
    }
    pub(crate) fn facts(&self) -> (usize, u64) {
        let process = self.child.id();
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        (descriptors, line.trim().trim_end_matches(" kB").parse().unwrap())
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn send(to: SocketAddrV4, arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["send", "--transport", "udp", "--interval", "0", &to.to_string()])
        .args(arguments)
        .output()
        .unwrap()
}

/// What is said of a `send` that fails.
pub(crate) fn fails(to: SocketAddrV4, arguments: &[&str]) -> String {
    let output = send(to, arguments);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// A socket of this address that waits for answers.
pub(crate) fn socket(address: &str, peer: SocketAddrV4) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.connect(peer).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

pub(crate) fn flows(end: &Endpoint) -> usize {
    end.receivers.as_ref().unwrap().flows.len()
}

/// A cookie for this flow. It asks again: a sender that has asked too often gets no answer for a while, and a full buffer loses answers.
pub(crate) fn cookie(socket: &UdpSocket, peer: SocketAddrV4, flow: u64) -> [u8; 16] {
    let knock = bytes(&Message::knock(flow).to_packet(), &[]);
    let mut found = None;
    eventually("a cookie", || {
        answers(socket, 0);
        socket.send_to(&knock, peer).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        found = std::iter::from_fn(|| answer_or_other(socket)).flatten().find_map(|told| match told {
            Message::Cookie(of, cookie) if of == flow => Some(cookie),
            _ => None,
        });
        found.is_some()
    });
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    found.unwrap()
}

/// The next datagram: a message, or something else.
fn answer_or_other(socket: &UdpSocket) -> Option<Option<Message>> {
    let mut buffer = [0; 2000];
    let length = uninterrupted(|| socket.recv(&mut buffer)).ok()?;
    Some(datagram::read(&buffer[..length]).ok().and_then(|read| Message::of(&read.packet)))
}
