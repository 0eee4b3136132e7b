//! QUIC's socket: adds headers to datagrams that leave, removes them from those that arrive, and sends by the [`Port`].

#[cfg(feature = "simulated")]
use std::collections::BTreeSet;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::{Context, Poll};

use explicate_core::units::Time;
use explicate_core::wire::Packet;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

use super::parity::Parity;
use super::place::{Number, Taken, number};
use super::port::Port;
use super::shim::{self, LEN, bare, canonical, ip_headers, with_room};
use super::trains::Mark;
use super::tunnel::Tunnel;
use crate::sys;

/// Most datagrams in one transmission.
const SEGMENTS: usize = 2;
/// Most repaired datagrams that wait.
const MOST_REPAIRED: usize = 64;

/// Tunnels by the addresses of peers, and by the numbers of their connections.
#[derive(Default)]
pub struct Tunnels {
    known: RwLock<Known>,
    /// Knows the numbers that this program has given to connections; without it no tunnel moves.
    numbers: Option<Box<dyn ConnectionIdGenerator>>,
    /// Datagrams without valid headers.
    pub malformed: AtomicU64,
}

#[derive(Default)]
struct Known {
    addresses: BTreeMap<SocketAddr, Arc<Tunnel>>,
    numbers: BTreeMap<Number, Arc<Tunnel>>,
}

impl Known {
    fn remove(&mut self, peer: SocketAddr, tunnel: &Arc<Tunnel>) {
        if self.addresses.get(&peer).is_some_and(|current| Arc::ptr_eq(current, tunnel)) {
            self.addresses.remove(&peer);
        }
    }
}

/// Whose a datagram is.
enum Whose {
    /// A tunnel's.
    Of(Arc<Tunnel>),
    /// No tunnel's: QUIC decides.
    Unknown,
    /// A tunnel's, but from an address to which its peer has not moved: dropped.
    Elsewhere,
}

impl Tunnels {
    /// Those of a program that has given such numbers to its connections: their peers may move.
    pub fn moving(numbers: impl ConnectionIdGenerator + 'static) -> Tunnels {
        Tunnels { numbers: Some(Box::new(numbers)), ..Tunnels::default() }
    }
    /// How many there are.
    #[cfg(feature = "simulated")]
    pub fn count(&self) -> usize {
        let known = self.read();
        known.addresses.values().chain(known.numbers.values()).map(Arc::as_ptr).collect::<BTreeSet<_>>().len()
    }
    /// Forgets all of them.
    #[cfg(feature = "simulated")]
    pub fn clear(&self) {
        *self.write() = Known::default();
    }
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
    /// The tunnel with a peer.
    pub fn get(&self, peer: SocketAddr) -> Option<Arc<Tunnel>> {
        self.read().addresses.get(&canonical(peer)).cloned()
    }
    /// Adds that of a handshake, which may be a replayed one: not in place of another.
    pub fn add(&self, peer: SocketAddr, tunnel: Arc<Tunnel>) {
        self.write().addresses.entry(canonical(peer)).or_insert(tunnel);
    }
    /// Sets it: the peer is there.
    pub fn set(&self, peer: SocketAddr, tunnel: Arc<Tunnel>) {
        tunnel.place().settle(canonical(peer));
        self.write().addresses.insert(canonical(peer), tunnel);
    }
    /// Removes one, wherever its peer is.
    pub fn remove(&self, tunnel: &Arc<Tunnel>) {
        let mut known = self.write();
        known.addresses.retain(|_, other| !Arc::ptr_eq(other, tunnel));
        known.numbers.retain(|_, other| !Arc::ptr_eq(other, tunnel));
    }
    /// QUIC is at this address of a peer now: the one that it had, if it has moved for good.
    pub fn confirm(&self, peer: SocketAddr, tunnel: &Arc<Tunnel>) -> Option<SocketAddr> {
        let (mut known, peer, now) = (self.write(), canonical(peer), Time(sys::monotonic()));
        if tunnel.place().notices(peer, now) {
            known.addresses.entry(peer).or_insert_with(|| tunnel.clone());
        }
        let before = tunnel.place().confirm(peer, now)?;
        known.remove(before, tunnel);
        Some(before)
    }

