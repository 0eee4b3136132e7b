//! Turns of long transfers at a connection that can take no more bytes, and room for the others.
//!
//! quinn wakes all streams that wait for the window of their connection, and of many the last ones that waited get all of it. So
//! long transfers wait here in order, and only the first of them waits at quinn. Whether it waits for the connection or for the
//! window of its own stream is seen by a stream that carries nothing: its peer has stopped it, so a write to it fails as soon
//! as the connection could take bytes.
//!
//! Long transfers may have as many bytes in the connection as its path needs. Young streams may have some more, so that they never
//! wait for the others: quinn sends them first.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use explicate_core::units::Rate;
use quinn::{Connection, RecvStream, SendStream, VarInt, WriteError};
use tokio::sync::Mutex;

use super::open::Wait;

/// Bytes that young streams may have in a connection beyond those of the long transfers.
pub const YOUNG_ROOM: u64 = 16 << 20;
/// The first byte of the stream that carries nothing, where the sender's rate follows, 8 bytes, bit/s; 0 if it has none. An older
/// gateway sends another first byte, and no more.
const TELLS_RATE: u8 = 1;

/// Turns at a connection; until its peer has stopped the stream that carries nothing, no stream waits.
#[derive(Default)]
pub struct Turns {
    begun: OnceLock<(Connection, Mutex<SendStream>)>,
    /// Bytes that long transfers may have in the connection, and the most that they ever may.
    backlog: AtomicU64,
    most: AtomicU64,
}

/// What two gateways have told each other at the beginning of a connection.
pub struct Greeted {
    empty: SendStream,
    theirs: RecvStream,
    /// The rate at which the peer sends, if it has said so.
    pub rate: Option<Rate>,
}

/// Opens the stream that carries nothing, tells the rate at which this end sends, and hears that of the peer.
pub async fn greet(connection: &Connection, rate: Option<Rate>) -> Option<Greeted> {
    let mut empty = connection.open_uni().await.ok()?;
    let rate = rate.map_or(0, |rate| rate.0);
    empty.write_all(&[&[TELLS_RATE], &rate.to_be_bytes()[..]].concat()).await.ok()?;
    let mut theirs = connection.accept_uni().await.ok()?;
    let (mut first, mut told) = ([0], [0; 8]);
    theirs.read_exact(&mut first).await.ok()?;
    if first == [TELLS_RATE] {
        theirs.read_exact(&mut told).await.ok()?;
    }
    let rate = Some(Rate(u64::from_be_bytes(told))).filter(|rate| rate.0 > 0);
    Some(Greeted { empty, theirs, rate })
}

