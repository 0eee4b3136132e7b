//! `gateway.toml`.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use explicate_core::guard::AIR_LOSS;
use explicate_core::presets::{DEFAULT_EXPLICIT, DEFAULT_TCP};
use explicate_core::registry;
use explicate_core::wire::UDP_PORT;
use serde::{Deserialize, Deserializer, de};

use super::controller::ControllerConfig;
use super::identity::PublicKey;
use super::kernel::TUN;
use super::mistake::{self, Checked, Mistake};
use super::network::{Network, longest};
use super::patience::Patience;
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
    /// Address of the tunnel; `[::]` is that of IPv4 as well.
    #[serde(default = "default_listen", deserialize_with = "address")]
    pub listen: SocketAddr,
    /// Where metrics for Prometheus are served.
    #[serde(default, deserialize_with = "some_address")]
    pub metrics: Option<SocketAddr>,
    /// Socket of `explicated gateway status`.
    #[serde(default = "default_status")]
    pub status: PathBuf,
    /// Write a line into the log when a connection has ended.
    #[serde(default)]
    pub log_connections: bool,
    /// The site behind this gateway.
    pub site: Site,
    /// The line to the peers.
    #[serde(default)]
    pub wan: Wan,
    /// Limits of memory.
    #[serde(default)]
    pub limits: Limits,
    /// How long hosts of the site may be silent.
    #[serde(default)]
    pub patience: Patience,
    /// Other gateways.
    #[serde(rename = "peer", default)]
    pub peers: Vec<Peer>,
    /// The file and its text, to which messages refer.
    #[serde(skip)]
    source: (String, String),
}

