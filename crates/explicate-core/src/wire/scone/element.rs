//! What a network element does with the packets that pass it: [`rewrite`] lowers the advice of one, [`Element`] also
//! limits how often it does so, and counts.
//!
//! It writes two bytes of the UDP payload and the UDP checksum, or nothing. A packet that it cannot be sure to leave
//! valid (a fragment, IPv6 extension headers, a checksum that is not computed yet) leaves as it came, and is counted.
//!
//! Another protocol's datagrams may look like SCONE. So the draft (section "Damage to Other Protocols") lets an element
//! write into the datagrams of an address tuple only a few times in a monitoring period: here at most [`MOST`]. They
//! come in groups of up to [`GROUP`], as the first datagrams of a flow do, and then one every 22 s: at least twice in a
//! period, as the draft asks, without a gap in which an endpoint would let the advice expire.

use alloc::boxed::Box;
use alloc::vec;

use super::{Advice, PERIOD, SconePacket, may_be_scone};
use crate::rng::drawn;
use crate::units::Time;

/// Packets of a flow that are rewritten one after another.
pub const GROUP: u64 = 3;
/// Packets of a flow that are rewritten in any monitoring period, at most: a group, and one whenever [`EVERY`] has
/// passed.
pub const MOST: u64 = 2 * GROUP;
/// Time after which a flow may have one more packet rewritten.
pub const EVERY: Time = Time(PERIOD.0 / GROUP);
/// Flows that are kept apart. More share their limits: none is rewritten more often for that, some less often.
const SLOTS: usize = 1 << 13;

/// The protocol number of UDP.
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_LEN: usize = 8;
/// IPv6 extension headers that are followed in search of a UDP header; hosts send two or three.
const EXTENSIONS: usize = 8;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No SCONE packet: as it came.
    Other,
    /// It has this element's advice now.
    Lowered,
    /// Its advice was as low already, or this element has none: as it came.
    Kept,
    /// The flow had its number of rewritten packets: as it came.
    Limited,
    /// The first fragment of a datagram with a SCONE packet: as it came.
    Fragment,
    /// A SCONE packet behind IPv6 extension headers: as it came.
    Extension,
    /// A SCONE packet whose checksum is not computed yet: as it came.
    Partial,
}

/// The fields that identify a flow, in the packet's bytes: addresses, and UDP ports.
#[derive(Clone, Copy, Debug)]
pub struct Tuple<'a> {
    addresses: &'a [u8],
    ports: &'a [u8],
}

impl Tuple<'_> {
    /// A number of the flow, by a key that the flow does not know.
    fn hash(&self, key: u64) -> u64 {
        let words = self.addresses.chunks_exact(4).chain(self.ports.chunks_exact(4));
        words.fold(key, |hash, word| {
            let mut number = [0; 4];
            number.copy_from_slice(word);
            drawn(hash, u32::from_be_bytes(number).into())
        })
    }
}

/// The UDP datagram in an IP packet.
struct Datagram {
    /// The offsets of addresses and UDP header, and of the end of the UDP payload.
    addresses: (usize, usize),
    udp: usize,
    end: usize,
    /// Why it may not be changed.
    obstacle: Option<Outcome>,
}

/// Two bytes as a number.
fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

impl Datagram {
    /// Finds the UDP header of an IP packet, which may have bytes behind it; `None` if there is none.
    #[inline]
    fn find(packet: &[u8]) -> Option<Datagram> {
        let (addresses, udp, end, obstacle) = match packet.first()? >> 4 {
            4 => {
                let header = packet.first_chunk::<20>()?;
                let (length, total, fragment) = (4 * usize::from(header[0] & 0xf), word(header, 2), word(header, 6));
                // A fragment with an offset has no UDP header.
                if header[9] != UDP || length < header.len() || fragment & 0x1fff != 0 {
                    return None;
                }
                ((12, 20), length, usize::from(total), (fragment & 0x2000 != 0).then_some(Outcome::Fragment))
            }
            6 => {
                let header = packet.first_chunk::<40>()?;
                let end = header.len() + usize::from(word(header, 4));
                let (udp, obstacle) =
                    if header[6] == UDP { (header.len(), None) } else { behind_extensions(packet, header[6])? };
                ((8, 40), udp, end, obstacle)
            }
            _ => return None,
        };
        let header = packet.get(udp..udp + UDP_LEN)?;
        let length = usize::from(word(header, 4));
        let fits = udp + length <= end || obstacle == Some(Outcome::Fragment);
        if length < UDP_LEN || !fits || end > packet.len() || udp + UDP_LEN > end {
            return None;
        }
        Some(Datagram { addresses, udp, end: end.min(udp + length), obstacle })
    }
}

/// The offset of the UDP header behind the extension headers of an IPv6 packet, the first of this kind, and which of
/// them forbids a change.
#[cold]
fn behind_extensions(packet: &[u8], first: u8) -> Option<(usize, Option<Outcome>)> {
    let (mut next, mut at, mut fragment) = (first, 40, false);
    for _ in 0..EXTENSIONS {
        let header = packet.get(at..at + 8)?;
        let units = usize::from(header[1]);
        at += match next {
            0 | 43 | 60 => 8 * (units + 1), // hop-by-hop options, routing, destination options
            44 if word(header, 2) & 0xfff8 == 0 => {
                fragment = true;
                8
            }
            51 => 4 * (units + 2), // authentication
            _ => return None,
        };
        next = header[0];
        if next == UDP {
            return Some((at, Some(if fragment { Outcome::Fragment } else { Outcome::Extension })));
        }
    }
    None
}

