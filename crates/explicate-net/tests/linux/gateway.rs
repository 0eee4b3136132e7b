//! Connections that two gateways carry: bytes, half-closes, resets, addresses, and what `up` changes. Needs root, so `make linux` runs it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::common::gateways::{Sites, bridge, connect, content, kernel, read_all, reset, serve, status};
use crate::common::{Net, eventually, scraped, value};

/// Threads that need no socket of a foreign address keep no privilege at all.
#[test]
#[ignore = "needs root: make linux"]
fn every_thread_of_a_gateway_drops_its_privileges() {
    let sites = Sites::new();
    bridge(&sites.net);
    let gateways = sites.gateways("metrics = \"127.0.0.1:9112\"", "[wan]\nrate = \"20Mbit/s\"");
    let raw = ["CapEff:\t0000000000000000", "CapEff:\t0000000000002000", "NoNewPrivs:\t1"].map(String::from).into();
    for gateway in &gateways {
        eventually("only CAP_NET_RAW is left", || gateway.privileges() == raw);
    }
}

/// The client closes its half, and the server answers with all that it has received and as many bytes again.
fn there_and_back(net: &Net, address: &'static str, client: &str) {
    let server = serve(net, address, |mut stream, from| {
        let mut all = read_all(&stream).unwrap();
        all.extend(content(3_000_000, 2));
        stream.write_all(&all).unwrap();
        from
    });
    let mut stream = connect(net, address);
    let sent = content(2_000_000, 1);
    stream.write_all(&sent).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let back = read_all(&stream).unwrap();
    assert_eq!(back.len(), 5_000_000);
    assert!(back[..2_000_000] == sent && back[2_000_000..] == content(3_000_000, 2), "other bytes");
    let from = server.join().unwrap();
    assert_eq!(from.ip().to_string(), client, "the client's own address");
    assert_eq!(from.port(), stream.local_addr().unwrap().port());
}

#[test]
#[ignore = "needs root: make linux"]
fn connections_arrive_whole_and_end_as_they_were_ended() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let _gateways = sites.gateways("metrics = \"127.0.0.1:9111\"", "");
    there_and_back(net, "10.2.0.2:7001", "10.1.0.2");
    there_and_back(net, "[fd00:2::2]:7001", "fd00:1::2");

    // The server closes first, and the client sends on.
    let server = serve(net, "10.2.0.2:7002", |mut stream, _| {
        stream.write_all(b"first").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        read_all(&stream)
    });
    let mut stream = connect(net, "10.2.0.2:7002");
    assert_eq!(read_all(&stream).unwrap(), b"first");
    stream.write_all(&content(500_000, 3)).unwrap();
    drop(stream);
    assert!(server.join().unwrap().unwrap() == content(500_000, 3));

    // No server listens: the connection is accepted, and then reset.
    let stream = connect(net, "10.2.0.2:7003");
    assert_eq!(read_all(&stream), Err(ErrorKind::ConnectionReset));

    // The server resets.
    let server = serve(net, "10.2.0.2:7004", |mut stream, _| {
        stream.read_exact(&mut [0; 1000]).unwrap();
        reset(stream);
    });
    let mut stream = connect(net, "10.2.0.2:7004");
    stream.write_all(&[1; 1000]).unwrap();
    assert_eq!(read_all(&stream), Err(ErrorKind::ConnectionReset));
    server.join().unwrap();

    // The client resets.
    let server = serve(net, "10.2.0.2:7005", |mut stream, _| {
        stream.read_exact(&mut [0; 1000]).unwrap();
        stream.write_all(b"x").unwrap();
        read_all(&stream)
    });
    let mut stream = connect(net, "10.2.0.2:7005");
    stream.write_all(&[1; 1000]).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    reset(stream);
    assert_eq!(server.join().unwrap(), Err(ErrorKind::ConnectionReset));

    let scrape = || scraped(net, "ga", "127.0.0.1:9111");
    eventually("all is counted", || value(&scrape(), "explicated_gateway_intercepted_total") == 6.0);
    let metrics = scrape();
    assert_eq!(value(&metrics, "explicated_port_up{port=\"other\"}"), 1.0);
    assert_eq!(value(&metrics, "explicated_gateway_resets_total"), 3.0, "{metrics}");
    let config = net.folder.join("ga/gateway.toml");
    let why = net.program("ga", &["gateway", "why", "--config", config.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&why.stdout).starts_with("nothing here"), "{why:?}");
}

#[test]
#[ignore = "needs root: make linux"]
fn down_restores_the_kernel_even_after_kill_and_twice() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    net.exec("ga", "sysctl -qw net.ipv4.ip_forward=0");
    net.exec("ga", "nft add table inet mine");
    let before = kernel(net, "ga");
    let config = sites.configure("ga", "", "[wan]\nrate = \"9Mbit/s\"\ninterface = \"wan0\"");
    let gateway = sites.gateway("ga", &config);
    let during = kernel(net, "ga");
    assert!(during.contains("explicate_gateway") && during.contains("default dev explicate0"), "{during}");
    gateway.stop("KILL");
    for _ in 0..2 {
        let down = net.program("ga", &["gateway", "down", "--config", &config]);
        assert!(down.status.success(), "{}", String::from_utf8_lossy(&down.stderr));
        assert_eq!(kernel(net, "ga"), before);
    }
}

