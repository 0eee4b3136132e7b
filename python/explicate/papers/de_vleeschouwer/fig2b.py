"""D-fig2b: sums of throughput over time, 5 % loss, retransmissions by timer (figure 2b).

Set-up: as D-fig2a. The panel's label is lost: LR-XCP_PA (D-P9); LR-XCP is run beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers.de_vleeschouwer import base
from explicate.papers.de_vleeschouwer.fig2a import panel
from explicate.papers.statistics import Check, at_least, between
from explicate.papers.study import Case, Data, Effort, Panel, Study

study = Study("D-fig2b")

DUMB, TIMER, PLAIN_TIMER = "XCP_dumb", "LR-XCP_PA", "LR-XCP"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The panel's system, its sibling, and that of panel (a)."""
    return {
        system: base.case(effort, system, 5.0, params={"dupackthreshold": 1}) for system in (DUMB, TIMER, PLAIN_TIMER)
    }


@study.predicate("D-fig2b-a", times=2, least=0.5)
def much_fairer(data: Data, times: float, least: float) -> Iterator[Check]:
    """Twice as fair as (a), and half fair."""
    ratio = data.measure(TIMER, base.ratio)
    yield at_least("F(b) over F(a)", ratio / data.measure(DUMB, base.ratio), times)
    yield at_least("F(b)", ratio, least)


@study.predicate("D-fig2b-b", low=0.80, high=0.985)
def total_below_capacity(data: Data, low: float, high: float) -> Check:
    """The sum does not reach the capacity."""
    return between("share of the bottleneck", data.measure(TIMER, base.utilisation), low, high)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, TIMER, "(b) LR-XCP_PA"), panel(data, PLAIN_TIMER, "(b) if it is LR-XCP")]
