//! Both ends of transfers in simulated time, drawn from one seed.
//!
//! [`programs`] starts `explicated send` and `recv` without their command lines, on the network of gateways; the files are real ones in a
//! temporary folder, and what waits for the disk takes no simulated time. [`scene`] draws what happens, and [`run`](run()) judges it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use super::clock::{self, Simulated};
use super::network::Network;
use super::record::{Broken, Event, Limits, Record, Rule};
use super::scene::{Kind as OfPath, MOVED, SECOND};
use super::{Options, faults};
use crate::files::sending::Content;
use crate::files::store::PARTS;

pub mod programs;
pub mod scene;
#[cfg(test)]
mod tests;

use programs::{Outcome, RECEIVER, Receiver, Sender, World};
use scene::{Happens, Kind, Scene, Sends};

/// A user starts a sender so often.
const ATTEMPTS: u32 = 3;
/// How long after a sender has failed its user starts another one, ns.
const LATER: u64 = 5 * SECOND;
/// A lost connection is noticed within a minute, and 120 s later the sender gives up.
const GIVES_UP: u64 = (60 + 120 + 5) * SECOND;
/// Behind faults a transfer goes on within so long: probes of a call are 8 s apart at most, a part is free after 3 s.
const GOES_ON: u64 = 20 * SECOND;
/// What goes over a path takes so many times as long as its bytes, beside what its round trips take.
const SLOWER: u64 = 3;
const TRIPS: u64 = 40;
/// Senders of TCP have at least this share of what Mathis et al. (1997) give for the losses of a path, in their first seconds, too.
const OF_TCP: f64 = 0.4;
/// The receiver refuses calls so long while it stops.
const STOPS: u64 = SECOND / 10;
/// A connection whose other end has vanished is open so long at most.
const OPEN: Duration = Duration::from_secs(130);

/// What happened in a scene.
pub struct Report {
    /// Events in their order.
    pub events: Vec<Event>,
    /// What broke.
    pub broken: Vec<Broken>,
    /// Kinds of faults that have met a transfer.
    pub met: BTreeSet<Kind>,
    /// Simulated time until all transfers had ended, ns.
    pub took: u64,
}

/// A folder for the files of a scene, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("explicate-transfers-{}-{serial}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a scene.
pub fn run(scene: &Scene, options: Options) -> Report {
    faults::put_back(options.fault);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let folder = Folder::new();
    let report = runtime.expect("a runtime").block_on(async {
        let _clock = Simulated::begin();
        Arc::new(Stage::new(scene.clone(), &folder.0)).run().await
    });
    faults::put_back(None);
    report
}

/// A scene while it runs.
struct Stage {
    scene: Scene,
    world: World,
    receiver: Arc<Receiver>,
    senders: Vec<Sender>,
    /// Each file by its name at the receiver.
    files: BTreeMap<String, Vec<u8>>,
    met: Mutex<BTreeSet<Kind>>,
    /// Senders that run.
    active: Mutex<BTreeSet<u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    fn new(scene: Scene, folder: &Path) -> Stage {
        let record = Arc::new(Record::new(0, Limits { connection: i64::MAX, all: i64::MAX }));
        let network = Arc::new(Network::new(record.clone()));
        for plan in &scene.plans {
            network.connect(plan.number, RECEIVER, scene.path, scene.seed);
        }
        let world = World { seed: scene.seed, record, network };
        let numbers: Vec<u8> = scene.plans.iter().map(|plan| plan.number).collect();
        let receiver = Arc::new(Receiver::new(world.clone(), folder, scene.memory, &numbers));
        let sender = |plan: &scene::Plan| Sender::new(world.clone(), plan.clone(), receiver.clone(), folder);
        let senders = scene.plans.iter().map(sender).collect();
        let sent = scene.plans.iter().filter_map(|plan| match &plan.sends {
            Sends::Files(files) => Some(files),
            Sends::Filler(..) => None,
        });
        let files = sent.flatten().map(|file| (file.name.clone(), file.bytes())).collect();
        let (met, active) = Default::default();
        Stage { scene, world, receiver, senders, files, met, active }
    }
    fn broke(&self, rule: Rule, how: String) {
        self.world.record.broke(rule, how);
    }
    fn met(&self, kind: Kind) {
        lock(&self.met).insert(kind);
    }
    fn is_active(&self, sender: u8) -> bool {
        lock(&self.active).contains(&sender)
    }