    /// Whose a datagram from an address is, with this number of a connection.
    fn whose(&self, from: SocketAddr, number: Option<Number>) -> Whose {
        let from = canonical(from);
        let known = self.read();
        let by_number = number.and_then(|number| known.numbers.get(&number));
        let knows = by_number.is_some();
        let Some(tunnel) = by_number.or_else(|| known.addresses.get(&from)).cloned() else { return Whose::Unknown };
        let mut place = tunnel.place();
        // A forged source: a peer that is elsewhere may not take another's place.
        let is_another = |other: &Arc<Tunnel>| !Arc::ptr_eq(&tunnel, other);
        if knows && place.home() != Some(from) && known.addresses.get(&from).is_some_and(is_another) {
            return Whose::Elsewhere;
        }
        drop(known);
        let taken = place.takes(from, knows, Time(sys::monotonic()));
        drop(place);
        match taken {
            Taken::No => return Whose::Elsewhere,
            Taken::Moves(before) => {
                let mut known = self.write();
                known.addresses.insert(from, tunnel.clone());
                before.inspect(|before| known.remove(*before, &tunnel));
            }
            Taken::Yes => {}
        }
        if let Some(number) = number.filter(|_| !knows) {
            self.learn(number, from, &tunnel);
        }
        Whose::Of(tunnel)
    }
    /// A datagram from where a peer is has a number that this program has given out: no stranger could make one up.
    fn learn(&self, number: Number, from: SocketAddr, tunnel: &Arc<Tunnel>) {
        let Some(numbers) = &self.numbers else { return };
        if tunnel.place().home() != Some(from) || numbers.validate(&ConnectionId::new(&number)).is_err() {
            return;
        }
        let mut known = self.write();
        let before = tunnel.place().number.replace(number);
        before.inspect(|before| drop(known.numbers.remove(before)));
        known.numbers.insert(number, tunnel.clone());
    }
}

/// Answers a datagram that is not QUIC's, if it has an answer.
pub type Answer = Box<dyn FnMut(SocketAddr, &[u8]) -> Option<Vec<u8>> + Send>;

/// QUIC's socket.
pub struct Socket {
    inner: Arc<dyn AsyncUdpSocket>,
    port: Option<Arc<Port>>,
    tunnels: Arc<Tunnels>,
    repaired: Mutex<VecDeque<(SocketAddr, Vec<u8>)>>,
    others: Option<Mutex<Answer>>,
    /// Without a port: the last datagram's connection sends one by one.
    singly: AtomicBool,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Socket")
    }
}

impl Socket {
    /// Around the system's socket; without a port datagrams leave at once.
    pub fn new(inner: Arc<dyn AsyncUdpSocket>, port: Option<Arc<Port>>, tunnels: Arc<Tunnels>) -> Socket {
        Socket { inner, port, tunnels, repaired: Mutex::default(), others: None, singly: AtomicBool::new(true) }
    }
    /// The same with answers to other datagrams than QUIC's.
    pub fn answering(self, others: Answer) -> Socket {
        Socket { others: Some(Mutex::new(others)), ..self }
    }

