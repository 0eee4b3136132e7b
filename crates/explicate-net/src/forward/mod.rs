//! Forwarding between interfaces, for routers and emulated links.
//!
//! A frame that arrives at one interface leaves through another, through its [output](output::Output). A router uses
//! a table of learned addresses, like a bridge; a link uses its other end. One thread works in iterations (turns): it
//! receives all queued frames, runs the ports, sends, and waits for the next frame or departure. Under load turns are
//! spaced in time, like the interrupts of network cards, so that one call and one wake-up serve many frames.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use explicate_core::port::Store;
use explicate_core::units::Time;

use crate::agent::AgentHost;
use crate::clock::{Clock, Stalls, Waiter};
use crate::error::{Context, Result};
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};
use crate::sys::{self, OFFLOAD_LEN, PacketSocket};

mod bytes;
pub mod counters;
mod forwarding_table;
pub mod frame;
pub mod hidden;
pub mod interface;
pub mod made;
pub mod output;
mod pace;
pub mod pool;
mod router_agent;
pub mod scone;

pub use counters::Counters;
use forwarding_table::ForwardingTable;
use frame::{Anomaly, Kind};
pub use interface::{Frames, HELD_BY_FEW, Interface};
use output::Output;
use pace::Pace;
use pool::Pool;
use router_agent::{Disposition, RouterAgent};

/// Maximum number of frames in memory.
const MOST_FRAMES: usize = 1 << 16;
/// Maximum number of consecutive frames from one interface, for fairness to the others.
const MOST_AT_ONCE: usize = 128;

/// The mode of a forwarder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A router: learns addresses, and decrements the TTL of explicit packets.
    Router,
    /// As a router, without changing the TTL.
    Bridge,
    /// Links between pairs of interfaces, the first and the second, the third and the fourth, and so on.
    Link,
}

/// When the next turn begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// At this time. Frames that arrive meanwhile are kept in the rings.
    At(Time),
    /// With the next frame, and at this time at the latest.
    Frame(Time),
}

/// Forwards frames between interfaces.
pub struct Forwarder<S = PacketSocket> {
    /// Its interfaces.
    pub interfaces: Vec<Interface<S>>,
    mode: Mode,
    table: ForwardingTable,
    /// The agent of this node, if its protocol has one.
    agent: Option<RouterAgent>,
    pool: Pool,
    ready: Vec<u32>,
    clock: Clock,
    waiter: Waiter,
    pace: Pace,
    /// The VLAN at the second interface of a link, see [`Forwarder::tag`].
    vlan: Option<u16>,
    /// Where ports share lines: the time up to which all have run.
    in_step: Option<Time>,
    /// Counters since the start.
    pub counters: Counters,
    /// When its thread did not run.
    pub stalls: Stalls,
    /// CPU time of its thread at the start.
    cpu: u64,
}

impl Forwarder {
    /// Forwards until `until`, or until `stop` returns true.
    pub fn run(&mut self, until: Time, stop: &dyn Fn() -> bool) -> Result<()> {
        let mut now = self.clock.now();
        self.stalls.run(Time::ZERO, now);
        while now < until && !stop() {
            let due = match self.go(now, until) {
                Next::At(time) => {
                    self.clock.sleep_until(time);
                    time
                }
                Next::Frame(time) => {
                    self.waiter.wait(&self.interfaces, time).or_fail(|| "wait for packets".to_string())?;
                    self.log_errors();
                    self.stalls.waits(time)
                }
            };
            now = self.clock.now();
            self.stalls.run(due, now);
        }
        Ok(())
    }
    /// Counts and logs errors of interfaces, which also end a wait.
    fn log_errors(&mut self) {
        for (number, interface) in self.interfaces.iter().enumerate() {
            if self.waiter.is_readable(number)
                && !interface.socket.has_frame()
                && let Some(error) = interface.socket.error()
            {
                // An interface that went down may come up again.
                self.counters.errors += 1;
                tracing::warn!(interface = interface.name, %error, "cannot receive");
            }
        }
    }
}

