//! The Wireshark dissector on captured packets of every kind. Needs tshark, which `make linux` installs.

use std::fs;
use std::process::Command;

use explicate_core::units::Time;
use explicate_core::wire::{Congestion, Extension, Format, Packet, SackRanges, UDP_PORT, flag};
use explicate_net::files::probed::Probe;
use explicate_net::forward::made;
use explicate_net::sys::OFFLOAD_LEN;

#[test]
#[ignore = "needs tshark: make linux"]
fn wireshark_reads_every_field() {
    let mut data = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
    data.congestion.set_delta_throughput(-1500);
    data.congestion.set_reverse_feedback(77);
    data.congestion.set_rtt(5);
    data.set_mark(data.mark().after(Time::millis(20)));
    Extension { counter: 61, node: 0x0a01_0203 }.put(&mut data);
    data.transport.set_flags(flag::FIN);
    data.transport.set_flow(4_000_000_001);
    data.transport.set_segment(42);
    data.transport.set_payload(3);
    let mut ack = Packet { congestion: Congestion::new(Format::MINIMAL), ..Packet::EMPTY };
    ack.transport.set_flags(flag::ACK);
    ack.transport.set_segment(43);
    ack.transport.set_sack_count(2);
    let mut sack = SackRanges::default();
    sack.push(50, 60);
    sack.push(70, 71);
    let mut syn = Packet::EMPTY;
    syn.transport.set_flags(flag::SYN);
    let probe = Probe { index: 1, permit: 7, sent: Time(3), came: None };
    let frames = [
        (data, SackRanges::NONE, &b"abc"[..]),
        (ack, sack, b""),
        (syn, SackRanges::NONE, b""),
        (probe.to_packet(), SackRanges::NONE, b""),
    ];
    // pcap: magic, version 2.4, zone, accuracy, longest, Ethernet; a frame: seconds, microseconds, both lengths.
    let mut capture: Vec<u8> = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        capture.extend(word.to_le_bytes());
    }
    for (packet, sack, payload) in frames {
        let (stations, addresses) = (([1; 6], [2; 6]), ([10, 0, 0, 1], [10, 0, 0, 2]));
        let frame = made::make(&packet, &sack, payload, stations, addresses, (61_000, UDP_PORT));
        let bytes = &frame[OFFLOAD_LEN..];
        for word in [0, 0, bytes.len() as u32, bytes.len() as u32] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend(bytes);
    }
    let file = std::env::temp_dir().join(format!("explicate-dissector-{}.pcap", std::process::id()));
    fs::write(&file, capture).unwrap();
    let script = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../../docs/wireshark.lua");
    let mut command = Command::new("tshark");
    // Not with the settings of the user who runs this.
    command.env("HOME", std::env::temp_dir());
    command.args(["-X", script, "-o", "udp.check_checksum:TRUE", "-r"]).arg(&file).args([
        "-T",
        "fields",
        "-E",
        "separator=|",
    ]);
    let fields = [
        "udp.checksum.status",
        "explicate.delta_throughput",
        "explicate.reverse_feedback",
        "explicate.rtt",
        "explicate.mark",
        "explicate.ttl",
        "explicate.last_router",
        "explicate.flow",
        "explicate.segment",
        "explicate.acknowledgement",
        "explicate.payload",
        "explicate.flags.fin",
        "explicate.sack",
    ];
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark runs");
    fs::remove_file(&file).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}{said}");
    assert!(!said.contains("rror"), "{said}");
    let plain: Vec<String> = lines.iter().map(|l| l.replace("True", "1").replace("False", "0")).collect();
    assert_eq!(plain[0], "1|-1500|77|5|41|61|10.1.2.3|4000000001|42||3|1|");
    assert_eq!(plain[1], "1|0|0|0|0|||0||43||0|[50, 60),[70, 71)");
    assert_eq!(plain[2], "1|||||||0|0||0|0|");
    assert_eq!(plain[3], "1|||||||||||0|", "a message");
}
