//! Tests of elements.

use super::*;
use alloc::vec::Vec;

fn advice(index: u8) -> Advice {
    Advice::from_index(index).unwrap()
}
/// A SCONE packet with this signal before a short header.
fn datagram(signal: u8) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    let scone = SconePacket { advice: advice(signal), destination: &[7; 8], source: &[], rest: &[0x40] };
    let end = scone.write(&mut bytes).unwrap();
    bytes[end..end + 8].fill(7);
    bytes
}
/// The sum of the words of these parts; all but the last have even lengths.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
/// Whether the checksum of the UDP datagram at `udp` is right: all words with it give ones.
fn is_right(packet: &[u8], udp: usize) -> bool {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    let end = udp + usize::from(word(packet, udp + 4));
    sum(&[addresses, &[0, UDP], &packet[udp + 4..udp + 6], &packet[udp..end]]) == 0xffff
}
fn udp(payload: &[u8]) -> Vec<u8> {
    let length = (UDP_LEN + payload.len()) as u16;
    [&[0x30, 0x39, 1, 0xbb][..], &length.to_be_bytes(), &[0, 0], payload].concat()
}
/// Fills in the checksum.
fn summed(mut packet: Vec<u8>, at: usize) -> Vec<u8> {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    let found = !sum(&[addresses, &[0, UDP], &packet[at + 4..at + 6], &packet[at..]]);
    let found = if found == 0 { 0xffff } else { found };
    packet[at + 6..at + 8].copy_from_slice(&found.to_be_bytes());
    assert!(is_right(&packet, at));
    packet
}
fn ipv4(payload: &[u8]) -> Vec<u8> {
    let total = (20 + UDP_LEN + payload.len()) as u16;
    let head = [&[0x45, 0][..], &total.to_be_bytes(), &[0, 1, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
    summed([head, udp(payload)].concat(), 20)
}
/// With `extensions` before the UDP header, the first of this kind.
fn ipv6(next: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = (extensions.len() + UDP_LEN + payload.len()) as u16;
    let head = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[next, 64], &[0xfd; 31], &[2]].concat();
    summed([head, extensions.to_vec(), udp(payload)].concat(), 40 + extensions.len())
}
fn signal(packet: &[u8], udp: usize) -> u8 {
    SconePacket::parse(&packet[udp + UDP_LEN..]).unwrap().advice.index()
}
fn rewritten(packet: &[u8], target: u8) -> (Outcome, Vec<u8>) {
    let mut after = packet.to_vec();
    (rewrite(&mut after, false, advice(target), |_| true), after)
}

type Maker = fn(&[u8]) -> Vec<u8>;
fn plain_ipv6(payload: &[u8]) -> Vec<u8> {
    ipv6(UDP, &[], payload)
}

/// Each signal under each target, in both versions of IP: the lower of the two, and a right checksum.
#[test]
fn advice_is_lowered_and_the_checksum_stays_right() {
    for (packet, udp) in [(ipv4 as Maker, 20), (plain_ipv6 as Maker, 40)] {
        for before in 0..=127 {
            for target in 0..=127 {
                let came = packet(&datagram(before));
                let (outcome, left) = rewritten(&came, target);
                assert_eq!(signal(&left, udp), before.min(target));
                assert_eq!(outcome, if target < before { Outcome::Lowered } else { Outcome::Kept });
                assert!(is_right(&left, udp), "{before} {target}");
                let changed = came.iter().zip(&left).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at);
                let may = [udp + 6, udp + 7, udp + 8, udp + 9];
                assert!(changed.clone().all(|at| may.contains(&at)), "nothing else changes");
                assert_eq!(changed.count() == 0, outcome == Outcome::Kept);
            }
        }
    }
}

/// By hand: the word ffef under the signal 127 becomes c06f under 0. ffff is as much as 0.
#[test]
fn checksums_by_hand() {
    // ~dd2f + ~ffef + c06f = 22d0 + 0010 + c06f = e34f; ~e34f.
    assert_eq!(corrected(0xdd2f, 0xffef, 0xc06f), 0x1cb0);
    // ~3f80 + ~ffef + c06f = c07f + 0010 + c06f = 180fe, with the carry 80ff; ~80ff.
    assert_eq!(corrected(0x3f80, 0xffef, 0xc06f), 0x7f00);
    // ~c07f + ~ffef + c06f = 3f80 + 0010 + c06f = ffff: the sum is 0, which is sent as ffff.
    assert_eq!(corrected(0xc07f, 0xffef, 0xc06f), 0xffff);
    assert_eq!(corrected(0xffff, 0xffff, 0), 0xffff, "nothing but zeros");
}

