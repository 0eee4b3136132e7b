//! Forwarding between interfaces: what a router and an emulated link have in common.
//!
//! Frames that come in by one interface go out by another, through its [`Output`]: at a router by what was learned of who
//! is where, as a bridge does, at a link by the other of its two ends. One thread does it all: it receives what there is, lets
//! the ports do what is due, sends, and waits for the next of both.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use explicate_core::port::Store;
use explicate_core::protocol::Probe;
use explicate_core::units::Time;
use explicate_core::wire::{SackRanges, UDP_PORT, XcpI, flag};

use crate::agent::Speaker;
use crate::clock::{Clock, Waiter};
use crate::error::{Context, Result};
use crate::sys::{self, BATCH, Batch, OFFLOAD_LEN, Outgoing};

pub mod frame;
pub mod output;
pub mod pool;

use frame::{Kind, Odd};
use output::Output;
use pool::Pool;

/// Longest frame that is taken: what an offload may put together, with both headers.
const LONGEST: usize = (1 << 16) + OFFLOAD_LEN + frame::ETHERNET_LEN;
/// Most frames that are held at a time.
const MOST_FRAMES: usize = 1 << 16;
/// Most stations that are remembered.
const MOST_STATIONS: usize = 4096;
/// Calls to one interface in a row, so that the others get their turn.
const ROUNDS: usize = 4;

/// What a forwarder counts.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    /// Frames that came in.
    pub received: u64,
    /// Explicit packets among them.
    pub explicit: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Dropped: to our port with headers that make no sense.
    pub malformed: u64,
    /// Passed on unread: several explicit packets put together by an offload.
    pub merged: u64,
    /// Dropped: their TTL was used up.
    pub expired: u64,
    /// Dropped: longer than any frame.
    pub cut: u64,
    /// Dropped: no room in memory.
    pub no_room: u64,
    /// Dropped: the system did not take them.
    pub refused: u64,
    /// Lost before this program saw them.
    pub missed: u64,
    /// Errors of the system that went by.
    pub errors: u64,
}

/// An interface and what stands before its wire.
pub struct Interface {
    /// Its name.
    pub name: String,
    socket: OwnedFd,
    /// Its output.
    pub output: Output,
    /// A link that ends here, if it is emulated at its end: what comes in passes it first, by its own time.
    pub input: Option<Output>,
}

impl Interface {
    /// Opens an interface of this thread's namespace.
    pub fn open(name: &str, output: Output) -> Result<Interface> {
        let index = sys::interface_index(name).or_fail(|| format!("find the interface `{name}`"))?;
        let socket = sys::packet_socket(index).or_fail(|| format!("open a packet socket on `{name}`"))?;
        Ok(Interface { name: name.to_string(), socket, output, input: None })
    }
}

/// Who forwards how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// A router: learns who is where, and counts the TTL of explicit packets down.
    Router,
    /// Links between pairs of interfaces, the first and the second, the third and the fourth, and so on.
    Link,
}

/// Forwards.
pub struct Forwarder {
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    manner: Manner,
    stations: BTreeMap<[u8; 6], usize>,
    /// Stations may still be learned; else what is for unknown ones is dropped.
    learns: bool,
    /// What speaks for this node, with its hardware address.
    speaker: Option<(Speaker, [u8; 6])>,
    /// Which outputs it looks at packets for.
    watched: Vec<bool>,
    /// How those that it may have to speak to are reached.
    neighbours: BTreeMap<Ipv4Addr, ([u8; 6], usize)>,
    pool: Pool,
    batch: Batch,
    ready: Vec<u32>,
    clock: Clock,
    waiter: Waiter,
    /// What it counted.
    pub counters: Counters,
    /// CPU time of its thread when it began.
    cpu: u64,
}