/// A stream behind a gateway that is killed ends by a reset, and works again when it is back.
#[test]
#[ignore = "needs root: make linux"]
fn a_killed_gateway_resets_and_comes_back() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let [far, _near] = sites.gateways("", "");
    let server = serve(net, "10.2.0.2:7001", |mut stream, _| {
        stream.write_all(&content(100_000, 5)).unwrap();
        read_all(&stream)
    });
    let mut stream = connect(net, "10.2.0.2:7001");
    stream.read_exact(&mut vec![0; 100_000]).unwrap();
    far.stop("KILL");
    // The kernel resets the open connections of the killed gateway.
    assert!(server.join().unwrap().is_err(), "an orderly end");
    let far = sites.gateway("gb", &sites.configure("gb", "", ""));
    let _ = stream.write_all(b"more");
    assert_eq!(read_all(&stream), Err(ErrorKind::ConnectionReset), "after the restart of the other end");
    sites.connected();
    there_and_back(net, "10.2.0.2:7009", "10.1.0.2");
    drop(far);
}

/// A gateway whose key is not configured is refused, and so is a client with an address outside its site.
#[test]
#[ignore = "needs root: make linux"]
fn strangers_are_refused() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let good = sites.configure("gb", "", "");
    let _far = sites.gateway("gb", &good);
    // A gateway with another key than the far one expects.
    let config = sites.configure("ga", "", "when_down = \"reset\"");
    let stranger = net.folder.join("stranger");
    let made = net.program("ga", &["gateway", "keygen", stranger.to_str().unwrap()]);
    assert!(made.status.success());
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replacen("ga/key", "stranger", 1)).unwrap();
    let near = sites.gateway("ga", &config);
    let server = net.inside("s", || TcpListener::bind("10.2.0.2:7001").unwrap()).join().unwrap();
    // It tries in this time. What it has come to is judged at the end.
    std::thread::sleep(Duration::from_secs(2));
    let stream = connect(net, "10.2.0.2:7001");
    assert_eq!(read_all(&stream), Err(ErrorKind::ConnectionReset));
    drop(near);
    std::fs::write(&config, text).unwrap();
    let _near = sites.gateway("ga", &config);
    sites.connected();
    // An address of the site's interface, not of its networks.
    net.exec("c", "ip addr add 10.7.0.2/32 dev eth0");
    net.exec("ga", "ip route add 10.7.0.2/32 dev site0");
    let spoofed = net.inside("c", || {
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &"10.7.0.2:0".parse::<SocketAddr>().unwrap()).unwrap();
        rustix::net::connect(&socket, &"10.2.0.2:7001".parse::<SocketAddr>().unwrap()).unwrap();
        TcpStream::from(socket)
    });
    assert_eq!(read_all(&spoofed.join().unwrap()), Err(ErrorKind::ConnectionReset));
    let allowed = connect(net, "10.2.0.2:7001");
    let (_first, from) = server.accept().unwrap();
    assert_eq!(from, allowed.local_addr().unwrap(), "nothing has arrived before");
}

/// A change of the file comes into force; a source that fails holds, here at `gb`, and then falls to the floor, as soon here at `ga`.
/// `timed::gateway` has how soon.
#[test]
#[ignore = "needs root: make linux"]
fn the_rate_follows_its_source() {
    let sites = Sites::new();
    let net = &sites.net;
    bridge(net);
    let file = net.folder.join("rate");
    std::fs::write(&file, "8Mbit/s").unwrap();
    let _gateways = [("gb", 3600.0), ("ga", 0.5)].map(|(name, hold)| {
        let source = format!("{{ file = \"{}\", hold = {hold:?}, floor = \"1Mbit/s\" }}", file.display());
        sites.gateway(name, &sites.configure(name, "", &format!("[wan]\nrate = \"10Mbit/s\"\ncapacity = {source}")))
    });
    sites.connected();
    let rate = |name: &str| status(&sites, name)["port"]["rate_bps"].as_f64().unwrap();
    let both = |is: f64| rate("ga") == is && rate("gb") == is;
    eventually("the file is read", || both(8e6));
    std::fs::write(&file, "3Mbit/s").unwrap();
    eventually("the change is in force", || both(3e6));
    std::fs::remove_file(&file).unwrap();
    eventually("the floor is in force", || rate("ga") == 1e6);
    let capacity = &status(&sites, "ga")["capacity"];
    assert!(capacity["at_floor"] == true && capacity["failure"].is_string(), "{capacity}");
    eventually("the loss is noticed", || status(&sites, "gb")["capacity"]["failure"].is_string());
    assert_eq!(rate("gb"), 3e6, "it holds");
    std::fs::write(&file, "3Mbit/s").unwrap();
    eventually("the file is read again", || both(3e6));
}
