//! All flows that a socket receives: admission and limits.
//!
//! A source has no state here until it has returned a cookie and, where there is a key, its code ([`super::gate`]). Limits bound
//! the number of flows, the flows per source, and the memory for out-of-order and unwritten data; a silent flow is removed after a
//! timeout. A packet for which there is no memory is dropped before the core sees it, as if lost.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use explicate_core::units::Time;
use explicate_core::wire::{Packet, SackRanges, flag};

use super::answers::Answers;
use super::auth::{Code, Key as Secret};
use super::content::Stock;
use super::content::store::{Offer, Store};
use super::echoes::{Echoes, PROBES};
use super::gate::{Admission, Gate, Judged};
use super::hello::{Content, Hello};
use super::message::{Message, Refusal};
use super::outbox::Outbox;

mod flow;

use flow::send_verdict;
pub use flow::{Ended, Key, Receiving};

/// Interval between two searches for silent flows.
const CHECK_EVERY: Time = Time::secs(1);

/// Limits of a receiver.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of flows at a time.
    pub flows: usize,
    /// Maximum memory for out-of-order and unwritten data, all flows together, bytes.
    pub waiting: usize,
    /// Maximum number of segments that a flow may be ahead of the in-order data.
    pub window: u32,
    /// Idle time after which a flow is removed; a flow that sent only its SYN is removed sooner.
    pub idle: Time,
    /// The proof required to open a flow.
    pub admission: Admission,
    /// Maximum number of flows at a time from one address.
    pub flows_per_source: usize,
    /// Maximum number of SYNs per second from one address; the burst is twice as many.
    pub greetings: u32,
    /// Maximum number of probes per second from one address that are answered.
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
            probes: PROBES,
        }
    }
}

/// Counters of a receiver.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    /// Packets of unknown flows.
    pub strays: u64,
    /// Packets whose payload contradicts their headers or their flow.
    pub misfits: u64,
    /// Packets dropped for lack of memory.
    pub no_room: u64,
    /// Flows refused: too many, without the key, or with an invalid SYN.
    pub refused: u64,
    /// Of these, those whose SYN had no code or one of another key.
    pub without_key: u64,
    /// Cookies sent.
    pub cookies: u64,
    /// SYNs, requests for cookies and probes not answered because of their source's rate limit.
    pub too_many: u64,
    /// SYNs of version 0.1.
    pub old: u64,
}

/// All flows that a socket receives.
pub struct Receivers {
    limits: Limits,
    gate: Gate,
    echoes: Echoes,
    /// The flows.
    pub flows: BTreeMap<Key, Receiving>,
    /// Destination of files; without it they are refused. It outlives the flows and keeps their partial files.
    pub store: Option<Store>,
    waiting: usize,
    /// When the earliest delayed acknowledgement is due.
    next_ack_at: Time,
    /// Whether a flow is waiting for the disk.
    stalled: bool,
    /// When silent flows were last searched for.
    last_check_at: Time,
    /// Earliest time of the next answer to an unknown sender.
    next_answer_at: Time,
    /// Earliest time of the next warning in the log.
    next_warning_at: Time,
    /// Counters since the start.
    pub counters: Counters,
    /// Flows that ended since the caller last emptied this list.
    pub ended: Vec<Ended>,
    /// Flows that began to get feedback from routers, or ceased to, since the caller last emptied this list.
    pub news: Vec<(Key, Answers)>,
}

impl Receivers {
    /// No flows; cookies are made with this secret.
    pub fn new(limits: Limits, secret: Secret) -> Receivers {
        let (flows, counters, ended) = Default::default();
        let (last_check_at, next_answer_at, next_warning_at) = Default::default();
        let gate = Gate::new(limits.admission.clone(), secret, limits.idle, limits.greetings);
        let echoes = Echoes::new(limits.probes);
        let (store, waiting, next_ack_at, stalled, news) = (None, 0, Time::NEVER, false, Vec::new());
        Receivers {
            limits,
            gate,
            echoes,
            flows,
            store,
            waiting,
            next_ack_at,
            stalled,
            last_check_at,
            next_answer_at,
            next_warning_at,
            counters,
            ended,
            news,
        }
    }

    /// Handles a SYN or data packet of this flow. Its acknowledgement replaces it.
    pub fn handle_packet(&mut self, now: Time, key: Key, packet: &mut Packet, payload: &[u8], out: &mut Outbox) {
        if packet.transport.has(flag::SYN) {
            self.handle_syn(now, key, packet, payload, out);
        } else {
            self.handle_data(now, key, packet, payload, out);
        }
    }

    fn handle_syn(&mut self, now: Time, key: Key, packet: &mut Packet, greeting: &[u8], out: &mut Outbox) {
        let again = self.flows.get(&key).is_some_and(|flow| flow.is_greeted_by(&self.gate, greeting));
        if !again && !self.open(now, key, packet.transport.options(), greeting, out) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.last_packet_at = now;
        flow.acknowledge(now, key, packet, &self.gate, out);
        self.next_ack_at = self.next_ack_at.min(flow.receiver.poll_timeout());
    }

