"""N-fig8: the configured capacity exceeds the channel's, and the queue fills, in 3 of 10 runs (figure 8).

Set-up and classes: `fig7.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Settings, edit
from explicate_papers.nychis import base
from explicate_papers.nychis.fig7 import (
    CLASS,
    SHOWN,
    WHOLE,
    of_class,
    share_of_class,
    shown,
    throughput,
    watched,
    window,
    with_queue,
)
from explicate_papers.statistics import Check, Sample
from explicate_papers.study import Data, Panel, Study

study = Study("N-fig8")

study.cases(watched)


@study.predicate("N-fig8-a", low=1, high=5, of=10)
def three_of_ten(data: Data, low: float, high: float, of: float) -> Check:
    """3 in the paper."""
    return share_of_class(data, low, high, of, stands=True)


def longest(data: Data, results: Results) -> float:
    """Return the longest queue of the first seconds, packets."""
    return metrics.largest(shown(data, results, "n1->n2", "queue_packets"))


@study.predicate("N-fig8-b", least=90)
def filled(data: Data, least: float) -> Check:
    """The queue fills."""
    queues = of_class(data, longest, SHOWN, stands=True)
    limit = Sample.of([float(data.effort.choices["N-P7"])] * len(queues.values))
    return base.ratio_at_least("longest queue over its limit", queues, limit, least / 100)


@study.predicate("N-fig8-c", least=1.3)
def inflated(data: Data, least: float) -> Check:
    """Feedback is inflated, and so is the window."""
    standing, others = (of_class(data, window, SHOWN, stands=stands) for stands in (True, False))
    return over("mean window: figure 8 over figure 7", standing, others, least)


@study.predicate("N-fig8-d", low=0.78, high=0.97)
def slower(data: Data, low: float, high: float) -> Iterator[Check]:
    """2503 KB/s against 2827."""
    standing, others = (of_class(data, throughput, WHOLE, stands=stands) for stands in (True, False))
    what = "KB/s: figure 8 over figure 7"
    yield over(what, standing, others, low)
    yield over(what, standing, others, high, most=True)


def over(what: str, one: Sample, other: Sample, bound: float, *, most: bool = False) -> Check:
    """Check the ratio of two classes' means. They have separate runs, so the second's mean counts as known."""
    known = Sample.of([other.mean] * len(one.values))
    return (base.ratio_at_most if most else base.ratio_at_least)(what, one, known, bound)


study.control(
    "classes told 54",
    Settings("told", {"medium.air.capacity": "54Mbit/s"}, lambda label: label == CLASS),
    ["N-fig8-a"],
    "Told more than any of its channels carries, XCP has a standing queue in nearly all runs.",
)
study.control(
    "steady channel",
    edit("off", base.calm, lambda label: label in {SHOWN, WHOLE}),
    ["N-fig8-b", "N-fig8-c", "N-fig8-d"],
    "The runs differ by their channels alone; with one steady channel those of both classes are alike.",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """A run with a standing queue."""
    return with_queue(data, "The channel carries less than configured", stands=True)