    async fn run(self: Arc<Stage>) -> Report {
        let network = tokio::spawn(self.world.network.clone().drive());
        self.receiver.start();
        lock(&self.met).extend(self.scene.kinds.iter().map(|kind| Kind::Path(*kind)));
        let mut happens = JoinSet::new();
        for what in self.scene.happens.clone() {
            happens.spawn(self.clone().happen(what));
        }
        let mut users = JoinSet::new();
        for index in 0..self.senders.len() {
            users.spawn(self.clone().user(index));
        }
        while let Some(ended) = users.join_next().await {
            if ended.is_err() {
                self.broke(Rule::Panics, "a sender's user panics".to_string());
            }
        }
        let took = clock::elapsed();
        while happens.join_next().await.is_some() {}
        self.judge_end().await;
        self.receiver.kill();
        network.abort();
        let (events, broken) = self.world.record.take();
        Report { events, broken, met: std::mem::take(&mut *lock(&self.met)), took }
    }

    async fn happen(self: Arc<Stage>, happens: Happens) {
        let at = async |at: u64| clock::until(Some(at)).await;
        let (network, first) = (&self.world.network, &self.senders[0]);
        match happens {
            Happens::Down(from, to) => {
                at(from).await;
                network.set_down(0, RECEIVER, true);
                self.world.tell("the path is down".to_string());
                if self.is_active(0) {
                    self.met(Kind::Path(if to - from < 60 * SECOND { OfPath::Outage } else { OfPath::LongOutage }));
                }
                at(to).await;
                network.set_down(0, RECEIVER, false);
                self.world.tell("the path is up".to_string());
            }
            Happens::Rebinds(when) => {
                at(when).await;
                network.rebind(0, 50_001);
                self.world.tell("the NAT takes another port".to_string());
                if self.is_active(0) {
                    self.met(Kind::Path(OfPath::Rebinding));
                }
            }
            Happens::Copied(when, passes_back) => {
                at(when).await;
                network.copy_from(0, SocketAddr::from(([192, 0, 2, 66], 666)), passes_back);
                self.world.tell("copies of the sender's datagrams come from elsewhere, before them".to_string());
            }
            Happens::Sender(from, to) => {
                at(from).await;
                first.again.store(to, Ordering::Relaxed);
                if first.kill() {
                    self.met(Kind::SenderKilled);
                }
            }
            Happens::Receiver(kind, from, to) => {
                at(from).await;
                let meets = !lock(&self.active).is_empty();
                if kind == Kind::ReceiverStopped {
                    self.world.tell("the receiver is stopped".to_string());
                    self.receiver.stop().await;
                } else {
                    self.world.tell("the receiver is killed".to_string());
                    self.receiver.kill();
                }
                // It gives its files up when its tasks have ended.
                tokio::time::sleep(Duration::from_millis(1)).await;
                self.judge_files();
                let damaged = kind == Kind::Damaged && self.receiver.damage();
                if damaged {
                    self.world.tell("a bit of each part flips".to_string());
                }
                if meets && (kind != Kind::Damaged || damaged) {
                    self.met(kind);
                }
                if let Some(to) = to {
                    at(to).await;
                    self.receiver.start();
                }
            }
        }
    }

