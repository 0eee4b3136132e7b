//! Prints the story of a seed: gateways, hosts and faults in simulated time, or both ends of transfers. Exits with 1 if a rule breaks.
//!
//! `cargo run -p explicate-net --example explicated-sim -- SEED [--transfers] [--count N] [--datagrams] [--back FAULT]`; with `--router`
//! a router or an emulated link instead of gateways.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use explicate_net::simulated::faults;
use explicate_net::simulated::record::{Broken, Event, Rule, What};
use explicate_net::simulated::scene::{KINDS, Scene};
use explicate_net::simulated::transfers::{self, scene as of_transfers};
use explicate_net::simulated::{Options, router, run};

/// The story of a seed.
#[derive(Parser)]
struct Arguments {
    /// The first seed.
    seed: u64,
    /// Transfers of files instead of gateways.
    #[arg(long)]
    transfers: bool,
    /// So many seeds; of several, only what breaks is printed.
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Shows each datagram, too.
    #[arg(long)]
    datagrams: bool,
    /// Runs each seed twice and compares the events.
    #[arg(long)]
    twice: bool,
    /// Puts a mended fault back: cancel, called-anew, silence, unread, keep-alive, waiting, forgets, orderly, moves, both-call;
    /// with --transfers: unverified, kept-part, from-the-first, called-once, moves; with --router: keeps, uncounted, early, behind.
    #[arg(long)]
    back: Option<String>,
    /// Routers and links instead of gateways; `--datagrams` shows each frame that leaves.
    #[arg(long, conflicts_with = "transfers")]
    router: bool,
}

