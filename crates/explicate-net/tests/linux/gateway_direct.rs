//! What becomes of connections when a gateway starts, stops, is killed or cannot reach its peer: those that the kernel routes go on, new
//! ones are routed or refused as configured, and those that were carried end by a reset at both ends. Needs root, so `make linux` runs it.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

use crate::common::gateways::{Sites, bridge, reset, status};
use crate::common::{Net, PATIENCE, Running, eventually, uninterrupted};

/// Where the hosts of the two sites listen.
const WAYS: [(&str, &str); 4] =
    [("c", "10.2.0.2:7007"), ("c", "[fd00:2::2]:7007"), ("s", "10.1.0.2:7007"), ("s", "[fd00:1::2]:7007")];

/// The default of `site.intercept_port`.
const INTERCEPT: u16 = 49_409;

/// The connections that the servers of both hosts have, by the names that their clients gave them, and words that were answered.
type Served = Arc<Mutex<BTreeMap<u32, u32>>>;

/// Answers each word of a client. A word of another connection, one that is missing, or an orderly end ends the process of the test:
/// no client here ends orderly.
fn answers(mut stream: TcpStream, served: &Served) {
    let (mut word, mut name) = ([0; 8], None);
    for number in 0u32.. {
        match stream.read_exact(&mut word) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof && name.is_some() => wrong(&format!("{name:?}: FIN")),
            Err(_) => break,
        }
        let (of, at) = (u32::from_be_bytes([word[0], word[1], word[2], word[3]]), &word[4..]);
        if *name.get_or_insert(of) != of || at != number.to_be_bytes() {
            wrong(&format!("{name:?} at {number} gets {word:?}"));
        }
        served.lock().unwrap().insert(of, number);
        if stream.write_all(&word).is_err() {
            break;
        }
    }
    if let Some(name) = name {
        served.lock().unwrap().remove(&name);
    }
}

fn wrong(what: &str) -> ! {
    let _ = std::panic::catch_unwind(|| panic!("a connection gets what it must not get: {what}"));
    std::process::exit(101)
}

fn listen(net: &Net, (host, port): (&str, u16), served: &Served) {
    let (listener, served) =
        (net.inside(host, move || TcpListener::bind(("::", port)).unwrap()).join().unwrap(), served.clone());
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let served = served.clone();
            spawn(move || answers(stream, &served));
        }
    });
}

/// A client of such a server.
struct Talk {
    stream: TcpStream,
    name: u32,
    words: u32,
}

