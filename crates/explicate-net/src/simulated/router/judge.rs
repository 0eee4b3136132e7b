//! The rules of a router: what it does with each frame.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use explicate_core::units::{Rate, Time};
use serde_json::Value;

use super::frames::{number, wrong};
use super::{Coming, Kind, Report, Scene, Wire, World};
use crate::forward::Forwarder;
use crate::forward::frame::{Anomaly, ETHERNET_LEN, Kind as Form, Parsed, parse};
use crate::sys::{OFFLOAD_LEN, put_tag, take_tag};

/// A rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// A frame leaves at most once at each interface to which it is forwarded, and none leaves that did not come.
    Once,
    /// Only what a router writes changes, and feedback only lowers requests.
    Bytes,
    /// Frames of a flow leave in the order in which they came.
    Order,
    /// What came has left, was dropped or waits, and the counters say so.
    Counters,
    /// In no interval leaves more than the line carries and a frame.
    Rate,
    /// No frame leaves before the line could have carried it, and none stays when it is due.
    Due,
    /// Memory holds what ports hold, within its limit.
    Memory,
    /// A scene ends.
    Ends,
    /// A seed repeats.
    Repeats,
}

/// A rule that was broken, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// How.
    pub how: String,
}

/// A frame that left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, ns after the start.
    pub at: u64,
    /// Through which interface.
    pub interface: usize,
    /// Its number.
    pub number: u64,
    /// Its length, bytes.
    pub length: usize,
}

impl Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {} leaves through eth{}, {} bytes", self.number, self.interface, self.length)
    }
}

/// A frame in a router.
struct Held {
    came: u64,
    flow: Option<u32>,
    bytes: Vec<u8>,
    parsed: Parsed,
    /// The interfaces through which it has yet to leave.
    to: BTreeSet<usize>,
}

/// What a line has sent.
#[derive(Clone, Copy)]
struct Sent {
    /// Bytes/s, and the delay of the link.
    rate: f64,
    delay: Time,
    /// IP bytes since the program's start.
    bytes: f64,
    /// The most that it was behind the line after any turn, bytes.
    behind: f64,
    /// The longest packet, bytes.
    longest: f64,
}

/// What a program should have counted.
#[derive(Clone, Copy, Default)]
struct Expected {
    received: u64,
    malformed: u64,
    expired: u64,
    cut: u64,
    sent: u64,
    refused: u64,
    missed: u64,
    /// Frames for ports.
    joined: u64,
}

/// Hardware addresses that a router learns.
const LEARNED: usize = 4096;

/// Judges a scene.
pub(super) struct Judge {
    scene: Scene,
    pub(super) broken: Vec<Broken>,
    events: Vec<Event>,
    held: BTreeMap<u64, Held>,
    learned: BTreeMap<[u8; 6], usize>,
    lines: Vec<Sent>,
    /// What was due by then, in the program's time, has left.
    ran: Time,
    /// The last frame of each flow at each interface.
    last: BTreeMap<(usize, u32), u64>,
    expected: Expected,
    seen: BTreeSet<Kind>,
    counts: [u64; 4],
    dropped: u64,
}

impl Judge {
    pub(super) fn new(scene: &Scene, rates: Vec<(Rate, Time)>) -> Judge {
        let line = |(rate, delay): (Rate, Time)| Sent {
            rate: rate.bytes_per_sec(),
            delay,
            bytes: 0.0,
            behind: 0.0,
            longest: 0.0,
        };
        Judge {
            scene: scene.clone(),
            broken: Vec::new(),
            events: Vec::new(),
            held: BTreeMap::new(),
            learned: BTreeMap::new(),
            lines: rates.into_iter().map(line).collect(),
            ran: Time::ZERO,
            last: BTreeMap::new(),
            expected: Expected::default(),
            seen: BTreeSet::new(),
            counts: [0; 4],
            dropped: 0,
        }
    }
    fn breaks(&mut self, rule: Rule, how: String) {
        self.broken.push(Broken { rule, how });
    }
    /// Memory for all frames: none is dropped for want of it, so what a router does with each is known.
    fn is_exact(&self) -> bool {
        !self.scene.kinds.contains(&Kind::Small)
    }

