//! The sending end.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, WriteError};
use quinn_proto::TransportErrorCode;
use tokio::task::JoinSet;

use super::message::{self, ANSWER, Kind, Offer, Refusal};
use super::pairing::Invitation;
use super::socket::{Close, sentence};
use super::tree::{Item, Opened};
use super::{on_disk, spawn};
use crate::digest::LEN as SHA;
use crate::gateway::config::Limits;
use crate::gateway::identity::{FILES, Identity, PublicKey};
use crate::gateway::silence;
use crate::gateway::transport::Transport;
use crate::gateway::tunnel::Tunnel;

/// Files under way at a time: small ones follow each other without waiting for verdicts.
const AT_A_TIME: usize = 16;
/// Bytes that are read at a time, and that QUIC is given at a time.
const BLOCK: usize = 256 << 10;
const PIECE: usize = 32 << 10;
/// Bytes that QUIC takes at least; and at most, unless two windows are more.
const LEAST_WINDOW: u32 = 2 * PIECE as u32;
const MOST_WINDOW: u64 = 64 << 20;
/// A file that the receiver is receiving already is offered again after this time, and so often: the receiver gives up a connection
/// that has gone silent.
const AGAIN: Duration = Duration::from_secs(1);
const TIMES: u32 = 10;

/// What is sent.
pub enum Content {
    /// Files and folders.
    Items(Vec<Item>),
    /// Filler data in so many streams: bytes in each, or until the time is over.
    Filler(u32, Option<u64>, Duration),
}

/// Bytes of a transfer.
#[derive(Default, Debug)]
pub struct Counters {
    /// Passed to QUIC.
    pub written: AtomicU64,
    /// Reported by the receiver.
    pub received: AtomicU64,
    /// The receiver had them before.
    pub held: AtomicU64,
}

/// Why a transfer did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The connection was lost: another one may go on.
    #[error("{0}")]
    Lost(String),
    /// The receiver is receiving the file already.
    #[error("{0}")]
    Busy(String),
    /// Trying again does not help.
    #[error("{0}")]
    Final(String),
}

impl Failure {
    fn of(reason: &ConnectionError, peer: &str) -> Failure {
        let lost = match reason {
            ConnectionError::TimedOut | ConnectionError::Reset => true,
            // A receiver that was started anew does not know the tokens that it gave before.
            ConnectionError::ConnectionClosed(closed) => closed.error_code == TransportErrorCode::INVALID_TOKEN,
            _ => false,
        };
        (if lost { Failure::Lost } else { Failure::Final })(sentence(reason, peer))
    }
}

/// A sender's windows: it receives only answers.
pub fn limits() -> Limits {
    Limits { peer_bytes: LEAST_WINDOW, connection_bytes: Some(LEAST_WINDOW), ..Limits::default() }
}

/// A connection to a receiver.
pub struct Sending {
    /// QUIC's connection.
    pub connection: Connection,
    /// The law and the counters of its datagrams.
    pub tunnel: Arc<Tunnel>,
    /// The receiver as the user named it.
    pub peer: String,
    counters: Arc<Counters>,
    /// By digest: files of the same content are sent one after the other.
    turns: Mutex<BTreeMap<[u8; SHA], Arc<tokio::sync::Mutex<()>>>>,
}

impl Sending {
    /// Connects to a receiver, which has to show this key.
    pub async fn connect(
        (endpoint, transport, identity): (&Endpoint, &Transport, &Identity),
        (address, peer): (SocketAddr, &str),
        key: PublicKey,
        counters: Arc<Counters>,
    ) -> Result<Sending, Failure> {
        let tls = identity.client_of(FILES, key).map_err(|e| Failure::Final(e.to_string()))?;
        let (config, tunnel) = transport.client(tls, address);
        tunnel.controller.lock().expect_no_port();
        let connecting =
            endpoint.connect_with(config, address, "receiver").map_err(|e| Failure::Final(e.to_string()))?;
        let connection = connecting.await.map_err(|reason| Failure::of(&reason, peer))?;
        let (probed, tunnel_of) = (connection.clone(), tunnel.clone());
        spawn(async move {
            tokio::select! {
                biased;
                () = silence::probe(&probed, &tunnel_of) => {}
                _ = probed.closed() => {}
            }
        });
        Ok(Sending { connection, tunnel, peer: peer.to_string(), counters, turns: Mutex::default() })
    }

