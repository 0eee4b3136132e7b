//! The downstream edge: one entry for each XCP-i router at the other side of a cloud, with the virtual router that
//! represents the cloud.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::at_once::{Asker, Watch};
use super::edge::{BEHALF, MESSAGE_LEN, Measured};
use super::message::{Kind, Message, unpack};
use super::shared::Memory;
use super::{Law, Params, Results, Unknown};
use crate::agent::{Address, Control};
use crate::api::{PortView, Router};
use crate::params::Values;
use crate::protocols::common::rate_header::SECONDS;
use crate::protocols::common::xcp_router::{self, Pools, XcpRouter};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// Unanswered requests after which a path is broken (paper I section III-A.3).
const TRIES: u8 = 3;

/// Share of a cloud's capacity that is used until an unknown queue has drained.
const DRAINING: f64 = 0.9;

/// The upstream edge of a cloud, from the view of its downstream edge.
#[derive(Default)]
pub(super) struct Upstream {
    /// Distinguishes answers to our own requests from others.
    nonce: u64,
    /// The cookie that the other side requires in a request.
    cookie: u64,
    /// Requests since the last answer, and the deadline of the last one.
    tries: u8,
    deadline: Time,
    /// The other side is requested to compute on our behalf, and has accepted.
    behalf: bool,
    accepted: bool,
    /// Three requests were not answered.
    pub(super) broken: bool,
    /// When to send a periodic request.
    refresh_at: Time,
    /// Whether the period is the initial guess, because no packet has stated a round-trip time yet, and whether it was
    /// in the last request.
    guessed: bool,
    asked_guess: bool,
    last_seen: Time,
    /// Plain routers in the cloud, by the last packet.
    plain: u8,
    /// Bytes that arrived from there since the last result.
    bytes: f64,
    /// Available bandwidth of the cloud for the virtual router, bytes/s, and when the last result arrived.
    pub(super) bandwidth: Option<f64>,
    updated_at: Time,
    /// If a result counts once ([`Law::counts_once`]), the newest one, until the end of the control interval.
    waiting: Option<f64>,
    /// What [`Law::Shared`] remembers.
    shared: Memory,
    /// Capacity of the cloud for this traffic, bytes/s: its available bandwidth plus our traffic during the
    /// measurement.
    capacity: f64,
    /// Delay of results: the minimum of this span and of the one before, and when this one began, ns.
    least: [u64; 2],
    least_since: Time,
    /// Excess of the last two delays over the minimum.
    longer: [u64; 2],
    /// The route has changed, so even the minimum may contain a queue; and the delay of the last result, ns.
    draining: bool,
    delay: Option<u64>,
    /// With results at once, what asks for them.
    pub(super) watch: Option<Watch>,
    /// The virtual router, and the inputs of its last control interval.
    pub(super) router: XcpRouter,
    handed_out: HandedOut,
}

/// Inputs and result of a virtual router's control law (eq. 1), for observation.
#[derive(Default)]
struct HandedOut {
    /// Spare bandwidth, bytes/s.
    spare: f64,
    /// Persistent queue, bytes.
    queue: f64,
    /// Aggregate feedback, bytes/s.
    feedback: f64,
}

