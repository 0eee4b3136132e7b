//! Endpoints: a UDP socket, the flows that it sends and those that it receives.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use explicate_core::datagram::{self, Read};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::{SackRanges, UDP_PORT, flag};

use crate::agent::AgentHost;
use crate::clock::{Clock, Waiter};
use crate::error::{Context, Error, Result};
use crate::sys::{self, BATCH, Batch};

pub mod answers;
pub mod auth;
pub mod content;
pub mod echoes;
pub mod gate;
pub mod hello;
pub mod message;
pub mod opening;
pub mod outbox;
pub mod pmtu;
pub mod probe;
pub mod receiving;
pub mod sending;

use auth::Key;
use message::Message;
use outbox::{HIGH, Outbox};
use receiving::{Limits, Receivers};
use sending::Sending;

/// Longest datagram, bytes.
pub const LONGEST: usize = 9216;
const ROUNDS: usize = 8;

/// A socket with its flows.
pub struct Endpoint {
    socket: UdpSocket,
    clock: Clock,
    waiter: Waiter,
    batch: Batch,
    out: Outbox,
    /// Flows that it sends, by the lower half of their numbers.
    pub sending: BTreeMap<u32, Sending>,
    /// Flows that it receives, if it accepts any.
    pub receivers: Option<Receivers>,
    /// The agent of this node, if its flows need one.
    pub agent: Option<AgentHost>,
    /// Datagrams with malformed headers.
    pub malformed: u64,
    /// Acknowledgements and messages that are not from the receiver of a flow that it sends, or do not name it.
    pub strays: u64,
}

impl Endpoint {
    /// An endpoint at this address of this thread's namespace; it accepts flows if limits are given.
    pub fn open(address: SocketAddrV4, listen: Option<Limits>, clock: Clock) -> Result<Endpoint> {
        let socket = UdpSocket::bind(address).or_fail(|| format!("bind to the address {address}"))?;
        let waiter = socket
            .set_nonblocking(true)
            .and_then(|()| sys::tell_ttl_and_ecn(socket.as_fd()))
            .and_then(|()| sys::grow_buffers(socket.as_fd(), 8 << 20))
            .and_then(|()| Waiter::with_timer(clock))
            .or_fail(|| "prepare the socket".to_string())?;
        let receivers = match listen {
            Some(limits) => Some(Receivers::new(limits, Key::random()?)),
            None => None,
        };
        Ok(Endpoint {
            socket,
            clock,
            waiter,
            batch: Batch::new(LONGEST),
            out: Outbox::default(),
            sending: BTreeMap::new(),
            receivers,
            agent: None,
            malformed: 0,
            strays: 0,
        })
    }
    /// Its address.
    pub fn address(&self) -> Result<std::net::SocketAddr> {
        self.socket.local_addr().or_fail(|| "read the socket's address".to_string())
    }
    /// The current time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }
    /// Datagrams sent, and refused by the system.
    pub fn sent(&self) -> (u64, u64) {
        (self.out.sent, self.out.refused)
    }
    /// Datagrams refused because they were longer than the kernel's path MTU.
    pub fn too_long(&self) -> u64 {
        self.out.too_long
    }

