//! `explicated advise`: recommends a protocol for a path, from a table made with the simulator (`scripts/advice.py`).

use explicate_core::endpoint::{PARAMS, Params};
use explicate_core::params::Values;
use explicate_core::registry;
use explicate_core::units::Time;
use serde_json::{Value, json};

use super::probe::measured;
use super::say::say;
use super::words;
use crate::cli::Advise;
use crate::error::{Error, Result};
use crate::files::prober::{Prober, Sight, median};
use crate::gateway::controller::ControllerConfig;

const TABLE: &str = include_str!("advice.csv");
/// A protocol is recommended only if a competing TCP flow keeps this share of its rate beside another TCP flow.
const BESIDE: f64 = 0.8;
/// Shares that differ by less count as equal; then the shorter queue decides.
const ALIKE: f64 = 0.03;
/// Losses below this count as zero in ratios.
const LEAST_LOSS: f64 = 2e-4;
/// Maximum ratio of losses to `--air-loss`: 1.5 times this would count as congestion within 10^7 packets
/// (`core::guard`).
const AIR_SHARE: f64 = 0.75;
/// The path that is assumed where no properties are given.
const USUAL: (f64, f64) = (0.0, 20e6);

/// Results of a protocol on a path of the table.
#[derive(Clone, Debug)]
struct Row {
    protocol: String,
    /// The required controllers, or `none`.
    routers: String,
    /// Round-trip time, s; share of losses; rate, bit/s.
    path: (f64, f64, f64),
    /// Payload as a share of the rate.
    share: f64,
    queue_ms: f64,
    /// Rate of a competing TCP flow, as a share of its rate beside another TCP flow.
    beside: f64,
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split(',');
    let (protocol, routers) = (words.next()?.to_string(), words.next()?.to_string());
    let mut number = || words.next()?.parse::<f64>().ok();
    let path = (1e-3 * number()?, 1e-2 * number()?, 1e6 * number()?);
    Some(Row { protocol, routers, path, share: number()?, queue_ms: number()?, beside: number()? })
}

/// All rows, without the comment and the names of the columns.
fn table() -> Vec<Row> {
    TABLE.lines().filter_map(row).collect()
}

/// The rows of protocols that files can go by.
fn followed(mut rows: Vec<Row>) -> Vec<Row> {
    let follows = |row: &Row| registry::resolve(&row.protocol).is_ok_and(|r| ControllerConfig::can_follow(r.protocol));
    rows.retain(follows);
    rows
}

/// The rows of the path that is nearest to this one, by the ratio of each of its properties.
fn nearest(rows: &[Row], path: (f64, f64, f64)) -> Vec<Row> {
    let far = |a: f64, b: f64| (a / b).max(b / a);
    let loss = |l: f64| l.max(LEAST_LOSS);
    let best = |of: &dyn Fn(&Row) -> f64| rows.iter().map(of).fold(f64::INFINITY, f64::min);
    let trip = |r: &Row| far(r.path.0, path.0.max(1e-4));
    let lost = |r: &Row| far(loss(r.path.1), loss(path.1));
    let rate = |r: &Row| far(r.path.2, path.2);
    let least = (best(&trip), best(&lost), best(&rate));
    rows.iter().filter(|r| (trip(r), lost(r), rate(r)) == least).cloned().collect()
}

/// The rows that these routers (or none) permit, the best first.
fn ranked(mut rows: Vec<Row>, routers: &[String]) -> Vec<Row> {
    rows.retain(|r| r.routers == "none" || routers.contains(&r.routers));
    let most = rows.iter().filter(|r| r.beside >= BESIDE).map(|r| r.share).fold(0.0, f64::max);
    let class = |r: &Row| match (r.beside >= BESIDE, r.share + ALIKE >= most) {
        (true, true) => 0,
        (true, false) => 1,
        (false, _) => 2,
    };
    rows.sort_by(|a, b| {
        let within = if class(a) == 0 { a.queue_ms.total_cmp(&b.queue_ms) } else { b.share.total_cmp(&a.share) };
        class(a).cmp(&class(b)).then(within)
    });
    rows
}

/// The controllers in the table.
fn known(rows: &[Row]) -> Vec<String> {
    let mut all: Vec<String> = rows.iter().map(|r| r.routers.clone()).collect();
    all.sort();
    all.dedup();
    all
}

/// A path as given or measured.
struct Path {
    trip: f64,
    loss: f64,
    rate: f64,
    packet: Option<usize>,
    routers: Vec<String>,
}

