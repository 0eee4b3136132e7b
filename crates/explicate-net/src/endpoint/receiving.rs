//! The receiving end of flows: the core's [`Sink`] for each, and where its payload goes.
//!
//! Nothing is kept of whoever has not shown a cookie and, where there is a key, its code ([`super::gate`]). What others can make it
//! do is bounded: so many flows, so many of one address, so much memory for what waits for those before it, and an end of which
//! nothing is heard is forgotten. A packet that finds no room is dropped before the core sees it, as if lost.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use explicate_core::datagram::Read;
use explicate_core::flow::{FlowInit, PARAMS};
use explicate_core::params::Values;
use explicate_core::presets::DEFAULT_FALLBACK;
use explicate_core::registry;
use explicate_core::sink::Sink;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, SackRanges, flag};

use super::answers::Answers;
use super::auth::{Code, Key as Secret};
use super::content::Stock;
use super::content::store::{Offer, Store};
use super::gate::{Admission, Gate, Judged, Limiter};
use super::hello::{self, Content, Hello, Sealed};
use super::message::{self, Message, Refusal, Verdict};
use super::opening::answer_bytes;
use super::outbox::Outbox;

/// Between two searches for flows that fell silent.
const CHECK_EVERY: Time = Time::secs(1);

/// What a receiver allows.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most flows at a time.
    pub flows: usize,
    /// Most bytes of memory for what waits for those before it, all flows together.
    pub waiting: usize,
    /// Segments that a flow may be ahead of what has arrived in order.
    pub window: u32,
    /// A flow of which nothing is heard for so long is forgotten; one that never sent anything sooner.
    pub idle: Time,
    /// What is asked of whoever opens a flow.
    pub admission: Admission,
    /// Most flows at a time of one address.
    pub flows_per_source: usize,
    /// Greetings a second of one address, and twice as many at once.
    pub greetings: u32,
    /// Probes a second of one address that are answered.
    pub probes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            flows: 1024,
            waiting: 256 << 20,
            window: 1 << 16,
            idle: Time::secs(30),
            admission: Admission::default(),
            flows_per_source: 64,
            greetings: 100,
            probes: 20_000,
        }
    }
}

/// The receiving end of a flow.
pub struct Receiving {
    /// The core's end.
    pub sink: Sink,
    /// What is sent, as its sender says.
    pub hello: Hello,
    stock: Stock,
    /// Somebody else wants to send the same file.
    contested: bool,
    /// The code (or cookie) that it was let in with: a SYN with another is not its.
    code: Code,
    /// Bytes that were here before it began.
    have: u64,
    /// Whether anything of it came beside its greeting.
    spoke: bool,
    heard: Time,
    /// When it came up.
    pub since: Time,
    /// Its congestion echo: packets that arrived marked.
    pub marked: u64,
    /// Whether routers answer its packets.
    pub answers: Answers,
}

/// Who sends which flow, by its whole number.
pub type Key = (SocketAddrV4, u64);

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
    /// Flows refused: too many, without the key, or their greeting makes no sense.
    pub refused: u64,
    /// Of these, those whose greeting had no code or one of another key.
    pub without_key: u64,
    /// Cookies given.
    pub cookies: u64,
    /// Greetings, knocks and probes that got no answer because there were too many from there.
    pub too_many: u64,
    /// Greetings of version 0.1.
    pub old: u64,
}

/// All receiving ends of a socket.
pub struct Receivers {
    limits: Limits,
    gate: Gate,
    probes: Limiter,
    /// The flows.
    pub flows: BTreeMap<Key, Receiving>,
    /// Where files go; without it none is taken. It outlives the flows, which leave there what they have.
    pub store: Option<Store>,
    waiting: usize,
    /// When the earliest held-back acknowledgement is due.
    held: Time,
    /// The disk did not keep up with a flow.
    stalled: bool,
    checked: Time,
    /// When the next may be answered of whom nothing is known.
    tells: Time,
    /// When the log may tell of refusals again.
    warns: Time,
    /// What it counted.
    pub counters: Counters,
    /// Flows that ended since somebody looked.
    pub ended: Vec<Ended>,
    /// Flows whose packets routers have begun to answer since, or ceased to.
    pub news: Vec<(Key, Answers)>,
}

impl Receivers {
    /// None yet; cookies are made with this secret.
    pub fn new(limits: Limits, secret: Secret) -> Receivers {
        let (flows, counters, ended) = Default::default();
        let (checked, tells, warns) = (Time::ZERO, Time::ZERO, Time::ZERO);
        let gate = Gate::new(limits.admission.clone(), secret, limits.idle, limits.greetings);
        let probes = Limiter::new(limits.probes, limits.probes);
        let (store, waiting, held, stalled, news) = (None, 0, Time::NEVER, false, Vec::new());
        Receivers {
            limits,
            gate,
            probes,
            flows,
            store,
            waiting,
            held,
            stalled,
            checked,
            tells,
            warns,
            counters,
            ended,
            news,
        }
    }

