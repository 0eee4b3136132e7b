//! TCP between a host and its gateway: finite buffers, a delay, FIN, RST, keep-alive, and hosts that vanish.
//!
//! Half of the capacity of a direction is the buffer of the receiver: what is in it when the receiver vanishes was acknowledged. What
//! is not acknowledged is repeated until the kernel gives up (`tcp_retries2` of tcp(7)).

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::faults::{Fault, is_back};
use super::record::{Record, Who};
use super::{clock, memory};

/// How long a kernel repeats what is not acknowledged, by default.
const GIVES_UP: u64 = 924_600_000_000;
/// How long it takes a kernel's own keep-alive to find that a host is gone, by default.
const TWO_HOURS: u64 = (7_200 + 9 * 75) * 1_000_000_000;

/// What is on the way to a side.
#[derive(Default)]
struct Half {
    chunks: VecDeque<(u64, Vec<u8>)>,
    bytes: usize,
    /// When a FIN arrives.
    fin: Option<u64>,
}

#[derive(Default)]
struct Side {
    /// When a RST arrives.
    reset: Option<u64>,
    closed: bool,
    vanished: Option<u64>,
    /// After which silence the host at the other end is gone.
    keep_alive: Option<u64>,
    /// Since when something is not acknowledged.
    unanswered: Option<u64>,
}

struct State {
    /// What each side reads.
    toward: [Half; 2],
    sides: [Side; 2],
}

struct Pair {
    state: Mutex<State>,
    changed: [Notify; 2],
    capacity: usize,
    delay: u64,
    record: Arc<Record>,
    number: u32,
    who: [Who; 2],
}

/// An end of a connection. Dropped, it ends the connection by a reset.
pub struct End {
    pair: Arc<Pair>,
    side: usize,
}

/// How a pair is made.
pub struct Plan {
    /// Bytes that each direction takes and no program reads.
    pub capacity: usize,
    /// Time of a segment, ns.
    pub delay: u64,
    /// Number of the connection.
    pub number: u32,
    /// Who has the ends.
    pub who: [Who; 2],
}

/// Both ends of a connection that is open.
pub fn pair(plan: Plan, record: &Arc<Record>) -> [End; 2] {
    let Plan { capacity, delay, number, who } = plan;
    let state = State { toward: Default::default(), sides: Default::default() };
    let (state, changed, record) = (Mutex::new(state), Default::default(), record.clone());
    let pair = Arc::new(Pair { state, changed, capacity, delay, record, number, who });
    for who in who.into_iter().filter(|who| matches!(who, Who::Near | Who::Far)) {
        pair.record.opened(number, who);
    }
    [End { pair: pair.clone(), side: 0 }, End { pair, side: 1 }]
}

/// What a poll of an end says: it is done, or it changes at this time at the latest.
enum Step<T> {
    Done(T),
    At(Option<u64>),
}

fn first(times: [Option<u64>; 3]) -> Option<u64> {
    times.into_iter().flatten().min()
}

impl State {
    /// When the connection fails for a side, as far as is known.
    fn fails_at(&self, side: usize) -> Option<u64> {
        let (own, other) = (&self.sides[side], &self.sides[1 - side]);
        let silent = other.vanished.map(|at| match own.unanswered {
            Some(since) => since.max(at) + GIVES_UP,
            None => own.keep_alive.map_or(u64::MAX, |span| at + span),
        });
        first([own.reset, silent, None])
    }
    fn has_failed(&self, side: usize, now: u64) -> bool {
        self.fails_at(side).is_some_and(|at| at <= now)
    }
}

