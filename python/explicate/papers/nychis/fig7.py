"""N-fig7: the window oscillates and the hop is under-used, in 7 of 10 runs (figure 7). Set-up: `base.py`.

XCP is told 24 Mbit/s, about the best that had been seen; nothing is lost on purpose. A run belongs to figure 8
if more than ten packets wait for half of the first 5 s: the queue stands. The others belong to figure 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median

import polars as pl

from explicate.papers import metrics
from explicate.papers.nychis import base
from explicate.papers.statistics import Check, Sample, at_least, at_most, between
from explicate.papers.study import Case, Data, Effort, Line, Panel, Study
from explicate.results import Results

study = Study("N-fig7")

RUNS = 10
SHOWN_S = 5.0
STARTED_S = 0.5
STANDS = 10.0
"""Packets; about seven wait where the capacity told is less than the channel's, fifty where it is more."""
XCP = "told 24"


def ten(effort: Effort) -> Mapping[str, Case]:
    """Return ten runs, and the same channels with TCP that never lets the queue run empty."""
    return {
        XCP: base.chain(effort, base.XCP, capacity=base.TUNED, every="10ms", seeds=RUNS),
        base.LINK: base.link_test(effort, seeds=RUNS),
    }


study.cases(ten)


def shown(results: Results, name: str, variable: str) -> pl.DataFrame:
    """Return what the figure would show of a variable: the first 5 s after the start-up."""
    return metrics.series(results, name, variable, STARTED_S).filter(pl.col("time_s") <= SHOWN_S)


def queue(results: Results) -> float:
    """Return the mean queue, packets."""
    return metrics.mean(shown(results, "n1->n2", "queue_packets"))


def middle(results: Results) -> float:
    """Return the median queue, packets."""
    return float(median(shown(results, "n1->n2", "queue_packets")["value"].to_list()))


def window(results: Results) -> float:
    """Return the mean window, packets."""
    return metrics.mean(shown(results, "bulk.0", "cwnd"))


def variation(results: Results) -> float:
    """Return the coefficient of variation of the window."""
    return metrics.variation(shown(results, "bulk.0", "cwnd"))


def reversals(results: Results) -> float:
    """Return how often in a second the window turns from growing to shrinking or back."""
    steps = shown(results, "bulk.0", "cwnd")["value"].diff().drop_nulls()
    signs = steps.filter(steps != 0).sign()
    return float((signs != signs.shift(1)).sum() - 1) / (SHOWN_S - STARTED_S)


def of_class(data: Data, metric: Callable[[Results], float], *, standing: bool, label: str = XCP) -> list[float]:
    """Return a measure of the runs whose queue stands, or of the others."""
    queues = data.measure(XCP, middle)
    return [
        value for value, waits in zip(data.measure(label, metric), queues, strict=True) if (waits > STANDS) == standing
    ]


@study.predicate("N-fig7-a", low=5, high=9)
def seven_of_ten(data: Data, low: float, high: float) -> Check:
    """7 in the paper."""
    return between("runs without a standing queue", Sample.of([len(of_class(data, queue, standing=False))]), low, high)


@study.predicate("N-fig7-b", least=0.15, turns=5)
def never_settles(data: Data, least: float, turns: float) -> Iterator[Check]:
    """The window constantly fluctuates."""
    yield at_least("variation of the window", Sample.of([fmean(of_class(data, variation, standing=False))]), least)
    yield at_least("reversals a second", Sample.of([fmean(of_class(data, reversals, standing=False))]), turns)


@study.predicate("N-fig7-c", most=0.2)
def under_used(data: Data, most: float) -> Iterator[Check]:
    """The link is under-used, and the queue mostly empty."""
    share = fmean(of_class(data, queue, standing=False)) / float(data.effort.choices["N-P7"])
    yield at_most("mean queue over its limit", Sample.of([share]), most)
    got, could = (of_class(data, base.kilobytes, standing=False, label=label) for label in (XCP, base.LINK))
    yield Check(
        "KB/s of XCP, and of the same channels",
        f"{fmean(got):.0f}, {fmean(could):.0f}",
        "less",
        fmean(got) < fmean(could),
    )


@study.predicate("N-fig7-d", low=0.85, high=1)
def nearly_all(data: Data, low: float, high: float) -> Check:
    """2827 KB/s of 3000."""
    got, could = (of_class(data, base.kilobytes, standing=False, label=label) for label in (XCP, base.LINK))
    what = f"throughput ({fmean(got):.0f} KB/s) over what the hop carries in the same channels"
    return between(what, Sample.of([fmean(got) / fmean(could)]), low, high)


def trace(data: Data, title: str, run: int) -> Panel:
    """Return the window and the queue of a run over time."""
    results = data.runs(XCP)[run]
    lines = [
        Line.series("window", base.window(results).filter(pl.col("time_s") <= SHOWN_S)),
        Line.series("queue", metrics.series(results, "n1->n2", "queue_packets").filter(pl.col("time_s") <= SHOWN_S)),
    ]
    return Panel(title, "time (s)", "packets", lines)


def ranked(data: Data) -> list[int]:
    """Return the runs by their queues."""
    queues = data.measure(XCP, queue).values
    return sorted(range(len(queues)), key=lambda run: queues[run])


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The run with the least queue."""
    return [trace(data, "The channel carries what XCP is told", ranked(data)[0])]
