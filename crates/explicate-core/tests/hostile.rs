//! Strangers' packets through an element that writes into them: whatever they are, nothing panics, no advice rises,
//! what is no SCONE packet leaves byte for byte as it came, and a checksum that was right stays right.

use explicate_core::rng::Rng;
use explicate_core::units::Time;
use explicate_core::wire::scone::{Advice, Element, MOST, Outcome, SconePacket};

/// What a packet of a flow looks like before it is damaged: IPv4 or IPv6, with or without SCONE.
fn good(rng: &mut Rng) -> Vec<u8> {
    let draw = rng.next_u64();
    let flag = |bit: u32| draw >> bit & 1 == 1;
    let mut payload = vec![0; 48 + (draw >> 56) as usize];
    let ids: [u8; 20] = core::array::from_fn(|i| (draw >> (i % 8)) as u8);
    let destination = &ids[..(draw >> 8) as usize % 21];
    let rest: &[u8] = if flag(4) { &[0x40] } else { &[0xc0, 0, 0, 0, 1] };
    let advice = Advice::from_index((draw >> 16) as u8 & 0x7f).unwrap();
    let written = SconePacket { advice, destination, source: &ids[..(draw >> 24) as usize % 5], rest };
    let mut end = written.write(&mut payload).unwrap();
    if !flag(4) {
        payload[end] = destination.len() as u8;
        end += 1;
    }
    if let Some(after) = payload.get_mut(end..end + destination.len()) {
        after.copy_from_slice(destination);
    }
    if !flag(0) && !flag(1) {
        payload[0] &= 0x7f; // a short header, as most packets have
    }
    let length = (8 + payload.len()) as u16;
    let udp = [&[0x30, 0x39, 1, 0xbb][..], &length.to_be_bytes(), &[0, 0], &payload].concat();
    let head = if flag(2) {
        let total = (20 + length).to_be_bytes();
        [&[0x45, 0][..], &total, &[0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0], &[(draw >> 32) as u8, 2]].concat()
    } else if flag(3) {
        [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[17, 64], &[0xfd; 32]].concat()
    } else {
        let kind = [0, 43, 44, 60, 51][(draw >> 40) as usize % 5];
        let extension: [u8; 8] = if kind == 51 { [17, 0, 0, 0, 0, 0, 0, 0] } else { [17, 0, 0, 0, 0, 0, 0, 7] };
        [&[0x60, 0, 0, 0][..], &(8 + length).to_be_bytes(), &[kind, 64], &[0xfd; 32], &extension].concat()
    };
    let at = head.len();
    let mut packet = [head, udp].concat();
    if flag(5) || flag(6) {
        let sum = !sum(&packet, at, packet.len());
        packet[at + 6..at + 8].copy_from_slice(&if sum == 0 { 0xffff } else { sum }.to_be_bytes());
    }
    packet
}

/// The sum of the words that the checksum of the UDP datagram at `udp` covers, with itself.
fn sum(packet: &[u8], udp: usize, end: usize) -> u16 {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    let pseudo = [0, 17, packet[udp + 4], packet[udp + 5]];
    let mut sum = 0u64;
    for part in [addresses, &pseudo, &packet[udp..end]] {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Damages a packet: some bytes, mostly those of its headers, and its length.
fn damage(packet: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.next_u64() % 4 {
        let near = packet.len().min(if rng.uniform() < 0.8 { 90 } else { usize::MAX });
        let at = rng.next_u64() as usize % near;
        packet[at] = if rng.uniform() < 0.5 { rng.next_u64() as u8 } else { packet[at] ^ 1 << (rng.next_u64() % 8) };
    }
    if rng.uniform() < 0.1 {
        packet.truncate(rng.next_u64() as usize % (packet.len() + 1));
    }
}

fn signal(packet: &[u8], at: usize) -> u8 {
    (packet[at] & 0x3f) << 1 | packet[at + 1] >> 7
}

/// Sends `count` packets through an element, whose advice changes now and then.
fn rewriting(count: u64, seed: u64) {
    let mut rng = Rng::stream(seed, "hostile");
    let mut element = Element::new(seed);
    let mut lowered = 0;
    for number in 0..count {
        if number % 1000 == 0 {
            element.advice = Advice::from_index(rng.next_u64() as u8 & 0x7f).unwrap();
        }
        let mut packet = good(&mut rng);
        if rng.uniform() < 0.05 {
            packet.iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
        }
        damage(&mut packet, &mut rng);
        let before = packet.clone();
        let partial = rng.uniform() < 0.05;
        // A flow sends more than it may have rewritten, so time runs fast.
        let outcome = element.pass(Time::millis(200 * number), &mut packet, partial);
        assert_eq!(packet.len(), before.len());
        if outcome != Outcome::Lowered {
            assert_eq!(packet, before, "{outcome:?}");
            continue;
        }
        lowered += 1;
        assert!(!partial);
        let udp = if packet[0] >> 4 == 4 { 4 * usize::from(packet[0] & 0xf) } else { 40 };
        let end = udp + usize::from(u16::from_be_bytes([packet[udp + 4], packet[udp + 5]]));
        let (old, new) = (signal(&before, udp + 8), signal(&packet, udp + 8));
        assert!(new < old && new == element.advice.index(), "{old} became {new}");
        let mut restored = packet.clone();
        restored[udp + 6..udp + 10].copy_from_slice(&before[udp + 6..udp + 10]);
        assert_eq!(restored, before, "more has changed than checksum and signal");
        assert_eq!((packet[udp + 8] ^ before[udp + 8]) & 0xc0, 0);
        assert_eq!((packet[udp + 9] ^ before[udp + 9]) & 0x7f, 0);
        let checksum = |packet: &[u8]| u16::from_be_bytes([packet[udp + 6], packet[udp + 7]]);
        assert_eq!(checksum(&packet) == 0, checksum(&before) == 0, "no checksum stays none, one stays one");
        if checksum(&before) != 0 {
            let right = |packet: &[u8]| sum(packet, udp, end) == 0xffff;
            assert_eq!(right(&packet), right(&before), "a checksum changed its truth");
        }
    }
    let counters = element.counters;
    let seen = [counters.lowered, counters.kept, counters.limited, counters.fragments, counters.extensions];
    assert!(seen.iter().all(|number| *number > count / 10_000), "each kind of packet came: {counters:?}");
    assert!(counters.partial > 0 && counters.lowered == lowered);
    // 256 flows of IPv4, and those that damage makes.
    let periods = count / 5 / 67 + 1;
    assert!(lowered <= 8192 * MOST * periods);
}

#[test]
fn hostile_packets_are_never_raised_nor_damaged() {
    rewriting(200_000, 1);
}

/// `make hostile`.
#[test]
#[ignore = "a minute"]
fn ten_million_hostile_packets_raise_nothing() {
    for seed in 2..12 {
        rewriting(1_000_000, seed);
    }
}
