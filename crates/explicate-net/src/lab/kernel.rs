//! Flows that the kernel's TCP carries, besides ours or in place of them.
//!
//! A group that the user assigns to the kernel keeps its start, size, ends and packet length; its congestion
//! controller is the kernel's, by name. Both ends are threads of their own, in the namespaces of their hosts.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
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
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::sys;

/// TCP port of the first flow.
const PORTS: u16 = 20_000;
/// IP and TCP headers with time stamps, bytes.
const HEADERS: u16 = 52;
/// Interval between two reads of the clock.
const NAP: Duration = Duration::from_millis(2);

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

/// Parses `GROUP=CONTROLLER` and finds the group.
pub(super) fn check(scenario: &Scenario, given: &[(String, String)]) -> Result<()> {
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

    /// The sending end.
    pub(super) fn send(self, stop: &(dyn Fn() -> bool + Sync)) -> Result<HostReport> {
        let end = self.scenario.duration;
        self.clock.wait_for_start();
        while self.clock.now() < self.flow.start && !stop() {
            sleep(NAP);
        }
        let to = SocketAddr::from((self.flow.peer, port(self.id)));
        let kernel_controller = self.kernel_controller;
        let segment = self.scenario.flows[self.flow.group.0].packet.saturating_sub(HEADERS);
        let mut stream = sys::tcp_connect(to, kernel_controller, segment)
            .or_fail(|| format!("connect to {to} with the kernel's `{kernel_controller}` (is that module there?)"))?;
        stream.set_nonblocking(true).or_fail(|| "prepare a socket".to_string())?;
        let mut actions = self.measured().into_iter().peekable();
        let mut report = HostReport::default();
        let (size, mut written, mut completed) = (self.size(), 0u64, Time::NEVER);
        let (mut before, mut finished) = (SenderStats::default(), false);
        let filler = vec![0; 1 << 16];
        while self.clock.now() < end && !stop() {
            let left = size.map_or(u64::MAX, |size| size - written).min(filler.len() as u64) as usize;
            let full = match stream.write(&filler[..left]) {
                Ok(n) => {
                    written += n as u64;
                    left == 0
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => true,
                Err(e) => return Err(Error::Failed(format!("{}: {e}", self.flow.name))),
            };
            if left == 0 && !finished {
                finished = stream.shutdown(std::net::Shutdown::Write).is_ok();
            }
            if finished && completed == Time::NEVER && sys::tcp_info(stream.as_fd()).is_ok_and(|i| i.unacked == 0) {
                completed = self.clock.now();
            }
            while let Some((_, action)) = actions.next_if(|(at, _)| *at <= self.clock.now()) {
                let info = sys::tcp_info(stream.as_fd()).unwrap_or_default();
                match action {
                    Action::Measure => before = stats(&info),
                    Action::Sample => {
                        let at = self.clock.now();
                        let mut put = |variable, value| {
                            report.samples.push(Sample { at, object: self.flow.name.clone(), variable, value });
                        };
                        put("cwnd", info.cwnd as f64);
                        put("rtt_ms", info.rtt_us as f64 / 1e3);
                    }
                }
            }
            if full {
                sleep(NAP);
            }
        }
        let info = sys::tcp_info(stream.as_fd()).unwrap_or_default();
        report.sent.insert(self.id, Sent { stats: (before, stats(&info)), completed, size, sessions: (1, 0) });
        Ok(report)
    }

    /// The receiving end.
    pub(super) fn receive(self, stop: &(dyn Fn() -> bool + Sync)) -> Result<HostReport> {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port(self.id)));
        let listener = TcpListener::bind(address).or_fail(|| format!("listen at {address}"))?;
        listener.set_nonblocking(true).or_fail(|| "prepare a socket".to_string())?;
        let segment = self.scenario.flows[self.flow.group.0].packet.saturating_sub(HEADERS).max(1) as u64;
        let mut stream: Option<TcpStream> = None;
        let mut actions = self.measured().into_iter().peekable();
        let mut report = HostReport::default();
        let (mut payload, mut before, mut sampled) = (0u64, 0u64, 0u64);
        let mut buffer = vec![0; 1 << 16];
        let period = Schedule::new(self.scenario).period();
        while self.clock.now() < self.scenario.duration && !stop() {
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
        let counted = |payload: u64| ReceiverStats {
            payload,
            bytes: payload + payload.div_ceil(segment) * HEADERS as u64,
            ..ReceiverStats::default()
        };
        report.received.insert(self.id, (counted(before), counted(payload)));
        Ok(report)
    }
}

/// The kernel's counters in our form. Its smoothed round-trip time replaces the samples.
fn stats(info: &sys::TcpInfo) -> SenderStats {
    SenderStats {
        sent: info.segments_out as u64,
        retransmissions: info.retransmitted as u64,
        refused: 0,
        timeouts: 0,
        rtt_sum: info.rtt_us as u128 * 1000 * info.segments_out as u128,
        rtt_count: info.segments_out as u64,
        damaged: 0,
    }
}