impl Upstream {
    /// A result was delayed by `delay` ns, by another clock.
    fn watch_delay(&mut self, now: Time, delay: u64, span: Time) {
        if now.since(self.least_since) >= span {
            (self.least, self.least_since) = ([u64::MAX, self.least[0]], now); // a path may have become longer
        }
        // Only differences count, so an offset between the clocks has no effect.
        let sooner = |a: u64, b: u64| if a.wrapping_sub(b) as i64 <= 0 { a } else { b };
        self.least[0] = if self.least[0] == u64::MAX { delay } else { sooner(delay, self.least[0]) };
        let least = if self.least[1] == u64::MAX { self.least[0] } else { sooner(self.least[0], self.least[1]) };
        self.longer = [delay.wrapping_sub(least), self.longer[0]];
    }
    /// The excess queue of the cloud has drained, judged by the last result, its delay and the time since the one
    /// before (s): with `left` bytes/s to spare, a queue would have reduced the delay by `left * elapsed / capacity`
    /// or to the minimum.
    fn watch_drain(&mut self, now: Time, delay: u64, left: f64, span: Time) {
        let elapsed = now.since(self.updated_at).as_secs_f64();
        let shorter = self.delay.map_or(f64::INFINITY, |last| last.wrapping_sub(delay) as i64 as f64 * 1e-9);
        let emptied = left > 0.0 && shorter * self.capacity < 0.5 * left * elapsed;
        self.draining &= !emptied && now.since(self.least_since) < span;
        self.delay = Some(delay);
    }
    /// The cloud has changed, and nothing is known about the new one.
    fn forget(&mut self, now: Time) {
        (self.bandwidth, self.waiting, self.shared) = (None, None, Memory::default());
        (self.least, self.least_since, self.longer) = ([u64::MAX; 2], now, [0; 2]);
        (self.draining, self.delay) = (true, None);
    }
    #[cfg(test)]
    pub(super) fn nonce(&self) -> u64 {
        self.nonce
    }
    /// Ends the virtual router's control interval, with spare bandwidth by the traffic that it measured.
    fn control(&mut self, now: Time, spare: impl FnOnce(f64) -> f64) {
        let router = &mut self.router;
        let handed = &mut self.handed_out;
        handed.queue = router.mean_queue;
        router.control(
            now,
            |y| {
                handed.spare = spare(y);
                handed.spare
            },
            1.0,
        );
        handed.feedback = router.res_pos - router.res_neg;
    }
    /// Ends the control interval if it is over, by the law that counts.
    fn end_interval(&mut self, now: Time, rules: &Rules) {
        if rules.params.law.counts_once() {
            self.hand_out(now, rules);
        } else if self.router.control_at <= now {
            let share = if self.draining && rules.drain > 0.0 { DRAINING } else { 1.0 };
            let drained = rules.drain * self.queue() / self.router.avg_rtt.max(1e-6);
            let capacity = share * self.capacity - drained;
            let (left, of_capacity) = (self.bandwidth.unwrap_or(0.0), rules.params.law == Law::Capacity);
            self.control(now, |y| if of_capacity { capacity - y } else { left });
        }
    }
    /// Distributes the newest result, if there is one and a mean RTT has passed since the last.
    fn hand_out(&mut self, now: Time, rules: &Rules) {
        let Some(left) = self.waiting.take_if(|_| self.router.control_at <= now) else { return };
        self.bandwidth = Some(left);
        if rules.params.law != Law::Shared {
            return self.control(now, |_| left);
        }
        let elapsed = now.since(self.router.interval_began).as_secs_f64();
        let known = self.shared.end_interval(left, self.router.sum_x * SECONDS / elapsed, rules.params.spare_multiple);
        self.control(now, |load| known.change(load));
    }
    /// The first round-trip time that a packet states replaces the guess, a control interval before a mean is known.
    /// Returns whether this is that packet.
    fn hears_rtt(&mut self, now: Time, packet: &Packet) -> bool {
        let heard = self.guessed && packet.congestion.is_standard() && packet.congestion.rtt() > 0;
        if heard {
            self.guessed = false;
            self.router.begin(now, packet.congestion.rtt());
            if self.accepted {
                self.refresh_at = now;
            }
            self.watch.iter_mut().for_each(|watch| watch.restart(now));
        }
        heard
    }
    /// Interval between measurements of this cloud: as configured, or the mean RTT.
    fn interval(&self, rules: &Rules) -> Time {
        rules.period.unwrap_or(Time::from_secs_f64(self.router.avg_rtt)).max(rules.least_period)
    }
    /// Persistent queue in the cloud, bytes.
    fn queue(&self) -> f64 {
        Time(self.longer[0].min(self.longer[1])).as_secs_f64() * self.capacity
    }
}