impl<S: Frames> Forwarder<S> {
    /// A forwarder for this thread.
    pub fn new(interfaces: Vec<Interface<S>>, mode: Mode, clock: Clock) -> Result<Forwarder<S>> {
        let waiter = Waiter::new(clock);
        let (table, agent, ready, vlan, in_step, counters, stalls) = Default::default();
        let (pool, pace, cpu) = (Pool::new(MOST_FRAMES), Pace::new(Time::ZERO), sys::thread_cpu());
        Ok(Forwarder {
            interfaces,
            mode,
            table,
            agent,
            pool,
            ready,
            clock,
            waiter,
            pace,
            vlan,
            in_step,
            counters,
            stalls,
            cpu,
        })
    }

    /// Sets the maximum interval between turns under load: it delays frames by at most this time, and saves CPU time.
    pub fn keep_apart(&mut self, most: Time) {
        self.pace = Pace::new(most);
    }
    /// Keeps at most this number of frames in memory.
    #[cfg(feature = "simulated")]
    pub fn hold(&mut self, frames: usize) {
        self.pool = Pool::new(frames);
    }
    /// Adds the tag of this VLAN to frames from the first interface, and removes it from frames of others (IEEE 802.1Q).
    pub fn tag(&mut self, vlan: u16) {
        self.vlan = Some(vlan);
    }
    /// Runs ports in order of time, for those that share lines: each depends on earlier events of the others.
    pub fn keep_in_step(&mut self) {
        self.in_step = Some(Time::ZERO);
    }
    /// Runs ports that share lines up to `now`. Returns the time up to which they have run.
    fn step(&mut self, now: Time) -> Time {
        let Some(until) = self.in_step else { return now };
        let now = now.max(until);
        self.in_step = Some(now);
        while let Some(next) =
            self.interfaces.iter_mut().map(|i| &mut i.output).min_by_key(|o| o.acts()).filter(|o| o.acts() <= now)
        {
            next.catch_up(next.acts(), &mut self.pool);
        }
        now
    }
    /// Sets the interfaces of all addresses; no others are learned.
    pub fn place(&mut self, addresses: BTreeMap<Ipv4Addr, usize>) {
        self.table.place(addresses);
    }

    /// Sets the agent of this node, at a hardware address; it handles data packets before they enter the `watched` outputs.
    pub fn set_agent(&mut self, host: AgentHost, station: [u8; 6], watched: Vec<bool>) {
        self.agent = Some(RouterAgent::new(host, station, watched));
    }

    /// CPU time spent so far, nanoseconds.
    pub fn cpu(&self) -> u64 {
        sys::thread_cpu() - self.cpu
    }

    /// One turn, at `now`, and when to begin the next one; waits end at `until`.
    pub(crate) fn go(&mut self, now: Time, until: Time) -> Next {
        let frames = self.turn(now);
        if let Some(next) = self.pace.next(now, frames) {
            return Next::At(next);
        }
        let now = self.clock.now();
        let ports = self.interfaces.iter().flat_map(Interface::ports);
        let due = ports.map(Output::due).chain(self.agent.iter().map(|v| v.host.due())).min().unwrap_or(Time::NEVER);
        let next = due.min(until);
        if due <= now + self.slack() { Next::At(next) } else { Next::Frame(next) }
    }

    /// How long a frame may stay in its ring: the kernel records its time of arrival, and it leaves after the delay
    /// of its links. So with delays not every frame needs a wake-up.
    fn slack(&self) -> Time {
        if self.agent.is_some() {
            return Time::ZERO;
        }
        let shortest = |delays: &mut dyn Iterator<Item = Time>| delays.min().unwrap_or(Time::ZERO);
        shortest(&mut self.interfaces.iter().map(|i| i.input.as_ref().map_or(Time::ZERO, |o| o.delay)))
            + shortest(&mut self.interfaces.iter().map(|i| i.output.delay))
    }

