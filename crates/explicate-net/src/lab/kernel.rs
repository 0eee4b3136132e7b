//! Flows that the kernel's TCP carries, besides ours or in place of them.
//!
//! A group that the user assigns to the kernel keeps its start, size, ends and packet length; its congestion
//! controller is the kernel's, by name. Both ends are threads of their own, in the namespaces of their hosts.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::Duration;

use explicate_build::flows::draw;
use explicate_core::endpoint::{ReceiverStats, SenderStats};
use explicate_core::rng::Rng;
use explicate_core::units::{Time, per_second};
use explicate_scenario::model::{Scenario, Traffic};

use super::host::{HostReport, LabFlow, Sample, Sent};
use super::schedule::{Action, Schedule};
use super::stall_monitor;
use crate::clock::{Clock, Stalls};
use crate::error::{Context, Error, Result};
use crate::sys;

/// TCP port of the first flow.
const PORTS: u16 = 20_000;
/// IP and TCP headers with time stamps, bytes.
const HEADERS: u16 = 52;
/// Flows have TCP ports of their own.
const MOST_FLOWS: usize = (u16::MAX - PORTS) as usize;
/// Interval between two reads of the clock, and so the error of a completion.
const NAP: Duration = Duration::from_millis(2);
/// What is sent.
static FILLER: [u8; 1 << 16] = [0; 1 << 16];

/// The group, and the kernel's congestion controller.
#[derive(Clone, Copy)]
pub(super) struct Carried<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) flow: &'a LabFlow,
    pub(super) id: usize,
    pub(super) kernel_controller: &'a str,
    pub(super) seed: u64,
    pub(super) clock: Clock,
}

fn port(id: usize) -> u16 {
    PORTS + id as u16
}

/// The socket of a flow's receiving end, in this thread's namespace.
pub(super) fn listen(id: usize) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port(id)));
    let listener = TcpListener::bind(address).or_fail(|| format!("listen at {address}"))?;
    listener.set_nonblocking(true).or_fail(|| "prepare a socket".to_string())?;
    Ok(listener)
}

/// Parses `GROUP=CONTROLLER` and finds the group.
pub(super) fn check(scenario: &Scenario, given: &[(String, String)]) -> Result<()> {
    let flows: usize = scenario.flows.iter().map(|group| group.ends.len()).sum();
    if !given.is_empty() && flows > MOST_FLOWS {
        return Err(Error::Input(format!("--kernel: the kernel carries at most {MOST_FLOWS} flows, not {flows}")));
    }
    for (group, _) in given {
        let Some(found) = scenario.flows.iter().find(|g| g.name == *group) else {
            return Err(Error::Input(format!("--kernel {group}: there is no group of flows with this name")));
        };
        if !matches!(found.traffic, Traffic::Bulk | Traffic::Sized(_)) {
            return Err(Error::Input(format!(
                "--kernel {group}: the kernel sends without limit or a given size, not in periods"
            )));
        }
    }
    Ok(())
}

