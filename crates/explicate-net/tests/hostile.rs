//! Malformed and forged frames, through the parts of a router (parser, agent, port, queue, writer) and into both ends of
//! transfers: nothing panics, nothing grows, nothing gets stuck. The clock is counted, so millions of frames take seconds.

use std::net::Ipv4Addr;
use std::path::Path;

use explicate_build::ports::port;
use explicate_core::datagram;
use explicate_core::endpoint::{FlowInit, ReceiverEndpoint, SenderEndpoint, set_guarded};
use explicate_core::params::Values;
use explicate_core::port::Store;
use explicate_core::registry;
use explicate_core::rng::Rng;
use explicate_core::units::{Rate, Time};
use explicate_core::wire::{Congestion, Extension, Format, Packet, SackRanges, UDP_PORT, flag};
use explicate_net::agent::AgentHost as Speaker;
use explicate_net::files::probed::Probe;
use explicate_net::forward::frame::{self, Anomaly as Odd, IP, Kind, Parsed, parse as lift};
use explicate_net::forward::made::make;
use explicate_net::forward::output::Output;
use explicate_net::forward::pool::Pool;
use explicate_net::forward::scone::{Basis, Scone};
use explicate_net::sys::OFFLOAD_LEN;
use explicate_scenario::model::Scenario;

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
/// Frames that a router may hold.
const MOST: usize = 4096;
/// Between two frames that come.
const STEP: Time = Time::micros(50);

/// A channel that does everything wrong.
const WRONG: &str = r#"{ kind = "corruption", rate = "1%" }, { kind = "duplication" }, { kind = "reordering" }"#;

/// A router between two interfaces, without the sockets.
struct Middle {
    outputs: [Output; 2],
    pool: Pool,
    speaker: Speaker,
    malformed: u64,
    explicit: u64,
    dropped: u64,
}

impl Middle {
    fn new(channel: &str, queue: &str) -> Middle {
        let text = r#"
            duration = "1s"
            [topology]
            kind = "dumbbell"
            access = { rate = "1Gbit/s", delay = "1ms" }
            bottleneck = { rate = "40Mbit/s", delay = "5ms", queue = { kind = "QUEUE", limit = "200pkt" } }
            [[link]]
            name = "r1->r2"
            channel = [CHANNEL]
            [[flows]]
            name = "f"
            protocol = "xcp_i"
        "#;
        let text = text.replace("CHANNEL", channel).replace("QUEUE", queue);
        let scenario = Scenario::parse(&text, "hostile", Path::new("."), &[]).unwrap();
        let output = |name: &str| {
            let link = scenario.links.iter().find(|l| l.name == name).unwrap();
            let mut output = Output::new(port(link, 0, 1, u64::MAX, None), link.delay);
            output.scone = Some(Box::new(Scone::new(Basis::Rate(1e6), 1)));
            output
        };
        let protocol = registry::resolve("xcp_i").unwrap().protocol;
        let speaker = Speaker::new(protocol, &Values::default(), ROUTER, Rng::stream(1, "agent")).unwrap();
        let (malformed, explicit, dropped) = Default::default();
        let outputs = [output("r1->r2"), output("r2->r1")];
        Middle { outputs, pool: Pool::new(MOST), speaker, malformed, explicit, dropped }
    }

    /// What [`explicate_net::forward::Forwarder`] does with a frame that came and is for the other side.
    fn handle(&mut self, now: Time, to: usize, bytes: &[u8]) {
        if bytes.len() < IP {
            return;
        }
        let lifted = lift(bytes);
        if lifted.anomaly == Some(Odd::Malformed) {
            self.malformed += 1;
            return;
        }
        let Some(handle) = self.pool.take(bytes) else {
            self.dropped += 1;
            return;
        };
        if let Kind::Explicit { writable, .. } = lifted.kind {
            self.explicit += 1;
            let (source, destination) = frame::addresses(bytes, lifted.ip);
            let packet = self.pool.packet(handle);
            if packet.transport.has(flag::CONTROL) && destination == ROUTER {
                self.speaker.handle_control(now, source, packet);
                return self.pool.release(handle);
            }
            if packet.ttl <= 1 {
                return self.pool.release(handle);
            }
            packet.ttl -= 1;
            if writable && !packet.is_ack() {
                self.outputs[to].catch_up(now, &mut self.pool);
                let view = self.outputs[to].port.view();
                self.speaker.handle_data(now, self.pool.packet(handle), destination, Some(&view));
            }
        }
        self.outputs[to].enqueue(now, handle, &mut self.pool);
    }

