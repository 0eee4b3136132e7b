//! `gateway.toml`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use explicate_core::guard::AIR_LOSS;
use explicate_core::presets::{DEFAULT_EXPLICIT, DEFAULT_TCP};
use explicate_core::registry;
use explicate_core::wire::UDP_PORT;
use serde::{Deserialize, Deserializer, de};

use super::controller::ControllerConfig;
use super::credit;
use super::destinations;
use super::identity::PublicKey;
use super::network::{Network, longest};
use super::source::{LineRate, Source};
use crate::address::{resolve, split};
use crate::error::{Error, Result};

/// The file, see docs/gateway.md.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// File of this gateway's key.
    #[serde(default = "default_key")]
    pub key: PathBuf,
    /// Address of the tunnel.
    #[serde(default = "default_listen", deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Where metrics for Prometheus are served.
    #[serde(default, deserialize_with = "some_address")]
    pub metrics: Option<SocketAddr>,
    /// Socket of `explicated gateway status`.
    #[serde(default = "default_status")]
    pub status: PathBuf,
    /// The site behind this gateway.
    pub site: Site,
    /// The line to the peers.
    #[serde(default)]
    pub wan: Wan,
    /// Limits of memory.
    #[serde(default)]
    pub limits: Limits,
    /// Other gateways.
    #[serde(rename = "peer", default)]
    pub peers: Vec<Peer>,
}

fn address<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<SocketAddr, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || de::Error::custom(format!("`{text}` is no address with a port; write it like \"127.0.0.1:9111\""));
    text.parse().map_err(|_| wrong())
}
fn some_address<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<SocketAddr>, D::Error> {
    address(from).map(Some)
}
fn default_key() -> PathBuf {
    "/etc/explicated/gateway.key".into()
}
fn default_listen() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], UDP_PORT))
}
fn default_status() -> PathBuf {
    "/run/explicated/gateway.sock".into()
}
fn default_intercept() -> u16 {
    49_409
}

/// The hosts behind this gateway.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Interfaces to them; none at a gateway that only answers.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// Their networks.
    #[serde(default)]
    pub networks: Vec<Network>,
    /// Destinations that peers reach although they are denied by default (see [`destinations`]).
    #[serde(default)]
    pub allow: Vec<Network>,
    /// Port of the listener that intercepted connections come to.
    #[serde(default = "default_intercept")]
    pub intercept_port: u16,
    /// Carry connections between peers, at a hub.
    #[serde(default)]
    pub between_peers: bool,
    /// Source address of connections that are opened for clients of peers.
    #[serde(default)]
    pub client_address: ClientAddress,
    /// What becomes of new connections while the peer cannot be reached.
    #[serde(default)]
    pub when_down: WhenDown,
}

/// The longest name of an interface (IFNAMSIZ in linux/if.h, less the byte behind it).
const LONGEST_NAME: usize = 15;

/// Whether the kernel has interfaces of such a name, and nftables and `ip` can write it.
fn check_interface(name: &str) -> std::result::Result<(), String> {
    let good = |c: char| c.is_ascii_graphic() && !"/:\"\\*".contains(c);
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(good) && ![".", ".."].contains(&name) {
        return Ok(());
    }
    Err(format!("`{name}` is no name of an interface; `ip link` lists them"))
}

impl Site {
    fn check(&self) -> std::result::Result<(), String> {
        if self.intercept_port == 0 {
            return Err("`intercept_port` is a port from 1 to 65535".to_string());
        }
        self.interfaces.iter().try_for_each(|name| check_interface(name))
    }
}

/// The line to the peers.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Wan {
    /// Rate at which this gateway may send; without it nothing is shaped, and TCP's law moves the windows.
    pub rate: Option<LineRate>,
    /// Interface to the peers. With it, and a rate, other packets of the site that leave by it go through the same port.
    pub interface: Option<String>,
    /// Where the rate comes from while the gateway runs.
    pub capacity: Option<Source>,
    /// The protocol of the core that moves the windows.
    pub protocol: String,
    /// Share of the datagrams that the air may lose beyond what parity repairs: no sign of a narrower line.
    pub air_loss: f64,
    /// Repair one or two losses of 40 datagrams without a round trip, for two datagrams more.
    pub parity: bool,
}

