//! The receiving end of flows: the core's [`Sink`] for each, and where its payload goes.
//!
//! What strangers can make it do is bounded: so many flows, so many bytes that wait for those before them, and an end of
//! which nothing is heard is forgotten. A packet that finds no room is dropped before the core sees it, as if lost.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::PathBuf;

use explicate_core::datagram::Read;
use explicate_core::flow::{FlowInit, PARAMS};
use explicate_core::params::Values;
use explicate_core::presets::DEFAULT_FALLBACK;
use explicate_core::registry;
use explicate_core::sink::Sink;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};

use super::content::Stock;
use super::hello::{Content, Hello};
use super::message::{Message, Verdict};
use super::outbox::Outbox;

/// What a receiver allows.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Where files go; without it none is taken.
    pub folder: Option<PathBuf>,
    /// Most flows at a time.
    pub flows: usize,
    /// Most bytes that wait for those before them, all flows together.
    pub waiting: usize,
    /// Segments that a flow may be ahead of what has arrived in order.
    pub window: u32,
    /// A flow of which nothing is heard for so long is forgotten.
    pub idle: Time,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { folder: None, flows: 1024, waiting: 256 << 20, window: 1 << 16, idle: Time::secs(30) }
    }
}

/// The receiving end of a flow.
pub struct Receiving {
    /// The core's end.
    pub sink: Sink,
    /// What is sent, as its sender says.
    pub hello: Hello,
    stock: Stock,
    heard: Time,
    /// When it came up.
    pub since: Time,
    /// Its congestion echo: packets that arrived marked.
    pub marked: u64,
}

/// Who sends which flow.
pub type Key = (SocketAddrV4, u32);

/// How a flow ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Who sent it.
    pub key: Key,
    /// Bytes of payload in order.
    pub payload: u64,
    /// From its first packet to its last.
    pub lasted: Time,
    /// The file, if it is one, and what was said of it; nothing was if it was given up.
    pub file: Option<(PathBuf, Option<Verdict>)>,
}

/// What a receiver counts.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    /// Packets that fit no flow.
    pub strays: u64,
    /// Packets whose payload is not what their headers or their flow say.
    pub misfits: u64,
    /// Packets dropped for want of room.
    pub no_room: u64,
    /// Flows refused: too many, or their greeting makes no sense.
    pub refused: u64,
}

/// All receiving ends of a socket.
pub struct Receivers {
    limits: Limits,
    /// The flows.
    pub flows: BTreeMap<Key, Receiving>,
    waiting: usize,
    /// When the earliest held-back acknowledgement is due.
    held: Time,
    checked: Time,
    /// When the next may be answered of whom nothing is known.
    tells: Time,
    /// What it counted.
    pub counters: Counters,
    /// Flows that ended since somebody looked.
    pub ended: Vec<Ended>,
}

impl Receivers {
    /// None yet.
    pub fn new(limits: Limits) -> Receivers {
        let (flows, counters, ended) = Default::default();
        let (checked, tells) = (Time::ZERO, Time::ZERO);
        Receivers { limits, flows, waiting: 0, held: Time::NEVER, checked, tells, counters, ended }
    }