    /// Runs all ports up to now.
    pub fn catch_up(&mut self) -> Time {
        let now = self.clock.now();
        self.arrive(now);
        let now = self.step(now);
        for Interface { input, output, .. } in &mut self.interfaces {
            input.iter_mut().chain([output]).for_each(|port| port.catch_up(now, &mut self.pool));
        }
        now
    }

    /// One iteration. Returns the larger of the numbers of frames received and sent.
    fn turn(&mut self, mut now: Time) -> usize {
        // All frames that arrived by then are received before later events.
        let known = now;
        self.counters.turns += 1;
        let (mut came, mut went) = (0, 0);
        for from in 0..self.interfaces.len() {
            if self.interfaces[from].socket.has_frame() {
                came += self.receive(now, from);
                now = self.clock.now();
            }
        }
        self.arrive(known);
        self.send_messages(now);
        let known = self.step(known);
        for to in 0..self.interfaces.len() {
            let output = &mut self.interfaces[to].output;
            if output.due() <= known {
                output.run(known, now, &mut self.pool, &mut self.ready);
                went += self.ready.len();
                self.flush(to);
            }
        }
        came.max(went)
    }

    /// Receives frames from an interface. Returns their number.
    fn receive(&mut self, mut now: Time, from: usize) -> usize {
        let ahead = sys::wall_ahead();
        let mut count = 0;
        while count < MOST_AT_ONCE && self.interfaces[from].socket.has_frame() {
            count += 1;
            self.counters.received += 1;
            let socket = &mut self.interfaces[from].socket;
            let Some(handle) = self.pool.blank() else {
                socket.receive(&mut Vec::new());
                self.counters.no_room += 1;
                continue;
            };
            let bytes = self.pool.buffer(handle);
            // The kernel's time of arrival, not that of this call.
            let at = socket.receive(bytes).map_or(now, |at| self.clock.of(at.saturating_sub(ahead)));
            if at > now {
                now = self.clock.now(); // it came while others were read
            }
            let at = at.min(now);
            if bytes.len() < OFFLOAD_LEN + frame::ETHERNET_LEN {
                self.counters.cut += 1;
                self.pool.release(handle);
                continue;
            }
            match self.vlan {
                Some(vlan) if from == 0 => sys::put_tag(bytes, [0x8100, vlan]),
                Some(vlan) => sys::take_tag(bytes, vlan),
                None => {}
            }
            self.pool.read(handle);
            match &mut self.interfaces[from].input {
                Some(input) => drop(input.enqueue(at, handle, &mut self.pool)),
                None => self.route(at, from, handle),
            }
        }
        count
    }

    /// Forwards frames that have left the links that end here by `now`, in order of time, each at its own time of
    /// arrival.
    fn arrive(&mut self, now: Time) {
        loop {
            let inputs = self.interfaces.iter_mut().enumerate().filter_map(|(i, face)| Some((i, face.input.as_mut()?)));
            let Some((from, input)) = inputs.min_by_key(|(_, input)| input.due()).filter(|(_, i)| i.due() <= now)
            else {
                return;
            };
            let due = input.due();
            input.catch_up(due, &mut self.pool);
            while let Some((at, handle)) =
                self.interfaces[from].input.as_mut().and_then(|i| i.arrived(due, &mut self.pool))
            {
                self.route(at, from, handle);
            }
        }
    }

    /// Puts a frame into the outputs of its destination, or drops it.
    fn route(&mut self, at: Time, from: usize, handle: u32) {
        let mut targets = self.destinations(at, from, handle).unwrap_or(0..0).filter(|to| *to != from).peekable();
        if targets.peek().is_none() {
            #[cfg(feature = "simulated")]
            if is_back(Fault::Keeps) {
                return;
            }
            self.pool.release(handle);
        }
        while let Some(to) = targets.next() {
            let copy = if targets.peek().is_none() { Some(handle) } else { self.pool.copy(handle) };
            match copy {
                Some(copy) => self.join(at, to, copy),
                None => self.counters.no_room += 1,
            }
        }
    }

