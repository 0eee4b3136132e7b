//! Joins a TCP connection and a QUIC stream, or at a hub the streams of two peers.
//!
//! Each direction ends by itself where its sender closes it (FIN there, FIN here). An error of either side ends both
//! directions by a reset at both ends: no connection closes orderly behind missing bytes. Each direction holds one block of
//! [`BLOCK`] bytes; QUIC's flow control bounds the rest.

use quinn::{ReadError, RecvStream, SendStream, VarInt, WriteError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::intercept;
use super::tunnel::Tunnel;

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

async fn to_peer(tcp: &mut ReadHalf<'_>, stream: &mut SendStream, tunnel: &Tunnel, count: &mut u64) -> Result<(), ()> {
    let mut block = vec![0; BLOCK];
    let _ = stream.set_priority(1);
    loop {
        let read = tokio::select! {
            read = tcp.read(&mut block) => read.map_err(drop)?,
            // The peer reads no more, so what the client still sends cannot be delivered.
            _ = stream.stopped() => return Err(()),
        };
        // Behind less than a block the client may wait for an answer.
        if read < BLOCK {
            tunnel.cover();
        }
        if read == 0 {
            return stream.finish().map_err(drop);
        }
        let mut written = 0;
        while written < read {
            let rest = &block[written..read];
            let some = if *count > YOUNG { tunnel.turns.write(stream, rest).await } else { stream.write(rest).await };
            written += some.map_err(|_: WriteError| ())?;
        }
        *count += read as u64;
        if *count > YOUNG {
            let _ = stream.set_priority(0);
        }
    }
}

async fn to_tcp(stream: &mut RecvStream, tcp: &mut WriteHalf<'_>, count: &mut u64) -> Result<(), ()> {
    while let Some(chunk) = stream.read_chunk(BLOCK, true).await.map_err(|_: ReadError| ())? {
        tcp.write_all(&chunk.bytes).await.map_err(drop)?;
        *count += chunk.bytes.len() as u64;
    }
    tcp.shutdown().await.map_err(drop)
}

/// Carries both directions to their ends; whether both ended orderly.
pub async fn run(
    mut tcp: TcpStream,
    (mut send, mut receive): (SendStream, RecvStream),
    tunnel: &Tunnel,
) -> (Carried, bool) {
    let mut carried = Carried::default();
    let (mut reader, mut writer) = tcp.split();
    let Carried { sent, received } = &mut carried;
    let both =
        tokio::try_join!(to_peer(&mut reader, &mut send, tunnel, sent), to_tcp(&mut receive, &mut writer, received));
    if both.is_err() {
        abort(&mut send, &mut receive, Cause::Reset);
        intercept::reset(tcp);
    } else {
        intercept::release(tcp);
    }
    (carried, both.is_ok())
}

async fn to_stream(from: &mut RecvStream, to: &mut SendStream, count: &mut u64) -> Result<(), ()> {
    loop {
        let chunk = tokio::select! {
            chunk = from.read_chunk(BLOCK, true) => chunk.map_err(|_: ReadError| ())?,
            _ = to.stopped() => return Err(()),
        };
        let Some(chunk) = chunk else { return to.finish().map_err(drop) };
        let length = chunk.bytes.len() as u64;
        to.write_chunk(chunk.bytes).await.map_err(|_: WriteError| ())?;
        *count += length;
    }
}

/// Carries both directions between a stream of one peer and one of another to their ends, as [`run`] does.
pub async fn between(
    (mut send, mut receive): (SendStream, RecvStream),
    (mut onward_send, mut onward_receive): (SendStream, RecvStream),
) -> (Carried, bool) {
    let mut carried = Carried::default();
    let Carried { sent, received } = &mut carried;
    let there = to_stream(&mut receive, &mut onward_send, received);
    let both = tokio::try_join!(there, to_stream(&mut onward_receive, &mut send, sent));
    if both.is_err() {
        abort(&mut send, &mut receive, Cause::Reset);
        abort(&mut onward_send, &mut onward_receive, Cause::Reset);
    }
    (carried, both.is_ok())
}

/// Resets a stream in both directions.
pub fn abort(send: &mut SendStream, receive: &mut RecvStream, cause: Cause) {
    let _ = send.reset(cause.into());
    let _ = receive.stop(cause.into());
}
