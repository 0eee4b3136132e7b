//! Shares of a tunnel: keystrokes beside transfers, hosts that do not read, and hosts with many connections.
#![expect(clippy::print_stdout, reason = "shows the figures")]

use std::collections::{BTreeMap, BTreeSet};

use super::flow::FLOW;
use super::hosts::{CLIENT, Leaves, Plan, Reads, Script, Server};
use super::machine::key;
use super::network::{Path, address};
use super::record::{Event, Fate, What, Who};
use super::scene::{SECOND, Scene};
use super::{Options, View, clock, run, run_beside};
use crate::gateway::identity::Identity;

/// Rates to gateway 1 and back, as told, bit/s.
const RATES: [u64; 2] = [4_800_000, 19_000_000];
/// Round trip, ns.
const ROUND_TRIP: u64 = 200_000_000;
/// What no transfer sends in a scene, bytes.
const ENDLESS: u64 = 1 << 40;
/// The sites of clients and of servers.
const SITES: (u8, u8) = (0, 1);

/// Two gateways with these rates and default limits; the path carries a little more.
fn scene(rates: [u64; 2], round_trip: u64, plans: Vec<Plan>) -> Scene {
    let text = |own: u8| {
        let peer = 1 - own;
        let line = Identity::of(key(peer)).unwrap().public.line();
        let to = if peer == 1 { format!("address = \"{}\"\n", address(peer)) } else { String::new() };
        format!(
            "[site]\ninterfaces = [\"lan\"]\nnetworks = [\"198.18.{own}.0/24\"]\nwhen_down = \"reset\"\n\
             [wan]\nrate = \"{}bit/s\"\n\
             [[peer]]\nname = \"gateway-{peer}\"\nkey = \"{line}\"\nnetworks = [\"198.18.{peer}.0/24\"]\n{to}",
            rates[own as usize]
        )
    };
    let rate = 1.1 * *rates.iter().max().unwrap() as f64 / 8.0;
    let path =
        Path { rate, steps: None, delay: round_trip / 2, queue: 1 << 20, loss: 0.0, late: 0.0, copies: 0.0, mtu: 1500 };
    Scene {
        seed: 1,
        paths: vec![(0, 1, path)],
        texts: vec![text(0), text(1)],
        plans,
        happens: Vec::new(),
        kinds: BTreeSet::new(),
        capacity: 128 << 10,
        window: 32 << 20,
        peer_window: 256 << 20,
        keys: [usize::MAX; 2],
        beside: None,
    }
}

fn plan(client_host: u8, at: u64, client: Script, server: Script) -> Plan {
    let (from, to) = SITES;
    Plan { from, client_host, to, at, client, server, accepts: Server::Accepts, keys: None }
}

/// An upload or a download of this host that its client resets after so long.
fn transfer(client_host: u8, at: u64, takes: u64, upload: bool) -> Plan {
    let (sends, reads) = (Script::sending(ENDLESS), Script { answers: true, ..Script::sending(1) });
    let (client, server) = if upload { (sends, reads) } else { (Script { idles: true, ..Script::sending(1) }, sends) };
    plan(client_host, at, Script { leaves: Some((takes, Leaves::Reset)), ..client }, server)
}

/// Keystrokes of this host: how many, and the time between two, ns.
fn keys(client_host: u8, at: u64, rounds: u32, every: u64) -> Plan {
    Plan { keys: Some((rounds, every)), ..plan(client_host, at, Script::sending(0), Script::sending(0)) }
}

/// The 99th percentile of the echoes' times, and the longest, ns.
fn echoes(scene: &Scene) -> (u64, u64) {
    let report = run(scene, Options::default());
    assert!(report.broken.is_empty(), "{:#?}", &report.broken[..report.broken.len().min(5)]);
    let mut times: Vec<u64> = report
        .fared
        .iter()
        .flat_map(|[client, _]| client.iter().flat_map(|client| &client.keys))
        .map(|key| key.1)
        .collect();
    times.sort_unstable();
    (times[(times.len() * 99).div_ceil(100) - 1], times[times.len() - 1])
}

