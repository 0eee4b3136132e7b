//! Where the rate of a line comes from: a file, a command, or a value that a modem serves as JSON; what they say, and how it is read.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use explicate_core::units::Rate;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::sys;

/// How long a command or a server may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Longest text of a source, bytes.
const LONGEST: u64 = 1 << 20;
/// Bytes that a pipe holds.
const PIPE: usize = 1 << 16;

/// Rates of lines.
const SLOWEST: Rate = Rate(8_000);
const FASTEST: Rate = Rate(100_000_000_000);

/// A rate, as in `"20Mbit/s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineRate(pub Rate);

impl LineRate {
    /// Reads one.
    pub fn parse(text: &str) -> Result<LineRate, String> {
        let (carried, bare) = (SLOWEST..=FASTEST, text.trim().parse::<f64>());
        let error = || {
            format!(
                "`{text}` is no rate of a line: those are from {} kbit/s to {} Gbit/s",
                SLOWEST.0 / 1000,
                FASTEST.0 / 1_000_000_000
            )
        };
        // A number without a unit would be shown with one, as if it were a rate of a line.
        if bare.is_ok_and(|bits| !carried.contains(&Rate(bits as u64))) {
            return Err(error());
        }
        let rate = explicate_scenario::rate(text)?;
        carried.contains(&rate).then_some(LineRate(rate)).ok_or_else(error)
    }
}

impl<'de> Deserialize<'de> for LineRate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LineRate, D::Error> {
        struct Quoted;
        impl Visitor<'_> for Quoted {
            type Value = LineRate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate in quotes, as in \"20Mbit/s\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<LineRate, E> {
                LineRate::parse(text).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<LineRate, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<LineRate, E> {
                self.visit_str(&number.to_string())
            }
        }
        from.deserialize_any(Quoted)
    }
}

/// Where the rate comes from: one of `file`, `command`, `url`, `measured`.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A file with a rate in its first line, like `20Mbit/s`, or a number of bit/s.
    pub file: Option<PathBuf>,
    /// A command that prints such a line; its words.
    pub command: Option<Vec<String>>,
    /// An address, `http://HOST[:PORT]/PATH`, where JSON is served.
    pub url: Option<String>,
    /// The port measures it.
    #[serde(default)]
    pub measured: bool,
    /// Where the rate stands in the JSON (RFC 6901), as in `/downlink/rate`.
    #[serde(default)]
    pub pointer: String,
    /// What a number is multiplied by to give bit/s.
    #[serde(default = "one")]
    pub unit: f64,
    /// Seconds between two runs of a command, or two requests.
    #[serde(default = "one")]
    pub interval: f64,
    /// Seconds for which the last rate stays in force when the source fails.
    #[serde(default = "ten")]
    pub hold: f64,
    /// The rate after that.
    pub floor: LineRate,
}

fn one() -> f64 {
    1.0
}
fn ten() -> f64 {
    10.0
}

/// Whether this is an address that [`get`] can ask.
fn is_served(url: &str) -> bool {
    url.parse::<ureq::http::Uri>().is_ok_and(|uri| uri.scheme_str() == Some("http") && uri.host().is_some())
}

