//! The capacity of the line behind a port, from trains of the port's own datagrams.
//!
//! Every `PERIOD` the port sends for `LENGTH` at twice its rate, and then pauses, so that its mean stays. A mark goes before such a
//! train and another one behind it, and the peer returns each with its time of arrival. A train that is faster than the line
//! arrives at the rate of the line (Melander, Bjorkman, Gunningberg 2000; Hu, Steenkiste, IEEE JSAC 2003); one that is not slower when it
//! arrives shows that the line carries no less. The port then sends at `SHARE` of the capacity, and at less while marks are
//! late, until the queue on the path has drained.
//!
//! What is lost of a train at a full queue was not carried: the mark behind it comes back with how many bytes of the train have arrived, and
//! only these count. Without that a queue shorter than a train made the line look 3.5 times as fast as it was, for good. After such a
//! train the next ones are slower, `GENTLE` times the rate for `GENTLE_FOR` trains, so that they fit into that queue.
//!
//! The estimators of [`explicate_core::estimate`] return what a path has left beside a load that they do not know: where the
//! port itself is the load, that is nothing at the line's rate, and nothing beyond it.
//!
//! | constant | value | source |
//! | --- | --- | --- |
//! | `PERIOD`, `LENGTH` | 25 ms, 5 ms | ours: with 20 ms of round trip a change is followed within 90 ms, and with 50 and 10 ms within 135 |
//! | `LEAST_BYTES` | ten datagrams | Dovrolis, Ramanathan, Moore 2004: short trains vary more |
//! | `SPREAD` | 1.05 | as [`explicate_core::estimate::packet_train`] |

use std::collections::VecDeque;
use std::net::SocketAddr;

use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Format, Packet};

use super::shim;

/// From train to train, and no less than so many times what a train takes to leave.
const PERIOD: Time = Time::millis(25);
const PAUSES: f64 = 5.0;
/// How long a train takes to leave.
const LENGTH: Time = Time::millis(5);
/// A shorter train says nothing.
const LEAST_BYTES: u64 = 15_000;
/// A train that takes longer to arrive than to leave, by this factor, was faster than the line.
const SPREAD: f64 = 1.05;
/// How much faster than the port's rate a train leaves.
const FAST: f64 = 2.0;
/// The same behind a train that lost much, and for how many trains.
const GENTLE: f64 = 1.25;
const GENTLE_FOR: u32 = 16;
/// A train lost much if less than this share of its bytes has arrived: of ten datagrams, the fewest in a train, two were lost.
const WHOLE: f64 = 0.85;
/// Of the capacity, what the port uses.
const SHARE: f64 = 0.97;
/// Differences of estimates up to this share of the capacity are noise, and averaged with this weight.
const NOISE: f64 = 0.15;
const WEIGHT: f64 = 0.25;
/// The queue on the path is to be empty after this time, and takes at most this share of the rate.
const DRAIN: Time = Time::millis(500);
const MOST_DRAINED: f64 = 0.5;
/// A queue on the path that is shorter is noise.
const LEAST_QUEUE: Time = Time::millis(5);
/// Over so long the least delay is taken.
const LEAST_DELAY: Time = Time::secs(30);
/// Trains whose marks have not come back: the most that are kept, and how many for so long show that the peer returns none.
const MOST_UNDER_WAY: usize = 64;
const UNANSWERED: usize = 8;
const PATIENCE: Time = Time::secs(2);

/// A mark of a train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Number of the train.
    pub train: u32,
    /// It stands behind the train.
    pub last: bool,
    /// When it arrived at the peer, microseconds of its clock modulo 2^32; `None` on the way there.
    pub arrived: Option<u32>,
    /// In one that is returned from behind a train: IP bytes of the train and its tunnel that have arrived. Older gateways do not count them.
    pub bytes: Option<u64>,
}

/// The bits for a mark's bytes, which stand there plus one; 0 for none, or more.
const BYTES: u32 = (1 << 24) - 1;

