//! Queues of a fluid: drops and marks of a port.
//!
//! DropTail drops arrivals beyond its limit. RED (Misra, Gong, Towsley, SIGCOMM 2000, equations 4 and 5) drops or
//! marks a share that depends on its moving average; drops are spread evenly by counting packets since the last one, which
//! makes the mean gap between them 1.5/p_b packets with `wait`, and (1/p_b + 1)/2 without.

use explicate_core::params::Values;
use explicate_core::qdisc::red::{ADAPT_EVERY, adapted, base_probability};
use explicate_scenario::model::Queue;

/// A queue's rule.
pub(crate) struct Tail {
    /// Most that may wait, bytes.
    limit: f64,
    red: Option<Red>,
}

/// What happens to the fluid that comes in a step.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fate {
    /// Share that is dropped or marked with room left.
    pub(crate) early: f64,
    /// Share of the rest that is refused for want of room.
    pub(crate) overflow: f64,
}

impl Tail {
    /// The rule of a port with this queue and rate, bytes/s.
    pub(crate) fn new(queue: Option<&Queue>, rate: f64) -> Tail {
        let Some(queue) = queue else { return Tail { limit: f64::INFINITY, red: None } };
        let params = queue.kind.params();
        let has = |name: &str| params.iter().any(|p| p.name == name);
        Tail {
            limit: if has("limit") { queue.values.get(params, "limit") } else { f64::INFINITY },
            red: has("max_th").then(|| Red::new(queue, rate)),
        }
    }
    /// `queue` bytes wait, `arriving` come in a step of `dt` seconds that takes `service` bytes away; `bears` of them bear
    /// marks instead of being dropped.
    pub(crate) fn step(&mut self, queue: f64, arriving: f64, bears: f64, service: f64, dt: f64) -> Fate {
        let early = self.red.as_mut().map_or(0.0, |red| red.step(queue, arriving, service, dt));
        let taken = arriving - early * (arriving - bears);
        let excess = queue + taken - service - self.limit;
        Fate { early, overflow: if excess > 0.0 { (excess / taken).min(1.0) } else { 0.0 } }
    }
    /// The average queue that it keeps, bytes.
    pub(crate) fn average(&self) -> Option<f64> {
        self.red.as_ref().map(|red| red.average)
    }
}

struct Red {
    min_th: f64,
    max_th: f64,
    /// log(1 - weight).
    keeps: f64,
    max_p: f64,
    gentle: bool,
    wait: bool,
    packet: f64,
    average: f64,
    /// Seconds until `max_p` is adapted.
    adapts_in: f64,
}

impl Red {
    fn new(queue: &Queue, rate: f64) -> Red {
        let get = |name| {
            let values: &Values = &queue.values;
            values.get(queue.kind.params(), name)
        };
        let or = |value: f64, auto: f64| if value.is_nan() { auto } else { value };
        let adaptive = get("adaptive") != 0.0;
        let packet = queue.mean_packet;
        let delayed = if adaptive { 0.5 * get("target_delay") * rate } else { 0.0 };
        let min_th = or(get("min_th"), delayed.max(5.0 * packet));
        let weight = or(get("weight"), if adaptive { -libm::expm1(-packet / rate) } else { 0.002 });
        Red {
            min_th,
            max_th: or(get("max_th"), 3.0 * min_th).max(min_th),
            keeps: libm::log1p(-weight),
            max_p: get("max_p"),
            gentle: get("gentle") != 0.0,
            wait: get("wait") != 0.0,
            packet,
            average: 0.0,
            adapts_in: if adaptive { ADAPT_EVERY.as_secs_f64() } else { f64::INFINITY },
        }
    }

    fn step(&mut self, queue: f64, arriving: f64, service: f64, dt: f64) -> f64 {
        // Every packet is a sample, and so is every packet that an idle line could have sent.
        let samples = arriving.max(if queue > 0.0 { 0.0 } else { service }) / self.packet;
        self.average -= libm::expm1(samples * self.keeps) * (queue - self.average);
        self.adapts_in -= dt;
        if self.adapts_in <= 0.0 {
            self.max_p = adapted(self.max_p, self.average, self.min_th, self.max_th);
            self.adapts_in += ADAPT_EVERY.as_secs_f64();
        }
        let p = base_probability(self.average, self.min_th, self.max_th, self.max_p, self.gentle);
        let spaced = if self.wait { p / 1.5 } else { 2.0 * p / (1.0 + p) };
        if p >= 1.0 { 1.0 } else { spaced }
    }
}
