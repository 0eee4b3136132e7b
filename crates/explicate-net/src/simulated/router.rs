//! Routers and emulated links in simulated time: the forwarder of `explicated router` and `explicated link` with its ports,
//! controllers, pace and counters, between simulated interfaces, drawn from one seed.
//!
//! Simulated are the clock, rings of frames, the moments at which the thread runs, what the system does with frames that are
//! sent, and restarts. `frames` draws the frames, `judge` says what breaks a rule.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::{self, Display};
use std::io;
use std::rc::Rc;

use explicate_build::ports::port;
use explicate_core::registry::{PROTOCOLS, QDISCS};
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::Link;

use super::scene::{Draws, SECOND};
use super::{Options, clock, faults};
use crate::clock::Clock;
use crate::commands::forward::{Meter, report};
use crate::commands::words;
use crate::forward::output::Output;
use crate::forward::{Forwarder, Frames, Interface, Mode, Next};
use crate::sys;

mod frames;
mod judge;
#[cfg(test)]
mod tests;

use frames::Coming;
use judge::Judge;
pub use judge::{Broken, Event, Rule};

/// A kind of frames or of events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Explicit data.
    Explicit,
    /// Acknowledgements of explicit flows.
    Answers,
    /// UDP and TCP of others.
    Plain,
    /// Explicit data behind a VLAN's tag.
    Tagged,
    /// Fragments.
    Fragments,
    /// To the port of explicit flows, with malformed headers.
    Malformed,
    /// Anything: bytes of explicit data that were changed or left out.
    Hostile,
    /// Several packets that an offload has merged.
    Merged,
    /// Frames shorter than an Ethernet header.
    Cut,
    /// Explicit data whose TTL expires.
    Expired,
    /// Frames that are not IPv4.
    Strange,
    /// To hosts at the interface from which they come.
    Local,
    /// To an unknown hardware address.
    Unknown,
    /// From more hardware addresses than a router learns.
    Flood,
    /// Frames that come together.
    Burst,
    /// The thread does not run for a while.
    Stall,
    /// The system refuses frames for a while.
    Refuses,
    /// The system takes few frames of each call for a while.
    TakesFew,
    /// An interface disappears, and the program ends and starts anew.
    Gone,
    /// The program is stopped and starts anew.
    Restart,
    /// The wall clock is set.
    Wall,
    /// There is memory for few frames.
    Small,
}

/// All of them.
pub const KINDS: [Kind; 22] = [
    Kind::Explicit,
    Kind::Answers,
    Kind::Plain,
    Kind::Tagged,
    Kind::Fragments,
    Kind::Malformed,
    Kind::Hostile,
    Kind::Merged,
    Kind::Cut,
    Kind::Expired,
    Kind::Strange,
    Kind::Local,
    Kind::Unknown,
    Kind::Flood,
    Kind::Burst,
    Kind::Stall,
    Kind::Refuses,
    Kind::TakesFew,
    Kind::Gone,
    Kind::Restart,
    Kind::Wall,
    Kind::Small,
];

impl Kind {
    /// Whether a flow of such frames may be added to a scene.
    fn is_of_frames(self) -> bool {
        self >= Kind::Tagged && self <= Kind::Unknown
    }
}

/// An event that has a beginning and an end, ns after the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Happens {
    /// Its kind.
    pub kind: Kind,
    /// The interface that it is about, if it is about one.
    pub interface: usize,
    /// When it begins.
    pub from: u64,
    /// When it ends.
    pub until: u64,
}

impl Display for Happens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interface, until, lasts) = (self.interface, seconds(self.until), seconds(self.until - self.from));
        match self.kind {
            Kind::Stall => write!(f, "the thread does not run until {until}"),
            Kind::Refuses => write!(f, "the system refuses most frames at eth{interface} until {until}"),
            Kind::TakesFew => {
                write!(f, "the system takes a part of the frames of each call at eth{interface} until {until}")
            }
            Kind::Gone => {
                write!(f, "eth{interface} disappears; the program sees it within 1 s, and runs again at {until}")
            }
            Kind::Restart => write!(f, "the program ends, and runs again at {until}"),
            Kind::Wall if interface == 0 => write!(f, "the wall clock is set forward by {lasts}"),
            Kind::Wall => write!(f, "the wall clock is set back by {lasts}"),
            kind => write!(f, "{kind:?}"),
        }
    }
}