pub(super) fn run(args: &Advise) -> Result<()> {
    let rows = followed(table());
    let routers: Vec<String> = args.routers.iter().map(|r| r.trim().to_string()).collect();
    let known = known(&rows);
    if let Some(other) = routers.iter().find(|r| !known.contains(r)) {
        return Err(Error::Input(format!("--routers {other}: the table has {}", known.join(", "))));
    }
    let seen = args.peer.as_ref().map(|host| probed(args, host)).transpose()?;
    let path = path(args, seen.as_ref(), routers)?;
    let ranked = ranked(nearest(&rows, (path.trip, path.loss, path.rate)), &path.routers);
    let Some(best) = ranked.first() else { return Err(Error::Failed("the table of advice is empty".to_string())) };
    let command = command(args, best, &path);
    if args.json {
        return say(json!({
            "path": {
                "rtt_ms": 1e3 * path.trip,
                "loss": path.loss,
                "rate_bps": path.rate,
                "mtu": path.packet,
                "routers": path.routers,
                "of_table": { "rtt_ms": 1e3 * best.path.0, "loss": best.path.1, "rate_bps": best.path.2 },
            },
            "command": command,
            "reason": reason(best, &path),
            "alternatives": ranked.iter().map(told).collect::<Vec<_>>(),
        }));
    }
    say(command)?;
    say(reason(best, &path))?;
    say(format!("\n{:14} {:8} {:>6} {:>10} {:>13}", "protocol", "routers", "share", "queue, ms", "TCP beside"))?;
    for row in &ranked {
        let Row { protocol, routers, share, queue_ms, beside, .. } = row;
        say(format!("{protocol:14} {routers:8} {:>4.0} % {queue_ms:>10.1} {beside:>13.2}", 100.0 * share))?;
    }
    Ok(())
}

fn told(row: &Row) -> Value {
    let Row { protocol, routers, share, queue_ms, beside, .. } = row;
    json!({ "protocol": protocol, "routers": routers, "share": share, "queue_ms": queue_ms, "tcp_beside": beside })
}

/// Probes the path to a host.
fn probed(args: &Advise, host: &str) -> Result<(Sight, usize)> {
    let length = Time::from_secs_f64(args.time);
    let measure = move |prober: &mut Prober| prober.look(length);
    measured(host, &args.keys, measure)
}

/// The path: given properties have precedence over measured ones.
fn path(args: &Advise, seen: Option<&(Sight, usize)>, routers: Vec<String>) -> Result<Path> {
    let (seen, packet) = (seen.map(|(sight, _)| sight), seen.map(|(_, packet)| *packet));
    // The parser's message without the position, since the text is not the user's.
    let said =
        |error: &Error, key: &str| error.to_string().rsplit(&format!("`{key}`: ")).next().unwrap_or("").to_string();
    let link = |option: &str, key: &str, value: &str| {
        let found = words::link("the path", &format!("{key} = {}", words::quoted(value)), None);
        found.map_err(|error| Error::Input(format!("--{option}: {}", said(&error, key))))
    };
    let trip = match (&args.rtt, seen) {
        (Some(text), _) => link("rtt", "delay", text)?.delay.as_secs_f64(),
        (None, Some(seen)) => seen.trip.as_secs_f64(),
        (None, None) => return Err(Error::Input("name a path: a HOST to probe, or --rtt 80ms".to_string())),
    };
    let loss = args.loss.or(seen.map(|seen| seen.loss)).unwrap_or(USUAL.0);
    let rate = match (&args.rate, seen.and_then(|s| median(&s.capacity))) {
        (Some(text), _) => link("rate", "rate", text)?.rate.0 as f64,
        (None, Some(found)) => found,
        (None, None) => USUAL.1,
    };
    Ok(Path { trip, loss, rate, packet, routers })
}

/// The value that `--air-loss` needs, if transmission errors on this path exceed the default of `send`.
fn air_loss(best: &Row, path: &Path) -> Option<String> {
    let usual = Params::of(&Values::default()).air_loss;
    let most = PARAMS.iter().find(|p| p.name == "air_loss").map_or(usual, |p| p.max);
    let wanted = (path.loss / AIR_SHARE).min(most);
    (best.routers != "none" && wanted > usual).then(|| format!("--air-loss {:.1}%", (1e3 * wanted).ceil() / 10.0))
}

fn command(args: &Advise, best: &Row, path: &Path) -> String {
    let host = args.peer.as_deref().unwrap_or("HOST");
    // Measured losses may be those of a full queue: only the user can distinguish them.
    let air = air_loss(best, path).filter(|_| args.loss.is_some()).map_or(String::new(), |option| format!(" {option}"));
    format!("explicated send {host} FILE -p {}{air}", best.protocol)
}