    /// A packet that is no acknowledgement arrived.
    pub fn handle_packet(&mut self, now: Time, from: SocketAddrV4, read: &Read, payload: &[u8], out: &mut Outbox) {
        let header = &read.packet.transport;
        let key = (from, header.flow());
        let syn = header.has(flag::SYN);
        let known = self.flows.contains_key(&key) || syn && self.open(now, key, payload, out);
        if !known {
            return self.stray(now, key, syn, out);
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.heard = now;
        if !syn {
            let (segment, last) = (header.segment(), header.has(flag::FIN));
            if payload.len() != header.payload() as usize || !flow.stock.fits(segment, payload.len(), last) {
                self.counters.misfits += 1;
                return;
            }
            let keeps = flow.stock.would_keep(segment, payload.len());
            if self.waiting + keeps > self.limits.waiting {
                self.counters.no_room += 1;
                return;
            }
            // The core's end passes over what is too far ahead, and so does this.
            if segment.checked_sub(flow.sink.expected()).is_none_or(|ahead| ahead < self.limits.window) {
                self.waiting = self.waiting.saturating_add_signed(-flow.stock.take(segment, payload, last));
            }
            flow.marked += (read.packet.tos & 3 == 3) as u64;
        }
        flow.sink.handle_packet(now, &read.packet);
        flow.answer(now, from, out);
        self.held = self.held.min(flow.sink.poll_timeout());
    }

    /// Someone asks how a flow went.
    pub fn handle_message(&mut self, now: Time, from: SocketAddrV4, message: Message, out: &mut Outbox) {
        let Message::Question(id, digest) = message else { return };
        let key = (from, id);
        let Some(flow) = self.flows.get_mut(&key) else { return self.stray(now, key, false, out) };
        flow.heard = now;
        let first = flow.stock.verdict().is_none();
        let verdict = flow.stock.conclude(digest);
        let payload = flow.sink.stats().payload;
        out.push(from, &Message::Answer(id, verdict, payload).to_packet(), &SackRanges::NONE, |_| 0);
        if first && verdict != Verdict::Missing {
            self.ended.push(flow.ended(key, now));
        }
    }

    /// Begins a flow; false if it is refused. Whoever sends a file that cannot be kept is told so.
    fn open(&mut self, now: Time, key: Key, greeting: &[u8], out: &mut Outbox) -> bool {
        let hello = Hello::parse(greeting).filter(|_| self.flows.len() < self.limits.flows);
        let brings_file = hello.as_ref().is_some_and(|hello| hello.content != Content::Nothing);
        let made = hello.and_then(|hello| {
            let stock = match (&hello.content, &self.limits.folder) {
                (Content::Nothing, _) => Stock::nothing(),
                (Content::File { name, size }, Some(folder)) => Stock::file(folder, name, *size, key.1)
                    .inspect_err(|error| tracing::error!(folder = %folder.display(), %error, "cannot make a file"))
                    .ok()?,
                (Content::File { .. }, None) => return None,
            };
            let sink = sink(key.1, &hello, self.limits.window)?;
            Some(Receiving { sink, hello, stock, heard: now, since: now, marked: 0 })
        });
        match made {
            Some(flow) => {
                tracing::info!(peer = %key.0, flow = key.1, protocol = flow.hello.protocol, "a flow begins");
                self.flows.insert(key, flow);
                true
            }
            None => {
                self.counters.refused += 1;
                if brings_file && self.may_tell(now) {
                    let answer = Message::Answer(key.1, Verdict::NotWritten, 0);
                    out.push(key.0, &answer.to_packet(), &SackRanges::NONE, |_| 0);
                }
                false
            }
        }
    }

    /// Whether it is time to answer someone unknown again.
    fn may_tell(&mut self, now: Time) -> bool {
        let may = now >= self.tells;
        if may {
            self.tells = now + Time::millis(10);
        }
        may
    }

    /// A packet of a flow that is not known: says so, now and then.
    fn stray(&mut self, now: Time, key: Key, syn: bool, out: &mut Outbox) {
        self.counters.strays += 1;
        if !syn && self.may_tell(now) {
            out.push(key.0, &Message::Unknown(key.1).to_packet(), &SackRanges::NONE, |_| 0);
        }
    }

    /// Lets held-back acknowledgements go, and forgets who fell silent.
    pub fn handle_timeout(&mut self, now: Time, out: &mut Outbox) {
        if self.held <= now {
            self.held = Time::NEVER;
            for (key, flow) in &mut self.flows {
                if flow.sink.poll_timeout() <= now {
                    flow.sink.handle_timeout(now);
                    flow.answer(now, key.0, out);
                }
                self.held = self.held.min(flow.sink.poll_timeout());
            }
        }
        if now.since(self.checked) < Time::secs(1) {
            return;
        }
        self.checked = now;
        let idle = self.limits.idle;
        let silent: Vec<Key> = self.flows.iter().filter(|(_, f)| now.since(f.heard) > idle).map(|(k, _)| *k).collect();
        for key in silent {
            let Some(flow) = self.flows.remove(&key) else { continue };
            self.waiting -= flow.stock.waiting();
            if flow.stock.verdict().is_none() {
                self.ended.push(flow.ended(key, flow.heard));
            }
        }
    }
    /// When something is due.
    pub fn due(&self) -> Time {
        self.held
    }
    /// Everything that is under way ends now, as given up.
    pub fn give_up(&mut self) {
        for (key, flow) in std::mem::take(&mut self.flows) {
            if flow.stock.verdict().is_none() {
                self.ended.push(flow.ended(key, flow.heard));
            }
        }
    }
}

impl Receiving {
    fn answer(&mut self, now: Time, to: SocketAddrV4, out: &mut Outbox) {
        let (mut packet, mut sack) = (Packet::EMPTY, SackRanges::NONE);
        if self.sink.poll_transmit(now, &mut packet, &mut sack) {
            out.push(to, &packet, &sack, |_| 0);
        }
    }
    fn ended(&self, key: Key, now: Time) -> Ended {
        let file = self.stock.path().map(|path| (path.to_path_buf(), self.stock.verdict()));
        Ended { key, payload: self.sink.stats().payload, lasted: now.since(self.since), file }
    }
}

/// The core's receiving end for a greeting. A protocol that is not known here is received as plain TCP is, and its sender falls
/// back.
fn sink(id: u32, hello: &Hello, window: u32) -> Option<Sink> {
    let mut values = Values::default();
    let mut set = |name: &str, value: f64| {
        if let Some(param) = PARAMS.iter().find(|p| p.name == name) {
            values.set(param, value);
        }
    };
    set("receiver_window", hello.window.map_or(window, |asked| asked.min(window)) as f64);
    set("quick_acks", hello.quick_acks as f64);
    set("refuse_explicit", hello.refuse_explicit as u32 as f64);
    set("ack_every", hello.ack_every as f64);
    set("ack_delay", hello.ack_delay_us as f64 * 1e-6);
    let fallback = registry::resolve(DEFAULT_FALLBACK).ok()?;
    let resolved = registry::resolve(&hello.protocol).unwrap_or_else(|_| {
        set("refuse_explicit", 1.0);
        fallback
    });
    let init = FlowInit {
        id,
        protocol: resolved.protocol,
        fallback: fallback.protocol,
        recovery: resolved.recovery,
        values: &values,
        packet: hello.packet,
        interface: Rate::mbps(1000),
    };
    Some(Sink::new(&init))
}
