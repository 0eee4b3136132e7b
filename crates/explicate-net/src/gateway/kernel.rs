//! What the kernel has to do for a gateway: tables of nftables, two rules and routes, and what of it was there before.
//!
//! [`up`] adds what is missing and [`down`] removes what is there; both may be repeated, and `up` disturbs no connection of a
//! gateway that runs. All that is added has a name, number or mark of its own, so that `down` needs no record but that of changed
//! sysctls, in [`STATE`]: written before the first change, kept until `down` has restored them. Neither `down` nor what follows
//! a crash needs a configuration without mistakes.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::carried::{self, SYN};
use super::config::{Config, WhenDown};
use super::destinations::DENIED;
use super::network::Network;
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
/// Mark of packets to addresses that peers have told: their destinations are kept, and they are dropped.
pub const TOLD: u32 = 0x0e19;
/// How long such an address is kept, in units of nft, and how many of a family.
const KEPT: &str = "1m";
const MOST_TOLD: u32 = 1024;
/// The interface by which they come to the gateway.
pub const TUN: &str = "explicate0";
/// Values of sysctls before the change.
pub const STATE: &str = "gateway.sysctl";
/// The commands of nft that [`stopped`] runs, as the last [`up`] wrote them.
const STOPPED: &str = "gateway.stopped";
/// Sysctls that a gateway needs.
const SYSCTLS: [(&str, &str); 2] = [("net/ipv4/ip_forward", "1"), ("net/ipv6/conf/all/forwarding", "1")];

/// The MTU of an interface; that of Ethernet if it is unknown.
fn mtu(interface: &str) -> u32 {
    let read = fs::read_to_string(format!("/sys/class/net/{interface}/mtu"));
    read.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1500)
}

/// A chain that lowers the segment size (MSS) of TCP connections that are routed by the line, not carried: in the direction of the
/// line to what its route bears, in the other one to what its interface bears.
fn clamp(interface: &str) -> String {
    let (syn, mtu) = ("tcp flags syn tcp option maxseg size set", mtu(interface));
    let (of_ipv4, of_ipv6) = (mtu.saturating_sub(40), mtu.saturating_sub(60));
    format!(
        "  chain forward {{\n    type filter hook forward priority mangle; policy accept;\n    \
         oifname {{ \"{interface}\", \"{TUN}\" }} {syn} rt mtu\n    \
         iifname \"{interface}\" meta nfproto ipv4 {syn} {of_ipv4}\n    \
         iifname \"{interface}\" meta nfproto ipv6 {syn} {of_ipv6}\n  }}\n"
    )
}

/// Names of a family in nft, and whether it is IPv6.
const FAMILIES: [(&str, bool); 2] = [("ip", false), ("ip6", true)];
/// How long a connection may take from its first segment to its second one, in units of nft.
const OPENING: &str = "10s";
/// Connections of a family that open at a time.
const MOST_OPENING: u32 = 65_536;

/// The networks of one family.
fn of_family<'a>(networks: impl IntoIterator<Item = &'a Network>, ipv6: bool) -> Vec<String> {
    networks.into_iter().filter(|n| n.address.is_ipv6() == ipv6).map(Network::to_string).collect()
}

/// A set of nft with these elements.
fn set_of(elements: &[String]) -> String {
    format!("{{ {} }}", elements.join(", "))
}