/// Four terminals, two of the host with the transfers and two of another one, from 5 s after the last transfer began.
fn beside(uploads: usize, downloads: usize) -> Scene {
    let (began, rounds, every) = (SECOND, 45, SECOND / 50);
    let from = began + 5 * SECOND;
    let takes = 5 * SECOND + rounds as u64 * (every + 2 * ROUND_TRIP);
    let mut plans: Vec<Plan> =
        (0..4).map(|n| keys(CLIENT + n % 2, from + n as u64 * 7_000_000, rounds, every)).collect();
    for upload in (0..uploads).map(|_| true).chain((0..downloads).map(|_| false)) {
        plans.push(transfer(CLIENT, began, takes, upload));
    }
    scene(RATES, ROUND_TRIP, plans)
}

#[test]
fn keystrokes_do_not_wait_for_transfers() {
    judge_echoes(&[(1, 0), (3, 0), (10, 0), (60, 0)]);
}

#[test]
fn keystrokes_do_not_wait_for_downloads() {
    judge_echoes(&[(0, 1), (0, 60)]);
}

#[test]
fn keystrokes_do_not_wait_for_transfers_of_both_ways() {
    judge_echoes(&[(3, 3), (60, 60)]);
}

fn judge_echoes(cases: &[(usize, usize)]) {
    let idle = echoes(&beside(0, 0)).0;
    println!("idle: {:.1} ms", idle as f64 / 1e6);
    for &(uploads, downloads) in cases {
        let (p99, longest) = echoes(&beside(uploads, downloads));
        let over = |time: u64| (time as f64 - idle as f64) / 1e6;
        println!(
            "{uploads} uploads, {downloads} downloads: p99 {:.1} ms over idle, longest {:.1}",
            over(p99),
            over(longest)
        );
        assert!(p99 <= idle + 20_000_000, "{uploads} uploads, {downloads} downloads: {:.1} ms", over(p99));
    }
}

/// Bytes that each host's connections have carried to the reading end between two times, ns after the gateways were connected.
fn carried(scene: &Scene, from: u64, to: u64) -> Vec<u64> {
    let report = run(scene, Options::default());
    assert!(report.broken.is_empty(), "{:#?}", &report.broken[..report.broken.len().min(5)]);
    let mut hosts = BTreeMap::new();
    for Event { at, what } in report.events {
        let What::Read(number, who, bytes) = what else { continue };
        if matches!(who, Who::Client | Who::Server) && (report.began + from..report.began + to).contains(&at) {
            *hosts.entry(scene.plans[number as usize].client_host).or_insert(0) += bytes as u64;
        }
    }
    hosts.into_values().collect()
}

fn jain(of: &[u64]) -> f64 {
    let (sum, squares) = of.iter().fold((0.0, 0.0), |(a, b), &x| (a + x as f64, b + (x * x) as f64));
    sum * sum / (of.len() as f64 * squares)
}

/// Transfers of hosts with so many connections each.
fn hosts(connections: &[usize], upload: bool, takes: u64) -> Scene {
    let of_host = |(host, count): (usize, &usize)| vec![transfer(CLIENT + host as u8, SECOND, takes, upload); *count];
    scene(RATES, ROUND_TRIP, connections.iter().enumerate().flat_map(of_host).collect())
}

fn judge_shares(cases: &[&[usize]], upload: bool) {
    let (from, to) = (8 * SECOND, 18 * SECOND);
    let single: u64 = carried(&hosts(&[1], upload, to), from, to).iter().sum();
    for connections in cases {
        let shares = carried(&hosts(connections, upload, to), from, to);
        let (sum, jain) = (shares.iter().sum::<u64>(), jain(&shares));
        let part = sum as f64 / single as f64;
        println!("upload {upload}, {connections:?}: {part:.3} of the single transfer, Jain's index {jain:.3}");
        assert_eq!(shares.len(), connections.len());
        assert!(jain >= 0.95, "upload {upload}, {connections:?}: {shares:?}");
        assert!(part >= 0.97, "upload {upload}, {connections:?}: {sum} of {single}");
    }
}

