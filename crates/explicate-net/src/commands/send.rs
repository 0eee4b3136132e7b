//! `explicated send`; here by UDP.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::path::Path;

use explicate_build::flows;
use explicate_build::source::Source;
use explicate_core::agent::Address;
use explicate_core::api::measured_ms;
use explicate_core::endpoint::{ReceiverEndpoint, SenderEndpoint};
use explicate_core::params::Values;
use explicate_core::recovery::COMMON;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::UDP_PORT;
use explicate_scenario::model::FlowGroup;
use serde_json::json;

use super::guard::{self, ControllerLog};
use super::path::{self, LOOK};
use super::progress::Progress;
use super::report::{Done, Intervals, end};
use super::say::{complain, say};
use super::series::Series;
use super::words;
use crate::address::split;
use crate::agent::AgentHost;
use crate::cli::Send;
use crate::clock::Clock;
use crate::endpoint::auth::{Key, random};
use crate::endpoint::content::Supply;
use crate::endpoint::hello::{Content, Hello, file_name};
use crate::endpoint::message::number;
use crate::endpoint::probe::kernel_mtu;
use crate::endpoint::sending::{Plan, SILENT, Sending, TransferState};
use crate::endpoint::{Endpoint, own_address};
use crate::error::{Context, Error, Result};
use crate::sys;

/// Default IP length of a full packet.
pub(super) const PACKET: &str = "1500B";
/// The longest packet that a greeting may announce.
const LONGEST_PACKET: u16 = 9000;
/// Defaults of recovery parameters, in base units, for recoveries that have them. A retransmission timer of at most 5 s lets a
/// transfer go on soon after an outage; a packet in 5 s is no load. `recount = "at_once"` finds losses among a transfer's last
/// packets without the timer.
const RECOVER_SOON: &[(&str, f64)] = &[("max_rto", 5.0), ("recount", 1.0)];
/// Time without any answer after which `send` says so.
const SILENCE: Time = Time::secs(3);
/// How often flows are checked for stalls.
const STALLS: Time = Time::millis(250);

/// The address of `host` or `host:port`, where the host is a name or an IPv4 address.
pub(super) fn peer(text: &str) -> Result<SocketAddrV4> {
    let Some((host, port)) = split(text).filter(|(host, _)| !host.contains(':')) else {
        return Err(Error::Input(format!(
            "the receiver is a name or an IPv4 address, like gw.example.org or 10.0.0.2:{UDP_PORT}, not `{text}`"
        )));
    };
    let found = (host, port.unwrap_or(UDP_PORT))
        .to_socket_addrs()
        .map_err(|why| Error::Failed(format!("cannot find `{host}`: {why}")))?;
    let v4 = found.into_iter().find_map(|address| if let SocketAddr::V4(v4) = address { Some(v4) } else { None });
    v4.ok_or_else(|| Error::Failed(format!("`{host}` has no IPv4 address")))
}

