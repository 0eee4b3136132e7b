//! What the tests in namespaces share: namespaces that go with the test, programs in them that are stopped with it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use explicate_core::rng::Rng;
use explicate_net::sys::{enter_namespace, offloads_off};
use serde_json::Value;

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_explicated");

pub(crate) use crate::patience::{PATIENCE, ended, eventually, uninterrupted};

pub(crate) mod exchanges;
pub(crate) mod gateways;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Runs a command that has to succeed.
pub(crate) fn run(words: &str) -> String {
    let mut parts = words.split_whitespace();
    let output = Command::new(parts.next().unwrap()).args(parts).output().unwrap();
    assert!(output.status.success(), "`{words}`: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Namespaces and a folder, removed on drop.
pub(crate) struct Net {
    prefix: String,
    names: Vec<String>,
    pub(crate) folder: PathBuf,
}

impl Net {
    /// Namespaces of these names. Needs root: a test that cannot run fails.
    pub(crate) fn new(names: &[&str]) -> Net {
        let prefix = format!("exptest-{}-{}-", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(prefix.trim_end_matches('-'));
        fs::create_dir_all(&folder).unwrap();
        let mut net = Net { prefix, names: Vec::new(), folder };
        for name in names {
            run(&format!("ip netns add {}{name}", net.prefix));
            net.names.push(name.to_string());
            run(&format!("ip -n {}{name} link set lo up", net.prefix));
            net.exec(name, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1");
        }
        net
    }
    /// A cable between two of them; with an address where one is given.
    pub(crate) fn cable(
        &self,
        (a, device_a, address_a): (&str, &str, &str),
        (b, device_b, address_b): (&str, &str, &str),
    ) {
        let (na, nb) = (self.name(a), self.name(b));
        run(&format!("ip -n {na} link add {device_a} type veth peer name {device_b} netns {nb}"));
        for (namespace, device, address) in [(&na, device_a, address_a), (&nb, device_b, address_b)] {
            if !address.is_empty() {
                run(&format!("ip -n {namespace} addr add {address} dev {device}"));
            }
            run(&format!("ip -n {namespace} link set {device} up"));
        }
    }
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
    /// Runs a command in a namespace that has to succeed.
    pub(crate) fn exec(&self, name: &str, words: &str) -> String {
        run(&format!("ip netns exec {} {words}", self.name(name)))
    }
    /// Runs a command in a namespace; whether it succeeded.
    pub(crate) fn try_exec(&self, name: &str, words: &str) -> bool {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(name)]).args(words.split_whitespace());
        command.output().unwrap().status.success()
    }
    /// The program with these arguments in a namespace.
    pub(crate) fn command(&self, name: &str, arguments: &[&str]) -> Command {
        // What runs in a shell's background ignores signals, and must not pass that on.
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(name), "env", "--default-signal=INT,HUP", PROGRAM]).args(arguments);
        command
    }
    /// Runs the program to its end.
    pub(crate) fn program(&self, name: &str, arguments: &[&str]) -> Output {
        self.command(name, arguments).output().unwrap()
    }
    /// Starts the program, and waits until its sockets are open: it drops its privileges then.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Running {
        let mut command = self.command(name, arguments);
        self.start_command(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }
    /// Starts a command of [`Net::command`] likewise.
    pub(crate) fn start_command(&self, command: &mut Command) -> Running {
        let mut running = Running { child: command.spawn().unwrap() };
        let status = format!("/proc/{}/status", running.id());
        let open = || fs::read_to_string(&status).is_ok_and(|text| text.contains("NoNewPrivs:\t1"));
        eventually("the program opens its sockets", || open() || running.child.try_wait().unwrap().is_some());
        running
    }
    /// Runs a function in a namespace, on a separate thread.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        name: &str,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let place = File::open(format!("/run/netns/{}", self.name(name))).unwrap();
        std::thread::spawn(move || {
            enter_namespace(place.as_fd()).unwrap();
            what()
        })
    }
    /// Switches off offloads that merge frames at these interfaces, given as namespace and name.
    pub(crate) fn no_offloads(&self, devices: &[(&str, &'static str)]) {
        for &(host, device) in devices {
            self.inside(host, move || offloads_off(device).unwrap()).join().unwrap();
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", &format!("{}{name}", self.prefix)]).status();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program that runs beside the test.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
    /// The effective capabilities of its threads, and whether they may gain none: the lines of `/proc`, each once.
    pub(crate) fn privileges(&self) -> BTreeSet<String> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let texts = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).unwrap());
        let lines = |text: String| {
            let lines = text.lines().filter(|l| l.starts_with("CapEff:") || l.starts_with("NoNewPrivs:"));
            lines.map(String::from).collect::<Vec<_>>()
        };
        texts.flat_map(lines).collect()
    }
    pub(crate) fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
    }
    /// Ends it by a signal, and returns its output.
    pub(crate) fn stop(mut self, signal: &str) -> String {
        self.signal(signal);
        self.wait().0
    }
    /// Waits for its end; returns its output and whether it succeeded.
    pub(crate) fn wait(&mut self) -> (String, bool) {
        let status = ended(&mut self.child);
        let mut text = String::new();
        let _ = self.child.stdout.take().unwrap().read_to_string(&mut text);
        let _ = self.child.stderr.take().unwrap().read_to_string(&mut text);
        (text, status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes of files that have not wholly arrived in a folder; nothing if there is no such file.
pub(crate) fn unfinished(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder.join(".explicate-parts")).ok()?;
    entries.filter_map(|entry| entry.unwrap().metadata().ok()).map(|meta| meta.len()).reduce(|a, b| a + b)
}

/// Waits until at least so many bytes of a file have arrived in a folder, or the whole file has.
pub(crate) fn arrives(folder: &Path, bytes: u64) {
    let whole = || fs::exists(folder.join("sent.bin")).unwrap();
    eventually("the file arrives", || unfinished(folder).is_some_and(|held| held >= bytes) || whole());
}

/// Starts a sender and pauses it when at least so many bytes of its file have arrived in a folder. A transfer that was over before
/// is made anew.
pub(crate) fn paused(start: impl Fn() -> Running, folder: &Path, bytes: u64) -> Running {
    let mut caught = None;
    eventually("a part", || {
        let sender = start();
        arrives(folder, bytes);
        sender.signal("STOP");
        // What is under way still arrives, but no more than the line takes.
        if unfinished(folder).is_some_and(|held| held < 4 * bytes) {
            caught = Some(sender);
            return true;
        }
        drop(sender);
        eventually("the transfer has ended", || fs::remove_file(folder.join("sent.bin")).is_ok());
        false
    });
    caught.unwrap()
}

/// The last line of a text, which is JSON.
pub(crate) fn last_json(text: &str) -> Value {
    let line = text.lines().rfind(|l| l.starts_with('{')).unwrap_or_else(|| panic!("no JSON in {text}"));
    serde_json::from_str(line).unwrap()
}

/// Runs a scenario in the lab, with keys set, and returns what it prints.
pub(crate) fn lab(text: &str, sets: &[&str]) -> Value {
    lab_with(text, "--set", sets)
}

/// The same with an option that may have several values.
pub(crate) fn lab_with(text: &str, option: &str, values: &[impl AsRef<str>]) -> Value {
    let path = std::env::temp_dir().join(format!(
        "exptest-{}-{}.toml",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    fs::write(&path, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "--json"]).arg(&path);
    for value in values {
        command.args([option, value.as_ref()]);
    }
    let output = command.output().unwrap();
    fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).to_string() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    last_json(&text)
}

/// Names of namespaces that begin so.
pub(crate) fn namespaces(prefix: &str) -> Vec<String> {
    let list = run("ip netns list");
    list.lines().filter(|l| l.starts_with(prefix)).map(str::to_string).collect()
}

/// A number in the row of a table in which `key` is `name`.
pub(crate) fn number(told: &Value, table: &str, key: &str, name: &str, column: &str) -> f64 {
    let row = told[table].as_array().unwrap().iter().find(|row| row[key] == name).unwrap();
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {name} is {}", row[column]))
}

/// All numbers of a column.
pub(crate) fn numbers(told: &Value, table: &str, column: &str) -> Vec<f64> {
    told[table].as_array().unwrap().iter().map(|row| row[column].as_f64().unwrap()).collect()
}

/// Jain's fairness index.
pub(crate) fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|r| r * r).sum::<f64>())
}