impl Carried<'_> {
    fn measured(&self) -> Vec<(Time, Action)> {
        let mut schedule = Schedule::new(self.scenario);
        std::iter::from_fn(|| schedule.next()).collect()
    }
    fn size(&self) -> Option<u64> {
        match &self.scenario.flows[self.flow.group.0].traffic {
            Traffic::Sized(size) => {
                Some(draw(size, &mut Rng::stream(self.seed, &format!("{}/traffic", self.flow.name))))
            }
            _ => None,
        }
    }

    fn is_over(&self, stop: &(dyn Fn() -> bool + Sync)) -> bool {
        self.clock.now() >= self.scenario.duration || stop()
    }

    fn stalls(&self) -> Stalls {
        Stalls::within(self.scenario.warmup, self.scenario.duration)
    }

    /// An error if an end of it stood still.
    fn check(&self, end: &str, mut stalls: Stalls) -> Result<()> {
        stalls.run(Time::ZERO, self.clock.now());
        stall_monitor::check(&format!("the {end} end of {}", self.flow.name), &stalls)
    }

    /// The sending end.
    pub(super) fn send(self, stop: &(dyn Fn() -> bool + Sync)) -> Result<HostReport> {
        let mut report = HostReport::default();
        self.clock.wait_for_start();
        let mut stalls = self.stalls();
        while self.clock.now() < self.flow.start {
            stalls.run(Time::ZERO, self.clock.now());
            if self.is_over(stop) {
                return self.check("sending", stalls).map(|()| report);
            }
            sleep(NAP);
        }
        let begun = self.clock.now();
        let mut transfer = self.open()?;
        let mut actions = self.measured().into_iter().skip_while(|(at, _)| *at < begun).peekable();
        let mut before = SenderStats::default();
        while !self.is_over(stop) {
            stalls.run(Time::ZERO, self.clock.now());
            transfer.connect();
            let may_go_on = transfer.advance(self.clock);
            while let Some((_, action)) = actions.next_if(|(at, _)| *at <= self.clock.now()) {
                match action {
                    Action::Measure => before = transfer.stats(),
                    Action::Sample => self.sample(&transfer.info(), &mut report),
                }
            }
            if !may_go_on {
                sleep(NAP);
            }
        }
        self.check("sending", stalls)?;
        let after = transfer.stats();
        report.limited.insert(self.id, transfer.info().limited_us.map(Time::micros));
        // The receiving end closes the connection when the run is over.
        let in_time = |at: &Time| *at < self.scenario.duration;
        let completed = Some(transfer.completed).filter(in_time).unwrap_or(Time::NEVER);
        let failed = transfer.failed.filter(|(at, _)| in_time(at));
        report.failures.extend(failed.map(|(_, why)| format!("{}: {why}", self.flow.name)));
        let sent = Sent { stats: (before, after), completed, size: self.size(), sessions: (1, 0) };
        report.sent.insert(self.id, sent);
        Ok(report)
    }

    fn open(&self) -> Result<Transfer> {
        let to = SocketAddr::from((self.flow.peer, port(self.id)));
        let segment = self.scenario.flows[self.flow.group.0].packet.saturating_sub(HEADERS);
        let controller = self.kernel_controller;
        let stream = sys::tcp_connect(to, controller, segment)
            .or_fail(|| format!("connect to {to} with the kernel's `{controller}` (is that module there?)"))?;
        Ok(Transfer { stream, left: self.size(), is_ended: false, set_up: None, completed: Time::NEVER, failed: None })
    }

    fn sample(&self, info: &sys::TcpInfo, report: &mut HostReport) {
        let at = self.clock.now();
        for (variable, value) in [("cwnd", info.cwnd as f64), ("rtt_ms", info.rtt_us as f64 / 1e3)] {
            report.samples.push(Sample { at, object: self.flow.name.clone(), variable, value });
        }
    }

    /// The receiving end.
    pub(super) fn receive(self, listener: &TcpListener, stop: &(dyn Fn() -> bool + Sync)) -> Result<HostReport> {
        let segment = self.scenario.flows[self.flow.group.0].packet.saturating_sub(HEADERS).max(1) as u64;
        let mut stream: Option<TcpStream> = None;
        let mut actions = self.measured().into_iter().peekable();
        let mut report = HostReport::default();
        let (mut payload, mut before, mut sampled) = (0u64, 0u64, 0u64);
        let mut buffer = vec![0; 1 << 16];
        let period = Schedule::new(self.scenario).period();
        let mut stalls = self.stalls();
        while !self.is_over(stop) {
            stalls.run(Time::ZERO, self.clock.now());
            let mut idle = true;
            match &mut stream {
                None => stream = listener.accept().ok().map(|(s, _)| s).filter(|s| s.set_nonblocking(true).is_ok()),
                Some(s) => {
                    if let Ok(n @ 1..) = s.read(&mut buffer) {
                        payload += n as u64;
                        idle = false;
                    }
                }
            }
            while let Some((_, action)) = actions.next_if(|(at, _)| *at <= self.clock.now()) {
                match action {
                    Action::Measure => before = payload,
                    Action::Sample => {
                        let (at, object) = (self.clock.now(), self.flow.name.clone());
                        let value = 8.0 * per_second(payload - sampled, period);
                        report.samples.push(Sample { at, object, variable: "goodput_bps", value });
                        sampled = payload;
                    }
                }
            }
            if idle {
                sleep(NAP);
            }
        }
        self.check("receiving", stalls)?;
        let counted = |payload: u64| ReceiverStats {
            payload,
            bytes: payload + payload.div_ceil(segment) * HEADERS as u64,
            ..ReceiverStats::default()
        };
        report.received.insert(self.id, (counted(before), counted(payload)));
        Ok(report)
    }
}

/// What a connection of the kernel still has to do.
struct Transfer {
    /// Not blocking; may still connect.
    stream: TcpStream,
    /// Bytes that were not written yet; nothing if there is no end.
    left: Option<u64>,
    /// All was written, and the end of the data was announced: nothing may be written any more.
    is_ended: bool,
    /// State of the connection when it was established, which counts what set it up.
    set_up: Option<sys::TcpInfo>,
    /// When the last byte was acknowledged.
    completed: Time,
    /// When and why the connection was lost.
    failed: Option<(Time, std::io::Error)>,
}

impl Transfer {
    fn info(&self) -> sys::TcpInfo {
        sys::tcp_info(self.stream.as_fd()).unwrap_or_default()
    }

    /// Notes when the connection is established.
    fn connect(&mut self) {
        if self.set_up.is_none() {
            self.set_up = Some(self.info()).filter(|info| !info.is_connecting);
        }
    }

    /// The kernel's counters in our form, without SYNs sent again. Its smoothed round-trip time replaces the samples.
    fn stats(&self) -> SenderStats {
        let info = self.info();
        let set_up = self.set_up.unwrap_or(info);
        SenderStats {
            sent: info.segments_out as u64,
            retransmissions: info.retransmitted.saturating_sub(set_up.retransmitted) as u64,
            refused: 0,
            timeouts: info.timeouts.saturating_sub(set_up.timeouts) as u32,
            rtt_sum: info.rtt_us as u128 * 1000 * info.segments_out as u128,
            rtt_count: info.segments_out as u64,
            damaged: 0,
            ignored_echoes: 0,
        }
    }

    /// Does what is possible now; returns whether there may be more.
    fn advance(&mut self, clock: Clock) -> bool {
        if self.failed.is_some() || self.completed != Time::NEVER {
            return false;
        }
        if self.is_ended {
            let info = self.info();
            self.failed = self.stream.take_error().ok().flatten().map(|why| (clock.now(), why));
            if self.failed.is_none() && info.unacked == 0 && info.unsent == 0 {
                self.completed = clock.now();
            }
            return false;
        }
        let done = if self.left == Some(0) { self.stream.shutdown(Shutdown::Write).map(|()| 0) } else { self.write() };
        match done {
            Ok(written) => {
                self.is_ended = self.left == Some(0);
                self.left = self.left.map(|left| left - written);
                true
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => false,
            Err(e) => {
                self.failed = Some((clock.now(), e));
                false
            }
        }
    }

    fn write(&mut self) -> std::io::Result<u64> {
        let most = self.left.map_or(FILLER.len(), |left| left.min(FILLER.len() as u64) as usize);
        self.stream.write(&FILLER[..most]).map(|written| written as u64)
    }
}
