//! A scene of transfers: senders, a receiver, a path and faults, all drawn from one seed.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use explicate_core::presets::{DEFAULT_TCP, FEEDBACKS};
use explicate_core::rng::Rng;

use super::super::network::Path;
use super::super::scene::{Draws, Kind as OfPath, path};

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// One of the path.
    Path(OfPath),
    /// A sender is killed, and started anew by its user.
    SenderKilled,
    /// The receiver is killed and starts anew.
    ReceiverKilled,
    /// The receiver is stopped, which it tells its senders, and starts anew.
    ReceiverStopped,
    /// The receiver is killed, and a part is damaged before it starts anew.
    Damaged,
    /// The receiver is killed for good.
    Gone,
}

/// All kinds.
pub const KINDS: [Kind; 13] = [
    Kind::Path(OfPath::Outage),
    Kind::Path(OfPath::LongOutage),
    Kind::Path(OfPath::Loss),
    Kind::Path(OfPath::Reordering),
    Kind::Path(OfPath::Copies),
    Kind::Path(OfPath::Narrow),
    Kind::Path(OfPath::Short),
    Kind::Path(OfPath::Rebinding),
    Kind::SenderKilled,
    Kind::ReceiverKilled,
    Kind::ReceiverStopped,
    Kind::Damaged,
    Kind::Gone,
];

/// A fault that happens at a time, ns. Those of paths and senders are the first sender's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Happens {
    /// The path is down from then to then.
    Down(u64, u64),
    /// The NAT takes another port.
    Rebinds(u64),
    /// A host on the path sends a copy of each of the sender's datagrams from an address of its own, before it, from then on; whether it
    /// passes what comes there back to the sender. No seed draws it.
    Copied(u64, bool),
    /// The sender is killed, and started anew then.
    Sender(u64, u64),
    /// The receiver ends in this way, and starts anew then, or not at all.
    Receiver(Kind, u64, Option<u64>),
}

/// A file that is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its name at the receiver.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// The seed of its content: files with the same one are the same.
    pub content: u64,
}

impl Named {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut rng = Rng::stream(self.content, "content");
        let mut bytes: Vec<u8> = (0..self.size.div_ceil(8)).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
        bytes.truncate(self.size as usize);
        bytes
    }
}

/// What a sender sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Sends {
    /// Files, in a folder that is named after the sender.
    Files(Vec<Named>),
    /// Filler data in so many streams: so many bytes in each, or for this time.
    Filler(u32, Option<u64>, Duration),
}

/// A sender.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Number of its machine; the receiver's is 1.
    pub number: u8,
    /// When it begins, ns.
    pub at: u64,
    /// What it sends.
    pub sends: Sends,
    /// Its protocol.
    pub protocol: &'static str,
}

impl Plan {
    /// Bytes of all that it sends, as far as that is known before.
    pub fn bytes(&self) -> u64 {
        match &self.sends {
            Sends::Files(files) => files.iter().map(|file| file.size).sum(),
            Sends::Filler(flows, bytes, _) => *flows as u64 * bytes.unwrap_or(0),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sender {} ({}) begins at {:.3} s: ", self.number, self.protocol, self.at as f64 / 1e9)?;
        match &self.sends {
            Sends::Files(files) => {
                let one = |file: &Named| format!("{} of {} bytes", file.name, file.size);
                f.write_str(&files.iter().map(one).collect::<Vec<_>>().join(", "))
            }
            Sends::Filler(flows, Some(bytes), _) => write!(f, "{flows} streams of {bytes} bytes of filler"),
            Sends::Filler(flows, None, time) => write!(f, "{flows} streams of filler for {:.3} s", time.as_secs_f64()),
        }
    }
}

/// A scene.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its seed.
    pub seed: u64,
    /// The path of each sender.
    pub path: Path,
    /// The senders.
    pub plans: Vec<Plan>,
    /// What happens.
    pub happens: Vec<Happens>,
    /// Kinds of faults of the path, which last.
    pub kinds: BTreeSet<OfPath>,
    /// The receiver's memory for a sender, bytes.
    pub memory: u32,
}

/// The first file is that long, bytes: most of it is in a part while it arrives.
const LARGE: (f64, f64) = (350e3, 1.2e6);
/// And the others at most.
const SMALL: f64 = 150e3;

