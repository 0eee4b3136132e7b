//! The floor: the cost of moving packets and nothing else. Dumbbells of fixed windows, without protocol, drops,
//! statistics or generality; `explicate bench --floor` compares the engine's cost with it.
//!
//! The remaining parts of a simulator are packets of 64 bytes in one array, links that are FIFO queues (a packet
//! leaves at the later of now and the link's last departure, plus its transmission time), and an event queue, which
//! is a timing wheel with one chain of packets per bucket, sorted by time. A packet that has crossed its six links
//! starts again.
//!
//! Two versions: an event for every hop, or events only where links merge. Between two such places nothing else can
//! happen, so the times of several hops are computed at once, as the engine's fusion does.

use cpu_time::ThreadTime;

use crate::bench::Cost;

/// Links of a packet's circle: access, middle and access for the data, and the same for the acknowledgement.
const WAY: usize = 6;
/// Those that several flows share: the middle, in both directions.
const MERGES: [bool; WAY] = [false, true, false, false, true, false];
const BUCKETS: usize = 1 << 17;
const NIL: u32 = u32::MAX;
const RTT: u64 = 80_000_000;
const DATA: u64 = 1000;
const ACK: u64 = 40;

/// A dumbbell like those of [`crate::bench::CASES`], without ends.
pub struct Floor {
    /// Its name.
    pub name: &'static str,
    mbps: u64,
    flows: u32,
    every_hop: bool,
    /// T, seconds of simulated time.
    pub seconds: f64,
}

/// All cases: with an event for every hop, and with events where links merge.
pub const FLOORS: &[Floor] = &[
    Floor { name: "hops-100M-10", mbps: 100, flows: 10, every_hop: true, seconds: 40.0 },
    Floor { name: "merges-100M-10", mbps: 100, flows: 10, every_hop: false, seconds: 40.0 },
    Floor { name: "hops-1G-10", mbps: 1000, flows: 10, every_hop: true, seconds: 6.0 },
    Floor { name: "merges-1G-10", mbps: 1000, flows: 10, every_hop: false, seconds: 6.0 },
    Floor { name: "hops-1G-1000", mbps: 1000, flows: 1000, every_hop: true, seconds: 6.0 },
    Floor { name: "merges-1G-1000", mbps: 1000, flows: 1000, every_hop: false, seconds: 6.0 },
];

/// A packet, as large as a real one: 64 bytes.
#[derive(Clone)]
#[repr(align(64))]
struct Packet {
    time: u64,
    next: u32,
    flow: u32,
    /// The link that it is about to enter.
    at: u32,
}

/// A FIFO queue and the line behind it; times in ns.
#[derive(Clone)]
struct Link {
    busy_until: u64,
    delay: u64,
    /// Transmission times of data and acknowledgement.
    wire: [u64; 2],
}

/// The state of a running dumbbell.
struct Mover {
    packets: Vec<Packet>,
    links: Vec<Link>,
    /// The links of each flow, in order.
    paths: Vec<[u32; WAY]>,
    stops: [bool; WAY],
    heads: Box<[u32; BUCKETS]>,
    occupied: Box<[u64; BUCKETS / 64]>,
    shift: u32,
    tick: u64,
    hops: u64,
    events: u64,
}

impl Floor {
    /// The case of this name.
    pub fn find(name: &str) -> Option<&'static Floor> {
        FLOORS.iter().find(|f| f.name == name)
    }

    /// Runs it for `seconds` of simulated time.
    pub fn run(&self, seconds: f64) -> Cost {
        let mut mover = self.build();
        let started = ThreadTime::now();
        mover.run_until((seconds * 1e9) as u64);
        let cpu_seconds = started.elapsed().as_secs_f64();
        let (hops, events) = (mover.hops, mover.events);
        Cost { hops, events, cpu_seconds, bytes_per_flow: None, bytes_per_flow_after: None }
    }

    fn build(&self) -> Mover {
        let link = |mbps: u64, delay| Link { busy_until: 0, delay, wire: [DATA, ACK].map(|b| b * 8000 / mbps) };
        let access = link(4 * self.mbps, 5_000_000);
        let mut links = vec![link(self.mbps, 30_000_000); 2];
        links.extend(std::iter::repeat_n(access, 4 * self.flows as usize));
        let paths = (0..self.flows).map(|f| [2 + 4 * f, 0, 3 + 4 * f, 4 + 4 * f, 1, 5 + 4 * f]).collect();
        // One and a half bandwidth-delay products in flight: the middle is busy, and half a product waits.
        let window = (RTT * 3 / 2 / links[0].wire[0]).div_ceil(self.flows as u64);
        let gap = links[0].wire[0] / if self.every_hop { WAY as u64 } else { 2 };
        // As wide as the mean gap between events, and wide enough for two rotations to hold the longest round trip.
        let shift = gap.ilog2().max((2 * RTT / BUCKETS as u64).ilog2() + 1);
        let mut mover = Mover {
            packets: Vec::new(),
            links,
            paths,
            stops: if self.every_hop { [true; WAY] } else { MERGES },
            heads: vec![NIL; BUCKETS].try_into().expect("as many"),
            occupied: vec![0; BUCKETS / 64].try_into().expect("as many"),
            shift,
            tick: 0,
            hops: 0,
            events: 0,
        };
        for flow in 0..self.flows {
            for i in 0..window {
                let slot = mover.packets.len() as u32;
                let time = (flow as u64 * window + i) * RTT / (window * self.flows as u64);
                mover.packets.push(Packet { time, next: NIL, flow, at: 1 });
                mover.insert(slot);
            }
        }
        mover
    }
}