/// Kinds of marks, beside those of [`parity`](super::parity).
const FIRST: u8 = 3;
const LAST: u8 = 4;
/// Added in those that are returned.
const RETURNED: u8 = 2;

impl Mark {
    /// Its packet, to a peer with so many bytes of IP and UDP headers.
    pub fn packet(&self, tunnel: u32, ip_headers: usize) -> Packet {
        let mut packet = shim::packet(tunnel, Congestion::new(Format::MINIMAL), ip_headers, 0);
        let kind = if self.last { LAST } else { FIRST } + if self.arrived.is_some() { RETURNED } else { 0 };
        let bytes = self.bytes.filter(|bytes| *bytes < BYTES as u64).map_or(0, |bytes| bytes as u32 + 1);
        packet.transport.set_window((kind as u32) << 24 | bytes);
        packet.transport.set_packet_number(self.train);
        packet.transport.set_segment(self.arrived.unwrap_or(0));
        packet
    }
    /// The mark that a packet is, if it is one.
    pub fn read(packet: &Packet) -> Option<Mark> {
        let [kind, ..] = packet.transport.window().to_be_bytes();
        let (returned, kind) = if kind > LAST { (true, kind - RETURNED) } else { (false, kind) };
        let arrived = returned.then(|| packet.transport.segment());
        let bytes = u64::from(packet.transport.window() & BYTES).checked_sub(1);
        matches!(kind, FIRST | LAST).then(|| Mark {
            train: packet.transport.packet_number(),
            last: kind == LAST,
            arrived,
            bytes: bytes.filter(|_| returned),
        })
    }
}

/// Who returns the marks of a train: the number of the tunnel, and its address.
pub type Peer = (u32, SocketAddr);

/// A train.
#[derive(Clone, Copy)]
struct Train {
    number: u32,
    peer: Peer,
    began: Time,
    /// How long it took to leave; zero while it leaves.
    took: Time,
    /// IP bytes behind the first mark, and those of its tunnel.
    bytes: u64,
    own: u64,
    /// How much faster than the port's rate it leaves.
    speed: f64,
    /// When its first mark arrived.
    arrived: Option<u32>,
}

/// The trains of a port, and what they have shown.
pub struct Trains {
    next: Time,
    number: u32,
    leaving: Option<Train>,
    under_way: VecDeque<Train>,
    /// Capacity of the line, and the least rate of the port, bytes/s.
    capacity: f64,
    floor: f64,
    /// Least difference of the clocks and the delay, microseconds modulo 2^32, and when it was taken.
    least: Option<(u32, Time)>,
    queue: Time,
    /// A train has shown something.
    judged: bool,
    /// So many trains are gentle.
    gentle: u32,
}

impl Trains {
    /// Trains of a port that sends at `rate` at first and no slower than `floor`, bytes/s. Their numbers begin at `number`.
    pub fn new(now: Time, rate: f64, floor: f64, number: u32) -> Trains {
        Trains {
            next: now,
            number,
            leaving: None,
            under_way: VecDeque::new(),
            capacity: rate / SHARE,
            floor,
            least: None,
            queue: Time::ZERO,
            judged: false,
            gentle: 0,
        }
    }
    /// The capacity of the line, bytes/s, if a train has shown it; at most twice the rate at which the trains began.
    pub fn found(&self) -> Option<f64> {
        self.judged.then_some(self.capacity)
    }
    /// What the port is to send at, bytes/s.
    pub fn rate(&self) -> f64 {
        let late = self.queue.since(LEAST_QUEUE).as_secs_f64() / DRAIN.as_secs_f64();
        (self.capacity * (SHARE - late.min(MOST_DRAINED))).max(self.floor)
    }
    /// What a train queues before a line that is as fast as the port's rate.
    pub fn queue_of_one(&self) -> Time {
        let bytes = (LEAST_BYTES as f64).max(FAST * self.capacity * LENGTH.as_secs_f64());
        Time::from_secs_f64(bytes * (1.0 - 1.0 / FAST) / self.capacity)
    }
    /// Whether the marks of the last trains do not come back.
    pub fn is_unanswered(&self, now: Time) -> bool {
        self.under_way.iter().filter(|train| now.since(train.began) > PATIENCE).count() >= UNANSWERED
    }
    /// How much faster than its rate the port sends now.
    pub fn speed(&self) -> f64 {
        self.leaving.as_ref().map_or(1.0, |train| train.speed)
    }

