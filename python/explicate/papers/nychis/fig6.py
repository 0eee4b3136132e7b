"""N-fig6: highest, lowest and mean throughput of three XCP runs at each loss rate (figure 6). Set-up: `base.py`.

Ten seeds make ten triples of neighbours; the spread is what three runs have on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from explicate.papers.nychis import base
from explicate.papers.statistics import Check, Sample, at_least, at_most, between
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("N-fig6")

SEEDS = 10
WIRED = "wired"


def losses(effort: Effort) -> Sequence[float]:
    """Return the loss rates, percent."""
    return effort.pick(base.losses(effort), (0.0, 0.1, 1.0, 5.0))


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems at every loss rate, and XCP over a wire of known capacity."""
    seeds = max(SEEDS, effort.seeds)
    runs: dict[object, Case] = {
        (system, loss): base.chain(effort, system, loss, seeds=seeds)
        for system in (base.XCP, base.TCP)
        for loss in losses(effort)
    }
    return {**runs, WIRED: base.wired(effort, base.XCP, seeds=seeds)}


def spread(data: Data, *label: object) -> float:
    """Return (high - low) / mean of three runs."""
    return base.spread(base.rate(data, *label).values)


@study.predicate("N-fig6-a", least=0.05)
def varies(data: Data, least: float) -> Check:
    """A high level of variance, without loss too."""
    return at_least("(high - low) / mean at 0 %", Sample.of([spread(data, base.XCP, 0.0)]), least)


@study.predicate("N-fig6-b", most=0.01)
def wires_do_not(data: Data, most: float) -> Check:
    """XCP is stable over wires."""
    wired = base.spread(data.measure(WIRED, base.kilobytes).values)
    return at_most("(high - low) / mean over a wire", Sample.of([wired]), most)


@study.predicate("N-fig6-c", low=0.3, high=3)
def so_does_tcp(data: Data, low: float, high: float) -> Check:
    """TCP had similar results."""
    means = [fmean(spread(data, system, loss) for loss in losses(data.effort)) for system in (base.TCP, base.XCP)]
    return between("spread of TCP over XCP", Sample.of([means[0] / means[1]]), low, high)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """High, low and mean of the first three runs."""
    grid = [loss for loss in losses(data.effort) if loss > 0]
    runs = [base.rate(data, base.XCP, loss).values[:3] for loss in grid]
    lines = [
        Line(name, grid, [work(run) for run in runs]) for name, work in (("high", max), ("mean", fmean), ("low", min))
    ]
    return [Panel("XCP, three runs", "loss rate (%)", "throughput (KB/s)", lines, log="x")]
