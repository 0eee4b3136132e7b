//! What is not explicit passes a router: IPv6, VLANs, and all of it through the queue. Needs root, so `make linux` runs it.

use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Net, PATIENCE, eventually, last_json, scraped, takes_a_stream, uninterrupted, value};
use crate::quic::Pair;
use explicate_net::sys::{OFFLOAD_LEN, PacketSocket, interface_index, monotonic, offloads_off};

/// Two hosts, `a` (fd00::1) and `b` (fd00::2), and between them `m` with the interfaces `left` and `right`.
fn chain() -> Net {
    let net = Net::new(&["a", "m", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("m", "left", ""));
    net.cable(("b", "eth0", "10.9.0.2/24"), ("m", "right", ""));
    for (host, number) in [("a", 1), ("b", 2)] {
        net.exec(host, "sysctl -qw net.ipv6.conf.all.disable_ipv6=0");
        net.exec(host, &format!("ip -6 addr add fd00::{number}/64 dev eth0 nodad"));
    }
    net
}

/// `timed::rates` has for how long.
#[test]
#[ignore = "needs root: make linux"]
fn ipv6_passes_as_it_came_and_waits_in_the_same_queue() {
    ipv6_through_a_queue();
}

/// Seconds from the first to the last of 40 datagrams of 1248 bytes behind a port of 2 Mbit/s.
pub(crate) fn ipv6_through_a_queue() -> f64 {
    let net = chain();
    let port = "right: rate = \"2Mbit/s\", queue = { kind = \"droptail\", limit = \"100kB\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "--json"]);
    let ping = net.exec("a", "ping -6 -c 3 -i 0.2 -w 120 fd00::2");
    assert!(ping.contains("ttl=64"), "{ping}");

    // 40 datagrams at once: 1200 bytes of payload each, 1248 of packet.
    let socket = net.inside("b", || UdpSocket::bind("[fd00::2]:5000").unwrap()).join().unwrap();
    let sink = std::thread::spawn(move || {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut bytes, mut first, mut right) = ([0; 2000], None, 0);
        for i in 0..40u8 {
            right += (uninterrupted(|| socket.recv(&mut bytes)).unwrap() == 1200 && bytes[..1200] == [i; 1200]) as u32;
            first.get_or_insert_with(monotonic);
        }
        ((monotonic() - first.unwrap()) as f64 / 1e9, right)
    });
    net.inside("a", || {
        let socket = UdpSocket::bind("[fd00::1]:0").unwrap();
        for i in 0..40u8 {
            socket.send_to(&[i; 1200], "[fd00::2]:5000").unwrap();
        }
    })
    .join()
    .unwrap();
    let (took, right) = sink.join().unwrap();
    assert_eq!(right, 40, "in order, and as they came");
    let told = last_json(&router.stop("INT"));
    for none in ["explicit", "malformed", "merged", "expired", "cut", "refused"] {
        assert_eq!(told[none], 0, "{none}: {told}");
    }
    took
}

/// Datagrams with a SCONE packet, in both versions of IP: the kernel of the receiving host discards one with a wrong
/// checksum. One whose checksum is left to the interface stays as it is.
#[test]
#[ignore = "needs root: make linux"]
fn scone_packets_leave_with_the_advice_of_their_port() {
    const CAME: [u8; 12] = [0xff, 0xef, 0x7d, 0xc0, 0xfd, 0, 0, 0x40, 1, 2, 3, 4];
    let net = chain();
    let port = "right: scone = { advise = \"1Mbit/s\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "--json"]);
    net.exec("a", "ping -c 1 -w 120 10.9.0.2");
    net.exec("a", "ping -6 -c 1 -w 120 fd00::2");
    let mut port = 5000;
    let mut arrives = |from: &'static str, to: &str, sent: [u8; 12]| {
        port += 1;
        let to = format!("{to}:{port}");
        let address = to.clone();
        let socket = net.inside("b", move || UdpSocket::bind(address).unwrap()).join().unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let send = move || UdpSocket::bind(from).unwrap().send_to(&sent, to).unwrap();
        net.inside("a", send).join().unwrap();
        let mut bytes = [0; 100];
        let length = uninterrupted(|| socket.recv(&mut bytes)).unwrap();
        bytes[..length].to_vec()
    };
    let (v4, v6) = (("10.9.0.1:0", "10.9.0.2"), ("[fd00::1]:0", "[fd00::2]"));
    assert_eq!(arrives(v4.0, v4.1, CAME), CAME, "the checksum is left to the virtual interface");
    net.no_offloads(&[("a", "eth0")]);
    let mut lowered = CAME;
    lowered[..2].copy_from_slice(&[0xca, 0x6f]); // signal 20
    let mut other = CAME;
    other[4] = 0xfe;
    for (from, to) in [v4, v6] {
        assert_eq!(arrives(from, to, CAME), lowered);
        assert_eq!(arrives(from, to, other), other);
        assert_eq!(arrives(from, to, lowered), lowered);
    }
    let told = last_json(&router.stop("INT"));
    let (none, some) = (&told["ports"][0], &told["ports"][1]);
    let count = |key: &str| some[format!("scone_{key}")].as_u64().unwrap();
    assert_eq!((count("lowered"), count("kept"), count("partial")), (2, 2, 1), "{told}");
    assert!(none.get("scone").is_none() && some["scone_advice_bps"] == 1e6, "{told}");
}

