//! Queues of sending hosts (`host_queue`). The departures from a host's own line are known when packets join it, so a queue is
//! a clock, and a flow that has to wait learns until when. Packets that are still in processing count as if they
//! were in the queue. Acknowledgements that the host's receivers send use the line and wait for nothing, and so do SYNs.
//!
//! A full queue pushes back: in order of arrival (`places.rs`), or by turns (`turns.rs`).

use explicate_core::endpoint::HostQueue;
use explicate_core::recovery::Next;
use explicate_core::units::{Rate, Time};

use self::places::Places;
use self::turns::Turns;
use super::{Ends, Engine, NIL};

mod places;
mod turns;

/// Most packets of all flows.
const MOST_PACKETS: u64 = 1000;
/// Longest time that the line needs for all of them.
const LONGEST_S: f64 = 0.2;
/// One waits while another is sent.
const FEWEST_PACKETS: u64 = 2;

/// The line behind a queue.
struct Line {
    rate: Rate,
    /// When it is free.
    free: Time,
}

impl Line {
    /// How long a packet, or a few of them, takes.
    fn takes(&self, bytes: u32) -> Time {
        Time(8_000_000_000 * bytes as u64 / self.rate.0)
    }
    /// Most packets of this length that may be in the queue.
    fn most(&self, bytes: u32) -> u64 {
        let drained = self.rate.bytes_per_sec() * LONGEST_S / bytes.max(1) as f64;
        (drained as u64).clamp(FEWEST_PACKETS, MOST_PACKETS)
    }
    /// When a packet of `bytes` has left that joins now.
    fn join(&mut self, now: Time, bytes: u32) -> Time {
        self.free = self.free.max(now) + self.takes(bytes);
        self.free
    }
}

/// A flow of a host.
#[derive(Clone, Copy)]
struct Member {
    /// Until then it has had its turn.
    turn: Time,
    /// What is left of the bytes of its turn.
    credit: u32,
    /// It waits for a place, or for its turn.
    promised: bool,
}

enum Order {
    Arrival(Places),
    Turns(Turns),
}

/// The queue before one line.
pub(super) struct Queue {
    line: Line,
    order: Order,
    members: Vec<Member>,
}

/// A flow's place in the queue of its host.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The number of the queue; `NIL` without one.
    queue: u32,
    /// The number of the flow there; `NIL` if it does not wait.
    member: u32,
}

impl Place {
    /// A flow that waits for no queue.
    pub(super) const FREE: Place = Place { queue: NIL, member: NIL };
    /// A flow whose link has no queue.
    const NOWHERE: Place = Place { queue: NIL, member: 0 };

    #[inline(always)]
    pub(super) fn is_some(self) -> bool {
        self.queue != NIL
    }
}

impl Queue {
    fn new(kind: HostQueue, rate: Rate) -> Queue {
        let order = if kind.takes_turns() { Order::Turns(Turns::default()) } else { Order::Arrival(Places::default()) };
        Queue { line: Line { rate, free: Time::ZERO }, order, members: Vec::new() }
    }
    /// Until when a flow has to wait with a packet of `bytes`, which then has room; `None` if there is room.
    fn wait(&mut self, now: Time, member: u32, bytes: u32) -> Option<Time> {
        let flow = self.members.get_mut(member as usize)?;
        match &mut self.order {
            Order::Arrival(places) => places.wait(&self.line, flow, now, bytes),
            Order::Turns(turns) => turns.wait(&self.line, (member, flow), now, bytes),
        }
    }
    /// When a flow's packet of `bytes` has left that joins now.
    fn join(&mut self, now: Time, member: u32, bytes: u32) -> Time {
        let before = self.line.free;
        let departs = self.line.join(now, bytes);
        match (&mut self.order, self.members.get_mut(member as usize)) {
            (Order::Turns(turns), Some(flow)) => turns.join((member, flow), before, departs, bytes),
            (Order::Arrival(places), Some(_)) => places.join(now, departs),
            (_, None) => {}
        }
        departs
    }
    /// A packet uses the line that waits for nothing.
    fn pass(&mut self, now: Time, bytes: u32) {
        if let Order::Turns(turns) = &mut self.order {
            turns.pass(now, self.line.takes(bytes));
        }
        self.line.join(now, bytes);
    }
}

