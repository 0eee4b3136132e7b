//! `explicated send`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

use explicate_core::flow::{Flow, FlowInit};
use explicate_core::params::Values;
use explicate_core::protocol::Address;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::sink::Sink;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::UDP_PORT;
use explicate_scenario::machines::source::Source;
use explicate_scenario::model::FlowGroup;
use serde_json::json;

use super::guard::{self, Laws};
use super::progress::Progress;
use super::report::{Done, Intervals, end};
use super::say::say;
use super::words;
use crate::agent::Speaker;
use crate::cli::Send;
use crate::clock::Clock;
use crate::endpoint::auth::{Key, random};
use crate::endpoint::content::Supply;
use crate::endpoint::hello::{Content, Hello, file_name};
use crate::endpoint::sending::{Plan, Sending, Standing};
use crate::endpoint::{Endpoint, LONGEST, own_address};
use crate::error::{Context, Error, Result};
use crate::sys;

/// How often the series has a line.
const SERIES: Time = Time::millis(50);

pub(super) fn peer(text: &str) -> Result<SocketAddrV4> {
    let with_port = text.parse::<SocketAddrV4>().ok();
    let alone = || text.parse::<Ipv4Addr>().ok().map(|ip| SocketAddrV4::new(ip, UDP_PORT));
    with_port.or_else(alone).filter(|peer| peer.port() != 0).ok_or_else(|| {
        Error::Input(format!("the receiver is an IPv4 address like 10.0.0.2 or 10.0.0.2:{UDP_PORT}, not `{text}`"))
    })
}

pub(super) fn run(args: &Send) -> Result<()> {
    let peer = peer(&args.peer)?;
    let mut group = words::flow(&args.protocol, &args.packet, &args.params)?;
    guard::set(args, &mut group);
    if group.packet as usize > LONGEST {
        return Err(Error::Input(format!("--packet {}: both ends take {LONGEST}B at most", args.packet)));
    }
    if args.file.is_some() && args.flows > 1 {
        return Err(Error::Input("a file goes in one flow".to_string()));
    }
    if !group.resolved.recovery.reliable() && args.file.is_some() {
        return Err(Error::Input(format!("`{}` sends nothing twice, so a file would have holes", args.protocol)));
    }
    // Before privileges are dropped: it may belong to root.
    let key = args.key.as_deref().map(Key::load).transpose()?;
    let clock = Clock::start();
    let own = own_address(peer)?;
    let speaker = Speaker::new(
        group.resolved.protocol,
        &Values::default(),
        own,
        Rng::stream(u64::from_be_bytes(random()?), "agent"),
    );
    // Routers that speak to hosts do so at the one port that they know.
    let bind = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, if speaker.is_some() { UDP_PORT } else { 0 });
    let mut endpoint = Endpoint::open(bind, None, clock)?;
    endpoint.speaker = speaker;
    sys::drop_privileges().or_fail(|| "drop privileges".to_string())?;
    // Numbers that nobody can guess: whoever knows a flow's number and ports can disturb it.
    let base = u32::from_be_bytes(random()?);
    for i in 0..args.flows {
        let id = base.wrapping_add(i);
        endpoint.sending.insert(id, sending(args, &group, id, peer, own, key.clone())?);
    }
    let mut series = Series::open(args)?;
    let mut intervals = Intervals::default();
    let mut progress = Progress::of(args.file.as_deref(), args.json);
    let mut laws = Laws::new(&group);
    let step = if args.interval > 0.0 { Time::from_secs_f64(args.interval) } else { Time::NEVER };
    let over = |e: &Endpoint| e.sending.values().all(Sending::is_over) || sys::stopped();
    let mut next = step;
    loop {
        let now = endpoint.now();
        if over(&endpoint) {
            break;
        }
        let looks = progress.as_ref().map_or(Time::NEVER, Progress::due);
        endpoint.run(next.min(series.next(now)).min(looks).min(laws.next()), &over)?;
        let now = endpoint.now();
        laws.look(now, &endpoint, args.json)?;
        series.write(now, &mut endpoint)?;
        if let (Some(progress), Some(flow)) = (&mut progress, endpoint.sending.values().next()) {
            progress.tell(now, flow);
        }
        if now >= next {
            let line = intervals.end(now, endpoint.sending.iter(), group.packet);
            if !args.json && progress.as_ref().is_none_or(|progress| !progress.alone) {
                say(line)?;
            }
            next = now + step;
        }
    }
    drop(progress);
    finish(args, &group, &endpoint, intervals, laws)
}