    /// A frame was received.
    fn received(&mut self, from: usize, came: u64, coming: Coming) {
        let mut bytes = coming.bytes;
        self.expected.received += 1;
        self.counts[0] += 1;
        if bytes.len() < OFFLOAD_LEN + ETHERNET_LEN {
            self.expected.cut += 1;
            self.seen.insert(Kind::Cut);
            return;
        }
        match self.scene.vlan {
            Some(vlan) if from == 0 => put_tag(&mut bytes, [0x8100, vlan]),
            Some(vlan) => take_tag(&mut bytes, vlan),
            None => {}
        }
        let parsed = parse(&bytes);
        let explicit = matches!(parsed.kind, Form::Explicit { .. });
        if parsed.anomaly == Some(Anomaly::Malformed) {
            self.expected.malformed += 1;
            self.seen.insert(Kind::Malformed);
            return;
        }
        if self.scene.router && explicit && parsed.packet.ttl <= 1 {
            self.expected.expired += 1;
            self.seen.insert(Kind::Expired);
            return;
        }
        let learned = self.targets(from, &bytes);
        // Where addresses may not have been learned for want of memory, a frame may leave everywhere.
        let to = if self.is_exact() { learned } else { (0..self.lines.len()).filter(|to| *to != from).collect() };
        self.expected.joined += to.len() as u64;
        let number = number(&bytes).unwrap_or(0);
        self.held.insert(number, Held { came, flow: coming.flow, bytes, parsed, to });
    }
    /// The interfaces through which a frame should leave.
    fn targets(&mut self, from: usize, bytes: &[u8]) -> BTreeSet<usize> {
        if !self.scene.router {
            return [from ^ 1].into();
        }
        let address = |at: usize| bytes[at..].first_chunk::<6>().copied().unwrap_or_default();
        let (to, own) = (address(OFFLOAD_LEN), address(OFFLOAD_LEN + 6));
        if own[0] & 1 == 0 && (self.learned.len() < LEARNED || self.learned.contains_key(&own)) {
            self.learned.insert(own, from);
        }
        if self.learned.len() == LEARNED {
            self.seen.insert(Kind::Flood);
        }
        let known = self.learned.get(&to).copied();
        if known == Some(from) {
            self.seen.insert(Kind::Local);
        } else if known.is_none() && to[0] & 1 == 0 {
            self.seen.insert(Kind::Unknown);
        }
        let all = match known {
            Some(target) => target..target + 1,
            None => 0..self.lines.len(),
        };
        all.filter(|to| *to != from).collect()
    }

    /// A frame left through an interface, or was refused there.
    fn left(&mut self, at: u64, to: usize, bytes: &[u8], taken: bool) {
        let number = number(bytes).unwrap_or(0);
        let hops = self.scene.router as u8;
        let Some(held) = self.held.get_mut(&number) else {
            return self.breaks(Rule::Once, format!("frame {number} leaves through {to} and did not come"));
        };
        if !held.to.remove(&to) {
            return self
                .breaks(Rule::Once, format!("frame {number} leaves through {to} again, or where it should not"));
        }
        let line = &mut self.lines[to];
        let length = held.parsed.packet.ip_len as f64;
        line.bytes += length;
        line.longest = line.longest.max(length);
        let earliest = held.came as f64 + 1e9 * length / line.rate + line.delay.0 as f64;
        let early = (at as f64) < earliest - 2.0;
        let flow = held.flow;
        let problem = wrong(&held.bytes, &held.parsed, bytes, hops);
        if early {
            self.breaks(
                Rule::Due,
                format!("frame {number} leaves through {to} at {at} ns, not before {earliest:.0} ns"),
            );
        }
        if let Some(how) = problem {
            self.breaks(Rule::Bytes, format!("frame {number}, through {to}: {how}"));
        }
        if let Some(flow) = flow {
            let last = self.last.insert((to, flow), number).unwrap_or(0);
            if last >= number {
                self.breaks(Rule::Order, format!("frame {number} of flow {flow} leaves through {to} behind {last}"));
            }
        }
        if taken {
            self.events.push(Event { at, interface: to, number, length: bytes.len() });
        }
    }