/// Two lines, and a third one if losses exceed the default of `send`'s `--air-loss`.
fn reason(best: &Row, path: &Path) -> String {
    let (trip, loss, rate) = best.path;
    let here = format!("{:.3} ms, {:.2} % lost, {:.1} Mbit/s", 1e3 * path.trip, 100.0 * path.loss, path.rate / 1e6);
    let near = format!("{:.0} ms, {:.1} %, {:.0} Mbit/s", 1e3 * trip, 100.0 * loss, rate / 1e6);
    let by = match (best.routers.as_str(), path.routers.is_empty()) {
        ("none", true) => {
            "It needs no routers; if routers answer at the bottlenecks, name them by --routers".to_string()
        }
        ("none", false) => "It needs no routers".to_string(),
        (routers, _) => format!("It needs routers `-c {routers}` at the bottlenecks"),
    };
    let air = air_loss(best, path).map_or(String::new(), |option| {
        format!(
            "\nIf these are transmission errors, pass {option} to send; otherwise it treats the losses as congestion."
        )
    });
    format!(
        "Nearest to this path ({here}) the table has {near}: {:.0} % of the rate, a queue of {:.1} ms.\n\
         {by}; a TCP flow beside it keeps {:.2} of what it has beside another.{air}",
        100.0 * best.share,
        best.queue_ms,
        best.beside
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    /// Every path of the table has a protocol that may be recommended, with routers and without.
    #[test]
    fn every_path_has_an_answer() {
        let rows = followed(table());
        assert!(rows.len() > 100, "{}", rows.len());
        for r in &rows {
            let here = nearest(&rows, r.path);
            assert!(here.iter().all(|other| other.path == r.path), "{r:?}");
            for routers in [vec![], known(&rows)] {
                let best = &ranked(here.clone(), &routers)[0];
                assert!(best.beside >= BESIDE, "{best:?}");
            }
        }
    }

    #[test]
    fn the_nearest_path_is_taken() {
        let rows = table();
        let of = |path| nearest(&rows, path)[0].path;
        let close = |a: (f64, f64, f64), b: (f64, f64, f64)| {
            (a.0 / b.0 - 1.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9 && (a.2 / b.2 - 1.0).abs() < 1e-9
        };
        for (path, expected) in [
            ((0.55, 0.008, 25e6), (0.6, 0.01, 20e6)),
            ((1e-5, 0.0, 1e9), (0.001, 0.0, 100e6)),
            ((0.09, 0.1, 1e6), (0.08, 0.05, 2e6)),
            ((0.02, 0.0003, 20e6), (0.02, 0.0, 20e6)),
        ] {
            assert!(close(of(path), expected), "{path:?}: {:?}", of(path));
        }
    }

    /// By hand: the second has less than three hundredths less and the shorter queue; the last harms its neighbour.
    #[test]
    fn the_best_of_those_that_harm_nobody_comes_first() {
        let of = |share: f64, queue_ms: f64, beside: f64| {
            let (protocol, routers) = (format!("{share}"), "none".to_string());
            Row { protocol, routers, path: (1.0, 0.0, 1.0), share, queue_ms, beside }
        };
        let order = ranked(vec![of(0.5, 0.0, 1.0), of(0.9, 9.0, 1.0), of(0.88, 2.0, 0.9), of(0.95, 1.0, 0.1)], &[]);
        let names: Vec<&str> = order.iter().map(|r| r.protocol.as_str()).collect();
        assert_eq!(names, ["0.88", "0.9", "0.5", "0.95"]);
    }

    /// Losses above the default of `send` count as transmission errors only if the user says so; the table was made
    /// with that setting.
    #[test]
    fn losses_of_the_air_are_said() {
        let said = |loss: f64, routers: &str, options: &[&str]| {
            let args = [&["explicated", "advise", "--rtt", "80ms"], options].concat();
            let Command::Advise(args) = Cli::try_parse_from(args).unwrap().command else { panic!("advise") };
            let best = Row { routers: routers.to_string(), ..table()[0].clone() };
            let path = Path { trip: 0.08, loss, rate: 2e7, packet: None, routers: vec![] };
            (command(&args, &best, &path), reason(&best, &path))
        };
        let (command, reason) = said(0.05, "xcp", &["--loss", "5%"]);
        assert!(command.ends_with(" --air-loss 6.7%") && reason.contains("--air-loss 6.7%"), "{command}\n{reason}");
        let (command, reason) = said(0.05, "xcp", &[]);
        assert!(!command.contains("air") && reason.contains("--air-loss 6.7%"), "found, not said: {command}\n{reason}");
        for (loss, routers) in [(0.015, "xcp"), (0.05, "none")] {
            let (command, reason) = said(loss, routers, &["--loss", "5%"]);
            assert!(!command.contains("air") && !reason.contains("--air-loss"), "{command}\n{reason}");
        }
        assert!(said(0.9, "xcp", &["--loss", "90%"]).0.ends_with(" --air-loss 90.0%"), "no more than may be said");
    }

    /// `send` takes what is recommended.
    #[test]
    fn only_protocols_that_files_go_by_are_recommended() {
        let names =
            |rows: Vec<Row>| rows.into_iter().map(|row| row.protocol).collect::<std::collections::BTreeSet<_>>();
        let (all, ours) = (names(table()), names(followed(table())));
        assert!(["bbr", "hybla"].iter().all(|name| all.contains(*name) && !ours.contains(*name)), "{ours:?}");
        assert!(["LR-LMXCP", "cubic", "LR-LMXTCP"].iter().all(|name| ours.contains(*name)), "{ours:?}");
    }
}
