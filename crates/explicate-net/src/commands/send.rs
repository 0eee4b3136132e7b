//! `explicated send`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use explicate_core::guard::{AIR_LOSS, ActiveController};
use explicate_core::stacks;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::UDP_PORT;
use quinn::Endpoint;
use serde_json::{Value, json};

use super::far::Far;
use super::progress::Progress;
use super::say::{complain, say};
use super::series::Series;
use super::words;
use crate::address::resolve;
use crate::cli::{Guard, Send};
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::files::again::{self, Program};
use crate::files::sending::{Content, Counters, Failure, Sending};
use crate::files::socket::{self, Close};
use crate::files::tree;
use crate::gateway::controller::{ControllerConfig, is_of_udp};
use crate::gateway::transport::Transport;
use crate::sys;

pub(super) fn run(args: &Send) -> Result<()> {
    let config = controller_config(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_fail(|| "start a runtime".to_string())?;
    let outcome = runtime.block_on(transfer(args, config));
    // Long files that are still read for their digests do not delay the end.
    runtime.shutdown_background();
    outcome
}

/// The laws of the window, as the user wants them.
fn controller_config(args: &Send) -> Result<ControllerConfig> {
    let mut config = socket::controller_config(&args.protocol, args.air_loss.unwrap_or(AIR_LOSS))?;
    config.guard = args.guard == Guard::On;
    if !config.guard && config.protocol.explicit() {
        warn_unguarded(config.protocol.name());
    }
    if let Some(name) = &args.stack {
        config.stack = stacks::stack(name);
    }
    let group = words::flow(&args.protocol, args.stack.as_deref(), "1500B", &args.params)?;
    let known = config.protocol.params();
    // What the stack sets is the connection's to take.
    for (name, value) in group.resolved.params {
        if let Some(param) = known.iter().find(|param| param.name == *name) {
            config.values.set(param, *value);
        }
    }
    for text in &args.params {
        let name = text.split('=').next().unwrap_or_default().trim();
        let Some(param) = known.iter().find(|param| param.name == name) else {
            let name = format!("--param {name}: that is no parameter of {}", config.protocol.name());
            return Err(Error::Input(format!("{name}; QUIC has its own recovery, `explicated lab` all of them")));
        };
        if is_of_udp(name) {
            let why = "QUIC reports neither single acknowledgements nor what was outstanding";
            return Err(Error::Input(format!("--param {name} is for `explicated lab`: {why}")));
        }
        config.values.set(param, group.values.get(known, name));
    }
    Ok(config)
}

/// Warns of a transfer of this protocol without a guard.
fn warn_unguarded(protocol: &str) {
    complain(format!(
        "warning: --guard off: where no router of {protocol} answers, nothing slows this transfer down, and OTHERS ON THE PATH STARVE; \
         for networks of your own"
    ));
}

async fn transfer(args: &Send, config: ControllerConfig) -> Result<()> {
    let address = resolve(&args.peer, UDP_PORT).or_fail(|| format!("find `{}`", args.peer))?;
    let mut far = Far::find((&args.peer, address), &args.keys)?;
    let content = content(args)?;
    let (endpoint, transport) = far.open(config, Rate::mbps(args.interface_mbps))?;
    sys::drop_privileges().or_fail(|| "drop privileges".to_string())?;
    let mut run = Run::new(args, &content)?;
    let outcome = run.complete((&endpoint, &transport), &mut far, content).await;
    let close = if outcome.is_ok() { Close::Done } else { Close::Stopped };
    socket::close(&endpoint, close).await;
    run.finish(outcome)
}

/// What is to be sent.
fn content(args: &Send) -> Result<Content> {
    if args.files.is_empty() {
        return Ok(Content::Filler(args.flows, args.bytes, Duration::from_secs_f64(args.time)));
    }
    if args.flows > 1 {
        return Err(Error::Input("--flows is for filler data".to_string()));
    }
    let (items, left_out) = tree::list(&args.files)?;
    for path in left_out {
        complain(format!("warning: {}: a link or special file, which is not sent", path.display()));
    }
    Ok(Content::Items(items))
}

/// A transfer, and what is reported of it.
struct Run<'a> {
    args: &'a Send,
    begun: Clock,
    counters: Arc<Counters>,
    progress: Option<Progress>,
    series: Series,
    total: u64,
    /// Whether TCP's law moves or limits the window, as last reported.
    controller: Option<&'static str>,
    controllers: Vec<Value>,
    intervals: Vec<Value>,
    /// Seconds, bytes written and packets lost at the last interval.
    before: (f64, u64, u64),
    lost: u64,
}

