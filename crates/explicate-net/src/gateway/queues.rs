//! What waits at the [`Port`](super::port::Port), and what leaves next.
//!
//! Datagrams of connections that are being set up go first, then voice up to its share of the line. Tunnels, and the other plain
//! packets together, take turns by bytes: deficit round robin in the form of RFC 8290 section 4.2, as between the classes of
//! [`explicate_core::port`]. Those are fixed when a port is made and have a controller each; tunnels come and go, and share one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use explicate_core::api::{AnyRouter, PortView};
use explicate_core::units::Time;
use explicate_core::wire::Packet;

use super::parity::Parity;
use super::plain::{Plain, VOICE_SHARE};
use super::tunnel::Tunnel;

/// The longest queue of all tunnels, which share it: so long it takes to send, or two datagrams beside those that a tunnel adds at a time.
const MOST_QUEUED: Time = Time::millis(1);
/// Bytes of a datagram.
const DATAGRAM: u64 = 1_500;
/// Tunnels add so many datagrams at a time, which costs less, and one at a time where one takes longer than `MOST_QUEUED`.
pub const ADDED: usize = 2;
/// Bytes credited in a turn.
const QUANTUM: i64 = 1_500;
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

/// A datagram in the queue of a tunnel, and when it joined it.
type Queued = (Outgoing, Time);

/// What leaves.
pub enum Leaving {
    /// A datagram of QUIC.
    Datagram(Outgoing),
    /// A packet of the site.
    Plain(Vec<u8>),
}

/// The queue of a tunnel.
pub struct Queue {
    /// The tunnel.
    pub tunnel: Weak<Tunnel>,
    /// Its peer.
    pub to: SocketAddr,
    /// When its last datagram arrived.
    pub last: Time,
    waiting: VecDeque<Queued>,
    bytes: u64,
    credit: i64,
    /// Bytes since the meter was read, and the rate, bytes/s.
    metered: u64,
    used: f64,
}

