//! CoDel, controlled delay (K. Nichols, V. Jacobson, RFC 8289, 2018).
//!
//! CoDel measures a standing queue by delay, not by length: if no packet waited less than `target` for a whole
//! interval, the queue only adds delay. CoDel then drops the packet at the head, and further ones at intervals that
//! shrink with the square root of their number, until a packet has waited less than `target`. A burst that drains
//! within the interval is not affected. If a new dropping phase begins soon after the last, it starts at the rate at
//! which the last ended. CoDel decides at departure, so its port is polled.
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | TARGET | `target` | s | 5 ms | RFC 8289 section 4.2 |
//! | INTERVAL | `interval` | s | 100 ms | section 4.2 |
//! | maxpacket | `mtu` | bytes | 1500 | section 4.4 |
//! | first_above_time | `State::due` | s | | section 5.1: here the time at which dropping may begin |
//! | dropping | `State::dropping` | | | section 5.1 |
//! | drop_next | `State::next` | s | | section 5.1 |
//! | count, lastcount | `State::count`, `last_count` | packets | | section 5.1 |
//! | control_law | [`Settings::after`] | s | t + INTERVAL / sqrt(count) | section 5.3 |
//!
//! Deviations:
//! 1. An ECN-capable packet is marked instead of dropped, and is sent (as in Linux; the RFC leaves it open).
//! 2. The limit is the common one of this simulator. Where it is less than a packet, one packet may wait.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::common::{Fifo, Limit, QueueLimit};
use crate::api::Probe;
use crate::params::{Bytes, Conflict, Flag, Info, Seconds, parameters};
use crate::qdisc::{ActiveQueue, Discipline, DropCause, Dropped, QdiscInit, QdiscKind, Queued, ResolvedQueue};
use crate::units::Time;
use crate::wire::Packet;

/// CoDel.
pub struct CoDel;

parameters! {
    /// When packets are dropped or marked.
    pub struct Control {
        /// Target of the queueing delay.
        target: Seconds = 0.005, in 0.0..=1000.0, "RFC 8289 section 4.2";
        /// Time for which the delay may exceed the target; about the longest round-trip time.
        interval: Seconds = 0.1, in 1e-6..=1000.0, "RFC 8289 section 4.2";
        /// A drop never leaves fewer bytes than this in the queue.
        mtu: Bytes = 1500.0, in 0.0..=1e9, "RFC 8289 section 4.4";
        /// ECN-capable packets are marked instead of dropped.
        mark: Flag = true, "RFC 3168";
    }
}

parameters! {
    /// What a scenario can set.
    struct Params {
        /// When packets are dropped or marked.
        control: Control = Control::DEFAULT;
        /// Maximum queue length.
        limit: Limit = Limit::DEFAULT;
    }
}

impl QdiscKind for CoDel {
    const INFO: Info = Info {
        name: "codel",
        summary: "Controlled delay: drops or marks at the head of the queue while the delay stays above a target",
        source: "RFC 8289",
        params: Params::PARAMS,
    };

    fn build(&self, init: &QdiscInit<'_>) -> Discipline {
        let params = Params::of(init.values);
        Discipline::Departure(Box::new(CoDelQueue {
            settings: Settings::new(&params.control),
            queue_limit: params.limit.queue_limit(init.mean_packet),
            state: State::default(),
            queue: Fifo::default(),
        }))
    }

    fn conflicts(&self, queue: &ResolvedQueue<'_>) -> Vec<Conflict> {
        let params = Params::of(queue.values);
        params.control.conflict(params.limit.limit, queue).into_iter().collect()
    }
}