struct Rules {
    params: Params,
    /// Of the virtual routers.
    xcp: xcp_router::Params,
    /// beta / alpha: share of a queue that counts as load.
    drain: f64,
    timeout: Time,
    idle: Time,
    period: Option<Time>,
    least_period: Time,
}

/// All clouds upstream of a node.
pub(super) struct Clouds {
    rules: Rules,
    rng: Rng,
    pub(super) table: BTreeMap<u32, Upstream>,
    /// Whether others are requested to measure clouds; otherwise this node receives results unrequested.
    asks: bool,
    /// With results at once, this node.
    asker: Option<Asker>,
    /// Number of requests that may be sent now, and the time of that number.
    allowance: f64,
    allowed_at: Time,
    pub(super) requests: u64,
    pub(super) detections: u64,
    pub(super) unlisted: u64,
}

impl Clouds {
    pub(super) fn new(own: Address, values: &Values, rng: Rng, asks: bool) -> Clouds {
        let (params, xcp) = (Params::of(values), xcp_router::Params::of(values));
        let rules = Rules {
            drain: if params.cloud_queue && xcp.alpha > 0.0 { xcp.beta / xcp.alpha } else { 0.0 },
            timeout: Time::from_secs_f64(params.request_timeout),
            idle: Time::from_secs_f64(params.idle),
            period: params.period.map(Time::from_secs_f64),
            least_period: Time::from_secs_f64(params.least_period),
            params,
            xcp: xcp_router::Params { pools: Pools::Draft, ..xcp },
        };
        Clouds {
            asks: asks && params.results == Results::Messages,
            asker: (asks && params.results == Results::AtOnce).then(|| Asker { own, values: values.clone() }),
            allowance: params.requests_per_s,
            rules,
            rng,
            table: BTreeMap::new(),
            allowed_at: Time::ZERO,
            requests: 0,
            detections: 0,
            unlisted: 0,
        }
    }

    /// A packet has crossed the cloud after `from`, with this number of plain routers. Returns whether there is a
    /// message to send.
    pub(super) fn handle_packet(
        &mut self,
        now: Time,
        (from, plain): (Address, u8),
        packet: &mut Packet,
        port: &PortView,
        out: &mut Vec<Control>,
    ) -> bool {
        let known = self.table.contains_key(&from.0);
        let (holds, asks) = (self.rules.params.unknown == Unknown::Hold, self.asks);
        let Some(entry) = self.find_or_add(now, from) else {
            hold(packet);
            return false;
        };
        if known && entry.plain != plain {
            entry.forget(now); // the route has changed
        }
        entry.plain = plain;
        entry.bytes += packet.ip_len as f64;
        let heard = entry.hears_rtt(now, packet);
        if entry.router.queue_at <= now {
            entry.router.sample_queue(now, port);
        }
        entry.router.on_arrival(now, packet, port);
        if entry.bandwidth.is_some() {
            entry.router.answer(packet, port);
        } else if holds && !entry.broken {
            hold(packet);
        }
        if asks && (!known || (entry.broken && entry.deadline == Time::NEVER)) {
            entry.tries = 0;
            self.ask(now, from, out);
            return true;
        }
        heard || !known
    }

    /// A packet has crossed the cloud after `from`, which is to compute on this node's behalf.
    pub(super) fn see_packet(&mut self, now: Time, from: Address, packet: &mut Packet, out: &mut Vec<Control>) -> bool {
        let known = self.table.contains_key(&from.0);
        let holds = self.rules.params.unknown == Unknown::Hold;
        let Some(entry) = self.find_or_add(now, from) else { return false };
        entry.behalf = true;
        if holds && !entry.accepted && !entry.broken {
            hold(packet);
        }
        let heard = entry.hears_rtt(now, packet);
        let asks = !known || (entry.broken && entry.deadline == Time::NEVER);
        if asks {
            entry.tries = 0;
            self.ask(now, from, out);
        }
        asks || heard
    }

