//! What may be a mistake in the configuration but need not be, at this machine and now: a name may be resolved later, and an
//! interface may appear.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use explicate_core::units::Rate;

use super::config::{Config, Limits, Peer};
use super::mistake::Mistake;
use super::network::Network;
use super::{credit, destinations};
use crate::sys;

/// Where the kernel has its interfaces.
const INTERFACES: &str = "/sys/class/net";
/// How long the resolver may take for all names together: a service starts in that time even where no server answers.
const RESOLVING: Duration = Duration::from_secs(5);
/// The kind of a loopback interface (ARPHRD_LOOPBACK of linux/if_arp.h).
const LOOPBACK: u32 = 772;

/// All of them, each behind its place in the file.
pub fn warnings(config: &Config) -> Vec<String> {
    let mut found = of_interfaces(config, Path::new(INTERFACES));
    found.extend(of_rates(config, Path::new(INTERFACES)));
    found.extend(of_sockets(config));
    found.extend(of_source(config));
    for (index, resolved) in resolve(&config.peers, RESOLVING).into_iter().enumerate() {
        found.extend(of_peer(config, index, resolved));
    }
    found.extend(of_limits(config));
    found.extend(of_networks(config));
    found.into_iter().map(|mistake| config.located(mistake)).collect()
}

/// A number that the kernel tells of an interface.
fn number(interfaces: &Path, name: &str, what: &str) -> Option<u32> {
    fs::read_to_string(interfaces.join(name).join(what)).ok()?.trim().parse().ok()
}

/// Interfaces that are not there, that are down, or that lead nowhere else.
fn of_interfaces(config: &Config, interfaces: &Path) -> Vec<Mistake> {
    let of_site = config.site.interfaces.iter().enumerate();
    let of_site = of_site.map(|(index, name)| (format!("site.interfaces.{index}"), "site.interfaces", name));
    let of_wan = config.wan.interface.iter().map(|name| ("wan.interface".to_string(), "wan.interface", name));
    let of = |(place, key, name): (String, &str, &String)| {
        let what = if !interfaces.join(name).exists() {
            format!("there is no interface `{name}` now; `ip link` lists them")
        } else if number(interfaces, name, "type") == Some(LOOPBACK) {
            format!("`{name}` is the loopback, by which no other machine is reached; `ip link` lists the others")
        } else if is_down(interfaces, name) {
            format!("`{name}` is down now, or has no cable; `ip link set {name} up` sets it up")
        } else {
            return None;
        };
        Some(Mistake::at(place, what).of(key))
    };
    of_site.chain(of_wan).filter_map(of).collect()
}

fn is_down(interfaces: &Path, name: &str) -> bool {
    fs::read_to_string(interfaces.join(name).join("operstate")).is_ok_and(|state| state.trim() == "down")
}

/// Warns of a rate above the speed of the interface to the peers, if the kernel knows that speed, and of a floor above the rate.
fn of_rates(config: &Config, interfaces: &Path) -> Vec<Mistake> {
    let wan = &config.wan;
    let floor = wan.capacity.as_ref().map(|source| source.floor.0);
    let of_interface = || {
        let name = wan.interface.as_ref()?;
        // In Mbit/s; an error, or -1, where it is unknown (Documentation/ABI/testing/sysfs-class-net).
        let speed = number(interfaces, name, "speed").filter(|speed| (1..10_000_000).contains(speed))?;
        Some((name, Rate::mbps(speed as u64)))
    };
    let mut found = Vec::new();
    if let Some((name, speed)) = of_interface() {
        let rates = [("wan.rate", wan.rate.map(|rate| rate.0)), ("wan.capacity.floor", floor)];
        for (key, rate) in rates.into_iter().filter_map(|(key, rate)| Some((key, rate?))).filter(|(_, r)| *r > speed) {
            let message = format!(
                "{} is more than the {} of interface `{name}`; write what the path carries, at most \"{}Mbit/s\"",
                mbps(rate),
                mbps(speed),
                speed.0 / 1_000_000
            );
            found.push(Mistake::at(key, message).or_at("wan.capacity").of(key));
        }
    }
    if let (Some(rate), Some(floor)) = (wan.rate, floor)
        && floor > rate.0
    {
        let message = format!(
            "{} is more than `rate`, {}: a source that fails would raise the rate; write a floor below it",
            mbps(floor),
            mbps(rate.0)
        );
        found.push(Mistake::at("wan.capacity.floor", message).or_at("wan.capacity").of("wan.capacity.floor"));
    }
    found
}

fn mbps(rate: Rate) -> String {
    format!("{} Mbit/s", rate.0 as f64 / 1e6)
}

