"""D-txt-util: how much of the bottleneck the XCP family leaves unused under loss (section 7.2). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from explicate.results import Results
from explicate_papers.de_vleeschouwer import base
from explicate_papers.statistics import Check, at_most, exceeds
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("D-txt-util")

SYSTEMS = ("LR-XCP", "LR-XCP_PA", "LR-LMXCP")


@study.cases
def cases(effort: Effort) -> dict[tuple[str, float], Case]:
    """Every system at every loss rate."""
    return {(system, loss): base.case(effort, system, loss) for system in SYSTEMS for loss in base.losses(effort)}


@study.predicate("D-txt-util-a", most=0.985)
def total_falls(data: Data, most: float) -> Iterator[Check]:
    """Utilisation falls as loss rises."""
    for system in SYSTEMS:
        grid = base.losses(data.effort)
        none, greatest = (data.measure((system, loss), base.utilisation) for loss in (grid[0], grid[-1]))
        yield exceeds(f"utilisation of {system}: at {grid[0]:g} % over {grid[-1]:g} %", none, greatest)
        yield at_most(f"utilisation of {system} at {grid[-1]:g} %", greatest, most)


@study.predicate("D-txt-util-b", most=5)
def queues_too_small(data: Data, most: float) -> Iterator[Check]:
    """XCP's queue is too short to bridge the gaps, at any loss rate."""
    for system in SYSTEMS:
        for loss in base.losses(data.effort):
            yield at_most(f"mean queue of {system} at {loss:g} %", data.measure((system, loss), base.queue), most)


study.control(
    "nothing is lost",
    base.LOSSES_OFF,
    ["D-txt-util-a"],
    "the paper blames the recovery from losses for what is left unused",
)
study.control(
    "TCP in LR-XCP's place",
    base.instead_of("LR-XCP", "reno", drop="on_loss"),
    ["D-txt-util-b"],
    "TCP grows until the queue drops, so packets wait",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Utilisation against the loss rate, and the queue, which the text blames."""
    grid = base.losses(data.effort)

    def lines(metric: Callable[[Results], float]) -> list[Line]:
        return [Line.of(system, grid, [data.measure((system, loss), metric) for loss in grid]) for system in SYSTEMS]

    return [
        Panel("Use of the bottleneck", "loss rate (%)", "utilisation", lines(base.utilisation), y_from=0.9),
        Panel("Its queue", "loss rate (%)", "mean queue (packets)", lines(base.queue)),
    ]
