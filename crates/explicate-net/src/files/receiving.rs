//! The receiving end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quinn::{Connection, ConnectionError, Endpoint, Incoming, ReadError, RecvStream, SendStream};
use tokio::sync::{Semaphore, mpsc};

use super::message::{self, HEADER, Kind, Offer, Refusal, Verdict};
use super::pairing::{Invitation, SECRET, State};
use super::part::Part;
use super::probed::Probed;
use super::socket::Close;
use super::store::Store;
use super::{on_disk, spawn};
use crate::clock::Clock;
use crate::digest::{self, LEN as SHA};
use crate::gateway::identity::{Accepted, FILES, Identity, PublicKey};
use crate::gateway::shim::canonical;
use crate::gateway::silence;
use crate::gateway::transport::{FOLLOW, Transport, validated};
use crate::gateway::tunnel::Tunnel;
#[cfg(feature = "simulated")]
use crate::simulated::faults::{Fault, is_back};

/// Bytes that are written at a time.
const CHUNK: usize = 256 << 10;
/// Files that are verified at a time.
const CHECKS: usize = 4;
/// Interval between two searches for abandoned parts.
const SWEEP_EVERY: Duration = Duration::from_secs(600);
/// A connection by which nothing arrives for this time gives its part up to the next one of the same sender.
const SILENT: Duration = Duration::from_secs(3);
/// How long a peer may take for the first bytes of a stream.
const HEAD: Duration = Duration::from_secs(10);

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A sender was paired.
    Paired(SocketAddr, PublicKey),
    /// A file or filler data ended.
    Ended(Ended),
    /// A connection of a sender ended.
    Disconnected(SocketAddr),
}

/// A file that has ended, or filler data.
#[derive(Debug)]
pub struct Ended {
    /// Where it came from.
    pub peer: SocketAddr,
    /// Where it is; `None` for filler data.
    pub path: Option<PathBuf>,
    /// Bytes that this connection brought.
    pub bytes: u64,
    /// How long that took.
    pub lasted: Duration,
    /// Its verdict.
    pub verdict: Verdict,
}

/// Numbers for metrics.
#[derive(Default, Debug)]
pub struct Counters {
    /// Connections that are open.
    pub connections: AtomicU32,
    /// Bytes of payload that arrived.
    pub payload: AtomicU64,
    /// Connections of hosts that are not known, or that found no place; not calls that the sender gave up.
    pub refused: AtomicU64,
}

/// The receiving end.
pub struct Receiving {
    state: State,
    identity: Identity,
    transport: Transport,
    store: Option<Arc<Store>>,
    /// Verifications at a time.
    checks: Semaphore,
    /// The connections that write parts, by sender and digest.
    writers: Mutex<BTreeMap<(PublicKey, [u8; SHA]), Writer>>,
    invitation: Mutex<Option<Invitation>>,
    /// What answers probes.
    probed: Arc<Probed>,
    /// Most connections at a time.
    most: u32,
    /// Numbers.
    pub counters: Counters,
    events: mpsc::UnboundedSender<Event>,
}

/// A connection that writes a part, and what had arrived by it when another one last asked for the part.
struct Writer {
    connection: Connection,
    asked: Option<(Clock, u64)>,
}