#[test]
fn no_checksum_stays_none_and_a_wrong_one_wrong() {
    for mut came in [ipv4(&datagram(127)), plain_ipv6(&datagram(127))] {
        let udp = if came[0] == 0x45 { 20 } else { 40 };
        let right = word(&came, udp + 6);
        came[udp + 6..udp + 8].fill(0);
        let (outcome, left) = rewritten(&came, 9);
        assert_eq!((outcome, word(&left, udp + 6), signal(&left, udp)), (Outcome::Lowered, 0, 9));
        came[udp + 6..udp + 8].copy_from_slice(&(right ^ 0x40).to_be_bytes());
        let (outcome, left) = rewritten(&came, 9);
        assert_eq!(outcome, Outcome::Lowered);
        assert!(!is_right(&left, udp), "damage on the way here is not hidden");
    }
}

/// A checksum that becomes 0 is written as ffff, in a whole packet whose last word makes it so.
#[test]
fn a_checksum_of_zero_is_written_as_ones() {
    let mut bytes = datagram(127);
    let end = bytes.len();
    let (_, left) = rewritten(&ipv4(&bytes), 0);
    let rest = !word(&left, 26);
    // The rest of the sum is `rest` without the last word, which is 0 now: filled up, the sum is ones.
    bytes[end - 2..].copy_from_slice(&(!rest).to_be_bytes());
    let (outcome, left) = rewritten(&ipv4(&bytes), 0);
    assert_eq!((outcome, word(&left, 26)), (Outcome::Lowered, 0xffff));
    assert!(is_right(&left, 20));
}

#[test]
fn what_may_not_be_changed_is_left_alone() {
    let scone = datagram(127);
    let check = |came: &[u8], expected: Outcome| {
        let (outcome, left) = rewritten(came, 3);
        assert_eq!((outcome, left), (expected, came.to_vec()));
    };
    let v4 = |at: usize, value: u8| {
        let mut bytes = ipv4(&scone);
        bytes[at] = value;
        bytes
    };
    check(&v4(6, 0x20), Outcome::Fragment);
    check(&v4(7, 1), Outcome::Other); // not the first fragment
    check(&v4(9, 6), Outcome::Other); // TCP
    check(&v4(0, 0x55), Outcome::Other); // version 5
    check(&v4(0, 0x44), Outcome::Other); // a header of 16 bytes
    check(&v4(25, 200), Outcome::Other); // a datagram longer than its packet
    check(&v4(25, 7), Outcome::Other); // shorter than its header
    check(&v4(3, 200), Outcome::Other); // a packet longer than it is
    check(&v4(28, 0x40), Outcome::Other); // a short header
    check(&v4(29, 0x6e), Outcome::Other); // another version
    check(&v4(36, 9), Outcome::Other); // another destination behind it
    for (kind, header) in [
        (0, vec![UDP, 0, 1, 4, 0, 0, 0, 0]),
        (60, [&[UDP, 1][..], &[0; 14]].concat()),
        (43, [&[60, 0, 0, 0, 0, 0, 0, 0][..], &[UDP, 0, 0, 0, 0, 0, 0, 0]].concat()),
        (51, [&[UDP, 1][..], &[0; 10]].concat()),
    ] {
        check(&ipv6(kind, &header, &scone), Outcome::Extension);
    }
    check(&ipv6(44, &[UDP, 0, 0, 1, 0, 0, 0, 9], &scone), Outcome::Fragment);
    check(&ipv6(44, &[UDP, 0, 0, 9, 0, 0, 0, 9], &scone), Outcome::Other); // not the first
    check(&ipv6(50, &[UDP, 0, 0, 0, 0, 0, 0, 0], &scone), Outcome::Other); // encrypted
    // The first fragment of a longer datagram: its UDP length is beyond the end.
    let mut first = v4(6, 0x20);
    first[24..26].copy_from_slice(&3000u16.to_be_bytes());
    check(&first, Outcome::Fragment);
    let mut partial = ipv4(&scone);
    let before = partial.clone();
    assert_eq!(rewrite(&mut partial, true, advice(3), |_| true), Outcome::Partial);
    assert_eq!(partial, before);
    check(&ipv4(b"GET"), Outcome::Other);
    check(&[], Outcome::Other);
    // Padding of Ethernet is no part of the packet, options of IPv4 are.
    let padded = [ipv4(&scone), vec![0; 12]].concat();
    assert_eq!(rewritten(&padded, 3).0, Outcome::Lowered);
    let mut options = ipv4(&scone);
    options.splice(20..20, [1, 1, 1, 0]);
    (options[0], options[3]) = (0x46, options[3] + 4);
    let (outcome, left) = rewritten(&options, 3);
    assert_eq!((outcome, signal(&left, 24), is_right(&left, 24)), (Outcome::Lowered, 3, true));
}