/// Networks that peers do not reach here, and those that no host can be in.
fn of_networks(config: &Config) -> Vec<Mistake> {
    let own = config.site.networks.iter().enumerate();
    let denied = own.filter_map(|(index, network)| {
        let kind = destinations::denied(network.address, &config.site.allow)?;
        let message = format!("{network} is denied to peers ({kind}); allow = [\"{network}\"] allows it");
        Some(Mistake::at(format!("site.networks.{index}"), message).of("site.networks"))
    });
    let of_peer = |(index, peer): (usize, &Peer)| {
        let network: Option<&Network> = peer.networks.iter().find(|network| network.address.is_loopback());
        let message = format!("{} is the loopback, by which each host reaches itself; leave it out", network?);
        Some(config.of_peer(index, "networks", message))
    };
    denied.chain(config.peers.iter().enumerate().filter_map(of_peer)).collect()
}

/// Connections that find no credit.
fn of_limits(config: &Config) -> Option<Mistake> {
    let (Limits { connections, peer_bytes, .. }, room) = (config.limits, credit::most_connections(config.limits));
    if room >= connections as u64 {
        return None;
    }
    let message = format!(
        "`peer_bytes` = {peer_bytes} has room for {room} connections with a peer, and `connections` is {connections}: raise \
         `peer_bytes`, or lower `connections`"
    );
    Some(Mistake::at("limits.peer_bytes", message).or_at("limits.connections").of("limits"))
}

/// Addresses of sockets that this machine does not have, and a tunnel that no other machine reaches.
fn of_sockets(config: &Config) -> Vec<Mistake> {
    let all = [("listen", Some(config.listen)), ("metrics", config.metrics)];
    let sockets = all.into_iter().filter_map(|(key, address)| Some((key, address?)));
    let strange = |(key, address): (&'static str, SocketAddr)| {
        let ip = address.ip();
        if ip.is_unspecified() || is_own(ip) {
            return None;
        }
        let message = format!("{ip} is no address of this machine now; `ip address` lists them");
        Some(Mistake::at(key, message).of(key))
    };
    let mut found: Vec<Mistake> = sockets.filter_map(strange).collect();
    if config.listen.ip().to_canonical().is_loopback() {
        let port = config.listen.port();
        let message = format!("the loopback is reached by no other machine; write listen = \"[::]:{port}\"");
        found.push(Mistake::at("listen", message).of("listen"));
    }
    found
}

fn is_own(address: IpAddr) -> bool {
    destinations::is_own(address.to_canonical())
}

/// A source of the rate that is not there.
fn of_source(config: &Config) -> Vec<Mistake> {
    let Some(source) = &config.wan.capacity else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(file) = source.file.as_ref().filter(|file| !file.exists()) {
        let message = format!("there is no file `{}` now: the source fails until there is", file.display());
        found.push(("wan.capacity.file", message));
    }
    if let Some(program) = source.command.as_ref().and_then(|command| command.first())
        && !is_program(program)
    {
        let message = format!("there is no program `{program}` now; write its whole path");
        found.push(("wan.capacity.command", message));
    }
    found.into_iter().map(|(key, message)| Mistake::at(key, message).or_at("wan.capacity").of(key)).collect()
}

fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// What the resolver says of each peer's address; `None` within if it has not answered in time, or has none.
fn resolve(peers: &[Peer], within: Duration) -> Vec<Option<SocketAddr>> {
    let (said, answers) = mpsc::channel();
    for (index, peer) in peers.iter().enumerate().filter(|(_, peer)| peer.address.is_some()) {
        let (said, peer) = (said.clone(), peer.clone());
        // A query that is still under way when the program ends is given up.
        thread::spawn(move || said.send((index, peer.resolve())));
    }
    drop(said);
    let (mut all, until) = (vec![None; peers.len()], sys::monotonic() + within.as_nanos() as u64);
    let left = || Duration::from_nanos(until.saturating_sub(sys::monotonic()));
    while let Ok((index, resolved)) = answers.recv_timeout(left()) {
        all[index] = resolved;
    }
    all
}