impl Mover {
    fn run_until(&mut self, limit: u64) {
        while let Some(slot) = self.pop(limit) {
            self.carry(slot);
        }
    }

    /// Carries a packet over the link before it, and on to the next place where links merge.
    #[inline(always)]
    fn carry(&mut self, slot: u32) {
        let packet = &mut self.packets[slot as usize];
        let path = &self.paths[packet.flow as usize];
        let (mut at, mut time) = (packet.at as usize, packet.time);
        loop {
            let link = &mut self.links[path[at] as usize];
            let leaves = link.busy_until.max(time) + link.wire[(at >= WAY / 2) as usize];
            link.busy_until = leaves;
            time = leaves + link.delay;
            self.hops += 1;
            at = if at + 1 == WAY { 0 } else { at + 1 };
            if self.stops[at] {
                break;
            }
        }
        (packet.at, packet.time) = (at as u32, time);
        self.insert(slot);
    }

    #[inline(always)]
    fn insert(&mut self, slot: u32) {
        let time = self.packets[slot as usize].time;
        debug_assert!((time >> self.shift) < self.tick + BUCKETS as u64, "beyond one rotation");
        let index = (time >> self.shift) as usize % BUCKETS;
        let (word, bit) = (&mut self.occupied[index / 64], 1 << (index % 64));
        let head = self.heads[index];
        if *word & bit == 0 || time < self.packets[head as usize].time {
            self.packets[slot as usize].next = if *word & bit == 0 { NIL } else { head };
            *word |= bit;
            self.heads[index] = slot;
            return;
        }
        let mut before = head;
        loop {
            let next = self.packets[before as usize].next;
            if next == NIL || time < self.packets[next as usize].time {
                self.packets[slot as usize].next = next;
                self.packets[before as usize].next = slot;
                return;
            }
            before = next;
        }
    }

    #[inline(always)]
    fn pop(&mut self, limit: u64) -> Option<u32> {
        loop {
            let index = self.tick as usize % BUCKETS;
            let word = self.occupied[index / 64] >> (index % 64);
            if word == 0 {
                self.tick = (self.tick | 63) + 1;
                if self.tick > limit >> self.shift {
                    return None;
                }
                continue;
            }
            self.tick += word.trailing_zeros() as u64;
            let index = self.tick as usize % BUCKETS;
            let slot = self.heads[index];
            let Packet { time, next, .. } = self.packets[slot as usize];
            if time > limit {
                return None;
            }
            self.heads[index] = next;
            if next == NIL {
                self.occupied[index / 64] &= !(1 << (index % 64));
            }
            self.events += 1;
            return Some(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_64_bytes() {
        assert_eq!(size_of::<Packet>(), 64);
    }

    /// The middle carries a packet per time on the wire, and each of them makes six hops; both ways move the same.
    #[test]
    fn it_carries_what_the_middle_can() {
        for floor in FLOORS {
            let seconds = 0.5;
            let cost = floor.run(seconds);
            let packets = seconds * floor.mbps as f64 * 1e6 / (8 * DATA) as f64;
            let hops = WAY as f64 * packets;
            assert!((cost.hops as f64 / hops - 1.0).abs() < 0.1, "{}: {} hops of {hops}", floor.name, cost.hops);
            let per_event = cost.hops as f64 / cost.events as f64;
            let expected = if floor.every_hop { 1.0 } else { 3.0 };
            assert!((per_event / expected - 1.0).abs() < 1e-3, "{}: {per_event} hops an event", floor.name);
        }
    }

    /// Events where links merge change nothing: every packet is at the same place at the same time as with one per hop.
    #[test]
    fn events_only_at_merges_are_exact() {
        let mut sides = [true, false].map(|every_hop| {
            let mut mover = Floor { name: "", mbps: 10, flows: 7, every_hop, seconds: 0.0 }.build();
            let mut seen = Vec::new();
            while let Some(slot) = mover.pop(2_000_000_000) {
                let packet = &mover.packets[slot as usize];
                if MERGES[packet.at as usize] {
                    seen.push((packet.time, packet.at, packet.flow));
                }
                mover.carry(slot);
            }
            seen
        });
        let [all, merges] = &mut sides;
        all.sort_unstable();
        merges.sort_unstable();
        assert!(all.len() > 2000);
        assert_eq!(all, merges);
    }
}