/// Lengths that are 0, because a jumbogram's (RFC 2675) or an offload's does not fit or for no reason, and lengths
/// that disagree.
#[test]
fn lengths_must_agree() {
    let scone = datagram(127);
    let with = |packet: &[u8], fields: &[(usize, u16)]| {
        let mut bytes = packet.to_vec();
        fields.iter().for_each(|(at, value)| bytes[*at..at + 2].copy_from_slice(&value.to_be_bytes()));
        bytes
    };
    let (v4, v6) = (ipv4(&scone), plain_ipv6(&scone));
    // Hop-by-hop options: padding, and the jumbo payload's length.
    let jumbo = ipv6(0, &[UDP, 0, 0xc2, 4, 0, 1, 0, 0], &scone);
    let length = (UDP_LEN + scone.len()) as u16;
    for came in [
        with(&v4, &[(2, 0)]),          // of the packet
        with(&v4, &[(24, 0)]),         // of the datagram
        with(&v4, &[(2, 0), (24, 0)]), // of both
        with(&v6, &[(4, 0)]),          // the same in IPv6
        with(&v6, &[(44, 0)]),
        with(&v6, &[(4, 0), (44, 0)]),
        with(&jumbo, &[(4, 0)]),
        with(&jumbo, &[(4, 0), (52, 0)]),
        with(&v4, &[(24, length + 1)]), // a datagram longer than its packet
        with(&v6, &[(44, length + 1)]),
        with(&v4, &[(2, 20 + length - 1)]), // a packet shorter than its datagram
        with(&v6, &[(4, length - 1)]),
        with(&v4, &[(2, 20 + length + 1)]), // a packet longer than what came
        with(&v6, &[(4, length + 1)]),
        with(&v4, &[(24, UDP_LEN as u16 + 15)]), // a datagram that ends behind the SCONE packet
        with(&v6, &[(44, UDP_LEN as u16 + 15)]),
    ] {
        assert_eq!(rewritten(&came, 3), (Outcome::Other, came.clone()), "{came:x?}");
    }
    // Options of UDP (RFC 9868) are between the end of the datagram and that of the packet: no part of the sum.
    for (packet, udp) in [(v4, 20), (v6, 40)] {
        let total = if udp == 20 { (2, 20 + length + 8) } else { (4, length + 8) };
        let came = [with(&packet, &[total]), vec![0xff; 8]].concat();
        let (outcome, left) = rewritten(&came, 3);
        assert_eq!((outcome, signal(&left, udp), is_right(&left, udp)), (Outcome::Lowered, 3, true));
        assert_eq!(left[udp + 10..], came[udp + 10..]);
    }
}

/// Cut anywhere, a packet leaves as it came, also a first fragment.
#[test]
fn packets_that_are_cut_leave_as_they_came() {
    let mut fragment = ipv4(&datagram(127));
    fragment[6] = 0x20;
    let behind = ipv6(60, &[UDP, 0, 1, 4, 0, 0, 0, 0], &datagram(127));
    for whole in [ipv4(&datagram(127)), plain_ipv6(&datagram(127)), fragment, behind] {
        for length in 0..whole.len() {
            let came = &whole[..length];
            assert_eq!(rewritten(came, 3), (Outcome::Other, came.to_vec()), "{length} of {whole:x?}");
        }
    }
}