impl Queue {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// All that waits.
pub struct Queues {
    /// Rate of the line, bytes/s.
    pub rate: f64,
    /// The controller of the line.
    pub router: Box<AnyRouter>,
    /// Packets of the site.
    pub plain: Option<Plain>,
    /// Queues of tunnels.
    pub tunnels: Vec<Queue>,
    /// Whose turn it is: a tunnel, or behind the last one the plain packets.
    turn: usize,
    /// Datagrams without a tunnel.
    other: VecDeque<Outgoing>,
    /// Bytes and datagrams that wait.
    backlog: (u64, u32),
    metered_at: Time,
}

impl Queues {
    /// Queues before a line of this rate (bytes/s) with this controller.
    pub fn new(rate: f64, router: Box<AnyRouter>, plain: Option<Plain>) -> Queues {
        let (tunnels, other) = (Vec::new(), VecDeque::new());
        Queues { rate, router, plain, tunnels, turn: 0, other, backlog: (0, 0), metered_at: Time::ZERO }
    }
    /// Bytes and datagrams that wait.
    pub fn backlog(&self) -> (u64, u32) {
        self.backlog
    }
    /// Whether plain packets wait.
    fn plain_waits(&self) -> bool {
        self.plain.as_ref().is_some_and(|plain| plain.waits() != (false, false))
    }
    /// Whether anything waits.
    pub fn any_waits(&self) -> bool {
        self.backlog.1 > 0 || self.plain_waits()
    }
    /// What the controller sees.
    pub fn view(&self) -> PortView {
        let (backlog_bytes, backlog_packets) = self.backlog;
        // The controller shares out what plain packets leave, and no less than their turns leave.
        let used = self.plain.as_ref().map_or(0.0, |plain| plain.used);
        let tunnels = self.tunnels.len().max(1) as f64;
        let capacity = (self.rate - used).max(self.rate * tunnels / (tunnels + 1.0));
        PortView { capacity, backlog_bytes, backlog_packets, busy: false }
    }
    /// The place of a tunnel's queue, which is made if there is none.
    pub fn of(&mut self, tunnel: &Arc<Tunnel>, to: SocketAddr, now: Time) -> usize {
        let known = self.tunnels.iter().position(|queue| queue.tunnel.as_ptr() == Arc::as_ptr(tunnel));
        known.unwrap_or_else(|| {
            let (tunnel, waiting) = (Arc::downgrade(tunnel), VecDeque::new());
            self.tunnels.push(Queue { tunnel, to, last: now, waiting, bytes: 0, credit: 0, metered: 0, used: 0.0 });
            self.tunnels.len() - 1
        })
    }
    /// How many datagrams a tunnel adds at a time.
    pub fn added(&self) -> usize {
        if DATAGRAM as f64 > self.rate * MOST_QUEUED.as_secs_f64() { 1 } else { ADDED }
    }
    /// Bytes that a tunnel's queue may hold.
    fn room(&self) -> u64 {
        let least = (1 + self.added() as u64) * DATAGRAM;
        let active = self.tunnels.iter().filter(|tunnel| tunnel.used > 0.0).count().max(1) as u64;
        least.max((self.rate * MOST_QUEUED.as_secs_f64()) as u64) / active
    }
    /// Whether a tunnel's queue has no room for what it adds; an empty one always has.
    pub fn is_full(&self, index: usize) -> bool {
        let bytes = self.tunnels[index].bytes;
        bytes > 0 && bytes + self.added() as u64 * DATAGRAM > self.room()
    }
    /// How many queues are full.
    pub fn full(&self) -> usize {
        (0..self.tunnels.len()).filter(|&index| self.is_full(index)).count()
    }
    /// The first tunnel whose queue is full, and its peer.
    pub fn first_full(&self) -> Option<(u32, SocketAddr)> {
        let full = (0..self.tunnels.len()).find(|&index| self.is_full(index))?;
        let queue = &self.tunnels[full];
        Some((queue.tunnel.upgrade()?.number, queue.to))
    }
    /// What the line has to spare for a tunnel, bytes/s: what the others leave, and no less than an equal share.
    pub fn spare(&self, index: usize) -> f64 {
        let plain = self.plain.as_ref().map_or(0.0, |plain| plain.used);
        let tunnels: f64 = self.tunnels.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, q)| q.used).sum();
        let active = self.tunnels.iter().filter(|queue| queue.used > 0.0).count().max(1) as f64;
        (self.rate - plain - tunnels).max(self.rate / active)
    }
    fn arrive(&mut self, now: Time, outgoing: &mut Outgoing) {
        let view = self.view();
        self.router.on_arrival(now, &mut outgoing.packet, &view);
        self.backlog.0 += outgoing.packet.ip_len as u64;
        self.backlog.1 += 1;
    }
    /// Adds a datagram to the queue of a tunnel.
    pub fn push(&mut self, now: Time, index: usize, mut outgoing: Outgoing) {
        self.arrive(now, &mut outgoing);
        let queue = &mut self.tunnels[index];
        queue.bytes += outgoing.packet.ip_len as u64;
        queue.last = now;
        queue.to = outgoing.to;
        queue.waiting.push_back((outgoing, now));
    }
    /// Adds a datagram without a tunnel; false if there is no room.
    pub fn push_other(&mut self, now: Time, mut outgoing: Outgoing) -> bool {
        let room = self.other.len() < MOST_OTHER;
        if room {
            self.arrive(now, &mut outgoing);
            self.other.push_back(outgoing);
        }
        room
    }

    /// What leaves next, and its bytes.
    pub fn pop(&mut self, now: Time) -> Option<(Leaving, u64)> {
        match self.next(now)? {
            Leaving::Plain(bytes) => {
                let length = bytes.len() as u64;
                Some((Leaving::Plain(bytes), length))
            }
            Leaving::Datagram(mut outgoing) => {
                let length = outgoing.packet.ip_len as u64;
                self.backlog.0 -= length;
                self.backlog.1 -= 1;
                let view = self.view();
                self.router.on_departure(now, &mut outgoing.packet, &view);
                Some((Leaving::Datagram(outgoing), length))
            }
        }
    }
    fn next(&mut self, now: Time) -> Option<Leaving> {
        if let Some(outgoing) = self.other.pop_front() {
            return Some(Leaving::Datagram(outgoing));
        }
        let most = VOICE_SHARE * self.rate * METER.as_secs_f64();
        if let Some(plain) = self.plain.as_mut().filter(|plain| (plain.metered_voice as f64) < most)
            && let Some(bytes) = plain.next_voice()
        {
            return Some(Leaving::Plain(bytes));
        }
        while let Some(index) = self.whose_turn() {
            let next = if index < self.tunnels.len() { self.next_of(now, index) } else { self.next_plain(now) };
            if next.is_some() {
                return next;
            }
        }
        None
    }
    /// Who is next among those with something that waits.
    fn whose_turn(&mut self) -> Option<usize> {
        if !self.plain_waits() && self.tunnels.iter().all(Queue::is_empty) {
            return None;
        }
        loop {
            self.turn %= self.tunnels.len() + 1;
            let (waits, credit) = match self.tunnels.get_mut(self.turn) {
                Some(queue) => (!queue.waiting.is_empty(), Some(&mut queue.credit)),
                None => (self.plain_waits(), self.plain.as_mut().map(|plain| &mut plain.credit)),
            };
            match credit {
                Some(credit) if waits && *credit > 0 => return Some(self.turn),
                Some(credit) if waits => *credit += QUANTUM,
                Some(credit) => *credit = 0,
                None => {}
            }
            self.turn += 1;
        }
    }
    fn next_of(&mut self, now: Time, index: usize) -> Option<Leaving> {
        let queue = &mut self.tunnels[index];
        let (outgoing, joined) = queue.waiting.pop_front()?;
        if let Some(tunnel) = queue.tunnel.upgrade().filter(|_| !Parity::is_in(&outgoing.packet)) {
            tunnel.controller.lock().leaves_port(joined, now);
        }
        let length = outgoing.packet.ip_len as u64;
        queue.credit -= length as i64;
        queue.bytes -= length;
        queue.metered += length;
        Some(Leaving::Datagram(outgoing))
    }
    fn next_plain(&mut self, now: Time) -> Option<Leaving> {
        let plain = self.plain.as_mut()?;
        let bytes = plain.next(now).or_else(|| plain.next_voice())?;
        plain.credit -= bytes.len() as i64;
        Some(Leaving::Plain(bytes))
    }

    /// Takes the rates, and removes the queues of tunnels that have ended.
    pub fn meter(&mut self, now: Time) {
        let seconds = now.since(self.metered_at).as_secs_f64();
        if seconds < METER.as_secs_f64() {
            return;
        }
        self.metered_at = now;
        if let Some(plain) = &mut self.plain {
            plain.used = std::mem::take(&mut plain.metered) as f64 / seconds;
            plain.metered_voice = 0;
        }
        for queue in &mut self.tunnels {
            queue.used = std::mem::take(&mut queue.metered) as f64 / seconds;
        }
        self.tunnels.retain(|queue| queue.tunnel.strong_count() > 0 || !queue.waiting.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::api::RouterInit;
    use explicate_core::params::Values;
    use explicate_core::registry;
    use explicate_core::rng::Rng;
    use explicate_core::units::Rate;

    use super::super::controller::ControllerConfig;
    use super::super::shim::bare;
    use super::*;
    use crate::clock::Clock;

    /// Queues before a line of this rate, bytes/s, and so many tunnels.
    fn queues(rate: f64, tunnels: usize) -> (Queues, Vec<Arc<Tunnel>>) {
        let (protocol, values) = (registry::protocol("xcp").unwrap(), Values::default());
        let rng = Rng::stream(1, "gateway/test");
        let init = RouterInit { values: &values, capacity: rate, delay: Time::ZERO, rng };
        let config = ControllerConfig::new(protocol, 0.0);
        let new = || Tunnel::new(1, &config, Rate::bps(8 * rate as u64), Clock::start());
        (Queues::new(rate, protocol.router(&init).unwrap(), None), (0..tunnels).map(|_| new()).collect())
    }

    fn datagram(length: usize, index: usize) -> Outgoing {
        let to = "192.0.2.1:9".parse().unwrap();
        Outgoing { to, packet: bare(&vec![0; length], 28), bytes: vec![index as u8] }
    }

    /// Tunnels that send whenever they have room, two datagrams at a time: a millisecond of the line's rate waits at most, or two
    /// datagrams each.
    #[test]
    fn the_room_of_the_queue_is_shared() {
        for (count, most) in [(1, 4), (2, 4), (3, 6)] {
            let (mut queues, tunnels) = queues(6e6, count);
            let mut now = Time::ZERO;
            let mut most_seen = 0;
            for _ in 0..2000 {
                for (index, tunnel) in tunnels.iter().enumerate() {
                    queues.of(tunnel, "192.0.2.1:9".parse().unwrap(), now);
                    while !queues.is_full(index) {
                        (0..2).for_each(|_| queues.push(now, index, datagram(1400, index)));
                    }
                }
                if now > Time::millis(200) {
                    most_seen = most_seen.max(queues.backlog().1);
                }
                queues.pop(now);
                now += Time::micros(250);
                queues.meter(now);
            }
            assert_eq!(most_seen, most, "{count} tunnels");
        }
    }

    #[test]
    fn tunnels_share_the_line_by_bytes_whatever_their_packets_are() {
        let (mut queues, tunnels) = queues(1e6, 3);
        let mut sent = [0; 3];
        for (index, length) in [1400, 700, 100].into_iter().enumerate() {
            assert_eq!(queues.of(&tunnels[index], "192.0.2.1:9".parse().unwrap(), Time::ZERO), index);
            for _ in 0..200_000 / length {
                queues.push(Time::ZERO, index, datagram(length, index));
            }
        }
        while sent.iter().sum::<u64>() < 400_000 {
            let Some((Leaving::Datagram(outgoing), length)) = queues.pop(Time::ZERO) else { panic!("nothing leaves") };
            sent[outgoing.bytes[0] as usize] += length;
        }
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(most - least <= 2 * QUANTUM as u64, "{sent:?}");
        while queues.pop(Time::ZERO).is_some() {}
        assert_eq!((queues.backlog(), queues.any_waits()), ((0, 0), false));
        drop(tunnels);
        queues.meter(Time::secs(1));
        assert!(queues.tunnels.is_empty());
    }
}