#[test]
fn hosts_have_equal_shares_however_many_connections_they_have() {
    for upload in [true, false] {
        judge_shares(&[&[100], &[1, 10, 100], &[1, 1, 1, 10, 10, 10, 1, 30, 1, 1]], upload);
    }
}

/// Connections whose ends do not read, up and down, and reset themselves at last; a transfer of another host has its rate meanwhile.
fn unread(connections: usize, limits: &str, upload: bool) {
    let (from, takes, end) = (25 * SECOND, 5 * SECOND, 32 * SECOND);
    let plans = |unread: usize| {
        let mut plans = vec![transfer(CLIENT + 1, from, takes, upload)];
        for number in 0..unread {
            let (sends, reads) = (Script::sending(ENDLESS), Script { reads: Reads::Never, ..Script::sending(0) });
            let (client, server) =
                if number % 2 == 0 { (sends, reads) } else { (Script { idles: true, ..reads }, sends) };
            let at = SECOND + (number as u64 % 1000) * 2_000_000;
            plans.push(plan(CLIENT, at, Script { leaves: Some((end - at, Leaves::Reset)), ..client }, server));
        }
        let mut scene = Scene { capacity: 4 << 10, ..scene([15_000_000; 2], 40_000_000, plans) };
        scene.texts.iter_mut().for_each(|text| text.push_str(limits));
        scene
    };
    let rate = |scene: &Scene| carried(scene, from + SECOND, from + takes).last().copied().unwrap_or(0);
    let (alone, beside) = (rate(&plans(0)), rate(&plans(connections)));
    println!("upload {upload}, beside {connections} unread: {:.3} of the rate alone", beside as f64 / alone as f64);
    assert!(beside as f64 >= 0.9 * alone as f64, "upload {upload}: {beside} of {alone}");
}

/// Nine connections whose hosts do not read where eight are the limit of both gateways, or of the one with the servers.
#[test]
fn connections_beyond_the_limit_are_refused_and_none_is_reset() {
    for limited in [vec![0, 1], vec![1]] {
        let (sends, idles) = (Script::sending(ENDLESS), Script { idles: true, ..Script::sending(1) });
        let unread = |number: u64| {
            let leaves = Some((20 * SECOND - number * SECOND / 10, Leaves::Reset));
            let client = Script { leaves, reads: Reads::Never, ..idles };
            plan(CLIENT, SECOND + number * SECOND / 10, client, sends)
        };
        let mut scene = scene([15_000_000; 2], 40_000_000, (0..9).map(unread).collect());
        limited.iter().for_each(|gateway| scene.texts[*gateway].push_str("[limits]\nconnections = 8\n"));
        let report = run(&scene, Options::default());
        assert!(report.broken.is_empty(), "{:#?}", report.broken);
        let client = |number: usize| report.fared[number][0].clone().unwrap();
        assert!((0..8).all(|number| client(number).left.is_some()), "the others stay until they leave");
        let (ninth, began) = (client(8), report.began + SECOND + 8 * SECOND / 10);
        assert!(ninth.failed && ninth.over < Some(began + SECOND / 2), "{ninth:?}");
    }
}

#[test]
fn hosts_that_do_not_read_stop_no_other() {
    unread(100, "[limits]\npeer_bytes = 67108864\n", true);
    unread(100, "[limits]\npeer_bytes = 67108864\n", false);
}

#[test]
fn four_thousand_connections_that_nobody_reads_stop_no_other() {
    unread(4095, "[limits]\npeer_bytes = 67108864\n", false);
}

/// The same scene over a path with losses, and gateways that expect some of them.
fn lossy(mut scene: Scene, loss: f64, air_loss: f64) -> Scene {
    scene.paths[0].2.loss = loss;
    for text in &mut scene.texts {
        *text = text.replace("[wan]\n", &format!("[wan]\nair_loss = {air_loss}\n"));
    }
    scene
}