/// The sender leaves segments to its interface to cut: longer than a slot of the ring, and without checksums.
#[test]
#[ignore = "needs root: make linux"]
fn tcp_passes_whole() {
    let net = chain();
    let port = "right: rate = \"80Mbit/s\", queue = { kind = \"droptail\", limit = \"300kB\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "--json"]);
    let content: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    for address in ["10.9.0.2:5000", "[fd00::2]:5000"] {
        let receiver = takes_a_stream(&net, address);
        let sent = content.clone();
        net.inside("a", move || TcpStream::connect(address).unwrap().write_all(&sent).unwrap()).join().unwrap();
        assert!(receiver.join().unwrap() == content, "other bytes");
    }
    let told = last_json(&router.stop("INT"));
    let (frames, bytes) = (told["ports"][1]["arrived"].as_f64().unwrap(), told["ports"][1]["bytes"].as_f64().unwrap());
    assert!(bytes / frames > 2000.0, "super-packets: {told}");
    for none in ["explicit", "cut", "errors", "refused"] {
        assert_eq!(told[none], 0, "{none}: {told}");
    }
}

/// The kernel takes the tag out of a frame before a packet socket sees it.
#[test]
#[ignore = "needs root: make linux"]
fn frames_of_a_vlan_keep_their_tag_and_a_link_that_went_down_comes_back() {
    let net = chain();
    let router = net.start("m", &["router", "--port", "left", "--port", "right: rate = \"50Mbit/s\"", "--json"]);
    net.exec("m", "ip link set left down");
    sleep(Duration::from_millis(200));
    net.exec("m", "ip link set left up");
    eventually("a ping passes again", || net.try_exec("a", "ping -c 1 -W 1 10.9.0.2"));
    net.exec("a", "ping -c 3 -i 0.2 -w 120 10.9.0.2");

    let open = || PacketSocket::open("eth0", interface_index("eth0").unwrap(), 1 << 20).unwrap();
    let tagged = |number: u8| {
        let mut frame = vec![0; OFFLOAD_LEN];
        frame.extend([0xff; 6]);
        frame.extend([2, 0, 0, 0, 0, 9, 0x81, 0, 0x60, 5, 0x88, 0xb5]); // priority 3, VLAN 5, an experiment's type
        frame.extend([number; 300]);
        frame
    };
    let mut socket = net.inside("b", open).join().unwrap();
    let seen = std::thread::spawn(move || {
        let (mut frame, mut seen) = (Vec::new(), Vec::new());
        eventually("five frames", || {
            while socket.receive(&mut frame).is_some() {
                if frame[OFFLOAD_LEN + 6] == 2 && frame.ends_with(&[7; 2]) {
                    seen.push(frame.clone());
                }
            }
            seen.len() >= 5
        });
        seen
    });
    net.inside("a", move || {
        let frame = tagged(7);
        let frames = [0; 5].map(|_| frame.as_slice());
        open().send(frames).unwrap()
    })
    .join()
    .unwrap();
    let seen = seen.join().unwrap();
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().all(|frame| frame[OFFLOAD_LEN..] == tagged(7)[OFFLOAD_LEN..]), "{:?}", &seen[0][..40]);
    let told = last_json(&router.stop("INT"));
    assert!(told["errors"].as_u64().unwrap() >= 1, "that it went down is counted: {told}");
}

/// As `ppp0` does when a line breaks: a later interface of the same name is another one, so a router must be started again.
#[test]
#[ignore = "needs root: make linux"]
fn an_interface_that_is_removed_ends_the_router_with_a_reason() {
    let net = chain();
    let mut router = net.start("m", &["router", "--port", "left", "--port", "right: rate = \"50Mbit/s\""]);
    net.exec("m", "ip link set left down");
    net.exec("m", "ip link set left name other");
    sleep(Duration::from_millis(1500));
    net.exec("m", "ip link set other up");
    eventually("it goes on under another name", || net.try_exec("a", "ping -c 1 -W 1 10.9.0.2"));
    net.exec("m", "ip link delete other");
    let (said, good) = router.wait();
    assert!(!good && said.contains("the interface `left` has disappeared"), "{said}");
}

