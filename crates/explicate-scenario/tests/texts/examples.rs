//! Every example and template: parses without warnings, and its resolved form means the same.

use crate::support;
use explicate_core::params::Values;
use explicate_scenario::model::{FlowGroup, Link, Medium, Scenario};

fn values(v: &Values) -> String {
    let mut given: Vec<String> = v.given().iter().map(|(name, x)| format!("{name}={x}")).collect();
    given.sort();
    format!("{given:?} {:?} {:?}", v.file.as_ref().map(|f| f.len()), v.steps)
}

fn link(l: &Link) -> String {
    let queue = l.queue.as_ref().map(|q| (q.kind.name(), values(&q.values), q.mean_packet));
    let routers: Vec<_> = l.routers.iter().map(|r| (r.protocol.name(), values(&r.values))).collect();
    let channel: Vec<_> = l.channel.iter().map(|c| (c.kind.name(), values(&c.values))).collect();
    let knowledge = (l.capacity, &l.capacity_steps, l.measured, l.shares_with);
    let ends = (&l.name, l.from, l.to, l.rate, l.delay);
    format!("{:?}", (ends, knowledge, queue, routers, channel, l.clock_tick, l.scone, l.over))
}

fn medium(m: &Medium) -> String {
    let stations: Vec<String> =
        m.stations.iter().map(|s| format!("{} {:?} {}", s.node, s.at, link(&s.interface))).collect();
    format!("{:?}", (&m.name, m.kind.name(), values(&m.values), stations, &m.interferers))
}

fn group(g: &FlowGroup) -> String {
    let resolved = (g.resolved.protocol.name(), g.resolved.recovery.name());
    let ends = (&g.ends, &g.via, g.stop, g.packet);
    format!("{:?}", (&g.name, g.count, &g.protocol, resolved, values(&g.values), &g.start, &g.traffic, ends))
}

fn all(s: &Scenario) -> Vec<String> {
    let head = format!("{:?}", (&s.name, s.duration, s.warmup, s.runs, s.seed, &s.nodes, &s.sampling, &s.sweep));
    let network = s.links.iter().map(link).chain(s.media.iter().map(medium));
    std::iter::once(head).chain(network).chain(s.flows.iter().map(group)).collect()
}

#[test]
fn resolving_twice_is_resolving_once() {
    let examples = support::examples();
    assert!(examples.len() >= 10);
    for (folder, name, text) in examples {
        let read = |text: &str| match Scenario::parse(text, &name, &folder, &[]) {
            Ok(s) => s,
            Err(e) => panic!("{e}\n{text}"),
        };
        let once = read(&text);
        assert_eq!(once.warnings, Vec::<String>::new(), "{name}");
        let twice = read(&once.resolved);
        assert_eq!(all(&once), all(&twice), "{name}");
        assert_eq!(once.resolved, twice.resolved, "{name}");
    }
}

#[test]
fn the_long_fat_pipe_has_the_round_trip_it_says() {
    let (folder, name, text) =
        support::examples().into_iter().find(|(_, name, _)| name == "long-fat-pipe.toml").unwrap();
    let s = Scenario::parse(&text, &name, &folder, &[]).unwrap_or_else(|e| panic!("{e}"));
    let queue = support::link(&s, "r1->r2").queue.as_ref().unwrap();
    assert_eq!(queue.values.get(queue.kind.params(), "limit"), 200e6 * 0.2 / 8.0);
}
