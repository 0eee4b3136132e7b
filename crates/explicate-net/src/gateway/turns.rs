//! Shares of a tunnel: who sends next, and how much may wait in QUIC.
//!
//! *The gate.* QUIC sends what it has been given, in turns by streams, and keeps it until it is acknowledged. So it gets little: long transfers
//! may have a window and a half there (see [`Tunnel`](super::tunnel::Tunnel)), and the next block is written when that has room again. What
//! waits for that waits here, in an order that this module sets.
//!
//! *The order.* Hosts share first, then the connections of a host, as in the isolation of cake. It is start-time fair queueing (Goyal, Vin and
//! Cheng, SIGCOMM 1996): a block of a connection starts at the time when its last one ended, or now if that has passed, and ends so many bytes
//! later as it has, times the active connections of its host. The block that starts first is the next one; the time is the start of the last
//! one. The host of a connection is that of its client, for both directions: a server has no share of its own.
//!
//! *New and thin connections.* Who has used less than its share, as keystrokes and requests do, does not wait: up to `BANK` of
//! what it left to others is sent at once, before the rest, as the list of new queues of FQ-CoDel does (RFC 8290). A new connection begins
//! with that much. It returns as the others send, never faster than the connection's share.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use quinn::{Connection, SendStream, WriteError};
use tokio::sync::oneshot;

#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// What a connection may send at once of the share that it has not used, bytes of a host with one connection.
const BANK: u64 = 16 << 10;
/// What may wait in QUIC beyond the gate: a bank for each connection, and records.
const BANKS: u64 = 128 << 20;
/// Bytes that fill a packet, about.
const PACKET: u64 = 1400;
/// The longest and the shortest block, bytes.
const LONGEST: u64 = 32 << 10;
const SHORTEST: u64 = 4 << 10;

/// Bytes of a connection are served from this time on, which counts bytes.
type Virtual = u64;

/// The sending half of a connection in the order of a tunnel.
pub struct Lane {
    host: IpAddr,
    /// Another one for each lane.
    number: u64,
    /// When its last block ended.
    ends: AtomicU64,
    /// Its stream goes first in QUIC.
    first: AtomicBool,
}

impl Lane {
    /// Of a connection whose client has this address.
    pub fn new(host: IpAddr) -> Lane {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Lane { host, number, ends: AtomicU64::new(0), first: AtomicBool::new(false) }
    }
    fn ends(&self) -> Virtual {
        self.ends.load(Ordering::Relaxed)
    }
    /// Has QUIC send the stream's bytes before those of others, or in turns with them.
    pub fn go(&self, stream: &SendStream, first: bool) {
        if self.first.swap(first, Ordering::Relaxed) != first {
            let _ = stream.set_priority(first as i32);
        }
    }
}

struct State {
    now: Virtual,
    /// The longest of the last blocks, in the same bytes: who comes back so much later still has its place.
    longest: Virtual,
    /// A connection has the turn.
    taken: bool,
    /// Who waits, by the start of its block and in the order of arrival.
    waiting: BTreeMap<(Virtual, u64), oneshot::Sender<()>>,
    arrivals: u64,
    /// When the last blocks of connections end that have not ended yet, and how many connections of a host that are: those that are served
    /// or wait, whether or not they wait at this moment.
    active: BTreeMap<(Virtual, u64), IpAddr>,
    hosts: BTreeMap<IpAddr, u64>,
}

impl Default for State {
    fn default() -> State {
        State {
            now: BANK,
            longest: 0,
            taken: false,
            waiting: BTreeMap::new(),
            arrivals: 0,
            active: BTreeMap::new(),
            hosts: BTreeMap::new(),
        }
    }
}

impl State {
    /// Connections of a host that are active beside one.
    fn beside(&self, lane: &Lane) -> u64 {
        let all = self.hosts.get(&lane.host).copied().unwrap_or(0);
        all - self.active.contains_key(&(lane.ends(), lane.number)) as u64
    }
    /// Bytes of a lane are served.
    fn serve(&mut self, lane: &Lane, start: Virtual, bytes: u64) {
        let length = bytes * (self.beside(lane) + 1);
        if self.active.remove(&(lane.ends(), lane.number)).is_some() {
            self.leave(lane.host);
        }
        lane.ends.store(start + length, Ordering::Relaxed);
        self.active.insert((start + length, lane.number), lane.host);
        *self.hosts.entry(lane.host).or_default() += 1;
        self.longest = length.max(self.longest - self.longest / 128);
    }
    fn leave(&mut self, host: IpAddr) {
        if let Some(count) = self.hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(&host);
            }
        }
    }
    /// A block starts: what has ended by now is not active any more.
    fn start(&mut self, at: Virtual) {
        self.now = self.now.max(at);
        while let Some(first) = self.active.first_entry().filter(|first| first.key().0 <= self.now) {
            let host = first.remove();
            self.leave(host);
        }
    }
    /// The turn goes to who starts first.
    fn pass(&mut self) {
        self.taken = false;
        while let Some((_, next)) = self.waiting.pop_first() {
            if next.send(()).is_ok() {
                self.taken = true;
                return;
            }
        }
    }
    /// Whether a connection waits whose block starts before this place.
    fn starts_before(&self, place: (Virtual, u64)) -> bool {
        self.waiting.first_key_value().is_some_and(|(first, _)| *first < place)
    }
}