impl Turns {
    /// Stops the stream of the peer that carries nothing, and begins when the peer has done so. Long transfers may never have more than
    /// `most` bytes in the connection.
    pub async fn begin(&self, connection: &Connection, greeted: Greeted, most: u64) -> Option<()> {
        self.most.store(most, Ordering::Relaxed);
        let Greeted { empty, mut theirs, .. } = greeted;
        theirs.stop(VarInt::from_u32(0)).ok()?;
        empty.stopped().await.ok()?;
        self.begun.set((connection.clone(), Mutex::new(empty))).ok()
    }
    /// Sets how many bytes long transfers may have in the connection.
    pub fn set_backlog(&self, bytes: u64) {
        self.backlog.store(bytes.min(self.most.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
    /// Writes some of a block when it is this stream's turn. Waiting for the window of the stream itself counts as a wait for the peer.
    pub async fn write(&self, stream: &mut SendStream, block: &[u8], wait: &Wait) -> Result<usize, WriteError> {
        if let Some((connection, empty)) = self.begun.get() {
            let mut empty = empty.lock().await;
            connection.set_send_window(self.backlog.load(Ordering::Relaxed));
            if let Err(WriteError::ConnectionLost(reason)) = empty.write(&[0]).await {
                return Err(reason.into());
            }
            let mut written = pin!(stream.write(block));
            if let Poll::Ready(written) = poll_fn(|cx| Poll::Ready(written.as_mut().poll(cx))).await {
                return written;
            }
        }
        // The stream's own window is full: no other stream has to wait for that.
        wait.during(stream.write(block)).await
    }
    /// Writes some of a block of a young stream, which takes no turns.
    pub async fn write_young(&self, stream: &mut SendStream, block: &[u8], wait: &Wait) -> Result<usize, WriteError> {
        let Some((connection, _)) = self.begun.get() else { return wait.during(stream.write(block)).await };
        let mut written = pin!(stream.write(block));
        let writing = poll_fn(|cx| {
            let backlog = self.backlog.load(Ordering::Relaxed);
            // quinn looks at the window while it writes, and when it wakes those that wait, which it does not do here.
            connection.set_send_window(backlog + YOUNG_ROOM);
            let polled = written.as_mut().poll(cx);
            connection.set_send_window(backlog);
            polled
        });
        wait.during(writing).await
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

    use super::super::identity::{Identity, keygen};
    use super::*;
    use crate::patience::PATIENCE;

    const STREAMS: usize = 20;
    /// Bytes that the connection takes without an acknowledgement, those of a stream that is not read, and of a write.
    const WINDOW: u32 = 256 << 10;
    const UNREAD: u32 = 64 << 10;
    const BLOCK: usize = 16 << 10;
    const ENOUGH: u64 = 32 << 20;

    fn identity() -> Identity {
        let folder =
            std::env::temp_dir().join(format!("explicate-turns-{}-{}", std::process::id(), crate::sys::monotonic()));
        std::fs::create_dir_all(&folder).unwrap();
        let _ = keygen(&folder.join("key"));
        let identity = Identity::load(&folder.join("key")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        identity
    }

    /// Two ends of a connection, and their endpoints.
    pub(in super::super) async fn connected() -> (Connection, Connection, [Endpoint; 2]) {
        let identity = identity();
        let mut transport = TransportConfig::default();
        transport.send_window(WINDOW as u64).stream_receive_window(VarInt::from_u32(UNREAD));
        let transport = Arc::new(transport);
        let local = "127.0.0.1:0".parse().unwrap();
        let mut server = ServerConfig::with_crypto(Arc::new(identity.server(vec![identity.public]).unwrap()));
        server.transport_config(transport.clone());
        let mut client = ClientConfig::new(Arc::new(identity.client(identity.public).unwrap()));
        client.transport_config(transport);
        let (server, from) = (Endpoint::server(server, local).unwrap(), Endpoint::client(local).unwrap());
        let connecting = from.connect_with(client, server.local_addr().unwrap(), "gateway").unwrap();
        let incoming = async { server.accept().await.unwrap().await.unwrap() };
        let (client, accepted) = tokio::join!(connecting, incoming);
        (client.unwrap(), accepted, [server, from])
    }

    /// Reads all streams but the first.
    async fn read(connection: Connection) {
        let mut kept = Vec::new();
        while let Ok((send, mut receive)) = connection.accept_bi().await {
            if receive.id().index() == 0 {
                kept.push((send, Some(receive)));
                continue;
            }
            kept.push((send, None));
            tokio::spawn(async move { while let Ok(Some(_)) = receive.read_chunk(BLOCK, true).await {} });
        }
    }

    /// Turns at both ends, where long transfers may have [`WINDOW`] in the connection.
    async fn begun([client, server]: [&Connection; 2]) -> [Arc<Turns>; 2] {
        let turns: [Arc<Turns>; 2] = Default::default();
        let greeted = tokio::join!(greet(client, Some(Rate(7))), greet(server, None));
        let (at_client, at_server) = (greeted.0.unwrap(), greeted.1.unwrap());
        assert_eq!((at_client.rate, at_server.rate), (None, Some(Rate(7))));
        let begun =
            tokio::join!(turns[0].begin(client, at_client, u64::MAX), turns[1].begin(server, at_server, u64::MAX));
        assert_eq!(begun, (Some(()), Some(())));
        turns.iter().for_each(|turns| turns.set_backlog(WINDOW as u64));
        turns
    }

    /// Bytes of each stream when all of them have written enough.
    async fn written() -> Vec<u64> {
        let (client, server, _endpoints) = connected().await;
        let turns = begun([&client, &server]).await;
        tokio::spawn(read(server));
        let counts: Arc<[AtomicU64; STREAMS]> = Arc::default();
        for i in 0..STREAMS {
            let (client, turns, counts) = (client.clone(), turns[0].clone(), counts.clone());
            tokio::spawn(async move {
                let (mut send, _receive) = client.open_bi().await.unwrap();
                while let Ok(some) = turns.write(&mut send, &[7; BLOCK], &Wait::default()).await {
                    counts[i].fetch_add(some as u64, Ordering::Relaxed);
                }
            });
        }
        let now = || counts.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<u64>>();
        while now().iter().sum::<u64>() < ENOUGH {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        now()
    }

    #[test]
    fn streams_take_turns_and_one_that_is_not_read_holds_up_no_other() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let written = runtime.block_on(async { tokio::time::timeout(PATIENCE, written()).await }).unwrap();
        let (unread, others) = (written[0], &written[1..]);
        assert_eq!(unread, UNREAD as u64);
        assert!(others.iter().all(|written| *written > UNREAD as u64), "{written:?}");
    }

    /// Shares over real sockets depend on what the machine does meanwhile.
    mod timed {
        use super::*;
        use crate::figures::{Better, figure};

        #[test]
        #[ignore = "depends on the machine's speed: make measure"]
        fn streams_have_equal_shares() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let written = runtime.block_on(async { tokio::time::timeout(PATIENCE, written()).await }).unwrap();
            let others = &written[1..];
            let (sum, squares) = others.iter().fold((0.0, 0.0), |(a, b), &x| (a + x as f64, b + (x * x) as f64));
            let jain = sum * sum / (others.len() as f64 * squares);
            figure("gateway/turns: Jain's index of 19 streams", jain, "", Better::More);
            assert!(jain > 0.97, "{written:?}");
        }
    }

    /// A peer that is not read at all takes what its window bears; long transfers fill the backlog, and young streams write on.
    #[test]
    fn young_streams_find_room_where_long_transfers_have_filled_theirs() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, server, _endpoints) = connected().await;
            let [turns, _] = begun([&client, &server]).await;
            turns.set_backlog(0);
            let (mut long, _a) = client.open_bi().await.unwrap();
            let (mut young, _b) = client.open_bi().await.unwrap();
            let wait = Wait::default();
            let blocked = tokio::time::timeout(Duration::from_millis(100), turns.write(&mut long, &[7; BLOCK], &wait));
            assert!(blocked.await.is_err(), "the backlog is full");
            let written = tokio::time::timeout(PATIENCE, turns.write_young(&mut young, &[7; 9], &wait));
            assert_eq!(written.await.unwrap().unwrap(), 9);
        });
    }

    /// An older gateway sends one byte.
    #[test]
    fn a_peer_that_tells_no_rate_is_greeted() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (client, server, _endpoints) = connected().await;
            let older = async {
                let mut empty = server.open_uni().await.unwrap();
                empty.write_all(&[0]).await.unwrap();
                server.accept_uni().await.unwrap().stop(VarInt::from_u32(0)).unwrap();
                empty.stopped().await.unwrap()
            };
            let newer = async {
                let greeted = greet(&client, Some(Rate(7))).await.unwrap();
                assert_eq!(greeted.rate, None);
                Turns::default().begin(&client, greeted, u64::MAX).await.unwrap();
            };
            tokio::time::timeout(PATIENCE, async { tokio::join!(older, newer) }).await.unwrap();
        });
    }
}
