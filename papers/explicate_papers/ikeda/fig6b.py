"""K-fig6b: the queue in the first 30 s, against the number of flows (figure 6b). The runs are those of figure 6a.

The mean is over the time in which packets wait; both are shares of the queue's limit, as in the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from explicate.results import Results
from explicate_papers import metrics
from explicate_papers.controls import Place
from explicate_papers.ikeda import base
from explicate_papers.ikeda.fig6a import SYSTEMS, numbers
from explicate_papers.statistics import Check, at_least, at_most, equal
from explicate_papers.study import Case, Data, Effort, Line, Panel, Study

study = Study("K-fig6b")


@study.cases
def cases(effort: Effort) -> dict[tuple[str, int], Case]:
    """Every system with every number of flows, all beginning together."""
    return {
        (system, flows): base.case(effort, system, flows=flows, of=("router",), every="250ms")
        for system in SYSTEMS
        for flows in numbers(effort)
    }


def mean_queue(results: Results) -> float:
    """Return the mean queue over the time in which it is not empty, relative to its limit; 0 if it is always empty."""
    waiting = metrics.link(results, base.BOTTLENECK, "queue_mean_nonempty")
    return 0.0 if math.isnan(waiting) else waiting / base.pipe()


def longest_queue(results: Results) -> float:
    """Return the peak queue as a share of its limit."""
    return metrics.link(results, base.BOTTLENECK, "queue_max_packets") / base.pipe()


@study.predicate("K-fig6b-a", most=0.25)
def small(data: Data, most: float) -> Iterator[Check]:
    """Hardly anything waits, with any number of flows."""
    for n in numbers(data.effort):
        yield at_most(f"mean queue with {n} flows", data.measure((base.PROPOSED, n), mean_queue), most)
        yield at_most(f"longest queue with {n} flows", data.measure((base.PROPOSED, n), longest_queue), most)


@study.predicate("K-fig6b-b", slack=0.1)
def as_vcp(data: Data, slack: float) -> Iterator[Check]:
    """No worse than VCP."""
    for flows in numbers(data.effort):
        proposed, vcp = (data.measure((system, flows), mean_queue) for system in (base.PROPOSED, base.VCP))
        yield at_most(f"mean queue with {flows} flows: proposed ({proposed}) less VCP ({vcp})", proposed - vcp, slack)
        proposed, vcp = (data.measure((system, flows), base.utilisation) for system in (base.PROPOSED, base.VCP))
        yield at_least(
            f"utilisation with {flows} flows: proposed ({proposed}) less VCP ({vcp})", proposed - vcp, -slack
        )


@study.predicate("K-fig6b-c", drops=0)
def nothing_dropped(data: Data, drops: float) -> Iterator[Check]:
    """No queue overflows."""
    for flows in numbers(data.effort):
        yield equal(f"drops with {flows} flows", data.measure((base.PROPOSED, flows), base.drops), drops)


study.control(
    "TCP in the place of the proposed scheme",
    Place("protocol", lambda label: (base.TCP, label[1]) if label[0] == base.PROPOSED else label),
    ["K-fig6b-a", "K-fig6b-b", "K-fig6b-c"],
    "slow start fills the queue and overruns it",
)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Mean and longest queue against the number of flows."""
    grid = numbers(data.effort)
    return [
        Panel(
            title, "flows", "share of the queue",
            [Line.of(system, grid, [data.measure((system, n), metric) for n in grid]) for system in SYSTEMS],
        )
        for title, metric in (("Mean queue while there is one", mean_queue), ("Longest queue", longest_queue))
    ]  # fmt: skip