    fn handle_data(&mut self, now: Time, key: Key, packet: &mut Packet, payload: &[u8], out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(&key) else { return self.handle_unknown(now, key, out) };
        flow.last_packet_at = now;
        let header = &packet.transport;
        let (segment, last) = (header.segment(), header.has(flag::FIN));
        if payload.len() != header.payload() as usize || !flow.stock.fits(segment, payload.len(), last) {
            self.counters.misfits += 1;
            return;
        }
        if let Some(verdict) = flow.stock.failure() {
            // The verdict may have been lost.
            if self.may_answer_unknown(now) {
                send_verdict(&self.gate, key, verdict, 0, out);
            }
            return;
        }
        let has_room = flow.stock.has_room();
        flow.count_memory(&mut self.waiting);
        if !has_room {
            (self.stalled, self.counters.no_room) = (true, self.counters.no_room + 1);
            return;
        }
        let keeps = flow.would_keep(segment, payload.len());
        if keeps > 0 && self.waiting + keeps > self.limits.waiting {
            self.counters.no_room += 1;
            return;
        }
        flow.established = true;
        // Beyond the window the core's end also drops segments.
        if segment.checked_sub(flow.receiver.expected()).is_none_or(|ahead| ahead < self.limits.window) {
            flow.stock.take(segment, payload, last);
        }
        flow.marked += (packet.tos & 3 == 3) as u64;
        if flow.answers.take(packet) {
            self.news.push((key, flow.answers));
        }
        flow.acknowledge(now, key, packet, &self.gate, out);
        flow.count_memory(&mut self.waiting);
        self.next_ack_at = self.next_ack_at.min(flow.receiver.poll_timeout());
    }

    /// Handles a message of a sender or a probe.
    pub fn handle_message(&mut self, now: Time, from: SocketAddrV4, message: Message, out: &mut Outbox) {
        match message {
            Message::Question(number, _) => self.conclude(now, (from, number), out),
            Message::Knock(..) | Message::Probe(..) => match self.echoes.answer(&mut self.gate, now, from, message) {
                Some(answer) => {
                    self.counters.cookies += u64::from(matches!(answer, Message::Cookie(..)));
                    send(from, answer, out);
                }
                None => self.counters.too_many += 1,
            },
            _ => {}
        }
    }

    /// Answers a sender's request for the verdict on its flow.
    fn conclude(&mut self, now: Time, key: Key, out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(&key) else { return self.handle_unknown(now, key, out) };
        (flow.last_packet_at, flow.established) = (now, true);
        let first = flow.stock.verdict().is_none();
        let verdict = flow.stock.conclude();
        let payload = flow.receiver.stats().payload;
        send_verdict(&self.gate, key, verdict, payload, out);
        if first && !flow.stock.is_file() {
            self.ended.push(flow.ended(key, now));
        }
    }