    /// Removes the headers of the datagrams in a buffer, in place; the bytes that are left.
    fn strip(&self, buffer: &mut [u8], meta: &RecvMeta) -> (usize, usize) {
        let (mut at, mut end) = (0, 0);
        let stride = meta.stride.max(1);
        // All of a buffer come from one address.
        let first = &buffer[..stride.min(meta.len)];
        let number = shim::read(first).ok().filter(|packet| !Parity::is_in(packet)).and_then(|_| number(&first[LEN..]));
        let tunnel = match self.tunnels.whose(meta.addr, number) {
            Whose::Of(tunnel) => Some(tunnel),
            Whose::Unknown => None,
            Whose::Elsewhere => return (0, stride.saturating_sub(LEN)),
        };
        let ecn = meta.ecn.map_or(0, |ecn| ecn as u8);
        while at < meta.len {
            let length = stride.min(meta.len - at);
            let datagram = &buffer[at..at + length];
            let keep = match shim::read(datagram).map(|packet| Packet { tos: ecn, ..packet }) {
                Err(_) => {
                    if !self.answer(meta, datagram) {
                        self.tunnels.malformed.fetch_add(1, Ordering::Relaxed);
                    }
                    false
                }
                Ok(packet) => match &tunnel {
                    None => !Parity::is_in(&packet),
                    Some(tunnel) => self.arrive(tunnel, &packet, &datagram[shim::LEN..], meta.addr),
                },
            };
            // Datagrams of a buffer have one length, but for the last.
            if keep && length > shim::LEN {
                buffer.copy_within(at + shim::LEN..at + length, end);
                end += length - shim::LEN;
            }
            at += length;
        }
        (end, stride.saturating_sub(shim::LEN))
    }
    /// A datagram of a tunnel has arrived: whether QUIC is to have it.
    fn arrive(&self, tunnel: &Tunnel, packet: &Packet, contents: &[u8], peer: SocketAddr) -> bool {
        if let Some(mark) = Mark::read(packet) {
            if let Some(port) = &self.port {
                let mark = if mark.arrived.is_some() { mark } else { tunnel.count(mark, packet.ip_len) };
                port.mark(mark, (tunnel.number, canonical(peer)));
            }
            return false;
        }
        let (keep, repaired) = tunnel.arrive(packet, contents);
        repaired.into_iter().for_each(|datagram| self.repair(peer, datagram));
        keep
    }
    /// Answers a datagram that is not QUIC's; whether it has an answer.
    fn answer(&self, meta: &RecvMeta, datagram: &[u8]) -> bool {
        let Some(others) = &self.others else { return false };
        let answer = others.lock().unwrap_or_else(PoisonError::into_inner)(meta.addr, datagram);
        let Some(contents) = &answer else { return false };
        let (destination, src_ip) = (meta.addr, meta.dst_ip);
        // Lost if the socket is full, as by a network.
        let _ = self.inner.try_send(&Transmit { destination, ecn: None, contents, segment_size: None, src_ip });
        true
    }
    fn repair(&self, peer: SocketAddr, datagram: Vec<u8>) {
        let mut repaired = self.repaired.lock().unwrap_or_else(PoisonError::into_inner);
        if repaired.len() < MOST_REPAIRED {
            repaired.push_back((peer, datagram));
        }
    }
    /// Delivers repaired datagrams into free buffers; how many.
    fn deliver(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let mut repaired = self.repaired.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = 0;
        for (buffer, meta) in bufs.iter_mut().zip(meta) {
            let Some((addr, datagram)) = repaired.pop_front() else { break };
            let length = datagram.len().min(buffer.len());
            buffer[..length].copy_from_slice(&datagram[..length]);
            *meta = RecvMeta { addr, len: length, stride: length.max(1), ecn: None, dst_ip: None };
            count += 1;
        }
        count
    }

