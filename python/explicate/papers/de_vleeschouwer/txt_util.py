"""D-txt-util: how much of the bottleneck the XCP family leaves unused under loss (section 7.2). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.papers.de_vleeschouwer import base
from explicate.papers.de_vleeschouwer.fig3 import losses
from explicate.papers.statistics import Check, at_most, falling
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-util")

SYSTEMS = ("LR-XCP", "LR-XCP_PA", "LR-LMXCP")
NOISE = 0.005
"""A rise of the mean by less than this is that of the seeds, not of the loss rate."""


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Every system at every loss rate."""
    return {(system, loss): base.case(effort, system, loss) for system in SYSTEMS for loss in losses(effort)}


@study.predicate("D-txt-util-a", most=0.98)
def total_falls(data: Data, most: float) -> Iterator[Check]:
    """Utilisation falls as loss rises."""
    for system in SYSTEMS:
        used = [data.measure((system, loss), base.utilisation) for loss in losses(data.effort)]
        yield falling(f"utilisation of {system}", used, NOISE)
        yield at_most(f"utilisation of {system} at 5 %", data.measure((system, 5.0), base.utilisation), most)


@study.predicate("D-txt-util-b", most=5)
def queues_too_small(data: Data, most: float) -> Iterator[Check]:
    """XCP's queue is too short to bridge the gaps."""
    for system in SYSTEMS:
        yield at_most(f"mean queue of {system} at 5 %", data.measure((system, 5.0), base.queue), most)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Utilisation against the loss rate."""
    grid = losses(data.effort)
    lines = [
        Line.of(system, grid, [data.measure((system, loss), base.utilisation) for loss in grid]) for system in SYSTEMS
    ]
    return [Panel("Use of the bottleneck", "loss rate (%)", "utilisation", lines, y_from=0.9)]