impl Default for Wan {
    fn default() -> Wan {
        let (protocol, air_loss) = (DEFAULT_EXPLICIT.to_string(), AIR_LOSS);
        Wan { rate: None, interface: None, capacity: None, protocol, air_loss, parity: true }
    }
}

impl Wan {
    /// The interface to the peers, if other packets go through the port.
    pub fn shares(&self) -> Option<&str> {
        self.rate.and(self.interface.as_deref())
    }
    /// The laws of the windows; [`Config::load`] has checked the protocol.
    pub fn controller_config(&self) -> Option<ControllerConfig> {
        let protocol = registry::protocol(if self.rate.is_some() { &self.protocol } else { DEFAULT_TCP })?;
        Some(ControllerConfig::new(protocol, self.air_loss))
    }
    fn check(&self, site: &Site) -> std::result::Result<(), String> {
        if let Some(interface) = &self.interface {
            check_interface(interface)?;
            if site.interfaces.contains(interface) {
                return Err(format!("`interface` is `{interface}`, which `site.interfaces` names, too"));
            }
        }
        let followed = || registry::protocols().filter(|protocol| ControllerConfig::can_follow(*protocol));
        if !followed().any(|protocol| protocol.name() == self.protocol) {
            let names: Vec<&str> = followed().map(|protocol| protocol.name()).collect();
            return Err(format!("`protocol` is one of {}, not `{}`", names.join(", "), self.protocol));
        }
        if !(0.0..=0.9).contains(&self.air_loss) {
            return Err(format!("`air_loss` is a share from 0 to 0.9, not {}", self.air_loss));
        }
        if let Some(source) = &self.capacity {
            source.check()?;
            if self.rate.is_none() {
                return Err("`capacity` needs a `rate` to begin with".to_string());
            }
        }
        Ok(())
    }
}

/// Source address of onward connections.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "lowercase")]
pub enum ClientAddress {
    /// The client's own.
    #[default]
    Keep,
    /// That of this gateway.
    Gateway,
}

/// What becomes of new connections while the peer cannot be reached.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "lowercase")]
pub enum WhenDown {
    /// The gateway connects to the destination itself.
    #[default]
    Direct,
    /// They are reset.
    Reset,
}

/// Limits of memory.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at a time.
    pub connections: u32,
    /// The most bytes of one connection that a peer may send before its host has taken them; without it an eighth of `peer_bytes`.
    pub connection_bytes: Option<u32>,
    /// The same for all connections with one peer ([`credit`](super::credit)); also the most that is kept of long transfers for repetition.
    pub peer_bytes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 4096, connection_bytes: None, peer_bytes: 256 << 20 }
    }
}

/// One connection may have this share of what all with a peer may have.
const SHARE: u32 = 8;

impl Limits {
    fn check(&self) -> std::result::Result<(), String> {
        if self.connections == 0 {
            return Err("`connections` is at least 1".to_string());
        }
        let least = SHARE * LEAST_BYTES;
        if self.peer_bytes < least {
            return Err(format!("`peer_bytes` is at least {least}"));
        }
        let Some(connection_bytes) = self.connection_bytes else { return Ok(()) };
        if connection_bytes < LEAST_BYTES {
            return Err(format!("`connection_bytes` is at least {LEAST_BYTES}"));
        }
        if connection_bytes > self.most_window() {
            return Err(format!(
                "`connection_bytes` is {connection_bytes}, and `peer_bytes` is {}: one connection has an eighth of that at most; leave \
                 `connection_bytes` out, or write `peer_bytes = {}`",
                self.peer_bytes,
                connection_bytes as u64 * SHARE as u64,
            ));
        }
        Ok(())
    }
    /// The most bytes that the window of a connection may have.
    pub fn most_window(&self) -> u32 {
        self.peer_bytes / SHARE
    }
}

