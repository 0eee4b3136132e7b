//! End points, router and link as separate programs, on this machine's kernel. Needs root, so `make linux` runs it.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{arrives, chain, eventually, file, last_json, run, scraped, series, takes_a_stream};

#[test]
#[ignore = "needs root: make linux"]
fn a_file_arrives_the_same_over_a_link_that_does_everything_wrong() {
    let net = chain();
    let wrong = "rate = \"40Mbit/s\", delay = \"5ms\", queue = { kind = \"droptail\", limit = \"100pkt\" }, channel = [\
                 { kind = \"random_loss\", rate = \"1%\" }, { kind = \"reordering\" }, { kind = \"duplication\" }, \
                 { kind = \"corruption\", rate = \"1%\" }]";
    let link = net.start("m", &["link", "left", "right", "--there", wrong, "--json"]);
    let (path, content) = file(&net, 5_000_003);
    let folder = net.folder.join("received");
    let mut recv = net.start("b", &["recv", "--open", "--to", folder.to_str().unwrap(), "--once", "--json"]);
    let sent =
        net.program("a", &["send", "--transport", "udp", "10.9.0.2", &path, "--protocol", "cubic/sack", "--json"]);
    let said = String::from_utf8_lossy(&sent.stdout).to_string() + &String::from_utf8_lossy(&sent.stderr);
    assert!(sent.status.success(), "{said}");
    let (said, good) = recv.wait(10);
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
    let told = last_json(&link.stop("INT"));
    let right = &told["ports"][1];
    for what in ["lost", "damaged"] {
        assert!(right[what].as_u64().unwrap() > 10, "{what}: {right}");
    }
    assert_eq!((&told["missed"], &told["errors"]), (&0.into(), &0.into()));
}

#[test]
#[ignore = "needs root: make linux"]
fn transfers_survive_a_router_that_is_started_again_and_fail_clearly_without_a_receiver() {
    let net = chain();
    let port = "right: rate = \"20Mbit/s\", queue = { kind = \"droptail\", limit = \"100pkt\" }";
    let start = || net.start("m", &["router", "--port", "left", "--port", port]);
    let router = start();
    let (path, content) = file(&net, 8_000_000);
    let folder = net.folder.join("received");
    let to = folder.to_str().unwrap().to_string();
    let recv = net.start("b", &["recv", "--open", "--to", &to]);
    let mut send = net.start("a", &["send", "--transport", "udp", "10.9.0.2", &path]);
    arrives(&folder, 500_000);
    router.stop("KILL");
    sleep(Duration::from_millis(300));
    let _router = start();
    let (said, good) = send.wait(30);
    assert!(good, "{said}");
    assert!(fs::read(folder.join("sent.bin")).unwrap() == content, "another file");
    fs::remove_file(folder.join("sent.bin")).unwrap();

    // The receiver is restarted: it does not know the transfer, and reports that.
    let mut send = net.start("a", &["send", "--transport", "udp", "10.9.0.2", &path]);
    arrives(&folder, 500_000);
    recv.stop("KILL");
    let recv = net.start("b", &["recv", "--open", "--to", &to]);
    let (said, good) = send.wait(30);
    assert!(!good && said.contains("is unknown to the other end"), "{said}");
    assert!(!folder.join("sent.bin").exists());

    // It ends for good.
    recv.stop("KILL");
    let sent = net.program("a", &["send", "--transport", "udp", "10.9.0.2", &path, "--patience", "3"]);
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(!sent.status.success() && said.contains("no answer from 10.9.0.2"), "{said}");
}

#[test]
#[ignore = "needs root: make linux"]
fn counters_are_served_to_prometheus() {
    let net = chain();
    let arguments = ["router", "--port", "left", "--port", "right", "--metrics", "127.0.0.1:9109"];
    let router = net.start("m", &arguments);
    net.exec("a", "ping -c 2 -i 0.2 10.9.0.2");
    let none = ["CapEff:\t0000000000000000", "NoNewPrivs:\t1"].map(String::from).into();
    assert_eq!(router.privileges(), none);
    // Two questions and two answers, at least.
    let sent = || series(&scraped(&net, "m", "127.0.0.1:9109"), "explicated_sent_total");
    assert!(sent().is_some(), "from the start");
    eventually("the counters have them", || sent().is_some_and(|sent| sent >= 4.0));
    router.stop("TERM");
    run("ip netns list");
}

/// The kernel's TCP leaves segments to its interface to cut, and their checksums too.
#[test]
#[ignore = "needs root: make linux"]
fn tcp_passes_a_router_whole() {
    let net = chain();
    let port = "right: rate = \"80Mbit/s\", queue = { kind = \"droptail\", limit = \"200kB\" }";
    let router = net.start("m", &["router", "--port", "left", "--port", port, "--json"]);
    let content: Vec<u8> = (0..4_000_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    let sent = content.clone();
    let receiver = takes_a_stream(&net, "10.9.0.2:5000");
    net.inside("a", move || TcpStream::connect("10.9.0.2:5000").unwrap().write_all(&sent).unwrap()).join().unwrap();
    assert!(receiver.join().unwrap() == content, "other bytes");
    let told = last_json(&router.stop("INT"));
    assert_eq!((&told["explicit"], &told["cut"], &told["errors"]), (&0.into(), &0.into(), &0.into()));
}
