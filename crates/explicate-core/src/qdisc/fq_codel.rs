//! FQ-CoDel, flow queues with controlled delay (T. Høiland-Jørgensen and others, RFC 8290, 2018).
//!
//! A hash of the flow distributes packets over many queues, each with a CoDel of its own. The queues take turns by
//! bytes (deficit round robin), and queues that have just become busy precede the others: a flow that sends little
//! never waits behind one that sends much. When the limit is reached, the queue with most bytes loses packets.
//! FQ-CoDel decides at departure, so its port is polled.
//!
//! CSFQ, core-stateless fair queueing (Stoica, Shenker, Zhang, SIGCOMM 1998), aims at the same shares with one queue:
//! edge routers measure each flow's rate and write it into its packets, and core routers drop by it. It is not
//! implemented here.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | quantum | `quantum` | bytes | 1514 | RFC 8290 section 5.2.4 |
//! | flows | `flows` | queues | 1024 | section 5.2.5 |
//! | limit | `limit` | bytes or packets | (10240 packets) | section 5.2.3 |
//! | byte credits | `Flow::credit` | bytes | | section 4.2 |
//! | target, interval | [`codel`](super::codel) | s | 5 ms, 100 ms | section 5.2.1, 5.2.2 |
//!
//! Deviations:
//! 1. The hash is of the flow's number and direction with a random salt, because our packets have no five-tuple.
//! 2. The limit is the common one of this simulator (one bandwidth-delay product unless a scenario sets another). One
//!    packet may always wait.
//! 3. A queue's CoDel uses the bytes of its own queue (RFC 8289); Linux uses the bytes of all.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::codel::{Control, Settings, State};
use super::common::{Fifo, Limit, QueueLimit};
use crate::api::Probe;
use crate::params::{Bytes, Conflict, Info, Number, parameters};
use crate::qdisc::{ActiveQueue, Discipline, DropCause, Dropped, QdiscInit, QdiscKind, Queued, ResolvedQueue};
use crate::units::Time;
use crate::wire::Packet;

/// FQ-CoDel.
pub struct FqCoDel;

/// Maximum number of packets that the longest queue loses at once (RFC 8290 section 4.1).
const BATCH: u32 = 64;

parameters! {
    /// What a scenario can set.
    struct Params {
        /// When packets are dropped or marked.
        control: Control = Control::DEFAULT;
        /// Bytes that a queue may send per round.
        quantum: Bytes = 1514.0, in 1.0..=1e9, "RFC 8290 section 5.2.4";
        /// Number of queues.
        flows: Number = 1024.0, in 1.0..=65_535.0, "RFC 8290 section 5.2.5";
        /// Maximum queue length.
        limit: Limit = Limit::DEFAULT;
    }
}

impl QdiscKind for FqCoDel {
    const INFO: Info = Info {
        name: "fq_codel",
        summary: "One queue per flow, served in turn, each with CoDel",
        source: "RFC 8290",
        params: Params::PARAMS,
    };

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        Discipline::Departure(Box::new(FqCoDelQueue::new(init)))
    }

    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        let params = Params::of(queue.values);
        let one = (params.flows == 1.0).then(|| {
            let what = "it shares out nothing, because one queue for all flows is `codel`".to_string();
            Conflict::new(["flows", "quantum"], what, "write a larger `flows`, or `kind = \"codel\"`")
        });
        params.control.conflict(params.limit.limit, queue).into_iter().chain(one).collect()
    }
}

#[derive(Default)]
struct Flow {
    queue: Fifo,
    codel: State,
    credit: i64,
    /// It is in one of the two lists.
    listed: bool,
}

struct FqCoDelQueue {
    settings: Settings,
    queue_limit: QueueLimit,
    quantum: i64,
    salt: u64,
    flows: Vec<Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    bytes: u64,
    packets: u32,
}

impl FqCoDelQueue {
    fn new(init: &QdiscInit<'_>) -> FqCoDelQueue {
        let params = Params::of(init.values);
        let mut flows = Vec::new();
        flows.resize_with(params.flows as usize, Flow::default);
        FqCoDelQueue {
            settings: Settings::new(&params.control),
            queue_limit: params.limit.queue_limit(init.mean_packet),
            quantum: params.quantum as i64,
            salt: init.rng.clone().next_u64(),
            flows,
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
        }
    }

