//! What happens in a simulation: its events, and the rules that they break.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{clock, memory};

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The host that opened it.
    Client,
    /// The gateway of the client.
    Near,
    /// The gateway of the server.
    Far,
    /// The host that accepted it.
    Server,
}

/// What becomes of a datagram on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrives.
    Arrives,
    /// It is lost by chance.
    Lost,
    /// The queue is full.
    Full,
    /// The path is down, or no host has the address.
    Down,
    /// It is longer than the path carries.
    TooLong,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A datagram left for a path, from machine to machine.
    Datagram(u8, u8, u32, Fate),
    /// An end of a connection read so many bytes.
    Read(u32, Who, u32),
    /// An end of a connection wrote so many bytes.
    Wrote(u32, Who, u32),
    /// An event of a connection.
    Told(u32, Who, String),
    /// An event of a gateway or a path.
    World(String),
}

/// An event and when it was, ns after the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub at: u64,
    /// What.
    pub what: What,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:10.3} s  ", self.at as f64 / 1e9)?;
        match &self.what {
            What::Datagram(from, to, bytes, fate) => {
                write!(f, "datagram of {bytes} bytes from {from} to {to}: {fate:?}")
            }
            What::Read(number, who, bytes) => write!(f, "connection {number}: {who:?} reads {bytes} bytes"),
            What::Wrote(number, who, bytes) => write!(f, "connection {number}: {who:?} writes {bytes} bytes"),
            What::Told(number, who, text) => write!(f, "connection {number}: {who:?} {text}"),
            What::World(text) => f.write_str(text),
        }
    }
}

/// A rule of gateways and transfers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// The bytes that arrive are those that were sent, in order.
    Bytes,
    /// A connection ends orderly only behind all of its bytes, else at both ends by a reset.
    Ends,
    /// What no fault touches arrives whole.
    Arrives,
    /// A stalled connection stalls no other.
    Stalls,
    /// Memory stays within its limits.
    Memory,
    /// Nothing stays open when its hosts are gone.
    Closes,
    /// A seed repeats its events.
    Repeats,
    /// No task panics.
    Panics,
    /// Once faults are over, new connections are carried, and transfers go on.
    Recovers,
    /// A transfer follows a NAT that takes another port at once, not when QUIC has given the connection up.
    Follows,
    /// A transfer takes up what the receiver has of it.
    Resumes,
    /// A receiver counts no call of a sender that it knows as refused.
    Refuses,
    /// A peer has one tunnel, whose datagrams have its headers.
    Tunnels,
}

/// A rule that was broken, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// What happened.
    pub how: String,
}

/// Bytes of a direction of a connection that the gateways have.
#[derive(Clone, Copy, Default)]
struct Held {
    now: i64,
    most: i64,
}

/// Limits of what gateways hold, bytes.
#[derive(Clone, Copy)]
pub struct Limits {
    /// For a direction of a connection.
    pub connection: i64,
    /// For all.
    pub all: i64,
}

/// The record of a run.
pub struct Record {
    state: Mutex<State>,
}

struct State {
    events: Vec<Event>,
    broken: Vec<Broken>,
    /// There and back, for each connection.
    held: Vec<[Held; 2]>,
    sum: i64,
    limits: Limits,
    /// Since when bytes have waited for a host that has vanished.
    waits: Vec<Option<u64>>,
    /// When the ends of a connection at its gateways were opened and closed, near and far.
    legs: Vec<[Leg; 2]>,
}

/// A TCP connection of a gateway.
#[derive(Clone, Copy, Default, Debug)]
pub struct Leg {
    /// When it was opened, ns.
    pub opened: Option<u64>,
    /// When it was closed, ns.
    pub closed: Option<u64>,
}

impl Record {
    /// An empty one for so many connections.
    pub fn new(connections: usize, limits: Limits) -> Record {
        let (held, legs) = (vec![[Held::default(); 2]; connections], vec![[Leg::default(); 2]; connections]);
        let (events, broken, waits) = (Vec::new(), Vec::new(), vec![None; connections]);
        let state = State { events, broken, held, sum: 0, limits, waits, legs };
        Record { state: Mutex::new(state) }
    }
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Adds an event.
    pub fn add(&self, what: What) {
        memory::of(None, || self.state().events.push(Event { at: clock::elapsed(), what }));
    }
    /// Tells something of an end.
    pub fn tell(&self, number: u32, who: Who, text: impl Into<String>) {
        self.add(What::Told(number, who, text.into()));
    }
    /// A rule was broken.
    pub fn broke(&self, rule: Rule, how: impl Into<String>) {
        self.state().broken.push(Broken { rule, how: how.into() });
    }
    /// An end read or wrote bytes.
    pub fn moved(&self, number: u32, who: Who, bytes: usize, reads: bool) {
        let what = if reads { What::Read } else { What::Wrote };
        self.add(what(number, who, bytes as u32));
        let direction = match (who, reads) {
            (Who::Near, true) | (Who::Far, false) => 0,
            (Who::Far, true) | (Who::Near, false) => 1,
            _ => return,
        };
        let signed = if reads { bytes as i64 } else { -(bytes as i64) };
        let mut state = self.state();
        let limits = state.limits;
        state.sum += signed;
        let sum = state.sum;
        let held = &mut state.held[number as usize][direction];
        held.now += signed;
        let grew = held.now > held.most;
        held.most = held.most.max(held.now);
        if grew && held.now > limits.connection {
            let how = format!("connection {number}: gateways hold {} bytes, more than {}", held.now, limits.connection);
            state.broken.push(Broken { rule: Rule::Memory, how });
        } else if sum > limits.all {
            let how = format!("gateways hold {sum} bytes, more than {}", limits.all);
            state.broken.push(Broken { rule: Rule::Memory, how });
        }
    }
    /// A gateway has an end of a connection from now on.
    pub fn opened(&self, number: u32, who: Who) {
        self.state().legs[number as usize][(who == Who::Far) as usize] =
            Leg { opened: Some(clock::elapsed()), closed: None };
    }
    /// An end was closed, orderly or by a reset.
    pub fn closed(&self, number: u32, who: Who, how: &str) {
        self.tell(number, who, how);
        if !matches!(who, Who::Near | Who::Far) {
            return;
        }
        let mut state = self.state();
        state.legs[number as usize][(who == Who::Far) as usize].closed = Some(clock::elapsed());
        // What it held is gone.
        let held = std::mem::take(&mut state.held[number as usize]);
        state.sum -= held[0].now + held[1].now;
    }
    /// Bytes wait for a host that has vanished.
    pub fn waits(&self, number: u32) {
        self.state().waits[number as usize].get_or_insert(clock::elapsed());
    }
    /// Since when they do, ns.
    pub fn waits_since(&self, number: u32) -> Option<u64> {
        self.state().waits[number as usize]
    }
    /// The connections of the gateways for a connection: near, far.
    pub fn legs(&self, number: u32) -> [Leg; 2] {
        self.state().legs[number as usize]
    }
    /// All events and all that broke.
    pub fn take(&self) -> (Vec<Event>, Vec<Broken>) {
        let mut state = self.state();
        (std::mem::take(&mut state.events), std::mem::take(&mut state.broken))
    }
}
