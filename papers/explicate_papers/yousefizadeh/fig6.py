"""Y-fig6: packet error rate against the signal, three systems, four sets of antennas (figure 6). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from explicate_papers.controls import Place, exchange
from explicate_papers.statistics import Check, Sample, exceeds, fact, falling, near
from explicate_papers.study import Case, Data, Effort, Panel, Study
from explicate_papers.yousefizadeh import base
from explicate_papers.yousefizadeh.base import ANTENNAS, SYSTEMS, TCP, VCP, XCP, packets

study = Study("Y-fig6")

HALF_DB = {"1x1": 12.9, "2x1": 8.0, "1x2": 4.9, "2x2": 2.9}
"""Where half of the blocks of data are lost."""
FEC = (0.8, 0.5)
LOW_DB, HIGH_DB = 1.0, 20.0
"""Below and above every transition."""
Key = tuple[str, str, float]


def grid(effort: Effort) -> Sequence[float]:
    """Return the ratios, dB."""
    every = [*map(float, range(1, 17)), 18.0, 20.0, 25.0, 30.0]
    return effort.pick(every, (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 20))


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """Every system with every set of antennas."""
    return {
        (system, antennas, snr): base.case(effort, system, snr, antennas=antennas, fec=FEC)
        for system in SYSTEMS
        for antennas in ANTENNAS
        for snr in grid(effort)
    }


def errors(data: Data, system: str, antennas: str) -> list[Sample]:
    """Return the packet error rates over the grid."""
    return [base.error_rate(data, system, antennas, snr) for snr in grid(data.effort)]


def by_radio(data: Data, system: str, antennas: str) -> list[Sample]:
    """Return the losses of the radio over the grid."""
    return [data.measure((system, antennas, snr), base.radio_loss) for snr in grid(data.effort)]


def floor(data: Data, system: str, antennas: str = "2x2") -> Sample:
    """Return the drops of queues per packet sent where the radio has no losses."""
    return data.measure((system, antennas, grid(data.effort)[-1]), base.congestion_loss)


@study.predicate("Y-fig6-a", percent=10)
def falls_with_signal(data: Data, percent: float) -> Iterator[Check]:
    """Down to where the radio loses no more than queues drop."""
    for system in SYSTEMS:
        for antennas in ANTENNAS:
            least = floor(data, system, antennas).mean
            radio = [sample.mean for sample in by_radio(data, system, antennas)]
            last = max((place for place, value in enumerate(radio) if value > least), default=-1)
            fall = errors(data, system, antennas)[: last + 2]
            yield falling(f"loss of {system}, {antennas}", fall, percent / 100, relative=True)


@study.predicate("Y-fig6-b")
def antennas_in_order(data: Data) -> Iterator[Check]:
    """At every ratio."""
    for system in SYSTEMS:
        for worse, better in pairwise(ANTENNAS):
            pairs = zip(errors(data, system, worse), errors(data, system, better), strict=True)
            for snr, (more, less) in zip(grid(data.effort), pairs, strict=True):
                yield base.at_least_as_high(f"{system}, {snr:g} dB: loss with {worse} and with {better}", more, less)


@study.predicate("Y-fig6-c", fall=0.1)
def fits_figure_3(data: Data, fall: float) -> Iterator[Check]:
    """Where errors fall much from one point of a curve to the next, more is delivered."""
    for system in SYSTEMS:
        for antennas in ANTENNAS:
            points = list(zip(grid(data.effort), errors(data, system, antennas), strict=True))
            steep = [(a, b) for (a, more), (b, less) in pairwise(points) if more.mean - less.mean >= fall]
            name = f"{system}, {antennas}"
            yield fact(
                f"{name}: falls of the loss by {fall:g}", holds=bool(steep), measured=str(len(steep)), wanted="some"
            )
            for before, after in steep:
                low, high = (packets(data, system, antennas, snr) for snr in (before, after))
                yield exceeds(f"{name}: million packets at {after:g} dB over {before:g}", high, low)


@study.predicate("Y-fig6-d", around_db=0.7, level=0.5)
def where_blocks_are_lost(data: Data, around_db: float, level: float) -> Iterator[Check]:
    """Half of the packets, by the radio alone."""
    for system in SYSTEMS:
        for antennas, where in HALF_DB.items():
            found = base.crossing(grid(data.effort), by_radio(data, system, antennas), level)
            yield near(f"{system}, {antennas}: loss of {level:g} at, dB", found, where, around_db)


@study.predicate("Y-fig6-e")
def congestion_is_the_floor(data: Data) -> Iterator[Check]:
    """Drops of queues where the radio has no losses."""
    for less in (XCP, VCP):
        what = f"drops of a packet sent: {TCP} and {less}"
        yield base.at_least_as_high(what, floor(data, TCP), floor(data, less))


def low_for_clear(label: Key) -> Key:
    """Return the label with the ratio below all transitions for the one above them, and vice versa."""
    system, antennas, snr = label
    return system, antennas, {LOW_DB: HIGH_DB, HIGH_DB: LOW_DB}.get(snr, snr)


def clear(label: Key) -> Key:
    """Return the label with the ratio above all transitions."""
    return *label[:2], HIGH_DB


study.control(
    "low and high ratio exchanged", Place("exchange", low_for_clear), ["Y-fig6-a"],
    "The run with the weakest signal stands where the radio should lose nothing.",
)  # fmt: skip
study.control(
    "1x1 and 2x2 exchanged", exchange("1x1", "2x2"), ["Y-fig6-b", "Y-fig6-d"],
    "Four branches in the place of one lose fewer packets, and half of them 10 dB further left.",
)  # fmt: skip
study.control(
    "one ratio", Place("flat", clear), ["Y-fig6-c"],
    "With one signal for all points neither losses nor deliveries change along the curve.",
)  # fmt: skip
study.control(
    "XCP and TCP exchanged", exchange(XCP, TCP), ["Y-fig6-e"],
    "If TCP's queue drops most and XCP's least, the order is broken in each other's place.",
)  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system; the axis is logarithmic, for the floor that congestion leaves."""
    return [
        Panel(
            system, "SNR of the good state (dB)", "packet error rate (0 is not drawn)",
            [base.line(one, grid(data.effort), errors(data, system, one)) for one in ANTENNAS],
            log="y", compared=True,
        )
        for system in SYSTEMS
    ]  # fmt: skip
