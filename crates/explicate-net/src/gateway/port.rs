//! The port by which datagrams leave: the rate of the line, and the controller of a router before it.
//!
//! A tunnel whose queue is full waits: QUIC keeps what it has not sent, and the queue stays short. One thread sends at the times
//! that the line's rate sets. Lateness of the machine is made up for, up to `CATCH_UP`.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use explicate_core::api::{AnyProtocol, RouterInit};
use explicate_core::guard::Marking;
use explicate_core::params::Values;
use explicate_core::presets::DEFAULT_EXPLICIT;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::Ecn;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};

use super::parity::Parity;
use super::plain::Plain;
use super::queues::{Leaving, Outgoing, Queue, Queues};
use super::shim::{self, bare, ip_headers, with_room};
use super::trains::{Mark, Peer, Trains};
use super::tunnel::Tunnel;
use crate::clock::{Clock, Waiter};
use crate::error::{Context, Error, Result};
use crate::sys;

/// Lateness that is made up for.
const CATCH_UP: Time = Time::millis(10);
/// Trains of a look at the line, and the least time between two looks.
const LOOK: u32 = 4;
const LOOK_AGAIN: Time = Time::secs(10);

/// Counters of a port.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    /// Datagrams and plain packets sent.
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
    queues: Queues,
    /// When the line falls free.
    free_at: Time,
    /// Queues that were full after the last turn.
    full: usize,
    wakers: Vec<Waker>,
    counters: Counters,
    /// What measures the line.
    trains: Option<Trains>,
    /// They only look, and set no rate: when they began, and how many may still begin.
    look: Option<(Time, u32)>,
}

/// What ends a wait of the port.
enum Wake {
    /// Of its thread.
    Thread(OwnedFd),
    /// Of its task, in simulated time.
    #[cfg(feature = "simulated")]
    Task(tokio::sync::Notify),
}

/// The port.
pub struct Port {
    state: Mutex<State>,
    /// Rises when a queue has room again.
    drained: AtomicU64,
    wake: Wake,
    clock: Clock,
    parity: bool,
}

