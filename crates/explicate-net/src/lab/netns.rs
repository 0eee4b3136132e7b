//! Network namespaces and the interfaces between them: created by `ip` commands, and removed in every case.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use explicate_core::units::Time;

use crate::error::{Context, Error, Result};
use crate::sys;

/// The system's folder of named namespaces.
const NAMES: &str = "/run/netns";
/// Settings of the kernel's TCP, for the namespace of the thread that reads or writes.
pub(super) const SETTINGS: &str = "/proc/sys/net/ipv4";
/// How long a cable may take to carry frames: a limit for what never comes...
const LATEST: Time = Time::secs(120);
/// ... and the interval between looks.
const LOOKS: Time = Time::millis(2);
/// The name of every namespace of a lab begins with this word and the number of its process.
const WORD: &str = "explicate";

/// A step of building a topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A command, by its words.
    Command(String),
    /// Disables the offloads of an interface in a namespace.
    OffloadsOff(String, String),
    /// Sets a value of the kernel's TCP in a namespace.
    Set(String, &'static str, String),
}

impl Step {
    /// The step as a shell command.
    pub fn line(&self) -> String {
        match self {
            Step::Command(words) => words.clone(),
            Step::OffloadsOff(namespace, interface) => {
                format!("ip netns exec {namespace} ethtool -K {interface} tso off gso off gro off tx off")
            }
            Step::Set(namespace, name, value) => {
                format!("ip netns exec {namespace} sysctl -qw net.ipv4.{name}='{value}'")
            }
        }
    }
    fn run(&self) -> Result<()> {
        let words = match self {
            Step::Command(words) => words,
            Step::OffloadsOff(namespace, interface) => {
                return inside(namespace, || {
                    sys::offloads_off(interface).or_fail(|| format!("disable the offloads of {interface}"))
                });
            }
            Step::Set(namespace, name, value) => {
                return inside(namespace, || {
                    fs::write(Path::new(SETTINGS).join(name), value).or_fail(|| format!("set {name} to {value}"))
                });
            }
        };
        let mut words = words.split_whitespace();
        let (program, arguments) = (words.next().unwrap_or_default(), words);
        let done = Command::new(program).args(arguments).output().or_fail(|| format!("run `{program}`"))?;
        if done.status.success() {
            return Ok(());
        }
        let message = String::from_utf8_lossy(&done.stderr);
        let hint = if message.contains("Operation not permitted") { " (run as root)" } else { "" };
        Err(Error::Failed(format!("`{}` failed: {}{hint}", self.line(), message.trim())))
    }
}

/// Calls `work` by a thread in a namespace.
pub(super) fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let entered = || enter(namespace).and_then(|()| work());
    let panicked = || Error::Failed("a step of the lab panicked".to_string());
    thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|_| Err(panicked()))
}

/// The prefix of this process's namespaces.
pub fn prefix() -> String {
    format!("{WORD}-{}-", std::process::id())
}

/// Network namespaces, removed on drop, or by the reaper if the process dies.
pub struct Namespaces {
    names: Vec<String>,
    reaper: Option<Child>,
}

/// A shell script that waits for the end of its input, which is closed when this process ends, and removes the
/// remaining namespaces.
const REAPER: &str =
    "trap '' INT TERM HUP; read _; for n in \"$@\"; do [ -e /run/netns/\"$n\" ] && ip netns delete \"$n\"; done";

/// Starts the reaper, which finds nothing to remove after a normal exit.
fn reaper(names: &[String]) -> Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", REAPER, "sh"]).args(names);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().or_fail(|| "start a shell".to_string())
}

impl Namespaces {
    /// Creates namespaces of these names and runs the steps that configure them. Namespaces of dead labs are removed
    /// first.
    pub fn make(names: &[String], steps: &[Step]) -> Result<Namespaces> {
        remove_orphans();
        // If a step fails, they are dropped, and so removed.
        let mut made = Namespaces { names: Vec::new(), reaper: Some(reaper(names)?) };
        for name in names {
            Step::Command(format!("ip netns add {name}")).run()?;
            made.names.push(name.clone());
        }
        for step in steps {
            if sys::stopped() {
                return Err(Error::Failed("interrupted".to_string()));
            }
            step.run()?;
        }
        Ok(made)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            remove(name);
        }
        if let Some(mut reaper) = self.reaper.take() {
            drop(reaper.stdin.take());
            let _ = reaper.wait();
        }
    }
}

fn remove(name: &str) {
    if let Err(error) = Step::Command(format!("ip netns delete {name}")).run() {
        tracing::warn!(%error, "cannot remove a namespace");
    }
}

/// Removes the namespaces of labs whose process has ended.
fn remove_orphans() {
    for name in left_behind() {
        let process = name.split('-').nth(1).unwrap_or("");
        if !Path::new("/proc").join(process).exists() {
            remove(&name);
        }
    }
}

/// Namespaces of labs, running or dead.
pub fn left_behind() -> Vec<String> {
    let entries = fs::read_dir(NAMES).into_iter().flatten().flatten();
    let ours =
        |name: &String| name.starts_with(WORD) && name.split('-').nth(1).is_some_and(|p| p.parse::<u32>().is_ok());
    entries.filter_map(|e| e.file_name().into_string().ok()).filter(ours).collect()
}

/// Moves this thread into a namespace.
pub fn enter(name: &str) -> Result<()> {
    let path = Path::new(NAMES).join(name);
    File::open(&path)
        .and_then(|file| sys::enter_namespace(file.as_fd()))
        .or_fail(|| format!("enter the namespace {name}"))
}

/// The first of these interfaces of this thread's namespace that carries no frames.
fn down(interfaces: &[String]) -> Result<Option<&String>> {
    for interface in interfaces {
        if !sys::is_running(interface).or_fail(|| format!("read the state of {interface}"))? {
            return Ok(Some(interface));
        }
    }
    Ok(None)
}

/// An error unless these interfaces of this thread's namespace, `name`, carry frames: what they should have carried is lost.
pub(super) fn are_up(name: &str, interfaces: &[String]) -> Result<()> {
    let Some(interface) = down(interfaces)? else { return Ok(()) };
    let why = "its frames are lost, so there are no results";
    Err(Error::Failed(format!("the interface `{interface}` of {name} is down: {why}")))
}

/// Waits until these interfaces of this thread's namespace, `name`, carry frames, or until `stop`. The kernel notices that a cable has
/// its second end some time after it has been made.
pub(super) fn come_up(name: &str, interfaces: &[String], stop: &dyn Fn() -> bool) -> Result<()> {
    let latest = sys::monotonic() + LATEST.0;
    while down(interfaces)?.is_some() && !stop() {
        if sys::monotonic() >= latest {
            return are_up(name, interfaces);
        }
        sys::sleep_until(sys::monotonic() + LOOKS.0);
    }
    Ok(())
}

/// All steps of a lab as shell commands.
pub fn script(names: &[String], steps: &[Step]) -> String {
    let mut text = String::new();
    for name in names {
        let _ = writeln!(text, "ip netns add {name}");
    }
    for step in steps {
        let _ = writeln!(text, "{}", step.line());
    }
    text
}
