//! Queues of a fluid: drops and marks of a port.
//!
//! DropTail drops arrivals beyond its limit. Step marking marks what arrives while more than its threshold waits
//! (Alizadeh, Javanmard, Prabhakar, SIGMETRICS 2011, equation 4). RED (Misra, Gong, Towsley, SIGCOMM 2000, equations 4 and 5) drops or
//! marks a share that depends on its moving average; drops are spread evenly by counting packets since the last one, which
//! makes the mean gap between them 1.5/p_b packets with `wait`, and (1/p_b + 1)/2 without.

use explicate_core::qdisc::QdiscKind;
use explicate_core::qdisc::common::Limit;
use explicate_core::qdisc::red::{self, ADAPT_EVERY, adapted, base_probability};
use explicate_core::qdisc::step;
use explicate_scenario::model::Queue;

/// Parameters of a queue.
pub(crate) struct Tail {
    /// Maximum queue length, bytes.
    limit: f64,
    red: Option<Red>,
    /// Threshold of step marking, bytes.
    step: Option<f64>,
    /// Step marking drops fluid that is not ECN-capable above its threshold.
    drops: bool,
    /// ECN-capable fluid is marked instead of dropped early.
    pub(crate) marks: bool,
}

/// The result for the fluid that arrives in a step.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fate {
    /// Share of the fluid that is marked instead of dropped.
    pub(crate) marked: f64,
    /// Share of the other fluid that is dropped early.
    pub(crate) early: f64,
    /// Share of the rest that is dropped by overflow.
    pub(crate) overflow: f64,
}

impl Tail {
    /// The parameters of a port with this queue and rate, bytes/s.
    pub(crate) fn new(queue: Option<&Queue>, rate: f64) -> Tail {
        let mut tail = Tail { limit: f64::INFINITY, red: None, step: None, drops: false, marks: false };
        let Some(queue) = queue else { return tail };
        tail.limit = Limit::of(&queue.values).limit;
        match queue.kind.name() {
            name if name == red::Red::INFO.name => {
                let params = red::Params::of(&queue.values);
                tail.marks = params.mark;
                tail.red = Some(Red::new(&params, queue.mean_packet, rate));
            }
            name if name == step::Step::INFO.name => {
                let (threshold, drops) = step::threshold(&queue.values, queue.mean_packet);
                (tail.step, tail.drops, tail.marks) = (Some(threshold), drops, true);
            }
            _ => {}
        }
        tail
    }
    /// `queue` bytes wait, `arriving` arrive in a step of `dt` seconds that serves `service` bytes; `bears` of them
    /// are marked instead of dropped.
    pub(crate) fn step(&mut self, queue: f64, arriving: f64, bears: f64, service: f64, dt: f64) -> Fate {
        let (marked, early) = match (&mut self.red, self.step) {
            (Some(red), _) => {
                let share = red.step(queue, arriving, service, dt);
                (share, share)
            }
            (None, Some(threshold)) => {
                let share = above(threshold, queue, queue + arriving - service);
                (share, if self.drops { share } else { 0.0 })
            }
            (None, None) => (0.0, 0.0),
        };
        let taken = arriving - early * (arriving - bears);
        let excess = queue + taken - service - self.limit;
        Fate { marked, early, overflow: if excess > 0.0 { (excess / taken).min(1.0) } else { 0.0 } }
    }
    /// The average queue that it keeps, bytes.
    pub(crate) fn average(&self) -> Option<f64> {
        self.red.as_ref().map(|red| red.average)
    }
}