impl Port {
    /// A port of this rate with the controller of a protocol, beside these plain packets. Its thread sends by this socket.
    pub fn start(
        protocol: &AnyProtocol,
        rate: Rate,
        (socket, plain): (UdpSocket, Option<Plain>),
        clock: Clock,
        parity: bool,
    ) -> Result<Arc<Port>> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(std::io::Error::from);
        let wake = Wake::Thread(wake.or_fail(|| "make an eventfd".to_string())?);
        let port = Port::new(protocol, rate, plain, (clock, wake), parity)?;
        let runs = port.clone();
        let spawned = thread::Builder::new().name("port".to_string()).spawn(move || runs.run(&socket));
        spawned.or_fail(|| "start a thread".to_string())?;
        Ok(port)
    }
    fn new(
        protocol: &AnyProtocol,
        rate: Rate,
        plain: Option<Plain>,
        (clock, wake): (Clock, Wake),
        parity: bool,
    ) -> Result<Arc<Port>> {
        let values = Values::default();
        let capacity = rate.bytes_per_sec();
        let init = RouterInit { values: &values, capacity, delay: Time::ZERO, rng: Rng::stream(1, "gateway/port") };
        let controller = protocol.controller().unwrap_or(protocol);
        let router = controller.router(&init).or_else(|| {
            // A protocol without routers: this one leaves its packets alone.
            registry::protocol(DEFAULT_EXPLICIT).and_then(|other| other.router(&init))
        });
        let router = router.ok_or_else(|| Error::Failed("no controller for the port".to_string()))?;
        let queues = Queues::new(capacity, Box::new(Marking::new(router)), plain);
        let (wakers, counters) = (Vec::new(), Counters::default());
        let state = State { queues, free_at: Time::ZERO, full: 0, wakers, counters, trains: None, look: None };
        Ok(Arc::new(Port { state: Mutex::new(state), drained: AtomicU64::new(0), wake, clock, parity }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake(&self) {
        match &self.wake {
            Wake::Thread(event) => drop(rustix::io::write(event, &1u64.to_ne_bytes())),
            #[cfg(feature = "simulated")]
            Wake::Task(notify) => notify.notify_one(),
        }
    }

    /// Sets the rate of the line.
    pub fn set_rate(&self, rate: Rate) {
        let mut state = self.state();
        let rate = rate.bytes_per_sec().max(1.0);
        // What was seen at another rate says nothing of this one.
        if state.look.is_some() && rate != state.queues.rate {
            (state.trains, state.look) = (None, None);
        }
        state.queues.rate = rate;
        drop(state);
        self.wake();
    }
    /// Measures the line from now on, and sends no slower than `floor`; or measures no longer. It begins with the present rate.
    pub fn measure(&self, floor: Option<Rate>) {
        let mut state = self.state();
        let (now, rate) = (self.clock.now(), state.queues.rate);
        state.trains = floor.map(|floor| Trains::new(now, rate, floor.bytes_per_sec(), now.0 as u32));
        state.look = None;
    }
    /// Looks whether the line carries more than the port's rate, by a few trains while a queue is full. The rate stays. Nothing is
    /// done if the line is measured anyway, or was looked at lately.
    pub fn look(&self) {
        let mut state = self.state();
        let (now, rate) = (self.clock.now(), state.queues.rate);
        let due = match state.look {
            Some((began, _)) => now.since(began) > LOOK_AGAIN,
            None => state.trains.is_none(),
        };
        if due {
            state.trains = Some(Trains::new(now, rate, rate, now.0 as u32));
            state.look = Some((now, LOOK));
        }
    }
    /// What the line carries, as trains have shown it, bytes/s; and whether they set the rate.
    pub fn found(&self) -> (Option<f64>, bool) {
        let state = self.state();
        (state.trains.as_ref().and_then(Trains::found), state.trains.is_some() && state.look.is_none())
    }
    /// The rate that was measured; `None` if the line is not measured, or no peer takes part in it.
    pub fn measured(&self) -> Option<Rate> {
        let state = self.state();
        let trains = state.trains.as_ref().filter(|trains| !trains.is_unanswered(self.clock.now()))?;
        Some(Rate::bps((8.0 * trains.rate()) as u64))
    }
    /// A mark has arrived in a packet from a peer: it goes back with its time, or it has come back.
    pub fn mark(&self, mark: Mark, peer: Peer) {
        let now = self.clock.now();
        let mut state = self.state();
        if mark.arrived.is_some() {
            state.mark_returned(now, mark);
        } else {
            let mark = Mark { arrived: Some((now.0 / 1000) as u32), ..mark };
            state.queues.push_other(now, marked(mark, peer));
        }
        drop(state);
        self.wake();
    }
    /// Plain packets: sent, dropped, refused; and their rate, bytes/s.
    pub fn plain(&self) -> Option<([u64; 3], f64)> {
        self.state().queues.plain.as_ref().map(|plain| (plain.counters, plain.used))
    }
    /// How many datagrams a tunnel adds at a time.
    pub fn added(&self) -> usize {
        self.state().queues.added()
    }
    /// Its counters, its rate (bytes/s), and what waits (bytes, packets).
    pub fn report(&self) -> (Counters, f64, (u64, u32)) {
        let state = self.state();
        (state.counters, state.queues.rate, state.queues.backlog())
    }

    /// Adds the datagrams of a transmission of QUIC, one after another; false if the tunnel has no room for them now.
    pub fn send(&self, tunnel: Option<&Arc<Tunnel>>, to: SocketAddr, contents: &[u8], segment: usize) -> bool {
        let now = self.clock.now();
        let mut state = self.state();
        let datagrams = contents.chunks(segment);
        let taken = match tunnel {
            Some(tunnel) => state.add(now, (tunnel, self.parity), to, datagrams),
            None => {
                for contents in datagrams {
                    let outgoing = Outgoing { to, packet: bare(contents, ip_headers(to)), bytes: with_room(contents) };
                    state.counters.dropped += !state.queues.push_other(now, outgoing) as u64;
                }
                true
            }
        };
        drop(state);
        if taken {
            self.wake();
        }
        taken
    }

    /// Whether a tunnel may have room again since `seen`, which it updates; if not, wakes this task when one has.
    pub fn poll_room(&self, seen: &mut u64, waker: &Waker) -> bool {
        let mut state = self.state();
        let drained = self.drained.load(Ordering::Relaxed);
        if *seen != drained || state.queues.full() == 0 {
            *seen = drained;
            return true;
        }
        state.wakers.retain(|known| !known.will_wake(waker));
        state.wakers.push(waker.clone());
        false
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        match &self.wake {
            Wake::Thread(event) => Some(event.as_fd()),
            #[cfg(feature = "simulated")]
            Wake::Task(_) => None,
        }
    }
    fn run(&self, socket: &UdpSocket) {
        // As a kernel's router, before all that is not real-time; it takes a few microseconds for a datagram.
        if let Err(reason) = sys::go_first() {
            tracing::info!(%reason, "the port has no real-time scheduling: datagrams leave late on a busy machine");
        }
        // Each thread has its own capabilities.
        if let Err(error) = sys::drop_privileges() {
            tracing::error!(%error, "the port keeps its privileges");
        }
        let mut waiter = Waiter::new(self.clock);
        let tun = self.state().queues.plain.as_ref().and_then(|plain| plain.fd().try_clone_to_owned().ok());
        let mut ready = Vec::new();
        let mut ecn = [0; 2];
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
                        let (is_ipv6, wanted) = (shim::canonical(to).is_ipv6(), packet.ecn());
                        if ecn[is_ipv6 as usize] != wanted as u8 && set_ecn(socket, is_ipv6, wanted).is_ok() {
                            ecn[is_ipv6 as usize] = wanted as u8;
                        }
                        refused += socket.send_to(&bytes, to).is_err() as u64;
                    }
                    Leaving::Plain(bytes) => {
                        if let Some(plain) = &mut self.state().queues.plain {
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
            let fds = [self.event(), tun.as_ref().map(AsFd::as_fd)];
            let fds: Vec<_> = fds.into_iter().flatten().collect();
            if waiter.wait(&fds, until).is_err() {
                self.clock.sleep_until(until.min(self.clock.now() + Time::millis(1)));
            }
            self.event().map(|event| rustix::io::read(event, &mut [0u8; 8]));
        }
    }

    /// A port without a thread: [`Port::drive`] sends, in simulated time.
    #[cfg(feature = "simulated")]
    pub fn simulated(protocol: &AnyProtocol, rate: Rate, clock: Clock, parity: bool) -> Result<Arc<Port>> {
        Port::new(protocol, rate, None, (clock, Wake::Task(tokio::sync::Notify::new())), parity)
    }
    /// Sends what leaves, for ever.
    #[cfg(feature = "simulated")]
    pub async fn drive(self: Arc<Port>, send: impl Fn(SocketAddr, &[u8], Ecn)) {
        let Wake::Task(wake) = &self.wake else { return };
        let mut ready = Vec::new();
        loop {
            let (until, wakers) = self.turn(&mut ready);
            for waker in wakers {
                waker.wake();
            }
            for leaving in ready.drain(..) {
                if let Leaving::Datagram(Outgoing { to, packet, mut bytes }) = leaving {
                    shim::write(&packet, &mut bytes);
                    send(to, &bytes, packet.ecn());
                }
            }
            let wait = std::time::Duration::from_nanos(until.since(self.clock.now()).0);
            let _ = tokio::time::timeout(wait, wake.notified()).await;
        }
    }

    /// Takes what leaves now; when the next one does, and who waits for room.
    fn turn(&self, ready: &mut Vec<Leaving>) -> (Time, Vec<Waker>) {
        let now = self.clock.now();
        let mut state = self.state();
        let full = state.queues.full().max(state.full);
        state.prepare(now, self.parity);
        state.take(now, ready);
        let mut wakers = Vec::new();
        state.full = state.queues.full();
        if state.full < full {
            self.drained.fetch_add(1, Ordering::Relaxed);
            wakers = std::mem::take(&mut state.wakers);
        }
        (state.due(), wakers)
    }
}

impl State {
    /// Adds datagrams of a tunnel, and the parity that follows them; false if it has no room.
    fn add<'a>(
        &mut self,
        now: Time,
        (tunnel, parity): (&Arc<Tunnel>, bool),
        to: SocketAddr,
        datagrams: impl Iterator<Item = &'a [u8]>,
    ) -> bool {
        let index = self.queues.of(tunnel, to, now);
        if self.queues.is_full(index) {
            return false;
        }
        let spare = self.queues.spare(index);
        for contents in datagrams {
            let (packet, parity) = tunnel.leave(contents, ip_headers(to), spare, parity);
            self.queues.push(now, index, Outgoing { to, packet, bytes: with_room(contents) });
            self.add_parity(now, index, tunnel, parity);
        }
        true
    }
    fn add_parity(&mut self, now: Time, index: usize, tunnel: &Tunnel, parity: Option<[Parity; 2]>) {
        let to = self.queues.tunnels[index].to;
        for parity in parity.into_iter().flatten() {
            let (packet, bytes) = parity.datagram(tunnel.number, ip_headers(to));
            self.counters.parity += 1;
            self.queues.push(now, index, Outgoing { to, packet, bytes });
        }
    }

    /// What is due before the next departure: meters, the controller's timers, parity, and packets of the site.
    fn prepare(&mut self, now: Time, parity: bool) {
        self.queues.meter(now);
        while self.queues.router.next_timer() <= now {
            let view = self.queues.view();
            self.queues.router.on_timer(now, &view);
        }
        if parity {
            self.finish_blocks(now);
        }
        if let Some(plain) = &mut self.queues.plain {
            plain.read(now);
        }
    }
    /// Parity for the last datagrams of tunnels that are idle.
    fn finish_blocks(&mut self, now: Time) {
        for index in 0..self.queues.tunnels.len() {
            let queue = &self.queues.tunnels[index];
            let Some(tunnel) = queue.tunnel.upgrade().filter(|_| queue.is_empty()) else { continue };
            let last = queue.last;
            if tunnel.ends_at(last).is_none_or(|at| now < at) {
                continue;
            }
            self.add_parity(now, index, &tunnel, tunnel.end_early(now, self.queues.rate));
            self.queues.tunnels[index].last = last;
        }
    }
    /// Takes what the line carries until now.
    fn take(&mut self, now: Time, ready: &mut Vec<Leaving>) {
        self.free_at = self.free_at.max(now - CATCH_UP);
        while self.free_at <= now {
            ready.extend(self.mark_before(now));
            let Some((leaving, length)) = self.queues.pop(now) else { break };
            self.count(length);
            let tunnel = match &leaving {
                Leaving::Datagram(outgoing) => Some(outgoing.packet.transport.flow()),
                Leaving::Plain(_) => None,
            };
            ready.push(leaving);
            ready.extend(self.mark_behind(now, length, tunnel));
        }
    }
    fn count(&mut self, length: u64) {
        let speed = self.trains.as_ref().map_or(1.0, Trains::speed);
        self.free_at += Time::from_secs_f64(length as f64 / (speed * self.queues.rate));
        self.counters.sent += 1;
        self.counters.bytes += length;
    }
    /// The mark before a train, if one begins.
    fn mark_before(&mut self, now: Time) -> Option<Leaving> {
        let trains = self.trains.as_mut().filter(|trains| trains.is_due(now))?;
        let peer = self.queues.first_full()?;
        if let Some((_, left)) = &mut self.look {
            *left = left.checked_sub(1)?;
        }
        let mark = marked(trains.begin(now, peer), peer);
        self.count(mark.packet.ip_len as u64);
        Some(Leaving::Datagram(mark))
    }
    /// So many bytes have left, of this tunnel: the mark behind a train, if it ends with them.
    fn mark_behind(&mut self, now: Time, length: u64, tunnel: Option<u32>) -> Option<Leaving> {
        let trains = self.trains.as_mut()?;
        let (mark, peer, pause) = trains.left(now, (length, tunnel), self.queues.rate)?;
        let mark = marked(mark, peer);
        trains.end(now, mark.packet.ip_len as u64);
        self.count(mark.packet.ip_len as u64);
        self.free_at += pause;
        Some(Leaving::Datagram(mark))
    }
    /// A mark has come back: its train may have changed the rate.
    fn mark_returned(&mut self, now: Time, mark: Mark) {
        if let Some(trains) = &mut self.trains
            && trains.returned(now, mark)
            && self.look.is_none()
        {
            self.queues.rate = trains.rate();
            for tunnel in self.queues.tunnels.iter().filter_map(|queue| queue.tunnel.upgrade()) {
                tunnel.controller.lock().measures(trains.queue_of_one());
            }
        }
    }
    /// When there is something to do next.
    fn due(&self) -> Time {
        let queues = &self.queues;
        let departs = if queues.any_waits() { self.free_at } else { Time::NEVER };
        let idle = queues.tunnels.iter().filter(|queue| queue.is_empty());
        let ends = idle.filter_map(|queue: &Queue| queue.tunnel.upgrade()?.ends_at(queue.last)).min();
        departs.min(queues.router.next_timer()).min(ends.unwrap_or(Time::NEVER))
    }
}

/// Sets the ECN field (RFC 3168) of what leaves by a socket in packets of one family; a socket of both has two fields.
fn set_ecn(socket: &UdpSocket, is_ipv6: bool, ecn: Ecn) -> std::io::Result<()> {
    let set = if is_ipv6 { set_ipv6_tclass(socket, ecn as u32) } else { set_ip_tos(socket, ecn as u8) };
    Ok(set?)
}

/// The datagram of a mark.
fn marked(mark: Mark, (tunnel, to): Peer) -> Outgoing {
    Outgoing { to, packet: mark.packet(tunnel, ip_headers(to)), bytes: with_room(&[]) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use explicate_core::wire::Congestion;
    use quinn::udp::{RecvMeta, UdpSockRef, UdpSocketState};

    use super::*;
    use crate::patience::PATIENCE;

    /// A port whose socket has both families sends in turns to a peer of each: every packet has its own ECN field.
    #[test]
    fn each_family_of_a_socket_has_its_ecn_field() {
        let from = crate::address::listen("[::]:0".parse().unwrap()).unwrap();
        let to = ["127.0.0.1:0", "[::1]:0"].map(|address| UdpSocket::bind(address).unwrap());
        let states = to.each_ref().map(|socket| {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            UdpSocketState::new(UdpSockRef::from(socket)).unwrap()
        });
        let xcp = registry::protocol(DEFAULT_EXPLICIT).unwrap();
        let port = Port::start(xcp, Rate::mbps(100), (from, None), Clock::start(), false).unwrap();
        for (turn, ecn) in [Ecn::Capable0, Ecn::Capable0, Ecn::NotCapable, Ecn::Capable0].into_iter().enumerate() {
            for (socket, state) in to.iter().zip(&states) {
                let address = match socket.local_addr().unwrap() {
                    SocketAddr::V4(ip) => SocketAddr::new(ip.ip().to_ipv6_mapped().into(), ip.port()),
                    ipv6 => ipv6,
                };
                let mut packet = shim::packet(1, Congestion::NONE, ip_headers(address), 9);
                packet.set_ecn(ecn);
                let outgoing = Outgoing { to: address, packet, bytes: with_room(&[turn as u8; 9]) };
                port.state().queues.push_other(Time::ZERO, outgoing);
                port.wake();
                let (mut block, mut meta) = ([0; 2000], [RecvMeta::default()]);
                let mut buffers = [std::io::IoSliceMut::new(&mut block)];
                // The state makes the socket one that does not wait.
                let mut received = Err(std::io::ErrorKind::WouldBlock.into());
                let until = crate::sys::monotonic() + PATIENCE.as_nanos() as u64;
                while received.is_err() && crate::sys::monotonic() < until {
                    received = state.recv(UdpSockRef::from(socket), &mut buffers, &mut meta);
                    thread::sleep(Duration::from_millis(1));
                }
                assert_eq!(received.unwrap(), 1);
                assert_eq!(meta[0].ecn.map_or(0, |ecn| ecn as u8), ecn as u8, "turn {turn}, {address}");
            }
        }
    }
}
