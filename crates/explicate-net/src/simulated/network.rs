//! Paths between gateways: rates, delays, finite queues, losses, reordering, copies, outages, short packets, and a NAT that changes its
//! port.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use explicate_core::rng::Rng;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::sync::Notify;

use super::record::{Fate, Record, What};
use super::{clock, memory};

/// Bytes of IP and UDP headers.
const HEADERS: usize = 28;
/// Datagrams that a socket keeps.
const MOST_KEPT: usize = 1000;

/// What a path is like, in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Rate, bytes/s.
    pub rate: f64,
    /// How long the line keeps a rate, ns, and the rate that it has every second time, bytes/s.
    pub steps: Option<(u64, f64)>,
    /// Time of a datagram, ns.
    pub delay: u64,
    /// Bytes that wait at most.
    pub queue: u64,
    /// Share of the datagrams that are lost.
    pub loss: f64,
    /// Share of the datagrams that come late, up to 20 ms.
    pub late: f64,
    /// Share of the datagrams that come twice.
    pub copies: f64,
    /// The longest IP packet.
    pub mtu: usize,
}

/// Latest of what comes late, ns.
const LATE: f64 = 20e6;

struct Line {
    path: Path,
    free_at: u64,
    down: bool,
    rng: Rng,
}

struct Delivery {
    from: SocketAddr,
    to: SocketAddr,
    ecn: u8,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct State {
    lines: BTreeMap<(u8, u8), Line>,
    next: u64,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    under_way: BTreeMap<u64, Delivery>,
    /// Sockets keep the network.
    sockets: BTreeMap<SocketAddr, Weak<Udp>>,
    /// What is outside for an address inside.
    nat: BTreeMap<SocketAddr, SocketAddr>,
    /// A host on the path that copies.
    copier: Option<Copier>,
}

/// A host on the path that sends copies of a gateway's datagrams from an address of its own, and may pass back what comes there.
#[derive(Clone, Copy)]
struct Copier {
    of: u8,
    address: SocketAddr,
    passes_back: bool,
}

/// The network.
pub struct Network {
    state: Mutex<State>,
    changed: Notify,
    record: Arc<Record>,
}

/// The address of a gateway.
pub fn address(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number + 1], 49_407))
}
fn number(address: SocketAddr) -> u8 {
    match address {
        SocketAddr::V4(address) => address.ip().octets()[3] - 1,
        SocketAddr::V6(_) => 0,
    }
}

impl Network {
    /// One without paths.
    pub fn new(record: Arc<Record>) -> Network {
        Network { state: Mutex::default(), changed: Notify::new(), record }
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds a path between two gateways, with faults of this seed.
    pub fn connect(&self, one: u8, other: u8, path: Path, seed: u64) {
        for (from, to) in [(one, other), (other, one)] {
            let rng = Rng::stream(seed, &format!("path {from} {to}"));
            self.state().lines.insert((from, to), Line { path, free_at: 0, down: false, rng });
        }
    }
    /// Tells something.
    pub fn tell(&self, text: String) {
        self.record.add(What::World(text));
    }
    /// Both directions between two gateways fail, or work again.
    pub fn set_down(&self, one: u8, other: u8, down: bool) {
        let mut state = self.state();
        for ends in [(one, other), (other, one)] {
            if let Some(line) = state.lines.get_mut(&ends) {
                line.down = down;
            }
        }
    }
    /// Changes a path.
    pub fn change(&self, one: u8, other: u8, change: impl Fn(&mut Path)) {
        let mut state = self.state();
        for ends in [(one, other), (other, one)] {
            if let Some(line) = state.lines.get_mut(&ends) {
                change(&mut line.path);
            }
        }
    }
    /// Others have filled the queue from one gateway to another with so much, ns of the line.
    pub fn fill(&self, from: u8, to: u8, queue: u64) {
        if let Some(line) = self.state().lines.get_mut(&(from, to)) {
            line.free_at = line.free_at.max(clock::elapsed() + queue);
        }
    }
    /// What comes from a gateway comes from this port from now on, and what is sent to another one is lost.
    pub fn rebind(&self, gateway: u8, port: u16) {
        let inside = address(gateway);
        self.state().nat.insert(inside, SocketAddr::new(inside.ip(), port));
    }
    /// From now on each datagram of a gateway comes from another address, too, and from there first. What is sent to that address is passed
    /// to the gateway, or lost.
    pub fn copy_from(&self, gateway: u8, address: SocketAddr, passes_back: bool) {
        self.state().copier = Some(Copier { of: gateway, address, passes_back });
    }
    /// Opens the socket of a gateway.
    pub fn open(self: &Arc<Network>, gateway: u8) -> Arc<Udp> {
        let socket = Arc::new(Udp { network: self.clone(), address: address(gateway), inbox: Mutex::default() });
        self.state().sockets.insert(socket.address, Arc::downgrade(&socket));
        socket
    }
    /// Closes it.
    pub fn close(&self, gateway: u8) {
        self.state().sockets.remove(&address(gateway));
    }

    /// A gateway sends a datagram.
    fn send(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8], ecn: u8) {
        memory::of(None, || self.takes(from, to, bytes, ecn));
    }
    fn takes(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8], ecn: u8) {
        let now = clock::elapsed();
        let mut state = self.state();
        // What a killed program still has is not sent.
        if !state.sockets.contains_key(&from) {
            return;
        }
        let copier = state.copier;
        let to = match copier.filter(|copier| copier.passes_back && copier.address == to) {
            Some(Copier { of, .. }) => state.nat.get(&address(of)).copied().unwrap_or(address(of)),
            None => to,
        };
        let (ends, length) = ((number(from), number(to)), bytes.len() + HEADERS);
        let from = state.nat.get(&from).copied().unwrap_or(from);
        let Some(line) = state.lines.get_mut(&ends) else { return };
        let fate = line.fate(now, length);
        self.record.add(What::Datagram(ends.0, ends.1, length as u32, fate));
        if fate != Fate::Arrives {
            return;
        }
        let mut arrives = line.departs(now, length) + line.path.delay;
        if line.rng.uniform() < line.path.late {
            arrives += (line.rng.uniform() * LATE) as u64;
        }
        let copies = 1 + (line.rng.uniform() < line.path.copies) as usize;
        let elsewhere = copier.filter(|copier| copier.of == ends.0).map(|copier| copier.address);
        for from in elsewhere.into_iter().chain(std::iter::repeat_n(from, copies)) {
            let at = state.next;
            state.next += 1;
            state.due.push(Reverse((arrives, at)));
            state.under_way.insert(at, Delivery { from, to, ecn, bytes: bytes.to_vec() });
        }
        drop(state);
        self.changed.notify_one();
    }
    /// A packet of this length that is no gateway's leaves by the path between two: when its acknowledgement is back, unless it is lost.
    pub fn carry(&self, who: u8, (from, to): (u8, u8), length: usize) -> Option<u64> {
        let (now, mut state) = (clock::elapsed(), self.state());
        let line = state.lines.get_mut(&(from, to))?;
        let fate = line.fate(now, length);
        self.record.add(What::Datagram(who, to, length as u32, fate));
        (fate == Fate::Arrives).then(|| line.departs(now, length) + 2 * line.path.delay)
    }
    /// Delivers datagrams at their times, until the scene ends.
    pub async fn drive(self: Arc<Network>) {
        loop {
            let (mut ready, mut next) = (Vec::new(), None);
            {
                let (mut state, now) = (self.state(), clock::elapsed());
                while let Some(&Reverse((at, handle))) = state.due.peek() {
                    if at > now {
                        next = Some(at);
                        break;
                    }
                    state.due.pop();
                    ready.extend(state.under_way.remove(&handle));
                }
            }
            for delivery in ready {
                self.deliver(delivery);
            }
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = clock::until(next) => {}
            }
        }
    }
    fn deliver(&self, delivery: Delivery) {
        let state = self.state();
        let inside = address(number(delivery.to));
        // A NAT knows only its present port.
        let outside = state.nat.get(&inside).copied().unwrap_or(inside);
        if let Some(socket) = state.sockets.get(&inside).filter(|_| outside == delivery.to).and_then(Weak::upgrade) {
            drop(state);
            socket.take(delivery);
        }
    }
}

