"""Y-fig3: delivered packets against the signal, three systems, four sets of antennas (figure 3). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from explicate_papers.controls import Place, edit, exchange
from explicate_papers.statistics import Check, Sample, at_least, at_most, between, close, rising
from explicate_papers.study import Case, Data, Effort, Panel, Study
from explicate_papers.yousefizadeh import base
from explicate_papers.yousefizadeh.base import ANTENNAS, CLEAR_DB, SYSTEMS, TCP, VCP, XCP, packets
from explicate_papers.yousefizadeh.coding import with_antennas

study = Study("Y-fig3")

MARKS = {"1x1": (16.2, 18.2), "2x1": (10.1, 11.5), "1x2": (7.1, 8.5), "2x2": (4.5, 5.7)}
"""Where half of the blocks of data are lost, and where one in a thousand, dB."""
MOST = 5.4
"""The line's capacity one way with its parity, million packets: the register's figure."""
Key = tuple[str, str, float]


def grid(effort: Effort, antennas: str) -> list[float]:
    """Return the ratios, dB: every one around the transition, and far above."""
    low, high = MARKS[antennas]
    first, last = (int(low) - 1, int(high) + 2) if effort.quick else (int(low) - 3, int(high) + 5)
    return [*map(float, range(first, last + 1)), CLEAR_DB]


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """Every system with every set of antennas."""
    return {
        (system, antennas, snr): base.case(effort, system, snr, antennas=antennas, beta=base.BETA_12)
        for system in SYSTEMS
        for antennas in ANTENNAS
        for snr in grid(effort, antennas)
    }


def curve(data: Data, system: str, antennas: str) -> list[Sample]:
    """Return the deliveries over the grid."""
    return [packets(data, system, antennas, snr) for snr in grid(data.effort, antennas)]


def plateau(data: Data, system: str, antennas: str = "2x2") -> Sample:
    """Return the deliveries where the radio has no losses."""
    return packets(data, system, antennas, CLEAR_DB)


def half(data: Data, system: str, antennas: str) -> Sample:
    """Return the signal at which half of that is delivered, dB."""
    level = 0.5 * plateau(data, system, antennas)
    return base.crossing(grid(data.effort, antennas), curve(data, system, antennas), level)


@study.predicate("Y-fig3-a", least_db=1)
def antennas_move_the_transition(data: Data, least_db: float) -> Iterator[Check]:
    """1x1, 2x1, 1x2, 2x2, from right to left."""
    for system in SYSTEMS:
        for worse, better in pairwise(ANTENNAS):
            gain = half(data, system, worse) - half(data, system, better)
            yield at_least(f"{system}: {better} left of {worse}, dB", gain, least_db)


@study.predicate("Y-fig3-b", percent=3)
def plateau_is_the_same(data: Data, percent: float) -> Iterator[Check]:
    """Antennas matter in the transition only."""
    for system in SYSTEMS:
        other = plateau(data, system)
        for antennas in ANTENNAS[:-1]:
            what = f"plateau of {system}, million packets: {antennas} and 2x2"
            yield close(what, plateau(data, system, antennas), other, percent / 100 * other.mean)


@study.predicate("Y-fig3-c", times=1.1)
def tcp_is_well_below(data: Data, times: float) -> Iterator[Check]:
    """Both over TCP with marks."""
    for system in (XCP, VCP):
        yield at_least(f"plateau of {system} over {TCP}", plateau(data, system) / plateau(data, TCP), times)


@study.predicate("Y-fig3-d")
def xcp_leads(data: Data) -> Check:
    """The product comes from bandwidth here."""
    return base.at_least_as_high("plateau of XCP and VCP, million packets", plateau(data, XCP), plateau(data, VCP))


@study.predicate("Y-fig3-e", percent=3)
def more_signal_more_packets(data: Data, percent: float) -> Iterator[Check]:
    """Up to the plateau, which begins behind the last point where more than the slack is missing."""
    share = percent / 100
    for system in SYSTEMS:
        for antennas in ANTENNAS:
            samples, level = curve(data, system, antennas), plateau(data, system, antennas).mean
            below = [place for place, sample in enumerate(samples) if sample.mean < (1 - share) * level]
            climb = samples[: below[-1] + 2] if below else samples
            yield rising(f"million packets of {system}, {antennas}", climb, share, relative=True)


@study.predicate("Y-fig3-f", around_db=1)
def where_blocks_are_lost(data: Data, around_db: float) -> Iterator[Check]:
    """The transition lies where the code's losses do."""
    for system in SYSTEMS:
        for antennas, (low, high) in MARKS.items():
            what = f"{system}, {antennas}: half of the plateau at, dB"
            yield between(what, half(data, system, antennas), low - around_db, high + around_db)


