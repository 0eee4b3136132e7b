//! `explicated router` and `explicated link`.

use explicate_build::ports::port;
use explicate_core::port::Port;
use explicate_core::units::{Time, per_second};
use explicate_core::wire::scone::{Advice, DRAFT};
use explicate_scenario::model::Link;
use serde_json::{Value, json};

use super::say::Reporter;
use super::words;
use crate::cli::{self, Forwarding};
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::files::pairing::random;
use crate::forward::output::Output;
use crate::forward::scone::{Basis, Scone};
use crate::forward::{Forwarder, Frames, HELD_BY_FEW, Interface, Mode};
use crate::metrics::Metrics;
use crate::sys;

/// All protocols' data may arrive, so every controller is built.
const ALL: u64 = u64::MAX;
/// Interval between updates of the metrics and checks of the interfaces.
const POLL_INTERVAL: Time = Time::secs(1);

/// Warns of interfaces that merge packets: only the first packet of a merged frame would get feedback.
fn warn_of_offloads<'a>(names: impl Iterator<Item = &'a str>) {
    for name in names {
        let on = sys::offloads(name);
        if !on.is_empty() {
            // QUIC's batches are divided by an offload of their own; not by that of a virtual interface.
            let words: Vec<String> =
                on.iter().chain(&["tx-udp-segmentation"]).map(|word| format!("{word} off")).collect();
            tracing::warn!(
                "{name} may merge packets ({}); try `ethtool -K {name} {}`, at the hosts too",
                on.join(", "),
                words.join(" ")
            );
        }
    }
}

/// Each port needs its own interface.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Err(Error::Input(format!(
                "the interface `{name}` is named twice; each port needs its own interface"
            )));
        }
        if name.contains(['=', ' ']) {
            let message = "a colon follows the interface, as in `eth1: rate = \"50Mbit/s\"`";
            return Err(Error::Input(format!("`{name}` is not an interface; {message}")));
        }
        seen.push(name);
    }
    for name in seen {
        if sys::is_loopback(name).unwrap_or(false) {
            return Err(Error::Input(format!(
                "`{name}` is a loopback interface; a port needs an interface to other hosts"
            )));
        }
    }
    Ok(())
}

pub(super) fn run_router(args: &cli::Router) -> Result<()> {
    if args.ports.len() < 2 {
        return Err(Error::Input("a router has at least two ports; pass --port for each".to_string()));
    }
    let ports = args.ports.iter().map(|written| written.split_once(':').unwrap_or((written, "")));
    let ports: Vec<(&str, &str)> = ports.map(|(name, properties)| (name.trim(), properties.trim())).collect();
    let names = || ports.iter().map(|(name, _)| *name);
    distinct(names())?;
    if words::link("a port", "rate = \"1Gbit/s\"", Some(&args.controller))?.routers.is_empty() {
        return Err(Error::Input(format!("`{}` has no controller for routers", args.controller)));
    }
    let (mut links, mut advised) = (Vec::new(), Vec::new());
    for (name, properties) in &ports {
        let (basis, properties) = words::advice(name, properties)?;
        links.push(words::link(name, &properties, Some(&args.controller))?);
        advised.push(basis);
    }
    let interfaces = open(names(), &links, &advised, &args.common)?;
    warn_of_offloads(names());
    let apart = Time::micros(args.coalesce);
    forward(interfaces, &links, Mode::Router, &args.common, |forwarder| forwarder.keep_apart(apart))
}

pub(super) fn run_link(args: &cli::Link) -> Result<()> {
    let names = || [&args.a[..], &args.b].into_iter();
    distinct(names())?;
    let (there, back) = (&args.there, args.back.as_ref().unwrap_or(&args.there));
    for properties in [there, back] {
        if let (Some(_), _) = words::advice("the link", properties)? {
            let message = "`scone` is a property of a port of `explicated router`; a link advises nothing";
            return Err(Error::Input(message.to_string()));
        }
    }
    let there = words::link(&format!("{}->{}", args.a, args.b), there, None)?;
    // Frames from one interface leave through the other.
    let links = [words::link(&format!("{}->{}", args.b, args.a), back, None)?, there];
    let interfaces = open(names(), &links, &[None, None], &args.common)?;
    forward(interfaces, &links, Mode::Link, &args.common, |forwarder| {
        if let Some(vlan) = args.tag {
            forwarder.tag(vlan);
        }
    })
}

