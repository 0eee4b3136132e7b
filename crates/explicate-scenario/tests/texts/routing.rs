//! Shortest paths, against a slow and simple search.

use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_scenario::model::{Link, Reroute};
use explicate_scenario::routing::Routes;

fn link(from: usize, to: usize, delay: u64) -> Link {
    Link {
        name: format!("{from}->{to}"),
        part: "",
        from,
        to,
        rate: Rate::mbps(1),
        delay: Time(delay),
        capacity_steps: Vec::new(),
        measured: None,
        shares_with: None,
        capacity: Rate::mbps(1),
        queue: None,
        routers: Vec::new(),
        classes: Vec::new(),
        kappa: 0.0,
        by_flows: false,
        channel: Vec::new(),
        clock_tick: Time::ZERO,
        scone: None,
        over: None,
    }
}

fn duplex(pairs: &[(usize, usize, u64)]) -> Vec<Link> {
    pairs.iter().flat_map(|&(a, b, d)| [link(a, b, d), link(b, a, d)]).collect()
}

/// (delay, hops) of the best path by Bellman and Ford.
fn best(n: usize, links: &[Link], from: usize) -> Vec<Option<(u64, usize)>> {
    let mut cost = vec![None; n];
    cost[from] = Some((0, 0));
    for _ in 0..n {
        for l in links {
            if let Some((d, h)) = cost[l.from] {
                let through = (d + l.delay.0, h + 1);
                if cost[l.to].is_none_or(|c| through < c) {
                    cost[l.to] = Some(through);
                }
            }
        }
    }
    cost
}

#[test]
fn delay_then_hops_then_index() {
    let links = vec![link(0, 1, 5), link(1, 3, 5), link(0, 2, 5), link(2, 3, 5), link(0, 3, 10), link(0, 3, 10)];
    let mut routes = Routes::new(4, &links);
    assert_eq!(routes.path(0, 3), Some(vec![4]), "as slow, but fewer hops; of the two the first");
    assert_eq!(Routes::new(4, &links[..4]).path(0, 3), Some(vec![0, 1]));
    assert_eq!(routes.path(3, 0), None);
    assert_eq!(routes.path(2, 2), Some(vec![]));
}

#[test]
fn agrees_with_a_simple_search() {
    let mut rng = Rng::stream(1, "graphs");
    for round in 0..200 {
        let n = 2 + (rng.next_u64() % 12) as usize;
        let m = (rng.next_u64() % 30) as usize;
        let mut links = Vec::new();
        for _ in 0..m {
            let (a, b) = ((rng.next_u64() % n as u64) as usize, (rng.next_u64() % n as u64) as usize);
            let delay = rng.next_u64() % 4;
            if a != b {
                links.push(link(a, b, delay));
                if rng.next_u64().is_multiple_of(2) {
                    links.push(link(b, a, delay));
                }
            }
        }
        let mut routes = Routes::new(n, &links);
        for from in 0..n {
            let costs = best(n, &links, from);
            for (to, expected) in costs.iter().enumerate() {
                let path = routes.path(from, to);
                let cost = path.as_ref().map(|p| {
                    let mut at = from;
                    for &l in p {
                        assert_eq!(links[l as usize].from, at);
                        at = links[l as usize].to;
                    }
                    assert_eq!(at, to);
                    (p.iter().map(|&l| links[l as usize].delay.0).sum::<u64>(), p.len())
                });
                assert_eq!(cost, *expected, "round {round}: {from} to {to}");
            }
        }
    }
}

#[test]
fn a_wide_dumbbell_is_quick() {
    let pairs = 10_000;
    let mut spec = vec![(0, 1, 20)];
    for i in 0..pairs {
        spec.push((2 + 2 * i, 0, 1));
        spec.push((1, 3 + 2 * i, 1));
    }
    let links = duplex(&spec);
    let mut routes = Routes::new(2 + 2 * pairs, &links);
    for i in 0..pairs {
        let (s, d) = (2 + 2 * i, 3 + 2 * i);
        let names: Vec<&str> = routes.path(s, d).unwrap().iter().map(|&l| links[l as usize].name.as_str()).collect();
        assert_eq!(names, [format!("{s}->0"), "0->1".to_string(), format!("1->{d}")]);
        assert_eq!(routes.path(d, s).unwrap().len(), 3);
    }
}

#[test]
fn small_graphs() {
    let two = duplex(&[(0, 1, 1)]);
    assert_eq!(Routes::new(2, &two).path(1, 0), Some(vec![1]));
    assert_eq!(Routes::new(3, &two).path(0, 2), None);
    let star = duplex(&[(0, 1, 1), (0, 2, 1)]);
    assert_eq!(Routes::new(3, &star).path(1, 2), Some(vec![1, 2]));
    let one_way = vec![link(0, 1, 1), link(1, 2, 1)];
    let mut routes = Routes::new(3, &one_way);
    assert_eq!(routes.path(0, 2), Some(vec![0, 1]));
    assert_eq!(routes.path(2, 0), None);
    assert_eq!(routes.path(1, 0), None);
}

/// Over time: a square whose short side fails and recovers.
#[test]
fn routes_leave_links_out() {
    let links = duplex(&[(0, 1, 5), (0, 2, 5), (2, 1, 5), (1, 3, 5)]);
    let away = |at: u64, without: &[usize]| Reroute { at: Time::secs(at), without: without.to_vec() };
    let changes = [away(1, &[0]), away(2, &[0, 1, 7]), away(3, &[])];
    let mut phases: Vec<Routes> = Routes::over_time(4, &links, &changes).collect();
    let there: Vec<_> = phases.iter_mut().map(|r| r.path(0, 3)).collect();
    assert_eq!(there, [Some(vec![0, 6]), Some(vec![2, 4, 6]), Some(vec![2, 4, 6]), Some(vec![0, 6])]);
    let back: Vec<_> = phases.iter_mut().map(|r| r.path(3, 0)).collect();
    assert_eq!(back, [Some(vec![7, 1]), Some(vec![7, 1]), None, Some(vec![7, 1])]);
}
