//! One QUIC connection to each peer, kept open, and its streams (in `connections`).

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use explicate_core::units::Rate;
use quinn::{Connection, ConnectionError, Endpoint, Incoming, RecvStream, Side};
use tokio::sync::watch;

use super::capacity::Capacity;
use super::choice::{BESIDE, Choice, is_beside};
use super::config::{self, Config};
use super::credit::{self, Greeted};
use super::destinations;
use super::identity::{Identity, PublicKey};
use super::open;
use super::port::Port;
use super::preface::Preface;
use super::reasons::sentence;
use super::relay::{self, Cause};
use super::shim::canonical;
use super::silence;
use super::system::System;
use super::told;
use super::transport::{FOLLOW, Transport, validated};
use super::tunnel::Tunnel;

mod connections;

/// Between two attempts to reach a peer.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a peer may take to answer a call: its handshake takes two round trips.
const CALL: Duration = Duration::from_secs(10);
/// Between two looks at the addresses of this machine, and two reminders of the kernel, which keeps addresses for a minute.
const LOOK: Duration = Duration::from_secs(10);
/// How long a peer may take to send a preface. One that was lost, or waits behind others, comes when a tunnel that has been silent for a
/// minute is back; streams without one count among those that a peer may have.
const PREFACE: Duration = Duration::from_secs(120);

/// How long a peer may take to greet: that takes a round trip, and behind a loss some more.
const GREETING: Duration = Duration::from_secs(10);
/// Closes a connection whose peer does not keep to the protocol.
const PROTOCOL: u32 = 1;
/// Why a reload closes a connection.
const NO_PEER: &[u8] = b"not a peer any more";

/// Counters of a gateway.
#[derive(Default, Debug)]
pub struct Counters {
    /// Connections that are open.
    pub open: AtomicU32,
    /// Connections that were accepted from the site.
    pub intercepted: AtomicU64,
    /// Connections that were opened for clients of peers.
    pub onward: AtomicU64,
    /// Connections that ended by a reset.
    pub resets: AtomicU64,
    /// Connections that were refused: addresses, limits, destinations.
    pub refused: AtomicU64,
    /// Connections that went to their destination without the tunnel.
    pub direct: AtomicU64,
    /// Bytes from TCP to peers.
    pub sent: AtomicU64,
    /// Bytes from peers to TCP.
    pub received: AtomicU64,
}

/// Adds one to a counter.
fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The connection to a peer, which outlives changes of its configuration and of keys: by it a peer is known from one to the next.
#[derive(Default)]
struct Link {
    current: Mutex<Option<Connected>>,
    /// Which connection is used.
    choice: Choice,
    /// Its own addresses, as it has told them.
    told: Mutex<Vec<IpAddr>>,
    /// A task calls the peer.
    called: AtomicBool,
    /// Why the last call failed, or the last connection ended.
    failure: Mutex<Option<String>>,
}

/// A connection to a peer whose handshake is complete.
#[derive(Clone)]
struct Connected {
    connection: Connection,
    tunnel: Arc<Tunnel>,
    /// The keys by which it was set up: that of this gateway, and the peer's.
    keys: [PublicKey; 2],
    /// The number of its first event.
    begun: u64,
}

/// A peer.
pub struct Peer {
    /// Its configuration.
    pub config: config::Peer,
    link: Arc<Link>,
}