impl<'a> Run<'a> {
    fn new(args: &'a Send, content: &Content) -> Result<Run<'a>> {
        let (total, name) = match content {
            Content::Items(items) => {
                (items.iter().map(|item| item.size).sum(), items.first().map(|item| item.name.clone()))
            }
            Content::Filler(..) => (0, None),
        };
        let progress = name.and_then(|name| Progress::new(name, total, args.json));
        let series = Series::open(args.series.as_deref())?;
        let (counters, controller, controllers, intervals, before) = Default::default();
        Ok(Run {
            args,
            begun: Clock::start(),
            counters,
            progress,
            series,
            total,
            controller,
            controllers,
            intervals,
            before,
            lost: 0,
        })
    }

    /// Connects and sends; goes on by another connection after one was lost, until the patience ends.
    async fn complete(
        &mut self,
        ends: (&Endpoint, &Transport),
        far: &mut Far<'_>,
        mut content: Content,
    ) -> std::result::Result<(), String> {
        let (patience, counters) = (Duration::from_secs_f64(self.args.patience), self.counters.clone());
        let peer = (self.args.peer.as_str(), patience);
        again::complete(&mut Sender { run: self, ends, far }, peer, &counters, &mut content).await
    }

    /// Reports what is due.
    fn look(&mut self, sending: &Sending) -> Result<()> {
        let now = self.begun.elapsed().as_secs_f64();
        let written = self.counters.written.load(Ordering::Relaxed);
        if let Some(progress) = &mut self.progress {
            let done = self.counters.held.load(Ordering::Relaxed) + written;
            progress.show(Time::from_secs_f64(now), (done < self.total).then_some(done));
        }
        self.look_at_law(now, sending)?;
        self.series.write(Time::from_secs_f64(now), |put| {
            let number = sending.tunnel.number;
            sending.tunnel.controller.lock().probe(&mut |variable, value| put(number, variable, value));
        })?;
        if self.args.interval > 0.0 && now >= self.before.0 + self.args.interval {
            self.end_interval(now, Some(sending))?;
        }
        Ok(())
    }

    fn look_at_law(&mut self, now: f64, sending: &Sending) -> Result<()> {
        let controller = sending.tunnel.controller.lock();
        if controller.round_trip() == Time::ZERO {
            return Ok(());
        }
        let (word, sentence) = match controller.in_force() {
            ActiveController::Fallback => ("tcp", "no router on the way answers: sending as TCP"),
            ActiveController::Limited => {
                ("limited", "the path is congested where no router answers: within TCP's window")
            }
            ActiveController::Own => ("own", "sending by the protocol's own law"),
        };
        drop(controller);
        if self.controller.replace(word) == Some(word) {
            return Ok(());
        }
        self.controllers.push(json!({ "seconds": now, "law": word, "told": sentence }));
        if self.args.json { Ok(()) } else { say(format!("{now:6.2} s  {sentence}")) }
    }

    fn end_interval(&mut self, now: f64, sending: Option<&Sending>) -> Result<()> {
        let stats = sending.map(|sending| sending.connection.stats().path);
        let (written, lost) =
            (self.counters.written.load(Ordering::Relaxed), stats.map_or(self.before.2, |s| s.lost_packets));
        let (from, bytes, resent) = (self.before.0, written - self.before.1, lost.saturating_sub(self.before.2));
        let rate = 8.0 * bytes as f64 / (now - from).max(1e-9);
        let sum = json!({
            "start": from, "end": now, "seconds": now - from, "bytes": bytes, "bits_per_second": rate,
            "retransmits": resent, "omitted": false, "sender": true,
        });
        self.intervals.push(json!({ "sum": sum }));
        self.before = (now, written, lost);
        if self.args.json || self.progress.as_ref().is_some_and(|progress| progress.alone) {
            return Ok(());
        }
        say(interval((from, now), rate, resent, stats.map(|stats| 1e3 * stats.rtt.as_secs_f64())))
    }

    fn finish(mut self, outcome: std::result::Result<(), String>) -> Result<()> {
        let now = self.begun.elapsed().as_secs_f64();
        self.progress = None;
        self.end_interval(now, None)?;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let counters = self.counters.clone();
        let (written, received, held) = (count(&counters.written), count(&counters.received), count(&counters.held));
        let rate = |bytes: u64| 8.0 * bytes as f64 / now;
        if self.args.json {
            let sum = |bytes, sender| {
                json!({
                    "start": 0.0, "end": now, "seconds": now, "bytes": bytes, "bits_per_second": rate(bytes),
                    "retransmits": if sender { self.lost } else { 0 }, "sender": sender,
                })
            };
            let mut report = json!({
                "start": {
                    "version": format!("explicated {}", env!("CARGO_PKG_VERSION")),
                    "connecting_to": { "host": self.args.peer },
                    "test_start": { "protocol": self.args.protocol, "num_streams": self.args.flows },
                },
                "laws": self.controllers,
                "intervals": self.intervals,
                "end": { "sum_sent": sum(written, true), "sum_received": sum(received, false), "held_before": held },
            });
            if let Err(why) = &outcome {
                report["error"] = json!(why);
            }
            say(report)?;
        } else {
            if held > 0 {
                say(format!("{held} bytes were there already, of an earlier try"))?;
            }
            let (rate, lost) = (rate(received) / 1e6, self.lost);
            say(format!("in all {received} bytes arrived in {now:.3} s: {rate:.3} Mbit/s; {lost} packets resent"))?;
        }
        outcome.map_err(Error::Failed)
    }
}

/// The line of an interval: its times, bit/s, and the round trip in ms if there was one.
fn interval((from, to): (f64, f64), rate: f64, resent: u64, rtt: Option<f64>) -> String {
    let line = format!("{from:6.2}-{to:6.2} s  {:9.3} Mbit/s  {resent:6} packets resent", rate / 1e6);
    rtt.map_or(line.clone(), |rtt| format!("{line}  round trip {rtt:7.3} ms"))
}

/// This program, as the transfer sees it.
struct Sender<'r, 'a, 'f> {
    run: &'r mut Run<'a>,
    ends: (&'r Endpoint, &'r Transport),
    far: &'r mut Far<'f>,
}

