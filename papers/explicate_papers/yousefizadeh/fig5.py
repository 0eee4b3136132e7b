"""Y-fig5: VCP and XCP with four code rates of data, 1x2 antennas (figure 5). See `base.py`, `coding.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from explicate_papers.controls import Place, exchange
from explicate_papers.statistics import Check
from explicate_papers.study import Case, Data, Effort, Panel, Study
from explicate_papers.yousefizadeh import fig4
from explicate_papers.yousefizadeh.base import BETA_12, VCP, XCP, at_least_as_high
from explicate_papers.yousefizadeh.coding import RATES, Curves, Key, recode

study = Study("Y-fig5")

MARKS = {1.0: 32.9, 0.9: 8.5, 0.8: 6.0, 0.7: 4.5}
SYSTEMS = {system: Curves(system, "1x2", BETA_12, MARKS) for system in (VCP, XCP)}


@study.cases
def cases(effort: Effort) -> dict[Key, Case]:
    """Both systems at every rate."""
    return {key: case for curves in SYSTEMS.values() for key, case in curves.cases(effort).items()}


@study.predicate("Y-fig5-a")
def a_little_helps_a_lot(data: Data) -> Iterator[Check]:
    """As in figure 4, with its bound."""
    times = fig4.study.rules["Y-fig4-a"].bounds["times"]
    for curves in SYSTEMS.values():
        yield from curves.a_little_helps_a_lot(data, times)


@study.predicate("Y-fig5-b")
def less_rate_less_signal(data: Data) -> Iterator[Check]:
    """As in figure 4."""
    for curves in SYSTEMS.values():
        yield from curves.less_rate_less_signal(data)


@study.predicate("Y-fig5-c")
def xcp_leads(data: Data) -> Iterator[Check]:
    """At equal rates, where nothing is lost."""
    for rate in RATES:
        xcp, vcp = (SYSTEMS[system].plateau(data, rate) for system in (XCP, VCP))
        yield at_least_as_high(f"plateau at rate {rate:g}: XCP and VCP, million packets", xcp, vcp)


@study.predicate("Y-fig5-d", around_db=1)
def waterfalls(data: Data, around_db: float) -> Iterator[Check]:
    """One packet in a thousand."""
    for curves in SYSTEMS.values():
        yield from curves.waterfalls(data, around_db)


def other_plateau(label: Key) -> Key:
    """Return the label of the other system for the runs in which the radio loses nothing; the others stay."""
    system, antennas, rate, snr = label
    return ({XCP: VCP, VCP: XCP}[system], antennas, rate, snr) if snr == SYSTEMS[system].clear(rate) else label


study.control(
    "one code", recode(0.9), ["Y-fig5-a", "Y-fig5-b", "Y-fig5-d"],
    "Data have the rate 0.9 everywhere: no rate is better or further left than another.",
)  # fmt: skip
study.control(
    "XCP and VCP exchanged", exchange(XCP, VCP), ["Y-fig5-c"],
    "If XCP leads where the product comes from bandwidth, VCP in its place does not.",
)  # fmt: skip
study.control(
    "a code in place of none", recode(0.9, lambda label: label[2] == 1.0), ["Y-fig5-a", "Y-fig5-b"],
    "The runs that should be uncoded have the code of 0.9, which is no better than itself, nor further left.",
)  # fmt: skip
study.control(
    "XCP and VCP exchanged where nothing is lost", Place("exchange", other_plateau), ["Y-fig5-c"],
    "Only the plateaus are compared: if XCP leads, VCP in its place does not.",
)  # fmt: skip


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """One panel for a system."""
    return [replace(curves.panel(data), compared=True) for curves in SYSTEMS.values()]
