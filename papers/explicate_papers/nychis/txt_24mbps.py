"""N-txt-24mbps: XCP configured with 24 Mbit/s instead of 54, at 1 % loss (section V-A). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate_papers.controls import Place, exchange
from explicate_papers.nychis import base
from explicate_papers.nychis.fig3 import BEST_TCP, best_of_three
from explicate_papers.statistics import Check, Sample, above, between
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-24mbps")

LOSS = 1.0
BEST_XCP = 3013.51
"""Throughput of XCP with 24 Mbit/s in the paper, KB/s."""


def told(effort: Effort) -> Sequence[float]:
    """Return the configured capacities of routers, Mbit/s."""
    return effort.pick((12, 16, 20, 22, 24, 26, 30, 36, 54), (12, 20, 24, 26, 30, 54))


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """XCP with each capacity, TCP, and the test of the hop."""
    runs: dict[object, Case] = {
        capacity: base.chain(effort, base.XCP, LOSS, capacity=capacity) for capacity in told(effort)
    }
    return {**runs, base.TCP: base.chain(effort, base.TCP, LOSS), base.LINK: base.link_test(effort)}


def rate(data: Data, label: object) -> Sample:
    """Return the throughput of a case, KB/s."""
    return data.measure(label, base.kilobytes)


@study.predicate("N-txt-24mbps-a", low=2.1, high=3.1)
def almost_triple(data: Data, low: float, high: float) -> Iterator[Check]:
    """3013.51 KB/s against 1173.58 in the paper."""
    best, told_24 = best_of_three(data, base.TCP), rate(data, base.TUNED)
    known = Sample.of([best] * len(told_24.values))
    yield from base.ratio_between("XCP, told 24, over the best of three TCP runs", told_24, known, low, high)


@study.predicate("N-txt-24mbps-b")
def truth_is_better(data: Data) -> Check:
    """The tuned capacity beats the default."""
    return above("KB/s: told 24 over told 54", rate(data, base.TUNED), rate(data, base.TOLD))


@study.predicate("N-txt-24mbps-c", least=0.85)
def whole_hop(data: Data, least: float) -> Check:
    """It is the throughput of the hop."""
    return base.ratio_at_least("XCP over the hop's capacity", rate(data, base.TUNED), rate(data, base.LINK), least)


@study.predicate("N-txt-24mbps-d", within=20)
def best_is_the_truth(data: Data, within: float) -> Check:
    """The best configured capacity is about that of the medium."""
    best = max(told(data.effort), key=lambda capacity: rate(data, capacity).mean)
    truth = base.hop_capacity(data) * 8e-3
    return between("best capacity over that of the hop", Sample.of([best / truth]), 1 - within / 100, 1 + within / 100)


study.control(
    "told 54",
    Place("told", lambda label: base.TOLD if isinstance(label, int | float) else label),
    ["N-txt-24mbps-a", "N-txt-24mbps-c", "N-txt-24mbps-d"],
    "Only XCP that is told near the truth carries the whole hop; told 54 it has about twice TCP's, as in figure 3.",
)


study.control(
    "24 and 54 exchanged",
    exchange(base.TUNED, base.TOLD),
    ["N-txt-24mbps-b"],
    "What is told above the truth cannot be the better of the two.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput against the configured capacity."""
    grid = list(told(data.effort))
    lines = [
        Line.of("XCP", grid, [rate(data, capacity) for capacity in grid]),
        Line("TCP", grid, [rate(data, base.TCP).mean] * len(grid)),
        Line("paper: XCP told 24, best TCP run", [base.TUNED] * 2, [BEST_XCP, BEST_TCP], points=True),
        Line("link test", grid, [base.hop_capacity(data)] * len(grid)),
    ]
    return [Panel("1 % loss", "capacity told (Mbit/s)", "throughput (KB/s)", lines)]
