//! The port by which datagrams leave: the rate of the line, a queue for each tunnel, and the controller of a router.
//!
//! Tunnels and the plain packets of the site take turns by bytes (deficit round robin). A tunnel whose queue is full waits: QUIC keeps what it has not sent, and its
//! queue stays as short as `MOST_QUEUED`. One thread sends at the times that the line's rate sets. Lateness of the machine
//! is made up for, up to `CATCH_UP`.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::thread;

use explicate_core::api::{AnyProtocol, AnyRouter, PortView, RouterInit};
use explicate_core::guard::Marking;
use explicate_core::params::Values;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::Packet;
use rustix::event::{EventfdFlags, eventfd};

use super::plain::{Plain, VOICE_SHARE};
use super::shim;
use super::tunnel::Tunnel;
use crate::clock::{Clock, Waiter};
use crate::error::{Context, Error, Result};
use crate::sys;

/// The longest queue of a tunnel: so long it takes to send, or so many bytes.
const MOST_QUEUED: Time = Time::millis(10);
const LEAST_ROOM: u64 = 6_000;
/// Lateness that is made up for.
const CATCH_UP: Time = Time::millis(10);
/// Bytes of a turn.
const QUANTUM: i64 = 1_500;
/// A tunnel is idle after this time without a datagram: its last ones get their parity.
const IDLE: Time = Time::millis(3);
/// Datagrams of connections that are being set up.
const MOST_OTHER: usize = 256;
/// How often the rate of each tunnel is taken.
const METER: Time = Time::millis(100);

/// A datagram that waits.
pub struct Outgoing {
    /// Its destination.
    pub to: SocketAddr,
    /// Its packet, as routers see it.
    pub packet: Packet,
    /// Its bytes, with room for the headers.
    pub bytes: Vec<u8>,
}

/// What leaves.
enum Leaving {
    Datagram(Outgoing),
    Plain(Vec<u8>),
}

/// The queue of a tunnel.
struct Queue {
    tunnel: Weak<Tunnel>,
    to: SocketAddr,
    waiting: VecDeque<Outgoing>,
    bytes: u64,
    deficit: i64,
    last: Time,
    /// Bytes since the meter was read, and the rate, bytes/s.
    metered: u64,
    used: f64,
}

/// Counters of a port.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    /// Datagrams sent, and their IP bytes.
    pub sent: u64,
    /// IP bytes sent.
    pub bytes: u64,
    /// Datagrams with parity.
    pub parity: u64,
    /// Datagrams that found no room.
    pub dropped: u64,
    /// Datagrams that the kernel refused.
    pub refused: u64,
}

struct State {
    /// Bytes/s.
    rate: f64,
    queues: Vec<Queue>,
    turn: usize,
    /// Datagrams without a tunnel.
    other: VecDeque<Outgoing>,
    plain: Option<Plain>,
    backlog: (u64, u32),
    router: Box<AnyRouter>,
    /// When the line falls free.
    free_at: Time,
    metered_at: Time,
    wakers: Vec<Waker>,
    counters: Counters,
}

/// The port.
pub struct Port {
    state: Mutex<State>,
    /// Rises when a queue has room again.
    drained: AtomicU64,
    wake: OwnedFd,
    clock: Clock,
    parity: bool,
}