/// Hosts `a` and `b`; links that put a tag on and take it off; between them, on a trunk, a router.
fn trunk() -> Net {
    let net = Net::new(&["a", "p", "m", "q", "b"]);
    net.cable(("a", "eth0", "10.9.0.1/24"), ("p", "host", ""));
    net.cable(("p", "trunk", ""), ("m", "left", ""));
    net.cable(("m", "right", ""), ("q", "trunk", ""));
    net.cable(("q", "host", ""), ("b", "eth0", "10.9.0.2/24"));
    net
}

/// `timed::rates` has their rate.
#[test]
#[ignore = "needs root: make linux"]
fn explicit_packets_behind_tags_get_feedback() {
    behind_tags();
}

/// What a router reports of the port to explicit packets behind tags.
pub(crate) fn behind_tags() -> Value {
    let net = trunk();
    let right = "right: rate = \"20Mbit/s\", queue = { kind = \"droptail\", limit = \"100kB\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", right, "--json"]);
    let link = |name| net.start(name, &["link", "host", "trunk", "--there", "delay = \"5ms\"", "--tag", "5"]);
    let _links = [link("p"), link("q")];
    Pair::new(&net, &[]).told("send", &["-p", "xcp", "--time", "4"]);
    let told = last_json(&router.stop("INT"));
    let of = |key: &str| told[key].as_u64().unwrap();
    assert!(of("explicit") > 0 && of("tagged") == of("explicit"), "{told}");
    told["ports"][1].clone()
}

/// `timed::rates` has the rates.
#[test]
#[ignore = "needs root: make linux"]
fn rates_are_of_the_last_seconds_and_receivers_are_counted_too() {
    rates_of_the_last_seconds(Duration::ZERO);
}

/// The rate of a port of 20 Mbit/s a time after a flow of 8 s has begun, bit/s, and the share that its class has.
pub(crate) fn rates_of_the_last_seconds(after: Duration) -> [f64; 2] {
    let net = chain();
    let right = "right: rate = \"20Mbit/s\", queue = { kind = \"droptail\", limit = \"100kB\" }";
    let metrics = ["--metrics", "127.0.0.1:9109"];
    let router = net.start("m", &[&["router", "--port", "left", "--port", right], &metrics[..]].concat());
    let none = ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"].map(String::from).into();
    // The thread of the metrics drops its own, and may wait for a processor before that.
    eventually("no privilege is left", || router.privileges() == none);
    let pair = Pair::new(&net, &metrics);
    let mut send = pair.start("send", &["-p", "xcp", "--time", "8"]);
    sleep(after);
    let rate = |text: &str| value(text, "explicated_port_bits_per_second{port=\"right\"}");
    eventually("the flow has a rate", || rate(&scraped(&net, "m", "127.0.0.1:9109")) > 1e5);
    let busy = scraped(&net, "m", "127.0.0.1:9109");
    let share = value(&busy, "explicated_class_share{port=\"right\",class=\"explicit\"}");
    let flows = |text: &str| value(text, "explicated_flows");
    // Packets of the handshake count for the rate before there is a flow.
    eventually("the receiver has the flow", || flows(&scraped(&net, "b", "127.0.0.1:9109")) == 1.0);
    assert!(send.wait().1);
    // The mean since the start would need a quarter of an hour for this.
    eventually("nothing is sent now", || rate(&scraped(&net, "m", "127.0.0.1:9109")) < 1e5);
    eventually("the flow is over", || flows(&scraped(&net, "b", "127.0.0.1:9109")) == 0.0);
    let received = scraped(&net, "b", "127.0.0.1:9109");
    assert!(flows(&received) == 0.0 && value(&received, "explicated_ended_total") == 1.0, "{received}");
    assert!(value(&received, "explicated_payload_bytes_total") > 0.0, "{received}");
    [rate(&busy), share]
}

#[test]
#[ignore = "needs root: make linux"]
fn loopback_is_refused_and_offloads_are_told_of() {
    let net = chain();
    let refused = net.program("m", &["router", "--port", "left", "--port", "lo"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("`lo` is a loopback interface"), "{said}");
    let refused = net.program("m", &["router", "--port", "left", "--port", "right rate = \"5Mbit/s\""]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("a colon follows the interface"));
    // Virtual cables segment and put together by default.
    let run = || {
        let output = net.program("m", &["router", "--port", "left", "--port", "right", "--time", "0.2"]);
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stderr).to_string() + &String::from_utf8_lossy(&output.stdout)
    };
    let said = run();
    assert!(said.contains("left may merge packets (tso") && said.contains("ethtool -K right tso off"), "{said}");
    for device in ["left", "right"] {
        net.inside("m", move || offloads_off(device).unwrap()).join().unwrap();
    }
    let said = run();
    assert!(!said.contains("may merge packets"), "{said}");
}