/// A time in a story.
fn seconds(ns: u64) -> String {
    format!("{:.6} s", ns as f64 / 1e9)
}

/// A scene.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its seed.
    pub seed: u64,
    /// A router; otherwise a link between two interfaces.
    pub router: bool,
    /// The VLAN at the second interface of a link.
    pub vlan: Option<u16>,
    /// The protocol whose controllers a router has.
    pub controller: Option<&'static str>,
    /// The properties of each port.
    pub properties: Vec<String>,
    /// The longest interval between turns under load.
    pub apart: Time,
    /// Frames that the ring of an interface holds.
    pub slots: usize,
    /// Frames in memory.
    pub pool: usize,
    /// How long frames come, ns.
    pub span: u64,
    /// What happens.
    pub happens: Vec<Happens>,
    /// Kinds of frames and events that are drawn.
    pub kinds: BTreeSet<Kind>,
}

/// Frames come from then on, ns after the start.
const BEGIN: u64 = 5_000_000;
/// Mean length of a frame, bytes, to find how long frames come.
const MEAN: f64 = 800.0;

impl Scene {
    /// The scene of a seed.
    pub fn of(seed: u64) -> Scene {
        let mut draws = Draws::of(seed, "router");
        let router = draws.is(0.7);
        let ports = if router { 2 + draws.below(2) } else { 2 };
        let vlan = (!router && draws.is(0.5)).then_some(5);
        let controllers: Vec<&'static str> =
            PROTOCOLS.iter().filter(|protocol| protocol.has_router()).map(|protocol| protocol.name()).collect();
        let controller = router.then(|| controllers[draws.below(controllers.len())]);
        // A flow keeps its order only in disciplines that do not divide it.
        let queues: Vec<&'static str> =
            QDISCS.iter().filter(|queue| !queue.l4s_apart()).map(|queue| queue.name()).collect();
        let rate = draws.scale(500e3, 20e6);
        let properties = (0..ports).map(|_| {
            let mut text = format!("rate = \"{:.0}kbit/s\"", draws.between(0.7, 1.4) * rate / 1e3);
            match draws.below(3) {
                0 => text += &format!(", queue = {{ kind = \"{}\", limit = \"20kB\" }}", QDISCS[0].name()),
                1 => text += &format!(", queue = {{ kind = \"{}\" }}", queues[draws.below(queues.len())]),
                _ => {}
            }
            if router && draws.is(0.3) {
                text += ", share_by_flows = false";
            }
            if !router {
                text += &format!(", delay = \"{}ms\"", draws.below(40));
            }
            text
        });
        let properties: Vec<String> = properties.collect();
        let kinds: BTreeSet<Kind> = KINDS
            .into_iter()
            .filter(|kind| match kind {
                Kind::Explicit | Kind::Answers | Kind::Plain => true,
                Kind::Flood => router && draws.is(0.15),
                Kind::Local | Kind::Unknown | Kind::Expired => router && draws.is(0.4),
                Kind::Small | Kind::Gone | Kind::Restart => draws.is(0.2),
                _ => draws.is(0.3),
            })
            .collect();
        let load = draws.scale(0.2, 1.5);
        let span = (frames::FRAMES as f64 * MEAN * 8.0 / (ports as f64 * rate * load) * SECOND as f64) as u64;
        let mut scene = Scene {
            seed,
            router,
            vlan,
            controller,
            properties,
            apart: Time::micros([0, 100, 500][draws.below(3)]),
            slots: if kinds.contains(&Kind::Flood) { 4096 } else { 32 << draws.below(8) },
            pool: if kinds.contains(&Kind::Small) { 6 + draws.below(20) } else { 1 << 16 },
            span,
            happens: Vec::new(),
            kinds,
        };
        for kind in scene.kinds.clone() {
            let (interface, from) = (draws.below(ports), scene.at(draws.between(0.1, 0.7)));
            let lasts = match kind {
                Kind::Stall => draws.scale(0.02, 3.0),
                Kind::Refuses | Kind::TakesFew => draws.scale(0.1, 0.5) * span as f64 / SECOND as f64,
                Kind::Gone => 1.5,
                Kind::Restart => draws.scale(0.01, 0.5),
                Kind::Wall => draws.scale(0.001, 1000.0),
                _ => continue,
            };
            scene.happens.push(Happens { kind, interface, from, until: from + (lasts * SECOND as f64) as u64 });
        }
        scene
    }
    /// The time after this share of the time in which frames come.
    fn at(&self, share: f64) -> u64 {
        BEGIN + (share * self.span as f64) as u64
    }
    /// What of a kind, at an interface if it is about one, happens at a time.
    fn during(&self, kind: Kind, interface: Option<usize>, at: u64) -> Option<&Happens> {
        let here = |h: &&Happens| h.kind == kind && interface.is_none_or(|interface| h.interface == interface);
        self.happens.iter().filter(here).find(|h| (h.from..h.until).contains(&at))
    }
}