impl Source {
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let kinds = self.file.is_some() as u32 + self.command.is_some() as u32 + self.url.is_some() as u32;
        if kinds + self.measured as u32 != 1 {
            return Err("capacity: give one of `file`, `command`, `url`, `measured`".to_string());
        }
        if self.command.as_ref().is_some_and(Vec::is_empty) {
            return Err("capacity: `command` is empty".to_string());
        }
        if self.url.as_ref().is_some_and(|url| !is_served(url)) {
            return Err("capacity: `url` begins with http:// and a host".to_string());
        }
        let good = |seconds: f64, least: f64| (least..=86_400.0).contains(&seconds);
        if !good(self.interval, 0.05) || !good(self.hold, 0.0) || !(1e-3..=1e12).contains(&self.unit) {
            return Err(
                "capacity: interval from 0.05 to 86400 s, hold up to 86400 s, unit from 0.001 to 1e12".to_string()
            );
        }
        Ok(())
    }
    /// The rate that it gives now.
    pub fn read(&self) -> Result<Rate, String> {
        self.read_within(TIMEOUT)
    }
    /// The same; a command or a server may take so long.
    fn read_within(&self, timeout: Duration) -> Result<Rate, String> {
        self.rate_in(&self.answer(timeout)?)
    }
    /// What the file, the command or the server says now.
    fn answer(&self, timeout: Duration) -> Result<String, String> {
        if let Some(file) = &self.file {
            let mut text = String::new();
            // A pipe without a writer would block.
            let opened = fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(file);
            let read = opened.and_then(|f| f.take(LONGEST).read_to_string(&mut text));
            return read.map(|_| text).map_err(|e| e.to_string());
        }
        match &self.command {
            Some(command) => run(command, timeout),
            None => get(self.url.as_deref().unwrap_or(""), timeout).map_err(|e| e.to_string()),
        }
    }
    /// The rate in an answer of this source: JSON from a server, else a line.
    pub fn rate_in(&self, answer: &str) -> Result<Rate, String> {
        if self.url.is_none() {
            return self.rate(answer);
        }
        let value: Value = serde_json::from_str(answer).map_err(|e| format!("no JSON: {e}"))?;
        match value.pointer(&self.pointer) {
            Some(Value::Number(number)) => self.rate(&number.to_string()),
            Some(Value::String(text)) => self.rate(text),
            _ => Err(format!("the JSON has no rate at `{}`", self.pointer)),
        }
    }
    /// The rate in the first line of a text.
    fn rate(&self, text: &str) -> Result<Rate, String> {
        let line = text.lines().next().unwrap_or("").trim();
        let text = match line.parse::<f64>() {
            Ok(number) => format!("{}bit/s", number * self.unit),
            Err(_) => line.to_string(),
        };
        LineRate::parse(&text).map(|rate| rate.0)
    }
}

/// What is served at an address. There is no TLS here: modems serve their state in the clear.
fn get(url: &str, timeout: Duration) -> Result<String, ureq::Error> {
    let config = ureq::Agent::config_builder().timeout_global(Some(timeout)).max_redirects(0);
    let agent = ureq::Agent::new_with_config(config.build());
    agent.get(url).call()?.body_mut().with_config().limit(LONGEST).read_to_string()
}