    /// Sends and receives until `until`, or until `stop` returns true.
    pub fn run(&mut self, until: Time, stop: &dyn Fn(&Endpoint) -> bool) -> Result<()> {
        while self.clock.now() < until && !stop(self) {
            self.turn()?;
            let flows = self.sending.values().map(Sending::due).min().unwrap_or(Time::NEVER);
            let receivers = self.receivers.as_ref().map_or(Time::NEVER, Receivers::due);
            let agent = self.agent.as_ref().map_or(Time::NEVER, AgentHost::due);
            let due = flows.min(receivers).min(agent).min(until);
            let disk = self.receivers.as_ref().and_then(|r| r.store.as_ref()).map(AsFd::as_fd);
            let waiting = [self.socket.as_fd(), disk.unwrap_or(self.socket.as_fd())];
            self.waiter
                .wait(&waiting[..1 + disk.is_some() as usize], due)
                .or_fail(|| "wait for packets".to_string())?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<()> {
        for _ in 0..if self.waiter.is_readable(0) { ROUNDS } else { 0 } {
            let received = self.batch.receive(self.socket.as_fd()).or_fail(|| "receive".to_string())?;
            let now = self.clock.now();
            for i in 0..received {
                if self.out.is_full() {
                    self.out.flush(self.socket.as_fd());
                }
                self.handle(now, i);
            }
            if received < BATCH {
                break;
            }
        }
        let now = self.clock.now();
        self.send_messages(now);
        if let Some(receivers) = &mut self.receivers {
            receivers.handle_timeout(now, &mut self.out);
        }
        for flow in self.sending.values_mut() {
            if flow.due() <= now {
                flow.handle_timeout(now);
            }
            while !flow.transmit(now, &mut self.out) {
                self.out.flush(self.socket.as_fd());
            }
        }
        // A new session is a flow of its own, with another number.
        while let Some((&old, new)) = self.sending.iter().map(|(id, f)| (id, f.flow.id())).find(|(id, new)| *id != new)
        {
            if let Some(flow) = self.sending.remove(&old) {
                self.sending.insert(new, flow);
            }
        }
        self.out.flush(self.socket.as_fd());
        Ok(())
    }

    /// Sends the messages of this node's agent.
    fn send_messages(&mut self, now: Time) {
        let Some(agent) = &mut self.agent else { return };
        agent.handle_timeout(now);
        while let Some((to, packet, more)) = agent.poll(now) {
            if self.out.is_full() {
                self.out.flush(self.socket.as_fd());
            }
            self.out.push(SocketAddrV4::new(to, UDP_PORT), &packet, &SackRanges::NONE, |room| {
                let more = more.min(room.len());
                room[..more].fill(0);
                more
            });
        }
    }

    /// Handles a datagram of the batch.
    fn handle(&mut self, now: Time, index: usize) {
        let message = self.batch.message(index);
        let mut read = datagram::read(message.bytes);
        let (Some(from), false, Ok(read)) = (message.from, message.cut, &mut read) else {
            self.malformed += 1;
            return;
        };
        (read.packet.ttl, read.packet.tos) = (message.ttl, message.tos);
        let header = &read.packet.transport;
        if header.has(flag::CONTROL) {
            let Some(message) = Message::of(&read.packet) else {
                match &mut self.agent {
                    Some(agent) => agent.handle_control(now, *from.ip(), &read.packet),
                    None => self.malformed += 1,
                }
                return;
            };
            match message {
                Message::Question(..) | Message::Probe(..) | Message::Knock(..) => {
                    if let Some(receivers) = &mut self.receivers {
                        receivers.handle_message(now, from, message, &mut self.out);
                    }
                }
                Message::Answer(number, ..)
                | Message::Unknown(number)
                | Message::Cookie(number, ..)
                | Message::Refused(number, ..) => {
                    let flow = self.sending.get_mut(&(number as u32)).filter(|f| f.peer == from);
                    if let Some(flow) = flow.filter(|f| f.is_about(number, message)) {
                        flow.handle_message(now, message);
                    } else {
                        self.strays += 1;
                    }
                }
                Message::Echo(..) => {}
            }
        } else if header.has(flag::ACK) {
            // Only the flow's receiver may acknowledge.
            let more = &message.bytes[read.payload..];
            let (high, more) =
                more.split_first_chunk().map_or((0, more), |(high, more)| (u32::from_be_bytes(*high), more));
            let flow = self.sending.get_mut(&header.flow());
            if let Some(flow) = flow.filter(|f| f.peer == from && f.high == high) {
                flow.handle_packet(now, &read.packet, &read.sack, more);
            } else {
                self.strays += 1;
            }
        } else if let Some(receivers) = &mut self.receivers {
            let payload = &message.bytes[read.payload..];
            if let Some(agent) = &mut self.agent {
                let own = agent.own;
                agent.handle_data(now, &mut read.packet, own, None);
            }
            let (syn, key) = (read.packet.transport.has(flag::SYN), (from, number_of(message.bytes, read)));
            receivers.handle_packet(now, key, &mut read.packet, payload, &mut self.out);
            if syn && self.agent.is_none() {
                self.agent = receivers.flows.get(&key).and_then(|f| agent(f, from));
            }
        }
    }
}

/// The number of a data packet's flow; its upper half is in the field that acknowledgements use for the window.
pub fn number_of(bytes: &[u8], read: &Read) -> u64 {
    let high = bytes.get(read.transport + HIGH..).and_then(|rest| rest.first_chunk());
    message::number(high.map_or(0, |high| u32::from_be_bytes(*high)), read.packet.transport.flow())
}

/// The agent of this node, if a flow that it receives needs one.
fn agent(flow: &receiving::Receiving, from: SocketAddrV4) -> Option<AgentHost> {
    let protocol = registry::resolve(&flow.hello.protocol).ok()?.protocol;
    let seed = flow.since.0 ^ sys::monotonic();
    AgentHost::new(protocol, &Values::default(), own_address(from).ok()?, Rng::stream(seed, "agent"))
}

/// The address of this host on the route to another.
pub fn own_address(peer: SocketAddrV4) -> Result<Ipv4Addr> {
    let socket = UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect(peer).map(|()| s)).and_then(|s| s.local_addr());
    match socket.or_fail(|| format!("reach {peer}"))?.ip() {
        IpAddr::V4(own) => Ok(own),
        IpAddr::V6(_) => Err(Error::Failed("this host has no IPv4 address".to_string())),
    }
}