    /// Whether a train is to begin.
    pub fn is_due(&self, now: Time) -> bool {
        self.leaving.is_none() && now >= self.next
    }
    /// A train begins: the mark before it.
    pub fn begin(&mut self, now: Time, peer: Peer) -> Mark {
        self.number = self.number.wrapping_add(1);
        let (took, bytes, own, arrived) = (Time::ZERO, 0, 0, None);
        let speed = if self.gentle > 0 { GENTLE } else { FAST };
        self.gentle = self.gentle.saturating_sub(1);
        self.leaving = Some(Train { number: self.number, peer, began: now, took, bytes, own, speed, arrived });
        Mark { train: self.number, last: false, arrived: None, bytes: None }
    }
    /// So many IP bytes have left, of a tunnel or of none, at this rate, bytes/s. If a train ends with them: the mark behind it, for which
    /// peer, and the pause after it. A train ends without all of its bytes when they do not come.
    pub fn left(&mut self, now: Time, (bytes, tunnel): (u64, Option<u32>), rate: f64) -> Option<(Mark, Peer, Time)> {
        let train = self.leaving.as_mut()?;
        train.bytes += bytes;
        train.own += if tunnel == Some(train.peer.0) { bytes } else { 0 };
        let whole = LEAST_BYTES.max((FAST * rate * LENGTH.as_secs_f64()) as u64);
        let took = now.since(train.began).as_secs_f64();
        if train.bytes < whole && took < whole as f64 / rate {
            return None;
        }
        let seconds = train.bytes as f64 / rate;
        self.next = train.began + PERIOD.max(Time::from_secs_f64(PAUSES * seconds / FAST));
        let mark = Mark { train: train.number, last: true, arrived: None, bytes: None };
        Some((mark, train.peer, Time::from_secs_f64(seconds * (1.0 - 1.0 / train.speed))))
    }
    /// The mark behind a train, which is so long, has left: the train is judged when both marks have come back.
    pub fn end(&mut self, now: Time, bytes: u64) {
        let Some(mut train) = self.leaving.take() else { return };
        train.bytes += bytes;
        train.own += bytes;
        train.took = now.since(train.began);
        if self.under_way.len() == MOST_UNDER_WAY {
            self.under_way.pop_front();
        }
        if train.bytes >= LEAST_BYTES {
            self.under_way.push_back(train);
        }
    }

