"""N-fig8: the capacity told is more than the channel's, and the queue fills, in 3 of 10 runs (figure 8).

Set-up and classes: `fig7.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from explicate.papers.nychis import base
from explicate.papers.nychis.fig7 import XCP, middle, of_class, queue, ranked, ten, trace, window
from explicate.papers.statistics import Check, Sample, at_least, between
from explicate.papers.study import Data, NotAttemptedError, Panel, Study

study = Study("N-fig8")

study.cases(ten)


@study.predicate("N-fig8-a", low=1, high=5)
def three_of_ten(data: Data, low: float, high: float) -> Check:
    """3 in the paper."""
    return between("runs with a standing queue", Sample.of([len(of_class(data, queue, standing=True))]), low, high)


@study.predicate("N-fig8-b", least=0.5)
def filled(data: Data, least: float) -> Check:
    """The queue is filled."""
    queues = _standing(data, of_class(data, middle, standing=True))
    share = fmean(queues) / float(data.effort.choices["N-P7"])
    return at_least(f"median queue ({fmean(queues):.1f} packets) over its limit", Sample.of([share]), least)


@study.predicate("N-fig8-c", least=1.3)
def inflated(data: Data, least: float) -> Check:
    """Feedback is inflated, and so is the window."""
    standing = _standing(data, of_class(data, window, standing=True))
    ratio = fmean(standing) / fmean(of_class(data, window, standing=False))
    return at_least("mean window: figure 8 over figure 7", Sample.of([ratio]), least)


@study.predicate("N-fig8-d", low=0.78, high=0.97)
def slower(data: Data, low: float, high: float) -> Iterator[Check]:
    """2503 KB/s against 2827."""
    standing = _standing(data, of_class(data, base.kilobytes, standing=True))
    ratio = fmean(standing) / fmean(of_class(data, base.kilobytes, standing=False))
    yield between(f"KB/s: figure 8 ({fmean(standing):.0f}) over figure 7", Sample.of([ratio]), low, high)


def _standing(data: Data, values: list[float]) -> list[float]:
    if not values or len(values) == len(data.runs(XCP)):
        raise NotAttemptedError("all runs belong to one class")
    return values


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """The run with the largest queue."""
    return [trace(data, "The channel carries less", ranked(data)[-1])]
