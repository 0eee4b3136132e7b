//! Credit: how many bytes of a stream a peer may send before the host here has taken them.
//!
//! QUIC has a window for each stream and one for all of them, which every stream fills until its bytes are read: a few hosts that do not
//! read would stop the others. So QUIC's windows are set so large that they never bind, and each end promises the other one credit for
//! each stream, by records of its own. What arrives is read from QUIC at once and waits here for its host; bytes beyond the credit
//! reset their stream, and are counted.
//!
//! *Where credit comes from.* All credit of a tunnel is reserved in one `Pool` of `limits.peer_bytes`, of three parts:
//!
//! - A quarter is for what every stream has from its beginning, `base`. A connection that finds no room there is refused; none that
//!   is open is reset.
//! - A quarter is given ahead to streams whose host has begun to read, or whose host has opened the connection: what the path needs,
//!   `PRODUCTS` times the peer's rate and the round trip. One stream gets at most an eighth of what is left.
//! - A half is for streams whose host has taken a whole window within two round trips, as a kernel sizes the buffer of a socket: they get as
//!   much again, at most an eighth of what is left. So hosts that do not read use up the first two parts and never the third.
//!
//! *How it goes back.* A window that its host takes very slowly, while bytes wait for it, is halved: slow bytes show a busy line, and no slow host. A stream that has nothing to send for [`IDLE`] gives
//! back what it has beyond `base`. The sum of all credit is the bound of what waits for hosts.
//!
//! *Records* stand in one stream of each end, not among the bytes of the streams that they are about: half-closed streams need no other
//! end for their credit, long transfers the other way do not delay it, and bytes have no headers. A lost record holds up those behind it
//! for a round trip or two, which windows of two round trips bear; parity repairs most of them. The stream begins with a greeting:
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | version, 2 |
//! | 1-8 | rate at which this end sends, bit/s; 0 if it has none |
//! | 9-12 | credit that each stream has from its beginning, bytes |
//!
//! and goes on with records:
//!
//! | byte | field |
//! | --- | --- |
//! | 0 | 0: the receiver of the stream raises the limit; 1: its sender lowers it |
//! | 1 | how often the sender has lowered it, modulo 256 |
//! | 2-9 | number of the stream |
//! | 10-17 | the limit: bytes behind the preface |
//!
//! A raise that was sent before the receiver knew of a reduction has an older number, and does not count. Records of streams that are
//! over, or that were never opened, change nothing. The credit of the end that accepts a stream stands behind its preface.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use explicate_core::units::Rate;
use quinn::{Connection, RecvStream, SendStream};
use tokio::sync::Notify;

use super::config::Limits;
use super::open::Wait;
use super::preface::VERSION;
use super::turns::Turns;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};
use crate::sys;

/// Bytes of a greeting and of a record.
const GREETING: usize = 13;
const RECORD: usize = 18;
/// Kinds of records.
const RAISES: u8 = 0;
const LOWERS: u8 = 1;

/// The most and the least that a stream has from its beginning, bytes; between them a quarter of the pool over all connections.
const MOST_BASE: u64 = 16 << 10;
const LEAST_BASE: u64 = 4 << 10;
/// What a stream is given ahead, in bandwidth-delay products: one for what is on the way, one for the credit that comes back, and some
/// for what waits behind a loss.
const PRODUCTS: f64 = 2.5;
/// What a peer without a rate is taken to send at.
const UNKNOWN: Rate = Rate::mbps(100);
/// One stream gets at most this share of what is left.
const SHARE: u64 = 8;
/// A window that was taken within so many round trips grows, and one that took longer than so many shrinks.
const FAST: u64 = 2;
const SLOW: u64 = 16;
/// Round trips count as so long at least: a busy program needs it, ns.
const SHORTEST: u64 = 10_000_000;
/// A stream that has had nothing to send for so long gives credit back.
pub const IDLE: Duration = Duration::from_secs(2);

/// Bytes that may wait for hosts: `total`, and what is reserved of its parts.
#[derive(Debug, Default)]
struct Pool {
    total: u64,
    base: u64,
    ahead: u64,
    grown: u64,
}