    /// Sends without a port.
    fn send_directly(&self, transmit: &Transmit<'_>, segment: usize) -> io::Result<()> {
        let tunnel = self.tunnels.get(transmit.destination);
        let singly = tunnel.as_ref().is_some_and(|tunnel| tunnel.controller.lock().sends_singly());
        self.singly.store(singly, Ordering::Relaxed);
        let headers = ip_headers(transmit.destination);
        let (mut all, mut ecn) = (Vec::with_capacity(transmit.contents.len() + SEGMENTS * shim::LEN), None);
        let mut again = None;
        for contents in transmit.contents.chunks(segment) {
            let packet = match &tunnel {
                Some(tunnel) => {
                    // A short one that a host waits for leaves twice: its parity is a copy.
                    let short = contents.len() < shim::SHORT;
                    let packet = tunnel.leave(contents, headers, 0.0, short).0;
                    again = again.or(short.then(|| tunnel.finish()).flatten());
                    packet
                }
                None => bare(contents, headers),
            };
            let mut bytes = with_room(contents);
            shim::write(&packet, &mut bytes);
            all.extend_from_slice(&bytes);
            ecn = ecn.or(EcnCodepoint::from_bits(packet.ecn() as u8));
        }
        let segment_size = transmit.segment_size.map(|size| size + shim::LEN);
        self.inner.try_send(&Transmit {
            destination: transmit.destination,
            ecn,
            contents: &all,
            segment_size,
            src_ip: transmit.src_ip,
        })?;
        if let (Some([parity, _]), Some(tunnel)) = (again, &tunnel) {
            let (packet, mut contents) = parity.datagram(tunnel.number, headers);
            shim::write(&packet, &mut contents);
            let (destination, src_ip) = (transmit.destination, transmit.src_ip);
            // Lost if the socket is full, as by a network.
            let _ = self.inner.try_send(&Transmit {
                destination,
                ecn: None,
                contents: &contents,
                segment_size: None,
                src_ip,
            });
        }
        Ok(())
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        match &self.port {
            Some(port) => Box::pin(Room { port: port.clone(), seen: 0 }),
            None => self.inner.clone().create_io_poller(),
        }
    }
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let Some(port) = &self.port else { return self.send_directly(transmit, segment) };
        let tunnel = self.tunnels.get(transmit.destination);
        let taken = port.send(tunnel.as_ref(), canonical(transmit.destination), transmit.contents, segment);
        if taken { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let count = self.deliver(bufs, meta);
            if count > 0 {
                return Poll::Ready(Ok(count));
            }
            let count = match self.inner.poll_recv(cx, bufs, meta) {
                Poll::Ready(Ok(count)) => count,
                other => return other,
            };
            let mut useful = false;
            for (buffer, meta) in bufs.iter_mut().zip(meta.iter_mut()).take(count) {
                (meta.len, meta.stride) = self.strip(buffer, meta);
                meta.ecn = None;
                useful |= meta.len > 0;
            }
            if useful {
                // What was repaired meanwhile follows by the next call, which is made at once.
                return Poll::Ready(Ok(count));
            }
        }
    }
    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
    fn max_transmit_segments(&self) -> usize {
        match (&self.port, self.singly.load(Ordering::Relaxed)) {
            (Some(port), _) => port.added(),
            (None, true) => 1,
            (None, false) => self.inner.max_transmit_segments(),
        }
    }
    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }
    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// Waits for room at the port.
#[derive(Debug)]
struct Room {
    port: Arc<Port>,
    seen: u64,
}