pub(super) fn run(args: &Send) -> Result<()> {
    if args.pair.is_some() {
        return Err(Error::Input("--pair belongs to --transport quic".to_string()));
    }
    if args.files.len() > 1 || args.file().is_some_and(Path::is_dir) {
        return Err(Error::Input("folders and several files need --transport quic".to_string()));
    }
    let peer = peer(&args.peer)?;
    let mut group =
        words::flow(&args.protocol, args.stack.as_deref(), args.packet.as_deref().unwrap_or(PACKET), &args.params)?;
    guard::set(args, &mut group);
    if group.packet > LONGEST_PACKET {
        let asked = args.packet.as_deref().unwrap_or(PACKET);
        return Err(Error::Input(format!("--packet {asked}: both ends take {LONGEST_PACKET}B at most")));
    }
    fit(args, &mut group, kernel_mtu(peer)?);
    recover_soon(&mut group, &args.params);
    if args.file().is_some() && args.flows > 1 {
        return Err(Error::Input("a file goes in one flow".to_string()));
    }
    if !group.resolved.recovery.reliable() && args.file().is_some() {
        return Err(Error::Input(format!("`{}` sends nothing twice, so a file would have holes", args.protocol)));
    }
    // Before privileges are dropped: it may belong to root.
    let key = args.key.as_deref().map(Key::load).transpose()?;
    let clock = Clock::start();
    let own = own_address(peer)?;
    let speaker = AgentHost::new(
        group.resolved.protocol,
        &Values::default(),
        own,
        Rng::stream(u64::from_be_bytes(random()?), "agent"),
    );
    // Routers send messages to hosts at one well-known port.
    let bind = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, if speaker.is_some() { UDP_PORT } else { 0 });
    let mut endpoint = Endpoint::open(bind, None, clock)?;
    endpoint.agent = speaker;
    sys::drop_privileges().or_fail(|| "drop privileges".to_string())?;
    // Random numbers: an attacker who knows a flow's number and ports can disturb it.
    let base = u32::from_be_bytes(random()?);
    let to = Far { args, peer, own, key };
    for i in 0..args.flows {
        let id = base.wrapping_add(i);
        endpoint.sending.insert(id, sending(&to, &group, id, supply(args)?, None)?);
    }
    let mut path = path::Path::new(peer, to.key.clone(), group.packet);
    let mut series = Series::open(args.series.as_deref())?;
    let mut intervals = Intervals::default();
    let mut progress = Progress::of(args.file(), args.json);
    let mut controllers = ControllerLog::new(&group);
    let step = if args.interval > 0.0 { Time::from_secs_f64(args.interval) } else { Time::NEVER };
    let over = |e: &Endpoint| e.sending.values().all(Sending::is_over) || sys::stopped();
    let (mut next, mut says) = (step, SILENCE);
    loop {
        let now = endpoint.now();
        if over(&endpoint) {
            break;
        }
        let looks = progress.as_ref().map_or(Time::NEVER, Progress::due);
        let search = if path.searches() { now + LOOK } else { now + STALLS };
        endpoint.run(next.min(series.due()).min(looks).min(controllers.next()).min(search), &over)?;
        let now = endpoint.now();
        controllers.look(now, &endpoint, args.json)?;
        if let Some(length) = path.shorter(now, &endpoint) {
            complain(format!("the path carries packets of {length} B; going on with shorter packets"));
            group.packet = length;
            shorten(&to, &group, &mut endpoint, &mut intervals)?;
        }
        series.write(now, |put| {
            for (id, Sending { flow, .. }) in &mut endpoint.sending {
                put(*id, "srtt_ms", measured_ms(flow.srtt()));
                flow.probe(&mut |variable, value| put(*id, variable, value));
            }
        })?;
        if let (Some(progress), Some(flow)) = (&mut progress, endpoint.sending.values().next()) {
            progress.update(now, flow);
        }
        if now >= says && endpoint.sending.values().all(|flow| flow.have.is_none() && !flow.is_over()) {
            let left = args.patience - now.as_secs_f64();
            complain(format!("no answer from {peer} yet, {left:.0} s of --patience remain; {SILENT}"));
            says = Time::NEVER;
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
    finish(args, &group, &endpoint, intervals, controllers)
}

/// Packets are no longer than the interface and the known routers carry.
fn fit(args: &Send, group: &mut FlowGroup, most: u16) {
    if group.packet <= most {
        return;
    }
    if let Some(asked) = &args.packet {
        complain(format!("--packet {asked}: the path carries packets of {most} B, so they have that length"));
    }
    group.packet = most;
}

/// Recovers as a transfer should, unless these parameters say another or a preset does.
pub(super) fn recover_soon(group: &mut FlowGroup, params: &[String]) {
    for &(name, value) in RECOVER_SOON {
        // A value that is the default is not among those given.
        let mut asked = params.iter().filter_map(|param| param.split_once('='));
        let said = asked.any(|(key, _)| key.trim() == name) || group.values.given().iter().any(|(key, _)| *key == name);
        let mut known = COMMON.iter().chain(group.resolved.recovery.params());
        if let Some(param) = known.find(|p| p.name == name).filter(|_| !said) {
            group.values.set(param, value);
        }
    }
}

/// Flows with packets of the group's length take the places of those that are under way.
fn shorten(to: &Far, group: &FlowGroup, endpoint: &mut Endpoint, intervals: &mut Intervals) -> Result<()> {
    let under_way: Vec<u32> =
        endpoint.sending.iter().filter(|(_, f)| f.state == TransferState::Open).map(|(id, _)| *id).collect();
    let base = u32::from_be_bytes(random()?);
    for (old, id) in under_way.into_iter().zip((0..).map(|i| base.wrapping_add(i))) {
        let Some(mut before) = endpoint.sending.remove(&old) else { continue };
        let supply = std::mem::replace(&mut before.supply, Supply::Filler);
        let mut flow = sending(to, group, id, supply, Some(number(before.high, old)))?;
        flow.take_over(&before);
        endpoint.sending.insert(id, flow);
        intervals.replace(old, id);
    }
    Ok(())
}

/// Where flows go, and what was asked for.
struct Far<'a> {
    args: &'a Send,
    peer: SocketAddrV4,
    own: Ipv4Addr,
    key: Option<Key>,
}