    /// The entry of `from`, from which a packet has arrived.
    fn find_or_add(&mut self, now: Time, from: Address) -> Option<&mut Upstream> {
        self.detections += 1;
        if !self.table.contains_key(&from.0) && !self.make_room(now, from) {
            self.unlisted += 1;
            return None;
        }
        let entry = self.table.get_mut(&from.0)?;
        entry.last_seen = now;
        Some(entry)
    }

    /// Adds an entry for `from`, if necessary in place of one that never answered. Entries that have answered are
    /// kept.
    fn make_room(&mut self, now: Time, from: Address) -> bool {
        if self.table.len() >= self.rules.params.table as usize {
            let silent = self.table.iter().find(|(_, e)| e.broken).map(|(&a, _)| a);
            let Some(silent) = silent else { return false };
            self.table.remove(&silent);
        }
        let rng = Rng::stream(self.rng.next_u64(), "virtual");
        let watch = self.asker.as_ref().map(|asker| asker.watch(now, from, rng.clone()));
        let mut router = XcpRouter::new(self.rules.xcp, rng);
        router.interval_began = now;
        router.control_at += now;
        router.queue_at += now;
        let entry = Upstream {
            nonce: self.rng.next_u64(),
            deadline: Time::NEVER,
            refresh_at: Time::NEVER,
            // Only the capacity does not depend on the period.
            guessed: self.rules.period.is_none() && self.rules.params.law != Law::Capacity,
            last_seen: now,
            updated_at: now,
            least: [u64::MAX; 2],
            least_since: now,
            watch,
            router,
            ..Upstream::default()
        };
        self.table.insert(from.0, entry);
        true
    }

    /// Sends a request, unless too many were recently sent to nodes that have not answered; then it waits.
    fn ask(&mut self, now: Time, to: Address, out: &mut Vec<Control>) {
        let rate = self.rules.params.requests_per_s;
        let gained = now.since(self.allowed_at).as_secs_f64() * rate;
        (self.allowance, self.allowed_at) = ((self.allowance + gained).min(rate.max(1.0)), now);
        let Some(entry) = self.table.get_mut(&to.0) else { return };
        // Nodes that have answered do not wait behind addresses that may be forged.
        if self.allowance < 1.0 && !entry.accepted {
            entry.deadline = now + Time::from_secs_f64(1.0 / rate);
            return;
        }
        self.allowance = (self.allowance - 1.0).max(0.0);
        self.requests += 1;
        entry.tries += 1;
        entry.deadline = now + self.rules.timeout;
        (entry.refresh_at, entry.asked_guess) = (Time::NEVER, entry.guessed);
        let (index, second) = (if entry.behalf { BEHALF } else { 0 }, entry.interval(&self.rules).0);
        let message = Message { index, first: entry.cookie, second, ..Message::new(Kind::Request, entry.nonce) };
        out.push(Control { peer: to, ip_len: MESSAGE_LEN, message: message.to_bytes() });
    }

    pub(super) fn handle(&mut self, now: Time, from: Address, message: &Message, out: &mut Vec<Control>) {
        let Some(entry) = self.table.get_mut(&from.0).filter(|e| e.nonce == message.nonce) else { return };
        match message.kind {
            Kind::Challenge if entry.cookie != message.first => {
                (entry.cookie, entry.tries) = (message.first, 0);
                self.ask(now, from, out);
            }
            Kind::Acknowledge => {
                (entry.tries, entry.deadline, entry.broken) = (0, Time::NEVER, false);
                entry.accepted = true;
                let late = entry.asked_guess && !entry.guessed; // a round-trip time was stated after the request
                entry.refresh_at = if late { now } else { now + Time(self.rules.idle.0 / 3) };
            }
            Kind::Result => {
                // The two clocks need the same rate, but not the same time.
                let (delay, left) = (now.0.wrapping_sub(message.second), message.first as i64 as f64);
                entry.watch_drain(now, delay, left, self.rules.idle);
                entry.watch_delay(now, delay, self.rules.idle);
                self.learn(now, from, Measured { left, capacity: unpack(message.index) });
            }
            Kind::Probe => {
                let echo = Message { second: now.0, kind: Kind::Echo, ..*message };
                out.push(Control { peer: from, ip_len: MESSAGE_LEN, message: echo.to_bytes() });
            }
            _ => {}
        }
    }

