//! What the kernel has to do for a gateway: a table of nftables, two rules and routes, and what of it was there before.
//!
//! [`up`] adds, [`down`] removes; both may be repeated. All that is added has a name, number or mark of its own, so that `down` needs
//! no record but that of changed sysctls, in [`STATE`].

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::config::{Config, Network};
use crate::error::{Context, Error, Result};

/// Name of the table.
const TABLE: &str = "explicate_gateway";
/// Mark of packets that this host receives although they are for others.
const MARK: u32 = 0x0e17;
/// Number of the routing table in which all addresses are local, and priority of the rules.
const LOCAL: u32 = 3607;
/// Mark and table of other packets of the site, which go through the port.
const OTHERS: u32 = 0x0e18;
const SHARED: u32 = 3608;
/// The interface by which they come to the gateway.
pub const TUN: &str = "explicate0";
/// Values of sysctls before the change.
pub const STATE: &str = "gateway.sysctl";
/// Sysctls that a gateway needs.
const SYSCTLS: [(&str, &str); 2] = [("net/ipv4/ip_forward", "1"), ("net/ipv6/conf/all/forwarding", "1")];

/// The commands of nft that set the table up.
pub fn rules(config: &Config) -> String {
    let mut text = format!("table inet {TABLE}\ndelete table inet {TABLE}\n");
    let port = config.site.intercept_port;
    let _ = writeln!(text, "table inet {TABLE} {{");
    let _ = writeln!(text, "  chain prerouting {{");
    let _ = writeln!(text, "    type filter hook prerouting priority mangle; policy accept;");
    // Packets of connections that this host has in the name of others.
    let _ = writeln!(text, "    meta l4proto tcp socket transparent 1 meta mark set {MARK} accept");
    let quoted: Vec<String> = config.site.interfaces.iter().map(|name| format!("\"{name}\"")).collect();
    if !quoted.is_empty() {
        let from = format!("iifname {{ {} }} meta l4proto tcp", quoted.join(", "));
        let _ = writeln!(text, "    {from} fib daddr type {{ local, broadcast, multicast }} return");
        for (family, ipv6) in [("ip", false), ("ip6", true)] {
            let of = |networks: &[Network]| -> Vec<String> {
                networks.iter().filter(|n| n.address.is_ipv6() == ipv6).map(Network::to_string).collect()
            };
            let own = of(&config.site.networks);
            if !own.is_empty() {
                let _ = writeln!(text, "    {from} {family} daddr {{ {} }} return", own.join(", "));
            }
            let networks: Vec<Network> = config.peers.iter().flat_map(|peer| peer.networks.clone()).collect();
            for network in of(&networks) {
                let _ = writeln!(
                    text,
                    "    {from} {family} daddr {network} tproxy {family} to :{port} meta mark set {MARK} accept"
                );
            }
        }
    }
    if let Some(wan) = config.wan.shares().filter(|_| !quoted.is_empty()) {
        let from = format!("iifname {{ {} }}", quoted.join(", "));
        let _ = writeln!(text, "    {from} fib daddr oifname \"{wan}\" meta mark set {OTHERS}");
    }
    text + "  }\n}\n"
}

