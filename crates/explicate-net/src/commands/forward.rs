//! `explicated router` and `explicated link`.

use std::net::Ipv4Addr;

use explicate_core::port::Port;
use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_scenario::machines::ports::port;
use explicate_scenario::model::Link;
use serde_json::{Value, json};

use super::say::say;
use super::words;
use crate::agent::Speaker;
use crate::cli::{self, Forwarding};
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::forward::output::Output;
use crate::forward::{Forwarder, HELD_BY_FEW, Interface, Manner};
use crate::metrics::Metrics;
use crate::sys;

/// Data of whatever protocol may come: no controller is left out.
const ALL: u64 = u64::MAX;
/// How often counters are served and interfaces looked after.
const LOOK: Time = Time::secs(1);

/// Says which interfaces put packets together: feedback would reach the first of them alone.
fn warn_of_offloads<'a>(names: impl Iterator<Item = &'a str>) {
    for name in names {
        let on = sys::offloads(name);
        if !on.is_empty() {
            let words: Vec<String> = on.iter().map(|word| format!("{word} off")).collect();
            tracing::warn!(
                "{name} may put packets together ({}); try `ethtool -K {name} {}`, at the hosts too",
                on.join(", "),
                words.join(" ")
            );
        }
    }
}

/// Each port is an interface of its own.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Err(Error::Input(format!(
                "the interface `{name}` is named twice; a port is an interface of its own"
            )));
        }
        if name.contains(['=', ' ']) {
            let message = "a colon stands behind the interface, as in `eth1: rate = \"50Mbit/s\"`";
            return Err(Error::Input(format!("`{name}` is no interface; {message}")));
        }
        seen.push(name);
    }
    for name in seen {
        if sys::is_loopback(name).unwrap_or(false) {
            return Err(Error::Input(format!("`{name}` leads to this host alone; a port is an interface to others")));
        }
    }
    Ok(())
}

pub(super) fn run_router(args: &cli::Router) -> Result<()> {
    if args.ports.len() < 2 {
        return Err(Error::Input("a router has at least two ports; say --port for each".to_string()));
    }
    let ports = || args.ports.iter().map(|written| written.split_once(':').unwrap_or((written, "")));
    distinct(ports().map(|(name, _)| name.trim()))?;
    if words::link("a port", "rate = \"1Gbit/s\"", Some(&args.controller))?.routers.is_empty() {
        return Err(Error::Input(format!("`{}` has no controller for routers", args.controller)));
    }
    let mut links = Vec::new();
    let mut interfaces = Vec::new();
    for (number, (name, properties)) in ports().enumerate() {
        let link = words::link(name.trim(), properties.trim(), Some(&args.controller))?;
        interfaces.push((name.trim().to_string(), number));
        links.push(link);
    }
    let open = |(name, number): (String, usize)| {
        let port = port(&links[number], number as u32, args.common.seed, ALL, None);
        Interface::holding(HELD_BY_FEW, &name, Output::new(port, links[number].delay))
    };
    let interfaces = interfaces.into_iter().map(open).collect::<Result<Vec<_>>>()?;
    warn_of_offloads(interfaces.iter().map(|i| &i.name[..]));
    let speaker = match args.address {
        Some(own) => Some(speaker(args, &links, own)?),
        None => None,
    };
    let apart = Time::micros(args.coalesce);
    forward((interfaces, &links), Manner::Router, speaker, &args.common, apart, None)
}

/// What speaks for a router, its hardware address, and at which ports it looks at packets.
type Speaking = (Speaker, [u8; 6], Vec<bool>);

fn speaker(args: &cli::Router, links: &[Link], own: Ipv4Addr) -> Result<Speaking> {
    let spec = links.iter().find_map(|l| l.routers.first());
    let rng = Rng::stream(args.common.seed, &format!("{own}/agent"));
    if spec.is_none() {
        return Err(Error::Input("--address is for ports with a controller, and none has a rate".to_string()));
    }
    let speaker = spec.and_then(|spec| Speaker::new(spec.protocol, &spec.values, own, rng));
    let Some(speaker) = speaker else {
        let message = "--address is for protocols whose routers speak with each other";
        return Err(Error::Input(format!("{message}; those of `{}` do not", args.controller)));
    };
    let [a, b, c, d] = own.octets();
    Ok((speaker, [0x02, 0x6c, a, b, c, d], links.iter().map(|l| !l.routers.is_empty()).collect()))
}

pub(super) fn run_link(args: &cli::Link) -> Result<()> {
    distinct([&args.a[..], &args.b].into_iter())?;
    let (there, back) = (&args.there, args.back.as_ref().unwrap_or(&args.there));
    // Out by an interface goes what came in by the other.
    let links = [
        words::link(&format!("{}->{}", args.b, args.a), back, None)?,
        words::link(&format!("{}->{}", args.a, args.b), there, None)?,
    ];
    let open = |(number, name): (usize, &String)| {
        let port = port(&links[number], number as u32, args.common.seed, ALL, None);
        Interface::holding(HELD_BY_FEW, name, Output::new(port, links[number].delay))
    };
    let interfaces = [&args.a, &args.b].into_iter().enumerate().map(open).collect::<Result<Vec<_>>>()?;
    forward((interfaces, &links), Manner::Link, None, &args.common, Time::ZERO, args.tag)
}

