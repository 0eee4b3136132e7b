"""D-txt-lm: what the loss monitor promises of every retransmission (section 5.2). Set-up: `base.py`, 5 % loss.

The lives of one lossy flow's packets are read again (`lives.py`): what was sent, and which packet each acknowledgement
answered; for (d) with a receiver that has room for so little that the monitor's places run out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean

from explicate.papers import metrics
from explicate.papers.de_vleeschouwer import base
from explicate.papers.de_vleeschouwer.lives import Life, life
from explicate.papers.statistics import Check, Sample, above, at_least, equal
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("D-txt-lm")

SYSTEMS = ("LR-LMXCP", "LR-LMXTCP")
THRESHOLDS = (1, 3)
ENOUGH, NARROW = 1000, 15
"""The receiver's window, packets: one that never binds, one that does. The monitor has one place less (N < rwnd)."""


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int, int], Case]:
    """Both systems and thresholds; the first lossy flow is traced, the windows sampled often."""
    often = {"sampling.every": "20ms", "sampling.of": '["cwnd"]'}
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
            apart = [mean_distances(*pair) for pair in zip(lives(data, label), data.runs(label), strict=True)]
            distance, window = (Sample.of(values) for values in zip(*apart, strict=True))
            yield above(
                f"{label[0]}, threshold {label[1]}: packets between two copies over the window", distance, window
            )


def mean_distances(seen: Life, results: Results) -> tuple[float, float]:
    """Return the mean distance of two copies, packets, and the mean window when the second left, whole packets."""
    series = metrics.series(results, "lossy.0", "cwnd")
    times, windows = (series[column].to_list() for column in ("time_s", "value"))
    then = [int(windows[max(0, bisect_right(times, at / 1e9) - 1)]) for at, _ in seen.distances]
    return fmean(distance for _, distance in seen.distances), fmean(then)


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