    /// A turn that began at `begins` is over.
    pub(super) fn turn(&mut self, world: &mut World, forwarder: &mut Forwarder<Wire>, started: u64, begins: Time) {
        for (from, came, coming) in world.received.drain(..) {
            self.received(from, came, coming);
        }
        for (at, to, bytes, taken) in std::mem::take(&mut world.left) {
            self.expected.sent += taken as u64;
            self.expected.refused += !taken as u64;
            self.counts[2] += !taken as u64;
            self.left(at, to, &bytes, taken);
        }
        let (held, accounted) = forwarder.audit();
        if held != accounted || held > self.scene.pool {
            self.breaks(
                Rule::Memory,
                format!("{held} frames are in memory, {accounted} in ports, of {}", self.scene.pool),
            );
        }
        // Frames that wait in rings came before the turn ended; they may still leave as of then.
        let unread = world.next().0.map_or(begins, |came| Time(came.saturating_sub(started)).min(begins));
        let now = Time(super::clock::elapsed() - started);
        let mut broken = Vec::new();
        for (number, line) in self.lines.iter_mut().enumerate() {
            let carried = |time: Time| line.rate * time.as_secs_f64() - line.bytes;
            let (carries, over) = (carried(begins), line.longest + 2.0);
            if carries < line.behind - over {
                broken.push((
                    Rule::Rate,
                    format!("eth{number} sends {:.0} bytes more than its line carries", line.behind - carries),
                ));
            }
            line.behind = line.behind.max(carried(unread));
            let output = &mut forwarder.interfaces[number].output;
            let late = std::mem::take(&mut output.late.most);
            if late.0 > 0 && now.since(late) < self.ran {
                let how = format!("eth{number} sends at {} ns a frame that was due {} ns before", now.0, late.0);
                broken.push((Rule::Due, how));
            }
            let due = output.due();
            if due <= begins {
                broken
                    .push((Rule::Due, format!("a frame of eth{number} was due at {} ns, now {} ns", due.0, begins.0)));
            }
        }
        self.ran = unread;
        broken.into_iter().for_each(|(rule, how)| self.breaks(rule, how));
    }

    /// The wall clock was set: what came before may seem to have come at any time, and leaves as if it had.
    pub(super) fn wall_was_set(&mut self) {
        self.lines.iter_mut().for_each(|line| line.behind = f64::NEG_INFINITY);
        self.ran = Time::ZERO;
    }

    /// Compares a program's counters with what came and left; `audit` is the forwarder's.
    pub(super) fn counters(&mut self, world: &mut World, told: &Value, (_, waiting): (usize, usize)) {
        self.expected.missed = world.missed;
        let number = |key: &str| told[key].as_u64().unwrap_or(u64::MAX);
        let ports = |key: &str| -> u64 {
            told["ports"].as_array().into_iter().flatten().filter_map(|port| port[key].as_u64()).sum()
        };
        let Expected { received, malformed, expired, cut, sent, refused, missed, joined } = self.expected;
        let mut pairs = vec![("received", number("received"), received), ("sent", number("sent"), sent)];
        pairs.extend([("refused", number("refused"), refused), ("missed", number("missed"), missed)]);
        let gone = ports("drops") + ports("lost") + number("sent") + number("refused");
        pairs.push(("arrived at ports", ports("arrived"), gone + waiting as u64));
        if self.is_exact() {
            pairs.extend([("malformed", number("malformed"), malformed), ("expired", number("expired"), expired)]);
            pairs.extend([("cut", number("cut"), cut), ("joined", ports("arrived"), joined)]);
            pairs.push(("no_room", number("no_room"), 0));
        } else if number("no_room") > 0 {
            self.seen.insert(Kind::Small);
        }
        self.dropped = ports("drops");
        for (what, counted, expected) in pairs {
            if counted != expected {
                self.breaks(Rule::Counters, format!("{what}: {counted} counted, {expected} expected"));
            }
        }
        world.seen.extend(std::mem::take(&mut self.seen));
    }

    /// The program ended, and starts anew without what it held.
    pub(super) fn starts_anew(&mut self) {
        self.close();
        self.held.clear();
        self.learned.clear();
        self.last.clear();
        self.expected = Expected::default();
        self.ran = Time::ZERO;
        for line in &mut self.lines {
            (line.bytes, line.behind, line.longest) = (0.0, 0.0, 0.0);
        }
    }
    fn close(&mut self) {
        self.counts[1] += self.dropped;
        self.counts[3] += self.expected.missed;
        self.dropped = 0;
    }
    /// There were too many turns.
    pub(super) fn endless(&mut self, scene: &Scene) {
        self.breaks(Rule::Ends, format!("seed {} does not end", scene.seed));
    }
    /// The report of the scene, in which these kinds of events occurred.
    pub(super) fn report(mut self, mut seen: BTreeSet<Kind>) -> Report {
        self.close();
        // Kinds of frames that leave no other trace than that they came.
        let came = |kind: &Kind| kind.is_of_frames() || *kind <= Kind::Plain || *kind == Kind::Burst;
        let traced = [Kind::Cut, Kind::Malformed, Kind::Expired, Kind::Local, Kind::Unknown];
        seen.extend(self.scene.kinds.iter().filter(|kind| came(kind) && !traced.contains(kind)));
        Report { broken: self.broken, events: self.events, seen, counts: self.counts }
    }
}