impl State {
    fn view(&self) -> PortView {
        let (backlog_bytes, backlog_packets) = self.backlog;
        // The controller shares out what plain packets leave, and no less than their turns leave.
        let used = self.plain.as_ref().map_or(0.0, |plain| plain.used);
        let tunnels = self.queues.len().max(1) as f64;
        let capacity = (self.rate - used).max(self.rate * tunnels / (tunnels + 1.0));
        PortView { capacity, backlog_bytes, backlog_packets, busy: false }
    }
    fn room(&self) -> u64 {
        LEAST_ROOM.max((self.rate * MOST_QUEUED.as_secs_f64()) as u64)
    }
    fn arrive(&mut self, now: Time, outgoing: &mut Outgoing) {
        let view = self.view();
        self.router.on_arrival(now, &mut outgoing.packet, &view);
        self.backlog.0 += outgoing.packet.ip_len as u64;
        self.backlog.1 += 1;
    }
    /// What leaves next: datagrams of connections that are being set up, voice, and the others in turns by bytes.
    fn next(&mut self, now: Time) -> Option<Leaving> {
        if let Some(outgoing) = self.other.pop_front() {
            return Some(Leaving::Datagram(outgoing));
        }
        let most = VOICE_SHARE * self.rate * METER.as_secs_f64();
        let (voice, plain) = self.plain.as_ref().map_or((false, false), Plain::waits);
        if let Some(queue) = self.plain.as_mut().filter(|_| voice)
            && (queue.metered_voice as f64) < most
        {
            return queue.next_voice().map(Leaving::Plain);
        }
        if !voice && !plain && self.queues.iter().all(|queue| queue.waiting.is_empty()) {
            return None;
        }
        loop {
            self.turn %= self.queues.len() + 1;
            if self.turn == self.queues.len() {
                if let Some(leaving) = self.next_plain(now) {
                    return Some(leaving);
                }
                self.turn += 1;
                if self.queues.iter().all(|queue| queue.waiting.is_empty())
                    && self.plain.as_ref().is_none_or(|plain| plain.waits() == (false, false))
                {
                    return None;
                }
                continue;
            }
            let queue = &mut self.queues[self.turn];
            let Some(first) = queue.waiting.front() else {
                queue.deficit = 0;
                self.turn += 1;
                continue;
            };
            let length = first.packet.ip_len as i64;
            if queue.deficit < length {
                queue.deficit += QUANTUM;
                self.turn += 1;
                continue;
            }
            queue.deficit -= length;
            queue.bytes -= length as u64;
            queue.metered += length as u64;
            return queue.waiting.pop_front().map(Leaving::Datagram);
        }
    }
    /// A plain packet, if it is their turn.
    fn next_plain(&mut self, now: Time) -> Option<Leaving> {
        let plain = self.plain.as_mut()?;
        if plain.waits() == (false, false) {
            plain.deficit = 0;
            return None;
        }
        if plain.deficit <= 0 {
            plain.deficit += QUANTUM;
            return None;
        }
        let bytes = plain.next(now).or_else(|| plain.next_voice())?;
        plain.deficit -= bytes.len() as i64;
        Some(Leaving::Plain(bytes))
    }
    fn meter(&mut self, now: Time) {
        let seconds = now.since(self.metered_at).as_secs_f64();
        if seconds >= METER.as_secs_f64() {
            self.metered_at = now;
            if let Some(plain) = &mut self.plain {
                plain.used = std::mem::take(&mut plain.metered) as f64 / seconds;
                plain.metered_voice = 0;
            }
            for queue in &mut self.queues {
                queue.used = std::mem::take(&mut queue.metered) as f64 / seconds;
            }
            self.queues.retain(|queue| queue.tunnel.strong_count() > 0 || !queue.waiting.is_empty());
        }
    }
}