fn address<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<SocketAddr, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = || de::Error::custom(format!("`{text}` is no address with a port; write it like \"127.0.0.1:9111\""));
    text.parse().map_err(|_| wrong())
}
fn some_address<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<SocketAddr>, D::Error> {
    address(from).map(Some)
}
/// A line, or a list of lines.
fn lines<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<String>, D::Error> {
    struct Lines;
    impl<'de> de::Visitor<'de> for Lines {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the line that `explicated gateway keygen` prints, or a list of two such lines")
        }
        fn visit_str<E: de::Error>(self, line: &str) -> std::result::Result<Vec<String>, E> {
            Ok(vec![line.to_string()])
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, mut all: A) -> std::result::Result<Vec<String>, A::Error> {
            std::iter::from_fn(|| all.next_element().transpose()).collect()
        }
    }
    from.deserialize_any(Lines)
}
fn default_key() -> PathBuf {
    "/etc/explicated/gateway.key".into()
}
fn default_listen() -> SocketAddr {
    SocketAddr::from((Ipv6Addr::UNSPECIFIED, UDP_PORT))
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
    /// Destinations that peers reach although they are denied by default (see [`destinations`](super::destinations)).
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
fn check_interface(key: &str, name: &str) -> Checked {
    let good = |c: char| c.is_ascii_graphic() && !"/:\"\\*".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(good) || [".", ".."].contains(&name) {
        return Err(Mistake::at(key, format!("`{name}` is no name of an interface; `ip link` lists them")));
    }
    if name == TUN {
        return Err(Mistake::at(key, format!("`{name}` is made by the gateway itself, for other packets of the site")));
    }
    Ok(())
}

impl Site {
    fn check(&self) -> Checked {
        if self.intercept_port == 0 {
            return Err(Mistake::at("site.intercept_port", "`intercept_port` is a port from 1 to 65535"));
        }
        let mut names = self.interfaces.iter().enumerate();
        names.try_for_each(|(index, name)| check_interface(&format!("site.interfaces.{index}"), name))
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
    fn check(&self, site: &Site) -> Checked {
        if let Some(interface) = &self.interface {
            check_interface("wan.interface", interface)?;
            if site.interfaces.contains(interface) {
                let message = format!("`interface` is `{interface}`, which `site.interfaces` names, too");
                return Err(Mistake::at("wan.interface", message));
            }
        }
        let followed = || registry::protocols().filter(|protocol| ControllerConfig::can_follow(*protocol));
        if !followed().any(|protocol| protocol.name() == self.protocol) {
            let names: Vec<&str> = followed().map(|protocol| protocol.name()).collect();
            let message = format!("`protocol` is one of {}, not `{}`", names.join(", "), self.protocol);
            return Err(Mistake::at("wan.protocol", message));
        }
        if !(0.0..=0.9).contains(&self.air_loss) {
            let message = format!("`air_loss` is a share from 0 to 0.9, not {}", self.air_loss);
            return Err(Mistake::at("wan.air_loss", message));
        }
        if let Some(source) = &self.capacity {
            source.check().map_err(|message| Mistake::at("wan.capacity", message))?;
            if self.rate.is_none() {
                return Err(Mistake::at("wan.capacity", "`capacity` needs a `rate` to begin with"));
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
    fn check(&self) -> Checked {
        if self.connections == 0 {
            return Err(Mistake::at("limits.connections", "`connections` is at least 1"));
        }
        let least = SHARE * LEAST_BYTES;
        if self.peer_bytes < least {
            return Err(Mistake::at("limits.peer_bytes", format!("`peer_bytes` is at least {least}")));
        }
        let Some(connection_bytes) = self.connection_bytes else { return Ok(()) };
        let wrong = |message: String| Err(Mistake::at("limits.connection_bytes", message));
        if connection_bytes < LEAST_BYTES {
            return wrong(format!("`connection_bytes` is at least {LEAST_BYTES}"));
        }
        if connection_bytes > self.most_window() {
            return wrong(format!(
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
    /// Its public line, from `explicated gateway keygen`; two while it changes its key.
    #[serde(deserialize_with = "lines")]
    pub key: Vec<String>,
    /// Where it is reached; without it this gateway waits until the peer connects.
    pub address: Option<String>,
    /// It may move to another address while it is connected, although it has an `address`; without one it may in any case.
    #[serde(default)]
    pub roaming: bool,
    /// Networks behind it: connections from the site to them are carried, and clients there may connect to the site.
    pub networks: Vec<Network>,
}

/// The present key of a peer, and its next one.
const MOST_KEYS: usize = 2;

/// What is wrong with a peer: the key, and what to write.
type Said = std::result::Result<(), (&'static str, String)>;

/// The longest path of a socket, bytes (unix(7)).
const LONGEST_PATH: usize = 107;

impl Peer {
    /// Its public keys, which [`Config::load`] has checked.
    pub fn public_keys(&self) -> Vec<PublicKey> {
        self.key.iter().filter_map(|line| PublicKey::parse(line)).collect()
    }
    /// Whether its tunnels are set up by this key.
    pub fn has_key(&self, key: PublicKey) -> bool {
        self.public_keys().contains(&key)
    }
    /// Whether a tunnel by which it has called follows it to another address.
    pub fn may_move(&self) -> bool {
        self.address.is_none() || self.roaming
    }
    /// Its address now. Queries the resolver, so it may take seconds.
    pub fn resolve(&self) -> Option<SocketAddr> {
        resolve(self.address.as_ref()?, UDP_PORT).ok()
    }
    /// Its address, as far as that is a number.
    pub fn number(&self) -> Option<IpAddr> {
        let (host, _) = split(self.address.as_deref()?)?;
        host.split('%').next().unwrap_or(host).parse().ok()
    }
    /// Whether a socket at `listen` can send to its address, as far as that is a number.
    fn check_listen(&self, listen: SocketAddr) -> Said {
        let (port, number) = (listen.port(), self.number());
        if number.is_some_and(|ip| ip.to_canonical().is_unspecified() || ip.to_canonical().is_multicast()) {
            return Err((
                "address",
                format!("no machine has that address; write one of the peer's, as in \"192.0.2.1:{UDP_PORT}\""),
            ));
        }
        match number.map(|address| address.is_ipv6()) {
            Some(true) if listen.is_ipv4() => Err((
                "listen",
                format!(
                    "`address` is an IPv6 address, and `listen` = \"{listen}\" has IPv4 only; write listen = \"[::]:{port}\" for both"
                ),
            )),
            Some(false) if listen.is_ipv6() && !listen.ip().is_unspecified() => Err((
                "listen",
                format!(
                    "`address` is an IPv4 address, and `listen` = \"{listen}\" has IPv6 only; write listen = \"[::]:{port}\" for both"
                ),
            )),
            _ => Ok(()),
        }
    }
    /// What is wrong with it at this site, behind these peers.
    fn check(&self, site: &Site, before: &[Peer]) -> Said {
        if self.key.is_empty() || self.key.len() > MOST_KEYS {
            return Err((
                "key",
                "`key` is one line, or two while the peer changes its key: the present one and the next".to_string(),
            ));
        }
        // Where the line stands.
        let at = |index: usize| if self.key.len() == 1 { "key" } else { ["key.0", "key.1"][index] };
        for (index, line) in self.key.iter().enumerate() {
            let Some(key) = PublicKey::parse(line) else {
                return Err((at(index), "`key` is not the line that `explicated gateway keygen` prints".to_string()));
            };
            if before.iter().any(|other| other.has_key(key)) {
                return Err((at(index), "another peer has the same key".to_string()));
            }
            if index > 0 && self.public_keys()[0] == key {
                return Err((at(index), "the two lines are the same".to_string()));
            }
        }
        if self.networks.is_empty() {
            return Err(("networks", "`networks` is empty: nothing would be carried".to_string()));
        }
        if self.name.is_empty() || before.iter().any(|other| other.name == self.name) {
            return Err(("name", "every peer needs a name of its own".to_string()));
        }
        if self.name.chars().any(char::is_control) {
            return Err(("name", "the name has a control character, such as a line break".to_string()));
        }
        if self.address.as_ref().is_some_and(|address| !matches!(split(address), Some((_, Some(_))))) {
            let examples = format!("as in \"192.0.2.1:{UDP_PORT}\" or \"[fd00::1]:{UDP_PORT}\"");
            return Err(("address", format!("`address` needs a host and a port, {examples}")));
        }
        for network in &self.networks {
            if let Some(own) = site.networks.iter().find(|own| network.is_within(own)) {
                let message = format!("{network} lies within {own} of `site.networks`: nothing would be carried to it");
                return Err(("networks", message));
            }
            if let Some(other) = before.iter().find(|other| other.networks.contains(network)) {
                return Err(("networks", format!("{network} is a network of peer `{}`, too", other.name)));
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
        Config::parse_from(&text, &path.display().to_string()).map_err(Error::Input)
    }

    /// Its `status`, where other keys may have mistakes; the default if the file has none or cannot be read.
    pub fn status_of(path: &Path) -> PathBuf {
        let text = fs::read_to_string(path).unwrap_or_default();
        let table: toml::Table = toml::from_str(&text).unwrap_or_default();
        table.get("status").and_then(toml::Value::as_str).map_or_else(default_status, PathBuf::from)
    }

    /// Reads and checks a text; the error says where and what to do.
    pub fn parse(text: &str) -> std::result::Result<Config, String> {
        Config::parse_from(text, "gateway.toml")
    }
    /// The same; errors name this file.
    fn parse_from(text: &str, origin: &str) -> std::result::Result<Config, String> {
        let mut config: Config = toml::from_str(text).map_err(|error| mistake::of_toml(&error, text, origin))?;
        config.source = (origin.to_string(), text.to_string());
        config.check().map_err(|mistake| config.located(mistake))?;
        Ok(config)
    }
    /// A mistake in it, behind its place.
    pub fn located(&self, mistake: Mistake) -> String {
        let (origin, text) = &self.source;
        mistake.located(text, origin)
    }
    fn check(&self) -> Checked {
        if self.peers.is_empty() {
            return Err(Mistake::at("peer", "no [[peer]]: a gateway needs at least one"));
        }
        if self.listen.port() == 0 {
            return Err(Mistake::at("listen", "`listen` needs a port from 1 to 65535: peers have to know it"));
        }
        if self.status.as_os_str().len() > LONGEST_PATH {
            let message = format!("`status` is longer than {LONGEST_PATH} bytes, which no socket's path is");
            return Err(Mistake::at("status", message));
        }
        self.site.check().map_err(|mistake| mistake.of("site"))?;
        self.wan.check(&self.site).map_err(|mistake| mistake.of("wan"))?;
        self.limits.check().map_err(|mistake| mistake.of("limits"))?;
        self.patience.check().map_err(|mistake| mistake.of("patience"))?;
        for (index, peer) in self.peers.iter().enumerate() {
            let checked = peer.check(&self.site, &self.peers[..index]).and_then(|()| peer.check_listen(self.listen));
            checked.map_err(|(key, message)| self.of_peer(index, key, message))?;
        }
        Ok(())
    }
    /// A mistake in a key of a peer, or in one at the top of the file.
    pub fn of_peer(&self, index: usize, key: &str, message: impl Into<String>) -> Mistake {
        let name = &self.peers[index].name;
        // By its name, unless that is another's, or might be a number.
        let unclear = name.is_empty() || self.peers.iter().filter(|peer| peer.name == *name).count() > 1;
        let place = if unclear { format!("peer.{index}") } else { format!("peer.{name}") };
        let mistake = Mistake::at(format!("{place}.{key}"), message).or_at(key).or_at(place);
        mistake.of(&format!("peer `{name}`"))
    }
    /// Refuses a peer with the key of this gateway itself.
    pub fn check_own_key(&self, own: PublicKey) -> Result<()> {
        let Some(index) = self.peers.iter().position(|peer| peer.has_key(own)) else { return Ok(()) };
        let mistake = self.of_peer(index, "key", "`key` is the line of this gateway; it needs the line of the peer");
        Err(Error::Input(self.located(mistake)))
    }

    /// Keys whose change needs a restart, where they differ.
    pub fn fixed_changes(&self, other: &Config) -> Vec<&'static str> {
        let (site, wan) = ((&self.site, &other.site), (&self.wan, &other.wan));
        let differs = [
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
    /// The peer behind which an address is.
    pub fn route(&self, address: IpAddr) -> Option<usize> {
        longest(self.peers.iter().enumerate().flat_map(|(i, p)| p.networks.iter().map(move |n| (i, n))), address)
    }
}

#[cfg(test)]
mod tests {
    use explicate_core::units::Rate;

    use std::time::Duration;

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
    fn patience_is_as_long_as_hosts_and_tunnel_need_it() {
        let parse = |line: &str| Config::parse(&text(&format!("[patience]\n{line}\n")));
        let all = "keepalive = 1\nkeepalive_interval = 1\nkeepalive_probes = 1\nuser_timeout = 60\nidle_timeout = 7440";
        assert_eq!(parse(all).unwrap().patience.idle_timeout(), Some(Duration::from_secs(7440)));
        for (line, wanted) in [
            ("user_timeout = 59", "patience: `user_timeout` is from 60 to 604800, not 59: the path may fail for 60 s"),
            (
                "idle_timeout = 7439",
                "`idle_timeout` is from 7440 to 604800, not 7439: hosts may be silent for 2 h 4 min",
            ),
            ("keepalive = 0", "`keepalive` is from 1 to 600, not 0"),
            ("keepalive = 7200", "the kernel remembers a silent connection for 900 s"),
            ("keepalive_interval = 0", "`keepalive_interval` is from 1"),
            ("keepalive_probes = 128", "`keepalive_probes` is from 1 to 127, not 128"),
            ("keepalive = \"60s\"", "expected u32"),
        ] {
            let message = parse(line).unwrap_err();
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn a_peer_has_one_key_or_two() {
        let with = |lines: &str| Config::parse(&text("").replace(&format!("\"{}\"", key('a')), lines));
        let both = with(&format!("[\"{}\", \"{}\"]", key('a'), key('b'))).unwrap();
        let [a, b, c] = ['a', 'b', 'c'].map(|digit| PublicKey::parse(&key(digit)).unwrap());
        assert_eq!(both.peers[0].public_keys(), [a, b]);
        assert_eq!([a, b, c].map(|key| both.check_own_key(key).is_err()), [true, true, false]);
        assert_eq!(with(&format!("[\"{}\"]", key('c'))).unwrap().peers[0].public_keys(), [c]);
        for (lines, place, wanted) in [
            ("[]".to_string(), "gateway.toml:4:7: ", "one line, or two while the peer changes its key"),
            (format!("[{}]", format!("\"{}\",", key('a')).repeat(3)), "gateway.toml:4:7: ", "or two while"),
            (format!("[\"{0}\", \"{0}\"]", key('a')), "gateway.toml:4:96: ", "the two lines are the same"),
            (format!("[\"{}\", \"b\"]", key('a')), "gateway.toml:4:96: ", "is not the line that `explicated gateway"),
            ("7".to_string(), "gateway.toml:4:7: ", "or a list of two such lines"),
        ] {
            let message = with(&lines).unwrap_err();
            assert!(message.starts_with(place) && message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn a_peer_with_an_address_moves_only_if_it_is_roaming() {
        let moves = |more: &str| Config::parse(&text(more)).unwrap().peers[0].may_move();
        let address = "address = \"192.0.2.1:49407\"\n";
        assert!(moves("") && moves(&format!("{address}roaming = true\n")));
        assert!(!moves(address) && !moves(&format!("{address}roaming = false\n")));
        let error = Config::parse(&text("roaming = \"yes\"\n")).unwrap_err();
        assert!(error.contains("roaming = \"yes\"") && error.contains("expected a boolean"), "{error}");
    }

    /// serde names the keys of a table in the message of an unknown one.
    #[test]
    fn every_key_is_in_the_documentation() {
        const PAGE: &str = include_str!("../../../../docs/gateway.md");
        let tables = ["", "[site]", "[wan]", "[limits]", "[patience]", "[[peer]]", "[wan.capacity]"];
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
        assert_eq!(counts, [10, 7, 6, 3, 5, 5, 9]);
    }

    /// By hand: what stands first in the line that is wrong.
    #[test]
    fn mistakes_have_a_place_and_the_line() {
        let more = format!(
            "[[peer]]\nname = \"b.c\"\nkey = \"{}\"\nnetworks = [\"10.2.0.0/16\"]\naddress = \"nowhere\"\n",
            key('b')
        );
        let message = Config::parse(&text(&more)).unwrap_err();
        let wanted = "gateway.toml:10:11: peer `b.c`: `address` needs a host and a port, as in \"192.0.2.1:49407\" or \
                      \"[fd00::1]:49407\"\n   |\n10 | address = \"nowhere\"\n   |           ^^^^^^^^^";
        assert_eq!(message, wanted);
        let places = [
            ("[limits]\nconnections = 0\n", "gateway.toml:7:15: limits: "),
            ("[patience]\nkeepalive = 0\n", "gateway.toml:7:13: patience: "),
            ("[wan]\nprotocol = \"bbr\"\n", "gateway.toml:7:12: wan: "),
            ("[wan]\ncapacity = { measured = true, floor = \"1Mbit/s\" }\n", "gateway.toml:7:12: wan: "),
            ("[wan]\nrate = \"20Mb\"\n", "gateway.toml:7:8: "),
            ("[wan]\nrat = \"20Mbit/s\"\n", "gateway.toml:7:1: unknown field `rat`"),
            ("[wan\n", "gateway.toml:6:"),
        ];
        for (more, place) in places {
            let message = Config::parse(&text(more)).unwrap_err();
            assert!(message.starts_with(place) && message.contains("\n"), "{message}");
        }
        let own = Config::parse(&text("")).unwrap().check_own_key(PublicKey::parse(&key('a')).unwrap());
        assert!(own.unwrap_err().to_string().starts_with("gateway.toml:4:7: peer `hub`: `key` is the line of this"));
        let path = std::env::temp_dir().join(format!("explicate-config-{}", std::process::id()));
        fs::write(&path, "[site]\ninterfaces = 3\n").unwrap();
        let error = Config::load(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:2:14: ", path.display())), "{error}");
        fs::remove_file(&path).unwrap();
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
        let with = |listen: &str, address: &str| {
            Config::parse(&format!("listen = \"{listen}\"\n{}", text(&format!("address = \"{address}\"\n"))))
        };
        let only = "gateway.toml:1:10: peer `hub`: `address` is an IPv6 address, and `listen` = \"0.0.0.0:49407\" has IPv4 only; write \
                    listen = \"[::]:49407\"";
        assert!(with("0.0.0.0:49407", "[2001:db8::2]:49407").unwrap_err().starts_with(only));
        assert!(with("192.0.2.7:49407", "[fe80::2%eth0]:49407").unwrap_err().contains("has IPv4 only"));
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
        assert!(site("interfaces = [\"explicate0\"]").contains("made by the gateway itself"));
        for nowhere in ["0.0.0.0", "[::]", "224.0.0.1", "[::ffff:0.0.0.0]", "[ff02::1]"] {
            assert!(
                message(&format!("address = \"{nowhere}:49407\"\n")).contains("no machine has that address"),
                "{nowhere}"
            );
        }
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
