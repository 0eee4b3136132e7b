"""D-fig2c: sums of throughput over time, 5 % loss, with the loss monitor (figure 2c). Set-up: as D-fig2a."""

from __future__ import annotations

from collections.abc import Sequence

from explicate.papers.de_vleeschouwer import base
from explicate.papers.de_vleeschouwer.fig2a import panel
from explicate.papers.statistics import Check, above, at_least
from explicate.papers.study import Case, Data, Effort, Panel, Study

study = Study("D-fig2c")

TIMER, MONITOR = "LR-XCP_PA", "LR-LMXCP"


@study.cases
def cases(effort: Effort) -> dict[str, Case]:
    """The panel's system, and that of panel (b)."""
    return {system: base.case(effort, system, 5.0, params={"dupackthreshold": 1}) for system in (TIMER, MONITOR)}


@study.predicate("D-fig2c-a", least=0.8)
def fair(data: Data, least: float) -> Check:
    """Lossy flows get nearly as much."""
    return at_least("F(c)", data.measure(MONITOR, base.ratio), least)


@study.predicate("D-fig2c-b")
def smoother(data: Data) -> Check:
    """The monitor's throughput fluctuates less."""
    timer, monitor = (data.measure(system, base.unrest) for system in (TIMER, MONITOR))
    return above("deviation of the lossy sum in 1 s, Mbit/s: timer over monitor", timer, monitor)


@study.predicate("D-fig2c-c")
def at_least_as_fair(data: Data) -> Check:
    """As fair as (b) or more."""
    return above("F(c) over F(b)", data.measure(MONITOR, base.ratio), data.measure(TIMER, base.ratio), slack=1e-9)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Sums over time."""
    return [panel(data, MONITOR, "(c) LR-LMXCP")]
