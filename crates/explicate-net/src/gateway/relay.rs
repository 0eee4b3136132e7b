//! Joins a TCP connection and a QUIC stream, or at a hub the streams of two peers.
//!
//! Each direction ends by itself where its sender closes it (FIN there, FIN here). An error of either side ends both
//! directions by a reset at both ends: no connection closes orderly behind missing bytes. Each direction holds one block of
//! [`BLOCK`] bytes; QUIC's flow control bounds the rest.
//!
//! A reset is noticed while bytes wait, too, and what waits is dropped at both ends (RFC 9293 section 3.10.7.4, RFC 9000
//! section 3.5). It does not stop bytes that its host had closed behind: these are delivered first. The same holds when a tunnel is lost.

use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use quinn::{RecvStream, SendStream, VarInt, WriteError};

use super::open::{Open, Wait};
use super::tcp::Tcp;
use super::tunnel::Tunnel;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Bytes of a block.
pub const BLOCK: usize = 32 << 10;
/// Bytes that a stream sends before those that follow yield to younger streams: requests and keystrokes before files.
const YOUNG: u64 = 128 << 10;

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

/// What a stream brings. Of one whose tunnel is lost, all is delivered if nothing is missing.
struct Arriving<'a> {
    stream: &'a mut RecvStream,
    lost: &'a AtomicBool,
    /// What has arrived to the end of the stream, once the tunnel is lost.
    rest: Option<VecDeque<Bytes>>,
}

