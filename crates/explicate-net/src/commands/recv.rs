//! `explicated recv`; here by UDP.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use explicate_core::units::{Time, per_second};
use explicate_core::wire::UDP_PORT;
use serde_json::{Value, json};

use super::say::{complain, say};
use super::tally::Tally;
use crate::cli::Recv;
use crate::clock::Clock;
use crate::endpoint::Endpoint;
use crate::endpoint::answers::Answers;
use crate::endpoint::auth::Key;
use crate::endpoint::content::store::{Settings, Store};
use crate::endpoint::gate::Admission;
use crate::endpoint::message::Verdict;
use crate::endpoint::receiving::{self, Ended, Limits};
use crate::error::{Context, Error, Result};
use crate::metrics::Metrics;
use crate::sys;

pub(super) fn run(args: &Recv) -> Result<()> {
    if args.pair {
        return Err(Error::Input("--pair belongs to --transport quic".to_string()));
    }
    let bind = match args.bind {
        None => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, UDP_PORT),
        Some(SocketAddr::V4(bind)) => bind,
        Some(bind) => return Err(Error::Input(format!("--bind {bind}: IPv6 needs --transport quic"))),
    };
    if let Some(folder) = &args.to {
        std::fs::create_dir_all(folder).or_fail(|| format!("make the folder {}", folder.display()))?;
    }
    let limits = Limits {
        flows: args.flows as usize,
        waiting: (args.memory as usize) << 20,
        idle: Time::from_secs_f64(args.idle),
        window: args.window,
        flows_per_source: args.flows_per_source as usize,
        admission: admission(args, bind)?,
        ..Limits::default()
    };
    let mut endpoint = Endpoint::open(bind, Some(limits), Clock::start())?;
    let (metrics, mut tally) = (args.metrics.map(Metrics::serve).transpose()?, Tally::default());
    sys::drop_privileges().or_fail(|| "drop privileges".to_string())?;
    // Opened without privileges, to see whether the folder is writable.
    let store = args.to.as_ref().map(|folder| Store::open(files(args, folder))).transpose()?;
    if let Some(receivers) = &mut endpoint.receivers {
        receivers.store = store;
    }
    let address = endpoint.address()?;
    let admission = match (&args.key, args.open) {
        (Some(_), _) => "key",
        (None, true) => "open",
        (None, false) => "loopback",
    };
    if admission == "open" {
        complain(
            "warning: --open: any host that reaches this port may send, files too, and the receiver cannot prove its identity",
        );
    }
    report(args, json!({ "event": "listening", "address": address.to_string(), "admission": admission }), || {
        format!(
            "listening at {address}, {}",
            match admission {
                "key" => "for senders that have the key",
                "open" => "for any sender",
                _ => "for this machine",
            }
        )
    })?;
    let step = if args.interval > 0.0 { Time::from_secs_f64(args.interval) } else { Time::NEVER };
    if let (Some(metrics), Some(report)) = (&metrics, tally.report(&endpoint)) {
        metrics.set(report);
    }
    let (mut next, mut before, mut since) = (step, 0, Time::ZERO);
    let mut first: Option<Ended> = None;
    let some = |e: &Endpoint| {
        sys::stopped() || e.receivers.as_ref().is_some_and(|r| !r.ended.is_empty() || !r.news.is_empty())
    };
    while !(sys::stopped() || args.once && first.is_some()) {
        let next_update = if metrics.is_some() { endpoint.now() + Time::secs(1) } else { Time::NEVER };
        endpoint.run(next.min(next_update), &some)?;
        let now = endpoint.now();
        if let Some(receivers) = &mut endpoint.receivers {
            if sys::stopped() {
                receivers.give_up();
            }
            for (key, answers) in std::mem::take(&mut receivers.news) {
                report_answers(args, key, answers)?;
            }
            for ended in std::mem::take(&mut receivers.ended) {
                report_end(args, &ended)?;
                tally.add(&ended);
                first.get_or_insert(ended);
            }
            if now >= next {
                let payload: u64 = receivers.flows.values().map(|f| f.receiver.stats().payload).sum();
                let (rate, flows) =
                    (8.0 * per_second(payload.saturating_sub(before), now.since(since)), receivers.flows.len());
                if payload != before {
                    let event = json!({ "event": "interval", "start": since.to_seconds(), "end": now.to_seconds(), "bits_per_second": rate, "flows": flows });
                    report(args, event, || {
                        let (from, to) = (since.as_secs_f64(), now.as_secs_f64());
                        format!("{from:6.2}-{to:6.2} s  {:9.3} Mbit/s in {flows} flows", rate / 1e6)
                    })?;
                }
                (next, before, since) = (now + step, payload, now);
            }
        }
        if let Some(metrics) = &metrics
            && let Some(report) = tally.report(&endpoint)
        {
            metrics.set(report);
        }
    }
    if args.once
        && let Some(ended) = &first
    {
        // The sender may not have received the verdict yet.
        let until = endpoint.now() + Time::secs(1);
        endpoint.run(until, &|_| sys::stopped())?;
        if let Some((path, verdict)) = &ended.file
            && *verdict != Some(Verdict::Same)
        {
            return Err(Error::Failed(format!("{} has not arrived completely", path.display())));
        }
    }
    Ok(())
}

