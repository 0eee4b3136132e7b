//! BISE, bandwidth-independent start-up for VCP: a router mixes its codes, so that the load grows at the same pace on
//! any link.
//!
//! Source: paper K (Ikeda, Nishiyama, Ansari, Nemoto, Kato), section IV-A.
//!
//! VCP's senders multiply their windows by the same small factor whether the link is empty or nearly full. BISE uses
//! a large factor, and the router determines the share of packets to which it applies: at low load it leaves 01
//! (multiply) on a share *r* of the packets and writes 10 (add) into the rest. The router chooses r so that the load
//! factor covers, in the next interval, a share k of the difference to its target. The time to fill a link thus
//! depends on k and not on the link's rate. Everything else, including the senders, is [`vcp`].
//!
//! | symbol | field | unit | value | source |
//! | --- | --- | --- | --- | --- |
//! | 1 + epsilon | `xi` + 1 | a `t_rho` | 10 | 004 table III |
//! | t_rho | `t_rho` | s | 1.25 | table III |
//! | r | `share` | 1 | k (rho_inf - rho) / (epsilon rho), within 0..1 | equations 7 and 11 |
//! | k | `k` | 1 | 0.33 | section V |
//! | rho_inf | `rho_inf` | 1 | 1 | equation 10 |
//! | epsilon | `eps_r` | 1 | 9 | table III, see deviation 1 |
//!
//! Deviations:
//! 1. Equation 11 prints epsilon_s, which depends on the round-trip time of a flow; a router has no such value. The
//!    target of equation 10 is for an interval t_rho, and so is `eps_r`, the senders' increase in one: epsilon
//!    itself.
//! 2. Equation 11 exceeds 1 on a nearly empty link and is undefined on an empty one: r is limited to 1, the maximum
//!    of the senders ("restriction of the maximum growth rate", section V). This happens up to a load of k/(k +
//!    epsilon), 3.5 %.
//! 3. A packet that arrives with 10 keeps it, as in VCP. With independent draws the shares of several routers at low
//!    load would multiply, and links would stay at 60 % where access links were twice as fast. So a draw for 01 that
//!    falls on a packet with 10 is carried over to the next packet without 10; `carried` bounds their number. 0 makes
//!    draws independent: shares multiply. Without a bound the effective share is the least one, so that the most
//!    loaded router decides, as in VCP. The default is between: of two equal shares a third of the draws is lost (one
//!    in 17 with sixteen). No argument of ours singles it out: it was chosen because with sixteen starts at small k are
//!    faster than equation 12, and the paper's are slower. A single router draws for each packet, whatever the value.
//! 4. `spread = true` distributes codes evenly instead of drawing them (error diffusion), so that windows of few
//!    packets get their share.
//! 5. Equation 11 is exact for round trips of t_rho. In one of a part x of it the window grows by (1 + epsilon)^x - 1 at most,
//!    and what is asked for in an interval takes r = (G^x - 1) / ((1 + epsilon)^x - 1), G being rho_{n+1}/rho_n: up to
//!    2.4 times equation 11 where x = 0.4, epsilon = 9. `exact_rtt` takes that for a given round trip.

use alloc::boxed::Box;

use super::vcp::{self, VcpReceiver, VcpSender};
use crate::api::{AnyReceiver, AnyRouter, AnySender, PortView, Probe, Protocol, Router, RouterInit, SenderInit};
use crate::params::{Flag, Fraction, Info, Number, Param, Seconds, parameters};
use crate::protocols::common::load_factor::{self, HIGH, LOW, LoadFactor, bears_code, raise};
use crate::rng::Rng;
use crate::units::Time;
use crate::wire::Packet;

/// VCP with BISE.
pub struct VcpBise;

const T_RHO: f64 = 1.25;
const EPSILON: f64 = 9.0;

/// Defaults of the sender's parameters.
pub const SENDER: vcp::Params = vcp::Params { xi: EPSILON, t_rho: T_RHO, ..vcp::Params::DEFAULT };

parameters! {
    /// Router parameters.
    pub struct RouterParams {
        /// Measurement of the load factor.
        load: load_factor::Params = load_factor::Params { t_rho: T_RHO, ..load_factor::Params::DEFAULT };
        /// Share of the missing load that one interval covers.
        k: Fraction = 0.33, in 0.0..=1.0, "paper K equation 10";
        /// Target of the load factor.
        rho_inf: Fraction = 1.0, in 0.01..=1.0, "paper K equation 10";
        /// The senders' multiplicative increase, xi.
        eps_r: Number = EPSILON, in 1e-6..=1e6, "paper K equation 11";
        /// Codes are distributed evenly instead of drawn.
        spread: Flag = false, "error diffusion";
        /// Round-trip time for which the mixing ratio is exact; 0 uses equation 11.
        exact_rtt: Seconds = 0.0, in 0.0..=100.0, "equations 8 and 10";
        /// Maximum number of draws for 01 that are carried over from packets with 10 to later ones; 0: draws are independent.
        carried: Number = 2.0, in 0.0..=1e9, "ours";
    }
}

