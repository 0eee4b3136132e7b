//! The example of the contract, field by field.

use crate::support;
use std::path::Path;

use explicate_core::units::{Rate, Time};
use explicate_scenario::model::{Scenario, Start, Traffic};

#[test]
fn every_field() {
    let s = match Scenario::parse(&support::runnable(include_str!("normative.toml")), "lossy.toml", Path::new("."), &[])
    {
        Ok(s) => s,
        Err(e) => panic!("{e}"),
    };
    assert_eq!((s.name.as_str(), s.runs, s.seed), ("lossy-dumbbell", 5, 1));
    assert_eq!((s.duration, s.warmup), (Time::secs(60), Time::secs(20)));
    assert_eq!((s.nodes.len(), s.links.len()), (22, 42));
    assert!(s.warnings.is_empty(), "{:?}", s.warnings);
    let link = |name: &str| s.links.iter().find(|l| l.name == name).unwrap_or_else(|| panic!("no {name}"));

    let forward = link("r1->r2");
    assert_eq!((forward.rate, forward.delay), (Rate::mbps(5), Time::millis(20)));
    assert_eq!(forward.capacity, Rate::bps(4_500_000));
    assert_eq!(forward.routers.len(), 1);
    assert_eq!(forward.routers[0].protocol.name(), "xcp");
    assert_eq!(forward.channel.len(), 1);
    assert_eq!(forward.channel[0].kind.name(), "random_loss");
    assert_eq!(forward.channel[0].values.get(forward.channel[0].kind.params(), "rate"), 0.01);
    let queue = forward.queue.as_ref().unwrap();
    assert_eq!(queue.kind.name(), "droptail");
    // 5 Mbit/s * 2 * (1 + 20 + 1) ms
    assert_eq!(queue.values.get(queue.kind.params(), "limit"), 27_500.0);
    assert_eq!(queue.mean_packet, (5.0 * 1000.0 + 5.0 * 1500.0) / 10.0);

    let back = link("r2->r1");
    assert_eq!((back.rate, back.capacity, back.channel.len()), (Rate::mbps(5), Rate::mbps(5), 0));
    assert!(back.queue.as_ref().is_some_and(|q| q.mean_packet < 100.0), "only acknowledgements cross");
    for i in 0..10 {
        for name in [format!("s{i}->r1"), format!("d{i}->r2"), format!("r1->s{i}"), format!("r2->d{i}")] {
            let l = link(&name);
            assert_eq!((l.rate, l.delay), (Rate::mbps(100), Time::millis(1)));
            assert!(l.queue.is_none(), "{name}: access says unlimited, both directions");
        }
    }

    let [clean, lossy] = &s.flows[..] else { panic!("two groups") };
    assert_eq!((clean.name.as_str(), clean.count, clean.packet), ("clean", 5, 1000));
    assert!(matches!(clean.start, Start::Spread { from: Time::ZERO, over } if over == Time::secs(1)));
    assert!(matches!(clean.traffic, Traffic::Bulk) && clean.stop.is_none() && clean.via.is_none());
    let names = |ends: &[(usize, usize)]| -> Vec<String> {
        ends.iter().map(|(a, b)| format!("{} {}", s.nodes[*a], s.nodes[*b])).collect()
    };
    assert_eq!(names(&clean.ends), ["s0 d0", "s1 d1", "s2 d2", "s3 d3", "s4 d4"]);
    assert_eq!(names(&lossy.ends), ["s5 d5", "s6 d6", "s7 d7", "s8 d8", "s9 d9"]);
    assert!(matches!(lossy.start, Start::At(Time::ZERO)));
    assert!(lossy.values.given().iter().any(|(name, x)| name.starts_with("dup") && *x == 1.0));

    assert_eq!(s.sampling.every, Some(Time::millis(100)));
    assert_eq!(s.sampling.of, ["queue", "cwnd", "throughput", "rtt"]);
    let axis = ("link.r1->r2.channel.0.rate".to_string(), ["0%", "1%", "5%", "10%"].map(str::to_string).to_vec());
    assert_eq!(s.sweep, [axis]);

    let again = match Scenario::parse(&s.resolved, "resolved.toml", Path::new("."), &[]) {
        Ok(again) => again,
        Err(e) => panic!("{e}\n{}", s.resolved),
    };
    assert_eq!(s.resolved, again.resolved);
}
