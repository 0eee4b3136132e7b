"""Analysis of one flow's packet record: compares every retransmission with the sender's information at that time."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from explicate.results import Results

LINE = re.compile(r" *(\d+)\.(\d{9})  (\S*) +(enqueue|delivered) +\S+ (data|ack) (\d+) packet (\d+) ")


Event = tuple[int, str, int, int]
"""Time (ns), event (sent, arrives, answered), segment or first missing segment, and packet number."""


@dataclass(frozen=True)
class Copy:
    """A segment's last transmission: the packet, when it left, and how many acknowledgements had come."""

    packet: int
    at_ns: int
    acks: int


@dataclass
class Life:
    """A flow's retransmissions, and violations of the rules (fields that should be zero)."""

    resent: int = 0
    """Retransmissions that an acknowledgement let go."""
    by_clock: int = 0
    """Retransmissions at any other time: the retransmission timer's."""
    in_vain: int = 0
    """Those of them whose segment had arrived."""
    resets: int = 0
    """Expiries of the recovery timer: the sender forgets what it knew and goes back to the first missing segment."""
    early: int = 0
    """Resent before `threshold` acknowledgements of later packets than its last copy."""
    crowded: int = 0
    """Resent less than `threshold` acknowledgements after another."""
    hasty: int = 0
    """Resent within the shortest round trip since its last copy."""
    wrong: int = 0
    """Resent though another missing segment had been sent longer ago."""
    beyond: int = 0
    """New segments for which the monitor had no free place."""
    widest: int = 0
    """Most segments from the first missing one to the last one sent."""
    distances: list[tuple[int, int]] = field(default_factory=list)
    """For each retransmission by acknowledgements: when (ns), and how many packets after the last copy."""
    round_trip_ns: int = 0
    """The shortest round trip; 0 if no packet was answered."""


def most_in_a_round_trip(seen: Life) -> int:
    """Return the maximum of retransmissions by acknowledgements within a span of the shortest round trip."""
    times = [at for at, _ in seen.distances]
    return max((bisect_left(times, at + seen.round_trip_ns) - i for i, at in enumerate(times)), default=0)


def life(results: Results, threshold: int, places: int) -> Life:
    """Replay the traced flow, whose monitor has so many places; raise ValueError if nothing was traced."""
    events = sorted(_events(results.trace), key=lambda event: event[0])
    if not events:
        raise ValueError("no packets were traced")
    made, latest, segments = Life(), dict[int, Copy](), dict[int, int]()
    answered: list[int] = []
    missing, arrived, known = 0, set[int](), set[int]()
    shortest, last_ack_ns, last_resent = 10**18, -1, -(10**9)
    left = dict[int, int]()
    for i, (at, what, segment, packet) in enumerate(events):
        if what == "arrives":
            arrived.add(segment)
        elif what == "answered":
            missing = max(missing, segment)
            answered.append(packet)
            last_ack_ns = at
            known.add(segments.get(packet, -1))
            if packet in left:
                shortest = min(shortest, at - left[packet])
        else:
            copy = latest.get(segment)
            if copy is None:
                made.beyond += segment - missing >= places
                made.widest = max(made.widest, segment - missing + 1)
            # Before the first answer only the recovery timer sends again: the retransmission timer is longer.
            elif (not answered or at - last_ack_ns >= shortest) and _goes_back(events, i, max(latest)):
                made.resets += 1
                latest, known, segments = {}, set(), {}
            elif at != last_ack_ns:
                made.by_clock += 1
                made.in_vain += segment in arrived
            else:
                made.resent += 1
                later = sum(number > copy.packet for number in answered[copy.acks :])
                made.early += later < threshold
                made.crowded += len(answered) - last_resent < threshold
                made.hasty += at - copy.at_ns < shortest
                oldest = min((latest[j].packet, j) for j in latest if j >= missing and j not in known)
                made.wrong += oldest[1] != segment
                made.distances.append((at, packet - copy.packet))
                last_resent = len(answered)
            latest[segment], segments[packet], left[packet] = Copy(packet, at, len(answered)), segment, at
            if len(latest) > 4 * places:
                latest = {j: one for j, one in latest.items() if j >= missing - 1}
    made.round_trip_ns = shortest if answered else 0
    return made


def _goes_back(events: Sequence[Event], start: int, highest: int) -> bool:
    """Return whether the segments sent from event `start` on are all that follow it up to `highest`, in order."""
    follows = events[start][2] + 1
    for _, what, segment, _ in islice(events, start + 1, None):
        if what == "answered":
            follows = max(follows, segment)
        elif what == "sent" and segment > follows:
            return False
        elif what == "sent" and segment == follows:
            follows += 1
        if follows > highest:
            break
    return True


def _events(trace: str) -> Iterator[Event]:
    """Yield the events of a flow's packets, link by link."""
    for line in trace.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        seconds, rest, link, event, kind, segment, packet = found.groups()
        at = int(seconds) * 10**9 + int(rest)
        if event == "delivered":
            yield at, "arrives" if kind == "data" else "answered", int(segment), int(packet)
        elif kind == "data" and link.startswith("s"):
            yield at, "sent", int(segment), int(packet)
