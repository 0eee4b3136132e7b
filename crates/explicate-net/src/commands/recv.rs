//! `explicated recv`.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use explicate_core::guard::AIR_LOSS;
use explicate_core::presets::DEFAULT_TCP;
use explicate_core::units::Rate;
use explicate_core::wire::UDP_PORT;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::say::say;
use crate::cli::Recv;
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::files::message::Verdict;
use crate::files::pairing::{Invitation, State};
use crate::files::probed::Probed;
use crate::files::receiving::{Ended, Event, Receiving};
use crate::files::socket::{self, Close, TURN};
use crate::files::store::{Settings, Store};
use crate::gateway::config::Limits;
use crate::gateway::identity::Accepted;
use crate::metrics::Metrics;
use crate::sys;

/// The highest rate that a law asks for.
const FASTEST: Rate = Rate::mbps(100_000);
/// Nanoseconds between two reports of the metrics.
const METRICS: Duration = Duration::from_secs(1);

pub(super) fn run(args: &Recv) -> Result<()> {
    if let Some(folder) = &args.to {
        std::fs::create_dir_all(folder).or_fail(|| format!("make the folder {}", folder.display()))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.or_fail(|| "start a runtime".to_string())?.block_on(serve(args))
}

async fn serve(args: &Recv) -> Result<()> {
    let state = State::open(args.state.as_deref())?;
    let identity = state.identity()?;
    let invitation =
        if args.pair || state.senders()?.is_empty() { Some(Invitation::new(identity.public)?) } else { None };
    let probed = Probed::new();
    // What this end sends are acknowledgements.
    let config = socket::controller_config(DEFAULT_TCP, AIR_LOSS)?;
    let (endpoint, transport) =
        socket::open(bind(args), &identity, config, FASTEST, limits(args), Some(probed.clone()))?;
    let address = endpoint.local_addr().or_fail(|| "find the socket's address".to_string())?;
    let (server, tunnel) =
        transport.server(identity.server_of(crate::gateway::identity::FILES, Accepted::These(Vec::new()))?, address);
    // Each connection gets a configuration of its own.
    transport.forget(&tunnel);
    endpoint.set_server_config(Some(Arc::unwrap_or_clone(server)));
    let metrics = args.metrics.map(Metrics::serve).transpose()?;
    sys::drop_privileges().or_fail(|| "drop privileges".to_string())?;
    // Opened without privileges, to see whether the folder is writable.
    let store = args.to.as_ref().map(|folder| Store::open(files(args, folder))).transpose()?;
    listening(args, address.to_string(), invitation.as_ref())?;
    let (receiving, events) = Receiving::new((state, identity), transport, store, invitation, probed, args.flows);
    tokio::spawn(receiving.clone().accept(endpoint.clone()));
    let sweeps = tokio::spawn(receiving.clone().sweep());
    let ended = follow(args, &receiving, events, metrics.as_ref()).await;
    receiving.stop();
    socket::close(&endpoint, Close::Stopped).await;
    sweeps.abort();
    ended
}

/// Where to listen: at all addresses of IPv6 and IPv4, unless the user or the kernel has it otherwise.
fn bind(args: &Recv) -> SocketAddr {
    args.bind.unwrap_or((Ipv6Addr::UNSPECIFIED, UDP_PORT).into())
}

fn limits(args: &Recv) -> Limits {
    // Half of the memory for one stream: one transfer fills a path of that bandwidth-delay product.
    let memory = (args.memory / 4).clamp(1, 512) << 20;
    Limits { connections: args.flows_per_source, connection_bytes: Some(memory / 2), peer_bytes: memory }
}

fn listening(args: &Recv, address: String, invitation: Option<&Invitation>) -> Result<()> {
    let line = invitation.map(Invitation::line);
    let event = json!({ "event": "listening", "address": address, "admission": "paired", "pair": line });
    let port = match address.rsplit_once(':') {
        Some((_, port)) if port != UDP_PORT.to_string() => format!(":{port}"),
        _ => String::new(),
    };
    report(args, event, || match &line {
        None => format!("listening at {address}, for senders that are paired"),
        Some(line) => format!(
            "listening at {address}, for senders that are paired. To pair one, run there once:\n  explicated send HOST{port} FILE --pair {line}"
        ),
    })
}

/// Settings for received files.
fn files(args: &Recv, folder: &Path) -> Settings {
    let keep_parts = Duration::from_secs_f64(args.keep_parts);
    Settings { replace: args.replace, quota: args.quota, keep_parts, ..Settings::new(folder) }
}

fn report(args: &Recv, event: Value, line: impl FnOnce() -> String) -> Result<()> {
    if args.json { say(event) } else { say(line()) }
}

/// What a verdict means to the receiver's user.
fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "whole and the same",
        Verdict::Differs => "not the same: its SHA-256 is another; removed",
        Verdict::NotWritten => "could not be written; removed",
        Verdict::Full => "could not be written, because the disk is full; removed",
        Verdict::NameExists => "whole, but meanwhile there is another file of this name; kept as a part",
        Verdict::Missing => "not all arrived; what did is kept as a part",
    }
}

/// What has happened so far.
#[derive(Default)]
struct Tally {
    files: u64,
    failed: u64,
    ended: u64,
    unfinished: Option<PathBuf>,
}