/// The commands of nft that set the tables up.
pub fn rules(config: &Config) -> String {
    let mut text = without_table() + &carried::table(true);
    let _ = writeln!(text, "table inet {TABLE} {{");
    for (family, kind) in [("ip", "ipv4"), ("ip6", "ipv6")] {
        let _ = writeln!(
            text,
            "  set opening_{family} {{\n    type {kind}_addr . inet_service . {kind}_addr . inet_service\n    \
             size {MOST_OPENING}; flags dynamic, timeout; timeout {OPENING};\n  }}"
        );
        let _ = writeln!(
            text,
            "  set told_{family} {{\n    type {kind}_addr\n    \
             size {MOST_TOLD}; flags dynamic, timeout; timeout {KEPT};\n  }}"
        );
    }
    let _ = writeln!(text, "  chain output {{\n    type filter hook output priority mangle; policy accept;");
    for (family, _) in FAMILIES {
        let _ = writeln!(text, "    meta mark {TOLD} update @told_{family} {{ {family} daddr }}");
    }
    let _ = writeln!(text, "    meta mark {TOLD} drop\n  }}");
    // Segments of connections that this host has in the name of others; the listener itself is none.
    let _ = writeln!(text, "  chain own {{\n    socket wildcard 1 return\n    meta mark set {MARK} accept\n  }}");
    let _ = writeln!(text, "  chain opens {{");
    for (family, _) in FAMILIES {
        let _ = writeln!(text, "    update @opening_{family} {{ {} }}", carried::ways(family)[0]);
    }
    let _ = writeln!(text, "    accept\n  }}\n  chain prerouting {{");
    let _ = writeln!(text, "    type filter hook prerouting priority mangle; policy accept;");
    let _ = writeln!(text, "    meta l4proto tcp {} socket transparent 1 jump own", SYN.replace("==", "!="));
    let quoted: Vec<String> = config.site.interfaces.iter().map(|name| format!("\"{name}\"")).collect();
    if !quoted.is_empty() {
        divert(config, &set_of(&quoted), &mut text);
    }
    if let Some(wan) = config.wan.shares().filter(|_| !quoted.is_empty()) {
        let _ = writeln!(text, "    iifname {} fib daddr oifname \"{wan}\" meta mark set {OTHERS}", set_of(&quoted));
    }
    text += "  }\n";
    text += &config.wan.interface.as_deref().map(clamp).unwrap_or_default();
    text + "}\n"
}

/// The rules that divert connections of the site: only what opens one. Where a listener's queue is full, the kernel keeps nothing of
/// a connection until its second segment (SYN cookies, RFC 4987 section 3.6): so the addresses and ports of the first one are kept here.
fn divert(config: &Config, interfaces: &str, text: &mut String) {
    let port = config.site.intercept_port;
    let from = format!("iifname {interfaces} meta l4proto tcp");
    let _ = writeln!(text, "    {from} fib daddr type {{ local, broadcast, multicast }} return");
    for (family, ipv6) in FAMILIES {
        let own = of_family(&config.site.networks, ipv6);
        if !own.is_empty() {
            let _ = writeln!(text, "    {from} {family} daddr {} return", set_of(&own));
        }
        let take = format!("tproxy {family} to :{port} meta mark set {MARK}");
        // The peers would deny these.
        let denied: Vec<String> = of_family(DENIED.iter().map(|(network, _)| network), ipv6);
        let networks = config.peers.iter().flat_map(|peer| &peer.networks).filter(|n| n.address.is_ipv6() == ipv6);
        for network in networks {
            let named = DENIED.iter().any(|(denied, _)| network.is_within(denied));
            let but = if named { String::new() } else { format!(" {family} daddr != {}", set_of(&denied)) };
            let opens = format!("{from} {family} daddr {network}{but} {family} daddr != @told_{family} {SYN}");
            // Without a listener the first rule does not match.
            let _ = writeln!(text, "    {opens} {take} goto opens");
            if config.site.when_down == WhenDown::Reset {
                let _ = writeln!(text, "    {opens} reject with tcp reset");
            }
        }
        let _ = writeln!(text, "    {from} {} @opening_{family} {take} accept", carried::ways(family)[0]);
    }
}

/// The commands of nft that remove the table, if there is one.
fn without_table() -> String {
    format!("table inet {TABLE}\ndelete table inet {TABLE}\n")
}