impl Forwarder {
    /// A forwarder for this thread.
    pub fn new(interfaces: Vec<Interface>, manner: Manner, clock: Clock) -> Result<Forwarder> {
        let waiter = Waiter::new(clock);
        let (stations, ready, counters) = Default::default();
        let (pool, batch) = (Pool::new(MOST_FRAMES), Batch::new(LONGEST));
        let cpu = sys::thread_cpu();
        let (speaker, watched, neighbours) = (None, vec![false; interfaces.len()], BTreeMap::new());
        Ok(Forwarder {
            interfaces,
            manner,
            stations,
            learns: true,
            speaker,
            watched,
            neighbours,
            pool,
            batch,
            ready,
            clock,
            waiter,
            counters,
            cpu,
        })
    }

    /// A station is reached by this interface. Once one was told, no other is learned.
    pub fn place(&mut self, station: [u8; 6], interface: usize) {
        self.stations.insert(station, interface);
        self.learns = false;
    }

    /// `speaker` speaks for this node, and looks at the packets of flows before they join the outputs that are `watched`.
    pub fn speak(&mut self, speaker: Speaker, station: [u8; 6], watched: Vec<bool>) {
        self.speaker = Some((speaker, station));
        self.watched = watched;
    }
    /// Tells the variables of what speaks for this node.
    pub fn probe(&self, put: Probe<'_>) {
        if let Some((speaker, _)) = &self.speaker {
            speaker.probe(put);
        }
    }

    /// CPU time spent so far, nanoseconds.
    pub fn cpu(&self) -> u64 {
        sys::thread_cpu() - self.cpu
    }

    /// Forwards until `until`, or until it is told to stop.
    pub fn run(&mut self, until: Time, stop: &dyn Fn() -> bool) -> Result<()> {
        let patience = self.patience();
        while self.clock.now() < until && !stop() {
            self.turn()?;
            let ends = self.interfaces.iter().flat_map(|i| i.input.iter().chain([&i.output]));
            let due =
                ends.map(Output::due).chain(self.speaker.iter().map(|(s, _)| s.due())).min().unwrap_or(Time::NEVER);
            let sockets: Vec<BorrowedFd<'_>> = self.interfaces.iter().map(|i| i.socket.as_fd()).collect();
            let mut wait = |sockets: &[BorrowedFd<'_>], until: Time| {
                self.waiter.wait(sockets, until).or_fail(|| "wait for packets".to_string())
            };
            if due <= self.clock.now() + patience {
                wait(&[], due.min(until))?;
                wait(&sockets, Time::ZERO)?;
            } else {
                wait(&sockets, due.min(until))?;
            }
        }
        Ok(())
    }

    /// How long a frame may lie in its socket, where the system has noted when it came: it leaves later, delayed as it is by
    /// links. So where delays are no thread is woken for each frame that comes.
    fn patience(&self) -> Time {
        if self.speaker.is_some() {
            return Time::ZERO;
        }
        let shortest = |delays: &mut dyn Iterator<Item = Time>| delays.min().unwrap_or(Time::ZERO);
        shortest(&mut self.interfaces.iter().map(|i| i.input.as_ref().map_or(Time::ZERO, |o| o.delay)))
            + shortest(&mut self.interfaces.iter().map(|i| i.output.delay))
    }

    /// Lets all ports do what they had to do until now.
    pub fn settle(&mut self) -> Time {
        let now = self.clock.now();
        self.arrive(now);
        for end in self.interfaces.iter_mut().flat_map(|i| i.input.iter_mut().chain([&mut i.output])) {
            end.catch_up(now, &mut self.pool);
        }
        now
    }

