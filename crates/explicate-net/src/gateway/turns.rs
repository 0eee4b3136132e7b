//! Turns of long transfers at a connection that can take no more bytes.
//!
//! quinn wakes all streams that wait for the window of their connection, and of many the last ones that waited get all of it. So
//! long transfers wait here in order, and only the first of them waits at quinn. Whether it waits for the connection or for the
//! window of its own stream is seen by a stream that carries nothing: its peer has stopped it, so a write to it fails as soon
//! as the connection could take bytes.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;

use quinn::{Connection, SendStream, VarInt, WriteError};
use tokio::sync::Mutex;

/// Turns at a connection; until its peer has stopped the stream that carries nothing, no stream waits.
#[derive(Default)]
pub struct Turns(OnceLock<Mutex<SendStream>>);

impl Turns {
    /// Opens the stream that carries nothing, and stops that of the peer.
    pub async fn arrange(&self, connection: &Connection) -> Option<()> {
        let mut empty = connection.open_uni().await.ok()?;
        empty.write_all(&[0]).await.ok()?;
        connection.accept_uni().await.ok()?.stop(VarInt::from_u32(0)).ok()?;
        empty.stopped().await.ok()?;
        self.0.set(Mutex::new(empty)).ok()
    }
    /// Writes some of a block when it is this stream's turn.
    pub async fn write(&self, stream: &mut SendStream, block: &[u8]) -> Result<usize, WriteError> {
        if let Some(empty) = self.0.get() {
            let mut empty = empty.lock().await;
            if let Err(WriteError::ConnectionLost(reason)) = empty.write(&[0]).await {
                return Err(reason.into());
            }
            let mut written = pin!(stream.write(block));
            if let Poll::Ready(written) = poll_fn(|cx| Poll::Ready(written.as_mut().poll(cx))).await {
                return written;
            }
        }
        // The stream's own window is full: no other stream has to wait for that.
        stream.write(block).await
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

    /// Bytes of each stream when all of them have written enough.
    async fn written() -> Vec<u64> {
        let (client, server, _endpoints) = connected().await;
        let turns: [Arc<Turns>; 2] = Default::default();
        let arranged = tokio::join!(turns[0].arrange(&client), turns[1].arrange(&server));
        assert_eq!(arranged, (Some(()), Some(())));
        tokio::spawn(read(server));
        let counts: Arc<[AtomicU64; STREAMS]> = Arc::default();
        for i in 0..STREAMS {
            let (client, turns, counts) = (client.clone(), turns[0].clone(), counts.clone());
            tokio::spawn(async move {
                let (mut send, _receive) = client.open_bi().await.unwrap();
                while let Ok(some) = turns.write(&mut send, &[7; BLOCK]).await {
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
        let timeout = Duration::from_secs(60);
        let written = runtime.block_on(async { tokio::time::timeout(timeout, written()).await }).unwrap();
        let (unread, others) = (written[0], &written[1..]);
        assert_eq!(unread, UNREAD as u64);
        let (sum, squares) = others.iter().fold((0.0, 0.0), |(a, b), &x| (a + x as f64, b + (x * x) as f64));
        assert!(sum * sum / (others.len() as f64 * squares) > 0.97, "{written:?}");
    }
}