impl Program for Sender<'_, '_, '_> {
    async fn connect(&mut self) -> std::result::Result<Sending, Failure> {
        self.far.connect(self.ends, self.run.counters.clone()).await
    }
    async fn pair(&mut self, sending: &Sending) -> std::result::Result<(), Failure> {
        self.far.pair(sending).await
    }
    fn look(&mut self, sending: &Sending) -> std::result::Result<(), String> {
        self.run.look(sending).map_err(|e| e.to_string())
    }
    fn ended(&mut self, sending: &Sending) {
        self.run.lost += sending.connection.stats().path.lost_packets;
    }
    fn goes_on(&mut self, why: &str) {
        complain(format!("{why}; trying again"));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn config_of(options: &[&str]) -> Result<ControllerConfig> {
        let args = [&["explicated", "send", "gw"], options].concat();
        let Command::Send(args) = Cli::try_parse_from(args).unwrap().command else { panic!("send") };
        controller_config(&args)
    }

    #[test]
    fn parameters_of_the_protocol_are_those_of_the_preset_and_of_the_user() {
        let number = |options: &[&str], name: &str| config_of(options).unwrap().values.number(name);
        assert_eq!(number(&["-p", "xcp", "--param", "desired_rate=5Mbit/s"], "desired_rate"), Some(5e6));
        assert_eq!(number(&["-p", "xcp"], "on_loss"), Some(1.0), "losses do not move the window");
        assert_eq!(number(&["-p", "xcp", "--param", "on_loss=halve"], "on_loss"), Some(0.0));
        let preset = explicate_core::presets::PRESETS.iter().find(|p| p.name == "LR-LMXCP").unwrap();
        assert!(preset.params.contains(&("on_loss", 1.0)) && number(&[], "on_loss") == Some(1.0));
        assert_eq!(number(&["-p", "cubic", "--param", "variant=rfc"], "variant"), Some(0.0), "against the stack");
        for stack in ["linux", "ns2"] {
            let config = config_of(&["-p", "cubic", "--stack", stack]).unwrap();
            assert_eq!((config.stack.unwrap().name, config.values.given()), (stack, &[][..]), "the stack is no wish");
        }
        assert!(config_of(&[]).unwrap().guard && !config_of(&["--guard", "off", "-p", "cubic"]).unwrap().guard);
    }

    #[test]
    fn parameters_of_recoveries_and_unknown_ones_are_refused() {
        let cases = [
            ("xcp", "max_rto=5s", "no parameter of xcp"),
            ("xcp", "on_loss=never", "on_loss"),
            ("xcp", "x=1", "x"),
            ("cubic", "growth=linux", "--param growth is for `explicated lab`"),
        ];
        for (protocol, param, why) in cases {
            let refused =
                config_of(&["-p", protocol, "--param", param]).err().map(|error| (error.status(), error.to_string()));
            assert!(refused.as_ref().is_some_and(|(status, said)| *status == 2 && said.contains(why)), "{refused:?}");
        }
    }
}