/// What is served at this address of a namespace. The server ends connections of 2 s, so a test that was stopped asks again.
pub(crate) fn scraped(net: &Net, name: &str, address: &'static str) -> String {
    let ask = move || {
        let (mut stream, mut text) = (TcpStream::connect(address)?, String::new());
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        stream.read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    net.inside(name, move || {
        let mut text = String::new();
        eventually("the metrics are served", || {
            text = ask().unwrap_or_default();
            !text.is_empty()
        });
        text
    })
    .join()
    .unwrap()
}

/// The value of a series, if it is served.
pub(crate) fn series(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')).map(|value| value.parse().unwrap())
}

/// The value of a series that is served.
pub(crate) fn value(text: &str, name: &str) -> f64 {
    series(text, name).unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Listens in `b`: all that comes by one connection to this address.
pub(crate) fn takes_a_stream(net: &Net, address: &'static str) -> JoinHandle<Vec<u8>> {
    let listener = net.inside("b", move || TcpListener::bind(address).unwrap()).join().unwrap();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all
    })
}

/// Two hosts, `a` (10.9.0.1) and `b` (10.9.0.2), and between them `m` with the interfaces `left` and `right`.
pub(crate) fn chain() -> Net {
    let net = Net::new(&["a", "m", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("m", "left", ""));
    net.cable(("b", "eth0", "10.9.0.2/24"), ("m", "right", ""));
    net
}

/// A file that cannot be guessed or compressed.
pub(crate) fn file(net: &Net, bytes: usize) -> (String, Vec<u8>) {
    let mut rng = Rng::stream(bytes as u64, "file");
    let content: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
    let path = net.folder.join("sent.bin");
    fs::write(&path, &content).unwrap();
    (path.display().to_string(), content)
}
