//! Joins a TCP connection and a QUIC stream, or at a hub the streams of two peers.
//!
//! Each direction ends by itself where its sender closes it (FIN there, FIN here). An error of either side ends both
//! directions by a reset at both ends: no connection closes orderly behind missing bytes. The way to a peer holds one block of
//! [`BLOCK`] bytes, that to a host what its [credit](super::credit) allows.
//!
//! A reset is noticed while bytes wait, too, and what waits is dropped at both ends (RFC 9293 section 3.10.7.4, RFC 9000
//! section 3.5). It does not stop bytes that its host had closed behind: these are delivered first. The same holds when a tunnel is lost.

use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use quinn::{ReadError, RecvStream, SendStream, StoppedError, VarInt, WriteError};
use tokio::sync::Notify;

use super::credit::{Account, IDLE};
use super::open::Open;
use super::tcp::Tcp;
use super::tunnel::Tunnel;
use super::turns::Lane;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Bytes of a block.
pub const BLOCK: usize = 32 << 10;

/// Why a stream was reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Cause {
    /// The TCP connection was reset.
    Reset = 1,
    /// The destination refused the connection.
    Refused = 2,
    /// The destination did not answer.
    TimedOut = 3,
    /// There is no route to the destination.
    Unreachable = 4,
    /// The addresses are not those of the configuration.
    NotAllowed = 5,
    /// The limit of connections is reached.
    TooMany = 6,
}

impl From<Cause> for VarInt {
    fn from(cause: Cause) -> VarInt {
        VarInt::from_u32(cause as u32)
    }
}

/// Bytes carried from the TCP connection and to it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Carried {
    /// From TCP to the peer.
    pub sent: u64,
    /// From the peer to TCP.
    pub received: u64,
}

impl Cause {
    /// The cause that a peer has named.
    fn named(code: VarInt) -> Cause {
        let known = [Cause::Refused, Cause::TimedOut, Cause::Unreachable, Cause::NotAllowed, Cause::TooMany];
        known.into_iter().find(|cause| VarInt::from(*cause) == code).unwrap_or(Cause::Reset)
    }
}

/// How a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Both hosts have closed it, and all bytes have arrived.
    Closed,
    /// By the host at this end.
    Host,
    /// By the peer.
    Peer(Cause),
    /// It was not opened from here.
    NotOpened(Cause),
    /// With its tunnel.
    Tunnel,
}

impl Ended {
    /// In words; `near` says that the host at this end is the client.
    pub fn words(self, near: bool) -> String {
        let (here, there) = if near { ("client", "destination") } else { ("destination", "client") };
        let words = match self {
            Ended::Host => return format!("reset by the {here}, or the {here} is gone"),
            Ended::Peer(Cause::Reset) => return format!("reset by the {there}, or the {there} is gone"),
            Ended::Closed => "closed by both",
            Ended::Tunnel => "the tunnel was lost",
            Ended::NotOpened(Cause::Reset) => "reset by the client before it was open",
            Ended::Peer(Cause::Refused) | Ended::NotOpened(Cause::Refused) => "refused by the destination",
            Ended::Peer(Cause::TimedOut) | Ended::NotOpened(Cause::TimedOut) => "no answer from the destination",
            Ended::Peer(Cause::NotAllowed) | Ended::NotOpened(Cause::NotAllowed) => "not allowed",
            Ended::Peer(Cause::TooMany) | Ended::NotOpened(Cause::TooMany) => "limit of connections",
            Ended::Peer(Cause::Unreachable) | Ended::NotOpened(Cause::Unreachable) => "no way to the destination",
        };
        words.to_string()
    }
}

/// Why the peer has ended a stream, as far as it has said so.
async fn named(stream: &SendStream) -> Cause {
    let mut stopped = pin!(stream.stopped());
    let said = poll_fn(|cx| Poll::Ready(stopped.as_mut().poll(cx))).await;
    match said {
        Poll::Ready(Ok(Some(code))) => Cause::named(code),
        _ => Cause::Reset,
    }
}

/// What ended a connection before its time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// The TCP connection.
    Host,
    /// The stream.
    Peer,
    /// The tunnel.
    Tunnel,
}

impl From<ReadError> for Broken {
    fn from(reason: ReadError) -> Broken {
        if matches!(reason, ReadError::ConnectionLost(_)) { Broken::Tunnel } else { Broken::Peer }
    }
}

impl From<WriteError> for Broken {
    fn from(reason: WriteError) -> Broken {
        if matches!(reason, WriteError::ConnectionLost(_)) { Broken::Tunnel } else { Broken::Peer }
    }
}