impl Protocol for VcpBise {
    const INFO: Info = Info {
        name: "vcp-bise",
        summary: "VCP with BISE: routers mix the codes of low load, so that any link fills in the same time",
        source: "Ikeda, Nishiyama, Ansari, Nemoto, Kato (paper K)",
        params: &SENDER.params(),
    };
    const ROUTER_PARAMS: &'static [Param] = RouterParams::PARAMS;
    const EXPLICIT: bool = true;
    const OWN_ECN: bool = true;
    const HEADER_LEN: u16 = 0;

    fn matches(&self, packet: &Packet) -> bool {
        bears_code(packet)
    }
    fn sender(&self, init: &SenderInit<'_>) -> Box<AnySender> {
        Box::new(VcpSender::new(init, SENDER.with(init.values)))
    }
    fn receiver(&self) -> Option<Box<AnyReceiver>> {
        Some(Box::new(VcpReceiver { code: 0 }))
    }
    fn router(&self, init: &RouterInit<'_>) -> Option<Box<AnyRouter>> {
        Some(Box::new(BiseRouter::new(init)))
    }
}

struct BiseRouter {
    load: LoadFactor,
    k: f64,
    rho_inf: f64,
    eps_r: f64,
    /// Round trip over interval for which r is exact; 0 for equation 11.
    exact: f64,
    spread: bool,
    /// The code of the region; at low load a share of the packets gets [`HIGH`] instead.
    code: u8,
    /// That of the others: r.
    share: f64,
    /// Draws for [`LOW`] that are carried over, and their bound.
    owed: f64,
    carried: f64,
    rng: Rng,
}

impl BiseRouter {
    fn new(init: &RouterInit<'_>) -> BiseRouter {
        let params = RouterParams::of(init.values);
        let mut rng = init.rng.clone();
        BiseRouter {
            load: LoadFactor::new(params.load, &mut rng),
            k: params.k,
            rho_inf: params.rho_inf,
            eps_r: params.eps_r,
            exact: params.exact_rtt / params.load.t_rho,
            spread: params.spread,
            code: LOW,
            share: 1.0,
            owed: 0.0,
            carried: params.carried,
            rng,
        }
    }

    /// Equation 11, or the solution of equations 8 and 10 for one round-trip time; the maximum for an empty link.
    fn mix(&self, rho: f64) -> f64 {
        if rho <= 0.0 {
            return 1.0;
        }
        let more = self.k * (self.rho_inf - rho) / rho;
        let in_round_trip = |growth: f64| libm::pow(1.0 + growth, self.exact) - 1.0;
        let r = if self.exact > 0.0 { in_round_trip(more) / in_round_trip(self.eps_r) } else { more / self.eps_r };
        r.clamp(0.0, 1.0)
    }

    /// The code with which a packet at low load leaves that arrives with `code`.
    fn deal(&mut self, code: u8) -> u8 {
        let chosen = if self.spread { self.share } else { (self.rng.uniform() < self.share) as u8 as f64 };
        // A draw that falls on a packet with 10 is carried over to one without; if there are too many, it is lost.
        let independent = self.carried < 1.0;
        self.owed = (self.owed + chosen).min(if independent { 2.0 } else { self.carried });
        let due = self.owed >= 1.0;
        if due && (code == LOW || independent) {
            self.owed -= 1.0;
        }
        if due && code == LOW { LOW } else { HIGH }
    }
}