fn forward(
    (interfaces, links): (Vec<Interface>, &[Link]),
    manner: Manner,
    speaker: Option<Speaking>,
    args: &Forwarding,
    apart: Time,
    vlan: Option<u16>,
) -> Result<()> {
    if args.real_time
        && let Err(error) = sys::go_first()
    {
        tracing::warn!(%error, "cannot go before other programs");
    }
    let clock = Clock::start();
    let mut forwarder = Forwarder::new(interfaces, manner, clock)?;
    if let Some((speaker, station, watched)) = speaker {
        forwarder.speak(speaker, station, watched);
    } else {
        // What speaks for a router measures by when its packets leave and come.
        forwarder.keep_apart(apart);
    }
    if let Some(vlan) = vlan {
        forwarder.tag(vlan);
    }
    let metrics = args.metrics.map(Metrics::serve).transpose()?;
    // All sockets are open.
    sys::drop_privileges().or_fail(|| "drop privileges".to_string())?;
    let end = args.time.map_or(Time::NEVER, Time::from_secs_f64);
    let report = if args.interval > 0.0 { Time::from_secs_f64(args.interval) } else { Time::NEVER };
    let mut next = report;
    let (mut reported, mut served) = (Meter::default(), Meter::default());
    while clock.now() < end && !sys::stopped() {
        forwarder.run(end.min(next).min(clock.now() + LOOK), &sys::stopped)?;
        forwarder.count_missed();
        if let Some(gone) = forwarder.interfaces.iter().find(|i| i.is_gone()) {
            return Err(Error::Failed(format!("the interface `{}` is gone", gone.name)));
        }
        if let Some(metrics) = &metrics {
            let now = clock.now();
            if now.since(served.since) >= LOOK {
                metrics.set(tell(&mut forwarder, links, now, &mut served));
            }
        }
        if clock.now() >= next {
            // Packets go on, whether somebody reads this or not.
            if let Err(error) = show(&mut forwarder, links, clock.now(), &mut reported, args.json) {
                tracing::warn!(%error, "a report is lost");
            }
            next = clock.now() + report;
        }
    }
    show(&mut forwarder, links, clock.now(), &mut reported, args.json)
}

/// The rates of all ports since somebody last asked.
#[derive(Default)]
struct Meter {
    since: Time,
    bytes: Vec<u64>,
}

impl Meter {
    /// Bit/s.
    fn rates(&mut self, forwarder: &Forwarder, now: Time) -> Vec<f64> {
        let seconds = now.since(self.since).as_secs_f64().max(1e-9);
        let bytes: Vec<u64> = forwarder.interfaces.iter().map(|i| i.output.bytes).collect();
        self.bytes.resize(bytes.len(), 0);
        let rates = bytes.iter().zip(&self.bytes).map(|(now, before)| 8.0 * (now - before) as f64 / seconds).collect();
        (self.since, self.bytes) = (now, bytes);
        rates
    }
}

fn show(forwarder: &mut Forwarder, links: &[Link], now: Time, meter: &mut Meter, json: bool) -> Result<()> {
    let told = tell(forwarder, links, now, meter);
    if json {
        return say(told);
    }
    say(format!(
        "{:.1} s: {} frames in, {} explicit, {} out, {:.2} us of CPU each; without feedback {}; malformed {}, merged by offloads {}, expired {}, missed {}, refused {}",
        now.as_secs_f64(),
        told["received"],
        told["explicit"],
        told["sent"],
        told["cpu_us_per_frame"].as_f64().unwrap_or(0.0),
        ["ipv6", "mpls", "tunnelled", "fragments", "merged"].iter().filter_map(|key| told[*key].as_u64()).sum::<u64>(),
        told["malformed"],
        told["merged"],
        told["expired"],
        told["missed"],
        told["refused"],
    ))?;
    for port in told["ports"].as_array().into_iter().flatten() {
        say(format!(
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
        ))?;
    }
    Ok(())
}

/// What is known of the classes of a port that has several.
fn classes(port: &Port, link: &Link) -> Vec<Value> {
    let of_class = |(class, word): (usize, &str)| {
        let mut told = serde_json::Map::from_iter([("name".to_string(), json!(word))]);
        port.probe_class(class, &mut |name, value| {
            told.insert(name.to_string(), json!(value));
        });
        Value::Object(told)
    };
    link.class_words().into_iter().enumerate().map(of_class).collect()
}

/// Everything that is counted, with what was asked of each port and what it achieved.
fn tell(forwarder: &mut Forwarder, links: &[Link], now: Time, meter: &mut Meter) -> Value {
    forwarder.settle();
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
            json!({
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
                "delay_ms": link.delay.as_millis_f64(),
                "late_p50_us": output.late.percentile(0.5).0 as f64 / 1e3,
                "late_p99_us": output.late.percentile(0.99).0 as f64 / 1e3,
                "variables": variables,
                "classes": classes,
            })
        })
        .collect();
    let mut variables = serde_json::Map::new();
    forwarder.probe(&mut |name, value| {
        variables.insert(name.to_string(), json!(value));
    });
    json!({
        "event": "report",
        "variables": variables,
        "time_s": now.as_secs_f64(),
        "received": c.received,
        "explicit": c.explicit,
        "tagged": c.tagged,
        "ipv6": c.ipv6,
        "mpls": c.mpls,
        "tunnelled": c.tunnelled,
        "fragments": c.fragments,
        "sent": c.sent,
        "malformed": c.malformed,
        "merged": c.merged,
        "expired": c.expired,
        "cut": c.cut,
        "no_room": c.no_room,
        "refused": c.refused,
        "missed": c.missed,
        "errors": c.errors,
        "turns": c.turns,
        "cpu_us_per_frame": cpu as f64 / 1e3 / c.sent.max(1) as f64,
        "ports": ports,
    })
}
