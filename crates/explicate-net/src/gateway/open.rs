//! Connections that are open, and how long each has waited for the hosts at its ends.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};

use super::preface::Preface;
use super::relay::{Carried, Ended};
use super::tcp::Bytes;
use crate::sys;

/// Shorter waits are not reported, ns.
const NOTABLE: u64 = 500_000_000;
/// Most connections that are reported, those that wait longest.
const REPORTED: usize = 1000;

/// Time in which something had to wait, ns.
#[derive(Default)]
pub struct Wait {
    /// Since when it waits; 0 if it does not.
    since: AtomicU64,
    /// What it has waited before.
    before: AtomicU64,
}

impl Wait {
    /// Waits for `what`.
    pub async fn during<T>(&self, what: impl Future<Output = T>) -> T {
        let began = sys::monotonic();
        self.since.store(began, Ordering::Relaxed);
        let result = what.await;
        self.since.store(0, Ordering::Relaxed);
        self.before.fetch_add(sys::monotonic().saturating_sub(began), Ordering::Relaxed);
        result
    }
    /// The present wait, and the sum of all.
    fn at(&self, now: u64) -> (u64, u64) {
        let since = self.since.load(Ordering::Relaxed);
        let present = if since == 0 { 0 } else { now.saturating_sub(since) };
        (present, present + self.before.load(Ordering::Relaxed))
    }
}

/// An open connection.
pub struct Open {
    preface: Preface,
    /// Name of the peer.
    name: String,
    /// Waits until the host at this end takes bytes of the peer.
    pub host: Wait,
    /// Waits until the peer takes bytes of this connection, for which it has no credit.
    pub peer: Wait,
    /// Bytes of the peer that wait here.
    pub held: AtomicU64,
    /// When it began, ns.
    began: u64,
    /// Bytes of its host at this end so far, and whether that is the client.
    host_bytes: OnceLock<(Arc<Bytes>, bool)>,
    /// What was carried, and how it ended.
    outcome: Mutex<(Carried, Option<Ended>)>,
}

impl Open {
    fn outcome(&self) -> MutexGuard<'_, (Carried, Option<Ended>)> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Has a host at this end, the client if it is `near`.
    pub fn follow(&self, bytes: Arc<Bytes>, near: bool) {
        let _ = self.host_bytes.set((bytes, near));
    }
    /// Bytes from the client and to it, as far as a host is at this end; and whether that is the client.
    fn bytes(&self) -> Option<(u64, u64, bool)> {
        let (bytes, near) = self.host_bytes.get()?;
        let [read, written] = [&bytes.read, &bytes.written].map(|of| of.load(Ordering::Relaxed));
        Some(if *near { (read, written, true) } else { (written, read, false) })
    }
    /// So many bytes were carried.
    pub fn set_carried(&self, carried: Carried) {
        self.outcome().0 = carried;
    }
    /// It has ended; the first cause counts.
    pub fn set_ended(&self, ended: Ended) {
        self.outcome().1.get_or_insert(ended);
    }
    /// Writes the log's line of a connection that has ended; the client is at this end if `near`.
    pub fn log(&self, near: bool) {
        let (carried, ended) = *self.outcome();
        let Carried { sent, received } = carried;
        let (from_client, to_client) = if near { (sent, received) } else { (received, sent) };
        let seconds = sys::monotonic().saturating_sub(self.began) as f64 / 1e9;
        tracing::info!(
            client = %self.preface.client,
            destination = %self.preface.destination,
            peer = self.name,
            from_client_bytes = from_client,
            to_client_bytes = to_client,
            seconds = (seconds * 1e3).round() / 1e3,
            cause = ended.map_or_else(|| "the gateway stops".to_string(), |ended| ended.words(near)),
            "connection ended"
        );
    }
}

/// The open connections, by the order in which they were opened.
#[derive(Default)]
pub struct List {
    next: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Open>>>,
}

