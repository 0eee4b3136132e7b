//! The rate of the line, from a source that knows it: a file, a command, or a value that a modem serves as JSON; or measured by
//! [`trains`](super::trains) of the port's own datagrams.
//!
//! A thread reads the source. A source that fails leaves the last rate in force for `hold` seconds, then the floor; both are logged
//! once, and shown by `status`.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use explicate_core::units::Rate;
use serde::Deserialize;
use serde_json::Value;

use super::port::Port;
use crate::error::{Context, Result};
use crate::sys;

/// How often a file is read: a change is in effect within twice that.
const FILE_INTERVAL: f64 = 0.01;
/// How long a command or a server may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Longest text of a source, bytes.
const LONGEST: u64 = 1 << 20;

/// Rates of lines.
const SLOWEST: Rate = Rate(8_000);
const FASTEST: Rate = Rate(100_000_000_000);

/// A rate, as in `"20Mbit/s"`.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(try_from = "String")]
pub struct LineRate(pub Rate);

impl TryFrom<String> for LineRate {
    type Error = String;
    fn try_from(text: String) -> std::result::Result<LineRate, String> {
        let rate = explicate_scenario::rate(&text)?;
        let carried = SLOWEST..=FASTEST;
        carried.contains(&rate).then_some(LineRate(rate)).ok_or_else(|| {
            format!(
                "`{text}` is no rate of a line: those are from {} kbit/s to {} Gbit/s",
                SLOWEST.0 / 1000,
                FASTEST.0 / 1_000_000_000
            )
        })
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
    pub fn check(&self) -> std::result::Result<(), String> {
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
    fn read(&self) -> std::result::Result<Rate, String> {
        self.rate_in(&self.answer()?)
    }
    /// What the file, the command or the server says now.
    fn answer(&self) -> std::result::Result<String, String> {
        if let Some(file) = &self.file {
            let mut text = String::new();
            let read = fs::File::open(file).and_then(|f| f.take(LONGEST).read_to_string(&mut text));
            return read.map(|_| text).map_err(|e| e.to_string());
        }
        match &self.command {
            Some(command) => run(command),
            None => get(self.url.as_deref().unwrap_or("")).map_err(|e| e.to_string()),
        }
    }
    /// The rate in an answer of this source: JSON from a server, else a line.
    pub fn rate_in(&self, answer: &str) -> std::result::Result<Rate, String> {
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
    fn rate(&self, text: &str) -> std::result::Result<Rate, String> {
        let line = text.lines().next().unwrap_or("").trim();
        let text = match line.parse::<f64>() {
            Ok(number) => format!("{}bit/s", number * self.unit),
            Err(_) => line.to_string(),
        };
        LineRate::try_from(text).map(|rate| rate.0)
    }
}

/// What is served at an address. There is no TLS here: modems serve their state in the clear.
fn get(url: &str) -> std::result::Result<String, ureq::Error> {
    let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).max_redirects(0);
    let agent = ureq::Agent::new_with_config(config.build());
    agent.get(url).call()?.body_mut().with_config().limit(LONGEST).read_to_string()
}

fn run(words: &[String]) -> std::result::Result<String, String> {
    let mut command = Command::new(&words[0]);
    let mut child = command
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let began = sys::monotonic();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => break,
            Ok(Some(status)) => return Err(format!("the command failed: {status}")),
            Ok(None) if sys::monotonic() - began < TIMEOUT.as_nanos() as u64 => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("the command takes too long".to_string());
            }
        }
    }
    let mut text = String::new();
    let stdout = child.stdout.take().map(|out| out.take(LONGEST).read_to_string(&mut text));
    stdout.transpose().map(|_| text).map_err(|e| e.to_string())
}

/// What the source said last.
#[derive(Clone, Default, Debug)]
pub struct State {
    /// Why it fails now.
    pub failure: Option<String>,
    /// The floor is in force.
    pub at_floor: bool,
}

