//! Destinations that a gateway denies to its peers, its own addresses, and where its firewall sees carried connections. Needs root, so
//! `make linux` runs it.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::spawn;
use std::time::Duration;

use crate::common::gateways::{Sites, bridge, status};
use crate::common::{Net, PATIENCE, eventually};

/// Listens in a namespace: each client gets its address, and then its bytes back. Returns how many there were.
fn listen(net: &Net, host: &str, port: u16) -> Arc<AtomicU32> {
    let listener = net.inside(host, move || TcpListener::bind(("::", port)).unwrap()).join().unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            spawn(move || {
                let from = stream.peer_addr().unwrap().ip().to_canonical();
                let mut bytes = [0; 4];
                let _ = stream.write_all(format!("{from}\n").as_bytes());
                while stream.read_exact(&mut bytes).and_then(|()| stream.write_all(&bytes)).is_ok() {}
            });
        }
    });
    count
}

/// Connects from `c`, and says by which address it is known there.
fn known_as(net: &Net, to: &str) -> Result<(TcpStream, String), ErrorKind> {
    known_within(net, to, PATIENCE)
}

/// The same, with another limit.
fn known_within(net: &Net, to: &str, limit: Duration) -> Result<(TcpStream, String), ErrorKind> {
    let to: SocketAddr = to.parse().unwrap();
    let connecting = net.inside("c", move || TcpStream::connect_timeout(&to, limit));
    let mut stream = connecting.join().unwrap().map_err(|e| e.kind())?;
    let (mut line, mut byte) = (String::new(), [0]);
    stream.set_read_timeout(Some(limit)).unwrap();
    while !line.ends_with('\n') {
        stream.read_exact(&mut byte).map_err(|e| e.kind())?;
        line.push(byte[0] as char);
    }
    Ok((stream, line.trim().to_string()))
}

/// Lines of docs/gateway.md between these words, as nft takes them.
fn firewall_of_the_page() -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway.md")).unwrap();
    let block = page.split("title=\"B: rules of nftables\"").nth(1).unwrap().split("```").next().unwrap();
    block.replace("eth1", "site0")
}

#[test]
#[ignore = "needs root: make linux"]
fn own_addresses_are_left_to_plain_routing_and_the_firewall_holds() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let rules = net.folder.join("rules.nft");
    fs::write(&rules, firewall_of_the_page()).unwrap();
    net.exec("gb", &format!("nft -f {}", rules.display()));
    let [_, closed, denied, _] =
        [("gb", 22), ("gb", 9008), ("s", 2525), ("s", 7007)].map(|(host, port)| listen(net, host, port));
    let came = |count: &AtomicU32| count.load(Ordering::Relaxed);
    let [_far, near] = sites.gateways("", "");
    let told =
        || ["ip", "ip6"].map(|family| net.exec("ga", &format!("nft list set inet explicate_gateway told_{family}")));
    let whole = |[ipv4, ipv6]: &[String; 2]| ipv4.contains("10.2.0.1 ") && ipv6.contains("fd00:2::1 ");
    eventually("the near gateway knows them", || whole(&told()));
    assert!(
        !told()[0].contains("192.0.2.2") && !told()[1].contains("fd00:9::2"),
        "outside of its networks: {:?}",
        told()
    );

    // The operator's session: known by the client's address, and not carried.
    let mut sessions =
        ["10.2.0.1:22", "[fd00:2::1]:22"].map(|to| known_as(net, to).unwrap_or_else(|e| panic!("{to}: {e:?}")));
    assert_eq!(sessions.each_ref().map(|(_, from)| &from[..]), ["10.1.0.2", "fd00:1::2"]);
    // What comes by the same way later arrives, and these do not.
    for to in ["10.2.0.1:9008", "[fd00:2::1]:9008"] {
        let refused = known_within(net, to, Duration::from_secs(1)).unwrap_err();
        assert!([ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&refused), "{to}: {refused:?}");
        known_as(net, &to.replace("9008", "22")).unwrap();
    }
    assert_eq!(came(&closed), 0);
    assert_eq!(status(&sites, "ga")["intercepted"], 0);

    // Carried connections to hosts are seen in the output hook.
    assert!(known_within(net, "10.2.0.2:2525", Duration::from_secs(1)).is_err());
    assert_eq!(known_as(net, "10.2.0.2:7007").unwrap().1, "10.1.0.2");
    assert_eq!(came(&denied), 0, "the rule of the output hook does not hold");
    assert_eq!(status(&sites, "ga")["intercepted"], 2);

    near.stop("KILL");
    for (session, _) in &mut sessions {
        session.write_all(b"ping").unwrap();
        session.read_exact(&mut [0; 4]).unwrap();
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn metadata_and_own_addresses_are_denied_unless_they_are_allowed() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    net.exec("gb", "ip addr add 169.254.169.254/32 dev lo");
    listen(net, "gb", 80);
    let near = sites.configure("ga", "", "");
    let text = fs::read_to_string(&near).unwrap();
    fs::write(&near, text.replace("\"10.2.0.0/16\"", "\"169.254.169.254/32\", \"fd00:ec2::254/128\", \"10.2.0.0/16\""))
        .unwrap();
    let allow = "\nallow = [\"169.254.169.254/32\", \"10.2.0.1/32\"]";
    for (more, open) in [("", false), (allow, true)] {
        let far = sites.configure("gb", "", &format!("client_address = \"gateway\"{more}"));
        let text = fs::read_to_string(&far).unwrap();
        fs::write(&far, text.replace("networks = [\"10.2.0.0/16\", \"fd00:2::/32\"]\nclient", "client")).unwrap();
        let running = ["gb", "ga"].map(|name| sites.gateway(name, if name == "ga" { &near } else { &far }));
        sites.connected();
        let metadata = known_as(net, "169.254.169.254:80").map(|(_, from)| from);
        assert_eq!(metadata, if open { Ok("169.254.169.254".to_string()) } else { Err(ErrorKind::ConnectionReset) });
        let other = known_as(net, "[fd00:ec2::254]:80");
        assert_eq!(other.err(), Some(ErrorKind::ConnectionReset), "it is allowed nowhere");
        if open {
            eventually("it is carried", || known_as(net, "10.2.0.1:80").is_ok_and(|(_, from)| from == "10.2.0.1"));
        }
        let check = net.program("gb", &["gateway", "check", "--config", &far]);
        let said = String::from_utf8_lossy(&check.stdout).into_owned();
        let allowed = if open { "169.254.169.254/32, 10.2.0.1/32" } else { "none" };
        assert!(
            said.contains("169.254.0.0/16 (link-local, with metadata services)") && said.contains("10.2.0.1"),
            "{said}"
        );
        assert!(said.contains(&format!("by `allow` of [site]: {allowed}.")), "{said}");
        let [far, near] = running;
        drop(near);
        let log = far.stop("TERM");
        assert_eq!(log.contains("denied; allow = [\"169.254.169.254/32\"] in [site] allows it"), !open, "{log}");
        for name in ["ga", "gb"] {
            net.exec(name, "nft flush ruleset");
        }
    }
}