impl Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.router { "a router" } else { "an emulated link" };
        write!(f, "seed {}: {what}", self.seed)?;
        self.controller.map_or(Ok(()), |name| write!(f, " with the controllers of {name}"))?;
        self.vlan.map_or(Ok(()), |vlan| write!(f, " that adds the tag of VLAN {vlan} to what comes at eth0"))?;
        writeln!(f, ", memory for {} frames, rings of {}", self.pool, self.slots)?;
        for (number, properties) in self.properties.iter().enumerate() {
            writeln!(f, "eth{number}: {properties}")?;
        }
        write!(
            f,
            "frames come until {}; its turns are up to {} ms apart",
            seconds(self.at(1.0)),
            self.apart.to_millis()
        )
    }
}

/// What became of a scene.
pub struct Report {
    /// Rules that were broken.
    pub broken: Vec<Broken>,
    /// The frames that left.
    pub events: Vec<Event>,
    /// Kinds of frames and events that occurred.
    pub seen: BTreeSet<Kind>,
    /// Frames that came, that the ports dropped, that the system refused, and that rings had no room for.
    pub counts: [u64; 4],
}

impl Report {
    /// What happened in its scene in order of time, with the frames that left if `frames`.
    pub fn story(&self, scene: &Scene, frames: bool) -> Vec<String> {
        let happens = scene.happens.iter().map(|happens| (happens.from, happens.to_string()));
        let left = self.events.iter().filter(|_| frames).map(|event| (event.at, event.to_string()));
        let mut all: Vec<(u64, String)> = happens.chain(left).collect();
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(at, what)| format!("{:>14}  {what}", seconds(at))).collect()
    }
}

/// The ring of an interface.
#[derive(Default)]
struct Ring {
    coming: VecDeque<Coming>,
    /// With the wall clock's time of arrival, ns.
    held: VecDeque<(u64, Coming)>,
    missed: u64,
}

/// What surrounds a forwarder.
struct World {
    scene: Scene,
    rings: Vec<Ring>,
    draws: Draws,
    /// Frames that were received since the last look: interface, when they came by the wall clock, ns after the start, frame.
    received: Vec<(usize, u64, Coming)>,
    /// Frames that the forwarder sent since then: when, interface, bytes, whether the system took it.
    left: Vec<(u64, usize, Vec<u8>, bool)>,
    /// Frames that rings had no room for since the program's start.
    missed: u64,
    seen: BTreeSet<Kind>,
}

impl World {
    /// Moves what has arrived into rings.
    fn arrive(&mut self, number: usize) {
        let now = clock::elapsed();
        let ring = &mut self.rings[number];
        while let Some(coming) = ring.coming.pop_front_if(|coming| coming.at <= now) {
            if self.scene.during(Kind::Gone, Some(number), coming.at).is_some() {
                continue;
            }
            if ring.held.len() >= self.scene.slots {
                ring.missed += 1;
                self.missed += 1;
                continue;
            }
            let stamp = sys::monotonic() - now + coming.at + sys::wall_ahead();
            ring.held.push_back((stamp, coming));
        }
    }
    /// When a frame came, by the wall clock.
    fn came(stamp: u64) -> u64 {
        let now = clock::elapsed();
        stamp.saturating_sub(sys::wall_ahead()).saturating_sub(sys::monotonic() - now).min(now)
    }
    /// When the first frame comes that waits in a ring, and when the next one comes.
    fn next(&mut self) -> (Option<u64>, Option<u64>) {
        (0..self.rings.len()).for_each(|number| self.arrive(number));
        let held = self.rings.iter().filter_map(|ring| Some(World::came(ring.held.front()?.0))).min();
        (held, self.rings.iter().filter_map(|ring| Some(ring.coming.front()?.at)).min())
    }
    /// No program has sockets until `until`.
    fn close(&mut self, until: u64) {
        self.missed = 0;
        for ring in &mut self.rings {
            ring.held.clear();
            ring.coming.retain(|coming| coming.at >= until);
            ring.missed = 0;
        }
    }
}