@study.predicate("Y-fig3-g")
def the_line_bounds(data: Data) -> Iterator[Check]:
    """Parity occupies its part of the line."""
    for system in SYSTEMS:
        yield at_most(f"plateau of {system}, million packets one way", 0.5 * plateau(data, system), MOST)


def low_for_clear(label: Key) -> Key:
    """Return the label with a ratio below the transition for one above it, and vice versa."""
    system, antennas, snr = label
    low, high = float(int(MARKS[antennas][0])), float(int(MARKS[antennas][1]) + 2)
    return system, antennas, {low: high, high: low}.get(snr, snr)


def only_tcp(label: Key) -> Key:
    """Return the label of TCP."""
    return TCP, *label[1:]


def other_product(label: Key) -> Key:
    """Return the label of VCP for XCP's, and vice versa."""
    return {XCP: VCP, VCP: XCP}.get(label[0], label[0]), *label[1:]


def clear(source: Callable[[Key], Key]) -> Callable[[Key], Key]:
    """Return `source` for the runs in which the radio loses nothing; the others stay."""
    return lambda label: source(label) if label[2] == CLEAR_DB else label


def tcp_behind_the_transition(label: Key) -> Key:
    """Return the label of TCP for the highest ratio before the clear one."""
    _, antennas, snr = label
    return only_tcp(label) if snr == float(int(MARKS[antennas][1]) + 2) else label


study.control(
    "one antenna", with_antennas("1x1"), ["Y-fig3-a", "Y-fig3-f"],
    "All radios have one antenna: no transition moves, and those of more antennas lie too far right.",
)  # fmt: skip
study.control(
    "no code with 1x2",
    edit(
        "off", lambda content: base.radio(content).update(fec_data=1, fec_ack=1),
        lambda label: label[1] == "1x2" and label[2] == CLEAR_DB,
    ),
    ["Y-fig3-b"],
    "At 30 dB two receiving antennas without a code lose a few packets in a thousand, which keeps TCP far below the "
    "plateau of the others: a steady state without losses is what makes antennas equal.",
)  # fmt: skip
study.control(
    "TCP for all", Place("protocol", only_tcp), ["Y-fig3-c"],
    "TCP with marks does not deliver a tenth more than itself.",
)  # fmt: skip
study.control(
    "XCP and VCP exchanged", exchange(XCP, VCP), ["Y-fig3-d"],
    "If XCP leads where the product comes from bandwidth, VCP in its place does not.",
)  # fmt: skip
study.control(
    "low and high ratio exchanged", Place("exchange", low_for_clear), ["Y-fig3-e"],
    "A run below the transition stands above it: the curve falls where it should rise.",
)  # fmt: skip
study.control(
    "TCP for all where nothing is lost", Place("protocol", clear(only_tcp)), ["Y-fig3-c"],
    "The plateau is that of TCP, which does not deliver a tenth more than itself.",
)  # fmt: skip
study.control(
    "XCP and VCP exchanged where nothing is lost", Place("exchange", clear(other_product)), ["Y-fig3-d"],
    "Only the plateaus are compared: if XCP leads, VCP in its place does not.",
)  # fmt: skip
study.control(
    "TCP behind the transition", Place("protocol", tcp_behind_the_transition), ["Y-fig3-e"],
    "At the highest ratio but one TCP runs: more signal brings less than the plateau that XCP and VCP had before.",
)  # fmt: skip
study.cannot_fail("Y-fig3-g", "No sender can bring more through a line than its rate, whatever protocol or code.")


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system."""
    return [
        Panel(
            system, "SNR of the good state (dB)", "delivered packets (million in 990 s)",
            [base.line(one, grid(data.effort, one), curve(data, system, one)) for one in ANTENNAS], compared=True,
        )
        for system in SYSTEMS
    ]  # fmt: skip