/// The order of a tunnel. Before it begins, no stream waits.
#[derive(Default)]
pub struct Turns {
    connection: OnceLock<Connection>,
    state: Mutex<State>,
    /// Bytes that long transfers may have in QUIC, and the most that they ever may.
    gate: AtomicU64,
    most: AtomicU64,
}

/// A turn, or a place among those who wait for one.
struct Place<'a> {
    turns: &'a Turns,
    start: Virtual,
    arrival: u64,
    waits: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        let waits = self.waits;
        // Who waits no more has either a place still, or the turn already.
        if !waits || state.waiting.remove(&(self.start, self.arrival)).is_none() {
            state.pass();
        }
    }
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Begins. Long transfers may never have more than `most` bytes in QUIC.
    pub fn begin(&self, connection: &Connection, most: u64) {
        self.most.store(most, Ordering::Relaxed);
        let _ = self.connection.set(connection.clone());
    }
    /// Sets how many bytes long transfers may have in QUIC.
    pub fn set_gate(&self, bytes: u64) {
        self.gate.store(bytes.min(self.most.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
    fn gate(&self) -> u64 {
        self.gate.load(Ordering::Relaxed)
    }

    /// Writes some of these bytes: at once if the connection has used less than its share, else in its turn.
    pub async fn write(&self, lane: &Lane, stream: &mut SendStream, bytes: &[u8]) -> Result<usize, WriteError> {
        let Some(connection) = self.connection.get() else { return stream.write(bytes).await };
        #[cfg(feature = "simulated")]
        if is_back(Fault::Ungated) {
            connection.set_send_window(16 << 20);
            return stream.write(bytes).await;
        }
        let unused = self.take_unused(lane, bytes.len() as u64) as usize;
        if unused > 0 {
            lane.go(stream, true);
            return self.write_first(stream, &bytes[..unused]).await;
        }
        lane.go(stream, false);
        let place = self.turn(lane).await;
        let gate = self.gate();
        let block = (gate / 32).clamp(SHORTEST, LONGEST) as usize;
        connection.set_send_window(gate);
        let written = stream.write(&bytes[..bytes.len().min(block)]).await?;
        self.state().serve(lane, place.start, written as u64);
        Ok(written)
    }
    /// Writes some bytes beyond the gate.
    pub async fn write_first(&self, stream: &mut SendStream, bytes: &[u8]) -> Result<usize, WriteError> {
        let Some(connection) = self.connection.get() else { return stream.write(bytes).await };
        let mut written = pin!(stream.write(bytes));
        poll_fn(|cx| {
            let gate = self.gate();
            // QUIC looks at its window while it writes, and when it wakes those that wait, which it does not do here.
            connection.set_send_window(gate + BANKS);
            let polled = written.as_mut().poll(cx);
            connection.set_send_window(gate);
            polled
        })
        .await
    }
    /// Uses what the connection has not used of its share, for so many bytes; for how many, and for none if it is too little to be worth
    /// a packet.
    fn take_unused(&self, lane: &Lane, bytes: u64) -> u64 {
        let mut state = self.state();
        let (beside, from) = (state.beside(lane), lane.ends().max(state.now.saturating_sub(BANK)));
        let unused = bytes.min(state.now.saturating_sub(from) / (beside + 1));
        if unused < bytes.min(PACKET) {
            return 0;
        }
        state.serve(lane, from, unused);
        unused
    }
    async fn turn(&self, lane: &Lane) -> Place<'_> {
        let (mut place, granted) = {
            let mut state = self.state();
            let start = lane.ends().max(state.now.saturating_sub(state.longest));
            let arrival = state.arrivals;
            state.arrivals += 1;
            let mut place = Place { turns: self, start, arrival, waits: false };
            if !state.taken {
                state.taken = true;
                state.start(start);
                return place;
            }
            let (grant, granted) = oneshot::channel();
            state.waiting.insert((start, arrival), grant);
            place.waits = true;
            (place, granted)
        };
        let mut granted = granted;
        loop {
            let _ = granted.await;
            let mut state = self.state();
            let key = (place.start, place.arrival);
            if !state.starts_before(key) {
                state.start(place.start);
                place.waits = false;
                drop(state);
                return place;
            }
            // The one before has come back with its next block, which starts earlier.
            let (grant, again) = oneshot::channel();
            state.waiting.insert(key, grant);
            state.pass();
            granted = again;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that each lane has sent when all of them have always had something to send: `lanes` are the hosts of connections.
    fn shares(hosts: &[u8], blocks: &[u64], total: u64) -> Vec<u64> {
        let turns = Turns::default();
        let lanes: Vec<Lane> = hosts.iter().map(|host| Lane::new(IpAddr::from([10, 0, 0, *host]))).collect();
        let mut sent = vec![0; hosts.len()];
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let counts = Mutex::new(&mut sent);
            let each = lanes.iter().enumerate().map(|(index, lane)| {
                let (turns, counts) = (&turns, &counts);
                async move {
                    loop {
                        let place = turns.turn(lane).await;
                        // As while QUIC has no room: the others come to wait.
                        tokio::task::yield_now().await;
                        let mut counts = counts.lock().unwrap();
                        if counts.iter().sum::<u64>() >= total {
                            return;
                        }
                        counts[index] += blocks[index];
                        turns.state().serve(lane, place.start, blocks[index]);
                    }
                }
            });
            let mut all: Vec<_> = each.map(Box::pin).collect();
            poll_fn(|cx| {
                all.retain_mut(|one| one.as_mut().poll(cx).is_pending());
                if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
        });
        assert!(turns.state().waiting.is_empty() && turns.state().active.len() <= lanes.len());
        sent
    }

    #[test]
    fn hosts_have_equal_shares_and_so_have_the_connections_of_a_host() {
        // Three connections of one host, one of another, and blocks of several lengths.
        let sent = shares(&[1, 1, 1, 2], &[4000, 1000, 32_000, 8000], 6_000_000);
        let of_one: u64 = sent[..3].iter().sum();
        assert!(of_one.abs_diff(sent[3]) < 200_000, "{sent:?}");
        assert!(sent[..3].iter().all(|one| one.abs_diff(1_000_000) < 150_000), "{sent:?}");
    }

    #[test]
    fn who_has_left_its_share_to_others_does_not_wait() {
        let turns = Turns::default();
        let (key, long) = (Lane::new([10, 0, 0, 1].into()), Lane::new([10, 0, 0, 2].into()));
        let long_sends = |bytes: u64| {
            let mut state = turns.state();
            let start = long.ends().max(state.now);
            state.start(start);
            state.serve(&long, start, bytes);
        };
        assert_eq!(turns.take_unused(&key, 2 * BANK), BANK, "a new one has a bank");
        assert_eq!(turns.take_unused(&key, 1), 0, "which is empty now");
        long_sends(10_000);
        assert_eq!(turns.take_unused(&key, 1), 0, "time is the start of what others send");
        long_sends(10_000);
        assert_eq!([20, 9_000].map(|bytes| turns.take_unused(&key, bytes)), [20, 9_000], "and returns");
        assert_eq!(turns.take_unused(&key, 2_000), 0, "what is left fills no packet");
        assert_eq!(turns.take_unused(&key, 980), 980);
        for _ in 0..10 {
            long_sends(1_000_000);
            assert_eq!(turns.take_unused(&long, 1), 0, "who always sends has none");
        }
        assert_eq!(turns.take_unused(&key, u64::MAX), BANK, "no more than a bank");
    }

    /// A connection that ends while it waits, or when it has the turn and does not know it yet, holds up no other.
    #[test]
    fn a_place_that_is_given_up_is_passed_on() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let turns = Turns::default();
            let lanes = [1, 2, 3].map(|host| Lane::new(IpAddr::from([10, 0, 0, host])));
            let has = turns.turn(&lanes[0]).await;
            let (mut second, mut third) = (Box::pin(turns.turn(&lanes[1])), Box::pin(turns.turn(&lanes[2])));
            poll_fn(|cx| {
                assert!(second.as_mut().poll(cx).is_pending() && third.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            drop(has);
            assert!(turns.state().taken);
            drop(second);
            drop(third.await);
            let state = turns.state();
            assert!(!state.taken && state.waiting.is_empty());
        });
    }
}
