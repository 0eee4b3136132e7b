//! Queue disciplines that report a limit follow it, and the law detects one that does not.

use explicate_core::api::{PortView, Probe};
use explicate_core::params::Values;
use explicate_core::qdisc::common::{Limit, QueueLimit};
use explicate_core::qdisc::{Discipline, DropCause, Qdisc, QdiscInit, Verdict};
use explicate_core::registry::QDISCS;
use explicate_core::units::Time;
use explicate_core::wire::Packet;
use explicate_laws::random::Dice;

const EVENTS: u32 = 5000;
const SEEDS: u64 = 4;

/// The first difference found, if any.
type Judged = Result<(), String>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, a: &T, b: &T) -> Judged {
    if a == b { Ok(()) } else { Err(format!("{what}: {a:?} and {b:?}")) }
}

/// [`Qdisc::queue_limit`]: the discipline follows the limit, departures change nothing, and it has no timer.
fn qdisc_is_its_limit(q: &mut dyn Qdisc, queue_limit: QueueLimit, dice: &mut Dice) -> Judged {
    let mut now = Time::ZERO;
    for _ in 0..EVENTS {
        now += dice.span(0.001);
        let packet = Packet { ip_len: 40 + dice.number(1461) as u16, ..Packet::EMPTY };
        let backlog_packets = dice.number(200);
        let backlog_bytes = backlog_packets as u64 * (40 + dice.below(1461));
        let busy = backlog_packets > 0 || dice.flip(0.5);
        let port = PortView { capacity: 1.25e6, backlog_bytes, backlog_packets, busy };
        if busy && dice.flip(0.3) {
            q.on_departure(now, &port);
        }
        let fits = !busy || queue_limit.fits((backlog_bytes, backlog_packets), packet.ip_len);
        let expected = if fits { Verdict::Accept } else { Verdict::Drop(DropCause::Overflow) };
        let idle_since = (!busy).then_some(now);
        same("a verdict", &q.on_arrival(now, &packet, &port, idle_since), &expected)?;
        same("a timer", &q.next_timer(), &Time::NEVER)?;
    }
    Ok(())
}

#[test]
fn disciplines_with_a_limit_follow_it() {
    let mut tried = 0;
    for q in QDISCS {
        for seed in 0..SEEDS {
            let mut dice = Dice::new(seed, q.name());
            let mut values = dice.values(&[q.params()]);
            values.set(&Limit::PARAMS[0], 1000.0 * dice.below(100) as f64);
            let rng = dice.0.clone();
            let init = QdiscInit { values: &values, capacity: 1.25e6, mean_packet: 1000.0, rng };
            let Discipline::Arrival(mut built) = q.build(&init) else { continue };
            let Some(queue_limit) = built.queue_limit() else { continue };
            qdisc_is_its_limit(&mut *built, queue_limit, &mut dice).unwrap_or_else(|why| panic!("{}: {why}", q.name()));
            tried += 1;
        }
    }
    assert!(tried > 0, "some discipline has a limit");
}

/// Follows its limit for this number of departures only.
struct Tiring(QueueLimit, u32);

impl Qdisc for Tiring {
    fn on_arrival(&mut self, _now: Time, packet: &Packet, port: &PortView, _idle: Option<Time>) -> Verdict {
        let fits = self.0.fits((port.backlog_bytes, port.backlog_packets), packet.ip_len) || !port.busy;
        if fits && self.1 > 0 { Verdict::Accept } else { Verdict::Drop(DropCause::Overflow) }
    }
    fn on_departure(&mut self, _now: Time, _port: &PortView) {
        self.1 = self.1.saturating_sub(1);
    }
    fn queue_limit(&self) -> Option<QueueLimit> {
        Some(self.0)
    }
    fn probe(&self, _put: Probe<'_>) {}
}

#[test]
fn disciplines_that_lie_are_found() {
    let mut values = Values::default();
    values.set(&Limit::PARAMS[0], 50_000.0);
    let queue_limit = Limit::of(&values).queue_limit(1000.0);
    let judge =
        |departures| qdisc_is_its_limit(&mut Tiring(queue_limit, departures), queue_limit, &mut Dice::new(1, "liar"));
    judge(u32::MAX).expect("it never tires");
    assert!(judge(10).is_err(), "departures matter");
}