impl Control {
    /// A target that no packet waits for, or a rest that the queue cannot exceed, with this limit in bytes.
    pub fn conflict(&self, limit: f64, queue: &ResolvedQueue<'_>) -> Option<Conflict> {
        let wait = limit / queue.capacity;
        let full = "so it is full before it acts, as drop-tail is";
        if self.target >= wait {
            let (target, wait) = (1e3 * self.target, 1e3 * wait);
            let what = format!("its limit drains in {wait:.3} ms, within its target ({target:.3} ms), {full}");
            return Some(Conflict::new(["target", "limit"], what, "write a `target` below that or a longer `limit`"));
        }
        (self.mtu >= limit).then(|| {
            let mtu = self.mtu;
            let what =
                format!("it leaves `mtu` ({mtu}B) in the queue, which is not below its limit ({limit:.0}B), {full}");
            Conflict::new(["mtu", "limit"], what, "write a longer `limit`")
        })
    }
}

/// The constants of the control law.
#[derive(Clone, Copy)]
pub struct Settings {
    target: Time,
    interval: Time,
    mtu: u64,
    mark: bool,
}

impl Settings {
    /// With these constants.
    pub fn new(control: &Control) -> Settings {
        Settings {
            target: Time::from_secs_f64(control.target),
            interval: Time::from_secs_f64(control.interval),
            mtu: control.mtu as u64,
            mark: control.mark,
        }
    }
    /// When to drop again after the `count`-th drop.
    pub fn after(&self, drop: Time, count: u32) -> Time {
        drop + Time::from_secs_f64(self.interval.as_secs_f64() / libm::sqrt(count as f64))
    }
}

/// State of one queue.
pub struct State {
    /// When the delay will have been above the target for an interval; never while it is below.
    due: Time,
    dropping: bool,
    next: Time,
    count: u32,
    last_count: u32,
}

impl Default for State {
    fn default() -> State {
        State { due: Time::NEVER, dropping: false, next: Time::ZERO, count: 0, last_count: 0 }
    }
}

impl State {
    /// The next packet of the queue and whether to mark it; packets dropped before it are `dropped`.
    pub fn dequeue(
        &mut self,
        settings: &Settings,
        queue: &mut Fifo,
        now: Time,
        dropped: &mut Dropped,
    ) -> Option<(Queued, bool)> {
        let mut head = queue.pop();
        let mut bad = self.stands(settings, head, queue.bytes(), now);
        if !self.dropping && bad {
            self.begin(settings, now);
            let first = head?;
            if settings.mark && first.capable {
                return Some((first, true));
            }
            dropped.push((first, DropCause::Early));
            head = queue.pop();
            self.stands(settings, head, queue.bytes(), now);
            return head.map(|packet| (packet, false));
        }
        self.dropping &= bad;
        while self.dropping && now >= self.next {
            let packet = head?;
            self.count += 1;
            if settings.mark && packet.capable {
                self.next = settings.after(self.next, self.count);
                return Some((packet, true));
            }
            dropped.push((packet, DropCause::Early));
            head = queue.pop();
            bad = self.stands(settings, head, queue.bytes(), now);
            self.dropping = bad;
            if bad {
                self.next = settings.after(self.next, self.count);
            }
        }
        head.map(|packet| (packet, false))
    }

    /// A dropping phase begins, at the rate at which the last ended if that was recent.
    fn begin(&mut self, settings: &Settings, now: Time) {
        let lately = now.since(self.next).0 < 16 * settings.interval.0;
        let pace = self.count.saturating_sub(self.last_count);
        self.dropping = true;
        self.count = if lately && pace > 1 { pace } else { 1 };
        self.last_count = self.count;
        self.next = settings.after(now, self.count);
    }

    /// Whether the delay has been above the target for an interval, measured at the packet at the head.
    fn stands(&mut self, settings: &Settings, head: Option<Queued>, left: u64, now: Time) -> bool {
        if left <= settings.mtu || head.is_none_or(|packet| now.since(packet.since) < settings.target) {
            self.due = Time::NEVER;
            return false;
        }
        if self.due == Time::NEVER {
            self.due = now + settings.interval;
        }
        now >= self.due
    }

    /// Reports its variables.
    pub fn probe(&self, put: Probe<'_>) {
        put("dropping", self.dropping as u8 as f64);
        put("count", self.count as f64);
    }
}

struct CoDelQueue {
    settings: Settings,
    queue_limit: QueueLimit,
    state: State,
    queue: Fifo,
}