/// A simulated interface.
struct Wire {
    world: Rc<RefCell<World>>,
    number: usize,
}

/// What a frame costs the thread, ns.
const COST: u64 = 500;

impl Frames for Wire {
    fn has_frame(&self) -> bool {
        let mut world = self.world.borrow_mut();
        world.arrive(self.number);
        !world.rings[self.number].held.is_empty()
    }
    fn receive(&mut self, to: &mut Vec<u8>) -> Option<u64> {
        to.clear();
        let mut world = self.world.borrow_mut();
        let (stamp, coming) = world.rings[self.number].held.pop_front()?;
        to.extend_from_slice(&coming.bytes);
        world.received.push((self.number, World::came(stamp), coming));
        clock::move_to(clock::elapsed() + COST);
        Some(stamp)
    }
    fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut world = self.world.borrow_mut();
        let (now, number) = (clock::elapsed(), self.number);
        let during = |world: &World, kind| world.scene.during(kind, Some(number), now).is_some();
        let mut frames: Vec<Vec<u8>> = frames.take(sys::BATCH).map(<[u8]>::to_vec).collect();
        let error = if during(&world, Kind::Gone) {
            Some((Kind::Gone, io::ErrorKind::NetworkDown))
        } else if during(&world, Kind::Refuses) && world.draws.is(0.7) {
            Some((Kind::Refuses, io::ErrorKind::WouldBlock))
        } else {
            None
        };
        if let Some((kind, error)) = error {
            world.seen.insert(kind);
            let first = frames.swap_remove(0);
            world.left.push((now, number, first, false));
            return Err(error.into());
        }
        if frames.len() > 1 && during(&world, Kind::TakesFew) {
            let few = 1 + world.draws.below(frames.len() - 1);
            frames.truncate(few);
            world.seen.insert(Kind::TakesFew);
        }
        let taken = frames.len();
        world.left.extend(frames.into_iter().map(|frame| (now, number, frame, true)));
        clock::move_to(now + COST);
        Ok(taken)
    }
    fn drops(&self) -> u64 {
        std::mem::take(&mut self.world.borrow_mut().rings[self.number].missed)
    }
}

/// A program while it runs.
struct Program {
    forwarder: Forwarder<Wire>,
    links: Vec<Link>,
    clock: Clock,
    /// Its start, ns after that of the scene.
    started: u64,
}

/// The link of a port.
fn link(scene: &Scene, number: usize) -> Link {
    let (name, properties) = (format!("eth{number}"), &scene.properties[number]);
    words::link(&name, properties, scene.controller)
        .unwrap_or_else(|error| panic!("seed {}: {:?}, {properties}: {error}", scene.seed, scene.controller))
}

impl Program {
    fn start(world: &Rc<RefCell<World>>) -> Program {
        let scene = world.borrow().scene.clone();
        let links: Vec<Link> = (0..scene.properties.len()).map(|number| link(&scene, number)).collect();
        let interfaces = links.iter().enumerate().map(|(number, link)| {
            let output = Output::new(port(link, number as u32, scene.seed, u64::MAX, None), link.delay);
            Interface::over(&link.name, Wire { world: Rc::clone(world), number }, output)
        });
        let mode = if scene.router { Mode::Router } else { Mode::Link };
        let clock = Clock::start();
        let mut forwarder = Forwarder::new(interfaces.collect(), mode, clock)
            .unwrap_or_else(|error| panic!("a forwarder over simulated interfaces: {error}"));
        forwarder.hold(scene.pool);
        forwarder.keep_apart(scene.apart);
        if let Some(vlan) = scene.vlan {
            forwarder.tag(vlan);
        }
        Program { forwarder, links, clock, started: clock::elapsed() }
    }
    /// All counters, as reports and metrics show them.
    fn report(&mut self) -> serde_json::Value {
        self.forwarder.count_missed();
        report(&mut self.forwarder, &self.links, self.clock.now(), &mut Meter::default())
    }
}