impl Scene {
    /// The scene of a seed.
    pub fn of(seed: u64) -> Scene {
        let mut draws = Draws::of(seed, "transfers");
        let mut kinds = BTreeSet::new();
        let rate = draws.scale(1.5e5, 2e6);
        let path = path(&mut draws, rate, &mut kinds);
        let plans = vec![plan(&mut draws, 0, seed)];
        let memory = draws.scale(262_144.0, 16_777_216.0) as u32;
        let mut scene = Scene { seed, path, plans, happens: Vec::new(), kinds, memory };
        if draws.is(0.4) {
            scene.plans.push(plan(&mut draws, 2, seed));
        }
        scene.draw_happens(&mut draws);
        scene
    }

    /// What the first sender's transfer takes, without faults and round trips, ns.
    pub fn nominal(&self) -> u64 {
        (self.plans[0].bytes() as f64 / self.path.rate * 1e9) as u64
    }
    /// When the faults that happen are over, ns.
    pub fn over(&self) -> u64 {
        let over = |happens: &Happens| match *happens {
            Happens::Down(_, to) | Happens::Sender(_, to) | Happens::Receiver(_, _, Some(to)) => to,
            Happens::Rebinds(at) | Happens::Copied(at, _) | Happens::Receiver(_, at, None) => at,
        };
        self.happens.iter().map(over).max().unwrap_or(0)
    }

    /// Its path, as a story begins.
    pub fn path_line(&self) -> String {
        let Path { rate, delay, queue, loss, late, copies, mtu, .. } = self.path;
        format!(
            "path: {:.0} kB/s, {:.1} ms each way, a queue of {} kB, packets of at most {mtu} bytes; of 1000 packets {:.1} are lost, {:.1} \
             come late, {:.1} come twice",
            rate / 1e3,
            delay as f64 / 1e6,
            queue / 1000,
            1e3 * loss,
            1e3 * late,
            1e3 * copies
        )
    }

    /// Each kind of what happens has its turn.
    fn draw_happens(&mut self, draws: &mut Draws) {
        let trips = 4.0 * self.path.delay as f64 / 1e9;
        let at = draws.seconds(0.02, trips + self.nominal() as f64 / 1e9);
        // While a part has its first block, and not its last.
        let later = draws.seconds(0.0, 0.2) + 4 * self.path.delay + self.nominal() * 7 / 10;
        let back = |draws: &mut Draws, from: u64| from + draws.seconds(0.1, 8.0);
        let happens = match self.seed % 11 {
            0 => Happens::Down(at, at + draws.seconds(0.5, 40.0)),
            1 => Happens::Down(at, at + draws.seconds(70.0, 100.0)),
            2 => Happens::Rebinds(at),
            3 | 4 => Happens::Sender(at, back(draws, at)),
            5 => Happens::Receiver(Kind::ReceiverKilled, at, Some(back(draws, at))),
            6 => Happens::Receiver(Kind::ReceiverStopped, at, Some(back(draws, at))),
            7 | 8 => Happens::Receiver(Kind::Damaged, later, Some(back(draws, later))),
            9 => Happens::Receiver(Kind::Gone, at, None),
            _ => return,
        };
        self.happens.push(happens);
    }
}

fn plan(draws: &mut Draws, number: u8, seed: u64) -> Plan {
    let protocol = [DEFAULT_TCP, FEEDBACKS[draws.below(FEEDBACKS.len())]][draws.below(2)];
    let at = if number == 0 { 0 } else { draws.seconds(0.0, 2.0) };
    if number != 0 && draws.is(0.5) {
        let bytes = draws.is(0.5).then(|| draws.scale(1.0, SMALL) as u64);
        let time = Duration::from_nanos(draws.seconds(0.5, 3.0));
        return Plan { number, at, sends: Sends::Filler(1 + draws.below(3) as u32, bytes, time), protocol };
    }
    let mut files = Vec::new();
    for index in 0..1 + draws.below(5) as u64 {
        let size = match (number, index) {
            (0, 0) => draws.scale(LARGE.0, LARGE.1) as u64,
            _ if draws.is(0.2) => 0,
            _ => draws.scale(1.0, SMALL) as u64,
        };
        let folder = if draws.is(0.3) { "inner/" } else { "" };
        let name = format!("s{number}/{folder}f{index}");
        files.push(Named { name, size, content: seed << 16 | (number as u64) << 8 | index });
    }
    if draws.is(0.3) {
        // Of the same content as the first, and so of the same part.
        let name = format!("s{number}/twin");
        files.push(Named { name, ..files[0].clone() });
    }
    Plan { number, at, sends: Sends::Files(files), protocol }
}
