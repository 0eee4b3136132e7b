"""N-txt-headline: XCP delivers 200 % of TCP in some cases (abstract, conclusion). Set-up: figure 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate_papers.controls import Place
from explicate_papers.nychis import base
from explicate_papers.statistics import Check
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-txt-headline")

TUNED = "tuned"
HIGHEST = 5.0
"""The highest loss rate, percent: above it both systems stall, and ratios have no meaning."""
TCP_FOR = {base.XCP: base.TCP, TUNED: base.TCP}


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems at every loss rate up to 5 %, and XCP with the tuned capacity."""
    both: dict[object, Case] = {
        (system, loss): base.chain(effort, system, loss)
        for system in (base.TCP, base.XCP)
        for loss in base.losses(effort)
        if loss <= HIGHEST
    }
    tuned: dict[object, Case] = {
        (TUNED, loss): base.chain(effort, base.XCP, loss, capacity=base.TUNED)
        for loss in base.losses(effort)
        if loss <= HIGHEST
    }
    return {**both, **tuned}


@study.predicate("N-txt-headline-a", told_54=1.8, tuned=2.1)
def twice(data: Data, told_54: float, tuned: float) -> Iterator[Check]:
    """Twice TCP with the default capacity, more with the tuned one."""
    for system, least in ((base.XCP, told_54), (TUNED, tuned)):
        ratios = {
            loss: base.rate(data, system, loss).mean / base.rate(data, base.TCP, loss).mean
            for loss in base.losses(data.effort)
            if loss <= HIGHEST
        }
        best = max(ratios, key=lambda loss: ratios[loss])
        name = "told 54" if system == base.XCP else "told 24"
        xcp, tcp = base.rate(data, system, best), base.rate(data, base.TCP, best)
        yield base.ratio_at_least(f"XCP, {name}, over TCP at {best:g} %", xcp, tcp, least)


study.control(
    "systems exchanged",
    Place("exchange", lambda label: (TCP_FOR.get(label[0], base.XCP), label[1])),
    ["N-txt-headline-a"],
    "XCP has twice what TCP has, so TCP has nowhere twice what XCP has.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The ratio of the means against the loss rate."""
    grid = [loss for loss in base.losses(data.effort) if loss <= HIGHEST]
    lines = [
        Line(name, grid, [base.rate(data, one, loss).mean / base.rate(data, base.TCP, loss).mean for loss in grid])
        for one, name in ((base.XCP, "XCP, 54 Mbit/s configured"), (TUNED, "XCP, 24 Mbit/s configured"))
    ]
    lines.append(Line("paper: 200 %", [grid[0], grid[-1]], [2.0, 2.0]))
    label = "throughput over TCP's"
    return [Panel("Node 1 to node 2", "loss rate (%)", label, lines, log="x", zero=base.NO_LOSS_AT)]
