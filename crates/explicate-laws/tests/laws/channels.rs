//! Channels: their times increase, and their losses match their predictions.

use std::sync::Arc;

use explicate_core::channel::{Channel, ChannelInit};
use explicate_core::params::Values;
use explicate_core::registry::CHANNELS;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Packet, flag};
use explicate_laws::random::{Dice, Hash, OPERATIONS, SEEDS, repeats};

#[test]
fn channels_repeat_and_keep_time() {
    for c in CHANNELS {
        repeats(c.name(), SEEDS, |dice| {
            let mut values = dice.values(&[c.params()]);
            if c.check(&values).is_err() {
                values = Values::default();
            }
            let mut at = 0;
            values.file = Some(Arc::from_iter((0..1000).map(|_| {
                at += dice.below(4);
                at
            })));
            let step = |i: u64| (Time::millis(20 * i), Rate(1_000_000 * (i % 4)));
            values.steps = Some(Arc::from_iter((0..10).map(step)));
            let init = ChannelInit { values: &values, rate: Rate::mbps(10), rng: dice.0.clone() };
            let mut stages = c.build(init);
            let mut hash = Hash::new();
            let (mut now, mut free, mut served) = (Time::ZERO, Time::ZERO, 0.0);
            for i in 0..OPERATIONS {
                now += dice.span(0.001);
                let mut packet = dice.packet();
                packet.ip_len = [40, 576, 1000, 1500][dice.below(4) as usize]; // each is worked out once
                let bytes = packet.ip_len as u32;
                let mut pass = |stage: &mut Option<Box<dyn Channel>>, at, bytes| {
                    stage.as_mut().is_some_and(|channel| {
                        let lost = channel.loses(at, &packet, bytes);
                        hash.put(lost as u64);
                        lost
                    })
                };
                if pass(&mut stages.before, now, bytes) {
                    continue;
                }
                let wire = stages.coding.as_mut().map_or(bytes, |coding| coding.wire_bytes(&packet, bytes));
                assert!(wire >= bytes, "{}: coding makes packets longer", c.name());
                let start = now.max(free);
                if let Some(curve) = &mut stages.service {
                    let finish = curve.finish(start, wire, free <= now);
                    assert!(finish >= start, "{}: a packet leaves before it came", c.name());
                    assert!(i % 100 > 0 || curve.offered(now, finish) >= 0.0);
                    free = finish;
                    // What would leave in a hundred years has not.
                    served += if finish < Time::secs(3_000_000_000) { wire as f64 } else { 0.0 };
                }
                if !pass(&mut stages.on_air, start, wire)
                    && let Some(after) = &mut stages.after
                {
                    let done = after.disturb(start, &packet);
                    hash.put(done.late.0);
                    hash.put(done.copy.map_or(u64::MAX, |gap| gap.0));
                    hash.put(done.damaged as u64);
                }
                hash.put(free.0);
            }
            if let Some(coding) = &stages.coding {
                assert!((0.0..=1.0).contains(&coding.efficiency()), "{}", c.name());
            }
            if let Some(curve) = &stages.service {
                assert!(curve.mean_rate() > 0.0, "{}", c.name());
                let offered = curve.offered(Time::ZERO, free);
                assert!(served <= offered * (1.0 + 1e-9) + 1500.0, "{}: {served} of {offered} bytes", c.name());
                let middle = Time(free.0 / 3);
                let parts = curve.offered(Time::ZERO, middle) + curve.offered(middle, free);
                assert!((parts - offered).abs() <= 1e-9 * offered + 1.0, "{}: {parts} of {offered} bytes", c.name());
            }
            hash
        });
    }
}

/// A channel's losses match its predictions, for data and for acknowledgements.
#[test]
fn channels_do_what_they_predict() {
    let mut checked = 0;
    for c in CHANNELS {
        for ack in [false, true] {
            let mut values = Values::default();
            if let Some(rate) = c.params().iter().find(|p| p.name == "rate") {
                values.set(rate, 0.05);
            }
            let mut packet = Packet { ip_len: 1000, ..Packet::EMPTY };
            packet.transport.set_flags(if ack { flag::ACK } else { 0 });
            let mut predicted = None;
            c.predict(&values, &packet, &mut |name, value| {
                assert!(value.is_finite() && value >= 0.0, "{}: {name} is {value}", c.name());
                if name == "packet_loss" {
                    predicted = Some(value);
                }
            });
            let Some(predicted) = predicted else { continue };
            checked += 1;
            let rng = Dice::new(1, c.name()).0;
            let init = ChannelInit { values: &values, rate: Rate::mbps(10), rng };
            let mut observed = None;
            c.observe(init, &packet, 100_000, &mut |name, value| {
                if name == "packet_loss" {
                    observed = Some(value);
                }
            });
            let off = (observed.expect("observed too") - predicted).abs();
            assert!(off < 0.06 * predicted + 1e-4, "{}: {observed:?} of {predicted}", c.name());
        }
    }
    assert!(checked >= 8);
}