impl Pool {
    fn admit(&mut self, base: u64) -> bool {
        let fits = self.base + base <= self.total / 4;
        self.base += if fits { base } else { 0 };
        fits
    }
    fn ahead(&mut self, wanted: u64) -> u64 {
        let got = wanted.min((self.total / 4).saturating_sub(self.ahead) / SHARE);
        self.ahead += got;
        got
    }
    fn grow(&mut self, wanted: u64) -> u64 {
        let got = wanted.min((self.total / 2).saturating_sub(self.grown) / SHARE);
        self.grown += got;
        got
    }
}

/// What a stream may bring.
#[derive(Debug)]
struct Receiving {
    /// What it may have under way and waiting.
    window: u64,
    /// Bytes that it may bring in all, those that have arrived, and those that the host has taken.
    limit: u64,
    arrived: u64,
    taken: u64,
    /// How often the sender has lowered the limit.
    lowered: u8,
    /// What it has reserved of each part of the pool.
    base: u64,
    ahead: u64,
    grown: u64,
    /// It has got what is given ahead; and nothing more will come.
    given: bool,
    ended: bool,
    /// When the present measurement of the host began, ns, and what the host had taken then.
    since: u64,
    from: u64,
    /// In it the host had taken all that had arrived.
    kept_up: bool,
}

/// What a window depends on: the time, the round trip (ns), what the path needs, and the most that a window may have (bytes).
#[derive(Clone, Copy)]
struct Path {
    now: u64,
    round_trip: u64,
    needs: u64,
    most: u64,
}

impl Receiving {
    fn new(base: u64) -> Receiving {
        let (arrived, taken, lowered, ahead, grown) = (0, 0, 0, 0, 0);
        let (given, ended, since, from, kept_up) = (false, false, 0, 0, false);
        let (window, limit) = (base, base);
        Receiving { window, limit, arrived, taken, lowered, base, ahead, grown, given, ended, since, from, kept_up }
    }
    /// Bytes have arrived: whether they are within the credit.
    fn arrive(&mut self, bytes: u64) -> bool {
        self.arrived = self.arrived.saturating_add(bytes);
        self.arrived <= self.limit
    }
    fn give_ahead(&mut self, path: Path, pool: &mut Pool) {
        let got = pool.ahead(path.needs.min(path.most).saturating_sub(self.window));
        self.ahead += got;
        self.window += got;
        self.given = true;
        self.measure(path.now);
    }
    /// The host has taken bytes: the limit, if it rises.
    fn take(&mut self, bytes: u64, path: Path, pool: &mut Pool) -> Option<u64> {
        self.taken += bytes;
        self.kept_up |= self.taken >= self.arrived;
        if self.ended {
            self.settle(pool);
            return None;
        }
        if !self.given {
            self.give_ahead(path, pool);
        } else if self.taken - self.from >= self.window {
            self.resize(path, pool);
        }
        self.settle(pool);
        self.raise()
    }
    /// The limit, if it rises.
    fn raise(&mut self) -> Option<u64> {
        let next = self.taken + self.window;
        if self.ended || next < self.limit + (self.window / 4).max(1) {
            return None;
        }
        self.limit = next;
        Some(next)
    }
    /// The host has taken a window since the last time.
    fn resize(&mut self, path: Path, pool: &mut Pool) {
        let (took, trip) = (path.now.saturating_sub(self.since), path.round_trip.max(SHORTEST));
        if took <= FAST * trip {
            let got = pool.grow(self.window.min(path.most.saturating_sub(self.window)));
            self.grown += got;
            self.window += got;
            // A host that reads leaves what is given ahead to others.
            let moved = pool.grow(self.ahead);
            (self.ahead, self.grown) = (self.ahead - moved, self.grown + moved);
            pool.ahead -= moved;
        } else if took > SLOW * trip && !self.kept_up {
            self.window = (self.window / 2).max(self.base);
        }
        self.measure(path.now);
    }
    /// A measurement of the host begins.
    fn measure(&mut self, now: u64) {
        (self.since, self.from, self.kept_up) = (now, self.taken, false);
    }
    /// The sender gives credit back: the limit, if it rises again. It does if the sender has used up the lower one meanwhile, and
    /// the host has taken that already: nothing else would come that could raise it.
    fn lower(&mut self, limit: u64, lowered: u8, pool: &mut Pool) -> Option<u64> {
        self.lowered = lowered;
        self.limit = limit.min(self.limit).max(self.arrived);
        self.window = self.base;
        self.given = false;
        self.settle(pool);
        self.raise()
    }
    /// Nothing more will come.
    fn end(&mut self, pool: &mut Pool) {
        (self.limit, self.window, self.ended) = (self.arrived, self.base, true);
        self.settle(pool);
    }
    /// Returns to the pool what is reserved beyond the window and beyond what may still come or waits.
    fn settle(&mut self, pool: &mut Pool) {
        let needed = self.window.max(self.limit.saturating_sub(self.taken));
        let mut spare = (self.base + self.ahead + self.grown).saturating_sub(needed);
        for (own, of) in [(&mut self.grown, &mut pool.grown), (&mut self.ahead, &mut pool.ahead)] {
            let back = spare.min(*own);
            *own -= back;
            *of -= back;
            spare -= back;
        }
    }
    fn release(&self, pool: &mut Pool) {
        pool.base -= self.base;
        pool.ahead -= self.ahead;
        pool.grown -= self.grown;
    }
}