    /// A packet that is no acknowledgement arrived, of the flow whose number has this upper half.
    pub fn handle_packet(
        &mut self,
        now: Time,
        from: SocketAddrV4,
        high: u32,
        read: &Read,
        payload: &[u8],
        out: &mut Outbox,
    ) {
        let header = &read.packet.transport;
        let key = (from, message::number(high, header.flow()));
        let syn = header.has(flag::SYN);
        let known = self.flows.get(&key);
        if !syn && known.is_none() {
            return self.stray(now, key, out);
        }
        let again = known.is_some_and(|flow| !syn || flow.is_greeted_by(&self.gate, payload));
        if !again && !self.open(now, key, header.options(), payload, out) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.heard = now;
        if !syn {
            let (segment, last) = (header.segment(), header.has(flag::FIN));
            if payload.len() != header.payload() as usize || !flow.stock.fits(segment, payload.len(), last) {
                self.counters.misfits += 1;
                return;
            }
            if let Some(verdict) = flow.stock.failure() {
                // It may not have heard.
                if self.may_tell(now) {
                    answer(&self.gate, key, verdict, 0, out);
                }
                return;
            }
            let before = flow.memory();
            if !flow.stock.has_room() {
                self.waiting = self.waiting + flow.memory() - before;
                (self.stalled, self.counters.no_room) = (true, self.counters.no_room + 1);
                return;
            }
            let keeps = flow.would_keep(segment, payload.len());
            if keeps > 0 && self.waiting + keeps > self.limits.waiting {
                self.counters.no_room += 1;
                return;
            }
            flow.spoke = true;
            // The core's end passes over what is too far ahead, and so does this.
            if segment.checked_sub(flow.sink.expected()).is_none_or(|ahead| ahead < self.limits.window) {
                flow.stock.take(segment, payload, last);
            }
            flow.marked += (read.packet.tos & 3 == 3) as u64;
            if flow.answers.take(&read.packet) {
                self.news.push((key, flow.answers));
            }
            flow.sink.handle_packet(now, &read.packet);
            self.waiting = self.waiting + flow.memory() - before;
        } else {
            flow.sink.handle_packet(now, &read.packet);
        }
        flow.answer(now, key, &self.gate, out);
        self.held = self.held.min(flow.sink.poll_timeout());
    }

    /// A message arrived.
    pub fn handle_message(&mut self, now: Time, from: SocketAddrV4, message: Message, out: &mut Outbox) {
        match message {
            Message::Question(number, _) => self.conclude(now, (from, number), out),
            Message::Knock(number, version, code) => {
                let told = match self.gate.knock(now, from, number, &code) {
                    Some(_) if u32::from(version) != hello::VERSION => Message::Refused(number, Refusal::Version),
                    Some(cookie) => Message::Cookie(number, cookie),
                    None => {
                        self.counters.too_many += 1;
                        return;
                    }
                };
                self.counters.cookies += u64::from(matches!(told, Message::Cookie(..)));
                tell(from, told, out);
            }
            Message::Probe(index, nonce, sent, code) => {
                // The echo is no longer than the probe, and goes only where a cookie was received.
                if self.gate.is_probe(now, from, nonce, &code) && self.probes.passes(now, *from.ip()) {
                    tell(from, Message::Echo(index, nonce, sent, now), out);
                } else {
                    self.counters.too_many += 1;
                }
            }
            _ => {}
        }
    }

    /// Someone asks how a flow went.
    fn conclude(&mut self, now: Time, key: Key, out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(&key) else { return self.stray(now, key, out) };
        (flow.heard, flow.spoke) = (now, true);
        let first = flow.stock.verdict().is_none();
        let verdict = flow.stock.conclude();
        let payload = flow.sink.stats().payload;
        answer(&self.gate, key, verdict, payload, out);
        if first && !flow.stock.is_file() {
            self.ended.push(flow.ended(key, now));
        }
    }