/// Opens interfaces, each with the port and the delay of its link, and with what it advises.
fn open<'a>(
    names: impl Iterator<Item = &'a str>,
    links: &[Link],
    advised: &[Option<Basis>],
    args: &Forwarding,
) -> Result<Vec<Interface>> {
    let names: Vec<&str> = names.collect();
    // Properties are judged before interfaces are opened.
    let output = |(number, (link, basis)): (usize, (&Link, &Option<Basis>))| -> Result<Output> {
        let mut output = Output::new(port(link, number as u32, args.seed, ALL, None), link.delay);
        output.scone = basis.map(|basis| advising(names[number], &output.port, basis)).transpose()?;
        Ok(output)
    };
    let outputs: Result<Vec<Output>> = links.iter().zip(advised).enumerate().map(output).collect();
    names.iter().zip(outputs?).map(|(name, output)| Interface::holding(HELD_BY_FEW, name, output)).collect()
}

/// The SCONE element of a port.
fn advising(name: &str, port: &Port, basis: Basis) -> Result<Box<Scone>> {
    if basis == Basis::Fair && port.shared().is_none() {
        return Err(Error::Input(format!(
            "{name}: `scone = {{ advise = \"fair\" }}`: this port has no rate that flows share, because its controller \
             divides none and its line is not shared by numbers of flows; leave out `classes` and `share_by_flows`, \
             or advise a rate, as in \"45Mbit/s\""
        )));
    }
    let scone = Scone::new(basis, u64::from_ne_bytes(random()?));
    let what = match basis {
        Basis::Rate(_) => spoken(scone.advice()),
        Basis::Fair => "the fair rate of a flow".to_string(),
        Basis::Measured => "the rate at which it sends while packets wait".to_string(),
    };
    // It writes into packets of others: that is never silent.
    tracing::warn!("{name} lowers the advice in SCONE packets of QUIC flows ({DRAFT}) to {what}");
    Ok(Box::new(scone))
}

/// Advice in words.
fn spoken(advice: Advice) -> String {
    advice.rate().map_or_else(|| "nothing yet".to_string(), |bits| format!("{:.3} Mbit/s", bits / 1e6))
}

fn forward(
    interfaces: Vec<Interface>,
    links: &[Link],
    mode: Mode,
    args: &Forwarding,
    prepare: impl FnOnce(&mut Forwarder),
) -> Result<()> {
    if args.real_time
        && let Err(error) = sys::go_first()
    {
        tracing::warn!(%error, "cannot use real-time scheduling");
    }
    let clock = Clock::start();
    let mut forwarder = Forwarder::new(interfaces, mode, clock)?;
    prepare(&mut forwarder);
    let metrics = args.metrics.map(Metrics::serve).transpose()?;
    let mut reporter = Reporter::to_stdout();
    // All sockets are open.
    sys::drop_privileges().or_fail(|| "drop privileges".to_string())?;
    let end = args.time.map_or(Time::NEVER, Time::from_secs_f64);
    let interval = if args.interval > 0.0 { Time::from_secs_f64(args.interval) } else { Time::NEVER };
    let mut next = interval;
    let (mut reported, mut served) = (Meter::default(), Meter::default());
    if let Some(metrics) = &metrics {
        metrics.set(report(&mut forwarder, links, clock.now(), &mut served));
    }
    while clock.now() < end && !sys::stopped() {
        forwarder.run(end.min(next).min(clock.now() + POLL_INTERVAL), &sys::stopped)?;
        forwarder.count_missed();
        reporter.go_on();
        if let Some(gone) = forwarder.interfaces.iter().find(|i| i.is_gone()) {
            return Err(Error::Failed(format!("the interface `{}` has disappeared", gone.name)));
        }
        if let Some(metrics) = &metrics {
            let now = clock.now();
            if now.since(served.since) >= POLL_INTERVAL {
                metrics.set(report(&mut forwarder, links, now, &mut served));
            }
        }
        if clock.now() >= next {
            reporter.report(shown(&mut forwarder, links, clock.now(), &mut reported, args.json));
            next = clock.now() + interval;
        }
    }
    reporter.finish(shown(&mut forwarder, links, clock.now(), &mut reported, args.json))
}