/// The commands of nft for a gateway that does not run and has `when_down = "reset"`: the site opens no TCP connection to networks
/// of peers.
fn closed(config: &Config) -> String {
    let mut text = without_table();
    let _ = writeln!(text, "table inet {TABLE} {{\n  chain forward {{");
    let _ = writeln!(text, "    type filter hook forward priority mangle; policy accept;");
    for network in config.peers.iter().flat_map(|peer| &peer.networks) {
        let family = if network.address.is_ipv6() { "ip6" } else { "ip" };
        for interface in &config.site.interfaces {
            let _ = writeln!(
                text,
                "    iifname \"{interface}\" meta l4proto tcp {family} daddr {network} {SYN} reject with tcp reset"
            );
        }
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

/// Runs a command of iproute2 whose arguments have no spaces.
fn ip(command: &str) -> Result<()> {
    execute(&command.split_whitespace().collect::<Vec<_>>(), "").map(drop)
}

/// Adds a rule and the default route of its table for packets with a mark, for both families.
fn steer(config: &Config, mark: u32, table: u32, route: &str) -> Result<()> {
    for family in ["-4", "-6"] {
        let rule = match ip(&format!("ip {family} rule add fwmark {mark} lookup {table} priority {table}")) {
            Err(error) if error.to_string().contains("File exists") => Ok(()),
            other => other,
        };
        match rule.and_then(|()| ip(&format!("ip {family} route replace {route} table {table}"))) {
            Err(error) if family == "-6" && !config.has_ipv6() => tracing::info!(%error, "no IPv6"),
            done => done?,
        }
    }
    Ok(())
}

/// Removes them; what is not there is no error.
fn unsteer(mark: u32, table: u32) {
    for family in ["-4", "-6"] {
        let _ = ip(&format!("ip {family} rule del fwmark {mark} lookup {table} priority {table}"));
        let _ = ip(&format!("ip {family} route flush table {table}"));
    }
}

/// The interface, rules and routes of other packets.
fn share(config: &Config) -> Result<()> {
    let device = Path::new("/sys/class/net").join(TUN);
    if !device.exists() {
        ip(&format!("ip tuntap add dev {TUN} mode tun"))?;
    }
    ip(&format!("ip link set {TUN} up mtu {}", mtu(config.wan.shares().unwrap_or_default())))?;
    // While no program has it open, it has no carrier, and what it would get is routed past it.
    for family in ["ipv4", "ipv6"] {
        let _ = fs::write(format!("/proc/sys/net/{family}/conf/{TUN}/ignore_routes_with_linkdown"), "1");
    }
    steer(config, OTHERS, SHARED, &format!("default dev {TUN}"))
}

/// Removes them.
fn unshare() {
    unsteer(OTHERS, SHARED);
    let _ = ip(&format!("ip link del {TUN}"));
}

/// Writes the sysctls down, unless an earlier [`up`] has. Returns whether it did.
fn record(state: &Path) -> Result<bool> {
    if state.exists() {
        return Ok(false);
    }
    let mut before = String::new();
    for (name, _) in SYSCTLS {
        if let Ok(value) = fs::read_to_string(Path::new("/proc/sys").join(name)) {
            let _ = writeln!(before, "{name} {}", value.trim());
        }
    }
    write(state, &before)?;
    Ok(true)
}

/// Writes a file, which appears whole or not at all.
fn write(path: &Path, text: &str) -> Result<()> {
    let what = || format!("write {}", path.display());
    let part = path.with_extension("part");
    fs::create_dir_all(part.parent().unwrap_or(Path::new("/"))).or_fail(what)?;
    // A crash may have left it; a symbolic link must not be followed.
    let _ = fs::remove_file(&part);
    let mut file = File::options().write(true).create_new(true).open(&part).or_fail(what)?;
    file.write_all(text.as_bytes()).and_then(|()| fs::rename(&part, path)).or_fail(what)
}

/// Sets the kernel up. If that fails, what an earlier `up` has set up for a gateway that runs stays.
pub fn up(config: &Config) -> Result<()> {
    let folder = folder(&config.status);
    let first = record(&folder.join(STATE))?;
    let closes = if config.site.when_down == WhenDown::Reset { closed(config) } else { without_table() };
    write(&folder.join(STOPPED), &closes)?;
    let done = set_up(config);
    if done.is_err() && first {
        restore(folder)?;
    }
    done
}

fn set_up(config: &Config) -> Result<()> {
    for (name, value) in SYSCTLS {
        let path = Path::new("/proc/sys").join(name);
        if path.exists() {
            fs::write(&path, value).or_fail(|| format!("write {}", path.display()))?;
        }
    }
    steer(config, MARK, LOCAL, "local default dev lo")?;
    match config.wan.shares() {
        Some(_) => share(config)?,
        None => unshare(),
    }
    execute(&["nft", "-f", "-"], &rules(config)).map(drop)
}

/// The folder of the records: that of the socket `status`.
fn folder(status: &Path) -> &Path {
    status.parent().unwrap_or(Path::new("/run"))
}

/// What a service does when it has ended, also by a crash: [`down`], but that with `when_down = "reset"` connections to networks of
/// peers are refused until the next [`up`] or [`down`].
pub fn stopped(status: &Path) -> Result<usize> {
    let remembered = restore(folder(status))?;
    if let Ok(commands) = fs::read_to_string(folder(status).join(STOPPED)) {
        execute(&["nft", "-f", "-"], &commands)?;
    }
    Ok(remembered)
}

/// Restores what was before [`up`], given the socket of its configuration, but for the table of connections that it still has to
/// remember (see [`carried`]): returns how many.
pub fn down(status: &Path) -> Result<usize> {
    let _ = fs::remove_file(folder(status).join(STOPPED));
    restore(folder(status))
}

/// Removes the table of carried connections, unless it remembers some; returns how many.
fn forget() -> Result<usize> {
    let listed = execute(&["nft", "list", "table", "inet", carried::TABLE], "").unwrap_or_default();
    let remembered = carried::count(&listed);
    let commands = if remembered == 0 { carried::without_table() } else { carried::table(false) };
    execute(&["nft", "-f", "-"], &commands)?;
    Ok(remembered)
}

fn restore(folder: &Path) -> Result<usize> {
    execute(&["nft", "-f", "-"], &without_table())?;
    let remembered = forget()?;
    unsteer(MARK, LOCAL);
    unshare();
    let state = folder.join(STATE);
    let Ok(before) = fs::read_to_string(&state) else { return Ok(remembered) };
    for line in before.lines() {
        if let Some((name, value)) = line.split_once(' ')
            && SYSCTLS.iter().any(|(known, _)| *known == name)
        {
            let path = Path::new("/proc/sys").join(name);
            fs::write(&path, value).or_fail(|| format!("restore {}", path.display()))?;
        }
    }
    fs::remove_file(&state).or_fail(|| format!("remove {}", state.display()))?;
    Ok(remembered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_of_the_sysctls_stays() {
        let state = std::env::temp_dir().join(format!("explicate-kernel-{}", std::process::id())).join(STATE);
        record(&state).unwrap();
        let first = fs::read_to_string(&state).unwrap();
        assert!(first.contains("net/ipv4/ip_forward "), "{first}");
        fs::write(&state, "net/ipv4/ip_forward 7\n").unwrap();
        record(&state).unwrap();
        assert_eq!(fs::read_to_string(&state).unwrap(), "net/ipv4/ip_forward 7\n");
        fs::remove_dir_all(state.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_link_in_place_of_the_record_is_not_followed() {
        let folder = std::env::temp_dir().join(format!("explicate-kernel-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (state, other) = (folder.join(STATE), folder.join("other"));
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, state.with_extension("part")).unwrap();
        record(&state).unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        assert!(fs::read_to_string(&state).unwrap().contains("net/ipv4/ip_forward "));
        fs::remove_dir_all(folder).unwrap();
    }
}
