//! Connections through two gateways while faults happen by chance: each arrives whole, or as a true beginning and then a reset, checked by
//! SHA-256 at both ends. `SOAK_MINUTES` says for how long. Needs root: `make soak`.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a long run shows what it does, and `make soak` says how long"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::common::Running;
use crate::common::exchanges::{End, Exchange, answer};
use crate::common::gateways::Sites;
use crate::figures::{Better, figure};
use explicate_core::rng::Rng;
use explicate_net::sys::monotonic;

const SERVER: &str = "10.2.0.2:7001";
/// Connections at a time.
const CLIENTS: u64 = 6;
/// A connection that takes longer is printed.
const SLOW: f64 = 15.0;
const WAN: &str = "when_down = \"reset\"\n[wan]\nrate = \"19Mbit/s\"";

/// Seconds since then.
fn since(then: u64) -> f64 {
    (monotonic() - then) as f64 / 1e9
}

/// What became of the connections.
#[derive(Default)]
struct Tally {
    over: AtomicBool,
    whole: AtomicU64,
    broken: AtomicU64,
    refused: AtomicU64,
}

/// One connection after another, of up to 1 MB there and 2 MB back.
fn client(tally: &Tally, number: u64) {
    let mut rng = Rng::stream(number, "soak/client");
    while !tally.over.load(Ordering::Relaxed) {
        let word = rng.next_u64();
        let size = |most: u64, bits: u64| (((word >> bits) % most) >> ((word >> (32 + bits)) & 7)) as usize;
        let exchange = Exchange { seed: word, there: size(1_000_000, 0), back: size(2_000_000, 8) };
        let began = monotonic();
        let end = exchange.run(SERVER.parse().unwrap());
        let took = since(began);
        if took > SLOW {
            println!("{} bytes there and {} back: {end:?} after {took:.0} s", exchange.there, exchange.back);
        }
        let counter = match end {
            Ok(End::Whole) => &tally.whole,
            Ok(End::Broken) => &tally.broken,
            Err(_) => {
                sleep(Duration::from_millis(200));
                &tally.refused
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The link, with permanent faults.
fn link(sites: &Sites) -> Running {
    let faults = "{ kind = \"reordering\", rate = \"1%\", by = \"20ms\" }, { kind = \"duplication\", rate = \"1%\" }, \
                  { kind = \"corruption\", rate = \"1%\" }, { kind = \"random_loss\", rate = \"1%\" }";
    let queue = "{ kind = \"droptail\", limit = \"500kB\" }";
    let there = format!("rate = \"20Mbit/s\", delay = \"20ms\", queue = {queue}, channel = [{faults}]");
    sites.net.start("l", &["link", "left", "right", "--there", &there])
}

/// One fault; afterwards all runs again.
fn fault(sites: &Sites, gateways: &mut [Option<Running>; 2], word: u64, most_outage: u64) {
    let names = ["gb", "ga"];
    match word % 4 {
        kind @ (0 | 1) => {
            let index = kind as usize;
            gateways[index].take().unwrap().stop("KILL");
            sleep(Duration::from_millis(word >> 8 & 0x3ff));
            gateways[index] = Some(sites.gateway(names[index], &sites.configure(names[index], "", WAN)));
        }
        2 => {
            sites.net.exec("l", "ip link set left down");
            sleep(Duration::from_millis(100 + (word >> 8) % most_outage));
            sites.net.exec("l", "ip link set left up");
        }
        _ => gateways.iter().flatten().for_each(|gateway| gateway.signal("HUP")),
    }
}

#[test]
#[ignore = "needs root: make measure"]
fn every_byte_arrives_or_the_connection_is_reset() {
    let minutes: f64 = std::env::var("SOAK_MINUTES").map_or(2.0, |text| text.parse().unwrap());
    let sites = Sites::new();
    let _link = link(&sites);
    answer(&sites.net, SERVER);
    let mut gateways = ["gb", "ga"].map(|name| Some(sites.gateway(name, &sites.configure(name, "", WAN))));
    sites.connected();
    let tally = Arc::new(Tally::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let tally = tally.clone();
            sites.net.inside("c", move || client(&tally, number))
        })
        .collect();
    let mut rng = Rng::stream(1, "soak/faults");
    let (began, mut faults) = (monotonic(), 0);
    while since(began) < 60.0 * minutes {
        sleep(Duration::from_secs(3 + rng.next_u64() % 8));
        // An outage of 20 s is one in some of a long run.
        let word = rng.next_u64();
        println!("{:.0} s: fault {}", since(began), word % 4);
        fault(&sites, &mut gateways, word, if minutes > 5.0 { 20_000 } else { 5_000 });
        faults += 1;
    }
    tally.over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    let [whole, broken, refused] =
        [&tally.whole, &tally.broken, &tally.refused].map(|counter| counter.load(Ordering::Relaxed));
    println!("{faults} faults; {whole} connections whole, {broken} reset, {refused} not opened");
    figure("soak: whole connections a minute", whole as f64 / minutes, "", Better::More);
    assert!(whole as f64 > 30.0 * minutes && broken > 0, "{whole} whole, {broken} reset");
    sites.connected();
    let last = sites.net.inside("c", || Exchange { seed: 9, there: 1000, back: 100_000 }.run(SERVER.parse().unwrap()));
    assert_eq!(last.join().unwrap().unwrap(), End::Whole, "after the faults");
}