/// What this end may send in a stream.
#[derive(Debug)]
struct Sending {
    limit: u64,
    written: u64,
    lowered: u8,
}

impl Sending {
    fn raise(&mut self, limit: u64, lowered: u8) {
        if lowered == self.lowered {
            self.limit = self.limit.max(limit);
        }
    }
    /// Lowers the limit to this much beyond what was written, if that gives back as much at least.
    fn lower(&mut self, keep: u64) -> Option<u64> {
        let least = self.written.saturating_add(keep);
        if self.limit < least.saturating_add(keep) {
            return None;
        }
        self.limit = least;
        self.lowered = self.lowered.wrapping_add(1);
        Some(least)
    }
}

struct Stream {
    sending: Sending,
    receiving: Receiving,
    raised: Arc<Notify>,
}

#[derive(Default)]
struct State {
    pool: Pool,
    /// What each stream has from its beginning: of the peer's bytes, and of this end's.
    base: u64,
    peer_base: u64,
    /// The most that the window of a stream may have.
    most: u64,
    streams: BTreeMap<u64, Stream>,
    /// Records that have not left, by stream and kind: only the newest counts.
    records: BTreeMap<(u64, u8), (u8, u64)>,
}

/// The credit of a tunnel's streams, in both directions.
#[derive(Default)]
pub struct Credits {
    state: Mutex<State>,
    changed: Notify,
    /// The connection, and the rate at which the peer sends, if it has one.
    begun: OnceLock<(Connection, Option<Rate>)>,
    beyond: AtomicU64,
}

/// What two gateways have told each other at the beginning of a connection.
pub struct Greeted {
    out: SendStream,
    back: RecvStream,
    rate: Option<Rate>,
    base: u32,
}

/// What each stream has from its beginning with these limits, bytes.
fn base(limits: Limits) -> u64 {
    (limits.peer_bytes as u64 / 4 / limits.connections as u64).clamp(LEAST_BASE, MOST_BASE)
}

/// Connections with a peer that have room with these limits.
pub fn most_connections(limits: Limits) -> u64 {
    limits.peer_bytes as u64 / 4 / base(limits)
}

/// Opens the stream of records, tells the rate at which this end sends and the first credit of streams, and hears those of the peer.
pub async fn greet(connection: &Connection, rate: Option<Rate>, limits: Limits) -> Option<Greeted> {
    let mut out = connection.open_uni().await.ok()?;
    let (rate, base) = (rate.map_or(0, |rate| rate.0), base(limits) as u32);
    out.write_all(&[&[VERSION], &rate.to_be_bytes()[..], &base.to_be_bytes()].concat()).await.ok()?;
    let mut back = connection.accept_uni().await.ok()?;
    let mut told = [0; GREETING];
    back.read_exact(&mut told).await.ok()?;
    let (rate, base) = (u64::from_be_bytes(*told[1..].first_chunk()?), u32::from_be_bytes(*told[9..].first_chunk()?));
    let rate = Some(Rate(rate)).filter(|rate| rate.0 > 0);
    (told[0] == VERSION).then_some(Greeted { out, back, rate, base })
}