    /// What leaves until now.
    fn leaving(&mut self, now: Time, mut each: impl FnMut(usize, &[u8])) {
        self.speaker.handle_timeout(now);
        while self.speaker.poll(now).is_some() {}
        let mut ready = Vec::new();
        for to in [0, 1] {
            self.outputs[to].run(now, now, &mut self.pool, &mut ready);
            for handle in ready.drain(..) {
                self.pool.finish(handle);
                each(to, self.pool.bytes(handle));
                self.pool.release(handle);
            }
        }
    }

    /// Frames held, and those accounted for.
    fn audit(&self) -> (usize, usize) {
        let held = |o: &Output| o.held().0 + o.held().1;
        (self.pool.live(), self.outputs.iter().map(held).sum())
    }
}

fn framed(packet: &Packet, sack: &SackRanges, payload: &[u8], to: Ipv4Addr) -> Vec<u8> {
    let from = if to == SENDER { RECEIVER } else { SENDER };
    make(packet, sack, payload, ([2; 6], [4; 6]), (from.octets(), to.octets()), (UDP_PORT, UDP_PORT))
}

/// Good frames of all kinds, and the fuzzers' headers in frames.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut data = Packet::EMPTY;
    data.transport.set_flow(7);
    data.transport.set_payload(40);
    for format in [None, Some(Format::STANDARD), Some(Format::MINIMAL), Some(Format::WINDOW)] {
        let mut packet = Packet { congestion: format.map_or(Congestion::NONE, Congestion::new), tos: 2, ..data };
        packet.congestion.set_delta_throughput(if format.is_some() { 100_000 } else { 0 });
        seeds.push(framed(&packet, &SackRanges::NONE, &[1; 40], RECEIVER));
        if format == Some(Format::STANDARD) {
            Extension { counter: 60, node: u32::from(SENDER) }.put(&mut packet);
            seeds.push(framed(&packet, &SackRanges::NONE, &[1; 40], RECEIVER));
        }
    }
    let mut syn = data;
    syn.transport.set_flags(flag::SYN);
    seeds.push(framed(&syn, &SackRanges::NONE, &[], RECEIVER));
    let (mut ack, mut sack) = (data, SackRanges::NONE);
    ack.transport.set_flags(flag::ACK);
    sack.push(3, 9);
    ack.transport.set_sack_count(1);
    seeds.push(framed(&ack, &sack, &[], SENDER));
    for came in [None, Some(Time(9))] {
        let probe = Probe { index: 1, permit: 2, sent: Time(3), came };
        seeds.push(framed(&probe.to_packet(), &SackRanges::NONE, &[], RECEIVER));
    }
    let mut asked = Packet::EMPTY;
    asked.transport.set_flags(flag::CONTROL);
    seeds.push(framed(&asked, &SackRanges::NONE, &[0; 200], ROUTER));
    for folder in ["headers", "agents"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let mut frame = framed(&data, &SackRanges::NONE, &bytes, RECEIVER);
            let at = IP + 28;
            frame.splice(at..at + 24, []);
            let length = (frame.len() - IP) as u16;
            frame[IP + 2..IP + 4].copy_from_slice(&length.to_be_bytes());
            frame[IP + 24..IP + 26].copy_from_slice(&(length - 20).to_be_bytes());
            seeds.push(frame);
        }
    }
    seeds
}

/// Changes some bytes, most often in the headers, and sometimes the length.
fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let draw = rng.next_u64();
    for i in 0..draw % 5 {
        let near = rng.next_u64();
        let reach = if near & 3 == 0 { bytes.len() } else { bytes.len().min(IP + 96) };
        let at = (near >> 8) as usize % reach;
        bytes[at] = if i == 0 { bytes[at] ^ 1 << (near >> 4 & 7) } else { (near >> 56) as u8 };
    }
    // What the network card notes of offloads is not the sender's to say.
    bytes[..OFFLOAD_LEN].fill(0);
    match draw >> 32 & 31 {
        0 => bytes.truncate((draw >> 40) as usize % bytes.len()),
        1 => bytes.resize(bytes.len() + (draw >> 40) as usize % 1500, 0xaa),
        _ => {}
    }
}