impl Tally {
    fn add(&mut self, ended: &Ended) {
        self.ended += 1;
        if let Some(path) = &ended.path {
            let whole = ended.verdict == Verdict::Same;
            self.files += whole as u64;
            self.failed += !whole as u64;
            if !whole {
                self.unfinished.get_or_insert(path.clone());
            }
        }
    }
}

/// Reports events until a signal, or with `--once` until the first connection has ended.
async fn follow(
    args: &Recv,
    receiving: &Arc<Receiving>,
    mut events: mpsc::UnboundedReceiver<Event>,
    metrics: Option<&Metrics>,
) -> Result<()> {
    let (begun, mut tally) = (Clock::start(), Tally::default());
    let mut interval = Interval::new(args);
    let mut measured: Option<(Clock, u64)> = None;
    while !sys::stopped() {
        let event = tokio::time::timeout(TURN, events.recv()).await.ok().flatten();
        match event {
            Some(Event::Ended(ended)) => {
                tally.add(&ended);
                report_end(args, &ended)?;
            }
            Some(Event::Paired(peer, key)) => {
                let event = json!({ "event": "paired", "peer": peer.to_string(), "key": key.line() });
                report(args, event, || format!("{peer} is paired now, by its key {}", key.digits()))?;
            }
            Some(Event::Disconnected(_)) if args.once && tally.ended > 0 => {
                let problem = |path: PathBuf| Error::Failed(format!("{} has not arrived completely", path.display()));
                return tally.unfinished.map_or(Ok(()), |path| Err(problem(path)));
            }
            Some(Event::Disconnected(_)) | None => {}
        }
        let payload = receiving.counters.payload.load(Ordering::Relaxed);
        let connections = receiving.counters.connections.load(Ordering::Relaxed);
        interval.report(args, begun, payload, connections)?;
        if let Some(metrics) = metrics
            && measured.is_none_or(|(then, _)| then.elapsed() >= METRICS)
        {
            let (then, before) = measured.replace((Clock::start(), payload)).unwrap_or((begun, 0));
            metrics.set(json!({
                "time_s": begun.elapsed().as_secs_f64(),
                "flows": connections,
                "bits_per_second": 8.0 * (payload - before) as f64 / then.elapsed().as_secs_f64().max(1e-3),
                "payload_bytes": payload,
                "ended": tally.ended,
                "files_whole": tally.files,
                "files_failed": tally.failed,
                "refused": receiving.counters.refused.load(Ordering::Relaxed),
            }));
        }
    }
    Ok(())
}

/// Lines of progress.
struct Interval {
    step: Duration,
    since: Duration,
    before: u64,
}

impl Interval {
    fn new(args: &Recv) -> Interval {
        let step = if args.interval > 0.0 { Duration::from_secs_f64(args.interval) } else { Duration::MAX };
        Interval { step, since: Duration::ZERO, before: 0 }
    }
    fn report(&mut self, args: &Recv, begun: Clock, payload: u64, connections: u32) -> Result<()> {
        let now = begun.elapsed();
        if now.saturating_sub(self.since) < self.step {
            return Ok(());
        }
        let rate = 8.0 * (payload - self.before) as f64 / (now - self.since).as_secs_f64();
        let (from, to) = (self.since.as_secs_f64(), now.as_secs_f64());
        let moved = payload != self.before;
        (self.since, self.before) = (now, payload);
        if !moved {
            return Ok(());
        }
        let event =
            json!({ "event": "interval", "start": from, "end": to, "bits_per_second": rate, "flows": connections });
        report(args, event, || format!("{from:6.2}-{to:6.2} s  {:9.3} Mbit/s in {connections} connections", rate / 1e6))
    }
}

fn report_end(args: &Recv, ended: &Ended) -> Result<()> {
    let Ended { peer, path, bytes, lasted, verdict } = ended;
    let verdict = if path.is_some() { meaning(*verdict) } else { "nothing to keep" };
    let (file, seconds) = (path.as_ref().map(|path| path.display().to_string()), lasted.as_secs_f64());
    let event = json!({
        "event": "end",
        "peer": peer.to_string(),
        "bytes": bytes,
        "seconds": seconds,
        "file": file,
        "verdict": verdict,
    });
    report(args, event, || {
        let name = file.map_or(String::new(), |f| format!("{f}: "));
        let rate = 8e-6 * *bytes as f64 / seconds.max(1e-9);
        format!("from {peer}: {name}{verdict}; {bytes} bytes in {seconds:.3} s, {rate:.3} Mbit/s")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn the_store_has_what_the_options_say() {
        let of = |options: &[&str]| {
            let args = [&["explicated", "recv", "--to", "x"], options].concat();
            let Command::Recv(args) = Cli::try_parse_from(args).unwrap().command else { panic!("recv") };
            let Settings { replace, quota, keep_parts, .. } = files(&args, Path::new("x"));
            (replace, quota, keep_parts)
        };
        assert_eq!(of(&[]), (false, None, Duration::from_secs(86_400)));
        let options = ["--replace", "--quota", "5MB", "--keep-parts", "60"];
        assert_eq!(of(&options), (true, Some(5_000_000), Duration::from_secs(60)));
    }
}