/// The least `connection_bytes`: two blocks of a relay.
const LEAST_BYTES: u32 = 65_536;

/// Another gateway.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Name in messages and metrics.
    pub name: String,
    /// Its public line, from `explicated gateway keygen`.
    pub key: String,
    /// Where it is reached; without it this gateway waits until the peer connects.
    pub address: Option<String>,
    /// Networks behind it: connections from the site to them are carried, and clients there may connect to the site.
    pub networks: Vec<Network>,
}

/// The longest path of a socket, bytes (unix(7)).
const LONGEST_PATH: usize = 107;

impl Peer {
    /// Its public key, which [`Config::load`] has checked.
    pub fn public_key(&self) -> Option<PublicKey> {
        PublicKey::parse(&self.key)
    }
    /// Its address now.
    pub fn resolve(&self) -> Option<SocketAddr> {
        resolve(self.address.as_ref()?, UDP_PORT).ok()
    }
    /// Whether a socket at `listen` can send to its address, as far as that is a number.
    fn check_listen(&self, listen: SocketAddr) -> std::result::Result<(), String> {
        let Some((host, _)) = self.address.as_deref().and_then(split) else { return Ok(()) };
        let ipv6 = host.split('%').next().unwrap_or(host).parse::<IpAddr>().map(|address| address.is_ipv6());
        let port = listen.port();
        match ipv6 {
            Ok(true) if listen.is_ipv4() => Err(format!(
                "`address` is an IPv6 address, and `listen` = \"{listen}\" has IPv4 only; write listen = \"[::]:{port}\" for both"
            )),
            Ok(false) if listen.is_ipv6() && !listen.ip().is_unspecified() => Err(format!(
                "`address` is an IPv4 address, and `listen` = \"{listen}\" has IPv6 only; write listen = \"[::]:{port}\" for both"
            )),
            _ => Ok(()),
        }
    }
    /// What is wrong with it at this site, behind these peers.
    fn check(&self, site: &Site, before: &[Peer]) -> std::result::Result<(), String> {
        if self.public_key().is_none() {
            return Err("`key` is not the line that `explicated gateway keygen` prints".to_string());
        }
        if self.networks.is_empty() {
            return Err("`networks` is empty: nothing would be carried".to_string());
        }
        if self.name.is_empty() || before.iter().any(|other| other.name == self.name) {
            return Err("every peer needs a name of its own".to_string());
        }
        if self.name.chars().any(char::is_control) {
            return Err("the name has a control character, such as a line break".to_string());
        }
        if before.iter().any(|other| other.key.trim() == self.key.trim()) {
            return Err("another peer has the same key".to_string());
        }
        if self.address.as_ref().is_some_and(|address| !matches!(split(address), Some((_, Some(_))))) {
            return Err(format!(
                "`address` needs a host and a port, as in \"192.0.2.1:{UDP_PORT}\" or \"[fd00::1]:{UDP_PORT}\""
            ));
        }
        for network in &self.networks {
            if let Some(own) = site.networks.iter().find(|own| network.is_within(own)) {
                return Err(format!("{network} lies within {own} of `site.networks`: nothing would be carried to it"));
            }
            if let Some(other) = before.iter().find(|other| other.networks.contains(network)) {
                return Err(format!("{network} is a network of peer `{}`, too", other.name));
            }
        }
        Ok(())
    }
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Config> {
        let text =
            fs::read_to_string(path).map_err(|e| Error::Input(format!("cannot read {}: {e}", path.display())))?;
        Config::parse(&text).map_err(|message| Error::Input(format!("{}: {message}", path.display())))
    }