impl End {
    fn state(&self) -> MutexGuard<'_, State> {
        self.pair.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn who(&self) -> Who {
        self.pair.who[self.side]
    }
    fn wake(&self) {
        self.pair.changed.iter().for_each(Notify::notify_waiters);
    }
    async fn wait<T>(&self, mut step: impl FnMut(&mut State, u64) -> Step<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.pair.changed[self.side].notified());
            changed.as_mut().enable();
            let step = step(&mut self.state(), clock::elapsed());
            match step {
                Step::Done(done) => return done,
                Step::At(at) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = clock::until(at) => {}
                },
            }
        }
    }

    /// Asks the other host after a silence; it is gone after so long.
    pub fn keep_alive(&self, after: Duration) {
        let after = if is_back(Fault::KeepAlive) { TWO_HOURS } else { after.as_nanos() as u64 };
        self.state().sides[self.side].keep_alive = Some(after);
    }
    /// Completes when the connection has failed.
    pub async fn failed(&self) {
        self.wait(|state, now| match state.has_failed(self.side, now) {
            true => Step::Done(()),
            false => Step::At(state.fails_at(self.side)),
        })
        .await;
    }
    /// The time since the last acknowledgement, if one is due.
    pub fn unacked(&self) -> Option<Duration> {
        let state = self.state();
        let vanished = state.sides[1 - self.side].vanished?;
        state.sides[self.side].unanswered.map(|_| Duration::from_nanos(clock::elapsed() - vanished))
    }
    /// Reads some bytes; 0 at the end.
    pub async fn read(&self, block: &mut [u8]) -> io::Result<usize> {
        let read = self
            .wait(|state, now| {
                let failed = state.has_failed(self.side, now);
                let fails_at = state.fails_at(self.side);
                let half = &mut state.toward[self.side];
                let mut read = 0;
                while let Some((at, chunk)) = half.chunks.front_mut()
                    && *at <= now
                    && read < block.len()
                {
                    let some = chunk.len().min(block.len() - read);
                    block[read..read + some].copy_from_slice(&chunk[..some]);
                    read += some;
                    if some == chunk.len() {
                        half.chunks.pop_front();
                    } else {
                        chunk.drain(..some);
                    }
                }
                half.bytes -= read;
                if read > 0 {
                    return Step::Done(Ok(read));
                }
                match half.chunks.front() {
                    // A FIN that has arrived is the end, whatever follows it.
                    None if half.fin.is_some_and(|at| at <= now) => Step::Done(Ok(0)),
                    _ if failed => Step::Done(Err(ErrorKind::ConnectionReset.into())),
                    Some((at, _)) => Step::At(first([Some(*at), fails_at, None])),
                    None => Step::At(first([half.fin, fails_at, None])),
                }
            })
            .await;
        if let Ok(bytes @ 1..) = read {
            self.pair.record.moved(self.pair.number, self.who(), bytes, true);
            self.wake();
        }
        read
    }
    /// Writes what there is room for.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let now = clock::elapsed();
        let mut state = self.state();
        if state.has_failed(self.side, now) {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let other = 1 - self.side;
        if state.toward[other].fin.is_some() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if state.sides[other].vanished.is_some() {
            state.sides[self.side].unanswered.get_or_insert(now);
            self.pair.record.waits(self.pair.number);
        }
        if state.sides[other].closed {
            // No program reads: the other kernel answers by a reset, and the bytes are lost.
            state.sides[self.side].reset.get_or_insert(now + 2 * self.pair.delay);
        }
        let half = &mut state.toward[other];
        let some = bytes.len().min(self.pair.capacity - half.bytes);
        if some == 0 && !bytes.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        half.bytes += some;
        memory::of(None, || half.chunks.push_back((now + self.pair.delay, bytes[..some].to_vec())));
        drop(state);
        self.pair.record.moved(self.pair.number, self.who(), some, false);
        self.wake();
        Ok(some)
    }
    /// Completes when there may be room, or the connection has failed.
    pub async fn writable(&self) {
        self.wait(|state, now| {
            let room = state.toward[1 - self.side].bytes < self.pair.capacity;
            if room || state.has_failed(self.side, now) { Step::Done(()) } else { Step::At(state.fails_at(self.side)) }
        })
        .await;
    }
    /// Writes all bytes.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(some) => bytes = &bytes[some..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.writable().await,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
    /// Sends nothing more (FIN).
    pub fn finish(&self) -> io::Result<()> {
        let now = clock::elapsed();
        let mut state = self.state();
        if state.has_failed(self.side, now) {
            return Err(ErrorKind::NotConnected.into());
        }
        state.toward[1 - self.side].fin.get_or_insert(now + self.pair.delay);
        drop(state);
        self.wake();
        Ok(())
    }
    /// Closes orderly: what was written still arrives; what the other end writes is answered by a reset.
    pub fn release(self) {
        let now = clock::elapsed();
        let mut state = self.state();
        let unread = state.toward[self.side].bytes > 0;
        state.sides[self.side].closed = true;
        let other = 1 - self.side;
        state.toward[other].fin.get_or_insert(now + self.pair.delay);
        if unread {
            state.sides[other].reset.get_or_insert(now + self.pair.delay);
        }
        drop(state);
        self.pair.record.closed(self.pair.number, self.who(), "closes");
        self.wake();
    }
    /// The host is gone without a word.
    pub fn vanish(self) {
        let now = clock::elapsed();
        let mut state = self.state();
        let other = 1 - self.side;
        state.sides[self.side].vanished = Some(now);
        if state.toward[self.side].bytes > self.pair.capacity / 2 {
            state.sides[other].unanswered.get_or_insert(now);
            self.pair.record.waits(self.pair.number);
        }
        drop(state);
        self.pair.record.tell(self.pair.number, self.who(), "vanishes");
        self.wake();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let now = clock::elapsed();
        let mut state = self.state();
        let own = &state.sides[self.side];
        if own.closed || own.vanished.is_some() {
            return;
        }
        state.sides[self.side].closed = true;
        let other = 1 - self.side;
        state.sides[other].reset.get_or_insert(now + self.pair.delay);
        // What the other kernel had no room for is not sent any more.
        let (half, room) = (&mut state.toward[other], self.pair.capacity / 2);
        while half.bytes > room
            && let Some((_, chunk)) = half.chunks.pop_back()
        {
            half.bytes -= chunk.len();
        }
        drop(state);
        self.pair.record.closed(self.pair.number, self.who(), "closes by a reset");
        self.wake();
    }
}