    fn failure(&self, what: &str) -> Failure {
        match self.connection.close_reason() {
            Some(reason) => Failure::of(&reason, &self.peer),
            None => Failure::Final(format!("{}: {what}", self.peer)),
        }
    }

    /// Shows the secret of an invitation.
    pub async fn pair(&self, invitation: &Invitation) -> Result<(), Failure> {
        let broken = || self.failure("the receiver did not answer to the line of --pair");
        let (mut send, mut receive) = self.connection.open_bi().await.map_err(|_| broken())?;
        self.tunnel.cover();
        send.write_all(&[Kind::Secret as u8]).await.map_err(|_| broken())?;
        send.write_all(&invitation.secret).await.map_err(|_| broken())?;
        let mut answer = [0; 1];
        if receive.read_exact(&mut answer).await.is_err() {
            // The reason follows.
            self.connection.closed().await;
            return Err(broken());
        }
        Ok(())
    }

    /// Sends everything; what has ended well is removed from `content`.
    pub async fn send(self: &Arc<Sending>, content: &mut Content) -> Result<(), Failure> {
        match content {
            Content::Items(items) => self.send_items(items).await,
            Content::Filler(flows, bytes, time) => self.send_filler((*flows, *bytes, *time)).await,
        }
    }

    /// Folders first, one after another; then files, some at a time. The first failure of one is that of all.
    async fn send_items(self: &Arc<Sending>, items: &mut Vec<Item>) -> Result<(), Failure> {
        while let Some(at) = items.iter().position(|item| item.kind == Kind::Folder) {
            self.send_folder(&items[at]).await?;
            items.remove(at);
        }
        let (mut under_way, mut waiting) = (JoinSet::new(), items.clone().into_iter());
        let mut failed = None;
        loop {
            while failed.is_none() && under_way.len() < AT_A_TIME {
                let Some(item) = waiting.next() else { break };
                let sending = self.clone();
                under_way.spawn(async move {
                    let sent = sending.send_file(&item).await;
                    (item, sent)
                });
            }
            match under_way.join_next().await {
                None => break,
                Some(Ok((item, Ok(())))) => items.retain(|other| other.name != item.name),
                Some(Ok((_, Err(failure)))) => {
                    failed.get_or_insert(failure);
                }
                Some(Err(_)) => {
                    failed.get_or_insert(self.failure("a task of this program failed"));
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn send_folder(&self, item: &Item) -> Result<(), Failure> {
        let offer = Offer { name: item.name.clone(), size: 0, digest: [0; SHA], mode: item.mode, modified: None };
        let (mut stream, _) = self.offer(Kind::Folder, &offer).await?;
        let _ = stream.send.finish();
        Ok(())
    }

    async fn offer(&self, kind: Kind, offer: &Offer) -> Result<(Stream, u64), Failure> {
        let broken = || self.failure("the receiver broke a stream off");
        let (send, receive) = match self.connection.open_bi().await {
            Ok(stream) => stream,
            Err(reason) => return Err(Failure::of(&reason, &self.peer)),
        };
        let mut stream = Stream { send, receive };
        self.tunnel.cover();
        stream.send.write_all(&message::offer(kind, offer)).await.map_err(|_| broken())?;
        let answer = stream.read().await.and_then(message::read_answer);
        match answer {
            Some(Ok(held)) if held <= offer.size => Ok((stream, held)),
            Some(Err(Refusal::Busy)) => Err(Failure::Busy(format!("{}: {}", offer.name, Refusal::Busy.sentence()))),
            Some(Err(refusal)) => Err(Failure::Final(format!("{}: {}", offer.name, refusal.sentence()))),
            _ => Err(broken()),
        }
    }

    async fn send_file(&self, item: &Item) -> Result<(), Failure> {
        let failed = |e: std::io::Error| Failure::Final(format!("cannot read {}: {e}", item.path.display()));
        let path = item.path.clone();
        let opened = on_disk(move || Opened::read(&path)).await;
        let Opened { file, size, digest, mode, modified } =
            opened.ok_or_else(|| self.failure("stopped"))?.map_err(failed)?;
        // Files of the same content have the same part at the receiver.
        let turn = self.turn(digest);
        let _turn = turn.lock().await;
        let offer = Offer { name: item.name.clone(), size, digest, mode, modified: Some(modified) };
        let mut offered = self.offer(Kind::File, &offer).await;
        for _ in 0..TIMES {
            if !matches!(&offered, Err(Failure::Busy(_))) {
                break;
            }
            tokio::time::sleep(AGAIN).await;
            offered = self.offer(Kind::File, &offer).await;
        }
        let (mut stream, held) = offered?;
        self.counters.held.fetch_add(held, Ordering::Relaxed);
        self.send_content(Arc::new(file), held, size, &mut stream)
            .await
            .map_err(|e| e.map_or_else(|| self.failure("the receiver broke the file off"), failed))?;
        let verdict = stream.read().await.and_then(message::read_verdict);
        let (verdict, received) = verdict.ok_or_else(|| self.failure("the receiver gave no verdict"))?;
        self.counters.received.fetch_add(received, Ordering::Relaxed);
        match verdict.problem(held > 0) {
            None => Ok(()),
            Some(problem) => Err(Failure::Final(format!("{}: {problem}", item.name))),
        }
    }

    /// The lock of all files with this digest.
    fn turn(&self, digest: [u8; SHA]) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(digest).or_default().clone()
    }

    /// Sends the bytes from `at` on. The receiver may end it early, by its verdict.
    async fn send_content(
        &self,
        file: Arc<File>,
        mut at: u64,
        size: u64,
        stream: &mut Stream,
    ) -> Result<(), Option<std::io::Error>> {
        while at < size {
            let (source, length) = (file.clone(), (size - at).min(BLOCK as u64) as usize);
            let read = on_disk(move || {
                let mut block = vec![0; length];
                source.read_exact_at(&mut block, at).map(|()| block)
            });
            let mut block = Bytes::from(read.await.ok_or(None)?.map_err(Some)?);
            while !block.is_empty() {
                match self.write(stream, block.split_to(PIECE.min(block.len()))).await {
                    Ok(()) => {}
                    Err(WriteError::Stopped(_)) => return Ok(()),
                    Err(_) => return Err(None),
                }
            }
            at += length as u64;
        }
        self.tunnel.cover();
        let _ = stream.send.finish();
        Ok(())
    }

    async fn send_filler(
        self: &Arc<Sending>,
        (flows, bytes, time): (u32, Option<u64>, Duration),
    ) -> Result<(), Failure> {
        let mut under_way = JoinSet::new();
        for _ in 0..flows {
            let sending = self.clone();
            under_way.spawn(async move { sending.fill(bytes, time).await });
        }
        while let Some(ended) = under_way.join_next().await {
            ended.map_err(|_| self.failure("a task of this program failed"))??;
        }
        Ok(())
    }
    async fn fill(&self, bytes: Option<u64>, time: Duration) -> Result<(), Failure> {
        let broken = || self.failure("the receiver broke a stream off");
        let (send, receive) = self.connection.open_bi().await.map_err(|_| broken())?;
        let mut stream = Stream { send, receive };
        stream.send.write_all(&[Kind::Filler as u8]).await.map_err(|_| broken())?;
        let (piece, until) = (Bytes::from(vec![0; PIECE]), tokio::time::Instant::now() + time);
        let mut left = bytes.unwrap_or(u64::MAX);
        while left > 0 {
            let length = left.min(PIECE as u64) as usize;
            let write = self.write(&mut stream, piece.slice(..length));
            if bytes.is_some() {
                write.await.map_err(|_| broken())?;
            } else {
                match tokio::time::timeout_at(until, write).await {
                    Ok(written) => written.map_err(|_| broken())?,
                    Err(_) => {
                        // What QUIC has taken and not sent may be seconds of a slow path.
                        let _ = stream.send.reset(Close::Done.into());
                        break;
                    }
                }
            }
            left -= length as u64;
        }
        let _ = stream.send.finish();
        let (_, received) = stream.read().await.and_then(message::read_verdict).ok_or_else(broken)?;
        self.counters.received.fetch_add(received, Ordering::Relaxed);
        Ok(())
    }

    /// Asks the receiver to answer probes: the number that they carry, and the stream, by whose end it ceases.
    pub async fn ask_for_probes(&self) -> Result<(u64, SendStream), Failure> {
        let broken = || self.failure("the receiver answers no probes; does it run this version?");
        let (send, receive) = self.connection.open_bi().await.map_err(|_| broken())?;
        let mut stream = Stream { send, receive };
        stream.send.write_all(&[Kind::Probe as u8]).await.map_err(|_| broken())?;
        match stream.read().await.and_then(message::read_answer) {
            Some(Ok(number)) => Ok((number, stream.send)),
            _ => Err(broken()),
        }
    }

    /// Gives QUIC a piece of data, when it takes more.
    async fn write(&self, stream: &mut Stream, piece: Bytes) -> Result<(), WriteError> {
        let length = piece.len() as u64;
        self.fit_window();
        stream.send.write_chunk(piece).await?;
        self.counters.written.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    /// Call it now and then: a window that has grown is no use to a piece that waits for room.
    pub fn fit_window(&self) {
        self.connection.set_send_window(send_window(self.connection.stats().path.cwnd));
    }

    /// Ends the connection.
    pub fn close(&self, why: Close) {
        self.connection.close(why.into(), b"");
    }
}

/// Bytes that QUIC takes beside a congestion window of this many: few windows, so that what was written has nearly left. It keeps what is
/// acknowledged behind a loss: three windows, if the repetition is lost, too.
fn send_window(window: u64) -> u64 {
    (5 * window).min(MOST_WINDOW).max(2 * window).max(LEAST_WINDOW as u64)
}

struct Stream {
    send: SendStream,
    receive: RecvStream,
}

impl Stream {
    async fn read(&mut self) -> Option<[u8; ANSWER]> {
        let mut bytes = [0; ANSWER];
        self.receive.read_exact(&mut bytes).await.ok().map(|()| bytes)
    }
}

#[cfg(test)]
mod tests {
    use quinn::ConnectionError;
    use quinn_proto::{ConnectionClose, TransportErrorCode};

    use super::{Failure, send_window};

    #[test]
    fn a_call_whose_token_is_not_valid_any_more_is_repeated() {
        let failure = |error_code| {
            let closed = ConnectionClose { error_code, frame_type: None, reason: Default::default() };
            Failure::of(&ConnectionError::ConnectionClosed(closed), "b")
        };
        assert!(matches!(failure(TransportErrorCode::INVALID_TOKEN), Failure::Lost(_)));
        assert!(matches!(failure(TransportErrorCode::CONNECTION_REFUSED), Failure::Final(_)));
    }

    #[test]
    fn the_send_window_covers_a_repetition_that_is_lost_and_is_bounded() {
        // 20 Mbit/s and 600 ms.
        assert_eq!(send_window(1_500_000), 7_500_000);
        assert_eq!([0, 10_000, 50 << 20].map(send_window), [1 << 16, 1 << 16, 100 << 20]);
    }
}