impl Credits {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Begins, with these limits, when both ends have greeted.
    pub fn begin(&self, connection: &Connection, greeted: &Greeted, limits: Limits) {
        let mut state = self.state();
        state.pool.total = limits.peer_bytes as u64;
        state.base = base(limits);
        state.peer_base = greeted.base as u64;
        state.most = limits.connection_bytes.unwrap_or(limits.most_window()) as u64;
        drop(state);
        let _ = self.begun.set((connection.clone(), greeted.rate));
    }
    /// Tells and hears records, until the connection fails or the peer sends something else.
    pub async fn follow(&self, turns: &Turns, greeted: &mut Greeted) {
        let Greeted { out, back, .. } = greeted;
        let _ = out.set_priority(i32::MAX);
        let tells = async {
            loop {
                self.changed.notified().await;
                let records = std::mem::take(&mut self.state().records);
                let bytes: Vec<u8> = records.into_iter().flat_map(|(key, value)| to_bytes(key, value)).collect();
                let mut written = 0;
                while written < bytes.len() {
                    match turns.write_first(out, &bytes[written..]).await {
                        Ok(some) => written += some,
                        Err(_) => return,
                    }
                }
            }
        };
        let hears = async {
            let mut record = [0; RECORD];
            while back.read_exact(&mut record).await.is_ok() && self.hear(&record) {}
        };
        tokio::select! {
            biased;
            () = hears => {}
            () = tells => {}
        }
    }
    /// A record of the peer: whether it is one.
    fn hear(&self, record: &[u8; RECORD]) -> bool {
        let number = |at: usize| record[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let (lowered, id, limit) = (record[1], number(2), number(10));
        let mut state = self.state();
        let State { pool, streams, records, .. } = &mut *state;
        let stream = streams.get_mut(&id);
        match (record[0], stream) {
            (RAISES, Some(stream)) => {
                stream.sending.raise(limit, lowered);
                stream.raised.notify_one();
            }
            (LOWERS, Some(stream)) => {
                if let Some(raised) = stream.receiving.lower(limit, lowered, pool) {
                    records.insert((id, RAISES), (lowered, raised));
                    self.changed.notify_one();
                }
            }
            (kind, _) => return kind <= LOWERS,
        }
        true
    }
    fn path(&self, most: u64) -> Path {
        let (rtt, rate) =
            self.begun.get().map_or((Duration::ZERO, UNKNOWN), |(to, rate)| (to.rtt(), rate.unwrap_or(UNKNOWN)));
        let needs = (PRODUCTS * rate.bytes_per_sec() * rtt.as_secs_f64()) as u64;
        Path { now: sys::monotonic(), round_trip: rtt.as_nanos() as u64, needs, most }
    }
    fn add(self: &Arc<Credits>, id: u64, limit: Option<u64>, opens: bool) -> Option<Account> {
        let path = self.path(self.state().most);
        let mut state = self.state();
        let State { pool, base, peer_base, streams, .. } = &mut *state;
        if !pool.admit(*base) {
            return None;
        }
        let mut receiving = Receiving::new(*base);
        if opens {
            receiving.give_ahead(path, pool);
            receiving.limit = receiving.window;
        }
        let first = receiving.limit;
        let sending = Sending { limit: limit.unwrap_or(*peer_base), written: 0, lowered: 0 };
        let raised = Arc::new(Notify::new());
        streams.insert(id, Stream { sending, receiving, raised: raised.clone() });
        Some(Account { credits: self.clone(), id, raised, first: first.min(u32::MAX as u64) as u32 })
    }
    /// Credit for a stream that this end opens; `None` if there is no room for another one. [`Account::first`] has to be told to the peer.
    pub fn open(self: &Arc<Credits>, id: u64) -> Option<Account> {
        self.add(id, None, true)
    }
    /// Credit for a stream that the peer has opened with this credit for what comes back.
    pub fn accept(self: &Arc<Credits>, id: u64, limit: u32) -> Option<Account> {
        self.add(id, Some(limit as u64), false)
    }
    /// Streams that were reset because they brought bytes beyond their credit.
    pub fn beyond(&self) -> u64 {
        self.beyond.load(Ordering::Relaxed)
    }
    /// The rate at which the peer sends, if it has told one.
    pub fn peer_rate(&self) -> Option<Rate> {
        self.begun.get().and_then(|(_, rate)| *rate)
    }
    /// Bytes by which windows of hosts that read may still grow.
    pub fn growth_left(&self) -> u64 {
        let state = self.state();
        (state.pool.total / 2).saturating_sub(state.pool.grown)
    }
    /// Bytes that the peer may send, or that wait here for hosts, at most.
    pub fn reserved(&self) -> u64 {
        let state = self.state();
        state.pool.base + state.pool.ahead + state.pool.grown
    }
}

fn to_bytes((id, kind): (u64, u8), (lowered, limit): (u8, u64)) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    (record[0], record[1]) = (kind, lowered);
    record[2..10].copy_from_slice(&id.to_be_bytes());
    record[10..].copy_from_slice(&limit.to_be_bytes());
    record
}