/// The proof required of senders: on a network a key, unless the user has passed `--open`.
fn admission(args: &Recv, bind: SocketAddrV4) -> Result<Admission> {
    match &args.key {
        Some(path) => Ok(Admission::Key(Key::load(path)?)),
        None if args.open || bind.ip().is_loopback() => Ok(Admission::Open),
        None => Err(Error::Input(format!(
            "no senders are permitted at {bind}. Say --key FILE (`explicated keygen FILE` makes one, which the sender needs too), \
             --bind 127.0.0.1:{}, or --open to accept any sender",
            bind.port()
        ))),
    }
}

/// Settings for received files.
pub(super) fn files(args: &Recv, folder: &Path) -> Settings {
    let keep_parts = Duration::from_secs_f64(args.keep_parts);
    Settings { replace: args.replace, quota: args.quota, keep_parts, ..Settings::new(folder) }
}

pub(super) fn report(args: &Recv, event: Value, line: impl FnOnce() -> String) -> Result<()> {
    if args.json { say(event) } else { say(line()) }
}

fn report_answers(args: &Recv, key: receiving::Key, answers: Answers) -> Result<()> {
    let (peer, flow, known) = (key.0, key.1 as u32, answers.known == Some(true));
    let event = json!({ "event": "routers", "peer": peer.to_string(), "flow": flow, "answer": known });
    report(args, event, || {
        let what = if known { "routers on the way answer" } else { "no router on the way answers" };
        format!("{flow} from {peer}: {what}")
    })
}

/// What a verdict means to the receiver's user.
pub(super) fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "whole and the same",
        Verdict::Differs => "not the same: its SHA-256 is another; removed",
        Verdict::NotWritten => "could not be written; removed",
        Verdict::Full => "could not be written, because the disk is full; removed",
        Verdict::NameExists => "whole, but meanwhile there is another file of this name; kept as a part",
        Verdict::Missing | Verdict::Checking => "not all arrived; what did is kept as a part",
    }
}

fn report_end(args: &Recv, ended: &Ended) -> Result<()> {
    let (file, verdict) = match &ended.file {
        None => (None, "nothing to keep"),
        Some((path, verdict)) => (Some(path.display().to_string()), meaning(verdict.unwrap_or(Verdict::Missing))),
    };
    let seconds = ended.lasted.as_secs_f64();
    let event = json!({
        "event": "end",
        "peer": ended.key.0.to_string(),
        "flow": ended.key.1 as u32,
        "bytes": ended.payload,
        "seconds": seconds,
        "file": file,
        "verdict": verdict,
    });
    report(args, event, || {
        let name = file.map_or(String::new(), |f| format!("{f}: "));
        let rate = 8e-6 * ended.payload as f64 / seconds.max(1e-9);
        format!(
            "{} from {}: {name}{verdict}; {} bytes in {seconds:.3} s, {rate:.3} Mbit/s",
            ended.key.1 as u32, ended.key.0, ended.payload
        )
    })
}
