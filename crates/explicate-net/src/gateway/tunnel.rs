//! The datagrams of one connection: its law, parity, and what has arrived.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use explicate_core::units::Rate;
use explicate_core::wire::{Congestion, Format, Packet};

use super::law::{Law, Laws, SharedLaw};
use super::parity::{Block, Parity, Repair};
use super::shim;
use super::turns::Turns;
use crate::clock::Clock;

static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// The datagrams of one connection.
pub struct Tunnel {
    /// Its number, by which routers tell flows apart.
    pub number: u32,
    /// The law of its window.
    pub law: SharedLaw,
    /// Turns of its long transfers.
    pub turns: Turns,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of the next datagram.
    next: u32,
    block: Block,
    /// Sum of the feedback that arrived, bytes/s modulo 2^32.
    sum: u32,
    /// Datagrams that routers have answered, modulo 2^32.
    answered: u32,
    repair: Repair,
    /// Number of the peer's tunnel.
    peer: u32,
}

/// Counters of a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Repairs {
    /// Datagrams that parity repaired.
    pub repaired: u64,
    /// Blocks with more losses than parity repairs.
    pub beyond: u64,
}

impl Tunnel {
    /// A tunnel over a line of this rate.
    pub fn new(laws: Laws, rate: Rate, clock: Clock) -> Arc<Tunnel> {
        let law = SharedLaw(Arc::new(Mutex::new(Law::new(laws, 1500, rate, clock))));
        // Numbers of two gateways differ by the time of their start.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed) ^ crate::sys::monotonic() as u32;
        Arc::new(Tunnel { number, law, turns: Turns::default(), state: Mutex::default() })
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The headers of a datagram that leaves with these contents, and the parity that follows it; `spare` as for [`Law::header`].
    pub fn leave(&self, contents: &[u8], ip_headers: usize, spare: f64, parity: bool) -> (Packet, Option<[Parity; 2]>) {
        let short = contents.len() < shim::SHORT;
        let congestion = if short { Congestion::new(Format::MINIMAL) } else { self.law.lock().header(spare) };
        let mut state = self.state();
        let mut packet = shim::packet(self.number, congestion, ip_headers + shim::LEN + contents.len());
        packet.congestion.set_reverse_feedback(state.sum as i32);
        packet.transport.set_packet_number(state.next);
        packet.transport.set_segment(state.answered);
        let number = state.next;
        let full = if short || !parity { None } else { state.block.add(number, contents) };
        if !short {
            state.next = state.next.wrapping_add(1);
        }
        (packet, full)
    }
    /// The parity of the datagrams since the last one.
    pub fn finish(&self) -> Option<[Parity; 2]> {
        self.state().block.finish()
    }
    /// Whether datagrams are without parity.
    pub fn is_open(&self) -> bool {
        self.state().block.is_open()
    }
    /// A datagram arrived: whether QUIC is to have it, and those that it repairs.
    pub fn arrive(&self, packet: &Packet, contents: &[u8]) -> (bool, Vec<Vec<u8>>) {
        let returned = packet.congestion.reverse_feedback() as u32;
        let mut state = self.state();
        if state.peer != packet.transport.flow() {
            // The peer has started anew: its sums, and its blocks, begin elsewhere.
            state.peer = packet.transport.flow();
            state.repair.start_anew();
            self.law.lock().begin_at(returned);
        }
        if Parity::is_in(packet) {
            return (false, state.repair.take(packet, contents));
        }
        let mut law = self.law.lock();
        law.returned(returned);
        law.answered(packet.transport.segment());
        drop(law);
        state.answered = state.answered.wrapping_add(packet.mark().is_set() as u32);
        shim::add_feedback(&mut state.sum, packet);
        if contents.len() >= shim::SHORT {
            state.repair.keep(packet.transport.packet_number(), contents);
        }
        (true, Vec::new())
    }
    /// Its counters.
    pub fn repairs(&self) -> Repairs {
        let state = self.state();
        Repairs { repaired: state.repair.repaired, beyond: state.repair.beyond }
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::registry;

    use super::*;
    use crate::gateway::law::Laws;

    #[test]
    fn sums_of_a_peer_that_started_anew_are_no_feedback() {
        let laws = Laws { protocol: registry::protocol("xcp").unwrap(), air_loss: 0.0 };
        let tunnel = Tunnel::new(laws, Rate::mbps(20), Clock::start());
        let arrive = |number: u32, sum: i32| {
            let mut packet = shim::packet(number, Congestion::new(Format::MINIMAL), 1500);
            packet.congestion.set_reverse_feedback(sum);
            tunnel.arrive(&packet, &[0; 1400]);
            tunnel.law.lock().waiting_feedback()
        };
        let sums = [(7, 1000), (7, 1500), (9, 900_000), (9, 900_100), (7, 0)];
        assert_eq!(sums.map(|(number, sum)| arrive(number, sum)), [0, 500, 500, 600, 600]);
    }
}