/// Memory that this process has in use, bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * text.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
}

fn init(id: u32, values: &Values) -> FlowInit<'_> {
    let resolved = registry::resolve("xcp_i").unwrap();
    let fallback = registry::resolve("newreno").unwrap();
    FlowInit {
        id,
        protocol: resolved.protocol,
        fallback,
        recovery: resolved.recovery,
        values,
        packet: 1000,
        interface: Rate::mbps(1000),
    }
}

/// Sends `count` spoilt frames through a router into both ends of a transfer, then does a transfer that must succeed.
fn survives(count: u64) {
    let (mut middle, seeds, values) = (Middle::new(WRONG, "droptail"), seeds(), Values::default());
    let mut rng = Rng::stream(count, "hostile");
    let (mut victim, mut receiver) = (SenderEndpoint::new(&init(7, &values)), ReceiverEndpoint::new(&init(7, &values)));
    victim.write(u64::MAX, false);
    let (mut now, mut bytes, mut before, mut reached) = (Time::ZERO, Vec::new(), 0, 0u64);
    for i in 0..count {
        now += STEP;
        bytes.clone_from(&seeds[rng.next_u64() as usize % seeds.len()]);
        spoil(&mut rng, &mut bytes);
        middle.handle(now, (i & 15 == 0) as usize, &bytes);
        middle.leaving(now, |_, bytes| {
            let Some(Ok(read)) = bytes.get(IP + 28..).map(datagram::read) else { return };
            reached += 1;
            let header = &read.packet.transport;
            if header.has(flag::CONTROL) {
                let _ = Probe::of(&read.packet);
            } else if header.has(flag::ACK) {
                victim.handle_packet(now, &read.packet, &read.sack);
            } else {
                receiver.handle_packet(now, &read.packet);
            }
        });
        if i % 64 == 0 {
            if receiver.poll_timeout() <= now {
                receiver.handle_timeout(now);
            }
            let (mut answer, mut sack) = (Packet::EMPTY, SackRanges::NONE);
            while receiver.poll_transmit(now, &mut answer, &mut sack) {}
            if victim.poll_timeout() <= now {
                victim.handle_timeout(now);
            }
            let mut packet = Packet::EMPTY;
            (0..4).any(|_| !victim.poll_transmit(now, &mut packet));
        }
        // All tables are as full as they get early on.
        if i == count / 4 {
            before = resident();
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more after {count} frames");
    assert!(middle.malformed > count / 50 && middle.explicit > count / 10, "{} {}", middle.malformed, middle.explicit);
    assert!(reached > count / 50, "{reached} frames passed");
    middle.outputs.iter_mut().for_each(|o| o.catch_up(now, &mut middle.pool));
    let (held, accounted) = middle.audit();
    assert_eq!(held, accounted, "no frame is lost in memory");
    completes(&mut middle, now);
}

/// Both ends of a flow through a router.
struct Transfer {
    flow: SenderEndpoint,
    receiver: ReceiverEndpoint,
}

impl Transfer {
    fn new(id: u32, values: &Values) -> Transfer {
        Transfer { flow: SenderEndpoint::new(&init(id, values)), receiver: ReceiverEndpoint::new(&init(id, values)) }
    }
    /// Sends what may be sent.
    fn send(&mut self, now: Time, middle: &mut Middle) {
        if self.flow.poll_timeout() <= now {
            self.flow.handle_timeout(now);
        }
        let mut packet = Packet::EMPTY;
        while self.flow.poll_transmit(now, &mut packet) {
            let payload = if packet.transport.has(flag::SYN) { 0 } else { packet.transport.payload() as usize };
            middle.handle(now, 0, &framed(&packet, &SackRanges::NONE, &vec![0; payload], RECEIVER));
        }
        if self.receiver.poll_timeout() <= now {
            self.receiver.handle_timeout(now);
        }
    }
    /// Takes what came to one of its ends. The receiver answers, with more feedback than came if it is `greedy`.
    fn arrives(&mut self, now: Time, to: usize, lifted: &Parsed, greedy: bool, middle: &mut Middle) {
        if to == 1 {
            return self.flow.handle_packet(now, &lifted.packet, &lifted.sack);
        }
        self.receiver.handle_packet(now, &lifted.packet);
        let (mut packet, mut sack) = (Packet::EMPTY, SackRanges::NONE);
        if self.receiver.poll_transmit(now, &mut packet, &mut sack) {
            if greedy && packet.congestion.is_present() {
                packet.congestion.set_reverse_feedback(100_000);
            }
            middle.handle(now, 1, &framed(&packet, &sack, &[], SENDER));
        }
    }
}

/// A transfer of 2 MB through the router comes to its end.
fn completes(middle: &mut Middle, mut now: Time) {
    let mut transfer = Transfer::new(9, &Values::default());
    transfer.flow.write(2_000_000, true);
    let end = now + Time::secs(60);
    while transfer.flow.poll_event() != Some(explicate_core::endpoint::Event::Drained) {
        assert!(now < end, "the transfer is stuck at segment {}", transfer.flow.acked());
        now += Time::micros(200);
        transfer.send(now, middle);
        let mut arrived = Vec::new();
        middle.leaving(now, |to, bytes| arrived.push((to, lift(bytes), checks(bytes))));
        // The socket of a real end would drop datagrams with a wrong checksum.
        for (to, lifted, _) in arrived.iter().filter(|(_, lifted, whole)| *whole && lifted.packet.transport.flow() == 9)
        {
            transfer.arrives(now, *to, lifted, false, middle);
        }
    }
    assert!(transfer.receiver.stats().payload >= 2_000_000);
}

/// What each of two flows delivers in each of three spans of six seconds, as a share of the link, and packets dropped at the queue. The
/// first one's receiving end returns more feedback than came if it is `greedy`, and it ends after the first span.
fn shares(greedy: bool, guarded: bool, queue: &str) -> ([[f64; 2]; 3], u64) {
    const SPAN: Time = Time::secs(6);
    let (mut middle, mut values) = (Middle::new("", queue), Values::default());
    set_guarded(&mut values, guarded);
    let mut transfers = [0, 1].map(|id| Transfer::new(id, &values));
    transfers.iter_mut().for_each(|transfer| transfer.flow.write(u64::MAX, false));
    let (mut now, mut delivered) = (Time::ZERO, [[0.0; 2]; 3]);
    while now + Time::micros(200) < Time(3 * SPAN.0) {
        now += Time::micros(200);
        if now == SPAN {
            transfers[0].flow.withdraw();
        }
        transfers.iter_mut().for_each(|transfer| transfer.send(now, &mut middle));
        let mut arrived = Vec::new();
        middle.leaving(now, |to, bytes| arrived.push((to, lift(bytes))));
        for (to, lifted) in &arrived {
            let id = lifted.packet.transport.flow() as usize;
            let Some(transfer) = transfers.get_mut(id) else { continue };
            let before = transfer.receiver.stats().payload;
            transfer.arrives(now, *to, lifted, greedy && id == 0, &mut middle);
            let bytes = transfer.receiver.stats().payload - before;
            delivered[(now.0 / SPAN.0) as usize][id] += bytes as f64 * 8.0 / 6.0 / 40e6;
        }
    }
    (delivered, middle.outputs[0].port.stats.total().overflow)
}

/// As the documentation says: it is not prevented, and it is over when it is over.
#[test]
fn a_greedy_receiver_takes_nearly_all_while_it_lasts() {
    let (fair, drops) = shares(false, false, "droptail");
    assert!(fair[0].iter().sum::<f64>() > 0.8 && drops == 0, "{fair:?} {drops}");
    assert!((0.8..1.25).contains(&(fair[0][0] / fair[0][1])), "{fair:?}");
    let (taken, drops) = shares(true, false, "droptail");
    assert!(taken[0][0] > 2.0 * taken[0][1] && drops > 0, "{taken:?} {drops}");
    assert!(taken.iter().flatten().sum::<f64>() <= 3.0, "{taken:?}");
    assert!(taken[2][1] > 0.8, "the other one has all again: {taken:?}");
}

/// The same to a sender with its guard, which is the default: the losses make TCP's window its limit, so the queue is that of a TCP flow.
#[test]
fn losses_limit_the_sender_to_a_greedy_receiver() {
    let (fair, drops) = shares(false, true, "droptail");
    assert!(fair[0].iter().sum::<f64>() > 0.8 && drops == 0, "{fair:?} {drops}");
    let ((taken, drops), (_, unguarded)) = (shares(true, true, "droptail"), shares(true, false, "droptail"));
    assert!(drops > 0 && 10 * drops < unguarded, "{drops} {unguarded}");
    assert!(taken[1][1] > 0.8 && taken[2][1] > 0.8, "the other one has all again: {taken:?}");
}

/// With a queue per flow the other flow keeps more than half of its share, and a single flow on the line loses nothing.
#[test]
fn fair_queueing_protects_from_a_greedy_receiver() {
    let (taken, _) = shares(true, true, "droptail");
    let (separate, drops) = shares(true, true, "fq_codel");
    assert!(separate[0][1] > 0.2 && separate[0][1] > 4.0 * taken[0][1], "{taken:?} {separate:?}");
    assert!(drops > 0 && separate[1][1] > 0.8, "{separate:?} {drops}");
    let (fair, _) = shares(false, true, "fq_codel");
    assert!(fair[0].iter().all(|share| *share > 0.4), "{fair:?}");
}

#[test]
fn feedback_forged_on_the_way_is_only_lowered() {
    let mut middle = Middle::new("", "droptail");
    let (mut rng, mut now, mut lowered) = (Rng::stream(3, "forged"), Time::ZERO, 0);
    for i in 0..200_000u32 {
        // More than the link carries, so that there is nothing to give away.
        now += Time::micros(180);
        let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
        packet.congestion.set_x(explicate_core::protocols::rate_header::seconds_to_units(0.001));
        packet.congestion.set_rtt(explicate_core::protocols::rate_header::seconds_to_units(0.02));
        let asked = (rng.next_u64() >> 33) as i32 >> (i % 24);
        packet.congestion.set_delta_throughput(asked);
        packet.transport.set_packet_number(asked as u32);
        middle.handle(now, 0, &framed(&packet, &SackRanges::NONE, &[0; 900], RECEIVER));
        middle.leaving(now, |_, bytes| {
            let told = lift(bytes).packet;
            let (asked, given) = (told.transport.packet_number() as i32, told.congestion.delta_throughput());
            assert!(given <= asked, "{asked} became {given}");
            lowered += u32::from(given < asked);
        });
    }
    assert!(lowered > 50_000, "{lowered}");
}

/// QUIC's datagrams have fields in the place of the window. A packet in memory has no room for them if it carries the fields of XCP-i.
#[test]
fn routers_leave_what_stands_in_the_place_of_the_window_alone() {
    let mut middle = Middle::new("", "droptail");
    let mut packet = Packet { congestion: Congestion::new(Format::STANDARD), ..Packet::EMPTY };
    packet.congestion.set_delta_throughput(1_000_000_000);
    for with_fields in [false, true] {
        if with_fields {
            Extension { counter: 60, node: u32::from(SENDER) }.put(&mut packet);
        }
        let mut frame = framed(&packet, &SackRanges::NONE, &[0; 900], RECEIVER);
        let at = IP + 28 + packet.congestion.0[1] as usize + 16;
        frame[at..at + 4].copy_from_slice(b"high");
        // Without a checksum; the router is not to be asked for one.
        frame[IP + 26..IP + 28].fill(0);
        let (begun, mut seen) = (1000 * u64::from(with_fields), 0);
        middle.handle(Time::millis(begun), 0, &frame);
        for ms in begun..begun + 100 {
            middle.leaving(Time::millis(ms), |_, bytes| {
                assert_ne!(bytes[IP + 28..at], frame[IP + 28..at], "the router wrote");
                assert_eq!(&bytes[at..at + 4], b"high");
                seen += 1;
            });
        }
        assert_eq!(seen, 1);
    }
}

/// Whether the UDP checksum of a frame is right.
fn checks(bytes: &[u8]) -> bool {
    let Some(ip) = bytes.get(IP..).filter(|ip| ip.len() > 28) else { return false };
    let words =
        |bytes: &[u8]| bytes.chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(*p.get(1).unwrap_or(&0))).sum::<u32>();
    let mut sum = 17 + words(&ip[24..26]) + words(&ip[12..20]) + words(&ip[20..]);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

#[test]
fn half_a_million_hostile_frames() {
    survives(500_000);
}

#[test]
#[ignore = "takes long: make hostile"]
fn ten_million_hostile_frames() {
    survives(10_000_000);
}
