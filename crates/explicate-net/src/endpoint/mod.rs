//! Endpoints of the laboratory: a UDP socket, the flows that it sends and those that it receives, by the core's state machines.
//!
//! They run in namespaces of their own, where no other host sends, and both know the scenario: flows open by their SYN alone, and
//! carry filler data.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use explicate_core::datagram;
use explicate_core::units::Time;
use explicate_core::wire::{SackRanges, UDP_PORT, flag};

use crate::agent::AgentHost;
use crate::clock::{Clock, Stalls, Waiter};
use crate::error::{Context, Result};
use crate::sys::{self, BATCH, Batch};

pub mod outbox;
pub mod receiving;
pub mod sending;

use outbox::Outbox;
use receiving::{Opens, Receivers};
use sending::Sending;

/// Longest datagram, bytes.
pub const LONGEST: usize = 9216;
const ROUNDS: usize = 8;

/// A socket with its flows.
pub struct Endpoint<'a> {
    socket: UdpSocket,
    clock: Clock,
    waiter: Waiter,
    batch: Batch,
    out: Outbox,
    /// Flows that it sends, by their numbers.
    pub sending: BTreeMap<u32, Sending>,
    /// Flows that it receives.
    pub receivers: Receivers<'a>,
    /// The agent of this node, if its flows need one.
    pub agent: Option<AgentHost>,
    /// When its thread did not run.
    pub stalls: Stalls,
}

impl<'a> Endpoint<'a> {
    /// An endpoint in this thread's namespace, which receives the flows that `opens` makes. `start` gives its clock, once its socket
    /// is open.
    pub fn open(opens: Opens<'a>, start: impl FnOnce() -> Clock) -> Result<Endpoint<'a>> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, UDP_PORT)).or_fail(|| "open a socket".to_string())?;
        socket
            .set_nonblocking(true)
            .and_then(|()| sys::tell_ttl_and_ecn(socket.as_fd()))
            .and_then(|()| sys::grow_buffers(socket.as_fd(), 8 << 20))
            .or_fail(|| "prepare the socket".to_string())?;
        let batch = Batch::new(LONGEST);
        let clock = start();
        let waiter = Waiter::with_timer(clock).or_fail(|| "make a timer".to_string())?;
        Ok(Endpoint {
            socket,
            clock,
            waiter,
            batch,
            out: Outbox::default(),
            sending: BTreeMap::new(),
            receivers: Receivers::new(opens),
            agent: None,
            stalls: Stalls::default(),
        })
    }
    /// Sleeps until the epoch of its clock, or until a signal arrives.
    pub fn wait_for_start(&self) {
        self.clock.wait_for_start();
    }
    /// The current time.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Sends and receives until `until`, or until `stop` returns true.
    pub fn run(&mut self, until: Time, stop: &dyn Fn() -> bool) -> Result<()> {
        self.stalls.run(Time::ZERO, self.clock.now());
        while self.clock.now() < until && !stop() {
            self.turn()?;
            let flows = self.sending.values().map(Sending::due).min().unwrap_or(Time::NEVER);
            let agent = self.agent.as_ref().map_or(Time::NEVER, AgentHost::due);
            let due = flows.min(self.receivers.due()).min(agent).min(until);
            self.waiter.wait(&[self.socket.as_fd()], due).or_fail(|| "wait for packets".to_string())?;
            self.stalls.run(self.stalls.waits(due), self.clock.now());
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
        self.receivers.handle_timeout(now, &mut self.out);
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
            self.out.push(SocketAddrV4::new(to, UDP_PORT), &packet, &SackRanges::NONE, more);
        }
    }

    /// Handles a datagram of the batch.
    fn handle(&mut self, now: Time, index: usize) {
        let message = self.batch.message(index);
        let mut read = datagram::read(message.bytes);
        let (Some(from), false, Ok(read)) = (message.from, message.cut, &mut read) else { return };
        (read.packet.ttl, read.packet.tos) = (message.ttl, message.tos);
        let header = &read.packet.transport;
        if header.has(flag::CONTROL) {
            if let Some(agent) = &mut self.agent {
                agent.handle_control(now, *from.ip(), &read.packet);
            }
        } else if header.has(flag::ACK) {
            if let Some(flow) = self.sending.get_mut(&header.flow()) {
                flow.handle_packet(now, &read.packet, &read.sack);
            }
        } else {
            let key = (from, header.flow());
            if let Some(agent) = &mut self.agent {
                let own = agent.own;
                agent.handle_data(now, &mut read.packet, own, None);
            }
            self.receivers.handle_packet(now, key, &mut read.packet, &mut self.out);
        }
    }
}