impl<'a> Arriving<'a> {
    fn new(stream: &'a mut RecvStream, lost: &'a AtomicBool) -> Arriving<'a> {
        Arriving { stream, lost, rest: None }
    }
    async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        if let Some(rest) = &mut self.rest {
            return Ok(rest.pop_front());
        }
        let chunk = self.stream.read_chunk(BLOCK, true).await.map_err(|_| Broken::Peer)?;
        Ok(chunk.map(|chunk| chunk.bytes))
    }
    /// Completes when the stream was reset, or when its tunnel is lost and bytes are missing: quinn tells neither to a reader that has
    /// not read what came before.
    async fn breaks(&mut self) {
        if self.rest.is_none() {
            let lost = async {
                while !self.lost.load(Ordering::Relaxed) {
                    tokio::time::sleep(LOOK).await;
                }
                true
            };
            let reset = async {
                is_reset(self.stream).await;
                false
            };
            if !unless(reset, lost).await {
                return;
            }
            let mut rest = VecDeque::new();
            // Nothing more can come, so this does not wait.
            loop {
                match self.stream.read_chunk(BLOCK, true).await {
                    Ok(Some(chunk)) => rest.push_back(chunk.bytes),
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            self.rest = Some(rest);
        }
        pending().await
    }
}

async fn write_all(tcp: &Tcp, mut bytes: &[u8], wait: Option<&Wait>) -> io::Result<()> {
    while !bytes.is_empty() {
        match tcp.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => match wait {
                Some(wait) => wait.during(tcp.writable()).await?,
                None => tcp.writable().await?,
            },
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Carries what the host sends; `finished` when it has closed its half and all of it is on the way. Ends without that when the peer
/// takes no more.
async fn to_peer(
    tcp: &Tcp,
    stream: &mut SendStream,
    (tunnel, open): (&Tunnel, &Open),
    count: &mut u64,
    finished: &mut bool,
) -> Result<(), Broken> {
    let stopped = stream.stopped();
    let carries = async {
        let mut block = vec![0; BLOCK];
        let _ = stream.set_priority(1);
        loop {
            let read = tcp.read(&mut block).await.map_err(|_| Broken::Host)?;
            // Behind less than a block the client may wait for an answer.
            if read < BLOCK {
                tunnel.cover();
            }
            if read == 0 {
                *finished = stream.finish().is_ok();
                return Ok(());
            }
            let mut written = 0;
            while written < read {
                let young = *count <= YOUNG;
                match tunnel.write(stream, &block[written..read], young, &open.peer).await {
                    Ok(some) => written += some,
                    Err(WriteError::Stopped(_)) => return Ok(()),
                    Err(_) => return Err(Broken::Peer),
                }
            }
            *count += read as u64;
            if *count > YOUNG {
                let _ = stream.set_priority(0);
            }
        }
    };
    unless(carries, async { stopped.await.map(drop).map_err(|_| Broken::Peer) }).await
}

async fn to_tcp(mut from: Arriving<'_>, tcp: &Tcp, open: &Open, count: &mut u64) -> Result<(), Broken> {
    while let Some(bytes) = from.next().await? {
        tokio::select! {
            biased;
            written = write_all(tcp, &bytes, Some(&open.host)) => written.map_err(|_| Broken::Host)?,
            () = from.breaks() => return Err(Broken::Peer),
        }
        *count += bytes.len() as u64;
    }
    tcp.finish().map_err(|_| Broken::Host)
}

/// Carries both directions to their ends; whether both ended orderly.
pub async fn run(
    tcp: Tcp,
    (mut send, mut receive): (SendStream, RecvStream),
    tunnel: &Tunnel,
    open: &Open,
) -> (Carried, bool) {
    let (mut carried, mut finished) = (Carried::default(), false);
    let ended = {
        let there = to_peer(&tcp, &mut send, (tunnel, open), &mut carried.sent, &mut finished);
        let back = to_tcp(Arriving::new(&mut receive, &tunnel.lost), &tcp, open, &mut carried.received);
        unless(async { tokio::try_join!(there, back).map(drop) }, async {
            tcp.failed().await;
            Err(Broken::Host)
        })
        .await
    };
    open.set_ended(match ended {
        Ok(()) if finished => Ended::Closed,
        Err(Broken::Host) => Ended::Host,
        _ if tunnel.lost.load(Ordering::Relaxed) => Ended::Tunnel,
        _ => Ended::Peer(named(&send).await),
    });
    // What a host had sent and closed behind is still delivered: here what the stream has, or what the kernel has for the host.
    if !finished || ended == Err(Broken::Peer) {
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
        write_all(to, &block[..read], None).await?;
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
    mut from: Arriving<'_>,
    to: &mut SendStream,
    count: &mut u64,
    finished: &mut bool,
) -> Result<(), Broken> {
    let stopped = to.stopped();
    let carries = async {
        while let Some(bytes) = from.next().await? {
            let length = bytes.len() as u64;
            let written = async { to.write_chunk(bytes).await };
            let breaks = async {
                from.breaks().await;
                Err(WriteError::ClosedStream)
            };
            match unless(written, breaks).await {
                Ok(()) => {}
                Err(WriteError::Stopped(_)) => return Ok(()),
                Err(_) => return Err(Broken::Peer),
            }
            *count += length;
        }
        *finished = to.finish().is_ok();
        Ok(())
    };
    let ended = unless(carries, async { stopped.await.map(drop).map_err(|_| Broken::Peer) }).await;
    if !*finished {
        let _ = from.stream.stop(Cause::Reset.into());
    }
    ended
}

/// Carries both directions between a stream of one peer and one of another to their ends, as [`run`] does; `lost` says of each of the two
/// whether its tunnel is lost.
pub async fn between(
    (mut send, mut receive): (SendStream, RecvStream),
    (mut onward_send, mut onward_receive): (SendStream, RecvStream),
    lost: [&AtomicBool; 2],
) -> (Carried, bool) {
    let (mut carried, mut finished) = (Carried::default(), [false; 2]);
    let [out, home] = &mut finished;
    let [near, far] = lost;
    let there = to_stream(Arriving::new(&mut receive, near), &mut onward_send, &mut carried.received, out);
    let back = to_stream(Arriving::new(&mut onward_receive, far), &mut send, &mut carried.sent, home);
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
mod tests {
    use quinn::ReadError;

    use super::super::turns::tests::connected;
    use super::*;
    use crate::patience::PATIENCE;

    /// Streams of two peers that a hub joins, at the peers.
    type Ends = [(SendStream, RecvStream); 2];

    /// What becomes of two joined streams when the peers do this with them, and what the hub has carried.
    fn joined<F: Future<Output = ()>>(peers: impl FnOnce(Ends) -> F) -> (Carried, bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let all = async {
            let ((near, hub_near, _a), (hub_far, far, _b)) = (connected().await, connected().await);
            let (mut out, home) = near.open_bi().await.unwrap();
            out.write_all(b"preface").await.unwrap();
            let mut inward = hub_near.accept_bi().await.unwrap();
            inward.1.read_exact(&mut [0; 7]).await.unwrap();
            let mut onward = hub_far.open_bi().await.unwrap();
            onward.0.write_all(b"preface").await.unwrap();
            let mut end = far.accept_bi().await.unwrap();
            end.1.read_exact(&mut [0; 7]).await.unwrap();
            let kept = [AtomicBool::new(false), AtomicBool::new(false)];
            tokio::join!(between(inward, onward, kept.each_ref()), peers([(out, home), end])).0
        };
        runtime.block_on(async { tokio::time::timeout(PATIENCE, all).await }).expect("an end")
    }

    /// Writes until nothing more is taken for some time.
    async fn fill(stream: &mut SendStream) {
        const PAUSE: Duration = Duration::from_millis(300);
        while let Ok(Ok(_)) = tokio::time::timeout(PAUSE, stream.write(&[7; BLOCK])).await {}
    }

    #[test]
    fn a_hub_passes_on_resets_of_streams_that_nobody_reads() {
        let near = joined(async |[mut near, mut far]: Ends| {
            fill(&mut near.0).await;
            abort(&mut near.0, &mut near.1, Cause::Reset);
            assert_eq!(far.1.received_reset().await.unwrap(), Some(Cause::Reset.into()));
            assert_eq!(far.0.stopped().await.unwrap(), Some(Cause::Reset.into()));
        });
        let far = joined(async |[mut near, mut far]: Ends| {
            fill(&mut near.0).await;
            abort(&mut far.0, &mut far.1, Cause::Refused);
            assert_eq!(near.0.stopped().await.unwrap(), Some(Cause::Reset.into()));
            assert_eq!(near.1.read_chunk(9, true).await, Err(ReadError::Reset(Cause::Reset.into())));
        });
        assert!(!near.1 && !far.1, "{near:?} {far:?}");
    }

    #[test]
    fn a_hub_delivers_what_was_closed_behind() {
        let bytes = vec![5; 200_000];
        let (carried, orderly) = joined(async |[mut near, mut far]: Ends| {
            let sends = async {
                near.0.write_all(&bytes).await.unwrap();
                near.0.finish().unwrap();
                // Its host is gone: nothing can come back any more.
                near.1.stop(Cause::Reset.into()).unwrap();
                near
            };
            let reads = async { far.1.read_to_end(1 << 20).await.unwrap() };
            let (_near, read) = tokio::join!(sends, reads);
            assert!(read == bytes, "{} bytes", read.len());
            assert_eq!(far.0.stopped().await.unwrap(), Some(Cause::Reset.into()));
        });
        assert_eq!((carried.received, orderly), (200_000, false));
    }
}