    /// Starts a sender, and again if it was killed or has failed.
    async fn user(self: Arc<Stage>, index: usize) {
        let sender = &self.senders[index];
        let number = sender.plan.number;
        clock::until(Some(sender.plan.at)).await;
        for _ in 0..ATTEMPTS {
            let (began, held) = (clock::elapsed(), self.held(sender));
            lock(&self.active).insert(number);
            let told = sender.start(held).await;
            lock(&self.active).remove(&number);
            let Ok(outcome) = told else {
                self.world.tell(format!("sender {number} was killed"));
                clock::until(Some(sender.again.load(Ordering::Relaxed))).await;
                continue;
            };
            self.world.tell(format!("sender {number} ends: {:?}", outcome.result));
            self.judge_attempt(sender, began, &outcome);
            let filler = matches!(sender.plan.sends, Sends::Filler(..));
            if outcome.result.is_ok() || filler || self.is_gone() {
                return;
            }
            clock::until(Some((clock::elapsed() + LATER).max(self.scene.over() + SECOND))).await;
        }
        self.broke(Rule::Recovers, format!("sender {number} has not sent all in {ATTEMPTS} attempts"));
    }
    /// Whether the receiver is gone for good.
    fn is_gone(&self) -> bool {
        let gone = |happens: &Happens| matches!(*happens, Happens::Receiver(_, at, None) if at <= clock::elapsed());
        self.scene.happens.iter().any(gone)
    }
    /// Bytes that the receiver has of what a sender sends: in whole files and in parts.
    fn held(&self, sender: &Sender) -> u64 {
        let Sends::Files(files) = &sender.plan.sends else { return 0 };
        let whole = files.iter().filter(|file| self.receiver.folder.join(&file.name).exists());
        whole.map(|file| file.size).sum::<u64>() + self.receiver.parts_of(sender.plan.number)
    }

