//! `explicated send` and `recv` without their command lines: they start, end, are killed and start anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use explicate_core::guard::AIR_LOSS;
use explicate_core::presets::DEFAULT_TCP;
use explicate_core::units::Rate;
use quinn::{Endpoint, EndpointConfig, Runtime};
use tokio::sync::oneshot;

use super::super::clock;
use super::super::machine::key;
use super::super::network::{Network, address};
use super::super::quic::{self, Numbers};
use super::super::record::{Record, What};
use super::super::tasks::Tasks;
use super::scene::{Plan, Sends};
use crate::files::again::{self, Program};
use crate::files::pairing::State;
use crate::files::probed::Probed;
use crate::files::receiving::{Event, Receiving};
use crate::files::sending::{self, Content, Counters, Failure, Sending};
use crate::files::socket::{self, Close, Ground};
use crate::files::store::{PARTS, Settings, Store};
use crate::files::tree;
use crate::gateway::config::Limits;
use crate::gateway::identity::{Accepted, FILES, Identity, PublicKey};
use crate::gateway::socket::Tunnels;
use crate::gateway::transport::Transport;

/// Number of the receiver's machine.
pub const RECEIVER: u8 = 1;
/// How long a sender waits for a receiver that is silent: the default of the program.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The first port that a NAT gives to a sender that was started anew.
const PORTS: u64 = 51_000;

/// The identity of a machine.
pub fn identity(number: u8) -> Identity {
    Identity::of(key(number)).expect("a key")
}

/// Where programs run.
#[derive(Clone)]
pub struct World {
    /// Of the scene.
    pub seed: u64,
    /// What happens.
    pub record: Arc<Record>,
    /// Between the machines.
    pub network: Arc<Network>,
}

/// What a program has while it runs.
struct Running {
    number: u8,
    world: World,
    tasks: Tasks,
    tunnels: Arc<Tunnels>,
}

impl World {
    /// Tells something.
    pub fn tell(&self, text: String) {
        self.record.add(What::World(text));
    }
    /// The ground of a program that starts for this time.
    fn ground(&self, number: u8, starts: u64, identity: &Identity) -> (Ground, Running, [u8; 32]) {
        let tasks = Tasks::of(number, self.record.clone());
        let numbers = Numbers::of(self.seed, &format!("transfers {number} {starts}"), identity.cid_key);
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_be_bytes());
        seed[8..16].copy_from_slice(&starts.to_be_bytes());
        seed[16] = number;
        let mut config = EndpointConfig::new(Arc::new(identity.reset_key.clone()));
        let given = numbers.clone();
        config.rng_seed(Some(seed)).cid_generator(move || Box::new(given.clone()));
        let tunnels = Arc::new(if number == RECEIVER { Tunnels::moving(numbers) } else { Tunnels::default() });
        let (socket, runtime) = (self.network.open(number), Arc::new(tasks.clone()));
        let ground = Ground { config, socket, runtime, tunnels: tunnels.clone() };
        (ground, Running { number, world: self.clone(), tasks, tunnels }, seed)
    }
}

impl Drop for Running {
    /// Nothing leaves any more, and all tasks end. A tunnel keeps its connection, this its socket, and this the tunnel.
    fn drop(&mut self) {
        self.world.network.close(self.number);
        self.tasks.abort();
        self.tunnels.clear();
    }
}

/// The receiver's machine.
pub struct Receiver {
    world: World,
    /// Where files arrive.
    pub folder: PathBuf,
    state: State,
    memory: u32,
    running: Mutex<Option<(Running, Arc<Receiving>, Endpoint)>>,
    starts: AtomicU64,
}