/// Interval between looks at the interfaces and the counters, ns.
const POLL: u64 = SECOND;
/// No scene takes more turns.
const MOST_TURNS: u64 = 300_000;

/// Runs a scene.
pub fn run(scene: &Scene, options: Options) -> Report {
    let _clock = clock::ByHand::begin();
    faults::put_back(options.fault);
    let world = World {
        scene: scene.clone(),
        rings: frames::draw(scene).into_iter().map(|coming| Ring { coming, ..Ring::default() }).collect(),
        draws: Draws::of(scene.seed, "world"),
        received: Vec::new(),
        left: Vec::new(),
        missed: 0,
        seen: BTreeSet::new(),
    };
    let world = Rc::new(RefCell::new(world));
    let rates: Vec<(Rate, Time)> =
        (0..scene.properties.len()).map(|n| link(scene, n)).map(|l| (l.rate, l.delay)).collect();
    let mut judge = Judge::new(scene, rates);
    let mut program = Program::start(&world);
    let mut walls: VecDeque<Happens> = scene.happens.iter().filter(|h| h.kind == Kind::Wall).copied().collect();
    let mut restarts: VecDeque<Happens> =
        scene.happens.iter().filter(|h| matches!(h.kind, Kind::Restart | Kind::Gone)).copied().collect();
    restarts.make_contiguous().sort_by_key(|h| h.from);
    let mut polled = 0;
    for turn in 0.. {
        let now = clock::elapsed();
        if let Some(wall) = walls.pop_front_if(|wall| wall.from <= now) {
            let by = wall.until - wall.from;
            let ahead = sys::wall_ahead();
            clock::set_wall(if wall.interface == 0 { ahead + by } else { ahead.saturating_sub(by) });
            world.borrow_mut().seen.insert(Kind::Wall);
            judge.wall_was_set();
        }
        let begins = program.clock.now();
        let next = program.forwarder.go(begins, begins + Time(POLL));
        judge.turn(&mut world.borrow_mut(), &mut program.forwarder, program.started, begins);
        let over = turn > MOST_TURNS;
        let done = {
            let idle = world.borrow_mut().next() == (None, None);
            idle && program.forwarder.audit().1 == 0 && restarts.iter().chain(&walls).all(|h| h.from <= now)
        };
        let poll = now >= polled + POLL;
        // The program ends when it is stopped, or when it looks and finds that an interface has disappeared.
        let ends = restarts.pop_front_if(|h| h.from <= now && (h.kind == Kind::Restart || poll));
        if poll || over || done || ends.is_some() {
            polled = now;
            let told = program.report();
            judge.counters(&mut world.borrow_mut(), &told, program.forwarder.audit());
        }
        if over {
            judge.endless(scene);
        }
        if over || done || !judge.broken.is_empty() {
            break;
        }
        if let Some(ends) = ends {
            drop(program);
            let until = ends.until.max(now);
            world.borrow_mut().close(until);
            world.borrow_mut().seen.insert(ends.kind);
            clock::move_to(until);
            judge.starts_anew();
            program = Program::start(&world);
            continue;
        }
        let (held, comes) = world.borrow_mut().next();
        let wake = match next {
            Next::At(time) => program.started + time.0,
            Next::Frame(_) if held.is_some() => now,
            Next::Frame(time) => (program.started + time.0).min(comes.unwrap_or(u64::MAX)),
        };
        let mut world = world.borrow_mut();
        let late = world.draws.scale(500.0, if scene.seed.is_multiple_of(4) { 5e6 } else { 1e5 }) as u64;
        let wake = wake.max(clock::elapsed()) + late;
        let stalled = scene.during(Kind::Stall, None, wake).map(|stall| stall.until);
        if stalled.is_some() {
            world.seen.insert(Kind::Stall);
        }
        clock::move_to(stalled.unwrap_or(wake));
    }
    faults::put_back(None);
    let mut world = world.borrow_mut();
    judge.report(std::mem::take(&mut world.seen))
}