    /// Its `status`, where other keys may have mistakes; the default if the file has none or cannot be read.
    pub fn status_of(path: &Path) -> PathBuf {
        let text = fs::read_to_string(path).unwrap_or_default();
        let table: toml::Table = toml::from_str(&text).unwrap_or_default();
        table.get("status").and_then(toml::Value::as_str).map_or_else(default_status, PathBuf::from)
    }

    /// Reads and checks a text; the error says where and what to do.
    pub fn parse(text: &str) -> std::result::Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|e| e.to_string().trim_end().to_string())?;
        if config.peers.is_empty() {
            return Err("no [[peer]]: a gateway needs at least one".to_string());
        }
        if config.listen.port() == 0 {
            return Err("`listen` needs a port from 1 to 65535: peers have to know it".to_string());
        }
        if config.status.as_os_str().len() > LONGEST_PATH {
            return Err(format!("`status` is longer than {LONGEST_PATH} bytes, which no socket's path is"));
        }
        config.site.check().map_err(|message| format!("site: {message}"))?;
        config.wan.check(&config.site).map_err(|message| format!("wan: {message}"))?;
        config.limits.check().map_err(|message| format!("limits: {message}"))?;
        for (index, peer) in config.peers.iter().enumerate() {
            let checked =
                peer.check(&config.site, &config.peers[..index]).and_then(|()| peer.check_listen(config.listen));
            checked.map_err(|message| format!("peer `{}`: {message}", peer.name))?;
        }
        Ok(config)
    }
    /// Refuses a peer with the key of this gateway itself.
    pub fn check_own_key(&self, own: PublicKey) -> Result<()> {
        let Some(peer) = self.peers.iter().find(|peer| peer.public_key() == Some(own)) else { return Ok(()) };
        let message = format!("peer `{}`: `key` is the line of this gateway; it needs the line of the peer", peer.name);
        Err(Error::Input(message))
    }

    /// Keys whose change needs a restart, where they differ.
    pub fn fixed_changes(&self, other: &Config) -> Vec<&'static str> {
        let (site, wan) = ((&self.site, &other.site), (&self.wan, &other.wan));
        let differs = [
            ("key", self.key != other.key),
            ("listen", self.listen != other.listen),
            ("metrics", self.metrics != other.metrics),
            ("status", self.status != other.status),
            ("site.interfaces", site.0.interfaces.is_empty() != site.1.interfaces.is_empty()),
            ("site.intercept_port", site.0.intercept_port != site.1.intercept_port),
            ("wan.rate", wan.0.rate.is_some() != wan.1.rate.is_some()),
            ("wan.interface", wan.0.interface != wan.1.interface),
            ("wan.protocol", wan.0.protocol != wan.1.protocol),
            ("wan.air_loss", wan.0.air_loss != wan.1.air_loss),
            ("wan.parity", wan.0.parity != wan.1.parity),
            ("limits", self.limits != other.limits),
        ];
        differs.into_iter().filter(|(_, differ)| *differ).map(|(key, _)| key).collect()
    }
    /// Whether any network has IPv6 addresses.
    pub fn has_ipv6(&self) -> bool {
        let peers = self.peers.iter().flat_map(|peer| &peer.networks);
        self.site.networks.iter().chain(peers).any(|network| network.address.is_ipv6())
    }
    /// What may be a mistake but need not be, at this machine and now.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        let interfaces =
            [("site.interfaces", &self.site.interfaces[..]), ("wan.interface", self.wan.interface.as_slice())];
        for (key, name) in interfaces.iter().flat_map(|(key, names)| names.iter().map(move |name| (key, name))) {
            if !Path::new("/sys/class/net").join(name).exists() {
                found.push(format!("{key}: there is no interface `{name}` now; `ip link` lists them"));
            }
        }
        for peer in &self.peers {
            match (&peer.address, peer.resolve()) {
                (Some(address), None) => {
                    found.push(format!(
                        "peer `{}`: `{address}` has no address now; `getent hosts` asks for one",
                        peer.name
                    ));
                }
                (Some(address), Some(to)) if to.is_ipv6() && self.listen.is_ipv4() => found.push(format!(
                    "peer `{}`: `{address}` is {to}, and `listen` has IPv4 only; write listen = \"[::]:{}\" for both",
                    peer.name,
                    self.listen.port()
                )),
                _ => {}
            }
        }
        let (Limits { connections, peer_bytes, .. }, room) = (self.limits, credit::most_connections(self.limits));
        if room < connections as u64 {
            found.push(format!(
                "limits: `peer_bytes` = {peer_bytes} has room for {room} connections with a peer, and `connections` is {connections}"
            ));
        }
        for network in &self.site.networks {
            if let Some(kind) = destinations::denied(network.address, &self.site.allow) {
                found.push(format!(
                    "site.networks: {network} is denied to peers ({kind}); allow = [\"{network}\"] allows it"
                ));
            }
        }
        found
    }
    /// The peer behind which an address is.
    pub fn route(&self, address: IpAddr) -> Option<usize> {
        longest(self.peers.iter().enumerate().flat_map(|(i, p)| p.networks.iter().map(move |n| (i, n))), address)
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::units::Rate;

    use super::*;

    fn key(digit: char) -> String {
        format!("explicate-gateway-1:{}", String::from(digit).repeat(64))
    }

    fn text(more: &str) -> String {
        format!("[site]\n[[peer]]\nname = \"hub\"\nkey = \"{}\"\nnetworks = [\"0.0.0.0/0\"]\n{more}", key('a'))
    }

    #[test]
    fn the_most_specific_network_decides() {
        let more =
            format!("[[peer]]\nname = \"b\"\nkey = \"{}\"\nnetworks = [\"10.2.0.0/16\", \"fd00:2::/32\"]\n", key('b'));
        let config = Config::parse(&text(&more)).unwrap();
        let route = |address: &str| config.route(address.parse().unwrap()).map(|i| &config.peers[i].name[..]);
        assert_eq!(route("10.2.3.4"), Some("b"));
        assert_eq!(route("10.3.3.4"), Some("hub"));
        assert_eq!(route("fd00:2::1"), Some("b"));
        assert_eq!(route("fd00:3::1"), None);
        assert_eq!(config.wan.controller_config().map(|controller| controller.protocol.name()), Some(DEFAULT_TCP));
        let shaped = Config::parse(&text("[wan]\nrate = \"1.5Mbit/s\"\n")).unwrap().wan;
        assert_eq!(
            (shaped.rate, shaped.controller_config().map(|controller| controller.protocol.name())),
            (Some(LineRate(Rate(1_500_000))), Some(DEFAULT_EXPLICIT))
        );
    }

    #[test]
    fn a_reload_names_what_needs_a_restart() {
        let config = |more: &str| Config::parse(&text(more)).unwrap();
        let shaped = config("[wan]\nrate = \"2Mbit/s\"\n");
        assert!(shaped.fixed_changes(&config("[wan]\nrate = \"3Mbit/s\"\n")).is_empty());
        assert_eq!(shaped.fixed_changes(&config("[limits]\nconnections = 5\n")), ["wan.rate", "limits"]);
    }

    #[test]
    fn what_this_machine_does_not_have_is_a_warning() {
        let all = "[wan]\ninterface = \"eth9\"\n";
        let peer = format!(
            "[[peer]]\nname = \"b\"\nkey = \"{}\"\nnetworks = [\"10.9.0.0/16\"]\naddress = \"a.invalid:49407\"\n",
            key('b')
        );
        let site = "[site]\ninterfaces = [\"lo\", \"eth77\"]\nnetworks = [\"10.2.0.0/16\", \"169.254.0.0/16\"]\n";
        let warnings =
            |site: &str| Config::parse(&(text("").replace("[site]\n", site) + &peer + all)).unwrap().warnings();
        let found = warnings(site);
        let wanted = [
            "site.interfaces: there is no interface `eth77` now",
            "wan.interface: there is no interface `eth9` now",
            "peer `b`: `a.invalid:49407` has no address now",
            "site.networks: 169.254.0.0/16 is denied to peers (link-local, with metadata services); allow = [\"169.254.0.0/16\"]",
        ];
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(found.starts_with(wanted), "{found}");
        }
        assert_eq!(warnings(&format!("{site}allow = [\"169.254.0.0/16\"]\n")).len(), 3);
    }

    #[test]
    fn limits_that_contradict_each_other_are_a_warning() {
        let warnings = |limits: &str| Config::parse(&text(&format!("[limits]\n{limits}"))).unwrap().warnings();
        assert!(warnings("").is_empty() && warnings("connections = 16384\n").is_empty());
        let found = warnings("peer_bytes = 16777216\n");
        assert_eq!(
            found,
            ["limits: `peer_bytes` = 16777216 has room for 1024 connections with a peer, and `connections` is 4096"]
        );
    }

    /// serde names the keys of a table in the message of an unknown one.
    #[test]
    fn every_key_is_in_the_documentation() {
        const PAGE: &str = include_str!("../../../../docs/gateway.md");
        let tables = ["", "[site]", "[wan]", "[limits]", "[[peer]]", "[wan.capacity]"];
        let counts = tables.map(|table| {
            let message = Config::parse(&format!("{table}\nx = 1\n")).unwrap_err();
            let keys: Vec<&str> =
                message.split("expected one of").nth(1).unwrap().split('`').skip(1).step_by(2).collect();
            let of = table.trim_matches(['[', ']']).rsplit('.').next().unwrap_or("");
            for key in keys.iter().filter(|key| !tables.iter().any(|table| table.contains(**key))) {
                let full = if of.is_empty() { key.to_string() } else { format!("{of}.{key}") };
                assert!(PAGE.contains(&format!("| `{full}` |")), "{full} has no row");
            }
            keys.len()
        });
        assert_eq!(counts, [8, 7, 6, 3, 4, 9]);
    }

    #[test]
    fn mistakes_are_explained() {
        let message = |more: &str| Config::parse(&text(more)).unwrap_err();
        assert!(Config::parse("[site]\n").unwrap_err().contains("no [[peer]]"));
        assert!(message("adress = \"x\"\n").contains("unknown field `adress`"));
        assert!(message("address = \"192.0.2.1\"\n").contains("needs a host and a port"));
        assert!(message("address = \":49407\"\n").contains("needs a host"));
        assert!(message("address = \"a:70000\"\n").contains("needs a host and a port"));
        assert!(message("[limits]\nconnection_bytes = 5\n").contains("`connection_bytes` is at least 65536"));
        assert!(message("[limits]\npeer_bytes = 5\n").contains("`peer_bytes` is at least 524288"));
        let ratio = message("[limits]\nconnection_bytes = 8388608\npeer_bytes = 16777216\n");
        assert!(ratio.contains("one connection has an eighth of that at most"), "{ratio}");
        assert!(ratio.contains("write `peer_bytes = 67108864`"), "{ratio}");
        assert!(Config::parse(&text("[limits]\nconnection_bytes = 8388608\npeer_bytes = 67108864\n")).is_ok());
        assert!(message("[limits]\nconnections = 0\n").contains("at least 1"));
        assert!(message("[wan]\nrate = true\n").contains("expected a rate in quotes, as in \"20Mbit/s\""));
        // A number without a unit is one of bit/s, and the message keeps it.
        for number in ["20000000", "2e7", "\"20000000\""] {
            let message = message(&format!("[wan]\nrate = {number}\n"));
            assert!(message.contains("`20000000` has no unit; write it like \"20Mbit/s\""), "{message}");
        }
        for number in ["2", "-5", "1e12"] {
            let message = message(&format!("[wan]\nrate = {number}\n"));
            assert!(message.contains("is no rate of a line: those are from 8 kbit/s to 100 Gbit/s"), "{message}");
        }
        assert!(message("[wan]\nrate = \"20Mb\"\n").contains("a rate"));
        assert!(message("[wan]\nrate = \"20bit/s\"\n").contains("from 8 kbit/s"));
        assert!(message("[wan]\nprotocol = \"bbr\"\n").contains("not `bbr`"));
        assert!(message("[wan]\nair_loss = 2\n").contains("a share from 0 to 0.9"));
        let top = |line: &str| Config::parse(&format!("{line}\n{}", text(""))).unwrap_err();
        assert!(top("listen = \"49407\"").contains("`49407` is no address with a port"));
        assert!(top("metrics = \"localhost\"").contains("`localhost` is no address with a port"));
        assert!(top("listen = \"0.0.0.0:0\"").contains("`listen` needs a port"));
        let only = "peer `hub`: `address` is an IPv6 address, and `listen` = \"0.0.0.0:49407\" has IPv4 only; write listen = \"[::]:49407\"";
        assert!(message("address = \"[2001:db8::2]:49407\"\n").contains(only));
        assert!(message("address = \"[fe80::2%eth0]:49407\"\n").contains("has IPv4 only"));
        let with = |listen: &str, address: &str| {
            Config::parse(&format!("listen = \"{listen}\"\n{}", text(&format!("address = \"{address}\"\n"))))
        };
        assert!(with("[2001:db8::1]:49407", "192.0.2.1:49407").unwrap_err().contains("has IPv6 only"));
        for address in ["192.0.2.1:49407", "[2001:db8::2]:49407", "hub.example:49407"] {
            assert!(with("[::]:49407", address).is_ok(), "{address}");
        }
        assert!(with("0.0.0.0:49407", "hub.example:49407").is_ok());
        assert!(top(&format!("status = \"/run/{}\"", "x".repeat(103))).contains("longer than 107 bytes"));
        assert!(Config::parse(&text("").replace("\"hub\"", "\"a\\nb\"")).unwrap_err().contains("a control character"));
        let site = |site: &str| Config::parse(&text("").replace("[site]\n", &format!("[site]\n{site}\n"))).unwrap_err();
        assert!(site("interfaces = [\"eth 1\"]").contains("site: `eth 1` is no name of an interface"));
        assert!(site("interfaces = [\"eth1\\\" drop\"]").contains("is no name of an interface"));
        assert!(site("interfaces = [\"*\"]").contains("is no name of an interface"));
        assert!(site("intercept_port = 0").contains("`intercept_port` is a port from 1"));
        assert!(site("networks = [\"0.0.0.0/0\"]").contains("peer `hub`: 0.0.0.0/0 lies within 0.0.0.0/0"));
        assert!(site("interfaces = [\"a\"]\n[wan]\ninterface = \"a\"").contains("`site.interfaces` names"));
        let also = format!("[[peer]]\nname = \"b\"\nkey = \"{}\"\nnetworks = [\"0.0.0.0/0\"]\n", key('b'));
        assert!(message(&also).contains("peer `b`: 0.0.0.0/0 is a network of peer `hub`, too"));
        let own = Config::parse(&text("")).unwrap().check_own_key(PublicKey::parse(&key('a')).unwrap());
        assert!(own.unwrap_err().to_string().contains("the line of this gateway"));
        let twice = format!("[[peer]]\nname = \"b\"\nkey = \"{}\"\nnetworks = [\"10.0.0.0/8\"]\n", key('a'));
        assert!(message(&twice).contains("the same key"));
        let bits = twice.replace("10.0.0.0/8", "10.2.0.0/8");
        assert!(message(&bits).contains("the network is 10.0.0.0/8"));
        assert!(message(&bits.replace("/8", "/33")).contains("is no network"));
        assert!(Config::parse(&text("").replace("gateway-1:a", "gateway-1:g")).unwrap_err().contains("keygen"));
    }
}