    fn turn(&mut self) -> Result<()> {
        // All that came until now is received before anything happens later.
        let known = self.clock.now();
        for from in 0..self.interfaces.len() {
            if !self.waiter.is_readable(from) {
                continue;
            }
            for _ in 0..ROUNDS {
                let received = match self.batch.receive(self.interfaces[from].socket.as_fd()) {
                    Ok(n) => n,
                    Err(e) => {
                        // An interface that goes down comes back, or the operator stops us.
                        self.counters.errors += 1;
                        tracing::warn!(interface = self.interfaces[from].name, error = %e, "cannot receive");
                        break;
                    }
                };
                let now = self.clock.now();
                for i in 0..received {
                    self.handle(now, from, i);
                }
                if received < BATCH {
                    break;
                }
            }
        }
        self.arrive(known);
        self.say();
        for to in 0..self.interfaces.len() {
            let interface = &mut self.interfaces[to];
            let now = self.clock.now();
            if interface.output.due() <= known {
                interface.output.run(known, now, &mut self.pool, &mut self.ready);
                self.flush(to);
            }
        }
        Ok(())
    }

    /// A frame of the batch came in.
    fn handle(&mut self, now: Time, from: usize, index: usize) {
        self.counters.received += 1;
        let message = self.batch.message(index);
        if message.cut || message.bytes.len() < OFFLOAD_LEN + frame::ETHERNET_LEN {
            self.counters.cut += 1;
            return;
        }
        // It came when the kernel says, not when this thread had time for it.
        let now = message.at.map_or(now, |at| self.clock.of(at).min(now));
        let bytes = message.bytes;
        let lifted = frame::lift(bytes);
        match lifted.odd {
            Some(Odd::Malformed) => {
                self.counters.malformed += 1;
                return;
            }
            Some(Odd::Merged) => self.counters.merged += 1,
            None => {}
        }
        let Some(handle) = self.pool.take(bytes, &lifted) else {
            self.counters.no_room += 1;
            return;
        };
        match &mut self.interfaces[from].input {
            Some(input) => drop(input.enqueue(now, handle, &mut self.pool)),
            None => self.route(now, from, handle),
        }
    }

    /// What has come over links that end here until `now` goes on, in order of time and each when it came, however late that is
    /// noticed.
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

    /// A frame is here: it joins the outputs that it is for, or is dropped.
    fn route(&mut self, now: Time, from: usize, handle: u32) {
        let targets = self.targets(now, from, handle);
        let mut last = None;
        for target in targets.filter(|t| *t != from) {
            if let Some(before) = last.replace(target) {
                match self.pool.copy(handle) {
                    Some(copy) => self.join(now, before, copy),
                    None => self.counters.no_room += 1,
                }
            }
        }
        match last {
            Some(target) => self.join(now, target, handle),
            None => self.pool.release(handle),
        }
    }

    /// The interfaces that a frame is for, its own perhaps among them; none if it is for this node, or ends here.
    fn targets(&mut self, now: Time, from: usize, handle: u32) -> Range<usize> {
        const NONE: Range<usize> = 0..0;
        let (bytes, packet, kind) = self.pool.parts(handle);
        if let Some((speaker, station)) = &mut self.speaker {
            if kind == Kind::Alien
                && let Some(answer) = frame::answer_arp(bytes, speaker.own, *station)
            {
                if let Some(handle) = self.pool.take(&answer, &frame::lift(&answer)) {
                    self.interfaces[from].output.enqueue(now, handle, &mut self.pool);
                }
                return NONE;
            }
            if matches!(kind, Kind::Explicit { .. }) {
                let (source, destination) = frame::addresses(bytes);
                // Whoever wants an answer is reached the way his packets came.
                let back = (address(bytes, 6), from);
                let named = XcpI::of(packet).map(|fields| fields.last_router.into());
                let message = packet.transport.has(flag::CONTROL);
                for node in named.into_iter().chain(message.then_some(source)) {
                    if self.neighbours.len() < MOST_STATIONS || self.neighbours.contains_key(&node) {
                        self.neighbours.insert(node, back);
                    }
                }
                if message && destination == speaker.own {
                    speaker.handle_control(now, source, packet);
                    return NONE;
                }
            }
        }
        if let Kind::Explicit { .. } = kind {
            self.counters.explicit += 1;
            if self.manner == Manner::Router {
                if packet.ttl <= 1 {
                    self.counters.expired += 1;
                    return NONE;
                }
                packet.ttl -= 1;
            }
        }
        let (to, own): ([u8; 6], [u8; 6]) = (address(bytes, 0), address(bytes, 6));
        let target = match self.manner {
            Manner::Link => Some(from ^ 1),
            Manner::Router => {
                if self.learns
                    && own[0] & 1 == 0
                    && (self.stations.len() < MOST_STATIONS || self.stations.contains_key(&own))
                {
                    self.stations.insert(own, from);
                }
                self.stations.get(&to).copied()
            }
        };
        match target {
            Some(target) => target..target + 1,
            None if self.learns => 0..self.interfaces.len(),
            None => NONE,
        }
    }