impl Engine {
    /// Puts queues before links, by the kind for each link: those whose rate is constant. Call after all links, before the
    /// first flow.
    pub fn set_host_queues(&mut self, kinds: &[(HostQueue, Rate)]) {
        for (link, &(kind, rate)) in kinds.iter().enumerate() {
            let constant = self.links[link].port.has_constant_rate() && !self.twins.contains_key(&(link as u32));
            if kind == HostQueue::None || !constant {
                continue;
            }
            if self.host_queue_of.is_empty() {
                self.host_queue_of = vec![NIL; self.links.len()];
            }
            self.host_queue_of[link] = self.host_queues.len() as u32;
            self.host_queues.push(Queue::new(kind, rate));
        }
    }
    /// The flow added last has a queue of this kind at its host. With [`HostQueue::None`] it waits for no other flow there, but
    /// others may wait for it.
    pub fn set_host_queue(&mut self, kind: HostQueue) {
        if self.host_queues.is_empty() {
            return;
        }
        let Some(ends) = self.ends.last_mut() else { return };
        ends.host = if kind == HostQueue::None { Place::FREE } else { Place::NOWHERE };
        let id = self.ends.len() - 1;
        self.place_in_host(id);
    }
    /// The queue before the first link of a flow.
    pub(super) fn place_in_host(&mut self, id: usize) {
        let ends = &mut self.ends[id];
        let link = self.routes[ends.forward as usize].index();
        let Some(&queue) = self.host_queue_of.get(link) else { return };
        if queue == ends.host.queue {
            return;
        }
        let waits = ends.host.member != NIL;
        ends.host = if waits { Place::NOWHERE } else { Place::FREE };
        let Some(joined) = self.host_queues.get_mut(queue as usize) else { return };
        ends.host.queue = queue;
        if waits {
            ends.host.member = joined.members.len() as u32;
            joined.members.push(Member { turn: Time::ZERO, credit: 0, promised: false });
        }
    }
    /// A receiver sends an acknowledgement from this place.
    #[cold]
    #[inline(never)]
    pub(super) fn answer_from_host(&mut self, now: Time, place: u32, bytes: u32) {
        let number = self.host_queue_of.get(self.routes[place as usize].index());
        if let Some(queue) = number.and_then(|number| self.host_queues.get_mut(*number as usize)) {
            queue.pass(now, bytes);
        }
    }
}

/// The next segment of a flow with a host queue; `None` also while there is no room, of which its endpoint learns.
#[cold]
#[inline(never)]
pub(super) fn poll_next(queues: &mut [Queue], ends: &mut Ends, now: Time) -> Option<Next> {
    let next = ends.flow.poll_next(now)?;
    if !ends.flow.is_established() || !ends.flow.has_data(next) {
        return Some(next);
    }
    let Some(queue) = queues.get_mut(ends.host.queue as usize) else { return Some(next) };
    let Some(until) = queue.wait(now, ends.host.member, ends.flow.packet_bytes() as u32) else { return Some(next) };
    ends.flow.hold_back(until);
    None
}