/// Bits of the field of fragments: the reserved one and DF say nothing of fragments, MF and the offset do.
#[test]
fn any_fragment_is_left_alone() {
    for (bits, expected) in [
        (0x4000, Outcome::Lowered),
        (0x8000, Outcome::Lowered),
        (0x2000, Outcome::Fragment),
        (0x6000, Outcome::Fragment),
        (0x0001, Outcome::Other),
        (0x3fff, Outcome::Other),
        (0x1000, Outcome::Other),
    ] {
        let mut came = ipv4(&datagram(127));
        came[6..8].copy_from_slice(&u16::to_be_bytes(bits));
        let (outcome, left) = rewritten(&came, 3);
        assert_eq!((outcome, left == came), (expected, expected != Outcome::Lowered), "{bits:x}");
    }
    // In IPv6 the header itself: whether more follow (1) or none, behind others, and before others.
    let header = |next: u8, field: u16| [&[next, 0][..], &field.to_be_bytes(), &[0, 0, 0, 9]].concat();
    let options = |next: u8| vec![next, 0, 1, 4, 0, 0, 0, 0];
    for (first, headers, expected) in [
        (44, header(UDP, 0), Outcome::Fragment),
        (44, header(UDP, 6), Outcome::Fragment), // reserved bits
        (44, header(UDP, 8), Outcome::Other),
        (0, [options(44), header(UDP, 1)].concat(), Outcome::Fragment),
        (44, [header(60, 1), options(UDP)].concat(), Outcome::Fragment),
        (0, [options(44), header(UDP, 0xfff9)].concat(), Outcome::Other),
        (0, options(0).repeat(8), Outcome::Other), // more than are followed
    ] {
        let came = ipv6(first, &headers, &datagram(127));
        assert_eq!(rewritten(&came, 3), (expected, came.clone()), "{headers:x?}");
    }
}

/// The options of IPv4, as many as there can be, are no part of the datagram, also where they look like one.
#[test]
fn options_of_ipv4_are_skipped() {
    let scone = datagram(127);
    for words in 1..=10u8 {
        let mut came = ipv4(&scone);
        let options = [udp(&scone)[..8].to_vec(), scone[..15].to_vec(), vec![0; 17]].concat();
        came.splice(20..20, options[..4 * usize::from(words)].iter().copied());
        (came[0], came[3]) = (0x45 + words, came[3] + 4 * words);
        let (at, (outcome, left)) = (20 + 4 * usize::from(words), rewritten(&came, 3));
        assert_eq!((outcome, signal(&left, at), is_right(&left, at)), (Outcome::Lowered, 3, true));
        assert_eq!((&left[..at], &left[at + 10..]), (&came[..at], &came[at + 10..]));
        // A header longer than its packet.
        came[3] = 20;
        assert_eq!(rewritten(&came, 3), (Outcome::Other, came));
    }
}

/// A datagram may hold several QUIC packets. Those behind the SCONE packet leave as they came. A SCONE packet
/// that is not at the front, and two in one datagram, are left alone.
#[test]
fn coalesced_packets_are_left_alone() {
    let scone = &datagram(127)[..15];
    let long = |version: u8, rest: usize| [&[0xc3, 0, 0, 0, version, 8][..], &[7; 8], &[0], &vec![0x5a; rest]].concat();
    let short = [&[0x41][..], &[7; 8], &[0x5a; 30]].concat();
    let check = |payload: &[u8], expected: Outcome| {
        for (packet, udp) in [(ipv4 as Maker, 20), (plain_ipv6 as Maker, 40)] {
            let came = packet(payload);
            let (outcome, left) = rewritten(&came, 3);
            assert_eq!((outcome, is_right(&left, udp)), (expected, true), "{payload:x?}");
            let from = if expected == Outcome::Lowered { udp + 10 } else { 0 };
            assert_eq!(left[from..], came[from..]);
        }
    };
    for version in [0, 1] {
        check(&[scone, &long(version, 40)].concat(), Outcome::Lowered);
        check(&[scone, &long(version, 40), &long(version, 0), &short].concat(), Outcome::Lowered);
        check(&[&long(version, 0)[..], scone, &short].concat(), Outcome::Other);
    }
    check(&[scone, scone, &short].concat(), Outcome::Other);
    check(&[scone, &[0x41, 7, 7, 7][..]].concat(), Outcome::Other); // too short for its ID
    check(&[scone, &long(1, 0)[..6]].concat(), Outcome::Other);
    check(scone, Outcome::Other);
}