impl Talk {
    fn open(net: &Net, (host, to): (&str, &'static str), name: u32) -> io::Result<Talk> {
        let to: SocketAddr = to.parse().unwrap();
        let stream = net.inside(host, move || TcpStream::connect_timeout(&to, PATIENCE)).join().unwrap()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut talk = Talk { stream, name, words: 0 };
        talk.says()?;
        Ok(talk)
    }
    /// Sends a word, and gets it back.
    fn says(&mut self) -> io::Result<()> {
        let word = [self.name.to_be_bytes(), self.words.to_be_bytes()].concat();
        self.stream.write_all(&word)?;
        let mut back = [0; 8];
        self.stream.read_exact(&mut back)?;
        assert_eq!(back, word[..], "bytes of another stream");
        self.words += 1;
        Ok(())
    }
    /// How it ends.
    fn end(mut self) -> ErrorKind {
        match uninterrupted(|| self.stream.read(&mut [0; 8])) {
            Ok(length) => panic!("{length} bytes instead of a reset"),
            Err(e) => e.kind(),
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if let Ok(stream) = self.stream.try_clone() {
            reset(stream);
        }
    }
}

/// Two sites, whose hosts listen.
struct World {
    sites: Sites,
    served: Served,
    tables: String,
    /// New connections of a site whose gateway cannot carry them are routed.
    direct: bool,
    names: u32,
    plain: Vec<Talk>,
}

impl World {
    fn new(client_address: &str, when_down: &str) -> World {
        let (sites, served) = (Sites::new(), Served::default());
        bridge(&sites.net);
        for at in [("c", 7007), ("s", 7007), ("s", INTERCEPT)] {
            listen(&sites.net, at, &served);
        }
        let site = format!("client_address = \"{client_address}\"\nwhen_down = \"{when_down}\"");
        // In two of the four what is routed goes through the gateway's port.
        let wan = if client_address == "keep" { "[wan]\nrate = \"50Mbit/s\"\ninterface = \"wan0\"" } else { "" };
        let tables = format!("{site}\n{wan}");
        World { sites, served, tables, direct: when_down == "direct", names: 0, plain: Vec::new() }
    }
    fn open(&mut self, way: (&str, &'static str)) -> io::Result<Talk> {
        self.names += 1;
        Talk::open(&self.sites.net, way, self.names)
    }
    /// A connection in each direction, of each family.
    fn talks(&mut self) -> Vec<Talk> {
        WAYS.map(|way| self.open(way).unwrap_or_else(|e| panic!("{way:?}: {e}"))).into()
    }
    fn start(&self, name: &str) -> Running {
        self.sites.gateway(name, &self.sites.configure(name, "", &self.tables))
    }
    fn down(&self, name: &str, more: &[&str]) {
        let config = self.sites.net.folder.join(name).join("gateway.toml");
        let arguments = [&["gateway", "down", "--config", config.to_str().unwrap()], more].concat();
        let down = self.sites.net.program(name, &arguments);
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
    }
    /// Connections in both directions that the gateways carry.
    fn carried(&mut self) -> Vec<Talk> {
        self.sites.connected();
        eventually("both are connected", || status(&self.sites, "gb")["peers"][0]["connected"] == true);
        let onward = |world: &World| ["ga", "gb"].map(|name| status(&world.sites, name)["onward"].as_u64().unwrap());
        let before = onward(self);
        let talks = self.talks();
        assert_eq!(onward(self), before.map(|n| n + 2), "two in each direction are carried");
        talks
    }
    /// What was routed from the beginning still is; and new connections of these hosts are routed, or reset.
    fn goes_on(&mut self, when: &str, hosts: &[(&str, bool)]) {
        for talk in &mut self.plain {
            talk.says().unwrap_or_else(|e| panic!("{when}: plain connection {}: {e}", talk.name));
        }
        for way in WAYS {
            let Some((_, open)) = hosts.iter().find(|(host, _)| *host == way.0) else { continue };
            let opened = self.open(way).map_err(|e| e.kind());
            assert_eq!(opened.is_ok(), *open, "{when}: {way:?}: {:?}", opened.err());
            let hung = opened.is_err_and(|kind| matches!(kind, ErrorKind::TimedOut | ErrorKind::WouldBlock));
            assert!(!hung, "{when}: {way:?} got no answer");
        }
    }
    /// These connections are reset at their clients in `host` without a word, at both ends in the end.
    fn end_by_reset(&self, when: &str, talks: Vec<Talk>) {
        let names: Vec<u32> = talks.iter().map(|talk| talk.name).collect();
        let held = |name: &u32| self.served.lock().unwrap().contains_key(name);
        for talk in talks {
            let name = talk.name;
            assert_eq!(talk.end(), ErrorKind::ConnectionReset, "{when}: connection {name}");
        }
        eventually("their servers see the end", || !names.iter().any(held));
    }
    fn tables(&self, name: &str) -> String {
        self.sites.net.exec(name, "nft list tables")
    }
    /// Resets that this gateway sends are lost.
    fn lose_resets(&self, name: &str, lost: bool) {
        if !lost {
            self.sites.net.exec(name, "nft delete table inet lossy");
            return;
        }
        self.sites.net.exec(name, "nft add table inet lossy");
        self.sites.net.exec(name, "nft add chain inet lossy out { type filter hook output priority 0 ; }");
        self.sites.net.exec(name, "nft add rule inet lossy out tcp flags rst drop");
    }
}

/// All that may happen to two gateways with these settings.
fn all_that_may_happen(client_address: &str, when_down: &str) {
    let mut world = World::new(client_address, when_down);
    let direct = world.direct;
    world.plain = world.talks();
    // The port of the gateway's own listener is no other.
    let same_port = world.open(("c", "10.2.0.2:49409")).unwrap();
    world.plain.push(same_port);

    let near = world.start("ga");
    world.goes_on("only the near gateway runs", &[("c", direct), ("s", true)]);
    let far = world.start("gb");
    let carried = world.carried();
    world.goes_on("both run", &[("c", true), ("s", true)]);

    far.stop("TERM");
    world.end_by_reset("the far gateway is stopped", carried);
    world.goes_on("the far gateway is stopped, not down", &[("c", direct), ("s", direct)]);
    world.down("gb", &["--stopped"]);
    world.goes_on("the far gateway is down", &[("c", direct), ("s", direct)]);
    let left = if direct { "" } else { "table inet explicate_gateway\n" };
    assert_eq!(
        world.tables("gb"),
        format!("table inet explicate_carried\n{left}"),
        "it is remembered what was carried"
    );

    let far = world.start("gb");
    let mut carried = world.carried();
    near.stop("KILL");
    let from_far = carried.split_off(2);
    world.end_by_reset_here("the near gateway is killed", carried);
    world.goes_on("the near gateway is killed", &[("c", direct)]);
    let near = world.start("ga");
    world.end_by_reset("the near gateway is back", from_far);
    world.goes_on("it is back", &[]);

    // Its resets are lost: the hosts learn it by their next segment.
    let mut carried = world.carried();
    let from_far = carried.split_off(2);
    world.lose_resets("ga", true);
    near.stop("KILL");
    world.lose_resets("ga", false);
    world.learn_by_a_segment("a gateway that remembers", carried);
    let near = world.start("ga");
    // Their servers at the other site have nothing to send, and wait.
    world.end_by_reset_here("after lost resets", from_far);

    // The machine is lost, and comes back as it was before `up`: the other gateway remembers.
    let mut carried = world.carried();
    let from_far = carried.split_off(2);
    world.lose_resets("ga", true);
    near.stop("KILL");
    world.lose_resets("ga", false);
    world.sites.net.exec("ga", "nft flush ruleset");
    world.down("ga", &[]);
    world.learn_by_a_segment("a machine that was lost", carried);
    world.goes_on("a machine that was lost", &[("c", true)]);
    let near = world.start("ga");
    world.end_by_reset_here("after a loss of the machine", from_far);

    far.stop("KILL");
    let (config, key) = (world.sites.configure("gb", "", &world.tables), &world.sites.keys[0]);
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace(key, &format!("explicate-gateway-1:{}", "ab".repeat(32)))).unwrap();
    let far = world.sites.gateway("gb", &config);
    eventually("the near one notices", || status(&world.sites, "ga")["peers"][0]["connected"] == false);
    let stop = [("c", direct), ("s", direct)];
    world.goes_on("a wrong key", &stop);
    drop(far);

    world.sites.net.exec("gb", "nft add table inet shut");
    world.sites.net.exec("gb", "nft add chain inet shut in { type filter hook input priority 0 ; }");
    world.sites.net.exec("gb", "nft add rule inet shut in udp dport 49407 drop");
    let far = world.start("gb");
    world.goes_on("a port that is shut", &stop);
    world.sites.net.exec("gb", "nft delete table inet shut");
    drop((near, far));

    for name in ["ga", "gb"] {
        world.down(name, &[]);
        world.sites.net.try_exec(name, "nft flush set inet explicate_carried ipv4");
        world.sites.net.try_exec(name, "nft flush set inet explicate_carried ipv6");
        world.down(name, &[]);
        assert_eq!(world.tables(name), "", "nothing is left when nothing is remembered");
    }
    world.goes_on("both are down", &[("c", true), ("s", true)]);
}

impl World {
    /// The clients are reset at once; what their servers have is as it may.
    fn end_by_reset_here(&self, when: &str, talks: Vec<Talk>) {
        for talk in talks {
            let name = talk.name;
            assert_eq!(talk.end(), ErrorKind::ConnectionReset, "{when}: connection {name}");
        }
    }
    /// The clients have heard nothing, and are reset when they send.
    fn learn_by_a_segment(&self, when: &str, talks: Vec<Talk>) {
        for mut talk in talks {
            talk.stream.set_nonblocking(true).unwrap();
            let nothing = talk.stream.read(&mut [0; 8]).err().map(|e| e.kind());
            assert_eq!(nothing, Some(ErrorKind::WouldBlock), "{when}: the reset is lost");
            talk.stream.set_nonblocking(false).unwrap();
            talk.stream.write_all(&[0xff; 8]).unwrap();
            assert_eq!(talk.end(), ErrorKind::ConnectionReset, "{when}: its next segment");
        }
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn with_client_addresses_and_direct_connections() {
    all_that_may_happen("keep", "direct");
}

#[test]
#[ignore = "needs root: make linux"]
fn with_addresses_of_gateways_and_direct_connections() {
    all_that_may_happen("gateway", "direct");
}

#[test]
#[ignore = "needs root: make linux"]
fn with_client_addresses_and_refused_connections() {
    all_that_may_happen("keep", "reset");
}

#[test]
#[ignore = "needs root: make linux"]
fn with_addresses_of_gateways_and_refused_connections() {
    all_that_may_happen("gateway", "reset");
}