impl Router for BiseRouter {
    fn on_arrival(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        self.load.on_arrival(now, packet, port);
    }
    fn writes_into(&self, packet: &Packet) -> bool {
        bears_code(packet)
    }
    fn on_departure(&mut self, now: Time, packet: &mut Packet, port: &PortView) {
        self.load.on_departure(now, port);
        let carried = packet.ecn() as u8;
        let code = if self.code == LOW && carried != 0 { self.deal(carried) } else { self.code };
        raise(packet, code);
    }
    fn on_timer(&mut self, now: Time, port: &PortView) {
        self.code = self.load.measure(now, port);
        self.share = if self.code == LOW { self.mix(self.load.rho) } else { 0.0 };
    }
    fn next_timer(&self) -> Time {
        self.load.next_timer()
    }
    fn probe(&self, put: Probe<'_>) {
        self.load.probe(put);
        put("code", self.code as f64);
        put("mixing_ratio", self.share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Ack;
    use crate::params::Values;
    use crate::testing;
    use crate::units::Rate;
    use crate::wire::{Congestion, Transport};

    const VIEW: PortView = PortView { capacity: 1.25e6, backlog_bytes: 0, backlog_packets: 0, busy: true };

    fn router(spread: bool) -> BiseRouter {
        let values = testing::values(&[RouterParams::PARAMS], &[("spread", spread as u8 as f64)]);
        let rng = Rng::stream(1, "test");
        BiseRouter::new(&RouterInit { values: &values, capacity: VIEW.capacity, delay: Time::ZERO, rng })
    }
    /// Of `n` packets that carry `code`, those that leave with 01.
    fn multiplied(r: &mut BiseRouter, n: u32, code: u8) -> u32 {
        (0..n).fold(0, |low, _| {
            let mut p = Packet { tos: code, ..Packet::EMPTY };
            r.on_departure(Time::ZERO, &mut p, &VIEW);
            low + (p.tos == LOW) as u32
        })
    }

    /// 0.33 * 0.6 / (9 * 0.4) = 0.055; 0.33 * 0.97 / (9 * 0.03) = 1.19, cut to 1.
    #[test]
    fn the_mixing_ratio_by_hand() {
        let r = router(false);
        assert!((r.mix(0.4) - 0.055).abs() < 1e-15);
        assert_eq!((r.mix(0.03), r.mix(0.0), r.mix(1.2)), (1.0, 1.0, 0.0));
        // The edge of the cut: 0.33 / 9.33.
        assert!(r.mix(0.035_36) == 1.0 && r.mix(0.035_38) < 1.0);
    }

    /// Two and a half round trips of 0.5 s make equation 10's 0.598 / 0.4 of 40 %, and ten of 3.5 %.
    #[test]
    fn the_exact_ratio_compounds_to_the_target() {
        let mut r = router(false);
        r.exact = 0.4;
        let growth = |share: f64| libm::pow(1.0 + (libm::pow(10.0, 0.4) - 1.0) * share, 2.5);
        for rho in [0.04, 0.1, 0.4, 0.79] {
            let target = 1.0 + 0.33 * (1.0 - rho) / rho;
            assert!((growth(r.mix(rho)) / target - 1.0).abs() < 1e-12, "{rho}");
        }
        assert!((r.mix(0.4) - 0.115_4).abs() < 1e-4, "{}", r.mix(0.4));
        assert_eq!((r.mix(0.03), r.mix(0.0), r.mix(1.2)), (1.0, 1.0, 0.0));
    }

    /// An interval of 1.25 s at 40 % load: 0.4 * 0.98 * 1.25e6 * 1.25 bytes arrived.
    #[test]
    fn it_measures_as_vcp_does() {
        let mut r = router(false);
        let mut after = |rho: f64| {
            (0..1000).for_each(|_| {
                let bytes = rho * 0.98 * 1.25e6 * 1.25 / 1000.0;
                r.on_arrival(Time::ZERO, &mut Packet { ip_len: (bytes + 0.5) as u16, ..Packet::EMPTY }, &VIEW);
            });
            r.on_timer(r.next_timer(), &VIEW);
            (r.code, r.share)
        };
        after(0.0);
        let (code, share) = after(0.4);
        assert!(code == LOW && (share - 0.055).abs() < 1e-4, "{code} {share}");
        assert_eq!(after(0.9), (HIGH, 0.0));
        assert_eq!(after(1.1), (crate::protocols::common::load_factor::OVERLOAD, 0.0));
    }

    #[test]
    fn the_share_is_realised() {
        for share in [0.0, 0.055, 0.3, 0.9, 1.0] {
            let n = 10_000;
            let mut drawn = router(false);
            drawn.share = share;
            let got = multiplied(&mut drawn, n, LOW) as f64 / n as f64;
            let sigma = (share * (1.0 - share) / n as f64).sqrt();
            assert!((got - share).abs() <= 3.0 * sigma, "{share}: {got}, sigma {sigma}");
            let mut spread = router(true);
            spread.share = share;
            let mut low = 0;
            for packets in 1..=100 {
                low += multiplied(&mut spread, 1, LOW);
                let due = share * packets as f64;
                assert!(due - 1.0 - 1e-9 < low as f64 && low as f64 <= due + 1e-9, "{share}: {low} of {packets}");
            }
        }
    }

    /// Shares of a half and of a tenth give a tenth, in either order of the routers.
    #[test]
    fn of_several_routers_the_least_share_counts() {
        for spread in [false, true] {
            for shares in [(0.5, 0.1), (0.1, 0.5)] {
                let (mut first, mut second) = (router(spread), router(spread));
                second.rng = Rng::stream(2, "test");
                (first.share, second.share) = shares;
                let mut low = 0;
                for _ in 0..10_000 {
                    let mut p = Packet { tos: LOW, ..Packet::EMPTY };
                    first.on_departure(Time::ZERO, &mut p, &VIEW);
                    second.on_departure(Time::ZERO, &mut p, &VIEW);
                    low += (p.tos == LOW) as u32;
                }
                // Three standard deviations of a drawn tenth are 0.009.
                let got = low as f64 / 10_000.0;
                assert!((got - 0.1).abs() < if spread { 0.001 } else { 0.009 }, "{spread} {shares:?}: {got}");
            }
        }
    }

    /// With equal shares, 0, 1 or 2 draws are carried over with equal probability, so the second router loses a third of
    /// its draws. The third router loses less, because fewer reach it. The tolerance is three standard deviations.
    #[test]
    fn of_equal_shares_two_thirds_are_left_by_each_router() {
        for share in [0.02, 0.1, 0.4] {
            let mut routers =
                [1, 2, 3].map(|seed| BiseRouter { share, rng: Rng::stream(seed, "test"), ..router(false) });
            let low = (0..100_000).filter(|_| {
                let mut p = Packet { tos: LOW, ..Packet::EMPTY };
                routers.iter_mut().for_each(|r| r.on_departure(Time::ZERO, &mut p, &VIEW));
                p.tos == LOW
            });
            let due = 100_000.0 * share;
            let (left, noise) = (low.count() as f64 / due, 3.0 / libm::sqrt(due));
            assert!(left > 4.0 / 9.0 - noise && left < 2.0 / 3.0 + noise, "{share}: {left} of it is left");
        }
    }

    /// Independent draws of two routers leave the product of their shares, without a bound the least share is left.
    #[test]
    fn what_is_carried_over_decides_between_product_and_least_share() {
        for (carried, shares, due) in
            [(0.0, (0.5, 0.2), 0.1), (0.0, (0.2, 0.5), 0.1), (0.0, (0.2, 0.2), 0.04), (1e6, (0.2, 0.2), 0.2)]
        {
            let mut routers = [(1, shares.0), (2, shares.1)].map(|(seed, share)| BiseRouter {
                share,
                carried,
                rng: Rng::stream(seed, "test"),
                ..router(false)
            });
            let low = (0..100_000).filter(|_| {
                let mut p = Packet { tos: LOW, ..Packet::EMPTY };
                routers.iter_mut().for_each(|r| r.on_departure(Time::ZERO, &mut p, &VIEW));
                p.tos == LOW
            });
            // Three standard deviations of a drawn fifth of 100,000 are 0.004; the queue of draws adds a little.
            let got = low.count() as f64 / 100_000.0;
            assert!((got - due).abs() < 0.006, "{carried} {shares:?}: {got}");
        }
    }

    #[test]
    fn codes_are_only_raised() {
        let mut r = router(false);
        assert_eq!((multiplied(&mut r, 10, LOW), multiplied(&mut r, 10, HIGH), multiplied(&mut r, 10, 0)), (10, 0, 0));
        r.code = HIGH;
        assert_eq!(multiplied(&mut r, 10, LOW), 0);
    }

    /// Equation 8: a round trip turns cwnd into (1 + epsilon_s r) cwnd + (1 - r) alpha_s.
    #[test]
    fn a_mixed_round_trip_grows_as_equation_8_says() {
        for tenths in 0..=10 {
            let (share, n) = (tenths as f64 / 10.0, 1000);
            let values = Values::default();
            let init =
                SenderInit { values: &values, packet: 1040.0, initial_window: n as f64, interface: Rate::mbps(100) };
            let mut sender = VcpBise.sender(&init);
            sender.on_start(Time::ZERO, Time::millis(500));
            let mut r = router(true);
            r.share = share;
            for _ in 0..n {
                let mut packet = Packet { tos: LOW, ..Packet::EMPTY };
                r.on_departure(Time::ZERO, &mut packet, &VIEW);
                let mut transport = Transport::EMPTY;
                transport.set_code(packet.ecn() as u8);
                sender.on_ack(&Ack { transport: &transport, ..testing::ack(Time::ZERO, &Congestion::NONE) });
            }
            let (eps_s, alpha_s) = (1.511_886_432, 0.16);
            let expected = (1.0 + eps_s * share) * n as f64 + (1.0 - share) * alpha_s;
            let got = sender.allowance().cwnd;
            assert!((got / expected - 1.0).abs() < 0.002, "r = {share}: {got}, expected {expected}");
        }
    }
}