/// Seconds until a download of 10 MB has arrived.
fn download(loss: f64, air_loss: f64, seed: u64) -> f64 {
    let (client, server) = (Script::sending(1), Script { answers: true, ..Script::sending(10_000_000) });
    let mut scene = lossy(scene(RATES, ROUND_TRIP, vec![plan(CLIENT, SECOND, client, server)]), loss, air_loss);
    scene.seed = seed;
    let report = run(&scene, Options::default());
    assert!(report.broken.is_empty(), "{:#?}", report.broken);
    let over = report.fared[0][0].as_ref().and_then(|client| client.over).unwrap();
    (over - report.began - SECOND) as f64 / 1e9
}

#[test]
fn parity_follows_the_losses_of_the_air() {
    for (loss, most) in [(0.0, 6.0), (0.01, 6.0), (0.05, 9.0)] {
        let took: Vec<f64> = (1..4).map(|seed| download(loss, 0.02, seed)).collect();
        println!("loss {loss}: 10 MB in {took:.2?} s");
        assert!(took.iter().all(|took| *took <= most), "loss {loss}: {took:?} s");
    }
}

/// Whatever limits an upload (the line, TCP's window as `rate` is ten times too high, a host that writes blocks of 4 kB with pauses),
/// parity is the share of the datagrams that the measured losses need, and at most a fortieth of what the line carries more.
#[test]
fn parity_has_its_share_whatever_limits_the_sender() {
    let mut wrong = Vec::new();
    for (told, every, loss) in
        [(1, 0, 0.0), (1, 0, 0.01), (10, 0, 0.0), (10, 0, 0.01), (1, 14_000_000, 0.0), (1, 40_000_000, 0.02)]
    {
        let mut upload = transfer(CLIENT, SECOND, 20 * SECOND, true);
        upload.client.every = every;
        let mut scene = scene([told * 4_800_000; 2], ROUND_TRIP, vec![upload]);
        (scene.paths[0].2.rate, scene.paths[0].2.queue, scene.paths[0].2.loss) = (600_000.0, 120_000, loss);
        // Sent datagrams of parity and all; and how many of the first the blocks of each second and a fortieth of the line allow.
        let look = async |view: View| {
            let (gateway, _) = view.machines[0].gateway().unwrap();
            let (mut before, mut seen) = (None, [0.0; 3]);
            for second in 5..=20 {
                clock::until(Some(view.began + second * SECOND)).await;
                let port = gateway.port.as_ref().unwrap().report().0;
                let block = gateway.table().peers[0].current().unwrap().1.repairs().block;
                let now = ([port.parity, port.sent].map(|count| count as f64), block);
                if let Some((counts, shorter)) = before.replace(now) {
                    let [parity, all] = [0, 1].map(|n| now.0[n] - counts[n]);
                    let most = (all - parity) * 2.0 / f64::from(block.min(shorter)) + 400.0 / 40.0;
                    seen = [seen[0] + parity, seen[1] + all, seen[2] + most];
                }
            }
            seen
        };
        let (_, [parity, all, most]) = run_beside(&scene, Options::default(), look);
        println!(
            "told {told} times, 4 kB each {} ms, loss {loss}: {parity} of {all}, at most {most:.0}",
            every / 1_000_000
        );
        if parity > most {
            wrong.push(format!("told {told}, every {every}, loss {loss}: {parity} of {all}, at most {most:.0}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// More than the air may lose is a sign of a queue that is full: parity does not follow it, and does not hide it.
#[test]
fn parity_does_not_follow_more_than_the_air_may_lose() {
    let [told, not_told] = [0.08, 0.02].map(|air_loss| {
        let mut scene = lossy(hosts(&[1], false, 20 * SECOND), 0.08, air_loss);
        scene.seed = 1;
        carried(&scene, SECOND, 20 * SECOND).iter().sum::<u64>() as f64 / 1e6
    });
    println!("in 19 s with 8 % of losses: {told:.1} MB, {not_told:.1} MB if 2 % are expected");
    assert!(told > 2.0 * not_told, "{told} and {not_told} MB");
}

/// What gateways with an upload, or with an idle connection, and a flow of TCP have of a line of 4.8 Mbit/s, as shares of a half, from 30 s
/// after they have begun. Their `rate` is so many times what it carries; it has this round trip, ms, and a queue of so many
/// bandwidth-delay products. `capacity` is the end of the gateways' files.
fn beside_tcp(uploads: bool, told: u64, round_trip: u64, queue: f64, seed: u64, capacity: &str) -> [f64; 2] {
    let (carries, takes) = (4_800_000, 90 * SECOND);
    let idle = Script { idles: true, ..Script::sending(1) };
    let idle = plan(CLIENT, 0, Script { leaves: Some((takes, Leaves::Reset)), ..idle }, idle);
    let plans = vec![if uploads { transfer(CLIENT, 0, takes, true) } else { idle }];
    let mut scene = scene([told * carries; 2], round_trip * 1_000_000, plans);
    scene.beside = Some((0, 1));
    scene.seed = seed;
    scene.texts.iter_mut().for_each(|text| text.push_str(capacity));
    let path = &mut scene.paths[0].2;
    path.rate = carries as f64 / 8.0;
    path.queue = (queue * path.rate * round_trip as f64 / 1e3) as u64;
    let report = run(&scene, Options::default());
    assert!(report.broken.is_empty(), "{:#?}", report.broken);
    let judged = report.began + 30 * SECOND..report.began + takes;
    let arrived = |who: u8| {
        let of = |event: &Event| match event.what {
            What::Datagram(from, 1, bytes, Fate::Arrives) if from == who && judged.contains(&event.at) => bytes as u64,
            _ => 0,
        };
        report.events.iter().map(of).sum::<u64>() as f64 / (carries as f64 / 16.0 * 60.0)
    };
    [arrived(SITES.0), arrived(FLOW)]
}

/// Round trips, ms, and queues, bandwidth-delay products.
const QUEUES: [(u64, f64); 6] = [(20, 0.5), (20, 2.0), (200, 0.5), (200, 2.0), (600, 0.5), (600, 2.0)];

/// The flow of the next test is one: a window that does not grow would have a twenty-fourth of the line at 600 ms.
#[test]
fn tcp_alone_fills_the_line() {
    for (round_trip, queue) in QUEUES {
        let [_, tcp] = beside_tcp(false, 1, round_trip, queue, 1, "");
        println!("{round_trip} ms, {queue} products: {:.2} of the line", tcp / 2.0);
        assert!(tcp >= 1.8, "{round_trip} ms, {queue} products: {:.2} of the line", tcp / 2.0);
    }
}

/// Gateways that send at the rate of the whole line, or at ten times it, take TCP's window for the limit when another flow is in the queue, also
/// one that is shorter than the guard's 25 ms: neither has less than a third of its share.
#[test]
fn neither_gateways_nor_tcp_beside_them_starve() {
    let mut starved = Vec::new();
    for (told, seed) in [(1, 1), (10, 2)] {
        for (round_trip, queue) in QUEUES {
            let [gateways, tcp] = beside_tcp(true, told, round_trip, queue, seed, "");
            let case = format!("told {told} times, {round_trip} ms, {queue} products");
            println!("{case}: gateways {gateways:.2}, TCP {tcp:.2} of a half");
            if gateways.min(tcp) < 1.0 / 3.0 {
                starved.push(format!("{case}: {gateways:.2}, {tcp:.2}"));
            }
        }
    }
    assert!(starved.is_empty(), "{starved:#?}");
}

/// A gateway that measures takes what another flow sends for a narrower line, so the line has to be its own (docs/gateway.md). A flow of TCP
/// that is there all the same never starves; the gateways do where a long queue stands before a long path.
#[test]
fn gateways_that_measure_starve_no_tcp_beside_them() {
    let mut starved = Vec::new();
    for told in [1, 10] {
        for (round_trip, queue) in QUEUES {
            let [gateways, tcp] = beside_tcp(true, told, round_trip, queue, 1, MEASURED);
            println!(
                "told {told} times, {round_trip} ms, {queue} products: gateways {gateways:.2}, TCP {tcp:.2} of a half"
            );
            assert!(tcp >= 1.0 / 3.0, "{told}, {round_trip} ms, {queue} products: {tcp:.2}");
            if gateways < 1.0 / 3.0 {
                starved.push((told, round_trip, queue));
            }
        }
    }
    assert_eq!(starved, [(1, 600, 2.0), (10, 600, 2.0)], "as docs/gateway.md says");
}

/// The end of the file of a gateway that measures its line.
const MEASURED: &str = "[wan.capacity]\nmeasured = true\nfloor = \"100kbit/s\"\n";

/// A line of 20 and 10 Mbit/s in turn, whose changes leave a queue each time, and whose trains do: neither is a reason for TCP's law to limit the
/// window. The transfer uses what a transfer over a line of the mean rate does, but for the time in which a change is found.
#[test]
fn a_measured_line_that_changes_is_used() {
    let (step, takes) = (5 * SECOND / 2, 20 * SECOND);
    let mut scene = scene([15_000_000; 2], 20_000_000, vec![transfer(CLIENT, 0, takes, true)]);
    for text in &mut scene.texts {
        text.push_str("[wan.capacity]\nmeasured = true\nfloor = \"1Mbit/s\"\n");
    }
    let path = &mut scene.paths[0].2;
    (path.rate, path.steps, path.queue) = (2.5e6, Some((step, 1.25e6)), 500_000);
    let report = run(&scene, Options::default());
    assert!(report.broken.is_empty(), "{:#?}", report.broken);
    // Three times each rate.
    let from = (report.began / step + 1) * step;
    let (mut bytes, mut lost) = (0, 0);
    for Event { at, what } in &report.events {
        let &What::Datagram(0, 1, length, fate) = what else { continue };
        lost += (fate == Fate::Full) as u32;
        if fate == Fate::Arrives && (from..from + 6 * step).contains(at) {
            bytes += length;
        }
    }
    let used = bytes as f64 / (6.0 * step as f64 / 1e9 * 1.875e6);
    println!("{used:.3} of the line, {lost} datagrams lost");
    assert!(used > 0.9 && lost == 0, "{used} of the line, {lost} lost");
}

/// Gateways that measure their line and whose `rate` is ten times what it carries find that within 10 s: the queue on the path is short then.
#[test]
fn a_measured_line_that_was_told_ten_times_too_much_has_a_short_queue() {
    let (carries, takes) = (4_800_000, 20 * SECOND);
    let mut wrong = Vec::new();
    for (round_trip, queue) in QUEUES {
        let mut scene = scene([10 * carries; 2], round_trip * 1_000_000, vec![transfer(CLIENT, 0, takes, true)]);
        scene.texts.iter_mut().for_each(|text| text.push_str(MEASURED));
        let path = &mut scene.paths[0].2;
        path.rate = carries as f64 / 8.0;
        path.queue = (queue * path.rate * round_trip as f64 / 1e3) as u64;
        let rate = path.rate;
        let report = run(&scene, Options::default());
        assert!(report.broken.is_empty(), "{:#?}", report.broken);
        let (mut free_at, mut bytes, mut waits) = (0, 0, Vec::new());
        for Event { at, what } in &report.events {
            let &What::Datagram(0, 1, length, Fate::Arrives) = what else { continue };
            if (report.began + takes / 2..report.began + takes).contains(at) {
                waits.push(free_at.max(*at) - at);
                bytes += length;
            }
            free_at = free_at.max(*at) + (length as f64 / rate * 1e9) as u64;
        }
        waits.sort();
        let of = |share: f64| waits[(share * (waits.len() - 1) as f64) as usize] as f64 / 1e6;
        let used = bytes as f64 / rate / 10.0;
        println!("{round_trip} ms, {queue} products: {:.1} ms, p99 {:.1} ms, {used:.2} of the line", of(0.5), of(0.99));
        if of(0.99) > 50.0 {
            wrong.push(format!("{round_trip} ms, {queue} products: {:.1} ms", of(0.99)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