/// A flow with a host queue sent a packet.
#[cold]
#[inline(never)]
pub(super) fn joins(queues: &mut [Queue], ends: &mut Ends, now: Time, bytes: u32) {
    let Some(queue) = queues.get_mut(ends.host.queue as usize) else { return };
    if ends.host.member == NIL || !ends.flow.is_established() {
        queue.pass(now, bytes);
    } else {
        let departs = queue.join(now, ends.host.member, bytes);
        ends.flow.queued_until(now, departs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 12 Mbit/s: 1 ms for each packet of 1500 bytes, 200 packets in 0.2 s. Packet n has left at n + 1 ms.
    fn queue(kind: HostQueue, rate: Rate, flows: usize) -> Queue {
        let mut queue = Queue::new(kind, rate);
        queue.members = vec![Member { turn: Time::ZERO, credit: 0, promised: false }; flows];
        queue
    }

    #[test]
    fn a_full_queue_promises_places_in_order() {
        let mut queue = queue(HostQueue::Fifo, Rate::mbps(12), 500);
        for n in 0..200 {
            assert_eq!(queue.wait(Time::ZERO, n as u32, 1500), None, "{n} packets");
            assert_eq!(queue.join(Time::ZERO, n as u32, 1500), Time::millis(n + 1));
        }
        let promised: Vec<_> = (0..3).map(|n| queue.wait(Time::ZERO, n, 1500)).collect();
        assert_eq!(promised, [1, 2, 3].map(|ms| Some(Time::millis(ms))));
        // At 1 ms one leaves, and who was promised its place takes it; two places are owed.
        assert_eq!(queue.wait(Time::millis(1), 0, 1500), None);
        assert_eq!(queue.join(Time::millis(1), 0, 1500), Time::millis(201));
        assert_eq!(queue.wait(Time::millis(1), 0, 1500), Some(Time::millis(4)));
        let far = (3..403).filter_map(|n| queue.wait(Time::millis(1), n, 1500)).last();
        assert_eq!(far, Some(Time::millis(404)), "beyond what is in the queue");
        assert_eq!(queue.wait(Time::secs(9), 450, 1500), None, "empty again");
    }

    #[test]
    fn a_slow_line_holds_two_packets() {
        for kind in [HostQueue::Fifo, HostQueue::FqCodel] {
            let mut queue = queue(kind, Rate(64_000), 3);
            for n in 0..2 {
                assert_eq!(queue.wait(Time::ZERO, n, 1500), None);
                queue.join(Time::ZERO, n, 1500);
            }
            // New flows go first, but not without end.
            assert_eq!(queue.wait(Time::ZERO, 2, 1500), Some(Time::micros(187_500)));
        }
    }

    /// Sends as many packets of these lengths as fit into `span`, each flow as soon as it may; returns the bytes of each.
    fn served(queue: &mut Queue, lengths: &[u32], span: Time) -> Vec<u64> {
        let mut sent = vec![0; lengths.len()];
        let mut due: Vec<Time> = vec![Time::ZERO; lengths.len()];
        loop {
            let (flow, &now) = due.iter().enumerate().min_by_key(|(_, at)| **at).expect("flows");
            if now >= span {
                return sent;
            }
            match queue.wait(now, flow as u32, lengths[flow]) {
                Some(until) => {
                    assert!(until > now, "it waits");
                    due[flow] = until;
                }
                None => {
                    queue.join(now, flow as u32, lengths[flow]);
                    sent[flow] += lengths[flow] as u64;
                    assert!(queue.line.free.since(now) <= Time::millis(200), "{:?}", queue.line.free.since(now));
                    // Four of a flow at a time, as small queues would have it.
                    due[flow] = now.max(queue.line.free.since(queue.line.takes(4 * lengths[flow])));
                }
            }
        }
    }

    /// Three flows that always have data, of 1500, 1500 and 500 bytes, have equal bytes by turns, and keep the line busy.
    #[test]
    fn turns_are_equal_in_bytes() {
        let mut queue = queue(HostQueue::FqCodel, Rate::mbps(12), 3);
        let sent = served(&mut queue, &[1500, 1500, 500], Time::secs(3));
        let all: u64 = sent.iter().sum();
        assert!((4_490_000..=4_510_000).contains(&all), "{sent:?}: 4.5 MB in 3 s");
        assert!(sent.iter().all(|bytes| bytes.abs_diff(all / 3) < 10_000), "{sent:?}");
    }

    /// A flow alone is limited by nothing but its small queue, and a new one beside others waits for what is on the line
    /// already, not for all others' turns.
    #[test]
    fn a_new_flow_goes_first() {
        let mut queue = queue(HostQueue::FqCodel, Rate::mbps(12), 20);
        for n in 1..=30 {
            assert_eq!(queue.wait(Time::ZERO, 0, 1500), None, "alone");
            assert_eq!(queue.join(Time::ZERO, 0, 1500), Time::millis(n));
        }
        let mut queue = self::queue(HostQueue::FqCodel, Rate::mbps(12), 20);
        served(&mut queue, &[1500; 19], Time::secs(1));
        let now = Time::secs(1);
        let ahead = queue.line.free.since(now);
        assert!(ahead <= Time::millis(3), "{ahead:?}: nineteen flows wait in their transports");
        assert_eq!(queue.wait(now, 19, 1500), None, "it is new");
        queue.join(now, 19, 1500);
        // It has had its turn: the others are before it.
        let next = queue.wait(now, 19, 1500).expect("it waits");
        assert!((16..=22).contains(&(next.since(now).0 / 1_000_000)), "{next:?}");
    }

    /// A flow that does not take its turn leaves no hole: who asks next has it.
    #[test]
    fn a_turn_that_is_not_taken_is_the_next_ones() {
        let mut queue = queue(HostQueue::FqCodel, Rate::mbps(12), 3);
        for n in [0, 0, 1, 1] {
            queue.members[n].turn = Time::ZERO;
            assert_eq!(queue.wait(Time::ZERO, n as u32, 1500), None);
            queue.join(Time::ZERO, n as u32, 1500);
        }
        let turn = queue.wait(Time::ZERO, 0, 1500).expect("four are before it");
        // Flow 0 has nothing left; its packets and those of 1 have left, and flow 1 goes on at once.
        assert!(turn >= Time::millis(2), "{turn:?}");
        assert_eq!(queue.wait(Time::millis(4), 1, 1500), None);
    }

    /// An acknowledgement delays the others by its own length.
    #[test]
    fn acknowledgements_use_the_line() {
        for kind in [HostQueue::Fifo, HostQueue::FqCodel] {
            let mut queue = queue(kind, Rate::mbps(12), 1);
            queue.pass(Time::ZERO, 150);
            assert_eq!(queue.wait(Time::ZERO, 0, 1500), None);
            assert_eq!(queue.join(Time::ZERO, 0, 1500), Time::micros(1100), "{kind:?}");
        }
    }
}