/// The credit of an open stream, which it has until this is dropped.
pub struct Account {
    credits: Arc<Credits>,
    id: u64,
    raised: Arc<Notify>,
    /// What the peer may send at first, bytes.
    pub first: u32,
}

impl Account {
    fn with<T>(&self, change: impl FnOnce(&mut Stream, &mut Pool) -> T) -> Option<T> {
        let mut state = self.credits.state();
        let State { pool, streams, .. } = &mut *state;
        streams.get_mut(&self.id).map(|stream| change(stream, pool))
    }
    fn tell(&self, kind: u8, lowered: u8, limit: u64) {
        self.credits.state().records.insert((self.id, kind), (lowered, limit));
        self.credits.changed.notify_one();
    }
    /// Waits until the peer takes bytes of this stream; how many.
    pub async fn room(&self, wait: &Wait) -> usize {
        let room = || self.with(|stream, _| stream.sending.limit.saturating_sub(stream.sending.written)).unwrap_or(0);
        let mut now = room();
        while now == 0 {
            wait.during(self.raised.notified()).await;
            now = room();
        }
        now.min(usize::MAX as u64) as usize
    }
    /// Bytes of this stream were sent.
    pub fn wrote(&self, bytes: usize) {
        self.with(|stream, _| stream.sending.written = stream.sending.written.saturating_add(bytes as u64));
    }
    /// This end has had nothing to send for some time: gives back what it does not need.
    pub fn give_back(&self) {
        let keep = self.credits.state().peer_base;
        let lowered = self.with(|stream, _| stream.sending.lower(keep).map(|limit| (stream.sending.lowered, limit)));
        if let Some((lowered, limit)) = lowered.flatten() {
            self.tell(LOWERS, lowered, limit);
        }
    }
    /// Bytes have arrived: whether they are within the credit.
    #[must_use]
    pub fn arrive(&self, bytes: usize) -> bool {
        let within = self.with(|stream, _| stream.receiving.arrive(bytes as u64)).unwrap_or(false);
        if !within {
            self.credits.beyond.fetch_add(1, Ordering::Relaxed);
        }
        within
    }
    /// The stream has ended: no more bytes will arrive.
    pub fn end(&self) {
        self.with(|stream, pool| stream.receiving.end(pool));
    }
    /// The host has taken bytes, or the next gateway: whether the peer may send more.
    pub fn take(&self, bytes: usize) -> bool {
        #[cfg(feature = "simulated")]
        if is_back(Fault::Unread) {
            return false;
        }
        self.takes(bytes)
    }
    fn takes(&self, bytes: usize) -> bool {
        let path = self.credits.path(self.credits.state().most);
        let raised = self.with(|stream, pool| {
            stream.receiving.take(bytes as u64, path, pool).map(|limit| (stream.receiving.lowered, limit))
        });
        let raised = raised.flatten();
        if let Some((lowered, limit)) = raised {
            self.tell(RAISES, lowered, limit);
        }
        raised.is_some()
    }
    /// Whether what has arrived counts as taken: a fault that tests put back.
    #[cfg(feature = "simulated")]
    pub fn take_unread(&self, bytes: usize) {
        if is_back(Fault::Unread) {
            self.takes(bytes);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let mut state = self.credits.state();
        let State { pool, streams, records, .. } = &mut *state;
        if let Some(stream) = streams.remove(&self.id) {
            stream.receiving.release(pool);
        }
        for kind in [RAISES, LOWERS] {
            records.remove(&(self.id, kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::rng::Rng;

    use super::*;

    const MB: u64 = 1_000_000;
    const BASE: u64 = 16 << 10;

    fn pool() -> Pool {
        Pool { total: 256 << 20, ..Pool::default() }
    }
    /// A path of 20 Mbit/s and 0.2 s needs 1.25 MB.
    fn path(now: u64) -> Path {
        Path { now, round_trip: 200_000_000, needs: 1_250_000, most: 32 << 20 }
    }
    fn opened(pool: &mut Pool) -> Receiving {
        assert!(pool.admit(BASE));
        Receiving::new(BASE)
    }

    #[test]
    fn a_stream_whose_host_reads_gets_what_the_path_needs() {
        let mut pool = pool();
        let mut stream = opened(&mut pool);
        assert!(stream.arrive(BASE));
        assert_eq!(stream.take(1400, path(0), &mut pool), Some(1400 + 1_250_000));
        assert_eq!(stream.take(300_000, path(1), &mut pool), None, "less than a quarter");
        assert!(stream.take(15_000, path(2), &mut pool).is_some());
        assert!(!stream.arrive(2 * MB) && stream.arrived > stream.limit, "beyond");
    }

    /// By hand: 100 Mbit/s and 0.2 s are 2.5 MB a round trip. 1.25 MB are taken in half of one, so that it doubles, as do 2.5 MB; 5 MB take
    /// two, and double; 10 MB take four.
    #[test]
    fn a_window_grows_while_it_is_taken_within_two_round_trips_and_shrinks_when_it_is_not_taken() {
        let mut pool = pool();
        let mut stream = opened(&mut pool);
        let (mut now, mut sizes) = (0, Vec::new());
        for _ in 0..20_000 {
            stream.arrive(2500);
            stream.take(2500, path(now), &mut pool);
            now += 200_000;
            sizes.push(stream.window);
        }
        sizes.dedup();
        assert_eq!(sizes, [1_250_000, 2_500_000, 5_000_000, 10_000_000]);
        assert_eq!(pool.base + pool.ahead + pool.grown, stream.limit - stream.taken.min(stream.limit - stream.window));
        assert_eq!(pool.ahead, 0, "what was given ahead is for others");
        // 16 round trips are 3.2 s. Bytes that come slowly are taken at once; then some always wait.
        for _ in 0..2_000 {
            stream.arrive(50_000);
            stream.take(50_000, path(now), &mut pool);
            now += 100_000_000;
        }
        assert_eq!(stream.window, 10_000_000, "the line is slow, and not the host");
        stream.arrive(50_000);
        for _ in 0..2_000 {
            stream.arrive(50_000);
            stream.take(50_000, path(now), &mut pool);
            now += 100_000_000;
        }
        assert!(stream.window < 4 * MB, "{}", stream.window);
        assert_eq!(pool.base + pool.ahead + pool.grown, stream.window.max(stream.limit - stream.taken));
    }

    /// 4,096 that are opened and never read: what is given ahead is used up, and who reads still grows.
    #[test]
    fn hosts_that_do_not_read_leave_half_of_the_pool_to_those_that_do() {
        let mut pool = pool();
        let mut all: Vec<Receiving> = (0..4096).map(|_| opened(&mut pool)).collect();
        assert!(!pool.admit(BASE), "one more is refused");
        for stream in &mut all[1..] {
            // Their kernels take some.
            stream.arrive(BASE);
            stream.take(BASE, path(0), &mut pool);
        }
        assert!(pool.ahead <= 64 << 20 && pool.ahead > 50 << 20, "{}", pool.ahead);
        assert_eq!(pool.grown, 0);
        let (one, mut now) = (&mut all[0], 0);
        while one.window < 1_250_000 && now < 1000 * 200_000_000 {
            one.arrive(one.window);
            one.take(one.window, path(now), &mut pool);
            now += 200_000_000;
        }
        assert!(now <= 10 * 200_000_000, "{} after {now}", one.window);
        all.iter().for_each(|stream| stream.release(&mut pool));
        assert_eq!((pool.base, pool.ahead, pool.grown), (0, 0, 0));
    }

    #[test]
    fn a_stream_without_bytes_to_send_gives_back_and_late_raises_do_not_count() {
        let mut pool = pool();
        let mut stream = opened(&mut pool);
        let mut sending = Sending { limit: BASE, written: 0, lowered: 0 };
        assert_eq!(sending.lower(BASE), None, "it has nothing to give");
        sending.written = 1400;
        stream.arrive(1400);
        let raised = stream.take(1400, path(0), &mut pool).unwrap();
        sending.raise(raised, 0);
        sending.written = 100_000;
        let lowered = sending.lower(BASE).unwrap();
        assert_eq!((lowered, sending.lowered, sending.limit), (100_000 + BASE, 1, 100_000 + BASE));
        sending.raise(9 * MB, 0);
        assert_eq!(sending.limit, lowered, "sent before the receiver knew");
        assert_eq!(stream.lower(lowered, 1, &mut pool), None, "less than a quarter");
        assert_eq!(pool.ahead, 100_000 - 1400 + BASE - BASE, "what may still come");
        assert!(stream.arrive(98_600));
        let raised = stream.take(98_600, path(1), &mut pool).unwrap();
        assert_eq!((raised, stream.lowered), (100_000 + 1_250_000, 1), "its host reads again");
        sending.raise(raised, 1);
        assert_eq!(sending.limit, raised);
    }

    /// A sender gives credit back while the path is down. What it sends then comes first, and is taken before the record is there.
    #[test]
    fn a_reduction_that_comes_late_leaves_its_stream_with_credit() {
        let mut pool = pool();
        let mut stream = opened(&mut pool);
        stream.give_ahead(path(0), &mut pool);
        stream.limit = stream.window;
        assert!(stream.arrive(BASE));
        assert_eq!(stream.take(BASE, path(1), &mut pool), None);
        assert_eq!(stream.lower(BASE, 1, &mut pool), Some(2 * BASE));
        assert_eq!(stream.lower(2 * BASE, 2, &mut pool), None, "it has enough");
        assert_eq!((pool.base, pool.ahead, pool.grown), (BASE, 0, 0));
    }

    /// Whatever a key holder sends: nothing overflows, and the pool keeps its sum.
    #[test]
    fn hostile_records_and_bytes_leave_the_sum_of_credit_alone() {
        let mut rng = Rng::stream(1, "credit");
        let mut draw = |most: u64| {
            let drawn = rng.next_u64();
            if drawn.is_multiple_of(7) { u64::MAX - drawn % 3 } else { drawn % most }
        };
        for round in 0..200 {
            let credits = Arc::new(Credits::default());
            (credits.state().pool.total, credits.state().base, credits.state().most) = (1 << 20, 4 << 10, 1 << 17);
            let accounts: Vec<Account> = (0..9).filter_map(|id| credits.accept(id, draw(1 << 20) as u32)).collect();
            for _ in 0..300 {
                let record = to_bytes((draw(12), (draw(3) % 3) as u8), (draw(4) as u8, draw(1 << 22)));
                assert_eq!(credits.hear(&record), record[0] <= LOWERS);
                let account = &accounts[draw(9) as usize % accounts.len()];
                let held = account.with(|stream, _| stream.receiving.arrived - stream.receiving.taken).unwrap();
                match draw(5) {
                    0 if held > 0 => drop(account.takes(draw(held) as usize % (held as usize + 1))),
                    1 => account.give_back(),
                    2 => account.wrote(draw(1 << 12) as usize % (1 << 20)),
                    _ => {
                        let room = account.with(|stream, _| stream.receiving.limit - stream.receiving.arrived).unwrap();
                        assert!(account.arrive(draw(room + 1) as usize % (room as usize + 1)));
                    }
                }
                let state = credits.state();
                let reserved = state.pool.base + state.pool.ahead + state.pool.grown;
                let promised: u64 = state.streams.values().map(|s| s.receiving.limit - s.receiving.taken).sum();
                assert!(promised <= reserved && reserved <= state.pool.total, "round {round}: {promised} {reserved}");
            }
            drop(accounts);
            assert_eq!(credits.reserved(), 0);
            assert!(credits.state().records.is_empty() && credits.state().streams.is_empty());
        }
    }
}