impl Receiver {
    /// A machine with this folder, which is paired with these senders.
    pub fn new(world: World, folder: &Path, memory: u32, senders: &[u8]) -> Receiver {
        let state = State::open(Some(&folder.join("state"))).expect("a folder for keys");
        for number in senders {
            state.add_sender(identity(*number).public, "paired before").expect("a list of senders");
        }
        let folder = folder.join("to");
        fs::create_dir(&folder).expect("a folder for files");
        Receiver { world, folder, state, memory, running: Mutex::default(), starts: AtomicU64::new(0) }
    }
    fn running(&self) -> std::sync::MutexGuard<'_, Option<(Running, Arc<Receiving>, Endpoint)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Starts the program, as `recv` does.
    pub fn start(&self) {
        self.world.tell("the receiver starts".to_string());
        let starts = self.starts.fetch_add(1, Ordering::Relaxed);
        let own = identity(RECEIVER);
        let (ground, running, seed) = self.world.ground(RECEIVER, starts, &own);
        let controller = socket::controller_config(DEFAULT_TCP, AIR_LOSS).expect("a protocol");
        let limits = Limits { connections: 16, connection_bytes: Some(self.memory / 2), peer_bytes: self.memory };
        let probed = Probed::new();
        let opened = socket::over(ground, controller, Rate::mbps(100_000), limits, Some(probed.clone()));
        let (endpoint, transport) = opened.expect("an endpoint");
        let tls = own.server_of(FILES, Accepted::These(Vec::new())).expect("TLS");
        let (server, tunnel) = transport.server(tls, address(RECEIVER));
        transport.forget(&tunnel);
        let mut server = Arc::unwrap_or_clone(server);
        quic::seed_tokens(&mut server, &seed);
        endpoint.set_server_config(Some(server));
        let store = Store::open(Settings::new(&self.folder)).expect("a folder");
        let ends = (self.state.clone(), own);
        let (receiving, mut events) = Receiving::new(ends, transport, Some(store), None, probed, 16);
        running.tasks.spawn(Box::pin(receiving.clone().accept(endpoint.clone())));
        running.tasks.spawn(Box::pin(receiving.clone().sweep()));
        let (world, folder) = (self.world.clone(), self.folder.clone());
        running.tasks.spawn(Box::pin(async move {
            while let Some(event) = events.recv().await {
                world.tell(match event {
                    Event::Paired(from, _) => format!("the receiver is paired with {from}"),
                    Event::Disconnected(from) => format!("the receiver's connection with {from} has ended"),
                    Event::Ended(ended) => {
                        let path = ended.path.unwrap_or_else(|| "filler".into());
                        let name = path.strip_prefix(&folder).unwrap_or(&path).display();
                        format!("the receiver: {name}: {:?}, {} bytes came", ended.verdict, ended.bytes)
                    }
                });
            }
        }));
        *self.running() = Some((running, receiving, endpoint));
    }
    /// Kills it.
    pub fn kill(&self) {
        self.world.tell("the receiver's program ends".to_string());
        drop(self.running().take());
    }
    /// Stops it as a signal does.
    pub async fn stop(&self) {
        let Some((receiving, endpoint)) =
            self.running().as_ref().map(|(_, receiving, endpoint)| (receiving.clone(), endpoint.clone()))
        else {
            return;
        };
        receiving.stop();
        socket::close(&endpoint, Close::Stopped).await;
        self.kill();
    }
    /// Connections that it counts, those of QUIC, and tunnels, if it runs.
    pub fn open(&self) -> Option<[usize; 3]> {
        let running = self.running();
        let (program, receiving, endpoint) = running.as_ref()?;
        let counted = receiving.counters.connections.load(Ordering::Relaxed) as usize;
        Some([counted, endpoint.open_connections(), program.tunnels.count()])
    }
    /// Calls that it counts as refused, since it started.
    pub fn refused(&self) -> u64 {
        self.running().as_ref().map_or(0, |(_, receiving, _)| receiving.counters.refused.load(Ordering::Relaxed))
    }
    /// Parts: their names and lengths.
    pub fn parts(&self) -> Vec<(PathBuf, u64)> {
        let Ok(entries) = fs::read_dir(self.folder.join(PARTS)) else { return Vec::new() };
        entries.flatten().map(|entry| (entry.path(), entry.metadata().map_or(0, |facts| facts.len()))).collect()
    }
    /// Bytes in parts of a sender.
    pub fn parts_of(&self, sender: u8) -> u64 {
        let digits = identity(sender).public.digits();
        let is_of =
            |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&digits[..16]));
        self.parts().iter().filter(|(path, _)| is_of(path)).map(|(_, length)| length).sum()
    }
    /// A bit of each part that is not empty is flipped; whether there is one.
    pub fn damage(&self) -> bool {
        let mut any = false;
        for (path, _) in self.parts().into_iter().filter(|(_, length)| *length > 0) {
            let mut bytes = fs::read(&path).expect("a part");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&path, bytes).expect("a part");
            any = true;
        }
        any
    }
}

/// How a run of a sender's program has ended.
pub struct Outcome {
    /// What it would tell its user.
    pub result: Result<(), String>,
    /// What it does not report as sent.
    pub left: Content,
    /// Its counters.
    pub counters: Arc<Counters>,
    /// Bytes that the receiver had when it was offered something for the last time, and before.
    pub due: u64,
    /// When it was connected, each time, ns.
    pub connected: Vec<u64>,
}