/// The rates of all ports since the last call.
#[derive(Default)]
pub(crate) struct Meter {
    since: Time,
    bytes: Vec<u64>,
}

impl Meter {
    /// Bit/s.
    fn rates(&mut self, forwarder: &Forwarder<impl Frames>, now: Time) -> Vec<f64> {
        let span = now.since(self.since).max(Time(1));
        let bytes: Vec<u64> = forwarder.interfaces.iter().map(|i| i.output.bytes).collect();
        self.bytes.resize(bytes.len(), 0);
        let rates = bytes.iter().zip(&self.bytes).map(|(now, before)| 8.0 * per_second(now - before, span)).collect();
        (self.since, self.bytes) = (now, bytes);
        rates
    }
}

/// A report, as lines of text or as JSON.
fn shown(forwarder: &mut Forwarder, links: &[Link], now: Time, meter: &mut Meter, json: bool) -> String {
    let report = report(forwarder, links, now, meter);
    if json {
        return report.to_string();
    }
    let without: u64 =
        ["ipv6", "mpls", "tunnelled", "fragments", "merged"].iter().filter_map(|key| report[*key].as_u64()).sum();
    let head = format!(
        "{:.1} s: {} frames in, {} explicit, {} out, {:.2} us of CPU each; without feedback {without}; malformed {}, merged by offloads {}, expired {}, missed {}, refused {}",
        now.as_secs_f64(),
        report["received"],
        report["explicit"],
        report["sent"],
        report["cpu_us_per_frame"].as_f64().unwrap_or(0.0),
        report["malformed"],
        report["merged"],
        report["expired"],
        report["missed"],
        report["refused"],
    );
    let port = |port: &Value| {
        let line = format!(
            "  {}: {:.3} Mbit/s of {:.3}; dropped {}, lost {}, marked {}, waiting {} packets; delay asked {} ms, late by p50 {} us, p99 {} us",
            port["name"].as_str().unwrap_or(""),
            port["bits_per_second"].as_f64().unwrap_or(0.0) / 1e6,
            port["rate_bps"].as_f64().unwrap_or(0.0) / 1e6,
            port["drops"],
            port["lost"],
            port["marks"],
            port["queue_packets"],
            port["delay_ms"],
            port["late_p50_us"],
            port["late_p99_us"],
        );
        if port["scone"].is_string() { line + &scone_line(port) } else { line }
    };
    let ports = report["ports"].as_array().into_iter().flatten().map(port);
    std::iter::once(head).chain(ports).collect::<Vec<_>>().join("\n")
}

/// What a port's SCONE element has done, in words.
fn scone_line(port: &Value) -> String {
    let number = |key: &str| port[key].as_u64().unwrap_or(0);
    let unserved = number("scone_fragments") + number("scone_extensions") + number("scone_partial");
    let advice = Advice::from_index(number("scone_signal") as u8).unwrap_or(Advice::NONE);
    format!(
        "; SCONE advises {}: lowered {}, kept {}, limited {}, left alone {unserved}",
        spoken(advice),
        number("scone_lowered"),
        number("scone_kept"),
        number("scone_limited"),
    )
}

