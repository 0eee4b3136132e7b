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

#[cfg(test)]
mod tests;

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
