//! Forwarding between interfaces: what a router and an emulated link have in common.
//!
//! Frames that come in by one interface go out by another, through its [output](output::Output): at a router by what was learned of who
//! is where, as a bridge does, at a link by the other of its two ends. One thread does it all in turns: it receives what there is,
//! lets the ports do what is due, sends, and waits for the next of both. While there is always something to do, turns keep a
//! distance from each other, as interface cards do with interrupts, so that one call and one wake-up serve many frames.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use explicate_core::api::Probe;
use explicate_core::port::Store;
use explicate_core::units::Time;

use crate::agent::Speaker;
use crate::clock::{Clock, Waiter};
use crate::error::{Context, Result};
use crate::sys::{self, OFFLOAD_LEN};

pub mod counters;
pub mod frame;
pub mod hidden;
pub mod interface;
pub mod made;
pub mod output;
mod pace;
pub mod pool;
mod stations;
mod voice;

pub use counters::Counters;
use frame::{Kind, Odd};
pub use interface::{HELD_BY_FEW, Interface};
use output::Output;
use pace::Pace;
use pool::Pool;
use stations::Stations;
use voice::{Heard, Voice};

/// Most frames that are held at a time.
const MOST_FRAMES: usize = 1 << 16;
/// Most frames from one interface in a row, so that the others get their turn.
const MOST_AT_ONCE: usize = 128;

/// Who forwards how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// A router: learns who is where, and counts the TTL of explicit packets down.
    Router,
    /// The same, but leaves the TTL as it is.
    Bridge,
    /// Links between pairs of interfaces, the first and the second, the third and the fourth, and so on.
    Link,
}

/// Forwards.
pub struct Forwarder {
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    manner: Manner,
    stations: Stations,
    /// What speaks for this node.
    voice: Option<Voice>,
    pool: Pool,
    ready: Vec<u32>,
    clock: Clock,
    waiter: Waiter,
    pace: Pace,
    /// The VLAN between the second interface of a link and whoever is there, see [`Forwarder::tag`].
    vlan: Option<u16>,
    /// Where ports share lines: until when all have done what they had to do.
    in_step: Option<Time>,
    /// What it counted.
    pub counters: Counters,
    /// CPU time of its thread when it began.
    cpu: u64,
}

impl Forwarder {
    /// A forwarder for this thread.
    pub fn new(interfaces: Vec<Interface>, manner: Manner, clock: Clock) -> Result<Forwarder> {
        let waiter = Waiter::new(clock);
        let (stations, voice, ready, vlan, in_step, counters) = Default::default();
        let (pool, pace, cpu) = (Pool::new(MOST_FRAMES), Pace::new(Time::ZERO), sys::thread_cpu());
        Ok(Forwarder {
            interfaces,
            manner,
            stations,
            voice,
            pool,
            ready,
            clock,
            waiter,
            pace,
            vlan,
            in_step,
            counters,
            cpu,
        })
    }

    /// Turns are so far apart at most while there is something to do in each: frames are handed on later by up to that, and cost less.
    pub fn keep_apart(&mut self, most: Time) {
        self.pace = Pace::new(most);
    }
    /// What comes in by the first interface gets the tag of this VLAN, and what comes by another loses it (IEEE 802.1Q).
    pub fn tag(&mut self, vlan: u16) {
        self.vlan = Some(vlan);
    }
    /// Some ports share lines: what all do is done in order of time, for each depends on what others did before.
    pub fn keep_in_step(&mut self) {
        self.in_step = Some(Time::ZERO);
    }
    /// Lets ports that share lines do what they had to do until `now`; until when they have.
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
    /// Addresses are reached by these interfaces from now on, and no others are learned.
    pub fn place(&mut self, addresses: BTreeMap<Ipv4Addr, usize>) {
        self.stations.place(addresses);
    }

    /// `speaker` speaks for this node, and looks at the packets of flows before they join the outputs that are `watched`.
    pub fn speak(&mut self, speaker: Speaker, station: [u8; 6], watched: Vec<bool>) {
        self.voice = Some(Voice::new(speaker, station, watched));
    }
    /// Tells the variables of what speaks for this node.
    pub fn probe(&self, put: Probe<'_>) {
        if let Some(voice) = &self.voice {
            voice.speaker.probe(put);
        }
    }

    /// CPU time spent so far, nanoseconds.
    pub fn cpu(&self) -> u64 {
        sys::thread_cpu() - self.cpu
    }

