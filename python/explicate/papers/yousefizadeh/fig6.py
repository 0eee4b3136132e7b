"""Y-fig6: packet error rate against the signal, three systems, four sets of antennas (figure 6). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from explicate.papers.statistics import Check, Sample, at_least, at_most, falling, near
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.papers.yousefizadeh import base
from explicate.papers.yousefizadeh.base import ANTENNAS, SYSTEMS, TCP, VCP, XCP, packets

study = Study("Y-fig6")

HALF_DB = {"1x1": 12.9, "2x1": 8.0, "1x2": 4.9, "2x2": 2.9}
"""Where half of the blocks of data are lost."""
FEC = (0.8, 0.5)
NOTHING = 1e-3
"""The transition begins where no larger part of the plateau comes, and ends where no larger part is lost."""


def grid(effort: Effort) -> Sequence[float]:
    """Return the ratios, dB."""
    every = [*map(float, range(1, 17)), 18.0, 20.0, 25.0, 30.0]
    return effort.pick(every, (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 20))


@study.cases
def cases(effort: Effort) -> dict[tuple[str, str, float], Case]:
    """Every system with every set of antennas."""
    return {
        (system, antennas, snr): base.case(effort, system, snr, antennas=antennas, fec=FEC)
        for system in SYSTEMS
        for antennas in ANTENNAS
        for snr in grid(effort)
    }


def loss(data: Data, system: str, antennas: str, snr: float) -> Sample:
    """Return the packet error rate."""
    return data.measure((system, antennas, snr), base.radio_loss)


def curve(data: Data, system: str, antennas: str) -> list[Sample]:
    """Return the packet error rates over the grid."""
    return [loss(data, system, antennas, snr) for snr in grid(data.effort)]


@study.predicate("Y-fig6-a", percent=10)
def falls_with_signal(data: Data, percent: float) -> Iterator[Check]:
    """Down to nothing."""
    for system in SYSTEMS:
        for antennas in ANTENNAS:
            yield falling(f"loss of {system}, {antennas}", curve(data, system, antennas), percent / 100)


@study.predicate("Y-fig6-b")
def antennas_in_order(data: Data) -> Iterator[Check]:
    """At every ratio where the better set gets anything through."""
    for system in SYSTEMS:
        for worse, better in pairwise(ANTENNAS):
            for snr in grid(data.effort):
                gain = loss(data, system, worse, snr) - loss(data, system, better, snr)
                yield at_least(f"{system}, {snr:g} dB: loss of {worse} less that of {better}", gain, 0)


@study.predicate("Y-fig6-c", correlation=-0.9)
def fits_figure_3(data: Data, correlation: float) -> Iterator[Check]:
    """Where errors fall, more is delivered: over the transition; before it nothing comes, behind it all."""
    for system in SYSTEMS:
        for antennas in ANTENNAS:
            lost = [sample.mean for sample in curve(data, system, antennas)]
            came = [packets(data, system, antennas, snr).mean for snr in grid(data.effort)]
            first = max((place for place, value in enumerate(came) if value <= NOTHING * came[-1]), default=0)
            last = next(place for place, value in enumerate(lost) if value <= NOTHING)
            points, part = grid(data.effort)[first : last + 1], slice(first, last + 1)
            found = Sample.of([correlate(rank(came[part]), rank(lost[part]))])
            what = f"{system}, {antennas}, {points[0]:g} to {points[-1]:g} dB: rank correlation of loss and delivery"
            yield at_most(what, found, correlation)


def rank(values: Sequence[float]) -> list[float]:
    """Return the values' ranks; what is equal shares the mean of its ranks."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def correlate(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Pearson's correlation."""
    mx, my = sum(x) / len(x), sum(y) / len(y)
    both = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return float(both / (sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y)) ** 0.5)


@study.predicate("Y-fig6-d", around_db=0.7, level=0.5)
def where_blocks_are_lost(data: Data, around_db: float, level: float) -> Iterator[Check]:
    """Half of the packets."""
    for system in SYSTEMS:
        for antennas, where in HALF_DB.items():
            found = base.crossing(grid(data.effort), curve(data, system, antennas), level)
            yield near(f"{system}, {antennas}: loss of {level:g} at, dB", found, where, around_db)


@study.predicate("Y-fig6-e")
def congestion_is_the_floor(data: Data) -> Iterator[Check]:
    """What queues drop where the radio loses nothing."""
    floor = {system: data.measure((system, "2x2", 20.0), base.congestion_loss) for system in SYSTEMS}
    yield at_least("drops of a packet sent: VCP less XCP", floor[VCP] - floor[XCP], 0)
    yield at_least(f"drops of a packet sent: {TCP} less VCP", floor[TCP] - floor[VCP], 0)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system."""
    return [
        Panel(
            system, "SNR of the good state (dB)", "packet error rate",
            [Line.of(one, grid(data.effort), curve(data, system, one)) for one in ANTENNAS],
        )
        for system in SYSTEMS
    ]  # fmt: skip