/// Lowers the advice of a packet to `advice`, if it is an IPv4 or IPv6 packet with a SCONE packet of higher advice, and
/// if `may` agrees, which is asked for such packets only.
///
/// `partial` says that the packet's UDP checksum is not that of its bytes, because hardware will compute it or several
/// datagrams were merged. A checksum of zero stays zero; another one is corrected (RFC 1624) and never becomes zero. If
/// it was wrong it stays wrong.
#[inline]
pub fn rewrite(packet: &mut [u8], partial: bool, advice: Advice, may: impl FnOnce(Tuple<'_>) -> bool) -> Outcome {
    if is_surely_other(packet) {
        return Outcome::Other;
    }
    rewrite_likely(packet, partial, advice, may)
}

/// Whether a packet is no SCONE packet by the bytes where its version would be: most are not, and that costs little.
/// False for headers of other lengths.
#[inline]
fn is_surely_other(packet: &[u8]) -> bool {
    let at = match packet {
        [0x45, ..] => 20 + UDP_LEN,
        [first, _, _, _, _, _, UDP, ..] if first >> 4 == 6 => 40 + UDP_LEN,
        _ => return false,
    };
    !packet.get(at..).is_some_and(may_be_scone)
}

/// [`rewrite`] for a packet that may be SCONE.
fn rewrite_likely(packet: &mut [u8], partial: bool, advice: Advice, may: impl FnOnce(Tuple<'_>) -> bool) -> Outcome {
    let Some(Datagram { addresses, udp, end, obstacle }) = Datagram::find(packet) else { return Outcome::Other };
    let (at, sum) = (udp + UDP_LEN, udp + 6);
    let Some(scone) = SconePacket::parse(&packet[at..end]) else { return Outcome::Other };
    if let Some(why) = obstacle.or(partial.then_some(Outcome::Partial)) {
        return why;
    }
    let lowered = scone.advice.lowered_to(advice);
    if lowered == scone.advice {
        return Outcome::Kept;
    }
    if !may(Tuple { addresses: &packet[addresses.0..addresses.1], ports: &packet[udp..udp + 4] }) {
        return Outcome::Limited;
    }
    let (old, checksum) = (word(packet, at), word(packet, sum));
    let [high, low] = lowered.put(old.to_be_bytes());
    (packet[at], packet[at + 1]) = (high, low);
    if checksum != 0 {
        let right = corrected(checksum, old, word(packet, at));
        packet[sum..sum + 2].copy_from_slice(&right.to_be_bytes());
    }
    Outcome::Lowered
}

/// A UDP checksum after a word of what it covers has changed (RFC 1624, equation 3). Zero would mean that there is none
/// (RFC 768), so ones stand for it.
fn corrected(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let once = (sum & 0xffff) + (sum >> 16);
    let folded = (once & 0xffff) + (once >> 16);
    match !(folded as u16) {
        0 => 0xffff,
        sum => sum,
    }
}

/// How often packets of each flow are rewritten.
struct Limiter {
    key: u64,
    /// By flow: when all that it had is [`EVERY`] apart.
    even: Box<[Time]>,
}

impl Limiter {
    fn new(key: u64) -> Limiter {
        Limiter { key, even: vec![Time::ZERO; SLOTS].into_boxed_slice() }
    }
    /// Whether one more may be rewritten now; counts it if so.
    fn take(&mut self, now: Time, flow: Tuple<'_>) -> bool {
        let slot = &mut self.even[flow.hash(self.key) as usize % SLOTS];
        let from = now.max(*slot);
        if from.since(now).0 > (GROUP - 1) * EVERY.0 {
            return false;
        }
        *slot = from + EVERY;
        true
    }
}

/// Numbers of packets by [`Outcome`]; those that are no SCONE packets are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    /// [`Outcome::Lowered`].
    pub lowered: u64,
    /// [`Outcome::Kept`].
    pub kept: u64,
    /// [`Outcome::Limited`].
    pub limited: u64,
    /// [`Outcome::Fragment`].
    pub fragments: u64,
    /// [`Outcome::Extension`].
    pub extensions: u64,
    /// [`Outcome::Partial`].
    pub partial: u64,
}

/// A network element: its advice, the limit of what it writes, and its counters.
pub struct Element {
    /// What it advises; no advice changes no packet.
    pub advice: Advice,
    /// Its counters.
    pub counters: Counters,
    limiter: Limiter,
}

impl Element {
    /// An element without advice. Who knows `key` can choose flows that share the limit of another one.
    pub fn new(key: u64) -> Element {
        Element { advice: Advice::NONE, counters: Counters::default(), limiter: Limiter::new(key) }
    }
    /// A packet passes, from its IP header on; see [`rewrite`].
    #[inline]
    pub fn pass(&mut self, now: Time, packet: &mut [u8], partial: bool) -> Outcome {
        let limiter = &mut self.limiter;
        let outcome = rewrite(packet, partial, self.advice, |flow| limiter.take(now, flow));
        let counters = &mut self.counters;
        match outcome {
            Outcome::Other => return outcome,
            Outcome::Lowered => counters.lowered += 1,
            Outcome::Kept => counters.kept += 1,
            Outcome::Limited => counters.limited += 1,
            Outcome::Fragment => counters.fragments += 1,
            Outcome::Extension => counters.extensions += 1,
            Outcome::Partial => counters.partial += 1,
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
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
        let head =
            [&[0x45, 0][..], &total.to_be_bytes(), &[0, 1, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]].concat();
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
        let long =
            |version: u8, rest: usize| [&[0xc3, 0, 0, 0, version, 8][..], &[7; 8], &[0], &vec![0x5a; rest]].concat();
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
            assert!(
                written.get(at + 1).is_none_or(|next| next.since(*from) <= Time::millis(22_334)),
                "a gap at {from}"
            );
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
}