/// The share of a step in which a queue that goes evenly from one length to another is above a threshold.
fn above(threshold: f64, from: f64, to: f64) -> f64 {
    let (low, high) = (from.min(to), from.max(to));
    if high <= threshold {
        0.0
    } else if low >= threshold {
        1.0
    } else {
        (high - threshold) / (high - low)
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
    /// Seconds until the next adaptation of `max_p`.
    adapts_in: f64,
}

impl Red {
    /// `packet` is the mean length of packets, bytes; `rate` is in bytes/s.
    fn new(params: &red::Params, packet: f64, rate: f64) -> Red {
        let delayed = if params.adaptive { 0.5 * params.target_delay * rate } else { 0.0 };
        let min_th = params.min_th.unwrap_or(delayed.max(5.0 * packet));
        let weight = params.weight.unwrap_or(if params.adaptive { -libm::expm1(-packet / rate) } else { 0.002 });
        Red {
            min_th,
            max_th: params.max_th.unwrap_or(3.0 * min_th).max(min_th),
            keeps: libm::log1p(-weight),
            max_p: params.max_p,
            gentle: params.gentle,
            wait: params.wait,
            packet,
            average: 0.0,
            adapts_in: if params.adaptive { ADAPT_EVERY.as_secs_f64() } else { f64::INFINITY },
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

#[cfg(test)]
mod tests {
    use super::*;

    fn red(min_th: f64, max_p: f64, wait: bool) -> Red {
        let keeps = libm::log1p(-0.5); // half of each packet's queue enters the average
        let (max_th, packet, gentle) = (3.0 * min_th, 1000.0, false);
        Red { min_th, max_th, keeps, max_p, gentle, wait, packet, average: 0.0, adapts_in: f64::INFINITY }
    }

    /// 900 bytes wait and 300 come where 100 leave and 1000 have room: 100 of the 300 are refused.
    #[test]
    fn what_exceeds_the_limit_is_refused() {
        let mut tail = Tail { limit: 1000.0, red: None, step: None, drops: false, marks: false };
        let fate = tail.step(900.0, 300.0, 0.0, 100.0, 0.001);
        assert!((fate.overflow - 1.0 / 3.0).abs() < 1e-12 && fate.early == 0.0, "{}", fate.overflow);
        assert_eq!(tail.step(900.0, 200.0, 0.0, 100.0, 0.001).overflow, 0.0);
        assert_eq!(tail.step(2000.0, 300.0, 0.0, 100.0, 0.001).overflow, 1.0, "no more than what comes");
    }

    /// A third is marked or dropped early. Of 300 bytes 100 bear marks and stay; of the other 200 a third goes: 233 join.
    #[test]
    fn marked_bytes_take_room() {
        let red = Some(Red { average: 1000.0, ..red(500.0, 1.0, true) });
        let mut tail = Tail { limit: 1000.0, red, step: None, drops: false, marks: true };
        let fate = tail.step(1000.0, 300.0, 100.0, 100.0, 0.001);
        // The average of 1000 bytes is midway between 500 and 1500: p = 0.5, and 1/3 with `wait`.
        assert!((fate.early - 1.0 / 3.0).abs() < 1e-12, "{}", fate.early);
        let joins = 300.0 - 200.0 / 3.0;
        assert!((fate.overflow - (joins - 100.0) / joins).abs() < 1e-12, "{}", fate.overflow);
    }

    /// 900 bytes wait and 300 come where 100 leave, so the queue passes the threshold of 1000 in the middle: a half is marked.
    /// What bears no marks waits, or is dropped by that half, too.
    #[test]
    fn what_comes_above_the_threshold_is_marked() {
        for (drops, early) in [(false, 0.0), (true, 0.5)] {
            let mut tail = Tail { limit: 5000.0, red: None, step: Some(1000.0), drops, marks: true };
            let fate = tail.step(900.0, 300.0, 300.0, 100.0, 0.001);
            assert!(
                (fate.marked - 0.5).abs() < 1e-12 && fate.early == early && fate.overflow == 0.0,
                "{}",
                fate.marked
            );
            assert_eq!(tail.step(1100.0, 300.0, 300.0, 100.0, 0.001).marked, 1.0);
            assert_eq!(tail.step(700.0, 300.0, 300.0, 100.0, 0.001).marked, 0.0);
        }
    }

    /// Two packets of 1000 bytes come to a queue of 800 bytes: the average takes half of it, and half of the rest.
    #[test]
    fn every_packet_is_a_sample_of_the_average() {
        let mut red = red(5000.0, 0.1, true);
        assert_eq!(red.step(800.0, 2000.0, 0.0, 0.001), 0.0);
        assert!((red.average - 600.0).abs() < 1e-9, "{}", red.average);
        // An idle line could have sent one: half of the average goes.
        red.step(0.0, 0.0, 1000.0, 0.001);
        assert!((red.average - 300.0).abs() < 1e-9, "{}", red.average);
    }

    /// Misra, Gong, Towsley, equation 5, at the middle of the thresholds: p = max_p / 2 = 0.1; a mean gap of 1.5 / p is a
    /// share of p / 1.5, one of (1 / p + 1) / 2 a share of 2 p / (1 + p).
    #[test]
    fn early_drops_follow_the_average() {
        for (wait, share) in [(true, 0.1 / 1.5), (false, 0.2 / 1.1)] {
            let mut middle = Red { average: 1000.0, ..red(500.0, 0.2, wait) };
            let early = middle.step(1000.0, 1000.0, 1000.0, 0.001);
            assert!((early - share).abs() < 1e-12, "{early}");
        }
        let mut over = Red { average: 1500.0, ..red(500.0, 0.2, true) };
        assert_eq!(over.step(1500.0, 1000.0, 1000.0, 0.001), 1.0);
    }
}