impl From<StoppedError> for Broken {
    fn from(reason: StoppedError) -> Broken {
        if matches!(reason, StoppedError::ConnectionLost(_)) { Broken::Tunnel } else { Broken::Peer }
    }
}

/// How often a stream is looked at whose bytes wait.
const LOOK: Duration = Duration::from_millis(100);

/// Completes when a stream has been reset, whether or not it still has bytes to be read.
///
/// quinn's own `received_reset` would leave its waker behind if the stream then ends orderly, since nothing wakes it any more. Reading no
/// byte fails after a reset, and leaves none while there are bytes.
pub async fn is_reset(stream: &mut RecvStream) {
    #[cfg(feature = "simulated")]
    if is_back(Fault::Cancel) {
        return pending().await;
    }
    loop {
        match stream.read_chunk(0, true).await {
            Ok(Some(_)) => tokio::time::sleep(LOOK).await,
            Ok(None) => pending().await,
            Err(_) => return,
        }
    }
}

/// What has arrived in a stream, and the host or the next gateway has not taken. It is read from QUIC at once, so that QUIC's windows stay
/// open for the others, and a reset is seen behind bytes that wait; [credit](super::credit) bounds it.
#[derive(Default)]
struct Arrived {
    waiting: Mutex<Waiting>,
    more: Notify,
}

#[derive(Default)]
struct Waiting {
    bytes: VecDeque<u8>,
    /// The stream has ended behind them.
    ended: bool,
}

/// Room for bytes grows by a quarter, and by so many at least.
const GROWS: usize = 4 << 10;
/// An empty buffer keeps at most so much memory, bytes.
const KEPT: usize = 2 * BLOCK;

impl Waiting {
    fn push(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            let more = bytes.len().max(self.bytes.capacity() / 4).max(GROWS);
            self.bytes.reserve_exact(more);
        }
        self.bytes.extend(bytes);
    }
    fn first(&self, most: usize) -> Vec<u8> {
        let first = self.bytes.as_slices().0;
        first[..first.len().min(most)].to_vec()
    }
    fn drop_first(&mut self, count: usize) {
        self.bytes.drain(..count);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = VecDeque::new();
        }
    }
}

impl Arrived {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Reads a stream to its end, and fails when it is reset, its tunnel is lost, or it brings more than its credit.
    async fn fill(&self, stream: &mut RecvStream, account: &Account, open: &Open) -> Result<(), Broken> {
        loop {
            let chunk = match stream.read_chunk(BLOCK, true).await {
                Ok(chunk) => chunk,
                #[cfg(feature = "simulated")]
                Err(_) if is_back(Fault::Cancel) => {
                    while !self.waiting().bytes.is_empty() {
                        tokio::time::sleep(LOOK).await;
                    }
                    return Err(Broken::Peer);
                }
                Err(reason) => return Err(reason.into()),
            };
            match &chunk {
                Some(chunk) if !account.arrive(chunk.bytes.len()) => return Err(Broken::Peer),
                Some(chunk) => {
                    #[cfg(feature = "simulated")]
                    account.take_unread(chunk.bytes.len());
                    self.waiting().push(&chunk.bytes);
                    open.held.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
                }
                None => {
                    account.end();
                    self.waiting().ended = true;
                }
            }
            self.more.notify_one();
            if chunk.is_none() {
                return Ok(());
            }
        }
    }
    /// Waits for bytes; false at the end.
    async fn comes(&self) -> bool {
        loop {
            {
                let waiting = self.waiting();
                if !waiting.bytes.is_empty() {
                    return true;
                }
                if waiting.ended {
                    return false;
                }
            }
            self.more.notified().await;
        }
    }
    /// So many bytes were taken.
    fn taken(&self, count: usize, (tunnel, account): (&Tunnel, &Account), open: &Open) {
        self.waiting().drop_first(count);
        open.held.fetch_sub(count as u64, Ordering::Relaxed);
        if account.take(count) {
            tunnel.cover();
        }
    }
    /// Writes what arrives to a host.
    async fn drain(&self, tcp: &Tcp, of: (&Tunnel, &Account), open: &Open, count: &mut u64) -> Result<(), Broken> {
        while self.comes().await {
            let written = tcp.try_write(self.waiting().bytes.as_slices().0);
            match written {
                Ok(some) => {
                    *count += some as u64;
                    self.taken(some, of, open);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    open.host.during(tcp.writable()).await.map_err(|_| Broken::Host)?;
                }
                Err(_) => return Err(Broken::Host),
            }
        }
        tcp.finish().map_err(|_| Broken::Host)
    }
}