    /// A frame joins an output.
    fn join(&mut self, now: Time, target: usize, handle: u32) {
        let output = &mut self.interfaces[target].output;
        if self.watched[target]
            && let Some((speaker, _)) = &mut self.speaker
        {
            output.catch_up(now.max(output.caught_up()), &mut self.pool);
            let (bytes, packet, kind) = self.pool.parts(handle);
            if matches!(kind, Kind::Explicit { writable: true, .. }) && !packet.is_ack() {
                speaker.handle_data(now, packet, frame::addresses(bytes).1, Some(&output.port.view()));
            }
        }
        output.enqueue(now, handle, &mut self.pool);
    }

    /// Sends what this node has to say, through the same queues as all else.
    fn say(&mut self) {
        let Some((speaker, station)) = &mut self.speaker else { return };
        let now = self.clock.now();
        speaker.handle_timeout(now);
        while let Some((to, packet, more)) = speaker.poll(now) {
            let Some(&(there, by)) = self.neighbours.get(&to) else { continue };
            let (stations, addresses) = ((*station, there), (speaker.own.octets(), to.octets()));
            let ports = (UDP_PORT, UDP_PORT);
            let bytes = frame::make(&packet, &SackRanges::NONE, &vec![0; more], stations, addresses, ports);
            if let Some(handle) = self.pool.take(&bytes, &frame::lift(&bytes)) {
                self.interfaces[by].output.enqueue(now, handle, &mut self.pool);
            }
        }
    }

    /// Sends what is ready by an interface.
    fn flush(&mut self, to: usize) {
        for handle in &self.ready {
            self.pool.finish(*handle);
        }
        let socket = self.interfaces[to].socket.as_fd();
        let mut rest = &self.ready[..];
        while !rest.is_empty() {
            let count = rest.len().min(BATCH);
            let mut messages = [Outgoing { bytes: &[], to: None }; BATCH];
            for (message, handle) in messages.iter_mut().zip(rest) {
                message.bytes = self.pool.bytes(*handle);
            }
            let taken = match sys::send(socket, &messages[..count]) {
                Ok(taken) => {
                    self.counters.sent += taken as u64;
                    taken.max(1)
                }
                Err(e) => {
                    self.counters.refused += 1;
                    tracing::debug!(interface = self.interfaces[to].name, error = %e, "cannot send");
                    1
                }
            };
            rest = &rest[taken..];
        }
        for handle in self.ready.drain(..) {
            self.pool.release(handle);
        }
    }

    /// Takes down what the system dropped before this program saw it.
    pub fn count_missed(&mut self) {
        for interface in &self.interfaces {
            self.counters.missed += sys::packet_drops(interface.socket.as_fd());
        }
    }
    /// Frames held in memory, and those that ports and delays account for: unequal only by a defect.
    pub fn audit(&self) -> (usize, usize) {
        let ends = self.interfaces.iter().flat_map(|i| i.input.iter().chain([&i.output]));
        (self.pool.live(), ends.map(|o| o.held().0 + o.held().1).sum())
    }
}

fn address(bytes: &[u8], at: usize) -> [u8; 6] {
    let first = OFFLOAD_LEN + at;
    let mut address = [0; 6];
    address.copy_from_slice(&bytes[first..first + 6]);
    address
}