/// Routers and links instead of gateways.
fn routers(arguments: &Arguments, options: Options) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let (mut all, mut counts) = (0, [0; router::KINDS.len()]);
    for seed in arguments.seed..arguments.seed + arguments.count {
        let scene = router::Scene::of(seed);
        let mut report = router::run(&scene, options);
        if arguments.twice && router::run(&scene, options).events != report.events {
            let how = "the frames that leave differ".to_string();
            report.broken.push(router::Broken { rule: router::Rule::Repeats, how });
        }
        if arguments.count == 1 {
            writeln!(out, "{scene}")?;
            for line in report.story(&scene, arguments.datagrams) {
                writeln!(out, "{line}")?;
            }
            let [came, dropped, refused, missed] = report.counts;
            writeln!(out, "{came} frames came, {dropped} dropped, {refused} refused, {missed} not in a ring")?;
            writeln!(out, "of these kinds, and events: {:?}", report.seen)?;
        }
        for broken in &report.broken {
            writeln!(out, "seed {seed} breaks {:?}: {}", broken.rule, broken.how)?;
        }
        all += !report.broken.is_empty() as u64;
        for (count, kind) in counts.iter_mut().zip(router::KINDS) {
            *count += report.seen.contains(&kind) as u64;
        }
    }
    for (kind, count) in router::KINDS.iter().zip(counts).filter(|_| arguments.count > 1) {
        writeln!(out, "{kind:?}: {count} of {} seeds", arguments.count)?;
    }
    writeln!(out, "{all} of {} seeds break a rule", arguments.count)?;
    Ok(if all == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn main() -> io::Result<ExitCode> {
    let arguments = Arguments::parse();
    let named = |name: &Option<String>, of: &dyn std::fmt::Debug| {
        name.as_ref().is_some_and(|name| name.replace('-', "") == format!("{of:?}").to_lowercase())
    };
    let known = match (arguments.router, arguments.transfers) {
        (true, _) => &faults::OF_ROUTERS[..],
        (_, true) => &faults::TRANSFERS[..],
        _ => &faults::ALL[..],
    };
    let fault = known.iter().copied().find(|fault| named(&arguments.back, fault));
    if arguments.back.is_some() && fault.is_none() {
        writeln!(io::stderr(), "unknown name; see --help")?;
        return Ok(ExitCode::from(2));
    }
    if arguments.router {
        return routers(&arguments, Options { fault });
    }
    let mut out = io::stdout().lock();
    if arguments.transfers {
        return tell_transfers(&arguments, Options { fault }, &mut out);
    }
    let (mut all, mut slowest, mut counts) = (0, 0, [0; KINDS.len()]);
    for seed in arguments.seed..arguments.seed + arguments.count {
        let scene = Scene::of(seed);
        let options = Options { fault };
        let mut report = run(&scene, options);
        if arguments.twice {
            report.broken.extend(difference(&report.events, &run(&scene, options).events));
        }
        if arguments.count == 1 {
            writeln!(out, "seed {seed}: {} gateways, {:?}", scene.texts.len(), scene.kinds)?;
            writeln!(out, "{:?}", scene.paths[0].2)?;
            writeln!(out, "{}", scene.texts[0])?;
            for (number, plan) in scene.plans.iter().enumerate() {
                writeln!(out, "connection {number}: {plan:?}")?;
            }
            for event in &report.events {
                if arguments.datagrams || matches!(event.what, What::Told(..) | What::World(_)) {
                    writeln!(out, "{event}")?;
                }
            }
        }
        for broken in &report.broken {
            writeln!(out, "seed {seed} breaks {:?}: {}", broken.rule, broken.how)?;
        }
        all += !report.broken.is_empty() as u64;
        slowest = slowest.max(report.slowest);
        for (count, kind) in counts.iter_mut().zip(KINDS) {
            *count += scene.kinds.contains(&kind) as u64;
        }
        if arguments.count == 1 {
            writeln!(out, "{} events, {:.0} s", report.events.len(), report.took as f64 / 1e9)?;
        }
    }
    if arguments.count > 1 {
        for (kind, count) in KINDS.iter().zip(counts) {
            writeln!(out, "{kind:?}: {count} of {} seeds", arguments.count)?;
        }
    }
    writeln!(out, "{all} of {} seeds break a rule; slowest echo {:.2} s", arguments.count, slowest as f64 / 1e9)?;
    Ok(if all == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where the events of two runs of a seed differ.
fn difference(one: &[Event], other: &[Event]) -> Option<Broken> {
    let at = (0..one.len().max(other.len())).find(|at| one.get(*at) != other.get(*at))?;
    let how = format!("event {at} differs: {:?}, {:?}", one.get(at), other.get(at));
    Some(Broken { rule: Rule::Repeats, how })
}

/// The same for transfers.
fn tell_transfers(arguments: &Arguments, options: Options, out: &mut impl Write) -> io::Result<ExitCode> {
    let (mut all, mut counts) = (0, [0; of_transfers::KINDS.len()]);
    for seed in arguments.seed..arguments.seed + arguments.count {
        let scene = of_transfers::Scene::of(seed);
        let mut report = transfers::run(&scene, options);
        if arguments.twice {
            report.broken.extend(difference(&report.events, &transfers::run(&scene, options).events));
        }
        if arguments.count == 1 {
            writeln!(out, "seed {seed}, {}", scene.path_line())?;
            for plan in &scene.plans {
                writeln!(out, "{plan}")?;
            }
            for event in &report.events {
                if arguments.datagrams || matches!(event.what, What::World(_)) {
                    writeln!(out, "{event}")?;
                }
            }
            writeln!(out, "{} events, {:.0} s", report.events.len(), report.took as f64 / 1e9)?;
        }
        for broken in &report.broken {
            writeln!(out, "seed {seed} breaks {:?}: {}", broken.rule, broken.how)?;
        }
        all += !report.broken.is_empty() as u64;
        for (count, kind) in counts.iter_mut().zip(of_transfers::KINDS) {
            *count += report.met.contains(&kind) as u64;
        }
    }
    if arguments.count > 1 {
        for (kind, count) in of_transfers::KINDS.iter().zip(counts) {
            writeln!(out, "{kind:?}: met by {count} of {} seeds", arguments.count)?;
        }
    }
    writeln!(out, "{all} of {} seeds break a rule", arguments.count)?;
    Ok(if all == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
