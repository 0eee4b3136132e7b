//! End points: a UDP socket, the flows that it sends and those that it receives.

use std::collections::BTreeMap;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;

use explicate_core::datagram;
use explicate_core::units::Time;
use explicate_core::wire::flag;

use crate::clock::{Clock, Waiter};
use crate::error::{Context, Result};
use crate::sys::{self, BATCH, Batch};

pub mod content;
pub mod hello;
pub mod message;
pub mod outbox;
pub mod receiving;
pub mod sending;

use message::Message;
use outbox::Outbox;
use receiving::{Limits, Receivers};
use sending::Sending;

/// Longest datagram that is received.
const LONGEST: usize = 9216;
const ROUNDS: usize = 8;

/// A socket with its flows.
pub struct Endpoint {
    socket: UdpSocket,
    clock: Clock,
    waiter: Waiter,
    batch: Batch,
    out: Outbox,
    /// Flows that it sends, by number.
    pub sending: BTreeMap<u32, Sending>,
    /// Flows that it receives, if it listens.
    pub receivers: Option<Receivers>,
    /// Datagrams whose headers make no sense.
    pub malformed: u64,
}

impl Endpoint {
    /// An end point at this address of this thread's namespace; it listens if there are limits.
    pub fn open(address: SocketAddrV4, listen: Option<Limits>, clock: Clock) -> Result<Endpoint> {
        let socket = UdpSocket::bind(address).or_fail(|| format!("use the address {address}"))?;
        let waiter = socket
            .set_nonblocking(true)
            .and_then(|()| sys::tell_ttl_and_ecn(socket.as_fd()))
            .and_then(|()| sys::grow_buffers(socket.as_fd(), 8 << 20))
            .and_then(|()| Waiter::with_timer(clock))
            .or_fail(|| "prepare the socket".to_string())?;
        Ok(Endpoint {
            socket,
            clock,
            waiter,
            batch: Batch::new(LONGEST),
            out: Outbox::default(),
            sending: BTreeMap::new(),
            receivers: listen.map(Receivers::new),
            malformed: 0,
        })
    }
    /// The address that it has.
    pub fn address(&self) -> Result<std::net::SocketAddr> {
        self.socket.local_addr().or_fail(|| "tell the socket's address".to_string())
    }
    /// The present.
    pub fn now(&self) -> Time {
        self.clock.now()
    }
    /// Datagrams sent, and refused by the system.
    pub fn sent(&self) -> (u64, u64) {
        (self.out.sent, self.out.refused)
    }

    /// Sends and receives until `until`, or until it is told to stop.
    pub fn run(&mut self, until: Time, stop: &dyn Fn(&Endpoint) -> bool) -> Result<()> {
        while self.clock.now() < until && !stop(self) {
            self.turn()?;
            let flows = self.sending.values().map(Sending::due).min().unwrap_or(Time::NEVER);
            let receivers = self.receivers.as_ref().map_or(Time::NEVER, Receivers::due);
            let due = flows.min(receivers).min(until);
            self.waiter.wait(&[self.socket.as_fd()], due).or_fail(|| "wait for packets".to_string())?;
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
        self.out.flush(self.socket.as_fd());
        Ok(())
    }

    /// A datagram of the batch arrived.
    fn handle(&mut self, now: Time, index: usize) {
        let message = self.batch.message(index);
        let (Some(from), false, Ok(mut read)) = (message.from, message.cut, datagram::read(message.bytes)) else {
            self.malformed += 1;
            return;
        };
        (read.packet.ttl, read.packet.tos) = (message.ttl, message.tos);
        let header = &read.packet.transport;
        if header.has(flag::CONTROL) {
            let Some(told) = Message::of(&read.packet) else {
                self.malformed += 1;
                return;
            };
            match told {
                Message::Question(..) => {
                    if let Some(receivers) = &mut self.receivers {
                        receivers.handle_message(now, from, told, &mut self.out);
                    }
                }
                Message::Answer(id, ..) | Message::Unknown(id) => {
                    if let Some(flow) = self.sending.get_mut(&id).filter(|f| f.peer == from) {
                        flow.handle_message(now, told);
                    }
                }
            }
        } else if header.has(flag::ACK) {
            // Nobody but the receiving end may speak for it.
            if let Some(flow) = self.sending.get_mut(&header.flow()).filter(|f| f.peer == from) {
                flow.handle_packet(now, &read.packet, &read.sack);
            }
        } else if let Some(receivers) = &mut self.receivers {
            let payload = &message.bytes[read.payload..];
            receivers.handle_packet(now, from, &read, payload, &mut self.out);
        }
    }
}