impl Peer {
    fn connected(&self) -> Option<Connected> {
        let current = self.link.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clone().filter(|connected| connected.connection.close_reason().is_none())
    }
    /// The open connection to it, and its tunnel.
    pub fn current(&self) -> Option<(Connection, Arc<Tunnel>)> {
        self.connected().map(|connected| (connected.connection, connected.tunnel))
    }
    /// The keys by which the open connection was set up: that of this gateway, and the peer's.
    pub fn keys(&self) -> Option<[PublicKey; 2]> {
        self.connected().map(|connected| connected.keys)
    }
    fn set(&self, connected: &Connected) {
        *self.link.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(connected.clone());
    }
    fn is(&self, link: &Arc<Link>) -> bool {
        Arc::ptr_eq(&self.link, link)
    }
    /// Why there is no connection to it, as far as is known.
    pub fn failure(&self) -> Option<String> {
        self.link.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    fn fails(&self, reason: &str) {
        *self.link.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_string());
    }
    fn told(&self) -> MutexGuard<'_, Vec<IpAddr>> {
        self.link.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The configuration, and its peers.
pub struct Table {
    /// The configuration.
    pub config: Config,
    /// Its peers, in the order of the file.
    pub peers: Vec<Arc<Peer>>,
}

impl Table {
    /// The table of a configuration; peers that were in another one, by one of their keys, keep their connections.
    fn new(config: Config, before: &[Arc<Peer>]) -> Table {
        let mut before: Vec<&Arc<Peer>> = before.iter().collect();
        let peer = |config: &config::Peer| {
            let keys = config.public_keys();
            let known = before.iter().position(|peer| keys.iter().any(|key| peer.config.has_key(*key)));
            let link = known.map(|known| before.remove(known).link.clone()).unwrap_or_default();
            Arc::new(Peer { config: config.clone(), link })
        };
        let peers = config.peers.iter().map(peer).collect();
        Table { config, peers }
    }
    fn peer(&self, link: &Arc<Link>) -> Option<&Arc<Peer>> {
        self.peers.iter().find(|peer| peer.is(link))
    }
    fn of_key(&self, key: PublicKey) -> Option<&Arc<Peer>> {
        self.peers.iter().find(|peer| peer.config.has_key(key))
    }
    /// The other peer that a connection of a peer goes to, at a hub.
    fn beyond(&self, from: &Arc<Link>, preface: &Preface) -> Option<&Arc<Peer>> {
        let site = &self.config.site;
        let here = site.networks.iter().any(|network| network.contains(preface.destination.ip()));
        self.route(preface.destination.ip()).filter(|peer| site.between_peers && !here && !peer.is(from))
    }
    /// A peer speaks for its own networks, and reaches those of this site if there are any, and at a hub those of other peers.
    fn allow(&self, from: &Arc<Link>, preface: &Preface) -> std::result::Result<(), Cause> {
        let networks = &self.config.site.networks;
        let speaks_for = self.route(preface.client.ip()).filter(|peer| peer.is(from));
        let holds = |address: IpAddr| networks.iter().any(|network| network.contains(address));
        let ours = networks.is_empty() || holds(preface.destination.ip());
        let client = preface.client.ip();
        // A peer with wide networks does not speak for hosts of this site, nor for this machine.
        let foreign = holds(client) || destinations::denied(client, &[]).is_some() || destinations::is_own(client);
        if speaks_for.is_some() && !foreign && (ours || self.beyond(from, preface).is_some()) {
            return Ok(());
        }
        let peer = self.peer(from).map_or("", |peer| &peer.config.name);
        tracing::warn!(peer, client = %preface.client, destination = %preface.destination, "addresses are not allowed");
        Err(Cause::NotAllowed)
    }
    /// What this gateway opens no connection to, unless it is allowed.
    fn permit(&self, from: &Arc<Link>, preface: &Preface, own: &[IpAddr]) -> std::result::Result<(), Cause> {
        let (to, allow) = (preface.destination.ip(), &self.config.site.allow);
        let is_own = || own.contains(&to) || destinations::is_own(to);
        let own = || (!self.allows(to) && is_own()).then_some("an address of this gateway");
        let Some(kind) = destinations::denied(to, allow).or_else(own) else { return Ok(()) };
        let peer = self.peer(from).map_or("", |peer| &peer.config.name);
        let line = destinations::line(to);
        tracing::warn!(peer, client = %preface.client, destination = %preface.destination, kind, "denied; {line} in [site] allows it");
        Err(Cause::NotAllowed)
    }
    fn allows(&self, address: IpAddr) -> bool {
        self.config.site.allow.iter().any(|network| network.contains(address))
    }
    /// The peer behind which an address is.
    fn route(&self, address: IpAddr) -> Option<&Arc<Peer>> {
        self.config.route(address).map(|index| &self.peers[index])
    }
}

/// A gateway that runs.
pub struct Gateway {
    table: RwLock<Arc<Table>>,
    identity: RwLock<Arc<Identity>>,
    endpoint: Endpoint,
    pub(super) transport: Transport,
    system: System,
    /// Addresses of this machine.
    own: watch::Sender<Vec<IpAddr>>,
    /// The port that datagrams leave by, if the line has a rate.
    pub port: Option<Arc<Port>>,
    /// The source of its rate.
    pub capacity: Option<Arc<Capacity>>,
    /// Counters.
    pub counters: Counters,
    /// Connections that are open.
    pub open: open::List,
    /// Beginnings of connections with peers and greetings, in their order.
    events: AtomicU64,
}

/// Closes a connection, unless it has ended: quinn would forget why.
fn close(connection: &Connection, code: u32, reason: &[u8]) {
    if connection.close_reason().is_none() {
        connection.close(code.into(), reason);
    }
}

impl Gateway {
    /// A gateway on this endpoint.
    pub fn new(
        config: Config,
        identity: Identity,
        (endpoint, port, capacity): (Endpoint, Option<Arc<Port>>, Option<Arc<Capacity>>),
        (transport, system): (Transport, System),
    ) -> Arc<Gateway> {
        let identity = RwLock::new(Arc::new(identity));
        let (table, own) = (RwLock::new(Arc::new(Table::new(config, &[]))), watch::Sender::new(Vec::new()));
        let (counters, open, events) = (Counters::default(), open::List::default(), AtomicU64::new(0));
        let transport = transport.credited();
        Arc::new(Gateway { table, identity, endpoint, transport, system, own, port, capacity, counters, open, events })
    }
    /// Its key.
    pub fn identity(&self) -> Arc<Identity> {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// The number of an event.
    fn event(&self) -> u64 {
        self.events.fetch_add(1, Ordering::Relaxed)
    }
    /// The configuration and the peers.
    pub fn table(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes another configuration and key over, and returns the names of those in the file whose change needs a restart. Connections
    /// stay, but to peers that are no longer there. The key is that of handshakes from now on.
    pub fn reload(self: &Arc<Gateway>, config: Config, identity: Identity) -> Vec<&'static str> {
        let before = self.table();
        let ignored = before.config.fixed_changes(&config);
        let after = Arc::new(Table::new(config, &before.peers));
        if identity.public != self.identity().public {
            tracing::info!(key = identity.public.line(), "new tunnels are set up with another key");
        }
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(identity);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = after.clone();
        for gone in before.peers.iter().filter(|peer| after.peer(&peer.link).is_none()) {
            if let Some((connection, _)) = gone.current() {
                connection.close(0u32.into(), NO_PEER);
            }
        }
        for peer in &after.peers {
            if peer.keys().is_some_and(|[_, key]| !peer.config.has_key(key)) {
                tracing::warn!(
                    peer = peer.config.name,
                    "its tunnel was set up with a key that is no longer in the file, and goes on until it ends; a restart ends it"
                );
            }
        }
        self.apply();
        // `up` has emptied the kernel's set, and other addresses may be allowed.
        after.peers.iter().for_each(|peer| self.keep(peer));
        self.own.send_modify(|_| {});
        ignored
    }
    /// Calls the peers that have addresses, and follows the source of the capacity.
    pub fn apply(self: &Arc<Gateway>) {
        let table = self.table();
        for peer in table.peers.iter().filter(|peer| peer.config.address.is_some()) {
            if !peer.link.called.swap(true, Ordering::Relaxed) {
                self.spawn(self.clone().keep_calling(peer.link.clone()));
            }
        }
        let wan = &table.config.wan;
        if let (Some(capacity), Some(rate)) = (&self.capacity, wan.rate) {
            capacity.use_source(wan.capacity.clone(), rate.0);
        }
    }

    /// Looks for the addresses of this machine, for ever.
    pub async fn follow_addresses(self: Arc<Gateway>) {
        loop {
            if let Ok(own) = tokio::task::spawn_blocking(told::own).await {
                self.own.send_if_modified(|before| std::mem::replace(before, own.clone()) != own);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    /// Tells a peer the addresses of this machine that it does not reach by the tunnel, now and after each change.
    async fn tell(&self, connection: &Connection) {
        let mut own = self.own.subscribe();
        loop {
            let table = self.table();
            let left = |own: &&IpAddr| destinations::denied(**own, &[]).is_none() && !table.allows(**own);
            let message = told::to_bytes(&own.borrow_and_update().iter().filter(left).copied().collect::<Vec<_>>());
            if let Ok((mut send, _)) = connection.open_bi().await {
                let _ = send.write_all(&message).await;
                let _ = send.finish();
            }
            if own.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
    /// A peer tells its own addresses. Only those of its networks count.
    async fn hear(&self, from: &Arc<Link>, count: usize, receive: &mut RecvStream) {
        let mut bytes = vec![0; count * told::LEN];
        let read = tokio::time::timeout(PREFACE, receive.read_exact(&mut bytes)).await;
        let table = self.table();
        let (Ok(Ok(())), Some(peer)) = (read, table.peer(from)) else { return };
        let its = |address: &IpAddr| table.route(*address).is_some_and(|peer| peer.is(from));
        let told: Vec<IpAddr> = told::parse(&bytes).into_iter().filter(its).collect();
        tracing::debug!(peer = peer.config.name, addresses = ?told, "left to plain routing");
        *peer.told() = told;
        self.keep(peer);
    }
    /// Has the kernel keep what a peer has told.
    fn keep(&self, peer: &Peer) {
        peer.told().iter().for_each(|address| self.system.marked.keep(*address));
    }
    /// Follows a peer that moves, for ever.
    async fn follow(&self, of: &Arc<Link>, connection: &Connection, tunnel: &Arc<Tunnel>) {
        if connection.side().is_client() {
            // A server does not move (RFC 9000 section 9).
            return std::future::pending().await;
        }
        let mut refused = false;
        loop {
            let table = self.table();
            let peer = table.peer(of);
            let (name, may_move) = peer.map_or(("", false), |peer| (&peer.config.name, peer.config.may_move()));
            tunnel.place().may_move = may_move;
            if let Some([from, to]) = self.transport.moved(connection, tunnel) {
                tracing::info!(peer = name, %from, %to, "has moved");
            }
            if let Some(from) = tunnel.place().take_refused().filter(|_| !refused) {
                refused = true;
                tracing::warn!(peer = name, %from, "sends from another address than its `address`, and is not heard: `roaming = true` in its [[peer]] lets it move");
            }
            tokio::time::sleep(FOLLOW).await;
        }
    }
    async fn keep_told(&self, peer: &Peer) {
        loop {
            self.keep(peer);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Keeps a connection to a peer as long as it has an address.
    async fn keep_calling(self: Arc<Gateway>, link: Arc<Link>) {
        loop {
            link.choice.free().await;
            let table = self.table();
            let Some(peer) = table.peer(&link).filter(|peer| peer.config.address.is_some()) else { break };
            match self.call(peer, CALL).await {
                Ok(Some(connected)) => self.serve(peer, connected).await,
                Ok(None) => {}
                Err(reason) => {
                    peer.fails(&reason);
                    tracing::info!(peer = peer.config.name, reason, "cannot reach the peer");
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
        link.called.store(false, Ordering::Relaxed);
    }

    /// Calls a peer; returns nothing if it has called meanwhile.
    async fn call(&self, peer: &Peer, timeout: Duration) -> std::result::Result<Option<Connected>, String> {
        let (config, address) = (peer.config.clone(), peer.config.address.clone().unwrap_or_default());
        let resolved = match address.parse() {
            Ok(number) => Some(number),
            Err(_) => tokio::task::spawn_blocking(move || config.resolve()).await.ok().flatten(),
        };
        let to = resolved.ok_or_else(|| format!("`{address}` has no address"))?;
        let (identity, begun) = (self.identity(), self.event());
        let tls = identity.client_any(peer.config.public_keys()).map_err(|e| e.to_string())?;
        let (client, tunnel) = self.transport.client(tls, to);
        let connecting = self.endpoint.connect_with(client, to, "gateway").map_err(|e| e.to_string())?;
        let calls = async {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected.map(Some).map_err(|reason| sentence(&reason, Side::Client, identity.public)),
                Err(_) => Err(format!("no answer for {} s", timeout.as_secs_f64())),
            }
        };
        let is_called = async {
            peer.link.choice.taken().await;
            Ok(None)
        };
        let connected = relay::unless(calls, is_called).await;
        if !matches!(connected, Ok(Some(_))) {
            self.transport.forget(&tunnel);
        }
        let Some(connection) = connected? else { return Ok(None) };
        let key = PublicKey::of(&connection).ok_or("no key")?;
        Ok(Some(Connected { connection, tunnel, keys: [identity.public, key], begun }))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.system.runtime.spawn(Box::pin(task));
    }

    /// Accepts connections of peers, for ever.
    pub async fn answer_calls(self: Arc<Gateway>) {
        while let Some(incoming) = self.endpoint.accept().await {
            let gateway = self.clone();
            let Some(incoming) = validated(incoming) else { continue };
            self.spawn(async move {
                let from = canonical(incoming.remote_address());
                if let Err(reason) = gateway.clone().answer(incoming).await {
                    count(&gateway.counters.refused);
                    tracing::info!(%from, reason, "refused a connection of a gateway");
                }
            });
        }
    }

    async fn answer(self: Arc<Gateway>, incoming: Incoming) -> std::result::Result<(), String> {
        let keys = self.table().peers.iter().flat_map(|peer| peer.config.public_keys()).collect();
        let identity = self.identity();
        let tls = identity.server(keys).map_err(|e| e.to_string())?;
        let (from, begun) = (incoming.remote_address(), self.event());
        let (server, tunnel) = self.transport.server(tls, from);
        let connection = match self.transport.accept(incoming, server, &tunnel).await {
            Ok(connection) => connection,
            Err(reason) if is_beside(&reason) => {
                tracing::debug!(from = %canonical(from), %reason, "a call was given up");
                return Ok(());
            }
            Err(reason) => return Err(sentence(&reason, Side::Server, identity.public)),
        };
        let known = PublicKey::of(&connection).and_then(|key| Some((key, self.table().of_key(key).cloned()?)));
        let Some((key, peer)) = known else {
            self.transport.forget(&tunnel);
            return Err("no peer has this key".to_string());
        };
        self.serve(&peer, Connected { connection, tunnel, keys: [identity.public, key], begun }).await;
        Ok(())
    }

    /// Greets a peer, behind which streams can be opened.
    async fn greet(&self, connection: &Connection, tunnel: &Tunnel) -> Option<Greeted> {
        let (line, config) = (self.port.as_ref().map(|port| port.report().1), self.table().config.wan.rate);
        let rate = config.map(|rate| Rate(rate.0.0.max((8.0 * line.unwrap_or(0.0)) as u64)));
        let limits = self.transport.limits();
        let greeting = tokio::time::timeout(GREETING, credit::greet(connection, rate, limits)).await;
        let Ok(Some(greeted)) = greeting else {
            close(connection, PROTOCOL, b"no greeting");
            return None;
        };
        tunnel.credits.begin(connection, &greeted, limits);
        if let (Some(line), Some(peer)) = (line, tunnel.credits.peer_rate()) {
            tunnel.controller.lock().set_ports([line, peer.bytes_per_sec()]);
        }
        tunnel.turns.begin(connection, limits.peer_bytes as u64);
        Some(greeted)
    }

    /// Serves the streams of a connection until it ends.
    async fn serve(self: &Arc<Gateway>, peer: &Peer, connected: Connected) {
        let Connected { connection, tunnel, keys: [own, key], begun } = &connected;
        let entered = peer.link.choice.enter(connection);
        let is_here = || self.transport.confirm(connection.remote_address(), tunnel);
        let mut late = false;
        if own < key {
            late = !entered.choose(*begun).await;
            if late {
                close(connection, BESIDE, b"another connection is used");
            } else {
                is_here();
            }
        }
        let accepted = AtomicBool::new(false);
        let streams = async {
            let greeted = if late { None } else { self.greet(connection, tunnel).await };
            let Some(mut greeted) = greeted else { return connection.closed().await };
            is_here();
            entered.used(self.event());
            tracing::info!(peer = peer.config.name, address = %canonical(connection.remote_address()), "connected");
            accepted.store(true, Ordering::Relaxed);
            peer.set(&connected);
            if self.table().peer(&peer.link).is_none() {
                connection.close(0u32.into(), NO_PEER);
            }
            let accepts = async {
                loop {
                    match connection.accept_bi().await {
                        Ok(stream) => self.spawn(self.clone().onward(peer.link.clone(), stream, tunnel.clone())),
                        Err(reason) => break reason,
                    }
                }
            };
            let follows = async {
                tunnel.credits.follow(&tunnel.turns, &mut greeted).await;
                connection.close(PROTOCOL.into(), b"no record of credit");
                connection.closed().await
            };
            relay::unless(accepts, follows).await
        };
        let reason = tokio::select! {
            biased;
            reason = streams => reason,
            () = silence::probe(connection, tunnel) => return,
            () = self.tell(connection) => return,
            () = self.keep_told(peer) => return,
            () = self.follow(&peer.link, connection, tunnel) => return,
        };
        self.transport.forget(tunnel);
        let was_used = accepted.into_inner();
        if !was_used && (late && reason == ConnectionError::LocallyClosed || is_beside(&reason)) {
            tracing::debug!(peer = peer.config.name, %reason, "another connection is used");
            return;
        }
        peer.fails(&reason.to_string());
        if peer.current().is_none() {
            peer.told().clear();
        }
        let reason = sentence(&reason, connection.side(), *own);
        // A caller's handshake ends before the peer has seen its key.
        let what = if was_used { "disconnected" } else { "the peer was not used" };
        tracing::info!(peer = peer.config.name, reason, "{what}");
    }
}

#[cfg(test)]
mod tests;
