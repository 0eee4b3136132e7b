//! What gateways and a flow of the kernel's CUBIC beside them have of a line. Needs root, so `make measure` runs it.
#![allow(clippy::print_stdout)] // `cargo test -- --nocapture` shows the numbers

use super::tcp::{at_once, cubic_between};
use crate::common::gateways::Sites;
use crate::figures::{Better, figure};
use explicate_net::awake::Awake;

/// What gateways with an upload and a flow of the kernel's CUBIC beside them have of a line of 4.8 Mbit/s, as shares of a half, from 30 s to
/// 90 s. The gateways' `rate` is so many times what the line carries; it has this round trip, ms, and a queue of so many bandwidth-delay
/// products.
fn beside_the_kernel(told: u64, round_trip: u64, queue: f64) -> [f64; 2] {
    let (carries, span) = (4.8, (30.0, 90.0));
    let sites = Sites::new();
    let delay = round_trip / 2;
    let limit = (queue * carries * 125.0 * round_trip as f64) as u64;
    let way = format!("rate = \"{carries}Mbit/s\", delay = \"{delay}ms\"");
    let there = format!("{way}, queue = {{ kind = \"droptail\", limit = \"{limit}B\" }}");
    let back = format!("{way}, queue = {{ kind = \"droptail\", limit = \"1MB\" }}");
    let _link = sites.net.start("l", &["link", "left", "right", "--there", &there, "--back", &back]);
    let _gateways = sites.gateways("", &format!("[wan]\nrate = \"{}kbit/s\"", told * 4800));
    // From gateway to gateway, so that it is not carried.
    let beside = cubic_between(&sites.net, ["ga", "gb"], "192.0.2.2:5000", 1, span);
    let carried = cubic_between(&sites.net, ["c", "s"], "10.2.0.2:5000", 1, span);
    [carried, beside].map(|flow| flow.join().unwrap()[0] / (carries / 2.0))
}

/// The real twin of `neither_gateways_nor_tcp_beside_them_starve`, which has the simulator's CUBIC: neither has less than a third of its share.
#[test]
#[ignore = "needs root: make measure"]
fn neither_gateways_nor_the_kernels_tcp_starve() {
    let _awake = Awake::keep();
    let queues = [(20, 0.5), (20, 2.0), (200, 0.5), (200, 2.0), (600, 0.5), (600, 2.0)];
    let cases = [1, 10].into_iter().flat_map(|told| queues.map(|(round_trip, queue)| (told, round_trip, queue)));
    let cases: Vec<_> = cases.collect();
    let runs =
        cases.iter().map(|&(told, round_trip, queue)| move || beside_the_kernel(told, round_trip, queue)).collect();
    let shares = at_once(runs);
    for ((told, round_trip, queue), [gateways, tcp]) in cases.iter().zip(&shares) {
        println!(
            "told {told} times, {round_trip} ms, {queue} products: gateways {gateways:.2}, CUBIC {tcp:.2} of a half"
        );
    }
    for (who, name) in ["gateways", "CUBIC"].into_iter().enumerate() {
        let least = shares.iter().map(|share| share[who]).fold(f64::INFINITY, f64::min);
        figure(&format!("gateway: least share of a half, {name} beside the other"), least, "", Better::More);
        assert!(least >= 1.0 / 3.0, "{name}: {shares:.2?} for {cases:?}");
    }
}