    /// The interfaces of a frame's destination; `None` if it is not forwarded.
    fn destinations(&mut self, now: Time, from: usize, handle: u32) -> Option<Range<usize>> {
        let (bytes, parsed) = self.pool.frame(handle);
        match parsed.anomaly {
            Some(Anomaly::Malformed) => {
                self.counters.malformed += 1;
                return None;
            }
            Some(Anomaly::Merged) => self.counters.merged += 1,
            Some(Anomaly::Hidden(hidden)) => self.counters.hide(hidden),
            None => {}
        }
        match self.agent.as_mut().map_or(Disposition::Forward, |agent| agent.handle_frame(now, from, bytes, parsed)) {
            Disposition::Forward => {}
            Disposition::Consumed => return None,
            Disposition::Reply(answer) => {
                if let Some(answer) = self.pool.take(&answer) {
                    self.interfaces[from].output.enqueue(now, answer, &mut self.pool);
                }
                return None;
            }
        }
        if matches!(parsed.kind, Kind::Explicit { .. }) {
            self.counters.explicit += 1;
            self.counters.tagged += parsed.is_tagged() as u64;
            if self.mode == Mode::Router {
                if parsed.packet.ttl <= 1 {
                    self.counters.expired += 1;
                    return None;
                }
                parsed.packet.ttl -= 1;
            }
        }
        if self.mode == Mode::Link {
            return Some((from ^ 1)..(from ^ 1) + 1);
        }
        self.table.targets(bytes, parsed, from, self.interfaces.len())
    }

    /// Puts a frame into an output.
    fn join(&mut self, now: Time, to: usize, handle: u32) {
        let now = self.step(now);
        let output = &mut self.interfaces[to].output;
        if let Some(agent) = &mut self.agent {
            agent.handle_data(now, to, output, handle, &mut self.pool);
        }
        output.enqueue(now, handle, &mut self.pool);
    }

    /// Sends the agent's messages, through the same queues as other frames.
    fn send_messages(&mut self, now: Time) {
        let Some(agent) = &mut self.agent else { return };
        while let Some((by, bytes)) = agent.poll(now) {
            if let Some(handle) = self.pool.take(&bytes) {
                self.interfaces[by].output.enqueue(now, handle, &mut self.pool);
            }
        }
    }

    /// Sends the frames that are ready at an interface.
    fn flush(&mut self, to: usize) {
        for handle in &self.ready {
            self.pool.finish(*handle);
        }
        let socket = &self.interfaces[to].socket;
        let mut rest = &self.ready[..];
        while !rest.is_empty() {
            let taken = match socket.send(rest.iter().map(|handle| self.pool.bytes(*handle))) {
                Ok(taken) => {
                    self.counters.sent += taken as u64;
                    taken.max(1)
                }
                Err(e) => {
                    self.counters.refused += 1;
                    tracing::debug!(interface = self.interfaces[to].name, error = %e, "cannot send");
                    #[cfg(feature = "simulated")]
                    if is_back(Fault::Uncounted) {
                        break;
                    }
                    1
                }
            };
            rest = &rest[taken..];
        }
        for handle in self.ready.drain(..) {
            self.pool.release(handle);
        }
    }

    /// Adds frames that the system dropped because a ring was full.
    pub fn count_missed(&mut self) {
        for interface in &self.interfaces {
            self.counters.missed += interface.socket.drops();
        }
    }
    /// Frames in memory, and those in ports and delays; the two are equal unless there is a defect.
    pub fn audit(&self) -> (usize, usize) {
        let ports = self.interfaces.iter().flat_map(Interface::ports);
        (self.pool.live(), ports.map(|port| port.held().0 + port.held().1).sum())
    }
}