async fn write_all(tcp: &Tcp, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match tcp.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => tcp.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A stream with its tunnel, its credit, and its place in the order of the tunnel.
pub struct Leg {
    /// Its halves.
    pub streams: (SendStream, RecvStream),
    /// Its tunnel.
    pub tunnel: Arc<Tunnel>,
    /// Its credit.
    pub account: Account,
    /// Its place.
    pub lane: Lane,
}

/// What a half of a leg sends by.
type Sends<'a> = (&'a Tunnel, &'a Account, &'a Lane);

/// Writes bytes as far as the peer takes some; how many.
async fn write(
    stream: &mut SendStream,
    (tunnel, account, lane): Sends<'_>,
    bytes: &[u8],
    open: &Open,
) -> Result<usize, WriteError> {
    let room = account.room(&open.peer).await;
    let written = tunnel.write(lane, stream, &bytes[..bytes.len().min(room)]).await?;
    account.wrote(written);
    Ok(written)
}

/// Reads from a host; a stream that has nothing to send for some time gives its credit back.
async fn read(tcp: &Tcp, block: &mut [u8], account: &Account) -> io::Result<usize> {
    match tokio::time::timeout(IDLE, tcp.read(block)).await {
        Ok(read) => read,
        Err(_) => {
            account.give_back();
            tcp.read(block).await
        }
    }
}

/// Reads what there is without waiting into the rest of a block that has so many bytes; whether the host has closed its half behind them.
async fn read_on(tcp: &Tcp, block: &mut [u8], read: &mut usize) -> io::Result<bool> {
    while 0 < *read && *read < block.len() {
        match unless(async { Some(tcp.read(&mut block[*read..]).await) }, async { None }).await {
            None => return Ok(false),
            Some(more) => match more? {
                0 => return Ok(true),
                more => *read += more,
            },
        }
    }
    Ok(*read == 0)
}

/// Carries what the host sends; `finished` when it has closed its half and all of it is on the way, `delivers` while it has closed its
/// half and the last bytes are not. Ends without that when the peer takes no more.
async fn to_peer(
    tcp: &Tcp,
    stream: &mut SendStream,
    by: Sends<'_>,
    open: &Open,
    count: &mut u64,
    (finished, delivers): (&mut bool, &AtomicBool),
) -> Result<(), Broken> {
    let stopped = stream.stopped();
    let carries = async {
        let mut block = vec![0; BLOCK];
        loop {
            let mut read = read(tcp, &mut block, by.1).await.map_err(|_| Broken::Host)?;
            let last = read_on(tcp, &mut block, &mut read).await.map_err(|_| Broken::Host)?;
            delivers.store(last, Ordering::Relaxed);
            // Behind less than a block the client may wait for an answer.
            if read < BLOCK {
                by.0.cover();
            }
            let mut written = 0;
            while written < read {
                match write(stream, by, &block[written..read], open).await {
                    Ok(some) => written += some,
                    Err(WriteError::Stopped(_)) => return Ok(()),
                    Err(reason) => return Err(reason.into()),
                }
            }
            *count += read as u64;
            if last {
                *finished = stream.finish().is_ok();
                return Ok(());
            }
        }
    };
    let ended = unless(carries, async { stopped.await.map(drop).map_err(Broken::from) }).await;
    delivers.store(false, Ordering::Relaxed);
    ended
}

/// Carries both directions to their ends; whether both ended orderly.
pub async fn run(tcp: Tcp, leg: Leg, open: &Open) -> (Carried, bool) {
    let Leg { streams: (mut send, mut receive), tunnel, account, lane } = leg;
    let (mut carried, mut finished) = (Carried::default(), false);
    let (arrived, delivers) = (Arrived::default(), AtomicBool::new(false));
    let ended = {
        let last = (&mut finished, &delivers);
        let there = to_peer(&tcp, &mut send, (&tunnel, &account, &lane), open, &mut carried.sent, last);
        let comes = arrived.fill(&mut receive, &account, open);
        let back = arrived.drain(&tcp, (&tunnel, &account), open, &mut carried.received);
        unless(async { tokio::try_join!(there, comes, back).map(drop) }, async {
            tcp.failed().await;
            // A reset behind its FIN takes nothing back of what the host had sent before.
            while delivers.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK).await;
            }
            Err(Broken::Host)
        })
        .await
    };
    open.set_ended(match ended {
        Ok(()) if finished => Ended::Closed,
        Err(Broken::Host) => Ended::Host,
        Err(Broken::Tunnel) => Ended::Tunnel,
        _ => Ended::Peer(named(&send).await),
    });
    // What a host had sent and closed behind is still delivered: here what the stream has, or what the kernel has for the host.
    if !finished || matches!(ended, Err(Broken::Peer | Broken::Tunnel)) {
        let _ = send.reset(Cause::Reset.into());
    }
    match ended {
        Ok(()) => tcp.release(),
        #[cfg(feature = "simulated")]
        Err(_) if is_back(Fault::Orderly) => tcp.release(),
        Err(_) => {
            let _ = receive.stop(Cause::Reset.into());
            tcp.reset();
        }
    }
    (carried, ended.is_ok() && finished)
}