impl List {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Open>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds a connection with this peer, and returns its number.
    pub fn add(&self, preface: &Preface, peer: &str) -> (u64, Arc<Open>) {
        let (number, name) = (self.next.fetch_add(1, Ordering::Relaxed), peer.to_string());
        let open = Open {
            preface: *preface,
            name,
            host: Wait::default(),
            peer: Wait::default(),
            held: AtomicU64::new(0),
            began: sys::monotonic(),
            host_bytes: OnceLock::new(),
            outcome: Mutex::default(),
        };
        let open = Arc::new(open);
        self.lock().insert(number, open.clone());
        (number, open)
    }
    /// A connection has ended.
    pub fn remove(&self, number: u64) {
        self.lock().remove(&number);
    }
    /// What hosts have carried in connections that are open, those with the most bytes first.
    pub fn carrying(&self) -> Vec<Value> {
        let all: Vec<(u64, Arc<Open>)> = self.lock().iter().map(|(number, open)| (*number, open.clone())).collect();
        let bytes = all.into_iter().filter_map(|(number, open)| Some((open.bytes()?, number, open)));
        let mut all: Vec<_> = bytes.collect();
        all.sort_by_key(|((from, to, _), ..)| std::cmp::Reverse(from + to));
        let of = |((from, to, _), number, open): ((u64, u64, bool), u64, Arc<Open>)| {
            json!({
                "number": number,
                "name": open.name,
                "client": open.preface.client.to_string(),
                "destination": open.preface.destination.to_string(),
                "from_client_bytes": from,
                "to_client_bytes": to,
            })
        };
        all.into_iter().take(REPORTED).map(of).collect()
    }
    /// Those that have waited for some time, the longest present waits first, and how many wait now.
    pub fn waiting(&self) -> (Vec<Value>, usize) {
        self.waiting_at(sys::monotonic())
    }
    fn waiting_at(&self, now: u64) -> (Vec<Value>, usize) {
        let of = |wait: &Wait| wait.at(now);
        let all: Vec<(u64, Arc<Open>)> = self.lock().iter().map(|(number, open)| (*number, open.clone())).collect();
        let times = all.into_iter().map(|(number, open)| (of(&open.host), of(&open.peer), number, open));
        let mut notable: Vec<_> = times.filter(|(host, peer, ..)| host.1.max(peer.1) >= NOTABLE).collect();
        notable.sort_by_key(|(host, peer, ..)| std::cmp::Reverse((host.0.max(peer.0), host.1.max(peer.1))));
        let waits = |of: &(u64, u64)| of.0 >= NOTABLE;
        let waiting = notable.iter().filter(|(host, peer, ..)| waits(host) || waits(peer)).count();
        let seconds = |(present, sum): (u64, u64)| json!({ "now_s": present as f64 / 1e9, "sum_s": sum as f64 / 1e9 });
        let reported = notable.into_iter().take(REPORTED).map(|(host, peer, number, open)| {
            json!({
                "number": number,
                "name": open.name,
                "client": open.preface.client.to_string(),
                "destination": open.preface.destination.to_string(),
                "host": seconds(host),
                "peer": seconds(peer),
                "near": open.bytes().map(|(.., near)| near),
                "held_bytes": open.held.load(Ordering::Relaxed),
            })
        });
        (reported.collect(), waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::relay::Cause;
    use super::*;

    /// What is written as a connection ends that a host here has opened, and at the gateway of its destination.
    #[test]
    fn the_log_names_who_what_and_why() {
        #[derive(Clone, Default)]
        struct Lines(Arc<Mutex<Vec<u8>>>);
        impl std::io::Write for Lines {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (list, lines) = (List::default(), Lines::default());
        let preface = Preface { destination: "10.2.0.2:80".parse().unwrap(), client: "10.1.0.2:4000".parse().unwrap() };
        let writer = lines.clone();
        let log = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(log, || {
            let ends = [
                (Some(Ended::Closed), true),
                (Some(Ended::Peer(Cause::Refused)), true),
                (Some(Ended::Host), false),
                (Some(Ended::Peer(Cause::Reset)), false),
                (None, true),
            ];
            for (ended, near) in ends {
                let (_, open) = list.add(&preface, "hub");
                open.set_carried(Carried { sent: 7, received: 9 });
                ended.into_iter().for_each(|ended| open.set_ended(ended));
                open.set_ended(Ended::Tunnel);
                if ended.is_none() {
                    *open.outcome() = Default::default();
                }
                open.log(near);
            }
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let said: Vec<Value> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].clone()).collect();
        let first = &said[0];
        assert_eq!((&first["client"], &first["destination"]), (&"10.1.0.2:4000".into(), &"10.2.0.2:80".into()));
        assert_eq!(
            (&first["peer"], &first["from_client_bytes"], &first["to_client_bytes"]),
            (&"hub".into(), &7.into(), &9.into())
        );
        assert_eq!((&said[2]["from_client_bytes"], &said[2]["to_client_bytes"]), (&9.into(), &7.into()), "the far end");
        assert!(first["seconds"].as_f64().unwrap() >= 0.0 && first["message"] == "connection ended");
        let causes: Vec<&str> = said.iter().map(|line| line["cause"].as_str().unwrap()).collect();
        let wanted = [
            "closed by both",
            "refused by the destination",
            "reset by the destination, or the destination is gone",
            "reset by the client, or the client is gone",
            "the gateway stops",
        ];
        assert_eq!(causes, wanted);
    }

    #[test]
    fn bytes_of_open_connections_are_those_from_and_to_their_clients() {
        let list = List::default();
        let preface = Preface { destination: "10.2.0.2:80".parse().unwrap(), client: "10.1.0.2:4000".parse().unwrap() };
        let of = |read, written| Arc::new(Bytes { read: AtomicU64::new(read), written: AtomicU64::new(written) });
        list.add(&preface, "hub").1.follow(of(5, 7), true);
        list.add(&preface, "hub").1.follow(of(50, 70), false);
        list.add(&preface, "between peers");
        let counted = |all: &[Value]| -> Vec<[u64; 3]> {
            let keys = ["number", "from_client_bytes", "to_client_bytes"];
            all.iter().map(|one| keys.map(|key| one[key].as_u64().unwrap())).collect()
        };
        assert_eq!(counted(&list.carrying()), [[1, 70, 50], [0, 5, 7]]);
    }

    #[tokio::test]
    async fn those_that_wait_are_listed_while_they_are_open() {
        let list = List::default();
        let preface = Preface { destination: "10.2.0.2:80".parse().unwrap(), client: "10.1.0.2:4000".parse().unwrap() };
        let (first, open) = list.add(&preface, "hub");
        list.add(&preface, "other");
        assert_eq!(list.waiting(), (vec![], 0), "none has waited");
        open.host.during(tokio::time::sleep(Duration::from_nanos(NOTABLE + 1))).await;
        let now = sys::monotonic();
        open.peer.since.store(now, Ordering::Relaxed);
        let (all, waiting) = list.waiting_at(now + 1);
        assert_eq!((all.len(), waiting), (1, 0), "{all:?}");
        assert_eq!((&all[0]["number"], &all[0]["name"]), (&first.into(), &"hub".into()));
        assert_eq!(all[0]["host"]["now_s"], 0.0, "that wait is over");
        assert!(
            all[0]["host"]["sum_s"].as_f64() > Some(0.5) && all[0]["peer"]["sum_s"].as_f64() > Some(0.0),
            "{all:?}"
        );
        for _ in 0..REPORTED + 3 {
            list.add(&preface, "hub").1.host.since.store(1, Ordering::Relaxed);
        }
        let (all, waiting) = list.waiting();
        assert_eq!((all.len(), waiting), (REPORTED, REPORTED + 3));
        assert!(all[0]["number"] != first, "the longest waits come first");
        list.remove(first + 2);
        assert_eq!(list.waiting().1, REPORTED + 2);
    }
}