    /// The queue of a packet: multiplication spreads the bits, and the upper ones are the best.
    fn index(&self, packet: &Packet) -> usize {
        let key = 2 * packet.transport.flow() as u64 + packet.is_ack() as u64;
        let mixed = (key ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (((mixed >> 32) * self.flows.len() as u64) >> 32) as usize
    }

    /// Removes half of the packets of the longest queue (by bytes), from its head.
    fn drop_from_fattest(&mut self, dropped: &mut Dropped) {
        let listed = self.new.iter().chain(&self.old);
        // If several are equally long, the one whose turn is last, which changes with every round.
        let Some(&fattest) = listed.max_by_key(|&&i| self.flows[i as usize].queue.bytes()) else { return };
        let queue = &mut self.flows[fattest as usize].queue;
        for _ in 0..queue.packets().div_ceil(2).min(BATCH) {
            let Some(packet) = queue.pop() else { return };
            self.bytes -= packet.bytes as u64;
            self.packets -= 1;
            dropped.push((packet, DropCause::Overflow));
        }
    }
}

impl ActiveQueue for FqCoDelQueue {
    fn enqueue(&mut self, queued: Queued, packet: &Packet, dropped: &mut Dropped) {
        let index = self.index(packet);
        let flow = &mut self.flows[index];
        if !flow.listed {
            flow.listed = true;
            flow.credit = self.quantum;
            self.new.push_back(index as u16);
        }
        flow.queue.push(queued);
        self.bytes += queued.bytes as u64;
        self.packets += 1;
        while self.packets > 1 && !self.queue_limit.holds((self.bytes, self.packets)) {
            self.drop_from_fattest(dropped);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<(Queued, bool)> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = dropped.len();
            let next = flow.codel.dequeue(&self.settings, &mut flow.queue, now, dropped);
            let sent = next.iter().map(|(packet, _)| packet);
            for packet in sent.chain(dropped[before..].iter().map(|(packet, _)| packet)) {
                self.bytes -= packet.bytes as u64;
                self.packets -= 1;
            }
            if let Some((packet, _)) = next {
                flow.credit -= packet.bytes as i64;
                return next;
            }
            // An empty queue stays in the list once more, so that a flow cannot remain new by sending in small
            // pieces.
            list.pop_front();
            if from_new {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn probe(&self, put: Probe<'_>) {
        put("flows_new", self.new.len() as f64);
        put("flows_old", self.old.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn queue(limit_packets: f64) -> FqCoDelQueue {
        let limit = [("limit", 1000.0 * limit_packets), ("count", 1.0)];
        testing::qdisc(FqCoDelQueue::new, Limit::PARAMS, 1e6, &limit)
    }
    fn arrive(q: &mut FqCoDelQueue, ms: u64, flow: u32, handle: u32, dropped: &mut Dropped) {
        let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
        packet.transport.set_flow(flow);
        q.enqueue(Queued { handle, bytes: 1000, capable: false, since: Time::millis(ms) }, &packet, dropped);
    }

    /// A line that sends one packet per millisecond. Flow 1 sends two per millisecond, flow 2 one packet every 20 ms
    /// (handles from 1,000,000): flow 2 never loses a packet and never waits; flow 1 has all drops.
    #[test]
    fn a_sparse_flow_is_not_touched_by_a_greedy_one() {
        let (mut q, mut dropped) = (queue(200.0), Dropped::new());
        let (mut lost, mut sparse) = (0, 0);
        for ms in 0..5000u64 {
            arrive(&mut q, ms, 1, 2 * ms as u32, &mut dropped);
            arrive(&mut q, ms, 1, 2 * ms as u32 + 1, &mut dropped);
            if ms % 20 == 0 {
                arrive(&mut q, ms, 2, 1_000_000 + ms as u32, &mut dropped);
            }
            let (sent, _) = q.dequeue(Time::millis(ms), &mut dropped).expect("packets wait");
            if sent.handle >= 1_000_000 {
                sparse += 1;
                // At first both queues are new, and the other's quantum comes before it: two packets.
                let waited = ms - (sent.handle as u64 - 1_000_000);
                assert!(waited <= if ms < 20 { 2 } else { 0 }, "sent at {ms}: {sent:?}");
            }
            assert!(dropped.iter().all(|(packet, _)| packet.handle < 1_000_000));
            lost += dropped.len() as u32;
            dropped.clear();
        }
        assert_eq!(sparse, 250);
        assert_eq!(10_000 + 250, 5000 + lost + q.packets);
        assert!(q.packets <= 200);
    }

    #[test]
    fn flows_share_by_bytes() {
        let (mut q, mut dropped) = (queue(1000.0), Dropped::new());
        let mut handle = 0;
        for flow in [1, 2, 3] {
            for _ in 0..100 * flow {
                arrive(&mut q, 0, flow, handle, &mut dropped);
                handle += 1;
            }
        }
        // While all three wait, each has a third, in order.
        let mut sent = [0, 0, 0];
        for _ in 0..150 {
            let (packet, _) = q.dequeue(Time::millis(1), &mut dropped).expect("packets wait");
            let flow =
                [0..100, 100..300, 300..600].iter().position(|r| r.contains(&packet.handle)).expect("one of them");
            sent[flow] += 1;
        }
        assert!(sent.iter().all(|n| (49..=51).contains(n)), "{sent:?}");
        assert!(dropped.is_empty());
    }

    #[test]
    fn when_full_the_fattest_loses_half_from_its_head() {
        let (mut q, mut dropped) = (queue(10.0), Dropped::new());
        for handle in 0..8 {
            arrive(&mut q, 0, 1, handle, &mut dropped);
        }
        arrive(&mut q, 0, 2, 100, &mut dropped);
        arrive(&mut q, 0, 2, 101, &mut dropped);
        assert!(dropped.is_empty());
        arrive(&mut q, 0, 2, 102, &mut dropped);
        let lost: Vec<u32> = dropped.iter().map(|(packet, _)| packet.handle).collect();
        assert_eq!(lost, [0, 1, 2, 3]);
        assert!(dropped.iter().all(|(_, cause)| *cause == DropCause::Overflow));
        assert_eq!((q.bytes, q.packets), (7000, 7));
    }
}