    /// Forwards until `until`, or until it is told to stop.
    pub fn run(&mut self, until: Time, stop: &dyn Fn() -> bool) -> Result<()> {
        let patience = self.patience();
        let mut now = self.clock.now();
        while now < until && !stop() {
            let frames = self.turn(now);
            if let Some(next) = self.pace.next(now, frames) {
                // Whatever comes in the meantime, comes to the rings.
                self.clock.sleep_until(next);
                now = self.clock.now();
                continue;
            }
            now = self.clock.now();
            let ports = self.interfaces.iter().flat_map(Interface::ports);
            let due =
                ports.map(Output::due).chain(self.voice.iter().map(|v| v.speaker.due())).min().unwrap_or(Time::NEVER);
            if due <= now + patience {
                self.clock.sleep_until(due.min(until));
                now = self.clock.now();
                continue;
            }
            self.waiter.wait(&self.interfaces, due.min(until)).or_fail(|| "wait for packets".to_string())?;
            self.heed_errors();
            now = self.clock.now();
        }
        Ok(())
    }
    /// What woke this thread may be an interface's error.
    fn heed_errors(&mut self) {
        for (number, interface) in self.interfaces.iter().enumerate() {
            if self.waiter.is_readable(number)
                && !interface.socket.has_frame()
                && let Some(error) = interface.socket.error()
            {
                // An interface that goes down comes back, or the operator stops us.
                self.counters.errors += 1;
                tracing::warn!(interface = interface.name, %error, "cannot receive");
            }
        }
    }

    /// How long a frame may lie in its ring, where the system has noted when it came: it leaves later, delayed as it is by
    /// links. So where delays are no thread is woken for each frame that comes.
    fn patience(&self) -> Time {
        if self.voice.is_some() {
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
        let now = self.step(now);
        for Interface { input, output, .. } in &mut self.interfaces {
            input.iter_mut().chain([output]).for_each(|port| port.catch_up(now, &mut self.pool));
        }
        now
    }

    /// Does what there is to do; how many frames came or went, whichever were more.
    fn turn(&mut self, mut now: Time) -> usize {
        // All that came until then is received before anything happens later.
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
        self.say(now);
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

    /// Takes in what came by an interface; how many frames.
    fn receive(&mut self, now: Time, from: usize) -> usize {
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
            // It came when the kernel says, not when this thread had time for it.
            let at = socket.receive(bytes).map_or(now, |at| self.clock.of(at.saturating_sub(ahead)).min(now));
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
    fn route(&mut self, at: Time, from: usize, handle: u32) {
        let mut targets = self.sort(at, from, handle).unwrap_or(0..0).filter(|to| *to != from).peekable();
        if targets.peek().is_none() {
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

    /// Which interfaces a frame is for that came in; none if it goes no further.
    fn sort(&mut self, now: Time, from: usize, handle: u32) -> Option<Range<usize>> {
        let (bytes, lifted) = self.pool.frame(handle);
        match lifted.odd {
            Some(Odd::Malformed) => {
                self.counters.malformed += 1;
                return None;
            }
            Some(Odd::Merged) => self.counters.merged += 1,
            Some(Odd::Hidden(hidden)) => self.counters.hide(hidden),
            None => {}
        }
        match self.voice.as_mut().map_or(Heard::Other, |voice| voice.hear(now, from, bytes, lifted)) {
            Heard::Other => {}
            Heard::Taken => return None,
            Heard::Answer(answer) => {
                if let Some(answer) = self.pool.take(&answer) {
                    self.interfaces[from].output.enqueue(now, answer, &mut self.pool);
                }
                return None;
            }
        }
        if matches!(lifted.kind, Kind::Explicit { .. }) {
            self.counters.explicit += 1;
            self.counters.tagged += lifted.is_tagged() as u64;
            if self.manner == Manner::Router {
                if lifted.packet.ttl <= 1 {
                    self.counters.expired += 1;
                    return None;
                }
                lifted.packet.ttl -= 1;
            }
        }
        if self.manner == Manner::Link {
            return Some((from ^ 1)..(from ^ 1) + 1);
        }
        self.stations.targets(bytes, lifted, from, self.interfaces.len())
    }

    /// A frame joins an output.
    fn join(&mut self, now: Time, to: usize, handle: u32) {
        let now = self.step(now);
        let output = &mut self.interfaces[to].output;
        if let Some(voice) = &mut self.voice {
            voice.look(now, to, output, handle, &mut self.pool);
        }
        output.enqueue(now, handle, &mut self.pool);
    }

    /// Sends what this node has to say, through the same queues as all else.
    fn say(&mut self, now: Time) {
        let Some(voice) = &mut self.voice else { return };
        while let Some((by, bytes)) = voice.say(now) {
            if let Some(handle) = self.pool.take(&bytes) {
                self.interfaces[by].output.enqueue(now, handle, &mut self.pool);
            }
        }
    }

    /// Sends what is ready by an interface.
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
            self.counters.missed += interface.socket.drops();
        }
    }
    /// Frames held in memory, and those that ports and delays account for: unequal only by a defect.
    pub fn audit(&self) -> (usize, usize) {
        let ports = self.interfaces.iter().flat_map(Interface::ports);
        (self.pool.live(), ports.map(|port| port.held().0 + port.held().1).sum())
    }
}