/// What is sent.
fn supply(args: &Send) -> Result<Supply> {
    let Some(path) = args.file() else { return Ok(Supply::Filler) };
    Supply::open(path).or_fail(|| format!("read {}", path.display()))
}

/// The flow of this number; `instead` is that of one whose place it takes.
fn sending(to: &Far, group: &FlowGroup, id: u32, supply: Supply, instead: Option<u64>) -> Result<Sending> {
    let Far { args, peer, own, key } = to;
    let init = flows::init(group, id, Rate::mbps(args.interface_mbps)).map_err(Error::Failed)?;
    let (content, source) = match (&supply, args.bytes) {
        (Supply::File { size, digest, mode, modified, .. }, _) => {
            let path = args.file().unwrap_or(Path::new("file"));
            let most = (u32::MAX as u64 - 1) * (group.packet as u64 / 2);
            if *size > most {
                return Err(Error::Input(format!("{} is longer than a flow can be", path.display())));
            }
            let name = file_name(&path.file_name().unwrap_or_default().to_string_lossy());
            let (size, mode, digest, modified) = (*size, *mode, *digest, Some(*modified));
            (Content::File { name, size, mode, digest, modified }, Source::Sized(size))
        }
        (Supply::Filler, Some(bytes)) => (Content::Nothing, Source::Sized(bytes)),
        (Supply::Filler, None) => {
            let stop = Time::from_secs_f64(args.time);
            (Content::Nothing, Source::Until { stop, started: false })
        }
    };
    let mut flow = SenderEndpoint::new(&init);
    flow.attach(Address((*own).into()));
    Ok(Sending::new(Plan {
        flow,
        elsewhere: ReceiverEndpoint::new(&init),
        source,
        start: Time::ZERO,
        hello: Hello { instead, ..Hello::new(&args.protocol, group.packet, &group.values, content) },
        high: u32::from_be_bytes(random()?).max(1),
        key: key.clone(),
        supply,
        peer: *peer,
        timeout: Time::from_secs_f64(args.patience),
        confirm: true,
    }))
}

fn finish(
    args: &Send,
    group: &FlowGroup,
    endpoint: &Endpoint,
    mut intervals: Intervals,
    controllers: ControllerLog,
) -> Result<()> {
    let now = endpoint.now();
    let line = intervals.end(now, endpoint.sending.iter(), group.packet);
    let flows: Vec<_> = endpoint
        .sending
        .iter()
        .map(|(id, f)| {
            let received = if let TransferState::Over(bytes) = f.state { Some(f.earlier + bytes) } else { None };
            (*id, Done::of(f), received, f.payload)
        })
        .collect();
    let problem = endpoint.sending.values().find_map(|f| match &f.state {
        TransferState::Failed(why) => Some(why.clone()),
        TransferState::Over(_) => None,
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
            "laws": controllers.all,
            "intervals": intervals.all,
            "end": total,
            "strays": endpoint.strays,
        });
        if let Some(why) = &problem {
            report["error"] = json!(why);
        }
        if args.file().is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use explicate_core::registry::{PROTOCOLS, RECOVERIES};

    /// What the recovery of a flow of this name, with these parameters, goes by in a transfer.
    fn goes_by(name: &str, params: &[&str], param: &str) -> Option<f64> {
        let params: Vec<String> = params.iter().map(ToString::to_string).collect();
        let mut group = words::flow(name, None, PACKET, &params).unwrap();
        recover_soon(&mut group, &params);
        let recovery = group.resolved.recovery;
        let known: Vec<_> = COMMON.iter().chain(recovery.params()).copied().collect();
        known.iter().any(|p| p.name == param).then(|| group.values.get(&known, param))
    }

    #[test]
    fn transfers_recover_soon_unless_somebody_said_another() {
        let protocol = PROTOCOLS[0].name();
        let mut counting = 0;
        for recovery in RECOVERIES {
            let name = format!("{protocol}/{}", recovery.name());
            assert_eq!(goes_by(&name, &[], "max_rto"), Some(5.0), "{name}");
            assert_eq!(goes_by(&name, &["max_rto=60s"], "max_rto"), Some(60.0), "{name}");
            if let Some(recount) = goes_by(&name, &[], "recount") {
                assert_eq!(recount, 1.0, "{name}: at once");
                assert_eq!(goes_by(&name, &["recount=after_window"], "recount"), Some(0.0), "{name}");
                counting += 1;
            }
        }
        assert!(counting > 0, "no recovery has the parameter");
        assert_eq!(goes_by(explicate_core::presets::DEFAULT_SENDER, &[], "recount"), Some(1.0));
    }
}