/// A sender's machine.
pub struct Sender {
    world: World,
    /// What it sends.
    pub plan: Plan,
    receiver: Arc<Receiver>,
    folder: PathBuf,
    running: Arc<Mutex<Option<Running>>>,
    starts: AtomicU64,
    /// When its user starts it anew after it was killed, ns.
    pub again: AtomicU64,
}

impl Sender {
    /// A machine with the files of this plan in a folder.
    pub fn new(world: World, plan: Plan, receiver: Arc<Receiver>, folder: &Path) -> Sender {
        let folder = folder.join("from");
        if let Sends::Files(files) = &plan.sends {
            for file in files {
                let path = folder.join(&file.name);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, file.bytes()).expect("a file");
            }
        }
        let (running, starts, again) = Default::default();
        Sender { world, plan, receiver, folder, running, starts, again }
    }
    /// Kills the program; whether it ran.
    pub fn kill(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.is_some()
    }
    /// Starts the program, as `send` does. Its outcome does not come if it is killed. The receiver has so many bytes of what it sends.
    pub fn start(&self, held: u64) -> oneshot::Receiver<Outcome> {
        let (number, starts) = (self.plan.number, self.starts.fetch_add(1, Ordering::Relaxed));
        self.world.tell(format!("sender {number} starts"));
        if starts > 0 {
            self.world.network.rebind(number, (PORTS + starts) as u16);
        }
        let own = identity(number);
        let (ground, running, _) = self.world.ground(number, starts, &own);
        let controller = socket::controller_config(self.plan.protocol, AIR_LOSS).expect("a protocol");
        let opened = socket::over(ground, controller, Rate::mbps(1000), sending::limits(), None);
        let (endpoint, transport) = opened.expect("an endpoint");
        let mut content = match self.plan.sends {
            Sends::Files(_) => {
                let folder = self.folder.join(format!("s{number}"));
                Content::Items(tree::list(&[folder]).expect("files").0)
            }
            Sends::Filler(flows, bytes, time) => Content::Filler(flows, bytes, time),
        };
        let counters = Arc::new(Counters::default());
        let mut program = Calls {
            endpoint: endpoint.clone(),
            transport,
            own,
            receiver: identity(RECEIVER).public,
            machine: self.receiver.clone(),
            counters: counters.clone(),
            world: self.world.clone(),
            number,
            due: held,
            connected: Vec::new(),
        };
        let (tell, told) = oneshot::channel();
        let held_by = self.running.clone();
        running.tasks.spawn(Box::pin(async move {
            let result = again::complete(&mut program, ("receiver", PATIENCE), &counters, &mut content).await;
            socket::close(&endpoint, if result.is_ok() { Close::Done } else { Close::Stopped }).await;
            let Calls { due, connected, .. } = program;
            let _ = tell.send(Outcome { result, left: content, counters, due, connected });
            // The program ends.
            drop(held_by.lock().unwrap_or_else(PoisonError::into_inner).take());
        }));
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        told
    }
}

/// A program that sends.
struct Calls {
    endpoint: Endpoint,
    transport: Transport,
    own: Identity,
    receiver: PublicKey,
    machine: Arc<Receiver>,
    counters: Arc<Counters>,
    world: World,
    number: u8,
    due: u64,
    connected: Vec<u64>,
}

impl Program for Calls {
    async fn connect(&mut self) -> Result<Sending, Failure> {
        let ends = (&self.endpoint, &self.transport, &self.own);
        let connected =
            Sending::connect(ends, (address(RECEIVER), "receiver"), self.receiver, self.counters.clone()).await;
        if connected.is_ok() {
            self.connected.push(clock::elapsed());
        }
        let how = if connected.is_ok() { "is connected" } else { "is not connected" };
        self.world.tell(format!("sender {} {how}", self.number));
        connected
    }
    async fn pair(&mut self, _: &Sending) -> Result<(), Failure> {
        Ok(())
    }
    fn look(&mut self, _: &Sending) -> Result<(), String> {
        Ok(())
    }
    fn ended(&mut self, _: &Sending) {}
    fn goes_on(&mut self, why: &str) {
        self.world.tell(format!("sender {}: {why}; trying again", self.number));
        let held = self.counters.held.load(Ordering::Relaxed);
        self.due = held + self.machine.parts_of(self.number);
    }
}
