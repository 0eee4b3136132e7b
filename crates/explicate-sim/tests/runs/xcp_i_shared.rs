//! XCP-i edges that share a bottleneck inside a cloud (paper I, section V-A, which leaves the case open): `law = "shared"`, and
//! as a control the paper's law, equation 1.

use crate::outcome::{Outcome, run};

/// Packets of 1000 bytes over 30 Mbit/s inside one cloud.
const CAPACITY: f64 = 30.0;
/// The default of `spare_multiple`.
const MULTIPLE: f64 = 10.0;

/// A path across the cloud with an edge of its own: delay of each of its four links, flows, start.
#[derive(Clone, Copy)]
struct Path {
    delay_ms: f64,
    flows: u32,
    start_s: u32,
}

const SIMPLE: Path = Path { delay_ms: 4.0, flows: 1, start_s: 0 };

/// Runs the paths over c1->c2 for `seconds`; results are of the last ten. From 10 s on other traffic takes `cross` Mbit/s.
fn shared(law: &str, paths: &[Path], cross: u32, seconds: u32) -> Outcome {
    let mut text = format!("duration = \"{seconds}s\"\nwarmup = \"{}s\"\n", seconds - 10);
    let mut links = vec![("c1".to_string(), "c2".to_string(), CAPACITY, 10.0)];
    for (p, path) in paths.iter().enumerate() {
        for (from, to) in [("s", "a"), ("a", "c1"), ("c2", "b"), ("b", "d")] {
            let name = |n: &str| if n.starts_with('c') { n.to_string() } else { format!("{n}{p}") };
            links.push((name(from), name(to), 80.0, path.delay_ms));
        }
    }
    if cross > 0 {
        links.push(("x".into(), "c1".into(), 80.0, 5.0));
        links.push(("c2".into(), "y".into(), 80.0, 5.0));
    }
    let mut nodes: Vec<&str> = links.iter().flat_map(|l| [l.0.as_str(), l.1.as_str()]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        text += &format!("[[node]]\nname = \"{node}\"\n");
    }
    for (a, b, rate, delay) in &links {
        for (from, to) in [(a, b), (b, a)] {
            let plain = from.starts_with('c') || from == "x" || from == "y";
            let router =
                if plain { "\"none\"".to_string() } else { format!("{{ kind = \"xcp_i\", law = \"{law}\" }}") };
            let host = from.starts_with(['s', 'd', 'x', 'y']);
            let queue = if host { "" } else { "queue = { kind = \"droptail\", limit = \"0.5bdp\" }\n" };
            text += &format!(
                "[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}Mbit/s\"\ndelay = \"{delay}ms\"\nrouter = {router}\n{queue}"
            );
        }
    }
    for (p, Path { flows, start_s, .. }) in paths.iter().enumerate() {
        text += &format!(
            "[[flows]]\nname = \"f{p}\"\nprotocol = \"xcp_i\"\nparams = {{ guard = \"off\" }}\npacket = \"1000B\"\n\
             from = \"s{p}\"\nto = \"d{p}\"\ncount = {flows}\nstart = \"{start_s}s\"\n"
        );
    }
    if cross > 0 {
        text += &format!(
            "[[flows]]\nname = \"cross\"\nprotocol = \"greedy\"\nparams = {{ rate = \"{cross}Mbit/s\" }}\npacket = \"1000B\"\n\
             from = \"x\"\nto = \"y\"\nstart = \"10s\"\n"
        );
    }
    run(&text)
}

/// Mbit/s of all flows of the paths.
fn rates(done: &Outcome, paths: &[Path]) -> Vec<f64> {
    (0..paths.len()).flat_map(|p| done.flows(&format!("f{p}"), "throughput_bps")).map(|rate| rate / 1e6).collect()
}

fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(s, q), r| (s + r, q + r * r));
    sum * sum / (squares * rates.len() as f64)
}

/// Drops in the whole run, Jain's index, and the sum of all rates over the fixed point's k N / (1 + k N) of what other traffic
/// leaves.
fn judged(done: &Outcome, paths: &[Path], cross: u32) -> (f64, f64, f64) {
    let rates = rates(done, paths);
    let stiffness = MULTIPLE * rates.len() as f64;
    let expected = (CAPACITY - cross as f64) * stiffness / (1.0 + stiffness);
    (done.drops(), jain(&rates), rates.iter().sum::<f64>() / expected)
}

fn is_fair(law: &str, paths: &[Path], cross: u32, seconds: u32) {
    let done = shared(law, paths, cross, seconds);
    let (drops, jain, share) = judged(&done, paths, cross);
    let rates = rates(&done, paths);
    assert!(drops == 0.0 && jain >= 0.95 && (share - 1.0).abs() <= 0.02, "{drops} drops, {jain}, {share}: {rates:?}");
}

/// Two, four and eight edges that find the idle link together: no drop, and equal shares in the end. With equation 1 each hands out the
/// whole link.
#[test]
fn edges_that_start_together_share_without_a_drop() {
    for edges in [2, 4, 8] {
        let paths = vec![SIMPLE; edges];
        is_fair("shared", &paths, 0, 60);
        let (drops, ..) = judged(&shared("paper", &paths, 0, 25), &paths, 0);
        assert!(drops > 0.0, "equation 1 overloads the link with {edges} edges");
    }
}

/// The second edge starts when the first has the link: both get half. With equation 1, which sees nothing left, it gets what
/// shuffling gives its own flow, nothing.
#[test]
fn a_late_edge_gets_its_share() {
    let paths = [SIMPLE, Path { start_s: 10, ..SIMPLE }];
    is_fair("shared", &paths, 0, 40);
    let (_, jain, _) = judged(&shared("paper", &paths, 0, 40), &paths, 0);
    assert!(jain < 0.6, "{jain}");
}

/// Round trips from 36 to 276 ms, starts that are 2 s apart, and 12 Mbit/s of other traffic that does not react.
#[test]
fn round_trips_and_other_traffic_do_not_matter() {
    for edges in [2, 4, 8] {
        let path = |p: usize| {
            let delay_ms = 2.0 + 30.0 * p as f64 / (edges - 1) as f64;
            Path { delay_ms, start_s: 2 * p as u32, ..SIMPLE }
        };
        let paths: Vec<Path> = (0..edges).map(path).collect();
        is_fair("shared", &paths, 12, 120);
    }
}

/// An edge with three flows gets three times the share of an edge with one.
#[test]
fn shares_are_per_flow_not_per_edge() {
    let paths = [Path { flows: 3, ..SIMPLE }, SIMPLE];
    is_fair("shared", &paths, 0, 30);
}