    /// The cloud between here and `other` was measured.
    pub(super) fn learn(&mut self, now: Time, other: Address, measured: Measured) {
        let Some(entry) = self.table.get_mut(&other.0) else { return };
        let left = measured.left;
        let elapsed = now.since(entry.updated_at).as_secs_f64();
        let weight = if entry.bandwidth.is_some() { self.rules.params.result_weight } else { 1.0 };
        if elapsed > 0.0 {
            let capacity = (left + entry.bytes / elapsed).max(0.0) * self.rules.params.margin;
            entry.capacity += weight * (capacity - entry.capacity);
        }
        (entry.bytes, entry.updated_at) = (0.0, now);
        entry.shared.capacity = measured.capacity;
        if self.rules.params.law.counts_once() {
            let shared = self.rules.params.law == Law::Shared;
            let last = entry.waiting.or(entry.bandwidth).filter(|_| shared);
            entry.waiting = Some(last.map_or(left, |last| last + weight * (left - last)));
            entry.hand_out(now, &self.rules);
        } else {
            entry.bandwidth = Some(left);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, out: &mut Vec<Control>) {
        self.forget_idle(now, out);
        let mut due = Vec::new();
        for (&from, entry) in &mut self.table {
            entry.end_interval(now, &self.rules);
            if entry.bandwidth.is_some() && now.since(entry.updated_at) >= self.rules.idle {
                entry.bandwidth = None; // no recent report
            }
            if entry.deadline <= now && entry.tries >= TRIES {
                (entry.broken, entry.deadline, entry.accepted) = (true, Time::NEVER, false);
                (entry.bandwidth, entry.waiting) = (None, None);
            } else if entry.deadline <= now || entry.refresh_at <= now {
                due.push(from);
            }
        }
        due.into_iter().for_each(|from| self.ask(now, Address(from), out));
    }
    /// Removes the other sides from which nothing has come for long, and stops their measurements.
    fn forget_idle(&mut self, now: Time, out: &mut Vec<Control>) {
        let (idle, asks) = (self.rules.idle, self.asks);
        self.table.retain(|&from, entry| {
            let alive = now.since(entry.last_seen) < idle;
            if !alive && asks && (entry.bandwidth.is_some() || entry.behalf) {
                let message = Message { first: entry.cookie, ..Message::new(Kind::Stop, entry.nonce) };
                out.push(Control { peer: Address(from), ip_len: MESSAGE_LEN, message: message.to_bytes() });
            }
            alive
        });
    }

    /// Reports the state of every entry (0: requested; 1: answered; 2: measured; 3: broken), and the values of its
    /// cloud.
    pub(super) fn probe(&self, put: &mut dyn FnMut(Address, &'static str, f64)) {
        for (&from, entry) in &self.table {
            let mut report = |name, value| put(Address(from), name, value);
            let state = match (entry.broken, entry.bandwidth, entry.accepted) {
                (true, ..) => 3.0,
                (_, Some(_), _) => 2.0,
                (_, None, accepted) => accepted as u8 as f64,
            };
            report("cloud_state", state);
            report("cloud_plain_routers", entry.plain as f64);
            if let Some(left) = entry.bandwidth {
                report("cloud_available_bps", 8.0 * left);
                report("cloud_capacity_bps", 8.0 * entry.capacity);
                report("cloud_queue_bytes", entry.queue());
            }
            let (router, handed) = (&entry.router, &entry.handed_out);
            report("virtual_spare_bps", 8.0 * handed.spare);
            if entry.shared.flows > 0.0 {
                report("virtual_flows", entry.shared.flows);
            }
            report("virtual_rtt_s", router.avg_rtt);
            report("virtual_queue_bytes", handed.queue);
            report("virtual_feedback_bytes", handed.feedback * router.avg_rtt);
        }
    }

    pub(super) fn poll_timeout(&self) -> Time {
        let due = |e: &Upstream| {
            let waits = !self.rules.params.law.counts_once() || e.waiting.is_some();
            let control = if waits { e.router.control_at } else { Time::NEVER };
            let result = e.watch.as_ref().map_or(Time::NEVER, |watch| watch.next);
            control.min(result).min(e.deadline).min(e.refresh_at).min(e.last_seen + self.rules.idle)
        };
        self.table.values().map(due).min().unwrap_or(Time::NEVER)
    }
}

/// No result for the cloud: no flow gets an increase.
fn hold(packet: &mut Packet) {
    if packet.congestion.is_standard() && packet.congestion.delta_throughput() > 0 {
        packet.congestion.set_delta_throughput(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::xcp_i::RouterParams;
    use crate::testing;

    const FROM: Address = Address(1);

    /// A node that has received its first packet from [`FROM`].
    fn clouds(given: &[(&str, f64)]) -> Clouds {
        let values = testing::values(&[RouterParams::PARAMS], given);
        let mut clouds = Clouds::new(Address(2), &values, Rng::stream(1, "clouds"), true);
        clouds.find_or_add(Time::ZERO, FROM).expect("there is room");
        clouds
    }

    /// In 2 s 250 kB were seen while 1 MB/s was left: 1.125 MB/s, and 0.9 MB/s of it with a margin of 0.8. The next result,
    /// 0.5 MB/s left and nothing seen, counts by a quarter.
    #[test]
    fn the_capacity_is_what_is_left_and_what_was_seen() {
        for (margin, first, second) in [(1.0, 1.125e6, 0.96875e6), (0.8, 0.9e6, 0.775e6)] {
            let mut clouds = clouds(&[("margin", margin), ("result_weight", 0.25)]);
            clouds.table.get_mut(&FROM.0).expect("it was met").bytes = 250_000.0;
            clouds.learn(Time::secs(2), FROM, Measured { left: 1e6, capacity: None });
            assert!((clouds.table[&FROM.0].capacity - first).abs() < 1e-6, "{}", clouds.table[&FROM.0].capacity);
            clouds.learn(Time::secs(3), FROM, Measured { left: 0.5e6, capacity: None });
            assert!((clouds.table[&FROM.0].capacity - second).abs() < 1e-6, "{}", clouds.table[&FROM.0].capacity);
        }
    }

    /// Results took 10, 14 and 13 ms: the last two were at least 3 ms late, which is 3000 bytes at 1 MB/s. The other
    /// clock may be ahead.
    #[test]
    fn late_results_show_a_queue() {
        for ahead in [0, 20_000_000] {
            let mut clouds = clouds(&[]);
            let entry = clouds.table.get_mut(&FROM.0).expect("it was met");
            entry.capacity = 1e6;
            let queues = [10u64, 14, 13].map(|ms| {
                entry.watch_delay(Time::secs(1), (1_000_000 * ms).wrapping_sub(ahead), Time::secs(10));
                entry.queue()
            });
            assert_eq!(queues, [0.0, 0.0, 3000.0], "a clock that is {ahead} ns ahead");
        }
    }

    /// The shortest delay of an old span is forgotten after two spans: the longer path then counts as normal.
    #[test]
    fn a_way_may_become_longer_for_good() {
        let mut clouds = clouds(&[]);
        let entry = clouds.table.get_mut(&FROM.0).expect("it was met");
        entry.capacity = 1e6;
        let mut queue = |second: u64, ms: u64| {
            entry.watch_delay(Time::secs(second), 1_000_000 * ms, Time::secs(10));
            entry.queue()
        };
        assert_eq!([queue(1, 10), queue(2, 15), queue(3, 15)], [0.0, 0.0, 5000.0]);
        assert_eq!([queue(12, 15), queue(13, 15)], [5000.0, 5000.0]);
        assert_eq!([queue(23, 15), queue(24, 15)], [0.0, 0.0]);
    }
}