impl UdpPoller for Room {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut seen = self.seen;
        let room = self.port.poll_room(&mut seen, cx.waker());
        self.seen = seen;
        if room { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Port")
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::registry;
    use explicate_core::units::Rate;

    use super::*;
    use crate::clock::Clock;
    use crate::gateway::controller::ControllerConfig;

    #[test]
    fn a_tunnel_moves_with_its_peer() {
        let mut numbers = quinn_proto::HashedConnectionIdGenerator::from_key(7);
        let given: Number = (*numbers.generate_cid()).try_into().unwrap();
        let tunnels = Tunnels::moving(numbers);
        let config = ControllerConfig::new(registry::protocol("xcp").unwrap(), 0.0);
        let tunnel = Tunnel::new(1, &config, Rate::mbps(1), Clock::start());
        let [home, other] = ["192.0.2.1:7", "[2001:db8::1]:8"].map(|address| address.parse().unwrap());
        tunnels.set(home, tunnel.clone());
        tunnel.place().may_move = true;
        let is_of = |from, number| matches!(tunnels.whose(from, number), Whose::Of(of) if Arc::ptr_eq(&of, &tunnel));
        assert!(is_of(home, Some([1; 8])), "a number that no connection has");
        assert!(matches!(tunnels.whose(other, Some([1; 8])), Whose::Unknown));
        assert!(is_of(home, Some(given)));
        assert!(is_of(home, Some([1; 8])), "which changes nothing");
        assert!(is_of(other, Some(given)));
        assert_eq!(tunnels.confirm(other, &tunnel), None, "so soon");
        assert!(tunnels.get(other).is_some() && tunnels.get(home).is_some());
        tunnels.remove(&tunnel);
        assert!(matches!(tunnels.whose(other, Some(given)), Whose::Unknown), "a connection that has ended");
        tunnels.set(home, tunnel.clone());
        assert!(tunnels.get(other).is_none() && tunnels.confirm(other, &tunnel).is_none());
        assert!(tunnels.get(other).is_some(), "QUIC has moved before it knew the number");
        tunnels.remove(&tunnel);
        tunnels.set(home, tunnel.clone());
        tunnel.place().may_move = false;
        assert_eq!(tunnels.confirm(other, &tunnel), None);
        assert!(matches!(tunnels.whose(other, None), Whose::Elsewhere), "where it may not be");
    }

    #[test]
    fn a_peer_does_not_take_the_address_of_another() {
        let mut numbers = quinn_proto::HashedConnectionIdGenerator::from_key(7);
        let [one, other]: [Number; 2] = [(); 2].map(|()| (*numbers.generate_cid()).try_into().unwrap());
        let tunnels = Tunnels::moving(numbers);
        let config = ControllerConfig::new(registry::protocol("xcp").unwrap(), 0.0);
        let homes = ["192.0.2.1:7", "192.0.2.2:8"].map(|address| address.parse().unwrap());
        let peers = homes.map(|home| {
            let tunnel = Tunnel::new(1, &config, Rate::mbps(1), Clock::start());
            tunnels.set(home, tunnel.clone());
            tunnel.place().may_move = true;
            tunnel
        });
        let is_of = |from, number, peer: &Arc<Tunnel>| matches!(tunnels.whose(from, Some(number)), Whose::Of(of) if Arc::ptr_eq(&of, peer));
        assert!(is_of(homes[0], one, &peers[0]) && is_of(homes[1], other, &peers[1]));
        assert!(matches!(tunnels.whose(homes[1], Some(one)), Whose::Elsewhere), "a forged source");
        assert!(tunnels.confirm(homes[1], &peers[0]).is_none());
        assert!(
            is_of(homes[1], other, &peers[1]) && tunnels.get(homes[1]).is_some_and(|of| Arc::ptr_eq(&of, &peers[1]))
        );
        let new = "192.0.2.3:9".parse().unwrap();
        assert!(is_of(new, other, &peers[1]), "it moves");
        tunnels.set(new, peers[0].clone());
        assert!(matches!(tunnels.whose(new, Some(other)), Whose::Elsewhere), "another has shown its key there");
    }

    #[test]
    fn a_handshake_does_not_take_the_place_of_a_connection_until_its_key_is_known() {
        let config = ControllerConfig::new(registry::protocol("xcp").unwrap(), 0.0);
        let new = || Tunnel::new(1, &config, Rate::mbps(1), Clock::start());
        let (tunnels, peer) = (Tunnels::default(), "192.0.2.1:7".parse().unwrap());
        let (known, replayed) = (new(), new());
        let is = |tunnel: &Arc<Tunnel>| tunnels.get(peer).is_some_and(|current| Arc::ptr_eq(&current, tunnel));
        tunnels.add(peer, known.clone());
        tunnels.add(peer, replayed.clone());
        assert!(is(&known));
        tunnels.remove(&replayed);
        assert!(is(&known));
        tunnels.set(peer, replayed.clone());
        assert!(is(&replayed));
    }
}