    /// Begins a flow if its greeting may; false if it is not begun. Who has shown a cookie is told why.
    fn open(&mut self, now: Time, key: Key, options: u8, greeting: &[u8], out: &mut Outbox) -> bool {
        let told = match self.gate.judge(now, key.0, key.1, options, greeting) {
            Judged::Admitted(hello, code) => match self.begin(now, key, hello, code) {
                Ok(()) => return true,
                Err(why) => Message::Refused(key.1, why),
            },
            Judged::Cookie(cookie) => {
                self.counters.cookies += 1;
                Message::Cookie(key.1, cookie)
            }
            Judged::Refused(why) => Message::Refused(key.1, why),
            Judged::Old => {
                self.counters.old += 1;
                if self.warns <= now {
                    self.warns = now + Time::secs(1);
                    let old = self.counters.old;
                    tracing::warn!(peer = %key.0, old, "version 0.1 of explicated wants to send: it knows no cookies");
                }
                // Its words for that: this transfer is not known.
                Message::Unknown(key.1)
            }
            Judged::Ignored => {
                self.counters.too_many += 1;
                return false;
            }
        };
        if let Message::Refused(_, why) = told {
            self.counters.refused += 1;
            self.counters.without_key += u64::from(matches!(why, Refusal::WrongKey | Refusal::NeedsKey));
            if self.warns <= now {
                self.warns = now + Time::secs(1);
                tracing::warn!(peer = %key.0, why = ?why, refused = self.counters.refused, "flows are refused");
            }
        }
        // No answer is longer than what it answers.
        if greeting.len() >= MESSAGE {
            tell(key.0, told, out);
        }
        false
    }

    /// Begins a flow whose greeting is in order.
    fn begin(&mut self, now: Time, key: Key, hello: Hello, code: Code) -> Result<(), Refusal> {
        if let Some(flow) = self.flows.get_mut(&key) {
            // The same sender with a newer cookie; what it said before stays.
            if flow.hello != hello {
                return Err(Refusal::Nonsense);
            }
            flow.code = code;
            return Ok(());
        }
        if let Some(old) = hello.instead {
            self.forget((key.0, old));
        }
        if self.flows.len() >= self.limits.flows {
            return Err(Refusal::Full);
        }
        let source = *key.0.ip();
        let of_source = (SocketAddrV4::new(source, 0), 0)..=(SocketAddrV4::new(source, u16::MAX), u64::MAX);
        if self.flows.range(of_source).count() >= self.limits.flows_per_source {
            return Err(Refusal::PerSource);
        }
        let (stock, have) = self.stock(source, &hello.content)?;
        let sink = sink(key.1 as u32, &hello, self.limits.window).ok_or(Refusal::Nonsense)?;
        tracing::info!(peer = %key.0, flow = key.1 as u32, protocol = hello.protocol, "a flow begins");
        let answers = Answers::new(&hello.protocol);
        let (contested, spoke, marked) = (false, false, 0);
        let flow =
            Receiving { sink, hello, stock, contested, code, have, spoke, heard: now, since: now, marked, answers };
        self.flows.insert(key, flow);
        Ok(())
    }

