"""D-fig2b: sums of throughput over time, 5 % loss, retransmissions by timer (figure 2b).

Set-up: as D-fig2a. The panel's label is lost: D-P9 names the protocol that is judged; the other one is run too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate_papers.controls import Place
from explicate_papers.de_vleeschouwer import base
from explicate_papers.de_vleeschouwer.fig2a import panel
from explicate_papers.statistics import Check, at_least, between
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("D-fig2b")

DUMB = "XCP_dumb"
TIMERS = ("LR-XCP_PA", "LR-XCP")


def timer(data: Data) -> str:
    """Return the panel's system (D-P9)."""
    return data.effort.choices["D-P9"]


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The panel's system, its sibling, and that of panel (a)."""
    return {system: base.case(effort, system, 5.0, params={"dupackthreshold": 1}) for system in (DUMB, *TIMERS)}


@study.predicate("D-fig2b-a", times=2, least=0.5)
def much_fairer(data: Data, times: float, least: float) -> Iterator[Check]:
    """Twice as fair as (a), and half fair."""
    ratio = base.fairness(data, timer(data))
    yield at_least("F(b) over F(a)", ratio / base.fairness(data, DUMB), times)
    yield at_least("F(b)", ratio, least)


@study.predicate("D-fig2b-b", low=0.80, high=0.985)
def total_below_capacity(data: Data, low: float, high: float) -> Check:
    """The sum does not reach the capacity."""
    return between("share of the bottleneck", data.measure(timer(data), base.utilisation), low, high)


study.control(
    "Reno's recovery in its place",
    Place("off", lambda _: DUMB),
    ["D-fig2b-a"],
    "without its timers and partial deflation the sender is that of panel (a)",
)
study.control(
    "nothing is lost",
    base.LOSSES_OFF,
    ["D-fig2b-b"],
    "the paper blames pauses after losses for what is left unused",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time, with those of panel (a) beside them."""
    ours, other = sorted(TIMERS, key=lambda one: one != timer(data))
    titles = {ours: f"(b) if it is {ours}", DUMB: f"(a) {DUMB}", other: f"(b) if it is {other}"}
    return [panel(data, system, title) for system, title in titles.items()]