fn run(words: &[String], timeout: Duration) -> Result<String, String> {
    let mut command = Command::new(&words[0]);
    let mut child = command
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|e| e.to_string())?;
    let began = sys::monotonic();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(format!("the command failed: {status}")),
            Ok(None) if sys::monotonic() - began < timeout.as_nanos() as u64 => thread::sleep(Duration::from_millis(5)),
            _ => {
                // With what it has started.
                let _ = Pid::from_raw(child.id() as i32).map(|group| kill_process_group(group, Signal::KILL));
                let _ = child.wait();
                return Err("the command takes too long".to_string());
            }
        }
    }
    // What it has started may keep its output open; one read returns all that it has printed.
    let (mut text, mut length) = (vec![0; PIPE], 0);
    if let Some(mut out) = child.stdout.take() {
        ioctl_fionbio(&out, true).map_err(|e| e.to_string())?;
        length = match out.read(&mut text) {
            Err(e) if e.kind() != ErrorKind::WouldBlock => return Err(e.to_string()),
            read => read.unwrap_or(0),
        };
    }
    text.truncate(length);
    String::from_utf8(text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::patience::{PATIENCE, eventually};

    fn source(more: &str) -> Source {
        toml::from_str(&format!("floor = \"1Mbit/s\"\n{more}")).unwrap()
    }

    #[test]
    fn rates_are_read_from_lines_commands_and_json() {
        let file = std::env::temp_dir().join(format!("explicate-capacity-{}", std::process::id()));
        let from = source(&format!("file = {:?}\nunit = 1000.0", file.display()));
        assert!(from.read_within(PATIENCE).is_err(), "no file");
        for (text, expected) in
            [("20Mbit/s\nmore", Ok(20_000_000)), ("4500\n", Ok(4_500_000)), ("", Err(())), ("-3", Err(()))]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(from.read_within(PATIENCE).map(|rate| rate.0).map_err(drop), expected, "{text}");
        }
        fs::remove_file(&file).unwrap();
        let said = |words: &str| source(&format!("command = {words}")).read_within(PATIENCE);
        assert_eq!(said("[\"echo\", \"3Mbit/s\"]"), Ok(Rate::mbps(3)));
        assert!(said("[\"false\"]").unwrap_err().contains("failed"));
        assert!(said("[\"/no/such/program\"]").is_err());

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers = thread::spawn(move || {
            let chunked = "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"dow\r\n13\r\nn\": {\"rate\": 7.5}} \r\n0\r\n\r\n";
            let plain = ["{\"down\": {\"rate\": 7.5}}", "{}", "nonsense"].map(|body| format!("\r\n{body}"));
            for rest in plain.into_iter().chain([chunked.to_string()]) {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 500]);
                stream.write_all(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{rest}").as_bytes()).unwrap();
            }
        });
        let modem = source(&format!("url = \"http://{address}/status\"\npointer = \"/down/rate\"\nunit = 1e6"));
        assert_eq!(modem.read_within(PATIENCE), Ok(Rate::bps(7_500_000)));
        assert!(modem.read_within(PATIENCE).unwrap_err().contains("no rate at `/down/rate`"));
        assert!(modem.read_within(PATIENCE).unwrap_err().contains("no JSON"));
        assert_eq!(modem.read_within(PATIENCE), Ok(Rate::bps(7_500_000)), "in chunks");
        answers.join().unwrap();
    }

    /// What it says, if it does not block; a command may take `timeout`.
    fn said_by(source: Source, timeout: Duration) -> Option<Result<Rate, String>> {
        let (told, said) = std::sync::mpsc::channel();
        thread::spawn(move || told.send(source.read_within(timeout)));
        said.recv_timeout(2 * PATIENCE).ok()
    }

    #[test]
    fn a_pipe_without_a_writer_has_no_rate() {
        let pipe = std::env::temp_dir().join(format!("explicate-capacity-pipe-{}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let said = said_by(source(&format!("file = {:?}", pipe.display())), PATIENCE);
        fs::remove_file(&pipe).unwrap();
        assert!(matches!(said, Some(Err(_))));
    }

    #[test]
    fn a_command_that_takes_too_long_leaves_no_process() {
        let long = format!("3000.{}", std::process::id());
        let command = source(&format!("command = [\"sh\", \"-c\", \"sleep {long}; echo 1\"]"));
        let said = said_by(command, Duration::from_millis(500));
        assert!(said.is_some_and(|rate| rate.unwrap_err().contains("too long")));
        let left = || {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            let mut lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
            lines.any(|line| line.starts_with(&format!("sleep\0{long}\0")))
        };
        eventually("no process is left", || !left());
    }

    #[test]
    fn what_a_command_leaves_running_delays_no_rate() {
        let note = std::env::temp_dir().join(format!("explicate-capacity-background-{}", std::process::id()));
        let command = format!("sleep 3000 & echo $! >{}; echo 3Mbit/s", note.display());
        let said = said_by(source(&format!("command = [\"sh\", \"-c\", \"{command}\"]")), PATIENCE);
        let left = fs::read_to_string(&note).unwrap();
        fs::remove_file(&note).unwrap();
        assert!(Command::new("kill").arg(left.trim()).status().unwrap().success(), "it runs on");
        assert_eq!(said, Some(Ok(Rate::mbps(3))));
    }

    #[test]
    fn mistakes_are_explained() {
        assert!(source("").check().unwrap_err().contains("one of"));
        assert!(source("file = \"a\"\nurl = \"http://b\"").check().unwrap_err().contains("one of"));
        assert!(source("url = \"https://b\"").check().unwrap_err().contains("http://"));
        assert!(source("command = []").check().unwrap_err().contains("empty"));
        assert!(source("file = \"a\"\nhold = -1.0").check().unwrap_err().contains("hold"));
        assert!(source("file = \"a\"\nmeasured = true").check().unwrap_err().contains("one of"));
        assert_eq!(source("file = \"a\"").check(), Ok(()));
        assert_eq!(source("measured = true").check(), Ok(()));
    }
}