fn sending(
    args: &Send,
    group: &FlowGroup,
    id: u32,
    peer: SocketAddrV4,
    own: Ipv4Addr,
    key: Option<Key>,
) -> Result<Sending> {
    let fallback = registry::resolve(group.resolved.fallback).map_err(Error::Failed)?;
    let init = FlowInit {
        id,
        protocol: group.resolved.protocol,
        fallback: fallback.protocol,
        recovery: group.resolved.recovery,
        values: &group.values,
        packet: group.packet,
        interface: Rate::mbps(args.interface_mbps),
    };
    let (supply, content, source) = match (&args.file, args.bytes) {
        (Some(path), _) => {
            let supply = Supply::open(path).or_fail(|| format!("read {}", path.display()))?;
            let Supply::File { size, digest, mode, modified, .. } = supply else {
                return Err(Error::Failed("no file".to_string()));
            };
            let most = (u32::MAX as u64 - 1) * (group.packet as u64 / 2);
            if size > most {
                return Err(Error::Input(format!("{} is longer than a flow can be", path.display())));
            }
            let name = file_name(&path.file_name().unwrap_or_default().to_string_lossy());
            let modified = Some(modified);
            (supply, Content::File { name, size, mode, digest, modified }, Source::Sized(size))
        }
        (None, Some(bytes)) => (Supply::Filler, Content::Nothing, Source::Sized(bytes)),
        (None, None) => {
            let stop = Time::from_secs_f64(args.time);
            (Supply::Filler, Content::Nothing, Source::Until { stop, started: false })
        }
    };
    let mut flow = Flow::new(&init);
    flow.attach(Address(own.into()));
    Ok(Sending::new(Plan {
        flow,
        elsewhere: Sink::new(&init),
        source,
        start: Time::ZERO,
        hello: Hello::new(&args.protocol, group.packet, &group.values, content),
        high: u32::from_be_bytes(random()?).max(1),
        key,
        supply,
        peer,
        patience: Time::from_secs_f64(args.patience),
        confirm: true,
    }))
}

fn finish(args: &Send, group: &FlowGroup, endpoint: &Endpoint, mut intervals: Intervals, laws: Laws) -> Result<()> {
    let now = endpoint.now();
    let line = intervals.end(now, endpoint.sending.iter(), group.packet);
    let flows: Vec<_> = endpoint
        .sending
        .iter()
        .map(|(id, f)| {
            let received = if let Standing::Over(bytes) = f.standing { Some(bytes) } else { None };
            (*id, Done::of(f), received, f.payload)
        })
        .collect();
    let problem = endpoint.sending.values().find_map(|f| match &f.standing {
        Standing::Failed(why) => Some(why.clone()),
        Standing::Over(_) => None,
        _ => Some("interrupted".to_string()),
    });
    let total = end(now, &flows);
    if args.json {
        let mut report = json!({
            "start": {
                "version": format!("explicated {}", env!("CARGO_PKG_VERSION")),
                "connecting_to": { "host": args.peer },
                "test_start": {
                    "protocol": args.protocol,
                    "num_streams": args.flows,
                    "blksize": group.packet,
                    "duration": args.time,
                    "bytes": args.bytes,
                    "key": args.key.is_some(),
                },
            },
            "laws": laws.all,
            "intervals": intervals.all,
            "end": total,
        });
        if let Some(why) = &problem {
            report["error"] = json!(why);
        }
        if args.file.is_some() {
            report["end"]["held_before"] = json!(endpoint.sending.values().filter_map(|flow| flow.have).sum::<u64>());
        }
        say(report)?;
    } else {
        say(line)?;
        let held: u64 = endpoint.sending.values().filter_map(|flow| flow.have).sum();
        if held > 0 {
            say(format!("{held} bytes were there already, of an earlier try"))?;
        }
        let sum = &total["sum_received"];
        let rate = sum["bits_per_second"].as_f64().unwrap_or(0.0) / 1e6;
        let resent = &total["sum_sent"]["retransmits"];
        say(format!(
            "in all {} bytes arrived in {:.3} s: {rate:.3} Mbit/s; {resent} packets resent",
            sum["bytes"],
            now.as_secs_f64()
        ))?;
    }
    match problem {
        Some(why) => Err(Error::Failed(why)),
        None => Ok(()),
    }
}

/// The flows' variables over time.
struct Series {
    out: Option<BufWriter<File>>,
    due: Time,
}

impl Series {
    fn open(args: &Send) -> Result<Series> {
        let Some(path) = &args.series else { return Ok(Series { out: None, due: Time::NEVER }) };
        let made = File::create(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            writeln!(out, "time_s,flow,variable,value")?;
            Ok(out)
        });
        let out = made.or_fail(|| format!("write {}", path.display()))?;
        Ok(Series { out: Some(out), due: SERIES })
    }
    fn next(&self, _now: Time) -> Time {
        self.due
    }
    fn write(&mut self, now: Time, endpoint: &mut Endpoint) -> Result<()> {
        let Some(out) = self.out.as_mut().filter(|_| self.due <= now) else { return Ok(()) };
        self.due = now + SERIES;
        let mut text = String::new();
        for (id, flow) in &mut endpoint.sending {
            let mut put = |variable: &'static str, value: f64| {
                text += &format!("{:.6},{id},{variable},{value}\n", now.as_secs_f64());
            };
            put("srtt_ms", flow.flow.srtt().as_millis_f64());
            flow.flow.probe(&mut put);
        }
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).or_fail(|| "write the series".to_string())
    }
}
