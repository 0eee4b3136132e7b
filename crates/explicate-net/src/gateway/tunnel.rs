//! The datagrams of one connection: its law, parity, and what has arrived.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Packet};

use quinn::{SendStream, WriteError};

use super::controller::{ControllerConfig, SharedController, WindowController};
use super::credit::Credits;
use super::parity::{self, Block, Losses, Parity, Repair};
use super::place::Place;
use super::shim;
use super::trains::Mark;
use super::turns::{Lane, Turns};
use crate::clock::Clock;

/// Bytes of a packet of the window.
const PACKET: u16 = 1500;
/// Short datagrams that are covered behind a write: what was written, and perhaps an acknowledgement before it.
const COVERED: u32 = 2;

/// A tunnel is idle after this time without a datagram: the block that is open may end early.
const IDLE: Time = Time::millis(3);
/// Parity of blocks that end early takes this share of what the window and the line carry, beside that of full blocks, and so much of it at
/// once; a block may end early once in that time, however little arrives. Without this bound a sender whose window is full ends a block behind each acknowledgement, and sends as much parity as data.
const EARLY: f64 = 1.0 / 50.0;
const AT_ONCE: Time = Time::secs(1);

/// What long transfers may have in QUIC beside what is under way: so much of a window, and so many bytes at least. What the line sends in
/// [`SUPPLY`] is enough for the time in which this program waits for a processor, up to so many bytes.
const UNSENT_WINDOWS: f64 = 0.5;
const LEAST_UNSENT: f64 = 65_536.0;
const MOST_SUPPLY: f64 = 1_048_576.0;
/// Seconds.
const SUPPLY: f64 = 0.02;
/// And so many windows more while packets are lost: what is lost twice is kept for three round trips, with what came behind it.
const LOST_WINDOWS: f64 = 3.0;

/// The datagrams of one connection.
pub struct Tunnel {
    /// Its number, by which routers tell flows apart.
    pub number: u32,
    /// Share of the datagrams that the air may lose.
    air_loss: f64,
    /// The law of its window.
    pub controller: SharedController,
    /// Shares of its connections.
    pub turns: Turns,
    /// What they may send, and what the peer may.
    pub credits: Arc<Credits>,
    /// So many of the next short datagrams are covered by parity.
    to_cover: AtomicU32,
    state: Mutex<State>,
    place: Mutex<Place>,
}

#[derive(Default)]
struct State {
    /// Number of the next datagram.
    next: u32,
    block: Block,
    /// When a block may end early again.
    early_at: Time,
    /// Sum of the feedback that arrived, bytes/s modulo 2^32.
    sum: u32,
    /// Datagrams that routers have answered, modulo 2^32.
    answered: u32,
    /// The peer's requests have no congestion header, and what was seen in them.
    plain: bool,
    seen: shim::Seen,
    repair: Repair,
    /// Datagrams of the peer that were lost, before repairs; and those of this end, as the peer has told.
    losses: Losses,
    lost: f64,
    /// Number of the peer's tunnel.
    peer: u32,
    /// IP bytes that have arrived, and the train of the peer's whose first mark came last, with what had arrived then.
    brought: u64,
    train: (u32, u64),
}

/// Counters of a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Repairs {
    /// Datagrams that parity repaired.
    pub repaired: u64,
    /// Blocks with more losses than parity repairs.
    pub beyond: u64,
    /// Share of this end's datagrams that is lost before repairs, as the peer measures it; datagrams of a block follow it
    /// as far as the air may lose so many.
    pub lost: f64,
    /// See there.
    pub block: u8,
}