/// A place among the connections.
struct Place(Arc<Receiving>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream broke: the connection or the peer ended it.
struct Broken;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Receiving {
    /// Receives into this store, if there is one, from senders that are paired or have this invitation.
    pub fn new(
        (state, identity): (State, Identity),
        transport: Transport,
        store: Option<Arc<Store>>,
        invitation: Option<Invitation>,
        probed: Arc<Probed>,
        most: u32,
    ) -> (Arc<Receiving>, mpsc::UnboundedReceiver<Event>) {
        let (events, happens) = mpsc::unbounded_channel();
        let (writers, counters) = Default::default();
        let (checks, invitation) = (Semaphore::new(CHECKS), Mutex::new(invitation));
        let receiving = Receiving {
            state,
            identity,
            transport,
            store,
            checks,
            writers,
            invitation,
            probed,
            most,
            counters,
            events,
        };
        (Arc::new(receiving), happens)
    }

    fn report(&self, event: Event) {
        // The reader is gone when the program ends.
        let _ = self.events.send(event);
    }

    /// Removes abandoned parts now and then. Never returns.
    pub async fn sweep(self: Arc<Receiving>) {
        let Some(store) = &self.store else { return };
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            let store = store.clone();
            on_disk(move || store.sweep()).await;
        }
    }
    /// Aborts verifications, because the program ends.
    pub fn stop(&self) {
        if let Some(store) = &self.store {
            store.stop();
        }
    }

    /// Accepts connections until the endpoint closes.
    pub async fn accept(self: Arc<Receiving>, endpoint: Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            let Some(incoming) = validated(incoming) else { continue };
            let open = &self.counters.connections;
            if open.fetch_add(1, Ordering::Relaxed) >= self.most {
                open.fetch_sub(1, Ordering::Relaxed);
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                incoming.refuse();
                continue;
            }
            let place = Place(self.clone());
            spawn(async move {
                let from = incoming.remote_address();
                if let Err(reason) = place.0.clone().answer(incoming).await {
                    place.0.counters.refused.fetch_add(1, Ordering::Relaxed);
                    tracing::info!(%from, reason, "refused a connection");
                }
            });
        }
    }

    async fn answer(self: Arc<Receiving>, incoming: Incoming) -> std::result::Result<(), String> {
        let senders = self.state.senders().map_err(|e| e.to_string())?;
        // Strangers get through the handshake only while there is an invitation.
        let invited = lock(&self.invitation).is_some();
        let accepted = if invited { Accepted::Any } else { Accepted::These(senders.clone()) };
        let tls = self.identity.server_of(FILES, accepted).map_err(|e| e.to_string())?;
        let from = incoming.remote_address();
        let (server, tunnel) = self.transport.server(tls, from);
        tunnel.controller.lock().expect_no_port();
        let connected = self.transport.accept(incoming, server, &tunnel).await;
        let connection = match connected {
            Ok(connection) => connection,
            // This end has found a mistake: no key that it knows, for example.
            Err(reason @ ConnectionError::TransportError(_)) => return Err(reason.to_string()),
            Err(reason) => {
                tracing::info!(%from, %reason, "a call has ended before it was answered");
                return Ok(());
            }
        };
        self.transport.confirm(from, &tunnel);
        let key = PublicKey::of(&connection).ok_or("no key")?;
        let admitted = senders.contains(&key) || self.pair(&connection, &tunnel, key).await;
        if admitted {
            tokio::select! {
                biased;
                () = self.clone().serve(&connection, &tunnel, key) => {}
                () = silence::probe(&connection, &tunnel) => {}
                () = self.follow(&connection, &tunnel) => {}
            }
            self.report(Event::Disconnected(canonical(connection.remote_address())));
        } else {
            connection.close(Close::NotPaired.into(), b"not paired");
        }
        self.transport.forget(&tunnel);
        if admitted { Ok(()) } else { Err("it is not paired".to_string()) }
    }

    /// Follows a paired sender whose NAT takes another port or address, as long as it is connected, so that its transfer goes
    /// on at once (RFC 9000 section 9). The receiver sends acknowledgements and verdicts, which are encrypted; an attacker can only lead them elsewhere.
    ///
    /// - *Off the path* it knows neither the number of the connection nor its keys. Nothing moves.
    /// - *On the path* it can send copies from an address of its own, before the sender's datagrams. The receiver sends there three
    ///   times what came from there at most, until a challenge is answered (RFC 9000 section 8), and comes back with the sender's
    ///   next datagram; it goes there once in [`REST`](crate::gateway::place::REST) at most. An attacker that also drops the sender's
    ///   own datagrams decides about the transfer in any case; when it ceases, the receiver goes back.
    /// - *A paired sender* can name another host's address as its own: that host gets three times what the sender sends, at most.
    async fn follow(&self, connection: &Connection, tunnel: &Arc<Tunnel>) {
        tunnel.place().may_move = true;
        loop {
            if let Some([from, to]) = self.transport.moved(connection, tunnel) {
                tracing::info!(%from, %to, "a sender has moved");
            }
            tokio::time::sleep(FOLLOW).await;
        }
    }

    /// Whether a connection of a stranger begins with the secret of the invitation, which is used up by that.
    async fn pair(&self, connection: &Connection, tunnel: &Tunnel, key: PublicKey) -> bool {
        let secret = async {
            let (mut send, mut receive) = connection.accept_bi().await.ok()?;
            let mut bytes = [0; 1 + SECRET];
            receive.read_exact(&mut bytes).await.ok()?;
            let (kind, secret) = bytes.split_first_chunk::<1>()?;
            let secret: [u8; SECRET] = secret.try_into().ok()?;
            if Kind::of(kind[0]) != Some(Kind::Secret) {
                return None;
            }
            let invitation = lock(&self.invitation).take_if(|invitation| invitation.is_secret(&secret))?;
            let (state, from) = (self.state.clone(), canonical(connection.remote_address()).ip().to_string());
            let added = on_disk(move || state.add_sender(key, &from)).await?;
            if let Err(error) = added {
                tracing::warn!("a sender with the right secret was not paired: {error}");
                *lock(&self.invitation) = Some(invitation);
                return None;
            }
            tunnel.cover();
            send.write_all(&[0]).await.ok()?;
            send.finish().ok()
        };
        let paired = tokio::time::timeout(HEAD, secret).await.ok().flatten().is_some();
        if paired {
            self.report(Event::Paired(canonical(connection.remote_address()), key));
        }
        paired
    }

    async fn serve(self: Arc<Receiving>, connection: &Connection, tunnel: &Arc<Tunnel>, key: PublicKey) {
        while let Ok((send, receive)) = connection.accept_bi().await {
            let (receiving, connection, tunnel) = (self.clone(), connection.clone(), tunnel.clone());
            spawn(async move {
                let mut stream = Stream { send, receive, connection, tunnel, begun: Clock::start(), bytes: 0 };
                if receiving.take(key, &mut stream).await.is_err() {
                    let _ = stream.send.reset(Close::Nonsense.into());
                    let _ = stream.receive.stop(Close::Nonsense.into());
                }
            });
        }
    }

    async fn take(&self, key: PublicKey, stream: &mut Stream) -> std::result::Result<(), Broken> {
        let kind = tokio::time::timeout(HEAD, stream.read::<1>()).await.map_err(|_| Broken)??;
        match Kind::of(kind[0]).ok_or(Broken)? {
            // A sender that is known may show its secret again.
            Kind::Secret => {
                stream.read::<SECRET>().await?;
                stream.say(&[0]).await?;
                stream.send.finish().map_err(|_| Broken)
            }
            Kind::Filler => self.take_filler(stream).await,
            Kind::Probe => self.take_probes(stream).await,
            Kind::Folder => {
                let offer = tokio::time::timeout(HEAD, stream.read_offer()).await.map_err(|_| Broken)??;
                let made = self.with_store(&offer, |store| store.make_folder(&offer.name, offer.mode));
                stream.say(&message::answer(made.map(|()| 0))).await?;
                stream.send.finish().map_err(|_| Broken)
            }
            Kind::File => {
                let offer = tokio::time::timeout(HEAD, stream.read_offer()).await.map_err(|_| Broken)??;
                self.take_file(key, &offer, stream).await
            }
        }
    }

    /// Does something with the store, if the offer's name is valid.
    fn with_store<T>(
        &self,
        offer: &Offer,
        what: impl FnOnce(&Arc<Store>) -> std::result::Result<T, Refusal>,
    ) -> std::result::Result<T, Refusal> {
        let store = self.store.as_ref().ok_or(Refusal::NoFiles)?;
        if !message::is_name(&offer.name) {
            return Err(Refusal::Nonsense);
        }
        what(store)
    }

    async fn take_filler(&self, stream: &mut Stream) -> std::result::Result<(), Broken> {
        loop {
            match stream.receive.read_chunk(CHUNK, true).await {
                Ok(Some(chunk)) => self.count(stream, chunk.bytes.len()),
                Ok(None) => break,
                // The sender's time is over.
                Err(ReadError::Reset(code)) if code == Close::Done.into() => break,
                Err(_) => return Err(Broken),
            }
        }
        self.end(stream, None, Verdict::Same).await
    }
    /// Answers probes from the sender's address until the end of the stream.
    async fn take_probes(&self, stream: &mut Stream) -> std::result::Result<(), Broken> {
        let from = canonical(stream.connection.remote_address()).ip();
        let permit = self.probed.permit(from).map_err(|_| Broken)?;
        stream.say(&message::answer(Ok(permit.number))).await?;
        let _ = stream.receive.read_to_end(0).await;
        stream.send.finish().map_err(|_| Broken)
    }
    fn count(&self, stream: &mut Stream, bytes: usize) {
        stream.bytes += bytes as u64;
        self.counters.payload.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    async fn take_file(&self, key: PublicKey, offer: &Offer, stream: &mut Stream) -> std::result::Result<(), Broken> {
        let part = match self.with_store(offer, |store| store.take(&key.digits()[..16], offer)) {
            Ok(part) => part,
            Err(Refusal::NameExists) if self.is_there(offer).await => {
                stream.say(&message::answer(Ok(offer.size))).await?;
                return self.end(stream, Some(offer), Verdict::Same).await;
            }
            Err(refusal) => {
                if refusal == Refusal::Busy {
                    self.look_at_writer((key, offer.digest));
                }
                stream.say(&message::answer(Err(refusal))).await?;
                return stream.send.finish().map_err(|_| Broken);
            }
        };
        lock(&self.writers).insert((key, offer.digest), Writer { connection: stream.connection.clone(), asked: None });
        let outcome = match stream.say(&message::answer(Ok(part.held()))).await {
            Ok(()) => self.take_content(part, stream).await,
            Err(broken) => Err(broken),
        };
        lock(&self.writers).remove(&(key, offer.digest));
        self.end(stream, Some(offer), outcome?).await
    }

    /// The sender of a part asks for it again by another connection. If nothing arrives by the first one any more, that one ends.
    fn look_at_writer(&self, part: (PublicKey, [u8; SHA])) {
        #[cfg(feature = "simulated")]
        if is_back(Fault::KeptPart) {
            return;
        }
        let mut writers = lock(&self.writers);
        let Some(writer) = writers.get_mut(&part) else { return };
        let arrived = writer.connection.stats().udp_rx.datagrams;
        match writer.asked {
            Some((since, before)) if before == arrived => {
                if since.elapsed() > SILENT {
                    writer.connection.close(Close::Stopped.into(), b"replaced");
                }
            }
            _ => writer.asked = Some((Clock::start(), arrived)),
        }
    }

    /// Writes what is missing of a file, and verifies it.
    async fn take_content(&self, mut part: Part, stream: &mut Stream) -> std::result::Result<Verdict, Broken> {
        let (mut missing, mut block) = (part.missing(), Vec::with_capacity(CHUNK));
        let whole = loop {
            match stream.receive.read_chunk(CHUNK, true).await {
                Ok(Some(chunk)) => {
                    self.count(stream, chunk.bytes.len());
                    // More than was offered.
                    let Some(left) = missing.checked_sub(chunk.bytes.len() as u64) else { break false };
                    missing = left;
                    block.extend_from_slice(&chunk.bytes);
                    if block.len() >= CHUNK {
                        let full = std::mem::replace(&mut block, Vec::with_capacity(CHUNK));
                        part = match on_disk(move || part.write(&full).map(|()| part)).await.ok_or(Broken)? {
                            Ok(part) => part,
                            // The disk is full, for example.
                            Err(verdict) => return Ok(verdict),
                        };
                    }
                }
                // An end before the last byte is no end.
                Ok(None) => break missing == 0,
                Err(_) => break false,
            }
        };
        let _turn = if whole { self.checks.acquire().await.ok() } else { None };
        on_disk(move || match part.write(&block) {
            Err(verdict) => verdict,
            Ok(()) if whole => part.finish(),
            Ok(()) => Verdict::Missing,
        })
        .await
        .ok_or(Broken)
    }

    /// Whether the file is there already, with the offered content.
    async fn is_there(&self, offer: &Offer) -> bool {
        let Some(file) = self.store.as_ref().and_then(|store| store.existing(&offer.name)) else { return false };
        if file.metadata().is_ok_and(|facts| facts.len() != offer.size) {
            return false;
        }
        let found = on_disk(move || digest::of_file(&file, u64::MAX, || false)).await;
        found.is_some_and(|found| found.is_ok_and(|found| found == Some((offer.digest, offer.size))))
    }

    /// Sends the verdict, and reports the end.
    async fn end(
        &self,
        stream: &mut Stream,
        offer: Option<&Offer>,
        verdict: Verdict,
    ) -> std::result::Result<(), Broken> {
        let folder = || self.store.as_ref().map(|store| store.folder().to_path_buf()).unwrap_or_default();
        let path = offer.map(|offer| folder().join(&offer.name));
        let (bytes, lasted) = (stream.bytes, stream.begun.elapsed());
        let peer = canonical(stream.connection.remote_address());
        self.report(Event::Ended(Ended { peer, path, bytes, lasted, verdict }));
        stream.say(&message::verdict(verdict, bytes)).await?;
        let _ = stream.receive.stop(Close::Done.into());
        stream.send.finish().map_err(|_| Broken)
    }
}

/// A stream of a sender.
struct Stream {
    send: SendStream,
    receive: RecvStream,
    connection: Connection,
    tunnel: Arc<Tunnel>,
    begun: Clock,
    bytes: u64,
}

impl Stream {
    async fn read<const N: usize>(&mut self) -> std::result::Result<[u8; N], Broken> {
        let mut bytes = [0; N];
        self.receive.read_exact(&mut bytes).await.map_err(|_| Broken)?;
        Ok(bytes)
    }
    async fn read_offer(&mut self) -> std::result::Result<Offer, Broken> {
        let (mut offer, length) = message::read_header(&self.read::<HEADER>().await?);
        let mut name = vec![0; length];
        self.receive.read_exact(&mut name).await.map_err(|_| Broken)?;
        offer.name = String::from_utf8(name).map_err(|_| Broken)?;
        Ok(offer)
    }
    /// The sender waits for it.
    async fn say(&mut self, bytes: &[u8]) -> std::result::Result<(), Broken> {
        self.tunnel.cover();
        self.send.write_all(bytes).await.map_err(|_| Broken)
    }
}