    /// Begins a flow if its SYN is admitted; otherwise answers the SYN. Returns whether the flow has begun.
    fn open(&mut self, now: Time, key: Key, options: u8, greeting: &[u8], out: &mut Outbox) -> bool {
        let reply = match self.gate.judge(now, key.0, key.1, options, greeting) {
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
                if self.may_warn(now) {
                    let old = self.counters.old;
                    tracing::warn!(peer = %key.0, old, "version 0.1 of explicated, which has no cookies, tried to send");
                }
                // The only refusal that version 0.1 can parse.
                Message::Unknown(key.1)
            }
            Judged::Ignored => {
                self.counters.too_many += 1;
                return false;
            }
        };
        if let Message::Refused(_, why) = reply {
            self.counters.refused += 1;
            self.counters.without_key += u64::from(matches!(why, Refusal::WrongKey | Refusal::NeedsKey));
            if self.may_warn(now) {
                tracing::warn!(peer = %key.0, why = ?why, refused = self.counters.refused, "flows are refused");
            }
        }
        // An answer is never longer than the SYN.
        if greeting.len() >= MESSAGE {
            send(key.0, reply, out);
        }
        false
    }

    /// Begins a flow whose SYN is admitted.
    fn begin(&mut self, now: Time, key: Key, hello: Hello, code: Code) -> Result<(), Refusal> {
        if let Some(flow) = self.flows.get_mut(&key) {
            // The same sender with a newer cookie; its parameters may not change.
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
        let destination = self.stock(source, &hello.content)?;
        let (id, window) = (key.1 as u32, self.limits.window);
        let flow = Receiving::new(now, id, hello, code, destination, window).ok_or(Refusal::Nonsense)?;
        tracing::info!(peer = %key.0, flow = id, protocol = flow.hello.protocol, "a flow begins");
        self.flows.insert(key, flow);
        Ok(())
    }

    /// The destination of a flow's payload, and the number of bytes that it already has.
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
                    self.mark_stale(source, &offer);
                }
                Err(why)
            }
        }
    }
    /// Shortens the timeout of this source's flows with the same file or name: their sender may have restarted.
    fn mark_stale(&mut self, source: Ipv4Addr, offer: &Offer) {
        for (key, flow) in self.flows.iter_mut().filter(|(key, _)| *key.0.ip() == source) {
            let Content::File { name, digest, .. } = &flow.hello.content else { continue };
            let conflicts = *name == offer.name || *digest == offer.digest;
            if conflicts && !flow.may_be_stale {
                tracing::info!(peer = %key.0, name, "offered again while a flow with this file is open");
                flow.may_be_stale = true;
            }
        }
    }
    /// Handles the disk's results.
    fn poll_disk(&mut self, now: Time, out: &mut Outbox) {
        let Some(store) = &mut self.store else { return };
        for (serial, verdict) in store.poll() {
            let Some((key, flow)) = self.flows.iter_mut().find(|(_, f)| f.stock.serial() == Some(serial)) else {
                continue;
            };
            flow.stock.catch_up(verdict);
            flow.count_memory(&mut self.waiting);
            send_verdict(&self.gate, *key, verdict, flow.receiver.stats().payload, out);
            self.ended.push(flow.ended(*key, now));
        }
        if std::mem::take(&mut self.stalled) {
            self.write(|stock| !stock.has_room());
        }
    }
    /// Writes in-order data to the disk; `stalls` returns whether it does not keep up.
    fn write(&mut self, mut stalls: impl FnMut(&mut Stock) -> bool) {
        for flow in self.flows.values_mut().filter(|flow| flow.stock.serial().is_some()) {
            self.stalled |= stalls(&mut flow.stock);
            flow.count_memory(&mut self.waiting);
        }
    }

    /// Whether the rate limit allows another answer to an unknown sender.
    fn may_answer_unknown(&mut self, now: Time) -> bool {
        passes(&mut self.next_answer_at, now, Time::millis(10))
    }
    /// Whether the rate limit allows another warning in the log.
    fn may_warn(&mut self, now: Time) -> bool {
        passes(&mut self.next_warning_at, now, Time::secs(1))
    }

    /// Answers a packet of an unknown flow, at a limited rate. Requests without an upper half, which detect version
    /// 0.1, are not answered.
    fn handle_unknown(&mut self, now: Time, key: Key, out: &mut Outbox) {
        self.counters.strays += 1;
        if (key.1 >> 32 != 0 || self.gate.is_trusting()) && self.may_answer_unknown(now) {
            send(key.0, Message::Unknown(key.1), out);
        }
    }

    /// Sends delayed acknowledgements and verdicts of the disk that are due, and removes silent flows.
    pub fn handle_timeout(&mut self, now: Time, out: &mut Outbox) {
        self.poll_disk(now, out);
        if self.next_ack_at <= now {
            self.next_ack_at = Time::NEVER;
            for (key, flow) in &mut self.flows {
                if flow.receiver.poll_timeout() <= now {
                    flow.receiver.handle_timeout(now);
                    flow.acknowledge_delayed(now, *key, &self.gate, out);
                }
                self.next_ack_at = self.next_ack_at.min(flow.receiver.poll_timeout());
            }
        }
        if now.since(self.last_check_at) < CHECK_EVERY {
            return;
        }
        self.last_check_at = now;
        self.write(|stock| !stock.flush());
        let (idle, life) = (self.limits.idle, self.gate.life());
        let timeout = |f: &Receiving| match (f.may_be_stale, f.established || self.gate.is_trusting()) {
            (true, _) => STALE_TIMEOUT.min(idle),
            (false, true) => idle,
            (false, false) => life,
        };
        let silent: Vec<Key> =
            self.flows.iter().filter(|(_, f)| now.since(f.last_packet_at) > timeout(f)).map(|(k, _)| *k).collect();
        for key in silent {
            if let Some(flow) = self.forget(key)
                && flow.stock.verdict().is_none()
            {
                self.ended.push(flow.ended(key, flow.last_packet_at));
            }
        }
    }
    /// Removes a flow.
    fn forget(&mut self, key: Key) -> Option<Receiving> {
        let flow = self.flows.remove(&key)?;
        self.waiting -= flow.counted;
        Some(flow)
    }
    /// When [`handle_timeout`](Receivers::handle_timeout) has to be called.
    pub fn due(&self) -> Time {
        let check = if self.flows.is_empty() { Time::NEVER } else { self.last_check_at + CHECK_EVERY };
        self.next_ack_at.min(check)
    }
    /// Abandons all open flows.
    pub fn give_up(&mut self) {
        for (key, flow) in std::mem::take(&mut self.flows) {
            if flow.stock.verdict().is_none() {
                self.ended.push(flow.ended(key, flow.last_packet_at));
            }
        }
    }
}

/// Idle time after which a flow is removed whose sender may have restarted.
const STALE_TIMEOUT: Time = Time::secs(2);

/// UDP payload of a message beyond its transport header; that of a valid SYN is longer.
const MESSAGE: usize = 16;

/// Whether the time `next` has come; if so, moves it `interval` ahead.
fn passes(next: &mut Time, now: Time, interval: Time) -> bool {
    let passes = now >= *next;
    if passes {
        *next = now + interval;
    }
    passes
}

fn send(to: SocketAddrV4, message: Message, out: &mut Outbox) {
    out.push(to, &message.to_packet(), &SackRanges::NONE, |_| 0);
}
