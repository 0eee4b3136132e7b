"""N-txt-warm: losses from the first packet on, or once XCP has converged (section IV). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from explicate_papers.controls import edit
from explicate_papers.nychis import base
from explicate_papers.statistics import Check
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-warm")

STARTS_S = (0.0, 10.0)
SECONDS = 60.0


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    return [loss for loss in base.losses(effort) if 0 < loss <= 2.5]


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Every loss rate with both beginnings; 60 s of losses are measured."""

    def one(loss: float, start: float) -> Case:
        model = base.lost(effort, loss, start=f"{start:g}s")
        case = base.chain(effort, base.XCP, model=model, seconds=SECONDS + start)
        return replace(case, settings={"warmup": f"{start:g}s"})

    return {(loss, start): one(loss, start) for loss in losses(effort) for start in STARTS_S}


def never(content: dict[str, Any]) -> None:
    """Let losses begin after the end: a control."""
    for link in content["link"]:
        for channel in link["channel"]:
            if "start" in channel:
                channel["start"] = f"{10 * SECONDS:g}s"


@study.predicate("N-txt-warm-a", most=10, up_to=1)
def hardly_matters(data: Data, most: float, up_to: float) -> Iterator[Check]:
    """Letting XCP converge first changes little."""
    span = (1 - most / 100, 1 + most / 100)
    for loss in losses(data.effort):
        if loss <= up_to:
            first, last = (base.rate(data, loss, start) for start in STARTS_S)
            yield from base.ratio_between(f"converged first over from the start, {loss:g} %", last, first, *span)


study.control(
    "no losses once converged",
    edit("off", never, lambda label: label[1] == STARTS_S[1]),
    ["N-txt-warm-a"],
    "Both beginnings have the same losses in what is measured; where one has none, 1 % makes more than a tenth.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput against the loss rate."""
    grid = list(losses(data.effort))
    lines = [
        Line.of(f"from {start:g} s on", grid, [base.rate(data, loss, start) for loss in grid]) for start in STARTS_S
    ]
    return [Panel("XCP", "loss rate (%)", "throughput (KB/s)", lines, log="x")]
