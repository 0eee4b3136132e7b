//! The connections that a gateway carries: each is taken from the site or from a peer, and opened onward.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quinn::{RecvStream, SendStream};

use super::{Gateway, Link, PREFACE, Peer, count};
use crate::gateway::config::{ClientAddress, WhenDown};
use crate::gateway::credit::Account;
use crate::gateway::open::Open;
use crate::gateway::preface::{self, Preface, Refused};
use crate::gateway::relay::{self, Carried, Cause, Ended, Leg};
use crate::gateway::shim::canonical;
use crate::gateway::tcp::Tcp;
use crate::gateway::told;
use crate::gateway::tunnel::Tunnel;
use crate::gateway::turns::Lane;

/// How long a destination may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(20);
/// How long a connection waits for a stream when the peer has as many as it allows.
const ROOM: Duration = Duration::from_secs(20);

/// A place among the connections that are open at a time.
struct Place {
    gateway: Arc<Gateway>,
    number: u64,
    open: Arc<Open>,
    /// The client is a host of this site.
    near: bool,
}

impl Place {
    /// A place for a connection with this peer; `near` says that its client is a host of this site.
    fn take(gateway: &Arc<Gateway>, preface: &Preface, peer: &Peer, near: bool) -> Option<Place> {
        let (open, most) = (&gateway.counters.open, gateway.table().config.limits.connections);
        let took = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1));
        if took.is_err() {
            if gateway.table().config.log_connections {
                let (client, destination, cause) =
                    (preface.client, preface.destination, Ended::NotOpened(Cause::TooMany));
                tracing::info!(%client, %destination, peer = peer.config.name, cause = cause.words(near), "connection refused");
            }
            return None;
        }
        let (number, open) = gateway.open.add(preface, &peer.config.name);
        Some(Place { gateway: gateway.clone(), number, open, near })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.gateway.table().config.log_connections {
            self.open.log(self.near);
        }
        self.gateway.open.remove(self.number);
        self.gateway.counters.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a connection of a peer goes on.
enum Onward {
    /// To a host of the site.
    Host(Tcp),
    /// To another peer.
    Peer(Leg),
}

/// Bytes of the credit behind a preface.
const CREDIT: usize = 4;

/// Opens a stream to a peer.
async fn open(peer: &Peer, preface: &Preface) -> std::result::Result<Leg, Cause> {
    let (connection, tunnel) = peer.current().ok_or(Cause::Unreachable)?;
    let opened = tokio::time::timeout(ROOM, connection.open_bi()).await.map_err(|_| Cause::TooMany)?;
    let (mut send, receive) = opened.map_err(|_| Cause::Unreachable)?;
    let Some(account) = tunnel.credits.open(send.id().into()) else {
        let _ = send.reset(Cause::TooMany.into());
        return Err(Cause::TooMany);
    };
    tunnel.cover();
    let head = [&preface.to_bytes()[..], &account.first.to_be_bytes()].concat();
    let lane = Lane::new(preface.client.ip());
    tunnel.begin(&lane, &mut send, &head).await.map_err(|_| Cause::Unreachable)?;
    Ok(Leg { streams: (send, receive), tunnel, account, lane })
}

/// The credit of a stream that a peer has opened.
async fn accept(tunnel: &Tunnel, receive: &mut RecvStream) -> std::result::Result<Account, Cause> {
    let mut credit = [0; CREDIT];
    let read = tokio::time::timeout(PREFACE, receive.read_exact(&mut credit)).await;
    let Ok(Ok(())) = read else { return Err(Cause::Reset) };
    tunnel.credits.accept(receive.id().into(), u32::from_be_bytes(credit)).ok_or(Cause::TooMany)
}

/// Fails when a host's connection does.
async fn failed<T>(tcp: &Tcp) -> std::result::Result<T, Cause> {
    tcp.failed().await;
    Err(Cause::Reset)
}

impl Gateway {
    /// Connects to the destination of a peer's client.
    async fn connect(&self, preface: &Preface, from: ClientAddress) -> std::result::Result<Tcp, Cause> {
        let patience = self.table().config.patience;
        match tokio::time::timeout(CONNECT, self.system.hosts.connect(preface, from, patience)).await {
            Ok(Ok(tcp)) => Ok(tcp),
            Ok(Err(e)) if e.kind() == io::ErrorKind::ConnectionRefused => Err(Cause::Refused),
            Ok(Err(e)) if e.kind() == io::ErrorKind::TimedOut => Err(Cause::TimedOut),
            Ok(Err(reason)) => {
                tracing::info!(destination = %preface.destination, %reason, "cannot connect");
                Err(Cause::Unreachable)
            }
            Err(_) => Err(Cause::TimedOut),
        }
    }

