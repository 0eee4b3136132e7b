use explicate_core::flow::FlowInit;
use explicate_core::params::Values;
use explicate_core::port::{Class, Port, PortInit};
use explicate_core::protocol::*;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::*;
use explicate_sim::engine::Engine;
use explicate_sim::source::Source;

fn dumbbell(proto: &str, mbps: u64, rtts: &[u64], dur: u64, fuse: bool) -> (Engine, usize) {
    let end = Time::secs(dur);
    let warm = Time::secs(dur / 2);
    let n = rtts.len();
    let mut e = Engine::new(end, fuse);
    let r = registry::resolve(proto).unwrap();
    let mean_rtt = rtts.iter().sum::<u64>() / n as u64;
    let bdp = Rate::mbps(mbps).bytes_in(Time::millis(mean_rtt)).0 as f64;
    let mut seq = 0;
    let mut port = |rate: Rate, limit: Option<f64>| {
        seq += 1;
        let v = Values::default();
        let router = r.protocol.router(&RouterInit {
            values: &v,
            capacity: rate.bytes_per_sec(),
            delay: Time::ZERO,
            rng: Rng::stream(1, &format!("{seq}")),
        });
        let qdisc = limit.map(|l| {
            let k = registry::qdisc("droptail").unwrap();
            let mut v = Values::default();
            v.set(&k.params()[0], l);
            k.build(&QdiscInit {
                values: &v,
                capacity: rate.bytes_per_sec(),
                mean_packet: 1000.0,
                rng: Rng::stream(1, "q"),
            })
        });
        Port::new(PortInit {
            rate,
            service: None,
            capacity: rate.bytes_per_sec(),
            class: Class { qdisc, router },
            before: vec![],
            on_air: vec![],
            measured_from: warm,
        })
    };
    let rate = Rate::mbps(mbps);
    let acc = Rate::mbps(mbps * 4);
    let bn = Time::millis(10);
    let b = {
        let p = port(rate, Some(bdp));
        e.add_link(p, bn)
    };
    let br = {
        let p = port(rate, Some(bdp));
        e.add_link(p, bn)
    };
    for i in 0..n {
        let d = Time((rtts[i] * 1_000_000 - 20_000_000) / 4);
        let l: Vec<u32> = (0..4)
            .map(|_| {
                let p = port(acc, None);
                e.add_link(p, d)
            })
            .collect();
        let v = Values::default();
        let init = FlowInit {
            id: i as u32,
            protocol: r.protocol,
            fallback: r.protocol,
            recovery: r.recovery,
            values: &v,
            packet: 1000,
            interface: acc,
        };
        e.add_flow(
            &init,
            warm,
            &[l[0], b, l[1]],
            &[l[2], br, l[3]],
            Source::Bulk,
            Time(i as u64 * 1_000_000_000 / n as u64),
        );
    }
    e.prepare();
    (e, b as usize)
}

fn go(proto: &str, mbps: u64, rtts: &[u64]) {
    let (mut e, b) = dumbbell(proto, mbps, rtts, 40, true);
    let t = std::time::Instant::now();
    e.run_until(Time::secs(40));
    let el = t.elapsed().as_secs_f64();
    e.settle_all();
    e.audit().unwrap();
    let g: Vec<f64> = e.ends.iter().map(|x| (x.sink.stats.payload - x.sink.stats.payload_before) as f64).collect();
    let jain = g.iter().sum::<f64>().powi(2) / (g.len() as f64 * g.iter().map(|x| x * x).sum::<f64>());
    let hops = e.hops();
    let s = &mut e.links[b].port;
    let (by, p) = s.backlog();
    let util = s.stats.measured_bytes() as f64 / s.offered(Time::secs(20), Time::secs(40));
    let q = s.stats.queue(Time::secs(40), p, by);
    let mean = rtts.iter().sum::<u64>() as f64 / rtts.len() as f64;
    let bdp = mbps as f64 * 1e6 / 8.0 * mean / 1e3 / 1000.0;
    println!(
        "{proto} {mbps} {}x{mean}: util {util:.4} jain {jain:.5} q/bdp {:.4} {q:?} drops {:?} t90 {:?}; {:.1} Mhops/s {} hops ev/hop {:.2}",
        rtts.len(),
        q.mean_packets / bdp,
        s.stats.total(),
        s.stats.time_to_ninety(),
        hops as f64 / el / 1e6,
        hops,
        e.events as f64 / hops as f64
    );
}

#[test]
fn look() {
    let spread: Vec<u64> = (0..30).map(|i| 40 + i * 10).collect();
    for p in ["xcp", "reno"] {
        go(p, 100, &[80; 10]);
        go(p, 100, &[80; 50]);
        go(p, 30, &[100]);
        go(p, 10, &[40; 2]);
        go(p, 45, &spread);
        go(p, 1000, &[80; 10]);
    }
}
#[test]
fn cost() {
    let p = std::env::var("P").unwrap_or("xcp".into());
    let m: u64 = std::env::var("M").unwrap_or("100".into()).parse().unwrap();
    let d: u64 = std::env::var("D").unwrap_or("2".into()).parse().unwrap();
    let (mut e, _) = dumbbell(&p, m, &[80; 10], d, true);
    e.run_until(Time::secs(d));
    println!("hops {}", e.hops());
}
#[test]
fn fused_is_same() {
    for p in ["xcp", "reno"] {
        let r: Vec<String> = [true, false]
            .iter()
            .map(|&f| {
                let (mut e, b) = dumbbell(p, 30, &[40, 50, 60], 10, f);
                e.run_until(Time::secs(10));
                e.settle_all();
                e.audit().unwrap();
                let x: Vec<_> =
                    e.ends.iter().map(|x| (x.sink.stats.payload, x.flow.stats.sent, x.flow.stats.rtt_sum)).collect();
                let q = e.links[b].port.stats.queue(Time::secs(10), 0, 0);
                println!("{} events", e.events);
                format!("{x:?} {q:?} {}", e.hops())
            })
            .collect();
        assert_eq!(r[0], r[1]);
    }
}
