//! The load factor of VCP's routers, and the two bits that carry it (paper K section III).
//!
//! Equation 1 compares the bytes that arrived in an interval, and a part of the queue, with the bytes that could have
//! been sent. Paper K does not define the measurement of the persistent queue; as in the ns-2 code of VCP's author it
//! is a moving average of the means of samples. The symbols are in the table of [VCP](crate::protocols::vcp).

use crate::api::{PortView, Probe};
use crate::params::{Flag, Fraction, Number, Seconds, parameters};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::{Ecn, Packet, flag};

/// The code of low load: multiply.
pub const LOW: u8 = Ecn::Capable1 as u8;
/// The code of high load: add.
pub const HIGH: u8 = Ecn::Capable0 as u8;
/// The code of overload: cut.
pub const OVERLOAD: u8 = Ecn::Marked as u8;

parameters! {
    /// Parameters of the measurement.
    pub struct Params {
        /// Control interval; longer than most round-trip times.
        t_rho: Seconds = 0.2, in 1e-3..=100.0, "paper K section III";
        /// Interval between samples of the queue.
        t_q: Seconds = 0.01, in 1e-4..=100.0, "VCP's ns-2 code";
        /// Share of the queue to be drained per interval.
        kappa_q: Number = 0.5, "paper K equation 1";
        /// Share of the capacity that counts as a full link.
        gamma_l: Fraction = 0.98, in 1e-3..=1.0, "paper K equation 1";
        /// Weight of a new mean in the average of the queue.
        queue_weight: Fraction = 0.25, in 1e-6..=1.0, "VCP's ns-2 code";
        /// The first interval has full length, so that all routers measure at the same times.
        in_step: Flag = false, "VCP's ns-2 code";
    }
}

/// Measures the load factor.
pub struct LoadFactor {
    t_rho: Time,
    t_q: Time,
    kappa_q: f64,
    gamma_l: f64,
    queue_weight: f64,
    /// Bytes that arrived in the present interval.
    bytes: u64,
    /// Samples of the queue in the present interval: their sum, bytes, and number.
    samples: (u64, u64),
    /// The persistent queue, bytes.
    queue: f64,
    /// The load factor of the last interval.
    pub rho: f64,
    began: Time,
    measure_at: Time,
    sample_at: Time,
}

impl LoadFactor {
    /// The first interval lasts 0.5..1.5 t_rho, drawn from `rng`, or t_rho.
    pub fn new(params: Params, rng: &mut Rng) -> LoadFactor {
        let seconds = Time::from_secs_f64;
        let first = if params.in_step { 1.0 } else { 0.5 + rng.uniform() };
        LoadFactor {
            t_rho: seconds(params.t_rho),
            t_q: seconds(params.t_q),
            kappa_q: params.kappa_q,
            gamma_l: params.gamma_l,
            queue_weight: params.queue_weight,
            bytes: 0,
            samples: (0, 0),
            queue: 0.0,
            rho: 0.0,
            began: Time::ZERO,
            measure_at: seconds(params.t_rho * first),
            sample_at: seconds(params.t_q),
        }
    }

    /// Every arriving packet is load, including acknowledgements and packets that are dropped.
    pub fn on_arrival(&mut self, now: Time, packet: &Packet, port: &PortView) {
        self.sample(now, port);
        self.bytes += packet.ip_len as u64;
    }

    /// A packet departs.
    pub fn on_departure(&mut self, now: Time, port: &PortView) {
        self.sample(now, port);
    }

    /// Takes the samples that were due since the queue last changed. The queue was constant in that time, so no timer
    /// is needed.
    fn sample(&mut self, now: Time, port: &PortView) {
        if self.sample_at <= now {
            let due = 1 + now.since(self.sample_at).0 / self.t_q.0;
            self.samples = (self.samples.0 + due * port.backlog_bytes, self.samples.1 + due);
            self.sample_at += Time(due * self.t_q.0);
        }
    }

    /// The end of an interval: equation 1. Returns the code of the region, table I.
    pub fn measure(&mut self, now: Time, port: &PortView) -> u8 {
        self.sample(now, port);
        let (sum, number) = if self.samples.1 > 0 { self.samples } else { (port.backlog_bytes, 1) };
        self.queue += self.queue_weight * (sum as f64 / number as f64 - self.queue);
        let elapsed = now.since(self.began).as_secs_f64();
        let full = self.gamma_l * port.capacity * elapsed;
        self.rho = (self.bytes as f64 + self.kappa_q * self.queue) / full;
        (self.bytes, self.samples, self.began) = (0, (0, 0), now);
        self.measure_at = now + self.t_rho;
        self.region()
    }

    /// When [`LoadFactor::measure`] is due.
    pub fn next_timer(&self) -> Time {
        self.measure_at
    }

    fn region(&self) -> u8 {
        if self.rho < 0.8 {
            LOW
        } else if self.rho < 1.0 {
            HIGH
        } else {
            OVERLOAD
        }
    }

