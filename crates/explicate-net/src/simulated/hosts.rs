//! Hosts of the sites: what they send, how they read, and how they leave.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::machine::Machine;
use super::record::{Record, Rule, Who};
use super::tcp::{self, End};
use super::{clock, memory};
use crate::gateway::preface::Preface;
use crate::gateway::tcp::Tcp;

/// The last byte of a client's address, if nothing else is wanted.
pub const CLIENT: u8 = 2;
/// Port of the first connection; the others follow.
const PORTS: u16 = 2000;
/// Time of a segment between a host and its gateway, ns.
const DELAY: u64 = 1_000_000;
/// How long a router takes to say that a host is not there, ns.
const ABSENT: Duration = Duration::from_secs(3);
/// Bytes that a host reads or writes at a time.
const BLOCK: usize = 4096;
/// Bytes of a keystroke.
const KEYS: usize = 20;

/// How a host reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reads {
    /// At once.
    All,
    /// Behind so many bytes it pauses for so long, ns.
    Paused(u64, u64),
    /// So many bytes every 100 ms.
    Slowly(usize),
    /// Not at all.
    Never,
}

/// How a host leaves before the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaves {
    /// By a reset.
    Reset,
    /// Without a word.
    Vanishes,
}

/// What a host does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Script {
    /// Bytes that it sends before it closes its half.
    pub sends: u64,
    /// It sends when it has read all.
    pub answers: bool,
    /// It does not close its half.
    pub idles: bool,
    /// Time between two blocks that it sends, ns; else it sends as fast as it can.
    pub every: u64,
    /// How it reads.
    pub reads: Reads,
    /// When it leaves after the beginning, ns, and how.
    pub leaves: Option<(u64, Leaves)>,
}

impl Script {
    /// A host that sends so many bytes and reads all.
    pub fn sending(sends: u64) -> Script {
        Script { sends, answers: false, idles: false, every: 0, reads: Reads::All, leaves: None }
    }
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Server {
    /// The server accepts.
    Accepts,
    /// It refuses.
    Refuses,
    /// There is no such host.
    Absent,
}

/// A connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Site of the client, and the last byte of its address.
    pub from: u8,
    /// See there.
    pub client_host: u8,
    /// Site of the server.
    pub to: u8,
    /// When it is opened, ns.
    pub at: u64,
    /// What its client does.
    pub client: Script,
    /// What its server does.
    pub server: Script,
    /// Whether the server accepts it.
    pub accepts: Server,
    /// Keystrokes instead: how many, and the time between two, ns.
    pub keys: Option<(u32, u64)>,
}

/// How a host has fared.
#[derive(Clone, Default, Debug)]
pub struct Outcome {
    /// Bytes read.
    pub read: u64,
    /// The other host has closed its half.
    pub eof: bool,
    /// Bytes written.
    pub wrote: u64,
    /// It has closed its half.
    pub finished: bool,
    /// The connection failed.
    pub failed: bool,
    /// How it left.
    pub left: Option<Leaves>,
    /// When it was over, ns.
    pub over: Option<u64>,
    /// When keystrokes were sent and how long their echoes took, ns.
    pub keys: Vec<(u64, u64)>,
}

/// The hosts of all sites.
pub struct World {
    /// What happens.
    pub record: Arc<Record>,
    plans: Vec<Plan>,
    outcomes: Mutex<Vec<[Option<Outcome>; 2]>>,
    capacity: usize,
}

/// Where a gateway's connections to hosts go.
pub struct Site {
    /// All hosts.
    pub world: Arc<World>,
}

/// The address of the host of a site at which a connection arrives, or from which it comes.
pub fn host(site: u8, last: u8, number: usize) -> SocketAddr {
    SocketAddr::from(([198, 18, site, last], PORTS + number as u16))
}

/// The byte at a place of what a connection's client or server sends.
fn byte(number: usize, server: bool, at: u64) -> u8 {
    let mixed = at ^ (at >> 8) ^ (at >> 16);
    (mixed as u8).wrapping_mul(167).wrapping_add(number as u8).wrapping_add(128 * server as u8)
}