    /// A mark has come back: whether the rate may have changed.
    pub fn returned(&mut self, now: Time, mark: Mark) -> bool {
        let Some(arrived) = mark.arrived else { return false };
        let leaving = self.leaving.iter_mut().find(|train| train.number == mark.train);
        let known = leaving.or_else(|| self.under_way.iter_mut().find(|train| train.number == mark.train));
        let Some(train) = known else { return false };
        if !mark.last {
            train.arrived = Some(arrived);
            let difference = arrived.wrapping_sub(micros(train.began));
            self.delay(now, difference);
            return true;
        }
        let Some(at) = self.under_way.iter().position(|train| train.number == mark.train) else { return false };
        // What left before it and has not come back is lost.
        let train = self.under_way.drain(..=at).next_back();
        let Some((train, first)) = train.and_then(|train| Some((train, train.arrived?))) else { return false };
        let late = self.lateness(arrived.wrapping_sub(micros(train.began + train.took)));
        let share = mark.bytes.map_or(1.0, |bytes| (bytes as f64 / train.own as f64).min(1.0));
        self.judge(&train, Time::micros(arrived.wrapping_sub(first) as u64), late, share);
        true
    }
    /// How much more a difference of clocks and delay is than the least one.
    fn lateness(&self, difference: u32) -> Time {
        let more = self.least.map_or(0, |(least, _)| difference.wrapping_sub(least) as i32);
        Time::micros(more.max(0) as u64)
    }
    /// The first mark of a train took this difference of clocks and delay.
    fn delay(&mut self, now: Time, difference: u32) {
        self.queue = self.lateness(difference);
        let is_old = self.least.is_none_or(|(_, at)| now.since(at) > LEAST_DELAY);
        if is_old || self.queue == Time::ZERO {
            (self.least, self.queue) = (Some((difference, now)), Time::ZERO);
        }
    }
    /// A train took so long to arrive, and the mark behind it came later than the least delay by so much. One that was as fast as when
    /// it left, but late, waited behind other packets, or its first mark did, and says nothing. Of its bytes this share has arrived.
    fn judge(&mut self, train: &Train, took: Time, late: Time, share: f64) {
        let (sent, came) = (train.took.as_secs_f64().max(1e-6), took.as_secs_f64().max(1e-6));
        let bytes = train.bytes as f64 * share;
        if share < WHOLE {
            self.gentle = GENTLE_FOR;
        } else if came < SPREAD * sent {
            if late.0 < train.took.0 / 2 {
                self.capacity = self.capacity.max(bytes / sent);
                self.judged = true;
            }
            return;
        }
        self.judged = true;
        let change = bytes / came - self.capacity;
        let weight = if change.abs() > NOISE * self.capacity { 1.0 } else { WEIGHT };
        self.capacity += weight * change;
    }
}