/// Runs a program; what it wrote, or an error with what it complained of.
fn execute(words: &[&str], input: &str) -> Result<String> {
    let line = words.join(" ");
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().or_fail(|| format!("run `{line}`"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).or_fail(|| format!("run `{line}`"))?;
    }
    let output = child.wait_with_output().or_fail(|| format!("run `{line}`"))?;
    if !output.status.success() {
        return Err(Error::Failed(format!("`{line}`: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The commands that add or delete rules and routes, for both families.
fn routing(verb: &str) -> Vec<String> {
    let commands = |family: &str| {
        let route = format!("ip {family} route {verb} local default dev lo table {LOCAL}");
        let rule = format!("ip {family} rule {verb} fwmark {MARK} lookup {LOCAL} priority {LOCAL}");
        [rule, route]
    };
    ["-4", "-6"].into_iter().flat_map(commands).collect()
}

fn route(verb: &str) -> Result<()> {
    for command in routing(verb) {
        let done = execute(&command.split_whitespace().collect::<Vec<_>>(), "");
        match done {
            Err(error) if verb == "add" && !Path::new("/proc/sys/net/ipv6").exists() && command.contains("-6") => {
                tracing::info!(%error, "no IPv6");
            }
            Err(error) if verb == "add" => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Sets the kernel up; removes first what an earlier run has left.
pub fn up(config: &Config) -> Result<()> {
    down(config)?;
    let folder = config.status.parent().unwrap_or(Path::new("/run"));
    fs::create_dir_all(folder).or_fail(|| format!("make the folder {}", folder.display()))?;
    let mut before = String::new();
    for (name, _) in SYSCTLS {
        if let Ok(value) = fs::read_to_string(Path::new("/proc/sys").join(name)) {
            let _ = writeln!(before, "{name} {}", value.trim());
        }
    }
    let state = folder.join(STATE);
    fs::write(&state, before).or_fail(|| format!("write {}", state.display()))?;
    let done = set_up(config);
    if done.is_err() {
        down(config)?;
    }
    done
}

/// The interface, rules and routes of other packets.
fn share() -> Result<()> {
    let commands = [
        format!("ip tuntap add dev {TUN} mode tun"),
        format!("ip link set {TUN} up"),
        format!("ip -4 route add default dev {TUN} table {SHARED}"),
        format!("ip -4 rule add fwmark {OTHERS} lookup {SHARED} priority {SHARED}"),
    ];
    for command in commands {
        execute(&command.split_whitespace().collect::<Vec<_>>(), "")?;
    }
    for command in [
        format!("ip -6 route add default dev {TUN} table {SHARED}"),
        format!("ip -6 rule add fwmark {OTHERS} lookup {SHARED} priority {SHARED}"),
    ] {
        if let Err(error) = execute(&command.split_whitespace().collect::<Vec<_>>(), "") {
            tracing::info!(%error, "no IPv6");
        }
    }
    Ok(())
}

/// Removes them; what is not there is no error.
fn unshare() {
    for command in [
        format!("ip -4 rule del fwmark {OTHERS} lookup {SHARED} priority {SHARED}"),
        format!("ip -6 rule del fwmark {OTHERS} lookup {SHARED} priority {SHARED}"),
        format!("ip link del {TUN}"),
    ] {
        let _ = execute(&command.split_whitespace().collect::<Vec<_>>(), "");
    }
}

fn set_up(config: &Config) -> Result<()> {
    for (name, value) in SYSCTLS {
        let path = Path::new("/proc/sys").join(name);
        if path.exists() {
            fs::write(&path, value).or_fail(|| format!("write {}", path.display()))?;
        }
    }
    route("add")?;
    if config.wan.shares().is_some() {
        share()?;
    }
    execute(&["nft", "-f", "-"], &rules(config)).map(drop)
}

/// Restores what was before [`up`].
pub fn down(config: &Config) -> Result<()> {
    execute(&["nft", "-f", "-"], &format!("table inet {TABLE}\ndelete table inet {TABLE}\n"))?;
    route("del")?;
    unshare();
    let folder = config.status.parent().unwrap_or(Path::new("/run"));
    let state = folder.join(STATE);
    let Ok(before) = fs::read_to_string(&state) else { return Ok(()) };
    for line in before.lines() {
        if let Some((name, value)) = line.split_once(' ')
            && SYSCTLS.iter().any(|(known, _)| *known == name)
        {
            let path = Path::new("/proc/sys").join(name);
            fs::write(&path, value).or_fail(|| format!("restore {}", path.display()))?;
        }
    }
    fs::remove_file(&state).or_fail(|| format!("remove {}", state.display()))
}
