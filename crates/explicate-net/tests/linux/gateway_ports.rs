//! The ports of gateways: each law, each source of the rate, other packets beside, routers on the way, an outage. Every byte arrives;
//! rates and delays are measured in `timed::gateway`. Needs root, so `make linux` runs it.

use std::io::Write;
use std::sync::Arc;
use std::thread::{sleep, spawn};
use std::time::Duration;

use crate::common::gateways::{Sites, bridge, connect, content, read_all, serve, status};
use crate::common::last_json;

/// Fetches so many bytes from `s`, which arrive whole.
fn fetch(sites: &Sites, bytes: usize) {
    let server = serve(&sites.net, "10.2.0.2:7001", move |mut stream, _| {
        let all = content(bytes, 7);
        stream.write_all(&all).map(|()| all)
    });
    let received = read_all(&connect(&sites.net, "10.2.0.2:7001")).unwrap();
    assert!(received == server.join().unwrap().unwrap(), "other bytes");
}

#[test]
#[ignore = "needs root: make linux"]
fn a_router_on_the_way_answers_each_law() {
    for (protocol, controller) in [("xcp", "xcp"), ("vcp", "vcp"), ("xtcp", "xtcp")] {
        let sites = Sites::new();
        let port = format!("left: rate = \"10Mbit/s\", router = {{ kind = \"{controller}\" }}");
        let router = sites.net.start("l", &["router", "--port", &port, "--port", "right", "--json"]);
        let _gateways = sites.gateways("", &format!("[wan]\nrate = \"20Mbit/s\"\nprotocol = \"{protocol}\""));
        fetch(&sites, 1_000_000);
        let told = last_json(&router.stop("INT"));
        // 1,000,000 bytes in datagrams of at most 1500.
        assert!(told["explicit"].as_u64() > Some(666) && told["malformed"] == 0, "{protocol}: {told}");
    }
}

#[test]
#[ignore = "needs root: make linux"]
fn transfers_beside_other_packets_and_over_an_outage_arrive_whole() {
    let sites = Arc::new(Sites::new());
    bridge(&sites.net);
    let wan = "[wan]\nrate = \"10Mbit/s\"\ninterface = \"wan0\"\ncapacity = { measured = true, floor = \"1Mbit/s\" }";
    let _gateways = sites.gateways("", wan);
    let fetching = sites.clone();
    let fetching = spawn(move || fetch(&fetching, 4_000_000));
    // Each sends until so many answers have come.
    for ping in ["ping -q -c 10 -i 0.1 -w 120 10.2.0.2", "ping -6 -q -c 5 -i 0.1 -w 120 fd00:2::2"] {
        sites.net.exec("c", ping);
    }
    for name in ["ga", "gb"] {
        let plain = &status(&sites, name)["port"]["plain"];
        assert!(plain["sent"].as_u64() >= Some(15) && plain["refused"] == 0, "{plain}");
    }
    sites.net.exec("l", "ip link set left down");
    // Far less than the 60 s for which a peer may be silent.
    sleep(Duration::from_secs(3));
    sites.net.exec("l", "ip link set left up");
    fetching.join().unwrap();
    assert_eq!(status(&sites, "gb")["resets"], 0);
}