/// Each byte of a packet replaced by each value: either it leaves as it came, or it is a SCONE packet whose advice
/// is lower now. What costs little to see agrees with what is seen at length.
#[test]
fn one_wrong_byte_never_misleads() {
    for (whole, headers) in [(ipv4(&datagram(127)), 20), (plain_ipv6(&datagram(127)), 40)] {
        for at in 0..whole.len() {
            for value in 0..=255 {
                let mut came = whole.clone();
                came[at] = value;
                let mut at_length = came.clone();
                let seen = rewrite_likely(&mut at_length, false, advice(3), |_| true);
                let (outcome, left) = rewritten(&came, 3);
                assert_eq!((outcome, &left), (seen, &at_length), "byte {at}: {value}");
                if outcome == Outcome::Lowered {
                    assert_eq!((signal(&left, headers), left[headers + 10..] == came[headers + 10..]), (3, true));
                } else {
                    assert_eq!(left, came, "byte {at}: {value}");
                }
            }
        }
    }
}

/// The least of a chain of elements, in whatever order.
#[test]
fn a_chain_leaves_the_lowest() {
    for order in [[60, 40, 53], [40, 53, 60], [53, 60, 40]] {
        let mut packet = ipv4(&datagram(127));
        for target in order {
            rewrite(&mut packet, false, advice(target), |_| true);
        }
        assert_eq!((signal(&packet, 20), is_right(&packet, 20)), (40, true));
    }
}

/// Of SCONE packets every millisecond, three are rewritten, and then one every 22.3 s: at most six in any 67 s.
#[test]
fn a_flow_is_rewritten_a_few_times_a_period() {
    let mut element = Element::new(1);
    element.advice = advice(10);
    let mut written: Vec<Time> = Vec::new();
    for ms in 0..400_000 {
        let mut packet = ipv4(&datagram(127));
        if element.pass(Time::millis(ms), &mut packet, false) == Outcome::Lowered {
            written.push(Time::millis(ms));
        }
    }
    assert_eq!(written[..3], [Time::ZERO, Time::millis(1), Time::millis(2)]);
    for (at, from) in written.iter().enumerate() {
        let within = written[at..].iter().filter(|time| time.since(*from) <= PERIOD).count();
        assert!(within as u64 <= MOST, "{within} from {from}");
        // The period is sampled: 22.334 s are the first millisecond after EVERY.
        assert!(written.get(at + 1).is_none_or(|next| next.since(*from) <= Time::millis(22_334)), "a gap at {from}");
    }
    assert_eq!(written.len(), 3 + 17, "400 s / 22.3 s are 17.9");
    assert_eq!(element.counters.lowered + element.counters.limited, 400_000);
}

/// Of many flows that send a SCONE packet every 23 s nearly all packets are rewritten.
#[test]
fn ordinary_flows_are_not_limited() {
    let mut element = Element::new(2);
    element.advice = advice(10);
    let mut limited = 0;
    for round in 0..7 {
        for flow in 0..200u8 {
            let mut packet = ipv4(&datagram(127));
            packet[19] = flow;
            let outcome = element.pass(Time::secs(23 * round), &mut packet, false);
            assert!(matches!(outcome, Outcome::Lowered | Outcome::Limited));
            limited += u32::from(outcome == Outcome::Limited);
        }
    }
    // 200 flows in 8192 slots: about 2.4 pairs share one, and so one packet each time in place of two.
    assert!(limited <= 7 * 8, "{limited} of 1400");
    // Advice that is not lower takes nothing from a flow's number.
    let mut other = Element::new(3);
    for _ in 0..10 {
        assert_eq!(other.pass(Time::ZERO, &mut ipv4(&datagram(60)), false), Outcome::Kept);
    }
    other.advice = advice(59);
    assert_eq!(other.pass(Time::ZERO, &mut ipv4(&datagram(60)), false), Outcome::Lowered);
    assert_eq!(other.counters, Counters { lowered: 1, kept: 10, ..Counters::default() });
}