    /// Where the payload of a flow from there goes, and how much of it is there.
    fn stock(&mut self, source: Ipv4Addr, content: &Content) -> Result<(Stock, u64), Refusal> {
        let Content::File { name, size, mode, digest, modified } = content else { return Ok((Stock::nothing(), 0)) };
        let store = self.store.as_mut().ok_or(Refusal::NoFiles)?;
        let (name, &size, &digest, &mode, &modified) = (name.clone(), size, digest, mode, modified);
        let offer = Offer { name, size, digest, mode, modified };
        match store.take(source, &offer) {
            Ok(part) => {
                let have = part.held();
                Ok((Stock::file(part, store.folder(), &offer), have))
            }
            Err(why) => {
                if matches!(why, Refusal::Busy | Refusal::NameTaken) {
                    self.contest(source, &offer);
                }
                Err(why)
            }
        }
    }
    /// The flow from there that is in the way makes room if nothing is heard of it, because its sender may have been started again.
    fn contest(&mut self, source: Ipv4Addr, offer: &Offer) {
        for (key, flow) in self.flows.iter_mut().filter(|(key, _)| *key.0.ip() == source) {
            let Content::File { name, digest, .. } = &flow.hello.content else { continue };
            let in_the_way = *name == offer.name || *digest == offer.digest;
            if in_the_way && !flow.contested {
                tracing::info!(peer = %key.0, name, "somebody there wants to send it anew");
                flow.contested = true;
            }
        }
    }
    /// What the disk has to say.
    fn hear_disk(&mut self, now: Time, out: &mut Outbox) {
        let Some(store) = &mut self.store else { return };
        for (serial, verdict) in store.poll() {
            let Some((key, flow)) = self.flows.iter_mut().find(|(_, f)| f.stock.serial() == Some(serial)) else {
                continue;
            };
            let before = flow.memory();
            flow.stock.settle(verdict);
            self.waiting = self.waiting + flow.memory() - before;
            answer(&self.gate, *key, verdict, flow.sink.stats().payload, out);
            self.ended.push(flow.ended(*key, now));
        }
        if std::mem::take(&mut self.stalled) {
            self.write(|stock| !stock.has_room());
        }
    }
    /// Hands what has arrived in order to the disk, which may not keep up.
    fn write(&mut self, mut stalls: impl FnMut(&mut Stock) -> bool) {
        for flow in self.flows.values_mut().filter(|flow| flow.stock.serial().is_some()) {
            let before = flow.memory();
            self.stalled |= stalls(&mut flow.stock);
            self.waiting = self.waiting + flow.memory() - before;
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

    /// A packet of a flow that is not known: says so, now and then. Not to questions without an upper half: so asks whoever looks for
    /// version 0.1.
    fn stray(&mut self, now: Time, key: Key, out: &mut Outbox) {
        self.counters.strays += 1;
        if (key.1 >> 32 != 0 || self.gate.is_trusting()) && self.may_tell(now) {
            tell(key.0, Message::Unknown(key.1), out);
        }
    }

    /// Lets held-back acknowledgements go, says what the disk says, and forgets who fell silent.
    pub fn handle_timeout(&mut self, now: Time, out: &mut Outbox) {
        self.hear_disk(now, out);
        if self.held <= now {
            self.held = Time::NEVER;
            for (key, flow) in &mut self.flows {
                if flow.sink.poll_timeout() <= now {
                    flow.sink.handle_timeout(now);
                    flow.answer(now, *key, &self.gate, out);
                }
                self.held = self.held.min(flow.sink.poll_timeout());
            }
        }
        if now.since(self.checked) < CHECK_EVERY {
            return;
        }
        self.checked = now;
        self.write(|stock| !stock.flush());
        let (idle, life) = (self.limits.idle, self.gate.life());
        let of = |f: &Receiving| match (f.contested, f.spoke || self.gate.is_trusting()) {
            (true, _) => CONTESTED.min(idle),
            (false, true) => idle,
            (false, false) => life,
        };
        let silent: Vec<Key> = self.flows.iter().filter(|(_, f)| now.since(f.heard) > of(f)).map(|(k, _)| *k).collect();
        for key in silent {
            if let Some(flow) = self.forget(key)
                && flow.stock.verdict().is_none()
            {
                self.ended.push(flow.ended(key, flow.heard));
            }
        }
    }
    /// A flow is over, or another takes its place.
    fn forget(&mut self, key: Key) -> Option<Receiving> {
        let flow = self.flows.remove(&key)?;
        self.waiting -= flow.memory();
        Some(flow)
    }
    /// When something is due.
    pub fn due(&self) -> Time {
        let check = if self.flows.is_empty() { Time::NEVER } else { self.checked + CHECK_EVERY };
        self.held.min(check)
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

/// A flow whose file somebody wants to send anew is forgotten if nothing is heard of it for so long.
const CONTESTED: Time = Time::secs(2);

/// UDP payload of a message, without what a packet's transport header needs: a greeting is longer than that.
const MESSAGE: usize = 16;

fn tell(to: SocketAddrV4, message: Message, out: &mut Outbox) {
    out.push(to, &message.to_packet(), &SackRanges::NONE, |_| 0);
}

/// Says how a flow went.
fn answer(gate: &Gate, key: Key, verdict: Verdict, payload: u64, out: &mut Outbox) {
    let code = gate.verdict(key.1, verdict.number(), payload);
    tell(key.0, Message::Answer(key.1, verdict, payload, code), out);
}

impl Receiving {
    /// Whether this is the greeting that it was let in with, come again.
    fn is_greeted_by(&self, gate: &Gate, greeting: &[u8]) -> bool {
        let sealed = Sealed::of(greeting);
        gate.is_trusting() || sealed.code.or(sealed.cookie) == Some(self.code)
    }
    fn answer(&mut self, now: Time, (to, number): Key, gate: &Gate, out: &mut Outbox) {
        let (mut packet, mut sack) = (Packet::EMPTY, SackRanges::NONE);
        if !self.sink.poll_transmit(now, &mut packet, &mut sack) {
            return;
        }
        let (high, header) = ((number >> 32) as u32, &packet.transport);
        if high == 0 {
            return out.push(to, &packet, &sack, |_| 0);
        }
        let greeted = header
            .has(flag::SYN)
            .then(|| answer_bytes(self.have, gate.proof(number, header.options(), &self.code, self.have)));
        out.push(to, &packet, &sack, |room| {
            room[..4].copy_from_slice(&high.to_be_bytes());
            let Some((bytes, length)) = greeted else { return 4 };
            room[4..4 + length].copy_from_slice(&bytes[..length]);
            4 + length
        });
    }
    /// Bytes of memory that what waits takes.
    fn memory(&self) -> usize {
        self.stock.waiting() + self.sink.memory()
    }
    /// Bytes that a segment would take more, at most.
    fn would_keep(&self, segment: u32, length: usize) -> usize {
        let ahead = segment > self.sink.expected();
        if ahead { self.stock.would_keep(segment, length) + self.sink.memory_to_insert() } else { 0 }
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
    set("guard", 1.0); // as far as the sender wants it
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
