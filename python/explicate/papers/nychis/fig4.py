"""N-fig4: throughput over two hops against the loss rate of each link (figure 4). Set-up: `base.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from explicate.papers.nychis import base
from explicate.papers.nychis.fig3 import curves, gap, never_below, sweep
from explicate.papers.statistics import Check, Sample, at_most, between
from explicate.papers.study import Case, Data, Effort, Panel, Study

study = Study("N-fig4")

SYSTEMS = (base.TCP, base.XCP)
ONE = "one hop"


@study.cases
def cases(effort: Effort) -> Mapping[object, Case]:
    """Both systems at every loss rate, and one hop without loss."""
    return {**sweep(effort, SYSTEMS, 2), ONE: base.chain(effort, base.XCP)}


@study.predicate("N-fig4-a", up_to=5)
def xcp_leads(data: Data, up_to: float) -> Iterator[Check]:
    """XCP outperforms TCP."""
    yield from never_below(data, up_to)


def meet_at_ten(data: Data, difference: float) -> Check:
    """Return that both meet at 10 %; what the path carries is the better of the two without loss."""
    capacity = max(base.rate(data, system, 0.0).mean for system in SYSTEMS)
    return at_most(
        "difference at 10 % over the capacity", Sample.of([abs(gap(data, 10.0).mean) / capacity]), difference
    )


@study.predicate("N-fig4-b", difference=0.04)
def meet(data: Data, difference: float) -> Check:
    """Evident in all experiments."""
    return meet_at_ten(data, difference)


@study.predicate("N-fig4-c", low=0.4, high=0.6)
def half_of_one_hop(data: Data, low: float, high: float) -> Check:
    """Two hops share the air."""
    return between("two hops over one", base.rate(data, base.XCP, 0.0) / data.measure(ONE, base.kilobytes), low, high)


@study.plot
def plot(data: Data) -> Sequence[Panel]:
    """Throughput against the loss rate."""
    return curves(data, SYSTEMS, "Node 1 to node 3")
