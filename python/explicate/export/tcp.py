"""Captures of simulated packets with TCP headers, so that tools for TCP can read them.

A capture of ``run --pcap`` has the headers that real hosts of Explicate exchange, in UDP. This writes the same packets
with IPv4 and TCP headers: sequence numbers in bytes, cumulative and selective acknowledgements (RFC 9293, RFC 2018),
marks (RFC 3168), one connection for each flow. What TCP has no field for (congestion headers, packet numbers) is left
out, and the lengths are TCP's: 40 bytes and options before the payload.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from explicate.errors import BadInputError
from explicate.export.exported import LOST
from explicate.files import written

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
BYTE_ORDER = 0x1A2B3C4D
LINKTYPE_RAW = 101
UDP_PORT = 49407
NEXT_TRANSPORT = 253
SYN, FIN, ACK, ECE, CWR, CONTROL = 0x01, 0x02, 0x04, 0x10, 0x20, 0x40
TCP_FIN, TCP_SYN, TCP_ACK, TCP_ECE, TCP_CWR = 0x01, 0x02, 0x10, 0x40, 0x80
SCALE = 14
"""Shift of the windows: the maximum (RFC 7323)."""
SENDER_PORT, RECEIVER_PORT = 49407, 5001
SIDES = ("sender", "receiver")


@dataclass(frozen=True)
class Segment:
    """A packet of a flow as it left a link: times in nanoseconds, sequence space in segments."""

    at: int
    link: int
    flow: int
    flags: int
    segment: int
    payload: int
    window: int
    ecn: int
    sack: tuple[tuple[int, int], ...]
    header_bytes: int = 0
    """Length of the congestion header."""


@dataclass
class Connection:
    """The byte positions of a flow's segments: all of one length, except that the last one may be shorter."""

    mss: int = 0
    end: int = 0
    ends: dict[int, int] = field(default_factory=dict)

    def see(self, packet: Segment) -> None:
        """Record a data packet."""
        self.mss = max(self.mss, packet.payload)
        self.ends[packet.segment] = packet.payload

    def byte(self, segment: int) -> int:
        """Return the sequence number of the first byte of `segment`; the SYN has number 0."""
        if segment > 0 and (last := self.ends.get(segment - 1)) is not None:
            return (1 + (segment - 1) * self.mss + last) & 0xFFFFFFFF
        return (1 + segment * self.mss) & 0xFFFFFFFF


def convert(source: Path, target: Path, side: str = "sender") -> int:
    """Write the packets of the capture `source` as TCP's into `target`, as seen at one `side`; return their number.

    The sender's side has data packets as they leave their first link, and acknowledgements as they leave the last.
    Raise BadInputError if `source` is no capture of Explicate's.
    """
    return converted(source, target, side)[0]


def converted(source: Path, target: Path, side: str = "sender") -> tuple[int, list[str]]:
    """Do as `convert`; return also what the packets leave out, which stands in the capture's comment too."""
    links, packets = read(source)
    connections: dict[int, Connection] = {}
    for packet in packets:
        if not packet.flags & (ACK | SYN):
            connections.setdefault(packet.flow, Connection()).see(packet)
    own = _own_links(packets, side)
    kept = [packet for packet in packets if packet.link == own.get((packet.flow, bool(packet.flags & ACK)))]
    if not kept:
        raise BadInputError(f"{source}: has no packets of flows")
    lost = _lost(packets, kept, len(links))
    with written(target) as fresh, fresh.open("wb") as out:
        comment = _option(1, "\n".join(LOST + one for one in lost).encode()) + struct.pack("<HH", 0, 0) if lost else b""
        out.write(_block(SECTION, struct.pack("<IHHq", BYTE_ORDER, 1, 0, -1) + comment))
        name = f"{side}s' side of {source.stem}".encode()
        options = _option(2, name) + _option(9, b"\x09") + struct.pack("<HH", 0, 0)
        out.write(_block(INTERFACE, struct.pack("<HHI", LINKTYPE_RAW, 0, 0) + options))
        for packet in kept:
            header = _datagram(packet, connections.get(packet.flow, Connection()))
            original = len(header) + (0 if packet.flags & (ACK | SYN) else packet.payload)
            stamp = struct.pack("<IIIII", 0, packet.at >> 32, packet.at & 0xFFFFFFFF, len(header), original)
            out.write(_block(PACKET, stamp + header + bytes(-len(header) % 4)))
    return len(kept), lost


def _lost(packets: list[Segment], kept: list[Segment], links: int) -> list[str]:
    headers = sum(packet.header_bytes > 0 for packet in kept)
    lost = [f"the congestion headers of {headers} packets: TCP has no such option"] if headers else []
    if again := len(packets) - len(kept):
        lost.append(f"{again} times that packets left other links of {links}: a capture is at one end of a connection")
    return lost


def _own_links(packets: list[Segment], side: str) -> dict[tuple[int, bool], int]:
    """Return the link at which each direction of each flow is seen: the first or the last that its packets pass."""
    first: dict[tuple[int, bool], int] = {}
    last: dict[tuple[int, bool], int] = {}
    opened: set[tuple[int, bool]] = set()
    for packet in packets:
        way = (packet.flow, bool(packet.flags & ACK))
        if packet.flags & SYN and (packet.link != first.get(way) or way not in opened):
            opened.add(way)
            first.setdefault(way, packet.link)
            last[way] = packet.link
    outward = first if side == "sender" else last
    inward = last if side == "sender" else first
    return {way: (inward if way[1] else outward)[way] for way in first}


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _datagram(packet: Segment, connection: Connection) -> bytes:
    """Return the IPv4 and TCP headers of a packet."""
    tcp = _tcp_header(packet, connection)
    return _ip_header(packet, len(tcp)) + tcp