/// The source of a port's rate, and its state.
pub struct Capacity {
    port: Arc<Port>,
    /// The source, and the rate that it has said.
    source: Mutex<(Option<Source>, Option<Rate>)>,
    state: Mutex<State>,
}

impl Capacity {
    /// Sets the rate of a port, in a thread, from the source that [`Capacity::use_source`] names.
    pub fn follow(port: Arc<Port>) -> Result<Arc<Capacity>> {
        let capacity = Arc::new(Capacity { port, source: Mutex::default(), state: Mutex::default() });
        let follows = capacity.clone();
        let run = move || {
            let mut good_at = sys::monotonic();
            loop {
                thread::sleep(Duration::from_secs_f64(follows.once(&mut good_at)));
            }
        };
        thread::Builder::new().name("capacity".to_string()).spawn(run).or_fail(|| "start a thread".to_string())?;
        Ok(capacity)
    }
    /// Follows this source from now on; without one the rate is `fixed`.
    pub fn use_source(&self, source: Option<Source>, fixed: Rate) {
        if source.is_none() {
            self.port.set_rate(fixed);
        }
        self.port.measure(source.as_ref().filter(|source| source.measured).map(|source| source.floor.0));
        *self.source() = (source, None);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
    }
    /// Its state, if there is a source.
    pub fn state(&self) -> Option<State> {
        self.source().0.as_ref()?;
        Some(self.state.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
    fn source(&self) -> MutexGuard<'_, (Option<Source>, Option<Rate>)> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the source once; the seconds until the next time.
    fn once(&self, good_at: &mut u64) -> f64 {
        let Some(source) = self.source().0.clone() else { return FILE_INTERVAL };
        let measured = || self.port.measured().ok_or_else(|| "no peer returns the marks of trains".to_string());
        let read = if source.measured { measured() } else { source.read() };
        let mut current = self.source();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(rate) => {
                if state.failure.take().is_some() {
                    tracing::info!(rate_bps = rate.0, "the source of the capacity answers again");
                }
                (*good_at, state.at_floor) = (sys::monotonic(), false);
                // The port has set what it measured.
                if !source.measured && current.1 != Some(rate) {
                    tracing::info!(rate_bps = rate.0, "capacity");
                    self.port.set_rate(rate);
                    current.1 = Some(rate);
                }
            }
            Err(reason) => {
                if state.failure.is_none() {
                    tracing::warn!(reason, "the source of the capacity fails; the last rate stays in force");
                }
                state.failure = Some(reason);
                if !state.at_floor && (sys::monotonic() - *good_at) as f64 / 1e9 >= source.hold {
                    tracing::warn!(floor_bps = source.floor.0.0, "the source still fails; the floor is in force");
                    self.port.set_rate(source.floor.0);
                    (current.1, state.at_floor) = (None, true);
                }
            }
        }
        if source.file.is_some() || source.measured { FILE_INTERVAL } else { source.interval }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn source(more: &str) -> Source {
        toml::from_str(&format!("floor = \"1Mbit/s\"\n{more}")).unwrap()
    }

    #[test]
    fn rates_are_read_from_lines_commands_and_json() {
        let file = std::env::temp_dir().join(format!("explicate-capacity-{}", std::process::id()));
        let from = source(&format!("file = {:?}\nunit = 1000.0", file.display()));
        assert!(from.read().is_err(), "no file");
        for (text, expected) in
            [("20Mbit/s\nmore", Ok(20_000_000)), ("4500\n", Ok(4_500_000)), ("", Err(())), ("-3", Err(()))]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(from.read().map(|rate| rate.0).map_err(drop), expected, "{text}");
        }
        fs::remove_file(&file).unwrap();
        let said = |words: &str| source(&format!("command = {words}")).read();
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
        assert_eq!(modem.read(), Ok(Rate::bps(7_500_000)));
        assert!(modem.read().unwrap_err().contains("no rate at `/down/rate`"));
        assert!(modem.read().unwrap_err().contains("no JSON"));
        assert_eq!(modem.read(), Ok(Rate::bps(7_500_000)), "in chunks");
        answers.join().unwrap();
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