impl World {
    /// Hosts with these plans and buffers of connections.
    pub fn new(plans: Vec<Plan>, record: Arc<Record>, capacity: usize) -> World {
        let outcomes = Mutex::new(vec![[None, None]; plans.len()]);
        World { record, plans, outcomes, capacity }
    }
    fn outcomes(&self) -> MutexGuard<'_, Vec<[Option<Outcome>; 2]>> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What has become of all hosts: client and server of each connection; a server that was not called has none.
    pub fn fared(&self) -> Vec<[Option<Outcome>; 2]> {
        self.outcomes().clone()
    }
    /// Whether the host of a side is still at it.
    pub fn is_over(&self) -> bool {
        let over = |outcome: &Option<Outcome>| outcome.as_ref().is_none_or(|outcome| outcome.over.is_some());
        self.outcomes().iter().all(|[client, server]| client.is_some() && over(client) && over(server))
    }
    fn pair(&self, number: usize, who: [Who; 2]) -> [End; 2] {
        let plan = tcp::Plan { capacity: self.capacity, delay: DELAY, number: number as u32, who };
        tcp::pair(plan, &self.record)
    }
    fn update(&self, number: usize, server: bool, change: impl FnOnce(&mut Outcome)) {
        change(self.outcomes()[number][server as usize].get_or_insert_default());
    }

    /// Opens a connection by the gateway of its site; the times of plans count from `began`.
    pub async fn open(self: Arc<World>, number: usize, began: u64, machines: Arc<Vec<Machine>>) {
        let plan = self.plans[number];
        clock::until(Some(began + plan.at)).await;
        self.update(number, false, |_| {});
        let Some((gateway, runtime)) = machines[plan.from as usize].gateway() else {
            self.record.tell(number as u32, Who::Client, "finds no gateway");
            return self
                .update(number, false, |outcome| (outcome.failed, outcome.over) = (true, Some(clock::elapsed())));
        };
        self.record.tell(number as u32, Who::Client, "opens it");
        let [client, near] = self.pair(number, [Who::Client, Who::Near]);
        let (from, to) = (host(plan.from, plan.client_host, number), host(plan.to, 3, number));
        memory::of(Some(plan.from), || runtime.spawn(Box::pin(gateway.intercepted(near.into(), from, to))));
        self.lives(number, false, client).await;
    }