/// The variables of a port's SCONE element.
fn scone_variables(scone: &Scone) -> [(&'static str, Value); 8] {
    let counters = scone.counters();
    [
        ("scone", json!(DRAFT)),
        ("scone_signal", json!(scone.advice().index())),
        ("scone_lowered", json!(counters.lowered)),
        ("scone_kept", json!(counters.kept)),
        ("scone_limited", json!(counters.limited)),
        ("scone_fragments", json!(counters.fragments)),
        ("scone_extensions", json!(counters.extensions)),
        ("scone_partial", json!(counters.partial)),
    ]
}

/// The variables of a port's classes, if it has several.
fn classes(port: &Port, link: &Link) -> Vec<Value> {
    let of_class = |(class, word): (usize, &str)| {
        let mut variables = serde_json::Map::from_iter([("name".to_string(), json!(word))]);
        port.probe_class(class, &mut |name, value| {
            variables.insert(name.to_string(), json!(value));
        });
        Value::Object(variables)
    };
    link.class_words().into_iter().enumerate().map(of_class).collect()
}

/// All counters, with the configured and the measured values of each port.
pub(crate) fn report(forwarder: &mut Forwarder<impl Frames>, links: &[Link], now: Time, meter: &mut Meter) -> Value {
    forwarder.catch_up();
    let rates = meter.rates(forwarder, now);
    let (c, cpu) = (forwarder.counters, forwarder.cpu());
    let ports: Vec<Value> = forwarder
        .interfaces
        .iter()
        .zip(links)
        .zip(rates)
        .map(|((interface, link), rate)| {
            let (output, stats) = (&interface.output, &interface.output.port.stats);
            let total = stats.total();
            let mut variables = serde_json::Map::new();
            output.port.probe(&mut |name, value| {
                variables.insert(name.to_string(), json!(value));
            });
            let classes = classes(&output.port, link);
            let mut told = json!({
                "name": interface.name,
                "rate_bps": link.rate.0,
                "bits_per_second": rate,
                "arrived": stats.arrived,
                "bytes": stats.bytes,
                "drops": total.overflow + total.early,
                "lost": total.channel,
                "loss": total.channel as f64 / (stats.arrived - total.overflow - total.early).max(1) as f64,
                "marks": total.marks,
                "damaged": total.damaged,
                "queue_packets": output.port.backlog().1,
                "queue_bytes": output.port.backlog().0,
                "delay_ms": link.delay.to_millis(),
                "late_p50_us": output.late.percentile(0.5).0 as f64 / 1e3,
                "late_p99_us": output.late.percentile(0.99).0 as f64 / 1e3,
                "variables": variables,
                "classes": classes,
            });
            for (key, value) in output.scone.iter().flat_map(|scone| scone_variables(scone)) {
                told[key] = value;
            }
            if let Some(bits) = output.scone.as_ref().and_then(|scone| scone.advice().rate()) {
                told["scone_advice_bps"] = json!(bits);
            }
            told
        })
        .collect();
    let mut report = json!(c);
    report["event"] = json!("report");
    report["time_s"] = json!(now.to_seconds());
    report["cpu_us_per_frame"] = json!(cpu as f64 / 1e3 / c.sent.max(1) as f64);
    report["ports"] = json!(ports);
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::text_of;

    /// A port that shares its line by numbers of flows has a fair rate, and so has one whose controller divides it.
    #[test]
    fn a_port_without_a_fair_rate_is_refused() {
        let judged = |controller: &str, more: &str| {
            let link = words::link("eth1", &format!("rate = \"10Mbit/s\"{more}"), Some(controller)).unwrap();
            advising("eth1", &port(&link, 0, 1, ALL, None), Basis::Fair).map(|_| ())
        };
        assert!(judged("vcp", "").is_ok() && judged("xcp", ", share_by_flows = false").is_ok());
        for (controller, more) in [("vcp", ", share_by_flows = false"), ("xcp", ", router = \"none\"")] {
            let error = judged(controller, more).unwrap_err().to_string();
            assert!(error.starts_with("eth1: ") && error.contains("advise a rate"), "{error}");
        }
    }

    #[test]
    fn what_a_port_advises_is_in_reports_and_metrics() {
        let mut told = json!({ "name": "eth1" });
        for (key, value) in scone_variables(&Scone::new(Basis::Rate(45e6), 1)) {
            told[key] = value;
        }
        assert_eq!(told["scone"], "draft-ietf-scone-protocol-07");
        let line = "; SCONE advises 44.668 Mbit/s: lowered 0, kept 0, limited 0, left alone 0";
        assert_eq!(scone_line(&told), line);
        let text = text_of(json!({ "ports": [told] }));
        for counter in ["lowered", "kept", "limited", "fragments", "extensions", "partial"] {
            let series = format!("explicated_port_scone_{counter}_total{{port=\"eth1\"}} 0");
            assert!(text.contains(&series), "{series}: {text}");
        }
        assert!(text.contains("explicated_port_scone_signal{port=\"eth1\"} 53"), "{text}");
    }
}