/// What the address of a peer leads to.
fn of_peer(config: &Config, index: usize, resolved: Option<SocketAddr>) -> Option<Mistake> {
    let peer = &config.peers[index];
    let address = peer.address.as_ref()?;
    let port = config.listen.port();
    let message = match resolved {
        None => format!("`{address}` has no address now; `getent hosts` asks for one"),
        Some(to) if to.is_ipv6() && config.listen.is_ipv4() => {
            format!("`{address}` is {to}, and `listen` has IPv4 only; write listen = \"[::]:{port}\" for both")
        }
        Some(to) if to.ip().to_canonical().is_loopback() => {
            format!("`{address}` is {to}, the loopback: a machine reaches itself there; write the peer's address")
        }
        Some(to) if is_own(to.ip()) => {
            format!("`{address}` is {to}, an address of this machine itself; write the peer's address")
        }
        Some(_) => return None,
    };
    Some(config.of_peer(index, "address", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(digit: char) -> String {
        format!("explicate-gateway-1:{}", String::from(digit).repeat(64))
    }

    /// A file whose lines 1 to 3 are those of the site, 4 and 5 those of the line, then peer `a` by an address, `b` without one.
    fn config(site: [&str; 2], wan: &str, address: &str) -> Config {
        let [one, two] = site;
        let (a, b) = (key('a'), key('b'));
        let text = format!(
            "[site]\n{one}\n{two}\n[wan]\n{wan}\n[[peer]]\nname = \"a\"\nkey = \"{a}\"\nnetworks = [\"10.9.0.0/16\"]\n\
             address = \"{address}\"\n[[peer]]\nname = \"b\"\nkey = \"{b}\"\nnetworks = [\"10.8.0.0/16\"]\n"
        );
        Config::parse(&text).unwrap()
    }
    /// What is said of it, without the lines of the file.
    fn said(config: &Config, found: Vec<Mistake>) -> Vec<String> {
        found.into_iter().map(|mistake| config.located(mistake).lines().next().unwrap_or("").to_string()).collect()
    }

    /// A kernel's folder of interfaces.
    struct Interfaces(std::path::PathBuf);
    impl Interfaces {
        fn new(name: &str, all: &[(&str, &[(&str, &str)])]) -> Interfaces {
            let root = std::env::temp_dir().join(format!("explicate-interfaces-{name}-{}", std::process::id()));
            for (interface, files) in all {
                fs::create_dir_all(root.join(interface)).unwrap();
                files.iter().for_each(|(file, text)| fs::write(root.join(interface).join(file), text).unwrap());
            }
            Interfaces(root)
        }
    }
    impl Drop for Interfaces {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn interfaces_that_lead_nowhere_are_named_with_their_place() {
        let all: [(&str, &[(&str, &str)]); 3] = [
            ("lo", &[("type", "772\n")]),
            ("eth1", &[("type", "1\n"), ("operstate", "up\n")]),
            ("eth2", &[("type", "1\n"), ("operstate", "down\n")]),
        ];
        let kernel = Interfaces::new("names", &all);
        let config =
            config(["interfaces = [\"lo\", \"eth1\", \"eth2\", \"eth77\"]", ""], "interface = \"eth9\"", "192.0.2.9:1");
        let wanted = [
            "gateway.toml:2:15: site.interfaces: `lo` is the loopback, by which no other machine is reached; `ip link` lists the others",
            "gateway.toml:2:29: site.interfaces: `eth2` is down now, or has no cable; `ip link set eth2 up` sets it up",
            "gateway.toml:2:37: site.interfaces: there is no interface `eth77` now; `ip link` lists them",
            "gateway.toml:5:13: wan.interface: there is no interface `eth9` now; `ip link` lists them",
        ];
        assert_eq!(said(&config, of_interfaces(&config, &kernel.0)), wanted);
    }

    /// The kernel tells Mbit/s, -1 of what is down, and nothing of some drivers.
    #[test]
    fn a_rate_beyond_its_interface_is_named() {
        let all: [(&str, &[(&str, &str)]); 3] =
            [("eth0", &[("speed", "100\n")]), ("eth1", &[("speed", "-1\n")]), ("eth2", &[])];
        let kernel = Interfaces::new("speeds", &all);
        let of = |wan: &str| {
            let config = config(["", ""], wan, "192.0.2.9:1");
            said(&config, of_rates(&config, &kernel.0))
        };
        assert_eq!(
            of("rate = \"200Mbit/s\"\ninterface = \"eth0\""),
            [
                "gateway.toml:5:8: wan.rate: 200 Mbit/s is more than the 100 Mbit/s of interface `eth0`; write what the path carries, at \
              most \"100Mbit/s\""
            ]
        );
        let floor = "rate = \"20Mbit/s\"\ninterface = \"eth0\"\ncapacity = { file = \"/x\", floor = \"120Mbit/s\" }";
        let found = of(floor);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("gateway.toml:7:35: wan.capacity.floor: 120 Mbit/s is more than the 100 Mbit/s"));
        assert!(found[1].contains("120 Mbit/s is more than `rate`, 20 Mbit/s"), "{found:?}");
        for good in ["rate = \"100Mbit/s\"\ninterface = \"eth0\"", "interface = \"eth0\"", "rate = \"1Gbit/s\""] {
            assert!(of(good).is_empty(), "{good}");
        }
        for unknown in ["eth1", "eth2", "eth3"] {
            assert!(of(&format!("rate = \"1Gbit/s\"\ninterface = \"{unknown}\"")).is_empty(), "{unknown}");
        }
    }

    #[test]
    fn limits_that_contradict_each_other_are_named() {
        let of = |limits: &str| {
            let config = config(["", ""], &format!("[limits]\n{limits}"), "192.0.2.9:1");
            said(&config, of_limits(&config).into_iter().collect())
        };
        assert!(of("").is_empty() && of("connections = 16384").is_empty());
        assert_eq!(
            of("peer_bytes = 16777216"),
            [
                "gateway.toml:6:14: limits: `peer_bytes` = 16777216 has room for 1024 connections with a peer, and `connections` is 4096: \
              raise `peer_bytes`, or lower `connections`"
            ]
        );
        assert!(
            of("connections = 16385")[0].starts_with("gateway.toml:6:15: limits: `peer_bytes` = 268435456 has room")
        );
    }

    #[test]
    fn names_without_an_address_and_addresses_of_this_machine_are_named() {
        let of = |address: &str, resolved: Option<&str>| {
            let config = config(["", ""], "", address);
            let mistake = of_peer(&config, 0, resolved.map(|address| address.parse().unwrap()));
            said(&config, mistake.into_iter().collect())
        };
        assert_eq!(
            of("a.invalid:49407", None),
            ["gateway.toml:10:11: peer `a`: `a.invalid:49407` has no address now; `getent hosts` asks for one"]
        );
        assert!(of("me:1", Some("127.0.0.1:1"))[0].contains("the loopback: a machine reaches itself there"));
        assert!(of("me:1", Some("[::ffff:127.0.0.1]:1"))[0].contains("the loopback"));
        assert!(of("hub:1", Some("192.0.2.77:1")).is_empty() && of("hub:1", Some("[2001:db8::9]:1")).is_empty());
        let peers = &config(["", ""], "", "127.0.0.1:7").peers;
        assert_eq!(resolve(peers, Duration::from_secs(60)), [Some("127.0.0.1:7".parse().unwrap()), None]);
        assert_eq!(resolve(peers, Duration::ZERO).len(), 2, "no time, no answer");
    }

    #[test]
    fn sockets_networks_and_sources_that_are_not_there_are_named() {
        let sockets = |top: &str| {
            let text = format!(
                "{top}\n[site]\n[[peer]]\nname = \"a\"\nkey = \"{}\"\nnetworks = [\"10.9.0.0/16\"]\n",
                key('a')
            );
            let config = Config::parse(&text).unwrap();
            said(&config, of_sockets(&config))
        };
        assert!(
            sockets("listen = \"192.0.2.77:49407\"")[0]
                .starts_with("gateway.toml:1:10: listen: 192.0.2.77 is no address")
        );
        assert!(
            sockets("metrics = \"192.0.2.77:9111\"")[0].starts_with("gateway.toml:1:11: metrics: 192.0.2.77 is no")
        );
        let loopback = sockets("listen = \"127.0.0.1:49407\"");
        assert_eq!(loopback.len(), 1);
        assert!(loopback[0].contains("reached by no other machine; write listen = \"[::]:49407\""), "{loopback:?}");
        assert!(sockets("metrics = \"127.0.0.1:9111\"").is_empty() && sockets("listen = \"0.0.0.0:7\"").is_empty());

        let source = |source: &str| {
            let config = config(
                ["", ""],
                &format!("rate = \"2Mbit/s\"\ncapacity = {{ {source}, floor = \"1Mbit/s\" }}"),
                "192.0.2.9:1",
            );
            said(&config, of_source(&config))
        };
        assert!(
            source("file = \"/no/such/file\"")[0].starts_with("gateway.toml:6:21: wan.capacity.file: there is no file")
        );
        assert!(source("command = [\"/no/such/program\"]")[0].contains("there is no program `/no/such/program` now"));
        assert!(source("command = [\"no-such-program-anywhere\"]")[0].contains("write its whole path"));
        assert!(source("command = [\"sh\", \"x\"]").is_empty() && source("measured = true").is_empty());

        let networks = |site: &str| {
            let config = config([site, ""], "", "192.0.2.9:1");
            said(&config, of_networks(&config))
        };
        assert_eq!(
            networks("networks = [\"10.2.0.0/16\", \"169.254.0.0/16\"]"),
            [
                "gateway.toml:2:28: site.networks: 169.254.0.0/16 is denied to peers (link-local, with metadata services); \
              allow = [\"169.254.0.0/16\"] allows it"
            ]
        );
        assert!(networks("networks = [\"169.254.0.0/16\"]\nallow = [\"169.254.0.0/16\"]").is_empty());
    }
}