fn micros(time: Time) -> u32 {
    (time.0 / 1000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1500;
    const MARK: u64 = 72;
    const DELAY: Time = Time::millis(10);
    /// The clock of the peer is ahead by so much, microseconds.
    const AHEAD: u32 = u32::MAX - 500_000;

    fn peer() -> Peer {
        (1, SocketAddr::from(([192, 0, 2, 1], 7)))
    }

    /// A port that always has something to send, before a line whose rate changes and whose queue has so much room.
    struct Path {
        trains: Trains,
        room: Time,
        /// Bytes that have arrived, packets that were lost, and what had arrived with the last first mark.
        arrived: u64,
        lost: u64,
        first: u64,
        /// The line is free again, and the port.
        line: Time,
        port: Time,
        returning: VecDeque<(Time, Mark)>,
        most_queue: Time,
        /// The first mark of this train is read 10 ms late.
        read_late: u32,
    }

    impl Path {
        fn new(rate: f64) -> Path {
            let trains = Trains::new(Time::ZERO, rate, 1e4, 7);
            let (line, port, most_queue) = (Time::ZERO, Time::ZERO, Time::ZERO);
            let (room, arrived, lost, first) = (Time::NEVER, 0, 0, 0);
            Path {
                trains,
                room,
                arrived,
                lost,
                first,
                line,
                port,
                returning: VecDeque::new(),
                most_queue,
                read_late: 0,
            }
        }
        /// When a packet arrives; one that finds no room counts as lost.
        fn carry(&mut self, bytes: u64, capacity: f64) -> Time {
            let left = self.line.max(self.port) + Time::from_secs_f64(bytes as f64 / capacity);
            if left.since(self.port) > self.room {
                self.lost += 1;
                return Time::NEVER;
            }
            self.arrived += bytes;
            self.line = left;
            self.most_queue = self.most_queue.max(self.line.since(self.port));
            self.line + DELAY
        }
        fn mark(&mut self, mark: Mark, capacity: f64) {
            let late = if mark.train == self.read_late && !mark.last { Time::millis(10) } else { Time::ZERO };
            let at = self.carry(MARK, capacity);
            if at == Time::NEVER {
                return;
            }
            self.first = if mark.last { self.first } else { self.arrived };
            let (at, bytes) = (at + late, mark.last.then(|| self.arrived - self.first));
            let arrived = Some(((at.0 / 1000) as u32).wrapping_add(AHEAD));
            self.returning.push_back((at + DELAY, Mark { arrived, bytes, ..mark }));
        }
        /// One datagram leaves.
        fn send(&mut self, capacity: f64) {
            while self.returning.front().is_some_and(|(at, _)| *at <= self.port) {
                let (at, mark) = self.returning.pop_front().unwrap();
                self.trains.returned(at, mark);
            }
            let (now, rate) = (self.port, self.trains.rate());
            if self.trains.is_due(now) {
                let mark = self.trains.begin(now, peer());
                self.mark(mark, capacity);
            }
            self.carry(PACKET, capacity);
            self.port += Time::from_secs_f64(PACKET as f64 / rate / self.trains.speed());
            if let Some((mark, _, pause)) = self.trains.left(now, (PACKET, Some(1)), rate) {
                self.mark(mark, capacity);
                self.trains.end(now, MARK);
                self.port += pause;
            }
        }
        /// Sends over a line of this capacity until `end`; milliseconds after which the rate has stayed within a tenth of it.
        fn until(&mut self, end: Time, capacity: f64) -> f64 {
            let began = self.port;
            let mut last_off = began;
            while self.port < end {
                self.send(capacity);
                if (self.trains.rate() / (SHARE * capacity) - 1.0).abs() > 0.1 {
                    last_off = self.port;
                }
            }
            last_off.since(began).as_secs_f64() * 1e3
        }
    }

    /// The line changes between 20 and 10 Mbit/s, at another place between two trains each time.
    #[test]
    fn changes_are_followed_within_100_ms_wherever_they_come_between_two_trains() {
        let mut path = Path::new(2.5e6);
        path.until(Time::secs(3), 2.5e6);
        let mut took = Vec::new();
        for step in 0..200 {
            let capacity = [1.25e6, 2.5e6][step % 2];
            let (began, mut follows) = (path.port, None);
            let end = path.port + Time::micros(2_000_000 + 7_300 * step as u64);
            while path.port < end {
                path.send(capacity);
                let is_near = (0.8..1.2).contains(&(path.trains.rate() / capacity));
                follows = follows.or(is_near.then(|| path.port.since(began).as_secs_f64() * 1e3));
            }
            took.push(follows.unwrap());
        }
        took.sort_by(f64::total_cmp);
        assert!(took[199] <= 100.0, "{took:.0?} ms");
    }

    #[test]
    fn a_rate_is_found_from_below_and_above_and_changes_are_followed() {
        let mut path = Path::new(1e5);
        let found = path.until(Time::secs(5), 2.5e6);
        assert!(found < 1000.0, "from 0.8 to 20 Mbit/s in {found} ms");
        let narrow = path.until(Time::secs(10), 1.25e6);
        assert!(narrow < 1000.0, "to 10 Mbit/s, and the queue has drained, in {narrow} ms");
        path.most_queue = Time::ZERO;
        path.until(Time::secs(15), 1.25e6);
        assert!(path.most_queue < Time::millis(15), "{:?}: a train's own queue", path.most_queue);
        let wide = path.until(Time::secs(20), 2.5e6);
        assert!(wide < 150.0, "to 20 Mbit/s in {wide} ms");
        let faster = path.until(Time::secs(25), 12.5e6);
        assert!(faster < 400.0, "to 100 Mbit/s in {faster} ms");
    }

    /// A line of 2.1 Mbit/s whose queue takes 5 kB, a third of a train: the port begins with twice its rate.
    #[test]
    fn a_line_whose_queue_is_shorter_than_a_train_is_found() {
        let capacity = 262_500.0;
        let mut path = Path { room: Time::from_secs_f64(5000.0 / capacity), ..Path::new(500_000.0) };
        let (mut rates, mut before) = (Vec::new(), (0, 0));
        while path.port < Time::secs(35) {
            path.send(capacity);
            let rate = path.trains.rate() / capacity;
            assert!(rate < 2.0, "{rate} times the line after {:?}", path.port);
            if path.port < Time::secs(5) {
                before = (path.arrived, path.lost);
            } else {
                rates.push(rate);
            }
        }
        let (arrived, lost) = before;
        rates.sort_by(f64::total_cmp);
        assert!(rates[0] > 0.8 && rates[rates.len() - 1] < 1.1, "{} to {}", rates[0], rates[rates.len() - 1]);
        let (used, lost) = ((path.arrived - arrived) as f64 / 30.0 / capacity, (path.lost - lost) as f64);
        let lost = lost / (lost + (path.arrived - arrived) as f64 / PACKET as f64);
        assert!(used > 0.9 && lost < 0.02, "{used} of the line, {lost} lost");
    }

    #[test]
    fn what_the_line_carries_is_known_when_a_train_has_come_back() {
        let mut path = Path::new(1.25e6);
        assert_eq!(path.trains.found(), None);
        path.until(Time::millis(15), 2e6);
        assert_eq!(path.trains.found(), None, "the first marks are on their way");
        path.until(Time::secs(1), 2e6);
        let found = path.trains.found().unwrap();
        assert!((found / 2e6 - 1.0).abs() < 0.05, "{found}");
    }

    /// The peer is busy when the first mark of a train arrives: the train seems as short as when it left.
    #[test]
    fn a_mark_that_is_read_late_shows_no_wider_line() {
        let mut path = Path::new(2.5e6);
        path.until(Time::secs(2), 2.5e6);
        path.read_late = path.trains.number + 2;
        while path.trains.number < path.read_late + 4 {
            path.send(2.5e6);
            assert!(path.trains.rate() < 2.6e6, "{}", path.trains.rate());
        }
    }

    #[test]
    fn marks_that_are_lost_forged_or_late_change_nothing() {
        let mut trains = Trains::new(Time::ZERO, 1e6, 1e4, 0);
        let first = trains.begin(Time::ZERO, peer());
        assert_eq!(trains.left(Time::ZERO, (3000, None), 1e6), None);
        let (last, _, pause) = trains.left(Time::millis(10), (20_000, None), 1e6).unwrap();
        assert_eq!((pause, trains.is_due(Time::millis(11))), (Time::from_secs_f64(0.0115), false));
        trains.end(Time::millis(10), 100);
        let rate = trains.rate();
        let unknown = Mark { train: 9, arrived: Some(1), ..last };
        for mark in [first, last, unknown, Mark { arrived: Some(1), ..last }] {
            trains.returned(Time::millis(20), mark);
            assert_eq!(trains.rate(), rate, "{mark:?}");
        }
    }

    #[test]
    fn a_peer_that_returns_no_marks_is_noticed_and_one_lost_mark_is_not() {
        let mut trains = Trains::new(Time::ZERO, 1e6, 1e4, 0);
        let mut unanswered = Vec::new();
        for i in 0..20 {
            trains.begin(Time::secs(i), peer());
            trains.left(Time::secs(i), (20_000, None), 1e6);
            trains.end(Time::secs(i), MARK);
            unanswered.push(trains.is_unanswered(Time::secs(i)));
        }
        assert_eq!(unanswered.iter().position(|is| *is), Some(2 + UNANSWERED));
    }

    #[test]
    fn marks_are_read_as_they_were_written() {
        for last in [false, true] {
            for arrived in [None, Some(0), Some(u32::MAX)] {
                for bytes in [None, Some(0), Some(BYTES as u64 - 1)] {
                    let mark = Mark { train: 77, last, arrived, bytes: bytes.filter(|_| arrived.is_some()) };
                    assert_eq!(Mark::read(&mark.packet(1, 28)), Some(mark));
                }
            }
        }
        let beyond = Mark { train: 77, last: true, arrived: Some(1), bytes: Some(BYTES as u64) };
        assert_eq!(Mark::read(&beyond.packet(1, 28)).unwrap().bytes, None, "more than it holds is not told");
        assert_eq!(Mark::read(&shim::packet(1, Congestion::new(Format::MINIMAL), 28, 9)), None);
    }
}
