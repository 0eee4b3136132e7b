"""D-txt-lm: properties of every retransmission of the loss monitor (section 5.2). Set-up: `base.py`, 5 % loss.

The packet record of one lossy flow is analysed (`lives.py`): the packets sent, and the packet that each acknowledgement
answers. In (d) the receiver's buffer is so small that the monitor's table fills. Hosts have no processing time here, so
a retransmission leaves at the instant of the acknowledgement that causes it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Chosen, exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.de_vleeschouwer.lives import Life, life
from explicate_papers.statistics import Check, Sample, at_least, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-lm")

SYSTEMS = ("LR-LMXCP", "LR-LMXTCP")
THRESHOLDS = (1, 3)
ENOUGH, NARROW = 1000, 15
"""The receiver's window, packets: one that never binds, one that does. The monitor has one place less (N < rwnd)."""
STEP_S = 0.005
"""The windows are sampled so often, less than the time between two acknowledgements of a flow."""


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int, int], Case]:
    """Both systems and thresholds; the first lossy flow is traced, the windows sampled often."""
    often = {"sampling.every": f"{STEP_S * 1000:g}ms", "sampling.of": ["cwnd"]}
    made = {}
    for system in SYSTEMS:
        for threshold in THRESHOLDS:
            for room in (ENOUGH, NARROW):
                params = {"dupackthreshold": threshold, "receiver_window": room}
                one = base.case(effort, system, 5.0, params=params, seconds=100, trace="flow=5")
                made[system, threshold, room] = replace(one, settings=often, seeds=3)
    return made


@cache
def lives(data: Data, label: tuple[str, int, int]) -> list[Life]:
    """Return the life of the traced flow for each seed."""
    return [life(results, label[1], label[2] - 1) for results in data.runs(label)]


def counted(data: Data, label: tuple[str, int, int], count: Callable[[Life], float]) -> Sample:
    """Return a count of the traced flow's life."""
    return Sample.of(count(seen) for seen in lives(data, label))


def never(data: Data, what: str, count: Callable[[Life], int], room: int = ENOUGH) -> Iterator[Check]:
    """Yield the checks that `count` stays zero while something is resent."""
    for label in data.labels:
        if label[2] == room:
            name = f"{label[0]}, threshold {label[1]}"
            yield at_least(f"{name}: retransmissions", counted(data, label, lambda seen: seen.resent), 10)
            yield equal(f"{name}: {what}", counted(data, label, count), 0)


@study.predicate("D-txt-lm-a")
def only_after_later_packets(data: Data) -> Iterator[Check]:
    """A segment is resent when `dupackthreshold` later packets were answered."""
    yield from never(data, "resent earlier", lambda seen: seen.early)


@study.predicate("D-txt-lm-b")
def one_for_so_many_answers(data: Data) -> Iterator[Check]:
    """Not more than one retransmission for `dupackthreshold` answers."""
    yield from never(data, "resent too soon after another", lambda seen: seen.crowded)


@study.predicate("D-txt-lm-c")
def once_a_round_trip(data: Data) -> Iterator[Check]:
    """No segment is resent twice in a round trip."""
    yield from never(data, "resent within the shortest round trip", lambda seen: seen.hasty)
    for label in data.labels:
        if label[2] == ENOUGH:
            pairs = zip(lives(data, label), data.runs(label), strict=True)
            too_near = Sample.of(nearer_than_a_window(*pair) for pair in pairs)
            yield equal(f"{label[0]}, threshold {label[1]}: copies no more than a window apart", too_near, 0)


def nearer_than_a_window(seen: Life, results: Results) -> int:
    """Count the copies that left no more than a window of packets after the one before.

    The window is known from the samples before and after the second copy left; the smaller one counts.
    """
    series = metrics.series(results, "lossy.0", "cwnd")
    times, windows = (series[column].to_list() for column in ("time_s", "value"))
    nearer = 0
    for at, distance in seen.distances:
        after = bisect_left(times, at / 1e9)
        around = windows[max(0, after - 1) : after + 1]
        nearer += distance <= min(around)
    return nearer


@study.predicate("D-txt-lm-d")
def only_into_free_places(data: Data) -> Iterator[Check]:
    """A new segment needs a place."""
    yield from never(data, "new segments without a place", lambda seen: seen.beyond, NARROW)
    for label in data.labels:
        if label[2] == NARROW:
            widest = counted(data, label, lambda seen: seen.widest)
            yield equal(f"{label[0]}, threshold {label[1]}: most places in use", widest, NARROW - 1)


@study.predicate("D-txt-lm-e")
def oldest_first(data: Data) -> Iterator[Check]:
    """The candidate is the missing segment that was sent longest ago."""
    yield from never(data, "another one resent", lambda seen: seen.wrong)


study.control(
    "thresholds exchanged",
    exchange(*THRESHOLDS),
    ["D-txt-lm-a", "D-txt-lm-b"],
    "who resends at the first acknowledgement of a later packet does not wait for three",
)
study.control(
    "counting at once",
    Chosen("D-P22", "at_once"),
    ["D-txt-lm-c"],
    "the first acknowledgement after a lost packet comes when a window of packets has left since, and not more",
)
study.control(
    "a wide receiver in the narrow one's place",
    exchange(ENOUGH, NARROW),
    ["D-txt-lm-d"],
    "a sender with more places uses more",
)
study.cannot_fail(
    "D-txt-lm-e",
    "the rule has no switch, and other recoveries resend in the order of segments, which on a path that keeps order is "
    "nearly always that of packets",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """How long after its last copy a segment is resent, in packets."""
    lines = []
    for label in data.labels:
        if label[2] == ENOUGH:
            distances = sorted(distance for _, distance in lives(data, label)[0].distances)
            shares = [(i + 1) / len(distances) for i in range(len(distances))]
            lines.append(Line(f"{label[0]}, threshold {label[1]}", distances, shares))
    return [Panel("Packets sent between two copies of a segment", "packets", "share of the retransmissions", lines)]