def _tcp_header(packet: Segment, connection: Connection) -> bytes:
    answer = bool(packet.flags & ACK)
    sequence = 0 if packet.flags & SYN else 1 if answer else connection.byte(packet.segment)
    flags = _flags(packet)
    acknowledged = int(bool(flags & TCP_ACK))
    if answer and not packet.flags & SYN:
        acknowledged = connection.byte(packet.segment)
    options = _options(packet, connection)
    bytes_free = packet.window * (connection.mss or 1)
    window = min(bytes_free if packet.flags & SYN else bytes_free >> SCALE, 0xFFFF) if answer else 0xFFFF
    ports = (RECEIVER_PORT, SENDER_PORT) if answer else (SENDER_PORT, RECEIVER_PORT)
    words = (5 + len(options) // 4) << 4
    return struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, words, flags, window, 0, 0) + options


def _flags(packet: Segment) -> int:
    answer = bool(packet.flags & ACK)
    flags = TCP_ACK if answer or not packet.flags & SYN else 0
    flags |= TCP_SYN if packet.flags & SYN else 0
    flags |= TCP_FIN if packet.flags & FIN and not answer else 0
    flags |= TCP_ECE if packet.flags & ECE else 0
    return flags | (TCP_CWR if packet.flags & CWR else 0)


def _options(packet: Segment, connection: Connection) -> bytes:
    options = b""
    if packet.flags & SYN:
        options = struct.pack(">BBH", 2, 4, connection.mss or 536) + bytes((4, 2, 3, 3, SCALE, 1))
    elif packet.sack:
        ranges = b"".join(struct.pack(">II", *map(connection.byte, pair)) for pair in packet.sack)
        options = bytes((1, 1, 5, 2 + len(ranges))) + ranges
    return options + bytes((1,)) * (-len(options) % 4)


def _ip_header(packet: Segment, tcp_bytes: int) -> bytes:
    answer = bool(packet.flags & ACK)
    payload = 0 if packet.flags & (ACK | SYN) else packet.payload
    low, high = packet.flow & 0xFF, packet.flow >> 8 & 0xFF
    hosts = (bytes((10, 1, high, low)), bytes((10, 2, high, low)))
    total = min(20 + tcp_bytes + payload, 0xFFFF)
    head = struct.pack(">BBHHHBBH", 0x45, packet.ecn, total, 0, 0x4000, 64, 6, 0)
    head += hosts[answer] + hosts[not answer]
    words = sum(struct.unpack(">10H", head))
    words = (words & 0xFFFF) + (words >> 16)
    checksum = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
    return head[:10] + struct.pack(">H", checksum) + head[12:]


def read(path: Path) -> tuple[list[str], list[Segment]]:
    """Return the links and the packets of flows of a capture by ``run --pcap``, in the order of their times."""
    links: list[str] = []
    packets = []
    for kind, body in _blocks(path):
        if kind == INTERFACE:
            links.append(_name(body))
        elif kind == PACKET:
            packet = _segment(body)
            if packet is not None:
                packets.append(packet)
    return links, sorted(packets, key=lambda packet: packet.at)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    if not path.is_file() and path.exists():
        raise BadInputError(f"{path}: is not a file; name a capture of `explicate run --pcap`")
    data = path.read_bytes()
    if len(data) < 12 or struct.unpack_from("<I", data)[0] != SECTION or data[8:12] != struct.pack("<I", BYTE_ORDER):
        raise BadInputError(f"{path}: not a capture of `explicate run --pcap` (pcapng, little-endian)")
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at) if len(data) - at >= 12 else (0, 0)
        if length < 12 or length % 4 or at + length > len(data):
            raise BadInputError(f"{path}: ends within a block at byte {at}; run again")
        yield kind, data[at + 8 : at + length - 4]
        at += length


def _name(body: bytes) -> str:
    at = 8
    while at + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 2:
            return body[at + 4 : at + 4 + length].decode("utf-8", "replace")
        at += 4 + length + -length % 4
    return ""


def _segment(body: bytes) -> Segment | None:
    """Return the fields of a packet; None if it does not belong to a flow."""
    if len(body) < 20:
        return None
    link, high, low, captured, _ = struct.unpack_from("<IIIII", body)
    frame = body[20 : 20 + captured]
    if len(frame) < 28 or frame[0] != 0x45 or frame[9] != 17 or frame[20:22] != struct.pack(">H", UDP_PORT):
        return None
    at = 28 + (frame[29] if len(frame) > 29 and frame[28] == NEXT_TRANSPORT else 0)
    if len(frame) < at + 24 or frame[at] & CONTROL:
        return None
    flags, options = frame[at], frame[at + 1]
    payload, flow, segment, _, window = struct.unpack_from(">HIIII", frame, at + 2)
    count = min(options & 3, (len(frame) - at - 24) // 8)
    sack = tuple(struct.unpack_from(">II", frame, at + 24 + 8 * i) for i in range(count))
    return Segment(high << 32 | low, link, flow, flags, segment, payload, window, frame[1] & 3, sack, at - 28)
