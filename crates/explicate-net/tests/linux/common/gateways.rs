//! Two sites with a gateway each: client `c` (10.1.0.2) - `ga` - `l` - `gb` - server `s` (10.2.0.2), and IPv6 beside it.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;

use super::{Net, PATIENCE, Running, eventually, last_json, run};

/// The sites.
pub(crate) struct Sites {
    pub(crate) net: Net,
    pub(crate) keys: [String; 2],
}

/// The folder of a gateway's files.
fn folder(net: &Net, name: &str) -> PathBuf {
    net.folder.join(name)
}

impl Sites {
    /// Hosts, addresses and routes; the way between the gateways leads through `l`, where `link` joins `left` and `right`.
    pub(crate) fn new() -> Sites {
        let net = Net::new(&["c", "ga", "l", "gb", "s"]);
        net.cable(("c", "eth0", "10.1.0.2/24"), ("ga", "site0", "10.1.0.1/24"));
        net.cable(("s", "eth0", "10.2.0.2/24"), ("gb", "site0", "10.2.0.1/24"));
        net.cable(("ga", "wan0", "192.0.2.1/24"), ("l", "left", ""));
        net.cable(("gb", "wan0", "192.0.2.2/24"), ("l", "right", ""));
        for (host, device, number) in
            [("c", "eth0", "1::2"), ("ga", "site0", "1::1"), ("s", "eth0", "2::2"), ("gb", "site0", "2::1")]
        {
            net.exec(host, "sysctl -qw net.ipv6.conf.all.disable_ipv6=0");
            net.exec(host, &format!("ip -6 addr add fd00:{number}/64 dev {device} nodad"));
        }
        net.exec("ga", "ip -6 addr add fd00:9::1/64 dev wan0 nodad");
        net.exec("gb", "ip -6 addr add fd00:9::2/64 dev wan0 nodad");
        net.exec("c", "ip route add default via 10.1.0.1");
        net.exec("c", "ip -6 route add default via fd00:1::1");
        net.exec("s", "ip route add default via 10.2.0.1");
        net.exec("s", "ip -6 route add default via fd00:2::1");
        net.exec("ga", "ip route add 10.2.0.0/24 via 192.0.2.2");
        net.exec("gb", "ip route add 10.1.0.0/24 via 192.0.2.1");
        net.exec("ga", "ip -6 route add fd00:2::/64 via fd00:9::2");
        net.exec("gb", "ip -6 route add fd00:1::/64 via fd00:9::1");
        for host in ["ga", "gb"] {
            net.exec(host, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
        }
        let all = [
            ("c", "eth0"),
            ("ga", "site0"),
            ("ga", "wan0"),
            ("l", "left"),
            ("l", "right"),
            ("gb", "wan0"),
            ("gb", "site0"),
            ("s", "eth0"),
        ];
        net.no_offloads(&all);
        let keygen = |name: &str| {
            fs::create_dir_all(folder(&net, name)).unwrap();
            let path = folder(&net, name).join("key");
            let output = net.program(name, &["gateway", "keygen", path.to_str().unwrap()]);
            String::from_utf8(output.stdout).unwrap().trim().to_string()
        };
        let keys = [keygen("ga"), keygen("gb")];
        Sites { net, keys }
    }

    /// Writes the configuration of a gateway (`more` precedes its tables), and returns its path.
    pub(crate) fn configure(&self, name: &str, more: &str, tables: &str) -> String {
        let at = folder(&self.net, name);
        let (own, other, key) = if name == "ga" { (1, 2, &self.keys[1]) } else { (2, 1, &self.keys[0]) };
        let address = if name == "ga" { "address = \"192.0.2.2:49407\"" } else { "" };
        let at_text = at.display();
        let text = format!(
            "key = \"{at_text}/key\"\nstatus = \"{at_text}/run/gateway.sock\"\n{more}\n\
             [site]\ninterfaces = [\"site0\"]\nnetworks = [\"10.{own}.0.0/16\", \"fd00:{own}::/32\"]\n{tables}\n\
             [[peer]]\nname = \"other\"\nkey = \"{key}\"\nnetworks = [\"10.{other}.0.0/16\", \"fd00:{other}::/32\"]\n{address}\n"
        );
        let path = at.join("gateway.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Sets a gateway up and starts it.
    pub(crate) fn gateway(&self, name: &str, config: &str) -> Running {
        let up = self.net.program(name, &["gateway", "up", "--config", config]);
        assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
        self.net.start(name, &["-v", "gateway", "run", "--config", config])
    }

    /// Both gateways with this in their files, connected.
    pub(crate) fn gateways(&self, more: &str, tables: &str) -> [Running; 2] {
        let running = ["gb", "ga"].map(|name| self.gateway(name, &self.configure(name, more, tables)));
        self.connected();
        running
    }

    /// Waits until the gateways are connected.
    pub(crate) fn connected(&self) {
        let path = folder(&self.net, "ga").join("run/gateway.sock");
        eventually("the gateways connect", || {
            let output = self.net.program(
                "ga",
                &[
                    "gateway",
                    "status",
                    "--json",
                    "--config",
                    &folder(&self.net, "ga").join("gateway.toml").display().to_string(),
                ],
            );
            path.exists() && String::from_utf8_lossy(&output.stdout).contains("\"connected\":true")
        });
    }
}

/// A bridge of the kernel instead of a link.
pub(crate) fn bridge(net: &Net) {
    let l = net.name("l");
    run(&format!("ip -n {l} link add name bridge0 type bridge"));
    for device in ["left", "right"] {
        run(&format!("ip -n {l} link set {device} master bridge0"));
    }
    run(&format!("ip -n {l} link set bridge0 up"));
}

/// Bytes that cannot be confused: each depends on its place.
pub(crate) fn content(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|i| ((i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Serves one connection at an address of `s`.
pub(crate) fn serve<T: Send + 'static>(
    net: &Net,
    address: &'static str,
    what: impl FnOnce(TcpStream, SocketAddr) -> T + Send + 'static,
) -> JoinHandle<T> {
    let listener = net.inside("s", move || TcpListener::bind(address).unwrap()).join().unwrap();
    spawn(move || {
        let (stream, from) = listener.accept().unwrap();
        what(stream, from)
    })
}

/// Connects from `c`.
pub(crate) fn connect(net: &Net, address: &'static str) -> TcpStream {
    let stream = net.inside("c", move || TcpStream::connect(address).unwrap()).join().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Closes by a reset.
pub(crate) fn reset(stream: TcpStream) {
    set_socket_linger(stream.as_fd(), Some(Duration::ZERO)).unwrap();
}

/// What reading to the end comes to: the bytes, or the error.
pub(crate) fn read_all(mut stream: &TcpStream) -> Result<Vec<u8>, ErrorKind> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).map(|_| all).map_err(|e| e.kind())
}

/// The state of a gateway.
pub(crate) fn status(sites: &Sites, name: &str) -> Value {
    let config = sites.net.folder.join(name).join("gateway.toml");
    let output = sites.net.program(name, &["gateway", "status", "--json", "--config", config.to_str().unwrap()]);
    last_json(&String::from_utf8_lossy(&output.stdout))
}

/// What a gateway changes in the kernel: nftables, rules, routes, sysctls.
pub(crate) fn kernel(net: &Net, host: &str) -> String {
    let commands = [
        "nft list ruleset",
        "ip -4 rule",
        "ip -6 rule",
        "ip -4 route show table all",
        "ip -6 route show table all",
        "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding",
    ];
    let all = commands.map(|command| net.exec(host, command)).join("---\n");
    // Link-local addresses appear some seconds after their interfaces.
    let stays = |line: &&str| line.contains("explicate") || !line.contains("fe80::");
    all.lines().filter(stays).collect::<Vec<_>>().join("\n")
}