    /// Judges what a sender's program tells its user.
    fn judge_attempt(&self, sender: &Sender, began: u64, outcome: &Outcome) {
        let (number, now) = (sender.plan.number, clock::elapsed());
        if let (Sends::Files(files), Content::Items(left)) = (&sender.plan.sends, &outcome.left) {
            for file in files.iter().filter(|file| left.iter().all(|item| item.name != file.name)) {
                if fs::read(self.receiver.folder.join(&file.name)).ok().as_ref() != self.files.get(&file.name) {
                    let how = format!("sender {number} reports {} as arrived, and it is not there", file.name);
                    self.broke(Rule::Bytes, how);
                }
            }
        }
        self.judge_files();
        let held = outcome.counters.held.load(Ordering::Relaxed);
        if outcome.result.is_ok() && held < outcome.due {
            let how = format!("sender {number}: the receiver had {} bytes, and takes {held} of them up", outcome.due);
            self.broke(Rule::Resumes, how);
        }
        let follows = self.follows(sender, outcome);
        let again = match outcome.result {
            Ok(()) if follows => MOVED,
            Ok(()) => GOES_ON,
            Err(_) => GIVES_UP,
        };
        let latest = self.latest(sender, began) + again;
        if follows && outcome.connected.len() > 1 {
            let how = format!("sender {number} is connected again, at {:.1} s", outcome.connected[1] as f64 / 1e9);
            self.broke(Rule::Follows, how);
        }
        if now > latest {
            let how =
                format!("sender {number} ends {:.1} s too late: {:?}", (now - latest) as f64 / 1e9, outcome.result);
            let rule = match outcome.result {
                Ok(()) if follows => Rule::Follows,
                Ok(()) => Rule::Recovers,
                Err(_) => Rule::Closes,
            };
            self.broke(rule, how);
        }
        if let Err(why) = &outcome.result {
            if why.contains("a task of this program failed") {
                self.broke(Rule::Panics, why.clone());
            }
            if !self.may_fail(sender, began) {
                self.broke(Rule::Arrives, format!("sender {number} fails, and nothing has stopped it: {why}"));
            }
        } else if let Sends::Filler(flows, Some(bytes), _) = sender.plan.sends {
            let received = outcome.counters.received.load(Ordering::Relaxed);
            if received != flows as u64 * bytes {
                self.broke(Rule::Bytes, format!("sender {number}: {received} bytes of filler arrived"));
            }
        }
    }
    /// Whether the sender was connected when its NAT took another port, or copies of its datagrams began to come from elsewhere: the
    /// receiver follows it. A call is repeated.
    fn follows(&self, sender: &Sender, outcome: &Outcome) -> bool {
        let first = outcome.connected.first().filter(|_| sender.plan.number == 0);
        let after = |at: u64| first.is_some_and(|first| *first < at);
        self.scene.happens.iter().any(|happens| match *happens {
            Happens::Rebinds(at) | Happens::Copied(at, _) => after(at),
            _ => false,
        })
    }
    /// When what a sender began then has ended at the latest, if it goes on at once behind a fault.
    fn latest(&self, sender: &Sender, began: u64) -> u64 {
        // What happens ends meanwhile.
        let from = self.scene.over().max(began);
        let (path, trip) = (self.scene.path, 2 * self.scene.path.delay);
        let mathis = if path.loss > 0.0 { 1200.0 / (trip as f64 / 1e9) * (1.5 / path.loss).sqrt() } else { path.rate };
        let rate = path.rate.min(OF_TCP * mathis);
        let filler = if let Sends::Filler(.., time) = sender.plan.sends { time.as_nanos() as u64 } else { 0 };
        let nominal = (sender.plan.bytes() as f64 / rate * 1e9) as u64 + filler;
        from + SLOWER * nominal + TRIPS * trip
    }
    /// Whether a fault ends what a sender began then. Transfers of files survive outages, other ports and a receiver that starts anew.
    fn may_fail(&self, sender: &Sender, began: u64) -> bool {
        let filler = matches!(sender.plan.sends, Sends::Filler(..));
        self.scene.happens.iter().any(|happens| match *happens {
            Happens::Receiver(Kind::ReceiverKilled, ..) => filler,
            Happens::Receiver(_, at, to) => at + STOPS >= began || to.is_none(),
            // Those of the first sender, which sends files.
            Happens::Down(..) | Happens::Rebinds(_) | Happens::Copied(..) | Happens::Sender(..) => false,
        })
    }
    /// No file is there that was not sent, or that is not whole.
    fn judge_files(&self) {
        for path in files_in(&self.receiver.folder) {
            let name = path.strip_prefix(&self.receiver.folder).unwrap_or(&path).to_string_lossy().into_owned();
            if fs::read(&path).ok().as_ref() != self.files.get(&name) {
                self.broke(Rule::Bytes, format!("{name} is there, and is not what was sent"));
            }
        }
    }
    /// In the end all files are there, no parts, and no connections.
    async fn judge_end(&self) {
        self.judge_files();
        if self.is_gone() {
            return;
        }
        for name in self.files.keys().filter(|name| !self.receiver.folder.join(name).exists()) {
            self.broke(Rule::Arrives, format!("{name} has not arrived"));
        }
        self.world.tell(format!("all senders are done; what is open {} s later is left over", OPEN.as_secs()));
        tokio::time::sleep(OPEN).await;
        let refused = self.receiver.refused();
        if refused > 0 {
            self.broke(Rule::Refuses, format!("the receiver counts {refused} calls as refused, and knows all senders"));
        }
        for (path, length) in self.receiver.parts() {
            self.broke(Rule::Resumes, format!("a part of {length} bytes is left: {}", path.display()));
        }
        if let Some(open) = self.receiver.open().filter(|open| *open != [0; 3]) {
            let how =
                format!("the receiver counts {} connections, QUIC {}, and has {} tunnels", open[0], open[1], open[2]);
            self.broke(Rule::Closes, how);
        }
    }
}

/// The files in a folder and its folders, without parts.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for entry in entries.filter(|entry| entry.file_name() != PARTS) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(files_in(&entry.path())),
            _ => all.push(entry.path()),
        }
    }
    all.sort_unstable();
    all
}