impl Port {
    /// A port of this rate with the controller of a protocol, beside these plain packets. Starts its thread, which sends by this socket.
    pub fn start(
        protocol: &AnyProtocol,
        rate: Rate,
        (socket, plain): (UdpSocket, Option<Plain>),
        clock: Clock,
        parity: bool,
    ) -> Result<Arc<Port>> {
        let values = Values::default();
        let capacity = rate.bytes_per_sec();
        let init = RouterInit { values: &values, capacity, delay: Time::ZERO, rng: Rng::stream(1, "gateway/port") };
        let controller = protocol.controller().unwrap_or(protocol);
        let router = controller.router(&init).or_else(|| {
            // A protocol without routers: this one leaves its packets alone.
            explicate_core::registry::protocol("xcp").and_then(|xcp| xcp.router(&init))
        });
        let router = router.ok_or_else(|| Error::Failed("no controller for the port".to_string()))?;
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(std::io::Error::from);
        let state = State {
            rate: capacity,
            queues: Vec::new(),
            turn: 0,
            other: VecDeque::new(),
            plain,
            backlog: (0, 0),
            router: Box::new(Marking::new(router)),
            free_at: Time::ZERO,
            metered_at: Time::ZERO,
            wakers: Vec::new(),
            counters: Counters::default(),
        };
        let wake = wake.or_fail(|| "make an eventfd".to_string())?;
        let port = Arc::new(Port { state: Mutex::new(state), drained: AtomicU64::new(0), wake, clock, parity });
        let runs = port.clone();
        let spawned = thread::Builder::new().name("port".to_string()).spawn(move || runs.run(&socket));
        spawned.or_fail(|| "start a thread".to_string())?;
        Ok(port)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Sets the rate of the line.
    pub fn set_rate(&self, rate: Rate) {
        self.state().rate = rate.bytes_per_sec().max(1.0);
        self.wake();
    }
    /// Plain packets: sent, dropped, refused; and their rate, bytes/s.
    pub fn plain(&self) -> Option<([u64; 3], f64)> {
        self.state().plain.as_ref().map(|plain| (plain.counters, plain.used))
    }
    /// Its counters, its rate (bytes/s), and what waits (bytes, packets).
    pub fn report(&self) -> (Counters, f64, (u64, u32)) {
        let state = self.state();
        (state.counters, state.rate, state.backlog)
    }

    /// Adds the datagrams of a transmission of QUIC, one after another; false if the tunnel has no room for them now.
    pub fn send(&self, tunnel: Option<&Arc<Tunnel>>, to: SocketAddr, contents: &[u8], segment: usize) -> bool {
        let now = self.clock.now();
        let ip_headers = if to.is_ipv4() { 28 } else { 48 };
        let mut state = self.state();
        let Some(tunnel) = tunnel else {
            for contents in contents.chunks(segment) {
                if state.other.len() == MOST_OTHER {
                    state.counters.dropped += 1;
                    continue;
                }
                let mut outgoing = Outgoing { to, packet: bare(contents, ip_headers), bytes: with_room(contents) };
                state.arrive(now, &mut outgoing);
                state.other.push_back(outgoing);
            }
            drop(state);
            self.wake();
            return true;
        };
        let index = state.queues.iter().position(|queue| queue.tunnel.as_ptr() == Arc::as_ptr(tunnel));
        let index = index.unwrap_or_else(|| {
            let (tunnel, waiting) = (Arc::downgrade(tunnel), VecDeque::new());
            state.queues.push(Queue { tunnel, to, waiting, bytes: 0, deficit: 0, last: now, metered: 0, used: 0.0 });
            state.queues.len() - 1
        });
        if state.queues[index].bytes >= state.room() {
            return false;
        }
        let plain = state.plain.as_ref().map_or(0.0, |plain| plain.used);
        let tunnels: f64 = state.queues.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, q)| q.used).sum();
        let others = plain + tunnels;
        let active = state.queues.iter().filter(|q| q.used > 0.0).count().max(1) as f64;
        let spare = (state.rate - others).max(state.rate / active);
        for contents in contents.chunks(segment) {
            let (packet, parity) = tunnel.leave(contents, ip_headers, spare, self.parity);
            state.push(now, index, Outgoing { to, packet, bytes: with_room(contents) });
            for parity in parity.into_iter().flatten() {
                let (packet, bytes) = parity.datagram(tunnel.number, ip_headers);
                state.counters.parity += 1;
                state.push(now, index, Outgoing { to, packet, bytes });
            }
        }
        drop(state);
        self.wake();
        true
    }

    /// Whether a tunnel may have room again since `seen`, which it updates; if not, wakes this task when one has.
    pub fn poll_room(&self, seen: &mut u64, waker: &Waker) -> bool {
        let mut state = self.state();
        let drained = self.drained.load(Ordering::Relaxed);
        let room = state.room();
        if *seen != drained || state.queues.iter().all(|queue| queue.bytes < room) {
            *seen = drained;
            return true;
        }
        state.wakers.retain(|known| !known.will_wake(waker));
        state.wakers.push(waker.clone());
        false
    }

    fn run(&self, socket: &UdpSocket) {
        // As a kernel's router, before all that is not real-time; it takes a few microseconds for a datagram.
        if let Err(reason) = sys::go_first() {
            tracing::info!(%reason, "the port has no real-time scheduling: datagrams leave late on a busy machine");
        }
        let mut waiter = Waiter::new(self.clock);
        let tun = self.state().plain.as_ref().and_then(|plain| plain.fd().try_clone_to_owned().ok());
        let mut ready = Vec::new();
        loop {
            let (until, wakers) = self.turn(&mut ready);
            for waker in wakers {
                waker.wake();
            }
            let mut refused = 0;
            for leaving in ready.drain(..) {
                match leaving {
                    Leaving::Datagram(Outgoing { to, packet, mut bytes }) => {
                        shim::write(&packet, &mut bytes);
                        refused += socket.send_to(&bytes, to).is_err() as u64;
                    }
                    Leaving::Plain(bytes) => {
                        if let Some(plain) = &mut self.state().plain {
                            plain.send(&bytes);
                        }
                    }
                }
            }
            if refused > 0 {
                self.state().counters.refused += refused;
            }
            if until <= self.clock.now() {
                continue;
            }
            let fds = [Some(self.wake.as_fd()), tun.as_ref().map(AsFd::as_fd)];
            let fds: Vec<_> = fds.into_iter().flatten().collect();
            if waiter.wait(&fds, until).is_err() {
                self.clock.sleep_until(until.min(self.clock.now() + Time::millis(1)));
            }
            let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        }
    }

    /// Takes what leaves now; when the next one does, and who waits for room.
    fn turn(&self, ready: &mut Vec<Leaving>) -> (Time, Vec<Waker>) {
        let now = self.clock.now();
        let mut state = self.state();
        state.meter(now);
        let room = state.room();
        let full = state.queues.iter().any(|queue| queue.bytes >= room);
        while state.router.next_timer() <= now {
            let view = state.view();
            state.router.on_timer(now, &view);
        }
        self.finish_blocks(&mut state, now);
        if let Some(plain) = &mut state.plain {
            plain.read(now);
        }
        state.free_at = state.free_at.max(now - CATCH_UP);
        while state.free_at <= now {
            let Some(mut leaving) = state.next(now) else { break };
            let length = match &mut leaving {
                Leaving::Plain(bytes) => bytes.len() as u16,
                Leaving::Datagram(outgoing) => {
                    let length = outgoing.packet.ip_len;
                    state.backlog.0 -= length as u64;
                    state.backlog.1 -= 1;
                    let view = state.view();
                    state.router.on_departure(now, &mut outgoing.packet, &view);
                    length
                }
            };
            let takes = Time::from_secs_f64(length as f64 / state.rate);
            state.free_at += takes;
            state.counters.sent += 1;
            state.counters.bytes += length as u64;
            ready.push(leaving);
        }
        let mut wakers = Vec::new();
        if full && state.queues.iter().any(|queue| queue.bytes < room) {
            self.drained.fetch_add(1, Ordering::Relaxed);
            wakers = std::mem::take(&mut state.wakers);
        }
        let plain = state.plain.as_ref().is_some_and(|plain| plain.waits() != (false, false));
        let departs = if plain || state.backlog.1 > 0 { state.free_at } else { Time::NEVER };
        let open = |queue: &Queue| queue.tunnel.upgrade().is_some_and(|tunnel| tunnel.is_open());
        let ends = state.queues.iter().filter(|q| q.waiting.is_empty() && open(q)).map(|q| q.last + IDLE).min();
        (departs.min(state.router.next_timer()).min(ends.unwrap_or(Time::NEVER)), wakers)
    }

    /// Parity for the last datagrams of tunnels that are idle.
    fn finish_blocks(&self, state: &mut State, now: Time) {
        if !self.parity {
            return;
        }
        for index in 0..state.queues.len() {
            let queue = &state.queues[index];
            if !queue.waiting.is_empty() || now < queue.last + IDLE {
                continue;
            }
            let (to, last) = (queue.to, queue.last);
            let Some(tunnel) = queue.tunnel.upgrade() else { continue };
            for parity in tunnel.finish().into_iter().flatten() {
                let (packet, bytes) = parity.datagram(tunnel.number, if to.is_ipv4() { 28 } else { 48 });
                state.counters.parity += 1;
                state.push(now, index, Outgoing { to, packet, bytes });
                state.queues[index].last = last;
            }
        }
    }
}

impl State {
    fn push(&mut self, now: Time, index: usize, mut outgoing: Outgoing) {
        self.arrive(now, &mut outgoing);
        let queue = &mut self.queues[index];
        queue.bytes += outgoing.packet.ip_len as u64;
        queue.last = now;
        queue.to = outgoing.to;
        queue.waiting.push_back(outgoing);
    }
}

/// Contents with room for the headers before them.
pub fn with_room(contents: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(shim::LEN + contents.len());
    bytes.resize(shim::LEN, 0);
    bytes.extend_from_slice(contents);
    bytes
}

/// The packet of a datagram without a tunnel.
pub fn bare(contents: &[u8], ip_headers: usize) -> Packet {
    use explicate_core::wire::{Congestion, Format};
    shim::packet(0, Congestion::new(Format::Minimal), ip_headers + shim::LEN + contents.len())
}