impl ActiveQueue for CoDelQueue {
    fn enqueue(&mut self, queued: Queued, _packet: &Packet, dropped: &mut Dropped) {
        if self.queue.packets() == 0 || self.queue_limit.fits((self.queue.bytes(), self.queue.packets()), queued.bytes)
        {
            self.queue.push(queued);
        } else {
            dropped.push((queued, DropCause::Overflow));
        }
    }
    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<(Queued, bool)> {
        self.state.dequeue(&self.settings, &mut self.queue, now, dropped)
    }
    fn probe(&self, put: Probe<'_>) {
        self.state.probe(put);
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Range;

    use super::*;

    const SETTINGS: Settings = Settings { target: Time::millis(5), interval: Time::millis(100), mtu: 1500, mark: true };

    /// A packet is taken every millisecond of `span`, and always ten wait that have done so for `wait` ms: when packets were
    /// dropped or marked.
    fn chosen(state: &mut State, span: Range<u64>, wait: u64, capable: bool) -> Vec<u64> {
        let (mut dropped, mut times) = (Dropped::new(), Vec::new());
        for ms in span {
            let mut queue = Fifo::default();
            for _ in 0..10 {
                queue.push(Queued { handle: 0, bytes: 1000, capable, since: Time::millis(ms - wait) });
            }
            let (_, mark) = state.dequeue(&SETTINGS, &mut queue, Time::millis(ms), &mut dropped).expect("one waits");
            assert!(capable || !mark);
            times.extend((0..dropped.len() + mark as usize).map(|_| ms));
            dropped.clear();
        }
        times
    }

    /// Above the target from 1000 ms on: nothing for an interval, then a drop, and the next ones after 100 / sqrt(n) ms: at 1200,
    /// 1270.7, 1328.4, 1378.4, 1423.2 ms.
    #[test]
    fn drops_come_ever_sooner() {
        for capable in [false, true] {
            let instants = [1100, 1200, 1271, 1329, 1379, 1424];
            assert_eq!(chosen(&mut State::default(), 1000..1430, 20, capable), instants, "{capable}");
        }
        assert_eq!(SETTINGS.after(Time::millis(200), 2).0, 270_710_678);
    }

    #[test]
    fn a_short_wait_ends_it_and_soon_after_it_goes_on_where_it_was() {
        let mut state = State::default();
        assert_eq!(chosen(&mut state, 1000..1430, 20, false).len(), 6);
        assert!(chosen(&mut state, 1430..1440, 3, false).is_empty(), "waits of 3 ms are good");
        assert!(!state.dropping);
        // A new spell after another interval. Six drops were made from the count of 1 on: it goes on with a count of 5.
        let again = chosen(&mut state, 1440..1640, 20, false);
        assert_eq!(again[..3], [1540, 1585, 1626], "1540 + 100 / sqrt(5), + 100 / sqrt(6)");
        // Much later it begins anew.
        assert!(chosen(&mut state, 1640..1641, 3, false).is_empty());
        assert_eq!(chosen(&mut state, 9000..9230, 20, false), [9100, 9200]);
    }

    #[test]
    fn a_burst_that_drains_is_let_pass() {
        // 90 packets at once, one leaves each ms: the wait falls below 5 ms within the interval.
        let (mut queue, mut dropped, mut state) = (Fifo::default(), Dropped::new(), State::default());
        for handle in 0..90 {
            queue.push(Queued { handle, bytes: 1000, capable: false, since: Time::ZERO });
        }
        for ms in 0..90 {
            assert_eq!(
                state.dequeue(&SETTINGS, &mut queue, Time::millis(ms), &mut dropped).map(|p| p.0.handle),
                Some(ms as u32)
            );
        }
        assert!(dropped.is_empty());
        // A queue of one packet is not dropped from, however long it waits.
        for ms in 1000..2000 {
            queue.push(Queued { handle: 0, bytes: 1000, capable: false, since: Time::ZERO });
            assert!(state.dequeue(&SETTINGS, &mut queue, Time::millis(ms), &mut dropped).is_some());
        }
        assert!(dropped.is_empty());
    }
}