impl Line {
    fn rate(&self, now: u64) -> f64 {
        let other = self.path.steps.filter(|(step, _)| now / step % 2 == 1);
        other.map_or(self.path.rate, |(_, rate)| rate)
    }
    /// When a packet has left that joins the queue now.
    fn departs(&mut self, now: u64, length: usize) -> u64 {
        self.free_at = self.free_at.max(now) + (length as f64 / self.rate(now) * 1e9) as u64;
        self.free_at
    }
    fn fate(&mut self, now: u64, length: usize) -> Fate {
        let lost = self.rng.uniform() < self.path.loss;
        let waits = self.free_at.saturating_sub(now) as f64 / 1e9 * self.rate(now);
        if self.down {
            Fate::Down
        } else if length > self.path.mtu {
            Fate::TooLong
        } else if lost {
            Fate::Lost
        } else if waits as u64 + length as u64 > self.path.queue {
            Fate::Full
        } else {
            Fate::Arrives
        }
    }
}

#[derive(Default)]
struct Inbox {
    waiting: VecDeque<Delivery>,
    waker: Option<Waker>,
}

/// The UDP socket of a gateway.
pub struct Udp {
    network: Arc<Network>,
    address: SocketAddr,
    inbox: Mutex<Inbox>,
}

impl fmt::Debug for Udp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Udp {}", self.address)
    }
}

impl Udp {
    /// Sends a datagram with this ECN field.
    pub fn send(&self, to: SocketAddr, bytes: &[u8], ecn: u8) {
        self.network.send(self.address, to, bytes, ecn);
    }
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn take(&self, delivery: Delivery) {
        let mut inbox = self.inbox();
        if inbox.waiting.len() < MOST_KEPT {
            inbox.waiting.push_back(delivery);
        }
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[derive(Debug)]
struct Always;

impl UdpPoller for Always {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncUdpSocket for Udp {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Always)
    }
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for bytes in transmit.contents.chunks(segment) {
            self.send(transmit.destination, bytes, transmit.ecn.map_or(0, |ecn| ecn as u8));
        }
        Ok(())
    }
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut inbox = self.inbox();
        let mut count = 0;
        for (buffer, meta) in bufs.iter_mut().zip(meta) {
            let Some(Delivery { from, ecn, bytes, .. }) = inbox.waiting.pop_front() else { break };
            let len = bytes.len().min(buffer.len());
            buffer[..len].copy_from_slice(&bytes[..len]);
            let ecn = EcnCodepoint::from_bits(ecn);
            *meta = RecvMeta { addr: from, len, stride: len.max(1), ecn, dst_ip: None };
            count += 1;
        }
        if count == 0 {
            inbox.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(count))
    }
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
    fn may_fragment(&self) -> bool {
        false
    }
}