/// The result of `what`, unless `other` comes first.
pub async fn unless<T>(what: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        result = what => result,
        result = other => result,
    }
}

/// Carries from one TCP connection to another; `finished` when the first has closed its half.
async fn pump(from: &Tcp, to: &Tcp, finished: &mut bool, count: &mut u64) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let read = from.read(&mut block).await?;
        if read == 0 {
            *finished = true;
            return to.finish();
        }
        write_all(to, &block[..read]).await?;
        *count += read as u64;
    }
}

/// Carries both directions between two TCP connections, of a client and of its destination, to their ends; how that was.
pub async fn direct(near: Tcp, far: Tcp) -> (Carried, Ended) {
    let (mut carried, mut finished) = (Carried::default(), [false; 2]);
    let ended = {
        let ([there, back], Carried { sent, received }) = (&mut finished, &mut carried);
        let both = async { tokio::try_join!(pump(&near, &far, there, sent), pump(&far, &near, back, received)) };
        tokio::select! {
            biased;
            both = both => if both.is_ok() { Ended::Closed } else { Ended::Host },
            () = near.failed() => Ended::Host,
            () = far.failed() => Ended::Peer(Cause::Reset),
        }
    };
    let [there, back] = finished;
    // What a host had sent and closed behind is still delivered.
    for (tcp, all) in [(far, there), (near, back)] {
        if all { tcp.release() } else { tcp.reset() }
    }
    (carried, ended)
}

/// Carries from one stream to another; `finished` when all of it is on the way.
async fn to_stream(
    (from, of): (&mut RecvStream, (&Tunnel, &Account)),
    (to, by): (&mut SendStream, Sends<'_>),
    open: &Open,
    count: &mut u64,
    finished: &mut bool,
) -> Result<(), Broken> {
    let (arrived, stopped) = (Arrived::default(), to.stopped());
    let onward = async {
        loop {
            let comes = match tokio::time::timeout(IDLE, arrived.comes()).await {
                Ok(comes) => comes,
                Err(_) => {
                    by.1.give_back();
                    arrived.comes().await
                }
            };
            if !comes {
                break;
            }
            let block = arrived.waiting().first(BLOCK);
            match write(to, by, &block, open).await {
                Ok(some) => {
                    *count += some as u64;
                    arrived.taken(some, of, open);
                }
                Err(WriteError::Stopped(_)) => return Ok(()),
                Err(reason) => return Err(reason.into()),
            }
        }
        *finished = to.finish().is_ok();
        Ok(())
    };
    let fills = async {
        arrived.fill(from, of.1, open).await?;
        // Carried onward, or taken no more: the other half says so.
        pending().await
    };
    let stops = async { stopped.await.map(drop).map_err(Broken::from) };
    let ended = unless(unless(onward, fills), stops).await;
    if !*finished {
        let _ = from.stop(Cause::Reset.into());
    }
    ended
}

/// Carries both directions between a stream of one peer and one of another to their ends, as [`run`] does.
pub async fn between(leg: Leg, beyond: Leg, open: &Open) -> (Carried, bool) {
    let Leg { streams: (mut send, mut receive), tunnel, account, lane } = leg;
    let (mut onward_send, mut onward_receive) = beyond.streams;
    let (mut carried, mut finished) = (Carried::default(), [false; 2]);
    let [out, home] = &mut finished;
    let (by, onward_by) = ((&*tunnel, &account, &lane), (&*beyond.tunnel, &beyond.account, &beyond.lane));
    let near = (&mut receive, (by.0, by.1));
    let far = (&mut onward_receive, (onward_by.0, onward_by.1));
    let there = to_stream(near, (&mut onward_send, onward_by), open, &mut carried.received, out);
    let back = to_stream(far, (&mut send, by), open, &mut carried.sent, home);
    let both = tokio::try_join!(there, back);
    if both.is_err() {
        abort(&mut send, &mut receive, Cause::Reset);
        abort(&mut onward_send, &mut onward_receive, Cause::Reset);
    }
    let [out, home] = finished;
    for (stream, all) in [(&mut onward_send, out), (&mut send, home)] {
        if !all {
            let _ = stream.reset(Cause::Reset.into());
        }
    }
    (carried, out && home)
}

/// Resets a stream in both directions.
pub fn abort(send: &mut SendStream, receive: &mut RecvStream, cause: Cause) {
    let _ = send.reset(cause.into());
    let _ = receive.stop(cause.into());
}

#[cfg(test)]
mod tests;
