//! A flow of TCP beside the gateways, with the law of a kernel: as the core has it for the stack `linux`.
//!
//! It sends full packets without end, and none of them again. Acknowledgements come back one by one and wait nowhere, a packet is lost when
//! three later ones have arrived, and there is no handshake.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use explicate_core::api::{Ack, AnySender, Loss, LossKind, SenderInit};
use explicate_core::params::Values;
use explicate_core::presets::DEFAULT_TCP;
use explicate_core::registry;
use explicate_core::stacks;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Format, Transport};

use super::clock;
use super::network::Network;
use super::scene::SECOND;

/// Bytes of a packet.
const PACKET: usize = 1500;
/// First window, packets (RFC 6928).
const INITIAL: f64 = 10.0;
/// Later packets behind which one is lost.
const REORDERED: u64 = 3;
/// Time without an acknowledgement after which all is lost, beside two round trips, ns: what Linux adds to the estimate at least.
const TIMEOUT: u64 = 200_000_000;
/// As which gateway it sends, in the record.
pub const FLOW: u8 = u8::MAX;

/// A flow.
pub struct Flow {
    network: Arc<Network>,
    ends: (u8, u8),
    sender: Box<AnySender>,
    next: u64,
    /// When packets were sent that are under way, and when their acknowledgements come.
    under_way: BTreeMap<u64, u64>,
    comes: VecDeque<(u64, u64)>,
    srtt: Time,
    /// A loss before this packet is part of the last one.
    recovers: u64,
    /// When something was last acknowledged.
    last: u64,
}

impl Flow {
    /// A flow by the path between two gateways.
    pub fn new(network: Arc<Network>, ends: (u8, u8)) -> Flow {
        let tcp = registry::protocol(DEFAULT_TCP).expect("TCP");
        let mut values = Values::default();
        for (name, value) in stacks::stack("linux").expect("a stack").sets(tcp) {
            if let Some(param) = tcp.params().iter().find(|param| param.name == name) {
                values.set(param, value);
            }
        }
        let init =
            SenderInit { values: &values, packet: PACKET as f64, initial_window: INITIAL, interface: Rate::mbps(1000) };
        let (sender, srtt) = (tcp.sender(&init), Time::ZERO);
        let (under_way, comes, last) = (BTreeMap::new(), VecDeque::new(), clock::elapsed());
        Flow { network, ends, sender, next: 0, under_way, comes, srtt, recovers: 0, last }
    }
    /// Sends until the scene ends.
    pub async fn drive(mut self) {
        loop {
            let now = clock::elapsed();
            while let Some((_, number)) = self.comes.pop_front_if(|(at, _)| *at <= now) {
                self.acknowledge(now, number);
            }
            if now >= self.last + self.timeout() {
                self.under_way.clear();
                self.comes.clear();
                self.lose(now, LossKind::Timeout);
                self.last = now;
            }
            while (self.under_way.len() as f64) < self.sender.allowance().cwnd.max(1.0).floor() {
                if let Some(at) = self.network.carry(FLOW, self.ends, PACKET) {
                    self.comes.push_back((at, self.next));
                }
                self.under_way.insert(self.next, now);
                self.next += 1;
            }
            let first = self.comes.front().map_or(u64::MAX, |(at, _)| *at);
            clock::until(Some(first.min(self.last + self.timeout()))).await;
        }
    }
    fn timeout(&self) -> u64 {
        TIMEOUT + 2 * if self.srtt == Time::ZERO { SECOND } else { self.srtt.0 }
    }
    fn acknowledge(&mut self, now: u64, number: u64) {
        let Some(sent) = self.under_way.remove(&number) else { return };
        self.last = now;
        let rtt = Time(now - sent);
        if self.srtt == Time::ZERO {
            self.srtt = rtt;
            self.sender.on_start(Time(now), rtt);
        }
        self.srtt = Time((7 * self.srtt.0 + rtt.0) / 8);
        let behind = self.under_way.split_off(&(number + 1).saturating_sub(REORDERED));
        let lost = std::mem::replace(&mut self.under_way, behind);
        if lost.keys().any(|lost| *lost >= self.recovers) {
            self.lose(now, LossKind::Duplicates);
        }
        let header = Congestion::new(Format::MINIMAL);
        let mut ack = Ack::new(Time(now), 1, self.srtt, &header);
        (ack.in_flight, ack.recovering) = (self.under_way.len() as u32, number < self.recovers);
        // What is lost is not sent again: the receiver expects the oldest packet under way.
        let expected = self.under_way.keys().next().copied().unwrap_or(self.next);
        (ack.cumulative, ack.highest_sent, ack.rtt) = (expected as u32, self.next as u32, rtt);
        let mut transport = Transport::EMPTY;
        transport.set_window(u32::MAX);
        ack.transport = &transport;
        self.sender.on_ack(&ack);
    }
    fn lose(&mut self, now: u64, kind: LossKind) {
        self.recovers = self.next;
        self.sender.on_loss(&Loss::new(Time(now), kind, self.under_way.len() as u32, self.srtt));
    }
}