    /// Reports its variables.
    pub fn probe(&self, put: Probe<'_>) {
        put("load_factor", self.rho);
        put("persistent_queue_bytes", self.queue);
    }
}

/// Whether this is a data packet whose ECN field may hold a code. Packets of ECN-capable TCP under our transport header look the
/// same; those of XTCP do not.
pub fn bears_code(packet: &Packet) -> bool {
    let other = packet.transport.flags() & (flag::ACK | flag::CAPABLE) != 0 || packet.congestion.is_present();
    let data = packet.transport.payload() > 0 && !other;
    data && packet.ecn() != Ecn::NotCapable
}

/// Writes a code into a packet that carries a lower one; packets without a code, including acknowledgements, do not
/// change.
pub fn raise(packet: &mut Packet, code: u8) {
    let carried = packet.ecn() as u8;
    if carried != 0 && carried < code {
        packet.tos = packet.tos & !3 | code;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: f64 = 1.25e6;

    fn view(backlog_bytes: u64) -> PortView {
        PortView { capacity: C, backlog_bytes, backlog_packets: 0, busy: true }
    }
    fn load() -> LoadFactor {
        LoadFactor::new(Params::DEFAULT, &mut Rng::stream(1, "test"))
    }
    /// The code after one interval of 0.2 s in which `bytes` arrived and the queue was `backlog`.
    fn after(load: &mut LoadFactor, bytes: u64, backlog: u64) -> u8 {
        load.bytes += bytes;
        load.measure(load.began + Time::millis(200), &view(backlog))
    }

    /// One interval, or half to three halves of one.
    #[test]
    fn the_first_interval_is_drawn_or_whole() {
        let whole = Params { in_step: true, ..Params::DEFAULT };
        let first = |params, seed| LoadFactor::new(params, &mut Rng::stream(seed, "test")).next_timer();
        assert!((1..20).all(|seed| first(whole, seed) == Time::millis(200)));
        let drawn = [1, 2, 3].map(|seed| first(Params::DEFAULT, seed));
        assert!(drawn.iter().all(|t| (Time::millis(100)..Time::millis(300)).contains(t)), "{drawn:?}");
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
    }

    /// 0.98 * 1.25e6 B/s * 0.2 s = 245000 B are full: 196000 are 0.8, and 245000 are 1.
    #[test]
    fn load_factor_and_regions_by_hand() {
        let mut r = load();
        assert_eq!(after(&mut r, 195_999, 0), LOW);
        assert!((r.rho - 0.799_995_9).abs() < 1e-6);
        assert_eq!(after(&mut r, 196_000, 0), HIGH);
        assert_eq!(r.rho, 0.8);
        assert_eq!(after(&mut r, 244_999, 0), HIGH);
        assert_eq!(after(&mut r, 245_000, 0), OVERLOAD);
        assert_eq!(after(&mut r, 0, 0), LOW);
        // 40000 B waiting all the time: a quarter, and then 7/16 of them are taken for persistent, and half of that counts.
        after(&mut r, 0, 40_000);
        assert!((r.rho - 5_000.0 / 245_000.0).abs() < 1e-12, "{}", r.rho);
        after(&mut r, 0, 40_000);
        assert!((r.rho - 8_750.0 / 245_000.0).abs() < 1e-12, "{}", r.rho);
    }

    #[test]
    fn everything_that_comes_is_load() {
        let mut r = load();
        let mut ack = Packet { ip_len: 52, ..Packet::EMPTY };
        ack.transport.set_flags(flag::ACK);
        r.on_arrival(Time::ZERO, &ack, &view(0));
        r.on_arrival(Time::ZERO, &Packet { ip_len: 1000, ..Packet::EMPTY }, &view(0));
        assert_eq!(r.bytes, 1052);
    }

    /// 1000 B until 35 ms are three samples, 5000 B until 200 ms are seventeen: (3 * 1000 + 17 * 5000) / 20 = 4400, a quarter
    /// of that is the persistent queue.
    #[test]
    fn samples_are_taken_of_what_waited_then() {
        let mut r = load();
        r.on_departure(Time::millis(35), &view(1000));
        r.on_departure(Time::millis(36), &view(5000));
        r.on_arrival(Time::millis(150), &Packet::EMPTY, &view(5000));
        r.measure(Time::millis(200), &view(5000));
        assert_eq!((r.queue, r.rho), (1100.0, 0.5 * 1100.0 / 245_000.0));
    }

    #[test]
    fn codes_are_only_raised() {
        let raised = |tos: u8, code: u8| {
            let mut p = Packet { tos, ..Packet::EMPTY };
            raise(&mut p, code);
            p.tos
        };
        for (code, written) in [(LOW, [0, 1, 2, 3]), (HIGH, [0, 2, 2, 3]), (OVERLOAD, [0, 3, 3, 3])] {
            assert_eq!([0, 1, 2, 3].map(|tos| raised(tos, code)), written);
            assert_eq!((raised(0xb8, code), raised(0xb9, code)), (0xb8, 0xb8 | code), "the other bits are not ours");
        }
    }
}