impl Tunnel {
    /// A tunnel over a line of this rate; `number` is different for each tunnel of a program.
    pub fn new(number: u32, config: &ControllerConfig, rate: Rate, clock: Clock) -> Arc<Tunnel> {
        let controller = SharedController(Arc::new(Mutex::new(WindowController::new(config, PACKET, rate, clock))));
        // Numbers of two gateways differ by the time of their start.
        let number = number ^ crate::sys::monotonic() as u32;
        Arc::new(Tunnel {
            number,
            air_loss: config.air_loss,
            controller,
            turns: Turns::default(),
            credits: Arc::default(),
            to_cover: AtomicU32::new(0),
            state: Mutex::default(),
            place: Mutex::default(),
        })
    }
    /// Datagrams of a block.
    fn block(&self, state: &State) -> u8 {
        parity::block(state.lost, self.air_loss)
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Where its peer is.
    pub fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the first bytes of a stream, all of them, before what others have to send.
    pub async fn begin(&self, lane: &Lane, stream: &mut SendStream, mut bytes: &[u8]) -> Result<(), WriteError> {
        lane.go(stream, true);
        while !bytes.is_empty() {
            let written = self.turns.write_first(stream, bytes).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }
    /// Writes some bytes of a connection of a host, by the order of [`Turns`].
    pub async fn write(&self, lane: &Lane, stream: &mut SendStream, bytes: &[u8]) -> Result<usize, WriteError> {
        self.turns.set_gate(self.gate());
        self.turns.write(lane, stream, bytes).await
    }
    /// Bytes that long transfers may have in QUIC.
    fn gate(&self) -> u64 {
        let controller = self.controller.lock();
        let (flight, trip) = (controller.allowed() * PACKET as f64, controller.round_trip().as_secs_f64());
        let supply = (flight * SUPPLY / trip.max(1e-6)).min(MOST_SUPPLY);
        let unsent = (UNSENT_WINDOWS * flight).max(LEAST_UNSENT).max(supply);
        let lost = if controller.loses() { LOST_WINDOWS * flight } else { 0.0 };
        (flight + unsent + lost) as u64
    }

    /// Something was written after which the writer may wait for an answer: the datagrams with it are covered, however short they
    /// are. QUIC would notice the loss of the last one by a timeout only.
    pub fn cover(&self) {
        self.to_cover.store(COVERED, Ordering::Relaxed);
        self.controller.lock().writes();
    }
    fn take_cover(&self) -> bool {
        self.to_cover.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
    }

    /// The headers of a datagram that leaves with these contents, and the parity that follows it; `spare` as for [`WindowController::header`].
    pub fn leave(&self, contents: &[u8], ip_headers: usize, spare: f64, parity: bool) -> (Packet, Option<[Parity; 2]>) {
        let short = contents.len() < shim::SHORT;
        let asks = (!short).then(|| self.controller.lock().header(spare));
        let mut packet = asks.unwrap_or(Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY });
        shim::complete(&mut packet, self.number, ip_headers, contents.len());
        let mut state = self.state();
        let returned = if state.plain { state.seen.take() } else { state.sum };
        shim::set_returned(&mut packet, returned);
        shim::set_loss(&mut packet, state.losses.share());
        packet.transport.set_packet_number(state.next);
        packet.transport.set_segment(state.answered);
        if short && !self.take_cover() {
            return (packet, None);
        }
        if short {
            shim::mark_covered(&mut packet);
        }
        let number = state.next;
        state.next = number.wrapping_add(1);
        let length = self.block(&state);
        (packet, if parity { state.block.add(number, contents, length) } else { None })
    }
    /// The parity of the datagrams since the last one.
    pub fn finish(&self) -> Option<[Parity; 2]> {
        self.state().block.finish()
    }
    /// When the open block may end early, if there is one and the last datagram was added at this time.
    pub fn ends_at(&self, last: Time) -> Option<Time> {
        let state = self.state();
        (state.block.count() > 0).then(|| state.early_at.max(last + IDLE))
    }
    /// The parity of a block that ends early, over a line of this rate, bytes/s.
    pub fn end_early(&self, now: Time, line: f64) -> Option<[Parity; 2]> {
        let rate = EARLY * line.min(self.controller.lock().rate());
        let mut state = self.state();
        let missing = 1.0 - state.block.count() as f64 / self.block(&state) as f64;
        let parity = state.block.finish()?;
        let bytes: usize = parity.iter().map(Parity::length).sum();
        let from = state.early_at.max(Time(now.0.saturating_sub(AT_ONCE.0)));
        let wait = Time::from_secs_f64(missing.max(0.0) * bytes as f64 / rate);
        // Behind an outage hardly anything has arrived: that says nothing of the next second.
        state.early_at = (from + wait).min(now + AT_ONCE);
        Some(parity)
    }
    /// A mark of the peer's trains arrived, of so many IP bytes: that behind a train goes back with what has arrived of it.
    pub fn count(&self, mark: Mark, length: u16) -> Mark {
        let mut state = self.state();
        state.brought += u64::from(length);
        if !mark.last {
            state.train = (mark.train, state.brought);
        }
        let bytes = (state.train.0 == mark.train).then(|| state.brought - state.train.1);
        Mark { bytes: bytes.filter(|_| mark.last), ..mark }
    }
    /// A datagram arrived: whether QUIC is to have it, and those that it repairs.
    pub fn arrive(&self, packet: &Packet, contents: &[u8]) -> (bool, Vec<Vec<u8>>) {
        let returned = shim::returned(packet);
        let mut state = self.state();
        state.brought += u64::from(packet.ip_len);
        if state.peer != packet.transport.flow() {
            // The peer has started anew: its sums, and its blocks, begin elsewhere.
            state.peer = packet.transport.flow();
            state.repair.start_anew();
            state.losses = Losses::default();
            self.controller.lock().begin_at(returned);
        }
        if Parity::is_in(packet) {
            return (false, state.repair.take(packet, contents));
        }
        state.lost = shim::loss(packet);
        let mut controller = self.controller.lock();
        controller.returned(returned);
        controller.receives(packet.ip_len as u64);
        controller.answered(packet.transport.segment());
        drop(controller);
        state.answered = state.answered.wrapping_add(packet.mark().is_set() as u32);
        shim::add_feedback(&mut state.sum, packet);
        if !packet.congestion.is_present() {
            state.plain = true;
            state.seen.add(packet);
        }
        if shim::is_covered(packet, contents) {
            state.losses.arrive(packet.transport.packet_number());
            state.repair.keep(packet.transport.packet_number(), contents);
        }
        (true, Vec::new())
    }
    /// Its counters.
    pub fn repairs(&self) -> Repairs {
        let state = self.state();
        let (repaired, beyond) = (state.repair.repaired, state.repair.beyond);
        Repairs { repaired, beyond, lost: state.lost, block: self.block(&state) }
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::registry;

    use super::*;
    use crate::gateway::controller::ControllerConfig;

    fn tunnel() -> Arc<Tunnel> {
        let config = ControllerConfig::new(registry::protocol("xcp").unwrap(), 0.0);
        Tunnel::new(1, &config, Rate::mbps(20), Clock::start())
    }

    #[test]
    fn a_block_ends_early_once_a_second_however_little_arrives() {
        let tunnel = tunnel();
        let (mut now, line) = (Time::secs(100), 1e-3);
        for _ in 0..3 {
            tunnel.leave(&[1; 1000], 28, 0.0, true);
            assert!(tunnel.ends_at(now).is_some_and(|at| at <= now + IDLE));
            assert!(tunnel.end_early(now, line).is_some());
            tunnel.leave(&[1; 1000], 28, 0.0, true);
            assert!(tunnel.ends_at(now).is_some_and(|at| at > now + IDLE), "not at once");
            now += AT_ONCE;
            assert!(tunnel.end_early(now, line).is_some());
            now += AT_ONCE;
        }
    }

    /// A request of one short datagram is lost: parity repairs it, while acknowledgements alone have none.
    #[test]
    fn a_lost_request_is_repaired_however_short_it_is() {
        let (from, to) = (tunnel(), tunnel());
        let leaves = |contents: &[u8]| from.leave(contents, 28, 0.0, true).0;
        to.arrive(&leaves(&[1; 40]), &[1; 40]);
        assert_eq!(from.ends_at(Time::ZERO), None, "an acknowledgement");
        from.cover();
        let (acknowledgement, request) = (leaves(&[2; 40]), [3; 67]);
        to.arrive(&acknowledgement, &[2; 40]);
        leaves(&request);
        assert!(!shim::is_covered(&leaves(&[4; 40]), &[4; 40]), "those after it");
        let parities = from.finish().unwrap().map(|parity| parity.datagram(from.number, 28));
        let repaired = parities.map(|(packet, bytes)| to.arrive(&packet, &bytes[shim::LEN..]).1);
        assert_eq!(repaired, [vec![request.to_vec()], vec![]]);
    }

    #[test]
    fn sums_of_a_peer_that_started_anew_are_no_feedback() {
        let tunnel = tunnel();
        let arrive = |number: u32, sum: i32| {
            let mut packet = shim::packet(number, Congestion::new(Format::MINIMAL), 28, 1400);
            packet.congestion.set_reverse_feedback(sum);
            tunnel.arrive(&packet, &[0; 1400]);
            tunnel.controller.lock().waiting_feedback()
        };
        let sums = [(7, 1000), (7, 1500), (9, 900_000), (9, 900_100), (7, 0)];
        assert_eq!(sums.map(|(number, sum)| arrive(number, sum)), [0, 500, 500, 600, 600]);
    }
}