    /// What a host does with its connection.
    async fn lives(&self, number: usize, server: bool, end: End) {
        let plan = &self.plans[number];
        let script = if server { plan.server } else { plan.client };
        let leaves = async {
            clock::until(script.leaves.map(|(after, _)| clock::elapsed() + after)).await;
            script.leaves.map(|(_, leaves)| leaves)
        };
        let does = async {
            let done = match plan.keys {
                Some(keys) if !server => self.types(number, &end, keys).await,
                Some(_) => self.echoes(number, &end).await,
                None => self.exchanges(number, server, &end, script).await,
            };
            self.update(number, server, |outcome| outcome.failed = done.is_err());
            None
        };
        let left = tokio::select! {
            biased;
            none = does => none,
            left = leaves => left,
        };
        let over = clock::elapsed();
        self.update(number, server, |outcome| (outcome.left, outcome.over) = (left, Some(over)));
        let orderly = self.outcomes()[number][server as usize].as_ref().is_some_and(|outcome| !outcome.failed);
        match left {
            Some(Leaves::Vanishes) => end.vanish(),
            Some(Leaves::Reset) => drop(end),
            None if orderly => end.release(),
            None => drop(end),
        }
    }
    async fn exchanges(&self, number: usize, server: bool, end: &End, script: Script) -> io::Result<()> {
        if script.answers {
            self.reads(number, server, end, script.reads).await?;
            return self.writes(number, server, end, script.sends).await;
        }
        let (wrote, read) =
            tokio::join!(self.writes(number, server, end, script.sends), self.reads(number, server, end, script.reads));
        wrote.and(read)
    }
    async fn writes(&self, number: usize, server: bool, end: &End, sends: u64) -> io::Result<()> {
        let mut at = 0;
        let plan = &self.plans[number];
        let every = if server { plan.server.every } else { plan.client.every };
        while at < sends {
            if every > 0 {
                wait(end, every).await?;
            }
            let block: Vec<u8> = (at..sends.min(at + BLOCK as u64)).map(|at| byte(number, server, at)).collect();
            let mut rest = &block[..];
            while !rest.is_empty() {
                match end.try_write(rest) {
                    Ok(some) => {
                        rest = &rest[some..];
                        at += some as u64;
                        self.update(number, server, |outcome| outcome.wrote = at);
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => end.writable().await,
                    Err(e) => return Err(e),
                }
            }
        }
        if if server { plan.server.idles } else { plan.client.idles } {
            end.failed().await;
            return Err(ErrorKind::ConnectionReset.into());
        }
        self.finishes(number, server, end)
    }
    fn finishes(&self, number: usize, server: bool, end: &End) -> io::Result<()> {
        end.finish()?;
        self.update(number, server, |outcome| outcome.finished = true);
        self.record.tell(number as u32, who(server), "has sent all");
        Ok(())
    }
    async fn reads(&self, number: usize, server: bool, end: &End, reads: Reads) -> io::Result<()> {
        let (mut read, mut paused) = (0, false);
        loop {
            let most = match reads {
                Reads::Never => {
                    end.failed().await;
                    return Err(ErrorKind::ConnectionReset.into());
                }
                Reads::Paused(behind, time) if read >= behind && !paused => {
                    paused = true;
                    wait(end, time).await?;
                    BLOCK
                }
                Reads::Slowly(bytes) => {
                    let most = bytes.min(BLOCK);
                    wait(end, (100_000_000 * most / bytes.max(1)) as u64).await?;
                    most
                }
                _ => BLOCK,
            };
            let bytes = self.read(number, server, end, (read, !server), most).await?;
            if bytes == 0 {
                self.update(number, server, |outcome| outcome.eof = true);
                self.record.tell(number as u32, who(server), format!("has read all, {read} bytes"));
                return Ok(());
            }
            read += bytes as u64;
        }
    }
    /// Reads some bytes, which stand at this place of what the server or client sends.
    async fn read(
        &self,
        number: usize,
        server: bool,
        end: &End,
        (at, of_server): (u64, bool),
        most: usize,
    ) -> io::Result<usize> {
        let mut block = [0; BLOCK];
        let bytes = end.read(&mut block[..most]).await?;
        if let Some(wrong) = (0..bytes).find(|i| block[*i] != byte(number, of_server, at + *i as u64)) {
            self.record.broke(Rule::Bytes, format!("connection {number}: byte {} is another", at + wrong as u64));
        }
        self.update(number, server, |outcome| outcome.read += bytes as u64);
        Ok(bytes)
    }
    async fn types(&self, number: usize, end: &End, (rounds, every): (u32, u64)) -> io::Result<()> {
        let mut at = 0;
        for _ in 0..rounds {
            let (sent, keys) = (clock::elapsed(), (at..at + KEYS as u64).map(|at| byte(number, false, at)));
            end.write_all(&keys.collect::<Vec<_>>()).await?;
            self.update(number, false, |outcome| {
                outcome.wrote += KEYS as u64;
                outcome.keys.push((sent, u64::MAX));
            });
            let mut back = 0;
            while back < KEYS {
                let bytes = self.read(number, false, end, (at + back as u64, false), KEYS - back).await?;
                if bytes == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                back += bytes;
            }
            let took = clock::elapsed() - sent;
            self.update(number, false, |outcome| *outcome.keys.last_mut().expect("this one") = (sent, took));
            at += KEYS as u64;
            wait(end, every).await?;
        }
        self.finishes(number, false, end)?;
        self.reads(number, false, end, Reads::All).await
    }
    async fn echoes(&self, number: usize, end: &End) -> io::Result<()> {
        let (mut block, mut at) = ([0; BLOCK], 0);
        loop {
            let bytes = end.read(&mut block).await?;
            if bytes == 0 {
                break;
            }
            if (0..bytes).any(|i| block[i] != byte(number, false, at + i as u64)) {
                self.record.broke(Rule::Bytes, format!("connection {number}: a keystroke is another"));
            }
            at += bytes as u64;
            end.write_all(&block[..bytes]).await?;
            self.update(number, true, |outcome| (outcome.read, outcome.wrote) = (at, at));
        }
        self.update(number, true, |outcome| outcome.eof = true);
        self.finishes(number, true, end)
    }
}

fn who(server: bool) -> Who {
    if server { Who::Server } else { Who::Client }
}

/// Waits for so long, unless the connection fails.
async fn wait(end: &End, time: u64) -> io::Result<()> {
    tokio::select! {
        biased;
        () = end.failed() => Err(ErrorKind::ConnectionReset.into()),
        () = tokio::time::sleep(Duration::from_nanos(time)) => Ok(()),
    }
}

impl Site {
    /// Connects to the destination of a client, as the kernel of the gateway does.
    pub async fn connect(&self, preface: &Preface) -> io::Result<Tcp> {
        let number = (preface.destination.port() - PORTS) as usize;
        let world = self.world.clone();
        match world.plans[number].accepts {
            Server::Accepts => tokio::time::sleep(Duration::from_nanos(2 * DELAY)).await,
            Server::Refuses => {
                tokio::time::sleep(Duration::from_nanos(2 * DELAY)).await;
                return Err(ErrorKind::ConnectionRefused.into());
            }
            Server::Absent => {
                tokio::time::sleep(ABSENT).await;
                return Err(ErrorKind::HostUnreachable.into());
            }
        }
        memory::of(None, || {
            let [far, server] = world.pair(number, [Who::Far, Who::Server]);
            world.record.tell(number as u32, Who::Server, "accepts it");
            world.update(number, true, |_| {});
            tokio::spawn(async move { world.lives(number, true, server).await });
            Ok(far.into())
        })
    }
}
