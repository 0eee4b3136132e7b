"""D-fig2c: sums of throughput over time, 5 % loss, with the loss monitor (figure 2c). Set-up: as D-fig2a."""

from __future__ import annotations

from collections.abc import Sequence

from explicate_papers.controls import exchange
from explicate_papers.de_vleeschouwer import base
from explicate_papers.de_vleeschouwer.fig2a import panel
from explicate_papers.statistics import Check, above, at_least
from explicate_papers.study import Case, Data, Effort, Panel, Study

study = Study("D-fig2c")

TIMER, MONITOR = "timer", "LR-LMXCP"
"""Panel (b)'s system is that of D-P9."""


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The panel's system, and that of panel (b)."""
    systems = {TIMER: effort.choices["D-P9"], MONITOR: MONITOR}
    return {label: base.case(effort, one, 5.0, params={"dupackthreshold": 1}) for label, one in systems.items()}


@study.predicate("D-fig2c-a", least=0.8)
def fair(data: Data, least: float) -> Check:
    """Lossy flows have nearly the same throughput."""
    return at_least("F(c)", base.fairness(data, MONITOR), least)


@study.predicate("D-fig2c-b")
def smoother(data: Data) -> Check:
    """The monitor's throughput fluctuates less."""
    timer, monitor = (data.measure(system, base.unrest) for system in (TIMER, MONITOR))
    return above("deviation of the lossy sum in 1 s, Mbit/s: timer over monitor", timer, monitor)


@study.predicate("D-fig2c-c")
def at_least_as_fair(data: Data) -> Check:
    """As fair as (b) or more."""
    return above("F(c) over F(b)", base.fairness(data, MONITOR), base.fairness(data, TIMER), slack=base.NOTHING)


study.control(
    "Reno's recovery in its place",
    base.instead_of(MONITOR, "XCP_dumb", lambda label: label == MONITOR),
    ["D-fig2c-a"],
    "a sender that halves its window and waits for its timer loses its share to the others",
)
study.control(
    "panels exchanged",
    exchange(TIMER, MONITOR),
    ["D-fig2c-b", "D-fig2c-c"],
    "cumulative acknowledgements repair one loss a round trip and leave the rest to timers, so throughput pauses more",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time, with those of panel (b) beside them."""
    return [panel(data, MONITOR, "(c) LR-LMXCP"), panel(data, TIMER, f"(b) {data.effort.choices['D-P9']}")]
