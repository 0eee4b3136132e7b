//! What the tests in namespaces share: namespaces that go with the test, programs in them that are stopped with it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use explicate_core::rng::Rng;
use explicate_net::awake::Awake;
use serde_json::Value;

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_explicated");

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Runs a command that has to succeed.
pub(crate) fn run(words: &str) -> String {
    let mut parts = words.split_whitespace();
    let output = Command::new(parts.next().unwrap()).args(parts).output().unwrap();
    assert!(output.status.success(), "`{words}`: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Namespaces, and a folder, as long as this lives.
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
    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(name), PROGRAM]).args(arguments);
        command
    }
    /// Runs the program to its end.
    pub(crate) fn program(&self, name: &str, arguments: &[&str]) -> Output {
        self.command(name, arguments).output().unwrap()
    }
    /// Starts the program, and leaves it some time to open its sockets.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Running {
        let child = self.command(name, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(Duration::from_millis(400));
        Running { child }
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
    pub(crate) fn signal(&self, signal: &str) {
        let _ = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
    }
    /// Ends it by a signal, and returns what it said.
    pub(crate) fn stop(mut self, signal: &str) -> String {
        self.signal(signal);
        self.wait(10).0
    }
    /// Waits for its end; what it said and whether it succeeded.
    pub(crate) fn wait(&mut self, seconds: u64) -> (String, bool) {
        let mut waited = 0;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(waited < 50 * seconds, "the program does not end");
            waited += 1;
            sleep(Duration::from_millis(20));
        };
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

/// The last line of a text, which is JSON.
pub(crate) fn last_json(text: &str) -> Value {
    let line = text.lines().rfind(|l| l.starts_with('{')).unwrap_or_else(|| panic!("no JSON in {text}"));
    serde_json::from_str(line).unwrap()
}

/// Runs a scenario in the lab and returns what it prints.
pub(crate) fn lab(text: &str, sets: &[&str]) -> Value {
    let path = std::env::temp_dir().join(format!(
        "exptest-{}-{}.toml",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    fs::write(&path, text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "--json"]).arg(&path);
    for set in sets {
        command.args(["--set", set]);
    }
    let output = command.output().unwrap();
    fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).to_string() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    last_json(&text)
}

/// Measures in real time, up to three times: a machine that stands still for some milliseconds spoils one measurement, what
/// is wrong spoils all. What spoilt one is printed. One of which the host of a virtual machine took much does not count, and
/// the next waits until the host leaves it alone; six are all.
pub(crate) fn measured(once: impl Fn()) {
    let _awake = Awake::keep();
    let mut counted = 0;
    for _ in 0..6 {
        let before = processors();
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&once)).is_ok() {
            return;
        }
        counted += !taken_since(before) as u32;
        if counted == 3 {
            break;
        }
        let quiet = || {
            let before = processors();
            sleep(Duration::from_secs(1));
            !taken_since(before)
        };
        let _ = (0..PATIENCE).any(|_| quiet());
    }
    panic!("no measurement held; {counted} of them count, the host took much of the machine from the others");
}

/// Much, as a share of what all processors had.
const MUCH: f64 = 0.02;
/// For so many seconds at most a measurement waits for a quiet one.
const PATIENCE: u32 = 30;

/// Whether the host took much since then.
fn taken_since(before: (f64, f64)) -> bool {
    let after = processors();
    after.0 - before.0 > MUCH * (after.1 - before.1)
}

/// What the host of this virtual machine has given to others, and all that its processors had, in hundredths of a second.
fn processors() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let words = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let spent: Vec<f64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
    (spent.get(7).copied().unwrap_or(0.0), spent.iter().sum())
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