    /// Opens a connection for a client of a peer, and carries it.
    pub(super) async fn onward(
        self: Arc<Gateway>,
        from: Arc<Link>,
        (mut send, mut receive): (SendStream, RecvStream),
        tunnel: Arc<Tunnel>,
    ) {
        let mut head = [0; preface::LEN];
        let read = match tokio::time::timeout(PREFACE, receive.read_exact(&mut head)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Cause::Reset),
            Err(_) => Err(Cause::TimedOut),
        };
        if let (Ok(()), Some(count)) = (read, told::head(&head)) {
            return self.hear(&from, count, &mut receive).await;
        }
        let opened = match read {
            Ok(()) => self.open_onward(&from, (&head, &mut receive), &tunnel).await,
            Err(cause) => Err(cause),
        };
        let cause = match opened {
            Ok((onward, place, (account, lane))) => {
                count(&self.counters.onward);
                let leg = Leg { streams: (send, receive), tunnel, account, lane };
                let ended = match onward {
                    Onward::Host(tcp) => {
                        place.open.follow(tcp.bytes(), false);
                        relay::run(tcp, leg, &place.open).await
                    }
                    Onward::Peer(beyond) => {
                        let ended = relay::between(leg, beyond, &place.open).await;
                        place.open.set_ended(if ended.1 { Ended::Closed } else { Ended::Peer(Cause::Reset) });
                        ended
                    }
                };
                return self.ended(ended, place);
            }
            Err(cause) => cause,
        };
        count(if cause == Cause::Reset { &self.counters.resets } else { &self.counters.refused });
        relay::abort(&mut send, &mut receive, cause);
    }

    async fn open_onward(
        self: &Arc<Gateway>,
        from: &Arc<Link>,
        (head, receive): (&[u8; preface::LEN], &mut RecvStream),
        tunnel: &Tunnel,
    ) -> std::result::Result<(Onward, Place, (Account, Lane)), Cause> {
        let preface = Preface::parse(head).map_err(|refused| {
            if refused == Refused::Version {
                tracing::warn!(
                    version = head[0],
                    "a stream of another version than {}: update the older gateway",
                    preface::VERSION
                );
            }
            Cause::NotAllowed
        })?;
        let table = self.table();
        table.allow(from, &preface)?;
        let peer = table.peer(from).ok_or(Cause::NotAllowed)?;
        let place = Place::take(self, &preface, peer, false).ok_or(Cause::TooMany)?;
        let beyond = table.beyond(from, &preface);
        if beyond.is_none() {
            let permitted = table.permit(from, &preface, &self.own.borrow());
            permitted.inspect_err(|cause| place.open.set_ended(Ended::NotOpened(*cause)))?;
        }
        let account = accept(tunnel, receive).await;
        let account = account.inspect_err(|cause| place.open.set_ended(Ended::NotOpened(*cause)))?;
        let lane = Lane::new(preface.client.ip());
        let reaching = async {
            match beyond {
                Some(peer) => open(peer, &preface).await.map(Onward::Peer),
                None => self.connect(&preface, table.config.site.client_address).await.map(Onward::Host),
            }
        };
        let reset = async {
            relay::is_reset(receive).await;
            Err(Cause::Reset)
        };
        let opened = relay::unless(reaching, reset).await;
        Ok((opened.inspect_err(|cause| place.open.set_ended(Ended::NotOpened(*cause)))?, place, (account, lane)))
    }

    /// Carries a connection that the site has opened to `destination`.
    pub async fn intercepted(self: Arc<Gateway>, mut tcp: Tcp, client: SocketAddr, destination: SocketAddr) {
        count(&self.counters.intercepted);
        let preface = Preface { destination: canonical(destination), client: canonical(client) };
        let table = self.table();
        let networks = &table.config.site.networks;
        let spoofed = !networks.is_empty() && !networks.iter().any(|n| n.contains(preface.client.ip()));
        let peer = table.route(preface.destination.ip()).filter(|_| !spoofed);
        let Some((peer, place)) = peer.and_then(|peer| Some((peer, Place::take(&self, &preface, peer, true)?))) else {
            count(&self.counters.refused);
            return tcp.reset();
        };
        tcp.prepare(table.config.patience);
        place.open.follow(tcp.bytes(), true);
        // Until the kernel knows it.
        let told = peer.told().contains(&preface.destination.ip());
        if told || peer.current().is_none() {
            return self.without_tunnel(tcp, &preface, (place, told)).await;
        }
        match relay::unless(open(peer, &preface), failed(&tcp)).await {
            Ok(leg) => self.ended(relay::run(tcp, leg, &place.open).await, place),
            Err(cause) => {
                place.open.set_ended(Ended::NotOpened(cause));
                count(if cause == Cause::TooMany { &self.counters.refused } else { &self.counters.resets });
                tcp.reset();
            }
        }
    }

    /// A connection has ended.
    fn ended(&self, (Carried { sent, received }, orderly): (Carried, bool), place: Place) {
        self.counters.sent.fetch_add(sent, Ordering::Relaxed);
        self.counters.received.fetch_add(received, Ordering::Relaxed);
        place.open.set_carried(Carried { sent, received });
        if !orderly {
            count(&self.counters.resets);
        }
        drop(place);
    }

    /// Connects to the destination by plain routing; `told` says that this is all that is wanted.
    async fn without_tunnel(&self, tcp: Tcp, preface: &Preface, (place, told): (Place, bool)) {
        if !told && self.table().config.site.when_down == WhenDown::Reset {
            place.open.set_ended(Ended::NotOpened(Cause::Unreachable));
            count(&self.counters.refused);
            return tcp.reset();
        }
        let onward = match relay::unless(self.connect(preface, ClientAddress::Keep), failed(&tcp)).await {
            Ok(onward) => onward,
            Err(cause) => {
                place.open.set_ended(Ended::NotOpened(cause));
                count(if cause == Cause::Reset { &self.counters.resets } else { &self.counters.refused });
                return tcp.reset();
            }
        };
        count(&self.counters.direct);
        let (carried, ended) = relay::direct(tcp, onward).await;
        place.open.set_carried(carried);
        place.open.set_ended(ended);
        if ended != Ended::Closed {
            count(&self.counters.resets);
        }
        drop(place);
    }
}
