//! Which queues and losses of a path are signs for the guard's rule: not what late acknowledgements, both ports and the
//! trains that measure a line make, nor what the air loses where there is no queue.

use explicate_core::guard::{LeastRtt, Limit, Seen};
use explicate_core::units::Time;

/// A queue that stands on the path for so long is one that others fill, or a narrower line, however short it is: what
/// this end sends by the rate of its line leaves none.
const STANDING: Time = Time::secs(2);
/// A shorter queue is not told from acknowledgements that come late.
const LITTLE: Time = Time::millis(5);
/// Nor is one from what the peer's port has queued, bytes.
const PORT_QUEUE: f64 = 4_500.0;
/// A line counts as measured for so long after a mark of a train has come back.
const MEASURED: Time = Time::secs(2);
/// A peer that sends more than this share of its rate delays its acknowledgements by its own queue, and by what QUIC
/// has made before them.
const MUCH: f64 = 0.25;
/// Losses of the air that a clean time spares, packets.
const MOST_BORNE: f64 = 3.0;

/// What is known of queues that are no signs, and the losses that are none.
#[derive(Default)]
pub(super) struct Signs {
    /// The rates of the own port and the peer's, bytes/s, if they are known.
    ports: Option<[f64; 2]>,
    /// Since when round trips have had more than a little delay.
    standing_since: Time,
    /// When a mark of a train last came back to the own port, and what such a train queues by itself.
    measured: Option<(Time, Time)>,
    /// Packets that the air may lose before TCP's law is given a loss; less than 0 if it has lost more.
    borne: f64,
}

impl Signs {
    /// The rates of the own port and the peer's, bytes/s.
    pub(super) fn set_ports(&mut self, rates: [f64; 2]) {
        self.ports = Some(rates);
    }
    /// A mark of a train has come back to the own port; a train queues for so long by itself.
    pub(super) fn measures(&mut self, now: Time, train: Time) {
        self.measured = Some((now, train));
    }
    /// The shortest queue on the path that can be told from late acknowledgements, from what both ports may have
    /// queued, and from the trains that measure a line.
    fn shortest_queue(&self, now: Time) -> Time {
        let port = self.ports.map_or(Time::ZERO, |[own, peer]| Time::from_secs_f64(PORT_QUEUE / own.min(peer)));
        LITTLE.max(port) + self.train(now)
    }
    /// How long a train queues by itself, if the line is measured.
    fn train(&self, now: Time) -> Time {
        self.measured.filter(|(at, _)| now.since(*at) < MEASURED).map_or(Time::ZERO, |(_, train)| train)
    }
    /// What round-trip times may exceed the least one by: by the guard's rule, and where the peer sends much, by what
    /// acknowledgements wait for its port. Else a delay of [`STANDING`] may be as little as can be told from late
    /// acknowledgements, and a quarter of the round trip. A line that is measured may have what its trains queue
    /// besides, and until [`STANDING`] any queue: the port drains it. `received` came from the peer, bytes/s.
    pub(super) fn most_delay(&mut self, now: Time, least: &LeastRtt, delay: Time, received: f64) -> Time {
        let train = self.train(now);
        let most = least.most_delay() + train;
        let Some([own, peer]) = self.ports else { return most };
        let queue = Time::from_secs_f64(PORT_QUEUE / own.min(peer));
        if received > MUCH * peer {
            self.standing_since = now;
            return most.max(Time(2 * queue.0));
        }
        let little = most.min(self.shortest_queue(now).max(Time(least.get().0 / 4) + train));
        if delay <= little {
            self.standing_since = now;
        }
        let stands = now.since(self.standing_since) > STANDING;
        if stands {
            little
        } else if train > Time::ZERO {
            Time::NEVER
        } else {
            most
        }
    }
    /// A round trip ends. What the air may lose is borne in the mean of some round trips: one packet is more than that
    /// of a short one. Beside a queue on the path losses are the queue's, however short it is: who shares it takes each
    /// for a sign, and so does this end.
    pub(super) fn bear(&mut self, now: Time, limit: &Limit, seen: &Seen) {
        let queued = seen.delay > seen.most_delay.min(self.shortest_queue(now));
        let borne = if queued { 0.0 } else { self.borne + limit.borne(seen) };
        self.borne = (borne - seen.lost).clamp(-1.0, MOST_BORNE);
    }
    /// Whether more was lost than the air may lose, which counts once.
    pub(super) fn exceeds(&mut self) -> bool {
        let more = self.borne < 0.0;
        if more {
            self.borne = 0.0;
        }
        more
    }
}
